/* Loops of a few turns that stay outside the loops over threads.
   A thread's own loop is written out, and then its conditions multiply: gcc
   makes a version of the row for every way in which they may turn out.  Where
   a condition names the loop's variable, and no thread carries a value of its
   own into the loop or out of it, the loop stands around the threads instead:
   threads are unordered, so each turn may be a region, whose guards are asked
   once for a row.
   The kernel is read as if all such loops could; those that carry something
   are plain when it is read again. */
#include "compile/loops/loops_private.h"

enum { MOST_READS = 8 };


/* Is the variable named in a condition between the tokens? */
static bool is_asked(row r, size_t from, size_t end, const cgl_token *name) {
  for (size_t i = from; i < end; i++) {
    if (!cgl_token_is(&r.at[i], "if") || i + 1 >= end)
      continue;
    size_t close = cgl_tokens_close(r.at, end, i + 1);
    for (size_t k = i + 2; k < close; k++)
      if (cgl_tree_is_name(r, k) && cgl_token_same(&r.at[k], name))
        return true;
  }
  return false;
}


bool cgl_apart_is_loop(const tree *t, row r, size_t i) {
  if (t->strips || t->reads >= MOST_READS || cgl_tree_turns(r, i) < 2)
    return false;
  for (size_t k = 0; k < t->nplain; k++)
    if (t->plain[k] == r.at[i].text)
      return false;
  const size_t end = cgl_tree_end(r, i);
  for (size_t k = i + 1; k < end; k++)
    if (cgl_token_is_any(&r.at[k], "break", "continue", "return", "goto",
                         "switch"))
      return false;
  return is_asked(r, cgl_tokens_close(r.at, r.n, i + 1), end, &r.at[i + 3]);
}


/* May a thread carry a value of its own in the variable into the loop, or may
   the loop change it for what comes after? */
static bool is_carried(const tree *t, row loop, const variable *v) {
  const statement *home = v->home;
  if (v->lambda || v->closed || v->reference)
    return true;
  if (home && home->all.at >= loop.at && home->all.at < loop.at + loop.n)
    return false;
  if (v->shared || v->constant || v->again)
    return false;
  return !(v->uniform || v->parameter) || v->addressed ||
         cgl_values_is_assigned(t, loop, v);
}


static bool is_apart(tree *t, const statement *s) {
  const statement *init = s->init;
  if (init->next || init->kind != STATEMENT_DECLARATION ||
      !init->variable->uniform || !cgl_values_is_uniform(t, s->cond, false) ||
      !cgl_values_assignment(t, s->step))
    return false;
  row body = {s->all.at, s->all.n};
  const size_t close = cgl_tokens_close(body.at, body.n, 1);
  body.at += close;
  body.n -= close;
  for (size_t i = 0; i < body.n; i++) {
    const variable *v =
        cgl_tree_is_name(body, i) ? cgl_tree_find(t, &body.at[i]) : NULL;
    if (v && is_carried(t, body, v))
      return false;
  }
  return true;
}


/* Returns how many of the list's loops are plain from now on. */
static size_t exclude(tree *t, statement *list, bool all) {
  size_t n = 0;
  for (statement *s = list; s; s = s->next) {
    if (s->apart && (all || !is_apart(t, s))) {
      n++;
      if (t->nplain < MAX_PLAIN)
        t->plain[t->nplain++] = s->all.at->text;
    }
    n += exclude(t, s->body, all) + exclude(t, s->otherwise, all);
  }
  return n;
}


bool cgl_apart_exclude(tree *t) {
  bool warps = false;
  if (t->strips || t->failed || !t->aparts)
    return false;
  if (t->why) { /* in a plain loop it may be no reason */
    t->reads = MOST_READS;
    cgl_tree_renew(t);
    return true;
  }
  for (const statement *s = t->body; s; s = s->next)
    warps |= (s->sync & SYNC_WARP) != 0;
  if (!exclude(t, t->body, warps))
    return false;
  cgl_tree_renew(t);
  return true;
}
