/* Devices and opened contexts. */
#include "core/record/record.h"
#include "core/stream/clock.h"
#include "core/base/base.h"
#include "core/random/random.h"
#include "core/memory/memory.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_CONTEXTS 64

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static cgl_context *registry[MAX_CONTEXTS]; /* opened and alive */
static uint64_t next_serial = 1;

_Thread_local uint64_t cgl_context_current;


static const cgl_driver *with_faults(const cgl_driver *driver) {
  const char *wish = getenv("CGRAPHLUA_FAULT");
  if (driver && wish && !strcmp(wish, "1"))
    return cgl_driver_fault(driver);
  return driver;
}


static int cuda_count(const cgl_driver **driver, const char **why) {
  int count = 0;
  *driver = cgl_driver_cuda(why);
  if (*driver && (*driver)->cuDeviceGetCount(&count) != CUDA_SUCCESS)
    count = 0;
  return count;
}


int cgl_device_count(void) {
  const cgl_driver *driver;
  const char *why;
  return cuda_count(&driver, &why) + 1;
}


/* *entry: the call that answered last. */
static CUresult describe(const cgl_driver *driver, int ordinal,
                         cgl_device_info *info, const char **entry) {
  CUdevice device;
  *entry = "cuDeviceGet";
  CUresult result = driver->cuDeviceGet(&device, ordinal);
  if (result)
    return result;
  memset(info, 0, sizeof *info);
  if (!strcmp(driver->name, "host"))
    snprintf(info->device, sizeof info->device, "host");
  else
    snprintf(info->device, sizeof info->device, "%.8s:%d", driver->name,
             ordinal);
  info->driver_version = driver->version;
  const struct {
    CUdevice_attribute attribute;
    int *value;
  } wanted[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &info->compute[0]},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &info->compute[1]},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &info->multiprocessors},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &info->max_threads_per_block},
  };
  *entry = "cuDeviceGetName";
  result = driver->cuDeviceGetName(info->name, sizeof info->name, device);
  if (!result) {
    *entry = "cuDeviceTotalMem";
    result = driver->cuDeviceTotalMem(&info->memory, device);
  }
  if (!result)
    *entry = "cuDeviceGetAttribute";
  for (size_t i = 0; !result && i < sizeof wanted / sizeof *wanted; i++)
    result = driver->cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute,
                                          device);
  return result;
}


cgl_status cgl_device_get(int index, cgl_device_info *info) {
  const cgl_driver *driver;
  const char *why;
  int count = cuda_count(&driver, &why);
  if (index < 0 || index > count) {
    cgl_fail(CGL_ERROR_NO_DEVICE, "devices", "device index %d is not in 0..%d",
             index, count);
    return cgl_fail_hint("cgl_device_count tells how many there are");
  }
  if (index == count)
    driver = cgl_driver_host();
  CUresult result = CUDA_ERROR_NO_DEVICE;
  const char *entry = "cuInit";
  if (driver)
    result = driver->cuInit(0);
  if (!result)
    result = describe(driver, index == count ? 0 : index, info, &entry);
  return cgl_fail_driver(NULL, result, "devices", entry);
}


/* Reads "host", "cuda", "cuda:N"; false when it is none of them. */
static bool parse_device(const char *text, bool *host, int *ordinal) {
  *ordinal = 0;
  *host = !strcmp(text, "host");
  if (*host || !strcmp(text, "cuda"))
    return true;
  if (strncmp(text, "cuda:", 5) || !isdigit((unsigned char)text[5]) ||
      strlen(text) > 8)
    return false;
  char *end;
  *ordinal = (int)strtol(text + 5, &end, 10);
  return !*end;
}


