/* Kernels of the library's own, compiled and loaded at first use. */
#include "core/module/module.h"

#include <stdlib.h>

typedef struct own_part {
  cgl_part part;
  CUmodule modules[CGL_OWN_PARTS];   /* under load_lock */
  cgl_image *images[CGL_OWN_PARTS];  /* owned: of the modules, likewise */
  cgl_second seconds[CGL_OWN_PARTS]; /* likewise */
  _Atomic(CUfunction) kernels[CGL_OWN_KERNELS];
  cgl_waiter waiters[CGL_OWN_KERNELS];
  atomic_bool absent[CGL_OWN_KERNELS]; /* nothing compiles it */
} own_part;

static pthread_mutex_t load_lock = PTHREAD_MUTEX_INITIALIZER;


cgl_module_desc cgl_module_own_desc(const cgl_own *own, size_t index,
                                    const char *options[2]) {
  options[0] = "--fmad=false";
  options[1] = own->kernels[index].option;
  return (cgl_module_desc){.source = own->source,
                           .file = "cgraphlua",
                           .line = 1,
                           .options = options,
                           .noptions = 2};
}


/* Under the lock: loads the module of kernel `index`, and takes the image. */
static cgl_status own_load_image(cgl_context *context, own_part *all,
                                 const cgl_own *own, size_t index,
                                 cgl_image **taken, const char *operation) {
  const int part = own->kernels[index].part;
  CUmodule *module = &all->modules[part];
  const cgl_image *image = *taken;
  CUresult result = context->driver->cuModuleLoadData(module, image->bytes);
  for (size_t i = 0; i < own->count; i++)
    if (own->kernels[i].part == part) {
      const cgl_signature *s = cgl_image_find(image, own->kernels[i].name);
      all->waiters[i].waits = s && s->waits;
    }
  if (result)
    *module = NULL;
  else {
    all->images[part] = *taken;
    *taken = NULL;
  }
  return cgl_fail_driver(context, result, operation, "cuModuleLoadData");
}


/* Under the lock: compiles and loads the module of kernel `index`. */
static cgl_status own_load(cgl_context *context, own_part *all,
                           const cgl_own *own, size_t index,
                           const char *operation) {
  const char *options[2];
  const cgl_module_desc desc = cgl_module_own_desc(own, index, options);
  cgl_image *image = NULL;
  cgl_status status = cgl_module_compile(context, &desc, &image);
  if (!status)
    status = own_load_image(context, all, own, index, &image, operation);
  cgl_image_free(image);
  return status;
}


static void own_part_end(cgl_context *context, cgl_part *part) {
  own_part *all = (own_part *)part;
  /* A kernel may still run. */
  cgl_context_wait(context);
  for (int i = 0; i < CGL_OWN_PARTS; i++) {
    cgl_module_drop_second(context, all->modules[i], &all->seconds[i]);
    if (all->modules[i])
      context->driver->cuModuleUnload(all->modules[i]);
    cgl_image_free(all->images[i]);
  }
  free(all);
}


static own_part *own_part_of(cgl_context *context, const cgl_own *own,
                             const char *operation) {
  return (own_part *)cgl_context_make_part(context, own->slot, sizeof(own_part),
                                           (cgl_part){.end = own_part_end},
                                           operation);
}


cgl_status cgl_module_own_kernel(cgl_context *context, const cgl_own *own,
                                 size_t index, const char *operation,
                                 CUfunction *kernel) {
  own_part *all = own_part_of(context, own, operation);
  if (!all)
    return CGL_ERROR_NO_MEMORY;
  *kernel = atomic_load(&all->kernels[index]);
  if (*kernel)
    return CGL_OK;
  cgl_status status = CGL_OK;
  CUmodule *module = &all->modules[own->kernels[index].part];
  pthread_mutex_lock(&load_lock);
  if (!*module)
    status = own_load(context, all, own, index, operation);
  pthread_mutex_unlock(&load_lock);
  if (status)
    return status;
  CUresult result = context->driver->cuModuleGetFunction(
      kernel, *module, own->kernels[index].name);
  if (!result)
    atomic_store(&all->kernels[index], *kernel);
  return cgl_fail_driver(context, result, operation, "cuModuleGetFunction");
}


