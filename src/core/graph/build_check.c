/* A check of the builder: builds a captured graph again and compares the two.
   For tests, with $CGRAPHLUA_CHECK_BUILD=1. */
#include "core/graph/build.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two graphs of the same driver: what the capture made, and what was built. */
typedef struct pair {
  const cgl_driver *driver;
  CUresult failed;      /* a question that the driver did not answer, */
  const char *entry;    /* and which */
  char difference[200]; /* the first; "" for none */
} pair;

__attribute__((format(printf, 2, 3))) static bool
pair_differs(pair *p, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(p->difference, sizeof p->difference, format, args);
  va_end(args);
  return false;
}


/* The driver answered both questions. */
static bool pair_asked(pair *p, const char *entry, CUresult a, CUresult b) {
  p->failed = a ? a : b;
  p->entry = entry;
  return !p->failed;
}

#define ASK(entry, a, x, b, y) \
  pair_asked(p, #entry, p->driver->entry(a, x), p->driver->entry(b, y))


/* ---- nodes ---- */

static bool same_kernels(pair *p, CUgraphNode a, CUgraphNode b) {
  CUDA_KERNEL_NODE_PARAMS x = {0}, y = {0};
  CUlaunchAttributeValue v = {.priority = 0}, w = {.priority = 0};
  if (!ASK(cuGraphKernelNodeGetParams, a, &x, b, &y))
    return false;
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
  const CUlaunchAttributeID id = CU_LAUNCH_ATTRIBUTE_PRIORITY;
  if (!pair_asked(p, "cuGraphKernelNodeGetAttribute",
                  p->driver->cuGraphKernelNodeGetAttribute(a, id, &v),
                  p->driver->cuGraphKernelNodeGetAttribute(b, id, &w)))
    return false;
  return v.priority == w.priority ||
         pair_differs(p, "priority %d, built with %d", v.priority, w.priority);
}


/* The address of one side of a copy, in host or device memory. */
static uint64_t copy_address(const CUDA_MEMCPY3D *copy, bool source) {
  const CUmemorytype type = source ? copy->srcMemoryType : copy->dstMemoryType;
  const void *host = source ? copy->srcHost : copy->dstHost;
  const CUdeviceptr device = source ? copy->srcDevice : copy->dstDevice;
  return (type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : device) +
         (source ? copy->srcXInBytes : copy->dstXInBytes);
}


static bool same_copies(pair *p, CUgraphNode a, CUgraphNode b) {
  CUDA_MEMCPY3D x = {0}, y = {0};
  if (!ASK(cuGraphMemcpyNodeGetParams, a, &x, b, &y))
    return false;
  return (x.srcMemoryType == y.srcMemoryType &&
          x.dstMemoryType == y.dstMemoryType &&
          x.WidthInBytes == y.WidthInBytes && x.Height == y.Height &&
          x.Depth == y.Depth &&
          copy_address(&x, true) == copy_address(&y, true) &&
          copy_address(&x, false) == copy_address(&y, false)) ||
         pair_differs(p,
                      "a copy from type %d to %d of %zu x %zu x %zu bytes, "
                      "built from %d to %d of %zu x %zu x %zu",
                      (int)x.srcMemoryType, (int)x.dstMemoryType,
                      x.WidthInBytes, x.Height, x.Depth, (int)y.srcMemoryType,
                      (int)y.dstMemoryType, y.WidthInBytes, y.Height, y.Depth);
}


static bool same_fills(pair *p, CUgraphNode a, CUgraphNode b) {
  CUDA_MEMSET_NODE_PARAMS x = {0}, y = {0};
  if (!ASK(cuGraphMemsetNodeGetParams, a, &x, b, &y))
    return false;
  return (x.dst == y.dst && x.value == y.value &&
          x.elementSize == y.elementSize && x.width == y.width &&
          x.height == y.height && (x.height == 1 || x.pitch == y.pitch)) ||
         pair_differs(p,
                      "a fill of %zu x %zu elements of %u, built %zu x %zu of "
                      "%u",
                      x.width, x.height, x.elementSize, y.width, y.height,
                      y.elementSize);
}


static bool same_graphs(pair *p, CUgraph a, CUgraph b);


static bool same_nodes(pair *p, CUgraphNode a, CUgraphNode b) {
  CUgraphNodeType x, y;
  CUevent e = NULL, f = NULL;
  CUgraph g, h;
  if (!ASK(cuGraphNodeGetType, a, &x, b, &y))
    return false;
  if (x != y)
    return pair_differs(p, "a node of type %d, built of type %d", (int)x,
                        (int)y);
  switch (x) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    return same_kernels(p, a, b);
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return same_copies(p, a, b);
  case CU_GRAPH_NODE_TYPE_MEMSET:
    return same_fills(p, a, b);
  case CU_GRAPH_NODE_TYPE_GRAPH:
    return ASK(cuGraphChildGraphNodeGetGraph, a, &g, b, &h) &&
           same_graphs(p, g, h);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return ASK(cuGraphEventRecordNodeGetEvent, a, &e, b, &f) &&
           (e == f || pair_differs(p, "records of different events"));
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    return ASK(cuGraphEventWaitNodeGetEvent, a, &e, b, &f) &&
           (e == f || pair_differs(p, "waits for different events"));
  default:
    return pair_differs(p, "a node of type %d, which nothing builds", (int)x);
  }
}


