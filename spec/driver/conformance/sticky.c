/* What follows an error that ends a context: a kernel that writes to null,
   traps, or claims what is not so.  Each question in a process of its own. */
#include "driver/conformance/ask.h"

#include <string.h>
#include <time.h>

static CUstream s, t;
static CUevent ev;
static CUgraph g;
static CUgraphExec e;
static CUdeviceptr q;
static char host[64];


static CUresult fault(const char *name, CUstream stream) {
  CUfunction f = NULL;
  uint64_t argument = strcmp(name, "poke") == 0 ? 0 : 1;
  void *p[] = {&argument};
  cu->cuModuleGetFunction(&f, mod, name);
  return cu->cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, stream, p, NULL);
}


/* Everything that the calls want, made before the context is lost. */
static void begin(void) {
  s = NS();
  t = NS();
  ev = EV();
  g = capn(1);
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuMemAlloc(&q, 4096);
  cu->cuEventRecord(ev, t);
  cu->cuCtxSynchronize();
}


static void lose(void) {
  fault("poke", s);
  S(cuStreamSynchronize(s));
}


/* ---- the error and who notices it ---- */

static void synchronize(void) {
  begin();
  T(fault("poke", s));
  S(cuStreamSynchronize(s));
  S(cuStreamSynchronize(s));
  S(cuStreamSynchronize(t));
  S(cuStreamQuery(s));
  S(cuStreamQuery(t));
  S(cuCtxSynchronize());
  S(cuStreamSynchronize(0));
}


static void synchronize_context(void) {
  begin();
  T(fault("poke", s));
  S(cuCtxSynchronize());
  S(cuCtxSynchronize());
}


static void synchronize_event(void) {
  CUevent after = EV();
  float ms = 0;
  begin();
  T(fault("poke", s));
  S(cuEventRecord(after, s));
  S(cuEventSynchronize(after));
  S(cuEventQuery(after));
  S(cuEventQuery(ev));
  S(cuEventElapsedTime(&ms, ev, after));
}


static void synchronize_copy(void) {
  begin();
  T(fault("poke", 0));
  S(cuMemcpyDtoH(host, q, 64));
  S(cuMemcpyDtoH(host, q, 64));
}


static void poll(void) {
  struct timespec pause = {0, 1000000};
  CUresult answer = CUDA_ERROR_NOT_READY;
  begin();
  T(fault("poke", s));
  for (int i = 0; i < 5000 && answer == CUDA_ERROR_NOT_READY; i++) {
    answer = cu->cuStreamQuery(s);
    nanosleep(&pause, NULL);
  }
  say("in the end", answer);
  S(cuStreamQuery(t));
}


static void trap(void) {
  begin();
  T(fault("trap", s));
  S(cuStreamSynchronize(s));
  S(cuCtxSynchronize());
  T(K(t));
}


static void claim(void) {
  begin();
  T(fault("claim", s));
  S(cuStreamSynchronize(s));
  S(cuCtxSynchronize());
  T(K(t));
}


static void graph(void) {
  CUgraph faulty = NULL;
  CUgraphExec exec = NULL;
  begin();
  cu->cuStreamBeginCapture(s, TL);
  fault("poke", s);
  cu->cuStreamEndCapture(s, &faulty);
  cu->cuGraphInstantiate(&exec, faulty, 0);
  S(cuGraphLaunch(exec, s));
  S(cuStreamSynchronize(s));
  S(cuGraphLaunch(exec, s));
  S(cuGraphLaunch(e, s));
  S(cuGraphExecDestroy(exec));
  S(cuGraphDestroy(faulty));
}


/* ---- later calls ---- */

static void memory(void) {
  CUdeviceptr p = 0;
  size_t free = 0;
  void *pinned = NULL;
  static _Alignas(4096) char page[4096];
  int type = 9;
  begin();
  lose();
  S(cuMemAlloc(&p, 64));
  S(cuMemGetInfo(&free, 0));
  S(cuMemAllocHost(&pinned, 64));
  S(cuMemHostRegister(page, sizeof page, 0));
  S(cuMemcpyHtoD(q, host, 64));
  S(cuMemcpyDtoDAsync(q, d, 64, t));
  S(cuMemsetD8(q, 0, 64));
  S(cuMemsetD8Async(q, 0, 64, t));
  S(cuMemAllocAsync(&p, 64, t));
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q));
}


