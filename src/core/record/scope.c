/* Scopes of annotations: begun, ended, and found again in the nodes. */
#include "core/record/recording_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compile/base/base.h"

static atomic_uint_fast64_t next_id = 1;


static void scopes_destroy(cgl_object *object) {
  struct cgl_scopes *scopes = (struct cgl_scopes *)object;
  while (scopes->first) {
    cgl_scope *scope = scopes->first;
    scopes->first = scope->next;
    free(scope);
  }
  free(scopes);
}


static const cgl_object_kind scopes_kind = {
    .number = CGL_OBJECT_INTERNAL,
    .light = true,
    .destroy = scopes_destroy,
};


static const cgl_annotation *pair_find(const cgl_annotation *pairs, size_t n,
                                       const char *key) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(pairs[i].key, key))
      return &pairs[i];
  return NULL;
}


/* Copies a text to *at, and moves that past it. */
static const char *text_copy(char **at, const char *from) {
  const size_t bytes = strlen(from) + 1;
  char *to = memcpy(*at, from, bytes);
  *at += bytes;
  return to;
}


/* The pairs given, then those of the scope around that they leave, whose texts
   live as long. */
static cgl_scope *scope_new(const cgl_scope *around,
                            const cgl_annotation *pairs, size_t n) {
  const size_t outer = around ? around->npairs : 0;
  size_t bytes = sizeof(cgl_scope) + (n + outer) * sizeof *pairs;
  for (size_t i = 0; i < n; i++)
    bytes +=
        strlen(pairs[i].key) + 1 +
        (pairs[i].kind == CGL_ANNOTATION_TEXT ? strlen(pairs[i].text) + 1 : 0);
  cgl_scope *scope = calloc(1, bytes);
  if (!scope)
    return NULL;
  char *at = (char *)(scope->pairs + n + outer);
  for (size_t i = 0; i < n; i++) {
    if (pair_find(scope->pairs, scope->npairs, pairs[i].key))
      continue;
    cgl_annotation *pair = &scope->pairs[scope->npairs++];
    *pair = pairs[i];
    pair->key = text_copy(&at, pairs[i].key);
    if (pair->kind == CGL_ANNOTATION_TEXT)
      pair->text = text_copy(&at, pairs[i].text);
  }
  for (size_t i = 0; i < outer; i++)
    if (!pair_find(pairs, n, around->pairs[i].key))
      scope->pairs[scope->npairs++] = around->pairs[i];
  const cgl_annotation *label = pair_find(scope->pairs, scope->npairs, "label");
  scope->label =
      label && label->kind == CGL_ANNOTATION_TEXT ? label->text : NULL;
  scope->around = around;
  scope->id = atomic_fetch_add(&next_id, 1);
  return scope;
}


/* Others may add nodes: remembers from which on the scope holds. */
static void scope_mark(cgl_capture *capture) {
  cgl_recording *recording = capture->recording;
  cgl_captured now;
  size_t count = recording->nops;
  if (capture->watched &&
      (cgl_capture_ask(capture->origin, &now) ||
       recording->context->driver->cuGraphGetNodes(now.graph, NULL, &count)))
    return;
  struct cgl_scope_mark *grown =
      realloc(recording->marks, (recording->nmarks + 1) * sizeof *grown);
  if (!grown)
    return;
  recording->marks = grown;
  grown[recording->nmarks++] = (struct cgl_scope_mark){count, recording->scope};
}


static bool record_make_scopes(cgl_recording *recording) {
  if (!recording->scopes &&
      (recording->scopes = calloc(1, sizeof *recording->scopes)))
    cgl_object_init(&recording->scopes->object, &scopes_kind,
                    recording->context);
  return recording->scopes;
}


bool cgl_scope_enter_body(cgl_capture *body, cgl_recording *around) {
  if (!record_make_scopes(around))
    return false;
  cgl_object_retain(&around->scopes->object);
  body->recording->scopes = around->scopes;
  body->recording->scope = around->scope;
  return true;
}


const cgl_scope *cgl_scope_begin(cgl_capture *capture,
                                 const cgl_annotation *pairs, size_t n) {
  cgl_recording *recording = capture->recording;
  cgl_scope *scope = record_make_scopes(recording)
                         ? scope_new(recording->scope, pairs, n)
                         : NULL;
  if (!scope)
    return NULL;
  scope->next = recording->scopes->first;
  recording->scopes->first = scope;
  recording->scope = scope;
  scope_mark(capture);
  return scope;
}


size_t cgl_scope_end(cgl_capture *capture, uint64_t id) {
  cgl_recording *recording = capture->recording;
  const cgl_scope *scope = recording->scope;
  size_t left = 0;
  for (; scope && scope->id != id; scope = scope->around)
    left++;
  if (id && !scope)
    return 0;
  recording->scope = scope ? scope->around : NULL;
  if (id)
    scope_mark(capture);
  return left + !!scope;
}


void cgl_scope_clear(cgl_recording *recording) {
  for (size_t i = 0; i < recording->nops; i++) {
    const cgl_op *op = &recording->ops[i];
    recording->ops[i].scope = NULL;
    for (uint32_t k = 0; op->kind == CGL_OP_CONDITIONAL && k < op->nbodies; k++)
      cgl_scope_clear(recording->bodies[op->body - 1 + k]);
  }
}


void cgl_scope_find_foreign(cgl_recording *recording) {
  const cgl_scope *scope = NULL;
  size_t next = 0;
  for (size_t i = 0; i < recording->nops && recording->nmarks; i++) {
    while (next < recording->nmarks && recording->marks[next].node <= i)
      scope = recording->marks[next++].scope;
    if (recording->ops[i].kind == CGL_OP_FOREIGN)
      recording->ops[i].scope = scope;
  }
}


static bool pair_is_same(const cgl_annotation *a, const cgl_annotation *b) {
  return a && b && a->kind == b->kind &&
         (a->kind == CGL_ANNOTATION_TEXT ? !strcmp(a->text, b->text)
                                         : a->number == b->number);
}


void cgl_scope_text(const cgl_scope *scope, char *text, size_t size) {
  const cgl_scope *around = scope->around;
  size_t at = 0;
  text[0] = 0;
  for (size_t i = 0; i < 2 * scope->npairs && at < size; i++) {
    const cgl_annotation *pair = &scope->pairs[i % scope->npairs];
    const bool label = pair->text && pair->text == scope->label;
    /* The label in the first round, the others in the second. */
    if (label != (i < scope->npairs) ||
        (around && pair_is_same(pair, pair_find(around->pairs, around->npairs,
                                                pair->key))))
      continue;
    char number[32];
    const char *value = pair->text;
    if (pair->kind == CGL_ANNOTATION_BOOLEAN)
      value = pair->number != 0 ? "true" : "false";
    else if (pair->kind == CGL_ANNOTATION_NUMBER) {
      cgl_format_number(number, sizeof number, pair->number);
      value = number;
    }
    const int n = label ? snprintf(text + at, size - at, "%s", value)
                        : snprintf(text + at, size - at, "%s%s=%s",
                                   at ? ", " : "", pair->key, value);
    at += n > 0 ? (size_t)n : 0;
  }
}
