/* Operations of warps: runs of statements warp by warp, masks of lanes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/loops/write_private.h"


/* ---- warp operations ---- */

static const char *shuffle_of(const cgl_token *op) {
  return cgl_token_is(op, "__shfl_up_sync")     ? "cgl_of_up"
         : cgl_token_is(op, "__shfl_down_sync") ? "cgl_of_down"
         : cgl_token_is(op, "__shfl_xor_sync")  ? "cgl_of_xor"
                                                : "cgl_of_index";
}


void cgl_warp_put_type(writer *w, const char *name, row value) {
  bool used[1024] = {false};
  int id = ++w->labels;
  cgl_region_mark(w, value, used, 0);
  for (int side = 0; side < 2; side++) {
    size_t k = 0;
    if (side) {
      cgl_text_put(w->out, ") { return");
      cgl_put_tokens(w, value, false);
      cgl_text_print(w->out,
                     "; }; typedef decltype(cgl_f_%d(cgl_any_of<unsigned>(), "
                     "cgl_any_of<uint3>()",
                     id);
    } else
      cgl_text_print(w->out,
                     "auto cgl_f_%d = [&](const unsigned cgl_l, const uint3 "
                     "threadIdx",
                     id);
    for (variable *v = w->t->variables; v; v = v->next, k++) {
      if (!used[k] || !(cgl_region_is_local(v) || v->again))
        continue;
      cgl_put_name(w, side ? ", cgl_any_of<cgl_t_" : ", cgl_t_", v);
      if (side)
        cgl_text_put(w->out, ">()");
      else
        cgl_put_name(w, " &", v);
    }
  }
  cgl_text_print(w->out, ")) %s;", name);
  cgl_put_own(w);
}


/* The masks that the lanes give.  All lanes of each must have come. */
static void put_masks(writer *w, const statement *s, const char *alive) {
  char front[40];
  cgl_text_print(w->out, "unsigned cgl_k_%d[32] = {};\n", s->id);
  snprintf(front, sizeof front, "cgl_k_%d[cgl_l] = (unsigned)(", s->id);
  cgl_region_add(w, cgl_region_statement(w, &s->op, front, s->mask, ");"));
  cgl_region_flush(w);
  cgl_text_print(w->out, "cgl_meet_masks(cgl_k_%d, cgl_b_%d, %s, cgl_n);\n",
                 s->id, s->id, alive);
}


/* What a lane gets by the mask that it gives. */
static void put_by_mask(writer *w, const statement *s) {
  int id = s->id;
  bool any = cgl_token_is(&s->op, "__any_sync"),
       all = cgl_token_is(&s->op, "__all_sync");
  if (cgl_token_is(&s->op, "__match_any_sync")) {
    cgl_text_print(w->out,
                   "unsigned cgl_q_%d[32]; cgl_match(cgl_q_%d, cgl_s_%d, "
                   "cgl_b_%d, ",
                   id, id, id, id);
    if (s->mask.n)
      cgl_text_print(w->out, "cgl_k_%d);\n", id);
    else
      cgl_text_put(w->out, "nullptr);\n");
  } else if (any || all || cgl_token_is(&s->op, "__ballot_sync"))
    cgl_text_print(
        w->out,
        "unsigned cgl_q_%d[32]; { const unsigned cgl_a = "
        "cgl_bits(cgl_s_%d, 32); for (int cgl_l = 0; cgl_l < 32; "
        "cgl_l++) cgl_q_%d[cgl_l] = (cgl_a & cgl_k_%d[cgl_l])%s; }\n",
        id, id, id, id,
        any   ? " != 0"
        : all ? " == 0"
              : "");
  else
    cgl_text_print(w->out,
                   "cgl_type_%d cgl_q_%d[32]; cgl_folds<cgl_type_%d, "
                   "cgl_fold_%.*s>(cgl_q_%d, cgl_s_%d, cgl_b_%d, "
                   "cgl_k_%d);\n",
                   id, id, id, (int)s->op.length - 14, s->op.text + 9, id, id,
                   id, id);
}


