/* Updates of executables by cause, copies by address alone, and the rest of
   what nodes and graphs tell. */
#include "driver/conformance/ask.h"

#include <string.h>

static CUstream s, t;
static CUgraph g, g2;
static CUgraphExec e;
static CUgraphNode nd[4];
static CUgraphExecUpdateResultInfo ui;


/* ---- updates ---- */

static void update(void) {
  memset(&ui, 0, sizeof ui);
  ui.result = 99;
  S(cuGraphExecUpdate(e, g2, &ui));
  num("result", ui.result);
  num("error node", ui.errorNode != NULL);
  num("error from node", ui.errorFromNode != NULL);
}


static void update_empty(void) {
  cu->cuGraphCreate(&g, 0);
  S(cuGraphInstantiate(&e, g, 0));
  cu->cuGraphCreate(&g2, 0);
  update();
  g2 = capn(1);
  update();
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
}


static void update_roots(void) {
  CUgraphNode n;
  float a = 1;
  void *p[2];
  CUDA_KERNEL_NODE_PARAMS kp = adding(&a, p);
  g = capn(2);
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuGraphCreate(&g2, 0);
  cu->cuGraphAddKernelNode(&n, g2, NULL, 0, &kp);
  cu->cuGraphAddKernelNode(&n, g2, NULL, 0, &kp);
  update();
}


static void update_grid(void) {
  float a = 2;
  void *p[2];
  CUgraphNode n;
  CUDA_KERNEL_NODE_PARAMS kp = adding(&a, p);
  g = capn(1);
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuGraphCreate(&g2, 0);
  kp.gridDimX = 3;
  kp.blockDimX = 64;
  kp.sharedMemBytes = 1024;
  cu->cuGraphAddKernelNode(&n, g2, NULL, 0, &kp);
  update();
  clear_ticks();
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
}


static void update_other_module(void) {
  CUmodule m = NULL;
  CUfunction f = NULL;
  float a = 2;
  void *p[2];
  CUgraphNode n;
  CUDA_KERNEL_NODE_PARAMS kp = adding(&a, p);
  g = capn(1);
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuModuleLoadData(&m, img);
  cu->cuModuleGetFunction(&f, m, "tick");
  kp.func = f;
  cu->cuGraphCreate(&g2, 0);
  cu->cuGraphAddKernelNode(&n, g2, NULL, 0, &kp);
  update();
  clear_ticks();
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
  note_ticks();
}


static void update_more_params(void) {
  CUfunction f = NULL;
  char c = 1;
  double x = 1;
  short h = 1;
  void *p[] = {&c, &x, &h, &d};
  CUgraphNode n;
  CUDA_KERNEL_NODE_PARAMS kp = adding(NULL, p);
  p[0] = &c;
  p[1] = &x;
  cu->cuModuleGetFunction(&f, mod, "mixed");
  kp.func = f;
  g = capn(1);
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuGraphCreate(&g2, 0);
  cu->cuGraphAddKernelNode(&n, g2, NULL, 0, &kp);
  update();
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
}


static void capture_memory(CUgraph *to, size_t bytes) {
  CUdeviceptr q = 0;
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemAllocAsync(&q, bytes, s);
  cu->cuMemsetD8Async(q, 0, 64, s);
  cu->cuMemFreeAsync(q, s);
  cu->cuStreamEndCapture(s, to);
}


static void update_memory_nodes(void) {
  s = NS();
  capture_memory(&g, 4096);
  cu->cuGraphInstantiate(&e, g, 0);
  capture_memory(&g2, 4096);
  update();
  capture_memory(&g2, 8192);
  update();
  g2 = g;
  update();
}


static void update_wait(void) {
  CUgraphNode n;
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddEventWaitNode(&n, g, NULL, 0, EV());
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuGraphCreate(&g2, 0);
  cu->cuGraphAddEventWaitNode(&n, g2, NULL, 0, EV());
  update();
  cu->cuGraphCreate(&g2, 0);
  cu->cuGraphAddEventRecordNode(&n, g2, NULL, 0, EV());
  update();
}


/* A graph of one call. */
#define CAPTURE(graph, call)          \
  do {                                \
    cu->cuStreamBeginCapture(s, TL);  \
    cu->call;                         \
    cu->cuStreamEndCapture(s, graph); \
  } while (0)


static void update_pinned(void) {
  void *pinned = NULL;
  static char host[64];
  s = NS();
  cu->cuMemAllocHost(&pinned, 64);
  CAPTURE(&g, cuMemcpyHtoDAsync(d, pinned, 64, s));
  cu->cuGraphInstantiate(&e, g, 0);
  CAPTURE(&g2, cuMemcpyHtoDAsync(d, host, 64, s));
  update();
  CAPTURE(&g2, cuMemcpyHtoDAsync(d + 4096, pinned, 32, s));
  update();
}


