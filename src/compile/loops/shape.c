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


/* The first of a shared array's several dimensions; empty: it has not. */
static row tile_size(const variable *v) {
  if (!v->shared || !v->dims.n)
    return (row){NULL, 0};
  const size_t end = cgl_tokens_close(v->dims.at, v->dims.n, 0);
  return end < v->dims.n ? cgl_row_slice(v->dims, 1, end - 1) : (row){NULL, 0};
}


/* Is the name at i one of a number, as what stands behind it tells? */
static bool is_named_number(const tree *t, row r, size_t i) {
  size_t chunk;
  for (const cgl_alias *a = t->aliases; a; a = a->outer)
    if (cgl_token_same(&a->name, &r.at[i]))
      return false;
  return r.at[i].kind == CGL_TOKEN_NAME &&
         (i + 1 == r.n ||
          cgl_token_is_any(&r.at[i + 1], "+", "-", "*", "/", ")")) &&
         cgl_reach_chunk(t->program, &r.at[i], 0, &chunk);
}


/* Writes sums and products of numbers and of what has names outside of the
   kernel, the template's numbers among them; false for any other. */
static bool put_number(const tree *t, row r, int depth, cgl_text *out) {
  for (size_t i = 0; i < r.n; i++) {
    const cgl_token *x = &r.at[i];
    const variable *v = cgl_tree_find(t, x);
    if (v && !v->parameter) {
      if (!v->constant || v->dims.n || depth > 8 ||
          !cgl_token_is(v->value.at, "="))
        return false;
      cgl_text_put(out, "(");
      if (!put_number(t, cgl_row_slice(v->value, 1, v->value.n), depth + 1,
                      out))
        return false;
      cgl_text_put(out, ")");
    } else if (v || x->kind == CGL_TOKEN_NUMBER ||
               cgl_token_is_any(x, "+", "-", "*", "/", "(", ")") ||
               is_named_number(t, r, i))
      cgl_text_print(out, " %.*s", (int)x->length, x->text);
    else
      return false;
  }
  return true;
}


/* How a size of shared arrays tells that blocks have such rows. */
typedef enum tiling { TILING_NONE, TILING_ASKED, TILING_KNOWN } tiling;


/* Suggests a shared array such rows, by a number that its size begins with, or
   by names whose numbers the compiler knows: then `out` is its question.  What
   is no plain sum may be any. */
static tiling find_tiling(const tree *t, unsigned size, cgl_text *out) {
  tiling found = TILING_NONE;
  for (const variable *v = t->variables; v; v = v->next) {
    const row r = tile_size(v);
    if (r.n && number_of(r.at) == size)
      return TILING_KNOWN;
    for (size_t i = 0; i < r.n; i++) {
      if (r.at[i].kind != CGL_TOKEN_NAME)
        continue;
      cgl_text_put(out, found ? " || (" : "(");
      if (!put_number(t, r, 0, out))
        return TILING_KNOWN;
      cgl_text_print(out, ") == %u", size);
      if (r.n > 1) {
        cgl_text_put(out, " || (");
        put_number(t, cgl_row_slice(r, i, i + 1), 0, out);
        cgl_text_print(out, ") == %u", size);
      }
      found = TILING_ASKED;
    }
  }
  return found;
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


/* Functions for tiles; whether there may be any. */
static bool put_tiles(writer *w) {
  static const unsigned tiles[][2] = {{16, 16}, {32, 32}, {32, 8}, {8, 8}};
  bool any = false;
  for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
    cgl_text cond = {0};
    const tiling found = find_tiling(w->t, tiles[i][0], &cond);
    if (found == TILING_ASKED && !cond.failed)
      cgl_text_print(w->out, "if constexpr (%s) {", cond.data);
    if (found)
      put_shape(w, tiles[i][0], tiles[i][1]);
    if (found == TILING_ASKED && !cond.failed)
      cgl_text_put(w->out, "}");
    w->out->failed |= cond.failed;
    any |= found != TILING_NONE;
    cgl_text_free(&cond);
  }
  return any;
}


/* Is the index one that only huge grids have no room for?  A difference without
   a sign has none where it is below 0. */
static bool fits_mostly(const variable *v) {
  return cgl_loops_is_int(v) || !cgl_row_has(v->index, "-");
}


void cgl_shape_put(writer *w) {
  bool rows = false, indexed = false, seldom = true;
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
      cgl_text_print(w->out, "%scgl_fits<%d>(", indexed ? "&& " : "if (!(",
                     cgl_loops_is_int(v));
      cgl_put_tokens(w, v->index, false);
      cgl_text_put(w->out, ")");
      indexed = true;
      seldom &= fits_mostly(v);
    }
  cgl_put_own(w);
  if (indexed) {
    cgl_text_put(w->out, seldom ? ")) { cgl_seldom();" : ")) {");
    put_call(w, "false", 0, 0, 0);
    cgl_text_put(w->out, "}");
  }
  if (w->widths && !rows)
    put_shape(w, likely_width(w->t), 1);
  /* A kernel of tiles is seldom given a row, and one that knows no rows
     seldom any: what only such a block runs need not be fast. */
  if (!(rows && (put_tiles(w) || w->lengthy))) {
    cgl_text_put(w->out, "if (cgl_block.y * cgl_block.z == 1)");
    put_call(w, "true", 0, 1, 1);
  }
  cgl_text_put(w->out,
               rows || (w->global && !w->lengthy) ? "" : "cgl_seldom();");
  put_call(w, indexed && !rows ? "false" : "true", 0, 0, 0);
  cgl_text_put(w->out, "} };");
}
