/* The host device: a CUDA device in software, on CPU threads.
   Idea: every asynchronous act is a host_op.  A call on a stream submits an
   op; if the stream is capturing the op becomes a graph node (capture.c),
   else it is queued on the stream (stream.c) and a worker runs it in order.
   An executable graph is a DAG of the same ops (exec.c).  Order between
   queues is made of fences only: an event is the fence of its last record.
   Invariants: one lock (host_lock) guards all API-visible state, and no op
   runs and no callback is called while it is held; a fence goes from pending
   to done once and stays done; queued ops own what they point to (parameters
   are copied, functions and executables are retained) until they have run.
   A stream's ops run one after the other, each after its waits. */
#ifndef CGL_HOST_HOST_H
#define CGL_HOST_HOST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/kernel_abi.h"
#include "driver/table.h"

/* A device allocation address is the host address itself. */
#define host_pointer(dptr) ((void *)(uintptr_t)(dptr))

/* Returns from the enclosing function what a check answered, unless that was
   SUCCESS. */
#define HOST_TRY(call)              \
  do {                              \
    CUresult try_result = (call);   \
    if (try_result != CUDA_SUCCESS) \
      return try_result;            \
  } while (0)

typedef struct host_fence host_fence;     /* scheduler.c */
typedef struct host_capture host_capture; /* capture.c */
typedef struct host_exec_run host_exec_run;

/* ---- operations: what streams run and what graph nodes are ---- */

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

typedef struct host_kernel_op {
  CUfunction function; /* retained through its module */
  uint32_t grid[3], block[3];
  uint32_t shared_bytes;
  int priority, cooperative;
  bool programmatic; /* launched with programmatic stream serialization */
  void **params;     /* one malloc block: pointers, then the copied values */
} host_kernel_op;

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
    host_exec_run *exec; /* one launch; owned by the op */
    struct {
      CUstreamCallback call;
      void *user;
      CUstream stream;
    } callback;
  };
} host_op;

/* op.c.  Deep copy and release of what an op owns: a kernel's module
   reference and parameter block, an event reference, a fence reference, a
   run.  The addresses in ALLOC and FREE, the child of CHILD and the
   conditional are plain values here (graph.c owns what they name).  The copy
   fails only for want of host memory.  Callable with and without host_lock. */
CUresult host_op_copy(host_op *to, const host_op *from);
void host_op_release(host_op *op);
/* Runs one op on the calling worker thread, without host_lock, over as many
   workers as it can use; returns when it is complete.  For HOST_OP_KERNEL
   blocks run in parallel (host_parallel_for).  Not for CHILD, CONDITIONAL and
   EXEC, which exec.c runs, nor EVENT_WAIT of a pending fence.  A failure is
   made sticky by host_fail and returned. */
CUresult host_op_run(const host_op *op);
/* Fills a kernel op: checks grid, block, shared bytes and params against the
   function and copies the parameter values.  Takes kernelParams or extra as
   cuLaunchKernel does.  INVALID_VALUE as the recorded rows say. */
CUresult host_kernel_op_make(host_op *op, CUfunction f, const uint32_t grid[3],
                             const uint32_t block[3], uint32_t shared_bytes,
                             void **params, void **extra);

/* ---- scheduler.c: workers, tasks, fences ---- */

/* Workers: one per core ($CGRAPHLUA_HOST_THREADS), started at first use, with
   SIGPROF and other signals blocked; asleep on a futex or condition variable
   when nothing is ready. */
typedef struct host_task {
  void (*run)(struct host_task *task); /* without host_lock */
  struct host_task *next;
  int priority; /* of the stream it serves: below 0 goes first */
} host_task;

/* The number of workers that a text asks for; 0 when it is no such number. */
unsigned host_thread_wish(const char *text);
/* Queues a task for any worker.  Callable with or without host_lock. */
void host_task_submit(host_task *task);
unsigned host_worker_count(void);
/* What an item of a loop took last time, in ns; 0: not known yet. */
typedef _Atomic float host_cost;
/* Runs body(context, first, last) over [0, count) in chunks of at least
   `chunk` items, on the calling worker and any idle ones; returns when all is
   done.  A loop that is short, as `cost` tells, costs a plain call. */
