/* The core from C, on the device that $CGRAPHLUA_DEVICE names: graphs and
   their pools, lifetimes, the fault sweep. */
#include "cgraphlua.h"
#include "core/graph/graph.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static const char source[] =
    "extern \"C\" __global__ void add(float *x, float a, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) x[i] += a;\n"
    "}\n";

enum { N = 1000 };

typedef struct bench {
  cgl_context *context;
  cgl_stream *stream;
  cgl_module *module;
  cgl_kernel *kernel;
  cgl_buffer *buffer;
  cgl_graph *graph;
} bench;


static cgl_status bench_open(bench *b) {
  memset(b, 0, sizeof *b);
  cgl_module_desc desc = {.source = source};
  float zero = 0;
  cgl_status status = cgl_context_open(NULL, &b->context);
  if (!status)
    status = cgl_stream_create(b->context, 0, &b->stream);
  if (!status)
    status = cgl_module_create(b->context, &desc, &b->module);
  if (!status)
    status = cgl_module_kernel(b->module, "add", &b->kernel);
  if (!status)
    status = cgl_buffer_create(b->stream, NULL, CGL_TYPE_float, N, &b->buffer);
  if (!status)
    status = cgl_buffer_fill(b->buffer, b->stream, &zero);
  if (!status)
    status = cgl_graph_create(b->context, NULL, &b->graph);
  return status;
}


static void bench_close(bench *b) {
  cgl_graph_release(b->graph);
  cgl_buffer_release(b->buffer);
  cgl_kernel_release(b->kernel);
  cgl_module_release(b->module);
  cgl_stream_release(b->stream);
  cgl_context_release(b->context);
}


static cgl_status launch_add(bench *b, cgl_stream *stream, cgl_buffer *buffer,
                             float a) {
  cgl_launch launch = {.grid = {(N + 127) / 128}, .block = {128}};
  cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = buffer},
                    {.kind = CGL_ARG_NUMBER, .number = a},
                    {.kind = CGL_ARG_INT, .i = N}};
  return cgl_kernel_launch(b->kernel, stream, &launch, args, 3);
}


/* scratch = buffer + 1; buffer = scratch, in a graph with its own scratch. */
static cgl_status capture_add(bench *b) {
  cgl_buffer *scratch = NULL;
  cgl_status status = cgl_graph_capture_begin(b->graph, b->stream);
  if (status)
    return status;
  status = cgl_buffer_create(b->stream, NULL, CGL_TYPE_float, N, &scratch);
  if (!status)
    status = cgl_buffer_copy(scratch, b->buffer, b->stream);
  if (!status)
    status = launch_add(b, b->stream, scratch, 1);
  if (!status)
    status = cgl_buffer_copy(b->buffer, scratch, b->stream);
  cgl_buffer_release(scratch);
  if (status)
    cgl_graph_capture_abandon(b->graph);
  else
    status = cgl_graph_capture_end(b->graph);
  return status;
}


static cgl_status first_value(bench *b, float *value) {
  float out[N];
  cgl_status status =
      cgl_buffer_download(b->buffer, b->stream, 0, out, sizeof out);
  *value = status ? -1 : out[0] == out[N - 1] ? out[0] : -2;
  return status;
}


static cgl_status whole_job(float *value) {
  bench b;
  cgl_status status = bench_open(&b);
  if (!status)
    status = capture_add(&b);
  if (!status)
    status = cgl_graph_replay(b.graph, b.stream, 5);
  if (!status)
    status = first_value(&b, value);
  bench_close(&b);
  return status;
}


static void test_job(void) {
  float value = 0;
  cgl_status status = whole_job(&value);
  tap_ok(!status && value == 5,
         "a captured graph replays: 5 replays add 5 (%g)", value);
  tap_ok(cgl_live("all") == 0, "nothing is alive afterwards (%lld)",
         (long long)cgl_live("all"));
}


static void test_scratch(void) {
  bench b;
  bench_open(&b);
  cgl_graph_capture_begin(b.graph, b.stream);
  uint64_t address[3];
  for (int i = 0; i < 3; i++) {
    cgl_buffer *scratch;
    cgl_buffer_create(b.stream, NULL, CGL_TYPE_float, N, &scratch);
    launch_add(&b, b.stream, scratch, 1);
    address[i] = cgl_buffer_address(scratch);
    cgl_buffer_release(scratch);
  }
  bool guarded = getenv("CGRAPHLUA_HOST_GUARD") != NULL;
  tap_ok(guarded || (address[0] == address[1] && address[1] == address[2]),
         "scratch freed in a capture serves again in it");
  tap_ok(cgl_graph_capture_end(b.graph) == CGL_OK, "and the capture ends");
  tap_ok(cgl_pool_is_valid(b.graph->pool), "the graph's pool is valid");
  bench_close(&b);
}


