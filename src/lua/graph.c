/* cgraphlua.graph: what was issued into a capture, and its replay.
   The region form (g:capture, cg.capture) lives here and not in Lua so that
   a coroutine cannot leave it half way: a yield out of the body is an error
   that ends the capture like any other. */
#include "lua/binding.h"

#include <stdio.h>

enum {
  CAPTURE_UNDERWAY = 900, /* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED */
  REPLAYS_AT_ONCE = 4096
};

static const char *const mode_names[] = {"default", "global", "thread_local",
                                         "relaxed", NULL};


static cgl_graph *check(lua_State *L, cgl_lua *S, int index) {
  return cgl_lua_check(L, S, index, CGL_LUA_graph);
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
  return pool || mode >= 0;
}


/* Pushes a new graph. */
static cgl_graph *make(lua_State *L, cgl_lua *S, int options) {
  cgl_graph_desc desc = {0};
  desc.pool = S->pool;
  desc.keep_graph = cgl_lua_option_boolean(L, S, options, "keep_graph", false);
  read_capture(L, S, options, &desc);
  cgl_context *context = cgl_lua_context(L, S);
  cgl_graph **slot = cgl_lua_new(L, S, CGL_LUA_graph);
  cgl_status status = cgl_graph_create(context, &desc, slot);
  if (cgl_lua_collected(L, S, status))
    status = cgl_graph_create(context, &desc, slot);
  cgl_lua_done(L, S, status);
  return *slot;
}


/* cg.graph{keep_graph=, pool=, capture_error_mode=} */
static int new_graph(lua_State *L) {
  static const char *const known[] = {"keep_graph", "pool",
                                      "capture_error_mode", NULL};
  cgl_lua *S = cgl_lua_issue(L, "graph");
  lua_settop(L, 1);
  cgl_lua_options(L, S, 1, known);
  make(L, S, 1);
  return 1;
}


static void apply_options(lua_State *L, cgl_lua *S, int options,
                          cgl_graph *graph) {
  cgl_graph_desc desc;
  cgl_graph_get_desc(graph, &desc);
  if (read_capture(L, S, options, &desc))
    cgl_lua_done(L, S, cgl_graph_set_desc(graph, &desc));
}


/* g:capture_begin{pool=, capture_error_mode=, stream=} */
static int graph_capture_begin(lua_State *L) {
  static const char *const known[] = {"pool", "capture_error_mode", "stream",
                                      NULL};
  cgl_lua *S = cgl_lua_issue(L, "graph:capture_begin");
  lua_settop(L, 2);
  cgl_graph *graph = check(L, S, 1);
  cgl_lua_options(L, S, 2, known);
  cgl_stream *stream = cgl_lua_option_object(L, S, 2, "stream", CGL_LUA_stream);
  if (!stream)
    stream = cgl_lua_stream(L, S);
  apply_options(L, S, 2, graph);
  cgl_lua_done(L, S, cgl_graph_capture_begin(graph, stream));
  return 0;
}


static int graph_capture_end(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:capture_end");
  cgl_lua_done(L, S, cgl_graph_capture_end(check(L, S, 1)));
  return 0;
}


/* The body raised what is on top: ends the capture and raises it on. */
static int abandon(lua_State *L, cgl_lua *S, cgl_graph *graph) {
  cgl_lua_site(L, S);
  cgl_clear_error();
  if (cgl_graph_capture_abandon(graph))
    cgl_lua_also(L, S);
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
  cgl_status status = cgl_graph_capture_end(graph);
  if (status) /* refused, and still capturing */
    cgl_graph_capture_abandon(graph);
  cgl_lua_done(L, S, status);
}


/* Runs the function at index 2 as the body of a capture into the graph at
   index 1; replaces the stack above the graph with what it returned. */
static void capture(lua_State *L, cgl_lua *S, int options) {
  cgl_graph *graph = check(L, S, 1);
  cgl_stream *stream =
      cgl_lua_option_object(L, S, options, "stream", CGL_LUA_stream);
  cgl_stream *current = cgl_lua_stream(L, S);
  if (cgl_stream_capturing_graph(current))
    cgl_lua_raise(L, S, CGL_ERROR_CAPTURE_STATE,
                  "end the first capture before the next begins; to put a "
                  "graph into a capture, replay it there",
                  "a capture inside a capture: the current stream is already "
                  "being captured");
  if (!stream)
    stream = cgl_lua_side_stream(L, S);
  /* What was issued before is done when the body runs; but for a capture of
     another thread, which is no reason to refuse this one. */
  cgl_status status = cgl_context_synchronize(cgl_stream_context(stream));
  if (status != CAPTURE_UNDERWAY)
    cgl_lua_done(L, S, status);
  /* The body may release the graph and drop what held it. */
  cgl_graph **held = cgl_lua_new(L, S, CGL_LUA_graph);
  lua_replace(L, 3);
  lua_settop(L, 3);
  lua_insert(L, 2); /* 1: the graph, 2: held, 3: fn */
  cgl_lua_done(L, S, cgl_graph_capture_begin(graph, stream));
  *held = cgl_graph_retain(graph);
  if (cgl_lua_within(L, S, stream, NULL, 0))
    abandon(L, S, graph);
  finish(L, S, graph);
  *held = NULL;
  cgl_graph_release(graph);
  lua_remove(L, 2);
}


