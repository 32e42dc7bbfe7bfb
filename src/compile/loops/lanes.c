/* Loops in strips that threads leave one by one: `while (i < most && x * x +
   y * y <= 4)`.  All 32 lanes go through a turn as vectors, and only those that
   are still in the loop keep what it computes, until there are none.
   Invariant: such a loop is arithmetic on the thread's own numbers, which may
   be computed in vain: without memory, calls but those of a few functions, and
   divisions of whole numbers; what costs much stands in no branch.  Nothing in
   it changes a number that all threads share.  Its condition and its body are
   one region, and all lanes are taken whatever the strip has: products and sums
   are contracted in one way, wherever a thread stands. */
#include <stdlib.h>
#include <string.h>

#include "compile/loops/write_private.h"

#define MOST_TOKENS 400
#define MOST_TURNS 16 /* that the compiler is left to unroll */


/* ---- which loops ---- */

static bool is_harmless(tree *t, row r, bool function);
static bool chooses_costly(tree *t, row r);


/* Of the source's functions those without effects, of which the compiler makes
   a part of the loop. */
static bool is_harmless_call(tree *t, const cgl_token *name) {
  static const char *const scalar[] = {"sin",   "cos",   "tan",    "fmod",
                                       "fmodf", "__ldg", "sizeof", NULL};
  size_t chunk;
  if (cgl_token_is_type_word(name) || cgl_values_is_pure_call(t, name))
    return !cgl_token_is_of(name, scalar);
  if (!cgl_calls_is_uniform(t, name))
    return false;
  for (size_t k = 0; cgl_reach_chunk(t->program, name, k, &chunk); k++) {
    const cgl_chunk *c = &t->program->chunks[chunk];
    const row all = {(cgl_token *)c->at, c->count};
    if (!is_harmless(t, all, true) || chooses_costly(t, all))
      return false;
  }
  return true;
}


/* A call that costs no more than some operations: all lanes would pay for one
   in a branch that few of them take. */
static bool is_cheap_call(tree *t, const cgl_token *name) {
  static const char *const cheap[] = {
      "min",   "max",    "abs",     "fabsf",  "fabs",  "fminf",
      "fmaxf", "fmin",   "fmax",    "sqrtf",  "sqrt",  "fmaf",
      "fma",   "floorf", "ceilf",   "truncf", "rintf", "rsqrtf",
      "isnan", "isinf",  "signbit", NULL};
  size_t chunk;
  if (cgl_token_is_type_word(name) || cgl_token_is_any(name, "if", "return") ||
      cgl_token_is_of(name, cheap) ||
      (name->length > 5 && !memcmp(name->text, "make_", 5)))
    return true;
  bool known = false;
  for (size_t k = 0; cgl_reach_chunk(t->program, name, k, &chunk); k++) {
    const cgl_chunk *c = &t->program->chunks[chunk];
    known = true;
    for (size_t i = 0; i + 1 < c->count; i++)
      if (c->at[i].kind == CGL_TOKEN_NAME && cgl_token_is(&c->at[i + 1], "(") &&
          !cgl_token_same(&c->at[i], name) && !is_cheap_call(t, &c->at[i]))
        return false;
  }
  return known;
}


/* Stands a call that is not cheap in a branch, or behind a `?`? */
static bool chooses_costly(tree *t, row r) {
  size_t branch = 0; /* up to where one goes */
  bool chosen = false;
  for (size_t i = 0; i + 1 < r.n; i++) {
    const cgl_token *x = &r.at[i];
    if (cgl_token_is(x, "if") && cgl_token_is(x + 1, "(")) {
      const size_t end = cgl_tree_end(r, i);
      branch = end > branch ? end : branch;
    }
    chosen =
        cgl_token_is(x, "?") || (chosen && !cgl_token_is_any(x, ";", "{", "}"));
    if ((i < branch || chosen) && x->kind == CGL_TOKEN_NAME &&
        cgl_token_is(x + 1, "(") && !is_cheap_call(t, x))
      return true;
  }
  return false;
}


