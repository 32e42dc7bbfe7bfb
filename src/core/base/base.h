/* What the rooms of the core share: objects, failures, contexts.
   Glossary.  object: the reference count, kind and context that every handle
   of the C API begins with.  dead list: objects whose count reached zero and
   whose teardown needs the driver.  site: the script's file and line.
   Invariants: destroying memory, modules or executables breaks captures, so
   the dead list is emptied only while no capture is underway in the process
   (cgl_objects_drain), and a capture begins only when no teardown is running;
   an object on the dead list has no references and is on it once. */
#ifndef CGL_CORE_CORE_H
#define CGL_CORE_CORE_H

#include <pthread.h>
#include <stdatomic.h>

#include "cgraphlua.h"
#include "driver/table.h"

typedef struct cgl_hook cgl_hook;
typedef struct cgl_scope cgl_scope;

typedef enum cgl_kind_of_object {
#define X(noun) CGL_OBJECT_##noun,
  CGL_OBJECTS(X)
#undef X
      CGL_OBJECT_COUNT
} cgl_object_kind;

typedef struct cgl_object {
  atomic_int references;
  uint8_t kind;                  /* a cgl_object_kind */
  bool guest;                    /* what it owns keeps the context */
  cgl_context *context;          /* retained; a context's own is NULL */
  struct cgl_object *next;       /* on the dead list */
  _Atomic(uint64_t) retained_by; /* serial of the last capture that kept it */
} cgl_object;

/* ---- object.c ---- */

/* Starts an object with one reference; retains the context, counts it live. */
void cgl_object_init(cgl_object *object, cgl_object_kind kind,
                     cgl_context *context);
/* A guest is about to lose what keeps the context: it retains it. */
void cgl_object_unguest(cgl_object *object);
void cgl_object_retain(cgl_object *object);
/* False when the last reference is gone already: the object may wait on the
   dead list. */
bool cgl_object_try_retain(cgl_object *object);
/* Drops a reference; the last one tears down now or hands over for later. */
void cgl_object_release(cgl_object *object);
/* Tears down what waits, unless a capture is underway in the process. */
void cgl_objects_drain(void);
/* For want of memory: tears down the dead graphs and pools of the context
   although captures are underway, with the thread's capture mode relaxed, in
   which the driver lets memory and executables go.  Holds no lock before. */
void cgl_objects_reclaim(cgl_context *context);
/* A capture begins (waits for a running teardown) and ends (drains). */
void cgl_captures_begin(void);
/* Threads that capture in turn without a pause leave no moment for the dead.
   Whether so many wait that a capture about to begin had better let those
   underway end, and the waiting for it: some milliseconds at the most, holding
   no lock and having no capture of its own. */
bool cgl_captures_crowd(void);
void cgl_captures_await(void);
void cgl_captures_end(void);
int cgl_captures_underway(void);
/* Keeps captures from beginning, for waits that would break them; false when
   one is underway (or, unless `patient`, when somebody else is at it: then a
   caller may hold locks that a teardown wants). */
bool cgl_captures_hold(bool patient);
void cgl_captures_unhold(void);

/* The last reference to a stream is gone; no driver calls, a teardown
   follows. */
void cgl_stream_retire(cgl_stream *stream);
/* Teardown of each kind: driver calls allowed, frees the memory. */
#define X(noun) void cgl_##noun##_destroy(cgl_##noun *noun);
CGL_OBJECTS(X)
#undef X

/* ---- tally.c ---- */

/* Objects of every kind, as one thread counts them: what it made less what it
   tore down, so that counting shares no memory with other threads. */
typedef struct cgl_tally {
  struct cgl_tally *next; /* of all threads', under a lock */
  bool listed;
  atomic_int_fast64_t count[CGL_OBJECT_COUNT]; /* this thread writes */
} cgl_tally;

extern _Thread_local cgl_tally cgl_tally_here;
/* Lists the thread's tally, or counts where all threads can. */
void cgl_tally_first(cgl_object_kind kind, int by);
/* Counts an object that is made (1) or torn down (-1). */
static inline void cgl_tally_add(cgl_object_kind kind, int by) {
  if (!cgl_tally_here.listed) {
    cgl_tally_first(kind, by);
    return;
  }
  atomic_int_fast64_t *count = &cgl_tally_here.count[kind];
  atomic_store_explicit(count,
                        atomic_load_explicit(count, memory_order_relaxed) + by,
                        memory_order_relaxed);
}

