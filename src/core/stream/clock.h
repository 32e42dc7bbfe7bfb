/* Clocks of streams: what is known to come before what, without asking the
   driver.
   Idea: every record of an event advances its stream's tick, so "issued at
   tick t" is covered by each event recorded at a later tick.  A stream that
   waits for an event has then seen what the event's stream had issued and had
   seen itself; a wait of the host makes ticks done.
   Glossary.  mark: what an event's record covers.  seen: the streams a stream
   comes after, each up to a tick; only the latest few are kept, and to forget
   one costs no more than a wait that was not needed.  retired: the stream's
   object is gone.
   Invariants: a clock never claims an order that does not hold; ticks only
   grow.  Work inside a capture has no tick: its order is the graph's. */
#ifndef CGL_STREAM_CLOCK_H
#define CGL_STREAM_CLOCK_H

#include "core/base/base.h"

enum { CGL_CLOCK_SEEN = 8 };

typedef struct cgl_tick {
  uint64_t clock; /* its serial; 0: nothing */
  uint64_t tick;
} cgl_tick;

typedef struct cgl_clock {
  atomic_int references, watchers; /* all; those that never ask for an order */
  uint64_t serial;                 /* the stream's; never reused */
  atomic_uint_fast64_t tick, done; /* work of ticks below `done` is over */
  const cgl_driver *driver;
  CUstream handle;
  bool borrowed;        /* an engine may capture the stream without our help */
  pthread_mutex_t lock; /* guards what follows */
  cgl_tick seen[CGL_CLOCK_SEEN];
  unsigned next_seen; /* where the next new entry goes */
  CUevent event;      /* lazily made */
  bool held;          /* capturing or retired: `event` stands for what was
                         issued before, and is not recorded anew */
  bool lost;          /* retired without such an event */
} cgl_clock;

/* What an event covers since its last record; all zero: nothing known. */
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
/* The same for one who only asks what the clock covers: when the stream dies
   and nobody else remembers it, no event is recorded. */
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

/* Work of `before` issued at ticks below this is sure to be over, or, where
   `clock` is not NULL, to be so before whatever it is given next.  Asks
   nobody. */
uint64_t cgl_clock_covered(cgl_clock *clock, const cgl_clock *before);
/* Whether `tick` is among them. */
bool cgl_clock_covers(cgl_clock *clock, cgl_clock *before, uint64_t tick);

/* The same, where a query of the driver may tell that it is over.
   cuStreamQuery, unless that could break a capture */
bool cgl_clock_is_over(cgl_clock *before, uint64_t tick);

/* What an event covers that is about to be recorded on the clock's stream:
   taken before the driver's call, because another thread may issue work on the
   default stream right after it.  The clock is borrowed. */
cgl_mark cgl_clock_mark(cgl_clock *clock);
/* It was recorded: `mark`, which retains the clock, is `now`. */
void cgl_mark_set(cgl_mark *mark, const cgl_mark *now);
void cgl_mark_clear(cgl_mark *mark);
/* The clock's stream was made to wait for what the mark covers. */
void cgl_clock_merge(cgl_clock *clock, const cgl_mark *mark);
/* Brackets a wait of the host for the stream: the tick to begin with, and
   that all work before it is over. */
uint64_t cgl_clock_begin_wait(cgl_clock *clock);
void cgl_clock_waited(cgl_clock *clock, uint64_t tick);

/* Makes later work of `stream` wait for all that was issued on `before`, or,
   when that one captures by now, for all before its capture; waits for the
   device when an engine's stream is gone.  `stream` must not capture.
   cuEventRecord, cuStreamWaitEvent */
cgl_status cgl_clock_order(cgl_stream *stream, cgl_clock *before,
                           const char *operation);

/* Whether that wait for the device is what it takes. */
bool cgl_clock_is_lost(cgl_clock *clock);

/* The stream is about to capture: its event covers what was issued so far.
   cuEventRecord */
cgl_status cgl_clock_hold(cgl_clock *clock, cgl_context *context,
                          const char *operation);
/* The capture is over, or never began. */
void cgl_clock_unhold(cgl_clock *clock);
/* The last reference to the stream is gone.  An engine's own stream may be
   destroyed from now on; ours is, right after a second call with `final`. */
void cgl_clock_retire(cgl_clock *clock, cgl_context *context, bool final);

#endif
