/* Operations of several threads that only some evaluate, behind `&&`, `||` or
   `?`, as statements: they are found in statements of their own (inline.c).
     c ? f(x) : g(x);         if (c) f(x); else g(x);
     if (a || f(x)) ...       bool c = a; if (!c) c = f(x); if (c) ...
   Invariant: every part is evaluated once and in its order, or not at all, as
   before.  An operator that stands in a part of another expression is left, and
   so is a `?` whose value is no truth: both its sides have one type, which is
   not known here, before they are converted. */
#include <stdio.h>
#include <string.h>

#include "compile/loops/loops_private.h"

typedef struct chooser {
  tree *t;
  cgl_tokens out;
  int line; /* of what is put */
  int ids, depth;
} chooser;

/* left op right; or left ? right : otherwise. */
typedef struct choice {
  const cgl_token *op; /* NULL: no such */
  row left, right, otherwise;
} choice;


static void lex(chooser *s, const char *text, cgl_tokens *out) {
  const char *copy = cgl_arena_copy(s->t->arena, text, strlen(text));
  if (copy)
    cgl_lex(copy, strlen(text), s->line, out);
  s->t->failed |= !copy;
}


static void put_text(chooser *s, const char *text) {
  lex(s, text, &s->out);
}


static void put_row(chooser *s, row r) {
  s->line = r.n ? r.at->line : s->line;
  for (size_t i = 0; i < r.n; i++)
    cgl_tokens_add(&s->out, r.at[i]);
}


/* The `:` of the `?` at i, or r.n. */
static size_t find_colon(row r, size_t i) {
  size_t open = 0;
  for (i++; i < r.n; i = cgl_tokens_past(r.at, r.n, i))
    if (cgl_token_is(&r.at[i], "?"))
      open++;
    else if (cgl_token_is(&r.at[i], ":") && !open--)
      return i;
  return r.n;
}


/* What the expression chooses last, when what synchronizes is not in all that
   is evaluated in any case. */
static choice find_choice(tree *t, row e) {
  choice c = {NULL};
  e = cgl_row_unwrap(e);
  size_t first = e.n, last[2] = {e.n, e.n}, question = e.n;
  for (size_t i = 0; i < e.n; i = cgl_tokens_past(e.at, e.n, i)) {
    const cgl_token *x = &e.at[i];
    if (cgl_token_is_assignment(x) || cgl_token_is(x, ","))
      return c;
    const bool chooses = cgl_token_is_any(x, "?", "&&", "||");
    if (chooses && first == e.n)
      first = i;
    if (cgl_token_is(x, "?") && question == e.n)
      question = i;
    if (question == e.n && cgl_token_is_any(x, "&&", "||"))
      last[cgl_token_is(x, "||")] = i;
  }
  if (first >= e.n || (!cgl_tree_sync(t, &e.at[first], e.n - first) &&
                       !find_choice(t, cgl_row_slice(e, 0, first)).op))
    return c;
  const size_t at = question < e.n  ? question
                    : last[1] < e.n ? last[1]
                                    : last[0];
  const size_t colon = question < e.n ? find_colon(e, at) : e.n;
  if (question < e.n && colon == e.n)
    return c;
  c.op = &e.at[at];
  c.left = cgl_row_slice(e, 0, at);
  c.right = cgl_row_slice(e, at + 1, colon);
  c.otherwise = cgl_row_slice(e, colon + (colon < e.n), e.n);
  return c;
}


/* Puts the choice as statements that begin with `front`, up to the value. */
static void put_choice(chooser *s, const choice *c, row front) {
  const bool three = cgl_token_is(c->op, "?");
  char name[40], text[100];
  snprintf(name, sizeof name, "cgl_chosen_%d", ++s->ids);
  if (!three && front.n) { /* a value of its own */
    snprintf(text, sizeof text, "bool %s =", name);
    put_text(s, text);
    put_row(s, c->left);
    snprintf(text, sizeof text,
             "; if (%s%s) %s =", cgl_token_is(c->op, "&&") ? "" : "!", name,
             name);
    put_text(s, text);
    put_row(s, c->right);
    put_text(s, ";");
    put_row(s, front);
    snprintf(text, sizeof text, "%s;", name);
    put_text(s, text);
    return;
  }
  put_text(s, cgl_token_is(c->op, "||") ? "if (!(" : "if (");
  put_row(s, c->left);
  put_text(s, cgl_token_is(c->op, "||") ? "))" : ")");
  put_row(s, front);
  put_row(s, c->right);
  put_text(s, three ? "; else" : ";");
  if (!three)
    return;
  put_row(s, front);
  put_row(s, c->otherwise);
  put_text(s, ";");
}


/* Past the `=` or its like of `x = e;`, or of `T x = e;`; or 0. */
static size_t find_value(row s) {
  for (size_t i = 0; i + 1 < s.n; i = cgl_tokens_past(s.at, s.n, i))
    if (cgl_tree_is_equal(&s.at[i]))
      return i + 1;
    else if (cgl_token_is_any(&s.at[i], "?", ",", "&&", "||"))
      return 0;
  return 0;
}


