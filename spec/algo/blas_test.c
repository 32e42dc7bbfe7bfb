/* Matrices in C: what scripts cannot ask for. */
#include "cgraphlua.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>


static cgl_context *context;
static cgl_stream *stream;
static cgl_blas *blas;


static cgl_buffer *matrix(size_t rows, size_t columns, float value) {
  const size_t extents[] = {rows, columns};
  cgl_buffer *buffer = NULL;
  if (cgl_buffer_create(stream, NULL, CGL_TYPE_float, rows * columns,
                        &buffer) ||
      cgl_buffer_set_shape(buffer, extents, 2) ||
      cgl_buffer_fill(buffer, stream, &value))
    tap_ok(false, "a matrix: %s", cgl_last_error()->message);
  return buffer;
}


static bool is_full(cgl_buffer *buffer, float value) {
  float list[64];
  bool same =
      !cgl_buffer_download(buffer, stream, 0, list, cgl_buffer_bytes(buffer));
  for (size_t i = 0; i < cgl_buffer_count(buffer); i++)
    same &= list[i] == value;
  return same;
}


static void refused(cgl_blas_function function, const cgl_blas_operands *o,
                    const char *text) {
  const cgl_status status = cgl_blas_issue(blas, stream, function, o);
  const cgl_error *error = cgl_last_error();
  tap_ok(status == CGL_ERROR_INVALID_ARGUMENT && strstr(error->message, text) &&
             *error->hint,
         "refused: %s; %s", error->message, error->hint);
}


int main(void) {
  if (cgl_context_open(NULL, &context) ||
      cgl_stream_create(context, 0, &stream)) {
    tap_ok(false, "set-up: %s", cgl_last_error()->message);
    return tap_done();
  }
  const cgl_status status = cgl_blas_create(context, &blas);
  if (status) {
    tap_ok(status == CGL_ERROR_NOT_FOUND && *cgl_last_error()->hint,
           "a library that is not there: %s", cgl_last_error()->hint);
    tap_skip("the rest", cgl_last_error()->message);
    return tap_done();
  }
  cgl_buffer *a = matrix(3, 4, 2), *b = matrix(4, 5, 3), *c = matrix(3, 5, 1);
  cgl_blas_operands o = {.a = a, .b = b, .c = c};
  tap_ok(!cgl_blas_issue(blas, stream, CGL_BLAS_gemm, &o) && is_full(c, 24),
         "operands without alpha and beta have 1 and 0");
  o.beta = (cgl_arg){.kind = CGL_ARG_NUMBER, .number = 2};
  tap_ok(!cgl_blas_issue(blas, stream, CGL_BLAS_gemm, &o) && is_full(c, 72),
         "and with beta that");
  o.alpha = (cgl_arg){.kind = CGL_ARG_INT, .i = 1};
  refused(CGL_BLAS_gemm, &o, "alpha is of another kind");
  o.alpha = o.beta = (cgl_arg){.buffer = NULL};
  o.b = NULL;
  refused(CGL_BLAS_gemm, &o, "an operand is missing");
  o.b = b;
  refused(CGL_BLAS_axpy, &o, "one too many");
  tap_ok(cgl_blas_issue(blas, stream, CGL_BLAS_COUNT, &o) ==
             CGL_ERROR_INVALID_ARGUMENT,
         "an unknown function is refused");

  /* The handle is given up while a capture uses it. */
  cgl_graph *graph = NULL;
  bool ok = !cgl_graph_create(context, NULL, &graph) &&
            !cgl_graph_capture_begin(graph, stream) &&
            !cgl_blas_issue(blas, stream, CGL_BLAS_gemm, &o);
  cgl_blas_destroy(blas);
  ok = ok && !cgl_graph_capture_end(graph);
  tap_ok(ok && !cgl_graph_replay(graph, stream, 3) && is_full(c, 24),
         "a graph keeps what it uses of a library that was given up");
  cgl_graph_release(graph);
  cgl_buffer_release(a);
  cgl_buffer_release(b);
  cgl_buffer_release(c);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(!cgl_live("all"), "nothing is alive at the end");
  return tap_done();
}
