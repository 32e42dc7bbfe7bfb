/* Kernels that do not end: deadlines, the abort of the device, and the reset
   after which it works again. */
#include "driver/host/host_support.h"

enum { ROUNDS = 20, THREADS = 16, SHORT = 3000 };


static int bad_answers;

/* Counts what goes wrong in a round, and shows the first of it. */
static bool holds(bool condition, const char *what) {
  if (!condition && !bad_answers++)
    printf("# not so: %s [%s]\n", what, driver->failure_text());
  return condition;
}

#define HOLDS(condition) holds(condition, #condition)


/* The device anew, as a program gets it after all of its objects have gone. */
static void renew(void) {
  DO(set_kernel_deadline(0));
  DO(cuDevicePrimaryCtxRelease(0));
  DO(cuDevicePrimaryCtxReset(0));
  DO(cuDevicePrimaryCtxRetain(&context, 0));
  DO(cuCtxSetCurrent(context));
  DO(cuModuleLoadData(&module, image()));
}


/* The device is as good as a fresh one: all workers do their part. */
static void check_works(void) {
  CUdeviceptr p = new_memory(256 * 256 * 4), out = new_memory(4);
  void *params[] = {&p, &out};
  HOLDS(driver->cuMemsetD32(p, 1, 256 * 256) == CUDA_SUCCESS);
  HOLDS(launch(kernel("total"), 256, 256, NULL, params) == CUDA_SUCCESS);
  HOLDS(driver->cuCtxSynchronize() == CUDA_SUCCESS);
  HOLDS(read_int(out) == 256 * 256);
  HOLDS(*driver->failure_text() == '\0');
  DO(cuMemFree(p));
  DO(cuMemFree(out));
}


/* An endless kernel on `stream`; it ends when the int at *open changes, and
   sets the next one when it begins. */
static void hang(const char *name, unsigned grid, CUstream stream,
                 CUdeviceptr *open) {
  *open = new_memory(8);
  void *params[] = {open};
  HOLDS(launch(kernel(name), grid, 64, stream, params) == CUDA_SUCCESS);
}


static void check_lost(const char *text) {
  HOLDS(driver->cuCtxSynchronize() == CUDA_ERROR_LAUNCH_TIMEOUT);
  HOLDS(driver->cuStreamSynchronize(NULL) == CUDA_ERROR_LAUNCH_TIMEOUT);
  CUstream s;
  HOLDS(driver->cuStreamCreate(&s, 0) == CUDA_ERROR_LAUNCH_TIMEOUT);
  HOLDS(strstr(driver->failure_text(), text) != NULL);
}


static void test_deadline(void) {
  static const struct {
    const char *name, *text;
    unsigned grid;
  } cases[] = {
      {"hold", "kernel hold did not end within 0.02 s", 1},
      {"hold", "kernel hold did not end within 0.02 s", 100},
      {"meet", "kernel meet did not end within 0.02 s", 1},
      {"meet", "kernel meet did not end within 0.02 s", 40},
      {"say", "kernel say did not end within 0.02 s", 1},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    CUdeviceptr open;
    bad_answers = 0;
    HOLDS(driver->set_kernel_deadline(0.02) == CUDA_SUCCESS);
    hang(cases[i].name, cases[i].grid, NULL, &open);
    check_lost(cases[i].text);
    renew();
    check_works();
    tap_ok(!bad_answers, "%u blocks of %s end at their deadline", cases[i].grid,
           cases[i].name);
  }
  bad_answers = 0;
  for (int round = 0; round < ROUNDS; round++) {
    CUdeviceptr open;
    HOLDS(driver->set_kernel_deadline(0.02) == CUDA_SUCCESS);
    hang(round % 2 ? "meet" : "hold", 1 + (unsigned)round % 5, NULL, &open);
    check_lost("did not end");
    renew();
    check_works();
  }
  tap_ok(!bad_answers, "time after time");
}


static void test_deadline_of_each(void) {
  CUdeviceptr p = new_memory(4000);
  int n = 1000, v = 1;
  void *params[] = {&p, &n, &v};
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph;
  CUgraphExec exec;
  bad_answers = 0;
  HOLDS(driver->set_kernel_deadline(0.4) == CUDA_SUCCESS);
  DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  for (int i = 0; i < SHORT; i++)
    launch(kernel("add"), 10, 100, s, params);
  DO(cuStreamEndCapture(s, &graph));
  DO(cuGraphInstantiate(&exec, graph, 0));
  double begin = seconds(CLOCK_MONOTONIC);
  int replays = 0;
  for (; seconds(CLOCK_MONOTONIC) - begin < 0.8; replays++) {
    HOLDS(driver->cuGraphLaunch(exec, s) == CUDA_SUCCESS);
    HOLDS(driver->cuStreamSynchronize(s) == CUDA_SUCCESS);
  }
  HOLDS(read_int(p) == replays * SHORT);
  tap_ok(!bad_answers, "short kernels run for longer than a deadline in all");
  DO(cuGraphExecDestroy(exec));
  DO(cuGraphDestroy(graph));
  renew();
}


