/* What memory a graph uses: whether its inputs were given up by hand since the
   capture (check_input_liveness), and what its replays write.
   The graph keeps its inputs, so nothing reads what is gone; but the script
   said that it was done with them, and memory borrowed from an engine may be
   gone indeed.
   Idea: giving up memory that some capture keeps moves a number; a graph looks
   through what it keeps only when the number has moved. */
#include "core/graph/graph.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 5, LINE = 600 };


/* Where the capture first used the memory of the object; where it began, if
   that is not known. */
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


/* Counts what was given up of what the recording and its bodies keep, and adds
   a line for each of the first to the text. */
typedef struct census {
  const cgl_graph *graph;
  size_t dead, at;
  char text[SHOWN * LINE + 40];
} census;


static void census_add(census *all, const cgl_object *object) {
  char *line = all->text + all->at;
  if (all->dead++ >= SHOWN)
    return;
  memcpy(line, "\n  ", 3);
  cgl_memory_describe(object, input_first_use(all->graph, object), line + 3,
                      LINE - 3);
  all->at += strlen(line);
}


/* Whether another buffer is bound in the object's place. */
static bool input_is_replaced(const cgl_recording *recording,
                              const cgl_object *object) {
  const uint16_t number = cgl_record_find_input(recording, object);
  const cgl_object *bound =
      number ? cgl_record_input_at(recording, number)->bound : NULL;
  return bound && bound != object;
}


static void census_add_recording(census *all, const cgl_recording *recording) {
  const cgl_object *object;
  const cgl_recording *body;
  for (size_t i = 0; (object = cgl_record_kept(recording, i)); i++)
    if (cgl_memory_is_over(object) && !input_is_replaced(recording, object))
      census_add(all, object);
  for (size_t i = 0; (body = cgl_record_body(recording, i)); i++)
    census_add_recording(all, body);
}


cgl_status cgl_graph_check_inputs(cgl_graph *graph, const char *operation) {
  const uint64_t now = atomic_load(&cgl_memory_generation);
  if (now == graph->inputs_seen)
    return CGL_OK;
  census all; /* too large to be cleared */
  all.graph = graph;
  all.dead = all.at = 0;
  census_add_recording(&all, graph->recording);
  const size_t dead = all.dead;
  if (!dead) {
    graph->inputs_seen = now;
    return CGL_OK;
  }
  if (dead > SHOWN)
    snprintf(all.text + all.at, sizeof all.text - all.at, "\n  and %zu more",
             dead - SHOWN);
  cgl_fail(CGL_ERROR_RELEASED, operation,
           "%zu input%s of the graph captured at %s %s released since:%s", dead,
           dead == 1 ? "" : "s", cgl_site_text(graph->capture.underway.begun),
           dead == 1 ? "was" : "were", all.text);
  return cgl_fail_hint("release what a graph uses after its last replay, or "
                       "reset the graph and capture again");
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
