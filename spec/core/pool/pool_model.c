/* What the model of pools knows. */
#include "core/pool/pool_model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


void model_wrong(model_world *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!*w->wrong)
    vsnprintf(w->wrong, sizeof w->wrong, format, args);
  va_end(args);
}


/* ---- intervals ---- */

interval *model_add(model_world *w, const interval *added) {
  if (w->count == w->size) {
    w->size = 2 * w->size + 256;
    w->intervals = realloc(w->intervals, w->size * sizeof *w->intervals);
  }
  w->intervals[w->count] = *added;
  return &w->intervals[w->count++];
}


static void drop(model_world *w, size_t index) {
  w->intervals[index] = w->intervals[--w->count];
}


uint64_t model_work(model_world *w) {
  w->worked = atomic_load(&w->context->waits_begun) + 1;
  return w->worked;
}


static bool is_waited(const model_world *w, const interval *i) {
  uint64_t done = atomic_load(&w->context->waits_done);
  return done >= i->freed && (!i->captured || done >= w->replayed[i->pool]);
}


void model_forget(model_world *w) {
  for (size_t k = 0; k < w->count; k++) {
    const interval *i = &w->intervals[k];
    if (!i->live && !i->captured && is_waited(w, i))
      drop(w, k--);
  }
}


/* ---- what comes before what ---- */

void model_merge(model_clock *to, const model_clock *from) {
  for (int c = 0; c < MODEL_CLOCKS; c++)
    if (to->count[c] < from->count[c])
      to->count[c] = from->count[c];
}


model_clock model_vector(const model_world *w, int clock) {
  return w->known[clock];
}


void model_note_use(model_world *w, interval *i, int clock) {
  model_work(w);
  cgl_context_note_work(w->context);
  i->use.count[clock] = ++w->known[clock].count[clock];
}


/* Whether all eager use is over, or comes before the clock's next work; for
   work of no stream (-1) only the former counts. */
static bool comes_before(const model_world *w, const interval *i, int clock) {
  for (int c = 0; c < MODEL_CLOCKS; c++)
    if (i->use.count[c] > w->done.count[c] &&
        (clock < 0 || i->use.count[c] > w->known[clock].count[c]))
      return false;
  return true;
}


/* Whether work of the thread's stream may have what was freed. */
static bool may_have(const model_thread *t, const interval *i, int stream) {
  const model_world *w = t->world;
  bool captures = t->in[stream];
  bool into = captures && t->graph_pool[t->capturing] == i->pool;
  if (!i->captured && is_waited(w, i))
    return true;
  if (i->ended && into)
    return true;
  if (!i->captured)
    return !i->ended && !i->unordered &&
           comes_before(w, i, captures ? -1 : model_clock_of(t, stream));
  if (!into)
    return false;
  if (i->capture != t->serial)
    return true; /* of an earlier capture: whoever captures now */
  for (int s = 0; s < MODEL_STREAMS; s++)
    if (s != stream && i->used[s] > t->known[stream][s])
      return false;
  return true;
}


static void tell_overlap(model_thread *t, const interval *new,
                         const interval *old, int stream) {
  model_wrong(t->world,
              "a block [%llx, %llx) of pool %d for stream %d of thread %d "
              "overlaps one that is %s, [%llx, %llx)%s%s%s",
              (unsigned long long)new->from, (unsigned long long)new->to,
              new->pool, stream, t->index, old->live ? "live" : "in use still",
              (unsigned long long)old->from, (unsigned long long)old->to,
              old->unordered ? ", used by graphs" : "",
              old->captured ? ", captured" : "",
              old->ended ? ", of graphs that are gone" : "");
}


/* Another stream's, which nobody waited for. */
static bool is_reused(const model_world *w, const interval *old, int clock) {
  if (old->captured || old->ended || is_waited(w, old))
    return false;
  for (int c = 0; c < MODEL_CLOCKS; c++)
    if (c != clock && old->use.count[c])
      return true;
  return false;
}