/* cgl_s_<id>: what the lanes put in.  The array of a variable serves itself. */
static void put_source(writer *w, statement *s) {
  char front[80];
  int id = s->id;
  bool shuffle = !memcmp(s->op.text, "__shfl", 6),
       all = cgl_token_is(&s->op, "__all_sync"),
       vote = all || cgl_token_is_any(&s->op, "__any_sync", "__ballot_sync");
  const variable *v = s->all.n == 1 ? cgl_tree_find(w->t, s->all.at) : NULL;
  bool whole = w->fast && !cgl_region_is_ragged(w) && !w->mask;
  /* What is kept of a class may be farther apart. */
  if (shuffle && whole && v && v->kept && !v->dims.n && !v->reference &&
      !v->closed) {
    cgl_put_name(w, "typedef cgl_t_", v);
    cgl_text_print(w->out, " cgl_type_%d;", id);
    cgl_put_name(w, "const cgl_t_", v);
    cgl_text_print(w->out, " *const cgl_s_%d", id);
    cgl_put_name(w, " = &cgl_at(cgl_v_", v);
    cgl_text_put(w->out, v->run > 0 ? "[0]);\n" : "[cgl_w]);\n");
    return;
  }
  if (vote)
    cgl_text_print(w->out, "typedef int cgl_type_%d;\n", id);
  else {
    snprintf(front, sizeof front, "cgl_type_%d", id);
    cgl_warp_put_type(w, front, s->all);
  }
  cgl_text_print(w->out, "alignas(64) cgl_type_%d cgl_s_%d[32]%s;\n", id, id,
                 whole ? "" : " = {}");
  snprintf(front, sizeof front, "cgl_s_%d[cgl_l] = %s(", id,
           all    ? "!(int)"
           : vote ? "0 != (int)"
                  : "");
  cgl_region_add(w, cgl_region_statement(w, &s->op, front, s->all, ");"));
  cgl_region_flush(w);
}


/* cgl_q_<id>: what the lanes get from others. */
static void put_shuffle(writer *w, statement *s) {
  char front[80];
  int id = s->id;
  const char *from = shuffle_of(&s->op);
  cgl_text_print(w->out, "alignas(64) cgl_type_%d cgl_q_%d[32];\n", id, id);
  if (cgl_values_is_uniform(w->t, s->cond, false) &&
      cgl_values_is_uniform(w->t, s->step, false)) {
    const bool known =
        cgl_loops_is_number(w, s->cond) && cgl_loops_is_number(w, s->step);
    cgl_text_print(w->out, "%s<%s%s>(cgl_q_%d, cgl_s_%d, (int)(",
                   known && cgl_first_is_few(w, s) ? "cgl_move_first"
                   : w->fast                       ? "cgl_move"
                                                   : "cgl_move_apart",
                   from,
                   !w->fast ? ""
                   : known  ? ", true"
                            : ", false",
                   id, id);
    cgl_put_tokens(w, s->cond, false);
    cgl_text_put(w->out, ")");
    if (s->step.n)
      cgl_text_put(w->out, ",");
    cgl_put_tokens(w, s->step, false);
    cgl_text_put(w->out, ");");
    cgl_put_own(w);
    return;
  }
  cgl_tokens all = {0};
  for (size_t i = 0; i < s->cond.n; i++)
    cgl_tokens_add(&all, s->cond.at[i]);
  if (s->step.n)
    cgl_tokens_add(&all, cgl_tree_token(w->t, &s->op, "), ("));
  for (size_t i = 0; i < s->step.n; i++)
    cgl_tokens_add(&all, s->step.at[i]);
  w->t->failed |= all.failed;
  row args = cgl_tree_copy(w->t, all.at, all.failed ? 0 : all.count);
  cgl_tokens_free(&all);
  snprintf(front, sizeof front,
           "cgl_q_%d[cgl_l] = cgl_s_%d[cgl_source<%s>(cgl_l, (int)(", id, id,
           from);
  cgl_region_add(w, cgl_region_statement(w, &s->op, front, args, "))];"));
  cgl_region_flush(w);
}


