/* Several Lua states, each on a thread of its own, capture and replay on one
   device at once while their collectors run.  The C half alone is loaded, so
   the test needs no path to the Lua half.
     states_test [threads [seconds]]   default: 4 threads, 200 rounds each */
#include "cgraphlua.h"
#include "cgraphlua/lua.h"
#include "tap.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 4, MOST = 64, ROUNDS = 200 };

static int nthreads = THREADS, seconds;
static atomic_long rounds_done;

static const char chunk[] =
    "local cg, rounds, deadline = require 'cgraphlua.core', ...\n"
    "collectgarbage('setpause', 50)\n"
    "local inc = cg.kernel [[\n"
    "  extern \"C\" __global__ void inc(float *x, int n) {\n"
    "    if (threadIdx.x < n) x[threadIdx.x] += 1.f;\n"
    "  }]]\n"
    "local x, total, run = cg.zeros('float', 16), 0, cg.stream()\n"
    "cg.current_stream():synchronize()\n"
    "local i = 0\n"
    "while i < rounds or os.time() < deadline do\n"
    "  i = i + 1\n"
    "  local n = 1 + i % 7\n"
    "  local g = cg.capture(function()\n"
    "    for _ = 1, n do inc:launch(1, 32, x, 16) end\n"
    "    for j = 1, 50 do local _ = { j, cg.event() } end\n"
    "  end)\n"
    "  run:use(function() g:replay(3) end)\n"
    "  total = total + 3 * n\n"
    "  if i % 20 == 0 then\n"
    "    run:synchronize()\n"
    "    assert(x:download()[16] == total, 'a replay was lost')\n"
    "    x:fill(0)\n"
    "    cg.current_stream():synchronize()\n"
    "    total = 0\n"
    "  end\n"
    "end\n"
    "run:synchronize()\n"
    "assert(x:download()[1] == total, 'a replay was lost at the end')\n"
    "return i\n";

/* Returns a function that leaves a captured graph to the collector, and a
   function that returns the device's bytes in use. */
static const char garbage[] =
    "local cg = require 'cgraphlua.core'\n"
    "local function leave()\n"
    "  cg.capture(function() cg.buffer('uint8', 2e6):fill(1) end)\n"
    "end\n"
    "return leave, function()\n"
    "  local free, total = cg.mem_get_info()\n"
    "  return total - free\n"
    "end\n";


static void open_core(lua_State *L) {
  luaL_openlibs(L);
  cgl_lua_preload(L, NULL);
}


static void *run_state(void *argument) {
  int number = *(int *)argument;
  lua_State *L = luaL_newstate();
  if (!tap_ok(L != NULL, "thread %d has a state", number))
    return NULL;
  open_core(L);
  int failed = luaL_loadstring(L, chunk);
  if (!failed) {
    lua_pushinteger(L, seconds ? 0 : ROUNDS);
    lua_pushnumber(L, seconds ? (double)time(NULL) + seconds : 0);
    failed = lua_pcall(L, 2, 1, 0);
  }
  tap_ok(!failed, "thread %d captures and replays", number);
  if (!failed)
    atomic_fetch_add(&rounds_done, lua_tointeger(L, -1));
  else {
    if (luaL_callmeta(L, -1, "__tostring"))
      lua_replace(L, -2);
    printf("# %s\n", lua_tostring(L, -1));
  }
  lua_close(L);
  return NULL;
}


/* Two states of one thread, whose collectors do not know of each other. */
static void check_garbage(void) {
  enum { STATES = 2, LEFT = 2000 };
  lua_State *states[STATES];
  double before = 0, most = 0;
  bool failed = false;
  for (int i = 0; i < STATES; i++) {
    states[i] = luaL_newstate();
    open_core(states[i]);
    failed |= luaL_dostring(states[i], garbage);
  }
  for (int round = 0; round < LEFT && !failed; round++)
    for (int i = 0; i < STATES && !failed; i++) {
      lua_State *L = states[i];
      lua_pushvalue(L, 1);
      failed |= lua_pcall(L, 0, 0, 0);
      lua_pushvalue(L, 2);
      failed |= lua_pcall(L, 0, 1, 0);
      double used = lua_tonumber(L, -1);
      before = before > 0 ? before : used;
      most = used - before > most ? used - before : most;
      lua_settop(L, 2);
    }
  tap_ok(!failed && most < 400e6,
         "two states leave graphs to their collectors: %.0f MB at most",
         most / 1e6);
  for (int i = 0; i < STATES; i++)
    lua_close(states[i]);
}


/* What a state raises whose host chose `errors`: "table" or "string". */
static const char *raised_type(cgl_lua_errors errors) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  cgl_lua_preload(L, &(cgl_lua_desc){.errors = errors});
  int failed = luaL_dostring(
      L,
      "return type(select(2, pcall(require 'cgraphlua.core'.buffer, 'float', "
      "2 ^ 45)))");
  const char *type = failed ? "nothing" : lua_tostring(L, -1);
  type = *type == 't' ? "table" : *type == 's' ? "string" : "nothing";
  lua_close(L);
  return type;
}


static int preload_wrongly(lua_State *L) {
  cgl_lua_preload(L, lua_touserdata(L, 1));
  return 0;
}


/* Whether a state without libraries refuses it with these words. */
static bool preload_is_refused(const cgl_lua_desc *desc, const char *words) {
  lua_State *L = luaL_newstate();
  bool refused = lua_cpcall(L, preload_wrongly, (void *)desc) == LUA_ERRRUN &&
                 strstr(lua_tostring(L, -1), words);
  lua_close(L);
  return refused;
}


static void check_preload(void) {
  static const struct {
    cgl_lua_errors errors;
    const char *environment, *type;
  } rows[] = {{CGL_LUA_ERRORS_DEFAULT, "", "table"},
              {CGL_LUA_ERRORS_DEFAULT, "string", "string"},
              {CGL_LUA_ERRORS_OBJECT, "string", "table"},
              {CGL_LUA_ERRORS_STRING, "object", "string"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    setenv("CGRAPHLUA_ERRORS", rows[i].environment, 1);
    tap_ok(!strcmp(raised_type(rows[i].errors), rows[i].type),
           "the host chose %d, the environment '%s': a %s is raised",
           rows[i].errors, rows[i].environment, rows[i].type);
  }
  unsetenv("CGRAPHLUA_ERRORS");
  tap_ok(preload_is_refused(NULL, "open Lua's package library first"),
         "a state without libraries is refused");
  tap_ok(preload_is_refused(&(cgl_lua_desc){.errors = 7}, "errors: 7 is no"),
         "an unknown kind of errors is refused");
}


int main(int argc, char **argv) {
  pthread_t threads[MOST];
  int numbers[MOST];
  if (argc > 1)
    nthreads = atoi(argv[1]);
  if (argc > 2)
    seconds = atoi(argv[2]);
  if (nthreads < 1 || nthreads > MOST || seconds < 0) {
    fprintf(stderr, "states_test [threads up to %d [seconds]]\n", MOST);
    return 2;
  }
  for (int i = 0; i < nthreads; i++) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, run_state, &numbers[i]);
  }
  for (int i = 0; i < nthreads; i++)
    pthread_join(threads[i], NULL);
  printf("# %ld captures by %d threads\n", atomic_load(&rounds_done), nthreads);
  check_garbage();
  check_preload();
  tap_ok(cgl_live("all") == 0, "nothing is alive at the end");
  return tap_done();
}
