/* Regions: what stands between two barriers, as one loop over the threads.
   What a region takes by its names for unchanged is a constant in it: whether a
   function changes what it is given only the compiler knows, and what it then
   refuses runs as fibers. */
#include <stdio.h>
#include <string.h>

#include "compile/loops/write_private.h"


/* ---- what a region uses ---- */

bool cgl_region_is_local(const variable *v) {
  return !v->uniform && !v->shared && !v->constant && !v->again && !v->alias &&
         !v->lambda;
}


static void note_use(writer *w, variable *v) {
  if (v->region == -1)
    v->region = w->region;
  else if (v->region != w->region)
    v->region = -2;
  if (v->run == -1)
    v->run = w->run;
  else if (v->run != w->run)
    v->run = -2;
}


/* Marks in `used`, by the variable's place in the list, what the row names. */
void cgl_region_mark(writer *w, row r, bool *used, int depth) {
  for (size_t i = 0; i < r.n; i++) {
    if (!cgl_tree_is_name(r, i))
      continue;
    size_t k = 0;
    for (variable *v = w->t->variables; v; v = v->next, k++)
      if (cgl_token_same(&v->name, &r.at[i]) && !used[k]) {
        used[k] = true;
        if ((v->again || v->lambda) && depth < 32)
          cgl_region_mark(w, v->value, used, depth + 1);
      }
  }
}


static size_t count_variables(const tree *t) {
  size_t n = 0;
  for (const variable *v = t->variables; v; v = v->next)
    n++;
  return n;
}


/* ---- regions ---- */

/* May the statements change the variable, or are they its declaration? */
static bool is_changed(const writer *w, const variable *v,
                       statement *const *list, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (list[i]->variable == v ||
        cgl_values_is_assigned(w->t,
                               list[i]->kind == STATEMENT_DECLARATION
                                   ? list[i]->value
                                   : list[i]->all,
                               v))
      return true;
  return false;
}


static const char *region_element(const variable *v) {
  return v->run > 0 ? "cgl_l" : "cgl_t";
}


static bool by_address(const variable *v) {
  return v->addressed || v->dims.n;
}


void cgl_region_put_room(writer *w, const variable *v) {
  cgl_put_name(w, "alignas(64) cgl_place<cgl_t_", v);
  cgl_put_name(w, v->reference ? " *> cgl_v_" : "> cgl_v_", v);
}


/* The wide form of a sum with an index that has one. */
static void put_beside(writer *w, const variable *v) {
  size_t n, at;
  row sum = cgl_row_slice(v->value, 1, v->value.n);
  at = cgl_put_find_index(w, sum, &n);
  cgl_put_name(w, "const long cgl_wide_", v);
  cgl_text_put(w->out, " = cgl_beside<cgl_wide>(");
  if (n == 3)
    cgl_text_put(w->out, "threadIdx.x");
  else
    cgl_text_print(w->out, "cgl_wide_%.*s", (int)sum.at[at].length,
                   sum.at[at].text);
  cgl_text_put(w->out, ",");
  cgl_put_rest(w, sum, at, n);
  cgl_put_name(w, ", ", v);
  cgl_text_print(w->out, ", %s);", cgl_put_counter(w));
}


/* A variable that is computed in every region.  An index that is known not to
   wrap has a wide form: with it the compiler sees neighbours. */
