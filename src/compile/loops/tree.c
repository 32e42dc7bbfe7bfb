/* A row of tokens as statements. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/loops/loops_private.h"

static const char *const refused_words[] = {"goto",
                                            "asm",
                                            "__asm__",
                                            "try",
                                            "__uni_sync",
                                            "__match_all_sync",
                                            "__barrier_sync",
                                            "__barrier_sync_count",
                                            "__nanosleep",
                                            "__func__",
                                            "__FUNCTION__",
                                            "__PRETTY_FUNCTION__",
                                            "mutable",
                                            "alloca",
                                            "__builtin_alloca",
                                            NULL};

#define MOST_NUMBER (1l << 30)


void cgl_tree_refuse(tree *t, const cgl_token *where, const char *format, ...) {
  char text[300];
  va_list args;
  if (t->why)
    return;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  t->why = cgl_arena_copy(t->arena, text, n < 299 ? (size_t)n : 299);
  t->line = where->line;
  t->failed |= !t->why;
}


row cgl_tree_copy(tree *t, const cgl_token *at, size_t n) {
  row r = {cgl_arena_alloc(t->arena, (n + 1) * sizeof *r.at), n};
  if (r.at)
    memcpy(r.at, at, n * sizeof *at);
  else
    t->failed = true, r.n = 0;
  return r;
}


cgl_token cgl_tree_token(tree *t, const cgl_token *where, const char *format,
                         ...) {
  char text[200];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(text, sizeof text, format, args);
  va_end(args);
  cgl_token token = *where;
  token.kind = CGL_TOKEN_NAME;
  token.text = cgl_arena_copy(t->arena, text, (size_t)n);
  token.length = token.text ? (uint32_t)n : 0;
  t->failed |= !token.text;
  return token;
}


row cgl_row_slice(row r, size_t from, size_t to) {
  return (row){r.at + from, to > from ? to - from : 0};
}


row cgl_row_unwrap(row r) {
  while (r.n > 2 && cgl_token_is(r.at, "(") &&
         cgl_tokens_close(r.at, r.n, 0) == r.n)
    r = cgl_row_slice(r, 1, r.n - 1);
  return r;
}


size_t cgl_row_find(row r, const char *a, const char *b) {
  size_t i = 0;
  while (i < r.n && !cgl_token_is_any(&r.at[i], a, b))
    i = cgl_token_is_any(&r.at[i], "(", "[") ? cgl_tokens_close(r.at, r.n, i)
                                             : i + 1;
  return i;
}


bool cgl_row_has(row r, const char *word) {
  for (size_t i = 0; i < r.n; i++)
    if (cgl_token_is(&r.at[i], word))
      return true;
  return false;
}


size_t cgl_tree_lambda(row r, size_t i) {
  if (!cgl_token_is(&r.at[i], "[") ||
      (i && !cgl_token_is(&r.at[i - 1], "return") &&
       (r.at[i - 1].kind != CGL_TOKEN_PUNCT ||
        cgl_token_is_any(&r.at[i - 1], ")", "]"))))
    return 0;
  size_t k = cgl_tokens_close(r.at, r.n, i);
  if (k < r.n && cgl_token_is(&r.at[k], "("))
    k = cgl_tokens_close(r.at, r.n, k);
  else if (k >= r.n || !cgl_token_is(&r.at[k], "{"))
    return 0;
  while (k < r.n && !cgl_token_is_any(&r.at[k], "{", ";", ")", "}"))
    k++;
  return k < r.n && cgl_token_is(&r.at[k], "{") ? cgl_tokens_close(r.at, r.n, k)
                                                : 0;
}


size_t cgl_tree_returns(row r) {
  size_t n = 0;
  for (size_t i = 0; i < r.n; i++) {
    size_t end = cgl_tree_lambda(r, i);
    if (end)
      i = end - 1;
    else
      n += cgl_token_is(&r.at[i], "return");
  }
  return n;
}


bool cgl_tree_is_name(row r, size_t i) {
  return r.at[i].kind == CGL_TOKEN_NAME &&
         !(i && cgl_token_is_any(&r.at[i - 1], ".", "->", "::"));
}


bool cgl_tree_is_step(const cgl_token *t) {
  return cgl_token_is_any(t, "++", "--");
}


bool cgl_tree_is_equal(const cgl_token *t) {
  return cgl_token_is_assignment(t) && !cgl_tree_is_step(t);
}


void cgl_tree_renew(tree *t) {
  tree again = {.program = t->program,
                .arena = t->arena,
                .kernel = t->kernel,
                .given = t->given,
                .aliases = t->given,
                .known = t->known,
                .reached = t->reached,
                .known_bodies = t->known_bodies,
                .bodies = t->bodies,
                .strips = t->strips,
                .turns = t->turns,
                .text = t->text,
                .nplain = t->nplain,
                .ncommons = t->ncommons,
                .nleaves = t->nleaves,
                .lone = t->lone,
                .reads = t->reads + 1};
  memcpy(again.plain, t->plain, sizeof again.plain);
  memcpy(again.commons, t->commons, sizeof again.commons);
  memcpy(again.leaves, t->leaves, sizeof again.leaves);
  *t = again;
  t->last = &t->variables;
  if (t->strips) { /* functions whose loops are plain now are called */
    memset(t->known, 0, t->program->nchunks);
    t->known_bodies = NULL;
  }
}


