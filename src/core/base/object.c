/* Reference counts and the teardown list. */
#include "core/base/base.h"

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER;
CGL_FORK_HOLDS(list_lock)
static cgl_object *dead_first, **dead_last = &dead_first;
static atomic_long ndead;
static cgl_object *left_parent; /* ended in a child of a fork; under the lock */


void cgl_object_init(cgl_object *object, const cgl_object_kind *kind,
                     cgl_context *context) {
  cgl_object_init_borrowing(object, kind, context);
  cgl_object_keep_context(object);
}


void cgl_object_keep_context(cgl_object *object) {
  if (object->borrows_context && object->context)
    cgl_object_retain(&object->context->object);
  object->borrows_context = false;
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


/* The teardown list holds only what belongs to the parent. */
void cgl_objects_leave_parent(void) {
  left_parent = dead_first;
  dead_first = NULL;
  dead_last = &dead_first;
  atomic_store(&ndead, 0);
  cgl_thread_own()->draining = false;
}


static bool object_is_forked(const cgl_object *object) {
  const cgl_context *context = object->kind->number == CGL_OBJECT_context
                                   ? (const cgl_context *)object
                                   : object->context;
  return context && context->forked;
}


/* Its end would call the driver, and take locks that the parent's threads may
   have held: it only counts as ended, and stays. */
static void object_leave_parent(cgl_object *object) {
  cgl_live_add(object->kind->number, -1);
  pthread_mutex_lock(&list_lock);
  object->next = left_parent;
  left_parent = object;
  pthread_mutex_unlock(&list_lock);
}


static void object_destroy(cgl_object *object) {
  cgl_context *context = object->borrows_context ? NULL : object->context;
  const cgl_object_kind *kind = object->kind;
  kind->destroy(object);
  cgl_live_add(kind->number, -1);
  if (context)
    cgl_object_release(&context->object);
}


/* True when it was the last. */
static bool object_drop(cgl_object *object) {
  if (object->kind->drop)
    return object->kind->drop(object);
  /* The only reference is the caller's, and no list holds the object. */
  if (!object->kind->findable &&
      atomic_load_explicit(&object->references, memory_order_acquire) == 1)
    return true;
  return atomic_fetch_sub_explicit(&object->references, 1,
                                   memory_order_acq_rel) == 1;
}


void cgl_object_release(cgl_object *object) {
  if (cgl_fork_happened() && object_is_forked(object)) {
    if (atomic_fetch_sub(&object->references, 1) == 1)
      object_leave_parent(object);
    return;
  }
  if (!object_drop(object))
    return;
  /* Giving a block back to its pool asks nothing of the driver, and a capture
     wants its scratch memory back at once. */
  if (object->kind->light) {
    object_destroy(object);
    return;
  }
  if (object->kind->abandon)
    object->kind->abandon(object);
  pthread_mutex_lock(&list_lock);
  object->next = NULL;
  *dead_last = object;
  dead_last = &object->next;
  pthread_mutex_unlock(&list_lock);
  atomic_fetch_add(&ndead, 1);
  cgl_objects_drain();
}


long cgl_objects_waiting(void) {
  return atomic_load(&ndead);
}


/* Takes the first dead object off the list; of `context`, unless it is NULL,
   the first that is reclaimable. */
static cgl_object *dead_pop(const cgl_context *context) {
  pthread_mutex_lock(&list_lock);
  cgl_object **link = &dead_first, *object;
  for (; (object = *link) && context; link = &object->next)
    if (object->context == context && object->kind->is_reclaimable &&
        object->kind->is_reclaimable(object))
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


/* Under the teardown lock.  A teardown releases other objects, which the loop
   takes up. */
static void dead_destroy(const cgl_context *context) {
  cgl_object *object;
  cgl_thread_own()->draining = true;
  cgl_fail_follow(true);
  while ((object = dead_pop(context)))
    object_destroy(object);
  cgl_fail_follow(false);
  cgl_thread_own()->draining = false;
}


void cgl_objects_drain(void) {
  if (cgl_thread_own()->draining || !cgl_captures_hold(true))
    return;
  dead_destroy(NULL);
  cgl_captures_unhold();
}


void cgl_objects_reclaim(cgl_context *context) {
  if (cgl_thread_own()->draining || !cgl_captures_underway())
    return;
  cgl_captures_freeze();
  cgl_relaxed relaxed = cgl_captures_relax(context);
  if (relaxed.active)
    dead_destroy(context);
  cgl_captures_unrelax(context, relaxed);
  cgl_captures_unhold();
}
