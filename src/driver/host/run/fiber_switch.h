/* How one stack is left for another: the only machine-dependent part of the
   fibers.  x86-64 and AArch64 save the callee-saved registers by hand (a few
   nanoseconds); elsewhere ucontext does it (with two system calls).
   Under AddressSanitizer every switch is announced, so that it knows which
   stack it is on; ThreadSanitizer is not told, because lanes of one block
   are one thread to it and nothing on a fiber's stack is instrumented.
   Invariant: a context is either made and not entered, or suspended inside
   cgl_lane_switch, or running. */
#ifndef CGL_HOST_FIBER_SWITCH_H
#define CGL_HOST_FIBER_SWITCH_H

#include <stddef.h>
#include <stdint.h>

#if defined __has_feature
#if __has_feature(address_sanitizer)
#define CGL_FIBER_ASAN 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define CGL_FIBER_ASAN 1
#endif

#if defined __clang__
#define CGL_FIBER_PLAIN                                      \
  __attribute__((no_sanitize("address", "thread"), noinline, \
                 disable_sanitizer_instrumentation))
#else
#define CGL_FIBER_PLAIN __attribute__((no_sanitize("address", "thread")))
#endif

#if !defined __x86_64__ && !defined __aarch64__
#define CGL_FIBER_UCONTEXT 1
#endif

#ifdef CGL_FIBER_UCONTEXT
#include <ucontext.h>
#endif

typedef struct cgl_lane {
#ifdef CGL_FIBER_UCONTEXT
  ucontext_t registers;
#else
  void *sp; /* its registers lie above */
#endif
#ifdef CGL_FIBER_ASAN
  void *fake;         /* AddressSanitizer's own frames of this stack */
  const void *bottom; /* of the stack */
  size_t size;
  int over; /* it will not run again */
#endif
} cgl_lane;

/* A context that calls main(lane) on the given stack when first entered. */
void cgl_lane_make(cgl_lane *context, void *bottom, size_t size,
                   void (*main)(uint32_t), uint32_t lane);

/* Leaves `from` and goes on with `to`. */
void cgl_lane_switch(cgl_lane *from, cgl_lane *to);

/* First thing on a new stack; tells where the worker's own stack is. */
void cgl_lane_entered(cgl_lane *self, cgl_lane *main);

/* Last thing before a context is left for good. */
void cgl_lane_leaving(cgl_lane *self);

/* A fiber was left by a jump to the worker's own stack. */
void cgl_lane_abandoned(cgl_lane *main);

#endif
