/* Memory: guarded mappings, the device's size, and what pointers are. */
#define _GNU_SOURCE
#include "driver/host/base/runtime.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, GUARD = 65536, HUGE = 2 << 20 };
/* Larger blocks than this begin at different places of a page each: cores take
   addresses that differ by a multiple of 4096 for the same at first sight, and
   a loop over several arrays would stall on it. */
enum { COLOURED = 16384, COLOUR = 1280 };

static size_t used;   /* bytes of the device's memory, under host_lock */
static size_t locked; /* bytes of pinned memory, likewise */
static int64_t allocations;
/* Graph ranges that were given back while the device was busy. */
static host_range *graveyard;


/* ---- the device's size ---- */

bool host_memory_charge(size_t bytes) {
  if (bytes > host_device_memory() - used)
    return false;
  used += bytes;
  return true;
}


void host_memory_refund(size_t bytes) {
  used -= bytes;
}


size_t host_memory_used(void) {
  return used;
}


int64_t host_memory_allocations(void) {
  return allocations;
}


void host_memory_note_mapping(void) {
  allocations++;
}


/* ---- guarded mappings ---- */

static size_t page_up(size_t bytes) {
  return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}


/* Reserves address space for bytes with guards on both sides, nothing of it
   accessible.  Large blocks begin on a huge page, unless their end has to
   touch the guard. */