/* cgl_object_init for an object that owns something which keeps the context,
   and need not count on it itself. */
static inline void cgl_object_init_guest(cgl_object *object,
                                         cgl_object_kind kind,
                                         cgl_context *context) {
  atomic_init(&object->references, 1);
  atomic_init(&object->retained_by, 0);
  object->kind = kind;
  object->context = context;
  object->guest = true;
  object->next = NULL;
  cgl_tally_add(kind, 1);
}

/* ---- error.c ---- */

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
/* From on to off, failures of the thread are what followed: when one is noted
   already it stays, and they are added to its `also`.  Nests. */
void cgl_fail_follow(bool on);
/* Notes a driver's answer to `entry`; CGL_OK when it was success. */
cgl_status cgl_fail_driver(cgl_context *context, CUresult result,
                           const char *operation, const char *entry);
void cgl_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

typedef struct cgl_site {
  const char *file; /* interned: lives as long as the process */
  int line;
} cgl_site;

/* Where the calling thread is: cgl_set_site. */
extern _Thread_local cgl_site cgl_site_here;
/* "file:line" of a site, or "an unknown place"; valid until the thread's
   eighth next call. */
const char *cgl_site_text(cgl_site site);
/* An equal string that lives as long as the process. */
const char *cgl_intern(const char *text);

/* ---- trail.c ---- */

/* Notes a launch of this thread; `name` is interned. */
void cgl_trail_add(const char *name);
/* The device was waited for and all was well: nothing noted so far failed. */
void cgl_trail_clear(void);
/* "kernel launched at file:line, ..." of the latest launches, or of those
   whose kernel `told` (may be NULL) names; "" when there were none. */
void cgl_trail_write(char *text, size_t size, const char *told);

/* ---- context.c ---- */

struct cgl_context {
  cgl_object object;
  const cgl_driver *driver;
  CUdevice device;
  CUcontext handle;
  cgl_device_info info;
  uint64_t serial; /* unique in the process; never reused */
  int block_max[3], grid_max[3];
  int shared_max;       /* bytes of shared memory a block may opt in to */
  pthread_mutex_t lock; /* guards `link`, `pools`, `spare`; before a pool's */
  CUstream link;        /* waits for copies that other devices run; lazily */
  cgl_pool *pool;       /* serves what no capture asks for; made lazily */
  cgl_pool *pinned;     /* the same of page-locked host memory */
  cgl_pool *pools;      /* all that there are; under the lock */
  struct cgl_clock *default_clock; /* of its default stream; lazily */
  struct { /* pools that work in flight may use; under the lock */
    cgl_pool *first;
    size_t count, bytes;
    bool closed; /* the context goes: no more */
  } limbo;
  struct cgl_recording *spare; /* arrays for the next capture, see capture.h;
                                  under the lock; lazily */
  _Atomic(struct cgl_fills *) fills; /* kernels of generators; lazily */
  /* Waits for the whole device are numbered: begun so far, and the highest
     that has completed. */
  atomic_uint_fast64_t waits_begun, waits_done;
};

/* The context that this thread made current last, by serial: a number is never
   reused, a pointer may be. */
extern _Thread_local uint64_t cgl_context_current;
cgl_status cgl_context_switch(cgl_context *context, const char *operation);
/* Makes the context current on this thread.  cuCtxSetCurrent */
static inline cgl_status cgl_context_enter(cgl_context *context,
                                           const char *operation) {
  return cgl_context_current == context->serial
             ? CGL_OK
             : cgl_context_switch(context, operation);
}
/* Drops a reference; true when it was the last. */
bool cgl_context_drop(cgl_context *context);
/* Waits for the device without asking whether captures allow it. */
CUresult cgl_context_wait(cgl_context *context);
/* The number of the first wait that is sure to cover what was issued by now,
   and whether wait `number` is over. */
uint64_t cgl_context_next_wait(const cgl_context *context);
bool cgl_context_waited(const cgl_context *context, uint64_t number);

#define cgl_driver_of(object_) ((object_)->object.context->driver)

/* ---- argument checks ---- */

/* CGL_ERROR_WRONG_DEVICE unless both belong to one context. */
cgl_status cgl_check_device(const cgl_object *a, const cgl_object *b,
                            const char *operation);

#endif
