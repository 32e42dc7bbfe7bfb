/* Modules: images opened as shared objects, their kernels and variables.
   A module lives until it is unloaded and every op that names one of its
   functions is gone; its handles die with the unload. */
#define _GNU_SOURCE
#include "driver/host/run/fiber.h"
#include "driver/host/base/runtime.h"

#include <dlfcn.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct CUmod_st {
  _Atomic unsigned refs; /* the handle, and each op */
  void *library;         /* of dlopen */
  int file; /* stays open: its number keeps the path of the library unique */
  const cgl_host_module *image;
  CUfunction functions; /* image->nkernels of them */
};


/* ---- opening ---- */

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#else
enum { MACHINE = EM_NONE };
#endif


/* The size of an ELF image, from its own tables; 0: not one of ours. */
static size_t image_size(const unsigned char *image) {
  if (memcmp(image, ELFMAG, SELFMAG) || image[EI_CLASS] != ELFCLASS64)
    return 0;
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  if (header.e_type != ET_DYN || header.e_machine != MACHINE ||
      header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_shoff > (uint64_t)1 << 40 || header.e_phoff > (uint64_t)1 << 40)
    return 0;
  uint64_t end = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize;
  for (unsigned i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr segment;
    memcpy(&segment, image + header.e_phoff + i * sizeof segment,
           sizeof segment);
    if (segment.p_offset + segment.p_filesz > end)
      end = segment.p_offset + segment.p_filesz;
  }
  return end < (uint64_t)1 << 40 ? (size_t)end : 0;
}


static bool write_all(int file, const char *data, size_t size) {
  while (size) {
    ssize_t n = write(file, data, size);
    if (n <= 0)
      return false;
    data += n;
    size -= (size_t)n;
  }
  return true;
}


/* dlopen wants a name; an anonymous file has one under /proc. */
static CUresult open_library(CUmodule module, const void *image, size_t size) {
  module->file = memfd_create("cgraphlua-kernels", MFD_CLOEXEC);
  if (module->file < 0)
    return CUDA_ERROR_OPERATING_SYSTEM;
  if (!write_all(module->file, image, size))
    return CUDA_ERROR_OUT_OF_MEMORY;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", module->file);
  module->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!module->library)
    return CUDA_ERROR_INVALID_IMAGE;
  module->image = dlsym(module->library, CGL_HOST_MODULE_SYMBOL);
  if (!module->image || module->image->abi != CGL_HOST_ABI)
    return CUDA_ERROR_INVALID_IMAGE;
  if (module->image->init)
    module->image->init(cgl_fiber_runtime());
  return CUDA_SUCCESS;
}


static void close_module(CUmodule module) {
  if (module->library)
    dlclose(module->library);
  if (module->file >= 0)
    close(module->file);
  free(module->functions);
  free(module);
}


void host_module_retain(CUmodule module) {
  atomic_fetch_add_explicit(&module->refs, 1, memory_order_relaxed);
}


void host_module_release(CUmodule module) {
  if (atomic_fetch_sub_explicit(&module->refs, 1, memory_order_acq_rel) == 1)
    close_module(module);
}


/* The handles and the variables' addresses are known no more. */
static void forget(CUmodule module) {
  for (uint32_t i = 0; i < module->image->nkernels; i++)
    host_handle_remove(HOST_HANDLE_FUNCTION, &module->functions[i]);
  for (uint32_t i = 0; i < module->image->nglobals; i++) {
    uintptr_t address = (uintptr_t)module->image->globals[i].address;
    host_range *range = host_range_find(address);
    if (range && range->start == address && range->kind == HOST_RANGE_GLOBAL)
      host_range_remove(range);
  }
  host_handle_remove(HOST_HANDLE_MODULE, module);
}


/* Makes the handles and the variables' addresses known. */
static CUresult announce(CUmodule module) {
  const cgl_host_module *image = module->image;
  module->functions = calloc(image->nkernels + 1, sizeof *module->functions);
  if (!module->functions || !host_handle_add(HOST_HANDLE_MODULE, module))
    return CUDA_ERROR_OUT_OF_MEMORY;
  bool ok = true;
  for (uint32_t i = 0; i < image->nkernels; i++) {
    CUfunction f = &module->functions[i];
    f->module = module;
    f->kernel = &image->kernels[i];
    f->max_dynamic_shared = HOST_SHARED_DEFAULT - (int)f->kernel->static_shared;
    if (f->max_dynamic_shared < 0)
      f->max_dynamic_shared = 0;
    f->carveout = -1;
    ok = ok && host_handle_add(HOST_HANDLE_FUNCTION, f);
  }
  for (uint32_t i = 0; i < image->nglobals; i++)
    if (image->globals[i].bytes)
      ok = ok && host_range_add((uintptr_t)image->globals[i].address,
                                image->globals[i].bytes, HOST_RANGE_GLOBAL);
  if (!ok)
    forget(module);
  return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}


/* ---- the driver's calls ---- */

