/* The type: instantiation, replay, and what a graph knows of itself. */
#include "lua/graph/graph.h"

#include <stdio.h>

enum { REPLAYS_AT_ONCE = 4096 };


static int graph_is_capturing(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:is_capturing");
  lua_pushboolean(L, cgl_graph_is_capturing(cgl_lua_check_graph(L, S, 1)));
  return 1;
}


static int graph_instantiate(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:instantiate");
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  cgl_lua_graph_call call;
  cgl_lua_graph_call_begin(L, S, &call, graph, NULL);
  cgl_status status = cgl_graph_instantiate(graph);
  if (cgl_lua_collected(L, S, status))
    status = cgl_graph_instantiate(graph);
  cgl_lua_graph_call_end(&call, status);
  return 0;
}


/* Replays with the graph's hooks, or on a stream of its device; out of line, so
   that the usual replay has a small frame. */
static __attribute__((noinline)) void graph_replay_own(lua_State *L, cgl_lua *S,
                                                       cgl_graph *graph,
                                                       bool hooked,
                                                       uint64_t count) {
  cgl_stream *stream = cgl_lua_stream_on(L, S, cgl_graph_context(graph));
  if (!hooked) {
    cgl_lua_done(L, S, cgl_graph_replay(graph, stream, count));
    return;
  }
  cgl_lua_graph_call call;
  cgl_lua_graph_call_begin(L, S, &call, graph, NULL);
  cgl_lua_graph_call_end(&call, cgl_graph_replay(graph, stream, count));
}


/* Replays on the stream; when it is of another device, on a stream of the
   graph's device. */
static inline void graph_replay_on(lua_State *L, cgl_lua *S,
                                   const cgl_lua_box *box, cgl_stream *stream,
                                   uint64_t count) {
  cgl_graph *graph = box->object;
  const bool hooked = box->hooked;
  cgl_status status =
      hooked ? CGL_ERROR_WRONG_DEVICE : cgl_graph_replay(graph, stream, count);
  if (status == CGL_ERROR_WRONG_DEVICE)
    graph_replay_own(L, S, graph, hooked, count);
  else
    cgl_lua_done(L, S, status);
}


/* Nodes of child graphs would have to be counted in their turn. */
static void replay_check_limits(lua_State *L, cgl_lua *S) {
  if (S->limits->capturing)
    cgl_lua_limits_refuse(L, S, "a graph cannot be replayed into a capture");
  cgl_lua_limits_issue(L, S);
}


/* g:replay([n]).  The line is looked up only for a replay into a capture, which
   becomes a node.  A long loop runs debug hooks now and then, so that they can
   stop it. */
static int graph_replay(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:replay");
  const cgl_lua_box *box = cgl_lua_box_of(L, 1, CGL_LUA_graph);
  if (!box || !box->object)
    cgl_lua_check_graph(L, S, 1); /* raises */
  uint64_t left = 1;
  if (lua_gettop(L) > 1 && !lua_isnil(L, 2))
    left = (uint64_t)cgl_lua_read_integer(L, S, 2, "the number of replays", 0,
                                          CGL_LUA_MAX_WHOLE);
  cgl_stream *stream = cgl_lua_stream(L, S);
  if (cgl_stream_capturing_graph(stream))
    cgl_lua_site(L, S);
  else
    cgl_set_site(NULL, 0);
  if (S->limits)
    replay_check_limits(L, S);
  const uint64_t at_once = S->limits ? 1 : REPLAYS_AT_ONCE;
  while (left > at_once) {
    graph_replay_on(L, S, box, stream, at_once);
    left -= at_once;
    if (S->limits)
      cgl_lua_limits_issue(L, S);
    cgl_lua_run_debug_hook(L, S);
    cgl_lua_check_graph(L, S, 1); /* a hook may have done anything */
    stream = cgl_lua_stream(L, S);
  }
  graph_replay_on(L, S, box, stream, left);
  return 0;
}


static int graph_reset(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:reset");
  cgl_lua_graph_run_endings(L, S, cgl_lua_check_graph(L, S, 1), false);
  cgl_lua_box *box = cgl_lua_box_at(L, 1);
  if (box->charge)
    cgl_lua_limits_discharge(S, box);
  cgl_lua_done(L, S, cgl_graph_reset(cgl_lua_check_graph(L, S, 1)));
  cgl_lua_graph_run_deferred(L, S);
  return 0;
}


/* g:register_generator_state(gen) */
static int graph_register_generator_state(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:register_generator_state");
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  cgl_generator *generator = cgl_lua_check_generator(L, S, 2);
  cgl_lua_done(L, S, cgl_graph_register_generator_state(graph, generator));
  return 0;
}


