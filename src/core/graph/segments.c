/* Segments and the tree over them. */
#include "core/graph/segments.h"

#include <stdlib.h>
#include <string.h>

enum {
  BLOCK = 16, /* segments in a leaf of the tree */
  WIDE = 128, /* segments of an access, on average, that are worth a tree */
  PATH = 256  /* more nodes than an access touches */
};


bool cgl_segments_grow(void **array, size_t count, size_t *size,
                       size_t element) {
  if (count < *size)
    return true;
  const size_t larger = 2 * *size + 64;
  void *grown = realloc(*array, larger * element);
  if (!grown)
    return false;
  *array = grown;
  *size = larger;
  return true;
}


void cgl_segments_free(cgl_segments *s) {
  free(s->accesses);
  free(s->list);
  free(s->readers);
  free(s->rows);
  free(s->latest);
  free(s->noted);
}


/* ---- making ---- */

bool cgl_segments_add(cgl_segments *s, uint64_t from, size_t bytes,
                      bool write) {
  if (!bytes)
    return true;
  if (!CGL_SEGMENTS_GROW(s->accesses, s->naccesses, s->accesses_size))
    return false;
  s->accesses[s->naccesses++] = (cgl_access){from, from + bytes, write};
  return true;
}


/* An end of accesses. */
typedef struct bound {
  uint64_t at;
  size_t number; /* in the order in which they were met */
} bound;


static int bound_compare(const void *a, const void *b) {
  const uint64_t x = ((const bound *)a)->at, y = ((const bound *)b)->at;
  return x < y ? -1 : x > y;
}


/* The number of an address, which is new in `bounds` when it is not there.
   slots: numbers from 1 by address, open addressing, half empty. */
static size_t bound_number(bound *bounds, size_t *n, uint32_t *slots,
                           size_t mask, uint64_t at) {
  size_t slot = at * UINT64_C(0x9e3779b97f4a7c15) >> 20 & mask;
  while (slots[slot] && bounds[slots[slot] - 1].at != at)
    slot = (slot + 1) & mask;
  if (!slots[slot]) {
    bounds[*n] = (bound){at, *n};
    slots[slot] = (uint32_t)++ * n;
  }
  return slots[slot] - 1;
}


/* Numbers the segments.  Most operations use what others use: each bound is
   sorted once. */
static size_t segments_number(cgl_segments *s, bound *bounds, uint32_t *slots,
                              size_t mask) {
  size_t n = 0, sorted = 1;
  cgl_access *end = s->accesses + s->naccesses;
  for (cgl_access *a = s->accesses; a < end; a++) {
    a->from = bound_number(bounds, &n, slots, mask, a->from);
    a->to = bound_number(bounds, &n, slots, mask, a->to);
  }
  while (sorted < n && bounds[sorted - 1].at < bounds[sorted].at)
    sorted++;
  if (sorted >= n)
    return n;
  qsort(bounds, n, sizeof *bounds, bound_compare);
  for (size_t i = 0; i < n; i++)
    slots[bounds[i].number] = (uint32_t)i;
  for (cgl_access *a = s->accesses; a < end; a++) {
    a->from = slots[a->from];
    a->to = slots[a->to];
  }
  return n;
}


/* A tree, where the accesses are wide. */
static bool segments_make_tree(cgl_segments *s, size_t n) {
  size_t sum = 0, leaves = 1;
  for (size_t i = 0; i < s->naccesses; i++)
    sum += s->accesses[i].to - s->accesses[i].from;
  if (sum / WIDE <= s->naccesses)
    return true;
  while (leaves * BLOCK < n)
    leaves *= 2;
  s->leaves = leaves;
  s->rows = calloc(8 * leaves * s->stride, sizeof *s->rows);
  s->latest = calloc(s->stride, sizeof *s->latest);
  s->noted = calloc(8 * leaves, sizeof *s->noted);
  return s->rows && s->latest && s->noted;
}


bool cgl_segments_make(cgl_segments *s, size_t stride) {
  size_t size = 64;
  while (size < 4 * s->naccesses)
    size *= 2;
  uint32_t *slots = calloc(size, sizeof *slots);
  bound *bounds = malloc((2 * s->naccesses + 1) * sizeof *bounds);
  size_t n = 0;
  s->stride = stride;
  if (slots && bounds)
    n = segments_number(s, bounds, slots, size - 1);
  s->list = calloc(n + 1, sizeof *s->list);
  const bool room = slots && bounds && s->list && segments_make_tree(s, n);
  free(slots);
  free(bounds);
  return room;
}


/* ---- segments ---- */

