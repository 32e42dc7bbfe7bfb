/* Pools: which block serves which work, when to wait and when to grow. */
#include "core/pool/pool.h"

#include <stdlib.h>
#include <string.h>

enum {
  AMORTIZED = 16,     /* allocations that pay for one more wait */
  LOOKS = 64,         /* candidates whose order is asked for */
  WORTH_WAITING = 128 /* part of the reserved bytes that is worth a wait */
};


/* ---- searching ---- */

/* Whether the stream captures into the pool. */
static inline bool pool_captures(const cgl_pool *pool,
                                 const cgl_stream *stream) {
  return stream->capture && stream->capture->underway.pool == pool;
}


/* The stream's own lane, or NULL. */
static cgl_lane *pool_own_lane(cgl_pool *pool, const cgl_stream *stream) {
  if (stream->capture && !pool_captures(pool, stream))
    return NULL; /* replays run on any stream: free_to_all alone will do */
  return cgl_index_lane(pool, stream->serial, stream->capture, NULL);
}


/* An extent of the lane whose use is over before the next operation of
   `stream`: scratch, by the edges of the graph; other memory, because it was
   freed before tick `reach`. */
static cgl_block *lane_find_ordered(const cgl_lane *lane, size_t bytes,
                                    cgl_stream *stream, uint64_t reach) {
  cgl_block *block = lane->bytes >= bytes ? cgl_index_first(lane, bytes) : NULL;
  for (int looks = 0; block && looks < LOOKS;
       looks++, block = cgl_index_next(block))
    if (block->bytes >= bytes &&
        (lane->scratch
             ? cgl_order_covers(stream, cgl_block_address(block, block->bytes),
                                block->bytes, false)
             : block->tick < reach))
      return block;
  return NULL;
}


/* An extent that another stream freed before `stream` waited for it. */
static cgl_block *pool_find_ordered(const cgl_pool *pool, size_t bytes,
                                    cgl_stream *stream) {
  cgl_block *best = NULL;
  for (const cgl_lane *lane = pool->lanes; lane; lane = lane->next) {
    if (lane->scratch || lane->bytes < bytes || !lane->clock)
      continue;
    uint64_t reach = cgl_clock_covered(stream->clock, lane->clock);
    if (lane->oldest_tick < reach)
      best = cgl_index_better(
          best, lane_find_ordered(lane, bytes, stream, reach), bytes);
  }
  return best;
}


/* The best free extent that work of `stream` may use. */
static cgl_block *pool_find(cgl_pool *pool, size_t bytes, cgl_stream *stream) {
  const cgl_lane *own = pool_own_lane(pool, stream);
  cgl_block *best = own ? cgl_index_find(own, bytes) : NULL;
  if (best && best->bytes == bytes)
    return best;
  bool into = pool_captures(pool, stream);
  /* Scratch first: no other work may use it. */
  if (into)
    best = cgl_index_better(best, cgl_index_find(&pool->scratch, bytes), bytes);
  if (!into || !best)
    best = cgl_index_better(best, cgl_index_find(&pool->free_to_all, bytes),
                            bytes);
  if (best)
    return best;
  /* Replays run on any stream: the order of the capturing stream proves
     nothing. */
  if (!into)
    return stream->capture ? NULL : pool_find_ordered(pool, bytes, stream);
  best = lane_find_ordered(&pool->shared_scratch, bytes, stream, 0);
  for (cgl_lane *lane = pool->lanes; lane && !best; lane = lane->next)
    if (lane->scratch && lane != own)
      best = lane_find_ordered(lane, bytes, stream, 0);
  return best;
}


/* ---- waiting and growing ---- */

/* Under the lock. */
static void pool_reclaim(cgl_pool *pool) {
  cgl_index_reclaim(pool);
  if (pool->guard)
    cgl_pages_trim(pool);
}


/* Waits for the device and reclaims; false when a capture forbids the wait. */
static bool pool_wait(cgl_pool *pool) {
  if (!cgl_captures_hold(false))
    return false;
  CUresult result = cgl_context_wait(pool->object.context);
  cgl_captures_unhold();
  if (!result)
    pool_reclaim(pool);
  return !result;
}


/* A wait is expensive, and a pool that only grows is worse: a pool with enough
   pending memory waits now and then, and otherwise grows. */
