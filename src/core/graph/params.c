/* Parameters in a captured graph: a change reaches the nodes that use it.
   Idea: the graph watches its parameters.  Before a replay it takes what was
   set since the last one into the recording, and sets the nodes of the
   executable whose values changed; a child graph's node is set as a whole.  The
   bodies of a conditional node cannot be set in an executable: where their
   values changed, the template is built anew from the recording, and
   instantiated.
   Where other values follow from parameters, all are checked before any is
   taken: a replay that is refused has changed nothing, and the next one looks
   again.  Invariants: an operation is `due` while the executable's node lacks
   values that the recording has, and its index then stands in `due`; without
   changes and without a due operation, the executable has what the parameters
   were at the last look. */
#include "core/graph/build.h"

#include <stdlib.h>
#include <string.h>

typedef struct place {
  cgl_param *param;
  uint32_t op, use; /* of the graph's own recording */
  bool body;        /* it is somewhere in a body instead */
} place;

typedef struct watched {
  cgl_param_watch watch;
  size_t first, count; /* of the places */
  bool bodies;         /* some are in bodies */
} watched;

struct cgl_graph_params {
  watched *watched; /* by parameter, no two of the same */
  place *places;    /* sorted by parameter */
  size_t nwatched, nplaces;
  uint32_t *due; /* indices of operations */
  size_t ndue;
  bool ruled;   /* an operation has a rule (record.h) */
  bool rebuild; /* the template lacks values of bodies */
  bool behind;  /* the executable lacks those of the template */
};


/* ---- what is watched ---- */

/* Adds the places in the recording and its bodies; NULL: counts them. */
static size_t places_list(const cgl_recording *recording, bool body,
                          place *places) {
  size_t n = 0;
  const cgl_recording *inner;
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    const cgl_param_use *uses = cgl_record_uses(recording, op);
    for (uint32_t k = 0; k < op->nuses; k++, n++)
      if (places)
        places[n] = (place){uses[k].follows ? NULL : uses[k].param, (uint32_t)i,
                            k, body};
  }
  for (size_t i = 0; (inner = cgl_record_body(recording, i)); i++)
    n += places_list(inner, true, places ? places + n : NULL);
  return n;
}


static int place_compare(const void *a, const void *b) {
  const place *x = a, *y = b;
  const uintptr_t p = (uintptr_t)x->param, q = (uintptr_t)y->param;
  return p != q           ? (p < q ? -1 : 1)
         : x->op != y->op ? (x->op < y->op ? -1 : 1)
                          : 0;
}


cgl_status cgl_graph_watch_params(cgl_graph *graph, const char *operation) {
  if (!cgl_record_varies(graph->recording))
    return CGL_OK;
  const size_t n = places_list(graph->recording, false, NULL);
  cgl_graph_params *p = calloc(1, sizeof *p);
  if (p) {
    p->watched = malloc((n + 1) * sizeof *p->watched);
    p->places = malloc((n + 1) * sizeof *p->places);
    p->due = malloc((cgl_record_count(graph->recording) + 1) * sizeof *p->due);
  }
  graph->params = p;
  if (!p || !p->watched || !p->places || !p->due)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory to watch the graph's parameters");
  p->nplaces = places_list(graph->recording, false, p->places);
  p->ruled = cgl_record_has_rules(graph->recording);
  qsort(p->places, n, sizeof *p->places, place_compare);
  for (size_t i = 0; i < n; i++) {
    if (!p->places[i].param)
      continue;
    watched *w = p->nwatched ? &p->watched[p->nwatched - 1] : NULL;
    if (!w || w->watch.param != p->places[i].param) {
      w = &p->watched[p->nwatched++];
      w->first = i;
      w->count = 0;
      w->bodies = false;
      cgl_param_watch_begin(&w->watch, p->places[i].param,
                            &graph->param_changes);
    }
    w->count++;
    w->bodies |= p->places[i].body;
  }
  return cgl_graph_list_inputs(graph, operation);
}


void cgl_graph_unwatch_params(cgl_graph *graph) {
  cgl_graph_params *p = graph->params;
  cgl_graph_free_inputs(graph);
  if (!p)
    return;
  for (size_t i = 0; i < p->nwatched; i++)
    cgl_param_watch_end(&p->watched[i].watch);
  cgl_param_take(&graph->param_changes);
  free(p->watched);
  free(p->places);
  free(p->due);
  free(p);
  graph->params = NULL;
  graph->attend &= ~(unsigned)CGL_ATTEND_PARAMS;
}


/* ---- changes ---- */

void cgl_graph_lacks_values(cgl_graph *graph, size_t index) {
  cgl_graph_params *p = graph->params;
  p->due[p->ndue++] = (uint32_t)index;
  graph->attend |= CGL_ATTEND_PARAMS;
}


