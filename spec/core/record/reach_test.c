/* Which memory of a capture underway a stream of it may use anew, on the
   device that $CGRAPHLUA_DEVICE names. */
#include "cgraphlua.h"
#include "core/memory/memory.h"
#include "tap.h"

static cgl_context *context;
static cgl_stream *origin, *left, *right;


static cgl_buffer *new_buffer(cgl_stream *stream) {
  cgl_buffer *buffer = NULL;
  cgl_buffer_create(stream, NULL, CGL_TYPE_float, 1000, &buffer);
  return buffer;
}


static void use(cgl_buffer *buffer, cgl_stream *stream) {
  float value = 1;
  cgl_buffer_fill(buffer, stream, &value);
}


static bool may_have(cgl_stream *stream, const cgl_buffer *buffer) {
  return cgl_order_covers(
      stream, cgl_block_address(buffer->block, buffer->block->bytes),
      buffer->block->bytes, false);
}


static cgl_graph *begin(void) {
  cgl_graph *graph = NULL;
  cgl_graph_create(context, NULL, &graph);
  cgl_graph_capture_begin(graph, origin);
  return graph;
}


static void test_branches(void) {
  tap_ok(!cgl_order_covers(origin, 0, 1, false), "outside captures: unknown");
  cgl_graph *graph = begin();
  cgl_buffer *a = new_buffer(origin), *b = new_buffer(origin);
  use(a, origin);
  tap_ok(may_have(origin, a), "on one stream what was used may serve again");
  cgl_stream_wait_stream(left, origin);
  cgl_stream_wait_stream(right, origin);
  tap_ok(may_have(left, a) && may_have(right, a),
         "both branches come after what was before the fork");
  use(b, left);
  tap_ok(may_have(left, b), "a branch comes after itself");
  tap_ok(!may_have(right, b), "and not after the other branch");
  tap_ok(!may_have(origin, b), "nor does the stream it was forked from");
  use(a, right);
  tap_ok(!may_have(left, a), "an earlier use does not hide a later one");
  cgl_stream_wait_stream(origin, left);
  tap_ok(may_have(origin, b) && !may_have(origin, a),
         "the join of one branch covers that one");
  cgl_stream_wait_stream(origin, right);
  tap_ok(may_have(origin, a), "the join of the other that too");
  use(b, origin);
  tap_ok(may_have(origin, b), "and work after the join");
  tap_ok(!may_have(left, b), "which the branches do not come after");
  tap_ok(!cgl_graph_capture_end(graph), "asking harms no capture");
  cgl_buffer_release(a);
  cgl_buffer_release(b);
  cgl_graph_release(graph);
}


static void test_views(void) {
  cgl_graph *graph = begin();
  cgl_buffer *a = new_buffer(origin), *view;
  cgl_buffer_view(a, 500, 10, &view);
  cgl_stream_wait_stream(left, origin);
  use(view, left);
  tap_ok(!may_have(origin, a), "a view's use is the buffer's");
  tap_ok(cgl_order_covers(origin, cgl_buffer_address(a), 400, false) &&
             !cgl_order_covers(origin, cgl_buffer_address(view), 4, false),
         "memory beside it is not touched");
  cgl_stream_wait_stream(origin, left);
  cgl_graph_capture_end(graph);
  cgl_buffer_release(view);
  cgl_buffer_release(a);
  cgl_graph_release(graph);
}


static void test_foreign(void) {
  const cgl_driver *driver = cgl_context_driver(context);
  cgl_graph *graph = begin();
  cgl_buffer *a = new_buffer(origin);
  use(a, origin);
  cgl_stream_wait_stream(left, origin);
  tap_ok(may_have(left, a), "all nodes are ours");
  driver->cuMemsetD8Async(cgl_buffer_address(a), 0, 4, right->handle);
  tap_ok(may_have(left, a), "work outside the capture is no concern of it");
  driver->cuMemsetD8Async(cgl_buffer_address(a), 0, 4, left->handle);
  tap_ok(!may_have(left, a), "with a node that others put in nothing is sure");
  cgl_stream_wait_stream(origin, left);
  cgl_graph_capture_end(graph);
  cgl_buffer_release(a);
  cgl_graph_release(graph);
}


/* Others may put work on a branch of their own, too, which the asking stream
   does not come after. */
