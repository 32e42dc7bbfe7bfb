/* Modules, functions, launches, occupancy: outside captures, on kernels and a
   variable of their own module. */
#include "driver/conformance/ask.h"

#include <string.h>

static CUstream s;
static CUmodule m;


static CUfunction function(const char *name) {
  CUfunction f = NULL;
  cu->cuModuleGetFunction(&f, m, name);
  return f;
}


/* A module of the question's own, so that what it sets ends with it. */
static CUfunction begin(const char *name) {
  s = NS();
  cu->cuModuleLoadData(&m, img);
  return function(name);
}


static CUlaunchConfig config(CUlaunchAttribute *attributes, unsigned count) {
  CUlaunchConfig c;
  memset(&c, 0, sizeof c);
  c.gridDimX = c.gridDimY = c.gridDimZ = 1;
  c.blockDimX = 32;
  c.blockDimY = c.blockDimZ = 1;
  c.hStream = s;
  c.attrs = attributes;
  c.numAttrs = count;
  return c;
}


/* ---- modules ---- */

static void two_kernels(void) {
  CUfunction a = begin("tick"), b = function("tock"), again = function("tick");
  CUmodule m2 = NULL;
  CUfunction other = NULL;
  const char *name = "";
  num("another function", a != b);
  num("the same asked twice", a == again);
  S(cuModuleLoadData(&m2, img));
  num("another module", m2 != m);
  S(cuModuleGetFunction(&other, m2, "tick"));
  num("its function is another", other != a);
  S(cuFuncGetName(&name, a));
  num("tick", strcmp(name, "tick") == 0);
  S(cuFuncGetName(&name, b));
  num("tock", strcmp(name, "tock") == 0);
  S(cuModuleUnload(m2));
  S(cuFuncGetName(&name, a));
}


static void module_bad(void) {
  CUfunction f = NULL;
  CUmodule m2 = NULL;
  const char *name = NULL;
  begin("tick");
  S(cuModuleGetFunction(&f, m, ""));
  S(cuModuleGetFunction(&f, m, 0));
  S(cuModuleGetFunction(&f, m, "counter"));
  S(cuModuleGetFunction(&f, m, "tic"));
  S(cuModuleGetFunction(0, m, "tick"));
  S(cuModuleGetFunction(&f, 0, "tick"));
  S(cuModuleLoadData(0, img));
  S(cuModuleLoadData(&m2, 0));
  S(cuModuleUnload(0));
  S(cuFuncGetName(&name, 0));
  S(cuFuncGetName(0, tick));
  S(cuModuleLoadDataEx(&m2, img, 0, 0, 0));
}


static void global(void) {
  CUdeviceptr q = 0, r = 0;
  size_t bytes = 0;
  int n = 5, value[3] = {7, 8, 9}, type = 9;
  void *p[] = {&n};
  CUmodule m2 = NULL;
  CUfunction count = begin("count");
  S(cuModuleGetGlobal(&q, &bytes, m, "counter"));
  num("bytes", (long)bytes);
  S(cuModuleGetGlobal(&q, 0, m, "counter"));
  S(cuModuleGetGlobal(0, &bytes, m, "counter"));
  S(cuModuleGetGlobal(0, 0, m, "counter"));
  S(cuModuleGetGlobal(&q, &bytes, m, "tick"));
  S(cuModuleGetGlobal(&q, &bytes, m, ""));
  S(cuModuleGetGlobal(&q, &bytes, m, "count"));
  S(cuModuleGetGlobal(&q, &bytes, m, "nope"));
  S(cuModuleGetGlobal(&q, &bytes, m, 0));
  S(cuModuleGetGlobal(&q, &bytes, 0, "counter"));
  cu->cuModuleGetGlobal(&q, &bytes, m, "counter");
  S(cuMemcpyHtoD(q, value, 12));
  S(cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, s, p, 0));
  S(cuStreamSynchronize(s));
  S(cuMemcpyDtoH(value, q, 12));
  num("counted", value[0]);
  cu->cuModuleLoadData(&m2, img);
  S(cuModuleGetGlobal(&r, &bytes, m2, "counter"));
  num("another address", q != r);
  cu->cuMemcpyDtoH(value, r, 12);
  num("untouched", value[0]);
  S(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, q));
  num("type", type);
  S(cuMemFree(q));
}


static void unloaded_in_flight(void) {
  int n = 1;
  void *p[] = {&n};
  CUfunction count = begin("count");
  for (int i = 0; i < 100; i++)
    cu->cuLaunchKernel(count, 1, 1, 1, 1, 1, 1, 0, s, p, NULL);
  S(cuModuleUnload(m));
  S(cuStreamSynchronize(s));
}


