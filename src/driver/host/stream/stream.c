/* Streams: queues of ops, each drained in order by one worker at a time.
   A stream that meets a pending wait, or a launch that runs on elsewhere,
   is parked: its worker leaves, and the fence or the launch queues it again. */
#include "driver/host/stream/stream.h"

#include <stdlib.h>

/* Ops that a worker runs before it looks for other tasks; entries in a queue
   from which on a caller waits. */
enum { BURST = 64, FULL = 65536 };

static void stream_drain(host_task *task);

typedef struct host_entry {
  host_op op;
  struct host_entry *next;
  bool started; /* HOST_OP_EXEC: has begun, and ended when met again */
} host_entry;

static struct CUstream_st legacy = {.id = 1, .task.run = stream_drain};
static CUstream all = &legacy;
static uint64_t last_id = 2;
static host_entry *spare; /* entries to use again; under host_lock */
static unsigned nspare;


CUstream host_stream_new(unsigned flags, int priority) {
  CUstream s = calloc(1, sizeof *s);
  if (!s || !host_handle_add(HOST_HANDLE_STREAM, s)) {
    free(s);
    return NULL;
  }
  s->flags = flags;
  s->priority = priority;
  s->id = ++last_id;
  s->task.run = stream_drain;
  s->task.priority = priority;
  s->all_prev = &legacy;
  s->all_next = legacy.all_next;
  if (legacy.all_next)
    legacy.all_next->all_prev = s;
  legacy.all_next = s;
  return s;
}


/* Of a destroyed stream that has nothing left to run. */
static void stream_free(CUstream s) {
  s->all_prev->all_next = s->all_next;
  if (s->all_next)
    s->all_next->all_prev = s->all_prev;
  host_fence_release(s->last);
  free(s->isolation);
  free(s->deps);
  free(s->edges);
  free(s);
}


/* The handle is gone; what was queued still runs. */
void host_stream_destroy(CUstream s) {
  host_capture_leave(s);
  host_handle_remove(HOST_HANDLE_STREAM, s);
  s->destroyed = true;
  if (!s->running)
    stream_free(s);
}


static void own_end(host_thread *thread) {
  if (host_check_opened() != CUDA_SUCCESS)
    return;
  host_lock();
  if (thread->own.epoch == host_context_epoch() &&
      host_handle_live(HOST_HANDLE_STREAM, thread->own.stream))
    host_stream_destroy(thread->own.stream);
  host_unlock();
}


