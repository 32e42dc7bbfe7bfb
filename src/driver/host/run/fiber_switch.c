#define _GNU_SOURCE
#include "driver/host/run/fiber_switch.h"

#ifdef CGL_FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#undef cgl_lane_make_main
#undef cgl_lane_make
#undef cgl_lane_switch
#undef cgl_lane_call
#undef cgl_lane_entered
#undef cgl_lane_leaving
#undef cgl_lane_abandoned

/* A thread that returns from the kernel comes to label 2, which is where the
   processor expects it: what goes on with the next thread is called from there
   too, although it does not return.  That thread's own place is jumped to, for
   nothing has called it. */
#if defined CGL_FIBER_UCONTEXT
#elif defined __x86_64__
#define SAVE                                                 \
  "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n" \
  "  pushq %r14\n  pushq %r15\n"
#define RESTORE                                          \
  "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n" \
  "  popq %rbx\n  popq %rbp\n"
__asm__(".text\n"
        ".globl cgl_fiber_swap\n"
        ".hidden cgl_fiber_swap\n"
        ".type cgl_fiber_swap,@function\n"
        ".balign 64\n"
        "cgl_fiber_swap:\n" SAVE "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n" RESTORE "  ret\n"
        ".size cgl_fiber_swap,.-cgl_fiber_swap\n"
        ".globl cgl_fiber_start\n"
        ".hidden cgl_fiber_start\n"
        ".type cgl_fiber_start,@function\n"
        "cgl_fiber_start:\n" SAVE "  movq %rsp, (%rdi)\n"
        ".size cgl_fiber_start,.-cgl_fiber_start\n"
        ".globl cgl_fiber_begin\n"
        ".hidden cgl_fiber_begin\n"
        ".type cgl_fiber_begin,@function\n"
        "cgl_fiber_begin:\n"
        "  movq %rsi, %rsp\n"
        "  movq (%rsp), %rdi\n"
        "  xorl %ebp, %ebp\n"
        "1:\n"
        "  call *%rdx\n"
        "2:\n"
        "  call *8(%rsp)\n"
        "  movq (%rax), %rsi\n"
        "  testq %rdx, %rdx\n"
        "  jne cgl_fiber_begin\n"
        "  leaq 3f(%rip), %rdx\n"
        "  jmp 1b\n"
        "3:\n"
        "  movq %rsi, %rsp\n" RESTORE "  popq %rcx\n"
        "  jmp *%rcx\n"
        ".size cgl_fiber_begin,.-cgl_fiber_begin\n"
        ".globl cgl_fiber_call\n"
        ".hidden cgl_fiber_call\n"
        ".type cgl_fiber_call,@function\n"
        ".balign 16\n"
        "cgl_fiber_call:\n"
        "  .cfi_startproc\n"
        "  pushq %rbp\n"
        "  .cfi_def_cfa_offset 16\n"
        "  .cfi_offset %rbp, -16\n"
        "  movq %rsp, %rbp\n"
        "  .cfi_def_cfa_register %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rcx)\n"
        "  movq %rdx, %rsp\n"
        "  movq %rdi, %rax\n"
        "  movq %rsi, %rdi\n"
        "  call *%rax\n"
        "  call cgl_fiber_home\n"
        "  movq %rax, %rsp\n" RESTORE "  .cfi_def_cfa %rsp, 8\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".size cgl_fiber_call,.-cgl_fiber_call\n");
#undef SAVE
#undef RESTORE
#elif defined __aarch64__
#define SAVED(op)                   \
  "  " op " x19, x20, [sp, #0]\n"   \
  "  " op " x21, x22, [sp, #16]\n"  \
  "  " op " x23, x24, [sp, #32]\n"  \
  "  " op " x25, x26, [sp, #48]\n"  \
  "  " op " x27, x28, [sp, #64]\n"  \
  "  " op " x29, x30, [sp, #80]\n"  \
  "  " op " d8, d9, [sp, #96]\n"    \
  "  " op " d10, d11, [sp, #112]\n" \
  "  " op " d12, d13, [sp, #128]\n" \
  "  " op " d14, d15, [sp, #144]\n"
#define SAVE SAVED("stp")
#define RESTORE SAVED("ldp")
__asm__(".text\n"
        ".globl cgl_fiber_swap\n"
        ".hidden cgl_fiber_swap\n"
        ".type cgl_fiber_swap,%function\n"
        "cgl_fiber_swap:\n"
        "  sub sp, sp, #160\n" SAVE "  mov x9, sp\n"
        "  str x9, [x0]\n"
        "  mov sp, x1\n" RESTORE "  add sp, sp, #160\n"
        "  ret\n"
        ".size cgl_fiber_swap,.-cgl_fiber_swap\n"
        ".globl cgl_fiber_start\n"
        ".hidden cgl_fiber_start\n"
        ".type cgl_fiber_start,%function\n"
        "cgl_fiber_start:\n"
        "  sub sp, sp, #160\n" SAVE "  mov x9, sp\n"
        "  str x9, [x0]\n"
        ".size cgl_fiber_start,.-cgl_fiber_start\n"
        ".globl cgl_fiber_begin\n"
        ".hidden cgl_fiber_begin\n"
        ".type cgl_fiber_begin,%function\n"
        "cgl_fiber_begin:\n"
        "  mov sp, x1\n"
        "  ldr x0, [sp]\n"
        "  mov x29, xzr\n"
        "1:\n"
        "  blr x2\n"
        "2:\n"
        "  ldr x9, [sp, #8]\n"
        "  blr x9\n"
        "  mov x2, x1\n"
        "  ldr x1, [x0]\n"
        "  cbnz x2, cgl_fiber_begin\n"
        "  adr x2, 3f\n"
        "  b 1b\n"
        "3:\n"
        "  mov sp, x1\n" RESTORE "  add sp, sp, #160\n"
        "  br x30\n"
        ".size cgl_fiber_begin,.-cgl_fiber_begin\n"
        ".globl cgl_fiber_call\n"
        ".hidden cgl_fiber_call\n"
        ".type cgl_fiber_call,%function\n"
        "cgl_fiber_call:\n"
        "  sub sp, sp, #160\n" SAVE "  mov x9, sp\n"
        "  str x9, [x3]\n"
        "  mov sp, x2\n"
        "  mov x9, x0\n"
        "  mov x0, x1\n"
        "  blr x9\n"
        "  bl cgl_fiber_home\n"
        "  mov sp, x0\n" RESTORE "  add sp, sp, #160\n"
        "  ret\n"
        ".size cgl_fiber_call,.-cgl_fiber_call\n");
#undef SAVE
#undef RESTORE
#undef SAVED
#endif


CGL_FIBER_PLAIN void cgl_lane_make_main(cgl_lane *context) {
#ifdef CGL_FIBER_ASAN
  context->bottom = NULL; /* a fiber that begins is told */
#else
  (void)context;
#endif
}


#ifdef CGL_FIBER_UCONTEXT
/* makecontext passes no pointers. */
CGL_FIBER_PLAIN static void lane_begin(unsigned high, unsigned low) {
  cgl_lane *self = (cgl_lane *)((uintptr_t)high << 16 << 16 | low);
  self->begin(self->start.argument);
  cgl_lane_choice next = self->start.left();
  next.to->begin = next.begin;
  setcontext(&next.to->registers);
}


CGL_FIBER_PLAIN static void lane_place(cgl_lane *context, void *bottom,
                                       size_t size, cgl_lane_start start) {
  uintptr_t self = (uintptr_t)context;
  getcontext(&context->registers);
  context->registers.uc_stack.ss_sp = bottom;
  context->registers.uc_stack.ss_size = size;
  context->registers.uc_link = NULL;
  context->start = start;
  makecontext(&context->registers, (void (*)(void))lane_begin, 2,
              (unsigned)(self >> 16 >> 16), (unsigned)self);
}
#else
#define lane_place cgl_lane_set
#endif


CGL_FIBER_PLAIN void cgl_lane_make(cgl_lane *context, void *bottom, size_t size,
                                   cgl_lane_start start) {
  lane_place(context, bottom, size, start);
#ifdef CGL_FIBER_ASAN
  context->fake = NULL;
  context->bottom = bottom;
  context->size = size;
#endif
}


CGL_FIBER_PLAIN void cgl_lane_switch(cgl_lane *from, cgl_lane *to,
                                     void (*begin)(void *)) {
#ifdef CGL_FIBER_ASAN
  __sanitizer_start_switch_fiber(&from->fake, to->bottom, to->size);
#endif
#ifdef CGL_FIBER_UCONTEXT
  to->begin = begin;
  from->last = NULL;
  swapcontext(&from->registers, &to->registers);
  if (from->last)
    from->last();
#else
  if (begin)
    cgl_fiber_start(&from->sp, to->sp, begin);
  else
    cgl_fiber_swap(&from->sp, to->sp);
#endif
#ifdef CGL_FIBER_ASAN
  __sanitizer_finish_switch_fiber(from->fake, NULL, NULL);
#endif
}


#ifdef CGL_FIBER_ASAN
typedef struct lane_called {
  cgl_lane *from, *to;
  void (*body)(void *);
  void *argument;
} lane_called;


CGL_FIBER_PLAIN static void lane_run(void *argument) {
  lane_called *c = argument;
  cgl_lane_entered(c->to, c->from);
  c->body(c->argument); /* and nothing more: it may have spoilt this frame */
}
#endif


CGL_FIBER_PLAIN void cgl_lane_call(cgl_lane *from, cgl_lane *to,
                                   void (*body)(void *), void *argument) {
#if defined CGL_FIBER_UCONTEXT
  (void)from;
  (void)to;
  body(argument);
#elif defined CGL_FIBER_ASAN
  lane_called c = {from, to, body, argument};
  __sanitizer_start_switch_fiber(&from->fake, to->bottom, to->size);
  cgl_fiber_call(lane_run, &c, to->sp, &from->sp);
  cgl_lane_abandoned(from);
#else
  cgl_fiber_call(body, argument, to->sp, &from->sp);
#endif
}


CGL_FIBER_PLAIN void cgl_lane_leaving(cgl_lane *to) {
#ifdef CGL_FIBER_ASAN
  __sanitizer_start_switch_fiber(NULL, to->bottom, to->size);
#else
  (void)to;
#endif
}


CGL_FIBER_PLAIN void cgl_lane_end(cgl_lane *to, void (*last)(void)) {
  cgl_lane_leaving(to);
#ifdef CGL_FIBER_UCONTEXT
  to->last = last;
  setcontext(&to->registers);
  __builtin_unreachable();
#else
  uintptr_t below = ((uintptr_t)to->sp - 512) & ~(uintptr_t)63;
  cgl_fiber_begin(NULL, (void *)below, (void (*)(void *))(void *)last);
#endif
}


CGL_FIBER_PLAIN void cgl_lane_entered(cgl_lane *self, cgl_lane *main) {
#ifdef CGL_FIBER_ASAN
  const void *bottom;
  size_t size;
  __sanitizer_finish_switch_fiber(self->fake, &bottom, &size);
  if (!main->bottom) {
    main->bottom = bottom;
    main->size = size;
  }
#else
  (void)self;
  (void)main;
#endif
}


CGL_FIBER_PLAIN void cgl_lane_abandoned(cgl_lane *main) {
#ifdef CGL_FIBER_ASAN
  __sanitizer_start_switch_fiber(NULL, main->bottom, main->size);
  __sanitizer_finish_switch_fiber(main->fake, NULL, NULL);
#else
  (void)main;
#endif
}
