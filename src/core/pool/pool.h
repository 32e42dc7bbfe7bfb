/* Pools of device memory, inside.
   Idea: a pool maps physical memory, in chunks, under address space that it
   reserves in large segments. An extent is a range of a segment, in units of
   512 bytes. Freed blocks go to a lane, by the work that may use them next.
   Invariants (cgl_pool_is_valid): the extents of a segment cover it in
   address order without gap or overlap; a hole covers whole pages, none of
   which has memory, and every other page has memory; an aliased extent lies
   in one page; every free extent is in one bin of one lane; two neighbours
   are not both holes and not both free in one lane; allocated = sum of live
   extents, reserved = mapped + spare memory.
   Glossary.
   page: the smallest mapping of the driver, 2 MiB.
   chunk: one driver allocation, of 1 or CGL_POOL_CHUNK pages.
   spare: of a chunk: mapped nowhere.
   segment: address space that was reserved at once.
   extent: a range of a segment: live, free, hole or aliased.
   block: a live extent; in code, also the struct of any extent.
   hole: an extent without memory.
   lane: free extents that the same work may use.
   free_to_all: the lane of extents that any work may use.
   pending: of an extent: free, and work in flight may still use it.
   scratch: of an extent: free, allocated by a capture, and used by its
   graph's replays.
   home: the lane that a block goes to when its own stream alone used it.
   wide: of a block: streams other than its own used it.
   dropped: of a block: released, and held by a checkpoint.
   settled: of a pool's bytes: reserved when its last capture ended, while a
   graph of it lives.
   held: of a pool's bytes: in live blocks, or settled, if that is more.
   own: of a pool: the context's; it does not keep the context alive.
   idle: of the own pool: without blocks, and still keeping the context.
   reclaim: to move pending extents whose work is over to free_to_all.
   harvest: to unmap chunks that lie in free_to_all, for use elsewhere.
   stitch: to map a page a second time, so that a block may begin or end in
   it (stitch.c).
   aliased: of an extent: its bytes belong to another mapping of the page.
   ring: all mappings of one page. */
#ifndef CGL_POOL_POOL_H
#define CGL_POOL_POOL_H

#include "core/base/latch.h"
#include "core/sharing/sharing.h"

enum {
  CGL_POOL_UNIT = 512,   /* bytes */
  CGL_POOL_CHUNK = 16,   /* pages of a large chunk */
  CGL_LANE_FIRST = 40,   /* rows of bins: powers of two of a size in units */
  CGL_LANE_SECOND = 8,   /* bins of a row: eighths of the power */
  CGL_POOL_PATIENCE = 32 /* most waits for the device before a pool grows */
};
/* The largest request: a block joined with its neighbours still has a bin. */
#define CGL_POOL_MOST ((size_t)CGL_POOL_UNIT << (CGL_LANE_FIRST - 1))
#define CGL_NO_STREAM UINT64_MAX /* the serial of no stream */

typedef struct cgl_block {
  struct cgl_segment *segment;
  size_t offset, bytes;                  /* inside the segment */
  struct cgl_block *prev, *next;         /* neighbours by address */
  struct cgl_block *bin_prev, *bin_next; /* list of a bin */
  struct cgl_lane *lane;                 /* live: NULL; else its lane */
  bool captured;         /* live: allocated by a capture into the pool */
  bool dropped;          /* live: released, and held by a checkpoint */
  bool wide;             /* dropped: streams other than its own used it */
  struct cgl_lane *home; /* live: its stream's lane; NULL: unknown */
  cgl_object *owner;     /* live: its buffer; NULL: memory of another kind */
  void *room;            /* owned: host memory for a buffer's struct, kept for
                            the next buffer; NULL: none */
  uint64_t stream;       /* live: serial of the stream that it is for */
  uint64_t free_after;   /* free: number of the device wait that ends its use */
  uint64_t tick;         /* free, in a stream's lane: tick of its release */
  uint64_t number;       /* live: of the allocation, unique in the pool */
  size_t requested;      /* live: bytes asked for */
  cgl_site site;         /* live: of the allocation */
} cgl_block;