/* ---- functions ---- */

static void parameters(void) {
  CUfunction f = begin("mixed");
  size_t offset = 99, size = 99;
  for (size_t i = 0; i < 5; i++) {
    S(cuFuncGetParamInfo(f, i, &offset, &size));
    num("offset", (long)offset);
    num("size", (long)size);
  }
  S(cuFuncGetParamInfo(f, (size_t)-1, &offset, &size));
  S(cuFuncGetParamInfo(f, 1, &offset, 0));
  num("offset", (long)offset);
  S(cuFuncGetParamInfo(f, 1, 0, &size));
  S(cuFuncGetParamInfo(0, 1, &offset, &size));
  S(cuFuncGetParamInfo(function("nothing"), 0, &offset, &size));
}


static long attribute(CUfunction f, CUfunction_attribute which) {
  int value = -99;
  return cu->cuFuncGetAttribute(&value, which, f) == CUDA_SUCCESS ? value : -77;
}


static void attributes(void) {
  CUfunction f = begin("tick");
  int value = 0;
  num("threads", attribute(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK));
  num("shared", attribute(f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES));
  num("constant", attribute(f, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES));
  num("local", attribute(f, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES));
  num("registers", attribute(f, CU_FUNC_ATTRIBUTE_NUM_REGS) > 0);
  num("binary", attribute(f, CU_FUNC_ATTRIBUTE_BINARY_VERSION) > 0);
  num("dynamic", attribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
  num("carveout",
      attribute(f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT));
  for (int i = 10; i < 17; i++)
    S(cuFuncGetAttribute(&value, i, f));
  S(cuFuncGetAttribute(&value, -1, f));
  S(cuFuncGetAttribute(0, CU_FUNC_ATTRIBUTE_NUM_REGS, f));
  S(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, 0));
}


static void set_dynamic(void) {
  const CUfunction_attribute dynamic =
      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  static const int sizes[] = {-1, 0, 1000, 49153, 232448, 232449};
  CUfunction f = begin("tick");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    S(cuFuncSetAttribute(f, dynamic, sizes[i]));
    num("dynamic", attribute(f, dynamic));
  }
  S(cuFuncSetAttribute(0, dynamic, 1000));
  num("of another module", attribute(tock, dynamic));
}


static void set_others(void) {
  const CUfunction_attribute carveout =
      CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  static const int shares[] = {-2, -1, 0, 50, 100, 101};
  CUfunction f = begin("tick");
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
    S(cuFuncSetAttribute(f, carveout, shares[i]));
    num("carveout", attribute(f, carveout));
  }
  S(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, 64));
  S(cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 64));
}


/* ---- launches ---- */

static void launch_dynamic(void) {
  const CUfunction_attribute dynamic =
      CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  CUfunction f = begin("tick");
  float a = 1;
  void *p[] = {&d, &a};
  S(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 49152, s, p, 0));
  S(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 49153, s, p, 0));
  cu->cuFuncSetAttribute(f, dynamic, 100000);
  S(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 100000, s, p, 0));
  S(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 100001, s, p, 0));
  cu->cuFuncSetAttribute(f, dynamic, 1000);
  S(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 1000, s, p, 0));
  S(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 1001, s, p, 0));
  S(cuLaunchKernel(f, 1, 1, 1, 32, 1, 1, 49153, s, p, 0));
  S(cuStreamSynchronize(s));
}


static void launch_shapes(void) {
  CUfunction f = begin("nothing");
  /* clang-format off */
  S(cuLaunchKernel(f, 1,1,1, 1024,1,1, 0, s, 0, 0));
  S(cuLaunchKernel(f, 1,1,1, 32,32,1, 0, s, 0, 0));
  S(cuLaunchKernel(f, 1,1,1, 16,1,64, 0, s, 0, 0));
  S(cuLaunchKernel(f, 1,1,1, 513,2,1, 0, s, 0, 0));
  S(cuLaunchKernel(f, 1,1,1, 1,1025,1, 0, s, 0, 0));
  S(cuLaunchKernel(f, 1,1,1, 0,1,1, 0, s, 0, 0));
  S(cuLaunchKernel(f, 1,65535,1, 1,1,1, 0, s, 0, 0));
  S(cuLaunchKernel(f, 1,1,65536, 1,1,1, 0, s, 0, 0));
  S(cuLaunchKernel(f, 0x80000000u,1,1, 1,1,1, 0, s, 0, 0));
  S(cuLaunchKernel(f, 1,0,1, 1,1,1, 0, s, 0, 0));
  S(cuLaunchKernel(f, 1,1,1, 65536,65536,1, 0, s, 0, 0));
  /* clang-format on */
  S(cuStreamSynchronize(s));
}


