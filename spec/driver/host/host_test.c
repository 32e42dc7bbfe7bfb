/* The host device's streams, events, kernels and faults, through the table. */
#define _GNU_SOURCE
#include "driver/host/host_support.h"

#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>


/* ---- streams ---- */

static void test_asynchronous(void) {
  gate g;
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr p = new_memory(4);
  IS(SUCCESS, cuStreamQuery(s));
  gate_close(&g, s);
  for (int i = 1; i <= 5; i++)
    push(p, i, s);
  IS(ERROR_NOT_READY, cuStreamQuery(s));
  gate_open(&g);
  IS(SUCCESS, cuStreamSynchronize(s));
  IS(SUCCESS, cuStreamQuery(s));
  tap_ok(read_int(p) == 12345, "a stream runs its work in order");
  DO(cuMemFree(p));
  IS(SUCCESS, cuStreamDestroy(s));
  IS(ERROR_INVALID_HANDLE, cuStreamSynchronize(s));
  IS(ERROR_INVALID_HANDLE, cuStreamDestroy(s));
}


static void test_destroyed_stream_runs_on(void) {
  gate g;
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr p = new_memory(4);
  gate_close(&g, s);
  push(p, 7, s);
  DO(cuStreamDestroy(s));
  gate_open(&g);
  DO(cuCtxSynchronize());
  tap_ok(read_int(p) == 7, "what a destroyed stream was given still runs");
  DO(cuMemFree(p));
}


static void test_legacy_order(void) {
  gate g;
  CUstream a = new_stream(CU_STREAM_DEFAULT), b = new_stream(CU_STREAM_DEFAULT);
  CUstream n = new_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr p = new_memory(4), q = new_memory(4);
  gate_close(&g, a);
  push(p, 1, a);
  push(p, 2, NULL);
  push(p, 3, b);
  push(p, 4, CU_STREAM_LEGACY);
  push(p, 5, CU_STREAM_PER_THREAD);
  push(q, 9, n);
  IS(SUCCESS, cuStreamSynchronize(n));
  IS(ERROR_NOT_READY, cuStreamQuery(b));
  IS(ERROR_NOT_READY, cuStreamQuery(NULL));
  gate_open(&g);
  DO(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  tap_ok(read_int(p) == 12345,
         "the legacy stream comes after and before all blocking streams");
  tap_ok(read_int(q) == 9, "a non-blocking stream does not wait for it");
  gate_close(&g, n);
  push(p, 6, NULL);
  IS(SUCCESS, cuStreamSynchronize(NULL));
  IS(ERROR_NOT_READY, cuStreamQuery(n));
  gate_open(&g);
  DO(cuStreamSynchronize(n));
  tap_ok(read_int(p) == 123456, "nor it for a non-blocking stream");
  DO(cuStreamDestroy(a));
  DO(cuStreamDestroy(b));
  DO(cuStreamDestroy(n));
  DO(cuMemFree(p));
  DO(cuMemFree(q));
}


static void test_stream_properties(void) {
  int least = 9, greatest = 9, priority = 9;
  unsigned flags = 9;
  CUstream s;
  DO(cuCtxGetStreamPriorityRange(&least, &greatest));
  tap_ok(least == 0 && greatest == -5, "priorities go from 0 to -5");
  IS(SUCCESS, cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, -100));
  IS(SUCCESS, cuStreamGetPriority(s, &priority));
  IS(SUCCESS, cuStreamGetFlags(s, &flags));
  tap_ok(priority == -5 && flags == CU_STREAM_NON_BLOCKING,
         "a priority out of range is taken to the nearest");
  DO(cuStreamDestroy(s));
  IS(ERROR_INVALID_VALUE, cuStreamCreate(&s, 2));
  IS(ERROR_INVALID_VALUE, cuStreamCreate(NULL, 0));
  IS(ERROR_INVALID_HANDLE, cuStreamDestroy(NULL));
  IS(ERROR_INVALID_HANDLE, cuStreamDestroy(CU_STREAM_PER_THREAD));
  IS(ERROR_INVALID_VALUE, cuLaunchHostFunc(NULL, NULL, NULL));
}


typedef struct inside {
  CUresult alloc, query, name;
  CUstream stream;
  CUresult status;
} inside;

static void call_inside(void *user) {
  inside *in = user;
  CUdeviceptr p;
  const char *text;
  in->alloc = driver->cuMemAlloc(&p, 64);
  in->query = driver->cuStreamQuery(in->stream);
  in->name = driver->cuGetErrorName(1, &text);
}