statement *cgl_tree_new(tree *t, statement_kind kind) {
  static statement spare;
  statement *s = cgl_arena_alloc(t->arena, sizeof *s);
  if (!s)
    return t->failed = true, &spare;
  s->kind = kind;
  s->inlined = t->depth > 0;
  return s;
}


variable *cgl_tree_find(const tree *t, const cgl_token *name) {
  variable *v = t->variables;
  if (name->kind != CGL_TOKEN_NAME)
    return NULL;
  while (v && !cgl_token_same(&v->name, name))
    v = v->next;
  return v;
}


bool cgl_tree_is_argument(const variable *v) {
  return v->parameter && v->value.n;
}


variable *cgl_tree_declare(tree *t, const cgl_token *name) {
  static variable spare;
  variable *v = cgl_arena_alloc(t->arena, sizeof *v);
  if (!v)
    return t->failed = true, &spare;
  *v = (variable){.name = *name, .region = -1, .run = -1};
  *t->last = v;
  t->last = &v->next;
  return v;
}


variable *cgl_tree_alias(tree *t, const cgl_token *name, row type) {
  variable *v = cgl_tree_declare(t, name);
  cgl_alias *alias = cgl_arena_alloc(t->arena, sizeof *alias);
  row value = cgl_tree_copy(t, type.at ? type.at : name, type.n + 1);
  if (!alias || t->failed)
    return t->failed = true, v;
  memmove(&value.at[1], &value.at[0], type.n * sizeof *value.at);
  value.at[0] = cgl_tree_token(t, name, "=");
  value.at[0].kind = CGL_TOKEN_PUNCT;
  value.n = type.n + 1;
  v->alias = true;
  v->value = value;
  *alias = (cgl_alias){
      .name = *name, .at = &value.at[1], .count = type.n, .outer = t->aliases};
  if (type.n)
    t->aliases = alias;
  return v;
}


/* ---- statements ---- */

