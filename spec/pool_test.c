/* Pools from C, on the device that $CGRAPHLUA_DEVICE names: what a snapshot
   shows, and who may have a freed block when. */
#include "cgraphlua.h"
#include "core/memory.h"
#include "tap.h"

#include <string.h>

enum { MIB = 1 << 20 };

static cgl_context *context;
static cgl_stream *stream, *other;


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
  cgl_pool_create(context, &pool);
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
             info->stream && !info->requested && !*info->file,
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
  tap_ok(!cgl_buffer_fill(buffer, stream, &value), "filled");
}


static bool holds(cgl_buffer *buffer, unsigned char value) {
  unsigned char ends[2] = {0, 0};
  size_t last = cgl_buffer_bytes(buffer) - 1;
  return !cgl_buffer_download(buffer, stream, 0, &ends[0], 1) &&
         !cgl_buffer_download(buffer, stream, last, &ends[1], 1) &&
         ends[0] == value && ends[1] == value;
}


/* Half of it is freed in pieces, and larger ones are asked for. */
static void moves_memory(void) {
  enum { COUNT = 32 };
  cgl_buffer *small[COUNT], *large[COUNT / 4];
  cgl_pool *pool = NULL;
  bool right = true;
  cgl_pool_create(context, &pool);
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
  cgl_pool_create(context, &pool);
  for (int i = 0; i < 2000; i++)
    cgl_buffer_release(bytes_of(i % 2 ? stream : other, pool, 3 * MIB));
  tap_ok(reserved(pool) <= 8 * (size_t)MIB && cgl_pool_is_valid(pool),
         "two streams in turn take two blocks' memory at most");
  cgl_pool_release(pool);
}


int main(void) {
  if (cgl_context_open(NULL, &context) ||
      cgl_stream_create(context, 0, &stream) ||
      cgl_stream_create(context, 0, &other)) {
    tap_ok(false, "a device: %s", cgl_last_error()->message);
    return tap_done();
  }
  snapshots();
  moves_memory();
  settles();
  cgl_stream_release(stream);
  cgl_stream_release(other);
  cgl_context_release(context);
  tap_ok(!cgl_live("all"), "nothing is alive at the end");
  return tap_done();
}
