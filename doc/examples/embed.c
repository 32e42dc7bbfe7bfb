/* A host that embeds LuaJIT: its stream and buffer go to a script, and a graph
   comes back.
     cc embed.c $(pkg-config --cflags --libs cgraphlua-lua luajit) -o embed */
#include <cgraphlua.h>
#include <cgraphlua/lua.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>

static const char script[] = "local cg = require 'cgraphlua'\n"
                             "local x = ...\n"
                             "return cg.capture(function() x:fill(7) end)\n";


/* Replays the graph that the script returned, as often as the host likes. */
static cgl_status host_frame(cgl_graph *graph, cgl_stream *stream,
                             cgl_buffer *x, float out[3]) {
  cgl_status status = cgl_graph_replay(graph, stream, 1);
  return status ? status
                : cgl_buffer_download(x, stream, 0, out, 3 * sizeof *out);
}


int main(void) {
  cgl_context *context = NULL;
  cgl_stream *stream = NULL;
  cgl_buffer *x = NULL;
  float out[3];
  lua_State *L = luaL_newstate();
  if (!L || cgl_context_open(NULL, &context) ||
      cgl_stream_create(context, 0, &stream) ||
      cgl_buffer_create(stream, NULL, CGL_TYPE_float, 3, &x))
    return 1;
  luaL_openlibs(L);
  /* The C half is linked in; the Lua half is found by package.path. */
  cgl_lua_preload(
      L, &(cgl_lua_desc){.errors = CGL_LUA_ERRORS_STRING, .stream = stream});
  int failed = luaL_loadstring(L, script);
  if (!failed) {
    cgl_lua_push_buffer(L, x);
    failed = lua_pcall(L, 1, 1, 0);
  }
  cgl_graph *graph = failed ? NULL : cgl_lua_to_graph(L, -1);
  if (!graph || host_frame(graph, stream, x, out))
    printf("%s\n", failed ? lua_tostring(L, -1) : cgl_last_error()->message);
  else
    printf("%g %g %g\n", out[0], out[1], out[2]);
  lua_close(L);
  cgl_buffer_release(x);
  cgl_stream_release(stream);
  cgl_context_release(context);
  return failed || !graph;
}
