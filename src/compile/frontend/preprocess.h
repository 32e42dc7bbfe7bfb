/* The C preprocessor, as far as reading declarations needs it.
   It follows conditionals, defines, includes and macro calls as a compiler
   does, and stays silent about what is wrong: the compiler will say so.
   What depends on the compiler (its macros, where it looks for headers) it
   guesses; `guessed` says that it did, and cgl_pp_output reads what a
   compiler made of the text instead.
   Invariant: the tokens that come out carry the line of the script on which
   they (or the macro call, or the include, that made them) stand, and point
   into texts that live as long as the cgl_pp. */
#ifndef CGL_COMPILE_PREPROCESS_H
#define CGL_COMPILE_PREPROCESS_H

#include "compile/frontend/lex.h"
#include "compile/base/base.h"
#include "compile/frontend/frontend.h"
#include "compile/frontend/types.h"

typedef struct cgl_pp {
  cgl_tokens out;            /* the result */
  cgl_arena arena;           /* texts and macros made on the way */
  struct cgl_macro **macros; /* by hash of the name */
  const char *const *options;
  size_t noptions;
  const char *folder;  /* of the script, for quoted includes */
  const char *before;  /* text in front, of which the macros count; or NULL */
  const char *here;    /* folder of the file that is read, NULL: the script */
  cgl_included *files; /* that were included or asked for, each path once */
  size_t nfiles, file_room;
  size_t file;     /* the one about to be read, counted from 1; 0: none */
  cgl_text wanted; /* every header that was looked for, NUL after each */
  bool partial;    /* an include was not found */
  bool complex;    /* cuComplex.h is included */
  bool groups;     /* cooperative_groups.h, or what belongs to it, is */
  bool guessed;    /* a conditional, or a header, decided what is read */
  int steps;       /* macro calls made, bounded */
} cgl_pp;

/* Preprocesses `text`; of the options -D, -U, -I and -std count.  Returns 0,
   or -1 when memory ran out; cgl_pp_free is due in any case. */
int cgl_pp_run(cgl_pp *pp, const char *text, size_t length, int line);

/* The same from a compiler's output, which starts with a line marker; `text`
   must live as long as the tokens.  A token of a header stands on the line of
   `file` where the header is included. */
int cgl_pp_output(cgl_pp *pp, const char *text, size_t length, const char *file,
                  int line);

/* Are two rows the same but for names that stand for their place? */
bool cgl_pp_agree(const cgl_pp *a, const cgl_pp *b);

/* Is there a macro of that name at the end of the text?  *function: one that is
   expanded in front of a bracket alone. */
bool cgl_pp_defines(const cgl_pp *pp, const cgl_token *name, bool *function);

/* Frees the tokens and everything they point to. */
void cgl_pp_free(cgl_pp *pp);

/* Does the device header stand in for this header? */
bool cgl_pp_is_known_header(const char *name, size_t length);

/* The value of an integer constant expression without names.  Returns 0, or
   -1 when the tokens are no such expression. */
int cgl_evaluate(const cgl_token *at, size_t count, long long *value);

#endif