static void virtual_memory(void) {
  const size_t page = 2 << 20;
  CUmemAllocationProp prop = device_prop();
  CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle h = 0, x = 0;
  CUdeviceptr va = 0, w = 0;
  size_t g0 = 0;
  begin();
  cu->cuMemAddressReserve(&va, 2 * page, 0, 0, 0);
  cu->cuMemCreate(&h, page, &prop, 0);
  cu->cuMemMap(va, page, 0, h, 0);
  lose();
  S(cuMemGetAllocationGranularity(&g0, &prop, 0));
  S(cuMemAddressReserve(&w, page, 0, 0, 0));
  S(cuMemCreate(&x, page, &prop, 0));
  S(cuMemMap(va + page, page, 0, h, 0));
  S(cuMemSetAccess(va, page, &access, 1));
  S(cuMemUnmap(va, page));
  S(cuMemRelease(h));
  S(cuMemAddressFree(va, 2 * page));
}


static void streams(void) {
  CUstream made = NULL;
  unsigned flags = 9;
  int value = 9;
  begin();
  lose();
  S(cuStreamCreate(&made, 0));
  S(cuStreamGetFlags(t, &flags));
  S(cuStreamGetPriority(t, &value));
  S(cuCtxGetStreamPriorityRange(&value, 0));
  S(cuStreamIsCapturing(t, &value));
  S(cuStreamBeginCapture(t, TL));
  S(cuStreamEndCapture(t, &g));
  S(cuThreadExchangeStreamCaptureMode(&value));
}


static void ignore(void *unused) {
  (void)unused;
}


static void queue(void) {
  CUevent made = NULL;
  begin();
  lose();
  S(cuEventCreate(&made, 0));
  S(cuEventRecord(ev, t));
  S(cuEventQuery(ev));
  S(cuEventSynchronize(ev));
  S(cuStreamWaitEvent(t, ev, 0));
  S(cuLaunchHostFunc(t, ignore, 0));
  T(K(t));
}


static void graphs(void) {
  CUgraph made = NULL;
  CUgraphNode n = NULL;
  CUgraphExec exec = NULL;
  CUgraphExecUpdateResultInfo info;
  size_t count = 1;
  begin();
  cu->cuGraphGetNodes(g, &n, &count);
  lose();
  S(cuGraphNodeSetEnabled(e, n, 0));
  S(cuGraphExecUpdate(e, g, &info));
  S(cuGraphUpload(e, t));
  S(cuGraphLaunch(e, t));
  S(cuGraphInstantiate(&exec, g, 0));
  S(cuGraphGetNodes(g, 0, &count));
  S(cuGraphCreate(&made, 0));
  S(cuGraphAddEmptyNode(&n, made, 0, 0));
  S(cuGraphClone(&made, g));
}


