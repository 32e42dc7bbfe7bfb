/* Objects: what every handle of the C API begins with, and how objects end.
   Glossary.  kind: the table of functions of one type of object.  teardown
   list: dead objects whose end calls the driver.  dead: of an object: without
   references.  abandon: to give up what needs no driver, at the last release.
   reclaimable: of a dead object: its end returns device memory.
   Invariants: destroying memory, modules or executables breaks captures, so
   the teardown list is emptied only while no capture is underway in the
   process (captures.h), and a capture begins only while no teardown runs; an
   object is on the list once; every object keeps its context, itself or through
   something that it owns. */
#ifndef CGL_BASE_OBJECT_H
#define CGL_BASE_OBJECT_H

#include <stdatomic.h>

#include "cgraphlua.h"
#include "core/base/thread.h"

typedef struct cgl_object cgl_object;

/* What a kind of object does at its end, and what others may ask of it.  A
   NULL function means no. */
typedef struct cgl_object_kind {
  uint8_t number; /* CGL_OBJECT_... */
  bool light;     /* its end calls no driver */
  bool findable;  /* lists hold it without a reference: cgl_object_try_retain */
  void (*destroy)(cgl_object *object); /* frees it; may call the driver */
  void (*abandon)(cgl_object *object); /* right after the last release; must
                                          not call the driver */
  bool (*drop)(cgl_object *object);    /* drops a reference; true: the last */
  /* Whether the end of a dead object returns device memory and runs no code of
     the script: it may then end while captures are underway. */
  bool (*is_reclaimable)(const cgl_object *object);
  /* The memory of the object: address and bytes. */
  bool (*extent)(const cgl_object *object, uint64_t *address, size_t *bytes);
  /* The pool takes the object's block back; false: a capture keeps it. */
  bool (*take_block)(cgl_object *object);
} cgl_object_kind;

struct cgl_object {
  atomic_int references;
  bool borrows_context; /* something that it owns keeps the context */
  const cgl_object_kind *kind;
  cgl_context *context; /* retained unless it is borrowed; NULL in a context */
  union {
    _Atomic(uint64_t) retained_by; /* serial of the last capture that kept it */
    cgl_object *next;              /* dead: on the teardown list */
  };
};

/* Starts an object with one reference; retains the context, counts it live. */
void cgl_object_init(cgl_object *object, const cgl_object_kind *kind,
                     cgl_context *context);
/* Retains a context that was borrowed. */
void cgl_object_keep_context(cgl_object *object);
void cgl_object_retain(cgl_object *object);
/* False when the last reference is gone already. */
bool cgl_object_try_retain(cgl_object *object);
/* Drops a reference; the last release tears down now or queues for later. */
void cgl_object_release(cgl_object *object);
/* Tears down the teardown list, unless a capture is underway. */
void cgl_objects_drain(void);
/* Length of the teardown list. */
long cgl_objects_waiting(void);
/* Out of memory: tears down the reclaimable objects of the context although
   captures are underway, with the thread's capture mode relaxed, in which the
   driver frees memory and executables.  The caller holds no lock. */
void cgl_objects_reclaim(cgl_context *context);

/* Defines cgl_NOUN_retain and cgl_NOUN_release, in the noun's own room. */
#define CGL_OBJECT_REFERENCES(noun)                   \
  cgl_##noun *cgl_##noun##_retain(cgl_##noun *noun) { \
    if (noun)                                         \
      cgl_object_retain((cgl_object *)noun);          \
    return noun;                                      \
  }                                                   \
                                                      \
                                                      \
  void cgl_##noun##_release(cgl_##noun *noun) {       \
    if (noun)                                         \
      cgl_object_release((cgl_object *)noun);         \
  }

/* The kind of a noun of the C API, in the noun's own room, with both. */
#define CGL_OBJECT_KIND(noun, ...)                                         \
  static const cgl_object_kind noun##_kind = {.number = CGL_OBJECT_##noun, \
                                              __VA_ARGS__};                \
  CGL_OBJECT_REFERENCES(noun)

/* ---- live.c: live objects, counted per thread ---- */

/* The word for objects of a kind, for messages: "buffer", "stream", ... */
const char *cgl_live_noun(int number);
/* The live objects of a kind: cgl_live. */
int64_t cgl_live_count(int number);
/* Lists the thread's counts, or counts where all threads can. */
void cgl_live_first(int number, int by);
/* Counts an object that is made (1) or torn down (-1). */
static inline void cgl_live_add(int number, int by) {
  cgl_live_counts *live = &cgl_thread_own()->live;
  if (!live->listed) {
    cgl_live_first(number, by);
    return;
  }
  atomic_int_fast64_t *count = &live->count[number];
  atomic_store_explicit(count,
                        atomic_load_explicit(count, memory_order_relaxed) + by,
                        memory_order_relaxed);
}

/* cgl_object_init that borrows the context. */
static inline void cgl_object_init_borrowing(cgl_object *object,
                                             const cgl_object_kind *kind,
                                             cgl_context *context) {
  atomic_init(&object->references, 1);
  atomic_init(&object->retained_by, 0);
  object->kind = kind;
  object->context = context;
  object->borrows_context = true;
  cgl_live_add(kind->number, 1);
}

#endif
