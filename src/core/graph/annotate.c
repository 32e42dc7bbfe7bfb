/* Scopes of annotations: begun, ended, and found again in the nodes. */
#include "core/graph/annotate.h"
#include "core/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static atomic_uint_fast64_t next_id = 1;


static const cgl_annotation *find(const cgl_annotation *pairs, size_t n,
                                  const char *key) {
  for (size_t i = 0; i < n; i++)
    if (!strcmp(pairs[i].key, key))
      return &pairs[i];
  return NULL;
}


static size_t text_bytes(const cgl_annotation *pair) {
  return strlen(pair->key) + 1 +
         (pair->kind == CGL_ANNOTATION_TEXT ? strlen(pair->text) + 1 : 0);
}


static char *copy_text(char *at, const char *from, const char **to) {
  size_t bytes = strlen(from) + 1;
  memcpy(at, from, bytes);
  *to = at;
  return at + bytes;
}


static char *copy_pair(cgl_scope *scope, const cgl_annotation *from, char *at) {
  cgl_annotation *pair = &scope->pairs[scope->npairs++];
  *pair = *from;
  at = copy_text(at, from->key, &pair->key);
  return from->kind == CGL_ANNOTATION_TEXT
             ? copy_text(at, from->text, &pair->text)
             : at;
}


/* The pairs given, then those of the scope around that they leave. */
static cgl_scope *new_scope(const cgl_scope *around,
                            const cgl_annotation *pairs, size_t n) {
  const size_t outer = around ? around->npairs : 0;
  size_t bytes = sizeof(cgl_scope) + (n + outer) * sizeof *pairs;
  for (size_t i = 0; i < n; i++)
    bytes += text_bytes(&pairs[i]);
  for (size_t i = 0; i < outer; i++)
    bytes += text_bytes(&around->pairs[i]);
  cgl_scope *scope = calloc(1, bytes);
  if (!scope)
    return NULL;
  char *at = (char *)(scope->pairs + n + outer);
  for (size_t i = 0; i < n; i++)
    if (!find(scope->pairs, scope->npairs, pairs[i].key))
      at = copy_pair(scope, &pairs[i], at);
  for (size_t i = 0; i < outer; i++)
    if (!find(pairs, n, around->pairs[i].key))
      at = copy_pair(scope, &around->pairs[i], at);
  const cgl_annotation *label = find(scope->pairs, scope->npairs, "label");
  scope->label =
      label && label->kind == CGL_ANNOTATION_TEXT ? label->text : NULL;
  scope->around = around;
  scope->id = atomic_fetch_add(&next_id, 1);
  return scope;
}


static cgl_status check(const cgl_annotation *pairs, size_t n,
                        const char *operation) {
  for (size_t i = 0; i < n; i++)
    if (!pairs[i].key || (unsigned)pairs[i].kind > CGL_ANNOTATION_BOOLEAN ||
        (pairs[i].kind == CGL_ANNOTATION_TEXT && !pairs[i].text)) {
      cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
               "annotation %zu has no key, or no value", i);
      return cgl_fail_hint("give each a key, a kind, and a text of that kind");
    }
  return CGL_OK;
}


/* How many nodes the capture has; not known: SIZE_MAX.  Where nobody else adds
   any, they are the operations. */
static size_t count_nodes(const cgl_graph *graph) {
  if (!graph->watched)
    return graph->recording.nops;
  cgl_captured now;
  size_t count = 0;
  CUresult result = cgl_capture_ask(graph->origin, &now);
  if (!result)
    result = cgl_driver_of(graph)->cuGraphGetNodes(now.graph, NULL, &count);
  return result ? SIZE_MAX : count;
}


/* Others may add nodes: remembers from which on the scope holds. */
static void mark(cgl_graph *graph) {
  cgl_recording *recording = &graph->recording;
  size_t count = count_nodes(graph);
  if (count == SIZE_MAX)
    return;
  cgl_scope_mark *grown =
      realloc(recording->marks, (recording->nmarks + 1) * sizeof *grown);
  if (!grown)
    return;
  recording->marks = grown;
  grown[recording->nmarks++] = (cgl_scope_mark){count, recording->scope};
}


