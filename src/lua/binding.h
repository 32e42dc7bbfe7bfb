/* What the files of the Lua room share.
   Idea: a userdata holds one pointer to a reference-counted core object (NULL:
   released) and every function of the module carries the state of its Lua
   state as upvalue 1.  A binding function enters (which names the operation
   and, for what reaches a device, the script's line), reads its arguments
   through the checked readers, makes one core call, and hands the status to
   cgl_lua_done.
   Invariant: nothing that can raise runs while a core object is held outside
   a userdata or the state; the current stream and pool change only in a
   scope, which is left however the function in it ends; __gc never raises. */
#ifndef CGL_LUA_BINDING_H
#define CGL_LUA_BINDING_H

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
  X(pinned) X(module) X(kernel) X(pool) X(graph) X(generator) X(checkpoint)

typedef enum cgl_lua_kind {
#define X(noun) CGL_LUA_##noun,
  CGL_LUA_KINDS(X)
#undef X
      CGL_LUA_KIND_COUNT
} cgl_lua_kind;

enum {
  CGL_LUA_TCDATA = 10,    /* lua_type of an FFI object */
  CGL_LUA_HIDDEN = 16,    /* files of the Lua half */
  CGL_LUA_MESSAGES = 16,  /* log messages that wait */
  CGL_LUA_SITES = 4,      /* files whose names are known */
  CGL_LUA_WHOLE_BITS = 53 /* whole numbers that a double holds */
};
/* CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED: not while a capture is underway. */
enum { CGL_LUA_CAPTURE_UNDERWAY = 900 };
#define CGL_LUA_MAX_WHOLE (INT64_C(1) << CGL_LUA_WHOLE_BITS)

/* What to put back when a scope ends; lives on the C stack. */
typedef struct cgl_lua_scope {
  struct cgl_lua_scope *outer;
  cgl_stream *stream; /* owned: the current stream outside */
  cgl_pool *pool;     /* owned: the pool in use outside, or NULL */
} cgl_lua_scope;

/* Streams of a device: one for captures, and the default one. */
typedef struct cgl_lua_side {
  struct cgl_lua_side *next;
  cgl_context *context;       /* owned */
  cgl_stream *stream, *plain; /* owned; NULL until needed */
} cgl_lua_side;

/* The default generator of one device. */
typedef struct cgl_lua_default {
  struct cgl_lua_default *next;
  cgl_context *context;     /* the generator's */
  cgl_generator *generator; /* owned */
} cgl_lua_default;

/* One per Lua state; a userdata, so that lua_close ends it. */
typedef struct cgl_lua {
  int metatable_refs[CGL_LUA_KIND_COUNT]; /* in the registry */
  int error_ref;                          /* errors' metatable */
  int ffi_ref;                            /* the Lua half's FFI helpers */
  int log_ref;                            /* on_log's function */
  int breath_ref;                         /* a chunk that does nothing */
  const void *type_texts[CGL_TYPE_COUNT]; /* as Lua interns them */
  cgl_type last_type;                     /* the one named last */
  struct {                                /* the chunks of the last sites */
    const char *source; /* as Lua interns it; kept in the registry */
    int ref;
    const char *file; /* the core's name of it */
  } sites[CGL_LUA_SITES];
  unsigned next_site;                 /* where the next new one goes */
  const char *hidden[CGL_LUA_HIDDEN]; /* chunk names of the Lua half */
  int nhidden;
  const char *operation; /* the call underway, "buffer:upload" */
  int blame;             /* argument whose option is being read, or 0 */
  cgl_stream *stream;    /* owned: the current one; NULL until needed */
  cgl_pool *pool;        /* owned: pool:use's, or NULL */
  cgl_lua_scope *scope;  /* the innermost */
  cgl_lua_side *sides;
  cgl_lua_default *defaults;
  char *messages[CGL_LUA_MESSAGES]; /* owned: logged, not yet delivered */
  atomic_int nmessages;
  struct cgl_lua *next_open; /* of the process */
  bool closed;               /* lua_close has passed here */
  int handle_ref;            /* metatable of hooks' handles */
  int ends_ref, nends;       /* what graphs left behind during a capture */
  int last_slot;             /* numbers hooks and what waits for an end */
} cgl_lua;

