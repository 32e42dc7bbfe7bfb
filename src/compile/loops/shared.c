/* Addresses that are in shared memory for certain.
   One thread runs a block's loops, so what is atomic among the threads of a
   block needs no locked operation: `atomicAdd(&bins[i], 1)`, and as well
   `atomicMax(row + i, v)`, where `unsigned *row = bins[w];`.
   Invariant: an address counts only when all that it is made of is an array of
   shared memory, in which no pointers are, places in it, and sums. */
#include "compile/loops/loops_private.h"

#define MAX_DEPTH 6 /* of types, and of pointers */


#define NO_CHUNK ((size_t)-1)

/* May a pointer stand in what has the type?  `self` is the declaration that the
   row is of, whose own names are no other types. */
static bool has_pointers(const tree *t, row r, size_t self, int depth) {
  size_t chunk;
  if (depth == MAX_DEPTH)
    return true;
  for (size_t i = 0; i < r.n; i++) {
    const cgl_token *x = &r.at[i];
    if (cgl_token_is_any(x, "*", "&", "&&", "auto", "decltype"))
      return true;
    if (x->kind != CGL_TOKEN_NAME || cgl_token_is_type_word(x))
      continue;
    const variable *v = cgl_tree_find(t, x);
    if (v) {
      if (v->alias && has_pointers(t, v->value, NO_CHUNK, depth + 1))
        return true;
    } else
      for (size_t k = 0; cgl_reach_chunk(t->program, x, k, &chunk); k++) {
        const cgl_chunk *c = &t->program->chunks[chunk];
        if (chunk != self &&
            has_pointers(t, (row){(cgl_token *)c->at, c->count}, chunk,
                         depth + 1))
          return true;
      }
  }
  return false;
}


/* Is the name a shared array or variable without pointers? */
static bool is_shared_name(const tree *t, const cgl_token *name) {
  const variable *v = cgl_tree_find(t, name);
  size_t chunk;
  if (v)
    return v->shared && !v->reference && !has_pointers(t, v->type, NO_CHUNK, 0);
  if (!cgl_reach_chunk(t->program, name, 0, &chunk))
    return false;
  const cgl_chunk *c = &t->program->chunks[chunk];
  bool shared = false;
  size_t type = 0;
  for (; type < c->count && !cgl_token_same(&c->at[type], name); type++) {
    if (cgl_token_is_any(&c->at[type], ",", "{", "(", "=", "*", "&"))
      return false;
    shared |= cgl_token_is(&c->at[type], "__shared__");
  }
  return shared && !c->record &&
         !has_pointers(t, (row){(cgl_token *)c->at, type}, NO_CHUNK, 0);
}


/* Past the name at i, its elements and fields. */
static size_t skip_place(row r, size_t i) {
  i++;
  while (i < r.n && cgl_token_is_any(&r.at[i], "[", "."))
    i = cgl_token_is(&r.at[i], "[") ? cgl_tokens_close(r.at, r.n, i) : i + 2;
  return i;
}


/* Is the rest a sum's? */
static bool is_sum(row r, size_t i) {
  if (i < r.n && !cgl_token_is_any(&r.at[i], "+", "-"))
    return false;
  for (; i < r.n; i++) {
    if (cgl_token_is_any(&r.at[i], "(", "["))
      i = cgl_tokens_close(r.at, r.n, i) - 1;
    else if (r.at[i].kind == CGL_TOKEN_PUNCT &&
             !cgl_token_is_any(&r.at[i], "+", "-", "*", "/", "%", "."))
      return false;
  }
  return true;
}


/* Points the variable into shared memory wherever it is named?  Its type has
   one star, so that what it points to is no pointer. */
static bool is_pointer(const tree *t, const variable *v, int depth) {
  size_t n = v->type.n;
  if (!v->home || v->reference || v->dims.n || v->is_auto || v->constructed ||
      v->changed || v->addressed || v->value.n < 2 ||
      !cgl_token_is(v->value.at, "="))
    return false;
  while (n && cgl_token_is_any(&v->type.at[n - 1], "const", "__restrict__",
                               "__restrict"))
    n--;
  return n > 1 && cgl_token_is(&v->type.at[n - 1], "*") &&
         !has_pointers(t, (row){v->type.at, n - 1}, NO_CHUNK, 0) &&
         cgl_shared_is_address(t, (row){v->value.at + 1, v->value.n - 1},
                               depth + 1);
}


bool cgl_shared_is_address(const tree *t, row r, int depth) {
  if (!r.n || depth == MAX_DEPTH)
    return false;
  const size_t from = cgl_token_is(r.at, "&");
  if (from == r.n || r.at[from].kind != CGL_TOKEN_NAME)
    return false;
  const variable *v = cgl_tree_find(t, &r.at[from]);
  return is_sum(r, skip_place(r, from)) &&
         (is_shared_name(t, &r.at[from]) || (v && is_pointer(t, v, depth)));
}
