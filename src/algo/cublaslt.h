/* Products of real matrices by cuBLASLt, which cuBLAS brings along.
   Idea: cublasGemmEx chooses a kernel at each call; cuBLASLt lets its caller
   choose once for a shape and keep the choice, which for a small product is a
   tenth to a fifth of the processor's time for the call.
   Invariant: a kept choice serves products of exactly its key. */
#ifndef CGL_ALGO_CUBLASLT_H
#define CGL_ALGO_CUBLASLT_H

#include <stddef.h>
#include <stdint.h>

#include "algo/library.h"

/* What the choice depends on, by columns, as cuBLAS counts: c of m x n is
   alpha op(a) op(b) + beta c.  All of one width: compared as bytes. */
typedef struct cgl_algo_product_key {
  int64_t type, compute;       /* cudaDataType_t, cublasComputeType_t */
  int64_t scale;               /* cudaDataType_t of alpha and beta */
  int64_t from_device;         /* whether alpha and beta are there */
  int64_t op_a, op_b;          /* cublasOperation_t */
  int64_t m, n, k, batch;      /* k: what is summed over */
  int64_t row_a, row_b, row_c; /* elements from a column to the next */
  int64_t matrix_a, matrix_b, matrix_c; /* from a matrix to the next */
  int64_t least_a, least_b, least_c; /* bytes that addresses are multiples of */
} cgl_algo_product_key;

typedef struct cgl_algo_product {
  cgl_algo_product_key key; /* all but what addresses are multiples of */
  const void *alpha, *beta, *a, *b;
  void *c, *scratch; /* scratch: of as many bytes as `open` was told */
} cgl_algo_product;

typedef struct cgl_algo_cublaslt cgl_algo_cublaslt;

/* `cublas` brings cuBLASLt along, and its `handle` serves as one of cuBLASLt.
   `scratch`: bytes.  CGL_ERROR_NOT_FOUND, CGL_ERROR_NO_MEMORY */
cgl_status cgl_algo_cublaslt_open(const cgl_algo_library *cublas, void *handle,
                                  size_t scratch, cgl_algo_cublaslt **out);
void cgl_algo_cublaslt_close(cgl_algo_cublaslt *lt); /* NULL is accepted */

/* A cublasStatus_t; CGL_ALGO_NO_CHOICE: cuBLASLt has no kernel for such a
   product, and nothing was issued. */
enum { CGL_ALGO_NO_CHOICE = -1 };
int cgl_algo_cublaslt_issue(cgl_algo_cublaslt *lt, cgl_algo_product *product,
                            void *custream);

#endif
