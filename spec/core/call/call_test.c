/* Calls of another library as operations.  The library is this file: it copies
   words and sets the first one, by two calls of the driver, into the stream
   that it is handed. */
#include "cgraphlua.h"
#include "core/base/base.h"
#include "tap.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 1000, FIRST = 7, REFUSED = 42 };

static cgl_context *context;
static const cgl_driver *cu;
static cgl_stream *stream;
static atomic_int held;       /* references to the library's owner */
static atomic_int runs, slow; /* of what the host runs */
static uint64_t told;         /* how often it was about to run */

typedef struct job {
  cgl_buffer *from, *to;
  bool fails;
} job;


static int library(void *user, void *custream) {
  const job *j = user;
  const CUdeviceptr to = cgl_buffer_address(j->to);
  if (cu->cuMemcpyDtoDAsync(to, cgl_buffer_address(j->from),
                            cgl_buffer_bytes(j->from), custream))
    return 1;
  return j->fails ? REFUSED : cu->cuMemsetD32Async(to, FIRST, 1, custream) != 0;
}


static const char *describe(int code) {
  return code == REFUSED ? "not today" : "broken";
}


static void retain(void *owner) {
  ++*(atomic_int *)owner;
}


static void release(void *owner) {
  --*(atomic_int *)owner;
}


static cgl_status call(job *j, cgl_stream *on) {
  const cgl_call_use uses[] = {{j->from, false}, {j->to, true}};
  const cgl_call c = {.name = "copier",
                      .issue = library,
                      .user = j,
                      .describe = describe,
                      .uses = uses,
                      .nuses = 2,
                      .overwrites = true,
                      .owner = &held,
                      .retain = retain,
                      .release = release};
  return cgl_call_issue(on, &c);
}


static cgl_buffer *words(uint32_t value) {
  cgl_buffer *buffer = NULL;
  if (cgl_buffer_create(stream, NULL, CGL_TYPE_uint32, N, &buffer) ||
      cgl_buffer_fill(buffer, stream, &value))
    tap_ok(false, "a buffer: %s", cgl_last_error()->message);
  return buffer;
}


/* Whether the buffer has `first`, and then `rest`. */
static bool has(cgl_buffer *buffer, uint32_t first, uint32_t rest) {
  uint32_t list[N];
  bool same = !cgl_buffer_download(buffer, stream, 0, list, sizeof list);
  for (size_t i = 0; i < N; i++)
    same &= list[i] == (i ? rest : first);
  return same;
}


static cgl_graph *capture_begin(cgl_capture_order order) {
  const cgl_graph_desc desc = {.order = order};
  cgl_graph *graph = NULL;
  if (cgl_graph_create(context, &desc, &graph) ||
      cgl_graph_capture_begin(graph, stream))
    tap_ok(false, "a capture: %s", cgl_last_error()->message);
  return graph;
}


static void test_eager(void) {
  job j = {words(1), words(2), false};
  tap_ok(!call(&j, stream) && has(j.to, FIRST, 1),
         "a call works on the stream itself");
  j.fails = true;
  tap_ok(call(&j, stream) == CGL_ERROR_LIBRARY &&
             strstr(cgl_last_error()->message, "not today") &&
             !strcmp(cgl_last_error()->operation, "copier"),
         "a refusal has the library's words");
  const cgl_call many = {.name = "many", .nuses = CGL_CALL_MAX_USES + 1};
  tap_ok(cgl_call_issue(stream, &many) == CGL_ERROR_INVALID_ARGUMENT,
         "too many uses are refused");
  tap_ok(!held, "nothing is held outside captures");
  cgl_buffer_release(j.from);
  cgl_buffer_release(j.to);
}