static bool pool_should_wait(const cgl_pool *pool, size_t bytes) {
  size_t gain = pool->pending.bytes;
  for (const cgl_lane *lane = pool->lanes; lane; lane = lane->next)
    gain += lane->scratch ? 0 : lane->bytes;
  return pool->patience > 0 && gain >= pool->granularity && gain >= bytes / 8 &&
         gain >= pool->stats.reserved / WORTH_WAITING;
}


/* Grows the pool; *rest: the lane for what the extent has beyond `bytes`. */
static CUresult pool_grow(cgl_pool *pool, size_t bytes,
                          const cgl_stream *stream, const char **entry,
                          cgl_block **out, cgl_lane **rest) {
  size_t before = pool->stats.reserved;
  cgl_lane *own = pool_own_lane(pool, stream);
  if (!own && pool_captures(pool, stream))
    own = &pool->scratch;
  CUresult result =
      cgl_pages_extend(pool, bytes, stream, own, entry, out, rest);
  /* The rest is to join what the capture frees beside it. */
  if (own && own->scratch && *rest == &pool->free_to_all)
    *rest = &pool->scratch;
  if (pool->stats.reserved > before && pool->patience < CGL_POOL_PATIENCE)
    pool->patience++;
  return result;
}


static bool pool_take_block(cgl_pool *pool, size_t bytes, cgl_stream *stream,
                            cgl_block **out, cgl_lane **rest) {
  cgl_block *block = pool->guard ? NULL : pool_find(pool, bytes, stream);
  if (!block || (pool->desc.no_split && block->bytes / 2 > bytes))
    return false;
  *rest = block->lane;
  cgl_index_remove(block);
  *out = block;
  return true;
}


/* Calls the limit's function to make room.  Drops the lock meanwhile. */
static void pool_ask_limit(cgl_pool *pool, size_t bytes) {
  if (!pool->limit.function || pool->limit.asking ||
      pool->stats.reserved + bytes <= pool->limit.bytes)
    return;
  cgl_pool_limit_function function = pool->limit.function;
  void *user = pool->limit.user;
  size_t reserved = pool->stats.reserved;
  pool->limit.asking = true;
  cgl_latch_drop(&pool->lock);
  function(user, pool, reserved, bytes);
  cgl_latch_take(&pool->lock);
  pool->limit.asking = false;
  cgl_index_reclaim(pool);
}


/* An extent for a request, from the lanes or the driver; it is in no lane. */
static CUresult pool_obtain(cgl_pool *pool, size_t bytes, cgl_stream *stream,
                            const char **entry, cgl_block **out,
                            cgl_lane **rest) {
  if (pool_take_block(pool, bytes, stream, out, rest))
    return CUDA_SUCCESS;
  cgl_index_reclaim(pool);
  if (pool_take_block(pool, bytes, stream, out, rest))
    return CUDA_SUCCESS;
  if (pool_should_wait(pool, bytes) && pool_wait(pool)) {
    pool->patience--;
    if (pool_take_block(pool, bytes, stream, out, rest))
      return CUDA_SUCCESS;
  }
  pool_ask_limit(pool, bytes);
  if (pool_take_block(pool, bytes, stream, out, rest))
    return CUDA_SUCCESS;
  CUresult result = pool_grow(pool, bytes, stream, entry, out, rest);
  if (result != CUDA_ERROR_OUT_OF_MEMORY || !pool_wait(pool))
    return result;
  if (pool_take_block(pool, bytes, stream, out, rest))
    return CUDA_SUCCESS;
  return pool_grow(pool, bytes, stream, entry, out, rest);
}


/* ---- blocks ---- */

static size_t pool_round_size(const cgl_pool *pool, size_t bytes) {
  if (!pool->guard && !pool->desc.no_split)
    return (bytes + CGL_POOL_UNIT - 1) / CGL_POOL_UNIT * CGL_POOL_UNIT;
  size_t unit = pool->granularity;
  return (bytes + unit - 1) / unit * unit;
}


/* The lane of the block's stream, which often is `rest`; NULL when no clock
   knows the stream, or without memory. */
