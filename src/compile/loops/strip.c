/* Strips: kernels without barriers, 32 threads in a row at a time.
   The compiler vectorizes a loop over threads when the thread's own code has
   no loop.  Where it has one whose turns are the same for all threads of a row,
   the loop can be outside and the threads inside.  Such a loop counts as if it
   synchronized a warp, so that the other files write its body as regions.
   The threads of a strip follow each other along x, across blocks, and differ
   in nothing but blockIdx.x * blockDim.x + threadIdx.x.
   A loop of few turns is left to the compiler, which unrolls it.
   Kernels with barriers have loops of arithmetic alone turned in the same way.
   Invariant: conditions that stand in front of all else are guards, evaluated
   before any effect: a strip of which only some threads in a row go on runs
   with fewer, and one with gaps runs thread by thread.  No other condition
   that depends on the thread stands around a loop that is turned. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/loops/write_private.h"

#define MOST_TURNS 16 /* that the compiler is left to unroll */


/* ---- which loops ---- */

/* for (...; i < 9; ...): a number of turns that is known and small. */
static bool is_short(row r, size_t i) {
  size_t close = cgl_tokens_close(r.at, r.n, i + 1);
  for (size_t k = i + 2; k + 2 < close; k++)
    if (cgl_token_is_any(&r.at[k], "<", "<=") &&
        r.at[k + 1].kind == CGL_TOKEN_NUMBER && cgl_token_is(&r.at[k + 2], ";"))
      return strtol(r.at[k + 1].text, NULL, 0) <= MOST_TURNS;
  return false;
}


static bool has_jump(row r) {
  return cgl_row_has(r, "break") || cgl_row_has(r, "continue") ||
         cgl_tree_returns(r);
}


/* for (int i = 0; i < n; i++) with a parameter n, and arithmetic alone in it,
   as of random numbers.  The compiler would have to take the threads in vectors
   around a loop that may have no turn, which it does not. */
static bool is_arithmetic_loop(tree *t, row r, size_t i) {
  if (&r.at[i] < t->copy || &r.at[i] >= t->copy + t->text.n)
    return false; /* of an inlined function */
  const size_t close = cgl_tokens_close(r.at, r.n, i + 1);
  const row head = cgl_row_slice(r, i + 2, close - 1),
            body = cgl_row_slice(r, close, cgl_tree_end(r, close));
  size_t k = 0;
  while (k < head.n && !cgl_token_is(&head.at[k], ";"))
    k++;
  if (k < 3 || k + 4 >= head.n || !cgl_token_is(&head.at[k - 2], "=") ||
      head.at[k - 1].kind != CGL_TOKEN_NUMBER ||
      !cgl_token_is_any(&head.at[k + 2], "<", "<=") ||
      !cgl_token_is(&head.at[k + 4], ";"))
    return false;
  const variable *most = cgl_tree_find(t, &head.at[k + 3]);
  return most && most->parameter && !cgl_row_has(body, "[") &&
         !cgl_row_has(body, "->") && !cgl_row_has(body, "for") &&
         !cgl_row_has(body, "while") && !cgl_row_has(body, "switch") &&
         !has_jump(body) && cgl_tree_sync(t, body.at, body.n) == 0;
}


bool cgl_strip_is_loop(tree *t, row r, size_t i) {
  if ((!t->strips && !t->turns) ||
      !cgl_token_is_any(&r.at[i], "for", "while", "do") || i + 1 >= r.n)
    return false;
  for (size_t k = 0; k < t->nplain; k++)
    if (t->plain[k] == r.at[i].text)
      return false;
  if (!cgl_token_is(&r.at[i], "for"))
    return t->strips && cgl_lanes_is_loop(t, r, i);
  return t->strips ? !is_short(r, i) : is_arithmetic_loop(t, r, i);
}


