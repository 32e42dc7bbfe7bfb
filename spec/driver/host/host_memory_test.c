/* The host device's memory, copies, virtual memory, pools and modules. */
#define _GNU_SOURCE
#include "driver/host/host_support.h"

#include <pthread.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)


/* Every allocation then ends at a guard page, and none is used again. */
static bool tight(void) {
  const char *guard = getenv("CGRAPHLUA_HOST_GUARD");
  return guard && !strcmp(guard, "1");
}


/* ---- plain memory ---- */

static void test_alloc(void) {
  CUdeviceptr p = 0, q = 0;
  size_t before, after, total;
  DO(cuMemGetInfo(&before, &total));
  IS(SUCCESS, cuMemAlloc(&p, 3 * MIB + 1));
  IS(SUCCESS, cuMemAlloc(&q, 1));
  tap_ok(tight() || (p % 256 == 0 && q % 256 == 0),
         "allocations are aligned to 256 bytes");
  DO(cuMemGetInfo(&after, NULL));
  tap_ok(before - after >= 3 * MIB && before - after < 4 * MIB,
         "cuMemGetInfo counts them");
  IS(ERROR_INVALID_VALUE, cuMemAlloc(&p, 0));
  IS(ERROR_INVALID_VALUE, cuMemAlloc(NULL, 64));
  IS(ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, (size_t)1 << 50));
  IS(ERROR_OUT_OF_MEMORY, cuMemAlloc(&p, SIZE_MAX));
  IS(ERROR_INVALID_VALUE, cuMemFree(p + 256));
  IS(SUCCESS, cuMemFree(p));
  IS(ERROR_INVALID_VALUE, cuMemFree(p));
  IS(SUCCESS, cuMemFree(0));
  IS(SUCCESS, cuMemFreeAsync(q, NULL));
  IS(ERROR_INVALID_VALUE, cuMemFree(q));
  DO(cuCtxSynchronize());
  DO(cuMemGetInfo(&after, NULL));
  tap_ok(before == after, "all of it comes back");
}


static void test_free_waits(void) {
  gate g;
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr p = new_memory(4 * MIB);
  gate_close(&g, s);
  DO(cuMemsetD32Async(p, 7, MIB, s));
  pthread_t opener;
  pthread_create(&opener, NULL, (void *(*)(void *))(void *)gate_open, &g);
  IS(SUCCESS, cuMemFree(p));
  pthread_join(opener, NULL);
  IS(SUCCESS, cuStreamSynchronize(s));
  DO(cuStreamDestroy(s));
}


