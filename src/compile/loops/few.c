/* Regions that are of a few of a row's threads: the loop over the row goes to
   those alone.
     if (x < bound) ...             the first ones; the guard is gone
     if (x == which) ...            one
     if (x % by == rest) ...        every so many; and so is that one
     i = a * x + b; if (i < n) ...  the first ones
     if (n > 1) ...                 all or none; the condition is gone
   where x is threadIdx.x.  What stands there without a condition is the same
   for all threads.  Where the condition stays, a loop over too many threads is
   right, too. */
#include "compile/loops/write_private.h"


static bool is_whole_type(const variable *v) {
  if (v->is_auto || v->reference || v->dims.n)
    return false;
  for (size_t i = 0; i < v->type.n; i++)
    if (!cgl_token_is_any(&v->type.at[i], "int", "unsigned", "const",
                          "uint32_t", "int32_t", "uint", "long", "size_t"))
      return false;
  return true;
}


/* Are the variables in it that are computed again whole numbers? */
static bool has_whole_types(writer *w, row r, int depth) {
  for (size_t i = 0; i < r.n; i++) {
    const variable *v =
        cgl_tree_is_name(r, i) ? cgl_tree_find(w->t, &r.at[i]) : NULL;
    const bool own = v && v->is_auto && !v->reference && !v->dims.n;
    if (v && v->again &&
        (!(own || is_whole_type(v)) || depth > 8 ||
         !has_whole_types(w, v->value, depth + 1)))
      return false;
  }
  return true;
}


row cgl_few_expand(writer *w, row cond) {
  return has_whole_types(w, cond, 0) ? cgl_stride_expand(w, cond, 0) : cond;
}


/* threadIdx.x, or a whole number that is it. */
static bool is_x(writer *w, row r) {
  r = cgl_row_unwrap(r);
  const variable *v = r.n == 1 ? cgl_tree_find(w->t, r.at) : NULL;
  if (!v)
    return r.n == 3 && cgl_token_is_axis(r.at, r.n, 0, "threadIdx");
  return v->again && is_whole_type(v) && v->value.n > 1 &&
         is_x(w, cgl_row_slice(v->value, 1, v->value.n));
}


/* Is it the same for all threads, and may be asked for though a condition in
   front of it does not hold? */
static bool is_number(writer *w, row r) {
  bool moves = false, blocks = false;
  return cgl_stride_is_place(w, r, &moves, &blocks) && !moves &&
         cgl_values_is_uniform(w->t, r, false);
}


row cgl_few_next(row cond, size_t *i) {
  const row rest = cgl_row_slice(cond, *i, cond.n);
  const size_t n = cgl_row_find(rest, "&&", "&&");
  *i += n + 1;
  return cgl_row_unwrap(cgl_row_slice(rest, 0, n));
}


bool cgl_few_is_pure(writer *w, row r) {
  for (size_t i = 0; i < r.n; i++) {
    const cgl_token *x = &r.at[i];
    const bool name = i && x[-1].kind == CGL_TOKEN_NAME;
    if ((i && cgl_token_is_assignment(x)) || cgl_tree_is_step(x))
      return false;
    /* a call, of which only a function's by its name may be known */
    if (cgl_token_is(x, "(") && i &&
        (name || cgl_token_is_any(x - 1, ">", ")", "]")) &&
        !(name && cgl_tree_is_name(r, i - 1) &&
          (cgl_values_is_pure_call(w->t, x - 1) ||
           cgl_calls_is_uniform(w->t, x - 1))))
      return false;
  }
  return true;
}


row cgl_few_condition(writer *w, const statement *s) {
  static const row none;
  row r = s->all;
  if (s->kind != STATEMENT_PLAIN || r.n < 7 || !cgl_token_is(r.at, "if") ||
      !cgl_token_is(&r.at[1], "(") || w->mask || w->t->strips ||
      (w->run && !w->fast) ||
      cgl_tree_end(r, cgl_tokens_close(r.at, r.n, 1)) < r.n)
    return none;
  row cond = cgl_row_slice(r, 2, cgl_tokens_close(r.at, r.n, 1) - 1);
  for (size_t i = 0; i < cond.n; i++)
    if (cgl_token_is_any(&cond.at[i], "||", "?"))
      return none;
  /* What all threads do before another term is asked must be done by all. */
  for (size_t i = 0; i < cond.n;) {
    const row term = cgl_few_next(cond, &i);
    if (i < cond.n && !cgl_few_is_pure(w, term))
      return none;
  }
  return cond;
}


