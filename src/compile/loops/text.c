/* Tokens, names and types of a kernel as the text of its loops. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/loops/write_private.h"

#define MOST_TURNS 64 /* of the innermost loops that are written out */
#define MOST_TOKENS 2000


/* ---- tokens ---- */

void cgl_put_line(writer *w, int line) {
  if (w->line >= 0 && line == w->line + 1)
    cgl_text_put(w->out, "\n");
  else if (line != w->line) {
    /* 3: a header of the system's, which gives no warnings */
    cgl_text_print(w->out, "\n# %d \"", line);
    cgl_text_quote(w->out, w->style->file);
    cgl_text_put(w->out, "\" 3\n");
  }
  w->line = line;
}


bool cgl_put_is_plain_atomic(writer *w, row r, size_t i) {
  static const char *const names[] = {"atomicAdd", "atomicSub", "atomicMin",
                                      "atomicMax", "atomicAnd", "atomicOr",
                                      "atomicXor", "atomicInc", "atomicExch",
                                      "atomicDec", "atomicCAS", NULL};
  if (i + 3 >= r.n || !cgl_token_is_of(&r.at[i], names) ||
      !cgl_token_is(&r.at[i + 1], "(") ||
      cgl_reach_declares(w->t->program, &r.at[i]))
    return false;
  size_t end = i + 2;
  while (end < r.n && !cgl_token_is_any(&r.at[end], ",", ")"))
    end = cgl_tokens_past(r.at, r.n, end);
  return cgl_shared_is_address(w->t, cgl_row_slice(r, i + 2, end), 0);
}


/* Does a space stand before token i, or must one?  Assertions show the text. */
static bool is_apart(row r, size_t i) {
  const cgl_token *x = &r.at[i];
  if (!i || x->space || x->first)
    return true;
  bool word = x->kind != CGL_TOKEN_PUNCT,
       after = r.at[i - 1].kind != CGL_TOKEN_PUNCT;
  return word == after && (word || !(strchr("()[];,", *x->text) ||
                                     strchr("()[]", *r.at[i - 1].text)));
}


/* Is the token at i within the brackets of an assert, which shows its text? */
static bool is_asserted(row r, size_t i) {
  for (size_t k = 0; k + 1 < i; k++)
    if (cgl_token_is(&r.at[k], "assert") && cgl_token_is(&r.at[k + 1], "(") &&
        cgl_tokens_close(r.at, r.n, k + 1) > i)
      return true;
  return false;
}


/* Writes the lane or the warp of the thread, where warps are rows of threads:
   how many tokens that is, or 0. */
static size_t put_lane(writer *w, row r, size_t i) {
  bool warp;
  size_t n = w->run && w->fast ? cgl_stride_lane(r, i, &warp) : 0;
  if (n && is_asserted(r, i))
    return 0;
  if (n)
    cgl_text_put(w->out, !warp ? " (+cgl_l)"
                         : cgl_row_has(cgl_row_slice(r, i, i + n), "blockDim")
                             ? " (cgl_w / 32)"
                             : " (cgl_wx / 32)");
  return n;
}


/* How many tokens at i are an index that has a wide form, threadIdx.x or a
   variable behind it by a sum. */
static size_t find_index(const writer *w, row r, size_t i) {
  if (!w->t->strips && cgl_token_is_axis(r.at, r.n, i, "threadIdx"))
    return 3;
  const variable *v =
      cgl_tree_is_name(r, i) ? cgl_tree_find(w->t, &r.at[i]) : NULL;
  return v ? v->index.n > 0 || v->beside
           : w->walked && cgl_token_same(w->walked, &r.at[i]);
}


/* Is the array whose subscript opens at i in shared memory? */
static bool is_of_shared(const writer *w, row r, size_t i) {
  while (i && cgl_token_is(&r.at[i - 1], "]")) {
    for (int depth = 0; i;) {
      i--;
      depth += cgl_token_is(&r.at[i], "]") - cgl_token_is(&r.at[i], "[");
      if (!depth)
        break;
    }
  }
  const variable *v = i ? cgl_tree_find(w->t, &r.at[i - 1]) : NULL;
  return v && v->shared;
}


size_t cgl_put_find_index(const writer *w, row r, size_t *n) {
  size_t at = 0;
  bool begins = true; /* a term that is added */
  *n = 0;
  for (size_t k = 0; k < r.n; k++) {
    if (cgl_token_is_any(&r.at[k], "(", "[", "{")) {
      k = cgl_tokens_close(r.at, r.n, k) - 1;
      begins = false;
      continue;
    }
    size_t length = begins ? find_index(w, r, k) : 0;
    bool ends =
        k + length >= r.n || cgl_token_is_any(&r.at[k + length], "+", "-");
    if (length && ends && !*n) {
      at = k;
      *n = length;
      k += length - 1;
    } else if (r.at[k].kind == CGL_TOKEN_PUNCT &&
               !cgl_token_is_any(&r.at[k], "+", "-", "*", "/", "%", ".")) {
      *n = 0;
      return 0;
    }
    begins = cgl_token_is(&r.at[k], "+");
  }
  return at;
}


