/* Which variables are the same for all threads, and which are computed again
   rather than kept. */
#include <string.h>

#include "compile/loops/loops_private.h"

/* Calls that have no effect and whose result depends on the arguments alone. */
static const char *const pure_calls[] = {
    "min",         "max",         "abs",         "sizeof",
    "fminf",       "fmaxf",       "fabsf",       "sqrtf",
    "fabs",        "sqrt",        "floorf",      "ceilf",
    "static_cast", "fmin",        "fmax",        "__ldg",
    "__clz",       "__popc",      "__ffs",       "rsqrtf",
    "expf",        "logf",        "powf",        "exp",
    "log",         "make_float2", "make_float3", "make_float4",
    "make_int2",   "make_int3",   "make_int4",   "__float2int_rd",
    "umin",        "umax",        "uint",        "size_t",
    "__mul24",     "__umul24",    NULL};


static bool is_assignment(const cgl_token *t) {
  return cgl_token_is_any(t, "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=",
                          "^=", "<<=", ">>=", "++", "--");
}


/* What stands after the name, its members and elements: may it change?  What
   a pointer points to is not the pointer. */
static bool is_changed_behind(row r, size_t i, bool pointer) {
  size_t k = i + 1;
  if (pointer && k < r.n && cgl_token_is_any(&r.at[k], "[", "->"))
    return false;
  while (k < r.n) {
    if (cgl_token_is(&r.at[k], "["))
      k = cgl_tokens_close(r.at, r.n, k);
    else if (cgl_token_is_any(&r.at[k], ".", "->"))
      k += 2;
    else
      break;
  }
  return k < r.n && (is_assignment(&r.at[k]) ||
                     (k > i + 1 && cgl_token_is(&r.at[k], "(")));
}


/* Ends an argument with the name, its members and elements? */
static bool is_argument(row r, size_t i) {
  size_t k = i + 1;
  while (k < r.n && cgl_token_is_any(&r.at[k], "[", ".", "->"))
    k = cgl_token_is(&r.at[k], "[") ? cgl_tokens_close(r.at, r.n, k) : k + 2;
  return k < r.n && cgl_token_is_any(&r.at[k], ")", ",");
}


/* Stands i in parentheses that are assigned to, as in (c ? a : b) = 1? */
static bool is_in_target(row r, size_t i) {
  size_t depth = 0;
  for (size_t k = i + 1; k < r.n; k++) {
    if (cgl_token_is_any(&r.at[k], "(", "["))
      depth++;
    else if (cgl_token_is_any(&r.at[k], "]") && depth)
      depth--;
    else if (cgl_token_is(&r.at[k], ")")) {
      if (depth)
        depth--;
      else if (k + 1 < r.n && is_assignment(&r.at[k + 1]))
        return true;
    } else if (cgl_token_is_any(&r.at[k], ";", "{", "}"))
      return false;
  }
  return false;
}


bool cgl_values_is_assigned(const tree *t, row r, const variable *v) {
  const cgl_token *name = &v->name;
  bool pointer = false;
  for (size_t i = 0; i < v->type.n && !v->dims.n; i++)
    pointer |= cgl_token_is(&v->type.at[i], "*");
  for (size_t i = 0; i < r.n; i++) {
    if (!cgl_tree_is_name(r, i) || !cgl_token_same(&r.at[i], name))
      continue;
    size_t before = i;
    while (before && cgl_token_is(&r.at[before - 1], "("))
      before--;
    if (is_changed_behind(r, i, pointer) || is_in_target(r, i) ||
        (before && cgl_token_is_any(&r.at[before - 1], "++", "--")))
      return true;
    /* An operator's, or the end of a function's template arguments. */
    if (before && cgl_token_is(&r.at[before - 1], ">>") &&
        (t->extracts || (t->references && before < i)))
      return true;
    if (t->references && i && cgl_token_is_any(&r.at[i - 1], "(", ",") &&
        is_argument(r, i))
      return true;
  }
  return false;
}


