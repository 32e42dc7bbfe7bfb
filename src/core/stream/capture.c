/* A capture underway: its streams, and what broke it. */
#include "core/stream/stream.h"

#include <stddef.h>
#include <stdio.h>


/* ---- asking the driver ---- */

CUresult cgl_capture_ask(const cgl_stream *stream, cgl_captured *captured) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id;
  CUresult result = cgl_capture_catch_up(stream);
  if (!result)
    result = cgl_driver_of(stream)->cuStreamGetCaptureInfo(
        stream->handle, &status, &id, &captured->graph, &captured->nodes,
        &captured->edges, &captured->count);
  return !result && status != CU_STREAM_CAPTURE_STATUS_ACTIVE
             ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
             : result;
}


CUgraphNode cgl_capture_last_node(const cgl_stream *stream) {
  cgl_captured captured;
  return !cgl_capture_ask(stream, &captured) && captured.count == 1
             ? captured.nodes[0]
             : NULL;
}


bool cgl_capture_has(const cgl_stream *stream) {
  if (stream->capture || stream->owned || cgl_stream_is_default(stream))
    return stream->capture;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return !cgl_driver_of(stream)->cuStreamIsCapturing(stream->handle, &status) &&
         status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}


/* What fails is told by the next operation, or by the capture's end. */
void cgl_capture_watch(cgl_capture *capture) {
  if (capture->catch_up)
    capture->catch_up(capture);
  if (!capture->watched)
    capture->unwatched = capture->noted;
  capture->watched = true;
}


/* ---- failures ---- */

cgl_status cgl_capture_fail_broken(const cgl_capture *capture,
                                   const char *operation) {
  const cgl_status status = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (capture->broken.status) {
    const cgl_site site = capture->broken.site;
    cgl_fail(status, operation, "the capture was broken by %s%s%s (%s)",
             capture->broken.operation, site.file ? " at " : "",
             site.file ? cgl_site_text(site) : "",
             cgl_status_name(capture->broken.status));
    return cgl_fail_hint("fix that call, or move it out of the capture");
  }
  cgl_fail(status, operation,
           "the capture was broken by a call outside cgraphlua, after %s",
           cgl_site_text(capture->noted ? capture->latest
                                        : capture->underway.begun));
  return cgl_fail_hint("look for calls into the driver by other libraries, or "
                       "by other threads when the mode is global");
}


void cgl_capture_note_broken(cgl_capture *capture, const char *operation) {
  const cgl_error *error = cgl_last_error();
  if (capture->broken.status)
    return;
  capture->broken.status = error->code;
  capture->broken.operation = operation;
  capture->broken.site = cgl_site_here;
  snprintf(capture->broken.message, sizeof capture->broken.message, "%s",
           error->message);
  snprintf(capture->broken.hint, sizeof capture->broken.hint, "%s",
           error->hint);
}


cgl_status cgl_capture_failed(cgl_stream *stream, CUresult result,
                              const char *operation, const char *entry) {
  cgl_capture *capture = stream->capture;
  if (capture && result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    return cgl_capture_fail_broken(capture, operation);
  cgl_fail_driver(stream->object.context, result, operation, entry);
  if (capture)
    cgl_capture_note_broken(capture, operation);
  return result;
}


cgl_status cgl_capture_refuse(const cgl_stream *stream, const char *operation,
                              const char *why, const char *hint) {
  if (!stream->capture)
    return CGL_OK;
  cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation, "%s", why);
  return cgl_fail_hint("%s", hint);
}


cgl_status cgl_capture_check_open(const cgl_stream *stream,
                                  const char *operation) {
  const cgl_capture *body = stream->capture ? stream->capture->body : NULL;
  if (!body)
    return CGL_OK;
  cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
           "the stream is captured around a body that is underway, begun at "
           "%s",
           cgl_site_text(body->underway.begun));
  return cgl_fail_hint("inside a body, issue work into its own stream, which "
                       "is the current stream there");
}


/* ---- the streams of a capture ---- */

static void capture_enter(cgl_capture *capture, cgl_stream *stream) {
  int priority = 0;
  /* Of an engine's stream it is not known before. */
  if (!stream->owned &&
      !cgl_driver_of(stream)->cuStreamGetPriority(stream->handle, &priority))
    stream->priority = priority;
  stream->capture = capture;
  stream->issued = stream->joined = 0;
  stream->waited = false;
  if (stream->shown)
    cgl_capture_watch(capture);
}


void cgl_capture_begin(cgl_capture *capture, cgl_stream *origin) {
  capture->origin = origin;
  capture_enter(capture, origin);
}


void cgl_capture_fork(cgl_capture *capture, cgl_stream *stream) {
  cgl_object_retain(&stream->object);
  capture_enter(capture, stream);
  stream->forked = cgl_site_here;
  stream->next_in_capture = capture->forked;
  capture->forked = stream;
}


