/* Hooks: added, called, removed; and the replays that call them. */
#include "core/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>

struct cgl_hook {
  uint64_t id;
  cgl_hook_point point;
  cgl_hook_function function; /* NULL: removed */
  void *user;
};

static atomic_uint_fast64_t next_id = 1;

static const char *const points[] = {
#define X(constant, text) text,
    CGL_HOOK_POINTS(X)
#undef X
};


/* Where the hooks with a number above `after` begin. */
static size_t hooks_after(const cgl_hooks *hooks, uint64_t after) {
  size_t low = 0, high = hooks->count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (hooks->list[middle].id <= after)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}


static bool hooks_append(cgl_hooks *hooks, cgl_hook hook) {
  if (hooks->count == hooks->room) {
    const size_t room = 2 * hooks->room + 4;
    cgl_hook *list = realloc(hooks->list, room * sizeof *list);
    if (!list)
      return false;
    hooks->list = list;
    hooks->room = room;
  }
  hooks->list[hooks->count++] = hook;
  hooks->live++;
  return true;
}


/* Takes a hook out; removed hooks stay until they are as many as the others, so
   that removing many takes no longer for each. */
static bool hooks_remove(cgl_hooks *hooks, uint64_t id, cgl_hook_point *point) {
  const size_t at = hooks_after(hooks, id - 1);
  if (at == hooks->count || hooks->list[at].id != id ||
      !hooks->list[at].function)
    return false;
  *point = hooks->list[at].point;
  hooks->list[at].function = NULL;
  if (2 * --hooks->live >= hooks->count)
    return true;
  size_t kept = 0;
  for (size_t i = 0; i < hooks->count; i++)
    if (hooks->list[i].function)
      hooks->list[kept++] = hooks->list[i];
  hooks->count = kept;
  return true;
}


static bool point_is_of_replays(cgl_hook_point point) {
  return point == CGL_HOOK_REPLAY_START || point == CGL_HOOK_REPLAY_END;
}


static void graph_count_hooks(cgl_graph *graph, cgl_hook_point point,
                              size_t change) {
  if (point_is_of_replays(point))
    graph->replay_hooks += change;
  graph->attend &= ~(unsigned)CGL_ATTEND_HOOKS;
  if (graph->replay_hooks)
    graph->attend |= CGL_ATTEND_HOOKS;
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
  cgl_hook hook = {atomic_fetch_add(&next_id, 1), point, function, user};
  if (!hooks_append(
          point == CGL_HOOK_DESTROY ? &graph->destroys : &graph->hooks, hook))
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a hook");
  graph_count_hooks(graph, point, 1);
  if (id)
    *id = hook.id;
  return CGL_OK;
}


bool cgl_graph_remove_hook(cgl_graph *graph, uint64_t id) {
  cgl_hook_point point = CGL_HOOK_DESTROY;
  if (!id || (!hooks_remove(&graph->hooks, id, &point) &&
              !hooks_remove(&graph->destroys, id, &point)))
    return false;
  graph_count_hooks(graph, point, (size_t)-1);
  return true;
}


cgl_status cgl_hooks_run(cgl_graph *graph, cgl_hook_point point,
                         const char *operation) {
  const cgl_site site = cgl_site_here;
  const uint64_t last = atomic_load(&next_id);
  const cgl_hooks *hooks = &graph->hooks;
  cgl_status first = CGL_OK;
  uint64_t id = 0;
  while (!first || point == CGL_HOOK_REPLAY_END) {
    /* By number: hooks may come and go while they are called. */
    size_t at = hooks_after(hooks, id);
    while (at < hooks->count &&
           (hooks->list[at].point != point || !hooks->list[at].function))
      at++;
    if (at == hooks->count || hooks->list[at].id >= last)
      break;
    const cgl_hook hook = hooks->list[at];
    id = hook.id;
    cgl_status status = hook.function(hook.user, graph);
    first = first ? first : status;
  }
  cgl_site_here = site;
  /* Whatever the hook called may have noted failures of its own. */
  if (first)
    cgl_fail(first, operation, "a %s hook failed", points[point]);
  return first;
}


void cgl_hooks_destroy(const cgl_context *context, cgl_hooks *hooks) {
  cgl_hooks called = *hooks;
  *hooks = (cgl_hooks){.count = 0};
  for (size_t i = 0; i < called.count; i++) {
    const cgl_hook *hook = &called.list[i];
    cgl_status status = hook->function ? hook->function(hook->user, NULL) : 0;
    if (status)
      cgl_log(context, CGL_LOG_ERROR, "a destroy hook of a graph failed (%s)",
              cgl_status_name(status));
  }
  free(called.list);
}


void cgl_hooks_free(cgl_hooks *hooks) {
  free(hooks->list);
  *hooks = (cgl_hooks){.count = 0};
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
  const bool tells =
      graph->attend & CGL_ATTEND_CALLS && !cgl_capture_has(stream);
  if (tells) {
    cgl_call_tell(&graph->calls, count);
    cgl_context_block(graph->object.context);
  }
  cgl_status status = cgl_graph_launch(graph, stream, count, operation);
  if (tells)
    cgl_context_unblock(graph->object.context);
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
