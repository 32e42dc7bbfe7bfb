/* MPI as a table.
   Idea: the program does not link MPI.  cgraphlua-mpi.so does, and gives this
   table; it is opened when ranks are used, and built anew for another MPI.
   Invariants: one thread, the one that called start, calls all functions; none
   waits for other ranks but start, split and finalize, so that this thread can
   tell which rank is missing. */
#ifndef CGL_RANKS_MPI_H
#define CGL_RANKS_MPI_H

#include <stddef.h>

#include "cgraphlua/ranks.h"

/* X(constant, name, in place): what a group does. */
#define CGL_COLLECTIVES(X)                     \
  X(CGL_ALL_REDUCE, all_reduce, true)          \
  X(CGL_REDUCE, reduce, true)                  \
  X(CGL_BROADCAST, broadcast, true)            \
  X(CGL_ALL_GATHER, all_gather, false)         \
  X(CGL_REDUCE_SCATTER, reduce_scatter, false) \
  X(CGL_ALL_TO_ALL, all_to_all, false)         \
  X(CGL_BARRIER, barrier, true)                \
  X(CGL_EXCHANGE, exchange, true)

typedef enum cgl_collective {
#define X(constant, name, in_place) constant,
  CGL_COLLECTIVES(X)
#undef X
} cgl_collective;

typedef struct cgl_mpi_transfer {
  void *address;
  size_t count;
  cgl_type type; /* of numbers, as a call's */
  int peer;
  bool send;
} cgl_mpi_transfer;

typedef struct cgl_mpi_call {
  cgl_collective what;
  cgl_ranks_operation operation;
  cgl_type type; /* of the numbers that elements have */
  int group;     /* CGL_MPI_WORLD, CGL_MPI_END, or as split returned it */
  bool aside;    /* the host asks: no order with the group's other calls */
  int root;      /* of reduce and broadcast */
  size_t count;  /* numbers of a rank's part: of `from`, but for reduce_scatter
                    of `to`, and for all_to_all of each part */
  const void *from;
  void *to;
  const cgl_mpi_transfer *transfers;
  size_t ntransfers;
} cgl_mpi_call;

typedef struct cgl_mpi {
  int version; /* CGL_MPI_VERSION */
  /* MPI_Init_thread; NULL, or what failed.  `library` gets MPI's name. */
  const char *(*start)(int *rank, int *size, char *library, size_t room);
  /* MPI_Comm_split; the new group, or -1 for a color of -1. */
  int (*split)(int group, int color, int key, int *rank, int *size);
  /* Begins a call; NULL, or what failed. */
  const char *(*begin)(const cgl_mpi_call *call, void **request);
  /* Whether it has ended; then the request is no more.  *failed: what failed,
     or NULL. */
  bool (*test)(void *request, const char **failed);
  /* Sends a message to a rank; it is copied. */
  void (*post)(int to, const void *message, size_t bytes);
  /* Receives a message of so many bytes; false: none is there. */
  bool (*poll)(int *from, void *message, size_t bytes);
  void (*finalize)(void);
  void (*abort)(void);
} cgl_mpi;

enum { CGL_MPI_VERSION = 2 };

/* Groups that stand from the start. */
enum {
  CGL_MPI_WORLD,
  CGL_MPI_END, /* all ranks: for the end alone, which so meets no call of a
                  script */
  CGL_MPI_GROUPS
};

/* The one symbol of cgraphlua-mpi.so. */
extern const cgl_mpi cgl_mpi_table;

#endif
