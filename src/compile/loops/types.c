/* Types that a kernel declares for itself, and declarations that have a type's
   body or an array's declarator in them, as two. */
#include <string.h>

#include "compile/loops/loops_private.h"


static bool is_type_key(const cgl_token *x) {
  return cgl_token_is_any(x, "struct", "class", "union", "enum");
}


/* The body of a type in a declaration. */
typedef struct type_body {
  size_t key, name, open, close; /* struct, its name's place, and the braces */
} type_body;

static bool find_type_body(row r, size_t i, size_t end, type_body *b) {
  while (i < end && r.at[i].kind == CGL_TOKEN_NAME && !is_type_key(&r.at[i]))
    i = cgl_token_takes_arguments(&r.at[i]) ? cgl_tokens_close(r.at, end, i + 1)
                                            : i + 1;
  b->key = i++;
  if (i >= end || !is_type_key(&r.at[b->key]))
    return false;
  while (i < end &&
         (cgl_token_takes_arguments(&r.at[i]) || is_type_key(&r.at[i])))
    i = cgl_token_takes_arguments(&r.at[i]) ? cgl_tokens_close(r.at, end, i + 1)
                                            : i + 1;
  b->name = i;
  i += i < end && r.at[i].kind == CGL_TOKEN_NAME;
  i += i < end && cgl_token_is(&r.at[i], "final");
  if (i >= end || !cgl_token_is_any(&r.at[i], "{", ":"))
    return false;
  while (i < end && !cgl_token_is_any(&r.at[i], "{", ";", "=", "(", "["))
    i++;
  b->open = i;
  if (i >= end || !cgl_token_is(&r.at[i], "{"))
    return false;
  b->close = cgl_tokens_close(r.at, end, i);
  return b->close < end;
}


bool cgl_tree_declares_type(row all) {
  type_body b;
  return cgl_token_is_any(all.at, "using", "typedef") ||
         (find_type_body(all, 0, all.n, &b) && b.key == 0 &&
          b.close + 1 == all.n);
}


/* The name that `using T = int;` or `typedef int T;` gives to what is named
   there alone, or NULL; *type becomes that. */
static const cgl_token *find_named_type(row all, row *type) {
  const bool first = cgl_token_is(all.at, "using");
  if (all.n < 4 || (first && !cgl_token_is(&all.at[2], "=")) ||
      !cgl_token_is(&all.at[all.n - 1], ";"))
    return NULL;
  *type = cgl_row_slice(all, first ? 3 : 1, all.n - (first ? 1 : 2));
  for (size_t i = 0; i < type->n; i++)
    if (type->at[i].kind != CGL_TOKEN_NAME || is_type_key(&type->at[i]) ||
        cgl_token_takes_arguments(&type->at[i]))
      return NULL;
  return type->n ? &all.at[first ? 1 : all.n - 2] : NULL;
}


void cgl_tree_declare_type(tree *t, row all) {
  for (size_t i = 0; i < all.n; i++)
    if (cgl_token_is_any(&all.at[i], "threadIdx", "warpSize"))
      cgl_tree_refuse(t, &all.at[i],
                      "a class of the kernel's own that asks for its thread");
  row type;
  const cgl_token *name = find_named_type(all, &type);
  variable *v = cgl_tree_declare(t, all.at);
  v->name = cgl_tree_token(t, all.at, "cgl_type_%d", ++t->ids);
  v->alias = v->constructed = true;
  v->value = all;
  cgl_alias *alias = name ? cgl_arena_alloc(t->arena, sizeof *alias) : NULL;
  t->failed |= name && !alias;
  if (alias) {
    *alias = (cgl_alias){
        .name = *name, .at = type.at, .count = type.n, .outer = t->aliases};
    t->aliases = alias;
  }
}


/* The names of an enum's numbers are known to all threads. */
static void declare_numbers(tree *t, row r, size_t i, size_t end) {
  const variable like = {.alias = true, .constructed = true};
  type_body b;
  if (!find_type_body(r, i, end, &b) || !cgl_token_is(&r.at[b.key], "enum") ||
      is_type_key(&r.at[b.key + 1]))
    return;
  for (size_t k = b.open + 1; k + 1 < b.close && !t->failed;) {
    if (r.at[k].kind == CGL_TOKEN_NAME)
      cgl_tree_declare_at(t, r, k, &like);
    while (k < b.close && !cgl_token_is(&r.at[k], ","))
      k = cgl_tokens_past(r.at, b.close, k);
    k++;
  }
}


