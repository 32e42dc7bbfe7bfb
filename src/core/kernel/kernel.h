/* Kernels: their parameters, arguments and launches.
   Invariant: a kernel keeps its module; the signature of a kernel made from
   source is borrowed from the module's image and has nparams parameters, NULL
   when the module was loaded from a ready image. */
#ifndef CGL_KERNEL_KERNEL_H
#define CGL_KERNEL_KERNEL_H

#include "core/module/module.h"
#include "core/record/issue.h"

#define CGL_MAX_PARAMS CGL_RECORD_MOST
#define CGL_MAX_PARAM_BYTES 4096

struct cgl_kernel {
  cgl_object object;
  cgl_module *module; /* retained */
  CUfunction handle;
  const char *name;               /* interned */
  const cgl_signature *signature; /* may be NULL */
  size_t nparams;
  size_t values_bytes; /* room for a value of each, wherever it begins */
  int max_threads;     /* of a block */
  int static_shared;
  int block_size; /* suggested, 0: not asked yet */
  bool plain;     /* memory that its arguments point to holds no addresses */
  atomic_uint shared_allowed; /* dynamic bytes the driver was told of */
  cgl_waiter waiter, following_waiter;
  _Atomic(CUfunction) seconds[CGL_SECOND_FORMS]; /* NULL: not asked yet */
  atomic_uchar effects[CGL_MAX_PARAMS]; /* cgl_effect of each parameter */
  uint32_t sizes[CGL_MAX_PARAMS];       /* bytes of each parameter */
};

/* Values of arguments begin at multiples of 16, for the host device, which
   reads them where they lie: room for any, and where the next value goes. */
enum {
  CGL_VALUES_ROOM =
      CGL_MAX_PARAM_BYTES + 24 * CGL_MAX_PARAMS + 64 + sizeof(cgl_numbers)
};
static inline size_t cgl_kernel_next_value(size_t at) {
  return (at + 15) & ~(size_t)15;
}

/* Bytes of what a second form has behind the parameters. */
static inline size_t cgl_kernel_second_bytes(const cgl_kernel *kernel,
                                             cgl_second_form form) {
  return form == CGL_SECOND_FOLLOWING ? cgl_following_bytes(kernel->nparams)
                                      : sizeof(cgl_predicate);
}
/* Where the value of parameter `index` begins; with nparams, where that of a
   second form does. */
static inline size_t cgl_kernel_value_at(const cgl_kernel *kernel,
                                         size_t index) {
  size_t at = 0;
  for (size_t i = 0; i < index; i++)
    at = cgl_kernel_next_value(at) + kernel->sizes[i];
  return cgl_kernel_next_value(at);
}

/* Parameter `index` as the source declares it; NULL without a signature. */
static inline const cgl_parameter *
cgl_kernel_parameter(const cgl_kernel *kernel, size_t index) {
  return kernel->signature ? &kernel->signature->parameters[index] : NULL;
}
/* Whether the kernel may write through parameter `index`. */
static inline bool cgl_kernel_writes(const cgl_kernel *kernel, size_t index) {
  const unsigned char effect =
      atomic_load_explicit(&kernel->effects[index], memory_order_relaxed);
  if (effect)
    return effect != CGL_EFFECT_READ;
  const cgl_parameter *p = cgl_kernel_parameter(kernel, index);
  return !p || !p->readonly;
}

/* The element type of a kind; CGL_TYPE_COUNT for structs and other kinds that
   have none. */
cgl_type cgl_kernel_element(cgl_kind kind);

/* ---- args.c ---- */