static void test_deferral(void) {
  bench b;
  bench_open(&b);
  cgl_graph *other;
  cgl_graph_create(b.context, NULL, &other);
  bench c = b;
  c.graph = other;
  capture_add(&c);
  const cgl_capture_mode modes[] = {
      CGL_CAPTURE_GLOBAL, CGL_CAPTURE_THREAD_LOCAL, CGL_CAPTURE_RELAXED};
  for (int i = 0; i < 3; i++) {
    cgl_graph_desc desc = {.capture_mode = modes[i]};
    cgl_graph *graph;
    cgl_graph_create(b.context, &desc, &graph);
    cgl_graph_capture_begin(graph, b.stream);
    launch_add(&b, b.stream, b.buffer, 1);
    cgl_module *module;
    cgl_module_desc source_desc = {.source = source};
    cgl_pinned *pinned;
    cgl_module_create(b.context, &source_desc, &module);
    cgl_pinned_create(b.context, CGL_TYPE_float, N, &pinned);
    int64_t before = cgl_live("module");
    cgl_module_release(module);
    cgl_pinned_release(pinned);
    cgl_graph_release(i == 0 ? other : NULL);
    tap_ok(cgl_live("module") == before,
           "mode %d: a module released in a capture waits", i);
    tap_ok(cgl_graph_capture_end(graph) == CGL_OK,
           "mode %d: releases do not break the capture", i);
    tap_ok(cgl_live("module") == before - 1,
           "mode %d: it goes when the capture has ended", i);
    cgl_graph_release(graph);
  }
  bench_close(&b);
  tap_ok(cgl_live("all") == 0, "nothing is alive afterwards (%lld)",
         (long long)cgl_live("all"));
}


static void test_dropped(void) {
  bench b;
  bench_open(&b);
  cgl_graph_capture_begin(b.graph, b.stream);
  launch_add(&b, b.stream, b.buffer, 1);
  cgl_graph_release(b.graph);
  b.graph = NULL;
  bool capturing = true;
  tap_ok(!cgl_stream_is_capturing(b.stream, &capturing) && !capturing,
         "a graph dropped in mid-capture leaves its stream free");
  cgl_graph_create(b.context, NULL, &b.graph);
  float value;
  tap_ok(!capture_add(&b) && !cgl_graph_replay(b.graph, b.stream, 1) &&
             !first_value(&b, &value) && value == 1,
         "and the next capture works");
  bench_close(&b);
}


static void test_child(void) {
  bench b;
  bench_open(&b);
  capture_add(&b);
  cgl_graph *outer;
  cgl_graph_create(b.context, NULL, &outer);
  cgl_graph_capture_begin(outer, b.stream);
  cgl_graph_replay(b.graph, b.stream, 3);
  cgl_graph_release(b.graph);
  b.graph = NULL;
  cgl_status status = cgl_graph_capture_end(outer);
  size_t count = 0;
  cgl_graph_node_count(outer, &count);
  tap_ok(!status && count == 3, "replays in a capture are child graphs (%zu)",
         count);
  float value = 0;
  cgl_graph_replay(outer, b.stream, 2);
  status = first_value(&b, &value);
  tap_ok(!status && value == 6,
         "which run although the inner graph was dropped (%g)", value);
  cgl_graph_release(outer);
  bench_close(&b);
}


/* A description that was never cleared. */
static void test_described(const bench *b) {
  cgl_graph_desc wrong[] = {
      {.capture_mode = (cgl_capture_mode)(CGL_CAPTURE_RELAXED + 1)},
      {.capture_mode = (cgl_capture_mode)-1},
      {.annotations = (cgl_annotations)(CGL_ANNOTATIONS_NVTX + 1)},
  };
  bool refused = true;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    cgl_graph *graph = NULL;
    refused = refused &&
              cgl_graph_create(b->context, &wrong[i], &graph) ==
                  CGL_ERROR_INVALID_ARGUMENT &&
              !graph;
  }
  tap_ok(refused, "modes that do not exist are refused");
}


