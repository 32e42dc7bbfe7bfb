/* Effects of conditions, and of several assignments in a statement, as
   statements of their own.
   Whether a condition has one value for all threads is asked of its text, which
   must change nothing: `while (k++ < n)` becomes a loop that sets another
   variable to k, adds one to k and asks for the other, in front of each test.
   Invariant: what is taken out of a condition is evaluated whenever the
   condition is, and nothing else in it changes a variable. */
#include "compile/loops/loops_private.h"


/* ---- commas ---- */

/* Is the part `name = ...`, `name++` or `++name`? */
static bool is_simple(row part) {
  const size_t n = part.n;
  if (n < 2)
    return false;
  if (n == 2 && cgl_tree_is_step(&part.at[0]))
    return part.at[1].kind == CGL_TOKEN_NAME;
  return part.at[0].kind == CGL_TOKEN_NAME &&
         (n == 2 ? cgl_tree_is_step(&part.at[1])
                 : cgl_tree_is_equal(&part.at[1]));
}


/* Past the part at i: its comma or its `;`. */
static size_t part_end(row r, size_t i) {
  while (i < r.n && !cgl_token_is_any(&r.at[i], ",", ";"))
    i = cgl_tokens_past(r.at, r.n, i);
  return i;
}


static statement **add_plain(tree *t, row part, statement **tail) {
  statement *s = cgl_tree_new(t, STATEMENT_PLAIN);
  s->all = cgl_tree_copy(t, part.at, part.n + 1);
  if (t->failed)
    return tail;
  s->all.at[part.n] = cgl_tree_token(t, part.at, ";");
  s->all.at[part.n].kind = CGL_TOKEN_PUNCT;
  *tail = s;
  return &s->next;
}


/* Has the name the value that it was given, until it is given another? */
static bool is_own_number(const tree *t, const cgl_token *name) {
  const variable *v = cgl_tree_find(t, name);
  bool own = v && !v->shared && !v->reference && !v->alias && v->type.n;
  for (size_t i = 0; own && i < v->type.n; i++)
    own = cgl_token_is(&v->type.at[i], "*") ||
          (cgl_token_is_type_word(&v->type.at[i]) &&
           !cgl_token_is(&v->type.at[i], "volatile"));
  return own;
}


/* a = b = c; is b = c; a = b; */
static statement **add_assignments(tree *t, row part, statement **tail) {
  if (part.n > 4 && cgl_token_is(&part.at[1], "=") &&
      cgl_token_is(&part.at[3], "=") && is_own_number(t, &part.at[2])) {
    tail = add_assignments(t, cgl_row_slice(part, 2, part.n), tail);
    part.n = 3;
  }
  return add_plain(t, part, tail);
}


statement **cgl_effects_read(tree *t, row all, statement **tail) {
  bool simple = all.n > 1 && cgl_token_is(&all.at[all.n - 1], ";");
  for (size_t i = 0; i + 1 < all.n && simple;) {
    const size_t end = part_end(all, i);
    simple = is_simple(cgl_row_slice(all, i, end));
    i = end + 1;
  }
  if (!simple || t->strips)
    return NULL;
  for (size_t i = 0; i + 1 < all.n;) {
    const size_t end = part_end(all, i);
    tail = add_assignments(t, cgl_row_slice(all, i, end), tail);
    i = end + 1;
  }
  return tail;
}


/* ---- operations of several threads ---- */

/* Past the first && of the condition, when what is behind it synchronizes; or
   0. */
static size_t find_nested(tree *t, row cond) {
  size_t at = 0;
  for (size_t i = 0; i < cond.n; i = cgl_tokens_past(cond.at, cond.n, i))
    if (cgl_token_is_any(&cond.at[i], "||", "?", ","))
      return 0;
    else if (cgl_token_is(&cond.at[i], "&&") && !at)
      at = i + 1;
  return at && cgl_tree_sync(t, &cond.at[at], cond.n - at) ? at : 0;
}


