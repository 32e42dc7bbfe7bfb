/* Libraries that algorithms call, when this machine has them: opened by name at
   the first use, so that nothing links against them.
   Invariant: a library that was opened stays for the process, because threads
   and graphs may run its code at any time. */
#ifndef CGL_ALGO_LIBRARY_H
#define CGL_ALGO_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#include "cgraphlua.h"

typedef struct cgl_algo_library {
  const char *const *files;   /* "libfoo.so.3", the best first, then NULL */
  bool of_toolkit;            /* CUDA's toolkit may have it */
  const char *title;          /* "OpenBLAS", for messages */
  const char *package;        /* what brings it: "Debian's libopenblas0" */
  const char *const *symbols; /* its functions, then NULL */
} cgl_algo_library;

/* Opens the library, if `table` is zeros, and writes the addresses of its
   functions there, in their order: a struct of function pointers, which is read
   after the call and never changes again.  Threads may open at once.
   CGL_ERROR_NOT_FOUND, as a failure of `operation`, when there is none, or one
   that lacks a function; the table then stays zeros. */
cgl_status cgl_algo_library_open(const cgl_algo_library *library, void **table,
                                 const char *operation);

#endif
