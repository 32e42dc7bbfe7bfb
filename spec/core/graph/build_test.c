/* The builder: graphs made from recordings are the graphs that were captured,
   and a difference is found.  On the device that $CGRAPHLUA_DEVICE names. */
#include "core/graph/build.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { N = 96 };

static const char source[] =
    "extern \"C\" __global__ void add(float *x, const float *y, float a) {\n"
    "  x[threadIdx.x] += a * y[threadIdx.x];\n"
    "}\n"
    "extern \"C\" __global__ void draw(float *x, cgl_philox random) {\n"
    "  x[threadIdx.x] = cgl_uniform(random);\n"
    "}\n";

static cgl_context *context;
static const cgl_driver *cu;
static cgl_stream *stream, *other;
static cgl_module *module;
static cgl_kernel *add;
static cgl_buffer *x, *y;
static cgl_pinned *pinned;
static cgl_generator *generator;


static cgl_status set_up(void) {
  static const cgl_module_desc desc = {.source = source};
  const float one = 1;
  cgl_status status = cgl_context_open(NULL, &context);
  if (!status)
    status = cgl_stream_create(context, -1, &stream);
  if (!status)
    status = cgl_stream_create(context, 0, &other);
  if (!status)
    status = cgl_module_create(context, &desc, &module);
  if (!status)
    status = cgl_module_kernel(module, "add", &add);
  if (!status)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_float, N, &x);
  if (!status)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_float, N, &y);
  if (!status)
    status = cgl_buffer_fill(y, stream, &one);
  if (!status)
    status = cgl_pinned_create(context, CGL_TYPE_float, N, &pinned);
  if (!status)
    status = cgl_generator_create(context, 7, &generator);
  cu = status ? NULL : cgl_context_driver(context);
  return status;
}


static cgl_status check(cgl_graph *graph) {
  return cgl_build_check(context, graph->recording, graph->template->graph,
                         "test");
}


static void tear_down(void) {
  cgl_generator_release(generator);
  cgl_pinned_release(pinned);
  cgl_buffer_release(x);
  cgl_buffer_release(y);
  cgl_kernel_release(add);
  cgl_module_release(module);
  cgl_stream_release(stream);
  cgl_stream_release(other);
  cgl_context_release(context);
}


static cgl_status launch(cgl_stream *on, float a) {
  static const cgl_launch shape = {{1, 1, 1}, {N, 1, 1}, 0};
  const cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = x},
                          {.kind = CGL_ARG_BUFFER, .buffer = y},
                          {.kind = CGL_ARG_NUMBER, .number = a}};
  return cgl_kernel_launch(add, on, &shape, args, 3);
}


/* ---- what is captured ---- */

static cgl_status line(void) {
  const float two = 2;
  cgl_status status = cgl_buffer_fill(x, stream, &two);
  for (int i = 1; i < 4 && !status; i++)
    status = launch(stream, (float)i);
  return status;
}


static cgl_status copies(void) {
  cgl_status status = cgl_buffer_copy_pinned(x, pinned, stream);
  if (!status)
    status = cgl_buffer_copy(x, y, stream);
  return status ? status : cgl_pinned_copy(pinned, x, stream);
}


/* Elements of every size; those of eight bytes are one node or two. */
static cgl_status fills(void) {
  static const cgl_type types[] = {CGL_TYPE_uint8, CGL_TYPE_int16,
                                   CGL_TYPE_float, CGL_TYPE_uint64,
                                   CGL_TYPE_double};
  const double third = 1.0 / 3;
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < sizeof types / sizeof *types && !status; i++) {
    cgl_buffer *buffer = NULL;
    status = cgl_buffer_create(stream, NULL, types[i], 33, &buffer);
    if (!status)
      status = cgl_buffer_fill(buffer, stream, &third);
    const uint64_t same = UINT64_C(0x4141414141414141);
    if (!status)
      status = cgl_buffer_fill(buffer, stream, &same);
    cgl_buffer_release(buffer);
  }
  return status;
}


