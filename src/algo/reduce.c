/* Reductions: what is computed in which type, and how many blocks do it.
   The buffer is [outer][n][inner], reduced along its middle in passes: each
   reduces chunks of the middle to parts, which the next pass reduces, until one
   is left.  Where inner is 1 and n is not short, blocks reduce rows; else
   threads reduce columns. */
#include "algo/algo.h"
#include "core/base/error.h"

#include <stdio.h>
#include <string.h>

enum {
  SHORT = 16,       /* rows up to this are columns */
  TILE = 64,        /* columns that a thread of the host device takes */
  DEFINITIONS = 400 /* bytes of text */
};

static const char operation[] = "algo.reduce";

typedef struct reduce_call {
  cgl_algo_reduction reduction;
  cgl_buffer *x, *y, *out; /* y may be NULL */
  uint64_t outer, n, inner;
  char definitions[DEFINITIONS];
} reduce_call;


/* ---- types ---- */

cgl_type cgl_algo_reduce_type(cgl_algo_reduction reduction, cgl_type type) {
  switch (reduction) {
  case CGL_ALGO_REDUCE_min:
  case CGL_ALGO_REDUCE_max:
    return type;
  case CGL_ALGO_REDUCE_argmin:
  case CGL_ALGO_REDUCE_argmax:
    return CGL_TYPE_int64;
  case CGL_ALGO_REDUCE_any:
  case CGL_ALGO_REDUCE_all:
    return CGL_TYPE_bool;
  case CGL_ALGO_REDUCE_norm:
    return cgl_algo_is_whole(type) ? CGL_TYPE_double : type;
  default:
    return cgl_algo_wide_type(type);
  }
}


static bool reduce_is_indexed(cgl_algo_reduction reduction) {
  return reduction == CGL_ALGO_REDUCE_argmin ||
         reduction == CGL_ALGO_REDUCE_argmax;
}


/* What elements are computed as: at least 32 bits, which warps exchange. */
static cgl_type reduce_number(cgl_algo_reduction reduction, cgl_type type) {
  const cgl_type result = cgl_algo_reduce_type(reduction, type);
  if (reduction == CGL_ALGO_REDUCE_any || reduction == CGL_ALGO_REDUCE_all)
    return CGL_TYPE_int32;
  if (!reduce_is_indexed(reduction) && result != type)
    return result;
  if (!cgl_algo_is_whole(type))
    return type == CGL_TYPE_double ? type : CGL_TYPE_float;
  if (cgl_type_bytes(type) == 8)
    return type;
  return cgl_algo_wide_type(type) == CGL_TYPE_uint64 ? CGL_TYPE_uint32
                                                     : CGL_TYPE_int32;
}


static size_t part_bytes(const reduce_call *call) {
  return reduce_is_indexed(call->reduction)
             ? 16
             : cgl_type_bytes(
                   reduce_number(call->reduction, cgl_buffer_type(call->x)));
}


/* ---- passes ---- */

/* What a pass reduces, and how. */
typedef struct reduce_pass {
  uint64_t n, chunk, chunks;
  bool rows;
  cgl_launch launch;
} reduce_pass;


static uint64_t at_least(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}


/* On a GPU: rows in chunks for some 4096 blocks, of at least 4 loads a thread;
   columns in chunks for some 2^18 threads. */
static void pass_plan_threads(const reduce_call *call, size_t bytes,
                              reduce_pass *pass) {
  const uint64_t columns = call->outer * call->inner, each = 16 / bytes;
  if (!pass->rows) {
    const uint64_t wanted = cgl_algo_divide_up(1 << 18, columns);
    pass->chunk = at_least(cgl_algo_divide_up(pass->n, wanted), 32);
    pass->chunks = at_least(cgl_algo_divide_up(pass->n, pass->chunk), 1);
    pass->launch = cgl_algo_blocks(
        cgl_algo_divide_up(columns * pass->chunks, CGL_ALGO_BLOCK),
        CGL_ALGO_BLOCK);
    return;
  }
  const uint64_t unit = 4 * CGL_ALGO_BLOCK * each;
  pass->chunk = at_least(pass->n, 1);
  if (pass->n > 4 * unit && call->outer < 4096)
    pass->chunk =
        unit *
        cgl_algo_divide_up(
            cgl_algo_divide_up(pass->n, cgl_algo_divide_up(4096, call->outer)),
            unit);
  pass->chunks = at_least(cgl_algo_divide_up(pass->n, pass->chunk), 1);
  const uint64_t blocks = call->outer * pass->chunks;
  const uint32_t most = blocks < 128 ? 1024 : 256;
  uint32_t threads = 32;
  while (threads < most && threads * 2 * each < pass->chunk)
    threads *= 2;
  const uint32_t warps = threads == 32 && blocks >= 1024 ? 8 : 1;
  pass->launch = cgl_algo_blocks(cgl_algo_divide_up(blocks, warps), threads);
  pass->launch.block[1] = warps;
}


