/* Counts of numbers by bins.  Integers are added, so the order of threads does
   not matter. */
#include "algo/algo.h"
#include "core/base/context.h"
#include "core/base/error.h"

#include <math.h>
#include <stdio.h>

static const char operation[] = "algo.histogram";

enum {
  DEFINITIONS = 80,
  EACH = 16,
  FEW = 4096, /* elements for one large block */
  LARGE = 1024,
  BLOCKS_OF_PROCESSOR = 8,
  PARTS = 64,
  SHARED = 8192 /* bins whose counts a block keeps by itself */
};


static cgl_status histogram_check(const cgl_buffer *x, double low, double high,
                                  const cgl_buffer *out) {
  char shape[CGL_ALGO_SHAPE_ROOM], wanted[CGL_ALGO_SHAPE_ROOM];
  const size_t bins = cgl_buffer_count(out);
  cgl_status status = cgl_algo_check_number(x, operation);
  if (status)
    return status;
  if (cgl_buffer_type(out) != CGL_TYPE_int64 || !bins || bins > INT32_MAX) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation, "%s counted into %s",
             cgl_algo_shape_text(x, shape), cgl_algo_shape_text(out, wanted));
    return cgl_fail_hint("counts are int64, one for each bin, 1 to 2^31 - 1");
  }
  if (!(low < high) || !isfinite(high - low)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "%.17g to %.17g is no range of bins", low, high);
    return cgl_fail_hint("give two finite numbers, the lower one first");
  }
  if (cgl_buffer_overlap(x, out, NULL)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the counts share memory with what is counted");
    return cgl_fail_hint("give another buffer for the counts");
  }
  return CGL_OK;
}


/* Blocks of a GPU share bins; a thread of the host device has its own part. */
static cgl_launch histogram_launch(const cgl_context *context,
                                   const cgl_kernel *kernel, uint64_t n) {
  const bool threads = cgl_algo_has_threads(kernel);
  const uint64_t most =
      threads ? BLOCKS_OF_PROCESSOR *
                    (uint64_t)cgl_context_device(context)->multiprocessors
              : PARTS;
  const uint32_t block = !threads ? 1 : n <= FEW ? LARGE : CGL_ALGO_BLOCK;
  const uint64_t blocks =
      cgl_algo_divide_up(n, threads ? block * EACH : CGL_ALGO_HOST_CHUNK);
  return (cgl_launch){.grid = {(uint32_t)(blocks < most ? blocks : most)},
                      .block = {block}};
}


cgl_status cgl_algo_histogram(cgl_algo *algo, cgl_stream *stream, cgl_buffer *x,
                              double low, double high, cgl_buffer *out) {
  static const char zero[CGL_MAX_ELEMENT_BYTES];
  char definitions[DEFINITIONS];
  cgl_kernel *kernel;
  cgl_status status = histogram_check(x, low, high, out);
  if (status)
    return status;
  snprintf(definitions, sizeof definitions,
           "\n#define X %s\n#define SHARED %d\n",
           cgl_algo_type_text(cgl_buffer_type(x)), SHARED);
  status = cgl_algo_kernel(algo, CGL_ALGO_histogram, "histogram", definitions,
                           operation, &kernel);
  if (status)
    return status;
  const uint64_t n = cgl_buffer_count(x), bins = cgl_buffer_count(out);
  const cgl_launch launch = histogram_launch(cgl_buffer_context(x), kernel, n);
  const bool alone = launch.grid[0] == 1 && bins <= SHARED;
  if (!alone)
    status = cgl_buffer_fill(out, stream, zero);
  if (status || !n)
    return status;
  const cgl_arg args[] = {
      cgl_algo_memory(x),
      cgl_algo_memory(out),
      cgl_algo_whole(n),
      cgl_algo_whole(bins),
      {.kind = CGL_ARG_NUMBER, .number = low},
      {.kind = CGL_ARG_NUMBER, .number = high},
      {.kind = CGL_ARG_NUMBER, .number = (high - low) / (double)bins},
      {.kind = CGL_ARG_NUMBER, .number = (double)bins / (high - low)},
  };
  return cgl_kernel_launch(kernel, stream, &launch, args,
                           sizeof args / sizeof *args);
}
