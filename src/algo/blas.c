/* Matrix products: operands checked, scalars made ready. */
#include "algo/blas.h"
#include "core/base/context.h"
#include "core/base/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef cgl_algo_blas_job blas_job;

static const char *const names[] = {
#define X(name) [CGL_BLAS_##name] = "blas." #name,
    CGL_BLAS_FUNCTIONS(X)
#undef X
};


/* ---- the object ---- */

static void blas_destroy_object(cgl_object *object) {
  cgl_blas *blas = (cgl_blas *)object;
  if (blas->close)
    blas->close(blas);
  free(blas);
}


const cgl_object_kind cgl_algo_blas_kind = {
    .number = CGL_OBJECT_INTERNAL,
    .destroy = blas_destroy_object,
};


cgl_status cgl_blas_create(cgl_context *context, cgl_blas **out) {
  cgl_blas *blas = calloc(1, sizeof *blas);
  if (!blas)
    return cgl_fail(CGL_ERROR_NO_MEMORY, "blas", "no memory for a library");
  cgl_object_init(&blas->object, &cgl_algo_blas_kind, context);
  cgl_status status = cgl_context_enter(context, "blas");
  if (!status)
    status = strcmp(cgl_context_device(context)->device, "host") == 0
                 ? cgl_algo_blas_open_host(blas)
                 : cgl_algo_blas_open_cuda(blas);
  if (status)
    cgl_object_release(&blas->object);
  else
    *out = blas;
  return status;
}


void cgl_blas_destroy(cgl_blas *blas) {
  if (blas)
    cgl_object_release(&blas->object);
}


const char *cgl_blas_describe(const cgl_blas *blas) {
  return blas->description;
}


/* ---- shapes ---- */

/* What an operand is: {batch, rows, columns}, transposed if it says so. */
typedef struct matrix {
  int64_t batch, rows, columns;
  int64_t first, row; /* elements before it, and of a row of the buffer */
  int64_t elements;   /* of the buffer, for a matrix */
} matrix;


/* Of so many dimensions: 1, a vector; 2; 3, with a batch in front. */
static bool matrix_read(const cgl_buffer *buffer, bool transposed,
                        const cgl_blas_columns *some, int least, int most,
                        matrix *out) {
  size_t extents[CGL_MAX_DIMS];
  const int ndims = cgl_buffer_shape(buffer, extents);
  if (ndims < least || ndims > most)
    return false;
  for (int d = 0; d < ndims; d++)
    if (extents[d] > INT32_MAX)
      return false;
  const size_t row = extents[ndims - 1];
  if (some->first > row || some->count > row - some->first ||
      (some->first && !some->count))
    return false;
  const size_t columns = some->count ? some->count : row;
  const size_t rows = ndims > 1 ? extents[ndims - 2] : 1;
  *out = (matrix){.batch = ndims > 2 ? (int64_t)extents[0] : 1,
                  .rows = (int64_t)(transposed ? columns : rows),
                  .columns = (int64_t)(transposed ? rows : columns),
                  .first = (int64_t)some->first,
                  .row = row ? (int64_t)row : 1,
                  .elements = (int64_t)(rows * row)};
  return true;
}


/* All shapes of the call in its message. */
static cgl_status shapes_refuse(const blas_job *job, const char *why) {
  const cgl_blas_operands *o = job->operands;
  const struct {
    const cgl_buffer *buffer;
    const char *before;
    const cgl_blas_columns *some;
  } all[] = {
      {o->a, o->transpose_a ? "a transposed, of " : "a of ", &o->columns_a},
      {o->b, o->transpose_b ? "b transposed, of " : "b of ", &o->columns_b},
      {o->c, "the result of ", &o->columns_c}};
  char text[3 * (CGL_ALGO_SHAPE_ROOM + 80)] = "";
  char shape[CGL_ALGO_SHAPE_ROOM];
  size_t at = 0;
  for (size_t i = 0; i < 3; i++)
    if (all[i].buffer) {
      cgl_algo_shape_text(all[i].buffer, shape);
      at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s",
                             at ? ", " : "", all[i].before, shape);
      if (all[i].some->first || all[i].some->count)
        at += (size_t)snprintf(text + at, sizeof text - at,
                               " (%zu columns from %zu)", all[i].some->count,
                               all[i].some->first);
    }
  return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, job->name, "%s: %s", why, text);
}


