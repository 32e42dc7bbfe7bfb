/* Operations on pools, and what the model notes of them. */
#include "core/pool/pool_model.h"
#include "core/graph/graph.h"

#include <string.h>


static unsigned take_byte(model_thread *t) {
  uint8_t byte = 0;
  if (!t->ended && !t->source->next(t->source, &byte))
    t->ended = true;
  return byte;
}


static int take_stream(model_thread *t) {
  return (int)take_byte(t) % MODEL_STREAMS;
}


/* ---- memory ---- */

static size_t size_of(unsigned byte) {
  static const size_t sizes[] = {1,      500,     3000,    40000,
                                 300000, 1 << 20, 3 << 20, 9 << 20};
  return sizes[byte % 8] + 512 * (size_t)(byte / 8);
}


static int pool_of(const model_world *w, const cgl_block *block) {
  int pool = 0;
  while (pool < MODEL_POOLS && w->pools[pool] != block->segment->pool)
    pool++;
  return pool;
}


static void check_shape(model_world *w, const interval *new, size_t bytes) {
  if (new->pool == MODEL_POOLS)
    model_wrong(w, "a block of no pool");
  else if (new->to - new->from < bytes || new->from % MODEL_ALIGNMENT)
    model_wrong(w, "a block of %zu bytes for %zu",
                (size_t)(new->to - new->from), bytes);
  else if (new->pool ==
           MODEL_WHOLE &&new->from % w->pools[MODEL_WHOLE]->granularity)
    model_wrong(w, "a block that is not to be split shares its page");
}


/* Enters what a pool handed out; `stream` -1: for the host. */
static void enter_block(model_thread *t, interval *new, const cgl_block *block,
                        int stream, size_t bytes) {
  model_world *w = t->world;
  pthread_mutex_lock(&w->lock);
  new->pool = pool_of(w, block);
  new->from = block->segment->base + block->offset;
  new->to = new->from + block->bytes;
  new->number = block->number;
  new->thread = t->index;
  new->live = true;
  check_shape(w, new, bytes);
  model_check_new(t, new, stream < 0 ? 0 : stream);
  interval *i = model_add(w, new);
  if (stream >= 0 && !t->in[stream])
    model_note_use(w, i, model_clock_of(t, stream));
  w->blocks++;
  w->live[t->index]++;
  pthread_mutex_unlock(&w->lock);
}


static bool is_full(model_thread *t) {
  model_world *w = t->world;
  pthread_mutex_lock(&w->lock);
  bool full = w->live[t->index] >= MODEL_LIVE;
  pthread_mutex_unlock(&w->lock);
  return full;
}


static void step_alloc(model_thread *t) {
  model_world *w = t->world;
  int pool = (int)take_byte(t) % (MODEL_DEFAULT + 1);
  int stream = take_stream(t);
  size_t bytes = size_of(take_byte(t));
  cgl_buffer *buffer = NULL;
  if (is_full(t) || cgl_buffer_create(t->streams[stream], w->pools[pool],
                                      CGL_TYPE_uint8, bytes, &buffer))
    return;
  interval new = {.buffer = buffer};
  new.captured = t->in[stream] && t->graph_pool[t->capturing] == pool;
  enter_block(t, &new, buffer->block, stream, bytes);
}


/* The host uses it without asking a stream. */
static void step_pinned(model_thread *t) {
  size_t bytes = size_of(take_byte(t));
  cgl_pinned *pinned = NULL;
  if (is_full(t) ||
      cgl_pinned_create(t->world->context, CGL_TYPE_uint8, bytes, &pinned))
    return;
  interval new = {.pinned = pinned, .unordered = true};
  enter_block(t, &new, pinned->block, -1, bytes);
}


/* The thread's n-th buffer or pinned memory, counted round; NULL without. */
static interval *pick(model_thread *t, unsigned n) {
  model_world *w = t->world;
  for (size_t k = 0; w->count && k < w->count; k++) {
    interval *i = &w->intervals[(n + k) % w->count];
    if (i->live && (i->buffer || i->pinned) && i->thread == t->index)
      return i;
  }
  return NULL;
}


