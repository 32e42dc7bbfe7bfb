/* Captures underway: which calls they forbid, and which streams take part. */
#include "driver/host/stream/stream.h"

#include <stdlib.h>
#include <string.h>

static host_capture *captures; /* all that are underway, under host_lock */
static _Atomic uint64_t threads;
static uint64_t next_capture_id;


uint64_t host_capture_thread(void) {
  host_thread *thread = host_thread_here;
  if (thread->number == 0)
    thread->number = 1 + atomic_fetch_add(&threads, 1);
  return thread->number;
}


CUstreamCaptureMode host_capture_exchange_mode(CUstreamCaptureMode mode) {
  CUstreamCaptureMode before = host_thread_here->mode;
  host_thread_here->mode = mode;
  return before;
}


static void capture_unref(host_capture *capture) {
  if (--capture->refs > 0)
    return;
  free(capture->orphans);
  free(capture);
}


/* Is the stream one that the legacy stream waits for? */
static bool captures_blocking(const host_capture *capture) {
  for (CUstream s = capture->streams; s; s = s->capture_next)
    if ((s->flags & CU_STREAM_NON_BLOCKING) == 0)
      return true;
  return false;
}


bool host_capture_bars_legacy(void) {
  for (host_capture *c = captures; c; c = c->next)
    if (captures_blocking(c))
      return true;
  return false;
}


CUresult host_capture_legacy(void) {
  CUresult result = CUDA_SUCCESS;
  for (host_capture *c = captures; c; c = c->next)
    if (captures_blocking(c)) {
      c->invalid = true;
      result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  return result;
}


CUresult host_capture_unsafe(void) {
  const CUstreamCaptureMode mode = host_thread_here->mode;
  if (!captures || mode == CU_STREAM_CAPTURE_MODE_RELAXED)
    return CUDA_SUCCESS;
  CUresult result = CUDA_SUCCESS;
  uint64_t self = host_capture_thread();
  for (host_capture *c = captures; c; c = c->next) {
    bool bars = c->thread == self
                    ? c->mode != CU_STREAM_CAPTURE_MODE_RELAXED
                    : mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                          c->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (bars) {
      c->invalid = true;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return result;
}


CUresult host_capture_touch(CUstream stream) {
  if (stream->capture) {
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (!captures)
    return CUDA_SUCCESS;
  if (stream == host_stream_resolve(CU_STREAM_LEGACY))
    HOST_TRY(host_capture_legacy());
  return host_capture_unsafe();
}


CUresult host_capture_touch_all(void) {
  for (host_capture *c = captures; c; c = c->next)
    c->invalid = true;
  return captures ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}


void host_capture_break(CUstream stream) {
  if (stream->capture)
    stream->capture->invalid = true;
}


CUresult host_capture_new(CUstream stream, CUgraph graph,
                          CUstreamCaptureMode mode,
                          void (*abandon)(host_capture *capture)) {
  host_capture *capture = calloc(1, sizeof *capture);
  if (!capture)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *capture = (host_capture){.refs = 1,
                            .id = ++next_capture_id,
                            .mode = mode,
                            .thread = host_capture_thread(),
                            .graph = graph,
                            .origin = stream,
                            .next = captures,
                            .abandon = abandon};
  if (captures)
    captures->prev = capture;
  captures = capture;
  host_capture_join(capture, stream);
  stream->origin = true;
  return CUDA_SUCCESS;
}


void host_capture_join(host_capture *capture, CUstream stream) {
  stream->capture = capture;
  stream->origin = false;
  stream->ndeps = 0;
  stream->capture_next = capture->streams;
  capture->streams = stream;
}


void host_capture_close(host_capture *capture) {
  while (capture->streams) {
    CUstream stream = capture->streams;
    capture->streams = stream->capture_next;
    stream->capture_next = NULL;
    stream->capture = NULL;
    stream->origin = false;
    stream->ndeps = 0;
  }
  if (capture->prev)
    capture->prev->next = capture->next;
  else
    captures = capture->next;
  if (capture->next)
    capture->next->prev = capture->prev;
  capture->graph = NULL;
  capture->ended = true;
  capture_unref(capture);
}


void host_capture_leave(CUstream stream) {
  host_capture *capture = stream->capture;
  if (capture && stream->origin) {
    capture->abandon(capture);
  } else if (capture) {
    CUstream *link = &capture->streams;
    while (*link != stream)
      link = &(*link)->capture_next;
    *link = stream->capture_next;
    size_t n = capture->norphans + stream->ndeps;
    CUgraphNode *orphans = realloc(capture->orphans, (n + 1) * sizeof *orphans);
    if (!orphans) {
      capture->invalid = true; /* what it left can no longer be checked */
    } else {
      capture->orphans = orphans;
      if (stream->ndeps > 0)
        memcpy(orphans + capture->norphans, stream->deps,
               stream->ndeps * sizeof *orphans);
      capture->norphans = n;
    }
    stream->capture = NULL;
  }
  free(stream->deps);
  free(stream->edges);
  stream->deps = NULL;
  stream->edges = NULL;
  stream->ndeps = stream->deps_size = 0;
}


CUresult host_capture_check_event(CUevent event, bool breaks) {
  host_capture *capture = event->capture;
  if (!capture)
    return CUDA_SUCCESS;
  if (capture->ended || capture->invalid)
    return CUDA_ERROR_INVALID_VALUE;
  if (breaks)
    capture->invalid = true;
  return CUDA_ERROR_CAPTURED_EVENT;
}


void host_capture_forget_event(CUevent event) {
  if (event->capture)
    capture_unref(event->capture);
  event->capture = NULL;
  free(event->deps);
  event->deps = NULL;
  event->ndeps = 0;
}
