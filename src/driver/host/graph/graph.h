/* Graphs, captures and executables inside the host device.
   Glossary: a graph is an ordered list of nodes; a node is a host_op with
   edges; a capture is a set of streams that make nodes; a block is the memory
   of one alloc node; an executable (exec.h) is a compiled copy of a graph.
   Invariants: every function here is called under host_lock unless it says
   otherwise; an edge appears in its source's `out` and in its target's `in`
   exactly once; a node's op owns what host_op_release releases, the node owns
   its child graph, its bodies and one reference of each block it names; a
   graph that a capture writes into is not destroyed, nor are its nodes. */
#ifndef CGL_HOST_GRAPH_H
#define CGL_HOST_GRAPH_H

#include "driver/host/memory/memory.h"

/* ---- nodes and graphs ---- */

typedef struct host_edge {
  CUgraphNode node; /* the other end */
  CUgraphEdgeData data;
} host_edge;

typedef struct host_edges {
  host_edge *list; /* `small`, or malloc */
  uint32_t count, size;
  host_edge small[2];
} host_edges;

typedef struct host_conditional {
  uint64_t handle;
  int type;       /* CU_GRAPH_COND_TYPE_* */
  unsigned size;  /* bodies */
  CUgraph *graph; /* size of them, owned */
  CUcontext ctx;
} host_conditional;

struct CUgraphNode_st {
  uint64_t id;              /* unique in the process, never used again */
  uint64_t origin;          /* id of the node this one was cloned from, or 0 */
  CUgraph graph;            /* whose list it is on */
  CUgraphNode prev, next;   /* creation order */
  host_edges in, out;       /* in the order in which they were made */
  uint64_t mark;            /* scratch of one traversal (host_graph_mark) */
  uint32_t index;           /* scratch of one traversal */
  struct host_block *block; /* of ALLOC and FREE: counted reference */
  host_op op;
};

typedef struct host_user_reference {
  struct CUuserObject_st *object;
  unsigned count;
  struct host_user_reference *next;
} host_user_reference;

struct CUgraph_st {
  unsigned refs;   /* handle, and executables that claim it */
  uint64_t id;     /* unique in the process */
  uint64_t origin; /* id of the graph this one was cloned from, or 0 */
  CUgraphNode first, last;
  size_t nnodes, nouter; /* nouter: those with graphs inside */
  unsigned capturing;    /* captures that write into it */
  unsigned executables;  /* live ones, counted while only one is allowed */
  CUgraphNode owner;     /* the CHILD or CONDITIONAL node, or NULL */
  host_user_reference *users;
  uint64_t *handles; /* conditional handles made for it */
  size_t nhandles;
};

/* Are these handles of a graph and of nodes that were not destroyed? */
bool host_graph_is_live(CUgraph graph);
bool host_nodes_are_live(const CUgraphNode *nodes, size_t count);
/* INVALID_VALUE unless all nodes are live and of the graph, and the edge data
   (or NULL) is valid. */
CUresult host_nodes_check(CUgraph graph, const CUgraphNode *nodes,
                          const CUgraphEdgeData *edges, size_t count);
/* For assertions: every edge is in both lists, every node on the graph's list,
   the counts are right, and the graphs inside are valid. */
bool host_graph_is_valid(CUgraph graph);
CUgraph host_graph_new(void); /* NULL: no memory */
/* Destroys the nodes and drops the handle's reference. */
void host_graph_free(CUgraph graph);
void host_graph_clear(CUgraph graph); /* destroys the nodes alone */
void host_graph_unref(CUgraph graph);
/* A fresh number for `mark` fields: no node holds it yet. */
uint64_t host_graph_mark(void);
/* Has the graph, at any depth, alloc or free nodes; conditional nodes? */
bool host_graph_has_memory(CUgraph graph);
bool host_graph_has_conditional(CUgraph graph);
/* Does a capture write into the graph, or into a graph at any depth in it?
   Such graphs and nodes are not destroyed. */
bool host_graph_is_capturing(CUgraph graph);
bool host_node_is_capturing(CUgraphNode node);
/* Deep copy; NOT_SUPPORTED with memory or conditional nodes. */
CUresult host_graph_copy(CUgraph *out, CUgraph graph);
/* Is `graph` the same as `inner`, or does it hold it at any depth? */
bool host_graph_holds(CUgraph graph, CUgraph inner);
/* Writes Graphviz text; false when the file could not be written. */
bool host_graph_write_dot(CUgraph graph, const char *path, bool verbose);

/* Appends a node that takes over *op and the block reference.  `edges` may be
   NULL.  INVALID_VALUE for a dependency that is NULL, of another graph or
   named twice; the op is released on failure. */
CUresult host_node_new(CUgraphNode *out, CUgraph graph, const CUgraphNode *deps,
                       const CUgraphEdgeData *edges, size_t ndeps, host_op *op,
                       struct host_block *block);
void host_node_free(CUgraphNode node);
/* An edge that exists already answers INVALID_VALUE. */
CUresult host_edge_add(CUgraphNode from, CUgraphNode to,
                       const CUgraphEdgeData *data);
bool host_edge_remove(CUgraphNode from, CUgraphNode to);
bool host_edge_data_is_default(const CUgraphEdgeData *data);
bool host_edge_data_is_valid(const CUgraphEdgeData *data);
CUgraphNodeType host_node_type(const host_op *op);

