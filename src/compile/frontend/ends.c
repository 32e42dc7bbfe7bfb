/* Where a row's work ends.
   A grid is rounded up to whole blocks, so kernels begin with a condition that
   their last threads do not fulfil:
     int x = blockIdx.x * blockDim.x + threadIdx.x, y = ...;
     if (x >= width || y >= height) return;
   Compiled as it stands it is asked of every thread, as a mask for every load
   and store.  What masks cost depends on what is compared: next to nothing for
   numbers of 32 bits with a sign, which are left at that; as much as the rest
   of the kernel, and more, for others.  Where such a condition holds for a
   row's threads up to one of them, and for none behind it, the host device
   looks for that one before the row (cgl_stop in device_run.h) and runs those
   in front of it, which then know the answer.
   Invariant: what stands in front of such an end has no effect and calls
   nothing, so that a thread can be asked by running it up to there, and a
   thread behind the end has nothing to do.  Along x an end compares nothing
   but a thread's place, from one side, with what all threads of a row have
   alike.  Places are no larger than an int's. */
#include <stdlib.h>
#include <string.h>

#include "compile/frontend/program.h"

#define MOST_NAMES 48
#define MOST_ENDS 8
#define MOST_TOKENS 256 /* of a condition or a value */

typedef enum name_kind {
  NAME_STEADY, /* the same for all threads of a row */
  NAME_PLACE,  /* blockIdx.x * blockDim.x + threadIdx.x */
  NAME_OTHER
} name_kind;

typedef struct reader {
  const cgl_alias *aliases;
  cgl_arena *arena;
  const cgl_token *at;
  size_t count, i;
  const cgl_token *names[MOST_NAMES];
  name_kind kinds[MOST_NAMES];
  bool cheap[MOST_NAMES]; /* to compare: an int */
  size_t nnames;
  bool strict; /* the source has operators: only known names are asked */
  bool spaces; /* it has namespaces, whose types go by names of others */
  bool dear;   /* something is compared that is not cheap */
  bool failed;
} reader;

/* Which way a condition goes along a row: at most once from true to false, or
   from false to true; or neither, as it is the same for all. */
enum { FALLS = 1, RISES = 2, STAYS = FALLS | RISES };


/* The index of the name, or nnames. */
static size_t find_name(const reader *r, const cgl_token *name) {
  for (size_t i = r->nnames; i-- > 0;)
    if (cgl_token_same(name, r->names[i]))
      return i;
  return r->nnames;
}


static name_kind kind_of(const reader *r, const cgl_token *name) {
  const size_t i = find_name(r, name);
  return i < r->nnames ? r->kinds[i] : NAME_STEADY;
}


static bool try_name(reader *r, const cgl_token *name, name_kind kind,
                     const cgl_parameter *type) {
  if (r->nnames == MOST_NAMES)
    return false;
  r->names[r->nnames] = name;
  r->kinds[r->nnames] = kind;
  r->cheap[r->nnames++] = type->pointer || type->kind == CGL_KIND_INT32;
  return true;
}


/* May the name stand for what has operators?  Types and positions do not. */
static bool is_unknown(const reader *r, const cgl_token *at, size_t i) {
  return at[i].kind == CGL_TOKEN_NAME && find_name(r, &at[i]) == r->nnames &&
         !cgl_token_is_position(&at[i]) && !cgl_token_is_type_word(&at[i]) &&
         !cgl_token_is_known_type(&at[i]) &&
         !cgl_token_is_any(&at[i], "min", "max", "true", "false") &&
         !(i > 1 && cgl_token_is(&at[i - 1], ".") &&
           cgl_token_is_position(&at[i - 2]));
}


/* Does the parenthesis in front of i close a type? */
static bool is_cast(const cgl_token *at, size_t i) {
  for (i--; i-- > 0 && !cgl_token_is(&at[i], "(");)
    if (!cgl_token_is_type_word(&at[i]) && !cgl_token_is_known_type(&at[i]) &&
        !cgl_token_is(&at[i], "*"))
      return false;
  return true;
}


