/* The Lua module, for programs that embed LuaJIT: libcgraphlua-lua.
   Idea: the module has a half in C, cgraphlua.core, and a half in Lua, which
   package.path finds.  A program that links the library registers the half in
   C before a script requires the module, so that both share one runtime.
   Invariant: the library has no Lua of its own and uses its host's. */
#ifndef CGRAPHLUA_LUA_H
#define CGRAPHLUA_LUA_H

#include "cgraphlua/base.h"

struct lua_State;

/* How a state raises failures of the device and of this library. */
typedef enum cgl_lua_errors {
  CGL_LUA_ERRORS_DEFAULT, /* as CGRAPHLUA_ERRORS says, or else as objects */
  CGL_LUA_ERRORS_OBJECT,  /* as error objects */
  CGL_LUA_ERRORS_STRING   /* as texts, for hosts that print strings only */
} cgl_lua_errors;

/* Zero-initialized, all has its default. */
typedef struct cgl_lua_desc {
  cgl_lua_errors errors;
} cgl_lua_desc;

/* Registers the half in C, so that `require "cgraphlua"` finds it; `desc` may
   be NULL.  Call it after luaL_openlibs, or at least luaopen_package, and
   before the state requires the module.  Raises a Lua error, as Lua's own API
   does, when memory lacks or package is not there. */
CGL_API void cgl_lua_preload(struct lua_State *L, const cgl_lua_desc *desc);
/* The half in C: pushes its table and returns 1.  A lua_CFunction, for
   package.preload and for tables of static modules. */
CGL_API int luaopen_cgraphlua_core(struct lua_State *L);

#endif