/* Resolves a wish to a driver and an ordinal. */
static cgl_status choose(const char *wish, const cgl_driver **driver,
                         int *ordinal) {
  const char *why = NULL;
  bool told = wish && *wish, host = false;
  if (!told) {
    wish = getenv("CGRAPHLUA_DEVICE");
    told = wish && *wish;
  }
  *driver = NULL;
  *ordinal = 0;
  if (told && !parse_device(wish, &host, ordinal)) {
    cgl_fail(CGL_ERROR_NO_DEVICE, "device", "\"%.32s\" is not a device", wish);
    return cgl_fail_hint("say \"host\", \"cuda\" or \"cuda:N\"");
  }
  if (!host) {
    int count = cuda_count(driver, &why);
    if (*ordinal < count)
      return CGL_OK;
    if (told) {
      if (*driver)
        cgl_fail(CGL_ERROR_NO_DEVICE, "device",
                 "there is no %s: the machine has %d GPU%s", wish, count,
                 count == 1 ? "" : "s");
      else
        cgl_fail(CGL_ERROR_NO_DEVICE, "device", "there is no %s: %s", wish,
                 why);
      return cgl_fail_hint("device \"host\" runs everywhere");
    }
    cgl_log("using the host device: %s", why);
  }
  *driver = cgl_driver_host();
  static atomic_flag told_once = ATOMIC_FLAG_INIT;
  const char *complaint = cgl_driver_host_complaint();
  if (*complaint && !atomic_flag_test_and_set(&told_once))
    cgl_log("%s", complaint);
  return CGL_OK;
}


