/* Restricted states of an engine in C: what their scripts do wrong stays with
   them, and the engine's own graphs replay on.  The attacks themselves are in
   restricted_spec.lua. */
#include "cgraphlua.h"
#include "cgraphlua/lua.h"
#include "tap.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>

enum { N = 256, STATES = 3 };

static const char kernels[] =
    "extern \"C\" __global__ void bump(int *x, int n) {\n"
    "  if (threadIdx.x < n) x[threadIdx.x] += 1;\n"
    "}\n"
    "extern \"C\" __global__ void hang(volatile int *x) {\n"
    "  while (!*x) {}\n"
    "}\n"
    "extern \"C\" __global__ void wild(int *x) { x[1ll << 44] = 1; }\n";

static cgl_context *context;
static cgl_stream *stream;
static cgl_buffer *numbers;
static cgl_module *module;
static cgl_kernel *bump;
static cgl_graph *graph;
static int total; /* replays of the engine so far */


/* The engine's own work: a graph that adds 1 to every number. */
static bool engine_begin(void) {
  const cgl_module_desc desc = {.source = kernels};
  const cgl_launch launch = {.block = {N}};
  const int zeros[N] = {0};
  if (cgl_context_open("host", &context) ||
      cgl_stream_create(context, 0, &stream) ||
      cgl_buffer_create(stream, NULL, CGL_TYPE_int32, N, &numbers) ||
      cgl_buffer_upload(numbers, stream, 0, zeros, sizeof zeros) ||
      cgl_module_create(context, &desc, &module) ||
      cgl_module_kernel(module, "bump", &bump) ||
      cgl_graph_create(context, NULL, &graph) ||
      cgl_graph_capture_begin(graph, stream))
    return false;
  const cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = numbers},
                          {.kind = CGL_ARG_NUMBER, .number = N}};
  return !cgl_kernel_launch(bump, stream, &launch, args, 2) &&
         !cgl_graph_capture_end(graph);
}


static bool engine_works(void) {
  int values[N];
  total += 50;
  if (cgl_graph_replay(graph, stream, 50) ||
      cgl_buffer_download(numbers, stream, 0, values, sizeof values)) {
    printf("# the engine: %s\n", cgl_last_error()->message);
    return false;
  }
  for (int i = 0; i < N; i++)
    if (values[i] != total)
      return false;
  return true;
}


static void engine_end(void) {
  cgl_graph_release(graph);
  cgl_kernel_release(bump);
  cgl_module_release(module);
  cgl_buffer_release(numbers);
  cgl_stream_release(stream);
  cgl_context_release(context);
}


static int protected_open(lua_State *L) {
  cgl_lua_open(L, lua_touserdata(L, 1));
  return 1;
}


/* A state as an engine opens it; its module is the global `cg`. */
static lua_State *state_new(const cgl_lua_desc *desc) {
  const char *top = getenv("srcdir");
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_getglobal(L, "package");
  lua_pushfstring(L, "%s/lua/?.lua;%s/lua/?/init.lua", top ? top : ".",
                  top ? top : ".");
  lua_setfield(L, -2, "path");
  lua_pop(L, 1);
  lua_pushcfunction(L, protected_open);
  lua_pushlightuserdata(L, (void *)(uintptr_t)desc);
  if (lua_pcall(L, 1, 1, 0)) {
    printf("# %s\n", lua_tostring(L, -1));
    exit(1);
  }
  lua_setglobal(L, "cg");
  return L;
}


static lua_State *state_restricted(cgl_lua_limits limits) {
  char hash[33];
  const char *list[] = {hash};
  const cgl_lua_desc desc = {.restricted = &limits};
  cgl_module_hash(kernels, strlen(kernels), hash);
  limits.kernels = list;
  limits.nkernels = 1;
  lua_State *L = state_new(&desc);
  lua_pushstring(L, kernels);
  lua_setglobal(L, "source");
  return L;
}


/* Calls a chunk; leaves its result, or the error's text, which is returned. */
static const char *call(lua_State *L, const char *chunk) {
  lua_settop(L, 0);
  if (!luaL_loadstring(L, chunk) && !cgl_lua_pcall(L, 0, 1, 0))
    return "";
  if (luaL_callmeta(L, -1, "__tostring"))
    lua_replace(L, -2);
  const char *text = lua_tostring(L, -1);
  return text ? text : "?";
}


static bool works(lua_State *L, const char *chunk) {
  const char *why = call(L, chunk);
  if (*why)
    printf("# %s\n", why);
  return !*why;
}


static bool fails(lua_State *L, const char *chunk, const char *why) {
  const char *text = call(L, chunk);
  if (!strstr(text, why))
    printf("# \"%s\" was expected, got \"%s\"\n", why, text);
  return strstr(text, why);
}


