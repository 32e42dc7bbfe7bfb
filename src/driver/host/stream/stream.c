/* Streams: queues of ops, each drained in order by one worker at a time.
   A stream that meets a pending wait, or a launch that runs on elsewhere,
   is parked: its worker leaves, and the fence or exec.c queues it again. */
#include "driver/host/base/runtime.h"

#include <pthread.h>
#include <stdlib.h>

enum { TURN = 64 };    /* ops a worker runs before others get their turn */
enum { FULL = 65536 }; /* entries behind which a caller waits */

static void drain(host_task *task);

typedef struct host_entry {
  host_op op;
  struct host_entry *next;
  bool started; /* HOST_OP_EXEC: has begun, and ended when met again */
} host_entry;

static struct CUstream_st legacy = {.id = 1, .task.run = drain};
static CUstream all = &legacy;
static uint64_t last_id = 2;
static host_entry *spare; /* entries to use again; under host_lock */
static unsigned nspare;

/* The calling thread's default stream, as of one context. */
static pthread_key_t own_key;
static pthread_once_t own_once = PTHREAD_ONCE_INIT;
static _Thread_local struct {
  CUstream stream;
  uint64_t epoch;
} own;


/* ---- the list of streams ---- */

static CUstream make(unsigned flags, int priority) {
  CUstream s = calloc(1, sizeof *s);
  if (!s || !host_handle_add(HOST_HANDLE_STREAM, s)) {
    free(s);
    return NULL;
  }
  s->flags = flags;
  s->priority = priority;
  s->id = ++last_id;
  s->task.run = drain;
  s->task.priority = priority;
  s->all_prev = &legacy;
  s->all_next = legacy.all_next;
  if (legacy.all_next)
    legacy.all_next->all_prev = s;
  legacy.all_next = s;
  return s;
}


/* Of a destroyed stream that has nothing left to run. */
static void unmake(CUstream s) {
  s->all_prev->all_next = s->all_next;
  if (s->all_next)
    s->all_next->all_prev = s->all_prev;
  host_fence_release(s->last);
  free(s->deps);
  free(s->edges);
  free(s);
}


/* The handle is gone; what was queued still runs. */
static void destroy(CUstream s) {
  host_capture_forget_stream(s);
  host_handle_remove(HOST_HANDLE_STREAM, s);
  s->destroyed = true;
  if (!s->running)
    unmake(s);
}


static void own_end(void *unused) {
  (void)unused;
  host_lock();
  if (own.stream && own.epoch == host_context_epoch() &&
      host_handle_live(HOST_HANDLE_STREAM, own.stream))
    destroy(own.stream);
  own.stream = NULL;
  host_unlock();
}


static void own_set_up(void) {
  pthread_key_create(&own_key, own_end);
}


static CUstream own_stream(void) {
  if (own.stream && own.epoch == host_context_epoch())
    return own.stream;
  pthread_once(&own_once, own_set_up);
  pthread_setspecific(own_key, &own);
  own.stream = make(CU_STREAM_DEFAULT, 0);
  own.epoch = host_context_epoch();
  return own.stream;
}


CUstream host_stream_resolve(CUstream stream) {
  if (!stream || stream == CU_STREAM_LEGACY)
    return &legacy;
  if (stream == CU_STREAM_PER_THREAD)
    return own_stream();
  return host_handle_live(HOST_HANDLE_STREAM, stream) ? stream : NULL;
}


CUresult host_stream_open(CUstream stream, CUstream *out) {
  *out = host_stream_resolve(stream);
  if (!*out)
    return CUDA_ERROR_INVALID_HANDLE;
  return *out == &legacy ? host_capture_legacy() : CUDA_SUCCESS;
}


void host_stream_reset(void) {
  for (CUstream s = legacy.all_next, next; s; s = next) {
    next = s->all_next;
    if (!s->destroyed)
      destroy(s);
  }
  host_fence_release(legacy.last);
  legacy.last = NULL;
  while (spare) {
    host_entry *e = spare;
    spare = e->next;
    free(e);
  }
  nspare = 0;
}


/* ---- running ---- */

/* True when the entry is complete; else the stream is parked and may already
   be drained by another thread. */
