/* What the files about graphs share beyond capture.h. */
#ifndef CGL_CORE_GRAPH_H
#define CGL_CORE_GRAPH_H

#include "core/record/record.h"

/* Instantiates the template and uploads the executable; an earlier one is
   handed over to die.  The graph is left as it was on failure. */
cgl_status cgl_graph_make_executable(cgl_graph *graph, const char *operation);

/* Enters the context and sees to it that there is what a replay on `stream`
   needs; the graph may not be captured. */
cgl_status cgl_graph_prepare(cgl_graph *graph, cgl_stream *stream,
                             const char *operation);
/* Launches a prepared graph; into a stream that captures, as a child. */
cgl_status cgl_graph_launch(cgl_graph *graph, cgl_stream *stream,
                            uint64_t count, const char *operation);

/* The graph's capture no longer keeps the pool's segments mapped; nothing when
   it did not. */
void cgl_graph_unhold_pool(cgl_graph *graph);

/* Refuses a graph that holds no capture, or not yet. */
cgl_status cgl_graph_check_captured(const cgl_graph *graph,
                                    const char *operation);
/* inside.c: the graph holds a capture, and its recording knows the edges; else
   refuses.  cuGraphGetEdges */
cgl_status cgl_graph_learn(cgl_graph *graph, const char *operation);
/* The operation of a node of a captured graph, else refuses. */
cgl_status cgl_graph_op(const cgl_graph *graph, size_t index,
                        const char *operation, cgl_op **op);
/* "kernel", "memcpy", ... */
const char *cgl_op_word(cgl_op_kind kind);
/* Takes the graph from the list of captures underway; leaves the dead list
   alone: the caller drains when it is done. */
void cgl_capture_forget(cgl_graph *graph);

#endif