/* Fails with "argument N of KERNEL (TYPE NAME) " before the text. */
cgl_status cgl_arg_refuse(cgl_status status, const cgl_kernel *kernel,
                          size_t index, const char *operation,
                          const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The value of an argument, checked against parameter `index`, into `out` (its
   size is sizes[index], at most CGL_MAX_PARAM_BYTES). */
cgl_status cgl_arg_pack(const cgl_kernel *kernel, size_t index,
                        const cgl_arg *arg, const char *operation, void *out);
/* The buffer or pinned memory of an argument, and where it begins and how large
   it is; NULL: the argument is no memory of ours. */
cgl_object *cgl_arg_memory(const cgl_arg *arg, CUdeviceptr *address,
                           size_t *bytes);

/* ---- param.c ---- */

/* Gives a parameter that others do not use yet the fields of the struct that
   parameter `index` is; nothing, when there are none or of another size. */
cgl_status cgl_kernel_give_fields(const cgl_kernel *kernel, size_t index,
                                  cgl_param *param, const char *operation);
/* Whether a struct with the parameter's fields is laid out as the one that
   parameter `index` is; true when either has none. */
bool cgl_kernel_fields_fit(const cgl_kernel *kernel, size_t index,
                           const cgl_param *param);

/* ---- launch.c ---- */

/* The same launch with its extents of 0 resolved. */
cgl_launch cgl_launch_resolve(const cgl_launch *wanted);
/* Refuses a count of arguments, a resolved shape or dynamic shared memory that
   the kernel cannot have.  The context is current.  cuFuncSetAttribute */
cgl_status cgl_launch_check(cgl_kernel *kernel, const cgl_launch *launch,
                            size_t nargs, const char *operation);

/* ---- grid.c ---- */

/* A grid's extents are numbers 0 to 2; or number 0 is a count of threads. */
extern const cgl_rule cgl_kernel_grid_rule, cgl_kernel_threads_rule;
/* The numbers of a launch, whose grid becomes what the parameters are.
   CGL_ERROR_INVALID_ARGUMENT, CGL_ERROR_ARGUMENT_TYPE */
cgl_status cgl_kernel_read_grid(const cgl_kernel *kernel,
                                const cgl_grid_params *grid, cgl_launch *launch,
                                cgl_ruled *ruled, const char *operation);

/* ---- follow.c ---- */

/* What a parameter of the kernel follows, from argument number 0: the number of
   its range (record.h). */
enum { CGL_ARGUMENT_FOLLOWED = CGL_MAX_PARAMS + 2 };

/* A launch with parameters that follow buffers; uninitialized before. */
typedef struct cgl_following {
  cgl_kernel *kernel;                  /* borrowed */
  bool follows;                        /* some do, still */
  CUfunction function;                 /* the following form, then */
  cgl_buffer *buffers[CGL_MAX_PARAMS]; /* owned; NULL: this one does not */
  uint64_t words[CGL_MAX_PARAMS + 1];  /* driver/predicate.h */
} cgl_following;

/* Whether a parameter among the arguments follows a buffer. */
bool cgl_args_follow(const cgl_arg *args, size_t nargs);
/* Whether the kernel may write to the range by argument `index`. */
bool cgl_kernel_may_write(const cgl_kernel *kernel, size_t index,
                          const cgl_arg *arg, const cgl_range *range);
/* Checks the buffers for a launch of the kernel on the stream; `ruled`: its
   grid is a parameter.  Legal in captures.  With CGL_OK, cgl_following_end
   comes after it. */
cgl_status cgl_following_begin(cgl_following *f, cgl_kernel *kernel,
                               cgl_stream *stream, const cgl_launch *launch,
                               bool ruled, const cgl_arg *args,
                               const char *operation);
void cgl_following_end(cgl_following *f);
/* The launch uses the parameter that is argument `index`, and its buffer; the
   words begin at `at` in the values. */
void cgl_following_use(const cgl_following *f, cgl_issue *issue, size_t at,
                       size_t index, cgl_param *param);

/* ---- second.c ---- */

/* A second form of the kernel, for such a launch; NULL, and a static text in
 *why, when it has none.  Legal in captures. */
cgl_status cgl_kernel_second(cgl_kernel *kernel, cgl_second_form form,
                             const cgl_launch *launch, const char *operation,
                             CUfunction *function, const char **why);

#endif
