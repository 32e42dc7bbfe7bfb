/* Launching kernels. */
#include "core/record/record.h"
#include "core/random/random.h"
#include "core/memory/memory.h"
#include "core/module/module.h"
#include "core/sharing/sharing.h"

#include <string.h>

static const char launching[] = "kernel:launch";


const char *cgl_kernel_name(const cgl_kernel *kernel) {
  return kernel->name;
}


size_t cgl_kernel_param_count(const cgl_kernel *kernel) {
  return kernel->nparams;
}


cgl_status cgl_kernel_param(const cgl_kernel *kernel, size_t index,
                            cgl_param_info *info) {
  if (index >= kernel->nparams) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "kernel:param",
             "%s has %zu parameters", kernel->name, kernel->nparams);
    return cgl_fail_hint("they are numbered from 0");
  }
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


/* ---- checks before the driver sees a launch ---- */

static cgl_status wrong_extent(const cgl_kernel *kernel,
                               const cgl_launch *launch,
                               const char *operation) {
  static const char axis[] = "xyz";
  const cgl_context *context = kernel->object.context;
  for (int i = 0; i < 3; i++) {
    bool block = launch->block[i] > (uint32_t)context->block_max[i];
    if (!block && launch->grid[i] <= (uint32_t)context->grid_max[i])
      continue;
    cgl_fail(CUDA_ERROR_INVALID_VALUE, operation,
             "%u %s along %c are more than the device's %d",
             block ? launch->block[i] : launch->grid[i],
             block ? "threads of a block" : "blocks of the grid", axis[i],
             block ? context->block_max[i] : context->grid_max[i]);
    break;
  }
  return cgl_fail_hint("split the work differently between grid and block");
}


static cgl_status check_shape(const cgl_kernel *kernel,
                              const cgl_launch *launch, const char *operation) {
  const int *block_max = kernel->object.context->block_max;
  const int *grid_max = kernel->object.context->grid_max;
  const uint32_t *grid = launch->grid, *block = launch->block;
  if (block[0] > (uint32_t)block_max[0] || block[1] > (uint32_t)block_max[1] ||
      block[2] > (uint32_t)block_max[2] || grid[0] > (uint32_t)grid_max[0] ||
      grid[1] > (uint32_t)grid_max[1] || grid[2] > (uint32_t)grid_max[2])
    return wrong_extent(kernel, launch, operation);
  uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
  if (threads > (uint64_t)kernel->max_threads) {
    cgl_fail(CUDA_ERROR_INVALID_VALUE, operation,
             "a block of %llu threads is more than the %d that %s can have",
             (unsigned long long)threads, kernel->max_threads, kernel->name);
    return cgl_fail_hint("use smaller blocks and a larger grid");
  }
  return CGL_OK;
}


/* More than 48 KiB have to be asked for; the driver is asked once. */
static cgl_status allow_shared(cgl_kernel *kernel, uint32_t bytes,
                               const char *operation) {
  cgl_context *context = kernel->object.context;
  if (bytes <=
      atomic_load_explicit(&kernel->shared_allowed, memory_order_relaxed))
    return CGL_OK;
  if (bytes > (uint32_t)context->shared_max - (uint32_t)kernel->static_shared) {
    cgl_fail(CUDA_ERROR_INVALID_VALUE, operation,
             "%u bytes of dynamic shared memory do not fit the %d of a block "
             "(%s uses %d already)",
             bytes, context->shared_max, kernel->name, kernel->static_shared);
    return cgl_fail_hint("use smaller tiles");
  }
  CUresult result = context->driver->cuFuncSetAttribute(
      kernel->handle, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
      (int)bytes);
  if (!result)
    atomic_store(&kernel->shared_allowed, bytes);
  return cgl_fail_driver(context, result, operation, "cuFuncSetAttribute");
}


static cgl_status check_count(const cgl_kernel *kernel, size_t nargs,
                              const char *operation) {
  if (nargs == kernel->nparams)
    return CGL_OK;
  cgl_fail(CGL_ERROR_ARGUMENT_COUNT, operation,
           "%s takes %zu argument%s, %zu were given", kernel->name,
           kernel->nparams, kernel->nparams == 1 ? "" : "s", nargs);
  return cgl_fail_hint("pass one argument per parameter of the kernel");
}


