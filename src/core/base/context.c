/* Devices and opened contexts. */
#include "core/base/base.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LIVE_ROOM = 2048 }; /* bytes of a list of what lives */

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static cgl_context *registry;    /* opened and alive; under the lock */
static uint64_t next_serial = 1; /* under the lock */

CGL_THREAD_LOCAL uint64_t cgl_context_current;


static bool faults_are_wanted(void) {
  const char *wish = getenv("CGRAPHLUA_FAULT");
  return wish && !strcmp(wish, "1");
}


/* 0 where the driver gives no answer, which *result tells. */
static int cuda_device_count(const cgl_driver **driver, const char **why,
                             CUresult *result) {
  int count = 0;
  cgl_fork_watch();
  *driver = cgl_driver_cuda(why);
  *result = *driver ? (*driver)->cuDeviceGetCount(&count) : CUDA_SUCCESS;
  return *result ? 0 : count;
}


int cgl_device_count(void) {
  const cgl_driver *driver;
  const char *why;
  CUresult result;
  return cuda_device_count(&driver, &why, &result) + 1;
}


/* One of a chain of calls of `driver`: made unless one before it failed, in
   which case `result` and `*entry` tell the failure and its function. */
#define STEP(function, ...)                 \
  do {                                      \
    if (result)                             \
      break;                                \
    *entry = #function;                     \
    result = driver->function(__VA_ARGS__); \
  } while (0)
