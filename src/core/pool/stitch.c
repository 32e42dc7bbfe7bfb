/* Stitching: free parts of pages beside live blocks serve large blocks.
   Idea: a page may be mapped at several addresses.  A page whose end is free (a
   tail) is mapped a second time before a hole, and a page whose beginning is
   free (a head) after a hole.  A block may then span tail, hole and head, and
   only the hole needs memory.
   Invariants: the mappings of a page are a ring; each byte of the page belongs
   to an extent of one mapping, and is aliased in all others; two neighbours in
   one page are not both aliased.  Only extents of free_to_all move to another
   mapping, because a device promises no order of accesses to the same bytes by
   two addresses: no work in flight may use the former address. */
#include "core/pool/pool.h"

enum {
  WORTH = 32, /* part of a page that is worth a second mapping */
  LOOKS = 64, /* extents that are looked at for tails, and for each a head */
  BATCH = 64  /* mappings that are undone between two searches */
};


static size_t block_page_index(const cgl_block *block) {
  return block->offset / block->segment->pool->granularity;
}


static cgl_page *block_page(const cgl_block *block) {
  return &block->segment->pages[block_page_index(block)];
}


/* ---- extents ---- */

/* The first extent of the page in which `block` begins. */
static cgl_block *page_first_block(cgl_block *block) {
  size_t from = block_page_index(block) * block->segment->pool->granularity;
  while (block->offset > from)
    block = block->prev;
  return block;
}


static bool block_begins_in(const cgl_block *block, size_t at) {
  return block && block->offset < (at + 1) * block->segment->pool->granularity;
}


/* Takes an extent out of its lane. */
static void block_take(cgl_block *block) {
  const cgl_lane *aliased = &block->segment->pool->aliased;
  cgl_page *page = block_page(block);
  size_t at = block_page_index(block);
  bool was_aliased = block->lane == aliased;
  cgl_index_remove(block);
  if (!was_aliased)
    return;
  page->aliased = NULL;
  for (cgl_block *b = page_first_block(block); block_begins_in(b, at);
       b = b->next)
    if (b->lane == aliased)
      page->aliased = b;
}


/* Puts an extent, which is of one page when the lane is that of aliased
   extents, into a lane. */
static void block_put(cgl_pool *pool, cgl_block *block, cgl_lane *lane) {
  block = cgl_index_insert(pool, block, lane);
  if (lane == &pool->aliased)
    block_page(block)->aliased = block;
}


/* Cuts the part between two offsets out of an extent of free_to_all, a hole or
   an aliased extent; the other parts keep their kind.  The caller reserved two
   block structs. */
static cgl_block *block_isolate(cgl_pool *pool, cgl_block *block, size_t from,
                                size_t to) {
  cgl_lane *lane = block->lane;
  block_take(block);
  cgl_block *left = NULL, *right = NULL;
  if (block->offset < from) {
    left = block;
    block = cgl_index_cut(pool, block, from - block->offset);
  }
  if (block->offset + block->bytes > to)
    right = cgl_index_cut(pool, block, to - block->offset);
  if (left)
    block_put(pool, left, lane);
  if (right)
    block_put(pool, right, lane);
  return block;
}


/* ---- rings ---- */

static cgl_page *ring_next(const cgl_page *page) {
  return &page->ring->pages[page->ring_at];
}


/* Notes that page `at` of a segment is mapped at page `there` of another, too.
 */
static void ring_add(cgl_segment *segment, size_t at, cgl_segment *other,
                     size_t there) {
  cgl_page *page = &segment->pages[at];
  if (!page->ring) {
    page->ring = segment;
    page->ring_at = (uint32_t)at;
  }
  other->pages[there] = *page;
  other->pages[there].aliased = NULL;
  page->ring = other;
  page->ring_at = (uint32_t)there;
}


bool cgl_stitch_forget(cgl_segment *segment, size_t at) {
  cgl_page *page = &segment->pages[at], *before = page;
  if (!page->ring)
    return false;
  while (ring_next(before) != page)
    before = ring_next(before);
  before->ring = page->ring;
  before->ring_at = page->ring_at;
  if (ring_next(before) == before)
    before->ring = NULL;
  *page = (cgl_page){0};
  return true;
}


/* ---- undoing ---- */

/* Whether all extents of a mapping are in free_to_all, aliased extents aside;
 *parts: how many. */
