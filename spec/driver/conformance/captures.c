/* Forks, joins, events and streams around captures. */
#include "driver/conformance/ask.h"

static CUstream s, t;
static CUevent ev, ev2;
static CUgraph g;
static char host[64];


/* s captures after one tick, and t has been pulled in by an event. */
static void fork_off(void) {
  s = NS();
  t = NS();
  ev = EV();
  ev2 = EV();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  cu->cuEventRecord(ev, s);
  cu->cuStreamWaitEvent(t, ev, 0);
}


static void join_in(void) {
  cu->cuEventRecord(ev2, t);
  cu->cuStreamWaitEvent(s, ev2, 0);
}


static void after_invalidation(void) {
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  cu->cuStreamSynchronize(s);
  T(K(s));
  S(cuStreamEndCapture(s, &g));
  num("graph null", g == NULL);
  T(K(s));
  S(cuStreamSynchronize(s));
  S(cuStreamBeginCapture(s, TL));
  S(cuStreamEndCapture(s, &g));
}


static void invalidated(void) {
  s = NS();
  ev = EV();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuStreamSynchronize(s);
  S(cuEventRecord(ev, s));
  S(cuStreamWaitEvent(s, ev, 0));
  S(cuMemsetD8Async(d, 0, 8, s));
  S(cuStreamBeginCapture(s, TL));
  S(cuStreamEndCapture(s, &g));
}


static void empty(void) {
  CUgraphExec e;
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
}


static void end_without_begin(void) {
  s = NS();
  g = NULL;
  S(cuStreamEndCapture(s, &g));
}


static void end_on_fork(void) {
  fork_off();
  S(cuStreamEndCapture(t, &g));
  num("status s", st(s));
  num("status t", st(t));
  S(cuStreamEndCapture(s, &g));
}


static void fork_joined(void) {
  fork_off();
  K(t);
  K(s);
  join_in();
  K(s);
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
  num("edges", edg(g));
  num("status t after", st(t));
}


static void fork_idle_joined(void) {
  fork_off();
  join_in();
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
  num("edges", edg(g));
}


static void fork_idle_unjoined(void) {
  fork_off();
  num("status t", st(t));
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
  num("status t after", st(t));
}


static void wait_on_outside(void) {
  s = NS();
  t = NS();
  ev = EV();
  cu->cuEventRecord(ev, t);
  g = NULL;
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  S(cuStreamWaitEvent(s, ev, 0));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
}


static void captures_meet(void) {
  s = NS();
  t = NS();
  ev = EV();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuStreamBeginCapture(t, TL);
  K(s);
  K(t);
  cu->cuEventRecord(ev, s);
  S(cuStreamWaitEvent(t, ev, 0));
  num("status s", st(s));
  num("status t", st(t));
  S(cuStreamEndCapture(t, &g));
  S(cuStreamEndCapture(s, &g));
}


static void event_after_end(void) {
  s = NS();
  t = NS();
  ev = EV();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  cu->cuEventRecord(ev, s);
  cu->cuStreamEndCapture(s, &g);
  S(cuStreamWaitEvent(t, ev, 0));
  num("status t", st(t));
  S(cuEventQuery(ev));
  S(cuEventSynchronize(ev));
  T(K(t));
  S(cuEventRecord(ev, t));
  S(cuEventSynchronize(ev));
}


static void captured_elapsed(void) {
  float ms;
  s = NS();
  ev = EV();
  ev2 = EV();
  cu->cuEventRecord(ev2, NULL);
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  cu->cuEventRecord(ev, s);
  S(cuEventElapsedTime(&ms, ev2, ev));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
}


static void external_events(void) {
  CUgraphExec e;
  s = NS();
  ev = EV();
  cu->cuStreamBeginCapture(s, TL);
  S(cuEventRecordWithFlags(ev, s, CU_EVENT_RECORD_EXTERNAL));
  K(s);
  S(cuStreamWaitEvent(s, ev, CU_EVENT_WAIT_EXTERNAL));
  S(cuStreamEndCapture(s, &g));
  num("nodes", cnt(g));
  S(cuGraphInstantiate(&e, g, 0));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  S(cuEventQuery(ev));
}


