/* Pools of device memory, inside.
   Idea: a pool holds physical memory in chunks and moves them about under
   address space that it reserves in large segments; blocks are exact extents
   of that space, in units of 512 bytes.  Freed blocks lie in lanes: one lane
   per answer to "who may have it now".
   Glossary.  granule: the driver's smallest mapping, 2 MiB.  chunk: one handle,
   1 or CHUNK granules.  hole: an extent without memory.  spare: a chunk that
   is mapped nowhere.  to harvest: to unmap chunks that lie wholly in free
   memory of anybody's, for use elsewhere.  lent: an extent whose memory is
   used where its granule is mapped once more; to stitch: to map one once more,
   so that a block may begin or end in it (stitch.c).  to settle: to make
   anybody's what the host has waited for.  scratch: what a capture allocated
   and is free.
   Invariants (cgl_pool_is_valid): the extents of a segment cover it in address
   order without gap or overlap; a hole begins and ends with granules, none of
   which has memory, and all others have; a lent extent lies in one granule;
   every free extent is in one bin of one lane; two neighbours are neither holes
   both nor free in one lane both; allocated = sum of live extents, reserved =
   mapped + spare. */
#ifndef CGL_POOL_POOL_H
#define CGL_POOL_POOL_H

#include "core/base/latch.h"
#include "core/sharing/sharing.h"

enum {
  CGL_POOL_UNIT = 512,
  CGL_POOL_CHUNK = 16,   /* granules */
  CGL_LANE_FIRST = 40,   /* powers of two of a size in units, */
  CGL_LANE_SECOND = 8,   /* each in eighths */
  CGL_POOL_PATIENCE = 32 /* waits before a pool grows instead */
};
/* No request is larger, so that blocks and what they join to have bins. */
#define CGL_POOL_MOST ((size_t)CGL_POOL_UNIT << (CGL_LANE_FIRST - 1))
#define CGL_NOBODY UINT64_MAX /* as a stream's serial */

typedef enum cgl_extent {
  CGL_EXTENT_LIVE,
  CGL_EXTENT_FREE,
  CGL_EXTENT_HOLE,
  CGL_EXTENT_LENT
} cgl_extent;

typedef struct cgl_block {
  struct cgl_segment *segment;
  size_t offset, bytes;                  /* inside the segment */
  struct cgl_block *prev, *next;         /* neighbours by address */
  struct cgl_block *bin_prev, *bin_next; /* free: in a bin; else of all holes,
                                            or of all that is lent */
  struct cgl_lane *lane;                 /* free: which one */
  cgl_extent extent;
  bool captured;         /* live: allocated by a capture into the pool */
  bool dropped, wide;    /* live: held by a checkpoint alone; how it was used */
  struct cgl_lane *home; /* live: where it goes when its own stream alone used
                            it; NULL: unknown */
  cgl_object *owner;     /* live: the buffer that has it; NULL: another */
  void *room;      /* owned: host memory of the buffer that had it last, for the
                      next;      NULL: none.  Of a live one the owner's to set */
  uint64_t stream; /* live: serial of the owner */
  uint64_t free_after; /* free: the wait that makes it anybody's, */
  uint64_t tick;       /* and in a stream's lane when, by its clock */
  uint64_t number;     /* live: of the allocation, unique in the pool */
  size_t requested;    /* live: bytes */
  cgl_site site;       /* live: of the allocation */
} cgl_block;

/* Free extents that the same work may have at once: of `stream` (0: anybody's,
   CGL_NOBODY: nobody's until settled), or, when `scratch`, of captures into
   the pool: of the one underway on `stream` (CGL_NOBODY: several), 0: any.
   What a stream's lane has was used by that stream alone, before it was freed:
   another stream may have it that comes after it, and anybody when the host
   waited for an event after it; both by the clock, which asks nobody. */
typedef struct cgl_lane {
  uint64_t stream;
  bool scratch;
  size_t bytes;         /* of its extents */
  size_t live;          /* blocks whose home it is */
  cgl_clock *clock;     /* of a stream's, watched; NULL: unknown */
  uint64_t oldest;      /* no extent's free_after is below, */
  uint64_t oldest_tick; /* nor its tick */
  uint64_t first;       /* bit i: second[i] is not 0 */
  uint8_t second[CGL_LANE_FIRST];
  cgl_block *bins[CGL_LANE_FIRST][CGL_LANE_SECOND];
  struct cgl_lane *next;
} cgl_lane;