/* Notes that the picked one is released; what to release. */
static cgl_buffer *give_up(model_thread *t, interval *i, cgl_pinned **pinned) {
  model_world *w = t->world;
  cgl_buffer *buffer = i ? i->buffer : NULL;
  *pinned = i ? i->pinned : NULL;
  w->live[t->index] -= i != NULL;
  bool into = i && t->capturing >= 0 && t->graph_pool[t->capturing] == i->pool;
  if (i && i->kept)
    i->buffer = NULL;
  else if (i)
    model_freed(t, i, into ? t->serial : 0, w->worked);
  return buffer;
}


static bool release_one(model_thread *t, unsigned n) {
  model_world *w = t->world;
  cgl_pinned *pinned;
  pthread_mutex_lock(&w->lock);
  cgl_buffer *buffer = give_up(t, pick(t, n), &pinned);
  pthread_mutex_unlock(&w->lock);
  cgl_buffer_release(buffer);
  cgl_pinned_release(pinned);
  return buffer || pinned;
}


/* Another thread may release it. */
static void step_hand_over(model_thread *t) {
  model_world *w = t->world;
  unsigned n = take_byte(t) * 3;
  int to = (int)take_byte(t) % MODEL_THREADS;
  pthread_mutex_lock(&w->lock);
  interval *i = pick(t, n);
  if (i && !i->kept && !i->captured && w->running[to] &&
      w->live[to] < MODEL_LIVE) {
    i->thread = to;
    w->live[t->index]--;
    w->live[to]++;
  }
  pthread_mutex_unlock(&w->lock);
}


/* Work of a stream on a buffer: real in a capture, else only said. */
static void step_use(model_thread *t) {
  model_world *w = t->world;
  unsigned n = take_byte(t) * 5;
  int stream = take_stream(t);
  unsigned char value = (unsigned char)n;
  pthread_mutex_lock(&w->lock);
  interval *i = pick(t, n);
  cgl_buffer *buffer = i ? i->buffer : NULL;
  if (buffer && !t->in[stream]) {
    cgl_buffer_touch(buffer, t->streams[stream]);
    model_note_use(w, i, model_clock_of(t, stream));
  } else if (buffer && (buffer->count < 100000 || n % 4 == 0)) {
    bool own = i->captured && t->graph_pool[t->capturing] == i->pool;
    if (cgl_buffer_fill(buffer, t->streams[stream], &value)) {
      own = false;
    } else if (own) {
      i->used[stream] = ++t->issued[stream];
    } else {
      i->kept |= 1u << t->capturing;
      i->unordered = true;
    }
  }
  pthread_mutex_unlock(&w->lock);
}


/* Whoever set the limit trims.  Nobody's lock is held. */
static void make_room(void *user, cgl_pool *pool, size_t bytes, size_t wanted) {
  model_world *w = user;
  (void)bytes;
  (void)wanted;
  atomic_fetch_add(&w->asked, 1);
  cgl_pool_trim(pool, NULL);
}


static void step_limit(model_thread *t) {
  model_world *w = t->world;
  size_t bytes = (size_t)take_byte(t) << 18;
  cgl_pool_set_limit(w->pools[MODEL_SOFT], bytes, bytes ? make_room : NULL, w);
}


/* ---- waits and orders outside captures ---- */

static void step_wait(model_thread *t) {
  cgl_context_synchronize(t->world->context);
  pthread_mutex_lock(&t->world->lock);
  model_forget(t->world);
  pthread_mutex_unlock(&t->world->lock);
}


static void step_record(model_thread *t) {
  model_world *w = t->world;
  int e = (int)take_byte(t) % MODEL_EVENTS, stream = take_stream(t);
  if (t->in[stream])
    return;
  pthread_mutex_lock(&w->lock);
  if (!cgl_event_record(w->events[e].event, t->streams[stream]))
    w->events[e].known = model_vector(w, model_clock_of(t, stream));
  pthread_mutex_unlock(&w->lock);
}