/* A capture on t waits for the event by a node. */
static void wait_external(void) {
  t = NS();
  cu->cuStreamBeginCapture(t, CU_STREAM_CAPTURE_MODE_RELAXED);
  S(cuStreamWaitEvent(t, ev, CU_EVENT_WAIT_EXTERNAL));
  num("status", st(t));
  S(cuStreamEndCapture(t, &g));
}


/* Records the event in a capture on s, which is broken or not, and ends. */
static void record_in_capture(unsigned flags, bool broken) {
  s = NS();
  ev = EV();
  cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED);
  cu->cuEventRecordWithFlags(ev, s, flags);
  if (broken)
    cu->cuStreamSynchronize(s);
  cu->cuStreamEndCapture(s, &g);
}


static void wait_external_ended(void) {
  record_in_capture(0, false);
  wait_external();
  S(cuEventQuery(ev));
  S(cuEventRecord(ev, s));
  wait_external();
}


static void wait_external_broken(void) {
  record_in_capture(0, true);
  wait_external();
}


static void wait_external_overwritten(void) {
  s = NS();
  ev = EV();
  cu->cuEventRecord(ev, s);
  cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED);
  cu->cuEventRecord(ev, s);
  cu->cuStreamEndCapture(s, &g);
  wait_external();
}


static void wait_external_nodes(void) {
  record_in_capture(CU_EVENT_RECORD_EXTERNAL, false);
  wait_external();
  record_in_capture(CU_EVENT_RECORD_EXTERNAL, true);
  wait_external();
}


static void wait_external_underway(void) {
  s = NS();
  ev = EV();
  cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED);
  cu->cuEventRecord(ev, s);
  wait_external();
  S(cuStreamWaitEvent(s, ev, CU_EVENT_WAIT_EXTERNAL));
  S(cuStreamEndCapture(s, &g));
}


/* A node records the event when it is replayed, not before. */
static void wait_external_replayed(void) {
  CUgraphExec e;
  CUgraph nodes;
  float ms;
  ev2 = EV();
  record_in_capture(0, false);
  cu->cuEventRecord(ev2, s);
  cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_RELAXED);
  S(cuEventRecordWithFlags(ev, s, CU_EVENT_RECORD_EXTERNAL));
  S(cuStreamEndCapture(s, &nodes));
  S(cuEventQuery(ev));
  S(cuEventElapsedTime(&ms, ev2, ev));
  S(cuStreamWaitEvent(s, ev, 0));
  wait_external();
  cu->cuGraphInstantiate(&e, nodes, 0);
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  S(cuEventQuery(ev));
  S(cuEventElapsedTime(&ms, ev2, ev));
  S(cuStreamWaitEvent(s, ev, 0));
  wait_external();
}


static void external_outside(void) {
  s = NS();
  ev = EV();
  S(cuEventRecordWithFlags(ev, s, CU_EVENT_RECORD_EXTERNAL));
  S(cuStreamWaitEvent(s, ev, CU_EVENT_WAIT_EXTERNAL));
}


/* ---- blocking streams and the default streams ---- */

static void legacy_query(void) {
  s = BS();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  num("status legacy", st(CU_STREAM_LEGACY));
  S(cuStreamQuery(CU_STREAM_LEGACY));
  num("status", st(s));
  T(K(0));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
}


static void legacy_launch(void) {
  s = BS();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  T(K(0));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
  T(K(0));
}


static void legacy_launch_relaxed(void) {
  s = BS();
  cu->cuStreamBeginCapture(s, RX);
  K(s);
  T(K(0));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
}


static void legacy_copy(void) {
  s = BS();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  S(cuMemcpyDtoH(host, d, 64));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
}


static void blocking_neighbour(void) {
  s = BS();
  t = BS();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  T(K(t));
  S(cuStreamSynchronize(t));
  num("status", st(s));
  S(cuStreamEndCapture(s, &g));
}


static void per_thread(void) {
  S(cuStreamBeginCapture(CU_STREAM_PER_THREAD, TL));
  T(K(CU_STREAM_PER_THREAD));
  S(cuStreamEndCapture(CU_STREAM_PER_THREAD, &g));
  num("nodes", cnt(g));
}


