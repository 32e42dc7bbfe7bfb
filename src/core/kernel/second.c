/* Second forms of kernels (driver/predicate.h). */
#include "core/kernel/kernel.h"


/* The second form may have fewer threads of a block, and is told of dynamic
   shared memory for itself. */
static cgl_status second_check(cgl_kernel *kernel, const cgl_launch *launch,
                               CUfunction second, const char *operation,
                               const char **why) {
  cgl_context *context = kernel->object.context;
  const cgl_driver *driver = context->driver;
  const uint32_t *block = launch->block;
  const char *entry = "cuFuncGetAttribute";
  int most = 0;
  CUresult result = driver->cuFuncGetAttribute(
      &most, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, second);
  if (!result && (uint64_t)block[0] * block[1] * block[2] > (uint64_t)most)
    *why = "its second form needs more registers than such blocks have";
  else if (!result && launch->shared_bytes > 48 * 1024) {
    entry = "cuFuncSetAttribute";
    result = driver->cuFuncSetAttribute(
        second, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        (int)launch->shared_bytes);
  }
  return cgl_fail_driver(context, result, operation, entry);
}


cgl_status cgl_kernel_second(cgl_kernel *kernel, cgl_second_form form,
                             const cgl_launch *launch, const char *operation,
                             CUfunction *function, const char **why) {
  size_t bytes =
      cgl_kernel_second_bytes(kernel, form) + _Alignof(cgl_predicate);
  for (size_t i = 0; i < kernel->nparams; i++)
    bytes += kernel->sizes[i];
  *why = NULL;
  *function = atomic_load(&kernel->seconds[form]);
  cgl_status status = CGL_OK;
  if (bytes > CGL_MAX_PARAM_BYTES)
    *why = "its parameters leave no room for one more";
  else if (!*function) {
    const char *name =
        kernel->signature ? kernel->signature->lowered : kernel->name;
    status = cgl_module_second_form(kernel->module, form, name, operation,
                                    function, why);
    atomic_store(&kernel->seconds[form], *function);
  }
  if (!status && !*why)
    status = second_check(kernel, launch, *function, operation, why);
  if (*why)
    *function = NULL;
  return status;
}
