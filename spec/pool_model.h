/* A model of pools, run beside them: the random test and the fuzzer feed it
   bytes, which it reads as operations.
   The model: a list of intervals that are live, and of intervals that were
   freed with who used them last.  A block that a pool hands out may overlap no
   live interval, and a freed one only when its use is over for the one who
   asks: the device was waited for since; or the same stream used it; or, in a
   capture, its own order proves it; and what captures dropped goes to captures
   only while a graph holds the pool.
   Several threads may run models of their own on the same pools: the intervals
   are shared, under a lock. */
#ifndef CGL_SPEC_POOL_MODEL_H
#define CGL_SPEC_POOL_MODEL_H

#include "cgraphlua.h"
#include "core/capture.h"
#include "core/memory.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  MODEL_POOLS = 3,
  MODEL_STREAMS = 4, /* of each thread */
  MODEL_GRAPHS = 4,  /* of each thread */
  MODEL_LIVE = 96,   /* buffers of each thread */
  MODEL_UNIT = 512
};

/* Where bytes come from: `next` is false at the end. */
typedef struct model_source {
  bool (*next)(struct model_source *source, uint8_t *byte);
  void *user;
} model_source;

/* An interval of a pool's memory. */
typedef struct interval {
  uint64_t from, to;
  int pool;
  int thread;
  bool live;
  bool wide;          /* used by several streams, or by graphs */
  bool captured;      /* allocated by a capture into the pool */
  bool ended;         /* was scratch, until the graphs were gone */
  uint64_t stream;    /* serial of its stream */
  uint64_t freed;     /* waits begun before it was freed */
  uint64_t capture;   /* serial of the capture in which it was freed */
  unsigned kept;      /* graphs of the thread that keep it, a bit each */
  cgl_buffer *buffer; /* NULL: released, and kept by graphs alone */
  /* of its thread's capture: each stream's operations that used it */
  unsigned used[MODEL_STREAMS];
} interval;

typedef struct model_world {
  cgl_context *context;
  cgl_pool *pools[MODEL_POOLS];
  pthread_mutex_t lock; /* guards everything below */
  interval *intervals;
  size_t count, size;
  int holders[MODEL_POOLS]; /* captures and graphs that hold the pool */
  char wrong[400];          /* what was found, or "" */
  uint64_t blocks;
} model_world;

typedef struct model_thread {
  model_world *world;
  int index;
  cgl_stream *streams[MODEL_STREAMS];
  cgl_graph *graphs[MODEL_GRAPHS];
  int graph_pool[MODEL_GRAPHS]; /* whose pool it holds, or -1 */
  int capturing;                /* graph, or -1 */
  int origin;                   /* stream */
  uint64_t serial;              /* of the capture */
  bool in[MODEL_STREAMS];       /* the capture */
  unsigned issued[MODEL_STREAMS];
  unsigned known[MODEL_STREAMS][MODEL_STREAMS]; /* of others' operations */
  size_t live;
  model_source *source;
  bool ended;
} model_thread;


static inline unsigned model_byte(model_thread *t) {
  uint8_t byte = 0;
  if (!t->ended && !t->source->next(t->source, &byte))
    t->ended = true;
  return byte;
}


__attribute__((format(printf, 2, 3))) static inline void
model_wrong(model_world *w, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (!*w->wrong)
    vsnprintf(w->wrong, sizeof w->wrong, format, args);
  va_end(args);
}


/* ---- intervals, under the lock
 * ------------------------------------------------------ */

static inline interval *model_add(model_world *w, const interval *added) {
  if (w->count == w->size) {
    w->size = 2 * w->size + 256;
    w->intervals = realloc(w->intervals, w->size * sizeof *w->intervals);
  }
  w->intervals[w->count] = *added;
  return &w->intervals[w->count++];
}


static inline void model_drop(model_world *w, size_t index) {
  w->intervals[index] = w->intervals[--w->count];
}


static inline uint64_t model_waits_done(const model_world *w) {
  return atomic_load(&w->context->waits_done);
}


static inline bool model_is_waited(const model_world *w, const interval *i) {
  const cgl_pool *pool = w->pools[i->pool];
  return model_waits_done(w) > i->freed &&
         (!i->captured || model_waits_done(w) >= atomic_load(&pool->used));
}


