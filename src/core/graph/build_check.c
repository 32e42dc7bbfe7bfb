/* A check of the builder: builds a captured graph again and compares the two.
   For tests, with $CGRAPHLUA_CHECK_BUILD=1. */
#include "core/graph/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two graphs of the same driver. */
typedef struct pair {
  const cgl_driver *driver;
  char difference[200]; /* the first; "" for none */
} pair;

__attribute__((format(printf, 2, 3))) static bool
pair_differs(pair *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!*p->difference)
    vsnprintf(p->difference, sizeof p->difference, format, args);
  va_end(args);
  return false;
}


/* ---- nodes ---- */

static bool same_kernels(pair *p, CUgraphNode a, CUgraphNode b) {
  CUDA_KERNEL_NODE_PARAMS x, y;
  CUlaunchAttributeValue v, w;
  memset(&x, 0, sizeof x);
  memset(&y, 0, sizeof y);
  if (p->driver->cuGraphKernelNodeGetParams(a, &x) ||
      p->driver->cuGraphKernelNodeGetParams(b, &y))
    return pair_differs(p, "a kernel's parameters cannot be read");
  if (x.func != y.func || x.gridDimX != y.gridDimX ||
      x.gridDimY != y.gridDimY || x.gridDimZ != y.gridDimZ ||
      x.blockDimX != y.blockDimX || x.blockDimY != y.blockDimY ||
      x.blockDimZ != y.blockDimZ || x.sharedMemBytes != y.sharedMemBytes)
    return pair_differs(p, "another function, grid or block");
  size_t offset, size;
  for (size_t i = 0; !p->driver->cuFuncGetParamInfo(x.func, i, &offset, &size);
       i++)
    if (memcmp(x.kernelParams[i], y.kernelParams[i], size))
      return pair_differs(p, "another value of kernel parameter %zu", i);
  memset(&v, 0, sizeof v);
  memset(&w, 0, sizeof w);
  if (p->driver->cuGraphKernelNodeGetAttribute(a, CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                               &v) ||
      p->driver->cuGraphKernelNodeGetAttribute(b, CU_LAUNCH_ATTRIBUTE_PRIORITY,
                                               &w))
    return pair_differs(p, "a kernel's priority cannot be read");
  return v.priority == w.priority ||
         pair_differs(p, "priority %d, built with %d", v.priority, w.priority);
}


/* The address of one side of a copy, in host or device memory. */
static uint64_t copy_address(const CUDA_MEMCPY3D *copy, bool source) {
  const bool host = (source ? copy->srcMemoryType : copy->dstMemoryType) ==
                    CU_MEMORYTYPE_HOST;
  const uint64_t base =
      host ? (uintptr_t)(source ? copy->srcHost : copy->dstHost)
           : (source ? copy->srcDevice : copy->dstDevice);
  return base + (source ? copy->srcXInBytes : copy->dstXInBytes);
}


static bool same_copies(pair *p, CUgraphNode a, CUgraphNode b) {
  CUDA_MEMCPY3D x, y;
  memset(&x, 0, sizeof x);
  memset(&y, 0, sizeof y);
  if (p->driver->cuGraphMemcpyNodeGetParams(a, &x) ||
      p->driver->cuGraphMemcpyNodeGetParams(b, &y))
    return pair_differs(p, "a copy's parameters cannot be read");
  if (x.srcMemoryType != y.srcMemoryType || x.dstMemoryType != y.dstMemoryType)
    return pair_differs(p, "a copy from memory type %d to %d, built %d to %d",
                        (int)x.srcMemoryType, (int)x.dstMemoryType,
                        (int)y.srcMemoryType, (int)y.dstMemoryType);
  return (x.WidthInBytes == y.WidthInBytes && x.Height == y.Height &&
          x.Depth == y.Depth &&
          copy_address(&x, true) == copy_address(&y, true) &&
          copy_address(&x, false) == copy_address(&y, false)) ||
         pair_differs(p,
                      "a copy of %zu x %zu x %zu bytes, built %zu x %zu x %zu",
                      x.WidthInBytes, x.Height, x.Depth, y.WidthInBytes,
                      y.Height, y.Depth);
}


static bool same_fills(pair *p, CUgraphNode a, CUgraphNode b) {
  CUDA_MEMSET_NODE_PARAMS x, y;
  memset(&x, 0, sizeof x);
  memset(&y, 0, sizeof y);
  if (p->driver->cuGraphMemsetNodeGetParams(a, &x) ||
      p->driver->cuGraphMemsetNodeGetParams(b, &y))
    return pair_differs(p, "a fill's parameters cannot be read");
  return (x.dst == y.dst && x.value == y.value &&
          x.elementSize == y.elementSize && x.width == y.width &&
          x.height == y.height && (x.height == 1 || x.pitch == y.pitch)) ||
         pair_differs(p,
                      "a fill of %zu x %zu elements of %u, built %zu x %zu "
                      "of %u",
                      x.width, x.height, x.elementSize, y.width, y.height,
                      y.elementSize);
}


static bool same_graphs(pair *p, CUgraph a, CUgraph b);


