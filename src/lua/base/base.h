/* The ground of the Lua binding: the kinds of objects that scripts hold, and
   what belongs to one Lua state.
   Idea: a userdata holds one pointer to a reference-counted core object (NULL
   after its release), and every function of the module has the state as
   upvalue 1.  A binding function enters (call.h), reads its arguments
   (object.h, values/values.h), makes one core call, and hands the status to
   cgl_lua_done (error.h).
   Invariant: nothing that can raise runs while a core object is held outside
   a userdata or the state; the current stream and pool change only in a
   scope (current.h), which is left however its function ends; __gc never
   raises. */
#ifndef CGL_LUA_BASE_H
#define CGL_LUA_BASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <lauxlib.h>
#include <lua.h>

#include "cgraphlua.h"

#define CGL_LUA_KINDS(X) \
  X(stream)              \
  X(event)               \
  X(buffer)              \
  X(pinned)              \
  X(module)              \
  X(compilation)         \
  X(kernel)              \
  X(pool) X(graph) X(generator) X(checkpoint) X(loop) X(param) X(ranks)

typedef enum cgl_lua_kind {
#define X(noun) CGL_LUA_##noun,
  CGL_LUA_KINDS(X)
#undef X
      CGL_LUA_KIND_COUNT
} cgl_lua_kind;

enum {
  CGL_LUA_TCDATA = 10,     /* lua_type of an FFI object */
  CGL_LUA_HIDDEN = 16,     /* files of the Lua half */
  CGL_LUA_MESSAGES = 16,   /* log messages that wait */
  CGL_LUA_SITES = 4,       /* files whose names are known */
  CGL_LUA_SCOPES = 1000,   /* scopes inside scopes; each takes of the C stack */
  CGL_LUA_WHOLE_BITS = 53, /* of the whole numbers that a double holds */
  CGL_LUA_UNSEEN = 4 << 20 /* bytes that are allocated unseen; collect.h */
};
/* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: not while a capture is underway. */
enum {
  CGL_LUA_CAPTURE_UNDERWAY = 900,
  CGL_LUA_NOT_SUPPORTED = 801 /* CUDA_ERROR_NOT_SUPPORTED */
};
#define CGL_LUA_MAX_WHOLE (INT64_C(1) << CGL_LUA_WHOLE_BITS)

/* The stream and the pool to restore when a scope ends; on the C stack. */
typedef struct cgl_lua_scope {
  struct cgl_lua_scope *outer;
  cgl_stream *stream; /* owned: the current stream outside */
  cgl_pool *pool;     /* owned: the pool in use outside, or NULL */
  int depth;          /* of scopes, from 1 */
} cgl_lua_scope;

/* What a state keeps for a device; each is NULL until it is needed. */
typedef struct cgl_lua_device {
  struct cgl_lua_device *next;
  cgl_context *context;       /* owned */
  cgl_stream *side_stream;    /* owned: a stream for captures */
  cgl_stream *default_stream; /* owned */
  cgl_generator *generator;   /* owned: the default generator */
  cgl_algo *algo;             /* owned: kernels of algorithms */
  cgl_blas *blas;             /* owned: the library of matrices */
  cgl_fft *fft;               /* owned: the library of transforms */
  /* The collector's pace (collect.h), in bytes that objects hold. */
  size_t left;      /* when the last collection had ended */
  size_t stepped;   /* at the last step */
  size_t next_step; /* at which the next step is due */
  int ended;        /* collections that ended since one was due */
} cgl_lua_device;

/* What a Lua state has; in a userdata, so that lua_close ends it. */
typedef struct cgl_lua {
  /* Every call reads or writes these. */
  const char *operation; /* the call underway, "buffer:upload" */
  int blame;             /* argument whose option is being read, or 0 */
  const char *blamed;    /* the option, for messages; or NULL */
  int options;           /* the table that this call has checked, or 0 */
  uint64_t options_seen; /* a bit for each name in it; options.c */
  bool closed;           /* lua_close has passed here */
  atomic_int nmessages;  /* in `messages` */
  cgl_stream *stream;    /* owned: the current stream; NULL until needed */
  cgl_pool *pool;        /* owned: pool:use's, the host's, or NULL */
  size_t allocated;      /* bytes since devices were looked at (collect.h) */
  cgl_type last_type;    /* the type named last */
  cgl_lua_scope *scope;  /* the innermost */
  struct cgl_lua_held *limits; /* of a restricted state; or NULL; limits.h */
  int metatable_refs[CGL_LUA_KIND_COUNT]; /* in the registry */
  int error_ref;                          /* metatable of errors */
  int last_error_ref;        /* the last error object; false before the first */
  bool string_errors;        /* errors are raised as their texts */
  int handle_ref;            /* metatable of hooks' handles */
  int ffi_ref;               /* the Lua half's FFI helpers */
  int log_ref;               /* on_log's function */
  bool log_own;              /* the script called on_log */
  cgl_log_level log_least;   /* messages below it are dropped */
  int empty_ref;             /* a chunk that does nothing */
  int streams_ref;           /* weak set of the userdata of streams */
  int endings_ref, nendings; /* deferred lists; graph/endings.c */
  int graphs_ref;            /* graph -> its userdata, weakly; object.h */
  const void *type_texts[CGL_TYPE_COUNT]; /* type names as Lua interns them */
  struct {
    const char *source; /* a chunk as Lua interns it; kept in the registry */
    int ref;
    const char *file;                 /* the core's name of it */
  } sites[CGL_LUA_SITES];             /* the chunks of the last sites */
  unsigned next_site;                 /* the next entry to overwrite */
  const char *hidden[CGL_LUA_HIDDEN]; /* chunk names of the Lua half */
  int nhidden;
  cgl_stream *home; /* owned: the host's stream, or NULL */
  char device[16];  /* set_device's, to open when needed; "": the default */
  cgl_lua_device *devices;
  unsigned forgets; /* times that `devices` lost some */
  struct {
    char *text; /* owned */
    cgl_log_level level;
  } messages[CGL_LUA_MESSAGES]; /* logged, not yet delivered */
  cgl_graph_desc defaults;      /* of new graphs: cg.defaults */
  bool plans;                   /* the plan of each capture is printed */
  struct cgl_lua *next_open;    /* the process's next open state */
} cgl_lua;

/* ---- fields of the table on top ---- */

static inline void cgl_lua_set_number(lua_State *L, const char *name,
                                      double value) {
  lua_pushnumber(L, value);
  lua_setfield(L, -2, name);
}

static inline void cgl_lua_set_text(lua_State *L, const char *name,
                                    const char *text) {
  lua_pushstring(L, text);
  lua_setfield(L, -2, name);
}

static inline void cgl_lua_set_boolean(lua_State *L, const char *name,
                                       bool value) {
  lua_pushboolean(L, value);
  lua_setfield(L, -2, name);
}

#endif