static void put_again(writer *w, const variable *v) {
  row value = v->value;
  if (w->run && w->fast && v->warp.n) {
    cgl_put_line(w, v->name.line);
    cgl_put_type(w, v);
    cgl_put_name(w, v->guarded ? " const " : " ", v);
    if (v->lane)
      cgl_text_put(w->out, " = cgl_l;");
    else {
      cgl_text_put(w->out, " = (unsigned)(");
      cgl_put_tokens(w, v->warp, false);
      cgl_text_put(w->out, " + cgl_wx) / 32;");
    }
    return;
  }
  if (w->run && w->fast) {
    row expanded = cgl_few_expand(w, value);
    bool warp;
    for (size_t i = 0; i < expanded.n; i++)
      if (cgl_stride_lane(expanded, i, &warp))
        value = expanded;
  }
  cgl_put_line(w, v->name.line);
  cgl_put_type(w, v);
  cgl_put_name(w, v->guarded ? " const " : " ", v);
  if (!w->run && v->index.n && cgl_token_is(v->type.at, "int") &&
      v->type.n == 1) {
    /* as a sum of numbers with signs, which the compiler sees through */
    cgl_put_name(w, " = cgl_wide ? (int)cgl_base_", v);
    cgl_text_put(w->out, w->pieces ? " + (int)cgl_from + (int)cgl_i : (int)("
                                   : " + (int)cgl_x : (int)(");
    cgl_put_tokens(w, cgl_row_slice(value, 1, value.n), false);
    cgl_text_put(w->out, ")");
  } else
    cgl_put_tokens(w, value, false);
  cgl_text_put(w->out, ";");
  if (v->beside)
    put_beside(w, v);
  if (!v->index.n)
    return;
  cgl_put_name(w, "const long cgl_wide_", v);
  if (w->run && !w->fast)
    cgl_put_name(w, " = ", v);
  else {
    cgl_put_name(w, " = cgl_wide ? cgl_base_", v);
    cgl_text_put(w->out, w->run      ? " + cgl_wx + (long)cgl_l"
                         : w->pieces ? " + (long)cgl_from + (long)cgl_i"
                                     : " + (long)cgl_x");
    cgl_put_name(w, " : ", v);
  }
  cgl_text_put(w->out, ";");
}


void cgl_region_put_common(writer *w, row r) {
  bool used[1024] = {false};
  cgl_text_put(w->out, "{");
  if (!w->fast)
    return;
  cgl_text_put(w->out, " const unsigned cgl_l = 0; const uint3 threadIdx = "
                       "{cgl_wx + cgl_l, cgl_wy, cgl_wz};");
  cgl_region_mark(w, r, used, 0);
  cgl_region_put_again(w, used);
}


void cgl_region_put_again(writer *w, const bool *used) {
  size_t k = 0;
  for (const variable *v = w->t->variables; v; v = v->next, k++)
    if (used[k] && v->again)
      put_again(w, v);
}


bool cgl_region_is_ragged(const writer *w) {
  return w->alive && (w->ragged || !w->run || !w->fast);
}


/* Is the variable one for all threads, which no thread may change? */
static bool is_fixed(const writer *w, const variable *v, const bool *used,
                     statement *const *list, size_t n) {
  return *used && v->guarded && v->uniform && !v->parameter && !v->constant &&
         !is_changed(w, v, list, n);
}


/* Its value, under a name that leaves its own to a constant in the loop. */
static void put_fixed(writer *w, const bool *used, statement *const *list,
                      size_t n) {
  size_t k = 0;
  for (const variable *v = w->t->variables; v; v = v->next, k++)
    if (is_fixed(w, v, &used[k], list, n)) {
      cgl_put_name(w, "const auto cgl_c_", v);
      cgl_put_name(w, " = ", v);
      cgl_text_put(w->out, ";");
    }
}


/* The variables that the region has from others. */
static void put_prologue(writer *w, const bool *used, statement *const *list,
                         size_t n) {
  size_t k = 0;
  for (variable *v = w->t->variables; v; v = v->next, k++) {
    bool own = false;
    for (size_t i = 0; i < n; i++)
      own |= list[i]->variable == v;
    if (!used[k])
      continue;
    if (is_fixed(w, v, &used[k], list, n)) {
      cgl_put_name(w, "const auto ", v);
      cgl_put_name(w, " = cgl_c_", v);
      cgl_text_put(w->out, ";");
    } else if (v->again)
      put_again(w, v);
    else if (v->lambda && !own) {
      cgl_put_line(w, v->name.line);
      cgl_put_name(w, "auto ", v);
      cgl_put_tokens(w, v->value, false);
      cgl_text_put(w->out, ";");
    } else if (v->reference && !own && v->kept) {
      cgl_put_type(w, v);
      cgl_put_name(w, " &", v);
      cgl_put_name(w, " = *cgl_v_", v);
      cgl_text_print(w->out, "[%s];", region_element(v));
    } else if (cgl_region_is_local(v) && !own && v->kept) {
      cgl_put_name(w, " cgl_t_", v);
      cgl_put_name(w,
                   by_address(v)                              ? " &"
                   : !v->guarded || is_changed(w, v, list, n) ? " "
                                                              : " const ",
                   v);
      cgl_put_name(w, " = cgl_at(cgl_v_", v);
      cgl_text_print(w->out, "[%s]);", region_element(v));
    }
  }
}


