/* The different elements of a buffer: sorted, and those that differ from the
   element before selected. */
#include "algo/algo.h"
#include "core/base/error.h"


/* flags[i]: sorted[i] is the first of its kind. */
static cgl_status firsts_mark(cgl_algo *algo, cgl_stream *stream,
                              cgl_buffer *sorted, cgl_buffer *flags) {
  const size_t n = cgl_buffer_count(sorted);
  const bool first = true;
  cgl_buffer *before = NULL, *own = NULL, *out = NULL;
  cgl_status status = cgl_buffer_fill(flags, stream, &first);
  if (status || n == 1)
    return status;
  status = cgl_buffer_view(sorted, 0, n - 1, &before);
  if (!status)
    status = cgl_buffer_view(sorted, 1, n - 1, &own);
  if (!status)
    status = cgl_buffer_view(flags, 1, n - 1, &out);
  if (!status) {
    const cgl_algo_input inputs[] = {{"a", cgl_algo_memory(before)},
                                     {"b", cgl_algo_memory(own)}};
    /* All NaNs are of one kind. */
    status = cgl_algo_map(algo, stream, "a != b && (a == a || b == b)", inputs,
                          2, out);
  }
  cgl_buffer_release(before);
  cgl_buffer_release(own);
  cgl_buffer_release(out);
  return status;
}


cgl_status cgl_algo_unique(cgl_algo *algo, cgl_stream *stream, cgl_buffer *x,
                           cgl_buffer *out, cgl_buffer *count) {
  const size_t n = cgl_buffer_count(x);
  cgl_buffer *sorted = NULL, *flags = NULL;
  cgl_status status = cgl_algo_check_number(x, "algo.unique");
  if (!status)
    status = cgl_buffer_create(stream, NULL, cgl_buffer_type(x), n, &sorted);
  if (!status)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_bool, n, &flags);
  if (!status)
    status = cgl_algo_select_check(sorted, flags, out, count, "algo.unique");
  if (!status)
    status = cgl_algo_sort(algo, stream, false, x, NULL, sorted, NULL);
  if (!status && n)
    status = firsts_mark(algo, stream, sorted, flags);
  if (!status)
    status = cgl_algo_select(algo, stream, sorted, flags, out, count);
  cgl_buffer_release(sorted);
  cgl_buffer_release(flags);
  return status;
}
