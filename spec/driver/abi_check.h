/* What spec/driver/abi_check holds against NVIDIA's cuda.h: every type and
   field of src/driver/cuda_abi.h.  Two translation units expand these lists,
   one with each header; the constants come from the lists of cuda_abi.h itself.
 */
#ifndef CGL_SPEC_ABI_CHECK_H
#define CGL_SPEC_ABI_CHECK_H

#include <stddef.h>

/* clang-format off */
#define ABI_TYPES(X) \
  X(CUresult) \
  X(CUdevice_attribute) \
  X(CUfunction_attribute) \
  X(CUpointer_attribute) \
  X(CUmemPool_attribute) \
  X(CUgraphMem_attribute) \
  X(CUjit_option) \
  X(CUstreamCaptureMode) \
  X(CUstreamCaptureStatus) \
  X(CUgraphNodeType) \
  X(CUmemorytype) \
  X(CUmemAllocationType) \
  X(CUmemAllocationHandleType) \
  X(CUmemLocationType) \
  X(CUmemAccess_flags) \
  X(CUmemAllocationGranularity_flags) \
  X(CUgraphInstantiateResult) \
  X(CUgraphExecUpdateResult) \
  X(CUgraphConditionalNodeType) \
  X(CUgraphChildGraphNodeOwnership) \
  X(CUlaunchAttributeID) \
  X(CUdriverProcAddressQueryResult) \
  X(cuuint64_t) \
  X(CUdevice) \
  X(CUdeviceptr) \
  X(CUmemGenericAllocationHandle) \
  X(CUgraphConditionalHandle) \
  X(CUkernelNodeAttrID) \
  X(CUcontext) \
  X(CUmodule) \
  X(CUfunction) \
  X(CUkernel) \
  X(CUarray) \
  X(CUevent) \
  X(CUstream) \
  X(CUgraph) \
  X(CUgraphNode) \
  X(CUgraphExec) \
  X(CUmemoryPool) \
  X(CUuserObject) \
  X(CUhostFn) \
  X(CUstreamCallback) \
  X(CUoccupancyB2DSize) \
  X(CUuuid) \
  X(CUgraphEdgeData) \
  X(CUmemLocation) \
  X(CUmemAccessDesc) \
  X(CUmemAllocationProp) \
  X(CUmemPoolProps) \
  X(CUDA_MEMCPY2D) \
  X(CUDA_MEMCPY3D) \
  X(CUDA_KERNEL_NODE_PARAMS) \
  X(CUDA_MEMSET_NODE_PARAMS) \
  X(CUDA_HOST_NODE_PARAMS) \
  X(CUDA_MEMCPY_NODE_PARAMS) \
  X(CUDA_MEMSET_NODE_PARAMS_v2) \
  X(CUDA_CHILD_GRAPH_NODE_PARAMS) \
  X(CUDA_EVENT_RECORD_NODE_PARAMS) \
  X(CUDA_EVENT_WAIT_NODE_PARAMS) \
  X(CUDA_MEM_ALLOC_NODE_PARAMS) \
  X(CUDA_MEM_FREE_NODE_PARAMS) \
  X(CUDA_CONDITIONAL_NODE_PARAMS) \
  X(CUgraphNodeParams) \
  X(CUDA_GRAPH_INSTANTIATE_PARAMS) \
  X(CUgraphExecUpdateResultInfo) \
  X(CUlaunchAttributeValue) \
  X(CUlaunchAttribute) \
  X(CUlaunchConfig)

