/* Streams, events and host functions outside captures: priorities, flags,
   order, and what a host function may call. */
#include "driver/conformance/ask.h"

#include <string.h>

static CUstream s, t;
static CUevent ev, ev2;


/* ---- what ran in which order ---- */

static char order[16];
static _Atomic int ran;


static void put(void *letter) {
  int i = ran++;
  if (i < (int)sizeof order - 1)
    order[i] = *(const char *)letter;
}


static void clear_order(void) {
  memset(order, 0, sizeof order);
  ran = 0;
}


static void put_in(CUstream stream, const char *letter) {
  cu->cuLaunchHostFunc(stream, put, (void *)letter);
}


/* Two streams; the first of them is late with an "a". */
static void begin_order(CUstream late, CUstream other) {
  clear_order();
  sleep_on();
  s = late;
  t = other;
  ev = EV();
  cu->cuLaunchHostFunc(s, doze, NULL);
  put_in(s, "a");
}


/* "abc" as 123. */
static void note_order(void) {
  long value = 0;
  for (int i = 0; i < ran && order[i] != '\0'; i++)
    value = value * 10 + (order[i] - 'a' + 1);
  num("order", value);
}


static void in_one_stream(void) {
  begin_order(NS(), NULL);
  K(s);
  put_in(s, "b");
  cu->cuMemsetD8Async(d, 0, 64, s);
  put_in(s, "c");
  wake();
  S(cuStreamSynchronize(s));
  note_order();
}


static void across_streams(void) {
  begin_order(NS(), NS());
  S(cuEventRecord(ev, s));
  put_in(s, "b");
  S(cuStreamWaitEvent(t, ev, 0));
  wake();
  S(cuStreamSynchronize(s));
  put_in(t, "c");
  S(cuStreamSynchronize(t));
  note_order();
}


static void event_again(void) {
  clear_order();
  s = NS();
  t = NS();
  CUstream u = NS();
  ev = EV();
  static int few = 10; /* "a" may have to wait for one of them */
  sleep_on();
  cu->cuLaunchHostFunc(u, doze, &few);
  cu->cuLaunchHostFunc(u, doze, &few);
  S(cuEventRecord(ev, s));
  S(cuStreamWaitEvent(t, ev, 0));
  S(cuEventRecord(ev, u)); /* does not hold up what awaits the first */
  put_in(t, "a");
  put_in(u, "b");
  S(cuStreamSynchronize(t));
  S(cuEventQuery(ev));
  wake();
  S(cuStreamSynchronize(u));
  S(cuEventQuery(ev));
  note_order();
}


static void event_destroyed(void) {
  begin_order(NS(), NS());
  cu->cuEventRecord(ev, s);
  S(cuStreamWaitEvent(t, ev, 0));
  S(cuEventDestroy(ev));
  put_in(t, "b");
  wake();
  S(cuStreamSynchronize(t));
  note_order();
}


static void stream_destroyed(void) {
  begin_order(NS(), NULL);
  cu->cuEventRecord(ev, s);
  S(cuStreamDestroy(s));
  S(cuEventQuery(ev));
  wake();
  S(cuEventSynchronize(ev));
  note_order();
}


static void legacy_order(void) {
  begin_order(BS(), BS());
  put_in(CU_STREAM_LEGACY, "b");
  put_in(t, "c");
  wake();
  S(cuStreamSynchronize(t));
  note_order();
}


static void non_blocking_order(void) {
  begin_order(BS(), NS());
  put_in(CU_STREAM_LEGACY, "b");
  K(t); /* awaits nobody */
  S(cuStreamSynchronize(t));
  S(cuStreamQuery(s));
  wake();
  S(cuStreamSynchronize(CU_STREAM_LEGACY));
  note_order();
}


