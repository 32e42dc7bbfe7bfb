/* Changing a captured graph from C, and what the driver's template says
   afterwards. */
#include "cgraphlua.h"
#include "driver/table.h"
#include "tap.h"

#include <string.h>

enum { N = 64 };

static cgl_context *context;
static const cgl_driver *cu;
static cgl_stream *stream;
static cgl_module *module;
static cgl_kernel *add;
static cgl_buffer *x, *y, *z;
static cgl_graph *graph;

static const cgl_launch launch = {{1, 1, 1}, {N, 1, 1}, 0};


static float first(cgl_buffer *buffer) {
  float values[N];
  cgl_status status =
      cgl_buffer_download(buffer, stream, 0, values, sizeof values);
  return status ? -1 : values[0];
}


static cgl_arg number(double value) {
  return (cgl_arg){.kind = CGL_ARG_NUMBER, .number = value};
}


static cgl_arg memory(cgl_buffer *buffer) {
  return (cgl_arg){.kind = CGL_ARG_BUFFER, .buffer = buffer};
}


static cgl_status set_up(void) {
  static const cgl_module_desc desc = {
      .source = "extern \"C\" __global__ void add(float *x, float a) {\n"
                "  x[threadIdx.x] += a;\n"
                "}\n"};
  cgl_status status = cgl_context_open(NULL, &context);
  if (!status)
    status = cgl_stream_create(context, -1, &stream);
  if (!status)
    status = cgl_module_create(context, &desc, &module);
  if (!status)
    status = cgl_module_kernel(module, "add", &add);
  cgl_buffer **buffers[] = {&x, &y, &z};
  const float zero = 0;
  for (int i = 0; i < 3 && !status; i++) {
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_float, N, buffers[i]);
    if (!status)
      status = cgl_buffer_fill(*buffers[i], stream, &zero);
  }
  cu = status ? NULL : cgl_context_driver(context);
  return status;
}


/* x += 1; y = 5; z = y; and as a graph of its own, z = y. */
static cgl_status capture(void) {
  const cgl_arg args[] = {memory(x), number(1)};
  const cgl_graph_desc desc = {.keep_graph = true};
  const float five = 5;
  cgl_graph *inner = NULL;
  cgl_status status = cgl_graph_create(context, NULL, &inner);
  if (!status)
    status = cgl_graph_capture_begin(inner, stream);
  if (!status)
    status = cgl_buffer_copy(z, y, stream);
  if (!status)
    status = cgl_graph_capture_end(inner);
  if (!status)
    status = cgl_graph_create(context, &desc, &graph);
  if (!status)
    status = cgl_graph_capture_begin(graph, stream);
  if (!status)
    status = cgl_kernel_launch(add, stream, &launch, args, 2);
  if (!status)
    status = cgl_buffer_fill(y, stream, &five);
  if (!status)
    status = cgl_buffer_copy(z, y, stream);
  if (!status)
    status = cgl_graph_replay(inner, stream, 1);
  if (!status)
    status = cgl_graph_capture_end(graph);
  cgl_graph_release(inner);
  return status;
}


/* ---- the template ---- */

typedef struct looked {
  float a;      /* what the kernel's node adds */
  int priority; /* that it runs with */
  CUdeviceptr to;
  unsigned word; /* that the fill's node writes */
} looked;


/* What the driver says of the template's first two nodes. */
static bool look(looked *what) {
  CUgraphNode nodes[8];
  size_t count = 8;
  void *template;
  CUDA_KERNEL_NODE_PARAMS kernel;
  CUDA_MEMSET_NODE_PARAMS fill;
  CUkernelNodeAttrValue value;
  memset(&value, 0, sizeof value);
  if (cgl_graph_raw_graph(graph, &template) ||
      cu->cuGraphGetNodes(template, nodes, &count) || count != 4 ||
      cu->cuGraphKernelNodeGetParams(nodes[0], &kernel) ||
      cu->cuGraphMemsetNodeGetParams(nodes[1], &fill) ||
      cu->cuGraphKernelNodeGetAttribute(nodes[0], CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                        &value))
    return false;
  memcpy(&what->to, kernel.kernelParams[0], sizeof what->to);
  memcpy(&what->a, kernel.kernelParams[1], sizeof what->a);
  what->priority = value.priority;
  what->word = fill.value;
  return true;
}


