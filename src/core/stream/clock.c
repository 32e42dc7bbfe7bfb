/* Clocks of streams. */
#include "core/stream/clock.h"
#include "core/stream/stream.h"

#include <stdlib.h>
#include <string.h>


cgl_clock *cgl_clock_new(const cgl_driver *driver, CUstream handle,
                         uint64_t serial, bool borrowed) {
  cgl_clock *clock = calloc(1, sizeof *clock);
  if (!clock)
    return NULL;
  atomic_init(&clock->references, 1);
  atomic_init(&clock->tick, 1);
  clock->serial = serial;
  clock->driver = driver;
  clock->handle = handle;
  clock->borrowed = borrowed;
  pthread_mutex_init(&clock->lock, NULL);
  return clock;
}


cgl_clock *cgl_clock_retain(cgl_clock *clock) {
  atomic_fetch_add_explicit(&clock->references, 1, memory_order_relaxed);
  return clock;
}


void cgl_clock_release(cgl_clock *clock) {
  if (!clock || atomic_fetch_sub_explicit(&clock->references, 1,
                                          memory_order_acq_rel) != 1)
    return;
  /* Legal during captures, unlike most destruction. */
  if (clock->event)
    clock->driver->cuEventDestroy(clock->event);
  pthread_mutex_destroy(&clock->lock);
  free(clock);
}


cgl_clock *cgl_clock_watch(cgl_clock *clock) {
  cgl_clock_retain(clock);
  atomic_fetch_add(&clock->watchers, 1);
  return clock;
}


/* In this order: references less watchers may be read too high, never too
   low. */
void cgl_clock_unwatch(cgl_clock *clock) {
  if (clock)
    atomic_fetch_sub(&clock->watchers, 1);
  cgl_clock_release(clock);
}


/* ---- order of work ---- */

uint64_t cgl_clock_covered(cgl_clock *clock, const cgl_clock *before) {
  if (clock == before)
    return UINT64_MAX;
  uint64_t seen = 0, done = cgl_clock_done(before);
  if (clock) {
    pthread_mutex_lock(&clock->lock);
    for (int i = 0; i < CGL_CLOCK_SEEN && !seen; i++)
      if (clock->seen[i].clock == before->serial)
        seen = clock->seen[i].tick;
    pthread_mutex_unlock(&clock->lock);
  }
  return seen > done ? seen : done;
}


bool cgl_clock_is_over(cgl_clock *before, uint64_t tick) {
  if (!cgl_captures_hold(false))
    return false;
  pthread_mutex_lock(&before->lock);
  uint64_t now = cgl_clock_begin_wait(before);
  if (!before->held && !before->borrowed &&
      before->driver->cuStreamQuery(before->handle) == CUDA_SUCCESS)
    cgl_clock_waited(before, now);
  pthread_mutex_unlock(&before->lock);
  cgl_captures_unhold();
  return atomic_load(&before->done) > tick;
}


/* Under the lock.  A clock not seen so far replaces the oldest entry. */
static void clock_note_seen(cgl_clock *clock, uint64_t serial, uint64_t tick) {
  if (!serial || serial == clock->serial)
    return;
  for (int i = 0; i < CGL_CLOCK_SEEN; i++)
    if (clock->seen[i].clock == serial) {
      if (clock->seen[i].tick < tick)
        clock->seen[i].tick = tick;
      return;
    }
  clock->seen[clock->next_seen++ % CGL_CLOCK_SEEN] = (cgl_tick){serial, tick};
}


cgl_mark cgl_clock_mark(cgl_clock *clock) {
  pthread_mutex_lock(&clock->lock);
  cgl_mark mark = {clock, cgl_clock_begin_wait(clock), {{0, 0}}};
  memcpy(mark.seen, clock->seen, sizeof mark.seen);
  pthread_mutex_unlock(&clock->lock);
  return mark;
}


void cgl_mark_set(cgl_mark *mark, const cgl_mark *now) {
  if (mark->clock != now->clock) {
    cgl_clock_release(mark->clock);
    if (now->clock)
      cgl_clock_retain(now->clock);
  }
  *mark = *now;
}


