/* Which memory of a capture underway is free for a stream of it.
   Idea: two operations of a graph run in an order that is sure only when one
   is reached from the other over edges.  Memory that every recorded operation
   on it reaches a stream's next one may serve that stream anew; on a parallel
   branch it may not.
   Invariant: true is a promise about every replay of the graph; what cannot
   be known (nodes that others put in, a driver that does not answer) is
   false. */
#ifndef CGL_CORE_REACH_H
#define CGL_CORE_REACH_H

#include "core/record/record.h"
#include "core/memory/memory.h"

/* What was learned so far of the capture's edges; lives as long as it. */
typedef struct cgl_reach cgl_reach;

/* Whether all work of the capture that `stream` is part of on these bytes
   comes before whatever the stream issues next; false when it does not
   capture.  Asks the driver only when the capture has forked and used the
   bytes.  cuStreamGetCaptureInfo, cuGraphNodeGetDependencies */
bool cgl_capture_covers_range(cgl_stream *stream, CUdeviceptr address,
                              size_t bytes);
/* The same for the memory of a block, live or free. */
bool cgl_capture_covers(cgl_stream *stream, const cgl_block *block);

void cgl_reach_free(cgl_reach *reach); /* NULL is fine */

#endif