static CUresult map_guarded(size_t bytes, host_range *r) {
  static unsigned turn;
  bool tight = host_guard_tight();
  size_t colour = tight || bytes < COLOURED ? 0 : turn++ * COLOUR % PAGE;
  size_t data = page_up(bytes + colour);
  size_t slack = data >= HUGE ? HUGE : 0;
  if (data < bytes || data > SIZE_MAX / 4)
    return CUDA_ERROR_OUT_OF_MEMORY;
  r->map_bytes = data + 2 * GUARD + slack;
  r->map = mmap(NULL, r->map_bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (r->map == MAP_FAILED)
    return CUDA_ERROR_OUT_OF_MEMORY;
  uintptr_t start = (uintptr_t)r->map + GUARD;
  if (slack)
    start = (start + HUGE - 1) & ~(uintptr_t)(HUGE - 1);
  r->data = start;
  r->data_bytes = data;
  r->start = tight ? start + data - bytes : start + colour;
  r->bytes = bytes;
  return CUDA_SUCCESS;
}


static bool open_data(const host_range *r) {
  if (mprotect((void *)r->data, r->data_bytes, PROT_READ | PROT_WRITE))
    return false;
  if (r->data_bytes >= HUGE)
    madvise((void *)r->data, r->data_bytes, MADV_HUGEPAGE);
  return true;
}


/* Registers the mapping of `made`, or gives it back. */
static CUresult enter(const host_range *made, host_range_kind kind,
                      host_range **out) {
  host_range *r = host_range_add(made->start, made->bytes, kind);
  if (!r) {
    munmap(made->map, made->map_bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  r->map = made->map;
  r->map_bytes = made->map_bytes;
  r->data = made->data;
  r->data_bytes = made->data_bytes;
  host_memory_note_mapping();
  *out = r;
  return CUDA_SUCCESS;
}


/* Page-locked memory is the machine's, which has no more to lock. */
static bool charge_pinned(size_t bytes) {
  static size_t machine;
  if (!machine)
    machine = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  if (bytes > machine - locked)
    return false;
  locked += bytes;
  return true;
}


static void refund(host_range_kind kind, size_t bytes) {
  if (kind == HOST_RANGE_PINNED)
    locked -= bytes;
  else
    host_memory_refund(bytes);
}


CUresult host_memory_make(size_t bytes, host_range_kind kind,
                          host_range **out) {
  size_t charged = page_up(bytes);
  if (charged < bytes)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!(kind == HOST_RANGE_PINNED ? charge_pinned(charged)
                                  : host_memory_charge(charged)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  host_range made = {0};
  CUresult result = map_guarded(bytes, &made);
  if (result == CUDA_SUCCESS && !open_data(&made)) {
    munmap(made.map, made.map_bytes);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result == CUDA_SUCCESS)
    result = enter(&made, kind, out);
  if (result != CUDA_SUCCESS) {
    refund(kind, charged);
    return result;
  }
  (*out)->counted = charged;
  return CUDA_SUCCESS;
}


void host_memory_drop(host_range *range) {
  if (range->map) {
    munmap(range->map, range->map_bytes);
    allocations--;
  }
  refund(range->kind, range->counted);
  host_range_remove(range);
}


CUresult host_memory_alloc(CUdeviceptr *out, size_t bytes) {
  if (!bytes)
    return CUDA_ERROR_INVALID_VALUE;
  host_range *range;
  CUresult result = host_memory_make(bytes, HOST_RANGE_ALLOC, &range);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && host_mempool_squeeze())
    result = host_memory_make(bytes, HOST_RANGE_ALLOC, &range);
  if (result == CUDA_SUCCESS)
    *out = range->start;
  return result;
}


/* ---- memory of graphs ---- */

static host_range *graph_range(CUdeviceptr address) {
  host_range *r = host_range_find((uintptr_t)address);
  return r && r->start == address && r->kind == HOST_RANGE_GRAPH && !r->dying
             ? r
             : NULL;
}


CUresult host_memory_reserve(CUdeviceptr *out, size_t bytes) {
  host_memory_bury();
  host_range made = {0}, *range;
  HOST_TRY(map_guarded(bytes ? bytes : 1, &made));
  HOST_TRY(enter(&made, HOST_RANGE_GRAPH, &range));
  *out = range->start;
  return CUDA_SUCCESS;
}


CUresult host_memory_commit(CUdeviceptr address) {
  host_range *r = graph_range(address);
  if (!r)
    return CUDA_ERROR_INVALID_VALUE;
  if (r->committed)
    return CUDA_SUCCESS;
  if (!host_memory_charge(r->data_bytes) &&
      !(host_mempool_squeeze() && host_memory_charge(r->data_bytes)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!open_data(r)) {
    host_memory_refund(r->data_bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  r->counted = r->data_bytes;
  r->committed = true;
  return CUDA_SUCCESS;
}


CUresult host_memory_decommit(CUdeviceptr address) {
  host_range *r = graph_range(address);
  if (!r || !r->committed)
    return CUDA_ERROR_INVALID_VALUE;
  madvise((void *)r->data, r->data_bytes, MADV_DONTNEED);
  mprotect((void *)r->data, r->data_bytes, PROT_NONE);
  host_memory_refund(r->counted);
  r->counted = 0;
  r->committed = false;
  return CUDA_SUCCESS;
}


/* What is queued may still use the range: it goes when the device is idle. */
void host_memory_unreserve(CUdeviceptr address) {
  host_range *r = graph_range(address);
  if (!r)
    return;
  r->dying = true;
  r->free_next = graveyard;
  graveyard = r;
  host_memory_bury();
}


void host_memory_bury(void) {
  if (!graveyard || !host_device_idle())
    return;
  while (graveyard) {
    host_range *r = graveyard;
    graveyard = r->free_next;
    host_memory_drop(r);
  }
}


/* ---- the driver's calls ---- */

CUresult host_cuMemGetInfo(size_t *free, size_t *total) {
  HOST_TRY(host_check());
  host_lock();
  if (total)
    *total = host_device_memory();
  if (free)
    *free = host_device_memory() - used;
  host_unlock();
  return CUDA_SUCCESS;
}


CUresult host_cuMemAlloc(CUdeviceptr *dptr, size_t bytesize) {
  HOST_TRY(host_check());
  if (!dptr)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS)
    result = host_memory_alloc(dptr, bytesize);
  host_unlock();
  return result;
}


/* Waits until the device is done with a range that is to go.  NULL: the context
   ended meanwhile and took it along. */
static host_range *quiesce(host_range *range) {
  uintptr_t start = range->start;
  uint64_t id = range->id;
  range->dying = true;
  host_device_wait();
  range = host_range_find(start);
  return range && range->id == id ? range : NULL;
}


/* Frees what cuMemAlloc and the pools gave, after all work of the device. */
static CUresult free_device(CUdeviceptr address) {
  CUresult result = host_graph_memory_free(address);
  if (result != CUDA_ERROR_NOT_FOUND)
    return result;
  host_range *r = host_range_find((uintptr_t)address);
  if (!r || r->start != address || r->dying || r->freed ||
      (r->kind != HOST_RANGE_ALLOC && r->kind != HOST_RANGE_POOL))
    return CUDA_ERROR_INVALID_VALUE;
  r = quiesce(r);
  if (r && r->kind == HOST_RANGE_POOL)
    host_mempool_give_back(r);
  else if (r)
    host_memory_drop(r);
  return CUDA_SUCCESS;
}


CUresult host_cuMemFree(CUdeviceptr dptr) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS && dptr)
    result = free_device(dptr);
  host_unlock();
  return result == CUDA_SUCCESS ? host_failed() : result;
}


CUresult host_cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags) {
  HOST_TRY(host_check());
  if (!pp || Flags & ~7u)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  host_range *range = NULL;
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS && bytesize)
    result = host_memory_make(bytesize, HOST_RANGE_PINNED, &range);
  if (result == CUDA_SUCCESS)
    *pp = range ? (void *)range->start : NULL;
  host_unlock();
  return result;
}


CUresult host_cuMemAllocHost(void **pp, size_t bytesize) {
  return host_cuMemHostAlloc(pp, bytesize, 0);
}


/* The range of `kind` that starts at p, if it is not going already. */
static host_range *pinned(const void *p, host_range_kind kind) {
  host_range *r = host_range_find((uintptr_t)p);
  return r && r->start == (uintptr_t)p && r->kind == kind && !r->dying ? r
                                                                       : NULL;
}


CUresult host_cuMemFreeHost(void *p) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = host_capture_unsafe();
  host_range *r = p ? pinned(p, HOST_RANGE_PINNED) : NULL;
  if (result == CUDA_SUCCESS && p && !r)
    result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS && r) {
    r = quiesce(r);
    if (r)
      host_memory_drop(r);
  }
  host_unlock();
  return result == CUDA_SUCCESS ? host_failed() : result;
}


