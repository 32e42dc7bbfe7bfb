#define _GNU_SOURCE
#include "driver/host/run/fiber_switch.h"

#include <string.h>

#ifdef CGL_FIBER_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined CGL_FIBER_UCONTEXT
/* Saves the callee-saved registers on the stack, its address in *save, and
   takes up the stack `to`. */
void cgl_fiber_swap(void **save, void *to);
void cgl_fiber_enter(void);
#endif

#if defined CGL_FIBER_UCONTEXT
#elif defined __x86_64__
__asm__(".text\n"
        ".globl cgl_fiber_swap\n"
        ".hidden cgl_fiber_swap\n"
        ".type cgl_fiber_swap,@function\n"
        "cgl_fiber_swap:\n"
        "  pushq %rbp\n"
        "  pushq %rbx\n"
        "  pushq %r12\n"
        "  pushq %r13\n"
        "  pushq %r14\n"
        "  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n"
        "  popq %r14\n"
        "  popq %r13\n"
        "  popq %r12\n"
        "  popq %rbx\n"
        "  popq %rbp\n"
        "  ret\n"
        ".size cgl_fiber_swap,.-cgl_fiber_swap\n"
        ".globl cgl_fiber_enter\n"
        ".hidden cgl_fiber_enter\n"
        ".type cgl_fiber_enter,@function\n"
        "cgl_fiber_enter:\n"
        "  movl %ebx, %edi\n"
        "  xorl %ebp, %ebp\n"
        "  call *%r12\n"
        "  ud2\n"
        ".size cgl_fiber_enter,.-cgl_fiber_enter\n");

/* words of a new stack: r15 r14 r13 r12 rbx rbp, return address, padding */
enum { FRAME = 9, SLOT_MAIN = 3, SLOT_LANE = 4, SLOT_RETURN = 6 };
#elif defined __aarch64__
__asm__(".text\n"
        ".globl cgl_fiber_swap\n"
        ".hidden cgl_fiber_swap\n"
        ".type cgl_fiber_swap,%function\n"
        "cgl_fiber_swap:\n"
        "  sub sp, sp, #160\n"
        "  stp x19, x20, [sp, #0]\n"
        "  stp x21, x22, [sp, #16]\n"
        "  stp x23, x24, [sp, #32]\n"
        "  stp x25, x26, [sp, #48]\n"
        "  stp x27, x28, [sp, #64]\n"
        "  stp x29, x30, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n"
        "  stp d10, d11, [sp, #112]\n"
        "  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x9, sp\n"
        "  str x9, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp, #0]\n"
        "  ldp x21, x22, [sp, #16]\n"
        "  ldp x23, x24, [sp, #32]\n"
        "  ldp x25, x26, [sp, #48]\n"
        "  ldp x27, x28, [sp, #64]\n"
        "  ldp x29, x30, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n"
        "  ldp d10, d11, [sp, #112]\n"
        "  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  add sp, sp, #160\n"
        "  ret\n"
        ".size cgl_fiber_swap,.-cgl_fiber_swap\n"
        ".globl cgl_fiber_enter\n"
        ".hidden cgl_fiber_enter\n"
        ".type cgl_fiber_enter,%function\n"
        "cgl_fiber_enter:\n"
        "  mov w0, w19\n"
        "  mov x29, xzr\n"
        "  blr x20\n"
        "  brk #0\n"
        ".size cgl_fiber_enter,.-cgl_fiber_enter\n");

/* words of a new stack: x19, x20, ..., x30 at 88 bytes, padding */
enum { FRAME = 22, SLOT_LANE = 0, SLOT_MAIN = 1, SLOT_RETURN = 11 };
#endif


#ifdef CGL_FIBER_UCONTEXT
CGL_FIBER_PLAIN void cgl_lane_make(cgl_lane *context, void *bottom, size_t size,
                                   void (*main)(uint32_t), uint32_t lane) {
  getcontext(&context->registers);
  context->registers.uc_stack.ss_sp = bottom;
  context->registers.uc_stack.ss_size = size;
  context->registers.uc_link = NULL;
  makecontext(&context->registers, (void (*)(void))main, 1, lane);
#else
CGL_FIBER_PLAIN void cgl_lane_make(cgl_lane *context, void *bottom, size_t size,
                                   void (*main)(uint32_t), uint32_t lane) {
  uintptr_t top = ((uintptr_t)bottom + size) & ~(uintptr_t)63;
  /* what the first swap leaves is aligned as at a call: to 16 bytes */
  uint64_t *words = (uint64_t *)top - FRAME;
  for (int i = 0; i < FRAME; i++)
    words[i] = 0;
  words[SLOT_LANE] = lane;
  words[SLOT_MAIN] = (uint64_t)(uintptr_t)main;
  words[SLOT_RETURN] = (uint64_t)(uintptr_t)cgl_fiber_enter;
  context->sp = words;
#endif
#ifdef CGL_FIBER_ASAN
  context->fake = NULL;
  context->bottom = bottom;
  context->size = size;
  context->over = 0;
#endif
}


CGL_FIBER_PLAIN void cgl_lane_switch(cgl_lane *from, cgl_lane *to) {
#ifdef CGL_FIBER_ASAN
  __sanitizer_start_switch_fiber(from->over ? NULL : &from->fake, to->bottom,
                                 to->size);
#endif
#ifdef CGL_FIBER_UCONTEXT
  swapcontext(&from->registers, &to->registers);
#else
  cgl_fiber_swap(&from->sp, to->sp);
#endif
#ifdef CGL_FIBER_ASAN
  __sanitizer_finish_switch_fiber(from->fake, NULL, NULL);
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


CGL_FIBER_PLAIN void cgl_lane_leaving(cgl_lane *self) {
#ifdef CGL_FIBER_ASAN
  self->over = 1;
#else
  (void)self;
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
