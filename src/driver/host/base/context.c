/* The primary context, what failed in it, and the checks before a call. */
#include "driver/host/base/base.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUctx_st {
  unsigned refs;  /* cuDevicePrimaryCtxRetain; under host_lock */
  uint64_t epoch; /* how often it was made; under host_lock */
  atomic_bool initialized, active;
  bool watched;       /* forks are; under host_lock */
  bool forked;        /* this is a child of the process that retained it */
  _Atomic int failed; /* the sticky error */
};

static pthread_mutex_t api_mutex = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;
static atomic_bool stopping;
static struct CUctx_st context;

static pthread_mutex_t text_mutex = PTHREAD_MUTEX_INITIALIZER;
static char fail_text[sizeof host_thread_here->fail_text];


void host_lock(void) {
  pthread_mutex_lock(&api_mutex);
}


void host_unlock(void) {
  pthread_mutex_unlock(&api_mutex);
}


CUresult host_unlock_with(CUresult result) {
  host_unlock();
  return result;
}


void host_stop(void) {
  atomic_store(&stopping, true);
}


bool host_stopping(void) {
  return atomic_load_explicit(&stopping, memory_order_relaxed);
}


CUresult host_context_initialize(void) {
  if (context.forked)
    return CUDA_ERROR_NOT_INITIALIZED;
  atomic_store(&context.initialized, true);
  return CUDA_SUCCESS;
}


/* The workers are threads of the parent, and any lock may be held: from now on
   every call is refused before it takes one. */
static void context_end_with_fork(void) {
  context.forked = true;
  atomic_store(&context.initialized, false);
}


/* As with a GPU, a process that lost the device does not get it again by a
   release alone. */
CUresult host_context_retain(CUcontext *out) {
  if (!context.refs)
    HOST_TRY(host_failed());
  if (!context.watched && pthread_atfork(NULL, NULL, context_end_with_fork))
    return CUDA_ERROR_OUT_OF_MEMORY;
  context.watched = true;
  if (context.refs++ == 0) {
    context.epoch++;
    atomic_store(&context.active, true);
  }
  *out = &context;
  return CUDA_SUCCESS;
}


CUresult host_context_release(bool *ended) {
  *ended = false;
  if (!context.refs)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (--context.refs == 0) {
    atomic_store(&context.active, false);
    *ended = true;
  }
  return CUDA_SUCCESS;
}


void host_context_reset(void) {
  pthread_mutex_lock(&text_mutex);
  atomic_store(&context.failed, CUDA_SUCCESS);
  fail_text[0] = '\0';
  pthread_mutex_unlock(&text_mutex);
  context.epoch++;
}


bool host_context_is_active(void) {
  return atomic_load_explicit(&context.active, memory_order_acquire);
}


CUcontext host_context_current(void) {
  return host_thread_here->current;
}


void host_context_set_current(CUcontext new_current) {
  host_thread_here->current = new_current;
}


CUcontext host_context(void) {
  return &context;
}


uint64_t host_context_epoch(void) {
  return context.epoch;
}


void host_check_enter_callback(void) {
  host_thread_here->callbacks++;
}


void host_check_leave_callback(void) {
  host_thread_here->callbacks--;
}


CUresult host_check_opened(void) {
  if (host_stopping())
    return CUDA_ERROR_DEINITIALIZED;
  if (!atomic_load_explicit(&context.initialized, memory_order_acquire))
    return CUDA_ERROR_NOT_INITIALIZED;
  if (!host_thread_here && !host_thread_make())
    return CUDA_ERROR_OUT_OF_MEMORY;
  host_thread_here->isolated = false; /* a former call's */
  return CUDA_SUCCESS;
}


CUresult host_check_process(void) {
  if (host_thread_here && host_thread_here->callbacks)
    return CUDA_ERROR_NOT_PERMITTED;
  return host_check_opened();
}


/* Without an active context every object of it is gone. */
static CUresult check_active(void) {
  if (host_context_is_active())
    return CUDA_SUCCESS;
  return host_context_current() ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                : CUDA_ERROR_INVALID_CONTEXT;
}


CUresult host_check_release(void) {
  HOST_TRY(host_check_process());
  return check_active();
}


CUresult host_check_object(void) {
  HOST_TRY(host_check_release());
  return host_failed();
}


