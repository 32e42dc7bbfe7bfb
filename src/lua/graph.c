/* cgraphlua.graph: what was issued into a capture, and its replay.
   The region form (g:capture, cg.capture) lives here and not in Lua so that
   a coroutine cannot leave it half way: a yield out of the body is an error
   that ends the capture like any other. */
#include "lua/binding.h"

#include <stdio.h>

enum {
  BEGAN_ON_CURRENT = 1, /* mark of a graph: capture_begin took the current
                           stream, and capture_end wants the same */
  REPLAYS_AT_ONCE = 4096
};

/* Names of the options that change how a capture goes. */
#define CAPTURE_OPTIONS                                                \
  "pool", "capture_error_mode", "check_input_liveness", "annotations", \
      "enable_annotations"

/* All that a graph has, in an order that `field` knows. */
static const char *const graph_fields[] = {"keep_graph", CAPTURE_OPTIONS,
                                           "unchecked", NULL};
typedef enum field {
  FIELD_KEEP_GRAPH,
  FIELD_POOL,
  FIELD_CAPTURE_ERROR_MODE,
  FIELD_CHECK_INPUT_LIVENESS,
  FIELD_ANNOTATIONS,
  FIELD_ENABLE_ANNOTATIONS,
  FIELD_UNCHECKED
} field;

static const char *const mode_names[] = {"default", "global", "thread_local",
                                         "relaxed", NULL};


static cgl_graph *check(lua_State *L, cgl_lua *S, int index) {
  return cgl_lua_check(L, S, index, CGL_LUA_graph);
}


/* false, true or "nvtx". */
static cgl_annotations annotations_at(lua_State *L, cgl_lua *S, int index) {
  static const char *const names[] = {"nvtx", NULL};
  if (lua_type(L, index) != LUA_TSTRING)
    return cgl_lua_boolean(L, S, index, "annotations", false)
               ? CGL_ANNOTATIONS_ON
               : CGL_ANNOTATIONS_OFF;
  cgl_lua_choice(L, S, index, "annotations", names);
  return CGL_ANNOTATIONS_NVTX;
}


static void push_annotations(lua_State *L, cgl_annotations annotations) {
  if (annotations == CGL_ANNOTATIONS_NVTX)
    lua_pushliteral(L, "nvtx");
  else
    lua_pushboolean(L, annotations == CGL_ANNOTATIONS_ON);
}


/* torch's name of the option, and ours; true when one is there. */
static bool read_annotations(lua_State *L, cgl_lua *S, int options,
                             cgl_graph_desc *desc) {
  static const char *const names[] = {"enable_annotations", "annotations"};
  bool there = false;
  for (int i = 0; i < 2; i++) {
    if (!cgl_lua_option(L, options, names[i]))
      continue;
    S->blame = options;
    desc->annotations = annotations_at(L, S, lua_gettop(L));
    S->blame = 0;
    lua_pop(L, 1);
    there = true;
  }
  return there;
}


/* Reads the options that change how a capture goes; true when any is there. */
static bool read_capture(lua_State *L, cgl_lua *S, int options,
                         cgl_graph_desc *desc) {
  cgl_pool *pool = cgl_lua_option_object(L, S, options, "pool", CGL_LUA_pool);
  int mode = cgl_lua_option_choice(L, S, options, "capture_error_mode",
                                   mode_names, -1);
  if (pool)
    desc->pool = pool;
  if (mode >= 0)
    desc->capture_mode = (cgl_capture_mode)mode;
  bool check = cgl_lua_option_boolean(L, S, options, "check_input_liveness",
                                      desc->check_input_liveness);
  bool changed = pool || mode >= 0 || check != desc->check_input_liveness;
  changed |= read_annotations(L, S, options, desc);
  desc->check_input_liveness = check;
  return changed;
}


/* Pushes a new graph. */
static cgl_graph *make(lua_State *L, cgl_lua *S, int options) {
  cgl_graph_desc desc = {0};
  desc.pool = S->pool;
  desc.keep_graph = cgl_lua_option_boolean(L, S, options, "keep_graph", false);
  desc.unchecked = cgl_lua_option_boolean(L, S, options, "unchecked", false);
  read_capture(L, S, options, &desc);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_graph **slot = cgl_lua_new(L, S, CGL_LUA_graph);
  cgl_lua_try(L, S, cgl_graph_create(context, &desc, slot));
  return *slot;
}


