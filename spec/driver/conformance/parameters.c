/* What nodes hold: getters, setters, bad parameters, attributes. */
#include "driver/conformance/ask.h"

#include <stdlib.h>
#include <string.h>

static CUstream s;
static CUgraph g, g2;
static CUgraphExec e;
static CUgraphNode n;
static char host[4096];


static CUgraphNode only_node(CUgraph graph) {
  CUgraphNode node = NULL;
  size_t one = 1;
  cu->cuGraphGetNodes(graph, &node, &one);
  return node;
}


static void begin(void) {
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
}


static void end(void) {
  cu->cuStreamEndCapture(s, &g);
  n = only_node(g);
}


static CUDA_MEMSET_NODE_PARAMS memset_params(unsigned element, size_t width,
                                             size_t height, size_t pitch) {
  CUDA_MEMSET_NODE_PARAMS mp;
  memset(&mp, 0, sizeof mp);
  mp.dst = d;
  mp.elementSize = element;
  mp.width = width;
  mp.height = height;
  mp.pitch = pitch;
  return mp;
}


static CUDA_MEMCPY3D copy_params(size_t bytes) {
  CUDA_MEMCPY3D cp;
  memset(&cp, 0, sizeof cp);
  cp.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  cp.srcDevice = d;
  cp.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  cp.dstDevice = d + 4096;
  cp.WidthInBytes = bytes;
  cp.Height = cp.Depth = 1;
  return cp;
}


/* ---- getters ---- */

static void get_kernel(void) {
  CUDA_KERNEL_NODE_PARAMS kp;
  CUgraphNodeType type = 99;
  memset(&kp, 0xff, sizeof kp);
  g = capn(1);
  n = only_node(g);
  S(cuGraphKernelNodeGetParams(n, &kp));
  num("func", kp.func == tick);
  num("grid", kp.gridDimX);
  num("block", kp.blockDimX);
  num("extra null", kp.extra == NULL);
  num("kern null", kp.kern == NULL);
  num("value",
      kp.kernelParams != NULL && *(CUdeviceptr *)kp.kernelParams[0] == d);
  S(cuGraphNodeGetType(n, &type));
  num("type", type);
}


static void get_memset(void) {
  CUDA_MEMSET_NODE_PARAMS mp;
  memset(&mp, 0xff, sizeof mp);
  begin();
  cu->cuMemsetD32Async(d, 7, 8, s);
  end();
  S(cuGraphMemsetNodeGetParams(n, &mp));
  num("elementSize", mp.elementSize);
  num("width", (long)mp.width);
  num("height", (long)mp.height);
  num("pitch", (long)mp.pitch);
  num("value", mp.value);
  begin();
  cu->cuMemsetD2D32Async(d, 64, 7, 8, 3, s);
  end();
  S(cuGraphMemsetNodeGetParams(n, &mp));
  num("width", (long)mp.width);
  num("height", (long)mp.height);
  num("pitch", (long)mp.pitch);
}


static void get_memcpy(void) {
  CUDA_MEMCPY3D cp;
  memset(&cp, 0xff, sizeof cp);
  begin();
  cu->cuMemcpyDtoDAsync(d + 4096, d, 100, s);
  end();
  S(cuGraphMemcpyNodeGetParams(n, &cp));
  num("types", cp.srcMemoryType * 10 + cp.dstMemoryType);
  num("width", (long)cp.WidthInBytes);
  num("height", (long)cp.Height);
  num("depth", (long)cp.Depth);
  num("src", cp.srcDevice == d);
  begin();
  cu->cuMemcpyHtoDAsync(d, host, 100, s);
  end();
  S(cuGraphMemcpyNodeGetParams(n, &cp));
  num("types", cp.srcMemoryType * 10 + cp.dstMemoryType);
  num("src", cp.srcHost == host);
}


static void get_host(void) {
  CUDA_HOST_NODE_PARAMS hp = {NULL, NULL};
  begin();
  cu->cuLaunchHostFunc(s, free, NULL);
  end();
  S(cuGraphHostNodeGetParams(n, &hp));
  num("fn", hp.fn == free);
  S(cuGraphMemsetNodeGetParams(n, (CUDA_MEMSET_NODE_PARAMS *)host));
}


