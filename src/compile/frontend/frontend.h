/* What a CUDA C source declares, read without compiling it.
   The reader preprocesses the text (see preprocess.h), walks the
   declarations of every namespace and keeps the kernels, the templates among
   them, the device variables and what each kernel may reach.  It never
   refuses a text: what it cannot read it leaves out, and errors are the
   compiler's to report.
   Invariant: features err on the safe side.  A kernel that may reach a
   barrier has CGL_USES_BARRIER; one without CGL_NEEDS_THREADS names
   threadIdx.x and blockIdx.x only as blockIdx.x * blockDim.x + threadIdx.x. */
#ifndef CGL_COMPILE_PARSE_H
#define CGL_COMPILE_PARSE_H

#include "compile/base/base.h"
#include "compile/frontend/types.h"

/* Bytes of shared memory that a GPU gives a kernel without being asked. */
enum { CGL_STATIC_SHARED = 49152 };

/* The most threads of a row that the host device runs before the others. */
enum { CGL_MOST_FEW = 8 };

enum {
  CGL_USES_BARRIER = 1,     /* barriers or warp collectives */
  CGL_USES_SHARED = 2,      /* __shared__ */
  CGL_USES_DYNAMIC = 4,     /* extern __shared__ */
  CGL_NEEDS_THREADS = 8,    /* threadIdx.x or blockIdx.x outside the idiom */
  CGL_USES_LOCALS = 16,     /* local arrays, which forbid ivdep */
  CGL_USES_INDEX = 32,      /* any position along x */
  CGL_TAKES_REFERENCE = 64, /* a parameter is a reference */
  CGL_USES_GROUPS = 128     /* cooperative groups */
};

/* The header of a grid-stride loop in the source's text (see stride.c). */
typedef struct cgl_stride_loop {
  const char *start, *end; /* `for` to `)`; NULL without such a loop */
  const cgl_token *type;   /* of the loop variable */
  size_t ntype;
  const cgl_token *variable;
  const cgl_token *bound; /* the loop runs while variable < bound */
  size_t nbound;
  bool refused; /* names a variable whose type may have operators: neither this
                   instance of a template nor the others may use the loop */
} cgl_stride_loop;

/* A condition in the source's text that holds for a row's threads up to one of
   them, and for none from there on (see ends.c). */
typedef struct cgl_end {
  const char *open, *close; /* its parentheses */
  bool leaves;              /* threads for which it holds leave: the opposite */
  bool last;                /* of the kernel's */
} cgl_end;

typedef struct cgl_signature {
  char *name;                /* as the caller asks for it */
  char *lowered;             /* as cuModuleGetFunction asks for it */
  cgl_parameter *parameters; /* in order */
  size_t nparameters;
  int line;             /* of the kernel's name in the script */
  uint32_t max_threads; /* of __launch_bounds__, 0 when absent */
  unsigned features;    /* CGL_USES_*, CGL_NEEDS_* */
  bool specialised; /* a template that has another text, too: whose is it? */
  cgl_stride_loop loop; /* valid as long as the program and the source */
  cgl_end *ends;        /* likewise */
  size_t nends;
  const struct cgl_declared *declared; /* likewise; NULL from the cache */
  const cgl_alias *aliases; /* likewise: a template's arguments come first */
  bool loops;               /* its barriers are between loops */
  bool waits;               /* source.h */
  bool strips;              /* 32 threads at a time take its loops together */
  const char *fibers;       /* why it runs as fibers; NULL when it does not */
  int fibers_line;          /* where: lines behind the source's first */
} cgl_signature;

typedef struct cgl_variable {
  char *name;    /* qualified: ns::name */
  char *lowered; /* as cuModuleGetGlobal asks for it */
  bool constant; /* __constant__ */
  bool internal; /* static, or inside a namespace: its symbol is mangled */
} cgl_variable;

typedef struct cgl_program cgl_program;

/* A header, as it was found. */
typedef struct cgl_included {
  const char *name; /* as the directive spells it */
  const char *path;
  const char *text;
  size_t length;
  bool once; /* is not read a second time */
} cgl_included;

/* Reads a source, which must outlive the program.  `line` is the number of its
   first line; of `options` only -D, -U, -I and -std are looked at; `folder` (or
   NULL) is where quoted includes are looked for; the macros of `before` (or
   NULL), which must live as long, are defined.  Returns NULL only when memory
   ran out. */
cgl_program *cgl_program_read(const char *text, size_t length, int line,
                              const char *const *options, size_t noptions,
                              const char *folder, const char *before);

/* Holds the reading against what a compiler's preprocessor made of the source
   `file` (its output with line markers).  Returns `guess` when both agree,
   else a program read from the output, which takes `guess`; NULL when memory
   ran out, `guess` then is still the caller's. */
cgl_program *cgl_program_correct(cgl_program *guess, const char *output,
                                 size_t length, const char *file, int line);

/* Frees the program and everything it handed out. */
void cgl_program_free(cgl_program *program);

/* How many kernels that are not templates the source defines. */
size_t cgl_program_kernels(const cgl_program *program);

/* The signature of the i-th of them, strings from `arena`; `lowered` equals
   `name`.  Returns 0, or -1 when memory ran out. */
int cgl_program_kernel(const cgl_program *program, size_t i, cgl_arena *arena,
                       cgl_signature *out);

/* The signature a name expression such as `ns::scale<float, 4>` stands for:
   0, 1 when there is no such kernel, -1 when memory ran out. */
int cgl_program_find(const cgl_program *program, const char *expression,
                     cgl_arena *arena, cgl_signature *out);

/* The device variables. */
const cgl_variable *cgl_program_variables(const cgl_program *program,
                                          size_t *count);

/* Where the bodies of __global__ functions, instances of templates that the
   source writes out included, begin: at a `{`, of the source's own text or of
   another. */
const char *const *cgl_program_bodies(const cgl_program *program,
                                      size_t *count);

/* Does a name in the source, includes counted, contain `part`? */
bool cgl_program_contains(const cgl_program *program, const char *part);

/* Could an include not be read, so that not all of the source is known? */
bool cgl_program_is_partial(const cgl_program *program);

/* Does it include cuComplex.h? */
bool cgl_program_is_complex(const cgl_program *program);

/* Does it include cooperative_groups.h? */
bool cgl_program_has_groups(const cgl_program *program);

/* Did a conditional or a header decide what was read, so that a compiler may
   have read something else? */
bool cgl_program_is_guess(const cgl_program *program);

/* The headers that the reader found, on the way to the script's or asked for
   by __has_include. */
const cgl_included *cgl_program_files(const cgl_program *program,
                                      size_t *count);

/* The names of all headers that were looked for, a NUL after each. */
const char *cgl_program_wanted(const cgl_program *program, size_t *length);

#endif
