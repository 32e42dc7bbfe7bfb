/* Names that a region declares for itself, in code that is not looked into: the
   variables of loops, `for (int d = -2; d <= 2; d++)`, and sums of them and of
   what all threads have, `int at = x + d;`.  With them a place in an array is
   known inside such loops, too.
   Invariant: every name that the region declares is in the list, so what is not
   there means what it means outside.  A usable one has one meaning in the
   region, and nothing but its loop's header changes it. */
#include <string.h>

#include "compile/loops/write_private.h"

#define MOST_DEPTH 8 /* of variables in each other's values */


static bool is_keyword(const cgl_token *x) {
  return cgl_token_is_any(x, "return", "else", "case", "goto", "do", "throw",
                          "sizeof");
}


static bool same_rows(row a, row b) {
  if (a.n != b.n)
    return false;
  for (size_t i = 0; i < a.n; i++)
    if (!cgl_token_same(&a.at[i], &b.at[i]))
      return false;
  return true;
}


static inner_name *find(writer *w, const cgl_token *name) {
  for (size_t i = 0; i < w->ninner; i++)
    if (cgl_token_same(w->inner[i].name, name))
      return &w->inner[i];
  return NULL;
}


/* Past what ends at a comma or a semicolon. */
static size_t find_end(row r, size_t i) {
  while (i < r.n && !cgl_token_is_any(&r.at[i], ",", ";", ")"))
    i = cgl_tokens_past(r.at, r.n, i);
  return i;
}


static void add(writer *w, inner_name one) {
  inner_name *known = find(w, one.name);
  if (known)
    known->usable &= one.usable && same_rows(known->type, one.type) &&
                     same_rows(known->value, one.value) &&
                     same_rows(known->end, one.end) &&
                     known->below == one.below;
  else if (w->ninner < MAX_INNER)
    w->inner[w->ninner++] = one;
  else
    w->crowded = true;
}


/* int a = 1, b = 2; at i.  *r loses the names, so that it does not seem to
   change them. */
static void read_declaration(writer *w, row r, size_t i, row blank) {
  size_t from = i;
  while (i < r.n && cgl_token_is_any(&r.at[i], "int", "const", "long"))
    i++;
  const row type = cgl_row_slice(r, from, i);
  while (i + 2 < r.n && r.at[i].kind == CGL_TOKEN_NAME) {
    const size_t end = find_end(r, i + 1);
    if (cgl_token_is(&r.at[i + 1], "=")) {
      add(w, (inner_name){.name = &r.at[i],
                          .type = type,
                          .value = cgl_row_slice(r, i + 2, end),
                          .usable = true});
      blank.at[i].kind = CGL_TOKEN_NUMBER;
    }
    if (end >= r.n || !cgl_token_is(&r.at[end], ","))
      break;
    i = end + 1;
  }
}


/* for (int d = 0; d < 5; d++) at i. */
static void read_loop(writer *w, row r, size_t i, row blank) {
  const size_t close = cgl_tokens_close(r.at, r.n, i + 1);
  size_t at = i + 2;
  while (at < close && cgl_token_is_any(&r.at[at], "int", "const", "long"))
    at++;
  const size_t first = find_end(r, at), second = find_end(r, first + 1);
  if (at == i + 2 || second + 3 > close || !cgl_token_is(&r.at[at + 1], "=") ||
      !cgl_token_is(&r.at[first], ";") || !cgl_token_is(&r.at[second], ";") ||
      first + 3 > second)
    return;
  const cgl_token *name = &r.at[at], *step = &r.at[second + 1];
  size_t number = second + 3;
  long by = 1;
  const bool counts =
      cgl_token_is(step, "++")
          ? cgl_token_same(step + 1, name)
          : cgl_token_same(step, name) && (cgl_token_is(step + 1, "++") ||
                                           (cgl_token_is(step + 1, "+=") &&
                                            cgl_tree_number(r, &number, &by)));
  if (!counts || by < 1 || number + 1 != close ||
      !cgl_token_same(&r.at[first + 1], name) ||
      !cgl_token_is_any(&r.at[first + 2], "<", "<="))
    return;
  add(w, (inner_name){.name = name,
                      .type = cgl_row_slice(r, i + 2, at),
                      .value = cgl_row_slice(r, at + 2, first),
                      .end = cgl_row_slice(r, first + 3, second),
                      .below = cgl_token_is(&r.at[first + 2], "<"),
                      .usable = true});
  blank.at[at].kind = CGL_TOKEN_NUMBER;
  for (size_t k = first; k < close; k++)
    if (cgl_token_same(&r.at[k], name))
      blank.at[k].kind = CGL_TOKEN_NUMBER;
}