static bool run_entry(CUstream s, host_entry *e) {
  host_op *op = &e->op;
  switch (op->kind) {
  case HOST_OP_EVENT_WAIT:
    return host_fence_done(op->event.fence) ||
           !host_fence_then(op->event.fence, &s->task);
  case HOST_OP_EXEC:
    if (e->started || host_failed() != CUDA_SUCCESS)
      return true;
    e->started = true;
    return host_exec_begin(op->exec, s);
  case HOST_OP_CALLBACK:
    host_callback_begin();
    op->callback.call(op->callback.stream, host_failed(), op->callback.user);
    host_callback_end();
    return true;
  case HOST_OP_EVENT_RECORD:
    host_op_run(op);
    return true;
  default:
    if (host_failed() == CUDA_SUCCESS)
      host_op_run(op);
    return true;
  }
}


/* Takes the next entries of the queue; false: none, and the worker has left
   the stream. */
static bool take_batch(CUstream s, host_entry *first, host_entry *last,
                       unsigned count) {
  host_lock();
  if (first) {
    last->next = spare;
    spare = first;
    nspare += count;
    while (nspare > 1024) {
      host_entry *e = spare;
      spare = e->next;
      nspare--;
      free(e);
    }
  }
  s->batch = s->head;
  s->head = s->tail = NULL;
  bool more = s->batch != NULL;
  if (!more) {
    s->running = false;
    if (s->destroyed)
      unmake(s);
  }
  host_unlock();
  return more;
}


static void drain(host_task *task) {
  CUstream s =
      (CUstream)(void *)((char *)task - offsetof(struct CUstream_st, task));
  host_entry *used = NULL, *used_last = NULL;
  unsigned count = 0;
  while (!host_stopping()) {
    host_entry *e = s->batch;
    if (!e) {
      if (!take_batch(s, used, used_last, count))
        return;
      used = NULL;
      if (count >= TURN && host_tasks_waiting()) {
        host_task_submit(task);
        return;
      }
      count = 0;
      continue;
    }
    if (!run_entry(s, e))
      break;
    s->batch = e->next;
    host_op_release(&e->op);
    uint64_t done = atomic_load_explicit(&s->done, memory_order_relaxed);
    atomic_store_explicit(&s->done, done + 1, memory_order_release);
    e->next = used;
    if (!used)
      used_last = e;
    used = e;
    count++;
  }
  /* Parked: the stream is not ours any more, the used entries are. */
  while (used) {
    host_entry *e = used;
    used = e->next;
    free(e);
  }
}


void host_stream_resume(CUstream stream) {
  host_task_submit(&stream->task);
}


/* ---- queueing ---- */

/* A record's fence becomes the stream's newest marker: an event that came last
   and its stream are then done at the same moment, whoever asks for either. */