void host_parallel_for(uint64_t count, uint64_t chunk,
                       void (*body)(void *context, uint64_t first,
                                    uint64_t last),
                       void *context, host_cost *cost);

/* Reference-counted one-shot completion with the time (ns, CLOCK_MONOTONIC)
   at which it was signalled. */
host_fence *host_fence_create(void); /* one reference; NULL: no memory */
host_fence *host_fence_retain(host_fence *fence);
void host_fence_release(host_fence *fence);
bool host_fence_done(const host_fence *fence);
uint64_t host_fence_time(const host_fence *fence);
void host_fence_signal(host_fence *fence); /* wakes waiters; once */
/* Submits `task` once the fence is done; false when it is done already, and
   then the task is not submitted.  The caller keeps the fence alive. */
bool host_fence_then(host_fence *fence, host_task *task);
void host_fence_wait(host_fence *fence); /* blocks; not on a worker, and
                                            not under host_lock */

/* The one lock of the API-visible state. */
void host_lock(void);
void host_unlock(void);

/* ---- context.c: device, primary context, sticky errors ---- */

/* Answer of a call's preamble: INVALID_CONTEXT, NOT_INITIALIZED, the sticky
   error of the context, or SUCCESS.  For calls that act on what is current. */
CUresult host_check(void);
/* For calls on an object that brings its context along: none need be
   current. */
CUresult host_check_object(void);
/* The same for a stream; the built-in ones are those of the current context. */
CUresult host_check_stream(CUstream stream);
/* The two above for the calls that a callback may make. */
CUresult host_check_callback(void);
CUresult host_check_callback_stream(CUstream stream);
/* For calls that a sticky error does not stop either: those on memory that
   belongs to the device, and those that give something back (these answer
   host_failed() in the end if it belongs to the context). */
CUresult host_check_release(void);
/* For calls that need no context at all: graphs, devices. */
CUresult host_check_process(void);
/* The same in callbacks too. */
CUresult host_check_opened(void);
/* Makes an error sticky: every later call answers it.  The first one wins.
   `what` names the kernel and is kept for cuGetErrorString-free reporting
   (host_fail_text). */
CUresult host_fail(CUresult code, const char *what);
const char *host_fail_text(void); /* "" when there was no failure */
/* The sticky error, or SUCCESS, without the other checks; any thread. */
CUresult host_failed(void);
/* Around a call of the user's own function (host function, callback, user
   object's destructor) on any thread: driver calls in it answer
   NOT_PERMITTED, and another worker may stand in while it blocks. */
void host_callback_begin(void);
void host_callback_end(void);

/* ---- handle.c: which handles live ---- */

typedef enum host_handle_kind {
  HOST_HANDLE_STREAM = 1,
  HOST_HANDLE_EVENT,
  HOST_HANDLE_MODULE,
  HOST_HANDLE_FUNCTION,
  HOST_HANDLE_MEMPOOL,
  HOST_HANDLE_PHYSICAL,
  HOST_HANDLE_GRAPH,
  HOST_HANDLE_EXEC,
  HOST_HANDLE_NODE,
  HOST_HANDLE_USER_OBJECT,
  HOST_HANDLE_KINDS
} host_handle_kind;

/* Under host_lock: a set of live handles, so that a stale or foreign one
   answers INVALID_HANDLE instead of being followed; cgl_host_live counts from
   it.  add: false for want of memory.  remove: false when it was not there. */
bool host_handle_add(host_handle_kind kind, const void *handle);
bool host_handle_remove(host_handle_kind kind, const void *handle);
bool host_handle_live(host_handle_kind kind, const void *handle);
int64_t host_handle_count(host_handle_kind kind);

/* ---- stream.c, event.c ---- */

