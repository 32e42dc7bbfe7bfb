/* The CUDA driver API's types and constants, as far as the driver table uses
   them, declared by us.
   Idea: nothing of ours needs a CUDA toolkit to build, and one binary runs
   with and without a GPU; so the names, sizes and offsets are stated here
   once.  The names are the driver's own.
   Invariant: layout and values equal those of NVIDIA's cuda.h; where a
   toolkit is installed, spec/abi_check holds every line against it. */
#ifndef CGL_DRIVER_CUDA_ABI_H
#define CGL_DRIVER_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

#define CGL_CUDA_ERRORS(X)                                                     \
  X(CUDA_SUCCESS, 0, "no error")                                               \
  X(CUDA_ERROR_INVALID_VALUE, 1, "invalid argument")                           \
  X(CUDA_ERROR_OUT_OF_MEMORY, 2, "out of memory")                              \
  X(CUDA_ERROR_NOT_INITIALIZED, 3, "the driver is not initialized")            \
  X(CUDA_ERROR_DEINITIALIZED, 4, "the driver is shutting down")                \
  X(CUDA_ERROR_STUB_LIBRARY, 34, "the loaded driver is a stub library")        \
  X(CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER, 36,                                 \
    "the call needs a newer driver")                                           \
  X(CUDA_ERROR_DEVICE_UNAVAILABLE, 46, "the device is busy or unavailable")    \
  X(CUDA_ERROR_NO_DEVICE, 100, "no CUDA-capable device is detected")           \
  X(CUDA_ERROR_INVALID_DEVICE, 101, "invalid device ordinal")                  \
  X(CUDA_ERROR_INVALID_IMAGE, 200, "the kernel image is invalid")              \
  X(CUDA_ERROR_INVALID_CONTEXT, 201, "invalid device context")                 \
  X(CUDA_ERROR_MAP_FAILED, 205, "a map operation failed")                      \
  X(CUDA_ERROR_UNMAP_FAILED, 206, "an unmap operation failed")                 \
  X(CUDA_ERROR_ALREADY_MAPPED, 208, "the resource is already mapped")          \
  X(CUDA_ERROR_NO_BINARY_FOR_GPU, 209, "the image holds no code for this GPU") \
  X(CUDA_ERROR_NOT_MAPPED, 211, "the resource is not mapped")                  \
  X(CUDA_ERROR_ECC_UNCORRECTABLE, 214, "uncorrectable ECC error")              \
  X(CUDA_ERROR_UNSUPPORTED_LIMIT, 215, "the limit is not supported")           \
  X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217,                                   \
    "peer access is not supported between the devices")                        \
  X(CUDA_ERROR_INVALID_PTX, 218, "PTX compilation failed")                     \
  X(CUDA_ERROR_UNSUPPORTED_PTX_VERSION, 222,                                   \
    "the PTX version is newer than the driver")                                \
  X(CUDA_ERROR_INVALID_SOURCE, 300, "the device kernel source is invalid")     \
  X(CUDA_ERROR_FILE_NOT_FOUND, 301, "file not found")                          \
  X(CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, 302,                            \
    "a shared object symbol was not found")                                    \
  X(CUDA_ERROR_SHARED_OBJECT_INIT_FAILED, 303,                                 \
    "a shared object failed to initialize")                                    \
  X(CUDA_ERROR_OPERATING_SYSTEM, 304, "an operating system call failed")       \
  X(CUDA_ERROR_INVALID_HANDLE, 400, "invalid resource handle")                 \
  X(CUDA_ERROR_ILLEGAL_STATE, 401,                                             \
    "the object is not in a valid state for the call")                         \
  X(CUDA_ERROR_LOSSY_QUERY, 402,                                               \
    "the query would drop semantically important information")                 \
  X(CUDA_ERROR_NOT_FOUND, 500, "named symbol not found")                       \
  X(CUDA_ERROR_NOT_READY, 600, "the device work is not ready")                 \
  X(CUDA_ERROR_ILLEGAL_ADDRESS, 700, "a kernel touched an illegal address")    \
  X(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, 701,                                   \
    "too many resources requested for the launch")                             \
  X(CUDA_ERROR_LAUNCH_TIMEOUT, 702, "the launch timed out")                    \
  X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704,                               \
    "peer access is already enabled")                                          \
  X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705,                                   \
    "peer access has not been enabled")                                        \
  X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709, "the context is destroyed")          \
  X(CUDA_ERROR_ASSERT, 710, "a device-side assert failed")                     \
  X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712,                            \
    "the host memory is already registered")                                   \
  X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713,                                \
    "the host memory is not registered")                                       \
  X(CUDA_ERROR_HARDWARE_STACK_ERROR, 714, "a kernel overflowed its stack")     \
  X(CUDA_ERROR_ILLEGAL_INSTRUCTION, 715,                                       \
    "a kernel met an illegal instruction")                                     \
  X(CUDA_ERROR_MISALIGNED_ADDRESS, 716, "a kernel used a misaligned address")  \
  X(CUDA_ERROR_INVALID_ADDRESS_SPACE, 717,                                     \
    "a kernel used an address of the wrong space")                             \
  X(CUDA_ERROR_INVALID_PC, 718, "a kernel jumped to an invalid address")       \
  X(CUDA_ERROR_LAUNCH_FAILED, 719, "a kernel failed")                          \
  X(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, 720,                              \
    "too many blocks in a cooperative launch")                                 \
  X(CUDA_ERROR_NOT_PERMITTED, 800, "the call is not permitted here")           \
  X(CUDA_ERROR_NOT_SUPPORTED, 801, "the call is not supported")                \
  X(CUDA_ERROR_SYSTEM_NOT_READY, 802, "the system is not ready")               \
  X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803,                                    \
    "driver and library versions do not match")                                \
  X(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, 900,                                \
    "the operation is not permitted while a stream is capturing")              \
  X(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, 901,                                \
    "the capture was invalidated by an earlier error")                         \
  X(CUDA_ERROR_STREAM_CAPTURE_MERGE, 902,                                      \
    "the operation would merge two independent captures")                      \
  X(CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, 903,                                  \
    "the capture was not begun in this stream")                                \
  X(CUDA_ERROR_STREAM_CAPTURE_UNJOINED, 904,                                   \
    "the capture has a fork that was never joined")                            \
  X(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, 905,                                  \
    "a dependency would cross the capture's boundary")                         \
  X(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, 906,                                   \
    "a disallowed implicit dependency from the default stream")                \
  X(CUDA_ERROR_CAPTURED_EVENT, 907,                                            \
    "the event was last recorded in a capturing stream")                       \
  X(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, 908,                               \
    "the capture was begun by another thread")                                 \
  X(CUDA_ERROR_TIMEOUT, 909, "the wait timed out")                             \
  X(CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE, 910,                                 \
    "the executable graph cannot take the update")                             \
  X(CUDA_ERROR_EXTERNAL_DEVICE, 911, "an external device failed")              \
  X(CUDA_ERROR_INVALID_CLUSTER_SIZE, 912, "invalid cluster size")              \
  X(CUDA_ERROR_FUNCTION_NOT_LOADED, 913, "the function is not loaded")         \
  X(CUDA_ERROR_UNKNOWN, 999, "unknown error")

