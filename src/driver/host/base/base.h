/* What every room of the host device stands on.
   Idea: the one lock, the handles and addresses that the device knows, its
   settings, and its one context with the error that sticks to it.
   Invariant: host_lock guards all state that calls can see, and neither an
   operation nor a callback runs while it is held.  What is under host_lock
   here has to be called with it held. */
#ifndef CGL_HOST_BASE_H
#define CGL_HOST_BASE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "driver/table.h"
#include "driver/thread.h"

#define HOST_MAX_WORKERS 256
#define HOST_MAX_SECONDS 1e9      /* of a kernel's deadline */
#define HOST_SHARED_DEFAULT 49152 /* dynamic shared bytes without opt-in */
#define HOST_SHARED_LIMIT 232448  /* with it */
#define HOST_SM_THREADS 2048

/* A device allocation's address is the host address itself. */
#define host_pointer(dptr) ((void *)(uintptr_t)(dptr))

/* Returns a failed check's result from the enclosing function. */
#define HOST_TRY(call)              \
  do {                              \
    CUresult try_result = (call);   \
    if (try_result != CUDA_SUCCESS) \
      return try_result;            \
  } while (0)

void host_lock(void);
void host_unlock(void);
CUresult host_unlock_with(CUresult result); /* and returns the result */

/* The process is exiting: no new work starts. */
void host_stop(void);
bool host_stopping(void);

/* ---- threads (thread.c) ---- */

/* What the device keeps for a thread; made by its first call, or with the
   worker. */
typedef struct host_thread {
  CGL_THREAD_APART CUcontext current;
  unsigned callbacks; /* of the user's that the thread is inside */
  unsigned worker;    /* 1 + the worker's number; 0: no worker */
  uint64_t number;    /* from 1; 0: none was asked for; stream/capture.c */
  CUstreamCaptureMode mode;
  struct {
    CUstream stream; /* CU_STREAM_PER_THREAD's, as of one context */
    uint64_t epoch;
    void (*end)(struct host_thread *thread); /* with the thread */
  } own;
  struct host_exec_run *launching; /* graph/exec.h */
  struct host_guard *guard;        /* a worker's; run/guard.c */
  struct host_stack *stack;        /* for its kernels; run/stack.c */
  unsigned loops;                  /* run alone; run/parallel.c */
  uint64_t since, missed;          /* ns; run/parallel.c */
  char fail_text[320];             /* what host_fail_text returned last */
  bool isolated;                   /* it is an isolated stream's */
} host_thread;

/* The calling thread's, or NULL: it never called. */
extern CGL_THREAD_LOCAL host_thread *host_thread_here;
/* Makes what `host_thread_here` is to point to; NULL: no memory. */
host_thread *host_thread_make(void);
/* The same for a thread that starts, which adopts it. */
host_thread *host_thread_new(void);
void host_thread_adopt(host_thread *thread);

/* ---- the context (context.c) ---- */

/* cuInit; NOT_INITIALIZED in a child of a fork whose parent retained the
   context, and then for every call. */
CUresult host_context_initialize(void);
/* Under host_lock: counts the users of the context.  The release sets *ended
   when the last one went; its objects are the caller's to destroy. */
CUresult host_context_retain(CUcontext *out);
CUresult host_context_release(bool *ended);
/* Under host_lock: forgets what failed. */
void host_context_reset(void);
bool host_context_is_active(void);
CUcontext host_context(void);
/* Under host_lock: how often the context was made. */
uint64_t host_context_epoch(void);
/* The calling thread's current context, or NULL. */
CUcontext host_context_current(void);
void host_context_set_current(CUcontext new_current);

/* What a call checks first: INVALID_CONTEXT, NOT_INITIALIZED, NOT_PERMITTED
   inside a callback, the sticky error, or SUCCESS.  After any of these checks
   the calling thread has its host_thread. */
CUresult host_check(void); /* acts on the current context */
/* On an object that knows its context: no context has to be current. */
CUresult host_check_object(void);
/* On a stream; the built-in ones are those of the current context. */
CUresult host_check_stream(CUstream stream);
/* The two above for calls that a callback may make. */
CUresult host_check_callback(void);
CUresult host_check_callback_stream(CUstream stream);
/* For calls that work in spite of a sticky error: on the device's memory, and
   those that release an object (which answer host_failed() in the end when
   the object belongs to the context). */
CUresult host_check_release(void);
/* For calls that need no context: on graphs and devices. */
CUresult host_check_process(void);
/* The same for calls that a callback may make. */
CUresult host_check_opened(void);
/* Around a user's function: host_check_process refuses calls in it. */
void host_check_enter_callback(void);
void host_check_leave_callback(void);

/* A fault of code that touched device memory. */
typedef struct host_fault {
  CUresult code;
  uintptr_t address; /* that was touched, when `memory` */
  bool memory;
  char why[120]; /* sentence without the address */
} host_fault;