/* Free extents that the same work may use, or the pool's holes, or its aliased
   extents.
   A stream's lane holds extents that this stream alone used.  Another stream
   may use them if it comes after their release, and all work may once the host
   has waited for an event after their release.  The clock knows both without a
   call of the driver. */
typedef struct cgl_lane {
  uint64_t stream;      /* serial of the stream that may use it; 0: any stream;
                           CGL_NO_STREAM: no stream yet */
  bool scratch;         /* for captures into the pool only */
  size_t bytes;         /* sum of its extents */
  size_t live;          /* count of blocks whose home it is */
  cgl_clock *clock;     /* the stream's, watched; NULL: unknown */
  uint64_t oldest;      /* lower bound of free_after of its extents */
  uint64_t oldest_tick; /* lower bound of tick of its extents */
  uint64_t first;       /* bit i: second[i] is not 0 */
  uint8_t second[CGL_LANE_FIRST]; /* bit k of [i]: bins[i][k] is not empty */
  cgl_block *bins[CGL_LANE_FIRST][CGL_LANE_SECOND];
  struct cgl_lane *next;
} cgl_lane;

/* The memory of a page of address space. */
typedef struct cgl_page {
  CUmemGenericAllocationHandle handle;
  struct cgl_segment *ring; /* segment of the page's next mapping; NULL: the
                               page is mapped once */
  cgl_block *aliased;       /* an aliased extent in it; NULL: none */
  uint32_t ring_at;         /* index of the next mapping in `ring` */
  uint16_t at;              /* index in its chunk */
  uint16_t of;              /* pages of its chunk; 0: a hole */
} cgl_page;

typedef struct cgl_segment {
  cgl_pool *pool;
  CUdeviceptr base;
  size_t bytes; /* of address space */
  cgl_block *first;
  struct cgl_segment *next;
  cgl_page pages[]; /* none in memory of the pool's allocator */
} cgl_segment;

typedef struct cgl_chunk {
  CUmemGenericAllocationHandle handle;
  size_t pages;
} cgl_chunk;

struct cgl_pool {
  cgl_object object;
  cgl_latch lock;          /* guards everything below */
  cgl_segment *segments;   /* in order of address */
  cgl_lane holes;          /* no extent of it has memory */
  cgl_lane aliased;        /* the extents' bytes are other mappings' */
  cgl_lane free_to_all;    /* any work may use it */
  cgl_lane pending;        /* no work may use it yet */
  cgl_lane scratch;        /* any capture into the pool may use it */
  cgl_lane shared_scratch; /* several streams of the capture underway used it */
  cgl_lane older; /* than the body underway in which they were freed: a later
                    turn of a loop may use it */
  uint64_t body;  /* allocations before the innermost body underway; valid while
                     `bodies` */
  int bodies;     /* underway, in one another */
  cgl_lane *lanes;   /* of one stream each, the last used first */
  cgl_block *unused; /* block structs; linked by next */
  size_t nunused;
  struct cgl_slab *slabs; /* owned: where all block structs lie */
  cgl_chunk *spare;
  size_t nspare, spare_size;
  size_t granularity; /* bytes of a page */
  uint64_t opened;    /* bit i: device i may access the memory */
  int patience;       /* device waits that may yet be made instead of growing */
  cgl_pool_desc desc;
  cgl_allocator allocator; /* desc.allocator points here, when there is one */
  struct {
    size_t bytes;
    cgl_pool_limit_function function;
    void *user;
    bool asking; /* `function` runs */
  } limit;
  cgl_checkpoint *checkpoints; /* live checkpoints */
  uint64_t pinned;             /* highest number of a block that is not freed */
  struct cgl_pool *next_pool;  /* in the context's list, under its lock */
  bool guard;  /* each block ends where unmapped memory begins */
  bool own;    /* the context's; does not keep it alive */
  bool host;   /* of pinned host memory */
  bool device; /* the device's own: what it holds is its stats.allocated */
  bool clean;  /* the capture underway, or the last, began without scratch, and
                  no other graph lived */
  bool idle;   /* the context's first pool: no block is live, and the pool still
                  holds its reference to the context (context.h, drop) */
  atomic_int captures;            /* captures into the pool whose graphs live */
  atomic_uint_fast64_t capturing; /* serial of the capture underway, or 0 */
  cgl_sharing sharing;            /* order of its graphs' replays */
  uint64_t id;                    /* unique in the process */
  atomic_size_t executables;      /* bytes: cgl_pool_stats */
  size_t settled;                 /* bytes */
  size_t held; /* bytes, as counted last; 0 of the device's own pool */
  cgl_pool_stats stats;
};