/* On the host device: a thread for each chunk of a row, or of 64 columns. */
static void pass_plan_loops(const reduce_call *call, reduce_pass *pass) {
  pass->chunk = CGL_ALGO_HOST_CHUNK;
  if (!pass->rows)
    pass->chunk = at_least(CGL_ALGO_HOST_CHUNK / call->inner, 64);
  pass->chunks = at_least(cgl_algo_divide_up(pass->n, pass->chunk), 1);
  uint64_t blocks = call->outer * pass->chunks;
  if (!pass->rows && pass->chunks == 1 && call->inner < TILE / 2)
    blocks = cgl_algo_divide_up(call->outer * call->inner, TILE);
  else if (!pass->rows)
    blocks *= cgl_algo_divide_up(call->inner, TILE);
  pass->launch = cgl_algo_blocks(blocks, 1);
}


/* Launches a pass from `from`, or from the elements when it is NULL, to `to`.
 */
static cgl_status pass_launch(const reduce_call *call, const reduce_pass *pass,
                              cgl_kernel *kernel, cgl_stream *stream,
                              cgl_buffer *from, cgl_buffer *to) {
  cgl_arg args[8];
  size_t n = 0;
  args[n++] = cgl_algo_memory(from ? from : call->x);
  if (!from && call->y)
    args[n++] = cgl_algo_memory(call->y);
  args[n++] = cgl_algo_memory(to);
  const uint64_t sizes[] = {call->outer, pass->n, call->inner, pass->chunk,
                            pass->chunks};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    args[n++] = cgl_algo_whole(sizes[i]);
  return cgl_kernel_launch(kernel, stream, &pass->launch, args, n);
}


/* The kernel of a pass, which says where it runs, and the pass's plan. */
static cgl_status pass_begin(cgl_algo *algo, const reduce_call *call,
                             bool first, reduce_pass *pass,
                             cgl_kernel **kernel) {
  static const char *const names[2][2] = {{"middle", "last"},
                                          {"first", "both"}};
  for (int last = 1; last >= 0; last--) {
    cgl_status status =
        cgl_algo_kernel(algo, CGL_ALGO_reduce, names[first][last],
                        call->definitions, operation, kernel);
    if (status)
      return status;
    if (cgl_algo_has_threads(*kernel))
      pass_plan_threads(
          call, first ? cgl_type_bytes(cgl_buffer_type(call->x)) : 16, pass);
    else
      pass_plan_loops(call, pass);
    if (pass->chunks == 1)
      break;
  }
  return CGL_OK;
}


static cgl_status reduce_run(cgl_algo *algo, const reduce_call *call, bool rows,
                             cgl_stream *stream) {
  reduce_pass pass = {.n = call->n, .rows = rows, .chunks = 2};
  cgl_status status = CGL_OK;
  cgl_buffer *from = NULL;
  for (bool first = true; !status && pass.chunks > 1; first = false) {
    cgl_kernel *kernel;
    cgl_buffer *to = NULL;
    status = pass_begin(algo, call, first, &pass, &kernel);
    if (!status && pass.chunks > 1)
      status = cgl_buffer_create(
          stream, NULL, CGL_TYPE_uint8,
          call->outer * pass.chunks * call->inner * part_bytes(call), &to);
    if (!status)
      status =
          pass_launch(call, &pass, kernel, stream, from, to ? to : call->out);
    cgl_buffer_release(from);
    from = to;
    pass.n = pass.chunks;
  }
  cgl_buffer_release(from);
  return status;
}


/* ---- the call ---- */

static cgl_status result_check(const reduce_call *call) {
  char shape[CGL_ALGO_SHAPE_ROOM], wanted[CGL_ALGO_SHAPE_ROOM];
  const cgl_type type =
      cgl_algo_reduce_type(call->reduction, cgl_buffer_type(call->x));
  if (cgl_buffer_type(call->out) != type ||
      cgl_buffer_count(call->out) != call->outer * call->inner) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "%s gives %llu %s, and the result is %s",
             cgl_algo_shape_text(call->x, shape),
             (unsigned long long)(call->outer * call->inner),
             cgl_type_name(type), cgl_algo_shape_text(call->out, wanted));
    return cgl_fail_hint("leave the result out, or make it of this type and "
                         "size");
  }
  if (cgl_buffer_overlap(call->x, call->out, NULL) ||
      (call->y && cgl_buffer_overlap(call->y, call->out, NULL))) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the result shares memory with what is reduced");
    return cgl_fail_hint("give another buffer for the result");
  }
  return CGL_OK;
}


