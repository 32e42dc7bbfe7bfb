/* Filling buffers with random numbers, and the kernels that do it. */
#include "core/module/module.h"
#include "core/random/fills_text.h"
#include "core/random/random.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* ---- kernels ---- */

enum {
  PART_STATE,
  PART_CONDITIONAL,
  PART_UNIFORM,
  PART_NORMAL,
  PART_RANDOM,
  PART_COUNT
};

static const cgl_own_kernel kernels[] = {
#define X(word, part, each) {#word, "-D" #part, PART_##part},
    CGL_FILLS(X)
#undef X
};
_Static_assert((int)PART_COUNT <= (int)CGL_OWN_PARTS &&
                   (int)CGL_FILL_COUNT <= (int)CGL_OWN_KERNELS,
               "a context has room for all");

static const uint64_t fill_each[] = {/* values of one position */
#define X(word, part, each) each,
                                     CGL_FILLS(X)
#undef X
};


const cgl_own cgl_fill_own = {CGL_PART_RANDOM, cgl_text_fills, kernels,
                              CGL_FILL_COUNT};


cgl_status cgl_fill_kernel(cgl_context *context, cgl_fill fill,
                           const char *operation, CUfunction *kernel) {
  return cgl_module_own_kernel(context, &cgl_fill_own, fill, operation, kernel);
}


cgl_waiter *cgl_fill_waiter(const cgl_context *context, cgl_fill fill) {
  return cgl_module_own_waiter(context, &cgl_fill_own, fill);
}


size_t cgl_fill_pack(unsigned char *values, void **params, size_t n) {
  for (size_t i = 0; i < n; i++) {
    memset(values + 16 * i, 0, 16);
    memcpy(values + 16 * i, params[i], 8);
  }
  return 16 * n;
}


/* ---- one fill ---- */

enum { BLOCK = 256, ROW_BITS = 30 };


/* Three values of the kernel's own type follow its first parameters. */
static cgl_status fill_issue(cgl_buffer *buffer, cgl_generator *generator,
                             cgl_stream *stream, cgl_fill fill,
                             void *const values[3], const cgl_ruled *ruled,
                             const char *operation) {
  enum { NPARAMS = 7 };
  cgl_context *context = buffer->object.context;
  cgl_issue issue;
  cgl_philox philox;
  CUfunction kernel;
  cgl_status status =
      cgl_object_check_device(&buffer->object, &generator->object, operation);
  if (!status)
    status = cgl_issue_begin(
        &issue, stream, &buffer->object, operation,
        &(cgl_room){.ranges = 1,
                    .values = 16 * NPARAMS + 16 + sizeof(cgl_numbers),
                    .kept = 1 + CGL_NUMBERS,
                    .uses = CGL_NUMBERS});
  if (!status)
    status = cgl_buffer_check_use(buffer, CGL_USE_WRITE, stream, operation);
  if (status || !buffer->count)
    return status;
  status = cgl_fill_kernel(context, fill, operation, &kernel);
  if (!status)
    status = cgl_draw_begin(generator, stream, 0, operation, &philox);
  if (status)
    return status;
  uint64_t count =
      buffer->count * (uint64_t)cgl_type_lanes(buffer->type); /* numbers */
  uint64_t positions = count / fill_each[fill];
  if (!positions)
    positions = 1;
  uint64_t rows = ((positions - 1) >> ROW_BITS) + 1;
  uint64_t row = rows > 1 ? UINT64_C(1) << ROW_BITS : positions;
  const cgl_launch launch = {
      {(uint32_t)((row + BLOCK - 1) / BLOCK), (uint32_t)rows, 1},
      {BLOCK, 1, 1},
      0};
  void *params[NPARAMS] = {&buffer->address,  &count,    &philox.state,
                           &philox.operation, values[0], values[1],
                           values[2]};
  status = cgl_issue_launch(&issue, kernel, &launch,
                            cgl_fill_waiter(context, fill), params);
  if (status)
    return status;
  cgl_note note = {.kind = CGL_OP_KERNEL,
                   .name = stream->capture ? kernels[fill].name : operation,
                   .launch = &launch,
                   .function = kernel,
                   .fills = true};
  unsigned char *packed = cgl_issue_values(&issue);
  if (packed)
    note.nvalues = cgl_fill_pack(packed, params, NPARAMS);
  cgl_buffer_use(buffer, &issue, true, 0);
  if (ruled)
    cgl_issue_rule(&issue, &note, ruled, 0);
  cgl_issue_end(&issue, &note);
  return cgl_draw_end(generator, stream, operation);
}


