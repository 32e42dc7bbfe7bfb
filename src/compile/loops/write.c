/* A kernel's statements as loops.
   What stands between two barriers is a region: statements that are put off
   until something ends it, and then written as one loop over the threads.
   The kernel is written twice: the first time counts the regions that use a
   variable, and nothing of its text is kept. */
#include <stdio.h>
#include <string.h>

#include "compile/loops/write_private.h"


/* ---- statements ---- */

void cgl_loops_put_block(writer *w, statement *list) {
  cgl_text_put(w->out, " {");
  cgl_put_own(w);
  cgl_loops_put_list(w, list);
  cgl_text_put(w->out, "}");
  cgl_put_own(w);
}


static void refuse_divergent(writer *w, const statement *s) {
  const cgl_token *at = cgl_region_where(w, s);
  if (s->sync & SYNC_BLOCK)
    cgl_tree_refuse(w->t, at,
                    "__syncthreads() under a condition that depends on the "
                    "thread");
  else
    cgl_tree_refuse(
        w->t, at,
        "a loop around a barrier, left on a condition that depends on "
        "the thread");
}


/* Names the row what differs from warp to warp? */
static bool has_warp(writer *w, row r) {
  for (size_t i = 0; i < r.n; i++) {
    const variable *v = cgl_tree_find(w->t, &r.at[i]);
    if ((v && v->warp.n) || cgl_token_is(&r.at[i], "threadIdx"))
      return true;
  }
  return false;
}


bool cgl_loops_is_uniform(writer *w, const statement *s) {
  row part;
  if (w->run && s->kind != STATEMENT_FOR && cgl_warp_is_uniform(w, s->cond) &&
      !has_warp(w, s->cond))
    return true;
  if (!cgl_values_is_uniform(w->t, s->cond, false))
    return false;
  for (const statement *in = s->init; in; in = in->next)
    if (in->kind == STATEMENT_DECLARATION
            ? !in->variable->uniform && !in->variable->constant
            : !cgl_values_assignment(w->t, in->all))
      return false;
  size_t from = 0;
  for (size_t i = 0; i <= s->step.n; i++)
    if (i == s->step.n || cgl_token_is(&s->step.at[i], ",")) {
      part = cgl_row_slice(s->step, from, i);
      from = i + 1;
      if (part.n && !cgl_values_assignment(w->t, part))
        return false;
    }
  return true;
}


bool cgl_loops_is_number(writer *w, row r) {
  for (size_t i = 0; i < r.n; i++) {
    const variable *v = cgl_tree_find(w->t, &r.at[i]);
    if (r.at[i].kind == CGL_TOKEN_NAME && !cgl_token_is(&r.at[i], "warpSize") &&
        !(v && (v->constant || v->counted)))
      return false;
  }
  return true;
}


bool cgl_loops_is_counted(writer *w, const statement *s) {
  const statement *init = s->init;
  if (s->kind != STATEMENT_FOR || !init || init->next ||
      init->kind != STATEMENT_DECLARATION)
    return false;
  variable *v = init->variable;
  v->counted = true;
  v->counted = cgl_loops_is_number(w, init->value) &&
               cgl_loops_is_number(w, s->cond) &&
               cgl_loops_is_number(w, s->step);
  return v->counted;
}


/* The loop up to its body, when something runs before each test. */
static void put_head_loop(writer *w, statement *s) {
  int id = ++w->labels;
  bool late = s->kind == STATEMENT_DO;
  if (late)
    cgl_text_print(
        w->out, "for (bool cgl_late_%d = false;; cgl_late_%d = true)", id, id);
  else {
    cgl_text_put(w->out, "for (;;");
    cgl_put_tokens(w, s->step, false);
    cgl_text_put(w->out, ")");
  }
  cgl_text_put(w->out, " {");
  if (late)
    cgl_text_print(w->out, "if (cgl_late_%d) {", id);
  cgl_put_own(w);
  cgl_loops_put_list(w, s->head);
  cgl_text_put(w->out, "if (!(");
  cgl_put_tokens(w, s->cond, false);
  cgl_text_put(w->out, late ? ")) break; }" : ")) break;");
  cgl_put_own(w);
}


/* The turns of a loop that all threads take; `unroll`: written out when there
   are at most so many, or 0. */
