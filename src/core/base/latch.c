/* The slow way into a latch. */
#define _GNU_SOURCE
#include "core/base/latch.h"

#include <sched.h>
#include <stdbool.h>
#include <time.h>

enum {
  SPINS = 200,         /* tries before the first yield */
  YIELDS = 8,          /* yields before the first sleep */
  FIRST_NS = 20000,    /* the first sleep; each sleep doubles it */
  LONGEST_NS = 1000000 /* the longest sleep */
};


/* Reads before it writes: the holder keeps the cache line meanwhile. */
static bool latch_try_take(cgl_latch *latch) {
  return !atomic_load_explicit(&latch->taken, memory_order_relaxed) &&
         !atomic_exchange_explicit(&latch->taken, 1, memory_order_acquire);
}


void cgl_latch_wait(cgl_latch *latch) {
  struct timespec rest = {0, FIRST_NS};
  for (unsigned tries = 0; !latch_try_take(latch); tries++)
    if (tries < SPINS) {
#if defined(__x86_64__) || defined(__i386__)
      __builtin_ia32_pause();
#endif
    } else if (tries < SPINS + YIELDS) {
      sched_yield();
    } else {
      nanosleep(&rest, NULL);
      if (rest.tv_nsec < LONGEST_NS)
        rest.tv_nsec *= 2;
    }
}
