/* Contexts: one opened device each.
   Glossary.  part: the data of a room for one context; the context ends its
   parts and knows only their functions.
   Invariants: a part is added once, under the context's lock, and ended with
   the context, the part of the highest room first; waits for the whole device
   are numbered, and a completed wait covers all work issued before it began;
   `issued` covers all work that was noted. */
#ifndef CGL_BASE_CONTEXT_H
#define CGL_BASE_CONTEXT_H

#include <pthread.h>
#include <stdio.h>

#include "core/base/error.h"
#include "core/base/object.h"

/* A slot for every room with a part, lower rooms first. */
typedef enum cgl_part_slot {
  CGL_PART_STREAM,
  CGL_PART_RECORD,
  CGL_PART_POOL,
  CGL_PART_MEMORY,
  CGL_PART_COPY,
  CGL_PART_RANDOM,
  CGL_PART_COUNT
} cgl_part_slot;

typedef struct cgl_part {
  void (*end)(cgl_context *context, struct cgl_part *part); /* frees it */
  void (*waited)(cgl_context *context); /* the host waited for the device */
  /* Writes a line per place in scripts that made what still lives. */
  void (*list)(cgl_context *context, FILE *text);
} cgl_part;

struct cgl_context {
  cgl_object object;
  struct cgl_context *next; /* in the list of open contexts */
  const cgl_driver *driver;
  CUdevice device;
  CUcontext handle;
  cgl_device_info info;
  uint64_t serial; /* unique in the process; never reused */
  int block_max[3], grid_max[3];
  int shared_max; /* most bytes of shared memory that a block opts in to */
  pthread_mutex_t lock; /* guards the fields of parts that say so; taken before
                           a pool's lock */
  _Atomic(cgl_part *) parts[CGL_PART_COUNT];
  /* Drops a reference and returns whether it was the last, for a room that
     holds a reference which is not to count; NULL: no such room. */
  bool (*_Atomic drop)(cgl_context *context);
  atomic_uint_fast64_t waits_begun; /* count of waits for the whole device */
  atomic_uint_fast64_t waits_done;  /* highest number of a completed wait */
  atomic_uint_fast64_t issued; /* number of the first wait that is sure to cover
                                  all work issued by now */
  cgl_log_receiver log;        /* log.c */
  bool forked;                 /* a parent of this process opened it; fork.h */
  atomic_uint streams;         /* objects of streams that are no default */
  atomic_uint_fast64_t dropped; /* number of the first wait that covers the work
                                   of all destroyed streams */
  atomic_bool shown;            /* others may issue work that nobody notes */
  atomic_uint blocked; /* threads in a call that may wait for the device */
  atomic_uint_fast64_t unblocked; /* count of such calls that have ended */
};

/* The context that this thread made current last, by serial: a number is never
   reused, a pointer may be. */
extern CGL_THREAD_LOCAL uint64_t cgl_context_current;
cgl_status cgl_context_switch(cgl_context *context, const char *operation);
/* Makes the context current on this thread.  cuCtxSetCurrent */
static inline cgl_status cgl_context_enter(cgl_context *context,
                                           const char *operation) {
  return cgl_context_current == context->serial
             ? CGL_OK
             : cgl_context_switch(context, operation);
}

/* Waits for the work of all open contexts; a failure is no matter. */
void cgl_context_synchronize_all(void);

/* The part of a room, or NULL before it was added. */
static inline cgl_part *cgl_context_part(const cgl_context *context,
                                         cgl_part_slot slot) {
  return atomic_load_explicit(&context->parts[slot], memory_order_acquire);
}
/* The part of a room; when missing, it is made with `functions` and `bytes` in
   all, zeroed.  NULL without memory, with a failure of `operation` noted. */
cgl_part *cgl_context_make_part(cgl_context *context, cgl_part_slot slot,
                                size_t bytes, cgl_part functions,
                                const char *operation);

/* Waits for the device; the caller knows that no capture forbids it.
   cuCtxSynchronize */
CUresult cgl_context_wait(cgl_context *context);
/* Waits for a stream of the context.  cuStreamSynchronize */
CUresult cgl_context_wait_stream(cgl_context *context, CUstream stream);
/* Bracket a call that waits for the device, or may, as when launches fill its
   queue: another thread sees that no such call ends. */
static inline void cgl_context_block(cgl_context *context) {
  atomic_fetch_add_explicit(&context->blocked, 1, memory_order_relaxed);
}
static inline void cgl_context_unblock(cgl_context *context) {
  atomic_fetch_add_explicit(&context->unblocked, 1, memory_order_relaxed);
  atomic_fetch_sub_explicit(&context->blocked, 1, memory_order_relaxed);
}
/* Bracket waits of the host for all streams of the context, one by one: they
   count as a wait for the device, unless `end` is left out. */
uint64_t cgl_context_begin_wait(cgl_context *context);
void cgl_context_end_wait(cgl_context *context, uint64_t number);
/* Counts work beyond the waits that have begun. */
void cgl_context_count_work(cgl_context *context, uint64_t number);
/* Notes that work was issued, just now. */
static inline void cgl_context_note_work(cgl_context *context) {
  uint64_t number =
      atomic_load_explicit(&context->waits_begun, memory_order_relaxed) + 1;
  if (atomic_load_explicit(&context->issued, memory_order_relaxed) < number)
    cgl_context_count_work(context, number);
}
/* Others get a handle or an address, and may issue work from now on. */
void cgl_context_show(cgl_context *context);
/* The number of the first wait that is sure to cover all work issued by now; a
   completed wait when no work was issued since. */
static inline uint64_t cgl_context_next_wait(const cgl_context *context) {
  return atomic_load_explicit(&context->issued, memory_order_acquire);
}
/* Whether wait `number`, or a later one, has completed. */
bool cgl_context_waited(const cgl_context *context, uint64_t number);

#define cgl_driver_of(object_) ((object_)->object.context->driver)

/* CGL_ERROR_WRONG_DEVICE unless both belong to one context. */
cgl_status cgl_object_check_device(const cgl_object *a, const cgl_object *b,
                                   const char *operation);

#endif
