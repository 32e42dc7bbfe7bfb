/* Graphs of the host device under load: memory that stays flat over many
   replays and captures, launches from several threads, branches that run at
   once, a kernel that fails in the middle. */
#include "driver/host/graph_support.h"

#include <pthread.h>
#include <sys/wait.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLOWER = 20 }; /* quarantines grow, and time is short */
#else
enum { SLOWER = 1 };
#endif

/* Bytes of growth that say something leaks: a block lost per round of ten
   thousand would be more, what malloc's arenas come and go by is less. */
enum { NODES = 100, LEAK = 1 << 20 };


/* n counts of one word each in a line, captured in the stream. */
static CUgraph line(CUstream s, uint64_t *v, unsigned n) {
  CUgraph graph = NULL;
  uint64_t one = 1;
  cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  for (unsigned at = 0; at < n; at++) {
    void *params[] = {&v, &at, &one};
    launch(count, s, params);
  }
  cu->cuStreamEndCapture(s, &graph);
  return graph;
}


/* ---- flat memory ---- */

static void replays(CUgraphExec e, CUgraphNode node, uint64_t *v, CUstream s,
                    unsigned n) {
  unsigned at = 0;
  uint64_t one = 1;
  void *params[] = {&v, &at, &one};
  CUDA_KERNEL_NODE_PARAMS kp = kernel_params(count, params);
  for (unsigned i = 0; i < n; i++) {
    if (i % 10 == 0)
      cu->cuGraphExecKernelNodeSetParams(e, node, &kp);
    cu->cuGraphLaunch(e, s);
    if (i % 100 == 99)
      cu->cuStreamSynchronize(s);
  }
  cu->cuStreamSynchronize(s);
}


static void test_replays(void) {
  const unsigned n = 100000 / SLOWER;
  uint64_t *v = new_words(NODES);
  CUstream s = new_stream();
  CUgraph graph = line(s, v, NODES);
  CUgraphNode nodes[NODES];
  size_t count_nodes = NODES;
  CUgraphExec e;
  unsigned wrong = 0;
  cu->cuGraphGetNodes(graph, nodes, &count_nodes);
  cu->cuGraphInstantiate(&e, graph, 0);
  replays(e, nodes[0], v, s, n / 10);
  long before = resident();
  replays(e, nodes[0], v, s, n);
  long grown = resident() - before;
  for (unsigned i = 0; i < NODES; i++)
    wrong += v[i] != n + n / 10;
  tap_ok(wrong == 0, "%u replays of %d nodes", n, (int)NODES);
  tap_ok(SLOWER > 1 || grown < LEAK, "leave memory as it was (%ld KiB)",
         grown / 1024);
  cu->cuGraphExecDestroy(e);
  cu->cuGraphDestroy(graph);
  cu->cuStreamDestroy(s);
  free_words(v);
}


static unsigned captures(CUstream s, uint64_t *v, unsigned n) {
  unsigned errors = 0;
  for (unsigned i = 0; i < n; i++) {
    CUgraphExec e;
    CUgraph graph = line(s, v, 10);
    errors += cu->cuGraphInstantiate(&e, graph, 0) != 0;
    errors += cu->cuGraphLaunch(e, s) != 0;
    errors += cu->cuGraphExecDestroy(e) != 0;
    errors += cu->cuGraphDestroy(graph) != 0;
    if (i % 100 == 99)
      cu->cuStreamSynchronize(s);
  }
  cu->cuStreamSynchronize(s);
  return errors;
}


static void test_captures(void) {
  const unsigned n = 20000 / SLOWER;
  uint64_t *v = new_words(10);
  CUstream s = new_stream();
  unsigned errors = captures(s, v, n / 10);
  long before = resident();
  errors += captures(s, v, n);
  long grown = resident() - before;
  tap_ok(errors == 0 && v[9] == n + n / 10, "%u captures, each launched once",
         n);
  tap_ok(SLOWER > 1 || grown < LEAK, "leave memory as it was (%ld KiB)",
         grown / 1024);
  cu->cuStreamDestroy(s);
  free_words(v);
}


