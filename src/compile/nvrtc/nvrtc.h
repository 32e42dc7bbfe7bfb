/* NVRTC, opened when it is first needed: CUDA C to a cubin.
   Nothing links against it, so a machine without it runs everything but
   compiles for a GPU.
   Invariant: the library is opened once per process and stays open. */
#ifndef CGL_COMPILE_NVRTC_H
#define CGL_COMPILE_NVRTC_H

#include "compile/source/source.h"

/* Opens the library, if it is there. */
void cgl_nvrtc_open(void);

/* Does NVRTC, if it is there, compile for the architecture?  Else adds why not
   to `why`. */
cgl_compile_status cgl_nvrtc_has(int sm, cgl_text *why);

/* Appends the compiler's name, version and target; nothing without one. */
void cgl_nvrtc_identify(const cgl_job *job, cgl_text *identity);

/* The macros that a source meets. */
void cgl_nvrtc_macros(const cgl_job *job, cgl_text *out);

/* Compiles; on success image->bytes (malloc'ed) and size are set. */
cgl_compile_status cgl_nvrtc_compile(cgl_job *job);

/* All embedded text that stands in front of a source: part of the key. */
void cgl_nvrtc_device_text(cgl_text *out);

/* ---- predicated.c ---- */

/* Appends the PTX with every kernel in its second forms (driver/predicate.h);
   false when the module has variables, of which another module would have its
   own.  The image's signatures say which parameters are pointers; NULL: nothing
   does. */
bool cgl_nvrtc_predicate(const char *ptx, const cgl_image *image,
                         cgl_text *out);

/* ---- following.c ---- */

/* A kernel in PTX: where it begins, the parentheses around its parameters, the
   brace of its body, and past its end. */
typedef struct cgl_ptx_entry {
  const char *begin, *open, *close, *body, *end;
} cgl_ptx_entry;

/* Appends the following form of a kernel; `image` as above.  Nothing of a
   kernel that does something else with a small number than to load it: it has
   none. */
void cgl_nvrtc_follow(const cgl_ptx_entry *entry, const cgl_image *image,
                      cgl_text *out);

/* The first character that is no space. */
const char *cgl_ptx_skip_space(const char *at);
bool cgl_ptx_begins_with(const char *at, const char *word);
/* The next character of the two, outside quotes and comments, or the end. */
const char *cgl_ptx_find_either(const char *at, char a, char b);

#endif