static bool segments_read(cgl_segments *s, size_t from, size_t to, uint32_t op,
                          cgl_wants *wants) {
  for (size_t i = from; i < to; i++) {
    struct cgl_users *segment = &s->list[i];
    cgl_segments_want(wants, segment->writer, op);
    if (!CGL_SEGMENTS_GROW(s->readers, s->nreaders, s->readers_size))
      return false;
    s->readers[s->nreaders] = (struct cgl_reader){op, segment->readers};
    segment->readers = (uint32_t)++s->nreaders;
  }
  return true;
}


static void segments_write(cgl_segments *s, size_t from, size_t to, uint32_t op,
                           cgl_wants *wants) {
  for (size_t i = from; i < to; i++) {
    struct cgl_users *segment = &s->list[i];
    if (segment->writer != op)
      cgl_segments_want(wants, segment->writer, op);
    for (uint32_t r = segment->readers; r; r = s->readers[r - 1].next)
      if (s->readers[r - 1].op != op)
        cgl_segments_want(wants, s->readers[r - 1].op, op);
    *segment = (struct cgl_users){.writer = op};
  }
}


/* ---- the tree ---- */

/* The blocks that an access covers. */
static size_t access_begin(const cgl_access *a) {
  return (a->from + BLOCK - 1) / BLOCK;
}


static size_t access_end(const cgl_access *a) {
  return a->to / BLOCK;
}


static size_t tree_row(size_t node, bool inside, bool write) {
  return 4 * node + 2 * inside + write;
}


static void tree_note(cgl_segments *s, size_t row, uint32_t op, uint32_t lane) {
  s->rows[row * s->stride + lane] = op;
  s->noted[row] = true;
}


/* The nodes that an access touches: first those that it covers, the largest
   ones, then those around its ends; how many. */
static size_t tree_list(const cgl_segments *s, const cgl_access *a,
                        size_t *nodes, size_t *ncovered) {
  size_t n = 0;
  for (size_t l = access_begin(a) + s->leaves, r = access_end(a) + s->leaves;
       l < r; l /= 2, r /= 2) {
    if (l % 2)
      nodes[n++] = l++;
    if (r % 2)
      nodes[n++] = --r;
  }
  *ncovered = n;
  for (size_t l = a->from / BLOCK + s->leaves,
              r = (a->to - 1) / BLOCK + s->leaves;
       l; l /= 2, r /= 2) {
    nodes[n++] = l;
    if (r != l)
      nodes[n++] = r;
  }
  return n;
}


/* Of a node that the access covers, all that touched it; of one around it, what
   covered that. */
static void tree_want(cgl_segments *s, const cgl_access *a, uint32_t op,
                      cgl_wants *wants) {
  size_t nodes[PATH], ncovered;
  const size_t n = tree_list(s, a, nodes, &ncovered);
  memset(s->latest, 0, s->stride * sizeof *s->latest);
  for (size_t i = 0; i < n; i++)
    for (int write = !a->write; write < 2; write++) {
      const size_t row = tree_row(nodes[i], i >= ncovered, write);
      if (s->noted[row])
        cgl_segments_join(s->latest, s->rows + row * s->stride, s->stride);
    }
  for (size_t l = 0; l < s->stride; l++)
    cgl_segments_want(wants, s->latest[l], op);
}


void cgl_segments_put(cgl_segments *s, const cgl_access *a,
                      const cgl_access *end, uint32_t op, uint32_t lane) {
  size_t nodes[PATH], ncovered;
  for (; a < end && s->leaves; a++) {
    const size_t n = tree_list(s, a, nodes, &ncovered);
    for (size_t i = 0; i < n; i++) {
      tree_note(s, tree_row(nodes[i], false, a->write), op, lane);
      if (i < ncovered)
        tree_note(s, tree_row(nodes[i], true, a->write), op, lane);
    }
  }
}


/* ---- both ---- */

static bool access_use(cgl_segments *s, const cgl_access *a, uint32_t op,
                       cgl_wants *wants) {
  size_t begin = a->to, end = a->to; /* what the tree has */
  if (s->leaves)
    tree_want(s, a, op, wants);
  if (s->leaves && access_begin(a) < access_end(a)) {
    begin = access_begin(a) * BLOCK;
    end = access_end(a) * BLOCK;
  }
  if (!a->write)
    return segments_read(s, a->from, begin, op, wants) &&
           segments_read(s, end, a->to, op, wants);
  segments_write(s, a->from, begin, op, wants);
  segments_write(s, end, a->to, op, wants);
  return true;
}


bool cgl_segments_use(cgl_segments *s, const cgl_access *a,
                      const cgl_access *end, uint32_t op, cgl_wants *wants) {
  bool room = true;
  for (const cgl_access *r = a; r < end && room; r++)
    room = r->write || access_use(s, r, op, wants);
  for (const cgl_access *w = a; w < end && room; w++)
    room = !w->write || access_use(s, w, op, wants);
  return room;
}
