/* Hooks along a graph's life, and replays that need more than a launch.
   Invariants: a list has hooks in the order they were added, their numbers
   ascending and unique in the process, those of CGL_HOOK_DESTROY apart; a bit
   of `attend` is set while replays have to do more than launch, so a graph
   without any of this pays one branch; the hooks of CGL_HOOK_DESTROY go where
   the template goes and are called once, when nothing can launch it any more.
 */
#ifndef CGL_GRAPH_HOOKS_H
#define CGL_GRAPH_HOOKS_H

#include "core/base/base.h"

enum {
  CGL_ATTEND_HOOKS = 1,  /* there is a hook at a replay's start or end */
  CGL_ATTEND_INPUTS = 2, /* inputs are checked for a release by hand */
  CGL_ATTEND_RANGES = 4, /* profilers see a range */
  CGL_ATTEND_OLDER = 8,  /* replays of an earlier executable may be in flight */
  CGL_ATTEND_PARAMS = 16, /* the executable lacks values of parameters */
  CGL_ATTEND_CALLS = 32   /* owners of calls are told of launches */
};

typedef struct cgl_hook cgl_hook;
typedef struct cgl_hooks {
  cgl_hook *list;     /* owned; removed hooks among them */
  size_t count, room; /* of `list` */
  size_t live;        /* hooks that were not removed */
} cgl_hooks;

/* Calls the hooks of a point in order, up to the first that fails (those of
   CGL_HOOK_REPLAY_END all); the failure is that of `operation`.  The caller
   keeps the graph alive, which may be in any state afterwards. */
cgl_status cgl_hooks_run(cgl_graph *graph, cgl_hook_point point,
                         const char *operation);
/* Calls hooks of CGL_HOOK_DESTROY, and forgets them. */
void cgl_hooks_destroy(const cgl_context *context, cgl_hooks *hooks);
/* Forgets all hooks without a call. */
void cgl_hooks_free(cgl_hooks *hooks);
/* The rest of cgl_graph_replay for a graph with an executable whose replays do
   more than launch. */
cgl_status cgl_hooks_replay(cgl_graph *graph, cgl_stream *stream,
                            uint64_t count, const char *operation);

#endif
