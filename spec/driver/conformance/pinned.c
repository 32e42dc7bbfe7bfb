/* Host memory that the driver knows: page-locked and registered, what it is
   to pointers and copies; and the accounts of device memory. */
#include "driver/conformance/ask.h"

#include <string.h>

static CUstream s;
static CUgraph g;
static CUgraphExec e;
static _Alignas(4096) char host[16384];


static char *pinned(size_t bytes) {
  void *p = NULL;
  cu->cuMemHostAlloc(&p, bytes, 0);
  return p;
}


static CUdeviceptr at(const void *p) {
  return (CUdeviceptr)(size_t)p;
}


/* ---- making and freeing ---- */

static void alloc(void) {
  void *p = host;
  S(cuMemAllocHost(&p, 0));
  num("null", p == NULL);
  p = host;
  S(cuMemHostAlloc(&p, 0, 0));
  num("null", p == NULL);
  S(cuMemHostAlloc(0, 64, 0));
  S(cuMemHostAlloc(&p, 64, CU_MEMHOSTALLOC_PORTABLE));
  S(cuMemHostAlloc(&p, 64, CU_MEMHOSTALLOC_DEVICEMAP));
  S(cuMemHostAlloc(&p, 64, 4)); /* write-combined */
  S(cuMemHostAlloc(&p, 64, 8));
  S(cuMemHostAlloc(&p, 64, 0x100));
  S(cuMemAllocHost(&p, (size_t)1 << 50));
}


static void free_twice(void) {
  char *p = pinned(4096);
  S(cuMemFreeHost(p + 64));
  S(cuMemFreeHost(p));
  S(cuMemFreeHost(p));
}


static void free_otherwise(void) {
  char *p = pinned(4096);
  CUdeviceptr q = 0;
  s = NS();
  cu->cuMemAlloc(&q, 64);
  S(cuMemFree(at(p)));
  S(cuMemFreeAsync(at(p), s));
  S(cuMemHostUnregister(p));
  S(cuMemFreeHost((void *)(size_t)q));
  S(cuMemFreeHost(host));
  S(cuMemFreeHost(p));
}


static void register_pinned(void) {
  char *p = pinned(8192);
  S(cuMemHostRegister(p, 4096, 0));
  S(cuMemFreeHost(p));
}


static void register_device(void) {
  CUdeviceptr q = 0;
  cu->cuMemAlloc(&q, 8192);
  S(cuMemHostRegister((void *)(size_t)q, 4096, 0));
  S(cuMemHostUnregister((void *)(size_t)q));
  S(cuMemHostGetDevicePointer(&q, (void *)(size_t)q, 0));
}


static void registered(void) {
  S(cuMemHostRegister(host, 4096, 0));
  S(cuMemHostRegister(host + 4096, 4096, 0));
  S(cuMemHostRegister(host + 2048, 8192, 0));
  S(cuMemHostUnregister(host + 100));
  S(cuMemHostUnregister(host + 4096));
  S(cuMemHostRegister(host, 4096, 0x100));
  S(cuMemFreeHost(host));
  S(cuMemHostUnregister(host));
}


static void register_unaligned(void) {
  S(cuMemHostRegister(host + 100, 200, 0));
  S(cuMemHostUnregister(host + 100));
}


/* ---- what pointers say ---- */

static void attributes_of(const char *p) {
  int type = 9, ordinal = 9;
  CUdeviceptr device = 9, start = 9;
  void *back = NULL;
  size_t size = 9;
  CUcontext owner = NULL;
  CUmemoryPool pool = NULL;
  CUdeviceptr q = at(p) + 100;
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q));
  num("type", type);
  S(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, q));
  num("the same", device == q);
  S(cuPointerGetAttribute(&back, CU_POINTER_ATTRIBUTE_HOST_POINTER, q));
  num("the same", back == p + 100);
  S(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q));
  num("ordinal", ordinal);
  S(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, q));
  num("start", start == at(p));
  S(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, q));
  num("size", (long)size);
  S(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, q));
  num("context", owner == ctx);
  S(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, q));
  num("no pool", pool == NULL);
}


static void pinned_attributes(void) {
  attributes_of(pinned(8192));
}


static void registered_attributes(void) {
  int type = 9;
  cu->cuMemHostRegister(host, 8192, 0);
  attributes_of(host);
  S(cuMemHostUnregister(host));
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at(host)));
}


