/* Events: the fence of the last record, by name. */
#include "driver/host/base/runtime.h"

#include <stdlib.h>


void host_event_retain(CUevent event) {
  if (event)
    atomic_fetch_add_explicit(&event->refs, 1, memory_order_relaxed);
}


void host_event_release(CUevent event) {
  if (!event ||
      atomic_fetch_sub_explicit(&event->refs, 1, memory_order_acq_rel) != 1)
    return;
  host_fence_release(event->fence);
  free(event->deps);
  free(event);
}


/* The handle is gone; ops that name the event keep it. */
static void destroy(void *handle) {
  CUevent event = handle;
  host_capture_forget_event(event);
  host_handle_remove(HOST_HANDLE_EVENT, event);
  host_event_release(event);
}


void host_event_reset(void) {
  host_handle_each(HOST_HANDLE_EVENT, destroy);
}


CUresult host_cuEventCreate(CUevent *phEvent, unsigned int Flags) {
  HOST_TRY(host_check());
  unsigned known =
      CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;
  if (!phEvent || Flags & ~known)
    return CUDA_ERROR_INVALID_VALUE;
  if (Flags & CU_EVENT_INTERPROCESS && !(Flags & CU_EVENT_DISABLE_TIMING))
    return CUDA_ERROR_INVALID_VALUE;
  CUevent event = calloc(1, sizeof *event);
  if (!event)
    return CUDA_ERROR_OUT_OF_MEMORY;
  atomic_init(&event->refs, 1);
  event->flags = Flags;
  host_lock();
  bool added = host_handle_add(HOST_HANDLE_EVENT, event);
  host_unlock();
  if (!added) {
    free(event);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *phEvent = event;
  return CUDA_SUCCESS;
}


CUresult host_cuEventDestroy(CUevent hEvent) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = CUDA_ERROR_INVALID_HANDLE;
  if (host_handle_live(HOST_HANDLE_EVENT, hEvent)) {
    destroy(hEvent);
    result = host_failed();
  }
  host_unlock();
  return result;
}


static CUresult record(CUevent event, CUstream stream) {
  host_fence *fence = host_fence_create();
  if (!fence)
    return CUDA_ERROR_OUT_OF_MEMORY;
  host_op op = {.kind = HOST_OP_EVENT_RECORD};
  op.event.fence = host_fence_retain(fence);
  CUresult result = host_submit(stream, &op);
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
    result = host_capture_record(hEvent, s, flags, &handled);
  }
  if (!handled)
    result = record(hEvent, s);
  host_unlock();
  return result;
}


CUresult host_cuEventRecord(CUevent hEvent, CUstream hStream) {
  return host_cuEventRecordWithFlags(hEvent, hStream, 0);
}


/* What query and synchronize ask first, under host_lock. */
static CUresult touch(CUevent event) {
  if (!host_handle_live(HOST_HANDLE_EVENT, event))
    return CUDA_ERROR_INVALID_HANDLE;
  HOST_TRY(host_capture_event_check(event, true));
  return host_capture_unsafe();
}


CUresult host_cuEventQuery(CUevent hEvent) {
  HOST_TRY(host_check_callback());
  host_lock();
  CUresult result = touch(hEvent);
  if (result == CUDA_SUCCESS)
    result = hEvent->fence && !host_fence_done(hEvent->fence)
                 ? CUDA_ERROR_NOT_READY
                 : host_failed();
  host_unlock();
  return result;
}


CUresult host_cuEventSynchronize(CUevent hEvent) {
  HOST_TRY(host_check_object());
  host_lock();
  CUresult result = touch(hEvent);
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


static CUresult elapsed(float *ms, CUevent start, CUevent end) {
  if (!host_handle_live(HOST_HANDLE_EVENT, start) ||
      !host_handle_live(HOST_HANDLE_EVENT, end))
    return CUDA_ERROR_INVALID_HANDLE;
  HOST_TRY(host_capture_event_check(start, false));
  HOST_TRY(host_capture_event_check(end, false));
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
  CUresult result = elapsed(pMilliseconds, hStart, hEnd);
  host_unlock();
  return result;
}
