/* Which function a call means.  By its name alone: what depends on the types of
   arguments, on specialisations or on namespaces is the compiler's to say. */
#include <string.h>

#include "compile/loops/inline_private.h"


row cgl_inline_type(row type) {
  size_t n = 0;
  for (size_t i = 0; i < type.n; i++)
    if (!cgl_token_is_any(&type.at[i], "__device__", "__host__", "inline",
                          "__inline__", "__inline", "static", "extern",
                          "__forceinline__", "__noinline__", "constexpr") &&
        type.at[i].kind != CGL_TOKEN_STRING)
      type.at[n++] = type.at[i];
  return (row){type.at, n};
}


/* May the function be called with n arguments? */
static bool takes(row parameters, size_t n) {
  row each[CGL_MOST_PARAMETERS];
  const size_t count = cgl_inline_split(parameters, each, CGL_MOST_PARAMETERS);
  if (count == 1 && each[0].n == 1)
    return !n; /* void */
  for (size_t k = n; k < count; k++)
    if (cgl_row_find(each[k], "=", "=") == each[k].n)
      return false;
  return n <= count;
}


row cgl_inline_angle(tree *t, row r, size_t from) {
  row made = cgl_tree_copy(t, &r.at[from], r.n - from);
  cgl_token *last = made.n ? &made.at[made.n - 1] : NULL;
  if (last && cgl_token_is(last, ">>"))
    last->length = 1;
  else if (last)
    made.n--;
  return made;
}


/* Is the chunk `template <> T f<int>(...) {...}`, of which the name does not
   say whether it is called? */
static bool specialises(const cgl_chunk *c, const cgl_token *name) {
  for (size_t i = 0; i + 1 < c->count; i++)
    if (cgl_token_is_any(&c->at[i], "(", "{", ";"))
      return false;
    else if (cgl_token_same(&c->at[i], name) &&
             cgl_token_is(&c->at[i + 1], "<"))
      return true;
  return false;
}


/* Does the function declare the name itself, as `float a`? */
static bool declares(const cgl_chunk *c, const cgl_token *name) {
  for (size_t i = 1; i < c->count; i++)
    if (cgl_token_same(&c->at[i], name) &&
        c->at[i - 1].kind == CGL_TOKEN_NAME &&
        !cgl_token_is_any(&c->at[i - 1], "return", "else", "do", "case",
                          "sizeof"))
      return true;
  return false;
}


/* Do the names in the function stand for the same in the kernel?  In another
   namespace one may have another of that name. */
static bool is_same_scope(const tree *t, const cgl_chunk *c) {
  const char *own = t->kernel->scope;
  size_t chunk, common = 0;
  while (own[common] && own[common] == c->scope[common])
    common++;
  for (size_t i = 0; i < c->count && (own[common] || c->scope[common]); i++)
    for (size_t k = 0; c->at[i].kind == CGL_TOKEN_NAME &&
                       cgl_reach_chunk(t->program, &c->at[i], k, &chunk);
         k++) {
      const cgl_chunk *other = &t->program->chunks[chunk];
      if (other != c && strlen(other->scope) > common &&
          (!other->record || cgl_sync_is_class(other, &c->at[i])) &&
          !declares(c, &c->at[i]))
        return false;
    }
  return true;
}


bool cgl_inline_find(tree *t, const cgl_token *name, size_t n, function *out) {
  size_t chunk, found = 0;
  row body, *made = NULL;
  for (size_t k = 0; cgl_reach_chunk(t->program, name, k, &chunk); k++) {
    const cgl_chunk *c = &t->program->chunks[chunk];
    size_t i = 0;
    if (c->record)
      continue;
    if (specialises(c, name) || !is_same_scope(t, c))
      return false;
    while (i < c->count && !cgl_token_is_any(&c->at[i], "(", "{", ";"))
      i++;
    if (i == 0 || i >= c->count || !cgl_token_is(&c->at[i], "(") ||
        !cgl_token_same(&c->at[i - 1], name))
      continue;
    size_t close = cgl_tokens_close(c->at, c->count, i), open = close;
    if (open >= c->count || !cgl_token_is(&c->at[open], "{"))
      continue;
    const row parameters = cgl_tree_copy(t, &c->at[i + 1], close - i - 2);
    if (!takes(parameters, n))
      continue;
    out->templates = (row){NULL, 0};
    if (c->header)
      out->templates = cgl_inline_angle(
          t, (row){(cgl_token *)c->at - c->header, c->header}, 2);
    found++;
    out->type = cgl_tree_copy(t, c->at, i - 1);
    out->parameters = parameters;
    body = (row){(cgl_token *)&c->at[open + 1], c->count - open - 2};
    made = &t->bodies[chunk];
  }
  if (found != 1)
    return false;
  if (!made->at)
    *made = cgl_lives_rewrite(
        t,
        cgl_returns_rewrite(
            t, cgl_choose_rewrite(t, body),
            cgl_inline_type(cgl_tree_copy(t, out->type.at, out->type.n))),
        out->parameters);
  out->body_origin = made->at;
  out->body = cgl_tree_copy(t, made->at ? made->at : name, made->n);
  return true;
}
