/* What may change a variable: assignments, references to it, its address. */
#include <string.h>

#include "compile/loops/loops_private.h"


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
  return k < r.n && (cgl_token_is_assignment(&r.at[k]) ||
                     (k > i + 1 && cgl_token_is(&r.at[k], "(")));
}


/* Ends an argument with the name, its members and elements? */
static bool is_argument(row r, size_t i) {
  size_t k = i + 1;
  while (k < r.n && cgl_token_is_any(&r.at[k], "[", ".", "->"))
    k = cgl_token_is(&r.at[k], "[") ? cgl_tokens_close(r.at, r.n, k) : k + 2;
  return k < r.n && cgl_token_is_any(&r.at[k], ")", ",", "}");
}


/* The bracket that is open at i: its place, or n. */
static size_t find_bracket(row r, size_t i) {
  size_t depth = 0;
  while (i-- > 0)
    if (cgl_token_is_any(&r.at[i], ")", "]", "}"))
      depth++;
    else if (cgl_token_is_any(&r.at[i], "(", "[", "{") && !depth--)
      return i;
  return r.n;
}


/* Stands i in parentheses that are assigned to, as in (c ? a : b) = 1, or in
   ++(c ? a : b)? */
static bool is_in_target(row r, size_t i) {
  size_t depth = 0;
  for (size_t open = i; (open = find_bracket(r, open)) < r.n;)
    if (!cgl_token_is(&r.at[open], "("))
      break;
    else if (open && cgl_token_is_any(&r.at[open - 1], "++", "--"))
      return true;
  for (size_t k = i + 1; k < r.n; k++) {
    if (cgl_token_is_any(&r.at[k], "(", "["))
      depth++;
    else if (cgl_token_is_any(&r.at[k], "]") && depth)
      depth--;
    else if (cgl_token_is(&r.at[k], ")")) {
      if (depth)
        depth--;
      else if (k + 1 < r.n && cgl_token_is_assignment(&r.at[k + 1]))
        return true;
    } else if (cgl_token_is_any(&r.at[k], ";", "{", "}"))
      return false;
  }
  return false;
}


/* ---- references ---- */

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
  bool constant = false, pointer = false;
  if (open == n || k + 1 >= n ||
      (at[k + 1].kind != CGL_TOKEN_NAME && !cgl_token_is(&at[k + 1], "...")))
    return false;
  for (; from > open + 1; from--) {
    const cgl_token *x = &at[from - 1];
    if (cgl_token_is(x, ",") && !inside)
      break;
    inside += cgl_token_is(x, ">") - cgl_token_is(x, "<");
    pointer |= cgl_token_is(x, "*");
    constant |= cgl_token_is(x, "const") && !pointer; /* of what it points to */
    if (inside < 0 || (x->kind == CGL_TOKEN_PUNCT && !inside &&
                       !cgl_token_is_any(x, "::", "*", "<")))
      return false;
  }
  return from < k && !constant && !inside && is_parameters(at, n, open);
}


/* The source's class of that name, or NULL: classes are known by all names in
   them. */
static const cgl_chunk *find_class(const tree *t, const cgl_token *name) {
  size_t chunk;
  for (size_t k = 0; cgl_reach_chunk(t->program, name, k, &chunk); k++)
    if (cgl_sync_is_class(&t->program->chunks[chunk], name))
      return &t->program->chunks[chunk];
  return NULL;
}


/* Has the class a member `T &name;`, or with `pointers` one that is a pointer?
   Its functions' text is left out. */
static bool has_reference(const cgl_chunk *c, bool pointers) {
  size_t i = 0;
  while (i < c->count && !cgl_token_is(&c->at[i], "{"))
    i++;
  for (i++; c->record && i + 2 < c->count;)
    if (cgl_token_is_any(&c->at[i], "(", "[", "{"))
      i = cgl_tokens_close(c->at, c->count, i);
    else if ((cgl_token_is(&c->at[i], "&") ||
              (pointers && cgl_token_is(&c->at[i], "*"))) &&
             cgl_token_is_any(&c->at[i + 2], ";", "=", ",", "[", "{"))
      return true;
    else
      i++;
  return false;
}


