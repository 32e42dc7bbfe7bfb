/* Fault frames: code that touches device memory runs inside one, and a fault
   in it becomes an error of the launch instead of the end of the process. */
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

enum { STACK_BYTES = 65536 };

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
enum { NCAUGHT = sizeof caught / sizeof *caught };
static struct sigaction previous[NCAUGHT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* A worker's. */
struct host_guard {
  CGL_THREAD_APART sigjmp_buf jump;
  volatile sig_atomic_t inside;
  host_fault fault;
  stack_t own_stack, old_stack; /* for signals */
};


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
  if (!guard || !guard->inside) {
    call_previous(number, info, context);
    return;
  }
  judge_fault(number, info, context, &guard->fault);
  guard->inside = 0;
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
  guard->inside = 0;
  siglongjmp(guard->jump, 1);
}


static void install_handlers(void) {
  cgl_fiber_set_hooks(end_kernel, host_conditional_set);
  for (int i = 0; i < NCAUGHT; i++) {
    /* NODEFER: leaving by siglongjmp must not leave the signal blocked. */
    struct sigaction action = {.sa_flags =
                                   SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
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
  void *memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return;
  guard->own_stack = (stack_t){.ss_sp = memory, .ss_size = STACK_BYTES};
  sigaltstack(&guard->own_stack, &guard->old_stack);
}


void host_guard_thread_leave(void) {
  host_guard *guard = guard_here();
  cgl_fiber_thread_exit();
  if (guard->own_stack.ss_sp) {
    sigaltstack(&guard->old_stack, NULL);
    munmap(guard->own_stack.ss_sp, STACK_BYTES);
  }
  host_thread_here->guard = NULL;
  free(guard);
}


/* No local variable lives across the jump. */
bool host_guard_run(void (*body)(void *), void *argument, host_fault *fault) {
  if (sigsetjmp(guard_here()->jump, 0) == 0) {
    guard_here()->inside = 1;
    body(argument);
    guard_here()->inside = 0;
    return true;
  }
  cgl_fiber_reset();
  *fault = guard_here()->fault;
  return false;
}
