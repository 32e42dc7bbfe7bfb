/* Grid-stride loops.
   `for (int i = INDEX; i < n; i += STRIDE) ...`, where STRIDE is the number
   of threads of the grid, makes each thread walk through memory in large
   steps: right on a GPU, and a hundred times too slow on a CPU that runs the
   threads one after the other.  When such a loop is all a kernel does, the
   threads of a run of blocks are one walk in steps of one: the header is
   rewritten, the kernel called once per run (cgl_stride in device_run.h).
   Loops over y and z may stand around it: a run's threads have both alike.
   That is allowed when no iteration can hand anything to the next one of its
   thread, which the checks here make sure of, from the text alone: what they
   do not know they refuse.  A thread's own state would be a variable from
   outside the loop that the loop changes: by its name, by a pointer or a
   reference to it (none is made), or by an operator or function of a class
   (no such variable is named in the loop). */
#include <string.h>

#include "compile/frontend/program.h"

typedef struct reader {
  cgl_program *program;
  const cgl_alias *aliases;
  cgl_arena *arena;
  const cgl_token *at;
  size_t count, i;
  const cgl_token *outer[48]; /* names declared outside the loop */
  bool closed[48]; /* of a type that may have operators: not for the loop */
  size_t nouter;
  const cgl_token *index[4], *stride[4]; /* variables that hold them */
  size_t nindex, nstride;
} reader;


/* May the type hold every place?  A name of the source's own is taken to. */
static bool is_wide_enough(const cgl_token *at, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (cgl_token_is_any(&at[i], "char", "short", "bool", "float", "half",
                         "int8_t", "uint8_t", "int16_t", "uint16_t", "uchar",
                         "ushort", "__half"))
      return false;
  return true;
}


static bool is_place(const cgl_token *at, size_t count) {
  cgl_place place;
  bool wide = cgl_tokens_are_place(at, count, &place);
  for (size_t i = 0; wide && i < place.ncasts; i++)
    wide = is_wide_enough(place.casts[i].at, place.casts[i].count);
  return wide;
}


static bool is_one_of(const cgl_token *t, const cgl_token *const *list,
                      size_t n) {
  for (size_t i = 0; i < n; i++)
    if (cgl_token_same(t, list[i]))
      return true;
  return false;
}


/* Is it an outer name of a type that may have operators? */
static bool is_closed(const reader *r, const cgl_token *t) {
  for (size_t i = 0; i < r->nouter; i++)
    if (r->closed[i] && cgl_token_same(t, r->outer[i]))
      return true;
  return false;
}


static bool mentions_closed(const reader *r, const cgl_token *at,
                            size_t count) {
  for (size_t i = 0; i < count; i++)
    if (is_closed(r, &at[i]))
      return true;
  return false;
}


bool cgl_parameter_is_plain(const cgl_parameter *p) {
  return p->pointer ||
         (p->kind != CGL_KIND_UNKNOWN && p->kind != CGL_KIND_STRUCT &&
          p->kind != CGL_KIND_PHILOX);
}


/* May the expression do more than compute a value?  It is evaluated once for
   all threads, or more often than it is written.  Functions of the source may
   do anything. */
static bool has_effects(const reader *r, const cgl_token *at, size_t count) {
  static const char *const stems[] = {"atomic", "clock", "printf", "operator"};
  for (size_t i = 0; i < count; i++) {
    for (size_t k = 0; k < sizeof stems / sizeof *stems; k++)
      if (at[i].length >= strlen(stems[k]) &&
          !memcmp(at[i].text, stems[k], strlen(stems[k])))
        return true;
    if (at[i].kind == CGL_TOKEN_NAME && i + 1 < count &&
        cgl_token_is_any(&at[i + 1], "(", "<", "{") &&
        cgl_reach_declares(r->program, &at[i]))
      return true;
  }
  return false;
}


/* Is the & at i one that binds: of a declaration, a cast or a template's
   argument, and not of an expression?  `a & b` has no such shape. */
