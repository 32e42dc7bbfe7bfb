/* Looking inside graphs: their nodes, their picture, and what the script said
   about them. */
#include "lua/binding.h"

#include <string.h>

enum { MAX_ANNOTATIONS = 32 };


/* g:debug_dump(path) */
static int graph_debug_dump(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:debug_dump");
  cgl_graph *graph = cgl_lua_check(L, S, 1, CGL_LUA_graph);
  const char *path = cgl_lua_string(L, S, 2, "the path", NULL);
  cgl_lua_done(L, S, cgl_graph_debug_dump(graph, path));
  return 0;
}


/* The recording is always there, so there is nothing to switch on; scripts
   that know torch's call may still make it. */
static int graph_enable_debug_mode(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:enable_debug_mode");
  cgl_lua_check(L, S, 1, CGL_LUA_graph);
  return 0;
}


static void push_sizes(lua_State *L, const uint32_t sizes[3]) {
  lua_createtable(L, 3, 0);
  for (int i = 0; i < 3; i++) {
    lua_pushnumber(L, sizes[i]);
    lua_rawseti(L, -2, i + 1);
  }
}


/* Fields `label` and `annotations` of the node on top, when there are any. */
static void push_annotations(lua_State *L, const cgl_node_info *info) {
  if (!info->nannotations)
    return;
  if (info->label) {
    cgl_lua_set_text(L, "label", info->label);
  }
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


/* One node of the recording as a table; indices count from 1. */
static void push_node(lua_State *L, const cgl_node_info *info) {
  lua_createtable(L, 0, 9);
  cgl_lua_set_text(L, "kind", info->kind);
  cgl_lua_set_text(L, "name", info->name);
  cgl_lua_set_text(L, "file", info->file);
  cgl_lua_set_number(L, "line", info->line);
  cgl_lua_set_boolean(L, "enabled", info->enabled);
  if (info->type != CGL_TYPE_COUNT) {
    cgl_lua_set_text(L, "type", cgl_type_name(info->type));
  }
  if (info->grid[0]) {
    push_sizes(L, info->grid);
    lua_setfield(L, -2, "grid");
    push_sizes(L, info->block);
    lua_setfield(L, -2, "block");
  }
  lua_createtable(L, (int)info->ndependencies, 0);
  for (size_t i = 0; i < info->ndependencies; i++) {
    lua_pushnumber(L, (double)info->dependencies[i] + 1);
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_setfield(L, -2, "dependencies");
  push_annotations(L, info);
}


static int graph_nodes(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:nodes");
  cgl_graph *graph = cgl_lua_check(L, S, 1, CGL_LUA_graph);
  size_t n = 0;
  cgl_lua_done(L, S, cgl_graph_node_count(graph, &n));
  lua_createtable(L, (int)n, 0);
  for (size_t i = 0; i < n; i++) {
    cgl_node_info info;
    cgl_lua_done(L, S, cgl_graph_node(graph, i, &info));
    push_node(L, &info);
    lua_rawseti(L, -2, (int)i + 1);
  }
  return 1;
}


/* ---- annotations ---- */

/* A text of an annotation, borrowed from the stack. */
static const char *text_at(lua_State *L, cgl_lua *S, int index, int argument) {
  size_t length;
  const char *text = lua_tolstring(L, index, &length);
  if (strlen(text) != length)
    cgl_lua_bad(L, S, argument, "an annotation has a zero byte at %d",
                (int)strlen(text) + 1);
  return text;
}


/* Reads a label, or a table of annotations, whose texts are borrowed from
   there. */
static size_t read_annotations(lua_State *L, cgl_lua *S, int index,
                               cgl_annotation *pairs) {
  if (lua_type(L, index) == LUA_TSTRING) {
    pairs[0] = (cgl_annotation){"label", CGL_ANNOTATION_TEXT,
                                text_at(L, S, index, index), 0};
    return 1;
  }
  if (!lua_istable(L, index))
    cgl_lua_bad(L, S, index,
                "a label or a table of annotations expected, "
                "got %s",
                luaL_typename(L, index));
  size_t n = 0;
  for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
    if (lua_type(L, -2) != LUA_TSTRING)
      cgl_lua_bad(L, S, index,
                  "the names of annotations must be strings, got "
                  "%s",
                  luaL_typename(L, -2));
    if (n == MAX_ANNOTATIONS)
      cgl_lua_bad(L, S, index, "more than %d annotations", MAX_ANNOTATIONS);
    cgl_annotation *pair = &pairs[n++];
    *pair = (cgl_annotation){text_at(L, S, -2, index), CGL_ANNOTATION_NUMBER,
                             NULL, 0};
    int type = lua_type(L, -1);
    if (type == LUA_TSTRING) {
      pair->kind = CGL_ANNOTATION_TEXT;
      pair->text = text_at(L, S, -1, index);
    } else if (type == LUA_TBOOLEAN) {
      pair->kind = CGL_ANNOTATION_BOOLEAN;
      pair->number = lua_toboolean(L, -1);
    } else if (type == LUA_TNUMBER)
      pair->number = lua_tonumber(L, -1);
    else
      cgl_lua_bad(L, S, index,
                  "annotation '%s' must be a string, a number or "
                  "a boolean, got %s",
                  pair->key, luaL_typename(L, -1));
  }
  return n;
}


/* Calls the function at `index` + 1 with what follows it, in a scope with the
   annotations at `index`; leaves what it returned above `index`. */
static int annotated(lua_State *L, cgl_lua *S, cgl_graph *graph, int index) {
  cgl_annotation pairs[MAX_ANNOTATIONS];
  size_t n = read_annotations(L, S, index, pairs);
  cgl_lua_function(L, S, index + 1);
  /* The function may release the graph. */
  cgl_graph **held = cgl_lua_new(L, S, CGL_LUA_graph);
  lua_insert(L, index + 1);
  uint64_t scope = 0;
  if (graph)
    cgl_lua_done(L, S, cgl_graph_annotate(graph, pairs, n, &scope));
  *held = graph ? cgl_graph_retain(graph) : NULL;
  int failed = cgl_lua_within(L, S, NULL, NULL, lua_gettop(L) - index - 2);
  if (graph)
    cgl_graph_annotate_end(graph, scope);
  cgl_graph_release(*held);
  *held = NULL;
  return failed ? lua_error(L) : lua_gettop(L) - index - 1;
}


/* g:annotate(label_or_table, fn, ...) returns what fn returned. */
static int graph_annotate(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:annotate");
  cgl_graph *graph = cgl_lua_check(L, S, 1, CGL_LUA_graph);
  return annotated(L, S, graph, 2);
}


/* cg.mark_kernels(label_or_table, fn, ...): the same for the graph that
   captures the current stream, if one does. */
static int mark_kernels(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "mark_kernels");
  cgl_graph *graph = S->stream ? cgl_stream_capturing_graph(S->stream) : NULL;
  return annotated(L, S, graph, 1);
}


static int graph_clear_annotations(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:clear_annotations");
  cgl_graph_clear_annotations(cgl_lua_check(L, S, 1, CGL_LUA_graph));
  return 0;
}


const luaL_Reg cgl_lua_inside_methods[] = {
    {"debug_dump", graph_debug_dump},
    {"enable_debug_mode", graph_enable_debug_mode},
    {"nodes", graph_nodes},
    {"annotate", graph_annotate},
    {"clear_annotations", graph_clear_annotations},
    {NULL, NULL},
};

const luaL_Reg cgl_lua_inside_functions[] = {{"mark_kernels", mark_kernels},
                                             {NULL, NULL}};
