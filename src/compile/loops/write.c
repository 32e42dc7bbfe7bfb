/* A kernel's statements as loops.
   What stands between two barriers is a region: statements that are put off
   until something ends it, and then written as one loop over the threads.
   The kernel is written twice: the first time counts the regions that use a
   variable, and nothing of its text is kept. */
#include <stdio.h>
#include <string.h>

#include "compile/loops/loops_private.h"

#define MAX_PENDING 512

typedef struct writer {
  tree *t;
  const cgl_loops_style *style;
  cgl_text *out;
  int line;             /* of the script, at the end of the text; -1 unknown */
  bool counting;        /* the first time */
  bool global;          /* a function may ask for the thread's index */
  bool alive;           /* threads leave before the last region */
  int region, returned; /* counted; the first region that returns */
  int run, runs;        /* of warps; 0: none */
  int labels, masks;
  bool fast;        /* the run's warps are whole, and their threads in a row */
  bool more;        /* an operation follows what is written */
  const char *mask; /* array of the lanes that take part, or NULL */
  bool strict;      /* in a mask: all lanes of the warp must take part */
  statement *pending[MAX_PENDING];
  size_t npending;
} writer;

/* A strided loop, as it runs for a row of threads. */
typedef struct stride {
  row type, name, base, bound, step, body;
  bool lane; /* walks by lanes, not by threads */
} stride;


static row slice(row r, size_t from, size_t to) {
  return (row){r.at + from, to > from ? to - from : 0};
}


/* ---- tokens ---- */

static void put_break(writer *w, int line) {
  if (w->line >= 0 && line == w->line + 1)
    cgl_text_put(w->out, "\n");
  else if (line != w->line) {
    /* 3: a header of the system's, which gives no warnings */
    cgl_text_print(w->out, "\n# %d \"", line);
    cgl_text_quote(w->out, w->style->file);
    cgl_text_put(w->out, "\" 3\n");
  }
  w->line = line;
}


static const variable *shared_target(writer *w, row r, size_t i) {
  if (i + 3 >= r.n || !cgl_token_is(&r.at[i], "atomicAdd") ||
      !cgl_token_is(&r.at[i + 1], "(") || !cgl_token_is(&r.at[i + 2], "&"))
    return NULL;
  const variable *v = cgl_tree_find(w->t, &r.at[i + 3]);
  return v && v->shared && !v->dynamic ? v : NULL;
}


/* Does a space stand before token i, or must one?  Assertions show the text. */
static bool is_apart(row r, size_t i) {
  const cgl_token *x = &r.at[i];
  if (!i || x->space || x->first)
    return true;
  bool word = x->kind != CGL_TOKEN_PUNCT,
       after = r.at[i - 1].kind != CGL_TOKEN_PUNCT;
  return word == after && (word || !(strchr("()[];,", *x->text) ||
                                     strchr("()[]", *r.at[i - 1].text)));
}


/* A return leaves the thread's part of a region. */
static void put_tokens(writer *w, row r, bool in_region) {
  for (size_t i = 0; i < r.n; i++) {
    const cgl_token *x = &r.at[i];
    put_break(w, x->line);
    if (in_region && cgl_token_is(x, "return")) {
      if (i + 1 >= r.n || !cgl_token_is(&r.at[i + 1], ";"))
        cgl_tree_refuse(w->t, x, "a return with a value");
      if (w->alive)
        cgl_text_print(w->out, " { cgl_alive[cgl_t] = 0; goto cgl_next_%d; }",
                       w->labels);
      else
        cgl_text_print(w->out, " goto cgl_next_%d;", w->labels);
      i++;
      continue;
    }
    if (is_apart(r, i))
      cgl_text_put(w->out, " ");
    if (shared_target(w, r, i)) {
      cgl_text_put(w->out, "cgl_plain_add");
      continue;
    }
    cgl_text_add(w->out, x->text, x->length);
  }
}


/* The next line of the text is not the script's. */
static void put_own(writer *w) {
  cgl_text_put(w->out, "\n");
  w->line = -1;
}


static bool has_word(row r, const char *word) {
  for (size_t i = 0; i < r.n; i++)
    if (cgl_token_is(&r.at[i], word))
      return true;
  return false;
}


static void put_name(writer *w, const char *prefix, const variable *v) {
  cgl_text_print(w->out, "%s%.*s", prefix, (int)v->name.length, v->name.text);
}


/* The type without const, unless it is that of a pointee. */
static void put_type(writer *w, const variable *v) {
  size_t last = 0;
  for (size_t i = 0; i < v->type.n; i++)
    if (cgl_token_is(&v->type.at[i], "*"))
      last = i + 1;
  for (size_t i = 0; i < v->type.n; i++)
    if (i < last || !cgl_token_is_any(&v->type.at[i], "const", "&", "&&"))
      cgl_text_print(w->out, " %.*s", (int)v->type.at[i].length,
                     v->type.at[i].text);
}


/* Of the name that the source gives, without what made it unique. */
static int own_length(const variable *v) {
  int n = (int)v->name.length;
  while (n > 2 && memcmp(v->name.text + n - 2, "__", 2))
    n--;
  return n > 2 ? n - 2 : (int)v->name.length;
}


/* ---- what a region uses ---- */

