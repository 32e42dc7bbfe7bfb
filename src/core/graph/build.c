/* Building nodes and graphs from a recording. */
#include "core/graph/build.h"

#include <stdlib.h>
#include <string.h>


/* ---- what a node does, by kind ---- */

cgl_element cgl_build_element(const cgl_recording *recording,
                              const cgl_op *op) {
  cgl_element element;
  memcpy(&element, cgl_record_values(recording, op), sizeof element);
  return element;
}


void cgl_build_kernel(CUgraphNodeParams *params, CUfunction function,
                      const cgl_launch *launch, void **values) {
  params->type = CU_GRAPH_NODE_TYPE_KERNEL;
  params->kernel =
      (CUDA_KERNEL_NODE_PARAMS){.func = function,
                                .gridDimX = launch->grid[0],
                                .gridDimY = launch->grid[1],
                                .gridDimZ = launch->grid[2],
                                .blockDimX = launch->block[0],
                                .blockDimY = launch->block[1],
                                .blockDimZ = launch->block[2],
                                .sharedMemBytes = launch->shared_bytes,
                                .kernelParams = values};
}


void cgl_build_copy(CUgraphNodeParams *params, const cgl_context *context,
                    const cgl_range *ranges, const cgl_element *element) {
  const CUdeviceptr to = ranges[0].address + element->offset;
  const CUdeviceptr from = ranges[1].address + element->offset;
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
  copy->WidthInBytes = element->bytes;
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


void cgl_build_child(CUgraphNodeParams *params, CUgraph child) {
  memset(params, 0, sizeof *params);
  params->type = CU_GRAPH_NODE_TYPE_GRAPH;
  params->graph.graph = child;
  params->graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
}


void cgl_build_node(CUgraphNodeParams *params, void **values,
                    const cgl_context *context, const cgl_recording *recording,
                    const cgl_op *op) {
  const cgl_range *ranges = cgl_record_ranges(recording, op);
  const cgl_event *event = (const cgl_event *)op->object;
  const cgl_kernel *kernel = (const cgl_kernel *)op->object;
  unsigned char *from = (unsigned char *)cgl_record_values(recording, op);
  cgl_element element;
  memset(params, 0, sizeof *params);
  switch (op->kind) {
  case CGL_OP_KERNEL:
    /* Values lie at multiples of 16, of a user's kernel and of ours alike. */
    for (size_t i = 0, at = 0; at < op->nvalues; i++) {
      at = cgl_kernel_next_value(at);
      values[i] = from + at;
      at += kernel ? kernel->sizes[i] : 16;
    }
    cgl_build_kernel(params, op->function, &op->launch, values);
    break;
  case CGL_OP_MEMCPY:
    element = cgl_build_element(recording, op);
    cgl_build_copy(params, context, ranges, &element);
    break;
  case CGL_OP_MEMSET:
    element = cgl_build_element(recording, op);
    cgl_build_fill(params, context, ranges, &element);
    break;
  case CGL_OP_RECORD:
    params->type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    params->eventRecord.event = event->handle;
    break;
  case CGL_OP_WAIT:
    params->type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    params->eventWait.event = event->handle;
    break;
  case CGL_OP_GRAPH:
    cgl_build_child(params, NULL);
    break;
  case CGL_OP_FOREIGN:
  case CGL_OP_COUNT:
    break;
  }
}


/* ---- a graph ---- */

/* Adds the node of operation `index` after those in `before`. */
static cgl_status build_add(cgl_context *context,
                            const cgl_recording *recording, size_t index,
                            CUgraph graph, CUgraphNode *nodes,
                            CUgraphNode *before, const char *operation) {
  const cgl_driver *driver = context->driver;
  const cgl_op *op = cgl_record_op(recording, index);
  CUgraphNodeParams params;
  void *values[CGL_MAX_PARAMS];
  CUgraph child = NULL;
  cgl_build_node(&params, values, context, recording, op);
  if (op->kind == CGL_OP_FOREIGN) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the graph has a node that another library put into the capture");
    return cgl_fail_hint("capture the work of that library into a graph of "
                         "its own");
  }
  if (op->kind == CGL_OP_GRAPH) {
    cgl_status status = cgl_build_graph(
        context, cgl_record_body(recording, op->body - 1), operation, &child);
    if (status)
      return status;
    params.graph.graph = child;
  }
  size_t count;
  const size_t *from = cgl_record_dependencies(recording, index, &count);
  for (size_t i = 0; i < count; i++)
    before[i] = nodes[from[i]];
  const char *entry = "cuGraphAddNode";
  CUresult result = driver->cuGraphAddNode(&nodes[index], graph, before, NULL,
                                           count, &params);
  if (child)
    driver->cuGraphDestroy(child);
  if (!result && op->kind == CGL_OP_KERNEL && op->priority) {
    const CUlaunchAttributeValue value = {.priority = op->priority};
    entry = "cuGraphKernelNodeSetAttribute";
    result = driver->cuGraphKernelNodeSetAttribute(
        nodes[index], CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
  }
  return cgl_fail_driver(context, result, operation, entry);
}


cgl_status cgl_build_graph(cgl_context *context, const cgl_recording *recording,
                           const char *operation, CUgraph *graph) {
  const size_t n = cgl_record_count(recording);
  CUgraphNode *nodes = malloc((2 * n + 1) * sizeof(CUgraphNode));
  if (!nodes)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory to build a graph");
  cgl_status status =
      cgl_fail_driver(context, context->driver->cuGraphCreate(graph, 0),
                      operation, "cuGraphCreate");
  const bool made = !status;
  for (size_t i = 0; i < n && !status; i++)
    status =
        build_add(context, recording, i, *graph, nodes, nodes + n, operation);
  if (made && status)
    context->driver->cuGraphDestroy(*graph);
  free(nodes);
  return status;
}