static void nodes(void) {
  CUgraphNode n = NULL, made = NULL;
  CUDA_KERNEL_NODE_PARAMS kp;
  CUkernelNodeAttrValue v;
  CUgraphConditionalHandle h = 0;
  cuuint64_t flags = 9;
  unsigned enabled = 9;
  size_t count = 1;
  float a = 1;
  void *p[] = {&d, &a};
  begin();
  cu->cuGraphGetNodes(g, &n, &count);
  cu->cuGraphKernelNodeGetParams(n, &kp);
  kp.kernelParams = p;
  lose();
  S(cuGraphKernelNodeGetParams(n, &kp));
  kp.kernelParams = p;
  S(cuGraphKernelNodeGetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  S(cuGraphAddKernelNode(&made, g, 0, 0, &kp));
  S(cuGraphConditionalHandleCreate(&h, g, ctx, 0, 1));
  S(cuGraphExecKernelNodeSetParams(e, n, &kp));
  S(cuGraphNodeGetEnabled(e, n, &enabled));
  S(cuGraphExecGetFlags(e, &flags));
  S(cuGraphDestroyNode(n));
  S(cuGraphDebugDotPrint(g, "/dev/null", 0));
}


static void host_memory(void) {
  void *pinned = NULL;
  CUdeviceptr p = 0;
  CUmemoryPool pool = NULL;
  cuuint64_t value = 0;
  float ms = 0;
  CUstreamCaptureStatus status = 9;
  begin();
  cu->cuMemAllocHost(&pinned, 64);
  cu->cuDeviceGetDefaultMemPool(&pool, 0);
  lose();
  S(cuMemHostGetDevicePointer(&p, pinned, 0));
  S(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
  S(cuMemAllocFromPoolAsync(&p, 64, pool, t));
  S(cuEventElapsedTime(&ms, ev, ev));
  S(cuStreamGetCaptureInfo(t, &status, 0, 0, 0, 0, 0));
  S(cuDeviceSetMemPool(0, pool));
}


static void modules(void) {
  CUmodule m = NULL;
  CUfunction f = NULL;
  int value = 9;
  size_t offset = 9;
  CUdeviceptr p = 0;
  const char *name = NULL;
  begin();
  lose();
  S(cuModuleLoadData(&m, img));
  S(cuModuleGetFunction(&f, mod, "tock"));
  S(cuModuleGetGlobal(&p, 0, mod, "counter"));
  S(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, tick));
  S(cuFuncSetAttribute(tick, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       1000));
  S(cuFuncGetParamInfo(tick, 0, &offset, 0));
  S(cuFuncGetName(&name, tick));
  S(cuOccupancyMaxActiveBlocksPerMultiprocessor(&value, tick, 32, 0));
}


static void pools(void) {
  CUmemPoolProps props;
  CUmemoryPool pool = NULL, p = NULL;
  cuuint64_t value = 9;
  CUdeviceptr out = 0;
  memset(&props, 0, sizeof props);
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  begin();
  cu->cuMemPoolCreate(&pool, &props);
  cu->cuMemAllocFromPoolAsync(&out, 4096, pool, t);
  lose();
  S(cuMemPoolCreate(&p, &props));
  S(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  S(cuMemPoolTrimTo(pool, 0));
  S(cuMemFreeAsync(out, t));
  S(cuMemPoolDestroy(pool));
  S(cuDeviceGetDefaultMemPool(&p, 0));
  S(cuDeviceGraphMemTrim(0));
}


static void enquiries(void) {
  CUcontext current = NULL;
  CUdevice device = 9;
  unsigned flags = 9;
  int value = 9, active = 9;
  const char *name = NULL;
  size_t bytes = 0;
  begin();
  lose();
  S(cuInit(0));
  S(cuDriverGetVersion(&value));
  S(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &name));
  S(cuDeviceGet(&device, 0));
  S(cuDeviceGetCount(&value));
  S(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0));
  S(cuDeviceTotalMem(&bytes, 0));
  S(cuCtxGetCurrent(&current));
  num("the same", current == ctx);
  S(cuCtxGetDevice(&device));
  S(cuCtxSetCurrent(ctx));
  S(cuDevicePrimaryCtxGetState(0, &flags, &active));
  num("active", active);
}


/* ---- the end of things ---- */

static void destroying(void) {
  CUmodule m = NULL;
  void *pinned = NULL;
  static _Alignas(4096) char page[4096];
  begin();
  cu->cuModuleLoadData(&m, img);
  cu->cuMemAllocHost(&pinned, 64);
  cu->cuMemHostRegister(page, sizeof page, 0);
  lose();
  S(cuGraphExecDestroy(e));
  S(cuGraphDestroy(g));
  S(cuEventDestroy(ev));
  S(cuStreamDestroy(t));
  S(cuStreamDestroy(s));
  S(cuMemFree(q));
  S(cuMemFreeHost(pinned));
  S(cuMemHostUnregister(page));
  S(cuModuleUnload(m));
}


static void capture_underway(void) {
  CUgraph end = NULL;
  begin();
  cu->cuStreamBeginCapture(t, RX);
  K(t);
  T(fault("poke", s));
  S(cuStreamSynchronize(s));
  num("status", st(t));
  T(K(t));
  S(cuStreamEndCapture(t, &end));
  num("nodes", cnt(end));
}


static _Atomic int ran;
static _Atomic CUresult told;


static void count_run(void *unused) {
  (void)unused;
  ran++;
}


static void hear(CUstream stream, CUresult status, void *unused) {
  (void)stream;
  (void)unused;
  told = status;
}


static void host_functions(void) {
  struct timespec pause = {0, 200000000};
  ran = 0;
  begin();
  sleep_on();
  cu->cuLaunchHostFunc(s, doze, NULL);
  T(fault("poke", s));
  S(cuLaunchHostFunc(s, count_run, 0));
  wake();
  S(cuStreamSynchronize(s));
  nanosleep(&pause, NULL);
  num("ran", ran);
}


static void callbacks(void) {
  struct timespec pause = {0, 200000000};
  told = 77;
  begin();
  sleep_on();
  cu->cuLaunchHostFunc(s, doze, NULL);
  T(fault("poke", s));
  S(cuStreamAddCallback(s, hear, 0, 0));
  wake();
  S(cuStreamSynchronize(s));
  nanosleep(&pause, NULL);
  num("told", told);
}


/* ---- a new context ---- */

