/* Annotations of what a graph captures. */
#include "core/graph/graph.h"


static cgl_status annotations_check(const cgl_annotation *pairs, size_t n,
                                    const char *operation) {
  for (size_t i = 0; i < n; i++)
    if (!pairs[i].key || (unsigned)pairs[i].kind > CGL_ANNOTATION_BOOLEAN ||
        (pairs[i].kind == CGL_ANNOTATION_TEXT && !pairs[i].text)) {
      cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
               "annotation %zu has no key, or no value", i);
      return cgl_fail_hint("give each a key, a kind, and a text of that kind");
    }
  return CGL_OK;
}


/* Of the innermost body underway, or of the graph. */
static cgl_capture *graph_innermost_capture(cgl_graph *graph) {
  cgl_capture *capture = &graph->capture;
  while (capture->body)
    capture = capture->body;
  return capture;
}


cgl_status cgl_graph_annotate(cgl_graph *graph, const cgl_annotation *pairs,
                              size_t n, uint64_t *id) {
  static const char operation[] = "graph:annotate";
  *id = 0;
  cgl_status status = annotations_check(pairs, n, operation);
  if (status || graph->state != CGL_GRAPH_CAPTURING ||
      !graph->options.annotations)
    return status;
  const cgl_scope *scope =
      cgl_scope_begin(graph_innermost_capture(graph), pairs, n);
  if (!scope)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory to annotate");
  if (graph->options.annotations == CGL_ANNOTATIONS_NVTX) {
    char text[200];
    cgl_scope_text(scope, text, sizeof text);
    cgl_nvtx_push(text);
  }
  *id = scope->id;
  return CGL_OK;
}


void cgl_graph_leave_scopes(cgl_graph *graph, uint64_t id) {
  size_t left = cgl_scope_end(graph_innermost_capture(graph), id);
  for (; left && graph->options.annotations == CGL_ANNOTATIONS_NVTX; left--)
    cgl_nvtx_pop();
}


void cgl_graph_annotate_end(cgl_graph *graph, uint64_t id) {
  if (id && graph->state == CGL_GRAPH_CAPTURING)
    cgl_graph_leave_scopes(graph, id);
}


void cgl_graph_clear_annotations(cgl_graph *graph) {
  if (graph->recording)
    cgl_scope_clear(graph->recording);
}