/* A call between a fill and a copy; in data order beside another call. */
static void test_capture(cgl_capture_order order) {
  job j = {words(1), words(2), false}, other = {words(3), words(4), false};
  job bad = {j.from, j.to, true};
  cgl_buffer *last = words(5);
  const uint32_t nine = 9;
  cgl_graph *graph = capture_begin(order);
  bool ok = !cgl_buffer_fill(j.from, stream, &nine) && !call(&j, stream);
  tap_ok(call(&bad, stream) == CGL_ERROR_LIBRARY, "a refusal in a capture (%d)",
         (int)order);
  ok = ok && !call(&other, stream) && !cgl_buffer_copy(last, j.to, stream) &&
       !cgl_graph_capture_end(graph);
  tap_ok(ok, "leaves it whole: %s", ok ? "" : cgl_last_error()->message);
  tap_ok(held == 2, "the graph holds the owner for each call (%d)", held);
  cgl_node_info info;
  tap_ok(!cgl_graph_node(graph, 1, &info) && !strcmp(info.kind, "call") &&
             !strcmp(info.name, "copier"),
         "the node is a call with the library's name");
  tap_ok(cgl_graph_set_enabled(graph, 1, false) == CGL_ERROR_INVALID_ARGUMENT,
         "which is not switched off: %s", cgl_last_error()->message);
  tap_ok(!cgl_graph_replay(graph, stream, 1) && has(j.to, FIRST, 9) &&
             has(last, FIRST, 9) && has(other.to, FIRST, 3),
         "a replay does it all in order");
  const uint32_t four = 4;
  cgl_buffer_fill(other.from, stream, &four);
  /* Long loops launch copies of the graph. */
  tap_ok(!cgl_graph_replay(graph, stream, 5000) && has(other.to, FIRST, 4),
         "and so do many, with what is there then");
  cgl_graph *outer = capture_begin(order);
  ok = !cgl_graph_replay(graph, stream, 1) && !cgl_graph_capture_end(outer);
  cgl_buffer_fill(last, stream, &four);
  tap_ok(ok && !cgl_graph_replay(outer, stream, 1) && has(last, FIRST, 9),
         "and a graph that has the graph inside");
  cgl_graph_release(outer);
  cgl_graph_release(graph);
  tap_ok(!held, "a graph's end lets go of the owner (%d)", held);
  cgl_buffer *const buffers[] = {j.from, j.to, other.from, other.to, last};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
    cgl_buffer_release(buffers[i]);
}


/* Calls in data order have edges by their memory alone. */
static void test_plan(void) {
  job j = {words(1), words(2), false}, next = {j.to, words(3), false};
  job other = {words(4), words(5), false};
  cgl_graph *graph = capture_begin(CGL_ORDER_DATA);
  bool ok = !call(&j, stream) && !call(&other, stream) &&
            !call(&next, stream) && !cgl_graph_capture_end(graph);
  cgl_plan plan;
  ok = ok && !cgl_graph_plan(graph, &plan);
  tap_ok(ok && plan.edges == 1 && plan.width == 2,
         "in data order one edge, two at once, and no barrier (%zu, %zu)",
         ok ? (size_t)plan.edges : 0, ok ? (size_t)plan.width : 0);
  cgl_graph_release(graph);
  cgl_buffer *const buffers[] = {j.from, j.to, next.to, other.from, other.to};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
    cgl_buffer_release(buffers[i]);
}


/* A call in the body of a branch: taken, and not. */
static void test_body(void) {
  job j = {words(1), words(2), false};
  cgl_buffer *flag = words(1), *one = NULL;
  cgl_status status = cgl_buffer_view(flag, 0, 1, &one);
  cgl_graph *graph = capture_begin(CGL_ORDER_ISSUE);
  const cgl_conditional_desc desc = {.kind = CGL_CONDITIONAL_WHEN,
                                     .value = one};
  cgl_conditional *c = NULL;
  cgl_stream *inner;
  int body;
  if (!status)
    status = cgl_conditional_begin(stream, &desc, &c);
  while (!status && !(status = cgl_conditional_next(c, &body, &inner)) &&
         body >= 0)
    status = call(&j, inner);
  if (!status)
    status = cgl_conditional_end(c);
  const cgl_status ended = cgl_graph_capture_end(graph);
  if (status == CUDA_ERROR_NOT_SUPPORTED)
    tap_skip("a call in a body", "the driver has no conditional nodes");
  else {
    const uint32_t none = 0, six = 6;
    tap_ok(!status && !ended && !cgl_graph_replay(graph, stream, 1) &&
               has(j.to, FIRST, 1),
           "a call runs in the body of a branch: %s",
           status || ended ? cgl_last_error()->message : "");
    tap_ok(!cgl_buffer_fill(flag, stream, &none) &&
               !cgl_buffer_fill(j.to, stream, &six) &&
               !cgl_graph_replay(graph, stream, 1) && has(j.to, 6, 6),
           "and not when the branch is not taken");
  }
  cgl_graph_release(graph);
  tap_ok(!held, "and nothing is held then (%d)", held);
  cgl_buffer *const buffers[] = {j.from, j.to, one, flag};
  for (size_t i = 0; i < sizeof buffers / sizeof *buffers; i++)
    cgl_buffer_release(buffers[i]);
}