/* T x = e; as T x; and statements, so that x is known behind them. */
static bool put_declaration(chooser *s, row front, const choice *c) {
  const size_t name = front.n - 2; /* in front of the = */
  const bool pointer = cgl_row_has(front, "*");
  if (cgl_row_has(front, "&") || cgl_row_has(front, "[") ||
      cgl_row_has(front, "static") || cgl_row_has(front, "constexpr") ||
      (cgl_row_has(front, "auto") && cgl_token_is(c->op, "?")))
    return false;
  if (!cgl_token_is(c->op, "?")) {
    put_choice(s, c, front);
    return true;
  }
  for (size_t i = 0; i <= name; i++)
    if (!cgl_token_is(&front.at[i], "const") ||
        (pointer && !cgl_token_is(&front.at[i - (i > 0)], "*")))
      put_row(s, cgl_row_slice(front, i, i + 1));
  put_text(s, ";");
  put_choice(s, c, cgl_row_slice(front, name, front.n));
  return true;
}


static void put_list(chooser *s, row list);


/* Reads what was put from `from` on once more. */
static void put_again(chooser *s, size_t from) {
  row made = {NULL, 0};
  if (!s->out.failed)
    made = cgl_tree_copy(s->t, &s->out.at[from], s->out.count - from);
  s->t->failed |= s->out.failed;
  if (s->t->failed || ++s->depth > 64)
    return;
  s->out.count = from;
  put_list(s, made);
  s->depth--;
}


/* What stands behind the `!` of all of the expression, when that is chosen; or
   nothing. */
static row find_negated(tree *t, row e) {
  e = cgl_row_unwrap(e);
  if (e.n < 4 || !cgl_token_is(e.at, "!") || !cgl_token_is(&e.at[1], "(") ||
      cgl_tokens_close(e.at, e.n, 1) != e.n)
    return (row){NULL, 0};
  e = cgl_row_slice(e, 1, e.n);
  return find_choice(t, e).op ? e : (row){NULL, 0};
}


/* `front !(e) back` as a variable that is e, and `front !variable back`. */
static void put_negated(chooser *s, row front, row e, row back) {
  char text[100];
  const int id = ++s->ids;
  snprintf(text, sizeof text, "bool cgl_chosen_%d =", id);
  put_text(s, text);
  put_row(s, e);
  put_text(s, ";");
  put_row(s, front);
  snprintf(text, sizeof text, "!cgl_chosen_%d", id);
  put_text(s, text);
  put_row(s, back);
}


/* T a = e, b = f; as a declaration for each, where one is chosen. */
static bool put_declarators(chooser *s, row one) {
  size_t name = 0, parts = 0, from = s->out.count;
  bool chosen = false;
  while (name + 1 < one.n && one.at[name + 1].kind == CGL_TOKEN_NAME)
    name++;
  const row type = cgl_row_slice(one, 0, name);
  if (!name || cgl_row_has(type, "static") || cgl_row_has(type, "return"))
    return false;
  for (size_t i = name, end; i + 1 < one.n; i = end + 1, parts++) {
    if (one.at[i].kind != CGL_TOKEN_NAME || !cgl_token_is(&one.at[i + 1], "="))
      return false;
    for (end = i; end + 1 < one.n && !cgl_token_is(&one.at[end], ",");)
      end = cgl_tokens_past(one.at, one.n - 1, end);
    const row value = cgl_row_slice(one, i + 2, end);
    chosen |= find_choice(s->t, value).op || find_negated(s->t, value).n;
  }
  if (!chosen || parts < 2)
    return false;
  for (size_t i = name, end; i + 1 < one.n; i = end + 1) {
    for (end = i; end + 1 < one.n && !cgl_token_is(&one.at[end], ",");)
      end = cgl_tokens_past(one.at, one.n - 1, end);
    put_row(s, type);
    put_row(s, cgl_row_slice(one, i, end));
    put_text(s, ";");
  }
  put_again(s, from);
  return true;
}


/* Is it T x = e; of which the value begins there? */
static bool is_declaration(row one, size_t value) {
  return value > 2 && one.at->kind == CGL_TOKEN_NAME &&
         !cgl_token_is(one.at, "return") &&
         cgl_token_is(&one.at[value - 1], "=") &&
         one.at[value - 2].kind == CGL_TOKEN_NAME &&
         (one.at[value - 3].kind == CGL_TOKEN_NAME ||
          cgl_token_is_any(&one.at[value - 3], "*", ">", "&"));
}


/* May the sides of a `?` be converted each for itself?  So to bool. */
static bool is_truth(row front) {
  return !front.n || (cgl_row_has(front, "bool") && !cgl_row_has(front, "*")) ||
         (front.at->length > 11 && !memcmp(front.at->text, "cgl_chosen_", 11));
}