void model_check_new(model_thread *t, const interval *new, int stream) {
  model_world *w = t->world;
  bool reused = false;
  for (size_t k = 0; k < w->count; k++) {
    interval old = w->intervals[k];
    if (old.to <= new->from || new->to <= old.from)
      continue;
    if (old.live || !may_have(t, &old, stream)) {
      tell_overlap(t, new, &old, stream);
      return;
    }
    reused |= is_reused(w, &old, model_clock_of(t, stream));
    drop(w, k--);
    interval part = old;
    part.to = new->from;
    if (part.from < part.to)
      model_add(w, &part);
    part = old;
    part.from = new->to;
    if (part.from < part.to)
      model_add(w, &part);
  }
  w->reused += reused;
}


/* ---- freeing ---- */

/* The graphs are gone: it is as any memory that their replays used. */
static void end_scratch(model_world *w, interval *i) {
  if (i->captured && i->freed < w->replayed[i->pool])
    i->freed = w->replayed[i->pool];
  i->ended |= i->captured;
  i->captured = false;
}


uint64_t model_pin(const model_thread *t, int pool) {
  uint64_t pin = 0;
  for (int c = 0; c < MODEL_CHECKPOINTS; c++)
    if (t->checkpoints[c].checkpoint && t->checkpoints[c].pool == pool &&
        t->checkpoints[c].number > pin)
      pin = t->checkpoints[c].number;
  return pin;
}


void model_freed(model_thread *t, interval *i, uint64_t capture,
                 uint64_t worked) {
  i->buffer = NULL;
  i->pinned = NULL;
  i->dropped = i->number <= model_pin(t, i->pool);
  if (i->dropped)
    return;
  i->live = false;
  i->capture = capture;
  i->freed = worked;
  if (!t->world->holders[i->pool])
    end_scratch(t->world, i);
}


/* What only this graph kept of released buffers is free. */
static void unkeep(model_thread *t, int graph, uint64_t worked) {
  model_world *w = t->world;
  for (size_t k = 0; k < w->count; k++) {
    interval *i = &w->intervals[k];
    if (i->thread != t->index || !(i->kept & 1u << graph))
      continue;
    i->kept &= ~(1u << graph);
    if (i->live && !i->kept && !i->buffer && !i->dropped)
      model_freed(t, i, 0, worked);
  }
}


void model_let_go(model_thread *t, int graph, uint64_t worked) {
  model_world *w = t->world;
  int pool = t->graph_pool[graph];
  if (pool >= 0 && !--w->holders[pool])
    for (size_t k = 0; k < w->count; k++)
      if (w->intervals[k].pool == pool && !w->intervals[k].live)
        end_scratch(w, &w->intervals[k]);
  t->graph_pool[graph] = -1;
  unkeep(t, graph, worked);
}


/* ---- looking ---- */

/* A snapshot beside the intervals. */
static void look_at(model_world *w, int pool, const cgl_snapshot *snapshot) {
  for (size_t b = 0; b < snapshot->nblocks; b++) {
    const cgl_block_info *block = &snapshot->blocks[b];
    for (size_t k = 0; k < w->count; k++) {
      const interval *i = &w->intervals[k];
      bool over = i->pool == pool && i->from < block->address + block->bytes &&
                  block->address < i->to;
      bool free = !i->live && !i->captured &&
                  (is_waited(w, i) ||
                   (!i->ended && !i->unordered && comes_before(w, i, -1)));
      if (over && block->state == CGL_BLOCK_unmapped && !free)
        model_wrong(w, "memory in use was unmapped");
      if (over && i->live && block->state != CGL_BLOCK_live)
        model_wrong(w, "a live block is %s",
                    cgl_block_state_name(block->state));
    }
  }
}