/* ---- state.c ---- */

/* Makes the state and leaves its userdata on the stack. */
cgl_lua *cgl_lua_open(lua_State *L);
/* Names the operation of the function that runs and returns its state. */
cgl_lua *cgl_lua_enter(lua_State *L, const char *operation);
/* The same, and tells the core the script's line: for what a device sees. */
cgl_lua *cgl_lua_issue(lua_State *L, const char *operation);
/* Tells the core the script's line. */
void cgl_lua_site(lua_State *L, cgl_lua *S);
/* Lets a hook run that waits to stop the script: for long loops in C. */
void cgl_lua_breathe(lua_State *L, cgl_lua *S);
/* The script's own frame: *source as Lua has it, or false when there is none
   (the Lua half and C functions are passed over). */
bool cgl_lua_frame(lua_State *L, const cgl_lua *S, lua_Debug *ar);
/* Pushes "file:line", or "" when no script called. */
void cgl_lua_push_where(lua_State *L, const cgl_lua *S);
/* The Lua half's own frames are not the script: cg's hide(). */
int cgl_lua_hide(lua_State *L);

/* The current stream, borrowed; opens the default device when there is none
   yet. */
cgl_stream *cgl_lua_stream(lua_State *L, cgl_lua *S);
/* The device of the current stream, borrowed. */
cgl_context *cgl_lua_context(lua_State *L, cgl_lua *S);
/* Makes the default stream of a device current; "" is the default device. */
void cgl_lua_select(lua_State *L, cgl_lua *S, const char *device);
/* The stream that captures on a device use, borrowed. */
cgl_stream *cgl_lua_side_stream(lua_State *L, cgl_lua *S, cgl_context *context);
/* The current stream when it is of this device, else the device's default
   stream; borrowed. */
cgl_stream *cgl_lua_stream_of(lua_State *L, cgl_lua *S, cgl_context *context);
/* Releases the current stream, the side streams and the default generators;
   they come back when they are needed. */
void cgl_lua_forget(cgl_lua *S);
/* Calls the function below `nargs` arguments with `stream` (or the current
   one) and `pool` (or the current one) current, and puts both back; returns
   lua_pcall's status. */
int cgl_lua_within(lua_State *L, cgl_lua *S, cgl_stream *stream, cgl_pool *pool,
                   int nargs);
/* A message of this state's own for on_log's function. */
void cgl_lua_log(lua_State *L, cgl_lua *S, const char *message);
/* Hands waiting log messages to on_log's function. */
void cgl_lua_deliver(lua_State *L, cgl_lua *S);
/* on_log(fn): the function that gets messages, nil for silence. */
int cgl_lua_on_log(lua_State *L);

/* ---- error.c ---- */

/* Builds the metatable of error objects. */
void cgl_lua_open_errors(lua_State *L, cgl_lua *S);
/* Raises the calling thread's last core failure as an error object. */
int cgl_lua_fail(lua_State *L, cgl_lua *S);
/* Hangs the thread's last core failure as what followed on the error value on
   top, when it is an error object; another value stays as it is, and the
   failure goes to on_log's function. */
