/* The failure record of each thread, sites, interned strings. */
#include "core/base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/base/base.h"
#include "driver/waits.h"

enum { SITE_TEXTS = 8 };

typedef struct cgl_failure {
  cgl_error error;
  char where[256], hint[512], also[512], name[48], message[4096];
  char *long_message; /* a compiler's text may be long */
  char sites[SITE_TEXTS][160];
  unsigned next_site;
  bool aside; /* the latest failure was added to `also` */
} record;

static _Atomic uint64_t waits_stopped; /* failures of waits given up */
static record spare; /* of threads that got no memory for their own */

enum { BUCKETS = 1024 };

typedef struct interned {
  struct interned *next; /* of the same bucket */
  char text[];
} interned;

static pthread_mutex_t intern_lock = PTHREAD_MUTEX_INITIALIZER;
CGL_FORK_HOLDS(intern_lock)
static interned *buckets[BUCKETS]; /* under intern_lock */

/* Hints for failures of the driver. */
static const struct {
  CUresult code;
  const char *hint;
} hints[] = {
    {CUDA_ERROR_OUT_OF_MEMORY,
     "release buffers you no longer need, collect garbage, or use smaller "
     "sizes"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
     "do this before the capture begins or after it has ended"},
    {CUDA_ERROR_STREAM_CAPTURE_INVALIDATED,
     "an earlier call broke the capture: end it, fix that call, and capture "
     "again"},
    {CUDA_ERROR_STREAM_CAPTURE_MERGE,
     "a stream joins one capture only: wait for events of the same capture"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED,
     "record an event on the forked stream and let the capturing stream wait "
     "for it before the capture ends"},
    {CUDA_ERROR_STREAM_CAPTURE_ISOLATION,
     "the event was recorded before the capture: synchronize it beforehand, "
     "or record it inside"},
    {CUDA_ERROR_STREAM_CAPTURE_IMPLICIT,
     "use a stream of your own instead of the default stream while another "
     "stream captures"},
    {CUDA_ERROR_CAPTURED_EVENT,
     "an event recorded in a capture can only be waited for inside it"},
    {CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD,
     "end the capture on the thread that began it, or capture in relaxed "
     "mode"},
    {CUDA_ERROR_ILLEGAL_ADDRESS,
     "the context is lost: check the kernel's indices against the buffers' "
     "sizes; reset_device gives the host device anew, else start the program "
     "again"},
    {CUDA_ERROR_LAUNCH_TIMEOUT,
     "the context is lost: look for loops in the kernel that do not end, or "
     "give it more time; reset_device gives the host device anew"},
    {CUDA_ERROR_LAUNCH_FAILED,
     "the context is lost: look for traps, divisions by zero and barriers that "
     "not every thread of a block reaches; reset_device gives the host device "
     "anew, else start the program again"},
    {CUDA_ERROR_ASSERT, "an assert in the kernel failed; the context is lost"},
};


static const struct status_row {
  cgl_status status;
  const char *name, *text;
} statuses[] = {
#define X(name, code, text) {code, #name, text},
    CGL_ERRORS(X) CGL_CUDA_ERRORS(X)
#undef X
};


/* The row of a status; CUDA_ERROR_UNKNOWN's, the last, for any other. */
static const struct status_row *status_find(cgl_status status) {
  const struct status_row *row = statuses;
  const struct status_row *last = row + sizeof statuses / sizeof *statuses - 1;
  while (row < last && row->status != status)
    row++;
  return row;
}


const char *cgl_status_name(cgl_status status) {
  return status_find(status)->name;
}


void cgl_error_end_thread(record *r) {
  if (!r)
    return;
  free(r->long_message);
  free(r);
}


static record *record_own(void) {
  cgl_thread *thread = cgl_thread_own();
  if (!thread->failure && thread != &cgl_thread_spare)
    thread->failure = calloc(1, sizeof(record));
  return thread->failure ? thread->failure : &spare;
}


const cgl_error *cgl_last_error(void) {
  record *r = record_own();
  if (!r->error.name)
    r->error = (cgl_error){0, "CUDA_SUCCESS", "", "", "no error", "", ""};
  return &r->error;
}


const char *cgl_site_text(cgl_site at) {
  if (!at.file)
    return "an unknown place";
  record *r = record_own();
  char *text = r->sites[r->next_site++ % SITE_TEXTS];
  snprintf(text, sizeof r->sites[0], "%s:%d", at.file, at.line);
  return text;
}


void cgl_clear_error(void) {
  record_own()->error.name = NULL;
}


void cgl_fail_follow(bool on) {
  cgl_thread_own()->following += on ? 1 : -1;
}


void cgl_fail_quiet(bool on) {
  cgl_thread_own()->quiet += on ? 1 : -1;
}


/* Adds "operation: message [NAME code]" to what failed afterwards. */
static void record_add_also(record *r, cgl_status status, const char *operation,
                            const char *format, va_list args) {
  char message[sizeof r->also];
  cgl_format_into(message, sizeof message, format, args);
  size_t at = strlen(r->also);
  snprintf(r->also + at, sizeof r->also - at, "%s%s: %s [%s %d]",
           at ? "; " : "", operation, message, cgl_status_name(status), status);
}