static cgl_status types_check(blas_job *job) {
  const cgl_blas_operands *o = job->operands;
  job->type = job->scalar = cgl_buffer_type(o->c);
  if ((o->a && cgl_buffer_type(o->a) != job->type) ||
      (o->b && cgl_buffer_type(o->b) != job->type)) {
    shapes_refuse(job, "operands of different types");
    return cgl_fail_hint("all operands have one type");
  }
  const bool small =
      job->type == CGL_TYPE_half || job->type == CGL_TYPE_bfloat16;
  if (small)
    job->scalar = CGL_TYPE_float;
  const bool pairs =
      job->type == CGL_TYPE_complex64 || job->type == CGL_TYPE_complex128;
  if ((small || pairs) && job->function != CGL_BLAS_gemm) {
    shapes_refuse(job, small ? "only blas.gemm takes 16-bit elements"
                             : "only blas.gemm takes complex elements");
    return cgl_fail_hint(small ? "copy them to float, with algo.map"
                               : "give float or double, or use blas.gemm");
  }
  if (!small && !pairs && job->type != CGL_TYPE_float &&
      job->type != CGL_TYPE_double) {
    shapes_refuse(job, "elements that are neither reals nor complex");
    return cgl_fail_hint("give float or double, or complex ones to blas.gemm");
  }
  if (o->precision == CGL_BLAS_PRECISION_ieee)
    return CGL_OK;
  if (o->precision == CGL_BLAS_PRECISION_tf32 &&
      job->function == CGL_BLAS_gemm &&
      (job->type == CGL_TYPE_float || job->type == CGL_TYPE_complex64))
    return CGL_OK;
  shapes_refuse(job, "a precision that the operands do not have");
  return cgl_fail_hint("tf32 is one of blas.gemm, of float and complex64");
}


/* What gemm alone has. */
static cgl_status options_check(const blas_job *job) {
  const cgl_blas_operands *o = job->operands;
  const cgl_blas_columns *const some[] = {&o->columns_a, &o->columns_b,
                                          &o->columns_c};
  bool given = o->conjugate_a || o->conjugate_b;
  for (int i = 0; i < 3; i++)
    given = given || some[i]->first || some[i]->count;
  if (given && job->function != CGL_BLAS_gemm) {
    shapes_refuse(job, "conjugates or some of the columns");
    return cgl_fail_hint("only blas.gemm takes them");
  }
  if ((o->conjugate_a && !o->transpose_a) ||
      (o->conjugate_b && !o->transpose_b)) {
    shapes_refuse(job, "the conjugate of what is not transposed");
    return cgl_fail_hint("the libraries conjugate only what they transpose: "
                         "give that, too");
  }
  return CGL_OK;
}


/* Reads m, n, k and the rest of the job off the operands; false: they do not
   fit. */
