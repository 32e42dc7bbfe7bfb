/* Pools: segments from the driver, blocks by best fit in bins. */
#include "core/capture.h"
#include "core/memory.h"

#include <stdlib.h>
#include <string.h>

#define UNIT ((size_t)512) /* every block is a multiple; the driver's own */
#define MIB ((size_t)1 << 20)


static size_t round_up(size_t value, size_t unit) {
  return (value + unit - 1) / unit * unit;
}


static int bin_of(size_t bytes) {
  size_t units = bytes / UNIT;
  int bin = 63 - __builtin_clzll(units ? units : 1);
  return bin < CGL_POOL_BINS ? bin : CGL_POOL_BINS - 1;
}


/* ---- bins and neighbours ------------------------------------------------ */

static void bin_insert(cgl_pool *pool, cgl_block *block) {
  cgl_block **head = &pool->bins[bin_of(block->bytes)];
  block->free = true;
  block->bin_prev = NULL;
  block->bin_next = *head;
  if (*head)
    (*head)->bin_prev = block;
  *head = block;
}


static void bin_remove(cgl_pool *pool, cgl_block *block) {
  if (block->bin_prev)
    block->bin_prev->bin_next = block->bin_next;
  else
    pool->bins[bin_of(block->bytes)] = block->bin_next;
  if (block->bin_next)
    block->bin_next->bin_prev = block->bin_prev;
  block->free = false;
}


/* Two free neighbours are one block when the same streams may use them. */
static bool alike(const cgl_block *a, const cgl_block *b) {
  return a && b && a->free && b->free && a->stream == b->stream &&
         a->captured == b->captured && a->capture == b->capture;
}


static cgl_block *merge(cgl_pool *pool, cgl_block *left, cgl_block *right) {
  bin_remove(pool, left);
  bin_remove(pool, right);
  left->bytes += right->bytes;
  if (right->free_after > left->free_after)
    left->free_after = right->free_after;
  left->next = right->next;
  if (right->next)
    right->next->prev = left;
  free(right);
  bin_insert(pool, left);
  return left;
}


static cgl_block *coalesce(cgl_pool *pool, cgl_block *block) {
  if (alike(block->prev, block))
    block = merge(pool, block->prev, block);
  if (alike(block, block->next))
    block = merge(pool, block, block->next);
  return block;
}


/* ---- segments -------------------------------------------------------------
 */

/* How much to take from the driver for a request: small blocks share. */
static size_t segment_bytes(const cgl_pool *pool, size_t bytes) {
  size_t wanted = bytes;
  if (!pool->guard && bytes <= MIB)
    wanted = 2 * MIB;
  else if (!pool->guard && bytes <= 10 * MIB)
    wanted = 20 * MIB;
  return round_up(wanted, pool->granularity);
}


static CUmemAllocationProp properties(const cgl_pool *pool) {
  CUmemAllocationProp prop;
  memset(&prop, 0, sizeof prop);
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  prop.location.id = pool->object.context->device;
  return prop;
}


/* Reserves, creates, maps and opens; undoes all when one step fails. */
static CUresult segment_map(cgl_pool *pool, cgl_segment *segment,
                            const char **entry) {
  const cgl_driver *driver = cgl_driver_of(pool);
  CUmemAllocationProp prop = properties(pool);
  CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  *entry = "cuMemAddressReserve";
  CUresult result =
      driver->cuMemAddressReserve(&segment->base, segment->reserved, 0, 0, 0);
  if (result)
    return result;
  *entry = "cuMemCreate";
  result = driver->cuMemCreate(&segment->handle, segment->bytes, &prop, 0);
  if (result)
    goto reserved;
  *entry = "cuMemMap";
  result =
      driver->cuMemMap(segment->base, segment->bytes, 0, segment->handle, 0);
  if (result)
    goto created;
  *entry = "cuMemSetAccess";
  result = driver->cuMemSetAccess(segment->base, segment->bytes, &access, 1);
  if (!result)
    return CUDA_SUCCESS;
  driver->cuMemUnmap(segment->base, segment->bytes);
created:
  driver->cuMemRelease(segment->handle);
reserved:
  driver->cuMemAddressFree(segment->base, segment->reserved);
  return result;
}


