/* Spans: values of bytes, in order of address. */
#include "core/sharing/sharing_private.h"

#include <stdlib.h>
#include <string.h>

enum { FEW = 64 }; /* spans that are not worth joining */


/* ---- room ---- */

static bool span_continues(const cgl_span *left, const cgl_span *right) {
  return left->end == right->start && left->number == right->number &&
         left->content == right->content && left->by.file == right->by.file &&
         left->by.line == right->by.line && left->script == right->script &&
         left->own == right->own;
}


/* Joins neighbours of one value, when the spans have become twice as many. */
static void spans_join(cgl_spans *spans) {
  if (spans->count <= spans->limit)
    return;
  size_t count = 1;
  for (size_t i = 1; i < spans->count; i++)
    if (span_continues(&spans->list[count - 1], &spans->list[i]))
      spans->list[count - 1].end = spans->list[i].end;
    else
      spans->list[count++] = spans->list[i];
  spans->count = count;
  spans->limit = 2 * count + FEW;
}


/* A set cuts two spans, and fills each gap between those that are there. */
bool cgl_spans_reserve(cgl_spans *spans, size_t sets) {
  spans_join(spans);
  const size_t most = 2 * (spans->count + 2 * sets) + 1;
  if (most <= spans->size)
    return true;
  const size_t size = most + most / 2;
  cgl_span *list = realloc(spans->list, size * sizeof *list);
  if (!list)
    return false;
  spans->list = list;
  spans->size = size;
  return true;
}


void cgl_spans_free(cgl_spans *spans) {
  free(spans->list);
  *spans = (cgl_spans){0};
}


/* ---- reading ---- */

size_t cgl_spans_find(const cgl_spans *spans, CUdeviceptr address) {
  size_t low = 0, high = spans->count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (spans->list[middle].end > address)
      high = middle;
    else
      low = middle + 1;
  }
  return low;
}


cgl_span cgl_spans_piece(const cgl_spans *spans, CUdeviceptr from,
                         CUdeviceptr end) {
  const size_t at = cgl_spans_find(spans, from);
  const bool gap = at == spans->count || spans->list[at].start > from;
  cgl_span piece = gap ? (cgl_span){.end = end} : spans->list[at];
  if (gap && at < spans->count)
    piece.end = spans->list[at].start;
  piece.start = from;
  piece.end = piece.end < end ? piece.end : end;
  return piece;
}


bool cgl_spans_touch(const cgl_spans *spans, CUdeviceptr start,
                     CUdeviceptr end) {
  const size_t at = cgl_spans_find(spans, start);
  return at < spans->count && spans->list[at].start < end;
}


/* ---- writing ---- */

static void spans_insert(cgl_spans *spans, size_t at, const cgl_span *span) {
  cgl_span *place = &spans->list[at];
  memmove(place + 1, place, (spans->count++ - at) * sizeof *place);
  *place = *span;
}


/* Makes `address` a border. */
static void spans_cut(cgl_spans *spans, CUdeviceptr address) {
  const size_t at = cgl_spans_find(spans, address);
  if (at == spans->count || spans->list[at].start >= address)
    return;
  const cgl_span left = spans->list[at];
  spans_insert(spans, at, &left);
  spans->list[at].end = spans->list[at + 1].start = address;
}


void cgl_spans_set(cgl_spans *spans, const cgl_span *value) {
  spans_cut(spans, value->start);
  spans_cut(spans, value->end);
  size_t at = cgl_spans_find(spans, value->start);
  for (CUdeviceptr from = value->start; from < value->end; at++) {
    cgl_span span = *value;
    span.start = from;
    if (at == spans->count || spans->list[at].start > from) {
      if (at < spans->count && spans->list[at].start < value->end)
        span.end = spans->list[at].start;
      spans_insert(spans, at, &span);
    } else {
      span.end = spans->list[at].end;
      spans->list[at] = span;
    }
    from = span.end;
  }
}


size_t cgl_spans_set_at(cgl_spans *spans, size_t at, const cgl_span *value) {
  if (at < spans->count && spans->list[at].start == value->start &&
      spans->list[at].end == value->end)
    spans->list[at] = *value;
  else {
    cgl_spans_set(spans, value);
    at = cgl_spans_find(spans, value->start);
    while (at < spans->count && spans->list[at].end < value->end)
      at++;
  }
  return at + 1;
}


void cgl_spans_remove(cgl_spans *spans, CUdeviceptr start, CUdeviceptr end) {
  if (!cgl_spans_touch(spans, start, end) || !cgl_spans_reserve(spans, 1))
    return;
  spans_cut(spans, start);
  spans_cut(spans, end);
  const size_t from = cgl_spans_find(spans, start);
  const size_t to = cgl_spans_find(spans, end);
  memmove(&spans->list[from], &spans->list[to],
          (spans->count - to) * sizeof *spans->list);
  spans->count -= to - from;
}
