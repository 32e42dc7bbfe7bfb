/* The driver's calls that launch kernels, and ask how many fit. */
#include "driver/host/calls/calls.h"
#include "driver/host/graph/graph.h"


/* Unknown attributes are refused without breaking the capture, unlike other
   faults of a launch. */
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
      op->priority = host_stream_priority(value->priority);
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
  op.kind = HOST_OP_KERNEL;
  HOST_TRY(host_kernel_make(&op.kernel, f, grid, block, c->sharedMemBytes,
                            params, extra));
  op.kernel.priority = stream->priority;
  CUresult result = read_attributes(&op.kernel, c);
  if (result != CUDA_SUCCESS) {
    host_op_release(&op);
    return result;
  }
  return host_graph_submit(stream, &op);
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
  host_stream_unlock(result == CUDA_SUCCESS ? host_stream_full(s) : NULL);
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