/* A copy by address alone keeps its kind of memory to itself. */
static void update_by_address(void) {
  void *pinned = NULL;
  s = NS();
  cu->cuMemAllocHost(&pinned, 64);
  CAPTURE(&g, cuMemcpyAsync(d, (CUdeviceptr)(size_t)pinned, 64, s));
  cu->cuGraphInstantiate(&e, g, 0);
  CAPTURE(&g2, cuMemcpyHtoDAsync(d, pinned, 64, s));
  update();
  CAPTURE(&g2, cuMemcpyAsync(d, d + 4096, 64, s));
  update();
  CAPTURE(&g, cuMemcpyDtoDAsync(d, d + 4096, 64, s));
  cu->cuGraphInstantiate(&e, g, 0);
  update();
}


static void set_by_address(void) {
  CUgraphNodeParams np;
  CUDA_MEMCPY3D c;
  s = NS();
  CAPTURE(&g, cuMemcpyAsync(d, d + 4096, 64, s));
  cu->cuGraphInstantiate(&e, g, 0);
  nodes_of(g, nd);
  memset(&np, 0, sizeof np);
  np.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  np.memcpy.copyCtx = ctx;
  S(cuGraphMemcpyNodeGetParams(nd[0], &np.memcpy.copyParams));
  np.memcpy.copyParams.WidthInBytes = 32;
  S(cuGraphExecNodeSetParams(e, nd[0], &np));
  np.memcpy.copyParams.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  np.memcpy.copyParams.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  S(cuGraphExecNodeSetParams(e, nd[0], &np));
  S(cuGraphNodeSetParams(nd[0], &np));
  memset(&c, 0, sizeof c);
  S(cuGraphMemcpyNodeGetParams(nd[0], &c));
  num("types", c.srcMemoryType * 10 + c.dstMemoryType);
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
}


static void body_by_address(void) {
  static char host[64];
  void *pinned = NULL;
  CUdeviceptr from[2];
  cu->cuMemAllocHost(&pinned, 64);
  from[0] = (CUdeviceptr)(size_t)host;
  from[1] = (CUdeviceptr)(size_t)pinned;
  for (int i = 0; i < 2; i++) {
    CUgraphConditionalHandle h = 0;
    CUDA_GRAPH_INSTANTIATE_PARAMS ip;
    CUgraphNodeParams cp;
    CUgraphNode n;
    CUgraph end = NULL;
    s = NS();
    cu->cuGraphCreate(&g, 0);
    cu->cuGraphConditionalHandleCreate(&h, g, ctx, 0, 1);
    memset(&cp, 0, sizeof cp);
    cp.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    cp.conditional.handle = h;
    cp.conditional.type = CU_GRAPH_COND_TYPE_IF;
    cp.conditional.size = 1;
    cp.conditional.ctx = ctx;
    cu->cuGraphAddNode(&n, g, NULL, NULL, 0, &cp);
    cu->cuStreamBeginCaptureToGraph(s, cp.conditional.phGraph_out[0], NULL,
                                    NULL, 0, TL);
    S(cuMemcpyAsync(d, from[i], 64, s));
    cu->cuStreamEndCapture(s, &end);
    memset(&ip, 0, sizeof ip);
    S(cuGraphInstantiateWithParams(&e, g, &ip));
    num("result", ip.result_out);
  }
}


static void update_conditional(void) {
  CUgraphConditionalHandle h = 0;
  CUgraphNodeParams cp;
  CUgraphNode n;
  for (int i = 0; i < 2; i++) {
    CUgraph *graph = i == 0 ? &g : &g2;
    cu->cuGraphCreate(graph, 0);
    cu->cuGraphConditionalHandleCreate(&h, *graph, ctx, 0, 1);
    memset(&cp, 0, sizeof cp);
    cp.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    cp.conditional.handle = h;
    cp.conditional.type = CU_GRAPH_COND_TYPE_IF;
    cp.conditional.size = 1;
    cp.conditional.ctx = ctx;
    S(cuGraphAddNode(&n, *graph, 0, 0, 0, &cp));
    if (i == 0)
      S(cuGraphInstantiate(&e, g, 0));
  }
  update();
}


/* ---- what nodes and graphs tell ---- */