static void step_wait_event(model_thread *t) {
  model_world *w = t->world;
  int e = (int)take_byte(t) % MODEL_EVENTS, stream = take_stream(t);
  if (t->in[stream])
    return;
  pthread_mutex_lock(&w->lock);
  if (!cgl_stream_wait_event(t->streams[stream], w->events[e].event))
    model_merge(&w->known[model_clock_of(t, stream)], &w->events[e].known);
  pthread_mutex_unlock(&w->lock);
}


/* The host waits for an event or a stream, or finds that one is done. */
static void step_host_wait(model_thread *t) {
  model_world *w = t->world;
  unsigned how = take_byte(t), n = take_byte(t);
  int e = (int)n % MODEL_EVENTS, stream = (int)n % MODEL_STREAMS;
  bool done = true;
  cgl_status status;
  pthread_mutex_lock(&w->lock);
  model_clock before =
      how % 2 ? w->events[e].known : model_vector(w, model_clock_of(t, stream));
  if (how % 4 == 0)
    status = cgl_stream_synchronize(t->streams[stream]);
  else if (how % 4 == 1)
    status = cgl_event_synchronize(w->events[e].event);
  else if (how % 4 == 2)
    status = cgl_stream_query(t->streams[stream], &done);
  else
    status = cgl_event_query(w->events[e].event, &done);
  if (!status && done)
    model_merge(&w->done, &before);
  pthread_mutex_unlock(&w->lock);
}


static void order_eagerly(model_thread *t, int later, int earlier) {
  model_world *w = t->world;
  pthread_mutex_lock(&w->lock);
  model_clock before = model_vector(w, model_clock_of(t, earlier));
  if (!cgl_stream_wait_stream(t->streams[later], t->streams[earlier]))
    model_merge(&w->known[model_clock_of(t, later)], &before);
  pthread_mutex_unlock(&w->lock);
}


/* ---- checkpoints ---- */

static void make_checkpoint(model_thread *t, int slot, int pool) {
  cgl_pool *of = t->world->pools[pool];
  if (t->checkpoints[slot].checkpoint ||
      cgl_pool_checkpoint(of, &t->checkpoints[slot].checkpoint))
    return;
  t->checkpoints[slot].pool = pool;
  t->checkpoints[slot].number = of->stats.allocations;
}


static void release_checkpoint(model_thread *t, int slot) {
  model_world *w = t->world;
  cgl_checkpoint *checkpoint = t->checkpoints[slot].checkpoint;
  if (!checkpoint)
    return;
  uint64_t worked = w->worked;
  t->checkpoints[slot].checkpoint = NULL;
  for (size_t k = 0; k < w->count; k++) {
    interval *i = &w->intervals[k];
    if (i->live && i->dropped && i->pool == t->checkpoints[slot].pool)
      model_freed(t, i, 0, worked);
  }
  cgl_checkpoint_release(checkpoint);
}


/* What came since is released; what a graph keeps stays until it dies. */
static void restore(model_thread *t, int slot) {
  model_world *w = t->world;
  cgl_checkpoint *checkpoint = t->checkpoints[slot].checkpoint;
  int pool = t->checkpoints[slot].pool;
  if (!checkpoint || (t->capturing >= 0 && t->graph_pool[t->capturing] == pool))
    return;
  cgl_buffer *taken[MODEL_LIVE];
  size_t count = 0;
  for (size_t k = 0; k < w->count; k++) {
    interval *i = &w->intervals[k];
    cgl_pinned *none;
    if (i->live && i->buffer && i->pool == pool &&
        i->number > t->checkpoints[slot].number)
      taken[count++] = give_up(t, i, &none);
  }
  if (cgl_pool_restore(w->pools[pool], checkpoint))
    model_wrong(w, "a pool was not restored");
  while (count)
    cgl_buffer_release(taken[--count]);
}