/* ---- what the element types hold ---- */

/* The values of an element type, and their kernel: of an integer type the one
   for up to 2^32 values, of a real type the distance to uniform_float's or
   normal_float's. */
typedef struct type_values {
  cgl_fill kernel;
  int bits;  /* of a real value's fraction; 0: an integer type */
  int least; /* power of two of a real type's last place */
  double largest;
  int64_t low; /* of an integer type, both included */
  uint64_t high;
} type_values;

#define REAL(type, ...) \
  [CGL_TYPE_##          \
      type] = {CGL_FILL_uniform_##type - CGL_FILL_uniform_float, __VA_ARGS__}
#define WHOLE(type, bits, low_, high_) \
  [CGL_TYPE_##type] = {                \
      .kernel = CGL_FILL_random_##bits, .low = (low_), .high = (high_)}

static const type_values type_facts[CGL_TYPE_COUNT] = {
    REAL(half, 11, -24, 65504),
    REAL(bfloat16, 8, -133, 0x1.fep127),
    REAL(float, 24, -149, FLT_MAX),
    REAL(double, 53, -1074, DBL_MAX),
    WHOLE(bool, 8, 0, 1),
    WHOLE(int8, 8, INT8_MIN, INT8_MAX),
    WHOLE(uint8, 8, 0, UINT8_MAX),
    WHOLE(int16, 16, INT16_MIN, INT16_MAX),
    WHOLE(uint16, 16, 0, UINT16_MAX),
    WHOLE(int32, 32, INT32_MIN, INT32_MAX),
    WHOLE(uint32, 32, 0, UINT32_MAX),
    WHOLE(int64, 64, INT64_MIN, INT64_MAX),
    WHOLE(uint64, 64, 0, UINT64_MAX),
};


/* Of the numbers that are drawn: of float4, float. */
static cgl_type fill_type(const cgl_buffer *buffer) {
  return cgl_type_number(buffer->type);
}


/* ---- real numbers ---- */

/* The nearest value of the type to x, or the largest that is not above it. */
static double real_round(const type_values *type, double x, bool below) {
  int exponent;
  frexp(x, &exponent);
  int unit = exponent - type->bits;
  if (unit < type->least)
    unit = type->least;
  double places = ldexp(x, -unit);
  return ldexp(below ? floor(places) : nearbyint(places), unit);
}


enum { FIRST_NUMBER = 4 }; /* which of a kernel's values x[0] is */


/* Three numbers as the kernel of the element type takes them, `apart` bytes
   apart, each with room for 8 bytes. */
static void reals_write(cgl_type type, const double x[3], unsigned char *to,
                        size_t apart) {
  for (size_t i = 0; i < 3; i++, to += apart) {
    const float single = (float)x[i];
    memset(to, 0, 8);
    if (type == CGL_TYPE_double)
      memcpy(to, &x[i], sizeof x[i]);
    else
      memcpy(to, &single, sizeof single);
  }
}


static cgl_status fill_real(cgl_buffer *buffer, cgl_generator *generator,
                            cgl_stream *stream, cgl_fill first,
                            const double x[3], const cgl_ruled *ruled,
                            const char *operation) {
  unsigned char written[24];
  void *const values[3] = {written, written + 8, written + 16};
  reals_write(fill_type(buffer), x, written, 8);
  return fill_issue(buffer, generator, stream,
                    first + type_facts[fill_type(buffer)].kernel, values, ruled,
                    operation);
}


static cgl_status buffer_check_real(const cgl_buffer *buffer,
                                    const char *operation) {
  if (type_facts[fill_type(buffer)].bits)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "a buffer of %s cannot hold such numbers",
           cgl_type_name(buffer->type));
  return cgl_fail_hint("use a buffer of float, double, half or bfloat16, or of "
                       "vectors of them, or buffer:random for whole numbers");
}


/* The two numbers of a draw; ruled->rule only where one is a parameter. */
static cgl_status bounds_read(cgl_ruled *ruled, const cgl_buffer *buffer,
                              const cgl_rule *rule, cgl_bound a, cgl_bound b,
                              const char *operation) {
  memset(ruled, 0, sizeof *ruled);
  ruled->numbers.element = (uint8_t)fill_type(buffer);
  cgl_status status =
      cgl_issue_set_number(ruled, 0, rule, a.param, a.number, operation);
  if (!status)
    status = cgl_issue_set_number(ruled, 1, rule, b.param, b.number, operation);
  return status;
}


/* What a rule refuses at a replay is at the script's line of the capture. */
static const char *bounds_site(const cgl_op *op, char text[200]) {
  const bool known = op && op->site.file;
  snprintf(text, 200, "%s%s", known ? ", for the draw captured at " : "",
           known ? cgl_site_text(op->site) : "");
  return text;
}


static cgl_status uniform_check(const cgl_op *op, const cgl_numbers *numbers,
                                const char *operation) {
  const type_values *type = &type_facts[numbers->element];
  const double low = cgl_record_number(numbers, 0);
  const double high = cgl_record_number(numbers, 1);
  const double most = type->largest;
  const double first = real_round(type, low, false);
  const double end = real_round(type, high, false);
  char site[200];
  if ((low <= high) && (first >= -most) && (end <= most) &&
      (end - first <= fmax(most, FLT_MAX)))
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "%.17g to %.17g is no range of %s%s", low, high,
           cgl_type_name((cgl_type)numbers->element), bounds_site(op, site));
  return cgl_fail_hint("give two finite numbers, the lower one first, whose "
                       "difference is finite too");
}


