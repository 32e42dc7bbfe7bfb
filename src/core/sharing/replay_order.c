/* Replays of a shared pool, one turn after the other, and the script's own
   reads and writes between them. */
#include "core/sharing/sharing.h"
#include "core/sharing/cell.h"

#include <limits.h>


/* ---- is what a graph reads there? ---- */

/* A share that fills the cell and is not `own`; NULL: none. */
static const cgl_share *producer_but(const cgl_cell *cell,
                                     const cgl_share *own) {
  for (size_t i = 0; i < cell->nproducers; i++)
    if (cell->producers[i] != own)
      return cell->producers[i];
  return NULL;
}


static cgl_status hint_order(const cgl_share *producer) {
  if (!producer)
    return cgl_fail_hint("fill the buffer anew first, or capture into pools of "
                         "their own");
  return cgl_fail_hint("replay the graph captured at %s first: graphs that "
                       "share a pool and pass data keep the order of their "
                       "capture",
                       cgl_site_text(producer->begun));
}


static const char *spoiler(const cgl_content *content) {
  return content->by_script ? "the script's own work at"
                            : "the graph captured at";
}


static cgl_status check_input(const cgl_share *share,
                              const struct cgl_input *input,
                              const char *operation) {
  const cgl_cell *cell = input->cell;
  const cgl_content content = cgl_cell_content(cell);
  const cgl_share *producer = producer_but(cell, share);
  if (content.spoiled <= content.filled && content.filled)
    return CGL_OK;
  /* Filled by nobody we know of, or written by this graph alone. */
  if (!producer && !cell->filled && (input->updates || !content.spoiled))
    return CGL_OK;
  if (content.spoiled)
    cgl_fail(CGL_ERROR_ORDER, operation,
             "the graph captured at %s reads (%s) a buffer made at %s, but "
             "%s %s has used its memory for something else since it was "
             "filled",
             cgl_site_text(share->begun), cgl_site_text(input->site),
             cgl_site_text(cell->made), spoiler(&content),
             cgl_site_text(content.spoiled_by));
  else
    cgl_fail(CGL_ERROR_ORDER, operation,
             "the graph captured at %s reads (%s) a buffer made at %s, which "
             "the graph captured at %s has not filled yet",
             cgl_site_text(share->begun), cgl_site_text(input->site),
             cgl_site_text(cell->made), cgl_site_text(producer->begun));
  return hint_order(producer);
}


static cgl_status check_inputs(const cgl_share *share, uint64_t count,
                               const char *operation) {
  for (size_t i = 0; i < share->ninputs; i++) {
    cgl_status status = check_input(share, &share->inputs[i], operation);
    if (status)
      return status;
  }
  if (count < 2 || !share->spoils_itself)
    return CGL_OK;
  cgl_fail(CGL_ERROR_ORDER, operation,
           "the graph captured at %s uses the memory of a buffer that it reads "
           "for something else afterwards: it cannot be replayed twice in a "
           "row",
           cgl_site_text(share->begun));
  return cgl_fail_hint("replay the graph that fills the buffer before every "
                       "replay, or keep the buffer until the capture has "
                       "ended");
}


/* ---- does the last replay still run? ---- */

static cgl_status refuse_overlap(const cgl_sharing *sharing,
                                 const cgl_share *share,
                                 const char *operation) {
  cgl_fail(CGL_ERROR_ORDER, operation,
           "the graph captured at %s may still run on another stream, and the "
           "graph captured at %s shares its pool, which is strict",
           cgl_site_text(sharing->begun), cgl_site_text(share->begun));
  return cgl_fail_hint("let the stream wait for an event recorded after the "
                       "other replay, or synchronize");
}


/* Whether the pool's last replay comes before what `stream` does next. */
static bool comes_after(cgl_sharing *sharing, cgl_stream *stream) {
  cgl_clock *last = sharing->last;
  return !last || last == stream->clock ||
         cgl_clock_covers(stream->clock, last, sharing->tick) ||
         cgl_context_waited(stream->object.context, sharing->wait) ||
         cgl_clock_is_over(last, sharing->tick);
}


