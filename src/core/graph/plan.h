/* The plan: which operations of a captured graph must come after which.
   Idea: what an operation reads and writes is noted, so the order that results
   need follows from the bytes: a read comes after the last write, a write after
   the last write and the reads since.  The operations are dealt to lanes,
   which bounds how many run beside each other; two operations of a lane are in
   order, so what precedes an operation is one number a lane, and an edge that
   other edges imply is found by comparing two numbers.
   Glossary.  access: bytes that an operation reads, or writes.  barrier: an
   operation whose accesses are not known: all before it precede it, and it
   precedes all after it.  lane: operations each of which precedes the next.
   Invariants: operations that access the same bytes, one of them writing, are
   ordered as they were issued; so are work and the events by which the script
   ordered streams, and what moves a generator's offset and the draws around it;
   no edge is implied by others. */
#ifndef CGL_GRAPH_PLAN_H
#define CGL_GRAPH_PLAN_H

#include "core/graph/graph.h"

/* If a description says nothing: lanes; and, where this is more than issue
   order takes, one part in so many of the device's memory for a capture. */
enum { CGL_PLAN_WIDTH = 32, CGL_PLAN_SHARE = 16 };

/* Why an operation is a barrier, in a graph that draws so; NULL: it is none. */
const char *cgl_plan_barrier_reason(const cgl_draw *draws,
                                    const cgl_recording *recording,
                                    const cgl_op *op);

/* Gives the recording of a capture that has ended, and the driver's graph of
   it, the edges of data order, and its temporary memory places (temporary.h),
   over as many lanes as the graph's options and max_bytes allow.  `late`: the
   graph has no nodes yet, and gets them (cgl_build_late).
   CGL_ERROR_NO_MEMORY, CUDA_ERROR_OUT_OF_MEMORY.  cuGraphGetEdges,
   cuGraphRemoveDependencies, cuGraphAddDependencies, cuGraphNodeSetParams */
cgl_status cgl_plan_order(cgl_graph *graph, bool late, const char *operation);

/* Refuses accesses that operation `index` of a graph in data order would begin
   to make, and which its edges do not order. */
cgl_status cgl_plan_check_change(cgl_graph *graph, size_t index,
                                 const cgl_range *ranges, size_t n,
                                 const char *operation);

/* The least bytes that the temporaries of a captured graph could take with its
   edges (place.h); SIZE_MAX without memory. */
size_t cgl_plan_bound(cgl_graph *graph);

#endif
