/* Pools: who gets which block, when to wait and when to grow. */
#include "core/pool/pool.h"
#include "core/pool/history.h"

#include <stdlib.h>
#include <string.h>

enum {
  AMORTIZED = 16,     /* allocations that pay for one more wait */
  LOOKS = 64,         /* candidates whose reachability is asked for */
  WORTH_WAITING = 128 /* part of the reserved bytes that is worth one */
};


/* ---- finding ---- */

/* Whether the stream captures into the pool. */
static inline bool pool_captures(const cgl_pool *pool,
                                 const cgl_stream *stream) {
  return stream->capture && stream->capture->underway.pool == pool;
}


/* The lane of the stream's own, that others may not have. */
static cgl_lane *own_lane(cgl_pool *pool, const cgl_stream *stream) {
  if (stream->capture && !pool_captures(pool, stream))
    return NULL; /* its replays run anywhere: only what is settled */
  return cgl_index_lane(pool, stream->serial, stream->capture, NULL);
}


/* Scratch of the capture underway that its other streams used, and that the
   graph's own edges prove to be over before what `stream` does next. */
static cgl_block *find_reached(const cgl_lane *lane, size_t bytes,
                               cgl_stream *stream) {
  cgl_block *block = lane->bytes ? cgl_index_first(lane, bytes) : NULL;
  for (int looks = 0; block && looks < LOOKS; looks++) {
    if (block->bytes >= bytes &&
        cgl_order_covers(stream, cgl_block_address(block, block->bytes),
                         block->bytes))
      return block;
    block = cgl_index_next(block);
  }
  return NULL;
}


/* What other streams freed and `stream` comes after. */
static cgl_block *find_proven(const cgl_pool *pool, size_t bytes,
                              const cgl_stream *stream) {
  cgl_block *best = NULL;
  for (const cgl_lane *lane = pool->lanes; lane; lane = lane->next) {
    if (lane->scratch || lane->bytes < bytes || !lane->clock)
      continue;
    uint64_t reach = cgl_clock_covered(stream->clock, lane->clock);
    if (lane->oldest_tick < reach)
      best = cgl_index_better(best, cgl_index_find_before(lane, bytes, reach),
                              bytes);
  }
  return best;
}


/* The best free extent that work of `stream` may have. */
static cgl_block *pool_find(cgl_pool *pool, size_t bytes, cgl_stream *stream) {
  const cgl_lane *own = own_lane(pool, stream);
  cgl_block *best = own ? cgl_index_find(own, bytes) : NULL;
  if (best && best->bytes == bytes)
    return best;
  bool into = pool_captures(pool, stream);
  /* What only captures may have comes first. */
  if (into)
    best = cgl_index_better(best, cgl_index_find(&pool->scratch, bytes), bytes);
  if (!into || !best)
    best = cgl_index_better(best, cgl_index_find(&pool->anybody, bytes), bytes);
  if (best)
    return best;
  /* Replays run anywhere, whatever the stream that captures comes after. */
  if (!into)
    return stream->capture ? NULL : find_proven(pool, bytes, stream);
  best = find_reached(&pool->shared_scratch, bytes, stream);
  for (cgl_lane *lane = pool->lanes; lane && !best; lane = lane->next)
    if (lane->scratch && lane != own)
      best = find_reached(lane, bytes, stream);
  return best;
}


/* ---- waiting and growing ---- */

/* Waits for the device when captures allow it, then settles; false when a
   capture forbids it. */
static bool wait_and_settle(cgl_pool *pool) {
  if (!cgl_captures_hold(false))
    return false;
  CUresult result = cgl_context_wait(pool->object.context);
  cgl_captures_unhold();
  if (!result)
    cgl_index_settle(pool);
  return !result;
}


/* Free memory that a wait for the device would make anybody's. */
static size_t unsettled(const cgl_pool *pool) {
  size_t bytes = pool->pending.bytes;
  for (const cgl_lane *lane = pool->lanes; lane; lane = lane->next)
    bytes += lane->scratch ? 0 : lane->bytes;
  return bytes;
}


/* Waiting is dear and growing for ever is worse: a pool that could do with
   what it has waits now and then, and else grows so that it need not. */
static bool should_wait(const cgl_pool *pool, size_t bytes) {
  size_t gain = unsettled(pool);
  return pool->patience > 0 && gain >= pool->granularity && gain >= bytes / 8 &&
         gain >= pool->stats.reserved / WORTH_WAITING;
}


/* A block with more memory under the pool; *rest: the lane of what is over. */
static CUresult pool_grow(cgl_pool *pool, size_t bytes,
                          const cgl_stream *stream, const char **entry,
                          cgl_block **out, cgl_lane **rest) {
  size_t before = pool->stats.reserved;
  cgl_lane *own = own_lane(pool, stream);
  if (!own && pool_captures(pool, stream))
    own = &pool->scratch;
  CUresult result =
      cgl_pages_extend(pool, bytes, stream, own, entry, out, rest);
  /* So that it joins what the capture drops beside it. */
  if (own && own->scratch && *rest == &pool->anybody)
    *rest = &pool->scratch;
  if (pool->stats.reserved > before && pool->patience < CGL_POOL_PATIENCE)
    pool->patience++;
  return result;
}


