/* Graphs of the host device: replays of random graphs against plain C,
   captures against the same calls made eagerly, changes of executables,
   memory nodes, conditional bodies, external events. */
#include "driver/host/graph_support.h"

enum { MOST = 160 };

/* ---- random graphs ---- */

typedef struct dag {
  unsigned n;
  mix_deps deps[MOST];
} dag;


/* Each node depends on up to `reach` of the last `span` nodes before it. */
static dag random_dag(uint64_t *seed, unsigned n, unsigned reach,
                      unsigned span) {
  dag g = {.n = n};
  for (unsigned i = 1; i < n; i++) {
    unsigned wanted = random_below(seed, reach + 1);
    for (unsigned k = 0; k < wanted; k++) {
      unsigned at = i - 1 - random_below(seed, i < span ? i : span);
      bool known = false;
      for (unsigned j = 0; j < g.deps[i].n; j++)
        known = known || g.deps[i].at[j] == at;
      if (!known)
        g.deps[i].at[g.deps[i].n++] = at;
    }
  }
  return g;
}


/* Nodes are made in a random order that respects nothing; edges follow. */
static CUgraph build(const dag *g, uint64_t *v, uint64_t *round, uint64_t *seed,
                     CUgraphNode *nodes) {
  CUgraph graph;
  unsigned order[MOST];
  cu->cuGraphCreate(&graph, 0);
  for (unsigned i = 0; i < g->n; i++) {
    unsigned k = random_below(seed, i + 1);
    order[i] = order[k];
    order[k] = i;
  }
  for (unsigned i = 0; i < g->n; i++) {
    unsigned self = order[i];
    mix_deps deps = g->deps[self];
    void *params[] = {&v, &round, &self, &deps};
    CUDA_KERNEL_NODE_PARAMS kp = kernel_params(mix, params);
    cu->cuGraphAddKernelNode(&nodes[self], graph, NULL, 0, &kp);
  }
  for (unsigned i = 0; i < g->n; i++)
    for (unsigned k = 0; k < g->deps[i].n; k++)
      cu->cuGraphAddDependencies(graph, &nodes[g->deps[i].at[k]], &nodes[i],
                                 NULL, 1);
  return graph;
}


static unsigned wrong_values(const dag *g, const uint64_t *v, uint64_t round) {
  uint64_t want[MOST];
  unsigned wrong = 0;
  for (unsigned i = 0; i < g->n; i++) {
    want[i] = mix_value(want, round, i, &g->deps[i]);
    wrong += want[i] != v[i];
  }
  return wrong;
}


static void test_random(unsigned reach, unsigned span, const char *what) {
  uint64_t seed = 88172645463325252u + span;
  uint64_t *v = new_words(MOST), *round = new_words(1);
  CUstream s = new_stream();
  unsigned wrong = 0, errors = 0;
  for (unsigned i = 0; i < 40; i++) {
    CUgraphNode nodes[MOST];
    CUgraphExec e, again;
    dag g = random_dag(&seed, 1 + random_below(&seed, MOST), reach, span);
    CUgraph graph = build(&g, v, round, &seed, nodes), parent;
    errors += cu->cuGraphInstantiate(&e, graph, 0) != 0;
    /* the same as a child of a graph, between two empty nodes */
    CUgraphNode first, child, last;
    cu->cuGraphCreate(&parent, 0);
    cu->cuGraphAddEmptyNode(&first, parent, NULL, 0);
    cu->cuGraphAddChildGraphNode(&child, parent, &first, 1, graph);
    cu->cuGraphAddEmptyNode(&last, parent, &child, 1);
    errors += cu->cuGraphInstantiate(&again, parent, 0) != 0;
    cu->cuGraphDestroy(graph);
    cu->cuGraphDestroy(parent);
    for (uint64_t r = 1; r <= 6; r++) {
      *round = r + i;
      memset(v, 0, MOST * sizeof *v);
      errors += cu->cuGraphLaunch(r % 2 ? e : again, s) != 0;
      errors += cu->cuStreamSynchronize(s) != 0;
      wrong += wrong_values(&g, v, r + i);
    }
    cu->cuGraphExecDestroy(e);
    cu->cuGraphExecDestroy(again);
  }
  tap_ok(wrong == 0 && errors == 0, "random graphs, %s: %u wrong, %u errors",
         what, wrong, errors);
  cu->cuStreamDestroy(s);
  free_words(v);
  free_words(round);
}


