/* Loops that count, in one form.
   Where a variable of its own does the counting, in front of the loop,
     int i = E; while (i < n) { ...; i += S; }
     int i = E; for (; i < n; i += S) ...
     int i; for (i = E; i < n; i += S) ...
     long k = E; for (int i = k; k < n; k += S, i = k) ...
   or where blocks are counted, and threads by their place in one,
     for (int b = blockIdx.x; b < n; b += gridDim.x) {
       int i = b * blockDim.x + threadIdx.x; ...
   the loop is written as `for (int c = E; c < n; c += S)`, as all other files
   know it, with a new name for the variable.  The variable keeps its value,
   which no statement asks for any more: then the threads of a row may take the
   loop together (stride.c).
   Invariant: the new text does in C++ what the old one does.  So a step goes
   into the header only when no `continue` passes it by and all its names mean
   the same there; and nobody knows the variable by its address. */
#include <string.h>

#include "compile/loops/loops_private.h"

/* A loop in the form that is looked for. */
typedef struct counting {
  row type;              /* of the variable */
  const cgl_token *name; /* of the variable */
  row first;             /* what it begins with */
  row cond, step;
  row copy; /* `int i`, which has its value in every turn, or nothing */
  row body; /* a statement, or a block without its braces */
} counting;


/* The first mention of the name, or r.n. */
static size_t find_name(row r, const cgl_token *name) {
  size_t i = 0;
  while (i < r.n && !(cgl_tree_is_name(r, i) && cgl_token_same(&r.at[i], name)))
    i++;
  return i;
}


static bool has_word(row r, const char *word) {
  for (size_t i = 0; i < r.n; i++)
    if (cgl_token_is(&r.at[i], word))
      return true;
  return false;
}


static bool is_number_type(const cgl_token *x) {
  return cgl_token_is_any(x, "int", "unsigned", "long", "short", "signed",
                          "size_t", "ptrdiff_t", "int32_t", "uint32_t",
                          "int64_t", "uint64_t", "uint");
}


/* The type of the variable when the statement declares it as a number that may
   change; else nothing. */
static row declared_type(row s, const cgl_token *name) {
  size_t n = 0;
  while (n < s.n && is_number_type(&s.at[n]))
    n++;
  for (size_t i = n; n && i + 1 < s.n;) {
    if (cgl_token_same(&s.at[i], name) &&
        cgl_token_is_any(&s.at[i + 1], "=", ";", ","))
      return cgl_row_slice(s, 0, n);
    while (i < s.n && !cgl_token_is_any(&s.at[i], ",", ";"))
      i = cgl_tokens_past(s.at, s.n, i);
    i++;
  }
  return (row){NULL, 0};
}


/* May something between the declaration and the loop know the variable, so that
   it must be the one that counts? */
static bool is_known(const tree *t, row between, row all,
                     const cgl_token *name) {
  for (size_t i = 0; i < between.n; i++) {
    if (cgl_tree_lambda(between, i))
      return true;
    if (i && cgl_tree_is_name(between, i) &&
        cgl_token_same(&between.at[i], name) &&
        cgl_token_is_any(&between.at[i - 1], "{", "(", ",") &&
        (t->references || !cgl_token_is(&between.at[i - 1], "(")) &&
        !(i > 1 && cgl_token_is(&between.at[i - 2], "for")))
      return true;
  }
  return cgl_values_is_addressed(t, all, name);
}


/* Is the variable's value asked for behind the loop? */
static bool is_asked_behind(row rest, const cgl_token *name) {
  const size_t at = find_name(rest, name);
  size_t from = 0, end = cgl_tree_end(rest, 0);
  if (at == rest.n)
    return false;
  while (end <= at) {
    from = end;
    end = cgl_tree_end(rest, from);
  }
  if (at == from + 2 && cgl_token_is(&rest.at[from], "for"))
    from = at; /* for (i = ...; */
  if (at != from || at + 1 >= rest.n || !cgl_token_is(&rest.at[at + 1], "="))
    return true;
  size_t stop = at + 2;
  while (stop < rest.n && !cgl_token_is(&rest.at[stop], ";"))
    stop++;
  return find_name(cgl_row_slice(rest, at + 2, stop), name) < stop - at - 2;
}


