/* Which variables are the same for all threads, and which are computed again
   rather than kept. */
#include <string.h>

#include "compile/loops/loops_private.h"

/* Calls that have no effect and whose result depends on the arguments alone. */
static const char *const pure_calls[] = {
    "min",         "max",      "abs",  "sizeof",         "fminf",  "fmaxf",
    "fabsf",       "sqrtf",    "fabs", "sqrt",           "floorf", "ceilf",
    "static_cast", "fmin",     "fmax", "__ldg",          "__clz",  "__popc",
    "__ffs",       "rsqrtf",   "expf", "logf",           "powf",   "exp",
    "log",         "umin",     "umax", "__float2int_rd", "uint",   "size_t",
    "__mul24",     "__umul24", NULL};


/* Likewise, but for what costs more than to keep its result: as it is named, or
   with __ in front or f behind, for floats. */
static const char *const costly_calls[] = {
    "sin",   "cos",      "tan",     "asin",     "acos",  "atan",   "atan2",
    "sinh",  "cosh",     "tanh",    "sinpi",    "cospi", "exp",    "exp2",
    "exp10", "expm1",    "log",     "log2",     "log10", "log1p",  "pow",
    "cbrt",  "rcbrt",    "hypot",   "erf",      "erfc",  "rsqrt",  "fma",
    "fmod",  "round",    "rint",    "trunc",    "floor", "ceil",   "fdivide",
    "clzll", "popcll",   "ffsll",   "brev",     "mulhi", "umulhi", "isnan",
    "isinf", "isfinite", "signbit", "copysign", NULL};


static bool is_costly_call(const cgl_token *name) {
  static const char *const conversions[] = {
      "__float2",  "__double2",  "__int2",      "__uint2",
      "__ll2",     "__ull2",     "__float_as_", "__double_as_",
      "__int_as_", "__uint_as_", "__half2",     "__longlong_as_"};
  for (size_t i = 0; i < sizeof conversions / sizeof *conversions; i++)
    if (name->length > strlen(conversions[i]) &&
        !memcmp(name->text, conversions[i], strlen(conversions[i])))
      return true;
  cgl_token stem = *name;
  if (stem.length > 2 && memcmp(stem.text, "__", 2) == 0)
    stem.text += 2, stem.length -= 2;
  if (cgl_token_is_of(&stem, costly_calls))
    return true;
  if (!stem.length || stem.text[stem.length - 1] != 'f')
    return false;
  stem.length--;
  return cgl_token_is_of(&stem, costly_calls);
}


/* One of those, or make_uint2 and its like. */
static bool is_pure_name(const cgl_token *name) {
  if (name->length <= 5 || memcmp(name->text, "make_", 5) != 0)
    return cgl_token_is_of(name, pure_calls);
  cgl_token type = *name;
  type.text += 5;
  type.length -= 5;
  return cgl_token_is_known_type(&type);
}


bool cgl_values_is_pure_call(const tree *t, const cgl_token *name) {
  return (is_pure_name(name) || is_costly_call(name)) &&
         !cgl_reach_declares(t->program, name);
}


/* Is the value of a reference the variable, or a part of it?  It is no place
   among others. */
