#include "compile/frontend/frontend.h"

#include <stdlib.h>
#include <string.h>

#include "compile/frontend/program.h"

typedef struct cursor {
  cgl_program *program;
  const cgl_token *at;
  size_t i, count;
  int depth; /* of namespaces, bounded */
} cursor;

typedef struct prefix {
  cgl_template_parameter templates[32];
  size_t ntemplates;
  bool is_template;
  bool c_linkage;
} prefix;


static bool is_at(const cursor *c, const char *word) {
  return c->i < c->count && cgl_token_is(&c->at[c->i], word);
}


static bool is_next(const cursor *c, const char *word) {
  return c->i + 1 < c->count && cgl_token_is(&c->at[c->i + 1], word);
}


void *cgl_program_grow(cgl_program *p, void *array, size_t count, size_t *room,
                       size_t size) {
  if (count < *room)
    return array;
  size_t more = *room ? *room * 2 : 16;
  void *bigger = realloc(array, more * size);
  if (!bigger)
    return p->failed = true, NULL;
  *room = more;
  return bigger;
}


static cgl_alias *add_alias(cgl_program *p, const cgl_token *name,
                            const cgl_token *at, size_t count) {
  cgl_alias *alias = cgl_arena_alloc(&p->arena, sizeof *alias);
  if (!alias)
    return NULL;
  *alias =
      (cgl_alias){.name = *name, .at = at, .count = count, .outer = p->aliases};
  p->aliases = alias;
  return alias;
}


/* template <class T, int N = 4>; leaves the cursor past the `>`. */
static void read_template(cursor *c, prefix *out) {
  size_t end = cgl_tokens_close_angle(c->at, c->count, c->i + 1);
  size_t i = c->i + 2;
  out->is_template = true;
  out->ntemplates = 0;
  while (i + 1 < end && out->ntemplates < 32) {
    cgl_template_parameter parameter = {0};
    size_t stop = i, equal = 0;
    while (stop + 1 < end && !cgl_token_is(&c->at[stop], ",")) {
      if (cgl_token_is(&c->at[stop], "=") && !equal)
        equal = stop;
      if (cgl_token_is(&c->at[stop], "<"))
        stop = cgl_tokens_close_angle(c->at, end, stop);
      else if (cgl_token_is(&c->at[stop], "("))
        stop = cgl_tokens_close(c->at, end, stop);
      else
        stop++;
    }
    if (stop > end - 1)
      stop = end - 1;
    size_t last = equal ? equal : stop;
    parameter.is_type = cgl_token_is_any(&c->at[i], "typename", "class");
    if (last > i && c->at[last - 1].kind == CGL_TOKEN_NAME)
      parameter.name = c->at[last - 1];
    parameter.type = &c->at[i];
    parameter.ntype = last > i ? last - 1 - i : 0;
    if (equal && equal + 1 < stop) {
      parameter.standard = &c->at[equal + 1];
      parameter.nstandard = stop - equal - 1;
    }
    if (parameter.name.text && last - i > 0)
      out->templates[out->ntemplates++] = parameter;
    i = stop + 1;
  }
  c->i = end;
}


/* The end of the declaration that starts at the cursor: past its `;`, or
   past the `}` of a function's body, whose `{` is *body, else NULL. */
static size_t declaration_end(const cursor *c, const cgl_token **body) {
  bool parameters = false, value = false;
  *body = NULL;
  size_t i = c->i;
  while (i < c->count) {
    const cgl_token *t = &c->at[i];
    if (cgl_token_is(t, ";"))
      return i + 1;
    if (cgl_token_is(t, "}"))
      return i;
    if (cgl_token_is(t, "=") &&
        !(i > c->i && cgl_token_is(&c->at[i - 1], "operator")))
      value = true;
    if (cgl_token_is(t, "{")) {
      size_t end = cgl_tokens_close(c->at, c->count, i);
      if (parameters && !value)
        return *body = t, end;
      i = end;
      continue;
    }
    if (cgl_token_is_any(t, "(", "[")) {
      parameters |= cgl_token_is(t, "(") &&
                    !(i > c->i && cgl_token_takes_arguments(t - 1));
      i = cgl_tokens_close(c->at, c->count, i);
      continue;
    }
    i++;
  }
  return i;
}


