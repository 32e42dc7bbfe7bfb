/* A table that remembers what was made, so that a question need not clean up.
   Only the calls that make and destroy are wrapped; the rest go straight to
   the driver. */
#include "driver/conformance/ask.h"

#include <pthread.h>
#include <stdint.h>

typedef enum kind {
  EXEC, /* in the order in which they are destroyed */
  GRAPH,
  STREAM,
  EVENT,
  MODULE,
  MEMORY,
  POOL,
  PINNED,
  REGISTERED,
  HANDLE,
  RESERVED,
  KINDS
} kind;

typedef struct object {
  kind kind;
  uintptr_t handle;
  size_t bytes; /* RESERVED */
  int borrowed; /* STREAM: captures into a graph that is not its own */
} object;

enum { MAX_OBJECTS = 1024 };

static const cgl_driver *under;
static cgl_driver table;
static object objects[MAX_OBJECTS];
static size_t count;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;


static object *find(kind k, uintptr_t handle) {
  for (size_t i = 0; i < count; i++)
    if (objects[i].kind == k && objects[i].handle == handle)
      return &objects[i];
  return NULL;
}


static CUresult made(CUresult answer, kind k, uintptr_t handle, size_t bytes) {
  pthread_mutex_lock(&mutex);
  if (answer == CUDA_SUCCESS && handle != 0 && find(k, handle) == NULL &&
      count < MAX_OBJECTS)
    objects[count++] = (object){k, handle, bytes, 0};
  pthread_mutex_unlock(&mutex);
  return answer;
}


static CUresult gone(CUresult answer, kind k, uintptr_t handle) {
  pthread_mutex_lock(&mutex);
  object *o = answer == CUDA_SUCCESS ? find(k, handle) : NULL;
  if (o != NULL)
    *o = objects[--count];
  pthread_mutex_unlock(&mutex);
  return answer;
}


#define MAKES(name, k, parameters, arguments, out)                            \
  static CUresult make_##name parameters {                                    \
    CUresult answer = under->name arguments;                                  \
    return made(answer, k, answer == CUDA_SUCCESS ? (uintptr_t)(out) : 0, 0); \
  }
#define ENDS(name, k, parameters, arguments, handle)            \
  static CUresult end_##name parameters {                       \
    return gone(under->name arguments, k, (uintptr_t)(handle)); \
  }

MAKES(cuStreamCreate, STREAM, (CUstream * s, unsigned f), (s, f), *s)
MAKES(cuStreamCreateWithPriority, STREAM, (CUstream * s, unsigned f, int p),
      (s, f, p), *s)
ENDS(cuStreamDestroy, STREAM, (CUstream s), (s), s)
MAKES(cuEventCreate, EVENT, (CUevent * e, unsigned f), (e, f), *e)
ENDS(cuEventDestroy, EVENT, (CUevent e), (e), e)
MAKES(cuGraphCreate, GRAPH, (CUgraph * g, unsigned f), (g, f), *g)
MAKES(cuGraphClone, GRAPH, (CUgraph * g, CUgraph from), (g, from), *g)
ENDS(cuGraphDestroy, GRAPH, (CUgraph g), (g), g)
MAKES(cuGraphInstantiate, EXEC,
      (CUgraphExec * e, CUgraph g, unsigned long long f), (e, g, f), *e)
MAKES(cuGraphInstantiateWithParams, EXEC,
      (CUgraphExec * e, CUgraph g, CUDA_GRAPH_INSTANTIATE_PARAMS *p), (e, g, p),
      *e)
ENDS(cuGraphExecDestroy, EXEC, (CUgraphExec e), (e), e)
MAKES(cuModuleLoadData, MODULE, (CUmodule * m, const void *i), (m, i), *m)
MAKES(cuModuleLoadDataEx, MODULE,
      (CUmodule * m, const void *i, unsigned n, CUjit_option *o, void **v),
      (m, i, n, o, v), *m)
