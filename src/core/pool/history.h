/* The history of memory, when it is on: a bounded ring of allocations, releases
   and the device memory of executables.
   Invariant: while it is off it costs an allocation one branch; the ring keeps
   the latest events and counts the events that it lost. */
#ifndef CGL_POOL_HISTORY_H
#define CGL_POOL_HISTORY_H

#include "core/pool/pool.h"

extern atomic_bool cgl_history_on;

void cgl_history_note(const cgl_pool *pool, const cgl_block *block, bool freed);

/* Notes that a block was allocated, or is about to be freed; under the pool's
   lock. */
static inline void cgl_history_add(const cgl_pool *pool, const cgl_block *block,
                                   bool freed) {
  if (atomic_load_explicit(&cgl_history_on, memory_order_relaxed))
    cgl_history_note(pool, block, freed);
}

/* The device's free bytes; 0 while the history is off.  cuMemGetInfo */
size_t cgl_history_free_bytes(cgl_context *context);

#endif
