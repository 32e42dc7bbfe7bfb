/* Branches and loops from C: one program for both cases, what is given up half
   way, old drivers, and threads beside each other.  On the device that
   $CGRAPHLUA_DEVICE names. */
#include "core/graph/conditional.h"
#include "tap.h"

#include <pthread.h>

enum { THREADS = 4, ROUNDS = 10 };

static const char source[] =
    "extern \"C\" __global__ void add(int *x, int a) { *x += a; }\n"
    "extern \"C\" __global__ void less(int *f, const int *x, int a) {\n"
    "  *f = *x < a;\n"
    "}\n";

static cgl_context *context;
static cgl_module *module;
static cgl_kernel *add, *less;


static cgl_status new_number(cgl_stream *stream, int value, cgl_buffer **out) {
  cgl_status status = cgl_buffer_create(stream, NULL, CGL_TYPE_int32, 1, out);
  return status ? status : cgl_buffer_fill(*out, stream, &value);
}


static int read_number(cgl_buffer *x, cgl_stream *stream) {
  int value = -1;
  cgl_buffer_download(x, stream, 0, &value, sizeof value);
  return value;
}


static cgl_status launch(cgl_kernel *kernel, cgl_stream *stream, cgl_buffer *a,
                         cgl_buffer *b, int64_t value) {
  const cgl_launch one = {{1, 1, 1}, {1, 1, 1}, 0};
  const cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = a},
                          b ? (cgl_arg){.kind = CGL_ARG_BUFFER, .buffer = b}
                            : (cgl_arg){.kind = CGL_ARG_INT, .i = value},
                          {.kind = CGL_ARG_INT, .i = value}};
  return cgl_kernel_launch(kernel, stream, &one, args, b ? 3 : 2);
}


/* Adds 1 to x while it is less than the limit. */
static cgl_status count_to(cgl_stream *stream, cgl_buffer *x, cgl_buffer *flag,
                           int limit, cgl_conditional_form form,
                           cgl_loop **loop) {
  const cgl_conditional_desc desc = {
      .kind = CGL_CONDITIONAL_LOOP, .value = flag, .max = 100, .form = form};
  cgl_conditional *c;
  cgl_stream *inner;
  int body;
  cgl_status status = launch(less, stream, flag, x, limit);
  if (!status)
    status = cgl_conditional_begin(stream, &desc, &c);
  if (status)
    return status;
  *loop = cgl_loop_retain(cgl_conditional_loop(c));
  while (!status && !(status = cgl_conditional_next(c, &body, &inner)) &&
         body >= 0) {
    status = launch(add, inner, x, NULL, 1);
    if (!status)
      status = launch(less, inner, flag, x, limit);
  }
  if (!status)
    return cgl_conditional_end(c);
  cgl_conditional_abandon(c);
  return status;
}


static bool loop_is(cgl_loop *loop, cgl_stream *stream, uint64_t turns) {
  uint64_t turned = 99;
  bool exhausted = true;
  return !cgl_loop_read(loop, stream, &turned, &exhausted) && turned == turns &&
         !exhausted;
}


/* Runs it at once, then captured; true when both count to 5. */
static bool count_twice(cgl_stream *stream, cgl_conditional_form form) {
  cgl_buffer *x = NULL, *flag = NULL;
  cgl_loop *eager = NULL, *captured = NULL;
  cgl_graph *graph = NULL;
  const int two = 2;
  bool right = !new_number(stream, 0, &x) && !new_number(stream, 0, &flag) &&
               !count_to(stream, x, flag, 5, form, &eager) &&
               read_number(x, stream) == 5 && loop_is(eager, stream, 5) &&
               !cgl_graph_create(context, NULL, &graph) &&
               !cgl_graph_capture_begin(graph, stream) &&
               !count_to(stream, x, flag, 5, form, &captured) &&
               !cgl_graph_capture_end(graph) && loop_is(captured, stream, 0) &&
               !cgl_buffer_fill(x, stream, &two) &&
               !cgl_graph_replay(graph, stream, 1) &&
               read_number(x, stream) == 5 && loop_is(captured, stream, 3);
  cgl_graph_release(graph);
  right = right && loop_is(captured, stream, 3);
  cgl_loop_release(eager);
  cgl_loop_release(captured);
  cgl_buffer_release(x);
  cgl_buffer_release(flag);
  return right;
}


/* ---- given up ---- */

static cgl_status begin_two(cgl_stream *stream, cgl_buffer *flag,
                            cgl_conditional **outer, cgl_conditional **inner) {
  const cgl_conditional_desc desc = {
      .kind = CGL_CONDITIONAL_WHEN, .value = flag, .nbodies = 2};
  cgl_stream *within;
  int body;
  cgl_status status = cgl_conditional_begin(stream, &desc, outer);
  if (!status)
    status = cgl_conditional_next(*outer, &body, &within);
  if (!status)
    status = cgl_conditional_begin(within, &desc, inner);
  return status ? status : cgl_conditional_next(*inner, &body, &within);
}


