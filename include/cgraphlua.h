/* cgraphlua: capture, instantiate and replay CUDA graphs, on a GPU or on the
   host device, from C and (through the same core) from LuaJIT.
   Idea: objects are reference counted and opaque; work is asynchronous on
   streams; whatever is issued into a capturing stream becomes a graph node
   and is noted in the graph's recording together with the script line.
   Invariants: a call either does all it says or returns a status and leaves
   the state as it was (and the reason in cgl_last_error); the library never
   prints, exits or jumps; what a graph uses stays alive as long as the graph.
   Objects and places for results are never NULL where nothing says that they
   may be; a stream neither: cgl_stream_default is the default stream.
   Units are bytes and elements as named; sizes are size_t; times are ms. */
#ifndef CGRAPHLUA_H
#define CGRAPHLUA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CGL_VERSION "0.1.0"
#ifndef CGL_API
#define CGL_API __attribute__((visibility("default")))
#endif

/* ---- status and errors --------------------------------------------------- */

/* 0: success.  Positive: the CUDA driver's own code (CUresult).  Negative: one
   of these. */
#define CGL_ERRORS(X)                                                   \
  X(CGL_ERROR_INVALID_ARGUMENT, -1, "invalid argument")                 \
  X(CGL_ERROR_RELEASED, -2, "the object was released")                  \
  X(CGL_ERROR_NO_MEMORY, -3, "out of host memory")                      \
  X(CGL_ERROR_NO_DEVICE, -4, "no such device")                          \
  X(CGL_ERROR_WRONG_DEVICE, -5, "the object belongs to another device") \
  X(CGL_ERROR_COMPILE, -6, "the kernel source does not compile")        \
  X(CGL_ERROR_NO_COMPILER, -7, "no compiler was found")                 \
  X(CGL_ERROR_ARGUMENT_COUNT, -8, "wrong number of kernel arguments")   \
  X(CGL_ERROR_ARGUMENT_TYPE, -9, "wrong type of a kernel argument")     \
  X(CGL_ERROR_ARGUMENT_RANGE, -10, "a kernel argument is out of range") \
  X(CGL_ERROR_CAPTURE_STATE, -11, "not in this state of a capture")     \
  X(CGL_ERROR_NOT_CAPTURED, -12, "the graph holds no capture")          \
  X(CGL_ERROR_NOT_FOUND, -13, "not found")                              \
  X(CGL_ERROR_SYSTEM, -14, "a system call failed")                      \
  X(CGL_ERROR_HOOK, -15, "a hook failed")                               \
  X(CGL_ERROR_ORDER, -16, "graphs that share a pool, out of order")

enum {
  CGL_OK = 0,
#define X(name, code, text) name = code,
  CGL_ERRORS(X)
#undef X
};
typedef int cgl_status;

/* The last failure of the calling thread; texts are never NULL and stay valid
   until the thread's next failure. */
typedef struct cgl_error {
  cgl_status code;
  const char *name;      /* "CUDA_ERROR_...", "CGL_ERROR_..." */
  const char *operation; /* the call that failed, "graph:replay" */
  const char *where;     /* "file:line" that issued it, or "" */
  const char *message;   /* what was wrong, with values */
  const char *hint;      /* what to do, or "" */
  const char *also;      /* what failed afterwards, or "" */
} cgl_error;

CGL_API const cgl_error *cgl_last_error(void);
/* Forgets it: what fails next during a clean-up is no consequence of it. */
CGL_API void cgl_clear_error(void);
/* "CUDA_ERROR_..." or "CGL_ERROR_..." of any status; never NULL. */
CGL_API const char *cgl_status_name(cgl_status status);
/* Where the calling thread is in its script, noted by every call that follows;
   `file` is copied.  NULL: nowhere. */
CGL_API void cgl_set_site(const char *file, int line);
/* The file of it, or NULL: a copy that lives as long as the process, which
   cgl_set_site knows again by its address. */
CGL_API const char *cgl_site_file(void);
/* Messages that are not failures (an empty capture, a cache that cannot be
   written); NULL restores silence.  Called on the thread that caused it. */
typedef void (*cgl_log_function)(void *user, const char *message);
CGL_API void cgl_set_log(cgl_log_function function, void *user);

/* ---- devices and contexts --------------------------------------------------
 */

typedef struct cgl_context cgl_context; /* one opened device */
typedef struct cgl_stream cgl_stream;
typedef struct cgl_event cgl_event;
typedef struct cgl_buffer cgl_buffer;
typedef struct cgl_pinned cgl_pinned;
typedef struct cgl_module cgl_module;
typedef struct cgl_kernel cgl_kernel;
typedef struct cgl_pool cgl_pool;
typedef struct cgl_graph cgl_graph;
typedef struct cgl_checkpoint cgl_checkpoint; /* of a pool */
typedef struct cgl_generator cgl_generator;

/* Every object: _retain adds a reference and returns it, _release drops one
   (NULL is fine).  The last release of an object during a capture only hands
   it over for later, so no release ever breaks a capture. */
#define CGL_OBJECTS(X) \
  X(context)           \
  X(stream)            \
  X(event)             \
  X(buffer)            \
  X(pinned) X(module) X(kernel) X(pool) X(graph) X(generator) X(checkpoint)