static uint32_t at_least_one(uint32_t extent) {
  return extent ? extent : 1;
}


cgl_launch cgl_launch_resolve(const cgl_launch *wanted) {
  const uint32_t *grid = wanted->grid, *block = wanted->block;
  return (cgl_launch){
      {at_least_one(grid[0]), at_least_one(grid[1]), at_least_one(grid[2])},
      {at_least_one(block[0]), at_least_one(block[1]), at_least_one(block[2])},
      wanted->shared_bytes};
}


cgl_status cgl_kernel_check(cgl_kernel *kernel, const cgl_launch *launch,
                            size_t nargs, const char *operation) {
  cgl_status status = check_count(kernel, nargs, operation);
  if (!status)
    status = check_shape(kernel, launch, operation);
  if (!status)
    status = cgl_context_enter(kernel->object.context, operation);
  return status ? status
                : allow_shared(kernel, launch->shared_bytes, operation);
}


/* ---- launching ---- */

bool cgl_arg_reaches(const cgl_arg *arg, cgl_range *range) {
  *range = (cgl_range){0};
  if (arg->kind == CGL_ARG_BUFFER) {
    range->address = arg->buffer->address;
    range->bytes = cgl_buffer_bytes(arg->buffer);
  } else if (arg->kind == CGL_ARG_PINNED) {
    range->address = (CUdeviceptr)(uintptr_t)arg->pinned->data;
    range->bytes = arg->pinned->count * cgl_type_bytes(arg->pinned->type);
  } else
    return false;
  return true;
}


bool cgl_kernel_reaches(const cgl_kernel *kernel, size_t index,
                        const cgl_arg *arg, cgl_range *range) {
  const cgl_signature *signature = kernel->signature;
  bool readonly = signature && index < signature->nparameters &&
                  signature->parameters[index].readonly;
  if (!cgl_arg_reaches(arg, range))
    return false;
  range->write = !readonly;
  range->argument = (uint16_t)index;
  return true;
}


/* The values are in the recording already: see place_of_values. */
static void note_launch(cgl_kernel *kernel, cgl_stream *stream,
                        const cgl_launch *launch, const cgl_arg *args,
                        size_t nargs, size_t bytes) {
  cgl_graph *graph = stream->capture;
  cgl_recording *recording = &graph->recording;
  cgl_note note = {.kind = CGL_OP_KERNEL, .name = kernel->name};
  note.launch = launch;
  note.kernel = kernel;
  note.nargs = bytes;
  cgl_capture_keep(graph, &kernel->object);
  for (size_t i = 0; i < nargs; i++) {
    if (args[i].kind != CGL_ARG_BUFFER && args[i].kind != CGL_ARG_PINNED)
      continue;
    cgl_range *range = &recording->ranges[recording->nranges + note.nranges];
    cgl_kernel_reaches(kernel, i, &args[i], range);
    note.nranges++;
    if (args[i].kind == CGL_ARG_BUFFER) {
      cgl_buffer_touch(args[i].buffer, stream);
      range->planned = cgl_capture_keep(graph, &args[i].buffer->object);
    } else
      cgl_capture_keep(graph, &args[i].pinned->object);
  }
  cgl_capture_note(stream, &note);
}


/* Before an eager launch, when graphs share pools: what it reads is there. */
static cgl_status check_reads(const cgl_kernel *kernel, const cgl_arg *args,
                              size_t nargs) {
  cgl_status status = CGL_OK;
  cgl_range range;
  for (size_t i = 0; i < nargs && !status; i++)
    if (args[i].kind == CGL_ARG_BUFFER &&
        cgl_kernel_reaches(kernel, i, &args[i], &range) && !range.write)
      status = cgl_share_check_read(args[i].buffer, launching);
  return status;
}


