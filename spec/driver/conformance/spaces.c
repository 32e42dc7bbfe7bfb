/* Virtual memory and pools beyond their first use. */
#include "driver/conformance/ask.h"

#include <string.h>

#define PAGE ((size_t)2 << 20)

static CUstream s, t;
static char host[64];
static CUmemAllocationProp prop;
static CUmemAccessDesc access;
static CUdeviceptr va;
static CUmemGenericAllocationHandle h, h2;


/* Four pages of addresses and two chunks of one page. */
static void begin(void) {
  prop = device_prop();
  access = (CUmemAccessDesc){prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  s = NS();
  cu->cuMemAddressReserve(&va, 4 * PAGE, 0, 0, 0);
  cu->cuMemCreate(&h, PAGE, &prop, 0);
  cu->cuMemCreate(&h2, PAGE, &prop, 0);
}


/* ---- virtual memory ---- */

static void granularity(void) {
  size_t g = 0;
  begin();
  S(cuMemGetAllocationGranularity(&g, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  num("bytes", (long)g);
  S(cuMemGetAllocationGranularity(&g, &prop,
                                  CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  num("bytes", (long)g);
  S(cuMemGetAllocationGranularity(&g, &prop, 7));
  S(cuMemGetAllocationGranularity(0, &prop, 0));
  S(cuMemGetAllocationGranularity(&g, 0, 0));
  prop.type = 0;
  S(cuMemGetAllocationGranularity(&g, &prop, 0));
}


static void reserve(void) {
  CUdeviceptr q = 0;
  begin();
  S(cuMemAddressReserve(&q, 0, 0, 0, 0));
  S(cuMemAddressReserve(&q, PAGE, 3, 0, 0));
  S(cuMemAddressReserve(&q, PAGE, 4096, 0, 0));
  S(cuMemAddressReserve(&q, PAGE, 8 * PAGE, 0, 0));
  num("aligned", q % (8 * PAGE) == 0);
  S(cuMemAddressReserve(&q, PAGE, 0, 0, 1));
  S(cuMemAddressReserve(&q, PAGE, 0, va, 0)); /* taken */
  num("elsewhere", q != va);
  S(cuMemAddressReserve(0, PAGE, 0, 0, 0));
  S(cuMemAddressFree(va + PAGE, PAGE));
  S(cuMemAddressFree(va, 4 * PAGE));
}


static void create(void) {
  CUmemGenericAllocationHandle x = 0;
  begin();
  S(cuMemCreate(&x, PAGE, &prop, 1));
  S(cuMemCreate(0, PAGE, &prop, 0));
  S(cuMemCreate(&x, PAGE, 0, 0));
  S(cuMemCreate(&x, (size_t)1 << 50, &prop, 0));
  prop.type = 0;
  S(cuMemCreate(&x, PAGE, &prop, 0));
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location.type = 0;
  S(cuMemCreate(&x, PAGE, &prop, 0));
}


static void release(void) {
  begin();
  S(cuMemRelease(0));
  cu->cuMemMap(va, PAGE, 0, h, 0);
  cu->cuMemSetAccess(va, PAGE, &access, 1);
  S(cuMemRelease(h));
  S(cuMemMap(va + PAGE, PAGE, 0, h, 0));
  S(cuMemsetD8(va, 6, PAGE));
  S(cuMemcpyDtoH(host, va + PAGE - 64, 64));
  num("kept", host[63]);
  S(cuMemUnmap(va, PAGE));
  S(cuMemSetAccess(va + PAGE, PAGE, &access, 1));
  S(cuMemcpyDtoH(host, va + PAGE, 64));
  num("seen through the other", host[0]);
  S(cuMemUnmap(va + PAGE, PAGE));
}


static void map_errors(void) {
  CUdeviceptr q = 0;
  begin();
  cu->cuMemAlloc(&q, 4 * PAGE);
  S(cuMemMap(va, PAGE, 0, 0, 0));
  S(cuMemMap(va, PAGE, 0, h, 1));
  S(cuMemMap(va, 0, 0, h, 0));
  S(cuMemMap(va + 4 * PAGE, PAGE, 0, h, 0));
  S(cuMemMap(0, PAGE, 0, h, 0));
  S(cuMemMap((q + PAGE) / PAGE * PAGE, PAGE, 0, h, 0));
  S(cuMemMap(va, PAGE, PAGE, h, 0));
  S(cuMemMap(va, PAGE / 2, 0, h, 0));
  S(cuMemMap(va + PAGE, PAGE, 0, h, 0));
  S(cuMemMap(va + PAGE, PAGE, 0, h2, 0)); /* taken */
}


static void unmap_errors(void) {
  begin();
  cu->cuMemMap(va, PAGE, 0, h, 0);
  cu->cuMemMap(va + PAGE, PAGE, 0, h2, 0);
  S(cuMemUnmap(va, 0));
  S(cuMemUnmap(va + 4096, PAGE));
  S(cuMemUnmap(va, PAGE / 2));
  S(cuMemUnmap(0, PAGE));
  S(cuMemUnmap(va + 2 * PAGE, 2 * PAGE));
  S(cuMemUnmap(va, 4 * PAGE));
  S(cuMemMap(va, PAGE, 0, h, 0));
}


static void free_mapped(void) {
  begin();
  cu->cuMemMap(va, PAGE, 0, h, 0);
  cu->cuMemSetAccess(va, PAGE, &access, 1);
  S(cuMemFree(va));
  S(cuMemFreeAsync(va, s));
  S(cuMemFreeHost((void *)(size_t)va));
  S(cuMemAddressFree(va, 4 * PAGE));
  S(cuMemAddressFree(va, PAGE));
  S(cuMemsetD8(va, 1, 64));
  S(cuMemUnmap(va, PAGE));
  S(cuMemAddressFree(va, 4 * PAGE));
}


static void set_access(void) {
  CUmemAccessDesc two[2];
  begin();
  cu->cuMemMap(va, PAGE, 0, h, 0);
  S(cuMemSetAccess(va, PAGE, 0, 1));
  S(cuMemSetAccess(va, PAGE, &access, 0));
  S(cuMemSetAccess(va, PAGE / 2, &access, 1));
  S(cuMemSetAccess(va + 4096, PAGE, &access, 1));
  S(cuMemSetAccess(va, 0, &access, 1));
  S(cuMemSetAccess(va, 2 * PAGE, &access, 1));
  S(cuMemSetAccess(va + PAGE, PAGE, &access, 1));
  two[0] = two[1] = access;
  S(cuMemSetAccess(va, PAGE, two, 2));
  access.flags = 2;
  S(cuMemSetAccess(va, PAGE, &access, 1));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
  S(cuMemSetAccess(va, PAGE, &access, 1));
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  access.location.type = 0;
  S(cuMemSetAccess(va, PAGE, &access, 1));
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  S(cuMemSetAccess(va, PAGE, &access, 1));
}


static void pointer_attributes(void) {
  int type = 9, ordinal = 9;
  CUdeviceptr start = 0;
  size_t size = 0;
  CUcontext owner = NULL;
  begin();
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, va));
  cu->cuMemMap(va + PAGE, PAGE, 0, h, 0);
  cu->cuMemSetAccess(va + PAGE, PAGE, &access, 1);
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                          va + PAGE + 64));
  num("type", type);
  S(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                          va + PAGE));
  num("ordinal", ordinal);
  S(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                          va + PAGE + 64));
  num("start of the reservation", start == va);
  S(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
                          va + PAGE + 64));
  num("size", (long)size);
  S(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, va + PAGE));
  num("no context", owner == NULL);
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, va));
  S(cuMemUnmap(va + PAGE, PAGE));
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, va + PAGE));
}


