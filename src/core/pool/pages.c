/* The memory under a pool: address space reserved in segments, and chunks that
   are created, mapped, harvested and given back. */
#include "core/pool/pool.h"

#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)
#define FIRST_SEGMENT (256 * MIB) /* of address space; the next are larger */
enum {
  MAX_DEVICES = 64,
  ALIGNMENT = 256,
  HUGE = 128 /* granules: from there on many small chunks take too long */
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


static size_t first_granule(const cgl_block *block) {
  return block->offset / block->segment->pool->granularity;
}


/* ---- spare chunks ---- */

/* Makes room for so many more of them. */
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


/* The largest spare chunk of at most `most` granules. */
static bool spare_take(cgl_pool *pool, size_t most, cgl_chunk *chunk) {
  size_t best = pool->nspare;
  for (size_t i = pool->nspare; i-- > 0;)
    if (pool->spare[i].granules <= most &&
        (best == pool->nspare ||
         pool->spare[i].granules > pool->spare[best].granules))
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
    pool->stats.reserved -= chunk->granules * pool->granularity;
  }
}


/* ---- mapping and unmapping ---- */

static void count_reserved(cgl_pool *pool, size_t bytes) {
  pool->stats.reserved += bytes;
  if (pool->stats.reserved > pool->stats.reserved_peak)
    pool->stats.reserved_peak = pool->stats.reserved;
}


/* Whether the pool may take so much more. */
static bool is_allowed(const cgl_pool *pool, size_t bytes) {
  return !pool->desc.max_bytes ||
         pool->stats.reserved + bytes <= pool->desc.max_bytes;
}


/* A small chunk may be had where a large one is not. */
static CUresult chunk_create(cgl_pool *pool, size_t granules, cgl_chunk *chunk,
                             const char **entry) {
  CUmemAllocationProp prop = cgl_pages_properties(pool);
  size_t bytes = granules * pool->granularity;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  *entry = "max_bytes";
  if (is_allowed(pool, bytes)) {
    *entry = "cuMemCreate";
    result = cgl_driver_of(pool)->cuMemCreate(&chunk->handle, bytes, &prop, 0);
  }
  if (result == CUDA_ERROR_OUT_OF_MEMORY && granules > 1)
    return chunk_create(pool, 1, chunk, entry);
  if (result)
    return result;
  chunk->granules = granules;
  count_reserved(pool, granules * pool->granularity);
  return CUDA_SUCCESS;
}


static CUresult chunk_map(cgl_segment *segment, size_t at, cgl_chunk chunk) {
  cgl_pool *pool = segment->pool;
  size_t granule = pool->granularity;
  CUresult result = cgl_driver_of(pool)->cuMemMap(segment->base + at * granule,
                                                  chunk.granules * granule, 0,
                                                  chunk.handle, 0);
  if (result)
    return result;
  for (size_t i = 0; i < chunk.granules; i++)
    segment->granules[at + i] = (cgl_granule){.handle = chunk.handle,
                                              .at = (uint16_t)i,
                                              .of = (uint16_t)chunk.granules};
  segment->mapped += chunk.granules * granule;
  return CUDA_SUCCESS;
}


/* Unmaps the chunk that begins at granule `at` and makes it a spare one, for
   which there is room.  A failure would be that of work before it: the memory
   is unmapped all the same. */
static void chunk_unmap(cgl_segment *segment, size_t at) {
  cgl_pool *pool = segment->pool;
  size_t granule = pool->granularity;
  cgl_chunk chunk = {segment->granules[at].handle, segment->granules[at].of};
  cgl_driver_of(pool)->cuMemUnmap(segment->base + at * granule,
                                  chunk.granules * granule);
  memset(&segment->granules[at], 0, chunk.granules * sizeof *segment->granules);
  segment->mapped -= chunk.granules * granule;
  pool->spare[pool->nspare++] = chunk;
}