#define CGL_CUDA_CONSTANTS(X)                                     \
  X(CU_STREAM_DEFAULT, 0)                                         \
  X(CU_STREAM_NON_BLOCKING, 1)                                    \
  X(CU_STREAM_CAPTURE_MODE_GLOBAL, 0)                             \
  X(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, 1)                       \
  X(CU_STREAM_CAPTURE_MODE_RELAXED, 2)                            \
  X(CU_STREAM_CAPTURE_STATUS_NONE, 0)                             \
  X(CU_STREAM_CAPTURE_STATUS_ACTIVE, 1)                           \
  X(CU_STREAM_CAPTURE_STATUS_INVALIDATED, 2)                      \
  X(CU_MEMORYTYPE_HOST, 1)                                        \
  X(CU_MEMORYTYPE_DEVICE, 2)                                      \
  X(CU_MEMORYTYPE_ARRAY, 3)                                       \
  X(CU_MEMORYTYPE_UNIFIED, 4)                                     \
  X(CU_GRAPH_NODE_TYPE_KERNEL, 0)                                 \
  X(CU_GRAPH_NODE_TYPE_MEMCPY, 1)                                 \
  X(CU_GRAPH_NODE_TYPE_MEMSET, 2)                                 \
  X(CU_GRAPH_NODE_TYPE_HOST, 3)                                   \
  X(CU_GRAPH_NODE_TYPE_GRAPH, 4)                                  \
  X(CU_GRAPH_NODE_TYPE_EMPTY, 5)                                  \
  X(CU_GRAPH_NODE_TYPE_WAIT_EVENT, 6)                             \
  X(CU_GRAPH_NODE_TYPE_EVENT_RECORD, 7)                           \
  X(CU_GRAPH_NODE_TYPE_MEM_ALLOC, 10)                             \
  X(CU_GRAPH_NODE_TYPE_MEM_FREE, 11)                              \
  X(CU_GRAPH_NODE_TYPE_CONDITIONAL, 13)                           \
  X(CUDA_GRAPH_INSTANTIATE_SUCCESS, 0)                            \
  X(CUDA_GRAPH_INSTANTIATE_ERROR, 1)                              \
  X(CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, 2)                  \
  X(CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED, 3)       \
  X(CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED, 4)        \
  X(CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED, 5)          \
  X(CU_MEM_LOCATION_TYPE_DEVICE, 1)                               \
  X(CU_MEM_LOCATION_TYPE_HOST, 2)                                 \
  X(CU_MEM_ALLOCATION_TYPE_PINNED, 1)                             \
  X(CU_GRAPH_EXEC_UPDATE_SUCCESS, 0)                              \
  X(CU_GRAPH_EXEC_UPDATE_ERROR, 1)                                \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, 2)               \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED, 3)              \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED, 4)               \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, 5)             \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED, 6)                  \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE, 7)    \
  X(CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED, 8)             \
  X(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH, 1)           \
  X(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD, 2)                        \
  X(CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH, 4)                 \
  X(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY, 8)             \
  X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1)                 \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 2)                       \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 3)                       \
  X(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 4)                       \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 5)                        \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 6)                        \
  X(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 7)                        \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 8)           \
  X(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 10)                            \
  X(CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 13)                           \
  X(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 16)                 \
  X(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 41)                   \
  X(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 38)                        \
  X(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 39)       \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)             \
  X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)             \
  X(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 97)    \
  X(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 102) \
  X(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 115)              \
  X(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 95)                   \
  X(CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 40)                   \
  X(CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 31)                   \
  X(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 0)                   \
  X(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 1)                       \
  X(CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES, 2)                        \
  X(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 3)                        \
  X(CU_FUNC_ATTRIBUTE_NUM_REGS, 4)                                \
  X(CU_FUNC_ATTRIBUTE_PTX_VERSION, 5)                             \
  X(CU_FUNC_ATTRIBUTE_BINARY_VERSION, 6)                          \
  X(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 8)           \
  X(CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 9)        \
  X(CU_POINTER_ATTRIBUTE_CONTEXT, 1)                              \
  X(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 2)                          \
  X(CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 3)                       \
  X(CU_POINTER_ATTRIBUTE_HOST_POINTER, 4)                         \
  X(CU_POINTER_ATTRIBUTE_BUFFER_ID, 7)                            \
  X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)                       \
  X(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 11)                    \
  X(CU_POINTER_ATTRIBUTE_RANGE_SIZE, 12)                          \
  X(CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 17)                      \
  X(CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES, 1)           \
  X(CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC, 2)                 \
  X(CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, 3)         \
  X(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, 4)                         \
  X(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, 5)                      \
  X(CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, 6)                         \
  X(CU_MEMPOOL_ATTR_USED_MEM_CURRENT, 7)                          \
  X(CU_MEMPOOL_ATTR_USED_MEM_HIGH, 8)                             \
  X(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, 0)                        \
  X(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, 1)                           \
  X(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, 2)                    \
  X(CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH, 3)                       \
  X(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 2)                           \
  X(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, 4)                     \
  X(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 6)     \
  X(CU_LAUNCH_ATTRIBUTE_PRIORITY, 8)                              \
  X(CU_MEM_ACCESS_FLAGS_PROT_NONE, 0)                             \
  X(CU_MEM_ACCESS_FLAGS_PROT_READ, 1)                             \
  X(CU_MEM_ACCESS_FLAGS_PROT_READWRITE, 3)                        \
  X(CU_MEM_ALLOC_GRANULARITY_MINIMUM, 0)                          \
  X(CU_MEM_ALLOC_GRANULARITY_RECOMMENDED, 1)                      \
  X(CU_EVENT_DEFAULT, 0)                                          \
  X(CU_EVENT_BLOCKING_SYNC, 1)                                    \
  X(CU_EVENT_DISABLE_TIMING, 2)                                   \
  X(CU_EVENT_INTERPROCESS, 4)                                     \
  X(CU_EVENT_RECORD_EXTERNAL, 1)                                  \
  X(CU_EVENT_WAIT_EXTERNAL, 1)                                    \
  X(CU_GRAPH_COND_TYPE_IF, 0)                                     \
  X(CU_GRAPH_COND_TYPE_WHILE, 1)                                  \
  X(CU_GRAPH_COND_TYPE_SWITCH, 2)                                 \
  X(CU_GRAPH_COND_ASSIGN_DEFAULT, 1)                              \
  X(CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE, 0)                      \
  X(CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE, 1)                       \
  X(CU_STREAM_ADD_CAPTURE_DEPENDENCIES, 0)                        \
  X(CU_STREAM_SET_CAPTURE_DEPENDENCIES, 1)                        \
  X(CU_USER_OBJECT_NO_DESTRUCTOR_SYNC, 1)                         \
  X(CU_GRAPH_USER_OBJECT_MOVE, 1)                                 \
  X(CU_GRAPH_DEPENDENCY_TYPE_DEFAULT, 0)                          \
  X(CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC, 1)                     \
  X(CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC, 1)                    \
  X(CU_MEMHOSTALLOC_PORTABLE, 1)                                  \
  X(CU_MEMHOSTALLOC_DEVICEMAP, 2)                                 \
  X(CU_GET_PROC_ADDRESS_SUCCESS, 0)                               \
  X(CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, 1)                      \
  X(CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, 2)                \
  X(CU_MEM_HANDLE_TYPE_NONE, 0)                                   \
  X(CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 1)                  \
  X(CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE, 1)