CUresult host_cuModuleLoadData(CUmodule *module, const void *image) {
  HOST_TRY(host_check());
  if (!module || !image)
    return CUDA_ERROR_INVALID_VALUE;
  size_t size = image_size(image);
  if (!size)
    return CUDA_ERROR_INVALID_IMAGE;
  CUmodule m = calloc(1, sizeof *m);
  if (!m)
    return CUDA_ERROR_OUT_OF_MEMORY;
  m->file = -1;
  atomic_init(&m->refs, 1);
  CUresult result = open_library(m, image, size);
  if (result == CUDA_SUCCESS) {
    host_lock();
    result = announce(m);
    host_unlock();
  }
  if (result == CUDA_SUCCESS)
    *module = m;
  else
    close_module(m);
  return result;
}


CUresult host_cuModuleLoadDataEx(CUmodule *module, const void *image,
                                 unsigned int numOptions, CUjit_option *options,
                                 void **optionValues) {
  if (numOptions && (!options || !optionValues))
    return CUDA_ERROR_INVALID_VALUE;
  return host_cuModuleLoadData(module, image); /* the options steer a JIT */
}


static void unload(void *handle) {
  forget(handle);
  host_module_release(handle);
}


void host_module_reset(void) {
  host_handle_each(HOST_HANDLE_MODULE, unload);
}


CUresult host_cuModuleUnload(CUmodule hmod) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = CUDA_ERROR_INVALID_HANDLE;
  if (host_handle_live(HOST_HANDLE_MODULE, hmod))
    result = host_capture_unsafe();
  if (result == CUDA_SUCCESS) {
    unload(hmod);
    result = host_failed();
  }
  host_unlock();
  return result;
}


static CUresult find_function(CUmodule module, const char *name,
                              CUfunction *out) {
  if (!host_handle_live(HOST_HANDLE_MODULE, module))
    return CUDA_ERROR_INVALID_HANDLE;
  for (uint32_t i = 0; i < module->image->nkernels; i++)
    if (!strcmp(module->image->kernels[i].name, name)) {
      *out = &module->functions[i];
      return CUDA_SUCCESS;
    }
  return CUDA_ERROR_NOT_FOUND;
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
  CUresult result = find_function(hmod, name, hfunc);
  host_unlock();
  return result;
}


/* A kernel's name is no variable's, but it is not unknown either. */
static CUresult find_global(CUmodule module, const char *name,
                            const cgl_host_global **out) {
  if (!host_handle_live(HOST_HANDLE_MODULE, module))
    return CUDA_ERROR_INVALID_HANDLE;
  for (uint32_t i = 0; i < module->image->nglobals; i++)
    if (!strcmp(module->image->globals[i].name, name)) {
      *out = &module->image->globals[i];
      return CUDA_SUCCESS;
    }
  CUfunction kernel;
  return find_function(module, name, &kernel) == CUDA_SUCCESS
             ? CUDA_ERROR_INVALID_VALUE
             : CUDA_ERROR_NOT_FOUND;
}


CUresult host_cuModuleGetGlobal(CUdeviceptr *dptr, size_t *bytes, CUmodule hmod,
                                const char *name) {
  HOST_TRY(host_check_object());
  if (!name || !*name || (!dptr && !bytes))
    return CUDA_ERROR_INVALID_VALUE;
  const cgl_host_global *global = NULL;
  host_lock();
  CUresult result = find_global(hmod, name, &global);
  host_unlock();
  if (result == CUDA_SUCCESS && dptr)
    *dptr = (CUdeviceptr)(uintptr_t)global->address;
  if (result == CUDA_SUCCESS && bytes)
    *bytes = (size_t)global->bytes;
  return result;
}


static CUresult get_attribute(int *pi, CUfunction_attribute attrib,
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
  CUresult result = host_handle_live(HOST_HANDLE_FUNCTION, hfunc)
                        ? get_attribute(pi, attrib, hfunc)
                        : CUDA_ERROR_INVALID_HANDLE;
  host_unlock();
  return result;
}


static CUresult set_attribute(CUfunction f, CUfunction_attribute attrib,
                              int value) {
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
  CUresult result = host_handle_live(HOST_HANDLE_FUNCTION, hfunc)
                        ? set_attribute(hfunc, attrib, value)
                        : CUDA_ERROR_INVALID_HANDLE;
  host_unlock();
  return result;
}


size_t host_param_offset(const cgl_host_kernel *kernel, size_t index) {
  size_t at = 0;
  for (size_t i = 0; i <= index; i++) {
    size_t alignment = kernel->param_align[i] ? kernel->param_align[i] : 1;
    at = (at + alignment - 1) / alignment * alignment;
    if (i < index)
      at += kernel->param_size[i];
  }
  return at;
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
      *paramOffset = host_param_offset(func->kernel, paramIndex);
      if (paramSize)
        *paramSize = func->kernel->param_size[paramIndex];
      result = CUDA_SUCCESS;
    }
  }
  host_unlock();
  return result;
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