static void device_attributes(void) {
  void *back = NULL;
  CUdeviceptr q = 0;
  CUmemoryPool pool = NULL;
  int type = 9;
  cu->cuMemAlloc(&q, 8192);
  S(cuPointerGetAttribute(&back, CU_POINTER_ATTRIBUTE_HOST_POINTER, q));
  S(cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, q));
  num("no pool", pool == NULL);
  S(cuMemFree(q));
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q));
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0));
}


static void device_pointer(void) {
  CUdeviceptr q = 9, u = 0;
  char *p = pinned(4096);
  cu->cuMemAlloc(&u, 64);
  S(cuMemHostGetDevicePointer(&q, p + 100, 0));
  num("the same", q == at(p) + 100);
  S(cuMemHostGetDevicePointer(&q, p, 1));
  S(cuMemHostGetDevicePointer(&q, 0, 0));
  S(cuMemHostGetDevicePointer(0, p, 0));
  S(cuMemHostGetDevicePointer(&q, host, 0));
  S(cuMemHostGetDevicePointer(&q, (void *)(size_t)u, 0));
}


/* ---- copies ---- */

static void round_trip(void) {
  char *p = pinned(4096);
  s = NS();
  memset(p, 1, 4096);
  S(cuMemcpyHtoDAsync(d, p, 4096, s));
  S(cuMemcpyDtoHAsync(p + 64, d, 64, s));
  S(cuMemsetD8Async(at(p), 7, 32, s));
  S(cuMemsetD16Async(at(p) + 64, 0x0505, 4, s));
  S(cuStreamSynchronize(s));
  num("first", p[0]);
  num("filled past it", p[71]);
  num("after", p[72]);
}


static void by_address(void) {
  char *p = pinned(4096);
  s = NS();
  memset(p, 3, 4096);
  memset(host, 4, 4096);
  S(cuMemcpyAsync(d, at(p), 64, s));
  S(cuMemcpyAsync(d + 64, at(host), 64, s));
  S(cuMemcpyAsync(at(p) + 128, d, 128, s));
  S(cuMemcpyAsync(at(host) + 128, at(p) + 128, 64, s));
  S(cuMemcpyAsync(at(host) + 192, at(host), 64, s));
  S(cuStreamSynchronize(s));
  num("pinned, device, pinned", p[128]);
  num("pageable, device, pinned", p[192]);
  num("pinned, pageable", host[128]);
  num("pageable, pageable", host[192]);
}


static void mixed_kinds(void) {
  char *p = pinned(4096);
  s = NS();
  S(cuMemcpyHtoDAsync(at(p), host, 64, s));
  S(cuMemcpyDtoHAsync(host, at(p), 64, s));
  S(cuMemcpyDtoDAsync(d, at(p), 64, s));
  S(cuMemcpyDtoD(at(p), d, 64));
  S(cuMemcpyHtoD(at(host), p, 64));
  S(cuMemcpyDtoH(p, at(host), 64));
  S(cuMemcpyDtoDAsync(d, at(host), 64, s));
  S(cuStreamSynchronize(s));
}


static void overlapping(void) {
  S(cuMemcpyDtoD(d, d + 32, 64));
  S(cuMemcpyDtoD(d, d, 64));
  S(cuMemcpyDtoD(d + 1, d + 70, 3));
  S(cuMemcpyDtoD(d, d + 32, 0));
  S(cuMemcpyDtoD(0, 0, 0));
}


static void far_past_the_end(void) {
  CUdeviceptr q = 0;
  static char large[8 << 20];
  cu->cuMemAlloc(&q, 2 << 20);
  S(cuMemcpyHtoD(q, large, sizeof large));
  S(cuMemcpyDtoH(large, q, sizeof large));
  S(cuMemcpyDtoD(q, d, 1 << 30));
  S(cuMemsetD8(q, 0, (size_t)1 << 40));
  S(cuCtxSynchronize());
}