/* ---- below a bound ---- */

/* A value of x's type. */
static void put_x(writer *w, row x) {
  x = cgl_row_unwrap(x);
  const variable *v = x.n == 1 ? cgl_tree_find(w->t, x.at) : NULL;
  if (v) {
    cgl_put_name(w, "cgl_t_", v);
    cgl_text_put(w->out, "(),");
  } else
    cgl_text_put(w->out, "0u,");
}


static bool put_below(writer *w, statement *const *list, size_t n,
                      few_threads *f) {
  static const char *const others[] = {
      "&&", ",", "<", ">", "==", "!=", "&", "|", "^", "<=", ">=", NULL};
  const row cond = n == 1 ? cgl_few_condition(w, list[0]) : (row){NULL, 0};
  const size_t op = cgl_row_find(cond, "<", "<");
  if (w->run || op + 1 >= cond.n)
    return false;
  const row x = cgl_row_slice(cond, 0, op),
            bound = cgl_row_slice(cond, op + 1, cond.n);
  if (!is_x(w, x) || !cgl_values_is_uniform(w->t, bound, false))
    return false;
  for (size_t i = 0; i < bound.n; i++)
    if (cgl_token_is_of(&bound.at[i], others))
      return false;
  cgl_text_put(w->out, "{ const unsigned cgl_k = cgl_limit(");
  put_x(w, x);
  cgl_put_tokens(w, bound, false);
  cgl_text_put(w->out, ", cgl_bx);");
  f->guarded = cgl_row_slice(list[0]->all, cond.n + 3, list[0]->all.n);
  return true;
}


/* ---- one ---- */

/* The sum of numbers that all threads have in front of `&&` or the row's end,
   from i on; 0 tokens when it is none. */
static row find_sum(writer *w, row r, size_t i) {
  size_t end = i;
  for (; end < r.n && !cgl_token_is(&r.at[end], "&&"); end++)
    if (r.at[end].kind != CGL_TOKEN_NAME &&
        r.at[end].kind != CGL_TOKEN_NUMBER &&
        !cgl_token_is_any(&r.at[end], "+", "-", "."))
      return (row){NULL, 0};
  row sum = cgl_row_slice(r, i, end);
  return cgl_values_is_uniform(w->t, sum, false) ? sum : (row){NULL, 0};
}


/* if (lane == 0) or if (threadIdx.x == blockDim.x - 1): only one thread of a
   row or of a warp does something.  Returns which, or 0 tokens; `of_row`: in a
   run of warps, the row's. */
static row find_one(writer *w, row cond, bool *of_row) {
  static const row none;
  for (size_t i = 0; i < cond.n;) {
    const row term = cgl_few_next(cond, &i);
    const size_t op = cgl_row_find(term, "==", "==");
    row which = none;
    if (cgl_row_find(term, "&&", "&&") < term.n)
      which = find_one(w, term, of_row);
    else if (op && op + 1 < term.n) {
      const row x = cgl_row_unwrap(cgl_row_slice(term, 0, op));
      bool warp = false;
      const bool lane = w->run && cgl_stride_lane(x, 0, &warp) == x.n && !warp;
      if (!lane && !(x.n == 3 && cgl_token_is_axis(x.at, 3, 0, "threadIdx")))
        continue;
      *of_row = !lane && w->run;
      which = find_sum(w, term, op + 1);
      if (op + 1 + which.n < term.n)
        which = none;
    }
    if (which.n)
      return which;
  }
  return none;
}


static row only_one(writer *w, const statement *s, bool *of_row) {
  return find_one(w, cgl_few_expand(w, cgl_few_condition(w, s)), of_row);
}


row cgl_few_one(writer *w, const statement *s) {
  bool of_row;
  return only_one(w, s, &of_row);
}


static bool put_one(writer *w, statement *const *list, size_t n,
                    few_threads *f) {
  bool of_row = false;
  const row which = n == 1 ? only_one(w, list[0], &of_row) : (row){NULL, 0};
  if (!which.n)
    return false;
  cgl_text_put(w->out, "{ const unsigned cgl_only = cgl_one(");
  cgl_put_tokens(w, which, false);
  cgl_text_print(w->out, ", %s, %s), cgl_k = cgl_only + 1;",
                 of_row ? "cgl_wx" : "0", w->run ? "32" : "cgl_bx");
  f->from = "cgl_only";
  return true;
}


