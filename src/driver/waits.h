/* Waits for a device that can be given up.
   Idea: a program that catches Ctrl-C says so (POLL), and asks for an end
   (STOP) in its signal handler.  The host device's waits then end its kernels,
   as an abort does.  A GPU's driver ends no kernel, so waits for a GPU ask
   whether the work is done, until it is or they give up with CUDA_ERROR_TIMEOUT
   and the work goes on.
   Invariant: BLOCK, until a program says otherwise; then waits are the
   driver's own. */
#ifndef CGL_DRIVER_WAITS_H
#define CGL_DRIVER_WAITS_H

#include <stdatomic.h>
#include <stdbool.h>

typedef enum { CGL_WAITS_BLOCK, CGL_WAITS_POLL, CGL_WAITS_STOP } cgl_waits;

extern _Atomic int cgl_driver_waits; /* a cgl_waits */

static inline bool cgl_driver_waits_stop(void) {
  return atomic_load_explicit(&cgl_driver_waits, memory_order_relaxed) ==
         CGL_WAITS_STOP;
}

#endif
