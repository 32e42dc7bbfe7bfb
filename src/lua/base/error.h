/* The border between core statuses and Lua errors: every status of the core
   passes cgl_lua_done.
   A core failure becomes an error object: a table with name, code, operation,
   where, message, hint and also, whose tostring is what a person reads; or that
   text itself, in a state that raises strings.  A wrong argument is a plain
   "bad argument" string, as Lua's own are.  The state keeps the object of its
   last error, of each kind. */
#ifndef CGL_LUA_ERROR_H
#define CGL_LUA_ERROR_H

#include "lua/base/base.h"
#include "lua/base/log.h"

/* Builds the metatable of error objects. */
void cgl_lua_error_open(lua_State *L, cgl_lua *S);
/* Raises the calling thread's last core failure as an error object. */
int cgl_lua_fail(lua_State *L, cgl_lua *S);
/* Adds the thread's last core failure to the `also` of the error object on
   top; logs the failure when the value on top is no error object. */
void cgl_lua_also(lua_State *L, cgl_lua *S);
/* Raises an error object with a message of the binding's own. */
int cgl_lua_raise(lua_State *L, cgl_lua *S, cgl_status code, const char *hint,
                  const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Raises "bad argument #index to 'operation' (...)", with the script's line;
   an index as on the stack. */
int cgl_lua_bad(lua_State *L, cgl_lua *S, int index, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static inline void cgl_lua_done(lua_State *L, cgl_lua *S, cgl_status status) {
  if (status)
    cgl_lua_fail(L, S);
  if (S->nmessages)
    cgl_lua_log_deliver(L, S);
}

#endif