static void two_chunks(void) {
  CUdeviceptr q = 0;
  begin();
  cu->cuMemAlloc(&q, 4096);
  cu->cuMemMap(va, PAGE, 0, h, 0);
  cu->cuMemMap(va + PAGE, PAGE, 0, h2, 0);
  cu->cuMemSetAccess(va, 2 * PAGE, &access, 1);
  S(cuMemsetD8Async(va + PAGE - 32, 8, 64, s));
  S(cuMemcpyDtoDAsync(q, va + PAGE - 32, 64, s));
  S(cuMemcpyDtoHAsync(host, va + PAGE - 32, 64, s));
  S(cuStreamSynchronize(s));
  num("first", host[0]);
  num("last", host[63]);
  S(cuMemcpyDtoH(host, q, 64));
  num("last", host[63]);
}


/* What is touched without leave may cost the context: each on its own. */

static void no_access(void) {
  begin();
  cu->cuMemMap(va, PAGE, 0, h, 0);
  S(cuMemcpyDtoH(host, va, 64));
  S(cuMemcpyHtoD(va, host, 64));
  S(cuMemcpyDtoDAsync(d, va, 64, s));
  S(cuStreamSynchronize(s));
}


static void no_access_fill(void) {
  begin();
  cu->cuMemMap(va, PAGE, 0, h, 0);
  S(cuMemsetD8Async(va, 1, 64, s));
  S(cuStreamSynchronize(s));
}