#define X(noun)                                              \
  CGL_API cgl_##noun *cgl_##noun##_retain(cgl_##noun *noun); \
  CGL_API void cgl_##noun##_release(cgl_##noun *noun);
CGL_OBJECTS(X)
#undef X

typedef struct cgl_device_info {
  char device[16];    /* "host", "cuda:0": what cgl_context_open takes */
  char name[128];     /* the driver's name of it */
  size_t memory;      /* bytes */
  int compute[2];     /* compute capability, 9.0 */
  int driver_version; /* 13000 is 13.0 */
  int multiprocessors;
  int max_threads_per_block;
} cgl_device_info;

/* Number of devices; the host device is the last one. */
CGL_API int cgl_device_count(void);
CGL_API cgl_status cgl_device_get(int index, cgl_device_info *info);

/* Opens "host", "cuda:N" or "cuda" (= "cuda:0").  NULL or "": what
   $CGRAPHLUA_DEVICE says, else cuda:0, else (with a log message that says why
   there is no GPU) the host device.  The same device gives the same context
   with one more reference.  cuDevicePrimaryCtxRetain */
CGL_API cgl_status cgl_context_open(const char *device, cgl_context **context);
CGL_API const cgl_device_info *cgl_context_device(const cgl_context *context);
/* Waits for all work of the device; refused while a capture is underway in it.
   cuCtxSynchronize */
CGL_API cgl_status cgl_context_synchronize(cgl_context *context);
/* Bytes of the device's memory that nobody has taken, and in all; fine in a
   capture.  cuMemGetInfo */
CGL_API cgl_status cgl_context_memory(cgl_context *context, size_t *available,
                                      size_t *total);
/* The driver table in use, for tests and for calls that this header lacks
   (struct cgl_driver of the sources). */
CGL_API const void *cgl_context_driver(const cgl_context *context);
/* Live objects of the process by noun ("stream", ..., "graph"), and of "all",
   exact where no other thread is making or releasing any; -1 for another
   word. */
CGL_API int64_t cgl_live(const char *noun);

/* ---- streams and events
 * ------------------------------------------------------ */

/* A new non-blocking stream; priority 0 is the least, negative is more urgent
   (clamped).  cuStreamCreateWithPriority */
CGL_API cgl_status cgl_stream_create(cgl_context *context, int priority,
                                     cgl_stream **stream);
/* The context's legacy default stream; captures cannot begin on it. */
CGL_API cgl_status cgl_stream_default(cgl_context *context,
                                      cgl_stream **stream);
/* Borrows an engine's CUstream, which must outlive the object. */
CGL_API cgl_status cgl_stream_from_handle(cgl_context *context, void *custream,
                                          cgl_stream **stream);
/* CUstream.  From now on others may issue work on it, so captures of it ask the
   driver after every operation which nodes are foreign. */
CGL_API void *cgl_stream_handle(cgl_stream *stream);
/* Whether both objects stand for one stream of the driver. */
CGL_API bool cgl_stream_is_same(const cgl_stream *a, const cgl_stream *b);
CGL_API cgl_context *cgl_stream_context(const cgl_stream *stream);
CGL_API bool cgl_stream_is_default(const cgl_stream *stream);
/* Refused inside a capture (a capture runs nothing).  cuStreamSynchronize */
CGL_API cgl_status cgl_stream_synchronize(cgl_stream *stream);
/* *done: all work issued so far has completed.  cuStreamQuery */
CGL_API cgl_status cgl_stream_query(cgl_stream *stream, bool *done);
/* Later work of `stream` waits for what the event's last record covers; from a
   capturing stream's event it forks, into one it joins.  cuStreamWaitEvent */
CGL_API cgl_status cgl_stream_wait_event(cgl_stream *stream, cgl_event *event);
/* The same for everything issued so far on `other`. */
CGL_API cgl_status cgl_stream_wait_stream(cgl_stream *stream,
                                          cgl_stream *other);
/* cuStreamIsCapturing; false for the default stream. */
CGL_API cgl_status cgl_stream_is_capturing(cgl_stream *stream, bool *capturing);

CGL_API cgl_status cgl_event_create(cgl_context *context, bool timing,
                                    cgl_event **event);
CGL_API cgl_status cgl_event_record(cgl_event *event, cgl_stream *stream);
/* Into a capture, as a node of its own: every replay records the event anew,
   and it can be queried, waited for and timed like one recorded outside.
   Refused on a stream that does not capture.  cuEventRecordWithFlags */
CGL_API cgl_status cgl_event_record_external(cgl_event *event,
                                             cgl_stream *stream);
/* A node that waits, in every replay, for the last record made outside of the
   capture or by such a node; no join.  cuStreamWaitEvent */
CGL_API cgl_status cgl_stream_wait_event_external(cgl_stream *stream,
                                                  cgl_event *event);
/* From now on a record or wait of the event on a stream that captures is one
   of these two. */
CGL_API void cgl_event_set_external(cgl_event *event, bool external);
CGL_API cgl_status cgl_event_synchronize(cgl_event *event);
CGL_API cgl_status cgl_event_query(cgl_event *event, bool *done);
/* ms from `from` to `to`; both recorded, completed and with timing. */
CGL_API cgl_status cgl_event_elapsed(cgl_event *from, cgl_event *to, float *ms);
CGL_API void *cgl_event_handle(const cgl_event *event); /* CUevent */