/* ---- graphs and dependency sets of captures ---- */

static void to_graph(void) {
  CUgraph g2;
  cu->cuGraphCreate(&g, 0);
  s = NS();
  S(cuStreamBeginCaptureToGraph(s, g, 0, 0, 0, TL));
  K(s);
  K(s);
  S(cuStreamEndCapture(s, &g2));
  num("same graph", g == g2);
  num("nodes", cnt(g));
  S(cuStreamBeginCaptureToGraph(s, g, 0, 0, 0, TL));
  K(s);
  S(cuStreamEndCapture(s, &g2));
  num("nodes", cnt(g));
  num("edges", edg(g));
}


static void capture_info(void) {
  CUstreamCaptureStatus c;
  cuuint64_t id;
  CUgraph cg;
  const CUgraphNode *dp;
  const CUgraphEdgeData *ed;
  size_t n;
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  S(cuStreamGetCaptureInfo(s, &c, &id, &cg, &dp, &ed, &n));
  num("deps", (long)n);
  num("status", c);
  S(cuGraphDestroy(cg));
  num("status after destroy", st(s));
  S(cuStreamEndCapture(s, &g));
}


static void update_outside(void) {
  s = NS();
  S(cuStreamUpdateCaptureDependencies(s, 0, 0, 0,
                                      CU_STREAM_SET_CAPTURE_DEPENDENCIES));
}


static void destroy_capturing(void) {
  CUdeviceptr q;
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  S(cuStreamDestroy(s));
  t = NS();
  S(cuStreamBeginCapture(t, TL));
  S(cuMemAlloc(&q, 64));
  S(cuStreamEndCapture(t, &g));
  S(cuMemAlloc(&q, 64));
}


static void destroy_event(void) {
  s = NS();
  ev = EV();
  cu->cuStreamBeginCapture(s, TL);
  K(s);
  cu->cuEventRecord(ev, s);
  S(cuEventDestroy(ev));
  S(cuStreamEndCapture(s, &g));
}


static const question questions[] = {
    {"end after invalidation frees the stream: launch, sync, capture again",
     after_invalidation},
    {"operations on an invalidated capture before end", invalidated},
    {"empty capture", empty},
    {"end without begin", end_without_begin},
    {"end on a stream pulled in by a fork", end_on_fork},
    {"fork joined: nodes, edges", fork_joined},
    {"fork joined with no work on the branch", fork_idle_joined},
    {"fork with no work, not joined", fork_idle_unjoined},
    {"event recorded before the capture, waited on inside", wait_on_outside},
    {"two captures meet: wait on the other's event", captures_meet},
    {"captured event used after the end: wait from a free stream",
     event_after_end},
    {"captured event: elapsed time", captured_elapsed},
    {"external event record and wait nodes", external_events},
    {"external flags outside a capture", external_outside},
    {"external wait: the event was recorded in a capture that has ended",
     wait_external_ended},
    {"external wait: recorded in a capture that was broken and has ended",
     wait_external_broken},
    {"external wait: recorded outside, then in a capture that has ended",
     wait_external_overwritten},
    {"external wait: recorded by nodes of captures that have ended",
     wait_external_nodes},
    {"external wait: recorded in a capture that has ended, then by a node",
     wait_external_replayed},
    {"external wait: recorded in a capture underway, another's and its own",
     wait_external_underway},
    {"blocking stream captures: query of the legacy stream, launch on it",
     legacy_query},
    {"blocking stream captures: launch on the legacy stream only",
     legacy_launch},
    {"blocking stream captures, mode relaxed: launch on the legacy stream",
     legacy_launch_relaxed},
    {"blocking stream captures: cuMemcpyDtoH", legacy_copy},
    {"blocking stream captures: another blocking stream is created and used",
     blocking_neighbour},
    {"begin capture on the per-thread default stream", per_thread},
    {"capture to an existing graph", to_graph},
    {"capture info while capturing", capture_info},
    {"update capture dependencies outside a capture", update_outside},
    {"destroy a capturing stream, then begin anew", destroy_capturing},
    {"destroy a captured-into event while capturing", destroy_event},
};


void ask_captures(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
