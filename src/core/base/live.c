/* How many objects are alive.
   Idea: every thread counts in memory of its own, and adds its counts to `left`
   when it ends.
   Invariant: under the lock, the sum of the listed counts and of `left` is the
   number of objects; it is exact while no other thread makes or ends objects.
 */
#include "core/base/fork.h"
#include "core/base/object.h"

#include <pthread.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
CGL_FORK_HOLDS(lock)
static cgl_live_counts *listed; /* of all threads that live */
static atomic_int_fast64_t left[CGL_OBJECT_COUNT]; /* of ended threads */

static const char *const nouns[] = {
#define X(noun) #noun,
    CGL_OBJECTS(X)
#undef X
        "internal",
};


const char *cgl_live_noun(int number) {
  return number == CGL_OBJECT_pinned ? "pinned memory" : nouns[number];
}


void cgl_live_end_thread(cgl_live_counts *counts) {
  if (!counts->listed)
    return;
  pthread_mutex_lock(&lock);
  cgl_live_counts **link = &listed;
  while (*link != counts)
    link = &(*link)->next;
  *link = counts->next;
  for (int kind = 0; kind < CGL_OBJECT_COUNT; kind++)
    atomic_fetch_add(&left[kind], atomic_exchange(&counts->count[kind], 0));
  pthread_mutex_unlock(&lock);
}


void cgl_live_first(int kind, int by) {
  cgl_thread *thread = cgl_thread_own();
  if (thread == &cgl_thread_spare) {
    atomic_fetch_add(&left[kind], by);
    return;
  }
  pthread_mutex_lock(&lock);
  thread->live.next = listed;
  listed = &thread->live;
  thread->live.listed = true;
  pthread_mutex_unlock(&lock);
  cgl_live_add(kind, by);
}


int64_t cgl_live_count(int kind) {
  pthread_mutex_lock(&lock);
  int64_t sum = atomic_load(&left[kind]);
  for (const cgl_live_counts *c = listed; c; c = c->next)
    sum += atomic_load_explicit(&c->count[kind], memory_order_relaxed);
  pthread_mutex_unlock(&lock);
  return sum;
}


int64_t cgl_live(const char *noun) {
  int64_t sum = 0;
  bool all = !strcmp(noun, "all"), known = all;
  for (int kind = 0; kind < CGL_OBJECT_COUNT; kind++)
    if (all || !strcmp(noun, nouns[kind])) {
      known = true;
      sum += cgl_live_count(kind);
    }
  return known ? sum : -1;
}
