/* Fault frames: code that touches device memory runs inside one, and a fault
   in it becomes an error of the launch instead of the end of the process.
   A kernel that is to end is sent SIGFPE, which faults use already; the thread
   itself decides whether the signal still concerns what it runs.  Away from
   the kernel's own code it goes on, and is interrupted again later. */
#define _GNU_SOURCE
#ifdef _FORTIFY_SOURCE
#undef _FORTIFY_SOURCE /* its longjmp refuses to leave a fiber's stack */
#endif
#include "driver/host/run/fiber.h"
#include "driver/host/run/run.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

enum {
  STACK_BYTES = 65536,
  AGAIN_NS = 1000000,
  LOOK_NS = 10000000 /* then a kernel first looks whether it was stopped */
};

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { NCAUGHT = sizeof caught / sizeof *caught };
static struct sigaction previous[NCAUGHT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A worker's. */
struct host_guard {
  CGL_THREAD_APART sigjmp_buf jump;
  atomic_int inside;
  _Atomic uint64_t deadline; /* of a watched kernel, for other threads */
  const host_limits *_Atomic limits;
  host_fault fault;
  stack_t own_stack, old_stack; /* for signals */
  pthread_t thread;
  host_guard *next; /* of all workers' */
};

static pthread_mutex_t guards_mutex = PTHREAD_MUTEX_INITIALIZER;
static host_guard *guards; /* under the mutex */


static host_guard *guard_here(void) {
  return host_thread_here ? host_thread_here->guard : NULL;
}


/* The handler that was there before us has its say. */
static void call_previous(int number, siginfo_t *info, void *context) {
  const struct sigaction *old = NULL;
  for (int i = 0; i < NCAUGHT; i++)
    if (caught[i] == number)
      old = &previous[i];
  if (!old)
    return;
  if (old->sa_flags & SA_SIGINFO) {
    old->sa_sigaction(number, info, context);
  } else if (old->sa_handler == SIG_DFL || old->sa_handler == SIG_IGN) {
    /* Comes again when we return, and then ends the process. */
    struct sigaction plain = {.sa_handler = SIG_DFL};
    sigaction(number, &plain, NULL);
    if (info->si_code <= 0)
      raise(number);
  } else {
    old->sa_handler(number);
  }
}


static void guard_leave(host_guard *guard) {
  atomic_store_explicit(&guard->inside, 0, memory_order_relaxed);
}


static uintptr_t program_counter(const ucontext_t *context) {
#if defined(__x86_64__)
  return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  return (uintptr_t)context->uc_mcontext.pc;
#else
  (void)context;
  return 0;
#endif
}


static bool limits_due(const host_limits *limits) {
  return host_watch_due(limits->deadline) ||
         (limits->stopped && atomic_load(limits->stopped));
}


/* May the frame end here, by its limits? */
static bool limit_applies(const host_guard *guard, const ucontext_t *context) {
  const host_limits *limits = guard->limits;
  if (!guard->inside || !limits || !limits_due(limits))
    return false;
  uintptr_t at = program_counter(context);
  return at >= limits->code && at < limits->code_end;
}


static uintptr_t stack_pointer(const ucontext_t *context) {
#if defined(__x86_64__)
  return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
  return (uintptr_t)context->uc_mcontext.sp;
#else
  (void)context;
  return 0;
#endif
}


static void judge_fault(int number, const siginfo_t *info, const void *context,
                        host_fault *fault) {
  const char *why;
  fault->memory = false;
  fault->address = (uintptr_t)info->si_addr;
  uintptr_t sp = stack_pointer(context);
  if (number == SIGFPE) {
    fault->code = CUDA_ERROR_LAUNCH_FAILED;
    why = "divided an integer by zero";
  } else if (number == SIGILL) {
    fault->code = CUDA_ERROR_ILLEGAL_INSTRUCTION;
    why = "trapped";
  } else if (host_stack_is_past(fault->address)) {
    fault->code = CUDA_ERROR_ILLEGAL_ADDRESS;
    why = "ran past the end of an array of its own, shared or a thread's";
  } else if (cgl_fiber_is_guard(info->si_addr) ||
             (sp && fault->address + 65536 > sp &&
              fault->address < sp + 4096)) {
    fault->code = CUDA_ERROR_HARDWARE_STACK_ERROR;
    why = "overflowed its stack";
  } else if (info->si_code == SI_KERNEL || info->si_code <= 0) {
    fault->code = CUDA_ERROR_ILLEGAL_ADDRESS;
    why = "touched an address that no memory can have";
  } else {
    fault->code = CUDA_ERROR_ILLEGAL_ADDRESS;
    fault->memory = true;
    why = "touched";
  }
  size_t i = 0;
  for (; why[i] && i + 1 < sizeof fault->why; i++)
    fault->why[i] = why[i];
  fault->why[i] = '\0';
}


static void on_signal(int number, siginfo_t *info, void *context) {
  host_guard *guard = guard_here();
  if (info->si_code == SI_QUEUE && info->si_value.sival_ptr == &guards) {
    if (!guard || !limit_applies(guard, context))
      return;
    guard->fault.code = CUDA_ERROR_LAUNCH_TIMEOUT;
  } else if (guard && guard->inside) {
    judge_fault(number, info, context, &guard->fault);
  } else {
    call_previous(number, info, context);
    return;
  }
  guard_leave(guard);
  siglongjmp(guard->jump, 1);
}


/* Never returns to the kernel: ends it with a CUresult. */
__attribute__((noreturn)) static void end_kernel(int code, const char *why) {
  host_guard *guard = guard_here();
  if (!guard || !guard->inside)
    abort();
  guard->fault.code = code;
  guard->fault.memory = false;
  snprintf(guard->fault.why, sizeof guard->fault.why, "%s",
           why ? why : "was aborted");
  guard_leave(guard);
  siglongjmp(guard->jump, 1);
}


static void install_handlers(void) {
  cgl_fiber_set_hooks(end_kernel, host_conditional_set);
  host_watch_begin();
  for (int i = 0; i < NCAUGHT; i++) {
    /* NODEFER: leaving by siglongjmp must not leave the signal blocked. */
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK |
                                           SA_NODEFER | SA_RESTART};
    action.sa_sigaction = on_signal;
    sigemptyset(&action.sa_mask);
    sigaction(caught[i], &action, &previous[i]);
  }
}


