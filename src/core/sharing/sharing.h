/* Graphs that share a pool: their replays run one after the other, and nobody
   reads memory that holds something else than what he reads.
   Idea: memory is tracked, not graphs.  Each pool has a map that says which
   allocation's data lies in each byte now.  A captured graph is summed up once:
   what must lie in which bytes before it runs, and what lies where afterwards;
   the sum of a graph with others inside is made of theirs, in its own order.
   A replay is checked against the map, and then changes it, as the script's own
   reads and writes do.  Nobody may look at the map between two replays: what a
   replay did is written there when somebody does, once for the last replay of
   each graph.
   Invariants: a map, its pool's order and the contents of its pool change under
   the pool's `lock` only; a release changes nothing in a map; the one graph of
   a private pool takes no lock, and only stamps; a graph changes the map after
   its launch.
   Glossary.
   shared: of a pool: another graph than its own may use its memory, or the
   script has written to it.
   private: of a pool: not shared.
   content: an allocation of a capture, and what is known of its data.
   carry: bytes carry a content when it was written there last.
   share: the sum of a captured graph's recording; a part of it for each pool.
   own: of a use: by the capture that allocated the memory.
   settle: to write into the map what the replays since did.
   stamp: to note a launched replay as the last of the pool.
   undone: of a part: its pool took the memory back. */
#ifndef CGL_SHARING_SHARING_H
#define CGL_SHARING_SHARING_H

#include "core/record/order.h"

typedef struct cgl_sharing cgl_sharing;
typedef struct cgl_share cgl_share;

/* Bytes with one value, in a sorted list without overlaps. */
typedef struct cgl_span {
  CUdeviceptr start, end;
  uint64_t number; /* of the content that they carry; 0: none is known */
  struct cgl_content *content; /* of a share: that content, borrowed; NULL: it
                                  reads them only */
  cgl_site by;                 /* a line of the script, or of a capture */
  bool script;                 /* the script's own work at that line */
  bool own;                    /* of a share: an own use */
} cgl_span;

typedef struct cgl_spans {
  cgl_span *list;
  size_t count, size;
  size_t limit; /* a count at which neighbours are joined */
} cgl_spans;

typedef struct cgl_content {
  cgl_allocation allocation;
  uint64_t number;      /* unique in the process */
  cgl_sharing *sharing; /* of its pool, which the users of the memory keep */
  /* Under the sharing's lock. */
  cgl_spans written; /* bytes that it was ever written to */
  cgl_site filler;   /* the latest capture that writes to it; NULL: none */
  bool own_fills;    /* its own capture does */
} cgl_content;

/* How work uses memory; a kernel may read what it may write to. */
typedef enum cgl_use { CGL_USE_READ, CGL_USE_UPDATE, CGL_USE_WRITE } cgl_use;

/* Bytes that a graph uses as they were before it. */
typedef struct cgl_need {
  CUdeviceptr start, end;
  cgl_content *content; /* borrowed from the recording */
  cgl_site site;        /* of the operation */
  cgl_use use;
  bool own;
  bool lost;   /* the graph itself has put something else there, */
  bool always; /* and is never right; */
  bool again;  /* or does so later: a second replay would find it, */
  bool fills;  /* where the graph has written the content itself */
  cgl_site by; /* lost: the operation that did */
} cgl_need;

/* What a graph does to the memory of one pool. */
typedef struct cgl_share_part {
  cgl_share *share;
  cgl_sharing *sharing; /* its owner is retained */
  cgl_spans spans;      /* bytes that it touches, and what they carry then */
  cgl_span *gone;       /* that it writes, and overwrites itself */
  size_t ngone, gone_size;
  cgl_need *needs;
  size_t nneeds, needs_size;
  uint64_t made;    /* counts the captures into the pool */
  uint64_t version; /* of the map after its last replay; 0: none */
  bool again;       /* a need is `again` */
  bool planned;     /* the graph, or one inside, is of the pool: else it keeps
                       the buffers that it uses */
  bool unnoted;     /* was replayed while the pool was private */
  bool undone;      /* is not replayed again */
  bool settled;     /* its contents know what it writes */
  cgl_site undone_at;
  struct cgl_share_part *next; /* in its pool */
  struct cgl_share_part *earlier,
      *later; /* not settled, by their last replay */
} cgl_share_part;

struct cgl_share {
  cgl_object object; /* kept by the recording */
  cgl_site begun;    /* of the capture */
  size_t nparts;
  cgl_share_part *parts; /* sorted by `sharing`; in one allocation */
  cgl_share_part *home;  /* of the graph's own pool */
};

