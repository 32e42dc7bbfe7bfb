/* Modules and kernels.
   Invariant: a kernel keeps its module; the signature of a kernel made from
   source is borrowed from the module's image, NULL when the module was loaded
   from a ready image; sizes[i] is the driver's size of parameter i. */
#ifndef CGL_CORE_MODULE_H
#define CGL_CORE_MODULE_H

#include "compile/compile.h"
#include "core/record/record.h"

#define CGL_MAX_PARAMS 256
#define CGL_MAX_PARAM_BYTES 4096

struct cgl_module {
  cgl_object object;
  CUmodule handle;
  cgl_image *image; /* NULL when loaded ready-made */
};

struct cgl_kernel {
  cgl_object object;
  cgl_module *module; /* retained */
  CUfunction handle;
  const char *name;               /* interned */
  const cgl_signature *signature; /* may be NULL */
  size_t nparams;
  uint32_t *sizes;     /* bytes of each parameter */
  size_t values_bytes; /* room for a value of each, wherever it begins */
  int max_threads;     /* of a block */
  int static_shared;
  int block_size;             /* suggested, 0: not asked yet */
  atomic_uint shared_allowed; /* dynamic bytes the driver was told of */
};

/* module.c: compiles a source for the device; the image is the caller's. */
cgl_status cgl_module_compile(cgl_context *context, const cgl_module_desc *desc,
                              cgl_image **image);

/* args.c: the value of one argument, checked against parameter `index`, into
   `out` (its size is sizes[index], at most CGL_MAX_PARAM_BYTES). */
cgl_status cgl_arg_pack(const cgl_kernel *kernel, size_t index,
                        const cgl_arg *arg, const char *operation, void *out);

/* ---- kernel.c ---- */

/* Values of arguments begin at multiples of 16, for the host device, which
   reads them where they lie: room for any, and where the next one goes. */
enum { CGL_VALUES_ROOM = CGL_MAX_PARAM_BYTES + 16 * CGL_MAX_PARAMS };
static inline size_t cgl_value_next(size_t at) {
  return (at + 15) & ~(size_t)15;
}
/* The same launch with its extents of 0 resolved. */
cgl_launch cgl_launch_resolve(const cgl_launch *wanted);
/* Refuses a count of arguments, a resolved shape or dynamic shared memory that
   the kernel cannot have; enters its context.  cuFuncSetAttribute */
cgl_status cgl_kernel_check(cgl_kernel *kernel, const cgl_launch *launch,
                            size_t nargs, const char *operation);
/* The memory of a buffer or pinned memory; false: the argument has none. */
bool cgl_arg_reaches(const cgl_arg *arg, cgl_range *range);
/* The memory that argument `index` reaches; false when it is no pointer to
   ours. */
bool cgl_kernel_reaches(const cgl_kernel *kernel, size_t index,
                        const cgl_arg *arg, cgl_range *range);

#endif
