/* Elements moved as they are: by indices, by flags, and transposed. */
#include "algo/algo.h"
#include "core/base/error.h"

#include <stdio.h>

enum { DEFINITIONS = 100 };


static cgl_status move_kernel(cgl_algo *algo, const char *name,
                              const cgl_buffer *x, cgl_type index,
                              const char *operation, cgl_kernel **kernel) {
  static const char *const words[] = {
      [1] = "unsigned char", [2] = "unsigned short", [3] = "uchar3",
      [4] = "unsigned",      [6] = "ushort3",        [8] = "u64",
      [12] = "uint3",        [16] = "uint4",         [24] = "three",
      [32] = "four"};
  char definitions[DEFINITIONS];
  snprintf(
      definitions, sizeof definitions, "\n#define WORD %s\n#define INDEX %s\n",
      words[cgl_type_bytes(cgl_buffer_type(x))], cgl_algo_type_text(index));
  return cgl_algo_kernel(algo, CGL_ALGO_move, name, definitions, operation,
                         kernel);
}


/* Refuses a result of another type than the elements have, or one that shares
   memory with what is read. */
static cgl_status move_check(const cgl_buffer *x, const cgl_buffer *other,
                             const cgl_buffer *out, const char *operation) {
  char shape[CGL_ALGO_SHAPE_ROOM], wanted[CGL_ALGO_SHAPE_ROOM];
  if (cgl_buffer_type(x) != cgl_buffer_type(out)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "elements of %s do not go to %s", cgl_algo_shape_text(x, shape),
             cgl_algo_shape_text(out, wanted));
    return cgl_fail_hint("the result has the type of the elements");
  }
  if (cgl_buffer_overlap(x, out, NULL) ||
      (other && cgl_buffer_overlap(other, out, NULL))) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the result shares memory with what is read");
    return cgl_fail_hint("give another buffer for the result");
  }
  return CGL_OK;
}


static cgl_status counts_refuse(const cgl_buffer *a, const char *what,
                                const cgl_buffer *b, const char *operation) {
  char shape[CGL_ALGO_SHAPE_ROOM], wanted[CGL_ALGO_SHAPE_ROOM];
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation, "%s for %s %s",
           cgl_algo_shape_text(a, shape), what, cgl_algo_shape_text(b, wanted));
  return cgl_fail_hint("both need as many elements");
}


/* ---- indices ---- */

static cgl_status indices_check(const cgl_buffer *indices,
                                const char *operation) {
  const cgl_type type = cgl_buffer_type(indices);
  if (type == CGL_TYPE_int32 || type == CGL_TYPE_uint32 ||
      type == CGL_TYPE_int64 || type == CGL_TYPE_uint64)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation, "indices of type %s",
           cgl_type_name(type));
  return cgl_fail_hint("give int32, uint32, int64 or uint64");
}


/* `items`: as many as the indices; `range`: what the indices point into. */
static cgl_status move_by_index(cgl_algo *algo, cgl_stream *stream,
                                const char *name, cgl_buffer *x,
                                cgl_buffer *indices, cgl_buffer *out,
                                const cgl_buffer *items,
                                const cgl_buffer *range,
                                const char *operation) {
  const uint64_t n = cgl_buffer_count(indices);
  cgl_kernel *kernel;
  cgl_status status = indices_check(indices, operation);
  if (!status)
    status = move_check(x, indices, out, operation);
  if (!status && cgl_buffer_count(items) != n)
    status = counts_refuse(items, "indices of", indices, operation);
  if (status || !n)
    return status;
  status =
      move_kernel(algo, name, x, cgl_buffer_type(indices), operation, &kernel);
  if (status)
    return status;
  const cgl_launch launch = cgl_algo_rows(n, CGL_ALGO_BLOCK);
  const cgl_arg args[] = {cgl_algo_memory(x), cgl_algo_memory(indices),
                          cgl_algo_memory(out), cgl_algo_whole(n),
                          cgl_algo_whole(cgl_buffer_count(range))};
  return cgl_kernel_launch(kernel, stream, &launch, args, 5);
}


cgl_status cgl_algo_gather(cgl_algo *algo, cgl_stream *stream, cgl_buffer *x,
                           cgl_buffer *indices, cgl_buffer *out) {
  return move_by_index(algo, stream, "gather", x, indices, out, out, x,
                       "algo.gather");
}


cgl_status cgl_algo_scatter(cgl_algo *algo, cgl_stream *stream, cgl_buffer *x,
                            cgl_buffer *indices, cgl_buffer *out) {
  return move_by_index(algo, stream, "scatter", x, indices, out, x, out,
                       "algo.scatter");
}


