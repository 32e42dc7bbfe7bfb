/* Hooks from C: their points, their failures, and the end of what a capture
   holds.  On the device that $CGRAPHLUA_DEVICE names. */
#include "cgraphlua.h"
#include "tap.h"

#include <string.h>

static cgl_context *context;
static cgl_stream *stream;
static char seen[64]; /* a letter per call */

typedef struct caller {
  char letter;
  cgl_status answer;
} caller;


static cgl_status see(void *user, cgl_graph *graph) {
  const caller *c = user;
  size_t at = strlen(seen);
  if (at + 1 < sizeof seen)
    seen[at] = c->letter;
  return graph && cgl_graph_context(graph) != context ? CGL_ERROR_WRONG_DEVICE
                                                      : c->answer;
}


static bool saw(const char *text) {
  bool same = !strcmp(seen, text);
  if (!same)
    printf("# saw \"%s\" for \"%s\"\n", seen, text);
  memset(seen, 0, sizeof seen);
  return same;
}


static cgl_status capture(cgl_graph *graph, cgl_buffer *buffer, float value) {
  cgl_status status = cgl_graph_capture_begin(graph, stream);
  if (!status)
    status = cgl_buffer_fill(buffer, stream, &value);
  return status ? status : cgl_graph_capture_end(graph);
}


static float first(cgl_buffer *buffer) {
  float value = -1;
  cgl_buffer_download(buffer, stream, 0, &value, sizeof value);
  return value;
}


static caller callers[] = {{'s', 0}, {'e', 0}, {'i', 0},
                           {'<', 0}, {'>', 0}, {'d', 0}};


static cgl_graph *hooked(void) {
  cgl_graph *graph = NULL;
  cgl_graph_create(context, NULL, &graph);
  for (int point = 0; point <= CGL_HOOK_DESTROY; point++)
    if (cgl_graph_add_hook(graph, (cgl_hook_point)point, see, &callers[point],
                           NULL))
      return NULL;
  return graph;
}


static void test_points(cgl_buffer *buffer) {
  cgl_graph *graph = hooked();
  tap_ok(graph && !capture(graph, buffer, 3) && saw("sei"),
         "a capture calls its hooks");
  tap_ok(!cgl_graph_replay(graph, stream, 2) && saw("<><>") &&
             first(buffer) == 3,
         "each replay calls its own");
  tap_ok(!cgl_graph_reset(graph) && saw("d"), "reset ends what was captured");
  tap_ok(!capture(graph, buffer, 4) && saw("sei"), "a second capture: again");
  cgl_graph_release(graph);
  tap_ok(saw(""), "a destroy hook is called once");
}


static void test_failures(cgl_buffer *buffer) {
  static const char *const expected[] = {"s", "se", "sei", "sei<", "sei<>"};
  for (int point = 0; point < CGL_HOOK_DESTROY; point++) {
    cgl_graph *graph = hooked();
    callers[point].answer = 999;
    cgl_status status = capture(graph, buffer, 5);
    if (!status)
      status = cgl_graph_replay(graph, stream, 3);
    callers[point].answer = CGL_OK;
    tap_ok(status == 999 && saw(expected[point]) &&
               strstr(cgl_last_error()->message, "hook failed") &&
               !cgl_graph_is_capturing(graph),
           "a hook that fails fails the call: %c", callers[point].letter);
    cgl_graph_reset(graph);
    saw("");
    memset(seen, 0, sizeof seen);
    tap_ok(!capture(graph, buffer, 6) && !cgl_graph_replay(graph, stream, 1) &&
               first(buffer) == 6,
           "and the graph works afterwards");
    cgl_graph_release(graph);
    memset(seen, 0, sizeof seen);
  }
}


static void test_child(cgl_buffer *buffer) {
  cgl_graph *inner = hooked(), *outer = NULL;
  cgl_graph_create(context, NULL, &outer);
  cgl_status status = capture(inner, buffer, 7);
  if (!status)
    status = cgl_graph_capture_begin(outer, stream);
  if (!status)
    status = cgl_graph_replay(inner, stream, 1);
  if (!status)
    status = cgl_graph_capture_end(outer);
  tap_ok(!status && saw("sei<>"), "a replay into a capture calls hooks");
  cgl_graph_release(inner);
  tap_ok(saw(""), "a graph that lives on as a child has not ended");
  tap_ok(!cgl_graph_replay(outer, stream, 1) && first(buffer) == 7 && saw(""),
         "what launches it as a child is not a replay of it");
  cgl_graph_release(outer);
  tap_ok(saw("d"), "its end comes with the last graph that holds it");
}


static void test_removal(cgl_buffer *buffer) {
  cgl_graph *graph = NULL, *other = NULL;
  uint64_t id = 0, second = 0;
  cgl_graph_create(context, NULL, &graph);
  cgl_graph_create(context, NULL, &other);
  cgl_graph_add_hook(graph, CGL_HOOK_REPLAY_END, see, &callers[4], &id);
  cgl_graph_add_hook(graph, CGL_HOOK_DESTROY, see, &callers[5], &second);
  capture(graph, buffer, 1);
  tap_ok(!cgl_graph_remove_hook(other, id), "a hook belongs to one graph");
  tap_ok(cgl_graph_remove_hook(graph, id) && !cgl_graph_remove_hook(graph, id),
         "a hook is removed once");
  cgl_graph_remove_hook(graph, second);
  cgl_graph_replay(graph, stream, 1);
  cgl_graph_release(graph);
  tap_ok(saw(""), "and is not called then");
  tap_ok(cgl_graph_add_hook(other, (cgl_hook_point)17, see, NULL, NULL) ==
                 CGL_ERROR_INVALID_ARGUMENT &&
             cgl_graph_add_hook(other, CGL_HOOK_DESTROY, NULL, NULL, NULL) ==
                 CGL_ERROR_INVALID_ARGUMENT,
         "a hook without a point or a function is refused");
  cgl_graph_release(other);
}


static void test_deferral(cgl_buffer *buffer) {
  cgl_graph *graph = hooked(), *outer = NULL;
  cgl_graph_create(context, NULL, &outer);
  capture(graph, buffer, 1);
  memset(seen, 0, sizeof seen);
  cgl_graph_capture_begin(outer, stream);
  cgl_graph_release(graph);
  tap_ok(saw(""), "an end during a capture is put off");
  cgl_graph_capture_end(outer);
  tap_ok(saw("d"), "until the capture has ended");
  cgl_graph_release(outer);
}


int main(void) {
  cgl_buffer *buffer = NULL;
  if (cgl_context_open(NULL, &context) ||
      cgl_stream_create(context, 0, &stream) ||
      cgl_buffer_create(stream, NULL, CGL_TYPE_float, 16, &buffer)) {
    tap_ok(false, "%s", cgl_last_error()->message);
    return tap_done();
  }
  test_points(buffer);
  test_failures(buffer);
  test_child(buffer);
  test_removal(buffer);
  test_deferral(buffer);
  cgl_buffer_release(buffer);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is left alive");
  return tap_done();
}
