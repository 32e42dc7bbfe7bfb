/* Stream-ordered pools.  An allocation is a guarded mapping of its own; a
   freed one goes on its pool's free list of the same size class at once and
   is given out again to the stream that freed it, or to another when that
   stream has got past the free.  So an address never belongs to two users
   whose work could overlap.
   Invariant: a range is on a free list exactly while `freed` is set; class 0
   holds ranges that fit no class and are never given out again. */
#include "driver/host/memory/memory.h"

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
static unsigned range_class(size_t *bytes) {
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


static bool range_available(const host_range *r) {
  return host_stream_reached(r->free_stream, r->free_at);
}


bool host_mempool_is_live(CUmemoryPool pool) {
  return pool == &builtin || host_handle_live(HOST_HANDLE_MEMPOOL, pool);
}


CUmemoryPool host_mempool_builtin(void) {
  return &builtin;
}


CUmemoryPool host_mempool_current(void) {
  return current;
}


void host_mempool_set_current(CUmemoryPool pool) {
  current = pool;
}


/* Gives a free range back to the device. */
static void range_release(CUmemoryPool pool, host_range **link) {
  host_range *r = *link;
  *link = r->free_next;
  pool->reserved -= r->counted;
  pool->nfree--;
  host_memory_drop(r);
}


/* Releases free ranges until no more than `keep` bytes are reserved. */
bool host_mempool_shrink(CUmemoryPool pool, uint64_t keep) {
  bool any = false;
  for (int i = CLASSES - 1; i >= 0; i--)
    for (host_range **link = &pool->free[i]; *link && pool->reserved > keep;)
      if (range_available(*link)) {
        range_release(pool, link);
        any = true;
      } else {
        link = &(*link)->free_next;
      }
  return any;
}


static void pool_unlink(CUmemoryPool pool) {
  CUmemoryPool *link = &pools;
  while (*link != pool)
    link = &(*link)->next;
  *link = pool->next;
  free(pool);
}


void host_mempool_sync(void) {
  host_memory_drop_unreserved();
  for (CUmemoryPool p = pools, next; p; p = next) {
    next = p->next;
    if (p->nfree)
      host_mempool_shrink(p, p->destroyed ? 0 : p->threshold);
    if (p->destroyed && !p->reserved)
      pool_unlink(p);
  }
}


bool host_mempool_squeeze(void) {
  bool any = false;
  size_t before = host_memory_used();
  host_memory_drop_unreserved();
  for (CUmemoryPool p = pools; p; p = p->next)
    any = host_mempool_shrink(p, 0) || any;
  return any || host_memory_used() < before;
}


static void pool_forget(void *handle) {
  host_handle_remove(HOST_HANDLE_MEMPOOL, handle);
  ((CUmemoryPool)handle)->destroyed = true;
}


void host_mempool_reset(void) {
  current = &builtin;
  host_handle_each(HOST_HANDLE_MEMPOOL, pool_forget);
  for (host_range *r = host_range_next(NULL), *next; r; r = next) {
    next = host_range_next(r);
    if (r->kind == HOST_RANGE_POOL)
      host_memory_drop(r);
  }
  while (pools != &builtin || builtin.next)
    pool_unlink(pools == &builtin ? builtin.next : pools);
  builtin = (struct CUmemPoolHandle_st){.builtin = true, .reuse = {1, 1, 1}};
}


/* Takes a free range of the class that `stream` may use, its own first. */
static host_range *pool_take(CUmemoryPool pool, unsigned class,
                             CUstream stream) {
  host_range **found = NULL;
  for (host_range **link = &pool->free[class]; *link;
       link = &(*link)->free_next) {
    if ((*link)->free_stream == stream->id) {
      found = link;
      break;
    }
    if (!found && range_available(*link))
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


static CUresult pool_make(CUmemoryPool pool, size_t class_bytes,
                          host_range **range) {
  if (pool->max_size && pool->reserved + class_bytes > pool->max_size &&
      (!host_mempool_shrink(pool, 0) ||
       pool->reserved + class_bytes > pool->max_size))
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = host_memory_make(class_bytes, HOST_RANGE_POOL, range);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && host_mempool_squeeze())
    result = host_memory_make(class_bytes, HOST_RANGE_POOL, range);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    host_stream_wait_all(); /* frees that are queued may make room */
    if (!host_mempool_is_live(pool))
      return CUDA_ERROR_INVALID_VALUE;
    if (host_mempool_squeeze())
      result = host_memory_make(class_bytes, HOST_RANGE_POOL, range);
  }
  return result;
}


CUresult host_mempool_alloc(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
                            CUstream stream) {
  size_t class_bytes = bytes;
  if (!pool)
    pool = current;
  if (class_bytes > host_device_memory())
    return CUDA_ERROR_OUT_OF_MEMORY;
  unsigned class = range_class(&class_bytes);
  bool tight = host_device_guard_tight();
  host_range *r = tight ? NULL : pool_take(pool, class, stream);
  if (!r) {
    if (tight)
      class_bytes = bytes;
    HOST_TRY(pool_make(pool, class_bytes, &r));
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


/* Puts a range on its free list, as freed now by `stream` (NULL: no
   queued work uses it). */
static void pool_put(host_range *r, CUstream stream) {
  CUmemoryPool pool = r->pool;
  size_t class_bytes = r->counted;
  unsigned class = range_class(&class_bytes);
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
  pool_put(range, NULL);
  host_mempool_sync();
}


/* What cuMemAlloc gave may be freed in stream order too. */
static void range_adopt(host_range *r) {
  if (r->kind != HOST_RANGE_ALLOC)
    return;
  r->kind = HOST_RANGE_POOL;
  r->pool = &builtin;
  builtin.reserved += r->counted;
  builtin.used += r->bytes;
}


CUresult host_mempool_free(CUdeviceptr address, CUstream stream) {
  host_range *r = host_range_find((uintptr_t)address);
  if (!r || r->start != address || r->freed || r->dying ||
      (r->kind != HOST_RANGE_POOL && r->kind != HOST_RANGE_ALLOC))
    return CUDA_ERROR_INVALID_VALUE;
  range_adopt(r);
  pool_put(r, stream);
  return CUDA_SUCCESS;
}


CUresult host_mempool_new(CUmemoryPool *out, size_t max_size) {
  CUmemoryPool pool = calloc(1, sizeof *pool);
  if (!pool || !host_handle_add(HOST_HANDLE_MEMPOOL, pool)) {
    free(pool);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  pool->max_size = max_size;
  for (int i = 0; i < 3; i++)
    pool->reuse[i] = 1;
  pool->next = pools;
  pools = pool;
  *out = pool;
  return CUDA_SUCCESS;
}


bool host_mempool_destroy(CUmemoryPool pool) {
  if (!host_handle_remove(HOST_HANDLE_MEMPOOL, pool))
    return false;
  pool->destroyed = true;
  if (current == pool)
    current = &builtin;
  host_mempool_sync();
  return true;
}


CUresult host_mempool_set(CUmemoryPool pool, CUmemPool_attribute attr,
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


CUresult host_mempool_get(CUmemoryPool pool, CUmemPool_attribute attr,
                          void *value) {
  const uint64_t *const wide[] = {
      [CU_MEMPOOL_ATTR_RELEASE_THRESHOLD] = &pool->threshold,
      [CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT] = &pool->reserved,
      [CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH] = &pool->reserved_high,
      [CU_MEMPOOL_ATTR_USED_MEM_CURRENT] = &pool->used,
      [CU_MEMPOOL_ATTR_USED_MEM_HIGH] = &pool->used_high};
  if (attr < CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES ||
      attr > CU_MEMPOOL_ATTR_USED_MEM_HIGH)
    return CUDA_ERROR_INVALID_VALUE;
  if (wide[attr])
    memcpy(value, wide[attr], sizeof *wide[attr]);
  else
    *(int *)value = pool->reuse[attr - 1];
  return CUDA_SUCCESS;
}
