/* Modules: images opened as shared objects, their kernels and variables.
   A module lives until it is unloaded and every op that names one of its
   functions is gone; its handles die with the unload. */
#define _GNU_SOURCE
#include "driver/host/run/fiber.h"
#include "driver/host/run/run.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct CUmod_st {
  _Atomic unsigned refs; /* the handle, and each op */
  void *library;         /* of dlopen */
  uintptr_t code, code_end;
  const cgl_host_module *image;
  CUfunction functions;       /* image->nkernels of them */
  struct second_form *second; /* of the kernels that were asked for it */
};

/* A kernel's second form (driver/predicate.h). */
typedef struct second_form {
  struct second_form *next;
  CUfunction of;
  struct CUfunc_st function;
  cgl_host_kernel kernel;
  uint32_t parameters[]; /* sizes, then alignments */
} second_form;


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


/* A path of the open file that no other call gives.  dlopen takes a path that
   it knows for the library it loaded before, but file numbers come back: so
   the bits of a counter are spelled in slashes, which change nothing else. */
static void module_path(int file, char path[PATH_MAX]) {
  static _Atomic unsigned long counter;
  unsigned long number = atomic_fetch_add(&counter, 1);
  size_t at = (size_t)sprintf(path, "/proc/self/fd");
  for (int bit = 0; bit < 48; bit++)
    at += (size_t)sprintf(path + at, number >> bit & 1 ? "/." : "/");
  sprintf(path + at, "/%d", file);
}


/* A file for the image, and its path: an anonymous file has one under /proc;
   where there is no /proc, the file has a name (*named) that its user
   removes.  -1: there is none. */
static int module_file(char path[PATH_MAX], bool *named) {
  const char *folder = getenv("TMPDIR");
  int file = memfd_create("cgraphlua-kernels", MFD_CLOEXEC);
  if (file < 0)
    return -1;
  module_path(file, path);
  *named = access(path, F_OK) != 0;
  if (!*named)
    return file;
  close(file);
  snprintf(path, PATH_MAX, "%s/cgraphlua-XXXXXX",
           folder && *folder ? folder : "/tmp");
  return mkostemp(path, O_CLOEXEC);
}


/* dlopen wants a name, which is there no longer than it takes to load it. */
static void *module_dlopen(const void *image, size_t size, CUresult *result) {
  void *library = NULL;
  char path[PATH_MAX];
  bool named = false;
  int file = module_file(path, &named);
  *result = CUDA_ERROR_OPERATING_SYSTEM;
  if (file < 0)
    return NULL;
  *result = CUDA_ERROR_OUT_OF_MEMORY;
  if (write_all(file, image, size)) {
    *result = CUDA_ERROR_INVALID_IMAGE;
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  }
  if (named)
    unlink(path);
  close(file);
  return library;
}


/* From the first to the last executable byte of the loaded image. */
static void module_find_code(CUmodule module, const unsigned char *image) {
  const struct link_map *map = NULL;
  Elf64_Ehdr header;
  memcpy(&header, image, sizeof header);
  if (dlinfo(module->library, RTLD_DI_LINKMAP, &map))
    return;
  for (unsigned i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr part;
    memcpy(&part, image + header.e_phoff + i * sizeof part, sizeof part);
    if (part.p_type != PT_LOAD || !(part.p_flags & PF_X))
      continue;
    uintptr_t first = map->l_addr + part.p_vaddr, end = first + part.p_memsz;
    if (!module->code || first < module->code)
      module->code = first;
    if (end > module->code_end)
      module->code_end = end;
  }
}


static CUresult module_open(CUmodule module, const void *image, size_t size) {
  CUresult result;
  module->library = module_dlopen(image, size, &result);
  if (!module->library)
    return result;
  module->image = dlsym(module->library, CGL_HOST_MODULE_SYMBOL);
  if (!module->image || module->image->abi != CGL_HOST_ABI)
    return CUDA_ERROR_INVALID_IMAGE;
  module_find_code(module, image);
  if (module->image->init)
    module->image->init(cgl_fiber_runtime());
  return CUDA_SUCCESS;
}


static void module_close(CUmodule module) {
  if (module->library)
    dlclose(module->library);
  while (module->second) {
    second_form *second = module->second;
    module->second = second->next;
    free(second);
  }
  free(module->functions);
  free(module);
}


void host_module_retain(CUmodule module) {
  atomic_fetch_add_explicit(&module->refs, 1, memory_order_relaxed);
}


void host_module_release(CUmodule module) {
  if (atomic_fetch_sub_explicit(&module->refs, 1, memory_order_acq_rel) == 1)
    module_close(module);
}


/* The handles and the variables' addresses are known no more. */
static void module_forget(CUmodule module) {
  for (uint32_t i = 0; i < module->image->nkernels; i++)
    host_handle_remove(HOST_HANDLE_FUNCTION, &module->functions[i]);
  for (second_form *second = module->second; second; second = second->next)
    host_handle_remove(HOST_HANDLE_FUNCTION, &second->function);
  for (uint32_t i = 0; i < module->image->nglobals; i++) {
    uintptr_t address = (uintptr_t)module->image->globals[i].address;
    host_range *range = host_range_find(address);
    if (range && range->start == address && range->kind == HOST_RANGE_GLOBAL)
      host_range_remove(range);
  }
  host_handle_remove(HOST_HANDLE_MODULE, module);
}


