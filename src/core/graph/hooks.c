/* Hooks: added, called, removed; and the replays that they attend. */
#include "core/graph/hooks.h"
#include "core/graph/annotate.h"
#include "core/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>

static atomic_uint_fast64_t next_id = 1;

static const char *const points[] = {
#define X(constant, text) text,
    CGL_HOOK_POINTS(X)
#undef X
};


static void count_attendants(cgl_graph *graph) {
  graph->attend &= ~(unsigned)CGL_ATTEND_HOOKS;
  for (const cgl_hook *hook = graph->hooks; hook; hook = hook->next)
    if (hook->point == CGL_HOOK_REPLAY_START ||
        hook->point == CGL_HOOK_REPLAY_END)
      graph->attend |= CGL_ATTEND_HOOKS;
}


static void append(cgl_graph *graph, cgl_hook *hook) {
  cgl_hook **end = &graph->hooks;
  while (*end)
    end = &(*end)->next;
  *end = hook;
}


cgl_status cgl_graph_add_hook(cgl_graph *graph, cgl_hook_point point,
                              cgl_hook_function function, void *user,
                              uint64_t *id) {
  static const char operation[] = "graph:add_hook";
  if (!function || (unsigned)point >= sizeof points / sizeof *points) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "a hook needs a function and a point, got point %d", (int)point);
    return cgl_fail_hint("name one of CGL_HOOK_POINTS");
  }
  cgl_hook *hook = malloc(sizeof *hook);
  if (!hook)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a hook");
  *hook =
      (cgl_hook){NULL, atomic_fetch_add(&next_id, 1), point, function, user};
  append(graph, hook);
  count_attendants(graph);
  if (id)
    *id = hook->id;
  return CGL_OK;
}


bool cgl_graph_remove_hook(cgl_graph *graph, uint64_t id) {
  for (cgl_hook **link = &graph->hooks; *link; link = &(*link)->next) {
    cgl_hook *hook = *link;
    if (hook->id != id)
      continue;
    *link = hook->next;
    free(hook);
    count_attendants(graph);
    return true;
  }
  return false;
}


/* The first hook of a point with a number above `after`: hooks may come and go
   while they are called. */
static const cgl_hook *find(const cgl_graph *graph, cgl_hook_point point,
                            uint64_t after) {
  const cgl_hook *hook = graph->hooks;
  while (hook && (hook->point != point || hook->id <= after))
    hook = hook->next;
  return hook;
}


cgl_status cgl_hooks_run(cgl_graph *graph, cgl_hook_point point,
                         const char *operation) {
  const cgl_site site = cgl_site_here;
  const uint64_t last = atomic_load(&next_id);
  cgl_status first = CGL_OK;
  uint64_t id = 0;
  const cgl_hook *hook;
  while ((!first || point == CGL_HOOK_REPLAY_END) &&
         (hook = find(graph, point, id)) && hook->id < last) {
    id = hook->id;
    cgl_status status = hook->function(hook->user, graph);
    first = first ? first : status;
  }
  cgl_site_here = site;
  /* Whatever the hook called may have noted failures of its own. */
  if (first)
    cgl_fail(first, operation, "a %s hook failed", points[point]);
  return first;
}


void cgl_hooks_bequeath(cgl_graph *from, cgl_graph *to) {
  for (cgl_hook **link = &from->hooks; *link;) {
    cgl_hook *hook = *link;
    if (hook->point != CGL_HOOK_DESTROY) {
      link = &hook->next;
      continue;
    }
    *link = hook->next;
    hook->next = NULL;
    append(to, hook);
  }
}


void cgl_hooks_destroy(cgl_graph *graph) {
  const cgl_hook *found;
  while ((found = find(graph, CGL_HOOK_DESTROY, 0))) {
    const cgl_hook hook = *found;
    cgl_graph_remove_hook(graph, hook.id);
    cgl_status status = hook.function(hook.user, NULL);
    if (status)
      cgl_log("a destroy hook of a graph failed (%s)", cgl_status_name(status));
  }
}


void cgl_hooks_free(cgl_graph *graph) {
  while (graph->hooks) {
    cgl_hook *hook = graph->hooks;
    graph->hooks = hook->next;
    free(hook);
  }
}


/* ---- replays ---- */

/* A launch's failure, while end hooks run: they may fail calls of their own. */
typedef struct failure {
  cgl_status status;
  const char *operation;
  char message[1024], hint[256];
} failure;


static void take(failure *first) {
  const cgl_error *error = cgl_last_error();
  first->operation = error->operation;
  snprintf(first->message, sizeof first->message, "%s", error->message);
  snprintf(first->hint, sizeof first->hint, "%s", error->hint);
}


static void put_back(const failure *first) {
  cgl_fail(first->status, first->operation, "%s", first->message);
  cgl_fail_hint("%s", first->hint);
}


/* Not inlined: hooks that replay would have it on the stack once each. */
__attribute__((noinline)) static cgl_status
end(cgl_graph *graph, cgl_status status, const char *operation) {
  failure first = {.status = status};
  if (status)
    take(&first);
  cgl_status ended = cgl_hooks_run(graph, CGL_HOOK_REPLAY_END, operation);
  if (!status)
    return ended;
  put_back(&first);
  if (ended) {
    cgl_fail_follow(true);
    cgl_fail(ended, operation, "a replay end hook failed");
    cgl_fail_follow(false);
  }
  return status;
}


static cgl_status launch(cgl_graph *graph, cgl_stream *stream, uint64_t count,
                         const char *operation) {
  if (graph->attend & CGL_ATTEND_INPUTS) {
    cgl_status status = cgl_inputs_check(graph, operation);
    if (status)
      return status;
  }
  if (graph->attend & CGL_ATTEND_RANGES)
    cgl_nvtx_push(graph->label);
  cgl_status status = cgl_graph_launch(graph, stream, count, operation);
  if (graph->attend & CGL_ATTEND_RANGES)
    cgl_nvtx_pop();
  return status;
}


static cgl_status replay_once(cgl_graph *graph, cgl_stream *stream,
                              const char *operation) {
  cgl_status status = cgl_hooks_run(graph, CGL_HOOK_REPLAY_START, operation);
  if (status)
    return status;
  /* A hook may have reset the graph, or gone to another device. */
  status = cgl_graph_prepare(graph, stream, operation);
  if (!status)
    status = launch(graph, stream, 1, operation);
  return end(graph, status, operation);
}


cgl_status cgl_replay_attended(cgl_graph *graph, cgl_stream *stream,
                               uint64_t count, const char *operation) {
  cgl_status status = CGL_OK;
  cgl_graph_retain(graph);
  cgl_stream_retain(stream);
  if (!(graph->attend & CGL_ATTEND_HOOKS))
    status = launch(graph, stream, count, operation);
  else
    for (uint64_t i = 0; i < count && !status; i++)
      status = replay_once(graph, stream, operation);
  cgl_stream_release(stream);
  cgl_graph_release(graph);
  return status;
}
