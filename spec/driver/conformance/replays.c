/* Executables in use: uploads, nodes switched off, changes while they run. */
#include "driver/conformance/ask.h"

#include <string.h>

static CUstream s, t;
static CUgraph g, g2;
static CUgraphExec e;
static CUgraphNode nd[4];
static CUgraphExecUpdateResultInfo ui;


/* One tick, or a doze and a tick. */
static void begin(bool slow) {
  s = NS();
  t = NS();
  cu->cuStreamBeginCapture(s, TL);
  if (slow)
    cu->cuLaunchHostFunc(s, doze, NULL);
  K(s);
  cu->cuStreamEndCapture(s, &g);
  cu->cuGraphInstantiate(&e, g, 0);
  nodes_of(g, nd);
}


/* ---- uploads ---- */

static void upload(void) {
  begin(false);
  clear_ticks();
  S(cuGraphUpload(e, s));
  S(cuGraphUpload(e, t));
  S(cuGraphUpload(e, 0));
  S(cuGraphUpload(e, CU_STREAM_PER_THREAD));
  S(cuStreamSynchronize(s));
  S(cuGraphLaunch(e, t));
  S(cuStreamSynchronize(t));
  note_ticks();
  S(cuGraphUpload(0, s));
}


static void upload_in_flight(void) {
  begin(true);
  clear_ticks();
  S(cuGraphLaunch(e, s));
  S(cuGraphUpload(e, t));
  S(cuGraphUpload(e, s));
  S(cuStreamSynchronize(s));
  S(cuStreamSynchronize(t));
  note_ticks();
}


static void upload_capturing(void) {
  begin(false);
  cu->cuStreamBeginCapture(t, RX);
  S(cuGraphUpload(e, t));
  num("status", st(t));
  S(cuStreamEndCapture(t, &g2));
  clear_ticks();
  S(cuGraphLaunch(e, t));
  S(cuStreamSynchronize(t));
  note_ticks();
}


static void upload_memory(void) {
  CUdeviceptr q = 0;
  s = NS();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemAllocAsync(&q, 4096, s);
  cu->cuMemsetD8Async(q, 1, 4096, s);
  cu->cuStreamEndCapture(s, &g);
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuGraphUpload(e, s));
  S(cuGraphLaunch(e, s));
  S(cuGraphUpload(e, s));
  S(cuGraphLaunch(e, s));
  S(cuMemFreeAsync(q, s));
  S(cuStreamSynchronize(s));
}


/* ---- nodes switched off ---- */

static void disabled(void) {
  unsigned enabled = 9;
  begin(false);
  clear_ticks();
  S(cuGraphNodeSetEnabled(e, nd[0], 0));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  note_ticks();
  S(cuGraphNodeSetEnabled(e, nd[0], 1));
  S(cuGraphNodeGetEnabled(e, nd[0], &enabled));
  num("enabled", enabled);
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  note_ticks();
}


static void disabled_others(void) {
  char c[2] = {0, 0};
  s = NS();
  cu->cuMemsetD8(d, 1, 8192);
  cu->cuCtxSynchronize();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuMemsetD8Async(d, 7, 64, s);
  cu->cuMemcpyDtoDAsync(d + 4096, d, 64, s);
  cu->cuStreamEndCapture(s, &g);
  cu->cuGraphInstantiate(&e, g, 0);
  nodes_of(g, nd);
  S(cuGraphNodeSetEnabled(e, nd[0], 0));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  cu->cuMemcpyDtoH(&c[0], d, 1);
  cu->cuMemcpyDtoH(&c[1], d + 4096, 1);
  num("not filled", c[0]);
  num("copied", c[1]);
  S(cuGraphNodeSetEnabled(e, nd[0], 1));
  S(cuGraphNodeSetEnabled(e, nd[1], 0));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  cu->cuMemcpyDtoH(&c[0], d, 1);
  cu->cuMemcpyDtoH(&c[1], d + 4096, 1);
  num("filled", c[0]);
  num("not copied", c[1]);
}


static void disabled_order(void) {
  s = NS();
  clear_ticks();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuLaunchHostFunc(s, doze, NULL);
  K(s);
  cu->cuMemcpyDtoDAsync(d + 4096, d, 64, s);
  cu->cuStreamEndCapture(s, &g);
  cu->cuGraphInstantiate(&e, g, 0);
  nodes_of(g, nd);
  S(cuGraphNodeSetEnabled(e, nd[1], 0));
  sleep_on();
  S(cuGraphLaunch(e, s));
  S(cuStreamQuery(s)); /* the order through the node stays */
  wake();
  S(cuStreamSynchronize(s));
}