/* Names it a reference, which then is seen nowhere else? */
static bool is_alias(const cgl_chunk *c) {
  bool sign = false;
  for (size_t k = c->count > 3 ? c->count - 3 : 0; k < c->count; k++)
    sign |= cgl_token_is_any(&c->at[k], "&", "&&");
  return sign && cgl_token_is_any(c->at, "typedef", "using");
}


bool cgl_values_is_reference(const tree *t, row type) {
  size_t chunk;
  for (size_t i = 0; i < type.n; i++)
    for (size_t k = 0; type.at[i].kind == CGL_TOKEN_NAME &&
                       cgl_reach_chunk(t->program, &type.at[i], k, &chunk);
         k++)
      if (is_alias(&t->program->chunks[chunk]))
        return true;
  return false;
}


/* Names the text from k on a reference that no parameter list shows: as
   decltype((x)), `using T = int &;` or `typedef int &T;`? */
static bool names_reference(const cgl_chunk *c, size_t k) {
  const cgl_token *x = &c->at[k];
  if (k + 2 >= c->count)
    return false;
  if (cgl_token_is(x, "decltype"))
    return cgl_token_is(x + 1, "(") && cgl_token_is(x + 2, "(");
  if (!cgl_token_is_any(x, "&", "&&") || !cgl_token_is(x + 2, ";"))
    return cgl_token_is_any(x, "&", "&&") && cgl_token_is(x + 1, ";");
  while (k && !cgl_token_is_any(&c->at[k], ";", "{", "}", "typedef"))
    k--;
  return cgl_token_is(&c->at[k], "typedef");
}


/* Does a function, or a class, take a reference to what it may change? */
static bool is_taking(const cgl_chunk *c) {
  for (size_t k = 1; k < c->count; k++)
    if (cgl_token_is_any(&c->at[k], "&", "&&") &&
        (is_reference(c->at, c->count, k) ||
         (k + 1 < c->count && cgl_token_is(&c->at[k + 1], "{"))))
      return true;
    else if (names_reference(c, k))
      return true;
  return has_reference(c, false) || is_alias(c);
}


/* Takes the class, or that of a member, what it may change? */
static bool takes(const tree *t, const cgl_chunk *c, int depth) {
  for (size_t i = 0; i < c->count && depth < 3; i++) {
    const cgl_chunk *in =
        c->at[i].kind == CGL_TOKEN_NAME ? find_class(t, &c->at[i]) : NULL;
    if (in && in != c && takes(t, in, depth + 1))
      return true;
  }
  return is_taking(c);
}


/* Is a class of the source named that takes what it may change? */
static bool may_take(const tree *t, row type) {
  for (size_t i = 0; i < type.n; i++) {
    const cgl_token *x = &type.at[i];
    const cgl_chunk *c = x->kind == CGL_TOKEN_NAME ? find_class(t, x) : NULL;
    if (c && takes(t, c, 0))
      return true;
  }
  return false;
}


/* The variable that begins with the row, with = or without; or NULL. */
static const variable *find_begun(const tree *t, row r) {
  for (const variable *v = t->variables; v; v = v->next)
    if (v->value.n && (v->value.at == r.at || v->value.at + 1 == r.at))
      return v;
  return NULL;
}


/* Takes a declaration of the name a reference to what it may change? */
static bool may_refer(const tree *t, const cgl_token *name) {
  size_t chunk;
  for (size_t k = 0; cgl_reach_chunk(t->program, name, k, &chunk); k++) {
    const cgl_chunk *c = &t->program->chunks[chunk];
    size_t body = 0;
    while (body < c->count && !cgl_token_is(&c->at[body], "{"))
      body++;
    if (c->record
            ? takes(t, c, 0)
            : is_taking(c) || may_take(t, (row){(cgl_token *)c->at, body}))
      return true;
  }
  return false;
}


/* Does what begins with the braces at `open` come from their values by a
   function?  Numbers, and rows of them, do not. */