/* Fills *op from the tagged union as cuGraphAddNode takes it, for a node of
   `graph`; child graphs are copied or moved, bodies and blocks are made.
   `ctx` checks are the primary context's.  Out parameters (alloc.dptr,
   conditional.phGraph_out) are written by host_node_publish. */
CUresult host_node_params(host_op *op, struct host_block **block, CUgraph graph,
                          const CUgraphNodeParams *params);
/* The tagged union of a memset node. */
CUgraphNodeParams host_node_memset_params(const CUDA_MEMSET_NODE_PARAMS *from,
                                          CUcontext ctx);
void host_node_publish(CUgraphNode node, CUgraphNodeParams *params);
/* Releases the op of a node, with the graphs or the block that it owns. */
void host_node_params_drop(host_op *op, struct host_block *block);
/* Makes an op with new parameters for `node`, of the type of `old` (the op of
   the node or of its executable); INVALID_VALUE for another type,
   NOT_SUPPORTED for memory and conditional nodes. */
CUresult host_node_params_set(host_op *op, CUgraphNode node, const host_op *old,
                              const CUgraphNodeParams *params);

/* ---- user objects (user.c) ---- */

CUresult host_user_new(CUuserObject *out, void *pointer, CUhostFn destroy,
                       unsigned refs);
/* Drops references of the caller; INVALID_VALUE for more than there are. */
CUresult host_user_release(CUuserObject object, unsigned count);
/* The graph takes references: the caller's when they move, else new ones. */
CUresult host_user_keep(CUgraph graph, CUuserObject object, unsigned count,
                        bool move);
/* Adds the references of `from` to *list; false: no memory. */
bool host_user_copy(host_user_reference **list,
                    const host_user_reference *from);
void host_user_drop(host_user_reference *list);

/* ---- memory of alloc nodes (block.c) ---- */

typedef struct host_block {
  CUdeviceptr address;
  size_t bytes;
  unsigned refs;  /* nodes, executables, and one while allocated */
  unsigned execs; /* executables among them */
  unsigned frees; /* FREE nodes that name it */
  bool allocated; /* as seen by the calls: launched and not freed */
  bool committed;
  struct host_block *next; /* hash chain */
} host_block;

CUresult host_block_new(host_block **out, size_t bytes);
host_block *host_block_find(CUdeviceptr address); /* borrowed, or NULL */
void host_block_retain(host_block *block);
void host_block_release(host_block *block);
CUresult host_block_commit(host_block *block);
void host_block_set_allocated(host_block *block, bool allocated);
/* Does `graph` hold a FREE node of the block? */
bool host_block_freed_in(const host_block *block, CUgraph graph);
/* Frees, outside captures, memory that an alloc node left allocated.  Nothing
   is queued, and the next launch may allocate it again.  NOT_FOUND: no block;
   INVALID_VALUE: a block that is not allocated now.  (A block is committed by
   the first launch and stays so until its graph and executables are gone, so
   ALLOC and FREE ops do nothing when they run.) */
CUresult host_block_free(CUdeviceptr address);
/* Bytes allocated now and committed now, with their peaks. */
typedef struct host_block_stats {
  uint64_t used, used_high, reserved, reserved_high;
} host_block_stats;
void host_block_stats_get(host_block_stats *out);
void host_block_trim(void); /* decommits what no executable uses */

/* ---- captures (capture.c) ---- */

/* Begins with an empty dependency set. */
CUresult host_graph_capture_begin(CUstream stream, CUgraph graph,
                                  CUstreamCaptureMode mode);
/* Ends the capture; without keep_graph the graph is destroyed. */
void host_graph_capture_end(host_capture *capture, bool keep_graph);
/* STREAM_CAPTURE_UNJOINED when a fork's work does not lead to the origin. */
CUresult host_graph_capture_joined(host_capture *capture);
/* Adds to (or replaces) the stream's dependency set; a node counts once. */
CUresult host_graph_capture_deps(CUstream stream, const CUgraphNode *deps,
                                 const CUgraphEdgeData *edges, size_t count,
                                 bool replace);
/* Asynchronous work on a resolved stream.  Takes over what op owns, on failure
   too.  On a stream that captures the op becomes a node after the stream's
   dependency set, which becomes that node (901 when the capture is
   invalidated; 900 for an op that a capture cannot hold); else it is
   queued. */
CUresult host_graph_submit(CUstream stream, host_op *op);
/* cuMemAllocAsync, cuMemAllocFromPoolAsync and cuMemFreeAsync on a capturing
   stream: a node; the address is fixed for the life of the graph.  The free
   answers INVALID_VALUE, and breaks nothing, for memory that is not a graph's
   or that this capture has freed already. */
CUresult host_graph_capture_alloc(CUstream stream, size_t bytes,
                                  CUdeviceptr *out);
CUresult host_graph_capture_free(CUstream stream, CUdeviceptr address);
/* cuEventRecord and cuStreamWaitEvent where a capture is concerned; *handled
   tells whether the call is finished here.  A wait on a captured event pulls
   the stream in. */
CUresult host_graph_capture_record(CUevent event, CUstream stream,
                                   unsigned flags, bool *handled);
CUresult host_graph_capture_wait(CUstream stream, CUevent event, unsigned flags,
                                 bool *handled);

#endif
