/* Objects that cross the border of a Lua state: from and to C, and from state
   to state. Idea: a userdata holds a reference to a core object like any other
   holder, so an object may have userdata in several states.  A state that hands
   an object over keeps it in a list of the process, under a token, which is
   text and so travels however the host's threads send text. Invariant: in one
   state a graph has one userdata while that is alive, because its hooks are
   there. */
#ifndef CGL_LUA_BORDER_H
#define CGL_LUA_BORDER_H

#include "lua/base/base.h"

/* Adds cg.share and cg.take to the table on top, and makes C find the state. */
void cgl_lua_open_border(lua_State *L, cgl_lua *S);
/* The state's, or NULL. */
cgl_lua *cgl_lua_border_state(lua_State *L);

#endif