/* No status: the order needs a wait for the device, which must not be made
   under `turns`, because whoever destroys a graph wants both. */
enum { WAIT_FIRST = INT_MIN };

static cgl_status order(cgl_sharing *sharing, const cgl_share *share,
                        cgl_stream *stream, uint64_t exec,
                        const char *operation) {
  /* The driver never runs an executable beside itself. */
  if (sharing->last == stream->clock || sharing->exec == exec ||
      comes_after(sharing, stream))
    return CGL_OK;
  if (sharing->strict)
    return refuse_overlap(sharing, share, operation);
  if (cgl_clock_is_lost(sharing->last))
    return WAIT_FIRST;
  cgl_status status = cgl_clock_order(stream, sharing->last, operation);
  if (!status)
    sharing->ordered++;
  return status;
}


static cgl_status refuse_undone(const cgl_share *share, const char *operation) {
  cgl_fail(CGL_ERROR_RELEASED, operation,
           "the memory that the graph captured at %s uses was taken back when "
           "its pool was restored at %s",
           cgl_site_text(share->begun), cgl_site_text(share->undone_at));
  return cgl_fail_hint("capture the graph again");
}


/* ---- turns ---- */

/* Each pool of the group once: they are sorted by pool. */
static bool first_of_pool(const cgl_share *share, size_t i) {
  return !i || share->group[i]->pool != share->group[i - 1]->pool;
}


static void lock(const cgl_share *share) {
  for (size_t i = 0; i < share->ngroup; i++)
    if (first_of_pool(share, i))
      pthread_mutex_lock(&share->group[i]->pool->sharing->turns);
}


static void unlock(const cgl_share *share) {
  for (size_t i = share->ngroup; i-- > 0;)
    if (first_of_pool(share, i))
      pthread_mutex_unlock(&share->group[i]->pool->sharing->turns);
}


/* Under `turns`. */
static cgl_status check_replay(cgl_graph *graph, cgl_stream *stream,
                               uint64_t count, const char *operation) {
  cgl_share *share = graph->share;
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < share->ngroup && !status; i++)
    if (share->group[i]->undone)
      status = refuse_undone(share->group[i], operation);
  if (graph->unchecked)
    return status;
  for (size_t i = 0; i < share->ngroup && !status; i++)
    status = check_inputs(share->group[i], count, operation);
  for (size_t i = 0; i < share->ngroup && !status; i++)
    if (first_of_pool(share, i))
      status = order(share->group[i]->pool->sharing, share, stream,
                     graph->exec_number, operation);
  return status;
}


cgl_status cgl_share_begin(cgl_graph *graph, cgl_stream *stream, uint64_t count,
                           const char *operation) {
  cgl_share *share = graph->share;
  for (;;) {
    lock(share);
    cgl_status status = check_replay(graph, stream, count, operation);
    if (!status)
      return CGL_OK;
    if (status == CGL_ERROR_ORDER)
      graph->pool->sharing->refused++;
    unlock(share);
    if (status == WAIT_FIRST)
      status = cgl_context_synchronize(stream->object.context);
    if (status)
      return status;
  }
}


/* Notes that something of the share was launched. */
static void stamp(const cgl_graph *graph, cgl_share *share,
                  cgl_stream *stream) {
  cgl_sharing *sharing = share->pool->sharing;
  share->turn = ++sharing->turn;
  if (share != graph->share || !graph->recording.nhalted)
    share->filled = share->turn;
  if (sharing->last != stream->clock) {
    cgl_clock_release(sharing->last);
    sharing->last = cgl_clock_retain(stream->clock);
  }
  sharing->tick = cgl_clock_now(stream->clock);
  sharing->wait = cgl_context_next_wait(stream->object.context);
  sharing->exec = graph->exec_number;
  sharing->begun = graph->share->begun;
}


