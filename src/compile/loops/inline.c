/* Barriers, warp operations and calls of functions with either, each as a
   statement of its own, in front of the statement that it stood in. */
#include <stdlib.h>
#include <string.h>

#include "compile/loops/inline_private.h"

#define MAX_DEPTH 8 /* of calls */
#define MOST_INLINED \
  1000 /* tokens for the sake of strips: compiles stay short */


void cgl_inline_put(statement ***tail, statement *s) {
  **tail = s;
  while (s->next)
    s = s->next;
  *tail = &s->next;
}


/* The end of the list element at i: its comma, or n. */
static size_t element_end(row r, size_t i) {
  while (i < r.n && !cgl_token_is(&r.at[i], ","))
    i = cgl_tokens_past(r.at, r.n, i);
  return i;
}


size_t cgl_inline_split(row r, row *out, size_t most) {
  size_t n = 0;
  for (size_t i = 0; i < r.n && n < most; n++) {
    size_t end = element_end(r, i);
    out[n] = cgl_row_slice(r, i, end);
    i = end + 1;
  }
  return n;
}


/* Replaces r[from..to) by `with`, or by nothing. */
static void replace(tree *t, row *r, size_t from, size_t to,
                    const cgl_token *with) {
  row made = cgl_tree_copy(t, r->at, r->n);
  size_t n = from;
  if (t->failed)
    return;
  if (with)
    made.at[n++] = *with;
  memcpy(&made.at[n], &r->at[to], (r->n - to) * sizeof *made.at);
  made.n = n + r->n - to;
  *r = made;
}


/* ---- masks ---- */

static bool is_ones(row r) {
  char text[32] = "";
  size_t n = 0;
  for (size_t i = 0; i < r.n; i++) {
    if (cgl_token_is_any(&r.at[i], "(", ")", "unsigned", "int"))
      continue;
    if (n + r.at[i].length + 1 > sizeof text)
      return false;
    memcpy(text + n, r.at[i].text, r.at[i].length);
    n += r.at[i].length;
    text[n] = 0;
  }
  if (!strcmp(text, "-1") || !strcmp(text, "~0") || !strcmp(text, "~0u") ||
      !strcmp(text, "~0U"))
    return true;
  char *end = text;
  return n && strtoull(text, &end, 0) == 0xffffffffu &&
         end[strspn(end, "uUlL")] == 0;
}


/* A mask of all lanes: a number, or a constant that is one. */
static bool is_full(tree *t, row mask) {
  size_t chunk;
  if (is_ones(mask))
    return true;
  if (mask.n != 1 || !cgl_reach_chunk(t->program, mask.at, 0, &chunk))
    return false;
  const cgl_chunk *c = &t->program->chunks[chunk];
  bool constant = false;
  for (size_t i = 0; i + 1 < c->count; i++) {
    constant |= cgl_token_is_any(&c->at[i], "const", "constexpr");
    if (constant && cgl_token_same(&c->at[i], mask.at) &&
        cgl_token_is(&c->at[i + 1], "=")) {
      row rest = cgl_tree_copy(t, &c->at[i + 2], c->count - i - 2);
      size_t end = element_end(rest, 0);
      while (end && cgl_token_is_any(&rest.at[end - 1], ";"))
        end--;
      return is_ones(cgl_row_slice(rest, 0, end));
    }
  }
  return false;
}


/* Gives a lambda that is an argument a name. */
static void name_lambda(tree *t, row *argument, statement ***tail) {
  if (!argument->n || cgl_tree_lambda(*argument, 0) != argument->n)
    return;
  cgl_token name = cgl_tree_token(t, argument->at, "cgl_lambda_%d", ++t->ids);
  cgl_token type = cgl_tree_token(t, argument->at, "auto");
  statement *s =
      cgl_tree_declare_value(t, &name, cgl_tree_copy(t, &type, 1), *argument);
  s->variable->lambda = true;
  cgl_inline_put(tail, s);
  *argument = cgl_tree_copy(t, &name, 1);
}