/* Whether work of the thread's stream may have what was freed. */
static inline bool model_may_have(const model_thread *t, const interval *i,
                                  int stream) {
  const model_world *w = t->world;
  bool captures = t->in[stream];
  bool into = captures && t->graph_pool[t->capturing] == i->pool;
  if (!i->captured && model_is_waited(w, i))
    return true;
  if (i->ended && into)
    return true;
  if (!i->captured)
    return !captures && !i->wide && i->stream == t->streams[stream]->serial;
  if (!into)
    return false;
  if (i->capture != t->serial)
    return true; /* of an earlier capture: whoever captures now */
  for (int s = 0; s < MODEL_STREAMS; s++)
    if (s != stream && i->used[s] > t->known[stream][s])
      return false;
  return true;
}


/* A new block: it may overlap nothing that is in use.  What it covers of freed
   intervals is forgotten. */
static inline void model_check_new(model_thread *t, const interval *new,
                                   int stream) {
  model_world *w = t->world;
  for (size_t k = 0; k < w->count; k++) {
    interval old = w->intervals[k];
    if (old.to <= new->from || new->to <= old.from)
      continue;
    if (old.live || !model_may_have(t, &old, stream)) {
      model_wrong(w,
                  "a block [%llx, %llx) of pool %d for stream %d of thread %d "
                  "overlaps one that is %s, [%llx, %llx)%s%s",
                  (unsigned long long)new->from, (unsigned long long)new->to,
                  new->pool, stream, t->index,
                  old.live ? "live" : "in use still",
                  (unsigned long long)old.from, (unsigned long long)old.to,
                  old.wide ? ", wide" : "", old.captured ? ", captured" : "");
      return;
    }
    model_drop(w, k--);
    interval part = old;
    part.to = new->from;
    if (part.from < part.to)
      model_add(w, &part);
    part = old;
    part.from = new->to;
    if (part.from < part.to)
      model_add(w, &part);
  }
}


/* What was waited for tells nothing any more. */
static inline void model_forget(model_world *w) {
  for (size_t k = 0; k < w->count; k++) {
    const interval *i = &w->intervals[k];
    if (!i->live && !i->captured && model_is_waited(w, i))
      model_drop(w, k--);
  }
}


/* ---- operations
 * ---------------------------------------------------------------------- */

static inline size_t model_size(unsigned byte) {
  static const size_t sizes[] = {1,      500,     3000,    40000,
                                 300000, 1 << 20, 3 << 20, 9 << 20};
  return sizes[byte % 8] + 512 * (size_t)(byte / 8);
}


static inline void model_alloc(model_thread *t) {
  model_world *w = t->world;
  int pool = (int)model_byte(t) % MODEL_POOLS;
  int stream = (int)model_byte(t) % MODEL_STREAMS;
  size_t bytes = model_size(model_byte(t));
  cgl_buffer *buffer = NULL;
  if (t->live == MODEL_LIVE)
    return;
  if (cgl_buffer_create(t->streams[stream], w->pools[pool], CGL_TYPE_uint8,
                        bytes, &buffer))
    return;
  interval new = {.from = cgl_buffer_address(buffer),
                  .pool = pool,
                  .thread = t->index,
                  .live = true,
                  .buffer = buffer,
                  .stream = t->streams[stream]->serial};
  new.to = new.from + buffer->block->bytes;
  new.captured = t->in[stream] && t->graph_pool[t->capturing] == pool;
  pthread_mutex_lock(&w->lock);
  if (buffer->block->bytes < bytes || new.from % MODEL_UNIT)
    model_wrong(w, "a block of %zu bytes for %zu", buffer->block->bytes, bytes);
  model_check_new(t, &new, stream);
  model_add(w, &new);
  w->blocks++;
  pthread_mutex_unlock(&w->lock);
  t->live++;
}


/* The thread's n-th buffer, counted round; NULL without any. */
static inline interval *model_pick(model_thread *t, unsigned n) {
  model_world *w = t->world;
  for (size_t k = 0; w->count && k < w->count; k++) {
    interval *i = &w->intervals[(n + k) % w->count];
    if (i->live && i->buffer && i->thread == t->index)
      return i;
  }
  return NULL;
}


