/* Copies and fills that a kernel does: what the driver has of them. */
#include "cgraphlua.h"
#include "driver/table.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { N = 10000 };

static cgl_context *context;
static const cgl_driver *cu;
static cgl_stream *stream;
static cgl_buffer *x, *y, *odd; /* doubles; `odd` begins at the second of y */
static const double zero = 0, third = 1.0 / 3;


static cgl_status set_up(void) {
  cgl_status status = cgl_context_open(NULL, &context);
  cgl_buffer **buffers[] = {&x, &y};
  if (!status)
    status = cgl_stream_create(context, -1, &stream);
  for (int i = 0; i < 2 && !status; i++) {
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_double, N, buffers[i]);
    if (!status)
      status = cgl_buffer_fill(*buffers[i], stream, &zero);
  }
  if (!status)
    status = cgl_buffer_view(y, 1, N - 1, &odd);
  cu = status ? NULL : cgl_context_driver(context);
  return status;
}


/* Whether elements first to last of the buffer are the value. */
static bool is_full(cgl_buffer *buffer, size_t first, size_t last,
                    double value) {
  static double values[N];
  bool same = !cgl_buffer_download(buffer, stream, 0, values, sizeof values);
  for (size_t i = first; i <= last; i++)
    same &= values[i] == value;
  return same;
}


/* x = 1/3; odd = the first elements of x; all of x = y. */
static cgl_status capture(cgl_graph **graph) {
  const cgl_graph_desc desc = {.keep_graph = true};
  cgl_buffer *part = NULL;
  cgl_status status = cgl_graph_create(context, &desc, graph);
  if (!status)
    status = cgl_buffer_view(x, 0, N - 1, &part);
  if (!status)
    status = cgl_graph_capture_begin(*graph, stream);
  if (!status)
    status = cgl_buffer_fill(x, stream, &third);
  if (!status)
    status = cgl_buffer_copy(odd, part, stream);
  if (!status)
    status = cgl_graph_capture_end(*graph);
  cgl_buffer_release(part);
  return status;
}


/* The types of the nodes of the driver's graph, which has two. */
static bool node_types(cgl_graph *graph, CUgraphNodeType types[2]) {
  CUgraphNode nodes[3];
  size_t count = 3;
  void *template;
  return !cgl_graph_raw_graph(graph, &template) &&
         !cu->cuGraphGetNodes(template, nodes, &count) && count == 2 &&
         !cu->cuGraphNodeGetType(nodes[0], &types[0]) &&
         !cu->cuGraphNodeGetType(nodes[1], &types[1]);
}


static void test_nodes(void) {
  CUgraphNodeType types[2] = {CU_GRAPH_NODE_TYPE_EMPTY,
                              CU_GRAPH_NODE_TYPE_EMPTY};
  cgl_graph *graph = NULL;
  setenv("CGRAPHLUA_COPY_KERNEL", "1000000", 1);
  bool ok = !capture(&graph) && node_types(graph, types);
  tap_ok(ok && types[0] == CU_GRAPH_NODE_TYPE_KERNEL,
         "a fill with a value whose halves differ is one kernel node (%d)",
         (int)types[0]);
  tap_ok(ok && types[1] == CU_GRAPH_NODE_TYPE_MEMCPY,
         "a small copy is a copy node (%d)", (int)types[1]);
  cgl_graph_release(graph);
  setenv("CGRAPHLUA_COPY_KERNEL", "1", 1);
  ok = !capture(&graph) && node_types(graph, types);
  tap_ok(ok && types[1] == CU_GRAPH_NODE_TYPE_KERNEL,
         "a large one at any address is a kernel node (%d)", (int)types[1]);
  cgl_node_info info[2];
  ok = !cgl_graph_node(graph, 0, &info[0]) &&
       !cgl_graph_node(graph, 1, &info[1]);
  tap_ok(ok && !strcmp(info[0].kind, "memset") &&
             !strcmp(info[1].kind, "memcpy") && !info[1].grid[0],
         "the graph says that they are a fill and a copy");
  ok = !cgl_graph_instantiate(graph) && !cgl_graph_replay(graph, stream, 1);
  tap_ok(ok && is_full(x, 0, N - 1, third) && is_full(y, 1, N - 1, third) &&
             is_full(y, 0, 0, 0),
         "and they fill and copy");
  ok = !cgl_graph_set_fill(graph, 0, NULL, &zero) &&
       !cgl_graph_replay(graph, stream, 1);
  tap_ok(ok && is_full(y, 0, N - 1, 0),
         "such a fill takes a value whose halves are equal");
  cgl_graph_release(graph);
}


int main(void) {
  if (set_up()) {
    tap_ok(false, "set-up: %s", cgl_last_error()->message);
    return tap_done();
  }
  test_nodes();
  return tap_done();
}
