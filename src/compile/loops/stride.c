/* Loops of a thread that the threads of a row can take together. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/loops/write_private.h"


/* ---- the thread's index ---- */

/* How many tokens at i are the thread's number in its block, as groups.c writes
   it, or threadIdx.x; or 0. */
static size_t own_number(row r, size_t i) {
  static const char *const rank[] = {
      "threadIdx", ".", "x",         "+",         "blockDim", ".", "x",
      "*",         "(", "threadIdx", ".",         "y",        "+", "blockDim",
      ".",         "y", "*",         "threadIdx", ".",        "z", ")"};
  const size_t n = sizeof rank / sizeof *rank;
  size_t k = 0;
  while (k < n && i + k < r.n && cgl_token_is(&r.at[i + k], rank[k]))
    k++;
  return k == n && i && cgl_token_is(&r.at[i - 1], "(") ? n : k < 3 ? 0 : 3;
}


/* May the token end what a sign behind it adds to?  What the writer puts in
   front of a row is one, too. */
static bool is_operand(const cgl_token *t) {
  const char last = t->text[t->length - 1];
  return !cgl_token_is(t, "return") &&
         (last == ')' || last == ']' || last == '_' ||
          (last >= '0' && last <= '9') || (last >= 'a' && last <= 'z') ||
          (last >= 'A' && last <= 'Z'));
}


size_t cgl_stride_lane(row r, size_t i, bool *warp) {
  size_t open = i;
  while (open < r.n && cgl_token_is(&r.at[open], "("))
    open++;
  const size_t own = own_number(r, open);
  size_t n = open - i, k = open + own + n;
  if (!own || k + 1 >= r.n || (own > 3 && !n))
    return 0;
  for (size_t j = open + own; j < k; j++)
    if (!cgl_token_is(&r.at[j], ")"))
      return 0;
  const cgl_token *op = &r.at[k], *by = &r.at[k + 1];
  bool product = cgl_token_is_any(op, "%", "/");
  *warp = cgl_token_is_any(op, "/", ">>");
  if (product ? !cgl_token_is_any(by, "32", "32u", "warpSize")
      : *warp ? !cgl_token_is_any(by, "5", "5u")
              : !cgl_token_is(op, "&") ||
                    !cgl_token_is_any(by, "31", "31u", "0x1f", "0x1fu"))
    return 0;
  /* what stands around it binds less, or later */
  static const char *const before[] = {
      "+", "-", "==", "!=", "<", ">", "<=", ">=", "&&", "||", ":", "+=", NULL};
  const bool sign = i && cgl_token_is_any(&r.at[i - 1], "+", "-");
  if (i && !cgl_token_is_any(&r.at[i - 1], "=", "(", ",", "[", "return", "?") &&
      !(product && cgl_token_is_of(&r.at[i - 1], before)))
    return 0;
  if (sign && !(i > 1 && is_operand(&r.at[i - 2])))
    return 0; /* of one number, which binds more */
  if (k + 2 < r.n && cgl_token_is(&r.at[k + 2], "["))
    return 0;
  if (k + 2 < r.n && !product &&
      !cgl_token_is_any(&r.at[k + 2], ")", ";", ",", "]"))
    return 0;
  return k + 2 - i;
}


/* ---- strided loops ---- */

/* `threadIdx.x`, or what is the lane of a warp whose threads are in a row. */
static size_t own_index(row r, size_t i, bool *lane) {
  const size_t open = i < r.n && cgl_token_is(&r.at[i], "("),
               n = own_number(r, i + open), k = i + n + 2 * open;
  if (!n || (open && (n == 3 || !cgl_token_is(&r.at[k - 1], ")"))))
    return 0;
  *lane = k + 1 < r.n &&
          ((cgl_token_is(&r.at[k], "%") &&
            cgl_token_is_any(&r.at[k + 1], "32", "32u", "warpSize")) ||
           (cgl_token_is(&r.at[k], "&") &&
            cgl_token_is_any(&r.at[k + 1], "31", "31u", "0x1f")));
  return *lane ? k - i + 2 : open ? 0 : 3;
}