/* The device no longer uses the memory. */
static void segment_free(cgl_pool *pool, cgl_segment *segment) {
  const cgl_driver *driver = cgl_driver_of(pool);
  driver->cuMemUnmap(segment->base, segment->bytes);
  driver->cuMemRelease(segment->handle);
  driver->cuMemAddressFree(segment->base, segment->reserved);
  for (cgl_block *block = segment->first; block;) {
    cgl_block *next = block->next;
    free(block);
    block = next;
  }
  pool->stats.reserved -= segment->bytes;
  pool->stats.segments--;
  free(segment);
}


static CUresult segment_add(cgl_pool *pool, size_t bytes, const char **entry,
                            cgl_block **out) {
  *entry = "malloc";
  cgl_segment *segment = calloc(1, sizeof *segment);
  cgl_block *block = calloc(1, sizeof *block);
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  if (!segment || !block)
    goto failed;
  segment->pool = pool;
  segment->bytes = segment_bytes(pool, bytes);
  segment->reserved = segment->bytes + (pool->guard ? pool->granularity : 0);
  result = segment_map(pool, segment, entry);
  if (result)
    goto failed;
  block->segment = segment;
  block->bytes = segment->bytes;
  segment->first = block;
  segment->next = pool->segments;
  pool->segments = segment;
  pool->stats.segments++;
  pool->stats.reserved += segment->bytes;
  if (pool->stats.reserved > pool->stats.reserved_peak)
    pool->stats.reserved_peak = pool->stats.reserved;
  bin_insert(pool, block);
  *out = block;
  return CUDA_SUCCESS;
failed:
  free(segment);
  free(block);
  return result;
}


/* ---- settling and trimming --------------------------------------------------
 */

/* The device was waited for since the block was freed, and nobody replays
   into it. */
static bool is_settled(const cgl_pool *pool, const cgl_block *block) {
  const cgl_context *context = pool->object.context;
  return cgl_context_waited(context, block->free_after) &&
         (!block->captured ||
          (!atomic_load(&pool->captures) &&
           cgl_context_waited(context, atomic_load(&pool->used))));
}


/* What the device was waited for is anybody's now. */
static void settle(cgl_pool *pool) {
  pool->pending = 0;
  for (cgl_segment *segment = pool->segments; segment; segment = segment->next)
    for (cgl_block *block = segment->first; block; block = block->next) {
      if (!block->free)
        continue;
      if (is_settled(pool, block)) {
        block->stream = block->capture = 0;
        block->captured = false;
        block = coalesce(pool, block);
      } else if (block->stream == UINT64_MAX && !block->captured)
        pool->pending += block->bytes;
    }
}


/* Gives whole-free segments back; the pool is settled. */
static size_t trim(cgl_pool *pool) {
  size_t bytes = 0;
  for (cgl_segment **link = &pool->segments; *link;) {
    cgl_segment *segment = *link;
    cgl_block *first = segment->first;
    if (!first->free || first->next || first->stream) {
      link = &segment->next;
      continue;
    }
    *link = segment->next;
    bin_remove(pool, first);
    bytes += segment->bytes;
    segment_free(pool, segment);
  }
  return bytes;
}


void cgl_pool_settle(cgl_pool *pool) {
  pthread_mutex_lock(&pool->lock);
  settle(pool);
  if (pool->guard)
    trim(pool);
  pthread_mutex_unlock(&pool->lock);
}


/* Waits for the device when captures allow it, then settles; false when a
   capture forbids it. */
static bool wait_and_settle(cgl_pool *pool) {
  if (!cgl_captures_hold(false))
    return false;
  CUresult result = cgl_context_wait(pool->object.context);
  cgl_captures_unhold();
  if (!result)
    settle(pool);
  return !result;
}