size_t cgl_tree_end(row r, size_t i) {
  for (;;) /* what the compiler is told of a statement belongs to it */
    if (i + 1 < r.n && cgl_token_is(&r.at[i], "[") &&
        cgl_token_is(&r.at[i + 1], "["))
      i = cgl_tokens_close(r.at, r.n, i);
    else if (i + 1 < r.n && cgl_token_is(&r.at[i], "_Pragma"))
      i = cgl_tokens_close(r.at, r.n, i + 1);
    else
      break;
  if (i >= r.n)
    return r.n;
  const cgl_token *x = &r.at[i];
  if (cgl_token_is(x, "{"))
    return cgl_tokens_close(r.at, r.n, i);
  if (cgl_token_is_any(x, "if", "for", "while", "switch")) {
    size_t open = i + 1;
    if (open < r.n && cgl_token_is(&r.at[open], "constexpr"))
      open++;
    size_t end = cgl_tree_end(r, cgl_tokens_close(r.at, r.n, open));
    if (cgl_token_is(x, "if") && end < r.n && cgl_token_is(&r.at[end], "else"))
      end = cgl_tree_end(r, end + 1);
    return end;
  }
  if (cgl_token_is(x, "do"))
    i = cgl_tree_end(r, i + 1);
  while (i < r.n && !cgl_token_is(&r.at[i], ";"))
    i = cgl_tokens_past(r.at, r.n, i);
  return i < r.n ? i + 1 : r.n;
}


bool cgl_tree_number(row r, size_t *i, long *n) {
  const bool minus = *i < r.n && cgl_token_is(&r.at[*i], "-");
  const size_t at = *i + minus;
  char *end;
  if (at >= r.n || r.at[at].kind != CGL_TOKEN_NUMBER)
    return false;
  *n = strtol(r.at[at].text, &end, 0);
  *n = minus ? -*n : *n;
  *i = at + 1;
  return end == r.at[at].text + r.at[at].length && *n >= -MOST_NUMBER &&
         *n <= MOST_NUMBER;
}


unsigned long cgl_tree_turns(row r, size_t i) {
  size_t close = i + 1 < r.n ? cgl_tokens_close(r.at, r.n, i + 1) : r.n;
  size_t at = i + 5;
  long first, last, step = 1;
  if (!cgl_token_is(&r.at[i], "for") || close >= r.n || at >= close)
    return 0;
  const cgl_token *c = &r.at[i + 3];
  if (c->kind != CGL_TOKEN_NAME || !cgl_token_is(&r.at[i + 4], "=") ||
      !cgl_tree_number(r, &at, &first) || at + 3 >= close ||
      !cgl_token_is(&r.at[at], ";") || !cgl_token_same(&r.at[at + 1], c) ||
      !cgl_token_is_any(&r.at[at + 2], "<", "<="))
    return 0;
  const bool too = cgl_token_is(&r.at[at + 2], "<=");
  at += 3;
  if (!cgl_tree_number(r, &at, &last) || at + 3 >= close ||
      !cgl_token_is(&r.at[at], ";"))
    return 0;
  last += too;
  at++;
  const bool before = cgl_token_is(&r.at[at], "++");
  if (!cgl_token_same(&r.at[at + before], c))
    return 0;
  at += 2;
  if (!before && cgl_token_is(&r.at[at - 1], "+=")) {
    if (!cgl_tree_number(r, &at, &step) || step < 1)
      return 0;
  } else if (!before && !cgl_token_is(&r.at[at - 1], "++"))
    return 0;
  return at + 1 == close && last > first && last - first <= 64
             ? (unsigned long)((last - first + step - 1) / step)
             : 0;
}


/* Does a break or a continue in the row leave it? */
static bool is_escaping(row r, bool in_switch) {
  for (size_t i = 0; i < r.n; i++) {
    if (r.at[i].kind != CGL_TOKEN_NAME)
      continue;
    if (cgl_token_is(&r.at[i], "continue") ||
        (!in_switch && cgl_token_is(&r.at[i], "break")))
      return true;
    if (cgl_token_is_any(&r.at[i], "for", "while", "do", "switch")) {
      size_t end = cgl_tree_end(r, i);
      if (cgl_token_is(&r.at[i], "switch") && end > i + 1 &&
          is_escaping(cgl_row_slice(r, i + 1, end), true))
        return true;
      i = end - 1;
    }
  }
  return false;
}


static bool is_attribute(const cgl_token *x) {
  return cgl_token_is_any(x, "alignas", "__align__", "__attribute__");
}


