/* cgraphlua.compilation: a module that is compiled while the script goes on. */
#include "lua/types/types.h"

#include <stdio.h>


/* c:ready() */
static int compilation_ready(lua_State *L) {
  cgl_lua *S = cgl_lua_enter(L, "compilation:ready");
  lua_pushboolean(L, cgl_compilation_ready(cgl_lua_check_compilation(L, S, 1)));
  return 1;
}


/* c:wait(), the module */
static int compilation_wait(lua_State *L) {
  cgl_lua *S = cgl_lua_issue(L, "compilation:wait");
  cgl_compilation *compilation = cgl_lua_check_compilation(L, S, 1);
  cgl_module **slot = cgl_lua_new_module(L, S);
  cgl_lua_done(L, S, cgl_compilation_wait(compilation, slot));
  return 1;
}


static void compilation_describe(void *object, char *text, size_t room) {
  snprintf(text, room, "%p (%s)", object,
           cgl_compilation_ready(object) ? "ready" : "underway");
}


void cgl_lua_open_compilation(lua_State *L, cgl_lua *S) {
  static const luaL_Reg methods[] = {
      {"ready", compilation_ready},
      {"wait", compilation_wait},
      {NULL, NULL},
  };
  static const cgl_lua_type type = {
      .kind = CGL_LUA_compilation,
      .methods = methods,
      .describe = compilation_describe,
      .calls = "compilation:wait() returns the module"};
  cgl_lua_register(L, S, &type);
}