static cgl_status branches(void) {
  cgl_status status = launch(stream, 1);
  if (!status)
    status = cgl_stream_wait_stream(other, stream);
  if (!status)
    status = launch(other, 2);
  if (!status)
    status = cgl_pinned_copy(pinned, y, stream);
  if (!status)
    status = cgl_stream_wait_stream(stream, other);
  return status ? status : launch(stream, 3);
}


static cgl_status draws(void) {
  static const cgl_launch shape = {{1, 1, 1}, {N, 1, 1}, 0};
  const cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = x},
                          {.kind = CGL_ARG_GENERATOR, .generator = generator}};
  cgl_kernel *draw = NULL;
  cgl_status status = cgl_buffer_uniform(x, generator, stream, 0, 1);
  if (!status)
    status = cgl_buffer_normal(y, generator, stream, 1, 2);
  if (!status)
    status = cgl_module_kernel(module, "draw", &draw);
  if (!status)
    status = cgl_kernel_launch(draw, stream, &shape, args, 2);
  cgl_kernel_release(draw);
  return status;
}


static cgl_status events(void) {
  cgl_event *event = NULL;
  cgl_status status = cgl_event_create(context, true, &event);
  if (!status)
    status = cgl_event_record_external(event, stream);
  if (!status)
    status = launch(stream, 1);
  if (!status)
    status = cgl_stream_wait_event_external(stream, event);
  cgl_event_release(event);
  return status;
}


static cgl_graph *captured(cgl_status (*job)(void)) {
  const cgl_graph_desc desc = {.keep_graph = true};
  cgl_graph *graph = NULL;
  cgl_status status = cgl_graph_create(context, &desc, &graph);
  if (!status)
    status = cgl_graph_capture_begin(graph, stream);
  if (!status)
    status = job();
  if (!status)
    status = cgl_graph_capture_end(graph);
  if (!status)
    return graph;
  printf("# %s\n", cgl_last_error()->message);
  cgl_graph_release(graph);
  return NULL;
}


static cgl_graph *inner;

static cgl_status children(void) {
  cgl_status status = launch(stream, 1);
  if (!status)
    status = cgl_graph_replay(inner, stream, 2);
  return status ? status : launch(stream, 5);
}


/* ---- tests ---- */

static bool is_built_alike(cgl_graph *graph) {
  if (!graph || check(graph)) {
    printf("# %s\n", cgl_last_error()->message);
    return false;
  }
  return true;
}


static void test_kinds(void) {
  static const struct {
    const char *name;
    cgl_status (*job)(void);
  } jobs[] = {{"a line of kernels", line},
              {"copies", copies},
              {"fills", fills},
              {"branches", branches},
              {"draws", draws},
              {"external events", events}};
  for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++) {
    cgl_graph *graph = captured(jobs[i].job);
    tap_ok(is_built_alike(graph), "%s are built as they were captured",
           jobs[i].name);
    cgl_graph_release(graph);
  }
}


static void test_children(void) {
  inner = captured(branches);
  cgl_graph *middle = captured(children);
  cgl_graph *first = inner;
  inner = middle;
  cgl_graph *outer = captured(children);
  tap_ok(is_built_alike(middle), "a graph with child graphs is built alike");
  tap_ok(is_built_alike(outer), "and a graph with graphs of such");
  /* The outer graph keeps what it runs when the inner ones change. */
  const cgl_arg args[] = {{.kind = CGL_ARG_SAME},
                          {.kind = CGL_ARG_SAME},
                          {.kind = CGL_ARG_NUMBER, .number = 100}};
  tap_ok(first && middle && !cgl_graph_set_params(first, 0, NULL, args, 3) &&
             !cgl_graph_set_params(middle, 0, NULL, args, 3) &&
             is_built_alike(outer) && is_built_alike(middle),
         "changes of a child leave the graphs that have it as they were");
  cgl_graph_release(first);
  cgl_graph_release(middle);
  tap_ok(is_built_alike(outer) && !cgl_graph_replay(outer, stream, 1) &&
             !cgl_stream_synchronize(stream),
         "and so does their end");
  cgl_graph_release(outer);
}


