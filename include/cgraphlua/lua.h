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

/* What scripts of a restricted state may use; 0 is the default, in brackets.
   A script that asks for more gets an error that names the field. */
typedef struct cgl_lua_limits {
  const char *const *kernels; /* sources that it may compile: 32 hexadecimal
                                 digits each (cgl_module_hash) */
  size_t nkernels;
  size_t device_bytes;   /* of buffers and captures (256 MiB) */
  size_t pinned_bytes;   /* of pinned memory (64 MiB) */
  size_t objects;        /* alive at a time, of all kinds (4096) */
  size_t graph_nodes;    /* of all of its graphs (10000) */
  size_t lua_bytes;      /* of Lua's own memory (64 MiB) */
  double seconds;        /* of a call from the host (1) */
  double kernel_seconds; /* of a kernel or a replay, on the host device (1) */
} cgl_lua_limits;

/* Zero-initialized, all has its default.  The objects are the caller's; the
   state takes references of its own, and drops them when it closes. */
typedef struct cgl_lua_desc {
  cgl_lua_errors errors;
  cgl_stream *stream; /* the state's current stream, until the script chooses
                         another, and with it its device; NULL: the default
                         stream of the default device */
  cgl_pool *pool;     /* where its buffers outside of captures come from, of the
                         stream's device; NULL: the device's pool */
  const cgl_lua_limits *restricted; /* cgl_lua_open alone: makes the state a
                         restricted one, for scripts that the program does not
                         trust; NULL: scripts may do what the program may.  It
                         has isolated streams of its own (cgl_stream_isolate)
                         on the device of `stream`; `pool` stands in the place
                         of device_bytes */
} cgl_lua_desc;

/* Registers the half in C, so that `require "cgraphlua"` finds it; `desc` may
   be NULL.  Call it after luaL_openlibs, or at least luaopen_package, and
   before the state requires the module.  Raises a Lua error, as Lua's own API
   does, when memory lacks, package is not there, or the pool is of another
   device than the stream. */
CGL_API void cgl_lua_preload(struct lua_State *L, const cgl_lua_desc *desc);
/* The same, and requires the module at once: pushes its table.  A state that is
   restricted stays so, for good: its globals are new, and what the host loads
   and sets from now on is the script's. */
CGL_API void cgl_lua_open(struct lua_State *L, const cgl_lua_desc *desc);
/* Gives a restricted state so many seconds from now on (0: those of its
   limits), and lets it work again after its time was over.  Raises a Lua error
   for a state that is not restricted. */
CGL_API void cgl_lua_set_deadline(struct lua_State *L, double seconds);
/* lua_pcall, with the time of a restricted state anew. */
CGL_API int cgl_lua_pcall(struct lua_State *L, int nargs, int nresults,
                          int handler);
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
CGL_API void cgl_lua_push_param(struct lua_State *L, cgl_param *param);
CGL_API void cgl_lua_push_ranks(struct lua_State *L, cgl_ranks *ranks);
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
CGL_API cgl_param *cgl_lua_to_param(struct lua_State *L, int index);
CGL_API cgl_ranks *cgl_lua_to_ranks(struct lua_State *L, int index);

#endif