static inline cgl_lane *pool_home_lane(cgl_pool *pool, const cgl_stream *stream,
                                       cgl_lane *rest) {
  if (pool->guard || !stream->clock)
    return NULL;
  cgl_lane *lane = rest;
  if (lane->stream != stream->serial || lane->scratch)
    lane = cgl_index_lane(pool, stream->serial, false, &pool->pending);
  if (lane == &pool->pending)
    return NULL;
  if (!lane->clock)
    lane->clock = cgl_clock_watch(stream->clock);
  lane->live++;
  return lane;
}


/* Makes a block from lane `rest` live. */
static inline void block_hand_out(cgl_pool *pool, cgl_block *block,
                                  size_t bytes, const cgl_stream *stream,
                                  cgl_lane *rest) {
  pool->stats.allocated += block->bytes;
  if (pool->stats.allocated > pool->stats.allocated_peak)
    pool->stats.allocated_peak = pool->stats.allocated;
  if (++pool->stats.allocations % AMORTIZED == 0 &&
      pool->patience < CGL_POOL_PATIENCE)
    pool->patience++;
  block->stream = stream->serial;
  block->free_after = 0;
  block->dropped = false;
  block->owner = NULL;
  block->number = pool->stats.allocations;
  block->requested = bytes;
  block->site = cgl_site_here;
  block->captured = pool_captures(pool, stream);
  block->home = block->captured ? NULL : pool_home_lane(pool, stream, rest);
  /* All live blocks together hold one reference. */
  if (pool->stats.allocations - pool->stats.frees == 1 && !pool->idle)
    cgl_pool_retain(pool);
  pool->idle = false;
  cgl_history_add(pool, block, false);
}


/* The same for the first `bytes` of a block; what is beyond them returns to
   `rest`.  Without memory for a block struct the block stays whole. */
static void block_carve_out(cgl_pool *pool, cgl_block *block, size_t bytes,
                            const cgl_stream *stream, cgl_lane *rest) {
  size_t size = pool_round_size(pool, bytes);
  if (!pool->desc.no_split && block->bytes > size && cgl_index_reserve(pool, 1))
    cgl_index_insert(pool, cgl_index_cut(pool, block, size), rest);
  block_hand_out(pool, block, bytes, stream, rest);
}


static CUresult pool_serve(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                           const char **entry, cgl_block **out) {
  cgl_lane *rest = NULL;
  cgl_latch_take(&pool->lock);
  CGL_POOL_CHECK(pool);
  CUresult result = pool_obtain(pool, pool_round_size(pool, bytes), stream,
                                entry, out, &rest);
  if (!result)
    block_carve_out(pool, *out, bytes, stream, rest);
  cgl_pool_count_held(pool);
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
  return result;
}


CUresult cgl_pools_alloc_existing(cgl_stream *stream, size_t bytes,
                                  cgl_block **out) {
  cgl_context *context = stream->object.context;
  const cgl_pools *pools = cgl_pools_of(context, "pool");
  bool found = false;
  pthread_mutex_lock(&context->lock);
  for (cgl_pool *pool = pools->first; pool && !found; pool = pool->next_pool) {
    cgl_lane *rest = NULL;
    if (!pool->desc.use_on_oom)
      continue;
    cgl_latch_take(&pool->lock);
    cgl_index_reclaim(pool);
    found =
        pool_take_block(pool, pool_round_size(pool, bytes), stream, out, &rest);
    if (found && !cgl_object_try_retain(&pool->object)) {
      cgl_index_insert(pool, *out, rest);
      found = false;
    }
    if (found) {
      block_carve_out(pool, *out, bytes, stream, rest);
      cgl_pool_count_held(pool);
      atomic_fetch_sub(&pool->object.references, 1); /* live blocks hold it */
    }
    cgl_latch_drop(&pool->lock);
  }
  pthread_mutex_unlock(&context->lock);
  return found ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}