static void test_ahead(void) {
  const unsigned n = 200000 / SLOWER;
  uint64_t *v = new_words(10);
  CUstream s = new_stream();
  CUgraph graph = line(s, v, 10);
  CUgraphExec e;
  cu->cuGraphInstantiate(&e, graph, 0);
  long before = resident();
  for (unsigned i = 0; i < n; i++)
    cu->cuGraphLaunch(e, s);
  long grown = resident() - before;
  cu->cuStreamSynchronize(s);
  tap_ok(v[9] == n && (SLOWER > 1 || grown < 4096 * 1024),
         "%u launches without a wait do not pile up (%ld KiB)", n,
         grown / 1024);
  cu->cuGraphExecDestroy(e);
  cu->cuGraphDestroy(graph);
  cu->cuStreamDestroy(s);
  free_words(v);
}


/* ---- threads ---- */

enum { THREADS = 4, LAUNCHES = 400 };

typedef struct job {
  CUgraphExec shared;
  uint64_t *own; /* NODES words */
  unsigned errors;
} job;


static void *launcher(void *argument) {
  job *j = argument;
  CUgraphExec e;
  cu->cuCtxSetCurrent(ctx);
  CUstream s = new_stream(), t = new_stream();
  for (int turn = 0; turn < 5; turn++) {
    CUgraph graph = line(s, j->own, NODES);
    CUstreamCaptureMode relaxed = CU_STREAM_CAPTURE_MODE_RELAXED;
    cu->cuThreadExchangeStreamCaptureMode(&relaxed);
    j->errors += cu->cuGraphInstantiate(&e, graph, 0) != 0;
    cu->cuThreadExchangeStreamCaptureMode(&relaxed);
    /* A turn ends in the stream that the next begins in: two executables
       add to the same words, and nothing but a stream orders them. */
    for (int i = 0; i < LAUNCHES / 5; i++) {
      int first = (i + turn) % 2;
      j->errors += cu->cuGraphLaunch(e, first ? s : t) != 0;
      j->errors += cu->cuGraphLaunch(j->shared, first ? t : s) != 0;
    }
    j->errors += cu->cuGraphExecDestroy(e) != 0; /* in flight */
    j->errors += cu->cuGraphDestroy(graph) != 0;
  }
  j->errors += cu->cuStreamSynchronize(s) != 0;
  j->errors += cu->cuStreamSynchronize(t) != 0;
  cu->cuStreamDestroy(s);
  cu->cuStreamDestroy(t);
  return NULL;
}


static void test_threads(void) {
  uint64_t *v = new_words(NODES);
  CUstream s = new_stream();
  CUgraph graph = line(s, v, NODES);
  pthread_t threads[THREADS];
  job jobs[THREADS] = {0};
  CUgraphExec e;
  unsigned wrong = 0, errors = 0;
  cu->cuGraphInstantiate(&e, graph, 0);
  for (int i = 0; i < THREADS; i++) {
    jobs[i].shared = e;
    jobs[i].own = new_words(NODES);
    pthread_create(&threads[i], NULL, launcher, &jobs[i]);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) {
    errors += jobs[i].errors;
    for (unsigned k = 0; k < NODES; k++)
      wrong += jobs[i].own[k] != LAUNCHES;
    free_words(jobs[i].own);
  }
  for (unsigned k = 0; k < NODES; k++)
    wrong += v[k] != THREADS * LAUNCHES;
  tap_ok(wrong == 0 && errors == 0,
         "%d threads, an executable shared and one of their own: %u wrong, %u "
         "errors",
         (int)THREADS, wrong, errors);
  cu->cuGraphExecDestroy(e);
  cu->cuGraphDestroy(graph);
  cu->cuStreamDestroy(s);
  free_words(v);
}


/* ---- branches ---- */

