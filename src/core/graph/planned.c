/* What a script may ask of a graph's order and memory. */
#include "core/graph/plan.h"
#include "core/graph/temporary.h"

#include <stdlib.h>
#include <string.h>

static cgl_status plan_sum_bytes(cgl_graph *graph, cgl_plan *info) {
  static const char operation[] = "graph:plan";
  const uint64_t born = graph->capture.underway.born;
  size_t asked, kept;
  cgl_status status =
      cgl_temporaries_sum(graph->recording, born, false, &asked, &kept);
  if (!status)
    status = cgl_temporaries_sum(graph->recording, born, true,
                                 &info->bytes_asked, &info->bytes);
  if (status)
    return status;
  const size_t bound = cgl_plan_bound(graph);
  if (bound == SIZE_MAX)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a plan");
  /* In issue order temporaries share bytes with what keeps its place, too. */
  info->bytes_least = kept + bound < info->bytes ? kept + bound : info->bytes;
  return CGL_OK;
}


cgl_status cgl_graph_plan(cgl_graph *graph, cgl_plan *info) {
  static const char operation[] = "graph:plan";
  memset(info, 0, sizeof *info);
  cgl_status status = cgl_graph_learn(graph, operation);
  if (status)
    return status;
  const size_t n = cgl_record_count(graph->recording);
  size_t *depth = calloc(2 * n + 2, sizeof *depth), *at = depth + n + 1;
  if (!depth)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a plan");
  info->order = graph->options.order;
  info->nodes = n;
  /* Dependencies of nodes that were added by hand may have later numbers. */
  for (bool again = true; again;) {
    again = false;
    for (size_t i = 0; i < n; i++) {
      size_t count, deepest = 0;
      const size_t *from = cgl_record_dependencies(graph->recording, i, &count);
      for (size_t k = 0; k < count; k++)
        if (from[k] != SIZE_MAX && depth[from[k]] > deepest)
          deepest = depth[from[k]];
      again |= depth[i] != deepest + 1;
      depth[i] = deepest + 1;
    }
  }
  for (size_t i = 0; i < n; i++) {
    size_t count;
    cgl_record_dependencies(graph->recording, i, &count);
    info->edges += count;
    info->longest = depth[i] > info->longest ? depth[i] : info->longest;
    at[depth[i]]++;
    info->width = at[depth[i]] > info->width ? at[depth[i]] : info->width;
  }
  free(depth);
  return plan_sum_bytes(graph, info);
}


cgl_status cgl_graph_plan_memory(cgl_graph *graph, size_t index,
                                 cgl_plan_memory *memory, bool *found) {
  cgl_status status = cgl_graph_check_captured(graph, "graph:plan");
  *found = false;
  if (status)
    return status;
  const uint64_t born = graph->capture.underway.born;
  const cgl_allocation *a = cgl_record_allocation(graph->recording, index);
  *found = a;
  if (!a)
    return CGL_OK;
  *memory = (cgl_plan_memory){.file = a->made.file ? a->made.file : "",
                              .line = a->made.line,
                              .address = a->address,
                              .bytes = a->born == born ? a->bytes : 0,
                              .temporary = a->temporary};
  return CGL_OK;
}


cgl_status cgl_graph_plan_barrier(cgl_graph *graph, size_t index,
                                  const char **reason) {
  const cgl_op *op;
  cgl_status status = cgl_graph_op(graph, index, "graph:plan", &op);
  *reason = NULL;
  if (status || graph->options.order == CGL_ORDER_ISSUE)
    return status;
  *reason = cgl_plan_barrier_reason(graph->draw_list, graph->recording, op);
  return CGL_OK;
}