static void no_mapping(void) {
  begin();
  S(cuMemcpyDtoH(host, va, 64));
  S(cuMemcpyDtoDAsync(d, va, 64, s));
  S(cuMemsetD8Async(va, 1, 64, s));
  S(cuStreamSynchronize(s));
}


static void past_the_mapping(void) {
  begin();
  cu->cuMemMap(va, PAGE, 0, h, 0);
  cu->cuMemSetAccess(va, PAGE, &access, 1);
  S(cuMemcpyDtoH(host, va + PAGE - 32, 64));
  S(cuMemcpyDtoDAsync(d, va + PAGE - 32, 64, s));
  S(cuMemsetD8Async(va + PAGE - 32, 1, 64, s));
  S(cuStreamSynchronize(s));
}


static void kernel_unmapped(void) {
  CUfunction poke = NULL;
  void *p[] = {&va};
  begin();
  cu->cuModuleGetFunction(&poke, mod, "poke");
  cu->cuMemMap(va, PAGE, 0, h, 0);
  cu->cuMemSetAccess(va, PAGE, &access, 1);
  S(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, s, p, 0));
  S(cuStreamSynchronize(s));
  S(cuMemUnmap(va, PAGE));
  S(cuLaunchKernel(poke, 1, 1, 1, 1, 1, 1, 0, s, p, 0));
  S(cuStreamSynchronize(s));
}


/* ---- pools ---- */

static CUmemoryPool pool;


static void begin_pool(size_t most) {
  CUmemPoolProps props;
  memset(&props, 0, sizeof props);
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.maxSize = most;
  s = NS();
  t = NS();
  pool = NULL;
  cu->cuMemPoolCreate(&pool, &props);
}


static long pool_value(CUmemPool_attribute which) {
  cuuint64_t value = 99;
  cu->cuMemPoolGetAttribute(pool, which, &value);
  return (long)value;
}


static void pool_create(void) {
  CUmemPoolProps props;
  CUmemoryPool p = NULL;
  memset(&props, 0, sizeof props);
  S(cuMemPoolCreate(&p, &props));
  props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  S(cuMemPoolCreate(&p, &props));
  props.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  props.location.id = -1;
  S(cuMemPoolCreate(&p, &props));
  props.location.id = 0;
  S(cuMemPoolCreate(0, &props));
  S(cuMemPoolCreate(&p, 0));
  S(cuMemPoolCreate(&p, &props));
  S(cuMemPoolDestroy(p));
  S(cuMemPoolDestroy(0));
}


static void pool_reuse(void) {
  int value = 9;
  begin_pool(0);
  for (int i = CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES;
       i <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES; i++) {
    S(cuMemPoolGetAttribute(pool, i, &value));
    num("value", value);
    value = 0;
    S(cuMemPoolSetAttribute(pool, i, &value));
    value = 9;
    S(cuMemPoolGetAttribute(pool, i, &value));
    num("value", value);
  }
  S(cuMemPoolGetAttribute(pool, 0, &value));
  S(cuMemPoolGetAttribute(0, 1, &value));
}


