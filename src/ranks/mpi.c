/* cgraphlua-mpi.so: the table of MPI (ranks/mpi.h). */
#include "ranks/mpi.h"

#include <limits.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/half.h"

enum { MESSAGE_TAG = 1, TRANSFER_TAG = 2, MOST_GROUPS = 4096 };

typedef struct pending {
  MPI_Request *all; /* what MPI has not ended yet */
  int n;
} pending;

typedef struct posted {
  struct posted *next;
  MPI_Request request;
  char message[];
} posted;

static struct {
  MPI_Comm groups[MOST_GROUPS], asides[MOST_GROUPS];
  int ngroups;
  MPI_Comm messages; /* for messages alone */
  posted *posted;
  MPI_Op half[CGL_RANKS_OPERATION_COUNT], bfloat16[CGL_RANKS_OPERATION_COUNT];
  char failure[MPI_MAX_ERROR_STRING];
} mpi;


/* ---- reductions of 16-bit numbers, which MPI does not know ---- */

#define SUM(a, b) ((a) + (b))
#define PRODUCT(a, b) ((a) * (b))
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((b) > (a) ? (b) : (a))
#define REDUCTION(type, name, COMBINE)                                         \
  static void type##_##name(void *in, void *inout, int *n, MPI_Datatype *of) { \
    const uint16_t *x = in;                                                    \
    uint16_t *y = inout;                                                       \
    (void)of;                                                                  \
    for (int i = 0; i < *n; i++) {                                             \
      const double a = cgl_##type##_value(x[i]);                               \
      const double b = cgl_##type##_value(y[i]);                               \
      y[i] = cgl_##type##_of(COMBINE(a, b));                                   \
    }                                                                          \
  }
REDUCTION(half, sum, SUM)
REDUCTION(half, product, PRODUCT)
REDUCTION(half, min, MIN)
REDUCTION(half, max, MAX)
REDUCTION(bfloat16, sum, SUM)
REDUCTION(bfloat16, product, PRODUCT)
REDUCTION(bfloat16, min, MIN)
REDUCTION(bfloat16, max, MAX)


static void reductions_make(void) {
  static MPI_User_function *const half[] = {half_sum, half_product, half_min,
                                            half_max};
  static MPI_User_function *const bfloat16[] = {bfloat16_sum, bfloat16_product,
                                                bfloat16_min, bfloat16_max};
  for (int i = 0; i < 4; i++) {
    MPI_Op_create(half[i], 1, &mpi.half[i]);
    MPI_Op_create(bfloat16[i], 1, &mpi.bfloat16[i]);
  }
}


static MPI_Op reduction_of(cgl_type type, cgl_ranks_operation operation) {
  const MPI_Op known[] = {
      [CGL_RANKS_sum] = MPI_SUM, [CGL_RANKS_product] = MPI_PROD,
      [CGL_RANKS_min] = MPI_MIN, [CGL_RANKS_max] = MPI_MAX,
      [CGL_RANKS_any] = MPI_LOR, [CGL_RANKS_all] = MPI_LAND};
  return type == CGL_TYPE_half       ? mpi.half[operation]
         : type == CGL_TYPE_bfloat16 ? mpi.bfloat16[operation]
                                     : known[operation];
}


static MPI_Datatype type_of(cgl_type type) {
  const MPI_Datatype known[] = {
      [CGL_TYPE_float] = MPI_FLOAT,   [CGL_TYPE_double] = MPI_DOUBLE,
      [CGL_TYPE_int8] = MPI_INT8_T,   [CGL_TYPE_uint8] = MPI_UINT8_T,
      [CGL_TYPE_int16] = MPI_INT16_T, [CGL_TYPE_uint16] = MPI_UINT16_T,
      [CGL_TYPE_int32] = MPI_INT32_T, [CGL_TYPE_uint32] = MPI_UINT32_T,
      [CGL_TYPE_int64] = MPI_INT64_T, [CGL_TYPE_uint64] = MPI_UINT64_T,
      [CGL_TYPE_half] = MPI_UINT16_T, [CGL_TYPE_bfloat16] = MPI_UINT16_T,
      [CGL_TYPE_bool] = MPI_C_BOOL};
  return known[type];
}


/* ---- the table ---- */

static const char *failure_text(int error) {
  int length;
  if (error == MPI_SUCCESS)
    return NULL;
  MPI_Error_string(error, mpi.failure, &length);
  return mpi.failure;
}


static void group_prepare(int group) {
  MPI_Comm_dup(mpi.groups[group], &mpi.asides[group]);
  MPI_Comm_set_errhandler(mpi.groups[group], MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(mpi.asides[group], MPI_ERRORS_RETURN);
}


static const char *mpi_start(int *rank, int *size, char *library, size_t room) {
  int given, length, initialized;
  char name[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Initialized(&initialized);
  if (!initialized) {
    const char *failed =
        failure_text(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &given));
    if (failed)
      return failed;
  }
  while (mpi.ngroups < CGL_MPI_GROUPS) {
    MPI_Comm_dup(MPI_COMM_WORLD, &mpi.groups[mpi.ngroups]);
    group_prepare(mpi.ngroups++);
  }
  MPI_Comm_dup(MPI_COMM_WORLD, &mpi.messages);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(mpi.messages, MPI_ERRORS_RETURN);
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, size);
  reductions_make();
  MPI_Get_library_version(name, &length);
  name[strcspn(name, ",\n")] = 0;
  snprintf(library, room, "%s", name);
  return NULL;
}