static bool is_referred(row value, const cgl_token *name) {
  for (size_t i = 1; i < value.n; i++)
    if (cgl_token_is(&value.at[i], "[") &&
        (value.at[i - 1].kind == CGL_TOKEN_NAME ||
         cgl_token_is_any(&value.at[i - 1], ")", "]")))
      i = cgl_tokens_close(value.at, value.n, i) - 1;
    else if (cgl_tree_is_name(value, i) && cgl_token_same(&value.at[i], name) &&
             cgl_token_is_any(&value.at[i - 1], "=", "(", "{", "?", ":", "++",
                              "--") &&
             !(i + 1 < value.n &&
               cgl_token_is_any(&value.at[i + 1], "[", "->")))
      return true;
  return false;
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

bool cgl_values_is_constant(tree *t, const cgl_token *name) {
  size_t chunk;
  if (!cgl_reach_chunk(t->program, name, 0, &chunk))
    return false;
  const cgl_chunk *c = &t->program->chunks[chunk];
  if (cgl_token_is(&c->at[c->count > 1 && cgl_token_is(c->at, "typedef")],
                   "enum"))
    return true;
  bool constant = false;
  for (size_t i = 0; i < c->count; i++) {
    constant |= cgl_token_is_any(&c->at[i], "constexpr", "const");
    constant &= !cgl_token_is(&c->at[i], "*"); /* of what it points to */
    if (cgl_token_is(&c->at[i], "(") && i &&
        cgl_token_same(&c->at[i - 1], name) &&
        cgl_token_is(&c->at[c->count - 1], "}"))
      return false; /* a function that gives a constant */
    if (cgl_token_is_any(&c->at[i], "{", "(", "="))
      break;
  }
  return constant && !c->record;
}


/* A variable in memory that the expression loads. */
static bool is_device_variable(tree *t, const cgl_token *name) {
  size_t chunk;
  if (!cgl_reach_chunk(t->program, name, 0, &chunk))
    return false;
  const cgl_chunk *c = &t->program->chunks[chunk];
  bool shared = false;
  for (size_t i = 0; i < c->count; i++) {
    if (cgl_token_is(&c->at[i], "volatile"))
      return false;
    shared |= cgl_token_is_any(&c->at[i], "__constant__", "__shared__");
    if (cgl_token_is_any(&c->at[i], "{", "(", "="))
      break;
  }
  return shared;
}


bool cgl_values_is_common(tree *t, const cgl_token *name) {
  return cgl_values_is_constant(t, name) || is_device_variable(t, name);
}


/* Where the name of a constant stands that namespaces at i lead to, or i. */
static size_t find_constant(tree *t, row r, size_t i) {
  size_t k = i, chunk;
  while (k + 2 < r.n && cgl_token_is(&r.at[k + 1], "::") &&
         r.at[k].kind == CGL_TOKEN_NAME && !cgl_tree_find(t, &r.at[k]) &&
         !cgl_reach_declares(t->program, &r.at[k]))
    k += 2;
  return cgl_values_is_constant(t, &r.at[k]) &&
                 !cgl_reach_chunk(t->program, &r.at[k], 1, &chunk)
             ? k
             : i;
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
    if (cgl_token_is_assignment(x) || cgl_token_is_any(x, "{", ";", "?:"))
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
        is_pure_name(x))
      continue;
    if (cgl_token_is(x, "threadIdx")) {
      if (!threads)
        return false;
      continue;
    }
    if (i + 1 < r.n && cgl_token_is(&r.at[i + 1], "(")) {
      if (!threads && (cgl_reach_declares(t->program, x)
                           ? !fixed && cgl_calls_is_uniform(t, x)
                           : is_costly_call(x)))
        continue;
      return false;
    }
    const variable *v = cgl_tree_find(t, x);
    if (v) {
      if (v->constant || v->alias || (threads && v->again) ||
          is_uniform_variable(v, fixed))
        continue;
      return false;
    }
    const size_t last = find_constant(t, r, i);
    if (last > i || cgl_values_is_constant(t, x) ||
        (!fixed && is_device_variable(t, x)) || cgl_token_is_known_type(x)) {
      i = last;
      continue;
    }
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


/* Has a class of the source an array of that name? */
static bool is_array_member(const tree *t, const cgl_token *name) {
  for (size_t k = 0; k < t->program->nchunks; k++) {
    const cgl_chunk *c = &t->program->chunks[k];
    for (size_t i = 0; c->record && i + 1 < c->count; i++)
      if (cgl_token_same(&c->at[i], name) && cgl_token_is(&c->at[i + 1], "["))
        return true;
  }
  return false;
}


/* Is the variable named other than as `v.field`, of a field that is no array's
   pointer?  Then, of a class, it may change by any function or operator. */
static bool is_named_whole(const tree *t, row r, const cgl_token *name) {
  for (size_t i = 0; i < r.n; i++) {
    if (!cgl_tree_is_name(r, i) || !cgl_token_same(&r.at[i], name))
      continue;
    if (i + 2 >= r.n || !cgl_token_is(&r.at[i + 1], ".") ||
        (i + 3 < r.n && cgl_token_is(&r.at[i + 3], "(")))
      return true;
    if (!(i + 3 < r.n && cgl_token_is_any(&r.at[i + 3], "[", ".")) &&
        is_array_member(t, &r.at[i + 2]))
      return true;
  }
  return false;
}


/* Is an array, or a row of one, the value of a pointer?  As an argument it is
   for the call alone. */
static bool is_pointed_to(row r, const variable *v) {
  for (size_t i = 1; v->dims.n && i < r.n; i++) {
    if (!cgl_tree_is_name(r, i) || !cgl_token_same(&r.at[i], &v->name) ||
        cgl_token_is_any(&r.at[i - 1], "(", ",", "sizeof"))
      continue;
    size_t left = v->dims.n, k = i + 1, at = 0;
    for (; k < r.n && at < left && cgl_token_is(&r.at[k], "[");
         at = cgl_tokens_close(v->dims.at, left, at))
      k = cgl_tokens_close(r.at, r.n, k);
    if (at < left)
      return true;
  }
  return false;
}


/* Marks what is assigned and addressed. */
static void see_uses(tree *t, statement *s, row r, void *user) {
  (void)user;
  /* The text of what was read as its parts has declarations in it. */
  const bool parts = s->kind != STATEMENT_PLAIN && (s->body || s->otherwise) &&
                     r.at == s->all.at;
  for (variable *v = t->variables; v; v = v->next) {
    if (cgl_tree_is_argument(v))
      continue;
    const bool assigned = cgl_values_is_assigned(t, r, v);
    v->assigned |= assigned;
    v->changed |= assigned && !parts;
    v->addressed |= cgl_values_is_addressed(t, r, &v->name) ||
                    cgl_values_is_kept(t, r, v) ||
                    (s->kind == STATEMENT_DECLARATION &&
                     s->variable->reference && is_referred(r, &v->name)) ||
                    is_pointed_to(r, v) ||
                    (v->closed && is_named_whole(t, r, &v->name));
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
  if (n < 3 || !cgl_token_is_assignment(&r.at[1]) ||
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


/* A type of the source's own, which may have a constructor. */
static bool is_record(tree *t, row type) {
  size_t chunk;
  for (size_t i = 0; i < type.n; i++)
    for (size_t k = 0; type.at[i].kind == CGL_TOKEN_NAME &&
                       cgl_reach_chunk(t->program, &type.at[i], k, &chunk);
         k++)
      if (t->program->chunks[chunk].record)
        return true;
  return false;
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
          v->addressed || !is_pure(t, value, false, false) ||
          (!s->value.n && is_record(t, v->type)))
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
      /* The threads of a strip leave a loop with a jump one by one. */
      bool same = uniform && is_pure(t, s->cond, false, false) &&
                  !(t->strips && cgl_tree_is_left(s));
      /* The lanes of a warp that come here come together. */
      const bool warp = s->sync == SYNC_WARP && !t->strips;
      const bool together = same || warp;
      walk(t, s->init, uniform, c);
      walk(t, s->head, together, c);
      drop_assigned(t, s->cond, c);
      walk_step(t, s->step, same, c);
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


/* Is the variable known where constants are declared? */
static bool is_known(const variable *v) {
  return v->constant || v->alias || cgl_tree_is_argument(v);
}


/* Past the sizeof(...) at i, of what is declared beside constants or has a type
   there; or i. */
static size_t past_size(const tree *t, row r, size_t i) {
  if (i + 1 >= r.n || !cgl_token_is(&r.at[i], "sizeof") ||
      !cgl_token_is(&r.at[i + 1], "("))
    return i;
  const size_t end = cgl_tokens_close(r.at, r.n, i + 1);
  for (size_t k = i + 2; k < end; k++) {
    const variable *v = cgl_tree_find(t, &r.at[k]);
    if (v && !is_known(v) && !v->parameter &&
        (v->is_auto || v->reference || v->lambda || v->dynamic))
      return i;
  }
  return end;
}


/* Has the value of what is constexpr no variable in it that is declared behind
   constants?  What else there is in it is constant, as the language says. */
static bool is_of_constants(const tree *t, row r) {
  for (size_t i = 0; i < r.n; i++) {
    const size_t end = past_size(t, r, i);
    const variable *v = end > i ? NULL : cgl_tree_find(t, &r.at[i]);
    if (v && !is_known(v))
      return false;
    i = end > i ? end - 1 : i;
  }
  return true;
}


/* `list`: of an array, in braces. */
static bool is_literal(tree *t, row r, bool list) {
  for (size_t i = 0; i < r.n; i++) {
    const size_t end = past_size(t, r, i);
    if (end > i) {
      i = end - 1;
      continue;
    }
    const variable *v = cgl_tree_find(t, &r.at[i]);
    if (r.at[i].kind == CGL_TOKEN_NAME && !cgl_token_is_type_word(&r.at[i]) &&
        !(v ? is_known(v) : cgl_values_is_constant(t, &r.at[i])) &&
        !cgl_token_is_any(&r.at[i], "sizeof", "warpSize"))
      return false;
    if (cgl_token_is_any(&r.at[i], list ? "[" : "{", "["))
      return false;
  }
  return true;
}


/* Is the constant of the source of a type that words of the language name? */
static bool is_number(tree *t, const cgl_token *name) {
  size_t chunk;
  if (!cgl_values_is_constant(t, name) ||
      !cgl_reach_chunk(t->program, name, 0, &chunk))
    return false;
  const cgl_chunk *c = &t->program->chunks[chunk];
  for (size_t i = 0; i < c->count; i++) {
    if (cgl_token_same(&c->at[i], name))
      return true;
    if (!cgl_token_is_type_word(&c->at[i]) &&
        !cgl_token_is_any(&c->at[i], "static", "constexpr"))
      return false;
  }
  return false;
}


static bool is_number_value(tree *t, row r, int depth);

/* What a variable of the type is; unknown where that is a value's own. */
static cgl_parameter read_type(tree *t, row type, const cgl_token *name) {
  cgl_parameter p = {.kind = CGL_KIND_UNKNOWN};
  row all = cgl_tree_copy(t, type.at ? type.at : name, type.n + 1);
  if (t->failed)
    return p;
  all.at[type.n] = *name;
  t->failed |=
      cgl_parameter_read(t->aliases, all.at, type.n + 1, t->arena, &p) != 0;
  return p;
}


/* Is a type that the kernel names for itself that of a number's expression? */
static bool is_number_alias(tree *t, row type, int depth) {
  const variable *v = NULL;
  for (size_t i = 0; i < type.n; i++)
    if (!cgl_token_is_type_word(&type.at[i])) {
      if (v)
        return false;
      v = cgl_tree_find(t, &type.at[i]);
      if (!v || !v->alias || !v->is_auto)
        return false;
    }
  return v && depth < 8 && is_number_value(t, v->value, depth + 1);
}


static bool is_number_type(tree *t, const variable *v, int depth) {
  if (cgl_tree_is_fundamental(v->type) || is_number_alias(t, v->type, depth))
    return true;
  const cgl_parameter p = read_type(t, v->type, &v->name);
  return !p.pointer && p.lanes <= 1 && p.kind >= CGL_KIND_BOOL &&
         p.kind <= CGL_KIND_DOUBLE && p.kind != CGL_KIND_HALF &&
         p.kind != CGL_KIND_BFLOAT16;
}


/* Is the value of an `auto` a number, or a pointer to such? */
static bool is_number_value(tree *t, row r, int depth) {
  for (size_t i = 0; i < r.n; i++) {
    const cgl_token *x = &r.at[i];
    if (cgl_token_is(x, "sizeof") && i + 1 < r.n &&
        cgl_token_is(&r.at[i + 1], "(")) {
      i = cgl_tokens_close(r.at, r.n, i + 1) - 1;
      continue;
    }
    if (x->kind == CGL_TOKEN_STRING ||
        cgl_token_is_any(x, "{", "::", "->", "."))
      return false;
    if (x->kind != CGL_TOKEN_NAME || cgl_token_is_type_word(x) ||
        cgl_token_is_any(x, "true", "false", "warpSize"))
      continue;
    if (cgl_token_is_any(x, "min", "max", "abs") &&
        !cgl_reach_declares(t->program, x))
      continue;
    if (cgl_token_is_position(x) && i + 2 < r.n &&
        cgl_token_is(&r.at[i + 1], ".")) {
      i += 2;
      continue;
    }
    const variable *v = cgl_tree_find(t, x);
    if (v ? v->alias || v->lambda || v->reference ||
                !(v->is_auto
                      ? depth < 8 && v->value.n > 1 &&
                            is_number_value(
                                t, cgl_row_slice(v->value, 1, v->value.n),
                                depth + 1)
                      : is_number_type(t, v, depth))
          : !is_number(t, x))
      return false;
  }
  return r.n > 0;
}


bool cgl_values_is_closed(tree *t, const variable *v) {
  if (v->alias || v->lambda)
    return false;
  if (v->is_auto)
    return v->value.n < 2 || !cgl_token_is(v->value.at, "=") ||
           !is_number_value(t, cgl_row_slice(v->value, 1, v->value.n), 0);
  if (cgl_values_is_reference(t, v->type))
    return true;
  const cgl_parameter p = read_type(t, v->type, &v->name);
  return !p.pointer &&
         (p.kind == CGL_KIND_UNKNOWN
              ? !is_number_alias(t, v->type, 0)
              : p.kind == CGL_KIND_STRUCT || p.kind == CGL_KIND_PHILOX ||
                    p.kind == CGL_KIND_HALF || p.kind == CGL_KIND_BFLOAT16 ||
                    (p.lanes > 1 && t->references));
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


/* Is it one number or one pointer, in a source whose functions might change it
   by reference? */
static bool is_guarded(tree *t, const variable *v) {
  if (!t->references || v->alias || v->lambda || v->reference || v->dims.n ||
      v->closed)
    return false;
  return v->is_auto || read_type(t, v->type, &v->name).lanes <= 1;
}


/* Finds what is assigned and addressed, anew. */
static void find_uses(tree *t) {
  for (variable *v = t->variables; v; v = v->next) {
    v->assigned = v->changed = false;
    v->addressed = cgl_values_points_inward(t, v);
    v->closed = !v->shared &&
                !(v->home && v->home->kind == STATEMENT_BARRIER) &&
                cgl_values_is_closed(t, v);
    v->guarded = is_guarded(t, v);
  }
  cgl_values_each(t, t->body, see_uses, NULL);
}


void cgl_values_find(tree *t) {
  find_uses(t);
  if (!t->strips)
    cgl_effects_split(t, &t->body);
  find_uses(t);
  for (variable *v = t->variables; v; v = v->next)
    if (v->lambda && v->home)
      cgl_values_each(t, v->home->next, see_captured, v);
  for (variable *v = t->variables; v; v = v->next) {
    bool constant = v->constant;
    for (size_t i = 0; i < v->type.n; i++)
      constant |= cgl_token_is(&v->type.at[i], "const");
    /* A loop's text has `name =` of what it declares. */
    bool plain = v->value.n > 1 && (!v->assigned || v->constant) &&
                 !v->addressed && !v->constructed && !v->reference &&
                 (!v->dims.n || v->constant);
    row value = {v->value.at + 1, v->value.n ? v->value.n - 1 : 0};
    v->constant = constant && plain && !v->shared &&
                  (is_literal(t, value, v->dims.n > 0) ||
                   (v->constant && !v->dims.n && is_of_constants(t, value)));
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
          v->parameter || v->alias || v->lambda || v->is_auto || !value.n ||
          !is_pure(t, value, true, true))
        continue;
      v->again = c.again = true;
    }
  }
}
