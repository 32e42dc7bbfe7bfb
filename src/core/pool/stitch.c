/* Stitching: what is left of granules beside live blocks serves large blocks.
   Idea: a granule may be mapped at several addresses.  Where its end is free
   (a tail), it is mapped once more before a hole, and where its beginning is
   (a head), after one, so that a block may span tail, hole and head: memory is
   needed for the hole alone.
   Invariants: the mappings of a granule are a ring; each byte of it belongs to
   an extent of one of them, and is lent in all others; neighbours inside a
   granule are not lent both.  Only what is anybody's changes hands, so that no
   work is underway that uses it by its former address: a device promises
   nothing about the order of accesses to the same bytes by two. */
#include "core/pool/pool.h"

enum {
  WORTH = 32, /* part of a granule that is worth mapping it once more */
  LOOKS = 64, /* extents that are looked at for tails, and for each a head */
  BATCH = 64  /* mappings that are undone between two looks at all */
};


static size_t granule_at(const cgl_block *block) {
  return block->offset / block->segment->pool->granularity;
}


static cgl_granule *granule_of(const cgl_block *block) {
  return &block->segment->granules[granule_at(block)];
}


/* ---- extents ---- */

static bool is_lent_beside(const cgl_block *block, const cgl_block *other) {
  return other && other->extent == CGL_EXTENT_LENT &&
         granule_at(other) == granule_at(block);
}


static void list_remove(cgl_pool *pool, cgl_block *block) {
  if (block->bin_next)
    block->bin_next->bin_prev = block->bin_prev;
  if (block->bin_prev)
    block->bin_prev->bin_next = block->bin_next;
  else
    pool->lent = block->bin_next;
  block->extent = CGL_EXTENT_LIVE;
}


/* An extent that lies in one granule and in no list becomes lent there. */
static void lend(cgl_pool *pool, cgl_block *block) {
  cgl_block *prev = block->prev, *next = block->next;
  if (is_lent_beside(block, next)) {
    list_remove(pool, next);
    cgl_index_join(pool, block, next);
  }
  if (is_lent_beside(block, prev)) {
    list_remove(pool, prev);
    block = cgl_index_join(pool, prev, block);
  }
  block->extent = CGL_EXTENT_LENT;
  block->lane = NULL;
  block->bin_prev = NULL;
  block->bin_next = pool->lent;
  if (pool->lent)
    pool->lent->bin_prev = block;
  pool->lent = block;
  granule_of(block)->lent = block;
}


/* The first extent of the granule that one of its extents lies in. */
static cgl_block *first_in(cgl_block *block) {
  size_t from = granule_at(block) * block->segment->pool->granularity;
  while (block->offset > from)
    block = block->prev;
  return block;
}


static bool begins_in(const cgl_block *block, size_t at) {
  return block && block->offset < (at + 1) * block->segment->pool->granularity;
}


/* A lent extent is no longer. */
static void take_back(cgl_pool *pool, cgl_block *block) {
  cgl_granule *granule = granule_of(block);
  size_t at = granule_at(block);
  list_remove(pool, block);
  granule->lent = NULL;
  for (cgl_block *b = first_in(block); begins_in(b, at); b = b->next)
    if (b->extent == CGL_EXTENT_LENT)
      granule->lent = b;
}


static void put(cgl_pool *pool, cgl_block *block, cgl_extent extent) {
  if (extent == CGL_EXTENT_FREE)
    cgl_index_insert(pool, block, &pool->anybody);
  else if (extent == CGL_EXTENT_HOLE)
    cgl_index_make_hole(pool, block);
  else
    lend(pool, block);
}


/* Takes the part between two offsets out of an extent that is anybody's, a hole
   or lent; its other parts stay that.  Needs two records. */
static cgl_block *isolate(cgl_pool *pool, cgl_block *block, size_t from,
                          size_t to) {
  cgl_extent extent = block->extent;
  if (extent == CGL_EXTENT_FREE)
    cgl_index_remove(pool, block);
  else if (extent == CGL_EXTENT_HOLE)
    cgl_index_fill_hole(pool, block);
  else
    take_back(pool, block);
  cgl_block *left = NULL, *right = NULL;
  if (block->offset < from) {
    left = block;
    block = cgl_index_cut(pool, block, from - block->offset);
  }
  if (block->offset + block->bytes > to)
    right = cgl_index_cut(pool, block, to - block->offset);
  if (left)
    put(pool, left, extent);
  if (right)
    put(pool, right, extent);
  return block;
}


/* ---- rings ---- */

static cgl_granule *ring_next(const cgl_granule *granule) {
  return &granule->ring->granules[granule->ring_at];
}


/* Granule `at` of a segment is mapped at granule `there` of another, too. */
static void ring_add(cgl_segment *segment, size_t at, cgl_segment *other,
                     size_t there) {
  cgl_granule *granule = &segment->granules[at];
  if (!granule->ring) {
    granule->ring = segment;
    granule->ring_at = (uint32_t)at;
  }
  other->granules[there] = *granule;
  other->granules[there].lent = NULL;
  granule->ring = other;
  granule->ring_at = (uint32_t)there;
}