void cgl_graph_lacks_bodies(cgl_graph *graph, size_t index) {
  const cgl_op *op = cgl_record_op(graph->recording, index);
  graph->attend |= CGL_ATTEND_PARAMS;
  if (op->kind != CGL_OP_GRAPH) {
    graph->params->rebuild = true;
    return;
  }
  if (!op->due)
    cgl_graph_lacks_values(graph, index);
  cgl_record_set_due(graph->recording, index);
}


/* Puts what parameters are now into bodies. */
static bool bodies_renew(cgl_graph *graph) {
  cgl_recording *recording = graph->recording;
  for (size_t i = 0; i < cgl_record_count(recording); i++)
    if (cgl_record_bodies_are_behind(recording, cgl_record_op(recording, i)))
      cgl_graph_lacks_bodies(graph, i);
  return cgl_record_renew_bodies(recording);
}


/* Puts the values of a parameter into the recording. */
static bool watched_renew(cgl_graph *graph, const watched *w) {
  cgl_graph_params *p = graph->params;
  for (size_t i = w->first; i < w->first + w->count; i++) {
    const place *at = &p->places[i];
    if (at->body)
      continue;
    const bool due = cgl_record_op(graph->recording, at->op)->due;
    if (cgl_record_renew(graph->recording, at->op, at->use) && !due)
      cgl_graph_lacks_values(graph, at->op);
  }
  return !w->bodies || bodies_renew(graph);
}


/* Refuses changes that the rule of an operation refuses; none is taken. */
static cgl_status changes_check(const cgl_graph *graph, const char *operation) {
  const cgl_graph_params *p = graph->params;
  const cgl_recording *recording = graph->recording;
  const cgl_param_watch *watch = atomic_load(&graph->param_changes);
  cgl_status status = CGL_OK;
  for (; watch && !status; watch = watch->changed) {
    const watched *w = (const watched *)watch;
    for (size_t i = w->first; i < w->first + w->count && !status; i++)
      if (!p->places[i].body)
        status = cgl_record_check_rule(
            recording, cgl_record_op(recording, p->places[i].op), operation);
    for (size_t i = 0; w->bodies && !status && cgl_record_body(recording, i);
         i++)
      status = cgl_record_check_rules(cgl_record_body(recording, i), operation);
  }
  return status;
}


/* Puts all changes into the recording; what fails is looked at again. */
static cgl_status params_note(cgl_graph *graph, const char *operation) {
  cgl_graph_params *p = graph->params;
  if (!p || !atomic_load_explicit(&graph->param_changes, memory_order_relaxed))
    return CGL_OK;
  cgl_status status = p->ruled ? changes_check(graph, operation) : CGL_OK;
  if (status)
    return status;
  bool noted = cgl_record_own(&graph->recording);
  cgl_param_watch *watch = noted ? cgl_param_take(&graph->param_changes) : NULL;
  while (watch) {
    cgl_param_watch *next = cgl_param_take_next(watch);
    if (!watched_renew(graph, (watched *)watch)) {
      cgl_param_watch_again(watch);
      noted = false;
    }
    watch = next;
  }
  return noted ? CGL_OK
               : cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                          "no memory to note what parameters are now");
}


/* A graph of the driver's with the values that bodies have now.  What others
   changed in the one before is not in the recording. */
static cgl_status template_rebuild(cgl_graph *graph, const char *operation) {
  cgl_context *context = graph->object.context;
  cgl_recording *recording = graph->recording;
  CUgraph built;
  if (graph->unroll.shown) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "a parameter changed in the body of a conditional node, for which "
             "the graph is built anew, and its handles were given out");
    return cgl_fail_hint("capture again, or keep in a buffer what changes in "
                         "bodies");
  }
  cgl_relaxed relaxed = cgl_captures_relax(context);
  cgl_status status = cgl_graph_learn(graph, operation);
  if (!status)
    status = cgl_build_graph(context, recording, 1, operation, &built);
  if (!status) {
    CUgraph before = graph->template->graph;
    status = cgl_fail_driver(context,
                             cgl_record_learn_nodes(recording, built, 0, true),
                             operation, "cuGraphGetNodes");
    graph->template->graph = status ? before : built;
    context->driver->cuGraphDestroy(status ? built : before);
  }
  cgl_captures_unrelax(context, relaxed);
  return status;
}


cgl_status cgl_graph_note_params(cgl_graph *graph, const char *operation) {
  cgl_graph_params *p = graph->params;
  cgl_status status = params_note(graph, operation);
  if (status || !p || !p->rebuild)
    return status;
  status = template_rebuild(graph, operation);
  if (status)
    return status;
  for (size_t i = 0; cgl_record_next_stale(graph->recording, &i);)
    cgl_record_refreshed(graph->recording, i);
  p->rebuild = false;
  p->behind = true;
  return CGL_OK;
}


