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

/* Operations of cgl_algo_reduce. */
#define CGL_ALGO_REDUCTIONS(X) \
  X(sum)                       \
  X(product) X(min) X(max) X(argmin) X(argmax) X(any) X(all) X(dot) X(norm)
typedef enum cgl_algo_reduction {
#define X(name) CGL_ALGO_REDUCE_##name,
  CGL_ALGO_REDUCTIONS(X)
#undef X
      CGL_ALGO_REDUCE_COUNT
} cgl_algo_reduction;

/* The element type of a reduction's result: of min and max the elements' own;
   of any and all bool; of argmin and argmax int64; of the others the elements'
   own for reals, and for integers and bool double (norm), int64, or uint64 for
   unsigned ones. */
CGL_API cgl_type cgl_algo_reduce_type(cgl_algo_reduction reduction,
                                      cgl_type type);
/* Reduces all elements of `x` (axis -1) to one, or those along an axis of its
   shape, from 0, to one each.  `y` is of the shape and type of `x` for the dot
   product, and NULL otherwise.  `out` has the type above, as many elements as
   there are results, and shares no memory with the others.  Indices count along
   the axis from 0, and of equal elements the first counts; a NaN is less and
   greater than every number.  CGL_ERROR_INVALID_ARGUMENT */
CGL_API cgl_status cgl_algo_reduce(cgl_algo *algo, cgl_stream *stream,
                                   cgl_algo_reduction reduction, cgl_buffer *x,
                                   cgl_buffer *y, int axis, cgl_buffer *out);

#define CGL_ALGO_SCANS(X) X(sum) X(min) X(max)
typedef enum cgl_algo_scan_kind {
#define X(name) CGL_ALGO_SCAN_##name,
  CGL_ALGO_SCANS(X)
#undef X
      CGL_ALGO_SCAN_COUNT
} cgl_algo_scan_kind;

/* Sets each element of `out` to the sum, minimum or maximum of the elements of
   `x` up to its place, or, exclusive, before it: the first is 0, or what every
   number of the type beats.  `out` has as many elements; its type is that of
   `x`, or for sums of integers and bool any integer type, in which they wrap
   around.  It may be `x`, but not overlap it otherwise.
   CGL_ERROR_INVALID_ARGUMENT */
CGL_API cgl_status cgl_algo_scan(cgl_algo *algo, cgl_stream *stream,
                                 cgl_algo_scan_kind kind, bool exclusive,
                                 cgl_buffer *x, cgl_buffer *out);

/* out[i] = x[indices[i]], counted from 0; 0 where there is no such element.
   The indices are int32, uint32, int64 or uint64, as many as `out` has elements
   of the type of `x`, which shares no memory with the others.
   CGL_ERROR_INVALID_ARGUMENT */
CGL_API cgl_status cgl_algo_gather(cgl_algo *algo, cgl_stream *stream,
                                   cgl_buffer *x, cgl_buffer *indices,
                                   cgl_buffer *out);
/* out[indices[i]] = x[i], where there is such an element; likewise.  Of equal
   indices any one may be the last. */
CGL_API cgl_status cgl_algo_scatter(cgl_algo *algo, cgl_stream *stream,
                                    cgl_buffer *x, cgl_buffer *indices,
                                    cgl_buffer *out);
/* Writes the elements of `x` whose flag, a bool, is true to the beginning of
   `out`, of the same type and size, in their order, and their number to
   `count`, an int64.  CGL_ERROR_INVALID_ARGUMENT */
CGL_API cgl_status cgl_algo_select(cgl_algo *algo, cgl_stream *stream,
                                   cgl_buffer *x, cgl_buffer *flags,
                                   cgl_buffer *out, cgl_buffer *count);
/* Writes the columns of `x`, of two extents, as rows of `out`, of the same type
   and size.  CGL_ERROR_INVALID_ARGUMENT */
CGL_API cgl_status cgl_algo_transpose(cgl_algo *algo, cgl_stream *stream,
                                      cgl_buffer *x, cgl_buffer *out);

/* Sorts keys, numbers, into `out`, and, unless `values` is NULL, values of 1,
   2, 4 or 8 bytes into `out_values` in the same order; equal keys keep theirs.
   A NaN is larger than every number.  Results have the type and the size of
   what they are of, and share no memory with it.  CGL_ERROR_INVALID_ARGUMENT */
CGL_API cgl_status cgl_algo_sort(cgl_algo *algo, cgl_stream *stream,
                                 bool descending, cgl_buffer *keys,
                                 cgl_buffer *values, cgl_buffer *out,
                                 cgl_buffer *out_values);

/* Writes the different elements of `x`, sorted, to the beginning of `out`, and
   their number to `count`, as cgl_algo_select does.  All NaNs count as one
   element, and both zeros. */
CGL_API cgl_status cgl_algo_unique(cgl_algo *algo, cgl_stream *stream,
                                   cgl_buffer *x, cgl_buffer *out,
                                   cgl_buffer *count);

/* Writes how many elements of `x`, numbers, are in each of the bins that divide
   low to high evenly: `out`, int64, has an element for each.  A bin has its
   lower edge, and the last one its upper edge, too.  All other numbers and NaNs
   are not counted.  Numbers are compared as doubles.
   CGL_ERROR_INVALID_ARGUMENT */
CGL_API cgl_status cgl_algo_histogram(cgl_algo *algo, cgl_stream *stream,
                                      cgl_buffer *x, double low, double high,
                                      cgl_buffer *out);

#endif
