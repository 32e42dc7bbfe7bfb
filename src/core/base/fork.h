/* Forks of a process that uses devices.
   Idea: a child has its parent's objects, and neither the driver's threads nor
   its memory.  So the contexts of the parent are marked (`forked`): every call
   that enters one is refused, and the last release of an object there only
   counts it, calling no driver and taking no lock.  A device that the parent
   did not open works in the child as in any process.
   Invariant: no lock of base is held by a thread of the parent when the child
   goes on, and what a lock that forks hold guards is whole there: between two
   writes of another thread, a child would see one of them. */
#ifndef CGL_BASE_FORK_H
#define CGL_BASE_FORK_H

#include <pthread.h>
#include <stdbool.h>

/* Forks from now on are seen; called before a driver is first asked. */
void cgl_fork_watch(void);
/* This is a child of a process that had asked a driver; written at the fork,
   when the child has one thread. */
extern bool cgl_fork_done;
static inline bool cgl_fork_happened(void) {
  return cgl_fork_done;
}

/* Of a static lock under which nothing waits and no other lock is taken: a
   thread that forks holds it. */
#define CGL_FORK_HOLDS(lock)                                    \
  static void lock##_hold(void) {                               \
    pthread_mutex_lock(&(lock));                                \
  }                                                             \
  static void lock##_let(void) {                                \
    pthread_mutex_unlock(&(lock));                              \
  }                                                             \
  __attribute__((constructor)) static void lock##_watch(void) { \
    pthread_atfork(lock##_hold, lock##_let, lock##_let);        \
  }

/* What the files of the room do in the child, at the fork. */
void cgl_captures_leave_parent(void);
void cgl_objects_leave_parent(void);
void cgl_context_leave_parent(void);

#endif
