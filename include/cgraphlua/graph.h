/* Graphs: capture, instantiation, replay, inspection, changes, annotations and
   hooks. */
#ifndef CGRAPHLUA_GRAPH_H
#define CGRAPHLUA_GRAPH_H

#include "kernel.h"

/* Which unsafe calls break a capture underway: those of any thread, those of
   the capturing thread, or none. */
typedef enum cgl_capture_mode {
  CGL_CAPTURE_DEFAULT, /* thread_local */
  CGL_CAPTURE_GLOBAL,
  CGL_CAPTURE_THREAD_LOCAL,
  CGL_CAPTURE_RELAXED
} cgl_capture_mode;

/* Whether captures record the annotations of cgl_graph_annotate. */
typedef enum cgl_annotations {
  CGL_ANNOTATIONS_OFF,
  CGL_ANNOTATIONS_ON,
  CGL_ANNOTATIONS_NVTX /* also NVTX ranges for profilers: a range for each
                          scope in the capture and for each replay */
} cgl_annotations;

/* An option that is on unless it is switched off. */
typedef enum cgl_option {
  CGL_OPTION_DEFAULT, /* on */
  CGL_OPTION_ON,
  CGL_OPTION_OFF
} cgl_option;

/* What orders the nodes of a capture. */
typedef enum cgl_capture_order {
  CGL_ORDER_ISSUE, /* the streams and events that the work was issued to */
  CGL_ORDER_DATA   /* what the work reads and writes, and events: cgl_graph_plan
                    */
} cgl_capture_order;

/* As cgl_graph_desc.max_bytes: no more than in issue order. */
#define CGL_BYTES_ISSUE SIZE_MAX

typedef struct cgl_graph_desc {
  bool keep_graph; /* keep the template; instantiate by hand or at replay */
  cgl_pool *pool;  /* of its captures' memory; NULL: a private pool */
  cgl_capture_mode capture_mode;
  bool unchecked; /* the caller keeps the replay order of a shared pool */
  cgl_annotations annotations;
  bool check_input_liveness; /* refuse to replay once an input was retired:
                                cgl_buffer_retire */
  cgl_option unroll;       /* replay loops of a small graph run as copies in one
                              executable: cgl_graph_replay */
  cgl_option programmatic; /* a kernel may begin while the one before it ends:
                              cgl_graph_capture_begin */
  cgl_capture_order order;
  uint32_t width;   /* in data order: how many nodes may run beside each other;
                       0: 32 */
  size_t max_bytes; /* in data order: the most memory that the capture may take
                       from its pool; CGL_BYTES_ISSUE: what it takes in issue
                       order; 0: that, or a 16th of the device's memory where it
                       is more.  Fewer nodes run beside each other where that
                       makes it fit; where nothing does, the end of the capture
                       fails with CUDA_ERROR_OUT_OF_MEMORY, with a number */
} cgl_graph_desc;

/* Creates a graph that has captured nothing yet.  A NULL desc means defaults;
   the graph retains the pool.  The caller owns the reference. */
CGL_API cgl_status cgl_graph_create(cgl_context *context,
                                    const cgl_graph_desc *desc,
                                    cgl_graph **graph);
/* The options of the next capture.  desc->pool is borrowed; NULL is a private
   pool. */
CGL_API void cgl_graph_get_desc(const cgl_graph *graph, cgl_graph_desc *desc);
/* Replaces the options of the next capture.  CGL_ERROR_CAPTURE_STATE while the
   graph captures or holds a capture. */
CGL_API cgl_status cgl_graph_set_desc(cgl_graph *graph,
                                      const cgl_graph_desc *desc);
/* Begins to capture the work that is issued into `stream`.  With `programmatic`
   a kernel that our compiler made for sm_90 or newer, right behind another on
   its stream whose blocks all fit the device at once, depends on it by a
   programmatic edge: its blocks come to the device before the other is over,
   and wait there.  Drivers from CUDA 12.3 on.
   CGL_ERROR_CAPTURE_STATE when the stream or the graph is capturing, or the
   graph holds a capture; CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED on the default
   stream.  cuStreamBeginCapture, cuLaunchKernelEx */
CGL_API cgl_status cgl_graph_capture_begin(cgl_graph *graph,
                                           cgl_stream *stream);
/* Ends the capture on the stream on which it began.  Without keep_graph, also
   instantiates the graph.  A capture that a call broke fails with
   that call's status, message and line, and the end's failure is in `also`.  A
   capture must end on the thread that began it, unless its mode is relaxed:
   CGL_ERROR_CAPTURE_STATE, and the capture goes on.  cuStreamEndCapture,
   cuGraphInstantiateWithParams */