static CUresult push(CUstream s, host_op *op) {
  host_entry *e = spare;
  if (e) {
    spare = e->next;
    nspare--;
  } else if (!(e = malloc(sizeof *e))) {
    host_op_release(op);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  e->op = *op;
  e->next = NULL;
  e->started = false;
  if (s->tail)
    s->tail->next = e;
  else
    s->head = e;
  s->tail = e;
  s->queued++;
  if (op->kind == HOST_OP_EVENT_RECORD) {
    host_fence_release(s->last);
    s->last = host_fence_retain(op->event.fence);
    s->last_at = s->queued;
  }
  if (!s->running) {
    s->running = true;
    host_task_submit(&s->task);
  }
  return CUDA_SUCCESS;
}


static bool drained(CUstream s) {
  return atomic_load_explicit(&s->done, memory_order_acquire) == s->queued ||
         (s->last && s->last_at == s->queued && host_fence_done(s->last));
}


/* Pushes a record of a new fence; the caller gets a reference of his own. */
static host_fence *mark(CUstream s) {
  host_fence *fence = host_fence_create();
  if (!fence)
    return NULL;
  host_op op = {.kind = HOST_OP_EVENT_RECORD};
  op.event.fence = host_fence_retain(fence);
  if (push(s, &op) != CUDA_SUCCESS) {
    host_fence_release(fence);
    return NULL;
  }
  return fence;
}


host_fence *host_stream_fence(CUstream stream) {
  if (drained(stream))
    return NULL;
  if (stream->last && stream->last_at == stream->queued)
    return host_fence_retain(stream->last);
  host_fence *fence = mark(stream);
  if (!fence)
    host_fail(CUDA_ERROR_OUT_OF_MEMORY, "no host memory for a fence");
  return fence;
}


/* Lets `s` wait for all that is queued on `other`. */
static CUresult follow(CUstream s, CUstream other) {
  host_fence *fence = host_stream_fence(other);
  if (!fence)
    return CUDA_SUCCESS;
  host_op op = {.kind = HOST_OP_EVENT_WAIT};
  op.event.fence = fence;
  return push(s, &op);
}


/* The legacy stream's work comes after all that blocking streams were given
   before it, and before all that they are given later. */
static CUresult order_with_legacy(CUstream stream) {
  if (stream == &legacy) {
    for (CUstream s = legacy.all_next; s; s = s->all_next) {
      if (s->flags & CU_STREAM_NON_BLOCKING || s->legacy_took == s->queued)
        continue;
      HOST_TRY(follow(&legacy, s));
      s->legacy_took = s->queued;
    }
  } else if (!(stream->flags & CU_STREAM_NON_BLOCKING) &&
             stream->legacy_seen != legacy.queued) {
    HOST_TRY(follow(stream, &legacy));
    stream->legacy_seen = legacy.queued;
  }
  return CUDA_SUCCESS;
}


CUresult host_enqueue(CUstream stream, host_op *op) {
  CUresult result = order_with_legacy(stream);
  if (result != CUDA_SUCCESS) {
    host_op_release(op);
    return result;
  }
  return push(stream, op);
}


CUresult host_submit(CUstream stream, host_op *op) {
  if (stream->capture)
    return host_capture_add(stream, op);
  if (stream == &legacy) {
    CUresult result = host_capture_legacy();
    if (result != CUDA_SUCCESS) {
      host_op_release(op);
      return result;
    }
  }
  return host_enqueue(stream, op);
}


bool host_device_idle(void) {
  for (CUstream s = all; s; s = s->all_next)
    if (!drained(s))
      return false;
  return true;
}


bool host_stream_reached(uint64_t id, uint64_t at) {
  for (CUstream s = all; s; s = s->all_next)
    if (s->id == id)
      return atomic_load_explicit(&s->done, memory_order_acquire) >= at ||
             drained(s);
  return true;
}


host_fence *host_stream_full(CUstream stream) {
  uint64_t done = atomic_load_explicit(&stream->done, memory_order_relaxed);
  return stream->queued - done < FULL ? NULL : host_stream_fence(stream);
}


void host_unlock_and_wait(host_fence *fence) {
  host_unlock();
  if (fence) {
    host_fence_wait(fence);
    host_fence_release(fence);
  }
}


CUresult host_stream_wait(CUstream stream) {
  host_fence *fence = host_stream_fence(stream);
  if (fence) {
    host_unlock_and_wait(fence);
    host_lock();
  }
  return host_failed();
}


void host_device_wait(void) {
  size_t n = 0, count = 0;
  for (CUstream s = all; s; s = s->all_next)
    n++;
  host_fence **fences = calloc(n, sizeof *fences);
  for (CUstream s = all; s && fences; s = s->all_next) {
    fences[count] = host_stream_fence(s);
    if (fences[count])
      count++;
  }
  host_unlock();
  for (size_t i = 0; i < count; i++) {
    host_fence_wait(fences[i]);
    host_fence_release(fences[i]);
  }
  free(fences);
  host_lock();
}


/* ---- the driver's calls ---- */

int host_priority_clamp(int priority) {
  return priority > 0                        ? 0
         : priority < HOST_GREATEST_PRIORITY ? HOST_GREATEST_PRIORITY
                                             : priority;
}


CUresult host_cuStreamCreateWithPriority(CUstream *phStream, unsigned int flags,
                                         int priority) {
  HOST_TRY(host_check());
  if (!phStream || flags & ~(unsigned)CU_STREAM_NON_BLOCKING)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  *phStream = make(flags, host_priority_clamp(priority));
  host_unlock();
  return *phStream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}


CUresult host_cuStreamCreate(CUstream *phStream, unsigned int Flags) {
  return host_cuStreamCreateWithPriority(phStream, Flags, 0);
}


CUresult host_cuStreamDestroy(CUstream hStream) {
  HOST_TRY(host_check_release());
  host_lock();
  CUresult result = CUDA_ERROR_INVALID_HANDLE;
  if (host_handle_live(HOST_HANDLE_STREAM, hStream)) {
    destroy(hStream);
    result = host_failed();
  }
  host_unlock();
  return result;
}


CUresult host_cuStreamQuery(CUstream hStream) {
  HOST_TRY(host_check_callback_stream(hStream));
  host_lock();
  CUstream s = host_stream_resolve(hStream);
  CUresult result = s ? host_capture_touch(s) : CUDA_ERROR_INVALID_HANDLE;
  if (result == CUDA_SUCCESS)
    result = drained(s) ? host_failed() : CUDA_ERROR_NOT_READY;
  host_unlock();
  return result;
}


CUresult host_cuStreamSynchronize(CUstream hStream) {
  HOST_TRY(host_check_stream(hStream));
  host_lock();
  CUstream s = host_stream_resolve(hStream);
  CUresult result = s ? host_capture_touch(s) : CUDA_ERROR_INVALID_HANDLE;
  if (result == CUDA_SUCCESS) {
    result = host_stream_wait(s);
    host_mempool_sync();
  }
  host_unlock();
  return result;
}


CUresult host_cuStreamWaitEvent(CUstream hStream, CUevent hEvent,
                                unsigned int Flags) {
  HOST_TRY(host_check_callback_stream(hStream));
  if (Flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL)
    return CUDA_ERROR_INVALID_VALUE;
  CUstream s;
  bool handled = false;
  host_lock();
  CUresult result = host_stream_open(hStream, &s);
  if (result != CUDA_SUCCESS) {
    handled = true;
  } else if (!host_handle_live(HOST_HANDLE_EVENT, hEvent)) {
    host_capture_break(s);
    result = CUDA_ERROR_INVALID_HANDLE;
    handled = true;
  } else {
    result = host_capture_wait(s, hEvent, Flags, &handled);
  }
  if (!handled && hEvent->fence && !host_fence_done(hEvent->fence)) {
    host_op op = {.kind = HOST_OP_EVENT_WAIT};
    op.event.fence = host_fence_retain(hEvent->fence);
    result = host_enqueue(s, &op);
  }
  host_unlock();
  return result;
}


CUresult host_cuStreamGetFlags(CUstream hStream, unsigned int *flags) {
  HOST_TRY(host_check_callback_stream(hStream));
  if (!flags)
    return CUDA_ERROR_INVALID_VALUE;
  CUstream s;
  host_lock();
  CUresult result = host_stream_open(hStream, &s);
  if (result == CUDA_SUCCESS)
    *flags = s->flags;
  host_unlock();
  return result;
}


CUresult host_cuStreamGetPriority(CUstream hStream, int *priority) {
  HOST_TRY(host_check_callback_stream(hStream));
  if (!priority)
    return CUDA_ERROR_INVALID_VALUE;
  CUstream s;
  host_lock();
  CUresult result = host_stream_open(hStream, &s);
  if (result == CUDA_SUCCESS)
    *priority = s->priority;
  host_unlock();
  return result;
}


static CUresult submit(CUstream stream, host_op *op) {
  CUstream s;
  host_lock();
  CUresult result = host_stream_open(stream, &s);
  if (result == CUDA_SUCCESS)
    result = host_submit(s, op);
  host_unlock_and_wait(result == CUDA_SUCCESS ? host_stream_full(s) : NULL);
  return result;
}


CUresult host_cuLaunchHostFunc(CUstream hStream, CUhostFn fn, void *userData) {
  HOST_TRY(host_check_callback_stream(hStream));
  if (!fn)
    return CUDA_ERROR_INVALID_VALUE;
  host_op op = {.kind = HOST_OP_HOST_FUNCTION};
  op.host.fn = fn;
  op.host.userData = userData;
  return submit(hStream, &op);
}


CUresult host_cuStreamAddCallback(CUstream hStream, CUstreamCallback callback,
                                  void *userData, unsigned int flags) {
  HOST_TRY(host_check_stream(hStream));
  if (!callback || flags)
    return CUDA_ERROR_INVALID_VALUE;
  host_op op = {.kind = HOST_OP_CALLBACK};
  op.callback.call = callback;
  op.callback.user = userData;
  op.callback.stream = hStream;
  return submit(hStream, &op);
}
