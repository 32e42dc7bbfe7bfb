/* Dependency sets, edges and their data, lists of nodes. */
#include "driver/conformance/ask.h"

#include <string.h>

static CUstream s, t;
static CUevent ev, ev2;
static CUgraph g, g2;
static CUgraphNode nd[4];

static const CUgraphEdgeData programmatic = {
    .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
    .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};


/* n kernel nodes without edges. */
static void loose(int n) {
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  for (int i = 0; i < n; i++) {
    K(s);
    cu->cuStreamUpdateCaptureDependencies(s, NULL, NULL, 0,
                                          CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  }
  cu->cuStreamEndCapture(s, &g);
  size_t count = (size_t)n;
  cu->cuGraphGetNodes(g, nd, &count);
}


static void idle_join_later(void) {
  s = NS();
  t = NS();
  ev = EV();
  ev2 = EV();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
  K(s);
  cu->cuEventRecord(ev2, t);
  cu->cuStreamWaitEvent(s, ev2, 0);
  K(s);
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
  num("edges", edg(g));
}


static void join_twice(void) {
  s = NS();
  t = NS();
  ev = EV();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
  K(t);
  cu->cuEventRecord(ev, t);
  S(cuStreamWaitEvent(s, ev, 0));
  S(cuStreamWaitEvent(s, ev, 0));
  K(s);
  S(cuStreamEndCapture(s, &g));
  num("edges", edg(g));
}


static void update_bad(void) {
  g2 = capn(1);
  size_t one = 1;
  CUgraphNode foreign, mine[2], nothing = NULL;
  cu->cuGraphGetNodes(g2, &foreign, &one);
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  CUstreamCaptureStatus c;
  const CUgraphNode *dp = NULL;
  const CUgraphEdgeData *ed;
  size_t n = 0;
  cu->cuStreamGetCaptureInfo(s, &c, NULL, NULL, &dp, &ed, &n);
  mine[0] = mine[1] = dp[0];
  S(cuStreamUpdateCaptureDependencies(s, mine, 0, 2, 1));
  S(cuStreamUpdateCaptureDependencies(s, mine, 0, 2, 0));
  S(cuStreamUpdateCaptureDependencies(s, mine, 0, 1, 2));
  S(cuStreamUpdateCaptureDependencies(s, &foreign, 0, 1, 1));
  S(cuStreamUpdateCaptureDependencies(s, &nothing, 0, 1, 1));
  num("status", st(s));
  K(s);
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
  num("edges", edg(g));
}


static void to_graph_bad(void) {
  size_t n = 1;
  CUgraphNode foreign, twice[2];
  CUgraph end = NULL;
  g2 = capn(1);
  cu->cuGraphGetNodes(g2, &foreign, &n);
  loose(2);
  twice[0] = twice[1] = nd[0];
  s = NS();
  t = NS();
  S(cuStreamBeginCaptureToGraph(s, g, &foreign, 0, 1, TL));
  S(cuStreamBeginCaptureToGraph(s, g, twice, 0, 2, TL));
  num("status", st(s));
  if (st(s) == 1)
    cu->cuStreamEndCapture(s, &end);
  S(cuStreamBeginCaptureToGraph(s, g, nd, 0, 2, TL));
  S(cuStreamBeginCaptureToGraph(t, g, 0, 0, 0, TL));
  K(s);
  if (st(t) == 1)
    cu->cuStreamEndCapture(t, &end);
  S(cuStreamEndCapture(s, &end));
  num("nodes", cnt(g));
  num("edges", edg(g));
}


static void to_graph_edits(void) {
  CUgraph end = NULL;
  CUgraphNode x;
  loose(2);
  cu->cuGraphAddDependencies(g, &nd[0], &nd[1], NULL, 1);
  s = NS();
  cu->cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, RX);
  K(s);
  S(cuGraphAddEmptyNode(&x, g, 0, 0));
  S(cuGraphRemoveDependencies(g, &nd[0], &nd[1], 0, 1));
  S(cuGraphDestroyNode(nd[1]));
  S(cuGraphClone(&g2, g));
  num("status", st(s));
  S(cuStreamEndCapture(s, &end));
  num("nodes", cnt(g));
  num("edges", edg(g));
}


static void to_graph_instantiate(void) {
  CUgraph end = NULL;
  CUgraphExec e;
  loose(1);
  s = NS();
  cu->cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, RX);
  K(s);
  S(cuGraphInstantiate(&e, g, 0));
  num("status", st(s));
  S(cuStreamEndCapture(s, &end));
}


