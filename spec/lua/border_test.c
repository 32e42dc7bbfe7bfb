/* Objects that cross the border of Lua states: an engine pushes its own and
   gets the script's, states on the engine's stream and pool, tokens from state
   to state.  The C half alone is loaded, as in states_test. */
#include "cgraphlua.h"
#include "cgraphlua/lua.h"
#include "tap.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 8, ROUNDS = 50, FORKS = 50 };

static cgl_context *context;
static cgl_stream *stream;
static atomic_bool ending;


/* A state whose `require "cgraphlua"` gives the C half. */
static lua_State *state_new(const cgl_lua_desc *desc) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  cgl_lua_preload(L, desc);
  (void)luaL_dostring(L, "package.preload.cgraphlua = function()\n"
                         "  return require 'cgraphlua.core'\n"
                         "end\n"
                         "cg = require 'cgraphlua'");
  lua_settop(L, 0);
  return L;
}


/* Runs a chunk whose arguments are on the stack; leaves its result alone. */
static bool run(lua_State *L, const char *chunk) {
  const int nargs = lua_gettop(L);
  bool failed = luaL_loadstring(L, chunk);
  if (!failed) {
    lua_insert(L, 1);
    failed = lua_pcall(L, nargs, 1, 0);
  }
  if (failed) {
    if (luaL_callmeta(L, -1, "__tostring"))
      lua_replace(L, -2);
    printf("# %s\n", lua_tostring(L, -1));
  }
  return !failed;
}


static int protected_open(lua_State *L) {
  cgl_lua_open(L, lua_touserdata(L, 1));
  return 1;
}


static void check_descriptions(void) {
  cgl_pool *pool = NULL;
  cgl_pool_stats stats;
  tap_ok(!cgl_pool_create(context, NULL, &pool), "a pool");
  const cgl_lua_desc desc = {.stream = stream, .pool = pool};
  lua_State *L = state_new(&desc);
  cgl_lua_push_stream(L, stream);
  tap_ok(run(L,
             "local s = ...\n"
             "assert(cg.current_stream() == s)\n"
             "x = cg.zeros('float', 1000)\n"
             "cg.debug.forget()\n"
             "assert(cg.current_stream() == s, 'the host\\'s stream again')"),
         "a state begins on the host's stream");
  cgl_pool_get_stats(pool, &stats);
  tap_ok(stats.allocated >= 4000, "its buffers come from the host's pool");
  lua_close(L);
  cgl_pool_get_stats(pool, &stats);
  tap_ok(!stats.allocated, "and go back there");

  L = luaL_newstate();
  luaL_openlibs(L);
  const cgl_lua_desc half = {.pool = pool};
  lua_pushcfunction(L, protected_open);
  lua_pushlightuserdata(L, (void *)&half);
  tap_ok(lua_pcall(L, 1, 1, 0) &&
             strstr(lua_tostring(L, -1), "without a stream of its device"),
         "a pool without a stream is refused: %s", lua_tostring(L, -1));
  lua_close(L);

  L = luaL_newstate();
  luaL_openlibs(L);
  (void)luaL_dostring(L, "package.preload.cgraphlua = function()\n"
                         "  return require 'cgraphlua.core'\n"
                         "end");
  lua_pushcfunction(L, protected_open);
  lua_pushlightuserdata(L, (void *)&desc);
  tap_ok(!lua_pcall(L, 1, 1, 0) && lua_istable(L, -1),
         "cgl_lua_open gives the module's table");
  lua_close(L);
  cgl_pool_release(pool);
}


/* Of a loop that did not turn. */
static bool make_loop(cgl_loop **loop) {
  const bool off = false;
  cgl_conditional_desc desc = {.kind = CGL_CONDITIONAL_LOOP};
  cgl_conditional *conditional;
  cgl_stream *inner;
  int body = 0;
  bool made = !cgl_buffer_create(stream, NULL, CGL_TYPE_bool, 1, &desc.value) &&
              !cgl_buffer_fill(desc.value, stream, &off) &&
              !cgl_conditional_begin(stream, &desc, &conditional) &&
              !cgl_conditional_next(conditional, &body, &inner) && body == -1;
  cgl_buffer_release(desc.value);
  if (made)
    *loop = cgl_loop_retain(cgl_conditional_loop(conditional));
  return made && !cgl_conditional_end(conditional);
}


