/* How many objects are alive.
   Idea: every thread counts in memory of its own, and adds its counts to `left`
   when it ends.
   Invariant: under the lock, the sum of the listed counts and of `left` is the
   number of objects; it is exact while no other thread makes or ends objects.
 */
#define _GNU_SOURCE
#include "core/base/fork.h"
#include "core/base/object.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

_Thread_local cgl_live_counts cgl_live_here;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cgl_live_counts *listed; /* of all threads that live */
static atomic_int_fast64_t left[CGL_OBJECT_COUNT]; /* of ended threads */
static pthread_key_t key;
static bool has_key; /* written once */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *const nouns[] = {
#define X(noun) #noun,
    CGL_OBJECTS(X)
#undef X
        "internal",
};


const char *cgl_live_noun(int number) {
  return number == CGL_OBJECT_pinned ? "pinned memory" : nouns[number];
}


/* Adds the counts of a thread that ends to `left`. */
static void live_end_thread(void *counts_) {
  cgl_live_counts *counts = counts_;
  pthread_mutex_lock(&lock);
  cgl_live_counts **link = &listed;
  while (*link != counts)
    link = &(*link)->next;
  *link = counts->next;
  for (int kind = 0; kind < CGL_OBJECT_COUNT; kind++)
    atomic_fetch_add(&left[kind], atomic_exchange(&counts->count[kind], 0));
  counts->listed = false;
  pthread_mutex_unlock(&lock);
}


static void live_init(void) {
  /* Threads may end after a dlclose of the library we are in. */
  Dl_info info;
  if (dladdr((void *)(uintptr_t)live_init, &info) && info.dli_fname)
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  has_key = !pthread_key_create(&key, live_end_thread);
}


void cgl_live_leave_parent(void) {
  pthread_mutex_init(&lock, NULL);
}


void cgl_live_first(int kind, int by) {
  pthread_once(&once, live_init);
  if (!has_key || pthread_setspecific(key, &cgl_live_here)) {
    atomic_fetch_add(&left[kind], by);
    return;
  }
  pthread_mutex_lock(&lock);
  cgl_live_here.next = listed;
  listed = &cgl_live_here;
  cgl_live_here.listed = true;
  pthread_mutex_unlock(&lock);
  cgl_live_add(kind, by);
}


int64_t cgl_live(const char *noun) {
  int64_t sum = 0;
  bool all = !strcmp(noun, "all"), known = all;
  pthread_mutex_lock(&lock);
  for (int kind = 0; kind < CGL_OBJECT_COUNT; kind++) {
    if (!all && strcmp(noun, nouns[kind]))
      continue;
    known = true;
    sum += atomic_load(&left[kind]);
    for (const cgl_live_counts *c = listed; c; c = c->next)
      sum += atomic_load_explicit(&c->count[kind], memory_order_relaxed);
  }
  pthread_mutex_unlock(&lock);
  return known ? sum : -1;
}
