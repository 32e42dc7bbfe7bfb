/* The state of one Lua state, from require to lua_close. */
#ifndef CGL_LUA_STATE_H
#define CGL_LUA_STATE_H

#include "lua/base/base.h"

/* Makes the state and leaves its userdata, without a metatable, on the
   stack. */
cgl_lua *cgl_lua_state_open(lua_State *L);
/* Ends the state; later calls of the module raise. */
void cgl_lua_state_close(cgl_lua *S);

#endif