/* Ends what stands in front of i an operand, so that & is no address? */
static bool is_operand_end(const cgl_token *at, size_t i) {
  return i && (at[i - 1].kind == CGL_TOKEN_NAME ||
               at[i - 1].kind == CGL_TOKEN_NUMBER ||
               cgl_token_is_any(&at[i - 1], ")", "]"));
}


/* Has the expression no effect?  Functions and lambdas may have. */
static bool is_pure(const reader *r, const cgl_token *at, size_t count) {
  cgl_place place;
  if (count > MOST_TOKENS)
    return false;
  if (cgl_tokens_are_place(at, count, &place))
    return true;
  for (size_t i = 0; i < count; i++) {
    const cgl_token *t = &at[i];
    if (r->strict && is_unknown(r, at, i))
      return false;
    if (cgl_token_is_assignment(t) || cgl_token_is_draw(t) ||
        cgl_token_is_any(t, "{", ";", "#", "new", "typedef", "delete", "asm",
                         "__asm__", "volatile") ||
        t->kind == CGL_TOKEN_STRING ||
        (t->kind != CGL_TOKEN_NAME && memchr(t->text, '_', t->length)))
      return false; /* the last: a literal of the source's own */
    if (cgl_token_is(t, "(") && i &&
        (cgl_token_is_any(&at[i - 1], "]", ">") ||
         (cgl_token_is(&at[i - 1], ")") && !is_cast(at, i)) ||
         (at[i - 1].kind == CGL_TOKEN_NAME &&
          !cgl_token_is_known_type(&at[i - 1]) &&
          !cgl_token_is_any(&at[i - 1], "min", "max"))))
      return false;
    if (cgl_token_is(t, "&") && !is_operand_end(at, i))
      return false;
    if (cgl_token_is(t, "[") &&
        (!i || (at[i - 1].kind != CGL_TOKEN_NAME &&
                !cgl_token_is_any(&at[i - 1], "]", ")"))))
      return false;
  }
  return true;
}


/* Does every place fit into the type? */
static bool holds_places(const cgl_parameter *p) {
  return !p->pointer && p->lanes == 1 &&
         (p->kind == CGL_KIND_INT32 || p->kind == CGL_KIND_UINT32 ||
          p->kind == CGL_KIND_INT64 || p->kind == CGL_KIND_UINT64);
}


/* Is the type one of the language's, or by a name that has one meaning? */
static bool is_understood(const reader *r, const cgl_token *at, size_t count) {
  for (size_t i = 0; r->spaces && i < count; i++)
    if (at[i].kind == CGL_TOKEN_NAME && !cgl_token_is_type_word(&at[i]) &&
        !cgl_token_is_known_type(&at[i]))
      return false;
  return true;
}


static bool try_wide_cast(const reader *r, const cgl_span *type) {
  cgl_parameter p;
  return is_understood(r, type->at, type->count) &&
         cgl_parameter_read(r->aliases, type->at, type->count, r->arena, &p) ==
             0 &&
         holds_places(&p);
}


static name_kind kind_of_value(const reader *r, const cgl_token *at,
                               size_t count) {
  if (count == 1 && at->kind == CGL_TOKEN_NAME && kind_of(r, at) == NAME_PLACE)
    return NAME_PLACE;
  cgl_place place;
  if (cgl_tokens_are_place(at, count, &place)) {
    for (size_t i = 0; i < place.ncasts; i++)
      if (!try_wide_cast(r, &place.casts[i]))
        return NAME_OTHER;
    return NAME_PLACE;
  }
  if (cgl_tokens_mention_place(at, count))
    return NAME_OTHER;
  for (size_t i = 0; i < count; i++)
    if (at[i].kind == CGL_TOKEN_NAME && kind_of(r, &at[i]) != NAME_STEADY)
      return NAME_OTHER;
  return NAME_STEADY;
}


/* Is the value one of numbers, whose names are known? */
static bool is_number(const reader *r, const cgl_token *at, size_t count) {
  cgl_place place;
  if (cgl_tokens_are_place(at, count, &place))
    return true;
  for (size_t i = 0; i < count; i++)
    if (is_unknown(r, at, i) || cgl_token_is_any(&at[i], "[", "->") ||
        (cgl_token_is(&at[i], "*") && !is_operand_end(at, i)))
      return false;
  return true;
}