static bool is_local(const variable *v) {
  return !v->uniform && !v->shared && !v->constant && !v->again;
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
static void mark_row(writer *w, row r, bool *used, int depth) {
  for (size_t i = 0; i < r.n; i++) {
    if (!cgl_tree_is_name(r, i))
      continue;
    size_t k = 0;
    for (variable *v = w->t->variables; v; v = v->next, k++)
      if (cgl_token_same(&v->name, &r.at[i]) && !used[k]) {
        used[k] = true;
        if (v->again && depth < 32)
          mark_row(w, v->value, used, depth + 1);
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

static const char *element(const variable *v) {
  return v->run > 0 ? "cgl_l" : "cgl_t";
}


static bool by_address(const variable *v) {
  return v->addressed || v->dims.n;
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
    if (v->again) {
      put_break(w, v->name.line);
      put_type(w, v);
      put_name(w, " ", v);
      put_tokens(w, v->value, false);
      cgl_text_put(w->out, ";");
    } else if (is_local(v) && !own && v->kept) {
      cgl_text_put(w->out, by_address(v) ? " cgl_t_" : " cgl_t_");
      put_name(w, "", v);
      put_name(w, by_address(v) ? " &" : " ", v);
      put_name(w, " = cgl_at(cgl_v_", v);
      cgl_text_print(w->out, "[%s]);", element(v));
    }
  }
}


static void put_declaration(writer *w, const statement *s) {
  const variable *v = s->variable;
  put_break(w, v->name.line);
  if (v->kept && by_address(v)) {
    if (v->dims.n && s->value.n) {
      put_name(w, " cgl_t_", v);
      put_name(w, " cgl_i_", v);
      put_tokens(w, s->value, false);
      put_name(w, "; __builtin_memcpy((void *)&cgl_v_", v);
      cgl_text_print(w->out, "[%s]", element(v));
      put_name(w, ", &cgl_i_", v);
      put_name(w, ", sizeof cgl_i_", v);
      cgl_text_put(w->out, ");");
    }
    put_name(w, " cgl_t_", v);
    put_name(w, " &", v);
    put_name(w, " = cgl_at(cgl_v_", v);
    cgl_text_print(w->out, "[%s]);", element(v));
    if (!s->value.n) {
      put_name(w, " cgl_begin(", v);
      cgl_text_put(w->out, ");");
    } else if (!v->dims.n) {
      if (v->constructed)
        cgl_tree_refuse(w->t, &v->name,
                        "'%.*s', constructed and known by its "
                        "address across a barrier",
                        own_length(v), v->name.text);
      put_name(w, " ", v);
      put_tokens(w, s->value, false);
      cgl_text_put(w->out, ";");
    }
    return;
  }
  for (size_t i = 0; i < v->type.n; i++)
    cgl_text_print(w->out, " %.*s", (int)v->type.at[i].length,
                   v->type.at[i].text);
  put_name(w, " ", v);
  put_tokens(w, v->dims, false);
  put_tokens(w, s->value, false);
  cgl_text_put(w->out, ";");
}


static void put_epilogue(writer *w, const bool *used, statement *const *list,
                         size_t n) {
  size_t k = 0;
  for (variable *v = w->t->variables; v; v = v->next, k++) {
    bool changed = false;
    if (!used[k] || !is_local(v) || !v->kept || by_address(v))
      continue;
    for (size_t i = 0; i < n; i++)
      changed |= list[i]->variable == v ||
                 cgl_values_is_assigned(w->t,
                                        list[i]->kind == STATEMENT_DECLARATION
                                            ? list[i]->value
                                            : list[i]->all,
                                        v);
    if (!changed)
      continue;
    put_name(w, " cgl_at(cgl_v_", v);
    cgl_text_print(w->out, "[%s]) =", element(v));
    put_name(w, " ", v);
    cgl_text_put(w->out, ";");
  }
}


/* The head of a loop over the threads, or over the lanes of the run's warp. */
static void put_head(writer *w, bool ordered, const char *most) {
  const char *pragma = ordered || w->style->ordered ? "" : "CGL_UNORDERED ";
  put_own(w);
  if (!w->run)
    cgl_text_print(
        w->out,
        "for (unsigned cgl_z = 0; cgl_z < cgl_bz; cgl_z++) for (unsigned "
        "cgl_y = 0; cgl_y < cgl_by; cgl_y++) %sfor (unsigned cgl_x = 0; cgl_x "
        "< %s; cgl_x++) { const unsigned cgl_t = (cgl_z * cgl_by + cgl_y) * "
        "cgl_bx + cgl_x; const uint3 threadIdx = {cgl_x, cgl_y, cgl_z};",
        pragma, most ? most : "cgl_bx");
  else
    cgl_text_print(
        w->out,
        "%sfor (unsigned cgl_l = 0; cgl_l < %s; cgl_l++) { const unsigned "
        "cgl_t = cgl_w + cgl_l; const uint3 threadIdx = %s;",
        pragma,
        most      ? most
        : w->fast ? "32u"
                  : "cgl_m",
        w->fast ? "{cgl_wx + cgl_l, cgl_wy, cgl_wz}"
                : "cgl_thread_at(cgl_t, cgl_bx, cgl_by)");
  if (w->global)
    cgl_text_put(w->out, " ::threadIdx = threadIdx;");
  if (w->mask)
    cgl_text_print(w->out, " if (%s[cgl_l])", w->mask);
  else if (w->alive)
    cgl_text_put(w->out, " if (cgl_alive[cgl_t])");
  cgl_text_put(w->out, " {");
}


static bool has_plain_atomics(writer *w, row r) {
  for (size_t i = 0; i < r.n; i++)
    if (shared_target(w, r, i))
      return true;
  return false;
}


/* if (x < bound) ...; or if (x == 0) ...; where x is threadIdx.x or a variable
   that is computed as it: the guard is the loop's bound.  Writes the bound and
   returns the guarded statement; 0 tokens when the region is no such. */
static row put_guard(writer *w, statement *const *list, size_t n) {
  static const row none;
  const variable *v = NULL;
  row r = list[0]->all;
  if (n != 1 || w->run || list[0]->kind != STATEMENT_PLAIN || r.n < 7 ||
      !cgl_token_is(r.at, "if") || !cgl_token_is(&r.at[1], "(") ||
      has_word(r, "else"))
    return none;
  size_t close = cgl_tokens_close(r.at, r.n, 1), op = 3;
  if (cgl_token_is_axis(r.at, r.n, 2, "threadIdx"))
    op = 5;
  else {
    v = cgl_tree_find(w->t, &r.at[2]);
    row value = v ? v->value : none;
    if (!v || !v->again || v->is_auto || value.n != 4 ||
        !cgl_token_is_axis(value.at, value.n, 1, "threadIdx"))
      return none;
    for (size_t i = 0; i < v->type.n; i++)
      if (!cgl_token_is_any(&v->type.at[i], "int", "unsigned", "const",
                            "uint32_t", "int32_t", "uint"))
        return none;
  }
  if (op + 2 > close - 1)
    return none;
  row bound = slice(r, op + 1, close - 1);
  bool first = cgl_token_is(&r.at[op], "==") && bound.n == 1 &&
               cgl_token_is_any(bound.at, "0", "0u");
  if (!first && (!cgl_token_is(&r.at[op], "<") ||
                 !cgl_values_is_uniform(w->t, bound, false)))
    return none;
  for (size_t i = 0; i < bound.n; i++)
    if (cgl_token_is_any(&bound.at[i], "&&", "||", "?", ",", "<", ">",
                         "==", "!=", "&", "|", "^", "<=", ">="))
      return none;
  put_own(w);
  if (first)
    cgl_text_put(w->out, "{ const unsigned cgl_k = 1;");
  else {
    cgl_text_put(w->out, "{ const unsigned cgl_k = cgl_limit(");
    put_name(w, v ? "cgl_t_" : "", v ? v : &(variable){.name.text = ""});
    cgl_text_put(w->out, v ? "()," : "0u,");
    put_tokens(w, bound, false);
    cgl_text_put(w->out, ", cgl_bx);");
  }
  return slice(r, close, r.n);
}


/* One loop for `n` statements, or for the body of a stride. */
static void put_region(writer *w, statement *const *list, size_t n,
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
    mark_row(w, r, used, 0);
    ordered |= has_plain_atomics(w, r);
    returns |= list[i]->kind == STATEMENT_PLAIN && has_word(r, "return");
    size_t k = 0;
    for (variable *v = w->t->variables; v; v = v->next, k++)
      used[k] |= list[i]->variable == v;
  }
  if (returns && !w->returned)
    w->returned = w->region;
  size_t k = 0;
  if (w->counting)
    for (variable *v = w->t->variables; v; v = v->next, k++)
      if (used[k] && is_local(v))
        note_use(w, v);
  row guarded = walk ? (row){NULL, 0} : put_guard(w, list, n);
  put_head(w, ordered, walk || guarded.n ? "cgl_k" : NULL);
  put_prologue(w, used, list, n);
  cgl_text_put(w->out, " {");
  if (walk) {
    put_tokens(w, walk->type, false);
    put_tokens(w, walk->name, false);
    cgl_text_put(w->out, walk->lane || w->run ? " = cgl_base + cgl_l;"
                                              : " = cgl_base + cgl_x;");
    put_tokens(w, walk->body, true);
  } else if (guarded.n)
    put_tokens(w, guarded, true);
  else
    for (size_t i = 0; i < n; i++)
      if (list[i]->kind == STATEMENT_DECLARATION)
        put_declaration(w, list[i]);
      else
        put_tokens(w, list[i]->all, true);
  put_own(w);
  put_epilogue(w, used, list, n);
  cgl_text_put(w->out, " } }");
  if (returns)
    cgl_text_print(w->out, " cgl_next_%d:;", w->labels);
  cgl_text_put(w->out, guarded.n ? " } }" : " }");
  put_own(w);
  if (returns && w->alive && !w->run)
    cgl_text_put(w->out, "if (!cgl_some(cgl_alive, cgl_n)) return;\n");
}


static void flush(writer *w) {
  size_t n = w->npending;
  w->npending = 0;
  if (n && !w->t->why)
    put_region(w, w->pending, n, NULL);
}


static void put_off(writer *w, statement *s) {
  if (w->npending == MAX_PENDING)
    cgl_tree_refuse(w->t, &w->t->kernel->name, "too many statements");
  else
    w->pending[w->npending++] = s;
}


static void put_scalar(writer *w, row r) {
  flush(w);
  put_tokens(w, r, false);
  put_own(w);
}


/* A statement that is not the script's. */
static statement *made_statement(writer *w, const cgl_token *where,
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


/* ---- strided loops ---- */

/* `threadIdx.x`, or what is the lane of a warp whose threads are in a row. */
static size_t own_index(row r, size_t i, bool *lane) {
  if (!cgl_token_is_axis(r.at, r.n, i, "threadIdx"))
    return 0;
  *lane = i + 4 < r.n &&
          ((cgl_token_is(&r.at[i + 3], "%") &&
            cgl_token_is_any(&r.at[i + 4], "32", "32u", "warpSize")) ||
           (cgl_token_is(&r.at[i + 3], "&") &&
            cgl_token_is_any(&r.at[i + 4], "31", "31u", "0x1f")));
  return *lane ? 5 : 3;
}


/* Is the row a sum with the thread's index in it once?  *at and *n are where.
   Everything else must be the same for all threads. */
static bool is_index_sum(row r, size_t *at, size_t *n, bool *lane,
                         const cgl_token *base) {
  while (r.n > 2 && cgl_token_is(r.at, "(") &&
         cgl_tokens_close(r.at, r.n, 0) == r.n)
    r = slice(r, 1, r.n - 1);
  size_t found = 0;
  for (size_t i = 0; i < r.n;) {
    size_t end = i;
    while (end < r.n && !cgl_token_is_any(&r.at[end], "+", "-"))
      end = cgl_token_is_any(&r.at[end], "(", "[")
                ? cgl_tokens_close(r.at, r.n, end)
                : end + 1;
    row term = slice(r, i, end);
    for (size_t k = 0; k < term.n; k++)
      if (cgl_token_is_any(&term.at[k], "(", "["))
        k = cgl_tokens_close(term.at, term.n, k) - 1;
      else if (cgl_token_is_any(&term.at[k], "<<", ">>", "|", "^", "?", "<",
                                ">", "==", "!=", "<=", ">=", "&&", "||"))
        return false;
    if (has_word(term, "threadIdx")) {
      size_t k = own_index(term, 0, lane);
      if (found++ || (i && !cgl_token_is(&r.at[i - 1], "+")))
        return false;
      if (k && k == term.n) {
        *at = (size_t)(term.at - base);
        *n = k;
      } else if (!cgl_token_is(term.at, "(") ||
                 cgl_tokens_close(term.at, term.n, 0) != term.n ||
                 !is_index_sum(term, at, n, lane, base))
        return false;
    } else
      for (size_t k = 0; k < term.n; k++)
        if (cgl_token_is_any(&term.at[k], "&") && found)
          return false;
    i = end + 1;
  }
  return found == 1;
}


/* With what is computed again written out. */
static row expand(writer *w, row r, int depth) {
  row made = {NULL, 0};
  cgl_tokens all = {0};
  for (size_t i = 0; i < r.n; i++) {
    const variable *v =
        cgl_tree_is_name(r, i) ? cgl_tree_find(w->t, &r.at[i]) : NULL;
    if (!v || !v->again || depth > 8 || v->value.n < 2) {
      cgl_tokens_add(&all, r.at[i]);
      continue;
    }
    row value = expand(w, slice(v->value, 1, v->value.n), depth + 1);
    cgl_token open = cgl_tree_token(w->t, &r.at[i], "("),
              close = cgl_tree_token(w->t, &r.at[i], ")");
    open.kind = close.kind = CGL_TOKEN_PUNCT;
    cgl_tokens_add(&all, open);
    for (size_t k = 0; k < value.n; k++)
      cgl_tokens_add(&all, value.at[k]);
    cgl_tokens_add(&all, close);
  }
  w->t->failed |= all.failed;
  if (all.count)
    made = cgl_tree_copy(w->t, all.at, all.count);
  cgl_tokens_free(&all);
  return made;
}


/* for (T c = sum with the thread's index; c < uniform; c += uniform): the
   threads of a row can take one step of it together. */
static bool try_stride(writer *w, const statement *s, stride *out) {
  row r = s->all;
  if (r.n < 12 || !cgl_token_is(r.at, "for"))
    return false;
  size_t close = cgl_tokens_close(r.at, r.n, 1), first = 2, second;
  while (first < close && !cgl_token_is(&r.at[first], ";"))
    first++;
  for (second = first + 1; second < close && !cgl_token_is(&r.at[second], ";");)
    second++;
  size_t equal = 2;
  while (equal < first && !cgl_token_is(&r.at[equal], "="))
    equal++;
  if (second + 3 >= close || equal < 4 || equal + 1 >= first)
    return false;
  *out = (stride){.type = slice(r, 2, equal - 1),
                  .name = slice(r, equal - 1, equal),
                  .bound = slice(r, first + 3, second),
                  .step = slice(r, second + 3, close - 1),
                  .body = slice(r, close, r.n)};
  for (size_t i = 0; i < out->type.n; i++)
    if (!cgl_token_is_any(&out->type.at[i], "int", "unsigned", "size_t", "long",
                          "uint32_t", "int32_t", "uint"))
      return false;
  const cgl_token *c = out->name.at;
  if (!cgl_token_same(&r.at[first + 1], c) ||
      !cgl_token_is(&r.at[first + 2], "<") ||
      !cgl_token_same(&r.at[second + 1], c) ||
      !cgl_token_is(&r.at[second + 2], "+=") ||
      !cgl_values_is_uniform(w->t, out->bound, false) ||
      !cgl_values_is_uniform(w->t, out->step, false) ||
      cgl_values_is_assigned(w->t, out->body, &(variable){.name = *c}) ||
      has_word(out->body, "return") || has_word(out->body, "break") ||
      has_word(out->body, "continue") || cgl_tree_find(w->t, c))
    return false;
  for (size_t i = 0; i < out->bound.n; i++)
    if (cgl_token_is_any(&out->bound.at[i], "&&", "||", "?", ",", "<", ">", "=",
                         "==", "!=", "&", "|", "^"))
      return false;
  for (size_t i = 1; i < out->body.n; i++)
    if (cgl_token_is(&out->body.at[i - 1], "&") &&
        cgl_token_same(&out->body.at[i], c))
      return false;
  row start = expand(w, slice(r, equal + 1, first), 0);
  size_t at = 0, n = 0;
  if (!start.at || !is_index_sum(start, &at, &n, &out->lane, start.at))
    return false;
  start.at[at] = cgl_tree_token(w->t, &start.at[at], "0u");
  start.at[at].kind = CGL_TOKEN_NUMBER;
  memmove(&start.at[at + 1], &start.at[at + n],
          (start.n - at - n) * sizeof *start.at);
  start.n -= n - 1;
  out->base = start;
  if (!cgl_values_is_uniform(w->t, start, false))
    return false;
  return w->run ? w->fast : !out->lane;
}


static void put_stride(writer *w, statement *s, const stride *walk) {
  flush(w);
  cgl_text_put(w->out, "for (");
  put_tokens(w, walk->type, false);
  cgl_text_put(w->out, " cgl_base =");
  put_tokens(w, walk->base, false);
  if (w->run && !walk->lane)
    cgl_text_put(w->out, " + cgl_wx");
  cgl_text_put(w->out, "; cgl_base <");
  put_tokens(w, walk->bound, false);
  cgl_text_put(w->out, "; cgl_base +=");
  put_tokens(w, walk->step, false);
  cgl_text_put(w->out, ") { const unsigned cgl_k = cgl_left(cgl_base,");
  put_tokens(w, walk->bound, false);
  cgl_text_put(w->out, w->run ? ", 32u);" : ", cgl_bx);");
  put_region(w, &s, 1, walk);
  cgl_text_put(w->out, "}\n");
}


/* ---- warp operations ---- */

static const char *shuffle_of(const cgl_token *op) {
  return cgl_token_is(op, "__shfl_up_sync")     ? "cgl_of_up"
         : cgl_token_is(op, "__shfl_down_sync") ? "cgl_of_down"
         : cgl_token_is(op, "__shfl_xor_sync")  ? "cgl_of_xor"
                                                : "cgl_of_index";
}


/* typedef ... cgl_type_<id>: of the value that the lanes put in. */
static void put_value_type(writer *w, const statement *s) {
  bool used[1024] = {false};
  mark_row(w, s->all, used, 0);
  for (int side = 0; side < 2; side++) {
    size_t k = 0;
    if (side)
      cgl_text_print(w->out, ") { return%s", "");
    if (side) {
      put_tokens(w, s->all, false);
      cgl_text_print(w->out,
                     "; }; typedef decltype(cgl_f_%d(cgl_any_of<unsigned>(), "
                     "cgl_any_of<uint3>()",
                     s->id);
    } else
      cgl_text_print(w->out,
                     "auto cgl_f_%d = [&](const unsigned cgl_l, const uint3 "
                     "threadIdx",
                     s->id);
    for (variable *v = w->t->variables; v; v = v->next, k++) {
      if (!used[k] || !(is_local(v) || v->again))
        continue;
      put_name(w, side ? ", cgl_any_of<cgl_t_" : ", cgl_t_", v);
      if (side)
        cgl_text_put(w->out, ">()");
      else
        put_name(w, " &", v);
    }
  }
  cgl_text_print(w->out, ")) cgl_type_%d;", s->id);
  put_own(w);
}


static void put_warp(writer *w, statement *s) {
  char front[80];
  bool shuffle = !memcmp(s->op.text, "__shfl", 6);
  bool vote =
      cgl_token_is_any(&s->op, "__any_sync", "__all_sync", "__ballot_sync");
  flush(w);
  put_break(w, s->op.line);
  const char *alive =
      w->alive ? "cgl_bits(cgl_alive + cgl_w, cgl_m)" : "cgl_low_bits(cgl_m)";
  if (w->mask)
    cgl_text_print(w->out, "const unsigned cgl_b_%d = cgl_bits(%s, cgl_m);",
                   s->id, w->mask);
  else
    cgl_text_print(w->out, "const unsigned cgl_b_%d = %s;", s->id, alive);
  if (w->mask && w->strict)
    cgl_text_print(w->out, "cgl_meet(cgl_b_%d, %s, cgl_n);", s->id, alive);
  put_own(w);
  if (cgl_token_is(&s->op, "__syncwarp"))
    return;
  const variable *v = s->all.n == 1 ? cgl_tree_find(w->t, s->all.at) : NULL;
  bool kept = v && v->kept && !v->dims.n && w->fast && !w->alive && !w->mask;
  if (vote)
    cgl_text_print(w->out, "typedef int cgl_type_%d;\n", s->id);
  else if (kept && shuffle) {
    /* The array of the variable is what the lanes put in. */
    put_name(w, "typedef cgl_t_", v);
    cgl_text_print(w->out, " cgl_type_%d;", s->id);
    put_name(w, "const cgl_t_", v);
    cgl_text_print(w->out, " *const cgl_s_%d", s->id);
    put_name(w, " = &cgl_at(cgl_v_", v);
    cgl_text_put(w->out, v->run > 0 ? "[0]);\n" : "[cgl_w]);\n");
  } else
    put_value_type(w, s);
  if (!kept || !shuffle) {
    cgl_text_print(w->out, "alignas(64) cgl_type_%d cgl_s_%d[32]%s;\n", s->id,
                   s->id, w->fast && !w->alive && !w->mask ? "" : " = {}");
    snprintf(front, sizeof front, "cgl_s_%d[cgl_l] = %s(", s->id,
             cgl_token_is(&s->op, "__all_sync") ? "!"
             : vote                             ? "0 != "
                                                : "");
    put_off(w, made_statement(w, &s->op, front, s->all, ");"));
    flush(w);
  }
  if (vote) {
    cgl_text_print(w->out,
                   "const unsigned cgl_q_%d = cgl_bits(cgl_s_%d, 32)%s;", s->id,
                   s->id,
                   cgl_token_is(&s->op, "__any_sync")   ? " != 0"
                   : cgl_token_is(&s->op, "__all_sync") ? " == 0"
                                                        : "");
    put_own(w);
  } else if (!shuffle) {
    cgl_text_print(w->out,
                   "const auto cgl_q_%d = cgl_fold_%.3s(cgl_s_%d, cgl_b_%d);",
                   s->id, s->op.text + 9, s->id, s->id);
    put_own(w);
  } else if (cgl_values_is_uniform(w->t, s->cond, false) &&
             cgl_values_is_uniform(w->t, s->step, false)) {
    cgl_text_print(w->out,
                   "alignas(64) cgl_type_%d cgl_q_%d[32]; cgl_move<%s>("
                   "cgl_q_%d, cgl_s_%d, (int)(",
                   s->id, s->id, shuffle_of(&s->op), s->id, s->id);
    put_tokens(w, s->cond, false);
    cgl_text_put(w->out, ")");
    if (s->step.n)
      cgl_text_put(w->out, ",");
    put_tokens(w, s->step, false);
    cgl_text_put(w->out, ");");
    put_own(w);
  } else {
    cgl_text_print(w->out, "alignas(64) cgl_type_%d cgl_q_%d[32];\n", s->id,
                   s->id);
    row args = cgl_tree_copy(w->t, s->cond.at, s->cond.n);
    if (s->step.n) {
      args = cgl_tree_copy(w->t, s->cond.at, s->cond.n + 1);
      cgl_tokens all = {0};
      for (size_t i = 0; i < s->cond.n; i++)
        cgl_tokens_add(&all, s->cond.at[i]);
      cgl_tokens_add(&all, cgl_tree_token(w->t, &s->op, "), ("));
      for (size_t i = 0; i < s->step.n; i++)
        cgl_tokens_add(&all, s->step.at[i]);
      w->t->failed |= all.failed;
      args = cgl_tree_copy(w->t, all.at, all.failed ? 0 : all.count);
      cgl_tokens_free(&all);
    }
    snprintf(front, sizeof front,
             "cgl_q_%d[cgl_l] = cgl_s_%d[cgl_source<%s>(cgl_l, (int)(", s->id,
             s->id, shuffle_of(&s->op));
    put_off(w, made_statement(w, &s->op, front, args, "))];"));
    flush(w);
  }
}


/* ---- statements ---- */

static void put_list(writer *w, statement *list);


static void put_block(writer *w, statement *list) {
  cgl_text_put(w->out, " {");
  put_own(w);
  put_list(w, list);
  cgl_text_put(w->out, "}");
  put_own(w);
}


static const cgl_token *where_of(const writer *w, const statement *s) {
  return s->cond.n ? s->cond.at : s->all.n ? s->all.at : &w->t->kernel->name;
}


static void refuse_divergent(writer *w, const statement *s) {
  const cgl_token *at = where_of(w, s);
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


/* A new array of the lanes for which `cond` holds, of those that take part;
   returns its name. */
static const char *put_mask(writer *w, const statement *s, const char *name,
                            const char *test) {
  char front[80];
  snprintf(front, sizeof front, "%s[cgl_l] = %s(", name, test);
  put_off(w, made_statement(w, where_of(w, s), front, s->cond, ") ? -1 : 0;"));
  flush(w);
  return name;
}


static char *mask_name(writer *w) {
  char text[24];
  int n = snprintf(text, sizeof text, "cgl_m_%d", ++w->masks);
  char *name = cgl_arena_copy(w->t->arena, text, (size_t)n);
  w->t->failed |= !name;
  return name ? name : "";
}


/* Lanes of a warp for which a condition holds. */
static void put_masked_if(writer *w, statement *s) {
  const char *outer = w->mask;
  /* Lanes that do nothing more together have as good as left. */
  if (!outer)
    w->strict = w->more;
  for (statement *in = s->otherwise; in; in = in->next)
    if (in->sync || in->escapes)
      cgl_tree_refuse(
          w->t, where_of(w, s),
          "a warp operation in the else of a condition that depends "
          "on the thread");
  flush(w);
  char *name = mask_name(w), *other = s->otherwise ? mask_name(w) : NULL;
  cgl_text_print(w->out, "{ int %s[32] = {};", name);
  if (other)
    cgl_text_print(w->out, "int %s[32] = {};", other);
  put_own(w);
  put_mask(w, s, name, "");
  if (other) /* of those that took part, the rest */
    cgl_text_print(w->out,
                   "for (unsigned cgl_l = 0; cgl_l < cgl_m; cgl_l++) "
                   "%s[cgl_l] = %s%s%s%s ? -1 : 0;\n",
                   other, "!", name, "[cgl_l]", "");
  if (other && (outer || w->alive))
    cgl_text_print(w->out,
                   "for (unsigned cgl_l = 0; cgl_l < cgl_m; cgl_l++) "
                   "%s[cgl_l] &= %s[%s] ? -1 : 0;\n",
                   other, outer ? outer : "cgl_alive",
                   outer ? "cgl_l" : "cgl_w + cgl_l");
  cgl_text_print(w->out, "if (cgl_some(%s, cgl_m))", name);
  w->mask = name;
  put_block(w, s->body);
  if (other) {
    w->mask = other;
    put_block(w, s->otherwise);
  }
  w->mask = outer;
  cgl_text_put(w->out, "}\n");
}


static void put_masked_loop(writer *w, statement *s) {
  const char *outer = w->mask;
  if (!outer)
    w->strict = true;
  flush(w);
  char *name = mask_name(w);
  cgl_text_print(w->out,
                 "{ int %s[32] = {}; for (unsigned cgl_l = 0; cgl_l < cgl_m; "
                 "cgl_l++) %s[cgl_l] = ",
                 name, name);
  if (outer)
    cgl_text_print(w->out, "%s[cgl_l];", outer);
  else if (w->alive)
    cgl_text_put(w->out, "cgl_alive[cgl_w + cgl_l];");
  else
    cgl_text_put(w->out, "-1;");
  put_own(w);
  w->mask = name;
  put_list(w, s->init);
  bool late = s->kind == STATEMENT_DO;
  cgl_text_put(w->out, "for (;;) {\n");
  if (!late) {
    put_mask(w, s, name, "");
    cgl_text_print(w->out, "if (!cgl_some(%s, cgl_m)) break;\n", name);
  }
  put_list(w, s->body);
  if (s->step.n) {
    put_off(w, made_statement(w, s->step.at, "", s->step, ";"));
    flush(w);
  }
  if (late) {
    put_mask(w, s, name, "");
    cgl_text_print(w->out, "if (!cgl_some(%s, cgl_m)) break;\n", name);
  }
  cgl_text_put(w->out, "} }\n");
  w->mask = outer;
}


/* Is everything of the loop's header the same for all threads? */
static bool is_uniform_loop(writer *w, const statement *s) {
  row value, part;
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
      part = slice(s->step, from, i);
      from = i + 1;
      if (part.n && !cgl_values_assignment(w->t, part))
        return false;
    }
  (void)value;
  return true;
}


static void put_loop(writer *w, statement *s) {
  bool uniform = is_uniform_loop(w, s);
  if (!uniform && (!w->run || s->sync & SYNC_BLOCK)) {
    refuse_divergent(w, s);
    return;
  }
  for (statement *in = s->body; in && !uniform; in = in->next)
    if (in->escapes) {
      refuse_divergent(w, s);
      return;
    }
  bool more = w->more;
  w->more = true;
  if (!uniform)
    put_masked_loop(w, s);
  else {
    put_list(w, s->init);
    flush(w);
    if (s->kind == STATEMENT_DO)
      cgl_text_put(w->out, "do");
    else {
      cgl_text_put(w->out, s->kind == STATEMENT_FOR ? "for (;" : "while (");
      put_tokens(w, s->cond, false);
      if (s->kind == STATEMENT_FOR) {
        cgl_text_put(w->out, ";");
        put_tokens(w, s->step, false);
      }
      cgl_text_put(w->out, ")");
    }
    put_block(w, s->body);
    if (s->kind == STATEMENT_DO) {
      cgl_text_put(w->out, "while (");
      put_tokens(w, s->cond, false);
      cgl_text_put(w->out, ");\n");
    }
  }
  w->more = more;
}


/* Has the condition one value for the lanes of a whole warp: is the thread in
   it by threadIdx.x / 32, or by y and z? */
static bool is_warp_uniform(writer *w, row r) {
  cgl_tokens rest = {0};
  bool fits = w->fast && r.at;
  for (size_t i = 0; i < r.n && fits; i++) {
    if (!cgl_token_is(&r.at[i], "threadIdx")) {
      cgl_tokens_add(&rest, r.at[i]);
      continue;
    }
    bool x = cgl_token_is_axis(r.at, r.n, i, "threadIdx");
    fits = i + 2 < r.n;
    if (fits && x) {
      bool open = !i || cgl_token_is_any(&r.at[i - 1], "(", "<", ">",
                                         "<=", ">=", "==", "!=", "&&", "||");
      fits = i + 4 < r.n && open &&
             ((cgl_token_is(&r.at[i + 3], "/") &&
               cgl_token_is_any(&r.at[i + 4], "32", "32u", "warpSize")) ||
              (cgl_token_is(&r.at[i + 3], ">>") &&
               cgl_token_is_any(&r.at[i + 4], "5", "5u") &&
               (i + 5 == r.n ||
                !cgl_token_is_any(&r.at[i + 5], "+", "-", "*", "/", "%"))));
    }
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


static void put_if(writer *w, statement *s) {
  row cond = w->run ? expand(w, s->cond, 0) : s->cond;
  if (w->run && !(s->sync & SYNC_BLOCK) && !s->escapes &&
      is_warp_uniform(w, cond)) {
    flush(w);
    cgl_text_put(w->out, "{ const uint3 threadIdx = {cgl_wx, cgl_wy, cgl_wz}; "
                         "if (");
    put_tokens(w, cond, false);
    cgl_text_put(w->out, ")");
    put_block(w, s->body);
    if (s->otherwise) {
      cgl_text_put(w->out, "else");
      put_block(w, s->otherwise);
    }
    cgl_text_put(w->out, "}\n");
    return;
  }
  if (!cgl_values_is_uniform(w->t, s->cond, false)) {
    if (!w->run || s->sync & SYNC_BLOCK || s->escapes)
      refuse_divergent(w, s);
    else
      put_masked_if(w, s);
    return;
  }
  flush(w);
  cgl_text_put(w->out, "if (");
  put_tokens(w, s->cond, false);
  cgl_text_put(w->out, ")");
  put_block(w, s->body);
  if (s->otherwise) {
    cgl_text_put(w->out, "else");
    put_block(w, s->otherwise);
  }
}


/* A predicate's sum over all threads. */
static void put_barrier(writer *w, statement *s) {
  char front[80];
  flush(w);
  if (w->mask || w->run)
    cgl_tree_refuse(w->t, &s->op, "__syncthreads() among warps");
  if (!s->variable)
    return;
  int n = (int)s->variable->name.length;
  const char *name = s->variable->name.text;
  bool all = cgl_token_is(&s->op, "__syncthreads_and");
  cgl_text_print(w->out, "%.*s = 0;\n", n, name);
  snprintf(front, sizeof front, "%.*s += %s(", n, name, all ? "!" : "0 != ");
  put_off(w, made_statement(w, &s->op, front, s->all, ");"));
  flush(w);
  if (!cgl_token_is(&s->op, "__syncthreads_count"))
    cgl_text_print(w->out, "%.*s = %.*s %s 0;\n", n, name, n, name,
                   all ? "==" : "!=");
}


static bool declares(const statement *from, const statement *to,
                     const variable *v) {
  for (; from != to; from = from->next)
    if (from->variable == v)
      return true;
  return false;
}


/* The statement behind the run of warps that starts with s: what follows its
   last operation belongs to it up to a loop. */
static statement *find_run_end(writer *w, statement *s) {
  statement *end = s->next;
  bool simple = true; /* since the last one that synchronizes */
  for (statement *in = s; in; in = in->next) {
    if (in->sync & SYNC_BLOCK || in->escapes ||
        (in->kind == STATEMENT_DECLARATION && in->variable->shared))
      break;
    variable *v = in->kind == STATEMENT_PLAIN && !in->sync
                      ? cgl_values_assignment(w->t, in->all)
                      : NULL;
    if (v && !declares(s, in, v))
      break;
    stride walk;
    if (in->sync)
      end = in->next;
    else if (in->kind == STATEMENT_PLAIN && in->all.n &&
             (cgl_token_is_any(in->all.at, "for", "while", "do") ||
              try_stride(w, in, &walk)))
      simple = false;
    else if (simple)
      end = in->next;
    if (in->sync)
      simple = true;
  }
  return end;
}


static void put_run_body(writer *w, statement *s, statement *end) {
  statement *last = s;
  while (last->next != end)
    last = last->next;
  last->next = NULL;
  put_list(w, s);
  last->next = end;
}


/* Warp by warp, written for whole warps of threads in a row, and for all.
   What was put off comes with it. */
static void put_run(writer *w, statement *s, statement *end) {
  statement *before[MAX_PENDING];
  size_t n = w->npending;
  memcpy(before, w->pending, n * sizeof *before);
  w->npending = 0;
  w->run = ++w->runs;
  cgl_text_put(w->out,
               "for (unsigned cgl_w = 0; cgl_w < cgl_n; cgl_w += 32) {\n");
  for (variable *v = w->t->variables; v; v = v->next)
    if (v->kept && v->run == w->run && is_local(v)) {
      put_name(w, "alignas(64) cgl_slot<cgl_t_", v);
      put_name(w, ">::type cgl_v_", v);
      cgl_text_put(w->out, "[32];\n");
    }
  cgl_text_put(w->out,
               "if (cgl_by * cgl_bz == 1 ? cgl_w + 32 <= cgl_n : cgl_bx % 32 "
               "== 0) { constexpr unsigned cgl_m = 32; const unsigned cgl_wx = "
               "cgl_w % cgl_bx, cgl_wy = cgl_w / cgl_bx % cgl_by, cgl_wz = "
               "cgl_w / cgl_bx / cgl_by;\n");
  int region = w->region, runs = w->runs;
  w->fast = true;
  memcpy(w->pending, before, n * sizeof *before);
  w->npending = n;
  put_run_body(w, s, end);
  cgl_text_put(w->out,
               "} else { const unsigned cgl_m = cgl_n - cgl_w < 32 ? cgl_n - "
               "cgl_w : 32;\n");
  /* The second text has fewer regions, and the same uses. */
  int after = w->region;
  w->region = region;
  w->runs = runs;
  w->fast = false;
  bool counting = w->counting;
  w->counting = false;
  memcpy(w->pending, before, n * sizeof *before);
  w->npending = n;
  put_run_body(w, s, end);
  w->counting = counting;
  if (w->region < after)
    w->region = after;
  cgl_text_put(w->out, "} }\n");
  w->run = 0;
}


/* if (uniform) return; */
static bool is_common_return(writer *w, const statement *s) {
  row r = s->all;
  if (w->run || r.n < 5 || !cgl_token_is(r.at, "if"))
    return false;
  size_t close = cgl_tokens_close(r.at, r.n, 1);
  row rest = slice(r, close, r.n);
  if (rest.n == 4 && cgl_token_is(rest.at, "{"))
    rest = slice(rest, 1, 3);
  return rest.n == 2 && cgl_token_is(rest.at, "return") &&
         cgl_values_is_uniform(w->t, slice(r, 2, close - 1), false);
}


static void put_statement(writer *w, statement *s) {
  stride walk;
  switch (s->kind) {
  case STATEMENT_DECLARATION:
    if (s->variable->shared || s->variable->constant || s->variable->again)
      return;
    if (!s->variable->uniform)
      put_off(w, s);
    else if (s->value.n) {
      flush(w);
      put_break(w, s->variable->name.line);
      put_name(w, "", s->variable);
      put_tokens(w, s->value, false);
      cgl_text_put(w->out, ";");
      put_own(w);
    }
    return;
  case STATEMENT_PLAIN:
    if ((!s->sync && cgl_values_assignment(w->t, s->all)) ||
        is_common_return(w, s))
      put_scalar(w, s->all);
    else if (try_stride(w, s, &walk))
      put_stride(w, s, &walk);
    else
      put_off(w, s);
    return;
  case STATEMENT_IF:
    if (s->sync || s->escapes)
      put_if(w, s);
    else
      put_off(w, s);
    return;
  case STATEMENT_FOR:
  case STATEMENT_WHILE:
  case STATEMENT_DO:
    put_loop(w, s);
    return;
  case STATEMENT_BLOCK:
    put_list(w, s->body);
    return;
  case STATEMENT_JUMP:
    if (w->mask)
      refuse_divergent(w, s);
    put_scalar(w, s->all);
    return;
  case STATEMENT_BARRIER:
    put_barrier(w, s);
    return;
  case STATEMENT_WARP:
    put_warp(w, s);
    return;
  }
}


static void put_list(writer *w, statement *list) {
  bool more = w->more;
  for (statement *s = list; s && !w->t->why && !w->t->failed;) {
    bool starts = s->sync == SYNC_WARP && !w->run && !s->escapes;
    statement *end = starts ? find_run_end(w, s) : s->next;
    w->more = more;
    for (statement *later = end; later; later = later->next)
      w->more |= later->sync != 0;
    if (starts)
      put_run(w, s, end);
    else
      put_statement(w, s);
    s = end;
  }
  flush(w);
  w->more = more;
}


/* ---- the function ---- */

static void put_names(writer *w) {
  for (const variable *v = w->t->variables; v; v = v->next) {
    bool typed = is_local(v) || v->again;
    if (v->constant) {
      cgl_text_put(w->out, "constexpr");
      put_type(w, v);
      put_name(w, " ", v);
      put_tokens(w, v->value, false);
      cgl_text_put(w->out, ";");
      put_own(w);
    } else if (v->dynamic) {
      put_type(w, v);
      put_name(w, " *const ", v);
      cgl_text_put(w->out, " = (");
      put_type(w, v);
      cgl_text_put(w->out,
                   " *)__builtin_assume_aligned(cgl_dynamic_shared, 128);\n");
    } else if (v->shared) {
      cgl_text_put(w->out, "alignas(64)");
      put_type(w, v);
      put_name(w, " ", v);
      put_tokens(w, v->dims, false);
      cgl_text_put(w->out, ";");
      put_own(w);
    } else if (v->uniform && !v->parameter && v->is_auto) {
      cgl_text_put(w->out, "decltype(cgl_copy_of(");
      put_tokens(w, slice(v->value, 1, v->value.n), false);
      cgl_text_put(w->out, "))");
      put_name(w, " ", v);
      cgl_text_put(w->out, ";");
      put_own(w);
    } else if (v->uniform && !v->parameter) {
      put_type(w, v);
      put_name(w, " ", v);
      cgl_text_put(w->out, ";\n");
    } else if (typed && !v->is_auto && (v->kept || v->again)) {
      cgl_text_put(w->out, "typedef");
      put_type(w, v);
      put_name(w, " cgl_t_", v);
      put_tokens(w, v->dims, false);
      cgl_text_put(w->out, ";");
      put_own(w);
    }
    if (v->kept && is_local(v)) {
      put_name(w, "static_assert(__is_trivially_copyable(cgl_t_", v);
      cgl_text_put(w->out, "), \"\");\n");
    }
    if (v->kept && is_local(v) && v->run <= 0) {
      put_name(w, "alignas(64) cgl_slot<cgl_t_", v);
      put_name(w, ">::type cgl_v_", v);
      cgl_text_put(w->out, "[1024];\n");
    }
    if (v->kept && v->parameter) {
      put_name(w,
               "for (unsigned cgl_t = 0; cgl_t < cgl_n; cgl_t++) "
               "cgl_at(cgl_v_",
               v);
      put_name(w, "[cgl_t]) = ", v);
      cgl_text_put(w->out, ";\n");
    }
  }
  /* A worker's stack has 8 MiB. */
  cgl_text_put(w->out, "static_assert(0");
  for (const variable *v = w->t->variables; v; v = v->next)
    if (v->kept && is_local(v))
      put_name(w, " + sizeof(cgl_t_", v), cgl_text_put(w->out, ")");
  cgl_text_put(w->out, " <= 2048, \"\");\n");
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


/* Has a shared array of two dimensions that size, or one with a name? */
static bool has_size(const tree *t, const char *size) {
  for (const variable *v = t->variables; v; v = v->next)
    if (v->shared && v->dims.n > 3 &&
        (v->dims.at[1].kind == CGL_TOKEN_NAME ||
         cgl_token_is(&v->dims.at[1], size)) &&
        cgl_tokens_close(v->dims.at, v->dims.n, 0) < v->dims.n)
      return true;
  return false;
}


static void see_rows(tree *t, statement *s, row r, void *user) {
  (void)t;
  (void)s;
  for (size_t i = 0; i < r.n; i++)
    if (cgl_token_is_axis(r.at, r.n, i, "threadIdx") == 0 &&
        cgl_token_is(&r.at[i], "threadIdx"))
      *(bool *)user = true;
}


/* The function for the block's shape, which is worth much as a constant: a
   row of threads, or one of the tiles that the shared arrays suggest. */
static void put_shapes(writer *w) {
  static const char *const tiles[][2] = {
      {"16", "16"}, {"32", "32"}, {"32", "8"}, {"8", "8"}};
  size_t id = w->style->id;
  bool rows = false;
  cgl_values_each(w->t, w->t->body, see_rows, &rows);
  cgl_text_print(w->out,
                 "\n# 1 \"cgraphlua\" 3\nstruct cgl_loops_%zu { template "
                 "<class... A> static void run(const uint3 g, const uint3 b, "
                 "const uint3 at, A... a) { if (b.y * b.z == 1) return "
                 "cgl_loops_of_%zu<0, 1, 1>(g, b, at, a...);",
                 id, id);
  for (size_t i = 0; rows && i < sizeof tiles / sizeof *tiles; i++)
    if (has_size(w->t, tiles[i][0]))
      cgl_text_print(w->out,
                     "if (b.x == %s && b.y == %s && b.z == 1) return "
                     "cgl_loops_of_%zu<%s, %s, 1>(g, b, at, a...);",
                     tiles[i][0], tiles[i][1], id, tiles[i][0], tiles[i][1]);
  cgl_text_print(w->out, "cgl_loops_of_%zu<0, 0, 0>(g, b, at, a...); } };", id);
}


static void put_kernel(writer *w) {
  const cgl_declared *k = w->t->kernel;
  cgl_text_put(w->out, "\n# 1 \"cgraphlua\" 3\n");
  w->line = -1;
  put_scope(w, true);
  cgl_text_print(w->out,
                 "template <unsigned BX, unsigned BY, unsigned BZ> static "
                 "CGL_LOOPS void cgl_loops_of_%zu(const uint3 gridDim, const "
                 "uint3 cgl_block, const uint3 blockIdx",
                 w->style->id);
  if (k->nparameters)
    cgl_text_put(w->out, ",");
  put_tokens(w, cgl_tree_copy(w->t, k->parameters, k->nparameters), false);
  cgl_text_put(
      w->out,
      ") {\nconst unsigned cgl_bx = BX ? BX : cgl_block.x, cgl_by = BY ? BY : "
      "cgl_block.y, cgl_bz = BZ ? BZ : cgl_block.z, cgl_n = cgl_bx * cgl_by * "
      "cgl_bz;\nconst uint3 blockDim = {cgl_bx, cgl_by, cgl_bz};\n"
      "CGL_ASSUME(cgl_bx >= 1 && cgl_bx <= 1024 && cgl_by >= 1 && cgl_by <= "
      "1024 && cgl_bz >= 1 && cgl_n <= 1024)\n");
  cgl_text_print(w->out, "constexpr const char *cgl_kernel_name = \"%.*s\";\n",
                 (int)k->name.length, k->name.text);
  w->line = -1;
  put_names(w);
  put_list(w, w->t->body);
  cgl_text_put(w->out, "}");
  put_shapes(w);
  put_scope(w, false);
  cgl_text_put(w->out, "\n# 1 \"cgraphlua\"\n");
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
    row one = slice(all, from, i);
    from = i + 1;
    if (!one.n)
      continue;
    bool array = cgl_token_is(&one.at[one.n - 1], "]");
    while (one.n && one.at[one.n - 1].kind != CGL_TOKEN_NAME)
      one.n--;
    if (one.n < 2)
      continue; /* unnamed */
    variable *v = cgl_tree_declare(t, &one.at[one.n - 1]);
    v->type = slice(one, 0, one.n - 1);
    v->parameter = true;
    for (size_t j = 0; j < one.n; j++)
      if (array || cgl_token_is_any(&one.at[j], "&", "("))
        v->reference = true;
  }
}


/* Does a function take a reference to what it may change? */
static bool takes_references(const cgl_program *p) {
  for (size_t i = 0; i < p->nchunks; i++) {
    const cgl_chunk *c = &p->chunks[i];
    bool alias = c->count && cgl_token_is_any(c->at, "typedef", "using");
    for (size_t k = 1; k < c->count; k++) {
      size_t from = k;
      if (!cgl_token_is_any(&c->at[k], "&", "&&"))
        continue;
      if (alias)
        return true;
      if (!c->record && cgl_token_is(&c->at[k - 1], "]"))
        continue;
      bool constant = false;
      while (from && !cgl_token_is_any(&c->at[from - 1], "(", ",", "{", ";"))
        constant |= cgl_token_is(&c->at[--from], "const");
      bool begins = from && cgl_token_is_any(&c->at[from - 1], "(", ",");
      if (begins && !constant && from < k &&
          (c->at[k - 1].kind == CGL_TOKEN_NAME ||
           cgl_token_is(&c->at[k - 1], ">")) &&
          k + 1 < c->count && c->at[k + 1].kind == CGL_TOKEN_NAME)
        return true;
    }
  }
  return false;
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


static row kernel_body(tree *t) {
  const cgl_declared *k = t->kernel;
  const cgl_chunk *c = &t->program->chunks[k->chunk];
  size_t i = (size_t)(k->parameters + k->nparameters - c->at);
  while (i < c->count && !cgl_token_is(&c->at[i], "{"))
    i++;
  if (i + 1 >= c->count)
    return (row){NULL, 0};
  t->origin = &c->at[i + 1];
  row body = cgl_tree_copy(t, t->origin, c->count - i - 2);
  t->copy = body.at;
  return body;
}


static void read_kernel(tree *t) {
  if (t->kernel->is_template)
    cgl_tree_refuse(t, &t->kernel->name, "a template");
  declare_parameters(t);
  t->references = takes_references(t->program);
  row body = kernel_body(t);
  if (!t->failed && !t->why)
    t->body = cgl_tree_read(t, body);
  if (!t->why && !t->failed)
    cgl_tree_inline(t, &t->body);
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
    if (!is_local(v) || (v->region != -2 && !apart) || v->region == -1)
      continue;
    v->kept = true;
    if (apart)
      v->run = -2;
    if (v->reference || (v->is_auto))
      cgl_tree_refuse(t, &v->name, "'%.*s', %s that lives across a barrier",
                      own_length(v), v->name.text,
                      v->is_auto ? "of a type not written out,"
                                 : "a reference");
    if (++n > 64)
      cgl_tree_refuse(t, &v->name, "more than 64 variables across barriers");
  }
}


int cgl_loops_write(cgl_program *program, const cgl_signature *kernel,
                    const cgl_loops_style *style, cgl_arena *arena,
                    cgl_text *out, const char **why, int *line) {
  tree t = {.program = program, .arena = arena, .kernel = kernel->declared};
  cgl_text first = {0}, second = {0};
  t.last = &t.variables;
  t.known = cgl_arena_alloc(arena, program->nchunks + 1);
  t.failed = !t.known;
  if (!t.failed)
    read_kernel(&t);
  writer w = {.t = &t, .style = style, .out = &first, .counting = true};
  if (!t.why && !t.failed) {
    cgl_values_each(&t, t.body, see_index, &w.global);
    put_kernel(&w);
    keep_variables(&t);
  }
  if (!t.why && !t.failed) {
    bool alive = w.returned && w.returned < w.region;
    bool global = w.global;
    w = (writer){.t = &t,
                 .style = style,
                 .out = &second,
                 .alive = alive,
                 .global = global};
    put_kernel(&w);
  }
  if (!t.why && !t.failed && !second.failed)
    cgl_text_add(out, second.data, second.length);
  bool failed = t.failed || first.failed || second.failed || arena->failed;
  cgl_text_free(&first);
  cgl_text_free(&second);
  *why = t.why;
  *line = t.line;
  return failed ? -1 : t.why != NULL;
}