static void test_given_up(cgl_stream *stream) {
  cgl_buffer *flag = NULL;
  cgl_graph *graph = NULL;
  cgl_conditional *outer, *inner;
  cgl_stream *within;
  int body;
  size_t count = 9;
  tap_ok(!new_number(stream, 1, &flag) &&
             !cgl_graph_create(context, NULL, &graph) &&
             !cgl_graph_capture_begin(graph, stream) &&
             !begin_two(stream, flag, &outer, &inner),
         "a body in a body");
  tap_ok(cgl_graph_capture_end(graph) == CGL_ERROR_CAPTURE_STATE,
         "the capture does not end inside: %s", cgl_last_error()->message);
  tap_ok(cgl_conditional_end(inner) == CGL_ERROR_CAPTURE_STATE,
         "nor a conditional with a body left: %s", cgl_last_error()->message);
  cgl_conditional_abandon(outer);
  tap_ok(!cgl_graph_capture_end(graph) &&
             !cgl_graph_node_count(graph, &count) && !count,
         "a capture whose conditional was abandoned goes on without it");
  cgl_graph_reset(graph);
  tap_ok(!cgl_graph_capture_begin(graph, stream) &&
             !begin_two(stream, flag, &outer, &inner) &&
             !cgl_graph_reset(graph) &&
             cgl_conditional_next(inner, &body, &within) ==
                 CGL_ERROR_CAPTURE_STATE &&
             cgl_conditional_end(outer) == CGL_ERROR_CAPTURE_STATE,
         "a graph that is reset abandons all bodies: %s",
         cgl_last_error()->message);
  cgl_conditional_abandon(inner);
  tap_ok(count_twice(stream, CGL_CONDITIONAL_NODE), "and its stream is free");
  cgl_graph_release(graph);
  cgl_buffer_release(flag);
}


/* ---- old drivers ---- */

static void test_versions(cgl_stream *stream) {
  const cgl_driver *driver = context->driver;
  cgl_driver other = *driver;
  static const struct {
    int version, nbodies;
    cgl_status status;
  } cases[] = {{12030, 1, CUDA_ERROR_NOT_SUPPORTED},
               {12040, 1, CGL_OK},
               {12090, 2, CUDA_ERROR_NOT_SUPPORTED},
               {13000, 2, CGL_OK}};
  cgl_buffer *flag = NULL;
  cgl_graph *graph = NULL;
  if (new_number(stream, 1, &flag) || cgl_graph_create(context, NULL, &graph) ||
      cgl_graph_capture_begin(graph, stream)) {
    tap_ok(false, "%s", cgl_last_error()->message);
    return;
  }
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const cgl_conditional_desc desc = {.kind = CGL_CONDITIONAL_WHEN,
                                       .value = flag,
                                       .nbodies = (size_t)cases[i].nbodies};
    cgl_conditional *c = NULL;
    other.version = cases[i].version;
    context->driver = &other;
    cgl_status status = cgl_conditional_begin(stream, &desc, &c);
    context->driver = driver;
    tap_ok(status == cases[i].status, "CUDA %d.%d, bodies: %d: %s",
           cases[i].version / 1000, cases[i].version % 1000 / 10,
           cases[i].nbodies, status ? cgl_last_error()->message : "taken");
    if (!status)
      cgl_conditional_abandon(c);
  }
  cgl_graph_release(graph);
  cgl_buffer_release(flag);
}


/* ---- threads ---- */

static void *work(void *right) {
  cgl_stream *stream = NULL;
  *(bool *)right = !cgl_stream_create(context, 0, &stream);
  for (int i = 0; i < ROUNDS && *(bool *)right; i++)
    *(bool *)right = count_twice(stream, (cgl_conditional_form)(i % 3));
  cgl_stream_release(stream);
  return NULL;
}


static void test_threads(void) {
  pthread_t threads[THREADS];
  bool right[THREADS] = {false}, all = true;
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, work, &right[i]);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    all = all && right[i];
  }
  tap_ok(all, "threads capture loops at once");
}


int main(void) {
  static const cgl_module_desc desc = {.source = source};
  cgl_stream *stream = NULL;
  if (cgl_context_open(NULL, &context) ||
      cgl_stream_create(context, 0, &stream) ||
      cgl_module_create(context, &desc, &module) ||
      cgl_module_kernel(module, "add", &add) ||
      cgl_module_kernel(module, "less", &less)) {
    tap_ok(false, "%s", cgl_last_error()->message);
    return tap_done();
  }
  for (int form = 0; form <= CGL_CONDITIONAL_PREDICATED; form++)
    tap_ok(count_twice(stream, (cgl_conditional_form)form),
           "a loop counts, at once and in a graph, form %d", form);
  cgl_loop *none = NULL;
  cgl_buffer *flag = NULL;
  const bool refused = !new_number(stream, 0, &flag) &&
                       count_to(stream, flag, flag, 5, (cgl_conditional_form)3,
                                &none) == CGL_ERROR_INVALID_ARGUMENT;
  tap_ok(refused, "a fourth form: %s", cgl_last_error()->message);
  cgl_buffer_release(flag);
  test_given_up(stream);
  test_versions(stream);
  test_threads();
  cgl_kernel_release(add);
  cgl_kernel_release(less);
  cgl_module_release(module);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is left alive");
  return tap_done();
}