/* Is the `)` at i the end of a cast, so that `&` behind it is an address? */
static bool is_cast(const tree *t, row r, size_t i) {
  if (i < 2 || cgl_token_is(&r.at[i - 1], "*"))
    return true;
  return cgl_token_is(&r.at[i - 2], "(") &&
         r.at[i - 1].kind == CGL_TOKEN_NAME && !cgl_tree_find(t, &r.at[i - 1]);
}


/* May its address be taken?  `a & b` has an operand in front of the `&`, and
   `(T &)a` is a reference. */
static bool is_addressed(const tree *t, row r, const cgl_token *name) {
  for (size_t i = 1; i < r.n; i++) {
    if (!cgl_tree_is_name(r, i) || !cgl_token_same(&r.at[i], name))
      continue;
    size_t k = i;
    while (k > 1 && cgl_token_is(&r.at[k - 1], "("))
      k--;
    if (k > 1 && cgl_token_is(&r.at[k - 1], ")") &&
        cgl_token_is_any(&r.at[k - 2], "&", "&&"))
      return true;
    if (!k || !cgl_token_is_any(&r.at[k - 1], "&", "&&"))
      continue;
    const cgl_token *before = k > 1 ? &r.at[k - 2] : NULL;
    if (!before || cgl_token_is_any(before, "return", "auto"))
      return true;
    bool logical = cgl_token_is(&r.at[k - 1], "&&");
    if (cgl_token_is(before, ")")
            ? !logical && is_cast(t, r, k - 2)
            : before->kind == CGL_TOKEN_PUNCT && !cgl_token_is(before, "]"))
      return true;
  }
  return false;
}


/* Is a reference declared that begins with the variable? */
static bool is_bound(row r, const cgl_token *name) {
  for (size_t i = 2; i < r.n; i++)
    if (cgl_tree_is_name(r, i) && cgl_token_same(&r.at[i], name) &&
        cgl_token_is_any(&r.at[i - 1], "=", "(", "{") &&
        r.at[i - 2].kind == CGL_TOKEN_NAME && i > 2 &&
        cgl_token_is_any(&r.at[i - 3], "&", "&&"))
      return true;
  return false;
}


/* Is the value of a reference the variable, or a part of it? */
static bool is_referred(row value, const cgl_token *name) {
  for (size_t i = 1; i < value.n; i++)
    if (cgl_tree_is_name(value, i) && cgl_token_same(&value.at[i], name) &&
        cgl_token_is_any(&value.at[i - 1], "=", "(", "{", "?", ":") &&
        !(i + 1 < value.n && cgl_token_is_any(&value.at[i + 1], "[", "->")))
      return true;
  return false;
}


bool cgl_values_is_addressed(const tree *t, row r, const cgl_token *name) {
  return is_addressed(t, r, name) || is_bound(r, name);
}


void cgl_values_each(tree *t, statement *list,
                     void (*visit)(tree *, statement *, row, void *),
                     void *user) {
  for (statement *s = list; s; s = s->next) {
    cgl_values_each(t, s->init, visit, user);
    if (s->kind == STATEMENT_DECLARATION) {
      visit(t, s, s->value, user);
      visit(t, s, s->variable->dims, user);
    } else
      visit(t, s, s->all, user);
    visit(t, s, s->cond, user);
    visit(t, s, s->step, user);
    visit(t, s, s->mask, user);
    cgl_values_each(t, s->head, visit, user);
    cgl_values_each(t, s->body, visit, user);
    cgl_values_each(t, s->otherwise, visit, user);
  }
}


/* ---- expressions ---- */

/* A name of the source that is one value everywhere. */
static bool is_constant(tree *t, const cgl_token *name) {
  size_t chunk;
  if (!cgl_reach_chunk(t->program, name, 0, &chunk))
    return false;
  const cgl_chunk *c = &t->program->chunks[chunk];
  if (cgl_token_is(c->at, "enum"))
    return true;
  for (size_t i = 0; i < c->count; i++) {
    if (cgl_token_is_any(&c->at[i], "constexpr", "const"))
      return !c->record;
    if (cgl_token_is_any(&c->at[i], "{", "(", "="))
      return false;
  }
  return false;
}


