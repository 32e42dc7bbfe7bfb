/* The order of the replays of a pool, and the check of each against what its
   memory carries. */
#include "core/sharing/sharing_private.h"


/* ---- sharings ---- */

atomic_bool cgl_sharing_any;


void cgl_sharing_init(cgl_sharing *sharing, cgl_object *owner, bool strict) {
  pthread_mutex_init(&sharing->lock, NULL);
  sharing->owner = owner;
  sharing->strict = strict;
  sharing->version = 1;
}


void cgl_sharing_clear(cgl_sharing *sharing) {
  cgl_spans_free(&sharing->map);
  cgl_clock_release(sharing->last);
  pthread_mutex_destroy(&sharing->lock);
}


cgl_status cgl_sharing_begin(cgl_sharing *sharing, const char *operation) {
  cgl_status status = CGL_OK;
  if (atomic_load(&sharing->shared))
    return CGL_OK;
  pthread_mutex_lock(&sharing->lock);
  /* Replays of a private pool noted their stream only. */
  for (cgl_share_part *part = sharing->parts; part && !status;
       part = part->next) {
    if (part->unnoted && !cgl_share_part_reserve(part))
      status = cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                        "no memory to note what the pool holds");
    else if (part->unnoted)
      cgl_share_part_note(part);
  }
  if (!status) {
    if (sharing->last) {
      sharing->tick = cgl_clock_now(sharing->last);
      sharing->wait = cgl_context_next_wait(sharing->owner->context);
    }
    atomic_store(&cgl_sharing_any, true);
    atomic_store(&sharing->shared, true);
  }
  pthread_mutex_unlock(&sharing->lock);
  return status;
}


void cgl_sharing_undo(cgl_sharing *sharing, uint64_t made) {
  pthread_mutex_lock(&sharing->lock);
  for (cgl_share_part *part = sharing->parts; part; part = part->next)
    if (part->planned && part->made > made && !part->undone) {
      part->undone = true;
      part->undone_at = cgl_site_here;
    }
  pthread_mutex_unlock(&sharing->lock);
}


void cgl_sharing_forget(cgl_sharing *sharing, CUdeviceptr address,
                        size_t bytes) {
  pthread_mutex_lock(&sharing->lock);
  cgl_sharing_settle(sharing);
  cgl_spans_remove(&sharing->map, address, address + bytes);
  pthread_mutex_unlock(&sharing->lock);
}


/* ---- needs ---- */

static cgl_status need_refuse(const cgl_share *share, const cgl_need *need,
                              const cgl_span *piece, const char *operation) {
  const cgl_content *content = need->content;
  if (piece->number)
    cgl_fail(CGL_ERROR_ORDER, operation,
             "the graph captured at %s reads (%s) a buffer made at %s, but "
             "%s %s has overwritten it since it was filled",
             cgl_site_text(share->begun), cgl_site_text(need->site),
             cgl_site_text(content->allocation.made),
             need->lost      ? "the graph itself, at"
             : piece->script ? "the script's own work at"
                             : "the graph captured at",
             cgl_site_text(piece->by));
  else
    cgl_fail(CGL_ERROR_ORDER, operation,
             "the graph captured at %s reads (%s) a buffer made at %s, which "
             "the graph captured at %s has not filled yet",
             cgl_site_text(share->begun), cgl_site_text(need->site),
             cgl_site_text(content->allocation.made),
             cgl_site_text(content->filler));
  return cgl_content_hint(content);
}