static void test_foreign_apart(void) {
  const cgl_driver *driver = cgl_context_driver(context);
  cgl_graph *graph = begin();
  cgl_buffer *a = new_buffer(origin);
  CUstream shown = cgl_stream_handle(right);
  cgl_stream_wait_stream(left, origin);
  cgl_stream_wait_stream(right, origin);
  use(a, left);
  tap_ok(may_have(left, a), "a branch whose handle is out is as any other");
  driver->cuMemsetD8Async(cgl_buffer_address(a), 0, 4, shown);
  tap_ok(!may_have(left, a), "until others use it");
  cgl_stream_wait_stream(origin, left);
  cgl_stream_wait_stream(origin, right);
  cgl_graph_capture_end(graph);
  cgl_buffer_release(a);
  cgl_graph_release(graph);
}


/* What was asked early does not wear out. */
static void test_long(void) {
  cgl_graph *graph = begin();
  cgl_buffer *a = new_buffer(origin), *b = new_buffer(origin);
  int wrong = 0;
  use(b, origin);
  cgl_stream_wait_stream(left, origin);
  for (int i = 0; i < 300; i++) {
    use(a, i % 2 ? left : origin);
    wrong += may_have(left, a) || !may_have(left, b);
  }
  tap_ok(!wrong, "it is right however long the capture gets (%d wrong)", wrong);
  cgl_stream_wait_stream(origin, left);
  tap_ok(may_have(origin, a), "and so to its end");
  cgl_graph_capture_end(graph);
  cgl_buffer_release(a);
  cgl_buffer_release(b);
  cgl_graph_release(graph);
}


/* A graph as a node of another uses what its own nodes use. */
static void test_children(void) {
  cgl_graph_desc desc = {.keep_graph = true};
  cgl_graph *child, *graph;
  cgl_graph_create(context, &desc, &child);
  cgl_buffer *a = new_buffer(origin), *b = new_buffer(origin);
  cgl_graph_capture_begin(child, origin);
  use(a, origin);
  cgl_graph_capture_end(child);
  graph = begin();
  cgl_stream_wait_stream(left, origin);
  tap_ok(!cgl_graph_replay(child, left, 2), "a graph becomes nodes");
  tap_ok(may_have(left, a) && !may_have(origin, a),
         "a child graph uses what its nodes use");
  tap_ok(may_have(origin, b), "and nothing else");
  cgl_stream_wait_stream(origin, left);
  tap_ok(may_have(origin, a), "until it is joined");
  cgl_graph_capture_end(graph);
  cgl_graph_release(graph);
  cgl_graph_release(child);
  cgl_buffer_release(a);
  cgl_buffer_release(b);
}


/* Of uses that overlap, in whatever order they are noted, all counts. */
static void test_children_overlap(void) {
  cgl_graph_desc desc = {.keep_graph = true};
  cgl_graph *child, *graph;
  cgl_graph_create(context, &desc, &child);
  cgl_buffer *a = new_buffer(origin), *front, *middle;
  cgl_buffer_view(a, 0, 10, &front);
  cgl_buffer_view(a, 5, 400, &middle);
  cgl_graph_capture_begin(child, origin);
  use(front, origin);
  use(middle, origin);
  cgl_graph_capture_end(child);
  graph = begin();
  cgl_stream_wait_stream(left, origin);
  cgl_graph_replay(child, left, 1);
  uint64_t at = cgl_buffer_address(a);
  tap_ok(!cgl_order_covers(origin, at, 4, false) &&
             !cgl_order_covers(origin, at + 404 * 4, 4, false) &&
             cgl_order_covers(origin, at + 405 * 4, 4, false),
         "a child graph's uses are joined to their very end");
  cgl_stream_wait_stream(origin, left);
  cgl_graph_capture_end(graph);
  cgl_graph_release(graph);
  cgl_graph_release(child);
  cgl_buffer_release(front);
  cgl_buffer_release(middle);
  cgl_buffer_release(a);
}


/* Random forks, joins and uses against a plain model: bit i of what a stream
   or an event has behind it stands for use i. */
enum { STREAMS = 6, USES = 60, ROUNDS = 60, BUFFERS = 5 };

static uint32_t below(uint64_t *state, uint32_t n) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (uint32_t)(*state >> 32) % n;
}


