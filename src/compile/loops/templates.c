/* The parameters of a template whose call is put in place: types become names
   of the kernel, by what is written at the call or by its arguments; values
   the constants, or the functions, that they are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/loops/inline_private.h"


/* The type of an argument, where the text says it: that of a variable, of an
   element, of a number; or nothing. */
static row argument_type(tree *t, row a) {
  const variable *v = a.n ? cgl_tree_find(t, a.at) : NULL;
  row none = {NULL, 0};
  bool element = a.n > 1 && cgl_token_is(&a.at[1], "[") &&
                 cgl_tokens_close(a.at, a.n, 1) == a.n;
  if (a.n == 1 && a.at->kind == CGL_TOKEN_NUMBER) {
    char last = a.at->text[a.at->length - 1];
    bool real = memchr(a.at->text, '.', a.at->length);
    cgl_token name = cgl_tree_token(
        t, a.at, real ? last == 'f' ? "float" : "double" : "int");
    if ((last < '0' || last > '9') && last != '.' && !(real && last == 'f'))
      return none;
    return cgl_tree_copy(t, &name, 1);
  }
  if (!v || v->is_auto || v->alias || v->reference || !v->type.n ||
      (a.n > 1 && !element))
    return none;
  row type = cgl_tree_copy(t, v->type.at, v->type.n);
  size_t stars = 0, n = 0;
  for (size_t i = 0; i < type.n; i++)
    stars += cgl_token_is(&type.at[i], "*");
  bool array =
      v->dims.n && cgl_tokens_close(v->dims.at, v->dims.n, 0) == v->dims.n;
  if (element ? stars + array != 1 : v->dims.n > 0)
    return none;
  for (size_t i = 0; i < type.n; i++)
    if (!cgl_token_is_any(&type.at[i], "volatile", "__restrict__",
                          "__restrict") &&
        !(stars == element && cgl_token_is(&type.at[i], "const")) &&
        !(element && cgl_token_is(&type.at[i], "*")))
      type.at[n++] = type.at[i];
  type.n = n;
  return type;
}


/* The argument that decides the template's type `name`: of the parameters
   `T x`, `T *x` and their like, the first.  The stars are taken away. */
static row deduce_type(tree *t, const cgl_token *name, const row *parameters,
                       const row *args, size_t n) {
  for (size_t k = 0; k < n; k++) {
    size_t at = parameters[k].n, stars = 0;
    bool simple = true;
    for (size_t i = 0; i + 1 < parameters[k].n; i++) {
      const cgl_token *x = &parameters[k].at[i];
      if (cgl_token_same(x, name))
        at = i;
      else if (cgl_token_is(x, "*"))
        stars++;
      else
        simple &= cgl_token_is_any(x, "const", "&", "__restrict__", "volatile");
    }
    if (at == parameters[k].n || !simple)
      continue;
    row type = argument_type(t, args[k]);
    for (; stars && type.n; type.n--)
      if (cgl_token_is(&type.at[type.n - 1], "*"))
        stars--;
      else if (!cgl_token_is(&type.at[type.n - 1], "const"))
        break;
    size_t kept = 0;
    bool pointer = false;
    for (size_t i = 0; i < type.n; i++)
      pointer |= cgl_token_is(&type.at[i], "*");
    for (size_t i = 0; i < type.n; i++)
      if (pointer || !cgl_token_is(&type.at[i], "const"))
        type.at[kept++] = type.at[i];
    type.n = kept;
    if (!stars && type.n)
      return type;
  }
  return (row){NULL, 0};
}


/* The argument of `T x`, whose type the compiler is asked for. */
static row deduce_late(const cgl_token *name, const row *parameters,
                       const row *args, size_t n, bool *late) {
  for (size_t k = 0; k < n; k++) {
    bool fits = parameters[k].n > 1, named = false;
    for (size_t i = 0; i + 1 < parameters[k].n; i++) {
      named |= cgl_token_same(&parameters[k].at[i], name);
      fits &= cgl_token_same(&parameters[k].at[i], name) ||
              cgl_token_is_any(&parameters[k].at[i], "const", "&", "&&");
    }
    if (fits && named) {
      *late = true;
      return args[k];
    }
  }
  return (row){NULL, 0};
}


void cgl_inline_rename_in(function *f, const cgl_token *was,
                          const cgl_token *now) {
  cgl_inline_rename(f->body, was, now);
  cgl_inline_rename(f->parameters, was, now);
  cgl_inline_rename(f->type, was, now);
}


/* Does nothing name it, as the type of a group of which nothing is left? */
static bool is_unnamed(const function *f, const cgl_token *name,
                       const row *parameters, size_t n) {
  bool found = false;
  for (size_t k = 0; k < n; k++)
    for (size_t i = 0; i < parameters[k].n; i++)
      found |= cgl_token_same(&parameters[k].at[i], name);
  for (size_t i = 0; i < f->body.n; i++)
    found |= cgl_token_same(&f->body.at[i], name);
  for (size_t i = 0; i < f->type.n; i++)
    found |= cgl_token_same(&f->type.at[i], name);
  return !found;
}