static void captured_kinds(void) {
  CUDA_MEMCPY3D c;
  CUgraphNode n[4];
  size_t count = 4;
  char *p = pinned(4096);
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  S(cuMemcpyAsync(d, at(p), 64, s));
  S(cuMemcpyAsync(at(host), d, 64, s));
  S(cuMemcpyAsync(d + 4096, d, 64, s));
  S(cuMemcpyHtoDAsync(d, p, 64, s));
  S(cuStreamEndCapture(s, &g));
  cu->cuGraphGetNodes(g, n, &count);
  for (size_t i = 0; i < count; i++) {
    memset(&c, 0, sizeof c);
    S(cuGraphMemcpyNodeGetParams(n[i], &c));
    num("types", c.srcMemoryType * 10 + c.dstMemoryType);
    num("by host address", (c.srcHost != NULL) * 10 + (c.dstHost != NULL));
  }
}


static void captured_changed(void) {
  char *p = pinned(4096);
  char back[2] = {0, 0};
  s = NS();
  memset(p, 1, 64);
  memset(host, 1, 64);
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemcpyHtoDAsync(d, p, 64, s);
  cu->cuMemcpyHtoDAsync(d + 64, host, 64, s);
  cu->cuStreamEndCapture(s, &g);
  cu->cuGraphInstantiate(&e, g, 0);
  for (int i = 2; i < 4; i++) {
    memset(p, i, 64);
    memset(host, i, 64);
    S(cuGraphLaunch(e, s));
    S(cuStreamSynchronize(s));
    cu->cuMemcpyDtoH(&back[0], d, 1);
    cu->cuMemcpyDtoH(&back[1], d + 64, 1);
    num("from pinned", back[0]);
    num("from pageable", back[1]);
  }
}


static void captured_past_the_end(void) {
  CUdeviceptr q = 0;
  cu->cuMemAlloc(&q, 2 << 20);
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  S(cuMemcpyDtoDAsync(q, d, 1 << 30, s));
  num("status", st(s));
  S(cuMemcpyDtoDAsync(q, d, 0, s));
  S(cuMemsetD8Async(q, 0, 0, s));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
}


/* ---- accounts ---- */

static long missing(size_t before) {
  size_t free = 0;
  cu->cuMemGetInfo(&free, NULL);
  return before < free ? 0 : (long)((before - free) >> 20);
}


static void memory_info(void) {
  size_t free = 0, total = 0;
  CUdeviceptr q = 0;
  S(cuMemGetInfo(&free, &total));
  num("some free", free > 0 && free <= total);
  cu->cuMemAlloc(&q, 64 << 20);
  num("64 MiB fewer", missing(free));
  S(cuMemFree(q));
  num("none fewer", missing(free));
  S(cuMemAllocAsync(&q, 64 << 20, 0));
  num("64 MiB fewer", missing(free));
  S(cuMemFreeAsync(q, 0));
  S(cuStreamSynchronize(0));
  num("none fewer", missing(free));
  S(cuMemGetInfo(&free, 0));
  S(cuMemGetInfo(0, &total));
}


static const question questions[] = {
    {"pinned memory: nothing, null, flags, too much", alloc},
    {"pinned memory: freed in the middle, freed twice", free_twice},
    {"pinned memory: freed by other calls, other memory freed as it",
     free_otherwise},
    {"pinned memory: registered", register_pinned},
    {"device memory: registered", register_device},
    {"registered memory: neighbours, overlap, in the middle, flags",
     registered},
    {"registered memory: not aligned", register_unaligned},
    {"pinned memory: pointer attributes", pinned_attributes},
    {"registered memory: pointer attributes, and after it",
     registered_attributes},
    {"device memory: pointer attributes, freed, null", device_attributes},
    {"pinned memory: its device pointer", device_pointer},
    {"pinned memory: to the device and back, fills", round_trip},
    {"cuMemcpyAsync between kinds of memory", by_address},
    {"copies that name another kind of memory", mixed_kinds},
    {"copies within the device: overlapping, nothing, null", overlapping},
    {"captured copies: what their nodes say", captured_kinds},
    {"captured copies: their source changed before the launch",
     captured_changed},
    {"captured copies: far past the end, nothing", captured_past_the_end},
    {"memory info: with an allocation and after", memory_info},
};


/* A driver that took these would lose the context. */
static const question alone[] = {
    {"copies far past the end", far_past_the_end},
};


void ask_pinned(void) {
  row_list(questions, sizeof questions / sizeof *questions);
  row_list_alone(alone, sizeof alone / sizeof *alone);
}
