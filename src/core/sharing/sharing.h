/* Graphs that share a pool: their replays run one after the other, and a
   graph never reads memory that another graph has overwritten.
   Idea: replays of a shared pool are numbered; a replay on another stream
   than the last is made to wait for it. The use that a capture makes of its
   pool is summed up per allocation, because memory is reused and an
   allocation is not: a graph that reads an allocation of another capture is
   replayed only when the last replay that wrote to this memory was that of a
   producer.
   Invariants: shares, cells and the replay order change under `lock` only;
   the one graph of a private pool takes no lock, and only stamps; a graph
   stamps after its launch.
   Glossary.
   shared: of a pool: more than one graph, or the script, may use it.
   private: of a pool: not shared.
   use: an allocation as one capture uses it.
   share: the summary of a captured graph's recording.
   group: a share and the shares of graphs of other pools inside its graph.
   cell: an allocation that is used across captures.
   producer: a share whose graph writes to a cell.
   overwriter: a share whose graph writes to the memory of a cell as another
   allocation.
   stamp: to note a launched replay as the last of the pool.
   undone: of a share: its pool took the memory back. */
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
  cgl_object object;    /* kept by the recording, and by shares whose group it
                           is in */
  cgl_sharing *sharing; /* its owner is retained */
  cgl_site begun;       /* of the capture */
  uint64_t replay;      /* number of the last replay; 0: none */
  uint64_t filled;      /* number of the last replay in which no writing
                           operation was off; 0: none */
  uint64_t number;      /* counts the captures into the pool */
  bool undone;          /* is not replayed again */
  cgl_site undone_at;
  cgl_use *uses;
  size_t nuses;
  struct cgl_input {
    cgl_cell *cell;
    cgl_site site; /* of the operation that reads it */
    bool updates;  /* a kernel writes to it, and may read it */
  } * inputs;
  size_t ninputs;
  bool overwrites_itself;   /* overwrites an input: no two replays in a row */
  struct cgl_share *next;   /* in its pool */
  struct cgl_share **group; /* itself included, sorted by `sharing` */
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
/* Makes the pool shared. */
void cgl_sharing_begin(cgl_sharing *sharing);
/* Takes back the memory of those that ended after the first `made`: their
   graphs are not replayed again; and forgets the buffers of blocks above
   `number`. */
void cgl_sharing_undo(cgl_sharing *sharing, uint64_t made, uint64_t number);

/* ---- captures ---- */

/* Before a graph becomes a node of the capture of `stream`: refuses when both
   could use the same memory at once. */
cgl_status cgl_share_check_child(const cgl_share *share, cgl_stream *stream,
                                 const char *operation);
/* Sums up the recording of a capture that has ended; the recording keeps the
   share.  `graph`: the capture's template.  cuGraphGetEdges */
cgl_status cgl_share_make(cgl_sharing *sharing, const cgl_capture *capture,
                          CUgraph graph, const char *operation);
/* The share of a captured graph's recording. */
static inline cgl_share *cgl_share_of(const cgl_recording *recording) {
  return (cgl_share *)cgl_record_summary(recording);
}

/* ---- replays ---- */

typedef struct cgl_replay {
  cgl_share *share;
  uint64_t exec;  /* number of the executable */
  bool unchecked; /* neither ordered nor refused */
  bool halted;    /* an operation that writes to the pool's memory is off */
} cgl_replay;

/* Orders `count` replays on `stream` after the pool's last replay, and locks
   the group until cgl_share_end; or refuses them and changes nothing.
   cuStreamWaitEvent */
cgl_status cgl_share_begin(const cgl_replay *replay, cgl_stream *stream,
                           uint64_t count, const char *operation);
/* Stamps, when `launched` (a replay reached the device), and unlocks. */
void cgl_share_end(const cgl_replay *replay, cgl_stream *stream, bool launched);
/* Notes that something of the share was launched.  A private pool needs it of
   the first replay on a stream only: should another graph get the pool, later
   replays are covered by what the stream has done by then. */
void cgl_share_stamp(const cgl_replay *replay, cgl_share *share,
                     cgl_stream *stream);

/* ---- eager work ---- */

/* Whether a pool of the process is shared. */
extern atomic_bool cgl_sharing_any;

/* Memory that a capture allocated, as eager work uses it. */
typedef struct cgl_shared_memory {
  cgl_sharing *sharing;
  const cgl_allocation *allocation;
  cgl_cell **cell; /* the buffer's field; *cell is NULL until it has a cell */
  uint64_t block;  /* number of the buffer's block */
} cgl_shared_memory;

/* Refuses to read memory that a replay has overwritten. */
cgl_status cgl_share_check_read(const cgl_shared_memory *memory,
                                const char *operation);
/* The script wrote to the memory. */
void cgl_share_note_write(const cgl_shared_memory *memory);
/* The buffer of a cell has ended. */
void cgl_share_forget(cgl_sharing *sharing, cgl_cell *cell);

#endif
