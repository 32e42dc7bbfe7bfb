/* Running sums, minima and maxima of all elements of a buffer.
   On a GPU one kernel goes over the elements once; what its blocks tell each
   other lies in scratch, whose flags are cleared first.  On the host device
   threads sum chunks, one thread sums those, and threads go over the elements
   again. */
#include "algo/algo.h"
#include "core/base/error.h"

#include <stdio.h>
#include <string.h>

enum {
  DEFINITIONS = 400,
  THREADS = 256,     /* of a block on a GPU */
  FEW = 8 * THREADS, /* elements, which a tile of their own holds */
  GROUP = 256        /* tiles */
};

static const char operation[] = "algo.scan";

typedef struct scan_call {
  cgl_buffer *x, *out;
  cgl_type number;
  uint64_t n, tile;
  bool exclusive;
  char definitions[DEFINITIONS];
} scan_call;


static cgl_status scan_check(const scan_call *call, cgl_algo_scan_kind kind) {
  char shape[CGL_ALGO_SHAPE_ROOM], wanted[CGL_ALGO_SHAPE_ROOM];
  cgl_status status = cgl_algo_check_number(call->x, operation);
  if (!status)
    status = cgl_algo_check_number(call->out, operation);
  if (status)
    return status;
  const cgl_type type = cgl_buffer_type(call->x);
  const cgl_type result = cgl_buffer_type(call->out);
  const bool integers = kind == CGL_ALGO_SCAN_sum && cgl_algo_is_whole(type);
  const bool fits = integers
                        ? cgl_algo_is_whole(result) && result != CGL_TYPE_bool
                        : result == type;
  if (!fits || cgl_buffer_count(call->out) != call->n) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "%s cannot be scanned into %s",
             cgl_algo_shape_text(call->x, shape),
             cgl_algo_shape_text(call->out, wanted));
    return cgl_fail_hint("the result has as many elements, of %s",
                         integers ? "an integer type" : cgl_type_name(type));
  }
  bool same;
  if (cgl_buffer_overlap(call->x, call->out, &same) &&
      (!same || type != result)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the result overlaps what is scanned");
    return cgl_fail_hint("give another buffer for the result, or the very "
                         "same");
  }
  return CGL_OK;
}


/* Sums that wrap around in 32 bits are computed in 32 bits. */
static cgl_type scan_number(cgl_type type, cgl_type result) {
  if (!cgl_algo_is_whole(type))
    return type == CGL_TYPE_double ? type : CGL_TYPE_float;
  const bool is_signed = cgl_algo_wide_type(type) == CGL_TYPE_int64;
  if (cgl_type_bytes(result) == 8)
    return is_signed ? CGL_TYPE_int64 : CGL_TYPE_uint64;
  return is_signed ? CGL_TYPE_int32 : CGL_TYPE_uint32;
}


static void scan_define(scan_call *call, cgl_algo_scan_kind kind) {
  static const char *const words[] = {[CGL_ALGO_SCAN_sum] = "SUM",
                                      [CGL_ALGO_SCAN_min] = "MIN",
                                      [CGL_ALGO_SCAN_max] = "MAX"};
  const cgl_type type = cgl_buffer_type(call->x);
  const cgl_type result = cgl_buffer_type(call->out);
  call->number = scan_number(type, result);
  call->tile = THREADS * (cgl_type_bytes(call->number) == 8 ? 24 : 32);
  /* The host device has no tiles, and would compile the same twice. */
  if (call->n <= FEW &&
      strcmp(cgl_context_device(cgl_buffer_context(call->x))->device, "host"))
    call->tile = FEW;
  snprintf(call->definitions, sizeof call->definitions,
           "\n#define X %s\n#define NUMBER %s\n#define R %s\n#define %s\n"
           "#define WORST %s\n#define TILE %llu\n#define THREADS %d\n"
           "#define GROUP %d\n",
           cgl_algo_type_text(type), cgl_algo_type_text(call->number),
           cgl_algo_type_text(result), words[kind],
           cgl_algo_worst_text(cgl_algo_is_whole(type) ? type : call->number,
                               kind == CGL_ALGO_SCAN_min),
           (unsigned long long)call->tile, THREADS, GROUP);
}


/* ---- a GPU ---- */