size_t cgl_tree_specifiers(row r, size_t i, variable *v, row type,
                           size_t *ntype) {
  size_t k = i;
  bool seen = false, external = false;
  *ntype = 0;
  while (k < r.n && r.at[k].kind == CGL_TOKEN_NAME) {
    const cgl_token *x = &r.at[k];
    if (is_attribute(x)) {
      k = cgl_tokens_close(r.at, r.n, k + 1);
      continue;
    }
    v->shared |= cgl_token_is(x, "__shared__");
    v->constant |= cgl_token_is(x, "constexpr");
    v->is_auto |= cgl_token_is(x, "auto");
    external |= cgl_token_is(x, "extern");
    if (cgl_token_is_any(x, "static", "register", "__shared__", "extern",
                         "constexpr")) {
      k++;
      continue;
    }
    bool named = !cgl_token_is_type_word(x) && !cgl_token_is(x, "auto");
    if (named && seen)
      break;
    seen |= !cgl_token_is_any(x, "const", "volatile", "struct", "typename");
    size_t from = k++;
    while (named && k + 1 < r.n && cgl_token_is_any(&r.at[k], "::", "<"))
      k = cgl_token_is(&r.at[k], "<") ? cgl_tokens_close_angle(r.at, r.n, k)
                                      : k + 2;
    for (size_t j = from; j < k; j++)
      type.at[(*ntype)++] = r.at[j];
  }
  v->dynamic = v->shared && external;
  return seen ? k : i;
}


/* The stars of a declarator. */
static size_t read_stars(row r, size_t k, variable *v, row type,
                         size_t *ntype) {
  while (k < r.n &&
         cgl_token_is_any(&r.at[k], "*", "&", "&&", "const", "__restrict__",
                          "__restrict", "volatile")) {
    v->reference |= cgl_token_is_any(&r.at[k], "&", "&&");
    type.at[(*ntype)++] = r.at[k++];
  }
  return k;
}


static bool is_declaration(tree *t, row r) {
  variable v = {.region = 0};
  row type = cgl_tree_copy(t, r.at, r.n);
  size_t n, k = cgl_tree_specifiers(r, 0, &v, type, &n);
  if (!k)
    return false;
  k = read_stars(r, k, &v, type, &n);
  return k + 1 < r.n && r.at[k].kind == CGL_TOKEN_NAME &&
         cgl_token_is_any(&r.at[k + 1], "=", ";", ",", "[", "(", "{");
}


/* The `if`, `for` or the like in whose header the declaration at i stands, or
   r.n. */
static size_t header_of(row r, size_t i) {
  size_t depth = 0;
  for (size_t k = i; k-- > 1;)
    if (cgl_token_is_any(&r.at[k], ")", "]", "}"))
      depth++;
    else if (depth)
      depth -= cgl_token_is_any(&r.at[k], "(", "[", "{");
    else if (cgl_token_is_any(&r.at[k], "(", "{", "[")) {
      k -= 1 + (k > 1 && cgl_token_is(&r.at[k - 1], "constexpr"));
      const bool header = cgl_token_is_any(&r.at[k], "if", "for", "while") ||
                          cgl_token_is(&r.at[k], "switch");
      return header ? k : r.n;
    }
  return r.n;
}


/* Past what the declaration at i hides its name in: the rest of its block, or
   the statement whose header it stands in. */