static void launch_extra(void) {
  static const size_t sizes[] = {4, 0, 1, 3, 5, 24};
  CUfunction f = begin("count");
  int buffer[16] = {1};
  size_t size = 0;
  void *extra[] = {(void *)1, buffer, (void *)2, &size, NULL};
  void *none[] = {NULL};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size = sizes[i];
    S(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, 0, extra));
  }
  S(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, s, 0, none));
  S(cuLaunchKernel(function("nothing"), 1, 1, 1, 1, 1, 1, 0, s, 0, none));
  S(cuStreamSynchronize(s));
}


static void launch_attributes(void) {
  CUfunction f = begin("nothing");
  CUlaunchAttribute a[2];
  CUlaunchConfig c;
  memset(a, 0, sizeof a);
  c = config(a, 1);
  S(cuLaunchKernelEx(&c, f, 0, 0)); /* 0: ignored */
  a[0].id = 777;
  S(cuLaunchKernelEx(&c, f, 0, 0));
  a[0].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  a[0].value.cooperative = 1;
  S(cuLaunchKernelEx(&c, f, 0, 0));
  memset(a, 0, sizeof a);
  a[0].id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  a[0].value.priority = -77;
  S(cuLaunchKernelEx(&c, f, 0, 0));
  a[0].value.priority = -1;
  a[1] = a[0];
  c = config(a, 2);
  S(cuLaunchKernelEx(&c, f, 0, 0));
  c = config(NULL, 0);
  S(cuLaunchKernelEx(&c, f, 0, 0));
  S(cuLaunchKernelEx(&c, 0, 0, 0));
  S(cuStreamSynchronize(s));
}


static void launch_clusters(void) {
  CUfunction f = begin("nothing");
  CUlaunchAttribute a;
  CUlaunchConfig c;
  memset(&a, 0, sizeof a);
  a.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  a.value.clusterDim.x = a.value.clusterDim.y = a.value.clusterDim.z = 1;
  c = config(&a, 1);
  S(cuLaunchKernelEx(&c, f, 0, 0));
  a.value.clusterDim.x = 0;
  S(cuLaunchKernelEx(&c, f, 0, 0));
  S(cuStreamSynchronize(s));
}


static void launch_cooperative(void) {
  CUfunction f = begin("nothing");
  CUlaunchAttribute a;
  CUlaunchConfig c;
  memset(&a, 0, sizeof a);
  a.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  a.value.cooperative = 1;
  c = config(&a, 1);
  c.gridDimX = 1 << 20;
  S(cuLaunchKernelEx(&c, f, 0, 0));
  a.value.cooperative = 0;
  S(cuLaunchKernelEx(&c, f, 0, 0));
  S(cuStreamSynchronize(s));
}


static void captured_attributes(void) {
  CUfunction f = begin("nothing");
  CUlaunchAttribute a;
  CUlaunchConfig c;
  CUkernelNodeAttrValue v;
  CUgraph g = NULL;
  CUgraphNode n[3];
  size_t count = 3;
  memset(&a, 0, sizeof a);
  cu->cuStreamBeginCapture(s, TL);
  a.id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  a.value.priority = -3;
  c = config(&a, 1);
  S(cuLaunchKernelEx(&c, f, 0, 0));
  a.value.priority = -77;
  S(cuLaunchKernelEx(&c, f, 0, 0));
  memset(&a, 0, sizeof a);
  a.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  a.value.cooperative = 1;
  S(cuLaunchKernelEx(&c, f, 0, 0));
  S(cuStreamEndCapture(s, &g));
  cu->cuGraphGetNodes(g, n, &count);
  for (size_t i = 0; i < count; i++) {
    memset(&v, 0, sizeof v);
    S(cuGraphKernelNodeGetAttribute(n[i], CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
    num("priority", v.priority);
    memset(&v, 0, sizeof v);
    S(cuGraphKernelNodeGetAttribute(n[i], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
    num("cooperative", v.cooperative);
  }
}


static void captured_bad_attribute(void) {
  CUfunction f = begin("nothing");
  CUlaunchAttribute a;
  CUlaunchConfig c;
  CUgraph g = NULL;
  memset(&a, 0, sizeof a);
  a.id = 777;
  c = config(&a, 1);
  cu->cuStreamBeginCapture(s, TL);
  S(cuLaunchKernelEx(&c, f, 0, 0));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
}


static void captured_cooperative(void) {
  CUfunction f = begin("nothing");
  CUlaunchAttribute a;
  CUlaunchConfig c;
  CUgraph g = NULL;
  memset(&a, 0, sizeof a);
  a.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  a.value.cooperative = 1;
  c = config(&a, 1);
  c.gridDimX = 1 << 20;
  cu->cuStreamBeginCapture(s, TL);
  S(cuLaunchKernelEx(&c, f, 0, 0));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
}


/* ---- occupancy ---- */

static void resident(void) {
  static const int threads[] = {1, 32, 64, 100, 256, 512, 1024};
  CUfunction f = begin("nothing");
  int blocks = -1;
  for (size_t i = 0; i < sizeof threads / sizeof *threads; i++) {
    S(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, threads[i], 0));
    num("blocks", blocks);
  }
}


static void resident_shared(void) {
  CUfunction f = begin("nothing");
  int blocks = -1;
  S(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 48 << 10));
  num("blocks", blocks);
  S(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 49153));
  num("blocks", blocks);
  cu->cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                         100000);
  S(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 100000));
  num("blocks", blocks);
  S(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 256, 100001));
  num("blocks", blocks);
}