static bool mapping_is_idle(cgl_block *aliased, size_t *parts) {
  const cgl_pool *pool = aliased->segment->pool;
  size_t at = block_page_index(aliased);
  *parts = 0;
  for (cgl_block *b = page_first_block(aliased); block_begins_in(b, at);
       b = b->next) {
    if (b->lane != &pool->aliased && b->lane != &pool->free_to_all)
      return false;
    *parts += b->lane == &pool->free_to_all;
  }
  return true;
}


/* Makes a free part of a page, in no lane, free at the next mapping in the ring
   and aliased here. */
static void block_give(cgl_pool *pool, cgl_block *block) {
  size_t granularity = pool->granularity, bytes = block->bytes;
  size_t offset = block->offset % granularity;
  const cgl_page *target = ring_next(block_page(block));
  block_put(pool, block, &pool->aliased);
  block = target->aliased;
  size_t from = block_page_index(block) * granularity + offset;
  while (block->offset > from)
    block = block->prev;
  while (block->offset + block->bytes <= from)
    block = block->next;
  block = block_isolate(pool, block, from, from + bytes);
  block->free_after = block->tick = 0;
  block_put(pool, block, &pool->free_to_all);
}


/* Undoes one of several mappings when it is idle.  A failure to unmap is of
   earlier work. */
static bool mapping_undo(cgl_pool *pool, cgl_segment *segment, size_t at) {
  size_t granularity = pool->granularity, parts;
  size_t from = at * granularity, to = from + granularity;
  cgl_page *page = &segment->pages[at];
  if (!page->aliased || !mapping_is_idle(page->aliased, &parts) ||
      !cgl_index_reserve(pool, 4 * parts + 2))
    return false;
  for (; parts; parts--) {
    cgl_block *part = page_first_block(page->aliased);
    while (part->lane == &pool->aliased)
      part = part->next;
    size_t end = part->offset + part->bytes;
    block_give(pool, block_isolate(pool, part,
                                   part->offset > from ? part->offset : from,
                                   end < to ? end : to));
  }
  cgl_block *block = page->aliased;
  block_take(block);
  cgl_driver_of(pool)->cuMemUnmap(segment->base + from, granularity);
  cgl_stitch_forget(segment, at);
  cgl_index_insert(pool, block, &pool->holes);
  return true;
}


void cgl_stitch_undo(cgl_pool *pool) {
  struct {
    cgl_segment *segment;
    size_t at;
  } idle[BATCH];
  size_t count, undone;
  /* Found first, because undoing a mapping rearranges the list. */
  do {
    count = undone = 0;
    size_t parts;
    for (cgl_block *b = cgl_index_first(&pool->aliased, CGL_POOL_UNIT);
         b && count < BATCH; b = cgl_index_next(b))
      if (mapping_is_idle(b, &parts)) {
        idle[count].segment = b->segment;
        idle[count++].at = block_page_index(b);
      }
    for (size_t i = 0; i < count; i++)
      undone += mapping_undo(pool, idle[i].segment, idle[i].at);
  } while (undone && count == BATCH);
}


/* ---- stitching ---- */

/* A free part of one page; all zero: none. */
typedef struct piece {
  cgl_block *block; /* the extent that contains it */
  size_t from, to;  /* offsets in the segment */
} piece;


static size_t piece_length(piece p) {
  return p.to - p.from;
}


/* The part of a free extent at the end of the page in which it begins. */
static piece piece_tail(cgl_block *block) {
  size_t granularity = block->segment->pool->granularity;
  size_t to = (block_page_index(block) + 1) * granularity;
  bool fits = block->offset % granularity &&
              block->offset + block->bytes >= to && block_page(block)->of == 1;
  return fits ? (piece){block, block->offset, to} : (piece){0};
}


/* The part of a free extent at the beginning of the page in which it ends. */
static piece piece_head(cgl_block *block) {
  size_t granularity = block->segment->pool->granularity;
  size_t to = block->offset + block->bytes;
  size_t from = to / granularity * granularity;
  bool fits = from < to && from >= block->offset &&
              block->segment->pages[from / granularity].of == 1;
  return fits ? (piece){block, from, to} : (piece){0};
}


