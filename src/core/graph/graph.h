/* Graphs: captured, instantiated, replayed, looked at and changed.
   Glossary.  template: the driver's graph of a captured graph, with what must
   last until nobody can launch the capture any more.  executable: what the
   template is instantiated into.
   Invariants: state EMPTY has no recording, template or executable; CAPTURING
   has a recording, a template whose graph the driver still builds, and an
   origin stream; CAPTURED has all but, perhaps, the executable.  A recording
   keeps its template, so a graph that was captured into another outlives its
   own reset there.  `exec` is the executable's. */
#ifndef CGL_GRAPH_GRAPH_H
#define CGL_GRAPH_GRAPH_H

#include "core/call/call.h"
#include "core/graph/hooks.h"
#include "core/kernel/kernel.h"
#include "core/memory/memory.h"
#include "core/random/random.h"
#include "driver/waits.h"

typedef struct cgl_graph_params cgl_graph_params; /* params.c */
typedef struct cgl_graph_inputs cgl_graph_inputs; /* bind.c */

typedef enum cgl_graph_state {
  CGL_GRAPH_EMPTY,
  CGL_GRAPH_CAPTURING,
  CGL_GRAPH_CAPTURED
} cgl_graph_state;

typedef struct cgl_template {
  cgl_object object;  /* kept by its recording */
  CUgraph graph;      /* owned; NULL while the driver builds it */
  cgl_pool *pool;     /* retained: the capture counts among its captures */
  cgl_hooks destroys; /* owned: hooks of CGL_HOOK_DESTROY, once the graph that
                         captured has let go */
} cgl_template;

typedef struct cgl_executable {
  cgl_object object; /* owned by its graph alone */
  CUgraphExec exec;
  uint64_t number; /* unique in the process */
  size_t bytes;    /* that it took, counted in the pool; see pool/history.h */
  cgl_pool *pool;  /* retained */
} cgl_executable;

/* unroll.c */
typedef struct cgl_unroll {
  cgl_executable *executable; /* a reference: copies of the graph; NULL: none */
  uint64_t copies;            /* how many */
  uint64_t least;   /* replays in one call that count; UINT64_MAX without the
                       option, and once the executable was tried to be built
                       since the last change or instantiation */
  uint64_t replays; /* counted since then, or since it was built */
  uint64_t needed;  /* of them before it is built */
  bool shown;       /* the script has handles of this capture */
  cgl_clock *clock; /* retained: of the stream of the executable's last replay,
                       or NULL; unless there are no copies to come */
  uint64_t number;  /* of the copies that were launched last; 0: the graph's
                       executable was */
} cgl_unroll;

struct cgl_graph {
  cgl_object object;
  /* what a replay reads comes first */
  CUgraphExec exec;
  cgl_pool *pool;           /* retained: given, or made when a capture begins */
  cgl_recording *recording; /* a reference */
  const cgl_clock *stamped; /* noted for the private pool's last replay;
                               borrowed */
  const char *label;        /* interned; of the executable, for messages */
  cgl_param_changes param_changes;
  unsigned attend; /* CGL_ATTEND_..., what a replay does besides launching */
  bool draws;      /* the executable draws random numbers */
  bool grouped;    /* graphs of other pools are in it */
  bool open;       /* a capture end hook runs: the template may be seen */
  cgl_graph_state state;
  cgl_executable *executable; /* a reference */
  cgl_unroll unroll;
  uint64_t exec_number;     /* of the executable */
  cgl_template *template;   /* borrowed from the recording */
  cgl_graph_params *params; /* owned: of the capture; NULL: nothing varies */
  cgl_graph_inputs *inputs; /* owned: of the capture; NULL: it has none */
  cgl_calls_told calls;     /* owned: of the executable */
  cgl_draw *draw_list;      /* owned: of the capture, once it has ended */
  cgl_graph_desc options;   /* its pool is `pool`, or NULL: that is private */
  cgl_capture capture;      /* underway, or the last */
  cgl_site ended;           /* where it did */
  cgl_hooks hooks;          /* owned: all but those of CGL_HOOK_DESTROY */
  cgl_hooks destroys;       /* owned: of CGL_HOOK_DESTROY, for the capture */
  size_t replay_hooks;      /* in `hooks`, of a replay's start or end */
  uint64_t inputs_seen;     /* inputs.c: nothing was given up until then */
  cgl_object *bound; /* retained: names of a loaded graph (file/), or NULL */
};