static void child_size(void) {
  size_t total, free;
  NEED(driver->cuDeviceTotalMem(&total, 0) == CUDA_SUCCESS);
  NEED(total == 64 * MIB);
  CUdeviceptr p, q;
  NEED(driver->cuMemAlloc(&p, 65 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
  NEED(driver->cuMemAlloc(&p, 40 * MIB) == CUDA_SUCCESS);
  NEED(driver->cuMemAlloc(&q, 30 * MIB) == CUDA_ERROR_OUT_OF_MEMORY);
  NEED(driver->cuMemAllocAsync(&q, 30 * MIB, NULL) == CUDA_ERROR_OUT_OF_MEMORY);
  CUmemAllocationProp prop = {.type = 1, .location = {1, 0}};
  CUmemGenericAllocationHandle h;
  NEED(driver->cuMemCreate(&h, 30 * MIB, &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  NEED(driver->cuMemCreate(&h, 20 * MIB, &prop, 0) == CUDA_SUCCESS);
  NEED(driver->cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
  NEED(free == 4 * MIB && total == 64 * MIB);
  NEED(driver->cuMemRelease(h) == CUDA_SUCCESS);
  NEED(driver->cuMemFree(p) == CUDA_SUCCESS);
  /* What a pool keeps is given up when others need it. */
  uint64_t keep = 64 * MIB;
  CUmemoryPool pool;
  NEED(driver->cuDeviceGetDefaultMemPool(&pool, 0) == CUDA_SUCCESS);
  NEED(driver->cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD,
                                     &keep) == CUDA_SUCCESS);
  NEED(driver->cuMemAllocAsync(&p, 50 * MIB, NULL) == CUDA_SUCCESS);
  NEED(driver->cuMemFreeAsync(p, NULL) == CUDA_SUCCESS);
  NEED(driver->cuCtxSynchronize() == CUDA_SUCCESS);
  NEED(driver->cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
  NEED(free < 20 * MIB);
  NEED(driver->cuMemAlloc(&q, 60 * MIB) == CUDA_SUCCESS);
}


static void test_pinned(void) {
  void *p, *none = &none;
  unsigned type = 0;
  IS(SUCCESS, cuMemHostAlloc(&p, 5000, CU_MEMHOSTALLOC_PORTABLE));
  IS(SUCCESS, cuMemHostAlloc(&none, 0, 0));
  tap_ok(none == NULL, "nothing is NULL");
  IS(ERROR_INVALID_VALUE, cuMemHostAlloc(&none, 64, 0x100));
  memset(p, 1, 5000);
  size_t machine =
      (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
  IS(ERROR_OUT_OF_MEMORY, cuMemHostAlloc(&none, 2 * machine, 0));
  bool same = true;
  for (int i = 0; i < 4; i++) /* what was freed can be locked again */
    same = same && !driver->cuMemHostAlloc(&none, machine / 8 * 5, 0) &&
           driver->cuMemHostAlloc(&none, machine / 8 * 5, 0) ==
               CUDA_ERROR_OUT_OF_MEMORY &&
           !driver->cuMemFreeHost(none);
  tap_ok(same, "page-locked memory is at most the machine's");
  CUdeviceptr d;
  IS(SUCCESS, cuMemHostGetDevicePointer(&d, (char *)p + 8, 0));
  tap_ok(d == (CUdeviceptr)(uintptr_t)p + 8, "pinned memory is one address");
  IS(SUCCESS, cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                    (CUdeviceptr)(uintptr_t)p));
  tap_ok(type == CU_MEMORYTYPE_HOST, "and of host type");
  IS(ERROR_INVALID_VALUE, cuMemFreeHost((char *)p + 8));
  IS(SUCCESS, cuMemFreeHost(p));
  IS(ERROR_INVALID_VALUE, cuMemFreeHost(p));
  static char own[8192];
  IS(SUCCESS, cuMemHostRegister(own, 4096, 0));
  IS(ERROR_HOST_MEMORY_ALREADY_REGISTERED, cuMemHostRegister(own + 64, 8, 0));
  IS(ERROR_INVALID_VALUE, cuMemHostRegister(own + 4096, 0, 0));
  IS(ERROR_INVALID_VALUE, cuMemHostUnregister(own + 8));
  IS(SUCCESS, cuMemHostUnregister(own));
  IS(ERROR_HOST_MEMORY_NOT_REGISTERED, cuMemHostUnregister(own));
}


static void test_attributes(void) {
  CUdeviceptr p = new_memory(1000), start = 0;
  size_t size = 0;
  int ordinal = -1, stack = 0;
  CUcontext ctx = NULL;
  IS(SUCCESS, cuPointerGetAttribute(
                  &start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + 999));
  IS(SUCCESS,
     cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 999));
  IS(SUCCESS,
     cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p));
  IS(SUCCESS, cuPointerGetAttribute(&ctx, CU_POINTER_ATTRIBUTE_CONTEXT, p));
  tap_ok(start == p && size == 1000 && ordinal == 0 && ctx == context,
         "a pointer knows its allocation");
  IS(ERROR_INVALID_VALUE,
     cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_HOST_POINTER, p));
  IS(ERROR_INVALID_VALUE,
     cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + 1000));
  IS(ERROR_INVALID_VALUE,
     cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                           (CUdeviceptr)(uintptr_t)&stack));
  DO(cuMemFree(p));
}


/* ---- copies and fills ---- */

