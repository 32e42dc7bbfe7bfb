/* What a recording learns of the driver's graph: its nodes and edges. */
#include "core/record/recording_private.h"

#include <stdlib.h>
#include <string.h>


/* All nodes of a graph, in order of creation; the caller frees *nodes. */
static CUresult template_nodes(const cgl_recording *recording, CUgraph graph,
                               CUgraphNode **nodes, size_t *count) {
  const cgl_driver *driver = recording->context->driver;
  *nodes = NULL;
  CUresult result = driver->cuGraphGetNodes(graph, NULL, count);
  if (result || !*count)
    return result;
  if (!(*nodes = malloc(*count * sizeof **nodes)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  result = driver->cuGraphGetNodes(graph, *nodes, count);
  if (result) {
    free(*nodes);
    *nodes = NULL;
  }
  return result;
}


/* Whether `node`, the driver's next, is what became of `op`: known by the node,
   or, when others got in unwatched, by its type. */
static bool template_is_of(const cgl_op *op, CUgraphNode node,
                           const cgl_driver *driver) {
  static const CUgraphNodeType types[] = {
#define X(constant, word, type) type,
      CGL_OPS(X)
#undef X
  };
  CUgraphNodeType type;
  if (op->node)
    return op->node == node;
  return !driver->cuGraphNodeGetType(node, &type) &&
         type == (op->function ? CU_GRAPH_NODE_TYPE_KERNEL : types[op->kind]);
}


/* Both lists are in order of creation: merges them; false without memory. */
static bool template_merge(cgl_recording *recording, const CUgraphNode *nodes,
                           size_t count) {
  const cgl_driver *driver = recording->context->driver;
  cgl_op *ops = calloc(count, sizeof *ops);
  size_t next = 0;
  if (!ops)
    return false;
  for (size_t i = 0; i < count; i++) {
    if (next < recording->nops &&
        template_is_of(&recording->ops[next], nodes[i], driver))
      ops[i] = recording->ops[next++];
    else {
      ops[i].kind = CGL_OP_FOREIGN;
      ops[i].name = "foreign";
    }
    ops[i].node = nodes[i];
  }
  free(recording->ops);
  recording->ops = ops;
  recording->nops = recording->ops_size = count;
  return true;
}


CUresult cgl_record_learn_nodes(cgl_recording *recording, CUgraph graph,
                                size_t first, bool over) {
  CUgraphNode *nodes;
  size_t count = 0;
  CUresult result = template_nodes(recording, graph, &nodes, &count);
  if (over ? count == recording->nops : count < first)
    first = over ? count : 0;
  for (size_t i = 0; !result && i < first && i < count; i++)
    recording->ops[i].node = nodes[i];
  if (!result && over && count && count != recording->nops &&
      !template_merge(recording, nodes, count))
    result = CUDA_ERROR_OUT_OF_MEMORY;
  free(nodes);
  return result;
}


/* Sorts the edges by their later end, into one run per operation. */
static bool template_arrange(cgl_recording *recording, const CUgraphNode *from,
                             const CUgraphNode *to, size_t count) {
  const size_t n = recording->nops;
  cgl_order_nodes nodes = {NULL, 0, 0};
  size_t *edges = malloc((count + 1) * sizeof *edges);
  size_t *first = calloc(n + 2, sizeof *first);
  if (!edges || !first || !cgl_order_enter(&nodes, recording)) {
    free(nodes.places);
    free(edges);
    free(first);
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    size_t at = cgl_order_op(&nodes, to[i]);
    if (at != SIZE_MAX)
      first[at + 2]++;
  }
  for (size_t i = 1; i <= n; i++)
    first[i + 1] += first[i];
  /* first[i + 1] is now where run i begins, and moves to its end. */
  for (size_t i = 0; i < count; i++) {
    size_t at = cgl_order_op(&nodes, to[i]);
    if (at != SIZE_MAX)
      edges[first[at + 1]++] = cgl_order_op(&nodes, from[i]);
  }
  free(nodes.places);
  recording->edges = edges;
  recording->first = first;
  return true;
}


CUresult cgl_record_learn_edges(cgl_recording *recording, CUgraph graph) {
  const cgl_driver *driver = recording->context->driver;
  if (recording->first || !graph)
    return CUDA_SUCCESS;
  size_t count = 0;
  CUresult result = driver->cuGraphGetEdges(graph, NULL, NULL, NULL, &count);
  if (result)
    return result;
  CUgraphNode *ends = malloc((2 * count + 1) * sizeof *ends);
  CUgraphEdgeData *data = malloc((count + 1) * sizeof *data);
  if (!ends || !data)
    result = CUDA_ERROR_OUT_OF_MEMORY;
  else if (count)
    result = driver->cuGraphGetEdges(graph, ends, ends + count, data, &count);
  if (!result && !template_arrange(recording, ends, ends + count, count))
    result = CUDA_ERROR_OUT_OF_MEMORY;
  free(ends);
  free(data);
  return result;
}


CUresult cgl_record_learn_line(cgl_recording *recording, CUgraph graph) {
  const size_t n = recording->nops;
  size_t count = 0;
  CUresult result = recording->context->driver->cuGraphGetEdges(
      graph, NULL, NULL, NULL, &count);
  /* A stream that waits for an event adds edges that its order implies. */
  if (result || count + 1 != n)
    return result ? result : cgl_record_learn_edges(recording, graph);
  for (size_t i = 0; i < n; i++)
    if (!recording->ops[i].stream || recording->ops[i].predication ||
        recording->ops[i].stream != recording->ops[0].stream)
      return cgl_record_learn_edges(recording, graph);
  return cgl_record_assume_line(recording) ? CUDA_SUCCESS
                                           : CUDA_ERROR_OUT_OF_MEMORY;
}


bool cgl_record_assume_line(cgl_recording *recording) {
  const size_t n = recording->nops;
  size_t *edges = malloc((n + 1) * sizeof *edges);
  size_t *first = calloc(n + 2, sizeof *first);
  if (!edges || !first) {
    free(edges);
    free(first);
    return false;
  }
  for (size_t i = 0; i < n; i++) {
    edges[i] = i;
    first[i + 1] = i;
  }
  cgl_record_set_dependencies(recording, first, edges);
  return true;
}


void cgl_record_forget_edges(cgl_recording *recording) {
  cgl_record_set_dependencies(recording, NULL, NULL);
}


void cgl_record_set_node(cgl_recording *recording, size_t index,
                         CUgraphNode node) {
  recording->ops[index].node = node;
}


const size_t *cgl_record_dependencies(const cgl_recording *recording,
                                      size_t index, size_t *count) {
  *count = recording->first
               ? recording->first[index + 1] - recording->first[index]
               : 0;
  return *count ? recording->edges + recording->first[index] : NULL;
}


bool cgl_record_is_line(const cgl_recording *recording) {
  for (size_t i = 0; i < recording->nops; i++) {
    size_t count;
    const size_t *from = cgl_record_dependencies(recording, i, &count);
    if (count != (i > 0) || (i && from[0] != i - 1))
      return false;
  }
  for (size_t i = 0; i < recording->nbodies; i++)
    if (!cgl_record_is_line(recording->bodies[i]))
      return false;
  return true;
}


bool cgl_record_may_come_early(const cgl_recording *recording,
                               const unsigned char *alone, size_t index) {
  size_t count;
  const size_t *from = cgl_record_dependencies(recording, index, &count);
  if (count != 1 || from[0] == SIZE_MAX || !alone || !alone[from[0]])
    return false;
  const cgl_op *before = &recording->ops[from[0]];
  return recording->ops[index].waits && before->waits && before->fits;
}


void cgl_record_set_programmatic(cgl_recording *recording, size_t index,
                                 bool programmatic) {
  recording->ops[index].programmatic = programmatic;
}


void cgl_record_set_dependencies(cgl_recording *recording, size_t *first,
                                 size_t *edges) {
  free(recording->first);
  free(recording->edges);
  recording->first = first;
  recording->edges = edges;
}