static bool pool_take(cgl_pool *pool, size_t bytes, cgl_stream *stream,
                      cgl_block **out, cgl_lane **rest) {
  cgl_block *block = pool->guard ? NULL : pool_find(pool, bytes, stream);
  if (!block || (pool->desc.no_split && block->bytes / 2 > bytes))
    return false;
  *rest = block->lane;
  cgl_index_remove(pool, block);
  *out = block;
  return true;
}


/* Asks the one who set the limit to make room; without the lock, which comes
   back. */
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
  cgl_index_settle(pool);
}


/* The block that serves a request, from the lanes or the driver, in no lane
   any more. */
static CUresult pool_obtain(cgl_pool *pool, size_t bytes, cgl_stream *stream,
                            const char **entry, cgl_block **out,
                            cgl_lane **rest) {
  if (pool_take(pool, bytes, stream, out, rest))
    return CUDA_SUCCESS;
  cgl_index_settle(pool);
  if (pool_take(pool, bytes, stream, out, rest))
    return CUDA_SUCCESS;
  if (should_wait(pool, bytes) && wait_and_settle(pool)) {
    pool->patience--;
    if (pool->guard)
      cgl_pages_trim(pool);
    else if (pool_take(pool, bytes, stream, out, rest))
      return CUDA_SUCCESS;
  }
  pool_ask_limit(pool, bytes);
  if (pool_take(pool, bytes, stream, out, rest))
    return CUDA_SUCCESS;
  CUresult result = pool_grow(pool, bytes, stream, entry, out, rest);
  if (result != CUDA_ERROR_OUT_OF_MEMORY || !wait_and_settle(pool))
    return result;
  if (pool->guard)
    cgl_pages_trim(pool);
  else if (pool_take(pool, bytes, stream, out, rest))
    return CUDA_SUCCESS;
  return pool_grow(pool, bytes, stream, entry, out, rest);
}


/* ---- blocks ---- */

/* `bytes` of a block; the rest of it returns to its lane.  Without memory for
 * records the whole block is taken. */
static cgl_block *pool_carve(cgl_pool *pool, cgl_block *block, size_t bytes,
                             cgl_lane *lane) {
  if (!pool->desc.no_split && block->bytes > bytes &&
      cgl_index_reserve(pool, 1))
    cgl_index_insert(pool, cgl_index_cut(pool, block, bytes), lane);
  return block;
}


static void pool_count(cgl_pool *pool, size_t bytes) {
  pool->stats.allocated += bytes;
  if (pool->stats.allocated > pool->stats.allocated_peak)
    pool->stats.allocated_peak = pool->stats.allocated;
  if (++pool->stats.allocations % AMORTIZED == 0 &&
      pool->patience < CGL_POOL_PATIENCE)
    pool->patience++;
}


static size_t in_units(const cgl_pool *pool, size_t bytes) {
  if (!pool->guard && !pool->desc.no_split)
    return (bytes + CGL_POOL_UNIT - 1) / CGL_POOL_UNIT * CGL_POOL_UNIT;
  size_t unit = pool->granularity;
  return (bytes + unit - 1) / unit * unit;
}


/* The lane of the stream that a block is for, which the block's rest returns to
   as a rule; NULL when it is nobody's, or without memory. */
