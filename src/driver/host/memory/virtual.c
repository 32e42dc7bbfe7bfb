/* Virtual memory: reservations, physical chunks, and mappings of these there.
   All chunks live in one anonymous file, each at an offset that is never used
   again, so that any number of them costs one descriptor and a chunk keeps
   its contents wherever it is mapped.
   A chunk lives while its handle is not released or a mapping shows it. */
#define _GNU_SOURCE
#include "driver/host/base/runtime.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRANULARITY ((size_t)2 << 20)

typedef struct chunk {
  size_t bytes;
  off_t offset;  /* in the file */
  unsigned refs; /* the handle until its release, and each mapping */
  bool released; /* the handle may still be mapped while a mapping shows it */
} chunk;

typedef struct host_map {
  uintptr_t start;
  size_t bytes;
  chunk *chunk;
  CUmemAccess_flags access;
  struct host_map *next; /* by address */
} host_map;

static int file = -1;
static off_t file_end;


static bool is_multiple(size_t n) {
  return n && n % GRANULARITY == 0;
}


static void chunk_release(chunk *c) {
  if (--c->refs)
    return;
  host_handle_remove(HOST_HANDLE_PHYSICAL, c);
  fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, c->offset,
            (off_t)c->bytes);
  host_memory_refund(c->bytes);
  free(c);
}