static void add_kernel(cgl_program *p, const cgl_declared *made) {
  for (size_t i = 0; i < p->nkernels; i++) {
    cgl_declared *old = &p->kernels[i];
    if (cgl_token_same(&old->name, &made->name) &&
        strcmp(old->scope, made->scope) == 0 &&
        old->is_template == made->is_template) {
      bool c_linkage = old->c_linkage || made->c_linkage;
      const cgl_token *bounds = made->bounds ? made->bounds : old->bounds;
      size_t nbounds = made->bounds ? made->nbounds : old->nbounds;
      if (made->defined && !old->defined)
        *old = *made;
      old->c_linkage = c_linkage;
      old->bounds = bounds;
      old->nbounds = nbounds;
      return;
    }
  }
  cgl_declared *kernels = cgl_program_grow(p, p->kernels, p->nkernels,
                                           &p->kernel_room, sizeof *kernels);
  if (!kernels)
    return;
  p->kernels = kernels;
  kernels[p->nkernels++] = *made;
}


/* Reads up to the parameters; returns the index of their "(", or 0 where no
   kernel is declared. */
static size_t read_kernel_name(const cgl_token *at, size_t count,
                               cgl_declared *made) {
  for (size_t i = 0; i < count;) {
    if (i + 1 < count && at[i].kind == CGL_TOKEN_NAME &&
        cgl_token_is(&at[i + 1], "(")) {
      size_t end = cgl_tokens_close(at, count, i + 1);
      if (cgl_token_is(&at[i], "__launch_bounds__")) {
        made->bounds = &at[i + 2];
        while (i + 2 + made->nbounds + 1 < end &&
               !cgl_token_is(&made->bounds[made->nbounds], ","))
          made->nbounds++;
      } else if (!cgl_token_takes_arguments(&at[i])) {
        made->name = at[i];
        return i + 1;
      }
      i = end;
    } else if (cgl_token_is_any(&at[i], "[", "{"))
      i = cgl_tokens_close(at, count, i);
    else if (i && cgl_token_is(&at[i], "<"))
      return 0; /* an explicit specialisation: the primary template counts */
    else
      i++;
  }
  return 0;
}


static void read_kernel(cgl_program *p, const cgl_token *at, size_t count,
                        const char *scope, const prefix *pre, bool body) {
  cgl_declared made = {.scope = scope,
                       .is_template = pre->is_template,
                       .c_linkage = pre->c_linkage,
                       .defined = body,
                       .chunk = p->nchunks,
                       .aliases = p->aliases};
  size_t open = read_kernel_name(at, count, &made);
  size_t close = cgl_tokens_close(at, count, open);
  if (!open || close < open + 2 || !cgl_token_is(&at[close - 1], ")"))
    return;
  made.parameters = &at[open + 1];
  made.nparameters = close - open - 2;
  if (made.nparameters == 1 && cgl_token_is(made.parameters, "void"))
    made.nparameters = 0;
  if (pre->is_template) {
    if (!pre->ntemplates)
      return;
    size_t bytes = pre->ntemplates * sizeof *made.templates;
    made.templates = cgl_arena_alloc(&p->arena, bytes);
    if (!made.templates)
      return;
    memcpy(made.templates, pre->templates, bytes);
    made.ntemplates = pre->ntemplates;
  }
  add_kernel(p, &made);
}


static void add_body(cgl_program *p, const cgl_token *brace) {
  const char **bodies =
      cgl_program_grow(p, p->bodies, p->nbodies, &p->body_room, sizeof *bodies);
  if (!bodies)
    return;
  p->bodies = bodies;
  bodies[p->nbodies++] = brace->text;
}


