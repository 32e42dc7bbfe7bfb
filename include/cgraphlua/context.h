/* Devices, and contexts: a context is an opened device. */
#ifndef CGRAPHLUA_CONTEXT_H
#define CGRAPHLUA_CONTEXT_H

#include "base.h"

typedef struct cgl_device_info {
  char device[16];    /* "host", "cuda:0": what cgl_context_open takes */
  char name[128];     /* the device's name in the driver */
  size_t memory;      /* bytes */
  int compute[2];     /* compute capability, 9.0 */
  int driver_version; /* 13000 is 13.0 */
  int multiprocessors;
  int max_threads_per_block;
} cgl_device_info;

/* The number of devices, including the host device, which is the last.  Asks
   NVIDIA's driver, after which a child that is forked can use no GPU. */
CGL_API int cgl_device_count(void);
/* Describes device `index`, from 0, without opening it.  Asks NVIDIA's driver
   likewise.  cuDeviceGetAttribute */
CGL_API cgl_status cgl_device_get(int index, cgl_device_info *info);

/* Writes the full name of what cgl_context_open takes: "cuda" is "cuda:0", NULL
   is "", the default device.  Asks no driver, so the device may not be there.
   CGL_ERROR_NO_DEVICE when the text names no device. */
CGL_API cgl_status cgl_device_name(const char *device, char name[16]);

/* Describes the device that cgl_context_open would open, without opening it.
   CGL_ERROR_NO_DEVICE.  cuDeviceGetAttribute */
CGL_API cgl_status cgl_device_find(const char *device, cgl_device_info *info);

/* Opens "host", "cuda:N" or "cuda" (the same as "cuda:0").  NULL or "" is the
   device that CGRAPHLUA_DEVICE names, else cuda:0, else the host device, with a
   log message that says why there is no GPU.  Opening the same device again
   returns the same context with one more reference.  CGL_ERROR_NO_DEVICE.
   cuDevicePrimaryCtxRetain */
CGL_API cgl_status cgl_context_open(const char *device, cgl_context **context);
/* Sets the context's own log, beside the process's (cgl_set_log); NULL, the
   default, leaves its messages to the process's. */
CGL_API void cgl_context_set_log(cgl_context *context,
                                 cgl_log_function function, void *user);
/* Whether the process was forked from the one that opened the context.  Every
   call on it and its objects then fails with CUDA_ERROR_NOT_INITIALIZED; a
   release gives nothing back, and calls no hook. */
CGL_API bool cgl_context_is_forked(const cgl_context *context);
/* The device of a context, borrowed. */
CGL_API const cgl_device_info *cgl_context_device(const cgl_context *context);
/* Gives every kernel of the device that begins from now on so many seconds,
   per launch; 0: as long as it likes.  A kernel that runs longer ends with
   CUDA_ERROR_LAUNCH_TIMEOUT, and the device is lost: every later call answers
   the same until cgl_device_reset.  At first what CGRAPHLUA_KERNEL_SECONDS
   says, or 0.  CGL_ERROR_INVALID_ARGUMENT beyond 0 to 1e9;
   CUDA_ERROR_NOT_SUPPORTED on a GPU, whose driver ends no kernel. */
CGL_API cgl_status cgl_context_set_kernel_deadline(cgl_context *context,
                                                   double seconds);
/* Ends the kernels that run on the device, with CUDA_ERROR_LAUNCH_TIMEOUT, and
   loses the device: what is queued does not run.  For a thread of an engine
   that gives up on a script; on any thread, while others wait for the device,
   but in no signal handler.  CUDA_ERROR_NOT_SUPPORTED on a GPU. */
CGL_API cgl_status cgl_context_abort(cgl_context *context);
/* Has waits for devices given up, in all threads: with CGL_ERROR_INTERRUPTED,
   until cgl_waits_stop(false).  The host device ends the kernels that run, as
   cgl_context_abort does; work of a GPU goes on.  A loop of replays ends
   likewise, after a launch.  Callable in a signal handler.  A program calls
   cgl_waits_stop(false) before it waits for the first time: waits that began
   before the first call are not given up, and waits for a GPU ask again and
   again from then on.  Not given up are waits for the device as a whole
   (cgl_context_synchronize), and calls that wait inside a GPU's driver, as a
   launch does once some thousand others are queued.
   cuStreamQuery, cuEventQuery */
CGL_API void cgl_waits_stop(bool stop);
/* How many calls have failed so far because they were given up. */
CGL_API uint64_t cgl_waits_stopped(void);
/* Gives up a device that was lost, so that cgl_context_open opens it anew, with
   nothing on it, where the driver can; takes the same names.  Refused with
   CGL_ERROR_IN_USE while objects of the device live (the message counts them)
   or another part of the process retains the primary context, and with
   CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED while a capture is underway.  Where the
   driver does not open a lost device again in the same process (580, H200),
   cgl_context_open answers the failure that lost it.
   cuDevicePrimaryCtxReset */
CGL_API cgl_status cgl_device_reset(const char *device);
/* Waits for all work of the device; cgl_streams_synchronize waits for streams.
   Refused with
   CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED while a capture is underway anywhere in
   the process.  cuCtxSynchronize */
CGL_API cgl_status cgl_context_synchronize(cgl_context *context);
/* The free bytes and the total bytes of the device's memory.  Memory that pools
   hold is not free.  Allowed in a capture.  cuMemGetInfo */
CGL_API cgl_status cgl_context_memory(cgl_context *context, size_t *available,
                                      size_t *total);
/* The driver table in use, borrowed, for tests and for driver calls that this
   API does not offer (struct cgl_driver of the sources). */
CGL_API const void *cgl_context_driver(const cgl_context *context);
/* The number of live objects of the process of a noun of CGL_OBJECTS ("stream",
   "graph"), or of "all" nouns; -1 for another word.  Exact while no other
   thread makes or releases objects. */
CGL_API int64_t cgl_live(const char *noun);

/* For tests: makes the k-th driver call from now fail with `code`, a CUresult
   (0 counts as 2, out of memory).  k = 0 disarms.  CGL_ERROR_INVALID_ARGUMENT
   unless the process runs with CGRAPHLUA_FAULT=1, which puts the fault table
   under every context. */
CGL_API cgl_status cgl_fault(uint64_t k, int code);
/* The driver calls since cgl_fault.  *hit is the entry point that was made to
   fail, or NULL. */
CGL_API uint64_t cgl_fault_count(const char **hit);

#endif
