/* Second forms of a module's kernels (driver/predicate.h).
   The host device's module has them.  For a GPU they are a module of their own,
   compiled from the same source and loaded when a first kernel is asked for. */
#include "core/module/module.h"

#include <stdlib.h>
#include <string.h>


bool cgl_module_keep_source(cgl_module *module, const cgl_module_desc *desc) {
  cgl_arena *arena = &module->source_arena;
  module->source = cgl_arena_alloc(arena, sizeof *module->source);
  if (module->source)
    cgl_module_copy_desc(arena, desc, module->source);
  return !arena->failed;
}


/* A driver's answers that say what it can, and not that something is wrong. */
static bool driver_declines(CUresult result) {
  enum { JIT_COMPILER_NOT_FOUND = 221, JIT_COMPILATION_DISABLED = 223 };
  return (int)result == JIT_COMPILER_NOT_FOUND ||
         (int)result == JIT_COMPILATION_DISABLED ||
         result == CUDA_ERROR_INVALID_IMAGE ||
         result == CUDA_ERROR_NO_BINARY_FOR_GPU ||
         result == CUDA_ERROR_INVALID_PTX ||
         result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}


/* Compiles and loads the second forms for a GPU. */
static cgl_status second_load(cgl_context *context, const cgl_module_desc *desc,
                              const char *operation, cgl_second *second) {
  cgl_target target = cgl_module_target(context);
  cgl_image *image = NULL;
  target.predicated = true;
  cgl_compile_status answer =
      cgl_module_run_compiler(&target, desc, &image, NULL);
  if (answer == CGL_COMPILE_SYSTEM)
    return cgl_fail(CGL_ERROR_SYSTEM, operation,
                    "the second form of kernels could not be compiled");
  CUresult result = CUDA_SUCCESS;
  if (answer != CGL_COMPILE_OK)
    second->why = "its second form does not compile";
  else
    result = context->driver->cuModuleLoadData(&second->module, image->bytes);
  cgl_image_free(image);
  if (result)
    second->module = NULL;
  if (driver_declines(result)) {
    second->why = "the driver does not load its second form";
    result = CUDA_SUCCESS;
  }
  return cgl_fail_driver(context, result, operation, "cuModuleLoadData");
}


cgl_status cgl_module_find_second(cgl_context *context, CUmodule module,
                                  const cgl_module_desc *desc,
                                  const char *operation, cgl_second *second) {
  if (second->module || second->why)
    return CGL_OK;
  if (context->driver->image_format != CGL_IMAGE_HOST)
    return second_load(context, desc, operation, second);
  second->module = module;
  return CGL_OK;
}


cgl_status cgl_module_second_function(cgl_context *context, CUmodule module,
                                      const cgl_second *second,
                                      cgl_second_form form, const char *name,
                                      const char *operation,
                                      CUfunction *function) {
  const bool follows = form == CGL_SECOND_FOLLOWING;
  char *full = cgl_format("%s%s", name,
                          follows                    ? CGL_FOLLOWING
                          : second->module == module ? CGL_PREDICATED
                                                     : "");
  if (!full)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a kernel");
  CUresult result =
      context->driver->cuModuleGetFunction(function, second->module, full);
  free(full);
  if (result)
    *function = NULL;
  if (follows && result == CUDA_ERROR_NOT_FOUND)
    return CGL_OK;
  return cgl_fail_driver(context, result, operation, "cuModuleGetFunction");
}


void cgl_module_drop_second(cgl_context *context, CUmodule module,
                            const cgl_second *second) {
  if (second->module && second->module != module)
    context->driver->cuModuleUnload(second->module);
}


/* Why a module has no second forms that nothing has to be compiled for. */
static const char *module_lacks_second(const cgl_module *module) {
  const cgl_image *image = module->image;
  return !image              ? "it was not compiled from source"
         : image->nvariables ? "its module has variables"
         : image->format != CGL_IMAGE_HOST && image->shipped &&
                 !module->second.module
             ? "it was compiled for this program before"
             : NULL;
}


cgl_status cgl_module_second_form(cgl_module *module, cgl_second_form form,
                                  const char *lowered, const char *operation,
                                  CUfunction *function, const char **why) {
  cgl_context *context = module->object.context;
  *function = NULL;
  *why = module_lacks_second(module);
  cgl_status status = cgl_context_enter(context, operation);
  if (status || *why)
    return status;
  pthread_mutex_lock(&module->lock);
  status = cgl_module_find_second(context, module->handle, module->source,
                                  operation, &module->second);
  const cgl_second second = module->second;
  pthread_mutex_unlock(&module->lock);
  *why = second.why;
  if (!status && !*why)
    status = cgl_module_second_function(context, module->handle, &second, form,
                                        lowered, operation, function);
  if (!status && !*why && !*function)
    *why = "it takes the address of a parameter";
  return status;
}


cgl_status cgl_module_supply_second(cgl_module *module, cgl_image **image,
                                    const char *operation) {
  cgl_context *context = module->object.context;
  module->second.image = *image;
  *image = NULL;
  CUresult result = context->driver->cuModuleLoadData(
      &module->second.module, module->second.image->bytes);
  if (result)
    module->second.module = NULL;
  return cgl_fail_driver(context, result, operation, "cuModuleLoadData");
}
