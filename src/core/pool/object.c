/* Pools as objects: created, limited, trimmed, ended. */
#include "core/pool/pool.h"

#include <stdlib.h>
#include <string.h>


static cgl_status pool_new(cgl_context *context, const cgl_pool_desc *desc,
                           cgl_pool **out) {
  static const char operation[] = "pool";
  static atomic_uint_fast64_t next_id = 1;
  cgl_status status = cgl_context_enter(context, operation);
  if (status)
    return status;
  cgl_pool *pool = calloc(1, sizeof *pool);
  if (!pool)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a pool");
  pool->object.context = context;
  CUmemAllocationProp prop = cgl_pages_properties(pool);
  CUresult result = context->driver->cuMemGetAllocationGranularity(
      &pool->granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  if (result) {
    free(pool);
    return cgl_fail_driver(context, result, operation,
                           "cuMemGetAllocationGranularity");
  }
  const char *guard = getenv("CGRAPHLUA_HOST_GUARD");
  pool->guard = guard && !strcmp(guard, "1");
  pool->patience = CGL_POOL_PATIENCE;
  if (desc)
    pool->desc = *desc;
  pool->id = atomic_fetch_add(&next_id, 1);
  cgl_sharing_init(&pool->sharing, &pool->object, pool->desc.strict);
  if (pool->desc.allocator) {
    pool->allocator = *pool->desc.allocator;
    pool->desc.allocator = &pool->allocator;
    pool->guard = false;
  }
  pool->pending.stream = pool->shared_scratch.stream = pool->older.stream =
      CGL_NO_STREAM;
  pool->scratch.scratch = pool->shared_scratch.scratch = pool->older.scratch =
      true;
  *out = pool;
  return CGL_OK;
}


cgl_status cgl_pool_create_own(cgl_context *context, const cgl_pool_desc *desc,
                               bool host, cgl_pool **out) {
  cgl_status status = pool_new(context, desc, out);
  if (status)
    return status;
  atomic_init(&(*out)->object.references, 1);
  (*out)->object.kind = &cgl_pool_kind;
  (*out)->own = true;
  (*out)->host = host;
  (*out)->device = !host;
  return CGL_OK;
}


cgl_status cgl_pool_create(cgl_context *context, const cgl_pool_desc *desc,
                           cgl_pool **out) {
  const cgl_allocator *allocator = desc ? desc->allocator : NULL;
  if (allocator && (!allocator->allocate || !allocator->release))
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "pool",
                    "an allocator has both allocate and release");
  cgl_status status =
      cgl_pools_of(context, "pool") ? CGL_OK : CGL_ERROR_NO_MEMORY;
  if (!status)
    status = pool_new(context, desc, out);
  if (status)
    return status;
  cgl_object_init(&(*out)->object, &cgl_pool_kind, context);
  cgl_pools_add(*out);
  return CGL_OK;
}


bool cgl_pool_is_in_use(const cgl_pool *pool) {
  const cgl_context *context = pool->object.context;
  if (!cgl_context_waited(context, atomic_load(&pool->sharing.used)))
    return true;
  for (const cgl_block *block = NULL; (block = cgl_index_walk(pool, block));)
    if (block->lane && !cgl_index_is_over(block))
      return true;
  return false;
}


void cgl_pool_end(cgl_pool *pool) {
  cgl_pages_end(pool);
  cgl_index_end(pool);
  cgl_sharing_clear(&pool->sharing);
  if (pool->desc.allocator && pool->allocator.end)
    pool->allocator.end(pool->allocator.user);
  free(pool);
}


void cgl_pool_destroy_own(cgl_pool *pool) {
  cgl_context *context = pool->object.context;
  cgl_pools_remove(pool);
  cgl_context_enter(context, "pool");
  if (pool->segments && cgl_pool_is_in_use(pool)) {
    if (cgl_pool_retire(pool))
      return;
    cgl_context_wait(context);
    cgl_pools_end_retired(context, false);
  }
  cgl_pool_end(pool);
}


static void pool_destroy(cgl_object *object) {
  cgl_pool_destroy_own((cgl_pool *)object);
}


static bool pool_is_reclaimable(const cgl_object *object) {
  (void)object;
  return true;
}


const cgl_object_kind cgl_pool_kind = {
    .number = CGL_OBJECT_pool,
    .findable = true,
    .destroy = pool_destroy,
    .is_reclaimable = pool_is_reclaimable,
};

cgl_object *cgl_pool_keeper(cgl_pool *pool) {
  return pool->own ? &pool->object.context->object : &pool->object;
}


cgl_pool *cgl_pool_retain(cgl_pool *pool) {
  if (pool)
    cgl_object_retain(cgl_pool_keeper(pool));
  return pool;
}


void cgl_pool_release(cgl_pool *pool) {
  if (pool)
    cgl_object_release(cgl_pool_keeper(pool));
}


cgl_status cgl_pool_check_made(const cgl_pool *pool, const char *operation) {
  if (!pool->own)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           pool->host ? "the pool of pinned memory serves pinned memory only"
                      : "the device's own pool serves work outside captures, "
                        "and memory of the library");
  return cgl_fail_hint("use a pool that was made for this, with cg.pool or "
                       "cgl_pool_create");
}


void cgl_pool_get_stats(const cgl_pool *pool, cgl_pool_stats *stats) {
  cgl_latch *lock = (cgl_latch *)&pool->lock;
  cgl_latch_take(lock);
  *stats = pool->stats;
  stats->ordered = atomic_load(&pool->sharing.ordered);
  stats->refused = atomic_load(&pool->sharing.refused);
  stats->executables = atomic_load(&pool->executables);
  cgl_latch_drop(lock);
}


void cgl_pool_set_limit(cgl_pool *pool, size_t bytes,
                        cgl_pool_limit_function function, void *user) {
  cgl_latch_take(&pool->lock);
  pool->limit.bytes = bytes;
  pool->limit.function = function;
  pool->limit.user = user;
  cgl_latch_drop(&pool->lock);
}


cgl_status cgl_pool_trim(cgl_pool *pool, size_t *bytes) {
  static const char operation[] = "pool:trim";
  cgl_status status = cgl_context_enter(pool->object.context, operation);
  if (status)
    return status;
  if (!cgl_captures_hold(true))
    return cgl_captures_fail_device(operation, "trim a pool",
                                    "trim when that capture has ended");
  cgl_latch_take(&pool->lock);
  CUresult result = cgl_context_wait(pool->object.context);
  if (!result) {
    cgl_index_reclaim(pool);
    size_t freed = cgl_pages_trim(pool);
    cgl_pool_count_held(pool);
    if (bytes)
      *bytes = freed;
  }
  CGL_POOL_CHECK(pool);
  cgl_latch_drop(&pool->lock);
  cgl_captures_unhold();
  return cgl_fail_driver(pool->object.context, result, operation,
                         "cuCtxSynchronize");
}