static void put_declaration(writer *w, const statement *s) {
  const variable *v = s->variable;
  cgl_put_line(w, v->name.line);
  if (v->kept && v->reference) {
    cgl_put_type(w, v);
    cgl_put_name(w, " &", v);
    cgl_put_tokens(w, s->value, false);
    cgl_put_name(w, "; cgl_v_", v);
    cgl_text_print(w->out, "[%s]", region_element(v));
    cgl_put_name(w, " = &", v);
    cgl_text_put(w->out, ";");
    return;
  }
  if (v->kept && by_address(v)) {
    const bool numbers = v->dims.n && !v->closed;
    if (numbers && s->value.n) {
      cgl_put_name(w, " cgl_t_", v);
      cgl_put_name(w, " cgl_i_", v);
      cgl_put_tokens(w, s->value, false);
      cgl_put_name(w, "; __builtin_memcpy((void *)&cgl_v_", v);
      cgl_text_print(w->out, "[%s]", region_element(v));
      cgl_put_name(w, ", &cgl_i_", v);
      cgl_put_name(w, ", sizeof cgl_i_", v);
      cgl_text_put(w->out, ");");
    }
    cgl_put_name(w, " cgl_t_", v);
    cgl_put_name(w, " &", v);
    cgl_put_name(w, " = cgl_at(cgl_v_", v);
    cgl_text_print(w->out, "[%s]);", region_element(v));
    if (!s->value.n) {
      cgl_put_name(w, " cgl_begin(", v);
      cgl_text_put(w->out, ");");
    } else if (!numbers) {
      const bool plain = !v->constructed && v->closed;
      const bool braces = plain && cgl_token_is(&s->value.at[1], "{");
      const char *end = "";
      if (v->constructed || plain) { /* a class's, which nothing has made yet */
        cgl_put_name(w, " ::new ((void *)&", v);
        cgl_put_name(w,
                     v->dims.n ? ", cgl_there()) cgl_row_of<cgl_t_"
                               : ", cgl_there()) cgl_t_",
                     v);
        end = v->dims.n ? "}" : plain && !braces ? ")" : "";
        cgl_text_put(w->out, v->dims.n ? ">{" : *end ? "(" : "");
      } else
        cgl_put_name(w, " ", v);
      cgl_put_tokens(w, cgl_row_slice(s->value, plain, s->value.n), false);
      cgl_text_print(w->out, "%s;", end);
    }
    return;
  }
  if (!v->guarded || v->changed || v->addressed || !s->value.n) {
    for (size_t i = 0; i < v->type.n; i++)
      cgl_text_print(w->out, " %.*s", (int)v->type.at[i].length,
                     v->type.at[i].text);
    cgl_put_name(w, " ", v);
  } else {
    cgl_put_type(w, v);
    cgl_put_name(w, " const ", v);
  }
  cgl_put_tokens(w, v->dims, false);
  cgl_put_tokens(w, s->value, false);
  cgl_text_put(w->out, ";");
}


static void put_epilogue(writer *w, const bool *used, statement *const *list,
                         size_t n) {
  size_t k = 0;
  for (variable *v = w->t->variables; v; v = v->next, k++) {
    if (!used[k] || !cgl_region_is_local(v) || !v->kept || by_address(v) ||
        v->reference || !is_changed(w, v, list, n))
      continue;
    cgl_put_name(w, " cgl_at(cgl_v_", v);
    cgl_text_print(w->out, "[%s]) =", region_element(v));
    cgl_put_name(w, " ", v);
    cgl_text_put(w->out, ";");
  }
}


