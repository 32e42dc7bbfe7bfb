/* Looking inside a captured graph: its nodes, as the recording has them. */
#include "core/annotate.h"
#include "core/change.h"
#include "core/graph.h"

#include <string.h>

static const char *const words[] = {
#define X(constant, word, type) word,
    CGL_OPS(X)
#undef X
};


const char *cgl_op_word(cgl_op_kind kind) {
  return words[kind];
}


cgl_status cgl_graph_learn(cgl_graph *graph, const char *operation) {
  if (graph->state != CGL_GRAPH_CAPTURED) {
    cgl_fail(CGL_ERROR_NOT_CAPTURED, operation, "the graph holds no capture");
    cgl_fail_hint("capture something first, and end the capture");
    return CGL_ERROR_NOT_CAPTURED;
  }
  cgl_status status = cgl_context_enter(graph->object.context, operation);
  if (status)
    return status;
  return cgl_fail_driver(graph->object.context,
                         cgl_recording_learn_edges(graph), operation,
                         "cuGraphGetEdges");
}


cgl_status cgl_graph_node_count(cgl_graph *graph, size_t *count) {
  cgl_status status = cgl_graph_learn(graph, "graph:nodes");
  *count = status ? 0 : graph->recording.nops;
  return status;
}


cgl_status cgl_graph_node(cgl_graph *graph, size_t index, cgl_node_info *info) {
  static const char operation[] = "graph:nodes";
  cgl_status status = cgl_graph_learn(graph, operation);
  if (status)
    return status;
  const cgl_recording *recording = &graph->recording;
  if (index >= recording->nops)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
                    "node %zu is not in 0..%zu", index, recording->nops);
  const cgl_op *op = &recording->ops[index];
  memset(info, 0, sizeof *info);
  info->kind = words[op->kind];
  info->name = op->name;
  info->file = op->site.file ? op->site.file : "";
  info->line = op->site.file ? op->site.line : 0;
  memcpy(info->grid, op->grid, sizeof op->grid);
  memcpy(info->block, op->block, sizeof op->block);
  info->shared_bytes = op->shared_bytes;
  info->enabled = !op->off;
  info->type = cgl_change_type(graph, op);
  if (op->scope) {
    info->label = op->scope->label;
    info->annotations = op->scope->pairs;
    info->nannotations = op->scope->npairs;
  }
  info->ndependencies = recording->first[index + 1] - recording->first[index];
  info->dependencies = recording->edges + recording->first[index];
  return CGL_OK;
}
