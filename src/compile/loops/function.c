/* The function that a kernel's loops are: its parameters, the names of what its
   threads have in common, the room for what each of them has. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/loops/write_private.h"


bool cgl_loops_has_warp_value(row r) {
  for (size_t i = 0; i < r.n; i++)
    if (r.at[i].length > 6 && (!memcmp(r.at[i].text, "cgl_q_", 6) ||
                               !memcmp(r.at[i].text, "cgl_b_", 6)))
      return true;
  return false;
}


static const statement *find_operation(const statement *list, int id) {
  for (const statement *s = list, *in; s; s = s->next)
    if (s->kind == STATEMENT_WARP && s->id == id)
      return s;
    else if ((in = find_operation(s->head, id)) ||
             (in = find_operation(s->body, id)) ||
             (in = find_operation(s->otherwise, id)))
      return in;
  return NULL;
}


/* Adds the row with a value of its type for what every warp operation gives. */
static void add_typed(writer *w, row r, int depth, cgl_tokens *out) {
  for (size_t i = 0; i < r.n; i++) {
    const cgl_token *x = &r.at[i];
    const bool given = cgl_loops_has_warp_value((row){(cgl_token *)x, 1});
    const statement *s = given && depth < 32
                             ? find_operation(w->t->body, atoi(x->text + 6))
                             : NULL;
    if (!s) {
      cgl_tokens_add(out, *x);
      continue;
    }
    const bool vote = cgl_token_is_any(&s->op, "__any_sync", "__all_sync");
    const bool value = cgl_tree_is_group(&s->op) ||
                       !memcmp(s->op.text, "__shfl", 6) ||
                       !memcmp(s->op.text, "__reduce", 8);
    const cgl_token none = cgl_tree_token(w->t, x, vote ? "0" : "0u");
    cgl_token open = cgl_tree_token(w->t, x, "("),
              close = cgl_tree_token(w->t, x, ")");
    open.kind = close.kind = CGL_TOKEN_PUNCT;
    cgl_tokens_add(out, open);
    if (value)
      add_typed(w, s->all, depth + 1, out);
    else
      cgl_tokens_add(out, none);
    cgl_tokens_add(out, close);
  }
}


/* The type of what an `auto` begins with, which threads' variables stand in. */
static void put_deduced(writer *w, const variable *v) {
  char name[80];
  cgl_tokens typed = {0};
  add_typed(w, cgl_row_slice(v->value, 1, v->value.n), 0, &typed);
  w->t->failed |= typed.failed;
  if (w->t->failed)
    return;
  const row value = cgl_tree_copy(w->t, typed.at, typed.count);
  cgl_tokens_free(&typed);
  snprintf(name, sizeof name, "cgl_t_%.*s", (int)v->name.length, v->name.text);
  cgl_warp_put_type(w, name, value);
}


/* A type of the kernel's own, or one that a template's argument decides. */
static void put_alias(writer *w, const variable *v) {
  if (v->is_auto) {
    char name[80];
    snprintf(name, sizeof name, "%.*s", (int)v->name.length, v->name.text);
    if (cgl_loops_has_warp_value(v->value))
      cgl_tree_refuse(w->t, v->value.at,
                      "a template's argument that a warp operation decides");
    cgl_warp_put_type(w, name, v->value);
    return;
  }
  cgl_put_line(w, v->name.line);
  if (!v->constructed)
    cgl_put_name(w, "using ", v);
  cgl_put_tokens(w, v->value, false);
  cgl_text_put(w->out, v->constructed ? "" : ";");
  cgl_put_own(w);
}


/* What says a constant's value, or how many there are: in sizeof, a thread's
   own variables have types and no names yet. */
static void put_constant(writer *w, row r) {
  row made = cgl_tree_copy(w->t, r.at ? r.at : &w->t->kernel->name, r.n);
  size_t end = 0;
  for (size_t i = 0; i < made.n; i++) {
    if (i >= end && i + 1 < made.n && cgl_token_is(&made.at[i], "sizeof") &&
        cgl_token_is(&made.at[i + 1], "("))
      end = cgl_tokens_close(made.at, made.n, i + 1);
    const variable *v = i < end && cgl_tree_is_name(made, i)
                            ? cgl_tree_find(w->t, &made.at[i])
                            : NULL;
    if (v && !v->parameter && (cgl_region_is_local(v) || v->again))
      made.at[i] = cgl_tree_token(w->t, &made.at[i], "(*(cgl_t_%.*s *)0)",
                                  (int)v->name.length, v->name.text);
  }
  cgl_put_tokens(w, made, false);
}


