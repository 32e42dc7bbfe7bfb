/* Values of which only a warp's first lane is wanted.
     for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
     if (lane == 0) *out = v;
   What a turn is to know of v is its lanes below 2 d, and what it leaves behind
   of use is those below d: so it goes over those alone, up to what a vector
   holds anyway.
   A group is such a loop, or shuffles by numbers each at most half of the one
   before.  What it sets is partial from there on, and so are copies of that.
   Invariant: nothing but a group, a copy and what the first lane alone does
   reads what is partial.  A group whose values anything else reads is taken
   whole, and the kernel is gone through again. */
#include <stdlib.h>
#include <string.h>

#include "compile/loops/write_private.h"

enum { MAX_VARIABLES = 1024 };

typedef struct search {
  writer in; /* a run of whole warps */
  size_t nvariables;
  statement **shuffles; /* by their id: the first statement of the group */
  bool again;
} search;


static void take_whole(search *f, statement *group) {
  for (statement *s = group; s && !s->whole; s = s->beside)
    s->whole = true;
  f->again = true;
}


/* A value may be of either group: they are taken whole together. */
static void link_groups(statement *a, statement *b) {
  const statement *s = a;
  do {
    if (s == b)
      return;
    s = s->beside;
  } while (s && s != a);
  statement *after = a->beside ? a->beside : a;
  a->beside = b->beside ? b->beside : b;
  b->beside = after;
}


static statement *group_of(const search *f, const cgl_token *x) {
  static const char front[] = "cgl_q_";
  const size_t n = sizeof front - 1;
  if (x->length <= n || memcmp(x->text, front, n) != 0)
    return NULL;
  const long id = strtol(x->text + n, NULL, 10);
  return id > 0 && id <= f->in.t->ids ? f->shuffles[id] : NULL;
}


/* Some statement reads the row in all lanes. */
static void see(search *f, row r) {
  bool used[MAX_VARIABLES] = {false};
  for (size_t i = 0; i < r.n; i++) {
    statement *group = group_of(f, &r.at[i]);
    if (group)
      take_whole(f, group);
  }
  cgl_region_mark(&f->in, r, used, 0);
  size_t k = 0;
  for (const variable *v = f->in.t->variables; v; v = v->next)
    if (used[k++] && v->partial)
      take_whole(f, v->partial);
}


static void set(variable *v, statement *group, int lanes) {
  v->partial = group;
  v->lanes = lanes;
  if (group)
    v->ever = group;
}


/* ---- paths ---- */

static statement **save(const search *f) {
  statement **all =
      cgl_arena_alloc(f->in.t->arena, (f->nvariables + 1) * sizeof *all);
  f->in.t->failed |= !all;
  size_t k = 0;
  for (const variable *v = f->in.t->variables; v && all; v = v->next)
    all[k++] = v->partial;
  return all;
}


static void restore(const search *f, statement **all) {
  size_t k = 0;
  for (variable *v = f->in.t->variables; v && all; v = v->next)
    set(v, all[k++], 0);
}


static bool differs(const search *f, statement **all) {
  size_t k = 0;
  for (const variable *v = f->in.t->variables; v; v = v->next)
    if (v->partial != all[k++])
      return true;
  return false;
}


/* Either way may have been taken: what was partial before stays so. */
static void join(const search *f, statement **all) {
  size_t k = 0;
  for (variable *v = f->in.t->variables; v && all; v = v->next, k++)
    if (all[k]) {
      if (v->partial)
        link_groups(v->partial, all[k]);
      set(v, all[k], 0);
    }
}


/* ---- groups ---- */

/* May a group set it? */
static bool is_value(const variable *v) {
  bool pointer = false;
  for (size_t i = 0; i < v->type.n; i++)
    pointer |= cgl_token_is(&v->type.at[i], "*");
  return cgl_region_is_local(v) && !pointer && !v->addressed && !v->reference &&
         !v->dims.n && !v->parameter;
}


/* A shuffle by a number, or by the variable, which a loop halves and of which
   nothing but that is known: then *by becomes 1. */
