#include "cli/repl.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>

#include "cli/line.h"
#include "cli/report.h"


static bool is_incomplete(lua_State *L, int status) {
  static const char mark[] = "'<eof>'";
  size_t n;
  if (status != LUA_ERRSYNTAX)
    return false;
  const char *message = lua_tolstring(L, -1, &n);
  return n >= sizeof mark - 1 && !strcmp(message + n - (sizeof mark - 1), mark);
}


/* Compiles the chunk on top of the stack, first as an expression, then as
   statements; leaves the function or the error above it. */
static int chunk_compile(lua_State *L) {
  size_t n;
  const char *chunk = lua_tolstring(L, -1, &n);
  if (*chunk == '=')
    lua_pushfstring(L, "return %s", chunk + 1);
  else
    lua_pushfstring(L, "return %s", chunk);
  size_t m;
  const char *expression = lua_tolstring(L, -1, &m);
  int status = luaL_loadbuffer(L, expression, m, "=stdin");
  lua_remove(L, -2);
  if (!status || *chunk == '=')
    return status;
  lua_pop(L, 1);
  return luaL_loadbuffer(L, chunk, n, "=stdin");
}


/* Reads a whole chunk and leaves its function (or its error) on the stack;
   -1 at the end of input. */
static int read_chunk(lua_State *L, cgl_line *in) {
  const char *text;
  for (;;) {
    lua_settop(L, 0);
    cgl_line_status got = cgl_line_read(in, "> ", &text);
    while (got == CGL_LINE_OK) {
      lua_pushstring(L, text);
      if (lua_gettop(L) == 2) {
        lua_pushliteral(L, "\n");
        lua_insert(L, -2);
        lua_concat(L, 3);
      }
      int status = chunk_compile(L);
      if (!is_incomplete(L, status)) {
        cgl_line_remember(in, lua_tostring(L, 1));
        lua_remove(L, 1);
        return status;
      }
      lua_pop(L, 1);
      got = cgl_line_read(in, ">> ", &text);
    }
    if (got == CGL_LINE_END)
      return -1;
  }
}


static void print_results(lua_State *L) {
  int n = lua_gettop(L);
  if (!n)
    return;
  lua_getglobal(L, "print");
  lua_insert(L, 1);
  cgl_report_status(L, cgl_report_call(L, n, 0));
}


/* Registry: the prompt's module, and the strings of its last completion. */
static const char prompt_key[] = "cgraphlua.prompt";


/* Opens the Lua half of the prompt, without which it is Lua's alone. */
static void prompt_open(lua_State *L) {
  lua_getglobal(L, "require");
  lua_pushstring(L, prompt_key);
  if (!lua_pcall(L, 1, 1, 0) && lua_istable(L, -1)) {
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, prompt_key);
    lua_getfield(L, -1, "start");
    lua_pcall(L, 0, 0, 0);
  }
  lua_settop(L, 0);
}


/* Keeps the string on top in the prompt's module, below it, and pops it. */
static const char *text_keep(lua_State *L, int module, const char *name) {
  const char *text = lua_tostring(L, -1);
  lua_setfield(L, module, name);
  return text;
}


static cgl_completion prompt_complete(void *user, const char *before) {
  lua_State *L = user;
  cgl_completion found = {NULL, NULL};
  const int top = lua_gettop(L), module = top + 1;
  lua_getfield(L, LUA_REGISTRYINDEX, prompt_key);
  if (lua_istable(L, module)) {
    lua_getfield(L, module, "complete");
    lua_pushstring(L, before);
    if (!lua_pcall(L, 1, 2, 0)) {
      found.names = text_keep(L, module, "names");
      found.insert = text_keep(L, module, "insert");
    }
  }
  lua_settop(L, top);
  return found;
}


void cgl_repl_run(lua_State *L) {
  cgl_line *in = cgl_line_open();
  int status;
  if (!in) {
    cgl_report_line("not enough memory");
    return;
  }
  prompt_open(L);
  cgl_line_complete_with(in, prompt_complete, L);
  while ((status = read_chunk(L, in)) >= 0) {
    if (!status)
      status = cgl_report_call(L, 0, LUA_MULTRET);
    if (!cgl_report_status(L, status))
      print_results(L);
    fflush(stdout);
  }
  lua_settop(L, 0);
  cgl_line_close(in);
}