static void callback_inside(CUstream stream, CUresult status, void *user) {
  inside *in = user;
  in->status = status;
  in->stream = stream;
  CUdeviceptr p;
  in->alloc = driver->cuMemAlloc(&p, 64);
}


static void test_callbacks(void) {
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  inside in = {.stream = new_stream(CU_STREAM_NON_BLOCKING)};
  DO(cuLaunchHostFunc(s, call_inside, &in));
  DO(cuStreamSynchronize(s));
  answers(CUDA_ERROR_NOT_PERMITTED, in.alloc, "cuMemAlloc in a host function");
  answers(CUDA_SUCCESS, in.query, "cuStreamQuery in a host function");
  answers(CUDA_SUCCESS, in.name, "cuGetErrorName in a host function");
  DO(cuStreamDestroy(in.stream));
  inside called = {.status = -1};
  DO(cuStreamAddCallback(s, callback_inside, &called, 0));
  DO(cuStreamSynchronize(s));
  tap_ok(called.status == CUDA_SUCCESS && called.stream == s,
         "a callback gets its stream and the status");
  answers(CUDA_ERROR_NOT_PERMITTED, called.alloc, "cuMemAlloc in a callback");
  IS(ERROR_INVALID_VALUE, cuStreamAddCallback(s, callback_inside, &called, 1));
  DO(cuStreamDestroy(s));
}


/* ---- events ---- */