/* Names the term the thread's place in its row? */
static bool has_x(row r) {
  for (size_t i = 0; i < r.n; i++)
    if (cgl_token_is(&r.at[i], "threadIdx") &&
        !(i + 2 < r.n && cgl_token_is_any(&r.at[i + 2], "y", "z")))
      return true;
  return false;
}


/* Is the row a sum with the thread's index in it once?  *at and *n are where.
   Everything else must be the same for all threads. */
static bool is_index_sum(row r, size_t *at, size_t *n, bool *lane,
                         const cgl_token *base) {
  r = cgl_row_unwrap(r);
  size_t found = 0;
  for (size_t i = 0; i < r.n;) {
    size_t end = i;
    while (end < r.n && !cgl_token_is_any(&r.at[end], "+", "-"))
      end = cgl_token_is_any(&r.at[end], "(", "[")
                ? cgl_tokens_close(r.at, r.n, end)
                : end + 1;
    row term = cgl_row_slice(r, i, end);
    for (size_t k = 0; k < term.n; k++)
      if (cgl_token_is_any(&term.at[k], "(", "["))
        k = cgl_tokens_close(term.at, term.n, k) - 1;
      else if (cgl_token_is_any(&term.at[k], "<<", ">>", "|", "^", "?", "<",
                                ">", "==", "!=", "<=", ">=", "&&", "||"))
        return false;
    for (size_t k = 0; k < term.n; k++)
      if (term.at[k].kind == CGL_TOKEN_NUMBER &&
          memchr(term.at[k].text, '.', term.at[k].length))
        return false;
    if (has_x(term)) {
      size_t k = own_index(term, 0, lane);
      if (k == term.n && term.n < r.n && cgl_token_is(&term.at[k - 2], "&"))
        return false; /* the sum binds more */
      if (found++ || (i && !cgl_token_is(&r.at[i - 1], "+")))
        return false;
      if (k && k == term.n) {
        *at = (size_t)(term.at - base);
        *n = k;
      } else if (!cgl_token_is(term.at, "(") ||
                 cgl_tokens_close(term.at, term.n, 0) != term.n ||
                 !is_index_sum(term, at, n, lane, base))
        return false;
    } else
      for (size_t k = 0; k < term.n; k++)
        if (cgl_token_is_any(&term.at[k], "&") && found)
          return false;
    i = end + 1;
  }
  return found == 1;
}


/* May the type hold other values than what the variable begins with? */
static bool is_narrow_type(const variable *v) {
  static const char *const narrow[] = {
      "bool",   "char",  "short",  "float",    "double",  "half", "uint8_t",
      "int8_t", "uchar", "ushort", "uint16_t", "int16_t", NULL};
  bool found = false;
  for (size_t i = 0; i < v->type.n; i++) {
    if (cgl_token_is(&v->type.at[i], "*"))
      return false;
    found |= cgl_token_is_of(&v->type.at[i], narrow);
  }
  return found;
}


/* With what is computed again written out. */
row cgl_stride_expand(writer *w, row r, int depth) {
  row made = {NULL, 0};
  cgl_tokens all = {0};
  for (size_t i = 0; i < r.n; i++) {
    const variable *v =
        cgl_tree_is_name(r, i) ? cgl_tree_find(w->t, &r.at[i]) : NULL;
    const bool known = v && v->warp.n && w->run && w->fast;
    if (!v || !v->again || depth > 8 || v->value.n < 2 || (known && !v->lane) ||
        is_narrow_type(v)) {
      cgl_tokens_add(&all, r.at[i]);
      continue;
    }
    if (known) {
      static const char *const lane[] = {"(", "threadIdx", ".", "x",
                                         "%", "32",        ")"};
      for (size_t k = 0; k < sizeof lane / sizeof *lane; k++) {
        cgl_token x = cgl_tree_token(w->t, &r.at[i], "%s", lane[k]);
        x.kind = k == 1 || k == 3 ? CGL_TOKEN_NAME
                 : k == 5         ? CGL_TOKEN_NUMBER
                                  : CGL_TOKEN_PUNCT;
        cgl_tokens_add(&all, x);
      }
      continue;
    }
    row value =
        cgl_stride_expand(w, cgl_row_slice(v->value, 1, v->value.n), depth + 1);
    cgl_token open = cgl_tree_token(w->t, &r.at[i], "("),
              close = cgl_tree_token(w->t, &r.at[i], ")");
    open.kind = close.kind = CGL_TOKEN_PUNCT;
    cgl_tokens_add(&all, open);
    for (size_t k = 0; k < value.n; k++)
      cgl_tokens_add(&all, value.at[k]);
    cgl_tokens_add(&all, close);
  }
  w->t->failed |= all.failed;
  if (all.count)
    made = cgl_tree_copy(w->t, all.at, all.count);
  cgl_tokens_free(&all);
  return made;
}


