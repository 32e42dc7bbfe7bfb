/* Events: made, waited for, asked.  To record an event and to let a stream wait
   for it are operations: record/event.c. */
#include "core/stream/stream.h"

#include <stdlib.h>


static void event_destroy(cgl_object *object) {
  cgl_event *event = (cgl_event *)object;
  if (!cgl_context_enter(event->object.context, "event"))
    cgl_driver_of(event)->cuEventDestroy(event->handle);
  cgl_clock_release(event->mark.clock);
  free(event);
}


CGL_OBJECT_KIND(event, .destroy = event_destroy)


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
  cgl_object_init(&event->object, &event_kind, context);
  *out = event;
  return CGL_OK;
}


void *cgl_event_handle(const cgl_event *event) {
  ((cgl_event *)event)->shown = true;
  return event->handle;
}


void cgl_event_set_external(cgl_event *event, bool external) {
  event->external = external;
}


void cgl_event_learn(cgl_event *event) {
  if (!event->capture || !event->shown || cgl_captures_find(event->capture))
    return;
  cgl_relaxed relaxed = cgl_captures_relax(event->object.context);
  CUresult result = cgl_driver_of(event)->cuEventQuery(event->handle);
  cgl_captures_unrelax(event->object.context, relaxed);
  if (!result || result == CUDA_ERROR_NOT_READY)
    event->capture = 0;
}


/* An event recorded in a capture stands for a place in the graph, not for a
   moment: asking for it would break the capture. */
static cgl_status event_check(cgl_event *event, const char *operation) {
  cgl_status status = cgl_context_enter(event->object.context, operation);
  if (status)
    return status;
  cgl_event_learn(event);
  if (event->capture) {
    cgl_fail(CUDA_ERROR_CAPTURED_EVENT, operation,
             "the event was last recorded inside a capture, where it stands "
             "for a place in the graph and not for a moment");
    return cgl_fail_hint("record it on a stream that does not capture first, "
                         "or replay a graph that records it");
  }
  return cgl_captures_check_wait(false, operation);
}


/* What the event's last record covers is over. */
static void event_note_done(const cgl_event *event) {
  if (event->mark.clock && !event->shown)
    cgl_clock_waited(event->mark.clock, event->mark.tick);
}


cgl_status cgl_event_synchronize(cgl_event *event) {
  static const char operation[] = "event:synchronize";
  cgl_status status = event_check(event, operation);
  if (status)
    return status;
  cgl_context_block(event->object.context);
  CUresult result = cgl_driver_of(event)->cuEventSynchronize(event->handle);
  cgl_context_unblock(event->object.context);
  if (!result)
    event_note_done(event);
  return cgl_fail_driver(event->object.context, result, operation,
                         "cuEventSynchronize");
}


cgl_status cgl_event_query(cgl_event *event, bool *done) {
  static const char operation[] = "event:query";
  cgl_status status = event_check(event, operation);
  if (status)
    return status;
  CUresult result = cgl_driver_of(event)->cuEventQuery(event->handle);
  *done = result == CUDA_SUCCESS;
  if (*done)
    event_note_done(event);
  if (result == CUDA_ERROR_NOT_READY)
    return CGL_OK;
  return cgl_fail_driver(event->object.context, result, operation,
                         "cuEventQuery");
}


cgl_status cgl_event_elapsed(cgl_event *from, cgl_event *to, float *ms) {
  static const char operation[] = "event:elapsed";
  cgl_status status =
      cgl_object_check_device(&from->object, &to->object, operation);
  if (!status)
    status = event_check(from, operation);
  if (!status)
    status = event_check(to, operation);
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