/* ---- memory
 * ------------------------------------------------------------------- */

/* Element types: name, bytes. */
#define CGL_TYPES(X) \
  X(float, 4)        \
  X(double, 8)       \
  X(int8, 1)         \
  X(uint8, 1)        \
  X(int16, 2)        \
  X(uint16, 2)       \
  X(int32, 4)        \
  X(uint32, 4) X(int64, 8) X(uint64, 8) X(half, 2) X(bfloat16, 2) X(bool, 1)

typedef enum cgl_type {
#define X(name, bytes) CGL_TYPE_##name,
  CGL_TYPES(X)
#undef X
      CGL_TYPE_COUNT
} cgl_type;

CGL_API const char *cgl_type_name(cgl_type type);
CGL_API size_t cgl_type_bytes(cgl_type type);
/* Also "int", "uint" and "char"-free aliases are not taken: CGL_TYPE_COUNT for
   an unknown name. */
CGL_API cgl_type cgl_type_from_name(const char *name);

#define CGL_MAX_DIMS 8

/* `count` elements, uninitialized, from the pool that serves `stream`: the
   graph's when the stream is capturing, else the default one; `pool` overrides
   when not NULL. */
CGL_API cgl_status cgl_buffer_create(cgl_stream *stream, cgl_pool *pool,
                                     cgl_type type, size_t count,
                                     cgl_buffer **buffer);
/* Elements [first, first + count) of `base`, which it keeps alive. */
CGL_API cgl_status cgl_buffer_view(cgl_buffer *base, size_t first, size_t count,
                                   cgl_buffer **view);
/* Device memory of somebody else (an engine's), which must outlive it. */
CGL_API cgl_status cgl_buffer_from_address(cgl_context *context,
                                           uint64_t address, cgl_type type,
                                           size_t count, cgl_buffer **buffer);
/* Says that the caller is done with the memory, at the place of cgl_set_site:
   a borrowed address may be gone, for one.  Replays of graphs that check their
   inputs and that use it are refused from then on (once no view of it is left,
   of a buffer; a view retires nothing).  The reference stays the caller's. */
CGL_API void cgl_buffer_retire(cgl_buffer *buffer);
CGL_API void cgl_pinned_retire(cgl_pinned *pinned);
/* Whether a capture has used the buffer's memory. */
CGL_API bool cgl_buffer_is_kept(const cgl_buffer *buffer);
CGL_API cgl_type cgl_buffer_type(const cgl_buffer *buffer);
CGL_API size_t cgl_buffer_count(const cgl_buffer *buffer);
CGL_API size_t cgl_buffer_bytes(const cgl_buffer *buffer);
CGL_API uint64_t cgl_buffer_address(const cgl_buffer *buffer);
CGL_API cgl_context *cgl_buffer_context(const cgl_buffer *buffer);
/* Shape: ndims (at most CGL_MAX_DIMS) extents whose product is the count;
   one dimension until set. */
CGL_API cgl_status cgl_buffer_set_shape(cgl_buffer *buffer,
                                        const size_t *extents, int ndims);
CGL_API int cgl_buffer_shape(const cgl_buffer *buffer,
                             size_t extents[CGL_MAX_DIMS]);
/* Synchronous copies of `bytes` from and to ordinary host memory, in the order
   of `stream`; offset in bytes.  Refused while the stream captures. */
CGL_API cgl_status cgl_buffer_upload(cgl_buffer *buffer, cgl_stream *stream,
                                     size_t offset, const void *data,
                                     size_t bytes);
CGL_API cgl_status cgl_buffer_download(cgl_buffer *buffer, cgl_stream *stream,
                                       size_t offset, void *data, size_t bytes);
/* Asynchronous copies of the whole; counts and types must agree.  Between two
   GPUs: on a stream of one of them, outside captures.  cuMemcpyDtoDAsync,
   cuMemcpyAsync */
CGL_API cgl_status cgl_buffer_copy(cgl_buffer *to, cgl_buffer *from,
                                   cgl_stream *stream);
CGL_API cgl_status cgl_buffer_copy_pinned(cgl_buffer *to, cgl_pinned *from,
                                          cgl_stream *stream);
/* Asynchronously sets every element to the element at `value` (its type's
   bytes). */
CGL_API cgl_status cgl_buffer_fill(cgl_buffer *buffer, cgl_stream *stream,
                                   const void *value);

/* Page-locked host memory, zero-initialized.  cuMemHostAlloc */
CGL_API cgl_status cgl_pinned_create(cgl_context *context, cgl_type type,
                                     size_t count, cgl_pinned **pinned);
CGL_API void *cgl_pinned_data(const cgl_pinned *pinned);
CGL_API cgl_type cgl_pinned_type(const cgl_pinned *pinned);
CGL_API size_t cgl_pinned_count(const cgl_pinned *pinned);
CGL_API cgl_status cgl_pinned_copy(cgl_pinned *to, cgl_buffer *from,
                                   cgl_stream *stream);