/* ---- captures against eager calls ---- */

enum { STREAMS = 4, STEPS = 60, WORDS = 16 };

/* Random work on streams that wait for each other; the same seed issues the
   same calls.  Word i belongs to the stream that wrote it last, and is used
   by another only after a wait on it, so the results are determined. */
static void issue(uint64_t seed, CUstream *s, uint64_t *v) {
  CUevent event;
  unsigned owner[WORDS];
  cu->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
  cu->cuEventRecord(event, s[0]);
  for (unsigned i = 1; i < STREAMS; i++)
    cu->cuStreamWaitEvent(s[i], event, 0);
  for (unsigned i = 0; i < WORDS; i++)
    owner[i] = 0;
  for (unsigned i = 0; i < STEPS; i++) {
    unsigned by = random_below(&seed, STREAMS), at = random_below(&seed, WORDS);
    CUdeviceptr word = (CUdeviceptr)(uintptr_t)&v[at];
    if (owner[at] != by) {
      cu->cuEventRecord(event, s[owner[at]]);
      cu->cuStreamWaitEvent(s[by], event, 0);
      owner[at] = by;
    }
    uint64_t value = random_below(&seed, 1000);
    unsigned half = (unsigned)value;
    void *params[] = {&v, &at, &value};
    switch (random_below(&seed, 4)) {
    case 0:
      cu->cuMemsetD32Async(word, half, 2, s[by]);
      break;
    case 1:
      launch(put, s[by], params);
      break;
    default:
      launch(count, s[by], params);
    }
  }
  for (unsigned i = 1; i < STREAMS; i++) {
    cu->cuEventRecord(event, s[i]);
    cu->cuStreamWaitEvent(s[0], event, 0);
  }
  cu->cuEventDestroy(event);
}


static void test_captured(void) {
  uint64_t *eager = new_words(WORDS), *replayed = new_words(WORDS);
  CUstream s[STREAMS];
  unsigned wrong = 0, errors = 0;
  for (unsigned i = 0; i < STREAMS; i++)
    s[i] = new_stream();
  for (uint64_t seed = 1; seed <= 60; seed++) {
    CUgraph graph = NULL;
    CUgraphExec e = NULL;
    memset(eager, 0, WORDS * sizeof *eager);
    memset(replayed, 0, WORDS * sizeof *replayed);
    uint64_t start = seed * 0x9e3779b97f4a7c15u;
    for (int turn = 0; turn < 3; turn++)
      issue(start, s, eager);
    cu->cuStreamSynchronize(s[0]);
    errors +=
        cu->cuStreamBeginCapture(s[0], CU_STREAM_CAPTURE_MODE_GLOBAL) != 0;
    issue(start, s, replayed);
    errors += cu->cuStreamEndCapture(s[0], &graph) != 0;
    errors += cu->cuGraphInstantiate(&e, graph, 0) != 0;
    for (int turn = 0; turn < 3; turn++)
      errors += cu->cuGraphLaunch(e, s[turn]) != 0; /* in order all the same */
    for (unsigned i = 0; i < STREAMS; i++)
      cu->cuStreamSynchronize(s[i]);
    wrong += memcmp(eager, replayed, WORDS * sizeof *eager) != 0;
    cu->cuGraphExecDestroy(e);
    cu->cuGraphDestroy(graph);
  }
  tap_ok(wrong == 0 && errors == 0,
         "captures replay what the same calls did: %u wrong, %u errors", wrong,
         errors);
  for (unsigned i = 0; i < STREAMS; i++)
    cu->cuStreamDestroy(s[i]);
  free_words(eager);
  free_words(replayed);
}


