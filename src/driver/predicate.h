/* Predicated kernels: a kernel's second form takes one parameter more, behind
   its own, and runs when the device's memory says so.
   The host device has a second form of every kernel, under the kernel's name
   with CGL_PREDICATED behind it.  For a GPU, the compiler makes a module of
   second forms (compile/nvrtc), whose kernels keep their names. */
#ifndef CGL_DRIVER_PREDICATE_H
#define CGL_DRIVER_PREDICATE_H

#include <stdint.h>

/* No C++ name has a character of it. */
#define CGL_PREDICATED "?"

/* Addresses of 32-bit words in device memory.  The kernel runs when *word is
   more than `turn` and *value, if there is a value, is not 0.  When it runs, it
   writes turn + 1 to *ran, if there is one, before anything else.
   With a value, all blocks must have looked before one of them changes it: the
   kernel has one block, or does not write it. */
typedef struct cgl_predicate {
  uint64_t word, value, ran; /* 0: no value, no `ran` */
  uint32_t turn;
  uint32_t early; /* not 0: *word only grows while kernels before this one run,
                     so it may be looked at before they are over */
} cgl_predicate;

#endif