/* Replaces the n tokens at `at` by the number 0. */
static void put_zero(writer *w, row *r, size_t at, size_t n) {
  r->at[at] = cgl_tree_token(w->t, &r->at[at], "0u");
  r->at[at].kind = CGL_TOKEN_NUMBER;
  memmove(&r->at[at + 1], &r->at[at + n], (r->n - at - n) * sizeof *r->at);
  r->n -= n - 1;
}


/* Is the row made of what all threads have, without loads?  A template's number
   that is not written in digits is what a name stands for. */
static bool is_of_launch(row r) {
  for (size_t i = 0; i < r.n; i++)
    if (r.at[i].kind == CGL_TOKEN_NUMBER
            ? *r.at[i].text == '(' ||
                  memchr(r.at[i].text, '.', r.at[i].length) != NULL
            : !cgl_token_is_any(&r.at[i], "+", "-", "*", "(", ")", ".", ",",
                                "x", "y", "z", "blockIdx", "blockDim",
                                "gridDim", "__mul24", "__umul24"))
      return false;
  return true;
}


/* Made so, or of threadIdx.y and threadIdx.z as well, which stand once each: a
   sum of products of them. */
static bool is_of_rows(writer *w, row r) {
  row copy = cgl_tree_copy(w->t, r.at, r.n);
  bool y = false, z = false;
  for (size_t i = 0; !w->t->failed && i + 2 < copy.n; i++) {
    if (!cgl_token_is(&copy.at[i], "threadIdx"))
      continue;
    bool *const seen = cgl_token_is(&copy.at[i + 2], "y")   ? &y
                       : cgl_token_is(&copy.at[i + 2], "z") ? &z
                                                            : NULL;
    if (!seen || *seen)
      return false;
    *seen = true;
    put_zero(w, &copy, i, 3);
  }
  return !w->t->failed && is_of_launch(copy);
}


/* (sum with threadIdx.x) / 32, or the rest of that: where the sum is a multiple
   of 32 in all rows, the warp's number and the thread's lane. */
static void find_warp(writer *w, variable *v, row value) {
  size_t at = 0, n = 0;
  bool lane = false;
  while (value.n > 2 && cgl_token_is(value.at, "(") &&
         cgl_tokens_close(value.at, value.n, 0) == value.n)
    value = cgl_row_slice(value, 1, value.n - 1);
  if (value.n < 7 || !cgl_token_is(value.at, "(") ||
      cgl_tokens_close(value.at, value.n, 0) != value.n - 2)
    return;
  const cgl_token *op = &value.at[value.n - 2], *by = op + 1;
  row sum = cgl_row_slice(value, 1, value.n - 3);
  bool product = cgl_token_is_any(op, "/", "%");
  if (product ? !cgl_token_is_any(by, "32", "32u", "warpSize")
      : cgl_token_is(op, ">>")
          ? !cgl_token_is_any(by, "5", "5u")
          : !cgl_token_is(op, "&") ||
                !cgl_token_is_any(by, "31", "31u", "0x1f", "0x1fu"))
    return;
  if (!is_index_sum(sum, &at, &n, &lane, sum.at) || lane || n == sum.n)
    return;
  put_zero(w, &sum, at, n);
  if (!is_of_rows(w, sum) || cgl_row_has(sum, "-"))
    return;
  v->warp = sum;
  v->lane = cgl_token_is_any(op, "%", "&");
}


