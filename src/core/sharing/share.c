/* Shares: what a captured graph does to memory, summed up in the order of its
   operations.  A child graph goes by its share.  The bodies of a conditional
   node stand in their place, one after the other, and what they write is
   perhaps what was there before: they need that, unless the graph's own capture
   allocated it, which is new in every replay.  A loop's body with child graphs
   stands there twice, because it may follow itself. */
#include "core/sharing/sharing_private.h"

#include <stdlib.h>
#include <string.h>


/* ---- making ---- */

/* An operation's use of bytes. */
typedef struct share_use {
  cgl_content *content;
  CUdeviceptr start, end;
  cgl_site site;
  cgl_use use;
  bool own;
} share_use;

/* What is made of a recording: parts grow until the share stands. */
typedef struct making {
  cgl_share *share;
  size_t size;       /* of share->parts */
  share_use *writes; /* all of them */
  size_t nwrites, writes_size;
  uint64_t born; /* of the memory that the capture allocated */
  bool alone;    /* no child graph is in it */
  bool perhaps;  /* in a body that may not run */
  bool again;    /* in a loop's second turn */
  bool failed;   /* no memory */
} making;


/* Makes room for one more; false without memory. */
static bool making_grow(making *m, void **array, size_t count, size_t *size,
                        size_t element) {
  if (count < *size)
    return true;
  void *grown = realloc(*array, (2 * *size + 4) * element);
  m->failed |= !grown;
  if (!grown)
    return false;
  *array = grown;
  *size = 2 * *size + 4;
  return true;
}

#define GROW(m, array, count, size) \
  making_grow(m, (void **)&(array), count, &(size), sizeof *(array))


/* The part of a pool; a new one where there is none.  NULL without memory. */
static cgl_share_part *making_part(making *m, cgl_sharing *sharing) {
  cgl_share *share = m->share;
  for (size_t i = share->nparts; i-- > 0;)
    if (share->parts[i].sharing == sharing)
      return &share->parts[i];
  if (!GROW(m, share->parts, share->nparts, m->size))
    return NULL;
  cgl_share_part *part = &share->parts[share->nparts++];
  *part = (cgl_share_part){.share = share, .sharing = sharing};
  cgl_object_retain(sharing->owner);
  return part;
}


static bool making_has_written(const making *m, const cgl_content *content,
                               const cgl_span *piece) {
  for (size_t i = 0; i < m->nwrites; i++)
    if (m->writes[i].content == content && m->writes[i].start < piece->end &&
        piece->start < m->writes[i].end)
      return true;
  return false;
}


static void part_add_need(making *m, cgl_share_part *part,
                          const cgl_need *need) {
  cgl_need *last = part->nneeds ? &part->needs[part->nneeds - 1] : NULL;
  if (last && last->end == need->start && last->content == need->content &&
      last->use == need->use && last->own == need->own && !last->lost &&
      !need->lost && last->site.line == need->site.line)
    last->end = need->end;
  else if (GROW(m, part->needs, part->nneeds, part->needs_size))
    part->needs[part->nneeds++] = *need;
}


/* Both are the capture's own: its pool gave the bytes of the first to the
   second when the first was over, and a write that may leave something there
   is one of a loop's next turn.  Plain reads need what they read all the same.
 */
static bool content_is_followed(const making *m, const share_use *use,
                                const cgl_content *next) {
  return next && use->use == CGL_USE_UPDATE && use->own &&
         next->allocation.born == m->born;
}


/* What the graph has not written itself by then, it needs. */
static void part_read(making *m, cgl_share_part *part, const share_use *use) {
  cgl_span piece;
  for (CUdeviceptr at = use->start; at < use->end; at = piece.end) {
    piece = cgl_spans_piece(&part->spans, at, use->end);
    /* Bytes that are only read have the number of what was needed last. */
    if (piece.number == use->content->number ||
        content_is_followed(m, use, piece.content))
      continue;
    cgl_need need = {.start = piece.start,
                     .end = piece.end,
                     .content = use->content,
                     .site = use->site,
                     .use = use->use,
                     .own = use->own,
                     .lost = piece.content,
                     .by = piece.by};
    need.always = need.lost && ((use->use == CGL_USE_READ && !use->own) ||
                                making_has_written(m, use->content, &piece));
    /* A kernel fills what its own capture allocated, if nothing was there. */
    if (need.always || !use->own || use->use == CGL_USE_READ)
      part_add_need(m, part, &need);
    if (!need.lost)
      cgl_spans_set(&part->spans, &(cgl_span){.start = piece.start,
                                              .end = piece.end,
                                              .number = use->content->number});
  }
}


