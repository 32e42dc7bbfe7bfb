/* Kernels of a module: found, and what they take. */
#include "core/kernel/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char finding[] = "module:kernel";

_Static_assert(CGL_MAX_FIELD_DIMS == CGL_FIELD_DIMS, "extents of fields");


const char *cgl_module_kernel_name(const cgl_module *module, size_t index) {
  if (!module->image || index >= module->image->nsignatures)
    return NULL;
  return module->image->signatures[index].name;
}


static cgl_status refuse_name(const cgl_module *module, const char *name) {
  const size_t count = module->image ? module->image->nsignatures : 0;
  char names[300] = "";
  size_t at = 0;
  for (size_t i = 0; i < count && at < sizeof names; i++)
    at += (size_t)snprintf(names + at, sizeof names - at, "%s%s", i ? ", " : "",
                           cgl_module_kernel_name(module, i));
  if (name) {
    cgl_fail(CGL_ERROR_NOT_FOUND, finding,
             "there is no kernel \"%s\" in the module%s%s", name,
             count ? "; it has " : "", names);
    return cgl_fail_hint("a template needs its arguments as a name expression "
                         "when the module is made");
  }
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, finding,
           count ? "the module has %zu kernels: %s"
                 : "the module has no kernel that needs no name",
           count, names);
  return cgl_fail_hint(count ? "say which one"
                             : "kernels are __global__ functions; a template "
                               "needs its arguments as a name expression");
}


/* ---- kernels ---- */

/* Counts the parameters and learns their sizes.  The signature knows how many
   there are and the driver how large; without a signature the driver says
   where they end, and without a driver that can say, the signature fills
   in. */
static cgl_status kernel_learn_parameters(cgl_kernel *kernel) {
  cgl_context *context = kernel->object.context;
  const cgl_driver *driver = context->driver;
  const cgl_signature *signature = kernel->signature;
  size_t most = signature ? signature->nparameters : CGL_MAX_PARAMS;
  size_t count = 0, total = 0;
  CUresult result = CUDA_SUCCESS;
  kernel->values_bytes = cgl_kernel_next_value(1);
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
    kernel->sizes[count] = (uint32_t)size;
    kernel->values_bytes += cgl_kernel_next_value(size);
    total = offset + size;
  }
  if (result && (signature || result != CUDA_ERROR_INVALID_VALUE))
    return cgl_fail_driver(context, result, finding, "cuFuncGetParamInfo");
  if (total > CGL_MAX_PARAM_BYTES || most > CGL_MAX_PARAMS ||
      count == CGL_MAX_PARAMS) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, finding,
             "%s takes %zu parameters of %zu bytes in all; %d of %d are "
             "possible",
             kernel->name, count, total, CGL_MAX_PARAMS - 1,
             CGL_MAX_PARAM_BYTES);
    return cgl_fail_hint("pass large structs in a buffer");
  }
  kernel->nparams = count;
  return CGL_OK;
}


static cgl_status kernel_learn_limits(cgl_kernel *kernel) {
  cgl_context *context = kernel->object.context;
  CUresult result = context->driver->cuFuncGetAttribute(
      &kernel->max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
      kernel->handle);
  if (!result)
    result = context->driver->cuFuncGetAttribute(
        &kernel->static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        kernel->handle);
  return cgl_fail_driver(context, result, finding, "cuFuncGetAttribute");
}


static void kernel_destroy(cgl_object *object) {
  cgl_kernel *kernel = (cgl_kernel *)object;
  cgl_module_release(kernel->module);
  free(kernel);
}


CGL_OBJECT_KIND(kernel, .light = true, .destroy = kernel_destroy)


