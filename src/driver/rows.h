/* The rows of the driver table: one line per entry point,
   X(name, version, (parameters), (arguments)).
   `version` is the smallest CUDA version whose cuGetProcAddress gives the
   listed signature; a row is never asked for at a higher one, because some
   names change their parameters later (cuCtxSynchronize at 13.0).  The
   table's members, the loader's requests, the host device's functions and
   the fault table's wrappers all come from this list. */
#ifndef CGL_DRIVER_ROWS_H
#define CGL_DRIVER_ROWS_H

/* clang-format off */
#define CGL_ROWS_INIT(X) \
  X(cuInit, 2000, (unsigned int Flags), (Flags)) \
  X(cuDriverGetVersion, 2020, (int *driverVersion), (driverVersion)) \
  X(cuGetProcAddress, 12000, (const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus), (symbol, pfn, cudaVersion, flags, symbolStatus)) \
  X(cuGetErrorName, 6000, (CUresult error, const char **pStr), (error, pStr)) \
  X(cuGetErrorString, 6000, (CUresult error, const char **pStr), (error, pStr))

#define CGL_ROWS_DEVICE(X) \
  X(cuDeviceGet, 2000, (CUdevice *device, int ordinal), (device, ordinal)) \
  X(cuDeviceGetCount, 2000, (int *count), (count)) \
  X(cuDeviceGetName, 2000, (char *name, int len, CUdevice dev), (name, len, dev)) \
  X(cuDeviceGetUuid, 11040, (CUuuid *uuid, CUdevice dev), (uuid, dev)) \
  X(cuDeviceTotalMem, 3020, (size_t *bytes, CUdevice dev), (bytes, dev)) \
  X(cuDeviceGetAttribute, 2000, (int *pi, CUdevice_attribute attrib, CUdevice dev), (pi, attrib, dev)) \
  X(cuDeviceGetDefaultMemPool, 11020, (CUmemoryPool *pool_out, CUdevice dev), (pool_out, dev)) \
  X(cuDeviceGetMemPool, 11020, (CUmemoryPool *pool, CUdevice dev), (pool, dev)) \
  X(cuDeviceSetMemPool, 11020, (CUdevice dev, CUmemoryPool pool), (dev, pool)) \
  X(cuDeviceGetGraphMemAttribute, 11040, (CUdevice device, CUgraphMem_attribute attr, void *value), (device, attr, value)) \
  X(cuDeviceGraphMemTrim, 11040, (CUdevice device), (device))

#define CGL_ROWS_CONTEXT(X) \
  X(cuDevicePrimaryCtxRetain, 7000, (CUcontext *pctx, CUdevice dev), (pctx, dev)) \
  X(cuDevicePrimaryCtxRelease, 11000, (CUdevice dev), (dev)) \
  X(cuDevicePrimaryCtxReset, 11000, (CUdevice dev), (dev)) \
  X(cuCtxSetCurrent, 4000, (CUcontext ctx), (ctx)) \
  X(cuCtxGetCurrent, 4000, (CUcontext *pctx), (pctx)) \
  X(cuCtxGetDevice, 2000, (CUdevice *device), (device)) \
  X(cuCtxSynchronize, 2000, (void), ()) \
  X(cuCtxGetStreamPriorityRange, 5050, (int *leastPriority, int *greatestPriority), (leastPriority, greatestPriority)) \
  X(cuDevicePrimaryCtxGetState, 7000, (CUdevice dev, unsigned int *flags, int *active), (dev, flags, active))

