/* The pools of a context; and when memory runs out: what all pools can return,
   and which script lines hold the memory. */
#include "core/pool/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  POOLS = 6,    /* pools that a failure lists, the largest first */
  LINES = 10,   /* script lines that it lists, the largest first */
  GROUPS = 512, /* pools, and script lines, that are counted apart */
  ROOM = 3072   /* bytes of its text */
};


static void pools_list(cgl_context *context, FILE *text);


/* ---- the pools of a context ---- */

/* Drops a reference to the context, and before it the reference that the idle
   own pool holds.  Under the pool's lock, because `idle` changes under it. */
static bool pools_drop_context(cgl_context *context) {
  cgl_pool *pool = cgl_pools_of(context, "pool")->own;
  cgl_latch_take(&pool->lock);
  if (pool->idle)
    atomic_fetch_sub(&context->object.references, 1);
  pool->idle = false;
  bool last = atomic_fetch_sub(&context->object.references, 1) == 1;
  cgl_latch_drop(&pool->lock);
  return last;
}


static void pools_end(cgl_context *context, cgl_part *part) {
  cgl_pools *pools = (cgl_pools *)part;
  cgl_pool *own = pools->own;
  pools->own = NULL;
  if (own)
    cgl_pool_destroy_own(own);
  /* When the wait fails the context is lost, and nothing runs on it. */
  if (pools->retired.first)
    cgl_context_wait(context);
  cgl_pools_end_retired(context, true);
  free(pools);
}


static void pools_waited(cgl_context *context) {
  cgl_pools *pools = cgl_pools_of(context, "pool");
  if (pools->own)
    cgl_pool_reclaim(pools->own);
  cgl_pools_end_retired(context, false);
}


cgl_pools *cgl_pools_of(cgl_context *context, const char *operation) {
  cgl_part *part = cgl_context_part(context, CGL_PART_POOL);
  if (!part)
    part = cgl_context_make_part(
        context, CGL_PART_POOL, sizeof(cgl_pools),
        (cgl_part){pools_end, pools_waited, pools_list}, operation);
  return (cgl_pools *)part;
}


cgl_pool *cgl_pools_make_own(cgl_context *context, const char *operation) {
  cgl_pools *pools = cgl_pools_of(context, operation);
  cgl_pool *pool = pools ? pools->own : NULL, *before = NULL;
  if (pool || !pools || cgl_pool_create_own(context, NULL, false, &pool))
    return pool;
  /* Another thread may have made the pool meanwhile. */
  if (!atomic_compare_exchange_strong(&pools->own, &before, pool)) {
    cgl_pool_destroy_own(pool);
    return before;
  }
  cgl_pools_add(pool);
  atomic_store(&context->drop, pools_drop_context);
  return pool;
}


cgl_pool *cgl_context_pool(cgl_context *context) {
  return cgl_pools_own(context, "pool");
}


void cgl_pools_add(cgl_pool *pool) {
  cgl_context *context = pool->object.context;
  cgl_pools *pools = cgl_pools_of(context, "pool");
  pthread_mutex_lock(&context->lock);
  pool->next_pool = pools->first;
  pools->first = pool;
  pthread_mutex_unlock(&context->lock);
}


static void pool_set_held(cgl_pool *pool, size_t bytes) {
  if (bytes == pool->held)
    return;
  cgl_pools *pools = cgl_pools_of(pool->object.context, "pool");
  atomic_fetch_add_explicit(&pools->held, bytes - pool->held,
                            memory_order_relaxed);
  pool->held = bytes;
}


void cgl_pools_count_held(cgl_pool *pool) {
  const cgl_pool_stats *stats = &pool->stats;
  if (pool->settled > stats->reserved)
    pool->settled = stats->reserved;
  pool_set_held(pool, stats->allocated > pool->settled ? stats->allocated
                                                       : pool->settled);
}


size_t cgl_context_held(const cgl_context *context) {
  const cgl_pools *pools =
      (const cgl_pools *)cgl_context_part(context, CGL_PART_POOL);
  if (!pools)
    return 0;
  cgl_pool *own = atomic_load_explicit(&pools->own, memory_order_acquire);
  size_t bytes = atomic_load_explicit(&pools->held, memory_order_relaxed);
  if (!own)
    return bytes;
  cgl_latch_take(&own->lock);
  bytes += own->stats.allocated;
  cgl_latch_drop(&own->lock);
  return bytes;
}


void cgl_pools_remove(cgl_pool *pool) {
  cgl_context *context = pool->object.context;
  cgl_pools *pools = cgl_pools_of(context, "pool");
  pool_set_held(pool, 0);
  pthread_mutex_lock(&context->lock);
  for (cgl_pool **link = &pools->first; *link; link = &(*link)->next_pool)
    if (*link == pool) {
      *link = pool->next_pool;
      break;
    }
  pthread_mutex_unlock(&context->lock);
}


void cgl_pools_trim(cgl_context *context) {
  cgl_objects_reclaim(context);
  cgl_pools_end_retired(context, false);
  const cgl_pools *pools = cgl_pools_of(context, "pool");
  pthread_mutex_lock(&context->lock);
  for (cgl_pool *pool = pools->first; pool; pool = pool->next_pool) {
    cgl_latch_take(&pool->lock);
    cgl_index_reclaim(pool);
    cgl_pages_trim(pool);
    cgl_pool_count_held(pool);
    cgl_latch_drop(&pool->lock);
  }
  pthread_mutex_unlock(&context->lock);
}


/* ---- holders of memory ---- */

/* The reserved bytes of a pool and how many are in use, or the live bytes that
   a script line allocated and in how many buffers. */
