/* Modules, their kernels and launches. */
#ifndef CGRAPHLUA_KERNEL_H
#define CGRAPHLUA_KERNEL_H

#include "param.h"

typedef struct cgl_module_desc {
  const char *source; /* CUDA C, zero-terminated; NULL: an image instead */
  const void *image;  /* cubin or PTX (zero-terminated), without a source */
  size_t image_bytes; /* size of the image */
  const char *file; /* the source's name in compiler messages; NULL: the site */
  int line;         /* the line of `file` where the source starts; 0 means 1 */
  const char *const *options; /* of the compiler: "-DN=4", "--precise-math" */
  size_t noptions;
  const char *const *expressions; /* name expressions, "scale<float, 4>" */
  size_t nexpressions;
  bool shipped; /* only an image of a shipped folder serves (cgl_kernels_from);
                   else CGL_ERROR_COMPILE */
} cgl_module_desc;

/* Writes the hash of a source, or of an image, by which cgl_lua_limits allows
   it: 32 hexadecimal digits (XXH3) and a zero. */
CGL_API void cgl_module_hash(const void *source, size_t bytes, char hash[33]);

/* Compiles a source, or takes it from the cache on disk, and loads it.  The
   description is borrowed during the call; the caller owns the module's
   reference.  CGL_ERROR_COMPILE with the compiler's text in the message,
   CGL_ERROR_NO_COMPILER, CGL_ERROR_SYSTEM.  cuModuleLoadData */
CGL_API cgl_status cgl_module_create(cgl_context *context,
                                     const cgl_module_desc *desc,
                                     cgl_module **module);
/* The same, with the compile on a worker thread: returns at once.  The
   description is copied.  Sources are compiled one after another. */
CGL_API cgl_status cgl_module_create_async(cgl_context *context,
                                           const cgl_module_desc *desc,
                                           cgl_compilation **compilation);
/* Has the compile ended, well or badly? */
CGL_API bool cgl_compilation_ready(const cgl_compilation *compilation);
/* Waits for the compile, and loads the module on the calling thread; each call
   gives a reference to the same module.  Fails as cgl_module_create does.  To
   release a compilation that is not ready ends its compile.
   cuModuleLoadData */
CGL_API cgl_status cgl_compilation_wait(cgl_compilation *compilation,
                                        cgl_module **module);

/* Looks for compiled kernels in `folder` first, which cgl_kernels_write made;
   NULL forgets the folders that were named before.  For the process.  Folders
   of $CGRAPHLUA_KERNELS come after.  What is in the folder is run as the
   program's own code.  CGL_ERROR_SYSTEM */
CGL_API cgl_status cgl_kernels_from(const char *folder);
/* From now on every module that is made also gets images for other machines:
   for the levels of the host device, and for the GPU architectures `archs`,
   "sm_90" (a cubin) or "compute_90" (PTX), which NVRTC compiles.
   CGL_ERROR_COMPILE, CGL_ERROR_NO_COMPILER */
CGL_API cgl_status cgl_kernels_collect(const char *const *archs, size_t narchs);
/* Ends that, and writes the images to `folder`, which is made when it is
   missing: all of them or none.  A NULL folder drops them.  *count (may be
   NULL) is their number.  CGL_ERROR_COMPILE when a source did not compile for
   an architecture, CGL_ERROR_SYSTEM */
CGL_API cgl_status cgl_kernels_write(const char *folder, size_t *count);

/* The name of a kernel by index from 0, in source order, borrowed; NULL past
   the last. */
CGL_API const char *cgl_module_kernel_name(const cgl_module *module,
                                           size_t index);
/* The kernel of a name or name expression; a NULL name is the module's only
   kernel.  The kernel keeps the module alive.  CGL_ERROR_NOT_FOUND.
   cuModuleGetFunction */
CGL_API cgl_status cgl_module_kernel(cgl_module *module, const char *name,
                                     cgl_kernel **kernel);
