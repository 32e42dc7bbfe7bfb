/* The driver's calls that add nodes and read or set what they hold. */
#include "driver/host/calls/calls.h"
#include "driver/host/graph/graph.h"

#include <string.h>


/* The graph and the dependencies are looked at before anything is made, so
   that a child graph is not moved in vain. */
static CUresult add_check(CUgraph graph, const CUgraphNode *deps,
                          size_t ndeps) {
  if (!host_graph_is_live(graph))
    return CUDA_ERROR_INVALID_VALUE;
  HOST_TRY(host_nodes_check(graph, deps, NULL, ndeps));
  uint64_t mark = host_graph_mark();
  for (size_t i = 0; i < ndeps; i++) {
    if (deps[i]->mark == mark)
      return CUDA_ERROR_INVALID_VALUE;
    deps[i]->mark = mark;
  }
  return CUDA_SUCCESS;
}


CUresult host_cuGraphAddNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                             const CUgraphNode *dependencies,
                             const CUgraphEdgeData *dependencyData,
                             size_t numDependencies,
                             CUgraphNodeParams *nodeParams) {
  HOST_TRY(host_check_opened());
  if (!phGraphNode || !nodeParams)
    return CUDA_ERROR_INVALID_VALUE;
  if (nodeParams->type == CU_GRAPH_NODE_TYPE_KERNEL && host_failed())
    return host_failed(); /* its function is of the context */
  host_lock();
  CUresult result = add_check(hGraph, dependencies, numDependencies);
  host_op op;
  host_block *block;
  if (result == CUDA_SUCCESS)
    result = host_node_params(&op, &block, hGraph, nodeParams);
  if (result == CUDA_SUCCESS)
    result = host_node_new(phGraphNode, hGraph, dependencies, dependencyData,
                           numDependencies, &op, block);
  if (result == CUDA_SUCCESS)
    host_node_publish(*phGraphNode, nodeParams);
  return host_unlock_with(result);
}


CUresult host_cuGraphAddKernelNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies,
                                   size_t numDependencies,
                                   const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
  if (!nodeParams)
    return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  params.kernel = *nodeParams;
  return host_cuGraphAddNode(phGraphNode, hGraph, dependencies, NULL,
                             numDependencies, &params);
}


CUresult host_cuGraphAddMemcpyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies,
                                   size_t numDependencies,
                                   const CUDA_MEMCPY3D *copyParams,
                                   CUcontext ctx) {
  if (!copyParams)
    return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};
  params.memcpy.copyCtx = ctx;
  params.memcpy.copyParams = *copyParams;
  return host_cuGraphAddNode(phGraphNode, hGraph, dependencies, NULL,
                             numDependencies, &params);
}


CUresult host_cuGraphAddMemsetNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                   const CUgraphNode *dependencies,
                                   size_t numDependencies,
                                   const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                   CUcontext ctx) {
  if (!memsetParams)
    return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = host_node_memset_params(memsetParams, ctx);
  return host_cuGraphAddNode(phGraphNode, hGraph, dependencies, NULL,
                             numDependencies, &params);
}


CUresult host_cuGraphAddHostNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                 const CUgraphNode *dependencies,
                                 size_t numDependencies,
                                 const CUDA_HOST_NODE_PARAMS *nodeParams) {
  if (!nodeParams)
    return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};
  params.host = *nodeParams;
  return host_cuGraphAddNode(phGraphNode, hGraph, dependencies, NULL,
                             numDependencies, &params);
}


CUresult host_cuGraphAddChildGraphNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                       const CUgraphNode *dependencies,
                                       size_t numDependencies,
                                       CUgraph childGraph) {
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};
  params.graph.graph = childGraph;
  params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
  return host_cuGraphAddNode(phGraphNode, hGraph, dependencies, NULL,
                             numDependencies, &params);
}


CUresult host_cuGraphAddEmptyNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                  const CUgraphNode *dependencies,
                                  size_t numDependencies) {
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
  return host_cuGraphAddNode(phGraphNode, hGraph, dependencies, NULL,
                             numDependencies, &params);
}