static bool is_shuffle(search *f, const statement *s, const variable *halved,
                       int *by) {
  const variable *v = s->all.n == 1 ? cgl_tree_find(f->in.t, s->all.at) : NULL;
  if (s->kind != STATEMENT_WARP || s->mask.n || s->cond.n != 1 || !v ||
      !is_value(v) ||
      !cgl_token_is_any(&s->op, "__shfl_down_sync", "__shfl_xor_sync") ||
      !cgl_loops_is_number(&f->in, s->step))
    return false;
  *by = 1;
  if (halved)
    return cgl_tree_find(f->in.t, s->cond.at) == halved;
  size_t i = 0;
  long n;
  if (!cgl_tree_number(s->cond, &i, &n) || i < s->cond.n || n < 1 ||
      n >= WARP_LANES || n & (n - 1))
    return false;
  *by = (int)n;
  return true;
}


/* Has the star at i a number on its left, and no type in brackets? */
static bool is_product(row r, size_t i) {
  if (!i)
    return false;
  const cgl_token *last = &r.at[i - 1];
  if (last->kind != CGL_TOKEN_PUNCT)
    return !cgl_token_is_any(last, "and", "or", "not", "xor", "compl", "else");
  bool type = true;
  if (!cgl_token_is(last, ")"))
    return false;
  for (size_t k = i - 1; k > 0 && !cgl_token_is(&r.at[k - 1], "("); k--)
    type &= r.at[k - 1].kind == CGL_TOKEN_NAME ||
            cgl_token_is_any(&r.at[k - 1], "*", "::", "<", ">");
  return !type;
}


/* Is token i of a place in memory, of what may fault or of what has an effect?
   Lanes that are not wanted would have it of any values. */
static bool is_more_than_arithmetic(const search *f, row r, size_t i) {
  static const char *const words[] = {
      "[",   "->",    "goto",   "return", "asm",      "__asm__",
      "for", "while", "do",     "break",  "continue", "&",
      "#",   "new",   "throw",  "case",   "/",        "%",
      "/=",  "%=",    "sizeof", "auto",   "this",     NULL};
  const cgl_token *x = &r.at[i], *last = i ? x - 1 : NULL;
  const bool name = last && last->kind == CGL_TOKEN_NAME;
  if (cgl_token_is_of(x, words) || cgl_tree_is_step(x))
    return true;
  if (cgl_token_is(x, "*"))
    return !is_product(r, i);
  if (cgl_token_is(x, "{"))
    return last && !cgl_token_is_any(last, ")", "else", ";", "{", "}");
  if (!last || !cgl_token_is(x, "(") || cgl_token_is(last, "if"))
    return false;
  return name ? !cgl_tree_is_name(r, i - 1) ||
                    !cgl_values_is_pure_call(f->in.t, last) ||
                    (last->length > 4 && !memcmp(last->text, "__ld", 4))
              : cgl_token_is_any(last, ">", ")", "]", "}");
}


/* Sets the statement what only its thread sees, by what the group has? */
static bool follows(search *f, statement *group, const statement *s,
                    int lanes) {
  const bool declares = s->kind == STATEMENT_DECLARATION;
  const row r = declares ? s->value : s->all;
  bool names = false;
  if (declares ? !is_value(s->variable) || r.n < 2 || !cgl_token_is(r.at, "=")
               : s->kind != STATEMENT_PLAIN)
    return false;
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < r.n; i++) {
      const cgl_token *x = &r.at[i];
      variable *v = cgl_tree_is_name(r, i) ? cgl_tree_find(f->in.t, x) : NULL;
      statement *of = v ? v->partial : group_of(f, x);
      names |= of == group;
      /* one that the group did not set this time has the first lane alone */
      if ((of && of != group) || (v && of && !v->lanes) ||
          (v && (v->shared || v->lambda || v->dims.n)) ||
          is_more_than_arithmetic(f, r, i))
        return false;
      if (!cgl_token_is_assignment(x) || (declares && !i))
        continue;
      variable *to = i && cgl_tree_is_name(r, i - 1)
                         ? cgl_tree_find(f->in.t, &r.at[i - 1])
                         : NULL;
      if (!to || !is_value(to) ||
          (i > 1 &&
           !cgl_token_is_any(&r.at[i - 2], ";", "{", "}", ")", "else")))
        return false;
      if (pass && names)
        set(to, group, lanes);
    }
  if (names && declares)
    set(s->variable, group, lanes);
  return names;
}


