/* Stream-ordered pools.  An allocation is a guarded mapping of its own; a
   freed one goes on its pool's free list of the same size class at once and
   is given out again to the stream that freed it, or to another when that
   stream has got past the free.  So an address never belongs to two users
   whose work could overlap.
   Invariant: a range is on a free list exactly while `freed` is set; class 0
   holds ranges that fit no class and are never given out again. */
#include "driver/host/base/runtime.h"

#include <stdlib.h>
#include <string.h>

enum { CLASSES = 512, PAGE_BITS = 12 };

struct CUmemPoolHandle_st {
  bool builtin, destroyed;
  size_t max_size; /* 0: the device's memory is the limit */
  uint64_t threshold;
  uint64_t reserved, reserved_high, used, used_high;
  int reuse[3]; /* CU_MEMPOOL_ATTR_REUSE_* */
  size_t nfree; /* ranges on the free lists */
  host_range *free[CLASSES];
  CUmemoryPool next;
};

static struct CUmemPoolHandle_st builtin = {.builtin = true,
                                            .reuse = {1, 1, 1}};
static CUmemoryPool pools = &builtin;
static CUmemoryPool current = &builtin;


/* Eight classes per doubling, in whole pages; *bytes grows to its class. */
static unsigned class_of(size_t *bytes) {
  size_t pages = (*bytes + ((size_t)1 << PAGE_BITS) - 1) >> PAGE_BITS;
  if (pages <= 8) {
    *bytes = pages << PAGE_BITS;
    return (unsigned)pages;
  }
  unsigned shift = (unsigned)(63 - __builtin_clzll(pages - 1)) - 3;
  size_t top = (pages - 1) >> shift;
  *bytes = ((top + 1) << shift) << PAGE_BITS;
  return shift * 8 + (unsigned)top + 1;
}


static bool pool_is_live(CUmemoryPool pool) {
  return pool == &builtin || host_handle_live(HOST_HANDLE_MEMPOOL, pool);
}


static bool available(const host_range *r) {
  return host_stream_reached(r->free_stream, r->free_at);
}


/* Gives a free range back to the device. */
static void release(CUmemoryPool pool, host_range **link) {
  host_range *r = *link;
  *link = r->free_next;
  pool->reserved -= r->counted;
  pool->nfree--;
  host_memory_drop(r);
}


/* Releases free ranges until no more than `keep` bytes are reserved. */
static bool shrink(CUmemoryPool pool, uint64_t keep) {
  bool any = false;
  for (int i = CLASSES - 1; i >= 0; i--)
    for (host_range **link = &pool->free[i]; *link && pool->reserved > keep;)
      if (available(*link)) {
        release(pool, link);
        any = true;
      } else {
        link = &(*link)->free_next;
      }
  return any;
}


static void unlink_pool(CUmemoryPool pool) {
  CUmemoryPool *link = &pools;
  while (*link != pool)
    link = &(*link)->next;
  *link = pool->next;
  free(pool);
}


void host_mempool_sync(void) {
  host_memory_bury();
  for (CUmemoryPool p = pools, next; p; p = next) {
    next = p->next;
    if (p->nfree)
      shrink(p, p->destroyed ? 0 : p->threshold);
    if (p->destroyed && !p->reserved)
      unlink_pool(p);
  }
}


bool host_mempool_squeeze(void) {
  bool any = false;
  size_t before = host_memory_used();
  host_memory_bury();
  for (CUmemoryPool p = pools; p; p = p->next)
    any = shrink(p, 0) || any;
  return any || host_memory_used() < before;
}


static void forget(void *handle) {
  host_handle_remove(HOST_HANDLE_MEMPOOL, handle);
  ((CUmemoryPool)handle)->destroyed = true;
}


void host_mempool_reset(void) {
  current = &builtin;
  host_handle_each(HOST_HANDLE_MEMPOOL, forget);
  for (host_range *r = host_range_next(NULL), *next; r; r = next) {
    next = host_range_next(r);
    if (r->kind == HOST_RANGE_POOL)
      host_memory_drop(r);
  }
  while (pools != &builtin || builtin.next)
    unlink_pool(pools == &builtin ? builtin.next : pools);
  builtin = (struct CUmemPoolHandle_st){.builtin = true, .reuse = {1, 1, 1}};
}


/* ---- allocation ---- */

/* Takes a free range of the class that `stream` may use, its own first. */
static host_range *take(CUmemoryPool pool, unsigned class, CUstream stream) {
  host_range **found = NULL;
  for (host_range **link = &pool->free[class]; *link;
       link = &(*link)->free_next) {
    if ((*link)->free_stream == stream->id) {
      found = link;
      break;
    }
    if (!found && available(*link))
      found = link;
  }
  if (!found)
    return NULL;
  host_range *r = *found;
  *found = r->free_next;
  r->freed = false;
  pool->nfree--;
  return r;
}


