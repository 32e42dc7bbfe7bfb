/* Graphs: their nodes and edges, copies, and the calls that build and read
   them.  What a node holds is in node.c. */
#include "driver/host/graph/graph.h"

#include <stdlib.h>
#include <string.h>

/* The port of an edge that orders the starts of kernels alone. */
enum { LAUNCH_ORDER = 2 };

static uint64_t next_graph_id, next_node_id, last_mark;


bool host_graph_is_live(CUgraph graph) {
  return host_handle_live(HOST_HANDLE_GRAPH, graph);
}


bool host_nodes_are_live(const CUgraphNode *nodes, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (!host_handle_live(HOST_HANDLE_NODE, nodes[i]))
      return false;
  return true;
}


uint64_t host_graph_mark(void) {
  return ++last_mark;
}


CUgraph host_graph_new(void) {
  CUgraph graph = calloc(1, sizeof *graph);
  if (!graph)
    return NULL;
  if (!host_handle_add(HOST_HANDLE_GRAPH, graph)) {
    free(graph);
    return NULL;
  }
  graph->refs = 1;
  graph->id = ++next_graph_id;
  return graph;
}


void host_graph_unref(CUgraph graph) {
  if (--graph->refs == 0)
    free(graph);
}


void host_graph_clear(CUgraph graph) {
  while (graph->last) {
    /* Edges die with both ends; no need to unlink them one by one. */
    graph->last->in.count = graph->last->out.count = 0;
    host_node_free(graph->last);
  }
}


void host_graph_free(CUgraph graph) {
  host_graph_clear(graph);
  for (size_t i = 0; i < graph->nhandles; i++)
    host_conditional_handle_release(graph->handles[i]);
  free(graph->handles);
  graph->handles = NULL;
  graph->nhandles = 0;
  host_user_drop(graph->users);
  graph->users = NULL;
  host_handle_remove(HOST_HANDLE_GRAPH, graph);
  host_graph_unref(graph);
}


/* Does the test hold for a graph that is inside a node, at any depth? */
static bool node_any(CUgraphNode node, bool (*test)(CUgraph, const void *),
                     const void *context);


/* The same for the graph itself, or one inside it. */
static bool graph_any(CUgraph graph, bool (*test)(CUgraph, const void *),
                      const void *context) {
  if (test(graph, context))
    return true;
  for (CUgraphNode n = graph->nouter ? graph->first : NULL; n; n = n->next)
    if (node_any(n, test, context))
      return true;
  return false;
}


static bool node_any(CUgraphNode node, bool (*test)(CUgraph, const void *),
                     const void *context) {
  if (node->op.kind == HOST_OP_CHILD)
    return graph_any(node->op.child, test, context);
  if (node->op.kind == HOST_OP_CONDITIONAL)
    for (unsigned i = 0; i < node->op.conditional->size; i++)
      if (graph_any(node->op.conditional->graph[i], test, context))
        return true;
  return false;
}


static bool has_block(CUgraph graph, const void *unused) {
  (void)unused;
  CUgraphNode n = graph->first;
  while (n && !n->block)
    n = n->next;
  return n;
}


static bool has_conditional(CUgraph graph, const void *unused) {
  (void)unused;
  CUgraphNode n = graph->first;
  while (n && n->op.kind != HOST_OP_CONDITIONAL)
    n = n->next;
  return n;
}


static bool is_same(CUgraph graph, const void *other) {
  return graph == other;
}


static bool is_capturing(CUgraph graph, const void *unused) {
  (void)unused;
  return graph->capturing > 0;
}


bool host_graph_has_memory(CUgraph graph) {
  return graph_any(graph, has_block, NULL);
}


bool host_graph_has_conditional(CUgraph graph) {
  return graph_any(graph, has_conditional, NULL);
}


bool host_graph_holds(CUgraph graph, CUgraph inner) {
  return graph_any(graph, is_same, inner);
}


bool host_graph_is_capturing(CUgraph graph) {
  return graph_any(graph, is_capturing, NULL);
}


bool host_node_is_capturing(CUgraphNode node) {
  return node->graph->capturing > 0 || node_any(node, is_capturing, NULL);
}


