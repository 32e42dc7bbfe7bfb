/* Graphs: captured, instantiated, replayed, looked at and changed. */
#ifndef CGRAPHLUA_GRAPH_H
#define CGRAPHLUA_GRAPH_H

#include "kernel.h"

typedef enum cgl_capture_mode {
  CGL_CAPTURE_DEFAULT, /* thread_local */
  CGL_CAPTURE_GLOBAL,
  CGL_CAPTURE_THREAD_LOCAL,
  CGL_CAPTURE_RELAXED
} cgl_capture_mode;

/* Whether captures note what cgl_graph_annotate says. */
typedef enum cgl_annotations {
  CGL_ANNOTATIONS_OFF,
  CGL_ANNOTATIONS_ON,
  CGL_ANNOTATIONS_NVTX /* and name NVTX ranges for profilers: of each scope in
                          the capture, and of each replay */
} cgl_annotations;

typedef struct cgl_graph_desc {
  bool keep_graph; /* the template stays; instantiate by hand or at replay */
  cgl_pool *pool;  /* NULL: a private one */
  cgl_capture_mode capture_mode;
  bool unchecked; /* the caller orders replays of graphs that share a pool */
  cgl_annotations annotations;
  bool check_input_liveness; /* refuse to replay once memory that the capture
                                used was given up: cgl_buffer_retire */
} cgl_graph_desc;

/* Nothing is captured yet.  A NULL desc means defaults. */
CGL_API cgl_status cgl_graph_create(cgl_context *context,
                                    const cgl_graph_desc *desc,
                                    cgl_graph **graph);
/* What the next capture will use; desc->pool is borrowed, NULL: private. */
CGL_API void cgl_graph_get_desc(const cgl_graph *graph, cgl_graph_desc *desc);
/* Replaces it (capture_begin's own options); refused while the graph captures
   or holds a capture. */
CGL_API cgl_status cgl_graph_set_desc(cgl_graph *graph,
                                      const cgl_graph_desc *desc);
/* Begins capturing what is issued into `stream`.  cuStreamBeginCapture */
CGL_API cgl_status cgl_graph_capture_begin(cgl_graph *graph,
                                           cgl_stream *stream);
/* Ends it on the same stream and, unless keep_graph, instantiates.  A capture
   that a call broke fails with that call's own status, message and line; the
   end's failure is in `also`.  cuStreamEndCapture */
CGL_API cgl_status cgl_graph_capture_end(cgl_graph *graph);
/* Ends a capture whose result is not wanted; every stream of it is usable
   afterwards, whatever is returned.  Fine when none is underway.  The thread's
   last failure stays: what fails here is added to its `also`. */
CGL_API cgl_status cgl_graph_capture_abandon(cgl_graph *graph);
CGL_API cgl_context *cgl_graph_context(const cgl_graph *graph);
CGL_API bool cgl_graph_is_capturing(const cgl_graph *graph);
/* The stream on which the capture underway began (borrowed), or NULL. */
CGL_API cgl_stream *cgl_graph_capturing_stream(const cgl_graph *graph);
/* The graph that captures `stream` (borrowed), or NULL. */
CGL_API cgl_graph *cgl_stream_capturing_graph(const cgl_stream *stream);
/* A fresh executable from the kept template.  cuGraphInstantiateWithParams */
CGL_API cgl_status cgl_graph_instantiate(cgl_graph *graph);
/* `count` launches on `stream`, asynchronous; on a capturing stream one child
   graph node each.  cuGraphLaunch */
CGL_API cgl_status cgl_graph_replay(cgl_graph *graph, cgl_stream *stream,
                                    uint64_t count);
/* Drops executable, template and recording; the graph can capture again. */
CGL_API cgl_status cgl_graph_reset(cgl_graph *graph);
/* The pool of its captures; CGL_ERROR_NOT_CAPTURED before the first. */
CGL_API cgl_status cgl_graph_pool(cgl_graph *graph, cgl_pool **pool);
/* Every pool that its capture allocated from, its own first; *pool is NULL
   past the last. */
CGL_API cgl_status cgl_graph_pool_at(cgl_graph *graph, size_t index,
                                     cgl_pool **pool);
/* The driver's handles: the template needs keep_graph, the executable an
   instantiation.  Borrowed until reset or instantiation. */
CGL_API cgl_status cgl_graph_raw_graph(cgl_graph *graph, void **cugraph);
CGL_API cgl_status cgl_graph_raw_exec(cgl_graph *graph, void **cuexec);
/* *writes: a replay may write to the buffer's memory.  Known of what was issued
   through this library with buffers and pinned memory as arguments; of
   foreign nodes it is assumed. */
CGL_API cgl_status cgl_graph_writes(const cgl_graph *graph,
                                    const cgl_buffer *buffer, bool *writes);
/* Writes a Graphviz file of the recording: kernel names, sizes, script lines,
   annotations; a path that ends in ".svg" is drawn by Graphviz's dot, a child
   process. */
CGL_API cgl_status cgl_graph_debug_dump(cgl_graph *graph, const char *path);

typedef enum cgl_annotation_kind {
  CGL_ANNOTATION_TEXT,
  CGL_ANNOTATION_NUMBER,
  CGL_ANNOTATION_BOOLEAN /* number: 0 or 1 */
} cgl_annotation_kind;