#define CGL_ROWS_MEMORY(X) \
  X(cuMemGetInfo, 3020, (size_t *free, size_t *total), (free, total)) \
  X(cuMemAlloc, 3020, (CUdeviceptr *dptr, size_t bytesize), (dptr, bytesize)) \
  X(cuMemFree, 3020, (CUdeviceptr dptr), (dptr)) \
  X(cuMemHostAlloc, 2020, (void **pp, size_t bytesize, unsigned int Flags), (pp, bytesize, Flags)) \
  X(cuMemFreeHost, 2000, (void *p), (p)) \
  X(cuPointerGetAttribute, 4000, (void *data, CUpointer_attribute attribute, CUdeviceptr ptr), (data, attribute, ptr)) \
  X(cuMemcpyHtoD, 3020, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount), (dstDevice, srcHost, ByteCount)) \
  X(cuMemcpyDtoH, 3020, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount), (dstHost, srcDevice, ByteCount)) \
  X(cuMemcpyAsync, 4000, (CUdeviceptr dst, CUdeviceptr src, size_t ByteCount, CUstream hStream), (dst, src, ByteCount, hStream)) \
  X(cuMemcpyHtoDAsync, 3020, (CUdeviceptr dstDevice, const void *srcHost, size_t ByteCount, CUstream hStream), (dstDevice, srcHost, ByteCount, hStream)) \
  X(cuMemcpyDtoHAsync, 3020, (void *dstHost, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream), (dstHost, srcDevice, ByteCount, hStream)) \
  X(cuMemcpyDtoDAsync, 3020, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount, CUstream hStream), (dstDevice, srcDevice, ByteCount, hStream)) \
  X(cuMemcpy2DAsync, 3020, (const CUDA_MEMCPY2D *pCopy, CUstream hStream), (pCopy, hStream)) \
  X(cuMemcpy3DAsync, 3020, (const CUDA_MEMCPY3D *pCopy, CUstream hStream), (pCopy, hStream)) \
  X(cuMemsetD8Async, 3020, (CUdeviceptr dstDevice, unsigned char uc, size_t N, CUstream hStream), (dstDevice, uc, N, hStream)) \
  X(cuMemsetD16Async, 3020, (CUdeviceptr dstDevice, unsigned short us, size_t N, CUstream hStream), (dstDevice, us, N, hStream)) \
  X(cuMemsetD32Async, 3020, (CUdeviceptr dstDevice, unsigned int ui, size_t N, CUstream hStream), (dstDevice, ui, N, hStream)) \
  X(cuMemsetD2D32Async, 3020, (CUdeviceptr dstDevice, size_t dstPitch, unsigned int ui, size_t Width, size_t Height, CUstream hStream), (dstDevice, dstPitch, ui, Width, Height, hStream)) \
  X(cuMemAllocHost, 3020, (void **pp, size_t bytesize), (pp, bytesize)) \
  X(cuMemHostGetDevicePointer, 3020, (CUdeviceptr *pdptr, void *p, unsigned int Flags), (pdptr, p, Flags)) \
  X(cuMemHostRegister, 6050, (void *p, size_t bytesize, unsigned int Flags), (p, bytesize, Flags)) \
  X(cuMemHostUnregister, 4000, (void *p), (p)) \
  X(cuMemcpyDtoD, 3020, (CUdeviceptr dstDevice, CUdeviceptr srcDevice, size_t ByteCount), (dstDevice, srcDevice, ByteCount)) \
  X(cuMemsetD8, 3020, (CUdeviceptr dstDevice, unsigned char uc, size_t N), (dstDevice, uc, N)) \
  X(cuMemsetD32, 3020, (CUdeviceptr dstDevice, unsigned int ui, size_t N), (dstDevice, ui, N)) \
  X(cuMemsetD2D8Async, 3020, (CUdeviceptr dstDevice, size_t dstPitch, unsigned char uc, size_t Width, size_t Height, CUstream hStream), (dstDevice, dstPitch, uc, Width, Height, hStream))

#define CGL_ROWS_MEMPOOL(X) \
  X(cuMemAllocAsync, 11020, (CUdeviceptr *dptr, size_t bytesize, CUstream hStream), (dptr, bytesize, hStream)) \
  X(cuMemAllocFromPoolAsync, 11020, (CUdeviceptr *dptr, size_t bytesize, CUmemoryPool pool, CUstream hStream), (dptr, bytesize, pool, hStream)) \
  X(cuMemFreeAsync, 11020, (CUdeviceptr dptr, CUstream hStream), (dptr, hStream)) \
  X(cuMemPoolCreate, 11020, (CUmemoryPool *pool, const CUmemPoolProps *poolProps), (pool, poolProps)) \
  X(cuMemPoolDestroy, 11020, (CUmemoryPool pool), (pool)) \
  X(cuMemPoolTrimTo, 11020, (CUmemoryPool pool, size_t minBytesToKeep), (pool, minBytesToKeep)) \
  X(cuMemPoolSetAttribute, 11020, (CUmemoryPool pool, CUmemPool_attribute attr, void *value), (pool, attr, value)) \
  X(cuMemPoolGetAttribute, 11020, (CUmemoryPool pool, CUmemPool_attribute attr, void *value), (pool, attr, value))

