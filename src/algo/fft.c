/* Transforms: shapes and types checked, plans found or made, results scaled. */
#include "algo/fft.h"
#include "core/base/captures.h"
#include "core/base/context.h"
#include "core/base/error.h"
#include "core/call/call.h"
#include "core/memory/memory.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(name) [CGL_FFT_##name] = "fft." #name,
    CGL_FFT_FUNCTIONS(X)
#undef X
};

typedef struct fft_call {
  const char *name;
  cgl_fft_key key;
  cgl_buffer *x, *out;
  double scale;
} fft_call;


/* ---- the object ---- */

cgl_status cgl_fft_create(cgl_context *context, cgl_fft **out) {
  cgl_fft *fft = calloc(1, sizeof *fft);
  if (!fft)
    return cgl_fail(CGL_ERROR_NO_MEMORY, "fft", "no memory for a library");
  fft->context = cgl_context_retain(context);
  cgl_status status = cgl_algo_create(context, &fft->algo);
  if (!status)
    status = strcmp(cgl_context_device(context)->device, "host") == 0
                 ? cgl_fft_open_host(fft)
                 : cgl_fft_open_cuda(fft);
  if (status)
    cgl_fft_destroy(fft);
  else
    *out = fft;
  return status;
}


void cgl_fft_destroy(cgl_fft *fft) {
  if (!fft)
    return;
  cgl_fft_clear(fft);
  cgl_algo_destroy(fft->algo);
  cgl_context_release(fft->context);
  free(fft);
}


void cgl_fft_clear(cgl_fft *fft) {
  while (fft->plans) {
    cgl_fft_plan *plan = fft->plans;
    fft->plans = plan->next;
    cgl_object_release(&plan->object);
  }
  fft->nplans = 0;
}


size_t cgl_fft_plan_count(const cgl_fft *fft) {
  return fft->nplans;
}


const char *cgl_fft_describe(const cgl_fft *fft) {
  return fft->description;
}


/* ---- plans ---- */

static void plan_destroy(cgl_object *object) {
  cgl_fft_plan *plan = (cgl_fft_plan *)object;
  cgl_context_wait(object->context); /* a transform may still run */
  plan->library->end(plan);
  free(plan);
}


static const cgl_object_kind plan_kind = {
    .number = CGL_OBJECT_INTERNAL,
    .destroy = plan_destroy,
};


cgl_status cgl_fft_plan_memory(cgl_fft_plan *plan, cgl_buffer **memory) {
  return cgl_buffer_of_keeper(&plan->object, (uintptr_t)&plan->call,
                              CGL_TYPE_uint8, sizeof plan->call, memory);
}


/* Makes a plan.  cuFFT loads code, allocates and waits for the device, which
   breaks captures of any thread; on the host device the rule is the same, so
   that a script that runs there runs on a GPU. */
static cgl_status plan_make(cgl_fft *fft, const fft_call *call,
                            cgl_fft_plan **out) {
  cgl_status status = cgl_context_enter(fft->context, call->name);
  if (status)
    return status;
  cgl_fft_plan *plan = calloc(1, sizeof *plan);
  if (!plan)
    return cgl_fail(CGL_ERROR_NO_MEMORY, call->name, "no memory for a plan");
  cgl_object_init(&plan->object, &plan_kind, fft->context);
  plan->key = call->key;
  plan->library = fft->library;
  if (cgl_captures_hold(true)) {
    status = fft->library->make(plan, call->name);
    cgl_captures_unhold();
  } else {
    cgl_captures_fail_device(call->name, "make the plan of a new shape", "");
    status = cgl_fail_hint("make this call once before captures begin: plans "
                           "are found again by shape");
  }
  if (status)
    cgl_object_release(&plan->object);
  else
    *out = plan;
  return status;
}


/* ---- files ---- */