static void add_variable(cgl_program *p, const char *scope,
                         const cgl_token *name, bool constant, bool internal) {
  cgl_variable *variables = cgl_program_grow(
      p, p->variables, p->nvariables, &p->variable_room, sizeof *variables);
  if (!variables)
    return;
  p->variables = variables;
  cgl_text whole = {0};
  cgl_text_put(&whole, scope);
  cgl_text_add(&whole, name->text, name->length);
  char *copy =
      whole.failed ? NULL : cgl_arena_copy(&p->arena, whole.data, whole.length);
  cgl_text_free(&whole);
  if (copy)
    variables[p->nvariables++] = (cgl_variable){.name = copy,
                                                .lowered = copy,
                                                .constant = constant,
                                                .internal = internal};
}


/* The `{` of `struct T : A {` at i, or 0: T is no variable's name. */
static size_t find_record_body(const cgl_token *at, size_t count, size_t i) {
  if (!cgl_token_is_any(&at[i], "struct", "class", "union", "enum"))
    return 0;
  for (i++; i + 1 < count && at[i].kind == CGL_TOKEN_NAME &&
            cgl_token_is_any(&at[i + 1], "(");)
    i = cgl_tokens_close(at, count, i + 1); /* __align__(8) */
  i += i < count && at[i].kind == CGL_TOKEN_NAME;
  if (i < count && cgl_token_is(&at[i], ":"))
    while (i < count && !cgl_token_is_any(&at[i], "{", ";", "="))
      i++;
  return i < count && cgl_token_is(&at[i], "{") ? i : 0;
}


/* `__constant__ float a[4], b;`: every declared name. */
static void read_variables(cgl_program *p, const cgl_token *at, size_t count,
                           const char *scope, const prefix *pre) {
  bool constant = false, internal = *scope;
  for (size_t i = 0; i < count; i++) {
    if (cgl_token_is(&at[i], "extern"))
      return;
    constant |= cgl_token_is(&at[i], "__constant__");
    internal |= cgl_token_is_any(&at[i], "static", "const", "constexpr");
    if (cgl_token_is(&at[i], "("))
      i = cgl_tokens_close(at, count, i) - 1;
  }
  if (pre->is_template)
    return;
  bool seen = false; /* the declarator's name has been found */
  for (size_t i = 0; i < count; i++) {
    const cgl_token *t = &at[i];
    const size_t body = seen ? 0 : find_record_body(at, count, i);
    if (body) {
      i = cgl_tokens_close(at, count, body) - 1;
    } else if (t->kind == CGL_TOKEN_NAME && cgl_token_takes_arguments(t) &&
               i + 1 < count && cgl_token_is(&at[i + 1], "("))
      i = cgl_tokens_close(at, count, i + 1) - 1;
    else if (cgl_token_is(t, "<") && !seen)
      i = cgl_tokens_close_angle(at, count, i) - 1;
    else if (!seen && i > 0 && i + 1 < count && t->kind == CGL_TOKEN_NAME &&
             !cgl_token_is_type_word(t) &&
             cgl_token_is_any(&at[i + 1], "[", "=", ";", ",", "{")) {
      add_variable(p, scope, t, constant, internal && !pre->c_linkage);
      seen = true;
    } else if (cgl_token_is_any(t, "[", "{", "("))
      i = cgl_tokens_close(at, count, i) - 1;
    else if (cgl_token_is(t, ","))
      seen = false;
  }
}


/* Notes what the braces of a record hold whose first word is at `i`: not of a
   union, nor of a class that has another as its base. */
static void set_body(cgl_alias *record, const cgl_token *at, size_t count,
                     size_t i) {
  if (!cgl_token_is_any(&at[i], "struct", "class"))
    return;
  while (i < count && !cgl_token_is_any(&at[i], "{", ":"))
    i++;
  size_t end = cgl_tokens_close(at, count, i);
  if (i < count && cgl_token_is(&at[i], "{") && end > i + 1) {
    record->body = &at[i + 1];
    record->nbody = end - i - 2;
  }
}


