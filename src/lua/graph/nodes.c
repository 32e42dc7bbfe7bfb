/* The nodes of a graph: their list, their picture, and what the script says
   about them (annotations). */
#include "lua/graph/graph.h"

enum { MAX_ANNOTATIONS = 32 };


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


static void node_push(lua_State *L, const cgl_node_info *info);


/* Sets `bodies` of the node on top: a list of lists of nodes. */
static void node_set_bodies(lua_State *L, const cgl_node_info *info) {
  luaL_checkstack(L, LUA_MINSTACK, "too many conditionals in one another");
  lua_createtable(L, (int)info->nbodies, 0);
  for (size_t i = 0; i < info->nbodies; i++) {
    const size_t n = cgl_graph_body_node_count(info->bodies[i]);
    lua_createtable(L, (int)n, 0);
    for (size_t k = 0; k < n; k++) {
      cgl_node_info inner;
      cgl_graph_body_node(info->bodies[i], k, &inner);
      node_push(L, &inner);
      lua_rawseti(L, -2, (int)k + 1);
    }
    lua_rawseti(L, -2, (int)i + 1);
  }
  lua_setfield(L, -2, "bodies");
}


/* Pushes a node of the recording as a table; indices count from 1. */
static void node_push(lua_State *L, const cgl_node_info *info) {
  lua_createtable(L, 0, 9);
  cgl_lua_set_text(L, "kind", info->kind);
  cgl_lua_set_text(L, "name", info->name);
  cgl_lua_set_text(L, "file", info->file);
  cgl_lua_set_number(L, "line", info->line);
  cgl_lua_set_boolean(L, "enabled", info->enabled);
  cgl_lua_set_boolean(L, "programmatic", info->programmatic);
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
  if (info->form)
    cgl_lua_set_text(L, "form", info->form);
  if (info->nbodies)
    node_set_bodies(L, info);
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


/* Pushes the list of barriers: {node =, name =, file =, line =, reason =}. */
static void barriers_push(lua_State *L, cgl_lua *S, cgl_graph *graph,
                          size_t nodes) {
  int count = 0;
  lua_newtable(L);
  for (size_t i = 0; i < nodes; i++) {
    const char *reason = NULL;
    cgl_node_info info;
    cgl_lua_done(L, S, cgl_graph_plan_barrier(graph, i, &reason));
    if (!reason)
      continue;
    cgl_lua_done(L, S, cgl_graph_node(graph, i, &info));
    lua_createtable(L, 0, 5);
    cgl_lua_set_number(L, "node", (double)i + 1);
    cgl_lua_set_text(L, "name", info.name);
    cgl_lua_set_text(L, "file", info.file);
    cgl_lua_set_number(L, "line", info.line);
    cgl_lua_set_text(L, "reason", reason);
    lua_rawseti(L, -2, ++count);
  }
}


/* Pushes the list of buffers; `at` counts from the lowest address. */
static void memory_push(lua_State *L, cgl_lua *S, cgl_graph *graph) {
  cgl_plan_memory memory;
  uint64_t lowest = UINT64_MAX;
  bool found = true;
  for (size_t i = 0; found; i++) {
    cgl_lua_done(L, S, cgl_graph_plan_memory(graph, i, &memory, &found));
    if (found && memory.bytes && memory.address < lowest)
      lowest = memory.address;
  }
  lua_newtable(L);
  for (size_t i = 0, count = 0;; i++) {
    cgl_lua_done(L, S, cgl_graph_plan_memory(graph, i, &memory, &found));
    if (!found)
      return;
    if (!memory.bytes)
      continue;
    lua_createtable(L, 0, 5);
    cgl_lua_set_text(L, "file", memory.file);
    cgl_lua_set_number(L, "line", memory.line);
    cgl_lua_set_number(L, "at", (double)(memory.address - lowest));
    cgl_lua_set_number(L, "bytes", (double)memory.bytes);
    cgl_lua_set_boolean(L, "temporary", memory.temporary);
    lua_rawseti(L, -2, (int)++count);
  }
}


/* g:plan() returns {order =, nodes =, edges =, width =, longest =, bytes_asked
   =, bytes =, bytes_least =, memory =, barriers =}. */
static int graph_plan(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:plan");
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  cgl_plan plan;
  cgl_lua_done(L, S, cgl_graph_plan(graph, &plan));
  lua_createtable(L, 0, 10);
  cgl_lua_set_text(L, "order", plan.order == CGL_ORDER_DATA ? "data" : "issue");
  cgl_lua_set_number(L, "nodes", (double)plan.nodes);
  cgl_lua_set_number(L, "edges", (double)plan.edges);
  cgl_lua_set_number(L, "width", (double)plan.width);
  cgl_lua_set_number(L, "longest", (double)plan.longest);
  cgl_lua_set_number(L, "bytes_asked", (double)plan.bytes_asked);
  cgl_lua_set_number(L, "bytes", (double)plan.bytes);
  cgl_lua_set_number(L, "bytes_least", (double)plan.bytes_least);
  memory_push(L, S, graph);
  lua_setfield(L, -2, "memory");
  barriers_push(L, S, graph, plan.nodes);
  lua_setfield(L, -2, "barriers");
  return 1;
}


/* ---- annotations ---- */

static const char *annotation_text(lua_State *L, cgl_lua *S, int index) {
  return cgl_lua_read_string(L, S, index, "an annotation", NULL);
}


/* Reads the key and the value on top; the text is borrowed from there. */
static cgl_annotation annotation_read(lua_State *L, cgl_lua *S) {
  if (lua_type(L, -2) != LUA_TSTRING)
    cgl_lua_bad(L, S, 0, "the names of annotations must be strings, got %s",
                luaL_typename(L, -2));
  const char *key = annotation_text(L, S, -2);
  switch (lua_type(L, -1)) {
  case LUA_TSTRING:
    return (cgl_annotation){key, CGL_ANNOTATION_TEXT, annotation_text(L, S, -1),
                            0};
  case LUA_TBOOLEAN:
    return (cgl_annotation){key, CGL_ANNOTATION_BOOLEAN, NULL,
                            lua_toboolean(L, -1)};
  default:
    if (lua_type(L, -1) != LUA_TNUMBER)
      cgl_lua_bad(L, S, 0,
                  "annotation '%s' must be a string, a number or a boolean, "
                  "got %s",
                  key, luaL_typename(L, -1));
    return (cgl_annotation){key, CGL_ANNOTATION_NUMBER, NULL,
                            lua_tonumber(L, -1)};
  }
}


/* Reads a label, or a table of annotations; returns their number. */
static size_t annotations_read(lua_State *L, cgl_lua *S, int index,
                               cgl_annotation *pairs) {
  if (lua_type(L, index) == LUA_TSTRING) {
    pairs[0] = (cgl_annotation){"label", CGL_ANNOTATION_TEXT,
                                annotation_text(L, S, index), 0};
    return 1;
  }
  if (!lua_istable(L, index))
    cgl_lua_bad(L, S, index,
                "a label or a table of annotations expected, got %s",
                luaL_typename(L, index));
  size_t n = 0;
  S->blame = index;
  for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
    if (n == MAX_ANNOTATIONS)
      cgl_lua_bad(L, S, index, "more than %d annotations", MAX_ANNOTATIONS);
    pairs[n++] = annotation_read(L, S);
  }
  S->blame = 0;
  return n;
}