CUresult host_cuGraphAddEventRecordNode(CUgraphNode *phGraphNode,
                                        CUgraph hGraph,
                                        const CUgraphNode *dependencies,
                                        size_t numDependencies, CUevent event) {
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_EVENT_RECORD};
  params.eventRecord.event = event;
  return host_cuGraphAddNode(phGraphNode, hGraph, dependencies, NULL,
                             numDependencies, &params);
}


CUresult host_cuGraphAddEventWaitNode(CUgraphNode *phGraphNode, CUgraph hGraph,
                                      const CUgraphNode *dependencies,
                                      size_t numDependencies, CUevent event) {
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_WAIT_EVENT};
  params.eventWait.event = event;
  return host_cuGraphAddNode(phGraphNode, hGraph, dependencies, NULL,
                             numDependencies, &params);
}


/* Locks, and answers whether the node lives and is of `kind`.  The caller
   unlocks on success. */
static CUresult open_node(CUgraphNode node, host_op_kind kind,
                          const void *out) {
  HOST_TRY(host_check_process());
  if (!out)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  if (host_nodes_are_live(&node, 1) && node->op.kind == kind)
    return CUDA_SUCCESS;
  return host_unlock_with(CUDA_ERROR_INVALID_VALUE);
}


CUresult host_cuGraphNodeGetType(CUgraphNode hNode, CUgraphNodeType *type) {
  HOST_TRY(host_check_process());
  CUresult result = CUDA_SUCCESS;
  host_lock();
  if (!type || !host_nodes_are_live(&hNode, 1))
    result = CUDA_ERROR_INVALID_VALUE;
  else
    *type = host_node_type(&hNode->op);
  return host_unlock_with(result);
}


CUresult host_cuGraphKernelNodeGetParams(CUgraphNode hNode,
                                         CUDA_KERNEL_NODE_PARAMS *nodeParams) {
  HOST_TRY(open_node(hNode, HOST_OP_KERNEL, nodeParams));
  const host_kernel_op *kernel = &hNode->op.kernel;
  *nodeParams = (CUDA_KERNEL_NODE_PARAMS){
      .func = kernel->function,
      .gridDimX = kernel->grid[0],
      .gridDimY = kernel->grid[1],
      .gridDimZ = kernel->grid[2],
      .blockDimX = kernel->block[0],
      .blockDimY = kernel->block[1],
      .blockDimZ = kernel->block[2],
      .sharedMemBytes = kernel->shared_bytes,
      .kernelParams = kernel->params,
  };
  return host_unlock_with(CUDA_SUCCESS);
}


CUresult host_cuGraphMemcpyNodeGetParams(CUgraphNode hNode,
                                         CUDA_MEMCPY3D *nodeParams) {
  HOST_TRY(open_node(hNode, HOST_OP_MEMCPY, nodeParams));
  *nodeParams = hNode->op.memcpy;
  return host_unlock_with(CUDA_SUCCESS);
}


CUresult host_cuGraphMemsetNodeGetParams(CUgraphNode hNode,
                                         CUDA_MEMSET_NODE_PARAMS *nodeParams) {
  HOST_TRY(open_node(hNode, HOST_OP_MEMSET, nodeParams));
  const CUDA_MEMSET_NODE_PARAMS_v2 *set = &hNode->op.memset;
  *nodeParams =
      (CUDA_MEMSET_NODE_PARAMS){set->dst,         set->pitch, set->value,
                                set->elementSize, set->width, set->height};
  return host_unlock_with(CUDA_SUCCESS);
}


CUresult host_cuGraphHostNodeGetParams(CUgraphNode hNode,
                                       CUDA_HOST_NODE_PARAMS *nodeParams) {
  HOST_TRY(open_node(hNode, HOST_OP_HOST_FUNCTION, nodeParams));
  *nodeParams = hNode->op.host;
  return host_unlock_with(CUDA_SUCCESS);
}


CUresult host_cuGraphChildGraphNodeGetGraph(CUgraphNode hNode,
                                            CUgraph *phGraph) {
  HOST_TRY(open_node(hNode, HOST_OP_CHILD, phGraph));
  *phGraph = hNode->op.child;
  return host_unlock_with(CUDA_SUCCESS);
}


