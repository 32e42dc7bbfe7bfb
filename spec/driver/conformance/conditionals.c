/* Conditional nodes: what they refuse and which bodies run. */
#include "driver/conformance/ask.h"

#include <stdlib.h>
#include <string.h>

static CUstream s;
static CUgraph g;
static CUgraphExec e;
static CUgraphNode n;
static CUgraphConditionalHandle h;
static CUDA_GRAPH_INSTANTIATE_PARAMS ip;


static void with_handle(unsigned value, unsigned flags) {
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphConditionalHandleCreate(&h, g, ctx, value, flags);
}


static CUgraphNodeParams cond(CUgraphConditionalNodeType type, unsigned size) {
  CUgraphNodeParams cp;
  memset(&cp, 0, sizeof cp);
  cp.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  cp.conditional.handle = h;
  cp.conditional.type = type;
  cp.conditional.size = size;
  cp.conditional.ctx = ctx;
  return cp;
}


/* Writes `value` to d[word] in a graph. */
static void put(CUgraph body, unsigned value, unsigned word) {
  CUDA_MEMSET_NODE_PARAMS mp;
  CUgraphNode x;
  memset(&mp, 0, sizeof mp);
  mp.dst = d + 4 * word;
  mp.elementSize = 4;
  mp.width = mp.height = 1;
  mp.value = value;
  cu->cuGraphAddMemsetNode(&x, body, NULL, 0, &mp, ctx);
}


static void clear(void) {
  cu->cuMemsetD32(d, 0, 16);
}


static unsigned get(unsigned word) {
  unsigned value = 77;
  cu->cuMemcpyDtoH(&value, d + 4 * word, sizeof value);
  return value;
}


static void bad(void) {
  CUgraphNodeParams cp;
  CUgraphNode x;
  with_handle(1, 1);
  S(cuGraphConditionalHandleCreate(&h, g, ctx, 1, 4));
  cp = cond(CU_GRAPH_COND_TYPE_IF, 3);
  S(cuGraphAddNode(&n, g, 0, 0, 0, &cp));
  cp = cond(CU_GRAPH_COND_TYPE_IF, 0);
  S(cuGraphAddNode(&n, g, 0, 0, 0, &cp));
  cp = cond(CU_GRAPH_COND_TYPE_WHILE, 2);
  S(cuGraphAddNode(&n, g, 0, 0, 0, &cp));
  cp = cond(CU_GRAPH_COND_TYPE_SWITCH, 0);
  S(cuGraphAddNode(&n, g, 0, 0, 0, &cp));
  cp = cond(7, 1);
  S(cuGraphAddNode(&n, g, 0, 0, 0, &cp));
  cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  S(cuGraphAddNode(&n, g, 0, 0, 0, &cp));
  cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  S(cuGraphAddNode(&x, g, 0, 0, 0, &cp));
  num("nodes", cnt(g));
}


static void bad_handle(void) {
  with_handle(1, 1);
  CUgraphConditionalHandle own = h;
  h = 12345678;
  CUgraphNodeParams cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  S(cuGraphAddNode(&n, g, 0, 0, 0, &cp));
  CUgraph other;
  h = own;
  cu->cuGraphCreate(&other, 0);
  cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  S(cuGraphAddNode(&n, other, 0, 0, 0, &cp));
}


static void unused_handle(void) {
  with_handle(1, 1);
  put(g, 1, 0);
  memset(&ip, 0, sizeof ip);
  ip.result_out = 99;
  S(cuGraphInstantiateWithParams(&e, g, &ip));
  num("result", ip.result_out);
}


static void bad_body(void) {
  CUgraphNodeParams cp;
  CUgraphNode x;
  with_handle(1, 1);
  cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  cu->cuGraphAddNode(&n, g, NULL, NULL, 0, &cp);
  CUgraph b = cp.conditional.phGraph_out[0];
  S(cuGraphAddEventWaitNode(&x, b, 0, 0, EV()));
  memset(&ip, 0, sizeof ip);
  ip.result_out = 99;
  S(cuGraphInstantiateWithParams(&e, g, &ip));
  num("result", ip.result_out);
  num("node", ip.hErrNode_out == x ? 1 : ip.hErrNode_out == n ? 2 : 0);
  S(cuGraphInstantiate(&e, b, 0));
}


