/* Stable sorts by digits of eight bits.  Each pass moves all keys from one
   buffer to another, so that the last one writes the result.  On a GPU the
   counts of all digits are taken first, and a pass is one kernel; keys that fit
   into a block are sorted by one kernel, and few of them by comparing.  On the
   host device a pass counts, sums and moves chunks. */
#include "algo/algo.h"
#include "core/base/error.h"

#include <stdio.h>

enum {
  DEFINITIONS = 400,
  DIGITS = 256,
  THREADS = 256, /* of a block on a GPU */
  FEW = 1024,    /* keys that are compared by a thread each */
  MOST_CHUNKS = 256
};

static const char operation[] = "algo.sort";

typedef struct sort_call {
  cgl_buffer *keys, *values, *out, *out_values; /* values may be NULL */
  cgl_buffer *spare, *spare_values;             /* owned; NULL: one pass */
  cgl_buffer *counts;                           /* owned: scratch */
  uint64_t n, tile, blocks; /* tiles, or chunks of the host device */
  int passes;
  cgl_type size; /* of counts */
  char definitions[DEFINITIONS];
} sort_call;


/* ---- what is compiled ---- */

/* NULL, when no such word has the elements' size. */
static const char *word_text(const cgl_buffer *buffer) {
  static const char *const words[CGL_MAX_ELEMENT_BYTES + 1] = {
      [1] = "unsigned char",
      [2] = "unsigned short",
      [4] = "unsigned",
      [8] = "u64"};
  return words[cgl_type_bytes(cgl_buffer_type(buffer))];
}


/* How the keys' bits compare. */
static const char *order_text(cgl_type type) {
  switch (type) {
  case CGL_TYPE_float:
    return "#define REAL\n#define INFINITE 0x7f800000\n";
  case CGL_TYPE_double:
    return "#define REAL\n#define INFINITE 0x7ff0000000000000ull\n";
  case CGL_TYPE_half:
    return "#define REAL\n#define INFINITE 0x7c00\n";
  case CGL_TYPE_bfloat16:
    return "#define REAL\n#define INFINITE 0x7f80\n";
  default:
    return cgl_algo_wide_type(type) == CGL_TYPE_int64 && type != CGL_TYPE_bool
               ? "#define SIGNED\n"
               : "";
  }
}


static void sort_define(sort_call *call, bool descending) {
  const cgl_type type = cgl_buffer_type(call->keys);
  size_t widest = cgl_type_bytes(type);
  call->passes = (int)widest;
  call->size = call->n >> 30 ? CGL_TYPE_uint64 : CGL_TYPE_uint32;
  char value[40] = "";
  if (call->values) {
    const size_t bytes = cgl_type_bytes(cgl_buffer_type(call->values));
    widest = bytes > widest ? bytes : widest;
    snprintf(value, sizeof value, "#define VALUE %s\n",
             word_text(call->values));
  }
  call->tile = THREADS * (call->values ? 28 : 32) / (widest == 8 ? 2 : 1);
  snprintf(call->definitions, sizeof call->definitions,
           "\n#define WORD %s\n#define BITS %d\n%s#define SIZE %s\n"
           "#define TILE %llu\n#define THREADS %d\n#define BLOCKS %d\n"
           "#define FEW %d\n%s%s",
           word_text(call->keys), 8 * call->passes, order_text(type),
           cgl_algo_type_text(call->size), (unsigned long long)call->tile,
           THREADS, call->values && widest < 8 ? 2 : 3, FEW,
           descending ? "#define DESCENDING\n" : "", value);
}


static cgl_status sort_kernel(cgl_algo *algo, const sort_call *call,
                              const char *name, cgl_kernel **kernel) {
  return cgl_algo_kernel(algo, CGL_ALGO_sort, name, call->definitions,
                         operation, kernel);
}


/* ---- passes ---- */

/* Adds where a pass reads and writes keys and values; returns their number. */
static size_t pass_memory(const sort_call *call, int pass, cgl_arg *args) {
  const bool to_out = (call->passes - 1 - pass) % 2 == 0;
  cgl_buffer *from = pass ? (to_out ? call->spare : call->out) : call->keys;
  cgl_buffer *values =
      pass ? (to_out ? call->spare_values : call->out_values) : call->values;
  size_t n = 0;
  args[n++] = cgl_algo_memory(from);
  args[n++] = cgl_algo_memory(to_out ? call->out : call->spare);
  if (call->values) {
    args[n++] = cgl_algo_memory(values);
    args[n++] = cgl_algo_memory(to_out ? call->out_values : call->spare_values);
  }
  return n;
}


