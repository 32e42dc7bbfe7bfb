/* How work runs: worker threads, parallel loops, fences, fault frames, and
   the kernels, copies and fills that run on them.
   Idea: a task is a function that any worker may run; a loop is shared among
   idle workers; a fence is a completion that tasks and threads wait for.
   Invariants: tasks run without host_lock; a fence goes from pending to done
   once and stays done; code that touches device memory runs in a fault frame,
   and a thread is inside at most one; a kernel is interrupted only at an
   instruction of its own module, so it holds no lock; nothing but the kernel
   has frames on the stack that it runs on. */
#ifndef CGL_HOST_RUN_H
#define CGL_HOST_RUN_H

#include <sched.h>
#include <time.h>

#include "driver/host/base/base.h"
#include "driver/kernel_abi.h"
#include "driver/predicate.h"

#define HOST_SPIN_NS 20000 /* longest wait awake before a thread sleeps */

static inline uint64_t host_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}


/* One step of waiting awake; false when HOST_SPIN_NS have passed.  It yields
   now and then: what is waited for may need this very core. */
typedef struct host_spinner {
  uint64_t end;
  unsigned steps;
} host_spinner;

static inline bool host_spin(host_spinner *s) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
  if (++s->steps % 16)
    return true;
  sched_yield();
  uint64_t now = host_now();
  if (!s->end)
    s->end = now + HOST_SPIN_NS;
  return now < s->end;
}


/* ---- workers (scheduler.c) ---- */

/* As many as there are cores, or as CGRAPHLUA_HOST_THREADS says; started at
   first use, with the program's signals blocked. */
typedef struct host_task {
  void (*run)(struct host_task *task); /* without host_lock */
  struct host_task *next;
  int priority; /* of the stream it serves: below 0 goes first */
} host_task;

/* Queues a task for any worker.  Callable with or without host_lock. */
void host_task_submit(host_task *task);
bool host_task_waiting(void); /* is a task queued that no worker has taken? */
unsigned host_worker_count(void);
unsigned host_worker_number(void); /* the calling worker's, from 0 */
/* Wakes idle workers until `count` are awake; how many are awake now. */
void host_worker_wake(unsigned count);
unsigned host_worker_spinning(void);
/* Around a user's function on any thread: driver calls in it answer
   NOT_PERMITTED, and another worker may take this one's place. */
void host_callback_begin(void);
void host_callback_end(void);

/* ---- parallel loops (parallel.c) ---- */

/* What an item of a loop took last time, in ns; 0: unknown. */
typedef _Atomic float host_cost;
/* Runs body(context, first, last) over [0, count) in chunks of at least
   `chunk` items, on the calling worker and any idle ones; returns when all is
   done.  A loop that is short, by its `cost`, is a plain call. */
void host_parallel_for(uint64_t count, uint64_t chunk,
                       void (*body)(void *context, uint64_t first,
                                    uint64_t last),
                       void *context, host_cost *cost);
/* Does a loop need a helper?  Helps with a loop; false: no loop was open. */
bool host_parallel_open(void);
bool host_parallel_help(void);

/* ---- fences (fence.c) ---- */

/* Reference-counted completion with the time (ns, CLOCK_MONOTONIC) at which
   it was signalled. */
typedef struct host_fence host_fence;
host_fence *host_fence_create(void); /* one reference; NULL: no memory */
host_fence *host_fence_retain(host_fence *fence);
void host_fence_release(host_fence *fence);
bool host_fence_done(const host_fence *fence);
uint64_t host_fence_time(const host_fence *fence);
void host_fence_signal(host_fence *fence); /* wakes waiters; once */
/* Submits `task` once the fence is done; false when it is done already, and
   then the task is not submitted.  The caller keeps the fence alive. */
bool host_fence_then(host_fence *fence, host_task *task);
void host_fence_wait(host_fence *fence); /* blocks; not on a worker, and
                                            not under host_lock */

/* ---- fault frames (guard.c) ---- */

/* Where and when a kernel may be ended from outside. */
typedef struct host_limits {
  uintptr_t code, code_end;   /* of its module */
  uint64_t deadline;          /* by host_now; 0: none */
  uint64_t ns;                /* from the launch's begin to the deadline */
  const _Atomic int *stopped; /* not 0: it ends at once; or NULL */
} host_limits;

/* Runs body(argument); true when it returned, false when a memory fault, an
   arithmetic fault, an abort by the kernel, or its limits ended it: *fault says
   which.  Without limits (NULL) it is never interrupted. */
bool host_guard_run(void (*body)(void *), void *argument,
                    const host_limits *limits, host_fault *fault);
/* Interrupts the kernels for which host_watch_due holds.  Returns the moment
   to call it again, or 0 when no kernel runs that may have to end. */
uint64_t host_guard_interrupt(void);
typedef struct host_guard host_guard;
/* What a worker needs for frames, in its host_thread; NULL: no memory. */
host_guard *host_guard_new(void);
/* Around a worker's life: its alternate signal stack; the handlers, once.  At
   the end the guard goes. */
void host_guard_thread_enter(void);
void host_guard_thread_leave(void);

/* ---- the stack of kernels (stack.c) ---- */

typedef struct host_stack host_stack;
/* Runs body(argument) on the calling worker's stack for kernels, or on its own
   when there is no memory for one. */
