#define _GNU_SOURCE
#include "cli/report.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <lauxlib.h>

#include "cgraphlua.h"
#include "cli/interrupt.h"


void cgl_report_line(const char *format, ...) {
  char rank[16] = "", *text;
  va_list args;
  va_start(args, format);
  if (vasprintf(&text, format, args) < 0)
    text = NULL;
  va_end(args);
  if (cgl_ranks_launched() >= 0)
    snprintf(rank, sizeof rank, "[%d] ", cgl_ranks_launched());
  fflush(stdout);
  /* At once: the lines of several ranks do not mix. */
  fprintf(stderr, "cgraphlua: %s%s\n", rank, text ? text : format);
  fflush(stderr);
  free(text);
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


/* The line that ":LINE: " in a message names; 0 when there is none. */
static long message_line(const char *message) {
  for (const char *at = message; (at = strchr(at, ':')); at++) {
    char *end;
    long line = strtol(at + 1, &end, 10);
    if (line > 0 && end > at + 1 && !strncmp(end, ": ", 2))
      return line;
  }
  return 0;
}


/* "x[i[j]]": two brackets that close indices, not the string of a kernel. */
static bool closes_indices(const char *text) {
  for (const char *at = text; (at = strstr(at, "]]")); at++)
    if (at > text && (isalnum((unsigned char)at[-1]) || strchr("_)]", at[-1])))
      return true;
  return false;
}


void cgl_report_add_hint(lua_State *L, const char *path) {
  const long line = lua_isstring(L, -1) ? message_line(lua_tostring(L, -1)) : 0;
  FILE *file = line && path ? fopen(path, "r") : NULL;
  char *text = NULL;
  size_t room = 0;
  bool kernel = false, closed = false;
  for (long i = 1; file && i <= line && getline(&text, &room, file) >= 0; i++) {
    kernel |= strstr(text, "__global__") || strstr(text, "__device__");
    closed |= kernel && i + 2 >= line && closes_indices(text);
  }
  if (file)
    fclose(file);
  free(text);
  if (!closed)
    return;
  lua_pushliteral(L, "\n  hint: a string from [[ ends at the first ]], also in "
                     "x[i[j]]; write the kernel between [=[ and ]=]");
  lua_concat(L, 2);
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
