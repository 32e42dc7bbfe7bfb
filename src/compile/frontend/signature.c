/* From a declared kernel to the signature a caller asks for. */
#include <stdio.h>
#include <string.h>

#include "compile/frontend/program.h"


static size_t element_count(const cgl_token *at, size_t count) {
  size_t n = 0;
  for (size_t i = 0; i < count; n++)
    i = cgl_tokens_element_end(at, count, i) + 1;
  return n;
}


static int read_parameters(const cgl_declared *k, const cgl_alias *aliases,
                           cgl_arena *arena, cgl_signature *out) {
  size_t n = element_count(k->parameters, k->nparameters), i = 0;
  out->parameters = cgl_arena_alloc(arena, (n + 1) * sizeof *out->parameters);
  if (!out->parameters)
    return -1;
  while (i < k->nparameters) {
    size_t end = cgl_tokens_element_end(k->parameters, k->nparameters, i);
    cgl_parameter *p = &out->parameters[out->nparameters++];
    if (cgl_parameter_read(aliases, &k->parameters[i], end - i, arena, p) !=
            0 ||
        cgl_fields_read(arena, p) != 0)
      return -1;
    i = end + 1;
  }
  return 0;
}


static uint32_t read_bounds(const cgl_declared *k, const cgl_alias *aliases) {
  cgl_token row[64];
  size_t n = 0;
  long long value;
  for (size_t i = 0; i < k->nbounds && n < 64; i++) {
    const cgl_alias *a = aliases;
    while (a && !cgl_token_same(&a->name, &k->bounds[i]))
      a = a->outer;
    if (a && a->count == 1)
      row[n++] = a->at[0];
    else
      row[n++] = k->bounds[i];
  }
  if (!n || cgl_evaluate(row, n, &value) != 0 || value < 1 || value > 1024)
    return 0;
  return (uint32_t)value;
}


/* `aliases` holds the template's arguments in front of the source's own. */
static int fill_signature(cgl_program *p, const cgl_declared *k,
                          const cgl_alias *aliases, cgl_arena *arena,
                          cgl_signature *out) {
  out->line = k->name.line;
  out->declared = k;
  out->aliases = aliases;
  out->max_threads = read_bounds(k, aliases);
  out->features = cgl_reach_features(p, k->chunk, NULL);
  for (size_t i = 0; i < p->nchunks; i++)
    if (cgl_reach_specialises(p, i, k)) {
      out->features |= cgl_reach_features(p, i, NULL);
      out->specialised = true;
    }
  if (!out->name || read_parameters(k, aliases, arena, out) != 0)
    return -1;
  if (out->specialised)
    return 0;
  cgl_program_find_loop(p, k, aliases, arena, out);
  return cgl_program_find_ends(p, k, aliases, arena, out);
}


size_t cgl_program_kernels(const cgl_program *p) {
  size_t n = 0;
  for (size_t i = 0; i < p->nkernels; i++)
    n += !p->kernels[i].is_template && p->kernels[i].defined;
  return n;
}


static char *full_name(const cgl_declared *k, cgl_arena *arena) {
  size_t n = strlen(k->scope);
  char *name = cgl_arena_alloc(arena, n + k->name.length + 1);
  if (name) {
    memcpy(name, k->scope, n);
    memcpy(name + n, k->name.text, k->name.length);
  }
  return name;
}


int cgl_program_kernel(const cgl_program *program, size_t i, cgl_arena *arena,
                       cgl_signature *out) {
  cgl_program *p = (cgl_program *)program;
  *out = (cgl_signature){0};
  for (size_t k = 0; k < p->nkernels; k++) {
    const cgl_declared *kernel = &p->kernels[k];
    if (kernel->is_template || !kernel->defined || i-- > 0)
      continue;
    out->name = out->lowered = full_name(kernel, arena);
    return fill_signature(p, kernel, kernel->aliases, arena, out);
  }
  return -1;
}


/* Does `at` spell the kernel's name, with or without its namespace? */
static bool names_kernel(const cgl_declared *k, const cgl_token *at,
                         size_t count) {
  if (!count || !cgl_token_same(&at[count - 1], &k->name))
    return false;
  char spelled[512];
  size_t n = 0;
  for (size_t i = 0; i + 1 < count; i++) {
    if (n + at[i].length >= sizeof spelled)
      return false;
    memcpy(spelled + n, at[i].text, at[i].length);
    n += at[i].length;
  }
  size_t skip = n >= 2 && memcmp(spelled, "::", 2) == 0 ? 2 : 0;
  size_t scope = strlen(k->scope);
  return n - skip == 0 ||
         (n - skip == scope && memcmp(spelled + skip, k->scope, scope) == 0);
}


/* Puts the arguments in `at` in front of the aliases that k sees. */
static const cgl_alias *bind_arguments(const cgl_declared *k,
                                       const cgl_token *at, size_t count,
                                       cgl_arena *arena) {
  const cgl_alias *aliases = k->aliases;
  size_t i = 0;
  for (size_t n = 0; n < k->ntemplates; n++) {
    const cgl_template_parameter *t = &k->templates[n];
    cgl_alias *alias = cgl_arena_alloc(arena, sizeof *alias);
    if (!alias)
      return NULL;
    size_t end = cgl_tokens_element_end(at, count, i);
    *alias = (cgl_alias){.name = t->name,
                         .at = i < count ? &at[i] : t->standard,
                         .count = i < count ? end - i : t->nstandard,
                         .outer = aliases};
    i = i < count ? end + 1 : i;
    aliases = alias;
  }
  return aliases;
}


int cgl_program_find(const cgl_program *program, const char *expression,
                     cgl_arena *arena, cgl_signature *out) {
  cgl_program *p = (cgl_program *)program;
  cgl_tokens row = {0};
  size_t length = strlen(expression);
  char *text = cgl_arena_copy(arena, expression, length);
  int status = text ? 1 : -1;
  *out = (cgl_signature){0};
  if (text)
    cgl_lex(text, length, 1, &row);
  size_t first = row.count && cgl_token_is(row.at, "&"), name = first;
  while (name < row.count && !cgl_token_is(&row.at[name], "<"))
    name++;
  size_t end = cgl_tokens_close_angle(row.at, row.count, name);
  bool templated = name < row.count;
  for (size_t k = 0; k < p->nkernels && status == 1; k++) {
    const cgl_declared *kernel = &p->kernels[k];
    if (kernel->is_template != templated ||
        !names_kernel(kernel, row.at + first, name - first))
      continue;
    const cgl_alias *aliases = kernel->aliases;
    if (templated) {
      cgl_token *copy = cgl_arena_alloc(arena, (row.count + 1) * sizeof *copy);
      if (!copy) {
        status = -1;
        break;
      }
      memcpy(copy, row.at, row.count * sizeof *copy);
      size_t last = end > name + 1 ? end - 1 : name + 1;
      aliases = bind_arguments(kernel, copy + name + 1, last - name - 1, arena);
    }
    out->name = out->lowered = text;
    status = fill_signature(p, kernel, aliases, arena, out);
  }
  cgl_tokens_free(&row);
  return row.failed || arena->failed ? -1 : status;
}
