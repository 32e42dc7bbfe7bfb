/* Guarded mappings, and the device's size. */
#define _GNU_SOURCE
#include "driver/host/memory/memory.h"

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
static host_range *unreserved;


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


static size_t page_up(size_t bytes) {
  return (bytes + PAGE - 1) & ~(size_t)(PAGE - 1);
}


/* Reserves address space for bytes with guards on both sides, nothing of it
   accessible.  Large blocks begin on a huge page, unless their end has to
   touch the guard. */
static CUresult map_guarded(size_t bytes, host_range *r) {
  static unsigned count;
  bool tight = host_device_guard_tight();
  size_t colour = tight || bytes < COLOURED ? 0 : count++ * COLOUR % PAGE;
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


static bool mapping_open(const host_range *r) {
  if (mprotect((void *)r->data, r->data_bytes, PROT_READ | PROT_WRITE))
    return false;
  if (r->data_bytes >= HUGE)
    madvise((void *)r->data, r->data_bytes, MADV_HUGEPAGE);
  return true;
}


/* Registers the mapping of `made`, or gives it back. */
static CUresult mapping_add(const host_range *made, host_range_kind kind,
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


static void refund_kind(host_range_kind kind, size_t bytes) {
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
  if (result == CUDA_SUCCESS && !mapping_open(&made)) {
    munmap(made.map, made.map_bytes);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result == CUDA_SUCCESS)
    result = mapping_add(&made, kind, out);
  if (result != CUDA_SUCCESS) {
    refund_kind(kind, charged);
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
  refund_kind(range->kind, range->counted);
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


static host_range *graph_range(CUdeviceptr address) {
  host_range *r = host_range_find((uintptr_t)address);
  return r && r->start == address && r->kind == HOST_RANGE_GRAPH && !r->dying
             ? r
             : NULL;
}


CUresult host_memory_reserve(CUdeviceptr *out, size_t bytes) {
  host_memory_drop_unreserved();
  host_range made = {0}, *range;
  HOST_TRY(map_guarded(bytes ? bytes : 1, &made));
  HOST_TRY(mapping_add(&made, HOST_RANGE_GRAPH, &range));
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
  if (!mapping_open(r)) {
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
  r->free_next = unreserved;
  unreserved = r;
  host_memory_drop_unreserved();
}


void host_memory_drop_unreserved(void) {
  if (!unreserved || !host_stream_all_drained())
    return;
  while (unreserved) {
    host_range *r = unreserved;
    unreserved = r->free_next;
    host_memory_drop(r);
  }
}


void host_memory_drop_later(host_range *range) {
  uintptr_t start = range->start;
  uint64_t id = range->id;
  range->dying = true;
  host_stream_wait_all();
  range = host_range_find(start);
  if (!range || range->id != id)
    return; /* the context ended meanwhile and took it along */
  if (range->kind == HOST_RANGE_POOL)
    host_mempool_give_back(range);
  else
    host_memory_drop(range);
}