/* ---- graphs ---- */

/* Nodes and edges of one side. */
typedef struct side {
  size_t nnodes, nedges;
  CUgraphNode *nodes, *ends; /* the earlier ends, then the later */
} side;


static bool side_read(pair *p, side *s, CUgraph graph) {
  p->entry = "cuGraphGetNodes";
  p->failed = p->driver->cuGraphGetNodes(graph, NULL, &s->nnodes);
  s->nodes = malloc((s->nnodes + 1) * sizeof *s->nodes);
  if (!p->failed && s->nodes && s->nnodes)
    p->failed = p->driver->cuGraphGetNodes(graph, s->nodes, &s->nnodes);
  if (p->failed)
    return false;
  p->entry = "cuGraphGetEdges";
  p->failed = p->driver->cuGraphGetEdges(graph, NULL, NULL, NULL, &s->nedges);
  CUgraphEdgeData *data = malloc((s->nedges + 1) * sizeof *data);
  s->ends = malloc((2 * s->nedges + 1) * sizeof *s->ends);
  if (!s->nodes || !s->ends || !data)
    p->failed = CUDA_ERROR_OUT_OF_MEMORY;
  if (!p->failed && s->nedges)
    p->failed = p->driver->cuGraphGetEdges(graph, s->ends, s->ends + s->nedges,
                                           data, &s->nedges);
  static const CUgraphEdgeData plain;
  for (size_t i = 0; !p->failed && i < s->nedges; i++)
    if (memcmp(&data[i], &plain, sizeof plain))
      pair_differs(p, "an edge with data, which nothing builds");
  free(data);
  return !p->failed && !*p->difference;
}


typedef struct edge {
  size_t from, to;
} edge;


static int edge_compare(const void *a, const void *b) {
  return memcmp(a, b, sizeof(edge));
}


/* The edges by their nodes' places, in one order; NULL without memory. */
static edge *side_edges(const side *s) {
  edge *edges = calloc(s->nedges + 1, sizeof *edges);
  for (size_t i = 0; edges && i < 2 * s->nedges; i++) {
    size_t at = 0;
    while (at < s->nnodes && s->nodes[at] != s->ends[i])
      at++;
    *(i < s->nedges ? &edges[i].from : &edges[i - s->nedges].to) = at;
  }
  if (edges)
    qsort(edges, s->nedges, sizeof *edges, edge_compare);
  return edges;
}


static bool same_sides(pair *p, const side *a, const side *b) {
  if (a->nnodes != b->nnodes || a->nedges != b->nedges)
    return pair_differs(p, "%zu nodes and %zu edges, built %zu and %zu",
                        a->nnodes, a->nedges, b->nnodes, b->nedges);
  for (size_t i = 0; i < a->nnodes; i++)
    if (!same_nodes(p, a->nodes[i], b->nodes[i]))
      return false;
  edge *x = side_edges(a), *y = side_edges(b);
  const bool same = x && y && !memcmp(x, y, a->nedges * sizeof *x);
  free(x);
  free(y);
  return same || pair_differs(p, "other edges");
}


static bool same_graphs(pair *p, CUgraph a, CUgraph b) {
  side x = {0}, y = {0};
  const bool same =
      side_read(p, &x, a) && side_read(p, &y, b) && same_sides(p, &x, &y);
  free(x.nodes);
  free(x.ends);
  free(y.nodes);
  free(y.ends);
  return same;
}


static bool has_foreign(const cgl_recording *recording) {
  for (size_t i = 0; i < cgl_record_count(recording); i++)
    if (cgl_record_op(recording, i)->kind == CGL_OP_FOREIGN)
      return true;
  for (size_t i = 0; i < recording->nbodies; i++)
    if (has_foreign(recording->bodies[i]))
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
  if (same || p.failed)
    return cgl_fail_driver(context, p.failed, operation, p.entry);
  cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
           "the graph built from the recording is not the graph that was "
           "captured: %s",
           p.difference);
  return cgl_fail_hint("report this as an error of cgraphlua");
}