/* On a GPU, of keys that fit into a block. */
static cgl_status sort_alone(cgl_algo *algo, const sort_call *call,
                             cgl_stream *stream) {
  cgl_kernel *alone;
  uint64_t threads = call->n <= FEW ? 32 : THREADS;
  while (threads < call->n && call->n <= FEW)
    threads *= 2;
  cgl_status status =
      sort_kernel(algo, call, call->n <= FEW ? "few" : "alone", &alone);
  if (status)
    return status;
  cgl_arg args[5];
  size_t n = 0;
  args[n++] = cgl_algo_memory(call->keys);
  args[n++] = cgl_algo_memory(call->out);
  if (call->values) {
    args[n++] = cgl_algo_memory(call->values);
    args[n++] = cgl_algo_memory(call->out_values);
  }
  args[n++] = cgl_algo_whole(call->n);
  const cgl_launch launch = cgl_algo_blocks(1, threads);
  return cgl_kernel_launch(alone, stream, &launch, args, n);
}


/* On a GPU.  The scratch: the starts of every pass, and what the tiles of every
   pass publish. */
static cgl_status sort_tiles(cgl_algo *algo, const sort_call *call,
                             cgl_stream *stream) {
  const uint64_t zero = 0, passes = (uint64_t)call->passes;
  cgl_kernel *counts, *starts, *sweep;
  cgl_status status = sort_kernel(algo, call, "counts", &counts);
  if (!status)
    status = sort_kernel(algo, call, "starts", &starts);
  if (!status)
    status = sort_kernel(algo, call, "sweep", &sweep);
  if (!status)
    status = cgl_buffer_fill(call->counts, stream, &zero);
  if (!status) {
    const uint64_t most = 1024;
    const cgl_launch launch =
        cgl_algo_blocks(call->blocks < most ? call->blocks : most, THREADS);
    const cgl_arg args[] = {cgl_algo_memory(call->keys),
                            cgl_algo_memory(call->counts),
                            cgl_algo_whole(call->n)};
    status = cgl_kernel_launch(counts, stream, &launch, args, 3);
  }
  if (!status) {
    const cgl_launch launch = cgl_algo_blocks(passes, DIGITS);
    const cgl_arg args[] = {cgl_algo_memory(call->counts)};
    status = cgl_kernel_launch(starts, stream, &launch, args, 1);
  }
  for (int pass = 0; pass < call->passes && !status; pass++) {
    const uint64_t p = (uint64_t)pass, states_of_pass = call->blocks * DIGITS;
    cgl_buffer *views[2] = {NULL};
    cgl_arg args[9];
    size_t n = pass_memory(call, pass, args);
    status = cgl_buffer_view(call->counts, p * DIGITS, DIGITS, &views[0]);
    if (!status)
      status =
          cgl_buffer_view(call->counts, passes * DIGITS + p * states_of_pass,
                          states_of_pass, &views[1]);
    for (int v = 0; v < 2; v++)
      args[n++] = cgl_algo_memory(views[v]);
    args[n++] = cgl_algo_whole(call->n);
    args[n++] = cgl_algo_whole(p);
    const cgl_launch launch = cgl_algo_blocks(call->blocks, THREADS);
    if (!status)
      status = cgl_kernel_launch(sweep, stream, &launch, args, n);
    for (int v = 0; v < 2; v++)
      cgl_buffer_release(views[v]);
  }
  return status;
}


static cgl_status sort_chunks(cgl_algo *algo, const sort_call *call,
                              cgl_stream *stream, uint64_t chunk) {
  cgl_kernel *counts, *starts, *sweep;
  cgl_status status = sort_kernel(algo, call, "counts", &counts);
  if (!status)
    status = sort_kernel(algo, call, "starts", &starts);
  if (!status)
    status = sort_kernel(algo, call, "sweep", &sweep);
  const cgl_launch all = cgl_algo_blocks(call->blocks, 1), one = {.grid = {1}};
  for (int pass = 0; pass < call->passes && !status; pass++) {
    cgl_arg args[9];
    size_t n = pass_memory(call, pass, args);
    const cgl_arg of_chunks[] = {args[0], cgl_algo_memory(call->counts),
                                 cgl_algo_whole(call->n), cgl_algo_whole(chunk),
                                 cgl_algo_whole((uint64_t)pass)};
    const cgl_arg of_counts[] = {cgl_algo_memory(call->counts),
                                 cgl_algo_whole(call->blocks)};
    for (int i = 1; i < 5; i++)
      args[n++] = of_chunks[i];
    status = cgl_kernel_launch(counts, stream, &all, of_chunks, 5);
    if (!status)
      status = cgl_kernel_launch(starts, stream, &one, of_counts, 2);
    if (!status)
      status = cgl_kernel_launch(sweep, stream, &all, args, n);
  }
  return status;
}