/* ---- changes of an executable ---- */

static void test_params(void) {
  enum { LAUNCHES = 2000 };
  uint64_t *v = new_words(LAUNCHES);
  CUstream s = new_stream();
  CUgraph graph;
  CUgraphNode node;
  CUgraphExec e;
  unsigned at = 0, wrong = 0, errors = 0;
  uint64_t value = 0;
  void *params[] = {&v, &at, &value};
  CUDA_KERNEL_NODE_PARAMS kp = kernel_params(put, params);
  cu->cuGraphCreate(&graph, 0);
  cu->cuGraphAddKernelNode(&node, graph, NULL, 0, &kp);
  cu->cuGraphInstantiate(&e, graph, 0);
  for (at = 0; at < LAUNCHES; at++) {
    value = at + 1;
    errors += cu->cuGraphExecKernelNodeSetParams(e, node, &kp) != 0;
    cu->cuGraphNodeSetEnabled(e, node, at % 3 != 2);
    errors += cu->cuGraphLaunch(e, s) != 0;
  }
  cu->cuStreamSynchronize(s);
  for (at = 0; at < LAUNCHES; at++)
    wrong += v[at] != (at % 3 == 2 ? 0 : at + 1);
  tap_ok(wrong == 0 && errors == 0,
         "each launch has the parameters of its time: %u wrong", wrong);
  cu->cuGraphExecDestroy(e);
  cu->cuGraphDestroy(graph);
  cu->cuStreamDestroy(s);
  free_words(v);
}


static CUgraph line(CUstream s, uint64_t *v, unsigned n, uint64_t by) {
  CUgraph graph = NULL;
  cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  for (unsigned at = 0; at < n; at++) {
    void *params[] = {&v, &at, &by};
    launch(count, s, params);
  }
  cu->cuStreamEndCapture(s, &graph);
  return graph;
}


static void test_update(void) {
  enum { NODES = 50, TURNS = 40 };
  uint64_t *v = new_words(NODES);
  uint64_t total = 0;
  CUstream s = new_stream();
  CUgraph graph = line(s, v, NODES, 1);
  CUgraphExec e;
  unsigned wrong = 0, errors = 0;
  cu->cuGraphInstantiate(&e, graph, 0);
  cu->cuGraphDestroy(graph);
  for (uint64_t by = 1; by <= TURNS; by++) {
    CUgraphExecUpdateResultInfo info;
    graph = line(s, v, NODES, by);
    errors += cu->cuGraphExecUpdate(e, graph, &info) != 0;
    cu->cuGraphDestroy(graph);
    errors += cu->cuGraphLaunch(e, s) != 0;
    total += by;
  }
  cu->cuStreamSynchronize(s);
  for (unsigned i = 0; i < NODES; i++)
    wrong += v[i] != total;
  tap_ok(wrong == 0 && errors == 0,
         "updates wait for the launches before them: %u wrong, %u errors",
         wrong, errors);
  cu->cuGraphExecDestroy(e);
  cu->cuStreamDestroy(s);
  free_words(v);
}


static void test_in_flight(void) {
  uint64_t *v = new_words(64);
  CUstream s = new_stream();
  unsigned wrong = 0;
  for (unsigned i = 0; i < 200; i++) {
    CUgraph graph = line(s, v, 64, 1);
    CUgraphExec e;
    cu->cuGraphInstantiate(&e, graph, 0);
    cu->cuGraphDestroy(graph);
    cu->cuGraphLaunch(e, s);
    cu->cuGraphLaunch(e, s);
    cu->cuGraphExecDestroy(e);
  }
  cu->cuStreamSynchronize(s);
  for (unsigned i = 0; i < 64; i++)
    wrong += v[i] != 400;
  tap_ok(wrong == 0, "an executable destroyed in flight runs to its end");
  cu->cuStreamDestroy(s);
  free_words(v);
}