/* cg.graph{keep_graph=, pool=, capture_error_mode=, unchecked=} */
static int new_graph(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph");
  lua_settop(L, 1);
  cgl_lua_options(L, S, 1, graph_fields);
  make(L, S, 1);
  return 1;
}


/* g:options([{keep_graph=, pool=, capture_error_mode=, unchecked=}]) changes
   those that are there, and returns all. */
static int graph_options(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:options");
  lua_settop(L, 2);
  cgl_graph *graph = check(L, S, 1);
  cgl_graph_desc desc;
  cgl_graph_get_desc(graph, &desc);
  if (cgl_lua_options(L, S, 2, graph_fields)) {
    read_capture(L, S, 2, &desc);
    desc.keep_graph =
        cgl_lua_option_boolean(L, S, 2, "keep_graph", desc.keep_graph);
    desc.unchecked =
        cgl_lua_option_boolean(L, S, 2, "unchecked", desc.unchecked);
    cgl_lua_done(L, S, cgl_graph_set_desc(graph, &desc));
  }
  lua_createtable(L, 0, 5);
  cgl_lua_set_boolean(L, "keep_graph", desc.keep_graph);
  cgl_lua_set_boolean(L, "unchecked", desc.unchecked);
  cgl_lua_set_text(L, "capture_error_mode", mode_names[desc.capture_mode]);
  cgl_lua_set_boolean(L, "check_input_liveness", desc.check_input_liveness);
  push_annotations(L, desc.annotations);
  lua_setfield(L, -2, "annotations");
  if (desc.pool) {
    cgl_pool **slot = cgl_lua_new(L, S, CGL_LUA_pool);
    *slot = cgl_pool_retain(desc.pool);
    lua_setfield(L, -2, "pool");
  }
  return 1;
}


/* g.pool = p, g.capture_error_mode = "...", g.keep_graph = true: what options
   does, one at a time; nil is the default. */
static int graph_newindex(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:options");
  lua_settop(L, 3);
  cgl_graph *graph = check(L, S, 1);
  cgl_graph_desc desc;
  cgl_graph_get_desc(graph, &desc);
  bool none = lua_isnil(L, 3);
  switch ((field)cgl_lua_choice(L, S, 2, "the field", graph_fields)) {
  case FIELD_KEEP_GRAPH:
    desc.keep_graph = cgl_lua_boolean(L, S, 3, "keep_graph", false);
    break;
  case FIELD_UNCHECKED:
    desc.unchecked = cgl_lua_boolean(L, S, 3, "unchecked", false);
    break;
  case FIELD_POOL:
    desc.pool = none ? NULL : cgl_lua_check(L, S, 3, CGL_LUA_pool);
    break;
  case FIELD_CAPTURE_ERROR_MODE:
    desc.capture_mode = none ? CGL_CAPTURE_DEFAULT
                             : (cgl_capture_mode)cgl_lua_choice(
                                   L, S, 3, "capture_error_mode", mode_names);
    break;
  case FIELD_CHECK_INPUT_LIVENESS:
    desc.check_input_liveness =
        cgl_lua_boolean(L, S, 3, "check_input_liveness", false);
    break;
  case FIELD_ANNOTATIONS:
  case FIELD_ENABLE_ANNOTATIONS:
    desc.annotations = annotations_at(L, S, 3);
    break;
  }
  cgl_lua_done(L, S, cgl_graph_set_desc(graph, &desc));
  return 0;
}


static void apply_options(lua_State *L, cgl_lua *S, int options,
                          cgl_graph *graph) {
  cgl_graph_desc desc;
  cgl_graph_get_desc(graph, &desc);
  if (read_capture(L, S, options, &desc))
    cgl_lua_done(L, S, cgl_graph_set_desc(graph, &desc));
}


/* Begins a capture; *held (may be NULL) gets a reference, which a hook that
   releases the graph leaves. */
static void begin(lua_State *L, cgl_lua *S, cgl_graph *graph,
                  cgl_stream *stream, cgl_graph **held) {
  cgl_lua_call call;
  cgl_lua_call_begin(L, S, &call, graph, stream);
  cgl_status status = cgl_graph_capture_begin(graph, stream);
  if (!status && held)
    *held = cgl_graph_retain(graph);
  cgl_lua_call_end(&call, status);
}