/* May a declaration of the body hide what the name means at its end? */
static bool is_hidden(row body, const cgl_token *name) {
  for (size_t i = 0; i < body.n; i++) {
    const cgl_token *last = i ? &body.at[i - 1] : NULL;
    if (cgl_token_is_any(&body.at[i], "(", "[", "{")) {
      if (last && cgl_token_is(&body.at[i], "[") &&
          cgl_token_is_any(last, "auto", "&", "&&"))
        return true;
      i = cgl_tokens_close(body.at, body.n, i) - 1;
    } else if (last && cgl_token_same(&body.at[i], name) &&
               (last->kind == CGL_TOKEN_NAME
                    ? !cgl_token_is_any(last, "return", "else", "do", "case")
                    : cgl_token_is_any(last, "*", "&", "&&", ",", ">") &&
                          i + 1 < body.n &&
                          cgl_token_is_any(&body.at[i + 1], "=", "(", "{", ";",
                                           "[", ",")))
      return true;
  }
  return false;
}


/* v < bound */
static bool is_below(row cond, const cgl_token *name) {
  return cond.n > 2 && cgl_token_same(cond.at, name) &&
         cgl_token_is(&cond.at[1], "<");
}


/* v += step, or v = v + step, which becomes the same */
static bool read_step(tree *t, row *step, const cgl_token *name) {
  row r = *step;
  if (r.n < 3 || !cgl_token_same(r.at, name))
    return false;
  if (cgl_token_is(&r.at[1], "+="))
    return true;
  if (r.n < 5 || !cgl_token_is(&r.at[1], "=") ||
      !cgl_token_same(&r.at[2], name) || !cgl_token_is(&r.at[3], "+"))
    return false;
  for (size_t i = 4; i < r.n; i++)
    if (r.at[i].kind == CGL_TOKEN_PUNCT &&
        !cgl_token_is_any(&r.at[i], "*", "."))
      return false;
  row sum = cgl_tree_copy(t, r.at + 1, r.n - 1);
  if (t->failed)
    return false;
  sum.at[0] = *name;
  sum.at[1] = cgl_tree_token(t, name, "+=");
  sum.at[1].kind = CGL_TOKEN_PUNCT;
  memmove(&sum.at[2], &sum.at[3], (sum.n - 3) * sizeof *sum.at);
  sum.n--;
  *step = sum;
  return true;
}


/* while (v < bound) { ...; v += step; } */
static bool read_while(tree *t, row s, counting *c) {
  const size_t close = cgl_tokens_close(s.at, s.n, 1);
  c->cond = cgl_row_slice(s, 2, close - 1);
  if (c->cond.n < 3 || close >= s.n || !cgl_token_is(&s.at[close], "{"))
    return false;
  c->name = c->cond.at;
  row body = cgl_row_slice(s, close + 1, s.n - 1);
  size_t from = 0, end = cgl_tree_end(body, 0);
  while (end < body.n) {
    from = end;
    end = cgl_tree_end(body, from);
  }
  if (body.n < 4 || !cgl_token_is(&body.at[body.n - 1], ";"))
    return false;
  c->step = cgl_row_slice(body, from, body.n - 1);
  c->body = cgl_row_slice(body, 0, from);
  const row step = c->step;
  for (size_t i = 0; i < step.n; i++)
    if (cgl_tree_is_name(step, i) && is_hidden(c->body, &step.at[i]))
      return false;
  return is_below(c->cond, c->name) && read_step(t, &c->step, c->name) &&
         !has_word(c->body, "continue");
}


