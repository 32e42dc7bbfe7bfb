/* NCCL: collectives of GPUs.  libnccl.so.2 is opened when the first group is
   made; the rows below are its own signatures.
   Invariant: a communicator is never destroyed, because that waits for the
   other ranks, who may end their groups in another order or much later.  The
   next group of the same ranks takes it. */
#include "core/memory/memory.h"
#include "ranks/ranks.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct nccl_id {
  char bytes[128];
} nccl_id;
typedef void *nccl_comm;

/* X(name, parameters) */
#define NCCL_ROWS(X)                                                           \
  X(GetVersion, (int *version))                                                \
  X(GetUniqueId, (nccl_id * id))                                               \
  X(CommInitRank, (nccl_comm * comm, int size, nccl_id id, int rank))          \
  X(GroupStart, (void))                                                        \
  X(GroupEnd, (void))                                                          \
  X(AllReduce, (const void *from, void *to, size_t count, int type, int op,    \
                nccl_comm comm, CUstream stream))                              \
  X(Reduce, (const void *from, void *to, size_t count, int type, int op,       \
             int root, nccl_comm comm, CUstream stream))                       \
  X(Broadcast, (const void *from, void *to, size_t count, int type, int root,  \
                nccl_comm comm, CUstream stream))                              \
  X(AllGather, (const void *from, void *to, size_t count, int type,            \
                nccl_comm comm, CUstream stream))                              \
  X(ReduceScatter, (const void *from, void *to, size_t count, int type,        \
                    int op, nccl_comm comm, CUstream stream))                  \
  X(Send, (const void *from, size_t count, int type, int peer, nccl_comm comm, \
           CUstream stream))                                                   \
  X(Recv, (void *to, size_t count, int type, int peer, nccl_comm comm,         \
           CUstream stream))

static struct {
#define X(name, parameters) int(*name) parameters;
  NCCL_ROWS(X)
#undef X
  const char *(*GetLastError)(nccl_comm comm);
  const char *(*GetErrorString)(int result);
  char name[24];
} nccl;