static void get_alloc(void) {
  CUDA_MEM_ALLOC_NODE_PARAMS ap;
  CUdeviceptr q = 0, f = 0;
  CUgraphNode list[2] = {NULL, NULL};
  size_t two = 2;
  memset(&ap, 0, sizeof ap);
  begin();
  cu->cuMemAllocAsync(&q, 100, s);
  cu->cuMemFreeAsync(q, s);
  end();
  cu->cuGraphGetNodes(g, list, &two);
  S(cuGraphMemAllocNodeGetParams(list[0], &ap));
  num("bytes", (long)ap.bytesize);
  num("address", ap.dptr == q);
  num("alloc type", ap.poolProps.allocType);
  num("location", ap.poolProps.location.type * 10 + ap.poolProps.location.id);
  num("access", (long)ap.accessDescCount);
  S(cuGraphMemFreeNodeGetParams(list[1], &f));
  num("address", f == q);
}


/* ---- bad parameters ---- */

static void memset_bad(void) {
  CUDA_MEMSET_NODE_PARAMS mp;
  cu->cuGraphCreate(&g, 0);
  mp = memset_params(3, 8, 1, 0);
  S(cuGraphAddMemsetNode(&n, g, 0, 0, &mp, ctx));
  mp = memset_params(4, 0, 1, 0);
  S(cuGraphAddMemsetNode(&n, g, 0, 0, &mp, ctx));
  mp = memset_params(4, 8, 0, 0);
  S(cuGraphAddMemsetNode(&n, g, 0, 0, &mp, ctx));
  mp = memset_params(4, 8, 2, 16);
  S(cuGraphAddMemsetNode(&n, g, 0, 0, &mp, ctx));
  mp = memset_params(4, 8, 2, 64);
  S(cuGraphAddMemsetNode(&n, g, 0, 0, &mp, ctx));
  mp = memset_params(4, 8, 1, 0);
  mp.dst += 2;
  S(cuGraphAddMemsetNode(&n, g, 0, 0, &mp, ctx));
  mp = memset_params(1, 8 << 20, 1, 0);
  S(cuGraphAddMemsetNode(&n, g, 0, 0, &mp, ctx));
  mp = memset_params(4, 8, 1, 0);
  mp.dst = 0;
  S(cuGraphAddMemsetNode(&n, g, 0, 0, &mp, ctx));
}


static void memcpy_bad(void) {
  CUDA_MEMCPY3D cp;
  cu->cuGraphCreate(&g, 0);
  cp = copy_params(0);
  S(cuGraphAddMemcpyNode(&n, g, 0, 0, &cp, ctx));
  cp = copy_params(64);
  cp.Height = 0;
  S(cuGraphAddMemcpyNode(&n, g, 0, 0, &cp, ctx));
  cp = copy_params(64);
  cp.srcMemoryType = 9;
  S(cuGraphAddMemcpyNode(&n, g, 0, 0, &cp, ctx));
  cp = copy_params(64);
  cp.Height = 2;
  cp.srcPitch = 32;
  cp.dstPitch = 64;
  S(cuGraphAddMemcpyNode(&n, g, 0, 0, &cp, ctx));
  cp = copy_params(8 << 20);
  S(cuGraphAddMemcpyNode(&n, g, 0, 0, &cp, ctx));
  cp = copy_params(64);
  cp.srcMemoryType = CU_MEMORYTYPE_HOST;
  cp.srcHost = host;
  S(cuGraphAddMemcpyNode(&n, g, 0, 0, &cp, ctx));
  num("nodes", cnt(g));
}


static void kernel_bad(void) {
  float a = 1;
  void *p[2];
  CUDA_KERNEL_NODE_PARAMS kp = adding(&a, p);
  cu->cuGraphCreate(&g, 0);
  S(cuGraphAddKernelNode(&n, g, 0, 0, &kp));
  kp.blockDimX = 4096;
  S(cuGraphAddKernelNode(&n, g, 0, 0, &kp));
  kp.blockDimX = 32;
  kp.gridDimX = 0;
  S(cuGraphAddKernelNode(&n, g, 0, 0, &kp));
  kp.gridDimX = 1;
  kp.sharedMemBytes = 1 << 20;
  S(cuGraphAddKernelNode(&n, g, 0, 0, &kp));
  kp.sharedMemBytes = 0;
  kp.kernelParams = NULL;
  S(cuGraphAddKernelNode(&n, g, 0, 0, &kp));
  kp.kernelParams = p;
  kp.func = NULL;
  S(cuGraphAddKernelNode(&n, g, 0, 0, &kp));
  num("nodes", cnt(g));
}