static bool has_whole_type(const variable *v) {
  for (size_t i = 0; i < v->type.n; i++)
    if (!cgl_token_is_any(&v->type.at[i], "int", "unsigned", "const",
                          "uint32_t", "int32_t", "uint"))
      return false;
  return !v->is_auto;
}


/* The sum with `bx` of `int bx = blockIdx.x;` and the like written out: in 64
   bits it is the same number, or does not fit in an int. */
static row expand_launch(writer *w, row r) {
  row made = {NULL, 0};
  cgl_tokens all = {0};
  for (size_t i = 0; i < r.n; i++) {
    const variable *v =
        cgl_tree_is_name(r, i) ? cgl_tree_find(w->t, &r.at[i]) : NULL;
    if (!v || !v->uniform || v->assigned || v->addressed || v->parameter ||
        v->dims.n || v->value.n < 2 || !cgl_token_is(v->value.at, "=") ||
        !has_whole_type(v) ||
        !is_of_launch(cgl_row_slice(v->value, 1, v->value.n))) {
      cgl_tokens_add(&all, r.at[i]);
      continue;
    }
    cgl_token open = cgl_tree_token(w->t, &r.at[i], "("),
              close = cgl_tree_token(w->t, &r.at[i], ")");
    open.kind = close.kind = CGL_TOKEN_PUNCT;
    cgl_tokens_add(&all, open);
    for (size_t k = 1; k < v->value.n; k++)
      cgl_tokens_add(&all, v->value.at[k]);
    cgl_tokens_add(&all, close);
  }
  w->t->failed |= all.failed;
  if (all.count && !all.failed)
    made = cgl_tree_copy(w->t, all.at, all.count);
  cgl_tokens_free(&all);
  return made;
}


void cgl_stride_find_indices(writer *w) {
  for (variable *v = w->t->variables; v; v = v->next) {
    size_t at = 0, n = 0;
    bool lane = false;
    if (!v->again || v->value.n < 2 || !has_whole_type(v))
      continue;
    row sum = expand_launch(
        w, cgl_few_expand(w, cgl_row_slice(v->value, 1, v->value.n)));
    if (!sum.at)
      continue;
    find_warp(w, v, cgl_tree_copy(w->t, sum.at, sum.n));
    if (!is_index_sum(sum, &at, &n, &lane, sum.at) || lane)
      continue;
    put_zero(w, &sum, at, n);
    if (is_of_launch(sum))
      v->index = sum;
  }
  for (variable *v = w->t->variables; v; v = v->next) {
    size_t n = 0;
    bool fits = v->again && v->value.n > 1 && !v->index.n && !v->warp.n;
    for (size_t i = 0; i < v->type.n; i++)
      fits &= cgl_token_is_any(&v->type.at[i], "int", "const");
    if (fits && v->type.n && !v->is_auto)
      cgl_put_find_index(w, cgl_row_slice(v->value, 1, v->value.n), &n);
    v->beside = n > 0;
  }
}


/* Has the row a number of more than 20 bits, or a sign? */
static bool has_large(row r) {
  for (size_t i = 0; i < r.n; i++)
    if (cgl_token_is(&r.at[i], "-") || (r.at[i].kind == CGL_TOKEN_NUMBER &&
                                        strtoul(r.at[i].text, NULL, 0) >> 20))
      return true;
  return false;
}


/* Does a step of the launch's sizes, cast or not, lead forward? */
static bool is_forward(row step) {
  for (size_t i = 0; i < step.n; i++)
    if (!cgl_token_is_type_word(&step.at[i]) &&
        !is_of_launch(cgl_row_slice(step, i, i + 1)))
      return false;
  return !has_large(step);
}


static bool is_unsigned(row type) {
  for (size_t i = 0; i < type.n; i++)
    if (*type.at[i].text == 'u' || cgl_token_is(&type.at[i], "size_t"))
      return true;
  return false;
}


/* Names that loops around a strided one declare, which a row has once. */
typedef struct outer {
  cgl_token names[MAX_OUTER];
  size_t count;
} outer;


/* Has the expression one value for all threads of a row?  *rows: not the same
   for all rows.  `fixed`: it loads nothing. */
