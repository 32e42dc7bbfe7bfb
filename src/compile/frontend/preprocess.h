/* The C preprocessor, as far as reading declarations needs it.
   It follows conditionals, defines, includes and macro calls as a compiler
   does, and stays silent about what is wrong: the compiler will say so.
   Invariant: the tokens that come out carry the line of the script on which
   they (or the macro call, or the include, that made them) stand, and point
   into texts that live as long as the cgl_pp. */
#ifndef CGL_COMPILE_PREPROCESS_H
#define CGL_COMPILE_PREPROCESS_H

#include "compile/frontend/lex.h"
#include "compile/base/base.h"
#include "compile/frontend/types.h"

typedef struct cgl_pp {
  cgl_tokens out;            /* the result */
  cgl_arena arena;           /* texts and macros made on the way */
  struct cgl_macro **macros; /* by hash of the name */
  const char *const *options;
  size_t noptions;
  const char *folder; /* of the script, for quoted includes */
  cgl_text included;  /* the text of every file that was included */
  bool partial;       /* an include was not found */
  int steps;          /* macro calls made, bounded */
} cgl_pp;

/* Preprocesses `text`; of the options -D, -U and -I count.  Returns 0,
   or -1 when memory ran out; cgl_pp_free is due in any case. */
int cgl_pp_run(cgl_pp *pp, const char *text, size_t length, int line);

/* Frees the tokens and everything they point to. */
void cgl_pp_free(cgl_pp *pp);

/* Does the device header stand in for this header? */
bool cgl_pp_is_known_header(const char *name, size_t length);

/* The value of an integer constant expression without names.  Returns 0, or
   -1 when the tokens are no such expression. */
int cgl_evaluate(const cgl_token *at, size_t count, long long *value);

#endif