/* One step of what a tile makes of its values, in cgl_s_<id>: each lane takes
   what the one at distance `by` has; of a scan, those that have one. */
static void put_step(writer *w, const statement *s, const char *by) {
  char front[120];
  const int id = s->id;
  const bool sum = cgl_token_is(&s->op, "__cgl_reduce_sync");
  cgl_text_print(w->out,
                 "cgl_move<%s, true>(cgl_g_%d, cgl_s_%d, (int)%s, cgl_h_%d);",
                 sum ? "cgl_of_xor" : "cgl_of_up", id, id, by, id);
  cgl_put_own(w);
  /* The lower lane's stands on the left of a scan's operator, which might be
     read as a type in one pair of brackets. */
  snprintf(front, sizeof front,
           sum ? "cgl_s_%d[cgl_l] = (("
               : "if ((cgl_l & (cgl_h_%d - 1)) >= %s) "
                 "cgl_s_%d[cgl_l] = ((",
           id, by, id);
  char back[120];
  snprintf(back, sizeof back, "))(cgl_%c_%d[cgl_l], cgl_%c_%d[cgl_l]);",
           sum ? 's' : 'g', id, sum ? 'g' : 's', id);
  cgl_region_add(w, cgl_region_statement(w, &s->op, front, s->cond, back));
  cgl_region_flush(w);
}


/* What the lanes of a tile, of which there are s->step, make of their values by
   the operator s->cond: as the functions in device_groups.h do, step by step.
 */
static void put_group(writer *w, const statement *s) {
  const int id = s->id;
  const bool sum = cgl_token_is(&s->op, "__cgl_reduce_sync");
  cgl_text_print(w->out, "constexpr unsigned cgl_h_%d =", id);
  cgl_put_tokens(w, s->step, false);
  cgl_text_print(w->out,
                 "; alignas(64) cgl_type_%d cgl_g_%d[32]; cgl_type_%d "
                 "(&cgl_q_%d)[32] = cgl_s_%d;",
                 id, id, id, id, id);
  cgl_put_own(w);
  for (int k = 0; k < 5 && w->fast; k++) {
    char by[8];
    snprintf(by, sizeof by, "%d", sum ? 16 >> k : 1 << k);
    cgl_text_print(w->out, "if constexpr (cgl_h_%d > %s) {\n", id, by);
    put_step(w, s, by);
    cgl_text_put(w->out, "}\n");
  }
  if (!w->fast) {
    cgl_text_print(w->out,
                   sum ? "for (unsigned cgl_by_%d = cgl_h_%d / 2; cgl_by_%d; "
                         "cgl_by_%d /= 2) {\n"
                       : "for (unsigned cgl_by_%d = 1; cgl_by_%d < cgl_h_%d; "
                         "cgl_by_%d *= 2) {\n",
                   id, id, id, id);
    char by[24];
    snprintf(by, sizeof by, "cgl_by_%d", id);
    put_step(w, s, by);
    cgl_text_put(w->out, "}\n");
  }
  if (!cgl_token_is(&s->op, "__cgl_exclusive_scan_sync"))
    return;
  char front[120];
  cgl_text_print(w->out,
                 "cgl_move<cgl_of_up, true>(cgl_g_%d, cgl_s_%d, 1, cgl_h_%d);",
                 id, id, id);
  cgl_put_own(w);
  snprintf(front, sizeof front,
           "cgl_s_%d[cgl_l] = cgl_l & (cgl_h_%d - 1) ? cgl_g_%d[cgl_l] : "
           "cgl_type_%d();",
           id, id, id, id);
  cgl_region_add(w, cgl_region_statement(w, &s->op, front, (row){NULL, 0}, ""));
  cgl_region_flush(w);
}


