/* What most rows of threads need not ask.
   A comparison: `i < n` at the edge of an array, where i has the thread's place
   in its row as a term.  It grows by 1 from thread to thread, so what holds for
   the first and the last thread holds for all of them.
   A slide: `min(max(i, 0), n - 1)`, or `(i + n) % n`.  It follows i, and falls
   behind it where the edge is: over a row it grows as much as i does only when
   it is i and the same number for all threads.
   The variable of a loop inside may stand in i as well, once, as in `x + d`:
   what is linear in it lies between what both ends of the loop give, if nothing
   wraps around; so the ends are asked, and there what comes out must be exact
   (inner.c).
   The loop over the row is written twice, with the guards and for rows for
   which all are known without: that one is the compiler's to take in vectors.
   A row that is not known as a whole is asked again in short pieces. */
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


static bool is_whole_type(row r) {
  for (size_t i = 0; i < r.n; i++)
    if (!cgl_token_is_any(&r.at[i], "int", "unsigned", "const", "long", "short",
                          "uint32_t", "int32_t", "uint", "size_t", "constexpr",
                          "static", "__device__"))
      return false;
  return true;
}


/* Is the name a whole number? */
static bool is_whole_name(writer *w, const cgl_token *x) {
  const variable *v = cgl_tree_find(w->t, x);
  size_t chunk, n = 0;
  if (v && v->alias) /* a number that a template is given */
    return v->value.n == 2 && v->value.at[1].kind == CGL_TOKEN_NUMBER;
  if (v)
    return is_whole_type(v->type);
  if (!cgl_reach_chunk(w->t->program, x, 0, &chunk))
    return cgl_token_is_any(x, "threadIdx", "blockIdx", "blockDim", "gridDim");
  const cgl_chunk *c = &w->t->program->chunks[chunk];
  while (n < c->count && !cgl_token_same(&c->at[n], x))
    n++;
  return is_whole_type((row){(cgl_token *)c->at, n});
}


/* Are these whole numbers, and sums and products of such? */
static bool is_whole(writer *w, row r) {
  for (size_t i = 0; i < r.n; i++) {
    const cgl_token *x = &r.at[i];
    size_t k = i;
    long n;
    /* a call, or a cast */
    if (i && (cgl_token_is(x, "(") || x->kind != CGL_TOKEN_PUNCT) &&
        (x[-1].kind != CGL_TOKEN_PUNCT || cgl_token_is(x - 1, ")")))
      return false;
    if (x->kind == CGL_TOKEN_NUMBER && !cgl_tree_number(r, &k, &n))
      return false;
    if (cgl_tree_is_name(r, i) && !is_whole_name(w, x))
      return false;
  }
  return true;
}


/* Is it a place, as cgl_stride_is_place says, and perhaps of loops inside? Adds
   the names of the region that it has to *names. */
static bool is_place(writer *w, row r, uint64_t *names, bool *moves,
                     bool *blocks) {
  uint64_t own;
  const row all = cgl_inner_expand(w, r, &own);
  const uint64_t loops = cgl_inner_loops(w, own);
  if (!all.n || loops & *names || (loops && !is_whole(w, all)))
    return false;
  *names |= own;
  return cgl_stride_is_place(w, all, moves, blocks);
}


/* Is a thread's or a block's place in it, and not numbers alone that all
   threads of the grid have? */
static bool is_of_grid(writer *w, row r) {
  uint64_t names;
  const row all = cgl_stride_expand(w, cgl_inner_expand(w, r, &names), 0);
  return cgl_row_has(all, "threadIdx") || cgl_row_has(all, "blockIdx");
}


/* What the comparison at i most likely is, inside of an array. */
static bool is_expected(row r, size_t i, bool mirrored) {
  const cgl_token *bound = &r.at[mirrored ? i - 1 : i + 1];
  const bool number = bound->kind == CGL_TOKEN_NUMBER;
  const bool less = cgl_token_is_any(&r.at[i], "<", "<=") != mirrored;
  if (cgl_token_is_any(&r.at[i], "==", "!="))
    return cgl_token_is(&r.at[i], "!=");
  return less ? !(number && cgl_token_is(bound, "0")) : number;
}


