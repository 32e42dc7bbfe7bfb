/* Every act in each capture mode: a fresh non-blocking stream captures, one
   kernel is launched into it, then the act; then the capture's status, what
   its end answers, and the nodes of its graph. */
#include "driver/conformance/ask.h"

#include <stdlib.h>
#include <string.h>

typedef struct act {
  const char *name;
  void (*prepare)(void); /* before the capture begins; may be NULL */
  CUresult (*act)(void);
} act;

static const char *const mode_names[] = {"global", "thread_local", "relaxed"};

static int mode;
static const act *current;
static CUstream s, t;
static CUevent ev;
static CUdeviceptr v, va;
static CUgraph g2;
static CUgraphExec e2;
static CUmemGenericAllocationHandle mh;
static CUmemAllocationProp prop;
static char host[64];
static _Alignas(4096) char page[4096];


static void ask_act(void) {
  CUgraph g = NULL;
  s = NS();
  ev = EV();
  cu->cuMemAlloc(&v, 64);
  if (current->prepare != NULL)
    current->prepare();
  cu->cuStreamBeginCapture(s, mode);
  K(s);
  say("act", current->act());
  num("status", st(s));
  say("end", cu->cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
}


/* ---- what some acts need ---- */

static void other_stream(void) {
  t = NS();
}


static void reserved(void) {
  prop = device_prop();
  cu->cuMemCreate(&mh, 2 << 20, &prop, 0);
  cu->cuMemAddressReserve(&va, 8 << 20, 0, 0, 0);
}


static void mapped(void) {
  reserved();
  cu->cuMemMap(va, 2 << 20, 0, mh, 0);
}


static void uploaded(void) {
  t = NS();
  g2 = capn(2);
  cu->cuGraphInstantiate(&e2, g2, 0);
  cu->cuGraphUpload(e2, t);
  cu->cuStreamSynchronize(t);
}


/* ---- the acts ---- */

static CUresult mem_alloc(void) {
  CUdeviceptr q;
  return cu->cuMemAlloc(&q, 64);
}


static CUresult mem_free(void) {
  return cu->cuMemFree(v);
}


static CUresult mem_alloc_host(void) {
  void *p;
  return cu->cuMemAllocHost(&p, 64);
}


static CUresult mem_host_register(void) {
  return cu->cuMemHostRegister(page, sizeof page, 0);
}


static CUresult ctx_synchronize(void) {
  return cu->cuCtxSynchronize();
}


static CUresult memcpy_dtoh(void) {
  return cu->cuMemcpyDtoH(host, d, 64);
}


static CUresult memcpy_htod(void) {
  return cu->cuMemcpyHtoD(d, host, 64);
}


static CUresult synchronize_self(void) {
  return cu->cuStreamSynchronize(s);
}


static CUresult query_self(void) {
  return cu->cuStreamQuery(s);
}


static CUresult synchronize_other(void) {
  return cu->cuStreamSynchronize(t);
}


static CUresult query_other(void) {
  return cu->cuStreamQuery(t);
}


static CUresult event_query(void) {
  return cu->cuEventQuery(ev);
}


static CUresult event_create(void) {
  CUevent e;
  return cu->cuEventCreate(&e, 0);
}


static CUresult stream_create(void) {
  CUstream u;
  return cu->cuStreamCreate(&u, CU_STREAM_NON_BLOCKING);
}


static CUresult module_load(void) {
  CUmodule x;
  return cu->cuModuleLoadData(&x, img);
}


static CUresult module_unload(void) {
  CUmodule x;
  cu->cuModuleLoadData(&x, img);
  return cu->cuModuleUnload(x);
}


static CUresult mem_get_info(void) {
  size_t a, b;
  return cu->cuMemGetInfo(&a, &b);
}


static CUresult address_reserve(void) {
  CUdeviceptr x;
  return cu->cuMemAddressReserve(&x, 2 << 20, 0, 0, 0);
}


static CUresult mem_create(void) {
  CUmemGenericAllocationHandle x;
  return cu->cuMemCreate(&x, 2 << 20, &prop, 0);
}


static CUresult mem_map(void) {
  return cu->cuMemMap(va, 2 << 20, 0, mh, 0);
}


static CUresult set_access(void) {
  CUmemAccessDesc access = {prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  return cu->cuMemSetAccess(va, 2 << 20, &access, 1);
}


static CUresult mem_unmap(void) {
  return cu->cuMemUnmap(va, 2 << 20);
}


static CUresult mem_release(void) {
  return cu->cuMemRelease(mh);
}


static CUresult graph_instantiate(void) {
  CUgraphExec x;
  return cu->cuGraphInstantiate(&x, g2, 0);
}


static CUresult launch_into(void) {
  return cu->cuGraphLaunch(e2, s);
}


static CUresult launch_other(void) {
  return cu->cuGraphLaunch(e2, t);
}


static CUresult upload_other(void) {
  return cu->cuGraphUpload(e2, t);
}


static CUresult exec_update(void) {
  CUgraphExecUpdateResultInfo info;
  return cu->cuGraphExecUpdate(e2, g2, &info);
}


/* The first node of g2, a kernel, with parameters that it could have had. */
static CUgraphNode other_params(CUgraphNodeParams *params) {
  static float a = 2;
  static void *values[] = {&d, &a};
  CUgraphNode nodes[2];
  size_t count = 2;
  cu->cuGraphGetNodes(g2, nodes, &count);
  memset(params, 0, sizeof *params);
  params->type = CU_GRAPH_NODE_TYPE_KERNEL;
  cu->cuGraphKernelNodeGetParams(nodes[0], &params->kernel);
  params->kernel.kernelParams = values;
  return nodes[0];
}


static CUresult set_exec_params(void) {
  CUgraphNodeParams params;
  CUgraphNode node = other_params(&params);
  return cu->cuGraphExecKernelNodeSetParams(e2, node, &params.kernel);
}


static CUresult set_params(void) {
  CUgraphNodeParams params;
  CUgraphNode node = other_params(&params);
  return cu->cuGraphNodeSetParams(node, &params);
}


static CUresult set_enabled(void) {
  CUgraphNodeParams params;
  return cu->cuGraphNodeSetEnabled(e2, other_params(&params), 0);
}


static CUresult exec_destroy(void) {
  return cu->cuGraphExecDestroy(e2);
}


static CUresult graph_create(void) {
  CUgraph x;
  return cu->cuGraphCreate(&x, 0);
}


static CUresult graph_destroy(void) {
  return cu->cuGraphDestroy(g2);
}


static CUresult launch_host(void) {
  return cu->cuLaunchHostFunc(s, free, NULL);
}


static void callback(CUstream stream, CUresult status, void *user) {
  (void)stream;
  (void)status;
  (void)user;
}


static CUresult add_callback(void) {
  return cu->cuStreamAddCallback(s, callback, NULL, 0);
}


static CUresult alloc_async(void) {
  CUdeviceptr q;
  return cu->cuMemAllocAsync(&q, 64, s);
}


static CUresult alloc_free_async(void) {
  CUdeviceptr q;
  cu->cuMemAllocAsync(&q, 64, s);
  return cu->cuMemFreeAsync(q, s);
}


static CUresult free_outside(void) {
  return cu->cuMemFreeAsync(v, s);
}


static CUresult alloc_async_other(void) {
  CUdeviceptr q;
  return cu->cuMemAllocAsync(&q, 64, t);
}


static CUresult get_priority(void) {
  int p;
  return cu->cuStreamGetPriority(s, &p);
}


static CUresult set_attribute(void) {
  return cu->cuFuncSetAttribute(
      wide, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 1024);
}


static CUresult launch_shaped(unsigned grid, unsigned block) {
  float a = 1;
  void *p[] = {&d, &a};
  return cu->cuLaunchKernel(tick, grid, 1, 1, block, 1, 1, 0, s, p, NULL);
}


static CUresult bad_block(void) {
  return launch_shaped(1, 4096);
}


static CUresult zero_grid(void) {
  return launch_shaped(0, 32);
}


static const act acts[] = {
    {"cuMemAlloc", NULL, mem_alloc},
    {"cuMemFree", NULL, mem_free},
    {"cuMemAllocHost", NULL, mem_alloc_host},
    {"cuMemHostRegister", NULL, mem_host_register},
    {"cuCtxSynchronize", NULL, ctx_synchronize},
    {"cuMemcpyDtoH", NULL, memcpy_dtoh},
    {"cuMemcpyHtoD", NULL, memcpy_htod},
    {"cuStreamSynchronize self", NULL, synchronize_self},
    {"cuStreamQuery self", NULL, query_self},
    {"cuStreamSynchronize other", other_stream, synchronize_other},
    {"cuStreamQuery other", other_stream, query_other},
    {"cuEventQuery of idle event", NULL, event_query},
    {"cuEventCreate", NULL, event_create},
    {"cuStreamCreate", NULL, stream_create},
    {"cuModuleLoadData", NULL, module_load},
    {"cuModuleUnload", NULL, module_unload},
    {"cuMemGetInfo", NULL, mem_get_info},
    {"cuMemAddressReserve", NULL, address_reserve},
    {"cuMemCreate", reserved, mem_create},
    {"cuMemMap", reserved, mem_map},
    {"cuMemSetAccess", mapped, set_access},
    {"cuMemUnmap", mapped, mem_unmap},
    {"cuMemRelease", reserved, mem_release},
    {"cuGraphInstantiate", uploaded, graph_instantiate},
    {"cuGraphLaunch uploaded exec into the capture", uploaded, launch_into},
    {"cuGraphLaunch on another stream", uploaded, launch_other},
    {"cuGraphUpload on another stream", uploaded, upload_other},
    {"cuGraphExecUpdate", uploaded, exec_update},
    {"cuGraphExecDestroy", uploaded, exec_destroy},
    {"cuGraphExecKernelNodeSetParams", uploaded, set_exec_params},
    {"cuGraphNodeSetParams", uploaded, set_params},
    {"cuGraphNodeSetEnabled", uploaded, set_enabled},
    {"cuGraphCreate", NULL, graph_create},
    {"cuGraphDestroy other", uploaded, graph_destroy},
    {"cuLaunchHostFunc", NULL, launch_host},
    {"cuStreamAddCallback", NULL, add_callback},
    {"cuMemAllocAsync", NULL, alloc_async},
    {"cuMemAllocAsync then FreeAsync", NULL, alloc_free_async},
    {"cuMemFreeAsync of memory from outside", NULL, free_outside},
    {"cuMemAllocAsync on another stream", other_stream, alloc_async_other},
    {"cuStreamGetPriority self", NULL, get_priority},
    {"cuFuncSetAttribute", NULL, set_attribute},
    {"launch with a bad block", NULL, bad_block},
    {"launch with a zero grid", NULL, zero_grid},
};


void ask_modes(void) {
  for (mode = 0; mode < 3; mode++) {
    for (size_t i = 0; i < sizeof acts / sizeof *acts; i++) {
      current = &acts[i];
      row(ask_act, "%s, capture %s", current->name, mode_names[mode]);
    }
    ask_threads(mode, mode_names);
  }
}