static void put_turns(writer *w, statement *s, int unroll) {
  if (s->head)
    put_head_loop(w, s);
  else if (s->kind == STATEMENT_DO)
    cgl_text_put(w->out, "do");
  else {
    if (unroll)
      cgl_text_print(w->out, "CGL_UNROLL(%d) ", unroll);
    cgl_text_put(w->out, s->kind == STATEMENT_FOR ? "for (;" : "while (");
    cgl_put_tokens(w, s->cond, false);
    if (s->kind == STATEMENT_FOR) {
      cgl_text_put(w->out, ";");
      cgl_put_tokens(w, s->step, false);
    }
    cgl_text_put(w->out, ")");
  }
  cgl_text_put(w->out, " {");
  /* What a barrier waits for may come from elsewhere, or never. */
  if (s->kind != STATEMENT_FOR || !s->cond.n)
    cgl_text_put(w->out, " CGL_TURN");
  cgl_loops_put_block(w, s->body);
  cgl_text_put(w->out, "}\n");
  if (s->head)
    cgl_text_put(w->out, "}\n");
  else if (s->kind == STATEMENT_DO) {
    cgl_text_put(w->out, "while (");
    cgl_put_tokens(w, s->cond, false);
    cgl_text_put(w->out, ");\n");
  }
}


static void put_loop(writer *w, statement *s) {
  if (s->lanes) {
    cgl_lanes_put(w, s);
    return;
  }
  bool uniform = cgl_loops_is_uniform(w, s);
  if (!uniform && (!w->run || s->sync & SYNC_BLOCK)) {
    refuse_divergent(w, s);
    return;
  }
  bool more = w->more;
  const char *const body_mask = w->body_mask;
  w->more = true;
  w->loops++;
  if (!uniform ||
      (w->run && !(s->sync & SYNC_BLOCK) && cgl_warp_parts(w, s->body)))
    cgl_warp_put_loop(w, s);
  else {
    w->body_mask = NULL;
    cgl_loops_put_list(w, s->init);
    cgl_region_flush(w);
    /* Written a second time it has the same regions, and the same uses. */
    if (cgl_shape_knows(w, s) && !w->counting) {
      const int region = w->region, runs = w->runs;
      cgl_text_put(w->out, "if constexpr (cgl_size_x != 0) {\n");
      put_turns(w, s, 16);
      cgl_text_put(w->out, "} else\n");
      w->region = region;
      w->runs = runs;
    }
    put_turns(w, s, w->fast && cgl_loops_is_counted(w, s) ? 8 : 0);
  }
  w->loops--;
  w->more = more;
  w->body_mask = body_mask;
}


static void put_if(writer *w, statement *s) {
  const row cond = w->run ? cgl_few_expand(w, s->cond) : s->cond;
  if (w->run && !(s->sync & SYNC_BLOCK) && cgl_warp_is_uniform(w, cond)) {
    cgl_region_flush(w);
    /* in the variables' own types */
    cgl_region_put_common(w, s->cond);
    cgl_text_put(w->out, " if (");
    cgl_put_tokens(w, w->fast ? s->cond : cond, false);
    cgl_text_put(w->out, ")");
    cgl_loops_put_block(w, s->body);
    if (s->otherwise) {
      cgl_text_put(w->out, "else");
      cgl_loops_put_block(w, s->otherwise);
    }
    cgl_text_put(w->out, "}\n");
    return;
  }
  if (!cgl_values_is_uniform(w->t, s->cond, false)) {
    if (!w->run || s->sync & SYNC_BLOCK || (s->escapes && !w->body_mask))
      refuse_divergent(w, s);
    else
      cgl_warp_put_if(w, s);
    return;
  }
  cgl_region_flush(w);
  cgl_text_put(w->out, "if (");
  cgl_put_tokens(w, s->cond, false);
  cgl_text_put(w->out, ")");
  cgl_loops_put_block(w, s->body);
  if (s->otherwise) {
    cgl_text_put(w->out, "else");
    cgl_loops_put_block(w, s->otherwise);
  }
}


