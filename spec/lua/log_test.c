/* Who gets a message: the script's own log, the context's, the process's, or
   standard error. */
#define _GNU_SOURCE
#include "cgraphlua.h"
#include "tap.h"

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int luaopen_cgraphlua_core(lua_State *L);

/* What an engine's log got. */
typedef struct heard {
  int count;
  char last[256];
  cgl_log_level level;
} heard;

static const char open_chunk[] =
    "cg = require 'cgraphlua.core'\n"
    "function empty() cg.capture(function() end) end\n";


static void hear(void *user, const char *message, cgl_log_level level) {
  heard *to = user;
  to->count++;
  to->level = level;
  snprintf(to->last, sizeof to->last, "%s", message);
}


static lua_State *state_open(void) {
  lua_State *L = luaL_newstate();
  luaL_openlibs(L);
  lua_getglobal(L, "package");
  lua_getfield(L, -1, "preload");
  lua_pushcfunction(L, luaopen_cgraphlua_core);
  lua_setfield(L, -2, "cgraphlua.core");
  lua_settop(L, 0);
  if (luaL_dostring(L, open_chunk))
    abort();
  return L;
}


/* Runs a chunk; its first result, until the next one. */
static const char *run(lua_State *L, const char *chunk) {
  lua_settop(L, 0);
  if (luaL_dostring(L, chunk) && luaL_callmeta(L, -1, "__tostring"))
    lua_replace(L, -2);
  return lua_tostring(L, -1) ? lua_tostring(L, -1) : "";
}


/* Runs a chunk; what it wrote on standard error, until the next one. */
static const char *printed(lua_State *L, const char *chunk) {
  static char text[1024];
  FILE *file = tmpfile();
  int saved = dup(STDERR_FILENO);
  fflush(stderr);
  dup2(fileno(file), STDERR_FILENO);
  run(L, chunk);
  fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  rewind(file);
  text[fread(text, 1, sizeof text - 1, file)] = 0;
  fclose(file);
  return text;
}


static void test_process_fact(void) {
  setenv("CGRAPHLUA_DEVICE", "", 1);
  const char *word = "no GPU, using the host device";
  int said = 0;
  for (int i = 0; i < 3; i++) {
    lua_State *L = state_open();
    said += strstr(printed(L, "cg.device()"), word) != NULL;
    lua_close(L);
  }
  if (cgl_device_count() > 1)
    tap_ok(!said, "with a GPU nothing is said about it");
  else
    tap_ok(said == 1, "that there is no GPU is said once to three states");
}


static void test_routes(void) {
  heard engine = {0}, device = {0};
  cgl_set_log(hear, &engine);
  lua_State *a = state_open(), *b = state_open();
  tap_ok(!*printed(a, "empty()") && engine.count == 1 &&
             strstr(engine.last, "is empty") && engine.level == CGL_LOG_WARNING,
         "require leaves the engine's log in place");
  run(a, "cg.on_log(function(m, level) got = level .. ': ' .. m end) empty()");
  tap_ok(engine.count == 1 && !strncmp(run(a, "return got"), "warning: ", 9),
         "a script's own log takes its messages, with the level's name");
  run(b, "empty()");
  tap_ok(engine.count == 2, "and the engine's takes those of another state");
  run(a, "cg.on_log(nil) empty()");
  tap_ok(engine.count == 2, "on_log(nil) silences one state");
  run(a, "got = nil cg.on_log(function(m) got = m end, 'error') empty()");
  tap_ok(engine.count == 2 && !*run(a, "return got"),
         "messages below the level are dropped");
  run(a, "cg.on_log(false) empty()");
  tap_ok(engine.count == 3, "on_log(false) gives them back to the engine");
  tap_ok(strstr(run(a, "cg.on_log(print, 'loud')"), "loud") != NULL,
         "an unknown level is refused");

  cgl_context *context;
  tap_ok(!cgl_context_open("", &context), "the device opens");
  cgl_context_set_log(context, hear, &device);
  run(a, "empty()");
  tap_ok(engine.count == 3 && device.count == 1,
         "a context's log takes what concerns the context");
  cgl_context_set_log(context, NULL, NULL);
  run(a, "empty()");
  tap_ok(engine.count == 4 && device.count == 1,
         "and leaves it to the process's when it is taken off");
  lua_close(a);
  run(b, "empty()");
  tap_ok(engine.count == 5, "the end of a state changes no log");
  cgl_set_log(NULL, NULL);
  tap_ok(strstr(printed(b, "empty()"), "is empty") != NULL,
         "without an engine's log a script's messages are printed");
  cgl_context_release(context);
  lua_close(b);
}


int main(void) {
  setenv("CGRAPHLUA_DEVICE", "host", 0);
  const char *wish = getenv("CGRAPHLUA_DEVICE");
  char device[32];
  snprintf(device, sizeof device, "%s", wish);
  test_process_fact();
  setenv("CGRAPHLUA_DEVICE", device, 1);
  test_routes();
  tap_ok(!strcmp(cgl_log_level_name(CGL_LOG_ERROR), "error"),
         "levels have names");
  return tap_done();
}
