/* The cuda filling: libcuda opened at run time, one row at a time. */
#include "driver/table.h"
#include "driver/waits.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

/* cuGetProcAddress in the form that 12.0 introduced. */
typedef CUresult (*get_proc)(const char *, void **, int, cuuint64_t, int *);

/* Rows answer this where the installed driver has nothing under the name. */
#define X(name, version, parameters, arguments) \
  static CUresult missing_##name parameters;
CGL_DRIVER_ROWS(X)
#undef X

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
#define X(name, version, parameters, arguments) \
  static CUresult missing_##name parameters {   \
    return CUDA_ERROR_NOT_SUPPORTED;            \
  }
CGL_DRIVER_ROWS(X)
#undef X
#define X(name, version, parameters, arguments) \
  static CUresult forked_##name parameters {    \
    return CUDA_ERROR_NOT_INITIALIZED;          \
  }
CGL_DRIVER_ROWS(X)
#undef X
#pragma GCC diagnostic pop

/* Without these nothing works; a driver that lacks one is too old. */
static const char *const required[] = {"cuInit",
                                       "cuDeviceGet",
                                       "cuDevicePrimaryCtxRetain",
                                       "cuCtxSetCurrent",
                                       "cuStreamBeginCapture",
                                       "cuStreamEndCapture",
                                       "cuGraphLaunch",
                                       "cuLaunchKernel",
                                       "cuModuleLoadData",
                                       "cuMemAddressReserve",
                                       "cuMemCreate",
                                       "cuMemMap",
                                       "cuMemSetAccess",
                                       "cuGraphInstantiateWithParams",
                                       "cuStreamGetCaptureInfo"};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cgl_driver driver;
static bool opened;
static char message_text[512];

/* The driver's own rows of the waits that wait_stream and wait_event poll. */
static CUresult (*own_stream_wait)(CUstream), (*own_event_wait)(CUevent);


static bool is_required(const char *name) {
  for (size_t i = 0; i < sizeof required / sizeof *required; i++)
    if (!strcmp(required[i], name))
      return true;
  return false;
}


/* A static program names no loader.  Some systems open libraries in it all the
   same, but their thread-local variables are not set up. */
bool cgl_driver_can_load(void) {
  const ElfW(Phdr) *header = (const ElfW(Phdr) *)getauxval(AT_PHDR);
  unsigned long n = header ? getauxval(AT_PHNUM) : 0;
  for (unsigned long i = 0; i < n; i++)
    if (header[i].p_type == PT_INTERP)
      return true;
  return !n;
}


static void *open_library(void) {
  static const char *const names[] = {"libcuda.so.1", "libcuda.so"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (library)
      return library;
  }
  return NULL;
}


/* The one row whose entry has another name: under its own, a driver gives the
   five-argument form of before 12.0 at every version. */
static const char *symbol_of(const char *row) {
  return strcmp(row, "cuGraphInstantiate") ? row
                                           : "cuGraphInstantiateWithFlags";
}