CGL_API cgl_status cgl_graph_capture_end(cgl_graph *graph);
/* Ends a capture whose result is not wanted.  Afterwards all its streams are
   usable, whatever the status.  Does nothing when no capture is underway.  The
   thread's last failure stays; a failure of this call is added to its `also`.
   cuStreamEndCapture */
CGL_API cgl_status cgl_graph_capture_abandon(cgl_graph *graph);
/* The graph's context, borrowed. */
CGL_API cgl_context *cgl_graph_context(const cgl_graph *graph);
/* Whether a capture of the graph is underway. */
CGL_API bool cgl_graph_is_capturing(const cgl_graph *graph);
/* The stream on which the capture underway began (borrowed), or NULL. */
CGL_API cgl_stream *cgl_graph_capturing_stream(const cgl_graph *graph);
/* The graph that captures `stream` (borrowed), or NULL. */
CGL_API cgl_graph *cgl_stream_capturing_graph(const cgl_stream *stream);
/* Makes a new executable of the kept template, whose first replay comes after
   the replays of the executable before it, on any stream.
   CGL_ERROR_CAPTURE_STATE without keep_graph, CGL_ERROR_NOT_CAPTURED without a
   capture.  cuGraphInstantiateWithParams */
CGL_API cgl_status cgl_graph_instantiate(cgl_graph *graph);
/* Launches the graph `count` times on `stream`, asynchronously and in order.
   On a capturing stream each is a child graph node instead.  With `unroll`, a
   graph of up to 16 nodes (with those of its child graphs) gets a second
   executable with 64 / nodes copies of it, after 1000 replays in calls with a
   count of 64 or more; this call and later ones launch it as often as they can.
   It is counted in the pool's statistics.  Single launches do where it saves
   nothing: with a kernel whose blocks do not fit the device at once, or a copy
   or fill of more than 64 KiB; and where it cannot be made, or could do
   something else: with events, conditional or foreign nodes, disabled nodes,
   hooks of replays, handles that were given out, streams of an engine, isolated
   streams.  CGL_ERROR_NOT_CAPTURED without a capture; CGL_ERROR_ORDER when the
   replay order of a shared pool forbids it; CGL_ERROR_RELEASED when an input
   was retired (check_input_liveness), or the pool was restored. cuGraphLaunch,
   cuGraphAddNode */
CGL_API cgl_status cgl_graph_replay(cgl_graph *graph, cgl_stream *stream,
                                    uint64_t count);
/* Adds the graph, with what its parameters are now, as one child graph node to
   a CUgraph of the caller's, behind the n CUgraphNodes `after` (NULL when n is
   0); *node is the new CUgraphNode.  The driver copies the graph: later changes
   do not reach it.  The caller keeps `graph` for as long as executables made of
   the other graph may run, and orders their launches and the graph's replays,
   which have the same memory.  CGL_ERROR_NOT_CAPTURED without a capture;
   CGL_ERROR_RELEASED when its memory was taken back;
   CGL_ERROR_CAPTURE_STATE for conditional nodes, nodes that are switched off
   and random numbers.  cuGraphAddChildGraphNode */
CGL_API cgl_status cgl_graph_add_to(cgl_graph *graph, void *cugraph,
                                    void *const *after, size_t n, void **node);
/* Drops the executable, the template and the recording, or abandons a capture
   that is underway.  The graph can capture again.  Does not wait for replays in
   flight. */
CGL_API cgl_status cgl_graph_reset(cgl_graph *graph);
/* *pool is the pool of the graph's captures; the caller owns the reference.
   CGL_ERROR_NOT_CAPTURED without a capture. */
CGL_API cgl_status cgl_graph_pool(cgl_graph *graph, cgl_pool **pool);
/* *pool is a pool from which the capture allocated, by index from 0, the
   graph's own first; NULL past the last.  The caller owns the reference.
   CGL_ERROR_NOT_CAPTURED likewise. */
CGL_API cgl_status cgl_graph_pool_at(cgl_graph *graph, size_t index,
                                     cgl_pool **pool);
/* The driver's handles: the template (CUgraph), which needs keep_graph, and the
   executable (CUgraphExec), which needs an instantiation.  Borrowed until the
   next reset; the executable also until the next instantiation.  Afterwards
   replays refuse a parameter that changed in a conditional node's body
   (CGL_ERROR_CAPTURE_STATE). */
