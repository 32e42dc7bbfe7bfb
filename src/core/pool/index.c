/* The extents of a pool by lane and size: two-level bins with bit maps.
   Neighbours are joined at once. */
#include "core/pool/pool.h"

#include <stdlib.h>
#include <string.h>

enum {
  SLAB_BLOCKS = 64,
  LOOKS = 64, /* extents of one bin that are looked at for the best fit */
  NEAR = 4    /* part of a size that a good fit may leave over */
};

typedef struct cgl_slab {
  struct cgl_slab *next;
  cgl_block blocks[SLAB_BLOCKS];
} cgl_slab;


/* ---- block structs ---- */

bool cgl_index_reserve(cgl_pool *pool, size_t count) {
  while (pool->nunused < count) {
    cgl_slab *slab = malloc(sizeof *slab);
    if (!slab)
      return false;
    slab->next = pool->slabs;
    pool->slabs = slab;
    for (int i = 0; i < SLAB_BLOCKS; i++) {
      slab->blocks[i].room = NULL;
      cgl_index_discard(pool, &slab->blocks[i]);
    }
  }
  return true;
}


cgl_block *cgl_index_new_block(cgl_pool *pool) {
  cgl_block *block = pool->unused;
  pool->unused = block->next;
  pool->nunused--;
  memset(block, 0, sizeof *block);
  return block;
}


void cgl_index_discard(cgl_pool *pool, cgl_block *block) {
  free(block->room);
  block->room = NULL;
  block->next = pool->unused;
  pool->unused = block;
  pool->nunused++;
}


void cgl_index_end(cgl_pool *pool) {
  while (pool->slabs) {
    cgl_slab *slab = pool->slabs;
    pool->slabs = slab->next;
    for (int i = 0; i < SLAB_BLOCKS; i++)
      free(slab->blocks[i].room);
    free(slab);
  }
  while (pool->lanes) {
    cgl_lane *lane = pool->lanes;
    pool->lanes = lane->next;
    cgl_clock_unwatch(lane->clock);
    free(lane);
  }
}


/* ---- lanes and bins ---- */

cgl_lane *cgl_index_lane(cgl_pool *pool, uint64_t stream, bool scratch,
                         cgl_lane *otherwise) {
  cgl_lane **link = &pool->lanes, *lane;
  for (; (lane = *link); link = &lane->next)
    if (lane->stream == stream && lane->scratch == scratch)
      break;
  if (lane && lane == pool->lanes)
    return lane;
  if (lane)
    *link = lane->next;
  else if (!otherwise || !(lane = calloc(1, sizeof *lane)))
    return otherwise;
  lane->stream = stream;
  lane->scratch = scratch;
  lane->next = pool->lanes;
  pool->lanes = lane;
  return lane;
}


static void bin_find(size_t bytes, unsigned *first, unsigned *second) {
  size_t units = bytes / CGL_POOL_UNIT;
  unsigned power = 63 - (unsigned)__builtin_clzll(units);
  *first = power;
  *second =
      (unsigned)(power >= 3 ? units >> (power - 3) : units << (3 - power)) %
      CGL_LANE_SECOND;
}


static void bin_add(cgl_lane *lane, cgl_block *block) {
  unsigned first, second;
  bin_find(block->bytes, &first, &second);
  cgl_block **head = &lane->bins[first][second];
  block->lane = lane;
  block->bin_prev = NULL;
  block->bin_next = *head;
  if (*head)
    (*head)->bin_prev = block;
  *head = block;
  if (!lane->bytes || block->free_after < lane->oldest)
    lane->oldest = block->free_after;
  if (!lane->bytes || block->tick < lane->oldest_tick)
    lane->oldest_tick = block->tick;
  lane->bytes += block->bytes;
  lane->first |= (uint64_t)1 << first;
  lane->second[first] |= (uint8_t)(1u << second);
}


static inline void bin_remove(cgl_block *block, unsigned first,
                              unsigned second) {
  cgl_lane *lane = block->lane;
  if (block->bin_next)
    block->bin_next->bin_prev = block->bin_prev;
  if (block->bin_prev)
    block->bin_prev->bin_next = block->bin_next;
  else if (!(lane->bins[first][second] = block->bin_next) &&
           !(lane->second[first] &= (uint8_t) ~(1u << second)))
    lane->first &= ~((uint64_t)1 << first);
  lane->bytes -= block->bytes;
  block->lane = NULL;
}


