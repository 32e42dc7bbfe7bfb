/* Streams, events and operations; which streams are captured.
   Idea: every asynchronous act is a host_op.  A stream is a queue of ops that
   one worker at a time runs in order; order between queues is made of fences
   only, and an event is the fence of its last record.
   Invariants: queued ops own what they point to (parameters are copied,
   functions and executables are retained) until they have run; an op runs
   after its stream's earlier ops and after its waits; a stream that captures
   queues nothing.
   Every function here is called under host_lock unless it says otherwise. */
#ifndef CGL_HOST_STREAM_H
#define CGL_HOST_STREAM_H

#include "driver/host/run/run.h"

#define HOST_GREATEST_PRIORITY (-5)

typedef struct host_capture host_capture;

/* ---- operations: what streams run and what graph nodes are (op.c) ---- */

typedef enum host_op_kind {
  HOST_OP_EMPTY,
  HOST_OP_KERNEL,
  HOST_OP_MEMCPY,
  HOST_OP_MEMSET,
  HOST_OP_HOST_FUNCTION,
  HOST_OP_EVENT_RECORD, /* in a graph: external; in a stream: any record */
  HOST_OP_EVENT_WAIT,   /* likewise */
  HOST_OP_ALLOC,        /* graph memory node: maps at launch */
  HOST_OP_FREE,         /* graph memory node */
  HOST_OP_CHILD,        /* graph node only */
  HOST_OP_CONDITIONAL,  /* graph node only */
  HOST_OP_EXEC,         /* stream only: one launch of an executable */
  HOST_OP_CALLBACK      /* stream only: cuStreamAddCallback */
} host_op_kind;

/* A launch as a stream sees it; executables fill it in. */
typedef struct host_launch {
  /* On the worker that drains the stream, without host_lock.  True when the
     run ended inline; false: host_stream_resume is called when it ends, by
     another thread and possibly before this returns. */
  bool (*begin)(struct host_launch *launch, CUstream stream);
  void (*release)(struct host_launch *launch);
} host_launch;

typedef struct host_op {
  host_op_kind kind;
  union {
    host_kernel_op kernel;
    CUDA_MEMCPY3D memcpy; /* any copy, 1-D included; addresses resolved */
    CUDA_MEMSET_NODE_PARAMS_v2 memset;
    CUDA_HOST_NODE_PARAMS host;
    struct {
      CUevent event;
      host_fence *fence; /* stream ops: the fence to signal or await */
    } event;
    CUDA_MEM_ALLOC_NODE_PARAMS alloc;
    CUdeviceptr free;
    CUgraph child; /* owned by the node */
    struct host_conditional *conditional;
    host_launch *launch; /* owned by the op */
    struct {
      CUstreamCallback call;
      void *user;
      CUstream stream;
    } callback;
  };
} host_op;

/* Deep copy and release of what an op owns: a kernel's module reference and
   parameter block, an event reference, a fence reference, a launch.  The
   addresses in ALLOC and FREE, the child of CHILD and the conditional are
   plain values here (the graph owns what they name).  The copy fails only for
   want of host memory.  Callable with and without host_lock. */
CUresult host_op_copy(host_op *to, const host_op *from);
void host_op_release(host_op *op);
/* Runs an op on the calling worker, without host_lock, over as many workers as
   it can use; returns when it is complete.  Not for CHILD, CONDITIONAL, EXEC
   and CALLBACK, nor for a wait.  A failure is made sticky, for the isolated
   stream alone unless it is NULL, and returned. */
CUresult host_op_run(const host_op *op, host_isolation *isolation);

/* ---- streams (stream.c) ---- */

struct CUstream_st {
  unsigned flags;
  int priority;
  uint64_t id;
  struct host_entry *head, *tail; /* queued, not yet taken by a worker */
  struct host_entry *batch;       /* taken; belongs to the draining worker */
  host_task task;                 /* drains the stream */
  bool running;          /* a worker drains it, or it is parked on a fence */
  bool destroyed;        /* the handle is gone; freed when drained */
  uint64_t queued;       /* entries so far */
  _Atomic uint64_t done; /* entries that have run */
  host_fence *last;      /* newest marker; see host_stream_fence */
  uint64_t last_at;      /* `queued` when it was made */
  uint64_t legacy_seen;  /* the legacy stream's `queued` that this awaits */
  uint64_t legacy_took;  /* this stream's `queued` that the legacy awaits */
  host_isolation *isolation; /* owned; NULL: its failures are the context's */
  host_capture *capture;     /* NULL: not capturing */
  CUgraphNode *deps;         /* the dependency set of the stream's next node */
  CUgraphEdgeData *edges;
  size_t ndeps, deps_size;
  bool origin;                 /* the capture began here */
  CUstream capture_next;       /* other streams of the capture */
  CUstream all_prev, all_next; /* every live stream */
};

CUstream host_stream_new(unsigned flags, int priority); /* NULL: no memory */
/* The handle dies; what was queued still runs. */
void host_stream_destroy(CUstream stream);
void host_stream_reset(void); /* destroys all but the legacy stream */
/* NULL and CU_STREAM_LEGACY give the legacy stream, CU_STREAM_PER_THREAD the
   thread's own.  NULL for a handle that is not live, or for want of memory. */