static void note_eager(cgl_kernel *kernel, cgl_stream *stream,
                       const cgl_arg *args, size_t nargs) {
  cgl_range range;
  for (size_t i = 0; i < nargs; i++) {
    if (args[i].kind != CGL_ARG_BUFFER)
      continue;
    cgl_buffer_touch(args[i].buffer, stream);
    if (cgl_share_watched(args[i].buffer) &&
        cgl_kernel_reaches(kernel, i, &args[i], &range) && range.write)
      cgl_share_wrote(args[i].buffer);
  }
  cgl_trail_add(kernel->name);
}


/* Where the values of a launch go: into the recording of a capture, which
   keeps them when the driver takes the launch, else into `own`; NULL without
   memory. */
static unsigned char *place_of_values(const cgl_kernel *kernel,
                                      cgl_stream *stream, unsigned char *own) {
  if (!stream->capture)
    return own;
  if (cgl_capture_reserve(stream, launching, kernel->nparams,
                          kernel->values_bytes, kernel->nparams + 1))
    return NULL;
  cgl_recording *recording = &stream->capture->recording;
  recording->nargs = cgl_value_next(recording->nargs);
  return recording->args + recording->nargs;
}


/* Argument `index` is a generator: the number that the launch takes. */
static cgl_status begin_draw(const cgl_arg *args, size_t index,
                             cgl_stream *stream, void *value) {
  cgl_philox philox;
  size_t before = 0;
  for (size_t i = 0; i < index; i++)
    before += args[i].kind == CGL_ARG_GENERATOR &&
              args[i].generator->state == args[index].generator->state;
  cgl_status status =
      cgl_draw_begin(args[index].generator, stream, before, launching, &philox);
  memcpy(value, &philox, sizeof philox);
  return status;
}


static cgl_status end_draws(const cgl_arg *args, size_t nargs,
                            cgl_stream *stream) {
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < nargs; i++)
    if (args[i].kind == CGL_ARG_GENERATOR) {
      cgl_status ended = cgl_draw_end(args[i].generator, stream, launching);
      status = status ? status : ended;
    }
  return status;
}


cgl_status cgl_kernel_launch(cgl_kernel *kernel, cgl_stream *stream,
                             const cgl_launch *wanted, const cgl_arg *args,
                             size_t nargs) {
  cgl_context *context = kernel->object.context;
  const cgl_launch launch = cgl_launch_resolve(wanted);
  cgl_status status = CGL_OK;
  if (stream->object.context != context)
    status = cgl_check_device(&kernel->object, &stream->object, launching);
  if (!status)
    status = cgl_kernel_check(kernel, &launch, nargs, launching);
  if (!status && !stream->capture &&
      atomic_load_explicit(&cgl_sharing_any, memory_order_relaxed))
    status = check_reads(kernel, args, nargs);
  if (status)
    return status;

  void *params[CGL_MAX_PARAMS];
  _Alignas(16) unsigned char own[CGL_VALUES_ROOM];
  unsigned char *values = place_of_values(kernel, stream, own);
  if (!values)
    return CGL_ERROR_NO_MEMORY;
  size_t at = 0;
  bool draws = false;
  for (size_t i = 0; i < nargs; i++) {
    at = cgl_value_next(at);
    params[i] = values + at;
    status = cgl_arg_pack(kernel, i, &args[i], launching, params[i]);
    if (!status && args[i].kind == CGL_ARG_GENERATOR) {
      draws = true;
      status = begin_draw(args, i, stream, params[i]);
    }
    if (status)
      return status;
    at += kernel->sizes[i];
  }
  CUresult result = context->driver->cuLaunchKernel(
      kernel->handle, launch.grid[0], launch.grid[1], launch.grid[2],
      launch.block[0], launch.block[1], launch.block[2], launch.shared_bytes,
      stream->handle, params, NULL);
  if (result)
    return cgl_capture_failed(stream->capture, result, launching,
                              "cuLaunchKernel", context);
  if (stream->capture)
    note_launch(kernel, stream, &launch, args, nargs, at);
  else
    note_eager(kernel, stream, args, nargs);
  return draws ? end_draws(args, nargs, stream) : CGL_OK;
}