cgl_status cgl_graph_annotate(cgl_graph *graph, const cgl_annotation *pairs,
                              size_t n, uint64_t *id) {
  static const char operation[] = "graph:annotate";
  cgl_recording *recording = &graph->recording;
  *id = 0;
  cgl_status status = check(pairs, n, operation);
  if (status || graph->state != CGL_GRAPH_CAPTURING || !graph->annotations)
    return status;
  cgl_scope *scope = new_scope(recording->scope, pairs, n);
  if (!scope)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory to annotate");
  scope->next = recording->scopes;
  recording->scopes = scope;
  recording->scope = scope;
  mark(graph);
  if (graph->annotations == CGL_ANNOTATIONS_NVTX) {
    char text[200];
    cgl_annotate_text(scope, text, sizeof text);
    cgl_nvtx_push(text);
  }
  *id = scope->id;
  return CGL_OK;
}


/* Leaves the scopes inside `around`. */
static void leave(cgl_graph *graph, const cgl_scope *around) {
  const cgl_scope *scope = graph->recording.scope;
  graph->recording.scope = around;
  if (graph->annotations == CGL_ANNOTATIONS_NVTX)
    for (; scope != around; scope = scope->around)
      cgl_nvtx_pop();
}


void cgl_graph_annotate_end(cgl_graph *graph, uint64_t id) {
  const cgl_scope *scope = graph->recording.scope;
  while (scope && scope->id != id)
    scope = scope->around;
  if (!scope)
    return;
  leave(graph, scope->around);
  mark(graph);
}


void cgl_annotate_close(cgl_graph *graph) {
  leave(graph, NULL);
}


void cgl_graph_clear_annotations(cgl_graph *graph) {
  for (size_t i = 0; i < graph->recording.nops; i++)
    graph->recording.ops[i].scope = NULL;
}


void cgl_annotate_foreign(cgl_graph *graph) {
  cgl_recording *recording = &graph->recording;
  const cgl_scope *scope = NULL;
  size_t next = 0;
  for (size_t i = 0; i < recording->nops && recording->nmarks; i++) {
    while (next < recording->nmarks && recording->marks[next].node <= i)
      scope = recording->marks[next++].scope;
    if (recording->ops[i].kind == CGL_OP_FOREIGN)
      recording->ops[i].scope = scope;
  }
}


void cgl_annotate_free(cgl_recording *recording) {
  while (recording->scopes) {
    cgl_scope *scope = recording->scopes;
    recording->scopes = scope->next;
    free(scope);
  }
  free(recording->marks);
  recording->scope = NULL;
  recording->marks = NULL;
  recording->nmarks = 0;
}


static bool same(const cgl_annotation *a, const cgl_annotation *b) {
  return a && b && a->kind == b->kind &&
         (a->kind == CGL_ANNOTATION_TEXT ? !strcmp(a->text, b->text)
                                         : a->number == b->number);
}


void cgl_annotate_text(const cgl_scope *scope, char *text, size_t size) {
  const cgl_scope *around = scope->around;
  size_t at = 0;
  text[0] = 0;
  for (size_t i = 0; i < 2 * scope->npairs && at < size; i++) {
    const cgl_annotation *pair = &scope->pairs[i % scope->npairs];
    const bool label = pair->text && pair->text == scope->label;
    /* The label in the first round, the others in the second. */
    if (label != (i < scope->npairs) ||
        (around && same(pair, find(around->pairs, around->npairs, pair->key))))
      continue;
    const char *comma = at ? ", " : "";
    int n;
    if (label)
      n = snprintf(text + at, size - at, "%s", pair->text);
    else if (pair->kind == CGL_ANNOTATION_NUMBER)
      n = snprintf(text + at, size - at, "%s%s=%.14g", comma, pair->key,
                   pair->number);
    else
      n = snprintf(text + at, size - at, "%s%s=%s", comma, pair->key,
                   pair->kind == CGL_ANNOTATION_TEXT ? pair->text
                   : pair->number != 0               ? "true"
                                                     : "false");
    at += n > 0 ? (size_t)n : 0;
  }
}