/* The head of a loop over the threads, or over the lanes of the run's warp. */
static void put_head(writer *w, bool ordered, bool in_row, const char *from,
                     const char *most, const char *step) {
  const bool plain = ordered || w->style->ordered || w->global;
  const char *pragma = plain ? "" : "CGL_UNORDERED ";
  cgl_put_own(w);
  if (w->t->strips)
    cgl_text_print(w->out,
                   "%sfor (unsigned cgl_l = %s; cgl_l++) { const unsigned "
                   "cgl_t = cgl_l; CGL_STRIP_LANE",
                   pragma, w->lanes ? "0; cgl_l < 32" : "cgl_f; cgl_l < cgl_m");
  else if (w->pieces)
    cgl_text_print(
        w->out,
        "%sfor (unsigned cgl_i = 0; cgl_i < cgl_many; cgl_i++) { const "
        "unsigned cgl_x = cgl_from + cgl_i; const long cgl_t = CGL_ROW_FIRST + "
        "(long)cgl_x; const uint3 threadIdx = {cgl_x, cgl_y, cgl_z};",
        pragma);
  else if (!w->run)
    cgl_text_print(
        w->out,
        "%s%sfor (unsigned cgl_x = %s; cgl_x "
        "< %s; cgl_x += %s) { const long cgl_t = CGL_ROW_FIRST + (long)cgl_x; "
        "const uint3 threadIdx = {cgl_x, cgl_y, cgl_z};",
        in_row ? ""
               : "for (unsigned cgl_z = 0; cgl_z < cgl_bz; cgl_z++) for "
                 "(unsigned cgl_y = 0; cgl_y < cgl_by; cgl_y++) ",
        pragma, from, most ? most : "cgl_bx", step);
  else
    cgl_text_print(
        w->out,
        "%sfor (unsigned cgl_l = %s; cgl_l < %s; cgl_l++) { const unsigned "
        "cgl_t = cgl_w + cgl_l; const uint3 threadIdx = %s;",
        pragma, from,
        most      ? most
        : w->fast ? "32u"
                  : "cgl_m",
        w->fast ? "{cgl_wx + cgl_l, cgl_wy, cgl_wz}"
                : "cgl_thread_at(cgl_t, cgl_bx, cgl_by, "
                  "cgl_over_x, cgl_over_y)");
  if (w->global)
    cgl_text_put(w->out, " ::threadIdx.x = threadIdx.x; ::threadIdx.y = "
                         "threadIdx.y; ::threadIdx.z = threadIdx.z;");
  if (w->mask)
    cgl_text_print(w->out, " if (%s[cgl_l])", w->mask);
  else if (cgl_region_is_ragged(w))
    cgl_text_put(w->out, " if (cgl_alive[cgl_t])");
  cgl_text_put(w->out, " {");
}


static bool has_plain_atomics(writer *w, row r) {
  for (size_t i = 0; i < r.n; i++)
    if (cgl_put_is_plain_atomic(w, r, i))
      return true;
  return false;
}


/* What cgl_region_put writes, perhaps twice. */
typedef struct loop {
  statement *const *list;
  size_t n;
  const stride *walk;
  row guarded;
  const bool *used;
  bool ordered, returns;
} loop;


static void put_walked(writer *w, const stride *walk) {
  cgl_put_tokens(w, walk->type, false);
  cgl_text_put(w->out, " const");
  cgl_put_tokens(w, walk->name, false);
  /* in the loop's own type: an unsigned sum may wrap around, for all that
     the compiler knows, and then is no row of addresses */
  const bool lane = walk->lane || w->run;
  cgl_text_put(w->out, " = cgl_walked<");
  if (walk->narrow) {
    cgl_text_put(w->out, "decltype(+(");
    cgl_put_tokens(w, walk->bound, false);
    cgl_text_put(w->out, "))");
  } else
    cgl_text_put(w->out, "long");
  cgl_text_put(w->out, lane ? ">(cgl_base, cgl_l); const long cgl_wide_"
                            : ">(cgl_base, cgl_x); const long cgl_wide_");
  cgl_text_add(w->out, walk->name.at->text, walk->name.at->length);
  cgl_text_put(w->out, lane ? " = cgl_base + (long)cgl_l;"
                            : " = cgl_base + (long)cgl_x;");
  w->walked = walk->name.at;
  cgl_put_tokens(w, walk->body, true);
}


/* `in_row`: the loops over the block's rows stand around it. */
static void put_loop(writer *w, const loop *l, bool in_row, const char *from,
                     const char *most, const char *step) {
  put_head(w, l->ordered, in_row, from, most, step);
  w->inside = true;
  put_prologue(w, l->used, l->list, l->n);
  cgl_text_put(w->out, " {");
  if (l->walk)
    put_walked(w, l->walk);
  else if (l->guarded.n)
    cgl_put_tokens(w, l->guarded, true);
  else
    for (size_t i = 0; i < l->n; i++)
      if (l->list[i]->kind == STATEMENT_DECLARATION)
        put_declaration(w, l->list[i]);
      else
        cgl_put_tokens(w, l->list[i]->all, true);
  w->inside = false;
  w->walked = NULL;
  cgl_put_own(w);
  put_epilogue(w, l->used, l->list, l->n);
  cgl_text_put(w->out, " } }");
  if (l->returns)
    cgl_text_print(w->out, " cgl_next_%d:;", w->labels);
  cgl_text_put(w->out, " }");
}


