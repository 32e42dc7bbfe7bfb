#include "cli/report.h"

#include <stdarg.h>
#include <stdio.h>

#include <lauxlib.h>

#include "cli/interrupt.h"


void cgl_report_line(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fflush(stdout);
  fputs("cgraphlua: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  fflush(stderr);
  va_end(args);
}


/* Turns the error value into a message with a traceback; runs at the point
   of the error, while the stack is still there. */
static int add_traceback(lua_State *L) {
  if (lua_isnoneornil(L, 1))
    return lua_gettop(L);
  if (!lua_isstring(L, 1)) {
    if (!luaL_callmeta(L, 1, "__tostring") || !lua_isstring(L, -1))
      lua_pushfstring(L, "(error object is a %s value)", luaL_typename(L, 1));
    lua_replace(L, 1);
  }
  lua_settop(L, 1);
  luaL_traceback(L, L, lua_tostring(L, 1), 1);
  return 1;
}


int cgl_report_call(lua_State *L, int nargs, int nresults) {
  int base = lua_gettop(L) - nargs;
  lua_pushcfunction(L, add_traceback);
  lua_insert(L, base);
  cgl_interrupt_begin();
  int status = lua_pcall(L, nargs, nresults, base);
  cgl_interrupt_end();
  lua_remove(L, base);
  return status;
}


int cgl_report_status(lua_State *L, int status) {
  if (!status)
    return 0;
  if (!lua_isnil(L, -1)) {
    const char *message = lua_tostring(L, -1);
    cgl_report_line("%s", message ? message : "(error in error handling)");
  }
  lua_pop(L, 1);
  return status;
}