/* Whether it matters later what was written: more than the recording refers to
   the content, or the graph needs it. */
static bool part_minds(const cgl_share_part *part, const cgl_content *content) {
  bool minds = atomic_load(&content->allocation.object.references) > 1;
  for (size_t i = 0; i < part->nneeds && !minds; i++)
    minds = part->needs[i].content == content;
  return minds;
}


static void part_write(making *m, cgl_share_part *part, const share_use *use) {
  cgl_span piece;
  for (CUdeviceptr at = use->start; at < use->end; at = piece.end) {
    piece = cgl_spans_piece(&part->spans, at, use->end);
    if (piece.content && piece.content != use->content &&
        part_minds(part, piece.content) &&
        GROW(m, part->gone, part->ngone, part->gone_size))
      part->gone[part->ngone++] = piece;
  }
  cgl_spans_set(&part->spans, &(cgl_span){.start = use->start,
                                          .end = use->end,
                                          .number = use->content->number,
                                          .content = use->content,
                                          .by = use->site,
                                          .own = use->own});
  if (GROW(m, m->writes, m->nwrites, m->writes_size))
    m->writes[m->nwrites++] = *use;
}


static void making_use(making *m, const share_use *use, bool reads,
                       bool writes) {
  if (!reads && !writes)
    return;
  cgl_share_part *part = making_part(m, use->content->sharing);
  if (!part || !cgl_spans_reserve(&part->spans, 2)) {
    m->failed = true;
    return;
  }
  if (reads)
    part_read(m, part, use);
  if (writes)
    part_write(m, part, use);
}


/* What one operation does itself: it reads, then writes. */
static void making_add_op(making *m, const cgl_recording *recording,
                          const cgl_op *op) {
  /* A kernel or a call may read what it writes; copies and fills never do. */
  const bool updates =
      (op->kind == CGL_OP_KERNEL || op->kind == CGL_OP_CALL) && !op->fills;
  const bool perhaps = m->perhaps || op->predication == CGL_PREDICATION_LOOKS;
  const cgl_range *ranges = cgl_record_ranges(recording, op);
  for (int write = 0; write < 2; write++)
    for (uint32_t i = 0; i < op->nranges; i++) {
      const cgl_range *range = &ranges[i];
      if (!range->allocation || (write && !range->write))
        continue;
      cgl_content *content = (cgl_content *)cgl_record_allocation(
          recording, range->allocation - 1);
      const share_use use = {content,
                             range->address,
                             range->address + range->bytes,
                             op->site,
                             range->write ? CGL_USE_UPDATE : CGL_USE_READ,
                             content->allocation.born == m->born};
      /* Nothing but a graph inside could take what its own capture wrote. */
      const bool reads = !range->write ||
                         (use.own ? updates && !m->alone : updates || perhaps);
      making_use(m, &use, !write && reads && !(use.own && m->again), write);
    }
}


/* What a child graph leaves; in a body, it needs what somebody may still read.
 */
static void making_add_left(making *m, const cgl_share_part *part,
                            const cgl_span *span) {
  const share_use use = {span->content, span->start,   span->end,
                         span->by,      CGL_USE_WRITE, span->own};
  share_use read = use;
  read.use = span->own ? CGL_USE_READ : CGL_USE_UPDATE;
  if (m->perhaps && (!span->own || part_minds(part, span->content)))
    making_use(m, &read, true, false);
  making_use(m, &use, false, true);
}


static void part_undo(cgl_share_part *part, const cgl_site *at) {
  part->undone = true;
  part->undone_at = *at;
}


/* The memory was another capture's, and perhaps taken back since. */
static void part_follow(cgl_share_part *part, const cgl_share_part *from) {
  part->planned |= from->planned;
  pthread_mutex_lock(&from->sharing->lock);
  if (from->undone)
    part_undo(part, &from->undone_at);
  pthread_mutex_unlock(&from->sharing->lock);
}


/* What a child graph does: it needs, then leaves. */
static void making_add_child(making *m, const cgl_share *child) {
  for (size_t i = 0; i < child->nparts; i++) {
    const cgl_share_part *from = &child->parts[i];
    cgl_share_part *part = making_part(m, from->sharing);
    if (part)
      part_follow(part, from);
    for (size_t k = 0; part && k < from->nneeds; k++) {
      const cgl_need *need = &from->needs[k];
      if (need->lost)
        part_add_need(m, part, need);
      else
        making_use(m,
                   &(share_use){need->content, need->start, need->end,
                                need->site, need->use, need->own},
                   true, false);
    }
    for (size_t k = 0; part && k < from->ngone; k++)
      if (GROW(m, part->gone, part->ngone, part->gone_size))
        part->gone[part->ngone++] = from->gone[k];
    for (size_t k = 0; part && k < from->spans.count; k++) {
      const cgl_span *span = &from->spans.list[k];
      if (span->content)
        making_add_left(m, part, span);
    }
  }
}