#define ATTRIBUTE(name, value, device) \
  STEP(cuDeviceGetAttribute, value, CU_DEVICE_ATTRIBUTE_##name, device)

/* Initializes the driver, and asks it for what scripts see of a device. */
static CUresult device_describe(const cgl_driver *driver, int ordinal,
                                cgl_device_info *info, CUdevice *device,
                                const char **entry) {
  CUresult result = CUDA_SUCCESS;
  cgl_fork_watch();
  memset(info, 0, sizeof *info);
  STEP(cuInit, 0);
  STEP(cuDeviceGet, device, ordinal);
  if (!strcmp(driver->name, "host"))
    snprintf(info->device, sizeof info->device, "host");
  else
    snprintf(info->device, sizeof info->device, "%.8s:%d", driver->name,
             ordinal);
  info->driver_version = driver->version;
  STEP(cuDeviceGetName, info->name, sizeof info->name, *device);
  STEP(cuDeviceTotalMem, &info->memory, *device);
  ATTRIBUTE(COMPUTE_CAPABILITY_MAJOR, &info->compute[0], *device);
  ATTRIBUTE(COMPUTE_CAPABILITY_MINOR, &info->compute[1], *device);
  ATTRIBUTE(MULTIPROCESSOR_COUNT, &info->multiprocessors, *device);
  ATTRIBUTE(MAX_THREADS_PER_BLOCK, &info->max_threads_per_block, *device);
  return result;
}


cgl_status cgl_device_get(int index, cgl_device_info *info) {
  const cgl_driver *driver;
  const char *why;
  CUresult result;
  int count = cuda_device_count(&driver, &why, &result);
  if (index < 0 || index > count) {
    cgl_fail(CGL_ERROR_NO_DEVICE, "devices", "device index %d is not in 0..%d",
             index, count);
    return cgl_fail_hint("cgl_device_count tells how many there are");
  }
  if (index == count)
    driver = cgl_driver_host();
  const char *entry;
  CUdevice device;
  result = device_describe(driver, index == count ? 0 : index, info, &device,
                           &entry);
  return cgl_fail_driver(NULL, result, "devices", entry);
}


/* Reads "host", "cuda", "cuda:N"; false for any other text. */
static bool device_parse(const char *text, bool *host, int *ordinal) {
  char digits[4] = "0", rest;
  *host = !strcmp(text, "host");
  bool known = *host || !strcmp(text, "cuda") ||
               sscanf(text, "cuda:%3[0-9]%c", digits, &rest) == 1;
  *ordinal = atoi(digits);
  return known;
}


static cgl_status fail_no_name(const char *text) {
  cgl_fail(CGL_ERROR_NO_DEVICE, "device", "\"%.32s\" is not a device", text);
  return cgl_fail_hint("say \"host\", \"cuda\" or \"cuda:N\"");
}


cgl_status cgl_device_name(const char *device, char name[16]) {
  bool host;
  int ordinal;
  *name = 0;
  if (!device || !*device)
    return CGL_OK;
  if (!device_parse(device, &host, &ordinal))
    return fail_no_name(device);
  snprintf(name, 16, host ? "host" : "cuda:%d", ordinal);
  return CGL_OK;
}


/* The driver, under the fault table when tests want it. */
static const cgl_driver *device_wrap(const cgl_driver *driver) {
  return faults_are_wanted() ? cgl_driver_fault(driver) : driver;
}


/* Resolves a device name to a driver and an ordinal. */
static cgl_status device_choose(const char *wish, const cgl_driver **driver,
                                int *ordinal) {
  const char *why = NULL;
  bool host = false;
  *ordinal = 0;
  if (!cgl_driver_can_load()) {
    cgl_fail(CGL_ERROR_NO_DEVICE, "device",
             "a static program can load neither drivers nor compiled kernels");
    return cgl_fail_hint("link the program without -static; libcgraphlua.a "
                         "itself may be linked in");
  }
  if (!wish || !*wish)
    wish = getenv("CGRAPHLUA_DEVICE");
  const bool given = wish && *wish;
  if (given && !device_parse(wish, &host, ordinal))
    return fail_no_name(wish);
  if (!host) {
    CUresult result;
    int count = cuda_device_count(driver, &why, &result);
    if (*ordinal < count)
      return CGL_OK;
    if (result == CUDA_ERROR_NOT_INITIALIZED) /* in a child of a fork */
      return cgl_fail_driver(NULL, result, "device", "cuDeviceGetCount");
    if (given && *driver)
      cgl_fail(CGL_ERROR_NO_DEVICE, "device",
               "there is no %s: the machine has %d GPU%s", wish, count,
               count == 1 ? "" : "s");
    else if (given)
      cgl_fail(CGL_ERROR_NO_DEVICE, "device", "there is no %s: %s", wish, why);
    if (given)
      return cgl_fail_hint("device \"host\" runs everywhere");
    static atomic_flag told = ATOMIC_FLAG_INIT;
    if (!atomic_flag_test_and_set(&told)) /* the reason without its details */
      cgl_log(NULL, CGL_LOG_INFO, "no GPU, using the host device: %.*s",
              (int)strcspn(why, ":("), why);
  }
  *driver = cgl_driver_host();
  static atomic_flag told_once = ATOMIC_FLAG_INIT;
  const char *complaint = cgl_driver_host_complaint();
  if (*complaint && !atomic_flag_test_and_set(&told_once))
    cgl_log(NULL, CGL_LOG_WARNING, "%s", complaint);
  return CGL_OK;
}


cgl_status cgl_device_find(const char *device, cgl_device_info *info) {
  const cgl_driver *driver = NULL;
  int ordinal;
  cgl_status status = device_choose(device, &driver, &ordinal);
  if (status)
    return status;
  const char *entry;
  CUdevice handle;
  CUresult result = device_describe(driver, ordinal, info, &handle, &entry);
  return cgl_fail_driver(NULL, result, "device", entry);
}


/* The driver of a GPU cannot end a kernel. */
static cgl_status fail_endless(const cgl_context *context,
                               const char *operation) {
  cgl_fail(CUDA_ERROR_NOT_SUPPORTED, operation,
           "the driver of %s cannot end a kernel that runs",
           context->info.device);
  return cgl_fail_hint("the host device can");
}


static CUresult context_start(cgl_context *context, int ordinal,
                              const char **entry) {
  const cgl_driver *driver = context->driver;
  CUresult result =
      device_describe(driver, ordinal, &context->info, &context->device, entry);
  const CUdevice device = context->device;
  ATTRIBUTE(MAX_BLOCK_DIM_X, &context->block_max[0], device);
  ATTRIBUTE(MAX_BLOCK_DIM_Y, &context->block_max[1], device);
  ATTRIBUTE(MAX_BLOCK_DIM_Z, &context->block_max[2], device);
  ATTRIBUTE(MAX_GRID_DIM_X, &context->grid_max[0], device);
  ATTRIBUTE(MAX_GRID_DIM_Y, &context->grid_max[1], device);
  ATTRIBUTE(MAX_GRID_DIM_Z, &context->grid_max[2], device);
  ATTRIBUTE(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &context->shared_max, device);
  STEP(cuDevicePrimaryCtxRetain, &context->handle, device);
  if (result)
    return result;
  STEP(cuCtxSetCurrent, context->handle);
  if (result)
    driver->cuDevicePrimaryCtxRelease(device);
  return result;
}


static void context_destroy(cgl_object *object) {
  cgl_context *context = (cgl_context *)object;
  pthread_mutex_lock(&registry_lock);
  cgl_context **link = &registry;
  while (*link != context)
    link = &(*link)->next;
  *link = context->next;
  pthread_mutex_unlock(&registry_lock);
  cgl_context_enter(context, "device");
  for (int slot = CGL_PART_COUNT; slot-- > 0;) {
    cgl_part *part = cgl_context_part(context, slot);
    if (part)
      part->end(context, part);
  }
  context->driver->cuDevicePrimaryCtxRelease(context->device);
  pthread_mutex_destroy(&context->lock);
  free(context);
}


static bool context_drop(cgl_object *object) {
  cgl_context *context = (cgl_context *)object;
  bool (*drop)(cgl_context *) = atomic_load(&context->drop);
  return drop ? drop(context) : atomic_fetch_sub(&object->references, 1) == 1;
}


CGL_OBJECT_KIND(context, .findable = true, .destroy = context_destroy,
                .drop = context_drop)


void cgl_context_leave_parent(void) {
  pthread_mutex_init(&registry_lock, NULL);
  for (cgl_context *context = registry; context; context = context->next)
    context->forked = true;
  registry = NULL;
  cgl_context_current = 0;
}


bool cgl_context_is_forked(const cgl_context *context) {
  return context->forked;
}


/* A driver that has lost the device may answer with that loss for as long as
   the process lives (580, H200), after a reset as well. */
static cgl_status fail_open(CUresult result, const char *entry) {
  cgl_fail_driver(NULL, result, "device", entry);
  if (!cgl_error_loses_device(result))
    return result;
  cgl_fail(result, "device",
           "a kernel failed and the device was lost: this driver does not open "
           "it again in this process, after a reset neither (%s)",
           entry);
  return cgl_fail_hint("end the process, and use the device in a new one");
}


static cgl_status context_open_new(const cgl_driver *driver, int ordinal,
                                   cgl_context **out) {
  cgl_context *context = calloc(1, sizeof *context);
  if (!context)
    return cgl_fail(CGL_ERROR_NO_MEMORY, "device", "no memory for a context");
  context->driver = driver;
  const char *entry;
  CUresult result = context_start(context, ordinal, &entry);
  if (result) {
    free(context);
    return fail_open(result, entry);
  }
  cgl_context_current = context->serial = next_serial++;
  pthread_mutex_init(&context->lock, NULL);
  cgl_object_init(&context->object, &context_kind, NULL);
  context->next = registry;
  *out = registry = context;
  return CGL_OK;
}


/* A context whose last reference is gone does not count: another is opened. */
cgl_status cgl_context_open(const char *device, cgl_context **out) {
  const cgl_driver *driver = NULL;
  int ordinal;
  cgl_status status = device_choose(device, &driver, &ordinal);
  *out = NULL;
  if (status)
    return status;
  driver = device_wrap(driver);
  pthread_mutex_lock(&registry_lock);
  cgl_context *found = registry;
  while (found && (found->driver != driver || found->device != ordinal ||
                   !cgl_object_try_retain(&found->object)))
    found = found->next;
  if (found)
    *out = found;
  else
    status = context_open_new(driver, ordinal, out);
  pthread_mutex_unlock(&registry_lock);
  return status;
}


cgl_part *cgl_context_make_part(cgl_context *context, cgl_part_slot slot,
                                size_t bytes, cgl_part functions,
                                const char *operation) {
  cgl_part *part = cgl_context_part(context, slot);
  if (part)
    return part;
  pthread_mutex_lock(&context->lock);
  part = cgl_context_part(context, slot);
  if (!part && (part = calloc(1, bytes))) {
    *part = functions;
    atomic_store(&context->parts[slot], part);
  }
  pthread_mutex_unlock(&context->lock);
  if (!part)
    cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a context");
  return part;
}


cgl_status cgl_context_switch(cgl_context *context, const char *operation) {
  CUresult result = context->driver->cuCtxSetCurrent(context->handle);
  if (result)
    return cgl_fail_driver(context, result, operation, "cuCtxSetCurrent");
  cgl_context_current = context->serial;
  return CGL_OK;
}


uint64_t cgl_context_begin_wait(cgl_context *context) {
  return atomic_fetch_add(&context->waits_begun, 1) + 1;
}


static void context_note_waited(cgl_context *context, uint64_t number) {
  uint64_t done = atomic_load(&context->waits_done);
  while (done < number &&
         !atomic_compare_exchange_weak(&context->waits_done, &done, number))
    ;
}


/* The rooms let go of what work may have used until now. */
static void context_tell_waited(cgl_context *context) {
  for (int slot = 0; slot < CGL_PART_COUNT; slot++) {
    const cgl_part *part = cgl_context_part(context, slot);
    if (part && part->waited)
      part->waited(context);
  }
}


void cgl_context_end_wait(cgl_context *context, uint64_t number) {
  context_note_waited(context, number);
  context_tell_waited(context);
}


CUresult cgl_context_wait(cgl_context *context) {
  uint64_t number = cgl_context_begin_wait(context);
  if (atomic_load(&context->shown))
    cgl_context_note_work(context);
  cgl_context_block(context);
  CUresult result = context->driver->cuCtxSynchronize();
  cgl_context_unblock(context);
  if (!result)
    context_note_waited(context, number);
  return result;
}


CUresult cgl_context_wait_stream(cgl_context *context, CUstream stream) {
  cgl_context_block(context);
  CUresult result = context->driver->cuStreamSynchronize(stream);
  cgl_context_unblock(context);
  return result;
}


void cgl_context_count_work(cgl_context *context, uint64_t number) {
  uint64_t issued = atomic_load(&context->issued);
  while (issued < number &&
         !atomic_compare_exchange_weak(&context->issued, &issued, number))
    ;
}


void cgl_context_show(cgl_context *context) {
  atomic_store(&context->shown, true);
  cgl_context_note_work(context);
}


bool cgl_context_waited(const cgl_context *context, uint64_t number) {
  return atomic_load(&context->waits_done) >= number;
}


cgl_status cgl_context_synchronize(cgl_context *context) {
  static const char operation[] = "synchronize";
  cgl_status status = cgl_context_enter(context, operation);
  if (status)
    return status;
  if (!cgl_captures_hold(true))
    return cgl_captures_fail_device(
        operation, "wait for the device",
        "wait for streams of your own (cg.synchronize(), "
        "cgl_streams_synchronize)");
  CUresult result = cgl_context_wait(context);
  cgl_captures_unhold();
  if (!result) {
    cgl_launches_clear();
    context_tell_waited(context);
  }
  return cgl_fail_driver(context, result, operation, "cuCtxSynchronize");
}


void cgl_context_synchronize_all(void) {
  cgl_context *context;
  uint64_t from = 0;
  do {
    context = NULL;
    pthread_mutex_lock(&registry_lock);
    for (cgl_context *c = registry; c; c = c->next)
      if (c->serial > from && (!context || c->serial < context->serial))
        context = c;
    from = context ? context->serial : from;
    const bool kept = context && cgl_object_try_retain(&context->object);
    pthread_mutex_unlock(&registry_lock);
    if (kept) {
      cgl_context_synchronize(context);
      cgl_context_release(context);
    }
  } while (context);
}


cgl_status cgl_context_set_kernel_deadline(cgl_context *context,
                                           double seconds) {
  static const char operation[] = "set_kernel_deadline";
  if (!(seconds >= 0 && seconds <= 1e9)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "a deadline of %g seconds is not in 0..1e9", seconds);
    return cgl_fail_hint("0 takes the deadline away");
  }
  if (!context->driver->set_kernel_deadline)
    return fail_endless(context, operation);
  return cgl_fail_driver(context, context->driver->set_kernel_deadline(seconds),
                         operation, "set_kernel_deadline");
}