static bool is_fraction_type(row type) {
  for (size_t i = 0; i < type.n; i++)
    if ((type.at[i].length >= 5 && !memcmp(type.at[i].text, "float", 5)) ||
        (type.at[i].length >= 6 && !memcmp(type.at[i].text, "double", 6)))
      return true;
  return false;
}


/* Is what stands at i, behind a division, certainly no whole number? */
static bool is_fraction(const tree *t, row r, size_t i) {
  while (i < r.n && cgl_token_is_any(&r.at[i], "(", "-", "+", ")"))
    i++;
  if (i >= r.n)
    return false;
  const cgl_token *x = &r.at[i];
  if (x->kind == CGL_TOKEN_NUMBER)
    return !(x->length > 1 && x->text[1] == 'x') &&
           (memchr(x->text, '.', x->length) || memchr(x->text, 'e', x->length));
  const variable *v = cgl_tree_find(t, x);
  bool known =
      v ? is_fraction_type(v->type)
        : cgl_token_is_any(x, "float", "double", "sqrtf", "sqrt", "fabsf");
  for (size_t k = 1; k < r.n && !v; k++) /* of a function's own */
    known |= cgl_token_same(&r.at[k], x) &&
             is_fraction_type(cgl_row_slice(r, k - 1, k));
  return known;
}


/* May it be computed for a thread that has left, as its tokens tell? */
static bool is_harmless(tree *t, row r, bool function) {
  static const char *const never[] = {
      "[",    "]",     "->",     "%",        "%=",         "for",
      "do",   "while", "goto",   "switch",   "static",     "#",
      "auto", "asm",   "struct", "volatile", "__shared__", NULL};
  for (size_t i = 0; i < r.n; i++) {
    const cgl_token *x = &r.at[i], *next = i + 1 < r.n ? x + 1 : NULL;
    const bool first = !i || (r.at[i - 1].kind == CGL_TOKEN_PUNCT &&
                              !cgl_token_is(&r.at[i - 1], ")"));
    if ((cgl_token_is_of(x, never) &&
         !(function && cgl_token_is(x, "static"))) ||
        x->kind == CGL_TOKEN_STRING || cgl_token_is(x, "::") ||
        (cgl_token_is(x, "return") && !function) ||
        (first && cgl_token_is_any(x, "*", "&")) ||
        (cgl_token_is_any(x, "/", "/=") && function &&
         !is_fraction(t, r, i + 1)))
      return false;
    if (x->kind != CGL_TOKEN_NAME || !next)
      continue;
    const bool called = cgl_token_is_any(next, "(", "{"),
               pointed = cgl_token_is_any(next, "*", "&", "&&"),
               declared = function && i && r.at[i - 1].kind == CGL_TOKEN_NAME &&
                          !cgl_token_is(&r.at[i - 1], "return");
    if ((called && !declared && !cgl_token_is_any(x, "if", "else", "return") &&
         !is_harmless_call(t, x)) ||
        (pointed && cgl_token_is_type_word(x)))
      return false;
  }
  return true;
}


/* The header and the body of the loop at i; of `do`, its condition. */
static bool find_parts(row r, size_t i, row *head, row *body) {
  if (cgl_token_is(&r.at[i], "do")) {
    const size_t stop = cgl_tree_end(r, i + 1);
    if (stop + 2 >= r.n || !cgl_token_is(&r.at[stop], "while"))
      return false;
    const size_t close = cgl_tokens_close(r.at, r.n, stop + 1);
    *head = cgl_row_slice(r, stop + 2, close - 1);
    *body = cgl_row_slice(r, i + 1, stop);
    return true;
  }
  if (i + 1 >= r.n || !cgl_token_is(&r.at[i + 1], "("))
    return false;
  const size_t close = cgl_tokens_close(r.at, r.n, i + 1);
  *head = cgl_row_slice(r, i + 2, close - 1);
  *body = cgl_row_slice(r, close, cgl_tree_end(r, close));
  return body->n && !cgl_token_is(body->at, ";"); /* the end of a `do` */
}


