/* The contract between a compiled kernel image for the host device and the
   device that runs it.
   An image is an ELF shared object with one exported symbol,
   `cgl_host_module`.  The compiler (src/compile) makes it, the module loader
   (module.c) opens it, fiber.c gives it barriers.  Neither needs a symbol of
   the other: the runtime hands its functions over through `init`.
   Invariant: everything here is plain C with fixed-size fields; any change
   of layout or meaning raises CGL_HOST_ABI, which is part of the cache key. */
#ifndef CGL_HOST_KERNEL_ABI_H
#define CGL_HOST_KERNEL_ABI_H

#include <stdint.h>

#define CGL_HOST_ABI 4
#define CGL_HOST_MODULE_SYMBOL "cgl_host_module"

typedef struct cgl_host_dims {
  uint32_t grid[3];      /* blocks along x, y, z */
  uint32_t block[3];     /* threads along x, y, z */
  uint32_t shared_bytes; /* dynamic shared memory of this launch */
} cgl_host_dims;

/* What a kernel may ask of the thread that runs it; all are called on the
   worker (or on a fiber of the worker) that runs the block. */
typedef struct cgl_host_runtime {
  uint32_t abi; /* CGL_HOST_ABI */
  /* Runs a block: each `thunk(params)` runs the thread after the one that the
     thunk before began.  The first barrier turns the block into fibers. */
  void (*block)(void (*thunk)(void *), void *params, uint32_t nthreads);
  void (*barrier)(void); /* __syncthreads */
  /* A barrier, too: how many of the block's live threads have come to it with a
     predicate that is not 0.  They may come by either. */
  uint32_t (*count)(int predicate);
  /* One exchange among the lanes of `mask` in the warp; returns the 32
     values deposited, valid until the warp's next exchange. */
  const uint64_t *(*warp)(uint32_t mask, uint64_t value);
  /* Lanes of the warp that have not left the kernel. */
  uint32_t (*active)(void);
  /* Ends the launch with a CUresult (719 launch failed, 710 assert, ...). */
  void (*abort)(int code, const char *why) __attribute__((noreturn));
  /* cudaGraphSetConditional */
  void (*set_conditional)(uint64_t handle, uint32_t value);
} cgl_host_runtime;

enum {
  CGL_HOST_KERNEL_BARRIERS = 1, /* uses barriers or warp exchanges: fibers */
  CGL_HOST_KERNEL_FLAT = 2,     /* rows of blocks run as one flat loop */
  CGL_HOST_KERNEL_LOOPS = 4     /* loops over the block, between barriers */
};

typedef struct cgl_host_kernel {
  const char *name; /* as cuModuleGetFunction is asked for it */
  /* Runs blocks [first, last), numbered x fastest, of a launch. */
  void (*run)(void *const *params, const cgl_host_dims *dims, uint64_t first,
              uint64_t last);
  const uint32_t *param_size;  /* bytes of each parameter */
  const uint32_t *param_align; /* alignment of each parameter */
  uint32_t nparams;
  uint32_t max_threads;   /* of __launch_bounds__, or 1024 */
  uint32_t static_shared; /* bytes of __shared__, 0 when unknown */
  uint32_t flags;         /* CGL_HOST_KERNEL_* */
} cgl_host_kernel;

typedef struct cgl_host_global {
  const char *name; /* a __device__ or __constant__ variable */
  void *address;
  uint64_t bytes;
} cgl_host_global;

typedef struct cgl_host_module {
  uint32_t abi; /* CGL_HOST_ABI; first, so that any version can read it */
  uint32_t nkernels;
  const cgl_host_kernel *kernels;
  uint32_t nglobals;
  const cgl_host_global *globals;
  void (*init)(const cgl_host_runtime *runtime);
} cgl_host_module;

#endif
