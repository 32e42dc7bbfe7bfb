/* Captures: begin and end, and a function as the body of a capture.
   The body's form (g:capture, cg.capture) lives here and not in Lua so that a
   coroutine cannot leave it half way: a yield out of the body is an error that
   ends the capture like any other. */
#include "lua/graph/graph.h"

/* Mark of a graph's userdata: capture_begin took the current stream, and
   capture_end wants the same. */
enum { BEGAN_ON_CURRENT = 1 };


/* Begins a capture; *held (may be NULL) gets a reference, so that a hook may
   release the graph. */
static void capture_start(lua_State *L, cgl_lua *S, cgl_graph *graph,
                          cgl_stream *stream, cgl_graph **held) {
  cgl_lua_graph_call call;
  cgl_lua_graph_call_begin(L, S, &call, graph, stream);
  cgl_status status = cgl_graph_capture_begin(graph, stream);
  if (!status && held)
    *held = cgl_graph_retain(graph);
  cgl_lua_graph_call_end(&call, status);
}


/* g:capture_begin{pool=, capture_error_mode=, stream=} */
static int graph_capture_begin(lua_State *L) {
  static const char *const known[] = {CGL_LUA_CAPTURE_OPTIONS, "stream", NULL};
  cgl_lua *S = cgl_lua_issue(L, "graph:capture_begin");
  lua_settop(L, 2);
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  cgl_lua_options(L, S, 2, known);
  cgl_stream *stream = cgl_lua_option_object(L, S, 2, "stream", CGL_LUA_stream);
  uint8_t mark = stream ? 0 : BEGAN_ON_CURRENT;
  if (!stream)
    stream = cgl_lua_stream(L, S);
  cgl_lua_graph_set_options(L, S, 2, graph);
  capture_start(L, S, graph, stream, NULL);
  cgl_lua_box_at(L, 1)->mark = mark;
  return 0;
}


/* Where the script or --plan asked for it, prints the plan of the graph at
   index 1, whose capture has ended. */
static void plan_show(lua_State *L, const cgl_lua *S) {
  if (!S->plans)
    return;
  luaL_checkstack(L, 3, NULL);
  lua_getglobal(L, "require");
  lua_pushliteral(L, "cgraphlua.plan");
  lua_call(L, 1, 1);
  lua_pushvalue(L, 1);
  lua_call(L, 1, 0);
}


static int graph_capture_end(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:capture_end");
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  cgl_stream *origin = cgl_graph_capturing_stream(graph);
  cgl_stream *current = cgl_lua_stream(L, S);
  if (origin && cgl_lua_box_at(L, 1)->mark == BEGAN_ON_CURRENT &&
      !cgl_stream_is_same(origin, current))
    cgl_lua_raise(L, S, CGL_ERROR_CAPTURE_STATE,
                  "end it with the stream current that was so at the begin, or "
                  "name the stream at capture_begin{stream=}",
                  "a capture must end on the same stream that it began on");
  cgl_lua_graph_call call;
  cgl_lua_graph_call_begin(L, S, &call, graph, NULL);
  cgl_lua_graph_call_end(&call, cgl_graph_capture_end(graph));
  cgl_lua_graph_run_deferred(L, S);
  cgl_lua_collect_after(L, S);
  plan_show(L, S);
  return 0;
}


/* After the body raised the error on top: ends the capture and raises it
   again. */
static int capture_fail(lua_State *L, cgl_lua *S, cgl_graph *graph) {
  cgl_lua_site(L, S);
  cgl_clear_error();
  if (cgl_graph_capture_abandon(graph))
    cgl_lua_also(L, S);
  cgl_lua_graph_run_deferred(L, S);
  return lua_error(L);
}


/* After the body returned, which may have released the graph at index 1. */
static void capture_finish(lua_State *L, cgl_lua *S, cgl_graph *graph) {
  cgl_lua_site(L, S);
  if (!cgl_lua_box_at(L, 1)->object) {
    cgl_graph_capture_abandon(graph);
    cgl_lua_raise(L, S, CGL_ERROR_RELEASED, "keep the graph",
                  "the graph was released in its own capture");
  }
  cgl_lua_graph_call call;
  cgl_lua_graph_call_begin(L, S, &call, graph, NULL);
  cgl_status status = cgl_graph_capture_end(graph);
  if (status) /* refused, and still capturing */
    cgl_graph_capture_abandon(graph);
  cgl_lua_graph_call_end(&call, status);
}


/* Checks the options at `index`; collects garbage when they ask for it, before
   anything is borrowed, because finalizers of the script may release it. */
static void options_read(lua_State *L, cgl_lua *S, int index,
                         const char *const *known) {
  cgl_lua_options(L, S, index, known);
  cgl_lua_option_object(L, S, index, "stream", CGL_LUA_stream);
  cgl_lua_option_boolean(L, S, index, "trim", false);
  if (cgl_lua_option_boolean(L, S, index, "collect", false))
    cgl_lua_collect(L, S);
}


