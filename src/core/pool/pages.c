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
  CUmemAllocationProp prop;
  memset(&prop, 0, sizeof prop);
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = pool->object.context->device;
  return prop;
}


static size_t block_first_page(const cgl_block *block) {
  return block->offset / block->segment->pool->granularity;
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
  segment->mapped += chunk.pages * page_bytes;
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
  segment->mapped -= chunk.pages * page_bytes;
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


CUresult cgl_pages_open_to(cgl_pool *pool, CUdevice device) {
  uint64_t bit = (uint64_t)1 << (device % MAX_DEVICES);
  if (pool->opened & bit)
    return CUDA_SUCCESS;
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  for (cgl_segment *segment = pool->segments; segment; segment = segment->next)
    for (cgl_block *block = segment->pages ? segment->first : NULL, *end; block;
         block = end) {
      size_t bytes = 0;
      for (end = block; end && end->extent != CGL_EXTENT_HOLE; end = end->next)
        bytes += end->bytes;
      CUresult result = CUDA_SUCCESS;
      if (bytes)
        result = cgl_driver_of(pool)->cuMemSetAccess(
            segment->base + block->offset, bytes, &access, 1);
      if (result)
        return result;
      end = end ? end->next : NULL;
    }
  pool->opened |= bit;
  return CUDA_SUCCESS;
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
    cgl_index_remove(pool, block);
    cgl_block *rest = NULL, *hole = block;
    if (block->offset + block->bytes > (at + count) * page_bytes)
      rest =
          cgl_index_cut(pool, block, (at + count) * page_bytes - block->offset);
    if (block->offset < at * page_bytes)
      hole = cgl_index_cut(pool, block, at * page_bytes - block->offset);
    if (rest)
      cgl_index_insert(pool, rest, &pool->free_to_all);
    cgl_index_make_hole(pool, hole);
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
  for (; block && want; block = next) {
    next = cgl_index_next(block);
    if (!block->segment->pages)
      continue;
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
  bool fits = block && !pool->desc.no_split &&
              block->extent == CGL_EXTENT_FREE &&
              (block->lane == &pool->free_to_all || block->lane == own ||
               (own && own->scratch && block->lane == &pool->scratch));
  return fits ? block : NULL;
}


static bool growth_weigh(const cgl_pool *pool, cgl_block *hole, size_t bytes,
                         const cgl_lane *own, growth *best) {
  growth g = {hole, growth_neighbour(pool, hole->prev, own), NULL, 0};
  size_t have = g.left ? g.left->bytes : 0;
  g.missing = round_up(bytes > have ? bytes - have : 1, pool->granularity);
  if (g.missing > hole->bytes) {
    g.right = growth_neighbour(pool, hole->next, own);
    g.missing = hole->bytes;
    if (!g.right || have + hole->bytes + g.right->bytes < bytes)
      return false;
  }
  if (best->hole &&
      (best->missing < g.missing ||
       (best->missing == g.missing && best->hole->bytes <= hole->bytes)))
    return false;
  *best = g;
  return true;
}


/* The growth that needs least memory. */
static growth growth_choose(const cgl_pool *pool, size_t bytes,
                            const cgl_lane *own) {
  growth g = {NULL, NULL, NULL, 0};
  for (cgl_block *hole = pool->holes; hole && !pool->guard;
       hole = hole->bin_next)
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
  cgl_block *block = NULL;
  if (may) {
    cgl_stitch_undo(pool);
    block = cgl_index_find(&pool->free_to_all, bytes);
  }
  if (block)
    return block;
  *g = growth_choose(pool, bytes, own);
  if (!may || !cgl_stitch(pool, bytes, g->missing / pool->granularity))
    return NULL;
  *g = growth_choose(pool, bytes, own);
  return cgl_index_find(&pool->free_to_all, bytes);
}


/* A new segment of address space with one hole. */
static CUresult segment_add(cgl_pool *pool, size_t bytes, const char **entry) {
  size_t page_bytes = pool->granularity, wanted = FIRST_SEGMENT;
  for (const cgl_segment *s = pool->segments; s; s = s->next)
    wanted = 4 * s->bytes > wanted ? 4 * s->bytes : wanted;
  size_t most = 4 * pool->object.context->info.memory;
  wanted = wanted > most ? most : wanted;
  bytes = round_up(bytes, page_bytes);
  wanted = round_up(wanted, page_bytes) > bytes ? round_up(wanted, page_bytes)
                                                : bytes;
  *entry = "malloc";
  if (pool->guard)
    wanted = bytes + page_bytes;
  cgl_segment *segment = calloc(1, sizeof *segment);
  cgl_page *pages = calloc(wanted / page_bytes, sizeof *pages);
  if (!segment || !pages || !cgl_index_reserve(pool, 1)) {
    free(segment);
    free(pages);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *entry = "cuMemAddressReserve";
  CUresult result =
      cgl_driver_of(pool)->cuMemAddressReserve(&segment->base, wanted, 0, 0, 0);
  if (result) {
    free(segment);
    free(pages);
    return result;
  }
  segment->pool = pool;
  segment->bytes = wanted;
  segment->pages = pages;
  cgl_block *hole = cgl_index_new_block(pool);
  hole->segment = segment;
  hole->bytes = wanted;
  segment->first = cgl_index_make_hole(pool, hole);
  segment->next = pool->segments;
  pool->segments = segment;
  pool->stats.segments++;
  return CUDA_SUCCESS;
}


/* Puts memory under the hole's first `want` pages, or more when a chunk is
   larger; *laid of them.  Nothing is laid when it fails. */
static CUresult hole_map(cgl_pool *pool, cgl_block *hole, size_t want,
                         size_t *laid, const char **entry) {
  cgl_segment *segment = hole->segment;
  size_t at = block_first_page(hole), room = hole->bytes / pool->granularity;
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


/* The first `bytes` of a former hole have memory; the rest is a hole again. */
static cgl_block *hole_fill(cgl_pool *pool, cgl_block *hole, size_t bytes) {
  hole->free_after = 0;
  if (bytes < hole->bytes)
    cgl_index_make_hole(pool, cgl_index_cut(pool, hole, bytes));
  return hole;
}


/* Bytes to ask an allocator for: small blocks share a segment. */
static size_t allocator_bytes(const cgl_pool *pool, size_t bytes) {
  if (!pool->desc.no_split && bytes <= MIB)
    return 2 * MIB;
  return round_up(bytes, 2 * MIB);
}


/* A new segment from the pool's allocator, as one block. */
static CUresult segment_allocate(cgl_pool *pool, size_t bytes,
                                 const cgl_stream *stream, const char **entry,
                                 cgl_block **out) {
  bytes = allocator_bytes(pool, bytes);
  *entry = "max_bytes";
  if (!pool_may_reserve(pool, bytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  *entry = "malloc";
  cgl_segment *segment = calloc(1, sizeof *segment);
  if (!segment || !cgl_index_reserve(pool, 1)) {
    free(segment);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *entry = "the pool's allocator";
  uint64_t address = 0;
  CUresult result = (CUresult)pool->allocator.allocate(
      pool->allocator.user, &address, bytes, stream->handle);
  if (!result && (!address || address % ALIGNMENT)) {
    if (address)
      pool->allocator.release(pool->allocator.user, address, bytes);
    result = CUDA_ERROR_MISALIGNED_ADDRESS;
  }
  if (result) {
    free(segment);
    return result;
  }
  segment->pool = pool;
  segment->base = address;
  segment->bytes = segment->mapped = bytes;
  cgl_block *block = cgl_index_new_block(pool);
  block->segment = segment;
  block->bytes = bytes;
  segment->first = block;
  segment->next = pool->segments;
  pool->segments = segment;
  pool->stats.segments++;
  pool_count_reserved(pool, bytes);
  *out = block;
  return CUDA_SUCCESS;
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
    cgl_index_remove(pool, *out);
    return CUDA_SUCCESS;
  }
  if (!g.hole) {
    CUresult result = segment_add(pool, bytes, entry);
    if (result)
      return result;
    g.hole = pool->segments->first;
  }
  size_t want = g.missing / pool->granularity;
  *entry = "malloc";
  if (!spare_reserve(pool, want + 1) || !cgl_index_reserve(pool, 2))
    return CUDA_ERROR_OUT_OF_MEMORY;
  cgl_lane *left_lane = NULL, *right_lane = NULL;
  if (g.left) {
    left_lane = g.left->lane;
    cgl_index_remove(pool, g.left);
  }
  if (g.right) {
    right_lane = g.right->lane;
    cgl_index_remove(pool, g.right);
  }
  /* Not a hole any more: holes that the harvest makes beside it would join it.
   */
  cgl_index_fill_hole(pool, g.hole);
  if (!pool->guard && pool->free_to_all.bytes >= pool->granularity)
    pool_harvest(pool, want, g.hole->bytes / pool->granularity);
  size_t laid = 0;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (cgl_index_reserve(pool, 2) && spare_reserve(pool, want + 1))
    result = hole_map(pool, g.hole, want, &laid, entry);
  if (result) {
    cgl_index_make_hole(pool, g.hole);
    if (g.left)
      cgl_index_insert(pool, g.left, left_lane);
    if (g.right)
      cgl_index_insert(pool, g.right, right_lane);
    return result;
  }
  cgl_block *block = hole_fill(pool, g.hole, laid * pool->granularity);
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
  if (segment->pages) {
    cgl_driver_of(pool)->cuMemAddressFree(segment->base, segment->bytes);
  } else {
    pool->allocator.release(pool->allocator.user, segment->base,
                            segment->bytes);
    pool->stats.reserved -= segment->bytes;
  }
  free(segment->pages);
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
    bool hole = first->extent == CGL_EXTENT_HOLE;
    if (first->next ||
        !(hole || (!segment->pages && first->lane == &pool->free_to_all))) {
      link = &segment->next;
      continue;
    }
    *link = segment->next;
    if (hole)
      cgl_index_fill_hole(pool, first);
    else
      cgl_index_remove(pool, first);
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
    bool empty = !segment->pages || (!segment->first->next &&
                                     segment->first->extent == CGL_EXTENT_HOLE);
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