/* ---- a call that the host runs a part of ---- */

static void on_host(void *owner) {
  if (slow)
    usleep(50000);
  runs += *(atomic_int *)owner > 0; /* what it needs is still there */
}


static int host_library(void *user, void *custream) {
  const CUresult result = cu->cuLaunchHostFunc(custream, on_host, &held);
  return library(user, custream) ||
         cgl_fail_driver(context, result, "host", "cuLaunchHostFunc");
}


static void note_launched(void *owner, uint64_t times) {
  told += owner == &held ? times : 0;
}


static cgl_status host_call(job *j, cgl_stream *on) {
  const cgl_call_use uses[] = {{j->from, false}, {j->to, true}};
  const cgl_call c = {.name = "host",
                      .issue = host_library,
                      .user = j,
                      .uses = uses,
                      .nuses = 2,
                      .overwrites = true,
                      .notes = true,
                      .on_host = true,
                      .owner = &held,
                      .retain = retain,
                      .release = release,
                      .launched = note_launched};
  return cgl_call_issue(on, &c);
}


/* Waits for the driver's thread. */
static bool lets_go(void) {
  for (int i = 0; i < 200 && held; i++)
    usleep(10000);
  return !held;
}


static void test_host(cgl_capture_order order) {
  job j = {words(1), words(2), false};
  cgl_graph *graph = capture_begin(order);
  bool ok = !host_call(&j, stream) && !cgl_graph_capture_end(graph);
  runs = 0;
  tap_ok(ok && held == 1 && !cgl_graph_replay(graph, stream, 5) &&
             has(j.to, FIRST, 1) && runs == 5,
         "the host's part runs with each replay");
  slow = 1;
  cgl_graph_replay(graph, stream, 1);
  cgl_graph_release(graph);
  cgl_stream_synchronize(stream);
  slow = 0;
  tap_ok(runs == 6, "what runs has its owner when the graph was released");
  tap_ok(lets_go(), "which is let go of then");
  cgl_buffer_release(j.from);
  cgl_buffer_release(j.to);
}


static void test_told(void) {
  job j = {words(1), words(2), false};
  told = 0;
  bool ok = !host_call(&j, stream) && !cgl_stream_synchronize(stream);
  cgl_graph *graph = capture_begin(CGL_ORDER_ISSUE), *outer;
  ok = ok && !host_call(&j, stream) && !cgl_graph_capture_end(graph) && !told;
  runs = 0;
  ok = ok && !cgl_graph_replay(graph, stream, 5) && told == 5 &&
       !cgl_stream_synchronize(stream) && runs == 5;
  tap_ok(ok, "owners are told of replays, and not of what they issue");
  outer = capture_begin(CGL_ORDER_ISSUE);
  ok = !cgl_graph_replay(graph, stream, 2) && !cgl_graph_capture_end(outer) &&
       told == 5;
  tap_ok(ok && !cgl_graph_replay(outer, stream, 3) && told == 11 &&
             !cgl_stream_synchronize(stream) && runs == 11,
         "of graphs inside others each time, and not of captures");
  cgl_graph_release(outer);
  cgl_graph_reset(graph);
  tap_ok(cgl_graph_replay(graph, stream, 1) && told == 11,
         "and of no graph that was reset");
  cgl_graph_release(graph);
  cgl_stream_synchronize(stream);
  tap_ok(lets_go(), "and nothing is held");
  cgl_buffer_release(j.from);
  cgl_buffer_release(j.to);
}