/* What all threads share: constants, memory, uniform variables. */
static void put_common(writer *w, const variable *v) {
  if (v->dynamic) {
    cgl_put_type(w, v);
    cgl_put_name(w, " *const ", v);
    cgl_text_put(w->out, " = (");
    cgl_put_type(w, v);
    cgl_text_put(w->out,
                 " *)__builtin_assume_aligned(cgl_hidden(cgl_dynamic_shared), "
                 "128);\n");
    return;
  }
  if (v->uniform && v->is_auto) {
    cgl_text_put(w->out, "decltype(cgl_copy_of(");
    cgl_put_tokens(w, cgl_row_slice(v->value, 1, v->value.n), false);
    cgl_text_put(w->out, "))");
  } else {
    cgl_text_put(w->out, v->constant ? "constexpr"
                         : v->shared ? "alignas(64)"
                                     : "");
    cgl_put_type(w, v);
  }
  cgl_put_name(w, " ", v);
  if (v->constant || v->shared)
    put_constant(w, v->dims);
  if (v->constant)
    put_constant(w, v->value);
  cgl_text_put(w->out, ";");
  cgl_put_own(w);
}


/* The type of a thread's variable, and room for those that are kept. */
static void put_own(writer *w, const variable *v) {
  if (v->is_auto && !v->again && v->kept && !v->reference)
    put_deduced(w, v);
  else if (!v->is_auto) {
    cgl_text_put(w->out, "typedef");
    cgl_put_type(w, v);
    cgl_put_name(w, " cgl_t_", v);
    put_constant(w, v->dims);
    cgl_text_put(w->out, ";");
    cgl_put_own(w);
  }
  if (!v->kept || v->again)
    return;
  cgl_put_name(w, "static_assert(__is_trivially_copyable(cgl_t_", v);
  cgl_text_put(w->out, "), \"\");\n");
  if (v->run <= 0) {
    cgl_region_put_room(w, v);
    cgl_text_put(w->out, "[1024];\n");
  }
  if (v->parameter) {
    cgl_put_name(w,
                 "for (unsigned cgl_t = 0; cgl_t < cgl_n; cgl_t++) "
                 "cgl_at(cgl_v_",
                 v);
    cgl_put_name(w, "[cgl_t]) = ", v);
    cgl_text_put(w->out, ";\n");
  }
}


bool cgl_loops_is_int(const variable *v) {
  return v->type.n == 1 && cgl_token_is(v->type.at, "int");
}


/* A type that a value decides comes behind those of what the value names. */
static void put_variable(writer *w, variable *v) {
  if (v->written)
    return;
  v->written = true;
  for (size_t i = 0; v->is_auto && !v->alias && i < v->value.n; i++) {
    variable *other = cgl_tree_find(w->t, &v->value.at[i]);
    if (other)
      put_variable(w, other);
  }
  if (cgl_tree_is_argument(v))
    return; /* a template's, see put_templates */
  if (v->index.n) {
    cgl_put_name(w, "const long cgl_base_", v);
    cgl_text_put(w->out, cgl_loops_is_int(v) ? " = (int)(unsigned)("
                                             : " = (unsigned)(");
    cgl_put_tokens(w, v->index, false);
    cgl_text_put(w->out, ");");
    cgl_put_own(w);
  }
  if (v->alias)
    put_alias(w, v);
  else if (v->constant || v->shared || (v->uniform && !v->parameter))
    put_common(w, v);
  else if (cgl_region_is_local(v) || v->again)
    put_own(w, v);
}


/* Are the sums whose warps and lanes are known multiples of 32 in all rows?
   They are linear in y and in z: the first two of each tell. */
static void put_aligned(writer *w) {
  const variable *any = w->t->variables;
  while (any && !any->warp.n)
    any = any->next;
  if (!any) {
    cgl_text_put(w->out, "constexpr bool cgl_aligned = true;\n");
    return;
  }
  cgl_text_put(w->out,
               "unsigned cgl_rests = 0; for (unsigned cgl_y = 0; cgl_y < 2 && "
               "cgl_y < cgl_by; cgl_y++) for (unsigned cgl_z = 0; cgl_z < 2 && "
               "cgl_z < cgl_bz; cgl_z++) { const uint3 threadIdx = {0, cgl_y, "
               "cgl_z}; cgl_rests |= 0u");
  for (const variable *v = any; v; v = v->next)
    if (v->warp.n) {
      cgl_text_put(w->out, " | (unsigned)(");
      cgl_put_tokens(w, v->warp, false);
      cgl_text_put(w->out, ")");
    }
  cgl_text_put(w->out, "; } const bool cgl_aligned = cgl_rests % 32 == 0;\n");
}


static void put_names(writer *w) {
  for (variable *v = w->t->variables; v; v = v->next)
    v->written = false;
  for (variable *v = w->t->variables; v; v = v->next)
    if (!v->is_auto || v->alias || v->constant)
      put_variable(w, v);
  for (variable *v = w->t->variables; v; v = v->next)
    put_variable(w, v);
  put_aligned(w);
  /* A worker's stack has 8 MiB; the room for a struct is up to twice its size.
     A kernel with too much of that, or of shared memory, is left to fibers; too
     much shared memory in one function is told as an error then. */
  cgl_text_put(w->out, "static_assert(0");
  for (const variable *v = w->t->variables; v; v = v->next)
    if (v->kept && cgl_region_is_local(v))
      cgl_put_name(w, " + sizeof(cgl_t_", v), cgl_text_put(w->out, ")");
  cgl_text_put(w->out, " <= 2048, \"\");\nstatic_assert(0");
  for (const variable *v = w->t->variables; v; v = v->next)
    if (v->shared && !v->dynamic && !v->alias && !v->parameter)
      cgl_put_name(w, " + sizeof(", v), cgl_text_put(w->out, ")");
  cgl_text_print(w->out, " <= %d, \"\");\n", CGL_STATIC_SHARED);
  if (w->alive)
    cgl_text_put(w->out, "alignas(64) int cgl_alive[1024]; for (unsigned cgl_t "
                         "= 0; cgl_t < cgl_n; cgl_t++) cgl_alive[cgl_t] = "
                         "-1;\n");
}


