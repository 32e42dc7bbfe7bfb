/* Kernels: the arguments of a launch, and its blocks on the workers. */
#include "driver/host/run/run.h"

#include <stdlib.h>
#include <string.h>

/* The `extra` of cuLaunchKernel. */
#define EXTRA_END ((void *)0)
#define EXTRA_BUFFER ((void *)1)
#define EXTRA_SIZE ((void *)2)


typedef struct launch {
  const host_kernel_op *op;
  cgl_host_dims dims;
  uint64_t row;    /* blocks per item of the parallel loop */
  uint64_t blocks; /* in all */
  const host_limits *limits;
  atomic_int taken; /* 1: `fault` is written */
  atomic_bool failed;
  host_fault fault;
} launch;

typedef struct span {
  const launch *launch;
  uint64_t first, last;
} span;


static void run_image(void *argument) {
  const span *s = argument;
  const host_kernel_op *op = s->launch->op;
  op->function->kernel->run(op->params, &s->launch->dims, s->first, s->last);
}


static void run_span(void *argument) {
  host_stack_run(run_image, argument);
}


static void run_blocks(void *context, uint64_t first, uint64_t last) {
  launch *l = context;
  if (atomic_load_explicit(&l->failed, memory_order_relaxed))
    return;
  span s = {l, first * l->row, last * l->row};
  if (s.last > l->blocks)
    s.last = l->blocks;
  host_fault fault;
  if (host_guard_run(run_span, &s, l->limits, &fault))
    return;
  if (!atomic_exchange(&l->taken, 1))
    l->fault = fault;
  atomic_store(&l->failed, true);
}


/* Whether a predicated launch runs, which all of its blocks go by. */
typedef struct predicate_answer {
  const host_kernel_op *op;
  bool runs;
} predicate_answer;


static void predicate_ask(void *argument) {
  predicate_answer *answer = argument;
  const host_kernel_op *op = answer->op;
  cgl_predicate p;
  memcpy(&p, op->params[op->function->kernel->nparams - 1], sizeof p);
  answer->runs = *(const uint32_t *)(uintptr_t)p.word > p.turn &&
                 (!p.value || *(const uint32_t *)(uintptr_t)p.value);
  if (answer->runs && p.ran)
    *(uint32_t *)(uintptr_t)p.ran = p.turn + 1;
}


/* Reads the parameters that follow memory.  A launch runs once at a time, so
   they go where its own values are. */
static void following_read(void *argument) {
  const host_kernel_op *op = argument;
  const cgl_host_kernel *kernel = op->function->kernel;
  const uint32_t n = kernel->nparams - 1;
  const uint64_t *words = op->params[n];
  for (uint32_t i = 0; i < n; i++)
    if (words[1 + i])
      memcpy(op->params[i], (const void *)(uintptr_t)words[1 + i],
             kernel->param_size[i]);
}


static CUresult kernel_fail(const host_kernel_op *op, const host_fault *fault,
                            host_isolation *isolation) {
  char name[80] = "kernel ";
  strncat(name, op->function->kernel->name, sizeof name - 8);
  return host_fail_fault(name, fault, isolation);
}


CUresult host_kernel_run(const host_kernel_op *op, host_isolation *isolation) {
  launch l = {.op = op, .row = 1, .limits = &op->function->limits};
  host_limits limits;
  predicate_answer answer = {op, true};
  if (op->function->predicated &&
      !host_guard_run(predicate_ask, &answer, NULL, &l.fault))
    return kernel_fail(op, &l.fault, isolation);
  if (op->function->follows &&
      !host_guard_run(following_read, (void *)op, NULL, &l.fault))
    return kernel_fail(op, &l.fault, isolation);
  if (!answer.runs)
    return CUDA_SUCCESS;
  for (int i = 0; i < 3; i++) {
    l.dims.grid[i] = op->grid[i];
    l.dims.block[i] = op->block[i];
  }
  l.dims.shared_bytes = op->shared_bytes;
  l.blocks = (uint64_t)op->grid[0] * op->grid[1] * op->grid[2];
  if (atomic_load_explicit(&host_watch_on, memory_order_relaxed)) {
    limits = *l.limits;
    host_watch_limit(&limits, isolation);
    l.limits = &limits;
  }
  uint64_t items = l.blocks;
  /* Whole rows of blocks run best; short of rows, single blocks do. */
  if (l.blocks / op->grid[0] >= 64) {
    l.row = op->grid[0];
    items = l.blocks / op->grid[0];
  }
  host_parallel_for(items, 1, run_blocks, &l, &op->function->cost[l.row > 1]);
  return atomic_load(&l.failed) ? kernel_fail(op, &l.fault, isolation)
                                : CUDA_SUCCESS;
}