CGL_API cgl_status cgl_graph_raw_graph(cgl_graph *graph, void **cugraph);
CGL_API cgl_status cgl_graph_raw_exec(cgl_graph *graph, void **cuexec);
/* *writes: a replay may write to the buffer's memory.  This is known for
   operations of this library whose arguments are buffers and pinned memory, in
   child graphs too, and assumed for foreign nodes. */
CGL_API cgl_status cgl_graph_writes(const cgl_graph *graph,
                                    const cgl_buffer *buffer, bool *writes);
/* Writes a Graphviz file of the recording: kernel names, sizes, script lines
   and annotations.  For a path that ends in ".svg", Graphviz's dot, a child
   process, draws an SVG file.  CGL_ERROR_SYSTEM. */
CGL_API cgl_status cgl_graph_debug_dump(cgl_graph *graph, const char *path);

typedef enum cgl_annotation_kind {
  CGL_ANNOTATION_TEXT,
  CGL_ANNOTATION_NUMBER,
  CGL_ANNOTATION_BOOLEAN /* number: 0 or 1 */
} cgl_annotation_kind;

typedef struct cgl_annotation {
  const char *key; /* "label" is shown first in pictures */
  cgl_annotation_kind kind;
  const char *text; /* of CGL_ANNOTATION_TEXT */
  double number;    /* of the other kinds */
} cgl_annotation;

/* Begins a scope.  Nodes that the graph captures get these annotations
   (copied), until *scope or the capture ends.  Scopes nest: a node also gets
   the annotations of the outer scopes, except for keys that an inner scope
   has.  Does nothing, with a *scope of 0, when the graph does not capture or
   its option `annotations` is off. */
CGL_API cgl_status cgl_graph_annotate(cgl_graph *graph,
                                      const cgl_annotation *annotations,
                                      size_t n, uint64_t *scope);
/* Ends a scope and the scopes inside it.  Does nothing for 0 or a scope that
   has ended. */
CGL_API void cgl_graph_annotate_end(cgl_graph *graph, uint64_t scope);
/* Removes the annotations from the nodes captured so far. */
CGL_API void cgl_graph_clear_annotations(cgl_graph *graph);

/* A body of a conditional node: conditional.h. */
typedef struct cgl_recording cgl_body;

typedef struct cgl_node_info {
  const char *kind; /* "kernel", "memcpy", "memset", "graph", "call",
                       "event_record", "event_wait", "conditional", "foreign" */
  const char *name; /* the kernel's name, or the operation */
  const char *file; /* script file, or "" */
  int line;         /* script line, or 0 */
  uint32_t grid[3], block[3], shared_bytes; /* of a kernel's launch */
  bool programmatic; /* a kernel that depends on the one before it by a
                        programmatic edge: cgl_graph_capture_begin */
  bool enabled;      /* replays run the node: cgl_graph_set_enabled */
  cgl_type type;     /* of a fill's or copy's elements; else CGL_TYPE_COUNT */
  size_t ndependencies;
  const size_t *dependencies; /* indices of nodes, from 0 */
  const char *label;          /* the annotation "label", or NULL */
  size_t nannotations;
  const cgl_annotation *annotations;
  const char *form; /* "predicated": a kernel of a predicated body, or the node
                       of a loop whose body is predicated turns; "node": another
                       conditional node; "following": a kernel with parameters
                       that follow buffers; else NULL */
  size_t nbodies;
  const cgl_body *const *bodies; /* of a conditional node */
} cgl_node_info;

/* The number of nodes of a captured graph.  cuGraphGetNodes */
CGL_API cgl_status cgl_graph_node_count(cgl_graph *graph, size_t *count);
/* Describes a node by index from 0, in the order in which the nodes were
   issued.  Texts and arrays are borrowed until the graph's next capture or
   reset.  cuGraphGetEdges */
CGL_API cgl_status cgl_graph_node(cgl_graph *graph, size_t index,
                                  cgl_node_info *info);
/* The number of nodes of a body, and the description of each.  Borrowed
   likewise. */
CGL_API size_t cgl_graph_body_node_count(const cgl_body *body);
CGL_API void cgl_graph_body_node(const cgl_body *body, size_t index,
                                 cgl_node_info *info);
/* *kernel is the kernel of a node, borrowed.  It is NULL for a node of another
   kind: a copy, a fill, a child graph, a foreign node. */
CGL_API cgl_status cgl_graph_node_kernel(cgl_graph *graph, size_t index,
                                         cgl_kernel **kernel);
/* How the nodes of a captured graph are ordered.  In data order
   (cgl_capture_order) two nodes are ordered, as they were issued, when they use
   the same bytes and one of them writes them.  A kernel reads what const
   pointers point to, and reads and writes what others point to; copies, fills,
   child graphs and conditional nodes use what is known of them.  Events by
   which streams were ordered, and the sequence of each generator, order nodes,
   too.  A node whose bytes are not known is a barrier: it comes after all nodes
   before it, and before all after it. */