/* ---- warp operations and barriers ---- */

static bool is_barrier_word(const cgl_token *t) {
  return cgl_token_is_any(t, "__syncthreads", "__syncthreads_count",
                          "__syncthreads_and", "__syncthreads_or");
}


static bool is_warp_word(const cgl_token *t) {
  return t->length > 5 && !memcmp(t->text, "__", 2) &&
         (!memcmp(t->text + t->length - 5, "_sync", 5) ||
          cgl_token_is_any(t, "__syncwarp", "__activemask"));
}


static void hoist_barrier(tree *t, row *r, size_t i, size_t end,
                          statement ***tail) {
  statement *s = cgl_tree_new(t, STATEMENT_BARRIER);
  s->op = r->at[i];
  s->all = cgl_row_slice(*r, i + 2, end - 1);
  if (cgl_token_is(&s->op, "__syncthreads")) {
    if (i || end + 1 != r->n || s->all.n)
      cgl_tree_refuse(t, &s->op, "__syncthreads() inside an expression");
    replace(t, r, i, end, NULL);
  } else {
    cgl_token name = cgl_tree_token(t, &s->op, "cgl_q_%d", ++t->ids);
    s->variable = cgl_tree_declare(t, &name);
    cgl_token type = cgl_tree_token(t, &s->op, "int");
    s->variable->type = cgl_tree_copy(t, &type, 1);
    s->variable->uniform = true;
    s->variable->assigned = true;
    s->variable->home = s;
    replace(t, r, i, end, &name);
  }
  cgl_inline_put(tail, s);
}


static void hoist_warp(tree *t, row *r, size_t i, size_t end,
                       statement ***tail) {
  statement *s = cgl_tree_new(t, STATEMENT_WARP);
  row args[5];
  row inside = cgl_row_slice(*r, i + 2, end - 1);
  size_t n = cgl_inline_split(inside, args, 5);
  s->op = r->at[i];
  s->id = ++t->ids;
  bool wait = cgl_token_is(&s->op, "__syncwarp");
  bool active = cgl_token_is(&s->op, "__activemask");
  const size_t group = cgl_tree_is_group(&s->op);
  bool shuffle = !memcmp(s->op.text, "__shfl", 6) || group;
  if (wait || active ? n > wait : shuffle ? n < 3 + group || n > 4 : n != 2) {
    cgl_tree_refuse(t, &s->op, "%.*s with %zu arguments", (int)s->op.length,
                    s->op.text, n);
    return;
  }
  if (n && !is_full(t, args[0]))
    s->mask = args[0];
  if (wait && (i || end + 1 != r->n))
    cgl_tree_refuse(t, &s->op, "__syncwarp() inside an expression");
  if (n > 1)
    s->all = args[1];
  if (group)
    name_lambda(t, &args[2], tail);
  if (n > 2)
    s->cond = args[2];
  if (n > 3)
    s->step = args[3];
  if (wait)
    replace(t, r, i, end, NULL);
  else {
    bool each =
        shuffle || s->mask.n || cgl_token_is(&s->op, "__match_any_sync");
    cgl_token name = cgl_tree_token(t, &s->op,
                                    active ? "cgl_b_%d"
                                    : each ? "cgl_q_%d[cgl_l]"
                                           : "cgl_q_%d",
                                    s->id);
    replace(t, r, i, end, &name);
  }
  cgl_inline_put(tail, s);
}


/* ---- functions ---- */

