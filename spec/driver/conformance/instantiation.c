/* Instantiation's flags and results, more updates, more of child graphs and
   clones, and user objects. */
#include "driver/conformance/ask.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static CUstream s;
static CUevent ev;
static CUgraph g, g2;
static CUgraphExec e;
static CUgraphExecUpdateResultInfo ui;
static CUDA_GRAPH_INSTANTIATE_PARAMS ip;
static _Atomic int destroyed;


static void with(cuuint64_t flags) {
  memset(&ip, 0, sizeof ip);
  ip.flags = flags;
  ip.result_out = 99;
}


static void flags(void) {
  cuuint64_t f = 99;
  g = capn(1);
  S(cuGraphInstantiate(&e, g, CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD));
  S(cuGraphInstantiate(&e, g, CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY));
  S(cuGraphExecGetFlags(e, &f));
  num("flags", (long)f);
  S(cuGraphInstantiate(0, g, 0));
  S(cuGraphInstantiate(&e, 0, 0));
  S(cuGraphLaunch(0, 0));
  S(cuGraphExecDestroy(0));
}


static void with_params(void) {
  cuuint64_t f = 99;
  g = capn(2);
  s = NS();
  with(CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
  ip.hUploadStream = s;
  S(cuGraphInstantiateWithParams(&e, g, &ip));
  num("result", ip.result_out);
  S(cuGraphExecGetFlags(e, &f));
  num("flags", (long)f);
  with(0x4000);
  S(cuGraphInstantiateWithParams(&e, g, &ip));
  num("result", ip.result_out);
  CUgraphNode nd[2];
  size_t n = 2;
  cu->cuGraphGetNodes(g, nd, &n);
  cu->cuGraphAddDependencies(g, &nd[1], &nd[0], NULL, 1);
  with(0);
  S(cuGraphInstantiateWithParams(&e, g, &ip));
  num("result", ip.result_out);
  num("node", ip.hErrNode_out == nd[0] ? 0 : ip.hErrNode_out == nd[1] ? 1 : -1);
}


static void priorities(void) {
  CUkernelNodeAttrValue v;
  CUgraphNode n;
  size_t one = 1;
  memset(&v, 0, sizeof v);
  cu->cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -2);
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  cu->cuStreamEndCapture(s, &g);
  cu->cuGraphGetNodes(g, &n, &one);
  S(cuGraphKernelNodeGetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  num("priority", v.priority);
}


/* ---- updates ---- */

static void update(void) {
  ui.result = 99;
  S(cuGraphExecUpdate(e, g2, &ui));
  num("result", ui.result);
  num("error node", ui.errorNode != NULL);
  num("error from node", ui.errorFromNode != NULL);
}


static void update_memset(void) {
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemsetD32Async(d, 1, 8, s);
  cu->cuStreamEndCapture(s, &g);
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemsetD8Async(d, 1, 8, s);
  cu->cuStreamEndCapture(s, &g2);
  update();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemsetD2D32Async(d, 64, 1, 8, 3, s);
  cu->cuStreamEndCapture(s, &g2);
  update();
}


static void update_memcpy(void) {
  static char host[64];
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemcpyDtoDAsync(d + 4096, d, 64, s);
  cu->cuStreamEndCapture(s, &g);
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemcpyDtoDAsync(d + 4096, d, 32, s);
  cu->cuStreamEndCapture(s, &g2);
  update();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemcpyHtoDAsync(d, host, 64, s);
  cu->cuStreamEndCapture(s, &g2);
  update();
}


static void update_order(void) {
  CUgraphNode a, b;
  CUDA_HOST_NODE_PARAMS hp = {free, NULL};
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddEmptyNode(&a, g, NULL, 0);
  cu->cuGraphAddHostNode(&b, g, NULL, 0, &hp);
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuGraphCreate(&g2, 0);
  cu->cuGraphAddHostNode(&b, g2, NULL, 0, &hp);
  cu->cuGraphAddEmptyNode(&a, g2, NULL, 0);
  update();
}


static void update_edges(void) {
  CUgraphNode nd[3];
  size_t n = 3;
  g = capn(3);
  cu->cuGraphInstantiate(&e, g, 0);
  g2 = capn(3);
  cu->cuGraphGetNodes(g2, nd, &n);
  cu->cuGraphAddDependencies(g2, &nd[0], &nd[2], NULL, 1);
  update();
}


static void update_edge_data(void) {
  CUgraphNode nd[2];
  size_t n = 2;
  CUgraphEdgeData data = {.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                          .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
  g = capn(2);
  cu->cuGraphInstantiate(&e, g, 0);
  g2 = capn(2);
  cu->cuGraphGetNodes(g2, nd, &n);
  cu->cuGraphRemoveDependencies(g2, &nd[0], &nd[1], NULL, 1);
  cu->cuGraphAddDependencies(g2, &nd[0], &nd[1], &data, 1);
  update();
}


static void update_child(void) {
  CUgraphNode n;
  CUgraph in = capn(1);
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddChildGraphNode(&n, g, NULL, 0, in);
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuGraphCreate(&g2, 0);
  cu->cuGraphAddChildGraphNode(&n, g2, NULL, 0, capn(1));
  update();
  cu->cuGraphCreate(&g2, 0);
  cu->cuGraphAddChildGraphNode(&n, g2, NULL, 0, capn(2));
  update();
}


static void update_events(void) {
  CUgraphNode n;
  ev = EV();
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddEventRecordNode(&n, g, NULL, 0, ev);
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuGraphCreate(&g2, 0);
  cu->cuGraphAddEventRecordNode(&n, g2, NULL, 0, EV());
  update();
}


static void update_attribute(void) {
  CUgraphNode n;
  size_t one = 1;
  CUkernelNodeAttrValue v;
  g = capn(1);
  cu->cuGraphInstantiate(&e, g, 0);
  g2 = capn(1);
  cu->cuGraphGetNodes(g2, &n, &one);
  memset(&v, 0, sizeof v);
  v.priority = -2;
  cu->cuGraphKernelNodeSetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v);
  update();
  memset(&v, 0, sizeof v);
  v.cooperative = 1;
  cu->cuGraphKernelNodeSetAttribute(n, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v);
  update();
}


static void ignore(void *unused) {
  (void)unused;
}


static void update_host(void) {
  CUgraphNode n;
  CUDA_HOST_NODE_PARAMS hp = {free, NULL};
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddHostNode(&n, g, NULL, 0, &hp);
  cu->cuGraphInstantiate(&e, g, 0);
  hp.fn = ignore;
  cu->cuGraphCreate(&g2, 0);
  cu->cuGraphAddHostNode(&n, g2, NULL, 0, &hp);
  update();
}


static void update_self(void) {
  g = g2 = capn(2);
  cu->cuGraphInstantiate(&e, g, 0);
  update();
  S(cuGraphExecUpdate(e, g, 0));
  S(cuGraphExecUpdate(e, 0, &ui));
}


static void update_failed_then_launch(void) {
  float before = 0, after = 0;
  g = capn(2);
  cu->cuGraphInstantiate(&e, g, 0);
  g2 = capn(3);
  update();
  cu->cuMemcpyDtoH(&before, d, sizeof before);
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
  cu->cuMemcpyDtoH(&after, d, sizeof after);
  num("ticks", (long)(after - before));
}


/* ---- child graphs and clones ---- */

static void child_handles(void) {
  CUgraphNode n;
  CUgraph in = NULL;
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddChildGraphNode(&n, g, NULL, 0, capn(2));
  cu->cuGraphChildGraphNodeGetGraph(n, &in);
  S(cuGraphInstantiate(&e, in, 0));
  S(cuGraphClone(&g2, in));
  num("nodes", cnt(g2));
}


static void clone_of_clone(void) {
  CUgraphNode nd[2], f = NULL, n2[2];
  size_t n = 2;
  CUgraph g3;
  g = capn(2);
  cu->cuGraphGetNodes(g, nd, &n);
  S(cuGraphClone(&g2, g));
  S(cuGraphClone(&g3, g2));
  S(cuGraphNodeFindInClone(&f, nd[0], g3));
  cu->cuGraphGetNodes(g2, n2, &n);
  S(cuGraphNodeFindInClone(&f, n2[1], g3));
  S(cuGraphNodeFindInClone(&f, n2[1], g));
  cu->cuGraphDestroyNode(n2[1]);
  S(cuGraphNodeFindInClone(&f, nd[1], g2));
}


static void clone_nested(void) {
  CUgraphNode n, inner, f = NULL, fc = NULL;
  CUgraph in = NULL, cloned = NULL;
  size_t one = 1;
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddChildGraphNode(&n, g, NULL, 0, capn(1));
  cu->cuGraphChildGraphNodeGetGraph(n, &in);
  cu->cuGraphGetNodes(in, &inner, &one);
  S(cuGraphClone(&g2, g));
  S(cuGraphNodeFindInClone(&fc, n, g2));
  S(cuGraphChildGraphNodeGetGraph(fc, &cloned));
  num("another graph", cloned != in);
  S(cuGraphNodeFindInClone(&f, inner, g2));
  S(cuGraphNodeFindInClone(&f, inner, cloned));
}


/* ---- event nodes ---- */

static void record_node(void) {
  float ms = 0;
  CUevent first = EV();
  ev = EV();
  s = NS();
  cu->cuEventRecord(first, s);
  cu->cuStreamBeginCapture(s, TL);
  cu->cuLaunchHostFunc(s, doze, NULL);
  cu->cuEventRecordWithFlags(ev, s, CU_EVENT_RECORD_EXTERNAL);
  cu->cuStreamEndCapture(s, &g);
  S(cuEventQuery(ev));
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuEventQuery(ev));
  sleep_on();
  S(cuGraphLaunch(e, s));
  S(cuEventQuery(ev));
  wake();
  S(cuEventSynchronize(ev));
  S(cuEventElapsedTime(&ms, first, ev));
  num("slept", ms > 20);
  sleep_on();
  S(cuGraphLaunch(e, s));
  S(cuEventQuery(ev));
  wake();
  S(cuStreamSynchronize(s));
  S(cuEventQuery(ev));
}


