/* Kernels: checks of a launch, and its blocks on the workers. */
#include "driver/host/memory/copy.h"
#include "driver/host/base/runtime.h"

#include <stdlib.h>
#include <string.h>

/* The `extra` of cuLaunchKernel. */
#define EXTRA_END ((void *)0)
#define EXTRA_BUFFER ((void *)1)
#define EXTRA_SIZE ((void *)2)


/* ---- running ---- */

typedef struct launch {
  const host_kernel_op *op;
  cgl_host_dims dims;
  uint64_t row;     /* blocks per item of the parallel loop */
  uint64_t blocks;  /* in all */
  atomic_int taken; /* 1: somebody has written `fault` */
  atomic_bool failed;
  host_fault fault;
} launch;

typedef struct span {
  const launch *launch;
  uint64_t first, last;
} span;


static void run_span(void *argument) {
  const span *s = argument;
  const host_kernel_op *op = s->launch->op;
  op->function->kernel->run(op->params, &s->launch->dims, s->first, s->last);
}


static void run_blocks(void *context, uint64_t first, uint64_t last) {
  launch *l = context;
  if (atomic_load_explicit(&l->failed, memory_order_relaxed))
    return;
  span s = {l, first * l->row, last * l->row};
  if (s.last > l->blocks)
    s.last = l->blocks;
  host_fault fault;
  if (host_guard_run(run_span, &s, &fault))
    return;
  if (!atomic_exchange(&l->taken, 1))
    l->fault = fault;
  atomic_store(&l->failed, true);
}


CUresult host_kernel_run(const host_kernel_op *op) {
  launch l = {.op = op, .row = 1};
  for (int i = 0; i < 3; i++) {
    l.dims.grid[i] = op->grid[i];
    l.dims.block[i] = op->block[i];
  }
  l.dims.shared_bytes = op->shared_bytes;
  l.blocks = (uint64_t)op->grid[0] * op->grid[1] * op->grid[2];
  uint64_t items = l.blocks;
  /* Whole rows of blocks run best; short of rows, single blocks do. */
  if (l.blocks / op->grid[0] >= 64) {
    l.row = op->grid[0];
    items = l.blocks / op->grid[0];
  }
  host_parallel_for(items, 1, run_blocks, &l, &op->function->cost[l.row > 1]);
  if (!atomic_load(&l.failed))
    return CUDA_SUCCESS;
  char name[80] = "kernel ";
  strncat(name, op->function->kernel->name, sizeof name - 8);
  return host_fail_fault(name, &l.fault);
}