static bool edges_are_valid(CUgraphNode node) {
  for (uint32_t i = 0; i < node->out.count; i++) {
    const host_edge *edge = &node->out.list[i];
    if (edge->node == node || edge->node->graph != node->graph)
      return false;
    const host_edges *back = &edge->node->in;
    if (back->count > 64)
      continue; /* too long to search for each; the sums are compared */
    uint32_t found = 0;
    for (uint32_t k = 0; k < back->count; k++)
      found += back->list[k].node == node;
    if (found != 1)
      return false;
  }
  return node->out.count <= node->out.size && node->in.count <= node->in.size;
}


static bool node_is_outer(CUgraphNode node) {
  return node->op.kind == HOST_OP_CHILD || node->op.kind == HOST_OP_CONDITIONAL;
}


static bool is_invalid(CUgraph graph, const void *unused) {
  (void)unused;
  size_t n = 0, in = 0, out = 0, outer = 0;
  for (CUgraphNode node = graph->first; node; node = node->next, n++) {
    if (node->graph != graph || (!node->next && node != graph->last) ||
        !edges_are_valid(node))
      return true;
    in += node->in.count;
    out += node->out.count;
    outer += node_is_outer(node);
  }
  return n != graph->nnodes || in != out || outer != graph->nouter;
}


bool host_graph_is_valid(CUgraph graph) {
  return !graph_any(graph, is_invalid, NULL);
}


bool host_edge_data_is_default(const CUgraphEdgeData *data) {
  return data->from_port == 0 && data->to_port == 0 && data->type == 0;
}


bool host_edge_data_is_valid(const CUgraphEdgeData *data) {
  for (size_t i = 0; i < sizeof data->reserved; i++)
    if (data->reserved[i] != 0)
      return false;
  if (data->type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC)
    return data->to_port == 0 &&
           (data->from_port == CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC ||
            data->from_port == LAUNCH_ORDER);
  return data->to_port == 0 && data->type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT &&
         (data->from_port == 0 || data->from_port == LAUNCH_ORDER);
}


/* Valid, and between nodes that can have such an edge; NULL is the default. */
static bool edge_data_fits(const CUgraphEdgeData *data, CUgraphNode from,
                           const host_op *to) {
  if (!data || host_edge_data_is_default(data))
    return true;
  return host_edge_data_is_valid(data) && from->op.kind == HOST_OP_KERNEL &&
         (data->type == CU_GRAPH_DEPENDENCY_TYPE_DEFAULT ||
          to->kind == HOST_OP_KERNEL);
}


CUresult host_nodes_check(CUgraph graph, const CUgraphNode *nodes,
                          const CUgraphEdgeData *edges, size_t count) {
  if ((count > 0 && !nodes) || !host_nodes_are_live(nodes, count))
    return CUDA_ERROR_INVALID_VALUE;
  for (size_t i = 0; i < count; i++)
    if (nodes[i]->graph != graph ||
        (edges && !host_edge_data_is_valid(&edges[i])))
      return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}


static host_edge *edge_find(const host_edges *edges, CUgraphNode node) {
  for (uint32_t i = 0; i < edges->count; i++)
    if (edges->list[i].node == node)
      return &edges->list[i];
  return NULL;
}


static bool edges_reserve(host_edges *edges, uint32_t count) {
  if (count <= edges->size)
    return true;
  uint32_t size = edges->size * 2 < count ? count : edges->size * 2;
  host_edge *list =
      edges->list == edges->small ? NULL : edges->list; /* small: not malloc */
  list = realloc(list, size * sizeof *list);
  if (!list)
    return false;
  if (edges->list == edges->small)
    memcpy(list, edges->small, edges->count * sizeof *list);
  edges->list = list;
  edges->size = size;
  return true;
}


static void edge_drop(host_edges *edges, CUgraphNode node) {
  host_edge *edge = edge_find(edges, node);
  if (!edge)
    return;
  size_t after = (size_t)(edges->list + edges->count - (edge + 1));
  memmove(edge, edge + 1, after * sizeof *edge);
  edges->count--;
}


