/* Pools of device memory: creation, limits, checkpoints, statistics, snapshots
   and the history of allocations. */
#ifndef CGRAPHLUA_POOL_H
#define CGRAPHLUA_POOL_H

#include "base.h"

typedef struct cgl_pool_stats {
  size_t reserved, reserved_peak;   /* bytes taken from the device */
  size_t allocated, allocated_peak; /* bytes in live blocks */
  uint64_t allocations, frees;      /* since the pool was made */
  uint64_t segments;                /* now */
  uint64_t ordered, refused; /* replays that waited for another graph of the
                                pool; replays refused with CGL_ERROR_ORDER */
  size_t executables; /* bytes by which the device's free memory fell when the
                         live graphs were instantiated; counts only graphs
                         instantiated while cgl_memory_history is on */
} cgl_pool_stats;

/* An engine's memory, which a pool divides.  `allocate` and `release` are
   called under the pool's lock, also in captures, and must not use the pool.
   The functions and `user` must stay valid until `end` is called. */
typedef struct cgl_allocator {
  /* Allocates `bytes` (a multiple of 2 MiB), at a multiple of 256, for work on
     the CUstream.  Returns 0 or a CUresult. */
  int (*allocate)(void *user, uint64_t *address, size_t bytes, void *custream);
  /* Frees what `allocate` gave. */
  void (*release)(void *user, uint64_t address, size_t bytes);
  /* The pool and all its blocks are gone.  May be NULL. */
  void (*end)(void *user);
  void *user;
} cgl_allocator;

typedef struct cgl_pool_desc {
  size_t max_bytes; /* most bytes it may take from the device; 0: no limit */
  bool no_split;    /* blocks begin and end with pages and are not divided */
  bool use_on_oom;  /* its free memory serves the device's own pool, before an
                       allocation there fails */
  bool strict;      /* replays that would overlap are refused, not ordered */
  const cgl_allocator *allocator; /* copied; NULL: the driver's memory */
} cgl_pool_desc;

/* Creates a pool of device memory.  It lives while its object, one of its
   blocks or one of its graphs lives.  `desc` is borrowed during the call; NULL
   means defaults.  The caller owns the reference. */
CGL_API cgl_status cgl_pool_create(cgl_context *context,
                                   const cgl_pool_desc *desc, cgl_pool **pool);
/* Notes which blocks are live.  These blocks stay live while the checkpoint
   lives, even when their buffers are released.  CGL_ERROR_CAPTURE_STATE while a
   capture into the pool is underway. */
CGL_API cgl_status cgl_pool_checkpoint(cgl_pool *pool,
                                       cgl_checkpoint **checkpoint);
/* Takes back the blocks that were allocated since the checkpoint.  Afterwards,
   CGL_ERROR_RELEASED is the answer to any use of a buffer that had such a
   block, and to a replay of a graph that was captured into the pool since.
   Memory that a graph of another pool keeps is freed with that graph.  No other
   thread may use such a buffer during the call.  CGL_ERROR_CAPTURE_STATE while
   a capture into the pool is underway. */
CGL_API cgl_status cgl_pool_restore(cgl_pool *pool, cgl_checkpoint *checkpoint);
/* Sets a soft limit.  Before the pool takes more than `bytes` in all, it calls
   `function` on the thread that allocates, with the bytes reserved and the
   bytes wanted.  The function may release buffers and trim pools.  Memory that
   is still missing afterwards is taken nevertheless.  NULL: no limit. */
typedef void (*cgl_pool_limit_function)(void *user, cgl_pool *pool,
                                        size_t reserved, size_t wanted);
CGL_API void cgl_pool_set_limit(cgl_pool *pool, size_t bytes,
                                cgl_pool_limit_function function, void *user);
