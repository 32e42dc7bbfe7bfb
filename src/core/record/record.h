/* Graphs: a capture underway, its recording, and the executable it becomes.
   Glossary.  recording: one cgl_op per operation issued through cgraphlua into
   the capture, in order, with the node it became, its script line and the
   memory it touches; foreign: a node somebody else put in.  kept: objects the
   graph holds a reference to.  spare: arrays of a recording that is no more,
   which the context keeps for the next capture.  template: the CUgraph.
   Invariants: state EMPTY has no template, executable, operations or arrays;
   CAPTURING has an origin stream, whose `capture` and that of every adopted
   stream points here; CAPTURED has a template and perhaps an executable; room
   for noting an operation is made before the driver is asked for it, so what
   the driver took is always noted. */
#ifndef CGL_CORE_CAPTURE_H
#define CGL_CORE_CAPTURE_H

#include "core/base/base.h"
#include "core/stream/stream.h"

/* X(constant, word, type of its node) */
#define CGL_OPS(X)                                                  \
  X(CGL_OP_KERNEL, "kernel", CU_GRAPH_NODE_TYPE_KERNEL)             \
  X(CGL_OP_MEMCPY, "memcpy", CU_GRAPH_NODE_TYPE_MEMCPY)             \
  X(CGL_OP_MEMSET, "memset", CU_GRAPH_NODE_TYPE_MEMSET)             \
  X(CGL_OP_GRAPH, "graph", CU_GRAPH_NODE_TYPE_GRAPH)                \
  X(CGL_OP_RECORD, "event_record", CU_GRAPH_NODE_TYPE_EVENT_RECORD) \
  X(CGL_OP_WAIT, "event_wait", CU_GRAPH_NODE_TYPE_WAIT_EVENT)       \
  X(CGL_OP_FOREIGN, "foreign", CU_GRAPH_NODE_TYPE_EMPTY)

typedef enum cgl_op_kind {
#define X(constant, word, type) constant,
  CGL_OPS(X)
#undef X
} cgl_op_kind;

typedef struct cgl_range {
  CUdeviceptr address;
  size_t bytes;
  bool write;
  bool planned;      /* memory that captures allocated of the graph's pool */
  uint16_t argument; /* of a kernel, from 0 */
} cgl_range;

static inline bool cgl_range_meets(const cgl_range *range, CUdeviceptr address,
                                   size_t bytes) {
  return range->address < address + bytes &&
         address < range->address + range->bytes;
}

typedef struct cgl_op {
  cgl_op_kind kind;
  CUgraphNode node; /* NULL when the driver did not tell, or not yet */
  const char *name; /* interned */
  cgl_site site;
  uint64_t stream;    /* serial of the stream it was issued on */
  cgl_kernel *kernel; /* borrowed from `kept`; NULL: of others, or no kernel */
  bool fills;         /* a kernel that reads nothing of what it writes */
  bool off;           /* executables do not run it */
  bool stale;         /* changed, and the template's node is not */
  uint32_t grid[3], block[3], shared_bytes;
  uint32_t nranges, nargs; /* memory it touches; bytes of its arguments */
  size_t ranges, args;     /* where they begin in the recording's arrays */
  const cgl_scope *scope;  /* its annotations, annotate.h; NULL: none */
} cgl_op;

/* An allocation of the graph's own pool, made by some capture, as this capture
   uses it. */
typedef struct cgl_use {
  uint64_t number; /* of the allocation: unique in the process, growing */
  CUdeviceptr address;
  size_t bytes;
  cgl_site made;        /* the allocation */
  cgl_site read, wrote; /* the first operation that does, and the last */
  bool reads;           /* what other captures left there */
  bool updates;         /* so does a kernel, or it only writes */
  bool writes;          /* anything */
  bool filled;          /* whole, by a copy or a fill */
  size_t first, last;   /* operations that use it */
} cgl_use;

typedef struct cgl_share cgl_share;
typedef struct cgl_sharing cgl_sharing;