/* Both lists must have room. */
static void edge_link(CUgraphNode from, CUgraphNode to,
                      const CUgraphEdgeData *data) {
  CUgraphEdgeData value = data ? *data : (CUgraphEdgeData){0};
  from->out.list[from->out.count++] = (host_edge){to, value};
  to->in.list[to->in.count++] = (host_edge){from, value};
}


CUresult host_edge_add(CUgraphNode from, CUgraphNode to,
                       const CUgraphEdgeData *data) {
  if (from == to || !edge_data_fits(data, from, &to->op))
    return CUDA_ERROR_INVALID_VALUE;
  const host_edges *shorter =
      from->out.count < to->in.count ? &from->out : &to->in;
  if (edge_find(shorter, shorter == &from->out ? to : from))
    return CUDA_ERROR_INVALID_VALUE;
  if (!edges_reserve(&from->out, from->out.count + 1) ||
      !edges_reserve(&to->in, to->in.count + 1))
    return CUDA_ERROR_OUT_OF_MEMORY;
  edge_link(from, to, data);
  return CUDA_SUCCESS;
}


bool host_edge_remove(CUgraphNode from, CUgraphNode to) {
  if (!edge_find(&from->out, to))
    return false;
  edge_drop(&from->out, to);
  edge_drop(&to->in, from);
  return true;
}


static void edges_init(host_edges *edges) {
  edges->list = edges->small;
  edges->size = sizeof edges->small / sizeof *edges->small;
  edges->count = 0;
}


static void edges_free(host_edges *edges) {
  if (edges->list != edges->small)
    free(edges->list);
}


/* Are the dependencies nodes of the graph, each named once? */
static CUresult deps_check(CUgraph graph, const CUgraphNode *deps,
                           const CUgraphEdgeData *edges, size_t ndeps,
                           const host_op *op) {
  if (ndeps > 0 && !deps)
    return CUDA_ERROR_INVALID_VALUE;
  uint64_t mark = ndeps > 1 ? host_graph_mark() : 0;
  for (size_t i = 0; i < ndeps; i++) {
    if (!deps[i] || deps[i]->graph != graph)
      return CUDA_ERROR_INVALID_VALUE;
    if (ndeps > 1 && deps[i]->mark == mark)
      return CUDA_ERROR_INVALID_VALUE;
    if (ndeps > 1)
      deps[i]->mark = mark;
    if (edges && !edge_data_fits(&edges[i], deps[i], op))
      return CUDA_ERROR_INVALID_VALUE;
  }
  return CUDA_SUCCESS;
}


static bool link_all(CUgraphNode node, const CUgraphNode *deps,
                     const CUgraphEdgeData *edges, size_t ndeps) {
  if (ndeps > UINT32_MAX / 2 || !edges_reserve(&node->in, (uint32_t)ndeps))
    return false;
  for (size_t i = 0; i < ndeps; i++)
    if (!edges_reserve(&deps[i]->out, deps[i]->out.count + 1))
      return false;
  for (size_t i = 0; i < ndeps; i++)
    edge_link(deps[i], node, edges ? &edges[i] : NULL);
  return true;
}