/* Begins a scope with the annotations at `index`; 0 without a graph.  Out of
   line: what is called in the scope may annotate as well, and the list would
   stay on the C stack. */
static __attribute__((noinline)) uint64_t
annotations_begin(lua_State *L, cgl_lua *S, cgl_graph *graph, int index) {
  cgl_annotation pairs[MAX_ANNOTATIONS];
  size_t n = annotations_read(L, S, index, pairs);
  uint64_t scope = 0;
  if (graph)
    cgl_lua_done(L, S, cgl_graph_annotate(graph, pairs, n, &scope));
  return scope;
}


/* Calls the function at `index` + 1 with the arguments after it, in a scope
   with the annotations at `index`; leaves its results above `index`. */
static int call_annotated(lua_State *L, cgl_lua *S, cgl_graph *graph,
                          int index) {
  cgl_lua_read_function(L, S, index + 1);
  /* The function may release the graph. */
  cgl_graph **held = cgl_lua_new_graph(L, S);
  lua_insert(L, index + 1);
  uint64_t scope = annotations_begin(L, S, graph, index);
  *held = graph ? cgl_graph_retain(graph) : NULL;
  int failed = cgl_lua_within(L, S, NULL, NULL, lua_gettop(L) - index - 2);
  if (graph)
    cgl_graph_annotate_end(graph, scope);
  cgl_graph_release(*held);
  *held = NULL;
  return failed ? lua_error(L) : lua_gettop(L) - index - 1;
}


/* g:annotate(label_or_table, fn, ...) returns the results of fn. */
static int graph_annotate(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:annotate");
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  return call_annotated(L, S, graph, 2);
}


/* cg.mark_kernels(label_or_table, fn, ...): the same for the graph that
   captures the current stream, if any. */
int cgl_lua_graph_mark_kernels(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "mark_kernels");
  cgl_graph *graph = S->stream ? cgl_stream_capturing_graph(S->stream) : NULL;
  return call_annotated(L, S, graph, 1);
}


static int graph_clear_annotations(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:clear_annotations");
  cgl_graph_clear_annotations(cgl_lua_check_graph(L, S, 1));
  return 0;
}


const luaL_Reg cgl_lua_graph_node_methods[] = {
    {"debug_dump", graph_debug_dump},
    {"enable_debug_mode", graph_enable_debug_mode},
    {"nodes", graph_nodes},
    {"plan", graph_plan},
    {"annotate", graph_annotate},
    {"clear_annotations", graph_clear_annotations},
    {NULL, NULL},
};