static inline cgl_lane *home_of(cgl_pool *pool, const cgl_stream *stream,
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


/* What the live blocks of a pool have one reference to, all together. */
static cgl_object *keeper(const cgl_pool *pool) {
  return pool->own ? &pool->object.context->object
                   : (cgl_object *)&pool->object;
}


/* The block, which came from lane `rest`, is live from here on. */
static inline void hand_out(cgl_pool *pool, cgl_block *block, size_t bytes,
                            const cgl_stream *stream, cgl_lane *rest) {
  pool_count(pool, block->bytes);
  block->stream = stream->serial;
  block->free_after = 0;
  block->dropped = false;
  block->owner = NULL;
  block->number = pool->stats.allocations;
  block->requested = bytes;
  block->site = cgl_site_here;
  block->captured = pool_captures(pool, stream);
  block->home = block->captured ? NULL : home_of(pool, stream, rest);
  if (pool->stats.allocations - pool->stats.frees == 1 && !pool->idle)
    cgl_object_retain(keeper(pool));
  pool->idle = false;
  cgl_history_add(pool, block, false);
}


/* What pool_find would come to, when the stream just freed as much. */
static cgl_block *take_last(cgl_pool *pool, size_t bytes,
                            const cgl_stream *stream, cgl_lane **rest) {
  *rest = pool->lanes;
  return pool->guard || (stream->capture && !pool_captures(pool, stream))
             ? NULL
             : cgl_index_take_last(pool, stream->serial, stream->capture,
                                   bytes);
}


static CUresult pool_serve(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                           const char **entry, cgl_block **out) {
  size_t size = in_units(pool, bytes);
  cgl_lane *rest = NULL;
  cgl_latch_take(&pool->lock);
  CGL_POOL_CHECK(pool);
  CUresult result = pool_obtain(pool, size, stream, entry, out, &rest);
  if (!result) {
    *out = pool_carve(pool, *out, size, rest);
    hand_out(pool, *out, bytes, stream, rest);
  }
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
  return result;
}


CUresult cgl_pool_spare_block(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                              cgl_block **out) {
  cgl_lane *rest = NULL;
  cgl_latch_take(&pool->lock);
  cgl_index_settle(pool);
  bool found = pool_take(pool, in_units(pool, bytes), stream, out, &rest);
  if (found && !cgl_object_try_retain(&pool->object)) {
    cgl_index_insert(pool, *out, rest);
    found = false;
  }
  if (found) {
    *out = pool_carve(pool, *out, in_units(pool, bytes), rest);
    hand_out(pool, *out, bytes, stream, rest);
    atomic_fetch_sub(&pool->object.references, 1); /* the blocks have theirs */
  }
  cgl_latch_drop(&pool->lock);
  return found ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}


/* A block from anywhere, or why there is none. */
static cgl_status pool_search(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                              const char *operation, cgl_block **out) {
  cgl_context *context = pool->object.context;
  const char *entry = "cuMemCreate";
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  size_t max = pool->desc.max_bytes;
  /* No waiting and trimming for what can never be. */
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
  if (possible && result == CUDA_ERROR_OUT_OF_MEMORY && pool->own && !host &&
      !stream->capture)
    result = cgl_pools_lend(stream, bytes, out);
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
  cgl_lane *lane;
  cgl_latch_take(&pool->lock);
  cgl_block *block = take_last(pool, in_units(pool, bytes), stream, &lane);
  if (block)
    hand_out(pool, block, bytes, stream, lane);
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
  *out = block;
  return block ? CGL_OK : pool_search(pool, stream, bytes, operation, out);
}


/* The last block is gone: a context that others refer to is kept for the next
   one. */
static bool pool_stays(cgl_pool *pool) {
  cgl_context *context = pool->object.context;
  pool->idle = pool->own && !pool->host &&
               atomic_load_explicit(&context->object.references,
                                    memory_order_relaxed) > 1;
  return pool->idle;
}


/* Who may have a block next. */
static cgl_lane *lane_after(cgl_pool *pool, const cgl_block *block, bool wide) {
  if (block->captured && atomic_load(&pool->captures)) {
    if (!atomic_load(&pool->capturing))
      return &pool->scratch;
    return wide ? &pool->shared_scratch
                : cgl_index_lane(pool, block->stream, true,
                                 &pool->shared_scratch);
  }
  /* Replays of dead graphs may still be under way, anywhere. */
  return wide || !block->home ? &pool->pending : block->home;
}


cgl_block *cgl_pool_free_block(cgl_pool *pool, cgl_block *block, bool wide,
                               bool *last) {
  pool->stats.allocated -= block->bytes;
  *last = ++pool->stats.frees == pool->stats.allocations && !pool_stays(pool);
  cgl_history_add(pool, block, true);
  block->free_after = cgl_context_next_wait(pool->object.context);
  cgl_lane *lane = lane_after(pool, block, wide);
  block->tick = lane->clock ? cgl_clock_now(lane->clock) : 0;
  if (block->home)
    block->home->live--;
  block->home = NULL;
  return cgl_index_insert(pool, block, lane);
}


void cgl_pool_unkeep(cgl_pool *pool) {
  cgl_object_release(keeper(pool));
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
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
  if (last)
    cgl_pool_unkeep(pool);
}


CUresult cgl_block_open_to(cgl_block *block, CUdevice device) {
  cgl_pool *pool = block->segment->pool;
  cgl_latch_take(&pool->lock);
  CUresult result = cgl_pages_open_to(pool, device);
  cgl_latch_drop(&pool->lock);
  return result;
}


/* ---- settling and captures ---- */

void cgl_pool_settle(cgl_pool *pool) {
  cgl_latch_take(&pool->lock);
  cgl_index_settle(pool);
  if (pool->guard)
    cgl_pages_trim(pool);
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
}


void cgl_pool_capture_begins(cgl_pool *pool, uint64_t serial) {
  atomic_store(&pool->capturing, serial);
}


void cgl_pool_capture_ended(cgl_pool *pool) {
  cgl_latch_take(&pool->lock);
  atomic_store(&pool->capturing, 0);
  cgl_index_move(pool, &pool->shared_scratch, &pool->scratch);
  for (cgl_lane *lane = pool->lanes; lane; lane = lane->next)
    if (lane->scratch)
      cgl_index_move(pool, lane, &pool->scratch);
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
}


void cgl_pool_capture_held(cgl_pool *pool) {
  atomic_fetch_add(&pool->captures, 1);
}


void cgl_pool_capture_gone(cgl_pool *pool) {
  atomic_fetch_sub(&pool->captures, 1);
}