typedef struct cgl_pool_stats {
  size_t reserved, reserved_peak;   /* bytes taken from the device */
  size_t allocated, allocated_peak; /* bytes in live blocks */
  uint64_t allocations, frees;      /* since the pool was made */
  uint64_t segments;                /* now */
  uint64_t ordered, refused; /* replays made to wait for another graph of the
                                pool, or refused (CGL_ERROR_ORDER) */
  size_t executables; /* bytes by which the device's free memory fell when the
                         graphs that live now were instantiated; counts those
                         made while cgl_memory_history is on */
} cgl_pool_stats;

/* Memory from somebody else, for a pool that divides it.  Both are called under
   the pool's lock, also in captures, and must not use the pool; they live until
   `end` is called (may be NULL), when the pool and all its blocks are gone. */
typedef struct cgl_allocator {
  /* `bytes` (a multiple of 2 MiB) for work on the CUstream, at a multiple of
     256; 0 or a CUresult. */
  int (*allocate)(void *user, uint64_t *address, size_t bytes, void *custream);
  void (*release)(void *user, uint64_t address, size_t bytes);
  void (*end)(void *user);
  void *user;
} cgl_allocator;

typedef struct cgl_pool_desc {
  size_t max_bytes; /* that it may take from the device; 0: no limit */
  bool no_split;    /* blocks begin and end with pages and are not divided */
  bool use_on_oom;  /* its free memory serves the device's pool, before that
                       one fails */
  bool strict;      /* replays that would overlap are refused, not ordered */
  const cgl_allocator *allocator; /* copied; NULL: the driver's memory */
} cgl_pool_desc;

/* A pool of device memory; lives as long as the object or any block or graph
   of it.  A NULL desc means defaults. */
CGL_API cgl_status cgl_pool_create(cgl_context *context,
                                   const cgl_pool_desc *desc, cgl_pool **pool);
/* Notes which blocks are live.  They stay so while the object lives, even when
   their buffers are released. */
CGL_API cgl_status cgl_pool_checkpoint(cgl_pool *pool,
                                       cgl_checkpoint **checkpoint);
/* Takes back the blocks allocated since: using a buffer that had one is
   CGL_ERROR_RELEASED, and so is a replay of a graph captured into the pool
   since.  What graphs of other pools keep goes when they do.  No other thread
   may use such a buffer meanwhile; refused while a capture into the pool is
   underway. */
CGL_API cgl_status cgl_pool_restore(cgl_pool *pool, cgl_checkpoint *checkpoint);
/* A soft limit: before the pool takes more than `bytes` in all, `function` is
   called on the thread that allocates, and may release buffers and trim; what
   is still missing is taken all the same.  NULL: no limit. */
typedef void (*cgl_pool_limit_function)(void *user, cgl_pool *pool,
                                        size_t reserved, size_t wanted);
CGL_API void cgl_pool_set_limit(cgl_pool *pool, size_t bytes,
                                cgl_pool_limit_function function, void *user);
CGL_API void cgl_pool_get_stats(const cgl_pool *pool, cgl_pool_stats *stats);
/* Returns every page without a live block to the device; *bytes of them.  What
   captures dropped stays while a graph of the pool lives.  cuMemUnmap */
CGL_API cgl_status cgl_pool_trim(cgl_pool *pool, size_t *bytes);
/* What a block of a pool is: held by a buffer; to be had by anybody; to be had
   by work of one stream only until the device is waited for; freed, and still
   written by the replays of graphs; address space without memory. */
#define CGL_BLOCK_STATES(X) \
  X(live)                   \
  X(free)                   \
  X(pending)                \
  X(scratch) X(unmapped)

typedef enum cgl_block_state {
#define X(word) CGL_BLOCK_##word,
  CGL_BLOCK_STATES(X)
#undef X
} cgl_block_state;

typedef struct cgl_segment_info {
  uint64_t address;
  size_t bytes;  /* of address space that has been used */
  size_t mapped; /* bytes of device memory behind it */
} cgl_segment_info;

typedef struct cgl_block_info {
  size_t segment; /* index */
  uint64_t address;
  size_t bytes;
  size_t requested; /* what was asked for; 0 unless live */
  cgl_block_state state;
  uint64_t number;  /* of the allocation, unique in its pool; 0 unless live */
  uint64_t stream;  /* serial of the stream it belongs to; 0: none */
  bool in_capture;  /* allocated while the stream captured */
  const char *file; /* the script's line that allocated it, or "" and 0 */
  int line;
} cgl_block_info;

typedef struct cgl_snapshot {
  size_t nsegments, nblocks;
  const cgl_segment_info *segments; /* by address */
  const cgl_block_info *blocks;     /* by address; they cover the segments */
} cgl_snapshot;

/* "live", "free", ...; never NULL. */
CGL_API const char *cgl_block_state_name(cgl_block_state state);
/* A copy of the pool's segments and blocks as they are now; the caller frees
   it. */
CGL_API cgl_status cgl_pool_snapshot(cgl_pool *pool, cgl_snapshot **snapshot);
CGL_API void cgl_snapshot_free(cgl_snapshot *snapshot);
/* A number that no other pool of the process ever has. */
CGL_API uint64_t cgl_pool_id(const cgl_pool *pool);

typedef struct cgl_pool_picture {
  uint64_t id;
  bool is_default; /* the device's own pool */
  cgl_pool_stats stats;
  cgl_snapshot *snapshot;
} cgl_pool_picture;