/* Is the comparison at i a guard? */
static bool is_guard(writer *w, row r, size_t i, guard *g) {
  size_t from = find_left(r, i), end = find_right(r, i);
  row left = cgl_row_slice(r, from, i), right = cgl_row_slice(r, i + 1, end);
  bool moves = false, other = false, blocks = false, bound = false;
  uint64_t names = 0;
  if (!left.n || end <= i + 1 || !is_place(w, left, &names, &moves, &blocks) ||
      !is_place(w, right, &names, &other, &bound) || (moves && other) ||
      !(other ? bound : blocks) || !cgl_inner_is_bounded(w, names))
    return false;
  *g = (guard){.all = cgl_row_slice(r, from, end),
               .left = left,
               .right = right,
               .names = names,
               .expected = is_expected(r, i, other),
               .equal = cgl_token_is_any(&r.at[i], "==", "!=")};
  if (moves || other)
    g->moving = moves ? left : right;
  /* A number that all threads have may well be equal, as in `k == 3`. */
  return !g->equal || g->moving.n || is_of_grid(w, left) ||
         is_of_grid(w, right);
}


/* Is it a call of CUDA's min or max? */
static bool is_min_or_max(writer *w, row r) {
  uint64_t names;
  size_t chunk;
  return r.n > 1 && cgl_token_is_any(r.at, "min", "max") &&
         cgl_token_is(&r.at[1], "(") && !cgl_tree_find(w->t, r.at) &&
         cgl_inner_expand(w, cgl_row_slice(r, 0, 1), &names).n && !names &&
         !cgl_reach_chunk(w->t->program, r.at, 0, &chunk);
}


/* Is it min or max of what all threads have, and of a place or its like?  The
   place goes to *place. */
static bool is_clamp(writer *w, row r, uint64_t *names, row *place) {
  r = cgl_row_unwrap(r);
  if (r.n < 6 || !is_min_or_max(w, r) || cgl_tokens_close(r.at, r.n, 1) != r.n)
    return false;
  size_t comma = 2;
  while (comma < r.n && !cgl_token_is(&r.at[comma], ","))
    comma = cgl_token_is(&r.at[comma], "(") ? cgl_tokens_close(r.at, r.n, comma)
                                            : comma + 1;
  if (comma + 1 >= r.n)
    return false;
  const row sides[] = {cgl_row_slice(r, 2, comma),
                       cgl_row_slice(r, comma + 1, r.n - 1)};
  for (int k = 0; k < 2; k++) {
    bool moves = false, other = false, blocks = false;
    uint64_t none = 0, own = 0;
    if (!is_place(w, sides[1 - k], &none, &other, &blocks) || other || none)
      continue;
    if (is_clamp(w, sides[k], names, place))
      return true;
    if (is_place(w, sides[k], &own, &moves, &blocks) && moves) {
      *names |= own;
      *place = sides[k];
      return true;
    }
  }
  return false;
}


/* Is the operator in front of token i one that binds less than `%`? */
static bool begins_term(row r, size_t i) {
  const cgl_token *last = i ? &r.at[i - 1] : NULL;
  if (last && cgl_token_is_any(last, "+", "-"))
    return i > 1 && (r.at[i - 2].kind == CGL_TOKEN_NUMBER ||
                     (r.at[i - 2].kind == CGL_TOKEN_NAME &&
                      !cgl_token_is(&r.at[i - 2], "return")) ||
                     cgl_token_is_any(&r.at[i - 2], ")", "]"));
  return !last || cgl_token_is_any(last, "=", "(", "[", ",", "?", ":", "return",
                                   "<", ">", "==", "!=", "&&", "||",
                                   "<=", ">=", ";", "{", "}");
}