static void read_names(writer *w, row r, row blank) {
  for (size_t i = 0; i + 4 < r.n; i++)
    if (cgl_token_is(&r.at[i], "for") && cgl_token_is(&r.at[i + 1], "("))
      read_loop(w, r, i, blank);
    else if (cgl_token_is_any(&r.at[i], "int", "const", "long") &&
             (!i || cgl_token_is_any(&r.at[i - 1], "{", "}", ";")))
      read_declaration(w, r, i, blank);
}


/* Is the > in front of token i the end of a template's arguments? */
static bool ends_arguments(row r, size_t i) {
  while (--i)
    if (cgl_token_is_any(&r.at[i - 1], ";", "{", "}"))
      return false;
    else if (cgl_token_is(&r.at[i - 1], "<"))
      return true;
  return false;
}


/* May the row declare the name at i?  `depth`: of brackets around it. */
static bool is_declared(row r, size_t i, size_t depth) {
  if (!i || cgl_token_is_type_word(&r.at[i]))
    return false;
  const cgl_token *last = &r.at[i - 1];
  const bool starts =
      i + 1 < r.n && cgl_token_is_any(&r.at[i + 1], "=", "(", "{");
  if (last->kind == CGL_TOKEN_NAME)
    return !is_keyword(last);
  if (cgl_token_is(last, ",")) /* in a loop's header, too */
    return !depth || starts;
  if (cgl_token_is(last, ">"))
    return ends_arguments(r, i);
  if (!cgl_token_is_any(last, "*", "&", "&&") || i < 2)
    return false;
  const cgl_token *type = &r.at[i - 2];
  return cgl_token_is_type_word(type) || cgl_token_is(type, "auto") ||
         (type->kind == CGL_TOKEN_NAME &&
          (starts || i == 2 || cgl_token_is_any(&r.at[i - 3], "{", "}", ";")));
}


/* Adds what may be declared and was not read, as what is not usable.  In
   `blank`, names that were read are none. */
static void add_others(writer *w, row blank) {
  size_t depth = 0;
  for (size_t i = 0; i < blank.n; i++) {
    if (cgl_token_is_any(&blank.at[i], "(", "["))
      depth++;
    else if (cgl_token_is_any(&blank.at[i], ")", "]") && depth)
      depth--;
    if (cgl_tree_is_name(blank, i) && is_declared(blank, i, depth))
      add(w, (inner_name){.name = &blank.at[i]});
    /* names without a type in front of them */
    w->crowded |= cgl_token_is(&blank.at[i], "enum") ||
                  (i && cgl_token_is(&blank.at[i], "[") &&
                   cgl_token_is_any(&blank.at[i - 1], "auto", "&", "&&"));
  }
}


static void drop_changed(writer *w, row blank) {
  for (size_t i = 0; i < w->ninner; i++) {
    const variable v = {.name = *w->inner[i].name};
    size_t chunk;
    w->inner[i].usable = w->inner[i].usable &&
                         !cgl_values_is_assigned(w->t, blank, &v) &&
                         !cgl_values_is_addressed(w->t, blank, &v.name) &&
                         !cgl_tree_find(w->t, &v.name) &&
                         !cgl_reach_chunk(w->t->program, &v.name, 0, &chunk);
  }
}


bool cgl_inner_find(writer *w, statement *const *list, size_t n) {
  w->ninner = 0;
  w->crowded = false;
  for (int pass = 0; pass < 2; pass++)
    for (size_t k = 0; k < n && !w->t->failed; k++) {
      const statement *s = list[k];
      row r = s->kind == STATEMENT_DECLARATION ? s->value : s->all;
      row blank = cgl_tree_copy(w->t, r.at ? r.at : &w->t->kernel->name, r.n);
      if (w->t->failed)
        break;
      if (s->kind != STATEMENT_DECLARATION)
        read_names(w, r, blank);
      if (pass)
        drop_changed(w, blank);
      else
        add_others(w, blank);
    }
  return !w->crowded && !w->t->failed;
}