/* `i < 9`: turns that the compiler may write out. */
static bool is_bounded(row r) {
  for (size_t i = 0; i + 1 < r.n; i++)
    if (cgl_token_is_any(&r.at[i], "<", "<=") &&
        r.at[i + 1].kind == CGL_TOKEN_NUMBER &&
        !memchr(r.at[i + 1].text, '.', r.at[i + 1].length) &&
        strtol(r.at[i + 1].text, NULL, 0) <= MOST_TURNS)
      return true;
  return false;
}


bool cgl_lanes_is_loop(tree *t, row r, size_t i) {
  row head, body;
  return cgl_token_is_any(&r.at[i], "for", "while", "do") &&
         find_parts(r, i, &head, &body) && head.n + body.n <= MOST_TOKENS &&
         !is_bounded(head) && is_harmless(t, head, false) &&
         is_harmless(t, body, false) && !chooses_costly(t, body);
}


/* x = 3 * x + 1, x ^= ... or x = f(x)?  What comes of a loop that does less
   with whole numbers, adds or counts bits, the compiler knows without it. */
static bool mixes(row r, size_t i) {
  if (i + 1 >= r.n || r.at[i].kind != CGL_TOKEN_NAME)
    return false;
  const cgl_token *name = &r.at[i], *op = name + 1;
  if (cgl_token_is_any(op, "^=", "*="))
    return true;
  bool itself = false, mixed = false;
  for (size_t k = i + 2; k < r.n && cgl_token_is(op, "=") &&
                         !cgl_token_is_any(&r.at[k], ";", ",");
       k++) {
    itself |= cgl_token_same(&r.at[k], name);
    mixed |= cgl_token_is_any(&r.at[k], "*", "^") ||
             (r.at[k].kind == CGL_TOKEN_NAME && k + 1 < r.n &&
              cgl_token_is(&r.at[k + 1], "("));
  }
  return itself && mixed;
}


/* float, const int, float2: a number, or some with names. */
static bool is_number(row type) {
  for (size_t i = 0; i < type.n; i++)
    if (!cgl_token_is_type_word(&type.at[i]) &&
        !cgl_token_is_known_type(&type.at[i]))
      return false;
  return type.n > 0;
}


/* Might what is named at i, no variable of the kernel's, be changed there, and
   not be declared in the row? */
static bool changes_other(row r, size_t i) {
  size_t end = i + 1;
  while (end + 1 < r.n && cgl_token_is(&r.at[end], "."))
    end += 2; /* past a member's name */
  const bool stepped = (i && cgl_tree_is_step(&r.at[i - 1])) ||
                       (end < r.n && cgl_token_is_assignment(&r.at[end]));
  for (size_t k = 1; k < r.n && stepped; k++)
    if (cgl_token_same(&r.at[k], &r.at[i]) &&
        cgl_token_is_type_word(&r.at[k - 1]))
      return false;
  return stepped;
}


/* Are all its variables numbers of the thread's, or of all threads? */
bool cgl_lanes_may(const writer *w, const statement *s) {
  row head, body;
  if (!cgl_lanes_is_loop(w->t, s->all, 0) ||
      !find_parts(s->all, 0, &head, &body) ||
      (s->cond.n > 1 && cgl_token_is_type_word(s->cond.at) &&
       s->cond.at[1].kind == CGL_TOKEN_NAME)) /* a declaration */
    return false;
  bool worth = false;
  for (size_t i = 0; i < s->all.n; i++) {
    const cgl_token *x = &s->all.at[i];
    if (cgl_token_is_any(x, "/", "/=") && !is_fraction(w->t, s->all, i + 1))
      return false;
    const bool named = cgl_tree_is_name(s->all, i);
    const variable *v = named ? cgl_tree_find(w->t, x) : NULL;
    if (named && !v && changes_other(s->all, i))
      return false;
    worth |= mixes(s->all, i);
    if (!v || v->alias)
      continue;
    /* One for all threads, which each of them would step. */
    const bool own = v->home && v->home->all.at >= body.at &&
                     v->home->all.at < body.at + body.n;
    if (v->uniform && !own && cgl_values_is_assigned(w->t, s->all, v))
      return false;
    worth |=
        is_fraction_type(v->type) && cgl_values_is_assigned(w->t, s->all, v);
    if (v->shared || v->reference || v->dims.n || v->lambda || v->is_auto ||
        cgl_row_has(v->type, "volatile") || !is_number(v->type))
      return false;
  }
  return worth;
}


