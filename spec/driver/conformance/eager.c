/* Calls outside captures: copies, launches, streams and events under way,
   virtual memory, attributes, contexts. */
#include "driver/conformance/ask.h"

#include <stdbool.h>
#include <string.h>

static CUstream s;
static CUevent ev, ev2;
static _Alignas(4096) char host[8192];


static void copies(void) {
  CUdeviceptr q = 0;
  cu->cuMemAlloc(&q, 4096);
  S(cuMemcpyDtoH(host, q, 0));
  S(cuMemcpyHtoD(0, host, 64));
  S(cuMemcpyHtoD(q, 0, 64));
  S(cuMemcpyHtoD(q + 4096, host, 0));
  S(cuMemcpyDtoDAsync(q, q + 64, 64, 0));
  S(cuMemsetD8(q, 1, 0));
  S(cuMemsetD32(q + 2, 1, 4));
  S(cuMemsetD32(q, 1, 4));
  S(cuMemcpyAsync(q, q + 2048, 64, 0));
  S(cuCtxSynchronize());
}


static void launches(void) {
  float a = 1;
  size_t size = 16;
  char buffer[16];
  void *p[] = {&d, &a};
  void *extra[] = {(void *)1, buffer, (void *)2, &size, NULL};
  memcpy(buffer, &d, 8);
  memcpy(buffer + 8, &a, 4);
  S(cuLaunchKernel(tick, 1, 1, 1, 32, 1, 1, 0, 0, 0, extra));
  S(cuLaunchKernel(tick, 1, 1, 1, 32, 1, 1, 0, 0, p, extra));
  S(cuLaunchKernel(tick, 1, 1, 1, 32, 1, 1, 0, 0, 0, 0));
  S(cuLaunchKernel(0, 1, 1, 1, 32, 1, 1, 0, 0, p, 0));
  S(cuCtxSynchronize());
}


static void under_way(void) {
  float ms = -1;
  s = NS();
  ev = EV();
  ev2 = EV();
  S(cuStreamQuery(s));
  S(cuEventRecord(ev, s));
  sleep_on();
  S(cuLaunchHostFunc(s, doze, 0));
  S(cuEventRecord(ev2, s));
  S(cuStreamQuery(s));
  S(cuEventQuery(ev2));
  S(cuEventElapsedTime(&ms, ev, ev2));
  wake();
  S(cuEventSynchronize(ev2));
  S(cuEventElapsedTime(&ms, ev, ev2));
  num("slept", ms > 20);
  S(cuStreamQuery(s));
}


static void streams(void) {
  unsigned flags = 9;
  int priority = 9;
  S(cuStreamCreate(&s, 7));
  S(cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -99));
  S(cuStreamGetPriority(s, &priority));
  num("priority", priority);
  S(cuStreamGetFlags(s, &flags));
  num("flags", flags);
  S(cuStreamCreateWithPriority(&s, CU_STREAM_DEFAULT, 99));
  S(cuStreamGetPriority(s, &priority));
  num("priority", priority);
  S(cuStreamGetFlags(CU_STREAM_PER_THREAD, &flags));
  num("flags", flags);
  S(cuStreamGetFlags(0, &flags));
  num("flags", flags);
  S(cuStreamDestroy(0));
  S(cuEventCreate(&ev, 0x4000));
  S(cuEventRecord(0, s));
  S(cuStreamWaitEvent(s, 0, 0));
  S(cuEventQuery(0));
}


static void registered(void) {
  CUdeviceptr at = 0;
  S(cuMemHostRegister(host, 4096, 0));
  S(cuMemHostRegister(host, 4096, 0));
  S(cuMemHostGetDevicePointer(&at, host, 0));
  S(cuMemHostUnregister(host));
  S(cuMemHostUnregister(host));
  S(cuMemHostRegister(0, 4096, 0));
  S(cuMemHostRegister(host, 0, 0));
  S(cuMemFreeHost(host));
  S(cuMemAllocHost(0, 64));
  S(cuMemFreeHost(0));
}


static void virtual_memory(void) {
  const size_t page = 2 << 20;
  CUmemAllocationProp prop = device_prop();
  CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle h = 0, x = 0;
  CUdeviceptr va = 0, q = 0;
  S(cuMemAddressReserve(&q, 1000, 0, 0, 0));
  S(cuMemAddressReserve(&va, 4 * page, 0, 0, 0));
  S(cuMemCreate(&x, 1000, &prop, 0));
  S(cuMemCreate(&x, 0, &prop, 0));
  S(cuMemCreate(&h, page, &prop, 0));
  S(cuMemSetAccess(va, page, &access, 1));
  S(cuMemMap(va + 4096, page, 0, h, 0));
  S(cuMemMap(va, page, 4096, h, 0));
  S(cuMemMap(va, 2 * page, 0, h, 0));
  S(cuMemMap(va, page, 0, h, 0));
  S(cuMemMap(va, page, 0, h, 0));
  S(cuMemMap(va + page, page, 0, h, 0));
  S(cuMemSetAccess(va, 2 * page, &access, 1));
  S(cuMemsetD8(va, 5, page));
  S(cuMemcpyDtoH(host, va + page, 64));
  num("seen through the second", host[63]);
  S(cuMemUnmap(va, 4096));
  S(cuMemAddressFree(va, 4 * page));
  S(cuMemRelease(h));
  S(cuMemUnmap(va, 2 * page));
  S(cuMemUnmap(va, page));
  S(cuMemAddressFree(va, page));
  S(cuMemAddressFree(va, 4 * page));
  S(cuMemAddressFree(va, 4 * page));
}