/* The size of a tile that is an argument, where the parameter names it. */
static row deduce_size(tree *t, const cgl_token *name, const row *parameters,
                       const row *args, size_t n) {
  for (size_t k = 0; k < n; k++) {
    const size_t constant = cgl_token_is(parameters[k].at, "const");
    const row p = cgl_row_slice(parameters[k], constant, parameters[k].n),
              a = args[k];
    if (p.n > 4 && a.n > 4 &&
        cgl_token_is_any(p.at, "cgl_group_tile", "cgl_group_block_tile") &&
        cgl_token_is_any(a.at, "cgl_group_tile", "cgl_group_block_tile") &&
        cgl_token_same(&p.at[2], name) && cgl_token_is(&p.at[3], ">")) {
      const size_t end = cgl_tokens_close_angle(a.at, a.n, 1);
      if (end == a.n - 2)
        return cgl_tree_copy(t, &a.at[2], end - 3);
    }
  }
  return (row){NULL, 0};
}


/* The row with a space behind each token; its length, or 0: it is too long, or
   names a variable of the kernel that is no argument of its template. */
static size_t spell(const tree *t, row r, char *text, size_t room) {
  size_t n = 0;
  for (size_t i = 0; i < r.n; i++) {
    const variable *v = cgl_tree_find(t, &r.at[i]);
    if ((v && !cgl_tree_is_argument(v)) || n + r.at[i].length + 2 > room)
      return 0;
    n += (size_t)snprintf(text + n, room - n, "%.*s ", (int)r.at[i].length,
                          r.at[i].text);
  }
  return n;
}


/* The function that the value names and nothing else, as f and &f do. */
static const cgl_token *find_named(tree *t, row value) {
  const cgl_token *last = value.n ? &value.at[value.n - 1] : NULL;
  bool plain = last && last->kind == CGL_TOKEN_NAME && !cgl_tree_find(t, last);
  size_t chunk;
  for (size_t i = 0; i + 1 < value.n; i++)
    plain &= cgl_token_is_any(&value.at[i], "&", "*") ||
             (!i && cgl_token_is(&value.at[i], "::"));
  return plain && cgl_reach_chunk(t->program, last, 0, &chunk) ? last : NULL;
}


/* What stands in place of the template's parameter of that type, one token: the
   constant, or the function, that the value is.  Or none. */
static bool constant_of(tree *t, row type, row value, cgl_token *out) {
  char name[80], text[100], given[80];
  const variable *v = value.n == 1 ? cgl_tree_find(t, value.at) : NULL;
  const cgl_token *named = find_named(t, value);
  if (named && cgl_tree_sync(t, named, 1))
    return *out = *named, true;
  if (cgl_tree_sync(t, value.at, value.n))
    cgl_tree_refuse(t, value.at,
                    "a function that synchronizes, as a template's argument");
  if (!spell(t, type, name, sizeof name) || !spell(t, value, text, sizeof text))
    return false;
  const bool number = value.n == 1 && value.at->kind == CGL_TOKEN_NUMBER;
  const size_t digits = strspn(text, "0123456789");
  if (number && text[digits] == ' ' && !strcmp(name, "int "))
    *out = value.at[0];
  else if (number && text[digits] == ' ' && !strncmp(name, "unsigned ", 9) &&
           (type.n == 1 || !strcmp(name + 9, "int "))) {
    *out = cgl_tree_token(t, value.at, "%.*su", (int)digits, text);
    out->kind = CGL_TOKEN_NUMBER;
  } else if (value.n == 1 && ((!strcmp(name, "bool ") &&
                               cgl_token_is_any(value.at, "true", "false")) ||
                              (v && spell(t, v->type, given, sizeof given) &&
                               !strcmp(given, name))))
    *out = value.at[0];
  else {
    *out = strcmp(name, "auto ")
               ? cgl_tree_token(t, value.at, "((%s)(%s))", name, text)
               : cgl_tree_token(t, value.at, "(%s)", text);
    out->kind = CGL_TOKEN_NUMBER; /* one value for all threads */
  }
  return true;
}


/* T (*name)(...), or T name(...): the name of what is given by a function, or
   NULL. */
static cgl_token *find_pointer(row p) {
  size_t i = 0;
  while (i < p.n && !cgl_token_is(&p.at[i], "("))
    i++;
  if (i + 3 < p.n && cgl_token_is(&p.at[i + 1], "*") &&
      p.at[i + 2].kind == CGL_TOKEN_NAME && cgl_token_is(&p.at[i + 3], ")"))
    return &p.at[i + 2];
  return i > 1 && i < p.n && p.at[i - 1].kind == CGL_TOKEN_NAME ? &p.at[i - 1]
                                                                : NULL;
}


/* Is the template's argument the type of a lambda, which nothing but the
   lambda's parameter names? */
static bool is_of_lambda(const tree *t, const cgl_token *name,
                         const function *f, const row *parameters,
                         const row *args, size_t n) {
  bool found = false;
  for (size_t k = 0; k < n && !found; k++)
    for (size_t i = 0; i + 1 < parameters[k].n; i++)
      found |= cgl_token_same(&parameters[k].at[i], name) &&
               cgl_inline_lambda(t, args[k]);
  for (size_t i = 0; i < f->body.n; i++)
    found &= !cgl_token_same(&f->body.at[i], name);
  return found;
}