static bool is_reference(const cgl_token *at, size_t count, size_t i) {
  if (!i || i + 1 == count || cgl_token_is_type_word(&at[i - 1]) ||
      cgl_token_is_any(&at[i + 1], ">", ")", ",", "["))
    return true;
  if (i + 2 < count && cgl_token_is(&at[i + 2], "="))
    return true;
  size_t k = i; /* real &r(s); at the start of a statement */
  while (k && (at[k - 1].kind == CGL_TOKEN_NAME ||
               cgl_token_is_any(&at[k - 1], "::", ">", "<")))
    k--;
  return k < i && (!k || cgl_token_is_any(&at[k - 1], ";", "{", "}")) &&
         !cgl_token_is_any(&at[k], "return", "else", "do");
}


/* Does the assignment at i change what stands in parentheses, as in
   `(c ? s : t) = 1`?  The parentheses of `*(p + i)` hold an address. */
static bool is_hidden_target(const cgl_token *at, size_t i) {
  if (!i || !cgl_token_is(&at[i - 1], ")"))
    return false;
  size_t depth = 0, k = i - 1;
  for (;; k--) {
    if (cgl_token_is(&at[k], ")"))
      depth++;
    else if (cgl_token_is(&at[k], "(") && --depth == 0)
      break;
    if (!k)
      return true;
  }
  return !(k && cgl_token_is(&at[k - 1], "*") &&
           (k < 2 || (at[k - 2].kind == CGL_TOKEN_PUNCT &&
                      !cgl_token_is_any(&at[k - 2], ")", "]"))));
}


/* May the tokens name a variable by another way than its name? */
static bool has_detour(const cgl_token *at, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const cgl_token *t = &at[i];
    if (cgl_token_is_any(t, "&", "&&") && is_reference(at, count, i))
      return true;
    if (cgl_token_is_assignment(t) && is_hidden_target(at, i))
      return true;
    if (cgl_token_is_any(t, "++", "--") && i + 1 < count &&
        cgl_token_is(&at[i + 1], "("))
      return true;
    if (cgl_token_is_any(t, "struct", "class", "union"))
      return true;
    if (cgl_token_is(t, "[") && i && at[i - 1].kind == CGL_TOKEN_PUNCT &&
        !cgl_token_is_any(&at[i - 1], ")", "]"))
      return true; /* a lambda */
  }
  return false;
}


static bool find_star(const cgl_token *at, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (cgl_token_is_any(&at[i], "*", "auto"))
      return true;
  return false;
}


/* Adds `name`, declared by the tokens up to it, to the outer names. */
static bool try_outer(reader *r, const cgl_token *at, size_t count) {
  cgl_parameter p;
  if (r->nouter == 48 ||
      cgl_parameter_read(r->aliases, at, count, r->arena, &p) != 0)
    return false;
  r->closed[r->nouter] = !cgl_parameter_is_plain(&p);
  r->outer[r->nouter++] = &at[count - 1];
  return true;
}


/* `T name = value;` before the loop: an index, a stride, or a value that the
   loop may read. */