void cgl_warp_put(writer *w, statement *s) {
  int id = s->id;
  cgl_region_flush(w);
  cgl_put_line(w, s->op.line);
  const char *alive = cgl_region_is_ragged(w)
                          ? "cgl_bits(cgl_alive + cgl_w, cgl_m)"
                          : "cgl_low_bits(cgl_m)";
  cgl_text_print(w->out, "const unsigned cgl_b_%d = ", id);
  if (w->mask)
    cgl_text_print(w->out, "cgl_bits(%s, cgl_m);", w->mask);
  else
    cgl_text_print(w->out, "%s;", alive);
  bool active = cgl_token_is(&s->op, "__activemask");
  if (s->mask.n)
    put_masks(w, s, alive);
  else if (w->mask && w->strict && !active)
    cgl_text_print(w->out, "cgl_meet(cgl_b_%d, %s, cgl_n);", id, alive);
  cgl_put_own(w);
  if (active || cgl_token_is(&s->op, "__syncwarp"))
    return;
  put_source(w, s);
  if (!memcmp(s->op.text, "__shfl", 6))
    put_shuffle(w, s);
  else if (cgl_tree_is_group(&s->op))
    put_group(w, s);
  else if (s->mask.n || cgl_token_is(&s->op, "__match_any_sync"))
    put_by_mask(w, s);
  else if (!memcmp(s->op.text, "__reduce", 8))
    cgl_text_print(w->out,
                   "const auto cgl_q_%d = cgl_fold_%.*s(cgl_s_%d, "
                   "cgl_b_%d);\n",
                   id, (int)s->op.length - 14, s->op.text + 9, id, id);
  else
    cgl_text_print(w->out, "const %s cgl_q_%d = cgl_bits(cgl_s_%d, 32)%s;\n",
                   cgl_token_is(&s->op, "__ballot_sync") ? "unsigned" : "int",
                   id, id,
                   cgl_token_is(&s->op, "__any_sync")   ? " != 0"
                   : cgl_token_is(&s->op, "__all_sync") ? " == 0"
                                                        : "");
}


/* ---- masks ---- */

/* A new array of the lanes for which `cond` holds, of those that take part;
   returns its name. */
static const char *put_mask(writer *w, const statement *s, const char *name,
                            const char *test) {
  char front[80];
  snprintf(front, sizeof front, "%s[cgl_l] = %s(", name, test);
  cgl_region_add(w, cgl_region_statement(w, cgl_region_where(w, s), front,
                                         s->cond, ") ? -1 : 0;"));
  cgl_region_flush(w);
  return name;
}


static char *mask_name(writer *w) {
  char text[24];
  int n = snprintf(text, sizeof text, "cgl_m_%d", ++w->masks);
  char *name = cgl_arena_copy(w->t->arena, text, (size_t)n);
  w->t->failed |= !name;
  return name ? name : "";
}


/* What is written now is for the lanes of a mask, within those of another. */
static void begin_mask(writer *w, const char *name) {
  if (w->mask && w->nouter < MAX_MASKS)
    w->outer[w->nouter++] = w->mask;
  else if (w->mask)
    cgl_tree_refuse(w->t, &w->t->kernel->name, "conditions too deep");
  w->mask = name;
}


static void end_mask(writer *w, const char *outer) {
  if (outer && w->nouter)
    w->nouter--;
  w->mask = outer;
}


/* Has the list an operation of all lanes of the warp? */
static bool needs_all(const statement *list) {
  for (const statement *s = list; s; s = s->next)
    if ((s->kind == STATEMENT_WARP && !s->mask.n &&
         !cgl_token_is(&s->op, "__activemask")) ||
        needs_all(s->head) || needs_all(s->body) || needs_all(s->otherwise))
      return true;
  return false;
}