typedef struct cgl_annotation {
  const char *key; /* "label" is what pictures show first */
  cgl_annotation_kind kind;
  const char *text;
  double number;
} cgl_annotation;

/* What the graph captures from now on has these annotations (copied), beside
   those of the scopes around, of which they replace equal keys; until the end
   of *scope, or the capture's.  Nothing (*scope is 0) when the graph does not
   capture, or its option `annotations` is off. */
CGL_API cgl_status cgl_graph_annotate(cgl_graph *graph,
                                      const cgl_annotation *annotations,
                                      size_t n, uint64_t *scope);
/* Ends a scope and those inside it; nothing for 0 or one that has ended. */
CGL_API void cgl_graph_annotate_end(cgl_graph *graph, uint64_t scope);
/* Takes the annotations off the nodes captured so far. */
CGL_API void cgl_graph_clear_annotations(cgl_graph *graph);

typedef struct cgl_node_info {
  const char *kind; /* "kernel", "memcpy", "memset", "graph", "event_record",
                       "event_wait", "foreign" */
  const char *name; /* the kernel's name, or the operation */
  const char *file; /* script file, or "" */
  int line;         /* script line, or 0 */
  uint32_t grid[3], block[3], shared_bytes;
  bool enabled;  /* replays run it: cgl_graph_set_enabled */
  cgl_type type; /* of a fill's or copy's elements, else CGL_TYPE_COUNT */
  size_t ndependencies;
  const size_t *dependencies; /* indices of nodes, from 0 */
  const char *label;          /* the annotation "label", or NULL */
  size_t nannotations;
  const cgl_annotation *annotations;
} cgl_node_info;

CGL_API cgl_status cgl_graph_node_count(cgl_graph *graph, size_t *count);
/* Texts and arrays are valid until the graph's next capture or reset. */
CGL_API cgl_status cgl_graph_node(cgl_graph *graph, size_t index,
                                  cgl_node_info *info);
/* The kernel of a node (borrowed); NULL when it is none of the caller's: a
   copy, a fill, a child graph, a node of others. */
CGL_API cgl_status cgl_graph_node_kernel(cgl_graph *graph, size_t index,
                                         cgl_kernel **kernel);
/* Gives a kernel's node other arguments, one per parameter, of which
   CGL_ARG_SAME stay (args NULL: all), and another launch (NULL: as it is),
   checked as a launch is; for replays from now on, and for executables and
   child graphs made from now on.  The graph keeps new buffers and lets go of
   those that it no longer uses.  Generators, and buffers that a capture
   allocated from the graph's pool, stay: CGL_ERROR_INVALID_ARGUMENT, as for a
   node without such a kernel; CGL_ERROR_NOT_CAPTURED before the capture's end.
   cuGraphExecKernelNodeSetParams, cuGraphNodeSetParams */
CGL_API cgl_status cgl_graph_set_params(cgl_graph *graph, size_t index,
                                        const cgl_launch *launch,
                                        const cgl_arg *args, size_t nargs);
/* The same for a fill: another element (NULL: as it is) and other memory (NULL:
   as it is) of the same type and count; and for a copy, whose arguments are
   buffers or pinned memory, as they were (NULL or CGL_ARG_SAME: as it is).  A
   fill of eight-byte elements whose halves differ is two nodes, each of which
   takes its half of the element.  cuGraphExecNodeSetParams,
   cuGraphNodeSetParams */
CGL_API cgl_status cgl_graph_set_fill(cgl_graph *graph, size_t index,
                                      cgl_buffer *buffer, const void *value);
CGL_API cgl_status cgl_graph_set_copy(cgl_graph *graph, size_t index,
                                      const cgl_arg *to, const cgl_arg *from);
/* Whether replays from now on run a kernel, copy or fill; what depends on one
   that is off waits for what that one waits for.  Executables made later do as
   this one; a graph with a node that is off is refused as a child, and while
   one is off that writes to memory of the graph's pool, its replays count as
   filling nothing for the other graphs of the pool.  cuGraphNodeSetEnabled */
CGL_API cgl_status cgl_graph_set_enabled(cgl_graph *graph, size_t index,
                                         bool enabled);

/* Points of a graph's life where hooks are called, in the order in which they
   were added: X(constant, text).
   CAPTURE_START: right after a capture began; what it issues is captured.
   CAPTURE_END: the template is whole (cgl_graph_raw_graph) and may still be
   edited; no executable yet.  INSTANTIATE: after each.  REPLAY_START: before
   each launch; one that fails aborts it, and no end hook is called.
   REPLAY_END: after each launch, also one that failed.  DESTROY: once, when
   nothing of the capture can be launched any more: after reset or the graph's
   end, after the last graph that has it as a child, and after captures
   underway; on the thread that brings it about, with a NULL graph; such a hook
   may release objects and call nothing else of cgraphlua. */
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

/* A status other than CGL_OK fails the call that the hook belongs to, and what
   it began is undone. */
typedef cgl_status (*cgl_hook_function)(void *user, cgl_graph *graph);

/* *id (may be NULL) removes it.  A hook may add and remove hooks; those added
   are first called the next time. */
CGL_API cgl_status cgl_graph_add_hook(cgl_graph *graph, cgl_hook_point point,
                                      cgl_hook_function function, void *user,
                                      uint64_t *id);
/* False when the graph has no such hook (any more). */
CGL_API bool cgl_graph_remove_hook(cgl_graph *graph, uint64_t id);

#endif