static int mpi_split(int group, int color, int key, int *rank, int *size) {
  MPI_Comm *made = &mpi.groups[mpi.ngroups];
  if (mpi.ngroups == MOST_GROUPS ||
      MPI_Comm_split(mpi.groups[group], color < 0 ? MPI_UNDEFINED : color, key,
                     made) ||
      *made == MPI_COMM_NULL)
    return -1;
  group_prepare(mpi.ngroups);
  MPI_Comm_rank(*made, rank);
  MPI_Comm_size(*made, size);
  return mpi.ngroups++;
}


static int exchange_begin(const cgl_mpi_call *call, MPI_Comm comm,
                          pending *request) {
  int error = MPI_SUCCESS;
  for (size_t i = 0; i < call->ntransfers && !error; i++) {
    const cgl_mpi_transfer *t = &call->transfers[i];
    MPI_Request *next = &request->all[request->n];
    const MPI_Datatype type = type_of(t->type);
    error = t->send ? MPI_Isend(t->address, (int)t->count, type, t->peer,
                                TRANSFER_TAG, comm, next)
                    : MPI_Irecv(t->address, (int)t->count, type, t->peer,
                                TRANSFER_TAG, comm, next);
    request->n += !error;
  }
  return error;
}


static int call_begin(const cgl_mpi_call *c, pending *request) {
  const MPI_Comm comm = (c->aside ? mpi.asides : mpi.groups)[c->group];
  const MPI_Datatype type = type_of(c->type);
  const MPI_Op op = reduction_of(c->type, c->operation);
  const int n = (int)c->count;
  const void *from = c->from == c->to ? MPI_IN_PLACE : c->from;
  MPI_Request *one = request->all;
  int rank;
  if (c->what == CGL_EXCHANGE)
    return exchange_begin(c, comm, request);
  request->n = 1;
  switch (c->what) {
  case CGL_ALL_REDUCE:
    return MPI_Iallreduce(from, c->to, n, type, op, comm, one);
  case CGL_REDUCE:
    MPI_Comm_rank(comm, &rank);
    return MPI_Ireduce(rank == c->root ? from : c->from, c->to, n, type, op,
                       c->root, comm, one);
  case CGL_BROADCAST:
    return MPI_Ibcast(c->to, n, type, c->root, comm, one);
  case CGL_ALL_GATHER:
    return MPI_Iallgather(c->from, n, type, c->to, n, type, comm, one);
  case CGL_REDUCE_SCATTER:
    return MPI_Ireduce_scatter_block(c->from, c->to, n, type, op, comm, one);
  case CGL_ALL_TO_ALL:
    return MPI_Ialltoall(c->from, n, type, c->to, n, type, comm, one);
  case CGL_BARRIER:
  case CGL_EXCHANGE:
    break;
  }
  return MPI_Ibarrier(comm, one);
}


static void request_free(pending *request) {
  free(request->all);
  free(request);
}


static const char *mpi_begin(const cgl_mpi_call *call, void **made) {
  pending *request = calloc(1, sizeof *request);
  if (request)
    request->all = malloc((call->ntransfers + 1) * sizeof *request->all);
  if (!request || !request->all) {
    free(request);
    return "no memory for a request";
  }
  const char *failed = failure_text(call_begin(call, request));
  if (failed)
    request_free(request);
  else
    *made = request;
  return failed;
}


static bool mpi_test(void *begun, const char **failed) {
  pending *request = begun;
  int done = true, error = MPI_SUCCESS;
  /* One that is done has become none, which is done, too. */
  for (int i = 0; i < request->n && done && !error; i++)
    error = MPI_Test(&request->all[i], &done, MPI_STATUS_IGNORE);
  *failed = failure_text(error);
  if (!error && !done)
    return false;
  request_free(request);
  return true;
}


/* Frees what was sent. */
static void posted_free(void) {
  for (posted **at = &mpi.posted; *at;) {
    posted *p = *at;
    int done;
    if (MPI_Test(&p->request, &done, MPI_STATUS_IGNORE) || done) {
      *at = p->next;
      free(p);
    } else
      at = &p->next;
  }
}


static void mpi_post(int to, const void *message, size_t bytes) {
  posted_free();
  posted *p = malloc(sizeof *p + bytes);
  if (!p)
    return;
  memcpy(p->message, message, bytes);
  if (MPI_Isend(p->message, (int)bytes, MPI_BYTE, to, MESSAGE_TAG, mpi.messages,
                &p->request)) {
    free(p);
    return;
  }
  p->next = mpi.posted;
  mpi.posted = p;
}


static bool mpi_poll(int *from, void *message, size_t bytes) {
  int there;
  MPI_Status status;
  if (MPI_Iprobe(MPI_ANY_SOURCE, MESSAGE_TAG, mpi.messages, &there, &status) ||
      !there)
    return false;
  *from = status.MPI_SOURCE;
  return !MPI_Recv(message, (int)bytes, MPI_BYTE, *from, MESSAGE_TAG,
                   mpi.messages, MPI_STATUS_IGNORE);
}


static void mpi_finalize(void) {
  posted_free();
  MPI_Finalize();
}


static void mpi_abort(void) {
  MPI_Abort(MPI_COMM_WORLD, 1);
}


__attribute__((visibility("default"))) const cgl_mpi cgl_mpi_table = {
    .version = CGL_MPI_VERSION,
    .start = mpi_start,
    .split = mpi_split,
    .begin = mpi_begin,
    .test = mpi_test,
    .post = mpi_post,
    .poll = mpi_poll,
    .finalize = mpi_finalize,
    .abort = mpi_abort,
};