cgl_status cgl_module_kernel(cgl_module *module, const char *name,
                             cgl_kernel **out) {
  cgl_context *context = module->object.context;
  const cgl_signature *signature = NULL;
  if (!name) {
    if (!module->image || module->image->nsignatures != 1)
      return refuse_name(module, NULL);
    signature = &module->image->signatures[0];
  } else if (module->image) {
    signature = cgl_image_find(module->image, name);
    if (!signature)
      return refuse_name(module, name);
  }
  cgl_status status = cgl_context_enter(context, finding);
  if (status)
    return status;
  CUfunction handle;
  CUresult result = context->driver->cuModuleGetFunction(
      &handle, module->handle, signature ? signature->lowered : name);
  if (result == CUDA_ERROR_NOT_FOUND)
    return refuse_name(module, name);
  if (result)
    return cgl_fail_driver(context, result, finding, "cuModuleGetFunction");
  cgl_kernel *kernel = calloc(1, sizeof *kernel);
  if (!kernel)
    return cgl_fail(CGL_ERROR_NO_MEMORY, finding, "no memory for a kernel");
  cgl_object_init(&kernel->object, &kernel_kind, context);
  kernel->module = cgl_module_retain(module);
  kernel->handle = handle;
  kernel->signature = signature;
  kernel->waiter.waits = signature && signature->waits;
  kernel->following_waiter.waits = kernel->waiter.waits;
  kernel->name = cgl_intern(signature ? signature->name : name);
  atomic_init(&kernel->shared_allowed, 48 * 1024);
  status = kernel_learn_parameters(kernel);
  if (!status)
    status = kernel_learn_limits(kernel);
  if (status) {
    cgl_kernel_release(kernel);
    return status;
  }
  *out = kernel;
  return CGL_OK;
}


/* ---- facts ---- */

const char *cgl_kernel_name(const cgl_kernel *kernel) {
  return kernel->name;
}


size_t cgl_kernel_param_count(const cgl_kernel *kernel) {
  return kernel->nparams;
}


cgl_status cgl_kernel_param(const cgl_kernel *kernel, size_t index,
                            cgl_param_info *info) {
  if (index >= kernel->nparams) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "kernel:param",
             "%s has %zu parameters", kernel->name, kernel->nparams);
    return cgl_fail_hint("they are numbered from 0");
  }
  const cgl_parameter *p = cgl_kernel_parameter(kernel, index);
  *info = (cgl_param_info){.type = "",
                           .name = "",
                           .bytes = kernel->sizes[index],
                           .element = CGL_TYPE_COUNT};
  if (p)
    *info = (cgl_param_info){p->type,
                             p->name,
                             p->pointer,
                             p->readonly,
                             kernel->sizes[index],
                             cgl_kernel_element(p->kind),
                             p->lanes};
  return CGL_OK;
}


cgl_status cgl_kernel_set_effect(cgl_kernel *kernel, size_t index,
                                 cgl_effect effect) {
  static const char operation[] = "kernel:effects";
  cgl_param_info info = {.type = "", .name = ""};
  cgl_status status = cgl_kernel_param(kernel, index, &info);
  if (status)
    return status;
  if (effect && !info.pointer &&
      (kernel->signature || info.bytes != sizeof(CUdeviceptr))) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "parameter %zu of %s (%s%s%s) is no pointer", index + 1,
             kernel->name, info.type, *info.name ? " " : "", info.name);
    return cgl_fail_hint("say what the kernel does with memory");
  }
  if ((unsigned)effect > CGL_EFFECT_UPDATE)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
                    "%d is not an effect", (int)effect);
  atomic_store(&kernel->effects[index], (unsigned char)effect);
  return CGL_OK;
}


size_t cgl_kernel_field_count(const cgl_kernel *kernel, size_t index) {
  const cgl_parameter *p =
      index < kernel->nparams ? cgl_kernel_parameter(kernel, index) : NULL;
  return p && p->size == kernel->sizes[index] ? p->nfields : 0;
}