/* Takes statements from s on for the group, as far as they are of it; returns
   the one behind them. */
static statement *take(search *f, statement *group, statement *s,
                       const variable *halved) {
  int last = 2 * WARP_LANES, by;
  const cgl_token *few = NULL;
  for (variable *v = f->in.t->variables; v; v = v->next)
    if (v->partial == group)
      v->lanes = 0;
  for (; s; s = s->next) {
    if (is_shuffle(f, s, halved, &by)) {
      const variable *v = cgl_tree_find(f->in.t, s->all.at);
      if ((by != last && 2 * by > last) ||
          (v->partial && (v->partial != group || v->lanes < 2 * by)))
        break;
      last = by;
      few = s->cond.at;
      f->shuffles[s->id] = group;
    } else if (!few || !follows(f, group, s, last))
      break;
    s->few = few;
  }
  return s;
}


static bool take_loop(search *f, statement *s) {
  variable *v = s->init ? s->init->variable : NULL;
  size_t i = 2;
  long n;
  if (s->kind != STATEMENT_FOR || s->head || s->whole ||
      !cgl_loops_is_counted(&f->in, s) || cgl_row_has(s->init->value, "-") ||
      cgl_row_has(s->init->value, "~") || s->step.n != 3 ||
      cgl_tree_find(f->in.t, s->step.at) != v ||
      !cgl_token_is_any(&s->step.at[1], "/=", ">>=") ||
      !cgl_tree_number(s->step, &i, &n) ||
      n != (cgl_token_is(&s->step.at[1], "/=") ? 2 : 1))
    return false;
  statement **before = save(f);
  statement *end = take(f, s, s->body, v);
  if (!end)
    return true;
  for (statement *in = s->body; in != end; in = in->next) {
    in->few = NULL;
    if (in->kind == STATEMENT_WARP)
      f->shuffles[in->id] = NULL;
  }
  restore(f, before);
  return false;
}


bool cgl_first_is_few(const writer *w, const statement *s) {
  return s->few && w->run && w->fast && !w->mask && !cgl_region_is_ragged(w);
}


/* ---- all statements ---- */

static bool is_of_first(search *f, const statement *s) {
  const row which = cgl_few_one(&f->in, s);
  size_t i = 0;
  long n;
  return which.n && cgl_tree_number(which, &i, &n) && i == which.n && n == 0;
}


/* The variable that is copied, when that is all. */
static const variable *copied(const search *f, row value) {
  value = cgl_row_unwrap(value);
  const variable *v = value.n == 1 ? cgl_tree_find(f->in.t, value.at) : NULL;
  return v && !v->is_auto ? v : NULL;
}


static void see_plain(search *f, const statement *s) {
  const row r = s->all;
  if (is_of_first(f, s))
    return;
  variable *v = r.n > 2 && cgl_tree_is_equal(&r.at[1])
                    ? cgl_tree_find(f->in.t, r.at)
                    : NULL;
  if (!v || !is_value(v)) {
    see(f, r);
    return;
  }
  row value = cgl_row_slice(r, 2, r.n);
  if (value.n && cgl_token_is(&value.at[value.n - 1], ";"))
    value.n--;
  const variable *from = copied(f, value);
  if (cgl_token_is(&r.at[1], "=") && from && is_value(from))
    set(v, from->partial, 0);
  else {
    see(f, value);
    if (cgl_token_is(&r.at[1], "="))
      set(v, NULL, 0);
  }
}


static void see_declaration(search *f, const statement *s) {
  const row r = s->value;
  const variable *from = r.n > 1 && cgl_token_is(r.at, "=")
                             ? copied(f, cgl_row_slice(r, 1, r.n))
                             : NULL;
  if (from && is_value(from) && is_value(s->variable)) {
    set(s->variable, from->partial, 0);
    return;
  }
  see(f, r);
  set(s->variable, NULL, 0);
}