static CUresult make(CUmemoryPool pool, size_t class_bytes,
                     host_range **range) {
  if (pool->max_size && pool->reserved + class_bytes > pool->max_size &&
      (!shrink(pool, 0) || pool->reserved + class_bytes > pool->max_size))
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = host_memory_make(class_bytes, HOST_RANGE_POOL, range);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && host_mempool_squeeze())
    result = host_memory_make(class_bytes, HOST_RANGE_POOL, range);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    host_device_wait(); /* frees that are queued may make room */
    if (!pool_is_live(pool))
      return CUDA_ERROR_INVALID_VALUE;
    if (host_mempool_squeeze())
      result = host_memory_make(class_bytes, HOST_RANGE_POOL, range);
  }
  return result;
}


static CUresult allocate(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
                         CUstream stream) {
  size_t class_bytes = bytes;
  if (class_bytes > host_device_memory())
    return CUDA_ERROR_OUT_OF_MEMORY;
  unsigned class = class_of(&class_bytes);
  bool tight = host_guard_tight();
  host_range *r = tight ? NULL : take(pool, class, stream);
  if (!r) {
    if (tight)
      class_bytes = bytes;
    HOST_TRY(make(pool, class_bytes, &r));
    r->pool = pool;
    pool->reserved += r->counted;
    if (pool->reserved > pool->reserved_high)
      pool->reserved_high = pool->reserved;
  }
  r->bytes = bytes;
  pool->used += bytes;
  if (pool->used > pool->used_high)
    pool->used_high = pool->used;
  *out = r->start;
  return CUDA_SUCCESS;
}


/* Puts a range on its free list, as freed now by `stream` (NULL: by nobody
   that runs). */
static void put(host_range *r, CUstream stream) {
  CUmemoryPool pool = r->pool;
  size_t class_bytes = r->counted;
  unsigned class = class_of(&class_bytes);
  if (class_bytes != r->counted)
    class = 0;
  r->freed = true;
  r->dying = false;
  r->free_stream = stream ? stream->id : 0;
  r->free_at = stream ? stream->queued : 0;
  r->free_next = pool->free[class];
  pool->free[class] = r;
  pool->nfree++;
  pool->used -= r->bytes;
}


void host_mempool_give_back(host_range *range) {
  put(range, NULL);
  host_mempool_sync();
}


/* In a capture the call makes a node; elsewhere it may not be made while a
   capture bars it. */
static CUresult alloc_on(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
                         CUstream stream) {
  CUstream s;
  HOST_TRY(host_stream_open(stream, &s));
  if (pool && !pool_is_live(pool))
    return CUDA_ERROR_INVALID_VALUE;
  *out = 0;
  if (!bytes)
    return CUDA_SUCCESS;
  if (s->capture)
    return host_capture_alloc(s, bytes, out);
  HOST_TRY(host_capture_unsafe());
  return allocate(out, bytes, pool ? pool : current, s);
}


CUresult host_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize,
                              CUstream hStream) {
  HOST_TRY(host_check_stream(hStream));
  if (!dptr)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUresult result = alloc_on(dptr, bytesize, NULL, hStream);
  host_unlock();
  return result;
}


CUresult host_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize,
                                      CUmemoryPool pool, CUstream hStream) {
  HOST_TRY(host_check_stream(hStream));
  if (!dptr || !pool)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUresult result = alloc_on(dptr, bytesize, pool, hStream);
  host_unlock();
  return result;
}


/* What cuMemAlloc gave may be freed in stream order too. */
static void adopt(host_range *r) {
  if (r->kind != HOST_RANGE_ALLOC)
    return;
  r->kind = HOST_RANGE_POOL;
  r->pool = &builtin;
  builtin.reserved += r->counted;
  builtin.used += r->bytes;
}


static CUresult free_on(CUdeviceptr address, CUstream stream) {
  CUstream s;
  HOST_TRY(host_stream_open(stream, &s));
  if (!address)
    return CUDA_SUCCESS;
  if (s->capture)
    return host_capture_free(s, address);
  HOST_TRY(host_capture_unsafe());
  CUresult result = host_graph_memory_free(address);
  if (result != CUDA_ERROR_NOT_FOUND)
    return result;
  host_range *r = host_range_find((uintptr_t)address);
  if (!r || r->start != address || r->freed || r->dying ||
      (r->kind != HOST_RANGE_POOL && r->kind != HOST_RANGE_ALLOC))
    return CUDA_ERROR_INVALID_VALUE;
  adopt(r);
  put(r, s);
  return CUDA_SUCCESS;
}


CUresult host_cuMemFreeAsync(CUdeviceptr dptr, CUstream hStream) {
  CUresult result = host_check_stream(hStream);
  if (result != CUDA_SUCCESS && result != host_failed())
    return result;
  host_lock();
  result = free_on(dptr, hStream);
  host_unlock();
  return result == CUDA_SUCCESS ? host_failed() : result;
}


