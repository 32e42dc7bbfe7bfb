/* The floor of bench/run: what graph work costs from plain C, through the
   driver API alone.  Built into a shared object that bench/ours.lua loads, so
   that C and Lua take turns in one process, on one context and one clock; the
   driver's entry points come from its cuGetProcAddress, the kernels from the
   nodes of a captured graph.  The same file runs on the host device.
   Times are in microseconds; a row that repeats gives the median.  A call
   that the driver refuses ends the program. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUnode_st *CUgraphNode;
typedef struct CUexec_st *CUgraphExec;
typedef struct CUfunc_st *CUfunction;
typedef uint64_t CUdeviceptr;

/* CUDA_KERNEL_NODE_PARAMS_v2 and CUDA_GRAPH_INSTANTIATE_PARAMS */
typedef struct kernel_params {
  CUfunction function;
  unsigned grid[3], block[3], shared_bytes;
  void **params, **extra;
  void *kernel, *context;
} kernel_params;

typedef struct instantiate_params {
  uint64_t flags;
  CUstream upload;
  CUgraphNode error;
  int result;
} instantiate_params;

/* CUgraphNodeParams of a conditional node */
typedef struct conditional_params {
  int node_type, reserved[3];
  uint64_t handle;
  int type;
  unsigned size;
  CUgraph *bodies; /* the driver's, size of them */
  void *context;
  uint64_t rest[26];
} conditional_params;

enum { INSTANTIATE_UPLOAD = 2, NON_BLOCKING = 1, THREAD_LOCAL = 1 };
enum { CONDITIONAL_NODE = 13, ASSIGN_DEFAULT = 1, IF = 0, WHILE = 1 };

/* X(name, version of its signature, parameters) */
#define ROWS(X)                                                              \
  X(cuGetErrorName, 6000, (int, const char **))                              \
  X(cuStreamCreate, 2000, (CUstream *, unsigned))                            \
  X(cuStreamSynchronize, 2000, (CUstream))                                   \
  X(cuStreamWaitEvent, 3020, (CUstream, CUevent, unsigned))                  \
  X(cuEventCreate, 2000, (CUevent *, unsigned))                              \
  X(cuEventRecord, 2000, (CUevent, CUstream))                                \
  X(cuStreamBeginCapture, 10010, (CUstream, int))                            \
  X(cuStreamEndCapture, 10000, (CUstream, CUgraph *))                        \
  X(cuCtxGetCurrent, 4000, (void **))                                        \
  X(cuGraphCreate, 10000, (CUgraph *, unsigned))                             \
  X(cuGraphDestroy, 10000, (CUgraph))                                        \
  X(cuGraphAddKernelNode, 12000,                                             \
    (CUgraphNode *, CUgraph, const CUgraphNode *, size_t,                    \
     const kernel_params *))                                                 \
  X(cuGraphGetNodes, 10000, (CUgraph, CUgraphNode *, size_t *))              \
  X(cuGraphKernelNodeGetParams, 12000, (CUgraphNode, kernel_params *))       \
  X(cuGraphInstantiateWithParams, 12000,                                     \
    (CUgraphExec *, CUgraph, instantiate_params *))                          \
  X(cuGraphLaunch, 10000, (CUgraphExec, CUstream))                           \
  X(cuGraphExecDestroy, 10000, (CUgraphExec))                                \
  X(cuGraphExecKernelNodeSetParams, 12000,                                   \
    (CUgraphExec, CUgraphNode, const kernel_params *))                       \
  X(cuLaunchKernel, 4000,                                                    \
    (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
     unsigned, CUstream, void **, void **))                                  \
  X(cuMemHostAlloc, 2020, (void **, size_t, unsigned))                       \
  X(cuMemAllocAsync, 11020, (CUdeviceptr *, size_t, CUstream))               \
  X(cuMemFreeAsync, 11020, (CUdeviceptr, CUstream))                          \
  X(cuMemcpyHtoDAsync, 3020, (CUdeviceptr, const void *, size_t, CUstream))  \
  X(cuMemcpyDtoDAsync, 3020, (CUdeviceptr, CUdeviceptr, size_t, CUstream))   \
  X(cuMemsetD32Async, 3020, (CUdeviceptr, unsigned, size_t, CUstream))


