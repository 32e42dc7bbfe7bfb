/* Parameters from C: values that are set whole beside replays on another
   thread, and graphs with nodes of other libraries.  On the device that
   $CGRAPHLUA_DEVICE names. */
#include "cgraphlua.h"
#include "driver/table.h"
#include "tap.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static const char source[] =
    "extern \"C\" __global__ void add(float *x, float a) { x[0] += a; }\n"
    "extern \"C\" __global__ void pair(float *x, int4 v) {\n"
    "  x[0] += v.x != v.y || v.y != v.z || v.z != v.w;\n"
    "}\n";

static cgl_context *context;
static cgl_stream *stream;
static cgl_module *module;
static cgl_buffer *buffer; /* four floats, or ints */


static cgl_graph *begin(void) {
  cgl_graph *graph = NULL;
  cgl_graph_create(context, NULL, &graph);
  cgl_graph_capture_begin(graph, stream);
  return graph;
}


static cgl_status launch(const char *name, cgl_param *param) {
  const cgl_launch once = {{1, 1, 1}, {1, 1, 1}, 0};
  const cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = buffer},
                          {.kind = CGL_ARG_PARAM, .param = param}};
  cgl_kernel *kernel = NULL;
  cgl_status status = cgl_module_kernel(module, name, &kernel);
  if (!status)
    status = cgl_kernel_launch(kernel, stream, &once, args, 2);
  cgl_kernel_release(kernel);
  return status;
}


static float first(void) {
  float values[4];
  cgl_buffer_download(buffer, stream, 0, values, sizeof values);
  return values[0];
}


static void clear(void) {
  const float zero = 0;
  cgl_buffer_fill(buffer, stream, &zero);
}


static void test_values(void) {
  const double given[2] = {1, 2};
  double values[2] = {0, 0};
  cgl_param *param = NULL;
  tap_ok(!cgl_param_create(context, CGL_TYPE_double, 2, given, NULL, &param) &&
             cgl_param_type(param) == CGL_TYPE_double &&
             cgl_param_count(param) == 2 && !*cgl_param_name(param),
         "a parameter says what it is");
  cgl_param_get(param, values);
  tap_ok(!memcmp(given, values, sizeof values), "and what its values are");
  cgl_param_release(cgl_param_retain(param));
  cgl_param_release(param);
  tap_ok(cgl_param_create(context, CGL_TYPE_COUNT, 1, given, NULL, &param) ==
                 CGL_ERROR_INVALID_ARGUMENT &&
             cgl_param_create(context, CGL_TYPE_double, SIZE_MAX, given, NULL,
                              &param) == CGL_ERROR_INVALID_ARGUMENT &&
             cgl_param_create(context, CGL_TYPE_double, 0, given, NULL,
                              &param) == CGL_ERROR_INVALID_ARGUMENT,
         "no other number of bytes is taken");
}


/* As a library would, past the recording. */
static void foreign(void) {
  const cgl_driver *driver = cgl_context_driver(context);
  driver->cuMemsetD8Async(cgl_buffer_address(buffer), 0, 4,
                          cgl_stream_handle(stream));
}


static void test_foreign(void) {
  const float one = 1, two = 2;
  cgl_param *param = NULL;
  cgl_param_create(context, CGL_TYPE_float, 1, &one, "a", &param);
  cgl_graph *child = begin();
  foreign();
  launch("add", param);
  cgl_graph_capture_end(child);
  cgl_graph *graph = begin();
  foreign();
  cgl_graph_replay(child, stream, 1);
  launch("add", param);
  cgl_graph_capture_end(graph);
  tap_ok(!cgl_graph_replay(graph, stream, 1) && first() == 2, "replays");
  cgl_param_set(param, &two);
  tap_ok(!cgl_graph_replay(graph, stream, 1) && first() == 4,
         "a change reaches a child graph beside foreign nodes");
  cgl_graph_param_use uses[2];
  size_t count = 0;
  cgl_param *found = NULL;
  tap_ok(!cgl_graph_params_used(graph, uses, 1, &count) && count == 2 &&
             uses[0].param == param && uses[0].body && uses[0].node == 1,
         "no more uses are described than there is room for");
  tap_ok(!cgl_graph_param(graph, "a", &found) && found == param &&
             cgl_graph_param(graph, "b", &found) == CGL_ERROR_NOT_FOUND,
         "a parameter is found by its name");
  cgl_param_release(param);
  cgl_graph_release(child);
  cgl_graph_release(graph);
}