/* Copies the pool's statistics. */
CGL_API void cgl_pool_get_stats(const cgl_pool *pool, cgl_pool_stats *stats);
/* Waits for the device, and returns every page without a live block to it;
   *bytes (may be NULL) is their size.  Scratch blocks stay while a graph of the
   pool lives.  CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED while a capture is
   underway.  cuCtxSynchronize, cuMemUnmap, cuMemRelease */
CGL_API cgl_status cgl_pool_trim(cgl_pool *pool, size_t *bytes);
/* States of a block.
   live: held by a buffer or a checkpoint.
   free: free for any work.
   pending: released, and until the host has waited for its last use, free only
   for work of its stream and of streams that come after it.
   scratch: released by a capture, and written by the replays of graphs.
   unmapped: address space without memory. */
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
  size_t bytes;  /* of the used part of the address space */
  size_t mapped; /* bytes of device memory mapped under it */
} cgl_segment_info;

typedef struct cgl_block_info {
  size_t segment; /* index in the snapshot's segments */
  uint64_t address;
  size_t bytes;
  size_t requested; /* bytes asked for; 0 unless live */
  cgl_block_state state;
  uint64_t number;  /* of the allocation, unique in its pool; 0 unless live */
  uint64_t stream;  /* serial of the block's stream; 0: no stream */
  bool in_capture;  /* allocated while the stream captured */
  const char *file; /* script file that allocated it, or "" */
  int line;         /* its line, or 0 */
} cgl_block_info;

typedef struct cgl_snapshot {
  size_t nsegments, nblocks;
  const cgl_segment_info *segments; /* in order of address */
  const cgl_block_info *blocks; /* in order of address; cover the segments */
} cgl_snapshot;

/* The name of a state, "live", "free"; never NULL. */
CGL_API const char *cgl_block_state_name(cgl_block_state state);
/* Copies the pool's segments and blocks as they are now.  The caller frees the
   copy with cgl_snapshot_free, which accepts NULL. */
CGL_API cgl_status cgl_pool_snapshot(cgl_pool *pool, cgl_snapshot **snapshot);
CGL_API void cgl_snapshot_free(cgl_snapshot *snapshot);
/* The pool's number, which no other pool of the process ever has. */
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

/* Copies the state of all pools of a device.  The caller frees the copy with
   cgl_memory_snapshot_free, which accepts NULL.  cuMemGetInfo */
CGL_API cgl_status cgl_context_snapshot(cgl_context *context,
                                        cgl_memory_snapshot **memory);
CGL_API void cgl_memory_snapshot_free(cgl_memory_snapshot *memory);

typedef struct cgl_memory_event {
  double ms;     /* since the history began */
  uint64_t pool; /* cgl_pool_id */
  bool freed;    /* false: allocated */
  uint64_t address;
  size_t bytes;
  size_t allocated, reserved; /* bytes of the pool, after the event */
  const char *file;           /* script file of the allocation, or "" */
  int line;                   /* its line, or 0 */
} cgl_memory_event;

/* Starts a new history of the process's allocations, which keeps the latest
   `events`.  0 ends the history. */
CGL_API cgl_status cgl_memory_history(size_t events);
/* Copies the latest events, at most `room`, oldest first, and returns their
   number; with a room of 0 it returns how many there are.  *lost is the number
   of events that the history no longer has, and *ms the time now; both may be
   NULL. */
CGL_API size_t cgl_memory_events(cgl_memory_event *events, size_t room,
                                 uint64_t *lost, double *ms);
/* Bytes that objects hold: live buffers and pinned memory, and what pools with
   live graphs reserved for captures.  For hosts whose objects a garbage
   collector releases: collect when much was added. */
CGL_API size_t cgl_context_held(const cgl_context *context);
/* The device's own pool, which serves allocations outside captures; borrowed.
   A reference to it keeps the context. */
CGL_API cgl_pool *cgl_context_pool(cgl_context *context);
/* The device's pool of page-locked host memory, for statistics and trimming;
   likewise. */
CGL_API cgl_pool *cgl_context_pinned_pool(cgl_context *context);

#endif