/* ---- index.c: under the lock; no driver calls ---- */

/* Makes sure of `count` unused block structs; false without memory. */
bool cgl_index_reserve(cgl_pool *pool, size_t count);
/* An empty block struct; the caller reserved it. */
cgl_block *cgl_index_new_block(cgl_pool *pool);
/* Makes a block struct unused again. */
void cgl_index_discard(cgl_pool *pool, cgl_block *block);
void cgl_index_end(cgl_pool *pool);
/* The lane of a stream, made when missing; `otherwise` without memory.  With
   `otherwise` NULL no lane is made, and NULL means that there is none. */
cgl_lane *cgl_index_lane(cgl_pool *pool, uint64_t stream, bool scratch,
                         cgl_lane *otherwise);
/* Puts an extent into a lane and joins it with its neighbours there; returns
   the joined extent. */
cgl_block *cgl_index_insert(cgl_pool *pool, cgl_block *block, cgl_lane *lane);
/* Takes an extent out of its lane. */
void cgl_index_remove(cgl_block *block);
/* Cuts an extent that is in no lane after `bytes`; returns the rest.  The
   caller reserved a block struct. */
cgl_block *cgl_index_cut(cgl_pool *pool, cgl_block *block, size_t bytes);
/* Appends `right` to `left`, both in no lane. */
cgl_block *cgl_index_join(cgl_pool *pool, cgl_block *left, cgl_block *right);
/* The better fit for `bytes` of two extents (either may be NULL) that hold as
   much: an extent of exactly that size; of two extents hardly larger, the one
   at the lower address, so that free memory gathers at the upper end; else the
   smaller one. */
cgl_block *cgl_index_better(cgl_block *a, cgl_block *b, size_t bytes);
/* A good fit for `bytes` in a lane; NULL: no extent holds as much. */
cgl_block *cgl_index_find(const cgl_lane *lane, size_t bytes);
/* Takes the extent of exactly `bytes` that was freed last out of the stream's
   lane, when this is the lane used last; NULL: a full search is needed. */
cgl_block *cgl_index_take_last(cgl_pool *pool, uint64_t stream, bool scratch,
                               size_t bytes);
/* Walks the bins of a lane from the bin of `bytes` on; NULL at the end. */
cgl_block *cgl_index_first(const cgl_lane *lane, size_t bytes);
cgl_block *cgl_index_next(const cgl_block *block);
/* Moves all extents of a lane to another. */
void cgl_index_move(cgl_pool *pool, cgl_lane *from, cgl_lane *to);
/* The extent after `block` in order of address; after NULL, the first; NULL:
   there is none. */
cgl_block *cgl_index_walk(const cgl_pool *pool, const cgl_block *block);
/* Whether all use of an extent that is not live is known to be over. */
bool cgl_index_is_over(const cgl_block *block);
/* Moves extents whose use is over from all lanes to free_to_all. */
void cgl_index_reclaim(cgl_pool *pool);

/* ---- pages.c: under the lock ---- */

/* An extent of at least `bytes` with memory, in no lane, grown beside free
   neighbours of free_to_all or `own` (may be NULL) where that takes least
   memory.  Harvests chunks before it creates any.  *rest: the lane for what the
   extent has beyond `bytes`; *entry: the driver's function that failed.
   cuMemAddressReserve, cuMemCreate, cuMemMap, cuMemSetAccess */