static void test_copies(void) {
  enum { N = 3 << 20 };
  static unsigned char in[N], out[N];
  for (int i = 0; i < N; i++)
    in[i] = (unsigned char)(i * 7 + (i >> 11));
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr p = new_memory(N), q = new_memory(N);
  DO(cuMemcpyHtoDAsync(p, in, N, s));
  DO(cuMemcpyDtoDAsync(q, p, N, s));
  DO(cuMemcpyDtoHAsync(out, q, N, s));
  tap_ok(!memcmp(in, out, N), "a copy to pageable memory is done on return");
  memset(out, 0, N);
  DO(cuMemcpyAsync((CUdeviceptr)(uintptr_t)out, q, N, s));
  tap_ok(!memcmp(in, out, N), "cuMemcpyAsync finds out what pointers are");
  gate g;
  unsigned char small[1000];
  memcpy(small, in, sizeof small);
  gate_close(&g, s);
  DO(cuMemcpyHtoDAsync(p + 5, small, sizeof small, s));
  memset(small, 0, sizeof small);
  gate_open(&g);
  DO(cuStreamSynchronize(s));
  DO(cuMemcpyDtoH(out, p + 5, sizeof small));
  tap_ok(!memcmp(out, in, sizeof small),
         "a pageable source may change once the call returns");
  IS(ERROR_INVALID_VALUE, cuMemcpyHtoD(p + 1, in, N));
  IS(ERROR_INVALID_VALUE, cuMemcpyDtoH(out, q + 1, N));
  IS(ERROR_INVALID_VALUE, cuMemcpyDtoDAsync(q, p + N - 8, 9, s));
  IS(ERROR_INVALID_VALUE, cuMemcpyHtoD((CUdeviceptr)(uintptr_t)out, in, 8));
  IS(ERROR_INVALID_VALUE, cuMemcpyDtoH(out, 0, 8));
  IS(ERROR_INVALID_VALUE, cuMemcpyDtoHAsync(out, q, SIZE_MAX, s));
  IS(SUCCESS, cuMemcpyHtoD(0, NULL, 0));
  DO(cuMemFree(p));
  DO(cuMemFree(q));
  DO(cuStreamDestroy(s));
}


/* Copies a box out of a volume and compares it byte by byte. */
static void test_boxes(void) {
  enum { W = 40, H = 30, D = 20, w = 13, h = 7, d = 5 };
  static unsigned char volume[D][H][W], box[d][h + 2][w + 3];
  for (size_t i = 0; i < sizeof volume; i++)
    (&volume[0][0][0])[i] = (unsigned char)(i * 31 + i / 251);
  CUdeviceptr p = new_memory(sizeof volume), q = new_memory(sizeof box);
  DO(cuMemcpyHtoD(p, volume, sizeof volume));
  CUDA_MEMCPY3D c = {.srcXInBytes = 11,
                     .srcY = 5,
                     .srcZ = 3,
                     .srcMemoryType = CU_MEMORYTYPE_DEVICE,
                     .srcDevice = p,
                     .srcPitch = W,
                     .srcHeight = H,
                     .dstXInBytes = 1,
                     .dstY = 2,
                     .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                     .dstDevice = q,
                     .dstPitch = w + 3,
                     .dstHeight = h + 2,
                     .WidthInBytes = w,
                     .Height = h,
                     .Depth = d};
  IS(SUCCESS, cuMemcpy3DAsync(&c, NULL));
  DO(cuMemcpyDtoH(box, q, sizeof box));
  bool same = true;
  for (int z = 0; z < d; z++)
    for (int y = 0; y < h + 2; y++)
      for (int x = 0; x < w + 3; x++) {
        bool in = y >= 2 && x >= 1 && x < w + 1;
        unsigned char e = in ? volume[z + 3][y + 3][x + 10] : 0;
        same = same && box[z][y][x] == e;
      }
  tap_ok(same, "a box lands where it should and nowhere else");
  c.Depth = d + 1;
  IS(ERROR_INVALID_VALUE, cuMemcpy3DAsync(&c, NULL));
  c.Depth = d;
  c.dstHeight = h;
  IS(ERROR_INVALID_VALUE, cuMemcpy3DAsync(&c, NULL));
  c.dstHeight = h + 2;
  c.srcPitch = 12;
  IS(ERROR_INVALID_VALUE, cuMemcpy3DAsync(&c, NULL));
  c.srcPitch = W;
  c.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  IS(ERROR_INVALID_VALUE, cuMemcpy3DAsync(&c, NULL));
  DO(cuMemFree(p));
  DO(cuMemFree(q));
}


