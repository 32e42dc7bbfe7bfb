/* Memory of the device: guarded mappings, stream-ordered pools, virtual
   memory, and what copies and fills may touch.
   Idea: an allocation is a mapping of its own with guard pages around it, so
   that an overrun faults; what it costs is counted against the device's size.
   Invariants: the address map names every piece of memory that the device was
   told of; memory that queued work may still use is dropped only when that
   work has run.
   Every function here is called under host_lock. */
#ifndef CGL_HOST_MEMORY_H
#define CGL_HOST_MEMORY_H

#include "driver/host/stream/stream.h"

/* ---- mappings (memory.c) ---- */

/* Counts bytes against the device's memory; false: too many. */
bool host_memory_charge(size_t bytes);
void host_memory_refund(size_t bytes);
size_t host_memory_used(void);
int64_t host_memory_allocations(void); /* live mappings of ours */
void host_memory_note_mapping(void);   /* one that host_memory_drop will drop */
/* Makes a range of `kind` with its own guarded mapping, which counts against
   the device's memory, a pinned one against the machine's. */
CUresult host_memory_make(size_t bytes, host_range_kind kind, host_range **out);
void host_memory_drop(host_range *range); /* unmaps, refunds, removes */
/* The same when no queued work uses the range any more; gives host_lock up
   meanwhile.  A pool's range goes back to its pool. */
void host_memory_drop_later(host_range *range);
/* Device memory with guard pages, or with its end against one when the guard
   is tight. */
CUresult host_memory_alloc(CUdeviceptr *out, size_t bytes);
/* The memory of alloc nodes: an address range that is fixed for the graph's
   life.  commit makes it accessible and counts it, or answers OUT_OF_MEMORY;
   decommit undoes that; unreserve drops it when the device is idle. */
CUresult host_memory_reserve(CUdeviceptr *out, size_t bytes);
CUresult host_memory_commit(CUdeviceptr address);
CUresult host_memory_decommit(CUdeviceptr address);
void host_memory_unreserve(CUdeviceptr address);
void host_memory_drop_unreserved(void);

/* ---- pools (pool.c) ---- */

/* `bytes` for the stream, from the pool (NULL: the current one). */
CUresult host_mempool_alloc(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
                            CUstream stream);
/* Frees memory of a pool, or of cuMemAlloc, in the stream's order. */
CUresult host_mempool_free(CUdeviceptr address, CUstream stream);
/* Puts a range back whose free was called and which no work uses. */
void host_mempool_give_back(host_range *range);
/* After a wait for the device or a part of it: releases what the pools keep
   above their thresholds. */
void host_mempool_sync(void);
/* Releases all that the pools keep; false when there was nothing. */
bool host_mempool_squeeze(void);
void host_mempool_reset(void); /* destroys all pools but the built-in one */
bool host_mempool_is_live(CUmemoryPool pool);
CUmemoryPool host_mempool_builtin(void);
CUmemoryPool host_mempool_current(void);
void host_mempool_set_current(CUmemoryPool pool);
CUresult host_mempool_new(CUmemoryPool *out, size_t max_size);
/* False for a pool that is not live.  Allocations that are still out keep its
   memory until they are freed. */
bool host_mempool_destroy(CUmemoryPool pool);
/* Releases free memory until no more than `keep` bytes are reserved; false
   when there was nothing to release. */
bool host_mempool_shrink(CUmemoryPool pool, uint64_t keep);
CUresult host_mempool_set(CUmemoryPool pool, CUmemPool_attribute attr,
                          const void *value);
CUresult host_mempool_get(CUmemoryPool pool, CUmemPool_attribute attr,
                          void *value);

/* ---- virtual memory (virtual.c) ---- */

#define HOST_GRANULARITY ((size_t)2 << 20)

typedef struct host_chunk host_chunk; /* physical memory */

/* The arguments are multiples of the granularity. */
CUresult host_virtual_reserve(CUdeviceptr *ptr, size_t size, size_t alignment,
                              uintptr_t hint);
CUresult host_virtual_free(uintptr_t start, size_t size);
CUresult host_virtual_chunk_new(host_chunk **out, size_t bytes);
CUresult host_virtual_chunk_release(host_chunk *chunk);
CUresult host_virtual_map(uintptr_t start, size_t size, size_t offset,
                          host_chunk *chunk);
CUresult host_virtual_unmap(uintptr_t start, size_t size);
CUresult host_virtual_protect(uintptr_t start, size_t size,
                              CUmemAccess_flags flags);
/* May every byte of [address, address + bytes) of a reservation be accessed?
   Is there a mapping around the address? */
bool host_virtual_accessible(const host_range *range, uintptr_t address,
                             size_t bytes);
bool host_virtual_mapped(const host_range *range, uintptr_t address);
void host_virtual_reset(void); /* all reservations and chunks go */

/* ---- checks of copies and fills (copy.c) ---- */

/* What is known of a piece of memory. */
typedef enum host_place {
  HOST_PLACE_BAD,
  HOST_PLACE_PAGEABLE, /* unknown to the device: taken for the host's */
  HOST_PLACE_PINNED,
  HOST_PLACE_DEVICE
} host_place;

/* Fills in a copy op after checking it against the known memory.  Pitches and
   heights of 0 are defaulted; INVALID_VALUE when a range leaves its
   allocation, for an array, a bad pitch or element size. */
CUresult host_copy_make(host_op *op, const CUDA_MEMCPY3D *copy,
                        host_place *from, host_place *to);
/* The same for a node, where sides of UNIFIED memory stay so. */
CUresult host_copy_make_node(host_op *op, const CUDA_MEMCPY3D *copy);
/* A captured fill is checked for its shape alone: the memory may come
   later. */
CUresult host_fill_make(host_op *op, const CUDA_MEMSET_NODE_PARAMS *set,
                        bool captured);

#endif
