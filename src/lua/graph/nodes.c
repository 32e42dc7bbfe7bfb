/* The nodes of a graph and their picture. */
#include "lua/graph/graph.h"


/* g:debug_dump(path) */
static int graph_debug_dump(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:debug_dump");
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  const char *path = cgl_lua_read_string(L, S, 2, "the path", NULL);
  cgl_lua_done(L, S, cgl_graph_debug_dump(graph, path));
  return 0;
}


/* Does nothing, because the recording is always kept; torch has the call. */
static int graph_enable_debug_mode(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:enable_debug_mode");
  cgl_lua_check_graph(L, S, 1);
  return 0;
}


static void sizes_push(lua_State *L, const uint32_t sizes[3]) {
  lua_createtable(L, 3, 0);
  for (int i = 0; i < 3; i++) {
    lua_pushnumber(L, sizes[i]);
    lua_rawseti(L, -2, i + 1);
  }
}


/* Sets `label` and `annotations` of the node on top, when there are any. */
static void node_set_annotations(lua_State *L, const cgl_node_info *info) {
  if (!info->nannotations)
    return;
  if (info->label)
    cgl_lua_set_text(L, "label", info->label);
  lua_createtable(L, 0, (int)info->nannotations);
  for (size_t i = 0; i < info->nannotations; i++) {
    const cgl_annotation *pair = &info->annotations[i];
    if (pair->kind == CGL_ANNOTATION_TEXT)
      cgl_lua_set_text(L, pair->key, pair->text);
    else if (pair->kind == CGL_ANNOTATION_NUMBER)
      cgl_lua_set_number(L, pair->key, pair->number);
    else
      cgl_lua_set_boolean(L, pair->key, pair->number != 0);
  }
  lua_setfield(L, -2, "annotations");
}


/* Pushes a node of the recording as a table; indices count from 1. */
static void node_push(lua_State *L, const cgl_node_info *info) {
  lua_createtable(L, 0, 9);
  cgl_lua_set_text(L, "kind", info->kind);
  cgl_lua_set_text(L, "name", info->name);
  cgl_lua_set_text(L, "file", info->file);
  cgl_lua_set_number(L, "line", info->line);
  cgl_lua_set_boolean(L, "enabled", info->enabled);
  if (info->type != CGL_TYPE_COUNT)
    cgl_lua_set_text(L, "type", cgl_type_name(info->type));
  if (info->grid[0]) {
    sizes_push(L, info->grid);
    lua_setfield(L, -2, "grid");
    sizes_push(L, info->block);
    lua_setfield(L, -2, "block");
  }
  lua_createtable(L, (int)info->ndependencies, 0);
  for (size_t i = 0; i < info->ndependencies; i++) {
    lua_pushnumber(L, (double)info->dependencies[i] + 1);
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_setfield(L, -2, "dependencies");
  node_set_annotations(L, info);
}


static int graph_nodes(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:nodes");
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  size_t n = 0;
  cgl_lua_done(L, S, cgl_graph_node_count(graph, &n));
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    cgl_node_info info;
    cgl_lua_done(L, S, cgl_graph_node(graph, i, &info));
    node_push(L, &info);
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}


const luaL_Reg cgl_lua_graph_node_methods[] = {
    {"debug_dump", graph_debug_dump},
    {"enable_debug_mode", graph_enable_debug_mode},
    {"nodes", graph_nodes},
    {NULL, NULL},
};