static void broken_to_graph(void) {
  CUgraph end = (CUgraph)&g;
  loose(1);
  s = NS();
  cu->cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, TL);
  K(s);
  cu->cuStreamSynchronize(s);
  S(cuStreamEndCapture(s, &end));
  num("graph null", end == NULL);
  num("nodes", cnt(g));
}


/* What is left of a graph that a failed capture wrote into. */
static void left_of(void) {
  CUgraph end = (CUgraph)&g;
  size_t n = 77;
  S(cuStreamEndCapture(s, &end));
  S(cuGraphGetNodes(g, 0, &n));
  num("n", (long)n);
  S(cuGraphDestroy(g));
}


static void broken_to_graph_left(void) {
  loose(1);
  s = NS();
  cu->cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, TL);
  K(s);
  cu->cuStreamSynchronize(s);
  left_of();
}


static void unjoined_to_graph_left(void) {
  loose(1);
  s = NS();
  t = NS();
  ev = EV();
  cu->cuStreamBeginCaptureToGraph(s, g, NULL, NULL, 0, TL);
  K(s);
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
  K(t);
  left_of();
}


static void two_waits(void) {
  CUstream u = NS();
  s = NS();
  t = NS();
  ev = EV();
  ev2 = EV();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
  K(t);
  cu->cuEventRecord(ev2, t);
  S(cuStreamWaitEvent(u, ev, 0));
  S(cuStreamWaitEvent(u, ev2, 0));
  K(u);
  cu->cuEventRecord(ev, u);
  S(cuStreamWaitEvent(s, ev, 0));
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
  num("edges", edg(g));
}


static void record_again(void) {
  s = NS();
  t = NS();
  ev = EV();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  cu->cuEventRecord(ev, s);
  K(s);
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
  K(t);
  cu->cuEventRecord(ev, t);
  cu->cuStreamWaitEvent(s, ev, 0);
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
  num("edges", edg(g));
}


/* ---- edge data ---- */

static void edge_data_info(void) {
  CUstreamCaptureStatus c;
  const CUgraphNode *dp = NULL;
  const CUgraphEdgeData *ed = NULL;
  CUgraphNode mine;
  CUgraphEdgeData out = {0};
  CUgraphNode from, to;
  size_t n = 0;
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  cu->cuStreamGetCaptureInfo(s, &c, NULL, NULL, &dp, &ed, &n);
  mine = dp[0];
  S(cuStreamUpdateCaptureDependencies(s, &mine, &programmatic, 1, 1));
  S(cuStreamGetCaptureInfo(s, &c, 0, 0, &dp, 0, &n));
  S(cuStreamGetCaptureInfo(s, &c, 0, 0, 0, 0, &n));
  S(cuStreamGetCaptureInfo(s, &c, 0, 0, &dp, &ed, &n));
  num("n", (long)n);
  num("from_port", ed[0].from_port);
  K(s);
  S(cuStreamEndCapture(s, &g));
  n = 1;
  S(cuGraphGetEdges(g, &from, &to, &out, &n));
  num("from_port", out.from_port);
}


static void edge_data(void) {
  CUgraphNode from[2], to[2];
  CUgraphEdgeData out[2];
  size_t n = 2;
  loose(3);
  S(cuGraphAddDependencies(g, &nd[0], &nd[1], &programmatic, 1));
  S(cuGraphAddDependencies(g, &nd[0], &nd[1], 0, 1));
  S(cuGraphGetEdges(g, from, to, 0, &n));
  memset(out, 0xff, sizeof out);
  n = 2;
  S(cuGraphGetEdges(g, from, to, out, &n));
  num("n", (long)n);
  num("from_port", out[0].from_port);
  num("type", out[0].type);
  n = 2;
  S(cuGraphNodeGetDependencies(nd[1], from, 0, &n));
  S(cuGraphNodeGetDependentNodes(nd[0], to, 0, &n));
  S(cuGraphRemoveDependencies(g, &nd[0], &nd[1], 0, 1));
  S(cuGraphRemoveDependencies(g, &nd[0], &nd[1], &programmatic, 1));
  num("edges", edg(g));
}


static void edge_data_bad(void) {
  CUgraphEdgeData x = {0};
  loose(2);
  x.to_port = 1;
  S(cuGraphAddDependencies(g, &nd[0], &nd[1], &x, 1));
  x = (CUgraphEdgeData){.from_port = 3};
  S(cuGraphAddDependencies(g, &nd[0], &nd[1], &x, 1));
  x = (CUgraphEdgeData){.type = 2};
  S(cuGraphAddDependencies(g, &nd[0], &nd[1], &x, 1));
  x = (CUgraphEdgeData){.reserved = {1}};
  S(cuGraphAddDependencies(g, &nd[0], &nd[1], &x, 1));
  x = (CUgraphEdgeData){.type = 1};
  S(cuGraphAddDependencies(g, &nd[0], &nd[1], &x, 1));
  num("edges", edg(g));
}