/* spec/abi_cuda.c wants the lists alone, beside NVIDIA's own types. */
#ifndef CGL_CUDA_ABI_LISTS

enum {
#define X(name, code, text) name = code,
  CGL_CUDA_ERRORS(X)
#undef X
};

enum {
#define X(name, value) name = value,
  CGL_CUDA_CONSTANTS(X)
#undef X
};

/* Enumerations travel as int; their values are the two lists above. */
typedef int CUresult, CUdevice_attribute, CUfunction_attribute,
    CUpointer_attribute, CUmemPool_attribute, CUgraphMem_attribute,
    CUjit_option, CUstreamCaptureMode, CUstreamCaptureStatus, CUgraphNodeType,
    CUmemorytype, CUmemAllocationType, CUmemAllocationHandleType,
    CUmemLocationType, CUmemAccess_flags, CUmemAllocationGranularity_flags,
    CUgraphInstantiateResult, CUgraphExecUpdateResult,
    CUgraphConditionalNodeType, CUgraphChildGraphNodeOwnership,
    CUlaunchAttributeID, CUdriverProcAddressQueryResult;

typedef uint64_t cuuint64_t;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUmemGenericAllocationHandle;
typedef cuuint64_t CUgraphConditionalHandle;

typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUarray_st *CUarray;
typedef struct CUevent_st *CUevent;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUuserObject_st *CUuserObject;

