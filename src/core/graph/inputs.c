/* The memory that a graph uses: whether the script released an input since the
   capture (check_input_liveness), and what replays write.
   A graph keeps its inputs, so their memory is there; but a release says that
   the script is done with them, and memory borrowed from an engine may be gone.
   Idea: a release of memory that a capture keeps increments a number; a graph
   checks its inputs only when the number has changed. */
#include "core/graph/graph.h"

#include <stdio.h>

enum { SHOWN = 5 };


/* The site of the first operation that uses the object's memory; the begin of
   the capture, if that is not known. */
static cgl_site input_first_use(const cgl_graph *graph,
                                const cgl_object *object) {
  const cgl_recording *recording = graph->recording;
  uint64_t address;
  size_t bytes;
  object->kind->extent(object, &address, &bytes);
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    if (op->kind != CGL_OP_FOREIGN &&
        cgl_record_touches(recording, op, address, bytes, false))
      return op->site;
  }
  return graph->capture.underway.begun;
}


/* Counts the released inputs of a recording and its bodies, and describes the
   first of them in `text`, a line each. */
typedef struct census {
  const cgl_graph *graph;
  size_t dead, at, size;
  char *text;
} census;


static void census_add(census *all, const cgl_object *object) {
  char line[600];
  if (all->dead++ >= SHOWN)
    return;
  cgl_memory_describe(object, input_first_use(all->graph, object), line,
                      sizeof line);
  int n = snprintf(all->text + all->at, all->size - all->at, "\n  %s", line);
  all->at += n > 0 ? (size_t)n : 0;
}


static void census_add_recording(census *all, const cgl_recording *recording) {
  for (size_t i = 0; i < recording->nkept; i++)
    if (cgl_memory_is_over(recording->kept[i]))
      census_add(all, recording->kept[i]);
  for (size_t i = 0; i < recording->nbodies; i++)
    census_add_recording(all, recording->bodies[i]);
}


static cgl_status refuse_inputs(const cgl_graph *graph, const char *operation) {
  char text[SHOWN * 600 + 40] = "";
  census all = {.graph = graph, .text = text, .size = sizeof text};
  census_add_recording(&all, graph->recording);
  const size_t dead = all.dead;
  if (dead > SHOWN)
    snprintf(text + all.at, sizeof text - all.at, "\n  and %zu more",
             dead - SHOWN);
  cgl_fail(CGL_ERROR_RELEASED, operation,
           "%zu input%s of the graph captured at %s %s released since:%s", dead,
           dead == 1 ? "" : "s", cgl_site_text(graph->capture.underway.begun),
           dead == 1 ? "was" : "were", text);
  return cgl_fail_hint("release what a graph uses after its last replay, or "
                       "reset the graph and capture again");
}


/* Whether the script released memory that the recording, or a body in it,
 * keeps.
 */
static bool inputs_are_over(const cgl_recording *recording) {
  for (size_t i = 0; i < recording->nkept; i++)
    if (cgl_memory_is_over(recording->kept[i]))
      return true;
  for (size_t i = 0; i < recording->nbodies; i++)
    if (inputs_are_over(recording->bodies[i]))
      return true;
  return false;
}


cgl_status cgl_graph_check_inputs(cgl_graph *graph, const char *operation) {
  const uint64_t now = atomic_load(&cgl_memory_generation);
  if (now == graph->inputs_seen)
    return CGL_OK;
  if (inputs_are_over(graph->recording))
    return refuse_inputs(graph, operation);
  graph->inputs_seen = now;
  return CGL_OK;
}


cgl_status cgl_graph_writes(const cgl_graph *graph, const cgl_buffer *buffer,
                            bool *writes) {
  static const char operation[] = "graph:writes";
  cgl_status status = cgl_graph_check_captured(graph, operation);
  if (!status)
    status =
        cgl_object_check_device(&graph->object, &buffer->object, operation);
  if (status)
    return status;
  const cgl_recording *recording = graph->recording;
  const size_t bytes = cgl_buffer_bytes(buffer);
  *writes = false;
  for (size_t i = 0; bytes && i < cgl_record_count(recording) && !*writes; i++)
    *writes = cgl_record_touches(recording, cgl_record_op(recording, i),
                                 buffer->address, bytes, true);
  return CGL_OK;
}