static bool try_declaration(reader *r) {
  size_t end = r->i, equal = 0;
  while (end < r->count && !cgl_token_is(&r->at[end], ";")) {
    if (!equal && cgl_token_is(&r->at[end], "="))
      equal = end;
    if (cgl_token_is_any(&r->at[end], "{", "[") ||
        (!equal && cgl_token_is(&r->at[end], "(")))
      return false;
    end++;
  }
  if (end == r->count || equal < r->i + 2 ||
      r->at[equal - 1].kind != CGL_TOKEN_NAME)
    return false;
  const cgl_token *name = &r->at[equal - 1], *value = &r->at[equal + 1];
  size_t n = end - equal - 1;
  for (size_t i = r->i; i < equal; i++)
    if (cgl_token_is_any(&r->at[i], ",", "static", "&", "&&"))
      return false;
  for (size_t i = 0; i < n; i++)
    if (cgl_token_is_any(&value[i], ",", "&") ||
        cgl_token_is_assignment(&value[i]))
      return false;
  if (has_effects(r, value, n))
    return false;
  if (is_place(value, n)) {
    if (r->nindex == 4)
      return false;
    r->index[r->nindex++] = name;
  } else if (cgl_tokens_are_width(value, n)) {
    if (r->nstride == 4)
      return false;
    r->stride[r->nstride++] = name;
  } else if (cgl_tokens_mention_place(value, n) ||
             (mentions_closed(r, value, n) &&
              find_star(&r->at[r->i], equal - r->i)) ||
             !try_outer(r, &r->at[r->i], equal - r->i))
    return false;
  for (size_t i = 0; i < n; i++)
    if (is_one_of(&value[i], r->index, r->nindex) ||
        is_one_of(&value[i], r->stride, r->nstride))
      return false;
  r->i = end + 1;
  return true;
}


/* The loop's body: nothing of the thread survives an iteration. */
static bool is_free_body(const reader *r, const cgl_token *variable,
                         const cgl_token *at, size_t count) {
  static const char *const refused[] = {"break",  "return",  "goto", "asm",
                                        "static", "__asm__", "case", "#"};
  if (cgl_tokens_mention_place(at, count) || has_detour(at, count))
    return false;
  for (size_t i = 0; i < count; i++) {
    const cgl_token *t = &at[i];
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
      if (cgl_token_is(t, refused[k]))
        return false;
    if (is_one_of(t, r->index, r->nindex) && !cgl_token_same(t, variable))
      return false;
    if (is_one_of(t, r->stride, r->nstride))
      return false;
    if (!cgl_token_same(t, variable) && !is_one_of(t, r->outer, r->nouter))
      continue;
    if (i && cgl_token_is_any(&at[i - 1], ".", "->"))
      continue; /* a member that happens to have the name */
    if (i + 1 < count && cgl_token_is_assignment(&at[i + 1]))
      return false;
    if (i + 1 < count && cgl_token_is(&at[i + 1], "."))
      return false; /* a struct, which may change */
    if (i && cgl_token_is_any(&at[i - 1], "++", "--"))
      return false;
    if (i && cgl_token_is(&at[i - 1], "&") &&
        (i < 2 ||
         (at[i - 2].kind == CGL_TOKEN_PUNCT && !cgl_token_is(&at[i - 2], ")") &&
          !cgl_token_is(&at[i - 2], "]"))) &&
        !(i + 1 < count && cgl_token_is(&at[i + 1], "[")))
      return false; /* its address, and not an element's */
  }
  return true;
}


/* One statement that is all of `at`. */
static bool is_one_statement(const cgl_token *at, size_t count) {
  static const char *const control[] = {"if", "for", "while", "do", "switch"};
  if (count && cgl_token_is(at, "{"))
    return cgl_tokens_close(at, count, 0) == count;
  for (size_t k = 0; k < sizeof control / sizeof *control; k++)
    if (count && cgl_token_is(at, control[k]))
      return false;
  for (size_t i = 0; i < count; i++)
    if (cgl_token_is(&at[i], ";"))
      return i + 1 == count;
  return false;
}


static size_t part_end(const cgl_token *at, size_t count, size_t i) {
  while (i < count && !cgl_token_is(&at[i], ";"))
    i++;
  return i;
}


/* The bound is written out three times, once as an argument: it may not bind
   more loosely than a comparison, nor change anything. */
static bool is_plain_bound(const reader *r, const cgl_stride_loop *loop) {
  static const char *const refused[] = {"&&", "||", "?",  ",", "&", "|",
                                        "^",  "==", "!=", "<", ">", "<=",
                                        ">=", "<<", ">>", "{", "["};
  for (size_t i = 0; i < loop->nbound; i++) {
    const cgl_token *t = &loop->bound[i];
    for (size_t k = 0; k < sizeof refused / sizeof *refused; k++)
      if (cgl_token_is(t, refused[k]))
        return false;
    if (cgl_token_is_assignment(t) || cgl_token_same(t, loop->variable) ||
        cgl_token_is_position(t))
      return false;
  }
  return !has_effects(r, loop->bound, loop->nbound);
}


