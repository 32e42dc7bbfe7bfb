/* Hooks of a graph, and replays that do more than a launch.
   Invariants: hooks are linked in the order in which they were added, with
   ascending numbers that are unique in the process; a bit of `attend` is set
   while replays do more than a launch, so other graphs pay one branch; hooks of
   CGL_HOOK_DESTROY stay with the template and are called once, when no graph
   can launch it any more. */
#ifndef CGL_GRAPH_HOOKS_H
#define CGL_GRAPH_HOOKS_H

#include "core/base/base.h"

enum {
  CGL_ATTEND_HOOKS = 1,  /* call hooks at the start or end */
  CGL_ATTEND_INPUTS = 2, /* check whether inputs were released */
  CGL_ATTEND_RANGES = 4  /* name a range for profilers */
};

typedef struct cgl_hook cgl_hook;
typedef cgl_hook *cgl_hooks; /* the first */

/* Calls the hooks of a point in order, up to the first failure; at
   CGL_HOOK_REPLAY_END calls all.  The failure is noted as that of `operation`.
   The caller keeps the graph, whose state the hooks may change. */
cgl_status cgl_hooks_run(cgl_graph *graph, cgl_hook_point point,
                         const char *operation);
/* Moves the hooks of CGL_HOOK_DESTROY to the end of `to`. */
void cgl_hooks_detach(cgl_hooks *from, cgl_hooks *to);
/* Calls the hooks of CGL_HOOK_DESTROY, and frees them. */
void cgl_hooks_destroy(cgl_hooks *hooks);
/* Frees all hooks without a call. */
void cgl_hooks_free(cgl_hooks *hooks);
/* cgl_graph_replay for a prepared graph whose replays do more than a launch. */
cgl_status cgl_hooks_replay(cgl_graph *graph, cgl_stream *stream,
                            uint64_t count, const char *operation);

#endif
