/* Executables: launches, updates, parameters of their nodes. */
#include "driver/conformance/ask.h"

#include <string.h>

static CUstream s, t;
static CUgraph g, g2;
static CUgraphExec e;
static CUgraphExecUpdateResultInfo ui;


static void destroy_template(void) {
  g = capn(3);
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuGraphDestroy(g));
  s = NS();
  S(cuGraphLaunch(e, s));
  S(cuGraphExecDestroy(e));
  S(cuStreamSynchronize(s));
}


/* ---- updates ---- */

static void update(void) {
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuGraphExecUpdate(e, g2, &ui));
  num("result", ui.result);
}


static void update_same(void) {
  g = capn(3);
  g2 = capn(3);
  update();
}


static void update_count(void) {
  g = capn(3);
  g2 = capn(4);
  update();
}


static void update_function(CUfunction f) {
  g = capn(1);
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  Kf(f, s);
  cu->cuStreamEndCapture(s, &g2);
  update();
}


static void update_tock(void) {
  update_function(tock);
}


static void update_wide(void) {
  update_function(wide);
}


static void update_to_memset(void) {
  g = capn(1);
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemsetD32Async(d, 0, 8, s);
  cu->cuStreamEndCapture(s, &g2);
  update();
}


static void update_edge(void) {
  CUevent ev = EV(), ev2 = EV();
  g = capn(3);
  s = NS();
  t = NS();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
  K(t);
  K(s);
  cu->cuEventRecord(ev2, t);
  cu->cuStreamWaitEvent(s, ev2, 0);
  cu->cuStreamEndCapture(s, &g2);
  update();
}


/* ---- nodes of an executable ---- */

static void memset_node(void) {
  CUDA_MEMSET_NODE_PARAMS mp;
  CUgraphNode n;
  cu->cuGraphCreate(&g, 0);
  memset(&mp, 0, sizeof mp);
  mp.dst = d;
  mp.elementSize = 4;
  mp.width = 8;
  mp.height = 1;
  cu->cuGraphAddMemsetNode(&n, g, NULL, 0, &mp, ctx);
  cu->cuGraphInstantiate(&e, g, 0);
  mp.value = 7;
  S(cuGraphExecMemsetNodeSetParams(e, n, &mp, ctx));
  mp.width = 16;
  S(cuGraphExecMemsetNodeSetParams(e, n, &mp, ctx));
  mp.elementSize = 3;
  S(cuGraphExecMemsetNodeSetParams(e, n, &mp, ctx));
}


static void kernel_node(void) {
  float a = 1;
  void *p[] = {&d, &a};
  CUgraphNode nd[2], on;
  size_t n = 2;
  CUDA_KERNEL_NODE_PARAMS kp;
  g = capn(2);
  cu->cuGraphGetNodes(g, nd, &n);
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuGraphKernelNodeGetParams(nd[0], &kp);
  kp.kernelParams = p;
  kp.gridDimX = 4;
  S(cuGraphExecKernelNodeSetParams(e, nd[0], &kp));
  kp.func = tock;
  S(cuGraphExecKernelNodeSetParams(e, nd[0], &kp));
  kp.func = wide;
  S(cuGraphExecKernelNodeSetParams(e, nd[0], &kp));
  kp.func = tick;
  kp.blockDimX = 4096;
  S(cuGraphExecKernelNodeSetParams(e, nd[0], &kp));
  kp.blockDimX = 32;
  CUgraph o2 = capn(1);
  n = 1;
  cu->cuGraphGetNodes(o2, &on, &n);
  S(cuGraphExecKernelNodeSetParams(e, on, &kp));
  S(cuGraphNodeSetEnabled(e, nd[1], 0));
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
}


static void removed_node(void) {
  CUgraphNode nd[2];
  size_t n = 2;
  g = capn(2);
  cu->cuGraphGetNodes(g, nd, &n);
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuGraphDestroyNode(nd[1]));
  num("nodes", cnt(g));
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
}


/* ---- instantiation and launch ---- */

static void flags(void) {
  g = capn(1);
  S(cuGraphInstantiate(&e, g,
                       CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |
                           CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  S(cuGraphInstantiate(&e, g, 0x4000));
}


static void alloc_node(void) {
  CUgraphExec e2;
  CUdeviceptr q = 0;
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemAllocAsync(&q, 1 << 20, s);
  K(s);
  cu->cuStreamEndCapture(s, &g);
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphLaunch(e, s));
  S(cuGraphLaunch(e, s));
  S(cuMemFreeAsync(q, s));
  S(cuGraphLaunch(e, s));
  S(cuMemFreeAsync(q, s));
  S(cuGraphExecDestroy(e));
  S(cuGraphInstantiate(&e, g, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
  S(cuGraphLaunch(e, s));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  S(cuGraphClone(&g2, g));
  S(cuGraphInstantiate(&e2, g, 0));
}


static void free_foreign(void) {
  CUdeviceptr q = 0;
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemAllocAsync(&q, 64, s);
  cu->cuStreamEndCapture(s, &g);
  cu->cuStreamBeginCapture(s, TL);
  S(cuMemFreeAsync(q, s));
  S(cuStreamEndCapture(s, &g2));
}


static void free_twice(void) {
  CUdeviceptr q = 0;
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemAllocAsync(&q, 64, s);
  S(cuMemFreeAsync(q, s));
  S(cuMemFreeAsync(q, s));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
}


static void two_streams(void) {
  g = capn(50);
  cu->cuGraphInstantiate(&e, g, 0);
  s = NS();
  t = NS();
  S(cuGraphLaunch(e, s));
  S(cuGraphLaunch(e, t));
  S(cuStreamSynchronize(s));
  S(cuStreamSynchronize(t));
}


static void default_streams(void) {
  g = capn(2);
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuGraphLaunch(e, CU_STREAM_LEGACY));
  S(cuGraphLaunch(e, CU_STREAM_PER_THREAD));
  S(cuCtxSynchronize());
}


static const question updates[] = {
    {"destroy the template, launch the executable", destroy_template},
    {"update: same topology", update_same},
    {"update: another node count", update_count},
    {"update: another function, same parameters", update_tock},
    {"update: another function with shared memory", update_wide},
    {"update: kernel became memset", update_to_memset},
    {"update: an edge moved (fork against line)", update_edge},
    {"executable memset node: another width", memset_node},
    {"executable kernel node: another grid, another function, a bad block, "
     "a node of another graph",
     kernel_node},
    {"a node removed from the template after instantiation: set its "
     "parameters",
     removed_node},
};

static const question launches[] = {
    {"instantiate flags: device launch with auto free", flags},
    {"alloc node not freed: launch twice, without and with auto free",
     alloc_node},
    {"free in a capture of another graph's allocation", free_foreign},
    {"free twice in one capture", free_twice},
    {"same executable on two streams at once", two_streams},
    {"launch a destroyed stream's graph on the legacy stream", default_streams},
};


void ask_executables(void) {
  row_list(updates, sizeof updates / sizeof *updates);
  row_list(launches, sizeof launches / sizeof *launches);
}
