/* Launching kernels. */
#include "core/capture.h"
#include "core/memory.h"
#include "core/module.h"

#include <string.h>

static const char operation[] = "kernel:launch";


const char *cgl_kernel_name(const cgl_kernel *kernel) {
  return kernel->name;
}


size_t cgl_kernel_param_count(const cgl_kernel *kernel) {
  return kernel->nparams;
}


cgl_status cgl_kernel_param(const cgl_kernel *kernel, size_t index,
                            cgl_param_info *info) {
  if (index >= kernel->nparams)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "kernel:param",
                    "%s has %zu parameters", kernel->name, kernel->nparams);
  const cgl_signature *signature = kernel->signature;
  *info = (cgl_param_info){"", "", false, false, kernel->sizes[index]};
  if (signature && index < signature->nparameters) {
    const cgl_parameter *p = &signature->parameters[index];
    info->type = p->type;
    info->name = p->name;
    info->pointer = p->pointer;
    info->readonly = p->readonly;
  }
  return CGL_OK;
}


cgl_status cgl_kernel_block_size(cgl_kernel *kernel, uint32_t *block) {
  if (!kernel->block_size) {
    cgl_context *context = kernel->object.context;
    cgl_status status = cgl_context_enter(context, "kernel:over");
    if (status)
      return status;
    int grid, size;
    CUresult result = context->driver->cuOccupancyMaxPotentialBlockSize(
        &grid, &size, kernel->handle, NULL, 0, 0);
    if (result)
      return cgl_fail_driver(context, result, "kernel:over",
                             "cuOccupancyMaxPotentialBlockSize");
    kernel->block_size = size;
  }
  *block = (uint32_t)kernel->block_size;
  return CGL_OK;
}


/* ---- checks before the driver sees a launch -------------------------------
 */

