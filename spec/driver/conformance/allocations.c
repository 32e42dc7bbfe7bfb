/* Memory nodes: alloc and free nodes by hand, their graphs, memory that
   outlives its launch. */
#include "driver/conformance/ask.h"

#include <stdio.h>
#include <string.h>

static CUstream s;
static CUgraph g, g2;
static CUgraphExec e, e2;
static CUdeviceptr q;
static CUgraphNode a, f;


static CUgraphNodeParams alloc_params(size_t bytes, int location) {
  CUgraphNodeParams p;
  memset(&p, 0, sizeof p);
  p.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  p.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.alloc.poolProps.location.id = location;
  p.alloc.bytesize = bytes;
  return p;
}


static CUgraphNodeParams free_params(CUdeviceptr address) {
  CUgraphNodeParams p;
  memset(&p, 0, sizeof p);
  p.type = CU_GRAPH_NODE_TYPE_MEM_FREE;
  p.free.dptr = address;
  return p;
}


/* A graph that allocates q, and frees it where `frees`. */
static CUgraph captured(int frees) {
  CUgraph graph = NULL;
  q = 0;
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemAllocAsync(&q, 4096, s);
  if (frees)
    cu->cuMemFreeAsync(q, s);
  cu->cuStreamEndCapture(s, &graph);
  return graph;
}


static void by_hand(void) {
  CUgraphNode x;
  cu->cuGraphCreate(&g, 0);
  CUgraphNodeParams p = alloc_params(0, 0);
  S(cuGraphAddNode(&a, g, 0, 0, 0, &p));
  p = alloc_params(64, 9);
  S(cuGraphAddNode(&a, g, 0, 0, 0, &p));
  p = alloc_params(64, 0);
  S(cuGraphAddNode(&a, g, 0, 0, 0, &p));
  num("address", p.alloc.dptr != 0);
  CUdeviceptr address = p.alloc.dptr;
  p = free_params(d);
  S(cuGraphAddNode(&f, g, &a, 0, 1, &p));
  p = free_params(address);
  S(cuGraphAddNode(&f, g, &a, 0, 1, &p));
  p = free_params(address);
  S(cuGraphAddNode(&x, g, &f, 0, 1, &p));
  num("nodes", cnt(g));
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphLaunch(e, 0));
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
}


static void removal(void) {
  CUgraphNode nd[2], x;
  size_t n = 2;
  g = captured(1);
  cu->cuGraphGetNodes(g, nd, &n);
  S(cuGraphDestroyNode(nd[1]));
  S(cuGraphRemoveDependencies(g, &nd[0], &nd[1], 0, 1));
  S(cuGraphAddEmptyNode(&x, g, nd, 1));
  S(cuGraphAddDependencies(g, &x, &nd[1], 0, 1));
  S(cuGraphDestroyNode(x));
  num("nodes", cnt(g));
}


static void child(void) {
  CUgraph p;
  CUgraphNode x;
  CUgraphNodeParams params;
  g = captured(1);
  cu->cuGraphCreate(&p, 0);
  S(cuGraphAddChildGraphNode(&x, p, 0, 0, g));
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = g;
  params.graph.ownership = 7;
  S(cuGraphAddNode(&x, p, 0, 0, 0, &params));
  num("nodes", cnt(p));
}


/* The child's handle is the parent's from then on. */
static void moved(void) {
  CUgraph p, in = NULL;
  CUgraphNode x;
  CUgraphNodeParams params;
  g = captured(1);
  cu->cuGraphCreate(&p, 0);
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = g;
  params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE;
  S(cuGraphAddNode(&x, p, 0, 0, 0, &params));
  track_forget(g);
  S(cuGraphChildGraphNodeGetGraph(x, &in));
  num("same", in == g);
  S(cuGraphInstantiate(&e, p, 0));
  S(cuGraphInstantiate(&e2, p, 0));
  S(cuGraphLaunch(e, s));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  S(cuGraphClone(&g2, p));
  S(cuGraphExecDestroy(e));
}


static void free_before_alloc(void) {
  g = captured(0);
  cu->cuGraphInstantiate(&e, g, 0);
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemFreeAsync(q, s);
  cu->cuStreamEndCapture(s, &g2);
  cu->cuGraphInstantiate(&e2, g2, 0);
  S(cuGraphLaunch(e, s));
  S(cuGraphLaunch(e2, s));
  S(cuGraphLaunch(e, s));
  S(cuMemFreeAsync(q, s));
  S(cuStreamSynchronize(s));
}


static void free_kinds(void) {
  g = captured(0);
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuGraphLaunch(e, s));
  S(cuMemFree(q));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  S(cuMemsetD8(q, 1, 4096));
  S(cuMemFreeAsync(q, s));
  S(cuStreamSynchronize(s));
}


static void outlives(void) {
  g = captured(0);
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuGraphLaunch(e, s));
  S(cuGraphExecDestroy(e));
  S(cuGraphDestroy(g));
  S(cuMemsetD8(q, 1, 4096));
  S(cuMemFree(q));
}


static void used_in_graph(void) {
  unsigned char byte = 0;
  CUdeviceptr to = d + 128;
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemAllocAsync(&q, 4096, s);
  S(cuMemsetD8Async(q, 9, 4096, s));
  S(cuMemcpyDtoDAsync(to, q + 4095, 1, s));
  cu->cuMemFreeAsync(q, s);
  cu->cuStreamEndCapture(s, &g);
  num("nodes", cnt(g));
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphLaunch(e, s));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  cu->cuMemcpyDtoH(&byte, to, 1);
  num("byte", byte);
}


static void attributes(const char *when) {
  cuuint64_t used = 0, reserved = 0;
  cu->cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT,
                                   &used);
  cu->cuDeviceGetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT,
                                   &reserved);
  char what[64];
  snprintf(what, sizeof what, "%s: used, reserved", when);
  num(what, (used > 0) * 10 + (reserved > 0));
}


static void counted(void) {
  cu->cuDeviceGraphMemTrim(0);
  attributes("before");
  g = captured(0);
  attributes("captured");
  cu->cuGraphInstantiate(&e, g, 0);
  attributes("instantiated");
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  attributes("launched");
  S(cuMemFreeAsync(q, s));
  S(cuStreamSynchronize(s));
  attributes("freed");
  S(cuDeviceGraphMemTrim(0));
  attributes("trimmed");
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  attributes("launched again");
  S(cuMemFree(q));
  S(cuGraphExecDestroy(e));
  S(cuGraphDestroy(g));
  S(cuDeviceGraphMemTrim(0));
  attributes("destroyed and trimmed");
}


static void zero(void) {
  CUdeviceptr z = 0;
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  S(cuMemAllocAsync(&z, 0, s));
  num("status", st(s));
  S(cuMemFreeAsync(0, s));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
}


static const question questions[] = {
    {"alloc and free nodes by hand: nothing, another device, memory from "
     "outside, twice",
     by_hand},
    {"memory nodes: destroy, remove an edge, add one", removal},
    {"memory nodes in a child graph, and of unknown ownership", child},
    {"memory nodes in a child graph that is moved", moved},
    {"alloc in one executable, free in another, launched out of turn",
     free_before_alloc},
    {"memory left by a launch: cuMemFree, use, cuMemFreeAsync", free_kinds},
    {"memory left by a launch: graph and executable destroyed", outlives},
    {"memory of a graph used inside it", used_in_graph},
    {"graph memory attributes", counted},
    {"cuMemAllocAsync of nothing and cuMemFreeAsync of null in a capture",
     zero},
};


void ask_allocations(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
