/* The pools that memory comes from: made, limited, restored and looked at. */
#ifndef CGRAPHLUA_POOL_H
#define CGRAPHLUA_POOL_H

#include "base.h"

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

#endif
