/* Loops of a thread that the threads of a row can take together. */
#include <stdio.h>
#include <string.h>

#include "compile/loops/write_private.h"


/* ---- the thread's index ---- */

size_t cgl_stride_lane(row r, size_t i, bool *warp) {
  size_t open = i;
  while (open < r.n && cgl_token_is(&r.at[open], "("))
    open++;
  size_t n = open - i, k = open + 3 + n;
  if (!cgl_token_is_axis(r.at, r.n, open, "threadIdx") || k + 1 >= r.n)
    return 0;
  for (size_t j = open + 3; j < k; j++)
    if (!cgl_token_is(&r.at[j], ")"))
      return 0;
  const cgl_token *op = &r.at[k], *by = &r.at[k + 1];
  bool product = cgl_token_is_any(op, "%", "/");
  *warp = cgl_token_is_any(op, "/", ">>");
  if (product ? !cgl_token_is_any(by, "32", "32u", "warpSize")
      : *warp ? !cgl_token_is_any(by, "5", "5u")
              : !cgl_token_is(op, "&") ||
                    !cgl_token_is_any(by, "31", "31u", "0x1f", "0x1fu"))
    return 0;
  /* what stands around it binds less */
  if (i && !cgl_token_is_any(&r.at[i - 1], "=", "(", ",", "[", "return", "?"))
    return 0;
  bool last = k + 2 >= r.n;
  if (!last && !cgl_token_is_any(&r.at[k + 2], ")", ";", ",", "]") &&
      !(product && cgl_token_is_any(&r.at[k + 2], "==", "!=", "<", ">", "+",
                                    "-", "<=", ">=")))
    return 0;
  return k + 2 - i;
}


/* ---- strided loops ---- */

/* `threadIdx.x`, or what is the lane of a warp whose threads are in a row. */
static size_t own_index(row r, size_t i, bool *lane) {
  if (!cgl_token_is_axis(r.at, r.n, i, "threadIdx"))
    return 0;
  *lane = i + 4 < r.n &&
          ((cgl_token_is(&r.at[i + 3], "%") &&
            cgl_token_is_any(&r.at[i + 4], "32", "32u", "warpSize")) ||
           (cgl_token_is(&r.at[i + 3], "&") &&
            cgl_token_is_any(&r.at[i + 4], "31", "31u", "0x1f")));
  return *lane ? 5 : 3;
}


/* Is the row a sum with the thread's index in it once?  *at and *n are where.
   Everything else must be the same for all threads. */
static bool is_index_sum(row r, size_t *at, size_t *n, bool *lane,
                         const cgl_token *base) {
  while (r.n > 2 && cgl_token_is(r.at, "(") &&
         cgl_tokens_close(r.at, r.n, 0) == r.n)
    r = cgl_row_slice(r, 1, r.n - 1);
  size_t found = 0;
  for (size_t i = 0; i < r.n;) {
    size_t end = i;
    while (end < r.n && !cgl_token_is_any(&r.at[end], "+", "-"))
      end = cgl_token_is_any(&r.at[end], "(", "[")
                ? cgl_tokens_close(r.at, r.n, end)
                : end + 1;
    row term = cgl_row_slice(r, i, end);
    for (size_t k = 0; k < term.n; k++)
      if (cgl_token_is_any(&term.at[k], "(", "["))
        k = cgl_tokens_close(term.at, term.n, k) - 1;
      else if (cgl_token_is_any(&term.at[k], "<<", ">>", "|", "^", "?", "<",
                                ">", "==", "!=", "<=", ">=", "&&", "||"))
        return false;
    if (cgl_row_has(term, "threadIdx")) {
      size_t k = own_index(term, 0, lane);
      if (found++ || (i && !cgl_token_is(&r.at[i - 1], "+")))
        return false;
      if (k && k == term.n) {
        *at = (size_t)(term.at - base);
        *n = k;
      } else if (!cgl_token_is(term.at, "(") ||
                 cgl_tokens_close(term.at, term.n, 0) != term.n ||
                 !is_index_sum(term, at, n, lane, base))
        return false;
    } else
      for (size_t k = 0; k < term.n; k++)
        if (cgl_token_is_any(&term.at[k], "&") && found)
          return false;
    i = end + 1;
  }
  return found == 1;
}


/* With what is computed again written out. */
row cgl_stride_expand(writer *w, row r, int depth) {
  row made = {NULL, 0};
  cgl_tokens all = {0};
  for (size_t i = 0; i < r.n; i++) {
    const variable *v =
        cgl_tree_is_name(r, i) ? cgl_tree_find(w->t, &r.at[i]) : NULL;
    if (!v || !v->again || depth > 8 || v->value.n < 2) {
      cgl_tokens_add(&all, r.at[i]);
      continue;
    }
    row value =
        cgl_stride_expand(w, cgl_row_slice(v->value, 1, v->value.n), depth + 1);
    cgl_token open = cgl_tree_token(w->t, &r.at[i], "("),
              close = cgl_tree_token(w->t, &r.at[i], ")");
    open.kind = close.kind = CGL_TOKEN_PUNCT;
    cgl_tokens_add(&all, open);
    for (size_t k = 0; k < value.n; k++)
      cgl_tokens_add(&all, value.at[k]);
    cgl_tokens_add(&all, close);
  }
  w->t->failed |= all.failed;
  if (all.count)
    made = cgl_tree_copy(w->t, all.at, all.count);
  cgl_tokens_free(&all);
  return made;
}


