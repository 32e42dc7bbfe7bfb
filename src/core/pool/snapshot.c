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
  if (block->extent == CGL_EXTENT_LIVE)
    return CGL_BLOCK_live;
  if (block->extent == CGL_EXTENT_HOLE || block->extent == CGL_EXTENT_ALIASED)
    return CGL_BLOCK_unmapped;
  if (block->lane->scratch && atomic_load(&pool->captures))
    return CGL_BLOCK_scratch;
  return cgl_index_is_over(block) ? CGL_BLOCK_free : CGL_BLOCK_pending;
}


/* Whether a snapshot shows the extent; not the unused end of a segment. */
static bool block_is_shown(const cgl_block *block) {
  return block && (block->next || block->extent != CGL_EXTENT_HOLE);
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


static int segment_compare(const void *a, const void *b) {
  const cgl_segment *x = *(cgl_segment *const *)a;
  const cgl_segment *y = *(cgl_segment *const *)b;
  return x->base < y->base ? -1 : x->base > y->base;
}


/* In one allocation: the head, the segments, the blocks. */
static cgl_snapshot *snapshot_take(const cgl_pool *pool) {
  size_t nsegments = 0, nblocks = 0;
  for (const cgl_segment *s = pool->segments; s; s = s->next) {
    nsegments++;
    for (const cgl_block *block = s->first; block_is_shown(block);
         block = block->next)
      nblocks++;
  }
  const cgl_segment **order = malloc((nsegments + 1) * sizeof *order);
  cgl_snapshot *snapshot =
      malloc(sizeof *snapshot + nsegments * sizeof(cgl_segment_info) +
             nblocks * sizeof(cgl_block_info));
  if (!order || !snapshot) {
    free(order);
    free(snapshot);
    return NULL;
  }
  cgl_segment_info *segments = (cgl_segment_info *)(snapshot + 1);
  cgl_block_info *blocks = (cgl_block_info *)(segments + nsegments);
  *snapshot = (cgl_snapshot){nsegments, nblocks, segments, blocks};
  size_t n = 0;
  for (const cgl_segment *s = pool->segments; s; s = s->next)
    order[n++] = s;
  qsort(order, n, sizeof *order, segment_compare);
  for (size_t i = 0; i < n; i++) {
    segments[i] = (cgl_segment_info){order[i]->base, 0, order[i]->mapped};
    for (const cgl_block *b = order[i]->first; block_is_shown(b); b = b->next) {
      block_describe(b, i, blocks++);
      segments[i].bytes += b->bytes;
    }
  }
  free(order);
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
