/* Compilations: modules that a worker compiles while the caller goes on.
   A compilation and the worker share a request.  The worker only compiles: it
   calls no driver and makes no object, and the module is loaded by the first
   wait, on its caller's thread.
   Invariants: a request is in the queue (QUEUED), the worker's (RUNNING) or
   its compilation's alone (DONE); whoever comes last frees it.  The worker is
   there from the first request to the end of the process. */
#include "core/module/module.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum request_state {
  REQUEST_QUEUED,
  REQUEST_RUNNING,
  REQUEST_DONE
} request_state;

typedef struct request {
  struct request *next;
  request_state state; /* under lock */
  bool dropped;        /* under lock: nobody wants it; the worker frees it */
  cgl_target target;
  cgl_module_desc desc; /* in the arena */
  cgl_arena arena;
  cgl_process_stop stop;
  cgl_compile_status answer; /* these three when DONE */
  cgl_image *image;
  char *text;
} request;

struct cgl_compilation {
  cgl_object object;
  request *request;
  pthread_mutex_t loading; /* guards what follows */
  cgl_module *module;      /* owned; NULL until a wait loaded it */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t added = PTHREAD_COND_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;
static request *queue, **queue_end = &queue; /* these five under lock */
static request *running;
static bool stopping;
static pthread_t worker;
static _Atomic(pid_t) worker_process; /* 0: none; a child of fork has none */
static bool hooked; /* the worker's own: worker_end comes before NVRTC's end */


static void request_free(request *r) {
  cgl_image_free(r->image);
  free(r->text);
  cgl_arena_free(&r->arena);
  pthread_mutex_destroy(&r->stop.lock);
  free(r);
}


/* ---- the worker ---- */

static void worker_end(void) __attribute__((destructor));


/* Under the lock: compiles a request, without the lock. */
static void run_request(request *r) {
  r->state = REQUEST_RUNNING;
  running = r;
  pthread_mutex_unlock(&lock);
  if (!hooked && r->target.format != CGL_IMAGE_HOST) {
    cgl_compile_open(&r->target);
    hooked = atexit(worker_end) == 0;
  }
  cgl_process_guard(&r->stop);
  r->answer =
      cgl_module_run_compiler(&r->target, &r->desc, &r->image, &r->text);
  cgl_process_guard(NULL);
  pthread_mutex_lock(&lock);
  running = NULL;
  r->state = REQUEST_DONE;
  if (r->dropped)
    request_free(r);
  pthread_cond_broadcast(&ended);
}


static void *work(void *unused) {
  (void)unused;
  pthread_mutex_lock(&lock);
  while (!stopping) {
    request *r = queue;
    if (!r) {
      pthread_cond_wait(&added, &lock);
      continue;
    }
    queue = r->next;
    if (!queue)
      queue_end = &queue;
    run_request(r);
  }
  pthread_mutex_unlock(&lock);
  return NULL;
}


/* Under the lock; 0 or an errno.  Signals are for the threads of the program.
 */
static int worker_start(void) {
  sigset_t all, before;
  if (worker_process == getpid())
    return 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&worker, NULL, work, NULL);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  if (!error)
    worker_process = getpid();
  return error;
}


/* The process ends, or unloads the library: no child and no file of a compile
   stays behind. */
static void worker_end(void) {
  if (worker_process != getpid())
    return;
  pthread_mutex_lock(&lock);
  stopping = true;
  if (running)
    cgl_process_end(&running->stop);
  pthread_cond_signal(&added);
  pthread_mutex_unlock(&lock);
  pthread_join(worker, NULL);
  worker_process = 0;
}


void cgl_compilations_finish(void) {
  pthread_mutex_lock(&lock);
  while (worker_process == getpid() && (queue || running))
    pthread_cond_wait(&ended, &lock);
  pthread_mutex_unlock(&lock);
}


/* ---- requests ---- */

static const char *copy_string(cgl_arena *arena, const char *string) {
  return string ? cgl_arena_copy(arena, string, strlen(string)) : NULL;
}


static const char *const *copy_strings(cgl_arena *arena,
                                       const char *const *strings, size_t n) {
  const char **copy = cgl_arena_alloc(arena, (n + 1) * sizeof *copy);
  for (size_t i = 0; copy && i < n; i++)
    copy[i] = copy_string(arena, strings[i]);
  return copy;
}


void cgl_module_copy_desc(cgl_arena *arena, const cgl_module_desc *desc,
                          cgl_module_desc *copy) {
  const char *file = desc->file ? desc->file : cgl_site_here.file;
  *copy = *desc;
  copy->source = copy_string(arena, desc->source);
  copy->file = copy_string(arena, file);
  copy->options = copy_strings(arena, desc->options, desc->noptions);
  copy->expressions =
      copy_strings(arena, desc->expressions, desc->nexpressions);
}