/* ---- launching ---- */

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
  size_t wanted = kernel->nparams ? host_param_offset(kernel, last) +
                                        kernel->param_size[last]
                                  : 0;
  if (*size > wanted)
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES; /* as a driver calls it */
  for (uint32_t i = 0; i < kernel->nparams; i++) {
    size_t at = host_param_offset(kernel, i), bytes = kernel->param_size[i];
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


CUresult host_kernel_op_make(host_op *op, CUfunction f, const uint32_t grid[3],
                             const uint32_t block[3], uint32_t shared_bytes,
                             void **params, void **extra) {
  if (!host_handle_live(HOST_HANDLE_FUNCTION, f))
    return CUDA_ERROR_INVALID_HANDLE;
  HOST_TRY(check_shape(f, grid, block, shared_bytes));
  void **values = host_params_alloc(f->kernel);
  if (!values)
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = read_params(values, f->kernel, params, extra);
  if (result != CUDA_SUCCESS) {
    free(values);
    return result;
  }
  *op = (host_op){.kind = HOST_OP_KERNEL};
  op->kernel.function = f;
  memcpy(op->kernel.grid, grid, sizeof op->kernel.grid);
  memcpy(op->kernel.block, block, sizeof op->kernel.block);
  op->kernel.shared_bytes = shared_bytes;
  op->kernel.params = values;
  host_module_retain(f->module);
  return CUDA_SUCCESS;
}


/* A launch with attributes that nobody knows was never one: unlike others
   that are refused it breaks no capture. */
static bool attributes_known(const CUlaunchConfig *c) {
  if (c->numAttrs && !c->attrs)
    return false;
  for (unsigned i = 0; i < c->numAttrs; i++)
    if (c->attrs[i].id < 0 || c->attrs[i].id == 11 || c->attrs[i].id > 14)
      return false;
  return true;
}


/* Reads the launch attributes into the op. */
static CUresult read_attributes(host_kernel_op *op, const CUlaunchConfig *c) {
  for (unsigned i = 0; i < c->numAttrs; i++) {
    const CUlaunchAttributeValue *value = &c->attrs[i].value;
    switch (c->attrs[i].id) {
    case 0: /* CU_LAUNCH_ATTRIBUTE_IGNORE */
      break;
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
      op->cooperative = value->cooperative;
      break;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
      if (value->clusterDim.x != 1 || value->clusterDim.y != 1 ||
          value->clusterDim.z != 1)
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
      break;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
      op->programmatic = value->programmaticStreamSerializationAllowed != 0;
      break;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
      op->priority = host_priority_clamp(value->priority);
      break;
    case 1:  /* access policy window, */
    case 3:  /* synchronization policy, */
    case 5:  /* cluster scheduling, */
    case 9:  /* memory synchronization domains */
    case 10: /* and their map, */
    case 14: /* shared memory carveout: hints */
      break;
    case 7:  /* programmatic event */
    case 12: /* launch completion event */
    case 13: /* device-updatable node */
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  /* Blocks of one grid run one after the other on a worker, so only a grid of
     one block has all of its blocks resident. */
  if (op->cooperative &&
      (op->grid[0] > 1 || op->grid[1] > 1 || op->grid[2] > 1))
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  return CUDA_SUCCESS;
}


static CUresult launch_on(CUstream stream, const CUlaunchConfig *c,
                          CUfunction f, void **params, void **extra) {
  host_op op;
  const uint32_t grid[3] = {c->gridDimX, c->gridDimY, c->gridDimZ};
  const uint32_t block[3] = {c->blockDimX, c->blockDimY, c->blockDimZ};
  HOST_TRY(host_kernel_op_make(&op, f, grid, block, c->sharedMemBytes, params,
                               extra));
  op.kernel.priority = stream->priority;
  CUresult result = read_attributes(&op.kernel, c);
  if (result != CUDA_SUCCESS) {
    host_op_release(&op);
    return result;
  }
  return host_submit(stream, &op);
}


CUresult host_cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction f,
                               void **kernelParams, void **extra) {
  HOST_TRY(host_check_stream(config ? config->hStream : NULL));
  if (!config || !attributes_known(config))
    return CUDA_ERROR_INVALID_VALUE;
  CUstream s;
  host_lock();
  CUresult result = host_stream_open(config->hStream, &s);
  if (result == CUDA_SUCCESS) {
    result = launch_on(s, config, f, kernelParams, extra);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_INVALID_HANDLE)
      host_capture_break(s);
  }
  host_unlock_and_wait(result == CUDA_SUCCESS ? host_stream_full(s) : NULL);
  return result;
}


CUresult host_cuLaunchKernel(CUfunction f, unsigned int gridDimX,
                             unsigned int gridDimY, unsigned int gridDimZ,
                             unsigned int blockDimX, unsigned int blockDimY,
                             unsigned int blockDimZ,
                             unsigned int sharedMemBytes, CUstream hStream,
                             void **kernelParams, void **extra) {
  const CUlaunchConfig config = {.gridDimX = gridDimX,
                                 .gridDimY = gridDimY,
                                 .gridDimZ = gridDimZ,
                                 .blockDimX = blockDimX,
                                 .blockDimY = blockDimY,
                                 .blockDimZ = blockDimZ,
                                 .sharedMemBytes = sharedMemBytes,
                                 .hStream = hStream};
  return host_cuLaunchKernelEx(&config, f, kernelParams, extra);
}


/* ---- occupancy ---- */

/* As many blocks as threads and shared memory of a multiprocessor hold. */
static int resident_blocks(CUfunction f, int threads, size_t shared) {
  if (threads > 1024 || shared > (size_t)f->max_dynamic_shared)
    return 0;
  size_t per_block = shared + f->kernel->static_shared + 1024;
  size_t blocks = (size_t)(HOST_SM_THREADS / ((threads + 31) / 32 * 32));
  size_t fit = (HOST_SHARED_LIMIT + 1024) / per_block;
  if (fit < blocks)
    blocks = fit;
  return blocks < 32 ? (int)blocks : 32;
}


CUresult host_cuOccupancyMaxActiveBlocksPerMultiprocessor(
    int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize) {
  HOST_TRY(host_check());
  if (!numBlocks || blockSize < 1)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  bool live = host_handle_live(HOST_HANDLE_FUNCTION, func);
  if (live)
    *numBlocks = resident_blocks(func, blockSize, dynamicSMemSize);
  host_unlock();
  return live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}


/* 256 threads: enough to fill a multiprocessor, and blocks with barriers stay
   in the cache. */
CUresult host_cuOccupancyMaxPotentialBlockSize(
    int *minGridSize, int *blockSize, CUfunction func,
    CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize,
    int blockSizeLimit) {
  HOST_TRY(host_check());
  if (!minGridSize || !blockSize || blockSizeLimit < 0)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  bool live = host_handle_live(HOST_HANDLE_FUNCTION, func);
  int most = live ? (int)func->kernel->max_threads : 0;
  host_unlock();
  if (!live)
    return CUDA_ERROR_INVALID_HANDLE;
  if (blockSizeLimit && blockSizeLimit < most)
    most = blockSizeLimit;
  int threads = most < 256 ? most : 256;
  int blocks = 0;
  for (; threads > 0; threads = threads > 32 ? threads - 32 : 0) {
    size_t shared = blockSizeToDynamicSMemSize
                        ? blockSizeToDynamicSMemSize(threads)
                        : dynamicSMemSize;
    blocks = resident_blocks(func, threads, shared);
    if (blocks)
      break;
  }
  *blockSize = blocks ? threads : 0;
  *minGridSize = blocks * (int)host_worker_count();
  return CUDA_SUCCESS;
}
