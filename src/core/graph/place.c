/* Places of temporaries. */
#include "core/graph/place.h"

#include <stdlib.h>
#include <string.h>

enum { MANY = 512 }; /* temporaries: beyond, not all pairs are compared */


bool cgl_places_reserve(cgl_places *places, size_t count, uint32_t width) {
  const size_t cells = count * width + 1;
  *places = (cgl_places){.count = count, .width = width};
  places->list = calloc(count + 1, sizeof *places->list);
  places->last = calloc(cells, sizeof *places->last);
  places->past = calloc(cells, sizeof *places->past);
  return places->list && places->last && places->past;
}


void cgl_places_free(cgl_places *places) {
  free(places->list);
  free(places->last);
  free(places->past);
}


void cgl_places_use(cgl_places *places, size_t i, uint32_t op, uint32_t lane,
                    const uint32_t *row) {
  cgl_temporary *place = &places->list[i];
  uint32_t *past = places->past + i * places->width;
  if (!place->first)
    memcpy(past, row, places->width * sizeof *past);
  else
    for (uint32_t l = 0; l < places->width; l++)
      past[l] = row[l] < past[l] ? row[l] : past[l];
  if (!place->first)
    place->first = op;
  place->last = op;
  place->lane = lane;
  places->last[i * places->width + lane] = op;
}


/* Every use of a precedes every use of b. */
static bool place_precedes(const cgl_places *places, size_t a, size_t b) {
  const uint32_t width = places->width;
  const cgl_temporary *before = &places->list[a];
  const uint32_t *last = places->last + a * width;
  const uint32_t *past = places->past + b * width;
  if (before->last >= places->list[b].first ||
      before->last > past[before->lane])
    return false;
  uint32_t l = 0;
  while (l < width && last[l] <= past[l])
    l++;
  return l == width;
}


static bool places_share(const cgl_places *places, size_t a, size_t b) {
  return place_precedes(places, a, b) || place_precedes(places, b, a);
}


/* ---- in the order of first uses ---- */

/* Bytes in a row with one last user. */
typedef struct piece {
  size_t from, to;
  size_t user;
} piece;

typedef struct pieces {
  piece *list; /* without gaps, from 0 */
  size_t count;
} pieces;


static int place_compare_first(const void *a, const void *b) {
  const cgl_temporary *x = *(cgl_temporary *const *)a,
                      *y = *(cgl_temporary *const *)b;
  if (x->first != y->first)
    return x->first < y->first ? -1 : 1;
  if (x->bytes != y->bytes)
    return x->bytes > y->bytes ? -1 : 1;
  return x < y ? -1 : 1;
}


/* The smallest run of pieces whose users precede temporary i and that holds it;
   else the run at the end, which grows.  *begin, *end: its pieces. */
static void pieces_find(const pieces *p, const cgl_places *places, size_t i,
                        size_t *begin, size_t *end) {
  size_t best = SIZE_MAX, from = 0;
  *begin = *end = p->count;
  for (size_t k = 0; k <= p->count && best > places->list[i].bytes; k++) {
    if (k < p->count && place_precedes(places, p->list[k].user, i))
      continue;
    const size_t start = from < p->count ? p->list[from].from : 0;
    const size_t size = k > from ? p->list[k - 1].to - start : 0;
    if (size >= places->list[i].bytes && size < best) {
      best = size;
      *begin = from;
      *end = k;
    } else if (k == p->count && best == SIZE_MAX) {
      *begin = from;
      *end = k;
    }
    from = k + 1;
  }
}


/* Gives temporary i the first bytes of pieces `begin` to `end`, and new bytes
   behind the last piece where these are too few. */
static void pieces_put(pieces *p, cgl_places *places, size_t i, size_t begin,
                       size_t end) {
  cgl_temporary *place = &places->list[i];
  place->at = begin < p->count ? p->list[begin].from
              : p->count       ? p->list[p->count - 1].to
                               : 0;
  const size_t to = place->at + place->bytes;
  size_t over = begin; /* the first piece that reaches beyond */
  while (over < end && p->list[over].to <= to)
    over++;
  if (over < end)
    p->list[over].from = to;
  memmove(p->list + begin + 1, p->list + over,
          (p->count - over) * sizeof *p->list);
  p->count = p->count - (over - begin) + 1;
  p->list[begin] = (piece){place->at, to, i};
}


