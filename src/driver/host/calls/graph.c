/* The driver's calls that make graphs, read them and move their edges. */
#include "driver/host/calls/calls.h"
#include "driver/host/graph/graph.h"

#include <assert.h>
#include <limits.h>
#include <stdlib.h>


CUresult host_cuGraphCreate(CUgraph *phGraph, unsigned int flags) {
  HOST_TRY(host_check_process());
  if (!phGraph || flags != 0)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  *phGraph = host_graph_new();
  host_unlock();
  return *phGraph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}


CUresult host_cuGraphDestroy(CUgraph hGraph) {
  HOST_TRY(host_check_process());
  CUresult result = CUDA_SUCCESS;
  host_lock();
  if (!host_graph_is_live(hGraph))
    result = CUDA_ERROR_INVALID_VALUE;
  else if (host_graph_is_capturing(hGraph))
    result = CUDA_ERROR_ILLEGAL_STATE;
  else if (hGraph->owner)
    result = CUDA_ERROR_INVALID_VALUE; /* its node owns it */
  else {
    assert(host_graph_is_valid(hGraph));
    host_graph_free(hGraph);
  }
  return host_unlock_with(result);
}


CUresult host_cuGraphClone(CUgraph *phGraphClone, CUgraph originalGraph) {
  HOST_TRY(host_check_process());
  if (!phGraphClone)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  return host_unlock_with(host_graph_is_live(originalGraph)
                              ? host_graph_copy(phGraphClone, originalGraph)
                              : CUDA_ERROR_INVALID_VALUE);
}


CUresult host_cuGraphNodeFindInClone(CUgraphNode *phNode,
                                     CUgraphNode hOriginalNode,
                                     CUgraph hClonedGraph) {
  HOST_TRY(host_check_process());
  if (!phNode)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  if (host_graph_is_live(hClonedGraph) &&
      host_nodes_are_live(&hOriginalNode, 1) &&
      hClonedGraph->origin == hOriginalNode->graph->id)
    for (CUgraphNode n = hClonedGraph->first; n; n = n->next)
      if (n->origin == hOriginalNode->id) {
        *phNode = n;
        result = CUDA_SUCCESS;
        break;
      }
  return host_unlock_with(result);
}


/* A list of nodes goes out as the driver's calls give it: without an array,
   the count; with one, up to *count nodes, the rest set to NULL, and the
   number that was written. */
typedef struct node_writer {
  CUgraphNode *nodes;
  size_t room, count;
} node_writer;


static void write_node(node_writer *writer, CUgraphNode node) {
  if (writer->nodes && writer->count < writer->room)
    writer->nodes[writer->count] = node;
  writer->count++;
}


static void write_end(node_writer *writer, size_t *count) {
  if (!writer->nodes) {
    *count = writer->count;
    return;
  }
  for (size_t i = writer->count; i < writer->room; i++)
    writer->nodes[i] = NULL;
  *count = writer->count < writer->room ? writer->count : writer->room;
}


static CUresult list_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count,
                           bool roots) {
  HOST_TRY(host_check_process());
  if (!count)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  host_lock();
  if (host_graph_is_live(graph) && !nodes && !roots) {
    *count = graph->nnodes; /* asked while a capture grows */
  } else if (host_graph_is_live(graph)) {
    node_writer writer = {nodes, nodes ? *count : 0, 0};
    for (CUgraphNode n = graph->first; n; n = n->next)
      if (!roots || n->in.count == 0)
        write_node(&writer, n);
    write_end(&writer, count);
  } else {
    result = CUDA_ERROR_INVALID_VALUE;
  }
  return host_unlock_with(result);
}


CUresult host_cuGraphGetNodes(CUgraph hGraph, CUgraphNode *nodes,
                              size_t *numNodes) {
  return list_nodes(hGraph, nodes, numNodes, false);
}


CUresult host_cuGraphGetRootNodes(CUgraph hGraph, CUgraphNode *rootNodes,
                                  size_t *numRootNodes) {
  return list_nodes(hGraph, rootNodes, numRootNodes, true);
}


/* LOSSY_QUERY when there is edge data and nowhere to put it. */
static CUresult edges_lossy(const host_edges *edges,
                            const CUgraphEdgeData *out) {
  for (uint32_t i = 0; !out && i < edges->count; i++)
    if (!host_edge_data_is_default(&edges->list[i].data))
      return CUDA_ERROR_LOSSY_QUERY;
  return CUDA_SUCCESS;
}


