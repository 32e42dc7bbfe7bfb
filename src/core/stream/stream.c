/* Streams: made, waited for, asked. */
#include "core/stream/stream.h"

#include <stdlib.h>

static atomic_uint_fast64_t next_serial = 1;


/* ---- the default stream's clock: one for all of its objects ---- */

typedef struct stream_part {
  cgl_part part;
  cgl_clock *clock; /* lazily; under the context's lock */
} stream_part;


static void stream_part_end(cgl_context *context, cgl_part *part) {
  (void)context;
  cgl_clock_release(((stream_part *)part)->clock);
  free(part);
}


/* Retained; NULL without memory. */
static cgl_clock *stream_default_clock(cgl_context *context, uint64_t serial) {
  stream_part *part = (stream_part *)cgl_context_make_part(
      context, CGL_PART_STREAM, sizeof *part,
      (cgl_part){.end = stream_part_end}, "stream");
  if (!part)
    return NULL;
  pthread_mutex_lock(&context->lock);
  if (!part->clock)
    part->clock =
        cgl_clock_new(context->driver, CU_STREAM_LEGACY, serial, false);
  cgl_clock *clock = part->clock ? cgl_clock_retain(part->clock) : NULL;
  pthread_mutex_unlock(&context->lock);
  return clock;
}


/* ---- streams ---- */

static void stream_abandon(cgl_object *object) {
  cgl_stream *stream = (cgl_stream *)object;
  if (!stream->owned && !cgl_stream_is_default(stream))
    cgl_clock_retire(stream->clock, stream->object.context);
}


static void stream_destroy(cgl_object *object) {
  cgl_stream *stream = (cgl_stream *)object;
  cgl_context *context = stream->object.context;
  if (!cgl_stream_is_default(stream)) {
    atomic_store(&context->dropped, atomic_load(&context->waits_begun) + 1);
    atomic_fetch_sub(&context->streams, 1);
  }
  if (stream->owned)
    cgl_clock_retire(stream->clock, stream->object.context);
  cgl_clock_release(stream->clock);
  if (stream->owned && !cgl_context_enter(stream->object.context, "stream"))
    cgl_driver_of(stream)->cuStreamDestroy(stream->handle);
  free(stream);
}


CGL_OBJECT_KIND(stream, .destroy = stream_destroy, .abandon = stream_abandon)


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
            ? stream_default_clock(context, stream->serial)
            : cgl_clock_new(context->driver, handle, stream->serial, handle);
  }
  if (!stream || !stream->clock) {
    free(stream);
    return cgl_fail(CGL_ERROR_NO_MEMORY, "stream", "no memory for a stream");
  }
  cgl_object_init(&stream->object, &stream_kind, context);
  if (handle != CU_STREAM_LEGACY)
    atomic_fetch_add(&context->streams, 1);
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
  (*out)->priority = priority;
  (*out)->clock->handle = (*out)->handle;
  return CGL_OK;
}


cgl_status cgl_stream_default(cgl_context *context, cgl_stream **out) {
  return stream_new(context, CU_STREAM_LEGACY, out);
}


cgl_status cgl_stream_from_handle(cgl_context *context, void *custream,
                                  cgl_stream **out) {
  cgl_context_show(context);
  return stream_new(context, custream ? custream : CU_STREAM_LEGACY, out);
}


