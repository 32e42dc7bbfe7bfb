/* A graph from a recording that no capture of this process made. */
#include "core/graph/build.h"


/* The graphs inside a recording belong to the pool of the graph around. */
static cgl_status restore_share(cgl_graph *graph, cgl_recording *recording,
                                const char *operation) {
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < cgl_record_count(recording) && !status; i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    const cgl_recording *const *bodies = cgl_record_bodies(recording, op);
    for (uint32_t b = 0; b < op->nbodies && !status; b++) {
      cgl_recording *body = (cgl_recording *)bodies[b];
      if (!cgl_record_summary(body))
        status = restore_share(graph, body, operation);
      if (!status && op->kind == CGL_OP_GRAPH && !cgl_record_summary(body))
        status = cgl_share_make(body, &graph->pool->sharing,
                                &graph->capture.underway, operation);
    }
  }
  return status;
}


/* The graph is what a capture that began and ended here would have made. */
static cgl_status restore_build(cgl_graph *graph, const char *operation) {
  cgl_context *context = graph->object.context;
  cgl_recording *recording = graph->recording;
  CUgraph *built = &graph->template->graph;
  cgl_status status = cgl_build_graph(context, recording, 1, operation, built);
  if (status) {
    *built = NULL;
    return status;
  }
  status = cgl_fail_driver(context,
                           cgl_record_learn_nodes(recording, *built, 0, true),
                           operation, "cuGraphGetNodes");
  if (!status)
    status = restore_share(graph, recording, operation);
  if (!status)
    status = cgl_share_make(recording, &graph->pool->sharing,
                            &graph->capture.underway, operation);
  if (!status)
    status = cgl_graph_watch_params(graph, operation);
  return status ? status : cgl_graph_make_executable(graph, operation);
}


/* What the graph holds, and a serial as a capture has. */
static cgl_status restore_prepare(cgl_graph *graph, cgl_object *keeper,
                                  const char *operation) {
  cgl_context *context = graph->object.context;
  const cgl_room room = {.kept = 2};
  cgl_status status = cgl_pool_create(context, NULL, &graph->pool);
  if (!status)
    status = cgl_issue_reserve(graph->recording, &room, operation);
  if (status)
    return status;
  graph->template = cgl_graph_new_template(context, graph->pool);
  if (!graph->template)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a graph");
  cgl_record_keep(graph->recording, &graph->template->object, UINT64_MAX);
  cgl_object_release(&graph->template->object);
  cgl_underway *underway = &graph->capture.underway;
  *underway = (cgl_underway){.thread = pthread_self(),
                             .mode = CGL_CAPTURE_RELAXED,
                             .pool = graph->pool,
                             .begun = cgl_site_here};
  status = cgl_captures_begin(underway, operation);
  if (status)
    return status;
  cgl_captures_remove(underway);
  cgl_captures_end();
  cgl_record_keep(graph->recording, keeper, underway->serial);
  return CGL_OK;
}


cgl_status cgl_graph_restore(cgl_graph *graph, cgl_stream *stream,
                             const cgl_restored *restored,
                             const char *operation) {
  graph->recording = restored->recording;
  graph->draw_list = restored->draws;
  graph->bound = restored->bound;
  graph->ended = cgl_site_here;
  graph->capture.origin = cgl_stream_retain(stream);
  graph->capture.recording = graph->recording;
  graph->state = CGL_GRAPH_CAPTURED;
  cgl_status status = restore_prepare(graph, restored->keeper, operation);
  return status ? status : restore_build(graph, operation);
}
