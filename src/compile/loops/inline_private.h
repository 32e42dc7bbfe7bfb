/* What is put in place of a call of a function that synchronizes (inline.c,
   callee.c, order.c, templates.c). */
#ifndef CGL_COMPILE_LOOPS_INLINE_PRIVATE_H
#define CGL_COMPILE_LOOPS_INLINE_PRIVATE_H

#include "compile/loops/loops_private.h"

#define CGL_MOST_PARAMETERS 48 /* of a function */

/* A copy for one call, but for the origin of its body. */
typedef struct function {
  row type, parameters, body;
  row templates; /* between < and > */
  const cgl_token *body_origin;
} function;

/* Appends the statements. */
void cgl_inline_put(statement ***tail, statement *s);

/* The elements of a list with commas; how many, up to `most`. */
size_t cgl_inline_split(row r, row *out, size_t most);

/* The other name, or what it stands for, wherever the row has the old one. */
void cgl_inline_rename(row r, const cgl_token *old, const cgl_token *name);
void cgl_inline_rename_in(function *f, const cgl_token *was,
                          const cgl_token *now);

/* The lambda that the row names and nothing else, or NULL. */
variable *cgl_inline_lambda(const tree *t, row r);

/* The only function of that name that has a body and takes n arguments; false
   when there is none.  (callee.c) */
bool cgl_inline_find(tree *t, const cgl_token *name, size_t n, function *out);

/* What the declaration of a function says of its type. */
row cgl_inline_type(row type);

/* What stands from `from` on, up to the > that the row's last token is, or that
   it ends with as >>. */
row cgl_inline_angle(tree *t, row r, size_t from);

/* Refuses a statement in which what is done at r[i..end) is not the same when
   it is done first; when it is a call, with n parameters.  (order.c) */
void cgl_inline_check(tree *t, row r, size_t i, size_t end);
void cgl_inline_check_call(tree *t, row r, size_t i, size_t end,
                           const row *parameters, size_t n);

/* Gives the template's parameters names of the kernel: of the arguments
   `given` that are written at the call, or that its n `args` decide.  Appends
   what the names are declared by. */
void cgl_inline_bind_template(tree *t, const cgl_token *call, function *f,
                              row given, const row *parameters, const row *args,
                              size_t n, statement ***tail);

#endif