/* for (T i = INDEX; i < bound; i += STRIDE): its type, variable and bound. */
static bool try_header(const reader *r, const cgl_token *at, size_t count,
                       cgl_stride_loop *out) {
  size_t first = part_end(at, count, 0);
  size_t second = part_end(at, count, first + 1);
  if (second + 1 >= count || first < 3)
    return false;
  size_t equal = 0;
  while (equal < first && !cgl_token_is(&at[equal], "="))
    equal++;
  if (equal < 2 || equal + 1 >= first)
    return false;
  for (size_t i = 0; i < equal; i++)
    if (at[i].kind != CGL_TOKEN_NAME ||
        cgl_token_is_any(&at[i], "auto", "const"))
      return false;
  cgl_parameter p;
  if (cgl_parameter_read(r->aliases, at, equal, r->arena, &p) != 0 ||
      !cgl_parameter_is_plain(&p))
    return false;
  out->type = at;
  out->ntype = equal - 1;
  out->variable = &at[equal - 1];
  const cgl_token *start = &at[equal + 1];
  if (!is_place(start, first - equal - 1) &&
      !(first - equal == 2 && is_one_of(start, r->index, r->nindex)))
    return false;
  const cgl_token *test = &at[first + 1], *step = &at[second + 1];
  size_t ntest = second - first - 1, nstep = count - second - 1;
  if (ntest < 3 || !cgl_token_same(test, out->variable) ||
      !cgl_token_is(&test[1], "<") || nstep < 3 ||
      !cgl_token_same(step, out->variable) || !cgl_token_is(&step[1], "+="))
    return false;
  out->bound = test + 2;
  out->nbound = ntest - 2;
  if (!is_plain_bound(r, out))
    return false;
  return cgl_tokens_are_width(step + 2, nstep - 2) ||
         (nstep == 3 && is_one_of(step + 2, r->stride, r->nstride));
}


/* `for (T v = E; v < bound; v += S)` around the loop, which all threads of a
   row take together: it stays as it is, and v is a value that the loop may
   read. */
static bool try_row_loop(reader *r) {
  const size_t close = cgl_tokens_close(r->at, r->count, r->i + 1);
  const cgl_token *at = &r->at[r->i + 2];
  const size_t count = close - r->i - 3, nouter = r->nouter;
  const size_t first = part_end(at, count, 0);
  const size_t second = part_end(at, count, first + 1);
  if (close >= r->count || second + 2 >= count)
    return false;
  r->i += 2;
  if (!try_declaration(r) || r->nouter == nouter || r->closed[nouter])
    return false;
  const cgl_token *test = &at[first + 1], *step = &at[second + 1];
  const size_t ntest = second - first - 1, nstep = count - second - 1;
  const cgl_stride_loop loop = {
      .variable = r->outer[nouter], .bound = test + 2, .nbound = ntest - 2};
  if (ntest < 3 || !cgl_token_same(test, loop.variable) ||
      !cgl_token_is(&test[1], "<") || !is_plain_bound(r, &loop) ||
      !cgl_token_same(step, loop.variable) ||
      !(nstep == 2 ? cgl_token_is(&step[1], "++")
                   : cgl_token_is(&step[1], "+=")) ||
      cgl_tokens_mention_place(step, nstep) || has_effects(r, step, nstep))
    return false;
  for (size_t i = 0; i < count; i++)
    if (is_one_of(&at[i], r->index, r->nindex) ||
        is_one_of(&at[i], r->stride, r->nstride) ||
        cgl_token_is_any(&at[i], "[", "*=", "?") ||
        (i > second + 2 && cgl_token_is_assignment(&at[i])))
      return false;
  r->i = close;
  if (!cgl_token_is(&r->at[close], "{"))
    return true;
  if (cgl_tokens_close(r->at, r->count, close) != r->count)
    return false;
  r->i++;
  r->count--;
  return true;
}


