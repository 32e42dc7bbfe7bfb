/* The Lua module, for programs that embed LuaJIT: libcgraphlua-lua.
   Idea: the module has a half in C, cgraphlua.core, and a half in Lua, which
   package.path finds.  A program that links the library registers the half in
   C before a script requires the module, so that both share one runtime.
   Invariant: the library has no Lua of its own and uses its host's. */
#ifndef CGRAPHLUA_LUA_H
#define CGRAPHLUA_LUA_H

#include "cgraphlua.h"

struct lua_State;

/* How a state raises failures of the device and of this library. */
typedef enum cgl_lua_errors {
  CGL_LUA_ERRORS_DEFAULT, /* as CGRAPHLUA_ERRORS says, or else as objects */
  CGL_LUA_ERRORS_OBJECT,  /* as error objects */
  CGL_LUA_ERRORS_STRING   /* as texts, for hosts that print strings only */
} cgl_lua_errors;

/* Zero-initialized, all has its default.  The objects are the caller's; the
   state takes references of its own, and drops them when it closes. */
typedef struct cgl_lua_desc {
  cgl_lua_errors errors;
  cgl_stream *stream; /* the state's current stream, until the script chooses
                         another, and with it its device; NULL: the default
                         stream of the default device */
  cgl_pool *pool;     /* where its buffers outside of captures come from, of the
                         stream's device; NULL: the device's pool */
} cgl_lua_desc;

/* Registers the half in C, so that `require "cgraphlua"` finds it; `desc` may
   be NULL.  Call it after luaL_openlibs, or at least luaopen_package, and
   before the state requires the module.  Raises a Lua error, as Lua's own API
   does, when memory lacks, package is not there, or the pool is of another
   device than the stream. */
CGL_API void cgl_lua_preload(struct lua_State *L, const cgl_lua_desc *desc);
/* The same, and requires the module at once: pushes its table. */
CGL_API void cgl_lua_open(struct lua_State *L, const cgl_lua_desc *desc);
/* The half in C: pushes its table and returns 1.  A lua_CFunction, for
   package.preload and for tables of static modules. */
CGL_API int luaopen_cgraphlua_core(struct lua_State *L);

/* Push an object as the script's own userdata, with a reference of its own;
   NULL is nil.  The state requires the module when it has not yet.  Raises a
   Lua error when memory lacks, or when the script loaded another copy of this
   library. */
CGL_API void cgl_lua_push_stream(struct lua_State *L, cgl_stream *stream);
CGL_API void cgl_lua_push_event(struct lua_State *L, cgl_event *event);
CGL_API void cgl_lua_push_buffer(struct lua_State *L, cgl_buffer *buffer);
CGL_API void cgl_lua_push_pinned(struct lua_State *L, cgl_pinned *pinned);
CGL_API void cgl_lua_push_module(struct lua_State *L, cgl_module *module);
CGL_API void cgl_lua_push_compilation(struct lua_State *L,
                                      cgl_compilation *compilation);
CGL_API void cgl_lua_push_kernel(struct lua_State *L, cgl_kernel *kernel);
CGL_API void cgl_lua_push_pool(struct lua_State *L, cgl_pool *pool);
CGL_API void cgl_lua_push_graph(struct lua_State *L, cgl_graph *graph);
CGL_API void cgl_lua_push_generator(struct lua_State *L,
                                    cgl_generator *generator);
CGL_API void cgl_lua_push_checkpoint(struct lua_State *L,
                                     cgl_checkpoint *checkpoint);
CGL_API void cgl_lua_push_loop(struct lua_State *L, cgl_loop *loop);
/* The object of the userdata at an index; NULL for any other value and for a
   released object.  Borrowed: retain it to keep it longer than the value is on
   the stack.  Never raises. */
CGL_API cgl_stream *cgl_lua_to_stream(struct lua_State *L, int index);
CGL_API cgl_event *cgl_lua_to_event(struct lua_State *L, int index);
CGL_API cgl_buffer *cgl_lua_to_buffer(struct lua_State *L, int index);
CGL_API cgl_pinned *cgl_lua_to_pinned(struct lua_State *L, int index);
CGL_API cgl_module *cgl_lua_to_module(struct lua_State *L, int index);
CGL_API cgl_compilation *cgl_lua_to_compilation(struct lua_State *L, int index);
CGL_API cgl_kernel *cgl_lua_to_kernel(struct lua_State *L, int index);
CGL_API cgl_pool *cgl_lua_to_pool(struct lua_State *L, int index);
CGL_API cgl_graph *cgl_lua_to_graph(struct lua_State *L, int index);
CGL_API cgl_generator *cgl_lua_to_generator(struct lua_State *L, int index);
CGL_API cgl_checkpoint *cgl_lua_to_checkpoint(struct lua_State *L, int index);
CGL_API cgl_loop *cgl_lua_to_loop(struct lua_State *L, int index);

#endif