bool cgl_stitch_forget(cgl_segment *segment, size_t at) {
  cgl_granule *granule = &segment->granules[at], *before = granule;
  if (!granule->ring)
    return false;
  while (ring_next(before) != granule)
    before = ring_next(before);
  before->ring = granule->ring;
  before->ring_at = granule->ring_at;
  if (ring_next(before) == before)
    before->ring = NULL;
  *granule = (cgl_granule){0};
  return true;
}


/* ---- undoing ---- */

/* Whether what a mapping has of its granule is all anybody's; *parts: in how
   many extents. */
static bool is_idle(cgl_block *lent, size_t *parts) {
  const cgl_pool *pool = lent->segment->pool;
  size_t at = granule_at(lent);
  *parts = 0;
  for (cgl_block *b = first_in(lent); begins_in(b, at); b = b->next) {
    if (b->extent == CGL_EXTENT_LENT)
      continue;
    if (b->extent != CGL_EXTENT_FREE || b->lane != &pool->anybody)
      return false;
    ++*parts;
  }
  return true;
}


/* The lent extent of a granule that `offset` (inside it) lies in. */
static cgl_block *lent_at(const cgl_granule *granule, size_t offset) {
  size_t granularity = granule->lent->segment->pool->granularity;
  offset += granule_at(granule->lent) * granularity;
  cgl_block *block = granule->lent;
  while (block->offset > offset)
    block = block->prev;
  while (block->offset + block->bytes <= offset)
    block = block->next;
  return block;
}


/* Gives a free part of a granule, in no lane, to the next mapping in the ring;
   it becomes lent here. */
static void give(cgl_pool *pool, cgl_block *block) {
  size_t granularity = pool->granularity, bytes = block->bytes;
  size_t offset = block->offset % granularity;
  const cgl_granule *target = ring_next(granule_of(block));
  block->segment->mapped -= bytes;
  lend(pool, block);
  block = lent_at(target, offset);
  size_t from = granule_at(block) * granularity + offset;
  block = isolate(pool, block, from, from + bytes);
  block->segment->mapped += bytes;
  block->free_after = block->tick = 0;
  put(pool, block, CGL_EXTENT_FREE);
}


/* Undoes one mapping, of which anything is lent, when what it has is anybody's.
   A failure to unmap would be that of work before it. */
static bool undo(cgl_pool *pool, cgl_segment *segment, size_t at) {
  size_t granularity = pool->granularity, parts;
  size_t from = at * granularity, to = from + granularity;
  cgl_granule *granule = &segment->granules[at];
  if (!granule->lent || !is_idle(granule->lent, &parts) ||
      !cgl_index_reserve(pool, 4 * parts + 2))
    return false;
  for (; parts; parts--) {
    cgl_block *part = first_in(granule->lent);
    while (part->extent == CGL_EXTENT_LENT)
      part = part->next;
    size_t end = part->offset + part->bytes;
    give(pool, isolate(pool, part, part->offset > from ? part->offset : from,
                       end < to ? end : to));
  }
  cgl_block *block = granule->lent;
  take_back(pool, block);
  cgl_driver_of(pool)->cuMemUnmap(segment->base + from, granularity);
  cgl_stitch_forget(segment, at);
  cgl_index_make_hole(pool, block);
  return true;
}


void cgl_stitch_undo(cgl_pool *pool) {
  struct {
    cgl_segment *segment;
    size_t at;
  } idle[BATCH];
  size_t count, undone;
  /* First found, because undoing one rearranges the list. */
  do {
    count = undone = 0;
    size_t parts;
    for (cgl_block *b = pool->lent; b && count < BATCH; b = b->bin_next)
      if (is_idle(b, &parts)) {
        idle[count].segment = b->segment;
        idle[count++].at = granule_at(b);
      }
    for (size_t i = 0; i < count; i++)
      undone += undo(pool, idle[i].segment, idle[i].at);
  } while (undone && count == BATCH);
}


/* ---- stitching ---- */

/* A free part of one granule, offsets in its segment; none: no block. */
typedef struct piece {
  cgl_block *block; /* which may hold more */
  size_t from, to;
} piece;


static size_t length(piece p) {
  return p.to - p.from;
}


/* The part of a free extent at the end of the granule that it begins in. */
static piece tail_of(cgl_block *block) {
  size_t granularity = block->segment->pool->granularity;
  size_t to = (granule_at(block) + 1) * granularity;
  bool fits = block->offset % granularity &&
              block->offset + block->bytes >= to && granule_of(block)->of == 1;
  return fits ? (piece){block, block->offset, to} : (piece){0};
}


/* The part of a free extent at the beginning of the granule that it ends in. */
static piece head_of(cgl_block *block) {
  size_t granularity = block->segment->pool->granularity;
  size_t to = block->offset + block->bytes;
  size_t from = to / granularity * granularity;
  bool fits = from < to && from >= block->offset &&
              block->segment->granules[from / granularity].of == 1;
  return fits ? (piece){block, from, to} : (piece){0};
}