/* ---- memory nodes ---- */

static void test_memory_nodes(void) {
  uint64_t *out = new_words(4);
  CUdeviceptr to = (CUdeviceptr)(uintptr_t)out;
  CUstream s = new_stream();
  CUgraph graph = NULL;
  CUgraphExec e;
  int64_t before = cgl_host_live("bytes");
  cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
  for (unsigned at = 0; at < 4; at++) {
    CUdeviceptr q = 0;
    cu->cuMemAllocAsync(&q, 1 << 20, s);
    cu->cuMemsetD8Async(q, (unsigned char)(at + 1), 1 << 20, s);
    cu->cuMemcpyDtoDAsync(to + 8 * at, q + (1 << 20) - 8, 8, s);
    cu->cuMemFreeAsync(q, s);
  }
  cu->cuStreamEndCapture(s, &graph);
  cu->cuGraphInstantiate(&e, graph, 0);
  unsigned wrong = 0;
  for (int turn = 0; turn < 50; turn++) {
    memset(out, 0, 4 * sizeof *out);
    wrong += cu->cuGraphLaunch(e, s) != 0;
    wrong += cu->cuStreamSynchronize(s) != 0;
    for (unsigned at = 0; at < 4; at++)
      wrong += out[at] != (at + 1) * UINT64_C(0x0101010101010101);
  }
  tap_ok(wrong == 0, "memory allocated and freed within a graph");
  tap_ok(cgl_host_live("bytes") > before, "is counted while the graph lives");
  cu->cuGraphExecDestroy(e);
  cu->cuGraphDestroy(graph);
  tap_ok(cgl_host_live("bytes") == before, "and given back with it");
  cu->cuStreamDestroy(s);
  free_words(out);
}


static void test_memory_full(void) {
  size_t unused, total;
  CUdeviceptr q = 0;
  CUgraph graph = NULL;
  CUgraphExec e;
  CUstream s = new_stream();
  cu->cuMemGetInfo(&unused, &total);
  cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
  cu->cuMemAllocAsync(&q, unused + (1 << 20), s);
  cu->cuMemFreeAsync(q, s);
  cu->cuStreamEndCapture(s, &graph);
  CUresult made = cu->cuGraphInstantiate(&e, graph, 0);
  CUresult launched =
      made == CUDA_SUCCESS ? cu->cuGraphLaunch(e, s) : CUDA_ERROR_OUT_OF_MEMORY;
  tap_ok(launched == CUDA_ERROR_OUT_OF_MEMORY &&
             cu->cuStreamSynchronize(s) == CUDA_SUCCESS,
         "a graph that wants more than there is: out of memory, and no more");
  if (made == CUDA_SUCCESS)
    cu->cuGraphExecDestroy(e);
  if (graph != NULL)
    cu->cuGraphDestroy(graph);
  cu->cuStreamDestroy(s);
}


/* ---- conditional bodies ---- */

/* A body of `branches` chains that each count their word. */
static void fill_body(CUgraph body, uint64_t *v, unsigned branches,
                      CUgraphNode *ends) {
  for (unsigned at = 0; at < branches; at++) {
    uint64_t one = 1;
    void *params[] = {&v, &at, &one};
    CUDA_KERNEL_NODE_PARAMS kp = kernel_params(count, params);
    cu->cuGraphAddKernelNode(&ends[at], body, NULL, 0, &kp);
    cu->cuGraphAddKernelNode(&ends[at], body, &ends[at], 1, &kp);
  }
}


static CUgraph add_while(CUgraph graph, CUgraphConditionalHandle *h) {
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  CUgraphNode node;
  cu->cuGraphConditionalHandleCreate(h, graph, ctx, 1,
                                     CU_GRAPH_COND_ASSIGN_DEFAULT);
  params.conditional.handle = *h;
  params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
  params.conditional.size = 1;
  params.conditional.ctx = ctx;
  cu->cuGraphAddNode(&node, graph, NULL, NULL, 0, &params);
  return params.conditional.phGraph_out[0];
}


