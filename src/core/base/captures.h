/* Captures underway in the process, and what they forbid.
   Idea: a capture only records, so waiting, querying and destroying break it;
   whoever is about to do so asks here first.
   Invariants: the list and the count change under the lock that a teardown
   holds (object.h); serials grow and are never reused. */
#ifndef CGL_BASE_CAPTURES_H
#define CGL_BASE_CAPTURES_H

#include <pthread.h>

#include "core/base/error.h"
#include "driver/table.h"

/* The part of a capture that the whole process knows. */
typedef struct cgl_underway {
  struct cgl_underway *next;
  uint64_t serial; /* unique in the process, from 1 */
  pthread_t thread;
  cgl_capture_mode mode;
  const cgl_pool *pool; /* that it allocates from */
  cgl_site begun;
} cgl_underway;

/* Enters a capture that is about to begin, after any teardown that runs.
   CGL_ERROR_CAPTURE_STATE when another capture allocates from the same pool,
   which would leave open whose scratch a block is. */
cgl_status cgl_captures_begin(cgl_underway *capture, const char *operation);
/* The capture is over, or never began: takes it from the list, so that another
   capture into its pool may begin; teardowns still wait. */
void cgl_captures_leave(cgl_underway *capture);
/* Lets teardowns run again, and runs them. */
void cgl_captures_end(void);
int cgl_captures_underway(void);
/* The capture of a serial, or NULL when it is over. */
cgl_underway *cgl_captures_find(uint64_t serial);

/* Overlapping captures can starve teardown: before a capture begins while very
   many dead objects wait, lets the captures underway end first, 20 ms at the
   most.  Nothing when the thread has a capture underway itself.  The caller
   holds no lock. */
void cgl_captures_await(void);

/* Keeps captures from beginning, for calls that would break them; false when a
   capture is underway (or, unless `patient`, when another thread holds: then a
   caller may hold locks that a teardown wants). */
bool cgl_captures_hold(bool patient);
/* The same although captures are underway. */
void cgl_captures_freeze(void);
void cgl_captures_unhold(void);

/* Refuses a call that waits or queries where that would break a capture:
   `captured`, that the stream at hand is part of a capture, a capture of this
   thread, or any in global mode. */
cgl_status cgl_captures_check_wait(bool captured, const char *operation);

/* While captures are underway, brackets calls that are harmless to them but
   that the driver bars: the thread's capture mode is relaxed in between.
   cuThreadExchangeStreamCaptureMode */
typedef struct cgl_relaxed {
  bool active;
  CUstreamCaptureMode before;
} cgl_relaxed;

cgl_relaxed cgl_captures_relax(cgl_context *context);
void cgl_captures_unrelax(cgl_context *context, cgl_relaxed relaxed);

#endif