static void others_bad(void) {
  CUDA_HOST_NODE_PARAMS hp = {NULL, NULL};
  CUgraphNodeParams params;
  cu->cuGraphCreate(&g, 0);
  S(cuGraphAddHostNode(&n, g, 0, 0, &hp));
  S(cuGraphAddEventRecordNode(&n, g, 0, 0, 0));
  S(cuGraphAddEventWaitNode(&n, g, 0, 0, 0));
  S(cuGraphAddChildGraphNode(&n, g, 0, 0, 0));
  memset(&params, 0, sizeof params);
  params.type = 77;
  S(cuGraphAddNode(&n, g, 0, 0, 0, &params));
  S(cuGraphAddNode(&n, g, 0, 0, 0, 0));
  num("nodes", cnt(g));
}


/* ---- setters ---- */

static void set_node(void) {
  CUgraphNodeParams params;
  g = capn(1);
  n = only_node(g);
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_HOST;
  params.host.fn = free;
  S(cuGraphNodeSetParams(n, &params));
  begin();
  CUdeviceptr q = 0;
  cu->cuMemAllocAsync(&q, 64, s);
  end();
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC;
  S(cuGraphNodeSetParams(n, &params));
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddEmptyNode(&n, g, NULL, 0);
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  S(cuGraphNodeSetParams(n, &params));
}


/* A child of two nodes is to be one of `nodes`. */
static void exchange_child(int nodes) {
  CUgraphNodeParams params;
  CUgraph in = NULL;
  g2 = capn(2);
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddChildGraphNode(&n, g, NULL, 0, g2);
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = capn(nodes);
  S(cuGraphNodeSetParams(n, &params));
  S(cuGraphChildGraphNodeGetGraph(n, &in));
  num("nodes", cnt(in));
}


static void set_child(void) {
  exchange_child(2);
}


static void set_child_shape(void) {
  exchange_child(3);
}