static void per_thread_order(void) {
  begin_order(BS(), NULL);
  K(CU_STREAM_PER_THREAD); /* two streams, no order */
  S(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  S(cuStreamQuery(s));
  wake();
  put_in(CU_STREAM_LEGACY, "b");
  S(cuCtxSynchronize());
  note_order();
}


/* ---- streams ---- */

static void priority_range(void) {
  int least = 9, greatest = 9;
  S(cuCtxGetStreamPriorityRange(&least, &greatest));
  num("least", least);
  num("greatest", greatest);
  S(cuCtxGetStreamPriorityRange(&least, 0));
  S(cuCtxGetStreamPriorityRange(0, &greatest));
  S(cuCtxGetStreamPriorityRange(0, 0));
}


static void priorities(void) {
  for (int p = 1; p > -7; p--) {
    int got = 9;
    cu->cuStreamCreateWithPriority(&s, CU_STREAM_NON_BLOCKING, p);
    S(cuStreamGetPriority(s, &got));
    num("priority", got);
  }
}


static void built_in(void) {
  int priority = 9;
  unsigned flags = 9;
  S(cuStreamGetPriority(0, &priority));
  num("priority", priority);
  S(cuStreamGetPriority(CU_STREAM_LEGACY, &priority));
  S(cuStreamGetPriority(CU_STREAM_PER_THREAD, &priority));
  num("priority", priority);
  S(cuStreamGetFlags(CU_STREAM_LEGACY, &flags));
  num("flags", flags);
  S(cuStreamDestroy(CU_STREAM_LEGACY));
  S(cuStreamDestroy(CU_STREAM_PER_THREAD));
  S(cuStreamQuery(CU_STREAM_PER_THREAD));
}


static void no_place(void) {
  s = NS();
  S(cuStreamCreate(0, 0));
  S(cuStreamCreateWithPriority(0, 0, 0));
  S(cuStreamGetFlags(s, 0));
  S(cuStreamGetPriority(s, 0));
  S(cuStreamIsCapturing(s, 0));
  S(cuEventCreate(0, 0));
  S(cuLaunchHostFunc(s, 0, 0));
  S(cuStreamAddCallback(s, 0, 0, 0));
}


static void bad_flags(void) {
  S(cuStreamCreate(&s, 2));
  S(cuStreamCreate(&s, CU_STREAM_NON_BLOCKING | 2));
  S(cuStreamCreateWithPriority(&s, 8, 0));
  s = NS();
  ev = EV();
  S(cuStreamWaitEvent(s, ev, 2));
  S(cuEventRecordWithFlags(ev, s, 2));
  S(cuStreamAddCallback(s, (CUstreamCallback)(void *)doze, 0, 1));
}


/* ---- events ---- */

static void event_flags(void) {
  S(cuEventCreate(&ev, CU_EVENT_BLOCKING_SYNC));
  S(cuEventCreate(&ev, CU_EVENT_DISABLE_TIMING));
  S(cuEventCreate(&ev, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING));
  S(cuEventCreate(&ev, CU_EVENT_INTERPROCESS));
  S(cuEventCreate(&ev, CU_EVENT_INTERPROCESS | CU_EVENT_BLOCKING_SYNC));
  S(cuEventCreate(&ev, 8));
  S(cuEventCreate(&ev, 16));
}


static void event_life(void) {
  s = NS();
  cu->cuEventCreate(&ev, CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING);
  S(cuEventSynchronize(ev));
  sleep_on();
  cu->cuLaunchHostFunc(s, doze, NULL);
  S(cuEventRecord(ev, s));
  S(cuEventQuery(ev));
  wake();
  S(cuEventSynchronize(ev));
  S(cuEventQuery(ev));
  S(cuEventDestroy(ev));
  S(cuEventDestroy(0));
}


static void elapsed(void) {
  float ms = -1;
  s = NS();
  ev = EV();
  ev2 = EV();
  cu->cuEventRecord(ev, s);
  cu->cuLaunchHostFunc(s, doze, NULL);
  cu->cuEventRecord(ev2, s);
  cu->cuStreamSynchronize(s);
  S(cuEventElapsedTime(&ms, ev, ev));
  num("nothing", ms == 0);
  S(cuEventElapsedTime(&ms, ev2, ev));
  num("negative", ms < -20);
  S(cuEventElapsedTime(0, ev, ev2));
  S(cuEventElapsedTime(&ms, 0, ev2));
  S(cuEventElapsedTime(&ms, ev, EV()));
}


/* ---- within a host function ---- */

static CUresult inner[16];
static unsigned ninner;
static CUgraph within_graph;
static CUgraphExec within;


static void inside(void) {
  CUdeviceptr q = 0;
  size_t free = 0;
  CUcontext current = NULL;
  CUgraph g = NULL;
  CUstream made = NULL;
  CUevent event = NULL;
  int count = 0;
  ninner = 0; /* at most 16 */
  inner[ninner++] = cu->cuMemAlloc(&q, 64);
  inner[ninner++] = cu->cuMemGetInfo(&free, NULL);
  inner[ninner++] = cu->cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
  inner[ninner++] = cu->cuStreamQuery(t);
  inner[ninner++] = cu->cuEventCreate(&event, 0);
  inner[ninner++] = cu->cuEventRecord(ev, t);
  inner[ninner++] = cu->cuEventQuery(ev2);
  inner[ninner++] = K(t);
  inner[ninner++] = cu->cuGraphCreate(&g, 0);
  inner[ninner++] = cu->cuGraphLaunch(within, t);
  inner[ninner++] = cu->cuCtxGetCurrent(&current);
  inner[ninner++] = cu->cuDeviceGetCount(&count);
  inner[ninner++] = cu->cuMemFree(d + 64);
  inner[ninner++] = cu->cuMemAllocAsync(&q, 64, t);
}


static const char *const calls[] = {
    "cuMemAlloc",    "cuMemGetInfo",   "cuStreamCreate",  "cuStreamQuery",
    "cuEventCreate", "cuEventRecord",  "cuEventQuery",    "launch",
    "cuGraphCreate", "cuGraphLaunch",  "cuCtxGetCurrent", "cuDeviceGetCount",
    "cuMemFree",     "cuMemAllocAsync"};


static void more_inside(void) {
  unsigned flags = 9;
  int value = 9;
  CUgraphNode n = NULL;
  CUgraphExecUpdateResultInfo info;
  const char *name = NULL;
  ninner = 0;
  inner[ninner++] = cu->cuStreamWaitEvent(t, ev2, 0);
  inner[ninner++] = cu->cuMemsetD8Async(d, 0, 64, t);
  inner[ninner++] = cu->cuMemcpyDtoDAsync(d, d + 64, 64, t);
  inner[ninner++] = cu->cuStreamIsCapturing(t, &value);
  inner[ninner++] = cu->cuStreamGetFlags(t, &flags);
  inner[ninner++] = cu->cuLaunchHostFunc(t, doze, NULL);
  inner[ninner++] = cu->cuGraphUpload(within, t);
  inner[ninner++] = cu->cuGraphExecUpdate(within, within_graph, &info);
  inner[ninner++] = cu->cuGraphAddEmptyNode(&n, within_graph, NULL, 0);
  inner[ninner++] =
      cu->cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, d);
  inner[ninner++] =
      cu->cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, tick);
  inner[ninner++] = cu->cuThreadExchangeStreamCaptureMode(&value);
  inner[ninner++] = cu->cuDriverGetVersion(&value);
  inner[ninner++] = cu->cuGetErrorName(0, &name);
}


