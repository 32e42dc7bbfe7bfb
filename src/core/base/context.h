/* Contexts: one opened device each, and what the rooms keep in it.
   Glossary.  part: what a room keeps per context; the context ends its parts
   and knows nothing of them.
   Invariants: a part is added once, under the context's lock, and ended when
   the context ends, the part of the highest room first; waits for the whole
   device are numbered, and a number that is over covers all that was issued
   before the wait began. */
#ifndef CGL_BASE_CONTEXT_H
#define CGL_BASE_CONTEXT_H

#include <pthread.h>

#include "core/base/error.h"
#include "core/base/object.h"

/* A slot for every room that keeps a part, from the ground up. */
typedef enum cgl_part_slot {
  CGL_PART_STREAM,
  CGL_PART_RECORD,
  CGL_PART_POOL,
  CGL_PART_MEMORY,
  CGL_PART_RANDOM,
  CGL_PART_COUNT
} cgl_part_slot;

typedef struct cgl_part {
  void (*end)(cgl_context *context, struct cgl_part *part); /* frees it */
  void (*waited)(cgl_context *context); /* the host waited for the device */
} cgl_part;

struct cgl_context {
  cgl_object object;
  const cgl_driver *driver;
  CUdevice device;
  CUcontext handle;
  cgl_device_info info;
  uint64_t serial; /* unique in the process; never reused */
  int block_max[3], grid_max[3];
  int shared_max;       /* bytes of shared memory a block may opt in to */
  pthread_mutex_t lock; /* guards what the parts say it does; taken before the
                           lock of a pool */
  _Atomic(cgl_part *) parts[CGL_PART_COUNT];
  /* Drops a reference where a room holds one that does not count; NULL: the
     plain way. */
  bool (*_Atomic drop)(cgl_context *context);
  /* Waits for the whole device: begun so far, and the highest completed. */
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

/* The part of a room, or NULL before it was added. */
static inline cgl_part *cgl_context_part(const cgl_context *context,
                                         cgl_part_slot slot) {
  return atomic_load_explicit(&context->parts[slot], memory_order_acquire);
}
/* The part of a room, of `bytes` zeroed bytes with `end` and `waited` set when
   it is made; NULL without memory, with a failure of `operation` noted. */
cgl_part *cgl_context_make_part(cgl_context *context, cgl_part_slot slot,
                                size_t bytes, cgl_part functions,
                                const char *operation);

/* Waits for the device without asking whether captures allow it. */
CUresult cgl_context_wait(cgl_context *context);
/* The number of the first wait that is sure to cover what was issued by now. */
uint64_t cgl_context_next_wait(const cgl_context *context);
/* Whether wait `number` is over. */
bool cgl_context_waited(const cgl_context *context, uint64_t number);

#define cgl_driver_of(object_) ((object_)->object.context->driver)

/* CGL_ERROR_WRONG_DEVICE unless both belong to one context. */
cgl_status cgl_object_check_device(const cgl_object *a, const cgl_object *b,
                                   const char *operation);

#endif