static cgl_status check_shape(const cgl_kernel *kernel,
                              const cgl_launch *launch) {
  static const char axis[] = "xyz";
  const cgl_context *context = kernel->object.context;
  uint64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    threads *= launch->block[i];
    if (launch->block[i] > (uint32_t)context->block_max[i] ||
        launch->grid[i] > (uint32_t)context->grid_max[i]) {
      bool block = launch->block[i] > (uint32_t)context->block_max[i];
      cgl_fail(CUDA_ERROR_INVALID_VALUE, operation,
               "%u %s along %c are more than the device's %d",
               block ? launch->block[i] : launch->grid[i],
               block ? "threads of a block" : "blocks of the grid", axis[i],
               block ? context->block_max[i] : context->grid_max[i]);
      cgl_fail_hint("split the work differently between grid and block");
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (threads > (uint64_t)kernel->max_threads) {
    cgl_fail(CUDA_ERROR_INVALID_VALUE, operation,
             "a block of %llu threads is more than the %d that %s can have",
             (unsigned long long)threads, kernel->max_threads, kernel->name);
    cgl_fail_hint("use smaller blocks and a larger grid");
    return CUDA_ERROR_INVALID_VALUE;
  }
  return CGL_OK;
}


/* More than 48 KiB have to be asked for; the driver is asked once. */
static cgl_status allow_shared(cgl_kernel *kernel, uint32_t bytes) {
  cgl_context *context = kernel->object.context;
  if (bytes <=
      atomic_load_explicit(&kernel->shared_allowed, memory_order_relaxed))
    return CGL_OK;
  if (bytes > (uint32_t)context->shared_max - (uint32_t)kernel->static_shared) {
    cgl_fail(CUDA_ERROR_INVALID_VALUE, operation,
             "%u bytes of dynamic shared memory do not fit the %d of a block "
             "(%s uses %d already)",
             bytes, context->shared_max, kernel->name, kernel->static_shared);
    cgl_fail_hint("use smaller tiles");
    return CUDA_ERROR_INVALID_VALUE;
  }
  CUresult result = context->driver->cuFuncSetAttribute(
      kernel->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
      (int)bytes);
  if (!result)
    atomic_store(&kernel->shared_allowed, bytes);
  return cgl_fail_driver(context, result, operation, "cuFuncSetAttribute");
}


static cgl_status check_count(const cgl_kernel *kernel, size_t nargs) {
  if (nargs == kernel->nparams)
    return CGL_OK;
  cgl_fail(CGL_ERROR_ARGUMENT_COUNT, operation,
           "%s takes %zu argument%s, %zu were given", kernel->name,
           kernel->nparams, kernel->nparams == 1 ? "" : "s", nargs);
  cgl_fail_hint("pass one argument per parameter of the kernel");
  return CGL_ERROR_ARGUMENT_COUNT;
}


/* ---- launching --------------------------------------------------------------
 */

/* The memory an argument reaches, when it is a pointer to ours. */
static bool range_of(const cgl_kernel *kernel, size_t index, const cgl_arg *arg,
                     cgl_range *range) {
  const cgl_signature *signature = kernel->signature;
  bool readonly = signature && index < signature->nparameters &&
                  signature->parameters[index].readonly;
  if (arg->kind == CGL_ARG_BUFFER)
    *range = (cgl_range){arg->buffer->address, cgl_buffer_bytes(arg->buffer),
                         !readonly};
  else if (arg->kind == CGL_ARG_PINNED)
    *range = (cgl_range){(CUdeviceptr)(uintptr_t)arg->pinned->data,
                         arg->pinned->count * cgl_type_bytes(arg->pinned->type),
                         !readonly};
  else
    return false;
  return true;
}


static void note_launch(cgl_kernel *kernel, cgl_stream *stream,
                        const cgl_launch *launch, const cgl_arg *args,
                        size_t nargs, const void *values, size_t bytes) {
  cgl_graph *graph = stream->capture;
  cgl_range ranges[CGL_MAX_PARAMS];
  size_t nranges = 0;
  cgl_capture_keep(graph, &kernel->module->object);
  for (size_t i = 0; i < nargs; i++) {
    if (!range_of(kernel, i, &args[i], &ranges[nranges]))
      continue;
    nranges++;
    cgl_capture_keep(graph, args[i].kind == CGL_ARG_BUFFER
                                ? &args[i].buffer->object
                                : &args[i].pinned->object);
  }
  cgl_note note = {CGL_OP_KERNEL, kernel->name, launch, ranges,
                   nranges,       values,       bytes};
  cgl_capture_note(stream, &note);
}


cgl_status cgl_kernel_launch(cgl_kernel *kernel, cgl_stream *stream,
                             const cgl_launch *wanted, const cgl_arg *args,
                             size_t nargs) {
  cgl_context *context = kernel->object.context;
  cgl_launch launch = *wanted;
  for (int i = 0; i < 3; i++) {
    launch.grid[i] += !launch.grid[i];
    launch.block[i] += !launch.block[i];
  }
  cgl_status status = CGL_OK;
  if (stream->object.context != context)
    status = cgl_check_device(&kernel->object, &stream->object, operation);
  if (!status)
    status = check_count(kernel, nargs);
  if (!status)
    status = check_shape(kernel, &launch);
  if (!status)
    status = cgl_context_enter(context, operation);
  if (!status)
    status = allow_shared(kernel, launch.shared_bytes);
  if (status)
    return status;

  void *params[CGL_MAX_PARAMS];
  _Alignas(16) unsigned char values[CGL_MAX_PARAM_BYTES + 16 * CGL_MAX_PARAMS];
  size_t at = 0;
  for (size_t i = 0; i < nargs; i++) {
    /* Aligned for the host device, which reads a value where it lies. */
    at = (at + 15) & ~(size_t)15;
    params[i] = values + at;
    status = cgl_arg_pack(kernel, i, &args[i], params[i]);
    if (status)
      return status;
    at += kernel->sizes[i];
  }
  status = cgl_capture_reserve(stream, operation, nargs, at, nargs + 1);
  if (status)
    return status;
  CUresult result = context->driver->cuLaunchKernel(
      kernel->handle, launch.grid[0], launch.grid[1], launch.grid[2],
      launch.block[0], launch.block[1], launch.block[2], launch.shared_bytes,
      stream->handle, params, NULL);
  if (result)
    return cgl_capture_failed(stream->capture, result, operation,
                              "cuLaunchKernel", context);
  for (size_t i = 0; i < nargs; i++)
    if (args[i].kind == CGL_ARG_BUFFER)
      cgl_buffer_touch(args[i].buffer, stream);
  if (!stream->capture)
    cgl_trail_add(kernel->name);
  else
    note_launch(kernel, stream, &launch, args, nargs, values, at);
  return CGL_OK;
}
