/* The ring of memory events, and the picture of all pools. */
#include "core/pool/history.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_EVENTS = 1 << 24 };

atomic_bool cgl_history_on;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
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
  free(memory->pools);
  free(memory);
}


/* Under the context's lock. */
static cgl_status memory_take_pools(cgl_context *context,
                                    cgl_memory_snapshot *memory) {
  const cgl_pools *pools = cgl_pools_of(context, "memory_snapshot");
  size_t count = 0;
  for (const cgl_pool *pool = pools->first; pool; pool = pool->next_pool)
    count++;
  memory->pools = calloc(count + 1, sizeof *memory->pools);
  if (!memory->pools)
    return cgl_fail(CGL_ERROR_NO_MEMORY, "memory_snapshot",
                    "no memory for a picture of %zu pools", count);
  cgl_status status = CGL_OK;
  for (cgl_pool *pool = pools->first; pool && !status; pool = pool->next_pool) {
    cgl_pool_picture *picture = &memory->pools[memory->npools];
    picture->id = cgl_pool_id(pool);
    picture->is_default = pool->own;
    status = cgl_pool_snapshot(pool, &picture->snapshot);
    if (!status) {
      cgl_pool_get_stats(pool, &picture->stats);
      memory->npools++;
    }
  }
  return status;
}


cgl_status cgl_context_snapshot(cgl_context *context,
                                cgl_memory_snapshot **out) {
  static const char operation[] = "memory_snapshot";
  cgl_status status = cgl_context_enter(context, operation);
  if (!status && !cgl_pools_own(context, operation))
    status = cgl_last_error()->code;
  if (status)
    return status;
  cgl_memory_snapshot *memory = calloc(1, sizeof *memory);
  if (!memory)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a picture");
  CUresult result = context->driver->cuMemGetInfo(&memory->device_free,
                                                  &memory->device_total);
  if (result)
    status = cgl_fail_driver(context, result, operation, "cuMemGetInfo");
  pthread_mutex_lock(&context->lock);
  if (!status)
    status = memory_take_pools(context, memory);
  pthread_mutex_unlock(&context->lock);
  if (status) {
    cgl_memory_snapshot_free(memory);
    return status;
  }
  *out = memory;
  return CGL_OK;
}