/* Where a granule's memory comes from. */
typedef struct cgl_granule {
  CUmemGenericAllocationHandle handle;
  struct cgl_segment *ring; /* the next mapping of it is granule `ring_at` of
                               that; NULL: there is no other */
  cgl_block *lent;          /* an extent in it that is, if any */
  uint32_t ring_at;
  uint16_t at, of; /* which granule of its chunk; of = 0: a hole */
} cgl_granule;

typedef struct cgl_segment {
  cgl_pool *pool;
  CUdeviceptr base;
  size_t bytes, mapped;  /* of address space; with memory that is not lent */
  cgl_granule *granules; /* NULL: memory of the pool's own allocator */
  cgl_block *first;
  struct cgl_segment *next;
} cgl_segment;

typedef struct cgl_chunk {
  CUmemGenericAllocationHandle handle;
  size_t granules;
} cgl_chunk;

struct cgl_pool {
  cgl_object object;
  cgl_latch lock; /* guards everything below */
  cgl_segment *segments;
  cgl_block *holes, *lent;
  /* lanes that are always there; the others come and go */
  cgl_lane anybody, pending, scratch, shared_scratch;
  cgl_lane *lanes;    /* of a stream each, the last used first */
  cgl_block *records; /* of blocks, unused; linked by next */
  size_t nrecords;    /* of them */
  struct cgl_slab *slabs;
  cgl_chunk *spare;
  size_t nspare, spare_size;
  size_t granularity; /* of the driver's memory, bytes */
  uint64_t opened;    /* other devices that may reach it, a bit each */
  int patience;       /* waits that may yet be made instead of growing */
  cgl_pool_desc desc;
  cgl_allocator allocator; /* desc's, when it has one */
  struct {
    size_t bytes;
    cgl_pool_limit_function function;
    void *user;
    bool asking; /* the function runs */
  } limit;
  cgl_checkpoint *checkpoints; /* that live */
  uint64_t pinned; /* blocks of this number and below are not freed */
  struct cgl_pool *next_pool; /* in the context's list, under its lock */
  bool guard; /* every block's end lies against unmapped memory */
  bool own;   /* the context's, which it does not keep alive */
  bool host;  /* its memory is the host's */
  bool idle;  /* the context's first pool: no block is live and the context is
                 kept all the same; cgl_context_drop */
  atomic_uint_fast64_t used; /* the wait that covers the last replay */
  atomic_int captures; /* whose graphs live: their replays use the scratch */
  atomic_uint_fast64_t capturing; /* serial of the capture underway, or 0 */
  cgl_sharing sharing;            /* replays of its graphs */
  uint64_t id;                    /* unique in the process; never changes */
  atomic_size_t executables;      /* bytes, see cgl_pool_stats */
  cgl_pool_stats stats;
};

/* ---- index.c: under the lock; no driver calls ---- */

/* Makes `count` records certain; false without memory. */
bool cgl_index_reserve(cgl_pool *pool, size_t count);
/* An empty record, from those made certain. */
cgl_block *cgl_index_record(cgl_pool *pool);
void cgl_index_discard(cgl_pool *pool, cgl_block *block);
void cgl_index_end(cgl_pool *pool);
/* The lane of a stream; made when missing, `otherwise` without memory or
   when `otherwise` is NULL and there is none. */
cgl_lane *cgl_index_lane(cgl_pool *pool, uint64_t stream, bool scratch,
                         cgl_lane *otherwise);
/* Makes an extent free in a lane, joined with its neighbours there; the
   joined one is returned. */
cgl_block *cgl_index_insert(cgl_pool *pool, cgl_block *block, cgl_lane *lane);
/* Takes a free extent out of its lane. */
void cgl_index_remove(cgl_pool *pool, cgl_block *block);
/* Makes an extent a hole, joined with its neighbours that are. */
cgl_block *cgl_index_make_hole(cgl_pool *pool, cgl_block *block);
void cgl_index_fill_hole(cgl_pool *pool, cgl_block *block);
/* Cuts an extent that is in no lane and no hole list after `bytes`, into one
   more record; returns the rest. */
cgl_block *cgl_index_cut(cgl_pool *pool, cgl_block *block, size_t bytes);
/* Appends `right`, in no list either, to `left`. */
cgl_block *cgl_index_join(cgl_pool *pool, cgl_block *left, cgl_block *right);
/* The better one for `bytes`, which both (either may be NULL) hold: the one of
   just that size, or the smaller one, or, of two hardly larger, the one at the
   lower address, so that what is free gathers at the upper end. */