CUresult host_cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags) {
  HOST_TRY(host_check());
  if (!p || !bytesize || Flags & ~15u || (uintptr_t)p + bytesize < bytesize)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUresult result = host_capture_unsafe();
  const host_range *around = host_range_find((uintptr_t)p);
  if (result == CUDA_SUCCESS && around && around->kind != HOST_RANGE_REGISTERED)
    result = CUDA_ERROR_INVALID_VALUE; /* the driver's own */
  if (result == CUDA_SUCCESS && host_range_overlaps((uintptr_t)p, bytesize))
    result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  if (result == CUDA_SUCCESS &&
      !host_range_add((uintptr_t)p, bytesize, HOST_RANGE_REGISTERED))
    result = CUDA_ERROR_OUT_OF_MEMORY;
  host_unlock();
  return result;
}


CUresult host_cuMemHostUnregister(void *p) {
  HOST_TRY(host_check_release());
  if (!p)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUresult result = host_capture_unsafe();
  host_range *r = pinned(p, HOST_RANGE_REGISTERED);
  const host_range *around = host_range_find((uintptr_t)p);
  if (result == CUDA_SUCCESS && !r)
    result = around ? CUDA_ERROR_INVALID_VALUE
                    : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  if (result == CUDA_SUCCESS) {
    r = quiesce(r);
    if (r)
      host_memory_drop(r);
  }
  host_unlock();
  return result == CUDA_SUCCESS ? host_failed() : result;
}


static bool is_host_kind(const host_range *r) {
  return r->kind == HOST_RANGE_PINNED || r->kind == HOST_RANGE_REGISTERED;
}


CUresult host_cuMemHostGetDevicePointer(CUdeviceptr *pdptr, void *p,
                                        unsigned int Flags) {
  HOST_TRY(host_check());
  if (!pdptr || !p || Flags)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  const host_range *r = host_range_find((uintptr_t)p);
  bool known = r && is_host_kind(r);
  host_unlock();
  if (!known)
    return CUDA_ERROR_INVALID_VALUE;
  *pdptr = (CUdeviceptr)(uintptr_t)p;
  return CUDA_SUCCESS;
}


/* Pool and virtual memory belongs to the device, not to a context. */
static bool of_context(const host_range *r) {
  return r->kind != HOST_RANGE_POOL && r->kind != HOST_RANGE_GRAPH &&
         r->kind != HOST_RANGE_VIRTUAL;
}


static CUresult describe(void *data, CUpointer_attribute attribute,
                         const host_range *r, CUdeviceptr ptr) {
  switch (attribute) {
  case CU_POINTER_ATTRIBUTE_CONTEXT:
    *(CUcontext *)data = of_context(r) ? host_context() : NULL;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    *(unsigned *)data =
        is_host_kind(r) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    *(CUdeviceptr *)data = ptr;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    if (!is_host_kind(r))
      return CUDA_ERROR_INVALID_VALUE;
    *(void **)data = host_pointer(ptr);
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    *(uint64_t *)data = r->id;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    *(int *)data = 0;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    *(CUdeviceptr *)data = r->start;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    *(size_t *)data = r->bytes;
    return CUDA_SUCCESS;
  case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    *(CUmemoryPool *)data = r->pool;
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}


CUresult host_cuPointerGetAttribute(void *data, CUpointer_attribute attribute,
                                    CUdeviceptr ptr) {
  HOST_TRY(host_check_release());
  if (!data)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  const host_range *r = host_range_find((uintptr_t)ptr);
  if (r && r->kind == HOST_RANGE_VIRTUAL &&
      !host_virtual_mapped(r, (uintptr_t)ptr))
    r = NULL;
  CUresult result = r && !r->dying && !r->freed
                        ? describe(data, attribute, r, ptr)
                        : CUDA_ERROR_INVALID_VALUE;
  host_unlock();
  return result;
}