static void edge_data_ports(void) {
  CUgraphEdgeData x = {.from_port = 1};
  loose(4);
  S(cuGraphAddDependencies(g, &nd[0], &nd[1], &x, 1));
  x = (CUgraphEdgeData){.from_port = 2, .type = 1};
  S(cuGraphAddDependencies(g, &nd[1], &nd[2], &x, 1));
  x = (CUgraphEdgeData){.from_port = 2};
  S(cuGraphAddDependencies(g, &nd[2], &nd[3], &x, 1));
  num("edges", edg(g));
}


static void edge_data_empty(void) {
  CUgraphNode empty, x;
  CUgraphNodeParams params;
  loose(1);
  cu->cuGraphAddEmptyNode(&empty, g, NULL, 0);
  S(cuGraphAddDependencies(g, &empty, &nd[0], &programmatic, 1));
  S(cuGraphAddDependencies(g, &nd[0], &empty, &programmatic, 1));
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  S(cuGraphAddNode(&x, g, &nd[0], &programmatic, 1, &params));
  num("nodes", cnt(g));
}


static void edge_data_captured(void) {
  float a = 1;
  void *p[] = {&d, &a};
  CUlaunchAttribute attribute = {
      .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUgraphNode from[4], to[4];
  CUgraphEdgeData out[4];
  CUgraphExec e;
  size_t n = 4;
  s = NS();
  CUlaunchConfig c = {1, 1, 1, 32, 1, 1, 0, s, &attribute, 1};
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  S(cuLaunchKernelEx(&c, tick, p, 0));
  K(s);
  cu->cuMemsetD8Async(d, 0, 8, s);
  S(cuLaunchKernelEx(&c, tick, p, 0));
  S(cuStreamEndCapture(s, &g));
  S(cuGraphGetEdges(g, from, to, 0, &n));
  n = 4;
  memset(out, 0, sizeof out);
  S(cuGraphGetEdges(g, from, to, out, &n));
  num("n", (long)n);
  for (size_t i = 0; i < n && i < 4; i++)
    num("from_port type", out[i].from_port * 10 + out[i].type);
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
}


static void note_edge(CUgraph graph) {
  CUgraphNode from, to;
  CUgraphEdgeData out = {0};
  size_t n = 1;
  S(cuGraphGetEdges(graph, &from, &to, &out, &n));
  num("from_port type", out.from_port * 10 + out.type);
}


static void edge_data_copied(void) {
  CUgraph parent, inner;
  CUgraphNode child;
  CUgraphExec e;
  size_t n = 0;
  loose(2);
  s = NS();
  S(cuGraphAddDependencies(g, &nd[0], &nd[1], &programmatic, 1));
  S(cuGraphGetEdges(g, 0, 0, 0, &n));
  num("n", (long)n);
  S(cuGraphClone(&g2, g));
  note_edge(g2);
  cu->cuGraphCreate(&parent, 0);
  S(cuGraphAddChildGraphNode(&child, parent, 0, 0, g));
  S(cuGraphChildGraphNodeGetGraph(child, &inner));
  note_edge(inner);
  S(cuGraphInstantiate(&e, parent, 0));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
}


static void edge_data_fill(void) {
  CUgraphNodeParams fill, kernel;
  CUgraphNode m, k, x;
  CUgraphExec e;
  void *p[2];
  float a = 1;
  const CUgraphEdgeData edges[2] = {programmatic, {0}};
  loose(1);
  s = NS();
  memset(&fill, 0, sizeof fill);
  fill.type = CU_GRAPH_NODE_TYPE_MEMSET;
  fill.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
      .dst = d, .elementSize = 4, .width = 2, .height = 1};
  memset(&kernel, 0, sizeof kernel);
  kernel.type = CU_GRAPH_NODE_TYPE_KERNEL;
  kernel.kernel = adding(&a, p);
  S(cuGraphAddNode(&m, g, 0, 0, 0, &fill));
  S(cuGraphAddNode(&k, g, &m, &programmatic, 1, &kernel));
  S(cuGraphAddDependencies(g, &nd[0], &m, &programmatic, 1));
  CUgraphNode before[2] = {nd[0], m};
  S(cuGraphAddNode(&x, g, before, edges, 2, &kernel));
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
}