static size_t align_up(size_t at, size_t alignment) {
  return alignment > 1 ? (at + alignment - 1) / alignment * alignment : at;
}


/* One malloc block: pointers, set to where the values go behind them. */
static void **params_alloc(const cgl_host_kernel *kernel) {
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


size_t host_kernel_param_offset(const cgl_host_kernel *kernel, size_t index) {
  size_t at = 0;
  for (size_t i = 0; i <= index; i++) {
    at = align_up(at, kernel->param_align[i]);
    if (i < index)
      at += kernel->param_size[i];
  }
  return at;
}


/* Copies the values out of the caller's buffer, laid out as in C. */
static CUresult read_extra(void **params, const cgl_host_kernel *kernel,
                           void **extra) {
  const char *buffer = NULL;
  const size_t *size = NULL;
  for (; *extra != EXTRA_END; extra += 2) {
    if (extra[0] == EXTRA_BUFFER)
      buffer = extra[1];
    else if (extra[0] == EXTRA_SIZE)
      size = extra[1];
    else
      return CUDA_ERROR_INVALID_VALUE;
  }
  if (!kernel->nparams && !buffer)
    return CUDA_SUCCESS;
  if (!buffer || !size || !*size)
    return CUDA_ERROR_INVALID_VALUE;
  uint32_t last = kernel->nparams - 1;
  size_t wanted = kernel->nparams ? host_kernel_param_offset(kernel, last) +
                                        kernel->param_size[last]
                                  : 0;
  if (*size > wanted)
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES; /* as a driver calls it */
  for (uint32_t i = 0; i < kernel->nparams; i++) {
    size_t at = host_kernel_param_offset(kernel, i),
           bytes = kernel->param_size[i];
    size_t there = at < *size ? *size - at : 0;
    memset(params[i], 0, bytes); /* what a short buffer lacks */
    memcpy(params[i], buffer + at, there < bytes ? there : bytes);
  }
  return CUDA_SUCCESS;
}


static CUresult read_params(void **to, const cgl_host_kernel *kernel,
                            void **params, void **extra) {
  if (params && extra)
    return CUDA_ERROR_INVALID_VALUE;
  if (extra)
    return read_extra(to, kernel, extra);
  if (!params && kernel->nparams)
    return CUDA_ERROR_INVALID_VALUE;
  for (uint32_t i = 0; i < kernel->nparams; i++) {
    if (!params[i])
      return CUDA_ERROR_INVALID_VALUE;
    memcpy(to[i], params[i], kernel->param_size[i]);
  }
  return CUDA_SUCCESS;
}


static CUresult check_shape(CUfunction f, const uint32_t grid[3],
                            const uint32_t block[3], uint32_t shared_bytes) {
  const uint64_t threads = (uint64_t)block[0] * block[1] * block[2];
  if (!grid[0] || !grid[1] || !grid[2] || grid[0] > 0x7fffffff ||
      grid[1] > 65535 || grid[2] > 65535)
    return CUDA_ERROR_INVALID_VALUE;
  if (block[0] > 1024 || block[1] > 1024 || block[2] > 64 || threads == 0 ||
      threads > 1024)
    return CUDA_ERROR_INVALID_VALUE;
  if (shared_bytes > (uint32_t)f->max_dynamic_shared ||
      threads > f->kernel->max_threads)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}


CUresult host_kernel_make(host_kernel_op *op, CUfunction f,
                          const uint32_t grid[3], const uint32_t block[3],
                          uint32_t shared_bytes, void **params, void **extra) {
  if (!host_handle_live(HOST_HANDLE_FUNCTION, f))
    return CUDA_ERROR_INVALID_HANDLE;
  HOST_TRY(check_shape(f, grid, block, shared_bytes));
  void **values = params_alloc(f->kernel);
  if (!values)
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = read_params(values, f->kernel, params, extra);
  if (result != CUDA_SUCCESS) {
    free(values);
    return result;
  }
  *op = (host_kernel_op){
      .function = f, .shared_bytes = shared_bytes, .params = values};
  memcpy(op->grid, grid, sizeof op->grid);
  memcpy(op->block, block, sizeof op->block);
  host_module_retain(f->module);
  return CUDA_SUCCESS;
}


CUresult host_kernel_copy(host_kernel_op *to, const host_kernel_op *from) {
  const cgl_host_kernel *kernel = from->function->kernel;
  void **params = params_alloc(kernel);
  if (!params)
    return CUDA_ERROR_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < kernel->nparams; i++)
    memcpy(params[i], from->params[i], kernel->param_size[i]);
  *to = *from;
  to->params = params;
  host_module_retain(from->function->module);
  return CUDA_SUCCESS;
}


void host_kernel_release(host_kernel_op *op) {
  free(op->params);
  host_module_release(op->function->module);
}