static cgl_status need_check(const cgl_share_part *part, const cgl_need *need,
                             uint64_t count, const char *operation) {
  const cgl_share *share = part->share;
  const cgl_span other = {.start = need->start,
                          .end = need->end,
                          .number = UINT64_MAX,
                          .by = need->by};
  if (need->lost) {
    if (need->always || cgl_need_is_refused(need, &other))
      return need_refuse(share, need, &other, operation);
  } else {
    cgl_span piece;
    for (CUdeviceptr at = need->start; at < need->end; at = piece.end) {
      piece = cgl_spans_piece(&part->sharing->map, at, need->end);
      if (cgl_need_is_refused(need, &piece))
        return need_refuse(share, need, &piece, operation);
    }
  }
  if (count < 2 || !need->again ||
      (need->own && !need->fills && !cgl_need_is_refused(need, &other)))
    return CGL_OK;
  cgl_fail(CGL_ERROR_ORDER, operation,
           "the graph captured at %s overwrites a buffer that it reads, with "
           "another buffer in the same memory: it cannot be replayed twice in "
           "a row",
           cgl_site_text(share->begun));
  return cgl_fail_hint("replay the graph that fills the buffer before every "
                       "replay, or keep the buffer until the capture has "
                       "ended");
}


/* Refuses memory that was taken back. */
static cgl_status part_check_memory(const cgl_share_part *part,
                                    const char *operation) {
  if (!part->undone)
    return CGL_OK;
  cgl_fail(CGL_ERROR_RELEASED, operation,
           "the memory that the graph captured at %s uses was taken back "
           "when its pool was restored at %s",
           cgl_site_text(part->share->begun), cgl_site_text(part->undone_at));
  return cgl_fail_hint("capture the graph again");
}


cgl_status cgl_share_check_memory(const cgl_share *share,
                                  const char *operation) {
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < share->nparts && !status; i++) {
    const cgl_share_part *part = &share->parts[i];
    pthread_mutex_lock(&part->sharing->lock);
    status = part_check_memory(part, operation);
    pthread_mutex_unlock(&part->sharing->lock);
  }
  return status;
}


/* Refuses `count` replays of a graph whose memory was taken back, or does not
   carry what they read. */
static cgl_status part_check(cgl_share_part *part, const cgl_replay *replay,
                             uint64_t count, const char *operation) {
  const cgl_sharing *sharing = part->sharing;
  cgl_status status = part_check_memory(part, operation);
  if (status)
    return status;
  /* Nothing has changed since its own last replay. */
  if (part->version == sharing->version && !part->again)
    return CGL_OK;
  if (!cgl_share_part_reserve(part))
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory to note what the graph writes");
  if (replay->unchecked || !atomic_load(&sharing->shared))
    return CGL_OK;
  if (part->nneeds)
    cgl_sharing_settle(part->sharing);
  for (size_t i = 0; i < part->nneeds && !status; i++)
    status = need_check(part, &part->needs[i], count, operation);
  return status;
}


/* ---- the last replay ---- */

cgl_status cgl_sharing_order(cgl_sharing *sharing, cgl_stream *stream,
                             uint64_t exec, const cgl_site *begun,
                             const char *operation) {
  cgl_clock *last = sharing->last;
  /* The driver never runs an executable beside itself. */
  if (!last || last == stream->clock || (exec && sharing->exec == exec) ||
      cgl_clock_covers(stream->clock, last, sharing->tick) ||
      cgl_context_waited(stream->object.context, sharing->wait) ||
      cgl_clock_is_over(last, sharing->tick))
    return CGL_OK;
  if (sharing->strict && begun) {
    cgl_fail(CGL_ERROR_ORDER, operation,
             "the graph captured at %s may still run on another stream, and "
             "the graph captured at %s shares its pool, which is strict",
             cgl_site_text(sharing->begun), cgl_site_text(*begun));
    return cgl_fail_hint("let the stream wait for an event recorded after the "
                         "other replay, or synchronize");
  }
  if (atomic_load(&last->lost))
    return CGL_WAIT_FIRST;
  cgl_status status = cgl_clock_order(stream, last, operation);
  if (!status && begun)
    sharing->ordered++;
  return status;
}