/* `T a = value, b;` of types that only the language works on. */
static bool try_declaration(reader *r) {
  size_t end = r->i, name = r->i;
  while (end < r->count && !cgl_token_is(&r->at[end], ";"))
    end++;
  while (name < end && !cgl_token_is_any(&r->at[name], "=", ","))
    name++;
  if (end == r->count || name < r->i + 2 ||
      r->at[--name].kind != CGL_TOKEN_NAME)
    return false;
  bool is_auto = false;
  for (size_t i = r->i; i < name; i++)
    is_auto |= cgl_token_is(&r->at[i], "auto");
  for (size_t i = r->i; i < name; i++)
    if (!cgl_token_is_any(&r->at[i], "const", "constexpr", "auto", "*") &&
        (is_auto || r->at[i].kind != CGL_TOKEN_NAME ||
         cgl_token_is_any(&r->at[i], "static", "extern", "volatile", "typedef",
                          "__shared__", "else", "do", "using")))
      return false;
  cgl_parameter p;
  if (cgl_parameter_read(r->aliases, &r->at[r->i], name + 1 - r->i, r->arena,
                         &p) != 0) {
    r->failed = true;
    return false;
  }
  if (!is_auto && (!cgl_parameter_is_plain(&p) ||
                   !is_understood(r, &r->at[r->i], name - r->i)))
    return false;
  for (size_t i = name; i < end;) {
    size_t next = cgl_tokens_element_end(r->at, end, i);
    const bool has_value = next > i + 2 && cgl_token_is(&r->at[i + 1], "=");
    const cgl_token *value = &r->at[i + 2];
    const size_t n = has_value ? next - i - 2 : 0;
    if (r->at[i].kind != CGL_TOKEN_NAME || (!has_value && next != i + 1) ||
        !is_pure(r, value, n) || (is_auto && !is_number(r, value, n)))
      return false;
    name_kind kind = has_value ? kind_of_value(r, value, n) : NAME_OTHER;
    if (kind == NAME_PLACE && !holds_places(&p) && !is_auto)
      kind = NAME_OTHER;
    if (!try_name(r, &r->at[i], kind, &p))
      return false;
    i = next + 1;
  }
  r->i = end + 1;
  return true;
}


/* The place of the operator outside all parentheses, or `count`. */
static size_t find_outer(const cgl_token *at, size_t count, const char *a,
                         const char *b) {
  for (size_t i = 0; i < count; i++)
    if (cgl_token_is_any(&at[i], a, b))
      return i;
    else if (cgl_token_is_any(&at[i], "(", "["))
      i = cgl_tokens_close(at, count, i) - 1;
  return count;
}


/* A place, or that and a number that fits into an int with it. */
static bool is_place(const reader *r, const cgl_token *at, size_t count) {
  if (count > 2 && cgl_token_is(&at[count - 2], "+") &&
      at[count - 1].kind == CGL_TOKEN_NUMBER && at[count - 1].length < 6 &&
      strspn(at[count - 1].text, "0123456789uUlL") >= at[count - 1].length)
    count -= 2;
  return count && kind_of_value(r, at, count) == NAME_PLACE;
}


/* A row's first threads run one by one, as many as places are compared with
   (edge_width in generate.c): behind them `x > 1` holds for all. */
static bool is_edge(const cgl_token *at, size_t count, size_t by) {
  return by == 1 && count == 3 && at[2].kind == CGL_TOKEN_NUMBER &&
         at[2].length == 1 && at->kind == CGL_TOKEN_NAME &&
         atoi(at[2].text) + cgl_token_is_any(&at[1], ">", "<=") <= CGL_MOST_FEW;
}


/* Are the names compared, as far as they are known, ints? */
static bool are_cheap(const reader *r, const cgl_token *at, size_t count) {
  for (size_t i = 0; i < count; i++) {
    const size_t name = find_name(r, &at[i]);
    if (cgl_token_is_any(&at[i], "blockIdx", "threadIdx", "unsigned", "long") ||
        (name < r->nnames && !r->cheap[name]))
      return false;
  }
  return true;
}


