/* The shapes of blocks for which a kernel has a function of its own.
   A block's width is worth much as a constant: inner loops have known ends, and
   where a sum is taken by halves,
     for (int half = blockDim.x / 2; half > 0; half /= 2) {
       if (t < half) part[t] += part[t + half];
       __syncthreads();
     }
   all turns are written out, and what one turn stores the next has in a
   register.  Each function costs its part of the compile; so there are few: a
   row of threads of any width, tiles that the shared arrays suggest, and, for
   kernels with such a loop, a row of the width that is most likely.
   Invariant: a function for a shape is the text of all others, with numbers in
   place of the block's sizes. */
#include <stdlib.h>

#include "compile/loops/write_private.h"

enum { USUAL_WIDTH = 256, LEAST_WIDTH = 32, MOST_WIDTH = 1024 };

static unsigned long number_of(const cgl_token *x) {
  return x->kind == CGL_TOKEN_NUMBER ? strtoul(x->text, NULL, 0) : 0;
}


/* Has a shared array of two dimensions that size, or one with a name? */
static bool has_size(const tree *t, unsigned size) {
  for (const variable *v = t->variables; v; v = v->next)
    if (v->shared && v->dims.n > 3 &&
        (v->dims.at[1].kind == CGL_TOKEN_NAME ||
         number_of(&v->dims.at[1]) == size) &&
        cgl_tokens_close(v->dims.at, v->dims.n, 0) < v->dims.n)
      return true;
  return false;
}


/* How wide blocks of one row most likely are: as a shared array that as many
   threads may make, or else as most are. */
static unsigned likely_width(const tree *t) {
  for (const variable *v = t->variables; v; v = v->next) {
    const unsigned long n =
        v->shared && v->dims.n > 2 ? number_of(&v->dims.at[v->dims.n - 2]) : 0;
    if (n >= LEAST_WIDTH && n <= MOST_WIDTH)
      return (unsigned)n;
  }
  return USUAL_WIDTH;
}


static void see_rows(tree *t, statement *s, row r, void *user) {
  (void)t;
  (void)s;
  for (size_t i = 0; i < r.n; i++)
    if (cgl_token_is_axis(r.at, r.n, i, "threadIdx") == 0 &&
        cgl_token_is(&r.at[i], "threadIdx"))
      *(bool *)user = true;
}


/* Is the row made of numbers, of names that no variable of the kernel has, of
   the block's width and of the loop's own variable? */
static bool is_of_width(const writer *w, row r, const variable *own) {
  for (size_t i = 0; i < r.n; i++) {
    const variable *v = cgl_tree_find(w->t, &r.at[i]);
    if (r.at[i].kind != CGL_TOKEN_NAME)
      continue;
    if (cgl_token_is_axis(r.at, r.n, i, "blockDim") &&
        cgl_token_is(&r.at[i + 2], "x"))
      i += 2;
    else if (v ? v != own && !v->constant
               : i + 1 < r.n &&
                     cgl_token_is_any(&r.at[i + 1], "(", ".", "->", "[", "::"))
      return false;
  }
  return r.n > 0;
}


/* Synchronizes a loop in it? */
static bool has_loop(const statement *list) {
  for (const statement *s = list; s; s = s->next)
    if (s->sync && (s->kind == STATEMENT_FOR || s->kind == STATEMENT_WHILE ||
                    s->kind == STATEMENT_DO || has_loop(s->body) ||
                    has_loop(s->otherwise)))
      return true;
  return false;
}


/* v *= 2, or v = v * 2, or likewise. */
static bool is_doubled(const writer *w, row step, const variable *v) {
  static const char *const signs[][2] = {
      {"*=", "*"}, {"/=", "/"}, {"<<=", "<<"}, {">>=", ">>"}};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (cgl_token_is(&step.at[1], signs[i][0]) ||
        (step.n > 4 && cgl_token_is(&step.at[1], "=") &&
         cgl_tree_find(w->t, &step.at[2]) == v &&
         cgl_token_is(&step.at[3], signs[i][1])))
      return true;
  return false;
}


bool cgl_shape_knows(writer *w, const statement *s) {
  const statement *init = s->init;
  if (s->kind != STATEMENT_FOR || !(s->sync & SYNC_BLOCK) || w->run ||
      w->t->strips || s->head || !init || init->next || has_loop(s->body))
    return false;
  const variable *v = cgl_values_assignment(w->t, s->step);
  const bool declared = init->kind == STATEMENT_DECLARATION;
  if (!v || !is_doubled(w, s->step, v) ||
      v != (declared ? init->variable : cgl_values_assignment(w->t, init->all)))
    return false;
  const bool known = is_of_width(w, declared ? init->value : init->all, v) &&
                     is_of_width(w, s->cond, v) && is_of_width(w, s->step, v);
  w->widths |= known;
  return known;
}


static void put_call(writer *w, const char *wide, unsigned x, unsigned y,
                     unsigned z) {
  cgl_text_print(w->out,
                 " return cgl_loops_of_%zu<%s, %u, %u, %u>(cgl_grid, "
                 "cgl_block, cgl_at, cgl_args...);",
                 w->style->id, wide, x, y, z);
}


static void put_shape(writer *w, unsigned x, unsigned y) {
  cgl_text_print(w->out,
                 "if (cgl_block.x == %u && cgl_block.y == %u && "
                 "cgl_block.z == 1)",
                 x, y);
  put_call(w, "true", x, y, 1);
}


void cgl_shape_put(writer *w) {
  static const unsigned tiles[][2] = {{16, 16}, {32, 32}, {32, 8}, {8, 8}};
  bool rows = false, wide = false;
  cgl_values_each(w->t, w->t->body, see_rows, &rows);
  cgl_text_print(
      w->out,
      "\n# 1 \"cgraphlua\" 3\nstruct cgl_loops_%zu { template "
      "<class... cgl_types> static void run(const uint3 cgl_grid, "
      "const uint3 cgl_block, const uint3 cgl_at, cgl_types... cgl_args) { "
      "const cgl_sizes gridDim = cgl_grid, blockDim = cgl_block, "
      "blockIdx = cgl_at;",
      w->style->id);
  for (const variable *v = w->t->variables; v; v = v->next)
    if (v->index.n) {
      cgl_text_print(w->out, "%scgl_fits<%d>(", wide ? "&& " : "if (!(",
                     cgl_loops_is_int(v));
      cgl_put_tokens(w, v->index, false);
      cgl_text_put(w->out, ")");
      wide = true;
    }
  cgl_put_own(w);
  if (wide) {
    cgl_text_put(w->out, "))");
    put_call(w, "false", 0, 0, 0);
  }
  if (w->widths && !rows)
    put_shape(w, likely_width(w->t), 1);
  cgl_text_put(w->out, "if (cgl_block.y * cgl_block.z == 1)");
  put_call(w, "true", 0, 1, 1);
  for (size_t i = 0; rows && i < sizeof tiles / sizeof *tiles; i++)
    if (has_size(w->t, tiles[i][0]))
      put_shape(w, tiles[i][0], tiles[i][1]);
  /* A kernel that knows no rows is seldom given any. */
  put_call(w, wide && !rows ? "false" : "true", 0, 0, 0);
  cgl_text_put(w->out, "} };");
}