/* A copy of what the caller only lends; NULL without memory. */
static request *request_new(const cgl_context *context,
                            const cgl_module_desc *desc) {
  request *r = calloc(1, sizeof *r);
  if (!r)
    return NULL;
  cgl_arena *arena = &r->arena;
  pthread_mutex_init(&r->stop.lock, NULL);
  r->target = cgl_module_target(context);
  cgl_module_copy_desc(arena, desc, &r->desc);
  if (!desc->source) {
    r->desc.image = cgl_arena_copy(arena, desc->image, desc->image_bytes);
    r->state = REQUEST_DONE; /* nothing to compile */
  }
  if (!arena->failed)
    return r;
  request_free(r);
  return NULL;
}


/* 0 or an errno. */
static int request_add(request *r) {
  pthread_mutex_lock(&lock);
  int error = worker_start();
  if (!error) {
    *queue_end = r;
    queue_end = &r->next;
    pthread_cond_signal(&added);
  }
  pthread_mutex_unlock(&lock);
  return error;
}


/* The compilation lets go of it. */
static void request_drop(request *r) {
  pthread_mutex_lock(&lock);
  request_state state = r->state;
  if (state == REQUEST_QUEUED) {
    request **link = &queue;
    while (*link != r)
      link = &(*link)->next;
    *link = r->next;
    if (queue_end == &r->next)
      queue_end = link;
    pthread_cond_broadcast(&ended);
  } else if (state == REQUEST_RUNNING) {
    r->dropped = true;
    cgl_process_end(&r->stop);
  }
  pthread_mutex_unlock(&lock);
  if (state != REQUEST_RUNNING)
    request_free(r);
}


/* ---- compilations ---- */

static void compilation_destroy(cgl_object *object) {
  cgl_compilation *compilation = (cgl_compilation *)object;
  request_drop(compilation->request);
  cgl_module_release(compilation->module);
  pthread_mutex_destroy(&compilation->loading);
  free(compilation);
}


CGL_OBJECT_KIND(compilation, .light = true, .destroy = compilation_destroy)


cgl_status cgl_module_create_async(cgl_context *context,
                                   const cgl_module_desc *desc,
                                   cgl_compilation **out) {
  static const char operation[] = "module_async";
  cgl_status status = cgl_module_check(desc, operation);
  if (status)
    return status;
  cgl_compilation *compilation = calloc(1, sizeof *compilation);
  request *r = compilation ? request_new(context, desc) : NULL;
  if (!r) {
    free(compilation);
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for a compilation");
  }
  int error = r->state == REQUEST_DONE ? 0 : request_add(r);
  if (error) {
    request_free(r);
    free(compilation);
    return cgl_fail(CGL_ERROR_SYSTEM, operation, "cannot start a thread: %s",
                    strerror(error));
  }
  compilation->request = r;
  pthread_mutex_init(&compilation->loading, NULL);
  cgl_object_init(&compilation->object, &compilation_kind, context);
  *out = compilation;
  return CGL_OK;
}


/* In a child of a fork there is no worker, so nothing is to be waited for. */
bool cgl_compilation_ready(const cgl_compilation *compilation) {
  if (cgl_context_is_forked(compilation->object.context))
    return true;
  pthread_mutex_lock(&lock);
  bool ready = compilation->request->state == REQUEST_DONE;
  pthread_mutex_unlock(&lock);
  return ready;
}


/* Under `loading`: makes the module of a request that is done. */
static cgl_status compilation_load(cgl_compilation *compilation,
                                   const char *operation) {
  request *r = compilation->request;
  cgl_context *context = compilation->object.context;
  cgl_status status = CGL_OK;
  if (r->desc.source)
    status = cgl_module_compiled(context, r->answer, r->text, r->target.format,
                                 operation);
  if (!status && r->image)
    cgl_module_log_fibers(context, r->image, r->desc.file);
  if (!status)
    status = cgl_module_load(context, &r->desc, &r->image, operation,
                             &compilation->module);
  return status;
}


cgl_status cgl_compilation_wait(cgl_compilation *compilation,
                                cgl_module **module) {
  static const char operation[] = "compilation:wait";
  cgl_status status = cgl_context_enter(compilation->object.context, operation);
  if (status)
    return status;
  pthread_mutex_lock(&lock);
  while (compilation->request->state != REQUEST_DONE)
    pthread_cond_wait(&ended, &lock);
  pthread_mutex_unlock(&lock);
  pthread_mutex_lock(&compilation->loading);
  if (!compilation->module)
    status = compilation_load(compilation, operation);
  if (!status)
    *module = cgl_module_retain(compilation->module);
  pthread_mutex_unlock(&compilation->loading);
  return status;
}