/* ---- blocks
 * ------------------------------------------------------------------- */

static bool may_have(const cgl_pool *pool, const cgl_block *block,
                     const cgl_stream *stream) {
  const cgl_graph *graph = stream->capture;
  if (!block->stream || is_settled(pool, block))
    return true;
  if (block->captured)
    return graph && graph->pool == pool &&
           (block->capture != graph->serial || block->stream == stream->serial);
  return !graph && block->stream == stream->serial;
}


static cgl_block *find(cgl_pool *pool, size_t bytes, const cgl_stream *stream) {
  for (int bin = bin_of(bytes); bin < CGL_POOL_BINS; bin++) {
    cgl_block *best = NULL;
    for (cgl_block *block = pool->bins[bin]; block; block = block->bin_next)
      if (block->bytes >= bytes && (!best || block->bytes < best->bytes) &&
          may_have(pool, block, stream))
        best = block;
    if (best)
      return best;
  }
  return NULL;
}


/* Takes `bytes` of a free block; without memory for the rest's record the
   whole block is taken. */
static void carve(cgl_pool *pool, cgl_block *block, size_t bytes) {
  bin_remove(pool, block);
  if (block->bytes - bytes < UNIT)
    return;
  cgl_block *rest = calloc(1, sizeof *rest);
  if (!rest)
    return;
  rest->segment = block->segment;
  rest->offset = block->offset + bytes;
  rest->bytes = block->bytes - bytes;
  rest->stream = block->stream;
  rest->free_after = block->free_after;
  rest->captured = block->captured;
  rest->capture = block->capture;
  rest->prev = block;
  rest->next = block->next;
  if (rest->next)
    rest->next->prev = rest;
  block->next = rest;
  block->bytes = bytes;
  bin_insert(pool, rest);
}


static cgl_status out_of_memory(cgl_pool *pool, CUresult result, size_t bytes,
                                const char *operation, const char *entry) {
  cgl_fail_driver(pool->object.context, result, operation, entry);
  if (result != CUDA_ERROR_OUT_OF_MEMORY)
    return result;
  cgl_fail(result, operation,
           "out of device memory: %zu bytes were asked for; this pool holds "
           "%zu bytes in live buffers and %zu bytes in all, the device has "
           "%zu (%s)",
           bytes, pool->stats.allocated, pool->stats.reserved,
           pool->object.context->info.memory, entry);
  cgl_fail_hint("release buffers you no longer need, collect garbage, or use "
                "smaller sizes");
  return result;
}


/* The block that serves a request, from the bins or the driver. */
static CUresult obtain(cgl_pool *pool, size_t bytes, const cgl_stream *stream,
                       const char **entry, cgl_block **out) {
  cgl_context *context = pool->object.context;
  *out = pool->guard ? NULL : find(pool, bytes, stream);
  if (*out)
    return CUDA_SUCCESS;
  /* Waiting is dear and growing for ever is worse. */
  if (pool->pending >= segment_bytes(pool, bytes) &&
      pool->pending > pool->stats.reserved / 4 && wait_and_settle(pool)) {
    if (pool->guard)
      trim(pool);
    else if ((*out = find(pool, bytes, stream)))
      return CUDA_SUCCESS;
  }
  CUresult result = segment_add(pool, bytes, entry, out);
  if (result != CUDA_ERROR_OUT_OF_MEMORY || !wait_and_settle(pool))
    return result;
  trim(pool);
  cgl_pool *other = context->pool;
  if (other != pool) {
    pthread_mutex_lock(&other->lock);
    settle(other);
    trim(other);
    pthread_mutex_unlock(&other->lock);
  }
  *out = pool->guard ? NULL : find(pool, bytes, stream);
  return *out ? CUDA_SUCCESS : segment_add(pool, bytes, entry, out);
}


