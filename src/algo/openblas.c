/* OpenBLAS, on the host device: kernels call it, so that a call is a node like
   any other.  A block computes a part of the result, and OpenBLAS, told to use
   one thread, works on the thread that runs the block: the device's workers
   are the threads, and nothing else competes for the cores. */
#include "algo/blas.h"
#include "algo/library.h"
#include "core/base/error.h"
#include "core/call/call.h"

#include <stdio.h>

typedef cgl_algo_blas_job blas_job;

static const char *const symbols[] = {
#define X(name) "cblas_s" #name, "cblas_d" #name,
    CGL_BLAS_FUNCTIONS(X)
#undef X
        "cblas_cgemm",
    "cblas_zgemm", "openblas_set_num_threads", "openblas_get_config", NULL};

static const char *const files[] = {"libopenblas.so.0", "libopenblas.so", NULL};
static const cgl_algo_library library = {
    .files = files,
    .title = "OpenBLAS",
    .package = "libopenblas0-pthread on Debian, openblas elsewhere",
    .symbols = symbols};

typedef struct openblas_table {
  /* For float, for double; the last is gemm for complex64, for complex128. */
  void *functions[CGL_BLAS_COUNT + 1][2];
  void (*set_num_threads)(int);
  const char *(*get_config)(void);
} openblas_table;

static openblas_table table;

/* blas.cu */
typedef struct kernel_job {
  double alpha, beta;
  int64_t m, n, k;
  int64_t first_a, first_b, first_c;
  int64_t row_a, row_b, row_c;
  int64_t matrix_a, matrix_b, matrix_c;
  int64_t part_m, part_n;
  int32_t transpose_a, transpose_b, upper, right, unit;
} kernel_job;


/* ---- how a result is divided ---- */

/* Work that is worth a block: elements of vectors, and products of matrices.  A
   worker that is late takes fewer of several parts. */
enum { LEAST_ELEMENTS = 1 << 14, LEAST_SIDE = 32, PARTS_EACH = 4 };

static int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}


/* Halves the longer side until there are so many parts. */
static void parts_divide(int64_t parts, bool by_m, bool by_n, int64_t least,
                         kernel_job *k) {
  int64_t m = 1, n = 1;
  while (m * n < parts) {
    const int64_t side_m = by_m ? divide_up(k->m, m) : 0;
    const int64_t side_n = by_n ? divide_up(k->n, n) : 0;
    const bool down = side_m > side_n;
    if ((down ? side_m : side_n) < 2 * least)
      break;
    *(down ? &m : &n) *= 2;
  }
  k->part_m = divide_up(k->m, m);
  k->part_n = divide_up(k->n, n);
}


static void job_divide(const cgl_context *context, const blas_job *job,
                       kernel_job *k) {
  const int64_t workers = cgl_context_device(context)->multiprocessors;
  k->part_m = job->m;
  k->part_n = job->n;
  switch (job->function) {
  case CGL_BLAS_gemm:
    parts_divide(divide_up(workers > 1 ? PARTS_EACH * workers : 1, job->batch),
                 true, true, LEAST_SIDE, k);
    break;
  case CGL_BLAS_trsm:
    parts_divide(workers, job->operands->right, !job->operands->right,
                 LEAST_SIDE, k);
    break;
  case CGL_BLAS_ger:
    parts_divide(workers, true, false, LEAST_SIDE, k);
    break;
  case CGL_BLAS_gemv:
    parts_divide(workers, false, true, LEAST_SIDE, k);
    break;
  case CGL_BLAS_axpy:
  case CGL_BLAS_scal:
    parts_divide(workers, false, true, LEAST_ELEMENTS, k);
    break;
  default: /* sums of one thread */
    break;
  }
}


/* ---- calls ---- */

static cgl_arg operand(cgl_buffer *buffer) {
  return buffer ? cgl_algo_memory(buffer) : (cgl_arg){.kind = CGL_ARG_NULL};
}


/* Where the address of a function is. */
static cgl_status openblas_function(cgl_blas *blas, unsigned function,
                                    bool twice, cgl_buffer **out) {
  return cgl_buffer_of_keeper(&blas->object,
                              (uintptr_t)&table.functions[function][twice],
                              CGL_TYPE_uint8, sizeof(void *), out);
}