/* The graphs are gone: it is as any memory that they used. */
static inline void model_end_scratch(interval *i) {
  i->ended |= i->captured;
  i->wide |= i->captured;
  i->captured = false;
}


/* Waits begun by now.  Read before the pool is told that something is free: a
   wait that another thread makes in between covers it, as the pool knows. */
static inline uint64_t model_begun(const model_world *w) {
  return atomic_load(&w->context->waits_begun);
}


/* The interval is free, as far as the model knows, since `begun`. */
static inline void model_freed(model_world *w, interval *i, uint64_t capture,
                               uint64_t begun) {
  i->live = false;
  i->buffer = NULL;
  i->capture = capture;
  i->freed = begun;
  if (!w->holders[i->pool])
    model_end_scratch(i);
}


static inline void model_free(model_thread *t) {
  model_world *w = t->world;
  unsigned n = model_byte(t) * 7;
  pthread_mutex_lock(&w->lock);
  interval *i = model_pick(t, n);
  cgl_buffer *buffer = i ? i->buffer : NULL;
  bool into = i && t->capturing >= 0 && t->graph_pool[t->capturing] == i->pool;
  if (i && i->kept)
    i->buffer = NULL;
  else if (i)
    model_freed(w, i, into ? t->serial : 0, model_begun(w));
  pthread_mutex_unlock(&w->lock);
  t->live -= buffer != NULL;
  cgl_buffer_release(buffer);
}


/* Work of a stream on a buffer: real in a capture, else only said. */
static inline void model_use(model_thread *t) {
  model_world *w = t->world;
  unsigned n = model_byte(t) * 5;
  int stream = (int)model_byte(t) % MODEL_STREAMS;
  unsigned char value = (unsigned char)n;
  pthread_mutex_lock(&w->lock);
  interval *i = model_pick(t, n);
  if (i) {
    cgl_buffer *buffer = i->buffer;
    if (t->in[stream] && (buffer->count < 100000 || n % 4 == 0)) {
      bool own = i->captured && t->graph_pool[t->capturing] == i->pool;
      if (cgl_buffer_fill(buffer, t->streams[stream], &value)) {
        own = false;
      } else if (own) {
        i->used[stream] = ++t->issued[stream];
        i->wide |= i->stream != t->streams[stream]->serial;
      } else {
        i->kept |= 1u << t->capturing;
        i->wide = true;
      }
    } else if (!t->in[stream]) {
      cgl_buffer_touch(buffer, t->streams[stream]);
      i->wide |= i->stream != t->streams[stream]->serial;
    }
  }
  pthread_mutex_unlock(&w->lock);
}


static inline void model_wait(model_thread *t) {
  cgl_context_synchronize(t->world->context);
  pthread_mutex_lock(&t->world->lock);
  model_forget(t->world);
  pthread_mutex_unlock(&t->world->lock);
}


/* ---- captures
 * ------------------------------------------------------------------------ */

/* What only this graph kept of released buffers is free. */
static inline void model_unkeep(model_thread *t, int graph, uint64_t begun) {
  model_world *w = t->world;
  for (size_t k = 0; k < w->count; k++) {
    interval *i = &w->intervals[k];
    if (i->thread != t->index || !(i->kept & 1u << graph))
      continue;
    i->kept &= ~(1u << graph);
    if (i->live && !i->kept && !i->buffer)
      model_freed(w, i, 0, begun);
  }
}


/* The graph no longer holds its pool; under the lock, together with what makes
   it so. */
static inline void model_let_go(model_thread *t, int graph, uint64_t begun) {
  model_world *w = t->world;
  int pool = t->graph_pool[graph];
  if (pool >= 0 && !--w->holders[pool])
    for (size_t k = 0; k < w->count; k++)
      if (w->intervals[k].pool == pool && !w->intervals[k].live)
        model_end_scratch(&w->intervals[k]);
  t->graph_pool[graph] = -1;
  model_unkeep(t, graph, begun);
}


