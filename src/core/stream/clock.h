/* Clocks of streams: which work is known to precede which, without a call of
   the driver.
   Idea: every record of an event advances its stream's tick, so an event
   covers the work issued at lower ticks than its own. A stream that waits
   for an event comes after what the event covers; a wait of the host makes
   ticks done.
   Invariants: a clock never claims an order that does not hold; ticks only
   grow. Work inside a capture has no tick: its order is the order of the
   graph.
   Glossary.
   mark: what the record of an event covers.
   seen: other streams and the ticks up to which a stream comes after them;
   only the latest few are kept, and a forgotten entry costs at most a
   needless wait.
   retired: of a clock: the stream's object is gone.
   held: of a clock: its event stays as it was recorded, because the stream
   captures or is retired. */
#ifndef CGL_STREAM_CLOCK_H
#define CGL_STREAM_CLOCK_H

#include "core/base/base.h"

enum { CGL_CLOCK_SEEN = 8 };

typedef struct cgl_tick {
  uint64_t clock; /* serial; 0: an empty entry */
  uint64_t tick;
} cgl_tick;

typedef struct cgl_clock {
  atomic_int references;     /* watchers included */
  atomic_int watchers;       /* references that only ask what it covers */
  uint64_t serial;           /* the stream's; never reused */
  atomic_uint_fast64_t tick; /* of work that is issued now */
  atomic_uint_fast64_t done; /* work of lower ticks is over */
  const cgl_driver *driver;
  CUstream handle;
  bool borrowed;        /* the stream belongs to an engine, which may capture */
  pthread_mutex_t lock; /* guards what follows */
  cgl_tick seen[CGL_CLOCK_SEEN];
  unsigned next_seen; /* index of the next new entry */
  CUevent event;      /* made at first use */
  bool held;          /* `event` must not be recorded again */
  atomic_bool lost;   /* retired without a recorded event: an order after it
                         takes a wait for the device */
} cgl_clock;

/* What the last record of an event covers; all zero: unknown. */
typedef struct cgl_mark {
  cgl_clock *clock; /* retained */
  uint64_t tick;
  cgl_tick seen[CGL_CLOCK_SEEN];
} cgl_mark;

/* A clock with one reference for the stream `handle`; NULL without memory. */
cgl_clock *cgl_clock_new(const cgl_driver *driver, CUstream handle,
                         uint64_t serial, bool borrowed);
cgl_clock *cgl_clock_retain(cgl_clock *clock);
void cgl_clock_release(cgl_clock *clock); /* NULL is fine */
/* A reference that only asks what the clock covers: a stream whose clock has
   only watchers records no event when it is retired. */
cgl_clock *cgl_clock_watch(cgl_clock *clock);
void cgl_clock_unwatch(cgl_clock *clock); /* NULL is fine */

/* The tick of work whose issuing has just returned. */
static inline uint64_t cgl_clock_now(cgl_clock *clock) {
  return atomic_load_explicit(&clock->tick, memory_order_acquire);
}

/* Work of ticks below this is over. */
static inline uint64_t cgl_clock_done(const cgl_clock *clock) {
  return atomic_load_explicit(&clock->done, memory_order_acquire);
}

/* The tick below which all work of `before` is known to be over, or, with
   `clock`, to precede the next work of its stream.  Calls no driver. */
uint64_t cgl_clock_covered(cgl_clock *clock, const cgl_clock *before);
/* Whether that covers work of `tick`. */
static inline bool cgl_clock_covers(cgl_clock *clock, cgl_clock *before,
                                    uint64_t tick) {
  return clock == before || cgl_clock_done(before) > tick ||
         cgl_clock_covered(clock, before) > tick;
}

/* Whether work of `tick` is over, by a query of the driver unless that could
   break a capture.  cuStreamQuery */
bool cgl_clock_is_over(cgl_clock *before, uint64_t tick);

/* What an event covers that is about to be recorded on the clock's stream.
   Called before the driver records it, because another thread may issue work on
   the default stream right after.  The mark borrows the clock. */
cgl_mark cgl_clock_mark(cgl_clock *clock);
/* The event was recorded: *mark becomes *now and retains the clock. */
void cgl_mark_set(cgl_mark *mark, const cgl_mark *now);
/* The clock's stream was made to wait for what the mark covers. */
void cgl_clock_merge(cgl_clock *clock, const cgl_mark *mark);
/* Bracket a wait of the host for the stream: begin returns a tick, and waited
   notes that work of lower ticks is over. */
static inline uint64_t cgl_clock_begin_wait(cgl_clock *clock) {
  return atomic_fetch_add(&clock->tick, 1) + 1;
}
void cgl_clock_waited(cgl_clock *clock, uint64_t tick);

/* Makes later work of `stream` wait for all work issued on `before`, or, when
   that stream captures, issued before its capture.  Waits for the device when
   the clock is lost.  `stream` must not capture.
   cuEventRecord, cuStreamWaitEvent */
cgl_status cgl_clock_order(cgl_stream *stream, cgl_clock *before,
                           const char *operation);

/* The stream is about to capture: its event covers what was issued so far.
   cuEventRecord */
cgl_status cgl_clock_hold(cgl_clock *clock, cgl_context *context,
                          const char *operation);
/* The capture is over, or never began. */
void cgl_clock_unhold(cgl_clock *clock);
/* The last reference to the stream is gone: an engine may destroy its stream
   from now on, and a stream of ours is destroyed right after.  cuEventRecord */
void cgl_clock_retire(cgl_clock *clock, cgl_context *context);

#endif
