/* What is compiled, and what comes out of it: the types that both compilers
   and their caller share.
   A job is one compile: the source as the script gave it, what was read from
   it without compiling, and the image, whose signatures are there from the
   start and whose bytes, lowered names and parameters a compiler fills in.
   Reading is guessing: of a parameter's type, and of a struct's fields, only
   spelling and names are the reader's, all else is what the compiler says.
   A kernel *waits* when it begins with letting the kernel after it begin, and
   with waiting until those before it are over and all that they wrote is seen.
   Such a kernel may be launched, by a programmatic edge, before they are over.
   Compilers for sm_90 and newer put that in front of a kernel's body, and say
   of the result whether it is there; a kernel that reads what its source
   promises to be constant (const __restrict__, __ldg, textures) does not wait,
   as such reads may come before the wait.  On the host device, where an edge
   always waits for the whole kernel, every kernel waits.
   Invariant: a compiler adds to a job's `log` what it printed, in lines that
   name the script's file and line only, and to `files` what it read. */
#ifndef CGL_COMPILE_SOURCE_H
#define CGL_COMPILE_SOURCE_H

#include <time.h>

#include "compile/frontend/frontend.h"
#include "driver/table.h"

typedef enum cgl_compile_status {
  CGL_COMPILE_OK,
  CGL_COMPILE_REFUSED,     /* the compiler said no; the message is its text */
  CGL_COMPILE_NO_COMPILER, /* no NVRTC, no C++ compiler */
  CGL_COMPILE_SYSTEM       /* memory, files, processes */
} cgl_compile_status;

typedef struct cgl_source {
  const char *text;
  size_t length;              /* bytes of text */
  const char *file;           /* name in messages; NULL: "kernel" */
  int line;                   /* of the text's first line in `file` */
  const char *const *options; /* -D -U -I -std= --use_fast_math ... */
  size_t noptions;
  const char *const *expressions; /* instances of templates: "scale<float>" */
  size_t nexpressions;
  bool shipped; /* nothing is compiled: a shipped image serves, or none */
} cgl_source;

/* The option for libm's functions on the host device; NVRTC does not get it. */
#define CGL_PRECISE_MATH "--precise-math"

typedef struct cgl_image {
  cgl_image_format format;
  void *bytes; /* the ELF file */
  size_t size;
  cgl_signature *signatures; /* kernels, then instances of templates */
  size_t nsignatures;
  cgl_variable *variables; /* __device__ and __constant__ */
  size_t nvariables;
  bool cached;  /* came from the disk cache */
  bool shipped; /* came with the program */
  int line;     /* of the source's first line in its file */
  cgl_arena arena;
} cgl_image;

typedef struct cgl_job {
  const cgl_source *source;
  cgl_program *program; /* NULL until the source is read */
  const char *folder; /* of the script: quoted includes are looked for there */
  cgl_image *image;
  int sm;            /* compute capability, 90 for sm_90 */
  bool exact;        /* an image for `sm` and no older architecture */
  bool ptx;          /* exact: PTX instead of a cubin */
  const char *level; /* of the processor's instructions; NULL: this machine's */
  bool predicated;   /* PTX of the kernels' second forms */
  cgl_text log;
  cgl_text files; /* notes (cache.h) of what was read, and was not there */
  bool unkept;    /* what was read is not known: nothing for the cache */
  struct timespec since; /* reading began; what changed later was not read */
} cgl_job;

/* What is changed in a kernel's text for the host device. */
typedef struct cgl_changes {
  const cgl_stride_loop **loops; /* become walks in steps of one */
  size_t nloops;
  const cgl_end **ends; /* are asked of, see cgl_within in device.h */
  size_t nends;
} cgl_changes;

/* The source with known #include lines blanked; every line of the script keeps
   its number.  For the host device extern __shared__ arrays become the one
   array of dynamic shared memory as well, the changes (or NULL) are made, and
   the program's sums that no thread reads are gathered.  For a GPU the kernels
   of `program`, or NULL, whose body begins in the source's own text, and in no
   macro, call cgl_wait_for_grids() first. */
void cgl_source_rewrite(const cgl_source *source, bool host,
                        const cgl_changes *changes, const cgl_program *program,
                        cgl_text *out);

/* Makes way for the types that the source has under names of ours, as
   `typedef unsigned long long uint64_t;`.  It stands in front of the source. */
void cgl_source_put_own_types(const cgl_program *program, cgl_text *out);

/* Notes the files that a compile read (a NUL after each path), and every place
   where a file would be read instead of one of them, or would be found by
   __has_include. */
void cgl_source_note_files(cgl_job *job, const char *files, size_t length);

/* ---- parameters (parameters.c) ---- */

/* Writes the templates by which a compiler tells what parameters are.  They
   stand in front of the source.  cgl_type<T> has three words: `word` (kind,
   stars, const), `element` (bytes of the value or pointee, 0 unknown) and
   `align`.  cgl_answer<F>::cgl_all is a cgl_words of all parameters of F.  The
   compiler's own text defines the macro cgl_offset(T, field). */
void cgl_source_ask(cgl_text *out);

/* Takes down what a compiler told: the first words of all n parameters, then
   the second, then the third.  Returns 0, or -1 without memory. */
int cgl_source_learn(cgl_arena *arena, cgl_signature *signature,
                     const uint32_t *words, size_t n);

/* ---- fields of structs (fields.c) ---- */

/* Writes the templates for the fields: part of cgl_source_ask. */
void cgl_source_ask_records(cgl_text *out);

/* Writes behind the source what asks for the fields that a parameter has by the
   reader's word: the type cgl_fields_KERNEL_PARAMETER, a cgl_words. */
void cgl_source_ask_fields(const cgl_image *image, size_t kernel,
                           size_t parameter, cgl_text *out);

/* Takes down what a compiler told of a parameter's fields; a parameter of which
   it told anything else than was read has no fields.  Comes before
   cgl_source_learn. */
void cgl_source_learn_fields(cgl_parameter *parameter, const uint32_t *words,
                             size_t n);

/* Leaves all parameters without fields, so that nothing is asked; had any? */
bool cgl_source_drop_fields(cgl_image *image);

#endif