static size_t hidden_end(row r, size_t i) {
  size_t k = i;
  while (k && (r.at[k - 1].kind == CGL_TOKEN_NAME ||
               cgl_token_is_any(&r.at[k - 1], "*", "&", "::")))
    k--;
  const size_t header = header_of(r, i);
  if (header < r.n)
    return cgl_tree_end(r, header);
  if (k && cgl_token_is_any(&r.at[k - 1], "(", ",")) {
    /* a lambda's parameter */
    for (k = i; k < r.n && !cgl_token_is_any(&r.at[k], ")", ";", "{");)
      k = cgl_token_is_any(&r.at[k], "(", "[") ? cgl_tokens_close(r.at, r.n, k)
                                               : k + 1;
    if (k < r.n && cgl_token_is(&r.at[k], ")"))
      while (k < r.n && !cgl_token_is_any(&r.at[k], ";", "{"))
        k++;
    if (k < r.n && cgl_token_is(&r.at[k], "{"))
      return cgl_tokens_close(r.at, r.n, k);
  }
  while (i < r.n && !cgl_token_is(&r.at[i], "}"))
    i = cgl_tokens_past(r.at, r.n, i);
  return i;
}


/* Renames from the declaration at `from` on, but for where another variable
   has the name. */
static void rename_tokens(row r, size_t from, cgl_token name) {
  cgl_token was = r.at[from];
  for (size_t i = from; i < r.n; i++) {
    if (!cgl_tree_is_name(r, i) || !cgl_token_same(&r.at[i], &was))
      continue;
    if (i > from && r.at[i - 1].kind == CGL_TOKEN_NAME &&
        !cgl_token_is_any(&r.at[i - 1], "return", "else", "do", "case",
                          "sizeof")) {
      i = hidden_end(r, i) - 1;
      continue;
    }
    r.at[i].text = name.text;
    r.at[i].length = name.length;
  }
}


variable *cgl_tree_declare_at(tree *t, row r, size_t i, const variable *like) {
  const cgl_token *origin = t->origin ? t->origin + (&r.at[i] - t->copy) : NULL;
  if (like->shared)
    for (variable *v = t->variables; v; v = v->next)
      if (v->origin && v->origin == origin) {
        rename_tokens(r, i, v->name);
        return NULL;
      }
  rename_tokens(r, i,
                cgl_tree_token(t, &r.at[i],
                               like->shared && !like->dynamic ? "cgl_s_%.*s__%d"
                                                              : "%.*s__%d",
                               (int)r.at[i].length, r.at[i].text, ++t->ids));
  variable *v = cgl_tree_declare(t, &r.at[i]);
  cgl_token name = v->name;
  variable *next = v->next;
  *v = *like;
  v->name = name;
  v->next = next;
  v->origin = origin;
  v->region = v->run = -1;
  return v;
}


/* The dimensions of `T name[] = {...}`, where the first is how many there are.
 */
static row count_elements(tree *t, row dims, row value) {
  size_t n = 0;
  if (dims.n < 2 || !cgl_token_is(&dims.at[1], "]") || value.n < 3 ||
      !cgl_token_is(value.at, "=") || !cgl_token_is(&value.at[1], "{") ||
      cgl_tokens_close(value.at, value.n, 1) != value.n)
    return dims;
  for (size_t i = 0; i < value.n; i++)
    if (cgl_token_is(&value.at[i], "<"))
      return dims; /* a comma in <> is no element's */
  for (size_t i = 2; i + 1 < value.n; n++) {
    if (dims.n > 2 && !cgl_token_is(&value.at[i], "{"))
      return dims;
    while (i + 1 < value.n && !cgl_token_is(&value.at[i], ","))
      i = cgl_tokens_past(value.at, value.n, i);
    i++;
  }
  row made = cgl_tree_copy(t, dims.at, dims.n + 1);
  if (t->failed)
    return dims;
  memcpy(&made.at[2], &dims.at[1], (dims.n - 1) * sizeof *dims.at);
  made.at[1] = cgl_tree_token(t, dims.at, "%zu", n);
  made.at[1].kind = CGL_TOKEN_NUMBER;
  made.n = dims.n + 1;
  return made;
}


bool cgl_tree_is_fundamental(row type) {
  for (size_t i = 0; i < type.n; i++)
    if (!cgl_token_is_type_word(&type.at[i]) && !cgl_token_is(&type.at[i], "*"))
      return false;
  return type.n > 0;
}