static void wait_node(void) {
  ev = EV();
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuStreamWaitEvent(s, ev, CU_EVENT_WAIT_EXTERNAL);
  K(s);
  cu->cuStreamEndCapture(s, &g);
  num("nodes", cnt(g));
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
}


static void busy_stream(void) {
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuLaunchHostFunc(s, doze, NULL);
  cu->cuStreamEndCapture(s, &g);
  cu->cuGraphInstantiate(&e, g, 0);
  sleep_on();
  S(cuGraphLaunch(e, s));
  S(cuStreamQuery(s));
  wake();
  S(cuStreamSynchronize(s));
  S(cuStreamQuery(s));
}


/* ---- user objects ---- */

static void destroy(void *unused) {
  (void)unused;
  destroyed++;
}


/* Destructors run on a thread of the driver's own: waits for as many as are
   to come, three seconds at most, and for one too many. */
static void settle(int expected) {
  struct timespec pause = {0, 50000000};
  cu->cuCtxSynchronize();
  for (int i = 0; i < 60 && destroyed < expected; i++)
    nanosleep(&pause, NULL);
  nanosleep(&pause, NULL);
}


static void user_bad(void) {
  CUuserObject o = NULL;
  S(cuUserObjectCreate(&o, 0, destroy, 1, 0));
  S(cuUserObjectCreate(&o, 0, destroy, 0, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  S(cuUserObjectCreate(&o, 0, 0, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  S(cuUserObjectCreate(&o, 0, destroy, 2, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  cu->cuGraphCreate(&g, 0);
  S(cuGraphRetainUserObject(g, o, 0, 0));
  S(cuGraphRetainUserObject(g, o, 1, 4));
  S(cuUserObjectRelease(o, 0));
  S(cuUserObjectRelease(o, 2));
  settle(0);
}


static void user_life(void) {
  CUuserObject o = NULL;
  destroyed = 0;
  S(cuUserObjectCreate(&o, 0, destroy, 1, CU_USER_OBJECT_NO_DESTRUCTOR_SYNC));
  g = capn(1);
  S(cuGraphRetainUserObject(g, o, 1, CU_GRAPH_USER_OBJECT_MOVE));
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuGraphClone(&g2, g);
  S(cuGraphDestroy(g));
  settle(0);
  num("destroyed", destroyed);
  S(cuGraphLaunch(e, 0));
  S(cuGraphExecDestroy(e));
  settle(0);
  num("destroyed", destroyed);
  S(cuGraphDestroy(g2));
  settle(1);
  num("destroyed", destroyed);
}


static const question questions[] = {
    {"instantiate: upload flag, priority flag, nothing", flags},
    {"instantiate with params: upload, unknown flag, cycle", with_params},
    {"kernel node of a stream with a priority", priorities},
    {"update: memset of another element size, of two dimensions",
     update_memset},
    {"update: copy of another size, of another direction", update_memcpy},
    {"update: ends in another order", update_order},
    {"update: one edge more", update_edges},
    {"update: full edge became programmatic", update_edge_data},
    {"update: child graph, of the same and another shape", update_child},
    {"update: another event", update_events},
    {"update: priority, then cooperative launch", update_attribute},
    {"update: another host function", update_host},
    {"update: from its own graph, without a place for the result, from null",
     update_self},
    {"update: refused, then launched", update_failed_then_launch},
    {"child graph's handle: instantiate, clone", child_handles},
    {"clone of a clone, and a node destroyed in it", clone_of_clone},
    {"clone with a child graph", clone_nested},
    {"event record node: its event before, during and after launches",
     record_node},
    {"event wait node: event never recorded", wait_node},
    {"launch: the stream during and after", busy_stream},
    {"user object: bad arguments", user_bad},
    {"user object: kept by graph, executable and clone", user_life},
};


void ask_instantiation(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