void cgl_capture_free_streams(cgl_capture *capture) {
  capture->origin->capture = NULL;
  cgl_clock_unhold(capture->origin->clock);
  while (capture->forked) {
    cgl_stream *stream = capture->forked;
    capture->forked = stream->next_in_capture;
    stream->next_in_capture = NULL;
    stream->capture = NULL;
    cgl_clock_unhold(stream->clock);
    cgl_stream_release(stream);
  }
}


/* ---- forks and joins ---- */

static cgl_status fail_over(const char *operation, const char *hint) {
  cgl_fail(CUDA_ERROR_INVALID_VALUE, operation,
           "the event was last recorded inside a capture that has ended");
  return cgl_fail_hint("%s", hint);
}


cgl_status cgl_capture_check_wait(cgl_stream *stream, cgl_event *event,
                                  const char *operation, cgl_capture **joins) {
  cgl_capture *own = stream->capture;
  cgl_status status = cgl_capture_check_open(stream, operation);
  if (status)
    return status;
  cgl_event_learn(event);
  if (!event->capture) {
    if (!own)
      return CGL_OK;
    cgl_fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, operation,
             "the event was recorded outside the capture: a graph cannot wait "
             "for what is not in it");
    return cgl_fail_hint("synchronize the event before the capture begins, or "
                         "record it on a stream of the capture");
  }
  if (own && own->underway.serial == event->capture)
    return CGL_OK;
  cgl_underway *other = cgl_captures_find(event->capture);
  if (!other)
    return fail_over(operation, "record the event again before waiting for it");
  if (own && (own->underway.body || other->body)) {
    cgl_fail(
        CUDA_ERROR_STREAM_CAPTURE_MERGE, operation,
        "the event was recorded %s the body of a conditional, begun at "
        "%s: no edge leads into a body or out of it",
        own->underway.body ? "outside" : "inside",
        cgl_site_text(own->underway.body ? own->underway.begun : other->begun));
    return cgl_fail_hint("a body comes after all work before it on its stream; "
                         "let that stream wait before the conditional, or "
                         "after it");
  }
  if (own) {
    cgl_fail(CUDA_ERROR_STREAM_CAPTURE_MERGE, operation,
             "the event belongs to another capture that is underway");
    return cgl_fail_hint("a stream joins one capture only: wait for events of "
                         "the same capture");
  }
  if (cgl_stream_is_default(stream)) {
    cgl_fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, operation,
             "the event was recorded in a capture, begun at %s, which the "
             "default stream cannot join",
             cgl_site_text(other->begun));
    return cgl_fail_hint("fork to a stream of your own, or wait after the "
                         "capture");
  }
  _Static_assert(!offsetof(cgl_capture, underway), "a capture begins with it");
  *joins = (cgl_capture *)other;
  return cgl_capture_check_open((*joins)->origin, operation);
}


cgl_status cgl_capture_check_external_wait(const cgl_stream *stream,
                                           cgl_event *event,
                                           const char *operation) {
  cgl_event_learn(event);
  if (!event->capture || stream->capture->underway.serial == event->capture)
    return CGL_OK;
  static const char hint[] =
      "record the event outside captures, or replay a graph that records it, "
      "before a graph waits for it";
  const cgl_capture *other =
      (const cgl_capture *)cgl_captures_find(event->capture);
  if (!other)
    return fail_over(operation, hint);
  if (!other->broken.status)
    return CGL_OK;
  cgl_fail(CUDA_ERROR_INVALID_VALUE, operation,
           "the event was last recorded inside another capture, begun at %s, "
           "which is broken",
           cgl_site_text(other->underway.begun));
  return cgl_fail_hint("%s", hint);
}


void cgl_capture_note_record(const cgl_stream *stream, cgl_event *event) {
  event->capture = stream->capture ? stream->capture->underway.serial : 0;
  event->issued = stream->issued;
  event->stream = stream->serial;
}


void cgl_capture_note_wait(cgl_stream *stream, const cgl_event *event) {
  stream->waited = true;
  if (!stream->capture || event->stream == stream->serial)
    return;
  for (cgl_stream *other = stream->capture->forked; other;
       other = other->next_in_capture)
    if (other->serial == event->stream && other->joined < event->issued)
      other->joined = event->issued;
}


void cgl_capture_name_unjoined(const cgl_capture *capture, char *text,
                               size_t size) {
  size_t at = 0;
  for (int all = 0; all < 2 && !at; all++)
    for (const cgl_stream *stream = capture->forked; stream;
         stream = stream->next_in_capture)
      if ((all || stream->issued > stream->joined) && at < size)
        at += (size_t)snprintf(
            text + at, size - at, "%sstream %p, forked at %s", at ? "; " : "",
            (void *)stream->handle, cgl_site_text(stream->forked));
}
