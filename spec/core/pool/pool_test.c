/* Pools from C, on the device that $CGRAPHLUA_DEVICE names: what a snapshot
   shows, and who may have a freed block when. */
#include "cgraphlua.h"
#include "core/memory/memory.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

enum { MIB = 1 << 20 };

static cgl_context *context;
static cgl_stream *stream, *other;


/* Each block has pages of its own, which go when it is freed. */
static bool never_reuses(void) {
  const char *guard = getenv("CGRAPHLUA_HOST_GUARD");
  return guard && !strcmp(guard, "1");
}


static cgl_buffer *bytes_of(cgl_stream *on, cgl_pool *pool, size_t bytes) {
  cgl_buffer *buffer = NULL;
  if (cgl_buffer_create(on, pool, CGL_TYPE_uint8, bytes, &buffer))
    fprintf(stderr, "%s\n", cgl_last_error()->message);
  return buffer;
}


/* Whether the blocks cover the segments in order, without gap or overlap. */
static bool covers(const cgl_snapshot *snapshot) {
  size_t at = 0;
  for (size_t i = 0; i < snapshot->nsegments; i++) {
    const cgl_segment_info *segment = &snapshot->segments[i];
    uint64_t address = segment->address;
    size_t mapped = 0;
    for (; at < snapshot->nblocks && snapshot->blocks[at].segment == i; at++) {
      const cgl_block_info *block = &snapshot->blocks[at];
      if (block->address != address)
        return false;
      address += block->bytes;
      mapped += block->state == CGL_BLOCK_unmapped ? 0 : block->bytes;
    }
    if (address != segment->address + segment->bytes ||
        mapped != segment->mapped)
      return false;
  }
  return at == snapshot->nblocks;
}


static const cgl_block_info *at(const cgl_snapshot *snapshot,
                                uint64_t address) {
  for (size_t i = 0; i < snapshot->nblocks; i++)
    if (address - snapshot->blocks[i].address < snapshot->blocks[i].bytes)
      return &snapshot->blocks[i];
  return NULL;
}


static void snapshots(void) {
  cgl_pool *pool = NULL;
  cgl_snapshot *snapshot = NULL;
  cgl_pool_create(context, NULL, &pool);
  tap_ok(!cgl_pool_snapshot(pool, &snapshot) && !snapshot->nsegments &&
             !snapshot->nblocks,
         "an empty pool has an empty snapshot");
  cgl_snapshot_free(snapshot);
  cgl_set_site("some.lua", 7);
  cgl_buffer *a = bytes_of(stream, pool, 1000);
  cgl_set_site("other.lua", 8);
  cgl_buffer *b = bytes_of(stream, pool, 30 * MIB);
  cgl_set_site(NULL, 0);
  uint64_t address = cgl_buffer_address(b);
  tap_ok(!cgl_pool_snapshot(pool, &snapshot) && covers(snapshot),
         "the blocks of a snapshot cover its segments");
  const cgl_block_info *info = at(snapshot, cgl_buffer_address(a));
  tap_ok(info && info->state == CGL_BLOCK_live && info->requested == 1000 &&
             info->bytes >= 1000 && info->number == 1 && !info->in_capture &&
             !strcmp(info->file, "some.lua") && info->line == 7,
         "a live block tells size, number and line");
  cgl_snapshot_free(snapshot);
  cgl_buffer_release(b);
  cgl_pool_snapshot(pool, &snapshot);
  info = at(snapshot, address);
  tap_ok(covers(snapshot) && info && info->state == CGL_BLOCK_pending &&
             (info->stream || never_reuses()) && !info->requested &&
             !*info->file,
         "a freed block belongs to its stream");
  cgl_snapshot_free(snapshot);
  cgl_context_synchronize(context);
  cgl_pool_snapshot(pool, &snapshot);
  info = at(snapshot, address);
  tap_ok(covers(snapshot) && info && info->state == CGL_BLOCK_free &&
             !info->stream,
         "and to anybody after the device was waited for");
  cgl_snapshot_free(snapshot);
  cgl_buffer_release(a);
  cgl_pool_release(pool);
  tap_ok(!strcmp(cgl_block_state_name(CGL_BLOCK_scratch), "scratch") &&
             !strcmp(cgl_block_state_name((cgl_block_state)99), "unknown"),
         "states have names");
}


