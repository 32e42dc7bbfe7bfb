/* Algorithms: what programs would otherwise write by hand.
   Idea: a call issues kernels on a stream, as launches do, outside captures and
   in them: the recording of a capture notes what they read and write.  Results
   stay on the device.
   Invariants: the same input and size give the same bits on the same device,
   and integers on all devices; scratch comes from the pool that
   cgl_buffer_create takes without one, and is released before the call
   returns; a call whose arguments are refused has issued nothing.
   Kernels are compiled at their first use, for an operation and its types, and
   kept by a cgl_algo until its end; graphs keep those that they use.  One
   thread at a time may use a cgl_algo. */
#ifndef CGRAPHLUA_ALGO_H
#define CGRAPHLUA_ALGO_H

#include "kernel.h"

typedef struct cgl_algo cgl_algo; /* the kernels of one device */

/* Makes it without any kernel; the caller ends it with cgl_algo_destroy. */
CGL_API cgl_status cgl_algo_create(cgl_context *context, cgl_algo **algo);
/* Releases the kernels; NULL is accepted. */
CGL_API void cgl_algo_destroy(cgl_algo *algo);

#define CGL_ALGO_MAX_INPUTS 16

/* A name of an expression, and what it stands for: CGL_ARG_BUFFER (its element,
   or the only one of a buffer of one), CGL_ARG_NUMBER, CGL_ARG_INT,
   CGL_ARG_UINT or CGL_ARG_BOOL. */
typedef struct cgl_algo_input {
  const char *name; /* letters, digits and _, no digit in front */
  cgl_arg value;
} cgl_algo_input;

/* Sets every element of `out` to the value of an expression, "a * x + y", of at
   most CGL_ALGO_MAX_INPUTS inputs: numbers, operators and functions of C
   without assignments, `i` is the index of the element.  A buffer has as many
   elements as `out`, or one; it may be `out` itself, but not overlap it
   otherwise.  CGL_ERROR_INVALID_ARGUMENT, CGL_ERROR_COMPILE */
CGL_API cgl_status cgl_algo_map(cgl_algo *algo, cgl_stream *stream,
                                const char *expression,
                                const cgl_algo_input *inputs, size_t ninputs,
                                cgl_buffer *out);

#endif