/* All loops in the row are plain from now on. */
static void exclude_loops(tree *t, row r) {
  for (size_t i = 0; i < r.n; i++) {
    if (!cgl_strip_is_loop(t, r, i))
      continue;
    if (t->nplain == MAX_PLAIN)
      cgl_tree_refuse(t, &r.at[i], "too many loops");
    else
      t->plain[t->nplain++] = r.at[i].text;
  }
}


/* So are those of the functions that were put in it. */
static void exclude(tree *t, const statement *s) {
  const statement *const lists[] = {s->head, s->body, s->otherwise};
  exclude_loops(t, s->all);
  for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
    for (const statement *in = lists[i]; in; in = in->next)
      exclude(t, in);
}


/* Is there a loop that not all threads take, or all its turns? */
static bool exclude_from(writer *w, statement *list) {
  bool found = false;
  for (statement *s = list; s; s = s->next) {
    if (!s->sync || s->kind == STATEMENT_WARP)
      continue;
    if (s->kind == STATEMENT_BLOCK) {
      found |= exclude_from(w, s->body);
      continue;
    }
    const bool branch = s->kind == STATEMENT_IF,
               left = cgl_tree_is_left(s) || cgl_tree_returns(s->all),
               same = branch ? cgl_values_is_uniform(w->t, s->cond, false)
                             : s->cond.n && cgl_loops_is_uniform(w, s);
    s->lanes =
        w->t->strips && !branch && (left || !same) && cgl_lanes_may(w, s);
    if (s->lanes)
      continue;
    if (left || !same) {
      exclude(w->t, s);
      found = true;
    }
    found |= exclude_from(w, s->head);
    found |= exclude_from(w, s->body);
    found |= exclude_from(w, s->otherwise);
  }
  return found;
}


static bool has_loop(const statement *list) {
  for (; list; list = list->next)
    if (list->sync)
      return true;
  return false;
}


static bool has_return(const statement *list) {
  for (; list; list = list->next)
    if (cgl_tree_returns(list->all))
      return true;
  return false;
}


bool cgl_strip_exclude(writer *w) {
  tree *t = w->t;
  size_t before = t->nplain;
  if (t->why || t->failed || !(t->strips || t->turned))
    return false;
  const bool found = exclude_from(w, t->body);
  if (!t->strips && has_return(t->body))
    for (const statement *s = t->body; s; s = s->next)
      exclude_loops(t, s->all);
  if (t->nplain == before) {
    if (!t->strips)
      return false;
    if (!has_loop(t->body) || found)
      cgl_tree_refuse(t, &t->kernel->name, "no loop for a strip");
    else if (has_return(t->body))
      cgl_tree_refuse(t, &t->kernel->name, "a return behind a loop");
    return false;
  }
  cgl_tree_renew(t);
  return true;
}


void cgl_strip_end_loop(tree *t, statement *loop, const cgl_token *where) {
  statement **end = &loop->body;
  while (*end)
    end = &(*end)->next;
  *end = cgl_tree_new(t, STATEMENT_WARP);
  (*end)->op = cgl_tree_token(t, where, "__syncwarp");
  (*end)->id = ++t->ids;
}


/* ---- guards ---- */

bool cgl_strip_is_leave(const statement *s, row *cond) {
  row r = s->all;
  if (s->kind != STATEMENT_PLAIN || r.n < 5 || !cgl_token_is(r.at, "if") ||
      !cgl_token_is(&r.at[1], "("))
    return false;
  size_t close = cgl_tokens_close(r.at, r.n, 1);
  row rest = cgl_row_slice(r, close, r.n);
  if (rest.n == 4 && cgl_token_is(rest.at, "{"))
    rest = cgl_row_slice(rest, 1, 3);
  *cond = cgl_row_slice(r, 2, close - 1);
  return rest.n == 2 && cgl_token_is(rest.at, "return");
}


static statement *new_guard(tree *t, row cond, const char *front) {
  statement *s = cgl_tree_new(t, STATEMENT_GUARD);
  s->cond = cgl_tree_copy(t, cond.at, cond.n + 2);
  if (t->failed)
    return s;
  s->cond.at[0] = cgl_tree_token(t, cond.at, "%s", front);
  memcpy(&s->cond.at[1], cond.at, cond.n * sizeof *cond.at);
  s->cond.at[cond.n + 1] = cgl_tree_token(t, cond.at, ")");
  return s;
}


