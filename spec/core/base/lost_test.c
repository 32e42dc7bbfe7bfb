/* A device that was lost, from C: who gives up on it, what refuses its reset,
   and that it works again. */
#include "cgraphlua.h"
#include "driver/table.h"
#include "tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char source[] =
    "extern \"C\" __global__ void bump(int *x) { x[threadIdx.x] += 1; }\n"
    "extern \"C\" __global__ void hang(volatile int *x) { while (*x >= 0) {} "
    "}\n";

/* A stream, eight numbers on it, and a graph of one launch. */
typedef struct work {
  cgl_stream *stream;
  cgl_buffer *numbers;
  cgl_module *module;
  cgl_kernel *kernel;
  cgl_graph *graph;
} work;


static void work_end(work *w) {
  cgl_graph_release(w->graph);
  cgl_kernel_release(w->kernel);
  cgl_module_release(w->module);
  cgl_buffer_release(w->numbers);
  cgl_stream_release(w->stream);
}


static cgl_status work_begin(work *w, cgl_context *context, const char *name) {
  const cgl_module_desc desc = {.source = source};
  const cgl_launch launch = {.block = {8}};
  const int zeros[8] = {0};
  *w = (work){0};
  cgl_status s = cgl_stream_create(context, 0, &w->stream);
  if (!s)
    s = cgl_buffer_create(w->stream, NULL, CGL_TYPE_int32, 8, &w->numbers);
  if (!s)
    s = cgl_buffer_upload(w->numbers, w->stream, 0, zeros, sizeof zeros);
  if (!s)
    s = cgl_module_create(context, &desc, &w->module);
  if (!s)
    s = cgl_module_kernel(w->module, name, &w->kernel);
  if (!s)
    s = cgl_graph_create(context, NULL, &w->graph);
  if (!s)
    s = cgl_graph_capture_begin(w->graph, w->stream);
  if (s)
    return s;
  const cgl_arg arg = {.kind = CGL_ARG_BUFFER, .buffer = w->numbers};
  cgl_set_site("lost_test", 7);
  s = cgl_kernel_launch(w->kernel, w->stream, &launch, &arg, 1);
  cgl_set_site(NULL, 0);
  return s ? s : cgl_graph_capture_end(w->graph);
}


static bool says(const char *text) {
  if (strstr(cgl_last_error()->message, text))
    return true;
  printf("# %s\n", cgl_last_error()->message);
  return false;
}


/* What a program gets from the device by then. */
static bool works(void) {
  cgl_context *context = NULL;
  work w = {0};
  int numbers[8] = {0};
  cgl_status s = cgl_context_open("host", &context);
  if (!s)
    s = work_begin(&w, context, "bump");
  if (!s)
    s = cgl_graph_replay(w.graph, w.stream, 5);
  if (!s)
    s = cgl_buffer_download(w.numbers, w.stream, 0, numbers, sizeof numbers);
  if (s)
    printf("# %s\n", cgl_last_error()->message);
  work_end(&w);
  cgl_context_release(context);
  return !s && numbers[0] == 5 && numbers[7] == 5;
}


static void *give_up(void *context) {
  usleep(30000);
  return cgl_context_abort(context) ? NULL : context;
}


/* `name`: the graph's kernel; replayed without end while another thread gives
   up on it. */
static void test_abort(const char *name, const char *text) {
  cgl_context *context;
  work w;
  pthread_t thread;
  void *given_up = NULL;
  cgl_context_open("host", &context);
  bool begun = !work_begin(&w, context, name);
  pthread_create(&thread, NULL, give_up, context);
  cgl_status s = cgl_graph_replay(w.graph, w.stream, 1000000000);
  s = s ? s : cgl_context_synchronize(context);
  tap_ok(begun && s == CUDA_ERROR_LAUNCH_TIMEOUT && says(text),
         "an abort ends 1e9 replays of %s", name);
  pthread_join(thread, &given_up);
  tap_ok(given_up == context, "and answers success");
  tap_ok(cgl_device_reset("host") == CGL_ERROR_IN_USE &&
             says("1 stream, 1 buffer, 1 module, 1 kernel, 1 pool, 1 graph"),
         "no reset while objects live");
  work_end(&w);
  tap_ok(cgl_device_reset("host") == CGL_ERROR_IN_USE &&
             says("held (1 reference)"),
         "nor while the context is held");
  tap_ok(cgl_stream_create(context, 0, &w.stream) == CUDA_ERROR_LAUNCH_TIMEOUT,
         "which is lost");
  cgl_context_release(context);
  tap_ok(cgl_context_open("host", &context) == CUDA_ERROR_LAUNCH_TIMEOUT,
         "also when it is opened again");
  tap_ok(!cgl_device_reset("host") && works(),
         "the device works after a reset");
}


/* Another library of the process has the device's primary context. */
static void test_retained(void) {
  cgl_context *context;
  CUcontext handle;
  cgl_context_open("host", &context);
  const cgl_driver *driver = cgl_context_driver(context);
  driver->cuDevicePrimaryCtxRetain(&handle, 0);
  tap_ok(!cgl_context_abort(context), "an idle device is aborted");
  cgl_context_release(context);
  tap_ok(cgl_device_reset("host") == CGL_ERROR_IN_USE &&
             says("another part of the process"),
         "no reset while another library retains the context");
  driver->cuDevicePrimaryCtxRelease(0);
  tap_ok(!cgl_device_reset("host") && works(), "but after its release");
}


static void test_arguments(void) {
  cgl_context *context;
  cgl_context_open("host", &context);
  tap_ok(cgl_context_set_kernel_deadline(context, -1) ==
                 CGL_ERROR_INVALID_ARGUMENT &&
             cgl_context_set_kernel_deadline(context, 2e9) ==
                 CGL_ERROR_INVALID_ARGUMENT,
         "deadlines are from 0 to 1e9 seconds");
  cgl_context_release(context);
  tap_ok(cgl_device_reset("cuda:999") == CGL_ERROR_NO_DEVICE,
         "no device of the name");
}


/* A driver that cannot end a kernel, as a GPU's. */
static void test_unable(void) {
  cgl_context *context;
  cgl_context_open("host", &context);
  cgl_driver *driver = (cgl_driver *)cgl_context_driver(context);
  const cgl_driver able = *driver;
  driver->set_kernel_deadline = NULL;
  driver->abort_device = NULL;
  tap_ok(cgl_context_set_kernel_deadline(context, 1) ==
                 CUDA_ERROR_NOT_SUPPORTED &&
             says("cannot end a kernel"),
         "no deadline where the driver has none");
  tap_ok(cgl_context_abort(context) == CUDA_ERROR_NOT_SUPPORTED,
         "nor an abort");
  *driver = able;
  cgl_context_release(context);
}


int main(void) {
  setenv("CGRAPHLUA_FAULT", "1", 1); /* a driver table that can be changed */
  test_arguments();
  test_unable();
  test_abort("bump", "aborted");
  test_abort("hang", "hang (lost_test:7)");
  test_retained();
  tap_ok(cgl_live("all") == 0, "nothing is alive");
  return tap_done();
}