/* Is the % at i of a place, and of what all threads have? */
static bool is_rest(writer *w, row r, size_t i, guard *g) {
  size_t from = i, end = i + 2;
  bool moves = false, other = false, blocks = false;
  uint64_t names = 0, none = 0;
  if (!i || i + 1 >= r.n)
    return false;
  if (cgl_token_is(&r.at[i - 1], ")")) {
    for (int depth = 0; from;) {
      from--;
      depth += cgl_token_is(&r.at[from], ")") - cgl_token_is(&r.at[from], "(");
      if (!depth)
        break;
    }
  } else
    from = r.at[i - 1].kind == CGL_TOKEN_NAME ? i - 1 : i;
  if (cgl_token_is(&r.at[i + 1], "("))
    end = cgl_tokens_close(r.at, r.n, i + 1);
  const row left = cgl_row_slice(r, from, i),
            right = cgl_row_slice(r, i + 1, end);
  if (!left.n || !begins_term(r, from) ||
      (right.n == 1 && right.at->kind == CGL_TOKEN_PUNCT) ||
      (end < r.n &&
       cgl_token_is_any(&r.at[end], "(", "[", ".", "->", "++", "--", "::")) ||
      !is_place(w, left, &names, &moves, &blocks) || !moves ||
      !is_place(w, right, &none, &other, &blocks) || other || none)
    return false;
  *g = (guard){.all = cgl_row_slice(r, from, end),
               .left = left,
               .right = right,
               .moving = left,
               .names = names,
               .slides = true};
  return cgl_inner_is_bounded(w, names);
}


/* Is what begins at i, or the % at i, a slide? */
static bool is_slide(writer *w, row r, size_t i, guard *g) {
  if (cgl_token_is(&r.at[i], "%"))
    return is_rest(w, r, i, g);
  if (!cgl_tree_is_name(r, i) || !is_min_or_max(w, cgl_row_slice(r, i, r.n)))
    return false;
  *g = (guard){.all = cgl_row_slice(r, i, cgl_tokens_close(r.at, r.n, i + 1)),
               .slides = true};
  return is_clamp(w, g->all, &g->names, &g->moving) &&
         cgl_inner_is_bounded(w, g->names);
}


/* x == 0 ? w - 1 : x - 1: is it a place that the guard chooses?  Where the
   compiler has to choose for every thread, it gathers. */
static bool chooses_place(writer *w, row r, const guard *g) {
  size_t i = (size_t)(g->all.at - r.at) + g->all.n;
  while (i < r.n && cgl_token_is(&r.at[i], ")"))
    i++;
  if (i >= r.n || !cgl_token_is(&r.at[i], "?"))
    return false;
  const size_t from = ++i;
  while (i < r.n && !cgl_token_is_any(&r.at[i], ";", ",", ")", "]", "["))
    i = cgl_token_is(&r.at[i], "(") ? cgl_tokens_close(r.at, r.n, i) : i + 1;
  return (i >= r.n || !cgl_token_is(&r.at[i], "[")) &&
         is_of_grid(w, cgl_row_slice(r, from, i));
}


/* `x < n` or its like: a comparison of a place and of what all threads of a row
   have, or of two of these. */
static bool is_edge(writer *w, row term, guard *g) {
  size_t i = cgl_row_find(term, "<", "<=");
  if (i == term.n)
    i = cgl_row_find(term, ">", ">=");
  const bool equal = i == term.n;
  if (equal)
    i = cgl_row_find(term, "==", "!=");
  const row left = cgl_row_slice(term, 0, i),
            right =
                cgl_row_slice(term, i + 1 < term.n ? i + 1 : term.n, term.n);
  bool moves = false, other = false, blocks = false;
  uint64_t names = 0;
  if (!left.n || !right.n || !is_place(w, left, &names, &moves, &blocks) ||
      !is_place(w, right, &names, &other, &blocks) ||
      (equal ? moves || other : moves && other) || cgl_inner_loops(w, names))
    return false;
  *g = (guard){.all = term,
               .left = left,
               .right = right,
               .names = names,
               .edge = true,
               .expected = true};
  if (moves || other)
    g->moving = moves ? left : right;
  return true;
}


bool cgl_guard_is_of_rows(writer *w, const statement *s) {
  const row cond = cgl_few_condition(w, s);
  w->ninner = 0;
  for (size_t i = 0; i < cond.n;) {
    guard g;
    const row term = cgl_few_next(cond, &i);
    if (cgl_row_find(term, "==", "==") < term.n && is_edge(w, term, &g) &&
        !cgl_values_is_uniform(w->t, term, false))
      return true;
  }
  return false;
}


/* The terms of `if (a && b) { if (c) ... }`, without an else: what stands there
   is of the threads between edges.  False when there are too many. */
