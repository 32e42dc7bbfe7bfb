/* The history of memory, when it is on: a bounded ring of allocations, releases
   and the device memory of executables; and the picture of all pools.
   Invariant: while it is off it costs an allocation one branch; the ring keeps
   the latest events and counts the events that it lost. */
#include "core/pool/pool.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_EVENTS = 1 << 24 };

atomic_bool cgl_history_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
CGL_FORK_HOLDS(lock)
static cgl_memory_event *ring;
static size_t room;
static uint64_t seen; /* events since `began` */
static double began;  /* ms */


static double clock_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}


cgl_status cgl_memory_history(size_t events) {
  static const char operation[] = "memory_history";
  if (events > MOST_EVENTS) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "%zu events are more than the %d that a history keeps", events,
             MOST_EVENTS);
    return cgl_fail_hint("keep fewer: the latest ones stay");
  }
  cgl_memory_event *fresh = events ? malloc(events * sizeof *fresh) : NULL;
  if (events && !fresh)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for %zu events",
                    events);
  pthread_mutex_lock(&lock);
  free(ring);
  ring = fresh;
  room = events;
  seen = 0;
  began = clock_ms();
  atomic_store(&cgl_history_on, events != 0);
  pthread_mutex_unlock(&lock);
  return CGL_OK;
}


void cgl_history_note(const cgl_pool *pool, const cgl_block *block,
                      bool freed) {
  pthread_mutex_lock(&lock);
  if (room) {
    cgl_memory_event *event = &ring[seen++ % room];
    event->ms = clock_ms() - began;
    event->pool = pool->id;
    event->freed = freed;
    event->address = block->segment->base + block->offset;
    event->bytes = block->bytes;
    event->allocated = pool->stats.allocated;
    event->reserved = pool->stats.reserved;
    event->file = block->site.file ? block->site.file : "";
    event->line = block->site.file ? block->site.line : 0;
  }
  pthread_mutex_unlock(&lock);
}


size_t cgl_memory_events(cgl_memory_event *events, size_t wanted,
                         uint64_t *lost, double *ms) {
  pthread_mutex_lock(&lock);
  size_t kept = seen < room ? (size_t)seen : room;
  size_t n = kept < wanted ? kept : wanted;
  for (size_t i = 0; i < n; i++)
    events[i] = ring[(seen - n + i) % room];
  if (lost)
    *lost = seen - kept;
  if (ms)
    *ms = room ? clock_ms() - began : 0;
  pthread_mutex_unlock(&lock);
  return wanted ? n : kept;
}


size_t cgl_history_free_bytes(cgl_context *context) {
  size_t bytes = 0, total;
  if (!atomic_load_explicit(&cgl_history_on, memory_order_relaxed) ||
      context->driver->cuMemGetInfo(&bytes, &total))
    return 0;
  return bytes;
}


/* ---- all pools ---- */

uint64_t cgl_pool_id(const cgl_pool *pool) {
  return pool->id;
}


void cgl_memory_snapshot_free(cgl_memory_snapshot *memory) {
  if (!memory)
    return;
  for (size_t i = 0; i < memory->npools; i++)
    cgl_snapshot_free(memory->pools[i].snapshot);
  free(memory);
}


cgl_status cgl_context_snapshot(cgl_context *context,
                                cgl_memory_snapshot **out) {
  static const char operation[] = "memory_snapshot";
  cgl_status status = cgl_context_enter(context, operation);
  if (!status && !cgl_pools_own(context, operation))
    status = cgl_last_error()->code;
  if (status)
    return status;
  size_t bytes_free, bytes_total;
  CUresult result = context->driver->cuMemGetInfo(&bytes_free, &bytes_total);
  if (result)
    return cgl_fail_driver(context, result, operation, "cuMemGetInfo");
  const cgl_pools *pools = cgl_pools_of(context, operation);
  size_t count = 0;
  pthread_mutex_lock(&context->lock);
  for (const cgl_pool *pool = pools->first; pool; pool = pool->next_pool)
    count++;
  cgl_memory_snapshot *memory =
      calloc(1, sizeof *memory + count * sizeof *memory->pools);
  if (!memory) {
    pthread_mutex_unlock(&context->lock);
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for a picture of %zu pools", count);
  }
  memory->device_free = bytes_free;
  memory->device_total = bytes_total;
  memory->pools = (cgl_pool_picture *)(memory + 1);
  for (cgl_pool *pool = pools->first; pool && !status; pool = pool->next_pool) {
    cgl_pool_picture *picture = &memory->pools[memory->npools++];
    picture->id = pool->id;
    picture->is_default = pool->own;
    status = cgl_pool_snapshot(pool, &picture->snapshot);
    cgl_pool_get_stats(pool, &picture->stats);
  }
  pthread_mutex_unlock(&context->lock);
  *out = status ? NULL : memory;
  if (status)
    cgl_memory_snapshot_free(memory);
  return status;
}