static inline void model_begin(model_thread *t) {
  model_world *w = t->world;
  int graph = (int)model_byte(t) % MODEL_GRAPHS;
  int pool = (int)model_byte(t) % MODEL_POOLS;
  int stream = (int)model_byte(t) % MODEL_STREAMS;
  if (t->capturing >= 0 || t->graph_pool[graph] >= 0)
    return;
  cgl_graph_desc desc = {.pool = w->pools[pool]};
  if (cgl_graph_set_desc(t->graphs[graph], &desc) ||
      cgl_graph_capture_begin(t->graphs[graph], t->streams[stream]))
    return;
  pthread_mutex_lock(&w->lock);
  w->holders[pool]++;
  for (size_t k = 0; k < w->count; k++)
    if (w->intervals[k].thread == t->index)
      memset(w->intervals[k].used, 0, sizeof w->intervals[k].used);
  pthread_mutex_unlock(&w->lock);
  t->graph_pool[graph] = pool;
  t->capturing = graph;
  t->origin = stream;
  t->in[stream] = true;
  t->serial = t->graphs[graph]->serial;
  memset(t->issued, 0, sizeof t->issued);
  memset(t->known, 0, sizeof t->known);
}


/* One stream waits for another: a fork, or a join. */
static inline void model_order(model_thread *t, int later, int earlier) {
  if (t->capturing < 0 || later == earlier || !t->in[earlier] ||
      cgl_stream_wait_stream(t->streams[later], t->streams[earlier]))
    return;
  t->in[later] = true;
  for (int s = 0; s < MODEL_STREAMS; s++)
    if (t->known[later][s] < t->known[earlier][s])
      t->known[later][s] = t->known[earlier][s];
  if (t->known[later][earlier] < t->issued[earlier])
    t->known[later][earlier] = t->issued[earlier];
}


static inline void model_end(model_thread *t, bool abandon) {
  model_world *w = t->world;
  int graph = t->capturing;
  if (graph < 0)
    return;
  for (int s = 0; s < MODEL_STREAMS && !abandon; s++)
    if (s != t->origin && t->in[s])
      model_order(t, t->origin, s);
  memset(t->in, 0, sizeof t->in);
  t->capturing = -1;
  pthread_mutex_lock(&w->lock);
  uint64_t begun = model_begun(w);
  if (abandon)
    cgl_graph_capture_abandon(t->graphs[graph]);
  else if (cgl_graph_capture_end(t->graphs[graph]))
    abandon = true;
  if (abandon)
    model_let_go(t, graph, begun);
  pthread_mutex_unlock(&w->lock);
}


static inline void model_reset(model_thread *t) {
  int graph = (int)model_byte(t) % MODEL_GRAPHS;
  if (graph == t->capturing || t->graph_pool[graph] < 0)
    return;
  pthread_mutex_lock(&t->world->lock);
  uint64_t begun = model_begun(t->world);
  cgl_graph_reset(t->graphs[graph]);
  model_let_go(t, graph, begun);
  pthread_mutex_unlock(&t->world->lock);
}


static inline void model_replay(model_thread *t) {
  int graph = (int)model_byte(t) % MODEL_GRAPHS;
  int stream = (int)model_byte(t) % MODEL_STREAMS;
  if (graph != t->capturing && t->graph_pool[graph] >= 0 && !t->in[stream])
    cgl_graph_replay(t->graphs[graph], t->streams[stream], 1);
}


/* ---- looking
 * -------------------------------------------------------------------------- */

/* Every pool is valid, and what work may still use has memory. */
static inline void model_look(model_thread *t, bool alone) {
  model_world *w = t->world;
  for (int p = 0; p < MODEL_POOLS; p++) {
    pthread_mutex_lock(&w->pools[p]->lock);
    if (!cgl_pool_is_valid(w->pools[p]))
      model_wrong(w, "pool %d is not valid", p);
    pthread_mutex_unlock(&w->pools[p]->lock);
    cgl_snapshot *snapshot = NULL;
    if (!alone || cgl_pool_snapshot(w->pools[p], &snapshot))
      continue;
    for (size_t b = 0; b < snapshot->nblocks; b++) {
      const cgl_block_info *block = &snapshot->blocks[b];
      for (size_t k = 0; k < w->count; k++) {
        const interval *i = &w->intervals[k];
        bool over = i->pool == p && i->from < block->address + block->bytes &&
                    block->address < i->to;
        bool waited = !i->live && !i->captured && model_is_waited(w, i);
        if (over && block->state == CGL_BLOCK_unmapped && !waited)
          model_wrong(w, "memory in use was unmapped");
        if (over && i->live && block->state != CGL_BLOCK_live)
          model_wrong(w, "a live block is %s",
                      cgl_block_state_name(block->state));
      }
    }
    cgl_snapshot_free(snapshot);
  }
}