row cgl_effects_nest(tree *t, row all) {
  static const char *const words[] = {")", "if", "("};
  if (all.n < 6 || !cgl_token_is(all.at, "if") ||
      !cgl_token_is(&all.at[1], "("))
    return all;
  const size_t close = cgl_tokens_close(all.at, all.n, 1);
  const size_t rest = find_nested(t, cgl_row_slice(all, 2, close - 1));
  if (!rest || cgl_tree_end(all, close) != all.n)
    return all;
  cgl_tokens out = {0};
  for (size_t i = 0; i < all.n; i++)
    if (i != rest + 1) /* where the && is */
      cgl_tokens_add(&out, all.at[i]);
    else
      for (size_t k = 0; k < 3; k++) {
        cgl_token x = cgl_tree_token(t, &all.at[i], "%s", words[k]);
        x.kind = k == 1 ? CGL_TOKEN_NAME : CGL_TOKEN_PUNCT;
        cgl_tokens_add(&out, x);
      }
  t->failed |= out.failed;
  if (!t->failed)
    all = cgl_tree_copy(t, out.at, out.count);
  cgl_tokens_free(&out);
  return all;
}


/* ---- conditions ---- */

/* An effect in a condition: k++, ++k, (k = e). */
typedef struct effect {
  size_t from, to; /* its tokens */
  bool after;      /* the value is that before the effect */
  variable *v;
} effect;


/* Is the token behind something that decides whether it is evaluated, or that
   is evaluated before it? */
static bool is_behind(row r, size_t i) {
  for (size_t k = 0; k < i; k++) {
    if (cgl_token_is_any(&r.at[k], "&&", "||", "?", ","))
      return true;
    if (cgl_token_is_any(&r.at[k], "(", "[", "{") &&
        cgl_tokens_close(r.at, r.n, k) <= i)
      k = cgl_tokens_close(r.at, r.n, k) - 1;
  }
  return false;
}


/* A number's name, or a pointer's, that nothing but its name changes. */
static bool is_plain(const variable *v) {
  bool plain = v && !v->shared && !v->reference && !v->dims.n &&
               !v->addressed && !v->closed && !v->alias && !v->lambda &&
               !v->constant;
  for (size_t i = 0; plain && i < v->type.n; i++)
    plain = !cgl_token_is_any(&v->type.at[i], "volatile", "static");
  return plain;
}


/* The effect at the operator k of the condition; false when it is none of
   those. */
static bool read_effect(const tree *t, row r, size_t k, effect *e) {
  if (cgl_tree_is_equal(&r.at[k])) {
    const bool whole = k == 1;
    const bool inside = k > 1 && cgl_token_is(&r.at[k - 2], "(");
    e->v = k ? cgl_tree_find(t, &r.at[k - 1]) : NULL;
    e->from = k - 1;
    e->to = whole ? r.n : inside ? cgl_tokens_close(r.at, r.n, k - 2) - 1 : 0;
    return e->v && (whole || inside) && part_end(r, k + 1) >= e->to;
  }
  e->after = k && cgl_tree_is_name(r, k - 1) && cgl_tree_find(t, &r.at[k - 1]);
  const size_t name = e->after ? k - 1 : k + 1;
  if (name >= r.n)
    return false;
  e->from = e->after ? k - 1 : k;
  e->to = e->from + 2;
  e->v = cgl_tree_find(t, &r.at[name]);
  return e->v &&
         !(e->to < r.n &&
           cgl_token_is_any(&r.at[e->to], "[", ".", "->", "(")) &&
         !(!e->after && k && cgl_token_is(&r.at[k - 1], "*"));
}


