/* Operations: what they own, and how they run. */
#include "driver/host/stream/stream.h"

#include <stdlib.h>


CUresult host_op_copy(host_op *to, const host_op *from) {
  *to = *from;
  switch (from->kind) {
  case HOST_OP_KERNEL:
    return host_kernel_copy(&to->kernel, &from->kernel);
  case HOST_OP_EVENT_RECORD:
  case HOST_OP_EVENT_WAIT:
    host_event_retain(from->event.event);
    host_fence_retain(from->event.fence);
    return CUDA_SUCCESS;
  default:
    return CUDA_SUCCESS;
  }
}


void host_op_release(host_op *op) {
  switch (op->kind) {
  case HOST_OP_KERNEL:
    host_kernel_release(&op->kernel);
    break;
  case HOST_OP_EVENT_RECORD:
  case HOST_OP_EVENT_WAIT:
    host_event_release(op->event.event);
    host_fence_release(op->event.fence);
    break;
  case HOST_OP_MEMCPY:
    free(op->memcpy.reserved0); /* a staged source, see calls/copy.c */
    break;
  case HOST_OP_EXEC:
    op->launch->release(op->launch);
    break;
  default:
    break;
  }
  op->kind = HOST_OP_EMPTY;
}


CUresult host_op_run(const host_op *op, host_isolation *isolation) {
  switch (op->kind) {
  case HOST_OP_KERNEL:
    return host_kernel_run(&op->kernel, isolation);
  case HOST_OP_MEMCPY:
    return host_move_copy(&op->memcpy, isolation);
  case HOST_OP_MEMSET:
    return host_move_fill(&op->memset, isolation);
  case HOST_OP_HOST_FUNCTION:
    host_callback_begin();
    op->host.fn(op->host.userData);
    host_callback_end();
    return CUDA_SUCCESS;
  case HOST_OP_EVENT_RECORD:
    host_fence_signal(op->event.fence);
    return CUDA_SUCCESS;
  default: /* graph memory is there before its ALLOC runs; EMPTY: nothing */
    return CUDA_SUCCESS;
  }
}
