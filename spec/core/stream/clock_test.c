/* The clocks of streams: what they know of the order of work, and that they
   never claim one that does not hold.  On the device that $CGRAPHLUA_DEVICE
   names. */
#include "cgraphlua.h"
#include "core/memory/memory.h"
#include "core/stream/stream.h"
#include "tap.h"

static cgl_context *context;


static cgl_stream *new_stream(void) {
  cgl_stream *stream = NULL;
  cgl_stream_create(context, 0, &stream);
  return stream;
}


static cgl_event *record(cgl_stream *stream) {
  cgl_event *event = NULL;
  cgl_event_create(context, false, &event);
  cgl_event_record(event, stream);
  return event;
}


static bool after(const cgl_stream *stream, const cgl_stream *before,
                  uint64_t tick) {
  return cgl_clock_covers(stream->clock, before->clock, tick);
}


static void test_events(void) {
  cgl_stream *a = new_stream(), *b = new_stream(), *c = new_stream();
  uint64_t tick = cgl_clock_now(a->clock);
  tap_ok(after(a, a, tick), "a stream comes after itself");
  tap_ok(!after(b, a, tick), "another one does not");
  cgl_event *early = record(a);
  uint64_t later = cgl_clock_now(a->clock);
  cgl_stream_wait_event(b, early);
  tap_ok(after(b, a, tick), "it does after waiting for an event");
  tap_ok(!after(b, a, later), "up to where the event was recorded");
  tap_ok(!after(a, b, cgl_clock_now(b->clock)), "and not the other way");
  cgl_event *second = record(b);
  cgl_stream_wait_event(c, second);
  tap_ok(after(c, a, tick) && !after(c, a, later),
         "a third stream inherits what the second had seen");
  cgl_event_record(early, c);
  uint64_t now = cgl_clock_now(a->clock);
  cgl_stream_wait_event(b, early);
  tap_ok(!after(b, a, now), "an event recorded elsewhere stands for there");
  cgl_stream_wait_stream(b, a);
  cgl_stream_wait_event(b, second);
  tap_ok(after(b, a, now), "an older event takes back nothing");
  cgl_event_release(early);
  cgl_event_release(second);
  cgl_stream_release(a);
  cgl_stream_release(b);
  cgl_stream_release(c);
}


static void test_waits(void) {
  cgl_stream *a = new_stream(), *b = new_stream();
  uint64_t tick = cgl_clock_now(a->clock);
  cgl_stream_synchronize(a);
  uint64_t later = cgl_clock_now(a->clock);
  tap_ok(after(b, a, tick), "what the host waited for comes before everything");
  tap_ok(!after(b, a, later), "what came later does not");
  cgl_event *event = record(a);
  cgl_event_synchronize(event);
  tap_ok(after(b, a, later), "the same for an event the host waited for");
  bool done = false;
  cgl_stream_synchronize(a);
  tick = cgl_clock_now(a->clock);
  cgl_stream_query(a, &done);
  tap_ok(done && after(b, a, tick), "and for a query that found all done");
  cgl_event_record(event, a);
  cgl_stream_synchronize(b);
  cgl_context_synchronize(context);
  tick = cgl_clock_now(a->clock);
  cgl_event_record(event, a);
  while (!cgl_event_query(event, &done) && !done)
    ;
  tap_ok(done && after(b, a, tick), "of a stream, or of an event");
  cgl_event *lent = record(a);
  tick = cgl_clock_now(a->clock);
  cgl_event_handle(lent);
  cgl_event_record(lent, a);
  cgl_stream_wait_event(b, lent);
  tap_ok(!after(b, a, tick),
         "nothing is known of an event whose handle is out");
  cgl_event_synchronize(lent);
  tap_ok(!after(b, a, tick), "also when the host has waited for it");
  cgl_event_release(event);
  cgl_event_release(lent);
  cgl_stream_release(a);
  cgl_stream_release(b);
}