static bool shapes_read(blas_job *job) {
  const cgl_blas_operands *o = job->operands;
  matrix a = {1, 1, 1, 0, 1, 1}, b = a, c = a;
  const cgl_blas_function f = job->function;
  const bool vectors = f == CGL_BLAS_axpy || f == CGL_BLAS_scal ||
                       f == CGL_BLAS_dot || f == CGL_BLAS_nrm2;
  if (vectors) {
    /* Any shape: the elements count. */
    const cgl_buffer *x = o->a ? o->a : o->c;
    job->n = (int64_t)cgl_buffer_count(x);
    const size_t wanted =
        f == CGL_BLAS_dot || f == CGL_BLAS_nrm2 ? 1 : cgl_buffer_count(x);
    return job->n <= INT32_MAX && cgl_buffer_count(o->c) == wanted &&
           (!o->b || cgl_buffer_count(o->b) == cgl_buffer_count(x));
  }
  const int of_a = f == CGL_BLAS_ger ? 1 : 2, of_b = f == CGL_BLAS_gemm ? 2 : 1;
  const int batched = f == CGL_BLAS_gemm;
  const int of_c = f == CGL_BLAS_gemv ? 1 : 2;
  if (!matrix_read(o->a, o->transpose_a, &o->columns_a, of_a, of_a + batched,
                   &a) ||
      (o->b && !matrix_read(o->b, o->transpose_b, &o->columns_b, of_b,
                            of_b + batched, &b)) ||
      !matrix_read(o->c, false, &o->columns_c, of_c, of_c + batched, &c))
    return false;
  job->first_a = a.first;
  job->first_b = b.first;
  job->first_c = c.first;
  job->row_a = a.row;
  job->row_b = b.row;
  job->row_c = c.row;
  job->batch = c.batch;
  job->m = c.rows;
  job->n = c.columns;
  job->k = a.columns;
  job->matrix_a = a.batch > 1 ? a.elements : 0;
  job->matrix_b = b.batch > 1 ? b.elements : 0;
  job->matrix_c = c.elements;
  job->whole_c = c.columns == c.row;
  switch (f) {
  case CGL_BLAS_gemm: {
    const int64_t most = a.batch == 1 ? b.batch : a.batch;
    return a.columns == b.rows && c.rows == a.rows && c.columns == b.columns &&
           (b.batch == most || b.batch == 1) && c.batch == most;
  }
  case CGL_BLAS_gemv: /* c = a b: n of c, k of b */
    return a.rows == c.columns && a.columns == b.columns;
  case CGL_BLAS_ger:
    return a.columns == c.rows && b.columns == c.columns;
  case CGL_BLAS_syrk:
    return c.rows == c.columns && a.rows == c.rows;
  default: /* trsm */
    return a.rows == a.columns && a.rows == (o->right ? c.columns : c.rows);
  }
}


static cgl_status operands_check(blas_job *job) {
  static const char *const wanted[] = {
      [CGL_BLAS_gemm] = "{m, k} and {k, n} give {m, n}, each with the same "
                        "batch in front, or none",
      [CGL_BLAS_gemv] = "{n, k} and {k} give {n}",
      [CGL_BLAS_ger] = "{m} and {n} are added to {m, n}",
      [CGL_BLAS_syrk] = "{n, k} gives {n, n}",
      [CGL_BLAS_trsm] = "a is {m, m} for a result of {m, n}, or {n, n} on the "
                        "right",
      [CGL_BLAS_axpy] = "both have as many elements",
      [CGL_BLAS_scal] = "up to 2^31 - 1 elements are possible",
      [CGL_BLAS_dot] = "both have as many elements, and the result has one",
      [CGL_BLAS_nrm2] = "the result has one element",
  };
  const cgl_blas_operands *o = job->operands;
  const cgl_blas_function f = job->function;
  const bool has_a = f != CGL_BLAS_scal;
  const bool has_b = f == CGL_BLAS_gemm || f == CGL_BLAS_gemv ||
                     f == CGL_BLAS_ger || f == CGL_BLAS_dot;
  if (!o->c || !o->a != !has_a || !o->b != !has_b) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, job->name,
             "an operand is missing, or there is one too many");
    return cgl_fail_hint("give c%s%s", has_a ? ", a" : "", has_b ? ", b" : "");
  }
  cgl_status status = types_check(job);
  if (!status)
    status = options_check(job);
  if (status)
    return status;
  if (!shapes_read(job)) {
    shapes_refuse(job, "shapes that do not fit");
    return cgl_fail_hint("%s; extents are less than 2^31", wanted[f]);
  }
  if ((o->a && cgl_buffer_overlap(o->a, o->c, NULL)) ||
      (o->b && cgl_buffer_overlap(o->b, o->c, NULL))) {
    shapes_refuse(job, "the result shares memory with what is read");
    return cgl_fail_hint("give another buffer for the result");
  }
  return CGL_OK;
}


/* ---- alpha and beta ---- */