static size_t reserved(cgl_pool *pool) {
  cgl_pool_stats stats;
  cgl_pool_get_stats(pool, &stats);
  return stats.reserved;
}


static void fill(cgl_buffer *buffer, unsigned char value) {
  if (cgl_buffer_fill(buffer, stream, &value))
    tap_ok(false, "a fill: %s", cgl_last_error()->message);
}


static bool holds(cgl_buffer *buffer, unsigned char value) {
  unsigned char ends[2] = {0, 0};
  size_t last = cgl_buffer_bytes(buffer) - 1;
  return !cgl_buffer_download(buffer, stream, 0, &ends[0], 1) &&
         !cgl_buffer_download(buffer, stream, last, &ends[1], 1) &&
         ends[0] == value && ends[1] == value;
}


static bool holds_all(cgl_buffer *buffer, unsigned char value) {
  size_t bytes = cgl_buffer_bytes(buffer);
  unsigned char *copy = malloc(bytes);
  bool right = copy && !cgl_buffer_download(buffer, stream, 0, copy, bytes);
  for (size_t i = 0; right && i < bytes; i++)
    right = copy[i] == value;
  free(copy);
  return right;
}


/* Streams that write both halves of pages at once do not disturb each other. */
static bool write_at_once(cgl_buffer *a, cgl_buffer *b, cgl_buffer *c) {
  bool right = true;
  for (unsigned char i = 1; i < 20 && right; i++) {
    unsigned char one = i, two = (unsigned char)(i + 100);
    right =
        !cgl_buffer_fill(a, stream, &one) && !cgl_buffer_fill(b, other, &two) &&
        !cgl_buffer_fill(c, other, &one) && !cgl_context_synchronize(context) &&
        holds_all(a, one) && holds_all(b, two) && holds_all(c, one);
  }
  return right;
}


/* Blocks of a page and a half each: two that are freed leave a page each, and
   half of one that ends beside a live block, and half of one that begins so. */
static void stitches(void) {
  enum { COUNT = 6 };
  cgl_buffer *block[COUNT], *large, *again[2];
  cgl_pool *pool = NULL;
  cgl_pool_create(context, NULL, &pool);
  size_t half = pool->granularity / 2;
  for (int i = 0; i < COUNT; i++) {
    block[i] = bytes_of(stream, pool, 3 * half);
    fill(block[i], (unsigned char)i);
  }
  size_t before = reserved(pool);
  cgl_buffer_release(block[1]);
  cgl_buffer_release(block[4]);
  cgl_context_synchronize(context);
  large = bytes_of(stream, pool, 6 * half);
  fill(large, 100);
  tap_ok(reserved(pool) == before && cgl_pool_is_valid(pool),
         "a block is made of the pages that two left, and of halves of others");
  tap_ok(holds(block[0], 0) && holds(block[2], 2) && holds(block[3], 3) &&
             holds(block[5], 5) && holds(large, 100),
         "whose other halves keep what they hold");
  tap_ok(write_at_once(large, block[0], block[5]) &&
             write_at_once(large, block[2], block[3]),
         "also when several streams write to both");
  for (int i = 0; i < COUNT; i++)
    if (i != 1 && i != 4)
      fill(block[i], (unsigned char)i);
  cgl_snapshot *snapshot = NULL;
  tap_ok(!cgl_pool_snapshot(pool, &snapshot) && covers(snapshot),
         "a snapshot counts memory once");
  cgl_snapshot_free(snapshot);
  cgl_buffer_release(block[2]);
  block[2] = bytes_of(other, pool, 3 * half);
  cgl_buffer_release(large);
  cgl_context_synchronize(context);
  for (int i = 0; i < 2; i++) {
    again[i] = bytes_of(other, pool, 3 * half);
    fill(again[i], (unsigned char)(50 + i));
  }
  cgl_context_synchronize(context);
  tap_ok(holds(block[0], 0) && holds(block[3], 3) && holds(block[5], 5) &&
             holds(again[0], 50) && holds(again[1], 51) &&
             cgl_pool_is_valid(pool),
         "and when it is gone its memory serves again");
  for (int i = 0; i < COUNT; i++)
    if (i != 1 && i != 4)
      cgl_buffer_release(block[i]);
  cgl_buffer_release(again[0]);
  cgl_buffer_release(again[1]);
  tap_ok(!cgl_pool_trim(pool, NULL) && !reserved(pool) &&
             cgl_pool_is_valid(pool),
         "trim returns all of it");
  cgl_pool_release(pool);
}


