/* cuBLAS, on a GPU.  It counts matrices by columns: a buffer's rows are its
   columns, so each call is made for the transposed result. */
#include "algo/blas.h"
#include "algo/cublaslt.h"
#include "core/base/captures.h"
#include "core/base/context.h"
#include "core/base/error.h"
#include "core/memory/memory.h"

#include <stdio.h>

typedef cgl_algo_blas_job blas_job;

/* Of cublas_api.h; every one is part of the library's ABI since CUDA 11. */
enum {
  N = 0, /* cublasOperation_t: T is 1, and its conjugate 2 */
  LOWER = 0,
  UPPER = 1, /* cublasFillMode_t */
  LEFT = 0,
  RIGHT = 1, /* cublasSideMode_t */
  POINTER_HOST = 0,
  POINTER_DEVICE = 1, /* cublasPointerMode_t */
  ALGO_DEFAULT = -1,  /* cublasGemmAlgo_t */
  COMPUTE_32F = 68,
  COMPUTE_64F = 70,
  COMPUTE_32F_FAST_TF32 = 77, /* cublasComputeType_t */
  MATH = 0 | 16 /* CUBLAS_DEFAULT_MATH, and sums of 16-bit types in float */
};

typedef void *handle_t;

/* X(name of the member, symbol, arguments), all int: cublasStatus_t. */
#define CUBLAS_PLAIN(X)                                                       \
  X(create, "cublasCreate_v2", (handle_t *))                                  \
  X(destroy, "cublasDestroy_v2", (handle_t))                                  \
  X(get_version, "cublasGetVersion_v2", (handle_t, int *))                    \
  X(set_stream, "cublasSetStream_v2", (handle_t, void *))                     \
  X(set_workspace, "cublasSetWorkspace_v2", (handle_t, void *, size_t))       \
  X(set_pointer_mode, "cublasSetPointerMode_v2", (handle_t, int))             \
  X(set_math_mode, "cublasSetMathMode", (handle_t, int))                      \
  X(gemm, "cublasGemmStridedBatchedEx",                                       \
    (handle_t, int, int, int, int, int, const void *, const void *, int, int, \
     long long, const void *, int, int, long long, const void *, void *, int, \
     int, long long, int, int, int))
/* X(name, arguments): one for float, one for double. */
#define CUBLAS_TYPED(X)                                                        \
  X(gemv, (handle_t, int, int, int, const void *, const void *, int,           \
           const void *, int, const void *, void *, int))                      \
  X(ger, (handle_t, int, int, const void *, const void *, int, const void *,   \
          int, void *, int))                                                   \
  X(syrk, (handle_t, int, int, int, int, const void *, const void *, int,      \
           const void *, void *, int))                                         \
  X(trsm, (handle_t, int, int, int, int, int, int, const void *, const void *, \
           int, void *, int))                                                  \
  X(axpy, (handle_t, int, const void *, const void *, int, void *, int))       \
  X(scal, (handle_t, int, const void *, void *, int))                          \
  X(dot, (handle_t, int, const void *, int, const void *, int, void *))        \
  X(nrm2, (handle_t, int, const void *, int, void *))

typedef struct cublas_table {
  const char *(*get_status_string)(int);
#define X(name, symbol, arguments) int(*name) arguments;
  CUBLAS_PLAIN(X)
#undef X
#define X(name, arguments) int(*name[2]) arguments;
  CUBLAS_TYPED(X)
#undef X
} cublas_table;

static const char *const symbols[] = {"cublasGetStatusString",
#define X(name, symbol, arguments) symbol,
                                      CUBLAS_PLAIN(X)
#undef X
#define X(name, arguments) "cublasS" #name "_v2", "cublasD" #name "_v2",
                                          CUBLAS_TYPED(X)
#undef X
                                              NULL};

static const char *const files[] = {"libcublas.so.13", "libcublas.so.12", NULL};
static const cgl_algo_library library = {
    .files = files,
    .of_toolkit = true,
    .title = "cuBLAS",
    .package = "libcublas-13-0 or libcublas-12-9 of NVIDIA's repository, the "
               "version of the driver",
    .symbols = symbols};

