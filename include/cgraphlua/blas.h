/* Matrix products and their relatives, by the machine's own library: cuBLAS on
   a GPU, OpenBLAS on the host device, opened when a cgl_blas is made.
   Idea: a call issues work on a stream, as launches do, outside captures and in
   them: a node that the recording knows, with what it reads and writes.
   Matrices are rows of elements, as shapes say them: {rows, columns}; a buffer
   with one extent is a vector.
   Invariants: sums of float are float, of half and bfloat16 float, and of
   double double, of complex numbers likewise: no mode with fewer bits is used
   but where a call asks for it; scratch of the library comes from the pool that
   cgl_buffer_create takes without one; a call whose arguments are refused has
   issued nothing. */
#ifndef CGRAPHLUA_BLAS_H
#define CGRAPHLUA_BLAS_H

#include "kernel.h"

typedef struct cgl_blas cgl_blas; /* the library, ready for one device */

/* Opens the library and makes its handle; in a capture, too.  One thread at a
   time may use a cgl_blas.  CGL_ERROR_NOT_FOUND with what to install,
   CGL_ERROR_LIBRARY */
CGL_API cgl_status cgl_blas_create(cgl_context *context, cgl_blas **blas);
/* Gives it up; graphs keep what they use of it.  NULL is accepted. */
CGL_API void cgl_blas_destroy(cgl_blas *blas);
/* "cuBLAS 13.1.0: ..." or "OpenBLAS 0.3.21 ...: ...", with how it computes;
   borrowed. */
CGL_API const char *cgl_blas_describe(const cgl_blas *blas);

/* The functions, with c = what they compute, of the operands a, b and c:
     gemm  alpha a b + beta c    matrices, or batches of them: {batch, m, k}
     gemv  alpha a b + beta c    a matrix, b and c vectors
     ger   alpha a b' + c        a and b vectors, c a matrix
     syrk  alpha a a' + beta c   one triangle of c, with its diagonal
     trsm  alpha inverse(a) c    a triangle, or alpha c inverse(a)
     axpy  alpha a + c           of one size
     scal  alpha c
     dot   a b                   vectors of one size, c of one element
     nrm2  root of a a           c of one element */
#define CGL_BLAS_FUNCTIONS(X) \
  X(gemm) X(gemv) X(ger) X(syrk) X(trsm) X(axpy) X(scal) X(dot) X(nrm2)
typedef enum cgl_blas_function {
#define X(name) CGL_BLAS_##name,
  CGL_BLAS_FUNCTIONS(X)
#undef X
      CGL_BLAS_COUNT
} cgl_blas_function;

/* In which bits gemm may multiply. */
#define CGL_BLAS_PRECISIONS(X) X(ieee) X(tf32)
typedef enum cgl_blas_precision {
#define X(name) CGL_BLAS_PRECISION_##name,
  CGL_BLAS_PRECISIONS(X)
#undef X
      CGL_BLAS_PRECISION_COUNT
} cgl_blas_precision;

/* Some columns of a buffer's rows; a count of 0: all of them. */
typedef struct cgl_blas_columns {
  size_t first, count; /* first: from 0 */
} cgl_blas_columns;

/* The operands of a function; zero: what it has not. */
typedef struct cgl_blas_operands {
  cgl_buffer *a, *b, *c;         /* of one type: float or double; of gemm also
                                    complex64 and complex128, and on a GPU half
                                    and bfloat16 */
  bool transpose_a, transpose_b; /* the columns of the buffer are the rows */
  bool conjugate_a,
      conjugate_b; /* gemm: of what is transposed, the conjugate */
  cgl_blas_columns columns_a, columns_b, columns_c; /* gemm: the operand is
                                    these columns of the buffer, before it is
                                    transposed */
  cgl_blas_precision precision; /* gemm of float and complex64: tf32 lets a GPU
                                   multiply numbers rounded to 10 bits behind
                                   the point; sums stay float */
  bool upper;                   /* the upper triangle, not the lower one */
  bool right;                   /* trsm: alpha c inverse(a) */
  bool unit;                    /* trsm: the diagonal of a counts as 1 */
  cgl_arg alpha, beta; /* CGL_ARG_NUMBER, or CGL_ARG_BUFFER of one element,
                          which is read when the work runs: float for half and
                          bfloat16, else of the operands' type; zero: 1 and 0 */
} cgl_blas_operands;

/* Issues a function.  Where beta is the number 0, c is not read.  c shares no
   memory with the others.  Extents of at most 2^31 - 1.  Work on no elements is
   none.  A batch of one matrix goes with every matrix of the other operand.
   CGL_ERROR_INVALID_ARGUMENT with the shapes */
CGL_API cgl_status cgl_blas_issue(cgl_blas *blas, cgl_stream *stream,
                                  cgl_blas_function function,
                                  const cgl_blas_operands *operands);

#endif