cgl_type cgl_kernel_element(cgl_kind kind) {
  static const struct {
    cgl_kind kind;
    cgl_type type;
  } rows[] = {
      {CGL_KIND_BOOL, CGL_TYPE_bool},
      {CGL_KIND_INT8, CGL_TYPE_int8},
      {CGL_KIND_UINT8, CGL_TYPE_uint8},
      {CGL_KIND_INT16, CGL_TYPE_int16},
      {CGL_KIND_UINT16, CGL_TYPE_uint16},
      {CGL_KIND_INT32, CGL_TYPE_int32},
      {CGL_KIND_UINT32, CGL_TYPE_uint32},
      {CGL_KIND_INT64, CGL_TYPE_int64},
      {CGL_KIND_UINT64, CGL_TYPE_uint64},
      {CGL_KIND_HALF, CGL_TYPE_half},
      {CGL_KIND_FLOAT, CGL_TYPE_float},
      {CGL_KIND_BFLOAT16, CGL_TYPE_bfloat16},
      {CGL_KIND_DOUBLE, CGL_TYPE_double},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].kind == kind)
      return rows[i].type;
  return CGL_TYPE_COUNT;
}


cgl_status cgl_kernel_field(const cgl_kernel *kernel, size_t index,
                            size_t field, cgl_field_info *info) {
  const size_t n = cgl_kernel_field_count(kernel, index);
  if (field >= n) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "kernel:field",
             "parameter %zu of %s has %zu fields", index, kernel->name, n);
    return cgl_fail_hint("they are numbered from 0");
  }
  const cgl_field *f = &cgl_kernel_parameter(kernel, index)->fields[field];
  *info = (cgl_field_info){.type = f->type,
                           .name = f->name,
                           .element = f->pointer ? CGL_TYPE_COUNT
                                                 : cgl_kernel_element(f->kind),
                           .lanes = f->lanes,
                           .pointer = f->pointer,
                           .offset = f->offset,
                           .bytes = f->size,
                           .nested = f->nested};
  while (info->ndims < CGL_MAX_FIELD_DIMS && f->extents[info->ndims]) {
    info->extents[info->ndims] = f->extents[info->ndims];
    info->ndims++;
  }
  return CGL_OK;
}


cgl_form cgl_kernel_form(const cgl_kernel *kernel, const char **why,
                         int *line) {
  const cgl_signature *s = kernel->signature;
  const cgl_image *image = kernel->module->image;
  bool host = image && image->format == CGL_IMAGE_HOST;
  if (why)
    *why = host ? s->fibers : NULL;
  if (line)
    *line = host && s->fibers ? image->line + s->fibers_line : 0;
  return !host       ? CGL_FORM_DEVICE
         : s->fibers ? CGL_FORM_FIBERS
         : s->loops  ? CGL_FORM_LOOPS
         : s->strips ? CGL_FORM_STRIPS
                     : CGL_FORM_LOOP;
}


void cgl_kernel_info(const cgl_kernel *kernel, cgl_kernel_facts *facts) {
  *facts = (cgl_kernel_facts){.name = cgl_kernel_name(kernel)};
  facts->form = cgl_kernel_form(kernel, &facts->why, &facts->line);
}


const char *cgl_form_name(cgl_form form) {
  static const char *const names[] = {"device", "loop", "loops", "fibers",
                                      "strips"};
  return form <= CGL_FORM_STRIPS ? names[form] : "unknown";
}


cgl_status cgl_kernel_block_size(cgl_kernel *kernel, uint32_t *block) {
  if (!kernel->block_size) {
    cgl_context *context = kernel->object.context;
    cgl_status status = cgl_context_enter(context, "kernel:over");
    if (status)
      return status;
    int grid, size;
    CUresult result = context->driver->cuOccupancyMaxPotentialBlockSize(
        &grid, &size, kernel->handle, NULL, 0, 0);
    if (result)
      return cgl_fail_driver(context, result, "kernel:over",
                             "cuOccupancyMaxPotentialBlockSize");
    kernel->block_size = size;
  }
  *block = (uint32_t)kernel->block_size;
  return CGL_OK;
}