/* Issues something into the body of a branch; what came of it. */
static cgl_status in_body(cgl_status (*issue)(void *, cgl_stream *),
                          void *user) {
  cgl_buffer *flag = words(1), *one = NULL;
  cgl_status status = cgl_buffer_view(flag, 0, 1, &one), issued = CGL_OK;
  cgl_graph *graph = capture_begin(CGL_ORDER_ISSUE);
  const cgl_conditional_desc desc = {.kind = CGL_CONDITIONAL_WHEN,
                                     .value = one};
  cgl_conditional *c = NULL;
  cgl_stream *inner;
  int body;
  if (!status)
    status = cgl_conditional_begin(stream, &desc, &c);
  while (!status && !(status = cgl_conditional_next(c, &body, &inner)) &&
         body >= 0)
    issued = issue(user, inner);
  if (!status)
    status = cgl_conditional_end(c);
  cgl_graph_capture_end(graph);
  cgl_graph_release(graph);
  cgl_buffer_release(one);
  cgl_buffer_release(flag);
  return status == CUDA_ERROR_NOT_SUPPORTED ? status : issued;
}


static cgl_status issue_host(void *j, cgl_stream *on) {
  return host_call(j, on);
}


static cgl_status issue_graph(void *graph, cgl_stream *on) {
  return cgl_graph_replay(graph, on, 1);
}


static void test_host_in_body(void) {
  job j = {words(1), words(2), false};
  cgl_graph *graph = capture_begin(CGL_ORDER_ISSUE), *outer;
  bool ok = !host_call(&j, stream) && !cgl_graph_capture_end(graph);
  outer = capture_begin(CGL_ORDER_ISSUE);
  ok = ok && !cgl_graph_replay(graph, stream, 1) &&
       !cgl_graph_capture_end(outer);
  const cgl_status call = in_body(issue_host, &j);
  if (call == CUDA_ERROR_NOT_SUPPORTED)
    tap_skip("bodies refuse it", "the driver has no conditional nodes");
  else
    tap_ok(ok && call == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
               in_body(issue_graph, graph) == call &&
               in_body(issue_graph, outer) == call,
           "bodies refuse it, and graphs that have it: %s",
           cgl_last_error()->message);
  cgl_graph_release(outer);
  cgl_graph_release(graph);
  tap_ok(lets_go(), "and nothing is held");
  cgl_buffer_release(j.from);
  cgl_buffer_release(j.to);
}


/* Captures and replays a call; whether nothing failed. */
static bool work(job *j, cgl_status (*issue)(job *, cgl_stream *)) {
  cgl_graph *graph = NULL;
  bool ok = !cgl_graph_create(context, NULL, &graph) &&
            !cgl_graph_capture_begin(graph, stream);
  if (ok) {
    ok = !issue(j, stream);
    ok = !cgl_graph_capture_end(graph) && ok;
  }
  ok = ok && !cgl_graph_replay(graph, stream, 1);
  cgl_graph_release(graph);
  return ok;
}


/* Every driver call under a captured call fails once. */
static void test_faults(cgl_status (*issue)(job *, cgl_stream *)) {
  job j = {words(1), words(2), false};
  const char *entry = "";
  int failed = 0, wrong = 0, left = 0, beside = 0;
  cgl_stream_synchronize(stream);
  for (uint64_t k = 1; entry; k++) {
    const uint32_t two = 2;
    cgl_buffer_fill(j.to, stream, &two);
    cgl_fault(k, 2);
    const bool ok = work(&j, issue);
    cgl_fault_count(&entry);
    cgl_fault(0, 0);
    failed += !ok;
    wrong += ok && !has(j.to, FIRST, 1);
    left += !lets_go();
    beside += entry && !strcmp(entry, "cuStreamEndCapture");
  }
  tap_ok(failed > 8 && beside == 2, "driver calls fail in turn (%d)", failed);
  tap_ok(!wrong && !left,
         "and each time the work is right or refused, and nothing is held");
  cgl_buffer_release(j.from);
  cgl_buffer_release(j.to);
}


int main(void) {
  setenv("CGRAPHLUA_FAULT", "1", 1);
  if (cgl_context_open(NULL, &context) ||
      cgl_stream_create(context, 0, &stream)) {
    tap_ok(false, "set-up: %s", cgl_last_error()->message);
    return tap_done();
  }
  cu = cgl_context_driver(context);
  test_eager();
  test_capture(CGL_ORDER_ISSUE);
  test_capture(CGL_ORDER_DATA);
  test_plan();
  test_body();
  test_host(CGL_ORDER_ISSUE);
  test_host(CGL_ORDER_DATA);
  test_host_in_body();
  test_told();
  test_faults(call);
  test_faults(host_call);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(!cgl_live("all"), "nothing is alive at the end");
  return tap_done();
}