static void edge_data_replaced(void) {
  const CUgraphEdgeData full = {0};
  CUgraphExecUpdateResultInfo ui = {0};
  CUgraphExec e;
  loose(2);
  cu->cuGraphAddDependencies(g, &nd[0], &nd[1], &programmatic, 1);
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphRemoveDependencies(g, &nd[0], &nd[1], 0, 1));
  S(cuGraphRemoveDependencies(g, &nd[0], &nd[1], &full, 1));
  S(cuGraphAddDependencies(g, &nd[0], &nd[1], &full, 1));
  S(cuGraphAddDependencies(g, &nd[0], &nd[1], &programmatic, 1));
  num("edges", edg(g));
  S(cuGraphExecUpdate(e, g, &ui));
  num("result", ui.result);
}


static void edge_data_changed(void) {
  CUgraphExec e;
  void *p[2];
  float a = 2;
  loose(3);
  s = NS();
  clear_ticks();
  cu->cuGraphAddDependencies(g, &nd[0], &nd[1], &programmatic, 1);
  cu->cuGraphAddDependencies(g, &nd[1], &nd[2], &programmatic, 1);
  const CUDA_KERNEL_NODE_PARAMS params = adding(&a, p);
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphNodeSetEnabled(e, nd[1], 0));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  note_ticks();
  S(cuGraphNodeSetEnabled(e, nd[1], 1));
  S(cuGraphExecKernelNodeSetParams(e, nd[2], &params));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  note_ticks();
}


/* ---- lists ---- */

static void lists(void) {
  CUgraphNode list[4] = {(CUgraphNode)&g, (CUgraphNode)&g, (CUgraphNode)&g,
                         (CUgraphNode)&g};
  CUgraphNode from[4] = {0}, to[4] = {0};
  size_t n = 1;
  g = capn(3);
  S(cuGraphGetNodes(g, list, &n));
  num("n", (long)n);
  num("second kept", list[1] == (CUgraphNode)&g);
  n = 4;
  S(cuGraphGetNodes(g, list, &n));
  num("n", (long)n);
  num("fourth null", list[3] == NULL);
  n = 1;
  S(cuGraphGetEdges(g, from, to, 0, &n));
  num("n", (long)n);
  n = 4;
  S(cuGraphGetEdges(g, from, to, 0, &n));
  num("n", (long)n);
  n = 4;
  S(cuGraphGetRootNodes(g, list, &n));
  num("n", (long)n);
  S(cuGraphGetEdges(g, from, 0, 0, &n));
  S(cuGraphGetNodes(g, 0, 0));
  S(cuGraphGetNodes(0, 0, &n));
}


static void add_bad(void) {
  size_t one = 1;
  CUgraphNode foreign, x, twice[2];
  g2 = capn(1);
  cu->cuGraphGetNodes(g2, &foreign, &one);
  loose(1);
  twice[0] = twice[1] = nd[0];
  S(cuGraphAddEmptyNode(&x, g, &foreign, 1));
  S(cuGraphAddEmptyNode(&x, g, twice, 2));
  S(cuGraphAddEmptyNode(&x, g, 0, 1));
  S(cuGraphAddEmptyNode(0, g, 0, 0));
  S(cuGraphAddDependencies(g, &nd[0], &foreign, 0, 1));
  num("nodes", cnt(g));
}


static const question questions[] = {
    {"fork with no work, joined one kernel later", idle_join_later},
    {"fork joined twice over", join_twice},
    {"dependency set: twice the same, unknown flags, of another graph, null",
     update_bad},
    {"capture to graph: dependencies of another graph, twice the same, two "
     "captures at once",
     to_graph_bad},
    {"capture to graph: edits of the graph meanwhile", to_graph_edits},
    {"capture to graph, mode relaxed: instantiate meanwhile",
     to_graph_instantiate},
    {"capture to graph, broken: the graph afterwards", broken_to_graph},
    {"capture to graph, broken: its nodes, its destruction",
     broken_to_graph_left},
    {"capture to graph, unjoined: its nodes, its destruction",
     unjoined_to_graph_left},
    {"fork that waits on two events", two_waits},
    {"event recorded twice in a capture", record_again},
    {"edge data: in a dependency set, asked with and without", edge_data_info},
    {"edge data: programmatic edge, read with and without data", edge_data},
    {"edge data: bad ports, types and reserved bytes", edge_data_bad},
    {"edge data: ports without their type", edge_data_ports},
    {"edge data: programmatic from and to an empty node", edge_data_empty},
    {"edge data: captured with programmatic serialization", edge_data_captured},
    {"edge data: in a clone and in a child graph", edge_data_copied},
    {"edge data: programmatic from and to a fill", edge_data_fill},
    {"edge data: programmatic edge became full", edge_data_replaced},
    {"edge data: node behind a programmatic edge disabled, changed",
     edge_data_changed},
    {"lists with too little and too much room", lists},
    {"dependencies of another graph, twice, missing", add_bad},
};


void ask_dependencies(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