static void step_checkpoint(model_thread *t) {
  unsigned how = take_byte(t);
  int slot = (int)(how / 4) % MODEL_CHECKPOINTS;
  int pool = (int)take_byte(t) % (MODEL_DEFAULT + 1);
  if (!t->alone)
    return; /* a restored pool takes back what other threads use */
  if (how % 4 < 2)
    make_checkpoint(t, slot, pool);
  else if (how % 4 == 2)
    restore(t, slot);
  else
    release_checkpoint(t, slot);
}


/* ---- captures ---- */

static void step_begin(model_thread *t) {
  model_world *w = t->world;
  int graph = (int)take_byte(t) % MODEL_GRAPHS;
  int pool = (int)take_byte(t) % (MODEL_DEFAULT + 1);
  int stream = take_stream(t);
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
  t->serial = t->graphs[graph]->capture.underway.serial;
  memset(t->issued, 0, sizeof t->issued);
  memset(t->known, 0, sizeof t->known);
}


/* One stream waits for another: in a capture a fork, or a join. */
static void order(model_thread *t, int later, int earlier) {
  if (later == earlier)
    return;
  if (!t->in[earlier] && !t->in[later])
    order_eagerly(t, later, earlier);
  if (!t->in[earlier] ||
      cgl_stream_wait_stream(t->streams[later], t->streams[earlier]))
    return;
  t->in[later] = true;
  for (int s = 0; s < MODEL_STREAMS; s++)
    if (t->known[later][s] < t->known[earlier][s])
      t->known[later][s] = t->known[earlier][s];
  if (t->known[later][earlier] < t->issued[earlier])
    t->known[later][earlier] = t->issued[earlier];
}


static void end(model_thread *t, bool abandon) {
  model_world *w = t->world;
  int graph = t->capturing;
  if (graph < 0)
    return;
  for (int s = 0; s < MODEL_STREAMS && !abandon; s++)
    if (s != t->origin && t->in[s])
      order(t, t->origin, s);
  memset(t->in, 0, sizeof t->in);
  t->capturing = -1;
  pthread_mutex_lock(&w->lock);
  uint64_t worked = w->worked;
  if (abandon)
    cgl_graph_capture_abandon(t->graphs[graph]);
  else if (cgl_graph_capture_end(t->graphs[graph]))
    abandon = true;
  if (abandon)
    model_let_go(t, graph, worked);
  pthread_mutex_unlock(&w->lock);
}


static void step_reset(model_thread *t) {
  int graph = (int)take_byte(t) % MODEL_GRAPHS;
  if (graph == t->capturing || t->graph_pool[graph] < 0)
    return;
  pthread_mutex_lock(&t->world->lock);
  uint64_t worked = t->world->worked;
  cgl_graph_reset(t->graphs[graph]);
  model_let_go(t, graph, worked);
  pthread_mutex_unlock(&t->world->lock);
}


/* A replay may be made to wait for the last one of its pool, and of those whose
   buffers it uses, or find it done: the pools' counts of waits and that one's
   clock tell which.  The first of another executable waits in a private pool,
   and is not counted. */
static void replay(model_thread *t, int graph, int stream) {
  model_world *w = t->world;
  int own = t->graph_pool[graph], clock = model_clock_of(t, stream);
  uint64_t worked = model_work(w);
  const bool waits = t->graphs[graph]->attend & CGL_ATTEND_OLDER &&
                     !atomic_load(&w->pools[own]->sharing.shared);
  uint64_t ordered[MODEL_POOLS], done[MODEL_POOLS];
  model_clock before[MODEL_POOLS];
  for (int p = 0; p < MODEL_POOLS; p++) {
    int last = w->last[p];
    ordered[p] = atomic_load(&w->pools[p]->sharing.ordered);
    if (last >= 0) {
      done[p] = cgl_clock_done(w->clocks[last]);
      before[p] = model_vector(w, last);
    }
  }
  if (cgl_graph_replay(t->graphs[graph], t->streams[stream], 1))
    return;
  for (int p = 0; p < MODEL_POOLS; p++) {
    const cgl_sharing *sharing = &w->pools[p]->sharing;
    int last = w->last[p];
    if (p != own && sharing->exec != t->graphs[graph]->exec_number)
      continue;
    w->replayed[p] = worked;
    w->last[p] = clock;
    if (last < 0)
      continue;
    if (atomic_load(&sharing->ordered) > ordered[p] || (p == own && waits))
      model_merge(&w->known[clock], &before[p]);
    if (cgl_clock_done(w->clocks[last]) > done[p])
      model_merge(&w->done, &before[p]);
  }
}


