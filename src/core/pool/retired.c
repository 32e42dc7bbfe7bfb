/* Pools that nobody refers to any more while work in flight may still use
   their memory: they wait here, so that dropping or resetting a graph does not
   wait for the device.
   Invariant: a pool in limbo has no references, is in no other list, and is
   counted among the living no more; the limbo of a context is empty when the
   context goes.  It holds little, so that memory comes back in good time. */
#include "core/pool/pool.h"

enum {
  MOST = 32, /* pools */
  SHARE = 16 /* of the device's memory, at most one part in so many */
};


bool cgl_limbo_take(cgl_pool *pool) {
  cgl_context *context = pool->object.context;
  bool taken = false;
  pthread_mutex_lock(&context->lock);
  bool room = !pool->desc.allocator && context->limbo.count < MOST &&
              context->limbo.bytes + pool->stats.reserved <=
                  context->info.memory / SHARE;
  /* While a capture is underway there is no other way: waiting breaks it. */
  if (!context->limbo.closed && (room || cgl_captures_underway())) {
    pool->next_pool = context->limbo.first;
    context->limbo.first = pool;
    context->limbo.count++;
    context->limbo.bytes += pool->stats.reserved;
    taken = true;
  }
  pthread_mutex_unlock(&context->lock);
  return taken;
}


/* Takes out a pool whose work is over; any one when `all`. */
static cgl_pool *leave(cgl_context *context, bool all) {
  pthread_mutex_lock(&context->lock);
  cgl_pool **link = &context->limbo.first;
  while (*link && !all && cgl_pool_is_in_use(*link))
    link = &(*link)->next_pool;
  cgl_pool *pool = *link;
  if (pool) {
    *link = pool->next_pool;
    context->limbo.count--;
    context->limbo.bytes -= pool->stats.reserved;
  }
  pthread_mutex_unlock(&context->lock);
  return pool;
}


void cgl_limbo_settle(cgl_context *context) {
  cgl_pool *pool;
  while ((pool = leave(context, false)))
    cgl_pool_end(pool);
}


void cgl_limbo_close(cgl_context *context) {
  pthread_mutex_lock(&context->lock);
  context->limbo.closed = true;
  bool empty = !context->limbo.first;
  pthread_mutex_unlock(&context->lock);
  if (empty)
    return;
  /* When the wait fails the context is lost, and nothing runs on it. */
  cgl_context_wait(context);
  cgl_pool *pool;
  while ((pool = leave(context, true)))
    cgl_pool_end(pool);
}
