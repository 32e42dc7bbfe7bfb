/* Held against the truth: what was captured is built once more, and accounts of
   the two graphs must be the same.  For tests, with $CGRAPHLUA_CHECK_BUILD=1.
 */
#include "compile/base/base.h"
#include "core/graph/build.h"

#include <stdlib.h>
#include <string.h>

/* What the driver says of a graph: a line per node, parameter and edge. */
typedef struct account {
  const cgl_driver *driver;
  cgl_text text;
  CUresult failed;   /* a question that the driver did not answer, */
  const char *entry; /* and which */
} account;

#define ASK(function, ...) \
  (!a->failed &&           \
   (a->entry = #function, !(a->failed = a->driver->function(__VA_ARGS__))))


/* `handle`: the first parameter is a handle of the graph. */
static void account_add_kernel(account *a, CUgraphNode node, bool handle) {
  CUDA_KERNEL_NODE_PARAMS k = {0};
  CUlaunchAttributeValue v = {.priority = 0};
  size_t offset, size;
  if (!ASK(cuGraphKernelNodeGetParams, node, &k) ||
      !ASK(cuGraphKernelNodeGetAttribute, node, CU_LAUNCH_ATTRIBUTE_PRIORITY,
           &v))
    return;
  cgl_text_print(&a->text,
                 "kernel %p, grid %u %u %u, block %u %u %u, %u bytes shared, "
                 "priority %d\n",
                 (void *)k.func, k.gridDimX, k.gridDimY, k.gridDimZ,
                 k.blockDimX, k.blockDimY, k.blockDimZ, k.sharedMemBytes,
                 v.priority);
  for (size_t i = handle; ASK(cuFuncGetParamInfo, k.func, i, &offset, &size);
       i++) {
    const unsigned char *value = k.kernelParams[i];
    cgl_text_print(&a->text, "kernel parameter %zu: ", i);
    for (size_t at = 0; at < size; at++)
      cgl_text_print(&a->text, "%02x", value[at]);
    cgl_text_put(&a->text, "\n");
  }
  /* Past the last parameter, and of a driver that cannot say. */
  if (a->failed == CUDA_ERROR_INVALID_VALUE ||
      a->failed == CUDA_ERROR_NOT_SUPPORTED)
    a->failed = CUDA_SUCCESS;
}


static void account_add_copy(account *a, CUgraphNode node) {
  CUDA_MEMCPY3D c = {0};
  if (!ASK(cuGraphMemcpyNodeGetParams, node, &c))
    return;
  const bool to_host = c.dstMemoryType == CU_MEMORYTYPE_HOST;
  const bool from_host = c.srcMemoryType == CU_MEMORYTYPE_HOST;
  const uint64_t to = to_host ? (uintptr_t)c.dstHost : c.dstDevice;
  const uint64_t from = from_host ? (uintptr_t)c.srcHost : c.srcDevice;
  cgl_text_print(&a->text,
                 "copy to %#llx, type %d, from %#llx, type %d, "
                 "%zu x %zu x %zu bytes\n",
                 (unsigned long long)(to + c.dstXInBytes), (int)c.dstMemoryType,
                 (unsigned long long)(from + c.srcXInBytes),
                 (int)c.srcMemoryType, c.WidthInBytes, c.Height, c.Depth);
}


static void account_add_fill(account *a, CUgraphNode node) {
  CUDA_MEMSET_NODE_PARAMS f = {0};
  if (ASK(cuGraphMemsetNodeGetParams, node, &f))
    cgl_text_print(&a->text,
                   "fill of %#llx with %#x, %zu x %zu elements of %u bytes, "
                   "pitch %zu\n",
                   (unsigned long long)f.dst, f.value, f.width, f.height,
                   f.elementSize, f.height == 1 ? 0 : f.pitch);
}


static void account_add_graph(account *a, CUgraph graph,
                              const cgl_recording *recording);


/* `recording`: NULL inside a call of another library.
   A conditional node is an empty node in the capture of a body, and its own
   bodies were checked. */
static void account_add_node(account *a, CUgraphNode node,
                             const cgl_recording *recording, size_t index) {
  const cgl_op *op = recording ? cgl_record_op(recording, index) : NULL;
  CUgraphNodeType type;
  CUevent event;
  CUgraph child;
  if (op && op->kind == CGL_OP_CONDITIONAL) {
    cgl_text_put(&a->text, "conditional node\n");
    return;
  }
  if (!ASK(cuGraphNodeGetType, node, &type))
    return;
  cgl_text_print(&a->text, "node of type %d\n", (int)type);
  if (type == CU_GRAPH_NODE_TYPE_KERNEL)
    account_add_kernel(a, node, op && op->handle);
  else if (type == CU_GRAPH_NODE_TYPE_MEMCPY)
    account_add_copy(a, node);
  else if (type == CU_GRAPH_NODE_TYPE_MEMSET)
    account_add_fill(a, node);
  else if (op->body && type == CU_GRAPH_NODE_TYPE_GRAPH &&
           ASK(cuGraphChildGraphNodeGetGraph, node, &child))
    account_add_graph(a, child,
                      op && op->body ? cgl_record_body(recording, op->body - 1)
                                     : NULL);
  else if ((type == CU_GRAPH_NODE_TYPE_EVENT_RECORD &&
            ASK(cuGraphEventRecordNodeGetEvent, node, &event)) ||
           (type == CU_GRAPH_NODE_TYPE_WAIT_EVENT &&
            ASK(cuGraphEventWaitNodeGetEvent, node, &event)))
    cgl_text_print(&a->text, "event %p\n", (void *)event);
}


/* ---- graphs ---- */

/* A node and its place among the nodes of its graph. */
typedef struct place {
  CUgraphNode node;
  size_t index;
} place;

/* Where an edge begins, and which of its node's edges it is. */
typedef struct edge_place {
  size_t from, edge;
} edge_place;


static int compare_nodes(const void *a, const void *b) {
  const uintptr_t x = (uintptr_t)((const place *)a)->node;
  const uintptr_t y = (uintptr_t)((const place *)b)->node;
  return (x > y) - (x < y);
}


static int compare_edges(const void *a, const void *b) {
  const edge_place *x = a, *y = b;
  if (x->from != y->from)
    return x->from < y->from ? -1 : 1;
  return (x->edge > y->edge) - (x->edge < y->edge);
}


/* What a node depends on, in the order of the nodes, which `places` has sorted
   by their handles. */
static void account_add_edges(account *a, CUgraphNode node, const place *places,
                              size_t nplaces) {
  size_t n = 0, known = 0;
  if (!ASK(cuGraphNodeGetDependencies, node, NULL, NULL, &n) || !n)
    return;
  CUgraphNode *from = malloc(n * sizeof(CUgraphNode));
  CUgraphEdgeData *data = calloc(n, sizeof *data);
  edge_place *edges = malloc(n * sizeof *edges);
  if (!from || !data || !edges)
    a->text.failed = true;
  else if (ASK(cuGraphNodeGetDependencies, node, from, data, &n)) {
    for (size_t i = 0; i < n; i++) {
      const place wanted = {.node = from[i]};
      const place *found =
          bsearch(&wanted, places, nplaces, sizeof wanted, compare_nodes);
      if (found)
        edges[known++] = (edge_place){found->index, i};
    }
    qsort(edges, known, sizeof *edges, compare_edges);
    for (size_t i = 0; i < known; i++) {
      const CUgraphEdgeData *edge = &data[edges[i].edge];
      cgl_text_print(&a->text, "after node %zu, ports %d %d, type %d\n",
                     edges[i].from, edge->from_port, edge->to_port, edge->type);
    }
  }
  free(from);
  free(data);
  free(edges);
}


static void account_add_graph(account *a, CUgraph graph,
                              const cgl_recording *recording) {
  size_t n = 0;
  if (!ASK(cuGraphGetNodes, graph, NULL, &n))
    return;
  cgl_text_print(&a->text, "graph of %zu nodes\n", n);
  CUgraphNode *nodes = malloc((n + 1) * sizeof(CUgraphNode));
  place *places = malloc((n + 1) * sizeof *places);
  if (!nodes || !places)
    a->text.failed = true;
  else if (n && (!recording || n == cgl_record_count(recording)) &&
           ASK(cuGraphGetNodes, graph, nodes, &n)) {
    for (size_t i = 0; i < n; i++)
      places[i] = (place){nodes[i], i};
    qsort(places, n, sizeof *places, compare_nodes);
    for (size_t i = 0; i < n; i++) {
      account_add_node(a, nodes[i], recording, i);
      account_add_edges(a, nodes[i], places, n);
    }
  }
  free(nodes);
  free(places);
}


/* The same text, or the first line that differs is refused. */
static cgl_status accounts_compare(const char *captured, const char *built,
                                   const char *operation) {
  size_t line = 0, at = 0;
  for (; captured[at] && captured[at] == built[at]; at++)
    if (captured[at] == '\n')
      line = at + 1;
  if (captured[at] == built[at])
    return CGL_OK;
  cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
           "the graph built from the recording is not the graph that was "
           "captured: %.*s, built as %.*s",
           (int)strcspn(captured + line, "\n"), captured + line,
           (int)strcspn(built + line, "\n"), built + line);
  return cgl_fail_hint("report this as an error of cgraphlua");
}


cgl_status cgl_build_check(cgl_context *context, cgl_recording *recording,
                           CUgraph captured, const char *operation) {
  const char *wish = getenv("CGRAPHLUA_CHECK_BUILD");
  CUgraph built;
  if (!wish || strcmp(wish, "1") || cgl_record_has(recording, CGL_OP_FOREIGN))
    return CGL_OK;
  cgl_status status =
      cgl_fail_driver(context, cgl_record_learn_edges(recording, captured),
                      operation, "cuGraphGetEdges");
  if (!status)
    status = cgl_build_graph(context, recording, 1, operation, &built);
  if (status)
    return status;
  account a = {.driver = context->driver}, b = a;
  account_add_graph(&a, captured, recording);
  account_add_graph(&b, built, recording);
  context->driver->cuGraphDestroy(built);
  const account *failed = a.failed ? &a : &b;
  if (failed->failed)
    status = cgl_fail_driver(context, failed->failed, operation, failed->entry);
  else if (a.text.failed || b.text.failed)
    status = cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory to compare");
  else
    status = accounts_compare(a.text.data, b.text.data, operation);
  cgl_text_free(&a.text);
  cgl_text_free(&b.text);
  return status;
}
