/* Work that others issue into a capture, by a stream's handle: it is in the
   recording, in its place, on the device that $CGRAPHLUA_DEVICE names. */
#include "cgraphlua.h"
#include "core/graph/graph.h"
#include "tap.h"

#include <string.h>

static cgl_context *context;
static cgl_buffer *data, *other, *doubles;


static void ours(cgl_stream *stream) {
  const float value = 1;
  cgl_buffer_fill(data, stream, &value);
}


/* A fill that a kernel does. */
static void ours_by_kernel(cgl_stream *stream) {
  const double value = 1.0 / 3;
  cgl_buffer_fill(doubles, stream, &value);
}


/* The same kind of node as ours, so that only its place tells it. */
static void theirs(CUstream stream) {
  const cgl_driver *driver = cgl_context_driver(context);
  driver->cuMemsetD8Async(cgl_buffer_address(other), 0, 4, stream);
}


/* A kind that ours are not. */
static void theirs_copy(CUstream stream) {
  const cgl_driver *driver = cgl_context_driver(context);
  driver->cuMemcpyDtoDAsync(cgl_buffer_address(other), cgl_buffer_address(data),
                            4, stream);
}


static cgl_graph *begin(cgl_stream *stream) {
  cgl_graph *graph = NULL;
  cgl_graph_create(context, NULL, &graph);
  cgl_graph_capture_begin(graph, stream);
  return graph;
}


/* A letter for each node: o ours, f foreign, ? without a node's handle. */
static const char *kinds(cgl_graph *graph) {
  static char text[32];
  size_t count = 0;
  if (cgl_graph_capture_end(graph) || cgl_graph_node_count(graph, &count))
    return cgl_last_error()->message;
  for (size_t i = 0; i < count && i < sizeof text - 1; i++) {
    cgl_node_info info;
    cgl_graph_node(graph, i, &info);
    text[i] = !strcmp(info.kind, "foreign") ? 'f' : 'o';
    if (!cgl_record_op(graph->recording, i)->node)
      text[i] = '?';
    text[i + 1] = 0;
  }
  cgl_graph_release(graph);
  return text;
}


static void is(const char *got, const char *wanted, const char *what) {
  tap_ok(!strcmp(got, wanted), "%s: %s", what, got);
}


static cgl_stream *fresh(void) {
  cgl_stream *stream = NULL;
  cgl_stream_create(context, 0, &stream);
  return stream;
}


static void test_ours_alone(void) {
  cgl_stream *stream = fresh();
  cgl_graph *graph = begin(stream);
  ours(stream);
  ours(stream);
  tap_ok(!graph->capture.watched, "a stream nobody else knows is not watched");
  is(kinds(graph), "oo", "our operations have their nodes at the end");
  cgl_stream_release(stream);
}


static void test_handle_before(void) {
  cgl_stream *stream = fresh();
  CUstream handle = cgl_stream_handle(stream);
  cgl_graph *graph = begin(stream);
  theirs(handle);
  ours(stream);
  theirs(handle);
  ours(stream);
  theirs(handle);
  is(kinds(graph), "fofof", "a handle given before the capture");
  cgl_stream_release(stream);
}


static void test_handle_in_between(void) {
  cgl_stream *stream = fresh();
  cgl_graph *graph = begin(stream);
  ours(stream);
  ours(stream);
  CUstream handle = cgl_stream_handle(stream);
  theirs(handle);
  ours(stream);
  theirs(handle);
  is(kinds(graph), "oofof", "a handle given during the capture");
  cgl_stream_release(stream);
}


static void test_fork_of_known_stream(void) {
  cgl_stream *stream = fresh(), *branch = fresh();
  CUstream handle = cgl_stream_handle(branch);
  cgl_graph *graph = begin(stream);
  ours(stream);
  cgl_stream_wait_stream(branch, stream);
  theirs(handle);
  ours(branch);
  cgl_stream_wait_stream(stream, branch);
  ours(stream);
  is(kinds(graph), "ofoo", "a branch whose handle was given before");
  cgl_stream_release(branch);
  cgl_stream_release(stream);
}


/* Nobody told us: what can be told by its type is told. */
static void test_unwatched(void) {
  cgl_stream *stream = fresh();
  cgl_graph *graph = begin(stream);
  ours(stream);
  theirs_copy(stream->handle);
  ours(stream);
  is(kinds(graph), "ofo", "a handle got at by other means");
  graph = begin(stream);
  theirs(stream->handle);
  ours_by_kernel(stream);
  theirs(stream->handle);
  ours_by_kernel(stream);
  is(kinds(graph), "fofo", "a fill by a kernel is told by the kernel");
  cgl_stream_release(stream);
}