static void add_set(CUgraph body, CUgraphConditionalHandle h, uint64_t *left,
                    const CUgraphNode *after, size_t n) {
  void *params[] = {&h, &left};
  CUDA_KERNEL_NODE_PARAMS kp = kernel_params(set, params);
  CUgraphNode node;
  kp.blockDimX = 1;
  cu->cuGraphAddKernelNode(&node, body, after, n, &kp);
}


static void test_while(unsigned branches) {
  uint64_t *v = new_words(9);
  uint64_t *left = v + 8;
  CUstream s = new_stream();
  CUgraph graph;
  CUgraphExec e = NULL;
  CUgraphNode ends[8];
  CUgraphConditionalHandle h;
  unsigned wrong = 0;
  cu->cuGraphCreate(&graph, 0);
  CUgraph body = add_while(graph, &h);
  fill_body(body, v, branches, ends);
  add_set(body, h, left, ends, branches);
  wrong += cu->cuGraphInstantiate(&e, graph, 0) != 0;
  for (uint64_t turn = 1; turn <= 20; turn++) {
    *left = 50;
    wrong += cu->cuGraphLaunch(e, s) != 0;
    wrong += cu->cuStreamSynchronize(s) != 0;
    for (unsigned at = 0; at < branches; at++)
      wrong += v[at] != turn * 100;
  }
  tap_ok(wrong == 0, "while: 50 turns of %u branches, 20 launches", branches);
  cu->cuGraphExecDestroy(e);
  cu->cuGraphDestroy(graph);
  cu->cuStreamDestroy(s);
  free_words(v);
}


/* ---- external events ---- */

static void wait_for_flag(void *flag) {
  struct timespec pause = {0, 100000};
  while (!atomic_load((atomic_int *)flag))
    nanosleep(&pause, NULL);
}


static void test_events(void) {
  static atomic_int flag;
  uint64_t *v = new_words(4);
  CUstream s = new_stream(), t = new_stream();
  CUevent go, done;
  CUgraph graph = NULL;
  CUgraphExec e;
  uint64_t one = 1;
  unsigned at = 0;
  void *params[] = {&v, &at, &one};
  cu->cuEventCreate(&go, 0);
  cu->cuEventCreate(&done, 0);
  cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  launch(count, s, params);
  cu->cuStreamWaitEvent(s, go, CU_EVENT_WAIT_EXTERNAL);
  at = 1;
  launch(count, s, params);
  cu->cuEventRecordWithFlags(done, s, CU_EVENT_RECORD_EXTERNAL);
  cu->cuStreamEndCapture(s, &graph);
  cu->cuGraphInstantiate(&e, graph, 0);
  atomic_store(&flag, 0);
  cu->cuLaunchHostFunc(t, wait_for_flag, &flag);
  cu->cuEventRecord(go, t);
  cu->cuGraphLaunch(e, s);
  CUresult early = cu->cuEventQuery(done);
  tap_ok(early == CUDA_ERROR_NOT_READY && v[1] == 0,
         "a wait node holds its graph; the record node's event is pending");
  /* the waiting graph must not keep the workers from other work */
  CUstream u = new_stream();
  at = 2;
  for (int i = 0; i < 10; i++)
    launch(count, u, params);
  tap_ok(cu->cuStreamSynchronize(u) == CUDA_SUCCESS && v[2] == 10,
         "other streams go on meanwhile");
  atomic_store(&flag, 1);
  tap_ok(cu->cuEventSynchronize(done) == CUDA_SUCCESS && v[0] == 1 && v[1] == 1,
         "and it goes on when the event is done");
  cu->cuStreamSynchronize(s);
  cu->cuGraphExecDestroy(e);
  cu->cuGraphDestroy(graph);
  cu->cuStreamDestroy(s);
  cu->cuStreamDestroy(t);
  cu->cuStreamDestroy(u);
  cu->cuEventDestroy(go);
  cu->cuEventDestroy(done);
  free_words(v);
}