/* Makes the handles and the variables' addresses known. */
static CUresult module_announce(CUmodule module) {
  const cgl_host_module *image = module->image;
  module->functions = calloc(image->nkernels + 1, sizeof *module->functions);
  if (!module->functions || !host_handle_add(HOST_HANDLE_MODULE, module))
    return CUDA_ERROR_OUT_OF_MEMORY;
  bool ok = true;
  for (uint32_t i = 0; i < image->nkernels; i++) {
    CUfunction f = &module->functions[i];
    f->module = module;
    f->kernel = &image->kernels[i];
    f->limits.code = module->code;
    f->limits.code_end = module->code_end;
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
    module_forget(module);
  return ok ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}


CUresult host_module_load(CUmodule *out, const void *image) {
  size_t size = image_size(image);
  if (!size)
    return CUDA_ERROR_INVALID_IMAGE;
  CUmodule module = calloc(1, sizeof *module);
  if (!module)
    return CUDA_ERROR_OUT_OF_MEMORY;
  atomic_init(&module->refs, 1);
  CUresult result = module_open(module, image, size);
  if (result == CUDA_SUCCESS) {
    host_lock();
    result = module_announce(module);
    host_unlock();
  }
  if (result == CUDA_SUCCESS)
    *out = module;
  else
    module_close(module);
  return result;
}


void host_module_unload(CUmodule module) {
  module_forget(module);
  host_module_release(module);
}


static void unload_handle(void *handle) {
  host_module_unload(handle);
}


void host_module_reset(void) {
  host_handle_each(HOST_HANDLE_MODULE, unload_handle);
}


/* A second form of a kernel, made when it is first asked for; NULL without
   memory. */
static CUfunction module_second(CUmodule module, CUfunction of, bool follows) {
  const uint32_t n = of->kernel->nparams;
  second_form *second = module->second;
  while (second && (second->of != of || second->function.follows != follows))
    second = second->next;
  if (second)
    return &second->function;
  second = calloc(1, sizeof *second + 2 * (n + 1) * sizeof(uint32_t));
  if (!second)
    return NULL;
  uint32_t *sizes = second->parameters, *align = sizes + n + 1;
  for (uint32_t i = 0; i < n; i++) {
    sizes[i] = of->kernel->param_size[i];
    align[i] = of->kernel->param_align[i];
  }
  sizes[n] = follows ? (uint32_t)cgl_following_bytes(n) : sizeof(cgl_predicate);
  align[n] = _Alignof(uint64_t);
  second->of = of;
  second->kernel = *of->kernel;
  second->kernel.nparams = n + 1;
  second->kernel.param_size = sizes;
  second->kernel.param_align = align;
  second->function.module = module;
  second->function.kernel = &second->kernel;
  second->function.predicated = !follows;
  second->function.follows = follows;
  second->function.limits = of->limits;
  second->function.max_dynamic_shared = of->max_dynamic_shared;
  second->function.carveout = of->carveout;
  if (!host_handle_add(HOST_HANDLE_FUNCTION, &second->function)) {
    free(second);
    return NULL;
  }
  second->next = module->second;
  module->second = second;
  return &second->function;
}


CUresult host_module_function(CUmodule module, const char *name,
                              CUfunction *out) {
  if (!host_handle_live(HOST_HANDLE_MODULE, module))
    return CUDA_ERROR_INVALID_HANDLE;
  for (uint32_t i = 0; i < module->image->nkernels; i++) {
    const char *own = module->image->kernels[i].name;
    const size_t n = strlen(own);
    if (strncmp(own, name, n))
      continue;
    if (!name[n])
      *out = &module->functions[i];
    else if (!strcmp(name + n, CGL_PREDICATED))
      *out = module_second(module, &module->functions[i], false);
    else if (!strcmp(name + n, CGL_FOLLOWING))
      *out = module_second(module, &module->functions[i], true);
    else
      continue;
    return *out ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  }
  return CUDA_ERROR_NOT_FOUND;
}


/* A kernel's name is no variable's, but it is not unknown either. */
CUresult host_module_global(CUmodule module, const char *name,
                            const cgl_host_global **out) {
  if (!host_handle_live(HOST_HANDLE_MODULE, module))
    return CUDA_ERROR_INVALID_HANDLE;
  for (uint32_t i = 0; i < module->image->nglobals; i++)
    if (!strcmp(module->image->globals[i].name, name)) {
      *out = &module->image->globals[i];
      return CUDA_SUCCESS;
    }
  CUfunction kernel;
  return host_module_function(module, name, &kernel) == CUDA_SUCCESS
             ? CUDA_ERROR_INVALID_VALUE
             : CUDA_ERROR_NOT_FOUND;
}
