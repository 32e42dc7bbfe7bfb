/* The builder: a recording as a graph of the driver's, through the node API.
   Idea: an operation's node follows from what is noted of it, so that a graph
   can be built, and a node changed, without the capture that noted it.
   A conditional node's bodies are built in the graphs that the driver gives it,
   and its handle is made for the graph that the node is in.
   Invariant: what is built has the nodes, parameters, attributes and edges of
   the capture, in the same order (cgl_build_check holds it to that). */
#ifndef CGL_GRAPH_BUILD_H
#define CGL_GRAPH_BUILD_H

#include "core/copy/copy.h"
#include "core/graph/graph.h"

/* What a node does, as the recording has it: its parameters, and what they
   point to, CGL_MAX_PARAMS values of a kernel.  The caller gives a child
   graph's node its graph.  Nothing for a node that others put in. */
void cgl_build_node(CUgraphNodeParams *params, void **values,
                    const cgl_context *context, const cgl_recording *recording,
                    const cgl_op *op);
/* A kernel (the caller clears what lies behind it). */
void cgl_build_kernel(CUgraphNodeParams *params, CUfunction function,
                      const cgl_launch *launch, void **values);
/* The same of an operation that is a kernel, with its values. */
void cgl_build_kernel_of(CUgraphNodeParams *params, void **values,
                         const cgl_recording *recording, const cgl_op *op);
/* A copy and a fill, by the driver or by a kernel, whose three values point
   into the element. */
void cgl_build_copy(CUgraphNodeParams *params, void **values,
                    const cgl_context *context, CUfunction function,
                    const cgl_element *element);
void cgl_build_fill(CUgraphNodeParams *params, void **values,
                    const cgl_context *context, CUfunction function,
                    const cgl_element *element);
/* The element of a fill or copy, in the recording. */
const cgl_element *cgl_build_element(const cgl_recording *recording,
                                     const cgl_op *op);

/* Where the address of a range lies behind the operation's first value;
   SIZE_MAX when that is not known. */
size_t cgl_build_find_address(const cgl_recording *recording, const cgl_op *op,
                              const cgl_range *range);

/* Adds the node of a kernel of the recording, after others. */
cgl_status cgl_build_add_kernel(cgl_context *context,
                                const cgl_recording *recording,
                                const cgl_op *op, const cgl_captured *after,
                                const char *operation, CUgraphNode *node);
/* Builds the graph of a recording that has learned its edges, `copies` times,
   one after the other; the caller destroys it.  CGL_ERROR_INVALID_ARGUMENT for
   a node that others put in, named.  cuGraphCreate, cuGraphAddNode,
   cuGraphKernelNodeSetAttribute */
cgl_status cgl_build_graph(cgl_context *context, const cgl_recording *recording,
                           uint64_t copies, const char *operation,
                           CUgraph *graph);

/* A capture whose operations all come from one stream, and are launches, copies
   and fills, needs the driver only at its end: their nodes are added when what
   orders them, and where memory lies, is known.  The first operation of another
   kind, an event, or a look at the driver's capture has it catch up.
   cgl_build_catch_up is cgl_capture.catch_up: adds the nodes in a line.
   cgl_build_late adds those of a capture that has ended to its graph, which has
   none, after those that they depend on.  The recording knows the nodes then,
   and none is stale.  What fails is told of the line that issued the operation,
   and breaks the capture, unless that is NULL.
   cuGraphAddNode, cuGraphKernelNodeSetAttribute */
CUresult cgl_build_catch_up(cgl_capture *capture);
cgl_status cgl_build_late(cgl_context *context, cgl_recording *recording,
                          CUgraph graph, cgl_capture *capture);

/* A conditional node to be added to a graph. */
typedef struct cgl_build_conditional {
  CUgraph graph;
  const CUgraphNode *before; /* that it depends on, by `edges`, or NULL */
  const CUgraphEdgeData *edges;
  size_t nbefore;
  CUgraphConditionalHandle handle; /* made for the graph, and set before */
  CUgraphConditionalNodeType type;
  const cgl_recording *const *bodies; /* that have learned their edges */
  size_t nbodies;
} cgl_build_conditional;

/* A handle for the node that follows.  cuGraphConditionalHandleCreate */
cgl_status cgl_build_handle(cgl_context *context, CUgraph graph,
                            const char *operation,
                            CUgraphConditionalHandle *handle);
/* Adds the node and builds its bodies; the caller gives up the graph when that
   fails.  cuGraphAddNode */
cgl_status cgl_build_add_conditional(cgl_context *context,
                                     const cgl_build_conditional *conditional,
                                     const char *operation, CUgraphNode *node);

/* Programmatic edges of operations whose dependencies are known, and whose
   nodes are still to be made: each that there may be. */
void cgl_build_choose_programmatic(cgl_recording *recording);
/* Likewise where the nodes are there, with full edges.
   cuGraphRemoveDependencies, cuGraphAddDependencies */
cgl_status cgl_build_put_programmatic(cgl_context *context,
                                      cgl_recording *recording,
                                      const char *operation, CUgraph graph);
/* Of a capture that has ended, whose nodes the recording knows: those that
   there may not be become full.  cuGraphGetEdges, cuGraphRemoveDependencies,
   cuGraphAddDependencies */
cgl_status cgl_build_thin_programmatic(cgl_context *context,
                                       cgl_recording *recording,
                                       const char *operation, CUgraph graph);

/* spec/core/graph/build_check.c, in builds with --enable-debug: with
   $CGRAPHLUA_CHECK_BUILD=1, builds what was captured once more and refuses a
   capture whose graph differs; nothing for a capture with nodes of others. Each
   body is checked at its own end. */
cgl_status cgl_build_check(cgl_context *context, cgl_recording *recording,
                           CUgraph captured, const char *operation);

#endif