/* The loop twice: for what the guards are known for, and else.  A block of one
   row of threads is wide: a row that is not known as a whole is asked again in
   pieces. */
static void put_known(writer *w, const loop *l) {
  w->pieces = w->style->strided && !w->run;
  if (!w->run)
    cgl_text_put(w->out, "for (unsigned cgl_z = 0; cgl_z < cgl_bz; cgl_z++) "
                         "for (unsigned cgl_y = 0; cgl_y < cgl_by; cgl_y++)");
  if (w->pieces)
    cgl_text_put(w->out,
                 "for (unsigned cgl_from = 0, cgl_most = cgl_bx, cgl_many; "
                 "cgl_from < cgl_bx; cgl_from += cgl_many)");
  cgl_text_put(w->out, "{");
  if (w->pieces)
    cgl_text_put(w->out, "cgl_many = cgl_bx - cgl_from; if (cgl_size_y == 1 && "
                         "cgl_many > cgl_most) cgl_many = cgl_most; "
                         "CGL_ASSUME(cgl_many <= 1024)");
  const bool edges = cgl_guard_put(w);
  if (w->pieces)
    cgl_text_put(w->out, "if (cgl_size_y == 1 && !cgl_holds && cgl_many > 32) {"
                         " cgl_most = 32; cgl_many = 0; continue; }");
  w->holds = true;
  cgl_text_put(w->out, edges ? "if (cgl_holds && cgl_from < cgl_to) {"
                               "CGL_ASSUME(cgl_to <= 1024)"
                             : "if (cgl_holds) {");
  put_loop(w, l, true, edges ? "cgl_from" : "0", edges ? "cgl_to" : NULL, "1");
  w->holds = false;
  w->labels++; /* the same statements, with their own label */
  cgl_text_put(w->out, edges ? "} else if (!cgl_holds) {" : "} else {");
  put_loop(w, l, true, "0", NULL, "1");
  cgl_text_put(w->out, "} }");
  w->pieces = false;
}


/* May a thread leave the kernel in it?  A declaration's lambda returns to it.
 */
static bool leaves(const statement *s) {
  return s->kind != STATEMENT_DECLARATION && cgl_tree_returns(s->all);
}


/* One loop for `n` statements, or for the body of a stride. */
void cgl_region_put(writer *w, statement *const *list, size_t n,
                    const stride *walk) {
  bool used[1024] = {false}, ordered = false, returns = false;
  w->region++;
  w->labels++;
  if (count_variables(w->t) > 1024) {
    cgl_tree_refuse(w->t, &w->t->kernel->name, "more than 1024 variables");
    return;
  }
  for (size_t i = 0; i < n; i++) {
    row r =
        list[i]->kind == STATEMENT_DECLARATION ? list[i]->value : list[i]->all;
    cgl_region_mark(w, r, used, 0);
    ordered |= has_plain_atomics(w, r);
    returns |= leaves(list[i]);
    size_t k = 0;
    for (variable *v = w->t->variables; v; v = v->next, k++)
      used[k] |= list[i]->variable == v;
  }
  if (returns && !w->returned)
    w->returned = w->region;
  w->comes_back |= returns && w->loops;
  w->ragged |= returns && (!w->run || w->fast);
  size_t k = 0;
  if (w->counting)
    for (variable *v = w->t->variables; v; v = v->next, k++)
      if (used[k] && cgl_region_is_local(v))
        note_use(w, v);
  few_threads f = {.from = "0", .step = "1"};
  bool few = !walk && cgl_first_is_few(w, list[0]);
  if (few) {
    cgl_text_put(w->out, "{ const unsigned cgl_k = cgl_lanes((int)(");
    cgl_put_tokens(w, (row){(cgl_token *)list[0]->few, 1}, false);
    cgl_text_put(w->out, "));");
    cgl_put_own(w);
  } else
    few = !walk && cgl_few_put(w, list, n, &f);
  const loop whole = {list, n,       walk,   few ? f.guarded : (row){NULL, 0},
                      used, ordered, returns};
  cgl_text_put(w->out, "{");
  put_fixed(w, used, list, n);
  if (few)
    put_loop(w, &whole, false, f.from, "cgl_k", f.step);
  else if (walk || w->t->strips || (w->run && !w->fast) ||
           !cgl_guard_find(w, list, n, used))
    put_loop(w, &whole, walk && walk->rows, "0", walk ? "cgl_k" : NULL, "1");
  else
    put_known(w, &whole);
  cgl_text_put(w->out, few ? " } }" : " }");
  cgl_put_own(w);
  if (!returns || !w->alive)
    return;
  w->left |= w->run > 0;
  if (!w->run)
    cgl_text_put(w->out, "if (!cgl_some(cgl_alive, cgl_n)) return;\n");
  else if (w->loops > w->run_loops) /* which need not end without them */
    cgl_text_print(w->out,
                   "if (!cgl_some(cgl_alive + cgl_w, cgl_m)) goto "
                   "cgl_left_%d;\n",
                   w->run_end);
}