/* Appends the row; false when a name has no known value, or a loop's stands
   there twice. */
static bool write_out(writer *w, row r, int depth, uint64_t *names,
                      cgl_tokens *out) {
  for (size_t i = 0; i < r.n; i++) {
    const inner_name *one = cgl_tree_is_name(r, i) ? find(w, &r.at[i]) : NULL;
    if (!one) {
      cgl_tokens_add(out, r.at[i]);
      continue;
    }
    const uint64_t bit = (uint64_t)1 << (one - w->inner);
    if (!one->usable || depth > MOST_DEPTH || (one->end.n && *names & bit))
      return false;
    *names |= bit;
    if (one->end.n) {
      cgl_token zero = cgl_tree_token(w->t, &r.at[i], "0");
      zero.kind = CGL_TOKEN_NUMBER;
      cgl_tokens_add(out, zero);
      continue;
    }
    cgl_token open = cgl_tree_token(w->t, &r.at[i], "("),
              close = cgl_tree_token(w->t, &r.at[i], ")");
    open.kind = close.kind = CGL_TOKEN_PUNCT;
    cgl_tokens_add(out, open);
    if (!write_out(w, one->value, depth + 1, names, out))
      return false;
    cgl_tokens_add(out, close);
  }
  return true;
}


row cgl_inner_expand(writer *w, row r, uint64_t *names) {
  row made = {NULL, 0};
  cgl_tokens all = {0};
  *names = 0;
  const bool known = write_out(w, r, 0, names, &all);
  w->t->failed |= all.failed;
  if (known && all.count && !all.failed)
    made = cgl_tree_copy(w->t, all.at, all.count);
  cgl_tokens_free(&all);
  return made;
}


static bool is_loop_of(const writer *w, size_t i, uint64_t names) {
  return names >> i & 1 && w->inner[i].end.n;
}


bool cgl_inner_is_bounded(writer *w, uint64_t names) {
  for (size_t i = 0; i < w->ninner; i++) {
    const row ends[] = {w->inner[i].value, w->inner[i].end};
    for (int k = 0; k < 2 && is_loop_of(w, i, names); k++) {
      bool moves = false, blocks = false;
      uint64_t others;
      const row end = cgl_inner_expand(w, ends[k], &others);
      if (!end.n || others || !cgl_stride_is_place(w, end, &moves, &blocks) ||
          moves)
        return false;
    }
  }
  return true;
}


uint64_t cgl_inner_loops(const writer *w, uint64_t names) {
  for (size_t i = 0; i < w->ninner; i++)
    if (!is_loop_of(w, i, names))
      names &= ~((uint64_t)1 << i);
  return names;
}


void cgl_inner_put(writer *w, uint64_t names, bool exact) {
  for (size_t i = 0; i < w->ninner; i++) {
    const inner_name *one = &w->inner[i];
    if (!(names >> i & 1))
      continue;
    const bool loop = one->end.n > 0;
    if (loop && !exact)
      cgl_text_print(w->out,
                     "for (int cgl_e%zu = 0; cgl_e%zu < 2; cgl_e%zu++) {", i, i,
                     i);
    if (exact)
      cgl_text_put(w->out, "const double");
    else
      cgl_put_tokens(w, one->type, false);
    cgl_text_print(w->out, " %.*s = ", (int)one->name->length, one->name->text);
    if (loop) {
      cgl_text_print(w->out, "%scgl_e%zu ? (double)(", exact ? "" : "(long)(",
                     i);
      cgl_put_tokens(w, one->end, false);
      cgl_text_put(w->out, one->below ? ") - 1 : (double)(" : ") : (double)(");
    }
    cgl_put_tokens(w, one->value, false);
    cgl_text_put(w->out, !loop ? ";" : exact ? ");" : "));");
  }
}


void cgl_inner_put_end(writer *w, uint64_t names) {
  for (size_t i = 0; i < w->ninner; i++)
    if (is_loop_of(w, i, names))
      cgl_text_put(w->out, "}");
}


void cgl_inner_mark(writer *w, uint64_t names, bool *used) {
  for (size_t i = 0; i < w->ninner; i++)
    if (names >> i & 1) {
      cgl_region_mark(w, w->inner[i].value, used, 0);
      cgl_region_mark(w, w->inner[i].end, used, 0);
    }
}