/* A device variable, which the expression loads. */
static bool is_device_variable(tree *t, const cgl_token *name) {
  size_t chunk;
  if (!cgl_reach_chunk(t->program, name, 0, &chunk))
    return false;
  const cgl_chunk *c = &t->program->chunks[chunk];
  for (size_t i = 0; i < c->count; i++) {
    if (cgl_token_is(&c->at[i], "volatile"))
      return false;
    if (cgl_token_is_any(&c->at[i], "__constant__"))
      return true;
    if (cgl_token_is_any(&c->at[i], "{", "(", "="))
      return false;
  }
  return false;
}


static bool is_uniform_variable(const variable *v, bool fixed) {
  if (fixed)
    return (v->parameter && !v->assigned && !v->addressed) ||
           (v->uniform && !v->assigned && !v->addressed);
  for (size_t i = 0; i < v->type.n; i++)
    if (cgl_token_is(&v->type.at[i], "volatile"))
      return false;
  return v->uniform || v->shared;
}


/* `threads`: the thread's index may stand in it as well, and what is computed
   again. */
static bool is_pure(tree *t, row r, bool fixed, bool threads) {
  for (size_t i = 0; i < r.n; i++) {
    const cgl_token *x = &r.at[i];
    if (is_assignment(x) || cgl_token_is_any(x, "{", ";", "?:"))
      return false;
    if (x->kind == CGL_TOKEN_STRING)
      return false;
    if (fixed && (cgl_token_is_any(x, "[", "->") ||
                  (cgl_token_is(x, "*") &&
                   (!i || (r.at[i - 1].kind == CGL_TOKEN_PUNCT &&
                           !cgl_token_is_any(&r.at[i - 1], ")", "]"))))))
      return false; /* a load: memory may change */
    if (t->strips && cgl_token_is_any(x, "threadIdx", "blockIdx")) {
      const bool x_too = !(i + 2 < r.n && cgl_token_is(&r.at[i + 1], ".") &&
                           cgl_token_is_any(&r.at[i + 2], "y", "z"));
      if (x_too && !threads)
        return false;
      continue;
    }
    if (!cgl_tree_is_name(r, i) || cgl_token_is_type_word(x) ||
        cgl_token_is_any(x, "blockIdx", "blockDim", "gridDim", "warpSize",
                         "true", "false", "nullptr") ||
        cgl_token_is_of(x, pure_calls))
      continue;
    if (cgl_token_is(x, "threadIdx")) {
      if (!threads)
        return false;
      continue;
    }
    if (i + 1 < r.n && cgl_token_is(&r.at[i + 1], "("))
      return false;
    const variable *v = cgl_tree_find(t, x);
    if (v) {
      if (v->constant || v->alias || (threads && v->again) ||
          is_uniform_variable(v, fixed))
        continue;
      return false;
    }
    if (is_constant(t, x) || (!fixed && is_device_variable(t, x)) ||
        cgl_token_is_known_type(x))
      continue;
    return false;
  }
  return true;
}


bool cgl_values_is_uniform(tree *t, row r, bool fixed) {
  return is_pure(t, r, fixed, false);
}


/* ---- variables ---- */

typedef struct census {
  bool again; /* something changed */
} census;


/* Is the variable named other than as `v.field`?  Then, of a class, it may
   change by any function or operator. */
static bool is_named_whole(row r, const cgl_token *name) {
  for (size_t i = 0; i < r.n; i++)
    if (cgl_tree_is_name(r, i) && cgl_token_same(&r.at[i], name) &&
        !(i + 2 < r.n && cgl_token_is(&r.at[i + 1], ".") &&
          !(i + 3 < r.n && cgl_token_is(&r.at[i + 3], "("))))
      return true;
  return false;
}