cgl_status cgl_module_own_predicated(cgl_context *context, const cgl_own *own,
                                     size_t index, const char *operation,
                                     CUfunction *kernel, const char **why) {
  const int part = own->kernels[index].part;
  const char *options[2];
  const cgl_module_desc desc = cgl_module_own_desc(own, index, options);
  cgl_status status =
      cgl_module_own_kernel(context, own, index, operation, kernel);
  *kernel = NULL;
  *why = NULL;
  if (status)
    return status;
  own_part *all = (own_part *)cgl_context_part(context, own->slot);
  pthread_mutex_lock(&load_lock);
  status = cgl_module_find_second(context, all->modules[part], &desc, operation,
                                  &all->seconds[part]);
  const cgl_second second = all->seconds[part];
  const CUmodule module = all->modules[part];
  pthread_mutex_unlock(&load_lock);
  *why = second.why;
  return status || *why ? status
                        : cgl_module_second_function(
                              context, module, &second, CGL_SECOND_PREDICATED,
                              own->kernels[index].name, operation, kernel);
}


cgl_waiter *cgl_module_own_waiter(const cgl_context *context,
                                  const cgl_own *own, size_t index) {
  own_part *all = (own_part *)cgl_context_part(context, own->slot);
  return &all->waiters[index];
}


CUfunction cgl_module_try_own_kernel(cgl_context *context, const cgl_own *own,
                                     size_t index, const char *operation) {
  CUfunction kernel = NULL;
  cgl_fail_quiet(true);
  own_part *all = own_part_of(context, own, operation);
  if (all && !atomic_load(&all->absent[index])) {
    cgl_status status =
        cgl_module_own_kernel(context, own, index, operation, &kernel);
    if (status)
      kernel = NULL;
    if (status == CGL_ERROR_NO_COMPILER || status == CGL_ERROR_COMPILE)
      atomic_store(&all->absent[index], true);
  }
  cgl_fail_quiet(false);
  return kernel;
}


/* ---- for files of graphs ---- */

bool cgl_module_own_find(cgl_context *context, const cgl_own *own,
                         CUfunction function, size_t *index, bool *second) {
  own_part *all = (own_part *)cgl_context_part(context, own->slot);
  for (*index = 0; all && *index < own->count; ++*index) {
    const int part = own->kernels[*index].part;
    CUfunction form = NULL;
    *second = false;
    if (atomic_load(&all->kernels[*index]) == function)
      return true;
    pthread_mutex_lock(&load_lock);
    const cgl_second seconds = all->seconds[part];
    const CUmodule module = all->modules[part];
    pthread_mutex_unlock(&load_lock);
    *second = true;
    cgl_fail_quiet(true);
    if (seconds.module)
      cgl_module_second_function(
          context, module, &seconds, CGL_SECOND_PREDICATED,
          own->kernels[*index].name, "graph:save", &form);
    cgl_fail_quiet(false);
    if (form == function)
      return true;
  }
  return false;
}


cgl_status cgl_module_own_image(cgl_context *context, const cgl_own *own,
                                size_t index, const char *operation,
                                const cgl_image **image) {
  CUfunction kernel;
  cgl_status status =
      cgl_module_own_kernel(context, own, index, operation, &kernel);
  own_part *all = (own_part *)cgl_context_part(context, own->slot);
  *image = status ? NULL : all->images[own->kernels[index].part];
  return status;
}


cgl_status cgl_module_own_supply(cgl_context *context, const cgl_own *own,
                                 size_t index, cgl_image **image,
                                 const cgl_image *second,
                                 const char *operation) {
  const int part = own->kernels[index].part;
  own_part *all = own_part_of(context, own, operation);
  if (!all)
    return CGL_ERROR_NO_MEMORY;
  cgl_status status = CGL_OK;
  pthread_mutex_lock(&load_lock);
  if (!all->modules[part])
    status = own_load_image(context, all, own, index, image, operation);
  cgl_second *form = &all->seconds[part];
  if (!status && second && !form->module) {
    CUresult result =
        context->driver->cuModuleLoadData(&form->module, second->bytes);
    if (result)
      form->module = NULL;
    else
      form->why = NULL;
    status = cgl_fail_driver(context, result, operation, "cuModuleLoadData");
  }
  pthread_mutex_unlock(&load_lock);
  return status;
}