/* The built graph runs, with the same result. */
static void test_run(void) {
  cgl_graph *graph = captured(line);
  CUgraph built = NULL;
  CUgraphExec exec = NULL;
  float values[N] = {0};
  bool ran = graph && !cgl_graph_learn(graph, "test") &&
             !cgl_build_graph(context, graph->recording, 1, "test", &built) &&
             !cu->cuGraphInstantiate(&exec, built, 0) &&
             !cu->cuGraphLaunch(exec, stream->handle) &&
             !cgl_buffer_download(x, stream, 0, values, sizeof values);
  float one[N] = {0};
  ran = ran && !cgl_buffer_download(y, stream, 0, one, sizeof one);
  float expected = 2;
  for (int i = 1; i < 4; i++)
    expected += (float)i * one[N - 1];
  tap_ok(ran && values[N - 1] == expected, "what is built runs: %g",
         (double)values[N - 1]);
  if (exec)
    cu->cuGraphExecDestroy(exec);
  if (built)
    cu->cuGraphDestroy(built);
  cgl_graph_release(graph);
}


static cgl_status kernels(void) {
  cgl_status status = CGL_OK;
  for (int i = 0; i < 3 && !status; i++)
    status = launch(stream, (float)i);
  return status;
}


static cgl_status fork_first(void) {
  cgl_status status = cgl_stream_wait_stream(other, stream);
  if (!status)
    status = launch(stream, 1);
  if (!status)
    status = launch(other, 2);
  return status ? status : cgl_stream_wait_stream(stream, other);
}


/* Three copies: their edges, and how many of those are programmatic on a device
   that has such edges. */
static void copies_have(const char *what, cgl_status (*job)(void), size_t nodes,
                        size_t edges, size_t programmatic) {
  cgl_graph *graph = captured(job);
  CUgraph built = NULL;
  CUgraphNode from[64], to[64];
  CUgraphEdgeData data[64];
  size_t count = 0, n = 64, early = 0;
  const bool good =
      graph && !cgl_graph_learn(graph, "test") &&
      !cgl_build_graph(context, graph->recording, 3, "test", &built) &&
      !cu->cuGraphGetNodes(built, NULL, &count) &&
      !cu->cuGraphGetEdges(built, from, to, data, &n);
  for (size_t i = 0; good && i < n; i++)
    early += data[i].type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
  if (!add->waiter.waits)
    programmatic = 0;
  tap_ok(good && count == nodes && n == edges && early == programmatic,
         "copies of %s: %zu nodes, %zu edges, %zu programmatic", what, count, n,
         early);
  if (built)
    cu->cuGraphDestroy(built);
  cgl_graph_release(graph);
}


static void test_copies(void) {
  copies_have("a line", line, 12, 11, 6);
  copies_have("kernels alone", kernels, 9, 8, 8);
  copies_have("two ends and two beginnings", fork_first, 6, 8, 0);
  copies_have("a fork and a join", branches, 12, 14, 2);
}


/* Whether replays on the stream built copies. */
static bool builds_copies(cgl_graph *graph, cgl_stream *on) {
  return !cgl_graph_replay(graph, on, 1000) && !cgl_stream_synchronize(on) &&
         graph->unroll.executable;
}


/* A deadline of an isolated stream is for one replay. */
static void test_isolated(void) {
  cgl_graph *graph = captured(kernels);
  cgl_stream *isolated = NULL;
  cgl_stream_create(context, 0, &isolated);
  if (cgl_stream_isolate(isolated, 60) == CUDA_ERROR_NOT_SUPPORTED)
    tap_skip("isolated streams", "the driver has none");
  else
    tap_ok(graph && !builds_copies(graph, isolated),
           "loops on an isolated stream run as single replays");
  tap_ok(graph && builds_copies(graph, stream), "other loops run as copies");
  cgl_stream_release(isolated);
  cgl_graph_release(graph);
}


/* Edges have data since CUDA 12.3. */
static void test_old_driver(void) {
  const cgl_driver *driver = context->driver;
  static const int versions[] = {12020, 12030};
  for (int i = 0; i < 2; i++) {
    cgl_driver older = *driver;
    older.version = versions[i];
    context->driver = &older;
    cgl_graph *graph = captured(kernels);
    context->driver = driver;
    const bool early =
        graph && cgl_record_op(graph->recording, 1)->programmatic;
    tap_ok(early == (i && add->waiter.waits), "CUDA %d.%d: %s edges",
           versions[i] / 1000, versions[i] % 1000 / 10,
           early ? "programmatic" : "full");
    cgl_graph_release(graph);
  }
}


