/* Restricted states: for scripts that the host does not trust.
   Idea: lua/cgraphlua/restricted.lua lists what scripts may name, and makes
   their globals of that; what it does not list is closed.  Here the state is
   turned: its methods are cut down to the list, its limits begin
   (base/limits.h), and its globals are exchanged.
   Invariant: a state that is restricted stays so; all that can fail comes
   before the first change. */
#ifndef CGL_LUA_RESTRICT_H
#define CGL_LUA_RESTRICT_H

#include "cgraphlua/lua.h"
#include "lua/base/base.h"

/* Adds core.restrict and core.freeze to the table on top. */
void cgl_lua_restrict_open(lua_State *L);
/* Pushes the module's table of a restricted state, or nothing: false. */
bool cgl_lua_restrict_push_module(lua_State *L);
/* Pushes the description as a table, for cg.restrict. */
void cgl_lua_restrict_push_limits(lua_State *L, const cgl_lua_limits *limits);

#endif