static bool is_class_list(const tree *t, row r, size_t open) {
  const variable *begun = open < 2 ? find_begun(t, r) : NULL;
  if (begun || !open)
    return !begun || begun->is_auto || may_take(t, begun->type);
  const cgl_token *x = &r.at[open - 1];
  if (x->kind == CGL_TOKEN_NAME)
    return !cgl_token_is_any(x, "return", "else", "do") &&
           !cgl_token_is_type_word(x) && !cgl_tree_find(t, x) &&
           may_refer(t, x);
  if (!cgl_token_is(x, "=") || open < 3)
    return cgl_token_is(x, ">");
  size_t name = open - 2;
  while (name > 1 && cgl_token_is(&r.at[name], "]"))
    name = find_bracket(r, name) - 1;
  return name && r.at[name - 1].kind == CGL_TOKEN_NAME &&
         !cgl_token_is_type_word(&r.at[name - 1]) &&
         may_refer(t, &r.at[name - 1]);
}


/* The bracket of the call whose argument is at i; or n. */
static size_t find_call(row r, size_t i) {
  size_t open = i;
  do
    open = find_bracket(r, open);
  while (open < r.n && open &&
         (cgl_token_is(&r.at[open], "{")
              ? cgl_token_is_any(&r.at[open - 1], "{", "(", ",")
              : cgl_token_is(&r.at[open - 1], "(")));
  return open;
}


/* May what is called with the argument at i change it? */
static bool may_change_argument(const tree *t, row r, size_t i) {
  const size_t open = find_call(r, i);
  if (open == r.n)
    return true;
  if (!cgl_token_is(&r.at[open], "("))
    return cgl_token_is(&r.at[open], "{") && is_class_list(t, r, open);
  const cgl_token *before = open ? &r.at[open - 1] : NULL;
  if (!before) { /* T x(...); for numbers, = is written */
    const variable *begun = find_begun(t, r);
    return cgl_tokens_close(r.at, r.n, 0) == r.n &&
           (!begun || begun->is_auto || may_take(t, begun->type));
  }
  if (before->kind != CGL_TOKEN_NAME)
    return cgl_token_is_any(before, ")", "]", "}", ">", ">>", "&", "&&");
  if (cgl_token_is_any(before, "if", "while", "for", "switch", "return",
                       "sizeof") ||
      cgl_values_is_pure_call(t, before))
    return false;
  const variable *own = cgl_tree_find(t, before);
  if (own && !own->lambda && !own->is_auto && !own->alias)
    return may_take(t, own->type); /* its constructor, or an operator () */
  size_t type = open - 1;          /* T x(...) in a longer text */
  while (type && (r.at[type - 1].kind == CGL_TOKEN_NAME ||
                  cgl_token_is_any(&r.at[type - 1], "::", "<", ">")))
    type--;
  return !cgl_tree_is_name(r, open - 1) || own || may_refer(t, before) ||
         may_take(t, cgl_row_slice(r, type, open - 1));
}


static bool is_pointer(const variable *v) {
  for (size_t i = 0; i < v->type.n && !v->dims.n; i++)
    if (cgl_token_is(&v->type.at[i], "*"))
      return true;
  return false;
}


/* Is the name at i, or a part of what it names, an argument that may change?
   What a pointer points to is not the pointer. */
static bool is_given(const tree *t, row r, size_t i, bool pointer) {
  if (!t->references || !i ||
      (pointer && i + 1 < r.n && cgl_token_is_any(&r.at[i + 1], "[", "->")))
    return false;
  if (cgl_token_is_any(&r.at[i - 1], "?", ":"))
    return find_call(r, i) < r.n && may_change_argument(t, r, i);
  if (i == 1 && cgl_token_is(r.at, "=")) {
    const variable *begun = find_begun(t, r);
    return begun && !begun->is_auto && !begun->reference &&
           may_take(t, begun->type);
  }
  return cgl_token_is_any(&r.at[i - 1], "(", ",", "{") && is_argument(r, i) &&
         may_change_argument(t, r, i);
}