static const int kinds[CGL_TYPE_COUNT] =
    {/* cudaDataType_t */
     [CGL_TYPE_float] = 0,     [CGL_TYPE_double] = 1,
     [CGL_TYPE_half] = 2,      [CGL_TYPE_bfloat16] = 14,
     [CGL_TYPE_complex64] = 4, [CGL_TYPE_complex128] = 5};

static cublas_table table;


/* ---- calls ---- */

typedef struct cublas_call {
  cgl_blas *blas;
  const blas_job *job;
  cgl_buffer *workspace; /* NULL: the function needs none */
  uint64_t stream;       /* serial; 0: a stream beside a capture */
} cublas_call;


static void *address(const cgl_buffer *buffer) {
  return buffer ? cgl_buffer_fixed(buffer) : NULL;
}


/* Of element `first`. */
static void *address_at(const cgl_buffer *buffer, int64_t first) {
  return buffer ? (char *)address(buffer) +
                      (size_t)first * cgl_type_bytes(cgl_buffer_type(buffer))
                : NULL;
}


static bool is_wide(cgl_type type) {
  return type == CGL_TYPE_double || type == CGL_TYPE_complex128;
}


static int compute_of(const blas_job *job) {
  return is_wide(job->type) ? COMPUTE_64F
         : job->operands->precision == CGL_BLAS_PRECISION_tf32
             ? COMPUTE_32F_FAST_TF32
             : COMPUTE_32F;
}


/* The function itself, by columns. */
static int cublas_run(handle_t handle, const blas_job *job, const void *alpha,
                      const void *beta) {
  const cgl_blas_operands *o = job->operands;
  const bool twice = is_wide(job->type);
  void *const a = address_at(o->a, job->first_a),
              *const b = address_at(o->b, job->first_b),
              *const c = address_at(o->c, job->first_c);
  const int m = (int)job->m, n = (int)job->n, k = (int)job->k;
  const int row_a = (int)job->row_a, row_b = (int)job->row_b,
            row_c = (int)job->row_c;
  const int kind = kinds[job->type];
  const int op_a = o->transpose_a + o->conjugate_a,
            op_b = o->transpose_b + o->conjugate_b;
  const int half = o->upper ? LOWER : UPPER;
  switch (job->function) {
  case CGL_BLAS_gemm:
    return table.gemm(handle, op_b, op_a, n, m, k, alpha, b, kind, row_b,
                      job->matrix_b, a, kind, row_a, job->matrix_a, beta, c,
                      kind, row_c, job->matrix_c, (int)job->batch,
                      compute_of(job), ALGO_DEFAULT);
  case CGL_BLAS_gemv:
    return table.gemv[twice](handle, !o->transpose_a, o->transpose_a ? n : k,
                             o->transpose_a ? k : n, alpha, a, row_a, b, 1,
                             beta, c, 1);
  case CGL_BLAS_ger:
    return table.ger[twice](handle, n, m, alpha, b, 1, a, 1, c, row_c);
  case CGL_BLAS_syrk:
    return table.syrk[twice](handle, half, !o->transpose_a, n, k, alpha, a,
                             row_a, beta, c, row_c);
  case CGL_BLAS_trsm:
    return table.trsm[twice](handle, o->right ? LEFT : RIGHT, half,
                             o->transpose_a, o->unit, n, m, alpha, a, row_a, c,
                             row_c);
  case CGL_BLAS_axpy:
    return table.axpy[twice](handle, n, alpha, a, 1, c, 1);
  case CGL_BLAS_scal:
    return table.scal[twice](handle, n, alpha, c, 1);
  case CGL_BLAS_dot:
    return table.dot[twice](handle, n, a, 1, b, 1, c);
  default:
    return table.nrm2[twice](handle, n, a, 1, c);
  }
}


/* A change of the stream forgets the workspace.  What the handle knows it is
   not told again. */