struct CUstream_st {
  unsigned flags;
  int priority;
  uint64_t id;
  /* queue (stream.c) */
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
  /* capture (capture.c) */
  host_capture *capture; /* NULL: not capturing */
  CUgraphNode *deps;     /* the stream's dependency set */
  CUgraphEdgeData *edges;
  size_t ndeps, deps_size;
  bool origin;                 /* the capture began here */
  CUstream capture_next;       /* other streams of the capture */
  CUstream all_prev, all_next; /* every live stream */
};

struct CUevent_st {
  _Atomic unsigned refs; /* the handle and each op that names it */
  unsigned flags;
  host_fence *fence; /* of the last record outside captures; NULL: none */
  /* last record was in a capture (capture.c): */
  host_capture *capture; /* counted reference; NULL: not captured */
  CUgraphNode *deps;
  size_t ndeps;
};

/* cuEventDestroy forgets the capture under host_lock and drops one reference;
   the last reference frees the event.  Callable without host_lock. */
void host_event_retain(CUevent event);
void host_event_release(CUevent event);

/* NULL and CU_STREAM_LEGACY give the legacy stream, CU_STREAM_PER_THREAD the
   thread's own; under host_lock.  NULL for a handle that is not live, or for
   want of memory. */
CUstream host_stream_resolve(CUstream stream);
/* The same for a call that names the stream in order to use it, before it
   looks at its other arguments: INVALID_HANDLE, or what host_capture_legacy
   answers for the legacy stream. */
CUresult host_stream_open(CUstream stream, CUstream *out);
/* The one door of asynchronous work: under host_lock, on a resolved stream.
   Takes over what op owns, on failure too.  Capturing: host_capture_add;
   else the op is queued (implicit order with the legacy stream included). */
CUresult host_submit(CUstream stream, host_op *op);
/* Queues regardless of capture; takes op over. */
CUresult host_enqueue(CUstream stream, host_op *op);
/* Under host_lock: a new reference to a fence that is done when all that was
   queued on the stream so far has run; NULL when that is so already (or for
   want of memory, after host_fail). */
host_fence *host_stream_fence(CUstream stream);
/* Priorities beyond the range of streams are drawn to its ends. */
int host_priority_clamp(int priority);
/* exec.c calls this when a HOST_OP_EXEC that did not end inline ends. */
void host_stream_resume(CUstream stream);

/* ---- capture.c ---- */

/* "A potentially unsafe call": under host_lock.  SUCCESS, or 900 after having
   invalidated every capture that bars it (thread modes as recorded). */
CUresult host_capture_unsafe(void);
/* Preamble of calls that touch one stream's state from outside (synchronize,
   query, ...): 900 and invalidates when that stream is capturing, 906 for the
   legacy stream while a blocking stream captures, then as _unsafe. */
CUresult host_capture_touch(CUstream stream);
/* cuCtxSynchronize: any capture at all is invalidated, 900. */
CUresult host_capture_touch_all(void);
/* Implicit use of the legacy stream (synchronous copies, launches on it): 906
   and invalidates when a blocking stream captures. */
CUresult host_capture_legacy(void);
/* Adds op as a node after the stream's dependency set, which becomes that
   node; 901 when the capture is invalidated.  Takes op over.  Ops that a
   capture cannot hold (EXEC, CALLBACK) answer 900 and break it. */
CUresult host_capture_add(CUstream stream, host_op *op);
/* cuMemAllocAsync, cuMemAllocFromPoolAsync and cuMemFreeAsync on a capturing
   stream: a node; the address is fixed for the life of the graph.  The free
   answers INVALID_VALUE, and breaks nothing, for memory that is not a graph's
   or that this capture has freed already. */
CUresult host_capture_alloc(CUstream stream, size_t bytes, CUdeviceptr *out);
CUresult host_capture_free(CUstream stream, CUdeviceptr address);
/* A launch that was refused for its arguments breaks the stream's capture. */
void host_capture_break(CUstream stream);
/* cuEventRecord and cuStreamWaitEvent where a capture is concerned; *handled
   tells whether the call is finished here.  wait on a captured event pulls
   the stream in. */