typedef struct cgl_recording {
  cgl_op *ops;
  size_t nops, ops_size;
  cgl_range *ranges;
  size_t nranges, ranges_size;
  unsigned char *args;
  size_t nargs, args_size;
  cgl_object **kept;
  size_t nkept, kept_size;
  cgl_use *uses;
  size_t nuses, uses_size;
  cgl_buffer **touched; /* such allocations, by the operation underway */
  size_t ntouched, touched_size;
  cgl_share **shares; /* retained: of graphs of other pools inside */
  size_t nshares, shares_size;
  bool children;
  bool stale;             /* some operation is */
  size_t noff, nhalted;   /* operations that are off, and those of them that
                             write to memory of the graph's pool */
  struct cgl_draw *draws; /* of random numbers, see generator.h */
  cgl_scope *scopes;      /* owned, linked; see annotate.h */
  const cgl_scope *scope; /* in force, in the capture underway */
  struct cgl_scope_mark *marks;
  size_t nmarks;
  size_t *edges; /* dependencies of all operations, one after the other */
  size_t *first; /* where those of operation i begin; nops + 1 entries */
} cgl_recording;

typedef enum cgl_graph_state {
  CGL_GRAPH_EMPTY,
  CGL_GRAPH_CAPTURING,
  CGL_GRAPH_CAPTURED
} cgl_graph_state;

struct cgl_graph {
  cgl_object object;
  /* what a replay reads comes first */
  CUgraphExec exec;
  cgl_pool *pool;    /* retained: given, or made when a capture begins */
  const char *label; /* interned; of the executable, for the trail */
  const struct cgl_clock *stamped; /* noted for the private pool's last replay:
                                      turn.c; borrowed */
  unsigned attend; /* CGL_ATTEND_..., what a replay does besides launching */
  bool extra; /* the executable draws, or graphs of other pools are in it */
  bool keep_graph;
  bool pool_given; /* by the description; else it is private */
  cgl_graph_state state;
  cgl_capture_mode mode;
  bool pool_held; /* counted among the pool's captures */
  CUgraph template;
  size_t exec_bytes;    /* that it took, counted in the pool; see history.h */
  uint64_t exec_number; /* of the executable; unique in the process */
  cgl_share *share;     /* in the pool, while the graph holds a capture */
  bool unchecked;       /* replays are neither ordered nor refused */
  cgl_recording recording;
  /* the capture underway, or the last one */
  uint64_t serial;    /* of the capture; unique in the process */
  bool watched;       /* others may issue work into it: see cgl_capture_watch */
  cgl_stream *origin; /* retained, until the next capture or reset */
  cgl_stream *forked; /* retained each; linked by next_in_capture */
  cgl_site begun, ended;
  pthread_t thread; /* that began it */
  struct {
    cgl_status status; /* 0: nothing broke it as far as we know */
    const char *operation;
    cgl_site site;
    char message[256], hint[160];
  } broken;
  struct cgl_reach *reach; /* of the capture underway; lazily */
  cgl_graph *next_live;    /* in the list of captures underway */
  /* Retained, and by every graph that has this one as a child: an empty graph
     that gets what a reset or the end of this one leaves behind. */
  cgl_graph *heir;
  bool is_heir;
  cgl_hook *hooks; /* owned; hooks.h */
  cgl_annotations annotations;
  uint64_t inputs_seen; /* liveness.c: none was released up to there */
  bool open;            /* a capture end hook runs: the template may be seen */
};

/* ---- recording.c ------------------------------------------------------------
   Growing arrays and touching their fresh pages costs more than noting what
   goes into them, so those of a recording that ends are handed on, through the
   context's one spare: the largest so far, of 4 MiB at most.  Only a capture
   that begins takes it, and owns it; what it does not need of it goes back when
   it ends. */

/* A capture begins: its recording takes the spare, if there is one. */
void cgl_recording_begin(cgl_recording *recording, cgl_context *context);
/* A capture has ended: arrays that are much larger than what is in them become
   the spare or are freed, and smaller ones hold it; as before without memory
   for them. */
void cgl_recording_tighten(cgl_recording *recording, cgl_context *context);
/* Makes room for one operation with so many ranges, argument bytes and kept
   objects; false without memory. */
bool cgl_recording_reserve(cgl_recording *recording, size_t ranges, size_t args,
                           size_t kept);
/* Makes room for so many more uses and shares; false without memory. */
bool cgl_recording_reserve_uses(cgl_recording *recording, size_t uses,
                                size_t shares);
/* Empties it, releasing what it kept; its arrays become the spare or are
   freed. */
void cgl_recording_clear(cgl_recording *recording, cgl_context *context);
/* The context goes: frees the spare. */
void cgl_recording_free_spare(cgl_context *context);
/* What a replay of it touches, as ranges that do not overlap, in order of
   address; foreign nodes may touch anything.  The caller frees *ranges; false
   without memory. */