/* ---- pools ---- */

CUresult host_cuMemPoolCreate(CUmemoryPool *pool,
                              const CUmemPoolProps *poolProps) {
  HOST_TRY(host_check_release());
  if (!pool || !poolProps ||
      poolProps->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      poolProps->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      poolProps->location.id != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (poolProps->handleTypes != CU_MEM_HANDLE_TYPE_NONE)
    return CUDA_ERROR_NOT_SUPPORTED;
  CUmemoryPool p = calloc(1, sizeof *p);
  if (!p)
    return CUDA_ERROR_OUT_OF_MEMORY;
  p->max_size = poolProps->maxSize;
  for (int i = 0; i < 3; i++)
    p->reuse[i] = 1;
  host_lock();
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS && !host_handle_add(HOST_HANDLE_MEMPOOL, p))
    result = CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS) {
    p->next = pools;
    pools = p;
    *pool = p;
  }
  host_unlock();
  if (result != CUDA_SUCCESS)
    free(p);
  return result;
}


/* Allocations that are still out keep the pool until they are freed. */
CUresult host_cuMemPoolDestroy(CUmemoryPool pool) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS && !host_handle_remove(HOST_HANDLE_MEMPOOL, pool))
    result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS) {
    pool->destroyed = true;
    if (current == pool)
      current = &builtin;
    host_mempool_sync();
  }
  host_unlock();
  return result;
}


CUresult host_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS && !(pool && pool_is_live(pool)))
    result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS)
    shrink(pool, minBytesToKeep);
  host_unlock();
  return result;
}


static CUresult set_pool(CUmemoryPool pool, CUmemPool_attribute attr,
                         const void *value) {
  uint64_t wide;
  switch (attr) {
  case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    pool->reuse[attr - 1] = *(const int *)value != 0;
    return CUDA_SUCCESS;
  case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
    memcpy(&pool->threshold, value, sizeof pool->threshold);
    return CUDA_SUCCESS;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
  case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
    memcpy(&wide, value, sizeof wide);
    if (wide) /* only a reset is allowed */
      return CUDA_ERROR_INVALID_VALUE;
    if (attr == CU_MEMPOOL_ATTR_USED_MEM_HIGH)
      pool->used_high = pool->used;
    else
      pool->reserved_high = pool->reserved;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}


static CUresult get_pool(CUmemoryPool pool, CUmemPool_attribute attr,
                         void *value) {
  const uint64_t *wide;
  switch (attr) {
  case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
  case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
    *(int *)value = pool->reuse[attr - 1];
    return CUDA_SUCCESS;
  case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
    wide = &pool->threshold;
    break;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    wide = &pool->reserved;
    break;
  case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    wide = &pool->reserved_high;
    break;
  case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
    wide = &pool->used;
    break;
  case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
    wide = &pool->used_high;
    break;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
  memcpy(value, wide, sizeof *wide);
  return CUDA_SUCCESS;
}


CUresult host_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr,
                                    void *value) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS)
    result = pool && value && pool_is_live(pool) ? set_pool(pool, attr, value)
                                                 : CUDA_ERROR_INVALID_VALUE;
  host_unlock();
  return result;
}


CUresult host_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr,
                                    void *value) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = pool && value && pool_is_live(pool)
                        ? get_pool(pool, attr, value)
                        : CUDA_ERROR_INVALID_VALUE;
  host_unlock();
  return result;
}


CUresult host_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev) {
  HOST_TRY(host_check_process());
  if (!pool_out)
    return CUDA_ERROR_INVALID_VALUE;
  *pool_out = &builtin;
  return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}


CUresult host_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
  HOST_TRY(host_check_process());
  if (!pool || dev != 0)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  *pool = current;
  host_unlock();
  return CUDA_SUCCESS;
}


CUresult host_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  HOST_TRY(host_check_process());
  if (dev != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  host_lock();
  bool live = pool && pool_is_live(pool);
  if (live)
    current = pool;
  host_unlock();
  return live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}


CUresult host_cuDeviceGetGraphMemAttribute(CUdevice device,
                                           CUgraphMem_attribute attr,
                                           void *value) {
  HOST_TRY(host_check_process());
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!value || attr < CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT ||
      attr > CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
    return CUDA_ERROR_INVALID_VALUE;
  host_graph_memory_stats stats;
  host_lock();
  host_graph_memory_stats_get(&stats);
  host_unlock();
  const uint64_t values[] = {stats.used, stats.used_high, stats.reserved,
                             stats.reserved_high};
  memcpy(value, &values[attr], sizeof values[attr]);
  return CUDA_SUCCESS;
}


CUresult host_cuDeviceGraphMemTrim(CUdevice device) {
  HOST_TRY(host_check_process());
  if (device != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  host_lock();
  host_graph_memory_trim();
  host_unlock();
  return CUDA_SUCCESS;
}