/* ---- every so many ---- */

/* `x % by` or `(x & bits)`; a number is better asked of a vector of threads. */
static bool is_rest(writer *w, row r, row *x, row *by, bool *bits) {
  const row inside = cgl_row_unwrap(r);
  const size_t op = cgl_row_find(inside, "%", "&");
  if (op + 1 >= inside.n)
    return false;
  *x = cgl_row_slice(inside, 0, op);
  *by = cgl_row_slice(inside, op + 1, inside.n);
  *bits = cgl_token_is(&inside.at[op], "&");
  bool names = false;
  for (size_t i = 0; i < by->n; i++)
    names |= cgl_tree_is_name(*by, i);
  return (!*bits || inside.n < r.n) && is_x(w, *x) && names &&
         (by->n == 1 || by->n > cgl_row_unwrap(*by).n ||
          (by->n == 3 && cgl_token_is(&by->at[1], "."))) &&
         is_number(w, *by);
}


static bool put_every(writer *w, statement *const *list, size_t n,
                      few_threads *f) {
  const row cond = n == 1 ? cgl_few_condition(w, list[0]) : (row){NULL, 0};
  for (size_t i = 0; i < cond.n && !w->run;) {
    const row term = cgl_few_next(cond, &i);
    const size_t op = cgl_row_find(term, "==", "==");
    row x, by, rest = {NULL, 0};
    bool bits;
    if (term.n && cgl_token_is(term.at, "!")) {
      if (!is_rest(w, cgl_row_slice(term, 1, term.n), &x, &by, &bits) ||
          !cgl_token_is(&term.at[1], "("))
        continue;
    } else {
      if (op + 1 >= term.n ||
          !is_rest(w, cgl_row_slice(term, 0, op), &x, &by, &bits))
        continue;
      rest = find_sum(w, term, op + 1);
      if (!rest.n)
        continue;
    }
    cgl_text_print(w->out,
                   "{ unsigned cgl_each; const unsigned cgl_k = cgl_bx, "
                   "cgl_only = cgl_every<%d>(&cgl_each, ",
                   bits);
    put_x(w, x);
    cgl_put_tokens(w, by, false);
    cgl_text_put(w->out, ",");
    cgl_put_tokens(w, rest, false);
    cgl_text_put(w->out, rest.n ? ");" : "0);");
    if (term.n == cgl_row_unwrap(cond).n && !bits)
      f->guarded = cgl_row_slice(list[0]->all, cond.n + 3, list[0]->all.n);
    f->from = "cgl_only";
    f->step = "cgl_each";
    return true;
  }
  return false;
}


/* ---- below a bound, a number at a time ---- */

/* A whole number that is a times x and b: with what it is made of. */
typedef struct line {
  writer *w;
  statement *const *list; /* the region's declarations, and the last */
  size_t n;
  bool *needed; /* of the list */
  size_t xs;    /* how often x is in it */
  bool scaled;  /* and multiplied */
  int depth;
} line;

static bool read_line(line *l, row r);

/* A number, a name, or something in brackets, at *i. */
static bool read_operand(line *l, row r, size_t *i) {
  const size_t from = *i;
  if (from >= r.n)
    return false;
  if (cgl_token_is(&r.at[from], "(")) {
    *i = cgl_tokens_close(r.at, r.n, from);
    return read_line(l, cgl_row_slice(r, from + 1, *i - 1));
  }
  if (cgl_token_is_axis(r.at, r.n, from, "threadIdx")) {
    *i += 3;
    l->xs++;
    return true;
  }
  if (r.at[from].kind == CGL_TOKEN_NUMBER) {
    long number;
    return cgl_tree_number(r, i, &number);
  }
  if (!cgl_tree_is_name(r, from))
    return false;
  *i += from + 2 < r.n && cgl_token_is(&r.at[from + 1], ".") ? 3 : 1;
  const variable *v = cgl_tree_find(l->w->t, &r.at[from]);
  if (!v || v->uniform)
    return cgl_values_is_uniform(l->w->t, cgl_row_slice(r, from, *i), false);
  size_t k = 0;
  while (k < l->n && l->list[k]->variable != v)
    k++;
  if (*i != from + 1 || !is_whole_type(v) || v->changed || v->addressed ||
      v->value.n < 2 || !cgl_token_is(v->value.at, "=") || l->depth > 8 ||
      (k == l->n && !v->again))
    return false;
  if (k < l->n)
    l->needed[k] = true;
  l->depth++;
  const bool is = read_line(l, cgl_row_slice(v->value, 1, v->value.n));
  l->depth--;
  return is;
}