void model_look(model_thread *t) {
  model_world *w = t->world;
  for (int p = 0; p < MODEL_POOLS; p++) {
    cgl_pool *pool = w->pools[p];
    cgl_latch_take(&pool->lock);
    bool valid = cgl_pool_is_valid(pool);
    bool within =
        !pool->desc.max_bytes || pool->stats.reserved <= pool->desc.max_bytes;
    cgl_latch_drop(&pool->lock);
    pthread_mutex_lock(&w->lock);
    if (!valid)
      model_wrong(w, "pool %d is not valid", p);
    if (!within)
      model_wrong(w, "pool %d took more than it may", p);
    pthread_mutex_unlock(&w->lock);
    cgl_snapshot *snapshot = NULL;
    if (!t->alone || cgl_pool_snapshot(pool, &snapshot))
      continue;
    look_at(w, p, snapshot);
    cgl_snapshot_free(snapshot);
  }
}


/* ---- worlds ---- */

/* Memory of an engine, which now and then has none. */
static int engine_allocate(void *user, uint64_t *address, size_t bytes,
                           void *custream) {
  (void)custream;
  model_world *w = user;
  CUdeviceptr at = 0;
  if (atomic_fetch_add(&w->engine_calls, 1) % 13 == 12)
    return CUDA_ERROR_NOT_PERMITTED;
  cgl_relaxed relaxed = cgl_captures_relax(w->context);
  int result = w->context->driver->cuMemAlloc(&at, bytes);
  cgl_captures_unrelax(w->context, relaxed);
  if (!result)
    atomic_fetch_add(&w->engine_blocks, 1);
  *address = at;
  return result;
}


static void engine_release(void *user, uint64_t address, size_t bytes) {
  (void)bytes;
  model_world *w = user;
  cgl_relaxed relaxed = cgl_captures_relax(w->context);
  if (!w->context->driver->cuMemFree(address))
    atomic_fetch_sub(&w->engine_blocks, 1);
  cgl_captures_unrelax(w->context, relaxed);
}


static void engine_end(void *user) {
  atomic_fetch_add(&((model_world *)user)->engine_ends, 1);
}


cgl_status model_open(model_world *w) {
  memset(w, 0, sizeof *w);
  cgl_allocator allocator = {engine_allocate, engine_release, engine_end, w};
  const cgl_pool_desc descs[MODEL_OWN] = {
      {0},
      {.max_bytes = 24u << 20},
      [MODEL_WHOLE] = {.no_split = true},
      [MODEL_LENDER] = {.use_on_oom = true},
      [MODEL_ENGINE] = {.allocator = &allocator},
  };
  pthread_mutex_init(&w->lock, NULL);
  setenv("CGRAPHLUA_HOST_MEMORY", "256M", 0);
  cgl_status status = cgl_context_open(NULL, &w->context);
  for (int p = 0; p < MODEL_OWN && !status; p++)
    status = cgl_pool_create(w->context, &descs[p], &w->pools[p]);
  for (int p = 0; p < MODEL_POOLS; p++)
    w->last[p] = -1;
  for (int e = 0; e < MODEL_EVENTS && !status; e++)
    status = cgl_event_create(w->context, false, &w->events[e].event);
  if (status)
    return status;
  w->pools[MODEL_DEFAULT] = cgl_context_pool(w->context);
  w->pools[MODEL_PINNED] = cgl_context_pinned_pool(w->context);
  return CGL_OK;
}


void model_close(model_world *w) {
  for (int e = 0; e < MODEL_EVENTS; e++)
    cgl_event_release(w->events[e].event);
  for (int c = 0; c < MODEL_CLOCKS; c++)
    cgl_clock_release(w->clocks[c]);
  cgl_pool_release(w->pools[MODEL_ENGINE]);
  if (atomic_load(&w->engine_blocks) || atomic_load(&w->engine_ends) != 1)
    model_wrong(w, "an engine's memory did not come back");
  for (int p = 0; p < MODEL_OWN; p++)
    if (p != MODEL_ENGINE)
      cgl_pool_release(w->pools[p]);
  cgl_context_release(w->context);
  pthread_mutex_destroy(&w->lock);
  free(w->intervals);
}