ENDS(cuModuleUnload, MODULE, (CUmodule m), (m), m)
MAKES(cuMemAlloc, MEMORY, (CUdeviceptr * p, size_t n), (p, n), *p)
MAKES(cuMemAllocAsync, MEMORY, (CUdeviceptr * p, size_t n, CUstream s),
      (p, n, s), *p)
ENDS(cuMemFree, MEMORY, (CUdeviceptr p), (p), p)
ENDS(cuMemFreeAsync, MEMORY, (CUdeviceptr p, CUstream s), (p, s), p)
MAKES(cuMemAllocFromPoolAsync, MEMORY,
      (CUdeviceptr * p, size_t n, CUmemoryPool pool, CUstream s),
      (p, n, pool, s), *p)
MAKES(cuMemPoolCreate, POOL, (CUmemoryPool * p, const CUmemPoolProps *props),
      (p, props), *p)
ENDS(cuMemPoolDestroy, POOL, (CUmemoryPool p), (p), p)
MAKES(cuMemHostAlloc, PINNED, (void **p, size_t n, unsigned f), (p, n, f), *p)
MAKES(cuMemAllocHost, PINNED, (void **p, size_t n), (p, n), *p)
ENDS(cuMemFreeHost, PINNED, (void *p), (p), p)
MAKES(cuMemHostRegister, REGISTERED, (void *p, size_t n, unsigned f), (p, n, f),
      p)
ENDS(cuMemHostUnregister, REGISTERED, (void *p), (p), p)
MAKES(cuMemCreate, HANDLE,
      (CUmemGenericAllocationHandle * h, size_t n, const CUmemAllocationProp *p,
       unsigned long long f),
      (h, n, p, f), *h)
ENDS(cuMemRelease, HANDLE, (CUmemGenericAllocationHandle h), (h), h)


static CUresult end_cuMemAddressFree(CUdeviceptr p, size_t n) {
  return gone(under->cuMemAddressFree(p, n), RESERVED, (uintptr_t)p);
}


static CUresult make_cuMemAddressReserve(CUdeviceptr *p, size_t n, size_t align,
                                         CUdeviceptr at, unsigned long long f) {
  CUresult answer = under->cuMemAddressReserve(p, n, align, at, f);
  return made(answer, RESERVED, answer == CUDA_SUCCESS ? (uintptr_t)*p : 0, n);
}


static CUresult make_cuStreamBeginCaptureToGraph(CUstream s, CUgraph g,
                                                 const CUgraphNode *deps,
                                                 const CUgraphEdgeData *data,
                                                 size_t n,
                                                 CUstreamCaptureMode mode) {
  CUresult answer =
      under->cuStreamBeginCaptureToGraph(s, g, deps, data, n, mode);
  object *o = answer == CUDA_SUCCESS ? find(STREAM, (uintptr_t)s) : NULL;
  if (o != NULL)
    o->borrowed = 1;
  return answer;
}


static CUresult make_cuStreamEndCapture(CUstream s, CUgraph *g) {
  CUresult answer = under->cuStreamEndCapture(s, g);
  object *o = find(STREAM, (uintptr_t)s);
  int borrowed = o != NULL && o->borrowed;
  if (o != NULL && answer != CUDA_ERROR_ILLEGAL_STATE)
    o->borrowed = 0;
  return borrowed || answer != CUDA_SUCCESS || g == NULL
             ? answer
             : made(answer, GRAPH, (uintptr_t)*g, 0);
}


