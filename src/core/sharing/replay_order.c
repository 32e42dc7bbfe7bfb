/* The order of replays of a shared pool, and of the script's own reads and
   writes between them. */
#include "core/sharing/cell_private.h"

#include <limits.h>


/* ---- inputs ---- */

/* A share other than `own` that fills the cell, or NULL. */
static const cgl_share *cell_producer(const cgl_cell *cell,
                                      const cgl_share *own) {
  for (size_t i = 0; i < cell->nwriters; i++)
    if (cell->writers[i].fills && cell->writers[i].share != own)
      return cell->writers[i].share;
  return NULL;
}


static cgl_status hint_order(const cgl_share *producer) {
  if (!producer)
    return cgl_fail_hint("fill the buffer again first, or capture into pools "
                         "of their own");
  return cgl_fail_hint("replay the graph captured at %s first: graphs that "
                       "share a pool and pass data keep the order of their "
                       "capture",
                       cgl_site_text(producer->begun));
}


static const char *content_overwriter(const cgl_content *content) {
  return content->by_script ? "the script's own work at"
                            : "the graph captured at";
}


static cgl_status input_check(const cgl_share *share,
                              const struct cgl_input *input,
                              const char *operation) {
  const cgl_cell *cell = input->cell;
  const cgl_content content = cgl_share_cell_content(cell);
  const cgl_share *producer = cell_producer(cell, share);
  if (content.overwritten <= content.filled && content.filled)
    return CGL_OK;
  /* Filled by nobody we know of, or written by this graph alone. */
  if (!producer && !cell->content.filled &&
      (input->updates || !content.overwritten))
    return CGL_OK;
  if (content.overwritten)
    cgl_fail(CGL_ERROR_ORDER, operation,
             "the graph captured at %s reads (%s) a buffer made at %s, but "
             "%s %s has overwritten it since it was filled",
             cgl_site_text(share->begun), cgl_site_text(input->site),
             cgl_site_text(cell->memory.made), content_overwriter(&content),
             cgl_site_text(content.overwritten_by));
  else
    cgl_fail(CGL_ERROR_ORDER, operation,
             "the graph captured at %s reads (%s) a buffer made at %s, which "
             "the graph captured at %s has not filled yet",
             cgl_site_text(share->begun), cgl_site_text(input->site),
             cgl_site_text(cell->memory.made), cgl_site_text(producer->begun));
  return hint_order(producer);
}


/* Refuses `count` replays of a share whose memory was taken back, or does not
   hold what they read. */
static cgl_status share_check(const cgl_share *share, const cgl_replay *replay,
                              uint64_t count, const char *operation) {
  if (share->undone) {
    cgl_fail(CGL_ERROR_RELEASED, operation,
             "the memory that the graph captured at %s uses was taken back "
             "when its pool was restored at %s",
             cgl_site_text(share->begun), cgl_site_text(share->undone_at));
    return cgl_fail_hint("capture the graph again");
  }
  if (replay->unchecked)
    return CGL_OK;
  for (size_t i = 0; i < share->ninputs; i++) {
    cgl_status status = input_check(share, &share->inputs[i], operation);
    if (status)
      return status;
  }
  if (count < 2 || !share->overwrites_itself)
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


/* ---- the last replay ---- */

/* No status: the order needs a wait for the device, which must not be made
   under the lock, because the end of a graph takes both. */
enum { WAIT_FIRST = INT_MIN };

/* Makes the stream come after the pool's last replay. */
static cgl_status sharing_order(cgl_sharing *sharing, const cgl_share *share,
                                cgl_stream *stream, uint64_t exec,
                                const char *operation) {
  cgl_clock *last = sharing->last;
  /* The driver never runs an executable beside itself. */
  if (!last || last == stream->clock || sharing->exec == exec ||
      cgl_clock_covers(stream->clock, last, sharing->tick) ||
      cgl_context_waited(stream->object.context, sharing->wait) ||
      cgl_clock_is_over(last, sharing->tick))
    return CGL_OK;
  if (sharing->strict) {
    cgl_fail(CGL_ERROR_ORDER, operation,
             "the graph captured at %s may still run on another stream, and "
             "the graph captured at %s shares its pool, which is strict",
             cgl_site_text(sharing->begun), cgl_site_text(share->begun));
    return cgl_fail_hint("let the stream wait for an event recorded after the "
                         "other replay, or synchronize");
  }
  if (atomic_load(&last->lost))
    return WAIT_FIRST;
  cgl_status status = cgl_clock_order(stream, last, operation);
  if (!status)
    sharing->ordered++;
  return status;
}


/* ---- one replay after the other ---- */

/* Whether no earlier share of the group is of the same pool. */
static bool group_is_first_of_pool(const cgl_share *share, size_t i) {
  return !i || share->group[i]->sharing != share->group[i - 1]->sharing;
}


static void group_lock(const cgl_share *share) {
  for (size_t i = 0; i < share->ngroup; i++)
    if (group_is_first_of_pool(share, i))
      pthread_mutex_lock(&share->group[i]->sharing->lock);
}


static void group_unlock(const cgl_share *share) {
  for (size_t i = share->ngroup; i-- > 0;)
    if (group_is_first_of_pool(share, i))
      pthread_mutex_unlock(&share->group[i]->sharing->lock);
}


/* Under the lock. */
static cgl_status replay_check(const cgl_replay *replay, cgl_stream *stream,
                               uint64_t count, const char *operation) {
  const cgl_share *share = replay->share;
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < share->ngroup && !status; i++)
    status = share_check(share->group[i], replay, count, operation);
  for (size_t i = 0; i < share->ngroup && !status && !replay->unchecked; i++)
    if (group_is_first_of_pool(share, i))
      status = sharing_order(share->group[i]->sharing, share, stream,
                             replay->exec, operation);
  return status;
}


