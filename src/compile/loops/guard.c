/* Comparisons that most rows of threads need not ask: `i < n` at the edge of an
   array, where i has the thread's place in its row as a term.  It grows by 1
   from thread to thread, so what holds for the first and the last thread holds
   for all of them.  The loop over the row is written twice, with the guards and
   for rows for which all hold without: that one is the compiler's to take in
   vectors. */
#include "compile/loops/write_private.h"

#define MOST_TOKENS 600 /* of a region that is written twice */


/* Where the operand in front of token i begins, or i when there is none. */
static size_t find_left(row r, size_t i) {
  size_t from = i;
  while (from) {
    const cgl_token *x = &r.at[from - 1];
    if (cgl_token_is(x, ")")) {
      for (int depth = 0; from;) {
        from--;
        depth +=
            cgl_token_is(&r.at[from], ")") - cgl_token_is(&r.at[from], "(");
        if (!depth)
          break;
      }
      continue;
    }
    if (x->kind == CGL_TOKEN_PUNCT ? !cgl_token_is_any(x, "+", "-", "*", ".")
                                   : cgl_token_is_any(x, "return", "else"))
      break;
    from--;
  }
  const bool begins =
      from && cgl_token_is_any(&r.at[from - 1], "(", "&&", "||", ",", "=", "?",
                               ":", "return", "{", ";");
  return begins ? from : i;
}


/* Past the operand behind token i, or i when there is none. */
static size_t find_right(row r, size_t i) {
  size_t end = i + 1;
  while (end < r.n) {
    const cgl_token *x = &r.at[end];
    if (cgl_token_is(x, "("))
      end = cgl_tokens_close(r.at, r.n, end);
    else if (x->kind != CGL_TOKEN_PUNCT ||
             cgl_token_is_any(x, "+", "-", "*", "."))
      end++;
    else
      break;
  }
  const bool ends = end == r.n || cgl_token_is_any(&r.at[end], ")", "&&", "||",
                                                   "?", ":", ",", ";", "]");
  return ends ? end : i;
}


/* Is the comparison at i a guard? */
static bool is_guard(writer *w, row r, size_t i, guard *g) {
  size_t from = find_left(r, i), end = find_right(r, i);
  row left = cgl_row_slice(r, from, i), right = cgl_row_slice(r, i + 1, end);
  bool moves = false, other = false, blocks = false, bound = false;
  if (!left.n || end <= i + 1 ||
      !cgl_stride_is_place(w, left, &moves, &blocks) ||
      !cgl_stride_is_place(w, right, &other, &bound) || (moves && other) ||
      !(other ? bound : blocks))
    return false;
  *g = (guard){.all = cgl_row_slice(r, from, end)};
  if (moves || other)
    g->moving = moves ? left : right;
  return true;
}


bool cgl_guard_find(writer *w, statement *const *list, size_t n) {
  size_t tokens = 0;
  bool moves = false;
  w->nguards = 0;
  for (size_t k = 0; k < n; k++) {
    const statement *s = list[k];
    row r = s->kind == STATEMENT_DECLARATION ? s->value : s->all;
    tokens += r.n;
    if (s->kind == STATEMENT_PLAIN && cgl_tree_returns(r))
      return false;
    for (size_t i = 1; i + 1 < r.n; i++) {
      guard g;
      if (!cgl_token_is_any(&r.at[i], "<", "<=", ">", ">=") ||
          !is_guard(w, r, i, &g))
        continue;
      if (w->nguards == MAX_GUARDS)
        return false;
      moves |= g.moving.n > 0;
      w->guards[w->nguards++] = g;
    }
  }
  return moves && tokens <= MOST_TOKENS;
}


/* What the guards say of one thread; where it stands in its row goes to
   cgl_first0, cgl_first1... or cgl_last0... */
static void put_end(writer *w, const bool *used, const char *which,
                    const char *thread) {
  size_t n = 0;
  cgl_text_print(
      w->out, "{ const unsigned %s = %s; const uint3 threadIdx = %s;",
      w->run ? "cgl_l" : "cgl_x", thread,
      w->run ? "{cgl_wx + cgl_l, cgl_wy, cgl_wz}" : "{cgl_x, cgl_y, cgl_z}");
  cgl_region_put_again(w, used);
  cgl_text_put(w->out, "cgl_holds =");
  for (size_t i = 0; i < w->nguards; i++) {
    const guard *g = &w->guards[i];
    cgl_text_print(w->out, "%s (", i ? " &&" : "");
    if (g->moving.n) {
      cgl_text_print(w->out, "%s%zu = cgl_place_of(", which, n++);
      cgl_put_tokens(w, g->moving, false);
      cgl_text_put(w->out, "),");
    }
    cgl_put_tokens(w, g->all, false);
    cgl_text_put(w->out, ")");
  }
  cgl_text_put(w->out, "; }");
  cgl_put_own(w);
}


void cgl_guard_put(writer *w) {
  const char *last = w->run ? "31u" : "cgl_bx - 1";
  bool used[1024] = {false};
  cgl_put_own(w);
  cgl_text_put(w->out, "bool cgl_holds;");
  size_t n = 0;
  for (size_t i = 0; i < w->nguards; i++) {
    cgl_region_mark(w, w->guards[i].all, used, 0);
    if (w->guards[i].moving.n) {
      cgl_text_print(w->out, "long cgl_first%zu, cgl_last%zu;", n, n);
      n++;
    }
  }
  put_end(w, used, "cgl_first", "0");
  cgl_text_put(w->out, "if (cgl_holds) ");
  put_end(w, used, "cgl_last", last);
  cgl_text_put(w->out, "if (cgl_holds");
  for (size_t i = 0; i < n; i++)
    cgl_text_print(w->out, " && cgl_grows(cgl_first%zu, cgl_last%zu, %s)", i, i,
                   last);
  cgl_text_put(w->out, ")");
}


size_t cgl_guard_holds(const writer *w, row r, size_t i) {
  for (size_t k = 0; k < w->nguards && w->holds; k++)
    if (w->guards[k].all.at == &r.at[i] && i + w->guards[k].all.n <= r.n)
      return w->guards[k].all.n;
  return 0;
}
