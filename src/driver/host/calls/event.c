/* The driver's calls on events. */
#include "driver/host/calls/calls.h"
#include "driver/host/graph/graph.h"


CUresult host_cuEventCreate(CUevent *phEvent, unsigned int Flags) {
  HOST_TRY(host_check());
  unsigned known =
      CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!phEvent || Flags & ~known)
    return CUDA_ERROR_INVALID_VALUE;
  if (Flags & CU_EVENT_INTERPROCESS && !(Flags & CU_EVENT_DISABLE_TIMING))
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  *phEvent = host_event_new(Flags);
  host_unlock();
  return *phEvent ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}


CUresult host_cuEventDestroy(CUevent hEvent) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = CUDA_ERROR_INVALID_HANDLE;
  if (host_handle_live(HOST_HANDLE_EVENT, hEvent)) {
    host_event_destroy(hEvent);
    result = host_failed();
  }
  return host_unlock_with(result);
}


static CUresult event_record(CUevent event, CUstream stream) {
  host_fence *fence = host_fence_create();
  if (!fence)
    return CUDA_ERROR_OUT_OF_MEMORY;
  host_op op = {.kind = HOST_OP_EVENT_RECORD};
  op.event.fence = host_fence_retain(fence);
  CUresult result = host_graph_submit(stream, &op);
  if (result != CUDA_SUCCESS) {
    host_fence_release(fence);
    return result;
  }
  host_fence_release(event->fence);
  event->fence = fence;
  return CUDA_SUCCESS;
}


CUresult host_cuEventRecordWithFlags(CUevent hEvent, CUstream hStream,
                                     unsigned int flags) {
  HOST_TRY(host_check_callback_stream(hStream));
  if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
    return CUDA_ERROR_INVALID_VALUE;
  CUstream s;
  bool handled = true;
  host_lock();
  CUresult result = host_stream_open(hStream, &s);
  if (result == CUDA_SUCCESS && !host_handle_live(HOST_HANDLE_EVENT, hEvent))
    result = CUDA_ERROR_INVALID_HANDLE;
  if (result == CUDA_SUCCESS) {
    handled = false;
    result = host_graph_capture_record(hEvent, s, flags, &handled);
  }
  if (!handled)
    result = event_record(hEvent, s);
  return host_unlock_with(result);
}


CUresult host_cuEventRecord(CUevent hEvent, CUstream hStream) {
  return host_cuEventRecordWithFlags(hEvent, hStream, 0);
}


/* What query and synchronize ask first, under host_lock. */
static CUresult event_touch(CUevent event) {
  if (!host_handle_live(HOST_HANDLE_EVENT, event))
    return CUDA_ERROR_INVALID_HANDLE;
  HOST_TRY(host_capture_check_event(event, true));
  return host_capture_unsafe();
}


CUresult host_cuEventQuery(CUevent hEvent) {
  HOST_TRY(host_check_callback());
  host_lock();
  CUresult result = event_touch(hEvent);
  if (result == CUDA_SUCCESS)
    result = hEvent->fence && !host_fence_done(hEvent->fence)
                 ? CUDA_ERROR_NOT_READY
                 : host_failed();
  return host_unlock_with(result);
}


CUresult host_cuEventSynchronize(CUevent hEvent) {
  HOST_TRY(host_check_object());
  host_lock();
  CUresult result = event_touch(hEvent);
  host_fence *fence =
      result == CUDA_SUCCESS ? host_fence_retain(hEvent->fence) : NULL;
  host_unlock();
  if (fence) {
    host_fence_wait(fence);
    host_fence_release(fence);
    host_lock();
    host_mempool_sync();
    host_unlock();
  }
  return result == CUDA_SUCCESS ? host_failed() : result;
}


static CUresult event_elapsed(float *ms, CUevent start, CUevent end) {
  if (!host_handle_live(HOST_HANDLE_EVENT, start) ||
      !host_handle_live(HOST_HANDLE_EVENT, end))
    return CUDA_ERROR_INVALID_HANDLE;
  HOST_TRY(host_capture_check_event(start, false));
  HOST_TRY(host_capture_check_event(end, false));
  if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING || !start->fence ||
      !end->fence)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!host_fence_done(start->fence) || !host_fence_done(end->fence))
    return CUDA_ERROR_NOT_READY;
  int64_t ns =
      (int64_t)(host_fence_time(end->fence) - host_fence_time(start->fence));
  *ms = (float)((double)ns * 1e-6);
  return CUDA_SUCCESS;
}


CUresult host_cuEventElapsedTime(float *pMilliseconds, CUevent hStart,
                                 CUevent hEnd) {
  HOST_TRY(host_check_object());
  if (!pMilliseconds)
    return CUDA_ERROR_INVALID_HANDLE; /* as the real one says */
  host_lock();
  return host_unlock_with(event_elapsed(pMilliseconds, hStart, hEnd));
}
