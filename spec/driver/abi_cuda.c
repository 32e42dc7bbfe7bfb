/* The lists of abi_check.h as NVIDIA's cuda.h has them. */
#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#endif
#endif

#define CGL_CUDA_ABI_LISTS
#include "driver/abi_check.h"
#include "driver/cuda_abi.h"

/* Some of the names are as young as CUDA 13. */
#if defined(CUDA_VERSION) && CUDA_VERSION >= 13000

static const abi_type types[] = {ABI_TYPES(ABI_TYPE){0}};
static const abi_field fields[] = {ABI_FIELDS(ABI_FIELD){0}};
static const abi_constant constants[] = {
    CGL_CUDA_ERRORS(ABI_ERROR) CGL_CUDA_CONSTANTS(ABI_CONSTANT){0}};


int abi_cuda(abi_view *view) {
  *view = (abi_view){types, fields, constants};
  return 1;
}

#else


int abi_cuda(abi_view *view) {
  (void)view;
  return 0;
}

#endif