void cgl_share_stamp(cgl_graph *graph, cgl_stream *stream) {
  stamp(graph, graph->share, stream);
  graph->stamped = stream->clock;
}


void cgl_share_end(cgl_graph *graph, cgl_stream *stream, bool launched) {
  const cgl_share *share = graph->share;
  cgl_sharing *own = graph->pool->sharing;
  bool say = own->ordered && !own->said;
  cgl_site before = own->begun;
  own->said |= say;
  for (size_t i = 0; launched && i < share->ngroup; i++)
    stamp(graph, share->group[i], stream);
  unlock(share);
  if (say)
    cgl_log("the graph captured at %s was made to wait for the graph captured "
            "at %s: they share a pool and were replayed on two streams (said "
            "once per pool; its statistics count the waits)",
            cgl_site_text(share->begun), cgl_site_text(before));
}


/* ---- the script's own work ---- */

/* Under `turns`: the cell of a live buffer, NULL without memory. */
static cgl_cell *cell_of(cgl_sharing *sharing, cgl_buffer *buffer) {
  if (buffer->cell)
    return buffer->cell;
  const cgl_use use = {.number = buffer->number,
                       .address = buffer->address,
                       .bytes = cgl_buffer_bytes(buffer),
                       .made = buffer->life.made};
  buffer->cell = cgl_cell_get(sharing, &use);
  if (buffer->cell)
    buffer->cell->buffer = buffer;
  return buffer->cell;
}


static cgl_sharing *sharing_of(const cgl_buffer *buffer) {
  cgl_pool *pool = buffer->block->segment->pool;
  return atomic_load_explicit(&pool->shared, memory_order_relaxed)
             ? pool->sharing
             : NULL;
}


cgl_status cgl_share_check_read(cgl_buffer *buffer, const char *operation) {
  buffer = cgl_share_watched(buffer);
  cgl_sharing *sharing = buffer ? sharing_of(buffer) : NULL;
  if (!sharing)
    return CGL_OK;
  cgl_status status = CGL_OK;
  pthread_mutex_lock(&sharing->turns);
  const cgl_cell *cell = cell_of(sharing, buffer);
  if (cell) {
    const cgl_content content = cgl_cell_content(cell);
    if (content.filled && content.spoiled > content.filled) {
      sharing->refused++;
      cgl_fail(CGL_ERROR_ORDER, operation,
               "the buffer made at %s was filled, but %s %s shares its pool "
               "and has used its memory for something else since",
               cgl_site_text(cell->made), spoiler(&content),
               cgl_site_text(content.spoiled_by));
      status = hint_order(producer_but(cell, NULL));
    }
  }
  pthread_mutex_unlock(&sharing->turns);
  return status;
}


void cgl_share_note_write(cgl_buffer *watched) {
  cgl_sharing *sharing = watched->block->segment->pool->sharing;
  size_t bytes = cgl_buffer_bytes(watched);
  pthread_mutex_lock(&sharing->turns);
  cgl_cell *own = cell_of(sharing, watched);
  uint64_t turn = ++sharing->turn;
  for (cgl_cell *cell = sharing->cells; cell; cell = cell->next) {
    if (cell == own || !cgl_cell_overlaps(cell, watched->address, bytes))
      continue;
    cell->spoiled = turn;
    cell->spoiled_by = cgl_site_here;
    cell->by_script = true;
  }
  if (own)
    own->filled = turn;
  pthread_mutex_unlock(&sharing->turns);
}


void cgl_share_forget(cgl_buffer *buffer) {
  cgl_sharing *sharing = buffer->block->segment->pool->sharing;
  pthread_mutex_lock(&sharing->turns);
  buffer->cell->buffer = NULL;
  cgl_cell_drop(sharing, buffer->cell);
  pthread_mutex_unlock(&sharing->turns);
}
