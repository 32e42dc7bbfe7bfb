/* What nodes hold: operations made from the driver's parameter structs, and
   given up again.  The calls that add and read nodes are in node_calls.c. */
#include "driver/host/graph/graph.h"

#include <stdlib.h>
#include <string.h>


CUgraphNodeType host_node_type(const host_op *op) {
  static const CUgraphNodeType types[] = {
      [HOST_OP_EMPTY] = CU_GRAPH_NODE_TYPE_EMPTY,
      [HOST_OP_KERNEL] = CU_GRAPH_NODE_TYPE_KERNEL,
      [HOST_OP_MEMCPY] = CU_GRAPH_NODE_TYPE_MEMCPY,
      [HOST_OP_MEMSET] = CU_GRAPH_NODE_TYPE_MEMSET,
      [HOST_OP_HOST_FUNCTION] = CU_GRAPH_NODE_TYPE_HOST,
      [HOST_OP_EVENT_RECORD] = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
      [HOST_OP_EVENT_WAIT] = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
      [HOST_OP_ALLOC] = CU_GRAPH_NODE_TYPE_MEM_ALLOC,
      [HOST_OP_FREE] = CU_GRAPH_NODE_TYPE_MEM_FREE,
      [HOST_OP_CHILD] = CU_GRAPH_NODE_TYPE_GRAPH,
      [HOST_OP_CONDITIONAL] = CU_GRAPH_NODE_TYPE_CONDITIONAL};
  return types[op->kind];
}


static CUresult kernel_op(host_op *op, const CUDA_KERNEL_NODE_PARAMS *params,
                          const host_op *old) {
  const uint32_t grid[3] = {params->gridDimX, params->gridDimY,
                            params->gridDimZ};
  const uint32_t block[3] = {params->blockDimX, params->blockDimY,
                             params->blockDimZ};
  op->kind = HOST_OP_KERNEL;
  HOST_TRY(host_kernel_make(&op->kernel, params->func, grid, block,
                            params->sharedMemBytes, params->kernelParams,
                            params->extra));
  if (old) {
    op->kernel.priority = old->kernel.priority;
    op->kernel.cooperative = old->kernel.cooperative;
  }
  return CUDA_SUCCESS;
}


static CUresult memset_op(host_op *op,
                          const CUDA_MEMSET_NODE_PARAMS_v2 *params) {
  CUDA_MEMSET_NODE_PARAMS plain = {
      .dst = params->dst,
      .pitch = params->pitch,
      .value = params->value,
      .elementSize = params->elementSize,
      .width = params->width,
      .height = params->height,
  };
  return host_fill_make(op, &plain, false);
}


static CUresult event_op(host_op *op, host_op_kind kind, CUevent event) {
  if (!host_handle_live(HOST_HANDLE_EVENT, event))
    return CUDA_ERROR_INVALID_VALUE;
  *op = (host_op){.kind = kind};
  op->event.event = event;
  host_event_retain(event);
  return CUDA_SUCCESS;
}


static CUresult host_function_op(host_op *op,
                                 const CUDA_HOST_NODE_PARAMS *params) {
  if (!params->fn)
    return CUDA_ERROR_INVALID_VALUE;
  *op = (host_op){.kind = HOST_OP_HOST_FUNCTION, .host = *params};
  return CUDA_SUCCESS;
}


/* A graph is never its own child: the real driver crashes there. */
static CUresult child_op(host_op *op, CUgraph graph,
                         const CUDA_CHILD_GRAPH_NODE_PARAMS *params) {
  CUgraph child = params->graph;
  if (!host_graph_is_live(child) || child == graph)
    return CUDA_ERROR_INVALID_VALUE;
  *op = (host_op){.kind = HOST_OP_CHILD, .child = child};
  if (params->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE)
    return host_graph_copy(&op->child, child);
  if (child->owner || child->executables > 0 ||
      host_graph_is_capturing(child) || host_graph_holds(child, graph))
    return CUDA_ERROR_INVALID_VALUE;
  return host_graph_has_conditional(child) ? CUDA_ERROR_NOT_SUPPORTED
                                           : CUDA_SUCCESS;
}


static CUresult alloc_op(host_op *op, host_block **block,
                         const CUDA_MEM_ALLOC_NODE_PARAMS *params) {
  const CUmemPoolProps *pool = &params->poolProps;
  if (params->bytesize == 0 ||
      pool->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
      pool->location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
      pool->location.id != 0 ||
      (params->accessDescCount > 0 && !params->accessDescs))
    return CUDA_ERROR_INVALID_VALUE;
  HOST_TRY(host_block_new(block, params->bytesize));
  *op = (host_op){.kind = HOST_OP_ALLOC, .alloc = *params};
  op->alloc.accessDescs = NULL; /* the one device has access anyway */
  op->alloc.accessDescCount = 0;
  op->alloc.dptr = (*block)->address;
  return CUDA_SUCCESS;
}


static CUresult free_op(host_op *op, host_block **block, CUgraph graph,
                        CUdeviceptr address) {
  host_block *found = host_block_find(address);
  if (!found || host_block_freed_in(found, graph))
    return CUDA_ERROR_INVALID_VALUE;
  host_block_retain(found);
  *block = found;
  *op = (host_op){.kind = HOST_OP_FREE, .free = address};
  return CUDA_SUCCESS;
}