/* A block from this pool or another, or the failure. */
static cgl_status pool_search(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                              const char *operation, cgl_block **out) {
  cgl_context *context = pool->object.context;
  const char *entry = "cuMemCreate";
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  size_t max = pool->desc.max_bytes;
  /* A request beyond all limits shall not cost a wait. */
  const bool host = pool->host;
  bool possible = bytes <= CGL_POOL_MOST &&
                  (host || bytes <= context->info.memory) &&
                  (!max || bytes <= max);
  if (possible && !(result = pool_serve(pool, stream, bytes, &entry, out)))
    return CGL_OK;
  if (possible && result == CUDA_ERROR_OUT_OF_MEMORY && !host &&
      strcmp(entry, "max_bytes") != 0) {
    cgl_pools_trim(context);
    result = pool_serve(pool, stream, bytes, &entry, out);
  }
  if (possible && result == CUDA_ERROR_OUT_OF_MEMORY && pool->device &&
      !stream->capture)
    result = cgl_pools_alloc_existing(stream, bytes, out);
  if (!result)
    return CGL_OK;
  if (result == CUDA_ERROR_OUT_OF_MEMORY && !host)
    return cgl_pools_fail(pool, bytes, operation, entry);
  return cgl_fail_driver(context, result, operation,
                         host ? "cuMemHostAlloc" : entry);
}


cgl_status cgl_pool_alloc(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                          const char *operation, cgl_block **out) {
  cgl_status status = cgl_context_enter(pool->object.context, operation);
  if (status)
    return status;
  cgl_latch_take(&pool->lock);
  cgl_lane *last = pool->lanes;
  cgl_block *block = NULL;
  /* What pool_find would find, when the stream has just freed as much. */
  if (!pool->guard && (!stream->capture || pool_captures(pool, stream)))
    block = cgl_index_take_last(pool, stream->serial, stream->capture,
                                pool_round_size(pool, bytes));
  if (block) {
    block_hand_out(pool, block, bytes, stream, last);
    cgl_pool_count_held(pool);
  }
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
  *out = block;
  return block ? CGL_OK : pool_search(pool, stream, bytes, operation, out);
}


/* The lane that a block goes to when it is freed. */
static cgl_lane *block_next_lane(cgl_pool *pool, const cgl_block *block,
                                 bool wide) {
  if (block->captured && atomic_load(&pool->captures)) {
    if (!atomic_load(&pool->capturing))
      return &pool->scratch;
    if (pool->bodies && block->number <= pool->body)
      return &pool->older;
    return wide ? &pool->shared_scratch
                : cgl_index_lane(pool, block->stream, true,
                                 &pool->shared_scratch);
  }
  /* Replays of dead graphs may still run, on any stream. */
  return wide || !block->home ? &pool->pending : block->home;
}


cgl_block *cgl_pool_free_block(cgl_pool *pool, cgl_block *block, bool wide,
                               bool *last) {
  cgl_context *context = pool->object.context;
  pool->stats.allocated -= block->bytes;
  /* While others refer to the context, too, the pool keeps its reference for
     the next block. */
  if (++pool->stats.frees == pool->stats.allocations) {
    pool->idle =
        pool->device && atomic_load_explicit(&context->object.references,
                                             memory_order_relaxed) > 1;
    *last = !pool->idle;
  }
  cgl_history_add(pool, block, true);
  block->free_after = cgl_context_next_wait(context);
  cgl_lane *lane = block_next_lane(pool, block, wide);
  block->tick = lane->clock ? cgl_clock_now(lane->clock) : 0;
  if (block->home)
    block->home->live--;
  block->home = NULL;
  return cgl_index_insert(pool, block, lane);
}


void cgl_pool_unkeep(cgl_pool *pool) {
  cgl_pool_release(pool);
}


void cgl_pool_free(cgl_block *block, bool wide) {
  cgl_pool *pool = block->segment->pool;
  bool last = false;
  cgl_latch_take(&pool->lock);
  CGL_POOL_CHECK(pool);
  if (block->number > pool->pinned) {
    cgl_pool_free_block(pool, block, wide, &last);
  } else {
    block->dropped = true;
    block->wide = wide;
    block->owner = NULL;
  }
  cgl_pool_count_held(pool);
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
  if (last)
    cgl_pool_unkeep(pool);
}


/* ---- reclaiming, and captures ---- */

void cgl_pool_reclaim(cgl_pool *pool) {
  cgl_latch_take(&pool->lock);
  pool_reclaim(pool);
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
}


uint64_t cgl_pool_body_begins(cgl_pool *pool) {
  cgl_latch_take(&pool->lock);
  const uint64_t before = pool->body;
  pool->body = pool->stats.allocations;
  pool->bodies++;
  cgl_latch_drop(&pool->lock);
  return before;
}