/* Marks what is assigned and addressed. */
static void see_uses(tree *t, statement *s, row r, void *user) {
  (void)user;
  for (variable *v = t->variables; v; v = v->next) {
    v->assigned |= cgl_values_is_assigned(t, r, v);
    v->addressed |= cgl_values_is_addressed(t, r, &v->name) ||
                    (s->kind == STATEMENT_DECLARATION &&
                     s->variable->reference && is_referred(r, &v->name)) ||
                    (v->closed && is_named_whole(r, &v->name));
    /* What a lambda changes changes where it is called. */
    if (s->kind == STATEMENT_DECLARATION && s->variable->lambda)
      v->addressed |= cgl_values_is_assigned(t, r, v);
  }
}


static void drop(variable *v, census *c) {
  if (v && v->uniform) {
    v->uniform = false;
    c->again = true;
  }
}


/* name = value; name op= value; name++: the variable, and its value. */
static variable *simple_assignment(tree *t, row r, row *value) {
  size_t n = r.n && cgl_token_is(&r.at[r.n - 1], ";") ? r.n - 1 : r.n;
  *value = (row){r.at, 0};
  if (n == 2 && cgl_token_is_any(&r.at[1], "++", "--"))
    return cgl_tree_find(t, &r.at[0]);
  if (n == 2 && cgl_token_is_any(&r.at[0], "++", "--"))
    return cgl_tree_find(t, &r.at[1]);
  if (n < 3 || !is_assignment(&r.at[1]) ||
      cgl_token_is_any(&r.at[1], "++", "--"))
    return NULL;
  *value = (row){r.at + 2, n - 2};
  return cgl_tree_find(t, &r.at[0]);
}


variable *cgl_values_assignment(tree *t, row r) {
  row value;
  variable *v = simple_assignment(t, r, &value);
  return v && v->uniform ? v : NULL;
}


static void drop_assigned(tree *t, row r, census *c) {
  for (variable *v = t->variables; v; v = v->next)
    if (v->uniform && cgl_values_is_assigned(t, r, v))
      drop(v, c);
}


/* One statement: the only assignment in it, or any number. */
static void walk_assignment(tree *t, row r, bool uniform, census *c) {
  row value;
  variable *v = simple_assignment(t, r, &value);
  if (!v || !uniform || !is_pure(t, value, false, false))
    drop_assigned(t, r, c);
}


/* A loop's step: assignments with commas between them. */
static void walk_step(tree *t, row r, bool uniform, census *c) {
  size_t from = 0;
  for (size_t i = 0; i <= r.n; i++)
    if (i < r.n && cgl_token_is_any(&r.at[i], "(", "[", "{"))
      i = cgl_tokens_close(r.at, r.n, i) - 1;
    else if (i == r.n || cgl_token_is(&r.at[i], ",")) {
      walk_assignment(t, (row){r.at + from, i - from}, uniform, c);
      from = i + 1;
    }
}


/* Is the variable declared in the list? */
static bool declares(const statement *list, const variable *v) {
  for (const statement *s = list; s; s = s->next)
    if (s->variable == v || declares(s->init, v) || declares(s->head, v) ||
        declares(s->body, v) || declares(s->otherwise, v))
      return true;
  return false;
}


typedef struct outside {
  statement *whole;
  census *census;
} outside;


static void see_outside(tree *t, statement *s, row r, void *user) {
  outside *o = user;
  (void)s;
  for (variable *v = t->variables; v; v = v->next) {
    if (!v->uniform || !cgl_values_is_assigned(t, r, v))
      continue;
    statement *rest = o->whole->next;
    o->whole->next = NULL;
    if (!declares(o->whole, v))
      drop(v, o->census);
    o->whole->next = rest;
  }
}