void cgl_clock_merge(cgl_clock *clock, const cgl_mark *mark) {
  if (!mark->clock || mark->clock == clock)
    return;
  pthread_mutex_lock(&clock->lock);
  for (int i = 0; i < CGL_CLOCK_SEEN; i++)
    clock_note_seen(clock, mark->seen[i].clock, mark->seen[i].tick);
  /* Last, so that no other entry of the mark replaces it. */
  clock_note_seen(clock, mark->clock->serial, mark->tick);
  pthread_mutex_unlock(&clock->lock);
}


void cgl_clock_waited(cgl_clock *clock, uint64_t tick) {
  uint64_t done = atomic_load(&clock->done);
  while (done < tick &&
         !atomic_compare_exchange_weak(&clock->done, &done, tick))
    ;
}


/* ---- making streams wait ---- */

/* Under the lock: records the clock's own event, made at first use. */
static CUresult clock_record(cgl_clock *clock, const char **entry) {
  CUresult result = CUDA_SUCCESS;
  *entry = "cuEventCreate";
  if (!clock->event)
    result =
        clock->driver->cuEventCreate(&clock->event, CU_EVENT_DISABLE_TIMING);
  if (result)
    return result;
  *entry = "cuEventRecord";
  return clock->driver->cuEventRecord(clock->event, clock->handle);
}


/* Under the lock of `before`: the driver's part of an order. */
static CUresult clock_order(cgl_stream *stream, cgl_clock *before,
                            const char **entry) {
  const cgl_driver *driver = before->driver;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  CUresult result = CUDA_SUCCESS;
  /* An engine's stream may capture without our knowing: an event recorded there
     would drag the waiting stream into that capture. */
  if (!before->held && before->borrowed) {
    *entry = "cuStreamIsCapturing";
    result = driver->cuStreamIsCapturing(before->handle, &status);
    if (!result && status != CU_STREAM_CAPTURE_STATUS_NONE)
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (!result && !before->held)
    result = clock_record(before, entry);
  if (result || !before->event)
    return result;
  *entry = "cuStreamWaitEvent";
  return driver->cuStreamWaitEvent(stream->handle, before->event, 0);
}


cgl_status cgl_clock_order(cgl_stream *stream, cgl_clock *before,
                           const char *operation) {
  if (stream->clock == before)
    return CGL_OK;
  cgl_status status = cgl_context_enter(stream->object.context, operation);
  if (status)
    return status;
  const char *entry = "";
  const cgl_mark mark = cgl_clock_mark(before);
  pthread_mutex_lock(&before->lock);
  bool lost = before->lost;
  CUresult result = lost ? CUDA_SUCCESS : clock_order(stream, before, &entry);
  pthread_mutex_unlock(&before->lock);
  if (lost) {
    status = cgl_context_synchronize(stream->object.context);
    if (status)
      return status;
    cgl_clock_waited(before, mark.tick);
  }
  if (result)
    return cgl_fail_driver(stream->object.context, result, operation, entry);
  cgl_clock_merge(stream->clock, &mark);
  return CGL_OK;
}


cgl_status cgl_clock_hold(cgl_clock *clock, cgl_context *context,
                          const char *operation) {
  const char *entry;
  pthread_mutex_lock(&clock->lock);
  CUresult result = clock_record(clock, &entry);
  clock->held = !result;
  pthread_mutex_unlock(&clock->lock);
  return cgl_fail_driver(context, result, operation, entry);
}


void cgl_clock_unhold(cgl_clock *clock) {
  pthread_mutex_lock(&clock->lock);
  clock->held = false;
  pthread_mutex_unlock(&clock->lock);
}


void cgl_clock_retire(cgl_clock *clock, cgl_context *context) {
  const char *entry;
  pthread_mutex_lock(&clock->lock);
  /* Only when a reference besides the stream's may ask for an order. */
  if (!clock->borrowed && !clock->held &&
      atomic_load(&clock->references) - atomic_load(&clock->watchers) > 1)
    clock->lost =
        cgl_context_enter(context, "stream") || clock_record(clock, &entry);
  if (clock->borrowed && !clock->held)
    clock->lost = true;
  clock->held = true;
  pthread_mutex_unlock(&clock->lock);
}
