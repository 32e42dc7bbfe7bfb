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

static _Thread_local struct {
  sigjmp_buf jump;
  volatile sig_atomic_t inside;
  host_fault fault;
} frame;

static _Thread_local stack_t own_stack, old_stack;


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
  if (!frame.inside) {
    call_previous(number, info, context);
    return;
  }
  judge_fault(number, info, context, &frame.fault);
  frame.inside = 0;
  siglongjmp(frame.jump, 1);
}


/* Never returns to the kernel: ends it with a CUresult. */
__attribute__((noreturn)) static void end_kernel(int code, const char *why) {
  if (!frame.inside)
    abort();
  frame.fault.code = code;
  frame.fault.memory = false;
  snprintf(frame.fault.why, sizeof frame.fault.why, "%s",
           why ? why : "was aborted");
  frame.inside = 0;
  siglongjmp(frame.jump, 1);
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


void host_guard_thread_enter(void) {
  pthread_once(&once, install_handlers);
  void *memory = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED)
    return;
  own_stack = (stack_t){.ss_sp = memory, .ss_size = STACK_BYTES};
  sigaltstack(&own_stack, &old_stack);
}


void host_guard_thread_leave(void) {
  cgl_fiber_thread_exit();
  if (!own_stack.ss_sp)
    return;
  sigaltstack(&old_stack, NULL);
  munmap(own_stack.ss_sp, STACK_BYTES);
  own_stack.ss_sp = NULL;
}


bool host_guard_run(void (*body)(void *), void *argument, host_fault *fault) {
  if (sigsetjmp(frame.jump, 0) == 0) {
    frame.inside = 1;
    body(argument);
    frame.inside = 0;
    return true;
  }
  cgl_fiber_reset();
  *fault = frame.fault;
  return false;
}
