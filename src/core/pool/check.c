/* The invariants of a pool, looked at one by one. */
#include "core/pool/pool.h"


/* Whether the granules under an extent all have memory, or none. */
static bool granules_agree(const cgl_segment *segment, const cgl_block *block,
                           size_t granule) {
  bool hole = block->extent == CGL_EXTENT_HOLE;
  if (!segment->granules)
    return !hole;
  if (hole && (block->offset % granule || block->bytes % granule))
    return false;
  size_t end = (block->offset + block->bytes + granule - 1) / granule;
  if (block->extent == CGL_EXTENT_LENT &&
      (end - block->offset / granule != 1 || !segment->granules[end - 1].lent ||
       !segment->granules[end - 1].ring))
    return false;
  for (size_t i = block->offset / granule; i < end; i++)
    if (hole == (segment->granules[i].of != 0))
      return false;
  return true;
}


/* Counts how often each unit of a granule belongs to one mapping of it. */
static void count_owned(const cgl_segment *segment, size_t at, size_t granule,
                        uint8_t *owners) {
  size_t from = at * granule, to = from + granule;
  const cgl_block *block = segment->first;
  if (segment->granules[at].lent)
    for (block = segment->granules[at].lent; block->offset > from;)
      block = block->prev;
  for (; block && block->offset < to; block = block->next)
    for (size_t i = block->offset > from ? block->offset : from;
         block->extent != CGL_EXTENT_LENT && i < to &&
         i < block->offset + block->bytes;
         i += CGL_POOL_UNIT)
      owners[(i - from) / CGL_POOL_UNIT]++;
}


/* Whether a granule that is mapped several times has each unit at one of its
 * mappings. */
static bool ring_is_valid(const cgl_segment *segment, size_t at,
                          size_t granule) {
  const cgl_granule *first = &segment->granules[at], *g = first;
  enum { UNITS = 8192 };
  uint8_t owners[UNITS] = {0};
  if (!g->ring)
    return !g->lent;
  if (granule > (size_t)UNITS * CGL_POOL_UNIT || g->of != 1)
    return g->of == 1;
  do {
    const cgl_segment *there = g->ring;
    size_t ring_at = g->ring_at;
    g = &there->granules[ring_at];
    if (g->handle != first->handle)
      return false;
    count_owned(there, ring_at, granule, owners);
  } while (g != first);
  for (size_t i = 0; i < granule / CGL_POOL_UNIT; i++)
    if (owners[i] != 1)
      return false;
  return true;
}


static bool neighbours_agree(const cgl_block *block, bool no_split) {
  const cgl_block *next = block->next;
  if (!next)
    return true;
  if (next->prev != block)
    return false;
  if (block->extent != next->extent || block->extent == CGL_EXTENT_LIVE)
    return true;
  if (block->extent == CGL_EXTENT_LENT)
    return next->offset % block->segment->pool->granularity == 0;
  return block->extent == CGL_EXTENT_FREE &&
         (no_split || block->lane != next->lane);
}


typedef struct sums {
  size_t allocated, mapped, holes, lent, free_extents, free_bytes, segments;
} sums;


static bool segment_is_valid(const cgl_pool *pool, const cgl_segment *segment,
                             sums *sum) {
  size_t at = 0, mapped = 0;
  const cgl_block *prev = NULL;
  for (const cgl_block *block = segment->first; block; block = block->next) {
    if (block->offset != at || !block->bytes || block->segment != segment ||
        block->prev != prev || block->bytes % CGL_POOL_UNIT ||
        !granules_agree(segment, block, pool->granularity) ||
        !neighbours_agree(block, pool->desc.no_split))
      return false;
    at += block->bytes;
    prev = block;
    if (block->extent == CGL_EXTENT_HOLE) {
      sum->holes++;
      continue;
    }
    if (block->extent == CGL_EXTENT_LENT) {
      sum->lent++;
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


/* Counts a lane's extents; false when one is in the wrong place. */
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
  size_t extents = 0, bytes = 0, holes = 0, lent = 0, spare = 0;
  const cgl_lane *fixed[] = {&pool->anybody, &pool->pending, &pool->scratch,
                             &pool->shared_scratch};
  for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
    if (!lane_is_valid(fixed[i], &extents, &bytes))
      return false;
  for (const cgl_lane *lane = pool->lanes; lane; lane = lane->next)
    if (!lane_is_valid(lane, &extents, &bytes))
      return false;
  for (const cgl_block *hole = pool->holes; hole; hole = hole->bin_next)
    holes += hole->extent == CGL_EXTENT_HOLE;
  for (const cgl_block *block = pool->lent; block; block = block->bin_next)
    lent += block->extent == CGL_EXTENT_LENT;
  for (size_t i = 0; i < pool->nspare; i++)
    spare += pool->spare[i].granules * pool->granularity;
  return extents == sum.free_extents && bytes == sum.free_bytes &&
         holes == sum.holes && lent == sum.lent &&
         sum.allocated == pool->stats.allocated &&
         sum.mapped + spare == pool->stats.reserved &&
         sum.segments == pool->stats.segments;
}
