/* How many objects are alive.
   Idea: every thread counts in memory of its own; a thread that ends leaves its
   counts to all.
   Invariant: under the lock, the sum of what is listed and of what was left is
   the number of objects; it is exact once no other thread is at it. */
#define _GNU_SOURCE
#include "core/base/base.h"

#include <dlfcn.h>
#include <string.h>

_Thread_local cgl_tally cgl_tally_here;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cgl_tally *listed;
static atomic_int_fast64_t left[CGL_OBJECT_COUNT];
static pthread_key_t key;
static bool has_key; /* written once */
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const char *const nouns[] = {
#define X(noun) #noun,
    CGL_OBJECTS(X)
#undef X
};


/* The thread ends. */
static void leave(void *tally_) {
  cgl_tally *tally = tally_;
  pthread_mutex_lock(&lock);
  cgl_tally **link = &listed;
  while (*link != tally)
    link = &(*link)->next;
  *link = tally->next;
  for (int kind = 0; kind < CGL_OBJECT_COUNT; kind++)
    atomic_fetch_add(&left[kind], atomic_exchange(&tally->count[kind], 0));
  tally->listed = false;
  pthread_mutex_unlock(&lock);
}


static void set_up(void) {
  /* Threads may end after a dlclose of the library we are in. */
  Dl_info info;
  if (dladdr((void *)(uintptr_t)set_up, &info) && info.dli_fname)
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  has_key = !pthread_key_create(&key, leave);
}


void cgl_tally_first(cgl_object_kind kind, int by) {
  pthread_once(&once, set_up);
  if (!has_key || pthread_setspecific(key, &cgl_tally_here)) {
    atomic_fetch_add(&left[kind], by);
    return;
  }
  pthread_mutex_lock(&lock);
  cgl_tally_here.next = listed;
  listed = &cgl_tally_here;
  cgl_tally_here.listed = true;
  pthread_mutex_unlock(&lock);
  cgl_tally_add(kind, by);
}


static int64_t count(int kind) {
  int64_t sum = atomic_load(&left[kind]);
  for (cgl_tally *tally = listed; tally; tally = tally->next)
    sum += atomic_load_explicit(&tally->count[kind], memory_order_relaxed);
  return sum;
}


int64_t cgl_live(const char *noun) {
  int64_t sum = 0;
  bool all = !strcmp(noun, "all"), known = all;
  pthread_mutex_lock(&lock);
  for (int kind = 0; kind < CGL_OBJECT_COUNT; kind++)
    if (all || !strcmp(noun, nouns[kind])) {
      sum += count(kind);
      known = true;
    }
  pthread_mutex_unlock(&lock);
  return known ? sum : -1;
}