static bool same_children(pair *p, CUgraphNode a, CUgraphNode b) {
  CUgraph x, y;
  if (p->driver->cuGraphChildGraphNodeGetGraph(a, &x) ||
      p->driver->cuGraphChildGraphNodeGetGraph(b, &y))
    return pair_differs(p, "a child graph cannot be read");
  return same_graphs(p, x, y);
}


static bool same_nodes(pair *p, CUgraphNode a, CUgraphNode b) {
  CUgraphNodeType x, y;
  CUevent e = NULL, f = NULL;
  if (p->driver->cuGraphNodeGetType(a, &x) ||
      p->driver->cuGraphNodeGetType(b, &y) || x != y)
    return pair_differs(p, "nodes of different types");
  switch (x) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    return same_kernels(p, a, b);
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return same_copies(p, a, b);
  case CU_GRAPH_NODE_TYPE_MEMSET:
    return same_fills(p, a, b);
  case CU_GRAPH_NODE_TYPE_GRAPH:
    return same_children(p, a, b);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return (!p->driver->cuGraphEventRecordNodeGetEvent(a, &e) &&
            !p->driver->cuGraphEventRecordNodeGetEvent(b, &f) && e == f) ||
           pair_differs(p, "records of different events");
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    return (!p->driver->cuGraphEventWaitNodeGetEvent(a, &e) &&
            !p->driver->cuGraphEventWaitNodeGetEvent(b, &f) && e == f) ||
           pair_differs(p, "waits for different events");
  default:
    return true;
  }
}


/* ---- edges ---- */

static size_t node_index(const CUgraphNode *nodes, size_t n, CUgraphNode node) {
  size_t i = 0;
  while (i < n && nodes[i] != node)
    i++;
  return i;
}


/* The dependencies of a node as a set of indices: a byte for each node. */
static bool node_mark(pair *p, const CUgraphNode *nodes, size_t n, size_t index,
                      unsigned char *marks) {
  size_t count = 0;
  memset(marks, 0, n);
  if (p->driver->cuGraphNodeGetDependencies(nodes[index], NULL, NULL, &count))
    return pair_differs(p, "dependencies cannot be read");
  CUgraphNode *from = malloc((count + 1) * sizeof *from);
  CUgraphEdgeData *data = malloc((count + 1) * sizeof *data);
  const bool read = from && data &&
                    (!count || !p->driver->cuGraphNodeGetDependencies(
                                   nodes[index], from, data, &count));
  for (size_t i = 0; read && i < count; i++)
    marks[node_index(nodes, n, from[i])]++;
  free(from);
  free(data);
  return read || pair_differs(p, "dependencies cannot be read");
}


/* ---- graphs ---- */

static bool same_lists(pair *p, const CUgraphNode *a, const CUgraphNode *b,
                       size_t n, unsigned char *marks) {
  for (size_t i = 0; i < n; i++) {
    if (!same_nodes(p, a[i], b[i]))
      return false;
    if (!node_mark(p, a, n, i, marks) || !node_mark(p, b, n, i, marks + n + 1))
      return false;
    if (memcmp(marks, marks + n + 1, n))
      return pair_differs(p, "node %zu of %zu depends on other nodes", i, n);
  }
  return true;
}


static bool same_graphs(pair *p, CUgraph a, CUgraph b) {
  size_t n = 0, m = 0;
  if (p->driver->cuGraphGetNodes(a, NULL, &n) ||
      p->driver->cuGraphGetNodes(b, NULL, &m) || n != m)
    return pair_differs(p, "%zu nodes, built %zu", n, m);
  CUgraphNode *nodes = malloc((2 * n + 1) * sizeof *nodes);
  unsigned char *marks = calloc(2, n + 1);
  bool same = nodes && marks;
  if (same && n)
    same = !p->driver->cuGraphGetNodes(a, nodes, &n) &&
           !p->driver->cuGraphGetNodes(b, nodes + n, &m) &&
           same_lists(p, nodes, nodes + n, n, marks);
  free(nodes);
  free(marks);
  return same;
}


static bool has_foreign(const cgl_recording *recording) {
  const cgl_recording *body;
  for (size_t i = 0; i < cgl_record_count(recording); i++)
    if (cgl_record_op(recording, i)->kind == CGL_OP_FOREIGN)
      return true;
  for (size_t i = 0; (body = cgl_record_body(recording, i)); i++)
    if (has_foreign(body))
      return true;
  return false;
}


cgl_status cgl_build_check(cgl_graph *graph, const char *operation) {
  const char *wish = getenv("CGRAPHLUA_CHECK_BUILD");
  cgl_context *context = graph->object.context;
  CUgraph built;
  if (!wish || strcmp(wish, "1") || has_foreign(graph->recording))
    return CGL_OK;
  cgl_status status = cgl_graph_learn(graph, operation);
  if (!status)
    status = cgl_build_graph(context, graph->recording, operation, &built);
  if (status)
    return status;
  pair p = {.driver = context->driver};
  const bool same = same_graphs(&p, graph->template->graph, built);
  context->driver->cuGraphDestroy(built);
  if (same)
    return CGL_OK;
  cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
           "the graph built from the recording is not the graph that was "
           "captured: %s",
           p.difference);
  return cgl_fail_hint("report this as an error of cgraphlua");
}