cgl_status cgl_pool_alloc(cgl_pool *pool, cgl_stream *stream, size_t bytes,
                          const char *operation, cgl_block **out) {
  cgl_status status = cgl_context_enter(pool->object.context, operation);
  if (status)
    return status;
  const char *entry = "larger than the device";
  size_t units = round_up(bytes, UNIT);
  CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
  pthread_mutex_lock(&pool->lock);
  if (bytes <= pool->object.context->info.memory)
    result = obtain(pool, units, stream, &entry, out);
  if (result) {
    status = out_of_memory(pool, result, bytes, operation, entry);
    pthread_mutex_unlock(&pool->lock);
    return status;
  }
  cgl_block *block = *out;
  if (pool->guard)
    bin_remove(pool, block);
  else
    carve(pool, block, units);
  if (block->stream == UINT64_MAX && !block->captured)
    pool->pending -= block->bytes;
  block->stream = stream->serial;
  block->free_after = 0;
  block->number = ++pool->stats.allocations;
  block->requested = bytes;
  block->site = cgl_site_here;
  block->captured = stream->capture && stream->capture->pool == pool;
  block->capture = 0;
  pool->stats.allocated += block->bytes;
  if (pool->stats.allocated > pool->stats.allocated_peak)
    pool->stats.allocated_peak = pool->stats.allocated;
  cgl_object_retain(&pool->object);
  pthread_mutex_unlock(&pool->lock);
  return CGL_OK;
}


void cgl_pool_free(cgl_block *block, bool wide) {
  cgl_pool *pool = block->segment->pool;
  pthread_mutex_lock(&pool->lock);
  pool->stats.frees++;
  pool->stats.allocated -= block->bytes;
  block->free_after = cgl_context_next_wait(pool->object.context);
  if (block->captured && !atomic_load(&pool->captures)) {
    block->captured = false;
    wide = true; /* replays of dead graphs may still be under way, anywhere */
  }
  block->capture = block->captured ? atomic_load(&pool->capturing) : 0;
  if (wide || pool->guard) {
    block->stream = UINT64_MAX;
    pool->pending += block->captured ? 0 : block->bytes;
  }
  bin_insert(pool, block);
  coalesce(pool, block);
  pthread_mutex_unlock(&pool->lock);
  cgl_object_release(&pool->object);
}


