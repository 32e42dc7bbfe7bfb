/* Building nodes and graphs from a recording. */
#include "core/graph/build.h"

#include <stdlib.h>
#include <string.h>


/* ---- what a node does, by kind ---- */

cgl_element cgl_build_element(const cgl_recording *recording,
                              const cgl_op *op) {
  cgl_element element;
  memcpy(&element, recording->values + op->values, sizeof element);
  return element;
}


/* Values lie at multiples of 16. */
static void build_kernel(cgl_build_node *node, const cgl_recording *recording,
                         const cgl_op *op) {
  const cgl_kernel *kernel = (const cgl_kernel *)op->object;
  unsigned char *values = recording->values + op->values;
  size_t at = 0;
  for (size_t i = 0; at < op->nvalues; i++) {
    at = cgl_kernel_next_value(at);
    node->values[i] = values + at;
    at += kernel ? kernel->sizes[i] : 16;
  }
  node->params.kernel =
      (CUDA_KERNEL_NODE_PARAMS){.func = op->function,
                                .gridDimX = op->launch.grid[0],
                                .gridDimY = op->launch.grid[1],
                                .gridDimZ = op->launch.grid[2],
                                .blockDimX = op->launch.block[0],
                                .blockDimY = op->launch.block[1],
                                .blockDimZ = op->launch.block[2],
                                .sharedMemBytes = op->launch.shared_bytes,
                                .kernelParams = node->values};
}


void cgl_build_copy(CUgraphNodeParams *params, const cgl_context *context,
                    const cgl_range *ranges, const cgl_element *element) {
  const CUdeviceptr to = ranges[0].address, from = ranges[1].address;
  CUDA_MEMCPY3D *copy = &params->memcpy.copyParams;
  memset(params, 0, sizeof *params);
  params->type = CU_GRAPH_NODE_TYPE_MEMCPY;
  params->memcpy.copyCtx = context->handle;
  copy->dstMemoryType = copy->srcMemoryType = CU_MEMORYTYPE_DEVICE;
  if (element->pinned == 1) {
    copy->dstMemoryType = CU_MEMORYTYPE_HOST;
    copy->dstHost = (void *)(uintptr_t)to;
  } else
    copy->dstDevice = to;
  if (element->pinned == 2) {
    copy->srcMemoryType = CU_MEMORYTYPE_HOST;
    copy->srcHost = (void *)(uintptr_t)from;
  } else
    copy->srcDevice = from;
  copy->WidthInBytes = ranges[0].bytes;
  copy->Height = copy->Depth = 1;
}


void cgl_build_fill(CUgraphNodeParams *params, const cgl_context *context,
                    const cgl_range *range, const cgl_element *element) {
  const size_t size = cgl_memory_fill_bytes(element);
  const bool half = element->half;
  memset(params, 0, sizeof *params);
  params->type = CU_GRAPH_NODE_TYPE_MEMSET;
  params->memset = (CUDA_MEMSET_NODE_PARAMS_v2){
      .dst = range->address + cgl_memory_half_at(element),
      .pitch = half ? 8 : 0,
      .value = element->word,
      .elementSize = (unsigned)size,
      .width = half ? 1 : range->bytes / size,
      .height = half ? range->bytes / 8 : 1,
      .ctx = context->handle};
}


