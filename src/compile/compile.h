/* CUDA C source -> an image the driver table can load.
   One entry for both targets: NVRTC makes a cubin, the system's C++ compiler
   makes a shared object for the host device (kernel_abi.h).  Signatures are
   read from the source by the same reader for both, so that arguments are
   checked alike; the compiler confirms what was read or corrects it
   (source.h); images are kept on disk (cache.h).
   Floating point: both contract a * b + c to a fused multiply-add, as CUDA
   does; the option --fmad=false stops both.
   Invariant: nothing here prints or keeps state that a second thread could
   disturb; an image is complete or it is NULL. */
#ifndef CGL_COMPILE_COMPILE_H
#define CGL_COMPILE_COMPILE_H

#include "compile/cache/cache.h"
#include "compile/source/source.h"

/* ---- images that a program is shipped with (shipped.c) ---- */

/* Adds a folder in which cgl_compile looks for a shipped image before it looks
   into the cache; NULL forgets all folders.  Those of $CGRAPHLUA_KERNELS, with
   ':' between them, come after.  0, or an errno when there is no such
   folder. */
int cgl_compile_from(const char *folder);

/* From now on cgl_compile also makes the images of every source for the levels
   of the host device and for the GPU architectures `archs` ("sm_90": a cubin,
   "compute_90": PTX), n of them.  On failure adds what is wrong to `why`. */
cgl_compile_status cgl_compile_collect(const char *const *archs, size_t n,
                                       cgl_text *why);

/* Writes what was collected into a folder, every file or none, and ends the
   collection; a NULL folder only ends it.  *count is the number of images.  On
   failure, which a source that failed for one of the targets also is, adds
   what is wrong to `why`. */
cgl_compile_status cgl_compile_write(const char *folder, size_t *count,
                                     cgl_text *why);

/* ---- */

typedef struct cgl_target {
  cgl_image_format format;
  int sm; /* compute capability, 90 for sm_90; unused for the host device */
  /* For another machine; all zero for the one that runs. */
  bool exact, ptx;
  const char *level;
  /* For a GPU: an image of the kernels' second forms (driver/predicate.h). */
  bool predicated;
} cgl_target;

/* The target of "sm_90", a cubin, or "compute_90", PTX.  Adds what is wrong to
   `why` when NVRTC does not compile for it (CGL_COMPILE_REFUSED), or is not
   there (CGL_COMPILE_NO_COMPILER). */
cgl_compile_status cgl_compile_arch(const char *arch, cgl_target *target,
                                    cgl_text *why);

/* Compiles, or takes from the cache.  *image is the caller's to free with
   cgl_image_free, NULL on failure.  *message is malloc'ed text or NULL:
   warnings on success, what went wrong on failure; `message` may be NULL. */
cgl_compile_status cgl_compile(const cgl_target *target,
                               const cgl_source *source, cgl_image **image,
                               char **message);

/* Opens the library that compiles for the target, if it is one: its own end at
   the end of the process then comes after that of an atexit that follows. */
void cgl_compile_open(const cgl_target *target);

/* The signature that was asked for by `name`, or NULL. */
const cgl_signature *cgl_image_find(const cgl_image *image, const char *name);

/* Frees an image; NULL is fine. */
void cgl_image_free(cgl_image *image);

/* ---- inside the room (compile.c) ---- */

/* The same, by the compilers and the cache of this machine alone.  `files` gets
   the notes (cache.h) of what was read. */
cgl_compile_status cgl_compile_here(const cgl_target *target,
                                    const cgl_source *source, cgl_image **image,
                                    char **message, cgl_text *files);

/* The folder of the script, where quoted includes are looked for (malloc'ed).
 */
char *cgl_compile_folder(const char *file);

/* Fills the job's image from an entry whose image is described at `row`, to
   the end of its record; false when that is no such row. */
bool cgl_compile_take(cgl_job *job, cgl_cache_entry *entry, const char *row);

/* ---- inside the room (shipped.c) ---- */

/* Fills the job's image from a shipped one; false when there is none.  What is
   there and not used has a line in `faults`, which says why. */
bool cgl_compile_find_shipped(cgl_job *job, cgl_text *faults);

/* Adds where shipped images were looked for, when no compiler was found. */
void cgl_compile_say_shipped(cgl_text *log);

/* Collects the images of a source that was compiled for `target`, if images are
   collected; else does nothing. */
cgl_compile_status cgl_compile_add(const cgl_target *target,
                                   const cgl_source *source, cgl_text *log);

/* ---- inside the room (record.c) ---- */

/* Appends what an image says of its kernels and variables. */
void cgl_image_pack(const cgl_image *image, cgl_text *out);

/* Fills an empty image's kernels and variables; -1 when the row is no such
   row, or memory ran out: free the arena then. */
int cgl_image_unpack(cgl_image *image, const char *row, size_t length);

#endif