static bool is_of_row(writer *w, row r, const outer *o, bool fixed,
                      bool *rows) {
  row copy = cgl_tree_copy(w->t, r.at ? r.at : &w->t->kernel->name, r.n);
  if (w->t->failed)
    return false;
  for (size_t i = 0; i < copy.n; i++) {
    bool own = false;
    for (size_t k = 0; k < o->count; k++)
      own |= cgl_token_same(&copy.at[i], &o->names[k]) &&
             cgl_tree_is_name(copy, i);
    bool row_too = cgl_token_is(&copy.at[i], "threadIdx") && i + 2 < copy.n &&
                   cgl_token_is_any(&copy.at[i + 2], "y", "z");
    if (own || row_too)
      put_zero(w, &copy, i, own ? 1 : 3);
    *rows |= row_too;
  }
  return cgl_values_is_uniform(w->t, copy, fixed);
}


/* The row with the variables that all threads have and that a region does not
   change as numbers; false when something of it loads. */
static bool put_numbers(writer *w, row *r) {
  for (size_t i = 0; i < r->n; i++) {
    const cgl_token *x = &r->at[i], *last = i ? x - 1 : NULL;
    const variable *v = cgl_tree_is_name(*r, i) ? cgl_tree_find(w->t, x) : NULL;
    if (x->kind == CGL_TOKEN_PUNCT &&
        (!cgl_token_is_any(x, "+", "-", "*", "(", ")", ".") ||
         (cgl_token_is(x, "*") && (!last || (last->kind == CGL_TOKEN_PUNCT &&
                                             !cgl_token_is(last, ")"))))))
      return false;
    if (v && v->uniform && !v->addressed && !v->reference && !v->dims.n &&
        !(i + 1 < r->n && cgl_token_is(&r->at[i + 1], ".")))
      put_zero(w, r, i, 1);
  }
  return true;
}


bool cgl_stride_is_place(writer *w, row r, bool *moves, bool *blocks) {
  static const outer none = {.count = 0};
  size_t at = 0, n = 0;
  bool lane = false, rows = false;
  row all = cgl_stride_expand(w, r, 0);
  if (!all.at || w->t->failed)
    return false;
  *blocks = false;
  *moves = is_index_sum(all, &at, &n, &lane, all.at);
  if (*moves)
    put_zero(w, &all, at, n);
  for (size_t i = 0; i < all.n; i++)
    *blocks |=
        cgl_tree_is_name(all, i) && (cgl_token_is(&all.at[i], "blockIdx") ||
                                     cgl_tree_find(w->t, &all.at[i]));
  return put_numbers(w, &all) && (!lane || w->run) &&
         is_of_row(w, all, &none, true, &rows);
}


/* The parts of `for (T c = start; c < bound; c += step) body`, with what is
   computed again written out; *start is the `base`. */
static bool read_header(writer *w, row r, stride *out) {
  if (r.n < 12 || !cgl_token_is(r.at, "for"))
    return false;
  size_t close = cgl_tokens_close(r.at, r.n, 1), first = 2, second;
  while (first < close && !cgl_token_is(&r.at[first], ";"))
    first++;
  for (second = first + 1; second < close && !cgl_token_is(&r.at[second], ";");)
    second++;
  size_t equal = 2;
  while (equal < first && !cgl_token_is(&r.at[equal], "="))
    equal++;
  if (second + 3 >= close || equal < 4 || equal + 1 >= first)
    return false;
  out->type = cgl_row_slice(r, 2, equal - 1);
  out->name = cgl_row_slice(r, equal - 1, equal);
  out->base = cgl_row_slice(r, equal + 1, first);
  out->bound = cgl_row_slice(r, first + 3, second);
  out->step = cgl_row_slice(r, second + 3, close - 1);
  out->body = cgl_row_slice(r, close, r.n);
  const cgl_token *c = out->name.at;
  for (size_t i = 0; i < out->type.n; i++)
    if (!cgl_token_is_any(&out->type.at[i], "int", "unsigned", "size_t", "long",
                          "uint32_t", "int32_t", "uint", "int64_t", "uint64_t",
                          "ptrdiff_t"))
      return false;
  for (size_t i = 0; i < out->bound.n; i++)
    if (cgl_token_is_any(&out->bound.at[i], "&&", "||", "?", ",", "<", ">", "=",
                         "==", "!=", "&", "|", "^"))
      return false;
  for (size_t i = 1; i < out->body.n; i++)
    if (cgl_token_is(&out->body.at[i - 1], "&") &&
        cgl_token_same(&out->body.at[i], c))
      return false;
  return cgl_token_same(&r.at[first + 1], c) &&
         cgl_token_is(&r.at[first + 2], "<") &&
         cgl_token_same(&r.at[second + 1], c) &&
         cgl_token_is(&r.at[second + 2], "+=") &&
         !cgl_values_is_assigned(w->t, out->body, &(variable){.name = *c}) &&
         !cgl_values_is_addressed(w->t, out->body, c) &&
         !cgl_tree_returns(out->body) && !cgl_row_has(out->body, "break") &&
         !cgl_row_has(out->body, "continue") && !cgl_tree_find(w->t, c);
}