static int one_round(uint64_t *seed, cgl_stream **streams,
                     cgl_buffer **buffers) {
  uint64_t behind[STREAMS] = {0}, used[BUFFERS] = {0};
  bool inside[STREAMS] = {true};
  int wrong = 0, uses = 0;
  cgl_graph *graph = begin();
  while (uses < USES) {
    uint32_t s = below(seed, STREAMS), t = below(seed, STREAMS);
    uint32_t b = below(seed, BUFFERS);
    if (below(seed, 3) && inside[s]) {
      use(buffers[b], streams[s]);
      behind[s] |= UINT64_C(1) << uses;
      used[b] |= UINT64_C(1) << uses++;
    } else if (inside[s] && s != t) {
      cgl_stream_wait_stream(streams[t], streams[s]);
      behind[t] |= behind[s];
      inside[t] = true;
    }
    if (!inside[t])
      continue;
    bool all = (used[b] & ~behind[t]) == 0;
    wrong += may_have(streams[t], buffers[b]) != all;
  }
  for (int s = 1; s < STREAMS; s++)
    if (inside[s])
      cgl_stream_wait_stream(streams[0], streams[s]);
  wrong += !!cgl_graph_capture_end(graph);
  cgl_graph_release(graph);
  return wrong;
}


enum { MEETINGS = 1500 };

static void *end_capture(void *graph) {
  cgl_graph_capture_end(graph);
  return NULL;
}


/* A capture begins in the pool while another thread ends one there: what ends
   must not make what begins forget who used its scratch. */
static bool meet(cgl_pool *pool, cgl_stream *elsewhere) {
  cgl_graph_desc desc = {.pool = pool};
  cgl_graph *graph = NULL, *ending = NULL;
  pthread_t thread;
  cgl_graph_create(context, &desc, &ending);
  cgl_graph_create(context, &desc, &graph);
  cgl_graph_capture_begin(ending, elsewhere);
  pthread_create(&thread, NULL, end_capture, ending);
  while (cgl_graph_capture_begin(graph, origin) == CGL_ERROR_CAPTURE_STATE)
    ;
  cgl_stream_wait_stream(left, origin);
  cgl_buffer *a = new_buffer(origin);
  uint64_t address = cgl_buffer_address(a);
  use(a, origin);
  pthread_join(thread, NULL);
  cgl_buffer_release(a);
  cgl_buffer *b = new_buffer(left);
  bool apart = b && cgl_buffer_address(b) != address;
  cgl_graph_capture_abandon(graph);
  cgl_buffer_release(b);
  cgl_graph_release(graph);
  cgl_graph_release(ending);
  return apart;
}


static void test_meetings(void) {
  cgl_stream *elsewhere = NULL;
  cgl_pool *pool = NULL;
  int met = 0;
  cgl_stream_create(context, 0, &elsewhere);
  for (int i = 0; i < MEETINGS; i++) {
    cgl_pool_create(context, NULL, &pool);
    met += !meet(pool, elsewhere);
    cgl_pool_release(pool);
  }
  tap_ok(!met,
         "branches keep apart while another capture of the pool ends: %d of "
         "%d did not",
         met, MEETINGS);
  cgl_stream_release(elsewhere);
}


static void test_random(void) {
  cgl_stream *streams[STREAMS] = {origin};
  cgl_buffer *buffers[BUFFERS];
  uint64_t seed = 88172645463325252u;
  int wrong = 0;
  for (int i = 1; i < STREAMS; i++)
    cgl_stream_create(context, 0, &streams[i]);
  for (int i = 0; i < BUFFERS; i++)
    buffers[i] = new_buffer(origin);
  for (int i = 0; i < ROUNDS; i++)
    wrong += one_round(&seed, streams, buffers);
  tap_ok(!wrong, "%d random captures agree with a model (%d wrong)", ROUNDS,
         wrong);
  for (int i = 0; i < BUFFERS; i++)
    cgl_buffer_release(buffers[i]);
  for (int i = 1; i < STREAMS; i++)
    cgl_stream_release(streams[i]);
}


int main(void) {
  if (!tap_ok(!cgl_context_open(NULL, &context), "a device opens"))
    return tap_done();
  cgl_stream_create(context, 0, &origin);
  cgl_stream_create(context, 0, &left);
  cgl_stream_create(context, 0, &right);
  test_branches();
  test_views();
  test_foreign();
  test_foreign_apart();
  test_long();
  test_children();
  test_children_overlap();
  test_meetings();
  test_random();
  cgl_stream_release(origin);
  cgl_stream_release(left);
  cgl_stream_release(right);
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is alive afterwards (%lld)",
         (long long)cgl_live("all"));
  return tap_done();
}