/* Of `for (int i = k; k < bound; k += step, i = k)` the copy of k. */
static bool read_copy(row first, counting *c) {
  const row step = c->step;
  if (!first.n)
    return true;
  c->copy = cgl_row_slice(first, 0, first.n - 2);
  for (size_t i = 0; i + 3 < first.n; i++)
    if (!is_number_type(&first.at[i]))
      return false;
  const cgl_token *copy = &first.at[first.n - 3];
  if (first.n < 4 || !cgl_token_is(copy + 1, "=") ||
      !cgl_token_same(copy + 2, c->name) || step.n < 7 ||
      !cgl_token_is(&step.at[step.n - 4], ",") ||
      !cgl_token_same(&step.at[step.n - 3], copy) ||
      !cgl_token_is(&step.at[step.n - 2], "=") ||
      !cgl_token_same(&step.at[step.n - 1], c->name))
    return false;
  c->step.n -= 4;
  return true;
}


/* for (; v < bound; v += step), for (v = first; ...) or for (int i = v; ...) */
static bool read_for(tree *t, row s, counting *c) {
  const size_t close = cgl_tokens_close(s.at, s.n, 1);
  size_t first = 2, second;
  while (first < close && !cgl_token_is(&s.at[first], ";"))
    first++;
  for (second = first + 1; second < close && !cgl_token_is(&s.at[second], ";");)
    second++;
  if (second + 3 >= close || first + 3 >= second)
    return false;
  row begin = cgl_row_slice(s, 2, first);
  c->cond = cgl_row_slice(s, first + 1, second);
  c->step = cgl_row_slice(s, second + 1, close - 1);
  c->name = c->cond.at;
  c->body = cgl_row_slice(s, close, s.n);
  if (begin.n > 2 && cgl_token_same(begin.at, c->name) &&
      cgl_token_is(&begin.at[1], "=")) {
    c->first = cgl_row_slice(begin, 2, begin.n);
    begin.n = 0;
    if (has_word(c->first, ",") || has_word(c->first, "="))
      return false;
  }
  return is_below(c->cond, c->name) && read_copy(begin, c) &&
         read_step(t, &c->step, c->name) && !has_word(c->step, ",");
}


/* The tokens that the text says, on the line of `where`. */
static row made_row(tree *t, const cgl_token *where, const char *text) {
  cgl_tokens out = {0};
  cgl_lex(text, strlen(text), where->line, &out);
  t->failed |= out.failed;
  row r = cgl_tree_copy(t, out.count ? out.at : where, out.count);
  for (size_t i = 0; i < r.n; i++)
    r.at[i].line = where->line;
  cgl_tokens_free(&out);
  return r;
}


/* b * blockDim.x + threadIdx.x, in any order */
static bool is_place_in(row r, const cgl_token *block) {
  size_t thread = 0, from = 4, n = r.n;
  if (n > 4 && cgl_token_is_axis(r.at, n, n - 3, "threadIdx"))
    thread = n - 3, from = 0, n -= 4;
  else if (n < 5 || !cgl_token_is_axis(r.at, n, 0, "threadIdx"))
    return false;
  if (!cgl_token_is(&r.at[thread ? thread - 1 : 3], "+"))
    return false;
  row product = cgl_row_slice(r, from, thread ? n : r.n);
  if (product.n == 7 && cgl_token_is(product.at, "(") &&
      cgl_token_is(&product.at[6], ")"))
    product = cgl_row_slice(product, 1, 6);
  return product.n == 5 && ((cgl_token_same(product.at, block) &&
                             cgl_token_is(&product.at[1], "*") &&
                             cgl_token_is_axis(product.at, 5, 2, "blockDim")) ||
                            (cgl_token_is_axis(product.at, 5, 0, "blockDim") &&
                             cgl_token_is(&product.at[3], "*") &&
                             cgl_token_same(&product.at[4], block)));
}


/* for (int b = blockIdx.x; b < n; b += gridDim.x) {
     int i = b * blockDim.x + threadIdx.x; ... } */