/* Which way the comparison by the operator at `by` goes. */
static int comparison_goes(reader *r, const cgl_token *at, size_t count,
                           size_t by) {
  const bool less = cgl_token_is_any(&at[by], "<", "<=");
  const cgl_token *right = &at[by + 1];
  const size_t nright = count - by - 1;
  if (!by || !nright)
    return 0;
  r->dear |= !are_cheap(r, at, count);
  if (is_place(r, at, by) && kind_of_value(r, right, nright) == NAME_STEADY)
    return is_edge(at, count, by) ? STAYS : less ? FALLS : RISES;
  if (is_place(r, right, nright) && kind_of_value(r, at, by) == NAME_STEADY)
    return less ? RISES : FALLS;
  return 0;
}


static int goes(reader *r, const cgl_token *at, size_t count) {
  if (!count)
    return 0;
  if (kind_of_value(r, at, count) == NAME_STEADY)
    return STAYS;
  if (find_outer(at, count, "?", ",") < count)
    return 0;
  size_t by = find_outer(at, count, "||", "||");
  if (by == count)
    by = find_outer(at, count, "&&", "&&");
  if (by < count)
    return goes(r, at, by) & goes(r, &at[by + 1], count - by - 1);
  if (find_outer(at, count, "==", "!=") < count ||
      find_outer(at, count, "|", "^") < count ||
      find_outer(at, count, "&", "&") < count)
    return 0;
  by = find_outer(at, count, "<", ">");
  if (by == count)
    by = find_outer(at, count, "<=", ">=");
  if (by < count)
    return find_outer(&at[by + 1], count - by - 1, "<", ">") ==
                       count - by - 1 &&
                   find_outer(&at[by + 1], count - by - 1, "<=", ">=") ==
                       count - by - 1 &&
                   find_outer(at, count, "<<", ">>") == count
               ? comparison_goes(r, at, count, by)
               : 0;
  if (cgl_token_is(at, "!")) {
    const int inner = goes(r, at + 1, count - 1);
    return (inner & FALLS ? RISES : 0) | (inner & RISES ? FALLS : 0);
  }
  return cgl_token_is(at, "(") && cgl_tokens_close(at, count, 0) == count
             ? goes(r, at + 1, count - 2)
             : 0;
}


/* Past `return;` or `{ return; }` at i, or 0. */
static size_t past_return(const reader *r, size_t i) {
  const bool braces = i < r->count && cgl_token_is(&r->at[i], "{");
  i += braces;
  if (i + 1 + braces >= r->count || !cgl_token_is(&r->at[i], "return") ||
      !cgl_token_is(&r->at[i + 1], ";") ||
      (braces && !cgl_token_is(&r->at[i + 2], "}")))
    return 0;
  return i + 2 + braces;
}


/* Is what begins at i one statement, the last of all?  An if's own else would
   be another's. */
static bool is_rest(const reader *r, size_t i) {
  if (i >= r->count)
    return false;
  if (cgl_token_is(&r->at[i], "{"))
    return cgl_tokens_close(r->at, r->count, i) == r->count;
  if (cgl_token_is_any(&r->at[i], "if", "for", "while", "do", "switch"))
    return false;
  while (i < r->count && !cgl_token_is(&r->at[i], ";"))
    i++;
  return i + 1 == r->count;
}


/* Is nothing but white space between the tokens, as none comes from a macro? */
static bool is_side_by_side(const cgl_token *a, const cgl_token *b) {
  const char *at = a->text + a->length;
  while (at < b->text && strchr(" \t\r\n", *at))
    at++;
  return at == b->text;
}


/* `if (condition) return;` goes on; `if (condition) ...` that is the rest
   ends the search.  True when it is an end. */