/* Lanes of a warp for which a condition holds. */
void cgl_warp_put_if(writer *w, statement *s) {
  const char *outer = w->mask;
  /* Lanes that do nothing more together have as good as left. */
  if (!outer)
    w->strict = w->more;
  for (statement *in = s->otherwise; in; in = in->next)
    if ((in->escapes && !w->body_mask) ||
        (needs_all(s->body) && needs_all(s->otherwise)))
      cgl_tree_refuse(
          w->t, cgl_region_where(w, s),
          "a warp operation in the else of a condition that depends "
          "on the thread");
  cgl_region_flush(w);
  char *name = mask_name(w), *other = s->otherwise ? mask_name(w) : NULL;
  cgl_text_print(w->out, "{ int %s[32] = {};", name);
  if (other)
    cgl_text_print(w->out, "int %s[32] = {};", other);
  cgl_put_own(w);
  put_mask(w, s, name, "");
  if (other) /* of those that took part, the rest */
    cgl_text_print(w->out,
                   "for (unsigned cgl_l = 0; cgl_l < cgl_m; cgl_l++) "
                   "%s[cgl_l] = !%s[cgl_l] ? -1 : 0;\n",
                   other, name);
  if (other && (outer || cgl_region_is_ragged(w)))
    cgl_text_print(w->out,
                   "for (unsigned cgl_l = 0; cgl_l < cgl_m; cgl_l++) "
                   "%s[cgl_l] &= %s[%s] ? -1 : 0;\n",
                   other, outer ? outer : "cgl_alive",
                   outer ? "cgl_l" : "cgl_w + cgl_l");
  cgl_text_print(w->out, "if (cgl_some(%s, cgl_m))", name);
  begin_mask(w, name);
  cgl_loops_put_block(w, s->body);
  if (other) {
    w->mask = other;
    cgl_text_print(w->out, "if (cgl_some(%s, cgl_m))", other);
    cgl_loops_put_block(w, s->otherwise);
  }
  end_mask(w, outer);
  cgl_text_put(w->out, "}\n");
}


bool cgl_warp_parts(writer *w, const statement *list) {
  for (const statement *s = list; s; s = s->next)
    if (s->escapes && s->kind != STATEMENT_JUMP &&
        (!(cgl_warp_is_uniform(w, s->cond) ||
           cgl_values_is_uniform(w->t, s->cond, false)) ||
         cgl_warp_parts(w, s->body) || cgl_warp_parts(w, s->otherwise)))
      return true;
  return false;
}


void cgl_warp_put_jump(writer *w, statement *s) {
  const bool ends = cgl_token_is(s->all.at, "break");
  cgl_text front = {0};
  for (size_t k = w->loop_mask + !ends; k < w->nouter; k++)
    cgl_text_print(&front, "%s[cgl_l] = 0;", w->outer[k]);
  cgl_text_print(&front, "%s[cgl_l] = 0;", w->mask);
  w->t->failed |= front.failed;
  if (!w->t->failed)
    cgl_region_add(
        w, cgl_region_statement(w, s->all.at, front.data, (row){NULL, 0}, ""));
  cgl_region_flush(w);
  cgl_text_free(&front);
  cgl_warp_put_left(w);
}


void cgl_warp_put_left(writer *w) {
  if (w->mask && w->mask == w->body_mask)
    cgl_text_print(w->out, "if (!cgl_some(%s, cgl_m)) break;\n", w->mask);
}


/* The body, with a mask of the lanes that have not left it. */
static void put_masked_body(writer *w, statement *s, const char *loop) {
  const char *const outer = w->body_mask;
  const size_t outer_loop = w->loop_mask;
  char *name = mask_name(w);
  cgl_text_print(w->out,
                 "int %s[32]; for (unsigned cgl_l = 0; cgl_l < 32; cgl_l++) "
                 "%s[cgl_l] = %s[cgl_l]; do {\n",
                 name, name, loop);
  begin_mask(w, name);
  w->body_mask = name;
  w->loop_mask = w->nouter - 1;
  cgl_loops_put_list(w, s->body);
  w->body_mask = outer;
  w->loop_mask = outer_loop;
  end_mask(w, loop);
  cgl_text_put(w->out, "} while (0);\n");
}


/* Only the lanes that are still in the loop go on. */
static void put_test(writer *w, statement *s, char *name) {
  cgl_loops_put_list(w, s->head);
  if (s->cond.n)
    put_mask(w, s, name, "");
  cgl_text_print(w->out, "if (!cgl_some(%s, cgl_m)) break;\n", name);
}


