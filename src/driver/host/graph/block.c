/* Memory of alloc nodes.  A block's address is fixed when its node is made;
   it is committed by the first launch and stays so while a graph, an
   executable or an unfreed allocation names it, so a replay maps nothing.
   Whether it counts as allocated is decided by the calls, in their order. */
#include "driver/host/graph/graph.h"

#include <stdlib.h>

enum { BUCKETS = 1024 };

static host_block *buckets[BUCKETS]; /* by address, under host_lock */
static host_block_stats stats;


static host_block **bucket_of(CUdeviceptr address) {
  return &buckets[(address >> 9) * 0x9e3779b97f4a7c15u >> 54];
}


CUresult host_block_new(host_block **out, size_t bytes) {
  host_block *block = calloc(1, sizeof *block);
  if (!block)
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = host_memory_reserve(&block->address, bytes);
  if (result != CUDA_SUCCESS) {
    free(block);
    return result;
  }
  block->bytes = bytes;
  block->refs = 1;
  host_block **bucket = bucket_of(block->address);
  block->next = *bucket;
  *bucket = block;
  *out = block;
  return CUDA_SUCCESS;
}


host_block *host_block_find(CUdeviceptr address) {
  host_block *block = *bucket_of(address);
  while (block && block->address != address)
    block = block->next;
  return block;
}


void host_block_retain(host_block *block) {
  block->refs++;
}


static void block_decommit(host_block *block) {
  if (!block->committed)
    return;
  host_memory_decommit(block->address);
  block->committed = false;
  stats.reserved -= block->bytes;
}


void host_block_release(host_block *block) {
  if (--block->refs > 0)
    return;
  block_decommit(block);
  host_memory_unreserve(block->address);
  host_block **link = bucket_of(block->address);
  while (*link != block)
    link = &(*link)->next;
  *link = block->next;
  free(block);
}


CUresult host_block_commit(host_block *block) {
  if (block->committed)
    return CUDA_SUCCESS;
  HOST_TRY(host_memory_commit(block->address));
  block->committed = true;
  stats.reserved += block->bytes;
  if (stats.reserved_high < stats.reserved)
    stats.reserved_high = stats.reserved;
  return CUDA_SUCCESS;
}


void host_block_set_allocated(host_block *block, bool allocated) {
  if (block->allocated == allocated)
    return;
  block->allocated = allocated;
  if (allocated) {
    block->refs++;
    stats.used += block->bytes;
    if (stats.used_high < stats.used)
      stats.used_high = stats.used;
  } else {
    stats.used -= block->bytes;
    host_block_release(block);
  }
}


bool host_block_freed_in(const host_block *block, CUgraph graph) {
  if (block->frees == 0)
    return false;
  for (CUgraphNode n = graph->first; n; n = n->next)
    if (n->op.kind == HOST_OP_FREE && n->block == block)
      return true;
  return false;
}


CUresult host_block_free(CUdeviceptr address) {
  host_block *block = host_block_find(address);
  if (!block)
    return CUDA_ERROR_NOT_FOUND;
  if (!block->allocated)
    return CUDA_ERROR_INVALID_VALUE;
  host_block_set_allocated(block, false);
  return CUDA_SUCCESS;
}


void host_block_stats_get(host_block_stats *out) {
  *out = stats;
}


void host_block_trim(void) {
  for (int i = 0; i < BUCKETS; i++)
    for (host_block *block = buckets[i]; block; block = block->next)
      if (!block->allocated && block->execs == 0)
        block_decommit(block);
}
