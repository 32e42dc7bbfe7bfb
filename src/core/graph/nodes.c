/* Looking inside a captured graph: its nodes, as the recording has them. */
#include "core/graph/build.h"

#include <string.h>


cgl_status cgl_graph_learn(cgl_graph *graph, const char *operation) {
  cgl_context *context = graph->object.context;
  cgl_status status = cgl_graph_check_captured(graph, operation);
  if (!status)
    status = cgl_context_enter(context, operation);
  if (status)
    return status;
  return cgl_fail_driver(
      context, cgl_record_learn_edges(graph->recording, graph->template->graph),
      operation, "cuGraphGetEdges");
}


cgl_status cgl_graph_op(const cgl_graph *graph, size_t index,
                        const char *operation, const cgl_op **op) {
  cgl_status status = cgl_graph_check_captured(graph, operation);
  if (status)
    return status;
  const size_t count = cgl_record_count(graph->recording);
  if (index < count) {
    *op = cgl_record_op(graph->recording, index);
    return CGL_OK;
  }
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "the graph has %zu node%s, and no node %zu", count,
           count == 1 ? "" : "s", index + 1);
  return cgl_fail_hint("graph:nodes lists them");
}


cgl_status cgl_graph_node_count(cgl_graph *graph, size_t *count) {
  cgl_status status = cgl_graph_check_captured(graph, "graph:nodes");
  *count = status ? 0 : cgl_record_count(graph->recording);
  return status;
}


size_t cgl_graph_body_node_count(const cgl_body *body) {
  return cgl_record_count(body);
}


void cgl_graph_body_node(const cgl_body *body, size_t index,
                         cgl_node_info *info) {
  const cgl_op *op = cgl_record_op(body, index);
  memset(info, 0, sizeof *info);
  info->kind = cgl_record_words[op->kind];
  info->name = op->name;
  info->file = op->site.file ? op->site.file : "";
  info->line = op->site.file ? op->site.line : 0;
  memcpy(info->grid, op->launch.grid, sizeof op->launch.grid);
  memcpy(info->block, op->launch.block, sizeof op->launch.block);
  info->shared_bytes = op->launch.shared_bytes;
  info->enabled = !op->off;
  info->programmatic = op->programmatic;
  info->type = op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET
                   ? (cgl_type)cgl_build_element(body, op)->type
                   : CGL_TYPE_COUNT;
  if (op->scope) {
    info->label = op->scope->label;
    info->annotations = op->scope->pairs;
    info->nannotations = op->scope->npairs;
  }
  if (op->kind == CGL_OP_CONDITIONAL) {
    info->form = "node";
    info->nbodies = op->nbodies;
    info->bodies = cgl_record_bodies(body, op);
  }
  if (op->predication == CGL_PREDICATION_LOOKS)
    info->form = "predicated";
  if (op->follows)
    info->form = "following";
  info->dependencies =
      cgl_record_dependencies(body, index, &info->ndependencies);
}


cgl_status cgl_graph_node(cgl_graph *graph, size_t index, cgl_node_info *info) {
  static const char operation[] = "graph:nodes";
  const cgl_op *op = NULL;
  cgl_status status = cgl_graph_op(graph, index, operation, &op);
  if (!status)
    status = cgl_graph_learn(graph, operation);
  if (!status)
    cgl_graph_body_node(graph->recording, index, info);
  return status;
}