/* Half of it is freed in pieces, and larger ones are asked for. */
static void moves_memory(void) {
  enum { COUNT = 32 };
  cgl_buffer *small[COUNT], *large[COUNT / 4];
  cgl_pool *pool = NULL;
  bool right = true;
  cgl_pool_create(context, NULL, &pool);
  for (int i = 0; i < COUNT; i++)
    small[i] = bytes_of(stream, pool, 4 * MIB);
  size_t before = reserved(pool);
  tap_ok(before == COUNT * (size_t)4 * MIB, "a pool takes what is asked for");
  for (int i = 1; i < COUNT; i += 2)
    fill(small[i], (unsigned char)i);
  for (int i = 0; i < COUNT; i += 2)
    cgl_buffer_release(small[i]);
  for (int i = 0; i < COUNT / 4; i++) {
    large[i] = bytes_of(stream, pool, 8 * MIB);
    fill(large[i], (unsigned char)(100 + i));
  }
  tap_ok(cgl_pool_is_valid(pool), "the pool is valid");
  tap_ok(reserved(pool) == before,
         "larger blocks take the memory of smaller ones that were freed");
  for (int i = 0; i < COUNT / 4; i++)
    right = right && holds(large[i], (unsigned char)(100 + i));
  for (int i = 1; i < COUNT; i += 2)
    right = right && holds(small[i], (unsigned char)i);
  tap_ok(right, "and nobody else's");
  for (int i = 0; i < COUNT / 4; i++)
    cgl_buffer_release(large[i]);
  size_t bytes = 0;
  tap_ok(!cgl_pool_trim(pool, &bytes) && bytes == before / 2 &&
             reserved(pool) == before / 2 && cgl_pool_is_valid(pool),
         "trim returns every page without a live block");
  for (int i = 1; i < COUNT; i += 2)
    cgl_buffer_release(small[i]);
  tap_ok(!cgl_pool_trim(pool, &bytes) && !reserved(pool) &&
             cgl_pool_is_valid(pool),
         "and everything in the end");
  cgl_pool_release(pool);
}


/* A pool that two streams take from in turn does not wait for ever. */
static void settles(void) {
  cgl_pool *pool = NULL;
  cgl_pool_create(context, NULL, &pool);
  for (int i = 0; i < 2000; i++)
    cgl_buffer_release(bytes_of(i % 2 ? stream : other, pool, 3 * MIB));
  tap_ok(reserved(pool) <= 8 * (size_t)MIB && cgl_pool_is_valid(pool),
         "two streams in turn take two blocks' memory at most");
  cgl_pool_release(pool);
}


/* ---- options ---- */

static void limits_itself(void) {
  cgl_pool_desc desc = {.max_bytes = 8 * MIB};
  cgl_pool *pool = NULL;
  cgl_buffer *buffer = NULL, *more = NULL;
  tap_ok(!cgl_pool_create(context, &desc, &pool), "a pool with a limit");
  buffer = bytes_of(stream, pool, 6 * MIB);
  tap_ok(cgl_buffer_create(stream, pool, CGL_TYPE_uint8, 3 * MIB, &more) ==
                 CUDA_ERROR_OUT_OF_MEMORY &&
             !more && strstr(cgl_last_error()->message, "may take 8388608"),
         "takes no more");
  cgl_buffer_release(buffer);
  more = bytes_of(stream, pool, 8 * MIB);
  tap_ok(more && cgl_pool_is_valid(pool), "and all of it");
  cgl_buffer_release(more);
  cgl_pool_release(pool);
}