void host_stack_run(void (*body)(void *), void *argument);
/* The stack was left by a jump to the worker's own. */
void host_stack_reset(void);
/* Does an address lie above it, where an array that is overrun leads?  Safe in
   a signal handler. */
bool host_stack_is_past(uintptr_t address);
void host_stack_thread_exit(void); /* gives the memory back */

/* ---- the watch on kernels that do not end (watch.c) ---- */

/* Whether a kernel may have a deadline, or the device was aborted: read at
   every launch, so that launches without a limit cost no more. */
extern atomic_bool host_watch_on;
/* The first value, from the environment; once. */
void host_watch_begin(void);
/* Seconds that a launch may run; 0: as long as it likes.  For kernels that
   begin from now on.  OPERATING_SYSTEM when no thread can be started. */
CUresult host_watch_set(double seconds);
/* From now on launches may have limits of their own. */
CUresult host_watch_enable(void);
/* Sets the deadline of a launch that begins now, of an isolated stream unless
   it is NULL. */
void host_watch_limit(host_limits *limits, const host_isolation *isolation);
/* Callable in a signal handler. */
bool host_watch_due(uint64_t deadline);
bool host_watch_aborted(void);
/* A kernel with a deadline runs now: wakes the watcher when it sleeps. */
void host_watch_note(void);
/* Ends all kernels and loses the context; any thread, without host_lock. */
void host_watch_abort(void);
void host_watch_reset(void); /* forgets the abort */
void host_watch_end(void);   /* the process ends */

/* ---- modules and kernels (module.c, kernel.c) ---- */

struct CUfunc_st {
  CUmodule module;
  const cgl_host_kernel *kernel;
  bool predicated;        /* its last parameter is a cgl_predicate */
  bool follows;           /* it is the words of a following form */
  host_limits limits;     /* of a launch without a deadline */
  int max_dynamic_shared; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
  int carveout;      /* CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT */
  host_cost cost[2]; /* of a block, and of a row of blocks */
};

/* Opens an ELF image after kernel_abi.h; takes host_lock itself. */
CUresult host_module_load(CUmodule *out, const void *image);
void host_module_retain(CUmodule module); /* any thread */
void host_module_release(CUmodule module);
/* Under host_lock: the handles die; kernels that are queued still run. */
void host_module_unload(CUmodule module);
void host_module_reset(void); /* unloads all */
/* Under host_lock: INVALID_HANDLE, NOT_FOUND; INVALID_VALUE for a global that
   is named like a kernel.  A kernel's name with CGL_PREDICATED or CGL_FOLLOWING
   behind it is a second form. */
CUresult host_module_function(CUmodule module, const char *name,
                              CUfunction *out);
CUresult host_module_global(CUmodule module, const char *name,
                            const cgl_host_global **out);

typedef struct host_kernel_op {
  CUfunction function; /* retained through its module */
  uint32_t grid[3], block[3];
  uint32_t shared_bytes;
  int priority, cooperative;
  bool programmatic; /* launched with programmatic stream serialization */
  void **params;     /* one malloc block: pointers, then the copied values */
} host_kernel_op;

/* Under host_lock: checks grid, block, shared bytes and params against the
   function and copies the parameter values.  Takes kernelParams or extra as
   cuLaunchKernel does. */
CUresult host_kernel_make(host_kernel_op *op, CUfunction f,
                          const uint32_t grid[3], const uint32_t block[3],
                          uint32_t shared_bytes, void **params, void **extra);
CUresult host_kernel_copy(host_kernel_op *to, const host_kernel_op *from);
void host_kernel_release(host_kernel_op *op);
/* Runs the blocks, for an isolated stream unless it is NULL; a fault ends the
   launch with host_fail_fault. */
CUresult host_kernel_run(const host_kernel_op *op, host_isolation *isolation);
/* Where a parameter lies in a buffer laid out as a C struct. */
size_t host_kernel_param_offset(const cgl_host_kernel *kernel, size_t index);

/* ---- copies and fills (move.c) ---- */

/* Of checked, resolved parameters; ILLEGAL_ADDRESS, made sticky, when the
   memory is gone meanwhile; for an isolated stream unless it is NULL. */
CUresult host_move_copy(const CUDA_MEMCPY3D *copy, host_isolation *isolation);
CUresult host_move_fill(const CUDA_MEMSET_NODE_PARAMS_v2 *set,
                        host_isolation *isolation);

/* ---- conditional values (conditional.c) ---- */

/* Under host_lock, unless another rule stands there.  A handle is counted; a
   stale one reads as 0 and sets nothing. */
CUresult host_conditional_handle_new(uint64_t *out, unsigned value,
                                     bool assign);
void host_conditional_handle_retain(uint64_t handle);
void host_conditional_handle_release(uint64_t handle);
/* Callable without host_lock: cudaGraphSetConditional, and its reading. */
void host_conditional_set(uint64_t handle, uint32_t value);
uint32_t host_conditional_get(uint64_t handle);
/* A launch begins: the default value, where it is assigned. */
void host_conditional_reset(uint64_t handle);
/* A node takes or gives up the handle; false when it is taken (given up)
   already. */
bool host_conditional_claim(uint64_t handle, bool claim);
bool host_conditional_claimed(uint64_t handle);

#endif
