/* Streams and events. */
#include "core/stream/stream.h"
#include "core/record/record.h"
#include "core/memory/memory.h"

#include <stdlib.h>

static atomic_uint_fast64_t next_serial = 1;


/* One for every object that stands for the context's default stream. */
static cgl_clock *default_clock(cgl_context *context, uint64_t serial) {
  pthread_mutex_lock(&context->lock);
  if (!context->default_clock)
    context->default_clock =
        cgl_clock_new(context->driver, CU_STREAM_LEGACY, serial, false);
  cgl_clock *clock = context->default_clock;
  if (clock)
    cgl_clock_retain(clock);
  pthread_mutex_unlock(&context->lock);
  return clock;
}


/* An object for `handle`; NULL: one that is to be made. */
static cgl_status stream_new(cgl_context *context, CUstream handle,
                             cgl_stream **out) {
  cgl_stream *stream = calloc(1, sizeof *stream);
  if (stream) {
    stream->handle = handle;
    stream->shown = handle;
    stream->serial = atomic_fetch_add(&next_serial, 1);
    stream->clock =
        handle == CU_STREAM_LEGACY
            ? default_clock(context, stream->serial)
            : cgl_clock_new(context->driver, handle, stream->serial, handle);
  }
  if (!stream || !stream->clock) {
    free(stream);
    return cgl_fail(CGL_ERROR_NO_MEMORY, "stream", "no memory for a stream");
  }
  cgl_object_init(&stream->object, CGL_OBJECT_stream, context);
  *out = stream;
  return CGL_OK;
}


cgl_status cgl_stream_create(cgl_context *context, int priority,
                             cgl_stream **out) {
  cgl_status status = cgl_context_enter(context, "stream");
  if (!status)
    status = stream_new(context, NULL, out);
  if (status)
    return status;
  const cgl_driver *driver = context->driver;
  int least = 0, greatest = 0;
  const char *entry = "cuCtxGetStreamPriorityRange";
  CUresult result = driver->cuCtxGetStreamPriorityRange(&least, &greatest);
  if (!result) {
    priority = priority > least ? least : priority;
    priority = priority < greatest ? greatest : priority;
    entry = "cuStreamCreateWithPriority";
    result = driver->cuStreamCreateWithPriority(
        &(*out)->handle, CU_STREAM_NON_BLOCKING, priority);
  }
  if (result) {
    cgl_stream_release(*out);
    *out = NULL;
    return cgl_fail_driver(context, result, "stream", entry);
  }
  (*out)->owned = true;
  (*out)->clock->handle = (*out)->handle;
  return CGL_OK;
}


cgl_status cgl_stream_default(cgl_context *context, cgl_stream **out) {
  return stream_new(context, CU_STREAM_LEGACY, out);
}


cgl_status cgl_stream_from_handle(cgl_context *context, void *custream,
                                  cgl_stream **out) {
  return stream_new(context, custream ? custream : CU_STREAM_LEGACY, out);
}


void cgl_stream_retire(cgl_stream *stream) {
  if (!stream->owned && !cgl_stream_is_default(stream))
    cgl_clock_retire(stream->clock, stream->object.context, false);
}


void cgl_stream_destroy(cgl_stream *stream) {
  if (stream->owned)
    cgl_clock_retire(stream->clock, stream->object.context, true);
  cgl_clock_release(stream->clock);
  if (stream->owned && !cgl_context_enter(stream->object.context, "stream"))
    cgl_driver_of(stream)->cuStreamDestroy(stream->handle);
  free(stream);
}


void *cgl_stream_handle(cgl_stream *stream) {
  if (!stream->shown && stream->capture)
    cgl_capture_watch(stream->capture);
  stream->shown = true;
  return stream->handle;
}


bool cgl_stream_is_same(const cgl_stream *a, const cgl_stream *b) {
  return a->handle == b->handle && a->object.context == b->object.context;
}


cgl_context *cgl_stream_context(const cgl_stream *stream) {
  return stream->object.context;
}


bool cgl_stream_is_default(const cgl_stream *stream) {
  return stream->handle == CU_STREAM_LEGACY;
}


cgl_graph *cgl_stream_capturing_graph(const cgl_stream *stream) {
  return stream->capture;
}


static cgl_status check_stream(const cgl_stream *stream,
                               const char *operation) {
  cgl_status status = cgl_context_enter(stream->object.context, operation);
  return status ? status : cgl_check_may_wait(stream, operation);
}


cgl_status cgl_stream_synchronize(cgl_stream *stream) {
  static const char operation[] = "stream:synchronize";
  cgl_context *context = stream->object.context;
  cgl_status status = check_stream(stream, operation);
  if (status)
    return status;
  uint64_t tick = cgl_clock_begin_wait(stream->clock);
  CUresult result = context->driver->cuStreamSynchronize(stream->handle);
  if (!result) {
    cgl_clock_waited(stream->clock, tick);
    cgl_trail_clear();
  }
  return cgl_fail_driver(context, result, operation, "cuStreamSynchronize");
}