/* What the API itself refuses. */
static int refused_preload(lua_State *L) {
  const cgl_lua_limits limits = {.objects = 1};
  cgl_lua_preload(L, &(cgl_lua_desc){.restricted = &limits});
  return 0;
}


static int refused_deadline(lua_State *L) {
  cgl_lua_set_deadline(L, luaL_optnumber(L, 1, 1));
  return 0;
}


static int refused_stream(lua_State *L) {
  cgl_lua_push_stream(L, stream);
  return 1;
}


static bool refuses(lua_State *L, lua_CFunction function, double number,
                    const char *why) {
  lua_pushcfunction(L, function);
  lua_pushnumber(L, number);
  const bool refused = lua_pcall(L, 1, 0, 0);
  const char *text = refused ? lua_tostring(L, -1) : "no error";
  const bool well = refused && strstr(text, why);
  if (!well)
    printf("# \"%s\" was expected, got \"%s\"\n", why, text);
  lua_settop(L, 0);
  return well;
}


static void check_interface(void) {
  lua_State *L = state_new(NULL);
  tap_ok(refuses(L, refused_preload, 0, "cgl_lua_open makes") &&
             refuses(L, refused_deadline, 1, "not restricted"),
         "a state that is not restricted has no limits");
  lua_close(L);
  const cgl_lua_limits bad = {.seconds = -1};
  const cgl_lua_desc desc = {.restricted = &bad};
  L = luaL_newstate();
  luaL_openlibs(L);
  lua_pushcfunction(L, protected_open);
  lua_pushlightuserdata(L, (void *)(uintptr_t)&desc);
  tap_ok(lua_pcall(L, 1, 1, 0), "limits that are none are refused");
  lua_close(L);
  L = state_restricted((cgl_lua_limits){.seconds = 60});
  tap_ok(refuses(L, refused_deadline, -1, "not in 0..1e9") &&
             refuses(L, refused_stream, 0, "a stream of another state"),
         "a restricted state takes no stream of the engine's");
  const cgl_lua_limits again = {.objects = 1};
  lua_pushcfunction(L, protected_open);
  lua_pushlightuserdata(L, &(cgl_lua_desc){.restricted = &again});
  tap_ok(lua_pcall(L, 1, 1, 0) &&
             strstr(lua_tostring(L, -1), "has its limits already"),
         "it has its limits for good");
  lua_settop(L, 0);
  cgl_lua_open(L, NULL);
  lua_getglobal(L, "cg");
  tap_ok(lua_rawequal(L, -1, -2), "a second cgl_lua_open pushes its module");
  lua_close(L);
}


static void check_objects(void) {
  lua_State *L = state_restricted((cgl_lua_limits){.seconds = 60});
  cgl_lua_push_kernel(L, bump);
  lua_setglobal(L, "bump");
  cgl_lua_push_module(L, module);
  lua_setglobal(L, "module");
  cgl_lua_push_graph(L, graph);
  lua_setglobal(L, "graph");
  tap_ok(works(L, "local x = cg.zeros('int32', 8)\n"
                  "bump:launch(1, 8, x, 8)\n"
                  "module:kernel 'bump':launch(1, 8, x, 8)\n"
                  "assert(x:download()[8] == 2)\n"
                  "graph:replay(50)\n"
                  "cg.synchronize()"),
         "kernels, modules and graphs are the engine's to push");
  total += 50;
  tap_ok(engine_works(), "and it uses them beside the script");
  lua_close(L);
}


static void check_kernels(void) {
  lua_State *L =
      state_restricted((cgl_lua_limits){.seconds = 60, .kernel_seconds = 0.5});
  tap_ok(works(L, "hang = cg.module(source):kernel 'hang'\n"
                  "bump = cg.module(source):kernel 'bump'\n"
                  "x = cg.zeros('int32', 8)\n"
                  "hang:launch(1, 1, x)"),
         "a script launches a kernel that does not end");
  tap_ok(engine_works(), "the engine replays beside it");
  tap_ok(fails(L, "cg.synchronize()", "CUDA_ERROR_LAUNCH_TIMEOUT 702"),
         "the kernel ends, for the script");
  tap_ok(engine_works() && !cgl_context_synchronize(context),
         "the engine goes on");
  tap_ok(works(L, "bump:launch(1, 8, x, 8)\n"
                  "assert(x:download()[8] == 1)"),
         "and the script, at the next call");
  tap_ok(fails(L,
               "cg.module(source):kernel 'wild':launch(1, 1, x)\n"
               "cg.synchronize()",
               "CUDA_ERROR_ILLEGAL_ADDRESS 700"),
         "a kernel that touches what is no memory fails for the script");
  tap_ok(engine_works(), "the engine goes on after that as well");
  tap_ok(works(L, "hang:launch(1, 1, x)"), "one that is underway");
  lua_close(L);
  tap_ok(engine_works(), "ends with its state");
}


