/* The invariants of a pool. */
#include "core/pool/pool.h"


/* Whether each unit of a page with several mappings belongs to exactly one of
   them. */
static bool ring_is_valid(const cgl_segment *segment, size_t at,
                          size_t page_bytes) {
  enum { UNITS = 8192 };
  bool owned[UNITS] = {false};
  size_t owners = 0;
  const cgl_page *first = &segment->pages[at], *g = first;
  if (!g->ring || g->of != 1 || page_bytes > (size_t)UNITS * CGL_POOL_UNIT)
    return g->ring && g->of == 1;
  do {
    size_t from = g->ring_at * page_bytes;
    g = &g->ring->pages[g->ring_at];
    const cgl_block *block = g->aliased;
    if (!block || g->handle != first->handle)
      return false;
    while (block->offset > from)
      block = block->prev;
    for (; block && block->offset < from + page_bytes; block = block->next) {
      size_t i = block->offset > from ? block->offset : from;
      size_t end = block->offset + block->bytes;
      end = end < from + page_bytes ? end : from + page_bytes;
      for (; block->lane != &segment->pool->aliased && i < end;
           i += CGL_POOL_UNIT, owners++) {
        if (owned[(i - from) / CGL_POOL_UNIT])
          return false;
        owned[(i - from) / CGL_POOL_UNIT] = true;
      }
    }
  } while (g != first);
  return owners == page_bytes / CGL_POOL_UNIT;
}


/* Whether the pages under an extent all have memory, or none. */
static bool pages_are_valid(const cgl_block *block) {
  const cgl_segment *segment = block->segment;
  const cgl_pool *pool = segment->pool;
  size_t page_bytes = pool->granularity;
  bool hole = block->lane == &pool->holes;
  bool aliased = block->lane == &pool->aliased;
  if (pool->desc.allocator)
    return !hole && !aliased;
  if (hole && (block->offset % page_bytes || block->bytes % page_bytes))
    return false;
  size_t at = block->offset / page_bytes;
  size_t end = (block->offset + block->bytes + page_bytes - 1) / page_bytes;
  if (aliased && (end - at != 1 || !segment->pages[at].aliased ||
                  !ring_is_valid(segment, at, page_bytes)))
    return false;
  for (; at < end; at++)
    if (hole == (segment->pages[at].of != 0))
      return false;
  return true;
}


static bool block_is_valid(const cgl_block *block) {
  const cgl_segment *segment = block->segment;
  const cgl_pool *pool = segment->pool;
  const cgl_block *next = block->next;
  size_t end = block->offset + block->bytes;
  if (!block->bytes || block->bytes % CGL_POOL_UNIT ||
      (!block->prev && block->offset) || !pages_are_valid(block))
    return false;
  if (!next)
    return end == segment->bytes;
  if (next->prev != block || next->segment != segment || next->offset != end)
    return false;
  if (!block->lane || block->lane != next->lane)
    return true;
  if (block->lane == &pool->aliased)
    return next->offset % pool->granularity == 0;
  return block->lane != &pool->holes && pool->desc.no_split;
}


/* Takes a lane's extents off the sums; false when an extent is in the wrong
   bin. */
static bool lane_is_valid(const cgl_lane *lane, size_t *extents,
                          size_t *bytes) {
  size_t own = 0;
  for (int i = 0; i < CGL_LANE_FIRST; i++) {
    if ((lane->second[i] != 0) != (lane->first >> i & 1))
      return false;
    for (int k = 0; k < CGL_LANE_SECOND; k++) {
      if ((lane->bins[i][k] != NULL) != (lane->second[i] >> k & 1))
        return false;
      for (const cgl_block *block = lane->bins[i][k]; block;
           block = block->bin_next) {
        if (block->lane != lane || block->free_after < lane->oldest ||
            block->tick < lane->oldest_tick)
          return false;
        --*extents;
        own += block->bytes;
      }
    }
  }
  *bytes -= own;
  return own == lane->bytes;
}


bool cgl_pool_is_valid(const cgl_pool *pool) {
  size_t segments = 0, allocated = 0, extents = 0, bytes = 0;
  for (const cgl_block *block = NULL; (block = cgl_index_walk(pool, block));) {
    if (!block_is_valid(block))
      return false;
    segments += !block->prev;
    extents += block->lane != NULL;
    bytes += block->lane ? block->bytes : 0;
    allocated += block->lane ? 0 : block->bytes;
  }
  size_t reserved = allocated + bytes - pool->holes.bytes - pool->aliased.bytes;
  for (size_t i = 0; i < pool->nspare; i++)
    reserved += pool->spare[i].pages * pool->granularity;
  const cgl_lane *fixed[] = {
      &pool->free_to_all, &pool->pending, &pool->scratch, &pool->shared_scratch,
      &pool->holes,       &pool->aliased, &pool->older};
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
    if (!lane_is_valid(fixed[i], &extents, &bytes))
      return false;
  for (const cgl_lane *lane = pool->lanes; lane; lane = lane->next)
    if (!lane_is_valid(lane, &extents, &bytes))
      return false;
  return !extents && !bytes && allocated == pool->stats.allocated &&
         reserved == pool->stats.reserved && segments == pool->stats.segments;
}
