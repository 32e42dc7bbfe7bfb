/* The driver's calls on the primary context. */
#include "driver/host/calls/calls.h"
#include "driver/host/graph/graph.h"


CUresult host_cuInit(unsigned int Flags) {
  if (Flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (host_stopping())
    return CUDA_ERROR_DEINITIALIZED;
  return host_context_initialize();
}


CUresult host_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
  HOST_TRY(host_check_process());
  if (!pctx)
    return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  host_lock();
  return host_unlock_with(host_context_retain(pctx));
}


/* Everything that belongs to the context goes, oldest users first. */
static void end_context(void) {
  host_stream_wait_all();
  host_stream_reset();
  host_event_reset();
  host_module_reset();
  host_mempool_reset();
  host_virtual_reset();
  for (host_range *r = host_range_next(NULL), *next; r; r = next) {
    next = host_range_next(r);
    if (r->kind != HOST_RANGE_GRAPH)
      host_memory_drop(r);
  }
}


CUresult host_cuDevicePrimaryCtxRelease(CUdevice dev) {
  HOST_TRY(host_check_process());
  if (dev != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  host_lock();
  bool ended;
  CUresult result = host_context_release(&ended);
  if (ended)
    end_context();
  return host_unlock_with(result);
}


/* The objects and the sticky error go; who retains the context keeps it. */
CUresult host_cuDevicePrimaryCtxReset(CUdevice dev) {
  HOST_TRY(host_check_process());
  if (dev != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  host_lock();
  if (host_context_is_active())
    end_context();
  host_context_reset();
  host_watch_reset();
  host_unlock();
  return CUDA_SUCCESS;
}


CUresult host_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags,
                                         int *active) {
  HOST_TRY(host_check_process());
  if (dev != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!flags || !active)
    return CUDA_ERROR_INVALID_VALUE;
  *flags = 0;
  *active = host_context_is_active();
  return CUDA_SUCCESS;
}


CUresult host_cuCtxSetCurrent(CUcontext ctx) {
  HOST_TRY(host_check_process());
  if (ctx && ctx != host_context())
    return CUDA_ERROR_INVALID_CONTEXT;
  host_context_set_current(ctx);
  return CUDA_SUCCESS;
}


CUresult host_cuCtxGetCurrent(CUcontext *pctx) {
  HOST_TRY(host_check_process());
  if (!pctx)
    return CUDA_ERROR_INVALID_VALUE;
  *pctx = host_context_current();
  return CUDA_SUCCESS;
}


CUresult host_cuCtxGetDevice(CUdevice *device) {
  HOST_TRY(host_check_process());
  if (!host_context_current())
    return CUDA_ERROR_INVALID_CONTEXT;
  if (!device)
    return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return CUDA_SUCCESS;
}


CUresult host_cuCtxSynchronize(void) {
  HOST_TRY(host_check());
  host_lock();
  CUresult result = host_capture_touch_all();
  if (result == CUDA_SUCCESS) {
    host_stream_wait_all();
    host_mempool_sync();
    result = host_failed();
  }
  return host_unlock_with(result);
}


CUresult host_cuCtxGetStreamPriorityRange(int *leastPriority,
                                          int *greatestPriority) {
  HOST_TRY(host_check());
  if (leastPriority)
    *leastPriority = 0;
  if (greatestPriority)
    *greatestPriority = HOST_GREATEST_PRIORITY;
  return CUDA_SUCCESS;
}