/* A predicate's sum over all threads. */
static void put_barrier(writer *w, statement *s) {
  char front[80];
  cgl_region_flush(w);
  if (w->mask || w->run)
    cgl_tree_refuse(w->t, &s->op, "__syncthreads() among warps");
  if (!s->variable)
    return;
  int n = (int)s->variable->name.length;
  const char *name = s->variable->name.text;
  bool all = cgl_token_is(&s->op, "__syncthreads_and");
  cgl_text_print(w->out, "%.*s = 0;\n", n, name);
  snprintf(front, sizeof front, "%.*s += %s(", n, name,
           all ? "!(int)" : "0 != (int)");
  cgl_region_add(w, cgl_region_statement(w, &s->op, front, s->all, ");"));
  cgl_region_flush(w);
  if (!cgl_token_is(&s->op, "__syncthreads_count"))
    cgl_text_print(w->out, "%.*s = %.*s %s 0;\n", n, name, n, name,
                   all ? "==" : "!=");
}


/* if (uniform) return; */
static bool is_common_return(writer *w, const statement *s) {
  row cond;
  return !w->run && cgl_strip_is_leave(s, &cond) &&
         cgl_values_is_uniform(w->t, cond, false);
}


void cgl_loops_put_statement(writer *w, statement *s) {
  stride walk;
  switch (s->kind) {
  case STATEMENT_DECLARATION:
    if (s->variable->shared || s->variable->constant || s->variable->again)
      return;
    if (!s->variable->uniform)
      cgl_region_add(w, s);
    else if (s->value.n) {
      if (!cgl_strip_may_hoist(w, s))
        cgl_region_flush(w);
      cgl_put_line(w, s->variable->name.line);
      cgl_put_name(w, "", s->variable);
      cgl_put_tokens(w, s->value, false);
      cgl_text_put(w->out, ";");
      cgl_put_own(w);
    }
    return;
  case STATEMENT_PLAIN:
    if ((!s->sync && cgl_values_assignment(w->t, s->all)) ||
        is_common_return(w, s))
      cgl_region_put_scalar(w, s->all);
    else if (cgl_warp_put_return(w, s))
      return;
    else if (cgl_stride_find(w, s, &walk))
      cgl_stride_put(w, s, &walk);
    else
      cgl_region_add(w, s);
    return;
  case STATEMENT_IF:
    if (s->sync || s->escapes)
      put_if(w, s);
    else
      cgl_region_add(w, s);
    if (s->escapes)
      cgl_warp_put_left(w);
    return;
  case STATEMENT_FOR:
  case STATEMENT_WHILE:
  case STATEMENT_DO:
    put_loop(w, s);
    return;
  case STATEMENT_BLOCK:
    cgl_loops_put_list(w, s->body);
    return;
  case STATEMENT_JUMP:
    if (w->body_mask)
      cgl_warp_put_jump(w, s);
    else if (w->mask)
      refuse_divergent(w, s);
    else
      cgl_region_put_scalar(w, s->all);
    return;
  case STATEMENT_BARRIER:
    put_barrier(w, s);
    return;
  case STATEMENT_WARP:
    cgl_warp_put(w, s);
    return;
  case STATEMENT_GUARD:
    cgl_strip_put_guard(w, s);
    return;
  }
}


void cgl_loops_put_list(writer *w, statement *list) {
  bool more = w->more;
  for (statement *s = list; s && !w->t->why && !w->t->failed;) {
    bool starts = s->sync == SYNC_WARP && !w->run && !s->escapes;
    statement *end = starts ? cgl_warp_find_end(w, s) : s->next;
    w->more = more;
    for (statement *later = end; later; later = later->next)
      w->more |= later->sync != 0;
    if (starts)
      cgl_warp_put_run(w, s, end);
    else
      cgl_loops_put_statement(w, s);
    s = end;
  }
  cgl_region_flush(w);
  w->more = more;
}


/* ---- the tree ---- */

static void declare_parameters(tree *t) {
  const cgl_declared *k = t->kernel;
  row all = cgl_tree_copy(t, k->parameters, k->nparameters);
  for (size_t i = 0, from = 0; i <= all.n && !t->failed; i++) {
    if (i < all.n && cgl_token_is_any(&all.at[i], "(", "[", "{"))
      i = cgl_tokens_close(all.at, all.n, i) - 1;
    if (i < all.n && !cgl_token_is(&all.at[i], ","))
      continue;
    row one = cgl_row_slice(all, from, i);
    from = i + 1;
    if (!one.n)
      continue;
    bool array = cgl_token_is(&one.at[one.n - 1], "]");
    while (one.n && one.at[one.n - 1].kind != CGL_TOKEN_NAME)
      one.n--;
    if (one.n < 2)
      continue; /* unnamed */
    variable *v = cgl_tree_declare(t, &one.at[one.n - 1]);
    v->type = cgl_row_slice(one, 0, one.n - 1);
    v->parameter = true;
    for (size_t j = 0; j < one.n; j++)
      if (array || cgl_token_is_any(&one.at[j], "&", "("))
        v->reference = true;
  }
}