static bool find_edges(writer *w, row r) {
  while (r.n > 6 && cgl_token_is(r.at, "if") && cgl_token_is(&r.at[1], "(")) {
    const size_t close = cgl_tokens_close(r.at, r.n, 1);
    const row cond = cgl_row_slice(r, 2, close - 1);
    if (cgl_tree_end(r, close) != r.n ||
        cgl_row_find(cond, "||", "?") < cond.n ||
        cgl_row_find(cond, ",", "=") < cond.n)
      return true;
    for (size_t i = 0; i < cond.n;) {
      guard g;
      const row term = cgl_few_next(cond, &i);
      /* Of what stands behind an effect nothing may be left out. */
      if (!cgl_few_is_pure(w, term))
        return true;
      if (!is_edge(w, term, &g))
        continue;
      if (w->nguards == MAX_GUARDS)
        return false;
      w->guards[w->nguards++] = g;
    }
    r = cgl_row_slice(r, close, r.n);
    while (r.n > 2 && cgl_token_is(r.at, "{") &&
           cgl_tokens_close(r.at, r.n, 0) == r.n)
      r = cgl_row_slice(r, 1, r.n - 1);
    if (cgl_tree_end(r, 0) != r.n)
      return true;
  }
  return true;
}


static bool is_known(const writer *w, const guard *g) {
  for (size_t i = 0; i < w->nguards; i++)
    if (w->guards[i].all.at == g->all.at)
      return true;
  return false;
}


/* The guards of a row; false when there are too many.  *unseen: the compiler
   does not see through one of them, as it does through `?:` of values, and
   through slides that are no places in an array. */
static bool find_guards(writer *w, row r, bool *unseen) {
  size_t asked = 0, inside = 0; /* past the condition of an if, a subscript */
  for (size_t i = 0; i + 1 < r.n; i++) {
    guard g;
    if (cgl_token_is(&r.at[i], "if"))
      asked = cgl_tokens_close(r.at, r.n, i + 1);
    if (cgl_token_is(&r.at[i], "[") && i >= inside)
      inside = cgl_tokens_close(r.at, r.n, i);
    if (cgl_token_is(&r.at[i], "for")) /* a header asks for every turn */
      i = cgl_tokens_close(r.at, r.n, i + 1) - 1;
    else if (is_slide(w, r, i, &g) ||
             (i &&
              cgl_token_is_any(&r.at[i], "<", "<=", ">", ">=", "==", "!=") &&
              is_guard(w, r, i, &g))) {
      if (is_known(w, &g))
        continue;
      if (w->nguards == MAX_GUARDS)
        return false;
      const bool place =
          i < inside || (g.all.at > r.at && cgl_token_is(g.all.at - 1, "="));
      *unseen |= cgl_inner_loops(w, g.names) ||
                 (g.equal && g.moving.n && i < asked) || (g.slides && place) ||
                 (g.moving.n && chooses_place(w, r, &g));
      w->guards[w->nguards++] = g;
      i = (size_t)(g.all.at - r.at) + g.all.n - 1;
    }
  }
  return true;
}


bool cgl_guard_find(writer *w, statement *const *list, size_t n,
                    const bool *used) {
  size_t tokens = 0, k = 0;
  bool moves = false, few = true, unseen = false;
  w->nguards = 0;
  if (!cgl_inner_find(w, list, n))
    return false;
  while (!w->run && !w->style->strided && k + 1 < n &&
         cgl_few_is_idle(w, list[k]))
    k++;
  if (!w->run && !w->style->strided && k + 1 == n &&
      list[k]->kind == STATEMENT_PLAIN)
    few = find_edges(w, list[k]->all);
  k = 0;
  for (const variable *v = w->t->variables; v; v = v->next, k++)
    if (used[k] && v->again && v->value.n) {
      tokens += v->value.n;
      few &= find_guards(w, v->value, &unseen);
    }
  for (k = 0; k < n; k++) {
    const statement *s = list[k];
    row r = s->kind == STATEMENT_DECLARATION ? s->value : s->all;
    tokens += r.n;
    few &= find_guards(w, r, &unseen);
  }
  for (k = 0; k < w->nguards; k++)
    moves |= w->guards[k].moving.n > 0 || w->guards[k].edge;
  const bool found = few && moves && tokens <= MOST_TOKENS;
  w->t->guarded |= found && unseen;
  return found;
}


/* ---- what is written ---- */

static void put_call(writer *w, const char *front, row a, row b,
                     const char *back) {
  cgl_text_put(w->out, front);
  cgl_put_tokens(w, a, false);
  cgl_text_put(w->out, ",");
  cgl_put_tokens(w, b, false);
  cgl_text_put(w->out, back);
}


