/* The captures underway in the process. */
#include "core/base/base.h"

#include <time.h>

/* Held while objects are torn down, and for the moment a capture begins. */
static pthread_mutex_t teardown = PTHREAD_MUTEX_INITIALIZER;
static atomic_int ncaptures;

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
CGL_FORK_HOLDS(list_lock)
static cgl_underway *captures;   /* under list_lock */
static uint64_t next_serial = 1; /* under list_lock */

/* With more dead objects than `bearable`, a new capture waits for the captures
   underway to end. */
enum { BEARABLE = 1000, PATIENCE = 20 /* ms */, NAPS_PER_MS = 10 };
static atomic_long bearable = BEARABLE;


cgl_status cgl_captures_begin(cgl_underway *capture, const char *operation) {
  cgl_captures_freeze();
  pthread_mutex_lock(&list_lock);
  const cgl_underway *other = capture->body ? NULL : captures;
  while (other && other->pool != capture->pool)
    other = other->next;
  const cgl_site begun = other ? other->begun : capture->begun;
  if (!other) {
    atomic_fetch_add(&ncaptures, 1);
    capture->serial = next_serial++;
    if (!capture->body)
      capture->born = capture->serial;
    capture->next = captures;
    captures = capture;
  }
  pthread_mutex_unlock(&list_lock);
  cgl_captures_unhold();
  if (!other)
    return CGL_OK;
  cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
           "the pool serves another capture already, begun at %s: two "
           "captures into one pool at once are not possible",
           cgl_site_text(begun));
  return cgl_fail_hint("end that capture first, or give one of the graphs a "
                       "pool of its own");
}


void cgl_captures_remove(cgl_underway *capture) {
  pthread_mutex_lock(&list_lock);
  cgl_underway **link = &captures;
  while (*link && *link != capture)
    link = &(*link)->next;
  if (*link)
    *link = capture->next;
  pthread_mutex_unlock(&list_lock);
}


void cgl_captures_end(void) {
  atomic_fetch_sub(&ncaptures, 1);
  cgl_objects_drain();
  if (!cgl_objects_waiting())
    atomic_store(&bearable, BEARABLE);
}


/* Captures of the other threads never end here. */
void cgl_captures_leave_parent(void) {
  pthread_mutex_init(&teardown, NULL);
  for (cgl_underway **link = &captures; *link;)
    if (pthread_equal((*link)->thread, pthread_self()))
      link = &(*link)->next;
    else {
      *link = (*link)->next;
      atomic_fetch_sub(&ncaptures, 1);
    }
}


int cgl_captures_underway(void) {
  return atomic_load(&ncaptures);
}


cgl_site cgl_captures_body(void) {
  cgl_site begun = {NULL, 0};
  pthread_mutex_lock(&list_lock);
  for (const cgl_underway *c = captures; c && !begun.file; c = c->next)
    if (c->body && pthread_equal(c->thread, pthread_self()))
      begun = c->begun.file ? c->begun : (cgl_site){"an unknown place", 0};
  pthread_mutex_unlock(&list_lock);
  return begun;
}


cgl_underway *cgl_captures_find(uint64_t serial) {
  pthread_mutex_lock(&list_lock);
  cgl_underway *capture = captures;
  while (capture && capture->serial != serial)
    capture = capture->next;
  pthread_mutex_unlock(&list_lock);
  return capture;
}


/* Of the captures underway, one of this thread and one of another, in the
   modes that forbid a wait; the file is NULL without such a capture. */
typedef struct forbidding {
  cgl_site own, other;
} forbidding;


static forbidding captures_forbidding(bool any_mode) {
  forbidding found = {{NULL, 0}, {NULL, 0}};
  const cgl_site unknown = {"an unknown place", 0};
  pthread_mutex_lock(&list_lock);
  for (const cgl_underway *c = captures; c; c = c->next) {
    const cgl_site begun = c->begun.file ? c->begun : unknown;
    const bool mine = pthread_equal(c->thread, pthread_self());
    if (mine && (any_mode || c->mode != CGL_CAPTURE_RELAXED))
      found.own = begun;
    else if (!mine && (any_mode || c->mode == CGL_CAPTURE_GLOBAL))
      found.other = begun;
  }
  pthread_mutex_unlock(&list_lock);
  return found;
}


