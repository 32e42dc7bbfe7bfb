/* Which reference to a device is the last: buffers count on their memory for
   it, and memory that none has is kept for the next while others refer to the
   device.  Whatever goes last, the device goes with it. */
#include "cgraphlua.h"
#include "tap.h"

#include <stdatomic.h>

enum { PARTS = 4, ORDERS = 24, RACES = 300, RACERS = 3 };

/* Two buffers, a view of one, a stream; the context's own reference goes
   first, as it does where a stream is all that a script holds. */
typedef struct parts {
  cgl_stream *stream;
  cgl_buffer *first, *second, *view;
} parts;


static cgl_status make(parts *p) {
  cgl_context *context;
  *p = (parts){0};
  cgl_status status = cgl_context_open(NULL, &context);
  if (status)
    return status;
  status = cgl_stream_create(context, 0, &p->stream);
  if (!status)
    status = cgl_buffer_create(p->stream, NULL, CGL_TYPE_float, 100, &p->first);
  if (!status)
    status =
        cgl_buffer_create(p->stream, NULL, CGL_TYPE_float, 1000, &p->second);
  if (!status)
    status = cgl_buffer_view(p->second, 10, 20, &p->view);
  cgl_context_release(context);
  return status;
}


static void drop(parts *p, int part) {
  switch (part) {
  case 0:
    cgl_stream_release(p->stream);
    break;
  case 1:
    cgl_buffer_release(p->first);
    break;
  case 2:
    cgl_buffer_release(p->second);
    break;
  default:
    cgl_buffer_release(p->view);
  }
}


/* Part number `turn` of the order with this number, of all that there are. */
static int nth(int order, int turn) {
  int left[PARTS] = {0, 1, 2, 3}, part = 0;
  for (int n = PARTS, i = 0; i <= turn; n--, i++) {
    int at = order % n;
    order /= n;
    part = left[at];
    for (int k = at; k + 1 < n; k++)
      left[k] = left[k + 1];
  }
  return part;
}


static void test_orders(void) {
  int early = 0, late = 0, failed = 0;
  for (int order = 0; order < ORDERS; order++) {
    parts p;
    failed += make(&p) != CGL_OK;
    for (int turn = 0; turn < PARTS; turn++) {
      early += cgl_live("context") != 1;
      drop(&p, nth(order, turn));
    }
    late += cgl_live("all") != 0;
  }
  tap_ok(!failed && !early, "a device stays while anything of it is there");
  tap_ok(!late, "and goes with the last of it, in all %d orders", ORDERS);
}


/* The memory that one buffer had serves the next, with nothing between. */
static void test_again(void) {
  parts p;
  cgl_status status = make(&p);
  cgl_buffer_release(p.view);
  cgl_buffer_release(p.second);
  cgl_buffer_release(p.first);
  for (int i = 0; i < RACES && !status; i++) {
    status = cgl_buffer_create(p.stream, NULL, CGL_TYPE_float, 100, &p.first);
    if (!status)
      cgl_buffer_release(p.first);
  }
  tap_ok(!status && cgl_live("context") == 1 && !cgl_live("buffer"),
         "a device without memory in use stays for its stream");
  cgl_stream_release(p.stream);
  tap_ok(!cgl_live("all"), "and goes with it");
}


typedef struct racer {
  parts *parts;
  int part;
  atomic_int *ready;
} racer;


static void *race(void *racer_) {
  racer *r = racer_;
  atomic_fetch_add(r->ready, 1);
  while (atomic_load(r->ready) < RACERS)
    ;
  drop(r->parts, r->part);
  return NULL;
}


static void test_races(void) {
  int late = 0, failed = 0;
  for (int i = 0; i < RACES; i++) {
    parts p;
    atomic_int ready = 0;
    pthread_t threads[RACERS];
    racer racers[RACERS];
    failed += make(&p) != CGL_OK;
    cgl_buffer_release(p.view);
    for (int k = 0; k < RACERS; k++) {
      racers[k] = (racer){&p, k, &ready};
      pthread_create(&threads[k], NULL, race, &racers[k]);
    }
    for (int k = 0; k < RACERS; k++)
      pthread_join(threads[k], NULL);
    late += cgl_live("all") != 0;
  }
  tap_ok(!failed && !late,
         "threads that drop the last of it at once leave nothing (%d of %d)",
         late, RACES);
}


int main(void) {
  test_orders();
  test_again();
  test_races();
  return tap_done();
}