void cgl_index_remove(cgl_block *block) {
  unsigned first, second;
  bin_find(block->bytes, &first, &second);
  bin_remove(block, first, second);
}


cgl_block *cgl_index_take_last(cgl_pool *pool, uint64_t stream, bool scratch,
                               size_t bytes) {
  const cgl_lane *lane = pool->lanes;
  if (!lane || lane->stream != stream || lane->scratch != scratch ||
      lane->bytes < bytes)
    return NULL;
  unsigned first, second;
  bin_find(bytes, &first, &second);
  if (first >= CGL_LANE_FIRST) /* larger than any block */
    return NULL;
  cgl_block *block = lane->bins[first][second];
  if (!block || block->bytes != bytes)
    return NULL;
  bin_remove(block, first, second);
  return block;
}


cgl_block *cgl_index_join(cgl_pool *pool, cgl_block *left, cgl_block *right) {
  left->bytes += right->bytes;
  if (right->free_after > left->free_after)
    left->free_after = right->free_after;
  if (right->tick > left->tick)
    left->tick = right->tick;
  left->next = right->next;
  if (right->next)
    right->next->prev = left;
  cgl_index_discard(pool, right);
  return left;
}


/* Whether an extent of the lane and its left neighbour there are to be one. */
static inline bool lane_joins(const cgl_pool *pool, const cgl_lane *lane,
                              const cgl_block *right) {
  if (lane == &pool->aliased)
    return right->offset % pool->granularity; /* in one page */
  return !pool->desc.no_split || lane == &pool->holes;
}


cgl_block *cgl_index_insert(cgl_pool *pool, cgl_block *block, cgl_lane *lane) {
  cgl_block *prev = block->prev, *next = block->next;
  if (next && next->lane == lane && lane_joins(pool, lane, next)) {
    cgl_index_remove(next);
    cgl_index_join(pool, block, next);
  }
  if (prev && prev->lane == lane && lane_joins(pool, lane, block)) {
    cgl_index_remove(prev);
    block = cgl_index_join(pool, prev, block);
  }
  bin_add(lane, block);
  return block;
}


cgl_block *cgl_index_cut(cgl_pool *pool, cgl_block *block, size_t bytes) {
  cgl_block *rest = cgl_index_new_block(pool);
  rest->segment = block->segment;
  rest->offset = block->offset + bytes;
  rest->bytes = block->bytes - bytes;
  rest->free_after = block->free_after;
  rest->tick = block->tick;
  rest->prev = block;
  rest->next = block->next;
  if (rest->next)
    rest->next->prev = rest;
  block->next = rest;
  block->bytes = bytes;
  return rest;
}


cgl_block *cgl_index_walk(const cgl_pool *pool, const cgl_block *block) {
  if (block && block->next)
    return block->next;
  const cgl_segment *segment = block ? block->segment->next : pool->segments;
  return segment ? segment->first : NULL;
}


/* ---- searching by size ---- */

/* The first extent of the next bin that is not empty; NULL: no such bin. */
static cgl_block *bin_after(const cgl_lane *lane, unsigned first,
                            unsigned second) {
  unsigned here = lane->second[first] & (~1u << second);
  if (!here) {
    uint64_t above = lane->first & (~(uint64_t)1 << first);
    if (!above)
      return NULL;
    first = (unsigned)__builtin_ctzll(above);
    here = lane->second[first];
  }
  return lane->bins[first][__builtin_ctz(here)];
}


static bool block_is_near(const cgl_block *block, size_t bytes) {
  return block->bytes <= bytes + bytes / NEAR;
}


cgl_block *cgl_index_better(cgl_block *a, cgl_block *b, size_t bytes) {
  if (!a || !b)
    return a ? a : b;
  if (a->bytes == bytes || b->bytes == bytes || !block_is_near(a, bytes) ||
      !block_is_near(b, bytes))
    return b->bytes < a->bytes ? b : a;
  CUdeviceptr here = a->segment->base + a->offset;
  return b->segment->base + b->offset < here ? b : a;
}


