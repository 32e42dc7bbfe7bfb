/* CUDA C source -> an image the driver table can load.
   One entry for both targets: NVRTC makes a cubin, the system's C++ compiler
   makes a shared object for the host device (kernel_abi.h).  Signatures are
   read from the source by the same reader for both, so that arguments are
   checked alike; the compiler confirms what was read or corrects it
   (source.h); images are kept on disk (cache.h).
   Floating point: both contract a * b + c to a fused multiply-add, as CUDA
   does; the option --fmad=false stops both.
   Invariant: nothing here prints or keeps state that a second thread could
   disturb; an image is complete or it is NULL. */
#ifndef CGL_COMPILE_COMPILE_H
#define CGL_COMPILE_COMPILE_H

#include "compile/source/source.h"

typedef struct cgl_target {
  cgl_image_format format;
  int sm; /* compute capability, 90 for sm_90; unused for the host device */
} cgl_target;

/* Compiles, or takes from the cache.  *image is the caller's to free with
   cgl_image_free, NULL on failure.  *message is malloc'ed text or NULL:
   warnings on success, what went wrong on failure; `message` may be NULL. */
cgl_compile_status cgl_compile(const cgl_target *target,
                               const cgl_source *source, cgl_image **image,
                               char **message);

/* The signature that was asked for by `name`, or NULL. */
const cgl_signature *cgl_image_find(const cgl_image *image, const char *name);

/* Frees an image; NULL is fine. */
void cgl_image_free(cgl_image *image);

/* ---- inside the room (record.c) ---- */

/* Appends what an image says of its kernels and variables. */
void cgl_image_pack(const cgl_image *image, cgl_text *out);

/* Fills an empty image's kernels and variables; -1 when the row is no such
   row, or memory ran out: free the arena then. */
int cgl_image_unpack(cgl_image *image, const char *row, size_t length);

#endif