static bool try_end(reader *r, cgl_end *out) {
  const size_t open = r->i + 1;
  if (open >= r->count || !cgl_token_is(&r->at[open], "("))
    return false;
  const size_t close = cgl_tokens_close(r->at, r->count, open);
  const cgl_token *condition = &r->at[open + 1];
  const size_t n = close < r->count ? close - open - 2 : 0;
  const size_t past = past_return(r, close);
  if (!n || !is_pure(r, condition, n) ||
      find_outer(condition, n, ",", ",") < n || (!past && !is_rest(r, close)) ||
      !(goes(r, condition, n) & (past ? RISES : FALLS)))
    return false;
  if (!is_side_by_side(&r->at[r->i], &r->at[open]))
    return false;
  *out = (cgl_end){.open = r->at[open].text,
                   .close = r->at[close - 1].text,
                   .leaves = past != 0};
  r->i = past ? past : r->count;
  return true;
}


static bool is_continued(const cgl_program *p, const char *line) {
  return line - 1 > p->text && line[-2] == '\\';
}


/* Stand the kernel's `{` and the parentheses of its ends in the source itself,
   between no directives, and in no macro? */
static bool are_in_text(const cgl_program *p, const char *brace,
                        const cgl_end *ends, size_t n) {
  const char *last = ends[n - 1].close, *at = brace, *line = brace;
  if (brace < p->text || last >= p->text + p->length || last <= brace)
    return false;
  for (size_t i = 0; i < n; i++) {
    if (ends[i].open <= at || ends[i].close <= ends[i].open)
      return false;
    at = ends[i].close;
  }
  while (line > p->text && (line[-1] != '\n' || is_continued(p, line)))
    line--;
  line += strspn(line, " \t");
  return *line != '#' && !memchr(brace, '#', (size_t)(last - brace));
}


/* The parameters that are numbers or pointers join the known names. */
static bool try_parameters(reader *r, const cgl_declared *k,
                           const cgl_signature *s) {
  size_t n = 0;
  for (size_t i = 0; i < k->nparameters; n++) {
    const size_t end = cgl_tokens_element_end(k->parameters, k->nparameters, i);
    const cgl_parameter *p = &s->parameters[n];
    if (cgl_parameter_is_plain(p) && *p->name &&
        cgl_token_is(&k->parameters[end - 1], p->name) &&
        !try_name(r, &k->parameters[end - 1], NAME_STEADY, p))
      return false;
    i = end + 1;
  }
  return true;
}


int cgl_program_find_ends(cgl_program *p, const cgl_declared *k,
                          const cgl_alias *aliases, cgl_arena *arena,
                          cgl_signature *s) {
  const cgl_chunk *chunk = &p->chunks[k->chunk];
  reader r = {.aliases = aliases,
              .arena = arena,
              .at = chunk->at,
              .count = chunk->count,
              .strict = cgl_program_contains(p, "operator"),
              .spaces = cgl_program_contains(p, "namespace")};
  cgl_end found[MOST_ENDS];
  size_t n = 0, body;
  if (s->features & (CGL_USES_BARRIER | CGL_USES_SHARED | CGL_NEEDS_THREADS) ||
      !(s->features & CGL_USES_INDEX) || !try_parameters(&r, k, s))
    return 0;
  body = (size_t)(k->parameters + k->nparameters - r.at);
  while (body < r.count && !cgl_token_is(&r.at[body], "{"))
    body++;
  if (body + 1 >= r.count || !cgl_token_is(&r.at[r.count - 1], "}"))
    return 0;
  r.count--;
  for (r.i = body + 1; r.i < r.count && n < MOST_ENDS && !r.failed;) {
    if (cgl_token_is(&r.at[r.i], "if")) {
      if (!try_end(&r, &found[n]))
        break;
      n++;
    } else if (!try_declaration(&r))
      break;
  }
  if (!n || !r.dear || !are_in_text(p, r.at[body].text, found, n))
    return r.failed ? -1 : 0;
  found[n - 1].last = true;
  s->ends = cgl_arena_alloc(arena, n * sizeof *found);
  if (!s->ends)
    return -1;
  memcpy(s->ends, found, n * sizeof *found);
  s->nends = n;
  return r.failed ? -1 : 0;
}
