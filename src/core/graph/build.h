/* The builder: a recording as a graph of the driver's, through the node API.
   Idea: an operation has all that its node needs, so a graph can be built,
   and a node changed, without the capture.
   Invariant: a built graph has the nodes, parameters, attributes and edges
   of the capture, in the same order (cgl_build_check). */
#ifndef CGL_GRAPH_BUILD_H
#define CGL_GRAPH_BUILD_H

#include "core/graph/graph.h"

/* The parameters of a node, and the memory that they point to. */
typedef struct cgl_build_node {
  CUgraphNodeParams params;
  void *values[CGL_MAX_PARAMS]; /* kernelParams */
  CUgraph child;                /* owned: of a child graph's node */
} cgl_build_node;

/* The parameters of an operation's node; builds a child graph.  The caller ends
   them with cgl_build_end, also after a failure of the driver's call. */
cgl_status cgl_build_begin(cgl_build_node *node, cgl_context *context,
                           const cgl_recording *recording, const cgl_op *op,
                           const char *operation);
void cgl_build_end(cgl_build_node *node, cgl_context *context);
/* A copy between two ranges, the destination first, and a fill. */
void cgl_build_copy(CUgraphNodeParams *params, const cgl_context *context,
                    const cgl_range *ranges, const cgl_element *element);
void cgl_build_fill(CUgraphNodeParams *params, const cgl_context *context,
                    const cgl_range *range, const cgl_element *element);
/* The element of a fill or copy. */
cgl_element cgl_build_element(const cgl_recording *recording, const cgl_op *op);

/* Builds the graph of a recording that has learned its edges; the caller
   destroys it.  CGL_ERROR_INVALID_ARGUMENT for a foreign node.
   cuGraphCreate, cuGraphAddNode, cuGraphKernelNodeSetAttribute */
cgl_status cgl_build_graph(cgl_context *context, const cgl_recording *recording,
                           const char *operation, CUgraph *graph);

/* With $CGRAPHLUA_CHECK_BUILD=1, builds a captured graph again and refuses it
   when the two graphs differ.  Skips captures with foreign nodes. */
cgl_status cgl_build_check(cgl_graph *graph, const char *operation);

#endif