void cgl_put_rest(writer *w, row r, size_t at, size_t n) {
  row rest = cgl_tree_copy(w->t, r.at, r.n);
  if (w->t->failed)
    return;
  rest.at[at] = cgl_tree_token(w->t, &r.at[at], "0");
  memmove(&rest.at[at + 1], &r.at[at + n], (r.n - at - n) * sizeof *r.at);
  rest.n -= n - 1;
  cgl_put_tokens(w, rest, false);
}


/* Writes the subscript [sum] that opens at i, one term of which is an index
   with a wide form: with it the compiler sees neighbours.  Returns how many
   tokens it has, or 0. */
static size_t put_subscript(writer *w, row r, size_t i) {
  if (!w->inside || !i || !cgl_token_is(&r.at[i], "["))
    return 0;
  size_t end = cgl_tokens_close(r.at, r.n, i) - 1, n;
  row sum = cgl_row_slice(r, i + 1, end);
  size_t at = cgl_put_find_index(w, sum, &n);
  if (!n || (n == 3 && sum.n == 3)) /* the compiler sees it */
    return 0;
  const int length = (int)sum.at[at].length;
  const char *name = sum.at[at].text;
  cgl_text_put(w->out, "[");
  if (n == sum.n)
    cgl_text_print(w->out, "cgl_wide_%.*s", length, name);
  else {
    const char *shared = is_of_shared(w, r, i) ? "true" : "false";
    if (n == 3)
      cgl_text_print(w->out, "cgl_near<%s, true>(threadIdx.x, threadIdx.x,",
                     shared);
    else
      cgl_text_print(w->out, "cgl_near<%s, cgl_wide>(cgl_wide_%.*s, %.*s,",
                     shared, length, name, length, name);
    cgl_put_rest(w, sum, at, n);
    cgl_text_print(w->out, ", %s, %s)", cgl_put_counter(w), cgl_put_last(w));
  }
  cgl_text_put(w->out, "]");
  return end + 1 - i;
}


/* Writes the place of a strip's thread that is spelled with casts: how many
   tokens it has, or 0. */
static size_t put_place(writer *w, row r, size_t i) {
  cgl_place place;
  const size_t n =
      w->t->strips ? cgl_token_cast_place(r.at, r.n, i, &place) : 0;
  if (!n || place.width)
    return 0;
  for (size_t k = 0; k < place.ncasts; k++) {
    cgl_text_put(w->out, k ? "," : " ::cgl_strip_place<");
    for (size_t j = 0; j < place.casts[k].count; j++)
      cgl_text_print(w->out, " %.*s", (int)place.casts[k].at[j].length,
                     place.casts[k].at[j].text);
  }
  cgl_text_put(w->out, ">((decltype(");
  for (size_t k = i; k < i + n; k++)
    cgl_text_print(w->out, " %.*s", (int)r.at[k].length, r.at[k].text);
  cgl_text_put(w->out, "))cgl_i)");
  return n;
}


/* How often the innermost loops of the statement at i run, when that is known
   of all. */
static unsigned long all_turns(row r, size_t i) {
  unsigned long turns = cgl_tree_turns(r, i), most = 1;
  size_t end = cgl_tree_end(r, i);
  if (!turns)
    return 0;
  for (size_t k = i + 1; k < end; k++) {
    if (cgl_token_is_any(&r.at[k], "while", "do", "break", "continue", "return",
                         "goto"))
      return 0;
    if (!cgl_token_is(&r.at[k], "for"))
      continue;
    unsigned long inner = all_turns(r, k);
    if (!inner)
      return 0;
    most = inner > most ? inner : most;
    k = cgl_tree_end(r, k) - 1;
  }
  return turns * most;
}


/* Loops of a few turns in a thread's own code are written out: the compiler
   takes threads together only around the innermost loop. */
static void put_unrolled(writer *w, row r, size_t i) {
  unsigned long turns = w->inside ? all_turns(r, i) : 0;
  if (turns && turns <= MOST_TURNS &&
      turns * (cgl_tree_end(r, i) - i) <= MOST_TOKENS)
    cgl_text_print(w->out, " CGL_UNROLL(%lu)", cgl_tree_turns(r, i));
}


/* How many tokens at i divide and are the same for all threads. */
static size_t find_divisor(writer *w, row r, size_t i) {
  if (!i || !cgl_token_is_any(&r.at[i - 1], "/", "%"))
    return 0;
  const variable *v = cgl_tree_find(w->t, &r.at[i]);
  bool known = cgl_token_is_any(&r.at[i], "blockDim", "gridDim") ||
               (v && (v->uniform || v->parameter) && !v->assigned);
  size_t end = i + 1;
  while (known && end + 1 < r.n && cgl_token_is(&r.at[end], ".") &&
         r.at[end + 1].kind == CGL_TOKEN_NAME)
    end += 2;
  bool ends = end >= r.n || !cgl_token_is_any(&r.at[end], "(", "[", ".", "->",
                                              "::", "++", "--");
  return known && ends ? end - i : 0;
}