static void attributes(void) {
  CUkernelNodeAttrValue v;
  g = capn(1);
  n = only_node(g);
  memset(&v, 0, sizeof v);
  S(cuGraphKernelNodeGetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  num("priority", v.priority);
  v.priority = -3;
  S(cuGraphKernelNodeSetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  v.priority = 99;
  S(cuGraphKernelNodeGetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  num("priority", v.priority);
  v.priority = -77;
  S(cuGraphKernelNodeSetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  S(cuGraphKernelNodeGetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
  num("priority", v.priority);
  v.cooperative = 1;
  S(cuGraphKernelNodeSetAttribute(n, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
  v.cooperative = 0;
  S(cuGraphKernelNodeGetAttribute(n, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &v));
  num("cooperative", v.cooperative);
  S(cuGraphKernelNodeSetAttribute(n, 6, &v));
  S(cuGraphKernelNodeSetAttribute(n, 77, &v));
  begin();
  cu->cuMemsetD8Async(d, 0, 8, s);
  end();
  S(cuGraphKernelNodeGetAttribute(n, CU_LAUNCH_ATTRIBUTE_PRIORITY, &v));
}


/* ---- nodes of an executable ---- */

static void exec_memset(void) {
  CUDA_MEMSET_NODE_PARAMS mp = memset_params(4, 8, 2, 64);
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddMemsetNode(&n, g, NULL, 0, &mp, ctx);
  cu->cuGraphInstantiate(&e, g, 0);
  mp.value = 3;
  S(cuGraphExecMemsetNodeSetParams(e, n, &mp, ctx));
  mp.width = 4;
  S(cuGraphExecMemsetNodeSetParams(e, n, &mp, ctx));
  mp = memset_params(4, 8, 1, 0);
  S(cuGraphExecMemsetNodeSetParams(e, n, &mp, ctx));
  mp = memset_params(4, 8, 1, 0);
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddMemsetNode(&n, g, NULL, 0, &mp, ctx);
  cu->cuGraphInstantiate(&e, g, 0);
  mp = memset_params(4, 8, 2, 64);
  S(cuGraphExecMemsetNodeSetParams(e, n, &mp, ctx));
  mp = memset_params(1, 8, 1, 0);
  S(cuGraphExecMemsetNodeSetParams(e, n, &mp, ctx));
  mp = memset_params(4, 0, 1, 0);
  S(cuGraphExecMemsetNodeSetParams(e, n, &mp, ctx));
}


static void exec_memcpy(void) {
  CUgraphNodeParams params;
  CUDA_MEMCPY3D cp = copy_params(64);
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddMemcpyNode(&n, g, NULL, 0, &cp, ctx);
  cu->cuGraphInstantiate(&e, g, 0);
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_MEMCPY;
  params.memcpy.copyCtx = ctx;
  params.memcpy.copyParams = copy_params(128);
  S(cuGraphExecNodeSetParams(e, n, &params));
  params.memcpy.copyParams.Height = 2;
  params.memcpy.copyParams.srcPitch = 128;
  params.memcpy.copyParams.dstPitch = 128;
  S(cuGraphExecNodeSetParams(e, n, &params));
  params.memcpy.copyParams = copy_params(64);
  params.memcpy.copyParams.srcMemoryType = CU_MEMORYTYPE_HOST;
  params.memcpy.copyParams.srcHost = host;
  S(cuGraphExecNodeSetParams(e, n, &params));
  params.memcpy.copyParams = copy_params(0);
  S(cuGraphExecNodeSetParams(e, n, &params));
}


static void exec_others(void) {
  CUgraphNodeParams params;
  unsigned enabled = 9;
  CUgraphNode h, x, r;
  CUDA_HOST_NODE_PARAMS hp = {free, NULL};
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddHostNode(&h, g, NULL, 0, &hp);
  cu->cuGraphAddEmptyNode(&x, g, NULL, 0);
  cu->cuGraphAddEventRecordNode(&r, g, NULL, 0, EV());
  cu->cuGraphInstantiate(&e, g, 0);
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_HOST;
  params.host.fn = free;
  S(cuGraphExecNodeSetParams(e, h, &params));
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
  params.eventRecord.event = EV();
  S(cuGraphExecNodeSetParams(e, r, &params));
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  S(cuGraphExecNodeSetParams(e, r, &params));
  S(cuGraphNodeSetEnabled(e, h, 0));
  S(cuGraphNodeSetEnabled(e, x, 0));
  S(cuGraphNodeGetEnabled(e, h, &enabled));
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
}


static void exec_enabled(void) {
  unsigned enabled = 9;
  g = capn(1);
  n = only_node(g);
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuGraphNodeGetEnabled(e, n, &enabled));
  num("enabled", enabled);
  S(cuGraphNodeSetEnabled(e, n, 0));
  S(cuGraphNodeGetEnabled(e, n, &enabled));
  num("enabled", enabled);
  S(cuGraphNodeSetEnabled(e, n, 7));
  S(cuGraphNodeGetEnabled(e, n, &enabled));
  num("enabled", enabled);
}


static void exec_child(void) {
  CUgraph in = NULL;
  CUgraphNode inner;
  CUgraphNodeParams params;
  unsigned enabled = 9;
  g2 = capn(1);
  cu->cuGraphCreate(&g, 0);
  cu->cuGraphAddChildGraphNode(&n, g, NULL, 0, g2);
  cu->cuGraphChildGraphNodeGetGraph(n, &in);
  inner = only_node(in);
  cu->cuGraphInstantiate(&e, g, 0);
  float a = 1;
  void *p[] = {&d, &a};
  CUDA_KERNEL_NODE_PARAMS kp;
  cu->cuGraphKernelNodeGetParams(inner, &kp);
  kp.kernelParams = p;
  S(cuGraphExecKernelNodeSetParams(e, inner, &kp));
  S(cuGraphNodeSetEnabled(e, inner, 0));
  S(cuGraphNodeGetEnabled(e, inner, &enabled));
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = capn(1);
  S(cuGraphExecNodeSetParams(e, n, &params));
  params.graph.graph = capn(2);
  S(cuGraphExecNodeSetParams(e, n, &params));
}


static const question questions[] = {
    {"params: of a captured kernel", get_kernel},
    {"params: of captured memsets of one and two dimensions", get_memset},
    {"params: of captured copies", get_memcpy},
    {"params: of a host node, and as another type", get_host},
    {"params: of captured alloc and free nodes", get_alloc},
    {"bad params: memset: element, width, height, pitch, a good one, "
     "alignment, range, null",
     memset_bad},
    {"bad params: memcpy: width, height, type, pitch, range, a good one",
     memcpy_bad},
    {"bad params: kernel: a good one, block, grid, shared, parameters, null",
     kernel_bad},
    {"bad params: host, events, child, types", others_bad},
    {"set params: another type, alloc, empty", set_node},
    {"set params: child graph", set_child},
    {"set params: child graph of another shape", set_child_shape},
    {"kernel node attributes", attributes},
    {"executable memset node: two dimensions, element size", exec_memset},
    {"executable memcpy node: size, height, type, nothing", exec_memcpy},
    {"executable host, event and empty nodes", exec_others},
    {"executable node: enabled", exec_enabled},
    {"executable child graph node, and nodes within", exec_child},
};


void ask_parameters(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