/* A lambda that synchronizes, as a function. */
static void read_lambda(tree *t, const variable *v, function *out) {
  row value = cgl_tree_copy(t, v->value.at + 1, v->value.n - 1);
  size_t open = cgl_tokens_close(value.at, value.n, 0), close = open;
  if (cgl_token_is(&value.at[open], "(")) {
    close = cgl_tokens_close(value.at, value.n, open);
    out->parameters = cgl_row_slice(value, open + 1, close - 1);
  }
  size_t body = close;
  while (!cgl_token_is(&value.at[body], "{"))
    body++;
  out->body = cgl_row_slice(value, body + 1, value.n - 1);
  out->body_origin = v->origin ? v->origin + 3 + body : NULL;
  for (; close < body; close++)
    if (cgl_token_is(&value.at[close], "->"))
      out->type = cgl_row_slice(value, close + 1, body);
  cgl_token type = cgl_tree_token(
      t, &v->name, cgl_tree_returns(out->body) ? "auto" : "void");
  if (!out->type.n)
    out->type = cgl_tree_copy(t, &type, 1);
}


void cgl_inline_rename(row r, const cgl_token *old, const cgl_token *name) {
  cgl_token was = *old;
  for (size_t i = 0; i < r.n; i++)
    if (cgl_tree_is_name(r, i) && cgl_token_same(&r.at[i], &was)) {
      r.at[i].text = name->text;
      r.at[i].length = name->length;
      r.at[i].kind = name->kind;
    }
}


statement *cgl_tree_declare_value(tree *t, const cgl_token *name, row type,
                                  row value) {
  statement *s = cgl_tree_new(t, STATEMENT_DECLARATION);
  variable *v = cgl_tree_declare(t, name);
  cgl_token equal = cgl_tree_token(t, name, "=");
  equal.kind = CGL_TOKEN_PUNCT;
  s->value = cgl_tree_copy(t, value.at ? value.at : &equal, value.n + 1);
  if (t->failed)
    return s;
  s->value.n = value.n + 1;
  s->value.at[0] = equal;
  if (value.n)
    memcpy(&s->value.at[1], value.at, value.n * sizeof equal);
  v->type = type;
  v->value = s->value;
  v->is_auto = type.n == 1 && cgl_token_is(type.at, "auto");
  v->home = s;
  s->variable = v;
  return s;
}


variable *cgl_inline_lambda(const tree *t, row r) {
  variable *v = r.n == 1 ? cgl_tree_find(t, r.at) : NULL;
  return v && v->lambda ? v : NULL;
}


/* Is the argument an object that is made for the call, as in f(plus())? */
static bool is_made(tree *t, row r) {
  size_t chunk;
  return r.n > 2 && r.at->kind == CGL_TOKEN_NAME && !cgl_tree_find(t, r.at) &&
         cgl_token_is_any(&r.at[1], "(", "{") &&
         cgl_tokens_close(r.at, r.n, 1) == r.n &&
         (cgl_token_is_known_type(r.at) ||
          (cgl_reach_chunk(t->program, r.at, 0, &chunk) &&
           t->program->chunks[chunk].record));
}


/* Takes the & of a parameter away, which has a name: its tokens, as are left.
 */
static size_t drop_reference(row parameter, size_t n) {
  if (n > 2 && cgl_token_is_any(&parameter.at[n - 2], "&", "&&"))
    parameter.at[n - 2] = parameter.at[n - 1], n--;
  return n;
}


/* The name of a parameter that is rows, as float a[][32], float (*a)[32] or
   float (&a)[8][32], or that refers to an array; NULL of others. */
static const cgl_token *rows_name(row p) {
  size_t open = 0;
  while (open < p.n && !cgl_token_is(&p.at[open], "["))
    open++;
  if (open < 2 || open >= p.n)
    return NULL;
  const cgl_token *before = &p.at[open - 1];
  if (before->kind == CGL_TOKEN_NAME) {
    const size_t close = cgl_tokens_close(p.at, p.n, open);
    return close < p.n && cgl_token_is(&p.at[close], "[") ? before : NULL;
  }
  return open > 4 && cgl_token_is(before, ")") &&
                 before[-1].kind == CGL_TOKEN_NAME &&
                 cgl_token_is_any(&before[-2], "*", "&") &&
                 cgl_token_is(&before[-3], "(")
             ? before - 1
             : NULL;
}