CUresult host_cuGraphGetEdges(CUgraph hGraph, CUgraphNode *from,
                              CUgraphNode *to, CUgraphEdgeData *edgeData,
                              size_t *numEdges) {
  HOST_TRY(host_check_process());
  if (!numEdges || (!from) != (!to))
    return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  host_lock();
  if (!host_graph_is_live(hGraph))
    return host_unlock_with(CUDA_ERROR_INVALID_VALUE);
  node_writer sources = {from, from ? *numEdges : 0, 0};
  node_writer targets = {to, sources.room, 0};
  for (CUgraphNode n = hGraph->first; n && result == CUDA_SUCCESS;
       n = n->next) {
    if (from)
      result = edges_lossy(&n->out, edgeData);
    for (uint32_t i = 0; i < n->out.count; i++) {
      if (edgeData && sources.count < sources.room)
        edgeData[sources.count] = n->out.list[i].data;
      write_node(&sources, n);
      write_node(&targets, n->out.list[i].node);
    }
  }
  if (result == CUDA_SUCCESS) {
    write_end(&targets, numEdges);
    size_t same;
    write_end(&sources, &same);
  }
  return host_unlock_with(result);
}


static CUresult list_edges(CUgraphNode node, bool incoming, CUgraphNode *nodes,
                           CUgraphEdgeData *edgeData, size_t *count) {
  HOST_TRY(host_check_process());
  if (!count)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  host_lock();
  if (!host_nodes_are_live(&node, 1))
    return host_unlock_with(CUDA_ERROR_INVALID_VALUE);
  const host_edges *edges = incoming ? &node->in : &node->out;
  if (nodes)
    result = edges_lossy(edges, edgeData);
  if (result == CUDA_SUCCESS) {
    node_writer writer = {nodes, nodes ? *count : 0, 0};
    for (uint32_t i = 0; i < edges->count; i++) {
      if (edgeData && i < writer.room)
        edgeData[i] = edges->list[i].data;
      write_node(&writer, edges->list[i].node);
    }
    write_end(&writer, count);
  }
  return host_unlock_with(result);
}


CUresult host_cuGraphNodeGetDependencies(CUgraphNode hNode,
                                         CUgraphNode *dependencies,
                                         CUgraphEdgeData *edgeData,
                                         size_t *numDependencies) {
  return list_edges(hNode, true, dependencies, edgeData, numDependencies);
}


CUresult host_cuGraphNodeGetDependentNodes(CUgraphNode hNode,
                                           CUgraphNode *dependentNodes,
                                           CUgraphEdgeData *edgeData,
                                           size_t *numDependentNodes) {
  return list_edges(hNode, false, dependentNodes, edgeData, numDependentNodes);
}


/* All pairs are looked at before the first edge is touched. */
static CUresult pairs_check(CUgraph graph, const CUgraphNode *from,
                            const CUgraphNode *to,
                            const CUgraphEdgeData *edgeData, size_t count) {
  if (!host_graph_is_live(graph))
    return CUDA_ERROR_INVALID_VALUE;
  HOST_TRY(host_nodes_check(graph, from, edgeData, count));
  return host_nodes_check(graph, to, NULL, count);
}


CUresult host_cuGraphAddDependencies(CUgraph hGraph, const CUgraphNode *from,
                                     const CUgraphNode *to,
                                     const CUgraphEdgeData *edgeData,
                                     size_t numDependencies) {
  HOST_TRY(host_check_process());
  host_lock();
  CUresult result = pairs_check(hGraph, from, to, edgeData, numDependencies);
  size_t done = 0;
  while (result == CUDA_SUCCESS && done < numDependencies) {
    result =
        host_edge_add(from[done], to[done], edgeData ? &edgeData[done] : NULL);
    if (result == CUDA_SUCCESS)
      done++;
  }
  if (result != CUDA_SUCCESS)
    while (done-- > 0)
      host_edge_remove(from[done], to[done]);
  return host_unlock_with(result);
}


/* Nodes and edges stay where the order of memory nodes was promised. */
static CUresult removal_check(CUgraph graph) {
  return host_graph_has_memory(graph) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}


/* Without data any edge between the two will do. */
static bool has_edge(CUgraphNode from, CUgraphNode to,
                     const CUgraphEdgeData *data) {
  for (uint32_t i = 0; i < from->out.count; i++) {
    const host_edge *edge = &from->out.list[i];
    if (edge->node == to)
      return !data || (data->from_port == edge->data.from_port &&
                       data->type == edge->data.type);
  }
  return false;
}