/* g:capture_begin{pool=, capture_error_mode=, stream=} */
static int graph_capture_begin(lua_State *L) {
  static const char *const known[] = {CAPTURE_OPTIONS, "stream", NULL};
  cgl_lua *S = cgl_lua_issue(L, "graph:capture_begin");
  lua_settop(L, 2);
  cgl_graph *graph = check(L, S, 1);
  cgl_lua_options(L, S, 2, known);
  cgl_stream *stream = cgl_lua_option_object(L, S, 2, "stream", CGL_LUA_stream);
  uint8_t mark = stream ? 0 : BEGAN_ON_CURRENT;
  if (!stream)
    stream = cgl_lua_stream(L, S);
  apply_options(L, S, 2, graph);
  begin(L, S, graph, stream, NULL);
  cgl_lua_box_at(L, 1)->mark = mark;
  return 0;
}


static int graph_capture_end(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:capture_end");
  cgl_graph *graph = check(L, S, 1);
  cgl_stream *origin = cgl_graph_capturing_stream(graph);
  cgl_stream *current = cgl_lua_stream(L, S);
  if (origin && cgl_lua_box_at(L, 1)->mark == BEGAN_ON_CURRENT &&
      !cgl_stream_is_same(origin, current))
    cgl_lua_raise(L, S, CGL_ERROR_CAPTURE_STATE,
                  "end it with the stream current that was so at the begin, or "
                  "name the stream at capture_begin{stream=}",
                  "a capture must end on the same stream that it began on");
  cgl_lua_call call;
  cgl_lua_call_begin(L, S, &call, graph, NULL);
  cgl_lua_call_end(&call, cgl_graph_capture_end(graph));
  cgl_lua_settle(L, S);
  return 0;
}


/* The body raised what is on top: ends the capture and raises it on. */
static int abandon(lua_State *L, cgl_lua *S, cgl_graph *graph) {
  cgl_lua_site(L, S);
  cgl_clear_error();
  if (cgl_graph_capture_abandon(graph))
    cgl_lua_also(L, S);
  cgl_lua_settle(L, S);
  return lua_error(L);
}


/* The body returned; it may have released the graph at index 1. */
static void finish(lua_State *L, cgl_lua *S, cgl_graph *graph) {
  cgl_lua_site(L, S);
  if (!cgl_lua_box_at(L, 1)->object) {
    cgl_graph_capture_abandon(graph);
    cgl_lua_raise(L, S, CGL_ERROR_RELEASED, "keep the graph",
                  "the graph was released in its own capture");
  }
  cgl_lua_call call;
  cgl_lua_call_begin(L, S, &call, graph, NULL);
  cgl_status status = cgl_graph_capture_end(graph);
  if (status) /* refused, and still capturing */
    cgl_graph_capture_abandon(graph);
  cgl_lua_call_end(&call, status);
}


/* Checks the options at `index`, where the script has them; collects when they
   say so, before anything is borrowed: finalizers of the script may do what
   they like. */
static void read_region(lua_State *L, cgl_lua *S, int index,
                        const char *const *known) {
  cgl_lua_options(L, S, index, known);
  cgl_lua_option_object(L, S, index, "stream", CGL_LUA_stream);
  cgl_lua_option_boolean(L, S, index, "trim", false);
  if (cgl_lua_option_boolean(L, S, index, "collect", false))
    cgl_lua_collect(L, S);
}


/* What was issued before is done when the body runs; but for a capture of
   another thread, which is no reason to refuse this one. */
static void settle(lua_State *L, cgl_lua *S, cgl_context *context, bool trim) {
  cgl_status status = cgl_context_synchronize(context);
  if (!status && trim)
    status = cgl_pool_trim(cgl_context_pool(context), NULL);
  if (status != CGL_LUA_CAPTURE_UNDERWAY)
    cgl_lua_done(L, S, status);
}


/* Runs the function at index 2 as the body of a capture into the graph at
   index 1, on the stream that the options at 3 name or else on `stream`;
   replaces the stack above the graph with what it returned. */
