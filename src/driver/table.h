/* The driver is a table.
   A cgl_driver holds one function pointer per row of rows.h, under the CUDA
   driver's own names and signatures.  Three fillings exist: cuda (the real
   one, opened at run time), host (our software device) and fault (wraps
   another and makes the k-th call fail).  Everything above calls through a
   table and never asks which filling it got.
   Invariants: every member of a table that an opener returned is callable;
   a row that a driver lacks answers CUDA_ERROR_NOT_SUPPORTED.  In a child of a
   fork every row of a driver that the parent used answers
   CUDA_ERROR_NOT_INITIALIZED at once, and touches nothing. */
#ifndef CGL_DRIVER_TABLE_H
#define CGL_DRIVER_TABLE_H

#include <stdbool.h>

#include "driver/cuda_abi.h"
#include "driver/rows.h"

/* The kind of kernel image that cuModuleLoadData takes. */
typedef enum cgl_image_format {
  CGL_IMAGE_HOST, /* shared object after kernel_abi.h */
  CGL_IMAGE_CUBIN /* machine code for one sm version */
} cgl_image_format;

typedef struct cgl_driver {
#define X(name, version, parameters, arguments) CUresult(*name) parameters;
  CGL_DRIVER_ROWS(X)
#undef X
  const char *name;              /* "cuda", "host" */
  cgl_image_format image_format; /* what the compile room must make */
  int version;                   /* as cuDriverGetVersion, 13000 = 13.0 */
  /* From so many bytes on a kernel may copy faster on the device than a graph's
     copy node; SIZE_MAX: never. */
  size_t slow_copy_bytes;
  /* Waits for the stream before a copy of memory that is not pinned, if waits
     may be given up: the driver's own wait in such a copy may not.  NULL where
     it may. */
  CUresult (*wait_to_copy)(CUstream stream);
  /* Describes a sticky failure beyond its code (the kernel's name, the
     address); "" without a failure; NULL where the driver keeps no text. */
  const char *(*failure_text)(void);
  /* Gives every kernel that begins from now on so many seconds; 0: no limit.
     A kernel that runs longer ends with LAUNCH_TIMEOUT, and the context is
     lost.  NULL where the driver cannot end a kernel. */
  CUresult (*set_kernel_deadline)(double seconds);
  /* Ends the kernels that run, as a deadline does, and loses the context; any
     thread.  NULL where the driver cannot. */
  CUresult (*abort_device)(void);
  /* From now on failures of what the stream runs stay with it, and its kernels
     and launches of graphs have so many seconds each (0: no limit).  Not for
     the default streams. */
  CUresult (*isolate_stream)(CUstream stream, double seconds);
  /* Ends what an isolated stream runs and drops what it holds, with
     LAUNCH_TIMEOUT, which it answers until renew_stream. */
  CUresult (*abort_stream)(CUstream stream);
  CUresult (*renew_stream)(CUstream stream);
} cgl_driver;

/* Whether this process can load drivers and compiled kernels; a program that
   was linked with -static cannot. */
bool cgl_driver_can_load(void);

/* Opens libcuda once per process and initializes it.  Returns the table, or
   NULL with a sentence in *message (static or thread-local storage, valid
   until the thread's next call): no library, a missing symbol, a driver that
   is too old, or no device.  Thread-safe. */
const cgl_driver *cgl_driver_cuda(const char **message);

/* The software device; always there.  Thread-safe. */
const cgl_driver *cgl_driver_host(void);

/* The environment variables that it ignores as invalid, in a sentence, or
   "". */
const char *cgl_driver_host_complaint(void);

/* Wraps `inner`.  There is one fault table per process: only the first driver
   is wrapped, any other is returned unwrapped.  Calls count from 1 after
   every cgl_fault_arm.  Not thread-safe: call it before threads start. */
const cgl_driver *cgl_driver_fault(const cgl_driver *inner);

/* Makes call number `call` answer `code`; 0 disarms.  A call that destroys or
   releases still does its work and then reports the failure, as a driver
   reports an earlier asynchronous error; any other call does nothing.
   cuGetErrorName and cuGetErrorString neither count nor fail. */
void cgl_fault_arm(uint64_t call, CUresult code);

/* Calls counted since the last arm, and the name of the row that was made to
   fail, or NULL when the count was not reached. */
uint64_t cgl_fault_calls(void);
const char *cgl_fault_hit(void);

#endif
