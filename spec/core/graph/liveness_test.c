/* Inputs that an engine gives up: cgl_buffer_retire and its kin, from several
   threads at once.  On the device that $CGRAPHLUA_DEVICE names. */
#include "cgraphlua.h"
#include "tap.h"

#include <string.h>

enum { THREADS = 4, ROUNDS = 60 };

static cgl_context *context;


static cgl_graph *new_graph(void) {
  const cgl_graph_desc desc = {.check_input_liveness = true};
  cgl_graph *graph = NULL;
  cgl_graph_create(context, &desc, &graph);
  return graph;
}


static cgl_buffer *new_buffer(cgl_stream *stream) {
  cgl_buffer *buffer = NULL;
  const float zero = 0;
  if (!cgl_buffer_create(stream, NULL, CGL_TYPE_float, 64, &buffer))
    cgl_buffer_fill(buffer, stream, &zero);
  return buffer;
}


static cgl_status capture_copy(cgl_graph *graph, cgl_stream *stream,
                               cgl_buffer *to, cgl_buffer *from) {
  cgl_status status = cgl_graph_capture_begin(graph, stream);
  if (!status)
    status = cgl_buffer_copy(to, from, stream);
  return status ? status : cgl_graph_capture_end(graph);
}


static void test_retire(cgl_stream *stream) {
  cgl_graph *graph = new_graph();
  cgl_buffer *a = new_buffer(stream), *b = new_buffer(stream), *view = NULL;
  cgl_buffer_view(a, 0, 64, &view);
  tap_ok(!cgl_buffer_is_kept(a) && !cgl_buffer_is_kept(view),
         "no capture has used the buffer");
  cgl_status status = capture_copy(graph, stream, b, a);
  tap_ok(!status && cgl_buffer_is_kept(a) && cgl_buffer_is_kept(view),
         "one has now");
  cgl_set_site("engine.c", 7);
  cgl_buffer_retire(view);
  tap_ok(!cgl_graph_replay(graph, stream, 1), "a view retires nothing");
  cgl_buffer_retire(a);
  tap_ok(!cgl_graph_replay(graph, stream, 1), "a view holds its buffer");
  cgl_buffer_release(view);
  tap_ok(cgl_graph_replay(graph, stream, 1) == CGL_ERROR_RELEASED &&
             strstr(cgl_last_error()->message, "released at engine.c:7"),
         "a retired buffer is refused, with the place");
  cgl_set_site(NULL, 0);
  cgl_graph_reset(graph);
  cgl_graph_desc desc;
  cgl_graph_get_desc(graph, &desc);
  desc.check_input_liveness = false;
  cgl_graph_set_desc(graph, &desc);
  status = capture_copy(graph, stream, b, a);
  tap_ok(!status && !cgl_graph_replay(graph, stream, 1),
         "but by graphs that check their inputs only");
  cgl_stream_synchronize(stream);
  cgl_graph_release(graph);
  cgl_buffer_release(a);
  cgl_buffer_release(b);
}


/* Each thread replays its own graphs and retires its own buffers. */
static void *work(void *ok) {
  cgl_stream *stream = NULL;
  *(bool *)ok = !cgl_stream_create(context, 0, &stream);
  for (int i = 0; i < ROUNDS && *(bool *)ok; i++) {
    cgl_graph *graph = new_graph();
    cgl_buffer *from = new_buffer(stream), *to = new_buffer(stream);
    cgl_status status = capture_copy(graph, stream, to, from);
    if (!status)
      status = cgl_graph_replay(graph, stream, 3);
    cgl_buffer_retire(i % 2 ? to : from);
    *(bool *)ok =
        !status && cgl_graph_replay(graph, stream, 1) == CGL_ERROR_RELEASED;
    cgl_stream_synchronize(stream);
    cgl_graph_release(graph);
    cgl_buffer_release(from);
    cgl_buffer_release(to);
  }
  cgl_stream_release(stream);
  return NULL;
}


static void test_threads(void) {
  pthread_t threads[THREADS];
  bool ok[THREADS] = {false}, all = true;
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, work, &ok[i]);
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    all = all && ok[i];
  }
  tap_ok(all, "threads check their own inputs at once");
}


int main(void) {
  cgl_stream *stream = NULL;
  if (cgl_context_open(NULL, &context) ||
      cgl_stream_create(context, 0, &stream)) {
    tap_ok(false, "%s", cgl_last_error()->message);
    return tap_done();
  }
  test_retire(stream);
  test_threads();
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is left alive");
  return tap_done();
}
