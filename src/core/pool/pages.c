/* The memory under a pool: address space reserved in segments, and chunks that
   are created, mapped, harvested and returned. */
#include "core/pool/pool.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define FIRST_SEGMENT (256 * MIB) /* of address space; the next are larger */
enum {
  MAX_DEVICES = 64,
  ALIGNMENT = 256,
  HUGE = 128 /* pages: from there on many small chunks take too long */
};


static size_t round_up(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}


CUmemAllocationProp cgl_pages_properties(const cgl_pool *pool) {
  return (CUmemAllocationProp){
      .type = CU_MEM_ALLOCATION_TYPE_PINNED,
      .location = {CU_MEM_LOCATION_TYPE_DEVICE, pool->object.context->device}};
}


/* ---- spare chunks ---- */

/* Makes room for `count` more; false without memory. */
static bool spare_reserve(cgl_pool *pool, size_t count) {
  if (pool->nspare + count <= pool->spare_size)
    return true;
  size_t size = 2 * pool->spare_size + count;
  cgl_chunk *grown = realloc(pool->spare, size * sizeof *grown);
  if (!grown)
    return false;
  pool->spare = grown;
  pool->spare_size = size;
  return true;
}


/* The largest spare chunk of at most `most` pages. */
static bool spare_take(cgl_pool *pool, size_t most, cgl_chunk *chunk) {
  size_t best = pool->nspare;
  for (size_t i = pool->nspare; i-- > 0;)
    if (pool->spare[i].pages <= most &&
        (best == pool->nspare ||
         pool->spare[i].pages > pool->spare[best].pages))
      best = i;
  if (best == pool->nspare)
    return false;
  *chunk = pool->spare[best];
  pool->spare[best] = pool->spare[--pool->nspare];
  return true;
}


static void spare_release(cgl_pool *pool) {
  while (pool->nspare) {
    cgl_chunk *chunk = &pool->spare[--pool->nspare];
    cgl_driver_of(pool)->cuMemRelease(chunk->handle);
    pool->stats.reserved -= chunk->pages * pool->granularity;
  }
}


/* ---- mapping and unmapping ---- */

static void pool_count_reserved(cgl_pool *pool, size_t bytes) {
  pool->stats.reserved += bytes;
  if (pool->stats.reserved > pool->stats.reserved_peak)
    pool->stats.reserved_peak = pool->stats.reserved;
}


/* Whether max_bytes lets the pool reserve `bytes` more. */
static bool pool_may_reserve(const cgl_pool *pool, size_t bytes) {
  return !pool->desc.max_bytes ||
         pool->stats.reserved + bytes <= pool->desc.max_bytes;
}


/* A chunk of `pages` pages, or of one page when the driver lacks the memory. */
static CUresult chunk_create(cgl_pool *pool, size_t pages, cgl_chunk *chunk,
                             const char **entry) {
  CUmemAllocationProp prop = cgl_pages_properties(pool);
  size_t bytes = pages * pool->granularity;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  *entry = "max_bytes";
  if (pool_may_reserve(pool, bytes)) {
    *entry = "cuMemCreate";
    result = cgl_driver_of(pool)->cuMemCreate(&chunk->handle, bytes, &prop, 0);
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY && pages > 1)
    return chunk_create(pool, 1, chunk, entry);
  if (result)
    return result;
  chunk->pages = pages;
  pool_count_reserved(pool, pages * pool->granularity);
  return CUDA_SUCCESS;
}


static CUresult chunk_map(cgl_segment *segment, size_t at, cgl_chunk chunk) {
  cgl_pool *pool = segment->pool;
  size_t page_bytes = pool->granularity;
  CUresult result = cgl_driver_of(pool)->cuMemMap(
      segment->base + at * page_bytes, chunk.pages * page_bytes, 0,
      chunk.handle, 0);
  if (result)
    return result;
  for (size_t i = 0; i < chunk.pages; i++)
    segment->pages[at + i] = (cgl_page){
        .handle = chunk.handle, .at = (uint16_t)i, .of = (uint16_t)chunk.pages};
  return CUDA_SUCCESS;
}