static bool has_loop(const statement *s) {
  return s->kind == STATEMENT_PLAIN &&
         (cgl_row_has(s->all, "for") || cgl_row_has(s->all, "while"));
}


/* Does no thread carry a value of its own from the first i statements into the
   others, but in a variable that has room for those of all threads? */
static bool is_divisible(writer *w, statement *const *list, size_t i,
                         size_t n) {
  bool used[1024] = {false};
  if (count_variables(w->t) > 1024)
    return false;
  for (size_t j = i; j < n; j++)
    cgl_region_mark(w,
                    list[j]->kind == STATEMENT_DECLARATION ? list[j]->value
                                                           : list[j]->all,
                    used, 0);
  size_t k = 0;
  for (const variable *v = w->t->variables; v; v = v->next, k++)
    for (size_t j = 0; j < i && used[k]; j++)
      if (list[j]->variable == v && list[j]->kind == STATEMENT_DECLARATION &&
          cgl_region_is_local(v) && !v->kept)
        return false;
  return true;
}


/* How many of the statements are to be a region of their own.  The compiler
   takes threads in vectors around a loop, and not around a condition as well
   that is theirs in common; nor around what one of them does. */
static size_t find_end(writer *w, statement *const *list, size_t n) {
  size_t loops = 0;
  for (size_t i = 0; i < n; i++) {
    loops += has_loop(list[i]);
    if (leaves(list[i]))
      return n;
  }
  for (size_t i = 0; n > 1 && !w->run && !w->t->strips && i < n; i++)
    if (list[i]->kind == STATEMENT_PLAIN &&
        ((loops && cgl_few_is_common(w, list[i])) ||
         cgl_few_one(w, list[i]).n || cgl_guard_is_of_rows(w, list[i])) &&
        is_divisible(w, list, i ? i : 1, n))
      return i ? i : 1;
  return n;
}


void cgl_region_flush(writer *w) {
  size_t n = w->npending, k = 0;
  w->npending = 0;
  if (!n || w->t->why || cgl_strip_put_coherent(w, w->pending, n))
    return;
  statement *list[MAX_PENDING];
  n = cgl_split_few(w, w->pending, n, list);
  for (size_t i = 0; i < n; i += k) {
    k = find_end(w, &list[i], n - i);
    cgl_region_put(w, &list[i], k, NULL);
  }
}


void cgl_region_add(writer *w, statement *s) {
  const size_t n = w->npending;
  if (n &&
      (w->pending[n - 1]->few != s->few || (w->run && cgl_few_one(w, s).n)))
    cgl_region_flush(w);
  if (w->npending == MAX_PENDING)
    cgl_tree_refuse(w->t, &w->t->kernel->name, "too many statements");
  else
    w->pending[w->npending++] = s;
  if (w->run && w->npending == 1 && cgl_few_one(w, s).n)
    cgl_region_flush(w);
}


void cgl_region_put_scalar(writer *w, row r) {
  cgl_region_flush(w);
  cgl_put_tokens(w, r, false);
  cgl_put_own(w);
}


/* A statement that is not the script's. */
statement *cgl_region_statement(writer *w, const cgl_token *where,
                                const char *front, row r, const char *back) {
  statement *s = cgl_tree_new(w->t, STATEMENT_PLAIN);
  s->all = cgl_tree_copy(w->t, r.at ? r.at : where, r.n + 2);
  if (w->t->failed)
    return s;
  s->all.at[0] = cgl_tree_token(w->t, where, "%s", front);
  if (r.n)
    memcpy(&s->all.at[1], r.at, r.n * sizeof *r.at);
  s->all.at[r.n + 1] = cgl_tree_token(w->t, where, "%s", back);
  s->all.n = r.n + 2;
  return s;
}


const cgl_token *cgl_region_where(const writer *w, const statement *s) {
  return s->cond.n ? s->cond.at : s->all.n ? s->all.at : &w->t->kernel->name;
}
