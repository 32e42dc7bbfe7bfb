/* Contents: what is known of the data of an allocation, and the script's own
   work with it. */
#include "core/sharing/sharing_private.h"

#include <stdlib.h>

static atomic_uint_fast64_t next_number = 1;


static void content_destroy(cgl_object *object) {
  cgl_content *content = (cgl_content *)object;
  cgl_spans_free(&content->written);
  free(content);
}


static const cgl_object_kind content_kind = {
    .number = CGL_OBJECT_INTERNAL,
    .light = true,
    .destroy = content_destroy,
};


cgl_content *cgl_content_new(cgl_sharing *sharing, uint64_t born,
                             size_t bytes) {
  cgl_content *content = calloc(1, sizeof *content);
  if (!content)
    return NULL;
  cgl_object_init_borrowing(&content->allocation.object, &content_kind,
                            sharing->owner->context);
  content->allocation.born = born;
  content->allocation.bytes = bytes;
  content->allocation.made = cgl_site_here;
  content->number = atomic_fetch_add(&next_number, 1);
  content->sharing = sharing;
  return content;
}


/* ---- needs ---- */

bool cgl_need_is_refused(const cgl_need *need, const cgl_span *piece) {
  const cgl_content *content = need->content;
  if (piece->number == content->number)
    return false;
  const bool had = cgl_spans_touch(&content->written, piece->start, piece->end);
  if (need->own)
    return had;
  if (need->use == CGL_USE_UPDATE)
    return had || content->own_fills;
  return had || content->filler.file || piece->number;
}


/* ---- writes ---- */

/* Without memory the bytes count as never written. */
static void content_note_written(cgl_content *content, CUdeviceptr start,
                                 CUdeviceptr end) {
  const cgl_span *first = content->written.list;
  if (content->written.count && first->start <= start && end <= first->end)
    return;
  cgl_span piece = {0};
  for (CUdeviceptr at = start; at < end; at = piece.end) {
    piece = cgl_spans_piece(&content->written, at, end);
    if (piece.number)
      continue;
    if (cgl_spans_reserve(&content->written, 1))
      cgl_spans_set(
          &content->written,
          &(cgl_span){.start = start, .end = end, .number = content->number});
    return;
  }
}


/* ---- what replays did ---- */

static bool part_is_waiting(const cgl_share_part *part) {
  return part->earlier || part->later || part->sharing->latest == part;
}


bool cgl_share_part_reserve(cgl_share_part *part) {
  cgl_sharing *sharing = part->sharing;
  return cgl_spans_reserve(&sharing->map,
                           sharing->unsettled + part->spans.count);
}


void cgl_share_part_note(cgl_share_part *part) {
  cgl_sharing *sharing = part->sharing;
  part->unnoted = false;
  part->version = ++sharing->version;
  if (sharing->latest == part)
    return;
  if (part_is_waiting(part)) {
    part->later->earlier = part->earlier;
    if (part->earlier)
      part->earlier->later = part->later;
  } else
    sharing->unsettled += part->spans.count;
  part->earlier = sharing->latest;
  part->later = NULL;
  if (part->earlier)
    part->earlier->later = part;
  sharing->latest = part;
}


static void part_settle(cgl_share_part *part) {
  size_t at = 0;
  for (size_t i = 0; i < part->spans.count; i++) {
    const cgl_span *span = &part->spans.list[i];
    if (!span->content)
      continue;
    const cgl_span value = {.start = span->start,
                            .end = span->end,
                            .number = span->number,
                            .by = part->share->begun};
    at = cgl_spans_set_at(&part->sharing->map, at, &value);
    if (!part->settled)
      content_note_written(span->content, span->start, span->end);
  }
  for (size_t i = 0; i < part->ngone && !part->settled; i++)
    content_note_written(part->gone[i].content, part->gone[i].start,
                         part->gone[i].end);
  part->settled = true;
}


void cgl_sharing_settle(cgl_sharing *sharing) {
  cgl_share_part *part = sharing->latest;
  while (part && part->earlier)
    part = part->earlier;
  while (part) {
    cgl_share_part *later = part->later;
    part_settle(part);
    part->earlier = part->later = NULL;
    part = later;
  }
  sharing->latest = NULL;
  sharing->unsettled = 0;
}


