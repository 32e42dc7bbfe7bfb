/* The order of two operations in one graph.
   Idea: the order of two operations is sure only when a path of edges leads
   from one to the other.  In a capture underway, memory may be reused by a
   stream when paths lead from all its uses to the stream's next operation.
   Invariant: an answer of true holds for every replay of the graph; the answer
   is false where it is not known (foreign nodes, failures of the driver). */
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

/* The known edges of a capture underway, which owns it. */
typedef struct cgl_order cgl_order;

/* Whether all operations of the stream's capture, and of those around it when
   it is a body, that use these bytes, or, with `write`, that may write to them,
   precede the stream's next operation; false when it does not capture.  Asks
   the driver only when the capture has forked and used the bytes.
   cuStreamGetCaptureInfo, cuGraphNodeGetDependencies */
bool cgl_order_covers(cgl_stream *stream, CUdeviceptr address, size_t bytes,
                      bool write);
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
/* Of each operation, whether all others precede or follow it, so that nothing
   of the graph runs beside it; the caller frees the bytes.  NULL without
   memory. */
unsigned char *cgl_order_find_alone(const cgl_recording *recording);

#endif
