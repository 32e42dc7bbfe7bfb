/* The driver's copies and fills.
   Host memory that the device was not told of is pageable: as on a GPU a copy
   from it has read it, and a copy to it is complete, when the call returns. */
#include "driver/host/calls/calls.h"
#include "driver/host/graph/graph.h"

#include <stdlib.h>
#include <string.h>

enum { STAGE_BYTES = 1 << 20 };


/* Lets the op read a copy of its pageable source; false: no memory. */
static bool copy_stage(host_op *op) {
  CUDA_MEMCPY3D *c = &op->memcpy;
  const char *from = (const char *)c->srcHost + c->srcXInBytes;
  void *copy = malloc(c->WidthInBytes);
  if (!copy)
    return false;
  memcpy(copy, from, c->WidthInBytes);
  c->reserved0 = copy;
  c->srcHost = copy;
  c->srcXInBytes = 0;
  return true;
}


/* Under host_lock: a copy on a stream, asynchronous as far as the kinds of
   memory allow. */
static CUresult copy_on(CUstream stream, const CUDA_MEMCPY3D *copy) {
  CUstream s;
  HOST_TRY(host_stream_open(stream, &s));
  if (!copy->WidthInBytes || !copy->Height || !copy->Depth)
    return CUDA_SUCCESS;
  host_op op;
  if (s->capture) {
    HOST_TRY(host_copy_make_node(&op, copy));
    return host_graph_submit(s, &op);
  }
  host_place from, to;
  HOST_TRY(host_copy_make(&op, copy, &from, &to));
  bool wait = to == HOST_PLACE_PAGEABLE;
  if (from == HOST_PLACE_PAGEABLE && !wait)
    wait = copy->Height > 1 || copy->Depth > 1 || copy->srcY || copy->srcZ ||
           copy->WidthInBytes > STAGE_BYTES || !copy_stage(&op);
  HOST_TRY(host_graph_submit(s, &op));
  return wait ? host_stream_wait(s) : CUDA_SUCCESS;
}


static CUresult copy_async(CUstream stream, CUDA_MEMCPY3D copy) {
  HOST_TRY(host_check_stream(stream));
  host_lock();
  CUresult result = copy_on(stream, &copy);
  CUstream s = result == CUDA_SUCCESS ? host_stream_resolve(stream) : NULL;
  host_stream_unlock(s ? host_stream_full(s) : NULL);
  return result;
}


/* The synchronous calls: on the legacy stream, even while it cannot be seen
   to; a capture in a blocking stream forbids them. */
static CUresult copy_sync(CUDA_MEMCPY3D copy) {
  HOST_TRY(host_check());
  host_lock();
  CUresult result = copy_on(CU_STREAM_LEGACY, &copy);
  if (result == CUDA_SUCCESS)
    result = host_stream_wait(host_stream_resolve(CU_STREAM_LEGACY));
  return host_unlock_with(result);
}


static CUDA_MEMCPY3D copy_flat(CUmemorytype dst_type, CUdeviceptr dst,
                               CUmemorytype src_type, CUdeviceptr src,
                               size_t bytes) {
  return (CUDA_MEMCPY3D){.srcMemoryType = src_type,
                         .srcHost = host_pointer(src),
                         .srcDevice = src,
                         .dstMemoryType = dst_type,
                         .dstHost = host_pointer(dst),
                         .dstDevice = dst,
                         .WidthInBytes = bytes,
                         .Height = 1,
                         .Depth = 1};
}


static CUDA_MEMCPY3D copy_to_device(CUdeviceptr dst, const void *src,
                                    size_t bytes) {
  return copy_flat(CU_MEMORYTYPE_DEVICE, dst, CU_MEMORYTYPE_HOST,
                   (CUdeviceptr)(uintptr_t)src, bytes);
}


static CUDA_MEMCPY3D copy_to_host(void *dst, CUdeviceptr src, size_t bytes) {
  return copy_flat(CU_MEMORYTYPE_HOST, (CUdeviceptr)(uintptr_t)dst,
                   CU_MEMORYTYPE_DEVICE, src, bytes);
}


CUresult host_cuMemcpyHtoD(CUdeviceptr dstDevice, const void *srcHost,
                           size_t ByteCount) {
  return copy_sync(copy_to_device(dstDevice, srcHost, ByteCount));
}


CUresult host_cuMemcpyDtoH(void *dstHost, CUdeviceptr srcDevice,
                           size_t ByteCount) {
  return copy_sync(copy_to_host(dstHost, srcDevice, ByteCount));
}


CUresult host_cuMemcpyDtoD(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                           size_t ByteCount) {
  return copy_sync(copy_flat(CU_MEMORYTYPE_DEVICE, dstDevice,
                             CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount));
}


CUresult host_cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t ByteCount,
                            CUstream hStream) {
  return copy_async(hStream, copy_flat(CU_MEMORYTYPE_UNIFIED, dst,
                                       CU_MEMORYTYPE_UNIFIED, src, ByteCount));
}