/* One of them: what the call gave, or the default. */
typedef struct scalar {
  const char *name;
  const cgl_arg *given;
  double *number;
  cgl_buffer **at; /* gets a reference when there is a buffer */
} scalar;


static cgl_status scalar_read(const blas_job *job, const scalar *s) {
  const cgl_arg *given = s->given;
  const bool buffer = given->kind == CGL_ARG_BUFFER;
  char shape[CGL_ALGO_SHAPE_ROOM] = "of another kind";
  if (given->kind == CGL_ARG_NUMBER)
    *s->number = given->number;
  if (given->kind == CGL_ARG_NUMBER || (buffer && !given->buffer))
    return CGL_OK;
  if (buffer && cgl_buffer_count(given->buffer) == 1 &&
      cgl_buffer_type(given->buffer) == job->scalar &&
      !cgl_buffer_overlap(given->buffer, job->operands->c, NULL)) {
    *s->at = cgl_buffer_retain(given->buffer);
    return CGL_OK;
  }
  if (buffer)
    cgl_algo_shape_text(given->buffer, shape);
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, job->name,
           "%s is %s, for operands of %s", s->name, shape,
           cgl_type_name(job->type));
  return cgl_fail_hint("give a number, or a buffer of one %s apart from the "
                       "result",
                       cgl_type_name(job->scalar));
}


/* Beside a buffer, a number stands in one of its own. */
static cgl_status scalar_place(const blas_job *job, cgl_stream *stream,
                               const scalar *s) {
  const double wide[] = {*s->number, 0}; /* complex ones read both */
  const float narrow[] = {(float)*s->number, 0};
  const bool twice =
      job->scalar == CGL_TYPE_double || job->scalar == CGL_TYPE_complex128;
  if (*s->at)
    return CGL_OK;
  cgl_status status = cgl_buffer_create(stream, NULL, job->scalar, 1, s->at);
  return status ? status
                : cgl_buffer_fill(*s->at, stream,
                                  twice ? (const void *)wide : narrow);
}


/* The libraries' gemv leaves the result alone when there is nothing to sum;
   their gemm computes beta c. */
static void job_avoid_empty_gemv(blas_job *job) {
  if (job->function != CGL_BLAS_gemv || job->k)
    return;
  job->function = CGL_BLAS_gemm;
  job->m = job->n;
  job->n = job->row_c = 1;
}


cgl_status cgl_blas_issue(cgl_blas *blas, cgl_stream *stream,
                          cgl_blas_function function,
                          const cgl_blas_operands *o) {
  if ((unsigned)function >= CGL_BLAS_COUNT)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "blas",
                    "function %d is not a value of its enum", (int)function);
  blas_job job = {.function = function,
                  .operands = o,
                  .alpha = 1,
                  .m = 1,
                  .n = 1,
                  .k = 1,
                  .batch = 1,
                  .name = names[function]};
  const scalar alpha = {"alpha", &o->alpha, &job.alpha, &job.alpha_at};
  const scalar beta = {"beta", &o->beta, &job.beta, &job.beta_at};
  cgl_status status = operands_check(&job);
  if (!status && cgl_stream_context(stream) != blas->object.context) {
    cgl_fail(CGL_ERROR_WRONG_DEVICE, job.name,
             "the library was opened for device %s, the stream is on %s",
             cgl_context_device(blas->object.context)->device,
             cgl_context_device(cgl_stream_context(stream))->device);
    status = cgl_fail_hint("make a cgl_blas for each device");
  }
  if (!status)
    status = scalar_read(&job, &alpha);
  if (!status)
    status = scalar_read(&job, &beta);
  if (!status && cgl_buffer_count(o->c)) {
    if (job.alpha_at || job.beta_at)
      status = scalar_place(&job, stream, &alpha);
    if (!status && job.alpha_at)
      status = scalar_place(&job, stream, &beta);
    job_avoid_empty_gemv(&job);
    if (!status)
      status = blas->issue(blas, stream, &job);
  }
  cgl_buffer_release(job.alpha_at);
  cgl_buffer_release(job.beta_at);
  return status;
}
