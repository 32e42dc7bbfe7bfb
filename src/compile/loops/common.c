/* Control without barriers that all threads share.
   A barrier may stand under a condition that has one value for all threads.
   What such a condition names may be changed by an `if` or a loop that holds
   no barrier itself: `if (n > 5) k = 3;`.  Read as a whole that is a thread's
   own; read as its parts, it is run once, and k stays the same for all.
   Only a kernel that would be refused for a condition around a barrier is read
   again like that: what its conditions are made of is looked for, and control
   that changes it is read as its parts, until nothing more is found.
   Invariant: a kernel that still is to be refused then is read as at first, so
   that the reason is the source's. */
#include "compile/loops/loops_private.h"


static bool is_shared_control(const tree *t, const cgl_token *at) {
  for (size_t k = 0; k < t->ncommons; k++)
    if (t->commons[k] == at->text)
      return true;
  return false;
}


bool cgl_common_is_control(const tree *t, row r, size_t i) {
  return cgl_token_is_any(&r.at[i], "if", "for", "while", "do", "{") &&
         is_shared_control(t, &r.at[i]);
}


/* ---- what conditions around barriers are made of ---- */

/* What is sought, and whether more was found. */
typedef struct search {
  bool again;   /* a variable was found */
  bool refused; /* a condition depends on the thread */
  size_t n;     /* control that was found */
} search;


static void want_names(tree *t, row r, search *s) {
  for (size_t i = 0; i < r.n; i++) {
    variable *v = cgl_tree_is_name(r, i) ? cgl_tree_find(t, &r.at[i]) : NULL;
    if (!v || v->wanted || v->uniform || v->shared || v->constant || v->again ||
        v->alias || v->lambda)
      continue;
    v->wanted = s->again = true;
  }
}


/* Wants what the conditions are made of that stand around barriers, or that
   leave a loop around one (`block`). */
static void want_conditions(tree *t, statement *list, bool block, search *s) {
  for (statement *in = list; in; in = in->next) {
    const bool branch = in->kind == STATEMENT_IF;
    const bool loop = in->kind == STATEMENT_FOR ||
                      in->kind == STATEMENT_WHILE || in->kind == STATEMENT_DO;
    if ((branch || loop) &&
        ((in->sync & SYNC_BLOCK) || in->common || (in->escapes && block))) {
      s->refused |= !cgl_values_is_uniform(t, in->cond, false);
      want_names(t, in->cond, s);
      want_names(t, in->step, s);
    }
    const bool around = loop ? (in->sync & SYNC_BLOCK) || in->common : block;
    want_conditions(t, in->body, around, s);
    want_conditions(t, in->otherwise, around, s);
  }
}


/* Control that is read as its parts from now on. */
static void add_control(tree *t, const statement *in, search *s) {
  const row all = in->all;
  if (!cgl_token_is_any(all.at, "if", "for", "while", "do", "{") ||
      is_shared_control(t, all.at) || cgl_tree_returns(all))
    return;
  s->n++;
  if (t->ncommons < MAX_PLAIN)
    t->commons[t->ncommons++] = all.at->text;
}


/* Follows what is wanted: to the values it is given, and to the control that
   changes it. */
static void want_values(tree *t, statement *list, search *s) {
  for (statement *in = list; in; in = in->next) {
    if (in->kind == STATEMENT_DECLARATION && in->variable->wanted)
      want_names(t, in->value, s);
    for (variable *v = t->variables; v && in->kind == STATEMENT_PLAIN;
         v = v->next)
      if (v->wanted && cgl_values_is_assigned(t, in->all, v)) {
        if (!cgl_token_is_any(in->all.at, "if", "for", "while", "do", "{"))
          want_names(t, in->all, s);
        else
          add_control(t, in, s);
      }
    want_values(t, in->init, s);
    want_values(t, in->head, s);
    if (in->sync == SYNC_WARP)
      continue; /* it runs once for every warp */
    want_values(t, in->body, s);
    want_values(t, in->otherwise, s);
  }
}


/* The kernel is read as it was at first. */
static bool give_up(tree *t) {
  if (!t->ncommons && !t->nleaves)
    return false;
  t->ncommons = t->nleaves = 0;
  t->lone = true;
  cgl_tree_renew(t);
  return true;
}


bool cgl_common_find(tree *t) {
  search s = {.again = true};
  if (t->strips || t->failed || t->lone)
    return false;
  if (t->why)
    return give_up(t);
  if (cgl_leave_find(t, t->body)) {
    cgl_tree_renew(t);
    return true;
  }
  want_conditions(t, t->body, false, &s);
  if (!s.refused)
    return false;
  while (s.again) {
    s.again = false;
    want_values(t, t->body, &s);
  }
  if (!s.n || t->ncommons == MAX_PLAIN)
    return give_up(t);
  cgl_tree_renew(t);
  return true;
}