#define ABI_FIELDS(X) \
  X(CUuuid, bytes) \
  X(CUgraphEdgeData, from_port) \
  X(CUgraphEdgeData, to_port) \
  X(CUgraphEdgeData, type) \
  X(CUmemLocation, type) \
  X(CUmemLocation, id) \
  X(CUmemAccessDesc, location) \
  X(CUmemAccessDesc, flags) \
  X(CUmemAllocationProp, type) \
  X(CUmemAllocationProp, requestedHandleTypes) \
  X(CUmemAllocationProp, location) \
  X(CUmemAllocationProp, win32HandleMetaData) \
  X(CUmemAllocationProp, allocFlags) \
  X(CUmemAllocationProp, allocFlags.compressionType) \
  X(CUmemAllocationProp, allocFlags.gpuDirectRDMACapable) \
  X(CUmemAllocationProp, allocFlags.usage) \
  X(CUmemPoolProps, allocType) \
  X(CUmemPoolProps, handleTypes) \
  X(CUmemPoolProps, location) \
  X(CUmemPoolProps, win32SecurityAttributes) \
  X(CUmemPoolProps, maxSize) \
  X(CUmemPoolProps, usage) \
  X(CUDA_MEMCPY2D, srcXInBytes) \
  X(CUDA_MEMCPY2D, srcY) \
  X(CUDA_MEMCPY2D, srcMemoryType) \
  X(CUDA_MEMCPY2D, srcHost) \
  X(CUDA_MEMCPY2D, srcDevice) \
  X(CUDA_MEMCPY2D, srcArray) \
  X(CUDA_MEMCPY2D, srcPitch) \
  X(CUDA_MEMCPY2D, dstXInBytes) \
  X(CUDA_MEMCPY2D, dstY) \
  X(CUDA_MEMCPY2D, dstMemoryType) \
  X(CUDA_MEMCPY2D, dstHost) \
  X(CUDA_MEMCPY2D, dstDevice) \
  X(CUDA_MEMCPY2D, dstArray) \
  X(CUDA_MEMCPY2D, dstPitch) \
  X(CUDA_MEMCPY2D, WidthInBytes) \
  X(CUDA_MEMCPY2D, Height) \
  X(CUDA_MEMCPY3D, srcXInBytes) \
  X(CUDA_MEMCPY3D, srcY) \
  X(CUDA_MEMCPY3D, srcZ) \
  X(CUDA_MEMCPY3D, srcLOD) \
  X(CUDA_MEMCPY3D, srcMemoryType) \
  X(CUDA_MEMCPY3D, srcHost) \
  X(CUDA_MEMCPY3D, srcDevice) \
  X(CUDA_MEMCPY3D, srcArray) \
  X(CUDA_MEMCPY3D, srcPitch) \
  X(CUDA_MEMCPY3D, srcHeight) \
  X(CUDA_MEMCPY3D, dstXInBytes) \
  X(CUDA_MEMCPY3D, dstY) \
  X(CUDA_MEMCPY3D, dstZ) \
  X(CUDA_MEMCPY3D, dstLOD) \
  X(CUDA_MEMCPY3D, dstMemoryType) \
  X(CUDA_MEMCPY3D, dstHost) \
  X(CUDA_MEMCPY3D, dstDevice) \
  X(CUDA_MEMCPY3D, dstArray) \
  X(CUDA_MEMCPY3D, dstPitch) \
  X(CUDA_MEMCPY3D, dstHeight) \
  X(CUDA_MEMCPY3D, WidthInBytes) \
  X(CUDA_MEMCPY3D, Height) \
  X(CUDA_MEMCPY3D, Depth) \
  X(CUDA_KERNEL_NODE_PARAMS, func) \
  X(CUDA_KERNEL_NODE_PARAMS, gridDimX) \
  X(CUDA_KERNEL_NODE_PARAMS, gridDimY) \
  X(CUDA_KERNEL_NODE_PARAMS, gridDimZ) \
  X(CUDA_KERNEL_NODE_PARAMS, blockDimX) \
  X(CUDA_KERNEL_NODE_PARAMS, blockDimY) \
  X(CUDA_KERNEL_NODE_PARAMS, blockDimZ) \
  X(CUDA_KERNEL_NODE_PARAMS, sharedMemBytes) \
  X(CUDA_KERNEL_NODE_PARAMS, kernelParams) \
  X(CUDA_KERNEL_NODE_PARAMS, extra) \
  X(CUDA_KERNEL_NODE_PARAMS, kern) \
  X(CUDA_KERNEL_NODE_PARAMS, ctx) \
  X(CUDA_MEMSET_NODE_PARAMS, dst) \
  X(CUDA_MEMSET_NODE_PARAMS, pitch) \
  X(CUDA_MEMSET_NODE_PARAMS, value) \
  X(CUDA_MEMSET_NODE_PARAMS, elementSize) \
  X(CUDA_MEMSET_NODE_PARAMS, width) \
  X(CUDA_MEMSET_NODE_PARAMS, height) \
  X(CUDA_HOST_NODE_PARAMS, fn) \
  X(CUDA_HOST_NODE_PARAMS, userData) \
  X(CUDA_MEMCPY_NODE_PARAMS, flags) \
  X(CUDA_MEMCPY_NODE_PARAMS, copyCtx) \
  X(CUDA_MEMCPY_NODE_PARAMS, copyParams) \
  X(CUDA_MEMSET_NODE_PARAMS_v2, dst) \
  X(CUDA_MEMSET_NODE_PARAMS_v2, pitch) \
  X(CUDA_MEMSET_NODE_PARAMS_v2, value) \
  X(CUDA_MEMSET_NODE_PARAMS_v2, elementSize) \
  X(CUDA_MEMSET_NODE_PARAMS_v2, width) \
  X(CUDA_MEMSET_NODE_PARAMS_v2, height) \
  X(CUDA_MEMSET_NODE_PARAMS_v2, ctx) \
  X(CUDA_CHILD_GRAPH_NODE_PARAMS, graph) \
  X(CUDA_CHILD_GRAPH_NODE_PARAMS, ownership) \
  X(CUDA_EVENT_RECORD_NODE_PARAMS, event) \
  X(CUDA_EVENT_WAIT_NODE_PARAMS, event) \
  X(CUDA_MEM_ALLOC_NODE_PARAMS, poolProps) \
  X(CUDA_MEM_ALLOC_NODE_PARAMS, accessDescs) \
  X(CUDA_MEM_ALLOC_NODE_PARAMS, accessDescCount) \
  X(CUDA_MEM_ALLOC_NODE_PARAMS, bytesize) \
  X(CUDA_MEM_ALLOC_NODE_PARAMS, dptr) \
  X(CUDA_MEM_FREE_NODE_PARAMS, dptr) \
  X(CUDA_CONDITIONAL_NODE_PARAMS, handle) \
  X(CUDA_CONDITIONAL_NODE_PARAMS, type) \
  X(CUDA_CONDITIONAL_NODE_PARAMS, size) \
  X(CUDA_CONDITIONAL_NODE_PARAMS, phGraph_out) \
  X(CUDA_CONDITIONAL_NODE_PARAMS, ctx) \
  X(CUgraphNodeParams, type) \
  X(CUgraphNodeParams, kernel) \
  X(CUgraphNodeParams, memcpy) \
  X(CUgraphNodeParams, memset) \
  X(CUgraphNodeParams, host) \
  X(CUgraphNodeParams, graph) \
  X(CUgraphNodeParams, eventWait) \
  X(CUgraphNodeParams, eventRecord) \
  X(CUgraphNodeParams, alloc) \
  X(CUgraphNodeParams, free) \
  X(CUgraphNodeParams, conditional) \
  X(CUDA_GRAPH_INSTANTIATE_PARAMS, flags) \
  X(CUDA_GRAPH_INSTANTIATE_PARAMS, hUploadStream) \
  X(CUDA_GRAPH_INSTANTIATE_PARAMS, hErrNode_out) \
  X(CUDA_GRAPH_INSTANTIATE_PARAMS, result_out) \
  X(CUgraphExecUpdateResultInfo, result) \
  X(CUgraphExecUpdateResultInfo, errorNode) \
  X(CUgraphExecUpdateResultInfo, errorFromNode) \
  X(CUlaunchAttributeValue, cooperative) \
  X(CUlaunchAttributeValue, clusterDim) \
  X(CUlaunchAttributeValue, clusterDim.x) \
  X(CUlaunchAttributeValue, clusterDim.y) \
  X(CUlaunchAttributeValue, clusterDim.z) \
  X(CUlaunchAttributeValue, programmaticStreamSerializationAllowed) \
  X(CUlaunchAttributeValue, priority) \
  X(CUlaunchAttribute, id) \
  X(CUlaunchAttribute, value) \
  X(CUlaunchConfig, gridDimX) \
  X(CUlaunchConfig, gridDimY) \
  X(CUlaunchConfig, gridDimZ) \
  X(CUlaunchConfig, blockDimX) \
  X(CUlaunchConfig, blockDimY) \
  X(CUlaunchConfig, blockDimZ) \
  X(CUlaunchConfig, sharedMemBytes) \
  X(CUlaunchConfig, hStream) \
  X(CUlaunchConfig, attrs) \
  X(CUlaunchConfig, numAttrs)
/* clang-format on */

typedef struct abi_type {
  const char *name;
  size_t size, align;
} abi_type;

typedef struct abi_field {
  const char *type, *name;
  size_t offset, size;
} abi_field;

typedef struct abi_constant {
  const char *name;
  long long value;
} abi_constant;

/* One header's answers; the lists end with a NULL name. */
typedef struct abi_view {
  const abi_type *types;
  const abi_field *fields;
  const abi_constant *constants;
} abi_view;

/* The initializers of the three lists, for either header. */
#define ABI_TYPE(name) {#name, sizeof(name), _Alignof(name)},
#define ABI_FIELD(type, name) \
  {#type, #name, offsetof(type, name), sizeof(((type *)0)->name)},
#define ABI_ERROR(name, code, text) {#name, (long long)name},
#define ABI_CONSTANT(name, value) {#name, (long long)name},

/* abi_cuda.c: what cuda.h says; false when there is none that knows all. */
int abi_cuda(abi_view *view);

#endif