CUresult host_node_new(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                       const CUgraphEdgeData *edges, size_t ndeps, host_op *op,
                       host_block *block) {
  CUresult result = deps_check(graph, deps, edges, ndeps, op);
  CUgraphNode node = result == CUDA_SUCCESS ? malloc(sizeof *node) : NULL;
  if (result == CUDA_SUCCESS && !node)
    result = CUDA_ERROR_OUT_OF_MEMORY;
  if (result != CUDA_SUCCESS) {
    host_node_params_drop(op, block);
    return result;
  }
  edges_init(&node->in);
  edges_init(&node->out);
  bool known = host_handle_add(HOST_HANDLE_NODE, node);
  if (!known || !link_all(node, deps, edges, ndeps)) {
    if (known)
      host_handle_remove(HOST_HANDLE_NODE, node);
    edges_free(&node->in);
    free(node);
    host_node_params_drop(op, block);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  node->id = ++next_node_id;
  node->origin = 0;
  node->mark = 0;
  node->graph = graph;
  node->block = block;
  node->op = *op;
  node->next = NULL;
  node->prev = graph->last;
  if (graph->last)
    graph->last->next = node;
  else
    graph->first = node;
  graph->last = node;
  graph->nnodes++;
  graph->nouter += node_is_outer(node);
  if (op->kind == HOST_OP_FREE)
    block->frees++;
  if (op->kind == HOST_OP_CHILD)
    op->child->owner = node;
  if (op->kind == HOST_OP_CONDITIONAL)
    for (unsigned i = 0; i < op->conditional->size; i++)
      op->conditional->graph[i]->owner = node;
  *out = node;
  return CUDA_SUCCESS;
}


void host_node_free(CUgraphNode node) {
  CUgraph graph = node->graph;
  for (uint32_t i = 0; i < node->in.count; i++)
    edge_drop(&node->in.list[i].node->out, node);
  for (uint32_t i = 0; i < node->out.count; i++)
    edge_drop(&node->out.list[i].node->in, node);
  edges_free(&node->in);
  edges_free(&node->out);
  if (node->prev)
    node->prev->next = node->next;
  else
    graph->first = node->next;
  if (node->next)
    node->next->prev = node->prev;
  else
    graph->last = node->prev;
  graph->nnodes--;
  graph->nouter -= node_is_outer(node);
  if (node->op.kind == HOST_OP_FREE)
    node->block->frees--;
  host_node_params_drop(&node->op, node->block);
  host_handle_remove(HOST_HANDLE_NODE, node);
  free(node);
}


static CUresult node_copy(CUgraph to, CUgraphNode from) {
  host_op op;
  CUresult result = CUDA_SUCCESS;
  if (from->op.kind == HOST_OP_CHILD) {
    op = from->op;
    result = host_graph_copy(&op.child, from->op.child);
  } else {
    result = host_op_copy(&op, &from->op);
  }
  if (result != CUDA_SUCCESS)
    return result;
  CUgraphNode node;
  result = host_node_new(&node, to, NULL, NULL, 0, &op, NULL);
  if (result == CUDA_SUCCESS)
    node->origin = from->id;
  return result;
}


/* Gives the copies the edges of the originals, in their order. */
static CUresult edges_copy(CUgraph to, CUgraph from) {
  CUgraphNode *copies = malloc((from->nnodes + 1) * sizeof *copies);
  if (!copies)
    return CUDA_ERROR_OUT_OF_MEMORY;
  uint32_t index = 0;
  CUgraphNode copy = to->first;
  for (CUgraphNode n = from->first; n; n = n->next) {
    n->index = index;
    copies[index++] = copy;
    copy = copy->next;
  }
  bool room = true;
  for (CUgraphNode n = from->first; n && room; n = n->next) {
    copy = copies[n->index];
    room = edges_reserve(&copy->in, n->in.count) &&
           edges_reserve(&copy->out, n->out.count);
    if (!room)
      break;
    for (uint32_t i = 0; i < n->in.count; i++)
      copy->in.list[i] =
          (host_edge){copies[n->in.list[i].node->index], n->in.list[i].data};
    for (uint32_t i = 0; i < n->out.count; i++)
      copy->out.list[i] =
          (host_edge){copies[n->out.list[i].node->index], n->out.list[i].data};
    copy->in.count = n->in.count;
    copy->out.count = n->out.count;
  }
  free(copies);
  return room ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}


CUresult host_graph_copy(CUgraph *out, CUgraph graph) {
  if (host_graph_has_memory(graph) || host_graph_has_conditional(graph))
    return CUDA_ERROR_NOT_SUPPORTED;
  CUgraph copy = host_graph_new();
  if (!copy)
    return CUDA_ERROR_OUT_OF_MEMORY;
  copy->origin = graph->id;
  CUresult result = host_user_copy(&copy->users, graph->users)
                        ? CUDA_SUCCESS
                        : CUDA_ERROR_OUT_OF_MEMORY;
  for (CUgraphNode n = graph->first; n && result == CUDA_SUCCESS; n = n->next)
    result = node_copy(copy, n);
  if (result == CUDA_SUCCESS)
    result = edges_copy(copy, graph);
  if (result != CUDA_SUCCESS) {
    host_graph_free(copy);
    return result;
  }
  *out = copy;
  return CUDA_SUCCESS;
}
