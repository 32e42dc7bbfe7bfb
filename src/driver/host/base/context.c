/* The primary context: who holds it, what failed in it, and its end. */
#include "driver/host/base/runtime.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct CUctx_st {
  unsigned refs;  /* cuDevicePrimaryCtxRetain; under host_lock */
  uint64_t epoch; /* how often it was made; under host_lock */
  atomic_bool initialized, active;
  _Atomic int failed; /* the sticky error */
};

static struct CUctx_st context;
static _Thread_local CUcontext current;
static _Thread_local unsigned in_callback;

static pthread_mutex_t text_mutex = PTHREAD_MUTEX_INITIALIZER;
static char fail_text[320];


CUcontext host_context(void) {
  return &context;
}


uint64_t host_context_epoch(void) {
  return context.epoch;
}


void host_callback_begin(void) {
  in_callback++;
  host_worker_yield();
}


void host_callback_end(void) {
  host_worker_return();
  in_callback--;
}


/* What every call but the enquiries about errors asks first. */
CUresult host_check_opened(void) {
  if (host_stopping())
    return CUDA_ERROR_DEINITIALIZED;
  if (!atomic_load_explicit(&context.initialized, memory_order_acquire))
    return CUDA_ERROR_NOT_INITIALIZED;
  return CUDA_SUCCESS;
}


CUresult host_check_process(void) {
  return in_callback ? CUDA_ERROR_NOT_PERMITTED : host_check_opened();
}


/* Without one there is nothing that the caller could still hold. */
static CUresult check_active(void) {
  if (atomic_load_explicit(&context.active, memory_order_acquire))
    return CUDA_SUCCESS;
  return current ? CUDA_ERROR_CONTEXT_IS_DESTROYED : CUDA_ERROR_INVALID_CONTEXT;
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
  return current ? host_check_object() : CUDA_ERROR_INVALID_CONTEXT;
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
  if (is_built_in(stream) && !current)
    return CUDA_ERROR_INVALID_CONTEXT;
  return host_check_callback();
}


CUresult host_failed(void) {
  return atomic_load_explicit(&context.failed, memory_order_acquire);
}


CUresult host_fail(CUresult code, const char *what) {
  pthread_mutex_lock(&text_mutex);
  int none = CUDA_SUCCESS;
  if (atomic_compare_exchange_strong(&context.failed, &none, code))
    snprintf(fail_text, sizeof fail_text, "%s", what ? what : "");
  pthread_mutex_unlock(&text_mutex);
  return code;
}


const char *host_fail_text(void) {
  static _Thread_local char copy[sizeof fail_text];
  pthread_mutex_lock(&text_mutex);
  memcpy(copy, fail_text, sizeof copy);
  pthread_mutex_unlock(&text_mutex);
  return copy;
}


/* Says where an address lies among the allocations. */
static void describe(char *text, size_t size, uintptr_t address) {
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


CUresult host_fail_fault(const char *name, const host_fault *fault) {
  char where[120], text[sizeof fail_text];
  if (fault->memory) {
    describe(where, sizeof where, fault->address);
    snprintf(text, sizeof text, "%.80s %.60s 0x%zx, %s", name, fault->why,
             (size_t)fault->address, where);
  } else {
    snprintf(text, sizeof text, "%.80s %s", name, fault->why);
  }
  return host_fail(fault->code, text);
}


CUresult host_cuInit(unsigned int Flags) {
  if (Flags)
    return CUDA_ERROR_INVALID_VALUE;
  if (host_stopping())
    return CUDA_ERROR_DEINITIALIZED;
  atomic_store(&context.initialized, true);
  return CUDA_SUCCESS;
}


CUresult host_cuDevicePrimaryCtxRetain(CUcontext *pctx, CUdevice dev) {
  HOST_TRY(host_check_process());
  if (!pctx)
    return CUDA_ERROR_INVALID_VALUE;
  if (dev != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  host_lock();
  /* As with a GPU, a process that lost the device gets it no more. */
  CUresult result = context.refs ? CUDA_SUCCESS : host_failed();
  if (result == CUDA_SUCCESS) {
    if (context.refs++ == 0) {
      context.epoch++;
      atomic_store(&context.active, true);
    }
    *pctx = &context;
  }
  host_unlock();
  return result;
}


/* Everything that belongs to the context goes, oldest users first. */
static void end_context(void) {
  atomic_store(&context.active, false);
  host_device_wait();
  host_stream_reset();
  host_event_reset();
  host_module_reset();
  host_mempool_reset();
  host_virtual_reset();
  for (host_range *r = host_range_next(NULL), *next; r; r = next) {
    next = host_range_next(r);
    if (r->kind != HOST_RANGE_GRAPH)
      host_memory_drop(r);
  }
}


CUresult host_cuDevicePrimaryCtxRelease(CUdevice dev) {
  HOST_TRY(host_check_process());
  if (dev != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  host_lock();
  CUresult result = CUDA_SUCCESS;
  if (context.refs == 0)
    result = CUDA_ERROR_INVALID_CONTEXT;
  else if (--context.refs == 0)
    end_context();
  host_unlock();
  return result;
}


CUresult host_cuDevicePrimaryCtxGetState(CUdevice dev, unsigned int *flags,
                                         int *active) {
  HOST_TRY(host_check_process());
  if (dev != 0)
    return CUDA_ERROR_INVALID_DEVICE;
  if (!flags || !active)
    return CUDA_ERROR_INVALID_VALUE;
  *flags = 0;
  *active = atomic_load(&context.active);
  return CUDA_SUCCESS;
}


CUresult host_cuCtxSetCurrent(CUcontext ctx) {
  HOST_TRY(host_check_process());
  if (ctx && ctx != &context)
    return CUDA_ERROR_INVALID_CONTEXT;
  current = ctx;
  return CUDA_SUCCESS;
}


CUresult host_cuCtxGetCurrent(CUcontext *pctx) {
  HOST_TRY(host_check_process());
  if (!pctx)
    return CUDA_ERROR_INVALID_VALUE;
  *pctx = current;
  return CUDA_SUCCESS;
}


CUresult host_cuCtxGetDevice(CUdevice *device) {
  HOST_TRY(host_check_process());
  if (!current)
    return CUDA_ERROR_INVALID_CONTEXT;
  if (!device)
    return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return CUDA_SUCCESS;
}


CUresult host_cuCtxSynchronize(void) {
  HOST_TRY(host_check());
  host_lock();
  CUresult result = host_capture_touch_all();
  if (result == CUDA_SUCCESS) {
    host_device_wait();
    host_mempool_sync();
    result = host_failed();
  }
  host_unlock();
  return result;
}


CUresult host_cuCtxGetStreamPriorityRange(int *leastPriority,
                                          int *greatestPriority) {
  HOST_TRY(host_check());
  if (leastPriority)
    *leastPriority = 0;
  if (greatestPriority)
    *greatestPriority = HOST_GREATEST_PRIORITY;
  return CUDA_SUCCESS;
}
