/* Devices, contexts, errors by name, entry points: what needs no stream. */
#include "driver/conformance/ask.h"

#include <stdio.h>
#include <string.h>

enum { NO_DEVICE = 99 };

static CUstream s;
static CUevent ev;


/* ---- errors ---- */

static void error_names(void) {
  static const int codes[] = {
#define X(name, code, text) code,
      CGL_CUDA_ERRORS(X)
#undef X
  };
  for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
    char what[16];
    snprintf(what, sizeof what, "%d", codes[i]);
    say(what, codes[i]);
  }
}


/* The list of errors against the driver's own names. */
static void error_list(void) {
  static const struct {
    const char *name;
    int code;
  } list[] = {
#define X(name, code, text) {#name, code},
      CGL_CUDA_ERRORS(X)
#undef X
  };
  long same = 0, told = 0;
  for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
    const char *name = NULL, *string = NULL;
    cu->cuGetErrorName(list[i].code, &name);
    same += name != NULL && strcmp(name, list[i].name) == 0;
    cu->cuGetErrorString(list[i].code, &string);
    told += string != NULL && string[0] != '\0';
  }
  num("names differ", (long)(sizeof list / sizeof *list) - same);
  num("without a sentence", (long)(sizeof list / sizeof *list) - told);
}


static void error_none(void) {
  static const int none[] = {-1, 9, 33, 299, 1000, 1 << 20};
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    const char *name = "?", *string = "?";
    S(cuGetErrorName(none[i], &name));
    num("null", name == NULL);
    S(cuGetErrorString(none[i], &string));
    num("null", string == NULL);
  }
}


/* ---- the driver itself ---- */

static void versions(void) {
  int version = 0;
  S(cuDriverGetVersion(&version));
  num("12.3 or newer", version >= 12030);
  S(cuDriverGetVersion(0));
  S(cuInit(0));
  S(cuInit(1));
}


static void entries(void) {
  void *entry = &s;
  CUdriverProcAddressQueryResult found = 9;
  S(cuGetProcAddress("cuMemAlloc", &entry, 12000, 0, &found));
  num("found", found);
  num("null", entry == NULL);
  S(cuGetProcAddress("cuMemAlloc", &entry, 12000, 0, 0));
  S(cuGetProcAddress("cuStreamBeginCaptureToGraph", &entry, 12000, 0, &found));
  num("found", found);
  num("null", entry == NULL);
  entry = &s;
  S(cuGetProcAddress("cuNoSuchCall", &entry, 12000, 0, &found));
  num("found", found);
  num("null", entry == NULL);
  S(cuGetProcAddress("cuNoSuchCall", &entry, 12000, 0, 0));
}


/* ---- devices ---- */

