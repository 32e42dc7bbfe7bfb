/* The end of a capture: as wanted, broken, or abandoned.  However it ends, its
   streams are free and the collector's list is emptied; the failure that the
   caller sees is the first one, and what follows hangs on it. */
#include "core/graph/annotate.h"
#include "core/record/record.h"
#include "core/random/random.h"
#include "core/graph/graph.h"
#include "core/graph/hooks.h"
#include "core/memory/memory.h"
#include "core/record/order.h"
#include "core/sharing/sharing.h"

#include <stdio.h>


bool cgl_graph_is_capturing(const cgl_graph *graph) {
  return graph->state == CGL_GRAPH_CAPTURING;
}


cgl_stream *cgl_graph_capturing_stream(const cgl_graph *graph) {
  return cgl_graph_is_capturing(graph) ? graph->origin : NULL;
}


cgl_context *cgl_graph_context(const cgl_graph *graph) {
  return graph->object.context;
}


cgl_status cgl_capture_fail_broken(const cgl_graph *graph,
                                   const char *operation) {
  const cgl_status status = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  const cgl_recording *recording = &graph->recording;
  if (graph->broken.status) {
    cgl_fail(status, operation, "the capture was broken by %s%s%s (%s)",
             graph->broken.operation, graph->broken.site.file ? " at " : "",
             graph->broken.site.file ? cgl_site_text(graph->broken.site) : "",
             cgl_status_name(graph->broken.status));
    return cgl_fail_hint("mend that call, or move it out of the capture");
  }
  cgl_fail(status, operation,
           "the capture was broken by a call outside cgraphlua, after %s",
           cgl_site_text(recording->nops
                             ? recording->ops[recording->nops - 1].site
                             : graph->begun));
  return cgl_fail_hint("look for calls into the driver by other libraries, or "
                       "by other threads when the mode is global");
}


/* Asks the driver to end; a stream that still captures afterwards would be
   lost, so a failure that leaves it capturing is answered by one more try. */
