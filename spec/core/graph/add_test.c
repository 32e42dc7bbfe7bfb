/* A graph as a node of a graph that somebody else builds: captured or loaded,
   with its parameters, beside nodes of theirs; and what cannot be one. */
#include "core/graph/graph.h"
#include "tap.h"

#include <unistd.h>

static const char source[] =
    "extern \"C\" __global__ void add(float *x, float a) { *x += a; }\n"
    "extern \"C\" __global__ void draw(float *x, cgl_philox random) {\n"
    "  *x = cgl_uniform(random);\n"
    "}\n";
static const char path[] = "add-test.cgl";

static cgl_context *context;
static cgl_stream *stream;
static cgl_module *module;
static cgl_kernel *add, *draw;
static cgl_generator *generator;
static cgl_param *param;
static cgl_buffer *x, *flag;


static cgl_status launch(cgl_kernel *kernel) {
  static const cgl_launch one = {{1, 1, 1}, {1, 1, 1}, 0};
  const cgl_arg args[] = {
      {.kind = CGL_ARG_BUFFER, .buffer = x},
      kernel == add
          ? (cgl_arg){.kind = CGL_ARG_PARAM, .param = param}
          : (cgl_arg){.kind = CGL_ARG_GENERATOR, .generator = generator}};
  return cgl_kernel_launch(kernel, stream, &one, args, 2);
}


static cgl_status branch(void) {
  const cgl_conditional_desc desc = {.kind = CGL_CONDITIONAL_WHEN,
                                     .value = flag,
                                     .form = CGL_CONDITIONAL_NODE};
  cgl_conditional *conditional = NULL;
  cgl_stream *inner = NULL;
  int body = 0;
  cgl_status status = cgl_conditional_begin(stream, &desc, &conditional);
  while (!status &&
         !(status = cgl_conditional_next(conditional, &body, &inner)) &&
         body >= 0)
    ;
  return status ? status : cgl_conditional_end(conditional);
}


static cgl_graph *captured(cgl_status status, cgl_graph *graph) {
  if (!status)
    status = cgl_graph_capture_end(graph);
  tap_ok(!status, "a graph is captured: %s", cgl_last_error()->message);
  return graph;
}


static cgl_graph *begun(void) {
  cgl_graph *graph = NULL;
  if (!cgl_graph_create(context, NULL, &graph))
    cgl_graph_capture_begin(graph, stream);
  return graph;
}


static float value(cgl_buffer *buffer) {
  float number = -1;
  cgl_buffer_download(buffer, stream, 0, &number, sizeof number);
  return number;
}


static void set(cgl_param *of, float number) {
  cgl_param_set(of, &number);
}


/* Their graph: a fill, then ours twice in a row. */
static void replay_in_theirs(cgl_graph *graph, cgl_buffer *buffer,
                             const char *what) {
  const cgl_driver *driver = context->driver;
  const CUDA_MEMSET_NODE_PARAMS zero = {.dst = cgl_buffer_address(buffer),
                                        .elementSize = 4,
                                        .width = 1,
                                        .height = 1};
  CUgraph parent, copy;
  CUgraphExec exec;
  CUgraphNode first;
  void *node = NULL, *last = NULL;
  cgl_param *of = NULL;
  if (!tap_ok(!driver->cuGraphCreate(&parent, 0) &&
                  !driver->cuGraphAddMemsetNode(&first, parent, NULL, 0, &zero,
                                                context->handle) &&
                  !cgl_graph_param(graph, "a", &of),
              "%s: there is a graph of theirs", what))
    return;
  set(of, 3);
  tap_ok(!cgl_graph_add_to(graph, parent, (void **)&first, 1, &node) && node,
         "%s: it is a node there", what);
  set(of, 4);
  tap_ok(!cgl_graph_add_to(graph, parent, &node, 1, &last) && last != node,
         "%s: and another with other parameters", what);
  set(of, 100);
  tap_ok(!driver->cuGraphClone(&copy, parent) &&
             !driver->cuGraphDestroy(parent) &&
             !driver->cuGraphInstantiate(&exec, copy, 0) &&
             !driver->cuGraphLaunch(exec, cgl_stream_handle(stream)) &&
             !driver->cuGraphLaunch(exec, cgl_stream_handle(stream)),
         "%s: their graph runs", what);
  tap_ok(value(buffer) == 7, "%s: %g is what ran", what, value(buffer));
  tap_ok(!cgl_graph_replay(graph, stream, 1) && value(buffer) == 107,
         "%s: a replay beside it has what was set since", what);
  driver->cuGraphExecDestroy(exec);
  driver->cuGraphDestroy(copy);
}