typedef struct cgl_memory_snapshot {
  size_t device_free, device_total; /* bytes */
  size_t npools;
  cgl_pool_picture *pools;
} cgl_memory_snapshot;

/* All pools of a device as they are now; the caller frees it.  cuMemGetInfo */
CGL_API cgl_status cgl_context_snapshot(cgl_context *context,
                                        cgl_memory_snapshot **memory);
CGL_API void cgl_memory_snapshot_free(cgl_memory_snapshot *memory);

typedef struct cgl_memory_event {
  double ms;     /* since the history began */
  uint64_t pool; /* cgl_pool_id */
  bool freed;    /* else allocated */
  uint64_t address;
  size_t bytes;
  size_t allocated, reserved; /* of the pool, afterwards */
  const char *file;           /* the line of the allocation, or "" and 0 */
  int line;
} cgl_memory_event;

/* Begins a history of the process's allocations anew, which keeps the latest
   `events`; 0 ends it. */
CGL_API cgl_status cgl_memory_history(size_t events);
/* Copies the latest events (at most `room`), oldest first, and returns how
   many; with a room of 0, how many there are.  Both may be NULL: *lost, events
   that were pushed out, and *ms, the time now. */
CGL_API size_t cgl_memory_events(cgl_memory_event *events, size_t room,
                                 uint64_t *lost, double *ms);
/* The pool that serves allocations outside captures; borrowed. */
CGL_API cgl_pool *cgl_context_pool(cgl_context *context);
/* The pool of page-locked host memory, to look at and to trim; borrowed. */
CGL_API cgl_pool *cgl_context_pinned_pool(cgl_context *context);

/* ---- modules and kernels
 * --------------------------------------------------------- */

typedef struct cgl_module_desc {
  const char *source; /* CUDA C, zero-terminated; or, when `image`: */
  const void *image;  /* cubin or PTX (zero-terminated) */
  size_t image_bytes;
  const char *file; /* the source's name in compiler messages; NULL: the site */
  int line;         /* the line of `file` where the source starts; 0: 1 */
  const char *const *options; /* compiler options, "-DN=4" */
  size_t noptions;
  const char *const *expressions; /* name expressions, "scale<float, 4>" */
  size_t nexpressions;
} cgl_module_desc;

/* Compiles (or takes from the disk cache) and loads.  CGL_ERROR_COMPILE has
   the compiler's text in the message. */
CGL_API cgl_status cgl_module_create(cgl_context *context,
                                     const cgl_module_desc *desc,
                                     cgl_module **module);
/* Names of the kernels, in source order; NULL past the last. */
CGL_API const char *cgl_module_kernel_name(const cgl_module *module,
                                           size_t index);
/* `name`: a kernel or a name expression of the module; NULL: its only one. */
CGL_API cgl_status cgl_module_kernel(cgl_module *module, const char *name,
                                     cgl_kernel **kernel);
/* A __device__ or __constant__ variable as a buffer of `type` (it keeps the
   module alive).  cuModuleGetGlobal */
CGL_API cgl_status cgl_module_global(cgl_module *module, const char *name,
                                     cgl_type type, cgl_buffer **buffer);

typedef enum cgl_arg_kind {
  CGL_ARG_BUFFER,  /* a pointer parameter */
  CGL_ARG_PINNED,  /* a pointer parameter, the device reads host memory */
  CGL_ARG_NULL,    /* a null pointer */
  CGL_ARG_ADDRESS, /* a raw device address */
  CGL_ARG_INT,     /* int64_t: checked against the parameter's range */
  CGL_ARG_UINT,    /* uint64_t */
  CGL_ARG_NUMBER,  /* double: must be whole for an integer parameter */
  CGL_ARG_BOOL,
  CGL_ARG_BYTES,     /* a struct by value: exactly its size */
  CGL_ARG_GENERATOR, /* a cgl_philox parameter: the launch takes a number */
  CGL_ARG_SAME       /* as it is: of cgl_graph_set_params */
} cgl_arg_kind;

typedef struct cgl_arg {
  cgl_arg_kind kind;
  union {
    cgl_buffer *buffer;
    cgl_pinned *pinned;
    cgl_generator *generator;
    uint64_t address;
    int64_t i;
    uint64_t u;
    double number;
    bool boolean;
    struct {
      const void *data;
      size_t size;
    } bytes;
  };
} cgl_arg;

typedef struct cgl_launch {
  uint32_t grid[3];      /* blocks; 0 is taken as 1 */
  uint32_t block[3];     /* threads; 0 is taken as 1 */
  uint32_t shared_bytes; /* dynamic shared memory */
} cgl_launch;

typedef struct cgl_param_info {
  const char *type; /* as spelled in the source, "const float *" */
  const char *name;
  bool pointer;
  bool readonly; /* pointer to const */
  size_t bytes;
} cgl_param_info;

CGL_API const char *cgl_kernel_name(const cgl_kernel *kernel);
CGL_API size_t cgl_kernel_param_count(const cgl_kernel *kernel);
CGL_API cgl_status cgl_kernel_param(const cgl_kernel *kernel, size_t index,
                                    cgl_param_info *info);