/* int x(1), int x{1} and int x{} are int x = 1 and int x = 0, as which their
   values are read: r[value..end), of which the new end comes back. */
static size_t assign_value(tree *t, row r, size_t value, size_t end) {
  const cgl_token *open = &r.at[value];
  if (cgl_tokens_close(r.at, end, value) != end)
    return end;
  if (end - value > 2)
    end--;
  else if (cgl_token_is(open, "{")) {
    r.at[value + 1] = cgl_tree_token(t, open, "0");
    r.at[value + 1].kind = CGL_TOKEN_NUMBER;
  } else
    return end;
  r.at[value] = cgl_tree_token(t, open, "=");
  r.at[value].kind = CGL_TOKEN_PUNCT;
  return end;
}


/* A statement for every declarator of r[from..to); names hold to r's end. */
static statement **read_declaration(tree *t, row r, size_t from, size_t to,
                                    statement **tail) {
  variable base = {.region = -1};
  row type = cgl_tree_copy(t, r.at + from, to - from);
  size_t nbase,
      k = cgl_tree_specifiers((row){r.at, to}, from, &base, type, &nbase);
  while (k < to) {
    variable v = base;
    row own = cgl_tree_copy(t, type.at, to - from);
    size_t n = nbase, start = k;
    k = read_stars((row){r.at, to}, k, &v, own, &n);
    if (k + 1 >= to || r.at[k].kind != CGL_TOKEN_NAME ||
        !cgl_token_is_any(&r.at[k + 1], "=", ";", ",", "[", "(", "{")) {
      cgl_tree_refuse(t, &r.at[start], "a declaration that is not understood");
      return tail;
    }
    own.n = n;
    v.type = own;
    size_t name = k++;
    while (k < to && cgl_token_is(&r.at[k], "["))
      k = cgl_tokens_close(r.at, to, k);
    v.dims = cgl_row_slice(r, name + 1, k);
    size_t value = k;
    v.constructed = k < to && cgl_token_is_any(&r.at[k], "(", "{");
    while (k < to && !cgl_token_is_any(&r.at[k], ",", ";"))
      k = cgl_tokens_past(r.at, to, k);
    size_t end = k;
    if (v.constructed && !v.dims.n &&
        (v.is_auto || cgl_tree_is_fundamental(own)))
      end = assign_value(t, r, value, k);
    v.constructed &= !cgl_token_is(&r.at[value], "=");
    v.dims = count_elements(t, v.dims, cgl_row_slice(r, value, end));
    v.lambda =
        v.is_auto && value + 1 < end &&
        cgl_tree_lambda(cgl_row_slice(r, value + 1, end), 0) == end - value - 1;
    variable *declared = cgl_tree_declare_at(t, r, name, &v);
    if (declared && v.lambda && cgl_tree_sync(t, &r.at[value], end - value)) {
      declared->value = cgl_row_slice(r, value, end);
      declared->function = true;
    } else if (declared) {
      statement *s = cgl_tree_new(t, STATEMENT_DECLARATION);
      s->variable = declared;
      s->value = declared->value = cgl_row_slice(r, value, end);
      s->all = cgl_row_slice(r, name, end);
      declared->home = s;
      *tail = s;
      tail = &s->next;
    }
    k++;
  }
  return tail;
}


static statement **read_statement(tree *t, row r, size_t i, size_t end,
                                  statement **tail);


static statement *read_list(tree *t, row r) {
  statement *first = NULL, **tail = &first;
  for (size_t i = 0; i < r.n && !t->why && !t->failed;) {
    size_t end = cgl_tree_end(r, i);
    tail = read_statement(t, r, i, end, tail);
    i = end;
  }
  return first;
}


statement *cgl_tree_read_body(tree *t, row r, size_t from, size_t to) {
  if (from < to && cgl_token_is(&r.at[from], "{"))
    return read_list(t, cgl_row_slice(r, from + 1, to - 1));
  return read_list(t, cgl_row_slice(r, from, to));
}


