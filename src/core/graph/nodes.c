/* Looking inside a captured graph: its nodes, as the recording has them. */
#include "core/graph/annotate.h"
#include "core/graph/change.h"
#include "core/graph/graph.h"

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
  cgl_status status = cgl_graph_check_captured(graph, operation);
  if (!status)
    status = cgl_context_enter(graph->object.context, operation);
  if (status)
    return status;
  return cgl_fail_driver(graph->object.context,
                         cgl_recording_learn_edges(graph), operation,
                         "cuGraphGetEdges");
}


cgl_status cgl_graph_op(const cgl_graph *graph, size_t index,
                        const char *operation, cgl_op **op) {
  const cgl_recording *recording = &graph->recording;
  cgl_status status = cgl_graph_check_captured(graph, operation);
  if (status)
    return status;
  if (index < recording->nops) {
    *op = &recording->ops[index];
    return CGL_OK;
  }
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "the graph has %zu node%s, and none of this number", recording->nops,
           recording->nops == 1 ? "" : "s");
  return cgl_fail_hint("graph:nodes lists them");
}


cgl_status cgl_graph_node_count(cgl_graph *graph, size_t *count) {
  cgl_status status = cgl_graph_check_captured(graph, "graph:nodes");
  *count = status ? 0 : graph->recording.nops;
  return status;
}


cgl_status cgl_graph_node(cgl_graph *graph, size_t index, cgl_node_info *info) {
  static const char operation[] = "graph:nodes";
  const cgl_recording *recording = &graph->recording;
  cgl_op *op = NULL;
  cgl_status status = cgl_graph_op(graph, index, operation, &op);
  if (!status)
    status = cgl_graph_learn(graph, operation);
  if (status)
    return status;
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
