/* Reference counts, live counters and the dead list. */
#include "core/record/record.h"
#include "core/base/base.h"

#include <string.h>
#include <time.h>

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
static cgl_object *dead_first, **dead_last = &dead_first;
static atomic_long ndead;

/* Held while objects are torn down, and for the moment a capture begins. */
static pthread_mutex_t teardown = PTHREAD_MUTEX_INITIALIZER;
static atomic_int captures;
static _Thread_local bool draining;

/* Captures that begin while more dead objects than `bearable` wait let those
   underway end first; told through `idle`. */
enum { BEARABLE = 1000, PATIENCE = 20 /* ms */ };
static atomic_long bearable = BEARABLE;
static pthread_mutex_t idle_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;

void cgl_object_init(cgl_object *object, cgl_object_kind kind,
                     cgl_context *context) {
  cgl_object_init_guest(object, kind, context);
  cgl_object_unguest(object);
}


void cgl_object_unguest(cgl_object *object) {
  if (object->guest && object->context)
    cgl_object_retain(&object->context->object);
  object->guest = false;
}


void cgl_object_retain(cgl_object *object) {
  atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
}


bool cgl_object_try_retain(cgl_object *object) {
  int count = atomic_load(&object->references);
  while (count > 0)
    if (atomic_compare_exchange_weak(&object->references, &count, count + 1))
      return true;
  return false;
}


static void destroy(cgl_object *object) {
  cgl_context *context = object->guest ? NULL : object->context;
  cgl_object_kind kind = object->kind;
  switch (kind) {
#define X(noun)                                 \
  case CGL_OBJECT_##noun:                       \
    cgl_##noun##_destroy((cgl_##noun *)object); \
    break;
    CGL_OBJECTS(X)
#undef X
  case CGL_OBJECT_COUNT:
    return;
  }
  cgl_tally_add(kind, -1);
  if (context)
    cgl_object_release(&context->object);
}


/* Giving a block back to its pool, or a kernel to its module, asks the driver
   for nothing, and a capture wants its scratch memory back at once. */
static bool needs_driver(const cgl_object *object) {
  return object->kind != CGL_OBJECT_buffer &&
         object->kind != CGL_OBJECT_pinned &&
         object->kind != CGL_OBJECT_kernel &&
         object->kind != CGL_OBJECT_generator &&
         object->kind != CGL_OBJECT_checkpoint;
}


/* True when it was the last. */
static bool drop_reference(cgl_object *object) {
  if (object->kind == CGL_OBJECT_context)
    return cgl_context_drop((cgl_context *)object);
  /* The only reference is the caller's: of what cgl_object_try_retain is not
     asked about, nobody else can get at it. */
  if (object->kind == CGL_OBJECT_buffer &&
      atomic_load_explicit(&object->references, memory_order_acquire) == 1)
    return true;
  return atomic_fetch_sub_explicit(&object->references, 1,
                                   memory_order_acq_rel) == 1;
}


void cgl_object_release(cgl_object *object) {
  if (!drop_reference(object))
    return;
  if (!needs_driver(object)) {
    destroy(object);
    return;
  }
  /* A graph dropped in mid-capture would keep its own funeral waiting. */
  if (object->kind == CGL_OBJECT_graph)
    cgl_graph_capture_abandon((cgl_graph *)object);
  if (object->kind == CGL_OBJECT_stream)
    cgl_stream_retire((cgl_stream *)object);
  pthread_mutex_lock(&list_lock);
  object->next = NULL;
  *dead_last = object;
  dead_last = &object->next;
  pthread_mutex_unlock(&list_lock);
  atomic_fetch_add(&ndead, 1);
  cgl_objects_drain();
}


static cgl_object *dead_pop(void) {
  pthread_mutex_lock(&list_lock);
  cgl_object *object = dead_first;
  if (object) {
    dead_first = object->next;
    if (!dead_first)
      dead_last = &dead_first;
    atomic_fetch_sub(&ndead, 1);
  }
  pthread_mutex_unlock(&list_lock);
  return object;
}


void cgl_objects_drain(void) {
  /* A teardown releases other objects: the outer loop takes them up. */
  if (draining)
    return;
  draining = true;
  cgl_fail_follow(true);
  pthread_mutex_lock(&teardown);
  cgl_object *object;
  while (!atomic_load(&captures) && (object = dead_pop()))
    destroy(object);
  if (!atomic_load(&ndead))
    atomic_store(&bearable, BEARABLE);
  pthread_mutex_unlock(&teardown);
  cgl_fail_follow(false);
  draining = false;
}


/* Takes what holds memory off the dead list: a graph that nobody's callbacks
   wait for, or a pool. */
static cgl_object *dead_pop_memory(const cgl_context *context) {
  pthread_mutex_lock(&list_lock);
  cgl_object **link = &dead_first, *object;
  for (; (object = *link); link = &object->next)
    if (object->context == context &&
        (object->kind == CGL_OBJECT_pool ||
         (object->kind == CGL_OBJECT_graph && !((cgl_graph *)object)->hooks)))
      break;
  if (object) {
    *link = object->next;
    if (!*link)
      dead_last = link;
    atomic_fetch_sub(&ndead, 1);
  }
  pthread_mutex_unlock(&list_lock);
  return object;
}


void cgl_objects_reclaim(cgl_context *context) {
  if (draining || !atomic_load(&captures))
    return;
  draining = true;
  cgl_fail_follow(true);
  pthread_mutex_lock(&teardown);
  cgl_relaxed relaxed = cgl_relax(context);
  cgl_object *object;
  while (relaxed.active && (object = dead_pop_memory(context)))
    destroy(object);
  cgl_unrelax(context, relaxed);
  pthread_mutex_unlock(&teardown);
  cgl_fail_follow(false);
  draining = false;
}


bool cgl_captures_crowd(void) {
  return atomic_load(&ndead) > atomic_load(&bearable) && atomic_load(&captures);
}


void cgl_captures_await(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_nsec += PATIENCE * 1000000L;
  if (until.tv_nsec >= 1000000000L) {
    until.tv_nsec -= 1000000000L;
    until.tv_sec++;
  }
  int late = 0;
  pthread_mutex_lock(&idle_lock);
  while (!late && cgl_captures_crowd())
    late = pthread_cond_timedwait(&idle, &idle_lock, &until);
  pthread_mutex_unlock(&idle_lock);
  /* A capture that stays open for long is not to slow down every other. */
  if (late)
    atomic_store(&bearable, 2 * atomic_load(&ndead));
  cgl_objects_drain();
}


void cgl_captures_begin(void) {
  pthread_mutex_lock(&teardown);
  atomic_fetch_add(&captures, 1);
  pthread_mutex_unlock(&teardown);
}


void cgl_captures_end(void) {
  pthread_mutex_lock(&idle_lock);
  if (atomic_fetch_sub(&captures, 1) == 1)
    pthread_cond_broadcast(&idle);
  pthread_mutex_unlock(&idle_lock);
  cgl_objects_drain();
}


bool cgl_captures_hold(bool patient) {
  if (patient)
    pthread_mutex_lock(&teardown);
  else if (pthread_mutex_trylock(&teardown))
    return false;
  if (!atomic_load(&captures))
    return true;
  pthread_mutex_unlock(&teardown);
  return false;
}


void cgl_captures_unhold(void) {
  pthread_mutex_unlock(&teardown);
}


int cgl_captures_underway(void) {
  return atomic_load(&captures);
}


#define X(noun)                                       \
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
CGL_OBJECTS(X)
#undef X