CUresult host_capture_record(CUevent event, CUstream stream, unsigned flags,
                             bool *handled);
CUresult host_capture_wait(CUstream stream, CUevent event, unsigned flags,
                           bool *handled);
/* 907 for an event last recorded in a live capture (which it breaks), 1
   (INVALID_VALUE) in an ended one, else SUCCESS. */
CUresult host_capture_event_check(CUevent event, bool breaks);
/* A stream or an event is destroyed: forget it. */
void host_capture_forget_stream(CUstream stream);
void host_capture_forget_event(CUevent event);

/* ---- memory.c, virtual.c, mempool.c ---- */

/* Under host_lock: device memory of `bytes` with guard pages (or with its end
   against one: CGRAPHLUA_HOST_GUARD=1), counted against the device's size. */
CUresult host_memory_alloc(CUdeviceptr *out, size_t bytes);
/* Graph memory (alloc nodes): an address range fixed for the graph's life;
   commit maps it and counts it, or answers OUT_OF_MEMORY; decommit undoes. */
CUresult host_memory_reserve(CUdeviceptr *out, size_t bytes);
CUresult host_memory_commit(CUdeviceptr address);
CUresult host_memory_decommit(CUdeviceptr address);
void host_memory_unreserve(CUdeviceptr address);
/* copy.c, under host_lock: fill a copy or memset op after checking it against
   the known memory.  Pitches and heights of 0 are defaulted, sides of UNIFIED
   memory stay so; INVALID_VALUE when a range leaves its allocation, for an
   array, a bad pitch or element size.  */
CUresult host_memcpy_op_make(host_op *op, const CUDA_MEMCPY3D *copy);
CUresult host_memset_op_make(host_op *op, const CUDA_MEMSET_NODE_PARAMS *set);

/* ---- module.c ---- */

struct CUfunc_st {
  CUmodule module;
  const cgl_host_kernel *kernel;
  int max_dynamic_shared; /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
  int carveout;      /* CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT */
  host_cost cost[2]; /* of a block, and of a row of blocks */
};

void host_module_retain(CUmodule module); /* any thread */
void host_module_release(CUmodule module);

/* kernel.c: runs a kernel op's blocks with faults caught: an access to a guard
   page, an abort from the kernel (kernel_abi.h) or a divergent barrier ends
   the launch with host_fail and leaves the process alive. */
CUresult host_kernel_run(const host_kernel_op *op);

/* ---- graph.c, node.c, exec.c ---- */

/* The worker that drains `stream` has reached a launch.  Returns true when the
   run ended inline; false: host_stream_resume(stream) is called when it ends,
   by another thread and possibly before this returns.  The run is released by
   the op's owner after either. */
bool host_exec_begin(host_exec_run *run, CUstream stream);
void host_exec_run_release(host_exec_run *run);
/* Device side of cudaGraphSetConditional. */
void host_conditional_set(uint64_t handle, uint32_t value);
/* cuMemFree and cuMemFreeAsync, outside captures, of memory that an alloc node
   left allocated: under host_lock.  SUCCESS: done, nothing is queued, and the
   next launch may allocate it again; NOT_FOUND: not graph memory;
   INVALID_VALUE: graph memory that is not allocated now.  (Graph memory is
   committed by the first launch and stays so until its graph and executables
   are gone, so ALLOC and FREE ops do nothing when they run.) */
CUresult host_graph_memory_free(CUdeviceptr address);
/* For cuDeviceGetGraphMemAttribute and cuDeviceGraphMemTrim: bytes of graph
   memory allocated now and committed now, with their peaks. */
typedef struct host_graph_memory_stats {
  uint64_t used, used_high, reserved, reserved_high;
} host_graph_memory_stats;
void host_graph_memory_stats_get(host_graph_memory_stats *out);
void host_graph_memory_trim(void);

/* Live objects by kind, for tests: "streams", "events", "graphs",
   "executables", "modules", "allocations", "bytes".  -1: no such kind. */
int64_t cgl_host_live(const char *kind);

#endif
