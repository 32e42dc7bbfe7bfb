/* Many threads on one device: captures, replays, events and buffers at once.
   For ThreadSanitizer above all; the results are checked all the same.
     thread_test [threads [seconds]]   default: 6 threads, 40 rounds each */
#include "cgraphlua.h"
#include "driver/table.h"
#include "tap.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS = 6, MOST = 64, ROUNDS = 40, N = 4096 };

static int nthreads = THREADS;
static time_t deadline; /* 0: after ROUNDS */
static atomic_long rounds_done;

static const char source[] =
    "extern \"C\" __global__ void add(float *x, float a, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) x[i] += a;\n"
    "}\n";

static cgl_context *context;
static cgl_kernel *kernel;


static cgl_status add(cgl_stream *stream, cgl_buffer *buffer, float a) {
  cgl_launch launch = {.grid = {N / 128}, .block = {128}};
  cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = buffer},
                    {.kind = CGL_ARG_NUMBER, .number = a},
                    {.kind = CGL_ARG_INT, .i = N}};
  return cgl_kernel_launch(kernel, stream, &launch, args, 3);
}


/* A fork over a second stream, scratch memory, ten replays. */
static cgl_status round_trip(cgl_stream *s, cgl_stream *t,
                             cgl_capture_mode mode, float *value) {
  cgl_buffer *x = NULL, *y = NULL, *scratch = NULL;
  cgl_graph *graph = NULL;
  cgl_graph_desc desc = {.capture_mode = mode};
  float zero = 0, out[N];
  cgl_status status = cgl_buffer_create(s, NULL, CGL_TYPE_float, N, &x);
  if (!status)
    status = cgl_buffer_create(s, NULL, CGL_TYPE_float, N, &y);
  if (!status)
    status = cgl_buffer_fill(x, s, &zero);
  if (!status)
    status = cgl_buffer_fill(y, s, &zero);
  if (!status)
    status = cgl_graph_create(context, &desc, &graph);
  if (!status)
    status = cgl_graph_capture_begin(graph, s);
  if (!status) {
    status = cgl_buffer_create(s, NULL, CGL_TYPE_float, N, &scratch);
    if (!status)
      status = cgl_stream_wait_stream(t, s);
    if (!status)
      status = add(t, y, 2);
    if (!status)
      status = cgl_buffer_copy(scratch, x, s);
    if (!status)
      status = add(s, scratch, 1);
    if (!status)
      status = cgl_stream_wait_stream(s, t);
    if (!status)
      status = cgl_buffer_copy(x, scratch, s);
    cgl_buffer_release(scratch);
    if (status)
      cgl_graph_capture_abandon(graph);
    else
      status = cgl_graph_capture_end(graph);
  }
  if (!status)
    status = cgl_graph_replay(graph, s, 10);
  /* Dropped while it may still run. */
  cgl_graph_release(graph);
  if (!status)
    status = cgl_buffer_download(x, s, 0, out, sizeof out);
  *value = status ? -1 : out[0] == 10 && out[N - 1] == 10 ? 10 : out[0];
  cgl_buffer_release(x);
  cgl_buffer_release(y);
  return status;
}


static void *work(void *argument) {
  cgl_capture_mode mode =
      (uintptr_t)argument % 2 ? CGL_CAPTURE_THREAD_LOCAL : CGL_CAPTURE_RELAXED;
  cgl_stream *s, *t;
  int wrong = 0;
  if (cgl_stream_create(context, 0, &s) || cgl_stream_create(context, 0, &t)) {
    tap_ok(false, "streams for thread %zu", (size_t)argument);
    return NULL;
  }
  int i = 0;
  for (; deadline ? time(NULL) < deadline : i < ROUNDS; i++) {
    float value = 0;
    cgl_status status = round_trip(s, t, mode, &value);
    if (status || value != 10) {
      wrong++;
      printf("# thread %zu round %d: %g %s\n", (size_t)argument, i, value,
             status ? cgl_last_error()->message : "wrong value");
    }
  }
  cgl_stream_release(s);
  cgl_stream_release(t);
  atomic_fetch_add(&rounds_done, i);
  tap_ok(!wrong && i, "thread %zu: all rounds right", (size_t)argument);
  return NULL;
}