void *cgl_stream_handle(cgl_stream *stream) {
  if (stream->capture)
    cgl_capture_watch(stream->capture);
  stream->shown = true;
  cgl_context_show(stream->object.context);
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


/* Waits for the stream, or asks whether that would return at once. */
static cgl_status stream_wait(cgl_stream *stream, bool *done,
                              const char *operation) {
  cgl_context *context = stream->object.context;
  const cgl_driver *driver = context->driver;
  cgl_status status = cgl_context_enter(context, operation);
  if (!status)
    status = cgl_captures_check_wait(stream->capture, operation);
  if (status)
    return status;
  uint64_t tick = cgl_clock_begin_wait(stream->clock);
  CUresult result = done ? driver->cuStreamQuery(stream->handle)
                         : cgl_context_wait_stream(context, stream->handle);
  if (!result)
    cgl_clock_waited(stream->clock, tick);
  if (done)
    *done = !result;
  if (done && result == CUDA_ERROR_NOT_READY)
    return CGL_OK;
  return cgl_fail_driver(context, result, operation,
                         done ? "cuStreamQuery" : "cuStreamSynchronize");
}


cgl_status cgl_stream_synchronize(cgl_stream *stream) {
  cgl_status status = stream_wait(stream, NULL, "stream:synchronize");
  if (!status)
    cgl_launches_clear();
  return status;
}


/* Whether these are all streams of the context, so that waiting for them is
   waiting for the device. */
static bool streams_cover(const cgl_context *context,
                          cgl_stream *const *streams, size_t count) {
  bool legacy = false;
  unsigned others = 0;
  for (size_t i = 0; i < count; i++) {
    if (streams[i]->object.context != context)
      continue;
    bool again = false;
    for (size_t k = 0; k < i; k++)
      again |= streams[k] == streams[i];
    legacy |= cgl_stream_is_default(streams[i]);
    others += !again && !cgl_stream_is_default(streams[i]);
  }
  return legacy && others == atomic_load(&context->streams);
}


/* Waits for the streams of one context.  Relaxed: a capture of another thread
   is neither broken nor waited for. */
static cgl_status streams_wait(cgl_context *context, cgl_stream *const *streams,
                               size_t count, const char *operation) {
  cgl_status status = cgl_context_enter(context, operation);
  if (status)
    return status;
  const bool cover = streams_cover(context, streams, count);
  const uint64_t number = cgl_context_begin_wait(context);
  const cgl_relaxed relaxed = cgl_captures_relax_always(context);
  const char *entry = "cuThreadExchangeStreamCaptureMode";
  CUresult result = relaxed.result;
  for (size_t i = 0; i < count && !result; i++) {
    if (streams[i]->object.context != context)
      continue;
    const uint64_t tick = cgl_clock_begin_wait(streams[i]->clock);
    entry = "cuStreamSynchronize";
    result = cgl_context_wait_stream(context, streams[i]->handle);
    if (!result)
      cgl_clock_waited(streams[i]->clock, tick);
  }
  cgl_captures_unrelax(context, relaxed);
  if (result || !cover || !cgl_captures_hold(false))
    return cgl_fail_driver(context, result, operation, entry);
  /* Work of destroyed streams and of engines takes the device's own wait. */
  if (atomic_load(&context->shown) ||
      !cgl_context_waited(context, atomic_load(&context->dropped)))
    result = cgl_context_wait(context);
  cgl_captures_unhold();
  if (!result)
    cgl_context_end_wait(context, number);
  return cgl_fail_driver(context, result, operation, "cuCtxSynchronize");
}


cgl_status cgl_streams_synchronize(cgl_stream *const *streams, size_t count) {
  static const char operation[] = "synchronize";
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < count && !status; i++)
    status = cgl_captures_check_own(streams[i]->capture, operation);
  for (size_t i = 0; i < count && !status; i++) {
    cgl_context *context = streams[i]->object.context;
    bool again = false;
    for (size_t k = 0; k < i; k++)
      again |= streams[k]->object.context == context;
    if (!again)
      status = streams_wait(context, &streams[i], count - i, operation);
  }
  if (!status)
    cgl_launches_clear();
  return status;
}


cgl_status cgl_stream_query(cgl_stream *stream, bool *done) {
  return stream_wait(stream, done, "stream:query");
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


/* ---- isolated streams ---- */

static cgl_status isolate_fail(const cgl_stream *stream,
                               const char *operation) {
  cgl_fail(CUDA_ERROR_NOT_SUPPORTED, operation,
           "the driver of %s does not keep a failure to a stream",
           stream->object.context->info.device);
  return cgl_fail_hint("the host device does");
}


cgl_status cgl_stream_isolate(cgl_stream *stream, double seconds) {
  static const char operation[] = "stream:isolate";
  const cgl_driver *driver = cgl_driver_of(stream);
  if (cgl_stream_is_default(stream) || !(seconds >= 0 && seconds <= 1e9)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "a default stream, or a deadline of %g seconds that is not in "
             "0..1e9",
             seconds);
    return cgl_fail_hint("isolate a stream of cgl_stream_create");
  }
  if (!driver->isolate_stream)
    return isolate_fail(stream, operation);
  cgl_status status = cgl_fail_driver(
      stream->object.context, driver->isolate_stream(stream->handle, seconds),
      operation, "isolate_stream");
  stream->isolated |= !status;
  return status;
}


cgl_status cgl_stream_abort(cgl_stream *stream) {
  static const char operation[] = "stream:abort";
  const cgl_driver *driver = cgl_driver_of(stream);
  if (!driver->abort_stream)
    return isolate_fail(stream, operation);
  return cgl_fail_driver(stream->object.context,
                         driver->abort_stream(stream->handle), operation,
                         "abort_stream");
}


cgl_status cgl_stream_renew(cgl_stream *stream) {
  static const char operation[] = "stream:renew";
  const cgl_driver *driver = cgl_driver_of(stream);
  if (!driver->renew_stream)
    return isolate_fail(stream, operation);
  return cgl_fail_driver(stream->object.context,
                         driver->renew_stream(stream->handle), operation,
                         "renew_stream");
}