/* Adds the head of a loop, or a declaration, that a row has once. */
static bool add_outer(writer *w, stride *out, outer *o, row text,
                      const cgl_token *name) {
  if (out->nouter == MAX_OUTER || cgl_tree_find(w->t, name))
    return false;
  o->names[o->count++] = *name;
  out->outer[out->nouter++] = cgl_stride_expand(w, text, 0);
  return true;
}


/* The declarations in front of the loop that ends the block; leaves the loop in
 *r.  Their values are the row's. */
static bool read_declarations(writer *w, row *r, stride *out, outer *o) {
  while (r->n && !cgl_token_is(r->at, "for")) {
    size_t end = 0, equal = 0;
    for (; end < r->n && !cgl_token_is(&r->at[end], ";"); end++) {
      if (!equal && cgl_token_is(&r->at[end], "="))
        equal = end;
      if (cgl_token_is_any(&r->at[end], "(", "["))
        end = cgl_tokens_close(r->at, r->n, end) - 1;
      else if (cgl_token_is_any(&r->at[end], ",", "{", "&"))
        return false;
    }
    if (equal < 2 || end >= r->n)
      return false;
    for (size_t i = 0; i + 1 < equal; i++)
      if (!cgl_token_is_type_word(&r->at[i]) && !cgl_token_is(&r->at[i], "*"))
        return false;
    row value = cgl_stride_expand(w, cgl_row_slice(*r, equal + 1, end), 0);
    cgl_token name = r->at[equal - 1];
    row rest = cgl_row_slice(*r, end + 1, r->n);
    if (!is_of_row(w, value, o, true, &out->rows) ||
        cgl_values_is_assigned(w->t, rest, &(variable){.name = name}) ||
        !add_outer(w, out, o, cgl_row_slice(*r, 0, end + 1), &name))
      return false;
    *r = rest;
  }
  return r->n > 0;
}


/* for (T c = sum with the thread's index; c < uniform; c += uniform): the
   threads of a row can take one step of it together.  So they can when other
   loops stand around it that they take together. */
bool cgl_stride_find(writer *w, const statement *s, stride *out) {
  outer o = {.count = 0};
  row r = s->all;
  *out = (stride){.nouter = 0};
  for (;;) {
    if (!read_header(w, r, out))
      return false;
    row bound = cgl_stride_expand(w, out->bound, 0),
        step = cgl_stride_expand(w, out->step, 0),
        start = cgl_stride_expand(w, out->base, 0);
    bool rows = false;
    if (!is_of_row(w, bound, &o, false, &rows) || has_large(step) ||
        !is_of_row(w, step, &o, false, &rows) || (rows && !out->nouter))
      return false;
    out->rows |= rows;
    size_t at = 0, n = 0;
    if (start.at && is_index_sum(start, &at, &n, &out->lane, start.at)) {
      put_zero(w, &start, at, n);
      out->base = start;
      out->bound = bound;
      out->step = step;
      const bool wraps = is_unsigned(out->type), steps = is_forward(step);
      out->narrow = is_of_launch(start) && !has_large(start) &&
                    !cgl_row_has(start, ",") && (steps || !wraps);
      return is_of_row(w, start, &o, false, &out->rows) &&
             !(out->rows && has_large(start) && wraps) &&
             (steps || !wraps || (!out->rows && !out->nouter)) &&
             (w->run ? w->fast : !out->lane);
    }
    size_t head = (size_t)(out->body.at - r.at);
    if (!is_of_row(w, start, &o, true, &out->rows) ||
        !add_outer(w, out, &o, cgl_row_slice(r, 0, head), out->name.at))
      return false;
    r = out->body;
    if (cgl_token_is(r.at, "{"))
      r = cgl_row_slice(r, 1, r.n - 1);
    if (!read_declarations(w, &r, out, &o) || cgl_tree_end(r, 0) != r.n)
      return false;
  }
}


