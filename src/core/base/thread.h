/* What the core keeps for each thread: its place in the script, its failure,
   its latest launches, and how many objects it made.
   Invariant: a thread without memory for it shares the spare one with others
   in that state, which says less about failures and is never listed. */
#ifndef CGL_BASE_THREAD_H
#define CGL_BASE_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "cgraphlua.h"
#include "driver/thread.h"

enum { CGL_KNOWN_FILES = 4, CGL_LATEST_LAUNCHES = 8 };

typedef struct cgl_site {
  const char *file; /* interned: lives as long as the process */
  int line;
} cgl_site;

/* Numbers of the kinds of objects, for counting: those of the C API, then one
   for all objects that only the library itself makes. */
enum {
#define X(noun) CGL_OBJECT_##noun,
  CGL_OBJECTS(X)
#undef X
      CGL_OBJECT_INTERNAL,
  CGL_OBJECT_COUNT
};

/* Objects that a thread made, less those that it tore down.  Per thread, so
   that counting shares no memory. */
typedef struct cgl_live_counts {
  struct cgl_live_counts *next; /* in the list of all threads */
  bool listed;
  atomic_int_fast64_t count[CGL_OBJECT_COUNT]; /* this thread writes */
} cgl_live_counts;

typedef struct cgl_thread {
  CGL_THREAD_APART cgl_site site;     /* cgl_set_site */
  const char *known[CGL_KNOWN_FILES]; /* files of the last sites, interned */
  unsigned latest;                    /* of them */
  unsigned nlaunches;                 /* since the device was waited for */
  struct {
    const char *name; /* interned */
    cgl_site site;
  } launches[CGL_LATEST_LAUNCHES]; /* a ring */
  cgl_live_counts live;
  struct cgl_failure *failure; /* error.c; made at first use */
  bool draining;               /* the teardown list */
  int following;               /* depth of cgl_fail_follow */
  int quiet;                   /* depth of cgl_fail_quiet */
  cgl_status noted;            /* of the failure noted last */
} cgl_thread;

extern CGL_THREAD_LOCAL cgl_thread *cgl_thread_here; /* NULL until needed */
extern cgl_thread cgl_thread_spare;
cgl_thread *cgl_thread_make(void);
/* The calling thread's, or the spare one; never NULL. */
static inline cgl_thread *cgl_thread_own(void) {
  cgl_thread *own = cgl_thread_here;
  return own ? own : cgl_thread_make();
}

/* Adds the counts of a thread that ends to those of ended threads. */
void cgl_live_end_thread(cgl_live_counts *counts);
void cgl_error_end_thread(struct cgl_failure *failure); /* frees it */

#endif