/* Finds the only effect of the condition, which may be taken out of it. */
static bool find_effect(const tree *t, row r, effect *e) {
  size_t at = r.n;
  for (size_t k = 0; k < r.n; k++)
    if (cgl_token_is_assignment(&r.at[k])) {
      if (at < r.n)
        return false;
      at = k;
    } else if (cgl_tree_lambda(r, k))
      return false;
  return at < r.n && read_effect(t, r, at, e) && is_plain(e->v) &&
         !is_behind(r, e->from);
}


/* Takes the effect out of the condition and puts it at the tail. */
static void take_effect(tree *t, row *cond, statement **tail) {
  effect e = {0};
  if (!find_effect(t, *cond, &e))
    return;
  const row part = cgl_row_slice(*cond, e.from, e.to);
  cgl_token name = e.v->name;
  if (e.after) {
    name = cgl_tree_token(t, part.at, "cgl_e_%d", ++t->ids);
    const row old = cgl_tree_copy(t, &e.v->name, 1);
    *tail = cgl_tree_declare_value(t, &name, e.v->type, old);
    tail = &(*tail)->next;
  }
  tail = add_plain(t, part, tail);
  row made = cgl_tree_copy(t, cond->at, cond->n + 1);
  if (t->failed)
    return;
  made.at[e.from] = name;
  made.at[e.from].line = part.at->line;
  for (size_t k = e.to; k < cond->n; k++)
    made.at[e.from + 1 + k - e.to] = cond->at[k];
  made.n = cond->n - part.n + 1;
  *cond = made;
}


/* x = k++; is x = k; k++; and x = ++k; is ++k; x = k; */
static void take_step(tree *t, statement **at) {
  statement *s = *at;
  const bool declares = s->kind == STATEMENT_DECLARATION;
  const row all = declares ? s->value : s->all;
  const size_t from = declares ? 1 : 2;
  const size_t n =
      all.n && cgl_token_is(&all.at[all.n - 1], ";") ? all.n - 1 : all.n;
  effect e = {0};
  if (n != from + 2 || !cgl_tree_is_equal(&all.at[from - 1]) ||
      (!cgl_tree_is_step(&all.at[from]) &&
       !cgl_tree_is_step(&all.at[from + 1])) ||
      (declares && s->variable->reference) ||
      !find_effect(t, cgl_row_slice(all, from, n), &e) ||
      (!declares && cgl_token_same(&all.at[0], &e.v->name)))
    return;
  statement *step = NULL;
  add_plain(t, cgl_row_slice(all, from, n), &step);
  row made = cgl_tree_copy(t, all.at, all.n);
  if (t->failed)
    return;
  made.at[from] = e.v->name;
  made.at[from].line = all.at[from].line;
  if (n < all.n)
    made.at[from + 1] = all.at[n];
  made.n = all.n - 1;
  if (declares)
    s->value = s->variable->value = made;
  else
    s->all = made;
  step->next = e.after ? s->next : s;
  *(e.after ? &s->next : at) = step;
}


void cgl_effects_split(tree *t, statement **list) {
  for (statement **at = list; *at; at = &(*at)->next) {
    statement *s = *at;
    cgl_effects_split(t, &s->body);
    cgl_effects_split(t, &s->otherwise);
    if (s->kind == STATEMENT_DECLARATION || s->kind == STATEMENT_PLAIN)
      take_step(t, at);
    if (!(s->sync & (SYNC_BLOCK | SYNC_APART)) && !s->escapes &&
        s->kind != STATEMENT_IF)
      continue;
    statement *made = NULL, **tail = &made;
    if (s->kind == STATEMENT_IF)
      take_effect(t, &s->cond, tail);
    else if (s->kind == STATEMENT_FOR || s->kind == STATEMENT_WHILE ||
             s->kind == STATEMENT_DO) {
      tail = &s->head;
      while (*tail)
        tail = &(*tail)->next;
      take_effect(t, &s->cond, tail);
    }
    for (; made; at = &(*at)->next) {
      statement *next = made->next;
      made->next = *at;
      *at = made;
      made = next;
    }
  }
}