static void pool_peaks(void) {
  CUdeviceptr q = 0;
  cuuint64_t value = 0;
  begin_pool(0);
  S(cuMemAllocFromPoolAsync(&q, 1 << 20, pool, s));
  S(cuMemFreeAsync(q, s));
  num("used", pool_value(CU_MEMPOOL_ATTR_USED_MEM_HIGH));
  value = 5;
  S(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
  value = 0;
  S(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value));
  num("used", pool_value(CU_MEMPOOL_ATTR_USED_MEM_HIGH));
  S(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH, &value));
  S(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value));
  value = (cuuint64_t)-1;
  S(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
  num("threshold kept",
      pool_value(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) == (long)value);
}


static void pool_trim(void) {
  CUdeviceptr q = 0, r = 0;
  cuuint64_t all = (cuuint64_t)-1;
  begin_pool(0);
  cu->cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all);
  cu->cuMemAllocFromPoolAsync(&q, 64 << 20, pool, s);
  cu->cuMemAllocFromPoolAsync(&r, 64 << 20, pool, s);
  long both = pool_value(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  num("reserved", both >= 128 << 20);
  S(cuMemFreeAsync(q, s));
  S(cuStreamSynchronize(s));
  num("kept", pool_value(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == both);
  S(cuMemPoolTrimTo(pool, 128 << 20));
  num("kept", pool_value(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) == both);
  S(cuMemPoolTrimTo(pool, 0));
  long one = pool_value(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT);
  num("less, but what is in use", one < both && one >= 64 << 20);
  S(cuMemFreeAsync(r, s));
  S(cuStreamSynchronize(s));
  S(cuMemPoolTrimTo(pool, 0));
  num("reserved", pool_value(CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT));
  S(cuMemPoolTrimTo(0, 0));
}


static void pool_current(void) {
  CUmemoryPool standard = NULL, current = NULL, of = NULL;
  CUdeviceptr q = 0;
  begin_pool(0);
  S(cuDeviceGetDefaultMemPool(&standard, 0));
  S(cuDeviceGetMemPool(&current, 0));
  num("the default", current == standard);
  S(cuDeviceSetMemPool(0, pool));
  S(cuDeviceGetMemPool(&current, 0));
  num("the new one", current == pool);
  S(cuMemAllocAsync(&q, 4096, s));
  S(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, q));
  num("of it", of == pool);
  num("used", pool_value(CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
  S(cuMemFreeAsync(q, s));
  S(cuDeviceSetMemPool(0, 0));
  S(cuMemPoolDestroy(pool));
  S(cuDeviceGetMemPool(&current, 0));
  num("the default", current == standard);
  S(cuDeviceSetMemPool(0, standard));
  S(cuDeviceGetDefaultMemPool(0, 0));
  S(cuDeviceGetMemPool(0, 0));
}


static void pool_destroyed(void) {
  CUdeviceptr q = 0;
  begin_pool(0);
  cu->cuMemAllocFromPoolAsync(&q, 4096, pool, s);
  S(cuMemPoolDestroy(pool));
  S(cuMemsetD8Async(q, 4, 4096, s));
  S(cuStreamSynchronize(s));
  S(cuMemcpyDtoH(host, q, 64));
  num("filled", host[63]);
  S(cuMemFreeAsync(q, s));
  S(cuStreamSynchronize(s));
}


static void pool_limit(void) {
  CUdeviceptr q = 0, r = 0;
  begin_pool(64 << 20);
  S(cuMemAllocFromPoolAsync(&q, 256 << 20, pool, s));
  S(cuMemAllocFromPoolAsync(&q, 32 << 20, pool, s));
  S(cuMemAllocFromPoolAsync(&r, 64 << 20, pool, s));
  S(cuMemFreeAsync(q, s));
  S(cuStreamSynchronize(s));
}


static void pool_bad(void) {
  CUdeviceptr q = 7;
  begin_pool(0);
  S(cuMemAllocFromPoolAsync(&q, 4096, 0, s));
  S(cuMemAllocFromPoolAsync(0, 4096, pool, s));
  S(cuMemAllocAsync(0, 4096, s));
  q = 7;
  S(cuMemAllocFromPoolAsync(&q, 0, pool, s));
  num("null", q == 0);
  S(cuMemAllocFromPoolAsync(&q, (size_t)1 << 50, pool, s));
  S(cuMemFreeAsync(0, s));
  S(cuMemFreeAsync(d + 64, s));
  S(cuMemFreeAsync((CUdeviceptr)(size_t)host, s));
  S(cuStreamSynchronize(s));
}


static void pool_pointer(void) {
  int type = 9, ordinal = 9;
  CUcontext owner = NULL;
  CUmemoryPool of = NULL;
  CUdeviceptr q = 0, start = 0;
  size_t size = 0;
  begin_pool(0);
  cu->cuMemAllocFromPoolAsync(&q, 5000, pool, s);
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q));
  num("type", type);
  S(cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, q));
  num("ordinal", ordinal);
  S(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, q));
  num("no context", owner == NULL);
  S(cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, q));
  num("of the pool", of == pool);
  S(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                          q + 64));
  num("start", start == q);
  S(cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, q + 64));
  num("size", (long)size);
  S(cuMemFreeAsync(q, s));
  S(cuStreamSynchronize(s));
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q));
}


