/* The driver's calls on modules and their kernels. */
#include "driver/host/calls/calls.h"
#include "driver/host/run/run.h"
#include "driver/host/stream/stream.h"


CUresult host_cuModuleLoadData(CUmodule *module, const void *image) {
  HOST_TRY(host_check());
  if (!module || !image)
    return CUDA_ERROR_INVALID_VALUE;
  return host_module_load(module, image);
}


CUresult host_cuModuleLoadDataEx(CUmodule *module, const void *image,
                                 unsigned int numOptions, CUjit_option *options,
                                 void **optionValues) {
  if (numOptions && (!options || !optionValues))
    return CUDA_ERROR_INVALID_VALUE;
  return host_cuModuleLoadData(module, image); /* the options steer a JIT */
}


CUresult host_cuModuleUnload(CUmodule hmod) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = CUDA_ERROR_INVALID_HANDLE;
  if (host_handle_live(HOST_HANDLE_MODULE, hmod))
    result = host_capture_unsafe();
  if (result == CUDA_SUCCESS) {
    host_module_unload(hmod);
    result = host_failed();
  }
  return host_unlock_with(result);
}


CUresult host_cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod,
                                  const char *name) {
  HOST_TRY(host_check_process());
  if (!hfunc || !name || !*name)
    return CUDA_ERROR_INVALID_VALUE;
  if (!hmod)
    return CUDA_ERROR_INVALID_HANDLE; /* with or without a context */
  HOST_TRY(host_check_object());
  host_lock();
  return host_unlock_with(host_module_function(hmod, name, hfunc));
}


CUresult host_cuModuleGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod,
                                const char *name) {
  HOST_TRY(host_check_object());
  if (!name || !*name || (!dptr && !bytes))
    return CUDA_ERROR_INVALID_VALUE;
  const cgl_host_global *global = NULL;
  host_lock();
  CUresult result = host_module_global(hmod, name, &global);
  host_unlock();
  if (result == CUDA_SUCCESS && dptr)
    *dptr = (CUdeviceptr)(uintptr_t)global->address;
  if (result == CUDA_SUCCESS && bytes)
    *bytes = (size_t)global->bytes;
  return result;
}


static CUresult function_attribute(int *pi, CUfunction_attribute attrib,
                                   CUfunction f) {
  switch (attrib) {
  case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    *pi = (int)f->kernel->max_threads;
    break;
  case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
    *pi = (int)f->kernel->static_shared;
    break;
  case CU_FUNC_ATTRIBUTE_NUM_REGS:
    *pi = 32; /* a nominal figure: there are no registers to run out of */
    break;
  case CU_FUNC_ATTRIBUTE_PTX_VERSION:
  case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
    *pi = 90;
    break;
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    *pi = f->max_dynamic_shared;
    break;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    *pi = f->carveout;
    break;
  default:
    if (attrib < 0 || attrib > 15)
      return CUDA_ERROR_INVALID_VALUE;
    *pi = 0;
  }
  return CUDA_SUCCESS;
}


CUresult host_cuFuncGetAttribute(int *pi, CUfunction_attribute attrib,
                                 CUfunction hfunc) {
  HOST_TRY(host_check_object());
  if (!pi)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  return host_unlock_with(host_handle_live(HOST_HANDLE_FUNCTION, hfunc)
                              ? function_attribute(pi, attrib, hfunc)
                              : CUDA_ERROR_INVALID_HANDLE);
}


static CUresult function_set_attribute(CUfunction f,
                                       CUfunction_attribute attrib, int value) {
  switch (attrib) {
  case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
    if (value < 0 || value > HOST_SHARED_LIMIT - (int)f->kernel->static_shared)
      return CUDA_ERROR_INVALID_VALUE;
    f->max_dynamic_shared = value;
    return CUDA_SUCCESS;
  case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
    if (value < -1 || value > 100)
      return CUDA_ERROR_INVALID_VALUE;
    f->carveout = value; /* kept and told, and of no effect here */
    return CUDA_SUCCESS;
  default:
    return CUDA_ERROR_INVALID_VALUE;
  }
}


CUresult host_cuFuncSetAttribute(CUfunction hfunc, CUfunction_attribute attrib,
                                 int value) {
  HOST_TRY(host_check_object());
  host_lock();
  return host_unlock_with(host_handle_live(HOST_HANDLE_FUNCTION, hfunc)
                              ? function_set_attribute(hfunc, attrib, value)
                              : CUDA_ERROR_INVALID_HANDLE);
}


CUresult host_cuFuncGetParamInfo(CUfunction func, size_t paramIndex,
                                 size_t *paramOffset, size_t *paramSize) {
  HOST_TRY(host_check_object());
  if (!paramOffset || !func)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUresult result = CUDA_ERROR_INVALID_HANDLE;
  if (host_handle_live(HOST_HANDLE_FUNCTION, func)) {
    result = CUDA_ERROR_INVALID_VALUE;
    if (paramIndex < func->kernel->nparams) {
      *paramOffset = host_kernel_param_offset(func->kernel, paramIndex);
      if (paramSize)
        *paramSize = func->kernel->param_size[paramIndex];
      result = CUDA_SUCCESS;
    }
  }
  return host_unlock_with(result);
}


CUresult host_cuFuncGetName(const char **name, CUfunction hfunc) {
  HOST_TRY(host_check_object());
  if (!name || !hfunc)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  bool live = host_handle_live(HOST_HANDLE_FUNCTION, hfunc);
  if (live)
    *name = hfunc->kernel->name;
  host_unlock();
  return live ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}