static size_t plan_describe(const cgl_object *keeper, uint64_t address,
                            unsigned char recipe[CGL_CALL_RECIPE]) {
  static_assert(sizeof(cgl_fft_key) <= CGL_CALL_RECIPE, "a key is a recipe");
  (void)address;
  memcpy(recipe, &((const cgl_fft_plan *)keeper)->key, sizeof(cgl_fft_key));
  return sizeof(cgl_fft_key);
}


/* Whether a key from a file is that of a transform of at most so many bytes. */
static bool key_is_valid(const cgl_fft_key *key, uint64_t most) {
  uint64_t bytes = key->twice ? sizeof(double) : sizeof(float);
  bool over = key->batch < 1 ||
              __builtin_mul_overflow(bytes, (uint64_t)key->batch, &bytes);
  if ((unsigned)key->function >= CGL_FFT_COUNT || (key->twice & ~1) ||
      (key->in_place & ~1) || key->rank < 1 || key->rank > CGL_FFT_MAX_RANK ||
      (key->in_place && key->function >= CGL_FFT_rfft))
    return false;
  for (int d = 0; d < CGL_FFT_MAX_RANK; d++)
    over |= d < key->rank
                ? key->n[d] < 1 ||
                      __builtin_mul_overflow(bytes, (uint64_t)key->n[d], &bytes)
                : key->n[d] != 0;
  return !over && bytes <= most;
}


static cgl_status plan_remake(cgl_context *context, const unsigned char *recipe,
                              size_t length, uint64_t most,
                              const char *operation, cgl_buffer **memory) {
  fft_call call;
  cgl_fft *fft = NULL;
  cgl_fft_plan *plan = NULL;
  memset(&call, 0, sizeof call);
  call.name = operation;
  if (length == sizeof call.key)
    memcpy(&call.key, recipe, sizeof call.key);
  if (!key_is_valid(&call.key, most))
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
                    "the file's transform has no such shape");
  cgl_status status = cgl_fft_create(context, &fft);
  if (!status)
    status = plan_make(fft, &call, &plan);
  if (!status)
    status = cgl_fft_plan_memory(plan, memory);
  if (plan)
    cgl_object_release(&plan->object);
  cgl_fft_destroy(fft);
  return status;
}


static void __attribute__((constructor)) plan_register(void) {
  static cgl_call_library fftw = {.name = "FFTW",
                                  .version = 1,
                                  .keeper = &plan_kind,
                                  .describe = plan_describe,
                                  .make = plan_remake};
  cgl_call_register(&fftw);
}


/* ---- the list of plans ---- */

/* Forgets the plan that was used least recently. */
static void plans_shorten(cgl_fft *fft) {
  cgl_fft_plan **link = &fft->plans;
  while ((*link)->next)
    link = &(*link)->next;
  cgl_fft_plan *last = *link;
  *link = NULL;
  fft->nplans--;
  cgl_object_release(&last->object);
}


/* The plan of the call, first in the list. */
static cgl_status plan_find(cgl_fft *fft, const fft_call *call,
                            cgl_fft_plan **out) {
  cgl_fft_plan **link = &fft->plans, *plan;
  while ((plan = *link) && memcmp(&plan->key, &call->key, sizeof plan->key))
    link = &plan->next;
  if (plan) {
    *link = plan->next;
    fft->nplans--;
  } else {
    cgl_status status = plan_make(fft, call, &plan);
    if (status)
      return status;
    if (fft->nplans == CGL_FFT_MAX_PLANS)
      plans_shorten(fft);
  }
  plan->next = fft->plans;
  fft->plans = plan;
  fft->nplans++;
  *out = plan;
  return CGL_OK;
}


/* ---- arguments ---- */

static cgl_status call_refuse(const fft_call *call, const char *why) {
  char x[CGL_ALGO_SHAPE_ROOM], out[CGL_ALGO_SHAPE_ROOM];
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, call->name, "%s into %s",
           cgl_algo_shape_text(call->x, x),
           cgl_algo_shape_text(call->out, out));
  return cgl_fail_hint("%s", why);
}