static void refusals(cgl_graph *graph) {
  const cgl_driver *driver = context->driver;
  CUgraph parent;
  size_t nodes = 1;
  void *node = stream;
  cgl_graph *empty = NULL, *drawing, *branching;
  if (!tap_ok(!driver->cuGraphCreate(&parent, 0), "a graph for refusals"))
    return;
  cgl_graph_create(context, NULL, &empty);
  tap_ok(cgl_graph_add_to(empty, parent, NULL, 0, &node) ==
                 CGL_ERROR_NOT_CAPTURED &&
             !node,
         "without a capture: %s", cgl_last_error()->message);
  drawing = begun();
  captured(launch(draw), drawing);
  tap_ok(cgl_graph_add_to(drawing, parent, NULL, 0, &node) ==
             CGL_ERROR_CAPTURE_STATE,
         "with draws: %s", cgl_last_error()->message);
  branching = begun();
  captured(branch(), branching);
  tap_ok(cgl_graph_add_to(branching, parent, NULL, 0, &node) ==
             CGL_ERROR_CAPTURE_STATE,
         "with conditional nodes: %s", cgl_last_error()->message);
  tap_ok(!cgl_graph_set_enabled(graph, 0, false) &&
             cgl_graph_add_to(graph, parent, NULL, 0, &node) ==
                 CGL_ERROR_CAPTURE_STATE &&
             !cgl_graph_set_enabled(graph, 0, true),
         "with a node that is off: %s", cgl_last_error()->message);
  tap_ok(cgl_graph_add_to(graph, NULL, NULL, 0, &node) ==
             CUDA_ERROR_INVALID_VALUE,
         "into no graph: %s", cgl_last_error()->message);
  tap_ok(!driver->cuGraphGetNodes(parent, NULL, &nodes) && !nodes,
         "and nothing was added");
  driver->cuGraphDestroy(parent);
  cgl_graph_release(empty);
  cgl_graph_release(drawing);
  cgl_graph_release(branching);
}


/* A loaded graph in a capture that somebody else began. */
static void replay_in_capture(cgl_graph *graph, cgl_buffer *buffer) {
  const cgl_driver *driver = context->driver;
  cgl_stream *borrowed = NULL;
  cgl_param *of = NULL;
  CUstream theirs;
  CUgraph parent = NULL;
  CUgraphExec exec;
  const float before = value(buffer);
  cgl_graph_param(graph, "a", &of);
  set(of, 2);
  tap_ok(!driver->cuStreamCreate(&theirs, CU_STREAM_NON_BLOCKING) &&
             !cgl_stream_from_handle(context, theirs, &borrowed) &&
             !driver->cuStreamBeginCapture(theirs,
                                           CU_STREAM_CAPTURE_MODE_RELAXED) &&
             !cgl_graph_replay(graph, borrowed, 3) &&
             !driver->cuStreamEndCapture(theirs, &parent) &&
             !driver->cuGraphInstantiate(&exec, parent, 0),
         "it is replayed into a capture of theirs: %s",
         cgl_last_error()->message);
  set(of, 50);
  tap_ok(!driver->cuGraphLaunch(exec, cgl_stream_handle(stream)) &&
             value(buffer) == before + 6,
         "with what its parameters were");
  driver->cuGraphExecDestroy(exec);
  driver->cuGraphDestroy(parent);
  cgl_stream_release(borrowed);
  driver->cuStreamDestroy(theirs);
}


static cgl_status make(void) {
  static const cgl_module_desc desc = {.source = source};
  const float one = 1;
  cgl_status status = cgl_module_create(context, &desc, &module);
  if (!status)
    status = cgl_module_kernel(module, "add", &add);
  if (!status)
    status = cgl_module_kernel(module, "draw", &draw);
  if (!status)
    status = cgl_generator_create(context, 7, &generator);
  if (!status)
    status = cgl_param_create(context, CGL_TYPE_float, 1, &one, "a", &param);
  if (!status)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_float, 1, &x);
  if (!status)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_bool, 1, &flag);
  return status;
}


int main(void) {
  cgl_status status = cgl_context_open(NULL, &context);
  if (!status)
    status = cgl_stream_create(context, 0, &stream);
  if (!status)
    status = make();
  if (tap_ok(!status, "a device: %s", cgl_last_error()->message)) {
    cgl_graph *graph = begun(), *loaded = NULL;
    captured(launch(add), graph);
    replay_in_theirs(graph, x, "captured");
    refusals(graph);
    const cgl_named_buffer name = {"x", x};
    const cgl_save_graph file = {.graph = graph, .inputs = &name, .ninputs = 1};
    status = cgl_graph_save(&file, 1, path, NULL);
    cgl_graph_release(graph);
    if (!status)
      status = cgl_graph_load(context, path, NULL, &loaded);
    if (tap_ok(!status, "it is saved and loaded")) {
      replay_in_theirs(loaded, cgl_graph_input(loaded, "x"), "loaded");
      replay_in_capture(loaded, cgl_graph_input(loaded, "x"));
    }
    cgl_graph_release(loaded);
    unlink(path);
  }
  cgl_buffer_release(flag);
  cgl_buffer_release(x);
  cgl_param_release(param);
  cgl_generator_release(generator);
  cgl_kernel_release(draw);
  cgl_kernel_release(add);
  cgl_module_release(module);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(!cgl_live("graph") && !cgl_live("buffer") && !cgl_live("param"),
         "nothing is left alive");
  return tap_done();
}
