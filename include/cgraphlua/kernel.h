/* Modules, their kernels and launches. */
#ifndef CGRAPHLUA_KERNEL_H
#define CGRAPHLUA_KERNEL_H

#include "buffer.h"

typedef struct cgl_module_desc {
  const char *source; /* CUDA C, zero-terminated; or, when `image`: */
  const void *image;  /* cubin or PTX (zero-terminated) */
  size_t image_bytes;
  const char *file; /* the source's name in compiler messages; NULL: the site */
  int line;         /* the line of `file` where the source starts; 0: 1 */
  const char *const *options; /* compiler options, "-DN=4" */
  size_t noptions;
  const char *const *expressions; /* name expressions, "scale<float, 4>" */
  size_t nexpressions;
} cgl_module_desc;

/* Compiles (or takes from the disk cache) and loads.  CGL_ERROR_COMPILE has
   the compiler's text in the message. */
CGL_API cgl_status cgl_module_create(cgl_context *context,
                                     const cgl_module_desc *desc,
                                     cgl_module **module);
/* Names of the kernels, in source order; NULL past the last. */
CGL_API const char *cgl_module_kernel_name(const cgl_module *module,
                                           size_t index);
/* `name`: a kernel or a name expression of the module; NULL: its only one. */
CGL_API cgl_status cgl_module_kernel(cgl_module *module, const char *name,
                                     cgl_kernel **kernel);
/* A __device__ or __constant__ variable as a buffer of `type` (it keeps the
   module alive).  cuModuleGetGlobal */
CGL_API cgl_status cgl_module_global(cgl_module *module, const char *name,
                                     cgl_type type, cgl_buffer **buffer);

typedef enum cgl_arg_kind {
  CGL_ARG_BUFFER,  /* a pointer parameter */
  CGL_ARG_PINNED,  /* a pointer parameter, the device reads host memory */
  CGL_ARG_NULL,    /* a null pointer */
  CGL_ARG_ADDRESS, /* a raw device address */
  CGL_ARG_INT,     /* int64_t: checked against the parameter's range */
  CGL_ARG_UINT,    /* uint64_t */
  CGL_ARG_NUMBER,  /* double: must be whole for an integer parameter */
  CGL_ARG_BOOL,
  CGL_ARG_BYTES,     /* a struct by value: exactly its size */
  CGL_ARG_GENERATOR, /* a cgl_philox parameter: the launch takes a number */
  CGL_ARG_SAME       /* as it is: of cgl_graph_set_params */
} cgl_arg_kind;

typedef struct cgl_arg {
  cgl_arg_kind kind;
  union {
    cgl_buffer *buffer;
    cgl_pinned *pinned;
    cgl_generator *generator;
    uint64_t address;
    int64_t i;
    uint64_t u;
    double number;
    bool boolean;
    struct {
      const void *data;
      size_t size;
    } bytes;
  };
} cgl_arg;

typedef struct cgl_launch {
  uint32_t grid[3];      /* blocks; 0 is taken as 1 */
  uint32_t block[3];     /* threads; 0 is taken as 1 */
  uint32_t shared_bytes; /* dynamic shared memory */
} cgl_launch;

typedef struct cgl_param_info {
  const char *type; /* as spelled in the source, "const float *" */
  const char *name;
  bool pointer;
  bool readonly; /* pointer to const */
  size_t bytes;
} cgl_param_info;

CGL_API const char *cgl_kernel_name(const cgl_kernel *kernel);
CGL_API size_t cgl_kernel_param_count(const cgl_kernel *kernel);
CGL_API cgl_status cgl_kernel_param(const cgl_kernel *kernel, size_t index,
                                    cgl_param_info *info);
/* A block size with good occupancy for one dimension.
   cuOccupancyMaxPotentialBlockSize */
CGL_API cgl_status cgl_kernel_block_size(cgl_kernel *kernel, uint32_t *block);
/* Launches on `stream`; everything is checked before the driver sees it, so a
   refused launch does not break a capture.  cuLaunchKernel */
CGL_API cgl_status cgl_kernel_launch(cgl_kernel *kernel, cgl_stream *stream,
                                     const cgl_launch *launch,
                                     const cgl_arg *args, size_t nargs);

#endif
