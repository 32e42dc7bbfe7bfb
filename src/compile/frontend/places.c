/* Where a thread stands along x, in a kernel's words. */
#include <string.h>

#include "compile/frontend/program.h"


bool cgl_token_is_axis(const cgl_token *at, size_t count, size_t i,
                       const char *object) {
  return i + 2 < count && cgl_token_is(&at[i], object) &&
         cgl_token_is(&at[i + 1], ".") && cgl_token_is(&at[i + 2], "x");
}


/* The tokens of blockIdx.x * blockDim.x or the other way round at i. */
static size_t block_offset(const cgl_token *at, size_t count, size_t i) {
  bool first = cgl_token_is_axis(at, count, i, "blockIdx");
  if (!first && !cgl_token_is_axis(at, count, i, "blockDim"))
    return 0;
  if (i + 3 < count && cgl_token_is(&at[i + 3], "*") &&
      cgl_token_is_axis(at, count, i + 4, first ? "blockDim" : "blockIdx"))
    return 7;
  return 0;
}


size_t cgl_token_place(const cgl_token *at, size_t count, size_t i) {
  size_t n = block_offset(at, count, i), k = i + n;
  if (n) {
    while (k < count && cgl_token_is(&at[k], ")"))
      k++;
    if (k < count && cgl_token_is(&at[k], "+")) {
      k++;
      while (k < count && (cgl_token_is(&at[k], "(")))
        k++;
      if (cgl_token_is_axis(at, count, k, "threadIdx"))
        return k + 3 - i;
    }
    return 0;
  }
  if (!cgl_token_is_axis(at, count, i, "threadIdx"))
    return 0;
  k = i + 3;
  if (k >= count || !cgl_token_is(&at[k], "+"))
    return 0;
  k++;
  while (k < count && cgl_token_is(&at[k], "("))
    k++;
  n = block_offset(at, count, k);
  return n ? k + n - i : 0;
}


/* Does the cast at i make a whole number of 64 bits?  *end: past it. */
static bool is_wide_cast(const cgl_token *at, size_t count, size_t i,
                         size_t *end) {
  bool wide = false;
  if (!cgl_token_is(&at[i], "("))
    return false;
  *end = cgl_tokens_close(at, count, i);
  for (size_t k = i + 1; k + 1 < *end; k++) {
    if (!cgl_token_is_any(&at[k], "long", "int", "unsigned", "size_t",
                          "int64_t", "uint64_t", "ptrdiff_t"))
      return false;
    wide |= !cgl_token_is_any(&at[k], "int", "unsigned");
  }
  return wide;
}


size_t cgl_token_long_place(const cgl_token *at, size_t count, size_t i,
                            size_t *cast) {
  const size_t open = i;
  if (!i ||
      !cgl_token_is_any(&at[i - 1], "=", "(", "{", ",", ";", "return", "["))
    return 0;
  const bool inside = i + 1 < count && cgl_token_is(&at[i], "(") &&
                      cgl_token_is(&at[i + 1], "(");
  i += inside;
  if (!is_wide_cast(at, count, i, &i))
    return 0;
  *cast = i;
  const bool block = cgl_token_is_axis(at, count, i, "blockIdx");
  if (!(block || cgl_token_is_axis(at, count, i, "blockDim")) ||
      i + 11 + inside > count || !cgl_token_is(&at[i + 3], "*") ||
      !cgl_token_is_axis(at, count, i + 4, block ? "blockDim" : "blockIdx") ||
      (inside && !cgl_token_is(&at[i + 7], ")")))
    return 0;
  i += 7 + inside;
  const bool ends =
      i + 4 == count || cgl_token_is_any(&at[i + 4], ";", ")", ",", "}", "]",
                                         "+", "-", "<", ">=");
  return cgl_token_is(&at[i], "+") &&
                 cgl_token_is_axis(at, count, i + 1, "threadIdx") && ends
             ? i + 4 - open
             : 0;
}


/* May the type hold every place?  A name of the source's own is taken to. */
static bool is_wide_enough(const cgl_token *at, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (cgl_token_is_any(&at[i], "char", "short", "bool", "float", "half",
                         "int8_t", "uint8_t", "int16_t", "uint16_t", "uchar",
                         "ushort", "__half"))
      return false;
  return true;
}


/* Spells an expression with one letter per part, casts and parentheses left
   out: B * D + T.  False when there is anything else in it, or when parentheses
   could change what it means. */
static bool try_letters(const cgl_token *at, size_t count, char out[8]) {
  size_t n = 0;
  for (size_t i = 0; i < count; i++) {
    const cgl_token *t = &at[i];
    char c = 0;
    if (cgl_token_is_axis(at, count, i, "blockIdx"))
      c = 'B';
    else if (cgl_token_is_axis(at, count, i, "blockDim"))
      c = 'D';
    else if (cgl_token_is_axis(at, count, i, "threadIdx"))
      c = 'T';
    else if (cgl_token_is_axis(at, count, i, "gridDim"))
      c = 'G';
    if (c)
      i += 2;
    else if (cgl_token_is_any(t, "*", "+"))
      c = *t->text;
    else if (cgl_token_is(t, "(")) {
      size_t end = cgl_tokens_close(at, count, i), k = i + 1;
      while (k + 1 < end && at[k].kind == CGL_TOKEN_NAME &&
             (k + 2 == end || !cgl_token_is(&at[k + 1], ".")))
        k++;
      if (k + 1 == end && k > i + 1) {
        if (!is_wide_enough(&at[i + 1], k - i - 1))
          return false;
        i = k; /* a cast */
      } else if (i && cgl_token_is(&at[i - 1], "*"))
        return false;
      continue;
    } else if (cgl_token_is(t, ")")) {
      if (i + 1 < count && cgl_token_is(&at[i + 1], "*"))
        return false;
      continue;
    } else
      return false;
    if (n == 7)
      return false;
    out[n++] = c;
  }
  out[n] = 0;
  return n > 0;
}


bool cgl_tokens_are_place(const cgl_token *at, size_t count) {
  char s[8];
  return try_letters(at, count, s) &&
         (!strcmp(s, "B*D+T") || !strcmp(s, "D*B+T") || !strcmp(s, "T+B*D") ||
          !strcmp(s, "T+D*B"));
}


bool cgl_tokens_are_width(const cgl_token *at, size_t count) {
  char s[8];
  return try_letters(at, count, s) && (!strcmp(s, "D*G") || !strcmp(s, "G*D"));
}


bool cgl_tokens_mention_place(const cgl_token *at, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (cgl_token_is_draw(&at[i]) ||
        (cgl_token_is_position(&at[i]) &&
         !(i + 2 < count && cgl_token_is(&at[i + 1], ".") &&
           cgl_token_is_any(&at[i + 2], "y", "z"))))
      return true;
  return false;
}