CUresult host_cuMemcpyHtoDAsync(CUdeviceptr dstDevice, const void *srcHost,
                                size_t ByteCount, CUstream hStream) {
  return copy_async(hStream, copy_to_device(dstDevice, srcHost, ByteCount));
}


CUresult host_cuMemcpyDtoHAsync(void *dstHost, CUdeviceptr srcDevice,
                                size_t ByteCount, CUstream hStream) {
  return copy_async(hStream, copy_to_host(dstHost, srcDevice, ByteCount));
}


CUresult host_cuMemcpyDtoDAsync(CUdeviceptr dstDevice, CUdeviceptr srcDevice,
                                size_t ByteCount, CUstream hStream) {
  return copy_async(hStream,
                    copy_flat(CU_MEMORYTYPE_DEVICE, dstDevice,
                              CU_MEMORYTYPE_DEVICE, srcDevice, ByteCount));
}


CUresult host_cuMemcpy2DAsync(const CUDA_MEMCPY2D *pCopy, CUstream hStream) {
  if (!pCopy)
    return CUDA_ERROR_INVALID_VALUE;
  CUDA_MEMCPY3D c = {.srcXInBytes = pCopy->srcXInBytes,
                     .srcY = pCopy->srcY,
                     .srcMemoryType = pCopy->srcMemoryType,
                     .srcHost = pCopy->srcHost,
                     .srcDevice = pCopy->srcDevice,
                     .srcPitch = pCopy->srcPitch,
                     .dstXInBytes = pCopy->dstXInBytes,
                     .dstY = pCopy->dstY,
                     .dstMemoryType = pCopy->dstMemoryType,
                     .dstHost = pCopy->dstHost,
                     .dstDevice = pCopy->dstDevice,
                     .dstPitch = pCopy->dstPitch,
                     .WidthInBytes = pCopy->WidthInBytes,
                     .Height = pCopy->Height,
                     .Depth = 1};
  return copy_async(hStream, c);
}


CUresult host_cuMemcpy3DAsync(const CUDA_MEMCPY3D *pCopy, CUstream hStream) {
  if (!pCopy)
    return CUDA_ERROR_INVALID_VALUE;
  return copy_async(hStream, *pCopy);
}


static CUresult fill_on(CUdeviceptr dst, size_t pitch, unsigned value,
                        unsigned size, size_t width, size_t height,
                        CUstream stream, bool sync) {
  HOST_TRY(sync ? host_check() : host_check_callback_stream(stream));
  CUDA_MEMSET_NODE_PARAMS set = {dst, pitch, value, size, width, height};
  host_op op;
  CUstream s;
  host_lock();
  CUresult result = host_stream_open(stream, &s);
  if (result == CUDA_SUCCESS && width && height) {
    result = host_fill_make(&op, &set, s->capture);
    if (result == CUDA_SUCCESS)
      result = host_graph_submit(s, &op);
    if (result == CUDA_SUCCESS && sync)
      result = host_stream_wait(s);
  }
  host_stream_unlock(result == CUDA_SUCCESS ? host_stream_full(s) : NULL);
  return result;
}


CUresult host_cuMemsetD8Async(CUdeviceptr dstDevice, unsigned char uc, size_t N,
                              CUstream hStream) {
  return fill_on(dstDevice, 0, uc, 1, N, 1, hStream, false);
}


CUresult host_cuMemsetD16Async(CUdeviceptr dstDevice, unsigned short us,
                               size_t N, CUstream hStream) {
  return fill_on(dstDevice, 0, us, 2, N, 1, hStream, false);
}


CUresult host_cuMemsetD32Async(CUdeviceptr dstDevice, unsigned int ui, size_t N,
                               CUstream hStream) {
  return fill_on(dstDevice, 0, ui, 4, N, 1, hStream, false);
}


CUresult host_cuMemsetD2D32Async(CUdeviceptr dstDevice, size_t dstPitch,
                                 unsigned int ui, size_t Width, size_t Height,
                                 CUstream hStream) {
  return fill_on(dstDevice, dstPitch, ui, 4, Width, Height, hStream, false);
}


CUresult host_cuMemsetD2D8Async(CUdeviceptr dstDevice, size_t dstPitch,
                                unsigned char uc, size_t Width, size_t Height,
                                CUstream hStream) {
  return fill_on(dstDevice, dstPitch, uc, 1, Width, Height, hStream, false);
}


CUresult host_cuMemsetD8(CUdeviceptr dstDevice, unsigned char uc, size_t N) {
  return fill_on(dstDevice, 0, uc, 1, N, 1, CU_STREAM_LEGACY, true);
}


CUresult host_cuMemsetD32(CUdeviceptr dstDevice, unsigned int ui, size_t N) {
  return fill_on(dstDevice, 0, ui, 4, N, 1, CU_STREAM_LEGACY, true);
}