static bool put_chosen(chooser *s, row one) {
  const size_t from = s->out.count;
  const size_t value = cgl_token_is(one.at, "return") ? 1 : find_value(one);
  const row e = cgl_row_slice(one, value, one.n - (one.n > 0));
  const row front = cgl_row_slice(one, 0, value), end = {&one.at[one.n - 1], 1};
  const row negated = find_negated(s->t, e);
  const choice c = find_choice(s->t, e);
  const bool declares = is_declaration(one, value);
  if (!cgl_token_is(end.at, ";") || put_declarators(s, one))
    return cgl_token_is(end.at, ";");
  if ((!c.op && !negated.n) ||
      (c.op && cgl_token_is(c.op, "?") && !is_truth(front)))
    return false;
  if (declares && negated.n)
    put_negated(s, front, negated, end);
  else if (declares && !put_declaration(s, front, &c))
    return false;
  else if (!declares) {
    put_text(s, "{");
    if (negated.n)
      put_negated(s, front, negated, end);
    else
      put_choice(s, &c, front);
    put_text(s, "}");
  }
  put_again(s, from);
  return true;
}


/* `if (a || b) ...`, and `&&` with an else; without one see effects.c. */
static bool put_if(chooser *s, row one) {
  if (!cgl_token_is(one.at, "if") || !cgl_token_is(&one.at[1], "("))
    return false;
  const size_t from = s->out.count;
  const size_t close = cgl_tokens_close(one.at, one.n, 1);
  const row cond = cgl_row_slice(one, 2, close - 1);
  const row negated = find_negated(s->t, cond);
  if (negated.n) {
    put_text(s, "{");
    put_negated(s, cgl_row_slice(one, 0, 2), negated,
                cgl_row_slice(one, close - 1, one.n));
    put_text(s, "}");
    put_again(s, from);
    return true;
  }
  const choice c = find_choice(s->t, cond);
  if (!c.op || (cgl_token_is(c.op, "&&") && cgl_tree_end(one, close) == one.n))
    return false;
  char text[60];
  const int id = s->ids + 100000; /* put_choice has its own */
  snprintf(text, sizeof text, "{ bool cgl_chosen_%d;", id);
  put_text(s, text);
  snprintf(text, sizeof text, "cgl_chosen_%d =", id);
  cgl_tokens front = {0};
  lex(s, text, &front);
  put_choice(s, &c, (row){front.at, front.count});
  s->out.failed |= front.failed;
  cgl_tokens_free(&front);
  snprintf(text, sizeof text, "if (cgl_chosen_%d)", id);
  put_text(s, text);
  put_row(s, cgl_row_slice(one, close, one.n));
  put_text(s, "}");
  put_again(s, from);
  return true;
}


/* A statement as it stands, but for those in it. */
static void put_statement(chooser *s, row one) {
  if (!one.n)
    return;
  if (!cgl_tree_sync(s->t, one.at, one.n)) {
    put_row(s, one);
    return;
  }
  size_t i = 0;
  if (cgl_token_is(one.at, "{")) {
    put_text(s, "{");
    put_list(s, cgl_row_slice(one, 1, one.n - 1));
    put_text(s, "}");
  } else if (put_if(s, one))
    return;
  else if (cgl_token_is_any(one.at, "if", "for", "while")) {
    i = 1 + cgl_token_is(&one.at[1], "constexpr");
    i = cgl_tokens_close(one.at, one.n, i);
    put_row(s, cgl_row_slice(one, 0, i));
    const size_t stop = cgl_tree_end(one, i);
    put_statement(s, cgl_row_slice(one, i, stop));
    if (stop < one.n) {
      put_row(s, cgl_row_slice(one, stop, stop + 1)); /* else */
      put_statement(s, cgl_row_slice(one, stop + 1, one.n));
    }
  } else if (cgl_token_is(one.at, "do")) {
    const size_t stop = cgl_tree_end(one, 1);
    put_row(s, cgl_row_slice(one, 0, 1));
    put_statement(s, cgl_row_slice(one, 1, stop));
    put_row(s, cgl_row_slice(one, stop, one.n));
  } else if (!put_chosen(s, one))
    put_row(s, one);
}


static void put_list(chooser *s, row list) {
  for (size_t i = 0, end; i < list.n && !s->t->failed; i = end) {
    end = cgl_tree_end(list, i);
    put_statement(s, cgl_row_slice(list, i, end));
  }
}


row cgl_choose_rewrite(tree *t, row list) {
  chooser s = {.t = t, .line = list.n ? list.at->line : 0};
  if (t->strips || !(cgl_row_has(list, "?") || cgl_row_has(list, "||") ||
                     cgl_row_has(list, "&&")))
    return list;
  put_list(&s, list);
  t->failed |= s.out.failed;
  if (!t->failed)
    list = cgl_tree_copy(t, s.out.at, s.out.count);
  cgl_tokens_free(&s.out);
  return list;
}