/* What the own device and those that were let in may do. */
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
    for (cgl_block *block = segment->granules ? segment->first : NULL, *end;
         block; block = end) {
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

/* Takes up to `want` granules out of a free extent, in chunks of at most
   `most`; leaves its other parts in the lane. */
static size_t harvest_block(cgl_pool *pool, cgl_block *block, size_t want,
                            size_t most) {
  size_t granule = pool->granularity, taken = 0;
  cgl_segment *segment = block->segment;
  size_t from = round_up(block->offset, granule) / granule;
  size_t end = (block->offset + block->bytes) / granule;
  while (end > from && taken < want) {
    const cgl_granule *last = &segment->granules[end - 1];
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
    if (block->offset + block->bytes > (at + count) * granule)
      rest = cgl_index_cut(pool, block, (at + count) * granule - block->offset);
    if (block->offset < at * granule)
      hole = cgl_index_cut(pool, block, at * granule - block->offset);
    if (rest)
      cgl_index_insert(pool, rest, &pool->anybody);
    cgl_index_make_hole(pool, hole);
    taken += count;
    if (hole == block)
      break;
    cgl_index_insert(pool, block, &pool->anybody);
  }
  return taken;
}


/* Makes up to `want` granules spare, the smallest free extents first. */
static void harvest(cgl_pool *pool, size_t want, size_t most) {
  cgl_block *next, *block = cgl_index_first(&pool->anybody, pool->granularity);
  for (; block && want; block = next) {
    next = cgl_index_next(block);
    if (!block->segment->granules)
      continue;
    size_t taken = harvest_block(pool, block, want, most);
    want -= taken < want ? taken : want;
  }
}


/* ---- growing ---- */

/* Where to grow: `missing` bytes of memory into the hole, between two free
   neighbours (either may be NULL) that serve as well. */
typedef struct growth {
  cgl_block *left, *hole, *right;
  size_t missing;
} growth;


static cgl_block *joins(const cgl_pool *pool, cgl_block *block,
                        const cgl_lane *own) {
  bool fits = block && !pool->desc.no_split &&
              block->extent == CGL_EXTENT_FREE &&
              (block->lane == &pool->anybody || block->lane == own ||
               (own && own->scratch && block->lane == &pool->scratch));
  return fits ? block : NULL;
}


static bool weigh(const cgl_pool *pool, cgl_block *hole, size_t bytes,
                  const cgl_lane *own, growth *best) {
  growth g = {joins(pool, hole->prev, own), hole, NULL, 0};
  size_t have = g.left ? g.left->bytes : 0;
  g.missing = round_up(bytes > have ? bytes - have : 1, pool->granularity);
  if (g.missing > hole->bytes) {
    g.right = joins(pool, hole->next, own);
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


/* The growth that takes least; no hole: in a new segment. */
static growth choose(const cgl_pool *pool, size_t bytes, const cgl_lane *own) {
  growth g = {NULL, NULL, NULL, 0};
  for (cgl_block *hole = pool->holes; hole && !pool->guard;
       hole = hole->bin_next)
    weigh(pool, hole, bytes, own, &g);
  if (!g.hole)
    g.missing = round_up(bytes, pool->granularity);
  return g;
}


/* A free extent when what is left of granules makes one; else what is to grow,
   with such parts beside it where that takes less. */
static cgl_block *assemble(cgl_pool *pool, size_t bytes, const cgl_lane *own,
                           growth *g) {
  bool may = !pool->guard && !pool->desc.no_split;
  cgl_block *block = NULL;
  if (may) {
    cgl_stitch_undo(pool);
    block = cgl_index_find(&pool->anybody, bytes);
  }
  if (block)
    return block;
  *g = choose(pool, bytes, own);
  if (!may || !cgl_stitch(pool, bytes, g->missing / pool->granularity))
    return NULL;
  *g = choose(pool, bytes, own);
  return cgl_index_find(&pool->anybody, bytes);
}


/* A new segment of address space with one hole. */
static CUresult segment_add(cgl_pool *pool, size_t bytes, const char **entry) {
  size_t granule = pool->granularity, wanted = FIRST_SEGMENT;
  for (const cgl_segment *s = pool->segments; s; s = s->next)
    wanted = 4 * s->bytes > wanted ? 4 * s->bytes : wanted;
  size_t most = 4 * pool->object.context->info.memory;
  wanted = wanted > most ? most : wanted;
  bytes = round_up(bytes, granule);
  wanted =
      round_up(wanted, granule) > bytes ? round_up(wanted, granule) : bytes;
  *entry = "malloc";
  if (pool->guard)
    wanted = bytes + granule;
  cgl_segment *segment = calloc(1, sizeof *segment);
  cgl_granule *granules = calloc(wanted / granule, sizeof *granules);
  if (!segment || !granules || !cgl_index_reserve(pool, 1)) {
    free(segment);
    free(granules);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *entry = "cuMemAddressReserve";
  CUresult result =
      cgl_driver_of(pool)->cuMemAddressReserve(&segment->base, wanted, 0, 0, 0);
  if (result) {
    free(segment);
    free(granules);
    return result;
  }
  segment->pool = pool;
  segment->bytes = wanted;
  segment->granules = granules;
  cgl_block *hole = cgl_index_record(pool);
  hole->segment = segment;
  hole->bytes = wanted;
  segment->first = cgl_index_make_hole(pool, hole);
  segment->next = pool->segments;
  pool->segments = segment;
  pool->stats.segments++;
  return CUDA_SUCCESS;
}


/* Puts memory under the hole's first `want` granules, or more when a chunk is
   larger; *laid of them.  Nothing is laid when it fails. */
static CUresult lay(cgl_pool *pool, cgl_block *hole, size_t want, size_t *laid,
                    const char **entry) {
  cgl_segment *segment = hole->segment;
  size_t at = first_granule(hole), room = hole->bytes / pool->granularity;
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
      *laid += chunk.granules;
  }
  if (!result) {
    *entry = "cuMemSetAccess";
    result = cgl_pages_open(pool, segment->base + at * pool->granularity,
                            *laid * pool->granularity);
  }
  if (!result)
    return CUDA_SUCCESS;
  while (*laid) {
    const cgl_granule *last = &segment->granules[at + *laid - 1];
    *laid -= last->of;
    chunk_unmap(segment, at + *laid);
  }
  return result;
}


/* The first `bytes` of what was a hole are memory now. */
static cgl_block *fill(cgl_pool *pool, cgl_block *hole, size_t bytes) {
  hole->free_after = 0;
  if (bytes < hole->bytes)
    cgl_index_make_hole(pool, cgl_index_cut(pool, hole, bytes));
  return hole;
}


/* How much to ask an allocator for: small blocks share. */
static size_t allocator_bytes(const cgl_pool *pool, size_t bytes) {
  if (!pool->desc.no_split && bytes <= MIB)
    return 2 * MIB;
  return round_up(bytes, 2 * MIB);
}


/* A new segment from the pool's allocator, as one block. */
static CUresult segment_ask(cgl_pool *pool, size_t bytes,
                            const cgl_stream *stream, const char **entry,
                            cgl_block **out) {
  bytes = allocator_bytes(pool, bytes);
  *entry = "max_bytes";
  if (!is_allowed(pool, bytes))
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
  cgl_block *block = cgl_index_record(pool);
  block->segment = segment;
  block->bytes = bytes;
  segment->first = block;
  segment->next = pool->segments;
  pool->segments = segment;
  pool->stats.segments++;
  count_reserved(pool, bytes);
  *out = block;
  return CUDA_SUCCESS;
}


CUresult cgl_pages_extend(cgl_pool *pool, size_t bytes,
                          const cgl_stream *stream, const cgl_lane *own,
                          const char **entry, cgl_block **out,
                          cgl_lane **rest) {
  *rest = &pool->anybody;
  if (pool->desc.allocator)
    return segment_ask(pool, bytes, stream, entry, out);
  growth g;
  *out = assemble(pool, bytes, own, &g);
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
  /* Holes that the harvest leaves beside it must not swallow this one. */
  cgl_index_fill_hole(pool, g.hole);
  if (!pool->guard && pool->anybody.bytes >= pool->granularity)
    harvest(pool, want, g.hole->bytes / pool->granularity);
  size_t laid = 0;
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (cgl_index_reserve(pool, 2) && spare_reserve(pool, want + 1))
    result = lay(pool, g.hole, want, &laid, entry);
  if (result) {
    cgl_index_make_hole(pool, g.hole);
    if (g.left)
      cgl_index_insert(pool, g.left, left_lane);
    if (g.right)
      cgl_index_insert(pool, g.right, right_lane);
    return result;
  }
  cgl_block *block = fill(pool, g.hole, laid * pool->granularity);
  if (g.right)
    block = cgl_index_join(pool, block, g.right);
  if (g.left)
    block = cgl_index_join(pool, g.left, block);
  if (g.right)
    *rest = right_lane;
  *out = block;
  return CUDA_SUCCESS;
}


/* ---- giving back ---- */

/* Nothing is mapped in it any more. */
static void segment_free(cgl_pool *pool, cgl_segment *segment) {
  if (segment->granules) {
    cgl_driver_of(pool)->cuMemAddressFree(segment->base, segment->bytes);
  } else {
    pool->allocator.release(pool->allocator.user, segment->base,
                            segment->bytes);
    pool->stats.reserved -= segment->bytes;
  }
  free(segment->granules);
  free(segment);
  pool->stats.segments--;
}


size_t cgl_pages_trim(cgl_pool *pool) {
  size_t before = pool->stats.reserved;
  cgl_stitch_undo(pool);
  harvest(pool, SIZE_MAX, SIZE_MAX);
  spare_release(pool);
  for (cgl_segment **link = &pool->segments, *segment; (segment = *link);) {
    cgl_block *first = segment->first;
    bool hole = first->extent == CGL_EXTENT_HOLE;
    if (first->next ||
        !(hole || (!segment->granules && first->lane == &pool->anybody))) {
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
  size_t granule = pool->granularity;
  spare_release(pool);
  free(pool->spare);
  while (pool->segments) {
    cgl_segment *segment = pool->segments;
    pool->segments = segment->next;
    bool empty =
        !segment->granules ||
        (!segment->first->next && segment->first->extent == CGL_EXTENT_HOLE);
    size_t count = empty ? 0 : segment->bytes / granule;
    for (size_t i = 0; i < count; i++) {
      cgl_granule last = segment->granules[i];
      if (!last.of || last.at)
        continue;
      driver->cuMemUnmap(segment->base + i * granule, last.of * granule);
      if (!cgl_stitch_forget(segment, i))
        driver->cuMemRelease(last.handle);
    }
    segment_free(pool, segment);
  }
}