#define CGL_ROWS_VIRTUAL(X) \
  X(cuMemAddressReserve, 10020, (CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr, unsigned long long flags), (ptr, size, alignment, addr, flags)) \
  X(cuMemAddressFree, 10020, (CUdeviceptr ptr, size_t size), (ptr, size)) \
  X(cuMemCreate, 10020, (CUmemGenericAllocationHandle *handle, size_t size, const CUmemAllocationProp *prop, unsigned long long flags), (handle, size, prop, flags)) \
  X(cuMemRelease, 10020, (CUmemGenericAllocationHandle handle), (handle)) \
  X(cuMemMap, 10020, (CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle, unsigned long long flags), (ptr, size, offset, handle, flags)) \
  X(cuMemUnmap, 10020, (CUdeviceptr ptr, size_t size), (ptr, size)) \
  X(cuMemSetAccess, 10020, (CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count), (ptr, size, desc, count)) \
  X(cuMemGetAllocationGranularity, 10020, (size_t *granularity, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags option), (granularity, prop, option))

#define CGL_ROWS_STREAM(X) \
  X(cuStreamCreateWithPriority, 5050, (CUstream *phStream, unsigned int flags, int priority), (phStream, flags, priority)) \
  X(cuStreamDestroy, 4000, (CUstream hStream), (hStream)) \
  X(cuStreamQuery, 2000, (CUstream hStream), (hStream)) \
  X(cuStreamSynchronize, 2000, (CUstream hStream), (hStream)) \
  X(cuStreamWaitEvent, 3020, (CUstream hStream, CUevent hEvent, unsigned int Flags), (hStream, hEvent, Flags)) \
  X(cuStreamGetFlags, 5050, (CUstream hStream, unsigned int *flags), (hStream, flags)) \
  X(cuLaunchHostFunc, 10000, (CUstream hStream, CUhostFn fn, void *userData), (hStream, fn, userData)) \
  X(cuStreamCreate, 2000, (CUstream *phStream, unsigned int Flags), (phStream, Flags)) \
  X(cuStreamGetPriority, 5050, (CUstream hStream, int *priority), (hStream, priority)) \
  X(cuStreamAddCallback, 5000, (CUstream hStream, CUstreamCallback callback, void *userData, unsigned int flags), (hStream, callback, userData, flags))

#define CGL_ROWS_EVENT(X) \
  X(cuEventCreate, 2000, (CUevent *phEvent, unsigned int Flags), (phEvent, Flags)) \
  X(cuEventDestroy, 4000, (CUevent hEvent), (hEvent)) \
  X(cuEventRecord, 2000, (CUevent hEvent, CUstream hStream), (hEvent, hStream)) \
  X(cuEventRecordWithFlags, 11010, (CUevent hEvent, CUstream hStream, unsigned int flags), (hEvent, hStream, flags)) \
  X(cuEventQuery, 2000, (CUevent hEvent), (hEvent)) \
  X(cuEventSynchronize, 2000, (CUevent hEvent), (hEvent)) \
  X(cuEventElapsedTime, 12080, (float *pMilliseconds, CUevent hStart, CUevent hEnd), (pMilliseconds, hStart, hEnd))

#define CGL_ROWS_CAPTURE(X) \
  X(cuStreamBeginCapture, 10010, (CUstream hStream, CUstreamCaptureMode mode), (hStream, mode)) \
  X(cuStreamBeginCaptureToGraph, 12030, (CUstream hStream, CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData, size_t numDependencies, CUstreamCaptureMode mode), (hStream, hGraph, dependencies, dependencyData, numDependencies, mode)) \
  X(cuStreamEndCapture, 10000, (CUstream hStream, CUgraph *phGraph), (hStream, phGraph)) \
  X(cuStreamIsCapturing, 10000, (CUstream hStream, CUstreamCaptureStatus *captureStatus), (hStream, captureStatus)) \
  X(cuStreamGetCaptureInfo, 12030, (CUstream hStream, CUstreamCaptureStatus *captureStatus_out, cuuint64_t *id_out, CUgraph *graph_out, const CUgraphNode **dependencies_out, const CUgraphEdgeData **edgeData_out, size_t *numDependencies_out), (hStream, captureStatus_out, id_out, graph_out, dependencies_out, edgeData_out, numDependencies_out)) \
  X(cuStreamUpdateCaptureDependencies, 12030, (CUstream hStream, CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData, size_t numDependencies, unsigned int flags), (hStream, dependencies, dependencyData, numDependencies, flags)) \
  X(cuThreadExchangeStreamCaptureMode, 10010, (CUstreamCaptureMode *mode), (mode))