/* typedef ... name;  using name = ...; */
static void read_alias(cgl_program *p, const cgl_token *at, size_t count,
                       const prefix *pre) {
  if (count && cgl_token_is(&at[count - 1], ";"))
    count--;
  if (count < 3 || pre->is_template)
    return;
  if (cgl_token_is(at, "using")) {
    if (cgl_token_is(&at[2], "="))
      add_alias(p, &at[1], at + 3, count - 3);
    return;
  }
  size_t last = count - 1;
  while (last > 1 && cgl_token_is(&at[last], "]")) {
    while (last > 1 && !cgl_token_is(&at[last], "["))
      last--;
    last--;
  }
  if (at[last].kind != CGL_TOKEN_NAME)
    return;
  cgl_alias *alias = add_alias(p, &at[last], at + 1, last - 1);
  for (size_t i = 1; alias && i < last; i++)
    if (cgl_token_is(&at[i], "{")) {
      alias->record = !cgl_token_is(&at[1], "enum");
      alias->enumeration = !alias->record;
      alias->count = 0;
      set_body(alias, at, count, 1);
      return;
    }
}


static void read_record(cgl_program *p, const cgl_token *at, size_t count,
                        const prefix *pre) {
  bool enumeration = cgl_token_is(at, "enum");
  for (size_t i = 1; i < count; i++) {
    const cgl_token *t = &at[i];
    if (cgl_token_takes_arguments(t) && i + 1 < count &&
        cgl_token_is(&at[i + 1], "("))
      i = cgl_tokens_close(at, count, i + 1) - 1;
    else if (t->kind == CGL_TOKEN_NAME && !cgl_token_is_type_word(t)) {
      cgl_alias *alias = add_alias(p, t, NULL, 0);
      if (!alias)
        return;
      alias->record = !enumeration;
      alias->enumeration = enumeration;
      if (!pre->is_template)
        set_body(alias, at, count, 0);
      if (enumeration && i + 2 < count && cgl_token_is(&at[i + 1], ":")) {
        alias->at = &at[i + 2];
        while (i + 2 + alias->count < count &&
               !cgl_token_is(&alias->at[alias->count], "{"))
          alias->count++;
      }
      return;
    } else if (t->kind != CGL_TOKEN_NAME)
      return;
  }
}


static bool has_word(const cgl_token *at, size_t count, const char *word) {
  for (size_t i = 0; i < count; i++) {
    if (cgl_token_is(&at[i], word))
      return true;
    if (cgl_token_is(&at[i], "{"))
      return false;
  }
  return false;
}


/* True when a parameter list stands before any `=`, `[`, `{` or `;`. */
static bool is_function(const cgl_token *at, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (cgl_token_is(&at[i], "operator"))
      return true;
    if (cgl_token_is(&at[i], "("))
      return i > 0 && !cgl_token_takes_arguments(&at[i - 1]);
    if (cgl_token_takes_arguments(&at[i]) && i + 1 < count &&
        cgl_token_is(&at[i + 1], "("))
      i = cgl_tokens_close(at, count, i + 1) - 1;
    else if (cgl_token_is_any(&at[i], "=", "{", "[", ";"))
      return false;
  }
  return false;
}


/* How many tokens in front of the declaration are its template <...>. */
static size_t header_of(const cgl_program *p, const cgl_token *at) {
  const cgl_token *from = at;
  if (at == p->row->at || !cgl_token_is_any(at - 1, ">", ">>"))
    return 0;
  while (from > p->row->at && !cgl_token_is_any(from - 1, ";", "{", "}")) {
    const size_t n = (size_t)(at - --from);
    if (cgl_token_is(from, "template") &&
        cgl_tokens_close_angle(from, n, 1) == n)
      return n;
  }
  return 0;
}