CUresult cgl_pages_extend(cgl_pool *pool, size_t bytes,
                          const cgl_stream *stream, const cgl_lane *own,
                          const char **entry, cgl_block **block,
                          cgl_lane **rest);
/* Returns chunks that lie in free_to_all, and segments without memory, to the
   driver; the bytes that this returned.  cuMemUnmap, cuMemRelease */
size_t cgl_pages_trim(cgl_pool *pool);
/* Returns all memory, which the device no longer uses. */
void cgl_pages_end(cgl_pool *pool);
/* Lets another device of the same driver access the memory of the block's pool,
   now and later.  Not under the lock.  cuMemSetAccess */
CUresult cgl_block_open_to(const cgl_block *block, CUdevice device);
CUmemAllocationProp cgl_pages_properties(const cgl_pool *pool);
/* Opens a new mapping to the pool's own device and all that it was opened to.
   cuMemSetAccess */
CUresult cgl_pages_open(cgl_pool *pool, CUdeviceptr address, size_t bytes);

/* ---- stitch.c: under the lock ---- */

/* Makes an extent of free_to_all for a block of `bytes` whose beginning or end
   lies in pages that are mapped a second time, and whose hole is of fewer than
   `most` pages; false: nothing worth it was found.  cuMemMap, cuMemSetAccess */
bool cgl_stitch(cgl_pool *pool, size_t bytes, size_t most);
/* Unmaps the mappings of stitched pages whose extents are all in free_to_all;
   these extents are free at another mapping of the page afterwards.
   cuMemUnmap */
void cgl_stitch_undo(cgl_pool *pool);
/* Takes page `at`, which is unmapped, out of its ring; false when that was the
   only mapping of it. */
bool cgl_stitch_forget(cgl_segment *segment, size_t at);

/* ---- object.c ---- */

extern const cgl_object_kind cgl_pool_kind;

/* A pool of the context's own, which does not keep the context alive; the
   caller ends it with cgl_pool_destroy_own.  `host`: for pinned memory. */
cgl_status cgl_pool_create_own(cgl_context *context, const cgl_pool_desc *desc,
                               bool host, cgl_pool **pool);
void cgl_pool_destroy_own(cgl_pool *pool);
/* What references to the pool keep: the context, when the pool is its own. */
cgl_object *cgl_pool_keeper(cgl_pool *pool);
/* CGL_ERROR_INVALID_ARGUMENT for a context's own pool. */
cgl_status cgl_pool_check_made(const cgl_pool *pool, const char *operation);
/* Whether work in flight may still use the pool's memory: a replay, or work
   issued before a block was freed. */
bool cgl_pool_is_in_use(const cgl_pool *pool);
/* Returns the memory of a pool that no work uses, and frees the pool. */
void cgl_pool_end(cgl_pool *pool);

/* ---- pool.c ---- */

/* A block of at least `bytes` (> 0) for work on `stream`.  The live blocks of a
   pool keep the pool, or the context when the pool is the context's own. */
cgl_status cgl_pool_alloc(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                          const char *operation, cgl_block **block);
/* A block from the free memory of a pool with use_on_oom, which does not grow
   for it and may have lost its last reference, for the context's own pool. */
CUresult cgl_pools_alloc_existing(cgl_stream *stream, size_t bytes,
                                  cgl_block **block);
/* Takes the block back; `wide`: streams other than its own used it. */
void cgl_pool_free(cgl_block *block, bool wide);
/* The same for a block that no checkpoint holds, under the lock; returns the
   joined extent.  *last is set when it was the last block: then the caller
   calls cgl_pool_unkeep after it drops the lock. */
cgl_block *cgl_pool_free_block(cgl_pool *pool, cgl_block *block, bool wide,
                               bool *last);
/* Releases what the pool's live blocks kept: there are none any more. */
void cgl_pool_unkeep(cgl_pool *pool);
/* After a wait for the device: reclaims what it ended. */
void cgl_pool_reclaim(cgl_pool *pool);
/* Bracket a capture into the pool. */
void cgl_pool_capture_begins(cgl_pool *pool, uint64_t serial);
void cgl_pool_capture_ended(cgl_pool *pool);
/* After the end of a capture into the pool: scratch of `bytes` (> 0) in one
   piece, which is free but for that capture's graph, and has no byte of the
   `navoid` pairs of a begin and an end.  Without such pairs, scratch that the
   capture alone made and no longer needs becomes free to all. */
