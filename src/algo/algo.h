/* Algorithms on buffers, over the public API of the rooms below: kernels,
   launches and buffers, so that recordings, pools and graphs treat them as
   anybody's kernels.
   Invariant: a kernel of a cgl_algo is found again by its text and its
   definitions, and lives as long as the cgl_algo.
   Sources.  types.cu stands in front of all; every other .cu file takes what it
   is compiled for from definitions between the two. */
#ifndef CGL_ALGO_ALGO_H
#define CGL_ALGO_ALGO_H

#include "cgraphlua.h"

enum {
  CGL_ALGO_SHAPE_ROOM = 200,
  CGL_ALGO_BLOCK = 256,         /* threads */
  CGL_ALGO_HOST_CHUNK = 1 << 16 /* elements for a thread of the host device */
};

/* ---- kernels.c ---- */

/* The sources, a file each. */
#define CGL_ALGO_SOURCES(X) \
  X(blas) X(fft) X(histogram) X(map) X(move) X(reduce) X(scan) X(sort)
typedef enum cgl_algo_source {
#define X(name) CGL_ALGO_##name,
  CGL_ALGO_SOURCES(X)
#undef X
} cgl_algo_source;

/* Kernel `name` of a source with definitions in front; borrowed. */
cgl_status cgl_algo_kernel(cgl_algo *algo, cgl_algo_source source,
                           const char *name, const char *definitions,
                           const char *operation, cgl_kernel **kernel);
/* Refuses elements that are no numbers: vectors and complex ones. */
cgl_status cgl_algo_check_number(const cgl_buffer *buffer,
                                 const char *operation);
/* What kernels call an element type of numbers. */
const char *cgl_algo_type_text(cgl_type type);
/* Whether the type holds whole numbers or bool. */
bool cgl_algo_is_whole(cgl_type type);
/* What sums of the type are: itself for reals, int64 or uint64 for others. */
cgl_type cgl_algo_wide_type(cgl_type type);
/* What every other number beats in the search for a small or a large one; the
   type is no 16-bit real. */
const char *cgl_algo_worst_text(cgl_type type, bool small);
/* A grid of so many blocks, along y too when they are too many for x. */
cgl_launch cgl_algo_blocks(uint64_t blocks, uint32_t threads);
/* A grid for so many elements in rows of 2^30 along y, whose blocks have so
   many of them. */
cgl_launch cgl_algo_rows(uint64_t elements, uint64_t of_block);
/* "{2, 3} float". */
const char *cgl_algo_shape_text(const cgl_buffer *buffer,
                                char text[CGL_ALGO_SHAPE_ROOM]);
/* Whether the device runs the kernel's threads as a GPU does; if not, a thread
   works on a long range by itself. */
static inline bool cgl_algo_has_threads(const cgl_kernel *kernel) {
  return cgl_kernel_form(kernel, NULL, NULL) == CGL_FORM_DEVICE;
}

/* ---- move.c ---- */

/* What cgl_algo_select refuses, as a failure of `operation`. */
cgl_status cgl_algo_select_check(const cgl_buffer *x, const cgl_buffer *flags,
                                 const cgl_buffer *out, const cgl_buffer *count,
                                 const char *operation);

static inline uint64_t cgl_algo_divide_up(uint64_t a, uint64_t b) {
  return (a + b - 1) / b;
}
static inline cgl_arg cgl_algo_memory(cgl_buffer *buffer) {
  return (cgl_arg){.kind = CGL_ARG_BUFFER, .buffer = buffer};
}
static inline cgl_arg cgl_algo_whole(uint64_t value) {
  return (cgl_arg){.kind = CGL_ARG_UINT, .u = value};
}

#endif
