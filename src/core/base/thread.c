/* What the core keeps for each thread. */
#define _GNU_SOURCE
#include "core/base/thread.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

CGL_THREAD_LOCAL cgl_thread *cgl_thread_here;
cgl_thread cgl_thread_spare;

static pthread_key_t key;
static bool has_key; /* written once */
static pthread_once_t once = PTHREAD_ONCE_INIT;


static void thread_end(void *thread_) {
  cgl_thread *thread = thread_;
  cgl_live_end_thread(&thread->live);
  cgl_error_end_thread(thread->failure);
  cgl_thread_here = NULL;
  free(thread);
}


static void thread_init(void) {
  /* Threads may end after a dlclose of the library we are in. */
  Dl_info info;
  if (dladdr((void *)(uintptr_t)thread_init, &info) && info.dli_fname)
    dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
  has_key = !pthread_key_create(&key, thread_end);
}


cgl_thread *cgl_thread_make(void) {
  pthread_once(&once, thread_init);
  cgl_thread *thread =
      has_key ? aligned_alloc(alignof(cgl_thread), sizeof *thread) : NULL;
  if (!thread || pthread_setspecific(key, thread)) {
    free(thread);
    return &cgl_thread_spare;
  }
  memset(thread, 0, sizeof *thread);
  return cgl_thread_here = thread;
}