/* Of CUDA 12.3; an older driver has no rows of branches and loops. */
#define CONTROL_ROWS(X)                                                 \
  X(cuGraphConditionalHandleCreate, 12030,                              \
    (uint64_t *, CUgraph, void *, unsigned, unsigned))                  \
  X(cuGraphAddNode, 12030,                                              \
    (CUgraphNode *, CUgraph, const CUgraphNode *, const void *, size_t, \
     conditional_params *))

#define X(name, version, parameters) static int(*name) parameters;
ROWS(X)
CONTROL_ROWS(X)
#undef X

#define MUST(call) must(call, #call)

static CUstream stream, side[32];
static CUevent forked, joined[32];
static CUfunction tick, spin, set, turn;
static CUdeviceptr data;  /* 1 MiB */
static void *pinned;      /* 256 bytes */
static int spins = 20000; /* of the kernel that takes its time */
static CUgraph graph;     /* that is measured */
static CUgraphExec exec;  /* of it */
static double *samples;   /* of a median */
static int samples_size;

double floor_now(void);
const char *floor_open(void *get_proc, void *ticks, void *spins_graph,
                       CUdeviceptr buffer, int spin_count);
void floor_prepare(const char *shape, int n);
void floor_drop(void);
double floor_capture(int n);
double floor_whole(int n);
double floor_instantiate(void);
double floor_first(void);
double floor_call(int count);
double floor_calls(int count);
double floor_sync(int count);
double floor_stream(int count);
double floor_loop(CUgraphExec loop, int count);
double floor_set_params(int count);
double floor_set_call(int count);
double floor_alloc(int count);
double floor_eager(int count);
double floor_eager_done(int count);
const char *floor_open_control(void *get_proc, void *sets, void *turns);
void floor_prepare_branches(int n, CUdeviceptr flag);
void floor_prepare_loop(int kernels, CUdeviceptr left, int turns);


static void must(int result, const char *call) {
  if (result == 0)
    return;
  const char *name = "?";
  cuGetErrorName(result, &name);
  fprintf(stderr, "bench/floor.c: %s: %s\n", call, name);
  exit(1);
}


double floor_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}


static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}


static double median(int count) {
  qsort(samples, (size_t)count, sizeof *samples, by_value);
  return count % 2 ? samples[count / 2]
                   : (samples[count / 2 - 1] + samples[count / 2]) / 2;
}


static void room(int count) {
  if (count <= samples_size)
    return;
  samples = realloc(samples, (size_t)count * sizeof *samples);
  samples_size = count;
  if (samples == NULL)
    abort();
}


/* What the clock takes between two readings. */
static double overhead(void) {
  static double known = -1;
  if (known >= 0)
    return known;
  room(1001);
  for (int i = 0; i < 1001; i++) {
    double start = floor_now();
    samples[i] = floor_now() - start;
  }
  return known = median(1001);
}


static CUfunction function_of(CUgraph of) {
  CUgraphNode node;
  size_t one = 1;
  kernel_params params;
  MUST(cuGraphGetNodes(of, &node, &one));
  MUST(cuGraphKernelNodeGetParams(node, &params));
  return params.function;
}


