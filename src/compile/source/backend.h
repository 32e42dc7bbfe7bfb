/* What compile.c asks of the two compilers, and what they share.
   A backend finds its compiler, tells who it is (part of the cache key) and
   turns a source into bytes.
   Invariant: a backend adds to `log` what its compiler printed, in lines
   that name the script's file and line only. */
#ifndef CGL_COMPILE_BACKEND_H
#define CGL_COMPILE_BACKEND_H

#include "compile/compile.h"

typedef struct cgl_job {
  const cgl_source *source;
  const cgl_program *program;
  const char *folder; /* of the script: quoted includes are looked for there */
  cgl_image *image; /* signatures are there; bytes and lowered names to come */
  int sm;
  cgl_text log;
} cgl_job;

/* Appends who the compiler is, its version and what it compiles for. */
cgl_compile_status cgl_host_identify(cgl_job *job, cgl_text *identity);
cgl_compile_status cgl_nvrtc_identify(cgl_job *job, cgl_text *identity);

/* Compiles; on success image->bytes and size are set (malloc'ed). */
cgl_compile_status cgl_host_compile(cgl_job *job);
cgl_compile_status cgl_nvrtc_compile(cgl_job *job);

/* The source with known #include lines blanked: every line of the script is
   still where it was.  For the host device extern __shared__ arrays become
   the one array of dynamic shared memory as well, and the `n` loops are
   written anew. */
void cgl_source_rewrite(const cgl_source *source, int host,
                        const cgl_loop *const *loops, size_t n, cgl_text *out);

/* Adds what a C++ compiler printed, as the script's author should see it. */
void cgl_host_diagnostics(const cgl_source *source, const char *said,
                          cgl_text *out);

/* All embedded text that stands in front of a source: part of the key. */
void cgl_host_device_text(cgl_text *out);
void cgl_nvrtc_device_text(cgl_text *out);

#endif