cgl_status cgl_fail(cgl_status status, const char *operation,
                    const char *format, ...) {
  va_list args, again;
  record *r = record_own();
  cgl_thread_own()->noted = status;
  r->aside = cgl_thread_own()->quiet > 0;
  if (r->aside)
    return status;
  va_start(args, format);
  r->aside = cgl_thread_own()->following && r->error.name && r->error.code;
  if (r->aside) {
    record_add_also(r, status, operation, format, args);
    va_end(args);
    return status;
  }
  va_copy(again, args);
  const char *message = r->message;
  int length = cgl_format_into(r->message, sizeof r->message, format, args);
  char *text = NULL;
  if (length >= (int)sizeof r->message && (text = malloc((size_t)length + 1))) {
    cgl_format_into(text, (size_t)length + 1, format, again);
    free(r->long_message);
    message = r->long_message = text;
  }
  va_end(again);
  va_end(args);
  r->where[0] = r->hint[0] = r->also[0] = 0;
  const cgl_site here = cgl_site_here;
  if (here.file)
    snprintf(r->where, sizeof r->where, "%s:%d", here.file, here.line);
  r->error = (cgl_error){
      status, cgl_status_name(status), operation, r->where, message, r->hint,
      r->also};
  return status;
}


cgl_status cgl_fail_hint(const char *format, ...) {
  record *r = record_own();
  va_list args;
  va_start(args, format);
  if (!r->aside)
    cgl_format_into(r->hint, sizeof r->hint, format, args);
  va_end(args);
  return cgl_thread_own()->noted;
}


void cgl_fail_where(const char *file, int line) {
  record *r = record_own();
  if (file && !r->aside)
    snprintf(r->where, sizeof r->where, "%s:%d", file, line);
}


bool cgl_error_loses_device(CUresult result) {
  return result == CUDA_ERROR_ILLEGAL_ADDRESS ||
         (result >= CUDA_ERROR_HARDWARE_STACK_ERROR &&
          result <= CUDA_ERROR_LAUNCH_FAILED) ||
         result == CUDA_ERROR_ASSERT || result == CUDA_ERROR_LAUNCH_TIMEOUT;
}


/* A wait that cgl_waits_stop ended: the host device was aborted, or the work
   goes on. */
static cgl_status fail_stopped(CUresult result, const char *operation,
                               const char *more) {
  const bool aborted = result == CUDA_ERROR_LAUNCH_TIMEOUT;
  atomic_fetch_add(&waits_stopped, 1);
  cgl_fail(CGL_ERROR_INTERRUPTED, operation, "interrupted! %s",
           aborted ? more : "the work on the device goes on");
  return cgl_fail_hint(
      "%s", aborted ? "the context is lost; reset_device gives it anew, once "
                      "its objects are released"
                    : "wait again; the end of the process ends the work");
}


cgl_status cgl_fail_driver(cgl_context *context, CUresult result,
                           const char *operation, const char *entry) {
  if (result == CUDA_SUCCESS)
    return CGL_OK;
  if (result == CUDA_ERROR_NOT_INITIALIZED && cgl_fork_happened()) {
    cgl_fail(result, operation,
             "the device was opened before fork: a child of that process "
             "cannot use it (%s)",
             entry);
    return cgl_fail_hint("open the device in the worker, after the fork");
  }
  const char *name = NULL, *text = status_find(result)->text;
  if (context && !strcmp(cgl_status_name(result), "CUDA_ERROR_UNKNOWN")) {
    context->driver->cuGetErrorName(result, &name);
    context->driver->cuGetErrorString(result, &text);
  }
  const char *more = NULL;
  if (context && context->driver->failure_text)
    more = context->driver->failure_text();
  if (cgl_driver_waits_stop() &&
      (result == CUDA_ERROR_LAUNCH_TIMEOUT || result == CUDA_ERROR_TIMEOUT))
    return fail_stopped(result, operation, more ? more : "");
  char launches[400] = "";
  if (cgl_error_loses_device(result))
    cgl_launches_write(launches, sizeof launches, more);
  cgl_fail(result, operation, "%s (%s)%s%s%s%s", text, entry,
           more && *more ? ": " : "", more ? more : "",
           *launches ? "; of the last launches: " : "", launches);
  record *r = record_own();
  if (name && !r->aside) {
    snprintf(r->name, sizeof r->name, "%s", name);
    r->error.name = r->name;
  }
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
    if (hints[i].code == result)
      cgl_fail_hint("%s", hints[i].hint);
  return result;
}


const char *cgl_intern(const char *text) {
  uint32_t hash = 2166136261u;
  for (const char *at = text; *at; at++)
    hash = (hash ^ (unsigned char)*at) * 16777619u;
  pthread_mutex_lock(&intern_lock);
  interned **link = &buckets[hash % BUCKETS];
  while (*link && strcmp((*link)->text, text))
    link = &(*link)->next;
  if (!*link) {
    size_t bytes = strlen(text) + 1;
    *link = calloc(1, sizeof **link + bytes);
    if (*link)
      memcpy((*link)->text, text, bytes);
  }
  const char *found = *link ? (*link)->text : "?";
  pthread_mutex_unlock(&intern_lock);
  return found;
}


/* A script's calls come from a few files nearly always. */
void cgl_set_site(const char *file, int line) {
  cgl_thread *thread = cgl_thread_own();
  thread->site.line = line;
  if (file == thread->site.file)
    return;
  thread->site.file = NULL;
  if (!file)
    return;
  for (unsigned i = 0; i < CGL_KNOWN_FILES; i++)
    if (thread->known[i] == file) {
      thread->site.file = file;
      return;
    }
  const char *latest = thread->known[thread->latest];
  if (!latest || strcmp(latest, file)) {
    thread->latest = (thread->latest + 1) % CGL_KNOWN_FILES;
    thread->known[thread->latest] = cgl_intern(file);
  }
  thread->site.file = thread->known[thread->latest];
}


const char *cgl_site_file(void) {
  return cgl_site_here.file;
}


/* ---- waits that are given up ---- */

void cgl_waits_stop(bool stop) {
  atomic_store(&cgl_driver_waits, stop ? CGL_WAITS_STOP : CGL_WAITS_POLL);
}


uint64_t cgl_waits_stopped(void) {
  return atomic_load(&waits_stopped);
}
