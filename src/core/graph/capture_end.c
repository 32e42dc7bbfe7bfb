/* The end of a capture: as wanted, broken, or abandoned.  However it ends, its
   streams are free and the teardown list is emptied; the failure that the
   caller sees is the first, and what follows hangs on it. */
#include "core/graph/build.h"
#include "core/graph/conditional.h"
#include "core/graph/plan.h"
#include "core/graph/temporary.h"


/* A stream that still captures afterwards would be lost, so a failure that
   leaves it capturing is answered by one more try. */
CUresult cgl_graph_end_driver_capture(const cgl_capture *capture,
                                      CUgraph *template) {
  const cgl_driver *driver = cgl_driver_of(capture->origin);
  CUstream stream = capture->origin->handle;
  *template = NULL;
  CUresult result = driver->cuStreamEndCapture(stream, template);
  if (!result)
    return result;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  CUresult asked = driver->cuStreamIsCapturing(stream, &status);
  if (asked || status != CU_STREAM_CAPTURE_STATUS_NONE) {
    CUgraph unwanted = NULL;
    driver->cuStreamEndCapture(stream, &unwanted);
    if (unwanted)
      driver->cuGraphDestroy(unwanted);
  }
  return result;
}


cgl_status cgl_graph_capture_end_failed(const cgl_capture *capture,
                                        CUresult result,
                                        const char *operation) {
  if (result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED) {
    char forks[400] = "";
    cgl_capture_name_unjoined(capture, forks, sizeof forks);
    cgl_fail(result, operation,
             "the capture has a fork that was never joined: %s", forks);
    return cgl_fail_hint("let the capturing stream wait for that stream before "
                         "the capture ends");
  }
  if (result != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    return cgl_fail_driver(capture->origin->object.context, result, operation,
                           "cuStreamEndCapture");
  if (!capture->broken.status)
    return cgl_capture_fail_broken(capture, operation);
  cgl_fail(capture->broken.status, capture->broken.operation, "%s",
           capture->broken.message);
  cgl_fail_hint("%s", *capture->broken.hint
                          ? capture->broken.hint
                          : "fix that call, or move it out of the capture");
  cgl_fail_where(capture->broken.site.file, capture->broken.site.line);
  cgl_fail_follow(true);
  cgl_fail(result, operation, "the call broke the capture");
  cgl_fail_follow(false);
  return capture->broken.status;
}


/* The capture is over, whatever came of it: its streams are free. */
static void capture_close(cgl_graph *graph) {
  cgl_capture *capture = &graph->capture;
  cgl_graph_leave_scopes(graph, 0);
  /* Before another capture may begin in the pool. */
  cgl_pool_capture_ended(graph->pool);
  cgl_captures_remove(&capture->underway);
  cgl_draws_end_capture(capture->draws);
  graph->draw_list = capture->draws;
  capture->draws = NULL;
  graph->ended = cgl_site_here;
  cgl_order_free(capture->order);
  capture->order = NULL;
  cgl_capture_free_streams(capture);
}


static cgl_status capture_check_end(cgl_graph *graph, const char *operation) {
  if (graph->state == CGL_GRAPH_CAPTURING && graph->capture.body) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "the body of a conditional is underway, begun at %s",
             cgl_site_text(graph->capture.body->underway.begun));
    return cgl_fail_hint("end the body first");
  }
  if (graph->state == CGL_GRAPH_CAPTURING)
    return cgl_context_enter(graph->object.context, operation);
  if (graph->ended.file)
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "the graph is not capturing: its capture ended at %s",
             cgl_site_text(graph->ended));
  else
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "the graph is not capturing: there is nothing to end");
  return cgl_fail_hint(graph->ended.file
                           ? "a capture ends once; a region ends its own "
                             "when its function returns"
                           : "call capture_begin first");
}


/* What the driver handed out is the graph's now; `late`: nothing, and its nodes
   are still to be made. */
