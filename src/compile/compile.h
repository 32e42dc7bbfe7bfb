/* CUDA C source -> an image the driver table can load.
   One entry for both targets: NVRTC makes a cubin, the system's C++ compiler
   makes a shared object for the host device (kernel_abi.h).  Signatures are
   read from the source by the same reader for both, so that arguments are
   checked alike; images are kept on disk (cache.h).
   Floating point: both contract a * b + c to a fused multiply-add, as CUDA
   does; the option --fmad=false stops both.
   Invariant: nothing here prints or keeps state that a second thread could
   disturb; an image is complete or it is NULL. */
#ifndef CGL_COMPILE_COMPILE_H
#define CGL_COMPILE_COMPILE_H

#include <stddef.h>

#include "driver/table.h"
#include "compile/frontend/frontend.h"
#include "compile/base/base.h"

typedef enum cgl_compile_status {
  CGL_COMPILE_OK,
  CGL_COMPILE_REFUSED,     /* the compiler said no; the message is its text */
  CGL_COMPILE_NO_COMPILER, /* no NVRTC, no C++ compiler */
  CGL_COMPILE_SYSTEM       /* memory, files, processes */
} cgl_compile_status;

typedef struct cgl_target {
  cgl_image_format format;
  int sm; /* compute capability, 90 for sm_90; unused for the host device */
} cgl_target;

typedef struct cgl_source {
  const char *text;
  size_t length;              /* bytes of text */
  const char *file;           /* name in messages; NULL: "kernel" */
  int line;                   /* of the text's first line in `file` */
  const char *const *options; /* -D -U -I -std= --use_fast_math ... */
  size_t noptions;
  const char *const *expressions; /* instances of templates: "scale<float>" */
  size_t nexpressions;
} cgl_source;

typedef struct cgl_image {
  cgl_image_format format;
  void *bytes; /* the ELF file */
  size_t size;
  cgl_signature *signatures; /* kernels, then instances of templates */
  size_t nsignatures;
  cgl_variable *variables; /* __device__ and __constant__ */
  size_t nvariables;
  int cached; /* came from the disk cache */
  cgl_arena arena;
} cgl_image;

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

#endif