/* g:capture(fn [, {pool=, capture_error_mode=, stream=}]) returns g and what
   fn returned. */
static int graph_capture(lua_State *L) {
  static const char *const known[] = {"pool", "capture_error_mode", "stream",
                                      NULL};
  cgl_lua *S = cgl_lua_issue(L, "graph:capture");
  lua_settop(L, 3);
  cgl_graph *graph = check(L, S, 1);
  cgl_lua_function(L, S, 2);
  cgl_lua_options(L, S, 3, known);
  apply_options(L, S, 3, graph);
  capture(L, S, 3);
  return lua_gettop(L);
}


/* cg.capture(fn [, opts]) with the options of cg.graph and stream= */
static int new_capture(lua_State *L) {
  static const char *const known[] = {"keep_graph", "pool",
                                      "capture_error_mode", "stream", NULL};
  cgl_lua *S = cgl_lua_issue(L, "capture");
  lua_settop(L, 2);
  cgl_lua_function(L, S, 1);
  cgl_lua_options(L, S, 2, known);
  make(L, S, 2);    /* 1: fn, 2: opts, 3: graph */
  lua_insert(L, 1); /* 1: graph, 2: fn, 3: opts */
  capture(L, S, 3);
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
  cgl_status status = cgl_graph_instantiate(graph);
  if (cgl_lua_collected(L, S, status))
    status = cgl_graph_instantiate(graph);
  cgl_lua_done(L, S, status);
  return 0;
}


/* g:replay([n]).  The line is looked up only where it can matter: a replay
   into a capture becomes a node.  A long loop looks up now and then, so that
   whoever stops scripts through a hook stops it too. */
static int graph_replay(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:replay");
  cgl_graph *graph = check(L, S, 1);
  uint64_t left = 1;
  if (!lua_isnoneornil(L, 2))
    left = (uint64_t)cgl_lua_integer(L, S, 2, "the number of replays", 0,
                                     CGL_LUA_MAX_WHOLE);
  cgl_stream *stream = cgl_lua_stream(L, S);
  if (cgl_stream_capturing_graph(stream))
    cgl_lua_site(L, S);
  else
    cgl_set_site(NULL, 0);
  while (left > REPLAYS_AT_ONCE) {
    cgl_lua_done(L, S, cgl_graph_replay(graph, stream, REPLAYS_AT_ONCE));
    left -= REPLAYS_AT_ONCE;
    cgl_lua_breathe(L, S);
    graph = check(L, S, 1); /* a hook may have done anything */
    stream = cgl_lua_stream(L, S);
  }
  cgl_lua_done(L, S, cgl_graph_replay(graph, stream, left));
  return 0;
}


static int graph_reset(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:reset");
  cgl_lua_done(L, S, cgl_graph_reset(check(L, S, 1)));
  return 0;
}


static int graph_pool(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:pool");
  cgl_graph *graph = check(L, S, 1);
  cgl_pool **slot = cgl_lua_new(L, S, CGL_LUA_pool);
  cgl_lua_done(L, S, cgl_graph_pool(graph, slot));
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


/* g:debug_dump(path) */
static int graph_debug_dump(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:debug_dump");
  cgl_graph *graph = check(L, S, 1);
  const char *path = cgl_lua_string(L, S, 2, "the path", NULL);
  cgl_lua_done(L, S, cgl_graph_debug_dump(graph, path));
  return 0;
}


/* The recording is always there, so there is nothing to switch on; scripts
   that know torch's call may still make it. */
static int graph_enable_debug_mode(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "graph:enable_debug_mode");
  check(L, S, 1);
  return 0;
}


static void push_sizes(lua_State *L, const uint32_t sizes[3]) {
  lua_createtable(L, 3, 0);
  for (int i = 0; i < 3; i++) {
    lua_pushnumber(L, sizes[i]);
    lua_rawseti(L, -2, i + 1);
  }
}


/* One node of the recording as a table; indices count from 1. */
static void push_node(lua_State *L, const cgl_node_info *info) {
  lua_createtable(L, 0, 7);
  lua_pushstring(L, info->kind);
  lua_setfield(L, -2, "kind");
  lua_pushstring(L, info->name);
  lua_setfield(L, -2, "name");
  lua_pushstring(L, info->file);
  lua_setfield(L, -2, "file");
  lua_pushinteger(L, info->line);
  lua_setfield(L, -2, "line");
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
}


static int graph_nodes(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "graph:nodes");
  cgl_graph *graph = check(L, S, 1);
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
      {"pool", graph_pool},
      {"raw_cuda_graph", graph_raw_graph},
      {"raw_cuda_graph_exec", graph_raw_exec},
      {"writes", graph_writes},
      {"debug_dump", graph_debug_dump},
      {"enable_debug_mode", graph_enable_debug_mode},
      {"nodes", graph_nodes},
      {NULL, NULL},
  };
  static const luaL_Reg functions[] = {
      {"graph", new_graph}, {"capture", new_capture}, {NULL, NULL}};
  static const cgl_lua_type type = {.methods = methods, .describe = describe};
  cgl_lua_register(L, S, CGL_LUA_graph, &type);
  cgl_lua_functions(L, functions);
}