typedef void (*CUhostFn)(void *userData);
typedef void (*CUstreamCallback)(CUstream hStream, CUresult status,
                                 void *userData);
typedef size_t (*CUoccupancyB2DSize)(int blockSize);

#define CU_STREAM_LEGACY ((CUstream)0x1)
#define CU_STREAM_PER_THREAD ((CUstream)0x2)

typedef struct CUuuid_st {
  char bytes[16];
} CUuuid;

typedef struct CUgraphEdgeData_st {
  unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

typedef struct CUmemLocation_st {
  CUmemLocationType type;
  int id;
} CUmemLocation;

typedef struct CUmemAccessDesc_st {
  CUmemLocation location;
  CUmemAccess_flags flags;
} CUmemAccessDesc;

typedef struct CUmemAllocationProp_st {
  CUmemAllocationType type;
  CUmemAllocationHandleType requestedHandleTypes;
  CUmemLocation location;
  void *win32HandleMetaData;
  struct {
    unsigned char compressionType, gpuDirectRDMACapable;
    unsigned short usage;
    unsigned char reserved[4];
  } allocFlags;
} CUmemAllocationProp;

typedef struct CUmemPoolProps_st {
  CUmemAllocationType allocType;
  CUmemAllocationHandleType handleTypes;
  CUmemLocation location;
  void *win32SecurityAttributes;
  size_t maxSize;
  unsigned short usage;
  unsigned char reserved[54];
} CUmemPoolProps;

typedef struct CUDA_MEMCPY2D_st {
  size_t srcXInBytes, srcY;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  size_t srcPitch;
  size_t dstXInBytes, dstY;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  size_t dstPitch;
  size_t WidthInBytes, Height;
} CUDA_MEMCPY2D;

typedef struct CUDA_MEMCPY3D_st {
  size_t srcXInBytes, srcY, srcZ, srcLOD;
  CUmemorytype srcMemoryType;
  const void *srcHost;
  CUdeviceptr srcDevice;
  CUarray srcArray;
  void *reserved0;
  size_t srcPitch, srcHeight;
  size_t dstXInBytes, dstY, dstZ, dstLOD;
  CUmemorytype dstMemoryType;
  void *dstHost;
  CUdeviceptr dstDevice;
  CUarray dstArray;
  void *reserved1;
  size_t dstPitch, dstHeight;
  size_t WidthInBytes, Height, Depth;
} CUDA_MEMCPY3D;

typedef struct CUDA_KERNEL_NODE_PARAMS_st {
  CUfunction func;
  unsigned int gridDimX, gridDimY, gridDimZ;
  unsigned int blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  void **kernelParams;
  void **extra;
  CUkernel kern;
  CUcontext ctx;
} CUDA_KERNEL_NODE_PARAMS;

typedef struct CUDA_MEMSET_NODE_PARAMS_st {
  CUdeviceptr dst;
  size_t pitch;
  unsigned int value, elementSize;
  size_t width, height;
} CUDA_MEMSET_NODE_PARAMS;

typedef struct CUDA_HOST_NODE_PARAMS_st {
  CUhostFn fn;
  void *userData;
} CUDA_HOST_NODE_PARAMS;

typedef struct CUDA_MEMCPY_NODE_PARAMS_st {
  int flags, reserved;
  CUcontext copyCtx;
  CUDA_MEMCPY3D copyParams;
} CUDA_MEMCPY_NODE_PARAMS;

typedef struct CUDA_MEMSET_NODE_PARAMS_v2_st {
  CUdeviceptr dst;
  size_t pitch;
  unsigned int value, elementSize;
  size_t width, height;
  CUcontext ctx;
} CUDA_MEMSET_NODE_PARAMS_v2;

typedef struct CUDA_CHILD_GRAPH_NODE_PARAMS_st {
  CUgraph graph;
  CUgraphChildGraphNodeOwnership ownership;
} CUDA_CHILD_GRAPH_NODE_PARAMS;

typedef struct CUDA_EVENT_NODE_PARAMS_st {
  CUevent event;
} CUDA_EVENT_RECORD_NODE_PARAMS, CUDA_EVENT_WAIT_NODE_PARAMS;

typedef struct CUDA_MEM_ALLOC_NODE_PARAMS_st {
  CUmemPoolProps poolProps;
  const CUmemAccessDesc *accessDescs;
  size_t accessDescCount;
  size_t bytesize;
  CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct CUDA_MEM_FREE_NODE_PARAMS_st {
  CUdeviceptr dptr;
} CUDA_MEM_FREE_NODE_PARAMS;

typedef struct CUDA_CONDITIONAL_NODE_PARAMS_st {
  CUgraphConditionalHandle handle;
  CUgraphConditionalNodeType type;
  unsigned int size;
  CUgraph *phGraph_out;
  CUcontext ctx;
} CUDA_CONDITIONAL_NODE_PARAMS;

typedef struct CUgraphNodeParams_st {
  CUgraphNodeType type;
  int reserved0[3];
  union {
    long long reserved1[29];
    CUDA_KERNEL_NODE_PARAMS kernel;
    CUDA_MEMCPY_NODE_PARAMS memcpy;
    CUDA_MEMSET_NODE_PARAMS_v2 memset;
    CUDA_HOST_NODE_PARAMS host;
    CUDA_CHILD_GRAPH_NODE_PARAMS graph;
    CUDA_EVENT_WAIT_NODE_PARAMS eventWait;
    CUDA_EVENT_RECORD_NODE_PARAMS eventRecord;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CUDA_MEM_FREE_NODE_PARAMS free;
    CUDA_CONDITIONAL_NODE_PARAMS conditional;
  };
  long long reserved2;
} CUgraphNodeParams;

typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st {
  cuuint64_t flags;
  CUstream hUploadStream;
  CUgraphNode hErrNode_out;
  CUgraphInstantiateResult result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef struct CUgraphExecUpdateResultInfo_st {
  CUgraphExecUpdateResult result;
  CUgraphNode errorNode, errorFromNode;
} CUgraphExecUpdateResultInfo;

typedef union CUlaunchAttributeValue_union {
  char pad[64];
  uint64_t aligned; /* as cuda.h's union, by its pointers */
  int cooperative;
  struct {
    unsigned int x, y, z;
  } clusterDim;
  int programmaticStreamSerializationAllowed;
  int priority;
} CUlaunchAttributeValue;

typedef struct CUlaunchAttribute_st {
  CUlaunchAttributeID id;
  char pad[4];
  CUlaunchAttributeValue value;
} CUlaunchAttribute;

typedef CUlaunchAttributeID CUkernelNodeAttrID;
typedef CUlaunchAttributeValue CUkernelNodeAttrValue;

typedef struct CUlaunchConfig_st {
  unsigned int gridDimX, gridDimY, gridDimZ;
  unsigned int blockDimX, blockDimY, blockDimZ;
  unsigned int sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned int numAttrs;
} CUlaunchConfig;

#endif /* CGL_CUDA_ABI_LISTS */
#endif
