/* Devices, and contexts: one per device that was opened. */
#ifndef CGRAPHLUA_CONTEXT_H
#define CGRAPHLUA_CONTEXT_H

#include "base.h"

typedef struct cgl_device_info {
  char device[16];    /* "host", "cuda:0": what cgl_context_open takes */
  char name[128];     /* the driver's name of it */
  size_t memory;      /* bytes */
  int compute[2];     /* compute capability, 9.0 */
  int driver_version; /* 13000 is 13.0 */
  int multiprocessors;
  int max_threads_per_block;
} cgl_device_info;

/* Number of devices; the host device is the last one. */
CGL_API int cgl_device_count(void);
CGL_API cgl_status cgl_device_get(int index, cgl_device_info *info);

/* Opens "host", "cuda:N" or "cuda" (= "cuda:0").  NULL or "": what
   $CGRAPHLUA_DEVICE says, else cuda:0, else (with a log message that says why
   there is no GPU) the host device.  The same device gives the same context
   with one more reference.  cuDevicePrimaryCtxRetain */
CGL_API cgl_status cgl_context_open(const char *device, cgl_context **context);
CGL_API const cgl_device_info *cgl_context_device(const cgl_context *context);
/* Waits for all work of the device; refused while a capture is underway in it.
   cuCtxSynchronize */
CGL_API cgl_status cgl_context_synchronize(cgl_context *context);
/* Bytes of the device's memory that nobody has taken, and in all; fine in a
   capture.  cuMemGetInfo */
CGL_API cgl_status cgl_context_memory(cgl_context *context, size_t *available,
                                      size_t *total);
/* The driver table in use, for tests and for calls that this header lacks
   (struct cgl_driver of the sources). */
CGL_API const void *cgl_context_driver(const cgl_context *context);
/* Live objects of the process by noun ("stream", ..., "graph"), and of "all",
   exact where no other thread is making or releasing any; -1 for another
   word. */
CGL_API int64_t cgl_live(const char *noun);

/* For tests: makes the k-th driver call from now on fail with `code` (0: 2, out
   of memory); k = 0 disarms.  Only when the process runs with
   CGRAPHLUA_FAULT=1, which puts the fault table under every context. */
CGL_API cgl_status cgl_fault(uint64_t k, int code);
/* Calls counted since, and the entry point that was made to fail, or NULL. */
CGL_API uint64_t cgl_fault_count(const char **hit);

#endif