static void see_index(tree *t, statement *s, row r, void *user) {
  bool *global = user;
  (void)s;
  for (size_t i = 0; i < r.n && !*global; i++) {
    size_t chunk;
    if (r.at[i].kind != CGL_TOKEN_NAME)
      continue;
    *global |= cgl_token_is(&r.at[i], "assert") || cgl_token_is_draw(&r.at[i]);
    for (size_t k = 0; cgl_reach_chunk(t->program, &r.at[i], k, &chunk); k++)
      if (chunk != t->kernel->chunk)
        *global |=
            !!(cgl_reach_features(t->program, chunk, NULL) & CGL_USES_INDEX);
  }
}


/* May anything that the kernel calls ask for the thread's index: functions,
   constructors of its variables, operators, which no name tells? */
static bool asks_index(tree *t) {
  bool global = t->hides;
  cgl_values_each(t, t->body, see_index, &global);
  for (const variable *v = t->variables; v; v = v->next)
    see_index(t, NULL, v->type, &global);
  for (size_t i = 0; i < t->program->nchunks && !global; i++)
    global = t->program->chunks[i].operators && i != t->kernel->chunk &&
             (cgl_reach_features(t->program, i, NULL) & CGL_USES_INDEX);
  return global;
}


static row kernel_body(tree *t) {
  const cgl_declared *k = t->kernel;
  const cgl_chunk *c = &t->program->chunks[k->chunk];
  size_t i = (size_t)(k->parameters + k->nparameters - c->at);
  while (i < c->count && !cgl_token_is(&c->at[i], "{"))
    i++;
  if (i + 1 >= c->count)
    return (row){NULL, 0};
  if (!t->text.n) /* the same tokens whenever the kernel is read */
    t->text = cgl_count_rewrite(
        t, cgl_lives_rewrite(
               t,
               cgl_choose_rewrite(
                   t, (row){(cgl_token *)&c->at[i + 1], c->count - i - 2}),
               (row){(cgl_token *)k->parameters, k->nparameters}));
  row body = cgl_tree_copy(t, t->text.at ? t->text.at : c->at, t->text.n);
  t->origin = t->text.at;
  t->copy = body.at;
  return body;
}


/* The arguments of an instance: types, and values that no thread changes. */
static void bind_templates(tree *t) {
  const cgl_declared *k = t->kernel;
  for (size_t i = 0; i < k->ntemplates; i++) {
    const cgl_template_parameter *p = &k->templates[i];
    const cgl_alias *a = t->aliases;
    while (a && !cgl_token_same(&a->name, &p->name))
      a = a->outer;
    if (!a || !a->count || !p->ntype) {
      cgl_tree_refuse(t, &k->name,
                      "a template whose arguments are not written");
      return;
    }
    row value = {(cgl_token *)a->at, a->count};
    if (p->is_type) {
      cgl_tree_alias(t, &p->name, value)->parameter = true;
      continue;
    }
    variable *v = cgl_tree_declare(t, &p->name);
    v->type = cgl_tree_copy(t, p->type, p->ntype);
    v->value = value;
    v->parameter = true;
  }
}


static void read_kernel(tree *t) {
  if (t->strips && t->kernel->is_template)
    cgl_tree_refuse(t, &t->kernel->name, "no strips in a template");
  bind_templates(t);
  declare_parameters(t);
  cgl_values_find_functions(t);
  row body = kernel_body(t);
  if (!t->failed && !t->why)
    cgl_tree_refuse_unnamed(t);
  if (!t->failed && !t->why)
    t->body = cgl_tree_read(t, body);
  if (!t->why && !t->failed && (t->turns || !t->strips))
    cgl_tree_inline(t, &t->body);
  if (!t->why && !t->failed && t->strips)
    cgl_strip_find_guards(t);
  if (!t->why && !t->failed) {
    cgl_tree_mark(t, t->body);
    cgl_values_find(t);
  }
}