static CUresult get_event(CUgraphNode node, host_op_kind kind, CUevent *out) {
  HOST_TRY(open_node(node, kind, out));
  *out = node->op.event.event;
  return host_unlock_with(CUDA_SUCCESS);
}


CUresult host_cuGraphEventRecordNodeGetEvent(CUgraphNode hNode,
                                             CUevent *event_out) {
  return get_event(hNode, HOST_OP_EVENT_RECORD, event_out);
}


CUresult host_cuGraphEventWaitNodeGetEvent(CUgraphNode hNode,
                                           CUevent *event_out) {
  return get_event(hNode, HOST_OP_EVENT_WAIT, event_out);
}


CUresult
host_cuGraphMemAllocNodeGetParams(CUgraphNode hNode,
                                  CUDA_MEM_ALLOC_NODE_PARAMS *params_out) {
  HOST_TRY(open_node(hNode, HOST_OP_ALLOC, params_out));
  *params_out = hNode->op.alloc;
  return host_unlock_with(CUDA_SUCCESS);
}


CUresult host_cuGraphMemFreeNodeGetParams(CUgraphNode hNode,
                                          CUdeviceptr *dptr_out) {
  HOST_TRY(open_node(hNode, HOST_OP_FREE, dptr_out));
  *dptr_out = hNode->op.free;
  return host_unlock_with(CUDA_SUCCESS);
}


CUresult host_cuGraphNodeSetParams(CUgraphNode hNode,
                                   CUgraphNodeParams *nodeParams) {
  HOST_TRY(host_check_process());
  if (!nodeParams)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  host_lock();
  host_op op;
  if (!host_nodes_are_live(&hNode, 1))
    result = CUDA_ERROR_INVALID_VALUE;
  else if (nodeParams->type == CU_GRAPH_NODE_TYPE_GRAPH &&
           host_node_is_capturing(hNode))
    result = CUDA_ERROR_ILLEGAL_STATE; /* its child would be replaced */
  else
    result = host_node_params_set(&op, hNode, &hNode->op, nodeParams);
  if (result == CUDA_SUCCESS) {
    host_node_params_drop(&hNode->op, NULL);
    hNode->op = op;
    if (op.kind == HOST_OP_CHILD)
      op.child->owner = hNode;
  }
  return host_unlock_with(result);
}


CUresult host_cuGraphKernelNodeGetAttribute(CUgraphNode hNode,
                                            CUkernelNodeAttrID attr,
                                            CUkernelNodeAttrValue *value_out) {
  HOST_TRY(open_node(hNode, HOST_OP_KERNEL, value_out));
  CUresult result = CUDA_SUCCESS;
  CUkernelNodeAttrValue value = {{0}};
  switch (attr) {
  case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    value.cooperative = hNode->op.kernel.cooperative;
    break;
  case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    value.priority = hNode->op.kernel.priority;
    break;
  case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    break; /* no clusters: all zero */
  default:
    result = CUDA_ERROR_INVALID_VALUE;
  }
  if (result == CUDA_SUCCESS)
    *value_out = value;
  return host_unlock_with(result);
}


CUresult
host_cuGraphKernelNodeSetAttribute(CUgraphNode hNode, CUkernelNodeAttrID attr,
                                   const CUkernelNodeAttrValue *value) {
  HOST_TRY(open_node(hNode, HOST_OP_KERNEL, value));
  CUresult result = CUDA_SUCCESS;
  switch (attr) {
  case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    hNode->op.kernel.cooperative = value->cooperative != 0;
    break;
  case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    hNode->op.kernel.priority = host_stream_priority(value->priority);
    break;
  case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    if (value->clusterDim.x > 1 || value->clusterDim.y > 1 ||
        value->clusterDim.z > 1)
      result = CUDA_ERROR_NOT_SUPPORTED;
    break;
  default:
    result = CUDA_ERROR_INVALID_VALUE;
  }
  return host_unlock_with(result);
}