/* Might it keep where something is that it was given: has it a member for
   that, does it take an address, or give one? */
static bool is_keeping(const cgl_chunk *c) {
  bool gives = has_reference(c, true), open = c->record;
  for (size_t k = 1; k + 2 < c->count && !gives; k++) {
    open |= cgl_token_is_any(&c->at[k], "(", "{");
    gives = (!open && cgl_token_is_any(&c->at[k], "*", "&")) ||
            (cgl_token_is(&c->at[k], "&") &&
             cgl_token_is_any(&c->at[k - 1], "=", "(", ",", "{", "return"));
  }
  return gives;
}


/* May what the source calls by the name keep a place that it is given, itself
   or by what it calls?  A lambda's text is the kernel's own. */
static bool keeps_place(const tree *t, const cgl_token *name, int depth) {
  size_t chunk, k = 0;
  const variable *own = cgl_tree_find(t, name);
  if (own && own->lambda && !depth)
    return cgl_row_has(own->value, "&") && cgl_row_has(own->value, "*");
  for (; cgl_reach_chunk(t->program, name, k, &chunk); k++) {
    const cgl_chunk *c = &t->program->chunks[chunk];
    if (c->record && depth && find_class(t, name) != c)
      continue; /* a member's name */
    if (is_keeping(c))
      return true;
    for (size_t i = 0; i + 1 < c->count && depth < 3; i++)
      if (c->at[i].kind == CGL_TOKEN_NAME &&
          (cgl_token_is_any(&c->at[i + 1], "(", "<") ||
           find_class(t, &c->at[i])) &&
          !cgl_token_same(&c->at[i], name) &&
          keeps_place(t, &c->at[i], depth + 1))
        return true;
  }
  return !k && !depth;
}


bool cgl_values_is_kept(const tree *t, row r, const variable *v) {
  for (size_t i = 0; t->keeps && i < r.n; i++) {
    if (!cgl_tree_is_name(r, i) || !cgl_token_same(&r.at[i], &v->name) ||
        !is_given(t, r, i, is_pointer(v)))
      continue;
    const size_t open = find_call(r, i);
    if (!open || open == r.n || r.at[open - 1].kind != CGL_TOKEN_NAME ||
        keeps_place(t, &r.at[open - 1], 0))
      return true;
  }
  return false;
}


/* Notes which operand the operator at k may change: the parameters that are
   references to what is not const. */
static void find_operands(tree *t, const cgl_chunk *c, size_t k) {
  const cgl_token *symbol = &c->at[k + 1];
  size_t open = k + 1;
  while (open < c->count && !cgl_token_is_any(&c->at[open], "(", "{", ";"))
    open++;
  if (symbol->kind != CGL_TOKEN_PUNCT || open == k + 1 || open >= c->count ||
      !cgl_token_is(&c->at[open], "("))
    return;
  const size_t close = cgl_tokens_close(c->at, c->count, open);
  bool right = c->record;
  for (size_t i = open + 1; i < close; i = cgl_tokens_past(c->at, c->count, i))
    if (cgl_token_is(&c->at[i], ","))
      right = true;
    else if (cgl_token_is_any(&c->at[i], "&", "&&") &&
             is_reference(c->at, c->count, i) && t->noperands < MOST_OPERANDS)
      t->operands[t->noperands++] = (operand){symbol, right};
}


/* May the operator change what stands on that side of it? */
static bool takes_operand(const tree *t, const cgl_token *symbol, bool right) {
  for (size_t k = 0; k < t->noperands; k++)
    if (t->operands[k].right == right &&
        cgl_token_same(t->operands[k].symbol, symbol))
      return true;
  return false;
}