/* The variables that live across regions get arrays. */
static void keep_variables(tree *t) {
  int n = 0;
  for (variable *v = t->variables; v; v = v->next) {
    bool apart = v->parameter || v->addressed;
    if (!cgl_region_is_local(v) || (v->region != -2 && !apart) ||
        v->region == -1)
      continue;
    v->kept = true;
    if (apart)
      v->run = -2;
    if (v->is_auto && v->reference)
      cgl_tree_refuse(t, &v->name,
                      "'%.*s', of a type not written out, that lives across a "
                      "barrier",
                      cgl_put_length(v), v->name.text);
    if (++n > 64)
      cgl_tree_refuse(t, &v->name, "more than 64 variables across barriers");
  }
}


enum { FOLDED = 9 }; /* tokens: blockIdx . x * blockDim . x + 0u */

/* Has a thread an int that is a sum with its place in the grid, and is not the
   sum that a row's loop folds to its variable, if it does?  The compiler takes
   the sum, which is unsigned, for what may wrap around; as loops it has a wide
   form. */
static bool has_index(const tree *t, bool folds) {
  for (const variable *v = t->variables; v; v = v->next) {
    bool whole = v->index.n > 0;
    for (size_t i = 0; i < v->type.n; i++)
      whole &= cgl_token_is_any(&v->type.at[i], "int", "const");
    size_t n = 0;
    for (size_t i = 0; i < v->index.n; i++)
      n += !cgl_token_is_any(&v->index.at[i], "(", ")");
    if (whole && cgl_row_has(v->index, "blockIdx") && (n != FOLDED || !folds))
      return true;
  }
  return false;
}


/* 2: only without the loops that were turned of arithmetic, or of functions. */
static int loops_write(cgl_program *program, const cgl_signature *kernel,
                       const cgl_loops_style *style, bool turns,
                       cgl_arena *arena, cgl_text *out, const char **why,
                       int *line) {
  tree t = {.program = program,
            .arena = arena,
            .kernel = kernel->declared,
            .strips = style->strips,
            .turns = turns,
            .given = kernel->aliases,
            .aliases = kernel->aliases};
  cgl_text first = {0}, second = {0};
  t.last = &t.variables;
  t.known = cgl_arena_alloc(arena, program->nchunks + 1);
  t.bodies = cgl_arena_alloc(arena, (program->nchunks + 1) * sizeof *t.bodies);
  t.reached = cgl_arena_alloc(arena, program->nchunks + 1);
  t.failed = !t.known || !t.bodies || !t.reached;
  if (!t.failed)
    read_kernel(&t);
  while (cgl_strip_exclude(&(writer){.t = &t}) ||
         (!t.strips && (cgl_apart_exclude(&t) || cgl_common_find(&t))))
    read_kernel(&t);
  writer w = {.t = &t, .style = style, .out = &first, .counting = true};
  if (!t.why && !t.failed) {
    w.global = asks_index(&t);
    if (!t.strips) {
      cgl_stride_find_indices(&w);
      cgl_first_find(&w);
    }
    cgl_loops_put_function(&w);
    keep_variables(&t);
    if (style->strided && !t.strides && !t.guarded &&
        !(style->indexed &&
          has_index(&t, !(kernel->features & CGL_NEEDS_THREADS))))
      cgl_tree_refuse(&t, &t.kernel->name, "no loop and no guard for a row");
  }
  if (!t.why && !t.failed) {
    bool alive = w.returned && (w.returned < w.region || w.comes_back);
    bool global = w.global, ragged = w.ragged;
    bool lengthy = w.tokens > LONG_KERNEL;
    w = (writer){.t = &t,
                 .style = style,
                 .out = &second,
                 .alive = alive,
                 .ragged = ragged,
                 .lengthy = lengthy,
                 .global = global};
    cgl_loops_put_function(&w);
  }
  if (!t.why && !t.failed && !second.failed)
    cgl_text_add(out, second.data, second.length);
  bool failed = t.failed || first.failed || second.failed || arena->failed;
  cgl_text_free(&first);
  cgl_text_free(&second);
  *why = t.why;
  *line = t.line;
  return failed ? -1 : t.why && (t.turned || t.strips) ? 2 : t.why != NULL;
}


int cgl_loops_write(cgl_program *program, const cgl_signature *kernel,
                    const cgl_loops_style *style, cgl_arena *arena,
                    cgl_text *out, const char **why, int *line) {
  int status = loops_write(program, kernel, style, !style->strided, arena, out,
                           why, line);
  if (status == 2)
    status = loops_write(program, kernel, style, false, arena, out, why, line);
  return status == 2 ? 1 : status;
}
