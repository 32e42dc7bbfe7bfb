/* What is taken out of a statement is done before the rest of it: is that the
   same?  C++ leaves open in which order the operands of most operators are
   evaluated.  For the sake of a strip alone nothing changes that order: a call
   that may change what stands beside it stays. */
#include "compile/loops/inline_private.h"


/* The call at i is made first: is that the same? */
static void check_changes(tree *t, row r, size_t i, size_t end) {
  size_t changes = 0;
  for (size_t k = 0; k < r.n; k++) {
    const cgl_token *x = &r.at[k];
    if (k == i) {
      k = end - 1;
      continue;
    }
    changes += cgl_token_is_assignment(x);
    if (changes > 1 || cgl_token_is_any(x, "++", "--"))
      cgl_tree_refuse(t, x,
                      "a statement that synchronizes and changes more than "
                      "one variable");
    if (k > i)
      continue;
    if (cgl_token_is_any(x, "(", "[", "{")) {
      size_t close = cgl_tokens_close(r.at, r.n, k);
      if (close <= i) {
        for (size_t j = k; j < close; j++)
          changes += cgl_token_is_assignment(&r.at[j]);
        k = close - 1;
      }
    } else if (cgl_token_is_any(x, "&&", "||", "?"))
      cgl_tree_refuse(t, x, "an operation of several threads behind '%.*s'",
                      (int)x->length, x->text);
  }
}


/* A comma that is not between arguments, nor in the call. */
static bool has_comma(row r, size_t call, size_t end) {
  for (size_t i = 0; i < r.n;)
    if (i == call)
      i = end;
    else if (cgl_token_is(&r.at[i], ","))
      return true;
    else
      i = cgl_tokens_past(r.at, r.n, i);
  return false;
}


void cgl_inline_check(tree *t, row r, size_t i, size_t end) {
  check_changes(t, r, i, end);
  if (has_comma(r, i, end))
    cgl_tree_refuse(t, &r.at[i],
                    "an operation of several threads beside a comma");
}


/* May the function change what it is given? */
static bool may_change(const row *parameters, size_t n) {
  for (size_t k = 0; k < n; k++)
    for (size_t i = 0; i < parameters[k].n; i++)
      if (cgl_token_is(&parameters[k].at[i], "const"))
        break;
      else if (cgl_token_is_any(&parameters[k].at[i], "&", "&&", "*", "["))
        return true;
  return false;
}


/* *p, and not a * b? */
static bool is_load(row r, size_t from, size_t k) {
  return cgl_token_is(&r.at[k], "*") &&
         (k == from || (r.at[k - 1].kind == CGL_TOKEN_PUNCT &&
                        !cgl_token_is_any(&r.at[k - 1], ")", "]")));
}


/* Is something beside the call r[i..end) evaluated that it might change: a
   load, a variable that it is given, another call?  What is assigned to is not.
 */
static bool has_other(const tree *t, row r, size_t i, size_t end) {
  size_t from = 0;
  for (size_t k = 0; k < i; k = cgl_tokens_past(r.at, r.n, k))
    if (cgl_token_is_assignment(&r.at[k]))
      from = k + 1;
  for (size_t k = from; k < r.n; k++) {
    const cgl_token *x = &r.at[k];
    if (k == i)
      k = end - 1;
    else if (cgl_token_is_any(x, "[", "->") || is_load(r, from, k))
      return true;
    else if (cgl_tree_is_name(r, k) && !cgl_token_is_type_word(x)) {
      bool given = k + 1 < r.n && cgl_token_is(&r.at[k + 1], "(");
      for (size_t j = i; j < end && cgl_tree_find(t, x); j++)
        given |= cgl_tree_is_name(r, j) && cgl_token_same(&r.at[j], x);
      if (given)
        return true;
    }
  }
  return false;
}


void cgl_inline_check_call(tree *t, row r, size_t i, size_t end,
                           const row *parameters, size_t n) {
  if (t->strips && may_change(parameters, n) && has_other(t, r, i, end))
    cgl_tree_refuse(t, &r.at[i],
                    "a call of '%.*s', which may change what stands beside it",
                    (int)r.at[i].length, r.at[i].text);
}
