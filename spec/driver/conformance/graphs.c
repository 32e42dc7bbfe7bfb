/* Graphs: edges, copies, child graphs, conditional nodes. */
#include "driver/conformance/ask.h"

#include <stdlib.h>
#include <string.h>

static CUstream s;
static CUgraph g, g2;
static CUgraphExec e, e2;
static char host[64];


static void cycle(void) {
  CUgraphNode nd[3];
  size_t n = 3;
  g = capn(3);
  cu->cuGraphGetNodes(g, nd, &n);
  S(cuGraphAddDependencies(g, &nd[2], &nd[0], 0, 1));
  S(cuGraphInstantiate(&e, g, 0));
}


static void edge_twice(void) {
  CUgraphNode nd[2];
  size_t n = 2;
  g = capn(2);
  cu->cuGraphGetNodes(g, nd, &n);
  S(cuGraphAddDependencies(g, &nd[0], &nd[1], 0, 1));
  S(cuGraphRemoveDependencies(g, &nd[0], &nd[1], 0, 1));
  S(cuGraphRemoveDependencies(g, &nd[0], &nd[1], 0, 1));
  num("edges", edg(g));
  S(cuGraphAddDependencies(g, &nd[0], &nd[0], 0, 1));
}


static void clone(void) {
  CUgraphNode nd[2], f;
  size_t n = 2;
  g = capn(2);
  cu->cuGraphGetNodes(g, nd, &n);
  S(cuGraphClone(&g2, g));
  S(cuGraphNodeFindInClone(&f, nd[0], g2));
  S(cuGraphNodeFindInClone(&f, nd[0], g));
  num("nodes", cnt(g2));
}


static void child(void) {
  CUgraph p, in = NULL;
  CUgraphNode cn, nd[2];
  size_t n = 2;
  g = capn(2);
  cu->cuGraphCreate(&p, 0);
  S(cuGraphAddChildGraphNode(&cn, p, 0, 0, g));
  cu->cuGraphChildGraphNodeGetGraph(cn, &in);
  cu->cuGraphGetNodes(g, nd, &n);
  cu->cuGraphDestroyNode(nd[1]);
  num("nodes in child", cnt(in));
  num("nodes in original", cnt(g));
  S(cuGraphInstantiate(&e, p, 0));
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
}


/* ---- conditional nodes ---- */

static CUgraphNodeParams while_params(CUgraphConditionalHandle h) {
  CUgraphNodeParams cp;
  memset(&cp, 0, sizeof cp);
  cp.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  cp.conditional.handle = h;
  cp.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
  cp.conditional.size = 1;
  cp.conditional.ctx = ctx;
  return cp;
}


static void while_node(void) {
  CUgraphConditionalHandle h;
  CUgraphNode cn, c2;
  CUgraph p2;
  CUdeviceptr n = 0;
  int three = 3, left = -1;
  cu->cuGraphCreate(&g, 0);
  S(cuGraphConditionalHandleCreate(&h, g, ctx, 1,
                                   CU_GRAPH_COND_ASSIGN_DEFAULT));
  CUgraphNodeParams cp = while_params(h);
  S(cuGraphAddNode(&cn, g, 0, 0, 0, &cp));
  CUgraph b = cp.conditional.phGraph_out[0];
  cu->cuMemAlloc(&n, 4);
  cu->cuMemcpyHtoD(n, &three, 4);
  s = NS();
  S(cuStreamBeginCaptureToGraph(s, b, 0, 0, 0, TL));
  K(s);
  void *p[] = {&h, &n};
  /* clang-format off */
  S(cuLaunchKernel(setc, 1,1,1,1,1,1,0,s,p,0));
  /* clang-format on */
  S(cuStreamEndCapture(s, &b));
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  cu->cuMemcpyDtoH(&left, n, 4);
  num("left", left);
  S(cuGraphClone(&g2, g));
  cu->cuGraphCreate(&p2, 0);
  S(cuGraphAddChildGraphNode(&c2, p2, 0, 0, g));
  S(cuGraphInstantiate(&e2, g, 0));
  S(cuGraphExecDestroy(e));
  S(cuGraphInstantiate(&e2, g, 0));
}


static void while_body(void) {
  CUgraphConditionalHandle h;
  CUgraphNode cn, x;
  CUdeviceptr q = 0;
  CUDA_HOST_NODE_PARAMS hn = {free, NULL};
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphConditionalHandleCreate(&h, g, ctx, 0, 0);
  CUgraphNodeParams cp = while_params(h);
  cu->cuGraphAddNode(&cn, g, NULL, NULL, 0, &cp);
  CUgraph b = cp.conditional.phGraph_out[0];
  S(cuGraphAddHostNode(&x, b, 0, 0, &hn));
  S(cuGraphAddEventRecordNode(&x, b, 0, 0, EV()));
  s = NS();
  S(cuStreamBeginCaptureToGraph(s, b, 0, 0, 0, TL));
  S(cuMemAllocAsync(&q, 64, s));
  num("status", st(s));
  S(cuMemcpyHtoDAsync(d, host, 64, s));
  S(cuStreamEndCapture(s, &b));
  S(cuGraphInstantiate(&e, g, 0));
}


static const question questions[] = {
    {"a cycle", cycle},
    {"a dependency twice", edge_twice},
    {"clone, and find a node in it", clone},
    {"child graph node: a copy, later edits of the original do not show",
     child},
    {"while node: created, run three turns, cloned, as a child, "
     "instantiated twice",
     while_node},
    {"while body: host node, alloc node, event node, memcpy from pageable "
     "memory",
     while_body},
};


void ask_graphs(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
