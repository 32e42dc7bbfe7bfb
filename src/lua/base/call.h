/* The call underway: the operation's name, and the script's line.
   Every function of the module enters first.  The frames of the Lua half and
   of C functions are not the script's, and are passed over. */
#ifndef CGL_LUA_CALL_H
#define CGL_LUA_CALL_H

#include "driver/thread.h"
#include "lua/base/base.h"

/* The state whose function ran last on this thread; a worker thread of the
   core has no state, and the state may have been closed on another thread. */
extern CGL_THREAD_LOCAL cgl_lua *cgl_lua_entered;

/* Names the operation of the function that runs and returns its state. */
static inline cgl_lua *cgl_lua_enter(lua_State *L, const char *operation) {
  cgl_lua *S = lua_touserdata(L, lua_upvalueindex(1));
  S->operation = operation;
  S->blame = 0;
  S->blamed = NULL;
  S->options = 0;
  cgl_lua_entered = S;
  if (S->closed)
    luaL_error(L, "%s: cgraphlua has ended with its Lua state", operation);
  return S;
}

/* Enters, and tells the core the script's line: for what a device sees. */
cgl_lua *cgl_lua_issue(lua_State *L, const char *operation);
/* Tells the core the script's line. */
void cgl_lua_site(lua_State *L, cgl_lua *S);
/* Runs the script's debug hook if it has one, which may stop the script; for
   long loops in C. */
void cgl_lua_run_debug_hook(lua_State *L, cgl_lua *S);
/* The script's own frame, in *ar; false when no script called. */
bool cgl_lua_frame(lua_State *L, const cgl_lua *S, lua_Debug *ar);
/* Pushes "file:line", or "" when no script called; returns it. */
const char *cgl_lua_push_where(lua_State *L, const cgl_lua *S);
/* hide(): the file that calls it belongs to the Lua half. */
int cgl_lua_hide(lua_State *L);

#endif
