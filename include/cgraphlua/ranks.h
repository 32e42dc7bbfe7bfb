/* Ranks: the processes of one program, a device each, and their collectives.
   Idea: a launcher (mpirun, srun, cgraphlua --ranks N) starts the program N
   times.  cgl_ranks_open joins all of them; collectives are issued on a stream,
   outside captures and in them, and a replay does them again.  On the host
   device MPI moves the elements, on GPUs NCCL does; both are opened when they
   are needed.  Without a launcher there is one rank, which needs neither.
   Invariants: every rank of a group issues the same collectives in the same
   order, and captures and replays what the others do; a call whose arguments
   are refused has issued nothing; a graph keeps the groups that it uses.
   Indices of ranks count from 0.  Work of a group on several streams at the
   same time has no order: split the group.  CGRAPHLUA_RANKS_CHECK=1 compares
   what the ranks issue. */
#ifndef CGRAPHLUA_RANKS_H
#define CGRAPHLUA_RANKS_H

#include "buffer.h"

/* All ranks, for the buffers of one device.  The caller owns the reference.
   The first call starts MPI when a launcher started the process with others.
   CGL_ERROR_NOT_FOUND names what to install. */
CGL_API cgl_status cgl_ranks_open(cgl_context *context, cgl_ranks **ranks);
/* Divides a group: ranks of one color, from 0, are a group, ordered by key and
   then by their rank in this one.  *split is NULL for a color of -1.  Every
   rank calls it; outside captures.  It waits for what was issued before. */
CGL_API cgl_status cgl_ranks_split(cgl_ranks *ranks, int color, int key,
                                   cgl_ranks **split);
/* This process's index in the group, and the number of ranks in the group. */
CGL_API int cgl_ranks_rank(const cgl_ranks *ranks);
CGL_API int cgl_ranks_size(const cgl_ranks *ranks);
/* This process's index among those of its machine, and their number, as the
   launcher tells them; 0 and 1 without a launcher. */
CGL_API int cgl_ranks_local_rank(void);
CGL_API int cgl_ranks_local_size(void);
/* This process's index among all that the launcher started; -1 when it started
   no others, or there is none.  Starts nothing. */
CGL_API int cgl_ranks_launched(void);
/* What moves the elements: "Open MPI v4.1.4", "NCCL 2.28.9", or "" for one
   rank.  Borrowed. */
CGL_API const char *cgl_ranks_library(const cgl_ranks *ranks);
/* Seconds, more than 0, that a rank waits for another; 30, or what
   CGRAPHLUA_RANKS_SECONDS says.  Then all ranks end with an error that names
   who is missing.  They do so as well when a rank dies, or exits with a status
   other than 0; a rank that exits with 0 waits for the others. */
CGL_API cgl_status cgl_ranks_set_seconds(double seconds);

/* Ends all ranks, the others with an error that names this one; returns when
   there is one rank.  A program calls it after a failure, before it releases
   what other ranks may still wait for. */
CGL_API void cgl_ranks_fail(void);

/* Operations of reductions; any and all are of bool, the others of numbers, and
   sum also of complex numbers and vectors, each of their numbers by itself. */
#define CGL_RANKS_OPERATIONS(X) X(sum) X(product) X(min) X(max) X(any) X(all)
typedef enum cgl_ranks_operation {
#define X(name) CGL_RANKS_##name,
  CGL_RANKS_OPERATIONS(X)
#undef X
      CGL_RANKS_OPERATION_COUNT
} cgl_ranks_operation;

/* Collectives, on `stream`.  Buffers have one element type; `dst` shares no
   memory with `src`, or is `src` where that is said.  Elements of a group of n
   ranks:
   all_reduce, reduce: as many in `dst`, which may be `src`; reduce writes that
   of the rank `root`, and NULL is accepted on the others.
   broadcast: from the rank `root`.
   all_gather: n times as many in `dst`; reduce_scatter: in `src`.
   all_to_all: as many, a multiple of n: part i goes to rank i.
   CGL_ERROR_INVALID_ARGUMENT; CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED in the body
   of a conditional. */
CGL_API cgl_status cgl_ranks_all_reduce(cgl_ranks *ranks, cgl_stream *stream,
                                        cgl_ranks_operation operation,
                                        cgl_buffer *src, cgl_buffer *dst);
CGL_API cgl_status cgl_ranks_reduce(cgl_ranks *ranks, cgl_stream *stream,
                                    cgl_ranks_operation operation, int root,
                                    cgl_buffer *src, cgl_buffer *dst);
CGL_API cgl_status cgl_ranks_broadcast(cgl_ranks *ranks, cgl_stream *stream,
                                       int root, cgl_buffer *buffer);
CGL_API cgl_status cgl_ranks_all_gather(cgl_ranks *ranks, cgl_stream *stream,
                                        cgl_buffer *src, cgl_buffer *dst);
CGL_API cgl_status cgl_ranks_reduce_scatter(cgl_ranks *ranks,
                                            cgl_stream *stream,
                                            cgl_ranks_operation operation,
                                            cgl_buffer *src, cgl_buffer *dst);
CGL_API cgl_status cgl_ranks_all_to_all(cgl_ranks *ranks, cgl_stream *stream,
                                        cgl_buffer *src, cgl_buffer *dst);
/* What comes after it on the stream begins when all ranks have come so far. */
CGL_API cgl_status cgl_ranks_barrier(cgl_ranks *ranks, cgl_stream *stream);

#define CGL_RANKS_MAX_TRANSFERS 64

/* A buffer that goes to another rank, or comes from it. */
typedef struct cgl_ranks_transfer {
  cgl_buffer *buffer;
  int peer;
  bool send;
} cgl_ranks_transfer;

/* Sends and receives buffers, all at once, so that no order of them can block;
   the n-th buffer that goes to a rank is the n-th that it receives from this
   one, of the same type and size.  What a rank sends to itself it receives in
   the same exchange.  At most CGL_RANKS_MAX_TRANSFERS.
   CGL_ERROR_INVALID_ARGUMENT */
CGL_API cgl_status cgl_ranks_exchange(cgl_ranks *ranks, cgl_stream *stream,
                                      const cgl_ranks_transfer *transfers,
                                      size_t ntransfers);

#endif