static bool read_blocks(tree *t, row s, counting *c) {
  size_t n = 2, end, type = 0;
  const size_t close = cgl_tokens_close(s.at, s.n, 1);
  while (n < close && is_number_type(&s.at[n]))
    n++;
  if (n == 2 || n + 6 >= close || !cgl_token_is(&s.at[n + 1], "=") ||
      !cgl_token_is_axis(s.at, close, n + 2, "blockIdx") ||
      !cgl_token_is(&s.at[n + 5], ";") || close >= s.n ||
      !cgl_token_is(&s.at[close], "{"))
    return false;
  c->name = &s.at[n];
  for (end = n + 6; end < close && !cgl_token_is(&s.at[end], ";");)
    end++;
  row cond = cgl_row_slice(s, n + 6, end);
  const row step = cgl_row_slice(s, end + 1, close - 1);
  if (!is_below(cond, c->name) || step.n != 5 ||
      !cgl_token_same(step.at, c->name) || !cgl_token_is(&step.at[1], "+=") ||
      !cgl_token_is_axis(step.at, 5, 2, "gridDim"))
    return false;
  cond = cgl_row_slice(cond, 2, cond.n);
  const row body = cgl_row_slice(s, close + 1, s.n - 1);
  const size_t first = cgl_tree_end(body, 0);
  while (type < first && (is_number_type(&body.at[type]) ||
                          cgl_token_is(&body.at[type], "const")))
    type++;
  if (!type || type + 3 > first || !cgl_token_is(&body.at[type + 1], "=") ||
      !is_place_in(cgl_row_slice(body, type + 2, first - 1), c->name))
    return false;
  c->copy = cgl_row_slice(body, 0, type + 1);
  c->body = cgl_row_slice(body, first, body.n);
  if (find_name(cond, c->name) < cond.n || has_word(cond, ",") ||
      find_name(c->body, c->name) < c->body.n)
    return false;
  c->type = made_row(t, c->name, "long long");
  c->first =
      made_row(t, c->name, "(long long)blockIdx.x * blockDim.x + threadIdx.x");
  c->step = made_row(t, c->name, "b += gridDim.x * blockDim.x");
  const row front = made_row(t, c->name, "b < (long long)(");
  const row back = made_row(t, c->name, ") * blockDim.x");
  c->cond = cgl_tree_copy(t, s.at, front.n + cond.n + back.n);
  if (t->failed)
    return false;
  c->cond.n = 0;
  for (size_t k = 0; k < 3; k++) {
    const row part = k == 0 ? front : k == 1 ? cond : back;
    memcpy(c->cond.at + c->cond.n, part.at, part.n * sizeof *part.at);
    c->cond.n += part.n;
  }
  c->step.at[0] = c->cond.at[0] = *c->name;
  return true;
}


/* Is the statement r[i..end) of a list a loop that counts by a variable which
   the list declares? */
static bool find_counting(tree *t, row r, size_t i, size_t end, counting *c) {
  const row s = cgl_row_slice(r, i, end);
  *c = (counting){.name = NULL};
  if (s.n > 20 && cgl_token_is(s.at, "for") && cgl_token_is(&s.at[1], "(") &&
      read_blocks(t, s, c))
    return true;
  *c = (counting){.name = NULL};
  if (s.n < 8 || !cgl_token_is(&s.at[1], "(") ||
      !(cgl_token_is(s.at, "while")
            ? read_while(t, s, c)
            : cgl_token_is(s.at, "for") && read_for(t, s, c)))
    return false;
  for (size_t from = 0; from < i;) {
    const size_t stop = cgl_tree_end(r, from);
    row type = declared_type(cgl_row_slice(r, from, stop), c->name);
    if (type.n && !is_known(t, cgl_row_slice(r, stop, i),
                            cgl_row_slice(r, from, end), c->name))
      c->type = type;
    from = stop;
  }
  return c->type.n && !is_asked_behind(cgl_row_slice(r, end, r.n), c->name);
}