static size_t places_in_order(cgl_places *places) {
  const size_t n = places->count;
  cgl_temporary **order = malloc((n + 1) * sizeof *order);
  pieces p = {.list = malloc((n + 2) * sizeof(piece))};
  size_t bytes = SIZE_MAX;
  if (order && p.list) {
    for (size_t i = 0; i < n; i++)
      order[i] = &places->list[i];
    qsort(order, n, sizeof *order, place_compare_first);
    for (size_t k = 0; k < n; k++) {
      const size_t i = (size_t)(order[k] - places->list);
      size_t begin, end;
      pieces_find(&p, places, i, &begin, &end);
      pieces_put(&p, places, i, begin, end);
    }
    bytes = p.count ? p.list[p.count - 1].to : 0;
  }
  free(order);
  free(p.list);
  return bytes;
}


/* ---- the largest first ---- */

static int place_compare_size(const void *a, const void *b) {
  const cgl_temporary *x = *(cgl_temporary *const *)a,
                      *y = *(cgl_temporary *const *)b;
  return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1)
                              : (x < y ? -1 : 1);
}


/* The smallest gap that holds temporary i between those of `put`, in order of
   their places, that it cannot share bytes with. */
static size_t gap_find(const cgl_places *places, cgl_temporary *const *put,
                       size_t nput, size_t i) {
  const size_t bytes = places->list[i].bytes;
  size_t best = SIZE_MAX, at = 0, end = 0;
  for (size_t k = 0; k < nput; k++) {
    const cgl_temporary *other = put[k];
    if (other->at + other->bytes <= end ||
        places_share(places, (size_t)(other - places->list), i))
      continue;
    if (other->at >= end + bytes && other->at - end < best) {
      best = other->at - end;
      at = end;
    }
    if (other->at + other->bytes > end)
      end = other->at + other->bytes;
  }
  return best == SIZE_MAX ? end : at;
}


static size_t places_by_size(cgl_places *places) {
  const size_t n = places->count;
  cgl_temporary **order = malloc(2 * (n + 1) * sizeof *order);
  cgl_temporary **put = order + n + 1;
  size_t bytes = 0;
  if (!order)
    return SIZE_MAX;
  for (size_t i = 0; i < n; i++)
    order[i] = &places->list[i];
  qsort(order, n, sizeof *order, place_compare_size);
  for (size_t k = 0; k < n; k++) {
    cgl_temporary *place = order[k];
    place->at = gap_find(places, put, k, (size_t)(place - places->list));
    size_t slot = k;
    for (; slot && put[slot - 1]->at > place->at; slot--)
      put[slot] = put[slot - 1];
    put[slot] = place;
    if (place->at + place->bytes > bytes)
      bytes = place->at + place->bytes;
  }
  free(order);
  return bytes;
}


/* ---- bounds ---- */

typedef struct change {
  uint32_t op;
  bool begins;
  size_t bytes;
} change;


static int change_compare(const void *a, const void *b) {
  const change *x = a, *y = b;
  if (x->op != y->op)
    return x->op < y->op ? -1 : 1;
  return (int)y->begins - (int)x->begins;
}


/* The most bytes that are in use at one time in the order of issue: no two of
   these temporaries are ordered. */
static size_t places_peak(const cgl_places *places) {
  change *changes = malloc((2 * places->count + 1) * sizeof *changes);
  size_t now = 0, peak = 0, n = 0;
  if (!changes)
    return SIZE_MAX;
  for (size_t i = 0; i < places->count; i++) {
    const cgl_temporary *place = &places->list[i];
    changes[n++] = (change){place->first, true, place->bytes};
    changes[n++] = (change){place->last, false, place->bytes};
  }
  qsort(changes, n, sizeof *changes, change_compare);
  for (size_t i = 0; i < n; i++) {
    now += changes[i].begins ? changes[i].bytes : -changes[i].bytes;
    peak = now > peak ? now : peak;
  }
  free(changes);
  return peak;
}