cgl_status cgl_context_abort(cgl_context *context) {
  static const char operation[] = "abort";
  if (!context->driver->abort_device)
    return fail_endless(context, operation);
  return cgl_fail_driver(context, context->driver->abort_device(), operation,
                         "abort_device");
}


/* ---- a lost device, anew ---- */

/* Under the registry's lock: the open context of a device, or NULL. */
static cgl_context *registry_find(const cgl_driver *driver, int ordinal) {
  cgl_context *found = registry;
  while (found && (found->driver != driver || found->device != ordinal))
    found = found->next;
  return found;
}


/* Under the registry's lock: what keeps the context, by kind and by line. */
static void write_live(cgl_context *context, FILE *text) {
  const char *between = "";
  const int references = atomic_load(&context->object.references);
  for (int kind = 0; kind < CGL_OBJECT_INTERNAL; kind++) {
    const char *noun = cgl_live_noun(kind);
    int64_t n = kind == CGL_OBJECT_context ? 0 : cgl_live_count(kind);
    if (n > 0)
      fprintf(text, "%s%" PRId64 " %s%s", between, n, noun,
              n == 1 || kind == CGL_OBJECT_pinned ? "" : "s");
    between = n > 0 ? ", " : between;
  }
  if (!*between)
    fprintf(text, "the context itself is held (%d reference%s)", references,
            references == 1 ? "" : "s");
  else if (registry->next)
    fprintf(text, " (of all devices)");
  for (int slot = 0; slot < CGL_PART_COUNT; slot++) {
    const cgl_part *part = cgl_context_part(context, slot);
    if (part && part->list)
      part->list(context, text);
  }
}


