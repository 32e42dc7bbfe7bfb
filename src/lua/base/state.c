#include "lua/base/state.h"

#include <string.h>

#include "lua/base/current.h"
#include "lua/base/log.h"


/* Type names that stay interned, for comparisons by address. */
static void state_keep_type_texts(lua_State *L, cgl_lua *S) {
  for (int type = 0; type < CGL_TYPE_COUNT; type++) {
    lua_pushstring(L, cgl_type_name((cgl_type)type));
    S->type_texts[type] = lua_topointer(L, -1);
    luaL_ref(L, LUA_REGISTRYINDEX);
  }
}


cgl_lua *cgl_lua_state_open(lua_State *L) {
  cgl_lua *S = lua_newuserdata(L, sizeof *S);
  memset(S, 0, sizeof *S);
  S->operation = "require";
  S->ffi_ref = S->log_ref = LUA_NOREF;
  if (luaL_loadbuffer(L, "return", 6, "=cgraphlua"))
    lua_error(L);
  S->empty_ref = luaL_ref(L, LUA_REGISTRYINDEX);
  state_keep_type_texts(L, S);
  return S;
}


/* C frames of open scopes may still be on the stack (os.exit inside a scope),
   but they will not run again. */
void cgl_lua_state_close(cgl_lua *S) {
  S->closed = true;
  cgl_lua_log_detach(S);
  for (cgl_lua_scope *scope = S->scope; scope; scope = scope->outer) {
    cgl_stream_release(scope->stream);
    cgl_pool_release(scope->pool);
  }
  cgl_pool_release(S->pool);
  cgl_lua_forget(S);
}