static void walk(tree *t, statement *list, bool uniform, census *c) {
  for (statement *s = list; s; s = s->next) {
    bool split = s->sync || s->escapes;
    if (s->kind == STATEMENT_DECLARATION) {
      variable *v = s->variable;
      row value = s->value;
      if (value.n && cgl_token_is(value.at, "="))
        value = (row){value.at + 1, value.n - 1};
      if (!uniform || v->dims.n || v->constructed || v->reference ||
          v->addressed || !is_pure(t, value, false, false))
        drop(v, c);
      drop_assigned(t, value, c);
    } else if (s->kind == STATEMENT_PLAIN)
      walk_assignment(t, s->all, uniform && !s->sync, c);
    else if (s->kind == STATEMENT_BARRIER || s->kind == STATEMENT_WARP ||
             s->kind == STATEMENT_JUMP) {
      drop_assigned(t, s->all, c);
      drop_assigned(t, s->cond, c);
      drop_assigned(t, s->mask, c);
    } else if (!split)
      drop_assigned(t, s->all, c);
    else {
      bool same = uniform && is_pure(t, s->cond, false, false);
      walk(t, s->init, uniform, c);
      walk(t, s->head, uniform || s->sync == SYNC_WARP, c);
      drop_assigned(t, s->cond, c);
      walk_step(t, s->step, same, c);
      /* The lanes of a warp that come here come together. */
      const bool warp = s->sync == SYNC_WARP && !t->strips;
      const bool together = same || warp;
      walk(t, s->body, together, c);
      walk(t, s->otherwise, together, c);
      if (warp) {
        /* It runs once for every warp. */
        outside o = {s, c};
        statement *rest = s->next;
        s->next = NULL;
        cgl_values_each(t, s, see_outside, &o);
        s->next = rest;
      }
    }
  }
}


static bool is_literal(tree *t, row r) {
  for (size_t i = 0; i < r.n; i++) {
    const variable *v = cgl_tree_find(t, &r.at[i]);
    if (r.at[i].kind == CGL_TOKEN_NAME && !cgl_token_is_type_word(&r.at[i]) &&
        !(v ? v->constant || v->alias : is_constant(t, &r.at[i])) &&
        !cgl_token_is_any(&r.at[i], "sizeof", "warpSize"))
      return false;
    if (cgl_token_is_any(&r.at[i], "{", "["))
      return false;
  }
  return true;
}


/* Of a class, or of vectors that functions may change by reference. */
static bool is_closed(tree *t, const variable *v) {
  cgl_parameter p;
  if (v->alias || v->lambda)
    return false;
  row all = cgl_tree_copy(t, v->type.at ? v->type.at : &v->name, v->type.n + 1);
  if (t->failed || v->is_auto)
    return true;
  all.at[v->type.n] = v->name;
  all.n = v->type.n + 1;
  if (cgl_parameter_read(t->aliases, all.at, all.n, t->arena, &p) != 0)
    return t->failed = true;
  return !p.pointer &&
         (p.kind == CGL_KIND_UNKNOWN || p.kind == CGL_KIND_STRUCT ||
          p.kind == CGL_KIND_PHILOX || p.kind == CGL_KIND_HALF ||
          p.kind == CGL_KIND_BFLOAT16 || (p.lanes > 1 && t->references));
}


/* ---- lambdas ---- */

/* Has the lambda the value that the variable had where it was made? */
static bool is_captured(const variable *lambda, const variable *v) {
  row value = {lambda->value.at + 1, lambda->value.n - 1};
  size_t close = cgl_tokens_close(value.at, value.n, 0) - 1;
  bool captured = false;
  for (size_t i = 1; i < close; i++)
    if (cgl_token_is(&value.at[i], "=") ||
        cgl_token_same(&value.at[i], &v->name))
      captured = !cgl_token_is(&value.at[i - 1], "&");
  for (size_t i = close; i < value.n && captured; i++)
    if (cgl_tree_is_name(value, i) && cgl_token_same(&value.at[i], &v->name))
      return true;
  return false;
}


/* The lambda is made anew wherever it is called: what it has captured must not
   have changed since. */
static void see_captured(tree *t, statement *s, row r, void *user) {
  const variable *lambda = user;
  (void)s;
  for (const variable *v = t->variables; v; v = v->next)
    if (cgl_values_is_assigned(t, r, v) && is_captured(lambda, v))
      cgl_tree_refuse(t, &lambda->name,
                      "a lambda with a copy of '%.*s', which changes",
                      cgl_put_length(v), v->name.text);
}


/* ---- values that end ---- */