void cgl_warp_put_loop(writer *w, statement *s) {
  const char *outer = w->mask, *const body = w->body_mask;
  const bool common = cgl_loops_is_uniform(w, s);
  if (!outer)
    w->strict = true;
  cgl_region_flush(w);
  char *name = mask_name(w);
  cgl_text_print(w->out,
                 "{ int %s[32] = {}; for (unsigned cgl_l = 0; cgl_l < cgl_m; "
                 "cgl_l++) %s[cgl_l] = ",
                 name, name);
  if (outer)
    cgl_text_print(w->out, "%s[cgl_l];", outer);
  else if (cgl_region_is_ragged(w))
    cgl_text_put(w->out, "cgl_alive[cgl_w + cgl_l];");
  else
    cgl_text_put(w->out, "-1;");
  cgl_put_own(w);
  begin_mask(w, name);
  cgl_loops_put_list(w, s->init);
  bool late = s->kind == STATEMENT_DO;
  cgl_text_put(w->out, "for (;;) {\n");
  if (!late)
    put_test(w, s, name);
  if (cgl_tree_is_left(s))
    put_masked_body(w, s, name);
  else {
    w->body_mask = NULL;
    cgl_loops_put_list(w, s->body);
    w->body_mask = body;
  }
  if (common && s->step.n)
    cgl_region_put_scalar(
        w, cgl_region_statement(w, s->step.at, "", s->step, ";")->all);
  else if (s->step.n) {
    cgl_region_add(w, cgl_region_statement(w, s->step.at, "", s->step, ";"));
    cgl_region_flush(w);
  }
  if (late)
    put_test(w, s, name);
  cgl_text_put(w->out, "} }\n");
  end_mask(w, outer);
}


/* The number at i, or -1. */
static long number_at(row r, size_t i) {
  if (i < r.n && cgl_token_is(&r.at[i], "warpSize"))
    return WARP_LANES;
  if (i >= r.n || r.at[i].kind != CGL_TOKEN_NUMBER)
    return -1;
  char *end;
  const long n = strtol(r.at[i].text, &end, 0);
  while (end < r.at[i].text + r.at[i].length && strchr("uUlL", *end))
    end++;
  return end == r.at[i].text + r.at[i].length ? n : -1;
}


/* Has threadIdx.x at i one value there for the lanes of a whole warp: is it
   divided by 32, or below a multiple of that, or not? */
static bool is_by_warps(row r, size_t i) {
  static const char *const opens[] = {"(", "&&", "||", NULL};
  static const char *const ends[] = {")", "&&", "||", NULL};
  size_t end = i + 3;
  bool warp;
  if (cgl_stride_lane(r, i && cgl_token_is(&r.at[i - 1], "(") ? i - 1 : i,
                      &warp))
    return warp;
  while (i && end < r.n && cgl_token_is(&r.at[i - 1], "(") &&
         cgl_token_is(&r.at[end], ")"))
    i--, end++;
  const cgl_token *op = end < r.n ? &r.at[end] : NULL;
  const bool open = !i || cgl_token_is_of(&r.at[i - 1], opens);
  const bool last = end + 2 >= r.n || cgl_token_is_of(&r.at[end + 2], ends);
  const long n = number_at(r, end + 1);
  if (op && cgl_token_is(op, "/") && n == WARP_LANES)
    return open ||
           cgl_token_is_any(&r.at[i - 1], "<", ">", "<=", ">=", "==", "!=");
  if (op && cgl_token_is(op, ">>") && n == 5)
    return (open ||
            cgl_token_is_any(&r.at[i - 1], "<", ">", "<=", ">=", "==", "!=")) &&
           (end + 2 >= r.n ||
            !cgl_token_is_any(&r.at[end + 2], "+", "-", "*", "/", "%"));
  if (op && open && last && n >= 0)
    return cgl_token_is_any(op, "<", ">=")   ? n % WARP_LANES == 0
           : cgl_token_is_any(op, ">", "<=") ? n % WARP_LANES == WARP_LANES - 1
                                             : false;
  const long before = i > 1 ? number_at(r, i - 2) : -1;
  return before >= 0 && (i == 2 || cgl_token_is_of(&r.at[i - 3], opens)) &&
         (!op || cgl_token_is_of(op, ends)) &&
         (cgl_token_is_any(&r.at[i - 1], ">", "<=") ? before % WARP_LANES == 0
          : cgl_token_is_any(&r.at[i - 1], "<", ">=")
              ? before % WARP_LANES == WARP_LANES - 1
              : false);
}