/* Takes from what all lanes have, or from the first one? */
static bool is_broadcast(const search *f, const statement *s) {
  size_t i = 0;
  long n;
  return cgl_token_is(&s->op, "__shfl_sync") && !s->step.n && !s->mask.n &&
         copied(f, s->all) && cgl_tree_number(s->cond, &i, &n) &&
         i == s->cond.n && n == 0;
}


static void see_list(search *f, statement *list);

static void see_turns(search *f, statement *s) {
  statement **before = save(f);
  see(f, s->cond);
  see_list(f, s->head);
  see_list(f, s->body);
  see(f, s->step);
  join(f, before);
  /* as a jump in it may have left it */
  for (variable *v = f->in.t->variables; v; v = v->next)
    if (!v->partial)
      set(v, v->ever, 0);
}


static void see_loop(search *f, statement *s) {
  see_list(f, s->init);
  if (take_loop(f, s))
    return;
  size_t k = 0;
  statement **ever =
      cgl_arena_alloc(f->in.t->arena, (f->nvariables + 1) * sizeof *ever);
  f->in.t->failed |= !ever;
  for (variable *v = f->in.t->variables; v && ever; v = v->next) {
    ever[k++] = v->ever;
    v->ever = NULL;
  }
  statement **before;
  do {
    before = save(f);
    see_turns(f, s);
  } while (before && differs(f, before));
  k = 0;
  for (variable *v = f->in.t->variables; v && ever; v = v->next, k++)
    if (!v->ever)
      v->ever = ever[k];
}


static void see_if(search *f, statement *s) {
  see(f, s->cond);
  statement **before = save(f);
  see_list(f, s->body);
  if (s->otherwise) {
    statement **after = save(f);
    restore(f, before);
    see_list(f, s->otherwise);
    join(f, after);
  } else
    join(f, before);
}


static void see_list(search *f, statement *list) {
  for (statement *s = list, *next; s; s = next) {
    next = s->next;
    if (s->kind == STATEMENT_WARP && !s->whole) {
      next = take(f, s, s, NULL);
      if (next != s)
        continue;
      next = s->next;
    }
    switch (s->kind) {
    case STATEMENT_PLAIN:
      see_plain(f, s);
      break;
    case STATEMENT_DECLARATION:
      see_declaration(f, s);
      break;
    case STATEMENT_IF:
      see_if(f, s);
      break;
    case STATEMENT_FOR:
    case STATEMENT_WHILE:
    case STATEMENT_DO:
      see_loop(f, s);
      break;
    case STATEMENT_WARP:
      if (!is_broadcast(f, s))
        see(f, s->all);
      see(f, s->cond);
      see(f, s->step);
      see(f, s->mask);
      break;
    case STATEMENT_BLOCK:
      see_list(f, s->body);
      break;
    case STATEMENT_JUMP:
    case STATEMENT_BARRIER:
    case STATEMENT_GUARD:
      see(f, s->all);
      see(f, s->cond);
      break;
    }
  }
}


static void forget(statement *list) {
  for (statement *s = list; s; s = s->next) {
    s->few = NULL;
    s->beside = NULL;
    forget(s->init);
    forget(s->head);
    forget(s->body);
    forget(s->otherwise);
  }
}


void cgl_first_find(writer *w) {
  tree *t = w->t;
  search f = {.in = *w};
  f.in.run = 1;
  f.in.fast = true;
  f.shuffles = cgl_arena_alloc(t->arena, ((size_t)t->ids + 1) * sizeof(void *));
  t->failed |= !f.shuffles;
  for (const variable *v = t->variables; v; v = v->next)
    f.nvariables++;
  if (f.nvariables > MAX_VARIABLES)
    return; /* refused later */
  do {
    f.again = false;
    forget(t->body);
    for (variable *v = t->variables; v; v = v->next)
      v->partial = v->ever = NULL;
    for (int id = 0; id <= t->ids && !t->failed; id++)
      f.shuffles[id] = NULL;
    if (!t->failed)
      see_list(&f, t->body);
  } while (f.again && !t->failed);
}