/* A stream whose failures stay with it. */
typedef struct host_isolation {
  _Atomic int failed;     /* sticky, as the context's */
  _Atomic uint64_t ns;    /* that a kernel or a launch may run; 0: no limit */
  _Atomic uint64_t began; /* the launch of an executable that runs; or 0 */
  char text[320];         /* written before `failed` */
} host_isolation;

/* Any thread, without host_lock for host_fail_fault.  The first failure
   sticks: every later call answers it.  `what` names the kernel.  All return
   the code. */
CUresult host_fail(CUresult code, const char *what);
/* The same for an isolated stream alone; for the context when it is NULL. */
CUresult host_fail_in(host_isolation *isolation, CUresult code,
                      const char *what);
/* Names the kernel (or copy) and where the address lies among allocations. */
CUresult host_fail_fault(const char *name, const host_fault *fault,
                         host_isolation *isolation);
/* "" when nothing failed; an isolated stream's when this thread's last call
   answered its failure. */
const char *host_fail_text(void);
CUresult host_failed(void); /* the sticky error, or SUCCESS */
/* The context's, or else the isolated stream's. */
CUresult host_failed_in(const host_isolation *isolation);
/* The same, as the answer of a call: host_fail_text tells more. */
CUresult host_failed_answer(const host_isolation *isolation);

/* ---- settings (device.c), read once ---- */

size_t host_device_memory(void);         /* bytes; CGRAPHLUA_HOST_MEMORY */
bool host_device_guard_tight(void);      /* CGRAPHLUA_HOST_GUARD */
unsigned host_device_threads(void);      /* CGRAPHLUA_HOST_THREADS, or 0 */
double host_device_kernel_seconds(void); /* CGRAPHLUA_KERNEL_SECONDS, or 0 */
/* The variables that were ignored, in a sentence, or "". */
const char *host_device_complaint(void);

/* ---- live handles (handle.c), under host_lock ---- */

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

/* A stale or foreign handle is not in the set, and so never followed.  add:
   false for want of memory.  remove: false when the handle was not there. */
bool host_handle_add(host_handle_kind kind, const void *handle);
bool host_handle_remove(host_handle_kind kind, const void *handle);
bool host_handle_live(host_handle_kind kind, const void *handle);
int64_t host_handle_count(host_handle_kind kind);
/* Visits every live handle of a kind, which may remove itself. */
void host_handle_each(host_handle_kind kind, void (*visit)(void *handle));

/* ---- the address map (range.c), under host_lock ---- */

typedef enum host_range_kind {
  HOST_RANGE_ALLOC,      /* cuMemAlloc */
  HOST_RANGE_POOL,       /* cuMemAllocAsync */
  HOST_RANGE_GRAPH,      /* an alloc node's */
  HOST_RANGE_VIRTUAL,    /* cuMemAddressReserve */
  HOST_RANGE_GLOBAL,     /* a module's variable */
  HOST_RANGE_PINNED,     /* cuMemHostAlloc */
  HOST_RANGE_REGISTERED, /* cuMemHostRegister */
} host_range_kind;

typedef struct host_range {
  uintptr_t start;
  size_t bytes; /* as asked for */
  host_range_kind kind;
  uint64_t id;          /* CU_POINTER_ATTRIBUTE_BUFFER_ID */
  bool dying;           /* a free waits for the device */
  bool freed;           /* HOST_RANGE_POOL: on a free list */
  bool committed;       /* HOST_RANGE_GRAPH: accessible and counted */
  void *map;            /* whole mapping with guards, or NULL */
  size_t map_bytes;     /* of it */
  uintptr_t data;       /* its accessible pages */
  size_t data_bytes;    /* of them */
  size_t counted;       /* bytes counted: device's; pinned, machine's */
  CUmemoryPool pool;    /* HOST_RANGE_POOL */
  uint64_t free_stream; /* id of the stream that freed it, and */
  uint64_t free_at;     /* what was queued there by then */
  struct host_range *free_next;
  struct host_map *maps;           /* HOST_RANGE_VIRTUAL: by address */
  struct host_range *left, *right; /* treap, by start */
  uint32_t heap;                   /* its random priority */
} host_range;

/* The range that holds the address, the last one that starts at or before it,
   and the first one that starts after it; NULL when there is no such range. */
host_range *host_range_find(uintptr_t address);
host_range *host_range_below(uintptr_t address);
host_range *host_range_above(uintptr_t address);
/* Does any range overlap [start, start + bytes)? */
bool host_range_overlaps(uintptr_t start, size_t bytes);
/* Adds a zeroed range (malloc) of the given kind; NULL: no memory. */
host_range *host_range_add(uintptr_t start, size_t bytes, host_range_kind kind);
void host_range_remove(host_range *range); /* and frees it */
/* In order of address; NULL gives the first. */
host_range *host_range_next(const host_range *range);

#endif