static void test_rows(void) {
  enum { W = 40, H = 10 };
  static unsigned char plane[H][W], rows[H][20];
  for (size_t i = 0; i < sizeof plane; i++)
    (&plane[0][0])[i] = (unsigned char)(i * 31 + i / 251);
  CUdeviceptr q = new_memory(sizeof rows);
  CUDA_MEMCPY2D r = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                     .srcHost = plane,
                     .srcPitch = W,
                     .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                     .dstDevice = q,
                     .dstPitch = 20,
                     .WidthInBytes = 20,
                     .Height = H};
  IS(SUCCESS, cuMemcpy2DAsync(&r, NULL));
  DO(cuMemcpyDtoH(rows, q, sizeof rows));
  bool same = true;
  for (int y = 0; y < H; y++)
    same = same && !memcmp(rows[y], plane[y], 20);
  tap_ok(same, "rows come from the host with their pitch");
  r.WidthInBytes = 0;
  IS(SUCCESS, cuMemcpy2DAsync(&r, NULL));
  IS(ERROR_INVALID_VALUE, cuMemcpy2DAsync(NULL, NULL));
  DO(cuMemFree(q));
}


static void test_fills(void) {
  static unsigned words[300000];
  CUdeviceptr p = new_memory(sizeof words);
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  DO(cuMemsetD32Async(p, 0x12345678, 300000, s));
  DO(cuMemsetD16Async(p + 8, 0xabcd, 2, s));
  DO(cuMemsetD8Async(p + 16, 0xee, 3, s));
  DO(cuMemsetD2D32Async(p + 1000, 400, 7, 10, 20, s));
  DO(cuMemsetD2D8Async(p + 100000, 64, 9, 8, 4, s));
  DO(cuMemcpyDtoHAsync(words, p, sizeof words, s));
  tap_ok(words[0] == 0x12345678 && words[299999] == 0x12345678 &&
             words[2] == 0xabcdabcd && words[4] == 0x12eeeeee,
         "fills of 1, 2 and 4 bytes");
  tap_ok(words[250] == 7 && words[259] == 7 && words[260] == 0x12345678 &&
             words[250 + 19 * 100] == 7 && words[250 + 20 * 100] == 0x12345678,
         "fills of rows");
  tap_ok(words[25000] == 0x09090909 && words[25002] == 0x12345678 &&
             words[25016] == 0x09090909 && words[25064] == 0x12345678,
         "fills of rows of bytes");
  IS(ERROR_INVALID_VALUE, cuMemsetD32Async(p + 2, 0, 1, s));
  IS(ERROR_INVALID_VALUE, cuMemsetD8Async(p, 0, sizeof words + 1, s));
  IS(ERROR_INVALID_VALUE, cuMemsetD2D32Async(p, 8, 0, 4, 2, s));
  IS(ERROR_INVALID_VALUE,
     cuMemsetD8Async((CUdeviceptr)(uintptr_t)words, 0, 8, s));
  IS(SUCCESS, cuMemsetD8Async(p, 0, 0, s));
  DO(cuStreamDestroy(s));
  DO(cuMemFree(p));
}


/* ---- virtual memory ---- */