/* A block size with good occupancy for one dimension.
   cuOccupancyMaxPotentialBlockSize */
CGL_API cgl_status cgl_kernel_block_size(cgl_kernel *kernel, uint32_t *block);
/* Launches on `stream`; everything is checked before the driver sees it, so a
   refused launch does not break a capture.  cuLaunchKernel */
CGL_API cgl_status cgl_kernel_launch(cgl_kernel *kernel, cgl_stream *stream,
                                     const cgl_launch *launch,
                                     const cgl_arg *args, size_t nargs);

/* ---- graphs
 * ------------------------------------------------------------------------ */

typedef enum cgl_capture_mode {
  CGL_CAPTURE_DEFAULT, /* thread_local */
  CGL_CAPTURE_GLOBAL,
  CGL_CAPTURE_THREAD_LOCAL,
  CGL_CAPTURE_RELAXED
} cgl_capture_mode;

/* Whether captures note what cgl_graph_annotate says. */
typedef enum cgl_annotations {
  CGL_ANNOTATIONS_OFF,
  CGL_ANNOTATIONS_ON,
  CGL_ANNOTATIONS_NVTX /* and name NVTX ranges for profilers: of each scope in
                          the capture, and of each replay */
} cgl_annotations;

typedef struct cgl_graph_desc {
  bool keep_graph; /* the template stays; instantiate by hand or at replay */
  cgl_pool *pool;  /* NULL: a private one */
  cgl_capture_mode capture_mode;
  bool unchecked; /* the caller orders replays of graphs that share a pool */
  cgl_annotations annotations;
  bool check_input_liveness; /* refuse to replay once memory that the capture
                                used was given up: cgl_buffer_retire */
} cgl_graph_desc;

/* Nothing is captured yet.  A NULL desc means defaults. */
CGL_API cgl_status cgl_graph_create(cgl_context *context,
                                    const cgl_graph_desc *desc,
                                    cgl_graph **graph);
/* What the next capture will use; desc->pool is borrowed, NULL: private. */
CGL_API void cgl_graph_get_desc(const cgl_graph *graph, cgl_graph_desc *desc);
/* Replaces it (capture_begin's own options); refused while the graph captures
   or holds a capture. */
CGL_API cgl_status cgl_graph_set_desc(cgl_graph *graph,
                                      const cgl_graph_desc *desc);
/* Begins capturing what is issued into `stream`.  cuStreamBeginCapture */
CGL_API cgl_status cgl_graph_capture_begin(cgl_graph *graph,
                                           cgl_stream *stream);
/* Ends it on the same stream and, unless keep_graph, instantiates.  A capture
   that a call broke fails with that call's own status, message and line; the
   end's failure is in `also`.  cuStreamEndCapture */
CGL_API cgl_status cgl_graph_capture_end(cgl_graph *graph);
/* Ends a capture whose result is not wanted; every stream of it is usable
   afterwards, whatever is returned.  Fine when none is underway.  The thread's
   last failure stays: what fails here is added to its `also`. */
CGL_API cgl_status cgl_graph_capture_abandon(cgl_graph *graph);
CGL_API cgl_context *cgl_graph_context(const cgl_graph *graph);
CGL_API bool cgl_graph_is_capturing(const cgl_graph *graph);
/* The stream on which the capture underway began (borrowed), or NULL. */
CGL_API cgl_stream *cgl_graph_capturing_stream(const cgl_graph *graph);
/* The graph that captures `stream` (borrowed), or NULL. */
CGL_API cgl_graph *cgl_stream_capturing_graph(const cgl_stream *stream);
/* A fresh executable from the kept template.  cuGraphInstantiateWithParams */
CGL_API cgl_status cgl_graph_instantiate(cgl_graph *graph);
/* `count` launches on `stream`, asynchronous; on a capturing stream one child
   graph node each.  cuGraphLaunch */
CGL_API cgl_status cgl_graph_replay(cgl_graph *graph, cgl_stream *stream,
                                    uint64_t count);
/* Drops executable, template and recording; the graph can capture again. */
CGL_API cgl_status cgl_graph_reset(cgl_graph *graph);
/* The pool of its captures; CGL_ERROR_NOT_CAPTURED before the first. */
CGL_API cgl_status cgl_graph_pool(cgl_graph *graph, cgl_pool **pool);
/* Every pool that its capture allocated from, its own first; *pool is NULL
   past the last. */
CGL_API cgl_status cgl_graph_pool_at(cgl_graph *graph, size_t index,
                                     cgl_pool **pool);
/* The driver's handles: the template needs keep_graph, the executable an
   instantiation.  Borrowed until reset or instantiation. */
CGL_API cgl_status cgl_graph_raw_graph(cgl_graph *graph, void **cugraph);
CGL_API cgl_status cgl_graph_raw_exec(cgl_graph *graph, void **cuexec);
/* *writes: a replay may write to the buffer's memory.  Known of what was issued
   through this library with buffers and pinned memory as arguments; of child
   graphs and foreign nodes it is assumed. */
CGL_API cgl_status cgl_graph_writes(const cgl_graph *graph,
                                    const cgl_buffer *buffer, bool *writes);
/* Writes a Graphviz file of the recording: kernel names, sizes, script lines,
   annotations; a path that ends in ".svg" is drawn by Graphviz's dot, a child
   process. */