static inline void model_step(model_thread *t) {
  unsigned op = model_byte(t);
  int pool = (int)(op / 32) % MODEL_POOLS, a, b;
  switch (op % 32) {
  default:
    model_alloc(t);
    break;
  case 12:
  case 13:
  case 14:
  case 15:
  case 16:
  case 17:
  case 18:
  case 19:
  case 20:
  case 21:
    model_free(t);
    break;
  case 22:
  case 23:
  case 24:
    model_use(t);
    break;
  case 25:
    if (op >= 224)
      model_wait(t);
    break;
  case 26:
    if (op >= 224)
      cgl_pool_trim(t->world->pools[pool], NULL);
    break;
  case 27:
    model_begin(t);
    break;
  case 28:
    a = (int)model_byte(t) % MODEL_STREAMS;
    b = (int)model_byte(t) % MODEL_STREAMS;
    model_order(t, a, b);
    break;
  case 29:
    model_end(t, op < 64);
    break;
  case 30:
    model_reset(t);
    break;
  case 31:
    model_replay(t);
    break;
  }
}


/* ---- worlds and threads
 * ---------------------------------------------------------------- */

static inline cgl_status model_open(model_world *w) {
  static const cgl_pool_desc descs[MODEL_POOLS] = {
      {0}, {.max_bytes = 96u << 20}, {.no_split = true}};
  memset(w, 0, sizeof *w);
  pthread_mutex_init(&w->lock, NULL);
  cgl_status status = cgl_context_open(NULL, &w->context);
  for (int p = 0; p < MODEL_POOLS && !status; p++)
    status = cgl_pool_create(w->context, &descs[p], &w->pools[p]);
  return status;
}


static inline void model_close(model_world *w) {
  for (int p = 0; p < MODEL_POOLS; p++)
    cgl_pool_release(w->pools[p]);
  cgl_context_release(w->context);
  pthread_mutex_destroy(&w->lock);
  free(w->intervals);
}


static inline cgl_status model_enter(model_thread *t, model_world *w, int index,
                                     model_source *source) {
  memset(t, 0, sizeof *t);
  t->world = w;
  t->index = index;
  t->source = source;
  t->capturing = -1;
  cgl_status status = CGL_OK;
  for (int s = 0; s < MODEL_STREAMS && !status; s++)
    status = cgl_stream_create(w->context, 0, &t->streams[s]);
  for (int g = 0; g < MODEL_GRAPHS && !status; g++) {
    t->graph_pool[g] = -1;
    status = cgl_graph_create(w->context, NULL, &t->graphs[g]);
  }
  return status;
}


static inline void model_leave(model_thread *t) {
  model_world *w = t->world;
  model_end(t, true);
  for (int g = 0; g < MODEL_GRAPHS; g++) {
    pthread_mutex_lock(&w->lock);
    uint64_t begun = model_begun(w);
    cgl_graph_release(t->graphs[g]);
    model_let_go(t, g, begun);
    pthread_mutex_unlock(&w->lock);
  }
  for (;;) {
    pthread_mutex_lock(&w->lock);
    interval *i = model_pick(t, 0);
    cgl_buffer *buffer = i ? i->buffer : NULL;
    if (i)
      model_freed(w, i, 0, model_begun(w));
    pthread_mutex_unlock(&w->lock);
    if (!buffer)
      break;
    cgl_buffer_release(buffer);
  }
  for (int s = 0; s < MODEL_STREAMS; s++)
    cgl_stream_release(t->streams[s]);
}

#endif
