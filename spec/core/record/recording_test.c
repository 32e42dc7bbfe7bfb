/* The memory of recordings: captures hand it on to each other. */
#include "cgraphlua.h"
#include "core/graph/graph.h"
#include "core/record/recording_private.h"
#include "tap.h"

#include <pthread.h>
#include <string.h>

static const char source[] =
    "extern \"C\" __global__ void add(float *x, float a, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) x[i] += a;\n"
    "}\n";

enum { N = 64, MANY = 600, HUGE_MANY = 40000, THREADS = 4, ROUNDS = 60 };

static cgl_context *context;
static cgl_stream *stream;
static cgl_module *module;
static cgl_kernel *add;
static cgl_buffer *x;


static cgl_status set_up(void) {
  static const cgl_module_desc desc = {.source = source};
  const float zero = 0;
  cgl_status status = cgl_context_open(NULL, &context);
  if (!status)
    status = cgl_stream_create(context, 0, &stream);
  if (!status)
    status = cgl_module_create(context, &desc, &module);
  if (!status)
    status = cgl_module_kernel(module, "add", &add);
  if (!status)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_float, N, &x);
  if (!status)
    status = cgl_buffer_fill(x, stream, &zero);
  return status;
}


static void tear_down(void) {
  cgl_buffer_release(x);
  cgl_kernel_release(add);
  cgl_module_release(module);
  cgl_stream_release(stream);
  cgl_context_release(context);
}


/* Adds 1 to `to`, n times. */
static cgl_status launch(cgl_stream *on, cgl_buffer *to, int n) {
  static const cgl_launch shape = {{1, 1, 1}, {N, 1, 1}, 0};
  const cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = to},
                          {.kind = CGL_ARG_NUMBER, .number = 1},
                          {.kind = CGL_ARG_NUMBER, .number = N}};
  cgl_status status = CGL_OK;
  for (int i = 0; i < n && !status; i++)
    status = cgl_kernel_launch(add, on, &shape, args, 3);
  return status;
}


/* A graph whose capture has begun. */
static cgl_graph *begin(cgl_stream *on) {
  cgl_graph *graph = NULL;
  if (!cgl_graph_create(context, NULL, &graph) &&
      cgl_graph_capture_begin(graph, on)) {
    cgl_graph_release(graph);
    graph = NULL;
  }
  return graph;
}


/* A captured graph that adds n; NULL when something failed. */
static cgl_graph *captured(int n) {
  cgl_graph *graph = begin(stream);
  if (graph && (launch(stream, x, n) || cgl_graph_capture_end(graph))) {
    cgl_graph_release(graph);
    graph = NULL;
  }
  return graph;
}


/* What one replay adds; -1 when it failed. */
static float adds(cgl_graph *graph) {
  float before[N] = {0}, after[N] = {0};
  if (cgl_buffer_download(x, stream, 0, before, sizeof before) ||
      cgl_graph_replay(graph, stream, 1) ||
      cgl_buffer_download(x, stream, 0, after, sizeof after))
    return -1;
  return after[N - 1] - before[N - 1];
}


/* Room for operations that the next capture begins with. */
static size_t room(void) {
  cgl_graph *graph = begin(stream);
  const size_t size = graph ? graph->recording->ops_size : 0;
  cgl_graph_release(graph);
  return size;
}


/* Whether a capture of MANY begins with room for them, and keeps it. */
static bool grows_nothing(void) {
  cgl_graph *graph = begin(stream);
  if (!graph)
    return false;
  const cgl_recording first = *graph->recording;
  bool ok = first.ops_size >= MANY && !first.nops && !launch(stream, x, MANY) &&
            graph->recording->nops == MANY;
  const cgl_recording *now = graph->recording;
  ok = ok && now->ops == first.ops && now->ops_size == first.ops_size &&
       now->ranges == first.ranges && now->ranges_size == first.ranges_size &&
       now->values == first.values && now->values_size == first.values_size &&
       now->kept == first.kept && now->kept_size == first.kept_size &&
       now->allocations == first.allocations && now->bodies == first.bodies;
  ok = !cgl_graph_capture_end(graph) && ok && adds(graph) == MANY;
  cgl_graph_release(graph);
  return ok;
}


