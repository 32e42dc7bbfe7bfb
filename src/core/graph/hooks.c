/* Hooks: added, called, removed; and the replays that call them. */
#include "core/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>

struct cgl_hook {
  cgl_hook *next;
  uint64_t id;
  cgl_hook_point point;
  cgl_hook_function function;
  void *user;
};

static atomic_uint_fast64_t next_id = 1;

static const char *const points[] = {
#define X(constant, text) text,
    CGL_HOOK_POINTS(X)
#undef X
};


static void graph_count_hooks(cgl_graph *graph) {
  graph->attend &= ~(unsigned)CGL_ATTEND_HOOKS;
  for (const cgl_hook *hook = graph->hooks; hook; hook = hook->next)
    if (hook->point == CGL_HOOK_REPLAY_START ||
        hook->point == CGL_HOOK_REPLAY_END)
      graph->attend |= CGL_ATTEND_HOOKS;
}


static void hooks_append(cgl_hooks *hooks, cgl_hook *hook) {
  while (*hooks)
    hooks = &(*hooks)->next;
  *hooks = hook;
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
  hooks_append(&graph->hooks, hook);
  graph_count_hooks(graph);
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
    graph_count_hooks(graph);
    return true;
  }
  return false;
}


/* The first hook of a point with a number above `after`: hooks may come and go
   while they are called. */
static const cgl_hook *hooks_find(const cgl_hook *hook, cgl_hook_point point,
                                  uint64_t after) {
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
         (hook = hooks_find(graph->hooks, point, id)) && hook->id < last) {
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


void cgl_hooks_detach(cgl_hooks *from, cgl_hooks *to) {
  while (*from) {
    cgl_hook *hook = *from;
    if (hook->point != CGL_HOOK_DESTROY) {
      from = &hook->next;
      continue;
    }
    *from = hook->next;
    hook->next = NULL;
    hooks_append(to, hook);
  }
}


void cgl_hooks_destroy(cgl_hooks *hooks) {
  cgl_hooks destroys = NULL;
  cgl_hooks_detach(hooks, &destroys);
  while (destroys) {
    cgl_hook hook = *destroys;
    free(destroys);
    destroys = hook.next;
    cgl_status status = hook.function(hook.user, NULL);
    if (status)
      cgl_log("a destroy hook of a graph failed (%s)", cgl_status_name(status));
  }
}


void cgl_hooks_free(cgl_hooks *hooks) {
  while (*hooks) {
    cgl_hook *hook = *hooks;
    *hooks = hook->next;
    free(hook);
  }
}


/* ---- replays ---- */

/* A launch's failure is kept while end hooks run: they may fail calls of their
   own.  Not inlined: hooks that replay would have it on the stack once each. */
__attribute__((noinline)) static cgl_status
replay_end(cgl_graph *graph, cgl_status status, const char *operation) {
  char message[1024], hint[256];
  if (!status)
    return cgl_hooks_run(graph, CGL_HOOK_REPLAY_END, operation);
  const cgl_error *error = cgl_last_error();
  const char *failed = error->operation;
  snprintf(message, sizeof message, "%s", error->message);
  snprintf(hint, sizeof hint, "%s", error->hint);
  cgl_status ended = cgl_hooks_run(graph, CGL_HOOK_REPLAY_END, operation);
  cgl_fail(status, failed, "%s", message);
  cgl_fail_hint("%s", hint);
  if (ended) {
    cgl_fail_follow(true);
    cgl_fail(ended, operation, "a replay end hook failed");
    cgl_fail_follow(false);
  }
  return status;
}


static cgl_status replay_launch(cgl_graph *graph, cgl_stream *stream,
                                uint64_t count, const char *operation) {
  if (graph->attend & CGL_ATTEND_INPUTS) {
    cgl_status status = cgl_graph_check_inputs(graph, operation);
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
    status = replay_launch(graph, stream, 1, operation);
  return replay_end(graph, status, operation);
}


cgl_status cgl_hooks_replay(cgl_graph *graph, cgl_stream *stream,
                            uint64_t count, const char *operation) {
  cgl_status status = CGL_OK;
  cgl_graph_retain(graph);
  cgl_stream_retain(stream);
  if (!(graph->attend & CGL_ATTEND_HOOKS))
    status = replay_launch(graph, stream, count, operation);
  else
    for (uint64_t i = 0; i < count && !status; i++)
      status = replay_once(graph, stream, operation);
  cgl_stream_release(stream);
  cgl_graph_release(graph);
  return status;
}