/* Instantiates an if whose body is made by `fill`. */
static void body_of(void (*fill)(CUgraph body)) {
  with_handle(1, 1);
  CUgraphNodeParams cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  cu->cuGraphAddNode(&n, g, NULL, NULL, 0, &cp);
  fill(cp.conditional.phGraph_out[0]);
  memset(&ip, 0, sizeof ip);
  ip.result_out = 99;
  S(cuGraphInstantiateWithParams(&e, g, &ip));
  num("result", ip.result_out);
}


static void fill_pageable(CUgraph body) {
  static char host[64];
  CUgraph end;
  s = NS();
  cu->cuStreamBeginCaptureToGraph(s, body, NULL, NULL, 0, TL);
  S(cuMemcpyHtoDAsync(d, host, 64, s));
  cu->cuStreamEndCapture(s, &end);
}


static void fill_pinned(CUgraph body) {
  void *host = NULL;
  CUgraph end;
  cu->cuMemAllocHost(&host, 64);
  s = NS();
  cu->cuStreamBeginCaptureToGraph(s, body, NULL, NULL, 0, TL);
  S(cuMemcpyHtoDAsync(d, host, 64, s));
  cu->cuStreamEndCapture(s, &end);
}


static void fill_child(CUgraph body) {
  CUgraph in;
  CUgraphNode x;
  CUDA_HOST_NODE_PARAMS hp = {free, NULL};
  cu->cuGraphCreate(&in, 0);
  cu->cuGraphAddHostNode(&x, in, NULL, 0, &hp);
  S(cuGraphAddChildGraphNode(&x, body, 0, 0, in));
}


static void pageable_body(void) {
  body_of(fill_pageable);
}


static void pinned_body(void) {
  body_of(fill_pinned);
}


static void child_body(void) {
  body_of(fill_child);
}


static void destroyed(void) {
  with_handle(1, 1);
  CUgraphNodeParams cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  S(cuGraphAddNode(&n, g, 0, 0, 0, &cp));
  S(cuGraphDestroyNode(n));
  num("nodes", cnt(g));
  cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  S(cuGraphAddNode(&n, g, 0, 0, 0, &cp));
  S(cuGraphInstantiate(&e, g, 0));
}


static void empty_body(void) {
  CUgraphNodeParams cp;
  with_handle(1, 1);
  cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  cu->cuGraphAddNode(&n, g, NULL, NULL, 0, &cp);
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
}


/* Which of `size` bodies runs for `value`. */
static void choose(CUgraphConditionalNodeType type, unsigned size,
                   unsigned value) {
  with_handle(value, 1);
  CUgraphNodeParams cp = cond(type, size);
  cu->cuGraphAddNode(&n, g, NULL, NULL, 0, &cp);
  for (unsigned i = 0; i < size; i++)
    put(cp.conditional.phGraph_out[i], 1, i);
  clear();
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
  unsigned ran = 0;
  for (unsigned i = 0; i < size; i++)
    ran = ran * 10 + get(i);
  num("ran", ran);
}


static void choose_if(void) {
  choose(CU_GRAPH_COND_TYPE_IF, 1, 0);
  choose(CU_GRAPH_COND_TYPE_IF, 1, 1);
  choose(CU_GRAPH_COND_TYPE_IF, 1, 7);
}


static void choose_else(void) {
  choose(CU_GRAPH_COND_TYPE_IF, 2, 0);
  choose(CU_GRAPH_COND_TYPE_IF, 2, 1);
}


static void choose_switch(void) {
  choose(CU_GRAPH_COND_TYPE_SWITCH, 3, 0);
  choose(CU_GRAPH_COND_TYPE_SWITCH, 3, 2);
  choose(CU_GRAPH_COND_TYPE_SWITCH, 3, 3);
  choose(CU_GRAPH_COND_TYPE_SWITCH, 1, 0);
}


static void capture_set(CUgraph into, CUgraphConditionalHandle handle,
                        CUdeviceptr counter) {
  void *p[] = {&handle, &counter};
  CUgraph end;
  s = NS();
  cu->cuStreamBeginCaptureToGraph(s, into, NULL, NULL, 0, TL);
  cu->cuLaunchKernel(setc, 1, 1, 1, 1, 1, 1, 0, s, p, NULL);
  cu->cuStreamEndCapture(s, &end);
}


