/* Changing a captured graph: what its nodes do, and whether they run.
   Idea: a change goes to the executable at once, for the replays that come
   after it, and into the recording; the template learns of it when somebody
   needs the template, so a loop that changes a node before each replay asks
   the driver for one thing.
   Invariants: an operation's values, ranges and kept objects are those of its
   node in the executable; while the graph has an executable, an operation that
   is `stale` differs from the template's node; memory that captures allocated
   of the graph's pool stays with the operation that it was captured with, for
   its life was planned by the order of the capture.  Replays in flight keep
   what they were launched with: a buffer that a change drops goes back to its
   pool as one that any stream may still use. */
#ifndef CGL_CORE_CHANGE_H
#define CGL_CORE_CHANGE_H

#include "core/capture.h"

/* Before the template is used: brings its nodes up to what was changed.
   cuGraphNodeSetParams */
cgl_status cgl_graph_refresh(cgl_graph *graph, const char *operation);
/* Switches off in a new executable what is off.  cuGraphNodeSetEnabled */
CUresult cgl_graph_switch_off(const cgl_graph *graph, CUgraphExec exec);

#endif
