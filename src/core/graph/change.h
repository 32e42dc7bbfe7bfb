/* Changing a captured graph: what its nodes do, and whether they run.
   Idea: a change goes to the executable at once, for the replays that come
   after it, and into the recording; the template learns of it when somebody
   needs the template, so a loop that changes a node before each replay asks
   the driver for one thing.
   Glossary.  exchange: the memory that one change of a node brings and takes
   away.  planned: memory that captures allocated of the graph's pool.
   Invariants: an operation's values, ranges and kept objects are those of its
   node in the executable; while the graph has an executable, an operation that
   is `stale` differs from the template's node; planned memory stays with the
   operation that it was captured with, for its life was planned by the order of
   the capture.  Replays in flight keep what they were launched with: a buffer
   that a change drops goes back to its pool as one that any stream may still
   use. */
#ifndef CGL_CORE_CHANGE_H
#define CGL_CORE_CHANGE_H

#include "core/record/record.h"
#include "core/module/module.h"

/* ---- change.c ---- */

/* Before the template is used: brings its nodes up to what was changed.
   cuGraphNodeSetParams */
cgl_status cgl_graph_refresh(cgl_graph *graph, const char *operation);
/* Switches off in a new executable what is off.  cuGraphNodeSetEnabled */
CUresult cgl_graph_switch_off(const cgl_graph *graph, CUgraphExec exec);

/* Refuses a node of another kind than was `wanted`. */
cgl_status cgl_change_refuse(const cgl_op *op, const char *operation,
                             const char *wanted);
/* The driver took the new values of the operation: whether the template has
   to learn of them. */
void cgl_change_taken(cgl_graph *graph, cgl_op *op);

/* ---- change_data.c: fills and copies ---- */

/* Of the elements of a fill or copy; CGL_TYPE_COUNT of anything else. */
cgl_type cgl_change_type(const cgl_graph *graph, const cgl_op *op);
/* The parameters of a fill or copy as the recording has it; CUresult.
   cuGraphMemsetNodeGetParams, cuGraphMemcpyNodeGetParams */
CUresult cgl_change_describe(const cgl_graph *graph, const cgl_op *op,
                             CUgraphNodeParams *params);

/* ---- exchange.c ---- */

typedef struct cgl_exchange {
  cgl_graph *graph;
  size_t nobjects; /* to make room for */
  size_t nreplaced;
  cgl_range replaced[CGL_MAX_PARAMS]; /* that the node no longer uses */
} cgl_exchange;

/* Only so much is set: a change of numbers alone is not to clear the rest. */
static inline void cgl_exchange_begin(cgl_exchange *exchange,
                                      cgl_graph *graph) {
  exchange->graph = graph;
  exchange->nobjects = exchange->nreplaced = 0;
}
/* Whether the argument is planned memory. */
bool cgl_exchange_is_planned(const cgl_graph *graph, const cgl_arg *arg);
/* The node will use the argument; then makes room for all of them and for so
   many ranges. */
void cgl_exchange_want(cgl_exchange *exchange, const cgl_arg *arg);
cgl_status cgl_exchange_reserve(const cgl_exchange *exchange, size_t ranges,
                                const char *operation);
/* The driver took the change: keeps what an argument needs, notes what the
   node had before; and in the end lets go of what no node uses any more. */
void cgl_exchange_keep(cgl_exchange *exchange, const cgl_arg *arg);
void cgl_exchange_replace(cgl_exchange *exchange, const cgl_range *range);
void cgl_exchange_end(cgl_exchange *exchange);

#endif