CUresult host_check(void) {
  HOST_TRY(host_check_process());
  return host_context_current() ? host_check_object()
                                : CUDA_ERROR_INVALID_CONTEXT;
}


static bool is_built_in(CUstream stream) {
  return !stream || stream == CU_STREAM_LEGACY ||
         stream == CU_STREAM_PER_THREAD;
}


CUresult host_check_stream(CUstream stream) {
  return is_built_in(stream) ? host_check() : host_check_object();
}


CUresult host_check_callback(void) {
  HOST_TRY(host_check_opened());
  HOST_TRY(check_active());
  return host_failed();
}


CUresult host_check_callback_stream(CUstream stream) {
  HOST_TRY(host_check_opened());
  if (is_built_in(stream) && !host_context_current())
    return CUDA_ERROR_INVALID_CONTEXT;
  return host_check_callback();
}


CUresult host_failed(void) {
  return atomic_load_explicit(&context.failed, memory_order_acquire);
}


CUresult host_failed_in(const host_isolation *isolation) {
  CUresult failed = host_failed();
  if (failed == CUDA_SUCCESS && isolation)
    failed = atomic_load_explicit(&isolation->failed, memory_order_acquire);
  return failed;
}


CUresult host_failed_answer(const host_isolation *isolation) {
  CUresult failed = host_failed_in(isolation);
  if (failed != CUDA_SUCCESS && host_failed() == CUDA_SUCCESS) {
    pthread_mutex_lock(&text_mutex);
    memcpy(host_thread_here->fail_text, isolation->text,
           sizeof isolation->text);
    pthread_mutex_unlock(&text_mutex);
    host_thread_here->isolated = true;
  }
  return failed;
}


/* The first failure's text is there before its code. */
static CUresult fail_note(_Atomic int *failed, char *text, size_t room,
                          CUresult code, const char *what) {
  pthread_mutex_lock(&text_mutex);
  if (atomic_load(failed) == CUDA_SUCCESS) {
    snprintf(text, room, "%s", what ? what : "");
    atomic_store(failed, code);
  }
  pthread_mutex_unlock(&text_mutex);
  return code;
}


CUresult host_fail(CUresult code, const char *what) {
  return fail_note(&context.failed, fail_text, sizeof fail_text, code, what);
}


CUresult host_fail_in(host_isolation *isolation, CUresult code,
                      const char *what) {
  if (!isolation)
    return host_fail(code, what);
  return fail_note(&isolation->failed, isolation->text, sizeof isolation->text,
                   code, what);
}


const char *host_fail_text(void) {
  if (context.forked || (!host_thread_here && !host_thread_make()))
    return "";
  char *copy = host_thread_here->fail_text;
  if (host_thread_here->isolated && host_failed() == CUDA_SUCCESS)
    return copy;
  pthread_mutex_lock(&text_mutex);
  memcpy(copy, fail_text, sizeof fail_text);
  pthread_mutex_unlock(&text_mutex);
  return copy;
}


/* Says where an address lies among the allocations. */
static void describe_address(char *text, size_t size, uintptr_t address) {
  host_lock();
  const host_range *r = host_range_below(address);
  const host_range *next = host_range_above(address);
  if (r && address - r->start < r->bytes)
    snprintf(text, size, "inside %zu bytes at 0x%zx that are not accessible",
             r->bytes, (size_t)r->start);
  else if (r && address - (r->start + r->bytes) < 1u << 20)
    snprintf(text, size, "%zu bytes past the end of %zu bytes at 0x%zx",
             (size_t)(address - (r->start + r->bytes)), r->bytes,
             (size_t)r->start);
  else if (next && next->start - address <= 1u << 20)
    snprintf(text, size, "%zu bytes before %zu bytes at 0x%zx",
             (size_t)(next->start - address), next->bytes, (size_t)next->start);
  else
    snprintf(text, size, "near no allocation");
  host_unlock();
}


CUresult host_fail_fault(const char *name, const host_fault *fault,
                         host_isolation *isolation) {
  char where[120], text[sizeof fail_text];
  if (fault->memory) {
    describe_address(where, sizeof where, fault->address);
    snprintf(text, sizeof text, "%.80s %.60s 0x%zx, %s", name, fault->why,
             (size_t)fault->address, where);
  } else {
    snprintf(text, sizeof text, "%.80s %s", name, fault->why);
  }
  return host_fail_in(isolation, fault->code, text);
}