static void capture(lua_State *L, cgl_lua *S, cgl_stream *stream) {
  cgl_graph *graph = check(L, S, 1);
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
  settle(L, S, cgl_stream_context(stream), trim);
  /* The body may release the graph and drop what held it. */
  cgl_graph **held = cgl_lua_new(L, S, CGL_LUA_graph);
  lua_insert(L, 2); /* 1: the graph, 2: held, 3: fn, 4: options, its stream */
  begin(L, S, graph, stream, held);
  lua_settop(L, 3);
  if (cgl_lua_within(L, S, stream, NULL, 0))
    abandon(L, S, graph);
  finish(L, S, graph);
  *held = NULL;
  cgl_graph_release(graph);
  lua_remove(L, 2);
  cgl_lua_settle(L, S);
}


/* g:capture(fn [, {pool=, capture_error_mode=, stream=, collect=, trim=}])
   returns g and what fn returned.  On the current stream, or on a side stream
   when that is a default stream or another device's. */
static int graph_capture(lua_State *L) {
  static const char *const known[] = {CAPTURE_OPTIONS, "stream", "collect",
                                      "trim", NULL};
  cgl_lua *S = cgl_lua_issue(L, "graph:capture");
  lua_settop(L, 3);
  check(L, S, 1);
  cgl_lua_function(L, S, 2);
  read_region(L, S, 3, known);
  cgl_graph *graph = check(L, S, 1);
  apply_options(L, S, 3, graph);
  cgl_context *context = cgl_graph_context(graph);
  cgl_stream *stream = cgl_lua_stream_of(L, S, context);
  if (cgl_stream_is_default(stream))
    stream = cgl_lua_side_stream(L, S, context);
  capture(L, S, stream);
  return lua_gettop(L);
}


/* cg.capture(fn [, opts]) with the options of cg.graph and of the above */
static int new_capture(lua_State *L) {
  static const char *const known[] = {
      "keep_graph", "unchecked", CAPTURE_OPTIONS, "stream", "collect",
      "trim",       NULL};
  cgl_lua *S = cgl_lua_issue(L, "capture");
  lua_settop(L, 2);
  cgl_lua_function(L, S, 1);
  read_region(L, S, 2, known);
  make(L, S, 2);    /* 1: fn, 2: opts, 3: graph */
  lua_insert(L, 1); /* 1: graph, 2: fn, 3: opts */
  capture(L, S, cgl_lua_side_stream(L, S, cgl_lua_context(L, S)));
  return lua_gettop(L);
}


static int graph_is_capturing(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:is_capturing");
  lua_pushboolean(L, cgl_graph_is_capturing(check(L, S, 1)));
  return 1;
}


static int graph_instantiate(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:instantiate");
  cgl_graph *graph = check(L, S, 1);
  cgl_lua_call call;
  cgl_lua_call_begin(L, S, &call, graph, NULL);
  cgl_status status = cgl_graph_instantiate(graph);
  if (cgl_lua_collected(L, S, status))
    status = cgl_graph_instantiate(graph);
  cgl_lua_call_end(&call, status);
  return 0;
}


/* On the stream, or when it is another device's, on the graph's own. */
static inline void replay(lua_State *L, cgl_lua *S, const cgl_lua_box *box,
                          cgl_stream *stream, uint64_t count) {
  cgl_graph *graph = box->object;
  const bool hooked = box->hooked;
  cgl_status status =
      hooked ? CGL_ERROR_WRONG_DEVICE : cgl_graph_replay(graph, stream, count);
  if (status == CGL_ERROR_WRONG_DEVICE) {
    stream = cgl_lua_stream_of(L, S, cgl_graph_context(graph));
    if (hooked) {
      cgl_lua_call call;
      cgl_lua_call_begin(L, S, &call, graph, NULL);
      cgl_lua_call_end(&call, cgl_graph_replay(graph, stream, count));
      return;
    }
    status = cgl_graph_replay(graph, stream, count);
  }
  cgl_lua_done(L, S, status);
}


/* g:replay([n]).  The line is looked up only where it can matter: a replay
   into a capture becomes a node.  A long loop looks up now and then, so that
   whoever stops scripts through a hook stops it too. */