static CUresult start(cgl_context *context, int ordinal, const char **entry) {
  const cgl_driver *driver = context->driver;
  const struct {
    CUdevice_attribute attribute;
    int *value;
  } limits[] = {
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &context->block_max[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &context->block_max[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &context->block_max[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &context->grid_max[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &context->grid_max[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &context->grid_max[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
       &context->shared_max},
  };
  *entry = "cuInit";
  CUresult result = driver->cuInit(0);
  if (!result) {
    *entry = "cuDeviceGet";
    result = driver->cuDeviceGet(&context->device, ordinal);
  }
  if (!result)
    result = describe(driver, ordinal, &context->info, entry);
  for (size_t i = 0; !result && i < sizeof limits / sizeof *limits; i++)
    result = driver->cuDeviceGetAttribute(limits[i].value, limits[i].attribute,
                                          context->device);
  if (!result) {
    *entry = "cuDevicePrimaryCtxRetain";
    result =
        driver->cuDevicePrimaryCtxRetain(&context->handle, context->device);
  }
  return result;
}


static cgl_status open_new(const cgl_driver *driver, int ordinal, int slot,
                           cgl_context **out) {
  cgl_context *context = calloc(1, sizeof *context);
  if (!context)
    return cgl_fail(CGL_ERROR_NO_MEMORY, "device", "no memory for a context");
  context->driver = driver;
  const char *entry;
  CUresult result = start(context, ordinal, &entry);
  if (result) {
    free(context);
    return cgl_fail_driver(NULL, result, "device", entry);
  }
  context->serial = next_serial++;
  /* Before the context is an object: undoing it must not need the lock that
     is held here. */
  pthread_mutex_init(&context->lock, NULL);
  cgl_status status = cgl_pool_create_own(context, NULL, &context->pool);
  context->pools = context->pool;
  if (!status)
    status = cgl_pool_create_pinned(context, &context->pinned);
  if (status) {
    if (context->pool)
      cgl_pool_destroy(context->pool);
    driver->cuDevicePrimaryCtxRelease(context->device);
    pthread_mutex_destroy(&context->lock);
    free(context);
    return status;
  }
  cgl_object_init(&context->object, CGL_OBJECT_context, NULL);
  registry[slot] = context;
  *out = context;
  return CGL_OK;
}


/* A context whose last reference went is opened anew beside it. */
cgl_status cgl_context_open(const char *device, cgl_context **out) {
  const cgl_driver *driver;
  int ordinal;
  cgl_status status = choose(device, &driver, &ordinal);
  if (status)
    return status;
  driver = with_faults(driver);
  pthread_mutex_lock(&registry_lock);
  int slot = -1;
  status = CGL_OK;
  *out = NULL;
  for (int i = 0; i < MAX_CONTEXTS; i++) {
    cgl_context *context = registry[i];
    if (!context)
      slot = slot < 0 ? i : slot;
    else if (!*out && context->driver == driver && context->device == ordinal &&
             cgl_object_try_retain(&context->object))
      *out = context;
  }
  if (!*out && slot < 0) {
    cgl_fail(CGL_ERROR_NO_DEVICE, "device", "%d devices are open already",
             MAX_CONTEXTS);
    status = cgl_fail_hint("release what belongs to one of them first");
  } else if (!*out)
    status = open_new(driver, ordinal, slot, out);
  pthread_mutex_unlock(&registry_lock);
  return status;
}


/* The pool's reference to its context outlives the last block while there are
   others: it goes before any of these does.  All under the pool's lock, where
   the pool decides. */
bool cgl_context_drop(cgl_context *context) {
  cgl_pool *pool = context->pool;
  cgl_latch_take(&pool->lock);
  if (pool->idle)
    atomic_fetch_sub(&context->object.references, 1);
  pool->idle = false;
  bool last = atomic_fetch_sub(&context->object.references, 1) == 1;
  cgl_latch_drop(&pool->lock);
  return last;
}


void cgl_context_destroy(cgl_context *context) {
  pthread_mutex_lock(&registry_lock);
  for (int i = 0; i < MAX_CONTEXTS; i++)
    if (registry[i] == context)
      registry[i] = NULL;
  pthread_mutex_unlock(&registry_lock);
  cgl_context_enter(context, "device");
  cgl_fills_free(context);
  cgl_limbo_close(context);
  cgl_recording_free_spare(context);
  cgl_pool_destroy(context->pinned);
  cgl_pool_destroy(context->pool);
  cgl_clock_release(context->default_clock);
  if (context->link)
    context->driver->cuStreamDestroy(context->link);
  context->driver->cuDevicePrimaryCtxRelease(context->device);
  pthread_mutex_destroy(&context->lock);
  free(context);
}


cgl_status cgl_context_switch(cgl_context *context, const char *operation) {
  CUresult result = context->driver->cuCtxSetCurrent(context->handle);
  if (result)
    return cgl_fail_driver(context, result, operation, "cuCtxSetCurrent");
  cgl_context_current = context->serial;
  return CGL_OK;
}


CUresult cgl_context_wait(cgl_context *context) {
  uint64_t number = atomic_fetch_add(&context->waits_begun, 1) + 1;
  CUresult result = context->driver->cuCtxSynchronize();
  uint64_t done = atomic_load(&context->waits_done);
  while (!result && done < number &&
         !atomic_compare_exchange_weak(&context->waits_done, &done, number))
    ;
  return result;
}


uint64_t cgl_context_next_wait(const cgl_context *context) {
  return atomic_load(&context->waits_begun) + 1;
}


bool cgl_context_waited(const cgl_context *context, uint64_t number) {
  return atomic_load(&context->waits_done) >= number;
}


cgl_status cgl_context_synchronize(cgl_context *context) {
  static const char operation[] = "synchronize";
  cgl_status status = cgl_context_enter(context, operation);
  if (status)
    return status;
  if (!cgl_captures_hold(true)) {
    cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
             "cannot wait for the device while a capture is underway: a "
             "capture only records, and waiting would break it");
    return cgl_fail_hint("synchronize before the capture begins or after it "
                         "ended");
  }
  CUresult result = cgl_context_wait(context);
  cgl_captures_unhold();
  if (!result)
    cgl_trail_clear();
  status = cgl_fail_driver(context, result, operation, "cuCtxSynchronize");
  if (!status) {
    cgl_pool_settle(context->pool);
    cgl_limbo_settle(context);
  }
  return status;
}


cgl_status cgl_context_memory(cgl_context *context, size_t *available,
                              size_t *total) {
  static const char operation[] = "mem_get_info";
  *available = *total = 0;
  cgl_status status = cgl_context_enter(context, operation);
  if (status)
    return status;
  return cgl_fail_driver(context,
                         context->driver->cuMemGetInfo(available, total),
                         operation, "cuMemGetInfo");
}


cgl_pool *cgl_context_pool(cgl_context *context) {
  return context->pool;
}


const cgl_device_info *cgl_context_device(const cgl_context *context) {
  return &context->info;
}


const void *cgl_context_driver(const cgl_context *context) {
  return context->driver;
}


cgl_status cgl_fault(uint64_t k, int code) {
  const char *wish = getenv("CGRAPHLUA_FAULT");
  if (!wish || strcmp(wish, "1")) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "fault",
             "the fault table is not in place");
    return cgl_fail_hint("run with CGRAPHLUA_FAULT=1 in the environment");
  }
  cgl_fault_arm(k, code ? code : CUDA_ERROR_OUT_OF_MEMORY);
  return CGL_OK;
}


uint64_t cgl_fault_count(const char **hit) {
  if (hit)
    *hit = cgl_fault_hit();
  return cgl_fault_calls();
}
