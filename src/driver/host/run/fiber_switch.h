/* How one stack is left for another: the only machine-dependent part of the
   fibers.  x86-64 and AArch64 save the callee-saved registers by hand (a few
   nanoseconds); elsewhere ucontext does it (with two system calls).
   A context begins by a jump to the top of its stack, where two words lie for
   it, and ends by one to the next.
   Under AddressSanitizer every switch is announced, so that it knows which
   stack it is on; ThreadSanitizer is not told, because lanes of one block
   are one thread to it and nothing on a fiber's stack is instrumented.
   Invariant: a context is either made and not begun, or suspended inside
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

struct cgl_lane;

/* What goes on when a context has returned from what it began with, and what it
   begins with itself if it has not begun. */
typedef struct cgl_lane_choice {
  struct cgl_lane *to;
  void (*begin)(void *);
} cgl_lane_choice;

/* What a context that has not begun will need. */
typedef struct cgl_lane_start {
  void *argument;                /* of `begin` */
  cgl_lane_choice (*left)(void); /* asked when `begin` has returned */
} cgl_lane_start;

typedef struct cgl_lane {
#ifdef CGL_FIBER_UCONTEXT
  ucontext_t registers;
  cgl_lane_start start;
  void (*begin)(void *);
  void (*last)(void); /* called on its stack, which ends there */
#else
  void *sp; /* its registers lie above, or its cgl_lane_start */
#endif
#ifdef CGL_FIBER_ASAN
  void *fake;         /* AddressSanitizer's own frames of this stack */
  const void *bottom; /* of the stack */
  size_t size;
#endif
} cgl_lane;

/* The context of the worker's own stack. */
void cgl_lane_make_main(cgl_lane *context);

/* A context that has not begun. */
void cgl_lane_make(cgl_lane *context, void *bottom, size_t size,
                   cgl_lane_start start);

/* Leaves `from` and goes on with `to`, which begins with `begin` if it has not
   begun.  Returns when a context goes on with `from`. */
void cgl_lane_switch(cgl_lane *from, cgl_lane *to, void (*begin)(void *));

/* Runs body(argument) on the stack of `to`, which has not begun and does not
   begin by it; `from` is the context of the caller's.  Elsewhere than on x86-64
   and AArch64 the caller's own stack serves. */
void cgl_lane_call(cgl_lane *from, cgl_lane *to, void (*body)(void *),
                   void *argument);

/* First thing on a new stack; tells where the worker's own stack is. */
void cgl_lane_entered(cgl_lane *self, cgl_lane *main);

/* Last thing on a stack. */
void cgl_lane_leaving(cgl_lane *to);

/* Leaves for good, and calls `last` on the stack of `to`, which ends there. */
__attribute__((noreturn)) void cgl_lane_end(cgl_lane *to, void (*last)(void));

/* The context will go on soon: has its registers fetched. */
#ifdef CGL_FIBER_UCONTEXT
#define cgl_lane_expect(context) __builtin_prefetch(context)
#else
#define cgl_lane_expect(context)      \
  (__builtin_prefetch((context)->sp), \
   __builtin_prefetch((char *)(context)->sp + 64))
#endif

/* A fiber was left by a jump to the worker's own stack. */
void cgl_lane_abandoned(cgl_lane *main);

#if !defined CGL_FIBER_UCONTEXT
/* Saves the callee-saved registers on the stack, its address in *save, and
   takes up the stack `to`, which is suspended. */
void cgl_fiber_swap(void **save, void *to);
/* The same with a stack that has not begun. */
void cgl_fiber_start(void **save, void *to, void (*begin)(void *));
/* The same without saving. */
__attribute__((noreturn)) void cgl_fiber_begin(void **unused, void *to,
                                               void (*begin)(void *));

/* Calls body(argument) with the stack `top`; all returns are where the
   processor expects them.  What the caller needs afterwards is on its own
   stack, the address of which is in *save meanwhile. */
void cgl_fiber_call(void (*body)(void *), void *argument, void *top,
                    void **save);
/* What cgl_fiber_call has saved: asked of whoever called it, as nothing on the
   other stack, and no register that was there, can be trusted. */
void *cgl_fiber_home(void);

CGL_FIBER_PLAIN static inline void cgl_lane_set(cgl_lane *context, void *bottom,
                                                size_t size,
                                                cgl_lane_start start) {
  uintptr_t top = ((uintptr_t)bottom + size) & ~(uintptr_t)63;
  cgl_lane_start *at = (cgl_lane_start *)top - 1;
  *at = start;
  context->sp = at;
}
#endif

#if !defined CGL_FIBER_UCONTEXT && !defined CGL_FIBER_ASAN
#define cgl_lane_make_main(context) ((void)(context))
#define cgl_lane_make cgl_lane_set
#define cgl_lane_switch(from, to, begin)                     \
  ((begin) ? cgl_fiber_start(&(from)->sp, (to)->sp, (begin)) \
           : cgl_fiber_swap(&(from)->sp, (to)->sp))
#define cgl_lane_call(from, to, body, argument) \
  cgl_fiber_call(body, argument, (to)->sp, &(from)->sp)
#define cgl_lane_entered(self, main) ((void)(self))
#define cgl_lane_leaving(to) ((void)(to))
#define cgl_lane_abandoned(main) ((void)(main))
#endif

#endif
