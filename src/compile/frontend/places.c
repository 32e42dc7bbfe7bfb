/* Where a thread stands along x, in a kernel's words. */
#include <string.h>

#include "compile/frontend/program.h"

#define MOST_TOKENS 96 /* of a place: tokens are read in linear time */


bool cgl_token_is_axis(const cgl_token *at, size_t count, size_t i,
                       const char *object) {
  return i + 2 < count && cgl_token_is(&at[i], object) &&
         cgl_token_is(&at[i + 1], ".") && cgl_token_is(&at[i + 2], "x");
}


/* What is read of a place so far. */
typedef struct reader {
  const cgl_token *at;
  size_t count, i;
  cgl_place *place;
  bool widths; /* the width may be another one than blockDim.x */
} reader;


static bool is_here(const reader *r, const char *word) {
  return r->i < r->count && cgl_token_is(&r->at[r->i], word);
}


static bool try_word(reader *r, const char *word) {
  const bool here = is_here(r, word);
  r->i += here;
  return here;
}


/* The type that a cast names, tokens [from, end). */
static bool try_type(reader *r, size_t from, size_t end) {
  cgl_place *p = r->place;
  if (from == end || p->ncasts == CGL_PLACE_CASTS)
    return false;
  for (size_t i = from; i < end; i++)
    if (r->at[i].kind != CGL_TOKEN_NAME && !cgl_token_is(&r->at[i], "::"))
      return false;
  p->casts[p->ncasts++] = (cgl_span){&r->at[from], end - from};
  return true;
}


/* `(T)`, in front of what is cast. */
static bool try_cast(reader *r) {
  if (!is_here(r, "("))
    return false;
  const size_t close = cgl_tokens_close(r->at, r->count, r->i);
  if (close >= r->count ||
      (r->at[close].kind != CGL_TOKEN_NAME &&
       !cgl_token_is(&r->at[close], "(")) ||
      !try_type(r, r->i + 1, close - 1))
    return false;
  r->i = close;
  return true;
}


/* `static_cast<T>` or `T`, in front of parentheses. */
static bool try_named_cast(reader *r) {
  if (is_here(r, "static_cast") && r->i + 1 < r->count &&
      cgl_token_is(&r->at[r->i + 1], "<")) {
    const size_t end = cgl_tokens_close_angle(r->at, r->count, r->i + 1);
    if (end >= r->count || !try_type(r, r->i + 2, end - 1))
      return false;
    r->i = end;
  } else if (r->i < r->count && cgl_token_is_known_type(&r->at[r->i]) &&
             try_type(r, r->i, r->i + 1))
    r->i++;
  else
    return false;
  return is_here(r, "(");
}


/* The object's x, with casts and parentheses around it. */
static bool try_part(reader *r, const char *object, int depth) {
  const reader before = *r;
  const size_t casts = r->place->ncasts;
  while (depth < 4 && try_cast(r))
    depth++;
  if (cgl_token_is_axis(r->at, r->count, r->i, object)) {
    r->i += 3;
    return true;
  }
  if (depth < 4 && (is_here(r, "(") || try_named_cast(r)) && try_word(r, "(") &&
      try_part(r, object, depth + 1) && try_word(r, ")"))
    return true;
  *r = before;
  r->place->ncasts = casts;
  return false;
}


/* blockDim.x, or what stands for it. */
static bool try_width(reader *r) {
  if (try_part(r, "blockDim", 0))
    return true;
  const cgl_token *t = &r->at[r->i];
  if (!r->widths || r->i + 1 >= r->count ||
      cgl_token_is_any(t + 1, "(", "[", ".", "->", "::", "<") ||
      (t->kind != CGL_TOKEN_NUMBER &&
       (t->kind != CGL_TOKEN_NAME || cgl_token_is_position(t) ||
        cgl_token_is_type_word(t))))
    return false;
  r->place->width = t;
  r->i++;
  return true;
}


static bool try_product(reader *r, int depth) {
  const reader before = *r;
  const size_t casts = r->place->ncasts;
  if (try_part(r, "blockIdx", 0) && try_word(r, "*") && try_width(r))
    return true;
  *r = before;
  r->place->ncasts = casts;
  if (try_width(r) && try_word(r, "*") && try_part(r, "blockIdx", 0))
    return true;
  *r = before;
  r->place->ncasts = casts;
  if (!try_cast(r))
    try_named_cast(r);
  if (depth < 2 && try_word(r, "(") && try_product(r, depth + 1) &&
      try_word(r, ")"))
    return true;
  *r = before;
  r->place->ncasts = casts;
  return false;
}


static size_t read_place(const cgl_token *at, size_t count, size_t i,
                         bool widths, cgl_place *place) {
  reader r = {.at = at,
              .count = count - i < MOST_TOKENS ? count : i + MOST_TOKENS,
              .i = i,
              .place = place,
              .widths = widths};
  *place = (cgl_place){0};
  if (try_product(&r, 0) && try_word(&r, "+") && try_part(&r, "threadIdx", 0))
    return r.i - i;
  r.i = i;
  *place = (cgl_place){0};
  return try_part(&r, "threadIdx", 0) && try_word(&r, "+") && try_product(&r, 0)
             ? r.i - i
             : 0;
}


size_t cgl_token_place(const cgl_token *at, size_t count, size_t i,
                       cgl_place *place) {
  if (!cgl_token_is_any(&at[i], "(", "blockIdx", "blockDim", "threadIdx",
                        "static_cast") &&
      !cgl_token_is_known_type(&at[i]))
    return 0;
  return read_place(at, count, i, false, place);
}


size_t cgl_token_cast_place(const cgl_token *at, size_t count, size_t i,
                            cgl_place *place) {
  static const char *const before[] = {"=", "(",  "{",  ",",  ";",  "return",
                                       "[", "<",  ">",  "<=", ">=", "?",
                                       ":", "&&", "||", NULL};
  static const char *const behind[] = {";", ")",  ",",  "}",  "]",  "+",
                                       "-", "<",  ">",  "<=", ">=", "?",
                                       ":", "&&", "||", "==", "!=", NULL};
  if (!i || !cgl_token_is_of(&at[i - 1], before))
    return 0;
  const size_t n = read_place(at, count, i, true, place);
  return n && place->ncasts &&
                 (i + n == count || cgl_token_is_of(&at[i + n], behind))
             ? n
             : 0;
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
      if (k + 1 == end && k > i + 1)
        i = k; /* a cast */
      else if (i && cgl_token_is(&at[i - 1], "*"))
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


bool cgl_tokens_are_place(const cgl_token *at, size_t count, cgl_place *place) {
  cgl_place outer = {0};
  if (count > MOST_TOKENS)
    return false;
  reader r = {.at = at, .count = count, .place = &outer};
  while (r.i < r.count &&
         read_place(at, r.count, r.i, false, place) != r.count - r.i) {
    if (try_cast(&r))
      continue;
    if (!is_here(&r, "(") || cgl_tokens_close(at, r.count, r.i) != r.count)
      return false;
    r.i++;
    r.count--;
  }
  for (size_t i = 0; i < outer.ncasts; i++) {
    if (place->ncasts == CGL_PLACE_CASTS)
      return false;
    place->casts[place->ncasts++] = outer.casts[i];
  }
  return r.i < r.count;
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
