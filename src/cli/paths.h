/* Where the Lua half lives.  A program that was built but not installed
   finds it beside itself; an installed one finds it relative to its own
   folder, so that a moved tree still works; last comes the folder that was
   compiled in.  The first folder with cgraphlua/init.lua goes in front of
   package.path, because it must match the core in this program. */
#ifndef CGL_CLI_PATHS_H
#define CGL_CLI_PATHS_H

#include <stdbool.h>

#include <lua.h>

/* Puts the folder in front of package.path; CGRAPHLUA_LUA names it unless
   `no_environment`.  Leaves package.path alone when there is none. */
void cgl_paths_setup(lua_State *L, bool no_environment);

#endif