/* Is the name given to nothing, nor asked for its size? */
static bool is_fixed(row body, const cgl_token *name) {
  for (size_t i = 0; i < body.n; i++)
    if (cgl_token_is(&body.at[i], "sizeof") ||
        (cgl_tree_is_name(body, i) && cgl_token_same(&body.at[i], name) &&
         ((i + 1 < body.n && cgl_token_is_assignment(&body.at[i + 1])) ||
          (i && cgl_tree_is_step(&body.at[i - 1])))))
      return false;
  return true;
}


/* A parameter as a variable that begins with the argument, or as another name
   of the variable that it refers to, or whose rows it is given. */
static void bind_parameter(tree *t, row parameter, row argument, row body,
                           statement ***tail) {
  const cgl_token *rows = rows_name(parameter);
  const variable *all =
      rows && argument.n == 1 ? cgl_tree_find(t, argument.at) : NULL;
  if (all && all->shared && all->dims.n && is_fixed(body, rows)) {
    cgl_inline_rename(body, rows, argument.at);
    return;
  }
  size_t n = parameter.n;
  const bool array = n > 3 && cgl_token_is(&parameter.at[n - 1], "]");
  while (array && n > 1 && !cgl_token_is(&parameter.at[n - 1], "["))
    n--;
  n -= array;
  if (n < 2 || parameter.at[n - 1].kind != CGL_TOKEN_NAME) {
    cgl_tree_refuse(t, argument.n ? argument.at : parameter.at,
                    "a parameter that is not understood");
    return;
  }
  cgl_token name = parameter.at[n - 1];
  const variable *lambda = cgl_inline_lambda(t, argument);
  if (lambda) {
    cgl_inline_rename(body, &name, &lambda->name);
    return;
  }
  if (is_made(t, argument))
    n = drop_reference(parameter, n);
  for (size_t i = 0; i + 1 < n; i++)
    if (cgl_token_is_any(&parameter.at[i], "&", "&&", "=", "[", "(")) {
      if (!cgl_token_is(&parameter.at[i], "&") || argument.n != 1 ||
          argument.at->kind != CGL_TOKEN_NAME)
        cgl_tree_refuse(t, &argument.at[0],
                        "an argument that is not a variable, for a reference");
      else
        cgl_inline_rename(body, &name, argument.at);
      return;
    }
  cgl_token own = cgl_tree_token(t, &name, "%.*s__%d", (int)name.length,
                                 name.text, ++t->ids);
  cgl_inline_rename(body, &name, &own);
  row type = cgl_tree_copy(t, parameter.at, n);
  if (t->failed)
    return;
  type.n = n - 1;
  if (array) {
    type.at[type.n] = cgl_tree_token(t, &name, "*");
    type.at[type.n++].kind = CGL_TOKEN_PUNCT;
  }
  cgl_inline_put(tail, cgl_tree_declare_value(t, &own, type, argument));
}


/* Takes the arguments that the call leaves out from the parameters, which are
   left without; false when one has none. */
static bool take_defaults(row *parameters, row *args, size_t given, size_t n) {
  for (size_t k = 0; k < n; k++) {
    const size_t equal = cgl_row_find(parameters[k], "=", "=");
    if (k >= given)
      args[k] = cgl_row_slice(parameters[k], equal + 1, parameters[k].n);
    if (!args[k].n)
      return false;
    parameters[k].n = equal;
  }
  return given <= n;
}