static void does_not_split(void) {
  cgl_pool_desc desc = {.no_split = true};
  cgl_pool *pool = NULL;
  cgl_pool_create(context, &desc, &pool);
  cgl_buffer *a = bytes_of(stream, pool, 100), *b = bytes_of(stream, pool, 100);
  uint64_t address = cgl_buffer_address(a);
  tap_ok(address % (2 * MIB) == 0 && cgl_buffer_address(b) % (2 * MIB) == 0 &&
             reserved(pool) == 4 * MIB,
         "blocks that are not split have pages of their own");
  cgl_buffer_release(a);
  a = bytes_of(stream, pool, 2000);
  tap_ok(cgl_buffer_address(a) == address && cgl_pool_is_valid(pool),
         "and serve again whole");
  cgl_buffer_release(b);
  cgl_buffer_release(a);
  cgl_context_synchronize(context);
  a = bytes_of(stream, pool, 4 * MIB);
  tap_ok(reserved(pool) == 4 * MIB && cgl_pool_is_valid(pool),
         "their pages serve larger ones");
  cgl_buffer_release(a);
  cgl_pool_release(pool);
}


static void lends(void) {
  cgl_pool_desc desc = {.use_on_oom = true};
  cgl_pool *pool = NULL, *private = NULL;
  cgl_block *block = NULL;
  cgl_pool_create(context, &desc, &pool);
  cgl_pool_create(context, NULL, &private);
  cgl_buffer_release(bytes_of(stream, private, 8 * MIB));
  tap_ok(cgl_pools_alloc_existing(stream, 4 * MIB, &block) ==
             CUDA_ERROR_OUT_OF_MEMORY,
         "pools keep their memory");
  cgl_buffer_release(bytes_of(stream, pool, 8 * MIB));
  tap_ok(!cgl_pools_alloc_existing(stream, 4 * MIB, &block) &&
             block->segment->pool == pool && cgl_pool_is_valid(pool),
         "but for those that lend it");
  cgl_pool_release(pool);
  cgl_pool_free(block, false);
  cgl_pool_release(private);
}


typedef struct engine {
  cgl_stream *stream;
  int live, made, ended;
  size_t bytes, astray; /* this far from where an address may be */
  bool fails;
} engine;


static int engine_allocate(void *user, uint64_t *address, size_t bytes,
                           void *custream) {
  engine *e = user;
  const cgl_driver *driver = cgl_context_driver(context);
  CUdeviceptr at = 0;
  if (e->fails || custream != cgl_stream_handle(e->stream))
    return CUDA_ERROR_NOT_PERMITTED;
  int result = driver->cuMemAlloc(&at, bytes);
  *address = at + e->astray;
  e->bytes += result ? 0 : bytes;
  e->live += !result;
  e->made += !result;
  return result;
}


static void engine_release(void *user, uint64_t address, size_t bytes) {
  engine *e = user;
  const cgl_driver *driver = cgl_context_driver(context);
  e->live -= !driver->cuMemFree(address - e->astray);
  e->bytes -= bytes;
}


static void engine_end(void *user) {
  ((engine *)user)->ended++;
}


