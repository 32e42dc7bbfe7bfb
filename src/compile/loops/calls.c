/* Functions of the source whose result depends on their arguments alone.
   A call of such a function has one value for all threads when its arguments
   have.  The text of the function is asked, and of those that it calls: it may
   name its parameters, variables of its own, constants and sizes, read memory,
   and change its own variables by their names.
   Invariant: a name that is not known to be one of those makes the call one
   that depends on the thread. */
#include "compile/loops/loops_private.h"

#define MAX_DEPTH 8 /* of calls */
#define MAX_NAMES 48

/* A function as it is read. */
typedef struct function {
  row all; /* from the `(` of its parameters on */
  const cgl_token *names[MAX_NAMES];
  size_t n;
} function;


static bool is_type(const cgl_token *t) {
  return cgl_token_is_type_word(t) || cgl_token_is_known_type(t) ||
         cgl_token_is(t, "auto");
}


static bool is_own(const function *f, const cgl_token *name) {
  for (size_t i = 0; i < f->n; i++)
    if (cgl_token_same(f->names[i], name))
      return true;
  return false;
}


/* Past the type at i, or i. */
static size_t skip_type(row r, size_t i) {
  while (i < r.n && is_type(&r.at[i]))
    i++;
  return i;
}


/* Finds what the function declares: names behind a type and stars, and behind
   the commas of such a declaration.  A reference is none of them. */
static void find_names(function *f) {
  const row r = f->all;
  for (size_t i = 0; i < r.n; i++) {
    size_t k = skip_type(r, i);
    if (k == i)
      continue;
    while (k < r.n && f->n < MAX_NAMES) {
      while (k < r.n && cgl_token_is_any(&r.at[k], "*", "const", "__restrict__",
                                         "__restrict"))
        k++;
      if (k >= r.n || r.at[k].kind != CGL_TOKEN_NAME || is_type(&r.at[k]) ||
          (k + 1 < r.n && cgl_token_is(&r.at[k + 1], "(")))
        break;
      f->names[f->n++] = &r.at[k++];
      while (k < r.n && !cgl_token_is_any(&r.at[k], ",", ";", ")"))
        k = cgl_tokens_past(r.at, r.n, k);
      if (k >= r.n || !cgl_token_is(&r.at[k], ","))
        break;
      k++;
    }
    i = skip_type(r, i) - 1;
  }
}


/* Is k the name of the function's own variable, as a whole? */
static bool is_whole(const function *f, size_t k) {
  const row r = f->all;
  if (k >= r.n || !cgl_tree_is_name(r, k) || !is_own(f, &r.at[k]))
    return false;
  if (k + 1 < r.n && cgl_token_is_any(&r.at[k + 1], "[", ".", "->", "("))
    return false;
  const bool star = k && cgl_token_is(&r.at[k - 1], "*");
  return !star || (k > 1 && is_type(&r.at[k - 2])); /* it is declared */
}


/* Changes the operator at k nothing but a variable of the function's own? */
static bool is_own_change(const function *f, size_t k) {
  if (cgl_tree_is_equal(&f->all.at[k]))
    return k && is_whole(f, k - 1);
  return (k && is_whole(f, k - 1)) || is_whole(f, k + 1);
}


static bool is_pure_function(tree *t, const cgl_token *name, int depth);


static bool is_known_name(tree *t, const function *f, size_t k, int depth) {
  const cgl_token *x = &f->all.at[k];
  const bool call = k + 1 < f->all.n && cgl_token_is(&f->all.at[k + 1], "(");
  size_t chunk;
  if (cgl_token_is_any(x, "static", "volatile", "extern", "__shared__", "asm",
                       "goto", "thread_local"))
    return false;
  if (cgl_token_is_any(x, "if", "else", "for", "while", "do", "return", "break",
                       "continue", "switch", "case", "default", "true", "false",
                       "nullptr", "blockDim", "gridDim", "warpSize") ||
      is_type(x) || (cgl_token_is(x, "blockIdx") && !t->strips))
    return true;
  if (call)
    return !is_own(f, x) &&
           (cgl_values_is_pure_call(t, x) || is_pure_function(t, x, depth + 1));
  if (cgl_reach_chunk(t->program, x, 0, &chunk) && !is_own(f, x))
    return cgl_values_is_common(t, x);
  return is_own(f, x);
}


static bool is_pure_text(tree *t, const function *f, int depth) {
  const row r = f->all;
  for (size_t k = 0; k < r.n; k++) {
    const cgl_token *x = &r.at[k];
    if (x->kind == CGL_TOKEN_STRING || x->shut || cgl_tree_lambda(r, k) ||
        cgl_token_is_any(x, "::", "#"))
      return false;
    if (cgl_token_is_assignment(x) && !is_own_change(f, k))
      return false;
    if (x->kind != CGL_TOKEN_NAME)
      continue;
    if (!cgl_tree_is_name(r, k)) { /* a field, or a method */
      if (k + 1 < r.n && cgl_token_is(&r.at[k + 1], "("))
        return false;
    } else if (!is_known_name(t, f, k, depth))
      return false;
  }
  return true;
}


/* Are all declarations of the name functions like that? */
static bool is_pure_function(tree *t, const cgl_token *name, int depth) {
  size_t chunk, bodies = 0;
  if (depth == MAX_DEPTH)
    return false;
  for (size_t k = 0; cgl_reach_chunk(t->program, name, k, &chunk); k++) {
    const cgl_chunk *c = &t->program->chunks[chunk];
    function f = {0};
    size_t open = 0;
    while (open < c->count && !cgl_token_is_any(&c->at[open], "(", "{", ";"))
      open++;
    if (c->record || !open || open >= c->count ||
        !cgl_token_is(&c->at[open], "(") ||
        !cgl_token_same(&c->at[open - 1], name))
      return false;
    for (size_t i = 0; i + 1 < open; i++)
      if (cgl_token_is_any(&c->at[i], "&", "&&"))
        return false;
    const size_t close = cgl_tokens_close(c->at, c->count, open);
    if (close < c->count && cgl_token_is(&c->at[close], ";"))
      continue;
    if (close >= c->count || !cgl_token_is(&c->at[close], "{"))
      return false;
    f.all = cgl_tree_copy(t, &c->at[open], c->count - open);
    find_names(&f);
    if (t->failed || !is_pure_text(t, &f, depth))
      return false;
    bodies++;
  }
  return bodies > 0;
}


bool cgl_calls_is_uniform(tree *t, const cgl_token *name) {
  return !cgl_tree_find(t, name) && is_pure_function(t, name, 0);
}
