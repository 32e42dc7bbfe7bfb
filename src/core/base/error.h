/* Failures of a thread, sites in scripts, and the log.
   Invariant: a failure is noted once, where it is found, and returned as a
   status; texts stay valid until the thread's next failure. */
#ifndef CGL_BASE_ERROR_H
#define CGL_BASE_ERROR_H

#include "cgraphlua.h"
#include "core/base/thread.h"
#include "driver/table.h"

/* Notes a failure of the thread and returns its status.  `operation` is
   static text such as "buffer:upload". */
cgl_status cgl_fail(cgl_status status, const char *operation,
                    const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Replaces the hint of the failure just noted, and returns its status. */
cgl_status cgl_fail_hint(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
/* Replaces where the failure just noted happened. */
void cgl_fail_where(const char *file, int line);
/* From on to off, failures are consequences of the failure noted before: they
   are added to its `also`.  Nests. */
void cgl_fail_follow(bool on);
/* From on to off, failures are not noted: the caller does without what failed,
   and says nothing.  Nests. */
void cgl_fail_quiet(bool on);
/* Notes a driver's answer to `entry`; CGL_OK when it was success. */
cgl_status cgl_fail_driver(cgl_context *context, CUresult result,
                           const char *operation, const char *entry);
/* Whether a driver answers so when a kernel failed and its context is lost. */
bool cgl_error_loses_device(CUresult result);

/* ---- log.c: messages that are no failures ---- */

typedef struct cgl_log_receiver {
  cgl_log_function function; /* NULL: none */
  void *user;
} cgl_log_receiver;

/* The calling thread's site in the script: cgl_set_site. */
#define cgl_site_here (cgl_thread_own()->site)
/* "file:line" of a site, or "an unknown place"; valid until the thread's
   eighth next call. */
const char *cgl_site_text(cgl_site site);
/* An equal string that lives as long as the process. */
const char *cgl_intern(const char *text);

/* ---- launches.c: what the thread launched last ---- */

/* Notes a launch of this thread; `name` is interned. */
void cgl_launches_add(const char *name);
/* Forgets the launches: a wait for the device has not failed. */
void cgl_launches_clear(void);
/* "kernel launched at file:line, ..." of the latest launches; only of the
   kernels that the text `failure` names, if it names any (NULL: none); "" when
   nothing was launched. */
void cgl_launches_write(char *text, size_t size, const char *failure);

/* ---- nvtx.c: ranges for profilers ---- */

/* Whether this build can name ranges for profilers. */
bool cgl_nvtx_available(void);
/* A range of the calling thread, in the domain "cgraphlua": nvtxRangePushEx,
   nvtxRangePop.  Nothing without a profiler. */
void cgl_nvtx_push(const char *name);
void cgl_nvtx_pop(void);

#endif
