/* Where threads leave the kernel.
     if (i < n) { ...; __syncthreads(); ... }
   is most of many kernels.  A barrier may stand under no condition that depends
   on the thread; but where no barrier stands behind it, the threads for which
   it does not hold are those that leave:
     if (c) { S } else { E } R      is      if (!(c)) { E R return; } S R
   Only a kernel that would be refused is read like that (common.c).
   Invariant: neither E nor R synchronizes, and nothing stands behind R. */
#include <string.h>

#include "compile/loops/loops_private.h"


bool cgl_leave_is(const tree *t, row r, size_t i) {
  for (size_t k = 0; k < t->nleaves && !t->depth; k++)
    if (t->leaves[k] == r.at[i].text)
      return true;
  return false;
}


/* Does the `if` stand in the kernel once?  By a macro it may stand there more
   often, and by a function somewhere else. */
static bool is_single(const tree *t, const statement *s) {
  size_t n = 0;
  for (size_t i = 0; i < t->text.n; i++)
    n += t->text.at[i].text == s->all.at->text;
  return n == 1 && !s->inlined && cgl_token_is(s->all.at, "if");
}


static bool synchronizes(const statement *list) {
  for (const statement *s = list; s; s = s->next)
    if (s->sync & (SYNC_BLOCK | SYNC_WARP))
      return true;
  return false;
}


static bool declares_shared(const statement *list) {
  for (const statement *s = list; s; s = s->next)
    if (s->variable && s->variable->shared)
      return true;
  return false;
}


bool cgl_leave_find(tree *t, statement *list) {
  for (statement *s = list; s; s = s->next) {
    const bool last = !synchronizes(s->next);
    if (s->kind == STATEMENT_IF && (s->sync & SYNC_BLOCK) && last &&
        !synchronizes(s->otherwise) && !declares_shared(s->next) &&
        is_single(t, s) && !cgl_values_is_uniform(t, s->cond, false) &&
        t->nleaves < MAX_PLAIN) {
      t->leaves[t->nleaves++] = s->all.at->text;
      return true;
    }
    if (!s->next && (s->kind == STATEMENT_IF || s->kind == STATEMENT_BLOCK) &&
        (cgl_leave_find(t, s->body) || cgl_leave_find(t, s->otherwise)))
      return true;
  }
  return false;
}


static void add_text(cgl_tokens *out, int line, const char *text, row r) {
  cgl_lex(text, strlen(text), line, out);
  for (size_t i = 0; i < r.n; i++)
    cgl_tokens_add(out, r.at[i]);
}


statement **cgl_leave_read(tree *t, row r, size_t i, size_t end,
                           statement **tail) {
  i += cgl_token_is(&r.at[i + 1], "constexpr");
  const size_t close = cgl_tokens_close(r.at, end, i + 1);
  const size_t stop = cgl_tree_end(cgl_row_slice(r, 0, end), close);
  const behind *outer = t->rest;
  const behind own = {cgl_row_slice(r, end, r.n), outer};
  const int line = r.at[i].line;
  cgl_tokens out = {0};
  add_text(&out, line, "if ( !", cgl_row_slice(r, i + 1, close));
  add_text(&out, line, ") { {", cgl_row_slice(r, stop + 1, end));
  add_text(&out, line, "}", (row){NULL, 0});
  /* a block for each, whose names are no other's */
  for (const behind *b = &own; b; b = b->outer)
    add_text(&out, line, "{", (row){NULL, 0});
  for (const behind *b = &own; b; b = b->outer) {
    add_text(&out, line, "", b->r);
    add_text(&out, line, "}", (row){NULL, 0});
  }
  add_text(&out, line, "return ; }", (row){NULL, 0});
  statement *s = cgl_tree_new(t, STATEMENT_PLAIN);
  t->failed |= out.failed;
  if (!out.failed)
    s->all = cgl_tree_copy(t, out.at, out.count);
  cgl_tokens_free(&out);
  *tail = s;
  tail = &s->next;
  outer = t->rest;
  t->rest = &own;
  *tail = cgl_tree_read_body(t, r, close, stop);
  t->rest = outer;
  while (*tail)
    tail = &(*tail)->next;
  return tail;
}