static void test_deadline_in_graph(void) {
  CUdeviceptr open = new_memory(8), p = new_memory(4);
  void *params[] = {&open};
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph;
  CUgraphExec exec;
  bad_answers = 0;
  DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  push(p, 1, s);
  launch(kernel("hold"), 3, 64, s, params);
  push(p, 2, s);
  DO(cuStreamEndCapture(s, &graph));
  DO(cuGraphInstantiate(&exec, graph, 0));
  HOLDS(driver->set_kernel_deadline(0.02) == CUDA_SUCCESS);
  HOLDS(driver->cuGraphLaunch(exec, s) == CUDA_SUCCESS);
  check_lost("kernel hold did not end within 0.02 s");
  HOLDS(*(volatile int *)host_pointer(p) == 1);
  driver->cuGraphExecDestroy(exec);
  driver->cuGraphDestroy(graph);
  renew();
  tap_ok(!bad_answers, "a kernel of a graph ends at its deadline");
}


static void test_no_deadline(void) {
  CUdeviceptr open;
  bad_answers = 0;
  HOLDS(driver->set_kernel_deadline(-1) == CUDA_ERROR_INVALID_VALUE);
  HOLDS(driver->set_kernel_deadline(1e300) == CUDA_ERROR_INVALID_VALUE);
  HOLDS(driver->set_kernel_deadline(0.01) == CUDA_SUCCESS);
  HOLDS(driver->set_kernel_deadline(0) == CUDA_SUCCESS);
  hang("hold", 2, NULL, &open);
  usleep(50000);
  HOLDS(driver->cuStreamQuery(NULL) == CUDA_ERROR_NOT_READY);
  *(volatile int *)host_pointer(open) = 1;
  HOLDS(driver->cuCtxSynchronize() == CUDA_SUCCESS);
  tap_ok(!bad_answers, "no kernel ends before it likes without a deadline");
  DO(cuMemFree(open));
}


/* ---- the abort ---- */

/* Aborts when the int at `begun` is set; NULL: soon. */
static void *abort_later(void *begun) {
  if (!begun)
    usleep(20000);
  while (begun && !*(volatile int *)begun)
    usleep(100);
  HOLDS(driver->abort_device() == CUDA_SUCCESS);
  return NULL;
}


static void test_abort(void) {
  static const char *const names[] = {"hold", "meet", "say"};
  for (int i = 0; i < 3; i++) {
    CUdeviceptr open;
    pthread_t thread;
    char text[40];
    bad_answers = 0;
    hang(names[i], 5, NULL, &open);
    pthread_create(&thread, NULL, abort_later, (int *)host_pointer(open) + 1);
    snprintf(text, sizeof text, "kernel %s was aborted", names[i]);
    check_lost(text);
    pthread_join(thread, NULL);
    renew();
    check_works();
    tap_ok(!bad_answers, "%s is aborted", names[i]);
  }
}


static void test_abort_of_launches(void) {
  CUdeviceptr p = new_memory(4000);
  int n = 1000, v = 1;
  void *params[] = {&p, &n, &v};
  CUresult result = CUDA_SUCCESS;
  CUfunction add = kernel("add");
  pthread_t thread;
  bad_answers = 0;
  pthread_create(&thread, NULL, abort_later, NULL);
  while (result == CUDA_SUCCESS)
    result = launch(add, 10, 100, NULL, params);
  HOLDS(result == CUDA_ERROR_LAUNCH_TIMEOUT);
  check_lost("aborted");
  pthread_join(thread, NULL);
  renew();
  HOLDS(driver->abort_device() == CUDA_SUCCESS);
  check_lost("the device was aborted");
  DO(cuDevicePrimaryCtxRelease(0));
  HOLDS(driver->abort_device() == CUDA_ERROR_INVALID_CONTEXT);
  HOLDS(driver->cuDevicePrimaryCtxRetain(&context, 0) ==
        CUDA_ERROR_LAUNCH_TIMEOUT);
  DO(cuDevicePrimaryCtxReset(0));
  DO(cuDevicePrimaryCtxRetain(&context, 0));
  DO(cuCtxSetCurrent(context));
  DO(cuModuleLoadData(&module, image()));
  check_works();
  tap_ok(!bad_answers, "an abort ends launches without end, and idleness");
}


