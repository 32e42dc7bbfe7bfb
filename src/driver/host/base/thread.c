/* What the device keeps for each thread. */
#include "driver/host/base/base.h"

#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

CGL_THREAD_LOCAL host_thread *host_thread_here;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;


static void thread_end(void *thread_) {
  host_thread *thread = thread_;
  if (thread->own.end)
    thread->own.end(thread);
  host_thread_here = NULL;
  free(thread);
}


static void thread_make_key(void) {
  pthread_key_create(&key, thread_end);
}


host_thread *host_thread_new(void) {
  host_thread *thread = aligned_alloc(alignof(host_thread), sizeof *thread);
  if (thread)
    memset(thread, 0, sizeof *thread);
  return thread;
}


void host_thread_adopt(host_thread *thread) {
  pthread_once(&once, thread_make_key);
  pthread_setspecific(key, thread);
  host_thread_here = thread;
}


host_thread *host_thread_make(void) {
  host_thread *thread = host_thread_new();
  if (thread)
    host_thread_adopt(thread);
  return thread;
}
