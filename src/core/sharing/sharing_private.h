/* Spans, and what the files of this room ask of each other. */
#ifndef CGL_SHARING_SHARING_PRIVATE_H
#define CGL_SHARING_SHARING_PRIVATE_H

#include "core/sharing/sharing.h"

#include <limits.h>

/* ---- spans.c ---- */

/* Room for so many sets; false without memory. */
bool cgl_spans_reserve(cgl_spans *spans, size_t sets);
/* The bytes from the value's start to its end have this value now.  Borders
   inside stay: the next set of the same bytes moves nothing. */
void cgl_spans_set(cgl_spans *spans, const cgl_span *value);
/* The same, when `at` may be the index of the span with these borders; returns
   an index for the bytes that follow. */
size_t cgl_spans_set_at(cgl_spans *spans, size_t at, const cgl_span *value);
/* The first span that ends after `address`; spans->count: none. */
size_t cgl_spans_find(const cgl_spans *spans, CUdeviceptr address);
/* The span at `from`, or the gap there as a span of zeros, cut at `end`. */
cgl_span cgl_spans_piece(const cgl_spans *spans, CUdeviceptr from,
                         CUdeviceptr end);
/* Whether a span touches the bytes. */
bool cgl_spans_touch(const cgl_spans *spans, CUdeviceptr start,
                     CUdeviceptr end);
/* The bytes have no value any more; without memory it changes nothing. */
void cgl_spans_remove(cgl_spans *spans, CUdeviceptr start, CUdeviceptr end);
void cgl_spans_free(cgl_spans *spans);

/* ---- content.c: under the lock ---- */

/* Whether a need is refused where bytes carry `piece`, inside it. */
bool cgl_need_is_refused(const cgl_need *need, const cgl_span *piece);
/* Room in the map for a replay, until it is settled; false without memory. */
bool cgl_share_part_reserve(cgl_share_part *part);
/* The part's graph was replayed. */
void cgl_share_part_note(cgl_share_part *part);
/* Before the map is looked at or changed, or a part goes. */
void cgl_sharing_settle(cgl_sharing *sharing);
/* The hint of a refusal to read the content. */
cgl_status cgl_content_hint(const cgl_content *content);

/* ---- replay_order.c: under the lock ---- */

/* No status: the order needs a wait for the device, which must not be made
   under the lock, because the end of a graph takes both. */
enum { CGL_WAIT_FIRST = INT_MIN };

/* Makes the stream come after the pool's last replay; `begun`: the capture of a
   graph that is about to be replayed, or NULL for the script's own work. */
cgl_status cgl_sharing_order(cgl_sharing *sharing, cgl_stream *stream,
                             uint64_t exec, const cgl_site *begun,
                             const char *operation);
/* Work that `exec` says was launched on the stream. */
void cgl_sharing_stamp(cgl_sharing *sharing, const cgl_stream *stream,
                       uint64_t exec, cgl_site begun);

#endif
