/* Threads that capture without a pause, and what died meanwhile. */
#include "cgraphlua.h"
#include "tap.h"

#include <stdatomic.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 200, EVENTS = 40 };

static cgl_context *context;
static atomic_long most; /* events alive at once */


/* A capture that lasts a while and leaves dead events and a dead graph. */
static cgl_status litter(cgl_stream *stream) {
  cgl_graph_desc desc = {.capture_mode = CGL_CAPTURE_THREAD_LOCAL};
  cgl_graph *graph;
  cgl_status status = cgl_graph_create(context, &desc, &graph);
  if (status)
    return status;
  status = cgl_graph_capture_begin(graph, stream);
  for (int i = 0; i < EVENTS && !status; i++) {
    cgl_event *event;
    status = cgl_event_create(context, false, &event);
    if (!status)
      cgl_event_release(event);
  }
  usleep(1000);
  if (!status)
    status = cgl_graph_capture_end(graph);
  long alive = cgl_live("event"), before = atomic_load(&most);
  while (alive > before && !atomic_compare_exchange_weak(&most, &before, alive))
    ;
  cgl_graph_release(graph);
  return status;
}


static void *work(void *argument) {
  int rounds = *(int *)argument, right = 0;
  cgl_stream *stream;
  cgl_status status = cgl_stream_create(context, 0, &stream);
  while (!status && right < rounds && !(status = litter(stream)))
    right++;
  tap_ok(right == rounds, "%d of %d captures: %s", right, rounds,
         status ? cgl_last_error()->message : "all");
  if (stream)
    cgl_stream_release(stream);
  return NULL;
}


static void test_no_pause(void) {
  pthread_t threads[THREADS];
  int rounds = ROUNDS;
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, work, &rounds);
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  long all = (long)THREADS * ROUNDS * EVENTS;
  tap_ok(atomic_load(&most) < all / 4,
         "the dead are torn down in between: %ld "
         "of %ld events alive at once",
         atomic_load(&most), all);
  tap_ok(!cgl_live("event"), "and all of them by the end");
}


/* The capture that stays open is not waited for again and again; one thread's
   second capture does not wait for its first. */
static void test_open_for_long(void) {
  cgl_graph_desc desc = {.capture_mode = CGL_CAPTURE_THREAD_LOCAL};
  cgl_stream *stream;
  cgl_graph *graph;
  pthread_t thread;
  int rounds = ROUNDS;
  if (cgl_stream_create(context, 0, &stream) ||
      cgl_graph_create(context, &desc, &graph) ||
      cgl_graph_capture_begin(graph, stream)) {
    tap_ok(false, "set-up: %s", cgl_last_error()->message);
    return;
  }
  pthread_create(&thread, NULL, work, &rounds);
  pthread_join(thread, NULL);
  tap_ok(cgl_live("event") == ROUNDS * EVENTS,
         "nothing is torn down while a capture is underway");
  work(&rounds);
  tap_ok(!cgl_graph_capture_end(graph), "the long capture ends well");
  tap_ok(!cgl_live("event"), "and then what waited is torn down");
  cgl_graph_release(graph);
  cgl_stream_release(stream);
}


int main(void) {
  if (cgl_context_open(NULL, &context)) {
    tap_ok(false, "set-up: %s", cgl_last_error()->message);
    return tap_done();
  }
  test_no_pause();
  test_open_for_long();
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is alive at the end (%lld)",
         (long long)cgl_live("all"));
  return tap_done();
}
