/* What a broken capture answers, what breaks one beside the acts of modes.c,
   and what a refused call has done. */
#include "driver/conformance/ask.h"

#include <string.h>

static CUstream s, t;
static CUevent ev;
static CUgraph g;
static CUgraphExec e;
static char host[64];


static void begin(CUstreamCaptureMode mode) {
  s = NS();
  t = NS();
  ev = EV();
  g = NULL;
  cu->cuStreamBeginCapture(s, mode);
  K(s);
}


/* A capture that one refused call has broken. */
static void begin_broken(CUstreamCaptureMode mode) {
  begin(mode);
  cu->cuStreamSynchronize(s);
}


static void end(void) {
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
}


static void broken_unsafe(void) {
  CUdeviceptr q = 0;
  begin_broken(TL);
  S(cuMemAlloc(&q, 64));
  S(cuStreamSynchronize(s));
  S(cuStreamQuery(s));
  S(cuStreamSynchronize(t));
  S(cuCtxSynchronize());
  end();
}


static void broken_launch(void) {
  g = capn(1);
  CUgraph first = g;
  cu->cuGraphInstantiate(&e, first, 0);
  begin_broken(TL);
  S(cuGraphLaunch(e, s));
  S(cuGraphUpload(e, s));
  S(cuLaunchHostFunc(s, NULL, NULL));
  end();
}


static void broken_event(void) {
  begin(TL);
  cu->cuEventRecord(ev, s);
  cu->cuStreamSynchronize(s);
  S(cuEventQuery(ev));
  S(cuStreamWaitEvent(t, ev, 0));
  num("status t", st(t));
  end();
}


static void note_info(void) {
  CUstreamCaptureStatus c = 9;
  cuuint64_t id = 77;
  CUgraph cg = (CUgraph)&g;
  const CUgraphNode *dp = NULL;
  const CUgraphEdgeData *ed = NULL;
  size_t n = 77;
  S(cuStreamGetCaptureInfo(s, &c, &id, &cg, &dp, &ed, &n));
  num("status", c);
  num("id kept", id == 77);
  num("graph kept", cg == (CUgraph)&g);
  num("n", (long)n);
}


static void broken_info(void) {
  begin_broken(TL);
  note_info();
  S(cuStreamUpdateCaptureDependencies(s, 0, 0, 0,
                                      CU_STREAM_SET_CAPTURE_DEPENDENCIES));
  end();
}


static void info_free(void) {
  s = NS();
  note_info();
}


static void info_part(void) {
  CUstreamCaptureStatus c = 9;
  begin(TL);
  S(cuStreamGetCaptureInfo(s, &c, 0, 0, 0, 0, 0));
  num("status", c);
  S(cuStreamGetCaptureInfo(s, 0, 0, 0, 0, 0, 0));
  S(cuStreamIsCapturing(s, 0));
  end();
}


static void event_relaxed(void) {
  begin(RX);
  cu->cuEventRecord(ev, s);
  S(cuEventQuery(ev));
  end();
}


static void wait_unrecorded(void) {
  begin(TL);
  S(cuStreamWaitEvent(s, ev, 0));
  end();
}


static void wait_ended(void) {
  CUgraph first;
  begin(TL);
  cu->cuEventRecord(ev, s);
  cu->cuStreamEndCapture(s, &first);
  cu->cuStreamBeginCapture(s, TL);
  S(cuStreamWaitEvent(s, ev, 0));
  end();
}


static void wait_by_legacy(void) {
  begin(TL);
  cu->cuEventRecord(ev, s);
  S(cuStreamWaitEvent(CU_STREAM_LEGACY, ev, 0));
  end();
}


static void wait_own(void) {
  begin(TL);
  cu->cuEventRecord(ev, s);
  K(s);
  S(cuStreamWaitEvent(s, ev, 0));
  K(s);
  end();
  num("edges", edg(g));
}


static void bad_flags(void) {
  begin(TL);
  S(cuStreamWaitEvent(s, ev, 4));
  S(cuEventRecordWithFlags(ev, s, 8));
  end();
}


static void bad_arguments(void) {
  CUstreamCaptureMode m = 9;
  s = NS();
  S(cuThreadExchangeStreamCaptureMode(&m));
  cu->cuThreadExchangeStreamCaptureMode(&m);
  S(cuStreamBeginCapture(s, 7));
  S(cuStreamBeginCaptureToGraph(s, 0, 0, 0, 0, TL));
  S(cuStreamBeginCapture(s, TL));
  S(cuStreamEndCapture(s, 0));
  num("status", st(s));
  S(cuMemAlloc(0, 64));
  num("status", st(s));
}


static void upload_into(void) {
  CUgraph first = capn(1);
  cu->cuGraphInstantiate(&e, first, 0);
  begin(TL);
  S(cuGraphUpload(e, s));
  end();
}


/* ---- streams that come and go ---- */

static void fork_destroyed(void) {
  begin(TL);
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
  K(t);
  S(cuStreamDestroy(t));
  end();
}


