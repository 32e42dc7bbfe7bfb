/* An image's facts as a row of strings, and back: what a cache entry has
   beside the bytes, so that a hit reads neither the source nor asks a
   compiler. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/compile.h"

/* Begins every row: changes with what a row has. */
static const char row_format[] = "waits";


static void put_string(cgl_text *out, const char *string) {
  cgl_text_add(out, string, strlen(string) + 1);
}


static void put_number(cgl_text *out, unsigned long long number) {
  char digits[24];
  snprintf(digits, sizeof digits, "%llu", number);
  put_string(out, digits);
}


static void put_field(cgl_text *out, const cgl_field *f) {
  put_string(out, f->name);
  put_string(out, f->type);
  put_number(out, f->kind);
  put_number(out, f->lanes);
  put_number(out, f->pointer);
  put_number(out, f->offset);
  put_number(out, f->size);
  for (int i = 0; i < CGL_FIELD_DIMS; i++)
    put_number(out, f->extents[i]);
  put_number(out, f->nested);
}


static void put_parameter(cgl_text *out, const cgl_parameter *p) {
  put_string(out, p->type);
  put_string(out, p->name);
  put_number(out, p->kind);
  put_number(out, p->lanes);
  put_number(out, p->pointer);
  put_number(out, p->readonly);
  put_number(out, p->restricted);
  put_number(out, p->size);
  put_number(out, p->align);
  put_number(out, p->element);
  put_number(out, p->nfields);
  for (uint32_t i = 0; i < p->nfields; i++)
    put_field(out, &p->fields[i]);
}


void cgl_image_pack(const cgl_image *image, cgl_text *out) {
  put_string(out, row_format);
  put_number(out, image->nsignatures);
  for (size_t i = 0; i < image->nsignatures; i++) {
    const cgl_signature *s = &image->signatures[i];
    put_string(out, s->name);
    put_string(out, s->lowered);
    put_number(out, s->max_threads);
    put_number(out, s->loops);
    put_number(out, s->strips);
    put_number(out, s->waits);
    put_string(out, s->fibers ? s->fibers : "");
    put_number(out, (unsigned long long)s->fibers_line);
    put_number(out, s->nparameters);
    for (size_t k = 0; k < s->nparameters; k++)
      put_parameter(out, &s->parameters[k]);
  }
  put_number(out, image->nvariables);
  for (size_t i = 0; i < image->nvariables; i++) {
    const cgl_variable *v = &image->variables[i];
    put_string(out, v->name);
    put_string(out, v->lowered);
    put_number(out, v->constant);
    put_number(out, v->internal);
  }
}


typedef struct row_reader {
  const char *at, *end;
  cgl_arena *arena;
  bool bad; /* the row ended early, or a number was none */
} row_reader;


static const char *take_string(row_reader *r) {
  size_t left = (size_t)(r->end - r->at), n = strnlen(r->at, left);
  if (n == left) {
    r->bad = true;
    return "";
  }
  const char *string = r->at;
  r->at += n + 1;
  return string;
}


static char *take_copy(row_reader *r) {
  const char *string = take_string(r);
  char *copy = cgl_arena_copy(r->arena, string, strlen(string));
  r->bad |= !copy;
  return copy;
}


static size_t take_number(row_reader *r, size_t most) {
  char *end;
  const char *digits = take_string(r);
  unsigned long long number = strtoull(digits, &end, 10);
  r->bad |= !*digits || *end || number > most;
  return r->bad ? 0 : (size_t)number;
}


/* n zeroed elements; NULL without memory, or for more than the row can hold. */
static void *take_room(row_reader *r, size_t n, size_t size) {
  void *room = n <= (size_t)(r->end - r->at)
                   ? cgl_arena_alloc(r->arena, (n + 1) * size)
                   : NULL;
  r->bad |= !room;
  return room;
}


/* `left`: how many fields come after this one. */
static void take_field(row_reader *r, cgl_field *f, uint32_t left) {
  f->name = take_copy(r);
  f->type = take_copy(r);
  f->kind = (cgl_kind)take_number(r, CGL_KIND_COUNT - 1);
  f->lanes = (uint8_t)take_number(r, 4);
  f->pointer = (uint8_t)take_number(r, 1);
  f->offset = (uint32_t)take_number(r, UINT32_MAX);
  f->size = (uint32_t)take_number(r, UINT32_MAX);
  for (int i = 0; i < CGL_FIELD_DIMS; i++)
    f->extents[i] = (uint32_t)take_number(r, UINT32_MAX);
  f->nested = (uint32_t)take_number(r, left);
}


static void take_parameter(row_reader *r, cgl_parameter *p) {
  p->type = take_copy(r);
  p->name = take_copy(r);
  p->kind = (cgl_kind)take_number(r, CGL_KIND_COUNT - 1);
  p->lanes = (uint8_t)take_number(r, 4);
  p->pointer = (uint8_t)take_number(r, 255);
  p->readonly = (uint8_t)take_number(r, 1);
  p->restricted = (uint8_t)take_number(r, 1);
  p->size = (uint32_t)take_number(r, UINT32_MAX);
  p->align = (uint32_t)take_number(r, UINT32_MAX);
  p->element = (uint32_t)take_number(r, UINT32_MAX);
  uint32_t n = (uint32_t)take_number(r, CGL_FIELDS_MOST);
  p->fields = n ? take_room(r, n, sizeof *p->fields) : NULL;
  for (; p->nfields < n && !r->bad; p->nfields++)
    take_field(r, &p->fields[p->nfields], n - p->nfields - 1);
}


static void take_signature(row_reader *r, cgl_signature *s) {
  s->name = take_copy(r);
  s->lowered = take_copy(r);
  s->max_threads = (uint32_t)take_number(r, 1024);
  s->loops = take_number(r, 1);
  s->strips = take_number(r, 1);
  s->waits = take_number(r, 1);
  s->fibers = take_copy(r);
  if (s->fibers && !*s->fibers)
    s->fibers = NULL;
  s->fibers_line = (int)take_number(r, INT_MAX);
  size_t n = take_number(r, SIZE_MAX);
  s->parameters = take_room(r, n, sizeof *s->parameters);
  for (; s->nparameters < n && !r->bad; s->nparameters++)
    take_parameter(r, &s->parameters[s->nparameters]);
}


int cgl_image_unpack(cgl_image *image, const char *row, size_t length) {
  row_reader r = {.at = row, .end = row + length, .arena = &image->arena};
  r.bad = strcmp(take_string(&r), row_format) != 0;
  size_t n = take_number(&r, SIZE_MAX);
  image->signatures = take_room(&r, n, sizeof *image->signatures);
  for (; image->nsignatures < n && !r.bad; image->nsignatures++)
    take_signature(&r, &image->signatures[image->nsignatures]);
  n = take_number(&r, SIZE_MAX);
  image->variables = take_room(&r, n, sizeof *image->variables);
  for (; image->nvariables < n && !r.bad; image->nvariables++) {
    cgl_variable *v = &image->variables[image->nvariables];
    v->name = take_copy(&r);
    v->lowered = take_copy(&r);
    v->constant = take_number(&r, 1);
    v->internal = take_number(&r, 1);
  }
  return r.bad || r.at != r.end ? -1 : 0;
}