cgl_status cgl_share_begin(const cgl_replay *replay, cgl_stream *stream,
                           uint64_t count, const char *operation) {
  cgl_share *share = replay->share;
  for (;;) {
    group_lock(share);
    cgl_status status = replay_check(replay, stream, count, operation);
    if (!status)
      return CGL_OK;
    if (status == CGL_ERROR_ORDER)
      share->sharing->refused++;
    group_unlock(share);
    if (status == WAIT_FIRST)
      status = cgl_context_synchronize(stream->object.context);
    if (status)
      return status;
  }
}


void cgl_share_stamp(const cgl_replay *replay, cgl_share *share,
                     cgl_stream *stream) {
  cgl_sharing *sharing = share->sharing;
  share->replay = ++sharing->replay;
  if (share != replay->share || !replay->halted)
    share->filled = share->replay;
  if (sharing->last != stream->clock) {
    cgl_clock_release(sharing->last);
    sharing->last = cgl_clock_retain(stream->clock);
  }
  sharing->tick = cgl_clock_now(stream->clock);
  sharing->wait = cgl_context_next_wait(stream->object.context);
  sharing->exec = replay->exec;
  sharing->begun = replay->share->begun;
}


void cgl_share_end(const cgl_replay *replay, cgl_stream *stream,
                   bool launched) {
  const cgl_share *share = replay->share;
  cgl_sharing *own = share->sharing;
  bool say = own->ordered && !own->said;
  cgl_site before = own->begun;
  own->said |= say;
  for (size_t i = 0; launched && i < share->ngroup; i++)
    cgl_share_stamp(replay, share->group[i], stream);
  group_unlock(share);
  if (say)
    cgl_log("the graph captured at %s was made to wait for the graph captured "
            "at %s: they share a pool and were replayed on two streams (said "
            "once per pool; its statistics count the waits)",
            cgl_site_text(share->begun), cgl_site_text(before));
}


/* ---- the script's own work ---- */

/* Under the lock: the cell of a live buffer, NULL without memory. */
static cgl_cell *memory_cell(const cgl_shared_memory *memory) {
  if (*memory->cell)
    return *memory->cell;
  cgl_cell *cell = cgl_share_cell_get(memory->sharing, memory->allocation);
  if (cell) {
    cell->holder = memory->cell;
    cell->block = memory->block;
  }
  return *memory->cell = cell;
}


cgl_status cgl_share_check_read(const cgl_shared_memory *memory,
                                const char *operation) {
  cgl_sharing *sharing = memory->sharing;
  cgl_status status = CGL_OK;
  pthread_mutex_lock(&sharing->lock);
  const cgl_cell *cell = memory_cell(memory);
  if (cell) {
    const cgl_content content = cgl_share_cell_content(cell);
    if (content.filled && content.overwritten > content.filled) {
      sharing->refused++;
      cgl_fail(CGL_ERROR_ORDER, operation,
               "the buffer made at %s was filled, but %s %s shares its pool "
               "and has overwritten it since",
               cgl_site_text(cell->memory.made), content_overwriter(&content),
               cgl_site_text(content.overwritten_by));
      status = hint_order(cell_producer(cell, NULL));
    }
  }
  pthread_mutex_unlock(&sharing->lock);
  return status;
}


void cgl_share_note_write(const cgl_shared_memory *memory) {
  cgl_sharing *sharing = memory->sharing;
  pthread_mutex_lock(&sharing->lock);
  cgl_cell *own = memory_cell(memory);
  const uint64_t number = ++sharing->replay;
  for (cgl_cell *cell = sharing->cells; cell; cell = cell->next) {
    if (cell == own || !cgl_share_overlaps(&cell->memory, memory->allocation))
      continue;
    cell->content.overwritten = number;
    cell->content.overwritten_by = cgl_site_here;
    cell->content.by_script = true;
  }
  if (own)
    own->content.filled = number;
  pthread_mutex_unlock(&sharing->lock);
}


void cgl_share_forget(cgl_sharing *sharing, cgl_cell *cell) {
  pthread_mutex_lock(&sharing->lock);
  cell->holder = NULL;
  cgl_share_cell_drop(sharing, cell);
  pthread_mutex_unlock(&sharing->lock);
}