static void fork_destroyed_joined(void) {
  begin(TL);
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
  K(t);
  cu->cuEventRecord(ev, t);
  cu->cuStreamWaitEvent(s, ev, 0);
  S(cuStreamDestroy(t));
  end();
}


static void fork_begins(void) {
  begin(TL);
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
  S(cuStreamBeginCapture(t, TL));
  end();
}


static void fork_more_work(void) {
  begin(TL);
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
  K(t);
  cu->cuEventRecord(ev, t);
  cu->cuStreamWaitEvent(s, ev, 0);
  K(t);
  end();
}


/* ---- the legacy stream ---- */

static void legacy_record(void) {
  s = BS();
  ev = EV();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  S(cuEventRecord(ev, CU_STREAM_LEGACY));
  end();
}


static void legacy_wait(void) {
  s = BS();
  ev = EV();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  S(cuStreamWaitEvent(CU_STREAM_LEGACY, ev, 0));
  end();
}


static void legacy_alloc(void) {
  CUdeviceptr q = 0;
  s = BS();
  cu->cuStreamBeginCapture(s, RX);
  K(s);
  S(cuMemAllocAsync(&q, 64, CU_STREAM_LEGACY));
  end();
}


static void legacy_fork(void) {
  begin(TL);
  t = BS();
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
  num("status legacy", st(CU_STREAM_LEGACY));
  T(K(0));
  end();
}


static void legacy_per_thread(void) {
  cu->cuStreamBeginCapture(CU_STREAM_PER_THREAD, TL);
  K(CU_STREAM_PER_THREAD);
  num("status legacy", st(CU_STREAM_LEGACY));
  T(K(0));
  num("status", st(CU_STREAM_PER_THREAD));
  S(cuStreamEndCapture(CU_STREAM_PER_THREAD, &g));
}


static void legacy_exec(void) {
  CUgraph first = capn(1);
  cu->cuGraphInstantiate(&e, first, 0);
  s = BS();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  S(cuGraphLaunch(e, CU_STREAM_LEGACY));
  end();
}


/* ---- was a refused call done? ---- */

static void refused_free(void) {
  CUdeviceptr v = 0;
  cu->cuMemAlloc(&v, 64);
  begin(TL);
  S(cuMemFree(v));
  end();
  S(cuMemcpyDtoH(host, v, 64));
  S(cuMemFree(v));
}


static void refused_unload(void) {
  CUmodule m;
  CUfunction f;
  cu->cuModuleLoadData(&m, img);
  begin(TL);
  S(cuModuleUnload(m));
  end();
  S(cuModuleGetFunction(&f, m, "tick"));
}


static void refused_destroy(void) {
  CUgraph first = capn(1);
  cu->cuGraphInstantiate(&e, first, 0);
  begin(TL);
  S(cuGraphExecDestroy(e));
  end();
  S(cuGraphLaunch(e, 0));
  S(cuCtxSynchronize());
}


static const question questions[] = {
    {"broken capture: unsafe calls, synchronize, query", broken_unsafe},
    {"broken capture: cuGraphLaunch, upload, host function of null",
     broken_launch},
    {"broken capture: query of its event, wait by another stream",
     broken_event},
    {"broken capture: capture info, set of dependencies", broken_info},
    {"capture info of a stream that does not capture", info_free},
    {"capture info without places for the answers", info_part},
    {"captured event: query, capture relaxed", event_relaxed},
    {"wait in a capture on an event never recorded", wait_unrecorded},
    {"wait in a capture on an event of an ended capture", wait_ended},
    {"wait by the legacy stream on a captured event", wait_by_legacy},
    {"wait on an event of the same stream, one kernel later", wait_own},
    {"wait and record in a capture with unknown flags", bad_flags},
    {"capture calls with bad arguments", bad_arguments},
    {"cuGraphUpload into the capture", upload_into},
    {"forked stream destroyed with unjoined work", fork_destroyed},
    {"forked stream destroyed after its join", fork_destroyed_joined},
    {"begin capture on a forked stream", fork_begins},
    {"fork joined, then more work on the branch", fork_more_work},
    {"blocking stream captures: event record on the legacy stream",
     legacy_record},
    {"blocking stream captures: wait on the legacy stream, event never "
     "recorded",
     legacy_wait},
    {"blocking stream captures, mode relaxed: cuMemAllocAsync on the legacy "
     "stream",
     legacy_alloc},
    {"blocking stream pulled in by a fork: launch on the legacy stream",
     legacy_fork},
    {"per-thread stream captures: launch on the legacy stream",
     legacy_per_thread},
    {"blocking stream captures: cuGraphLaunch on the legacy stream",
     legacy_exec},
    {"refused cuMemFree: the memory afterwards", refused_free},
    {"refused cuModuleUnload: the module afterwards", refused_unload},
    {"refused cuGraphExecDestroy: the executable afterwards", refused_destroy},
};


void ask_breaks(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