/* Fills every row; false with a message when a required one is missing. */
static bool fill_table(get_proc get) {
#define X(row, since, parameters, arguments)                                   \
  {                                                                            \
    void *entry = NULL;                                                        \
    int status = 0;                                                            \
    if (get(symbol_of(#row), &entry, since, 0, &status) != CUDA_SUCCESS ||     \
        !entry) {                                                              \
      if (is_required(#row)) {                                                 \
        snprintf(message_text, sizeof message_text,                            \
                 "the NVIDIA driver has no %s (CUDA %d.%d): install a driver " \
                 "of CUDA 12.3 or newer",                                      \
                 #row, since / 1000, since % 1000 / 10);                       \
        return false;                                                          \
      }                                                                        \
      driver.row = missing_##row;                                              \
    } else                                                                     \
      memcpy(&driver.row, &entry, sizeof entry);                               \
  }
  CGL_DRIVER_ROWS(X)
#undef X
  return true;
}


/* One step between two questions; long waits leave the processor.  False: the
   wait is given up. */
static bool wait_step(uint64_t *asked) {
  enum { AWAKE = 10000 }; /* questions of about a microsecond */
  const struct timespec nap = {0, 20000};
  if (cgl_driver_waits_stop())
    return false;
  if (++*asked > AWAKE)
    nanosleep(&nap, NULL);
  return true;
}


static CUresult wait_stream(CUstream stream) {
  if (atomic_load(&cgl_driver_waits) == CGL_WAITS_BLOCK)
    return own_stream_wait(stream);
  CUresult result;
  uint64_t asked = 0;
  while ((result = driver.cuStreamQuery(stream)) == CUDA_ERROR_NOT_READY)
    if (!wait_step(&asked))
      return CUDA_ERROR_TIMEOUT;
  return result;
}


static CUresult wait_to_copy(CUstream stream) {
  return atomic_load(&cgl_driver_waits) == CGL_WAITS_BLOCK
             ? CUDA_SUCCESS
             : wait_stream(stream);
}


static CUresult wait_event(CUevent event) {
  if (atomic_load(&cgl_driver_waits) == CGL_WAITS_BLOCK)
    return own_event_wait(event);
  CUresult result;
  uint64_t asked = 0;
  while ((result = driver.cuEventQuery(event)) == CUDA_ERROR_NOT_READY)
    if (!wait_step(&asked))
      return CUDA_ERROR_TIMEOUT;
  return result;
}


static void poll_waits(void) {
  own_stream_wait = driver.cuStreamSynchronize;
  own_event_wait = driver.cuEventSynchronize;
  driver.cuStreamSynchronize = wait_stream;
  driver.cuEventSynchronize = wait_event;
  driver.wait_to_copy = wait_to_copy;
}


/* In a child of a fork the driver answers cuInit and the calls that need no
   object with NOT_INITIALIZED; calls on its parent's objects crash.  So here
   every call answers that, but for the texts of errors. */
static void end_with_fork(void) {
  const cgl_driver before = driver;
#define X(row, version, parameters, arguments) driver.row = forked_##row;
  CGL_DRIVER_ROWS(X)
#undef X
  driver.cuGetErrorName = before.cuGetErrorName;
  driver.cuGetErrorString = before.cuGetErrorString;
}


static void open_once(void) {
  if (!cgl_driver_can_load()) {
    snprintf(message_text, sizeof message_text,
             "no NVIDIA driver: it cannot be loaded into a static program");
    return;
  }
  void *library = open_library();
  if (!library) {
    snprintf(message_text, sizeof message_text,
             "no NVIDIA driver: libcuda.so.1 cannot be opened (%s)", dlerror());
    return;
  }
  get_proc get = NULL;
  void *symbol = dlsym(library, "cuGetProcAddress_v2");
  memcpy(&get, &symbol, sizeof get);
  if (!get) {
    snprintf(message_text, sizeof message_text,
             "the NVIDIA driver is too old: it has no cuGetProcAddress_v2; "
             "install a driver of CUDA 12.3 or newer");
    dlclose(library);
    return;
  }
  if (!fill_table(get)) {
    dlclose(library);
    return;
  }
  CUresult status = driver.cuInit(0);
  int count = 0;
  if (status == CUDA_SUCCESS)
    status = driver.cuDeviceGetCount(&count);
  if (status != CUDA_SUCCESS || !count) {
    const char *name = "no CUDA device";
    if (status != CUDA_SUCCESS)
      driver.cuGetErrorName(status, &name);
    snprintf(message_text, sizeof message_text,
             "the NVIDIA driver found no usable GPU (%s)", name);
    dlclose(library);
    return;
  }
  poll_waits();
  driver.name = "cuda";
  driver.image_format = CGL_IMAGE_CUBIN;
  driver.slow_copy_bytes = 1 << 20; /* measured on an H200 */
  driver.cuDriverGetVersion(&driver.version);
  pthread_atfork(NULL, NULL, end_with_fork);
  opened = true;
}


const cgl_driver *cgl_driver_cuda(const char **message) {
#ifdef CGL_NO_CUDA
  (void)open_once;
  (void)once;
  *message = "this build has no cuda filling (configured --with-cuda=no)";
  return NULL;
#else
  pthread_once(&once, open_once);
  *message = message_text;
  return opened ? &driver : NULL;
#endif
}