CUstream host_stream_resolve(CUstream stream);
/* The same for a call that names the stream in order to use it, before it
   looks at its other arguments: INVALID_HANDLE, or what host_capture_legacy
   answers for the legacy stream. */
CUresult host_stream_open(CUstream stream, CUstream *out);
/* Queues an op, whether the stream captures or not, in order with the legacy
   stream; takes op over, on failure too. */
CUresult host_stream_enqueue(CUstream stream, host_op *op);
/* Without host_lock: a launch that did not end inline has ended. */
void host_stream_resume(CUstream stream);
/* A new reference to a fence that is done when all that was queued on the
   stream so far has run; NULL when that is so already (or for want of memory,
   after host_fail). */
host_fence *host_stream_fence(CUstream stream);
/* Has the stream run all that it was given? */
bool host_stream_drained(CUstream stream);
bool host_stream_all_drained(void);
/* Has the stream of this id run its first `at` entries, or is it gone? */
bool host_stream_reached(uint64_t id, uint64_t at);
/* From now on failures of what the stream runs stay with it, and its kernels
   and launches of graphs have so many nanoseconds each (0: no limit).  Not for
   the legacy stream. */
CUresult host_stream_isolate(CUstream stream, uint64_t ns);
/* Fails an isolated stream: what it runs ends, what it holds does not run. */
void host_stream_abort(CUstream stream);
/* Waits for an isolated stream that failed, and forgets the failure; gives
   host_lock up meanwhile. */
void host_stream_renew(CUstream stream);
/* Wait for all that is queued on the stream (answers host_failed_answer), and
   on all streams; both give host_lock up meanwhile. */
CUresult host_stream_wait(CUstream stream);
void host_stream_wait_all(void);
/* A fence that the caller waits for when the stream holds very much already,
   or NULL; gives host_lock back and waits for the fence. */
host_fence *host_stream_full(CUstream stream);
void host_stream_unlock(host_fence *fence);
/* Draws a priority beyond the range of streams to the range's end. */
int host_stream_priority(int priority);

/* ---- events (event.c) ---- */

struct CUevent_st {
  _Atomic unsigned refs; /* the handle and each op that names it */
  unsigned flags;
  host_fence *fence;     /* of the last record outside captures, or NULL */
  host_capture *capture; /* of the last record, counted; or NULL */
  CUgraphNode *deps;     /* what a stream that waits depends on there */
  size_t ndeps;
};

CUevent host_event_new(unsigned flags); /* NULL: no memory */
void host_event_destroy(CUevent event); /* the handle dies */
void host_event_reset(void);            /* destroys all */
/* Callable without host_lock. */
void host_event_retain(CUevent event);
void host_event_release(CUevent event);

/* ---- captures underway (capture.c) ---- */

struct host_capture {
  unsigned refs; /* being underway, and events recorded in it */
  uint64_t id;   /* unique in the process */
  CUstreamCaptureMode mode;
  uint64_t thread; /* that began it */
  CUgraph graph;
  bool invalid, ended;
  CUstream origin;
  CUstream streams;     /* all that take part, by capture_next */
  CUgraphNode *orphans; /* dependency sets of destroyed streams */
  size_t norphans;
  host_capture *prev, *next; /* all captures underway */
  /* The origin is destroyed: closes the capture and drops the graph. */
  void (*abandon)(host_capture *capture);
};

/* The calling thread's number, never 0; callable without host_lock. */
uint64_t host_capture_thread(void);
/* Sets the calling thread's mode and returns the one before. */
CUstreamCaptureMode host_capture_exchange_mode(CUstreamCaptureMode mode);
/* Begins in a stream, with an empty dependency set. */
CUresult host_capture_new(CUstream stream, CUgraph graph,
                          CUstreamCaptureMode mode,
                          void (*abandon)(host_capture *capture));
/* Another stream takes part from now on. */
void host_capture_join(host_capture *capture, CUstream stream);
/* Ends the capture and sets its streams free. */
void host_capture_close(host_capture *capture);
/* The stream is destroyed. */
void host_capture_leave(CUstream stream);
/* Invalidates the stream's capture, if there is one. */
void host_capture_break(CUstream stream);
/* A potentially unsafe call: SUCCESS, or 900 after having invalidated every
   capture that forbids it. */
CUresult host_capture_unsafe(void);
/* A call that touches a stream's state (synchronize, query, ...): 900 and
   invalidates when that stream is capturing, 906 for the legacy stream while
   a blocking stream captures, then as host_capture_unsafe. */
CUresult host_capture_touch(CUstream stream);
/* cuCtxSynchronize: 900, and invalidates every capture. */
CUresult host_capture_touch_all(void);
/* Implicit use of the legacy stream (synchronous copies, launches on it): 906
   and invalidates when a blocking stream captures. */
CUresult host_capture_legacy(void);
/* Does a blocking stream capture, so that the legacy stream is unusable? */
bool host_capture_bars_legacy(void);
/* 907 for an event last recorded in a live capture (which it breaks), 1
   (INVALID_VALUE) in an ended one, else SUCCESS. */
CUresult host_capture_check_event(CUevent event, bool breaks);
/* The event is recorded elsewhere, or destroyed. */
void host_capture_forget_event(CUevent event);

#endif