static void priority_kept(void) {
  CUkernelNodeAttrValue v;
  CUgraphNode copied = NULL;
  memset(&v, 0, sizeof v);
  g = capn(1);
  nodes_of(g, nd);
  v.priority = -4;
  S(cuGraphKernelNodeSetAttribute(nd[0], CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  cu->cuGraphClone(&g2, g);
  cu->cuGraphNodeFindInClone(&copied, nd[0], g2);
  v.priority = 9;
  S(cuGraphKernelNodeGetAttribute(copied, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  num("priority", v.priority);
  CUgraphNodeParams np;
  float a = 1;
  void *p[2];
  memset(&np, 0, sizeof np);
  np.type = CU_GRAPH_NODE_TYPE_KERNEL;
  np.kernel = adding(&a, p);
  S(cuGraphNodeSetParams(nd[0], &np));
  S(cuGraphKernelNodeGetAttribute(nd[0], CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  num("priority", v.priority);
  v.priority = 7;
  S(cuGraphKernelNodeSetAttribute(nd[0], CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  S(cuGraphKernelNodeGetAttribute(nd[0], CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  num("priority", v.priority);
  S(cuGraphKernelNodeGetAttribute(nd[0], 777, &v));
  S(cuGraphKernelNodeGetAttribute(0, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
}


static void priority_forked(void) {
  CUkernelNodeAttrValue v;
  CUevent ev = EV();
  memset(&v, 0, sizeof v);
  s = NS();
  cu->cuStreamCreateWithPriority(&t, CU_STREAM_NON_BLOCKING, -3);
  cu->cuStreamBeginCapture(s, TL);
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
  K(t);
  cu->cuEventRecord(ev, t);
  cu->cuStreamWaitEvent(s, ev, 0);
  K(s);
  cu->cuStreamEndCapture(s, &g);
  nodes_of(g, nd);
  S(cuGraphKernelNodeGetAttribute(nd[0], CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  num("priority", v.priority);
  S(cuGraphKernelNodeGetAttribute(nd[1], CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  num("priority", v.priority);
}


static void event_getters(void) {
  CUgraphNode r, w;
  CUevent ev = EV(), ev2 = EV(), got = NULL;
  CUgraphNodeParams np;
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddEventRecordNode(&r, g, NULL, 0, ev);
  cu->cuGraphAddEventWaitNode(&w, g, &r, 1, ev);
  S(cuGraphEventRecordNodeGetEvent(r, &got));
  num("the same", got == ev);
  S(cuGraphEventWaitNodeGetEvent(w, &got));
  num("the same", got == ev);
  S(cuGraphEventWaitNodeGetEvent(r, &got));
  S(cuGraphEventRecordNodeGetEvent(w, &got));
  S(cuGraphEventRecordNodeGetEvent(r, 0));
  memset(&np, 0, sizeof np);
  np.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  np.eventRecord.event = ev2;
  S(cuGraphNodeSetParams(r, &np));
  S(cuGraphEventRecordNodeGetEvent(r, &got));
  num("the new one", got == ev2);
}


static void pictures(void) {
  g = capn(2);
  S(cuGraphDebugDotPrint(g, "/dev/null", 0));
  S(cuGraphDebugDotPrint(g, "/dev/null", CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE));
  S(cuGraphDebugDotPrint(g, "/no/such/folder/x.dot", 0));
  S(cuGraphDebugDotPrint(g, "", 0));
  cu->cuGraphCreate(&g2, 0);
  S(cuGraphDebugDotPrint(g2, "/dev/null", 0));
  S(cuGraphDebugDotPrint(0, "/dev/null", 0));
}


static void graph_null(void) {
  size_t n = 0;
  CUgraphNodeType type = 99;
  S(cuGraphGetNodes(0, 0, &n));
  S(cuGraphGetRootNodes(0, 0, &n));
  S(cuGraphGetEdges(0, 0, 0, 0, &n));
  S(cuGraphClone(&g, 0));
  S(cuGraphDestroy(0));
  S(cuGraphDestroyNode(0));
  S(cuGraphNodeGetType(0, &type));
  S(cuGraphNodeGetDependencies(0, 0, 0, &n));
  S(cuGraphNodeGetDependentNodes(0, 0, 0, &n));
  S(cuGraphCreate(&g, 5));
  S(cuGraphCreate(0, 0));
}


static const question questions[] = {
    {"update: of nothing, by nothing, by something", update_empty},
    {"update: a line became two roots", update_roots},
    {"update: another grid, block and shared memory", update_grid},
    {"update: the same function of another module", update_other_module},
    {"update: a function with more parameters", update_more_params},
    {"update: memory nodes", update_memory_nodes},
    {"update: another event to wait for, wait became record", update_wait},
    {"update: copy from pinned memory became one from pageable", update_pinned},
    {"update: copies by address alone", update_by_address},
    {"copy by address alone: its node set", set_by_address},
    {"conditional: copies by address alone in a body", body_by_address},
    {"update: conditional", update_conditional},
    {"kernel node priority: cloned, set anew, out of range", priority_kept},
    {"kernel node priority: of a forked stream", priority_forked},
    {"event nodes: their events", event_getters},
    {"picture of a graph: places and flags", pictures},
    {"graph calls on null", graph_null},
};


void ask_changes(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
