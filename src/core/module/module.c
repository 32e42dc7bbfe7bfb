/* Modules: compiled from source or loaded ready-made; their variables. */
#include "core/module/module.h"
#include "core/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


cgl_status cgl_module_compiled(const cgl_context *context,
                               cgl_compile_status answer, const char *text,
                               cgl_image_format format, const char *operation) {
  switch (answer) {
  case CGL_COMPILE_OK:
    if (text && *text) /* without the end of its last line */
      cgl_log(context, CGL_LOG_WARNING, "%.*s",
              (int)(strlen(text) - (text[strlen(text) - 1] == '\n')), text);
    return CGL_OK;
  case CGL_COMPILE_REFUSED:
    cgl_fail(CGL_ERROR_COMPILE, operation,
             "the kernel source does not compile:\n%s", text ? text : "");
    return cgl_fail_hint("fix the source at the line that the compiler names");
  case CGL_COMPILE_NO_COMPILER:
    cgl_fail(CGL_ERROR_NO_COMPILER, operation, "%s",
             text ? text : "no compiler was found");
    return cgl_fail_hint(
        "install %s; or make images where there is a compiler, with "
        "cgraphlua --compile, and name their folder in $CGRAPHLUA_KERNELS",
        format == CGL_IMAGE_HOST
            ? "g++ (or clang++), or name one in $CGRAPHLUA_CXX"
            : "the CUDA toolkit's NVRTC library, or set $CUDA_HOME");
  case CGL_COMPILE_SYSTEM:
    break;
  }
  return cgl_fail(CGL_ERROR_SYSTEM, operation, "%s",
                  text ? text : "the compiler could not be run");
}


void cgl_module_log_fibers(const cgl_context *context, const cgl_image *image,
                           const char *file) {
  const char *asked = getenv("CGRAPHLUA_HOST_KERNELS");
  for (size_t i = 0; asked && !strcmp(asked, "why") && i < image->nsignatures;
       i++) {
    const cgl_signature *s = &image->signatures[i];
    if (s->fibers)
      cgl_log(context, CGL_LOG_INFO, "%s:%d: kernel %s runs as fibers: %s",
              file ? file : "kernel", image->line + s->fibers_line, s->name,
              s->fibers);
  }
}


void cgl_module_hash(const void *source, size_t bytes, char hash[33]) {
  const cgl_cache_key key = cgl_cache_hash(source, bytes);
  for (size_t i = 0; i < sizeof key.bytes; i++)
    snprintf(hash + 2 * i, 3, "%02x", key.bytes[i]);
}


cgl_compile_status cgl_module_run_compiler(const cgl_target *target,
                                           const cgl_module_desc *desc,
                                           cgl_image **image, char **text) {
  const cgl_source source = {
      .text = desc->source,
      .length = strlen(desc->source),
      .file = desc->file ? desc->file : "kernel",
      .line = desc->line > 0 ? desc->line : 1,
      .options = desc->options,
      .noptions = desc->noptions,
      .expressions = desc->expressions,
      .nexpressions = desc->nexpressions,
      .shipped = desc->shipped,
  };
  return cgl_compile(target, &source, image, text);
}


cgl_target cgl_module_target(const cgl_context *context) {
  return (cgl_target){.format = context->driver->image_format,
                      .sm = 10 * context->info.compute[0] +
                            context->info.compute[1]};
}


cgl_status cgl_module_compile(cgl_context *context, const cgl_module_desc *desc,
                              cgl_image **image) {
  cgl_target target = cgl_module_target(context);
  cgl_module_desc located = *desc;
  if (!located.file)
    located.file = cgl_site_here.file;
  char *text = NULL;
  cgl_compile_status answer =
      cgl_module_run_compiler(&target, &located, image, &text);
  cgl_status status =
      cgl_module_compiled(context, answer, text, target.format, "module");
  free(text);
  if (!status)
    cgl_module_log_fibers(context, *image, located.file);
  return status;
}


static void module_destroy(cgl_object *object) {
  cgl_module *module = (cgl_module *)object;
  cgl_context *context = module->object.context;
  if (module->handle && !cgl_context_enter(context, "module")) {
    /* A kernel of it may still run. */
    cgl_context_wait(context);
    cgl_module_drop_second(context, module->handle, &module->second);
    context->driver->cuModuleUnload(module->handle);
  }
  cgl_image_free(module->image);
  cgl_image_free(module->second.image);
  cgl_arena_free(&module->source_arena);
  pthread_mutex_destroy(&module->lock);
  free(module);
}


CGL_OBJECT_KIND(module, .destroy = module_destroy)


cgl_status cgl_module_check(const cgl_module_desc *desc,
                            const char *operation) {
  if (desc->source || desc->image)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "neither a source nor an image was given");
  return cgl_fail_hint("start from cgl_module_desc d = {.source = text}");
}


cgl_status cgl_module_load(cgl_context *context, const cgl_module_desc *desc,
                           cgl_image **image, const char *operation,
                           cgl_module **out) {
  cgl_module *module = calloc(1, sizeof *module);
  if (!module)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a module");
  cgl_object_init(&module->object, &module_kind, context);
  pthread_mutex_init(&module->lock, NULL);
  CUresult result = context->driver->cuModuleLoadData(
      &module->handle, *image ? (*image)->bytes : desc->image);
  if (result)
    module->handle = NULL;
  else {
    module->image = *image;
    *image = NULL;
  }
  cgl_status status =
      cgl_fail_driver(context, result, operation, "cuModuleLoadData");
  if (!status && module->image && !cgl_module_keep_source(module, desc))
    status = cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a module");
  if (status)
    cgl_module_release(module);
  else
    *out = module;
  return status;
}


cgl_status cgl_module_create(cgl_context *context, const cgl_module_desc *desc,
                             cgl_module **out) {
  static const char operation[] = "module";
  cgl_image *image = NULL;
  cgl_status status = cgl_module_check(desc, operation);
  if (!status)
    status = cgl_context_enter(context, operation);
  if (!status && desc->source)
    status = cgl_module_compile(context, desc, &image);
  if (!status)
    status = cgl_module_load(context, desc, &image, operation, out);
  cgl_image_free(image);
  return status;
}


cgl_status cgl_module_global(cgl_module *module, const char *name,
                             cgl_type type, cgl_buffer **out) {
  static const char operation[] = "module:global";
  cgl_context *context = module->object.context;
  cgl_status status = cgl_context_enter(context, operation);
  if (status)
    return status;
  const char *symbol = name;
  for (size_t i = 0; module->image && i < module->image->nvariables; i++)
    if (!strcmp(module->image->variables[i].name, name))
      symbol = module->image->variables[i].lowered;
  CUdeviceptr address;
  size_t bytes;
  CUresult result = context->driver->cuModuleGetGlobal(&address, &bytes,
                                                       module->handle, symbol);
  if (result == CUDA_ERROR_NOT_FOUND) {
    cgl_fail(CGL_ERROR_NOT_FOUND, operation,
             "there is no __device__ or __constant__ variable \"%s\"", name);
    return cgl_fail_hint("name a variable of the source, its namespace in "
                         "front");
  }
  if (result)
    return cgl_fail_driver(context, result, operation, "cuModuleGetGlobal");
  size_t element = cgl_type_bytes(type);
  if (!element || bytes % element) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the %zu bytes of \"%s\" are not whole elements of %s", bytes,
             name, cgl_type_name(type));
    return cgl_fail_hint("give the variable's own element type, or \"uint8\" "
                         "for its bytes");
  }
  return cgl_buffer_of_keeper(&module->object, address, type, bytes / element,
                              out);
}