static void making_add_recording(making *m, const cgl_recording *recording);


static void making_add_bodies(making *m, const cgl_recording *recording,
                              const cgl_op *op) {
  const cgl_recording *const *bodies = cgl_record_bodies(recording, op);
  const bool perhaps = m->perhaps, again = m->again;
  m->perhaps = true;
  for (uint32_t i = 0; i < op->nbodies; i++)
    making_add_recording(m, bodies[i]);
  m->again = true;
  if (cgl_record_conditional_type(recording, op) == CU_GRAPH_COND_TYPE_WHILE &&
      cgl_record_has(bodies[0], CGL_OP_GRAPH))
    making_add_recording(m, bodies[0]);
  m->perhaps = perhaps;
  m->again = again;
}


static void making_add_recording(making *m, const cgl_recording *recording) {
  for (size_t i = 0; i < cgl_record_count(recording) && !m->failed; i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    if (op->off)
      continue;
    if (op->nranges)
      making_add_op(m, recording, op);
    if (op->kind == CGL_OP_CONDITIONAL)
      making_add_bodies(m, recording, op);
    else if (op->body)
      making_add_child(m,
                       cgl_share_of(cgl_record_body(recording, op->body - 1)));
  }
}


/* Whether the graph leaves something else in bytes that it needs. */
static void part_find_again(const making *m, cgl_share_part *part) {
  for (size_t i = 0; i < part->nneeds; i++) {
    cgl_need *need = &part->needs[i];
    cgl_span piece;
    need->again = need->lost;
    for (CUdeviceptr at = need->start; at < need->end; at = piece.end) {
      piece = cgl_spans_piece(&part->spans, at, need->end);
      need->again |= piece.content && piece.content != need->content;
      if (need->own && need->again)
        need->fills |= making_has_written(m, need->content, &piece);
    }
    part->again |= need->again;
  }
}


/* ---- shares ---- */

static void share_destroy(cgl_object *object) {
  cgl_share *share = (cgl_share *)object;
  for (size_t i = 0; i < share->nparts; i++) {
    cgl_share_part *part = &share->parts[i];
    cgl_sharing *sharing = part->sharing;
    pthread_mutex_lock(&sharing->lock);
    /* What its replays did stays, where somebody may read it. */
    if (part->unnoted && atomic_load(&sharing->owner->references) > 1 &&
        cgl_share_part_reserve(part))
      cgl_share_part_note(part);
    cgl_sharing_settle(sharing);
    cgl_share_part **link = &sharing->parts;
    while (*link && *link != part)
      link = &(*link)->next;
    if (*link)
      *link = part->next;
    pthread_mutex_unlock(&sharing->lock);
    cgl_spans_free(&part->spans);
    free(part->gone);
    free(part->needs);
    cgl_object_release(sharing->owner);
  }
  free(share->parts);
  free(share);
}


static const cgl_object_kind share_kind = {
    .number = CGL_OBJECT_INTERNAL,
    .light = true,
    .destroy = share_destroy,
};


static int part_compare(const void *a, const void *b) {
  const uintptr_t x = (uintptr_t)((const cgl_share_part *)a)->sharing;
  const uintptr_t y = (uintptr_t)((const cgl_share_part *)b)->sharing;
  return x < y ? -1 : x > y;
}


/* Adds the part to its pool; what the part of an earlier share says of the
   graph's replays stays true. */
static void part_enter(cgl_share_part *part, const cgl_share *before) {
  cgl_sharing *sharing = part->sharing;
  cgl_share_part *old = NULL;
  for (size_t i = 0; before && i < before->nparts; i++)
    old = before->parts[i].sharing == sharing ? &before->parts[i] : old;
  pthread_mutex_lock(&sharing->lock);
  part->made = old ? old->made : ++sharing->made;
  if (old) {
    if (old->undone)
      part_undo(part, &old->undone_at);
    if (old->unnoted && cgl_share_part_reserve(old))
      cgl_share_part_note(old);
  }
  part->next = sharing->parts;
  sharing->parts = part;
  pthread_mutex_unlock(&sharing->lock);
}