void cgl_graph_params_taken(cgl_graph *graph) {
  cgl_graph_params *p = graph->params;
  if (!p)
    return;
  while (p->ndue)
    cgl_record_renewed(graph->recording, p->due[--p->ndue]);
  p->behind = false;
  graph->attend &= ~(unsigned)CGL_ATTEND_PARAMS;
}


cgl_status cgl_graph_take_params(cgl_graph *graph, const char *operation) {
  cgl_graph_params *p = graph->params;
  cgl_status status = cgl_graph_note_params(graph, operation);
  if (status || !p || !graph->exec)
    return status;
  if (p->behind)
    return cgl_graph_make_executable(graph, operation);
  if (p->ndue)
    cgl_graph_unroll_drop(graph);
  for (; p->ndue && !status; p->ndue -= !status) {
    const size_t index = p->due[p->ndue - 1];
    status = cgl_graph_set_executable_node(graph, index, operation);
    if (!status)
      cgl_record_renewed(graph->recording, index);
  }
  if (!status)
    graph->attend &= ~(unsigned)CGL_ATTEND_PARAMS;
  return status;
}


/* ---- what a graph uses ---- */

typedef struct listing {
  cgl_graph_param_use *uses;
  size_t room, count;
} listing;


/* `node`: the graph's whose body the recording is, or SIZE_MAX for its own. */
static void listing_add(listing *all, const cgl_recording *recording,
                        size_t node) {
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    const cgl_param_use *use = cgl_record_uses(recording, op);
    const cgl_recording *const *bodies = cgl_record_bodies(recording, op);
    const size_t at = node == SIZE_MAX ? i : node;
    for (uint32_t k = 0; k < op->nuses; k++, use++)
      if (use->param && all->count++ < all->room)
        all->uses[all->count - 1] =
            (cgl_graph_param_use){.param = use->param,
                                  .node = at,
                                  .body = node != SIZE_MAX,
                                  .follows = use->follows,
                                  .argument = use->argument,
                                  .kind = cgl_record_words[op->kind],
                                  .name = op->name,
                                  .file = op->site.file ? op->site.file : "",
                                  .line = op->site.line};
    for (uint32_t k = 0; k < op->nbodies; k++)
      listing_add(all, bodies[k], at);
  }
}


cgl_status cgl_graph_params_used(cgl_graph *graph, cgl_graph_param_use *uses,
                                 size_t room, size_t *count) {
  cgl_status status = cgl_graph_check_captured(graph, "graph:params");
  listing all = {uses, room, 0};
  if (!status && graph->params)
    listing_add(&all, graph->recording, SIZE_MAX);
  *count = all.count;
  return status;
}


/* Whether a parameter of that name follows a buffer somewhere. */
static bool listing_follows(const cgl_recording *recording, const char *name) {
  const cgl_recording *body;
  bool follows = false;
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    const cgl_param_use *use = cgl_record_uses(recording, op);
    for (uint32_t k = 0; k < op->nuses; k++, use++)
      follows |= use->param && use->follows && !strcmp(use->param->name, name);
  }
  for (size_t i = 0; (body = cgl_record_body(recording, i)) && !follows; i++)
    follows = listing_follows(body, name);
  return follows;
}


/* Does the graph still use it?  Numbers that set_params gave end uses. */
static bool watched_lives(const cgl_graph *graph, const watched *w) {
  const place *at = graph->params->places + w->first;
  bool lives = w->bodies;
  for (size_t i = 0; i < w->count && !lives; i++, at++) {
    const cgl_op *op = cgl_record_op(graph->recording, at->op);
    lives = cgl_record_uses(graph->recording, op)[at->use].param == at->param;
  }
  return lives;
}


cgl_status cgl_graph_param(cgl_graph *graph, const char *name,
                           cgl_param **param) {
  static const char operation[] = "graph:set";
  const cgl_graph_params *p = graph->params;
  size_t found = 0;
  cgl_status status = cgl_graph_check_captured(graph, operation);
  for (size_t i = 0; p && i < p->nwatched; i++)
    if (!strcmp(p->watched[i].watch.param->name, name) &&
        watched_lives(graph, &p->watched[i])) {
      *param = p->watched[i].watch.param;
      found++;
    }
  if (status || found == 1)
    return status;
  if (!status && !found && listing_follows(graph->recording, name)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the parameter \"%s\" follows a buffer in the graph", name);
    return cgl_fail_hint("write to the buffer; graph:params lists where it is "
                         "used");
  }
  cgl_fail(found ? CGL_ERROR_INVALID_ARGUMENT : CGL_ERROR_NOT_FOUND, operation,
           found ? "%zu parameters of the graph have the name \"%s\""
                 : "none of %zu parameters of the graph has the name \"%s\"",
           found ? found
           : p   ? p->nwatched
                 : 0,
           name);
  return cgl_fail_hint(found ? "set each by itself"
                             : "graph:params lists them");
}