/* Has the condition one value for the lanes of a whole warp: is the thread in
   it by its warp, or by y and z? */
bool cgl_warp_is_uniform(writer *w, row r) {
  cgl_tokens rest = {0};
  bool fits = w->run && r.at;
  for (size_t i = 0; i < r.n && fits; i++) {
    /* the one result of a vote */
    bool vote = r.at[i].length > 6 && !memcmp(r.at[i].text, "cgl_q_", 6) &&
                (i + 1 == r.n || !cgl_token_is(&r.at[i + 1], "[")) &&
                !memchr(r.at[i].text, '[', r.at[i].length) &&
                !cgl_tree_find(w->t, &r.at[i]);
    const variable *v = cgl_tree_find(w->t, &r.at[i]);
    const bool warp = w->fast && v && v->warp.n && !v->lane;
    if (!vote && !warp && !cgl_token_is(&r.at[i], "threadIdx")) {
      cgl_tokens_add(&rest, r.at[i]);
      continue;
    }
    if (vote || warp) {
      cgl_token zero = r.at[i];
      zero.kind = CGL_TOKEN_NUMBER;
      zero.text = "0u";
      zero.length = 2;
      cgl_tokens_add(&rest, zero);
      continue;
    }
    if (!w->fast) {
      fits = false;
      break;
    }
    fits = i + 2 < r.n &&
           (!cgl_token_is_axis(r.at, r.n, i, "threadIdx") || is_by_warps(r, i));
    cgl_token one = r.at[i];
    one.kind = CGL_TOKEN_NUMBER;
    one.text = "0u";
    one.length = 2;
    cgl_tokens_add(&rest, one);
    i += fits ? 2 : 0;
  }
  fits = fits && !rest.failed &&
         cgl_values_is_uniform(w->t, (row){rest.at, rest.count}, false);
  cgl_tokens_free(&rest);
  return fits;
}


bool cgl_warp_put_return(writer *w, const statement *s) {
  row cond;
  if (!w->run || !w->fast || w->t->strips || w->mask ||
      w->loops != w->run_loops || !cgl_strip_is_leave(s, &cond))
    return false;
  if (!cgl_warp_is_uniform(w, cgl_few_expand(w, cond)))
    return false;
  cgl_region_flush(w);
  cgl_region_put_common(w, cond);
  cgl_text_put(w->out, "if (");
  cgl_put_tokens(w, cond, false);
  cgl_text_put(w->out, ") {");
  if (w->alive)
    cgl_text_put(w->out, " for (unsigned cgl_l = 0; cgl_l < 32; cgl_l++) "
                         "cgl_alive[cgl_w + cgl_l] = 0;");
  cgl_text_put(w->out, " continue; } }\n");
  return true;
}


/* ---- runs ---- */

static bool declares(const statement *from, const statement *to,
                     const variable *v) {
  for (; from != to; from = from->next)
    if (from->variable == v)
      return true;
  return false;
}


/* Is it a loop over elements from the lane's on, which the lanes of a run take
   together? */
static bool is_walk_of_lanes(writer *w, const statement *s) {
  stride walk;
  const int run = w->run;
  const bool fast = w->fast;
  w->run = 1;
  w->fast = true;
  const bool found = cgl_stride_find(w, s, &walk) && walk.lane;
  w->run = run;
  w->fast = fast;
  return found;
}


/* The statement behind the run of warps that starts with s: what follows its
   last operation belongs to it up to a loop, but for one that the lanes take
   together. */