static void test_virtual(void) {
  const size_t g = 2 * MIB;
  CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemAccessDesc rw = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, 3};
  CUmemGenericAllocationHandle a, b;
  CUdeviceptr va, vb;
  size_t granularity = 0;
  IS(SUCCESS, cuMemGetAllocationGranularity(&granularity, &prop, 0));
  tap_ok(granularity == g, "chunks are multiples of 2 MiB");
  IS(ERROR_INVALID_VALUE, cuMemAddressReserve(&va, g + 1, 0, 0, 0));
  IS(ERROR_INVALID_VALUE, cuMemAddressReserve(&va, g, 3, 0, 0));
  IS(SUCCESS, cuMemAddressReserve(&va, 8 * g, 16 * g, 0, 0));
  IS(SUCCESS, cuMemAddressReserve(&vb, 2 * g, 0, 0, 0));
  tap_ok(va % (16 * g) == 0, "reservations are aligned as asked");
  IS(ERROR_INVALID_VALUE, cuMemCreate(&a, g + 1, &prop, 0));
  IS(SUCCESS, cuMemCreate(&a, 2 * g, &prop, 0));
  IS(SUCCESS, cuMemCreate(&b, g, &prop, 0));
  IS(ERROR_NOT_SUPPORTED, cuMemMap(va, g, 0, a, 0));
  IS(SUCCESS, cuMemMap(va, 2 * g, 0, a, 0));
  IS(ERROR_INVALID_VALUE, cuMemMap(va + g, g, 0, b, 0));
  IS(SUCCESS, cuMemMap(va + 2 * g, g, 0, b, 0));
  IS(ERROR_INVALID_VALUE, cuMemsetD8Async(va, 1, 64, NULL));
  IS(ERROR_INVALID_VALUE, cuMemSetAccess(va, g, &rw, 1));
  IS(ERROR_INVALID_VALUE, cuMemSetAccess(va, 4 * g, &rw, 1));
  IS(SUCCESS, cuMemSetAccess(va, 3 * g, &rw, 1));
  IS(SUCCESS, cuMemsetD32Async(va, 41, 3 * g / 4, NULL));
  IS(ERROR_INVALID_VALUE, cuMemsetD8Async(va, 1, 3 * g + 1, NULL));
  IS(ERROR_INVALID_VALUE, cuMemAddressFree(va, 8 * g));
  /* The same chunk at another place shows the same bytes. */
  IS(SUCCESS, cuMemMap(vb, 2 * g, 0, a, 0));
  IS(SUCCESS, cuMemSetAccess(vb, 2 * g, &rw, 1));
  tap_ok(read_int(vb + g) == 41, "a chunk may be mapped twice");
  IS(SUCCESS, cuMemRelease(a));
  IS(ERROR_INVALID_VALUE, cuMemRelease(a));
  IS(ERROR_INVALID_VALUE, cuMemUnmap(va, g));
  IS(SUCCESS, cuMemUnmap(va, 2 * g));
  IS(SUCCESS, cuMemUnmap(va, 2 * g));
  tap_ok(read_int(vb) == 41, "and lives as long as a mapping");
  IS(SUCCESS, cuMemUnmap(vb, 2 * g));
  IS(SUCCESS, cuMemMap(vb, g, 0, b, 0));
  IS(SUCCESS, cuMemSetAccess(vb, g, &rw, 1));
  tap_ok(read_int(vb) == 41, "a chunk that is mapped anew keeps its bytes");
  IS(SUCCESS, cuMemUnmap(vb, g));
  IS(SUCCESS, cuMemUnmap(va, 8 * g));
  IS(SUCCESS, cuMemRelease(b));
  IS(SUCCESS, cuMemAddressFree(va, 8 * g));
  IS(ERROR_INVALID_VALUE, cuMemAddressFree(va, 8 * g));
  IS(SUCCESS, cuMemAddressFree(vb, 2 * g));
}


/* A kernel that touches mapped memory before cuMemSetAccess faults. */
static void child_no_access(void) {
  CUmemAllocationProp prop = {.type = 1, .location = {1, 0}};
  CUmemGenericAllocationHandle h;
  CUdeviceptr va;
  DO(cuMemAddressReserve(&va, 2 * MIB, 0, 0, 0));
  DO(cuMemCreate(&h, 2 * MIB, &prop, 0));
  DO(cuMemMap(va, 2 * MIB, 0, h, 0));
  push(va, 1, NULL);
  NEED(driver->cuStreamSynchronize(NULL) == CUDA_ERROR_ILLEGAL_ADDRESS);
  NEED(strstr(driver->failure_text(), "not accessible"));
}


/* ---- pools ---- */