/* The elements of a list of a template, in which those of another may stand: a
   < behind a name that is no number's. */
static size_t split(tree *t, row r, row *out, size_t most) {
  size_t n = 0;
  for (size_t i = 0, end; i < r.n && n < most; i = end + 1) {
    for (end = i; end < r.n && !cgl_token_is(&r.at[end], ",");) {
      const cgl_token *last = end > i ? &r.at[end - 1] : NULL;
      const variable *v = last ? cgl_tree_find(t, last) : NULL;
      if (last && last->kind == CGL_TOKEN_NAME && (!v || v->alias) &&
          cgl_token_is(&r.at[end], "<") && !cgl_values_is_constant(t, last))
        end = cgl_tokens_close_angle(r.at, r.n, end);
      else
        end = cgl_tokens_past(r.at, r.n, end);
    }
    out[n++] = cgl_row_slice(r, i, end);
  }
  return n;
}


/* The class template that the value names, as one token; behind a namespace it
   is no longer found by its name. */
static bool class_of(tree *t, row value, cgl_token *out) {
  char text[100];
  const cgl_token *last = value.n ? &value.at[value.n - 1] : NULL;
  for (size_t i = 0; i < value.n; i++)
    if ((value.n - 1 - i) % 2 ? !cgl_token_is(&value.at[i], "::")
                              : value.at[i].kind != CGL_TOKEN_NAME)
      return false;
  if (!last || cgl_tree_sync(t, value.at, value.n) ||
      !spell(t, value, text, sizeof text))
    return false;
  t->hides |= value.n > 1;
  *out = value.n > 1 ? cgl_tree_token(t, last, "%s", text) : *last;
  return true;
}


void cgl_inline_bind_template(tree *t, const cgl_token *call, function *f,
                              row given, const row *parameters, const row *args,
                              size_t n, statement ***tail) {
  row names[16], values[16];
  size_t count = split(t, f->templates, names, 16);
  size_t written = split(t, given, values, 16);
  for (size_t k = 0; k < count && !t->why; k++) {
    row p = names[k], value = k < written ? values[k] : (row){NULL, 0};
    bool type = cgl_token_is_any(p.at, "class", "typename"), late = false;
    const bool templated = cgl_token_is(p.at, "template");
    for (size_t i = templated ? cgl_tokens_close_angle(p.at, p.n, 1) : 0;
         i < p.n; i++)
      if (cgl_token_is(&p.at[i], "=")) {
        if (!value.n)
          value = cgl_row_slice(p, i + 1, p.n);
        p.n = i;
      }
    cgl_token *pointer = templated ? NULL : find_pointer(p);
    const cgl_token *given_by = pointer ? find_named(t, value) : NULL;
    if (given_by)
      cgl_inline_rename_in(f, pointer, given_by);
    else if (pointer)
      cgl_tree_refuse(t, call,
                      "a template's argument that is no function's "
                      "name");
    if (pointer)
      continue;
    if (p.n < 2 || p.at[p.n - 1].kind != CGL_TOKEN_NAME)
      break;
    cgl_token *name = &p.at[p.n - 1];
    if (!value.n && ((type && is_of_lambda(t, name, f, parameters, args, n)) ||
                     is_unnamed(f, name, parameters, n)))
      continue;
    if (!value.n && !type)
      value = deduce_size(t, name, parameters, args, n);
    if (!value.n && type)
      value = deduce_type(t, name, parameters, args, n);
    if (!value.n && type)
      value = deduce_late(name, parameters, args, n, &late);
    if (!value.n) {
      cgl_tree_refuse(
          t, call,
          "a call of '%.*s', a template whose argument '%.*s' is not "
          "written",
          (int)call->length, call->text, (int)name->length, name->text);
      return;
    }
    cgl_token own = cgl_tree_token(t, name, "%.*s__%d", (int)name->length,
                                   name->text, ++t->ids);
    if (templated && !class_of(t, value, &own))
      cgl_tree_refuse(t, call, "a template's argument that is a template");
    const row of = cgl_row_slice(p, 0, p.n - 1);
    if (templated) {
      /* its name stands for the parameter's */
    } else if (late) {
      variable *v = cgl_tree_alias(t, &own, (row){NULL, 0});
      v->value = value;
      v->is_auto = true;
    } else if (type)
      cgl_tree_alias(t, &own, value);
    else if (!constant_of(t, of, value, &own)) {
      row constant = cgl_tree_copy(t, p.at, p.n);
      constant.at[p.n - 1] = cgl_tree_token(t, name, "const");
      cgl_inline_put(tail, cgl_tree_declare_value(t, &own, constant, value));
    }
    cgl_inline_rename_in(f, name, &own);
    for (size_t i = k + 1; i < count; i++) /* what is usual may name it */
      cgl_inline_rename(names[i], name, &own);
  }
}