#define CGL_ROWS_GRAPH(X) \
  X(cuGraphCreate, 10000, (CUgraph *phGraph, unsigned int flags), (phGraph, flags)) \
  X(cuGraphDestroy, 10000, (CUgraph hGraph), (hGraph)) \
  X(cuGraphClone, 10000, (CUgraph *phGraphClone, CUgraph originalGraph), (phGraphClone, originalGraph)) \
  X(cuGraphNodeFindInClone, 10000, (CUgraphNode *phNode, CUgraphNode hOriginalNode, CUgraph hClonedGraph), (phNode, hOriginalNode, hClonedGraph)) \
  X(cuGraphGetNodes, 10000, (CUgraph hGraph, CUgraphNode *nodes, size_t *numNodes), (hGraph, nodes, numNodes)) \
  X(cuGraphGetRootNodes, 10000, (CUgraph hGraph, CUgraphNode *rootNodes, size_t *numRootNodes), (hGraph, rootNodes, numRootNodes)) \
  X(cuGraphGetEdges, 12030, (CUgraph hGraph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edgeData, size_t *numEdges), (hGraph, from, to, edgeData, numEdges)) \
  X(cuGraphAddDependencies, 12030, (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edgeData, size_t numDependencies), (hGraph, from, to, edgeData, numDependencies)) \
  X(cuGraphRemoveDependencies, 12030, (CUgraph hGraph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edgeData, size_t numDependencies), (hGraph, from, to, edgeData, numDependencies)) \
  X(cuGraphDestroyNode, 10000, (CUgraphNode hNode), (hNode)) \
  X(cuGraphDebugDotPrint, 11030, (CUgraph hGraph, const char *path, unsigned int flags), (hGraph, path, flags)) \
  X(cuUserObjectCreate, 11030, (CUuserObject *object_out, void *ptr, CUhostFn destroy, unsigned int initialRefcount, unsigned int flags), (object_out, ptr, destroy, initialRefcount, flags)) \
  X(cuUserObjectRelease, 11030, (CUuserObject object, unsigned int count), (object, count)) \
  X(cuGraphRetainUserObject, 11030, (CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags), (graph, object, count, flags))

#define CGL_ROWS_NODE(X) \
  X(cuGraphAddNode, 12030, (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, const CUgraphEdgeData *dependencyData, size_t numDependencies, CUgraphNodeParams *nodeParams), (phGraphNode, hGraph, dependencies, dependencyData, numDependencies, nodeParams)) \
  X(cuGraphConditionalHandleCreate, 12030, (CUgraphConditionalHandle *pHandle_out, CUgraph hGraph, CUcontext ctx, unsigned int defaultLaunchValue, unsigned int flags), (pHandle_out, hGraph, ctx, defaultLaunchValue, flags)) \
  X(cuGraphNodeGetType, 10000, (CUgraphNode hNode, CUgraphNodeType *type), (hNode, type)) \
  X(cuGraphNodeGetDependencies, 12030, (CUgraphNode hNode, CUgraphNode *dependencies, CUgraphEdgeData *edgeData, size_t *numDependencies), (hNode, dependencies, edgeData, numDependencies)) \
  X(cuGraphNodeGetDependentNodes, 12030, (CUgraphNode hNode, CUgraphNode *dependentNodes, CUgraphEdgeData *edgeData, size_t *numDependentNodes), (hNode, dependentNodes, edgeData, numDependentNodes)) \
  X(cuGraphAddKernelNode, 12000, (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies, const CUDA_KERNEL_NODE_PARAMS *nodeParams), (phGraphNode, hGraph, dependencies, numDependencies, nodeParams)) \
  X(cuGraphAddMemcpyNode, 10000, (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies, const CUDA_MEMCPY3D *copyParams, CUcontext ctx), (phGraphNode, hGraph, dependencies, numDependencies, copyParams, ctx)) \
  X(cuGraphAddMemsetNode, 10000, (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx), (phGraphNode, hGraph, dependencies, numDependencies, memsetParams, ctx)) \
  X(cuGraphAddHostNode, 10000, (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies, const CUDA_HOST_NODE_PARAMS *nodeParams), (phGraphNode, hGraph, dependencies, numDependencies, nodeParams)) \
  X(cuGraphAddChildGraphNode, 10000, (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies, CUgraph childGraph), (phGraphNode, hGraph, dependencies, numDependencies, childGraph)) \
  X(cuGraphAddEmptyNode, 10000, (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies), (phGraphNode, hGraph, dependencies, numDependencies)) \
  X(cuGraphAddEventRecordNode, 11010, (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies, CUevent event), (phGraphNode, hGraph, dependencies, numDependencies, event)) \
  X(cuGraphAddEventWaitNode, 11010, (CUgraphNode *phGraphNode, CUgraph hGraph, const CUgraphNode *dependencies, size_t numDependencies, CUevent event), (phGraphNode, hGraph, dependencies, numDependencies, event))

