/* A host that embeds LuaJIT and lends a script its own stream.
     cc embed.c $(pkg-config --cflags --libs cgraphlua-lua luajit) -o embed */
#include <cgraphlua.h>
#include <cgraphlua/lua.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>

static const char script[] = "local cg = require 'cgraphlua'\n"
                             "local stream = cg.stream_from(...)\n"
                             "local x = cg.zeros('float', 3)\n"
                             "local g = cg.capture(function() x:fill(7) end)\n"
                             "stream:use(function() g:replay() end)\n"
                             "stream:synchronize()\n"
                             "return table.concat(x:download(), ' ')\n";


int main(void) {
  cgl_context *context = NULL;
  cgl_stream *stream = NULL;
  lua_State *L = luaL_newstate();
  if (!L || cgl_context_open(NULL, &context) ||
      cgl_stream_create(context, 0, &stream))
    return 1;
  luaL_openlibs(L);
  /* The C half is linked in; the Lua half is found by package.path. */
  cgl_lua_preload(L, &(cgl_lua_desc){.errors = CGL_LUA_ERRORS_STRING});
  int failed = luaL_loadstring(L, script);
  if (!failed) {
    lua_pushlightuserdata(L, cgl_stream_handle(stream));
    failed = lua_pcall(L, 1, 1, 0);
  }
  printf("%s\n", lua_tostring(L, -1));
  lua_close(L);
  cgl_stream_release(stream);
  cgl_context_release(context);
  return failed ? 1 : 0;
}