static cgl_status captures_fail_own(cgl_site begun, const char *operation) {
  cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
           "cannot wait for or query work while this thread captures%s%s: a "
           "capture only records, and the call would break it",
           begun.file ? ", since " : "",
           begun.file ? cgl_site_text(begun) : "");
  return cgl_fail_hint("do this before the capture begins or after it has "
                       "ended");
}


cgl_status cgl_captures_check_own(bool captured, const char *operation) {
  if (!captured && !cgl_captures_underway())
    return CGL_OK;
  const forbidding found = captures_forbidding(false);
  return captured || found.own.file ? captures_fail_own(found.own, operation)
                                    : CGL_OK;
}


cgl_status cgl_captures_check_wait(bool captured, const char *operation) {
  cgl_status status = cgl_captures_check_own(captured, operation);
  if (status || !cgl_captures_underway())
    return status;
  const forbidding found = captures_forbidding(false);
  if (!found.other.file)
    return CGL_OK;
  cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
           "cannot wait for or query work while another thread captures in "
           "global mode, since %s: the call would break that capture",
           cgl_site_text(found.other));
  return cgl_fail_hint("let the other thread capture in thread_local mode");
}


cgl_status cgl_captures_fail_device(const char *operation, const char *what,
                                    const char *instead) {
  const forbidding found = captures_forbidding(true);
  const cgl_site begun = found.own.file ? found.own : found.other;
  cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
           "cannot %s while a capture is underway (%s, since %s): a capture "
           "only records, and waiting for the device would break it",
           what, found.own.file ? "this thread's" : "another thread's",
           cgl_site_text(begun));
  return cgl_fail_hint("%s", found.own.file
                                 ? "do this before the capture begins or "
                                   "after it has ended"
                                 : instead);
}


static bool thread_captures(void) {
  pthread_mutex_lock(&list_lock);
  const cgl_underway *capture = captures;
  while (capture && !pthread_equal(capture->thread, pthread_self()))
    capture = capture->next;
  pthread_mutex_unlock(&list_lock);
  return capture;
}


/* Whether so many objects wait for their teardown that a new capture should let
   the captures underway end first. */
static bool teardown_is_starved(void) {
  return cgl_objects_waiting() > atomic_load(&bearable) &&
         cgl_captures_underway();
}


void cgl_captures_await(void) {
  if (!teardown_is_starved() || thread_captures())
    return;
  const struct timespec nap = {0, 1000000 / NAPS_PER_MS};
  int naps = 0;
  for (; teardown_is_starved() && naps < PATIENCE * NAPS_PER_MS; naps++)
    nanosleep(&nap, NULL);
  /* A capture that stays open for long must not slow down every other. */
  if (teardown_is_starved())
    atomic_store(&bearable, 2 * cgl_objects_waiting());
  cgl_objects_drain();
}


bool cgl_captures_hold(bool patient) {
  if (patient)
    pthread_mutex_lock(&teardown);
  else if (pthread_mutex_trylock(&teardown))
    return false;
  if (!atomic_load(&ncaptures))
    return true;
  pthread_mutex_unlock(&teardown);
  return false;
}


void cgl_captures_freeze(void) {
  pthread_mutex_lock(&teardown);
}


void cgl_captures_unhold(void) {
  pthread_mutex_unlock(&teardown);
}


cgl_relaxed cgl_captures_relax_always(cgl_context *context) {
  cgl_relaxed relaxed = {.before = CU_STREAM_CAPTURE_MODE_RELAXED};
  relaxed.result =
      context->driver->cuThreadExchangeStreamCaptureMode(&relaxed.before);
  relaxed.active = !relaxed.result;
  return relaxed;
}


cgl_relaxed cgl_captures_relax(cgl_context *context) {
  return cgl_captures_underway() ? cgl_captures_relax_always(context)
                                 : (cgl_relaxed){.active = false};
}


void cgl_captures_unrelax(cgl_context *context, cgl_relaxed relaxed) {
  if (!relaxed.active)
    return;
  /* A thread left relaxed would hide later mistakes: tries again once. */
  for (int tries = 0; tries < 2; tries++) {
    CUstreamCaptureMode mode = relaxed.before;
    if (!context->driver->cuThreadExchangeStreamCaptureMode(&mode))
      return;
  }
}