static void test_handed_on(void) {
  cgl_graph *graph = captured(MANY);
  tap_ok(graph && adds(graph) == MANY, "a capture of %d", MANY);
  tap_ok(!room(), "while a graph holds it nobody else has its memory");
  cgl_graph_release(graph);
  tap_ok(grows_nothing(), "a graph that goes leaves it to the next capture");
  tap_ok(grows_nothing(), "and so does that one");
  graph = captured(MANY);
  cgl_graph_reset(graph);
  tap_ok(grows_nothing(), "and a graph that is reset");
  cgl_graph_release(graph);
  graph = begin(stream);
  cgl_graph_capture_abandon(graph);
  tap_ok(grows_nothing(), "and a capture that is abandoned");
  cgl_graph_release(graph);
}


static void test_tight(void) {
  const size_t before = room();
  cgl_graph *graph = captured(2);
  tap_ok(before >= MANY && graph && graph->recording->nops == 2 &&
             graph->recording->ops_size < MANY / 4 && room() == before,
         "a small graph does not keep the memory of a large one");
  const cgl_arg args[] = {{.kind = CGL_ARG_SAME},
                          {.kind = CGL_ARG_NUMBER, .number = 10},
                          {.kind = CGL_ARG_SAME}};
  tap_ok(graph && adds(graph) == 2 &&
             !cgl_graph_set_params(graph, 0, NULL, args, 3) &&
             adds(graph) == 11,
         "and is whole");
  /* The graph's own memory is the lesser by far. */
  cgl_graph_release(graph);
  tap_ok(room() == before, "the larger memory stays");
}


static void test_bound(void) {
  const size_t before = room();
  cgl_graph *graph = captured(HUGE_MANY);
  tap_ok(graph && graph->recording->nops == HUGE_MANY, "a capture of %d",
         HUGE_MANY);
  cgl_graph_release(graph);
  tap_ok(room() <= before, "so much memory is not kept");
}


/* Graphs of many sizes, one after the other, on a stream of its own. */
static void *capture_often(void *wrong) {
  cgl_stream *own = NULL;
  cgl_buffer *sum = NULL;
  const float zero = 0;
  float expected = 0, values[N];
  cgl_status status = cgl_stream_create(context, 0, &own);
  if (!status)
    status = cgl_buffer_create(own, NULL, CGL_TYPE_float, N, &sum);
  if (!status)
    status = cgl_buffer_fill(sum, own, &zero);
  for (int i = 0; i < ROUNDS && !status; i++) {
    const int n = i % 3 ? i : 200;
    cgl_graph *graph = begin(own);
    status = graph ? launch(own, sum, n) : cgl_last_error()->code;
    if (graph && !status)
      status = cgl_graph_capture_end(graph);
    if (!status)
      status = cgl_graph_replay(graph, own, 1);
    expected += (float)n;
    cgl_graph_release(graph);
  }
  if (!status)
    status = cgl_buffer_download(sum, own, 0, values, sizeof values);
  *(bool *)wrong = status || values[0] != expected;
  cgl_buffer_release(sum);
  cgl_stream_release(own);
  return NULL;
}


static void test_threads(void) {
  pthread_t threads[THREADS];
  bool wrong[THREADS], ok = true;
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, capture_often, &wrong[i]);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    ok = ok && !wrong[i];
  }
  tap_ok(ok, "threads that capture at once do not mix their recordings");
}


int main(void) {
  if (set_up()) {
    tap_ok(false, "the device opens: %s", cgl_last_error()->message);
    return tap_done();
  }
  test_handed_on();
  test_tight();
  test_bound();
  test_threads();
  tear_down();
  tap_ok(cgl_live("all") == 0, "nothing is alive afterwards (%lld)",
         (long long)cgl_live("all"));
  return tap_done();
}