typedef struct cgl_plan {
  cgl_capture_order order;
  size_t nodes, edges;
  size_t width;       /* the most nodes that are as many edges from the start */
  size_t longest;     /* nodes on the longest path */
  size_t bytes_asked; /* of all buffers that the capture made and used, in units
                         of 512 */
  size_t bytes;       /* that they take, each counted once */
  size_t bytes_least; /* the least that the edges allow, or somewhat less of
                         more than 512 temporary buffers */
} cgl_plan;

/* A buffer that the capture made and used. */
typedef struct cgl_plan_memory {
  const char *file; /* script file, or "" */
  int line;         /* script line, or 0 */
  uint64_t address;
  size_t bytes;   /* 0: another capture made it */
  bool temporary; /* the capture released it, and nobody knows its address */
} cgl_plan_memory;

/* CGL_ERROR_NOT_CAPTURED before the capture has ended.  cuGraphGetEdges */
CGL_API cgl_status cgl_graph_plan(cgl_graph *graph, cgl_plan *plan);
/* Describes buffer `index`, from 0, of those that a capture made and the
   graph's nodes use, in the order of their first use; *found: there is one.  Of
   two buffers whose bytes overlap, all nodes that use one come before all that
   use the other. */
CGL_API cgl_status cgl_graph_plan_memory(cgl_graph *graph, size_t index,
                                         cgl_plan_memory *memory, bool *found);
/* *reason: why node `index` is a barrier; NULL when it is none, and in issue
   order. */
CGL_API cgl_status cgl_graph_plan_barrier(cgl_graph *graph, size_t index,
                                          const char **reason);
/* A place where a captured graph uses a parameter. */
typedef struct cgl_graph_param_use {
  cgl_param *param; /* borrowed */
  size_t node;      /* of the graph, from 0 */
  bool body;        /* it stands in a body or a child graph of that node */
  bool follows;     /* a buffer, since cgl_param_follow */
  size_t argument;  /* of the kernel, from 0; of a fill 0; of a draw 0, 1;
                       of a grid CGL_ARGUMENT_GRID and on */
  const char *kind, *name, *file; /* of the operation: cgl_node_info */
  int line;
} cgl_graph_param_use;

/* Describes the first `room` uses in the order in which they were issued;
   *count is how many there are.  A use ends when cgl_graph_set_params or
   cgl_graph_set_fill gives the node a number in its place.
   CGL_ERROR_NOT_CAPTURED before the capture has ended. */
CGL_API cgl_status cgl_graph_params_used(cgl_graph *graph,
                                         cgl_graph_param_use *uses, size_t room,
                                         size_t *count);
/* *param is the parameter of that name that the graph uses, borrowed.
   CGL_ERROR_NOT_FOUND without one; CGL_ERROR_INVALID_ARGUMENT when there are
   several. */
CGL_API cgl_status cgl_graph_param(cgl_graph *graph, const char *name,
                                   cgl_param **param);
typedef struct cgl_named_buffer {
  const char *name;
  cgl_buffer *buffer;
} cgl_named_buffer;

/* What is in the place of an input of that name now (cgl_buffer_set_input),
   borrowed from the graph, and the name of each in turn.  NULL: there is none.
 */
CGL_API cgl_buffer *cgl_graph_input(const cgl_graph *graph, const char *name);
CGL_API const char *cgl_graph_input_name(const cgl_graph *graph, size_t index);
/* Puts n buffers, of the same types and shapes, in the places of inputs: all,
   or none.  From the next replay on each node that used an input, or views of
   it, uses the buffer, or the same part of it, also in bodies and child graphs;
   replays that were issued before run as they were.  The graph keeps the
   buffers.  CGL_ERROR_NOT_FOUND for a name that no input has;
   CGL_ERROR_INVALID_ARGUMENT for several inputs of the name, another type or
   shape, memory that a capture allocated from the graph's pool, a node of
   another library that uses the input, and, in data order, with predicated
   branches and in loaded graphs, for memory that other nodes use and one of
   them writes; CGL_ERROR_NOT_CAPTURED before the capture has ended. */
CGL_API cgl_status cgl_graph_bind(cgl_graph *graph,
                                  const cgl_named_buffer *inputs, size_t n);