CUresult host_cuGraphRemoveDependencies(CUgraph hGraph, const CUgraphNode *from,
                                        const CUgraphNode *to,
                                        const CUgraphEdgeData *edgeData,
                                        size_t numDependencies) {
  HOST_TRY(host_check_process());
  host_lock();
  CUresult result = pairs_check(hGraph, from, to, edgeData, numDependencies);
  if (result == CUDA_SUCCESS)
    result = removal_check(hGraph);
  for (size_t i = 0; i < numDependencies && result == CUDA_SUCCESS; i++)
    if (!has_edge(from[i], to[i], edgeData ? &edgeData[i] : NULL))
      result = CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < numDependencies && result == CUDA_SUCCESS; i++)
    host_edge_remove(from[i], to[i]);
  return host_unlock_with(result);
}


CUresult host_cuGraphDestroyNode(CUgraphNode hNode) {
  HOST_TRY(host_check_process());
  CUresult result = CUDA_SUCCESS;
  host_lock();
  if (!host_nodes_are_live(&hNode, 1))
    result = CUDA_ERROR_INVALID_VALUE;
  else if (host_node_is_capturing(hNode))
    result = CUDA_ERROR_ILLEGAL_STATE; /* a stream may depend on it */
  else
    result = removal_check(hNode->graph);
  if (result == CUDA_SUCCESS)
    host_node_free(hNode);
  return host_unlock_with(result);
}


CUresult host_cuGraphDebugDotPrint(CUgraph hGraph, const char *path,
                                   unsigned int flags) {
  HOST_TRY(host_check_process());
  if (!path)
    return CUDA_ERROR_INVALID_VALUE;
  bool verbose = flags & CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE;
  CUresult result = CUDA_SUCCESS;
  host_lock();
  if (!host_graph_is_live(hGraph))
    result = CUDA_ERROR_INVALID_VALUE;
  else if (!host_graph_write_dot(hGraph, path, verbose))
    result = CUDA_ERROR_OPERATING_SYSTEM;
  return host_unlock_with(result);
}


CUresult host_cuGraphConditionalHandleCreate(
    CUgraphConditionalHandle *pHandle_out, CUgraph hGraph, CUcontext ctx,
    unsigned int defaultLaunchValue, unsigned int flags) {
  (void)ctx; /* the device has one context */
  HOST_TRY(host_check());
  if (!pHandle_out || (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  host_lock();
  uint64_t *handles = NULL;
  if (!host_graph_is_live(hGraph)) {
    result = CUDA_ERROR_INVALID_VALUE;
  } else {
    handles = realloc(hGraph->handles,
                      (hGraph->nhandles + 1) * sizeof *hGraph->handles);
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (handles) {
    hGraph->handles = handles;
    result = host_conditional_handle_new(&handles[hGraph->nhandles],
                                         defaultLaunchValue,
                                         flags == CU_GRAPH_COND_ASSIGN_DEFAULT);
    if (result == CUDA_SUCCESS)
      *pHandle_out = handles[hGraph->nhandles++];
  }
  return host_unlock_with(result);
}


CUresult host_cuUserObjectCreate(CUuserObject *object_out, void *ptr,
                                 CUhostFn destroy_fn,
                                 unsigned int initialRefcount,
                                 unsigned int flags) {
  HOST_TRY(host_check_process());
  if (!object_out || !destroy_fn || initialRefcount == 0 ||
      initialRefcount > INT_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  return host_unlock_with(
      host_user_new(object_out, ptr, destroy_fn, initialRefcount));
}


CUresult host_cuUserObjectRelease(CUuserObject object, unsigned int count) {
  HOST_TRY(host_check_process());
  host_lock();
  return host_unlock_with(host_user_release(object, count));
}


CUresult host_cuGraphRetainUserObject(CUgraph graph, CUuserObject object,
                                      unsigned int count, unsigned int flags) {
  HOST_TRY(host_check_process());
  if (count == 0 || count > INT_MAX ||
      (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  bool move = (flags & CU_GRAPH_USER_OBJECT_MOVE) != 0;
  host_lock();
  return host_unlock_with(host_graph_is_live(graph)
                              ? host_user_keep(graph, object, count, move)
                              : CUDA_ERROR_INVALID_VALUE);
}
