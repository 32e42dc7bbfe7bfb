/* The driver's calls on memory: allocation, pinned memory, pointers. */
#include "driver/host/calls/calls.h"
#include "driver/host/graph/graph.h"


CUresult host_cuMemGetInfo(size_t *free, size_t *total) {
  HOST_TRY(host_check());
  host_lock();
  if (total)
    *total = host_device_memory();
  if (free)
    *free = host_device_memory() - host_memory_used();
  return host_unlock_with(CUDA_SUCCESS);
}


CUresult host_cuMemAlloc(CUdeviceptr *dptr, size_t bytesize) {
  HOST_TRY(host_check());
  if (!dptr)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS)
    result = host_memory_alloc(dptr, bytesize);
  return host_unlock_with(result);
}


/* Frees what cuMemAlloc and the pools gave, after all work of the device. */
static CUresult memory_free(CUdeviceptr address) {
  CUresult result = host_block_free(address);
  if (result != CUDA_ERROR_NOT_FOUND)
    return result;
  host_range *r = host_range_find((uintptr_t)address);
  if (!r || r->start != address || r->dying || r->freed ||
      (r->kind != HOST_RANGE_ALLOC && r->kind != HOST_RANGE_POOL))
    return CUDA_ERROR_INVALID_VALUE;
  host_memory_drop_later(r);
  return CUDA_SUCCESS;
}


CUresult host_cuMemFree(CUdeviceptr dptr) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = host_capture_unsafe();
  if (result == CUDA_SUCCESS && dptr)
    result = memory_free(dptr);
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
  return host_unlock_with(result);
}


CUresult host_cuMemAllocHost(void **pp, size_t bytesize) {
  return host_cuMemHostAlloc(pp, bytesize, 0);
}


/* The range of `kind` that starts at p, if it is not going already. */
static host_range *pinned_find(const void *p, host_range_kind kind) {
  host_range *r = host_range_find((uintptr_t)p);
  return r && r->start == (uintptr_t)p && r->kind == kind && !r->dying ? r
                                                                       : NULL;
}


CUresult host_cuMemFreeHost(void *p) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = host_capture_unsafe();
  host_range *r = p ? pinned_find(p, HOST_RANGE_PINNED) : NULL;
  if (result == CUDA_SUCCESS && p && !r)
    result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS && r)
    host_memory_drop_later(r);
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
  return host_unlock_with(result);
}


CUresult host_cuMemHostUnregister(void *p) {
  HOST_TRY(host_check_release());
  if (!p)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUresult result = host_capture_unsafe();
  host_range *r = pinned_find(p, HOST_RANGE_REGISTERED);
  const host_range *around = host_range_find((uintptr_t)p);
  if (result == CUDA_SUCCESS && !r)
    result = around ? CUDA_ERROR_INVALID_VALUE
                    : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  if (result == CUDA_SUCCESS)
    host_memory_drop_later(r);
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


static CUresult pointer_attribute(void *data, CUpointer_attribute attribute,
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
  return host_unlock_with(r && !r->dying && !r->freed
                              ? pointer_attribute(data, attribute, r, ptr)
                              : CUDA_ERROR_INVALID_VALUE);
}