static void read_for(tree *t, row r, size_t open, size_t close, statement *s) {
  size_t first = open + 1, second;
  while (first < close && !cgl_token_is(&r.at[first], ";"))
    first = cgl_tokens_past(r.at, close, first);
  for (second = first + 1; second < close && !cgl_token_is(&r.at[second], ";");)
    second++;
  if (second >= close) {
    cgl_tree_refuse(t, &r.at[open], "a barrier in a loop over a range");
    return;
  }
  row init = cgl_row_slice(r, open + 1, first + 1);
  if (is_declaration(t, init))
    read_declaration(t, r, open + 1, first + 1, &s->init);
  else if (init.n > 1 && !cgl_effects_read(t, init, &s->init)) {
    s->init = cgl_tree_new(t, STATEMENT_PLAIN);
    s->init->all = init;
  }
  s->cond = cgl_row_slice(r, first + 1, second);
  s->step = cgl_row_slice(r, second + 1, close - 1);
}


/* An if or a loop that is split. */
static statement *read_control(tree *t, row r, size_t i, size_t end) {
  const cgl_token *x = &r.at[i];
  bool branch = cgl_token_is(x, "if");
  statement *s = cgl_tree_new(t, branch                     ? STATEMENT_IF
                                 : cgl_token_is(x, "for")   ? STATEMENT_FOR
                                 : cgl_token_is(x, "while") ? STATEMENT_WHILE
                                                            : STATEMENT_DO);
  r.n = end;
  if (s->kind == STATEMENT_DO) {
    size_t stop = cgl_tree_end(r, i + 1);
    t->loops++;
    s->body = cgl_tree_read_body(t, r, i + 1, stop);
    t->loops--;
    size_t close = cgl_tokens_close(r.at, end, stop + 1);
    s->cond = cgl_row_slice(r, stop + 2, close - 1);
    return s;
  }
  if (i + 1 < end && cgl_token_is(&r.at[i + 1], "constexpr"))
    i++;
  size_t close = cgl_tokens_close(r.at, end, i + 1);
  if (s->kind == STATEMENT_FOR)
    read_for(t, r, i + 1, close, s);
  else
    s->cond = cgl_row_slice(r, i + 2, close - 1);
  size_t stop = branch ? cgl_tree_end(r, close) : end;
  t->loops += !branch;
  s->body = cgl_tree_read_body(t, r, close, stop);
  if (branch && stop < end)
    s->otherwise = cgl_tree_read_body(t, r, stop + 1, end);
  t->loops -= !branch;
  return s;
}


/* Does a break or continue leave the statement for a loop with barriers? */
static bool leaves_loop(const tree *t, row all) {
  bool chosen = cgl_token_is(all.at, "switch");
  return t->loops && !cgl_token_is_any(all.at, "for", "while", "do") &&
         is_escaping(chosen ? cgl_row_slice(all, 1, all.n) : all, chosen);
}