/* The calling thread's default stream. */
static CUstream own_stream(void) {
  host_thread *thread = host_thread_here;
  if (thread->own.stream && thread->own.epoch == host_context_epoch())
    return thread->own.stream;
  thread->own.stream = host_stream_new(CU_STREAM_DEFAULT, 0);
  thread->own.epoch = host_context_epoch();
  thread->own.end = own_end;
  return thread->own.stream;
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
      host_stream_destroy(s);
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


static CUresult stream_failed(CUstream s) {
  return host_failed_in(s->isolation);
}


/* True when the entry is complete; else the stream is parked and may already
   be drained by another thread. */
static bool entry_run(CUstream s, host_entry *e) {
  host_op *op = &e->op;
  if (s->isolation && !e->started)
    atomic_store(&s->isolation->began,
                 op->kind == HOST_OP_EXEC ? host_now() : 0);
  switch (op->kind) {
  case HOST_OP_EVENT_WAIT:
    if (stream_failed(s) != CUDA_SUCCESS)
      return true;
    return host_fence_done(op->event.fence) ||
           !host_fence_then(op->event.fence, &s->task);
  case HOST_OP_EXEC:
    if (e->started || host_failed() != CUDA_SUCCESS)
      return true;
    e->started = true; /* of a failed stream, too: launches take turns */
    return op->launch->begin(op->launch, s);
  case HOST_OP_CALLBACK:
    host_callback_begin();
    op->callback.call(op->callback.stream, stream_failed(s), op->callback.user);
    host_callback_end();
    return true;
  case HOST_OP_EVENT_RECORD:
    host_op_run(op, s->isolation);
    return true;
  default:
    if (stream_failed(s) == CUDA_SUCCESS)
      host_op_run(op, s->isolation);
    return true;
  }
}


/* Takes the next entries of the queue; false: the queue is empty, and the
   worker has left the stream. */
static bool batch_take(CUstream s, host_entry *first, host_entry *last,
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
  bool more = s->batch;
  if (!more) {
    s->running = false;
    if (s->destroyed)
      stream_free(s);
  }
  return host_unlock_with(more);
}


static void stream_drain(host_task *task) {
  CUstream s =
      (CUstream)(void *)((char *)task - offsetof(struct CUstream_st, task));
  host_entry *used = NULL, *used_last = NULL;
  unsigned count = 0;
  while (!host_stopping()) {
    host_entry *e = s->batch;
    if (!e) {
      if (!batch_take(s, used, used_last, count))
        return;
      used = NULL;
      if (count >= BURST && host_task_waiting()) {
        host_task_submit(task);
        return;
      }
      count = 0;
      continue;
    }
    if (!entry_run(s, e))
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


/* A record's fence becomes the stream's newest marker: an event that came last
   and its stream are then done at the same moment, for every caller. */
static CUresult entry_push(CUstream s, host_op *op) {
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


bool host_stream_drained(CUstream s) {
  return atomic_load_explicit(&s->done, memory_order_acquire) == s->queued ||
         (s->last && s->last_at == s->queued && host_fence_done(s->last));
}


/* Pushes a record of a new fence; the caller gets a reference. */
static host_fence *stream_mark(CUstream s) {
  host_fence *fence = host_fence_create();
  if (!fence)
    return NULL;
  host_op op = {.kind = HOST_OP_EVENT_RECORD};
  op.event.fence = host_fence_retain(fence);
  if (entry_push(s, &op) != CUDA_SUCCESS) {
    host_fence_release(fence);
    return NULL;
  }
  return fence;
}


host_fence *host_stream_fence(CUstream stream) {
  if (host_stream_drained(stream))
    return NULL;
  if (stream->last && stream->last_at == stream->queued)
    return host_fence_retain(stream->last);
  host_fence *fence = stream_mark(stream);
  if (!fence)
    host_fail(CUDA_ERROR_OUT_OF_MEMORY, "no host memory for a fence");
  return fence;
}


/* Lets `s` wait for all that is queued on `other`. */
static CUresult stream_follow(CUstream s, CUstream other) {
  host_fence *fence = host_stream_fence(other);
  if (!fence)
    return CUDA_SUCCESS;
  host_op op = {.kind = HOST_OP_EVENT_WAIT};
  op.event.fence = fence;
  return entry_push(s, &op);
}


/* The legacy stream's work comes after all that blocking streams were given
   before it, and before all that they are given later. */
static CUresult order_with_legacy(CUstream stream) {
  if (stream == &legacy) {
    for (CUstream s = legacy.all_next; s; s = s->all_next) {
      if (s->flags & CU_STREAM_NON_BLOCKING || s->legacy_took == s->queued)
        continue;
      HOST_TRY(stream_follow(&legacy, s));
      s->legacy_took = s->queued;
    }
  } else if (!(stream->flags & CU_STREAM_NON_BLOCKING) &&
             stream->legacy_seen != legacy.queued) {
    HOST_TRY(stream_follow(stream, &legacy));
    stream->legacy_seen = legacy.queued;
  }
  return CUDA_SUCCESS;
}


/* A failed stream takes no more work; what orders others it takes. */
static CUresult stream_refuses(CUstream stream, const host_op *op) {
  switch (op->kind) {
  case HOST_OP_KERNEL:
  case HOST_OP_MEMCPY:
  case HOST_OP_MEMSET:
  case HOST_OP_EXEC:
    return host_failed_answer(stream->isolation);
  default:
    return CUDA_SUCCESS;
  }
}


CUresult host_stream_enqueue(CUstream stream, host_op *op) {
  CUresult result =
      stream->isolation ? stream_refuses(stream, op) : CUDA_SUCCESS;
  if (result == CUDA_SUCCESS)
    result = order_with_legacy(stream);
  if (result != CUDA_SUCCESS) {
    host_op_release(op);
    return result;
  }
  return entry_push(stream, op);
}


bool host_stream_all_drained(void) {
  for (CUstream s = all; s; s = s->all_next)
    if (!host_stream_drained(s))
      return false;
  return true;
}


bool host_stream_reached(uint64_t id, uint64_t at) {
  for (CUstream s = all; s; s = s->all_next)
    if (s->id == id)
      return atomic_load_explicit(&s->done, memory_order_acquire) >= at ||
             host_stream_drained(s);
  return true;
}


host_fence *host_stream_full(CUstream stream) {
  uint64_t done = atomic_load_explicit(&stream->done, memory_order_relaxed);
  return stream->queued - done < FULL ? NULL : host_stream_fence(stream);
}


void host_stream_unlock(host_fence *fence) {
  host_unlock();
  if (fence) {
    host_fence_wait(fence);
    host_fence_release(fence);
  }
}


/* False: the stream was destroyed meanwhile. */
static bool stream_wait(CUstream stream) {
  host_fence *fence = host_stream_fence(stream);
  if (!fence)
    return true;
  host_stream_unlock(fence);
  host_lock();
  return stream == &legacy || host_handle_live(HOST_HANDLE_STREAM, stream);
}


CUresult host_stream_wait(CUstream stream) {
  return stream_wait(stream) ? host_failed_answer(stream->isolation)
                             : host_failed();
}


CUresult host_stream_isolate(CUstream stream, uint64_t ns) {
  if (stream == &legacy)
    return CUDA_ERROR_INVALID_HANDLE;
  HOST_TRY(host_watch_enable());
  if (!stream->isolation)
    stream->isolation = calloc(1, sizeof *stream->isolation);
  if (!stream->isolation)
    return CUDA_ERROR_OUT_OF_MEMORY;
  atomic_store(&stream->isolation->ns, ns);
  return CUDA_SUCCESS;
}


void host_stream_abort(CUstream stream) {
  if (stream->isolation)
    host_fail_in(stream->isolation, CUDA_ERROR_LAUNCH_TIMEOUT,
                 "the stream was aborted");
}


void host_stream_renew(CUstream stream) {
  if (stream->isolation && atomic_load(&stream->isolation->failed) &&
      stream_wait(stream))
    atomic_store(&stream->isolation->failed, CUDA_SUCCESS);
}


void host_stream_wait_all(void) {
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


int host_stream_priority(int priority) {
  return priority > 0                        ? 0
         : priority < HOST_GREATEST_PRIORITY ? HOST_GREATEST_PRIORITY
                                             : priority;
}