static void add_row(cgl_tokens *out, row r) {
  for (size_t i = 0; i < r.n; i++)
    cgl_tokens_add(out, r.at[i]);
}


static void add_word(tree *t, cgl_tokens *out, const cgl_token *where,
                     const char *word) {
  cgl_token x = cgl_tree_token(t, where, "%s", word);
  if (*word < 'A')
    x.kind = CGL_TOKEN_PUNCT;
  else if (*word == '{' || *word == '}')
    x.kind = CGL_TOKEN_PUNCT;
  cgl_tokens_add(out, x);
}


/* The row with the variable's new name. */
static void add_renamed(tree *t, cgl_tokens *out, row r, const cgl_token *old,
                        cgl_token name) {
  row copy = cgl_tree_copy(t, r.at ? r.at : old, r.n);
  for (size_t i = 0; i < copy.n; i++)
    if (cgl_tree_is_name(copy, i) && cgl_token_same(&copy.at[i], old)) {
      copy.at[i].text = name.text;
      copy.at[i].length = name.length;
    }
  add_row(out, copy);
}


static void write_list(tree *t, row r, cgl_tokens *out);


/* The loop in its new form; what stands in it may be such loops as well. */
static void write_counting(tree *t, const counting *c, const cgl_token *where,
                           cgl_tokens *out) {
  cgl_tokens body = {0};
  const cgl_token name = cgl_tree_token(t, c->name, "%.*s__c",
                                        (int)c->name->length, c->name->text);
  add_word(t, out, where, "for");
  add_word(t, out, where, "(");
  add_row(out, c->type);
  cgl_tokens_add(out, name);
  add_word(t, out, where, "=");
  add_row(out, c->first.n ? c->first : (row){(cgl_token *)c->name, 1});
  add_word(t, out, where, ";");
  add_renamed(t, out, c->cond, c->name, name);
  add_word(t, out, where, ";");
  add_renamed(t, out, c->step, c->name, name);
  add_word(t, out, where, ")");
  add_word(t, out, where, "{");
  if (c->copy.n) {
    add_row(out, c->copy);
    add_word(t, out, where, "=");
    cgl_tokens_add(out, name);
    add_word(t, out, where, ";");
  }
  add_renamed(t, &body, c->body, c->name, name);
  t->failed |= body.failed;
  if (!t->failed)
    write_list(t, (row){body.at, body.count}, out);
  cgl_tokens_free(&body);
  add_word(t, out, where, "}");
}


/* A statement as it stands, but for the blocks in it. */
static void write_statement(tree *t, row s, cgl_tokens *out) {
  for (size_t i = 0; i < s.n; i++) {
    cgl_tokens_add(out, s.at[i]);
    if (!cgl_token_is(&s.at[i], "{") ||
        (i && !cgl_token_is_any(&s.at[i - 1], ")", "else", "do")))
      continue;
    const size_t close = cgl_tokens_close(s.at, s.n, i);
    if (close < i + 2)
      break; /* half a block, of a statement that is not understood */
    write_list(t, cgl_row_slice(s, i + 1, close - 1), out);
    i = close - 2;
  }
}


static void write_list(tree *t, row r, cgl_tokens *out) {
  for (size_t i = 0; i < r.n && !t->failed;) {
    const size_t end = cgl_tree_end(r, i);
    counting c;
    if (find_counting(t, r, i, end, &c))
      write_counting(t, &c, &r.at[i], out);
    else
      write_statement(t, cgl_row_slice(r, i, end), out);
    i = end;
  }
}


row cgl_count_rewrite(tree *t, row r) {
  cgl_tokens out = {0};
  row made = {NULL, 0};
  write_list(t, r, &out);
  t->failed |= out.failed;
  if (!t->failed && out.count)
    made = cgl_tree_copy(t, out.at, out.count);
  cgl_tokens_free(&out);
  return made;
}