struct cgl_nccl_group {
  struct cgl_nccl_group *next;
  nccl_comm comm;
  uint64_t context; /* its serial */
  uint64_t serial;  /* the same on all of its ranks; 0: it failed */
  bool used;        /* by a group */
  int rank, size;
  int members[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cgl_nccl_group *first; /* all; guarded by the lock, as is `used` */


/* ---- the library ---- */

static bool nccl_load(void *opened) {
  static const char *const names[] = {
#define X(name, parameters) "nccl" #name,
      NCCL_ROWS(X)
#undef X
  };
  void **rows = (void **)&nccl;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!(rows[i] = dlsym(opened, names[i])))
      return false;
  *(void **)&nccl.GetLastError = dlsym(opened, "ncclGetLastError");
  *(void **)&nccl.GetErrorString = dlsym(opened, "ncclGetErrorString");
  return nccl.GetErrorString;
}


static cgl_status nccl_open(const char *operation) {
  const char *wish = getenv("CGRAPHLUA_NCCL");
  int version = 0;
  if (*nccl.name)
    return CGL_OK;
  void *opened =
      dlopen(wish && *wish ? wish : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
  if (!opened || !nccl_load(opened) || nccl.GetVersion(&version)) {
    const char *why = opened ? "it lacks functions" : dlerror();
    cgl_fail(CGL_ERROR_NOT_FOUND, operation,
             "ranks on GPUs need NCCL, and libnccl.so.2 cannot be opened: %s",
             why ? why : "it was not found");
    return cgl_fail_hint(
        "install NVIDIA's libnccl2, or PyPI's nvidia-nccl-cu12 "
        "and name its file by CGRAPHLUA_NCCL");
  }
  snprintf(nccl.name, sizeof nccl.name, "NCCL %d.%d.%d", version / 10000,
           version / 100 % 100, version % 100);
  return CGL_OK;
}


const char *cgl_nccl_name(void) {
  return nccl.name;
}


static cgl_status nccl_check(int result, nccl_comm comm,
                             const char *operation) {
  if (!result)
    return CGL_OK;
  const char *more = nccl.GetLastError ? nccl.GetLastError(comm) : "";
  cgl_fail(CGL_ERROR_RANKS, operation, "NCCL: %s%s%s",
           nccl.GetErrorString(result), more && *more ? ": " : "",
           more ? more : "");
  return cgl_fail_hint("NCCL_DEBUG=INFO has it say more");
}


/* ---- calls ---- */

/* NCCL's number of a type of numbers; -1: it has none. */
static int type_number(cgl_type type) {
  switch (type) {
  case CGL_TYPE_int8:
    return 0;
  case CGL_TYPE_uint8:
  case CGL_TYPE_bool:
    return 1;
  case CGL_TYPE_int32:
    return 2;
  case CGL_TYPE_uint32:
    return 3;
  case CGL_TYPE_int64:
    return 4;
  case CGL_TYPE_uint64:
    return 5;
  case CGL_TYPE_half:
    return 6;
  case CGL_TYPE_float:
    return 7;
  case CGL_TYPE_double:
    return 8;
  case CGL_TYPE_bfloat16:
    return 9;
  default:
    return -1;
  }
}


enum { BYTES = 1 /* ncclUint8: what moves elements needs no more */ };

static const int operations[] = {
    [CGL_RANKS_sum] = 0, [CGL_RANKS_product] = 1, [CGL_RANKS_max] = 2,
    [CGL_RANKS_min] = 3, [CGL_RANKS_any] = 2,     [CGL_RANKS_all] = 3};


static int all_to_all(const cgl_mpi_call *call, int size, nccl_comm comm,
                      CUstream stream) {
  const size_t bytes = call->count * cgl_type_bytes(call->type);
  int result = 0;
  for (int i = 0; i < size && !result; i++) {
    const size_t at = (size_t)i * bytes;
    result =
        nccl.Send((const char *)call->from + at, bytes, BYTES, i, comm, stream);
    if (!result)
      result = nccl.Recv((char *)call->to + at, bytes, BYTES, i, comm, stream);
  }
  return result;
}


static int exchange(const cgl_mpi_call *call, nccl_comm comm, CUstream stream) {
  int result = 0;
  for (size_t i = 0; i < call->ntransfers && !result; i++) {
    const cgl_mpi_transfer *t = &call->transfers[i];
    const size_t bytes = t->count * cgl_type_bytes(t->type);
    result = t->send
                 ? nccl.Send(t->address, bytes, BYTES, t->peer, comm, stream)
                 : nccl.Recv(t->address, bytes, BYTES, t->peer, comm, stream);
  }
  return result;
}


/* Sends and receives, all of which NCCL begins together. */
static int transfers_run(const cgl_mpi_call *call, int size, nccl_comm comm,
                         CUstream stream) {
  int result = nccl.GroupStart();
  if (result)
    return result;
  result = call->what == CGL_EXCHANGE ? exchange(call, comm, stream)
                                      : all_to_all(call, size, comm, stream);
  const int ended = nccl.GroupEnd();
  return result ? result : ended;
}


static int call_run(const cgl_nccl_group *group, const cgl_mpi_call *c,
                    int size, CUstream stream) {
  const nccl_comm comm = group->comm;
  const int type = type_number(c->type), op = operations[c->operation];
  const size_t bytes = c->count * cgl_type_bytes(c->type);
  switch (c->what) {
  case CGL_ALL_REDUCE:
    return nccl.AllReduce(c->from, c->to, c->count, type, op, comm, stream);
  case CGL_REDUCE:
    return nccl.Reduce(c->from, c->to, c->count, type, op, c->root, comm,
                       stream);
  case CGL_BROADCAST:
    return nccl.Broadcast(c->to, c->to, bytes, BYTES, c->root, comm, stream);
  case CGL_ALL_GATHER:
    return nccl.AllGather(c->from, c->to, bytes, BYTES, comm, stream);
  case CGL_REDUCE_SCATTER:
    return nccl.ReduceScatter(c->from, c->to, c->count, type, op, comm, stream);
  case CGL_BARRIER: /* of the byte that orders the group's calls */
    return nccl.AllReduce(c->to, c->to, 1, BYTES, 0, comm, stream);
  case CGL_ALL_TO_ALL:
  case CGL_EXCHANGE:
    break;
  }
  return transfers_run(c, size, comm, stream);
}


cgl_status cgl_nccl_run(cgl_nccl_group *group, const cgl_mpi_call *call,
                        int size, CUstream stream, const char *operation) {
  const bool reduces = call->what == CGL_ALL_REDUCE ||
                       call->what == CGL_REDUCE ||
                       call->what == CGL_REDUCE_SCATTER;
  if (reduces && type_number(call->type) < 0) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "NCCL reduces no elements of %s", cgl_type_name(call->type));
    return cgl_fail_hint("reduce int32 instead");
  }
  return nccl_check(call_run(group, call, size, stream), group->comm,
                    operation);
}


/* ---- groups ---- */

