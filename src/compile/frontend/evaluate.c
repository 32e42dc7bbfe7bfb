/* Integer constant expressions, as in #if and __launch_bounds__. */
#include "compile/frontend/preprocess.h"

#include <stdlib.h>
#include <string.h>

typedef struct evaluator {
  const cgl_token *at;
  size_t i, count;
  int depth; /* of nested expressions, bounded */
  bool bad;
} evaluator;


static long long read_ternary(evaluator *e);


static bool try_word(evaluator *e, const char *word) {
  if (e->i < e->count && cgl_token_is(&e->at[e->i], word))
    return e->i++, true;
  return false;
}


static long long read_character(const cgl_token *t) {
  if (t->length == 3)
    return t->text[1];
  return t->length == 4 && t->text[1] == '\\' && t->text[2] == 'n' ? '\n' : 0;
}


static long long read_number(evaluator *e) {
  if (e->i >= e->count)
    return e->bad = true, 0;
  const cgl_token *t = &e->at[e->i++];
  if (t->kind == CGL_TOKEN_CHARACTER)
    return read_character(t);
  if (t->kind != CGL_TOKEN_NUMBER || t->length > 60)
    return e->bad = true, 0;
  char digits[64];
  size_t n = 0;
  for (uint32_t k = 0; k < t->length; k++)
    if (t->text[k] != '\'')
      digits[n++] = t->text[k];
  digits[n] = 0;
  char *end;
  bool binary = digits[0] == '0' && (digits[1] | 32) == 'b';
  unsigned long long value =
      strtoull(digits + 2 * binary, &end, binary ? 2 : 0);
  if (strspn(end, "uUlLzZ") != strlen(end))
    e->bad = true;
  return (long long)value;
}


static long long read_unary(evaluator *e) {
  if (e->depth > 200)
    return e->bad = true, 0;
  e->depth++;
  long long value;
  if (try_word(e, "!"))
    value = !read_unary(e);
  else if (try_word(e, "~"))
    value = ~read_unary(e);
  else if (try_word(e, "-"))
    value = (long long)(0ull - (unsigned long long)read_unary(e));
  else if (try_word(e, "+"))
    value = read_unary(e);
  else if (try_word(e, "(")) {
    value = read_ternary(e);
    e->bad |= !try_word(e, ")");
  } else
    value = read_number(e);
  e->depth--;
  return value;
}


static int precedence(const cgl_token *t) {
  static const struct {
    const char *word;
    int level;
  } table[] = {{"*", 10}, {"/", 10}, {"%", 10}, {"+", 9}, {"-", 9},
               {"<<", 8}, {">>", 8}, {"<", 7},  {">", 7}, {"<=", 7},
               {">=", 7}, {"==", 6}, {"!=", 6}, {"&", 5}, {"^", 4},
               {"|", 3},  {"&&", 2}, {"||", 1}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (cgl_token_is(t, table[i].word))
      return table[i].level;
  return 0;
}


/* Arithmetic wraps: what overflows here the compiler will judge. */
static long long apply_operator(evaluator *e, const cgl_token *op, long long a,
                                long long b) {
  unsigned long long x = (unsigned long long)a, y = (unsigned long long)b;
  if (cgl_token_is(op, "<<"))
    return (long long)(x << (y & 63));
  if (cgl_token_is(op, ">>"))
    return a >> (y & 63);
  if (cgl_token_is(op, "<="))
    return a <= b;
  if (cgl_token_is(op, ">="))
    return a >= b;
  if (cgl_token_is(op, "=="))
    return a == b;
  if (cgl_token_is(op, "!="))
    return a != b;
  if (cgl_token_is(op, "&&"))
    return a && b;
  if (cgl_token_is(op, "||"))
    return a || b;
  switch (*op->text) {
  case '*':
    return (long long)(x * y);
  case '+':
    return (long long)(x + y);
  case '-':
    return (long long)(x - y);
  case '<':
    return a < b;
  case '>':
    return a > b;
  case '&':
    return a & b;
  case '^':
    return a ^ b;
  case '|':
    return a | b;
  default:
    if (!b || (b == -1 && *op->text != '%'))
      return b ? (long long)(0 - x) : (e->bad = true, 0);
    if (b == -1)
      return 0;
    return *op->text == '/' ? a / b : a % b;
  }
}


static long long read_binary(evaluator *e, int lowest) {
  long long value = read_unary(e);
  while (e->i < e->count && !e->bad) {
    const cgl_token *op = &e->at[e->i];
    int level = precedence(op);
    if (level < lowest || !level)
      break;
    e->i++;
    long long right = read_binary(e, level + 1);
    value = apply_operator(e, op, value, right);
  }
  return value;
}


static long long read_ternary(evaluator *e) {
  if (e->depth > 200)
    return e->bad = true, 0;
  e->depth++;
  long long value = read_binary(e, 1);
  if (try_word(e, "?")) {
    long long yes = read_ternary(e);
    e->bad |= !try_word(e, ":");
    long long no = read_ternary(e);
    value = value ? yes : no;
  }
  e->depth--;
  return value;
}


int cgl_evaluate(const cgl_token *at, size_t count, long long *value) {
  evaluator e = {.at = at, .count = count};
  *value = read_ternary(&e);
  return e.bad || e.i < e.count ? -1 : 0;
}