static void step_replay(model_thread *t) {
  int graph = (int)take_byte(t) % MODEL_GRAPHS;
  int stream = take_stream(t);
  if (graph == t->capturing || t->graph_pool[graph] < 0 || t->in[stream])
    return;
  pthread_mutex_lock(&t->world->lock);
  replay(t, graph, stream);
  pthread_mutex_unlock(&t->world->lock);
}


/* ---- all of them ---- */

static void step_seldom(model_thread *t, unsigned which) {
  switch (which) {
  case 0:
  case 7:
    step_record(t);
    break;
  case 1:
  case 8:
  case 9:
    step_wait_event(t);
    break;
  case 2:
  case 10:
    step_host_wait(t);
    break;
  case 3:
  case 11:
    step_pinned(t);
    break;
  case 4:
  case 12:
  case 13:
    step_checkpoint(t);
    break;
  case 5:
    step_limit(t);
    break;
  default:
    step_hand_over(t);
    break;
  }
}


void model_step(model_thread *t) {
  unsigned op = take_byte(t), part = op / 32;
  int a, b;
  switch (op % 32) {
  default:
    step_alloc(t);
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
    release_one(t, take_byte(t) * 7);
    break;
  case 22:
  case 23:
  case 24:
    step_use(t);
    break;
  case 25:
    if (part == 7)
      step_wait(t);
    else
      step_seldom(t, part);
    break;
  case 26:
    if (part == 7)
      cgl_pool_trim(t->world->pools[take_byte(t) % MODEL_POOLS], NULL);
    else
      step_seldom(t, 7 + part);
    break;
  case 27:
    step_begin(t);
    break;
  case 28:
    a = take_stream(t);
    b = take_stream(t);
    order(t, a, b);
    break;
  case 29:
    end(t, op < 64);
    break;
  case 30:
    step_reset(t);
    break;
  case 31:
    step_replay(t);
    break;
  }
}


/* ---- threads ---- */

cgl_status model_enter(model_thread *t, model_world *w, int index, bool alone,
                       model_source *source) {
  memset(t, 0, sizeof *t);
  t->world = w;
  t->index = index;
  t->alone = alone;
  t->source = source;
  t->capturing = -1;
  cgl_status status = CGL_OK;
  for (int s = 0; s < MODEL_STREAMS && !status; s++)
    status = cgl_stream_create(w->context, 0, &t->streams[s]);
  for (int g = 0; g < MODEL_GRAPHS && !status; g++) {
    t->graph_pool[g] = -1;
    status = cgl_graph_create(w->context, NULL, &t->graphs[g]);
  }
  pthread_mutex_lock(&w->lock);
  for (int s = 0; s < MODEL_STREAMS && !status; s++)
    w->clocks[model_clock_of(t, s)] = cgl_clock_retain(t->streams[s]->clock);
  w->running[index] = true;
  pthread_mutex_unlock(&w->lock);
  return status;
}


void model_leave(model_thread *t) {
  model_world *w = t->world;
  pthread_mutex_lock(&w->lock);
  w->running[t->index] = false;
  pthread_mutex_unlock(&w->lock);
  end(t, true);
  for (int c = 0; c < MODEL_CHECKPOINTS; c++)
    release_checkpoint(t, c);
  for (int g = 0; g < MODEL_GRAPHS; g++) {
    pthread_mutex_lock(&w->lock);
    uint64_t worked = w->worked;
    cgl_graph_release(t->graphs[g]);
    model_let_go(t, g, worked);
    pthread_mutex_unlock(&w->lock);
  }
  while (release_one(t, 0))
    ;
  for (int s = 0; s < MODEL_STREAMS; s++)
    cgl_stream_release(t->streams[s]);
}