/* ---- graph.c ---- */

/* Refuses a graph that holds no capture, or not yet. */
cgl_status cgl_graph_check_captured(const cgl_graph *graph,
                                    const char *operation);
/* Refuses a graph that captures, or holds a capture. */
cgl_status cgl_graph_check_empty(const cgl_graph *graph, const char *operation);
/* A template for a capture that begins, counted in its pool; NULL without
   memory. */
cgl_template *cgl_graph_new_template(cgl_context *context, cgl_pool *pool);
/* Lets go of what the graph holds of a capture; nothing is waited for. */
void cgl_graph_drop_capture(cgl_graph *graph);
/* Instantiates the template; an earlier executable is released.  The graph is
   left as it was on failure, or, with conditional nodes, without an executable.
 */
cgl_status cgl_graph_make_executable(cgl_graph *graph, const char *operation);
/* An executable of `template` that counts as the graph's; the caller
   owns the reference. */
cgl_status cgl_graph_new_executable(cgl_graph *graph, CUgraph template,
                                    const char *operation,
                                    cgl_executable **executable);

/* ---- capture.c, capture_end.c: also of the capture of a body ---- */

/* cuStreamBeginCapture */
CUresult cgl_graph_begin_driver_capture(const cgl_driver *driver,
                                        const cgl_stream *stream,
                                        cgl_capture_mode mode);
/* *graph: the driver's, or NULL.  cuStreamEndCapture */
CUresult cgl_graph_end_driver_capture(const cgl_capture *capture,
                                      CUgraph *graph);
/* The end failed.  A capture that one of our calls broke shows that call's
   failure, and the end's as what followed. */
cgl_status cgl_graph_capture_end_failed(const cgl_capture *capture,
                                        CUresult result, const char *operation);

/* ---- replay.c ---- */

/* Enters the context and sees to it that there is what a replay on `stream`
   needs; the graph may not be captured. */
cgl_status cgl_graph_prepare(cgl_graph *graph, cgl_stream *stream,
                             const char *operation);
/* Launches a prepared graph; into a stream that captures, as a child. */
cgl_status cgl_graph_launch(cgl_graph *graph, cgl_stream *stream,
                            uint64_t count, const char *operation);

/* ---- unroll.c ---- */

/* Before `count` replays: *copies is the executable with copies for them, built
   if need be, or NULL when single launches do.  Orders them after the graph's
   last replay when that is of another executable on another stream.
   cuStreamWaitEvent */
cgl_status cgl_graph_unroll_begin(cgl_graph *graph, cgl_stream *stream,
                                  uint64_t count, const char *operation,
                                  const cgl_executable **copies);
/* Launches once, unless a loop of launches is to be given up. */
static inline CUresult cgl_graph_launch_next(const cgl_driver *driver,
                                             CUgraphExec exec, CUstream stream,
                                             uint64_t launched) {
  return launched && cgl_driver_waits_stop()
             ? CUDA_ERROR_TIMEOUT
             : driver->cuGraphLaunch(exec, stream);
}
/* Launches the copies while `count` has room for all of them, and adds the
   replays that these are to *launched.  cuGraphLaunch */
CUresult cgl_graph_unroll_launch(const cgl_graph *graph, CUstream stream,
                                 const cgl_executable *copies, uint64_t count,
                                 uint64_t *launched);