CGL_API cgl_status cgl_graph_debug_dump(cgl_graph *graph, const char *path);

typedef enum cgl_annotation_kind {
  CGL_ANNOTATION_TEXT,
  CGL_ANNOTATION_NUMBER,
  CGL_ANNOTATION_BOOLEAN /* number: 0 or 1 */
} cgl_annotation_kind;

typedef struct cgl_annotation {
  const char *key; /* "label" is what pictures show first */
  cgl_annotation_kind kind;
  const char *text;
  double number;
} cgl_annotation;

/* What the graph captures from now on has these annotations (copied), beside
   those of the scopes around, of which they replace equal keys; until the end
   of *scope, or the capture's.  Nothing (*scope is 0) when the graph does not
   capture, or its option `annotations` is off. */
CGL_API cgl_status cgl_graph_annotate(cgl_graph *graph,
                                      const cgl_annotation *annotations,
                                      size_t n, uint64_t *scope);
/* Ends a scope and those inside it; nothing for 0 or one that has ended. */
CGL_API void cgl_graph_annotate_end(cgl_graph *graph, uint64_t scope);
/* Takes the annotations off the nodes captured so far. */
CGL_API void cgl_graph_clear_annotations(cgl_graph *graph);

typedef struct cgl_node_info {
  const char *kind; /* "kernel", "memcpy", "memset", "graph", "event_record",
                       "event_wait", "foreign" */
  const char *name; /* the kernel's name, or the operation */
  const char *file; /* script file, or "" */
  int line;         /* script line, or 0 */
  uint32_t grid[3], block[3], shared_bytes;
  bool enabled;  /* replays run it: cgl_graph_set_enabled */
  cgl_type type; /* of a fill's or copy's elements, else CGL_TYPE_COUNT */
  size_t ndependencies;
  const size_t *dependencies; /* indices of nodes, from 0 */
  const char *label;          /* the annotation "label", or NULL */
  size_t nannotations;
  const cgl_annotation *annotations;
} cgl_node_info;

CGL_API cgl_status cgl_graph_node_count(cgl_graph *graph, size_t *count);
/* Texts and arrays are valid until the graph's next capture or reset. */
CGL_API cgl_status cgl_graph_node(cgl_graph *graph, size_t index,
                                  cgl_node_info *info);
/* The kernel of a node (borrowed); NULL when it is none of the caller's: a
   copy, a fill, a child graph, a node of others. */
CGL_API cgl_status cgl_graph_node_kernel(cgl_graph *graph, size_t index,
                                         cgl_kernel **kernel);
/* Gives a kernel's node other arguments, one per parameter, of which
   CGL_ARG_SAME stay (args NULL: all), and another launch (NULL: as it is),
   checked as a launch is; for replays from now on, and for executables and
   child graphs made from now on.  The graph keeps new buffers and lets go of
   those that it no longer uses.  Generators, and buffers that a capture
   allocated from the graph's pool, stay: CGL_ERROR_INVALID_ARGUMENT, as for a
   node without such a kernel; CGL_ERROR_NOT_CAPTURED before the capture's end.
   cuGraphExecKernelNodeSetParams, cuGraphNodeSetParams */
CGL_API cgl_status cgl_graph_set_params(cgl_graph *graph, size_t index,
                                        const cgl_launch *launch,
                                        const cgl_arg *args, size_t nargs);
/* The same for a fill: another element (NULL: as it is) and other memory (NULL:
   as it is) of the same type and count; and for a copy, whose arguments are
   buffers or pinned memory, as they were (NULL or CGL_ARG_SAME: as it is).  A
   fill of eight-byte elements whose halves differ is two nodes, each of which
   takes its half of the element.  cuGraphExecNodeSetParams,
   cuGraphNodeSetParams */
CGL_API cgl_status cgl_graph_set_fill(cgl_graph *graph, size_t index,
                                      cgl_buffer *buffer, const void *value);
CGL_API cgl_status cgl_graph_set_copy(cgl_graph *graph, size_t index,
                                      const cgl_arg *to, const cgl_arg *from);
/* Whether replays from now on run a kernel, copy or fill; what depends on one
   that is off waits for what that one waits for.  Executables made later do as
   this one; a graph with a node that is off is refused as a child, and while
   one is off that writes to memory of the graph's pool, its replays count as
   filling nothing for the other graphs of the pool.  cuGraphNodeSetEnabled */
CGL_API cgl_status cgl_graph_set_enabled(cgl_graph *graph, size_t index,
                                         bool enabled);

/* Points of a graph's life where hooks are called, in the order in which they
   were added: X(constant, text).
   CAPTURE_START: right after a capture began; what it issues is captured.
   CAPTURE_END: the template is whole (cgl_graph_raw_graph) and may still be
   edited; no executable yet.  INSTANTIATE: after each.  REPLAY_START: before
   each launch; one that fails aborts it, and no end hook is called.
   REPLAY_END: after each launch, also one that failed.  DESTROY: once, when
   nothing of the capture can be launched any more: after reset or the graph's
   end, after the last graph that has it as a child, and after captures
   underway; on the thread that brings it about, with a NULL graph; such a hook
   may release objects and call nothing else of cgraphlua. */