cgl_block *cgl_index_better(cgl_block *a, cgl_block *b, size_t bytes);
/* The best extent of a lane that holds `bytes`, or one of the best; NULL when
   there is none. */
cgl_block *cgl_index_find(const cgl_lane *lane, size_t bytes);
/* The same among those that were freed before `tick`; looks at so many. */
cgl_block *cgl_index_find_before(const cgl_lane *lane, size_t bytes,
                                 uint64_t tick);
/* What was freed last of exactly `bytes` into the stream's lane, taken out of
   it, when that is the lane used last; NULL: it takes a look around. */
cgl_block *cgl_index_take_last(cgl_pool *pool, uint64_t stream, bool scratch,
                               size_t bytes);
/* The first extent of the lanes' bins from this size on, and the one after. */
cgl_block *cgl_index_first(const cgl_lane *lane, size_t bytes);
cgl_block *cgl_index_next(const cgl_block *block);
/* Moves all extents of a lane to another. */
void cgl_index_move(cgl_pool *pool, cgl_lane *from, cgl_lane *to);
/* Whether all use of a free extent is known to be over. */
bool cgl_index_is_over(const cgl_block *block);
/* Moves everything that is settled by now to anybody's lane. */
void cgl_index_settle(cgl_pool *pool);

/* ---- pages.c: under the lock ---- */

/* A free extent of at least `bytes` with memory, in no lane: grown from free
   neighbours of anybody's lane or `own` (may be NULL) where that takes least
   memory, which is harvested before it is created.  *rest is the lane of what
   it has beyond `bytes`. */
CUresult cgl_pages_extend(cgl_pool *pool, size_t bytes,
                          const cgl_stream *stream, const cgl_lane *own,
                          const char **entry, cgl_block **block,
                          cgl_lane **rest);
/* Returns chunks that lie wholly in anybody's memory, and segments without
   memory, to the driver; the bytes of them. */
size_t cgl_pages_trim(cgl_pool *pool);
/* Returns everything; the device no longer uses it. */
void cgl_pages_end(cgl_pool *pool);
/* Lets another device reach what is mapped and what will be. */
CUresult cgl_pages_open_to(cgl_pool *pool, CUdevice device);
CUmemAllocationProp cgl_pages_properties(const cgl_pool *pool);
/* Lets all devices that may reach the pool do so at what was mapped there. */
CUresult cgl_pages_open(cgl_pool *pool, CUdeviceptr address, size_t bytes);

/* ---- stitch.c: under the lock ---- */

/* Makes free memory of anybody's, with fewer than `most` granules of hole in
   it, out of what a block of `bytes` may begin and end in; false: there is
   none worth it. */
bool cgl_stitch(cgl_pool *pool, size_t bytes, size_t most);
/* Ends mappings that nothing live and no work has a use for any more: what is
   free at them is so where the granule is mapped otherwise. */
void cgl_stitch_undo(cgl_pool *pool);
/* Granule `at` is unmapped; false when that was the only mapping. */
bool cgl_stitch_forget(cgl_segment *segment, size_t at);

/* ---- object.c ---- */

extern const cgl_object_kind cgl_pool_kind;

/* A pool of the context's own, which does not keep the context alive; ended by
   cgl_pool_destroy_own.  `host`: its memory is the host's. */
cgl_status cgl_pool_create_own(cgl_context *context, const cgl_pool_desc *desc,
                               bool host, cgl_pool **pool);
void cgl_pool_destroy_own(cgl_pool *pool);
/* Work in flight may still use the pool's memory: a replay, or whatever was
   issued before a block was freed. */
bool cgl_pool_is_in_use(const cgl_pool *pool);
/* Returns the memory of a pool that nothing uses, and frees it. */
void cgl_pool_end(cgl_pool *pool);

/* ---- pool.c ---- */

/* A block of at least `bytes` (> 0) for work on `stream`; while a pool has
   blocks they keep it, or the context when the pool is the context's own. */
cgl_status cgl_pool_alloc(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                          const char *operation, cgl_block **block);
/* A block from what is free in the pool, which does not grow and may have lost
   its last reference. */
CUresult cgl_pool_spare_block(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                              cgl_block **block);
/* Takes the block back; `wide`: streams other than the owner used it. */
void cgl_pool_free(cgl_block *block, bool wide);
/* The same without asking checkpoints, under the lock; the joined extent.
 *last: cgl_pool_unkeep follows, without the lock: it was the last block. */