/* By Dilworth's theorem with weights: all bytes, less the most that chains of
   ordered temporaries can have in common, which is a flow from each temporary
   to those that it precedes. */
typedef struct flow {
  size_t n;
  size_t *sent;         /* n rows */
  size_t *from, *to;    /* bytes that are left */
  size_t *via, *via_to; /* of the search: what led there, 0: not reached */
  size_t *waiting;
  bool *ordered; /* n rows: whether it precedes the other */
} flow;


/* Sends bytes along a path that has room; false: there is none. */
static bool flow_extend(flow *f) {
  const size_t n = f->n;
  size_t head = 0, tail = 0, end = SIZE_MAX;
  memset(f->via, 0, 2 * n * sizeof *f->via); /* via and via_to */
  for (size_t i = 0; i < n; i++)
    if (f->from[i]) {
      f->via[i] = n + 1;
      f->waiting[tail++] = i;
    }
  while (head < tail && end == SIZE_MAX) {
    const size_t i = f->waiting[head++];
    for (size_t k = 0; k < n && end == SIZE_MAX; k++) {
      if (f->via_to[k] || !f->ordered[i * n + k])
        continue;
      f->via_to[k] = i + 1;
      if (f->to[k])
        end = k;
      for (size_t j = 0; j < n && !f->to[k]; j++)
        if (f->sent[j * n + k] && !f->via[j]) {
          f->via[j] = k + 1;
          f->waiting[tail++] = j;
        }
    }
  }
  if (end == SIZE_MAX)
    return false;
  size_t room = f->to[end], i;
  for (size_t k = end;; k = f->via[i] - 1) {
    i = f->via_to[k] - 1;
    if (f->via[i] == n + 1)
      break;
    const size_t back = f->sent[i * n + f->via[i] - 1];
    room = back < room ? back : room;
  }
  room = f->from[i] < room ? f->from[i] : room;
  f->from[i] -= room;
  f->to[end] -= room;
  for (size_t k = end;; k = f->via[i] - 1) {
    i = f->via_to[k] - 1;
    f->sent[i * n + k] += room;
    if (f->via[i] == n + 1)
      break;
    f->sent[i * n + f->via[i] - 1] -= room;
  }
  return true;
}


size_t cgl_places_bound(const cgl_places *places) {
  const size_t n = places->count;
  size_t bytes = 0;
  if (n > MANY)
    return places_peak(places);
  flow f = {.n = n};
  f.sent = calloc(n * n + 5 * n + 1, sizeof *f.sent + sizeof *f.ordered);
  if (!f.sent)
    return SIZE_MAX;
  f.from = f.sent + n * n;
  f.to = f.from + n;
  f.via = f.to + n;
  f.via_to = f.via + n;
  f.waiting = f.via_to + n;
  f.ordered = (bool *)(f.waiting + n);
  for (size_t i = 0; i < n; i++)
    f.from[i] = f.to[i] = places->list[i].bytes;
  for (size_t i = 0; i < n * n; i++)
    f.ordered[i] = place_precedes(places, i / n, i % n);
  while (flow_extend(&f))
    ;
  for (size_t i = 0; i < n; i++)
    bytes += f.from[i];
  free(f.sent);
  return bytes;
}


/* ---- the choice ---- */

/* Then an order by size says nothing that the first uses do not. */
static bool places_have_one_size(const cgl_places *places) {
  size_t i = 1;
  while (i < places->count && places->list[i].bytes == places->list[0].bytes)
    i++;
  return i >= places->count;
}


size_t cgl_places_find(cgl_places *places) {
  const size_t peak = places_peak(places);
  const size_t in_order = places_in_order(places);
  if (peak == SIZE_MAX || in_order == SIZE_MAX)
    return SIZE_MAX;
  if (in_order - peak <= peak / 32 || places->count > MANY ||
      places_have_one_size(places))
    return in_order;
  const size_t by_size = places_by_size(places);
  return by_size <= in_order ? by_size : places_in_order(places);
}
