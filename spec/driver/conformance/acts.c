/* The acts of the first table: a fresh non-blocking stream captures (mode
   thread_local unless the row says otherwise), one kernel is launched into
   it, then the act; then the status, the end and the nodes. */
#include "driver/conformance/ask.h"

static CUstream s, t;
static CUevent ev;
static CUgraph small;
static CUgraphExec small_exec;
static char host[64];


/* Begins the capture, with what the acts may want beside it. */
static void begin(CUstreamCaptureMode mode) {
  small = capn(1);
  cu->cuGraphInstantiate(&small_exec, small, 0);
  t = NS();
  s = NS();
  cu->cuEventCreate(&ev, CU_EVENT_DISABLE_TIMING);
  cu->cuStreamBeginCapture(s, mode);
  K(s);
}


static void end(CUresult act) {
  CUgraph g = NULL;
  say("act", act);
  num("status", st(s));
  say("end", cu->cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
}


static void mem_alloc(CUstreamCaptureMode mode) {
  CUdeviceptr q;
  begin(mode);
  end(cu->cuMemAlloc(&q, 64));
}


static void mem_alloc_global(void) {
  mem_alloc(GL);
}


static void mem_alloc_local(void) {
  mem_alloc(TL);
}


static void mem_alloc_relaxed(void) {
  mem_alloc(RX);
}


static void mem_free(void) {
  CUdeviceptr v;
  cu->cuMemAlloc(&v, 64);
  begin(TL);
  end(cu->cuMemFree(v));
}


static void mem_alloc_host(void) {
  void *p;
  begin(TL);
  end(cu->cuMemAllocHost(&p, 64));
}


static void mem_get_info(void) {
  size_t free, total;
  begin(TL);
  end(cu->cuMemGetInfo(&free, &total));
}


static void stream_synchronize(void) {
  begin(TL);
  end(cu->cuStreamSynchronize(s));
}


static void stream_query(void) {
  begin(TL);
  end(cu->cuStreamQuery(s));
}


static void ctx_synchronize(void) {
  begin(TL);
  end(cu->cuCtxSynchronize());
}


static void captured_event(void) {
  begin(TL);
  cu->cuEventRecord(ev, s);
  end(cu->cuEventQuery(ev));
  begin(TL);
  cu->cuEventRecord(ev, s);
  end(cu->cuEventSynchronize(ev));
}


static void memcpy_dtoh(void) {
  begin(TL);
  end(cu->cuMemcpyDtoH(host, d, 64));
}


static void memset_d8(void) {
  begin(TL);
  end(cu->cuMemsetD8(d, 0, 64));
}


static void legacy_launch(void) {
  begin(TL);
  end(K(NULL));
}


static void pageable_copy(void) {
  begin(TL);
  end(cu->cuMemcpyHtoDAsync(d, host, 64, s));
  begin(TL);
  end(cu->cuMemcpyDtoHAsync(host, d, 64, s));
}


static void module_load(void) {
  CUmodule m;
  begin(TL);
  end(cu->cuModuleLoadData(&m, img));
}


static void stream_create(void) {
  CUstream u;
  begin(TL);
  end(cu->cuStreamCreate(&u, CU_STREAM_NON_BLOCKING));
}


static void graph_instantiate(void) {
  CUgraphExec e;
  begin(TL);
  end(cu->cuGraphInstantiate(&e, small, 0));
}


static void graph_launch(void) {
  begin(TL);
  end(cu->cuGraphLaunch(small_exec, s));
}


static void end_other(void) {
  CUgraph g;
  begin(TL);
  end(cu->cuStreamEndCapture(t, &g));
}


static void begin_again(void) {
  begin(TL);
  end(cu->cuStreamBeginCapture(s, TL));
}


static void begin_legacy(void) {
  begin(TL);
  end(cu->cuStreamBeginCapture(NULL, TL));
}


static CUresult fork_off(void) {
  cu->cuEventRecord(ev, s);
  CUresult result = cu->cuStreamWaitEvent(t, ev, 0);
  K(t);
  return result;
}


static void unjoined(void) {
  begin(TL);
  end(fork_off());
}


static void joined(void) {
  begin(TL);
  CUresult result = fork_off();
  cu->cuEventRecord(ev, t);
  cu->cuStreamWaitEvent(s, ev, 0);
  end(result);
}


static void destroy_capturing(void) {
  begin(TL);
  say("act", cu->cuStreamDestroy(s));
}


static void empty_set(void) {
  begin(TL);
  end(cu->cuStreamUpdateCaptureDependencies(
      s, NULL, NULL, 0, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}


/* 32 kernels from one stream, none after another, and one after them all. */
static void leaves(void) {
  CUgraph g = NULL;
  CUgraphNode leaf[32];
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  for (int i = 0; i < 32; i++) {
    CUstreamCaptureStatus status;
    cuuint64_t id;
    CUgraph graph;
    const CUgraphNode *deps;
    const CUgraphEdgeData *edges;
    size_t n;
    cu->cuStreamUpdateCaptureDependencies(s, NULL, NULL, 0,
                                          CU_STREAM_SET_CAPTURE_DEPENDENCIES);
    K(s);
    cu->cuStreamGetCaptureInfo(s, &status, &id, &graph, &deps, &edges, &n);
    leaf[i] = deps[0];
  }
  say("act", cu->cuStreamUpdateCaptureDependencies(
                 s, leaf, NULL, 32, CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  K(s);
  num("status", st(s));
  say("end", cu->cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
  num("edges", edg(g));
}


static const question questions[] = {
    {"act: cuMemAlloc, mode GLOBAL", mem_alloc_global},
    {"act: cuMemAlloc, mode THREAD_LOCAL", mem_alloc_local},
    {"act: cuMemAlloc, mode RELAXED", mem_alloc_relaxed},
    {"act: cuMemFree", mem_free},
    {"act: cuMemAllocHost", mem_alloc_host},
    {"act: cuMemGetInfo", mem_get_info},
    {"act: cuStreamSynchronize on the capturing stream", stream_synchronize},
    {"act: cuStreamQuery on the capturing stream", stream_query},
    {"act: cuCtxSynchronize", ctx_synchronize},
    {"act: cuEventQuery, then cuEventSynchronize, of an event recorded in the "
     "capture",
     captured_event},
    {"act: cuMemcpyDtoH (synchronous, default stream)", memcpy_dtoh},
    {"act: cuMemsetD8 (synchronous, default stream)", memset_d8},
    {"act: launch on the legacy default stream", legacy_launch},
    {"act: cuMemcpyHtoDAsync, then cuMemcpyDtoHAsync, with pageable memory",
     pageable_copy},
    {"act: cuModuleLoadData", module_load},
    {"act: cuStreamCreate", stream_create},
    {"act: cuGraphInstantiate of another graph", graph_instantiate},
    {"act: cuGraphLaunch of another executable, never launched before, into "
     "the capturing stream",
     graph_launch},
    {"act: cuStreamEndCapture on another stream", end_other},
    {"act: cuStreamBeginCapture again on the same stream", begin_again},
    {"act: cuStreamBeginCapture on the legacy default stream", begin_legacy},
    {"act: event recorded, another stream waits and launches, never joined",
     unjoined},
    {"act: the same, joined back", joined},
    {"act: cuStreamDestroy of the capturing stream", destroy_capturing},
    {"act: dependency set replaced by the empty set, then end", empty_set},
    {"act: dependency set replaced by 32 earlier leaves", leaves},
};


void ask_table(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
