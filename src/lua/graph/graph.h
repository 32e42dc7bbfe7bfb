/* cgraphlua.graph: what was issued into a capture, and its replay.
   Files, from the ground up: conditional.c, endings.c (destroy callbacks and
   retained values), hooks.c, desc.c (options), capture.c, nodes.c,
   set_params.c, file.c, graph.c (the type).  Each gives a list of methods,
   which graph.c joins. */
#ifndef CGL_LUA_GRAPH_H
#define CGL_LUA_GRAPH_H

#include "lua/values/values.h"

void cgl_lua_open_graph(lua_State *L, cgl_lua *S);
/* conditional.c: and the functions that make conditional nodes */
void cgl_lua_open_loop(lua_State *L, cgl_lua *S);

/* ---- endings.c ---- */

/* Before the capture of `graph` goes, whose userdata is at index 1: calls the
   destroy callbacks and drops the retained values.  While a capture is
   underway they are deferred, because their work would land in the capture:
   always when a userdata is `collected`, else when they have to wait for the
   device.  Never raises. */
void cgl_lua_graph_run_endings(lua_State *L, cgl_lua *S, const cgl_graph *graph,
                               bool collected);
/* Runs deferred endings, unless a capture is underway still. */
void cgl_lua_graph_run_deferred(lua_State *L, cgl_lua *S);
/* Adds the value at 2 as an ending of the graph at 1; `call`: a callback, else
   a value that is kept.  The boolean at 3 has it wait for the device.  Returns
   the ending's slot. */
int cgl_lua_graph_add_ending(lua_State *L, cgl_lua *S, bool call);
/* Removes the ending with number `slot` from the environment on top. */
bool cgl_lua_graph_remove_ending(lua_State *L, int slot);
/* Pushes the environment of the graph at index 1, its own from now on. */
void cgl_lua_graph_push_environment(lua_State *L);
/* The number of a hook or an ending, unique in the process. */
int cgl_lua_graph_next_slot(void);
void cgl_lua_graph_open_endings(lua_State *L, cgl_lua *S);

/* ---- hooks.c ---- */

/* A core call that may run hooks of the graph at index 1; on the C stack. */
typedef struct cgl_lua_graph_call {
  struct cgl_lua_graph_call *outer;
  lua_State *L;
  cgl_lua *S;
  cgl_graph *graph;
  cgl_stream *stream; /* current in the hooks; NULL: the current stream */
  int raised;         /* where the first hook's error value is, or 0 */
  int depth;          /* of such calls */
} cgl_lua_graph_call;

extern const luaL_Reg cgl_lua_graph_hook_methods[];
void cgl_lua_graph_open_hooks(lua_State *L, cgl_lua *S);
/* Bracket the core call; end raises what a hook raised, or else is
   cgl_lua_done. */
void cgl_lua_graph_call_begin(lua_State *L, cgl_lua *S,
                              cgl_lua_graph_call *call, cgl_graph *graph,
                              cgl_stream *stream);
void cgl_lua_graph_call_end(cgl_lua_graph_call *call, cgl_status status);

/* ---- desc.c ---- */

/* Names of the options that change how a capture goes. */
#define CGL_LUA_CAPTURE_OPTIONS                                        \
  "pool", "capture_error_mode", "check_input_liveness", "annotations", \
      "enable_annotations", "order", "width", "max_bytes"

extern const luaL_Reg cgl_lua_graph_desc_methods[];
/* Pushes a new graph with the options at `options`, and returns it. */
cgl_graph *cgl_lua_graph_push(lua_State *L, cgl_lua *S, int options);
/* Changes what the options at `options` name. */
void cgl_lua_graph_set_options(lua_State *L, cgl_lua *S, int options,
                               cgl_graph *graph);
/* g.pool = p and the like. */
int cgl_lua_graph_newindex(lua_State *L);
/* cg.defaults(options) */
int cgl_lua_graph_defaults(lua_State *L);
/* cg.graph(options) */
int cgl_lua_graph_new(lua_State *L);

/* ---- capture.c, nodes.c, set_params.c, params.c ---- */

extern const luaL_Reg cgl_lua_graph_capture_methods[];
extern const luaL_Reg cgl_lua_graph_node_methods[];
extern const luaL_Reg cgl_lua_graph_set_methods[];
extern const luaL_Reg cgl_lua_graph_param_methods[];
/* ---- file.c ---- */

extern const luaL_Reg cgl_lua_graph_file_methods[];
extern const luaL_Reg cgl_lua_graph_file_functions[];
extern const char *const cgl_lua_graph_file_fields[];
int cgl_lua_graph_file_field(lua_State *L, void *graph, const char *name);

/* cg.capture(fn [, options]) */
int cgl_lua_graph_new_capture(lua_State *L);
/* cg.mark_kernels(label_or_table, fn, ...) */
int cgl_lua_graph_mark_kernels(lua_State *L);

#endif