static void takes_from_an_engine(void) {
  engine e = {.stream = stream};
  cgl_allocator allocator = {engine_allocate, engine_release, engine_end, &e};
  cgl_pool_desc desc = {.allocator = &allocator};
  cgl_pool *pool = NULL;
  cgl_pool_create(context, &desc, &pool);
  memset(&allocator, 0, sizeof allocator);
  cgl_buffer *a = bytes_of(stream, pool, 1000), *b = bytes_of(stream, pool, 9);
  fill(a, 5);
  tap_ok(e.made == 1 && e.bytes == 2 * MIB && holds(a, 5) &&
             cgl_pool_is_valid(pool),
         "an engine's memory is divided");
  e.fails = true;
  cgl_buffer *none = NULL;
  tap_ok(cgl_buffer_create(stream, pool, CGL_TYPE_uint8, 30 * MIB, &none) ==
                 CUDA_ERROR_NOT_PERMITTED &&
             !none && cgl_pool_is_valid(pool),
         "its failure is the allocation's");
  e.fails = false;
  e.astray = 8;
  tap_ok(cgl_buffer_create(stream, pool, CGL_TYPE_uint8, 30 * MIB, &none) ==
                 CUDA_ERROR_MISALIGNED_ADDRESS &&
             !none && e.live == 1 && cgl_pool_is_valid(pool),
         "memory at an odd address is given back");
  e.astray = 0;
  cgl_buffer *c = bytes_of(stream, pool, 30 * MIB);
  cgl_buffer_release(c);
  size_t bytes = 0;
  tap_ok(e.live == 2 && !cgl_pool_trim(pool, &bytes) && bytes == 30 * MIB &&
             e.live == 1 && cgl_pool_is_valid(pool),
         "trim returns it");
  cgl_buffer_release(b);
  cgl_pool_release(pool);
  tap_ok(holds(a, 5) && !e.ended, "blocks outlive the pool's object");
  cgl_buffer_release(a);
  tap_ok(!e.live && !e.bytes && e.ended == 1, "and end with the last of them");
  allocator.allocate = engine_allocate;
  tap_ok(cgl_pool_create(context, &desc, &pool) == CGL_ERROR_INVALID_ARGUMENT,
         "an allocator has both halves");
}


typedef struct guest {
  cgl_buffer *held, *own; /* own: what it allocates while it is asked */
  int asked;
} guest;


static void leave(void *user, cgl_pool *pool, size_t bytes, size_t wanted) {
  guest *g = user;
  g->asked++;
  tap_ok(bytes == 10 * (size_t)MIB && wanted == 8 * (size_t)MIB,
         "the function learns what is taken and wanted");
  cgl_buffer_release(g->held);
  g->held = NULL;
  cgl_pool_trim(pool, NULL);
  g->own = bytes_of(stream, pool, 12 * MIB);
}


static void asks_first(void) {
  cgl_pool *pool = NULL;
  cgl_pool_create(context, NULL, &pool);
  guest g = {NULL, NULL, 0};
  cgl_pool_set_limit(pool, 10 * MIB, leave, &g);
  g.held = bytes_of(stream, pool, 10 * MIB);
  tap_ok(g.held && !g.asked, "up to its soft limit a pool asks nobody");
  cgl_buffer *b = bytes_of(stream, pool, 8 * MIB);
  tap_ok(b && g.asked == 1 && !g.held && reserved(pool) == 20 * MIB,
         "room is made before a soft limit is passed");
  tap_ok(g.own, "by a function that may allocate itself, and is asked once");
  cgl_pool_set_limit(pool, 0, NULL, NULL);
  cgl_buffer *c = bytes_of(stream, pool, 8 * MIB);
  tap_ok(c && g.asked == 1, "without a limit it is asked no more");
  cgl_buffer_release(g.own);
  cgl_buffer_release(b);
  cgl_buffer_release(c);
  cgl_pool_release(pool);
}


/* Gives back what another stream had, and waits for that. */
static void hand_over(void *user, cgl_pool *pool, size_t bytes, size_t wanted) {
  guest *g = user;
  (void)pool, (void)bytes, (void)wanted;
  g->asked++;
  cgl_buffer_release(g->held);
  cgl_context_synchronize(context);
}


static void takes_what_was_handed_over(void) {
  cgl_pool *pool = NULL;
  cgl_pool_create(context, NULL, &pool);
  guest g = {bytes_of(other, pool, 10 * MIB), NULL, 0};
  fill(g.held, 1);
  cgl_pool_set_limit(pool, 10 * MIB, hand_over, &g);
  cgl_buffer *b = bytes_of(stream, pool, 10 * MIB);
  tap_ok(b && g.asked == 1 && reserved(pool) == 10 * MIB,
         "what the function handed over is taken");
  cgl_buffer_release(b);
  cgl_pool_release(pool);
}


