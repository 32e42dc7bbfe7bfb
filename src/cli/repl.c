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


void cgl_repl_run(lua_State *L) {
  cgl_line *in = cgl_line_open();
  int status;
  if (!in) {
    cgl_report_line("not enough memory");
    return;
  }
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