cgl_block *cgl_pool_free_block(cgl_pool *pool, cgl_block *block, bool wide,
                               bool *last);
/* Releases what the pool's blocks kept, now that there are none. */
void cgl_pool_unkeep(cgl_pool *pool);
/* The device has been waited for: what was pending is anybody's now. */
void cgl_pool_settle(cgl_pool *pool);
/* A capture into the pool begins; it has ended. */
void cgl_pool_capture_begins(cgl_pool *pool, uint64_t serial);
void cgl_pool_capture_ended(cgl_pool *pool);
/* A capture into the pool holds its scratch, from before it begins until its
   graph is gone. */
void cgl_pool_capture_held(cgl_pool *pool);
void cgl_pool_capture_gone(cgl_pool *pool);
/* Where `bytes` of the block begin: at its start, or, in a guarded pool, so
   that they end where the mapping does. */
static inline CUdeviceptr cgl_block_address(const cgl_block *block,
                                            size_t bytes) {
  const cgl_segment *segment = block->segment;
  size_t at = segment->pool->guard ? block->bytes - bytes : 0;
  return segment->base + block->offset + at;
}
/* Lets `device`, another one of the same driver, reach the block.
   cuMemSetAccess */
CUresult cgl_block_open_to(cgl_block *block, CUdevice device);

/* A replay of one of its graphs was launched, which `wait` covers.  Threads may
   do so at once, and the latest of them counts. */
static inline void cgl_pool_note_use(cgl_pool *pool, uint64_t wait) {
  uint_fast64_t used = atomic_load_explicit(&pool->used, memory_order_relaxed);
  while (used < wait && !atomic_compare_exchange_weak(&pool->used, &used, wait))
    ;
}

/* ---- retired.c: pools without references that work in flight may use ---- */

/* Keeps a pool until the work that may use it is known to be over; false when
   there is no room: then the caller waits. */
bool cgl_pool_retire(cgl_pool *pool);
/* Ends the retired pools whose work is known to be over by now. */
void cgl_pools_end_retired(cgl_context *context);
/* Waits and ends all; later pools are not taken. */
void cgl_pools_close_retired(cgl_context *context);

/* ---- exhausted.c: the pools of a context, and when memory runs out ---- */

/* What a context has of pools, under its lock. */
typedef struct cgl_pools {
  cgl_part part;
  cgl_pool *_Atomic own; /* serves what no capture asks for */
  cgl_pool *first;       /* all that there are; linked by next_pool */
  struct {               /* as `first`, see retired.c */
    cgl_pool *first;
    size_t count, bytes;
    bool closed; /* the context ends: no more */
  } retired;
} cgl_pools;

/* Made at first use; NULL without memory, with the failure noted. */
cgl_pools *cgl_pools_of(cgl_context *context, const char *operation);
/* The context's own pool, made at first use; NULL when that fails. */
cgl_pool *cgl_pools_make_own(cgl_context *context, const char *operation);
static inline cgl_pool *cgl_pools_own(cgl_context *context,
                                      const char *operation) {
  const cgl_pools *pools =
      (const cgl_pools *)cgl_context_part(context, CGL_PART_POOL);
  cgl_pool *own =
      pools ? atomic_load_explicit(&pools->own, memory_order_acquire) : NULL;
  return own ? own : cgl_pools_make_own(context, operation);
}
void cgl_pools_add(cgl_pool *pool);
void cgl_pools_remove(cgl_pool *pool);
/* Returns what no pool of the context needs by now to the driver. */
void cgl_pools_trim(cgl_context *context);
/* A block of a pool that lends to the context's own. */
CUresult cgl_pools_lend(cgl_stream *stream, size_t bytes, cgl_block **block);
/* The failure that lists who has the memory. */
cgl_status cgl_pools_fail(cgl_pool *pool, size_t bytes, const char *operation,
                          const char *entry);

/* ---- check.c ---- */

/* Checks the invariants; under the lock or single-threaded. */
bool cgl_pool_is_valid(const cgl_pool *pool);

#ifdef CGL_DEBUG
#define CGL_POOL_CHECK(pool) ((void)(cgl_pool_is_valid(pool) || (abort(), 0)))
#else
#define CGL_POOL_CHECK(pool) ((void)0)
#endif

#endif
