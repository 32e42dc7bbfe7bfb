/* The fields of a struct, as its declaration spells them.  A declaration that
   is not understood leaves the struct without fields; so do a base, a union, a
   bit-field and a template. */
#include <string.h>

#include "compile/frontend/types.h"

enum { MOST_NESTED = 16 }; /* structs in structs */

typedef struct field_list {
  cgl_field at[CGL_FIELDS_MOST];
  uint32_t n;
  bool unknown; /* a declaration was not understood */
  cgl_arena *arena;
} field_list;

typedef struct body_reader {
  const cgl_token *at;
  size_t i, count;
  const cgl_alias *aliases; /* the types declared in the body come first */
  int depth;
  field_list *out;
} body_reader;


static int read_body(const cgl_alias *record, int depth, field_list *out);


/* Adds a field, and behind it the fields of its struct. */
static int add_field(body_reader *r, const cgl_parameter *p) {
  field_list *out = r->out;
  if (!*p->name || out->n == CGL_FIELDS_MOST) {
    out->unknown = true;
    return 0;
  }
  const uint32_t which = out->n++;
  out->at[which] = (cgl_field){
      .name = p->name, .type = p->type, .kind = p->kind, .lanes = p->lanes};
  if (p->kind != CGL_KIND_STRUCT || p->pointer)
    return 0;
  int status = 0;
  if (p->record && r->depth < MOST_NESTED)
    status = read_body(p->record, r->depth + 1, out);
  out->at[which].nested = out->n - which - 1;
  out->unknown |= !out->at[which].nested;
  return status;
}


/* How many tokens a declarator has in front of `[2]`, `= 1`, `{1}` or `: 3`. */
static size_t declarator_length(const cgl_token *at, size_t count) {
  size_t n = 0;
  while (n < count && !cgl_token_is_any(&at[n], "[", "=", "{", ":"))
    if (cgl_token_is(&at[n], "<"))
      n = cgl_tokens_close_angle(at, count, n);
    else if (cgl_token_takes_arguments(&at[n]) && n + 1 < count)
      n = cgl_tokens_close(at, count, n + 1);
    else
      n++;
  return n;
}


/* `float *x, y[3] = {}`: the first `nbase` tokens are the type of all. */
static int read_fields(body_reader *r, const cgl_token *at, size_t count) {
  size_t nbase = 0;
  for (size_t i = 0, end; i < count && !r->out->unknown; i = end + 1) {
    end = cgl_tokens_element_end(at, count, i);
    size_t n = declarator_length(&at[i], end - i);
    r->out->unknown |= n < end - i && cgl_token_is(&at[i + n], ":");
    cgl_token *row =
        cgl_arena_alloc(r->out->arena, (nbase + n + 1) * sizeof *row);
    cgl_parameter p;
    if (!row)
      return -1;
    memcpy(row, at, nbase * sizeof *row);
    memcpy(row + nbase, &at[i], n * sizeof *row);
    if (cgl_parameter_read(r->aliases, row, nbase + n, r->out->arena, &p) ||
        add_field(r, &p))
      return -1;
    if (i || !n)
      continue;
    nbase = n - 1;
    while (nbase && cgl_token_is_any(&at[nbase - 1], "*", "&", "const",
                                     "volatile", "__restrict__"))
      nbase--;
  }
  return 0;
}


/* `struct inner { ... } a, b`, or an enum, whose braces are at `open` and
   `close - 1`. */
static int read_inner(body_reader *r, size_t open, size_t close, size_t end) {
  const bool record = !cgl_token_is(&r->at[r->i], "enum");
  const cgl_token unnamed = {.text = record ? "struct {}" : "enum {}",
                             .length = record ? 9 : 7,
                             .kind = CGL_TOKEN_NAME};
  const bool named = open == r->i + 2;
  const size_t n = end - close;
  cgl_alias *inner = cgl_arena_alloc(r->out->arena, sizeof *inner);
  cgl_token *row = cgl_arena_alloc(r->out->arena, (n + 1) * sizeof *row);
  if (!inner || !row)
    return -1;
  row[0] = named ? r->at[open - 1] : unnamed;
  memcpy(row + 1, &r->at[close], n * sizeof *row);
  *inner = (cgl_alias){.name = row[0],
                       .record = record,
                       .enumeration = !record,
                       .body = &r->at[open + 1],
                       .nbody = close - open - 2,
                       .outer = r->aliases};
  r->aliases = inner;
  if (n)
    return read_fields(r, row, n + 1);
  r->out->unknown |= record && !named; /* its fields are those of `r` */
  return 0;
}


/* The end of the declaration that starts at the reader: its `;`, or past the
   `}` of a function.  *open: its first brace. */
static size_t declaration_end(const body_reader *r, bool *function,
                              size_t *open) {
  bool value = false;
  *function = false;
  *open = r->count;
  for (size_t i = r->i; i < r->count;) {
    const cgl_token *t = &r->at[i];
    if (cgl_token_is(t, ";"))
      return i;
    const bool brace = cgl_token_is(t, "{");
    if (brace && *open == r->count)
      *open = i;
    value |= cgl_token_is(t, "=") || (brace && !*function);
    *function |= cgl_token_is(t, "operator") ||
                 (cgl_token_is(t, "(") && !value &&
                  !(i && cgl_token_takes_arguments(&r->at[i - 1])));
    i = cgl_token_is_any(t, "(", "[", "{")
            ? cgl_tokens_close(r->at, r->count, i)
            : i + 1;
    if (brace && *function)
      return i;
  }
  return r->count;
}


static int read_member(body_reader *r) {
  const cgl_token *t = &r->at[r->i];
  bool function;
  int status = 0;
  size_t open, end = declaration_end(r, &function, &open);
  if (cgl_token_is(t, "public") && r->i + 1 < r->count) {
    r->i += 2;
    return 0;
  }
  if (cgl_token_is_any(t, "template", "union", "private", "protected", "["))
    r->out->unknown = true;
  else if (cgl_token_is_any(t, "struct", "class", "enum") && open < end &&
           !function)
    status = read_inner(r, open, cgl_tokens_close(r->at, r->count, open), end);
  else if (!function &&
           !cgl_token_is_any(t, ";", "static", "constexpr", "typedef", "using",
                             "friend", "static_assert"))
    status = read_fields(r, t, end - r->i);
  r->i = end + (end < r->count && cgl_token_is(&r->at[end], ";"));
  return status;
}


static int read_body(const cgl_alias *record, int depth, field_list *out) {
  body_reader r = {.at = record->body,
                   .count = record->nbody,
                   .aliases = record->outer,
                   .depth = depth,
                   .out = out};
  while (r.i < r.count && !out->unknown)
    if (read_member(&r))
      return -1;
  return 0;
}


int cgl_fields_read(cgl_arena *arena, cgl_parameter *p) {
  field_list list = {.arena = arena};
  const cgl_alias *record = p->record;
  p->record = NULL; /* the parameter may outlive the program */
  if (!record)
    return 0;
  if (read_body(record, 1, &list))
    return -1;
  if (list.unknown || !list.n)
    return 0;
  p->fields = cgl_arena_alloc(arena, list.n * sizeof *p->fields);
  if (!p->fields)
    return -1;
  memcpy(p->fields, list.at, list.n * sizeof *p->fields);
  p->nfields = list.n;
  return 0;
}