static void uniform_values(const cgl_numbers *numbers, double x[3]) {
  const type_values *type = &type_facts[numbers->element];
  const double first = real_round(type, cgl_record_number(numbers, 0), false);
  const double end = real_round(type, cgl_record_number(numbers, 1), false);
  const double before = real_round(type, nextafter(end, -INFINITY), true);
  x[0] = first;
  x[1] = end - first;
  x[2] = end > first ? before : first;
}


static void uniform_apply(const cgl_numbers *numbers, unsigned char *values,
                          cgl_launch *launch) {
  double x[3];
  (void)launch;
  uniform_values(numbers, x);
  reals_write((cgl_type)numbers->element, x, values + 16 * FIRST_NUMBER, 16);
}


static cgl_status normal_check(const cgl_op *op, const cgl_numbers *numbers,
                               const char *operation) {
  const double most = type_facts[numbers->element].largest;
  const double mean = cgl_record_number(numbers, 0);
  const double deviation = cgl_record_number(numbers, 1);
  char site[200];
  if (fabs(mean) <= most && deviation >= 0 && deviation <= most)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "a mean of %.17g and a standard deviation of %.17g make no "
           "distribution of %s%s",
           mean, deviation, cgl_type_name((cgl_type)numbers->element),
           bounds_site(op, site));
  return cgl_fail_hint("both are finite, and the deviation is not negative");
}


static void normal_apply(const cgl_numbers *numbers, unsigned char *values,
                         cgl_launch *launch) {
  const double x[] = {cgl_record_number(numbers, 0),
                      cgl_record_number(numbers, 1), 0};
  (void)launch;
  reals_write((cgl_type)numbers->element, x, values + 16 * FIRST_NUMBER, 16);
}


const cgl_rule cgl_fill_uniform_rule = {uniform_check, uniform_apply};
const cgl_rule cgl_fill_normal_rule = {normal_check, normal_apply};


