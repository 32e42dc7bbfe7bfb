/* The system's C++ compiler: CUDA C to a shared object for the host device.
   generate.c writes the C++ file, functions.c the header's elementary
   functions, hostcc.c finds the compiler and runs it,
   amend.c reads what it did and says whether to ask anew, target.c chooses the
   instructions, image.c reads what came out, diagnostics.c edits its messages.
   Invariant: a kernel that is not `ordered` has no local variable in memory
   that its threads, run as one vectorised loop, would share. */
#ifndef CGL_COMPILE_HOST_H
#define CGL_COMPILE_HOST_H

#include "compile/source/source.h"

/* Appends which compiler would run: its command, and size and time of its
   program.  Nothing without one.  Runs nothing. */
void cgl_host_identify(cgl_text *identity);

/* Appends the processor (of the job's level, or this machine's) and all
   embedded text that stands in front of a source: part of the cache key. */
void cgl_host_key(const cgl_job *job, cgl_text *out);

/* ---- levels of the processor's instructions (level.c) ---- */

/* The name of a level, the newest first, as -march= takes it; NULL past the
   last, which every processor of the architecture has. */
const char *cgl_host_level(size_t index);

/* Does this machine's processor have the level? */
bool cgl_host_has_level(size_t index);

/* The index of the level of this name; past the last for an unknown name. */
size_t cgl_host_find_level(const char *name);

/* The compiler's option for a level. */
const char *cgl_host_march(const char *level);

/* ---- */

/* The macros that a source meets, but for the compiler's own. */
void cgl_host_macros(cgl_text *out);

/* Where the reading of the source depends on the compiler, asks its
   preprocessor and corrects job->program.  0, or -1 without memory. */
int cgl_host_correct(cgl_job *job);

/* Compiles; on success image->bytes (malloc'ed) and size are set. */
cgl_compile_status cgl_host_compile(cgl_job *job);

/* ---- inside the room ---- */

typedef struct cgl_cxx {
  char **words; /* the command, its own arguments included, then NULL */
  char *path;   /* of the program that is run */
  char *copy;   /* holds the words of $CGRAPHLUA_CXX */
  bool clang;
  int major;            /* 12 of 12.2.0; 0 when the version does not say */
  char *asked;          /* $CGRAPHLUA_CXX when it was looked up */
  struct cgl_cxx *next; /* an older one, which others may still use */
} cgl_cxx;

typedef struct cgl_host_job {
  cgl_job *job;
  const cgl_cxx *cxx;
  char *folder, *input, *output, *depends; /* paths */
  char *dumps[2];    /* options of g++: what its passes sra and vect made */
  bool *ordered;     /* by kernel: its threads must run in order */
  bool scalar;       /* without what the compiler makes wrong, or fails at */
  cgl_text said;     /* by the compiler, the last time */
  cgl_text built;    /* what the image was made of */
  bool built_scalar; /* and how */
  char *limit;       /* how long it may take, for the shell, or NULL */
  bool guarded; /* guards stay in their loops: to move them took too long */
} cgl_host_job;

/* How a kernel runs: CGL_FLAT and its like of device_run.h, added up. */
enum {
  CGL_HOST_FLAT = 1,
  CGL_HOST_ORDERED = 2,
  CGL_HOST_BARRIERS = 4,
  CGL_HOST_STRIDE = 8,
  CGL_HOST_LOOPS = 16,
  CGL_HOST_STRIPS = 32,
  CGL_HOST_ROWS = 64,
  CGL_HOST_ENDS = 128
};
int cgl_host_mode(const cgl_host_job *h, size_t kernel);

/* The option that says which of the processor's instructions the compiler may
   use: all that this process can run. */
const char *cgl_host_target(void);

/* Appends that option and what tells the processor: part of the cache key. */
void cgl_host_processor(cgl_text *out);

/* Chooses which kernels run as loops or in strips, and notes why the others
   with barriers run as fibers; 0, or -1 without memory. */
int cgl_host_choose_loops(cgl_host_job *h);

/* Do all kernels run as loops, in strips or as fibers?  Then the compiler's
   options are those that loops want. */
bool cgl_host_is_split(const cgl_job *job);

/* Does the source name elementary functions, which run best in the widest
   vectors?  And appends the parts of the device header that have those that it
   names; without a job, all.  (functions.c) */
bool cgl_host_has_functions(const cgl_job *job);
void cgl_host_put_functions(const cgl_job *job, cgl_text *out);

/* The whole C++ file: device header, script, export table. */
void cgl_host_generate(const cgl_host_job *h, cgl_text *out);

/* The same for the preprocessor: CUDA's words stay, and the script's text
   begins behind the word that is returned. */
const char *cgl_host_outline(const cgl_job *job, cgl_text *out);

/* What makes an image say what its kernels take: templates in front of the
   source, where no macro of the script's changes them, and a line for every
   kernel behind it. */
void cgl_host_ask(cgl_text *out);
void cgl_host_add_questions(const cgl_image *image, cgl_text *out);

/* Takes down the parameters of all kernels from the image that was made; 0, or
   -1 when it does not have them. */
int cgl_host_learn(cgl_job *job);

/* Holds the image that was made against what a GPU allows: refuses a function
   with too much static shared memory. */
cgl_compile_status cgl_host_check_shared(cgl_job *job);

/* All embedded text that stands in front of a source. */
void cgl_host_device_text(cgl_text *out);

/* After a compile: reads what the compiler said and dumped, and changes what is
   asked of it; whether it must be asked again.  Ends: each change is made once.
 */
bool cgl_host_amend(cgl_host_job *h, cgl_compile_status status);

/* Adds what a C++ compiler printed, as the script's author should see it. */
void cgl_host_diagnostics(const cgl_source *source, const char *said,
                          cgl_text *out);

#endif