/* ---- the call ---- */

static cgl_status pair_check(const cgl_buffer *x, const cgl_buffer *out,
                             const char *what) {
  char shape[CGL_ALGO_SHAPE_ROOM], wanted[CGL_ALGO_SHAPE_ROOM];
  if (cgl_buffer_type(x) != cgl_buffer_type(out) ||
      cgl_buffer_count(x) != cgl_buffer_count(out)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation, "%s %s, sorted into %s",
             what, cgl_algo_shape_text(x, shape),
             cgl_algo_shape_text(out, wanted));
    return cgl_fail_hint("the result has the same type and size");
  }
  return CGL_OK;
}


static cgl_status sort_check(const sort_call *call) {
  char shape[CGL_ALGO_SHAPE_ROOM], wanted[CGL_ALGO_SHAPE_ROOM];
  cgl_status status = cgl_algo_check_number(call->keys, operation);
  if (!status)
    status = pair_check(call->keys, call->out, "keys");
  if (status)
    return status;
  bool shared = cgl_buffer_overlap(call->keys, call->out, NULL);
  if (call->values) {
    status = pair_check(call->values, call->out_values, "values");
    if (status)
      return status;
    if (!word_text(call->values)) {
      cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
               "values of %s, of %zu bytes each",
               cgl_type_name(cgl_buffer_type(call->values)),
               cgl_type_bytes(cgl_buffer_type(call->values)));
      return cgl_fail_hint("give values of 1, 2, 4 or 8 bytes: positions "
                           "perhaps, with which algo.gather moves any");
    }
    if (cgl_buffer_count(call->values) != call->n) {
      cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation, "%s for keys %s",
               cgl_algo_shape_text(call->values, shape),
               cgl_algo_shape_text(call->keys, wanted));
      return cgl_fail_hint("give a value for each key");
    }
    shared = shared ||
             cgl_buffer_overlap(call->values, call->out_values, NULL) ||
             cgl_buffer_overlap(call->keys, call->out_values, NULL) ||
             cgl_buffer_overlap(call->values, call->out, NULL) ||
             cgl_buffer_overlap(call->out, call->out_values, NULL);
  }
  if (!shared)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "the result shares memory with what is sorted");
  return cgl_fail_hint("give other buffers for the result");
}


static cgl_status sort_make_scratch(sort_call *call, cgl_stream *stream,
                                    uint64_t counts) {
  cgl_status status =
      cgl_buffer_create(stream, NULL, call->size, counts, &call->counts);
  if (!status && call->passes > 1)
    status = cgl_buffer_create(stream, NULL, cgl_buffer_type(call->keys),
                               call->n, &call->spare);
  if (!status && call->passes > 1 && call->values)
    status = cgl_buffer_create(stream, NULL, cgl_buffer_type(call->values),
                               call->n, &call->spare_values);
  return status;
}


cgl_status cgl_algo_sort(cgl_algo *algo, cgl_stream *stream, bool descending,
                         cgl_buffer *keys, cgl_buffer *values, cgl_buffer *out,
                         cgl_buffer *out_values) {
  sort_call call = {.keys = keys,
                    .values = values,
                    .out = out,
                    .out_values = out_values,
                    .n = cgl_buffer_count(keys)};
  cgl_kernel *kernel;
  cgl_status status = sort_check(&call);
  if (status || !call.n)
    return status;
  sort_define(&call, descending);
  status = sort_kernel(algo, &call, "sweep", &kernel);
  if (status)
    return status;
  const bool threads = cgl_algo_has_threads(kernel);
  if (threads && call.n <= call.tile)
    return sort_alone(algo, &call, stream);
  uint64_t chunk = cgl_algo_divide_up(call.n, MOST_CHUNKS);
  if (chunk < CGL_ALGO_HOST_CHUNK)
    chunk = CGL_ALGO_HOST_CHUNK;
  call.blocks = cgl_algo_divide_up(call.n, threads ? call.tile : chunk);
  const uint64_t passes = (uint64_t)call.passes;
  status = sort_make_scratch(&call, stream,
                             threads ? passes * (1 + call.blocks) * DIGITS
                                     : call.blocks * DIGITS);
  if (!status)
    status = threads ? sort_tiles(algo, &call, stream)
                     : sort_chunks(algo, &call, stream, chunk);
  cgl_buffer_release(call.counts);
  cgl_buffer_release(call.spare);
  cgl_buffer_release(call.spare_values);
  return status;
}
