/* Graphs that share a pool: never two at once, and none that reads what is
   not there.
   Idea: graphs of one pool use the same memory one after the other.  Replays
   of a shared pool take turns, each with a number; a replay on another stream
   than the last is made to wait for it.  What a capture uses of its pool is
   noted per allocation, because memory is reused and an allocation is not: a
   graph that reads an allocation of another capture is replayed only when the
   latest turn that wrote there was a producer's.
   Glossary.  use: an allocation as one capture uses it.  share: a captured
   graph's part in its pool.  cell: an allocation that graphs or the script
   use across captures; its producers wrote to it, its spoilers to the same
   memory under another allocation.
   Invariants: shares, cells and turns change under `turns` only, but for the
   turns of a private pool that nobody else was given: its one graph takes
   none, and only stamps; a graph stamps its turn after the launch.  Threads may
   replay graphs of one pool at once: `turns` puts the replays one after the
   other, and nothing else is locked. */
#ifndef CGL_CORE_SHARE_H
#define CGL_CORE_SHARE_H

#include "core/record/record.h"
#include "core/memory/memory.h"

typedef struct cgl_cell cgl_cell;

struct cgl_share {
  atomic_int references; /* the graph's, and of graphs it is a child of */
  cgl_pool *pool;        /* retained */
  cgl_site begun;        /* the capture */
  uint64_t turn, filled; /* of the last replay; of the last one with all that
                            writes to the pool's memory; 0: none */
  uint64_t number;       /* in the order in which the pool's were made */
  bool undone;           /* the pool took its memory back: no more replays */
  cgl_site undone_at;
  cgl_use *uses;
  size_t nuses;
  struct cgl_input {
    cgl_cell *cell;
    cgl_site site; /* that reads it */
    bool updates;  /* by a kernel that may also only write it */
  } * inputs;
  size_t ninputs;
  bool spoils_itself; /* overwrites what it reads: no two replays in a row */
  cgl_share *next;    /* in its pool */
  /* It and the graphs of other pools inside it, by the pools' addresses: all
     take their turn with each replay. */
  cgl_share **group;
  size_t ngroup, group_size;
};

/* What a pool knows of its replays. */
struct cgl_sharing {
  pthread_mutex_t turns; /* guards everything below */
  bool strict;           /* refuses where it would make a replay wait */
  uint64_t turn, made;   /* replays and shares so far */
  cgl_share *shares;
  cgl_cell *cells;
  struct cgl_clock *last; /* retained: the stream of the last replay, */
  uint64_t tick, wait;    /* when, the wait of the host that covers it, */
  uint64_t exec;          /* which executable, and its graph's capture */
  cgl_site begun;
  atomic_uint_fast64_t ordered, refused; /* read without `turns` */
  atomic_size_t executables; /* bytes, see cgl_pool_stats; without `turns` */
  uint64_t id;               /* the pool's; never changes */
  bool said;                 /* that replays are made to wait */
};

/* NULL without memory; the pool is its only owner. */
cgl_sharing *cgl_sharing_new(void);
void cgl_sharing_free(cgl_sharing *sharing);
/* Fills in what the statistics say of replays. */
void cgl_sharing_count(cgl_sharing *sharing, cgl_pool_stats *stats);
/* The pool has got a second user. */
void cgl_sharing_begin(cgl_pool *pool);

/* How many captures into the pool have ended so far. */
uint64_t cgl_sharing_made(cgl_pool *pool);
/* Takes back the memory of those that ended after the first `made`: their
   graphs are not replayed again; and forgets the buffers of blocks above
   `number`. */
void cgl_sharing_undo(cgl_pool *pool, uint64_t made, uint64_t number);

/* ---- captures */

/* The operation just noted uses the recording's `touched` buffers. */
void cgl_share_note(cgl_graph *graph, const cgl_op *op);
/* Before `graph` becomes `count` nodes of the capture `parent`: refuses where
   both would use the same memory at once. */
cgl_status cgl_share_check_child(cgl_graph *graph, cgl_stream *stream,
                                 const char *operation);
/* After it did: the parent does all that the child does. */
void cgl_share_note_child(cgl_graph *graph, cgl_graph *parent);
/* The capture ended: makes the graph's share of what was noted. */
cgl_status cgl_share_make(cgl_graph *graph, const char *operation);
void cgl_share_release(cgl_share *share); /* NULL is fine */

/* ---- replays */

/* Whether a replay takes a turn: one branch for a private pool. */
static inline bool cgl_share_takes_turns(const cgl_graph *graph) {
  return atomic_load_explicit(&graph->pool->shared, memory_order_relaxed) ||
         (graph->extra && graph->share->ngroup > 1);
}
/* Takes the turn for `count` replays on `stream`, or refuses them and leaves
   all as it was.  cuStreamWaitEvent */
cgl_status cgl_share_begin(cgl_graph *graph, cgl_stream *stream, uint64_t count,
                           const char *operation);
/* The first replay of a private pool on this stream, or after another: should
   another graph get the pool, it must know.  Later ones are covered by what the
   stream has done by then. */
void cgl_share_stamp(cgl_graph *graph, cgl_stream *stream);
/* Ends the turn; `launched`: something reached the device. */
void cgl_share_end(cgl_graph *graph, cgl_stream *stream, bool launched);

/* ---- eager work */

/* Some pool of the process is shared. */
extern atomic_bool cgl_sharing_any;

/* The allocation that eager work has to tell of: of a capture; else NULL. */
static inline cgl_buffer *cgl_share_watched(cgl_buffer *buffer) {
  buffer = buffer->base ? buffer->base : buffer;
  return buffer->born && buffer->block ? buffer : NULL;
}

/* Refuses to read what a replay has overwritten. */
cgl_status cgl_share_check_read(cgl_buffer *buffer, const char *operation);
/* The script wrote to it; `watched` as above. */
void cgl_share_note_write(cgl_buffer *watched);
static inline void cgl_share_wrote(cgl_buffer *buffer) {
  cgl_buffer *watched = cgl_share_watched(buffer);
  if (watched)
    cgl_share_note_write(watched);
}
/* The buffer dies. */
void cgl_share_forget(cgl_buffer *buffer);

#endif