cgl_status cgl_build_begin(cgl_build_node *node, cgl_context *context,
                           const cgl_recording *recording, const cgl_op *op,
                           const char *operation) {
  static const CUgraphNodeType types[] = {
#define X(constant, word, type) type,
      CGL_OPS(X)
#undef X
  };
  const cgl_range *ranges = recording->ranges + op->ranges;
  cgl_element element;
  memset(&node->params, 0, sizeof node->params);
  node->child = NULL;
  node->params.type = types[op->kind];
  switch (op->kind) {
  case CGL_OP_KERNEL:
    build_kernel(node, recording, op);
    return CGL_OK;
  case CGL_OP_MEMCPY:
    element = cgl_build_element(recording, op);
    cgl_build_copy(&node->params, context, ranges, &element);
    return CGL_OK;
  case CGL_OP_MEMSET:
    element = cgl_build_element(recording, op);
    cgl_build_fill(&node->params, context, ranges, &element);
    return CGL_OK;
  case CGL_OP_RECORD:
    node->params.eventRecord.event = ((cgl_event *)op->object)->handle;
    return CGL_OK;
  case CGL_OP_WAIT:
    node->params.eventWait.event = ((cgl_event *)op->object)->handle;
    return CGL_OK;
  case CGL_OP_GRAPH:
    node->params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
    cgl_status status = cgl_build_graph(
        context, recording->bodies[op->body - 1], operation, &node->child);
    node->params.graph.graph = node->child;
    return status;
  case CGL_OP_FOREIGN:
  case CGL_OP_COUNT:
    break;
  }
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "the graph has a node that another library put into the capture");
  return cgl_fail_hint("capture the work of that library into a graph of its "
                       "own");
}


void cgl_build_end(cgl_build_node *node, cgl_context *context) {
  if (node->child)
    context->driver->cuGraphDestroy(node->child);
  node->child = NULL;
}


/* ---- a graph ---- */

typedef struct build {
  cgl_context *context;
  const cgl_recording *recording;
  const char *operation;
  CUgraph graph;
  CUgraphNode *nodes;  /* built so far */
  CUgraphNode *before; /* dependencies of the next node */
  cgl_build_node node;
} build;


static CUresult build_set_priority(const build *b, const cgl_op *op,
                                   CUgraphNode node) {
  CUlaunchAttributeValue value;
  if (op->kind != CGL_OP_KERNEL || !op->priority)
    return CUDA_SUCCESS;
  memset(&value, 0, sizeof value);
  value.priority = op->priority;
  return b->context->driver->cuGraphKernelNodeSetAttribute(
      node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}


static cgl_status build_add(build *b, size_t index) {
  const cgl_driver *driver = b->context->driver;
  const cgl_op *op = cgl_record_op(b->recording, index);
  size_t count;
  const size_t *from = cgl_record_dependencies(b->recording, index, &count);
  for (size_t i = 0; i < count; i++)
    b->before[i] = b->nodes[from[i]];
  cgl_status status =
      cgl_build_begin(&b->node, b->context, b->recording, op, b->operation);
  if (status)
    return status;
  const char *entry = "cuGraphAddNode";
  CUresult result = driver->cuGraphAddNode(
      &b->nodes[index], b->graph, b->before, NULL, count, &b->node.params);
  if (!result) {
    entry = "cuGraphKernelNodeSetAttribute";
    result = build_set_priority(b, op, b->nodes[index]);
  }
  cgl_build_end(&b->node, b->context);
  return cgl_fail_driver(b->context, result, b->operation, entry);
}


static cgl_status build_all(build *b) {
  const size_t n = cgl_record_count(b->recording);
  CUresult result = b->context->driver->cuGraphCreate(&b->graph, 0);
  if (result)
    return cgl_fail_driver(b->context, result, b->operation, "cuGraphCreate");
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < n && !status; i++)
    status = build_add(b, i);
  if (status)
    b->context->driver->cuGraphDestroy(b->graph);
  return status;
}


cgl_status cgl_build_graph(cgl_context *context, const cgl_recording *recording,
                           const char *operation, CUgraph *graph) {
  const size_t n = cgl_record_count(recording);
  build *b = calloc(1, sizeof *b);
  cgl_status status = CGL_ERROR_NO_MEMORY;
  if (b) {
    b->context = context;
    b->recording = recording;
    b->operation = operation;
    b->nodes = malloc((n + 1) * sizeof(CUgraphNode));
    b->before = malloc((n + 1) * sizeof(CUgraphNode));
  }
  if (b && b->nodes && b->before)
    status = build_all(b);
  else
    cgl_fail(status, operation, "no memory to build a graph");
  if (!status)
    *graph = b->graph;
  if (b) {
    free(b->nodes);
    free(b->before);
  }
  free(b);
  return status;
}