static cgl_status openblas_issue(cgl_blas *blas, cgl_stream *stream,
                                 const blas_job *job) {
  static const char *const names[] = {
#define X(name) [CGL_BLAS_##name] = #name,
      CGL_BLAS_FUNCTIONS(X)
#undef X
  };
  const cgl_blas_operands *o = job->operands;
  static const char *const definitions[CGL_TYPE_COUNT] = {
      [CGL_TYPE_float] = "\n#define T float\n",
      [CGL_TYPE_double] = "\n#define T double\n",
      [CGL_TYPE_complex64] = "\n#define COMPLEX\n#define T float2\n",
      [CGL_TYPE_complex128] = "\n#define COMPLEX\n#define T double2\n"};
  const bool twice =
      job->type == CGL_TYPE_double || job->type == CGL_TYPE_complex128;
  const bool pairs = cgl_type_lanes(job->type) == 2;
  if (!definitions[job->type]) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, job->name,
             "OpenBLAS has no %s of 16-bit elements", names[job->function]);
    return cgl_fail_hint("use float, or a GPU");
  }
  cgl_kernel *kernel;
  cgl_buffer *function;
  cgl_status status =
      cgl_algo_kernel(blas->algo, CGL_ALGO_blas, names[job->function],
                      definitions[job->type], job->name, &kernel);
  if (!status)
    status = openblas_function(blas, pairs ? CGL_BLAS_COUNT : job->function,
                               twice, &function);
  if (status)
    return status;
  kernel_job k = {
      .alpha = job->alpha,
      .beta = job->beta,
      .m = job->m,
      .n = job->n,
      .k = job->k,
      .first_a = job->first_a,
      .first_b = job->first_b,
      .first_c = job->first_c,
      .row_a = job->row_a,
      .row_b = job->row_b,
      .row_c = job->row_c,
      .matrix_a = job->matrix_a,
      .matrix_b = job->matrix_b,
      .matrix_c = job->matrix_c,
      .transpose_a = o->transpose_a + o->conjugate_a,
      .transpose_b = o->transpose_b + o->conjugate_b,
      .upper = o->upper,
      .right = o->right,
      .unit = o->unit,
  };
  job_divide(blas->object.context, job, &k);
  const uint64_t blocks = (uint64_t)(job->batch * divide_up(k.m, k.part_m) *
                                     (k.part_n ? divide_up(k.n, k.part_n) : 1));
  const cgl_launch launch = {.grid = {(uint32_t)blocks}, .block = {1}};
  const cgl_arg args[] = {
      cgl_algo_memory(function),
      {.kind = CGL_ARG_BYTES, .bytes = {&k, sizeof k}},
      operand(o->a),
      operand(o->b),
      operand(o->c),
      operand(job->alpha_at),
      operand(job->beta_at),
  };
  status = cgl_kernel_launch(kernel, stream, &launch, args, 7);
  cgl_buffer_release(function);
  return status;
}


static void openblas_close(cgl_blas *blas) {
  cgl_algo_destroy(blas->algo);
}


/* ---- files ---- */

/* The number of the function, in the order of the table. */
static size_t openblas_describe(const cgl_object *keeper, uint64_t address,
                                unsigned char recipe[CGL_CALL_RECIPE]) {
  (void)keeper;
  recipe[0] =
      (unsigned char)((address - (uintptr_t)table.functions) / sizeof(void *));
  return 1;
}


static cgl_status openblas_make(cgl_context *context,
                                const unsigned char *recipe, size_t length,
                                uint64_t most, const char *operation,
                                cgl_buffer **memory) {
  cgl_blas *blas = NULL;
  (void)most;
  if (length != 1 || recipe[0] >= 2 * (CGL_BLAS_COUNT + 1))
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
                    "the file calls a function that OpenBLAS does not have");
  cgl_status status = cgl_blas_create(context, &blas);
  if (!status)
    status = openblas_function(blas, recipe[0] / 2, recipe[0] % 2, memory);
  cgl_blas_destroy(blas);
  return status;
}


static void __attribute__((constructor)) openblas_register(void) {
  static cgl_call_library openblas = {.name = "OpenBLAS",
                                      .version = 1,
                                      .keeper = &cgl_algo_blas_kind,
                                      .describe = openblas_describe,
                                      .make = openblas_make};
  cgl_call_register(&openblas);
}


cgl_status cgl_algo_blas_open_host(cgl_blas *blas) {
  cgl_status status = cgl_algo_library_open(&library, (void **)&table, "blas");
  if (!status)
    table.set_num_threads(1);
  if (!status)
    status = cgl_algo_create(blas->object.context, &blas->algo);
  if (status)
    return status;
  blas->issue = openblas_issue;
  blas->close = openblas_close;
  snprintf(blas->description, sizeof blas->description,
           "%s: float in float, double in double, on the device's threads",
           table.get_config());
  return CGL_OK;
}