static void pool_frees(void) {
  CUdeviceptr q = 0;
  begin_pool(0);
  cu->cuMemAllocFromPoolAsync(&q, 4096, pool, s);
  S(cuMemFreeAsync(q + 64, s));
  S(cuStreamSynchronize(s));
  S(cuMemFreeAsync(q, t)); /* of another stream */
  S(cuStreamSynchronize(t));
  S(cuMemFreeAsync(q, t));
  S(cuStreamSynchronize(t));
}


static void pool_freed_otherwise(void) {
  CUdeviceptr q = 0;
  begin_pool(0);
  cu->cuMemAllocFromPoolAsync(&q, 4096, pool, s);
  S(cuMemFree(q));
  S(cuStreamSynchronize(s));
}


static void pool_freed_twice(void) {
  CUdeviceptr q = 0;
  begin_pool(0);
  cu->cuMemAllocFromPoolAsync(&q, 4096, pool, s);
  S(cuMemFreeAsync(q, s));
  S(cuStreamSynchronize(s));
  S(cuMemFree(q));
}


static void alloc_freed_in_stream(void) {
  CUdeviceptr q = 0;
  s = NS();
  cu->cuMemAlloc(&q, 4096);
  S(cuMemFreeAsync(q, s));
  S(cuStreamSynchronize(s));
}


static const question questions[] = {
    {"virtual memory: granularities", granularity},
    {"virtual memory: reservations: nothing, alignment, flags, taken", reserve},
    {"virtual memory: chunks: flags, null, too much, types", create},
    {"virtual memory: chunk released while it is mapped", release},
    {"virtual memory: bad mappings", map_errors},
    {"virtual memory: bad unmappings, holes", unmap_errors},
    {"virtual memory: mapped memory freed by other calls", free_mapped},
    {"virtual memory: access: null, parts, holes, flags, places", set_access},
    {"virtual memory: pointer attributes before, while, after",
     pointer_attributes},
    {"virtual memory: copies and fills across two chunks", two_chunks},
    {"pool: bad properties", pool_create},
    {"pool: attributes of reuse", pool_reuse},
    {"pool: peaks set back, threshold", pool_peaks},
    {"pool: trimmed while in use and after", pool_trim},
    {"pool: the device's current one", pool_current},
    {"pool: destroyed with an allocation", pool_destroyed},
    {"pool: of limited size", pool_limit},
    {"pool: null, nothing, too much, memory that is none of it", pool_bad},
    {"pool: pointer attributes", pool_pointer},
    {"pool: freed in the middle, by another stream, twice", pool_frees},
    {"pool: freed by cuMemFree", pool_freed_otherwise},
    {"cuMemAlloc's memory freed in a stream", alloc_freed_in_stream},
    {"pool: freed, and again by cuMemFree", pool_freed_twice},
};

static const question alone[] = {
    {"virtual memory: copies before access is given", no_access},
    {"virtual memory: fill before access is given", no_access_fill},
    {"virtual memory: copies and a fill of what is not mapped", no_mapping},
    {"virtual memory: copies and a fill past the mapping", past_the_mapping},
    {"virtual memory: kernel on what is mapped, and no more", kernel_unmapped},
};


void ask_spaces(void) {
  row_list(questions, sizeof questions / sizeof *questions);
  row_list_alone(alone, sizeof alone / sizeof *alone);
}
