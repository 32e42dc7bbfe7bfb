/* The driver's calls on virtual memory. */
#include "driver/host/calls/calls.h"
#include "driver/host/memory/memory.h"


static bool is_multiple(size_t n) {
  return n && n % HOST_GRANULARITY == 0;
}


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
  *granularity = HOST_GRANULARITY;
  return CUDA_SUCCESS;
}


CUresult host_cuMemAddressReserve(CUdeviceptr *ptr, size_t size,
                                  size_t alignment, CUdeviceptr addr,
                                  unsigned long long flags) {
  HOST_TRY(host_check_release());
  if (!ptr || !is_multiple(size) || flags || alignment & (alignment - 1) ||
      addr % HOST_GRANULARITY)
    return CUDA_ERROR_INVALID_VALUE;
  if (alignment < HOST_GRANULARITY)
    alignment = HOST_GRANULARITY;
  uintptr_t hint = addr % alignment ? 0 : (uintptr_t)addr;
  host_lock();
  return host_unlock_with(host_virtual_reserve(ptr, size, alignment, hint));
}


CUresult host_cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  HOST_TRY(host_check_release());
  host_lock();
  return host_unlock_with(host_virtual_free((uintptr_t)ptr, size));
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
  host_chunk *chunk = NULL;
  host_lock();
  CUresult result = host_virtual_chunk_new(&chunk, size);
  host_unlock();
  if (result == CUDA_SUCCESS)
    *handle = (CUmemGenericAllocationHandle)(uintptr_t)chunk;
  return result;
}


CUresult host_cuMemRelease(CUmemGenericAllocationHandle handle) {
  HOST_TRY(host_check_release());
  host_lock();
  return host_unlock_with(
      host_virtual_chunk_release((host_chunk *)(uintptr_t)handle));
}


CUresult host_cuMemMap(CUdeviceptr ptr, size_t size, size_t offset,
                       CUmemGenericAllocationHandle handle,
                       unsigned long long flags) {
  HOST_TRY(host_check_release());
  if (ptr % HOST_GRANULARITY || !size || flags)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  return host_unlock_with(host_virtual_map((uintptr_t)ptr, size, offset,
                                           (host_chunk *)(uintptr_t)handle));
}


/* A range without any mapping is fine: there is nothing to do. */
CUresult host_cuMemUnmap(CUdeviceptr ptr, size_t size) {
  HOST_TRY(host_check_release());
  if (ptr % HOST_GRANULARITY || !is_multiple(size))
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  return host_unlock_with(host_virtual_unmap((uintptr_t)ptr, size));
}


CUresult host_cuMemSetAccess(CUdeviceptr ptr, size_t size,
                             const CUmemAccessDesc *desc, size_t count) {
  HOST_TRY(host_check_release());
  if (ptr % HOST_GRANULARITY || !is_multiple(size) || !desc || !count)
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++)
    if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
        desc[i].location.id != 0 ||
        (desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
         desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
         desc[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE))
      return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  return host_unlock_with(
      host_virtual_protect((uintptr_t)ptr, size, desc[count - 1].flags));
}