/* T cgl_base = base: what the first thread of a row begins with. */
static void put_base(writer *w, const stride *walk) {
  cgl_put_tokens(w, walk->type, false);
  cgl_text_put(w->out, " cgl_base =");
  cgl_put_tokens(w, walk->base, false);
  if (w->run && !walk->lane)
    cgl_text_put(w->out, " + cgl_wx");
}


/* The loop thread by thread, where what the threads of a row begin with, or
   go on with, wraps around within the row; what follows is for other rows. */
static void put_wrapping(writer *w, statement *s, const stride *walk) {
  cgl_text_put(w->out, "{ bool cgl_wrapped; {");
  put_base(w, walk);
  cgl_text_put(w->out, "; cgl_wrapped = cgl_goes_apart(cgl_base, ");
  cgl_put_tokens(w, walk->base, false);
  if (w->run && !walk->lane)
    cgl_text_put(w->out, " + cgl_wx");
  cgl_text_put(w->out, ",");
  cgl_put_tokens(w, walk->bound, false);
  cgl_text_put(w->out, ",");
  cgl_put_tokens(w, walk->step, false);
  cgl_text_put(w->out, w->run ? ", 31u); }" : ", cgl_bx - 1); }");
  cgl_text_put(w->out, "if (cgl_wrapped) {");
  cgl_region_put(w, &s, 1, NULL);
  cgl_text_put(w->out, "} else {");
}


void cgl_stride_put(writer *w, statement *s, const stride *walk) {
  size_t heads = 0;
  cgl_region_flush(w);
  w->t->strides++;
  if (walk->rows && w->run)
    cgl_text_put(w->out, "{ const uint3 threadIdx = {cgl_wx, cgl_wy, cgl_wz};");
  else if (walk->rows)
    cgl_text_put(w->out,
                 "for (unsigned cgl_z = 0; cgl_z < cgl_bz; cgl_z++) for "
                 "(unsigned cgl_y = 0; cgl_y < cgl_by; cgl_y++) { const uint3 "
                 "threadIdx = {0, cgl_y, cgl_z};");
  for (size_t i = 0; i < walk->nouter; i++) {
    cgl_put_tokens(w, walk->outer[i], false);
    if (cgl_token_is(walk->outer[i].at, "for"))
      heads++, cgl_text_put(w->out, " {");
  }
  const bool asked = !walk->nouter && !walk->rows && !walk->narrow;
  if (asked)
    put_wrapping(w, s, walk);
  cgl_text_put(w->out, "for (");
  put_base(w, walk);
  cgl_text_put(w->out, "; cgl_base <");
  cgl_put_tokens(w, walk->bound, false);
  cgl_text_put(w->out, "; cgl_base +=");
  cgl_put_tokens(w, walk->step, false);
  cgl_text_put(w->out, ") { const unsigned cgl_k = cgl_left(cgl_base,");
  cgl_put_tokens(w, walk->bound, false);
  cgl_text_put(w->out, w->run ? ", 32u);" : ", cgl_bx);");
  cgl_region_put(w, &s, 1, walk);
  cgl_text_put(w->out, asked ? "} } }" : "}");
  for (; heads; heads--)
    cgl_text_put(w->out, "}");
  cgl_text_put(w->out, walk->rows ? "}\n" : "\n");
}
