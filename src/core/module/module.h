/* Modules: compiled from source or loaded ready-made, and their variables;
   compilations off the caller's thread (compilation.c); images that a program
   is shipped with (shipped.c); kernels of the library's own (own.c).
   Invariant: an image lives as long as its module; objects that borrow from it
   (signatures, names) retain the module. */
#ifndef CGL_MODULE_MODULE_H
#define CGL_MODULE_MODULE_H

#include <pthread.h>

#include "compile/compile.h"
#include "core/base/base.h"
#include "core/record/issue.h"
#include "driver/predicate.h"

/* A module of second forms of kernels (predicated.c). */
typedef struct cgl_second {
  CUmodule module;  /* NULL: not asked for yet, or, */
  const char *why;  /* static: why there is none */
  cgl_image *image; /* owned: that it was loaded from, where it was supplied */
} cgl_second;

struct cgl_module {
  cgl_object object;
  CUmodule handle;
  cgl_image *image;        /* NULL when loaded ready-made */
  cgl_module_desc *source; /* in the arena: what the image was compiled from;
                              its text is NULL when an image was given */
  cgl_arena source_arena;
  pthread_mutex_t lock; /* guards what follows */
  cgl_second second;
};

/* The steps of cgl_module_create.  What the second step needs is copied, so a
   worker can do it: it sets no failure. */
cgl_status cgl_module_check(const cgl_module_desc *desc, const char *operation);
cgl_compile_status cgl_module_run_compiler(const cgl_target *target,
                                           const cgl_module_desc *desc,
                                           cgl_image **image, char **text);
/* The status of a compile, whose text (may be NULL) is logged or reported. */
cgl_status cgl_module_compiled(const cgl_context *context,
                               cgl_compile_status answer, const char *text,
                               cgl_image_format format, const char *operation);
/* $CGRAPHLUA_HOST_KERNELS=why: which kernels run as fibers is logged. */
void cgl_module_log_fibers(const cgl_context *context, const cgl_image *image,
                           const char *file);
/* On success takes *image, which may be NULL: `desc` is what it was compiled
   from. */
cgl_status cgl_module_load(cgl_context *context, const cgl_module_desc *desc,
                           cgl_image **image, const char *operation,
                           cgl_module **module);
/* A copy of what the caller lends for a compile, in the arena. */
void cgl_module_copy_desc(cgl_arena *arena, const cgl_module_desc *desc,
                          cgl_module_desc *copy);

/* ---- predicated.c ---- */

/* Keeps what second forms, and images for other devices (file/), are compiled
   from; false without memory. */
bool cgl_module_keep_source(cgl_module *module, const cgl_module_desc *desc);
/* The second forms of the kernels of `module`, made of `desc`: compiled and
   loaded, unless they are known.  Legal in captures.  cuModuleLoadData */
cgl_status cgl_module_find_second(cgl_context *context, CUmodule module,
                                  const cgl_module_desc *desc,
                                  const char *operation, cgl_second *second);
/* A second form of the kernel with this symbol, once they are there; NULL when
   it has no following form.  cuModuleGetFunction */
cgl_status cgl_module_second_function(cgl_context *context, CUmodule module,
                                      const cgl_second *second,
                                      cgl_second_form form, const char *name,
                                      const char *operation,
                                      CUfunction *function);
/* Before `module` goes.  cuModuleUnload */
void cgl_module_drop_second(cgl_context *context, CUmodule module,
                            const cgl_second *second);
/* A second form of the kernel with this symbol; NULL, and a static text in
   *why, when it has none.  Legal in captures.  cuModuleGetFunction,
   cuModuleLoadData */
cgl_status cgl_module_second_form(cgl_module *module, cgl_second_form form,
                                  const char *lowered, const char *operation,
                                  CUfunction *function, const char **why);

/* What the context's device runs. */
cgl_target cgl_module_target(const cgl_context *context);

/* Waits until no compilation is underway in the process. */
void cgl_compilations_finish(void);

/* Compiles a source for the device; the caller owns the image. */
cgl_status cgl_module_compile(cgl_context *context, const cgl_module_desc *desc,
                              cgl_image **image);

/* ---- own.c: kernels of the library's own ---- */

enum { CGL_OWN_PARTS = 18, CGL_OWN_KERNELS = 32 };

typedef struct cgl_own_kernel {
  const char *name;
  const char *option; /* with which its part of the source is compiled */
  int part;           /* number of that part */
} cgl_own_kernel;

/* The kernels of a room: static. */
typedef struct cgl_own cgl_own;
struct cgl_own {
  cgl_part_slot slot; /* where a context has them */
  const char *source;
  const cgl_own_kernel *kernels;
  size_t count; /* of kernels */
};

/* Kernel `index`, compiled and loaded at first use in the context.  Legal in
   captures.  cuModuleLoadData */
cgl_status cgl_module_own_kernel(cgl_context *context, const cgl_own *own,
                                 size_t index, const char *operation,
                                 CUfunction *kernel);
/* Its second form (driver/predicate.h), for a launch in any capture; NULL, and
   why, when it has none. */
cgl_status cgl_module_own_predicated(cgl_context *context, const cgl_own *own,
                                     size_t index, const char *operation,
                                     CUfunction *kernel, const char **why);
/* Of a kernel that was loaded, borrowed from the context. */
cgl_waiter *cgl_module_own_waiter(const cgl_context *context,
                                  const cgl_own *own, size_t index);
/* The same for a kernel that the caller can do without: NULL, with no failure
   noted, where it cannot be had; the context remembers that nothing compiles
   it. */
CUfunction cgl_module_try_own_kernel(cgl_context *context, const cgl_own *own,
                                     size_t index, const char *operation);

/* ---- for files of graphs (file/) ---- */

/* What the part of kernel `index` is compiled from, with room for its options.
 */
cgl_module_desc cgl_module_own_desc(const cgl_own *own, size_t index,
                                    const char *options[2]);
/* Which kernel a loaded function is, and in which form; false: none of them. */
bool cgl_module_own_find(cgl_context *context, const cgl_own *own,
                         CUfunction function, size_t *index, bool *second);
/* The image of the part of kernel `index`, borrowed from the context. */
cgl_status cgl_module_own_image(cgl_context *context, const cgl_own *own,
                                size_t index, const char *operation,
                                const cgl_image **image);
/* Loads the part of kernel `index` from an image, which it then takes, and its
   second form from `second` (NULL: none is needed), where they are not loaded.
   cuModuleLoadData */
cgl_status cgl_module_own_supply(cgl_context *context, const cgl_own *own,
                                 size_t index, cgl_image **image,
                                 const cgl_image *second,
                                 const char *operation);
/* The second form of the kernels of a module, from an image that was compiled
   before: the module's from now on, *image is NULL.  cuModuleLoadData */
cgl_status cgl_module_supply_second(cgl_module *module, cgl_image **image,
                                    const char *operation);

#endif