void cgl_lua_also(lua_State *L, cgl_lua *S);
/* Raises an error object of our own. */
int cgl_lua_raise(lua_State *L, cgl_lua *S, cgl_status code, const char *hint,
                  const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Raises "bad argument #index to 'operation' (...)", with the script's line;
   an index as on the stack. */
int cgl_lua_bad(lua_State *L, cgl_lua *S, int index, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* True after a collection that may have freed what an allocation with this
   status lacked: try once more. */
bool cgl_lua_collected(lua_State *L, cgl_lua *S, cgl_status status);
/* Makes a core call, with such a second try, and raises its failure. */
#define cgl_lua_try(L, S, call)         \
  do {                                  \
    cgl_status tried = (call);          \
    if (cgl_lua_collected(L, S, tried)) \
      tried = (call);                   \
    cgl_lua_done(L, S, tried);          \
  } while (0)

/* Collects all garbage. */
void cgl_lua_collect(lua_State *L, cgl_lua *S);

/* The border: every core status passes here. */
static inline void cgl_lua_done(lua_State *L, cgl_lua *S, cgl_status status) {
  if (status)
    cgl_lua_fail(L, S);
  if (S->nmessages)
    cgl_lua_deliver(L, S);
}

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

/* ---- object.c ---- */

typedef struct cgl_lua_type {
  const luaL_Reg *methods;
  const luaL_Reg *metamethods; /* beyond the common ones, or NULL */
  /* Pushes the value of a field, or returns 0; NULL: only methods. */
  int (*field)(lua_State *L, cgl_lua *S, void *object, const char *name);
  const char *const *fields; /* names that `field` knows, or NULL */
  /* Writes what tostring shows after the type's name. */
  void (*describe)(void *object, char *text, size_t room);
} cgl_lua_type;

/* What a userdata holds.  The tag tells the kind in fewer calls of Lua's API
   than a metatable does; nobody else's userdata holds such an address. */
typedef struct cgl_lua_box {
  void *object;    /* NULL: released */
  const char *tag; /* &cgl_lua_tags[kind] */
  uint8_t mark;    /* the kind's own; 0 at first */
  bool hooked;     /* a graph: has an environment of its own; hooks.c */
} cgl_lua_box;

extern const char cgl_lua_tags[CGL_LUA_KIND_COUNT];

/* Builds the metatable of a kind. */
void cgl_lua_register(lua_State *L, cgl_lua *S, cgl_lua_kind kind,
                      const cgl_lua_type *type);
const char *cgl_lua_kind_name(cgl_lua_kind kind);
/* What a message calls a value: "cgraphlua.buffer", or Lua's own word. */
const char *cgl_lua_typename(lua_State *L, int index);
/* Pushes a userdata that holds nothing yet; fill the slot with a reference. */
void *cgl_lua_new(lua_State *L, cgl_lua *S, cgl_lua_kind kind);
/* The memory of a userdata of ours; NULL of any other value. */
static inline cgl_lua_box *cgl_lua_box_at(lua_State *L, int index) {
  cgl_lua_box *box = lua_touserdata(L, index);
  /* In this order: the length of a number would make it a string. */
  if (!box || lua_objlen(L, index) != sizeof *box)
    return NULL;
  uintptr_t kind = (uintptr_t)box->tag - (uintptr_t)cgl_lua_tags;
  return kind < CGL_LUA_KIND_COUNT ? box : NULL;
}
/* Is the value of this kind, released or not? */
bool cgl_lua_is(lua_State *L, int index, cgl_lua_kind kind);
/* What to do instead of using what was released. */
extern const char cgl_lua_released_hint[];
/* The object of a userdata; raises for another type or a released one. */
void *cgl_lua_check(lua_State *L, cgl_lua *S, int index, cgl_lua_kind kind);

/* Adds methods to a kind that is registered. */
void cgl_lua_methods(lua_State *L, cgl_lua *S, cgl_lua_kind kind,
                     const luaL_Reg *methods);

/* ---- hooks.c ---- */

/* A core call that may run hooks of the graph at index 1; on the C stack. */
typedef struct cgl_lua_call {
  struct cgl_lua_call *outer;
  lua_State *L;
  cgl_lua *S;
  cgl_graph *graph;
  cgl_stream *stream; /* current in the hooks, NULL: as it is */
  int raised;         /* where the first hook's error value is, or 0 */
  int depth;          /* of such calls */
} cgl_lua_call;

extern const luaL_Reg cgl_lua_hook_methods[];
void cgl_lua_open_hooks(lua_State *L, cgl_lua *S);
/* Brackets the core call; end is cgl_lua_done, or raises what a hook raised. */
void cgl_lua_call_begin(lua_State *L, cgl_lua *S, cgl_lua_call *call,
                        cgl_graph *graph, cgl_stream *stream);
void cgl_lua_call_end(cgl_lua_call *call, cgl_status status);
/* Before what `graph`, at index 1 or just taken from there, captured goes:
   calls its destroy callbacks and drops what it retains, or puts that off while
   a capture is underway.  Never raises. */
void cgl_lua_bury(lua_State *L, cgl_lua *S, const cgl_graph *graph,
                  bool collected);
/* Does what was put off, unless a capture is underway still. */
void cgl_lua_settle(lua_State *L, cgl_lua *S);

/* ---- kernel.c ---- */

enum { CGL_LUA_MAX_ARGS = 256 };
/* The value at `index` (absolute) as argument `number`, from 1, of a kernel;
   what it points to is borrowed from there. */
void cgl_lua_argument(lua_State *L, cgl_lua *S, const cgl_kernel *kernel,
                      int index, int number, cgl_arg *arg);

/* ---- change.c ---- */

extern const luaL_Reg cgl_lua_change_methods[];

/* ---- inside.c ---- */

extern const luaL_Reg cgl_lua_inside_methods[], cgl_lua_inside_functions[];

/* ---- args.c ---- */

/* The shortest of Lua's and the exact spelling that means x. */
enum { CGL_LUA_NUMBER_ROOM = 40 };
void cgl_lua_number_text(double x, char text[CGL_LUA_NUMBER_ROOM]);
/* A whole number from min to max (at most 2^53 away from 0). */
int64_t cgl_lua_integer(lua_State *L, cgl_lua *S, int index, const char *what,
                        int64_t min, int64_t max);
/* A string of any bytes; without `bytes` one that has no zero byte. */
const char *cgl_lua_string(lua_State *L, cgl_lua *S, int index,
                           const char *what, size_t *bytes);
void cgl_lua_function(lua_State *L, cgl_lua *S, int index);
/* A boolean, nil is `otherwise`. */
bool cgl_lua_boolean(lua_State *L, cgl_lua *S, int index, const char *what,
                     bool otherwise);
/* Index of a string in a NULL-terminated list. */
int cgl_lua_choice(lua_State *L, cgl_lua *S, int index, const char *what,
                   const char *const *names);
cgl_type cgl_lua_type_name(lua_State *L, cgl_lua *S, int index);
/* A count or a list of extents; returns the number of elements. */
size_t cgl_lua_shape(lua_State *L, cgl_lua *S, int index, size_t *extents,
                     int *ndims);
/* A plain number from 1 on, as nearly every size is; false for all else. */
static inline bool cgl_lua_size(lua_State *L, int index, uint32_t *size) {
  if (lua_type(L, index) != LUA_TNUMBER)
    return false;
  double x = lua_tonumber(L, index);
  *size = x >= 1 && x <= UINT32_MAX ? (uint32_t)x : 0;
  return *size && *size == x;
}
/* Three sizes from a number or {x, y, z}; keys in `known` may be there too. */
void cgl_lua_sizes(lua_State *L, cgl_lua *S, int index, const char *what,
                   uint32_t sizes[3], const char *const *known);
/* An option table or nothing; raises for keys that are not in `known`. */
bool cgl_lua_options(lua_State *L, cgl_lua *S, int index,
                     const char *const *known);
/* Pushes option `name` and returns true; false (nothing pushed) when there is
   no table or it is nil. */
bool cgl_lua_option(lua_State *L, int index, const char *name);
/* One option, checked; `otherwise` (0, NULL) when it is not there.  Objects
   and strings are borrowed from the table. */
bool cgl_lua_option_boolean(lua_State *L, cgl_lua *S, int index,
                            const char *name, bool otherwise);
int64_t cgl_lua_option_integer(lua_State *L, cgl_lua *S, int index,
                               const char *name, int64_t min, int64_t max,
                               int64_t otherwise);
int cgl_lua_option_choice(lua_State *L, cgl_lua *S, int index, const char *name,
                          const char *const *names, int otherwise);
const char *cgl_lua_option_string(lua_State *L, cgl_lua *S, int index,
                                  const char *name);
void *cgl_lua_option_object(lua_State *L, cgl_lua *S, int index,
                            const char *name, cgl_lua_kind kind);
/* A device address from light userdata, a pointer or a number. */
uint64_t cgl_lua_address(lua_State *L, cgl_lua *S, int index);

/* ---- data.c ---- */

typedef enum cgl_lua_cdata_kind {
  CGL_LUA_CDATA_INT,
  CGL_LUA_CDATA_UINT,
  CGL_LUA_CDATA_NUMBER,
  CGL_LUA_CDATA_POINTER,
  CGL_LUA_CDATA_BYTES /* an array or a struct */
} cgl_lua_cdata_kind;

typedef struct cgl_lua_cdata {
  cgl_lua_cdata_kind kind;
  int64_t i;
  uint64_t u;
  double number;
  void *address; /* of the bytes, or the pointer's value */
  size_t size;   /* bytes */
} cgl_lua_cdata;

/* Takes an FFI object apart, with the Lua half's help. */
void cgl_lua_cdata_read(lua_State *L, cgl_lua *S, int index,
                        cgl_lua_cdata *data);
/* Raises when an FFI array holds numbers of another type (signs aside); bytes
   and structs are taken as they are. */
void cgl_lua_cdata_elements(lua_State *L, cgl_lua *S, int index, cgl_type type);
/* Pushes an FFI helper; raises when the Lua half did not give any. */
void cgl_lua_ffi(lua_State *L, cgl_lua *S, const char *name);

typedef struct cgl_lua_data {
  const void *bytes; /* borrowed from the value, or from what was pushed */
  size_t count;      /* elements */
  size_t extents[CGL_MAX_DIMS];
  int ndims;
} cgl_lua_data;

/* Elements of a type from a table (lists of lists have more dimensions), a
   string of raw bytes or an FFI array; may push one scratch value. */
void cgl_lua_data_read(lua_State *L, cgl_lua *S, int index, cgl_type type,
                       cgl_lua_data *data);
/* One element, from the value at `index`. */
void cgl_lua_data_value(lua_State *L, cgl_lua *S, int index, cgl_type type,
                        void *element);
/* Writes elements into the list at `index` (1 .. count). */
void cgl_lua_data_push(lua_State *L, cgl_lua *S, int index, cgl_type type,
                       const void *bytes, size_t count);

/* ---- one file per type ---- */

/* Each adds its metatable and its functions to the module's table, which is
   on top of the stack, above the state's userdata. */
void cgl_lua_open_stream(lua_State *L, cgl_lua *S);
void cgl_lua_open_event(lua_State *L, cgl_lua *S);
void cgl_lua_open_buffer(lua_State *L, cgl_lua *S);
void cgl_lua_open_pinned(lua_State *L, cgl_lua *S);
void cgl_lua_open_module(lua_State *L, cgl_lua *S);
void cgl_lua_open_kernel(lua_State *L, cgl_lua *S);
void cgl_lua_open_pool(lua_State *L, cgl_lua *S);
void cgl_lua_open_checkpoint(lua_State *L, cgl_lua *S);
void cgl_lua_open_graph(lua_State *L, cgl_lua *S);
void cgl_lua_open_generator(lua_State *L, cgl_lua *S);
void cgl_lua_open_memory(lua_State *L, cgl_lua *S);
/* memory.c: pool:snapshot, and the table of pool:stats. */
int cgl_lua_pool_snapshot(lua_State *L);
void cgl_lua_push_pool_stats(lua_State *L, const cgl_pool_stats *stats);
/* Adds functions to the table on top; each gets the state as upvalue 1. */
void cgl_lua_functions(lua_State *L, const luaL_Reg *functions);

/* The option `external` of a record or a wait, from a table or nothing. */
bool cgl_lua_external(lua_State *L, cgl_lua *S, int index);
/* The same for record([object] [, opts]), whose object may be left out: it is
   nil at 2 then. */
bool cgl_lua_external_record(lua_State *L, cgl_lua *S);
/* generator.c: methods of buffers and graphs. */
int cgl_lua_buffer_uniform(lua_State *L);
int cgl_lua_buffer_normal(lua_State *L);
int cgl_lua_buffer_random(lua_State *L);
int cgl_lua_graph_register_generator_state(lua_State *L);

int luaopen_cgraphlua_core(lua_State *L);

#endif