static void put_scope(writer *w, bool open) {
  const char *at = w->t->kernel->scope;
  for (const char *end; (end = strstr(at, "::")); at = end + 2)
    if (open)
      cgl_text_print(w->out, "namespace %.*s { ", (int)(end - at), at);
    else
      cgl_text_put(w->out, "}");
}


/* The instance's arguments, in a namespace of its own. */
static void put_templates(writer *w) {
  cgl_text_print(w->out, "namespace cgl_of_%zu { ", w->style->id);
  for (const variable *v = w->t->variables; v; v = v->next) {
    bool value = v->parameter && v->value.n && !v->alias;
    if (!v->parameter || !v->value.n)
      continue;
    cgl_text_put(w->out, value ? "static constexpr" : "using");
    if (value)
      cgl_put_tokens(w, v->type, false);
    cgl_put_name(w, " ", v);
    cgl_text_put(w->out, value ? " = (" : " ");
    cgl_put_tokens(w, v->value, false);
    cgl_text_put(w->out, value ? ");" : ";");
    cgl_put_own(w);
  }
}


/* The kernel's parameters: constants, where no thread may change them. */
static void put_parameters(writer *w) {
  const cgl_declared *k = w->t->kernel;
  const row all = cgl_tree_copy(w->t, k->parameters, k->nparameters);
  size_t from = 0, first = 0;
  for (size_t i = 0; i < all.n; i = cgl_tokens_past(all.at, all.n, i)) {
    const bool last = i + 1 == all.n || cgl_token_is(&all.at[i + 1], ",");
    const variable *v = last ? cgl_tree_find(w->t, &all.at[i]) : NULL;
    if (cgl_token_is(&all.at[i], ","))
      first = i + 1;
    if (!v || !v->guarded || !v->uniform || v->assigned || v->addressed)
      continue;
    cgl_put_tokens(w, cgl_row_slice(all, from, first), false);
    cgl_put_type(w, v);
    cgl_text_put(w->out, " const");
    from = i;
  }
  cgl_put_tokens(w, cgl_row_slice(all, from, all.n), false);
}


void cgl_loops_put_function(writer *w) {
  const cgl_declared *k = w->t->kernel;
  cgl_text_put(w->out, "\n# 1 \"cgraphlua\" 3\n");
  w->line = -1;
  put_scope(w, true);
  if (k->is_template)
    put_templates(w);
  if (w->t->strips)
    cgl_strip_put_head(w);
  else
    cgl_text_print(w->out,
                   "template <bool cgl_wide, unsigned cgl_size_x, unsigned "
                   "cgl_size_y, unsigned cgl_size_z> static CGL_LOOPS void "
                   "cgl_loops_of_%zu(const uint3 gridDim, const "
                   "uint3 cgl_block, const uint3 blockIdx",
                   w->style->id);
  if (k->nparameters)
    cgl_text_put(w->out, ",");
  put_parameters(w);
  if (w->t->strips)
    cgl_text_put(w->out, ") {\nCGL_STRIP_BEGIN\n");
  else
    cgl_text_put(
        w->out,
        ") {\nconst unsigned cgl_bx = cgl_size_x ? cgl_size_x : cgl_block.x, "
        "cgl_by = cgl_size_y ? cgl_size_y : cgl_block.y, "
        "cgl_bz = cgl_size_z ? cgl_size_z : cgl_block.z, "
        "cgl_n = cgl_bx * cgl_by * cgl_bz;\n"
        "const uint3 blockDim = {cgl_bx, cgl_by, cgl_bz};\n"
        "CGL_ASSUME(cgl_bx >= 1 && cgl_bx <= 1024 && cgl_by >= 1 && cgl_by <= "
        "1024 && cgl_bz >= 1 && cgl_n <= 1024)\n");
  cgl_text_print(w->out, "constexpr const char *cgl_kernel_name = \"%.*s\";\n",
                 (int)k->name.length, k->name.text);
  w->line = -1;
  put_names(w);
  if (w->t->strips)
    cgl_strip_put_body(w);
  else
    cgl_loops_put_list(w, w->t->body);
  cgl_text_put(w->out, "}");
  if (w->t->strips)
    cgl_strip_put_class(w);
  else
    cgl_shape_put(w);
  if (k->is_template)
    cgl_text_print(w->out, "} using cgl_of_%zu::cgl_loops_%zu;", w->style->id,
                   w->style->id);
  put_scope(w, false);
  cgl_text_put(w->out, "\n# 1 \"cgraphlua\"\n");
}