/* cgl_holds: the sides are exact, as what they are compared as. */
static void put_exact(writer *w, const guard *g, row side, row other) {
  cgl_text_put(w->out, "{ double cgl_exact; {");
  cgl_inner_put(w, g->names, true);
  cgl_text_put(w->out, "cgl_exact = (double)(");
  cgl_put_tokens(w, side, false);
  put_call(w, "); } cgl_holds = cgl_holds && cgl_is_exact(", side, other,
           ", cgl_exact); }");
}


/* What one guard says of a thread, at both ends of the loops inside. */
static void put_question(writer *w, size_t i, bool first, const char *last) {
  const guard *g = &w->guards[i];
  const row other = g->slides                    ? g->moving
                    : g->moving.n == 0           ? g->right
                    : g->moving.at == g->left.at ? g->right
                                                 : g->left;
  const row side = g->moving.n ? g->moving : g->left;
  cgl_text_put(w->out, "{ unsigned cgl_c = 0;");
  cgl_inner_put(w, g->names, false);
  if (cgl_inner_loops(w, g->names)) {
    put_exact(w, g, side, other);
    if (!g->slides)
      put_exact(w, g, other, side);
  }
  if (g->slides) {
    if (g->right.n) {
      cgl_text_put(w->out, "cgl_holds = cgl_holds && (");
      cgl_put_tokens(w, g->right, false);
      cgl_text_put(w->out, ") > 0;");
    }
    put_call(w,
             "long cgl_by = 0; cgl_holds = cgl_holds && cgl_slides(&cgl_by, ",
             g->all, g->moving, ");");
    if (first)
      cgl_text_print(w->out, "if (!cgl_c) cgl_by%zu = cgl_by;", i);
    cgl_text_print(w->out, "cgl_holds = cgl_holds && cgl_by == cgl_by%zu;", i);
  } else if (g->equal) {
    put_call(w, "const int cgl_side = cgl_side_of(", g->left, g->right, ");");
    if (first)
      cgl_text_print(w->out, "if (!cgl_c) cgl_by%zu = cgl_side;", i);
    cgl_text_print(
        w->out, "cgl_holds = cgl_holds && cgl_side && cgl_side == cgl_by%zu;",
        i);
  } else {
    cgl_text_print(w->out, "cgl_holds = cgl_holds && %s(",
                   g->expected ? "" : "!");
    cgl_put_tokens(w, g->all, false);
    cgl_text_put(w->out, ");");
  }
  if (g->moving.n && first) {
    cgl_text_print(w->out, "cgl_first%zu[cgl_c] =", i);
    put_call(w, " cgl_place_beside(", side, other, ");");
  } else if (g->moving.n) {
    cgl_text_print(
        w->out, "cgl_holds = cgl_holds && cgl_grows(cgl_first%zu[cgl_c],", i);
    put_call(w, " cgl_place_beside(", side, other, "), ");
    cgl_text_print(w->out, "%s);", last);
  }
  cgl_text_put(w->out, "cgl_c++;");
  cgl_inner_put_end(w, g->names);
  cgl_text_put(w->out, "(void)cgl_c; }");
  cgl_put_own(w);
}


/* What an edge says of where the threads between edges begin and end. */
static void put_edge(writer *w, size_t i, bool first) {
  const guard *g = &w->guards[i];
  const bool mirrored = g->moving.at == g->right.at;
  const row other = mirrored ? g->left : g->right;
  const cgl_token *op = g->right.at - 1;
  const bool less = cgl_token_is_any(op, "<", "<=") != mirrored,
             equal = cgl_token_is_any(op, "<=", ">=");
  cgl_text_put(w->out, "{");
  cgl_inner_put(w, g->names, false);
  if (!g->moving.n) {
    cgl_text_put(w->out, "if (!(");
    cgl_put_tokens(w, g->all, false);
    cgl_text_put(w->out, ")) cgl_to = 0;");
  } else if (first) {
    cgl_text_print(w->out, "cgl_first%zu[0] =", i);
    put_call(w, " cgl_place_beside(", g->moving, other, ");");
  } else {
    cgl_text_print(w->out,
                   "cgl_holds = cgl_holds && cgl_edge<%d, %d>(cgl_first%zu[0], "
                   "cgl_bx - 1,",
                   less, equal == less, i);
    put_call(w, "", g->moving, other, ", &cgl_from, &cgl_to);");
  }
  cgl_inner_put_end(w, g->names);
  cgl_text_put(w->out, "}");
  cgl_put_own(w);
}