static int cublas_set_stream(const cublas_call *call, void *custream) {
  cgl_blas *blas = call->blas;
  if (call->stream && blas->stream == call->stream &&
      (!call->workspace || blas->has_scratch))
    return 0;
  blas->stream = 0;
  int code = table.set_stream(blas->handle, custream);
  if (!code && call->workspace)
    code = table.set_workspace(blas->handle, address(call->workspace),
                               blas->workspace);
  if (!code) {
    blas->stream = call->stream;
    blas->has_scratch = call->workspace != NULL;
  }
  return code;
}


/* Of alpha and beta, and of a sum's result. */
static int cublas_set_pointers(cgl_blas *blas, bool from_device) {
  if (blas->from_device == from_device)
    return 0;
  const int code = table.set_pointer_mode(
      blas->handle, from_device ? POINTER_DEVICE : POINTER_HOST);
  if (!code)
    blas->from_device = from_device;
  return code;
}


/* gemm by cuBLASLt, which is told the stream and the scratch with each call. */
static int cublaslt_run(const cublas_call *call, const void *alpha,
                        const void *beta, void *custream) {
  const blas_job *job = call->job;
  const cgl_blas_operands *o = job->operands;
  cgl_algo_product product = {
      .key = {.type = kinds[job->type],
              .compute = compute_of(job),
              .scale = kinds[job->scalar],
              .from_device = job->alpha_at ? POINTER_DEVICE : POINTER_HOST,
              .op_a = o->transpose_b + o->conjugate_b,
              .op_b = o->transpose_a + o->conjugate_a,
              .m = job->n,
              .n = job->m,
              .k = job->k,
              .batch = job->batch,
              .row_a = job->row_b,
              .row_b = job->row_a,
              .row_c = job->row_c,
              .matrix_a = job->matrix_b,
              .matrix_b = job->matrix_a,
              .matrix_c = job->matrix_c},
      .alpha = alpha,
      .beta = beta,
      .a = address_at(o->b, job->first_b),
      .b = address_at(o->a, job->first_a),
      .c = address_at(o->c, job->first_c),
      .scratch = address(call->workspace)};
  return cgl_algo_cublaslt_issue(call->blas->products, &product, custream);
}


/* For complex64 the kernels that cuBLAS chooses are up to a fifth faster than
   cuBLASLt's choice. */
static int cublas_call_issue(void *user, void *custream) {
  const cublas_call *call = user;
  const blas_job *job = call->job;
  /* With 0 behind each, for complex numbers. */
  const float narrow[] = {(float)job->alpha, 0, (float)job->beta, 0};
  const double wide[] = {job->alpha, 0, job->beta, 0};
  const bool twice = is_wide(job->scalar);
  const void *alpha = job->alpha_at ? address(job->alpha_at)
                      : twice       ? (const void *)wide
                                    : narrow;
  const void *beta = job->beta_at ? address(job->beta_at)
                     : twice      ? (const void *)(wide + 2)
                                  : narrow + 2;
  int code = CGL_ALGO_NO_CHOICE;
  if (job->function == CGL_BLAS_gemm && job->type != CGL_TYPE_complex64)
    code = cublaslt_run(call, alpha, beta, custream);
  if (code != CGL_ALGO_NO_CHOICE)
    return code;
  const bool sums =
      job->function == CGL_BLAS_dot || job->function == CGL_BLAS_nrm2;
  code = cublas_set_stream(call, custream);
  if (!code)
    code = cublas_set_pointers(call->blas, sums || job->alpha_at);
  return code ? code : cublas_run(call->blas->handle, job, alpha, beta);
}


static void blas_retain(void *blas) {
  cgl_object_retain(&((cgl_blas *)blas)->object);
}


static void blas_release(void *blas) {
  cgl_object_release(&((cgl_blas *)blas)->object);
}


/* Scratch for a call: in a capture the graph's, which the caller releases;
   outside blas->scratch, which the next call on the stream finds again. */