/* Streams of the body may serve another one, which the order of streams says
   nothing about. */
void cgl_pool_body_ended(cgl_pool *pool, uint64_t before) {
  cgl_latch_take(&pool->lock);
  pool->body = before;
  if (!--pool->bodies)
    cgl_index_move(pool, &pool->older, &pool->shared_scratch);
  for (cgl_lane *lane = pool->lanes; lane; lane = lane->next)
    if (lane->scratch)
      cgl_index_move(pool, lane, &pool->shared_scratch);
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
}


/* Under the lock: another thread's reclaiming may empty the scratch meanwhile.
 */
void cgl_pool_capture_begins(cgl_pool *pool, uint64_t serial) {
  cgl_latch_take(&pool->lock);
  pool->clean = atomic_load(&pool->captures) == 1 && !pool->scratch.bytes;
  atomic_store(&pool->sharing.touched, false);
  atomic_store(&pool->capturing, serial);
  cgl_latch_drop(&pool->lock);
}


void cgl_pool_capture_ended(cgl_pool *pool) {
  cgl_latch_take(&pool->lock);
  atomic_store(&pool->capturing, 0);
  cgl_index_move(pool, &pool->shared_scratch, &pool->scratch);
  for (cgl_lane *lane = pool->lanes; lane; lane = lane->next)
    if (lane->scratch)
      cgl_index_move(pool, lane, &pool->scratch);
  pool->settled = pool->stats.reserved;
  cgl_pool_count_held(pool);
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
}


/* Scratch of so many bytes that none of the pairs touches; NULL: none. */
static cgl_block *pool_find_apart(const cgl_pool *pool, size_t bytes,
                                  const CUdeviceptr *avoid, size_t navoid) {
  cgl_block *block = cgl_index_first(&pool->scratch, bytes);
  for (; block; block = cgl_index_next(block)) {
    const CUdeviceptr from = cgl_block_address(block, block->bytes);
    size_t i = 0;
    while (i < navoid &&
           (avoid[2 * i] >= from + bytes || avoid[2 * i + 1] <= from))
      i++;
    if (i == navoid && block->bytes >= bytes)
      break;
  }
  return block;
}


/* Under the lock; the extent is in no lane, and of memory that any work may
   use. */
static CUresult pool_place_anew(cgl_pool *pool, cgl_stream *stream,
                                size_t bytes, const char **entry,
                                cgl_block **out) {
  cgl_lane *rest = &pool->free_to_all;
  CUresult result = CUDA_SUCCESS;
  *out = cgl_index_find(&pool->free_to_all, bytes);
  if (*out)
    cgl_index_remove(*out);
  else
    result = cgl_pages_extend(pool, bytes, stream, NULL, entry, out, &rest);
  if (!result && (*out)->bytes > bytes && cgl_index_reserve(pool, 1))
    cgl_index_insert(pool, cgl_index_cut(pool, *out, bytes), rest);
  return result;
}


cgl_status cgl_pool_place(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                          const CUdeviceptr *avoid, size_t navoid,
                          const char *operation, CUdeviceptr *address) {
  const char *entry = "cuMemCreate";
  CUresult result = CUDA_SUCCESS;
  bytes = pool_round_size(pool, bytes);
  cgl_latch_take(&pool->lock);
  if (pool->clean && !navoid && atomic_load(&pool->captures) == 1 &&
      !atomic_load(&pool->sharing.touched))
    cgl_index_move(pool, &pool->scratch, &pool->free_to_all);
  cgl_block *block = pool_find_apart(pool, bytes, avoid, navoid);
  if (block)
    *address = cgl_block_address(block, block->bytes);
  else if (!(result = pool_place_anew(pool, stream, bytes, &entry, &block))) {
    *address = cgl_block_address(block, block->bytes);
    cgl_index_insert(pool, block, &pool->scratch);
    pool->settled = pool->stats.reserved;
    cgl_pool_count_held(pool);
  }
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
  return cgl_fail_driver(pool->object.context, result, operation, entry);
}


void cgl_pool_capture_gone(cgl_pool *pool) {
  cgl_latch_take(&pool->lock);
  if (atomic_fetch_sub(&pool->captures, 1) == 1)
    pool->settled = 0;
  cgl_pool_count_held(pool);
  cgl_latch_drop(&pool->lock);
}