const cgl_driver *track(const cgl_driver *driver) {
  under = driver;
  table = *driver;
  table.cuStreamCreate = make_cuStreamCreate;
  table.cuStreamCreateWithPriority = make_cuStreamCreateWithPriority;
  table.cuStreamDestroy = end_cuStreamDestroy;
  table.cuEventCreate = make_cuEventCreate;
  table.cuEventDestroy = end_cuEventDestroy;
  table.cuGraphCreate = make_cuGraphCreate;
  table.cuGraphClone = make_cuGraphClone;
  table.cuGraphDestroy = end_cuGraphDestroy;
  table.cuGraphInstantiate = make_cuGraphInstantiate;
  table.cuGraphInstantiateWithParams = make_cuGraphInstantiateWithParams;
  table.cuGraphExecDestroy = end_cuGraphExecDestroy;
  table.cuModuleLoadData = make_cuModuleLoadData;
  table.cuModuleLoadDataEx = make_cuModuleLoadDataEx;
  table.cuModuleUnload = end_cuModuleUnload;
  table.cuMemAlloc = make_cuMemAlloc;
  table.cuMemAllocAsync = make_cuMemAllocAsync;
  table.cuMemFree = end_cuMemFree;
  table.cuMemFreeAsync = end_cuMemFreeAsync;
  table.cuMemAllocFromPoolAsync = make_cuMemAllocFromPoolAsync;
  table.cuMemPoolCreate = make_cuMemPoolCreate;
  table.cuMemPoolDestroy = end_cuMemPoolDestroy;
  table.cuMemHostAlloc = make_cuMemHostAlloc;
  table.cuMemAllocHost = make_cuMemAllocHost;
  table.cuMemFreeHost = end_cuMemFreeHost;
  table.cuMemHostRegister = make_cuMemHostRegister;
  table.cuMemHostUnregister = end_cuMemHostUnregister;
  table.cuMemCreate = make_cuMemCreate;
  table.cuMemRelease = end_cuMemRelease;
  table.cuMemAddressReserve = make_cuMemAddressReserve;
  table.cuMemAddressFree = end_cuMemAddressFree;
  table.cuStreamBeginCaptureToGraph = make_cuStreamBeginCaptureToGraph;
  table.cuStreamEndCapture = make_cuStreamEndCapture;
  return &table;
}


void track_forget(CUgraph graph) {
  gone(CUDA_SUCCESS, GRAPH, (uintptr_t)graph);
}


static void end_captures(void) {
  for (size_t i = 0; i < count; i++) {
    if (objects[i].kind != STREAM)
      continue;
    CUstream s = (CUstream)objects[i].handle;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    CUgraph g;
    under->cuStreamIsCapturing(s, &status);
    if (status != CU_STREAM_CAPTURE_STATUS_NONE)
      table.cuStreamEndCapture(s, &g);
  }
}


static void destroy(const object *o) {
  switch (o->kind) {
  case EXEC:
    under->cuGraphExecDestroy((CUgraphExec)o->handle);
    break;
  case GRAPH:
    under->cuGraphDestroy((CUgraph)o->handle);
    break;
  case STREAM:
    under->cuStreamDestroy((CUstream)o->handle);
    break;
  case EVENT:
    under->cuEventDestroy((CUevent)o->handle);
    break;
  case MODULE:
    under->cuModuleUnload((CUmodule)o->handle);
    break;
  case MEMORY: /* of an alloc node: answers that it is none, or frees it */
    under->cuMemFree((CUdeviceptr)o->handle);
    break;
  case POOL:
    under->cuMemPoolDestroy((CUmemoryPool)o->handle);
    break;
  case PINNED:
    under->cuMemFreeHost((void *)o->handle);
    break;
  case REGISTERED:
    under->cuMemHostUnregister((void *)o->handle);
    break;
  case HANDLE:
    under->cuMemRelease((CUmemGenericAllocationHandle)o->handle);
    break;
  default:
    under->cuMemUnmap((CUdeviceptr)o->handle, o->bytes);
    under->cuMemAddressFree((CUdeviceptr)o->handle, o->bytes);
  }
}


void track_sweep(void) {
  end_captures();
  under->cuCtxSynchronize();
  for (int k = 0; k < KINDS; k++)
    for (size_t i = 0; i < count; i++)
      if (objects[i].kind == (kind)k)
        destroy(&objects[i]);
  count = 0;
}
