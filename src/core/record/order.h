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

/* ---- in a capture underway ---- */

/* What was learned so far of the capture's edges; lives as long as it. */
typedef struct cgl_order cgl_order;

/* Whether all work of the capture that `stream` is part of on these bytes
   comes before whatever the stream issues next; false when it does not
   capture.  Asks the driver only when the capture has forked and used the
   bytes.  cuStreamGetCaptureInfo, cuGraphNodeGetDependencies */
bool cgl_order_covers(cgl_stream *stream, CUdeviceptr address, size_t bytes);
void cgl_order_free(cgl_order *order); /* NULL is fine */

/* ---- in a captured graph, whose recording has learned its edges ---- */

typedef struct cgl_order_map cgl_order_map;

/* NULL without memory.  The recording outlives it. */
cgl_order_map *cgl_order_map_new(const cgl_recording *recording);
void cgl_order_map_free(cgl_order_map *map); /* NULL is fine */
/* Whether operation `before` is reached back from `after`; true of one and the
   same. */
bool cgl_order_precedes(cgl_order_map *map, size_t before, size_t after);
/* Whether other edges say what the edge `from` -> `to` says; false for an edge
   of a graph of more than 20,000 operations. */
bool cgl_order_is_implied(const cgl_order_map *map, size_t from, size_t to);

#endif