/* Unmaps the chunk that begins at page `at` and makes it spare; the caller made
   room.  A failure is of earlier work, and the memory is unmapped anyway. */
static void chunk_unmap(cgl_segment *segment, size_t at) {
  cgl_pool *pool = segment->pool;
  size_t page_bytes = pool->granularity;
  cgl_chunk chunk = {segment->pages[at].handle, segment->pages[at].of};
  cgl_driver_of(pool)->cuMemUnmap(segment->base + at * page_bytes,
                                  chunk.pages * page_bytes);
  memset(&segment->pages[at], 0, chunk.pages * sizeof *segment->pages);
  pool->spare[pool->nspare++] = chunk;
}


CUresult cgl_pages_open(cgl_pool *pool, CUdeviceptr address, size_t bytes) {
  CUmemAccessDesc access[MAX_DEVICES + 1];
  CUmemAllocationProp prop = cgl_pages_properties(pool);
  size_t count = 0;
  access[count++] =
      (CUmemAccessDesc){prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (int i = 0; i < MAX_DEVICES; i++)
    if (pool->opened & (uint64_t)1 << i)
      access[count++] = (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, i},
                                          CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return cgl_driver_of(pool)->cuMemSetAccess(address, bytes, access, count);
}


CUresult cgl_block_open_to(const cgl_block *block, CUdevice device) {
  cgl_pool *pool = block->segment->pool;
  uint64_t bit = (uint64_t)1 << (device % MAX_DEVICES);
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult result = CUDA_SUCCESS;
  cgl_latch_take(&pool->lock);
  bool open = pool->desc.allocator || pool->opened & bit;
  block = open ? NULL : cgl_index_walk(pool, NULL);
  while (block && !result) {
    /* All that lies side by side at once. */
    const cgl_segment *segment = block->segment;
    CUdeviceptr address = segment->base + block->offset;
    size_t bytes = 0;
    for (; block && block->segment == segment && block->lane != &pool->holes;
         block = cgl_index_walk(pool, block))
      bytes += block->bytes;
    if (bytes)
      result = cgl_driver_of(pool)->cuMemSetAccess(address, bytes, &access, 1);
    else
      block = cgl_index_walk(pool, block);
  }
  if (!result && !open)
    pool->opened |= bit;
  cgl_latch_drop(&pool->lock);
  return result;
}


/* ---- harvesting ---- */

/* Takes up to `want` pages out of a free extent, in chunks of at most
   `most`; leaves its other parts in the lane. */
static size_t harvest_block(cgl_pool *pool, cgl_block *block, size_t want,
                            size_t most) {
  size_t page_bytes = pool->granularity, taken = 0;
  cgl_segment *segment = block->segment;
  size_t from = round_up(block->offset, page_bytes) / page_bytes;
  size_t end = (block->offset + block->bytes) / page_bytes;
  while (end > from && taken < want) {
    const cgl_page *last = &segment->pages[end - 1];
    size_t count = last->of, at = end - 1 - last->at;
    if (at < from)
      break;
    end = at;
    if (last->at + 1 != last->of || count > most || last->ring)
      continue;
    if (!cgl_index_reserve(pool, 2) || !spare_reserve(pool, 1))
      break;
    chunk_unmap(segment, at);
    cgl_index_remove(block);
    cgl_block *rest = NULL, *hole = block;
    if (block->offset + block->bytes > (at + count) * page_bytes)
      rest =
          cgl_index_cut(pool, block, (at + count) * page_bytes - block->offset);
    if (block->offset < at * page_bytes)
      hole = cgl_index_cut(pool, block, at * page_bytes - block->offset);
    if (rest)
      cgl_index_insert(pool, rest, &pool->free_to_all);
    cgl_index_insert(pool, hole, &pool->holes);
    taken += count;
    if (hole == block)
      break;
    cgl_index_insert(pool, block, &pool->free_to_all);
  }
  return taken;
}


/* Makes up to `want` pages spare, the smallest free extents first. */
static void pool_harvest(cgl_pool *pool, size_t want, size_t most) {
  cgl_block *next,
      *block = cgl_index_first(&pool->free_to_all, pool->granularity);
  for (; block && want && !pool->desc.allocator; block = next) {
    next = cgl_index_next(block);
    size_t taken = harvest_block(pool, block, want, most);
    want -= taken < want ? taken : want;
  }
}


/* ---- growing ---- */

/* Where to grow. */
typedef struct growth {
  cgl_block *hole;         /* the hole to fill; NULL: a new segment's */
  cgl_block *left, *right; /* its free neighbours that are used, too, or NULL */
  size_t missing;          /* bytes of memory to map into the hole */
} growth;


static cgl_block *growth_neighbour(const cgl_pool *pool, cgl_block *block,
                                   const cgl_lane *own) {
  bool fits = block && block->lane && !pool->desc.no_split &&
              (block->lane == &pool->free_to_all || block->lane == own ||
               (own && own->scratch && block->lane == &pool->scratch));
  return fits ? block : NULL;
}


static void growth_weigh(const cgl_pool *pool, cgl_block *hole, size_t bytes,
                         const cgl_lane *own, growth *best) {
  growth g = {hole, growth_neighbour(pool, hole->prev, own), NULL, 0};
  size_t have = g.left ? g.left->bytes : 0;
  g.missing = round_up(bytes > have ? bytes - have : 1, pool->granularity);
  if (g.missing > hole->bytes) {
    g.right = growth_neighbour(pool, hole->next, own);
    g.missing = hole->bytes;
    if (!g.right || have + hole->bytes + g.right->bytes < bytes)
      return;
  }
  if (!best->hole || g.missing < best->missing ||
      (g.missing == best->missing && hole->bytes < best->hole->bytes))
    *best = g;
}


/* The growth that needs least memory. */
static growth growth_choose(const cgl_pool *pool, size_t bytes,
                            const cgl_lane *own) {
  growth g = {NULL, NULL, NULL, 0};
  for (cgl_block *hole = cgl_index_first(&pool->holes, pool->granularity);
       hole && !pool->guard; hole = cgl_index_next(hole))
    growth_weigh(pool, hole, bytes, own, &g);
  if (!g.hole)
    g.missing = round_up(bytes, pool->granularity);
  return g;
}


/* A free extent when what is left of pages makes one; else what is to grow,
   with such parts beside it where that takes less. */
static cgl_block *pool_assemble(cgl_pool *pool, size_t bytes,
                                const cgl_lane *own, growth *g) {
  bool may = !pool->guard && !pool->desc.no_split;
  if (may)
    cgl_stitch_undo(pool);
  cgl_block *block = may ? cgl_index_find(&pool->free_to_all, bytes) : NULL;
  if (block)
    return block;
  *g = growth_choose(pool, bytes, own);
  if (!may || !cgl_stitch(pool, bytes, g->missing / pool->granularity))
    return NULL;
  *g = growth_choose(pool, bytes, own);
  return cgl_index_find(&pool->free_to_all, bytes);
}


/* Address space from the driver, or memory from the pool's allocator. */
static CUresult segment_obtain(cgl_segment *segment, const cgl_stream *stream,
                               const char **entry) {
  const cgl_pool *pool = segment->pool;
  const cgl_allocator *allocator = &pool->allocator;
  if (!pool->desc.allocator) {
    *entry = "cuMemAddressReserve";
    return cgl_driver_of(pool)->cuMemAddressReserve(&segment->base,
                                                    segment->bytes, 0, 0, 0);
  }
  *entry = "the pool's allocator";
  uint64_t address = 0;
  CUresult result = (CUresult)allocator->allocate(
      allocator->user, &address, segment->bytes, stream->handle);
  segment->base = address;
  if (result || (address && address % ALIGNMENT == 0))
    return result;
  if (address)
    allocator->release(allocator->user, address, segment->bytes);
  return CUDA_ERROR_MISALIGNED_ADDRESS;
}


/* A new segment as one extent, which is in no lane. */
static CUresult segment_add(cgl_pool *pool, size_t bytes,
                            const cgl_stream *stream, const char **entry,
                            cgl_block **out) {
  size_t pages = pool->desc.allocator ? 0 : bytes / pool->granularity;
  cgl_segment *segment =
      calloc(1, sizeof *segment + pages * sizeof *segment->pages);
  *entry = "malloc";
  if (!segment || !cgl_index_reserve(pool, 1)) {
    free(segment);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  segment->pool = pool;
  segment->bytes = bytes;
  CUresult result = segment_obtain(segment, stream, entry);
  if (result) {
    free(segment);
    return result;
  }
  *out = segment->first = cgl_index_new_block(pool);
  (*out)->segment = segment;
  (*out)->bytes = bytes;
  cgl_segment **link = &pool->segments;
  while (*link && (*link)->base < segment->base)
    link = &(*link)->next;
  segment->next = *link;
  *link = segment;
  pool->stats.segments++;
  return CUDA_SUCCESS;
}


/* A new segment of address space, as one hole. */
static CUresult segment_reserve(cgl_pool *pool, size_t bytes,
                                const char **entry, cgl_block **hole) {
  size_t page_bytes = pool->granularity, wanted = FIRST_SEGMENT;
  for (const cgl_segment *s = pool->segments; s; s = s->next)
    wanted = 4 * s->bytes > wanted ? 4 * s->bytes : wanted;
  size_t most = 4 * pool->object.context->info.memory;
  wanted = round_up(wanted > most ? most : wanted, page_bytes);
  bytes = round_up(bytes, page_bytes);
  if (pool->guard)
    wanted = bytes + page_bytes;
  CUresult result =
      segment_add(pool, wanted > bytes ? wanted : bytes, NULL, entry, hole);
  if (!result)
    cgl_index_insert(pool, *hole, &pool->holes);
  return result;
}


/* A new segment from the pool's allocator; small blocks share one. */
static CUresult segment_allocate(cgl_pool *pool, size_t bytes,
                                 const cgl_stream *stream, const char **entry,
                                 cgl_block **out) {
  if (pool->desc.no_split || bytes > MIB)
    bytes = round_up(bytes, 2 * MIB);
  else
    bytes = 2 * MIB;
  *entry = "max_bytes";
  if (!pool_may_reserve(pool, bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = segment_add(pool, bytes, stream, entry, out);
  if (!result)
    pool_count_reserved(pool, bytes);
  return result;
}


/* Puts memory under the hole's first `want` pages, or more when a chunk is
   larger; *laid of them.  Nothing is laid when it fails. */
static CUresult hole_map(cgl_pool *pool, cgl_block *hole, size_t want,
                         size_t *laid, const char **entry) {
  cgl_segment *segment = hole->segment;
  size_t at = hole->offset / pool->granularity,
         room = hole->bytes / pool->granularity;
  CUresult result = CUDA_SUCCESS;
  *laid = 0;
  while (*laid < want && !result) {
    cgl_chunk chunk;
    size_t left = want - *laid;
    if (!spare_take(pool, left, &chunk) &&
        (pool->desc.no_split || !spare_take(pool, room - *laid, &chunk)))
      result =
          chunk_create(pool, left < HUGE ? 1 : CGL_POOL_CHUNK, &chunk, entry);
    if (result)
      break;
    *entry = "cuMemMap";
    result = chunk_map(segment, at + *laid, chunk);
    if (result)
      pool->spare[pool->nspare++] = chunk;
    else
      *laid += chunk.pages;
  }
  if (!result) {
    *entry = "cuMemSetAccess";
    result = cgl_pages_open(pool, segment->base + at * pool->granularity,
                            *laid * pool->granularity);
  }
  if (!result)
    return CUDA_SUCCESS;
  while (*laid) {
    const cgl_page *last = &segment->pages[at + *laid - 1];
    *laid -= last->of;
    chunk_unmap(segment, at + *laid);
  }
  return result;
}


CUresult cgl_pages_extend(cgl_pool *pool, size_t bytes,
                          const cgl_stream *stream, const cgl_lane *own,
                          const char **entry, cgl_block **out,
                          cgl_lane **rest) {
  *rest = &pool->free_to_all;
  if (pool->desc.allocator)
    return segment_allocate(pool, bytes, stream, entry, out);
  growth g;
  *out = pool_assemble(pool, bytes, own, &g);
  if (*out) {
    cgl_index_remove(*out);
    return CUDA_SUCCESS;
  }
  if (!g.hole) {
    CUresult result = segment_reserve(pool, bytes, entry, &g.hole);
    if (result)
      return result;
  }
  size_t want = g.missing / pool->granularity;
  *entry = "malloc";
  if (!spare_reserve(pool, want + 1) || !cgl_index_reserve(pool, 2))
    return CUDA_ERROR_OUT_OF_MEMORY;
  cgl_lane *left_lane = NULL, *right_lane = NULL;
  if (g.left) {
    left_lane = g.left->lane;
    cgl_index_remove(g.left);
  }
  if (g.right) {
    right_lane = g.right->lane;
    cgl_index_remove(g.right);
  }
  /* Not a hole any more: holes that the harvest makes beside it would join it.
   */
  cgl_index_remove(g.hole);
  if (!pool->guard && pool->free_to_all.bytes >= pool->granularity)
    pool_harvest(pool, want, g.hole->bytes / pool->granularity);
  size_t laid = 0;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (cgl_index_reserve(pool, 2) && spare_reserve(pool, want + 1))
    result = hole_map(pool, g.hole, want, &laid, entry);
  if (result) {
    cgl_index_insert(pool, g.hole, &pool->holes);
    if (g.left)
      cgl_index_insert(pool, g.left, left_lane);
    if (g.right)
      cgl_index_insert(pool, g.right, right_lane);
    return result;
  }
  cgl_block *block = g.hole;
  laid *= pool->granularity;
  block->free_after = 0;
  if (laid < block->bytes)
    cgl_index_insert(pool, cgl_index_cut(pool, block, laid), &pool->holes);
  if (g.right)
    block = cgl_index_join(pool, block, g.right);
  if (g.left)
    block = cgl_index_join(pool, g.left, block);
  if (g.right)
    *rest = right_lane;
  *out = block;
  return CUDA_SUCCESS;
}


/* ---- returning ---- */

/* Frees a segment in which nothing is mapped. */
static void segment_free(cgl_pool *pool, cgl_segment *segment) {
  if (pool->desc.allocator) {
    pool->allocator.release(pool->allocator.user, segment->base,
                            segment->bytes);
    pool->stats.reserved -= segment->bytes;
  } else {
    cgl_driver_of(pool)->cuMemAddressFree(segment->base, segment->bytes);
  }
  cgl_sharing_forget(&pool->sharing, segment->base, segment->bytes);
  free(segment);
  pool->stats.segments--;
}


size_t cgl_pages_trim(cgl_pool *pool) {
  size_t before = pool->stats.reserved;
  cgl_stitch_undo(pool);
  pool_harvest(pool, SIZE_MAX, SIZE_MAX);
  spare_release(pool);
  for (cgl_segment **link = &pool->segments, *segment; (segment = *link);) {
    cgl_block *first = segment->first;
    const cgl_lane *empty =
        pool->desc.allocator ? &pool->free_to_all : &pool->holes;
    if (first->next || first->lane != empty) {
      link = &segment->next;
      continue;
    }
    *link = segment->next;
    cgl_index_remove(first);
    cgl_index_discard(pool, first);
    segment_free(pool, segment);
  }
  return before - pool->stats.reserved;
}


void cgl_pages_end(cgl_pool *pool) {
  const cgl_driver *driver = cgl_driver_of(pool);
  size_t page_bytes = pool->granularity;
  spare_release(pool);
  free(pool->spare);
  while (pool->segments) {
    cgl_segment *segment = pool->segments;
    pool->segments = segment->next;
    bool empty = pool->desc.allocator || (!segment->first->next &&
                                          segment->first->lane == &pool->holes);
    size_t count = empty ? 0 : segment->bytes / page_bytes;
    for (size_t i = 0; i < count; i++) {
      cgl_page last = segment->pages[i];
      if (!last.of || last.at)
        continue;
      driver->cuMemUnmap(segment->base + i * page_bytes, last.of * page_bytes);
      if (!cgl_stitch_forget(segment, i))
        driver->cuMemRelease(last.handle);
    }
    segment_free(pool, segment);
  }
}