/* ---- writing ---- */

static void add_row(cgl_tokens *all, row r) {
  for (size_t i = 0; i < r.n; i++)
    cgl_tokens_add(all, r.at[i]);
}


/* The body, in which a jump goes past it: to the loop's step, or past that. */
static void add_body(writer *w, cgl_tokens *all, row body, int id) {
  for (size_t i = 0; i < body.n; i++) {
    const cgl_token *x = &body.at[i];
    if (cgl_token_is(x, "break"))
      cgl_tokens_add(
          all, cgl_tree_token(w->t, x, "{ cgl_in = 0; goto cgl_out_%d; }", id));
    else if (cgl_token_is(x, "continue"))
      cgl_tokens_add(all, cgl_tree_token(w->t, x, "{ goto cgl_step_%d; }", id));
    else {
      cgl_tokens_add(all, *x);
      continue;
    }
    i++; /* past the semicolon, which would end an `if` before its `else` */
  }
}


/* One turn of a lane, of which cgl_m_<mask> says whether it is in the loop. */
static row make_turn(writer *w, const statement *s, row body, int mask) {
  const int id = ++w->labels;
  const bool late = s->kind == STATEMENT_DO, asks = !late && s->cond.n;
  cgl_tokens all = {0};
#define ADD(...) \
  cgl_tokens_add(&all, cgl_tree_token(w->t, s->all.at, __VA_ARGS__))
  ADD("int cgl_in = cgl_m_%d[cgl_l]; if (cgl_in%s", mask, asks ? " && (" : "");
  if (asks)
    add_row(&all, s->cond);
  ADD("%s) {", asks ? ")" : "");
  add_body(w, &all, body, id);
  if (cgl_row_has(body, "continue"))
    ADD("cgl_step_%d:;", id);
  if (late) {
    ADD("cgl_in = (");
    add_row(&all, s->cond);
    ADD(") ? -1 : 0");
  } else
    add_row(&all, s->step);
  ADD(";");
  if (cgl_row_has(body, "break"))
    ADD("cgl_out_%d:;", id);
  ADD("} else cgl_in = 0; cgl_some |= cgl_m_%d[cgl_l] = cgl_in;", mask);
#undef ADD
  w->t->failed |= all.failed;
  const row turn = cgl_tree_copy(w->t, s->all.at, all.failed ? 0 : all.count);
  if (!w->t->failed)
    memcpy(turn.at, all.at, all.count * sizeof *all.at);
  cgl_tokens_free(&all);
  return turn;
}


void cgl_lanes_put(writer *w, statement *s) {
  row head, body;
  if (!find_parts(s->all, 0, &head, &body))
    return;
  cgl_loops_put_list(w, s->init);
  cgl_region_flush(w);
  const int mask = ++w->masks;
  cgl_text_print(w->out,
                 "{ alignas(64) int cgl_m_%d[32], cgl_some; for (unsigned "
                 "cgl_l = 0; cgl_l < 32; cgl_l++) cgl_m_%d[cgl_l] = cgl_l >= "
                 "cgl_f && cgl_l < cgl_m ? -1 : 0;\ndo { cgl_some = 0;\n",
                 mask, mask);
  statement *turn = cgl_tree_new(w->t, STATEMENT_PLAIN);
  turn->all = make_turn(w, s, body, mask);
  w->lanes = true;
  cgl_region_add(w, turn);
  cgl_region_flush(w);
  w->lanes = false;
  cgl_text_put(w->out, "} while (cgl_some); }\n");
}