static void read_declaration(cursor *c, const char *scope, const prefix *pre) {
  cgl_program *p = c->program;
  const cgl_token *body;
  size_t start = c->i, end = declaration_end(c, &body);
  if (end <= start)
    end = start + 1;
  const cgl_token *at = &c->at[start];
  size_t count = end - start;
  c->i = end;
  cgl_chunk *chunks = cgl_program_grow(p, p->chunks, p->nchunks, &p->chunk_room,
                                       sizeof *chunks);
  if (!chunks)
    return;
  p->chunks = chunks;
  bool record = cgl_token_is_any(at, "struct", "class", "union", "enum");
  if (has_word(at, count, "__global__")) {
    read_kernel(p, at, count, scope, pre, body);
    if (body)
      add_body(p, body);
  } else if (cgl_token_is_any(at, "typedef", "using"))
    read_alias(p, at, count, pre);
  else {
    if (record && !body)
      read_record(p, at, count, pre);
    if ((has_word(at, count, "__device__") ||
         has_word(at, count, "__constant__") ||
         has_word(at, count, "__managed__")) &&
        !is_function(at, count) && !(record && !body))
      read_variables(p, at, count, scope, pre);
  }
  chunks[p->nchunks++] =
      (cgl_chunk){.at = at,
                  .count = count,
                  .header = header_of(p, at),
                  .scope = scope,
                  .record = record || cgl_token_is(at, "typedef"),
                  .operators = has_word(at, count, "operator")};
}


static void read_scope(cursor *c, const char *scope, bool c_linkage);


/* namespace a::b { ... } */
static void read_namespace(cursor *c, const char *scope, bool c_linkage) {
  cgl_text name = {0};
  cgl_text_put(&name, scope);
  for (c->i++; c->i < c->count && !is_at(c, "{") && !is_at(c, ";"); c->i++) {
    const cgl_token *t = &c->at[c->i];
    if (cgl_token_is(t, "="))
      break;
    if (t->kind == CGL_TOKEN_NAME && !cgl_token_is(t, "inline")) {
      cgl_text_add(&name, t->text, t->length);
      cgl_text_put(&name, "::");
    }
  }
  if (is_at(c, "{") && !name.failed) {
    char *inner = cgl_arena_copy(&c->program->arena, name.data, name.length);
    size_t end = cgl_tokens_close(c->at, c->count, c->i);
    c->i++;
    if (inner && c->depth < 64) {
      c->depth++;
      read_scope(c, inner, c_linkage);
      c->depth--;
    }
    c->i = end;
  } else {
    while (c->i < c->count && !is_at(c, ";"))
      c->i++;
  }
  cgl_text_free(&name);
}


static void read_scope(cursor *c, const char *scope, bool c_linkage) {
  prefix pre = {.c_linkage = c_linkage};
  while (c->i < c->count && !c->program->failed) {
    if (is_at(c, "}"))
      return;
    if (is_at(c, ";")) {
      c->i++;
    } else if (is_at(c, "namespace") ||
               (is_at(c, "inline") && is_next(c, "namespace"))) {
      c->i += is_at(c, "inline");
      read_namespace(c, scope, c_linkage);
    } else if (is_at(c, "extern") && c->i + 1 < c->count &&
               c->at[c->i + 1].kind == CGL_TOKEN_STRING) {
      c->i += 2;
      pre.c_linkage = true;
      if (is_at(c, "{")) {
        size_t end = cgl_tokens_close(c->at, c->count, c->i);
        c->i++;
        if (c->depth < 64) {
          c->depth++;
          read_scope(c, scope, true);
          c->depth--;
        }
        c->i = end;
        pre = (prefix){.c_linkage = c_linkage};
      }
      continue;
    } else if (is_at(c, "template") && is_next(c, "<")) {
      read_template(c, &pre);
      continue;
    } else
      read_declaration(c, scope, &pre);
    pre = (prefix){.c_linkage = c_linkage};
  }
}


/* Reads the declarations of the preprocessed tokens; NULL without memory. */
static cgl_program *read_program(cgl_program *p) {
  p->row = &p->pp.out;
  if (cgl_program_has_groups(p)) {
    p->row = &p->lowered;
    p->failed |=
        cgl_program_lower_groups(&p->pp.out, &p->arena, &p->lowered) != 0;
  }
  cursor c = {.program = p, .at = p->row->at, .count = p->row->count};
  while (c.i < c.count && !p->failed) {
    read_scope(&c, "", false);
    c.i++; /* a stray `}` */
  }
  cgl_reach_mark(p);
  cgl_reach_find_sums(p);
  if (p->failed || p->arena.failed)
    return cgl_program_free(p), NULL;
  return p;
}