/* Replaces the n tokens at `at` by the number 0. */
static void put_zero(writer *w, row *r, size_t at, size_t n) {
  r->at[at] = cgl_tree_token(w->t, &r->at[at], "0u");
  r->at[at].kind = CGL_TOKEN_NUMBER;
  memmove(&r->at[at + 1], &r->at[at + n], (r->n - at - n) * sizeof *r->at);
  r->n -= n - 1;
}


void cgl_stride_find_indices(writer *w) {
  for (variable *v = w->t->variables; v; v = v->next) {
    bool fits = v->again && v->value.n > 1 && !v->is_auto;
    size_t at = 0, n = 0;
    bool lane = false;
    for (size_t i = 0; i < v->type.n; i++)
      fits &= cgl_token_is_any(&v->type.at[i], "int", "unsigned", "const",
                               "uint32_t", "int32_t", "uint");
    if (!fits)
      continue;
    row sum = cgl_stride_expand(w, cgl_row_slice(v->value, 1, v->value.n), 0);
    if (!sum.at || !is_index_sum(sum, &at, &n, &lane, sum.at) || lane)
      continue;
    put_zero(w, &sum, at, n);
    for (size_t i = 0; i < sum.n; i++)
      fits &= sum.at[i].kind == CGL_TOKEN_NUMBER ||
              cgl_token_is_any(&sum.at[i], "+", "-", "*", "(", ")", ".", "x",
                               "y", "z", "blockIdx", "blockDim", "gridDim");
    if (fits)
      v->index = sum;
  }
}


/* for (T c = sum with the thread's index; c < uniform; c += uniform): the
   threads of a row can take one step of it together. */
bool cgl_stride_find(writer *w, const statement *s, stride *out) {
  row r = s->all;
  if (r.n < 12 || !cgl_token_is(r.at, "for"))
    return false;
  size_t close = cgl_tokens_close(r.at, r.n, 1), first = 2, second;
  while (first < close && !cgl_token_is(&r.at[first], ";"))
    first++;
  for (second = first + 1; second < close && !cgl_token_is(&r.at[second], ";");)
    second++;
  size_t equal = 2;
  while (equal < first && !cgl_token_is(&r.at[equal], "="))
    equal++;
  if (second + 3 >= close || equal < 4 || equal + 1 >= first)
    return false;
  *out = (stride){.type = cgl_row_slice(r, 2, equal - 1),
                  .name = cgl_row_slice(r, equal - 1, equal),
                  .bound = cgl_row_slice(r, first + 3, second),
                  .step = cgl_row_slice(r, second + 3, close - 1),
                  .body = cgl_row_slice(r, close, r.n)};
  for (size_t i = 0; i < out->type.n; i++)
    if (!cgl_token_is_any(&out->type.at[i], "int", "unsigned", "size_t", "long",
                          "uint32_t", "int32_t", "uint"))
      return false;
  const cgl_token *c = out->name.at;
  if (!cgl_token_same(&r.at[first + 1], c) ||
      !cgl_token_is(&r.at[first + 2], "<") ||
      !cgl_token_same(&r.at[second + 1], c) ||
      !cgl_token_is(&r.at[second + 2], "+=") ||
      !cgl_values_is_uniform(w->t, out->bound, false) ||
      !cgl_values_is_uniform(w->t, out->step, false) ||
      cgl_values_is_assigned(w->t, out->body, &(variable){.name = *c}) ||
      cgl_tree_returns(out->body) || cgl_row_has(out->body, "break") ||
      cgl_row_has(out->body, "continue") || cgl_tree_find(w->t, c))
    return false;
  for (size_t i = 0; i < out->bound.n; i++)
    if (cgl_token_is_any(&out->bound.at[i], "&&", "||", "?", ",", "<", ">", "=",
                         "==", "!=", "&", "|", "^"))
      return false;
  for (size_t i = 1; i < out->body.n; i++)
    if (cgl_token_is(&out->body.at[i - 1], "&") &&
        cgl_token_same(&out->body.at[i], c))
      return false;
  row start = cgl_stride_expand(w, cgl_row_slice(r, equal + 1, first), 0);
  size_t at = 0, n = 0;
  if (!start.at || !is_index_sum(start, &at, &n, &out->lane, start.at))
    return false;
  put_zero(w, &start, at, n);
  out->base = start;
  if (!cgl_values_is_uniform(w->t, start, false))
    return false;
  return w->run ? w->fast : !out->lane;
}


void cgl_stride_put(writer *w, statement *s, const stride *walk) {
  cgl_region_flush(w);
  w->t->strides++;
  cgl_text_put(w->out, "for (");
  cgl_put_tokens(w, walk->type, false);
  cgl_text_put(w->out, " cgl_base =");
  cgl_put_tokens(w, walk->base, false);
  if (w->run && !walk->lane)
    cgl_text_put(w->out, " + cgl_wx");
  cgl_text_put(w->out, "; cgl_base <");
  cgl_put_tokens(w, walk->bound, false);
  cgl_text_put(w->out, "; cgl_base +=");
  cgl_put_tokens(w, walk->step, false);
  cgl_text_put(w->out, ") { const unsigned cgl_k = cgl_left(cgl_base,");
  cgl_put_tokens(w, walk->bound, false);
  cgl_text_put(w->out, w->run ? ", 32u);" : ", cgl_bx);");
  cgl_region_put(w, &s, 1, walk);
  cgl_text_put(w->out, "}\n");
}
