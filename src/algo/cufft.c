/* cuFFT, on a GPU. */
#include "algo/fft.h"
#include "algo/library.h"
#include "core/base/context.h"
#include "core/base/error.h"
#include "core/memory/memory.h"

#include <stdio.h>

/* Of cufft.h. */
enum { R2C = 0x2a, C2R = 0x2c, C2C = 0x29, TWICE = 0x40 };
enum { FORWARD = -1, INVERSE = 1 };

/* X(name, symbol, arguments), all int: cufftResult. */
#define CUFFT_FUNCTIONS(X)                                                  \
  X(create, "cufftCreate", (int *))                                         \
  X(destroy, "cufftDestroy", (int))                                         \
  X(get_version, "cufftGetVersion", (int *))                                \
  X(set_auto_allocation, "cufftSetAutoAllocation", (int, int))              \
  X(make_plan, "cufftMakePlanMany64",                                       \
    (int, int, long long *, long long *, long long, long long, long long *, \
     long long, long long, int, long long, size_t *))                       \
  X(set_stream, "cufftSetStream", (int, void *))                            \
  X(set_work_area, "cufftSetWorkArea", (int, void *))                       \
  X(c2c, "cufftExecC2C", (int, void *, void *, int))                        \
  X(z2z, "cufftExecZ2Z", (int, void *, void *, int))                        \
  X(r2c, "cufftExecR2C", (int, void *, void *))                             \
  X(d2z, "cufftExecD2Z", (int, void *, void *))                             \
  X(c2r, "cufftExecC2R", (int, void *, void *))                             \
  X(z2d, "cufftExecZ2D", (int, void *, void *))

typedef struct cufft_table {
#define X(name, symbol, arguments) int(*name) arguments;
  CUFFT_FUNCTIONS(X)
#undef X
} cufft_table;

static const char *const symbols[] = {
#define X(name, symbol, arguments) symbol,
    CUFFT_FUNCTIONS(X)
#undef X
        NULL};

static const char *const files[] = {"libcufft.so.12", "libcufft.so.11", NULL};
static const cgl_algo_library library = {
    .files = files,
    .of_toolkit = true,
    .title = "cuFFT",
    .package = "libcufft-13-0 or libcufft-12-9 of NVIDIA's repository, the "
               "version of the driver",
    .symbols = symbols};

static cufft_table table;


static const char *cufft_describe(int code) {
  static const char *const texts[] = {
      "success",          "an invalid plan",       "the allocation failed",
      "an invalid type",  "an invalid value",      "an internal error",
      "execution failed", "the setup failed",      "an invalid size",
      "unaligned data",   "incomplete parameters", "an invalid device",
      "a parse error",    "no workspace",          "not implemented",
      "a license error",  "not supported"};
  return (unsigned)code < sizeof texts / sizeof *texts ? texts[code]
                                                       : "an unknown error";
}


/* ---- plans ---- */

static int plan_fill(cgl_fft_plan *plan) {
  const cgl_fft_key *key = &plan->key;
  static const int types[] = {C2C, C2C, R2C, C2R};
  long long n[CGL_FFT_MAX_RANK];
  for (int d = 0; d < key->rank; d++)
    n[d] = key->n[d];
  int code = table.create(&plan->handle);
  if (code) {
    plan->handle = 0;
    return code;
  }
  code = table.set_auto_allocation(plan->handle, 0);
  if (!code)
    code = table.make_plan(plan->handle, key->rank, n, NULL, 1, 0, NULL, 1, 0,
                           types[key->function] | (key->twice ? TWICE : 0),
                           key->batch, &plan->workspace);
  return code;
}


static cgl_status cufft_make(cgl_fft_plan *plan, const char *operation) {
  const int code = plan_fill(plan);
  if (!code)
    return CGL_OK;
  cgl_fail(CGL_ERROR_LIBRARY, operation, "cuFFT made no plan: %s",
           cufft_describe(code));
  return cgl_fail_hint("the device needs memory for it, and cuFFT the version "
                       "of the driver");
}


static void cufft_end(cgl_fft_plan *plan) {
  if (plan->handle && !cgl_context_enter(plan->object.context, "fft"))
    table.destroy(plan->handle);
}


/* ---- calls ---- */

typedef struct cufft_call {
  cgl_fft_plan *plan;
  cgl_buffer *in, *out, *workspace;
} cufft_call;


static void *address(const cgl_buffer *buffer) {
  return buffer ? cgl_buffer_fixed(buffer) : NULL;
}


static int cufft_issue(void *user, void *custream) {
  const cufft_call *call = user;
  const cgl_fft_plan *plan = call->plan;
  const bool twice = plan->key.twice;
  const int handle = plan->handle;
  void *const in = address(call->in), *const out = address(call->out);
  int code = table.set_stream(handle, custream);
  if (!code && call->workspace)
    code = table.set_work_area(handle, address(call->workspace));
  if (code)
    return code;
  switch (plan->key.function) {
  case CGL_FFT_rfft:
    return (twice ? table.d2z : table.r2c)(handle, in, out);
  case CGL_FFT_irfft:
    return (twice ? table.z2d : table.c2r)(handle, in, out);
  default:
    return (twice ? table.z2z : table.c2c)(
        handle, in, out, plan->key.function == CGL_FFT_fft ? FORWARD : INVERSE);
  }
}


static void plan_retain(void *plan) {
  cgl_object_retain(&((cgl_fft_plan *)plan)->object);
}


static void plan_release(void *plan) {
  cgl_object_release(&((cgl_fft_plan *)plan)->object);
}


static cgl_status cufft_run(cgl_fft *fft, cgl_stream *stream,
                            cgl_fft_plan *plan, cgl_buffer *in, cgl_buffer *out,
                            const char *operation) {
  (void)fft;
  cufft_call user = {.plan = plan, .in = in, .out = out};
  cgl_status status = CGL_OK;
  if (plan->workspace)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_uint8, plan->workspace,
                               &user.workspace);
  if (status)
    return status;
  const bool over = plan->key.function == CGL_FFT_irfft && plan->key.rank > 1;
  const cgl_call_use uses[] = {{out, true}, {in, over}, {user.workspace, true}};
  const cgl_call call = {
      .name = operation,
      .issue = cufft_issue,
      .user = &user,
      .describe = cufft_describe,
      .uses = uses,
      .nuses = user.workspace ? 3 : 2,
      .overwrites = !plan->key.in_place && !over,
      .owner = plan,
      .retain = plan_retain,
      .release = plan_release,
  };
  status = cgl_call_issue(stream, &call);
  cgl_buffer_release(user.workspace);
  return status;
}


cgl_status cgl_fft_open_cuda(cgl_fft *fft) {
  static const cgl_fft_library cufft = {cufft_make, cufft_run, cufft_end, true};
  cgl_status status = cgl_algo_library_open(&library, (void **)&table, "fft");
  int version = 0;
  if (status)
    return status;
  fft->library = &cufft;
  if (table.get_version(&version))
    version = 0;
  snprintf(fft->description, sizeof fft->description, "cuFFT %d.%d.%d",
           version / 1000, version / 100 % 10, version % 100);
  return CGL_OK;
}