cgl_status cgl_content_hint(const cgl_content *content) {
  if (!content->filler.file)
    return cgl_fail_hint("fill the buffer again first, or capture into pools "
                         "of their own");
  return cgl_fail_hint("replay the graph captured at %s first: graphs that "
                       "share a pool and pass data keep the order of their "
                       "capture",
                       cgl_site_text(content->filler));
}


/* ---- the script's own work ---- */

static cgl_status content_refuse(cgl_content *content, const cgl_span *piece,
                                 const char *operation) {
  content->sharing->refused++;
  if (piece->number)
    cgl_fail(CGL_ERROR_ORDER, operation,
             "the buffer made at %s was filled, but %s %s shares its pool and "
             "has overwritten it since",
             cgl_site_text(content->allocation.made),
             piece->script ? "the script's own work at"
                           : "the graph captured at",
             cgl_site_text(piece->by));
  else
    cgl_fail(CGL_ERROR_ORDER, operation,
             "the graph captured at %s has not filled the buffer made at %s "
             "yet",
             cgl_site_text(content->filler),
             cgl_site_text(content->allocation.made));
  return cgl_content_hint(content);
}


/* Under the lock. */
static cgl_status content_check_bytes(cgl_content *content, CUdeviceptr start,
                                      CUdeviceptr end, cgl_use use,
                                      const char *operation) {
  const cgl_need need = {.content = content, .use = use};
  cgl_sharing_settle(content->sharing);
  for (cgl_span piece; start < end; start = piece.end) {
    piece = cgl_spans_piece(&content->sharing->map, start, end);
    /* The script may be the first that fills the buffer, by a kernel. */
    if (use == CGL_USE_UPDATE &&
        !cgl_spans_touch(&content->written, piece.start, piece.end))
      continue;
    if (cgl_need_is_refused(&need, &piece))
      return content_refuse(content, &piece, operation);
  }
  return CGL_OK;
}


cgl_status cgl_content_check(cgl_content *content, CUdeviceptr address,
                             size_t bytes, cgl_use use, cgl_stream *stream,
                             const char *operation) {
  cgl_sharing *sharing = content->sharing;
  cgl_status status = CGL_OK;
  atomic_store_explicit(&content->allocation.fixed, true, memory_order_relaxed);
  atomic_store_explicit(&sharing->touched, true, memory_order_relaxed);
  if (!atomic_load_explicit(&sharing->shared, memory_order_relaxed))
    return CGL_OK;
  do {
    pthread_mutex_lock(&sharing->lock);
    if (use != CGL_USE_WRITE)
      status = content_check_bytes(content, address, address + bytes, use,
                                   operation);
    if (!status && stream->object.context == sharing->owner->context)
      status = cgl_sharing_order(sharing, stream, 0, NULL, operation);
    pthread_mutex_unlock(&sharing->lock);
  } while (status == CGL_WAIT_FIRST &&
           !(status = cgl_context_synchronize(stream->object.context)));
  return status;
}


void cgl_content_note(cgl_content *content, CUdeviceptr address, size_t bytes,
                      bool write, const cgl_stream *stream) {
  cgl_sharing *sharing = content->sharing;
  if (write)
    cgl_sharing_begin(sharing, "write");
  if (!atomic_load_explicit(&sharing->shared, memory_order_relaxed))
    return;
  pthread_mutex_lock(&sharing->lock);
  if (write)
    cgl_sharing_settle(sharing);
  if (write && cgl_spans_reserve(&sharing->map, 1)) {
    cgl_spans_set(&sharing->map, &(cgl_span){.start = address,
                                             .end = address + bytes,
                                             .number = content->number,
                                             .by = cgl_site_here,
                                             .script = true});
    content_note_written(content, address, address + bytes);
    sharing->version++;
  }
  if (stream->object.context == sharing->owner->context)
    cgl_sharing_stamp(sharing, stream, 0, cgl_site_here);
  pthread_mutex_unlock(&sharing->lock);
}