cgl_status cgl_buffer_uniform_params(cgl_buffer *buffer,
                                     cgl_generator *generator,
                                     cgl_stream *stream, cgl_bound low,
                                     cgl_bound high) {
  static const char operation[] = "buffer:uniform";
  cgl_ruled ruled;
  double x[3];
  cgl_status status = buffer_check_real(buffer, operation);
  if (!status)
    status = bounds_read(&ruled, buffer, &cgl_fill_uniform_rule, low, high,
                         operation);
  if (!status)
    status = uniform_check(NULL, &ruled.numbers, operation);
  if (status)
    return status;
  uniform_values(&ruled.numbers, x);
  return fill_real(buffer, generator, stream, CGL_FILL_uniform_float, x, &ruled,
                   operation);
}


cgl_status cgl_buffer_uniform(cgl_buffer *buffer, cgl_generator *generator,
                              cgl_stream *stream, double low, double high) {
  return cgl_buffer_uniform_params(buffer, generator, stream,
                                   (cgl_bound){NULL, low},
                                   (cgl_bound){NULL, high});
}


cgl_status cgl_buffer_normal_params(cgl_buffer *buffer,
                                    cgl_generator *generator,
                                    cgl_stream *stream, cgl_bound mean,
                                    cgl_bound deviation) {
  static const char operation[] = "buffer:normal";
  cgl_ruled ruled;
  cgl_status status = buffer_check_real(buffer, operation);
  if (!status)
    status = bounds_read(&ruled, buffer, &cgl_fill_normal_rule, mean, deviation,
                         operation);
  if (!status)
    status = normal_check(NULL, &ruled.numbers, operation);
  if (status)
    return status;
  const double x[] = {cgl_record_number(&ruled.numbers, 0),
                      cgl_record_number(&ruled.numbers, 1), 0};
  return fill_real(buffer, generator, stream, CGL_FILL_normal_float, x, &ruled,
                   operation);
}


cgl_status cgl_buffer_normal(cgl_buffer *buffer, cgl_generator *generator,
                             cgl_stream *stream, double mean,
                             double deviation) {
  return cgl_buffer_normal_params(buffer, generator, stream,
                                  (cgl_bound){NULL, mean},
                                  (cgl_bound){NULL, deviation});
}


/* ---- whole numbers ---- */

static cgl_status buffer_check_whole(const cgl_buffer *buffer,
                                     const char *operation) {
  if (type_facts[fill_type(buffer)].high)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "a buffer of %s does not hold whole numbers",
           cgl_type_name(buffer->type));
  return cgl_fail_hint("use a buffer of an integer type, or buffer:uniform");
}


static cgl_status buffer_check_range(const cgl_buffer *buffer, __int128 low,
                                     __int128 end, const char *operation) {
  const type_values *type = &type_facts[fill_type(buffer)];
  cgl_status status = buffer_check_whole(buffer, operation);
  if (status || (low >= type->low && end - 1 <= type->high))
    return status;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "%.17g to below %.17g does not fit a buffer of %s (%.17g to below "
           "%.17g)",
           (double)low, (double)end, cgl_type_name(fill_type(buffer)),
           (double)type->low, (double)type->high + 1);
  return cgl_fail_hint("the lower bound belongs to the range, the upper one "
                       "does not");
}


cgl_status cgl_buffer_random(cgl_buffer *buffer, cgl_generator *generator,
                             cgl_stream *stream, int64_t low, uint64_t count) {
  static const char operation[] = "buffer:random";
  const __int128 words = (__int128)1 << 64;
  cgl_status status = buffer_check_range(
      buffer, low, low + (count ? (__int128)count : words), operation);
  if (status)
    return status;
  bool wide = !count || count > UINT64_C(1) << 32;
  uint64_t first = (uint64_t)low, rejected = 0;
  /* What is left when 2^32 or 2^64 words are dealt out evenly. */
  if (count)
    rejected = (wide ? -count : UINT64_C(1) << 32) % count;
  void *const values[] = {&first, &count, &rejected};
  return fill_issue(buffer, generator, stream,
                    wide ? CGL_FILL_random_wide
                         : type_facts[fill_type(buffer)].kernel,
                    values, NULL, operation);
}