CUresult cgl_block_open_to(cgl_block *block, CUdevice device) {
  cgl_segment *segment = block->segment;
  cgl_pool *pool = segment->pool;
  uint64_t bit = (uint64_t)1 << (device & 63);
  CUmemAccessDesc access = {{CU_MEM_LOCATION_TYPE_DEVICE, device},
                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUresult result = CUDA_SUCCESS;
  pthread_mutex_lock(&pool->lock);
  if (!(segment->opened & bit))
    result = cgl_driver_of(pool)->cuMemSetAccess(segment->base, segment->bytes,
                                                 &access, 1);
  if (!result)
    segment->opened |= bit;
  pthread_mutex_unlock(&pool->lock);
  return result;
}


CUdeviceptr cgl_block_address(const cgl_block *block, size_t bytes) {
  const cgl_segment *segment = block->segment;
  if (segment->pool->guard)
    return segment->base + segment->bytes - bytes;
  return segment->base + block->offset;
}


/* ---- the object
 * ----------------------------------------------------------------- */

static cgl_status pool_init(cgl_context *context, cgl_pool **out) {
  static const char operation[] = "pool";
  cgl_status status = cgl_context_enter(context, operation);
  if (status)
    return status;
  cgl_pool *pool = calloc(1, sizeof *pool);
  if (!pool)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a pool");
  pool->object.context = context;
  CUmemAllocationProp prop = properties(pool);
  CUresult result = context->driver->cuMemGetAllocationGranularity(
      &pool->granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  if (result) {
    free(pool);
    return cgl_fail_driver(context, result, operation,
                           "cuMemGetAllocationGranularity");
  }
  const char *guard = getenv("CGRAPHLUA_HOST_GUARD");
  pool->guard = guard && !strcmp(guard, "1");
  pthread_mutex_init(&pool->lock, NULL);
  *out = pool;
  return CGL_OK;
}


cgl_status cgl_pool_create_default(cgl_context *context, cgl_pool **out) {
  cgl_status status = pool_init(context, out);
  if (status)
    return status;
  atomic_init(&(*out)->object.references, 1);
  (*out)->object.kind = CGL_OBJECT_pool;
  return CGL_OK;
}


cgl_status cgl_pool_create(cgl_context *context, cgl_pool **out) {
  cgl_status status = pool_init(context, out);
  if (!status)
    cgl_object_init(&(*out)->object, CGL_OBJECT_pool, context);
  return status;
}


/* Work in flight may still use the pool's memory: a replay, or whatever was
   issued before a block was freed. */
static bool is_in_use(const cgl_pool *pool) {
  const cgl_context *context = pool->object.context;
  if (!cgl_context_waited(context, atomic_load(&pool->used)))
    return true;
  for (const cgl_segment *segment = pool->segments; segment;
       segment = segment->next)
    for (const cgl_block *block = segment->first; block; block = block->next)
      if (!cgl_context_waited(context, block->free_after))
        return true;
  return false;
}


void cgl_pool_destroy(cgl_pool *pool) {
  cgl_context *context = pool->object.context;
  cgl_context_enter(context, "pool");
  if (pool->segments && is_in_use(pool))
    cgl_context_wait(context);
  while (pool->segments) {
    cgl_segment *segment = pool->segments;
    pool->segments = segment->next;
    segment_free(pool, segment);
  }
  pthread_mutex_destroy(&pool->lock);
  free(pool);
}


void cgl_pool_get_stats(const cgl_pool *pool, cgl_pool_stats *stats) {
  pthread_mutex_t *lock = (pthread_mutex_t *)&pool->lock;
  pthread_mutex_lock(lock);
  *stats = pool->stats;
  pthread_mutex_unlock(lock);
}


cgl_status cgl_pool_trim(cgl_pool *pool, size_t *bytes) {
  static const char operation[] = "pool:trim";
  cgl_status status = cgl_context_enter(pool->object.context, operation);
  if (status)
    return status;
  if (!cgl_captures_hold(true)) {
    cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
             "cannot trim while a capture is underway: trimming waits for "
             "the device");
    cgl_fail_hint("trim before the capture begins or after it has ended");
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  pthread_mutex_lock(&pool->lock);
  CUresult result = cgl_context_wait(pool->object.context);
  if (!result) {
    settle(pool);
    size_t freed = trim(pool);
    if (bytes)
      *bytes = freed;
  }
  pthread_mutex_unlock(&pool->lock);
  cgl_captures_unhold();
  return cgl_fail_driver(pool->object.context, result, operation,
                         "cuCtxSynchronize");
}


bool cgl_pool_is_valid(const cgl_pool *pool) {
  size_t allocated = 0, reserved = 0, free_blocks = 0, binned = 0;
  for (const cgl_segment *segment = pool->segments; segment;
       segment = segment->next) {
    size_t at = 0;
    for (const cgl_block *block = segment->first; block; block = block->next) {
      if (block->offset != at || !block->bytes || block->segment != segment ||
          (block->next && block->next->prev != block))
        return false;
      at += block->bytes;
      if (block->free)
        free_blocks++;
      else
        allocated += block->bytes;
    }
    if (at != segment->bytes)
      return false;
    reserved += segment->bytes;
  }
  for (int bin = 0; bin < CGL_POOL_BINS; bin++)
    for (const cgl_block *block = pool->bins[bin]; block;
         block = block->bin_next) {
      if (!block->free || bin_of(block->bytes) != bin)
        return false;
      binned++;
    }
  return allocated == pool->stats.allocated &&
         reserved == pool->stats.reserved && free_blocks == binned;
}
