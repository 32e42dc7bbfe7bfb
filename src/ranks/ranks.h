/* Ranks: groups of processes, and what they do together.
   Idea: a collective is a call of another library (core/call).  On the
   host device it is a host function, which hands its call to the progress
   thread and waits; on a GPU it is NCCL's.
   Glossary.  world: all ranks.  group: a part of them.  call: one collective,
   with its addresses and its script line; a graph keeps those of its nodes.
   Invariants: the progress thread alone calls MPI, and never waits there, so
   that it can say which rank is missing, and hears of a rank that failed; a
   group does its calls in the order in which they come on the stream; what a
   GPU does by itself was counted before it was issued, so that a rank which
   waits for it can be told who has issued less. */
#ifndef CGL_RANKS_RANKS_H
#define CGL_RANKS_RANKS_H

#include "core/record/issue.h"
#include "ranks/mpi.h"

typedef struct cgl_nccl_group cgl_nccl_group;

/* What this rank has issued in a group: outside captures, and by replays. */
typedef struct cgl_issued {
  atomic_uint_fast64_t calls;       /* of any kind */
  atomic_uint_fast64_t collectives; /* of all members: no exchanges */
  struct {
    atomic_uint_fast64_t sent, received; /* transfers */
  } with[];                              /* each member */
} cgl_issued;

/* What calls need, which may run when the ranks have been released. */
typedef struct cgl_group {
  atomic_int references;
  int number;  /* MPI's */
  uint64_t id; /* the same on all of its ranks, and for each opening of the
                  world, whose calls MPI does in one order */
  uint64_t watched_as; /* the same on all of its ranks, and no other's */
  int rank, size;
  cgl_issued *issued; /* owned */
  int members[];      /* their ranks in the world */
} cgl_group;

/* A group whose calls the device does by itself: do they come to an end? */
typedef struct cgl_watch {
  struct cgl_watch *next;
  cgl_group *group;           /* borrowed, as is the context */
  const cgl_context *context; /* whose host calls wait for the group's */
  /* The progress thread's own. */
  uint64_t steps; /* calls and ended waits */
  double since;   /* when there was the last one */
  double due;     /* when the other ranks are asked again */
  int lacks;      /* a rank that has issued less, of those asked; -1: none */
} cgl_watch;

struct cgl_ranks {
  cgl_object object;
  cgl_group *group;     /* owned */
  unsigned nsplits;     /* so far */
  cgl_buffer *order;    /* owned: each call writes it, so that order from data
                           keeps the calls apart; NULL: one rank */
  cgl_event *last;      /* owned: recorded after each call; NULL: one rank */
  uint64_t stream;      /* serial of the stream of the last call; 0: none */
  uint64_t capture;     /* serial of its capture; 0: none */
  cgl_nccl_group *nccl; /* NULL: MPI moves the elements */
  bool watched;
  cgl_watch watch; /* while it is watched */
};

/* ---- progress.c ---- */

typedef enum cgl_progress_kind {
  CGL_PROGRESS_CALL,
  CGL_PROGRESS_SPLIT,
  CGL_PROGRESS_END /* all ranks are at the end of the program */
} cgl_progress_kind;

typedef struct cgl_progress {
  cgl_progress_kind kind;
  const cgl_group *group; /* whose call it is; NULL: the world, at its end */
  cgl_mpi_call call;
  const char *operation; /* static */
  cgl_site site;
  struct {
    int color, key;        /* in */
    int group, rank, size; /* out */
  } split;
  /* The progress thread's own. */
  struct cgl_progress *next;
  void *request;
  bool begun, done;
  uint64_t number; /* of the group's collectives, from 1 */
  double due;
} cgl_progress;

/* Starts the progress thread and MPI, once in a process. */
cgl_status cgl_progress_start(int *rank, int *size);
/* Hands the request to the progress thread and waits for its end. */
void cgl_progress_do(cgl_progress *request);
/* MPI's name, borrowed. */
const char *cgl_progress_library(void);
void cgl_progress_set_seconds(double seconds);
/* Notes the last call, for messages. */
void cgl_progress_note(const char *operation, cgl_site site);

/* ---- watch.c ---- */

/* What a rank tells another one of a group. */
typedef struct cgl_watch_state {
  bool known; /* it has or had the group; else the rest is void */
  uint64_t collectives, sent, received; /* issued; transfers: with the other */
  bool idle; /* it neither issues nor waits, since as long as ranks wait */
  int lacks; /* it waits for that rank in some group; -1: for none */
} cgl_watch_state;

/* Whether CGRAPHLUA_RANKS_WATCH=1 asks to watch host devices as GPUs are. */
bool cgl_watch_is_for_all(void);
/* Until cgl_watch_end the progress thread looks at the group; what it has
   issued is told afterwards, too. */
void cgl_watch_begin(cgl_watch *w, cgl_group *group,
                     const cgl_context *context);
void cgl_watch_end(cgl_watch *w);
/* Counts a call that is about to be issued so often; locks nothing. */
void cgl_watch_count(cgl_group *group, const cgl_mpi_call *call,
                     uint64_t times);

/* The progress thread's, between lock and unlock. */
void cgl_watch_lock(void);
void cgl_watch_unlock(void);
/* A group for which a host call has waited so long; NULL: none, or not due. */
cgl_watch *cgl_watch_late(double now, double seconds);
/* What this rank tells a rank of the world about a group. */
cgl_watch_state cgl_watch_tell(uint64_t watched_as, int rank, double now,
                               double seconds);
/* Whether the group has had to do with the member. */
bool cgl_watch_concerns(const cgl_watch *w, int member);
/* Whether the member has issued less than this rank waits for. */
bool cgl_watch_lacks(const cgl_watch *w, int member,
                     const cgl_watch_state *theirs);

/* ---- launcher.c: what the environment says ---- */

/* The number of processes that a launcher started, 1 without one; `launcher`
   gets its name. */
int cgl_launcher_size(const char **launcher);
/* The file of cgraphlua-mpi.so, opened; NULL, with the failure noted. */
const cgl_mpi *cgl_launcher_open_mpi(const char *operation);

/* ---- nccl.c ---- */

/* Opens libnccl.so.2 and joins the group's ranks, collectively. */
cgl_status cgl_nccl_join(cgl_ranks *ranks, const char *operation);
/* The next group of these ranks may use the communicator. */
void cgl_nccl_leave(cgl_nccl_group *group);
/* "NCCL 2.28.9", borrowed. */
const char *cgl_nccl_name(void);
/* Puts a call on a stream. */
cgl_status cgl_nccl_run(cgl_nccl_group *group, const cgl_mpi_call *call,
                        int size, CUstream stream, const char *operation);

/* ---- ranks.c ---- */

void cgl_ranks_drop_group(cgl_group *group); /* a reference; NULL is fine */

/* Does a call of the group at once, on host memory, and waits. */
void cgl_ranks_do(const cgl_group *group, const cgl_mpi_call *call,
                  const char *operation);

/* ---- check.c ---- */

/* What a rank is about to issue: its words are the same on all ranks. */
typedef struct cgl_ranks_claim {
  char text[120]; /* "all_reduce sum of 100 float, in a capture" */
  char site[136];
} cgl_ranks_claim;

/* With CGRAPHLUA_RANKS_CHECK=1: compares what the ranks of the group are about
   to issue.  CGL_ERROR_RANKS names two lines. */
cgl_status cgl_ranks_check(const cgl_group *group, const char *operation,
                           const cgl_mpi_call *call, bool captured);

#endif