static cgl_status elements_check(const reduce_call *call) {
  char shape[CGL_ALGO_SHAPE_ROOM], other[CGL_ALGO_SHAPE_ROOM];
  if ((call->reduction == CGL_ALGO_REDUCE_dot) != (call->y != NULL)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             call->y ? "a second buffer was given, which only the dot product "
                       "takes"
                     : "the dot product takes two buffers");
    return cgl_fail_hint(call->y ? "leave it out" : "give the other one");
  }
  if (call->y && strcmp(cgl_algo_shape_text(call->x, shape),
                        cgl_algo_shape_text(call->y, other)) != 0) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the dot product of %s and %s", shape, other);
    return cgl_fail_hint("both need the same shape and type");
  }
  const cgl_algo_reduction r = call->reduction;
  if (!call->n && cgl_buffer_count(call->out) &&
      (reduce_is_indexed(r) || r == CGL_ALGO_REDUCE_min ||
       r == CGL_ALGO_REDUCE_max)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "no element of %s is the smallest or largest",
             cgl_algo_shape_text(call->x, shape));
    return cgl_fail_hint("give at least one element");
  }
  return CGL_OK;
}


/* Sets the sizes of [outer][n][inner]. */
static cgl_status reduce_shape(reduce_call *call, int axis) {
  size_t extents[CGL_MAX_DIMS];
  const int ndims = cgl_buffer_shape(call->x, extents);
  call->outer = call->inner = 1;
  if (axis == -1) {
    call->n = cgl_buffer_count(call->x);
    return CGL_OK;
  }
  if (axis < 0 || axis >= ndims) {
    char shape[CGL_ALGO_SHAPE_ROOM];
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation, "%s has no such axis",
             cgl_algo_shape_text(call->x, shape));
    return cgl_fail_hint("it has %d", ndims);
  }
  for (int d = 0; d < ndims; d++)
    *(d < axis   ? &call->outer
      : d > axis ? &call->inner
                 : &call->n) *= extents[d];
  return CGL_OK;
}


static void definitions_write(reduce_call *call, bool rows) {
  static const char *const words[] = {
      [CGL_ALGO_REDUCE_sum] = "SUM",
      [CGL_ALGO_REDUCE_product] = "PRODUCT",
      [CGL_ALGO_REDUCE_min] = "MIN",
      [CGL_ALGO_REDUCE_max] = "MAX",
      [CGL_ALGO_REDUCE_argmin] = "ARGMIN",
      [CGL_ALGO_REDUCE_argmax] = "ARGMAX",
      [CGL_ALGO_REDUCE_any] = "ANY",
      [CGL_ALGO_REDUCE_all] = "ALL",
      [CGL_ALGO_REDUCE_dot] = "DOT",
      [CGL_ALGO_REDUCE_norm] = "NORM",
  };
  const cgl_type type = cgl_buffer_type(call->x);
  const cgl_type number = reduce_number(call->reduction, type);
  const bool small = call->reduction == CGL_ALGO_REDUCE_min ||
                     call->reduction == CGL_ALGO_REDUCE_argmin;
  snprintf(call->definitions, sizeof call->definitions,
           "\n#define X %s\n#define NUMBER %s\n#define R %s\n#define %s\n"
           "#define WORST %s\n#define %s\n%s",
           cgl_algo_type_text(type), cgl_algo_type_text(number),
           cgl_algo_type_text(cgl_algo_reduce_type(call->reduction, type)),
           words[call->reduction], cgl_algo_worst_text(number, small),
           rows ? "ROWS" : "COLUMNS",
           cgl_algo_is_whole(type) && cgl_type_bytes(type) < 4
               ? "#define NARROW\n"
               : "");
}


cgl_status cgl_algo_reduce(cgl_algo *algo, cgl_stream *stream,
                           cgl_algo_reduction reduction, cgl_buffer *x,
                           cgl_buffer *y, int axis, cgl_buffer *out) {
  reduce_call call = {
      .reduction = reduction, .x = x, .y = y, .out = out, .n = 1};
  cgl_status status = cgl_algo_check_number(x, operation);
  if (!status)
    status = reduce_shape(&call, axis);
  if (!status)
    status = elements_check(&call);
  if (!status)
    status = result_check(&call);
  if (status || !cgl_buffer_count(out))
    return status;
  const bool rows = call.inner == 1 && (call.n > SHORT || call.outer == 1);
  definitions_write(&call, rows);
  return reduce_run(algo, &call, rows, stream);
}