cgl_program *cgl_program_read(const char *text, size_t length, int line,
                              const char *const *options, size_t noptions,
                              const char *folder, const char *before) {
  cgl_program *p = calloc(1, sizeof *p);
  if (!p)
    return NULL;
  p->text = text;
  p->length = length;
  p->pp = (cgl_pp){.options = options,
                   .noptions = noptions,
                   .folder = folder,
                   .before = before};
  if (cgl_pp_run(&p->pp, text, length, line < 1 ? 1 : line) != 0)
    return cgl_program_free(p), NULL;
  return read_program(p);
}


/* The loops that are rewritten are in the text of the guess, so the guess
   stays where it was right. */
cgl_program *cgl_program_correct(cgl_program *guess, const char *output,
                                 size_t length, const char *file, int line) {
  cgl_program *p = calloc(1, sizeof *p);
  char *text = p ? cgl_arena_copy(&p->arena, output, length) : NULL;
  if (!text || cgl_pp_output(&p->pp, text, length, file, line) != 0)
    return cgl_program_free(p), NULL;
  if (!guess->pp.partial && cgl_pp_agree(&guess->pp, &p->pp))
    return cgl_program_free(p), guess;
  p->text = text;
  p->guess = guess;
  return read_program(p);
}


void cgl_program_free(cgl_program *p) {
  if (!p)
    return;
  cgl_program_free(p->guess);
  cgl_pp_free(&p->pp);
  cgl_tokens_free(&p->lowered);
  cgl_arena_free(&p->arena);
  free(p->chunks);
  free(p->kernels);
  free(p->variables);
  free(p->names);
  free(p->bodies);
  free(p->sums);
  free(p);
}


const cgl_variable *cgl_program_variables(const cgl_program *p, size_t *count) {
  *count = p->nvariables;
  return p->variables;
}


const char *const *cgl_program_bodies(const cgl_program *p, size_t *count) {
  *count = p->nbodies;
  return p->bodies;
}


bool cgl_program_is_partial(const cgl_program *p) {
  return p->pp.partial;
}


bool cgl_program_is_complex(const cgl_program *p) {
  return p->pp.complex || (p->guess && p->guess->pp.complex);
}


bool cgl_program_has_groups(const cgl_program *p) {
  return p->pp.groups || (p->guess && p->guess->pp.groups);
}


bool cgl_program_contains(const cgl_program *p, const char *part) {
  size_t n = strlen(part);
  for (size_t i = 0; i < p->pp.out.count; i++) {
    const cgl_token *t = &p->pp.out.at[i];
    for (size_t k = 0; t->kind == CGL_TOKEN_NAME && k + n <= t->length; k++)
      if (memcmp(t->text + k, part, n) == 0)
        return true;
  }
  return false;
}


bool cgl_program_expands(const cgl_program *p, const cgl_token *row,
                         size_t count, size_t i) {
  bool function;
  if (row[i].kind != CGL_TOKEN_NAME)
    return false;
  while (p->guess)
    p = p->guess;
  const bool defined = cgl_pp_defines(&p->pp, &row[i], &function);
  if (function)
    return i + 1 == count || cgl_token_is(&row[i + 1], "(");
  return defined || row[i].shut;
}


bool cgl_program_is_guess(const cgl_program *p) {
  return p->pp.guessed;
}


const cgl_included *cgl_program_files(const cgl_program *p, size_t *count) {
  while (p->guess)
    p = p->guess;
  *count = p->pp.nfiles;
  return p->pp.files;
}


const char *cgl_program_wanted(const cgl_program *p, size_t *length) {
  while (p->guess)
    p = p->guess;
  *length = p->pp.wanted.length;
  return p->pp.wanted.data;
}