cgl_status cgl_stream_query(cgl_stream *stream, bool *done) {
  static const char operation[] = "stream:query";
  cgl_context *context = stream->object.context;
  cgl_status status = check_stream(stream, operation);
  if (status)
    return status;
  uint64_t tick = cgl_clock_begin_wait(stream->clock);
  CUresult result = context->driver->cuStreamQuery(stream->handle);
  *done = result == CUDA_SUCCESS;
  if (*done)
    cgl_clock_waited(stream->clock, tick);
  if (result == CUDA_ERROR_NOT_READY)
    return CGL_OK;
  return cgl_fail_driver(context, result, operation, "cuStreamQuery");
}


cgl_status cgl_stream_is_capturing(cgl_stream *stream, bool *capturing) {
  static const char operation[] = "stream:is_capturing";
  *capturing = false;
  if (cgl_stream_is_default(stream))
    return CGL_OK;
  cgl_status status = cgl_context_enter(stream->object.context, operation);
  if (status)
    return status;
  CUstreamCaptureStatus state = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result =
      cgl_driver_of(stream)->cuStreamIsCapturing(stream->handle, &state);
  *capturing = state != CU_STREAM_CAPTURE_STATUS_NONE;
  return cgl_fail_driver(stream->object.context, result, operation,
                         "cuStreamIsCapturing");
}


/* Before a node that records or waits for an event from outside. */
static cgl_status begin_external(cgl_stream *stream, cgl_event *event,
                                 const char *operation) {
  cgl_status status =
      cgl_check_device(&event->object, &stream->object, operation);
  if (!status)
    status = cgl_context_enter(stream->object.context, operation);
  if (status)
    return status;
  if (stream->capture)
    return cgl_capture_reserve(stream, operation, 0, 0, 1);
  cgl_fail(CUDA_ERROR_ILLEGAL_STATE, operation,
           "external records and waits are nodes of a graph, and the stream "
           "does not capture");
  return cgl_fail_hint("leave external out: outside of captures every event is "
                       "recorded and waited for as it is");
}


static cgl_status end_external(cgl_stream *stream, cgl_event *event,
                               CUresult result, const cgl_note *note,
                               const char *entry) {
  if (result)
    return cgl_capture_failed(stream->capture, result, note->name, entry,
                              stream->object.context);
  cgl_capture_keep(stream->capture, &event->object);
  cgl_capture_note(stream, note);
  return CGL_OK;
}