/* A WHILE node whose body holds no kernel, and whose value stays 1. */
static void test_abort_of_loop(void) {
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr p = new_memory(4);
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNode node;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  pthread_t thread;
  bad_answers = 0;
  DO(cuGraphCreate(&graph, 0));
  DO(cuGraphConditionalHandleCreate(&params.conditional.handle, graph, context,
                                    1, CU_GRAPH_COND_ASSIGN_DEFAULT));
  params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
  params.conditional.size = 1;
  params.conditional.ctx = context;
  DO(cuGraphAddNode(&node, graph, NULL, NULL, 0, &params));
  CUDA_MEMSET_NODE_PARAMS fill = {
      .dst = p, .elementSize = 4, .width = 1, .height = 1, .value = 1};
  DO(cuGraphAddMemsetNode(&node, params.conditional.phGraph_out[0], NULL, 0,
                          &fill, context));
  DO(cuGraphInstantiate(&exec, graph, 0));
  HOLDS(driver->set_kernel_deadline(0.005) == CUDA_SUCCESS);
  HOLDS(driver->cuGraphLaunch(exec, s) == CUDA_SUCCESS);
  pthread_create(&thread, NULL, abort_later, NULL);
  check_lost("the device was aborted");
  pthread_join(thread, NULL);
  driver->cuGraphExecDestroy(exec);
  driver->cuGraphDestroy(graph);
  renew();
  check_works();
  tap_ok(!bad_answers, "a loop of fills is aborted");
}


/* ---- isolated streams ---- */

/* A graph of one launch that adds 1 to 1000 ints at p. */
static CUgraphExec adder(CUstream s, CUdeviceptr p, CUgraph *graph) {
  int n = 1000, v = 1;
  void *params[] = {&p, &n, &v};
  CUgraphExec exec;
  DO(cuStreamBeginCapture(s, CU_STREAM_CAPTURE_MODE_GLOBAL));
  launch(kernel("add"), 10, 100, s, params);
  DO(cuStreamEndCapture(s, graph));
  DO(cuGraphInstantiate(&exec, *graph, 0));
  return exec;
}


/* What one stream is given: a kernel past its deadline, an illegal address, an
   abort.  Another replays on, the same executable too. */
static void test_isolated(void) {
  static const char *const cases[] = {"a deadline", "a fault", "an abort",
                                      "an abort of replays"};
  CUdeviceptr p = new_memory(4000), q = new_memory(4), bad = 64, open = 0;
  CUstream mine = new_stream(CU_STREAM_NON_BLOCKING);
  CUgraph graph;
  CUgraphExec exec = adder(mine, p, &graph);
  for (int i = 0; i < 4; i++) {
    CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
    const int before = read_int(p);
    int n = 1000, v = 1, replays = 0;
    void *params[] = {&bad, &n, &v};
    const CUresult code =
        i == 1 ? CUDA_ERROR_ILLEGAL_ADDRESS : CUDA_ERROR_LAUNCH_TIMEOUT;
    bad_answers = 0;
    HOLDS(driver->isolate_stream(NULL, 1) == CUDA_ERROR_INVALID_HANDLE);
    HOLDS(driver->isolate_stream(s, -1) == CUDA_ERROR_INVALID_VALUE);
    HOLDS(driver->isolate_stream(s, i ? 0 : 0.02) == CUDA_SUCCESS);
    if (i == 0 || i == 2)
      hang("hold", 5, s, &open);
    else if (i == 1)
      HOLDS(launch(kernel("add"), 10, 100, s, params) == CUDA_SUCCESS);
    for (int k = 0; i != 1 && k < 100; k++, replays += i == 3)
      HOLDS(driver->cuGraphLaunch(exec, s) == CUDA_SUCCESS || i != 3);
    for (int k = 0; k < 50; k++)
      HOLDS(driver->cuGraphLaunch(exec, mine) == CUDA_SUCCESS);
    if (i >= 2)
      HOLDS(driver->abort_stream(s) == CUDA_SUCCESS);
    HOLDS(driver->cuStreamSynchronize(s) == code);
    HOLDS(strstr(driver->failure_text(), i == 0   ? "did not end within 0.02 s"
                                         : i == 1 ? "kernel add touched"
                                                  : "the stream was aborted"));
    HOLDS(driver->cuStreamQuery(s) == code);
    HOLDS(driver->cuMemsetD32Async(q, 1, 1, s) == code);
    HOLDS(driver->cuGraphLaunch(exec, s) == code);
    HOLDS(driver->cuStreamSynchronize(mine) == CUDA_SUCCESS);
    HOLDS(driver->cuCtxSynchronize() == CUDA_SUCCESS);
    const int added = read_int(p) - before;
    HOLDS(added >= 50 && added <= 50 + replays);
    HOLDS(driver->renew_stream(s) == CUDA_SUCCESS);
    HOLDS(driver->cuGraphLaunch(exec, s) == CUDA_SUCCESS);
    HOLDS(driver->cuStreamSynchronize(s) == CUDA_SUCCESS);
    HOLDS(read_int(p) == before + added + 1);
    check_works();
    tap_ok(!bad_answers, "%s stays with its stream", cases[i]);
    DO(cuStreamDestroy(s));
    if (open)
      DO(cuMemFree(open));
    open = 0;
  }
  DO(cuGraphExecDestroy(exec));
  DO(cuGraphDestroy(graph));
  DO(cuStreamDestroy(mine));
  DO(cuMemFree(p));
  DO(cuMemFree(q));
}