/* What a pool knows of its memory and its replays. */
struct cgl_sharing {
  atomic_bool shared;
  atomic_uint_fast64_t used; /* number of the device wait that covers the last
                                replay that may use the pool's memory */
  cgl_object *owner;         /* borrowed: the pool */
  pthread_mutex_t lock;      /* guards everything below */
  atomic_bool touched; /* script work outside captures used memory of the pool's
                          captures since one began */
  bool strict;         /* refuses where it would make a replay wait */
  cgl_spans map;       /* what its memory carries, once settled */
  uint64_t version;    /* of what it carries; grows */
  cgl_share_part *latest; /* of those that are not settled */
  size_t unsettled;       /* their spans */
  cgl_share_part *parts;
  cgl_clock *last;     /* retained: the stream of the last replay, */
  uint64_t tick, wait; /* when, the wait of the host that covers it, */
  uint64_t exec;       /* which executable, and its graph's capture */
  cgl_site begun;
  /* Read without the lock; made: captures so far. */
  atomic_uint_fast64_t made, ordered, refused;
  bool said; /* that replays are made to wait */
};

void cgl_sharing_init(cgl_sharing *sharing, cgl_object *owner, bool strict);
void cgl_sharing_clear(cgl_sharing *sharing);
/* Makes the pool shared, and notes what its graph did so far.
   CGL_ERROR_NO_MEMORY */
cgl_status cgl_sharing_begin(cgl_sharing *sharing, const char *operation);
/* Takes back the memory of the pool's graphs that were captured after the first
   `made`: they are not replayed again. */
void cgl_sharing_undo(cgl_sharing *sharing, uint64_t made);
/* The memory is the driver's again. */
void cgl_sharing_forget(cgl_sharing *sharing, CUdeviceptr address,
                        size_t bytes);

/* Makes the stream come after the last replay in a private pool, unless that
   was of the executable `exec`, which the driver never runs beside itself; in a
   shared pool cgl_share_begin does. */
cgl_status cgl_sharing_order_executable(cgl_sharing *sharing,
                                        cgl_stream *stream, uint64_t exec,
                                        const char *operation);
/* A replay that may use the memory was launched; device wait number `wait`
   covers it.  Threads may call this at once: the highest number stays. */
static inline void cgl_sharing_note_use(cgl_sharing *sharing, uint64_t wait) {
  uint_fast64_t used =
      atomic_load_explicit(&sharing->used, memory_order_relaxed);
  while (used < wait &&
         !atomic_compare_exchange_weak(&sharing->used, &used, wait))
    ;
}

/* ---- content.c ---- */

/* Memory that the capture `born` allocates; NULL without memory.  The caller
   sets its address. */
cgl_content *cgl_content_new(cgl_sharing *sharing, uint64_t born, size_t bytes);
/* Before the script's own work uses bytes of the content: makes the stream come
   after the pool's last replay, and refuses to read what the bytes do not
   carry.  Nothing in a private pool.  CGL_ERROR_ORDER; cuStreamWaitEvent */
cgl_status cgl_content_check(cgl_content *content, CUdeviceptr address,
                             size_t bytes, cgl_use use, cgl_stream *stream,
                             const char *operation);
/* The work was issued; a write makes the pool shared. */
void cgl_content_note(cgl_content *content, CUdeviceptr address, size_t bytes,
                      bool write, const cgl_stream *stream);

/* ---- share.c: captures ---- */

/* Refuses a graph whose memory was taken back by its pool. */
cgl_status cgl_share_check_memory(const cgl_share *share,
                                  const char *operation);
/* Before a graph becomes a node of the capture of `stream`: refuses when both
   could use the same memory at once. */
cgl_status cgl_share_check_child(const cgl_share *share, cgl_stream *stream,
                                 const char *operation);
/* When the capture of the recording has ended: refuses a graph inside it that
   uses memory at the same time as a later operation.  cuGraphGetEdges */
cgl_status cgl_share_check_children(cgl_context *context,
                                    cgl_recording *recording, CUgraph graph,
                                    const char *operation);
/* Sums up a recording, whose graph is of the pool of `sharing` and came of
   `capture`; the recording keeps the share, in the place of an earlier one. */
cgl_status cgl_share_make(cgl_recording *recording, cgl_sharing *sharing,
                          const cgl_underway *capture, const char *operation);
/* Whether a pool of the process is shared. */
extern atomic_bool cgl_sharing_any;
/* The share of a captured graph's recording. */
static inline cgl_share *cgl_share_of(const cgl_recording *recording) {
  return (cgl_share *)cgl_record_summary(recording);
}

/* ---- replay_order.c: replays ---- */

typedef struct cgl_replay {
  cgl_share *share;
  uint64_t exec;  /* number of the executable */
  bool unchecked; /* neither ordered nor refused */
} cgl_replay;

/* Orders `count` replays on `stream` after the last replays of the share's
   pools, and locks these until cgl_share_end; or refuses them and changes
   nothing.  cuStreamWaitEvent */
cgl_status cgl_share_begin(const cgl_replay *replay, cgl_stream *stream,
                           uint64_t count, const char *operation);
/* Notes what they did, when `launched` (a replay reached the device), and
   unlocks. */
void cgl_share_end(const cgl_replay *replay, cgl_stream *stream, bool launched);
/* Notes a replay of the only graph of a private pool.  It is needed of the
   first replay on a stream only: should another graph get the pool, later
   replays are covered by what the stream has done by then. */
void cgl_share_stamp(const cgl_replay *replay, cgl_stream *stream);

#endif