static void share_enter(making *m, cgl_sharing *sharing,
                        const cgl_share *before) {
  cgl_share *share = m->share;
  qsort(share->parts, share->nparts, sizeof *share->parts, part_compare);
  for (size_t i = 0; i < share->nparts; i++) {
    cgl_share_part *part = &share->parts[i];
    part_find_again(m, part);
    if (part->sharing == sharing)
      share->home = part;
    part_enter(part, before);
  }
  cgl_sharing *locked = NULL;
  for (size_t i = 0; i <= m->nwrites; i++) {
    cgl_content *content = i < m->nwrites ? m->writes[i].content : NULL;
    if (locked && (!content || content->sharing != locked))
      pthread_mutex_unlock(&locked->lock);
    if (!content)
      return;
    if (content->sharing != locked)
      pthread_mutex_lock(&(locked = content->sharing)->lock);
    content->filler = share->begun;
    content->own_fills |= m->writes[i].own;
  }
}


/* A need of the graph's own pool that no replay could meet. */
static cgl_status share_check_needs(const cgl_share *share,
                                    const cgl_sharing *sharing,
                                    const char *operation) {
  for (size_t i = 0; i < share->nparts; i++)
    for (size_t k = 0; k < share->parts[i].nneeds; k++) {
      const cgl_need *need = &share->parts[i].needs[k];
      if (share->parts[i].sharing != sharing || !need->always)
        continue;
      cgl_fail(
          CGL_ERROR_ORDER, operation,
          "a graph replayed in the capture overwrites (%s) a buffer, made "
          "at %s, that the capture uses afterwards (%s): they share a pool",
          cgl_site_text(need->by),
          cgl_site_text(need->content->allocation.made),
          cgl_site_text(need->site));
      return cgl_fail_hint("capture the two into pools of their own, or replay "
                           "the graph after the last use of the buffer");
    }
  return CGL_OK;
}


cgl_status cgl_share_make(cgl_recording *recording, cgl_sharing *sharing,
                          const cgl_underway *capture, const char *operation) {
  cgl_share *share = calloc(1, sizeof *share);
  making m = {.share = share,
              .born = capture->born,
              .alone = !cgl_record_has(recording, CGL_OP_GRAPH),
              .failed = !share};
  if (share) {
    cgl_object_init(&share->object, &share_kind, sharing->owner->context);
    share->begun = capture->begun;
    cgl_share_part *home = making_part(&m, sharing);
    if (home) {
      home->planned = true;
      making_add_recording(&m, recording);
    }
  }
  cgl_status status = CGL_OK;
  if (m.failed)
    status = cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                      "no memory to note what the graph shares");
  else
    status = share_check_needs(share, sharing, operation);
  for (size_t i = 0; !status && i < share->nparts; i++)
    if (share->parts[i].sharing != sharing)
      status = cgl_sharing_begin(share->parts[i].sharing, operation);
  if (!status) {
    share_enter(&m, sharing, cgl_share_of(recording));
    cgl_record_set_summary(recording, &share->object);
  } else if (share)
    cgl_object_release(&share->object);
  free(m.writes);
  return status;
}


/* ---- graphs inside graphs ---- */

cgl_status cgl_share_check_child(const cgl_share *share, cgl_stream *stream,
                                 const char *operation) {
  if (!stream->capture)
    return CGL_OK;
  for (size_t i = 0; i < share->nparts; i++)
    for (size_t k = 0; k < share->parts[i].spans.count; k++) {
      const cgl_span *span = &share->parts[i].spans.list[k];
      if (cgl_order_covers(stream, span->start, span->end - span->start,
                           !span->content))
        continue;
      cgl_fail(CGL_ERROR_ORDER, operation,
               "what the graph uses at %s may be used by another branch of the "
               "capture that began at %s at the same time",
               cgl_site_text(span->content ? span->by : share->begun),
               cgl_site_text(stream->capture->underway.begun));
      return cgl_fail_hint("let this stream wait for the other branches first, "
                           "or capture the graph into a pool of its own");
    }
  return cgl_sharing_begin(share->home->sharing, operation);
}


/* Whether the graph may write to bytes that are used, or, with `write`, use
   bytes that are written to. */
static bool share_meets(const cgl_share *share, CUdeviceptr start,
                        CUdeviceptr end, bool write) {
  for (size_t i = 0; i < share->nparts; i++) {
    const cgl_spans *spans = &share->parts[i].spans;
    for (size_t k = cgl_spans_find(spans, start);
         k < spans->count && spans->list[k].start < end; k++)
      if (write || spans->list[k].content)
        return true;
  }
  return false;
}


