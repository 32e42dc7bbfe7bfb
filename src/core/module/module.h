/* Modules: compiled from source or loaded ready-made, and their variables.
   Invariant: an image lives as long as its module; objects that borrow from it
   (signatures, names) retain the module. */
#ifndef CGL_MODULE_MODULE_H
#define CGL_MODULE_MODULE_H

#include "compile/compile.h"
#include "core/base/base.h"

struct cgl_module {
  cgl_object object;
  CUmodule handle;
  cgl_image *image; /* NULL when loaded ready-made */
};

/* Compiles a source for the device; the caller owns the image. */
cgl_status cgl_module_compile(cgl_context *context, const cgl_module_desc *desc,
                              cgl_image **image);

#endif
