/* A lock for sections that are a few dozen instructions long nearly always.
   Idea: taking it is one atomic exchange and dropping it a plain store, which
   is less than half of what a mutex takes; who finds it taken spins a little
   and then sleeps for longer and longer, because nobody wakes him.
   Invariant: whoever holds it may sleep or call the driver; who waits for it
   notices a millisecond late at most.  Not recursive. */
#ifndef CGL_CORE_LATCH_H
#define CGL_CORE_LATCH_H

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