static void check_kinds(lua_State *L) {
  static const cgl_module_desc desc = {
      .source = "extern \"C\" __global__ void one(float *x) { x[0] += 1; }"};
  cgl_event *event = NULL;
  cgl_buffer *buffer = NULL;
  cgl_pinned *pinned = NULL;
  cgl_module *module = NULL;
  cgl_compilation *compilation = NULL;
  cgl_kernel *kernel = NULL;
  cgl_pool *pool = NULL;
  cgl_graph *graph = NULL;
  cgl_generator *generator = NULL;
  cgl_checkpoint *checkpoint = NULL;
  cgl_loop *loop = NULL;
  cgl_ranks *ranks = NULL;
  tap_ok(!cgl_event_create(context, false, &event) &&
             !cgl_buffer_create(stream, NULL, CGL_TYPE_float, 8, &buffer) &&
             !cgl_pinned_create(context, CGL_TYPE_float, 8, &pinned) &&
             !cgl_module_create(context, &desc, &module) &&
             !cgl_module_create_async(context, &desc, &compilation) &&
             !cgl_module_kernel(module, "one", &kernel) &&
             !cgl_pool_create(context, NULL, &pool) &&
             !cgl_graph_create(context, NULL, &graph) &&
             !cgl_generator_create(context, 1, &generator) &&
             !cgl_pool_checkpoint(pool, &checkpoint) && make_loop(&loop) &&
             !cgl_ranks_open(context, &ranks),
         "an object of each kind");
#define KIND(noun)                                                            \
  lua_settop(L, 0);                                                           \
  cgl_lua_push_##noun(L, noun);                                               \
  tap_ok(cgl_lua_to_##noun(L, 1) == noun && cgl_lua_to_##noun(L, -1) == noun, \
         #noun " is the same there and back");                                \
  lua_pushnumber(L, 1);                                                       \
  lua_newuserdata(L, sizeof(void *));                                         \
  cgl_lua_push_##noun(L, NULL);                                               \
  tap_ok(!cgl_lua_to_##noun(L, 2) && !cgl_lua_to_##noun(L, 3) &&              \
             lua_isnil(L, 4) && !cgl_lua_to_##noun(L, 4) &&                   \
             !cgl_lua_to_##noun(L, 9),                                        \
         "nothing else is a " #noun);                                         \
  cgl_lua_push_buffer(L, buffer);                                             \
  cgl_lua_push_event(L, event);                                               \
  tap_ok(!!cgl_lua_to_##noun(L, 5) + !!cgl_lua_to_##noun(L, 6) ==             \
             (!strcmp(#noun, "buffer") || !strcmp(#noun, "event")),           \
         "nor is another kind a " #noun);                                     \
  lua_settop(L, 1);                                                           \
  tap_ok(run(L, "local x = ... x:release() return x") &&                      \
             !cgl_lua_to_##noun(L, 1),                                        \
         "a released " #noun " is none");
  KIND(stream)
  KIND(event)
  KIND(buffer)
  KIND(pinned)
  KIND(module)
  KIND(compilation)
  KIND(kernel)
  KIND(pool)
  KIND(graph)
  KIND(generator)
  KIND(checkpoint)
  KIND(loop)
  KIND(ranks)
#undef KIND
  lua_settop(L, 0);
  cgl_lua_push_kernel(L, kernel);
  cgl_lua_push_buffer(L, buffer);
  tap_ok(run(L, "local k, x = ...\n"
                "x:fill(1)\n"
                "k:launch(1, 1, x)\n"
                "assert(x:download()[1] == 2)\n"
                "mine = cg.from({ 5 }, 'float')\n"
                "return mine"),
         "a script uses them");
  cgl_buffer *mine = cgl_buffer_retain(cgl_lua_to_buffer(L, 1));
  tap_ok(run(L, "mine:release() mine = nil collectgarbage()") &&
             cgl_buffer_count(mine) == 1,
         "what the engine keeps of the script's stays");
  float value = 0;
  tap_ok(!cgl_buffer_download(mine, stream, 0, &value, sizeof value) &&
             value == 5,
         "with what is in it");
  cgl_buffer_release(mine);
  cgl_event_release(event);
  cgl_buffer_release(buffer);
  cgl_pinned_release(pinned);
  cgl_module_release(module);
  cgl_compilation_release(compilation);
  cgl_kernel_release(kernel);
  cgl_pool_release(pool);
  cgl_graph_release(graph);
  cgl_generator_release(generator);
  cgl_checkpoint_release(checkpoint);
  cgl_loop_release(loop);
  cgl_ranks_release(ranks);
}


/* Before a hook is there, and when it was registered on either. */
static void check_graph_is_one(lua_State *L) {
  lua_settop(L, 0);
  tap_ok(run(L,
             "local x, count = cg.zeros('float', 4), 0\n"
             "local g = cg.capture(function() x:fill(1) end)\n"
             "local h = cg.take(cg.share(g))\n"
             "assert(rawequal(g, h))\n"
             "h:register_replay_start_hook(function() count = count + 1 end)\n"
             "g:replay() h:replay() assert(count == 2)\n"
             "g:release()\n"),
         "a graph that a script captured has one userdata");
}


/* Hooks belong to the state that registered them. */
static void check_hooks(lua_State *A, lua_State *B) {
  lua_settop(A, 0);
  lua_settop(B, 0);
  tap_ok(run(A,
             "local x = cg.zeros('float', 4)\n"
             "g, count = cg.capture(function() x:fill(1) end), 0\n"
             "g:register_replay_start_hook(function() count = count + 1 end)\n"
             "return g"),
         "a graph with a hook");
  cgl_graph *graph = cgl_graph_retain(cgl_lua_to_graph(A, 1));
  cgl_lua_push_graph(A, graph);
  tap_ok(lua_rawequal(A, 1, 2), "a pushed graph is the userdata that it has");
  lua_settop(A, 0);
  cgl_lua_push_graph(A, graph);
  tap_ok(run(A, "local h = ... h:replay() assert(count == 1)"),
         "so its hooks run");
  cgl_lua_push_graph(B, graph);
  tap_ok(run(B,
             "g, count = ..., 0\n"
             "g:replay()\n"
             "g:register_replay_start_hook(function() count = count + 1 end)\n"
             "g:replay() assert(count == 1)\n"),
         "another state runs its own hooks only");
  lua_settop(A, 0);
  tap_ok(run(A, "g:replay() assert(count == 2)"), "and so does the first");
  lua_settop(A, 0);
  tap_ok(run(A, "g = nil collectgarbage() collectgarbage()"), "forgotten");
  lua_settop(A, 0);
  cgl_lua_push_graph(A, graph);
  tap_ok(run(A, "local h = ... h:replay() assert(count == 2)"),
         "a new userdata of it has no hooks");
  lua_settop(A, 0);
  cgl_graph_release(graph);
}


static void check_tokens(lua_State *A, lua_State *B) {
  lua_settop(A, 0);
  lua_settop(B, 0);
  tap_ok(run(A, "local x = cg.from({ 1, 2, 3 }, 'float', { 3, 1 })\n"
                "local t = cg.share(x) x:release() return t"),
         "a state shares and closes its own");
  const char *token = lua_tostring(A, 1);
  lua_pushstring(B, token);
  tap_ok(run(B, "local x = cg.take(...)\n"
                "assert(table.concat(x:download(), ' ') == '1 2 3')\n"
                "assert(x.shape[1] == 3)\n"
                "local ok, e = pcall(cg.take, ...)\n"
                "assert(not ok and e.name == 'CGL_ERROR_INVALID_ARGUMENT', e)\n"
                "assert(tostring(e):find 'a token is taken once', e)"),
         "another takes it, once");
  lua_settop(A, 0);
  tap_ok(run(A, "return cg.share(cg.capture(function()\n"
                "  cg.zeros('float', 4)\n"
                "end))"),
         "a graph likewise");
  lua_settop(B, 0);
  lua_pushstring(B, lua_tostring(A, 1));
  tap_ok(run(B, "cg.take(...):replay()"), "and replays it");
  lua_settop(A, 0);
  tap_ok(run(A,
             "for _, bad in ipairs { 1, {}, print } do\n"
             "  local ok, e = pcall(cg.share, bad)\n"
             "  assert(not ok and tostring(e):find 'an object expected', e)\n"
             "end\n"
             "assert(not pcall(cg.take, 'cgraphlua.buffer:0'))\n"
             "local x = cg.zeros('float', 1) x:release()\n"
             "local ok, e = pcall(cg.share, x)\n"
             "assert(not ok and e.name == 'CGL_ERROR_RELEASED', e)"),
         "what is no object is refused");
}


/* A loader thread: its state fills buffers that another state will read. */
static void *load_frames(void *tokens_) {
  char(*tokens)[64] = tokens_;
  lua_State *L = state_new(NULL);
  for (int i = 0; i < ROUNDS; i++) {
    lua_settop(L, 0);
    lua_pushinteger(L, i);
    if (!run(L, "local x = cg.full('float', 64, (...))\n"
                "cg.current_stream():synchronize()\n"
                "return cg.share(x)"))
      break;
    snprintf(tokens[i], sizeof tokens[i], "%s", lua_tostring(L, 1));
  }
  lua_close(L);
  return NULL;
}


static void check_threads(lua_State *L) {
  static char tokens[THREADS][ROUNDS][64];
  pthread_t threads[THREADS];
  for (int t = 0; t < THREADS; t++)
    pthread_create(&threads[t], NULL, load_frames, tokens[t]);
  int right = 0;
  for (int t = 0; t < THREADS; t++) {
    pthread_join(threads[t], NULL);
    for (int i = 0; i < ROUNDS; i++) {
      lua_settop(L, 0);
      lua_pushstring(L, tokens[t][i]);
      lua_pushinteger(L, i);
      right += run(L, "local token, i = ...\n"
                      "assert(cg.take(token):download()[64] == i)");
    }
  }
  tap_ok(right == THREADS * ROUNDS,
         "%d buffers of %d threads outlived their states", right, THREADS);
}


/* Holds the lock of the tokens most of the time: many wait, and the oldest is
   taken. */
static void *cross_borders(void *unused) {
  lua_State *L = state_new(NULL);
  run(L, "x, tokens, i = cg.zeros('float', 1), {}, 0\n"
         "for k = 1, 300 do tokens[k] = cg.share(x) end");
  while (!atomic_load(&ending) && run(L, "i = i % 300 + 1\n"
                                         "cg.take(tokens[i])\n"
                                         "tokens[i] = cg.share(x)\n"
                                         "cg.on_log(nil)"))
    lua_settop(L, 0);
  run(L, "for k = 1, 300 do cg.take(tokens[k]) end");
  lua_close(L);
  return unused;
}


/* In a child: a hang ends it by the alarm.  No error is raised, because the
   compiler's unwinder has a lock as well. */
static void child_run(const char *token) {
  alarm(20);
  lua_State *L = state_new(NULL);
  lua_pushstring(L, token);
  bool well = run(L, "cg.on_log(nil) return cg.share(cg.take(...))");
  lua_close(L);
  fflush(stdout); /* the error's message */
  _exit(!well);
}


static void check_forks(lua_State *L) {
  pthread_t threads[2];
  int well = 0, status = 0;
  lua_settop(L, 0);
  run(L, "return cg.share(cg.event())");
  for (int t = 0; t < 2; t++)
    pthread_create(&threads[t], NULL, cross_borders, NULL);
  for (int i = 0; i < FORKS && !status; i++) {
    pid_t pid = fork();
    if (!pid)
      child_run(lua_tostring(L, 1));
    well += waitpid(pid, &status, 0) == pid && !status;
  }
  atomic_store(&ending, true);
  for (int t = 0; t < 2; t++)
    pthread_join(threads[t], NULL);
  tap_ok(well == FORKS, "%d of %d children found no lock held", well, FORKS);
  tap_ok(run(L, "cg.take(...)"), "the parent has its token");
}


int main(void) {
  if (!tap_ok(!cgl_context_open(NULL, &context) &&
                  !cgl_stream_create(context, 0, &stream),
              "a device and a stream"))
    return tap_done();
  check_descriptions();
  lua_State *A = state_new(NULL), *B = state_new(NULL);
  check_kinds(A);
  check_graph_is_one(A);
  check_hooks(A, B);
  check_tokens(A, B);
  check_threads(A);
  check_forks(A);
  lua_close(A);
  lua_close(B);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is alive at the end");
  return tap_done();
}