static bool read_product(line *l, row r, size_t *i) {
  const size_t before = l->xs;
  bool product = false;
  for (;; ++*i) {
    if (!read_operand(l, r, i))
      return false;
    if (*i >= r.n || !cgl_token_is(&r.at[*i], "*"))
      break;
    product = true;
  }
  l->scaled |= product && l->xs > before;
  return true;
}


static bool read_line(line *l, row r) {
  for (size_t i = 0;; i++) {
    if (i < r.n && cgl_token_is_any(&r.at[i], "+", "-"))
      i++;
    if (!read_product(l, r, &i))
      return false;
    if (i == r.n)
      return true;
    if (!cgl_token_is_any(&r.at[i], "+", "-"))
      return false;
  }
}


/* Declares it a variable, and does nothing else? */
static bool only_declares(writer *w, const statement *s) {
  const variable *v = s->variable;
  return s->kind == STATEMENT_DECLARATION && !v->constructed && !v->lambda &&
         !v->reference && cgl_few_is_pure(w, s->value);
}


bool cgl_few_is_idle(writer *w, const statement *s) {
  return only_declares(w, s) && !s->variable->kept;
}


static void put_seen(writer *w, const line *l, row of, row bound, bool equal) {
  bool used[1024] = {false};
  cgl_region_mark(w, of, used, 0);
  for (size_t k = 0; k < l->n; k++)
    if (l->needed[k])
      cgl_region_mark(w, l->list[k]->value, used, 0);
  cgl_text_put(w->out,
               "{ unsigned cgl_k = cgl_bx; if (cgl_bx > 2) { long cgl_seen[3], "
               "cgl_bound = 0; for (unsigned cgl_i = 0; cgl_i < 3; cgl_i++) { "
               "const unsigned cgl_x = cgl_i < 2 ? cgl_i : cgl_bx - 1; const "
               "uint3 threadIdx = {cgl_x, 0, 0};");
  cgl_region_put_again(w, used);
  for (size_t k = 0; k < l->n; k++)
    if (l->needed[k]) {
      const variable *v = l->list[k]->variable;
      cgl_put_type(w, v);
      cgl_put_name(w, " ", v);
      cgl_put_tokens(w, l->list[k]->value, false);
      cgl_text_put(w->out, ";");
    }
  cgl_text_put(w->out, "cgl_seen[cgl_i] = cgl_place_exact(");
  cgl_put_tokens(w, of, false);
  cgl_text_put(w->out, ",");
  cgl_put_tokens(w, bound, false);
  cgl_text_put(w->out, "); cgl_bound = cgl_place_beside(");
  cgl_put_tokens(w, bound, false);
  cgl_text_put(w->out, ",");
  cgl_put_tokens(w, of, false);
  cgl_text_print(w->out,
                 "); } cgl_k = cgl_until(cgl_seen, cgl_bound, %d, cgl_bx); }",
                 equal);
  cgl_put_own(w);
}


static bool put_until(writer *w, statement *const *list, size_t n) {
  const row cond = cgl_few_condition(w, list[n - 1]);
  bool needed[MAX_PENDING];
  if (w->run || w->style->strips || w->style->strided)
    return false;
  for (size_t k = 0; k + 1 < n; k++)
    if (!cgl_few_is_idle(w, list[k]))
      return false;
  for (size_t i = 0; i < cond.n;) {
    const row term = cgl_few_next(cond, &i);
    size_t op = cgl_row_find(term, "<", "<=");
    const bool mirrored = op == term.n;
    if (mirrored)
      op = cgl_row_find(term, ">", ">=");
    if (op + 1 >= term.n || !op)
      continue;
    row a = cgl_row_slice(term, 0, op), b = cgl_row_slice(term, op + 1, term.n);
    line l = {.w = w, .list = list, .n = n - 1, .needed = needed};
    for (size_t k = 0; k < n; k++)
      needed[k] = false;
    if (read_line(&l, mirrored ? b : a) && l.xs == 1 && l.scaled &&
        is_number(w, mirrored ? a : b)) {
      put_seen(w, &l, mirrored ? b : a, mirrored ? a : b,
               cgl_token_is_any(&term.at[op], "<=", ">="));
      return true;
    }
  }
  return false;
}


