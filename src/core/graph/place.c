/* Places of temporaries. */
#include "core/graph/place.h"

#include <stdlib.h>
#include <string.h>

#include "core/graph/segments.h"

enum { MANY = 512 }; /* temporaries: beyond, not all pairs are compared */


bool cgl_places_reserve(cgl_places *places, size_t count, const uint32_t *lanes,
                        const uint32_t *rows, size_t stride) {
  *places = (cgl_places){
      .count = count, .lanes = lanes, .rows = rows, .stride = stride};
  places->list = calloc(count + 1, sizeof *places->list);
  places->order = malloc((count + 1) * sizeof *places->order);
  return places->list && places->order;
}


void cgl_places_free(cgl_places *places) {
  free(places->list);
  free(places->order);
  free(places->uses);
  *places = (cgl_places){0};
}


/* ---- uses ---- */

static bool op_precedes(const cgl_places *places, uint32_t a, uint32_t b) {
  return places->rows[(b - 1) * places->stride + places->lanes[a - 1]] >= a;
}


static bool uses_add(cgl_places *places, uint32_t *list, uint32_t op) {
  if (!CGL_SEGMENTS_GROW(places->uses, places->nuses, places->uses_size))
    return false;
  places->uses[places->nuses] = (struct cgl_place_use){op, *list};
  *list = (uint32_t)++places->nuses;
  return true;
}


static void places_enter(cgl_places *places, size_t i) {
  const cgl_temporary *list = places->list;
  size_t *at = places->order + places->nused++;
  for (; at > places->order && list[at[-1]].first == list[i].first &&
         list[at[-1]].bytes < list[i].bytes;
       at--)
    *at = at[-1];
  *at = i;
}


bool cgl_places_use(cgl_places *places, size_t i, uint32_t op) {
  cgl_temporary *place = &places->list[i];
  if (place->last == op)
    return true;
  if (!place->first) {
    place->first = op;
    places_enter(places, i);
  }
  place->last = op;
  uint32_t u = place->begins;
  while (u && !op_precedes(places, places->uses[u - 1].op, op))
    u = places->uses[u - 1].next;
  if (!u && !uses_add(places, &place->begins, op))
    return false;
  for (uint32_t *end = &place->ends; *end;) {
    struct cgl_place_use *use = &places->uses[*end - 1];
    if (op_precedes(places, use->op, op))
      *end = use->next;
    else
      end = &use->next;
  }
  return uses_add(places, &place->ends, op);
}


/* Every use of a precedes every use of b. */
static bool place_precedes(const cgl_places *places, size_t a, size_t b) {
  const struct cgl_place_use *uses = places->uses;
  if (places->list[a].last >= places->list[b].first)
    return false;
  for (uint32_t e = places->list[a].ends; e; e = uses[e - 1].next)
    for (uint32_t s = places->list[b].begins; s; s = uses[s - 1].next)
      if (!op_precedes(places, uses[e - 1].op, uses[s - 1].op))
        return false;
  return true;
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


/* The smallest run of pieces whose users precede temporary i and that holds it,
   of equal ones that with the latest user, after which fewer temporaries to
   come are ordered; else the run at the end, which grows.  *begin, *end: its
   pieces. */
static void pieces_find(const pieces *p, const cgl_places *places, size_t i,
                        size_t *begin, size_t *end) {
  const size_t bytes = places->list[i].bytes;
  const size_t enough = places->count > MANY ? bytes : 0;
  size_t best = SIZE_MAX, from = 0;
  uint32_t latest = 0;
  *begin = *end = p->count;
  for (size_t k = 0; k < p->count && best > enough; k++) {
    const piece *last = &p->list[k];
    if (!place_precedes(places, last->user, i)) {
      from = k + 1;
      continue;
    }
    while (from < k && last->to - p->list[from + 1].from >= bytes)
      from++;
    const size_t size = last->to - p->list[from].from;
    const uint32_t user = places->list[last->user].last;
    if (size < bytes || size > best || (size == best && user <= latest))
      continue;
    best = size;
    latest = user;
    *begin = from;
    *end = k + 1;
  }
  if (best == SIZE_MAX)
    *begin = from;
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


static void pieces_add(pieces *p, cgl_places *places, size_t i) {
  size_t begin, end;
  pieces_find(p, places, i, &begin, &end);
  pieces_put(p, places, i, begin, end);
}


static size_t places_in_order(cgl_places *places) {
  const size_t n = places->count;
  pieces p = {.list = malloc((n + 2) * sizeof(piece))};
  if (!p.list)
    return SIZE_MAX;
  for (size_t i = 0; i < n && places->nused < n; i++)
    if (!places->list[i].first)
      pieces_add(&p, places, i);
  for (size_t k = 0; k < places->nused; k++)
    pieces_add(&p, places, places->order[k]);
  const size_t bytes = p.count ? p.list[p.count - 1].to : 0;
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

/* The most bytes that are in use at one time in the order of issue: no two of
   these temporaries are ordered. */
static size_t places_peak(const cgl_places *places) {
  uint32_t end = 0;
  size_t now = 0, peak = 0;
  for (size_t i = 0; i < places->count; i++)
    end = places->list[i].last > end ? places->list[i].last : end;
  /* By operation: bytes whose use begins there, less those whose use has ended
     before; the sums are never negative. */
  size_t *change = calloc((size_t)end + 2, sizeof *change);
  if (!change)
    return SIZE_MAX;
  for (size_t i = 0; i < places->count; i++) {
    change[places->list[i].first] += places->list[i].bytes;
    change[places->list[i].last + 1] -= places->list[i].bytes;
  }
  for (uint32_t op = 0; op <= end; op++) {
    now += change[op];
    peak = now > peak ? now : peak;
  }
  free(change);
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