static CUresult driver_end(cgl_graph *graph, CUgraph *template) {
  const cgl_driver *driver = cgl_driver_of(graph);
  CUstream stream = graph->origin->handle;
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


/* "stream (forked at file:line)" of every fork that nobody waited for. */
static void name_unjoined(cgl_graph *graph, char *text, size_t size) {
  size_t at = 0;
  for (int all = 0; all < 2 && !at; all++)
    for (cgl_stream *stream = graph->forked; stream;
         stream = stream->next_in_capture)
      if ((all || stream->issued > stream->joined) && at < size)
        at += (size_t)snprintf(
            text + at, size - at, "%sstream %p, forked at %s", at ? "; " : "",
            (void *)stream->handle, cgl_site_text(stream->forked));
}


/* The end failed.  A capture that one of our calls broke shows that call's
   failure, and the end's as what followed. */
static cgl_status end_failed(cgl_graph *graph, CUresult result,
                             const char *operation) {
  if (result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED) {
    char forks[400] = "";
    name_unjoined(graph, forks, sizeof forks);
    cgl_fail(result, operation,
             "the capture has a fork that was never joined: %s", forks);
    return cgl_fail_hint("let the capturing stream wait for that stream before "
                         "the capture ends");
  }
  if (result != CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    return cgl_fail_driver(graph->object.context, result, operation,
                           "cuStreamEndCapture");
  if (!graph->broken.status)
    return cgl_capture_fail_broken(graph, operation);
  cgl_fail(graph->broken.status, graph->broken.operation, "%s",
           graph->broken.message);
  cgl_fail_hint("%s", *graph->broken.hint
                          ? graph->broken.hint
                          : "mend that call, or move it out of the capture");
  cgl_fail_where(graph->broken.site.file, graph->broken.site.line);
  cgl_fail_follow(true);
  cgl_fail(result, operation, "the call broke the capture");
  cgl_fail_follow(false);
  return graph->broken.status;
}


/* The capture is over, whatever came of it: its streams are free. */
static void leave(cgl_graph *graph) {
  cgl_annotate_close(graph);
  /* Before another capture may begin in the pool. */
  cgl_pool_capture_ended(graph->pool);
  cgl_capture_forget(graph);
  cgl_draws_leave(graph);
  graph->ended = cgl_site_here;
  cgl_reach_free(graph->reach);
  graph->reach = NULL;
  graph->origin->capture = NULL;
  cgl_clock_unhold(graph->origin->clock);
  while (graph->forked) {
    cgl_stream *stream = graph->forked;
    graph->forked = stream->next_in_capture;
    stream->next_in_capture = NULL;
    stream->capture = NULL;
    cgl_clock_unhold(stream->clock);
    cgl_stream_release(stream);
  }
}


/* Forgets everything the capture collected; what fails in it only follows. */
static void drop(cgl_graph *graph, CUgraph template, const char *operation) {
  if (template)
    cgl_fail_driver(graph->object.context,
                    cgl_driver_of(graph)->cuGraphDestroy(template), operation,
                    "cuGraphDestroy");
  graph->template = NULL;
  graph->state = CGL_GRAPH_EMPTY;
  cgl_graph_unhold_pool(graph);
  cgl_share_release(graph->share);
  graph->share = NULL;
  cgl_recording_clear(&graph->recording, graph->object.context);
}


static cgl_status check_end(cgl_graph *graph, const char *operation) {
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


/* What the driver handed out is the graph's now. */
static cgl_status take(cgl_graph *graph, const char *operation) {
  graph->state = CGL_GRAPH_CAPTURED;
  cgl_status status = cgl_draws_close(graph, operation);
  if (status)
    return status;
  CUresult result = cgl_recording_find_foreign(graph);
  if (result)
    return cgl_fail_driver(graph->object.context, result, operation,
                           "cuGraphGetNodes");
  cgl_annotate_foreign(graph);
  if (!graph->recording.nops)
    cgl_log("%s: the capture that began at %s is empty: was the work issued "
            "on another stream or device?",
            operation, cgl_site_text(graph->begun));
  status = cgl_share_make(graph, operation);
  if (status)
    return status;
  cgl_recording_tighten(&graph->recording, graph->object.context);
  const CUgraph template = graph->template;
  graph->open = true;
  status = cgl_hooks_run(graph, CGL_HOOK_CAPTURE_END, operation);
  graph->open = false;
  if (!status && graph->template != template) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "a capture end hook reset the graph");
    return cgl_fail_hint("reset the graph after its capture has ended");
  }
  return status || graph->keep_graph
             ? status
             : cgl_graph_make_executable(graph, operation);
}


cgl_status cgl_graph_capture_end(cgl_graph *graph) {
  static const char operation[] = "graph:capture_end";
  cgl_status status = check_end(graph, operation);
  if (status)
    return status;
  CUgraph template;
  CUresult result = driver_end(graph, &template);
  if (result)
    status = end_failed(graph, result, operation);
  leave(graph);
  graph->template = template;
  if (!status)
    status = take(graph, operation);
  if (!status) {
    cgl_captures_end();
    return CGL_OK;
  }
  cgl_fail_follow(true);
  if (graph->template == template) /* no hook has reset the graph */
    drop(graph, template, operation);
  cgl_captures_end();
  cgl_fail_follow(false);
  return status;
}


cgl_status cgl_graph_capture_abandon(cgl_graph *graph) {
  static const char operation[] = "graph:capture_abandon";
  if (graph->state != CGL_GRAPH_CAPTURING)
    return CGL_OK;
  cgl_fail_follow(true);
  cgl_status status = cgl_context_enter(graph->object.context, operation);
  CUgraph template;
  CUresult result = driver_end(graph, &template);
  /* A capture that stops half way has had no time to join its forks. */
  if (result == CUDA_ERROR_STREAM_CAPTURE_UNJOINED)
    result = CUDA_SUCCESS;
  if (result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    status = cgl_capture_fail_broken(graph, operation);
  else if (result)
    status = cgl_fail_driver(graph->object.context, result, operation,
                             "cuStreamEndCapture");
  leave(graph);
  drop(graph, template, operation);
  cgl_captures_end();
  cgl_fail_follow(false);
  return status;
}