static int graph_replay(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:replay");
  const cgl_lua_box *box = cgl_lua_box_at(L, 1);
  if (!box || box->tag != &cgl_lua_tags[CGL_LUA_graph] || !box->object)
    check(L, S, 1); /* raises */
  uint64_t left = 1;
  if (lua_gettop(L) > 1 && !lua_isnil(L, 2))
    left = (uint64_t)cgl_lua_integer(L, S, 2, "the number of replays", 0,
                                     CGL_LUA_MAX_WHOLE);
  cgl_stream *stream = cgl_lua_stream(L, S);
  if (cgl_stream_capturing_graph(stream))
    cgl_lua_site(L, S);
  else
    cgl_set_site(NULL, 0);
  while (left > REPLAYS_AT_ONCE) {
    replay(L, S, box, stream, REPLAYS_AT_ONCE);
    left -= REPLAYS_AT_ONCE;
    cgl_lua_breathe(L, S);
    check(L, S, 1); /* a hook may have done anything */
    stream = cgl_lua_stream(L, S);
  }
  replay(L, S, box, stream, left);
  return 0;
}


static int graph_reset(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:reset");
  cgl_lua_bury(L, S, check(L, S, 1), false);
  cgl_lua_done(L, S, cgl_graph_reset(check(L, S, 1)));
  cgl_lua_settle(L, S);
  return 0;
}


static int graph_pool(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:pool");
  cgl_graph *graph = check(L, S, 1);
  cgl_pool **slot = cgl_lua_new(L, S, CGL_LUA_pool);
  cgl_lua_done(L, S, cgl_graph_pool(graph, slot));
  return 1;
}


/* g:pools(), its own first */
static int graph_pools(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:pools");
  cgl_graph *graph = check(L, S, 1);
  lua_newtable(L);
  for (int i = 0;; i++) {
    cgl_pool **slot = cgl_lua_new(L, S, CGL_LUA_pool);
    cgl_lua_done(L, S, cgl_graph_pool_at(graph, (size_t)i, slot));
    if (!*slot)
      break;
    lua_rawseti(L, 2, i + 1);
  }
  lua_settop(L, 2);
  return 1;
}


static int graph_raw_graph(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:raw_cuda_graph");
  void *handle = NULL;
  cgl_lua_done(L, S, cgl_graph_raw_graph(check(L, S, 1), &handle));
  lua_pushlightuserdata(L, handle);
  return 1;
}


static int graph_raw_exec(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:raw_cuda_graph_exec");
  void *handle = NULL;
  cgl_lua_done(L, S, cgl_graph_raw_exec(check(L, S, 1), &handle));
  lua_pushlightuserdata(L, handle);
  return 1;
}


/* g:writes(buffer) */
static int graph_writes(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:writes");
  bool writes = false;
  cgl_lua_done(L, S,
               cgl_graph_writes(check(L, S, 1),
                                cgl_lua_check(L, S, 2, CGL_LUA_buffer),
                                &writes));
  lua_pushboolean(L, writes);
  return 1;
}


static void describe(void *object, char *text, size_t room) {
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
      {"capture_begin", graph_capture_begin},
      {"capture_end", graph_capture_end},
      {"capture", graph_capture},
      {"is_capturing", graph_is_capturing},
      {"instantiate", graph_instantiate},
      {"replay", graph_replay},
      {"reset", graph_reset},
      {"register_generator_state", cgl_lua_graph_register_generator_state},
      {"pool", graph_pool},
      {"pools", graph_pools},
      {"options", graph_options},
      {"raw_cuda_graph", graph_raw_graph},
      {"raw_cuda_graph_exec", graph_raw_exec},
      {"writes", graph_writes},
      {NULL, NULL},
  };
  static const luaL_Reg functions[] = {
      {"graph", new_graph}, {"capture", new_capture}, {NULL, NULL}};
  static const luaL_Reg metamethods[] = {{"__newindex", graph_newindex},
                                         {NULL, NULL}};
  static const cgl_lua_type type = {
      .methods = methods, .metamethods = metamethods, .describe = describe};
  cgl_lua_register(L, S, CGL_LUA_graph, &type);
  cgl_lua_methods(L, S, CGL_LUA_graph, cgl_lua_hook_methods);
  cgl_lua_methods(L, S, CGL_LUA_graph, cgl_lua_inside_methods);
  cgl_lua_methods(L, S, CGL_LUA_graph, cgl_lua_change_methods);
  cgl_lua_functions(L, functions);
  cgl_lua_functions(L, cgl_lua_inside_functions);
}