static void conditional_free(host_conditional *conditional) {
  for (unsigned i = 0; i < conditional->size; i++)
    if (conditional->graph[i])
      host_graph_free(conditional->graph[i]);
  host_conditional_claim(conditional->handle, false);
  free(conditional->graph);
  free(conditional);
}


static bool conditional_size_is_valid(int type, unsigned size) {
  switch (type) {
  case CU_GRAPH_COND_TYPE_IF:
    return size == 1 || size == 2;
  case CU_GRAPH_COND_TYPE_WHILE:
    return size == 1;
  case CU_GRAPH_COND_TYPE_SWITCH:
    return size >= 1 && size <= 1 << 16;
  default:
    return false;
  }
}


/* Was the handle made for the graph, or for one that it is a part of? */
static bool handle_fits(uint64_t handle, CUgraph graph) {
  for (;; graph = graph->owner->graph) {
    for (size_t i = 0; i < graph->nhandles; i++)
      if (graph->handles[i] == handle)
        return true;
    if (!graph->owner)
      return false;
  }
}


static CUresult conditional_op(host_op *op, CUgraph graph,
                               const CUDA_CONDITIONAL_NODE_PARAMS *params) {
  if (!conditional_size_is_valid(params->type, params->size) ||
      !handle_fits(params->handle, graph))
    return CUDA_ERROR_INVALID_VALUE;
  host_conditional *made = calloc(1, sizeof *made);
  CUgraph *bodies = calloc(params->size, sizeof *bodies);
  if (!made || !bodies) {
    free(made);
    free(bodies);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (!host_conditional_claim(params->handle, true)) {
    free(made);
    free(bodies);
    return CUDA_ERROR_INVALID_VALUE;
  }
  *made = (host_conditional){params->handle, params->type, params->size, bodies,
                             params->ctx};
  for (unsigned i = 0; i < made->size; i++)
    if (!(bodies[i] = host_graph_new())) {
      conditional_free(made);
      return CUDA_ERROR_OUT_OF_MEMORY;
    }
  *op = (host_op){.kind = HOST_OP_CONDITIONAL, .conditional = made};
  return CUDA_SUCCESS;
}


CUgraphNodeParams host_node_memset_params(const CUDA_MEMSET_NODE_PARAMS *from,
                                          CUcontext ctx) {
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};
  params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){
      from->dst,   from->pitch,  from->value, from->elementSize,
      from->width, from->height, ctx};
  return params;
}


CUresult host_node_params(host_op *op, host_block **block, CUgraph graph,
                          const CUgraphNodeParams *params) {
  *block = NULL;
  switch (params->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    return kernel_op(op, &params->kernel, NULL);
  case CU_GRAPH_NODE_TYPE_MEMCPY:
    return host_copy_make_node(op, &params->memcpy.copyParams);
  case CU_GRAPH_NODE_TYPE_MEMSET:
    return memset_op(op, &params->memset);
  case CU_GRAPH_NODE_TYPE_HOST:
    return host_function_op(op, &params->host);
  case CU_GRAPH_NODE_TYPE_GRAPH:
    return child_op(op, graph, &params->graph);
  case CU_GRAPH_NODE_TYPE_EMPTY:
    *op = (host_op){.kind = HOST_OP_EMPTY};
    return CUDA_SUCCESS;
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    return event_op(op, HOST_OP_EVENT_WAIT, params->eventWait.event);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return event_op(op, HOST_OP_EVENT_RECORD, params->eventRecord.event);
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
    return alloc_op(op, block, &params->alloc);
  case CU_GRAPH_NODE_TYPE_MEM_FREE:
    return free_op(op, block, graph, params->free.dptr);
  case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    return conditional_op(op, graph, &params->conditional);
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}


void host_node_publish(CUgraphNode node, CUgraphNodeParams *params) {
  if (node->op.kind == HOST_OP_ALLOC)
    params->alloc.dptr = node->op.alloc.dptr;
  if (node->op.kind == HOST_OP_CONDITIONAL)
    params->conditional.phGraph_out = node->op.conditional->graph;
}


void host_node_params_drop(host_op *op, host_block *block) {
  if (op->kind == HOST_OP_CHILD)
    host_graph_free(op->child);
  else if (op->kind == HOST_OP_CONDITIONAL)
    conditional_free(op->conditional);
  else if (block)
    host_block_release(block);
  else
    host_op_release(op);
}


CUresult host_node_params_set(host_op *op, CUgraphNode node, const host_op *old,
                              const CUgraphNodeParams *params) {
  if (params->type != host_node_type(old))
    return CUDA_ERROR_INVALID_VALUE;
  switch (params->type) {
  case CU_GRAPH_NODE_TYPE_KERNEL:
    return kernel_op(op, &params->kernel, old);
  case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
  case CU_GRAPH_NODE_TYPE_MEM_FREE:
  case CU_GRAPH_NODE_TYPE_CONDITIONAL:
    return CUDA_ERROR_NOT_SUPPORTED;
  default: {
    host_block *none;
    return host_node_params(op, &none, node->graph, params);
  }
  }
}
