/* Streams and events, and what a capture needs to know of them.
   Invariant: `capture` is the graph whose capture the stream is part of, from
   the begin or the fork until the capture ends, and NULL otherwise; an event's
   `capture` is the serial of the capture in which it was last recorded. */
#ifndef CGL_CORE_STREAM_H
#define CGL_CORE_STREAM_H

#include "core/stream/clock.h"
#include "core/base/base.h"

struct cgl_stream {
  cgl_object object;
  CUstream handle;
  bool owned;              /* destroyed with the object */
  bool shown;              /* somebody else has its handle */
  uint64_t serial;         /* unique in the process, from 1 */
  cgl_clock *clock;        /* retained; of the context's default stream: one */
  cgl_graph *capture;      /* borrowed: the capture owns its streams */
  cgl_site forked;         /* where it joined the capture, if by a fork */
  uint64_t issued, joined; /* count of the capture's operations when this
                              stream issued its last one, and up to where
                              another stream of the capture waited for it */
  cgl_stream *next_in_capture;
};

struct cgl_event {
  cgl_object object;
  CUevent handle;
  bool timing, recorded;
  bool external;    /* in a capture: nodes instead of forks and joins */
  uint64_t capture; /* serial of the capture of the last record; 0: none */
  uint64_t issued;  /* the recorded stream's count at that record */
  uint64_t stream;  /* serial of the recorded stream */
  cgl_mark mark;    /* what waiting for it covers */
  bool lent;        /* others may record it: nothing is known of it */
};

/* Refuses a call that waits or queries when it would break a capture: of
   `stream` (may be NULL), of this thread, or anybody's in global mode. */
cgl_status cgl_check_may_wait(const cgl_stream *stream, const char *operation);

#endif