/* Notes that the first `launched` of `count` replays were launched. */
void cgl_graph_unroll_end(cgl_graph *graph, const cgl_stream *stream,
                          const cgl_executable *copies, uint64_t count,
                          uint64_t launched);
/* The copies are no longer what the graph is. */
void cgl_graph_unroll_drop(cgl_graph *graph);

/* ---- params.c ---- */

/* At the end of a capture: watches its parameters, and lists its inputs. */
cgl_status cgl_graph_watch_params(cgl_graph *graph, const char *operation);
void cgl_graph_unwatch_params(cgl_graph *graph);
/* Before a replay: what was set since the last is in the executable, too, which
   may become another.  cuGraphExecKernelNodeSetParams, cuGraphExecNodeSetParams
 */
cgl_status cgl_graph_take_params(cgl_graph *graph, const char *operation);
/* Before the template is used: what was set is in the recording, and bodies of
   the template have it.  cuGraphCreate, cuGraphAddNode */
cgl_status cgl_graph_note_params(cgl_graph *graph, const char *operation);
/* The executable was made of the template just now. */
void cgl_graph_params_taken(cgl_graph *graph);
/* The executable's node lacks values of an operation, which was not due before;
   and the template or the executable lacks those of an operation's bodies. */
void cgl_graph_lacks_values(cgl_graph *graph, size_t index);
void cgl_graph_lacks_bodies(cgl_graph *graph, size_t index);

/* ---- bind.c ---- */

cgl_status cgl_graph_list_inputs(cgl_graph *graph, const char *operation);
void cgl_graph_free_inputs(cgl_graph *graph);

/* ---- restore.c ---- */

/* What an empty graph, made for it, is to hold: a recording that knows its
   edges, its draws, and what both need; all given to the graph, also when it
   fails. */
typedef struct cgl_restored {
  cgl_recording *recording;
  cgl_draw *draws;
  cgl_object *keeper; /* borrowed: the recording will retain it */
  cgl_object *bound;  /* of the graph, or NULL */
} cgl_restored;

/* Builds the graph and instantiates it as a capture's end does; `stream` is its
   origin.  cuGraphCreate, cuGraphAddNode, cuGraphInstantiateWithParams */
cgl_status cgl_graph_restore(cgl_graph *graph, cgl_stream *stream,
                             const cgl_restored *restored,
                             const char *operation);

/* ---- nodes.c ---- */

/* The graph holds a capture, and its recording knows the edges; else refuses.
   cuGraphGetEdges */
cgl_status cgl_graph_learn(cgl_graph *graph, const char *operation);
/* The operation of a node of a captured graph, else refuses. */
cgl_status cgl_graph_op(const cgl_graph *graph, size_t index,
                        const char *operation, const cgl_op **op);
/* Leaves a scope of the capture and those inside it; 0: all. */
void cgl_graph_leave_scopes(cgl_graph *graph, uint64_t id);

/* Brings the share of the recording up to what was changed. */
cgl_status cgl_graph_sum_up(cgl_graph *graph, const char *operation);

/* ---- change.c ---- */

/* Sets the executable's node to what the recording has.
   cuGraphExecKernelNodeSetParams, cuGraphExecNodeSetParams */
cgl_status cgl_graph_set_executable_node(const cgl_graph *graph, size_t index,
                                         const char *operation);
/* Before the template is used: brings its nodes up to what was changed.
   cuGraphNodeSetParams */
cgl_status cgl_graph_refresh(cgl_graph *graph, const char *operation);
/* Switches off in a new executable what is off.  cuGraphNodeSetEnabled,
   cuGraphExecNodeSetParams */
cgl_status cgl_graph_switch_off(const cgl_graph *graph, CUgraphExec exec,
                                const char *operation);

/* ---- inputs.c ---- */

/* Refuses when an input was given up by hand since the capture. */
cgl_status cgl_graph_check_inputs(cgl_graph *graph, const char *operation);

#endif
