/* Modules: compiled from source or loaded ready-made; their kernels. */
#include "core/module/module.h"
#include "core/memory/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* ---- modules ---- */

/* What the compiler answered and said (NULL: nothing). */
static cgl_status compiled(cgl_compile_status answer, const char *text,
                           cgl_image_format format) {
  static const char operation[] = "module";
  switch (answer) {
  case CGL_COMPILE_OK:
    if (text && *text) /* without the end of its last line */
      cgl_log("%.*s", (int)(strlen(text) - (text[strlen(text) - 1] == '\n')),
              text);
    return CGL_OK;
  case CGL_COMPILE_REFUSED:
    cgl_fail(CGL_ERROR_COMPILE, operation,
             "the kernel source does not compile:\n%s", text ? text : "");
    return cgl_fail_hint("mend the source at the line that the compiler names");
  case CGL_COMPILE_NO_COMPILER:
    cgl_fail(CGL_ERROR_NO_COMPILER, operation, "%s",
             text ? text : "no compiler was found");
    return cgl_fail_hint(
        "install %s",
        format == CGL_IMAGE_HOST
            ? "g++ (or clang++), or name one in $CGRAPHLUA_CXX"
            : "the CUDA toolkit's NVRTC library, or set $CUDA_HOME");
  case CGL_COMPILE_SYSTEM:
    break;
  }
  return cgl_fail(CGL_ERROR_SYSTEM, operation, "%s",
                  text ? text : "the compiler could not be run");
}


cgl_status cgl_module_compile(cgl_context *context, const cgl_module_desc *desc,
                              cgl_image **image) {
  cgl_target target = {context->driver->image_format,
                       10 * context->info.compute[0] +
                           context->info.compute[1]};
  cgl_site site = cgl_site_here;
  const char *file = desc->file ? desc->file : site.file;
  cgl_source source = {
      .text = desc->source,
      .length = strlen(desc->source),
      .file = file ? file : "kernel",
      .line = desc->line > 0 ? desc->line : 1,
      .options = desc->options,
      .noptions = desc->noptions,
      .expressions = desc->expressions,
      .nexpressions = desc->nexpressions,
  };
  char *text = NULL;
  cgl_compile_status answer = cgl_compile(&target, &source, image, &text);
  cgl_status status = compiled(answer, text, target.format);
  free(text);
  return status;
}


static cgl_status load(cgl_module *module, const void *bytes) {
  cgl_context *context = module->object.context;
  CUresult result = context->driver->cuModuleLoadData(&module->handle, bytes);
  if (!result)
    return CGL_OK;
  module->handle = NULL;
  return cgl_fail_driver(context, result, "module", "cuModuleLoadData");
}


cgl_status cgl_module_create(cgl_context *context, const cgl_module_desc *desc,
                             cgl_module **out) {
  static const char operation[] = "module";
  if (!desc->source && !desc->image) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "neither a source nor an image was given");
    return cgl_fail_hint("start from cgl_module_desc d = {.source = text}");
  }
  cgl_status status = cgl_context_enter(context, operation);
  if (status)
    return status;
  cgl_module *module = calloc(1, sizeof *module);
  if (!module)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a module");
  cgl_object_init(&module->object, CGL_OBJECT_module, context);
  if (desc->source)
    status = cgl_module_compile(context, desc, &module->image);
  if (!status)
    status = load(module, desc->source ? module->image->bytes : desc->image);
  if (status) {
    cgl_module_release(module);
    return status;
  }
  *out = module;
  return CGL_OK;
}


void cgl_module_destroy(cgl_module *module) {
  cgl_context *context = module->object.context;
  if (module->handle && !cgl_context_enter(context, "module")) {
    /* A kernel of it may still run. */
    cgl_context_wait(context);
    context->driver->cuModuleUnload(module->handle);
  }
  cgl_image_free(module->image);
  free(module);
}


const char *cgl_module_kernel_name(const cgl_module *module, size_t index) {
  if (!module->image || index >= module->image->nsignatures)
    return NULL;
  return module->image->signatures[index].name;
}


/* The names a module has, for messages. */
static void list_names(const cgl_module *module, char *text, size_t size) {
  size_t at = 0;
  text[0] = 0;
  const char *name;
  for (size_t i = 0; at < size && (name = cgl_module_kernel_name(module, i));
       i++)
    at += (size_t)snprintf(text + at, size - at, "%s%s", i ? ", " : "", name);
}


static cgl_status no_kernel(const cgl_module *module, const char *name) {
  char names[300];
  list_names(module, names, sizeof names);
  size_t count = module->image ? module->image->nsignatures : 0;
  if (!name)
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "module:kernel",
             count ? "the module has %zu kernels: %s"
                   : "the module has no kernel that needs no name",
             count, names);
  else
    cgl_fail(CGL_ERROR_NOT_FOUND, "module:kernel",
             "there is no kernel \"%s\" in the module%s%s", name,
             count ? "; it has " : "", names);
  cgl_fail_hint(name ? "a template needs its arguments as a name expression "
                       "when the module is made"
                : count
                    ? "say which one"
                    : "kernels are __global__ functions; a template needs its "
                      "arguments as a name expression");
  return name ? CGL_ERROR_NOT_FOUND : CGL_ERROR_INVALID_ARGUMENT;
}