#define CGL_HOOK_POINTS(X)                   \
  X(CGL_HOOK_CAPTURE_START, "capture start") \
  X(CGL_HOOK_CAPTURE_END, "capture end")     \
  X(CGL_HOOK_INSTANTIATE, "instantiate")     \
  X(CGL_HOOK_REPLAY_START, "replay start")   \
  X(CGL_HOOK_REPLAY_END, "replay end")       \
  X(CGL_HOOK_DESTROY, "destroy")

typedef enum cgl_hook_point {
#define X(constant, text) constant,
  CGL_HOOK_POINTS(X)
#undef X
} cgl_hook_point;

/* A status other than CGL_OK fails the call that the hook belongs to, and what
   it began is undone. */
typedef cgl_status (*cgl_hook_function)(void *user, cgl_graph *graph);

/* *id (may be NULL) removes it.  A hook may add and remove hooks; those added
   are first called the next time. */
CGL_API cgl_status cgl_graph_add_hook(cgl_graph *graph, cgl_hook_point point,
                                      cgl_hook_function function, void *user,
                                      uint64_t *id);
/* False when the graph has no such hook (any more). */
CGL_API bool cgl_graph_remove_hook(cgl_graph *graph, uint64_t id);

/* ---- random numbers ------------------------------------------------------
 */

/* Philox4x32-10.  A generator holds a state, a seed and an offset on the
   device; every operation that draws takes one number of it.  Replays of a
   graph that draws move the offset by themselves, so each draws anew, and
   captured, eager and replayed draws make one sequence.  Generators may share
   a state.  A generator, and what draws from it, serves one thread at a time;
   its use by several streams is put in order.
   A kernel takes one as a parameter of type cgl_philox and draws with
   cgl_random, cgl_random4, cgl_uniform, cgl_uniform4, cgl_uniform_double,
   cgl_normal, cgl_normal4, cgl_normal_double and cgl_below. */
CGL_API cgl_status cgl_generator_create(cgl_context *context, uint64_t seed,
                                        cgl_generator **generator);
/* Starts over with this seed, at offset 0, from the next operation or replay
   on.  `stream` is the current one: while it captures, or any stream that
   draws from the state, only the seed that is there already is taken, and does
   nothing. */
CGL_API cgl_status cgl_generator_manual_seed(cgl_generator *generator,
                                             cgl_stream *stream, uint64_t seed);
/* The same with a seed below 2^53 from the system.  getrandom */
CGL_API cgl_status cgl_generator_seed(cgl_generator *generator,
                                      cgl_stream *stream, uint64_t *seed);
CGL_API uint64_t cgl_generator_initial_seed(const cgl_generator *generator);
/* How many numbers were taken since the seed; waits for `stream`.  Refused in
   captures.  cuMemcpyDtoHAsync */
CGL_API cgl_status cgl_generator_get_offset(cgl_generator *generator,
                                            cgl_stream *stream,
                                            uint64_t *offset);
CGL_API cgl_status cgl_generator_set_offset(cgl_generator *generator,
                                            cgl_stream *stream,
                                            uint64_t offset);
/* A generator with a copy of the state as it is now; waits for `stream`. */
CGL_API cgl_status cgl_generator_clone_state(cgl_generator *generator,
                                             cgl_stream *stream,
                                             cgl_generator **clone);
/* A generator with the same state; and makes a generator use another's state
   from now on, in a capture too. */
CGL_API cgl_status cgl_generator_graphsafe_get_state(cgl_generator *generator,
                                                     cgl_generator **same);
CGL_API cgl_status cgl_generator_graphsafe_set_state(cgl_generator *generator,
                                                     cgl_generator *other);
/* Keeps the state alive with the graph.  A generator used in a capture does
   so by itself. */
CGL_API cgl_status cgl_graph_register_generator_state(cgl_graph *graph,
                                                      cgl_generator *generator);

/* Asynchronous fills with random numbers, the same bits on every device;
   buffers of float, double, half and bfloat16.  From [low, high), bounds
   rounded to the type. */
CGL_API cgl_status cgl_buffer_uniform(cgl_buffer *buffer,
                                      cgl_generator *generator,
                                      cgl_stream *stream, double low,
                                      double high);
CGL_API cgl_status cgl_buffer_normal(cgl_buffer *buffer,
                                     cgl_generator *generator,
                                     cgl_stream *stream, double mean,
                                     double deviation);
/* Whole numbers: each of low .. low + count - 1 alike (0: 2^64 of them);
   buffers of integers and bool. */
CGL_API cgl_status cgl_buffer_random(cgl_buffer *buffer,
                                     cgl_generator *generator,
                                     cgl_stream *stream, int64_t low,
                                     uint64_t count);

/* ---- fault injection, for tests
 * ------------------------------------------------------ */

/* Makes the k-th driver call from now on fail with `code` (0: 2, out of
   memory); k = 0 disarms.  Only when the process runs with
   CGRAPHLUA_FAULT=1, which puts the fault table under every context. */
CGL_API cgl_status cgl_fault(uint64_t k, int code);
/* Calls counted since, and the entry point that was made to fail, or NULL. */
CGL_API uint64_t cgl_fault_count(const char **hit);

#ifdef __cplusplus
}
#endif

#endif