/* What the edges, or the other guards, say of the first or the last thread of a
   row, or of those within the edges. */
static void put_end(writer *w, const bool *used, bool edges, bool within,
                    bool first) {
  const char *last = within ? "cgl_to - 1" : cgl_put_last(w);
  cgl_text_print(w->out, "{ const unsigned %s = %s;", cgl_put_counter(w),
                 !first   ? last
                 : within ? "cgl_from"
                          : "0");
  cgl_text_put(
      w->out,
      w->run      ? "const uint3 threadIdx = {cgl_wx + cgl_l, cgl_wy, cgl_wz};"
      : w->pieces ? "const uint3 threadIdx = {cgl_from + cgl_i, cgl_y, cgl_z};"
                  : "const uint3 threadIdx = {cgl_x, cgl_y, cgl_z};");
  cgl_region_put_again(w, used);
  for (size_t i = 0; i < w->nguards; i++)
    if (w->guards[i].edge != edges)
      continue;
    else if (edges)
      put_edge(w, i, first);
    else
      put_question(w, i, first, within ? "cgl_to - 1 - cgl_from" : last);
  cgl_text_put(w->out, "}");
  cgl_put_own(w);
}


/* What the questions find out, and the loop over the row names. */
static void put_found(writer *w) {
  for (size_t i = 0; i < w->nguards; i++) {
    const guard *g = &w->guards[i];
    if (g->moving.n) {
      unsigned corners = 1;
      for (uint64_t l = cgl_inner_loops(w, g->names); l; l &= l - 1)
        corners *= 2;
      cgl_text_print(w->out, "long cgl_first%zu[%u];", i, corners);
    }
    if (g->slides || g->equal)
      cgl_text_print(w->out, "long cgl_by%zu = 0;", i);
  }
}


/* The questions of the edges, or of the other guards. */
static void put_ends(writer *w, bool edges, bool within) {
  bool used[1024] = {false};
  for (size_t i = 0; i < w->nguards; i++) {
    const guard *g = &w->guards[i];
    if (g->edge != edges)
      continue;
    cgl_region_mark(w, g->all, used, 0);
    cgl_inner_mark(w, g->names, used);
  }
  put_end(w, used, edges, within, true);
  cgl_text_put(w->out, "if (cgl_holds) ");
  put_end(w, used, edges, within, false);
}


bool cgl_guard_put(writer *w) {
  bool edges = false, others = false;
  for (size_t i = 0; i < w->nguards; i++) {
    edges |= w->guards[i].edge;
    others |= !w->guards[i].edge;
  }
  cgl_put_own(w);
  cgl_text_put(w->out, "bool cgl_holds = true;");
  put_found(w);
  if (edges) {
    cgl_text_put(w->out, "unsigned cgl_from = 0, cgl_to = cgl_bx;");
    put_ends(w, true, false);
  }
  if (others && edges)
    cgl_text_put(w->out, "if (cgl_from < cgl_to) {");
  if (others)
    put_ends(w, false, edges);
  cgl_text_put(w->out, others && edges ? "}" : "");
  return edges;
}


size_t cgl_guard_put_known(writer *w, row r, size_t i) {
  for (size_t k = 0; k < w->nguards && w->holds; k++) {
    const guard *g = &w->guards[k];
    if (g->all.at != &r.at[i] || i + g->all.n > r.n)
      continue;
    if (g->slides) {
      w->holds = false; /* its own tokens as they stand */
      cgl_text_put(w->out, "((decltype(");
      cgl_put_tokens(w, g->all, false);
      cgl_text_put(w->out, "))cgl_slid<decltype(");
      cgl_put_tokens(w, g->all, false);
      cgl_text_put(w->out, ")>(");
      cgl_put_tokens(w, g->moving, false);
      cgl_text_print(w->out, ", cgl_by%zu))", k);
      w->holds = true;
    } else
      cgl_text_put(w->out, g->expected ? " true" : " false");
    return g->all.n;
  }
  return 0;
}