/* Of a declaration from i to end whose type's body is in it (__shared__ struct
   { int n; } s;), makes one of the type and, in the end of the same place, one
   of the variables; where that begins, else i. */
static size_t split_type(tree *t, row r, size_t i, size_t end) {
  type_body b;
  if (!find_type_body(r, i, end, &b) || b.close + 1 == end)
    return i;
  const cgl_token stop = r.at[end - 1];
  const size_t named = r.at[b.name].kind == CGL_TOKEN_NAME;
  const cgl_token name =
      named ? r.at[b.name]
            : cgl_tree_token(t, &r.at[b.key], "cgl_type_%d", ++t->ids);
  const size_t before = b.name - b.key, rest = b.close - b.name - named;
  row type = cgl_tree_copy(t, &r.at[b.key], before + rest + 2);
  if (!type.n)
    return i;
  type.at[before] = name;
  memcpy(&type.at[before + 1], &r.at[b.name + named], rest * sizeof name);
  type.at[before + 1 + rest] = stop;
  cgl_tree_declare_type(t, type);
  const size_t begin = b.close - 1 - (b.key - i);
  memmove(&r.at[begin], &r.at[i], (b.key - i) * sizeof name);
  r.at[b.close - 1] = name;
  for (size_t k = i; k < begin; k++)
    r.at[k] = stop;
  return begin;
}


/* T (*p)[18] = a; or T (&r)[18] = a; from i to end becomes a type for T[18]
   and, in the end of the same place, the declaration with it; where that
   begins, else i. */
static size_t split_declarator(tree *t, row r, size_t i, size_t end) {
  variable v = {.region = 0};
  row type = cgl_tree_copy(t, &r.at[i], end - i);
  if (t->failed)
    return i;
  size_t n, at = cgl_tree_specifiers((row){r.at, end}, i, &v, type, &n);
  if (at == i || v.is_auto || v.shared || at + 5 >= end ||
      !cgl_token_is(&r.at[at], "(") ||
      !cgl_token_is_any(&r.at[at + 1], "*", "&") ||
      r.at[at + 2].kind != CGL_TOKEN_NAME ||
      !cgl_token_is(&r.at[at + 3], ")") || !cgl_token_is(&r.at[at + 4], "["))
    return i;
  size_t equal = at + 4;
  while (equal < end && cgl_token_is(&r.at[equal], "["))
    equal = cgl_tokens_close(r.at, end, equal);
  size_t comma = equal;
  while (comma < end && !cgl_token_is(&r.at[comma], ","))
    comma = cgl_tokens_past(r.at, end, comma);
  if (equal >= end || !cgl_token_is(&r.at[equal], "=") || comma < end)
    return i;
  const cgl_token stop = r.at[end - 1], sign = r.at[at + 1],
                  name = r.at[at + 2];
  const cgl_token own = cgl_tree_token(t, &r.at[i], "cgl_type_%d", ++t->ids);
  const size_t dims = equal - at - 4;
  row made = cgl_tree_copy(t, &r.at[i], end - i);
  if (t->failed)
    return i;
  made.at[0] = cgl_tree_token(t, &r.at[i], "typedef");
  memcpy(&made.at[1], type.at, n * sizeof stop);
  made.at[n + 1] = own;
  memcpy(&made.at[n + 2], &r.at[at + 4], dims * sizeof stop);
  made.at[n + 2 + dims] = stop;
  made.n = n + 3 + dims;
  cgl_tree_declare_type(t, made);
  r.at[equal - 3] = own;
  r.at[equal - 2] = sign;
  r.at[equal - 1] = name;
  for (size_t k = i; k < equal - 3; k++)
    r.at[k] = stop;
  return equal - 3;
}


size_t cgl_tree_split_types(tree *t, row r, size_t i, size_t end) {
  declare_numbers(t, r, i, end);
  return split_declarator(t, r, split_type(t, r, i, end), end);
}