static void resident_bad(void) {
  CUfunction f = begin("nothing");
  int blocks = 77;
  S(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 0, 0));
  S(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, -32, 0));
  num("blocks", blocks);
  S(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, f, 1025, 0));
  num("blocks", blocks);
  S(cuOccupancyMaxActiveBlocksPerMultiprocessor(0, f, 32, 0));
  S(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, 0, 32, 0));
}


static size_t all_of_it(int threads) {
  (void)threads;
  return (size_t)1 << 30;
}


static void potential(void) {
  CUfunction f = begin("nothing");
  int grid = 0, block = 0;
  S(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, 0, 0, 0));
  num("blocks", grid > 0);
  num("whole warps", block > 0 && block <= 1024 && block % 32 == 0);
  S(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, 0, 0, 64));
  num("threads", block);
  S(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, 0, 0, 7));
  num("threads", block);
  S(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, 0, 0, 5000));
  num("as many as a block takes", block <= 1024);
  S(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, 0, 40000, 0));
  num("blocks", grid > 0);
}


static void potential_bad(void) {
  CUfunction f = begin("nothing");
  int grid = 77, block = 77;
  S(cuOccupancyMaxPotentialBlockSize(&grid, &block, 0, 0, 0, 0));
  S(cuOccupancyMaxPotentialBlockSize(0, &block, f, 0, 0, 0));
  S(cuOccupancyMaxPotentialBlockSize(&grid, 0, f, 0, 0, 0));
  S(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, 0, 0, -1));
  num("untouched", grid == 77 && block == 77);
  S(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, 0, 1 << 30, 0));
  num("blocks", grid);
  num("threads", block);
  S(cuOccupancyMaxPotentialBlockSize(&grid, &block, f, all_of_it, 0, 0));
  num("blocks", grid);
  num("threads", block);
}


static const question questions[] = {
    {"module: two kernels, two modules of an image", two_kernels},
    {"module: bad names, null, no options", module_bad},
    {"module: its variable", global},
    {"module: unloaded with launches in flight", unloaded_in_flight},
    {"function: its parameters, and past the end", parameters},
    {"function: its attributes", attributes},
    {"function: dynamic shared memory set", set_dynamic},
    {"function: other attributes set", set_others},
    {"launch: dynamic shared memory up to what was set", launch_dynamic},
    {"launch: shapes of blocks and grids", launch_shapes},
    {"launch: a buffer of parameters: sizes, nothing", launch_extra},
    {"launch attributes: ignored, unknown, cooperative, priority, none",
     launch_attributes},
    {"launch attributes: clusters of one, of none", launch_clusters},
    {"launch attributes: cooperative with too many blocks", launch_cooperative},
    {"launch attributes: captured", captured_attributes},
    {"launch attributes: captured, unknown", captured_bad_attribute},
    {"launch attributes: captured, cooperative with too many blocks",
     captured_cooperative},
    {"occupancy: blocks of each size", resident},
    {"occupancy: with shared memory", resident_shared},
    {"occupancy: no threads, too many, null", resident_bad},
    {"occupancy: block size, limits", potential},
    {"occupancy: block size: null, limit, too much shared memory",
     potential_bad},
};


void ask_kernels(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