static void device_facts(void) {
  CUdevice device = 9;
  int count = 0;
  size_t total = 0, free = 0, told = 0;
  S(cuDeviceGetCount(&count));
  num("some", count > 0);
  S(cuDeviceGetCount(0));
  S(cuDeviceGet(&device, 0));
  num("device", device);
  S(cuDeviceGet(0, 0));
  S(cuDeviceTotalMem(&total, 0));
  cu->cuMemGetInfo(&free, &told);
  num("as memory info says", total == told);
  S(cuDeviceTotalMem(0, 0));
  S(cuDeviceGetUuid(0, 0));
  S(cuDeviceGetAttribute(0, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
}


static void device_name(void) {
  char name[256] = "", cut[5] = "....";
  CUuuid a, b;
  S(cuDeviceGetName(name, sizeof name, 0));
  num("long enough", strlen(name) > 4);
  S(cuDeviceGetName(cut, sizeof cut, 0));
  num("cut", (long)strlen(cut));
  num("the same", strncmp(cut, name, strlen(cut)) == 0);
  memset(&a, 0, sizeof a);
  memset(&b, 1, sizeof b);
  S(cuDeviceGetUuid(&a, 0));
  S(cuDeviceGetUuid(&b, 0));
  num("the same", memcmp(&a, &b, sizeof a) == 0);
}


static long attribute(CUdevice_attribute which) {
  int value = -1;
  cu->cuDeviceGetAttribute(&value, which, 0);
  return value;
}


#define A(name) num(#name, attribute(CU_DEVICE_ATTRIBUTE_##name))
#define A_SOME(name) \
  num(#name " > 0", attribute(CU_DEVICE_ATTRIBUTE_##name) > 0)

static void device_limits(void) {
  A(MAX_THREADS_PER_BLOCK);
  A(MAX_BLOCK_DIM_X);
  A(MAX_BLOCK_DIM_Y);
  A(MAX_BLOCK_DIM_Z);
  A(MAX_GRID_DIM_X);
  A(MAX_GRID_DIM_Y);
  A(MAX_GRID_DIM_Z);
  A(MAX_SHARED_MEMORY_PER_BLOCK);
  A(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  A(MAX_THREADS_PER_MULTIPROCESSOR);
  A(WARP_SIZE);
  A(COMPUTE_CAPABILITY_MAJOR);
  A(COMPUTE_CAPABILITY_MINOR);
}


static void device_kinds(void) {
  A(UNIFIED_ADDRESSING);
  A(CONCURRENT_KERNELS);
  A(VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  A(MEMORY_POOLS_SUPPORTED);
  A_SOME(MULTIPROCESSOR_COUNT);
  A_SOME(CLOCK_RATE);
  A_SOME(L2_CACHE_SIZE);
  A_SOME(ASYNC_ENGINE_COUNT);
}


static void device_attribute_none(void) {
  int value = 77;
  S(cuDeviceGetAttribute(&value, 0, 0));
  S(cuDeviceGetAttribute(&value, -1, 0));
  S(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, -1));
  num("untouched", value == 77);
}


static void device_none(void) {
  size_t bytes = 0;
  char name[8];
  CUuuid uuid;
  CUcontext other = NULL;
  CUmemoryPool pool = NULL;
  unsigned flags = 9;
  int active = 9;
  cuuint64_t value = 9;
  S(cuDeviceGetName(name, sizeof name, NO_DEVICE));
  S(cuDeviceGetUuid(&uuid, NO_DEVICE));
  S(cuDeviceTotalMem(&bytes, NO_DEVICE));
  S(cuDevicePrimaryCtxRetain(&other, NO_DEVICE));
  S(cuDevicePrimaryCtxRelease(NO_DEVICE));
  S(cuDevicePrimaryCtxGetState(NO_DEVICE, &flags, &active));
  S(cuDeviceGetDefaultMemPool(&pool, NO_DEVICE));
  S(cuDeviceGetMemPool(&pool, NO_DEVICE));
  S(cuDeviceGetGraphMemAttribute(NO_DEVICE, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                                 &value));
  S(cuDeviceGraphMemTrim(NO_DEVICE));
  S(cuDeviceGetName(name, sizeof name, -1));
  S(cuDevicePrimaryCtxRetain(&other, -1));
}


static void memory_of_no_device(void) {
  const size_t page = 2 << 20;
  CUmemAllocationProp prop = device_prop();
  CUmemPoolProps pool_prop;
  CUmemAccessDesc access;
  CUmemGenericAllocationHandle h = 0;
  CUmemoryPool pool = NULL;
  CUdeviceptr va = 0;
  size_t granularity = 0;
  cu->cuMemCreate(&h, page, &prop, 0);
  cu->cuMemAddressReserve(&va, page, 0, 0, 0);
  cu->cuMemMap(va, page, 0, h, 0);
  prop.location.id = NO_DEVICE;
  S(cuMemCreate(&h, page, &prop, 0));
  S(cuMemGetAllocationGranularity(&granularity, &prop, 0));
  access = (CUmemAccessDesc){prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  S(cuMemSetAccess(va, page, &access, 1));
  memset(&pool_prop, 0, sizeof pool_prop);
  pool_prop.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  pool_prop.location = prop.location;
  S(cuMemPoolCreate(&pool, &pool_prop));
}


static void graph_memory(void) {
  cuuint64_t value = 9;
  S(cuDeviceGetGraphMemAttribute(0, 77, &value));
  S(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, 0));
  S(cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &value));
  S(cuDeviceGraphMemTrim(0));
}


/* ---- contexts ---- */

static void primary(void) {
  CUcontext again = NULL;
  unsigned flags = 9;
  int active = 9;
  S(cuDevicePrimaryCtxGetState(0, &flags, &active));
  num("flags", flags);
  num("active", active);
  S(cuDevicePrimaryCtxRetain(&again, 0));
  num("the same", again == ctx);
  S(cuDevicePrimaryCtxRelease(0));
  S(cuDevicePrimaryCtxGetState(0, &flags, &active));
  num("active", active);
  S(cuCtxSynchronize());
}


static void primary_no_place(void) {
  unsigned flags = 9;
  int active = 9;
  S(cuDevicePrimaryCtxRetain(0, 0));
  S(cuDevicePrimaryCtxGetState(0, &flags, 0));
  S(cuDevicePrimaryCtxGetState(0, 0, &active));
  S(cuCtxGetCurrent(0));
  S(cuCtxGetDevice(0));
}


static void current_again(void) {
  CUcontext current = NULL;
  S(cuCtxSetCurrent(ctx));
  S(cuCtxGetCurrent(&current));
  num("the same", current == ctx);
  S(cuCtxSetCurrent(0));
  S(cuCtxSetCurrent(0));
  S(cuCtxSetCurrent(ctx));
}


/* ---- without a current context ---- */

static void without_memory(void) {
  CUdeviceptr q = 0, r = 0;
  void *p = NULL;
  size_t free = 0;
  static char host[64];
  int type = 9;
  s = NS();
  cu->cuMemAlloc(&r, 64);
  cu->cuCtxSetCurrent(NULL);
  S(cuMemAlloc(&q, 64));
  S(cuMemAllocHost(&p, 64));
  S(cuMemGetInfo(&free, 0));
  S(cuMemAllocAsync(&q, 64, s));
  S(cuMemAllocAsync(&q, 64, 0));
  S(cuMemcpyDtoH(host, d, 64));
  S(cuMemcpyDtoHAsync(host, d, 64, s));
  S(cuMemcpyAsync(d, d + 64, 64, s));
  S(cuMemsetD8Async(d, 0, 64, s));
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d));
  S(cuMemFree(r));
  cu->cuCtxSetCurrent(ctx);
}


static void without_virtual(void) {
  const size_t page = 2 << 20;
  CUmemAllocationProp prop = device_prop();
  CUmemAccessDesc access;
  CUmemGenericAllocationHandle h = 0;
  CUdeviceptr va = 0;
  size_t granularity = 0;
  access = (CUmemAccessDesc){prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  cu->cuCtxSetCurrent(NULL);
  S(cuMemGetAllocationGranularity(&granularity, &prop, 0));
  S(cuMemAddressReserve(&va, page, 0, 0, 0));
  S(cuMemCreate(&h, page, &prop, 0));
  S(cuMemMap(va, page, 0, h, 0));
  S(cuMemSetAccess(va, page, &access, 1));
  S(cuMemUnmap(va, page));
  S(cuMemRelease(h));
  S(cuMemAddressFree(va, page));
  cu->cuCtxSetCurrent(ctx);
}


static void without_pools(void) {
  CUmemPoolProps props;
  CUmemoryPool pool = NULL, mine = NULL;
  cuuint64_t value = 9;
  memset(&props, 0, sizeof props);
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  cu->cuCtxSetCurrent(NULL);
  S(cuDeviceGetDefaultMemPool(&pool, 0));
  S(cuDeviceGetMemPool(&pool, 0));
  S(cuMemPoolCreate(&mine, &props));
  S(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  S(cuMemPoolTrimTo(pool, 0));
  S(cuMemPoolDestroy(mine));
  cu->cuCtxSetCurrent(ctx);
}


static void without_streams(void) {
  CUstream other = NULL;
  CUevent made = NULL;
  unsigned flags = 9;
  int priority = 9;
  CUgraph g = NULL;
  s = NS();
  ev = EV();
  cu->cuCtxSetCurrent(NULL);
  S(cuStreamCreate(&other, 0));
  S(cuEventCreate(&made, 0));
  S(cuCtxGetStreamPriorityRange(&priority, 0));
  S(cuStreamGetFlags(s, &flags));
  S(cuStreamGetPriority(s, &priority));
  S(cuEventRecord(ev, s));
  S(cuStreamWaitEvent(s, ev, 0));
  S(cuStreamSynchronize(s));
  S(cuEventSynchronize(ev));
  S(cuEventQuery(ev));
  S(cuStreamQuery(s));
  S(cuStreamQuery(0));
  S(cuStreamIsCapturing(s, &priority));
  S(cuStreamBeginCapture(s, TL));
  S(cuStreamEndCapture(s, &g));
  S(cuThreadExchangeStreamCaptureMode(&(CUstreamCaptureMode){GL}));
  S(cuEventDestroy(ev));
  S(cuStreamDestroy(s));
  cu->cuCtxSetCurrent(ctx);
}


static void ignore(void *unused) {
  (void)unused;
}


static void hear(CUstream stream, CUresult status, void *unused) {
  (void)stream;
  (void)status;
  (void)unused;
}


static void without_queues(void) {
  CUstreamCaptureStatus status = 9;
  cuuint64_t id = 9;
  CUdeviceptr q = 0;
  CUgraph g = NULL;
  float ms = 0;
  s = NS();
  ev = EV();
  cu->cuEventRecord(ev, s);
  cu->cuCtxSynchronize();
  cu->cuCtxSetCurrent(NULL);
  S(cuLaunchHostFunc(s, ignore, 0));
  S(cuStreamAddCallback(s, hear, 0, 0));
  S(cuEventElapsedTime(&ms, ev, ev));
  S(cuMemcpyDtoDAsync(d, d + 64, 64, s));
  S(cuMemAllocAsync(&q, 64, s));
  S(cuMemFreeAsync(q, s));
  S(cuStreamBeginCapture(s, TL));
  S(cuStreamGetCaptureInfo(s, &status, &id, 0, 0, 0, 0));
  T(K(s));
  S(cuEventRecordWithFlags(ev, s, CU_EVENT_RECORD_EXTERNAL));
  S(cuStreamUpdateCaptureDependencies(s, 0, 0, 0, 1));
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
  cu->cuCtxSetCurrent(ctx);
}


static void without_built_in(void) {
  unsigned flags = 9;
  int value = 9;
  CUgraph g = NULL;
  CUgraphExec e = NULL;
  ev = EV();
  cu->cuGraphInstantiate(&e, capn(1), 0);
  cu->cuCtxSetCurrent(NULL);
  S(cuStreamGetFlags(0, &flags));
  S(cuStreamIsCapturing(0, &value));
  S(cuStreamSynchronize(0));
  S(cuEventRecord(ev, 0));
  S(cuStreamWaitEvent(0, ev, 0));
  S(cuLaunchHostFunc(0, ignore, 0));
  S(cuGraphLaunch(e, 0));
  S(cuMemsetD8Async(d, 0, 64, 0));
  S(cuStreamQuery(CU_STREAM_LEGACY));
  S(cuStreamQuery(CU_STREAM_PER_THREAD));
  S(cuStreamBeginCapture(CU_STREAM_PER_THREAD, TL));
  S(cuStreamEndCapture(CU_STREAM_PER_THREAD, &g));
  cu->cuCtxSetCurrent(ctx);
}


static void without_host_memory(void) {
  static _Alignas(4096) char page[4096], other[4096];
  void *p = NULL;
  CUdeviceptr q = 0;
  cu->cuMemAllocHost(&p, 64);
  cu->cuMemHostRegister(page, sizeof page, 0);
  cu->cuCtxSetCurrent(NULL);
  S(cuMemHostGetDevicePointer(&q, p, 0));
  S(cuMemHostRegister(other, sizeof other, 0));
  S(cuMemHostUnregister(page));
  S(cuMemFreeHost(p));
  S(cuMemHostAlloc(&p, 64, 0));
  cu->cuCtxSetCurrent(ctx);
}


static void without_graphs(void) {
  CUgraph g = NULL, small = capn(1);
  CUgraphNode n = NULL;
  CUgraphExec e = NULL, e2 = NULL;
  CUgraphExecUpdateResultInfo info;
  size_t count = 0;
  s = NS();
  cu->cuGraphInstantiate(&e, small, 0);
  cu->cuCtxSetCurrent(NULL);
  S(cuGraphCreate(&g, 0));
  S(cuGraphAddEmptyNode(&n, g, 0, 0));
  S(cuGraphGetNodes(small, 0, &count));
  S(cuGraphInstantiate(&e2, small, 0));
  S(cuGraphExecUpdate(e, small, &info));
  S(cuGraphUpload(e, s));
  S(cuGraphLaunch(e, s));
  S(cuGraphExecDestroy(e));
  S(cuGraphDestroy(g));
  cu->cuCtxSetCurrent(ctx);
}


static void without_modules(void) {
  CUmodule m = NULL, m2 = NULL;
  CUfunction f = NULL;
  int value = 9;
  size_t offset = 9;
  const char *name = NULL;
  CUdeviceptr q = 0;
  s = NS();
  cu->cuModuleLoadData(&m, img);
  cu->cuCtxSetCurrent(NULL);
  S(cuModuleLoadData(&m2, img));
  S(cuModuleGetFunction(&f, m, "tick"));
  S(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, tick));
  S(cuFuncGetParamInfo(tick, 0, &offset, 0));
  S(cuFuncGetName(&name, tick));
  S(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, tick, 32, 0));
  T(K(s));
  T(K(NULL));
  S(cuModuleGetGlobal(&q, 0, m, "counter"));
  S(cuFuncSetAttribute(tick, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       49152));
  S(cuOccupancyMaxPotentialBlockSize(&value, &value, tick, 0, 0, 0));
  S(cuModuleUnload(m));
  cu->cuCtxSetCurrent(ctx);
}


static const question questions[] = {
    {"errors: their names", error_names},
    {"errors: the list against the driver's names", error_list},
    {"errors: codes that are none", error_none},
    {"driver: version, opened again, flags", versions},
    {"driver: entry points by name and version", entries},
    {"device: count, memory, no place for the answer", device_facts},
    {"device: name and identity", device_name},
    {"device: limits", device_limits},
    {"device: what it can", device_kinds},
    {"device: attributes that are none", device_attribute_none},
    {"a device that is none: its facts, context and pools", device_none},
    {"a device that is none: memory on it", memory_of_no_device},
    {"graph memory: unknown attribute, no place, trim", graph_memory},
    {"primary context: state, retained again, released", primary},
    {"contexts: no place for the answer", primary_no_place},
    {"contexts: made current twice, none twice", current_again},
    {"no current context: memory", without_memory},
    {"no current context: virtual memory", without_virtual},
    {"no current context: pools", without_pools},
    {"no current context: streams and events", without_streams},
    {"no current context: built-in streams", without_built_in},
    {"no current context: host functions, captures, memory in a stream",
     without_queues},
    {"no current context: host memory", without_host_memory},
    {"no current context: graphs", without_graphs},
    {"no current context: modules and launches", without_modules},
};


void ask_devices(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
