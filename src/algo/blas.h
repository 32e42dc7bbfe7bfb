/* Matrix products: what the checks (blas.c) make of a call for the libraries,
   OpenBLAS (openblas.c) and cuBLAS (cublas.c).
   Invariant: a job was checked: its operands fit, and there is something to
   write. */
#ifndef CGL_ALGO_BLAS_H
#define CGL_ALGO_BLAS_H

#include "algo/algo.h"
#include "core/base/object.h"

/* One call.  c is m x n, or n elements; k is what is summed over.  Matrices are
   rows of so many elements. */
typedef struct cgl_algo_blas_job {
  cgl_blas_function function;
  const cgl_blas_operands *operands;
  cgl_type type, scalar; /* of the operands, of alpha and beta */
  double alpha, beta;
  cgl_buffer *alpha_at, *beta_at; /* instead of the numbers; both or neither */
  int64_t m, n, k, batch;
  int64_t first_a, first_b, first_c;    /* elements before the first one */
  int64_t row_a, row_b, row_c;          /* elements of a row of the buffer */
  int64_t matrix_a, matrix_b, matrix_c; /* elements from one to the next */
  bool whole_c;                         /* all elements of c are written */
  const char *name;                     /* "blas.gemm" */
} cgl_algo_blas_job;

struct cgl_blas {
  cgl_object object;
  char description[300];
  /* Of the two libraries: */
  cgl_status (*issue)(cgl_blas *blas, cgl_stream *stream,
                      const cgl_algo_blas_job *job);
  void (*close)(cgl_blas *blas);
  cgl_algo *algo;   /* OpenBLAS: the kernels that call it; else NULL */
  void *handle;     /* cuBLAS: its handle; else NULL */
  size_t workspace; /* bytes of scratch for a call */
  struct cgl_algo_cublaslt *products; /* cuBLAS: for gemm; else NULL */
  /* cuBLAS: serial of the stream that the handle was told, and whether it was
     told the scratch after that; 0: a stream beside a capture.  Whether it
     finds alpha and beta on the device. */
  uint64_t stream;
  bool has_scratch, from_device;
  /* cuBLAS: owned: for the calls on one stream outside captures; or NULL. */
  cgl_buffer *scratch;
  uint64_t scratch_stream; /* its serial */
};

extern const cgl_object_kind cgl_algo_blas_kind; /* of a cgl_blas */

/* Open the library and set all but the object.  CGL_ERROR_NOT_FOUND,
   CGL_ERROR_LIBRARY */
cgl_status cgl_algo_blas_open_host(cgl_blas *blas);
cgl_status cgl_algo_blas_open_cuda(cgl_blas *blas);

#endif