static const char *const more_calls[] = {
    "cuStreamWaitEvent",   "cuMemsetD8Async",
    "cuMemcpyDtoDAsync",   "cuStreamIsCapturing",
    "cuStreamGetFlags",    "cuLaunchHostFunc",
    "cuGraphUpload",       "cuGraphExecUpdate",
    "cuGraphAddEmptyNode", "cuPointerGetAttribute",
    "cuFuncGetAttribute",  "cuThreadExchangeStreamCaptureMode",
    "cuDriverGetVersion",  "cuGetErrorName"};


static void note_inner(const char *const *names) {
  for (unsigned i = 0; i < ninner; i++)
    say(names[i], inner[i]);
}


static void host_function(void *unused) {
  (void)unused;
  inside();
}


static void callback(CUstream stream, CUresult status, void *given) {
  *(int *)given = stream == s && status == CUDA_SUCCESS;
  inside();
}


static void begin_inside(void) {
  s = NS();
  t = NS();
  ev = EV();
  ev2 = EV();
  cu->cuEventRecord(ev2, t);
  cu->cuCtxSynchronize();
  within_graph = capn(1);
  cu->cuGraphInstantiate(&within, within_graph, 0);
}


static void in_host_function(void) {
  begin_inside();
  S(cuLaunchHostFunc(s, host_function, 0));
  S(cuStreamSynchronize(s));
  note_inner(calls);
}


static void other_host_function(void *unused) {
  (void)unused;
  more_inside();
}


static void in_other_host_function(void) {
  begin_inside();
  S(cuLaunchHostFunc(s, other_host_function, 0));
  S(cuStreamSynchronize(s));
  note_inner(more_calls);
}


static void in_callback(void) {
  int told = 9;
  begin_inside();
  S(cuStreamAddCallback(s, callback, &told, 0));
  S(cuStreamSynchronize(s));
  num("told the stream and success", told);
  note_inner(calls);
}


static void in_host_node(void) {
  CUgraph g = NULL;
  CUgraphExec e = NULL;
  begin_inside();
  cu->cuStreamBeginCapture(s, TL);
  cu->cuLaunchHostFunc(s, host_function, NULL);
  cu->cuStreamEndCapture(s, &g);
  cu->cuGraphInstantiate(&e, g, 0);
  S(cuGraphLaunch(e, s));
  S(cuStreamSynchronize(s));
  note_inner(calls);
}


static const question questions[] = {
    {"order: host functions, kernels and fills of one stream", in_one_stream},
    {"order: across streams by an event", across_streams},
    {"order: event recorded anew while a stream awaits it", event_again},
    {"order: event destroyed while a stream awaits it", event_destroyed},
    {"order: stream destroyed with work", stream_destroyed},
    {"order: blocking streams and the legacy stream", legacy_order},
    {"order: a non-blocking stream beside the legacy stream",
     non_blocking_order},
    {"order: the per-thread stream beside a blocking one", per_thread_order},
    {"stream priorities: the range", priority_range},
    {"stream priorities: each of the range and beyond", priorities},
    {"built-in streams: priority, flags, destruction", built_in},
    {"streams and events: no place for the answer, no function", no_place},
    {"streams and events: unknown flags", bad_flags},
    {"events: each flag", event_flags},
    {"events: blocking wait, no timing, destroyed, null", event_life},
    {"events: time to itself, backwards, null, not recorded", elapsed},
};


/* A driver that waited for itself would not end. */
static const question alone[] = {
    {"in a host function: calls of the driver", in_host_function},
    {"in a host function: more calls", in_other_host_function},
    {"in a callback: calls of the driver", in_callback},
    {"in a host node: calls of the driver", in_host_node},
};


void ask_queues(void) {
  row_list(questions, sizeof questions / sizeof *questions);
  row_list_alone(alone, sizeof alone / sizeof *alone);
}
