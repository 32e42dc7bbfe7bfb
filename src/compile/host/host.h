/* The system's C++ compiler: CUDA C to a shared object for the host device.
   generate.c writes the C++ file and reads what the compiler did with it,
   hostcc.c finds the compiler and runs it, diagnostics.c edits its messages.
   Invariant: a kernel that is not `ordered` has no local variable in memory
   that its threads, run as one vectorised loop, would share. */
#ifndef CGL_COMPILE_HOST_H
#define CGL_COMPILE_HOST_H

#include "compile/source/source.h"

/* Appends the compiler's name, version and target: part of the cache key. */
cgl_compile_status cgl_host_identify(cgl_job *job, cgl_text *identity);

/* Compiles; on success image->bytes (malloc'ed) and size are set. */
cgl_compile_status cgl_host_compile(cgl_job *job);

/* All embedded text that stands in front of a source: part of the key. */
void cgl_host_device_text(cgl_text *out);

/* ---- inside the room ---- */

typedef struct cgl_cxx {
  char *words[8]; /* the command, its own arguments included */
  size_t nwords;
  char *path;    /* of the program that is run */
  char *version; /* first line of --version */
  bool clang;
  int major;            /* 12 of 12.2.0; 0 when the version does not say */
  char *asked;          /* $CGRAPHLUA_CXX when it was looked up */
  struct cgl_cxx *next; /* an older one, which others may still use */
} cgl_cxx;

typedef struct cgl_host_job {
  cgl_job *job;
  const cgl_cxx *cxx;
  char *folder, *input, *output, *dump; /* paths */
  char *dump_option;                    /* -fdump-tree-sra=... */
  bool *ordered; /* by kernel: its threads must run in order */
} cgl_host_job;

/* The whole C++ file: device header, script, export table. */
void cgl_host_generate(const cgl_host_job *h, cgl_text *out);

/* After a compile: marks the kernels whose threads must run in order, which
   the compiler's dump tells; returns how many are new. */
size_t cgl_host_find_memory(cgl_host_job *h);

/* Leaves every grid-stride loop as the script has it; returns how many were
   rewritten. */
size_t cgl_host_drop_loops(cgl_host_job *h);

/* Adds what a C++ compiler printed, as the script's author should see it. */
void cgl_host_diagnostics(const cgl_source *source, const char *said,
                          cgl_text *out);

#endif
