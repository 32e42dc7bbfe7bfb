/* Annotations: what the script says about the nodes that it captures. */
#include "lua/graph/graph.h"

#include <string.h>

enum { MAX_ANNOTATIONS = 32 };


/* A text of an annotation, borrowed from the stack. */
static const char *annotation_text(lua_State *L, cgl_lua *S, int index,
                                   int argument) {
  size_t length;
  const char *text = lua_tolstring(L, index, &length);
  if (strlen(text) != length)
    cgl_lua_bad(L, S, argument, "an annotation has a zero byte at %d",
                (int)strlen(text) + 1);
  return text;
}


/* Reads a label, or a table of annotations, whose texts are borrowed from
   there. */
static size_t annotations_read(lua_State *L, cgl_lua *S, int index,
                               cgl_annotation *pairs) {
  if (lua_type(L, index) == LUA_TSTRING) {
    pairs[0] = (cgl_annotation){"label", CGL_ANNOTATION_TEXT,
                                annotation_text(L, S, index, index), 0};
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
    *pair = (cgl_annotation){annotation_text(L, S, -2, index),
                             CGL_ANNOTATION_NUMBER, NULL, 0};
    int type = lua_type(L, -1);
    if (type == LUA_TSTRING) {
      pair->kind = CGL_ANNOTATION_TEXT;
      pair->text = annotation_text(L, S, -1, index);
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
static int call_annotated(lua_State *L, cgl_lua *S, cgl_graph *graph,
                          int index) {
  cgl_annotation pairs[MAX_ANNOTATIONS];
  size_t n = annotations_read(L, S, index, pairs);
  cgl_lua_read_function(L, S, index + 1);
  /* The function may release the graph. */
  cgl_graph **held = cgl_lua_new_graph(L, S);
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
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  return call_annotated(L, S, graph, 2);
}


/* cg.mark_kernels(label_or_table, fn, ...): the same for the graph that
   captures the current stream, if one does. */
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


const luaL_Reg cgl_lua_graph_annotate_methods[] = {
    {"annotate", graph_annotate},
    {"clear_annotations", graph_clear_annotations},
    {NULL, NULL},
};
