/* What memory a capture touches, as far as its recording knows. */
#include "core/graph/graph.h"
#include "core/memory/memory.h"


/* Child graphs and what others put in have no ranges here: they may write to
   anything. */
static bool is_opaque(const cgl_op *op) {
  return op->kind == CGL_OP_GRAPH || op->kind == CGL_OP_FOREIGN;
}


cgl_status cgl_graph_writes(const cgl_graph *graph, const cgl_buffer *buffer,
                            bool *writes) {
  static const char operation[] = "graph:writes";
  cgl_status status = cgl_graph_check_captured(graph, operation);
  if (!status)
    status = cgl_check_device(&graph->object, &buffer->object, operation);
  if (status)
    return status;
  const cgl_recording *recording = &graph->recording;
  size_t bytes = cgl_buffer_bytes(buffer);
  bool found = false;
  for (size_t i = 0; bytes && i < recording->nops && !found; i++)
    found = is_opaque(&recording->ops[i]);
  for (size_t i = 0; bytes && i < recording->nranges && !found; i++)
    found = recording->ranges[i].write &&
            cgl_range_meets(&recording->ranges[i], buffer->address, bytes);
  *writes = found;
  return CGL_OK;
}
