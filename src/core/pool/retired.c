/* Retired pools: pools without references whose memory work in flight may still
   use.  They are kept here, so that the end or reset of a graph does not wait
   for the device.
   Invariant: a retired pool is in no other list and is not counted as live; a
   context has no retired pools when it ends.  Few are kept, so that the device
   gets its memory back soon. */
#include "core/pool/pool.h"

enum {
  MOST = 32, /* pools */
  SHARE = 16 /* of the device's memory, at most one part in so many */
};


bool cgl_pool_retire(cgl_pool *pool) {
  cgl_context *context = pool->object.context;
  cgl_pools *pools = cgl_pools_of(context, "pool");
  bool taken = false;
  pthread_mutex_lock(&context->lock);
  bool room = !pool->desc.allocator && pools->retired.count < MOST &&
              pools->retired.bytes + pool->stats.reserved <=
                  context->info.memory / SHARE;
  /* While a capture is underway no limit holds: waiting would break it. */
  if (room || cgl_captures_underway()) {
    pool->next_pool = pools->retired.first;
    pools->retired.first = pool;
    pools->retired.count++;
    pools->retired.bytes += pool->stats.reserved;
    taken = true;
  }
  pthread_mutex_unlock(&context->lock);
  return taken;
}


void cgl_pools_end_retired(cgl_context *context, bool all) {
  cgl_pools *pools = cgl_pools_of(context, "pool");
  cgl_pool *pool;
  do {
    pthread_mutex_lock(&context->lock);
    cgl_pool **link = &pools->retired.first;
    while (*link && !all && cgl_pool_is_in_use(*link))
      link = &(*link)->next_pool;
    pool = *link;
    if (pool) {
      *link = pool->next_pool;
      pools->retired.count--;
      pools->retired.bytes -= pool->stats.reserved;
    }
    pthread_mutex_unlock(&context->lock);
    if (pool)
      cgl_pool_end(pool);
  } while (pool);
}