#define FIND(name, version, parameters)                           \
  {                                                               \
    void *entry = NULL;                                           \
    int status;                                                   \
    if (get(#name, &entry, version, 0, &status) || entry == NULL) \
      return #name;                                               \
    memcpy(&name, &entry, sizeof entry);                          \
  }


/* `ticks` and `spins_graph` are graphs of one kernel.  Returns the name of an
   entry point that the driver lacks, or NULL. */
const char *floor_open(void *get_proc, void *ticks, void *spins_graph,
                       CUdeviceptr buffer, int spin_count) {
  int (*get)(const char *, void **, int, uint64_t, int *);
  memcpy(&get, &get_proc, sizeof get);
  ROWS(FIND)
  tick = function_of(ticks);
  spin = function_of(spins_graph);
  data = buffer;
  spins = spin_count;
  MUST(cuStreamCreate(&stream, NON_BLOCKING));
  MUST(cuEventCreate(&forked, 2));
  for (int i = 0; i < 32; i++) {
    MUST(cuStreamCreate(&side[i], NON_BLOCKING));
    MUST(cuEventCreate(&joined[i], 2));
  }
  MUST(cuMemHostAlloc(&pinned, 256, 0));
  memset(pinned, 0, 256);
  overhead();
  return NULL;
}


/* ---- shapes ---- */

static void launch_tick(void) {
  float a = 1;
  void *params[] = {&data, &a};
  MUST(cuLaunchKernel(tick, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}


static void launch_spin(CUstream on, int i) {
  CUdeviceptr at = data + (CUdeviceptr)i * 4096;
  void *params[] = {&at, &spins};
  MUST(cuLaunchKernel(spin, 1, 1, 1, 32, 1, 1, 0, on, params, NULL));
}


static void issue(const char *shape, int n) {
  if (strcmp(shape, "branches") == 0) {
    MUST(cuEventRecord(forked, stream));
    for (int i = 0; i < n; i++) {
      MUST(cuStreamWaitEvent(side[i], forked, 0));
      launch_spin(side[i], i);
      MUST(cuEventRecord(joined[i], side[i]));
      MUST(cuStreamWaitEvent(stream, joined[i], 0));
    }
    return;
  }
  for (int i = 0; i < n; i++) {
    if (strcmp(shape, "spins") == 0) {
      launch_spin(stream, i);
      continue;
    }
    if (strcmp(shape, "memset") == 0)
      MUST(cuMemsetD32Async(data, 1, 64, stream));
    else if (strcmp(shape, "copy") == 0)
      MUST(cuMemcpyDtoDAsync(data + 4096, data, 256, stream));
    else if (strcmp(shape, "pinned") == 0)
      MUST(cuMemcpyHtoDAsync(data, pinned, 256, stream));
    launch_tick();
  }
}


static CUgraphExec instantiate(CUgraph of, uint64_t flags) {
  CUgraphExec made;
  instantiate_params params = {.flags = flags, .upload = stream};
  MUST(cuGraphInstantiateWithParams(&made, of, &params));
  return made;
}


/* Makes the graph that the rows below measure: "line" (ticks), "memset",
   "copy", "pinned" (each before a tick), "spins", "branches"; n of them. */
void floor_prepare(const char *shape, int n) {
  floor_drop();
  MUST(cuStreamBeginCapture(stream, THREAD_LOCAL));
  issue(shape, n);
  MUST(cuStreamEndCapture(stream, &graph));
  exec = instantiate(graph, 0);
  for (int i = 0; i < 3; i++)
    MUST(cuGraphLaunch(exec, stream));
  MUST(cuStreamSynchronize(stream));
}


void floor_drop(void) {
  if (graph == NULL)
    return;
  MUST(cuStreamSynchronize(stream));
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
  graph = NULL;
}


/* ---- rows ---- */

/* Per operation, between begin and end. */
double floor_capture(int n) {
  CUgraph made;
  MUST(cuStreamBeginCapture(stream, THREAD_LOCAL));
  double start = floor_now();
  for (int i = 0; i < n; i++)
    launch_tick();
  double took = floor_now() - start;
  MUST(cuStreamEndCapture(stream, &made));
  MUST(cuGraphDestroy(made));
  return took / n;
}


/* Capture and instantiate. */
double floor_whole(int n) {
  CUgraph made;
  double start = floor_now();
  MUST(cuStreamBeginCapture(stream, THREAD_LOCAL));
  for (int i = 0; i < n; i++)
    launch_tick();
  MUST(cuStreamEndCapture(stream, &made));
  CUgraphExec ready = instantiate(made, 0);
  double took = floor_now() - start;
  MUST(cuGraphExecDestroy(ready));
  MUST(cuGraphDestroy(made));
  return took;
}


/* Of the prepared graph. */
double floor_instantiate(void) {
  double start = floor_now();
  CUgraphExec ready = instantiate(graph, 0);
  double took = floor_now() - start;
  MUST(cuGraphExecDestroy(ready));
  return took;
}


/* The first launch's call. */
double floor_first(void) {
  CUgraphExec ready = instantiate(graph, 0);
  double start = floor_now();
  MUST(cuGraphLaunch(ready, stream));
  double took = floor_now() - start - overhead();
  MUST(cuStreamSynchronize(stream));
  MUST(cuGraphExecDestroy(ready));
  return took;
}


/* The launch's call, on an idle stream. */
double floor_call(int count) {
  room(count);
  for (int i = 0; i < count; i++) {
    MUST(cuStreamSynchronize(stream));
    double start = floor_now();
    MUST(cuGraphLaunch(exec, stream));
    samples[i] = floor_now() - start - overhead();
  }
  MUST(cuStreamSynchronize(stream));
  return median(count);
}


/* The launch's call, one after the other. */
double floor_calls(int count) {
  MUST(cuStreamSynchronize(stream));
  double start = floor_now();
  for (int i = 0; i < count; i++)
    MUST(cuGraphLaunch(exec, stream));
  double took = floor_now() - start;
  MUST(cuStreamSynchronize(stream));
  return took / count;
}


double floor_sync(int count) {
  room(count);
  MUST(cuStreamSynchronize(stream));
  for (int i = 0; i < count; i++) {
    double start = floor_now();
    MUST(cuGraphLaunch(exec, stream));
    MUST(cuStreamSynchronize(stream));
    samples[i] = floor_now() - start - overhead();
  }
  return median(count);
}


/* Back to back, until all are done. */
double floor_stream(int count) {
  MUST(cuStreamSynchronize(stream));
  double start = floor_now();
  for (int i = 0; i < count; i++)
    MUST(cuGraphLaunch(exec, stream));
  MUST(cuStreamSynchronize(stream));
  return (floor_now() - start) / count;
}


/* The same of an executable that a script captured. */
double floor_loop(CUgraphExec loop, int count) {
  MUST(cuStreamSynchronize(stream));
  double start = floor_now();
  for (int i = 0; i < count; i++)
    MUST(cuGraphLaunch(loop, stream));
  MUST(cuStreamSynchronize(stream));
  return (floor_now() - start) / count;
}


/* The first node and its parameters. */
static CUgraphNode first_node(kernel_params *params) {
  size_t nodes = 0;
  MUST(cuGraphGetNodes(graph, NULL, &nodes));
  CUgraphNode *all = malloc(nodes * sizeof *all);
  MUST(cuGraphGetNodes(graph, all, &nodes));
  const CUgraphNode first = all[0];
  free(all);
  MUST(cuGraphKernelNodeGetParams(first, params));
  return first;
}


/* Another number for the executable's first node. */
double floor_set_params(int count) {
  kernel_params params;
  const CUgraphNode first = first_node(&params);
  float a;
  void *values[] = {&data, &a};
  params.params = values;
  double start = floor_now();
  for (int i = 0; i < count; i++) {
    a = (float)i;
    MUST(cuGraphExecKernelNodeSetParams(exec, first, &params));
  }
  return (floor_now() - start) / count;
}


/* The same before each launch, on an idle stream: both calls. */
double floor_set_call(int count) {
  kernel_params params;
  const CUgraphNode first = first_node(&params);
  float a;
  void *values[] = {&data, &a};
  params.params = values;
  room(count);
  for (int i = 0; i < count; i++) {
    MUST(cuStreamSynchronize(stream));
    a = (float)i;
    double start = floor_now();
    MUST(cuGraphExecKernelNodeSetParams(exec, first, &params));
    MUST(cuGraphLaunch(exec, stream));
    samples[i] = floor_now() - start - overhead();
  }
  MUST(cuStreamSynchronize(stream));
  return median(count);
}


/* 1 MiB, allocated and freed in stream order. */
double floor_alloc(int count) {
  double start = floor_now();
  for (int i = 0; i < count; i++) {
    CUdeviceptr block;
    MUST(cuMemAllocAsync(&block, 1 << 20, stream));
    MUST(cuMemFreeAsync(block, stream));
  }
  double took = floor_now() - start;
  MUST(cuStreamSynchronize(stream));
  return took / count;
}


double floor_eager(int count) {
  MUST(cuStreamSynchronize(stream));
  double start = floor_now();
  for (int i = 0; i < count; i++)
    launch_tick();
  double took = floor_now() - start;
  MUST(cuStreamSynchronize(stream));
  return took / count;
}


double floor_eager_done(int count) {
  MUST(cuStreamSynchronize(stream));
  double start = floor_now();
  for (int i = 0; i < count; i++)
    launch_tick();
  MUST(cuStreamSynchronize(stream));
  return (floor_now() - start) / count;
}


/* ---- branches and loops ---- */

/* The same for `sets`, a graph of a kernel that sets a handle to *flag, and
   `turns`, of one that counts *left down from `turns`, sets a handle while it
   is above 0, and then starts again. */
const char *floor_open_control(void *get_proc, void *sets, void *turns) {
  int (*get)(const char *, void **, int, uint64_t, int *);
  memcpy(&get, &get_proc, sizeof get);
  CONTROL_ROWS(FIND)
  set = function_of(sets);
  turn = function_of(turns);
  return NULL;
}


/* Adds a kernel of one block behind *last, and makes it the last. */
static void add_kernel(CUgraph to, CUgraphNode *last, CUfunction function,
                       unsigned threads, void **params) {
  const kernel_params node = {.function = function,
                              .grid = {1, 1, 1},
                              .block = {threads, 1, 1},
                              .params = params};
  const CUgraphNode before = *last;
  MUST(cuGraphAddKernelNode(last, to, &before, before != NULL, &node));
}


static void add_tick(CUgraph to, CUgraphNode *last) {
  float a = 1;
  void *params[] = {&data, &a};
  add_kernel(to, last, tick, 32, params);
}


/* Returns the graph of its body. */
static CUgraph add_conditional(CUgraph to, CUgraphNode *last, int type,
                               uint64_t handle) {
  conditional_params node = {
      .node_type = CONDITIONAL_NODE, .handle = handle, .type = type, .size = 1};
  const CUgraphNode before = *last;
  MUST(cuCtxGetCurrent(&node.context));
  MUST(cuGraphAddNode(last, to, &before, NULL, before != NULL, &node));
  return node.bodies[0];
}


static uint64_t new_handle(unsigned value) {
  uint64_t handle;
  void *context;
  MUST(cuCtxGetCurrent(&context));
  MUST(cuGraphConditionalHandleCreate(&handle, graph, context, value,
                                      ASSIGN_DEFAULT));
  return handle;
}


static void finish_graph(void) {
  exec = instantiate(graph, 0);
  MUST(cuGraphLaunch(exec, stream));
  MUST(cuStreamSynchronize(stream));
}


/* n times a tick, and a tick if *flag. */
void floor_prepare_branches(int n, CUdeviceptr flag) {
  CUgraphNode last = NULL, inner;
  floor_drop();
  MUST(cuGraphCreate(&graph, 0));
  for (int i = 0; i < n; i++) {
    uint64_t handle = new_handle(0);
    void *params[] = {&handle, &flag};
    add_tick(graph, &last);
    add_kernel(graph, &last, set, 1, params);
    inner = NULL;
    add_tick(add_conditional(graph, &last, IF, handle), &inner);
  }
  finish_graph();
}


/* A loop around so many kernels, the last of which counts the turns. */
void floor_prepare_loop(int kernels, CUdeviceptr left, int turns) {
  CUgraphNode last = NULL, inner = NULL;
  floor_drop();
  MUST(cuGraphCreate(&graph, 0));
  uint64_t handle = new_handle(1);
  void *params[] = {&handle, &left, &turns};
  CUgraph body = add_conditional(graph, &last, WHILE, handle);
  for (int i = 1; i < kernels; i++)
    add_tick(body, &inner);
  add_kernel(body, &inner, turn, 1, params);
  finish_graph();
}