static void test_reach(void) {
  cgl_stream *a = new_stream(), *b = new_stream();
  tap_ok(cgl_clock_covered(a->clock, a->clock) == UINT64_MAX &&
             !cgl_clock_covered(b->clock, a->clock) &&
             !cgl_clock_covered(NULL, a->clock),
         "a stream reaches all of its own, and nothing of another's");
  uint64_t tick = cgl_clock_now(a->clock);
  cgl_stream_wait_stream(b, a);
  tap_ok(cgl_clock_covered(b->clock, a->clock) == tick + 1 &&
             !cgl_clock_covered(NULL, a->clock),
         "up to the event that it waited for, and nobody else does");
  cgl_stream_wait_stream(b, a);
  cgl_stream_synchronize(a);
  tap_ok(cgl_clock_covered(NULL, a->clock) > tick + 1,
         "but for what the host waited for");
  cgl_stream_release(a);
  cgl_stream_release(b);
}


/* An engine captures a stream of ours; one that waits for an event recorded
   there joins that capture, and comes after nothing. */
static void test_captured_elsewhere(void) {
  const cgl_driver *driver = cgl_context_driver(context);
  cgl_stream *a = new_stream(), *b = new_stream(), *c = new_stream();
  CUstream handle = cgl_stream_handle(a);
  CUgraph graph = NULL;
  uint64_t tick = cgl_clock_now(a->clock);
  cgl_event *plain = record(a);
  cgl_stream_wait_event(b, plain);
  tap_ok(after(b, a, tick), "a stream whose handle is out is as any other");
  tick = cgl_clock_now(a->clock);
  cgl_event *again = record(a);
  driver->cuStreamBeginCapture(handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  cgl_event *event = record(a);
  cgl_event_record(again, a);
  tap_ok(!cgl_stream_wait_event(b, event) && !after(b, a, tick),
         "while somebody else captures it, its events order nothing");
  tap_ok(!cgl_stream_wait_event(c, again) && !after(c, a, tick),
         "nor do those that were recorded before as well");
  driver->cuStreamEndCapture(handle, &graph);
  tap_ok(!after(b, a, tick), "nor afterwards");
  if (graph)
    driver->cuGraphDestroy(graph);
  cgl_event_release(plain);
  cgl_event_release(again);
  cgl_event_release(event);
  cgl_stream_release(a);
  cgl_stream_release(b);
  cgl_stream_release(c);
}


/* An event that replays record stands for them, not for its last record. */
static void test_external(void) {
  cgl_stream *a = new_stream(), *b = new_stream(), *c = new_stream();
  cgl_graph *graph;
  uint64_t tick = cgl_clock_now(a->clock);
  cgl_event *event = record(a), *place = record(a);
  cgl_graph_create(context, NULL, &graph);
  cgl_graph_capture_begin(graph, b);
  cgl_event_record(place, b);
  cgl_event_record_external(event, b);
  cgl_event_record_external(place, b);
  cgl_graph_capture_end(graph);
  cgl_graph_replay(graph, b, 1);
  tap_ok(!cgl_event_synchronize(place),
         "an event that replays record can be waited for");
  tap_ok(!cgl_stream_wait_event(c, event) && !after(c, a, tick),
         "an event of a graph's replays says nothing of a stream");
  cgl_event_release(event);
  cgl_event_release(place);
  cgl_graph_release(graph);
  cgl_stream_release(a);
  cgl_stream_release(b);
  cgl_stream_release(c);
}


/* The same of a stream that is the engine's own: it is not put before ours. */
static void test_engine_captures(void) {
  const cgl_driver *driver = cgl_context_driver(context);
  cgl_stream *engine = new_stream(), *borrowed, *b = new_stream();
  CUstream handle = cgl_stream_handle(engine);
  CUgraph graph = NULL;
  cgl_stream_from_handle(context, handle, &borrowed);
  uint64_t tick = cgl_clock_now(borrowed->clock);
  driver->cuStreamBeginCapture(handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  cgl_status status = cgl_clock_order(b, borrowed->clock, "test");
  bool capturing = true;
  cgl_stream_is_capturing(b, &capturing);
  tap_ok(status == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && !capturing &&
             !after(b, borrowed, tick),
         "a stream that its engine captures is not waited for");
  tap_ok(!driver->cuStreamEndCapture(handle, &graph), "and goes on capturing");
  if (graph)
    driver->cuGraphDestroy(graph);
  tap_ok(!cgl_clock_order(b, borrowed->clock, "test") &&
             after(b, borrowed, tick),
         "afterwards it is");
  cgl_stream_release(borrowed);
  cgl_stream_release(engine);
  cgl_stream_release(b);
}


/* Who only asks what a clock covers has no need of an event for it. */
static void test_watchers(void) {
  cgl_stream *a = new_stream(), *b = new_stream();
  cgl_clock *watched = cgl_clock_watch(a->clock);
  cgl_clock *kept = cgl_clock_retain(b->clock);
  cgl_clock *both = cgl_clock_watch(b->clock);
  cgl_stream_release(a);
  cgl_stream_release(b);
  tap_ok(!watched->event && !watched->lost,
         "a stream that is only watched dies without a record");
  tap_ok(kept->event, "one that others may order work after records its end");
  cgl_clock_unwatch(watched);
  cgl_clock_unwatch(both);
  cgl_clock_release(kept);
}


static void test_forgetting(void) {
  cgl_stream *many[12], *b = new_stream();
  uint64_t ticks[12];
  for (int i = 0; i < 12; i++) {
    many[i] = new_stream();
    ticks[i] = cgl_clock_now(many[i]->clock);
    cgl_stream_wait_stream(b, many[i]);
  }
  bool latest = true;
  for (int i = 12 - CGL_CLOCK_SEEN; i < 12; i++)
    latest = latest && after(b, many[i], ticks[i]);
  tap_ok(latest, "the latest %d streams are remembered", CGL_CLOCK_SEEN);
  tap_ok(!after(b, many[0], ticks[0]), "the oldest is forgotten, not invented");
  for (int i = 0; i < 12; i++)
    cgl_stream_release(many[i]);
  cgl_stream_release(b);
}


static void test_default(void) {
  cgl_stream *one, *two, *b = new_stream();
  cgl_stream_default(context, &one);
  cgl_stream_default(context, &two);
  uint64_t tick = cgl_clock_now(one->clock);
  tap_ok(one->clock == two->clock, "default streams are one stream");
  cgl_event *event = record(one);
  cgl_stream_wait_event(b, event);
  tap_ok(after(b, two, tick), "whichever object stands for it");
  cgl_event_release(event);
  cgl_stream_release(one);
  cgl_stream_release(two);
  cgl_stream_release(b);
}


static cgl_status put_after(cgl_stream *stream, cgl_stream *before) {
  return cgl_clock_order(stream, before->clock, "test");
}


static void test_order(void) {
  cgl_stream *a = new_stream(), *b = new_stream();
  uint64_t tick = cgl_clock_now(a->clock);
  tap_ok(!put_after(b, a) && after(b, a, tick),
         "one stream is put after another");
  tap_ok(!put_after(a, a), "a stream after itself is no work");
  cgl_graph *graph;
  cgl_graph_create(context, NULL, &graph);
  tick = cgl_clock_now(a->clock);
  tap_ok(!cgl_graph_capture_begin(graph, a), "a capture begins");
  tap_ok(!put_after(b, a) && after(b, a, tick),
         "what was issued before the capture is waited for");
  bool capturing = true;
  cgl_stream_is_capturing(b, &capturing);
  tap_ok(!capturing, "and the wait leads nobody into it");
  cgl_stream *forked = new_stream();
  cgl_stream_wait_stream(forked, a);
  tap_ok(a->clock->held && forked->clock->held, "two streams capture");
  tap_ok(!cgl_graph_capture_end(graph), "the capture is whole");
  tap_ok(!put_after(b, a) && !a->clock->held && !forked->clock->held,
         "afterwards it goes as before");
  cgl_stream_release(forked);
  cgl_graph_release(graph);
  cgl_clock *clock = cgl_clock_retain(a->clock);
  tick = cgl_clock_now(clock);
  cgl_stream_release(a);
  tap_ok(!cgl_clock_order(b, clock, "test") &&
             cgl_clock_covers(b->clock, clock, tick),
         "a stream that is gone is waited for all the same");
  cgl_clock_release(clock);
  a = new_stream();
  cgl_stream *borrowed;
  cgl_stream_from_handle(context, cgl_stream_handle(a), &borrowed);
  clock = cgl_clock_retain(borrowed->clock);
  tick = cgl_clock_now(clock);
  cgl_stream_release(borrowed);
  tap_ok(!cgl_clock_order(b, clock, "test") &&
             cgl_clock_covers(b->clock, clock, tick),
         "an engine's stream that may be gone costs a wait for the device");
  cgl_clock_release(clock);
  cgl_stream_release(a);
  cgl_stream_release(b);
}


/* A stream on which a capture could not begin is as any other afterwards. */
static void test_refused(void) {
  const cgl_driver *driver = cgl_context_driver(context);
  cgl_stream *a = new_stream(), *b = new_stream(), *c = new_stream();
  cgl_graph *one, *two;
  cgl_pool *pool;
  CUgraph engines = NULL;
  cgl_pool_create(context, NULL, &pool);
  const cgl_graph_desc desc = {.pool = pool};
  cgl_graph_create(context, &desc, &one);
  cgl_graph_create(context, &desc, &two);
  cgl_graph_capture_begin(one, a);
  tap_ok(cgl_graph_capture_begin(two, b) == CGL_ERROR_CAPTURE_STATE &&
             !b->clock->held,
         "a pool that serves another capture leaves the stream alone");
  tap_ok(!cgl_graph_capture_end(one), "and the capture underway");
  CUstream handle = cgl_stream_handle(b);
  driver->cuStreamBeginCapture(handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  tap_ok(cgl_graph_capture_begin(two, b) && !b->clock->held,
         "so does a driver that refuses");
  driver->cuStreamEndCapture(handle, &engines);
  if (engines)
    driver->cuGraphDestroy(engines);
  uint64_t tick = cgl_clock_now(b->clock);
  tap_ok(!put_after(c, b) && after(c, b, tick), "it is waited for by an event");
  cgl_graph_release(one);
  cgl_graph_release(two);
  cgl_pool_release(pool);
  cgl_stream_release(a);
  cgl_stream_release(b);
  cgl_stream_release(c);
}


/* ---- the order is real: a slow writer and a reader after it ---- */

static const char source[] =
    "extern \"C\" __global__ void slow(unsigned *x, unsigned value) {\n"
    "  unsigned spin = value;\n"
    "  for (int i = 0; i < 200000; i++) spin = spin * 1664525u + 1013904223u;\n"
    "  x[0] = spin == 1u ? 0u : value;\n"
    "}\n";

static void test_results(void) {
  enum { ROUNDS = 200 };
  cgl_module_desc desc = {.source = source};
  cgl_module *module;
  cgl_kernel *kernel;
  cgl_stream *streams[3] = {new_stream(), new_stream(), new_stream()};
  cgl_buffer *x, *y;
  cgl_module_create(context, &desc, &module);
  cgl_module_kernel(module, NULL, &kernel);
  cgl_buffer_create(streams[0], NULL, CGL_TYPE_uint32, 1, &x);
  cgl_buffer_create(streams[0], NULL, CGL_TYPE_uint32, ROUNDS, &y);
  const cgl_launch launch = {{1}, {1}, 0};
  int wrong = 0;
  for (unsigned i = 0; i < ROUNDS; i++) {
    cgl_stream *own = streams[i % 3], *next = streams[(i + 1) % 3];
    cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = x},
                      {.kind = CGL_ARG_UINT, .u = i + 2}};
    cgl_buffer *place;
    cgl_kernel_launch(kernel, own, &launch, args, 2);
    wrong += !!put_after(next, own);
    cgl_buffer_view(y, i, 1, &place);
    wrong += !!cgl_buffer_copy(place, x, next);
    cgl_buffer_release(place);
  }
  uint32_t seen[ROUNDS];
  cgl_context_synchronize(context);
  cgl_buffer_download(y, streams[0], 0, seen, sizeof seen);
  for (unsigned i = 0; i < ROUNDS; i++)
    wrong += seen[i] != i + 2;
  tap_ok(!wrong, "%d switches of streams keep the order (%d wrong)", ROUNDS,
         wrong);
  cgl_buffer_release(x);
  cgl_buffer_release(y);
  cgl_kernel_release(kernel);
  cgl_module_release(module);
  for (int i = 0; i < 3; i++)
    cgl_stream_release(streams[i]);
}


int main(void) {
  if (!tap_ok(!cgl_context_open(NULL, &context), "a device opens"))
    return tap_done();
  test_events();
  test_waits();
  test_reach();
  test_captured_elsewhere();
  test_engine_captures();
  test_external();
  test_watchers();
  test_forgetting();
  test_default();
  test_order();
  test_refused();
  test_results();
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is alive afterwards (%lld)",
         (long long)cgl_live("all"));
  return tap_done();
}