static void test_pools(void) {
  gate g;
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  CUstream t = new_stream(CU_STREAM_NON_BLOCKING);
  CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                          .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  CUmemoryPool pool, owner;
  CUdeviceptr p, q, r;
  uint64_t keep = 64 * MIB, used, reserved;
  IS(SUCCESS, cuMemPoolCreate(&pool, &props));
  DO(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  IS(SUCCESS, cuMemAllocFromPoolAsync(&p, 5000, pool, s));
  DO(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, p));
  tap_ok(owner == pool, "an allocation knows its pool");
  DO(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used));
  DO(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                           &reserved));
  tap_ok(used == 5000 && reserved >= used, "a pool counts what is used");
  gate_close(&g, s);
  IS(SUCCESS, cuMemFreeAsync(p, s));
  IS(ERROR_INVALID_VALUE, cuMemFreeAsync(p, s));
  DO(cuMemAllocFromPoolAsync(&q, 5000, pool, t));
  tap_ok(q != p, "memory freed in a busy stream is not given to another");
  DO(cuMemAllocFromPoolAsync(&r, 5000, pool, s));
  tap_ok(tight() || r == p, "but to the same");
  gate_open(&g);
  DO(cuMemFreeAsync(r, s));
  DO(cuStreamSynchronize(s));
  DO(cuMemAllocFromPoolAsync(&r, 4900, pool, t));
  tap_ok(tight() || r == p, "and to others when the stream has got there");
  DO(cuMemFreeAsync(q, t));
  DO(cuMemFreeAsync(r, t));
  DO(cuStreamSynchronize(t));
  DO(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                           &reserved));
  tap_ok(reserved > 0, "a pool keeps up to its threshold");
  IS(SUCCESS, cuMemPoolTrimTo(pool, 0));
  DO(cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
                           &reserved));
  tap_ok(reserved == 0, "and gives it back when trimmed");
  IS(SUCCESS, cuMemAllocAsync(&p, 0, s));
  tap_ok(p == 0, "nothing is the null address");
  IS(SUCCESS, cuMemFreeAsync(0, s));
  DO(cuMemAllocFromPoolAsync(&p, 100, pool, s));
  IS(SUCCESS, cuMemPoolDestroy(pool));
  IS(ERROR_INVALID_VALUE, cuMemAllocFromPoolAsync(&q, 100, pool, s));
  IS(SUCCESS, cuMemFreeAsync(p, s));
  DO(cuStreamSynchronize(s));
  tap_ok(cgl_host_live("pools") == 0, "a pool outlives its handle no longer "
                                      "than its allocations");
  CUmemoryPool builtin;
  DO(cuDeviceGetDefaultMemPool(&builtin, 0));
  IS(ERROR_INVALID_VALUE, cuMemPoolDestroy(builtin));
  props.location.type = 0;
  IS(ERROR_INVALID_VALUE, cuMemPoolCreate(&pool, &props));
  DO(cuStreamDestroy(s));
  DO(cuStreamDestroy(t));
}


/* Sizes of all kinds, in a random order, hold their bytes apart. */
static void test_pool_stress(void) {
  enum { SLOTS = 64, ROUNDS = 4000 };
  struct {
    CUdeviceptr p;
    size_t words;
    unsigned value;
  } slot[SLOTS] = {{0}};
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  unsigned seed = 12345, bad = 0;
  for (int round = 0; round < ROUNDS; round++) {
    seed = seed * 1664525u + 1013904223u;
    unsigned i = seed >> 16 & (SLOTS - 1);
    if (slot[i].p) {
      unsigned first, last;
      DO(cuMemcpyDtoHAsync(&first, slot[i].p, 4, s));
      DO(cuMemcpyDtoHAsync(&last, slot[i].p + (slot[i].words - 1) * 4, 4, s));
      bad += first != slot[i].value || last != slot[i].value;
      DO(cuMemFreeAsync(slot[i].p, s));
      slot[i].p = 0;
    } else {
      slot[i].words = 1 + (seed >> 8) % 100000 / (1 + seed % 97);
      slot[i].value = seed;
      DO(cuMemAllocAsync(&slot[i].p, slot[i].words * 4, s));
      DO(cuMemsetD32Async(slot[i].p, seed, slot[i].words, s));
    }
  }
  for (int i = 0; i < SLOTS; i++)
    if (slot[i].p)
      DO(cuMemFreeAsync(slot[i].p, s));
  DO(cuStreamSynchronize(s));
  tap_ok(bad == 0, "%d allocations and frees, %u overlap", ROUNDS, bad);
  DO(cuStreamDestroy(s));
}


/* ---- modules ---- */