static cgl_status types_check(fft_call *call) {
  static const char *const wanted[] = {
      [CGL_FFT_fft] = "fft takes complex64 or complex128, and gives the same; "
                      "fft.rfft takes real numbers",
      [CGL_FFT_ifft] = "ifft takes complex64 or complex128, and gives the "
                       "same; fft.irfft gives real numbers",
      [CGL_FFT_rfft] = "rfft takes float and gives complex64, or double and "
                       "complex128; fft.fft takes complex numbers",
      [CGL_FFT_irfft] = "irfft takes complex64 and gives float, or complex128 "
                        "and double",
  };
  const cgl_type x = cgl_buffer_type(call->x), out = cgl_buffer_type(call->out);
  const cgl_fft_function f = call->key.function;
  const bool twice = x == CGL_TYPE_double || x == CGL_TYPE_complex128;
  const cgl_type real = twice ? CGL_TYPE_double : CGL_TYPE_float;
  const cgl_type complex = twice ? CGL_TYPE_complex128 : CGL_TYPE_complex64;
  call->key.twice = twice;
  if (x != (f == CGL_FFT_rfft ? real : complex) ||
      out != (f == CGL_FFT_irfft ? real : complex))
    return call_refuse(call, wanted[f]);
  return CGL_OK;
}


/* The key's extents; refuses shapes that do not go together. */
static cgl_status shapes_check(fft_call *call) {
  size_t x[CGL_MAX_DIMS], out[CGL_MAX_DIMS];
  const int ndims = cgl_buffer_shape(call->x, x);
  const cgl_fft_function f = call->key.function;
  if (call->key.rank < 1 || call->key.rank > CGL_FFT_MAX_RANK ||
      call->key.rank > ndims)
    return call_refuse(call,
                       "a transform goes over 1 to 3 extents, and no more "
                       "than there are");
  if (cgl_buffer_shape(call->out, out) != ndims)
    return call_refuse(call, "the result has as many extents");
  const size_t *real = f == CGL_FFT_irfft ? out : x;
  call->key.batch = 1;
  for (int d = 0; d < ndims; d++) {
    const bool half = f >= CGL_FFT_rfft && d + 1 == ndims;
    const size_t other =
        (size_t)(half ? cgl_fft_half((int64_t)real[d]) : (int64_t)real[d]);
    if (other != (real == x ? out : x)[d])
      return call_refuse(call, half
                                   ? "of the last extent, the complex side has "
                                     "n / 2 + 1 of the real side's n"
                                   : "the result has the same extents");
    const int of = d - (ndims - call->key.rank);
    if (of < 0)
      call->key.batch *= (int64_t)real[d];
    else if (!real[d])
      return call_refuse(call, "an extent of 0 has no transform");
    else
      call->key.n[of] = (int64_t)real[d];
  }
  return CGL_OK;
}


static cgl_status call_check(fft_call *call, cgl_fft_norm norm) {
  if ((unsigned)norm >= CGL_FFT_NORM_COUNT)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, call->name,
                    "norm %d is not a value of its enum", (int)norm);
  cgl_status status = types_check(call);
  if (!status)
    status = shapes_check(call);
  if (status)
    return status;
  bool same = false;
  const bool overlap = cgl_buffer_overlap(call->x, call->out, &same);
  call->key.in_place = same && call->key.function < CGL_FFT_rfft;
  if (overlap && !call->key.in_place)
    return call_refuse(call,
                       "the result shares memory with what is "
                       "transformed; fft and ifft may write to all of it");
  int64_t n, half;
  cgl_fft_sizes(&call->key, &n, &half);
  const bool back =
      call->key.function == CGL_FFT_ifft || call->key.function == CGL_FFT_irfft;
  call->scale = norm == CGL_FFT_NORM_ortho                ? 1 / sqrt((double)n)
                : back == (norm == CGL_FFT_NORM_backward) ? 1 / (double)n
                                                          : 1;
  return CGL_OK;
}


