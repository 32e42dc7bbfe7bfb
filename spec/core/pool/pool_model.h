/* A model of pools, run beside them: the random test and the fuzzer feed it
   bytes, which it reads as operations (pool_model_steps.c).
   The model: a list of intervals that are live, and of intervals that were
   freed with who used them last.  A block that a pool hands out may overlap no
   live interval, and a freed one only when its use is over for the one who
   asks: the device was waited for since; or the streams that used it are done,
   as the host knows, or come before the asking one, which the model knows from
   vectors of counts (pool_model.c); or, in a capture, its own order proves it;
   and what captures dropped goes to captures only while a graph holds the
   pool.  The model knows at least what the pool may know, so it reads what
   allows a use after the pool was asked, and what forbids one before.
   Several threads may run models of their own on the same pools: what they
   share is under a lock. */
#ifndef CGL_SPEC_POOL_MODEL_H
#define CGL_SPEC_POOL_MODEL_H

#include "cgraphlua.h"
#include "core/record/record.h"
#include "core/memory/memory.h"

enum {
  MODEL_WHOLE = 2, /* the pool that does not split */
  MODEL_LENDER,    /* that lends */
  MODEL_ENGINE,    /* of an allocator */
  MODEL_SOFT,      /* that asks first */
  MODEL_OWN,       /* pools of the model itself */
  MODEL_DEFAULT = MODEL_OWN,
  MODEL_PINNED,
  MODEL_POOLS,
  MODEL_THREADS = 4,
  MODEL_STREAMS = 4, /* of each thread */
  MODEL_CLOCKS = MODEL_THREADS * MODEL_STREAMS,
  MODEL_EVENTS = 4,      /* of all threads */
  MODEL_GRAPHS = 4,      /* of each thread */
  MODEL_CHECKPOINTS = 3, /* of a thread that is alone */
  MODEL_LIVE = 96,       /* buffers of each thread */
  MODEL_ALIGNMENT = 256
};

/* Where bytes come from: `next` is false at the end. */
typedef struct model_source {
  bool (*next)(struct model_source *source, uint8_t *byte);
  void *user;
} model_source;

/* How much of every stream's own work comes before something. */
typedef struct model_clock {
  unsigned count[MODEL_CLOCKS];
} model_clock;

/* An interval of a pool's memory. */
typedef struct interval {
  uint64_t from, to;
  int pool;
  int thread;
  bool live;
  bool unordered;     /* used by graphs or by the host: only waits count */
  bool captured;      /* allocated by a capture into the pool */
  bool ended;         /* was scratch, until the graphs were gone */
  bool dropped;       /* released, and held by a checkpoint */
  model_clock use;    /* each stream's last use outside captures */
  uint64_t freed;     /* the wait that covers the work before it was freed */
  uint64_t capture;   /* serial of the capture in which it was freed */
  uint64_t number;    /* of the allocation in its pool */
  unsigned kept;      /* graphs of the thread that keep it, a bit each */
  cgl_buffer *buffer; /* NULL: released, or pinned */
  cgl_pinned *pinned;
  /* of its thread's capture: each stream's operations that used it */
  unsigned used[MODEL_STREAMS];
} interval;

typedef struct model_world {
  cgl_context *context;
  cgl_pool *pools[MODEL_POOLS];
  pthread_mutex_t lock; /* guards everything below */
  interval *intervals;
  size_t count, size;
  int holders[MODEL_POOLS];       /* captures and graphs that hold the pool */
  uint64_t worked;                /* the wait that covers all work so far */
  uint64_t replayed[MODEL_POOLS]; /* the wait that covers the last replay */
  int last[MODEL_POOLS];          /* clock of that replay; -1: none */
  cgl_clock *clocks[MODEL_CLOCKS];
  model_clock known[MODEL_CLOCKS]; /* comes before the stream's next work */
  model_clock done;                /* the host waited for it */
  struct {
    cgl_event *event;
    model_clock known;
  } events[MODEL_EVENTS];
  bool running[MODEL_THREADS];
  size_t live[MODEL_THREADS]; /* buffers and pinned memory */
  char wrong[400];            /* what was found, or "" */
  uint64_t blocks;
  uint64_t reused; /* of them across streams, without a wait for the device */
  atomic_int engine_calls, engine_blocks, engine_ends, asked;
} model_world;

typedef struct model_thread {
  model_world *world;
  int index;
  bool alone;
  cgl_stream *streams[MODEL_STREAMS];
  cgl_graph *graphs[MODEL_GRAPHS];
  int graph_pool[MODEL_GRAPHS]; /* whose pool it holds, or -1 */
  int capturing;                /* graph, or -1 */
  int origin;                   /* stream */
  uint64_t serial;              /* of the capture */
  bool in[MODEL_STREAMS];       /* the capture */
  unsigned issued[MODEL_STREAMS];
  unsigned known[MODEL_STREAMS][MODEL_STREAMS]; /* of others' operations */
  struct {
    cgl_checkpoint *checkpoint;
    int pool;
    uint64_t number;
  } checkpoints[MODEL_CHECKPOINTS];
  model_source *source;
  bool ended;
} model_thread;

/* ---- pool_model.c ---- */

cgl_status model_open(model_world *w);
void model_close(model_world *w);
__attribute__((format(printf, 2, 3))) void model_wrong(model_world *w,
                                                       const char *format, ...);

/* Under the world's lock from here on. */
interval *model_add(model_world *w, const interval *added);
/* Work is being issued: sets w->worked and returns it.  Read before the pool is
   told: a wait that another thread begins in between covers less. */
uint64_t model_work(model_world *w);
static inline int model_clock_of(const model_thread *t, int stream) {
  return t->index * MODEL_STREAMS + stream;
}
/* All that is before the clock's next work, its own included. */
model_clock model_vector(const model_world *w, int clock);
/* `to` comes after what `from` does. */
void model_merge(model_clock *to, const model_clock *from);
/* The clock's stream works on the interval, outside captures. */
void model_note_use(model_world *w, interval *i, int clock);
/* A new block: it may overlap nothing that is in use.  What it covers of freed
   intervals is forgotten. */
void model_check_new(model_thread *t, const interval *new, int stream);
/* What was waited for tells nothing any more. */
void model_forget(model_world *w);
/* The interval is free, as far as the model knows, once wait `worked` has
   ended; unless a checkpoint of the thread holds it. */
void model_freed(model_thread *t, interval *i, uint64_t capture,
                 uint64_t worked);
/* The highest allocation of the pool that a checkpoint holds. */
uint64_t model_pin(const model_thread *t, int pool);
/* The graph no longer holds its pool; together with what makes it so. */
void model_let_go(model_thread *t, int graph, uint64_t worked);

/* Without the lock: every pool is valid, and what work may still use has
   memory; the latter when the thread is alone. */
void model_look(model_thread *t);

/* ---- pool_model_steps.c ---- */

cgl_status model_enter(model_thread *t, model_world *w, int index, bool alone,
                       model_source *source);
void model_step(model_thread *t);
void model_leave(model_thread *t);

#endif
