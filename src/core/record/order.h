/* Does A precede B, within one graph.
   Idea: two operations of a graph run in an order that is sure only when one
   is reached from the other over edges.  In a capture underway, memory that
   every operation on it reaches a stream's next operation may serve that
   stream anew; on a parallel branch it may not.
   Invariant: true is a promise about every replay of the graph; what cannot
   be known (nodes that others put in, a driver that does not answer) is
   false. */
#ifndef CGL_RECORD_ORDER_H
#define CGL_RECORD_ORDER_H

#include "core/record/record.h"

/* Operations by their nodes: open addressing, half empty. */
typedef struct cgl_order_nodes {
  struct cgl_place {
    CUgraphNode node;
    size_t op;
  } * places;
  size_t size, known; /* a power of two; operations entered so far */
} cgl_order_nodes;

/* Enters the operations noted since the last call; false without memory, or
   when the driver did not tell a node.  The caller frees `places`. */
bool cgl_order_enter(cgl_order_nodes *nodes, const cgl_recording *recording);
/* The index of a node's operation; SIZE_MAX when it is not ours. */
size_t cgl_order_op(const cgl_order_nodes *nodes, CUgraphNode node);

/* ---- in a capture underway ---- */

/* What was learned so far of the capture's edges; lives as long as it. */
typedef struct cgl_order cgl_order;

/* Whether all work of the capture that `stream` is part of on these bytes
   comes before whatever the stream issues next; false when it does not
   capture.  Asks the driver only when the capture has forked and used the
   bytes.  cuStreamGetCaptureInfo, cuGraphNodeGetDependencies */
bool cgl_order_covers(cgl_stream *stream, CUdeviceptr address, size_t bytes);
void cgl_order_free(cgl_order *order); /* NULL is fine */

/* ---- in a captured graph, whose recording has learned its edges ----
   `reached` has room for a byte per operation. */

/* Whether operation `before` is reached back from `after`; true of one and the
   same. */
bool cgl_order_precedes(const cgl_recording *recording, unsigned char *reached,
                        size_t before, size_t after);
/* Whether other edges say what the edge `from` -> `to` says; false for an edge
   of a graph of more than 20,000 operations. */
bool cgl_order_is_implied(const cgl_recording *recording,
                          unsigned char *reached, size_t from, size_t to);

#endif
