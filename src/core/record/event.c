/* To record an event, and to let a stream wait for it: order between streams,
   or, in a capture, forks, joins and nodes. */
#include "core/record/recording_private.h"


/* A node that records or waits for an event from outside the graph. */
static cgl_status event_issue_external(cgl_stream *stream, cgl_event *event,
                                       cgl_op_kind kind) {
  const bool wait = kind == CGL_OP_WAIT;
  const char *operation = wait ? "stream:wait" : "event:record";
  const cgl_driver *driver = cgl_driver_of(stream);
  cgl_issue issue;
  cgl_status status = cgl_issue_begin(&issue, stream, &event->object, operation,
                                      &(cgl_room){.kept = 1});
  if (status)
    return status;
  if (stream->capture && stream->capture->around) {
    cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
             "the body of a conditional cannot hold a node that records or "
             "waits for an event");
    return cgl_fail_hint("record or wait before the conditional or after it");
  }
  if (!stream->capture) {
    cgl_fail(CUDA_ERROR_ILLEGAL_STATE, operation,
             "external records and waits are nodes of a graph, and the stream "
             "does not capture");
    return cgl_fail_hint("leave external out: outside of captures every event "
                         "is recorded and waited for as it is");
  }
  if (wait)
    status = cgl_capture_check_external_wait(stream, event, operation);
  if (status)
    return status;
  CUresult result =
      wait ? driver->cuStreamWaitEvent(stream->handle, event->handle,
                                       CU_EVENT_WAIT_EXTERNAL)
           : driver->cuEventRecordWithFlags(event->handle, stream->handle,
                                            CU_EVENT_RECORD_EXTERNAL);
  status = cgl_issue_taken(
      &issue, result, wait ? "cuStreamWaitEvent" : "cuEventRecordWithFlags");
  if (status)
    return status;
  const cgl_note note = {
      .kind = kind, .name = operation, .object = &event->object};
  cgl_issue_use(&issue, &event->object, NULL, NULL);
  cgl_issue_end(&issue, &note);
  return CGL_OK;
}


cgl_status cgl_stream_wait_event_external(cgl_stream *stream,
                                          cgl_event *event) {
  return event_issue_external(stream, event, CGL_OP_WAIT);
}


cgl_status cgl_stream_wait_event(cgl_stream *stream, cgl_event *event) {
  static const char operation[] = "stream:wait";
  if (event->external && stream->capture)
    return cgl_stream_wait_event_external(stream, event);
  cgl_context *context = stream->object.context;
  cgl_status status = cgl_context_enter(context, operation);
  if (status)
    return status;
  if (!event->recorded)
    return CGL_OK; /* as the driver: nothing to wait for */
  cgl_capture *joins = NULL;
  status = cgl_capture_check_wait(stream, event, operation, &joins);
  if (!status && joins)
    status = cgl_clock_hold(stream->clock, context, operation);
  if (status)
    return status;
  CUresult result = cgl_capture_catch_up(stream);
  if (!result)
    result =
        context->driver->cuStreamWaitEvent(stream->handle, event->handle, 0);
  if (result) {
    if (joins)
      cgl_clock_unhold(stream->clock);
    return cgl_capture_failed(stream, result, operation, "cuStreamWaitEvent");
  }
  if (joins)
    cgl_capture_fork(joins, stream);
  if (!stream->capture && !event->shown)
    cgl_clock_merge(stream->clock, &event->mark);
  cgl_capture_note_wait(stream, event);
  return CGL_OK;
}


cgl_status cgl_stream_wait_stream(cgl_stream *stream, cgl_stream *other) {
  cgl_event *event = NULL;
  cgl_status status = cgl_event_create(stream->object.context, false, &event);
  if (status)
    return status;
  status = cgl_event_record(event, other);
  if (!status)
    status = cgl_stream_wait_event(stream, event);
  cgl_event_release(event);
  return status;
}


cgl_status cgl_event_record_external(cgl_event *event, cgl_stream *stream) {
  cgl_status status = event_issue_external(stream, event, CGL_OP_RECORD);
  if (!status) {
    event->recorded = true;
    event->shown = true; /* every replay records it, and nothing before */
  }
  return status;
}


/* Whether another library captures the stream: an event recorded there stands
   for a place in that library's graph. */
static bool stream_is_captured_elsewhere(const cgl_stream *stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (!stream->shown || stream->capture || cgl_stream_is_default(stream))
    return false;
  return cgl_driver_of(stream)->cuStreamIsCapturing(stream->handle, &status) ||
         status != CU_STREAM_CAPTURE_STATUS_NONE;
}


cgl_status cgl_event_record(cgl_event *event, cgl_stream *stream) {
  static const char operation[] = "event:record";
  if (event->external && stream->capture)
    return cgl_event_record_external(event, stream);
  cgl_context *context = event->object.context;
  cgl_status status =
      cgl_object_check_device(&event->object, &stream->object, operation);
  if (!status)
    status = cgl_capture_check_open(stream, operation);
  if (!status)
    status = cgl_context_enter(context, operation);
  if (status)
    return status;
  cgl_mark mark = {NULL, 0, {{0, 0}}};
  if (!stream->capture && !stream_is_captured_elsewhere(stream))
    mark = cgl_clock_mark(stream->clock);
  CUresult result = cgl_capture_catch_up(stream);
  if (!result)
    result = context->driver->cuEventRecord(event->handle, stream->handle);
  if (result)
    return cgl_capture_failed(stream, result, operation, "cuEventRecord");
  event->recorded = true;
  cgl_mark_set(&event->mark, &mark);
  cgl_capture_note_record(stream, event);
  return CGL_OK;
}