/* ---- the reset ---- */

static void test_reset_retained(void) {
  CUdeviceptr open;
  bad_answers = 0;
  HOLDS(driver->set_kernel_deadline(0.02) == CUDA_SUCCESS);
  hang("hold", 1, NULL, &open);
  check_lost("did not end");
  HOLDS(driver->cuDevicePrimaryCtxReset(1) == CUDA_ERROR_INVALID_DEVICE);
  HOLDS(driver->cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
  HOLDS(cgl_host_live("streams") == 0 && cgl_host_live("modules") == 0);
  HOLDS(cgl_host_live("allocations") == 0 && cgl_host_live("bytes") == 0);
  DO(cuModuleLoadData(&module, image()));
  DO(set_kernel_deadline(0));
  check_works();
  tap_ok(!bad_answers, "a context that is retained stays, as good as new");
}


/* ---- many threads, one of which hangs ---- */

static atomic_int lost;
static CUfunction short_kernel;

static void *work_until_lost(void *user) {
  int number = *(int *)user;
  CUdeviceptr p = 0, open;
  CUstream s = NULL;
  CUresult result = driver->cuCtxSetCurrent(context);
  if (!result)
    result = driver->cuStreamCreate(&s, CU_STREAM_NON_BLOCKING);
  if (!result)
    result = driver->cuMemAlloc(&p, 4000);
  for (int round = 0; !result; round++) {
    int n = 1000, v = number;
    void *params[] = {&p, &n, &v};
    result = launch(short_kernel, 10, 100, s, params);
    if (!result && number == 7 && round == 20)
      hang("hold", 4, s, &open);
    if (!result)
      result = driver->cuStreamSynchronize(s);
  }
  lost += result == CUDA_ERROR_LAUNCH_TIMEOUT;
  return NULL;
}


static void test_threads(void) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  for (int round = 0; round < 3; round++) {
    bad_answers = 0;
    lost = 0;
    short_kernel = kernel("add");
    /* Long enough for any machine to run the short kernels. */
    HOLDS(driver->set_kernel_deadline(0.5) == CUDA_SUCCESS);
    for (int i = 0; i < THREADS; i++) {
      numbers[i] = i;
      pthread_create(&threads[i], NULL, work_until_lost, &numbers[i]);
    }
    for (int i = 0; i < THREADS; i++)
      pthread_join(threads[i], NULL);
    renew();
    check_works();
    tap_ok(lost == THREADS && !bad_answers,
           "one of %d threads hangs, and all go on", THREADS);
  }
}


static void child_environment(void) {
  CUdeviceptr open;
  hang("hold", 1, NULL, &open);
  NEED(driver->cuCtxSynchronize() == CUDA_ERROR_LAUNCH_TIMEOUT);
  NEED(strstr(driver->failure_text(), "within 0.05 s"));
}


/* The end of the process waits for no watcher, nor the watcher for it. */
static void child_exit(void) {
  CUdeviceptr open;
  NEED(driver->set_kernel_deadline(1000) == CUDA_SUCCESS);
  hang("hold", 1, NULL, &open);
  usleep(10000);
}


static const child_case cases[] = {
    {"environment", child_environment},
    {"exit", child_exit},
};


int main(int argc, char **argv) {
  image();
  run_child(argc, argv, cases, sizeof cases / sizeof *cases);
  open_device();
  test_no_deadline();
  test_deadline();
  test_deadline_of_each();
  test_deadline_in_graph();
  test_abort();
  test_abort_of_launches();
  test_abort_of_loop();
  test_isolated();
  test_reset_retained();
  test_threads();
  tap_ok(child("environment", "CGRAPHLUA_KERNEL_SECONDS", "0.05"),
         "the environment sets the deadline");
  tap_ok(child("exit", NULL, NULL), "a process ends with a kernel underway");
  DO(cuDevicePrimaryCtxRelease(0));
  return tap_done();
}