static void check_time(void) {
  lua_State *L = state_restricted((cgl_lua_limits){.seconds = 0.4});
  static const char over[] = "the time is over";
  tap_ok(fails(L, "while true do end", over) &&
             fails(L, "while true do pcall(error) end", over) &&
             fails(L,
                   "g = cg.capture(function()\n"
                   "  cg.zeros('int32', 8):fill(1)\n"
                   "end)\n"
                   "g:replay(1e15)",
                   over) &&
             fails(L, "cg.sleep(1e6)", over),
         "what does not end is ended");
  tap_ok(works(L, "return cg.full('int32', 1, 7):download()[1]") &&
             lua_tonumber(L, -1) == 7,
         "each call of the engine has its time");
  cgl_lua_set_deadline(L, 1000);
  lua_settop(L, 0);
  tap_ok(!luaL_dostring(L, "cg.sleep(0.6) return 1"),
         "which the engine can lengthen");
  tap_ok(engine_works(), "the engine goes on");
  lua_close(L);
}


static void check_memory(void) {
  lua_State *L =
      state_restricted((cgl_lua_limits){.lua_bytes = 8 << 20, .seconds = 60});
  lua_settop(L, 0);
  tap_ok(!luaL_loadstring(L, "local t = {}\n"
                             "for i = 1, 1e9 do t[i] = { i } end") &&
             cgl_lua_pcall(L, 0, 0, 0) == LUA_ERRMEM &&
             strstr(lua_tostring(L, -1), "lua_bytes"),
         "Lua's memory ends at its limit");
  tap_ok(works(L, "local t = {}\n"
                  "for i = 1, 2e4 do t[i] = { i } end\n"
                  "return #t"),
         "and the script goes on");
  lua_close(L);
}


static void check_tokens(void) {
  lua_State *A = state_new(NULL);
  lua_State *B = state_restricted((cgl_lua_limits){.seconds = 60});
  lua_settop(A, 0);
  tap_ok(works(A, "local x = cg.full('int32', 4, 9)\n"
                  "cg.current_stream():synchronize()\n"
                  "return cg.share(x)"),
         "a token");
  lua_pushstring(B, lua_tostring(A, -1));
  lua_setglobal(B, "token");
  tap_ok(works(B, "assert(cg.take(token):download()[4] == 9)"),
         "a restricted state takes it");
  tap_ok(works(A, "return cg.share(cg.stream())"), "a stream's");
  lua_pushstring(B, lua_tostring(A, -1));
  lua_setglobal(B, "token");
  tap_ok(fails(B, "cg.take(token)", "a stream of another state"), "is refused");
  lua_settop(A, 0);
  lua_pushstring(A, lua_tostring((lua_getglobal(B, "token"), B), -1));
  lua_setglobal(A, "token");
  tap_ok(works(A, "cg.take(token)"), "and stays for others");
  lua_close(A);
  lua_close(B);
}


/* A thread's own scripts, which do all that does not end. */
static void *misbehave(void *unused) {
  lua_State *slow = state_restricted((cgl_lua_limits){
      .seconds = 60, .kernel_seconds = 0.05, .device_bytes = 16 << 20});
  lua_State *quick = state_restricted((cgl_lua_limits){.seconds = 0.2});
  bool well = true;
  for (int i = 0; i < 3; i++) {
    well &= fails(slow,
                  "cg.module(source):kernel 'hang':launch(1, 1,\n"
                  "  cg.zeros('int32', 1))\n"
                  "cg.synchronize()",
                  "702");
    well &= fails(slow, "return cg.buffer('int32', 2 ^ 30)", "device_bytes");
    well &= fails(quick, "while true do pcall(cg.zeros, 'int32', 64) end",
                  "the time is over");
  }
  lua_close(slow);
  lua_close(quick);
  return well ? unused : NULL;
}


static void check_threads(void) {
  pthread_t threads[STATES];
  bool well = true;
  for (int i = 0; i < STATES; i++)
    pthread_create(&threads[i], NULL, misbehave, &total);
  for (int i = 0; i < 100; i++)
    well &= engine_works();
  for (int i = 0; i < STATES; i++) {
    void *ended = NULL;
    pthread_join(threads[i], &ended);
    well &= ended != NULL;
  }
  tap_ok(well && engine_works(), "%d threads misbehave, and the engine works",
         STATES);
}


int main(void) {
  setenv("CGRAPHLUA_DEVICE", "host", 1); /* the scripts' too */
  if (!tap_ok(engine_begin() && engine_works(), "an engine with a graph"))
    return tap_done();
  check_interface();
  check_objects();
  check_kernels();
  check_time();
  check_memory();
  check_tokens();
  check_threads();
  engine_end();
  tap_ok(cgl_live("all") == 0, "nothing is alive at the end");
  return tap_done();
}