/* Makes the `return e;` that ends the body the declaration of a result. */
static bool take_result(tree *t, const cgl_token *call, row type, row body,
                        statement **list, cgl_token *result) {
  bool empty = type.n == 1 && cgl_token_is(type.at, "void");
  statement **last = list;
  while (*last && (*last)->next)
    last = &(*last)->next;
  size_t returns = cgl_tree_returns(body);
  if (empty && !returns)
    return true;
  if (empty || returns != 1 || !*last || (*last)->kind != STATEMENT_PLAIN ||
      !(*last)->all.n || !cgl_token_is((*last)->all.at, "return")) {
    cgl_tree_refuse(
        t, call,
        "a call of '%.*s', which synchronizes and returns before its "
        "end",
        (int)call->length, call->text);
    return false;
  }
  row value = (*last)->all;
  *result = cgl_tree_token(t, call, "cgl_r_%d", ++t->ids);
  *last = cgl_tree_declare_value(t, result, type,
                                 cgl_row_slice(value, 1, value.n - 1));
  return true;
}


static void hoist_call(tree *t, row *r, size_t i, size_t open, size_t end,
                       statement ***tail) {
  const cgl_token call = r->at[i];
  function f = {0};
  row parameters[CGL_MOST_PARAMETERS], args[CGL_MOST_PARAMETERS];
  const size_t passed = cgl_inline_split(cgl_row_slice(*r, open + 1, end - 1),
                                         args, CGL_MOST_PARAMETERS);
  if (i && cgl_token_is_any(&r->at[i - 1], ".", "->", "::")) {
    cgl_tree_refuse(t, &call,
                    "a call of '%.*s', a member or of a namespace, which "
                    "synchronizes",
                    (int)call.length, call.text);
    return;
  }
  const variable *lambda = cgl_tree_find(t, &call);
  if (lambda)
    read_lambda(t, lambda, &f);
  else if (!cgl_inline_find(t, &call, passed, &f)) {
    cgl_tree_refuse(
        t, &call,
        "a call of '%.*s', which synchronizes and is overloaded or a "
        "member",
        (int)call.length, call.text);
    return;
  }
  size_t n = cgl_inline_split(f.parameters, parameters, CGL_MOST_PARAMETERS);
  if (n == 1 && parameters[0].n == 1 && cgl_token_is(parameters[0].at, "void"))
    n = 0;
  if (!take_defaults(parameters, args, passed, n) || n == CGL_MOST_PARAMETERS ||
      t->depth == MAX_DEPTH) {
    cgl_tree_refuse(t, &call,
                    "a call of '%.*s' with other arguments, or too deep",
                    (int)call.length, call.text);
    return;
  }
  cgl_inline_check_call(t, *r, i, end, parameters, n);
  if (t->why)
    return;
  t->inlined += f.body.n;
  if (t->strips && t->inlined > MOST_INLINED) {
    cgl_tree_refuse(t, &call, "too much in functions");
    return;
  }
  for (size_t k = 0; k < n; k++)
    name_lambda(t, &args[k], tail);
  for (variable *v = t->variables; v && !lambda; v = v->next) {
    cgl_token other = cgl_tree_token(t, &call, "%.*s__%d", (int)v->name.length,
                                     v->name.text, ++t->ids);
    cgl_inline_rename_in(&f, &v->name, &other);
    cgl_inline_rename(f.templates, &v->name, &other);
  }
  if (f.templates.n) {
    row given = open > i + 1
                    ? cgl_inline_angle(t, cgl_row_slice(*r, 0, open), i + 2)
                    : (row){NULL, 0};
    cgl_inline_bind_template(t, &call, &f, given, parameters, args, n, tail);
    cgl_inline_split(f.parameters, parameters, CGL_MOST_PARAMETERS);
    take_defaults(parameters, args, n, n);
  }
  for (size_t k = 0; k < n && !t->why; k++)
    bind_parameter(t, parameters[k], args[k], f.body, tail);
  const cgl_token *origin = t->origin, *copy = t->copy;
  int loops = t->loops;
  t->origin = f.body_origin;
  t->copy = f.body.at;
  t->loops = 0;
  t->depth++;
  statement *list = cgl_tree_read(t, f.body);
  cgl_token result = {0};
  if (!t->why &&
      take_result(t, &call, cgl_inline_type(f.type), f.body, &list, &result)) {
    cgl_tree_inline(t, &list);
    if (list)
      cgl_inline_put(tail, list);
    replace(t, r, i, end, result.text ? &result : NULL);
  }
  t->depth--;
  t->loops = loops;
  t->origin = origin;
  t->copy = copy;
}


