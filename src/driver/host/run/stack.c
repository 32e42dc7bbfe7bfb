/* The stack that a worker's kernels run on.  What overruns an array of its own
   (shared, or a thread's) comes to an inaccessible stretch above it, not to
   what the worker was about to do. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "driver/host/run/fiber_switch.h"
#include "driver/host/run/run.h"

enum {
  BELOW = 1 << 16, /* bytes that nobody may touch, below the stack */
  ABOVE = 1 << 24, /* and above it */
  LEAST = 1 << 23, /* bytes of the stack */
  MOST = 1 << 28
};

struct host_stack {
  cgl_lane worker, kernel; /* their contexts */
  bool taken;              /* by a kernel that runs */
  unsigned char *memory;   /* BELOW, the stack, ABOVE */
  size_t bytes;            /* of the stack */
};


#ifndef CGL_FIBER_UCONTEXT
/* Called where no compiler sees it. */
#ifdef __clang__
__attribute__((used))
#else
__attribute__((used, externally_visible))
#endif
CGL_FIBER_PLAIN void *
cgl_fiber_home(void) {
  return host_thread_here->stack->worker.sp;
}


/* As much as a thread gets, within bounds. */
static size_t stack_bytes(void) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur < LEAST ||
      limit.rlim_cur > MOST)
    return LEAST;
  return (size_t)limit.rlim_cur & ~(size_t)(BELOW - 1);
}


static host_stack *stack_new(void) {
  host_stack *s = calloc(1, sizeof *s);
  if (!s)
    return NULL;
  s->bytes = stack_bytes();
  s->memory =
      mmap(NULL, BELOW + s->bytes + ABOVE, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (s->memory != MAP_FAILED) {
    if (mprotect(s->memory + BELOW, s->bytes, PROT_READ | PROT_WRITE) == 0) {
      cgl_lane_make(&s->kernel, s->memory + BELOW, s->bytes,
                    (cgl_lane_start){0});
      return s;
    }
    munmap(s->memory, BELOW + s->bytes + ABOVE);
  }
  free(s);
  return NULL;
}
#endif


CGL_FIBER_PLAIN void host_stack_run(void (*body)(void *), void *argument) {
  host_stack *s = host_thread_here->stack;
#ifndef CGL_FIBER_UCONTEXT
  if (!s)
    s = host_thread_here->stack = stack_new();
#endif
  if (!s) {
    body(argument);
    return;
  }
  s->taken = true;
  cgl_lane_make_main(&s->worker);
  cgl_lane_call(&s->worker, &s->kernel, body, argument);
  s->taken = false;
}


void host_stack_reset(void) {
  host_stack *s = host_thread_here->stack;
  if (!s || !s->taken)
    return;
  cgl_lane_abandoned(&s->worker);
  s->taken = false;
}


bool host_stack_is_past(uintptr_t address) {
  const host_stack *s = host_thread_here->stack;
  return s && s->taken &&
         address - (uintptr_t)(s->memory + BELOW + s->bytes) < ABOVE;
}


void host_stack_thread_exit(void) {
  host_stack *s = host_thread_here->stack;
  host_thread_here->stack = NULL;
  if (s)
    munmap(s->memory, BELOW + s->bytes + ABOVE);
  free(s);
}
