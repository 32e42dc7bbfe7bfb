/* The invariants of a pool. */
#include "core/pool/pool.h"


/* Whether the pages under an extent all have memory, or none. */
static bool pages_are_valid(const cgl_segment *segment, const cgl_block *block,
                            size_t page_bytes) {
  bool hole = block->extent == CGL_EXTENT_HOLE;
  if (!segment->pages)
    return !hole;
  if (hole && (block->offset % page_bytes || block->bytes % page_bytes))
    return false;
  size_t end = (block->offset + block->bytes + page_bytes - 1) / page_bytes;
  if (block->extent == CGL_EXTENT_ALIASED &&
      (end - block->offset / page_bytes != 1 ||
       !segment->pages[end - 1].aliased || !segment->pages[end - 1].ring))
    return false;
  for (size_t i = block->offset / page_bytes; i < end; i++)
    if (hole == (segment->pages[i].of != 0))
      return false;
  return true;
}


/* Counts the extents of one mapping to which each unit of a page belongs. */
static void page_count_owners(const cgl_segment *segment, size_t at,
                              size_t page_bytes, uint8_t *owners) {
  size_t from = at * page_bytes, to = from + page_bytes;
  const cgl_block *block = segment->first;
  if (segment->pages[at].aliased)
    for (block = segment->pages[at].aliased; block->offset > from;)
      block = block->prev;
  for (; block && block->offset < to; block = block->next)
    for (size_t i = block->offset > from ? block->offset : from;
         block->extent != CGL_EXTENT_ALIASED && i < to &&
         i < block->offset + block->bytes;
         i += CGL_POOL_UNIT)
      owners[(i - from) / CGL_POOL_UNIT]++;
}


/* Whether each unit of a page belongs to exactly one of its mappings. */
static bool ring_is_valid(const cgl_segment *segment, size_t at,
                          size_t page_bytes) {
  const cgl_page *first = &segment->pages[at], *g = first;
  enum { UNITS = 8192 };
  uint8_t owners[UNITS] = {0};
  if (!g->ring)
    return !g->aliased;
  if (page_bytes > (size_t)UNITS * CGL_POOL_UNIT || g->of != 1)
    return g->of == 1;
  do {
    const cgl_segment *there = g->ring;
    size_t ring_at = g->ring_at;
    g = &there->pages[ring_at];
    if (g->handle != first->handle)
      return false;
    page_count_owners(there, ring_at, page_bytes, owners);
  } while (g != first);
  for (size_t i = 0; i < page_bytes / CGL_POOL_UNIT; i++)
    if (owners[i] != 1)
      return false;
  return true;
}


static bool neighbours_are_valid(const cgl_block *block, bool no_split) {
  const cgl_block *next = block->next;
  if (!next)
    return true;
  if (next->prev != block)
    return false;
  if (block->extent != next->extent || block->extent == CGL_EXTENT_LIVE)
    return true;
  if (block->extent == CGL_EXTENT_ALIASED)
    return next->offset % block->segment->pool->granularity == 0;
  return block->extent == CGL_EXTENT_FREE &&
         (no_split || block->lane != next->lane);
}


typedef struct sums {
  size_t allocated, mapped, holes, aliased, free_extents, free_bytes, segments;
} sums;


static bool segment_is_valid(const cgl_pool *pool, const cgl_segment *segment,
                             sums *sum) {
  size_t at = 0, mapped = 0;
  const cgl_block *prev = NULL;
  for (const cgl_block *block = segment->first; block; block = block->next) {
    if (block->offset != at || !block->bytes || block->segment != segment ||
        block->prev != prev || block->bytes % CGL_POOL_UNIT ||
        !pages_are_valid(segment, block, pool->granularity) ||
        !neighbours_are_valid(block, pool->desc.no_split))
      return false;
    at += block->bytes;
    prev = block;
    if (block->extent == CGL_EXTENT_HOLE) {
      sum->holes++;
      continue;
    }
    if (block->extent == CGL_EXTENT_ALIASED) {
      sum->aliased++;
      if (!ring_is_valid(segment, block->offset / pool->granularity,
                         pool->granularity))
        return false;
      continue;
    }
    mapped += block->bytes;
    if (block->extent == CGL_EXTENT_LIVE) {
      sum->allocated += block->bytes;
    } else {
      sum->free_extents++;
      sum->free_bytes += block->bytes;
    }
  }
  sum->mapped += mapped;
  sum->segments++;
  return at == segment->bytes && mapped == segment->mapped;
}


/* Counts a lane's extents; false when an extent is in the wrong bin. */
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
        if (block->lane != lane || block->extent != CGL_EXTENT_FREE ||
            block->free_after < lane->oldest || block->tick < lane->oldest_tick)
          return false;
        ++*extents;
        own += block->bytes;
      }
    }
  }
  *bytes += own;
  return own == lane->bytes;
}


bool cgl_pool_is_valid(const cgl_pool *pool) {
  sums sum = {0};
  for (const cgl_segment *segment = pool->segments; segment;
       segment = segment->next)
    if (!segment_is_valid(pool, segment, &sum))
      return false;
  size_t extents = 0, bytes = 0, holes = 0, aliased = 0, spare = 0;
  const cgl_lane *fixed[] = {&pool->free_to_all, &pool->pending, &pool->scratch,
                             &pool->shared_scratch};
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
    if (!lane_is_valid(fixed[i], &extents, &bytes))
      return false;
  for (const cgl_lane *lane = pool->lanes; lane; lane = lane->next)
    if (!lane_is_valid(lane, &extents, &bytes))
      return false;
  for (const cgl_block *hole = pool->holes; hole; hole = hole->bin_next)
    holes += hole->extent == CGL_EXTENT_HOLE;
  for (const cgl_block *block = pool->aliased; block; block = block->bin_next)
    aliased += block->extent == CGL_EXTENT_ALIASED;
  for (size_t i = 0; i < pool->nspare; i++)
    spare += pool->spare[i].pages * pool->granularity;
  return extents == sum.free_extents && bytes == sum.free_bytes &&
         holes == sum.holes && aliased == sum.aliased &&
         sum.allocated == pool->stats.allocated &&
         sum.mapped + spare == pool->stats.reserved &&
         sum.segments == pool->stats.segments;
}
