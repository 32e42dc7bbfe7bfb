/* Modules and kernels.
   Invariant: a kernel keeps its module; the signature of a kernel made from
   source is borrowed from the module's image, NULL when the module was loaded
   from a ready image; sizes[i] is the driver's size of parameter i. */
#ifndef CGL_CORE_MODULE_H
#define CGL_CORE_MODULE_H

#include "compile/compile.h"
#include "core/core.h"

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
  uint32_t *sizes; /* bytes of each parameter */
  int max_threads; /* of a block */
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
                        const cgl_arg *arg, void *out);

#endif