/* ---- kernels ---- */

/* Counts the parameters and learns their sizes.  The signature knows how many
   there are and the driver how large; without a signature the driver says
   where they end, and without a driver that can say, the signature fills
   in. */
static cgl_status learn_parameters(cgl_kernel *kernel) {
  cgl_context *context = kernel->object.context;
  const cgl_driver *driver = context->driver;
  const cgl_signature *signature = kernel->signature;
  uint32_t sizes[CGL_MAX_PARAMS];
  size_t most = signature ? signature->nparameters : CGL_MAX_PARAMS;
  size_t count = 0, total = 0;
  CUresult result = CUDA_SUCCESS;
  for (; count < most && count < CGL_MAX_PARAMS; count++) {
    size_t offset, size;
    result = driver->cuFuncGetParamInfo(kernel->handle, count, &offset, &size);
    if (result == CUDA_ERROR_NOT_SUPPORTED && signature) {
      size = signature->parameters[count].size;
      offset = total;
      result = CUDA_SUCCESS;
    }
    if (result)
      break;
    sizes[count] = (uint32_t)size;
    total = offset + size;
  }
  if (result && (signature || result != CUDA_ERROR_INVALID_VALUE))
    return cgl_fail_driver(context, result, "module:kernel",
                           "cuFuncGetParamInfo");
  if (total > CGL_MAX_PARAM_BYTES || most > CGL_MAX_PARAMS ||
      count == CGL_MAX_PARAMS) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "module:kernel",
             "%s takes %zu parameters of %zu bytes in all; %d of %d are "
             "possible",
             kernel->name, count, total, CGL_MAX_PARAMS - 1,
             CGL_MAX_PARAM_BYTES);
    return cgl_fail_hint("pass large structs in a buffer");
  }
  kernel->nparams = count;
  kernel->values_bytes = cgl_value_next(1);
  for (size_t i = 0; i < count; i++)
    kernel->values_bytes += cgl_value_next(sizes[i]);
  kernel->sizes = malloc((count ? count : 1) * sizeof *sizes);
  if (!kernel->sizes)
    return cgl_fail(CGL_ERROR_NO_MEMORY, "module:kernel",
                    "no memory for a kernel");
  memcpy(kernel->sizes, sizes, count * sizeof *sizes);
  return CGL_OK;
}


static cgl_status learn_limits(cgl_kernel *kernel) {
  cgl_context *context = kernel->object.context;
  CUresult result = context->driver->cuFuncGetAttribute(
      &kernel->max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
      kernel->handle);
  if (!result)
    result = context->driver->cuFuncGetAttribute(
        &kernel->static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        kernel->handle);
  return cgl_fail_driver(context, result, "module:kernel",
                         "cuFuncGetAttribute");
}


cgl_status cgl_module_kernel(cgl_module *module, const char *name,
                             cgl_kernel **out) {
  cgl_context *context = module->object.context;
  const cgl_signature *signature = NULL;
  if (!name) {
    if (!module->image || module->image->nsignatures != 1)
      return no_kernel(module, NULL);
    signature = &module->image->signatures[0];
  } else if (module->image) {
    signature = cgl_image_find(module->image, name);
    if (!signature)
      return no_kernel(module, name);
  }
  cgl_status status = cgl_context_enter(context, "module:kernel");
  if (status)
    return status;
  CUfunction handle;
  CUresult result = context->driver->cuModuleGetFunction(
      &handle, module->handle, signature ? signature->lowered : name);
  if (result == CUDA_ERROR_NOT_FOUND)
    return no_kernel(module, name);
  if (result)
    return cgl_fail_driver(context, result, "module:kernel",
                           "cuModuleGetFunction");
  cgl_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel)
    return cgl_fail(CGL_ERROR_NO_MEMORY, "module:kernel",
                    "no memory for a kernel");
  cgl_object_init(&kernel->object, CGL_OBJECT_kernel, context);
  kernel->module = cgl_module_retain(module);
  kernel->handle = handle;
  kernel->signature = signature;
  kernel->name = cgl_intern(signature ? signature->name : name);
  atomic_init(&kernel->shared_allowed, 48 * 1024);
  status = learn_parameters(kernel);
  if (!status)
    status = learn_limits(kernel);
  if (status) {
    cgl_kernel_release(kernel);
    return status;
  }
  *out = kernel;
  return CGL_OK;
}


void cgl_kernel_destroy(cgl_kernel *kernel) {
  cgl_module_release(kernel->module);
  free(kernel->sizes);
  free(kernel);
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
  return cgl_buffer_of_module(module, address, type, bytes / element, out);
}