cgl_status cgl_pool_place(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                          const CUdeviceptr *avoid, size_t navoid,
                          const char *operation, CUdeviceptr *address);
/* Bracket the capture of a body, inside a capture into the pool.  Memory that
   is older than a body does not serve again before the outermost body has
   ended. _begins returns what _ended takes. */
uint64_t cgl_pool_body_begins(cgl_pool *pool);
void cgl_pool_body_ended(cgl_pool *pool, uint64_t before);
/* Bracket the time in which a graph holds scratch: from before its capture
   begins until the graph is gone. */
static inline void cgl_pool_capture_held(cgl_pool *pool) {
  atomic_fetch_add(&pool->captures, 1);
}
void cgl_pool_capture_gone(cgl_pool *pool);
/* The address of `bytes` in the block: its start, or, in a guarded pool, so
   that they end where the block ends. */
static inline CUdeviceptr cgl_block_address(const cgl_block *block,
                                            size_t bytes) {
  const cgl_segment *segment = block->segment;
  size_t at = segment->pool->guard ? block->bytes - bytes : 0;
  return segment->base + block->offset + at;
}

/* ---- retired.c: pools without references that work in flight may use ---- */

/* Keeps a pool until the work that may use it is known to be over; false when
   too much is kept already: the caller waits for the device. */
bool cgl_pool_retire(cgl_pool *pool);
/* Ends the retired pools whose work is known to be over by now, or all. */
void cgl_pools_end_retired(cgl_context *context, bool all);

/* ---- exhausted.c: the pools of a context, and when memory runs out ---- */

/* The pools of a context, under its lock. */
typedef struct cgl_pools {
  cgl_part part;
  cgl_pool *_Atomic own; /* the device's pool, for work outside captures */
  cgl_pool *first;       /* all but retired pools; linked by next_pool */
  atomic_size_t held;    /* of all pools but `own` that are not retired */
  struct {
    cgl_pool *first;     /* retired pools; linked by next_pool */
    size_t count, bytes; /* of that list */
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
void cgl_pools_count_held(cgl_pool *pool);
/* Counts what the pool holds; under its lock, after its blocks changed.  What
   the device's own pool holds is known without. */
static inline void cgl_pool_count_held(cgl_pool *pool) {
  if (__builtin_expect(!pool->device, 0))
    cgl_pools_count_held(pool);
}
/* Returns all free memory of the context's pools to the driver. */
void cgl_pools_trim(cgl_context *context);
/* The failure of a request of `bytes`, with a list of the pools and of the
   script lines that hold most memory; `entry` failed. */
cgl_status cgl_pools_fail(cgl_pool *pool, size_t bytes, const char *operation,
                          const char *entry);

/* ---- history.c ---- */

extern atomic_bool cgl_history_on;

void cgl_history_note(const cgl_pool *pool, const cgl_block *block, bool freed);
/* Notes that a block was allocated, or is about to be freed; under the lock. */
static inline void cgl_history_add(const cgl_pool *pool, const cgl_block *block,
                                   bool freed) {
  if (atomic_load_explicit(&cgl_history_on, memory_order_relaxed))
    cgl_history_note(pool, block, freed);
}
/* The device's free bytes; 0 while the history is off.  cuMemGetInfo */
size_t cgl_history_free_bytes(cgl_context *context);

/* ---- check.c ---- */

/* Whether the invariants hold; under the lock or single-threaded. */
bool cgl_pool_is_valid(const cgl_pool *pool);

#ifdef CGL_DEBUG
#define CGL_POOL_CHECK(pool) ((void)(cgl_pool_is_valid(pool) || (abort(), 0)))
#else
#define CGL_POOL_CHECK(pool) ((void)0)
#endif

#endif