/* The value is the default at each launch, or what the last one left. */
static void value_kept(unsigned flags) {
  CUdeviceptr counter = d + 64;
  with_handle(1, flags);
  CUgraphNodeParams cp = cond(CU_GRAPH_COND_TYPE_WHILE, 1);
  cu->cuGraphAddNode(&n, g, NULL, NULL, 0, &cp);
  capture_set(cp.conditional.phGraph_out[0], h, counter);
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuMemsetD32(counter, 2, 1);
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
  num("left", get(16));
  cu->cuMemsetD32(counter, 2, 1);
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
  num("left", get(16));
}


static void value_default(void) {
  value_kept(1);
}


/* A kernel before the node sets the value that the node reads. */
static void value_before(void) {
  CUdeviceptr counter = d + 64;
  CUgraphNode first;
  size_t one = 1;
  with_handle(0, 1);
  capture_set(g, h, counter);
  cu->cuGraphGetNodes(g, &first, &one);
  CUgraphNodeParams cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  cu->cuGraphAddNode(&n, g, &first, NULL, 1, &cp);
  put(cp.conditional.phGraph_out[0], 1, 0);
  clear();
  cu->cuGraphInstantiate(&e, g, 0);
  cu->cuMemsetD32(counter, 2, 1);
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
  num("ran", get(0));
  clear();
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
  num("ran", get(0));
}


/* An if inside a while: both handles are the graph's. */
static void nested(void) {
  CUgraphConditionalHandle inner;
  CUdeviceptr counter = d + 64;
  with_handle(1, 1);
  CUgraphNodeParams cp = cond(CU_GRAPH_COND_TYPE_WHILE, 1);
  S(cuGraphAddNode(&n, g, 0, 0, 0, &cp));
  CUgraph b = cp.conditional.phGraph_out[0];
  CUgraphConditionalHandle outer = h;
  S(cuGraphConditionalHandleCreate(&inner, b, ctx, 1, 1));
  h = inner;
  cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  S(cuGraphAddNode(&n, b, 0, 0, 0, &cp));
  put(cp.conditional.phGraph_out[0], 5, 0);
  capture_set(b, outer, counter);
  clear();
  cu->cuMemsetD32(counter, 3, 1);
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
  num("inner", get(0));
  num("left", get(16));
}


static void moved_child(void) {
  CUgraph p;
  CUgraphNodeParams cp;
  with_handle(1, 1);
  cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  cu->cuGraphAddNode(&n, g, NULL, NULL, 0, &cp);
  cu->cuGraphCreate(&p, 0);
  memset(&cp, 0, sizeof cp);
  cp.type = CU_GRAPH_NODE_TYPE_GRAPH;
  cp.graph.graph = g;
  cp.graph.ownership = 7;
  S(cuGraphAddNode(&n, p, 0, 0, 0, &cp));
}


static void set_params(void) {
  CUgraphNodeParams cp;
  with_handle(1, 1);
  cp = cond(CU_GRAPH_COND_TYPE_IF, 1);
  cu->cuGraphAddNode(&n, g, NULL, NULL, 0, &cp);
  S(cuGraphNodeSetParams(n, &cp));
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuGraphNodeSetEnabled(e, n, 0));
}


static const question questions[] = {
    {"conditional: bad flags, sizes and types, a handle used twice", bad},
    {"conditional: a handle that is none, a handle of another graph",
     bad_handle},
    {"conditional: a handle that no node uses", unused_handle},
    {"conditional: event wait in a body, a body instantiated", bad_body},
    {"conditional: copy from pageable memory in a body", pageable_body},
    {"conditional: copy from pinned memory in a body", pinned_body},
    {"conditional: child graph with a host node in a body", child_body},
    {"conditional: node destroyed, handle used again", destroyed},
    {"conditional: empty body", empty_body},
    {"conditional: if, value 0, 1, 7", choose_if},
    {"conditional: if else, value 0, 1", choose_else},
    {"conditional: switch of 3, value 0, 2, 3, and of 1", choose_switch},
    {"conditional: while launched twice, default assigned", value_default},
    {"conditional: value set by a kernel before the node", value_before},
    {"conditional: if inside a while", nested},
    {"conditional: in a child graph of unknown ownership", moved_child},
    {"conditional: set params, enabled", set_params},
};


void ask_conditionals(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