static int graph_pool(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:pool");
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  cgl_pool **slot = cgl_lua_new_pool(L, S);
  cgl_lua_done(L, S, cgl_graph_pool(graph, slot));
  return 1;
}


/* g:pools(), its own first */
static int graph_pools(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:pools");
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  lua_settop(L, 1);
  lua_newtable(L);
  for (int i = 0;; i++) {
    cgl_pool **slot = cgl_lua_new_pool(L, S);
    cgl_lua_done(L, S, cgl_graph_pool_at(graph, (size_t)i, slot));
    if (!*slot)
      break;
    lua_rawseti(L, 2, i + 1);
  }
  lua_settop(L, 2);
  return 1;
}


static int graph_raw_cuda_graph(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:raw_cuda_graph");
  void *handle = NULL;
  cgl_lua_done(L, S,
               cgl_graph_raw_graph(cgl_lua_check_graph(L, S, 1), &handle));
  lua_pushlightuserdata(L, handle);
  return 1;
}


static int graph_raw_cuda_graph_exec(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:raw_cuda_graph_exec");
  void *handle = NULL;
  cgl_lua_done(L, S, cgl_graph_raw_exec(cgl_lua_check_graph(L, S, 1), &handle));
  lua_pushlightuserdata(L, handle);
  return 1;
}


/* g:writes(buffer) */
static int graph_writes(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:writes");
  bool writes = false;
  cgl_lua_done(L, S,
               cgl_graph_writes(cgl_lua_check_graph(L, S, 1),
                                cgl_lua_check_buffer(L, S, 2), &writes));
  lua_pushboolean(L, writes);
  return 1;
}


static void graph_retire(lua_State *L, cgl_lua *S, void *graph) {
  cgl_lua_graph_run_endings(L, S, graph, false);
}


static void graph_collect(lua_State *L, cgl_lua *S, void *graph) {
  cgl_lua_graph_run_endings(L, S, graph, true);
}


static int graph_release(lua_State *L) {
  return cgl_lua_release(L, CGL_LUA_graph, "graph:release", graph_retire);
}


static void graph_describe(void *object, char *text, size_t room) {
  cgl_graph *graph = object;
  size_t n = 0;
  if (cgl_graph_is_capturing(graph))
    snprintf(text, room, "%p (capturing)", object);
  else if (cgl_graph_node_count(graph, &n))
    snprintf(text, room, "%p (nothing captured)", object);
  else
    snprintf(text, room, "%p (%zu nodes)", object, n);
}


void cgl_lua_open_graph(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"is_capturing", graph_is_capturing},
      {"instantiate", graph_instantiate},
      {"replay", graph_replay},
      {"reset", graph_reset},
      {"register_generator_state", graph_register_generator_state},
      {"pool", graph_pool},
      {"pools", graph_pools},
      {"raw_cuda_graph", graph_raw_cuda_graph},
      {"raw_cuda_graph_exec", graph_raw_cuda_graph_exec},
      {"writes", graph_writes},
      {NULL, NULL},
  };
  static const luaL_Reg functions[] = {
      {"graph", cgl_lua_graph_new},
      {"capture", cgl_lua_graph_new_capture},
      {"defaults", cgl_lua_graph_defaults},
      {"mark_kernels", cgl_lua_graph_mark_kernels},
      {NULL, NULL},
  };
  static const luaL_Reg metamethods[] = {{"__newindex", cgl_lua_graph_newindex},
                                         {NULL, NULL}};
  static const cgl_lua_type type = {.kind = CGL_LUA_graph,
                                    .release = graph_release,
                                    .methods = methods,
                                    .metamethods = metamethods,
                                    .functions = functions,
                                    .fields = cgl_lua_graph_file_fields,
                                    .field = cgl_lua_graph_file_field,
                                    .describe = graph_describe,
                                    .calls = "graph:replay() launches it",
                                    .collect = graph_collect};
  static const luaL_Reg *const more[] = {
      cgl_lua_graph_desc_methods, cgl_lua_graph_capture_methods,
      cgl_lua_graph_hook_methods, cgl_lua_graph_node_methods,
      cgl_lua_graph_set_methods,  cgl_lua_graph_param_methods,
      cgl_lua_graph_file_methods};
  cgl_lua_graph_open_endings(L, S);
  cgl_lua_graph_open_hooks(L, S);
  cgl_lua_register(L, S, &type);
  cgl_lua_functions(L, cgl_lua_graph_file_functions);
  for (size_t i = 0; i < sizeof more / sizeof *more; i++)
    cgl_lua_methods(L, S, CGL_LUA_graph, more[i]);
}