#define CGL_ROWS_PARAMS(X) \
  X(cuGraphKernelNodeGetParams, 12000, (CUgraphNode hNode, CUDA_KERNEL_NODE_PARAMS *nodeParams), (hNode, nodeParams)) \
  X(cuGraphMemcpyNodeGetParams, 10000, (CUgraphNode hNode, CUDA_MEMCPY3D *nodeParams), (hNode, nodeParams)) \
  X(cuGraphMemsetNodeGetParams, 10000, (CUgraphNode hNode, CUDA_MEMSET_NODE_PARAMS *nodeParams), (hNode, nodeParams)) \
  X(cuGraphHostNodeGetParams, 10000, (CUgraphNode hNode, CUDA_HOST_NODE_PARAMS *nodeParams), (hNode, nodeParams)) \
  X(cuGraphChildGraphNodeGetGraph, 10000, (CUgraphNode hNode, CUgraph *phGraph), (hNode, phGraph)) \
  X(cuGraphEventRecordNodeGetEvent, 11010, (CUgraphNode hNode, CUevent *event_out), (hNode, event_out)) \
  X(cuGraphEventWaitNodeGetEvent, 11010, (CUgraphNode hNode, CUevent *event_out), (hNode, event_out)) \
  X(cuGraphMemAllocNodeGetParams, 11040, (CUgraphNode hNode, CUDA_MEM_ALLOC_NODE_PARAMS *params_out), (hNode, params_out)) \
  X(cuGraphMemFreeNodeGetParams, 11040, (CUgraphNode hNode, CUdeviceptr *dptr_out), (hNode, dptr_out)) \
  X(cuGraphNodeSetParams, 12020, (CUgraphNode hNode, CUgraphNodeParams *nodeParams), (hNode, nodeParams)) \
  X(cuGraphKernelNodeGetAttribute, 11000, (CUgraphNode hNode, CUkernelNodeAttrID attr, CUkernelNodeAttrValue *value_out), (hNode, attr, value_out)) \
  X(cuGraphKernelNodeSetAttribute, 11000, (CUgraphNode hNode, CUkernelNodeAttrID attr, const CUkernelNodeAttrValue *value), (hNode, attr, value))