/* Each of two branches waits for the other to have begun. */
static void test_branches(void) {
  uint64_t *v = new_words(16);
  CUgraph graph;
  CUgraphExec e;
  CUgraphNode node;
  CUstream s = new_stream();
  cu->cuGraphCreate(&graph, 0);
  for (unsigned i = 0; i < 2; i++) {
    unsigned mine = i * 8, theirs = 8 - mine;
    void *params[] = {&v, &mine, &theirs};
    CUDA_KERNEL_NODE_PARAMS kp = kernel_params(meet, params);
    kp.blockDimX = 1;
    cu->cuGraphAddKernelNode(&node, graph, NULL, 0, &kp);
  }
  cu->cuGraphInstantiate(&e, graph, 0);
  cu->cuGraphLaunch(e, s);
  cu->cuStreamSynchronize(s);
  if (host_worker_count() > 1)
    tap_ok(v[1] == 1 && v[9] == 1, "two branches run at once");
  else
    tap_skip("two branches run at once", "there is one worker");
  cu->cuGraphExecDestroy(e);
  cu->cuGraphDestroy(graph);
  cu->cuStreamDestroy(s);
  free_words(v);
}


/* The figure is for the reader: machines differ. */
static void show_cost(void) {
  enum { LONG = 1000, TIMES = 2000 / SLOWER };
  struct timespec from, to;
  uint64_t *v = new_words(LONG);
  CUstream s = new_stream();
  CUgraph graph = line(s, v, LONG);
  CUgraphExec e;
  cu->cuGraphInstantiate(&e, graph, 0);
  cu->cuGraphLaunch(e, s);
  cu->cuStreamSynchronize(s);
  clock_gettime(CLOCK_MONOTONIC, &from);
  for (int i = 0; i < TIMES; i++)
    cu->cuGraphLaunch(e, s);
  cu->cuStreamSynchronize(s);
  clock_gettime(CLOCK_MONOTONIC, &to);
  double us = (double)(to.tv_sec - from.tv_sec) * 1e6 +
              (double)(to.tv_nsec - from.tv_nsec) * 1e-3;
  printf("# %.3f us per node in a line of %d\n", us / TIMES / LONG, (int)LONG);
  cu->cuGraphExecDestroy(e);
  cu->cuGraphDestroy(graph);
  cu->cuStreamDestroy(s);
  free_words(v);
}


/* ---- a failure in the middle ---- */

/* In a process of its own: a failed context stays failed.  The exit status
   names the first check that did not hold. */
static int fail_in_graph(void) {
  if (!graph_open())
    return 1;
  uint64_t *v = new_words(4);
  uint64_t *wild = (uint64_t *)64;
  uint64_t one = 1;
  unsigned at = 0;
  CUgraph graph = NULL;
  CUgraphExec e;
  CUevent done;
  CUstream s = new_stream();
  cu->cuEventCreate(&done, 0);
  cu->cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL);
  void *good[] = {&v, &at, &one}, *bad[] = {&wild, &at, &one};
  launch(count, s, good);
  launch(count, s, bad);
  at = 1;
  launch(count, s, good);
  cu->cuEventRecordWithFlags(done, s, CU_EVENT_RECORD_EXTERNAL);
  cu->cuStreamEndCapture(s, &graph);
  if (cu->cuGraphInstantiate(&e, graph, 0) != CUDA_SUCCESS)
    return 2;
  cu->cuGraphLaunch(e, s);
  cu->cuGraphLaunch(e, s);
  if (cu->cuStreamSynchronize(s) != CUDA_ERROR_ILLEGAL_ADDRESS)
    return 3;
  if (v[0] != 1 || v[1] != 0)
    return 4;
  if (cu->cuGraphLaunch(e, s) != CUDA_ERROR_ILLEGAL_ADDRESS)
    return 5;
  if (strstr(cu->failure_text(), "count") == NULL)
    return 6;
  return 0;
}


static void test_failure(void) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0)
    _exit(fail_in_graph());
  int status = 0;
  waitpid(child, &status, 0);
  tap_ok(WIFEXITED(status) && WEXITSTATUS(status) == 0,
         "a kernel that fails ends its graph and names itself (%d)", status);
}


int main(void) {
  test_failure(); /* first: it forks */
  if (!graph_open())
    return 77;
  test_replays();
  test_captures();
  test_ahead();
  test_threads();
  test_branches();
  show_cost();
  graph_close();
  return tap_done();
}