/* An engine captures a stream of its own, which ours is borrowed from. */
static void test_in_an_engines_capture(void) {
  const cgl_driver *driver = cgl_context_driver(context);
  cgl_stream *stream = fresh(), *borrowed = NULL;
  CUstream handle = cgl_stream_handle(stream);
  cgl_graph *graph = begin(stream);
  cgl_generator *generator = NULL;
  CUgraph engines = NULL;
  size_t count = 0;
  ours(stream);
  cgl_graph_capture_end(graph);
  cgl_generator_create(context, 1, &generator);
  cgl_stream_from_handle(context, handle, &borrowed);
  driver->cuStreamBeginCapture(handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  tap_ok(!cgl_graph_replay(graph, borrowed, 2), "a graph is replayed there");
  tap_ok(cgl_buffer_uniform(data, generator, borrowed, 0, 1) ==
             CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         "and random numbers are not drawn");
  tap_ok(!driver->cuStreamEndCapture(handle, &engines) &&
             !driver->cuGraphGetNodes(engines, NULL, &count) && count == 2,
         "its graph has a node for each replay (%zu)", count);
  if (engines)
    driver->cuGraphDestroy(engines);
  cgl_generator_release(generator);
  cgl_stream_release(borrowed);
  cgl_graph_release(graph);
  cgl_stream_release(stream);
}


/* Launches a kernel twice in a row, by a programmatic edge where there are any.
 */
static cgl_status launch_twice(cgl_kernel *kernel, cgl_stream *stream) {
  const cgl_launch shape = {{1, 1, 1}, {1, 1, 1}, 0};
  const cgl_arg arg = {.kind = CGL_ARG_BUFFER, .buffer = data};
  cgl_status status = cgl_kernel_launch(kernel, stream, &shape, &arg, 1);
  return status ? status : cgl_kernel_launch(kernel, stream, &shape, &arg, 1);
}


/* A child with programmatic edges is copied as it is, whatever is beside it. */
static void test_child_beside_foreign(void) {
  const cgl_module_desc desc = {
      .source = "extern \"C\" __global__ void add(float *x) { x[0] += 1; }"};
  cgl_module *module = NULL;
  cgl_kernel *add = NULL;
  cgl_stream *stream = fresh(), *branch = fresh();
  tap_ok(!cgl_module_create(context, &desc, &module) &&
             !cgl_module_kernel(module, "add", &add),
         "a kernel compiles");
  cgl_graph *child = begin(stream);
  launch_twice(add, stream);
  cgl_graph_capture_end(child);
  for (int forks = 0; forks < 2; forks++) {
    cgl_graph *graph = begin(stream);
    if (forks) {
      cgl_stream_wait_stream(branch, stream);
      ours(branch);
    }
    theirs(cgl_stream_handle(stream));
    cgl_graph_replay(child, stream, 1);
    if (forks)
      cgl_stream_wait_stream(stream, branch);
    tap_ok(cgl_graph_capture_end(graph) == CGL_OK,
           "a child graph beside the work of others, %s: %s",
           forks ? "in a graph that forks" : "in a line",
           cgl_last_error()->message);
    cgl_graph_release(graph);
  }
  cgl_graph_release(child);
  cgl_kernel_release(add);
  cgl_module_release(module);
  cgl_stream_release(branch);
  cgl_stream_release(stream);
}


static void test_sameness(void) {
  cgl_stream *a = fresh(), *b = fresh(), *borrowed = NULL;
  tap_ok(cgl_stream_is_same(a, a) && !cgl_stream_is_same(a, b) && !a->shown,
         "comparing streams shows no handle");
  cgl_stream_from_handle(context, cgl_stream_handle(a), &borrowed);
  tap_ok(cgl_stream_is_same(a, borrowed), "two objects, one stream");
  cgl_stream_release(borrowed);
  cgl_stream_release(b);
  cgl_stream_release(a);
}


int main(void) {
  if (!tap_ok(!cgl_context_open(NULL, &context), "a device opens"))
    return tap_done();
  cgl_stream *stream = fresh();
  cgl_buffer_create(stream, NULL, CGL_TYPE_float, 100, &data);
  cgl_buffer_create(stream, NULL, CGL_TYPE_float, 100, &other);
  cgl_buffer_create(stream, NULL, CGL_TYPE_double, 100, &doubles);
  test_ours_alone();
  test_handle_before();
  test_handle_in_between();
  test_fork_of_known_stream();
  test_unwatched();
  test_in_an_engines_capture();
  test_child_beside_foreign();
  test_sameness();
  cgl_buffer_release(data);
  cgl_buffer_release(other);
  cgl_buffer_release(doubles);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is alive afterwards (%lld)",
         (long long)cgl_live("all"));
  return tap_done();
}
