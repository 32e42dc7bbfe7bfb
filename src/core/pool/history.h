/* The history of memory, while somebody wants it: a bounded ring of what was
   allocated and freed, and what executables took from the device.
   Invariant: while it is off it costs an allocation one branch; the ring keeps
   the latest events and counts those it lost. */
#ifndef CGL_POOL_HISTORY_H
#define CGL_POOL_HISTORY_H

#include "core/pool/pool.h"

extern atomic_bool cgl_history_on;

void cgl_history_note(const cgl_pool *pool, const cgl_block *block, bool freed);

/* A live block was handed out, or is about to be freed; under the pool's
   lock. */
static inline void cgl_history_add(const cgl_pool *pool, const cgl_block *block,
                                   bool freed) {
  if (atomic_load_explicit(&cgl_history_on, memory_order_relaxed))
    cgl_history_note(pool, block, freed);
}

/* The device's free bytes; 0 while nobody keeps a history.  cuMemGetInfo */
size_t cgl_history_free_bytes(cgl_context *context);

#endif
