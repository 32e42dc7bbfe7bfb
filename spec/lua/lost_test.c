/* Lua states on threads of their own that share a device: one hangs, or the
   engine gives up on all; every state gets an error, lets go, and goes on. */
#include "cgraphlua/lua.h"
#include "tap.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { STATES = 16 };

/* What the states do until the device is lost. */
typedef enum task { HANG, HANG_IN_GRAPH, REPLAY } task;

static const char *const tasks[] = {"hang", "hang in a graph", "replay"};

static const char chunk[] =
    "local cg, number, task, meet, busy = require 'cgraphlua.core', ...\n"
    "local source = [[\n"
    "extern \"C\" __global__ void hang(volatile int *x) {\n"
    "  while (*x >= 0) {}\n"
    "}\n"
    "extern \"C\" __global__ void bump(int *x) { x[threadIdx.x] += 1; }]]\n"
    "local function work(rounds)\n"
    "  local m, x = cg.module(source), cg.zeros('int32', 32)\n"
    "  local bump, s = m:kernel 'bump', cg.stream()\n"
    "  local g = cg.capture(function() bump:launch(1, 32, x) end)\n"
    "  cg.current_stream():synchronize()\n"
    "  for i = 1, rounds do\n"
    "    s:use(function() g:replay(10) end)\n"
    "    s:synchronize()\n"
    "    if i == 5 and number == 7 then busy() end\n"
    "    if i == 5 and task == 'replay' then\n"
    "      s:use(function() g:replay(1e9) end)\n"
    "    elseif i == 5 and number == 7 then\n"
    "      local function hang() m:kernel 'hang':launch(3, 32, x) end\n"
    "      if task == 'hang' then hang() else cg.capture(hang):replay() end\n"
    "    end\n"
    "  end\n"
    "  return x:download()[32]\n"
    "end\n"
    "local ok, e = pcall(work, 1e9)\n"
    "assert(not ok and e.code == 702, tostring(e))\n"

    "meet()\n"
    "local reset, why = pcall(cg.reset_device)\n"
    "assert(reset or why.code == -17, tostring(why))\n"
    "meet()\n"
    "task, number = nil, nil\n"
    "assert(work(20) == 200, 'a replay was lost')\n"
    "return reset\n";

static pthread_barrier_t barrier;
static atomic_int nbusy, nresets;
static const char *task_name;


static int state_meet(lua_State *L) {
  (void)L;
  pthread_barrier_wait(&barrier);
  return 0;
}


static int state_busy(lua_State *L) {
  (void)L;
  atomic_fetch_add(&nbusy, 1);
  return 0;
}


static void open_core(lua_State *L) {
  luaL_openlibs(L);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, luaopen_cgraphlua_core);
  lua_setfield(L, -2, "cgraphlua.core");
  lua_settop(L, 0);
}


static void *run_state(void *number) {
  lua_State *L = luaL_newstate();
  open_core(L);
  int failed = luaL_loadstring(L, chunk);
  lua_pushinteger(L, *(int *)number);
  lua_pushstring(L, task_name);
  lua_pushcfunction(L, state_meet);
  lua_pushcfunction(L, state_busy);
  failed = failed || lua_pcall(L, 4, 1, 0);
  if (failed) {
    if (luaL_callmeta(L, -1, "__tostring"))
      lua_replace(L, -2);
    printf("Bail out! %s\n", lua_tostring(L, -1));
    fflush(stdout);
    _exit(1); /* the others wait for this thread */
  }
  atomic_fetch_add(&nresets, lua_toboolean(L, -1));
  lua_close(L);
  return NULL;
}


/* `seconds`: the deadline, or 0: the engine gives up. */
static void check_states(task what, double seconds) {
  pthread_t threads[STATES];
  int numbers[STATES];
  cgl_context *context = NULL;
  task_name = tasks[what];
  nbusy = nresets = 0;
  cgl_status status = cgl_context_open(NULL, &context);
  status = status ? status : cgl_context_set_kernel_deadline(context, seconds);
  for (int i = 0; i < STATES; i++) {
    numbers[i] = i + 1;
    pthread_create(&threads[i], NULL, run_state, &numbers[i]);
  }
  if (!(seconds > 0)) {
    while (!atomic_load(&nbusy))
      usleep(1000);
    usleep(20000);
    status = status ? status : cgl_context_abort(context);
  }
  cgl_context_release(context); /* before a state resets the device */
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < STATES; i++)
    pthread_join(threads[i], NULL);
  tap_ok(!status && nresets >= 1, "%d states %s and go on after %s (%d resets)",
         STATES, tasks[what], seconds > 0 ? "a deadline" : "an abort", nresets);
  tap_ok(cgl_live("all") == 0, "nothing is alive");
}


/* A state on a stream of its host does not reset the host's device. */
static void check_lent(void) {
  static const char reset[] =
      "local cg = require 'cgraphlua.core'\n"
      "local ok, e = pcall(cg.reset_device)\n"
      "assert(not ok and e.name == 'CGL_ERROR_IN_USE', tostring(e))\n"
      "return cg.current_stream()\n";
  cgl_context *context = NULL;
  cgl_stream *stream = NULL;
  cgl_context_open(NULL, &context);
  cgl_stream_create(context, 0, &stream);
  const cgl_lua_desc desc = {.stream = stream};
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  cgl_lua_preload(L, &desc);
  tap_ok(!luaL_dostring(L, reset) && cgl_lua_to_stream(L, -1) == stream,
         "a state leaves the device of its host alone");
  lua_close(L);
  cgl_stream_release(stream);
  cgl_context_release(context);
}


int main(void) {
  setenv("CGRAPHLUA_DEVICE", "host", 1); /* a GPU's kernels have no deadline */
  pthread_barrier_init(&barrier, NULL, STATES + 1);
  check_states(HANG, 0.5);
  check_states(HANG_IN_GRAPH, 0.5);
  check_states(HANG, 0);
  check_states(HANG_IN_GRAPH, 0);
  check_states(REPLAY, 0);
  check_lent();
  pthread_barrier_destroy(&barrier);
  return tap_done();
}