/* A __device__ or __constant__ variable as a buffer of `type` that keeps the
   module alive.  CGL_ERROR_NOT_FOUND; CGL_ERROR_INVALID_ARGUMENT when its size
   is not a whole number of elements.  cuModuleGetGlobal */
CGL_API cgl_status cgl_module_global(cgl_module *module, const char *name,
                                     cgl_type type, cgl_buffer **buffer);

typedef enum cgl_arg_kind {
  CGL_ARG_BUFFER,  /* a pointer parameter */
  CGL_ARG_PINNED,  /* a pointer parameter: the device uses host memory */
  CGL_ARG_NULL,    /* a null pointer */
  CGL_ARG_ADDRESS, /* a raw device address */
  CGL_ARG_INT,     /* int64_t: checked against the parameter's range */
  CGL_ARG_UINT,    /* uint64_t: checked likewise */
  CGL_ARG_NUMBER,  /* double: must be whole for an integer parameter */
  CGL_ARG_BOOL,
  CGL_ARG_BYTES,     /* a struct by value: exactly its size */
  CGL_ARG_GENERATOR, /* a cgl_philox parameter: the launch takes a number */
  CGL_ARG_SAME,      /* keeps its value, in cgl_graph_set_params */
  CGL_ARG_PARAM      /* of the very type: replays read it again */
} cgl_arg_kind;