cgl_status cgl_sharing_order_executable(cgl_sharing *sharing,
                                        cgl_stream *stream, uint64_t exec,
                                        const char *operation) {
  pthread_mutex_lock(&sharing->lock);
  const bool noted = atomic_load(&sharing->shared);
  /* Replays of a private pool noted their stream only. */
  if (!noted && sharing->last) {
    sharing->tick = cgl_clock_now(sharing->last);
    sharing->wait = cgl_context_next_wait(stream->object.context);
  }
  cgl_status status =
      noted ? CGL_OK
            : cgl_sharing_order(sharing, stream, exec, NULL, operation);
  pthread_mutex_unlock(&sharing->lock);
  return status == CGL_WAIT_FIRST
             ? cgl_context_synchronize(stream->object.context)
             : status;
}


void cgl_sharing_stamp(cgl_sharing *sharing, const cgl_stream *stream,
                       uint64_t exec, cgl_site begun) {
  if (sharing->last != stream->clock) {
    cgl_clock_release(sharing->last);
    sharing->last = cgl_clock_retain(stream->clock);
  }
  sharing->tick = cgl_clock_now(stream->clock);
  sharing->wait = cgl_context_next_wait(stream->object.context);
  sharing->exec = exec;
  sharing->begun = begun;
}


/* ---- one replay after the other ---- */

static void share_lock(const cgl_share *share) {
  for (size_t i = 0; i < share->nparts; i++)
    pthread_mutex_lock(&share->parts[i].sharing->lock);
}


static void share_unlock(const cgl_share *share) {
  for (size_t i = share->nparts; i-- > 0;)
    pthread_mutex_unlock(&share->parts[i].sharing->lock);
}


/* Under the lock. */
static cgl_status replay_check(const cgl_replay *replay, cgl_stream *stream,
                               uint64_t count, const char *operation) {
  const cgl_share *share = replay->share;
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < share->nparts && !status; i++)
    status = part_check(&share->parts[i], replay, count, operation);
  for (size_t i = 0; i < share->nparts && !status && !replay->unchecked; i++)
    status = cgl_sharing_order(share->parts[i].sharing, stream, replay->exec,
                               &share->begun, operation);
  return status;
}


cgl_status cgl_share_begin(const cgl_replay *replay, cgl_stream *stream,
                           uint64_t count, const char *operation) {
  const cgl_share *share = replay->share;
  for (;;) {
    share_lock(share);
    cgl_status status = replay_check(replay, stream, count, operation);
    if (!status)
      return CGL_OK;
    if (status == CGL_ERROR_ORDER)
      share->home->sharing->refused++;
    share_unlock(share);
    if (status == CGL_WAIT_FIRST)
      status = cgl_context_synchronize(stream->object.context);
    if (status)
      return status;
  }
}


void cgl_share_end(const cgl_replay *replay, cgl_stream *stream,
                   bool launched) {
  const cgl_share *share = replay->share;
  cgl_sharing *home = share->home->sharing;
  bool say = home->ordered && !home->said;
  cgl_site before = home->begun;
  home->said |= say;
  for (size_t i = 0; launched && i < share->nparts; i++) {
    cgl_share_part *part = &share->parts[i];
    if (part->version != part->sharing->version || part->again)
      cgl_share_part_note(part);
    cgl_sharing_stamp(part->sharing, stream, replay->exec, share->begun);
    cgl_sharing_note_use(part->sharing, part->sharing->wait);
  }
  share_unlock(share);
  if (say)
    cgl_log(stream->object.context, CGL_LOG_WARNING,
            "the graph captured at %s was made to wait for the graph captured "
            "at %s: they share a pool and were replayed on two streams (said "
            "once per pool; its statistics count the waits)",
            cgl_site_text(share->begun), cgl_site_text(before));
}


void cgl_share_stamp(const cgl_replay *replay, cgl_stream *stream) {
  cgl_share_part *home = replay->share->home;
  home->unnoted = true;
  cgl_sharing_stamp(home->sharing, stream, replay->exec, replay->share->begun);
}
