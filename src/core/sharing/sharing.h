/* Graphs that share a pool: never two at once, and none that reads what is not
   there.
   Idea: graphs of one pool use the same memory one after the other.  Replays of
   a shared pool are numbered in their order; a replay on another stream than
   the last is made to wait for it.  What a capture uses of its pool is summed
   up per allocation, because memory is reused and an allocation is not: a graph
   that reads an allocation of another capture is replayed only when the latest
   replay that wrote there was a producer's.
   Glossary.  use: an allocation as one capture uses it.  share: the summary of
   a captured graph's recording.  cell: an allocation that graphs or the script
   use across captures; producers write to it, overwriters to the same memory
   under another allocation.
   Invariants: shares, cells and the replay order change under `lock` only, but
   for the order of a private pool: its one graph takes no lock, and only
   stamps.  A graph stamps after the launch.  Threads may replay graphs of one
   pool at once: `lock` puts the replays one after the other. */
#ifndef CGL_SHARING_SHARING_H
#define CGL_SHARING_SHARING_H

#include "core/record/order.h"

typedef struct cgl_cell cgl_cell;
typedef struct cgl_sharing cgl_sharing;

typedef struct cgl_use {
  cgl_allocation memory;
  cgl_site read, wrote; /* the first operation that does, and the last */
  bool reads;           /* what other captures left there */
  bool updates;         /* as `reads`, by a kernel that may only write */
  bool writes;          /* anything */
  bool filled;          /* whole, by a copy or a fill */
  size_t first, last;   /* operations that use it */
} cgl_use;

typedef struct cgl_share {
  cgl_object object;    /* kept by the recording and those it is a body of */
  cgl_sharing *sharing; /* its owner is retained */
  cgl_site begun;       /* the capture */
  uint64_t replay;      /* number of the last replay, */
  uint64_t filled;      /* of the last with all that writes to the pool's
                           memory switched on; 0: none */
  uint64_t number;      /* in the order in which the pool's were made */
  bool undone;          /* the pool took its memory back: no more replays */
  cgl_site undone_at;
  cgl_use *uses;
  size_t nuses;
  struct cgl_input {
    cgl_cell *cell;
    cgl_site site; /* that reads it */
    bool updates;  /* by a kernel that may only write */
  } * inputs;
  size_t ninputs;
  bool overwrites_itself; /* no two replays in a row */
  struct cgl_share *next; /* in its pool */
  /* It and the graphs of other pools inside it, by the addresses of their
     sharings: each replay counts for all. */
  struct cgl_share **group;
  size_t ngroup;
} cgl_share;

/* What a pool knows of its replays. */
struct cgl_sharing {
  atomic_bool shared;   /* others than one graph may use the pool */
  cgl_object *owner;    /* borrowed: the pool */
  pthread_mutex_t lock; /* guards everything below */
  bool strict;          /* refuses where it would make a replay wait */
  uint64_t replay;      /* replays so far */
  cgl_share *shares;
  cgl_cell *cells;
  cgl_clock *last;     /* retained: the stream of the last replay, */
  uint64_t tick, wait; /* when, the wait of the host that covers it, */
  uint64_t exec;       /* which executable, and its graph's capture */
  cgl_site begun;
  /* Read without the lock; made: shares so far. */
  atomic_uint_fast64_t made, ordered, refused;
  bool said; /* that replays are made to wait */
};

void cgl_sharing_init(cgl_sharing *sharing, cgl_object *owner, bool strict);
void cgl_sharing_clear(cgl_sharing *sharing);
/* The pool has got a second user. */
void cgl_sharing_begin(cgl_sharing *sharing);
/* Takes back the memory of those that ended after the first `made`: their
   graphs are not replayed again; and forgets the buffers of blocks above
   `number`. */
void cgl_sharing_undo(cgl_sharing *sharing, uint64_t made, uint64_t number);

/* ---- captures ---- */

/* Before a graph becomes a node of the capture of `stream`: refuses where both
   would use the same memory at once. */
cgl_status cgl_share_check_child(const cgl_share *share, cgl_stream *stream,
                                 const char *operation);
/* The capture ended: sums up its recording, which keeps the share; the graph
   is `graph` for the driver.  cuGraphGetEdges */
cgl_status cgl_share_make(cgl_sharing *sharing, const cgl_capture *capture,
                          CUgraph graph, const char *operation);
/* The share of a captured graph's recording. */
static inline cgl_share *cgl_share_of(const cgl_recording *recording) {
  return (cgl_share *)recording->summary;
}

/* ---- replays ---- */

typedef struct cgl_replay {
  cgl_share *share;
  uint64_t exec;  /* number of the executable */
  bool unchecked; /* neither ordered nor refused */
  bool halted;    /* some operation that writes to the pool's memory is off */
} cgl_replay;

/* Orders `count` replays on `stream` after the last of the pool, or refuses
   them and leaves all as it was.  cuStreamWaitEvent */
cgl_status cgl_share_begin(const cgl_replay *replay, cgl_stream *stream,
                           uint64_t count, const char *operation);
/* Ends what begin began; `launched`: something reached the device. */
void cgl_share_end(const cgl_replay *replay, cgl_stream *stream, bool launched);
/* Notes that something of the share was launched.  A private pool needs it of
   the first replay on a stream only: should another graph get the pool, later
   replays are covered by what the stream has done by then. */
void cgl_share_stamp(const cgl_replay *replay, cgl_share *share,
                     cgl_stream *stream);

/* ---- eager work ---- */

/* Some pool of the process is shared. */
extern atomic_bool cgl_sharing_any;

/* Memory that a capture allocated, as eager work uses it. */
typedef struct cgl_shared_memory {
  cgl_sharing *sharing;
  const cgl_allocation *allocation;
  cgl_cell **cell; /* the buffer's own: NULL until the sharing knows it */
  uint64_t block;  /* number of its block */
} cgl_shared_memory;

/* Refuses to read what a replay has overwritten. */
cgl_status cgl_share_check_read(const cgl_shared_memory *memory,
                                const char *operation);
/* The script wrote to it. */
void cgl_share_note_write(const cgl_shared_memory *memory);
/* The buffer of a cell ends. */
void cgl_share_forget(cgl_sharing *sharing, cgl_cell *cell);

#endif