static void pointers(void) {
  CUdeviceptr q = 0;
  void *pinned = NULL;
  int type = 9, ordinal = 9;
  size_t size = 9;
  CUdeviceptr start = 9;
  CUcontext owner = NULL;
  cu->cuMemAlloc(&q, 4096);
  cu->cuMemAllocHost(&pinned, 4096);
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q + 100));
  num("type", type);
  S(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q));
  num("ordinal", ordinal);
  S(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                          q + 100));
  num("start", start == q);
  S(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, q + 100));
  num("size", (long)size);
  S(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, q));
  num("context", owner == ctx);
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                          (CUdeviceptr)(size_t)pinned));
  num("type", type);
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                          (CUdeviceptr)(size_t)host));
  S(cuPointerGetAttribute(&type, 777, q));
  S(cuPointerGetAttribute(0, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q));
}


static void functions(void) {
  int value = -9;
  size_t offset = 9, size = 9;
  S(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, tick));
  num("threads", value);
  S(cuFuncGetAttribute(&value, 777, tick));
  S(cuFuncSetAttribute(tick, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       1 << 20));
  S(cuFuncSetAttribute(tick, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                       100000));
  S(cuFuncSetAttribute(tick, CU_FUNC_ATTRIBUTE_NUM_REGS, 1));
  S(cuFuncGetParamInfo(tick, 1, &offset, &size));
  num("offset", (long)offset);
  num("size", (long)size);
  S(cuFuncGetParamInfo(tick, 2, &offset, &size));
}


static void static_shared(void) {
  int value = -9;
  S(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, wide));
  num("shared", value);
}


static void devices(void) {
  CUdevice device = 9;
  int value = 9;
  CUcontext current = NULL;
  S(cuDeviceGet(&device, 99));
  S(cuDeviceGet(&device, -1));
  S(cuDeviceGetAttribute(&value, 9999, 0));
  S(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99));
  S(cuCtxGetDevice(&device));
  num("device", device);
  S(cuCtxSetCurrent(0));
  S(cuCtxGetCurrent(&current));
  num("current null", current == NULL);
  S(cuCtxGetDevice(&device));
  S(cuCtxSynchronize());
  S(cuStreamCreate(&s, 0));
  S(cuCtxSetCurrent(ctx));
  S(cuCtxSynchronize());
}


static void pools(void) {
  CUmemoryPool pool = NULL, current = NULL;
  CUmemPoolProps props;
  CUdeviceptr q = 0;
  cuuint64_t value = 9;
  memset(&props, 0, sizeof props);
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  s = NS();
  S(cuMemPoolCreate(&pool, &props));
  S(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
  num("threshold", (long)value);
  value = 1 << 20;
  S(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
  S(cuMemAllocFromPoolAsync(&q, 4096, pool, s));
  S(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  num("used", (long)value);
  S(cuMemFreeAsync(q, s));
  S(cuStreamSynchronize(s));
  S(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  num("used", (long)value);
  S(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
  num("high", (long)value);
  S(cuMemPoolTrimTo(pool, 0));
  S(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
  num("reserved", (long)value);
  S(cuMemFreeAsync(q, s));
  S(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value));
  S(cuMemPoolGetAttribute(pool, 777, &value));
  S(cuDeviceGetMemPool(&current, 0));
  S(cuMemPoolDestroy(current));
  S(cuMemPoolDestroy(pool));
}


static const question questions[] = {
    {"copies: nothing, null, beyond the end, overlapping, misaligned memset",
     copies},
    {"launch: extra, both, neither, null function", launches},
    {"stream and events under way", under_way},
    {"streams and events: flags, priorities, null", streams},
    {"host memory registered twice, unregistered twice, null", registered},
    {"virtual memory: sizes, offsets, twice, partly", virtual_memory},
    {"pointer attributes", pointers},
    {"function attributes", functions},
    {"function attributes: static shared memory", static_shared},
    {"devices and contexts that are none", devices},
    {"memory pool: attributes, trim, free twice, destroy", pools},
};


void ask_eager(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