/* A capture in global mode that waits to be told to end. */
typedef struct holder {
  cgl_graph *graph;
  cgl_stream *stream;
  atomic_int begun, end;
  cgl_status status;
} holder;


static void *hold(void *argument) {
  holder *h = argument;
  cgl_set_site("loader.lua", 7);
  h->status = cgl_graph_capture_begin(h->graph, h->stream);
  atomic_store(&h->begun, 1);
  while (!atomic_load(&h->end))
    nanosleep(&(struct timespec){0, 100000}, NULL);
  if (!h->status)
    h->status = cgl_graph_capture_end(h->graph);
  return NULL;
}


static void test_global_mode(void) {
  holder h = {.status = CGL_OK};
  const cgl_graph_desc desc = {.capture_mode = CGL_CAPTURE_GLOBAL};
  cgl_stream *own = NULL;
  pthread_t thread;
  bool done;
  cgl_graph_create(context, &desc, &h.graph);
  cgl_stream_create(context, 0, &h.stream);
  cgl_stream_create(context, 0, &own);
  pthread_create(&thread, NULL, hold, &h);
  while (!atomic_load(&h.begun))
    nanosleep(&(struct timespec){0, 100000}, NULL);
  tap_ok(cgl_stream_synchronize(own) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
             strstr(cgl_last_error()->message, "another thread") &&
             cgl_stream_query(own, &done) ==
                 CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         "a wait that would break another thread's capture is refused");
  tap_ok(strstr(cgl_last_error()->message, "loader.lua:7") != NULL,
         "and names the line of that capture");
  tap_ok(!cgl_streams_synchronize(&own, 1),
         "a wait for streams passes meanwhile");
  tap_ok(cgl_context_synchronize(context) ==
                 CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
             strstr(cgl_last_error()->message,
                    "another thread's, since loader.lua:7"),
         "one for the device is refused, with that line");
  atomic_store(&h.end, 1);
  pthread_join(thread, NULL);
  tap_ok(!h.status, "before it does");
  tap_ok(!cgl_stream_synchronize(own), "and passes afterwards");
  cgl_graph_release(h.graph);
  cgl_stream_release(h.stream);
  cgl_stream_release(own);
}


int main(int argc, char **argv) {
  int seconds = argc > 2 ? atoi(argv[2]) : 0;
  if (argc > 1)
    nthreads = atoi(argv[1]);
  if (nthreads < 1 || nthreads > MOST || seconds < 0) {
    fprintf(stderr, "thread_test [threads up to %d [seconds]]\n", MOST);
    return 2;
  }
  deadline = seconds ? time(NULL) + seconds : 0;
  cgl_module *module;
  cgl_module_desc desc = {.source = source};
  if (cgl_context_open(NULL, &context) ||
      cgl_module_create(context, &desc, &module) ||
      cgl_module_kernel(module, "add", &kernel)) {
    tap_ok(false, "set-up: %s", cgl_last_error()->message);
    return tap_done();
  }
  pthread_t threads[MOST];
  for (uintptr_t i = 0; i < (uintptr_t)nthreads; i++)
    pthread_create(&threads[i], NULL, work, (void *)i);
  for (int i = 0; i < nthreads; i++)
    pthread_join(threads[i], NULL);
  test_global_mode();
  printf("# %ld rounds by %d threads\n", atomic_load(&rounds_done), nthreads);
  cgl_kernel_release(kernel);
  cgl_module_release(module);
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is alive at the end (%lld)",
         (long long)cgl_live("all"));
  return tap_done();
}