/* Under the registry's lock. */
static cgl_status fail_in_use(cgl_context *context, const char *operation) {
  char text[LIVE_ROOM] = "";
  FILE *file = fmemopen(text, sizeof text - 1, "w");
  if (file) {
    write_live(context, file);
    fclose(file);
  }
  cgl_fail(CGL_ERROR_IN_USE, operation, "device %s is in use: %s",
           context->info.device, text);
  return cgl_fail_hint("release them, or drop them and collect garbage; other "
                       "Lua states let go of what they hold at their own "
                       "reset_device, or when they are closed");
}


/* No teardown runs, and no context is open. */
static cgl_status device_reset(const cgl_driver *driver, int ordinal,
                               const char *operation) {
  CUresult result = CUDA_SUCCESS;
  const char *function = NULL, **entry = &function;
  CUdevice device = 0;
  unsigned flags;
  int active = 0;
  STEP(cuInit, 0);
  STEP(cuDeviceGet, &device, ordinal);
  STEP(cuDevicePrimaryCtxGetState, device, &flags, &active);
  if (!result && active) {
    cgl_fail(CGL_ERROR_IN_USE, operation,
             "another part of the process retains the device's primary "
             "context");
    return cgl_fail_hint("let it release the context first");
  }
  STEP(cuDevicePrimaryCtxReset, device);
  if (!result)
    cgl_launches_clear();
  return cgl_fail_driver(NULL, result, operation, function);
}


