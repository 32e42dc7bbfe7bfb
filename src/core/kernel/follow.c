/* Launches with parameters that follow buffers, by the kernel's following form
   (driver/predicate.h). */
#include <string.h>

#include "core/kernel/kernel.h"
#include "core/memory/memory.h"


bool cgl_args_follow(const cgl_arg *args, size_t nargs) {
  bool follow = false;
  for (size_t i = 0; i < nargs && !follow; i++)
    follow = args[i].kind == CGL_ARG_PARAM && cgl_param_follows(args[i].param);
  return follow;
}


bool cgl_kernel_may_write(const cgl_kernel *kernel, size_t index,
                          const cgl_arg *arg, const cgl_range *range) {
  cgl_range memory = {0};
  return cgl_kernel_writes(kernel, index) &&
         cgl_arg_memory(arg, &memory.address, &memory.bytes) &&
         cgl_record_ranges_touch(&memory, 1, range->address, range->bytes,
                                 false);
}


/* A kernel that may write to a buffer that argument `index` follows has one
   block, whose threads wait for one another after they have read it. */
static cgl_status following_check_writes(cgl_following *f, size_t index,
                                         const cgl_launch *launch, bool ruled,
                                         const cgl_arg *args,
                                         const char *operation) {
  const uint32_t *grid = launch->grid;
  const cgl_buffer *buffer = f->buffers[index];
  const cgl_range range = {.address = buffer->address,
                           .bytes = cgl_buffer_bytes(buffer)};
  for (size_t i = 0; i < f->kernel->nparams; i++) {
    if (!cgl_kernel_may_write(f->kernel, i, &args[i], &range))
      continue;
    f->words[0] = 1;
    if (!ruled && (uint64_t)grid[0] * grid[1] * grid[2] == 1)
      continue;
    cgl_arg_refuse(CGL_ERROR_INVALID_ARGUMENT, f->kernel, index, operation,
                   "is a parameter that follows a buffer, which argument %zu "
                   "may write to while blocks still begin",
                   i + 1);
    return cgl_fail_hint("declare the pointer as const, launch one block, or "
                         "follow memory that the kernel does not get");
  }
  return CGL_OK;
}


static cgl_status following_begin_arg(cgl_following *f, size_t index,
                                      cgl_stream *stream, const cgl_arg *arg,
                                      const char *operation) {
  f->buffers[index] =
      arg->kind == CGL_ARG_PARAM ? cgl_param_followed(arg->param) : NULL;
  if (!f->buffers[index])
    return CGL_OK;
  f->follows = true;
  f->words[1 + index] = f->buffers[index]->address;
  return cgl_buffer_check_followed(f->buffers[index], arg->param, stream,
                                   operation);
}


/* Why not, at the first argument that follows a buffer. */
static cgl_status following_refuse(const cgl_following *f, const char *why,
                                   const char *operation) {
  size_t index = 0;
  while (!f->buffers[index])
    index++;
  cgl_arg_refuse(CGL_ERROR_INVALID_ARGUMENT, f->kernel, index, operation,
                 "is a parameter that follows a buffer, and the kernel cannot "
                 "read it there: %s",
                 why);
  return cgl_fail_hint("give the kernel the buffer, or end it with "
                       "param:follow(nil)");
}


cgl_status cgl_following_begin(cgl_following *f, cgl_kernel *kernel,
                               cgl_stream *stream, const cgl_launch *launch,
                               bool ruled, const cgl_arg *args,
                               const char *operation) {
  const size_t n = kernel->nparams;
  const char *why = NULL;
  cgl_status status = CGL_OK;
  f->kernel = kernel;
  f->follows = false;
  memset(f->buffers, 0, n * sizeof(cgl_buffer *));
  memset(f->words, 0, cgl_following_bytes(n));
  for (size_t i = 0; i < n && !status; i++)
    status = following_begin_arg(f, i, stream, &args[i], operation);
  for (size_t i = 0; i < n && !status; i++)
    if (f->buffers[i])
      status = following_check_writes(f, i, launch, ruled, args, operation);
  if (!status && f->follows)
    status = cgl_kernel_second(kernel, CGL_SECOND_FOLLOWING, launch, operation,
                               &f->function, &why);
  if (!status && why)
    status = following_refuse(f, why, operation);
  if (status)
    cgl_following_end(f);
  return status;
}


void cgl_following_end(cgl_following *f) {
  for (size_t i = 0; i < f->kernel->nparams; i++)
    cgl_buffer_release(f->buffers[i]);
}


void cgl_following_use(const cgl_following *f, cgl_issue *issue, size_t at,
                       size_t index, cgl_param *param) {
  cgl_buffer_use(f->buffers[index], issue, false,
                 CGL_ARGUMENT_FOLLOWED + index);
  cgl_issue_use_param(
      issue, &(cgl_param_use){.param = param,
                              .offset = (uint32_t)(at + 8 * (1 + index)),
                              .repeats = 1,
                              .argument = (uint16_t)index,
                              .follows = true});
}