/* The shortest head of at least `bytes`, of another extent than `other`. */
static piece find_head(const cgl_pool *pool, size_t bytes,
                       const cgl_block *other) {
  piece best = {0};
  cgl_block *block = cgl_index_first(&pool->anybody, bytes);
  for (int looks = 0; block && looks < LOOKS; looks++) {
    piece p = block != other ? head_of(block) : best;
    if (length(p) >= bytes && (!best.block || length(p) < length(best)))
      best = p;
    block = cgl_index_next(block);
  }
  return best;
}


/* What a block is to be made of, besides `middle` granules. */
typedef struct plan {
  piece tail, head;
  size_t middle, used; /* bytes of the pieces that it takes */
} plan;


/* The best plan with this tail, which may be none. */
static plan complete(const cgl_pool *pool, size_t bytes, piece tail) {
  size_t granularity = pool->granularity, left = bytes - length(tail);
  size_t end = left % granularity;
  plan p = {tail, {0}, left / granularity, length(tail)};
  if (end >= granularity / WORTH)
    p.head = find_head(pool, end, tail.block);
  if (p.head.block)
    p.used += end;
  else
    p.middle += end != 0;
  return p;
}


/* The plan with fewest granules, and of those the one that uses most of what it
   could; it uses nothing when none has fewer than `most`.  The longest tails
   are in extents of half a granule and more. */
static plan choose(const cgl_pool *pool, size_t bytes, size_t most) {
  plan best = complete(pool, bytes, (piece){0});
  if (best.middle >= most)
    best = (plan){.middle = most};
  cgl_block *block = cgl_index_first(&pool->anybody, pool->granularity / 2);
  for (int looks = 0; block && looks < LOOKS; looks++) {
    piece tail = tail_of(block);
    if (length(tail) >= pool->granularity / WORTH && length(tail) <= bytes) {
      plan p = complete(pool, bytes, tail);
      if (p.middle < best.middle ||
          (p.middle == best.middle && p.middle < most && p.used > best.used))
        best = p;
    }
    block = cgl_index_next(block);
  }
  return best;
}


/* The smallest hole of at least `bytes`. */
static cgl_block *find_hole(const cgl_pool *pool, size_t bytes) {
  cgl_block *best = NULL;
  for (cgl_block *hole = pool->holes; hole; hole = hole->bin_next)
    if (hole->bytes >= bytes && (!best || hole->bytes < best->bytes))
      best = hole;
  return best;
}


static CUresult map_again(CUmemGenericAllocationHandle handle,
                          cgl_segment *segment, size_t at) {
  cgl_pool *pool = segment->pool;
  size_t bytes = pool->granularity;
  CUdeviceptr address = segment->base + at * bytes;
  CUresult result = cgl_driver_of(pool)->cuMemMap(address, bytes, 0, handle, 0);
  if (result)
    return result;
  result = cgl_pages_open(pool, address, bytes);
  if (result)
    cgl_driver_of(pool)->cuMemUnmap(address, bytes);
  return result;
}


/* Moves a piece to where its granule is mapped once more, granule `at` of the
   hole's segment; false when that fails. */
static bool move(cgl_pool *pool, piece p, cgl_block *hole, size_t at) {
  size_t granularity = pool->granularity, bytes = length(p);
  cgl_segment *from = p.block->segment, *to = hole->segment;
  size_t here = p.from / granularity, skip = p.from % granularity;
  if (!cgl_index_reserve(pool, 6) ||
      map_again(from->granules[here].handle, to, at))
    return false;
  ring_add(from, here, to, at);
  lend(pool, isolate(pool, p.block, p.from, p.to));
  from->mapped -= bytes;
  cgl_block *block =
      isolate(pool, hole, at * granularity, (at + 1) * granularity);
  cgl_block *free = skip ? cgl_index_cut(pool, block, skip) : block;
  if (skip)
    lend(pool, block);
  if (bytes < free->bytes)
    lend(pool, cgl_index_cut(pool, free, bytes));
  free->free_after = free->tick = 0;
  to->mapped += bytes;
  put(pool, free, CGL_EXTENT_FREE);
  return true;
}


bool cgl_stitch(cgl_pool *pool, size_t bytes, size_t most) {
  size_t granularity = pool->granularity;
  plan p = choose(pool, bytes, most);
  if (!p.used)
    return false;
  size_t room = (p.middle + (p.head.block != NULL)) * granularity;
  cgl_block *hole = p.tail.block ? p.tail.block->next : NULL;
  bool in_place = hole && hole->extent == CGL_EXTENT_HOLE &&
                  hole->bytes >= room && hole->offset == p.tail.to;
  bool moves = p.tail.block && !in_place;
  if (!in_place)
    hole = find_hole(pool, room + (moves ? granularity : 0));
  if (!hole)
    return false;
  /* The head first: the hole before it stays the same one. */
  size_t at = granule_at(hole);
  return (!p.head.block || move(pool, p.head, hole, at + moves + p.middle)) &&
         (!moves || move(pool, p.tail, hole, at));
}