/* The shortest head of at least `bytes` in an extent other than `other`. */
static piece piece_find_head(const cgl_pool *pool, size_t bytes,
                             const cgl_block *other) {
  piece best = {0};
  cgl_block *block = cgl_index_first(&pool->free_to_all, bytes);
  for (int looks = 0; block && looks < LOOKS;
       looks++, block = cgl_index_next(block)) {
    piece p = block != other ? piece_head(block) : best;
    if (piece_length(p) >= bytes &&
        (!best.block || piece_length(p) < piece_length(best)))
      best = p;
  }
  return best;
}


/* The parts of a block to be made. */
typedef struct plan {
  piece tail, head; /* all zero: none */
  size_t middle;    /* pages of hole between them */
  size_t used;      /* bytes of the tail and the head that the block takes */
} plan;


/* The best plan with this tail (all zero: none). */
static plan plan_complete(const cgl_pool *pool, size_t bytes, piece tail) {
  size_t granularity = pool->granularity, left = bytes - piece_length(tail);
  size_t end = left % granularity;
  plan p = {tail, {0}, left / granularity, piece_length(tail)};
  if (end >= granularity / WORTH)
    p.head = piece_find_head(pool, end, tail.block);
  if (p.head.block)
    p.used += end;
  else
    p.middle += end != 0;
  return p;
}


/* The plan with the smallest hole, and of several the one that uses most bytes
   of pieces; `used` is 0 when no hole is of fewer than `most` pages.  Looks at
   extents of half a page and more, which have the longest tails. */
static plan plan_choose(const cgl_pool *pool, size_t bytes, size_t most) {
  plan best = plan_complete(pool, bytes, (piece){0});
  if (best.middle >= most)
    best = (plan){.middle = most};
  cgl_block *block = cgl_index_first(&pool->free_to_all, pool->granularity / 2);
  for (int looks = 0; block && looks < LOOKS;
       looks++, block = cgl_index_next(block)) {
    piece tail = piece_tail(block);
    if (piece_length(tail) >= pool->granularity / WORTH &&
        piece_length(tail) <= bytes) {
      plan p = plan_complete(pool, bytes, tail);
      if (p.middle < best.middle ||
          (p.middle == best.middle && p.middle < most && p.used > best.used))
        best = p;
    }
  }
  return best;
}


/* Maps the page of a piece at page `at` of the hole's segment, too, and makes
   the piece free there; false when that fails. */
static bool piece_move(cgl_pool *pool, piece p, cgl_block *hole, size_t at) {
  size_t granularity = pool->granularity, bytes = piece_length(p);
  cgl_segment *from = p.block->segment, *to = hole->segment;
  size_t here = p.from / granularity, skip = p.from % granularity;
  CUdeviceptr address = to->base + at * granularity;
  if (!cgl_index_reserve(pool, 6) ||
      cgl_driver_of(pool)->cuMemMap(address, granularity, 0,
                                    from->pages[here].handle, 0))
    return false;
  if (cgl_pages_open(pool, address, granularity)) {
    cgl_driver_of(pool)->cuMemUnmap(address, granularity);
    return false;
  }
  ring_add(from, here, to, at);
  block_put(pool, block_isolate(pool, p.block, p.from, p.to), &pool->aliased);
  cgl_block *block =
      block_isolate(pool, hole, at * granularity, (at + 1) * granularity);
  cgl_block *free = skip ? cgl_index_cut(pool, block, skip) : block;
  if (skip)
    block_put(pool, block, &pool->aliased);
  if (bytes < free->bytes)
    block_put(pool, cgl_index_cut(pool, free, bytes), &pool->aliased);
  free->free_after = free->tick = 0;
  block_put(pool, free, &pool->free_to_all);
  return true;
}


bool cgl_stitch(cgl_pool *pool, size_t bytes, size_t most) {
  size_t granularity = pool->granularity;
  plan p = plan_choose(pool, bytes, most);
  if (!p.used)
    return false;
  size_t room = (p.middle + (p.head.block != NULL)) * granularity;
  cgl_block *hole = p.tail.block ? p.tail.block->next : NULL;
  bool in_place = hole && hole->lane == &pool->holes && hole->bytes >= room &&
                  hole->offset == p.tail.to;
  bool moves = p.tail.block && !in_place;
  if (!in_place)
    hole = cgl_index_find(&pool->holes, room + (moves ? granularity : 0));
  if (!hole)
    return false;
  /* The head first: the hole before it stays the same extent. */
  size_t at = block_page_index(hole);
  return (!p.head.block ||
          piece_move(pool, p.head, hole, at + moves + p.middle)) &&
         (!moves || piece_move(pool, p.tail, hole, at));
}