host_guard *host_guard_new(void) {
  host_guard *guard = aligned_alloc(alignof(host_guard), sizeof *guard);
  if (guard)
    memset(guard, 0, sizeof *guard);
  return guard;
}


void host_guard_thread_enter(void) {
  pthread_once(&once, install_handlers);
  host_guard *guard = guard_here();
  guard->thread = pthread_self();
  pthread_mutex_lock(&guards_mutex);
  guard->next = guards;
  guards = guard;
  pthread_mutex_unlock(&guards_mutex);
  void *memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return;
  guard->own_stack = (stack_t){.ss_sp = memory, .ss_size = STACK_BYTES};
  sigaltstack(&guard->own_stack, &guard->old_stack);
}


void host_guard_thread_leave(void) {
  host_guard *guard = guard_here();
  pthread_mutex_lock(&guards_mutex);
  host_guard **link = &guards;
  while (*link != guard)
    link = &(*link)->next;
  *link = guard->next;
  pthread_mutex_unlock(&guards_mutex);
  cgl_fiber_thread_exit();
  host_stack_thread_exit();
  if (guard->own_stack.ss_sp) {
    sigaltstack(&guard->old_stack, NULL);
    munmap(guard->own_stack.ss_sp, STACK_BYTES);
  }
  host_thread_here->guard = NULL;
  free(guard);
}


uint64_t host_guard_interrupt(void) {
  uint64_t next = 0;
  if (!atomic_load(&host_watch_on))
    return 0;
  pthread_mutex_lock(&guards_mutex);
  for (host_guard *f = guards; f; f = f->next) {
    uint64_t at = atomic_load(&f->deadline);
    if (!atomic_load(&f->inside) || !atomic_load(&f->limits))
      continue;
    if (host_watch_due(at)) {
      pthread_sigqueue(f->thread, SIGFPE, (union sigval){.sival_ptr = &guards});
      at = host_now() + AGAIN_NS;
    }
    if (at && (!next || at < next))
      next = at;
  }
  pthread_mutex_unlock(&guards_mutex);
  return next;
}


/* When the watcher is to interrupt: a kernel that can be stopped looks itself,
   since nobody else may follow its pointer. */
static uint64_t limits_moment(const host_limits *limits) {
  const uint64_t look = limits->stopped ? host_now() + LOOK_NS : 0;
  return look && (!limits->deadline || look < limits->deadline)
             ? look
             : limits->deadline;
}


/* Whether what enters its frame may run. */
static bool limits_allow(host_guard *guard, const host_limits *limits) {
  if (!limits)
    return true;
  const uint64_t moment = limits_moment(limits);
  atomic_store(&guard->deadline, moment);
  atomic_store(&guard->inside, 1); /* seen before the watch is read */
  if (moment)
    host_watch_note();
  if (!limits_due(limits))
    return true;
  guard->fault.code = CUDA_ERROR_LAUNCH_TIMEOUT;
  return false;
}


/* Completes the fault of a frame that its limits ended. */
static void limit_describe(const host_limits *limits, host_fault *fault) {
  if (!limits || fault->code != CUDA_ERROR_LAUNCH_TIMEOUT)
    return;
  fault->memory = false;
  if (limits->deadline && host_now() >= limits->deadline &&
      !host_watch_aborted())
    snprintf(fault->why, sizeof fault->why, "did not end within %g s",
             (double)limits->ns * 1e-9);
  else
    snprintf(fault->why, sizeof fault->why, "was aborted");
}


/* A sanitizer blocks all signals in handlers, which the jump has left. */
static void unblock_caught(void) {
  sigset_t set;
  sigemptyset(&set);
  for (int i = 0; i < NCAUGHT; i++)
    sigaddset(&set, caught[i]);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}


/* No local variable lives across the jump. */
bool host_guard_run(void (*body)(void *), void *argument,
                    const host_limits *limits, host_fault *fault) {
  atomic_store_explicit(&guard_here()->limits, limits, memory_order_relaxed);
  if (sigsetjmp(guard_here()->jump, 0) == 0) {
    atomic_store_explicit(&guard_here()->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (!atomic_load_explicit(&host_watch_on, memory_order_relaxed) ||
        limits_allow(guard_here(), limits)) {
      body(argument);
      guard_leave(guard_here());
      return true;
    }
    guard_leave(guard_here());
  }
  unblock_caught();
  cgl_fiber_reset();
  host_stack_reset();
  *fault = guard_here()->fault;
  limit_describe(guard_here()->limits, fault);
  return false;
}