/* The best fit of `best` (may be NULL) and the extents of one bin. */
static cgl_block *bin_find_best(cgl_block *block, cgl_block *best,
                                size_t bytes) {
  for (int looks = 0; block && looks < LOOKS; block = block->bin_next, looks++)
    if (block->bytes >= bytes) {
      best = cgl_index_better(best, block, bytes);
      if (best->bytes == bytes)
        break;
    }
  return best;
}


cgl_block *cgl_index_find(const cgl_lane *lane, size_t bytes) {
  unsigned first, second;
  bin_find(bytes, &first, &second);
  cgl_block *best = bin_find_best(lane->bins[first][second], NULL, bytes), *bin;
  /* All extents of the bins after this one are large enough. */
  while ((bin = bin_after(lane, first, second)) &&
         (!best || (best->bytes != bytes && block_is_near(bin, bytes)))) {
    best = bin_find_best(bin, best, bytes);
    bin_find(bin->bytes, &first, &second);
  }
  return best;
}


cgl_block *cgl_index_first(const cgl_lane *lane, size_t bytes) {
  unsigned first, second;
  bin_find(bytes, &first, &second);
  cgl_block *head = lane->bins[first][second];
  return head ? head : bin_after(lane, first, second);
}


cgl_block *cgl_index_next(const cgl_block *block) {
  if (block->bin_next)
    return block->bin_next;
  unsigned first, second;
  bin_find(block->bytes, &first, &second);
  return bin_after(block->lane, first, second);
}


/* ---- moving and reclaiming ---- */

void cgl_index_move(cgl_pool *pool, cgl_lane *from, cgl_lane *to) {
  cgl_block *block;
  while ((block = cgl_index_first(from, CGL_POOL_UNIT))) {
    cgl_index_remove(block);
    cgl_index_insert(pool, block, to);
  }
}


static bool work_is_over(const cgl_context *context, const cgl_lane *lane,
                         uint64_t free_after, uint64_t tick) {
  return cgl_context_waited(context, free_after) ||
         (lane->clock && cgl_clock_done(lane->clock) > tick);
}


bool cgl_index_is_over(const cgl_block *block) {
  const cgl_pool *pool = block->segment->pool;
  return block->lane == &pool->free_to_all || block->lane == &pool->holes ||
         block->lane == &pool->aliased ||
         work_is_over(pool->object.context, block->lane, block->free_after,
                      block->tick);
}


static void lane_reclaim(cgl_pool *pool, cgl_lane *lane) {
  const cgl_context *context = pool->object.context;
  if (!lane->bytes ||
      !work_is_over(context, lane, lane->oldest, lane->oldest_tick))
    return;
  uint64_t oldest = UINT64_MAX, oldest_tick = UINT64_MAX;
  cgl_block *next;
  for (cgl_block *block = cgl_index_first(lane, CGL_POOL_UNIT); block;
       block = next) {
    next = cgl_index_next(block);
    if (!work_is_over(context, lane, block->free_after, block->tick)) {
      oldest = block->free_after < oldest ? block->free_after : oldest;
      oldest_tick = block->tick < oldest_tick ? block->tick : oldest_tick;
      continue;
    }
    cgl_index_remove(block);
    block->tick = 0;
    cgl_index_insert(pool, block, &pool->free_to_all);
  }
  lane->oldest = oldest;
  lane->oldest_tick = oldest_tick;
}


/* Frees the lanes of streams that have no extents and are home to no block. */
static void lanes_drop_empty(cgl_pool *pool) {
  for (cgl_lane **link = &pool->lanes, *lane; (lane = *link);) {
    if (lane->bytes || lane->live) {
      link = &lane->next;
      continue;
    }
    *link = lane->next;
    cgl_clock_unwatch(lane->clock);
    free(lane);
  }
}


void cgl_index_reclaim(cgl_pool *pool) {
  /* Scratch stays scratch while graphs live or their replays may run. */
  bool replayed = atomic_load(&pool->captures) ||
                  !cgl_context_waited(pool->object.context,
                                      atomic_load(&pool->sharing.used));
  lane_reclaim(pool, &pool->pending);
  for (cgl_lane *lane = pool->lanes; lane; lane = lane->next)
    if (!lane->scratch || !replayed)
      lane_reclaim(pool, lane);
  if (!replayed) {
    lane_reclaim(pool, &pool->scratch);
    lane_reclaim(pool, &pool->shared_scratch);
  }
  lanes_drop_empty(pool);
}