/* An argument; its kind says which member of the union is used. */
typedef struct cgl_arg {
  cgl_arg_kind kind;
  union {
    cgl_buffer *buffer;
    cgl_pinned *pinned;
    cgl_generator *generator;
    cgl_param *param;
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
  uint32_t grid[3];      /* thread blocks; 0 counts as 1 */
  uint32_t block[3];     /* threads per thread block; 0 counts as 1 */
  uint32_t shared_bytes; /* dynamic shared memory per thread block */
} cgl_launch;

typedef struct cgl_param_info {
  const char *type; /* as spelled by the source or the compiler */
  const char *name;
  bool pointer;
  bool readonly; /* pointer to const */
  size_t bytes;
  cgl_type element; /* of its numbers, or of those that it points to;
                       CGL_TYPE_COUNT: a struct, or not known */
  int lanes;        /* numbers in a vector, 4 of a float4; else 1, or 0 */
} cgl_param_info;

/* The kernel's name or name expression, borrowed. */
CGL_API const char *cgl_kernel_name(const cgl_kernel *kernel);
/* The number of parameters, and a parameter by index from 0; its texts are
   borrowed.  cuFuncGetParamInfo */
CGL_API size_t cgl_kernel_param_count(const cgl_kernel *kernel);
CGL_API cgl_status cgl_kernel_param(const cgl_kernel *kernel, size_t index,
                                    cgl_param_info *info);
/* The number of fields of a parameter, nested ones counted, and a field by
   index from 0; its texts are borrowed.  None, but for structs of plain data by
   value that the source declares and the compiler confirmed. */
CGL_API size_t cgl_kernel_field_count(const cgl_kernel *kernel, size_t index);
CGL_API cgl_status cgl_kernel_field(const cgl_kernel *kernel, size_t index,
                                    size_t field, cgl_field_info *info);
/* Creates a parameter to stand for parameter `index`, from 0: of its very type,
   and of a struct with its fields.  The value is checked as a launch checks it.
   `name` (copied): NULL takes the kernel's.  The caller owns the reference.
   CGL_ERROR_INVALID_ARGUMENT for an index past the last, a pointer and a
   generator; CGL_ERROR_ARGUMENT_TYPE, CGL_ERROR_ARGUMENT_RANGE. */
CGL_API cgl_status cgl_kernel_param_create(const cgl_kernel *kernel,
                                           size_t index, const cgl_arg *value,
                                           const char *name, cgl_param **param);
/* How the device runs a kernel. */
typedef enum cgl_form {
  CGL_FORM_DEVICE, /* as a GPU does, or as a ready image has it */
  CGL_FORM_LOOP,   /* host device: no barriers; a loop over the threads */
  CGL_FORM_LOOPS,  /* host device: a loop over a block's threads between one
                      barrier and the next */
  CGL_FORM_FIBERS, /* host device: every thread has a stack; slow */
  CGL_FORM_STRIPS  /* host device: no barriers; 32 threads at a time go through
                      the kernel's loops together */
} cgl_form;

/* The form of a kernel.  Of fibers, *why is the reason, borrowed, and *line
   the line of the source's file that has it; otherwise NULL and 0.  Both may
   be NULL. */
CGL_API cgl_form cgl_kernel_form(const cgl_kernel *kernel, const char **why,
                                 int *line);
/* What is known of how a kernel runs. */
typedef struct cgl_kernel_facts {
  const char *name; /* as it was asked for */
  cgl_form form;
  const char *why; /* it runs as fibers; NULL when it does not */
  int line;        /* of the source's file that has the reason, or 0 */
} cgl_kernel_facts;

/* Fills in the facts; its texts are borrowed from the kernel. */
CGL_API void cgl_kernel_info(const cgl_kernel *kernel, cgl_kernel_facts *facts);
/* The word of a form: "device", "loop", "loops", "fibers". */
CGL_API const char *cgl_form_name(cgl_form form);
/* What a kernel does with the memory that a parameter points to. */
typedef enum cgl_effect {
  CGL_EFFECT_DECLARED, /* reads what const pointers point to, and reads and
                          writes what others point to */
  CGL_EFFECT_READ,
  CGL_EFFECT_WRITE, /* reads nothing that was there before the launch */
  CGL_EFFECT_UPDATE /* reads and writes */
} cgl_effect;

/* Says what the kernel does with the memory of parameter `index`, from 0, in
   launches from now on.  Nothing checks it: where it is wrong, captures in data
   order lack edges.  CGL_ERROR_INVALID_ARGUMENT for a parameter that is no
   pointer. */
CGL_API cgl_status cgl_kernel_set_effect(cgl_kernel *kernel, size_t index,
                                         cgl_effect effect);
/* *block is a number of threads per thread block with good occupancy, for one
   dimension.  cuOccupancyMaxPotentialBlockSize */
CGL_API cgl_status cgl_kernel_block_size(cgl_kernel *kernel, uint32_t *block);
/* Launches the kernel on `stream`, asynchronously, with an argument per
   parameter.  The launch and its arguments are checked before the driver sees
   them, so a refused launch does not break a capture.
   CGL_ERROR_ARGUMENT_COUNT, CGL_ERROR_ARGUMENT_TYPE, CGL_ERROR_ARGUMENT_RANGE.
   cuLaunchKernel */
CGL_API cgl_status cgl_kernel_launch(cgl_kernel *kernel, cgl_stream *stream,
                                     const cgl_launch *launch,
                                     const cgl_arg *args, size_t nargs);


/* Extents of a grid that are parameters. */
typedef struct cgl_grid_params {
  cgl_param
      *extents[3];    /* thread blocks along x, y and z; NULL: the launch's */
  cgl_param *threads; /* instead of extents[0]: how many threads the blocks
                         along x have at least; 0 is one block */
} cgl_grid_params;

/* What a use of a parameter along x has as its argument (cgl_graph_param_use);
   y and z follow. */
enum { CGL_ARGUMENT_GRID = 256 };

/* The same launch with a grid of parameters, each of one number, which are read
   at the call, and in a graph at each replay.  A replay is refused while one is
   no grid that the device has.  CGL_ERROR_ARGUMENT_TYPE for a parameter of
   several numbers, CGL_ERROR_INVALID_ARGUMENT for no grid.  cuLaunchKernel;
   later cuGraphExecKernelNodeSetParams */
CGL_API cgl_status cgl_kernel_launch_params(cgl_kernel *kernel,
                                            cgl_stream *stream,
                                            const cgl_launch *launch,
                                            const cgl_grid_params *grid,
                                            const cgl_arg *args, size_t nargs);

#endif