static void test_template(void) {
  looked before = {0}, now = {0};
  cgl_arg args[] = {{.kind = CGL_ARG_SAME}, number(10)};
  const float seven = 7;
  bool ok = look(&before);
  tap_ok(ok && before.a == 1 && before.priority < 0,
         "a kernel's node has its stream's priority (%d)", before.priority);
  ok = !cgl_graph_set_params(graph, 0, NULL, args, 2) && look(&now);
  tap_ok(ok && now.a == 10 && now.to == before.to,
         "a template without an executable is changed at once (%g)",
         (double)now.a);
  tap_ok(ok && now.priority == before.priority,
         "and the node keeps its priority (%d)", now.priority);
  args[0] = memory(y);
  args[1] = number(100);
  ok = !cgl_graph_instantiate(graph) &&
       !cgl_graph_set_params(graph, 0, NULL, args, 2) &&
       !cgl_graph_set_fill(graph, 1, NULL, &seven) && look(&now);
  tap_ok(ok && now.a == 100 && now.to == cgl_buffer_address(y) &&
             now.word == 0x40e00000u && now.priority == before.priority,
         "one with an executable, when somebody asks for it (%g)",
         (double)now.a);
  args[0] = memory(x);
  ok = !cgl_graph_set_params(graph, 0, NULL, args, 2) &&
       !cgl_graph_replay(graph, stream, 2);
  tap_ok(ok && first(x) == 200 && first(y) == 7 && first(z) == 7,
         "and the executable does the same (%g)", (double)first(x));
}


/* ---- what is refused ---- */

static void test_refusals(void) {
  const cgl_arg args[] = {memory(x), number(1), number(2)};
  const cgl_arg same[] = {memory(x), {.kind = CGL_ARG_SAME}};
  const cgl_arg address = {.kind = CGL_ARG_ADDRESS, .address = 4096};
  cgl_kernel *kernel = NULL;
  tap_ok(!cgl_graph_node_kernel(graph, 0, &kernel) && kernel == add,
         "a node tells its kernel");
  bool none = true;
  for (size_t i = 1; i < 4; i++)
    none &= !cgl_graph_node_kernel(graph, i, &kernel) && !kernel;
  tap_ok(none && cgl_graph_node_kernel(graph, 4, &kernel) ==
                     CGL_ERROR_INVALID_ARGUMENT,
         "a fill, a copy and a graph have none, and there is no fifth node");
  tap_ok(cgl_graph_set_params(graph, 0, NULL, args, 3) ==
                 CGL_ERROR_ARGUMENT_COUNT &&
             cgl_graph_set_params(graph, 0, NULL, NULL, 0) == CGL_OK,
         "arguments are all there, or none is");
  tap_ok(cgl_kernel_launch(add, stream, &launch, same, 2) ==
             CGL_ERROR_ARGUMENT_TYPE,
         "a launch has no argument to leave as it is");
  tap_ok(cgl_graph_set_fill(graph, 0, x, NULL) == CGL_ERROR_INVALID_ARGUMENT &&
             cgl_graph_set_copy(graph, 1, NULL, NULL) ==
                 CGL_ERROR_INVALID_ARGUMENT &&
             cgl_graph_set_params(graph, 2, NULL, NULL, 0) ==
                 CGL_ERROR_INVALID_ARGUMENT &&
             cgl_graph_set_enabled(graph, 3, false) ==
                 CGL_ERROR_INVALID_ARGUMENT,
         "a node is changed as what it is");
  tap_ok(cgl_graph_set_copy(graph, 2, &address, NULL) ==
             CGL_ERROR_ARGUMENT_TYPE,
         "a copy is given objects, not addresses");
}


int main(void) {
  if (set_up() || capture()) {
    tap_ok(false, "set-up: %s", cgl_last_error()->message);
    return tap_done();
  }
  test_template();
  test_refusals();
  cgl_graph_release(graph);
  cgl_buffer_release(x);
  cgl_buffer_release(y);
  cgl_buffer_release(z);
  cgl_kernel_release(add);
  cgl_module_release(module);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is alive at the end (%lld)",
         (long long)cgl_live("all"));
  return tap_done();
}