static void test_follow(void) {
  const float one = 1, two = 2, three[] = {0, 0, 3, 0};
  float value = 0;
  cgl_param *param = NULL;
  cgl_buffer *memory = NULL, *element = NULL;
  cgl_param_create(context, CGL_TYPE_float, 1, &one, "a", &param);
  cgl_buffer_create(stream, NULL, CGL_TYPE_float, 4, &memory);
  cgl_buffer_upload(memory, stream, 0, three, sizeof three);
  cgl_buffer_view(memory, 2, 1, &element);
  clear();
  tap_ok(!cgl_param_followed(param), "a parameter follows nothing at first");
  tap_ok(cgl_param_follow(param, memory) == CGL_ERROR_INVALID_ARGUMENT &&
             !cgl_param_follow(param, element),
         "and then a buffer of its type and count");
  cgl_buffer *now = cgl_param_followed(param);
  tap_ok(now == element, "which it says");
  cgl_buffer_release(now);
  cgl_buffer_release(element);
  cgl_graph *graph = begin();
  launch("add", param);
  cgl_graph_capture_end(graph);
  tap_ok(cgl_param_set(param, &two) == CGL_ERROR_INVALID_ARGUMENT &&
             !cgl_graph_replay(graph, stream, 2) && first() == 6 &&
             !launch("add", param) && first() == 9,
         "kernels read it there");
  cgl_graph_param_use use;
  cgl_param *found = NULL;
  size_t count = 0;
  tap_ok(!cgl_graph_params_used(graph, &use, 1, &count) && count == 1 &&
             use.follows && use.argument == 1 &&
             cgl_graph_param(graph, "a", &found) == CGL_ERROR_INVALID_ARGUMENT,
         "and the graph says that it does");
  cgl_param_follow(param, NULL);
  cgl_param_get(param, &value);
  tap_ok(value == 1 && !launch("add", param) && first() == 10,
         "it is what was set before, in the end");
  cgl_param_release(param);
  cgl_buffer_release(memory);
  cgl_graph_release(graph);
}


/* ---- two threads ---- */

static cgl_param *shared;
static atomic_bool over;

static void *follow_all_the_time(void *element) {
  for (int i = 0; !atomic_load(&over); i++)
    cgl_param_follow(shared, i % 2 ? element : NULL);
  return NULL;
}


/* Launches on this thread while another begins and ends it. */
static void test_follow_threads(void) {
  enum { LAUNCHES = 3000 };
  const int32_t fours[4] = {4, 4, 4, 4}, fives[4] = {5, 5, 5, 5};
  cgl_buffer *element = NULL;
  pthread_t thread;
  bool launched = true;
  cgl_param_create(context, CGL_TYPE_int32, 4, fours, NULL, &shared);
  cgl_buffer_create(stream, NULL, CGL_TYPE_int32, 4, &element);
  cgl_buffer_upload(element, stream, 0, fives, sizeof fives);
  clear();
  atomic_store(&over, false);
  pthread_create(&thread, NULL, follow_all_the_time, element);
  for (int i = 0; i < LAUNCHES && launched; i++)
    launched = !launch("pair", shared);
  atomic_store(&over, true);
  pthread_join(thread, NULL);
  tap_ok(launched && first() == 0, "another thread may begin and end it");
  cgl_param_release(shared);
  cgl_buffer_release(element);
}


static void *set_all_the_time(void *unused) {
  for (int32_t i = 0; !atomic_load(&over); i++) {
    const int32_t values[] = {i, i, i, i};
    cgl_param_set(shared, values);
  }
  return unused;
}


static void test_threads(void) {
  enum { REPLAYS = 2000 };
  const int32_t zeros[4] = {0};
  pthread_t thread;
  bool replayed = true;
  cgl_param_create(context, CGL_TYPE_int32, 4, zeros, NULL, &shared);
  clear();
  cgl_graph *graph = begin();
  launch("pair", shared);
  cgl_graph_capture_end(graph);
  atomic_store(&over, false);
  pthread_create(&thread, NULL, set_all_the_time, NULL);
  for (int i = 0; i < REPLAYS && replayed; i++) {
    replayed = !cgl_graph_replay(graph, stream, 1);
    if (i % 100 == 50) { /* the setter meets graphs that come and go */
      cgl_graph *other = begin();
      launch("pair", shared);
      replayed &=
          !cgl_graph_capture_end(other) && !cgl_graph_replay(other, stream, 1);
      cgl_graph_release(other);
    }
  }
  atomic_store(&over, true);
  pthread_join(thread, NULL);
  tap_ok(replayed && first() == 0, "a value is set whole beside replays");
  cgl_graph_release(graph);
  cgl_param_release(shared);
}


int main(void) {
  const cgl_module_desc desc = {.source = source};
  if (cgl_context_open(NULL, &context) ||
      cgl_stream_create(context, 0, &stream) ||
      cgl_module_create(context, &desc, &module) ||
      cgl_buffer_create(stream, NULL, CGL_TYPE_float, 4, &buffer)) {
    tap_ok(false, "%s", cgl_last_error()->message);
    return tap_done();
  }
  clear();
  test_values();
  test_foreign();
  test_follow();
  test_follow_threads();
  test_threads();
  cgl_buffer_release(buffer);
  cgl_module_release(module);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is left alive");
  return tap_done();
}