static void disabled_updated(void) {
  unsigned enabled = 9;
  float a = 5;
  void *p[2];
  begin(false);
  clear_ticks();
  CUDA_KERNEL_NODE_PARAMS kp = adding(&a, p);
  S(cuGraphNodeSetEnabled(e, nd[0], 0));
  S(cuGraphExecKernelNodeSetParams(e, nd[0], &kp));
  S(cuGraphNodeGetEnabled(e, nd[0], &enabled));
  num("enabled", enabled);
  S(cuGraphNodeSetEnabled(e, nd[0], 1));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  note_ticks();
  S(cuGraphNodeSetEnabled(e, nd[0], 0));
  S(cuGraphExecUpdate(e, g, &ui));
  S(cuGraphNodeGetEnabled(e, nd[0], &enabled));
  num("enabled", enabled);
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  note_ticks();
}


static void disabled_bad(void) {
  unsigned enabled = 9;
  begin(false);
  CUgraphNode own = nd[0], foreign = NULL, copied = NULL;
  cu->cuGraphClone(&g2, g);
  cu->cuGraphNodeFindInClone(&copied, own, g2);
  nodes_of(capn(1), nd);
  foreign = nd[0];
  S(cuGraphNodeSetEnabled(e, foreign, 0));
  S(cuGraphNodeSetEnabled(e, copied, 0));
  S(cuGraphNodeSetEnabled(e, 0, 0));
  S(cuGraphNodeSetEnabled(0, own, 0));
  S(cuGraphNodeGetEnabled(e, foreign, &enabled));
  S(cuGraphNodeGetEnabled(e, own, 0));
  S(cuGraphNodeGetEnabled(0, own, &enabled));
  num("untouched", enabled);
}


/* ---- changes while it runs ---- */

static void params_in_flight(void) {
  float a = 10;
  void *p[2];
  begin(true);
  clear_ticks();
  CUDA_KERNEL_NODE_PARAMS kp = adding(&a, p);
  S(cuGraphLaunch(e, s));
  S(cuGraphExecKernelNodeSetParams(e, nd[1], &kp));
  S(cuStreamSynchronize(s));
  note_ticks();
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  note_ticks();
}


static void disabled_in_flight(void) {
  begin(true);
  clear_ticks();
  S(cuGraphLaunch(e, s));
  S(cuGraphNodeSetEnabled(e, nd[1], 0));
  S(cuGraphLaunch(e, s));
  S(cuGraphNodeSetEnabled(e, nd[1], 1));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  note_ticks();
}


static void update_in_flight(void) {
  float a = 10;
  void *p[2];
  begin(true);
  clear_ticks();
  CUDA_KERNEL_NODE_PARAMS kp = adding(&a, p);
  CUgraphNodeParams np;
  memset(&np, 0, sizeof np);
  np.type = CU_GRAPH_NODE_TYPE_KERNEL;
  np.kernel = kp;
  S(cuGraphLaunch(e, s));
  S(cuGraphNodeSetParams(nd[1], &np));
  S(cuGraphExecUpdate(e, g, &ui));
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  note_ticks();
}


static void destroyed_in_flight(void) {
  begin(true);
  clear_ticks();
  S(cuGraphLaunch(e, s));
  S(cuGraphLaunch(e, s));
  S(cuGraphExecDestroy(e));
  S(cuGraphDestroy(g));
  S(cuStreamSynchronize(s));
  note_ticks();
}


static void two_streams(void) {
  begin(true);
  clear_ticks();
  S(cuGraphLaunch(e, s));
  S(cuGraphLaunch(e, t)); /* after the first: one at a time */
  S(cuStreamSynchronize(t));
  note_ticks();
  S(cuStreamQuery(s));
}


static const question questions[] = {
    {"upload: each kind of stream, again, null", upload},
    {"upload: while it runs", upload_in_flight},
    {"upload: on a capturing stream, mode relaxed", upload_capturing},
    {"upload: with memory of its own", upload_memory},
    {"node switched off and on: what runs", disabled},
    {"node switched off: fill, copy", disabled_others},
    {"node switched off: the order through it", disabled_order},
    {"node switched off: set, updated", disabled_updated},
    {"node switched off: of another graph, of a clone, null", disabled_bad},
    {"node set while it runs", params_in_flight},
    {"node switched off while it runs", disabled_in_flight},
    {"updated while it runs", update_in_flight},
    {"destroyed while it runs", destroyed_in_flight},
    {"launched in two streams while it runs", two_streams},
};


void ask_replays(void) {
  row_list(questions, sizeof questions / sizeof *questions);
}
