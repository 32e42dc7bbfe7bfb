/* A lock for sections that are a few dozen instructions long nearly always.
   Idea: taking a latch is one atomic exchange and dropping it a plain store,
   less than half of a mutex's cost.  Waiters spin, then sleep with back-off,
   because a drop wakes no waiter.
   Invariant: the holder may sleep or call the driver; a waiter notices a drop
   a millisecond late at most.  Not recursive. */
#ifndef CGL_BASE_LATCH_H
#define CGL_BASE_LATCH_H

#include <stdatomic.h>

/* All zero: free. */
typedef struct cgl_latch {
  atomic_uint taken;
} cgl_latch;

/* Waits for a latch that was taken, and takes it. */
void cgl_latch_wait(cgl_latch *latch);

static inline void cgl_latch_take(cgl_latch *latch) {
  if (atomic_exchange_explicit(&latch->taken, 1, memory_order_acquire))
    cgl_latch_wait(latch);
}


static inline void cgl_latch_drop(cgl_latch *latch) {
  atomic_store_explicit(&latch->taken, 0, memory_order_release);
}

#endif
