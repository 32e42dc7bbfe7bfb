/* What the runtime rooms of the host device share among themselves; graph.c
   and its like need host.h alone.
   Idea: time, futexes and limits in one place; a fault frame that any code
   touching device memory runs inside; an address map that knows every piece
   of memory the device was told of.
   Invariant: a thread is inside at most one fault frame, and only there does
   the signal handler act. */
#ifndef CGL_HOST_RUNTIME_H
#define CGL_HOST_RUNTIME_H

#include <sched.h>
#include <time.h>

#include "driver/host/base/base.h"
#include "driver/host/calls/calls.h"

#define HOST_MAX_WORKERS 256
#define HOST_GREATEST_PRIORITY (-5)
#define HOST_SHARED_DEFAULT 49152 /* dynamic shared bytes without opt-in */
#define HOST_SHARED_LIMIT 232448  /* with it */
#define HOST_SM_THREADS 2048
#define HOST_SPIN_NS 20000 /* longest wait awake before a thread sleeps */

static inline uint64_t host_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}


static inline void host_pause(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}


/* Waiting awake: a step of it; false when HOST_SPIN_NS have passed.  It yields
   now and then: what is waited for may need this very core. */
typedef struct host_spinner {
  uint64_t end;
  unsigned turn;
} host_spinner;

static inline bool host_spin(host_spinner *s) {
  host_pause();
  if (++s->turn % 16)
    return true;
  sched_yield();
  uint64_t now = host_now();
  if (!s->end)
    s->end = now + HOST_SPIN_NS;
  return now < s->end;
}


/* scheduler.c.  The calling worker's number, from 0.  The process is exiting:
   start nothing new. */
unsigned host_worker_number(void);
bool host_stopping(void);
bool host_tasks_waiting(void); /* somebody queued a task that no one took */
/* A worker enters or leaves a function that may block for long: another may
   take its place.  No-ops on other threads. */
void host_worker_yield(void);
void host_worker_return(void);
/* Sees to it that so many idle workers are awake, if there are; how many are
   awake now. */
void host_worker_wake(unsigned count);
unsigned host_worker_spinning(void);

/* parallel.c: has a loop use for a helper?  Helps with one; false: none. */
bool host_loop_open(void);
bool host_loop_help(void);

/* device.c.  Physical memory of the device in bytes, from
   CGRAPHLUA_HOST_MEMORY; and whether CGRAPHLUA_HOST_GUARD is set.  Read once.
 */
size_t host_device_memory(void);
bool host_guard_tight(void);
/* The device's one context, and how often it was made. */
CUcontext host_context(void);
uint64_t host_context_epoch(void);

/* guard.c: fault frames. */
typedef struct host_fault {
  CUresult code;
  uintptr_t address; /* that was touched, when `memory` */
  bool memory;
  char why[120]; /* sentence without the address */
} host_fault;

/* Runs body(argument); true when it returned, false when a memory fault, an
   arithmetic fault or an abort of the kernel ended it: *fault tells which. */
bool host_guard_run(void (*body)(void *), void *argument, host_fault *fault);
/* Around a worker's life: its alternate signal stack; the handlers, once. */
void host_guard_thread_enter(void);
void host_guard_thread_leave(void);
/* context.c, without host_lock: host_fail with a sentence that names the
   kernel (or copy) and the place of the address among the allocations. */
CUresult host_fail_fault(const char *name, const host_fault *fault);

/* range.c: the address map, under host_lock. */
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

/* The range that holds address, or the last one that starts at or before it
   (NULL: none). */
host_range *host_range_find(uintptr_t address);
host_range *host_range_below(uintptr_t address);
host_range *host_range_above(uintptr_t address); /* first that starts after */
/* Does any range overlap [start, start + bytes)? */
bool host_range_overlaps(uintptr_t start, size_t bytes);
/* Adds a zeroed range (malloc) of the given kind; NULL: no memory. */
host_range *host_range_add(uintptr_t start, size_t bytes, host_range_kind kind);
void host_range_remove(host_range *range); /* and frees it */
/* In order of address; NULL gives the first. */
host_range *host_range_next(const host_range *range);

/* memory.c: counts bytes against the device's memory; false: too many. */
bool host_memory_charge(size_t bytes);
void host_memory_refund(size_t bytes);
size_t host_memory_used(void);
int64_t host_memory_allocations(void); /* live mappings of ours */
void host_memory_note_mapping(void);   /* one that host_memory_drop will drop */
/* Makes a range of `kind` with its own guarded mapping, which counts against
   the device's memory, a pinned one against the machine's. */
CUresult host_memory_make(size_t bytes, host_range_kind kind, host_range **out);
void host_memory_drop(host_range *range); /* unmaps, refunds, removes */
/* Drops the graph ranges that were given back, when the device is idle. */
void host_memory_bury(void);

/* virtual.c: may every byte of [address, address + bytes) of a reservation be
   accessed?  Is there a mapping around the address?  All reservations and
   chunks go (context end). */
bool host_virtual_accessible(const host_range *range, uintptr_t address,
                             size_t bytes);
bool host_virtual_mapped(const host_range *range, uintptr_t address);
void host_virtual_reset(void);

/* mempool.c, under host_lock: after a wait for the device or a part of it,
   releases what the pools keep above their thresholds; what they keep at all
   (true: there was something); all pools go (context end). */
void host_mempool_sync(void);
bool host_mempool_squeeze(void);
void host_mempool_reset(void);
/* The free of a pool's allocation was called, and the device is idle. */
void host_mempool_give_back(host_range *range);

/* stream.c: all streams but the built-in ones are destroyed and drained. */
void host_stream_reset(void);
/* Has every stream run what it was given?  Has the stream of this id run its
   first `at` entries, or is it gone? */
bool host_device_idle(void);
bool host_stream_reached(uint64_t id, uint64_t at);
/* Waits for all work of the device; gives host_lock up meanwhile. */
void host_device_wait(void);
/* What a call that queued something has to wait for when the stream holds very
   much already, or NULL; gives host_lock back and waits for it. */
host_fence *host_stream_full(CUstream stream);
void host_unlock_and_wait(host_fence *fence);
/* Waits for all that is queued on the stream; gives host_lock up meanwhile.
   Answers host_failed. */
CUresult host_stream_wait(CUstream stream);

/* event.c, module.c: context end. */
void host_event_reset(void);
void host_module_reset(void);

/* op.c, module.c: a parameter block for the kernel, one malloc block of
   pointers set to where the values go; where parameter `index` lies in a
   buffer laid out as in C. */
void **host_params_alloc(const cgl_host_kernel *kernel);
size_t host_param_offset(const cgl_host_kernel *kernel, size_t index);

/* handle.c: visits every live handle of a kind, which may remove itself. */
void host_handle_each(host_handle_kind kind, void (*visit)(void *handle));

#endif