/* ---- all or none ---- */

bool cgl_few_is_common(writer *w, const statement *s) {
  const row cond = w->run ? (row){NULL, 0} : cgl_few_condition(w, s);
  return cond.n && cgl_values_is_uniform(w->t, cond, false);
}


static bool put_common(writer *w, statement *const *list, size_t n,
                       few_threads *f) {
  if (n != 1 || !cgl_few_is_common(w, list[0]))
    return false;
  const row cond = cgl_few_condition(w, list[0]);
  cgl_text_put(w->out, "{ const unsigned cgl_k = (");
  cgl_put_tokens(w, cond, false);
  cgl_text_put(w->out, ") ? cgl_bx : 0;");
  f->guarded = cgl_row_slice(list[0]->all, cond.n + 3, list[0]->all.n);
  return true;
}


bool cgl_few_put(writer *w, statement *const *list, size_t n, few_threads *f) {
  *f = (few_threads){.from = "0", .step = "1"};
  cgl_put_own(w);
  if (!put_one(w, list, n, f) && !put_below(w, list, n, f) &&
      !put_every(w, list, n, f) && !put_until(w, list, n) &&
      !put_common(w, list, n, f))
    return false;
  cgl_put_own(w);
  return true;
}


/* ---- the first warp ---- */

/* Is the term of threads of the first warp alone, in blocks of one row? */
static bool is_of_first(row term) {
  const size_t op = cgl_row_find(term, "==", "<");
  size_t at = op + 1;
  long n;
  bool warp = false;
  /* below a negative number an unsigned one is always */
  if (at >= term.n || !cgl_tree_number(term, &at, &n) || at < term.n || n < 0)
    return false;
  const row x = cgl_row_unwrap(cgl_row_slice(term, 0, op));
  const bool equal = cgl_token_is(&term.at[op], "==");
  if (x.n == 3 && cgl_token_is_axis(x.at, x.n, 0, "threadIdx"))
    return equal ? n < 32 : n <= 32;
  return x.n && cgl_stride_lane(x, 0, &warp) == x.n && warp &&
         (equal ? n == 0 : n <= 1);
}


/* Does the statement nothing in other warps that anything else sees? */
static bool does_in_first(writer *w, const statement *s) {
  if (s->kind == STATEMENT_PLAIN && s->all.n > 2 && !s->sync &&
      cgl_token_is_assignment(&s->all.at[1])) {
    const variable *v = cgl_tree_find(w->t, s->all.at);
    return v && v->run == w->run && !v->reference && !v->dims.n && !v->shared &&
           cgl_few_is_pure(w, cgl_row_slice(s->all, 2, s->all.n));
  }
  const bool branch = s->kind == STATEMENT_IF && !s->otherwise && !s->escapes;
  if (!branch && s->kind != STATEMENT_PLAIN)
    return only_declares(w, s) &&
           (!s->variable->kept || s->variable->run == w->run);
  const row cond =
      cgl_few_expand(w, branch ? s->cond : cgl_few_condition(w, s));
  if (cgl_row_has(cond, "||") || cgl_row_has(cond, "?"))
    return false;
  for (size_t i = 0; i < cond.n;) {
    const row term = cgl_few_next(cond, &i);
    if (is_of_first(term))
      return true;
    if (!cgl_few_is_pure(w, term))
      return false;
  }
  return false;
}


bool cgl_few_is_of_first_warp(writer *w, statement *const *before, size_t n,
                              const statement *s, const statement *end) {
  bool found = false;
  for (size_t i = 0; i < n; i++)
    if (!does_in_first(w, before[i]))
      return false;
  for (; s != end; s = s->next) {
    if (!does_in_first(w, s))
      return false;
    found |= s->kind == STATEMENT_IF || s->kind == STATEMENT_PLAIN;
  }
  return found;
}
