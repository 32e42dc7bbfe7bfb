/* The C half of the Lua module, cgraphlua.core. */
#ifndef CGL_LUA_OPEN_H
#define CGL_LUA_OPEN_H

#include <lua.h>

/* Pushes the module's table; for package.preload and for require. */
int luaopen_cgraphlua_core(lua_State *L);

#endif
