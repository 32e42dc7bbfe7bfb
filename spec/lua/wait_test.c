/* cg.synchronize() waits for the work of its own Lua state: a loader thread
   that captures all the time, or has work that does not end, stops no main
   loop, and a main loop breaks no capture. */
#define _GNU_SOURCE
#include "cgraphlua.h"
#include "driver/table.h"
#include "tap.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 500 };

int luaopen_cgraphlua_core(lua_State *L);

static const char head[] =
    "cg = require 'cgraphlua.core'\n"
    "cg.on_log(nil)\n"
    "inc = cg.kernel [[\n"
    "  extern \"C\" __global__ void inc(float *x, int n) {\n"
    "    if (threadIdx.x < n) x[threadIdx.x] += 1.f;\n"
    "  }]]\n"
    "x = cg.zeros('float', 16)\n"
    "s = cg.stream()\n"
    "s:wait(cg.current_stream())\n";

/* Captures and replays once; checks what came of it. */
static const char load_chunk[] =
    "local mode = ...\n"
    "total = total or 0\n"
    "local g = cg.graph { capture_error_mode = mode }\n"
    "local ok, e = pcall(g.capture, g, function()\n"
    "  for _ = 1, 20 do inc:launch(1, 32, x, 16) end\n"
    "end)\n"
    "if not ok then error(tostring(e)) end\n"
    "s:use(function() g:replay() end)\n"
    "total = total + 20\n"
    "return total\n";

static const char frame_chunk[] =
    "frames = (frames or 0) + 1\n"
    "s:use(function() inc:launch(1, 32, x, 16) end)\n"
    "cg.synchronize()\n"
    "return frames\n";

static atomic_bool ending;
static atomic_int loads, broken;


static lua_State *state_open(void) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, luaopen_cgraphlua_core);
  lua_setfield(L, -2, "cgraphlua.core");
  lua_settop(L, 0);
  if (luaL_dostring(L, head)) {
    printf("Bail out! %s\n", lua_tostring(L, -1));
    exit(1);
  }
  return L;
}


/* Runs a chunk with a text for an argument; false with a line about it. */
static bool run(lua_State *L, const char *chunk, const char *argument) {
  lua_settop(L, 0);
  int failed = luaL_loadbuffer(L, chunk, strlen(chunk), "=chunk");
  lua_pushstring(L, argument);
  if (!failed && !lua_pcall(L, 1, 1, 0))
    return true;
  if (luaL_callmeta(L, -1, "__tostring"))
    lua_replace(L, -2);
  printf("# %s\n", lua_tostring(L, -1));
  return false;
}


static void *load(void *unused) {
  (void)unused;
  lua_State *L = state_open();
  for (int i = 0; !atomic_load(&ending); i++) {
    if (!run(L, load_chunk, i % 2 ? "global" : "thread_local"))
      atomic_fetch_add(&broken, 1);
    atomic_fetch_add(&loads, 1);
  }
  if (!run(L, "s:synchronize() assert(x:download()[16] == total)", NULL))
    atomic_fetch_add(&broken, 1);
  lua_close(L);
  return NULL;
}


static void test_loader(void) {
  pthread_t thread;
  int failed = 0;
  lua_State *L = state_open();
  pthread_create(&thread, NULL, load, NULL);
  for (int i = 0; i < FRAMES || atomic_load(&loads) < FRAMES / 10; i++)
    failed += !run(L, frame_chunk, NULL);
  atomic_store(&ending, true);
  pthread_join(thread, NULL);
  tap_ok(!failed, "every frame's wait passes beside a loader (%d failed)",
         failed);
  tap_ok(!broken, "no capture of the loader broke (%d did)", broken);
  tap_ok(run(L, "assert(x:download()[16] == frames)", NULL),
         "all frames' work is done");
  lua_close(L);
}


static void gate_wait(void *gate) {
  sem_wait(gate);
}


/* Work of another state does not end before the wait does. */
static void test_others_work(void) {
  lua_State *mine = state_open(), *other = state_open();
  sem_t gate;
  sem_init(&gate, 0, 0);
  run(other, "cg.synchronize() return s:handle()", NULL);
  CUstream stream = lua_touserdata(other, -1);
  run(mine, "cg.synchronize()", NULL);
  cgl_context *context = NULL;
  cgl_context_open(getenv("CGRAPHLUA_DEVICE"), &context);
  const cgl_driver *driver = cgl_context_driver(context);
  tap_ok(!driver->cuLaunchHostFunc(stream, gate_wait, &gate),
         "another state has work that does not end");
  tap_ok(run(mine, frame_chunk, NULL) && run(mine, frame_chunk, NULL),
         "a wait of this state does not wait for it");
  tap_ok(run(other, "assert(not s:query())", NULL), "which goes on");
  sem_post(&gate);
  tap_ok(run(mine, "cg.synchronize 'device'", NULL) &&
             run(other, "assert(s:query())", NULL),
         "a wait for the device waits for it");
  cgl_context_release(context);
  lua_close(mine);
  lua_close(other);
}


static void test_own(void) {
  lua_State *L = state_open();
  tap_ok(run(L,
             "local e\n"
             "local g = cg.capture(function()\n"
             "  e = select(2, pcall(cg.synchronize))\n"
             "  inc:launch(1, 32, x, 16)\n"
             "end)\n"
             "assert(e.code == 900 and e.where == 'chunk:3', tostring(e))\n"
             "assert(e.message:find('since chunk:2', 1, true), e.message)\n"
             "g:replay(3)\n"
             "cg.synchronize()\n"
             "assert(x:download()[1] == 3)\n",
             NULL),
         "in a capture it is refused, with its line, and the capture is whole");
  tap_ok(run(L,
             "local slow = cg.kernel [[\n"
             "extern \"C\" __global__ void slow(float *y) {\n"
             "  float v = y[0];\n"
             "  for (int i = 0; i < 2000000; i++) v = v * 0.5f + 1.f;\n"
             "  y[0] = v;\n"
             "}]]\n"
             "local list = {}\n"
             "for i = 1, 4 do\n"
             "  local t, e = cg.stream(), cg.event()\n"
             "  local y = cg.zeros('float', 1)\n"
             "  t:wait(cg.current_stream())\n"
             "  t:use(function() slow:launch(1, 1, y) e:record() end)\n"
             "  list[i] = { t, e, y }\n"
             "end\n"
             "cg.synchronize()\n"
             "for _, item in ipairs(list) do assert(item[2]:query()) end\n",
             NULL),
         "it waits for all streams of the state");
  lua_close(L);
}


int main(void) {
  setenv("CGRAPHLUA_DEVICE", "host", 0);
  test_own();
  test_others_work();
  test_loader();
  tap_ok(cgl_live("all") == 0, "nothing stays alive");
  return tap_done();
}