/* Changes the arguments and the launch of a kernel's node, for replays that are
   issued from now on, and for executables and child graphs made from now on.
   `args` has an argument per parameter; CGL_ARG_SAME keeps an argument, NULL
   keeps all.  A NULL launch keeps the launch.  The change is checked as a
   launch is.  The graph keeps new buffers, and drops buffers that it no longer
   uses.  CGL_ERROR_INVALID_ARGUMENT for a node of another kind, and for memory
   that a capture allocated from the graph's pool; CGL_ERROR_ARGUMENT_TYPE for a
   generator; CGL_ERROR_NOT_CAPTURED before the capture has ended.
   cuGraphExecKernelNodeSetParams, cuGraphNodeSetParams */
CGL_API cgl_status cgl_graph_set_params(cgl_graph *graph, size_t index,
                                        const cgl_launch *launch,
                                        const cgl_arg *args, size_t nargs);
/* Changes a fill likewise: its element and its memory, of the same type and
   count.  NULL keeps either.  CGL_ERROR_INVALID_ARGUMENT for an eight-byte
   element whose halves differ in a fill that was captured with equal halves.
   cuGraphExecNodeSetParams, cuGraphExecKernelNodeSetParams,
   cuGraphNodeSetParams */
CGL_API cgl_status cgl_graph_set_fill(cgl_graph *graph, size_t index,
                                      cgl_buffer *buffer, const void *value);
/* Changes a copy likewise: a buffer in the place of a buffer, pinned memory in
   the place of pinned memory, of the same type and count.  NULL or CGL_ARG_SAME
   keeps either.  cuGraphExecNodeSetParams, cuGraphExecKernelNodeSetParams,
   cuGraphNodeSetParams */
CGL_API cgl_status cgl_graph_set_copy(cgl_graph *graph, size_t index,
                                      const cgl_arg *to, const cgl_arg *from);
/* Enables or disables a kernel, a copy or a fill, for replays that are issued
   from now on, and in executables made later.  A node that depends on a
   disabled node waits for that node's dependencies.  A graph with a disabled
   node is refused as a child graph (CGL_ERROR_CAPTURE_STATE).  While a node
   that writes to memory of the graph's pool is disabled, a replay counts as
   filling nothing for the other graphs of the pool.  CGL_ERROR_INVALID_ARGUMENT
   for a node of another kind.  cuGraphNodeSetEnabled; of a fill
   cuGraphExecNodeSetParams: it writes a word that nobody reads */
CGL_API cgl_status cgl_graph_set_enabled(cgl_graph *graph, size_t index,
                                         bool enabled);

/* Points of a graph's life at which hooks are called, in the order in which the
   hooks were added: X(constant, text).
   CAPTURE_START: right after a capture has begun.  Work that the hook issues is
   captured.
   CAPTURE_END: the template is whole (cgl_graph_raw_graph) and may still be
   edited.  There is no executable yet.
   INSTANTIATE: after each instantiation.
   REPLAY_START: before each launch.  A hook that fails aborts the launch, and
   no REPLAY_END hook is called.
   REPLAY_END: after each launch, also after a failed launch.
   DESTROY: once, when nothing can launch the capture any more: after the
   graph's reset or end, after the end of the last graph that has it as a child
   graph, and after captures underway.  It is called on the thread on which that
   happens, with a NULL graph.  It may release objects, and must not call
   anything else of cgraphlua. */
#define CGL_HOOK_POINTS(X)                   \
  X(CGL_HOOK_CAPTURE_START, "capture start") \
  X(CGL_HOOK_CAPTURE_END, "capture end")     \
  X(CGL_HOOK_INSTANTIATE, "instantiate")     \
  X(CGL_HOOK_REPLAY_START, "replay start")   \
  X(CGL_HOOK_REPLAY_END, "replay end")       \
  X(CGL_HOOK_DESTROY, "destroy")

typedef enum cgl_hook_point {
#define X(constant, text) constant,
  CGL_HOOK_POINTS(X)
#undef X
} cgl_hook_point;

/* A hook.  When it returns a status other than CGL_OK, the call that called the
   hook fails with that status and undoes what it began. */
typedef cgl_status (*cgl_hook_function)(void *user, cgl_graph *graph);

/* Adds a hook.  *id (may be NULL) is its number, for cgl_graph_remove_hook.  A
   hook may add and remove hooks; a hook that is added by a hook is first called
   the next time.  `user` must stay valid while the hook is registered. */
CGL_API cgl_status cgl_graph_add_hook(cgl_graph *graph, cgl_hook_point point,
                                      cgl_hook_function function, void *user,
                                      uint64_t *id);
/* Removes a hook; false when the graph does not have it (any more). */
CGL_API bool cgl_graph_remove_hook(cgl_graph *graph, uint64_t id);

#endif