/* ---- handles of what is gone ---- */

static void test_stale(void) {
  uint64_t *v = new_words(4);
  CUstream s = new_stream();
  CUgraph graph = line(s, v, 2, 1), copy;
  CUgraphNode nodes[2], made;
  CUgraphNodeType type;
  CUgraphExec e;
  size_t n = 2;
  unsigned enabled;
  cu->cuGraphGetNodes(graph, nodes, &n);
  cu->cuGraphInstantiate(&e, graph, 0);
  cu->cuGraphDestroyNode(nodes[1]);
  tap_ok(cu->cuGraphNodeGetType(nodes[1], &type) == CUDA_ERROR_INVALID_VALUE &&
             cu->cuGraphAddEmptyNode(&made, graph, &nodes[1], 1) ==
                 CUDA_ERROR_INVALID_VALUE &&
             cu->cuGraphNodeGetEnabled(e, nodes[1], &enabled) ==
                 CUDA_ERROR_INVALID_VALUE &&
             cu->cuGraphDestroyNode(nodes[1]) == CUDA_ERROR_INVALID_VALUE,
         "a destroyed node is refused");
  cu->cuGraphDestroy(graph);
  tap_ok(cu->cuGraphDestroy(graph) == CUDA_ERROR_INVALID_VALUE &&
             cu->cuGraphGetNodes(graph, NULL, &n) == CUDA_ERROR_INVALID_VALUE &&
             cu->cuGraphClone(&copy, graph) == CUDA_ERROR_INVALID_VALUE &&
             cu->cuGraphNodeGetType(nodes[0], &type) ==
                 CUDA_ERROR_INVALID_VALUE,
         "so is a destroyed graph, and its nodes");
  cu->cuGraphExecDestroy(e);
  tap_ok(cu->cuGraphLaunch(e, s) == CUDA_ERROR_INVALID_VALUE &&
             cu->cuGraphExecDestroy(e) == CUDA_ERROR_INVALID_VALUE,
         "so is a destroyed executable");
  cu->cuStreamDestroy(s);
  free_words(v);
}


/* ---- the picture ---- */

static void test_dot(void) {
  char path[] = "/tmp/cgraphlua-dot.XXXXXX", first[32] = "";
  int fd = mkstemp(path), opened = 0, closed = 0;
  uint64_t *v = new_words(4);
  CUstream s = new_stream();
  CUgraph graph = line(s, v, 3, 1), parent;
  CUgraphNode child;
  cu->cuGraphCreate(&parent, 0);
  cu->cuGraphAddChildGraphNode(&child, parent, NULL, 0, graph);
  CUresult result = cu->cuGraphDebugDotPrint(parent, path, 1);
  FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;
  if (f != NULL && fgets(first, sizeof first, f) != NULL)
    rewind(f);
  for (int c; f != NULL && (c = fgetc(f)) != EOF;) {
    opened += c == '{';
    closed += c == '}';
  }
  if (f != NULL)
    fclose(f);
  unlink(path);
  tap_ok(result == CUDA_SUCCESS && strncmp(first, "digraph", 7) == 0 &&
             opened == 3 && closed == 3,
         "a graph with a child is printed for Graphviz");
  tap_ok(cu->cuGraphDebugDotPrint(parent, "/nonexistent/x", 0) ==
             CUDA_ERROR_OPERATING_SYSTEM,
         "and an impossible path is refused");
  cu->cuGraphDestroy(graph);
  cu->cuGraphDestroy(parent);
  cu->cuStreamDestroy(s);
  free_words(v);
}


int main(void) {
  if (!graph_open())
    return 77;
  test_random(2, 3, "narrow");
  test_random(5, 40, "wide");
  test_random(1, MOST, "forests");
  test_captured();
  test_params();
  test_update();
  test_in_flight();
  test_memory_nodes();
  test_memory_full();
  test_while(1);
  test_while(8);
  test_events();
  test_stale();
  test_dot();
  graph_close();
  return tap_done();
}