static void rename_row(tree *t, statement *s, row r, void *user) {
  const variable *const *pair = user; /* the old name and the new */
  (void)t;
  (void)s;
  for (size_t i = 0; i < r.n; i++)
    if (cgl_tree_is_name(r, i) && cgl_token_same(&r.at[i], &pair[0]->name)) {
      r.at[i].text = pair[1]->name.text;
      r.at[i].length = pair[1]->name.length;
    }
}


/* Is the statement `v = value;`, of a variable with nothing but values? */
static bool begins_anew(tree *t, const statement *s, const variable *v) {
  bool plain = s->kind == STATEMENT_PLAIN && !s->sync && !s->escapes &&
               s->all.n > 3 && cgl_token_is(&s->all.at[1], "=") &&
               cgl_token_same(&s->all.at[0], &v->name) && !v->dims.n &&
               !v->shared && !v->reference && !v->addressed && !v->alias &&
               !v->lambda && !v->is_auto && !v->closed;
  for (size_t i = 0; i < v->type.n && plain; i++)
    plain = !cgl_token_is_any(&v->type.at[i], "volatile", "static");
  for (size_t i = 2; i < s->all.n && plain; i++)
    plain = !is_assignment(&s->all.at[i]) && !cgl_token_is(&s->all.at[i], "{");
  for (const variable *other = t->variables; other && plain;
       other = other->next)
    for (size_t i = 0; i < other->value.n && plain; i++)
      plain = !(other->lambda && cgl_token_same(&other->value.at[i], &v->name));
  return plain;
}


/* An assignment in the list that declares the variable ends what it was: from
   there on it is another one.  So what no thread asks for behind a barrier has
   no array, and what is set once may be uniform or computed again. */
static void split_variables(tree *t, statement *list) {
  for (statement *s = list; s; s = s->next) {
    split_variables(t, s->body);
    split_variables(t, s->otherwise);
    variable *v = s->kind == STATEMENT_DECLARATION ? s->variable : NULL;
    for (statement *to = s->next; v && to; to = to->next) {
      if (!begins_anew(t, to, v))
        continue;
      cgl_token name =
          cgl_tree_token(t, &to->all.at[0], "%.*s__%d", cgl_put_length(v),
                         v->name.text, ++t->ids);
      variable *anew = cgl_tree_declare(t, &name);
      anew->type = v->type;
      anew->origin = v->origin;
      anew->home = to;
      to->kind = STATEMENT_DECLARATION;
      to->variable = anew;
      to->value = anew->value = (row){to->all.at + 1, to->all.n - 2};
      const variable *pair[] = {v, anew};
      cgl_values_each(t, to->next, rename_row, pair);
      break; /* the rest is the new one's */
    }
  }
}


/* ---- functions of the source ---- */

/* The `(` around token k, or n when it stands in none. */
static size_t find_open(const cgl_token *at, size_t n, size_t k) {
  for (int depth = 0; k;) {
    const cgl_token *x = &at[--k];
    if (cgl_token_is_any(x, ")", "]", "}"))
      depth++;
    else if (cgl_token_is_any(x, "(", "[", "{") && !depth--)
      return cgl_token_is(x, "(") ? k : n;
  }
  return n;
}


/* Begins a list of parameters at `(`?  A call looks alike, but for what stands
   around it. */
static bool is_parameters(const cgl_token *at, size_t n, size_t open) {
  const size_t close = cgl_tokens_close(at, n, open);
  if (!open || cgl_token_is_any(&at[open - 1], "if", "while", "for", "switch",
                                "return", "sizeof", "="))
    return false;
  if (close < n && cgl_token_is(&at[close], ";"))
    return open > 1 &&
           !cgl_token_is_any(&at[open - 2], "return", "else", "do") &&
           (at[open - 2].kind == CGL_TOKEN_NAME ||
            cgl_token_is_any(&at[open - 2], "*", "&", ">", "operator"));
  return close < n && (at[close].kind == CGL_TOKEN_NAME ||
                       cgl_token_is_any(&at[close], "{", "->", ":"));
}