static void test_events_order_streams(void) {
  gate g;
  CUstream a = new_stream(CU_STREAM_NON_BLOCKING);
  CUstream b = new_stream(CU_STREAM_NON_BLOCKING);
  CUevent e;
  DO(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  CUdeviceptr p = new_memory(4);
  IS(SUCCESS, cuEventQuery(e));
  IS(SUCCESS, cuStreamWaitEvent(b, e, 0));
  gate_close(&g, a);
  push(p, 1, a);
  DO(cuEventRecord(e, a));
  DO(cuStreamWaitEvent(b, e, 0));
  push(p, 2, b);
  IS(ERROR_NOT_READY, cuEventQuery(e));
  IS(ERROR_NOT_READY, cuStreamQuery(b));
  DO(cuEventDestroy(e));
  gate_open(&g);
  DO(cuStreamSynchronize(b));
  tap_ok(read_int(p) == 12, "a wait outlives its event");
  IS(ERROR_INVALID_HANDLE, cuEventQuery(e));
  IS(ERROR_INVALID_HANDLE, cuEventRecord(e, a));
  IS(ERROR_INVALID_HANDLE, cuEventDestroy(NULL));
  IS(ERROR_INVALID_VALUE, cuEventCreate(&e, 8));
  DO(cuStreamDestroy(a));
  DO(cuStreamDestroy(b));
  DO(cuMemFree(p));
}


static void test_last_event_ends_stream(void) {
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  CUevent e;
  int wrong_streams = 0, wrong_events = 0;
  DO(cuEventCreate(&e, CU_EVENT_DISABLE_TIMING));
  for (int i = 0; i < 10000; i++) {
    DO(cuEventRecord(e, s));
    DO(cuEventSynchronize(e));
    wrong_streams += driver->cuStreamQuery(s) != CUDA_SUCCESS;
    DO(cuEventRecord(e, s));
    while (driver->cuStreamQuery(s) != CUDA_SUCCESS)
      sched_yield();
    wrong_events += driver->cuEventQuery(e) != CUDA_SUCCESS;
  }
  tap_ok(wrong_streams == 0,
         "a stream is done when its last event is: "
         "%d times not",
         wrong_streams);
  tap_ok(wrong_events == 0, "an event is done when its stream is: %d times not",
         wrong_events);
  DO(cuEventDestroy(e));
  DO(cuStreamDestroy(s));
}


static void test_elapsed(void) {
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  CUevent start, end, plain;
  gate g;
  float ms = 0, back = 0;
  DO(cuEventCreate(&start, CU_EVENT_DEFAULT));
  DO(cuEventCreate(&end, CU_EVENT_DEFAULT));
  DO(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
  DO(cuEventRecord(start, s));
  IS(ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, start, end));
  gate_close(&g, s);
  DO(cuEventRecord(end, s));
  DO(cuEventRecord(plain, s));
  IS(ERROR_NOT_READY, cuEventElapsedTime(&ms, start, end));
  IS(ERROR_INVALID_HANDLE, cuEventElapsedTime(&ms, start, plain));
  while (!atomic_load(&g.reached))
    usleep(200);
  usleep(20000);
  gate_open(&g);
  DO(cuEventSynchronize(end));
  IS(SUCCESS, cuEventElapsedTime(&ms, start, end));
  IS(SUCCESS, cuEventElapsedTime(&back, end, start));
  tap_ok(ms > 19.5f && back == -ms, "20 ms take %.2f ms", ms);
  IS(ERROR_ILLEGAL_STATE,
     cuEventRecordWithFlags(start, s, CU_EVENT_RECORD_EXTERNAL));
  IS(ERROR_ILLEGAL_STATE, cuStreamWaitEvent(s, end, CU_EVENT_WAIT_EXTERNAL));
  DO(cuStreamSynchronize(s));
  DO(cuEventDestroy(start));
  DO(cuEventDestroy(end));
  DO(cuEventDestroy(plain));
  DO(cuStreamDestroy(s));
}


static void test_idle_is_asleep(void) {
  DO(cuCtxSynchronize());
  usleep(20000);
  double before = seconds(CLOCK_PROCESS_CPUTIME_ID);
  usleep(200000);
  double used = seconds(CLOCK_PROCESS_CPUTIME_ID) - before;
  tap_ok(used < 0.01, "an idle device uses no CPU: %.2f ms in 200 ms",
         used * 1e3);
}


/* ---- kernels ---- */

static void test_launch_checks(void) {
  CUfunction f = kernel("empty"), put = kernel("put");
  IS(ERROR_INVALID_VALUE,
     cuLaunchKernel(f, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
  IS(ERROR_INVALID_VALUE,
     cuLaunchKernel(f, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL, NULL));
  IS(ERROR_INVALID_VALUE,
     cuLaunchKernel(f, 1, 1, 1, 1, 1, 65, 0, NULL, NULL, NULL));
  IS(ERROR_INVALID_VALUE,
     cuLaunchKernel(f, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  IS(ERROR_INVALID_VALUE,
     cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 49153, NULL, NULL, NULL));
  IS(SUCCESS, cuFuncSetAttribute(
                  f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 232448));
  IS(SUCCESS, cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 232448, NULL, NULL, NULL));
  IS(ERROR_INVALID_VALUE,
     cuFuncSetAttribute(f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                        232449));
  IS(ERROR_INVALID_VALUE,
     cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  IS(ERROR_INVALID_HANDLE,
     cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
  CUlaunchAttribute a = {.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE};
  a.value.cooperative = 1;
  CUlaunchConfig c = {2, 1, 1, 32, 1, 1, 0, NULL, &a, 1};
  IS(ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, cuLaunchKernelEx(&c, f, NULL, NULL));
  c.gridDimX = 1;
  IS(SUCCESS, cuLaunchKernelEx(&c, f, NULL, NULL));
  DO(cuStreamSynchronize(NULL));
}


static void test_parameters(void) {
  static const size_t offsets[] = {0, 8, 16, 24}, sizes[] = {1, 8, 2, 8};
  CUfunction f = kernel("mixed");
  size_t offset, size;
  bool same = true;
  for (size_t i = 0; i < 4; i++) {
    DO(cuFuncGetParamInfo(f, i, &offset, &size));
    same = same && offset == offsets[i] && size == sizes[i];
  }
  tap_ok(same, "parameters lie as in C");
  IS(ERROR_INVALID_VALUE, cuFuncGetParamInfo(f, 4, &offset, &size));
  CUdeviceptr p = new_memory(64);
  struct {
    CUdeviceptr p;
    long i;
    int v;
  } buffer = {p, 3, 77};
  size_t bytes = sizeof buffer;
  CUfunction put = kernel("put");
  void *extra[] = {(void *)1, &buffer, (void *)2, &bytes, NULL};
  IS(ERROR_LAUNCH_OUT_OF_RESOURCES,
     cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
  bytes = 20; /* without what C pads behind the last one */
  IS(SUCCESS, cuLaunchKernel(put, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra));
  tap_ok(read_int(p + 12) == 77, "parameters come through a buffer too");
  DO(cuMemFree(p));
}


static void test_many_blocks(void) {
  enum { N = 1 << 20 };
  CUdeviceptr p = new_memory(N * sizeof(int)), out = new_memory(4);
  int n = N, v = 3;
  void *add[] = {&p, &n, &v};
  void *sum[] = {&p, &out};
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  for (int i = 0; i < 7; i++)
    launch(kernel("add"), N / 256, 256, s, add);
  launch(kernel("total"), N / 256, 256, s, sum);
  DO(cuStreamSynchronize(s));
  tap_ok(read_int(out) == 21 * N, "every block ran once, barriers included");
  DO(cuStreamDestroy(s));
  DO(cuMemFree(p));
  DO(cuMemFree(out));
}


/* ---- faults, each in a process of its own ---- */

static void put_at(CUdeviceptr p, long i) {
  int v = 5;
  void *params[] = {&p, &i, &v};
  NEED(launch(kernel("put"), 1, 1, NULL, params) == CUDA_SUCCESS);
}


static void child_fault(void) {
  CUdeviceptr p = new_memory(1000);
  long i = 1 << 14;
  int v = 1;
  CUfunction put = kernel("put"), empty = kernel("empty");
  void *params[] = {&p, &i, &v};
  NEED(launch(put, 1, 1, NULL, params) == CUDA_SUCCESS);
  NEED(driver->cuStreamSynchronize(NULL) == CUDA_ERROR_ILLEGAL_ADDRESS);
  NEED(launch(empty, 1, 1, NULL, NULL) == CUDA_ERROR_ILLEGAL_ADDRESS);
  NEED(strstr(driver->failure_text(), "past the end of 1000 bytes"));
  CUstream s;
  NEED(driver->cuStreamCreate(&s, 0) == CUDA_ERROR_ILLEGAL_ADDRESS);
  NEED(driver->cuMemFree(p) == CUDA_ERROR_ILLEGAL_ADDRESS);
  NEED(driver->cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
}


/* The sticky error answers everything, and no new context ends it. */
static void fail_with(const char *name, unsigned grid, void **params,
                      CUresult code) {
  CUfunction f = kernel(name);
  NEED(launch(f, grid, 32, NULL, params) == CUDA_SUCCESS);
  NEED(driver->cuStreamSynchronize(NULL) == code);
  NEED(driver->cuCtxSynchronize() == code);
  NEED(strstr(driver->failure_text(), name));
  printf("# %s\n", driver->failure_text());
  CUdeviceptr p;
  NEED(driver->cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  NEED(cgl_host_live("streams") == 0 && cgl_host_live("modules") == 0);
  NEED(cgl_host_live("allocations") == 0 && cgl_host_live("bytes") == 0);
  NEED(driver->cuMemAlloc(&p, 64) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  NEED(driver->cuDevicePrimaryCtxRetain(&context, 0) == code);
  NEED(driver->cuMemAlloc(&p, 64) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
}


static void child_tight(void) {
  CUdeviceptr p;
  NEED(driver->cuMemAlloc(&p, 1001 * 4) == CUDA_SUCCESS);
  put_at(p, 0);
  put_at(p, 1000);
  NEED(read_int(p + 4000) == 5);
  long i = 1001;
  int v = 1;
  void *params[] = {&p, &i, &v};
  fail_with("put", 1, params, CUDA_ERROR_ILLEGAL_ADDRESS);
}


static void child_before(void) {
  CUdeviceptr p = new_memory(64);
  long i = -16;
  int v = 1;
  void *params[] = {&p, &i, &v};
  fail_with("put", 1, params, CUDA_ERROR_ILLEGAL_ADDRESS);
}


static void child_one_block(void) {
  CUdeviceptr p = new_memory(4000);
  int n = 1000;
  void *params[] = {&p, &n};
  fail_with("lone", 1000, params, CUDA_ERROR_ILLEGAL_ADDRESS);
}


static void child_divide(void) {
  CUdeviceptr p = new_memory(64);
  void *params[] = {&p};
  fail_with("divide", 1, params, CUDA_ERROR_LAUNCH_FAILED);
}


static void child_trap(void) {
  CUfunction f = kernel("trap");
  NEED(launch(f, 1, 32, NULL, NULL) == CUDA_SUCCESS);
  CUresult r = driver->cuStreamSynchronize(NULL);
  NEED(r == CUDA_ERROR_LAUNCH_FAILED || r == CUDA_ERROR_ILLEGAL_INSTRUCTION);
}


static void child_fiber(void) {
  CUdeviceptr p = new_memory(64);
  void *params[] = {&p};
  fail_with("fall", 3, params, CUDA_ERROR_ILLEGAL_ADDRESS);
}


static void child_apart(void) {
  fail_with("apart", 2, NULL, CUDA_ERROR_LAUNCH_FAILED);
}


static void child_deep(void) {
  CUdeviceptr p = new_memory(64);
  void *params[] = {&p};
  fail_with("deep", 1, params, CUDA_ERROR_HARDWARE_STACK_ERROR);
}


static sigjmp_buf jump;

static void on_fault(int number) {
  (void)number;
  siglongjmp(jump, 1);
}


/* A fault of the program's own goes to the program's own handler. */
static void child_chain(void) {
  DO(cuDevicePrimaryCtxRelease(0));
  signal(SIGSEGV, on_fault);
  char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  open_device();
  CUdeviceptr p = new_memory(64);
  push(p, 4, NULL);
  NEED(read_int(p) == 4);
  if (sigsetjmp(jump, 1) == 0) {
    *(volatile char *)page = 1;
    NEED(!"reached");
  }
  put_at(p, 1 << 14);
  NEED(driver->cuStreamSynchronize(NULL) == CUDA_ERROR_ILLEGAL_ADDRESS);
}


/* Two host functions that wait for each other need two workers, or one that
   stands in. */
static void child_stand_in(void) {
  gate g;
  CUstream a = new_stream(CU_STREAM_NON_BLOCKING);
  CUstream b = new_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr p = new_memory(4);
  gate_close(&g, a);
  push(p, 6, b);
  NEED(driver->cuStreamSynchronize(b) == CUDA_SUCCESS);
  gate_open(&g);
  NEED(driver->cuStreamSynchronize(a) == CUDA_SUCCESS);
  NEED(read_int(p) == 6);
}


/* With one worker, the urgent stream goes first. */
static void child_priority(void) {
  CUstream a, b, h = new_stream(CU_STREAM_NON_BLOCKING);
  volatile int *open;
  NEED(driver->cuMemAllocHost((void **)&open, 64) == CUDA_SUCCESS);
  *open = 0;
  DO(cuStreamCreateWithPriority(&a, CU_STREAM_NON_BLOCKING, 0));
  DO(cuStreamCreateWithPriority(&b, CU_STREAM_NON_BLOCKING, -1));
  CUdeviceptr p = new_memory(4);
  void *params[] = {&open};
  NEED(launch(kernel("hold"), 1, 1, h, params) == CUDA_SUCCESS);
  usleep(10000);
  push(p, 2, a);
  push(p, 1, b);
  *open = 1;
  DO(cuCtxSynchronize());
  NEED(read_int(p) == 12);
}


static void forever(void *reached) {
  atomic_store((atomic_bool *)reached, true);
  for (;;)
    pause();
}


/* The end of the process does not wait for what was queued. */
static void child_exit(void) {
  CUstream s = new_stream(CU_STREAM_NON_BLOCKING);
  CUdeviceptr p = new_memory(4);
  atomic_bool reached = false;
  DO(cuLaunchHostFunc(s, forever, &reached));
  for (int i = 0; i < 100; i++)
    push(p, i, s);
  while (!atomic_load(&reached))
    usleep(100);
}


static const child_case cases[] = {
    {"fault", child_fault},       {"tight", child_tight},
    {"before", child_before},     {"one_block", child_one_block},
    {"divide", child_divide},     {"trap", child_trap},
    {"chain", child_chain},       {"stand_in", child_stand_in},
    {"priority", child_priority}, {"exit", child_exit},
    {"fiber", child_fiber},       {"apart", child_apart},
    {"deep", child_deep},
};


static void test_faults(void) {
  tap_ok(child("fault", NULL, NULL),
         "a write past an allocation is an illegal address, and sticky");
  tap_ok(child("before", "CGRAPHLUA_HOST_GUARD", "0"),
         "so is one before it; a new context is a fresh device");
  tap_ok(child("tight", "CGRAPHLUA_HOST_GUARD", "1"),
         "an overrun by one element is caught under CGRAPHLUA_HOST_GUARD");
  tap_ok(child("one_block", NULL, NULL),
         "one block of many faults, the launch ends");
  tap_ok(child("divide", NULL, NULL), "an integer division by zero is caught");
  tap_ok(child("trap", NULL, NULL), "__trap ends the launch");
  tap_ok(child("fiber", NULL, NULL), "a fault between barriers is caught");
  tap_ok(child("apart", NULL, NULL), "threads that wait for different things");
  tap_ok(child("deep", NULL, NULL), "a kernel that overflows its stack");
  tap_ok(child("chain", NULL, NULL), "the program keeps its own handler");
  tap_ok(child("stand_in", "CGRAPHLUA_HOST_THREADS", "1"),
         "a blocked host function does not block other streams");
  tap_ok(child("priority", "CGRAPHLUA_HOST_THREADS", "1"),
         "the stream of the higher priority goes first");
  tap_ok(child("exit", NULL, NULL), "a process ends with work queued");
}


/* ---- many threads ---- */

enum { THREADS = 6, ROUNDS = 120, LENGTH = 3000 };

static _Atomic int wrong;

static void *drive(void *user) {
  unsigned seed = (unsigned)(uintptr_t)user;
  DO(cuCtxSetCurrent(context));
  CUstream s = new_stream(seed & 1), t = new_stream(CU_STREAM_NON_BLOCKING);
  CUevent e;
  DO(cuEventCreate(&e, 0));
  int *host;
  DO(cuMemAllocHost((void **)&host, (LENGTH + 1) * sizeof(int)));
  for (int round = 0; round < ROUNDS; round++) {
    CUdeviceptr p, q;
    DO(cuMemAllocAsync(&p, LENGTH * sizeof(int), s));
    DO(cuMemAllocAsync(&q, LENGTH * sizeof(int), s));
    DO(cuMemsetD32Async(p, (unsigned)round, LENGTH, s));
    int n = LENGTH, v = (int)seed;
    void *params[] = {&p, &n, &v};
    if (launch(kernel("add"), LENGTH / 100, 100, s, params))
      wrong++;
    DO(cuEventRecord(e, s));
    DO(cuStreamWaitEvent(t, e, 0));
    DO(cuMemcpyDtoDAsync(q, p, LENGTH * sizeof(int), t));
    DO(cuMemcpyDtoHAsync(host, q, LENGTH * sizeof(int), t));
    DO(cuMemFreeAsync(p, t));
    DO(cuMemFreeAsync(q, t));
    DO(cuStreamSynchronize(t));
    for (int i = 0; i < LENGTH; i++)
      if (host[i] != round + (int)seed)
        wrong++;
    if (round % 40 == 7)
      push((CUdeviceptr)(uintptr_t)(host + LENGTH), 0, NULL);
    if (round % 40 == 9)
      DO(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  }
  DO(cuStreamSynchronize(NULL));
  DO(cuStreamDestroy(s));
  DO(cuStreamDestroy(t));
  DO(cuEventDestroy(e));
  DO(cuMemFreeHost(host));
  return NULL;
}


static void test_threads(void) {
  pthread_t threads[THREADS];
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, drive, (void *)(uintptr_t)(i + 1));
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  tap_ok(wrong == 0, "%d threads with streams of their own: %d wrong", THREADS,
         wrong);
}


/* What a thread had of a device that went is not taken for the next one's. */
static void test_device_anew(void) {
  DO(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  DO(cuDevicePrimaryCtxRelease(0));
  tap_ok(cgl_host_live("streams") == 0, "a device takes its streams along");
  DO(cuDevicePrimaryCtxRetain(&context, 0));
  DO(cuCtxSetCurrent(context));
  CUdeviceptr p = new_memory(4);
  DO(cuMemsetD32Async(p, 77, 1, CU_STREAM_PER_THREAD));
  tap_ok(cgl_host_live("streams") == 1, "the thread's stream is made anew");
  DO(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  tap_ok(read_int(p) == 77, "and does its work");
  DO(cuMemFree(p));
}


int main(int argc, char **argv) {
  image();
  run_child(argc, argv, cases, sizeof cases / sizeof *cases);
  open_device();
  test_asynchronous();
  test_destroyed_stream_runs_on();
  test_legacy_order();
  test_stream_properties();
  test_callbacks();
  test_events_order_streams();
  test_last_event_ends_stream();
  test_elapsed();
  test_launch_checks();
  test_parameters();
  test_many_blocks();
  test_threads();
  test_idle_is_asleep();
  test_faults();
  DO(cuModuleUnload(module));
  test_device_anew();
  DO(cuDevicePrimaryCtxRelease(0));
  static const char *const kinds[] = {"streams", "events", "modules",
                                      "allocations", "bytes"};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
    tap_ok(cgl_host_live(kinds[i]) == 0, "no %s are alive", kinds[i]);
  return tap_done();
}