/* Waits for what was issued before.  A capture of another thread may forbid
   that; the body runs all the same. */
static void device_wait(lua_State *L, cgl_lua *S, cgl_context *context,
                        bool trim) {
  cgl_status status = cgl_context_synchronize(context);
  if (!status && trim)
    status = cgl_pool_trim(cgl_context_pool(context), NULL);
  if (status != CGL_LUA_CAPTURE_UNDERWAY)
    cgl_lua_done(L, S, status);
}


/* Runs the function at index 2 as the body of a capture into the graph at
   index 1, on the stream that the options at 3 name or else on `stream`;
   replaces the stack above the graph with the results. */
static void capture_run(lua_State *L, cgl_lua *S, cgl_stream *stream) {
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  cgl_stream *given = cgl_lua_option_object(L, S, 3, "stream", CGL_LUA_stream);
  stream = given ? given : stream;
  cgl_stream *current = cgl_lua_stream(L, S);
  if (cgl_stream_capturing_graph(current) &&
      cgl_stream_context(current) == cgl_stream_context(stream))
    cgl_lua_raise(L, S, CGL_ERROR_CAPTURE_STATE,
                  "end the first capture before the next begins; to put a "
                  "graph into a capture, replay it there",
                  "a capture inside a capture: the current stream is already "
                  "being captured");
  bool trim = cgl_lua_option_boolean(L, S, 3, "trim", false);
  if (S->limits) /* nobody else's work */
    cgl_lua_wait_streams(L, S);
  else
    device_wait(L, S, cgl_stream_context(stream), trim);
  /* Keeps the graph while the body may release it. */
  cgl_graph **held = cgl_lua_new_graph(L, S);
  lua_insert(L, 2); /* 1: the graph, 2: held, 3: fn, 4: options, its stream */
  capture_start(L, S, graph, stream, held);
  lua_settop(L, 3);
  cgl_lua_limits_capture_begin(S, cgl_lua_box_at(L, 1));
  const int failed = cgl_lua_within(L, S, stream, NULL, 0);
  cgl_lua_limits_capture_leave(S);
  if (failed)
    capture_fail(L, S, graph);
  capture_finish(L, S, graph);
  cgl_lua_graph_run_deferred(L, S);
  cgl_lua_collect_after(L, S);
  *held = NULL;
  cgl_graph_release(graph);
  lua_remove(L, 2);
  cgl_lua_limits_capture_end(L, S, cgl_lua_box_at(L, 1));
  plan_show(L, S);
}


/* g:capture(fn [, {pool=, capture_error_mode=, stream=, collect=, trim=}])
   returns g and the results of fn.  On the current stream, or on a side stream
   of the graph's device when the current stream is a default stream or of
   another device. */
static int graph_capture(lua_State *L) {
  static const char *const known[] = {CGL_LUA_CAPTURE_OPTIONS, "stream",
                                      "collect", "trim", NULL};
  cgl_lua *S = cgl_lua_issue(L, "graph:capture");
  lua_settop(L, 3);
  cgl_lua_check_graph(L, S, 1);
  cgl_lua_read_function(L, S, 2);
  options_read(L, S, 3, known);
  cgl_graph *graph = cgl_lua_check_graph(L, S, 1);
  cgl_lua_graph_set_options(L, S, 3, graph);
  cgl_context *context = cgl_graph_context(graph);
  cgl_stream *stream = cgl_lua_stream_on(L, S, context);
  if (cgl_stream_is_default(stream))
    stream = cgl_lua_side_stream(L, S, context);
  capture_run(L, S, stream);
  return lua_gettop(L);
}


/* cg.capture(fn [, opts]) with the options of cg.graph and of g:capture */
int cgl_lua_graph_new_capture(lua_State *L) {
  static const char *const known[] = {"keep_graph",
                                      "unchecked",
                                      "unroll",
                                      "programmatic",
                                      CGL_LUA_CAPTURE_OPTIONS,
                                      "stream",
                                      "collect",
                                      "trim",
                                      NULL};
  cgl_lua *S = cgl_lua_issue(L, "capture");
  lua_settop(L, 2);
  cgl_lua_read_function(L, S, 1);
  options_read(L, S, 2, known);
  cgl_lua_graph_push(L, S, 2); /* 1: fn, 2: opts, 3: graph */
  lua_insert(L, 1);            /* 1: graph, 2: fn, 3: opts */
  capture_run(L, S, cgl_lua_side_stream(L, S, cgl_lua_context(L, S)));
  return lua_gettop(L);
}


const luaL_Reg cgl_lua_graph_capture_methods[] = {
    {"capture_begin", graph_capture_begin},
    {"capture_end", graph_capture_end},
    {"capture", graph_capture},
    {NULL, NULL},
};