/* Fields of a struct by value, a struct in it, and of what is none. */
static void test_fields(const bench *b) {
  const cgl_module_desc desc = {
      .source = "struct in { float v[2]; };\n"
                "extern \"C\" __global__ void k(int n, struct s s);\n"
                "struct s { char c; in list[3]; double *p; };\n"
                "extern \"C\" __global__ void k(int n, s a) {}"};
  cgl_module *module = NULL;
  cgl_kernel *kernel = NULL;
  cgl_field_info list = {.name = ""}, v = {.name = ""}, p = {.name = ""};
  cgl_status status = cgl_module_create(b->context, &desc, &module);
  if (!status)
    status = cgl_module_kernel(module, "k", &kernel);
  tap_ok(!status, "a kernel that takes a struct");
  if (!status) {
    cgl_kernel_field(kernel, 1, 1, &list);
    cgl_kernel_field(kernel, 1, 2, &v);
    cgl_kernel_field(kernel, 1, 3, &p);
    tap_ok(cgl_kernel_field_count(kernel, 1) == 4 &&
               !strcmp(list.name, "list") && list.offset == 4 &&
               list.bytes == 8 && list.ndims == 1 && list.extents[0] == 3 &&
               list.nested == 1 && list.element == CGL_TYPE_COUNT,
           "its fields are told, a struct's own behind it");
    tap_ok(!strcmp(v.name, "v") && v.offset == 0 && v.bytes == 4 &&
               v.element == CGL_TYPE_float && v.lanes == 1 && p.pointer &&
               p.offset == 32,
           "each with its place");
    tap_ok(cgl_kernel_field_count(kernel, 0) == 0 &&
               cgl_kernel_field_count(kernel, 9) == 0 &&
               cgl_kernel_field(kernel, 0, 0, &v) ==
                   CGL_ERROR_INVALID_ARGUMENT &&
               cgl_kernel_field(kernel, 1, 4, &v) == CGL_ERROR_INVALID_ARGUMENT,
           "and no field that is not there");
  }
  cgl_kernel_release(kernel);
  cgl_module_release(module);
}


static void test_errors(void) {
  bench b;
  bench_open(&b);
  test_described(&b);
  test_fields(&b);
  cgl_set_site("script.lua", 7);
  tap_ok(cgl_graph_replay(b.graph, b.stream, 1) == CGL_ERROR_NOT_CAPTURED &&
             !strcmp(cgl_last_error()->where, "script.lua:7"),
         "replay before capture is refused where it was asked for");
  cgl_graph_capture_begin(b.graph, b.stream);
  cgl_set_site("script.lua", 8);
  tap_ok(cgl_stream_synchronize(b.stream) ==
             CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         "synchronize in a capture is refused");
  cgl_launch launch = {.grid = {1}, .block = {4096}};
  tap_ok(cgl_kernel_launch(b.kernel, b.stream, &launch, NULL, 0) != CGL_OK,
         "and so is a bad launch");
  launch_add(&b, b.stream, b.buffer, 1);
  tap_ok(cgl_graph_capture_end(b.graph) == CGL_OK,
         "neither costs more than its own call");
  cgl_graph_reset(b.graph);
  cgl_stream *fork;
  cgl_stream_create(b.context, 0, &fork);
  cgl_graph_capture_begin(b.graph, b.stream);
  launch_add(&b, b.stream, b.buffer, 1);
  cgl_set_site("script.lua", 20);
  cgl_stream_wait_stream(fork, b.stream);
  launch_add(&b, fork, b.buffer, 1);
  tap_ok(cgl_graph_capture_end(b.graph) == CUDA_ERROR_STREAM_CAPTURE_UNJOINED &&
             strstr(cgl_last_error()->message, "script.lua:20"),
         "an unjoined fork is named with its line: %s",
         cgl_last_error()->message);
  cgl_set_site(NULL, 0);
  cgl_stream_release(fork);
  bench_close(&b);
}


static void test_faults(void) {
  if (cgl_fault(0, 0)) {
    tap_skip("fault sweep", "CGRAPHLUA_FAULT=1 is not set");
    return;
  }
  int failures = 0, wrong = 0, alive = 0;
  uint64_t k = 1;
  const char *hit = "";
  for (; hit; k++) {
    float value = 0;
    cgl_fault(k, 0);
    cgl_status status = whole_job(&value);
    cgl_fault_count(&hit);
    cgl_fault(0, 0);
    failures += status != CGL_OK;
    if (status ? !*cgl_last_error()->message : value != 5)
      wrong++;
    if (cgl_live("all")) {
      alive++;
      printf("# call %llu (%s) left %lld objects\n", (unsigned long long)k,
             hit ? hit : "none", (long long)cgl_live("all"));
    }
    value = 0;
    if (whole_job(&value) || value != 5) {
      wrong++;
      printf("# after call %llu (%s): %s\n", (unsigned long long)k,
             hit ? hit : "none", cgl_last_error()->message);
    }
  }
  tap_ok(k > 20 && failures > 20, "the sweep reached %llu calls, %d failed",
         (unsigned long long)k - 2, failures);
  tap_ok(!wrong, "each a clear error or a right result, then a right job");
  tap_ok(!alive, "and nothing alive after any");
}


int main(void) {
  test_job();
  test_scratch();
  test_deferral();
  test_dropped();
  test_child();
  test_errors();
  test_faults();
  tap_ok(cgl_live("all") == 0, "nothing is alive at the end (%lld)",
         (long long)cgl_live("all"));
  return tap_done();
}