/* ---- the call ---- */

static cgl_status out_scale(cgl_fft *fft, cgl_stream *stream,
                            const fft_call *call) {
  cgl_kernel *kernel;
  const uint64_t n = cgl_buffer_count(call->out) *
                     (uint64_t)cgl_type_lanes(cgl_buffer_type(call->out));
  if (call->scale == 1)
    return CGL_OK;
  cgl_status status = cgl_algo_kernel(fft->algo, CGL_ALGO_fft, "scale",
                                      call->key.twice ? "\n#define T double\n"
                                                      : "\n#define T float\n",
                                      call->name, &kernel);
  if (status)
    return status;
  const cgl_launch launch = cgl_algo_rows(n, CGL_ALGO_BLOCK);
  const cgl_arg args[] = {cgl_algo_memory(call->out),
                          {.kind = CGL_ARG_NUMBER, .number = call->scale},
                          cgl_algo_whole(n)};
  return cgl_kernel_launch(kernel, stream, &launch, args, 3);
}


/* Whether a library would refuse the address: it wants real numbers to begin
   where complex ones could. */
static bool is_crooked(const cgl_fft *fft, const cgl_buffer *buffer) {
  return fft->library->pairs &&
         (uintptr_t)cgl_buffer_fixed(buffer) %
             (2 * cgl_type_bytes(cgl_type_number(cgl_buffer_type(buffer))));
}


/* Both libraries write to the input of irfft over several extents: they get a
   copy. */
static bool wants_copy(const cgl_fft *fft, const fft_call *call) {
  return is_crooked(fft, call->x) ||
         (call->key.function == CGL_FFT_irfft && call->key.rank > 1);
}


static cgl_status scratch_create(cgl_stream *stream, const cgl_buffer *like,
                                 cgl_buffer **scratch) {
  return cgl_buffer_create(stream, NULL, cgl_buffer_type(like),
                           cgl_buffer_count(like), scratch);
}


/* Transforms from and to memory that the library takes. */
static cgl_status call_run(cgl_fft *fft, cgl_stream *stream, fft_call *call,
                           cgl_fft_plan *plan) {
  cgl_buffer *in = NULL, *to = NULL;
  cgl_status status = CGL_OK;
  if (wants_copy(fft, call)) {
    status = scratch_create(stream, call->x, &in);
    if (!status)
      status = cgl_buffer_copy(in, call->x, stream);
  }
  if (!status && is_crooked(fft, call->out))
    status = scratch_create(stream, call->out, &to);
  if (!status)
    status = fft->library->run(fft, stream, plan, in ? in : call->x,
                               to ? to : call->out, call->name);
  if (!status && to)
    status = cgl_buffer_copy(call->out, to, stream);
  cgl_buffer_release(in);
  cgl_buffer_release(to);
  return status ? status : out_scale(fft, stream, call);
}


cgl_status cgl_fft_issue(cgl_fft *fft, cgl_stream *stream,
                         cgl_fft_function function, cgl_fft_norm norm, int rank,
                         cgl_buffer *x, cgl_buffer *out) {
  if ((unsigned)function >= CGL_FFT_COUNT)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "fft",
                    "function %d is not a value of its enum", (int)function);
  fft_call call;
  memset(&call, 0, sizeof call); /* the key's padding, too */
  call.name = names[function];
  call.key.function = function;
  call.key.rank = rank;
  call.x = x;
  call.out = out;
  cgl_fft_plan *plan = NULL;
  cgl_status status = call_check(&call, norm);
  if (status || !cgl_buffer_count(out))
    return status;
  status = plan_find(fft, &call, &plan);
  return status ? status : call_run(fft, stream, &call, plan);
}
