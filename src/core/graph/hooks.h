/* What is called along a graph's life, and replays that something attends.
   Invariants: a graph's hooks are linked in the order they were added, their
   numbers ascending and unique in the process; a bit of `attend` is set while
   replays have to do more than launch, so a graph without any of this pays one
   branch; the hooks of CGL_HOOK_DESTROY go where the executable goes and are
   called once, when nothing can launch it any more. */
#ifndef CGL_CORE_HOOKS_H
#define CGL_CORE_HOOKS_H

#include "core/record/record.h"

enum {
  CGL_ATTEND_HOOKS = 1,  /* there is a hook at a replay's start or end */
  CGL_ATTEND_INPUTS = 2, /* inputs are checked for a release by hand */
  CGL_ATTEND_RANGES = 4  /* profilers see a range */
};

struct cgl_hook {
  cgl_hook *next;
  uint64_t id;
  cgl_hook_point point;
  cgl_hook_function function;
  void *user;
};

/* Calls the hooks of a point in order, up to the first that fails (those of
   CGL_HOOK_REPLAY_END all); the failure is that of `operation`.  The caller
   keeps the graph alive, which may be in any state afterwards. */
cgl_status cgl_hooks_run(cgl_graph *graph, cgl_hook_point point,
                         const char *operation);
/* Moves what waits for the end of `from`'s executable to `to`. */
void cgl_hooks_bequeath(cgl_graph *from, cgl_graph *to);
/* Calls what waits for the executable's end, and forgets it. */
void cgl_hooks_destroy(cgl_graph *graph);
/* Forgets all hooks without a call. */
void cgl_hooks_free(cgl_graph *graph);

/* liveness.c: refuses when an input was released by hand since the capture. */
cgl_status cgl_inputs_check(cgl_graph *graph, const char *operation);

/* The rest of cgl_graph_replay for a graph with an executable that something
   attends. */
cgl_status cgl_replay_attended(cgl_graph *graph, cgl_stream *stream,
                               uint64_t count, const char *operation);

#endif
