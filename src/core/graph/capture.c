/* The begin of a capture. */
#include "core/graph/build.h"


static cgl_status capture_check_begin(cgl_graph *graph, cgl_stream *stream,
                                      const char *operation) {
  cgl_status status =
      cgl_object_check_device(&graph->object, &stream->object, operation);
  if (!status)
    status = cgl_graph_check_empty(graph, operation);
  if (status)
    return status;
  if (cgl_stream_is_default(stream)) {
    cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
             "a capture cannot begin on the default stream: graphs are "
             "captured on another one, and may be replayed on any");
    return cgl_fail_hint("capture on a stream of your own");
  }
  const cgl_site body = cgl_captures_body();
  if (body.file) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "a capture cannot begin inside the body of a conditional, begun "
             "at %s",
             cgl_site_text(body));
    return cgl_fail_hint("capture the graph before, and replay it in the body");
  }
  if (stream->capture) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "the stream is part of a capture already, begun at %s: a capture "
             "inside a capture is not possible on one stream",
             cgl_site_text(stream->capture->underway.begun));
    return cgl_fail_hint("end the outer capture first, or replay a captured "
                         "graph inside it");
  }
  return CGL_OK;
}


/* What a capture needs before the driver begins it. */
static cgl_status capture_prepare(cgl_graph *graph, const char *operation) {
  cgl_context *context = graph->object.context;
  cgl_status status = cgl_context_enter(context, operation);
  if (!status && !graph->pool)
    status = cgl_pool_create(context, NULL, &graph->pool);
  if (status)
    return status;
  graph->recording = cgl_record_new(context);
  if (graph->recording)
    graph->template = cgl_graph_new_template(context, graph->pool);
  if (!graph->template)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a capture");
  cgl_record_keep(graph->recording, &graph->template->object, UINT64_MAX);
  cgl_object_release(&graph->template->object);
  return CGL_OK;
}


CUresult cgl_graph_begin_driver_capture(const cgl_driver *driver,
                                        const cgl_stream *stream,
                                        cgl_capture_mode mode) {
  static const CUstreamCaptureMode modes[] = {
      [CGL_CAPTURE_DEFAULT] = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
      [CGL_CAPTURE_GLOBAL] = CU_STREAM_CAPTURE_MODE_GLOBAL,
      [CGL_CAPTURE_THREAD_LOCAL] = CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
      [CGL_CAPTURE_RELAXED] = CU_STREAM_CAPTURE_MODE_RELAXED,
  };
  return driver->cuStreamBeginCapture(stream->handle, modes[mode]);
}


/* The process knows of the capture, then the driver does. */
static cgl_status capture_driver_begin(cgl_graph *graph, cgl_stream *stream,
                                       const char *operation) {
  cgl_status status = cgl_captures_begin(&graph->capture.underway, operation);
  if (status)
    return status;
  CUresult result = cgl_graph_begin_driver_capture(cgl_driver_of(graph), stream,
                                                   graph->options.capture_mode);
  if (!result)
    return CGL_OK;
  cgl_captures_remove(&graph->capture.underway);
  cgl_captures_end();
  return cgl_fail_driver(graph->object.context, result, operation,
                         "cuStreamBeginCapture");
}


/* The graph is as it was before: registered generators stay. */
static cgl_status capture_fail_begin(cgl_graph *graph, cgl_status status) {
  graph->template = NULL;
  cgl_record_release(graph->recording);
  graph->recording = NULL;
  return status;
}


/* Edges have had data since CUDA 12.3. */
static bool graph_has_programmatic(const cgl_graph *graph) {
  return graph->options.programmatic != CGL_OPTION_OFF &&
         cgl_driver_of(graph)->version >= 12030;
}


cgl_status cgl_graph_capture_begin(cgl_graph *graph, cgl_stream *stream) {
  static const char operation[] = "graph:capture_begin";
  cgl_status status = capture_check_begin(graph, stream, operation);
  if (status)
    return status;
  cgl_captures_await();
  status = capture_prepare(graph, operation);
  if (!status)
    status = cgl_clock_hold(stream->clock, graph->object.context, operation);
  if (status)
    return capture_fail_begin(graph, status);
  cgl_stream *before = graph->capture.origin;
  graph->capture =
      (cgl_capture){.underway = {.thread = pthread_self(),
                                 .mode = graph->options.capture_mode,
                                 .pool = graph->pool,
                                 .begun = cgl_site_here},
                    .origin = before,
                    .programmatic = graph_has_programmatic(graph),
                    .programmatic_inside = graph_has_programmatic(graph),
                    .recording = graph->recording};
  graph->inputs_seen = 0;
  status = capture_driver_begin(graph, stream, operation);
  if (status) {
    cgl_clock_unhold(stream->clock);
    return capture_fail_begin(graph, status);
  }
  graph->capture.draws = graph->draw_list;
  graph->draw_list = NULL;
  cgl_capture_begin(&graph->capture, cgl_stream_retain(stream));
  if (graph->options.order == CGL_ORDER_DATA) {
    if (graph->capture.watched)
      graph->capture.programmatic = false;
    else
      graph->capture.catch_up = cgl_build_catch_up;
  }
  cgl_stream_release(before);
  graph->state = CGL_GRAPH_CAPTURING;
  cgl_pool_capture_begins(graph->pool, graph->capture.underway.serial);
  if (graph->options.pool)
    status = cgl_sharing_begin(&graph->pool->sharing, operation);
  if (!status)
    status = cgl_hooks_run(graph, CGL_HOOK_CAPTURE_START, operation);
  if (status)
    cgl_graph_capture_abandon(graph);
  return status;
}
