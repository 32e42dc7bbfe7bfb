/* Work of another library: one node of a capture, whatever the library puts on
   its stream, on the device that $CGRAPHLUA_DEVICE names. */
#include "cgraphlua.h"
#include "core/graph/graph.h"
#include "core/memory/memory.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static cgl_context *context;
static cgl_stream *stream;
static cgl_buffer *data;
static atomic_int runs, releases, slow;
static int given;

enum { COUNT = 64 };


static void on_host(void *unused) {
  (void)unused;
  if (slow)
    usleep(50000);
  runs += releases == 0; /* what it needs is still there */
}


/* Two nodes: a fill and a host function. */
static cgl_status library_run(void *unused, CUstream on) {
  const cgl_driver *driver = context->driver;
  CUresult result = driver->cuMemsetD8Async(data->address, 1, COUNT, on);
  if (!result)
    result = driver->cuLaunchHostFunc(on, on_host, unused);
  return cgl_fail_driver(context, result, "library", "cuLaunchHostFunc");
}


static void library_release(void *unused) {
  (void)unused;
  releases++;
}


static cgl_status library_issue(void) {
  const cgl_library library = {library_run, &runs, library_release};
  cgl_issue issue;
  cgl_status status = cgl_issue_begin(&issue, stream, &data->object, "library",
                                      (cgl_room){.ranges = 1, .kept = 2});
  if (!status)
    status = cgl_issue_library_check(stream, "library");
  if (status)
    return status;
  given++;
  status = cgl_issue_library(&issue, &library);
  if (status)
    return status;
  cgl_buffer_use(data, &issue, true, 0);
  if (issue.recording)
    cgl_issue_end_library(&issue);
  return CGL_OK;
}


static cgl_status library_capture(bool by_data, cgl_graph **graph) {
  cgl_graph_desc desc = {.order = by_data ? CGL_ORDER_DATA : CGL_ORDER_ISSUE};
  const uint8_t zero = 0;
  cgl_status status = cgl_graph_create(context, &desc, graph);
  if (!status)
    status = cgl_graph_capture_begin(*graph, stream);
  if (status)
    return status;
  status = cgl_buffer_fill(data, stream, &zero);
  if (!status)
    status = library_issue();
  const cgl_status ended = cgl_graph_capture_end(*graph);
  return status ? status : ended;
}


static uint8_t first(void) {
  uint8_t value = 0;
  cgl_buffer_download(data, stream, 0, &value, 1);
  return value;
}


static void test_node(bool by_data) {
  cgl_graph *graph = NULL;
  cgl_node_info info = {0};
  size_t count = 0;
  runs = releases = 0;
  tap_ok(!library_capture(by_data, &graph), "a capture takes a library's work");
  cgl_graph_node_count(graph, &count);
  cgl_graph_node(graph, 1, &info);
  tap_ok(count == 2 && !strcmp(info.kind, "library") &&
             !strcmp(info.name, "library"),
         "as one node that has a name");
  tap_ok(!cgl_graph_replay(graph, stream, 5) && first() == 1 && runs == 5,
         "whose replays do all of it");
  tap_ok(cgl_graph_set_enabled(graph, 1, false) == CGL_ERROR_INVALID_ARGUMENT,
         "and which cannot be switched off");
  slow = 1;
  cgl_graph_replay(graph, stream, 1);
  cgl_graph_release(graph);
  cgl_stream_synchronize(stream);
  slow = 0;
  tap_ok(runs == 6, "what runs keeps the data when its graph is released");
  for (int i = 0; i < 200 && !releases; i++)
    usleep(10000);
  tap_ok(releases == 1, "which is released once");
}


static void test_eager(void) {
  runs = releases = 0;
  tap_ok(!library_issue() && first() == 1 && releases == 1,
         "outside captures it runs at once");
}


/* Each call of the driver fails once: the data is released all the same. */
static void test_faults(void) {
  bool over = false, well = true;
  int k = 0;
  while (!over && well && k < 200) {
    cgl_graph *graph = NULL;
    releases = given = 0;
    cgl_fault(++k, CUDA_ERROR_OUT_OF_MEMORY);
    const cgl_status status = library_capture(false, &graph);
    const char *hit = NULL;
    cgl_fault_count(&hit);
    cgl_fault(0, 0);
    over = !hit;
    if (graph && cgl_graph_is_capturing(graph))
      cgl_graph_capture_end(graph);
    cgl_graph_release(graph);
    cgl_stream_synchronize(stream);
    for (int i = 0; i < 100 && releases < given; i++)
      usleep(10000);
    well = releases == given && (status || given == 1);
    if (!well)
      tap_ok(false, "call %d, %s: released %d times", k, hit ? hit : "none",
             releases);
  }
  tap_ok(over && k > 10, "no failure of %d calls leaves the data behind", k);
}


int main(void) {
  setenv("CGRAPHLUA_FAULT", "1", 0);
  if (!tap_ok(
          !cgl_context_open(NULL, &context) &&
              !cgl_stream_create(context, 0, &stream) &&
              !cgl_buffer_create(stream, NULL, CGL_TYPE_uint8, COUNT, &data),
          "a device opens"))
    return tap_done();
  test_node(false);
  test_node(true);
  test_eager();
  test_faults();
  cgl_buffer_release(data);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is alive afterwards (%lld)",
         (long long)cgl_live("all"));
  return tap_done();
}