static CUresult chunk_make(chunk **out, size_t bytes) {
  if (file < 0)
    file = memfd_create("cgraphlua-memory", MFD_CLOEXEC);
  if (file < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  chunk *c = calloc(1, sizeof *c);
  if (!c || !host_handle_add(HOST_HANDLE_PHYSICAL, c)) {
    free(c);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!host_memory_charge(bytes) &&
      !(host_mempool_squeeze() && host_memory_charge(bytes))) {
    host_handle_remove(HOST_HANDLE_PHYSICAL, c);
    free(c);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  c->bytes = bytes;
  c->offset = file_end;
  c->refs = 1;
  if (ftruncate(file, file_end + (off_t)bytes)) {
    host_memory_refund(bytes);
    host_handle_remove(HOST_HANDLE_PHYSICAL, c);
    free(c);
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
  file_end += (off_t)bytes;
  *out = c;
  return CUDA_SUCCESS;
}


/* The reservation that holds all of [start, start + bytes), or NULL. */
static host_range *reservation(uintptr_t start, size_t bytes) {
  host_range *r = host_range_find(start);
  return r && r->kind == HOST_RANGE_VIRTUAL &&
                 bytes <= r->bytes - (start - r->start)
             ? r
             : NULL;
}


/* The link to the first mapping that ends after `start`. */
static host_map **map_after(host_range *r, uintptr_t start) {
  host_map **link = &r->maps;
  while (*link && (*link)->start + (*link)->bytes <= start)
    link = &(*link)->next;
  return link;
}


bool host_virtual_accessible(const host_range *range, uintptr_t address,
                             size_t bytes) {
  uintptr_t end = address + bytes;
  for (const host_map *m = range->maps; m && address < end; m = m->next)
    if (m->access != CU_MEM_ACCESS_FLAGS_PROT_NONE && m->start <= address &&
        address - m->start < m->bytes)
      address = m->start + m->bytes;
  return address >= end;
}


bool host_virtual_mapped(const host_range *range, uintptr_t address) {
  for (const host_map *m = range->maps; m; m = m->next)
    if (m->start <= address && address - m->start < m->bytes)
      return true;
  return false;
}


/* Makes the mapping's pages inaccessible again and forgets it. */
static void unmap(host_map **link) {
  host_map *m = *link;
  *link = m->next;
  mmap((void *)m->start, m->bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  chunk_release(m->chunk);
  free(m);
}


static void forget_chunk(void *handle) {
  chunk_release(handle); /* its mappings are gone: the handle's own */
}


void host_virtual_reset(void) {
  for (host_range *r = host_range_next(NULL), *next; r; r = next) {
    next = host_range_next(r);
    if (r->kind != HOST_RANGE_VIRTUAL)
      continue;
    while (r->maps)
      unmap(&r->maps);
    host_memory_drop(r);
  }
  host_handle_each(HOST_HANDLE_PHYSICAL, forget_chunk);
}


/* ---- the driver's calls ---- */

static bool is_on_device(const CUmemAllocationProp *prop) {
  return prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}


CUresult
host_cuMemGetAllocationGranularity(size_t *granularity,
                                   const CUmemAllocationProp *prop,
                                   CUmemAllocationGranularity_flags option) {
  HOST_TRY(host_check_release());
  if (!granularity || !is_on_device(prop) ||
      (option != CU_MEM_ALLOC_GRANULARITY_MINIMUM &&
       option != CU_MEM_ALLOC_GRANULARITY_RECOMMENDED))
    return CUDA_ERROR_INVALID_VALUE;
  *granularity = GRANULARITY;
  return CUDA_SUCCESS;
}


static CUresult reserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                        uintptr_t hint) {
  size_t total = size + alignment;
  if (total < size)
    return CUDA_ERROR_OUT_OF_MEMORY;
  char *memory = MAP_FAILED;
  if (hint)
    memory =
        mmap((void *)hint, size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE,
             -1, 0);
  if (memory != MAP_FAILED && (uintptr_t)memory != hint) {
    munmap(memory, size); /* a kernel that does not know the flag */
    memory = MAP_FAILED;
  }
  if (memory == MAP_FAILED) {
    memory = mmap(NULL, total, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
      return CUDA_ERROR_OUT_OF_MEMORY;
    size_t before = (alignment - (uintptr_t)memory % alignment) % alignment;
    if (before)
      munmap(memory, before);
    munmap(memory + before + size, total - before - size);
    memory += before;
  }
  host_range *r = host_range_add((uintptr_t)memory, size, HOST_RANGE_VIRTUAL);
  if (!r) {
    munmap(memory, size);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  r->map = memory;
  r->map_bytes = size;
  host_memory_note_mapping();
  *ptr = r->start;
  return CUDA_SUCCESS;
}


CUresult host_cuMemAddressReserve(CUdeviceptr *ptr, size_t size,
                                  size_t alignment, CUdeviceptr addr,
                                  unsigned long long flags) {
  HOST_TRY(host_check_release());
  if (!ptr || !is_multiple(size) || flags || alignment & (alignment - 1) ||
      addr % GRANULARITY)
    return CUDA_ERROR_INVALID_VALUE;
  if (alignment < GRANULARITY)
    alignment = GRANULARITY;
  uintptr_t hint = addr % alignment ? 0 : (uintptr_t)addr;
  host_lock();
  CUresult result = reserve(ptr, size, alignment, hint);
  host_unlock();
  return result;
}


CUresult host_cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  host_range *r = reservation((uintptr_t)ptr, size);
  if (r && r->start == ptr && r->bytes == size && !r->maps) {
    host_memory_drop(r);
    result = CUDA_SUCCESS;
  }
  host_unlock();
  return result;
}


CUresult host_cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                          const CUmemAllocationProp *prop,
                          unsigned long long flags) {
  HOST_TRY(host_check_release());
  if (!handle || !is_multiple(size) || !is_on_device(prop) ||
      prop->type != CU_MEM_ALLOCATION_TYPE_PINNED || flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (prop->location.id != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)
    return CUDA_ERROR_NOT_SUPPORTED;
  chunk *c = NULL;
  host_lock();
  CUresult result = chunk_make(&c, size);
  host_unlock();
  if (result == CUDA_SUCCESS)
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)c;
  return result;
}


CUresult host_cuMemRelease(CUmemGenericAllocationHandle handle) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  chunk *c = (chunk *)(uintptr_t)handle;
  if (host_handle_live(HOST_HANDLE_PHYSICAL, c) && !c->released) {
    c->released = true;
    chunk_release(c);
    result = CUDA_SUCCESS;
  }
  host_unlock();
  return result;
}


static CUresult map(uintptr_t start, size_t size, size_t offset, chunk *c) {
  host_range *r = reservation(start, size);
  if (!r || !host_handle_live(HOST_HANDLE_PHYSICAL, c))
    return CUDA_ERROR_INVALID_VALUE;
  if (offset || size != c->bytes)
    return CUDA_ERROR_NOT_SUPPORTED;
  host_map **link = map_after(r, start);
  if (*link && (*link)->start < start + size)
    return CUDA_ERROR_INVALID_VALUE;
  host_map *m = calloc(1, sizeof *m);
  if (!m)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (mmap((void *)start, size, PROT_NONE, MAP_SHARED | MAP_FIXED, file,
           c->offset) == MAP_FAILED) {
    free(m);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  m->start = start;
  m->bytes = size;
  m->chunk = c;
  m->next = *link;
  *link = m;
  c->refs++;
  return CUDA_SUCCESS;
}


CUresult host_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                       CUmemGenericAllocationHandle handle,
                       unsigned long long flags) {
  HOST_TRY(host_check_release());
  if (ptr % GRANULARITY || !size || flags)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUresult result =
      map((uintptr_t)ptr, size, offset, (chunk *)(uintptr_t)handle);
  host_unlock();
  return result;
}


/* Does [start, start + size) cut through no mapping? */
static bool is_whole(host_range *r, uintptr_t start, size_t size) {
  for (host_map *m = *map_after(r, start); m && m->start < start + size;
       m = m->next)
    if (m->start < start || m->start + m->bytes > start + size)
      return false;
  return true;
}


/* A range without any mapping is fine: there is nothing to do. */
CUresult host_cuMemUnmap(CUdeviceptr ptr, size_t size) {
  HOST_TRY(host_check_release());
  if (ptr % GRANULARITY || !is_multiple(size))
    return CUDA_ERROR_INVALID_VALUE;
  uintptr_t start = (uintptr_t)ptr;
  host_lock();
  host_range *r = reservation(start, size);
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (r && is_whole(r, start, size)) {
    host_map **link = map_after(r, start);
    while (*link && (*link)->start < start + size)
      unmap(link);
    result = CUDA_SUCCESS;
  }
  host_unlock();
  return result;
}


/* Of whole mappings, the first and the last of which begin and end where the
   range does.  As a driver does, it takes a hole between them, and opens what
   lies before it. */
static CUresult protect(uintptr_t start, size_t size, CUmemAccess_flags flags) {
  int bits = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                 ? PROT_READ | PROT_WRITE
             : flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ
                                                      : PROT_NONE;
  uintptr_t end = start + size, at = 0;
  host_range *r = reservation(start, size);
  host_map *first = r ? *map_after(r, start) : NULL;
  if (!first || first->start != start || !is_whole(r, start, size))
    return CUDA_ERROR_INVALID_VALUE;
  for (host_map *m = first; m && m->start < end; m = m->next)
    at = m->start + m->bytes;
  if (at != end)
    return CUDA_ERROR_INVALID_VALUE;
  at = start;
  for (host_map *m = first; at < end && m->start == at; m = m->next) {
    if (mprotect((void *)at, m->bytes, bits))
      return CUDA_ERROR_OUT_OF_MEMORY;
    m->access = flags;
    at += m->bytes;
  }
  return CUDA_SUCCESS;
}


CUresult host_cuMemSetAccess(CUdeviceptr ptr, size_t size,
                             const CUmemAccessDesc *desc, size_t count) {
  HOST_TRY(host_check_release());
  if (ptr % GRANULARITY || !is_multiple(size) || !desc || !count)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++)
    if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        desc[i].location.id != 0 ||
        (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
         desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
         desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
      return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUresult result = protect((uintptr_t)ptr, size, desc[count - 1].flags);
  host_unlock();
  return result;
}
