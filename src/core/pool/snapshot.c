/* Snapshots: a copy of a pool's segments and blocks. */
#include "core/pool/pool.h"

#include <stdlib.h>
#include <string.h>


const char *cgl_block_state_name(cgl_block_state state) {
  static const char *const words[] = {
#define X(word) #word,
      CGL_BLOCK_STATES(X)
#undef X
  };
  return (unsigned)state < sizeof words / sizeof *words ? words[state]
                                                        : "unknown";
}


static cgl_block_state block_state(const cgl_block *block) {
  const cgl_pool *pool = block->segment->pool;
  if (!block->lane)
    return CGL_BLOCK_live;
  if (block->lane == &pool->holes || block->lane == &pool->aliased)
    return CGL_BLOCK_unmapped;
  if (block->lane->scratch && atomic_load(&pool->captures))
    return CGL_BLOCK_scratch;
  return cgl_index_is_over(block) ? CGL_BLOCK_free : CGL_BLOCK_pending;
}


/* Whether a snapshot shows the extent; not the unused end of a segment. */
static bool block_is_shown(const cgl_block *block) {
  return block->next || block->lane != &block->segment->pool->holes;
}


static void block_describe(const cgl_block *block, size_t segment,
                           cgl_block_info *info) {
  memset(info, 0, sizeof *info);
  info->segment = segment;
  info->address = block->segment->base + block->offset;
  info->bytes = block->bytes;
  info->state = block_state(block);
  info->file = "";
  uint64_t stream = block->lane ? block->lane->stream : block->stream;
  if (info->state != CGL_BLOCK_free && info->state != CGL_BLOCK_unmapped &&
      stream != CGL_NO_STREAM)
    info->stream = stream;
  if (info->state != CGL_BLOCK_live)
    return;
  info->requested = block->requested;
  info->number = block->number;
  info->in_capture = block->captured;
  info->file = block->site.file ? block->site.file : "";
  info->line = block->site.file ? block->site.line : 0;
}


/* In one allocation: the head, the segments, the blocks. */
static cgl_snapshot *snapshot_take(const cgl_pool *pool) {
  size_t nsegments = 0, nblocks = 0;
  for (const cgl_block *b = NULL; (b = cgl_index_walk(pool, b));) {
    nsegments += !b->prev;
    nblocks += block_is_shown(b);
  }
  cgl_snapshot *snapshot =
      malloc(sizeof *snapshot + nsegments * sizeof(cgl_segment_info) +
             nblocks * sizeof(cgl_block_info));
  if (!snapshot)
    return NULL;
  cgl_segment_info *segments = (cgl_segment_info *)(snapshot + 1);
  cgl_block_info *blocks = (cgl_block_info *)(segments + nsegments);
  *snapshot = (cgl_snapshot){nsegments, nblocks, segments, blocks};
  size_t n = 0;
  for (const cgl_block *b = NULL; (b = cgl_index_walk(pool, b));) {
    if (!b->prev)
      segments[n++] = (cgl_segment_info){b->segment->base, 0, 0};
    if (!block_is_shown(b))
      continue;
    block_describe(b, n - 1, blocks);
    segments[n - 1].bytes += b->bytes;
    if (blocks++->state != CGL_BLOCK_unmapped)
      segments[n - 1].mapped += b->bytes;
  }
  return snapshot;
}


cgl_status cgl_pool_snapshot(cgl_pool *pool, cgl_snapshot **out) {
  cgl_latch_take(&pool->lock);
  *out = snapshot_take(pool);
  cgl_latch_drop(&pool->lock);
  return *out ? CGL_OK
              : cgl_fail(CGL_ERROR_NO_MEMORY, "pool:snapshot",
                         "no memory for a snapshot");
}


void cgl_snapshot_free(cgl_snapshot *snapshot) {
  free(snapshot);
}