bool cgl_recording_footprint(const cgl_recording *recording, cgl_range **ranges,
                             size_t *nranges);
/* Fills `edges` and `first` from the template; CUresult. */
CUresult cgl_recording_learn_edges(cgl_graph *graph);
/* Gives the operations noted so far the nodes of `driver_graph`, which are in
   the same order, unless it has nodes of others: they stay unknown then. */
CUresult cgl_recording_learn_nodes(cgl_recording *recording,
                                   const cgl_driver *driver,
                                   CUgraph driver_graph);
/* Puts foreign nodes among the operations, in the driver's creation order. */
CUresult cgl_recording_find_foreign(cgl_graph *graph);

/* ---- capture.c ---- */

/* What to note of an operation that the driver just took. */
typedef struct cgl_note {
  cgl_op_kind kind;
  const char *name;         /* static or interned */
  const cgl_launch *launch; /* kernels */
  cgl_kernel *kernel;       /* a user's; the capture keeps it */
  const cgl_range *ranges;  /* NULL: in the recording's room already */
  size_t nranges;
  size_t nargs; /* bytes of arguments, in the recording's room already */
  bool fills;   /* a kernel of ours that reads nothing of what it writes */
} cgl_note;

/* Before an operation on `stream`: CGL_OK, having made room when the stream
   captures. */
cgl_status cgl_capture_reserve(cgl_stream *stream, const char *operation,
                               size_t ranges, size_t args, size_t kept);
/* After the driver took it: learns the node.  Nothing when not capturing. */
void cgl_capture_note(cgl_stream *stream, const cgl_note *note);
/* Others may issue work into the capture from now on, so the driver is asked
   for the node of each operation: what lies between them is foreign.  While all
   the work is ours the nodes are in the order of the operations, and are asked
   for together. */
void cgl_capture_watch(cgl_graph *graph);
/* What the driver says of the capture of a stream; valid until the next call
   for it. */
typedef struct cgl_captured {
  CUgraph graph;            /* that is being built */
  const CUgraphNode *nodes; /* that what comes next depends on */
  const CUgraphEdgeData *edges;
  size_t count;
} cgl_captured;

/* CUDA_ERROR_STREAM_CAPTURE_INVALIDATED also where no capture is underway.
   cuStreamGetCaptureInfo */
CUresult cgl_capture_ask(const cgl_stream *stream, cgl_captured *captured);
/* The node that the stream's last operation became, or NULL. */
CUgraphNode cgl_capture_last_node(cgl_stream *stream);
/* Keeps an object alive for the graph's life, once per capture; true for memory
   that captures allocated of the graph's pool, which is not retained. */
bool cgl_capture_keep(cgl_graph *graph, cgl_object *object);
/* Turns a driver's failure of an operation into the thread's failure, and
   remembers the first one that broke the capture of `graph` (may be NULL). */
cgl_status cgl_capture_failed(cgl_graph *graph, CUresult result,
                              const char *operation, const char *entry,
                              cgl_context *context);
/* Fails with CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, naming what broke the
   capture. */
cgl_status cgl_capture_fail_broken(const cgl_graph *graph,
                                   const char *operation);
/* Refuses an operation that cannot be part of a capture, on a stream that
   captures; CGL_OK otherwise. */
cgl_status cgl_capture_refuse(cgl_stream *stream, const char *operation,
                              const char *why, const char *hint);
/* stream:wait(event): refuses waits that would break a capture; *joins gets
   the graph whose capture the stream enters, or NULL. */
cgl_status cgl_capture_check_wait(cgl_stream *stream, cgl_event *event,
                                  const char *operation, cgl_graph **joins);
void cgl_capture_adopt(cgl_graph *graph, cgl_stream *stream);
void cgl_capture_note_record(cgl_stream *stream, cgl_event *event);
void cgl_capture_note_wait(cgl_stream *stream, cgl_event *event);

/* While captures are underway, brackets calls that are harmless to them but
   that the driver bars: the thread's capture mode is relaxed in between. */
typedef struct cgl_relaxed {
  bool active;
  CUstreamCaptureMode before;
} cgl_relaxed;

cgl_relaxed cgl_relax(cgl_context *context);
void cgl_unrelax(cgl_context *context, cgl_relaxed relaxed);

#endif
