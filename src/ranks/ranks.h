/* Ranks: groups of processes, and what they do together.
   Idea: a collective is a call of another library (core/call).  On the
   host device it is a host function, which hands its call to the progress
   thread and waits; on a GPU it is NCCL's.
   Glossary.  world: all ranks.  group: a part of them.  call: one collective,
   with its addresses and its script line; a graph keeps those of its nodes.
   Invariants: the progress thread alone calls MPI, and never waits there, so
   that it can say which rank is missing, and hears of a rank that failed; a
   group does its calls in the order in which they come on the stream. */
#ifndef CGL_RANKS_RANKS_H
#define CGL_RANKS_RANKS_H

#include "core/record/issue.h"
#include "ranks/mpi.h"

typedef struct cgl_nccl_group cgl_nccl_group;

/* What calls need, which may run when the ranks have been released. */
typedef struct cgl_group {
  atomic_int references;
  int number;  /* MPI's */
  uint64_t id; /* the same on all of its ranks */
  int rank, size;
  int members[]; /* their ranks in the world */
} cgl_group;

struct cgl_ranks {
  cgl_object object;
  cgl_group *group;     /* owned */
  unsigned nsplits;     /* so far */
  cgl_buffer *order;    /* owned: each call writes it, so that order from data
                           keeps the calls apart; NULL: one rank */
  cgl_event *last;      /* owned: recorded after each call; NULL: one rank */
  uint64_t stream;      /* serial of the stream of the last call; 0: none */
  uint64_t capture;     /* serial of its capture; 0: none */
  cgl_nccl_group *nccl; /* owned; NULL: MPI moves the elements */
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
/* Notes a call that NCCL does, which the progress thread does not see. */
void cgl_progress_note(const char *operation, cgl_site site);

/* ---- launcher.c: what the environment says ---- */

/* The number of processes that a launcher started, 1 without one; `launcher`
   gets its name. */
int cgl_launcher_size(const char **launcher);
/* The file of cgraphlua-mpi.so, opened; NULL, with the failure noted. */
const cgl_mpi *cgl_launcher_open_mpi(const char *operation);

/* ---- nccl.c ---- */

/* Opens libnccl.so.2 and joins the group's ranks, collectively. */
cgl_status cgl_nccl_join(cgl_ranks *ranks, const char *operation);
void cgl_nccl_leave(cgl_nccl_group *group); /* NULL is fine */
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