/* ---- whole numbers between parameters ---- */

/* Ranges up to this have one kernel, whatever the parameters are. */
static const __int128 params_most = (__int128)1 << 32;


/* Number `i`, exactly; false: it is no whole number of 64 bits. */
static bool number_is_whole(const cgl_numbers *numbers, size_t i,
                            __int128 *whole) {
  const double real = cgl_record_number(numbers, i);
  const bool is = fabs(real) <= 0x1p64 && real == floor(real);
  *whole = is ? (__int128)real : 0;
  if (numbers->types[i] == CGL_TYPE_int64)
    *whole = (int64_t)numbers->raw[i];
  if (numbers->types[i] == CGL_TYPE_uint64)
    *whole = numbers->raw[i];
  return is;
}


static cgl_status random_check(const cgl_op *op, const cgl_numbers *numbers,
                               const char *operation) {
  const type_values *type = &type_facts[numbers->element];
  __int128 low, end;
  char site[200];
  if (number_is_whole(numbers, 0, &low) && number_is_whole(numbers, 1, &end) &&
      low >= type->low && end - 1 <= type->high && end > low &&
      end - low <= params_most)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "%.17g to below %.17g is no range of whole numbers of %s%s",
           cgl_record_number(numbers, 0), cgl_record_number(numbers, 1),
           cgl_type_name((cgl_type)numbers->element), bounds_site(op, site));
  return cgl_fail_hint("the upper bound does not belong to the range, which "
                       "has up to 2^32 numbers when a bound is a parameter");
}


/* The first number, how many, and what is left when 2^32 words are dealt out
   evenly; of numbers that were refused, something. */
static void random_values(const cgl_numbers *numbers, uint64_t x[3]) {
  __int128 low, end;
  number_is_whole(numbers, 0, &low);
  number_is_whole(numbers, 1, &end);
  const bool range = end > low && end - low <= params_most;
  x[0] = (uint64_t)low;
  x[1] = range ? (uint64_t)(end - low) : 1;
  x[2] = (UINT64_C(1) << 32) % x[1];
}


static void random_apply(const cgl_numbers *numbers, unsigned char *values,
                         cgl_launch *launch) {
  uint64_t x[3];
  (void)launch;
  random_values(numbers, x);
  for (size_t i = 0; i < 3; i++)
    memcpy(values + 16 * (FIRST_NUMBER + i), &x[i], sizeof x[i]);
}


const cgl_rule cgl_fill_random_rule = {random_check, random_apply};


cgl_status cgl_buffer_random_params(cgl_buffer *buffer,
                                    cgl_generator *generator,
                                    cgl_stream *stream, cgl_bound low,
                                    cgl_bound high) {
  static const char operation[] = "buffer:random";
  cgl_ruled ruled;
  uint64_t x[3];
  cgl_status status = buffer_check_whole(buffer, operation);
  if (!status)
    status = bounds_read(&ruled, buffer, &cgl_fill_random_rule, low, high,
                         operation);
  if (!status)
    status = random_check(NULL, &ruled.numbers, operation);
  if (status)
    return status;
  random_values(&ruled.numbers, x);
  void *const values[] = {&x[0], &x[1], &x[2]};
  return fill_issue(buffer, generator, stream,
                    type_facts[fill_type(buffer)].kernel, values, &ruled,
                    operation);
}


/* ---- files ---- */

bool cgl_fill_takes(const cgl_rule *rule, size_t index, unsigned element) {
  const type_values *type = &type_facts[element < CGL_TYPE_COUNT ? element : 0];
  const size_t first = rule == &cgl_fill_uniform_rule  ? CGL_FILL_uniform_float
                       : rule == &cgl_fill_normal_rule ? CGL_FILL_normal_float
                                                       : 0;
  return element < CGL_TYPE_COUNT &&
         (first ? type->bits != 0 : type->high != 0) &&
         index == first + type->kernel;
}