static cgl_status capture_finish(cgl_graph *graph, bool late,
                                 const char *operation) {
  cgl_context *context = graph->object.context;
  CUgraph template = graph->template->graph;
  cgl_recording *recording = graph->recording;
  graph->state = CGL_GRAPH_CAPTURED;
  cgl_status status =
      cgl_draws_close(graph->draw_list, &graph->capture, template, operation);
  if (status)
    return status;
  CUresult result = cgl_record_learn_nodes(
      recording, template,
      graph->capture.watched ? graph->capture.unwatched : 0, true);
  if (result)
    return cgl_fail_driver(graph->object.context, result, operation,
                           "cuGraphGetNodes");
  cgl_scope_find_foreign(recording);
  if (!cgl_record_count(recording))
    cgl_log(graph->object.context, CGL_LOG_WARNING,
            "%s: the capture that began at %s is empty: was the work issued "
            "on another stream or device?",
            operation, cgl_site_text(graph->capture.underway.begun));
  if (graph->options.order == CGL_ORDER_DATA)
    status = cgl_plan_order(graph, late, operation);
  else
    cgl_temporaries_mark(recording, graph->capture.underway.born);
  template = graph->template->graph;
  if (!status)
    status = cgl_share_check_children(context, recording, template, operation);
  if (!status)
    status =
        cgl_build_thin_programmatic(context, recording, operation, template);
  if (!status)
    status = cgl_share_make(recording, &graph->pool->sharing,
                            &graph->capture.underway, operation);
#ifdef CGL_DEBUG
  if (!status)
    status =
        cgl_build_check(graph->object.context, recording, template, operation);
#endif
  if (status)
    return status;
  status = cgl_graph_watch_params(graph, operation);
  if (status)
    return status;
  cgl_record_tighten(recording);
  graph->open = true;
  status = cgl_hooks_run(graph, CGL_HOOK_CAPTURE_END, operation);
  graph->open = false;
  if (!status && (!graph->template || graph->template->graph != template)) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "a capture end hook reset the graph");
    return cgl_fail_hint("reset the graph after its capture has ended");
  }
  return status || graph->options.keep_graph
             ? status
             : cgl_graph_make_executable(graph, operation);
}


cgl_status cgl_graph_capture_end(cgl_graph *graph) {
  static const char operation[] = "graph:capture_end";
  cgl_status status = capture_check_end(graph, operation);
  if (status)
    return status;
  cgl_template *template = graph->template;
  const bool late = graph->capture.catch_up;
  CUresult result =
      cgl_graph_end_driver_capture(&graph->capture, &template->graph);
  if (!result && graph->capture.incomplete)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (result)
    status = cgl_graph_capture_end_failed(&graph->capture, result, operation);
  capture_close(graph);
  if (!status)
    status = capture_finish(graph, late, operation);
  if (!status) {
    cgl_captures_end();
    return CGL_OK;
  }
  cgl_fail_follow(true);
  if (graph->template == template) /* no hook has reset the graph */
    cgl_graph_drop_capture(graph);
  cgl_captures_end();
  cgl_fail_follow(false);
  return status;
}


cgl_status cgl_graph_capture_abandon(cgl_graph *graph) {
  static const char operation[] = "graph:capture_abandon";
  if (graph->state != CGL_GRAPH_CAPTURING)
    return CGL_OK;
  cgl_fail_follow(true);
  cgl_conditional_abandon_bodies(&graph->capture);
  cgl_status status = cgl_context_enter(graph->object.context, operation);
  CUresult result =
      cgl_graph_end_driver_capture(&graph->capture, &graph->template->graph);
  /* A capture that stops half way has had no time to join its forks. */
  if (result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
    result = CUDA_SUCCESS;
  if (result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    status = cgl_capture_fail_broken(&graph->capture, operation);
  else if (result)
    status = cgl_fail_driver(graph->object.context, result, operation,
                             "cuStreamEndCapture");
  capture_close(graph);
  cgl_graph_drop_capture(graph);
  cgl_captures_end();
  cgl_fail_follow(false);
  return status;
}