cgl_status cgl_stream_wait_event_external(cgl_stream *stream,
                                          cgl_event *event) {
  static const cgl_note note = {.kind = CGL_OP_WAIT, .name = "stream:wait"};
  cgl_status status = begin_external(stream, event, note.name);
  if (status)
    return status;
  CUresult result = cgl_driver_of(stream)->cuStreamWaitEvent(
      stream->handle, event->handle, CU_EVENT_WAIT_EXTERNAL);
  return end_external(stream, event, result, &note, "cuStreamWaitEvent");
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
  cgl_graph *joins = NULL;
  status = cgl_capture_check_wait(stream, event, operation, &joins);
  if (!status && joins)
    status = cgl_clock_hold(stream->clock, context, operation);
  if (status)
    return status;
  CUresult result =
      context->driver->cuStreamWaitEvent(stream->handle, event->handle, 0);
  if (result) {
    if (joins)
      cgl_clock_unhold(stream->clock);
    return cgl_capture_failed(stream->capture, result, operation,
                              "cuStreamWaitEvent", context);
  }
  if (joins)
    cgl_capture_adopt(joins, stream);
  if (!stream->capture && !event->lent)
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


/* ---- events ---- */

cgl_status cgl_event_create(cgl_context *context, bool timing,
                            cgl_event **out) {
  cgl_status status = cgl_context_enter(context, "event");
  if (status)
    return status;
  cgl_event *event = calloc(1, sizeof *event);
  if (!event)
    return cgl_fail(CGL_ERROR_NO_MEMORY, "event", "no memory for an event");
  CUresult result = context->driver->cuEventCreate(
      &event->handle, timing ? CU_EVENT_DEFAULT : CU_EVENT_DISABLE_TIMING);
  if (result) {
    free(event);
    return cgl_fail_driver(context, result, "event", "cuEventCreate");
  }
  event->timing = timing;
  cgl_object_init(&event->object, CGL_OBJECT_event, context);
  *out = event;
  return CGL_OK;
}


void cgl_event_destroy(cgl_event *event) {
  if (!cgl_context_enter(event->object.context, "event"))
    cgl_driver_of(event)->cuEventDestroy(event->handle);
  cgl_mark_clear(&event->mark);
  free(event);
}


void *cgl_event_handle(const cgl_event *event) {
  ((cgl_event *)event)->lent = true;
  return event->handle;
}


void cgl_event_set_external(cgl_event *event, bool external) {
  event->external = external;
}


cgl_status cgl_event_record_external(cgl_event *event, cgl_stream *stream) {
  static const cgl_note note = {.kind = CGL_OP_RECORD, .name = "event:record"};
  cgl_status status = begin_external(stream, event, note.name);
  if (status)
    return status;
  CUresult result = cgl_driver_of(event)->cuEventRecordWithFlags(
      event->handle, stream->handle, CU_EVENT_RECORD_EXTERNAL);
  status = end_external(stream, event, result, &note, "cuEventRecordWithFlags");
  if (!status) {
    event->recorded = true;
    event->lent = true; /* every replay records it */
    event->capture = 0;
  }
  return status;
}


/* Somebody else captures the stream, whose handle is out: an event recorded
   there stands for a place in his graph. */
static bool is_captured_elsewhere(const cgl_stream *stream) {
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
      cgl_check_device(&event->object, &stream->object, operation);
  if (!status)
    status = cgl_context_enter(context, operation);
  if (status)
    return status;
  cgl_mark mark = {NULL, 0, {{0, 0}}};
  bool known = !stream->capture && !is_captured_elsewhere(stream);
  if (known)
    mark = cgl_clock_mark(stream->clock);
  CUresult result =
      context->driver->cuEventRecord(event->handle, stream->handle);
  if (result)
    return cgl_capture_failed(stream->capture, result, operation,
                              "cuEventRecord", context);
  event->recorded = true;
  if (known)
    cgl_mark_set(&event->mark, &mark);
  else
    cgl_mark_clear(&event->mark);
  cgl_capture_note_record(stream, event);
  return CGL_OK;
}


/* An event recorded in a capture stands for a place in the graph, not for a
   moment: asking for it would break the capture. */
static cgl_status check_event(cgl_event *event, const char *operation) {
  cgl_status status = cgl_context_enter(event->object.context, operation);
  if (status)
    return status;
  if (event->capture) {
    cgl_fail(CUDA_ERROR_CAPTURED_EVENT, operation,
             "the event was last recorded inside a capture, where it stands "
             "for a place in the graph and not for a moment");
    return cgl_fail_hint("record it on a stream that does not capture first");
  }
  return cgl_check_may_wait(NULL, operation);
}


/* What the event's last record covers is over. */
static void note_done(const cgl_event *event) {
  if (event->mark.clock && !event->lent)
    cgl_clock_waited(event->mark.clock, event->mark.tick);
}


cgl_status cgl_event_synchronize(cgl_event *event) {
  static const char operation[] = "event:synchronize";
  cgl_status status = check_event(event, operation);
  if (status)
    return status;
  CUresult result = cgl_driver_of(event)->cuEventSynchronize(event->handle);
  if (!result)
    note_done(event);
  return cgl_fail_driver(event->object.context, result, operation,
                         "cuEventSynchronize");
}


cgl_status cgl_event_query(cgl_event *event, bool *done) {
  static const char operation[] = "event:query";
  cgl_status status = check_event(event, operation);
  if (status)
    return status;
  CUresult result = cgl_driver_of(event)->cuEventQuery(event->handle);
  *done = result == CUDA_SUCCESS;
  if (*done)
    note_done(event);
  if (result == CUDA_ERROR_NOT_READY)
    return CGL_OK;
  return cgl_fail_driver(event->object.context, result, operation,
                         "cuEventQuery");
}


cgl_status cgl_event_elapsed(cgl_event *from, cgl_event *to, float *ms) {
  static const char operation[] = "event:elapsed";
  cgl_status status = cgl_check_device(&from->object, &to->object, operation);
  if (!status)
    status = check_event(from, operation);
  if (!status)
    status = check_event(to, operation);
  if (status)
    return status;
  if (!from->timing || !to->timing) {
    cgl_fail(CUDA_ERROR_INVALID_HANDLE, operation,
             "an event without timing cannot measure");
    return cgl_fail_hint("make both events with timing = true");
  }
  if (!from->recorded || !to->recorded) {
    cgl_fail(CUDA_ERROR_INVALID_HANDLE, operation,
             "the %s event was never recorded",
             from->recorded ? "later" : "earlier");
    return cgl_fail_hint("record both events on a stream first");
  }
  CUresult result =
      cgl_driver_of(from)->cuEventElapsedTime(ms, from->handle, to->handle);
  if (result == CUDA_ERROR_NOT_READY) {
    cgl_fail(result, operation, "the work before the events is not done yet");
    return cgl_fail_hint("synchronize the later event first");
  }
  if (result == CUDA_ERROR_INVALID_HANDLE) {
    cgl_fail(result, operation,
             "no replay has recorded the events yet: they were recorded into "
             "a capture");
    return cgl_fail_hint("replay the graph, and synchronize the later event");
  }
  return cgl_fail_driver(from->object.context, result, operation,
                         "cuEventElapsedTime");
}