/* ---- statements ---- */

/* The call of whose template's arguments the name at i is one, or i. */
static size_t find_instance(row r, size_t i) {
  for (size_t k = 0; k + 1 < i; k++)
    if (r.at[k].kind == CGL_TOKEN_NAME && cgl_token_is(&r.at[k + 1], "<")) {
      const size_t end = cgl_tokens_close_angle(r.at, r.n, k + 1);
      if (end > i && end < r.n && cgl_token_is(&r.at[end], "("))
        return k;
    }
  return i;
}


/* The last call of the row that synchronizes, or n. */
static size_t find_call(tree *t, row r) {
  for (size_t i = r.n; i-- > 0;)
    if (r.at[i].kind == CGL_TOKEN_NAME) {
      const variable *v = cgl_tree_find(t, &r.at[i]);
      if (v ? v->function : cgl_tree_sync_at(t, r, i) != 0)
        return i + 1 < r.n && cgl_token_is_any(&r.at[i + 1], ",", ">")
                   ? find_instance(r, i)
                   : i;
    }
  return r.n;
}


static void hoist(tree *t, row *r, statement ***tail) {
  for (int steps = 0; steps < 64 && !t->why && !t->failed; steps++) {
    size_t i = find_call(t, *r);
    if (i == r->n)
      return;
    const cgl_token *x = &r->at[i];
    size_t open = i + 1;
    if (open < r->n && cgl_token_is(&r->at[open], "<"))
      open = cgl_tokens_close_angle(r->at, r->n, open);
    if (open >= r->n || !cgl_token_is(&r->at[open], "(")) {
      cgl_tree_refuse(t, x,
                      "'%.*s', which synchronizes and is not plainly called",
                      (int)x->length, x->text);
      return;
    }
    size_t end = cgl_tokens_close(r->at, r->n, open);
    cgl_inline_check(t, *r, i, end);
    if (t->why)
      return;
    if (is_barrier_word(x))
      hoist_barrier(t, r, i, end, tail);
    else if (is_warp_word(x))
      hoist_warp(t, r, i, end, tail);
    else
      hoist_call(t, r, i, open, end, tail);
  }
  if (!t->why)
    cgl_tree_refuse(t, r->at, "too many operations in a statement");
}


static void refuse_sync(tree *t, row r) {
  size_t i = find_call(t, r);
  if (i < r.n)
    cgl_tree_refuse(t, &r.at[i], "'%.*s' in the header of a loop",
                    (int)r.at[i].length, r.at[i].text);
}


/* A class made with a function that synchronizes may call it. */
static void check_type(tree *t, row type) {
  size_t chunk;
  for (size_t i = 0; i + 1 < type.n; i++)
    if (cgl_token_is_any(&type.at[i + 1], ",", ">") &&
        cgl_reach_chunk(t->program, &type.at[i], 0, &chunk) &&
        !t->program->chunks[chunk].record && cgl_tree_sync(t, &type.at[i], 1))
      cgl_tree_refuse(t, &type.at[i], "'%.*s' in a type",
                      (int)type.at[i].length, type.at[i].text);
}


/* Does the list synchronize, declare or jump? */
static bool is_plain_list(tree *t, const statement *list) {
  for (; list; list = list->next)
    if (list->kind != STATEMENT_PLAIN || cgl_tree_returns(list->all) ||
        cgl_tree_sync(t, list->all.at, list->all.n))
      return false;
  return true;
}