statement *cgl_warp_find_end(writer *w, statement *s) {
  statement *end = s->next;
  bool simple = true; /* since the last one that synchronizes */
  for (statement *in = s; in; in = in->next) {
    if (in->sync & (SYNC_BLOCK | SYNC_APART) || in->escapes ||
        (in->kind == STATEMENT_DECLARATION && in->variable->shared))
      break;
    variable *v = in->kind == STATEMENT_PLAIN && !in->sync
                      ? cgl_values_assignment(w->t, in->all)
                      : NULL;
    if (v && !declares(s, in, v))
      break;
    stride walk;
    if (in->sync || (simple && is_walk_of_lanes(w, in)))
      end = in->next;
    else if (in->kind == STATEMENT_PLAIN && in->all.n &&
             (cgl_token_is_any(in->all.at, "for", "while", "do") ||
              cgl_stride_find(w, in, &walk)))
      simple = false;
    else if (simple)
      end = in->next;
    if (in->sync)
      simple = true;
  }
  return end;
}


static void put_run_body(writer *w, statement **before, size_t n, statement *s,
                         statement *end) {
  for (size_t i = 0; i < n; i++)
    cgl_loops_put_statement(w, before[i]);
  statement *last = s;
  while (last->next != end)
    last = last->next;
  last->next = NULL;
  cgl_loops_put_list(w, s);
  last->next = end;
}


/* Warp by warp, written for whole warps of threads in a row, and for all.
   What was put off comes with it. */
void cgl_warp_put_run(writer *w, statement *s, statement *end) {
  statement *before[MAX_PENDING];
  size_t n = w->npending;
  memcpy(before, w->pending, n * sizeof *before);
  w->npending = 0;
  w->run = ++w->runs;
  w->fast = true;
  cgl_text_print(w->out,
                 "for (unsigned cgl_w = 0; cgl_w < cgl_n%s; cgl_w += 32) {\n",
                 cgl_few_is_of_first_warp(w, before, n, s, end)
                     ? " && (cgl_w == 0 || cgl_by * cgl_bz != 1)"
                     : "");
  for (variable *v = w->t->variables; v; v = v->next)
    if (v->kept && v->run == w->run && cgl_region_is_local(v)) {
      cgl_region_put_room(w, v);
      cgl_text_put(w->out, "[32];\n");
    }
  cgl_text_put(
      w->out,
      "if (cgl_aligned && (cgl_by * cgl_bz == 1 ? cgl_w + 32 <= cgl_n : "
      "cgl_bx % 32 == 0)) { constexpr unsigned cgl_m = 32; const bool cgl_row "
      "= cgl_by "
      "* cgl_bz == 1; const unsigned cgl_wx = cgl_row ? cgl_w : cgl_w "
      "% cgl_bx, cgl_wy = cgl_row ? 0 : cgl_w / cgl_bx % cgl_by, "
      "cgl_wz = cgl_row ? 0 : cgl_w / cgl_bx / cgl_by;\n");
  int region = w->region, runs = w->runs;
  w->run_loops = w->loops;
  w->run_end = ++w->labels;
  w->left = false;
  if (w->alive && !w->ragged)
    cgl_text_put(w->out, "if (!cgl_alive[cgl_w]) continue;\n");
  put_run_body(w, before, n, s, end);
  cgl_text_put(w->out, "} else {");
  if (w->lengthy)
    cgl_text_put(w->out,
                 " if constexpr (cgl_size_y * cgl_size_z == 1) cgl_seldom();");
  cgl_text_put(w->out,
               " const unsigned cgl_m = cgl_n - cgl_w < 32 ? cgl_n - "
               "cgl_w : 32, cgl_over_x = cgl_reciprocal(cgl_bx), cgl_over_y = "
               "cgl_reciprocal(cgl_by);\n");
  /* The second text has fewer regions, and the same uses. */
  int after = w->region;
  w->region = region;
  w->runs = runs;
  w->fast = false;
  bool counting = w->counting;
  w->counting = false;
  put_run_body(w, before, n, s, end);
  w->counting = counting;
  if (w->region < after)
    w->region = after;
  cgl_text_put(w->out, "}\n");
  if (w->alive)
    cgl_text_print(w->out, "cgl_left_%d:;", w->run_end);
  cgl_text_put(w->out, "}\n");
  if (w->left && w->loops)
    cgl_text_put(w->out, "if (!cgl_some(cgl_alive, cgl_n)) return;\n");
  w->run = 0;
}
