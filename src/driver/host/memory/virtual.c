/* Virtual memory: reservations, physical chunks, and mappings of these there.
   All chunks live in one anonymous file, each at an offset that is never used
   again, so that any number of them costs one descriptor and a chunk keeps
   its contents wherever it is mapped.
   A chunk lives while its handle is not released or a mapping shows it.
   Mappings are shared between each other, never with a child of a fork, which
   has none of them. */
#define _GNU_SOURCE
#include "driver/host/memory/memory.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct host_chunk {
  size_t bytes;
  off_t offset;  /* in the file */
  unsigned refs; /* the handle until its release, and each mapping */
  bool released; /* the handle may still be mapped while a mapping shows it */
};

typedef struct host_map {
  uintptr_t start;
  size_t bytes;
  host_chunk *chunk;
  CUmemAccess_flags access;
  struct host_map *next; /* by address */
} host_map;

static int file = -1;
static off_t file_end;


static void chunk_unref(host_chunk *c) {
  if (--c->refs)
    return;
  host_handle_remove(HOST_HANDLE_PHYSICAL, c);
  fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, c->offset,
            (off_t)c->bytes);
  host_memory_refund(c->bytes);
  free(c);
}


CUresult host_virtual_chunk_new(host_chunk **out, size_t bytes) {
  if (file < 0)
    file = memfd_create("cgraphlua-memory", MFD_CLOEXEC);
  if (file < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  host_chunk *c = calloc(1, sizeof *c);
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
static host_range *reservation_find(uintptr_t start, size_t bytes) {
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
static void map_drop(host_map **link) {
  host_map *m = *link;
  *link = m->next;
  mmap((void *)m->start, m->bytes, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  chunk_unref(m->chunk);
  free(m);
}


static void forget_chunk(void *handle) {
  chunk_unref(handle); /* its mappings are gone: the handle's own */
}


void host_virtual_reset(void) {
  for (host_range *r = host_range_next(NULL), *next; r; r = next) {
    next = host_range_next(r);
    if (r->kind != HOST_RANGE_VIRTUAL)
      continue;
    while (r->maps)
      map_drop(&r->maps);
    host_memory_drop(r);
  }
  host_handle_each(HOST_HANDLE_PHYSICAL, forget_chunk);
}


CUresult host_virtual_reserve(CUdeviceptr *ptr, size_t size, size_t alignment,
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


CUresult host_virtual_map(uintptr_t start, size_t size, size_t offset,
                          host_chunk *c) {
  host_range *r = reservation_find(start, size);
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
  madvise((void *)start, size, MADV_DONTFORK);
  m->start = start;
  m->bytes = size;
  m->chunk = c;
  m->next = *link;
  *link = m;
  c->refs++;
  return CUDA_SUCCESS;
}


/* Does [start, start + size) cut through no mapping? */
static bool is_whole(host_range *r, uintptr_t start, size_t size) {
  for (host_map *m = *map_after(r, start); m && m->start < start + size;
       m = m->next)
    if (m->start < start || m->start + m->bytes > start + size)
      return false;
  return true;
}


/* Of whole mappings, the first and the last of which begin and end where the
   range does.  As a driver does, it takes a hole between them, and opens what
   lies before it. */
CUresult host_virtual_protect(uintptr_t start, size_t size,
                              CUmemAccess_flags flags) {
  int bits = flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                 ? PROT_READ | PROT_WRITE
             : flags == CU_MEM_ACCESS_FLAGS_PROT_READ ? PROT_READ
                                                      : PROT_NONE;
  uintptr_t end = start + size, at = 0;
  host_range *r = reservation_find(start, size);
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


CUresult host_virtual_free(uintptr_t start, size_t size) {
  host_range *r = reservation_find(start, size);
  if (!r || r->start != start || r->bytes != size || r->maps)
    return CUDA_ERROR_INVALID_VALUE;
  host_memory_drop(r);
  return CUDA_SUCCESS;
}


CUresult host_virtual_chunk_release(host_chunk *chunk) {
  if (!host_handle_live(HOST_HANDLE_PHYSICAL, chunk) || chunk->released)
    return CUDA_ERROR_INVALID_VALUE;
  chunk->released = true;
  chunk_unref(chunk);
  return CUDA_SUCCESS;
}


CUresult host_virtual_unmap(uintptr_t start, size_t size) {
  host_range *r = reservation_find(start, size);
  if (!r || !is_whole(r, start, size))
    return CUDA_ERROR_INVALID_VALUE;
  host_map **link = map_after(r, start);
  while (*link && (*link)->start < start + size)
    map_drop(link);
  return CUDA_SUCCESS;
}