static statement **read_statement(tree *t, row r, size_t i, size_t end,
                                  statement **tail) {
  i = cgl_tree_split_types(t, r, i, end);
  row all = cgl_row_slice(r, i, end);
  const row nested = cgl_effects_nest(t, all);
  if (nested.at != all.at)
    return read_statement(t, nested, 0, nested.n, tail);
  const cgl_token *x = &r.at[i];
  statement *s = NULL;
  if (cgl_token_is(x, ";"))
    return tail;
  if (cgl_tree_declares_type(all)) {
    cgl_tree_declare_type(t, all);
    return tail;
  }
  bool control = cgl_token_is_any(x, "if", "for", "while", "do", "switch", "{");
  if (cgl_leave_is(t, r, i))
    return cgl_leave_read(t, r, i, end, tail);
  if (cgl_token_is_any(x, "break", "continue")) {
    s = cgl_tree_new(t, STATEMENT_JUMP);
  } else if (cgl_apart_is_loop(t, r, i)) {
    s = read_control(t, r, i, end);
    s->apart = true;
    t->aparts++;
  } else if (control &&
             (cgl_tree_sync(t, all.at, all.n) || leaves_loop(t, all) ||
              cgl_common_is_control(t, r, i))) {
    if (cgl_token_is(x, "switch"))
      cgl_tree_refuse(t, x,
                      "a switch around a barrier, or that continues a loop "
                      "with one");
    else if (cgl_token_is(x, "{")) {
      s = cgl_tree_new(t, STATEMENT_BLOCK);
      s->body = read_list(t, cgl_row_slice(r, i + 1, end - 1));
    } else
      s = read_control(t, r, i, end);
    if (s && cgl_strip_is_loop(t, r, i)) {
      cgl_strip_end_loop(t, s, x);
      t->turned++;
    }
    if (s)
      s->common = cgl_common_is_control(t, r, i);
  } else if (cgl_token_is_any(x, "using", "typedef", "class", "union", "enum",
                              "case", "default", "#") ||
             (all.n > 2 && cgl_token_is(x, "struct") &&
              (cgl_token_is(&x[2], "{") || cgl_token_is(&x[1], "{"))) ||
             (all.n > 1 && cgl_token_is(&x[1], ":"))) {
    cgl_tree_refuse(t, x, "a declaration or label beside a barrier: '%.*s'",
                    (int)x->length, x->text);
  } else if (!control && !cgl_token_is(x, "return") && is_declaration(t, all))
    return read_declaration(t, r, i, end, tail);
  else {
    statement **last = control ? NULL : cgl_effects_read(t, all, tail);
    if (last)
      return last;
  }
  if (!s)
    s = cgl_tree_new(t, STATEMENT_PLAIN);
  s->all = all;
  *tail = s;
  return &s->next;
}


statement *cgl_tree_read(tree *t, row r) {
  for (size_t i = 0; i < r.n; i++) {
    const cgl_token *x = &r.at[i];
    if (x->kind == CGL_TOKEN_NAME &&
        (cgl_token_is_of(x, refused_words) ||
         cgl_program_expands(t->program, r.at, r.n, i)))
      cgl_tree_refuse(t, x, "'%.*s'", (int)x->length, x->text);
    bool named = i > 2 && cgl_token_is(&r.at[i - 1], "=") &&
                 cgl_token_is(&r.at[i - 3], "auto");
    size_t end = cgl_tree_lambda(r, i);
    if (end && !named && cgl_tree_sync(t, x, end - i))
      cgl_tree_refuse(t, x, "a lambda without a name, which synchronizes");
  }
  return t->why ? NULL : read_list(t, r);
}


bool cgl_tree_is_left(const statement *s) {
  for (int side = 0; side < 2; side++)
    for (const statement *in = side ? s->otherwise : s->body; in; in = in->next)
      if (in->escapes)
        return true;
  return false;
}


void cgl_tree_mark(tree *t, statement *list) {
  for (statement *s = list; s; s = s->next) {
    cgl_tree_mark(t, s->body);
    cgl_tree_mark(t, s->otherwise);
    cgl_tree_mark(t, s->head);
    for (statement *in = s->head; in; in = in->next)
      s->sync |= in->sync;
    s->sync |= s->kind == STATEMENT_BARRIER ? SYNC_BLOCK
               : s->kind == STATEMENT_WARP  ? SYNC_WARP
               : s->apart || s->common      ? SYNC_APART
                                            : 0;
    s->escapes = s->kind == STATEMENT_JUMP;
    bool loop = s->kind == STATEMENT_FOR || s->kind == STATEMENT_WHILE ||
                s->kind == STATEMENT_DO;
    for (int side = 0; side < 2; side++)
      for (statement *in = side ? s->otherwise : s->body; in; in = in->next) {
        s->sync |= in->sync;
        s->escapes |= in->escapes && !loop;
      }
  }
}
