/* Checkpoints of a pool: a restore keeps the blocks of the checkpoint and takes
   later blocks back.  Blocks are numbered as they are allocated, so a live
   block belongs to a checkpoint when its number is not above the checkpoint's.
   Invariant: pool->pinned is the highest number of the live checkpoints; a
   dropped block has no owner and a number not above pool->pinned. */
#include "core/pool/pool.h"

#include <stdlib.h>

struct cgl_checkpoint {
  cgl_object object;
  cgl_pool *pool;  /* retained */
  uint64_t number; /* the pool's count of allocations at the checkpoint */
  uint64_t made;   /* the pool's count of ended captures at the checkpoint */
  cgl_checkpoint *next;
};


static cgl_status refuse_capture(const cgl_pool *pool, const char *operation) {
  if (!atomic_load(&pool->capturing))
    return CGL_OK;
  cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
           "a capture into the pool is underway");
  return cgl_fail_hint("do this before the capture begins or after it has "
                       "ended");
}


static void checkpoint_destroy(cgl_object *object) {
  cgl_checkpoint *checkpoint = (cgl_checkpoint *)object;
  cgl_pool *pool = checkpoint->pool;
  cgl_latch_take(&pool->lock);
  cgl_checkpoint **link = &pool->checkpoints;
  while (*link != checkpoint)
    link = &(*link)->next;
  *link = checkpoint->next;
  pool->pinned = 0;
  for (const cgl_checkpoint *c = pool->checkpoints; c; c = c->next)
    if (c->number > pool->pinned)
      pool->pinned = c->number;
  /* What was dropped and no checkpoint pins any more is free. */
  bool last = false;
  for (cgl_block *block = NULL; (block = cgl_index_walk(pool, block));)
    if (!block->lane && block->dropped && block->number > pool->pinned)
      block = cgl_pool_free_block(pool, block, block->wide, &last);
  cgl_pool_count_held(pool);
  cgl_latch_drop(&pool->lock);
  if (last)
    cgl_pool_unkeep(pool);
  cgl_pool_release(pool);
  free(checkpoint);
}


CGL_OBJECT_KIND(checkpoint, .light = true, .destroy = checkpoint_destroy)


cgl_status cgl_pool_checkpoint(cgl_pool *pool, cgl_checkpoint **out) {
  static const char operation[] = "pool:checkpoint";
  cgl_status status = cgl_pool_check_made(pool, operation);
  if (!status)
    status = refuse_capture(pool, operation);
  if (status)
    return status;
  cgl_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
  if (!checkpoint)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for a checkpoint");
  checkpoint->pool = cgl_pool_retain(pool);
  checkpoint->made = atomic_load(&pool->sharing.made);
  cgl_object_init(&checkpoint->object, &checkpoint_kind, pool->object.context);
  cgl_latch_take(&pool->lock);
  checkpoint->number = pool->pinned = pool->stats.allocations;
  checkpoint->next = pool->checkpoints;
  pool->checkpoints = checkpoint;
  cgl_latch_drop(&pool->lock);
  *out = checkpoint;
  return CGL_OK;
}


/* Takes back the block of a buffer, now or when the buffer ends; returns the
   extent that the block is part of afterwards. */
static cgl_block *pool_take_back(cgl_pool *pool, cgl_block *block, bool *last) {
  if (!block->owner || !block->owner->kind->take_block(block->owner))
    return block;
  if (block->number <= pool->pinned) {
    block->dropped = block->wide = true;
    block->owner = NULL;
    return block;
  }
  return cgl_pool_free_block(pool, block, true, last);
}


cgl_status cgl_pool_restore(cgl_pool *pool, cgl_checkpoint *checkpoint) {
  static const char operation[] = "pool:restore";
  if (checkpoint->pool != pool) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the checkpoint is of another pool");
    return cgl_fail_hint("restore a pool from a checkpoint of its own");
  }
  cgl_status status = refuse_capture(pool, operation);
  if (status)
    return status;
  bool last = false;
  cgl_sharing_undo(&pool->sharing, checkpoint->made);
  cgl_latch_take(&pool->lock);
  for (cgl_block *block = NULL; (block = cgl_index_walk(pool, block));)
    if (!block->lane && !block->dropped && block->number > checkpoint->number)
      block = pool_take_back(pool, block, &last);
  cgl_pool_count_held(pool);
  cgl_latch_drop(&pool->lock);
  if (last)
    cgl_pool_unkeep(pool);
  return CGL_OK;
}