/* ---- flags ---- */

cgl_status cgl_algo_select_check(const cgl_buffer *x, const cgl_buffer *flags,
                                 const cgl_buffer *out, const cgl_buffer *count,
                                 const char *operation) {
  cgl_status status = move_check(x, flags, out, operation);
  if (status)
    return status;
  if (cgl_buffer_type(flags) != CGL_TYPE_bool) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation, "flags of type %s",
             cgl_type_name(cgl_buffer_type(flags)));
    return cgl_fail_hint("give bool; algo.map makes them: \"x > 0\"");
  }
  if (cgl_buffer_count(flags) != cgl_buffer_count(x))
    return counts_refuse(flags, "flags of", x, operation);
  if (cgl_buffer_count(out) != cgl_buffer_count(x))
    return counts_refuse(out, "the selected of", x, operation);
  if (cgl_buffer_type(count) != CGL_TYPE_int64 ||
      cgl_buffer_count(count) != 1 || cgl_buffer_overlap(count, x, NULL) ||
      cgl_buffer_overlap(count, flags, NULL) ||
      cgl_buffer_overlap(count, out, NULL)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the count is no int64 of its own");
    return cgl_fail_hint("give a buffer of one int64 for it");
  }
  return CGL_OK;
}


cgl_status cgl_algo_select(cgl_algo *algo, cgl_stream *stream, cgl_buffer *x,
                           cgl_buffer *flags, cgl_buffer *out,
                           cgl_buffer *count) {
  static const char operation[] = "algo.select";
  const uint64_t n = cgl_buffer_count(x), zero = 0;
  const cgl_type index = n >> 32 ? CGL_TYPE_uint64 : CGL_TYPE_uint32;
  cgl_kernel *kernel;
  cgl_buffer *positions = NULL;
  cgl_status status = cgl_algo_select_check(x, flags, out, count, operation);
  if (status)
    return status;
  if (!n)
    return cgl_buffer_fill(count, stream, &zero);
  status = move_kernel(algo, "compact", x, index, operation, &kernel);
  if (!status)
    status = cgl_buffer_create(stream, NULL, index, n, &positions);
  if (!status)
    status =
        cgl_algo_scan(algo, stream, CGL_ALGO_SCAN_sum, true, flags, positions);
  if (!status) {
    const cgl_launch launch = cgl_algo_rows(n, CGL_ALGO_BLOCK);
    const cgl_arg args[] = {cgl_algo_memory(x),         cgl_algo_memory(flags),
                            cgl_algo_memory(positions), cgl_algo_memory(out),
                            cgl_algo_memory(count),     cgl_algo_whole(n)};
    status = cgl_kernel_launch(kernel, stream, &launch, args, 6);
  }
  cgl_buffer_release(positions);
  return status;
}


/* ---- transpose ---- */

cgl_status cgl_algo_transpose(cgl_algo *algo, cgl_stream *stream, cgl_buffer *x,
                              cgl_buffer *out) {
  static const char operation[] = "algo.transpose";
  size_t extents[CGL_MAX_DIMS];
  cgl_kernel *kernel;
  cgl_status status = move_check(x, NULL, out, operation);
  if (status)
    return status;
  if (cgl_buffer_shape(x, extents) != 2) {
    char shape[CGL_ALGO_SHAPE_ROOM];
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "%s has no rows and columns", cgl_algo_shape_text(x, shape));
    return cgl_fail_hint("give a buffer of two extents, {rows, columns}");
  }
  if (cgl_buffer_count(out) != cgl_buffer_count(x))
    return counts_refuse(out, "the transpose of", x, operation);
  if (!cgl_buffer_count(x))
    return CGL_OK;
  status =
      move_kernel(algo, "transpose", x, CGL_TYPE_int32, operation, &kernel);
  if (status)
    return status;
  cgl_launch launch = cgl_algo_blocks(cgl_algo_divide_up(extents[0], 32) *
                                          cgl_algo_divide_up(extents[1], 32),
                                      cgl_algo_has_threads(kernel) ? 32 : 1);
  launch.block[1] = cgl_algo_has_threads(kernel) ? 8 : 1;
  const cgl_arg args[] = {cgl_algo_memory(x), cgl_algo_memory(out),
                          cgl_algo_whole(extents[0]),
                          cgl_algo_whole(extents[1])};
  return cgl_kernel_launch(kernel, stream, &launch, args, 4);
}
