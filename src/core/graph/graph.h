/* Graphs: captured, instantiated, replayed, inspected and changed.
   Invariants: an EMPTY graph has no recording, template or executable; a
   CAPTURING graph has a recording, a template whose graph the driver still
   builds, and an origin stream; a CAPTURED graph has a recording and a
   template. A recording keeps its template, so a capture that other graphs
   contain outlives the reset of its own graph. `exec` is the executable's.
   Glossary.
   template: the driver's graph as captured, with all that must last as long
   as a graph can launch the capture.
   executable: the driver's runnable form, made from the template. */
#ifndef CGL_GRAPH_GRAPH_H
#define CGL_GRAPH_GRAPH_H

#include "core/graph/hooks.h"
#include "core/kernel/kernel.h"
#include "core/memory/memory.h"
#include "core/random/random.h"

typedef enum cgl_graph_state {
  CGL_GRAPH_EMPTY,
  CGL_GRAPH_CAPTURING,
  CGL_GRAPH_CAPTURED
} cgl_graph_state;

typedef struct cgl_template {
  cgl_object object;  /* kept by its recording */
  CUgraph graph;      /* owned; NULL while the driver builds it */
  cgl_pool *pool;     /* retained: counts the capture in pool->captures */
  cgl_hooks destroys; /* owned: hooks of CGL_HOOK_DESTROY, after the end or
                         reset of the graph that captured */
  bool nested;        /* captured into other graphs */
} cgl_template;

typedef struct cgl_executable {
  cgl_object object; /* owned by its graph alone */
  CUgraphExec exec;
  size_t bytes;   /* that it took, counted in the pool; see pool/history.c */
  cgl_pool *pool; /* retained */
} cgl_executable;

struct cgl_graph {
  cgl_object object;
  /* The fields that a replay reads come first. */
  CUgraphExec exec;
  cgl_pool *pool;           /* retained: given, or made when a capture begins */
  cgl_recording *recording; /* retained */
  const cgl_clock *stamped; /* borrowed: of the stream of the last stamp in a
                               private pool */
  const char *label;        /* interned: the executable's name in messages */
  unsigned attend; /* CGL_ATTEND_...: what a replay does besides the launch */
  bool draws;      /* the executable draws random numbers */
  bool grouped;    /* graphs of other pools are inside */
  bool keep_graph;
  bool pool_given; /* by the description; else the pool is the graph's own */
  bool unchecked;  /* replays are neither ordered nor refused */
  bool open; /* a capture end hook runs: the script may get the template */
  cgl_graph_state state;
  cgl_executable *executable; /* owned */
  uint64_t exec_number;       /* of the executable; unique in the process */
  cgl_template *template;     /* borrowed from the recording */
  cgl_draw *draw_list;        /* owned: draws of the capture after its end */
  cgl_capture_mode mode;
  cgl_capture capture; /* underway, or the last */
  cgl_site ended;      /* of that capture's end */
  cgl_hooks hooks;
  cgl_annotations annotations;
  uint64_t inputs_seen; /* value of cgl_memory_generation at the last check of
                           the inputs that found nothing */
};

/* ---- graph.c ---- */

/* CGL_ERROR_NOT_CAPTURED unless the graph is CAPTURED. */
cgl_status cgl_graph_check_captured(const cgl_graph *graph,
                                    const char *operation);
/* A template for a capture that begins, counted in its pool; NULL without
   memory, with the failure noted. */
cgl_template *cgl_graph_new_template(cgl_context *context, cgl_pool *pool,
                                     const char *operation);
/* Releases all that the graph holds of a capture.  Waits for nothing. */
void cgl_graph_drop_capture(cgl_graph *graph);
/* Instantiates the template, uploads the executable and releases the former.  A
   failure changes nothing.  cuGraphInstantiateWithParams, cuGraphUpload */
cgl_status cgl_graph_make_executable(cgl_graph *graph, const char *operation);

/* ---- replay.c ---- */

/* Enters the context, and makes the executable when a replay on `stream` needs
   it.  CGL_ERROR_NOT_CAPTURED when the graph holds no capture. */
cgl_status cgl_graph_prepare(cgl_graph *graph, cgl_stream *stream,
                             const char *operation);
/* Launches a prepared graph `count` times; on a stream that captures, adds it
   as child graphs.  cuGraphLaunch, cuGraphAddNode */
cgl_status cgl_graph_launch(cgl_graph *graph, cgl_stream *stream,
                            uint64_t count, const char *operation);

/* ---- nodes.c ---- */

/* Lets the recording learn its edges.  CGL_ERROR_NOT_CAPTURED when there is no
   recording.  cuGraphGetEdges */
cgl_status cgl_graph_learn(cgl_graph *graph, const char *operation);
/* The operation of node `index`, from 0.  CGL_ERROR_INVALID_ARGUMENT when the
   graph has no such node. */
cgl_status cgl_graph_op(const cgl_graph *graph, size_t index,
                        const char *operation, const cgl_op **op);
/* Closes all annotation scopes of a capture that ends. */
void cgl_graph_annotate_close(cgl_graph *graph);

/* ---- change.c ---- */

/* Before the template is used: updates its nodes to the changes so far.
   cuGraphNodeSetParams */
cgl_status cgl_graph_refresh(cgl_graph *graph, const char *operation);
/* Switches nodes off in a new executable.  cuGraphNodeSetEnabled */
CUresult cgl_graph_switch_off(const cgl_graph *graph, CUgraphExec exec);
/* The element type of a fill or copy; CGL_TYPE_COUNT for other operations. */
cgl_type cgl_graph_element_type(const cgl_recording *recording,
                                const cgl_op *op);

/* ---- inputs.c ---- */

/* CGL_ERROR_RELEASED when the script released an input since the capture. */
cgl_status cgl_graph_check_inputs(cgl_graph *graph, const char *operation);

#endif