static cgl_status scratch_get(cgl_blas *blas, cgl_stream *stream,
                              cgl_buffer **workspace) {
  const bool kept = !stream->capture;
  *workspace = blas->scratch;
  if (kept && blas->scratch && blas->scratch_stream == stream->serial)
    return CGL_OK;
  cgl_status status = cgl_buffer_create(stream, NULL, CGL_TYPE_uint8,
                                        blas->workspace, workspace);
  if (status || !kept)
    return status;
  cgl_buffer_release(blas->scratch);
  blas->scratch = *workspace;
  blas->scratch_stream = stream->serial;
  blas->stream = 0;
  return CGL_OK;
}


static cgl_status cublas_issue(cgl_blas *blas, cgl_stream *stream,
                               const blas_job *job) {
  const cgl_blas_operands *o = job->operands;
  cublas_call user = {
      .blas = blas, .job = job, .stream = stream->capture ? 0 : stream->serial};
  const bool alone = job->function == CGL_BLAS_axpy ||
                     job->function == CGL_BLAS_scal ||
                     job->function == CGL_BLAS_ger;
  cgl_status status =
      alone ? CGL_OK : scratch_get(blas, stream, &user.workspace);
  if (status)
    return status;
  cgl_call_use uses[6];
  size_t nuses = 0;
  cgl_buffer *const read[] = {o->a, o->b, job->alpha_at, job->beta_at};
  for (size_t i = 0; i < sizeof read / sizeof *read; i++)
    if (read[i])
      uses[nuses++] = (cgl_call_use){read[i], false};
  uses[nuses++] = (cgl_call_use){o->c, true};
  if (user.workspace)
    uses[nuses++] = (cgl_call_use){user.workspace, true};
  const bool products =
      job->function == CGL_BLAS_gemm || job->function == CGL_BLAS_gemv;
  const cgl_call call = {
      .name = job->name,
      .issue = cublas_call_issue,
      .user = &user,
      .describe = table.get_status_string,
      .uses = uses,
      .nuses = nuses,
      .overwrites =
          job->function == CGL_BLAS_dot || job->function == CGL_BLAS_nrm2 ||
          (products && job->whole_c && !job->beta_at && job->beta == 0),
      .owner = blas,
      .retain = blas_retain,
      .release = blas_release,
  };
  status = cgl_call_issue(stream, &call);
  if (user.workspace != blas->scratch)
    cgl_buffer_release(user.workspace);
  return status;
}


/* ---- the handle ---- */

static void cublas_close(cgl_blas *blas) {
  cgl_buffer_release(blas->scratch);
  cgl_algo_cublaslt_close(blas->products);
  if (blas->handle && !cgl_context_enter(blas->object.context, "blas"))
    table.destroy(blas->handle);
}


/* Makes the handle, which loads code and allocates. */
static cgl_status cublas_make(cgl_blas *blas) {
  int version = 0;
  int code = table.create(&blas->handle);
  if (!code)
    code = table.set_math_mode(blas->handle, MATH);
  if (!code)
    code = table.get_version(blas->handle, &version);
  if (code) {
    cgl_fail(CGL_ERROR_LIBRARY, "blas", "cuBLAS made no handle: %s",
             table.get_status_string(code));
    return cgl_fail_hint("the version of cuBLAS must suit the driver, and the "
                         "device must have memory for it");
  }
  snprintf(blas->description, sizeof blas->description,
           "cuBLAS %d.%d.%d: sums in float of float, half and bfloat16, in "
           "double of double; TF32 where a call asks for it",
           version / 10000, version / 100 % 100, version % 100);
  return cgl_algo_cublaslt_open(&library, blas->handle, blas->workspace,
                                &blas->products);
}


cgl_status cgl_algo_blas_open_cuda(cgl_blas *blas) {
  cgl_context *context = blas->object.context;
  cgl_status status = cgl_algo_library_open(&library, (void **)&table, "blas");
  if (status)
    return status;
  blas->issue = cublas_issue;
  blas->close = cublas_close;
  /* NVIDIA's advice, by compute capability. */
  blas->workspace =
      (size_t)(cgl_context_device(context)->compute[0] >= 9 ? 32 : 4) << 20;
  const cgl_relaxed relaxed = cgl_captures_relax_always(context);
  status = cublas_make(blas);
  cgl_captures_unrelax(context, relaxed);
  return status;
}