static bool share_meets_op(const cgl_share *share,
                           const cgl_recording *recording, const cgl_op *op) {
  const cgl_range *ranges = cgl_record_ranges(recording, op);
  for (uint32_t i = 0; i < op->nranges; i++)
    if (ranges[i].allocation &&
        share_meets(share, ranges[i].address,
                    ranges[i].address + ranges[i].bytes, ranges[i].write))
      return true;
  if (op->kind == CGL_OP_CONDITIONAL) {
    const cgl_recording *const *bodies = cgl_record_bodies(recording, op);
    for (uint32_t i = 0; i < op->nbodies; i++)
      for (size_t k = 0; k < cgl_record_count(bodies[i]); k++)
        if (share_meets_op(share, bodies[i], cgl_record_op(bodies[i], k)))
          return true;
    return false;
  }
  const cgl_share *child =
      op->body ? cgl_share_of(cgl_record_body(recording, op->body - 1)) : NULL;
  for (size_t i = 0; child && i < child->nparts; i++)
    for (size_t k = 0; k < child->parts[i].spans.count; k++) {
      const cgl_span *span = &child->parts[i].spans.list[k];
      if (share_meets(share, span->start, span->end, span->content))
        return true;
    }
  return false;
}


/* Marks the operations that come after operation `from`. */
static void mark_after(const cgl_recording *recording, unsigned char *after,
                       size_t from) {
  const size_t count = cgl_record_count(recording);
  memset(after, 0, count);
  after[from] = 1;
  for (size_t i = from + 1; i < count; i++) {
    size_t n;
    const size_t *before = cgl_record_dependencies(recording, i, &n);
    for (size_t k = 0; k < n && !after[i]; k++)
      after[i] = before[k] < i && after[before[k]];
  }
}


/* `child`, of `inside`, is operation `index` of the recording, or in a body of
   it; `after` marks what comes after that. */
static cgl_status check_child(const cgl_recording *recording, size_t index,
                              const cgl_recording *inside, const cgl_op *child,
                              const unsigned char *after,
                              const char *operation) {
  const cgl_share *share =
      cgl_share_of(cgl_record_body(inside, child->body - 1));
  for (size_t i = index + 1; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    if (after[i] || !share_meets_op(share, recording, op))
      continue;
    cgl_fail(CGL_ERROR_ORDER, operation,
             "a graph replayed in the capture (%s) overwrites memory that "
             "another branch uses (%s), or uses what that branch writes, at "
             "the same time",
             cgl_site_text(child->site), cgl_site_text(op->site));
    return cgl_fail_hint("let the one branch wait for the other, or capture "
                         "the graph into a pool of its own");
  }
  return CGL_OK;
}


/* Every child graph that operation `op` of `inside` is, or has in its bodies.
 */
static cgl_status check_children_of(const cgl_recording *recording,
                                    size_t index, const cgl_recording *inside,
                                    const cgl_op *op,
                                    const unsigned char *after,
                                    const char *operation) {
  if (op->kind == CGL_OP_GRAPH)
    return check_child(recording, index, inside, op, after, operation);
  cgl_status status = CGL_OK;
  for (uint32_t i = 0; i < op->nbodies; i++) {
    const cgl_recording *body = cgl_record_bodies(inside, op)[i];
    for (size_t k = 0; k < cgl_record_count(body) && !status; k++)
      status = check_children_of(recording, index, body, cgl_record_op(body, k),
                                 after, operation);
  }
  return status;
}


/* Whether each operation depends on the one before: there are no branches. */
static bool record_is_line(const cgl_recording *recording) {
  bool line = true;
  for (size_t i = 1; line && i < cgl_record_count(recording); i++) {
    size_t n;
    const size_t *before = cgl_record_dependencies(recording, i, &n);
    line = n && *before == i - 1;
  }
  return line;
}


cgl_status cgl_share_check_children(cgl_context *context,
                                    cgl_recording *recording, CUgraph graph,
                                    const char *operation) {
  if (!cgl_record_has(recording, CGL_OP_GRAPH))
    return CGL_OK;
  const size_t count = cgl_record_count(recording);
  CUresult result = cgl_record_learn_edges(recording, graph);
  if (result)
    return cgl_fail_driver(context, result, operation, "cuGraphGetEdges");
  unsigned char *after = malloc(count);
  if (!after)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory to check the graphs in the capture");
  cgl_status status = CGL_OK;
  const bool line = record_is_line(recording);
  for (size_t i = 0; !line && i < count && !status; i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    if (!op->body)
      continue;
    mark_after(recording, after, i);
    status = check_children_of(recording, i, recording, op, after, operation);
  }
  free(after);
  return status;
}