/* Is the `&` at k that of a parameter which may be changed: T &name? */
static bool is_reference(const cgl_token *at, size_t n, size_t k) {
  const size_t open = find_open(at, n, k);
  size_t from = k;
  int inside = 0; /* of < and > */
  bool constant = false;
  if (open == n || k + 1 >= n || at[k + 1].kind != CGL_TOKEN_NAME)
    return false;
  for (; from > open + 1; from--) {
    const cgl_token *x = &at[from - 1];
    if (cgl_token_is(x, ",") && !inside)
      break;
    inside += cgl_token_is(x, ">") - cgl_token_is(x, "<");
    constant |= cgl_token_is(x, "const");
    if (inside < 0 || (x->kind == CGL_TOKEN_PUNCT && !inside &&
                       !cgl_token_is_any(x, "::", "*", "<")))
      return false;
  }
  return from < k && !constant && !inside && is_parameters(at, n, open);
}


/* Does a function take a reference to what it may change? */
static bool takes_references(const cgl_program *p) {
  for (size_t i = 0; i < p->nchunks; i++) {
    const cgl_chunk *c = &p->chunks[i];
    bool alias = c->count && cgl_token_is_any(c->at, "typedef", "using");
    for (size_t k = 1; k < c->count; k++)
      if (cgl_token_is_any(&c->at[k], "&", "&&") &&
          (alias || is_reference(c->at, c->count, k)))
        return true;
  }
  return false;
}


static bool defines_extraction(const cgl_program *p) {
  for (size_t i = 0; i < p->nchunks; i++)
    for (size_t k = 1; k < p->chunks[i].count; k++)
      if (cgl_token_is(&p->chunks[i].at[k - 1], "operator") &&
          cgl_token_is(&p->chunks[i].at[k], ">>"))
        return true;
  return false;
}


void cgl_values_find_functions(tree *t) {
  t->references = takes_references(t->program);
  t->extracts = defines_extraction(t->program);
}


void cgl_values_find(tree *t) {
  for (variable *v = t->variables; v; v = v->next)
    v->closed = !v->shared &&
                !(v->home && v->home->kind == STATEMENT_BARRIER) &&
                is_closed(t, v);
  cgl_values_each(t, t->body, see_uses, NULL);
  if (!t->strips)
    split_variables(t, t->body);
  for (variable *v = t->variables; v; v = v->next)
    v->assigned = v->addressed = false;
  for (variable *v = t->variables; v; v = v->next)
    v->closed = !v->shared &&
                !(v->home && v->home->kind == STATEMENT_BARRIER) &&
                is_closed(t, v);
  cgl_values_each(t, t->body, see_uses, NULL);
  for (variable *v = t->variables; v; v = v->next)
    if (v->lambda && v->home)
      cgl_values_each(t, v->home->next, see_captured, v);
  for (variable *v = t->variables; v; v = v->next) {
    bool constant = v->constant;
    for (size_t i = 0; i < v->type.n; i++)
      constant |= cgl_token_is(&v->type.at[i], "const");
    bool plain = v->value.n > 1 && !v->dims.n && !v->assigned &&
                 !v->addressed && !v->constructed && !v->reference;
    row value = {v->value.at + 1, v->value.n ? v->value.n - 1 : 0};
    v->constant = constant && plain && !v->shared && is_literal(t, value);
    v->uniform = !v->shared && !v->constant && !v->addressed && !v->alias &&
                 !v->lambda && (!v->reference || v->parameter);
  }
  census c = {true};
  while (c.again) {
    c.again = false;
    walk(t, t->body, true, &c);
  }
  for (c.again = true; c.again;) {
    c.again = false;
    for (variable *v = t->variables; v; v = v->next) {
      row value = {v->value.at + 1, v->value.n ? v->value.n - 1 : 0};
      if (v->uniform || v->again || v->shared || v->constant || v->assigned ||
          v->addressed || v->dims.n || v->constructed || v->reference ||
          v->parameter || v->alias || v->lambda || !value.n ||
          !is_pure(t, value, true, true))
        continue;
      v->again = c.again = true;
    }
  }
}