typedef struct holder {
  const cgl_pool *pool; /* compared, not used */
  bool own;             /* the context's own pool */
  cgl_site site;
  size_t bytes, part;
} holder;

typedef struct census {
  size_t npools, nlines;
  holder pools[GROUPS], lines[GROUPS];
  size_t waiting; /* bytes that are free once the device was waited for */
} census;


/* Free bytes of a pool, but for scratch, whose use is not known to be over. */
static size_t pool_waiting(const cgl_pool *pool) {
  size_t bytes = 0;
  for (const cgl_block *b = NULL; (b = cgl_index_walk(pool, b));)
    if (b->lane && !b->lane->scratch && !cgl_index_is_over(b))
      bytes += b->bytes;
  return bytes;
}


/* Lines beyond the first GROUPS count as one. */
static void census_block(census *all, const cgl_block *block) {
  size_t i = 0;
  while (i < all->nlines && (all->lines[i].site.file != block->site.file ||
                             all->lines[i].site.line != block->site.line))
    i++;
  if (i == GROUPS)
    i = GROUPS - 1;
  if (i == all->nlines)
    all->lines[all->nlines++].site = block->site;
  all->lines[i].bytes += block->bytes;
  all->lines[i].part++;
}


static int holder_compare(const void *a, const void *b) {
  size_t x = ((const holder *)a)->bytes, y = ((const holder *)b)->bytes;
  return x < y ? 1 : x > y ? -1 : 0;
}


static void census_take(cgl_context *context, census *all) {
  const cgl_pools *pools = cgl_pools_of(context, "pool");
  pthread_mutex_lock(&context->lock);
  for (cgl_pool *pool = pools->first; pool; pool = pool->next_pool) {
    cgl_latch_take(&pool->lock);
    const cgl_pool_stats *stats = &pool->stats;
    all->waiting += pool_waiting(pool);
    if (all->npools < GROUPS)
      all->pools[all->npools++] = (holder){
          pool, pool->own, {NULL, 0}, stats->reserved, stats->allocated};
    for (const cgl_block *b = NULL; (b = cgl_index_walk(pool, b));)
      if (!b->lane)
        census_block(all, b);
    cgl_latch_drop(&pool->lock);
  }
  all->waiting += pools->retired.bytes;
  pthread_mutex_unlock(&context->lock);
  qsort(all->pools, all->npools, sizeof *all->pools, holder_compare);
  qsort(all->lines, all->nlines, sizeof *all->lines, holder_compare);
}


static void census_write_lines(const census *all, FILE *text) {
  for (const holder *h = all->lines;
       h < all->lines + all->nlines && h < all->lines + LINES; h++)
    fprintf(text, "\n  %zu bytes in %zu buffer%s made at %.120s", h->bytes,
            h->part, h->part == 1 ? "" : "s", cgl_site_text(h->site));
}


static void census_write(const cgl_pool *pool, const census *all, FILE *text) {
  for (const holder *h = all->pools;
       h < all->pools + all->npools && h < all->pools + POOLS; h++)
    fprintf(text, "\n  pool %p%s%s: %zu bytes, %zu of them in use",
            (const void *)h->pool, h->own ? " (the device's)" : "",
            h->pool == pool ? " (asked)" : "", h->bytes, h->part);
  if (all->npools > POOLS)
    fprintf(text, "\n  and %zu smaller pools", all->npools - POOLS);
  census_write_lines(all, text);
  if (all->waiting)
    fprintf(text, "\n  %zu bytes were released and wait for the device",
            all->waiting);
  long objects = cgl_objects_waiting();
  if (objects)
    fprintf(text, "\n  %ld object%s not torn down before captures have ended",
            objects,
            objects == 1 ? " that was released is"
                         : "s that were released are");
}


static void pools_list(cgl_context *context, FILE *text) {
  census *all = calloc(1, sizeof *all);
  if (!all)
    return;
  census_take(context, all);
  census_write_lines(all, text);
  free(all);
}


cgl_status cgl_pools_fail(cgl_pool *pool, size_t bytes, const char *operation,
                          const char *entry) {
  cgl_context *context = pool->object.context;
  cgl_status code = CUDA_ERROR_OUT_OF_MEMORY;
  size_t max = pool->desc.max_bytes;
  bool limited = max && (bytes > max || !strcmp(entry, "max_bytes"));
  cgl_pool_stats stats;
  cgl_pool_get_stats(pool, &stats);
  bool absurd = bytes > context->info.memory;
  census *all = absurd ? NULL : calloc(1, sizeof *all);
  char text[ROOM] = "";
  FILE *file = all ? fmemopen(text, ROOM - 1, "w") : NULL;
  if (all)
    census_take(context, all);
  if (file) {
    census_write(pool, all, file);
    fclose(file);
  }
  bool stuck = cgl_captures_underway() && all && all->waiting >= bytes;
  free(all);
  if (limited)
    cgl_fail(code, operation,
             "the pool may take %zu bytes and has %zu: %zu more were asked "
             "for%s",
             max, stats.reserved, bytes, text);
  else
    cgl_fail(code, operation,
             "out of device memory: %zu bytes were asked for, the device has "
             "%zu in all (%s)%s",
             bytes, context->info.memory, entry, text);
  if (limited)
    cgl_fail_hint("release buffers of the pool, or raise its max_bytes");
  else if (absurd)
    cgl_fail_hint("check how the size was computed");
  else if (stuck)
    cgl_fail_hint("a capture cannot wait for memory that was released: release "
                  "it, and wait for the device, before the capture begins");
  else
    cgl_fail_hint("release buffers you no longer need, trim pools, or use "
                  "smaller sizes");
  return code;
}