static void note_state(void) {
  unsigned flags = 9;
  int active = 9;
  S(cuDevicePrimaryCtxGetState(0, &flags, &active));
  num("active", active);
}


static void work_again(CUcontext again) {
  CUmodule m = NULL;
  CUfunction f = NULL;
  CUdeviceptr p = 0;
  float a = 3, x = 0;
  void *params[] = {&p, &a};
  S(cuCtxSetCurrent(again));
  S(cuMemAlloc(&p, 64));
  S(cuMemsetD8(p, 0, 64));
  S(cuModuleLoadData(&m, img));
  S(cuModuleGetFunction(&f, m, "tick"));
  S(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 0, 0, params, 0));
  S(cuCtxSynchronize());
  S(cuMemcpyDtoH(&x, p, 4));
  num("added", (long)x);
}


static void renewed(void) {
  CUcontext again = NULL;
  begin();
  lose();
  S(cuDevicePrimaryCtxRelease(0));
  note_state();
  S(cuCtxSynchronize());
  S(cuDevicePrimaryCtxRetain(&again, 0));
  note_state();
  work_again(again);
}


static void renewed_after(const char *name) {
  CUcontext again = NULL;
  begin();
  fault(name, s);
  S(cuStreamSynchronize(s));
  S(cuDevicePrimaryCtxRelease(0));
  S(cuDevicePrimaryCtxRetain(&again, 0));
  S(cuDevicePrimaryCtxRetain(&again, 0));
  note_state();
  S(cuInit(0));
}


static void renewed_after_trap(void) {
  renewed_after("trap");
}


static void renewed_after_claim(void) {
  renewed_after("claim");
}


static void retained(void) {
  CUcontext again = NULL;
  begin();
  lose();
  S(cuDevicePrimaryCtxRetain(&again, 0));
  num("the same", again == ctx);
  S(cuDevicePrimaryCtxRelease(0));
  S(cuCtxSynchronize());
}


static void released(void) {
  CUdeviceptr p = 0;
  CUcontext current = NULL, again = NULL;
  CUdevice device = 9;
  begin();
  S(cuDevicePrimaryCtxRelease(0));
  note_state();
  S(cuCtxGetCurrent(&current));
  num("still current", current == ctx);
  S(cuCtxGetDevice(&device));
  S(cuCtxSynchronize());
  S(cuMemAlloc(&p, 64));
  S(cuStreamCreate(&s, 0));
  S(cuDevicePrimaryCtxRelease(0));
  S(cuDevicePrimaryCtxRetain(&again, 0));
  num("the same", again == ctx);
  note_state();
  S(cuMemFree(q)); /* the former's */
  work_again(again);
}


static void released_capturing(void) {
  begin();
  cu->cuStreamBeginCapture(t, TL);
  K(t);
  S(cuDevicePrimaryCtxRelease(0));
  note_state();
  size_t count = 0;
  S(cuGraphGetNodes(g, 0, &count));
  S(cuGraphDestroy(g));
}


static const question questions[] = {
    {"illegal address: seen by streams", synchronize},
    {"illegal address: seen by the context", synchronize_context},
    {"illegal address: seen by events", synchronize_event},
    {"illegal address: seen by a copy", synchronize_copy},
    {"illegal address: seen by a query", poll},
    {"trap", trap},
    {"failed assertion", claim},
    {"illegal address: in a graph", graph},
    {"illegal address, then: memory", memory},
    {"illegal address, then: virtual memory", virtual_memory},
    {"illegal address, then: streams", streams},
    {"illegal address, then: events, host functions, launches", queue},
    {"illegal address, then: graphs", graphs},
    {"illegal address, then: nodes", nodes},
    {"illegal address, then: modules and functions", modules},
    {"illegal address, then: pinned memory, the default pool", host_memory},
    {"illegal address, then: pools", pools},
    {"illegal address, then: enquiries", enquiries},
    {"illegal address, then: everything destroyed", destroying},
    {"illegal address, then: a capture that was underway", capture_underway},
    {"illegal address, then: host function behind it", host_functions},
    {"illegal address, then: callback behind it", callbacks},
    {"illegal address, then: context released, retained, used", renewed},
    {"trap, then: context released, retained", renewed_after_trap},
    {"failed assertion, then: context released, retained", renewed_after_claim},
    {"illegal address, then: context retained once more", retained},
    {"context released: calls, retained, used", released},
    {"context released while a stream captures", released_capturing},
};


void ask_sticky(void) {
  row_list_alone(questions, sizeof questions / sizeof *questions);
}