/* NCCL connects ranks when they first talk, which a capture is no place for. */
static cgl_status group_connect(const cgl_ranks *ranks, const char *operation) {
  cgl_context *context = ranks->object.context;
  const size_t bytes = 2 * (size_t)ranks->group->size;
  cgl_stream *stream = NULL;
  cgl_buffer *buffer = NULL;
  cgl_status status = cgl_stream_default(context, &stream);
  if (!status)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_uint8, bytes, &buffer);
  if (!status) {
    char *memory = cgl_buffer_fixed(buffer);
    const cgl_mpi_call sum = {
        .what = CGL_BARRIER, .type = CGL_TYPE_uint8, .to = memory, .count = 1};
    const cgl_mpi_call swap = {.what = CGL_ALL_TO_ALL,
                               .type = CGL_TYPE_uint8,
                               .from = memory,
                               .to = memory + ranks->group->size,
                               .count = 1};
    const CUstream handle = cgl_stream_handle(stream);
    cgl_context_note_work(context);
    status =
        cgl_nccl_run(ranks->nccl, &sum, ranks->group->size, handle, operation);
    if (!status)
      status = cgl_nccl_run(ranks->nccl, &swap, ranks->group->size, handle,
                            operation);
  }
  if (!status)
    status = cgl_stream_synchronize(stream);
  cgl_buffer_release(buffer);
  cgl_stream_release(stream);
  return status;
}


/* The last one made that such a group may take, or NULL. */
static cgl_nccl_group *find_unused(const cgl_ranks *ranks) {
  const cgl_group *group = ranks->group;
  cgl_nccl_group *g = first;
  while (g && (g->used || !g->serial || g->size != group->size ||
               g->rank != group->rank ||
               g->context != ranks->object.context->serial ||
               memcmp(g->members, group->members,
                      (size_t)g->size * sizeof *g->members) != 0))
    g = g->next;
  return g;
}


/* The one that all ranks of the group have unused, which is the group's now;
   NULL: there is none.  The ranks may have ended their groups at other times.
 */
static cgl_nccl_group *take_unused(const cgl_ranks *ranks, uint64_t *serials,
                                   const char *operation) {
  pthread_mutex_lock(&lock);
  cgl_nccl_group *g = find_unused(ranks);
  uint64_t mine = g ? g->serial : 0;
  pthread_mutex_unlock(&lock);
  const cgl_mpi_call gather = {.what = CGL_ALL_GATHER,
                               .type = CGL_TYPE_uint64,
                               .count = 1,
                               .from = &mine,
                               .to = serials};
  cgl_ranks_do(ranks->group, &gather, operation);
  for (int i = 0; i < ranks->group->size; i++)
    if (!mine || serials[i] != mine)
      return NULL;
  pthread_mutex_lock(&lock);
  g->used = true;
  pthread_mutex_unlock(&lock);
  return g;
}


static cgl_nccl_group *group_new(const cgl_ranks *ranks) {
  const cgl_group *group = ranks->group;
  const size_t bytes = (size_t)group->size * sizeof *group->members;
  cgl_nccl_group *g = calloc(1, sizeof *g + bytes);
  if (!g)
    return NULL;
  g->context = ranks->object.context->serial;
  g->used = true;
  g->rank = group->rank;
  g->size = group->size;
  memcpy(g->members, group->members, bytes);
  pthread_mutex_lock(&lock);
  g->next = first;
  first = g;
  pthread_mutex_unlock(&lock);
  return g;
}


/* Makes a communicator, with a number that the first rank gives. */
static cgl_status group_init(const cgl_ranks *ranks, const char *operation) {
  static atomic_uint_fast32_t made;
  const cgl_group *group = ranks->group;
  struct {
    nccl_id id;
    uint64_t serial;
  } told = {.serial = 0};
  cgl_status status = CGL_OK;
  if (!group->rank) {
    told.serial = ((uint64_t)group->members[0] + 1) << 32 |
                  (atomic_fetch_add(&made, 1) + 1);
    status = nccl_check(nccl.GetUniqueId(&told.id), NULL, operation);
  }
  if (status)
    return status;
  const cgl_mpi_call tell = {.what = CGL_BROADCAST,
                             .type = CGL_TYPE_uint8,
                             .count = sizeof told,
                             .from = &told,
                             .to = &told};
  cgl_ranks_do(group, &tell, operation);
  status = nccl_check(
      nccl.CommInitRank(&ranks->nccl->comm, group->size, told.id, group->rank),
      NULL, operation);
  if (!status)
    status = group_connect(ranks, operation);
  ranks->nccl->serial = status ? 0 : told.serial;
  return status;
}


cgl_status cgl_nccl_join(cgl_ranks *ranks, const char *operation) {
  cgl_status status = nccl_open(operation);
  if (status)
    return status;
  uint64_t *serials = calloc((size_t)ranks->group->size, sizeof *serials);
  ranks->nccl = serials ? take_unused(ranks, serials, operation) : NULL;
  free(serials);
  if (ranks->nccl) /* what it did for another group may be under way */
    return cgl_context_synchronize(ranks->object.context);
  ranks->nccl = serials ? group_new(ranks) : NULL;
  if (!ranks->nccl)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for NCCL");
  return group_init(ranks, operation);
}


void cgl_nccl_leave(cgl_nccl_group *group) {
  pthread_mutex_lock(&lock);
  group->used = false;
  pthread_mutex_unlock(&lock);
}
