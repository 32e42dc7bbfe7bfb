/* Operations: what they own, and how one runs. */
#include "driver/host/memory/copy.h"
#include "driver/host/base/runtime.h"

#include <stdlib.h>
#include <string.h>


/* Where the values begin behind n pointers; malloc aligns the block to 16,
   and no parameter asks for more than the block's own alignment. */
static size_t align_up(size_t at, size_t alignment) {
  return alignment > 1 ? (at + alignment - 1) / alignment * alignment : at;
}


void **host_params_alloc(const cgl_host_kernel *kernel) {
  size_t most = 16, bytes = kernel->nparams * sizeof(void *);
  for (uint32_t i = 0; i < kernel->nparams; i++) {
    if (kernel->param_align[i] > most)
      most = kernel->param_align[i];
    bytes = align_up(bytes, kernel->param_align[i]) + kernel->param_size[i];
  }
  if (!bytes)
    bytes = 1;
  void **params =
      most > 16 ? aligned_alloc(most, align_up(bytes, most)) : malloc(bytes);
  if (!params)
    return NULL;
  size_t at = kernel->nparams * sizeof(void *);
  for (uint32_t i = 0; i < kernel->nparams; i++) {
    at = align_up(at, kernel->param_align[i]);
    params[i] = (char *)params + at;
    at += kernel->param_size[i];
  }
  return params;
}


CUresult host_op_copy(host_op *to, const host_op *from) {
  *to = *from;
  switch (from->kind) {
  case HOST_OP_KERNEL: {
    const cgl_host_kernel *kernel = from->kernel.function->kernel;
    to->kernel.params = host_params_alloc(kernel);
    if (!to->kernel.params)
      return CUDA_ERROR_OUT_OF_MEMORY;
    for (uint32_t i = 0; i < kernel->nparams; i++)
      memcpy(to->kernel.params[i], from->kernel.params[i],
             kernel->param_size[i]);
    host_module_retain(from->kernel.function->module);
    return CUDA_SUCCESS;
  }
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
    free(op->kernel.params);
    host_module_release(op->kernel.function->module);
    break;
  case HOST_OP_EVENT_RECORD:
  case HOST_OP_EVENT_WAIT:
    host_event_release(op->event.event);
    host_fence_release(op->event.fence);
    break;
  case HOST_OP_MEMCPY:
    free(op->memcpy.reserved0); /* a staged source, see copy.c */
    break;
  case HOST_OP_EXEC:
    host_exec_run_release(op->exec);
    break;
  default:
    break;
  }
  op->kind = HOST_OP_EMPTY;
}


/* A record node of a graph: the event takes a fence that is done now. */
static CUresult record_now(CUevent event) {
  host_fence *fence = host_fence_create();
  if (!fence)
    return host_fail(CUDA_ERROR_OUT_OF_MEMORY, "no host memory for a fence");
  host_fence_signal(fence);
  host_lock();
  host_fence *old = event->fence;
  event->fence = fence;
  host_unlock();
  host_fence_release(old);
  return CUDA_SUCCESS;
}


CUresult host_op_run(const host_op *op) {
  switch (op->kind) {
  case HOST_OP_KERNEL:
    return host_kernel_run(&op->kernel);
  case HOST_OP_MEMCPY:
    return host_memcpy_run(&op->memcpy);
  case HOST_OP_MEMSET:
    return host_memset_run(&op->memset);
  case HOST_OP_HOST_FUNCTION:
    host_callback_begin();
    op->host.fn(op->host.userData);
    host_callback_end();
    return CUDA_SUCCESS;
  case HOST_OP_EVENT_RECORD:
    if (!op->event.fence)
      return record_now(op->event.event);
    host_fence_signal(op->event.fence);
    return CUDA_SUCCESS;
  default: /* graph memory is there before its ALLOC runs; EMPTY: nothing */
    return CUDA_SUCCESS;
  }
}
