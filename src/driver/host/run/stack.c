/* The stack that a worker's kernels run on.  What overruns an array of its own
   (shared, or a thread's) comes to an inaccessible stretch above it, not to
   what the worker was about to do. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>

#include "driver/host/run/fiber_switch.h"
#include "driver/host/run/run.h"

enum {
  BELOW = 1 << 16, /* bytes that nobody may touch, at both ends */
  STACK = 1 << 23,
  ABOVE = 1 << 22,
  ALL = BELOW + STACK + ABOVE
};

struct host_stack {
  cgl_lane worker, kernel; /* their contexts */
  bool taken;              /* by a kernel that runs */
  unsigned char *memory;
};


static host_stack *stack_new(void) {
  host_stack *s = calloc(1, sizeof *s);
  unsigned char *memory =
      mmap(NULL, ALL, PROT_NONE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (s && memory != MAP_FAILED &&
      mprotect(memory + BELOW, STACK, PROT_READ | PROT_WRITE) == 0) {
    s->memory = memory;
    cgl_lane_make(&s->kernel, memory + BELOW, STACK, (cgl_lane_start){0});
    return s;
  }
  if (memory != MAP_FAILED)
    munmap(memory, ALL);
  free(s);
  return NULL;
}


CGL_FIBER_PLAIN bool host_stack_run(void (*body)(void *), void *argument) {
  host_stack *s = host_thread_here->stack;
  if (!s)
    s = host_thread_here->stack = stack_new();
  if (!s)
    return false;
  s->taken = true;
  cgl_lane_make_main(&s->worker);
  cgl_lane_call(&s->worker, &s->kernel, body, argument);
  s->taken = false;
  return true;
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
  return s && address - (uintptr_t)(s->memory + BELOW + STACK) < ABOVE;
}


void host_stack_thread_exit(void) {
  host_stack *s = host_thread_here->stack;
  host_thread_here->stack = NULL;
  if (s)
    munmap(s->memory, ALL);
  free(s);
}