/* The text of an `if` with its condition as that is now. */
static void renew_condition(tree *t, statement *s) {
  const size_t open = 1 + cgl_token_is(&s->all.at[1], "constexpr");
  const size_t close = cgl_tokens_close(s->all.at, s->all.n, open);
  row made = cgl_tree_copy(t, s->all.at, s->all.n + s->cond.n);
  if (t->failed)
    return;
  memcpy(&made.at[open + 1], s->cond.at, s->cond.n * sizeof *made.at);
  memcpy(&made.at[open + 1 + s->cond.n], &s->all.at[close - 1],
         (s->all.n - close + 1) * sizeof *made.at);
  made.n = open + 1 + s->cond.n + s->all.n - close + 1;
  s->all = made;
}


/* if (__shfl_sync(...) > 3) v = 0; is a thread's own, when the operation has
   been made: the statement with the condition that names its result.  So it is
   behind a barrier that gives one; `barrier`. */
static void join_branch(tree *t, statement *s, bool barrier) {
  bool each = barrier;
  for (size_t i = 0; i < s->cond.n; i++)
    each |= s->cond.at[i].length > 8 &&
            !memcmp(s->cond.at[i].text, "cgl_q_", 6) &&
            memchr(s->cond.at[i].text, '[', s->cond.at[i].length);
  if (!each || cgl_token_is(&s->all.at[1], "constexpr") ||
      !is_plain_list(t, s->body) || !is_plain_list(t, s->otherwise))
    return;
  s->kind = STATEMENT_PLAIN;
  s->cond = (row){NULL, 0};
  s->body = s->otherwise = NULL;
}


/* Moves the variables behind `from` in front of v, whose value names them: what
   is computed again is so in their order. */
static void place_before(tree *t, variable **from, const variable *v) {
  variable **at = &t->variables, *first = *from;
  while (*at && *at != v)
    at = &(*at)->next;
  if (!first || !*at)
    return;
  *t->last = *at;
  *at = first;
  *from = NULL;
  t->last = from;
}


void cgl_tree_inline(tree *t, statement **list) {
  statement *s = *list, *next;
  statement **tail = list;
  *list = NULL;
  for (; s && !t->why && !t->failed; s = next) {
    next = s->next;
    s->next = NULL;
    bool used = false;    /* names what a warp operation gives */
    bool barrier = false; /* the condition names what a barrier gives */
    statement **before = tail;
    if (s->kind == STATEMENT_DECLARATION) {
      variable **last = t->last;
      check_type(t, s->variable->type);
      hoist(t, &s->value, &tail);
      place_before(t, last, s->variable);
      s->variable->value = s->value;
      for (statement *p = *before; p; p = p->next)
        used |= p->kind == STATEMENT_WARP;
    } else if (s->kind == STATEMENT_PLAIN) {
      hoist(t, &s->all, &tail);
      for (statement *p = *before; p; p = p->next)
        used |= p->kind == STATEMENT_WARP;
      if (s->all.n == 0 || cgl_token_is(s->all.at, ";"))
        continue;
    } else if (s->kind == STATEMENT_IF) {
      hoist(t, &s->cond, &tail);
      if (*before && !t->failed)
        renew_condition(t, s);
      for (statement *p = *before; p; p = p->next) {
        used |= p->kind == STATEMENT_WARP;
        barrier |= p->kind == STATEMENT_BARRIER;
      }
    } else if (s->kind == STATEMENT_FOR || s->kind == STATEMENT_WHILE ||
               s->kind == STATEMENT_DO) {
      for (statement *p = s->init; p; p = p->next)
        refuse_sync(t, p->kind == STATEMENT_DECLARATION ? p->value : p->all);
      statement **head = &s->head;
      hoist(t, &s->cond, &head);
      refuse_sync(t, s->step);
    }
    s->sync |= used ? SYNC_WARP : 0;
    if (s->kind == STATEMENT_IF && (used || barrier))
      join_branch(t, s, barrier);
    s->common |= barrier && s->kind == STATEMENT_IF;
    cgl_tree_inline(t, &s->body);
    cgl_tree_inline(t, &s->otherwise);
    cgl_inline_put(&tail, s);
  }
}
