/* Barriers and warp exchanges for kernels on the host device.
   A block starts as a plain loop over its threads.  The first thread that
   meets a barrier turns the block into fibers: that thread, the main lane,
   stays on the stack that the block began on, the threads after it get small
   stacks of their own, the threads before it have left the kernel.  Fibers
   switch only at barriers and exchanges, from each to the one after it; the
   last to arrive goes on without a switch.
   Invariant: lanes begin in their order; lanes alive = lanes running, chosen,
   ready or not begun + lanes that wait; when lanes wait and no other can run,
   the barrier is divergent and the launch is aborted with 719.  All state
   belongs to the calling thread. */
#ifndef CGL_HOST_FIBER_H
#define CGL_HOST_FIBER_H

#include "driver/kernel_abi.h"

typedef void (*cgl_fiber_abort)(int code, const char *why)
    __attribute__((noreturn));
typedef void (*cgl_fiber_conditional)(uint64_t handle, uint32_t value);

/* The table that a module's init takes; valid for the whole process. */
const cgl_host_runtime *cgl_fiber_runtime(void);

/* Sets the functions that end a launch and set a conditional handle; call once,
   before the first kernel runs.  `abort` is called on the stack that the block
   began on, never on a fiber's, and must not return (siglongjmp is fine);
   `why` is valid until the worker's next launch. */
void cgl_fiber_set_hooks(cgl_fiber_abort abort,
                         cgl_fiber_conditional set_conditional);

/* Forgets the block that the calling thread was running; due after a kernel
   was left by siglongjmp, from its own stack or from a signal handler that
   interrupted a fiber. */
void cgl_fiber_reset(void);

/* Gives the calling thread's stacks back; it may run kernels again later. */
void cgl_fiber_thread_exit(void);

/* True when `address` lies in a guard page of the calling thread's fiber
   stacks: the kernel overflowed its stack.  Safe in a signal handler. */
int cgl_fiber_is_guard(const void *address);

#endif