bool cgl_values_is_assigned(const tree *t, row r, const variable *v) {
  const cgl_token *name = &v->name;
  const bool pointer = is_pointer(v);
  if (cgl_tree_is_argument(v))
    return false;
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
    if (before && cgl_token_is(&r.at[before - 1], ">>") && t->references &&
        before < i)
      return true;
    if (t->noperands &&
        ((before && takes_operand(t, &r.at[before - 1], true)) ||
         (i + 1 < r.n && takes_operand(t, &r.at[i + 1], false))))
      return true;
    if (is_given(t, r, i, pointer))
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
  size_t first = 1; /* most rows name it nowhere, and there are many */
  while (first < r.n && !cgl_token_same(&r.at[first], name))
    first++;
  if (first >= r.n)
    return false;
  const variable *v = cgl_tree_find(t, name);
  const bool pointer = v && is_pointer(v);
  for (size_t i = first; i < r.n; i++) {
    if (!cgl_tree_is_name(r, i) || !cgl_token_same(&r.at[i], name))
      continue;
    if (pointer && i + 1 < r.n && cgl_token_is_any(&r.at[i + 1], "[", "->"))
      continue; /* of what it points to */
    size_t k = i;
    while (k > 1 && cgl_token_is_any(&r.at[k - 1], "(", "++", "--"))
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
  for (size_t i = 2; i < r.n; i++) {
    if (!cgl_tree_is_name(r, i) || !cgl_token_same(&r.at[i], name))
      continue;
    size_t k = i;
    while (k > 3 && cgl_tree_is_step(&r.at[k - 1]))
      k--;
    if (k > 2 && cgl_token_is_any(&r.at[k - 1], "=", "(", "{") &&
        r.at[k - 2].kind == CGL_TOKEN_NAME &&
        cgl_token_is_any(&r.at[k - 3], "&", "&&"))
      return true;
  }
  return false;
}


bool cgl_values_is_addressed(const tree *t, row r, const cgl_token *name) {
  return is_addressed(t, r, name) || is_bound(r, name);
}


static bool is_inward(const tree *t, const cgl_chunk *c, int depth);


/* May what has one of the names for its type point into itself? */
static bool names_inward(const tree *t, const cgl_token *at, size_t n,
                         int depth) {
  for (size_t i = 0; i < n; i++) {
    const cgl_chunk *c =
        at[i].kind == CGL_TOKEN_NAME ? find_class(t, &at[i]) : NULL;
    if (c && is_inward(t, c, depth))
      return true;
  }
  return false;
}


/* Has the class a pointer, and a way to make it one into the object: `this`, an
   address, an array?  Or a member of such a class? */
static bool is_inward(const tree *t, const cgl_chunk *c, int depth) {
  bool way = false;
  size_t i = 0;
  while (i < c->count && !cgl_token_is(&c->at[i], "{"))
    i++;
  for (size_t k = i + 1; k < c->count; k++)
    way |= cgl_token_is(&c->at[k], "this") ||
           (cgl_token_is(&c->at[k], "&") &&
            cgl_token_is_any(&c->at[k - 1], "=", "(", "{", ",", "return"));
  for (size_t k = i + 1; k + 2 < c->count; k++)
    if (cgl_token_is_any(&c->at[k], "(", "[", "{")) {
      way |= cgl_token_is(&c->at[k], "[");
      k = cgl_tokens_close(c->at, c->count, k) - 1;
    } else if (depth < 4 && names_inward(t, &c->at[k], 1, depth + 1))
      return true;
  return way && has_reference(c, true);
}


bool cgl_values_points_inward(const tree *t, const variable *v) {
  const row named = v->is_auto ? v->value : v->type;
  return !v->alias && !v->lambda && !v->shared && !v->reference &&
         !v->parameter && names_inward(t, named.at, named.n, 0);
}


/* ---- functions of the source ---- */

void cgl_values_find_functions(tree *t) {
  for (size_t i = 0; i < t->program->nchunks; i++) {
    const cgl_chunk *c = &t->program->chunks[i];
    bool kernel = false;
    for (size_t k = 0; k < c->count && !kernel; k++)
      kernel = cgl_token_is(&c->at[k], "__global__");
    t->references |= is_taking(c);
    t->keeps |= !kernel && is_keeping(c);
    for (size_t k = 0; k + 1 < c->count && !kernel; k++)
      if (cgl_token_is(&c->at[k], "operator"))
        find_operands(t, c, k);
  }
}