/* The header must stand in the script itself, in one piece, between the
   kernel's braces: not in a macro, not in another file. */
static bool is_in_text(const cgl_token *first, const cgl_token *last,
                       const char *text, size_t length) {
  const char *end = last->text + last->length;
  if (first->text < text || end > text + length || first->text >= end)
    return false;
  for (const cgl_token *t = first; t < last; t++)
    if (t[1].text < t->text + t->length || t[1].text > end)
      return false;
  const char *line = first->text;
  while (line > text && line[-1] != '\n')
    line--;
  if (line - 1 > text && line[-2] == '\\')
    return false;
  while (*line == ' ' || *line == '\t')
    line++;
  return *line != '#' && !memchr(first->text, '#', (size_t)(end - first->text));
}


/* The parameters join what the loop may read and not change. */
static bool try_parameters(reader *r, const cgl_declared *k,
                           const cgl_signature *s) {
  const cgl_token *at = k->parameters;
  for (size_t i = 0; i < s->nparameters; i++) {
    const char *name = s->parameters[i].name;
    size_t n = strlen(name);
    for (size_t j = 0; n && j < k->nparameters; j++)
      if (at[j].length == n && !memcmp(at[j].text, name, n)) {
        if (r->nouter == 40)
          return false;
        r->closed[r->nouter] = !cgl_parameter_is_plain(&s->parameters[i]);
        r->outer[r->nouter++] = &at[j];
        break;
      }
  }
  return true;
}


void cgl_program_find_loop(cgl_program *p, const cgl_declared *k,
                           const cgl_alias *aliases, cgl_arena *arena,
                           cgl_signature *s) {
  const cgl_chunk *chunk = &p->chunks[k->chunk];
  unsigned others = 0;
  unsigned all = cgl_reach_features(p, k->chunk, &others);
  reader r = {.program = p,
              .aliases = aliases,
              .arena = arena,
              .at = chunk->at,
              .count = chunk->count};
  cgl_stride_loop found = {0};
  bool fits;
  if (all & (CGL_USES_BARRIER | CGL_USES_SHARED) ||
      others & (CGL_USES_INDEX | CGL_TAKES_REFERENCE))
    return;
  const cgl_token *open = k->parameters + k->nparameters;
  r.i = (size_t)(open - r.at);
  while (r.i < r.count && !cgl_token_is(&r.at[r.i], "{"))
    r.i++;
  if (r.i + 1 >= r.count || !cgl_token_is(&r.at[r.count - 1], "}") ||
      !try_parameters(&r, k, s))
    return;
  const cgl_token *brace = &r.at[r.i++];
  r.count--;
  size_t close;
  do {
    while (r.i < r.count && !cgl_token_is(&r.at[r.i], "for"))
      if (!try_declaration(&r))
        return;
    if (r.i + 2 >= r.count || !cgl_token_is(&r.at[r.i + 1], "("))
      return;
    close = cgl_tokens_close(r.at, r.count, r.i + 1);
    if (close >= r.count)
      return;
    fits = try_header(&r, &r.at[r.i + 2], close - r.i - 3, &found);
  } while (!fits && try_row_loop(&r));
  const cgl_token *loop = &r.at[r.i], *last = &r.at[close - 1];
  if (!fits || !is_one_statement(&r.at[close], r.count - close) ||
      !is_free_body(&r, found.variable, &r.at[close], r.count - close) ||
      !is_in_text(loop, last, p->text, p->length) || brace->text > loop->text ||
      brace->text < p->text)
    return;
  found.start = loop->text;
  found.end = last->text + last->length;
  found.refused = mentions_closed(&r, loop, r.count - r.i);
  s->loop = found;
}
