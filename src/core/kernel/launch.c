/* Launching kernels. */
#include "core/kernel/kernel.h"
#include "core/memory/memory.h"
#include "core/random/random.h"

#include <string.h>

static const char launching[] = "kernel:launch";


/* ---- checks before the driver sees a launch ---- */

static cgl_status launch_check_shape(const cgl_kernel *kernel,
                                     const cgl_launch *launch,
                                     const char *operation) {
  const int *block_max = kernel->object.context->block_max;
  const int *grid_max = kernel->object.context->grid_max;
  const uint32_t *grid = launch->grid, *block = launch->block;
  for (int i = 0; i < 3; i++) {
    const bool wide = block[i] > (uint32_t)block_max[i];
    if (!wide && grid[i] <= (uint32_t)grid_max[i])
      continue;
    cgl_fail(CUDA_ERROR_INVALID_VALUE, operation,
             "%u %s along %c are more than the device's %d",
             wide ? block[i] : grid[i],
             wide ? "threads of a block" : "blocks of the grid", "xyz"[i],
             wide ? block_max[i] : grid_max[i]);
    return cgl_fail_hint("split the work differently between grid and block");
  }
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
static cgl_status launch_allow_shared(cgl_kernel *kernel, uint32_t bytes,
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


cgl_launch cgl_launch_resolve(const cgl_launch *wanted) {
  const uint32_t *g = wanted->grid, *b = wanted->block;
  return (cgl_launch){{g[0] + !g[0], g[1] + !g[1], g[2] + !g[2]},
                      {b[0] + !b[0], b[1] + !b[1], b[2] + !b[2]},
                      wanted->shared_bytes};
}


cgl_status cgl_launch_check(cgl_kernel *kernel, const cgl_launch *launch,
                            size_t nargs, const char *operation) {
  if (nargs != kernel->nparams) {
    cgl_fail(CGL_ERROR_ARGUMENT_COUNT, operation,
             "%s takes %zu argument%s, %zu were given", kernel->name,
             kernel->nparams, kernel->nparams == 1 ? "" : "s", nargs);
    return cgl_fail_hint("pass one argument per parameter of the kernel");
  }
  cgl_status status = launch_check_shape(kernel, launch, operation);
  return status ? status
                : launch_allow_shared(kernel, launch->shared_bytes, operation);
}


/* ---- launching ---- */

/* Before an eager launch, when graphs share pools. */
static cgl_status launch_check_uses(const cgl_kernel *kernel,
                                    cgl_stream *stream, const cgl_arg *args,
                                    size_t nargs) {
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < nargs && !status; i++)
    if (args[i].kind == CGL_ARG_BUFFER)
      status = cgl_buffer_check_use(args[i].buffer,
                                    !cgl_kernel_writes(kernel, i) ? CGL_USE_READ
                                    : kernel->effects[i] == CGL_EFFECT_WRITE
                                        ? CGL_USE_WRITE
                                        : CGL_USE_UPDATE,
                                    stream, launching);
  return status;
}


/* Argument `index` is a generator: the number that the launch takes. */
static cgl_status launch_begin_draw(const cgl_arg *args, size_t index,
                                    cgl_stream *stream, cgl_philox *value) {
  size_t before = 0;
  for (size_t i = 0; i < index; i++)
    before += args[i].kind == CGL_ARG_GENERATOR &&
              args[i].generator->state == args[index].generator->state;
  return cgl_draw_begin(args[index].generator, stream, before, launching,
                        value);
}


static cgl_status launch_end_draws(const cgl_arg *args, size_t nargs,
                                   cgl_stream *stream) {
  cgl_status first = CGL_OK;
  for (size_t i = 0; i < nargs; i++)
    if (args[i].kind == CGL_ARG_GENERATOR) {
      cgl_status status = cgl_draw_end(args[i].generator, stream, launching);
      first = first ? first : status;
    }
  return first;
}


/* Packs the arguments one after the other; *bytes: how far they reach. */
static cgl_status launch_pack(const cgl_kernel *kernel, cgl_stream *stream,
                              const cgl_arg *args, size_t nargs,
                              unsigned char *values, void **params,
                              size_t *bytes, bool *draws) {
  cgl_status status = CGL_OK;
  size_t at = 0;
  for (size_t i = 0; i < nargs && !status; i++) {
    at = cgl_kernel_next_value(at);
    params[i] = values + at;
    status = cgl_arg_pack(kernel, i, &args[i], launching, params[i]);
    if (!status && args[i].kind == CGL_ARG_GENERATOR) {
      *draws = true;
      status = launch_begin_draw(args, i, stream, params[i]);
    }
    at += kernel->sizes[i];
  }
  *bytes = at;
  return status;
}


/* The launch uses its kernel, and the memory and the parameters among its
   arguments; `f`: some of them follow buffers, or NULL. */
static void launch_use(cgl_issue *issue, cgl_kernel *kernel,
                       const cgl_following *f, const cgl_arg *args,
                       size_t nargs, void **params) {
  cgl_issue_use(issue, &kernel->object, NULL, NULL);
  for (size_t i = 0; i < nargs; i++)
    if (args[i].kind == CGL_ARG_BUFFER)
      cgl_buffer_use(args[i].buffer, issue, cgl_kernel_writes(kernel, i), i);
    else if (args[i].kind == CGL_ARG_PINNED)
      cgl_pinned_use(args[i].pinned, issue, cgl_kernel_writes(kernel, i), i);
    else if (args[i].kind == CGL_ARG_PARAM && f && f->buffers[i])
      cgl_following_use(
          f, issue,
          (size_t)((char *)params[kernel->nparams] - (char *)params[0]), i,
          args[i].param);
    else if (args[i].kind == CGL_ARG_PARAM)
      cgl_issue_use_param(
          issue, &(cgl_param_use){.param = args[i].param,
                                  .offset = (uint32_t)((char *)params[i] -
                                                       (char *)params[0]),
                                  .repeats = 1,
                                  .argument = (uint16_t)i});
}


/* Issues a launch whose arguments are packed, and notes what it uses; `f` as
   above. */
static cgl_status launch_issue(cgl_issue *issue, cgl_note *note,
                               cgl_kernel *kernel, const cgl_following *f,
                               const cgl_arg *args, size_t nargs,
                               void **params) {
  cgl_waiter *waiter = f ? &kernel->following_waiter : &kernel->waiter;
  if (f) {
    const size_t at = cgl_kernel_next_value(note->nvalues);
    const size_t bytes = cgl_following_bytes(kernel->nparams);
    char *words = params[kernel->nparams] = (char *)params[0] + at;
    memcpy(words, f->words, bytes);
    memset(words + bytes, 0, cgl_kernel_next_value(bytes) - bytes);
    note->nvalues = at + bytes;
    note->follows = true;
    note->function = f->function;
  }
  cgl_status status =
      cgl_issue_launch(issue, note->function, note->launch, waiter, params);
  if (!status)
    launch_use(issue, kernel, f, args, nargs, params);
  return status;
}


static cgl_status launch_issue_following(cgl_issue *issue, cgl_note *note,
                                         cgl_kernel *kernel, bool ruled,
                                         const cgl_arg *args, size_t nargs,
                                         void **params) {
  cgl_following f;
  cgl_status status = cgl_following_begin(&f, kernel, issue->stream,
                                          note->launch, ruled, args, launching);
  if (status)
    return status;
  status = launch_issue(issue, note, kernel, f.follows ? &f : NULL, args, nargs,
                        params);
  cgl_following_end(&f);
  return status;
}


cgl_status cgl_kernel_launch_params(cgl_kernel *kernel, cgl_stream *stream,
                                    const cgl_launch *wanted,
                                    const cgl_grid_params *grid,
                                    const cgl_arg *args, size_t nargs) {
  cgl_launch launch = cgl_launch_resolve(wanted);
  cgl_issue issue;
  cgl_ruled ruled;
  const bool follows = cgl_args_follow(args, nargs);
  const size_t more = follows ? cgl_following_bytes(kernel->nparams) + 16 : 0;
  cgl_status status = cgl_issue_begin(
      &issue, stream, &kernel->object, launching,
      &(cgl_room){.ranges = kernel->nparams,
                  .values = kernel->values_bytes + sizeof ruled.numbers + more,
                  .kept = 2 * kernel->nparams + 1 + CGL_NUMBERS,
                  .uses = kernel->nparams + CGL_NUMBERS,
                  .late = true});
  if (!status && grid)
    status = cgl_kernel_read_grid(kernel, grid, &launch, &ruled, launching);
  if (!status)
    status = cgl_launch_check(kernel, &launch, nargs, launching);
  if (!status && !stream->capture &&
      atomic_load_explicit(&cgl_sharing_any, memory_order_relaxed))
    status = launch_check_uses(kernel, stream, args, nargs);
  if (status)
    return status;

  void *params[CGL_MAX_PARAMS];
  _Alignas(16) unsigned char own[CGL_VALUES_ROOM];
  unsigned char *values = cgl_issue_values(&issue);
  bool draws = false;
  cgl_note note = {.kind = CGL_OP_KERNEL,
                   .name = kernel->name,
                   .launch = &launch,
                   .function = kernel->handle,
                   .object = &kernel->object};
  status = launch_pack(kernel, stream, args, nargs, values ? values : own,
                       params, &note.nvalues, &draws);
  if (!status)
    status =
        follows
            ? launch_issue_following(&issue, &note, kernel, grid && ruled.rule,
                                     args, nargs, params)
            : launch_issue(&issue, &note, kernel, NULL, args, nargs, params);
  if (status)
    return status;
  if (grid)
    cgl_issue_rule(&issue, &note, &ruled, CGL_ARGUMENT_GRID);
  cgl_issue_end(&issue, &note);
  return draws ? launch_end_draws(args, nargs, stream) : CGL_OK;
}


cgl_status cgl_kernel_launch(cgl_kernel *kernel, cgl_stream *stream,
                             const cgl_launch *launch, const cgl_arg *args,
                             size_t nargs) {
  return cgl_kernel_launch_params(kernel, stream, launch, NULL, args, nargs);
}