static void test_modules(void) {
  CUmodule other;
  CUfunction f;
  CUdeviceptr p, q;
  size_t bytes = 0;
  const char *name = NULL;
  static const char junk[4096] = "\177ELF and not much else";
  IS(ERROR_INVALID_IMAGE, cuModuleLoadData(&other, "not an image at all"));
  IS(ERROR_INVALID_IMAGE, cuModuleLoadData(&other, junk));
  IS(ERROR_INVALID_VALUE, cuModuleLoadData(&other, NULL));
  IS(ERROR_NOT_FOUND, cuModuleGetFunction(&f, module, "nope"));
  IS(ERROR_NOT_FOUND, cuModuleGetGlobal(&p, &bytes, module, "nope"));
  IS(SUCCESS, cuModuleLoadDataEx(&other, image(), 0, NULL, NULL));
  IS(SUCCESS, cuModuleGetGlobal(&p, &bytes, module, "counter"));
  IS(SUCCESS, cuModuleGetGlobal(&q, NULL, other, "counter"));
  tap_ok(bytes == 4 && p != q, "an image loaded twice is two modules");
  IS(SUCCESS, cuModuleGetFunction(&f, other, "count"));
  IS(SUCCESS, cuFuncGetName(&name, f));
  tap_ok(name && !strcmp(name, "count"), "a function knows its name");
  DO(cuMemsetD32(p, 0, 1));
  for (int i = 0; i < 10; i++)
    launch(f, 4, 8, NULL, NULL);
  DO(cuStreamSynchronize(NULL));
  tap_ok(read_int(q) == 320 && read_int(p) == 0, "each with its variables");
  gate g;
  gate_close(&g, NULL);
  launch(f, 1, 1, NULL, NULL);
  IS(SUCCESS, cuModuleUnload(other));
  gate_open(&g);
  IS(SUCCESS, cuStreamSynchronize(NULL));
  IS(ERROR_INVALID_HANDLE,
     cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  IS(ERROR_INVALID_HANDLE, cuModuleUnload(other));
  int n = 0, block = 0;
  f = kernel("empty");
  IS(SUCCESS,
     cuFuncGetAttribute(&n, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, f));
  tap_ok(n == 1024, "blocks of up to 1024 threads");
  IS(SUCCESS, cuOccupancyMaxActiveBlocksPerMultiprocessor(&n, f, 1024, 0));
  tap_ok(n == 2, "two of which are resident");
  IS(SUCCESS, cuOccupancyMaxPotentialBlockSize(&n, &block, f, NULL, 0, 100));
  tap_ok(block > 0 && block <= 100 && n > 0, "the limit of a block is kept");
}


static void test_lookup(void) {
  void *p = NULL;
  int status = -1;
  const char *text;
  IS(SUCCESS, cuGetProcAddress("cuMemAlloc", &p, 13000, 0, &status));
  void *expected;
  memcpy(&expected, &driver->cuMemAlloc, sizeof expected);
  tap_ok(p == expected && status == CU_GET_PROC_ADDRESS_SUCCESS,
         "cuGetProcAddress finds a row");
  IS(SUCCESS, cuGetProcAddress("cuNope", &p, 13000, 0, &status));
  tap_ok(!p && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, "or none");
  IS(SUCCESS, cuGetProcAddress("cuGraphAddNode", &p, 10000, 0, &status));
  tap_ok(!p && status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT,
         "or one that is too new");
  IS(SUCCESS, cuGetErrorName(700, &text));
  tap_ok(!strcmp(text, "CUDA_ERROR_ILLEGAL_ADDRESS"), "errors have names");
  IS(ERROR_INVALID_VALUE, cuGetErrorString(12345, &text));
}


static const child_case cases[] = {{"size", child_size},
                                   {"no_access", child_no_access}};


int main(int argc, char **argv) {
  image();
  run_child(argc, argv, cases, sizeof cases / sizeof *cases);
  open_device();
  test_alloc();
  test_free_waits();
  test_pinned();
  test_attributes();
  test_copies();
  test_boxes();
  test_rows();
  test_fills();
  test_virtual();
  test_pools();
  test_pool_stress();
  test_modules();
  test_lookup();
  tap_ok(child("size", "CGRAPHLUA_HOST_MEMORY", "64M"),
         "the device has the size of CGRAPHLUA_HOST_MEMORY");
  tap_ok(child("no_access", NULL, NULL),
         "mapped memory without access is illegal to touch");
  DO(cuModuleUnload(module));
  DO(cuDevicePrimaryCtxRelease(0));
  static const char *const kinds[] = {"streams", "events",      "modules",
                                      "pools",   "allocations", "bytes"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    tap_ok(cgl_host_live(kinds[i]) == 0, "no %s are alive", kinds[i]);
  return tap_done();
}
