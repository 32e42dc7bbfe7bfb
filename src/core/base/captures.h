/* Captures underway in the process, and what they forbid.
   Idea: a capture only records, so a wait, a query or the end of an object
   breaks it; such calls ask here first.
   Invariants: the list and the count change under the lock that a teardown
   holds (object.h); serials grow and are never reused. */
#ifndef CGL_BASE_CAPTURES_H
#define CGL_BASE_CAPTURES_H

#include <pthread.h>

#include "core/base/error.h"
#include "driver/table.h"

/* What the whole process knows of a capture. */
typedef struct cgl_underway {
  struct cgl_underway *next;
  uint64_t serial; /* unique in the process, from 1 */
  uint64_t born;   /* serial of the graph's capture: of a body, the outermost */
  bool body; /* of a conditional node: in the pool of the capture around */
  pthread_t thread;
  cgl_capture_mode mode;
  const cgl_pool *pool; /* the pool that it allocates from */
  cgl_site begun;
} cgl_underway;

/* Adds a capture that is about to begin; waits for a teardown that runs.
   CGL_ERROR_CAPTURE_STATE when another capture allocates from the same pool:
   scratch belongs to one capture. */
cgl_status cgl_captures_begin(cgl_underway *capture, const char *operation);
/* Removes a capture that is over, or never began, so that another capture into
   its pool may begin; teardowns still wait for cgl_captures_end. */
void cgl_captures_remove(cgl_underway *capture);
/* Lets teardowns run again, and runs them. */
void cgl_captures_end(void);
int cgl_captures_underway(void);
/* Where the body that this thread captures began; no file: it captures none. */
cgl_site cgl_captures_body(void);
/* The capture of a serial, or NULL when it is over. */
cgl_underway *cgl_captures_find(uint64_t serial);

/* Overlapping captures can starve teardown: with very many dead objects, waits
   up to 20 ms for the captures underway to end.  Does nothing when this thread
   captures.  The caller holds no lock. */
void cgl_captures_await(void);

/* Keeps captures from beginning, for calls that would break them; false when a
   capture is underway.  With `patient`, waits for other threads that hold, so
   the caller holds no lock that a teardown takes; else false then, too. */
bool cgl_captures_hold(bool patient);
/* Keeps further captures from beginning, whether captures are underway or not.
 */
void cgl_captures_freeze(void);
void cgl_captures_unhold(void);

/* Refuses a call that waits or queries where that would break a capture: the
   stream is part of a capture (`captured`), this thread captures, or any thread
   captures in global mode.  Messages name the line where the capture began. */
cgl_status cgl_captures_check_wait(bool captured, const char *operation);
/* The same for a call that is made relaxed: no other thread's capture forbids
   it. */
cgl_status cgl_captures_check_own(bool captured, const char *operation);
/* Fails for a call that needs the whole device, after cgl_captures_hold was
   false: cannot `what`; `instead` is the hint when another thread captures. */
cgl_status cgl_captures_fail_device(const char *operation, const char *what,
                                    const char *instead);

/* Bracket calls that are harmless to captures underway, but that the driver
   refuses: the thread's capture mode is relaxed in between.
   cuThreadExchangeStreamCaptureMode */
typedef struct cgl_relaxed {
  bool active;
  CUresult result; /* why it is not active; 0: nothing asked for it */
  CUstreamCaptureMode before;
} cgl_relaxed;

cgl_relaxed cgl_captures_relax(cgl_context *context);
/* Relaxes also when no capture is underway, for a call during which one may
   begin. */
cgl_relaxed cgl_captures_relax_always(cgl_context *context);
void cgl_captures_unrelax(cgl_context *context, cgl_relaxed relaxed);

#endif
