/* The order of two operations in one graph.
   Idea: the order of two operations is sure only when a path of edges leads
   from one to the other.  In a capture underway, memory may be reused by a
   stream when paths lead from all its uses to the stream's next operation.
   Invariant: an answer of true holds for every replay of the graph; the answer
   is false where it is not known (foreign nodes, failures of the driver). */
#ifndef CGL_RECORD_ORDER_H
#define CGL_RECORD_ORDER_H

#include "core/record/record.h"

/* ---- in a capture underway ---- */

/* The known edges of a capture underway, which owns it. */
typedef struct cgl_order cgl_order;

/* Whether all operations of the stream's capture that use these bytes precede
   the stream's next operation; false when it does not capture.  Asks the driver
   only when the capture has forked and used the bytes.  cuStreamGetCaptureInfo,
   cuGraphNodeGetDependencies */
bool cgl_order_covers(cgl_stream *stream, CUdeviceptr address, size_t bytes);
void cgl_order_free(cgl_order *order); /* NULL is fine */

/* ---- in a captured graph, whose recording has learned its edges ---- */

typedef struct cgl_order_map cgl_order_map;

/* NULL without memory.  The recording outlives it. */
cgl_order_map *cgl_order_map_new(const cgl_recording *recording);
void cgl_order_map_free(cgl_order_map *map); /* NULL is fine */
/* Whether operation `before` precedes `after`, or is the same. */
bool cgl_order_precedes(cgl_order_map *map, size_t before, size_t after);
/* Whether other edges imply the edge `from` -> `to`; false in a graph of more
   than 20,000 operations. */
bool cgl_order_is_implied(const cgl_order_map *map, size_t from, size_t to);

#endif