cgl_status cgl_device_reset(const char *device) {
  static const char operation[] = "reset_device";
  const cgl_driver *driver = NULL;
  int ordinal;
  cgl_status status = device_choose(device, &driver, &ordinal);
  if (status)
    return status;
  driver = device_wrap(driver);
  cgl_context *context;
  do { /* a context without references is torn down first */
    cgl_objects_drain();
    if (!cgl_captures_hold(true)) {
      cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
               "cannot reset a device while a capture is underway");
      return cgl_fail_hint("end the capture first");
    }
    pthread_mutex_lock(&registry_lock);
    context = registry_find(driver, ordinal);
    bool live = context && atomic_load(&context->object.references) > 0;
    status = live      ? fail_in_use(context, operation)
             : context ? CGL_OK
                       : device_reset(driver, ordinal, operation);
    pthread_mutex_unlock(&registry_lock);
    cgl_captures_unhold();
    if (live)
      break;
  } while (context);
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


const cgl_device_info *cgl_context_device(const cgl_context *context) {
  return &context->info;
}


const void *cgl_context_driver(const cgl_context *context) {
  return context->driver;
}


cgl_status cgl_fault(uint64_t k, int code) {
  if (!faults_are_wanted()) {
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


cgl_status cgl_object_check_device(const cgl_object *a, const cgl_object *b,
                                   const char *operation) {
  if (a->context == b->context)
    return CGL_OK;
  cgl_fail(CGL_ERROR_WRONG_DEVICE, operation,
           "the %s is on device %s, the %s on %s",
           cgl_live_noun(a->kind->number), a->context->info.device,
           cgl_live_noun(b->kind->number), b->context->info.device);
  return cgl_fail_hint("use buffers, streams and kernels of one device "
                       "together");
}