void cgl_strip_find_guards(tree *t) {
  row cond;
  for (statement **at = &t->body; *at && !t->failed;) {
    statement *s = *at;
    if (s->kind == STATEMENT_DECLARATION) {
      at = &s->next;
    } else if (cgl_strip_is_leave(s, &cond)) {
      *at = new_guard(t, cond, "!(");
      (*at)->next = s->next;
      at = &(*at)->next;
    } else if (s->kind == STATEMENT_IF && !s->next &&
               (!s->otherwise || !s->body)) {
      *at = new_guard(t, s->cond, s->otherwise ? "!(" : "(");
      (*at)->next = s->otherwise ? s->otherwise : s->body;
      at = &(*at)->next;
    } else
      return;
  }
}


/* May evaluating it do anything?  It is done more than once. */
static bool has_effects(row r) {
  for (size_t i = 0; i < r.n; i++)
    if (cgl_token_is_any(&r.at[i], "=", "+=", "-=", "*=", "/=", "%=", "&=",
                         "|=", "^=", "<<=", ">>=", "++", "--", "{") ||
        (i + 1 < r.n && r.at[i].kind == CGL_TOKEN_NAME &&
         cgl_token_is(&r.at[i + 1], "(") && !cgl_token_is_type_word(&r.at[i])))
      return true;
  return false;
}


void cgl_strip_put_guard(writer *w, statement *s) {
  if (w->npending || has_effects(cgl_row_slice(s->cond, 1, s->cond.n - 1))) {
    cgl_tree_refuse(w->t, s->cond.at,
                    "a condition with effects, or behind what it depends on");
    return;
  }
  cgl_text_put(w->out, "{ int cgl_m_0[32];\n");
  cgl_region_add(w, cgl_region_statement(w, s->cond.at, "cgl_m_0[cgl_l] = ",
                                         s->cond, "? 1 : 0;"));
  cgl_region_flush(w);
  cgl_text_put(w->out, "CGL_STRIP_GUARD(cgl_m_0) }\n");
}


/* Is the expression arithmetic on variables alone, without loads and effects?
 */
static bool is_arithmetic(writer *w, row r) {
  for (size_t i = 0; i < r.n; i++) {
    const cgl_token *x = &r.at[i];
    bool name = x->kind == CGL_TOKEN_NAME;
    if (cgl_token_is_any(x, "[", "->", "{", "+=", "-=", "*=", "/=", "%=", "&=",
                         "|=", "^=", "<<=", ">>=", "++", "--") ||
        (cgl_token_is(x, "=") && i) || (cgl_token_is(x, "&") && !i) ||
        (cgl_token_is(x, "*") &&
         (!i || (r.at[i - 1].kind == CGL_TOKEN_PUNCT &&
                 !cgl_token_is_any(&r.at[i - 1], ")", "]")))) ||
        (name && i + 1 < r.n && cgl_token_is(&r.at[i + 1], "(")))
      return false;
    const variable *v = cgl_tree_find(w->t, x);
    if (name && (v ? v->closed || v->shared
                   : cgl_tree_is_name(r, i) && !cgl_token_is_type_word(x) &&
                         !cgl_token_is_position(x)))
      return false;
  }
  return true;
}


bool cgl_strip_may_hoist(writer *w, const statement *s) {
  return w->t->strips && is_arithmetic(w, s->value);
}


/* The region with another last statement; all of them are one region. */
static void put_instead(writer *w, statement **list, size_t n,
                        const char *front, row r, const char *back) {
  statement *last = list[n - 1];
  int region = w->region;
  list[n - 1] = cgl_region_statement(w, r.at, front, r, back);
  cgl_region_put(w, list, n, NULL);
  list[n - 1] = last;
  w->region = region;
}