static void test_foreign(void) {
  const cgl_graph_desc desc = {.keep_graph = true};
  cgl_graph *graph = NULL;
  cgl_graph_create(context, &desc, &graph);
  cgl_graph_capture_begin(graph, stream);
  launch(stream, 1);
  cu->cuMemsetD8Async(cgl_buffer_address(y), 0, 4,
                      (CUstream)cgl_stream_handle(stream));
  cgl_graph_capture_end(graph);
  CUgraph built = NULL;
  tap_ok(!cgl_graph_learn(graph, "test") &&
             cgl_build_graph(context, graph->recording, 1, "test", &built) ==
                 CGL_ERROR_INVALID_ARGUMENT &&
             strstr(cgl_last_error()->message, "another library"),
         "a node of others is named and refused");
  cgl_graph_release(graph);
}


/* The check finds what it is there for. */
static void test_differences(void) {
  cgl_graph *graph = captured(line);
  const CUgraph template = graph ? graph->template->graph : NULL;
  CUgraphNode nodes[4], from[4], extra;
  CUgraphEdgeData data[4];
  size_t n = 4;
  CUDA_KERNEL_NODE_PARAMS params;
  memset(&params, 0, sizeof params);
  memset(data, 0, sizeof data);
  tap_ok(graph && !cu->cuGraphGetNodes(template, nodes, &n) && n == 4 &&
             is_built_alike(graph),
         "a graph that nobody has edited");
  cu->cuGraphAddEmptyNode(&extra, template, NULL, 0);
  tap_ok(check(graph) == CGL_ERROR_CAPTURE_STATE, "one node more is found: %s",
         cgl_last_error()->message);
  cu->cuGraphDestroyNode(extra);
  n = 4;
  cu->cuGraphNodeGetDependencies(nodes[2], from, data, &n);
  cu->cuGraphRemoveDependencies(template, &nodes[1], &nodes[2], data, 1);
  cu->cuGraphAddDependencies(template, &nodes[0], &nodes[2], NULL, 1);
  tap_ok(check(graph) == CGL_ERROR_CAPTURE_STATE, "another edge is found: %s",
         cgl_last_error()->message);
  cu->cuGraphRemoveDependencies(template, &nodes[0], &nodes[2], NULL, 1);
  if (data[0].type) {
    cu->cuGraphAddDependencies(template, &nodes[1], &nodes[2], NULL, 1);
    tap_ok(check(graph) == CGL_ERROR_CAPTURE_STATE,
           "an edge of another type is found: %s", cgl_last_error()->message);
    cu->cuGraphRemoveDependencies(template, &nodes[1], &nodes[2], NULL, 1);
  }
  cu->cuGraphAddDependencies(template, &nodes[1], &nodes[2], data, 1);
  tap_ok(is_built_alike(graph), "put back, it is as before");
  cu->cuGraphKernelNodeGetParams(nodes[3], &params);
  float a = 77;
  void *values[] = {params.kernelParams[0], params.kernelParams[1], &a};
  CUgraphNodeParams changed;
  memset(&changed, 0, sizeof changed);
  changed.type = CU_GRAPH_NODE_TYPE_KERNEL;
  changed.kernel = params;
  changed.kernel.kernelParams = values;
  tap_ok(!cu->cuGraphNodeSetParams(nodes[3], &changed) &&
             check(graph) == CGL_ERROR_CAPTURE_STATE,
         "another number is found: %s", cgl_last_error()->message);
  cgl_graph_release(graph);
}


int main(void) {
  setenv("CGRAPHLUA_CHECK_BUILD", "1", 1);
  if (set_up()) {
    tap_ok(false, "set-up: %s", cgl_last_error()->message);
    return tap_done();
  }
  test_run();
  test_kinds();
  test_children();
  test_copies();
  test_isolated();
  test_old_driver();
  test_foreign();
  test_differences();
  tear_down();
  tap_ok(cgl_live("all") == 0, "nothing is alive at the end (%lld)",
         (long long)cgl_live("all"));
  return tap_done();
}
