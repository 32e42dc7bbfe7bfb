/* The driver's calls on streams. */
#include "driver/host/calls/calls.h"
#include "driver/host/graph/graph.h"


CUresult host_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags,
                                         int priority) {
  HOST_TRY(host_check());
  if (!phStream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  *phStream = host_stream_new(flags, host_stream_priority(priority));
  host_unlock();
  return *phStream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}


CUresult host_cuStreamCreate(CUstream *phStream, unsigned int Flags) {
  return host_cuStreamCreateWithPriority(phStream, Flags, 0);
}


CUresult host_cuStreamDestroy(CUstream hStream) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = CUDA_ERROR_INVALID_HANDLE;
  if (host_handle_live(HOST_HANDLE_STREAM, hStream)) {
    host_stream_destroy(hStream);
    result = host_failed();
  }
  return host_unlock_with(result);
}


CUresult host_cuStreamQuery(CUstream hStream) {
  HOST_TRY(host_check_callback_stream(hStream));
  host_lock();
  CUstream s = host_stream_resolve(hStream);
  CUresult result = s ? host_capture_touch(s) : CUDA_ERROR_INVALID_HANDLE;
  if (result == CUDA_SUCCESS)
    result = host_stream_drained(s) ? host_failed_answer(s->isolation)
                                    : CUDA_ERROR_NOT_READY;
  return host_unlock_with(result);
}


CUresult host_cuStreamSynchronize(CUstream hStream) {
  HOST_TRY(host_check_stream(hStream));
  host_lock();
  CUstream s = host_stream_resolve(hStream);
  CUresult result = s ? host_capture_touch(s) : CUDA_ERROR_INVALID_HANDLE;
  if (result == CUDA_SUCCESS) {
    result = host_stream_wait(s);
    host_mempool_sync();
  }
  return host_unlock_with(result);
}


CUresult host_cuStreamWaitEvent(CUstream hStream, CUevent hEvent,
                                unsigned int Flags) {
  HOST_TRY(host_check_callback_stream(hStream));
  if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
    return CUDA_ERROR_INVALID_VALUE;
  CUstream s;
  bool handled = false;
  host_lock();
  CUresult result = host_stream_open(hStream, &s);
  if (result != CUDA_SUCCESS) {
    handled = true;
  } else if (!host_handle_live(HOST_HANDLE_EVENT, hEvent)) {
    host_capture_break(s);
    result = CUDA_ERROR_INVALID_HANDLE;
    handled = true;
  } else {
    result = host_graph_capture_wait(s, hEvent, Flags, &handled);
  }
  if (!handled && hEvent->fence && !host_fence_done(hEvent->fence)) {
    host_op op = {.kind = HOST_OP_EVENT_WAIT};
    op.event.fence = host_fence_retain(hEvent->fence);
    result = host_stream_enqueue(s, &op);
  }
  return host_unlock_with(result);
}


CUresult host_cuStreamGetFlags(CUstream hStream, unsigned int *flags) {
  HOST_TRY(host_check_callback_stream(hStream));
  if (!flags)
    return CUDA_ERROR_INVALID_VALUE;
  CUstream s;
  host_lock();
  CUresult result = host_stream_open(hStream, &s);
  if (result == CUDA_SUCCESS)
    *flags = s->flags;
  return host_unlock_with(result);
}


CUresult host_cuStreamGetPriority(CUstream hStream, int *priority) {
  HOST_TRY(host_check_callback_stream(hStream));
  if (!priority)
    return CUDA_ERROR_INVALID_VALUE;
  CUstream s;
  host_lock();
  CUresult result = host_stream_open(hStream, &s);
  if (result == CUDA_SUCCESS)
    *priority = s->priority;
  return host_unlock_with(result);
}


static CUresult stream_submit(CUstream stream, host_op *op) {
  CUstream s;
  host_lock();
  CUresult result = host_stream_open(stream, &s);
  if (result == CUDA_SUCCESS)
    result = host_graph_submit(s, op);
  host_stream_unlock(result == CUDA_SUCCESS ? host_stream_full(s) : NULL);
  return result;
}


CUresult host_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData) {
  HOST_TRY(host_check_callback_stream(hStream));
  if (!fn)
    return CUDA_ERROR_INVALID_VALUE;
  host_op op = {.kind = HOST_OP_HOST_FUNCTION};
  op.host.fn = fn;
  op.host.userData = userData;
  return stream_submit(hStream, &op);
}


CUresult host_cuStreamAddCallback(CUstream hStream, CUstreamCallback callback,
                                  void *userData, unsigned int flags) {
  HOST_TRY(host_check_stream(hStream));
  if (!callback || flags)
    return CUDA_ERROR_INVALID_VALUE;
  host_op op = {.kind = HOST_OP_CALLBACK};
  op.callback.call = callback;
  op.callback.user = userData;
  op.callback.stream = hStream;
  return stream_submit(hStream, &op);
}