/* What is put off, when it is one condition behind declarations: written for
   all threads, for those in a row that go on, and as it stands.  Behind the
   condition the compiler does not see that loads are in a row. */
bool cgl_strip_put_coherent(writer *w, statement **list, size_t n) {
  row r = n ? list[n - 1]->all : (row){NULL, 0};
  if (!w->t->strips || r.n < 5 || list[n - 1]->kind != STATEMENT_PLAIN ||
      !cgl_token_is(r.at, "if") || !cgl_token_is(&r.at[1], "(") ||
      cgl_row_has(r, "else"))
    return false;
  size_t close = cgl_tokens_close(r.at, r.n, 1);
  row cond = cgl_row_slice(r, 2, close - 1),
      body = cgl_row_slice(r, close, r.n);
  bool simple = is_arithmetic(w, cond);
  for (size_t i = 0; i + 1 < n; i++)
    simple &= list[i]->kind == STATEMENT_DECLARATION &&
              is_arithmetic(w, list[i]->value);
  if (!simple)
    return false;
  cgl_text_put(w->out, "{ int cgl_all = 1;\n");
  put_instead(w, list, n, "cgl_all &= (", cond, ") ? 1 : 0;");
  cgl_text_put(w->out, "if (cgl_all) {\n");
  put_instead(w, list, n, "", body, "");
  cgl_text_put(w->out, "} else { int cgl_m_1[32];\n");
  put_instead(w, list, n, "cgl_m_1[cgl_l] = (", cond, ") ? 1 : 0;");
  cgl_text_put(w->out, "CGL_STRIP_TRIM(cgl_m_1)\n");
  put_instead(w, list, n, "", body, "");
  cgl_text_put(w->out, "} else {\n");
  cgl_region_put(w, list, n, NULL);
  cgl_text_put(w->out, "} } }\n");
  return true;
}


/* ---- the function ---- */

void cgl_strip_put_head(writer *w) {
  cgl_text_print(
      w->out,
      "template <bool cgl_whole> static CGL_LOOPS int "
      "cgl_loops_of_%zu(const uint3 gridDim, const uint3 blockDim, "
      "const uint3 cgl_where, const int cgl_wx, const unsigned cgl_wy, "
      "const unsigned cgl_wz, unsigned cgl_f, unsigned cgl_m",
      w->style->id);
}


void cgl_strip_put_body(writer *w) {
  if (w->global)
    cgl_tree_refuse(w->t, &w->t->kernel->name, "a function with an index");
  w->run = w->runs = 1;
  w->fast = true;
  for (variable *v = w->t->variables; v; v = v->next) {
    if (!v->kept || !cgl_region_is_local(v))
      continue;
    if (v->dims.n || v->reference)
      cgl_tree_refuse(w->t, &v->name, "an array or reference of every thread");
    if (v->run != w->run)
      continue;
    cgl_put_name(w, "alignas(64) cgl_slot<cgl_t_", v);
    cgl_put_name(w, ">::type cgl_v_", v);
    cgl_text_put(w->out, "[32];\n");
  }
  cgl_loops_put_list(w, w->t->body);
  cgl_text_put(w->out, "return 0;\n");
}


void cgl_strip_put_class(writer *w) {
  cgl_text_print(w->out,
                 "\n# 1 \"cgraphlua\" 3\nstruct cgl_loops_%zu { template "
                 "<bool cgl_whole, class... cgl_types> static int run("
                 "const uint3 cgl_grid, const uint3 cgl_block, const uint3 "
                 "cgl_at, int cgl_x, unsigned cgl_y, unsigned cgl_z, unsigned "
                 "cgl_n, cgl_types... cgl_args) { return "
                 "cgl_loops_of_%zu<cgl_whole>(cgl_grid, cgl_block, cgl_at, "
                 "cgl_x, cgl_y, cgl_z, 0, cgl_n, cgl_args...); } };",
                 w->style->id, w->style->id);
}
