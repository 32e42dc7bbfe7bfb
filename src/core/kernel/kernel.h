/* Kernels: their parameters, arguments and launches.
   Invariant: a kernel keeps its module; the signature of a kernel made from
   source is borrowed from the module's image, NULL when the module was loaded
   from a ready image; sizes[i] is the driver's size of parameter i. */
#ifndef CGL_KERNEL_KERNEL_H
#define CGL_KERNEL_KERNEL_H

#include "core/module/module.h"
#include "core/record/issue.h"

#define CGL_MAX_PARAMS CGL_RECORD_MOST
#define CGL_MAX_PARAM_BYTES 4096

struct cgl_kernel {
  cgl_object object;
  cgl_module *module; /* retained */
  CUfunction handle;
  const char *name;               /* interned */
  const cgl_signature *signature; /* may be NULL */
  size_t nparams;
  uint32_t *sizes;     /* bytes of each parameter */
  size_t values_bytes; /* bytes of all values, each at a multiple of 16 */
  int max_threads;     /* of a block */
  int static_shared;
  int block_size;             /* suggested; 0: not asked yet */
  atomic_uint shared_allowed; /* dynamic bytes that the driver allows */
};

/* Values of arguments begin at multiples of 16, because the host device reads
   them in place.  CGL_VALUES_ROOM: bytes for the values of any kernel. */
enum { CGL_VALUES_ROOM = CGL_MAX_PARAM_BYTES + 16 * CGL_MAX_PARAMS };
/* Offset of the next value when the values so far end at `at`. */
static inline size_t cgl_kernel_next_value(size_t at) {
  return (at + 15) & ~(size_t)15;
}

/* ---- args.c ---- */

/* Checks an argument against parameter `index`, and writes its value of
   sizes[index] bytes to `out`.  CGL_ERROR_ARGUMENT_TYPE, _RANGE. */
cgl_status cgl_arg_pack(const cgl_kernel *kernel, size_t index,
                        const cgl_arg *arg, const char *operation, void *out);
/* The buffer or pinned memory of an argument, borrowed, with its address and
   bytes; NULL: another kind of argument. */
cgl_object *cgl_arg_memory(const cgl_arg *arg, CUdeviceptr *address,
                           size_t *bytes);

/* ---- launch.c ---- */

/* The same launch with extents of 0 set to 1. */
cgl_launch cgl_launch_resolve(const cgl_launch *wanted);
/* Refuses a wrong count of arguments, and a resolved shape or dynamic shared
   memory beyond the kernel's limits.  The context is current.
   cuFuncSetAttribute */
cgl_status cgl_launch_check(cgl_kernel *kernel, const cgl_launch *launch,
                            size_t nargs, const char *operation);
/* Whether the kernel may write through parameter `index`. */
bool cgl_kernel_writes(const cgl_kernel *kernel, size_t index);

#endif