/* The thread leaves the kernel, and so the masks of its warp. */
static void put_leave(writer *w) {
  cgl_text_put(w->out, " {");
  for (size_t k = 0; k < w->nouter && w->alive; k++)
    cgl_text_print(w->out, " %s[cgl_l] = 0;", w->outer[k]);
  if (w->mask && w->alive)
    cgl_text_print(w->out, " %s[cgl_l] = 0;", w->mask);
  if (w->alive)
    cgl_text_put(w->out, " cgl_alive[cgl_t] = 0;");
  cgl_text_print(w->out, " goto cgl_next_%d; }", w->labels);
}


/* A return leaves the thread's part of a region, but not one of a lambda. */
void cgl_put_tokens(writer *w, row r, bool in_region) {
  size_t spoken = 0; /* past what an assertion would say */
  w->tokens += r.n;
  for (size_t i = 0; i < r.n; i++) {
    const cgl_token *x = &r.at[i];
    cgl_put_line(w, x->line);
    size_t written = cgl_guard_put_known(w, r, i);
    if (!written)
      written = put_lane(w, r, i);
    if (!written)
      written = put_place(w, r, i);
    if (!written)
      written = put_subscript(w, r, i);
    size_t lambda = in_region && !written ? cgl_tree_lambda(r, i) : 0;
    if (lambda) {
      cgl_put_tokens(w, cgl_row_slice(r, i, lambda), false);
      written = lambda - i;
    }
    if (written) {
      i += written - 1;
      continue;
    }
    if (in_region && cgl_token_is(x, "return")) {
      if (i + 1 >= r.n || !cgl_token_is(&r.at[i + 1], ";"))
        cgl_tree_refuse(w->t, x, "a return with a value");
      put_leave(w);
      i++;
      continue;
    }
    if (cgl_token_is(x, "assert") && i + 1 < r.n)
      spoken = cgl_tokens_close(r.at, r.n, i + 1);
    size_t divisor = i >= spoken ? find_divisor(w, r, i) : 0;
    if (divisor) {
      cgl_text_put(w->out, " cgl_over(");
      for (size_t k = 0; k < divisor; k++)
        cgl_text_add(w->out, r.at[i + k].text, r.at[i + k].length);
      cgl_text_put(w->out, ")");
      i += divisor - 1;
      continue;
    }
    put_unrolled(w, r, i);
    if (is_apart(r, i))
      cgl_text_put(w->out, " ");
    if (cgl_put_is_plain_atomic(w, r, i))
      cgl_text_put(w->out, "cgl_plain_");
    else if (cgl_program_is_sum(w->t->program, x))
      cgl_text_put(w->out, "cgl_sum_");
    cgl_text_add(w->out, x->text, x->length);
  }
}


/* The next line of the text is not the script's. */
void cgl_put_own(writer *w) {
  cgl_text_put(w->out, "\n");
  w->line = -1;
}


const char *cgl_put_counter(const writer *w) {
  return w->run ? "cgl_l" : w->pieces ? "cgl_i" : "cgl_x";
}


const char *cgl_put_last(const writer *w) {
  return w->run ? "31u" : w->pieces ? "cgl_many - 1" : "cgl_bx - 1";
}


void cgl_put_name(writer *w, const char *prefix, const variable *v) {
  cgl_text_print(w->out, "%s%.*s", prefix, (int)v->name.length, v->name.text);
}


/* The type without const, unless it is that of a pointee. */
void cgl_put_type(writer *w, const variable *v) {
  size_t last = 0;
  for (size_t i = 0; i < v->type.n; i++)
    if (cgl_token_is(&v->type.at[i], "*"))
      last = i + 1;
  for (size_t i = 0; i < v->type.n; i++)
    if (i < last || !cgl_token_is_any(&v->type.at[i], "const", "&", "&&"))
      cgl_text_print(w->out, " %.*s", (int)v->type.at[i].length,
                     v->type.at[i].text);
}


/* Of the name that the source gives: __1, __c and __l1 made it unique. */
int cgl_put_length(const variable *v) {
  const char *text = v->name.text;
  for (int n = (int)v->name.length;;) {
    int k = n;
    while (k && text[k - 1] >= '0' && text[k - 1] <= '9')
      k--;
    if (k > 2 && (text[k - 1] == 'c' || text[k - 1] == 'l'))
      k--;
    if (k < 3 || memcmp(&text[k - 2], "__", 2) != 0)
      return n;
    n = k - 2;
  }
}