static void names_holders(void) {
  cgl_pool_desc desc = {.max_bytes = 4 * MIB};
  cgl_pool *pool = NULL;
  cgl_pool_create(context, &desc, &pool);
  cgl_buffer *held[3], *none = NULL;
  for (int i = 0; i < 3; i++) {
    cgl_set_site("holder.lua", i ? 12 : 11);
    held[i] = bytes_of(stream, pool, MIB);
  }
  cgl_set_site(NULL, 0);
  cgl_buffer_create(stream, pool, CGL_TYPE_uint8, 4 * MIB, &none);
  const char *message = cgl_last_error()->message;
  const char *first = strstr(message, "2097152 bytes in 2 buffers made at "
                                      "holder.lua:12");
  const char *second = strstr(message, "1048576 bytes in 1 buffer made at "
                                       "holder.lua:11");
  tap_ok(!none && first && second && first < second &&
             strstr(message, "(asked): 4194304 bytes, 3145728 of them in use"),
         "the failure lists pools and holders: %s", message);
  for (int i = 0; i < 3; i++)
    cgl_buffer_release(held[i]);
  tap_ok(cgl_buffer_create(stream, NULL, CGL_TYPE_uint8, (size_t)1 << 60,
                           &none) == CUDA_ERROR_OUT_OF_MEMORY &&
             !strstr(cgl_last_error()->message, "pool 0x"),
         "but not for what no device has");
  cgl_pool_release(pool);
}


/* Sizes that would wrap around are outside like all others. */
static void stays_inside(void) {
  cgl_buffer *a = bytes_of(stream, NULL, 100), *view = NULL;
  char byte = 0;
  tap_ok(cgl_buffer_view(a, 1, SIZE_MAX, &view) == CGL_ERROR_INVALID_ARGUMENT &&
             cgl_buffer_view(a, 101, 0, &view) == CGL_ERROR_INVALID_ARGUMENT &&
             !view,
         "no view reaches past its buffer");
  tap_ok(cgl_buffer_upload(a, stream, SIZE_MAX, &byte, 1) ==
                 CGL_ERROR_INVALID_ARGUMENT &&
             cgl_buffer_download(a, stream, SIZE_MAX, &byte, 1) ==
                 CGL_ERROR_INVALID_ARGUMENT &&
             cgl_buffer_upload(a, stream, 100, &byte, 1) ==
                 CGL_ERROR_INVALID_ARGUMENT,
         "nor does a copy");
  cgl_buffer *none = bytes_of(stream, NULL, 0);
  const size_t wide[] = {(size_t)1 << 32, (size_t)1 << 32};
  tap_ok(cgl_buffer_set_shape(none, wide, 2) == CGL_ERROR_INVALID_ARGUMENT,
         "nor a shape");
  cgl_buffer_release(none);
  cgl_buffer_release(a);
}


int main(void) {
  if (cgl_context_open(NULL, &context) ||
      cgl_stream_create(context, 0, &stream) ||
      cgl_stream_create(context, 0, &other)) {
    tap_ok(false, "a device: %s", cgl_last_error()->message);
    return tap_done();
  }
  stays_inside();
  snapshots();
  moves_memory();
  settles();
  limits_itself();
  if (never_reuses()) {
    tap_skip("blocks that share pages or are lent", "each has its own pages");
  } else {
    stitches();
    does_not_split();
    lends();
    takes_what_was_handed_over();
    names_holders();
  }
  takes_from_an_engine();
  asks_first();
  cgl_buffer *last = bytes_of(stream, NULL, 100);
  cgl_stream_release(stream);
  cgl_stream_release(other);
  cgl_context_release(context);
  tap_ok(cgl_live("context") == 1, "a buffer keeps its device open");
  cgl_buffer_release(last);
  tap_ok(!cgl_live("all"), "nothing is alive at the end");
  return tap_done();
}
