/* The driver's calls on stream-ordered memory. */
#include "driver/host/calls/calls.h"
#include "driver/host/graph/graph.h"

#include <string.h>


/* In a capture the call makes a node; elsewhere it may not be made while a
   capture bars it. */
static CUresult alloc_on(CUdeviceptr *out, size_t bytes, CUmemoryPool pool,
                         CUstream stream) {
  CUstream s;
  HOST_TRY(host_stream_open(stream, &s));
  if (pool && !host_mempool_is_live(pool))
    return CUDA_ERROR_INVALID_VALUE;
  *out = 0;
  if (!bytes)
    return CUDA_SUCCESS;
  if (s->capture)
    return host_graph_capture_alloc(s, bytes, out);
  HOST_TRY(host_capture_unsafe());
  return host_mempool_alloc(out, bytes, pool, s);
}


CUresult host_cuMemAllocAsync(CUdeviceptr *dptr, size_t bytesize,
                              CUstream hStream) {
  HOST_TRY(host_check_stream(hStream));
  if (!dptr)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  return host_unlock_with(alloc_on(dptr, bytesize, NULL, hStream));
}


CUresult host_cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t bytesize,
                                      CUmemoryPool pool, CUstream hStream) {
  HOST_TRY(host_check_stream(hStream));
  if (!dptr || !pool)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  return host_unlock_with(alloc_on(dptr, bytesize, pool, hStream));
}


static CUresult free_on(CUdeviceptr address, CUstream stream) {
  CUstream s;
  HOST_TRY(host_stream_open(stream, &s));
  if (!address)
    return CUDA_SUCCESS;
  if (s->capture)
    return host_graph_capture_free(s, address);
  HOST_TRY(host_capture_unsafe());
  CUresult result = host_block_free(address);
  return result == CUDA_ERROR_NOT_FOUND ? host_mempool_free(address, s)
                                        : result;
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
  host_lock();
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS)
    result = host_mempool_new(pool, poolProps->maxSize);
  return host_unlock_with(result);
}


CUresult host_cuMemPoolDestroy(CUmemoryPool pool) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS && !host_mempool_destroy(pool))
    result = CUDA_ERROR_INVALID_VALUE;
  return host_unlock_with(result);
}


CUresult host_cuMemPoolTrimTo(CUmemoryPool pool, size_t minBytesToKeep) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS && !(pool && host_mempool_is_live(pool)))
    result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS)
    host_mempool_shrink(pool, minBytesToKeep);
  return host_unlock_with(result);
}


CUresult host_cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attr,
                                    void *value) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS)
    result = pool && value && host_mempool_is_live(pool)
                 ? host_mempool_set(pool, attr, value)
                 : CUDA_ERROR_INVALID_VALUE;
  return host_unlock_with(result);
}


CUresult host_cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attr,
                                    void *value) {
  HOST_TRY(host_check_release());
  host_lock();
  return host_unlock_with(pool && value && host_mempool_is_live(pool)
                              ? host_mempool_get(pool, attr, value)
                              : CUDA_ERROR_INVALID_VALUE);
}


CUresult host_cuDeviceGetDefaultMemPool(CUmemoryPool *pool_out, CUdevice dev) {
  HOST_TRY(host_check_process());
  if (!pool_out)
    return CUDA_ERROR_INVALID_VALUE;
  *pool_out = host_mempool_builtin();
  return dev == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}


CUresult host_cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev) {
  HOST_TRY(host_check_process());
  if (!pool || dev != 0)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  *pool = host_mempool_current();
  return host_unlock_with(CUDA_SUCCESS);
}


CUresult host_cuDeviceSetMemPool(CUdevice dev, CUmemoryPool pool) {
  HOST_TRY(host_check_process());
  if (dev != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  host_lock();
  bool live = pool && host_mempool_is_live(pool);
  if (live)
    host_mempool_set_current(pool);
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
  host_block_stats stats;
  host_lock();
  host_block_stats_get(&stats);
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
  host_block_trim();
  return host_unlock_with(CUDA_SUCCESS);
}