static cgl_status scan_tiles(const scan_call *call, cgl_kernel *kernel,
                             cgl_stream *stream) {
  const uint64_t tiles = cgl_algo_divide_up(call->n, call->tile);
  const uint64_t places = tiles + cgl_algo_divide_up(tiles, GROUP), zero = 0;
  cgl_buffer *state = NULL;
  cgl_status status = CGL_OK;
  cgl_arg args[] = {cgl_algo_memory(call->x), cgl_algo_memory(call->out),
                    {.kind = CGL_ARG_NULL},   cgl_algo_whole(call->n),
                    cgl_algo_whole(tiles),    cgl_algo_whole(call->exclusive)};
  if (tiles > 1) {
    status =
        cgl_buffer_create(stream, NULL, CGL_TYPE_uint64,
                          places * cgl_type_bytes(call->number) / 4, &state);
    if (!status)
      status = cgl_buffer_fill(state, stream, &zero);
    args[2] = cgl_algo_memory(state);
  }
  const cgl_launch launch = cgl_algo_blocks(tiles, THREADS);
  if (!status)
    status = cgl_kernel_launch(kernel, stream, &launch, args,
                               sizeof args / sizeof *args);
  cgl_buffer_release(state);
  return status;
}


/* ---- the host device ---- */

/* Leaves in `parts` what stands before each chunk. */
static cgl_status chunks_sum(cgl_algo *algo, const scan_call *call,
                             cgl_stream *stream, uint64_t chunks,
                             cgl_buffer *parts) {
  cgl_kernel *sums, *offsets;
  cgl_status status = cgl_algo_kernel(algo, CGL_ALGO_scan, "sums",
                                      call->definitions, operation, &sums);
  if (!status)
    status = cgl_algo_kernel(algo, CGL_ALGO_scan, "offsets", call->definitions,
                             operation, &offsets);
  if (status)
    return status;
  const cgl_launch all = cgl_algo_blocks(chunks, 1), one = {.grid = {1}};
  const cgl_arg of_chunks[] = {cgl_algo_memory(call->x), cgl_algo_memory(parts),
                               cgl_algo_whole(call->n),
                               cgl_algo_whole(CGL_ALGO_HOST_CHUNK)};
  const cgl_arg of_parts[] = {cgl_algo_memory(parts), cgl_algo_whole(chunks)};
  status = cgl_kernel_launch(sums, stream, &all, of_chunks, 4);
  return status ? status
                : cgl_kernel_launch(offsets, stream, &one, of_parts, 2);
}


static cgl_status scan_chunks(cgl_algo *algo, const scan_call *call,
                              cgl_kernel *kernel, cgl_stream *stream) {
  const uint64_t chunks = cgl_algo_divide_up(call->n, CGL_ALGO_HOST_CHUNK);
  cgl_buffer *parts = NULL;
  cgl_status status = CGL_OK;
  cgl_arg args[] = {cgl_algo_memory(call->x),
                    cgl_algo_memory(call->out),
                    {.kind = CGL_ARG_NULL},
                    cgl_algo_whole(call->n),
                    cgl_algo_whole(CGL_ALGO_HOST_CHUNK),
                    cgl_algo_whole(call->exclusive)};
  if (chunks > 1) {
    status = cgl_buffer_create(stream, NULL, call->number, chunks, &parts);
    if (!status)
      status = chunks_sum(algo, call, stream, chunks, parts);
    args[2] = cgl_algo_memory(parts);
  }
  const cgl_launch launch = cgl_algo_blocks(chunks, 1);
  if (!status)
    status = cgl_kernel_launch(kernel, stream, &launch, args,
                               sizeof args / sizeof *args);
  cgl_buffer_release(parts);
  return status;
}


cgl_status cgl_algo_scan(cgl_algo *algo, cgl_stream *stream,
                         cgl_algo_scan_kind kind, bool exclusive, cgl_buffer *x,
                         cgl_buffer *out) {
  scan_call call = {
      .x = x, .out = out, .n = cgl_buffer_count(x), .exclusive = exclusive};
  cgl_kernel *kernel;
  cgl_status status = scan_check(&call, kind);
  if (status || !call.n)
    return status;
  scan_define(&call, kind);
  status = cgl_algo_kernel(algo, CGL_ALGO_scan, "scan", call.definitions,
                           operation, &kernel);
  if (status)
    return status;
  return cgl_algo_has_threads(kernel)
             ? scan_tiles(&call, kernel, stream)
             : scan_chunks(algo, &call, kernel, stream);
}