#define CGL_ROWS_EXEC(X) \
  X(cuGraphInstantiateWithParams, 12000, (CUgraphExec *phGraphExec, CUgraph hGraph, CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams), (phGraphExec, hGraph, instantiateParams)) \
  X(cuGraphExecUpdate, 12000, (CUgraphExec hGraphExec, CUgraph hGraph, CUgraphExecUpdateResultInfo *resultInfo), (hGraphExec, hGraph, resultInfo)) \
  X(cuGraphUpload, 11010, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream)) \
  X(cuGraphLaunch, 10000, (CUgraphExec hGraphExec, CUstream hStream), (hGraphExec, hStream)) \
  X(cuGraphExecDestroy, 10000, (CUgraphExec hGraphExec), (hGraphExec)) \
  X(cuGraphExecNodeSetParams, 12020, (CUgraphExec hGraphExec, CUgraphNode hNode, CUgraphNodeParams *nodeParams), (hGraphExec, hNode, nodeParams)) \
  X(cuGraphNodeSetEnabled, 11060, (CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int isEnabled), (hGraphExec, hNode, isEnabled)) \
  X(cuGraphNodeGetEnabled, 11060, (CUgraphExec hGraphExec, CUgraphNode hNode, unsigned int *isEnabled), (hGraphExec, hNode, isEnabled)) \
  X(cuGraphInstantiate, 11040, (CUgraphExec *phGraphExec, CUgraph hGraph, unsigned long long flags), (phGraphExec, hGraph, flags)) \
  X(cuGraphExecGetFlags, 12000, (CUgraphExec hGraphExec, cuuint64_t *flags), (hGraphExec, flags)) \
  X(cuGraphExecKernelNodeSetParams, 12000, (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_KERNEL_NODE_PARAMS *nodeParams), (hGraphExec, hNode, nodeParams)) \
  X(cuGraphExecMemsetNodeSetParams, 10020, (CUgraphExec hGraphExec, CUgraphNode hNode, const CUDA_MEMSET_NODE_PARAMS *memsetParams, CUcontext ctx), (hGraphExec, hNode, memsetParams, ctx))

#define CGL_ROWS_MODULE(X) \
  X(cuModuleLoadDataEx, 2010, (CUmodule *module, const void *image, unsigned int numOptions, CUjit_option *options, void **optionValues), (module, image, numOptions, options, optionValues)) \
  X(cuModuleUnload, 2000, (CUmodule hmod), (hmod)) \
  X(cuModuleGetFunction, 2000, (CUfunction *hfunc, CUmodule hmod, const char *name), (hfunc, hmod, name)) \
  X(cuModuleGetGlobal, 3020, (CUdeviceptr *dptr, size_t *bytes, CUmodule hmod, const char *name), (dptr, bytes, hmod, name)) \
  X(cuFuncGetAttribute, 2020, (int *pi, CUfunction_attribute attrib, CUfunction hfunc), (pi, attrib, hfunc)) \
  X(cuFuncSetAttribute, 9000, (CUfunction hfunc, CUfunction_attribute attrib, int value), (hfunc, attrib, value)) \
  X(cuFuncGetParamInfo, 12040, (CUfunction func, size_t paramIndex, size_t *paramOffset, size_t *paramSize), (func, paramIndex, paramOffset, paramSize)) \
  X(cuLaunchKernel, 4000, (CUfunction f, unsigned int gridDimX, unsigned int gridDimY, unsigned int gridDimZ, unsigned int blockDimX, unsigned int blockDimY, unsigned int blockDimZ, unsigned int sharedMemBytes, CUstream hStream, void **kernelParams, void **extra), (f, gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes, hStream, kernelParams, extra)) \
  X(cuLaunchKernelEx, 11060, (const CUlaunchConfig *config, CUfunction f, void **kernelParams, void **extra), (config, f, kernelParams, extra)) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor, 6050, (int *numBlocks, CUfunction func, int blockSize, size_t dynamicSMemSize), (numBlocks, func, blockSize, dynamicSMemSize)) \
  X(cuOccupancyMaxPotentialBlockSize, 6050, (int *minGridSize, int *blockSize, CUfunction func, CUoccupancyB2DSize blockSizeToDynamicSMemSize, size_t dynamicSMemSize, int blockSizeLimit), (minGridSize, blockSize, func, blockSizeToDynamicSMemSize, dynamicSMemSize, blockSizeLimit)) \
  X(cuModuleLoadData, 2000, (CUmodule *module, const void *image), (module, image)) \
  X(cuFuncGetName, 12030, (const char **name, CUfunction hfunc), (name, hfunc))

#define CGL_DRIVER_ROWS(X) \
  CGL_ROWS_INIT(X) CGL_ROWS_DEVICE(X) CGL_ROWS_CONTEXT(X) CGL_ROWS_MEMORY(X) CGL_ROWS_MEMPOOL(X) CGL_ROWS_VIRTUAL(X) CGL_ROWS_STREAM(X) CGL_ROWS_EVENT(X) CGL_ROWS_CAPTURE(X) CGL_ROWS_GRAPH(X) CGL_ROWS_NODE(X) CGL_ROWS_PARAMS(X) CGL_ROWS_EXEC(X) CGL_ROWS_MODULE(X)
/* clang-format on */

#endif
