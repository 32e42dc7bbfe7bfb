/* Kernels with barriers as loops over the threads of a block, and kernels
   without them in strips (strip.c).
   A kernel's statements become a tree (tree.c), calls of functions that
   synchronize are put in place of the calls (inline.c), what its variables
   need is found out (values.c), and the tree is written as a function that
   runs one block (write.c): every barrier ends a loop over all threads, every
   warp operation one over 32 lanes.  Variables that live across such an end
   are kept per thread in arrays; those that are the same for all threads are
   scalars, and indices are computed again in each loop.
   Invariant: what is not understood is refused, with a reason and a line, and
   then runs as fibers; what is written does what the fibers do. */
#ifndef CGL_COMPILE_LOOPS_H
#define CGL_COMPILE_LOOPS_H

#include "compile/frontend/frontend.h"

typedef struct cgl_loops_style {
  size_t id;        /* the class that runs a block is called cgl_loops_<id> */
  const char *file; /* of the script, for line markers */
  bool ordered;     /* a loop's threads run in order */
  bool strips;      /* no barriers: 32 threads in a row (see strip.c) */
  bool strided;     /* no barriers: refused without a loop that the threads of a
                       row take together (see stride.c), or a guard that the
                       compiler cannot see through (see guard.c) */
  bool indexed;     /* strided: or a sum that is an index, likewise */
} cgl_loops_style;

/* Appends what runs a block of a kernel, or a strip of its threads, in the
   kernel's namespace.  Returns 0;
   1 when the kernel is refused, and then *why, from `arena`, says the reason
   and *line where; -1 without memory. */
int cgl_loops_write(cgl_program *program, const cgl_signature *kernel,
                    const cgl_loops_style *style, cgl_arena *arena,
                    cgl_text *out, const char **why, int *line);

#endif
