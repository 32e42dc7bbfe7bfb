/* Second forms of kernels: the same code with one parameter more, behind its
   own.  The predicated form runs when the device's memory says so.  The
   following form reads parameters from addresses when it begins.
   The host device has both forms of every kernel, under the kernel's name with
   CGL_PREDICATED or CGL_FOLLOWING behind it.  For a GPU, the compiler makes a
   module of second forms (compile/nvrtc), in which the predicated ones have the
   kernels' own names. */
#ifndef CGL_DRIVER_PREDICATE_H
#define CGL_DRIVER_PREDICATE_H

#include <stddef.h>
#include <stdint.h>

typedef enum cgl_second_form {
  CGL_SECOND_PREDICATED,
  CGL_SECOND_FOLLOWING,
  CGL_SECOND_FORMS
} cgl_second_form;

/* No C++ name has a character of it; nor, but by an extension, of the other,
   which PTX takes. */
#define CGL_PREDICATED "?"
#define CGL_FOLLOWING "$follows"

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

/* The last parameter of a following form of a kernel with `n` parameters: words
   of 64 bits, n + 1 of them.  Word 1 + i is the address that parameter i is
   read from, or 0, and the parameter has the value that it was given.
   Word 0 is not 0 when the kernel may write to one of the addresses: it has one
   block then, whose threads have all read before one of them goes on. */
static inline size_t cgl_following_bytes(size_t n) {
  return (n + 1) * sizeof(uint64_t);
}
/* What the address of a parameter of so many bytes is a multiple of. */
static inline size_t cgl_following_alignment(size_t bytes) {
  const size_t power = bytes & (~bytes + 1);
  return power < 16 ? power : 16;
}
/* Parameters with more bytes are never read from an address. */
enum { CGL_FOLLOWING_MOST = 32 };

#endif
