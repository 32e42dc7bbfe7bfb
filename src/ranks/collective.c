/* Collectives: checked, issued, noted. */
#include "ranks/ranks.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/call/call.h"

/* A call as graphs and host functions keep it. */
typedef struct collective {
  atomic_int references;
  cgl_group *group; /* retained */
  cgl_ranks *ranks; /* borrowed: for the issue alone */
  cgl_mpi_call call;
  const char *operation;
  cgl_site site;
  bool captured;
  cgl_mpi_transfer transfers[];
} collective;


static void collective_retain(void *data) {
  atomic_fetch_add(&((collective *)data)->references, 1);
}


static void collective_release(void *data) {
  collective *c = data;
  if (atomic_fetch_sub(&c->references, 1) > 1)
    return;
  cgl_ranks_drop_group(c->group);
  free(c);
}


/* ---- what runs ---- */

/* In stream order, on a thread of the device's. */
static void collective_do(void *data) {
  collective *c = data;
  cgl_progress request = {.kind = CGL_PROGRESS_CALL,
                          .group = c->group,
                          .call = c->call,
                          .operation = c->operation,
                          .site = c->site};
  cgl_progress_do(&request);
}


static void collective_do_once(void *data) {
  collective_do(data);
  collective_release(data);
}


/* The device is about to run the call. */
static void collective_launched(void *data, uint64_t times) {
  collective *c = data;
  cgl_watch_count(c->group, &c->call, times);
  cgl_progress_note(c->operation, c->site);
}


static int collective_run(void *data, void *stream) {
  collective *c = data;
  cgl_context *context = c->ranks->object.context;
  if (c->ranks->watched && !c->captured)
    collective_launched(c, 1);
  if (c->ranks->nccl) {
    /* It waits while launches fill the device's queue. */
    cgl_context_block(context);
    const int failed = cgl_nccl_run(c->ranks->nccl, &c->call, c->group->size,
                                    stream, c->operation);
    cgl_context_unblock(context);
    return failed;
  }
  if (!c->captured)
    collective_retain(c);
  const CUresult result = context->driver->cuLaunchHostFunc(
      stream, c->captured ? collective_do : collective_do_once, c);
  if (result && !c->captured)
    collective_release(c);
  return cgl_fail_driver(context, result, c->operation, "cuLaunchHostFunc");
}


/* ---- what is issued ---- */

/* A call's buffers: what it reads, or NULL, and what it writes, or NULL. */
typedef struct uses {
  cgl_buffer *const *reads;
  cgl_buffer *const *writes;
  size_t nreads, nwrites;
} uses;


/* The group's calls keep their order when the stream is another one than that
   of the call before, in the same capture or outside captures. */
static cgl_status order_begin(cgl_ranks *ranks, cgl_stream *stream) {
  const uint64_t capture =
      stream->capture ? stream->capture->underway.serial : 0;
  return ranks->stream && ranks->stream != stream->serial &&
                 ranks->capture == capture
             ? cgl_stream_wait_event(stream, ranks->last)
             : CGL_OK;
}


static void order_end(cgl_ranks *ranks, cgl_stream *stream) {
  if (cgl_event_record(ranks->last, stream))
    return;
  ranks->stream = stream->serial;
  ranks->capture = stream->capture ? stream->capture->underway.serial : 0;
}


static collective *collective_make(cgl_ranks *ranks, const cgl_mpi_call *call,
                                   const char *operation) {
  collective *c =
      malloc(sizeof *c + call->ntransfers * sizeof *call->transfers);
  if (!c) {
    cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a call");
    return NULL;
  }
  atomic_fetch_add(&ranks->group->references, 1);
  *c = (collective){.ranks = ranks,
                    .group = ranks->group,
                    .call = *call,
                    .operation = operation,
                    .site = cgl_site_here};
  atomic_init(&c->references, 1);
  c->call.group = ranks->group->number;
  c->call.transfers = c->transfers;
  if (call->ntransfers)
    memcpy(c->transfers, call->transfers,
           call->ntransfers * sizeof *call->transfers);
  return c;
}


/* The memory of a call, and that of the group, which every call writes: so they
   stay in order. */
static size_t uses_list(const uses *u, const cgl_ranks *ranks,
                        cgl_call_use *list) {
  size_t n = 0;
  for (size_t i = 0; i < u->nreads; i++)
    list[n++] = (cgl_call_use){u->reads[i], false};
  for (size_t i = 0; i < u->nwrites; i++)
    list[n++] = (cgl_call_use){u->writes[i], true};
  list[n++] = (cgl_call_use){ranks->order, true};
  return n;
}


static cgl_status collective_issue(cgl_ranks *ranks, cgl_stream *stream,
                                   const cgl_mpi_call *call, const uses *u,
                                   const char *operation) {
  cgl_call_use list[CGL_RANKS_MAX_TRANSFERS + 3];
  cgl_call work = {.name = operation,
                   .issue = collective_run,
                   .uses = list,
                   .nuses = uses_list(u, ranks, list),
                   .overwrites = true,
                   .notes = true,
                   .on_host = true,
                   .retain = collective_retain,
                   .release = collective_release,
                   .launched = ranks->watched ? collective_launched : NULL};
  cgl_status status = cgl_call_check(stream, &work);
  if (!status && call->what != CGL_EXCHANGE)
    status = cgl_ranks_check(ranks->group, operation, call, stream->capture);
  if (!status)
    status = order_begin(ranks, stream);
  collective *c = status ? NULL : collective_make(ranks, call, operation);
  if (!c)
    return status ? status : CGL_ERROR_NO_MEMORY;
  c->captured = stream->capture;
  work.user = work.owner = c;
  status = cgl_call_issue_for(&ranks->object, stream, &work);
  collective_release(c);
  if (!status)
    order_end(ranks, stream);
  return status;
}


/* ---- what is refused ---- */

static cgl_status refuse(const char *operation, const char *hint,
                         const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static cgl_status refuse(const char *operation, const char *hint,
                         const char *format, ...) {
  char text[200];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation, "%s", text);
  return cgl_fail_hint("%s", hint);
}


static bool buffers_overlap(const cgl_buffer *a, const cgl_buffer *b) {
  return a->address < b->address + cgl_buffer_bytes(b) &&
         b->address < a->address + cgl_buffer_bytes(a);
}


/* `dst` has the type of `src` and `multiple` times `of` elements; it may be
   `src` when `in_place` says so. */
static cgl_status pair_check(const cgl_buffer *src, const cgl_buffer *dst,
                             size_t wanted, bool in_place,
                             const char *operation) {
  if (src->type != dst->type || dst->count != wanted)
    return refuse(operation, "make it of that type and size",
                  "%zu elements of %s give %zu, and dst has %zu of %s",
                  src->count, cgl_type_name(src->type), wanted, dst->count,
                  cgl_type_name(dst->type));
  const bool same = in_place && src->address == dst->address;
  if (!same && src->count && dst->count && buffers_overlap(src, dst))
    return refuse(operation, "give another buffer",
                  "dst shares memory with src");
  return CGL_OK;
}


static cgl_status root_check(const cgl_ranks *ranks, int root,
                             const char *operation) {
  return root >= 0 && root < ranks->group->size
             ? CGL_OK
             : refuse(operation, "ranks count from 0", "rank %d is none of %d",
                      root, ranks->group->size);
}


static cgl_status operation_check(cgl_ranks_operation reduction, cgl_type type,
                                  const char *operation) {
  const bool logical = reduction == CGL_RANKS_any || reduction == CGL_RANKS_all;
  if (cgl_type_lanes(type) > 1 && reduction != CGL_RANKS_sum)
    return refuse(operation, "elements of several numbers can be summed up",
                  "%s has no such operation", cgl_type_name(type));
  return (unsigned)reduction < CGL_RANKS_OPERATION_COUNT &&
                 logical == (type == CGL_TYPE_bool)
             ? CGL_OK
             : refuse(operation,
                      "any and all reduce bool; sum, product, min and max "
                      "reduce numbers",
                      "%s has no such operation", cgl_type_name(type));
}


static cgl_status count_check(size_t count, const char *operation) {
  return count <= INT_MAX
             ? CGL_OK
             : refuse(operation, "divide it by views",
                      "%zu elements are more than a call takes, %d", count,
                      INT_MAX);
}


static cgl_status order_check(const cgl_ranks *ranks, cgl_stream *stream,
                              const char *operation) {
  return cgl_object_check_device(&ranks->object, &stream->object, operation);
}


/* ---- the collectives ---- */

/* One rank: its own part is all there is. */
static cgl_status alone(cgl_buffer *src, cgl_buffer *dst, cgl_stream *stream) {
  return src->address == dst->address ? CGL_OK
                                      : cgl_buffer_copy(dst, src, stream);
}


/* A collective of two buffers whose arguments are right. */
static cgl_status pair_issue(cgl_ranks *ranks, cgl_stream *stream,
                             cgl_mpi_call call, cgl_buffer *src,
                             cgl_buffer *dst, const char *operation) {
  cgl_buffer *reads[] = {src}, *writes[] = {dst};
  const uses u = {reads, writes, src != NULL, dst != NULL};
  const cgl_type type = src ? src->type : dst->type;
  call.type = cgl_type_number(type);
  call.count *= (size_t)cgl_type_lanes(type);
  call.from = src ? (void *)(uintptr_t)src->address : NULL;
  call.to = dst ? (void *)(uintptr_t)dst->address : NULL;
  cgl_status status = order_check(ranks, stream, operation);
  if (!status)
    status = count_check(call.count, operation);
  if (status)
    return status;
  if (ranks->group->size == 1) {
    status = cgl_call_check_host(stream, operation);
    return status || !src || !dst ? status : alone(src, dst, stream);
  }
  return collective_issue(ranks, stream, &call, &u, operation);
}


cgl_status cgl_ranks_all_reduce(cgl_ranks *ranks, cgl_stream *stream,
                                cgl_ranks_operation reduction, cgl_buffer *src,
                                cgl_buffer *dst) {
  static const char operation[] = "ranks:all_reduce";
  cgl_status status = operation_check(reduction, src->type, operation);
  if (!status)
    status = pair_check(src, dst, src->count, true, operation);
  if (status)
    return status;
  const cgl_mpi_call call = {
      .what = CGL_ALL_REDUCE, .operation = reduction, .count = src->count};
  return pair_issue(ranks, stream, call, src, dst, operation);
}


cgl_status cgl_ranks_reduce(cgl_ranks *ranks, cgl_stream *stream,
                            cgl_ranks_operation reduction, int root,
                            cgl_buffer *src, cgl_buffer *dst) {
  static const char operation[] = "ranks:reduce";
  cgl_status status = operation_check(reduction, src->type, operation);
  if (!status)
    status = root_check(ranks, root, operation);
  if (!status && root == ranks->group->rank && !dst)
    status = refuse(operation, "give a buffer for the result",
                    "this is the root, and dst is missing");
  if (!status && dst)
    status = pair_check(src, dst, src->count, true, operation);
  if (status)
    return status;
  const cgl_mpi_call call = {.what = CGL_REDUCE,
                             .operation = reduction,
                             .root = root,
                             .count = src->count};
  return pair_issue(ranks, stream, call, src,
                    root == ranks->group->rank ? dst : NULL, operation);
}


cgl_status cgl_ranks_broadcast(cgl_ranks *ranks, cgl_stream *stream, int root,
                               cgl_buffer *buffer) {
  static const char operation[] = "ranks:broadcast";
  cgl_status status = root_check(ranks, root, operation);
  if (status)
    return status;
  const cgl_mpi_call call = {
      .what = CGL_BROADCAST, .root = root, .count = buffer->count};
  return pair_issue(ranks, stream, call, buffer, buffer, operation);
}


cgl_status cgl_ranks_all_gather(cgl_ranks *ranks, cgl_stream *stream,
                                cgl_buffer *src, cgl_buffer *dst) {
  static const char operation[] = "ranks:all_gather";
  cgl_status status =
      pair_check(src, dst, src->count * (size_t)ranks->group->size,
                 ranks->group->size == 1, operation);
  const cgl_mpi_call call = {.what = CGL_ALL_GATHER, .count = src->count};
  return status ? status : pair_issue(ranks, stream, call, src, dst, operation);
}


/* Whether the elements divide into a part for each rank. */
static cgl_status parts_check(const cgl_ranks *ranks, const cgl_buffer *src,
                              const char *operation) {
  return src->count % (size_t)ranks->group->size == 0
             ? CGL_OK
             : refuse(operation, "give a multiple",
                      "%zu elements do not divide into %d parts", src->count,
                      ranks->group->size);
}


cgl_status cgl_ranks_reduce_scatter(cgl_ranks *ranks, cgl_stream *stream,
                                    cgl_ranks_operation reduction,
                                    cgl_buffer *src, cgl_buffer *dst) {
  static const char operation[] = "ranks:reduce_scatter";
  const size_t count = src->count / (size_t)ranks->group->size;
  cgl_status status = operation_check(reduction, src->type, operation);
  if (!status)
    status = parts_check(ranks, src, operation);
  if (!status)
    status = pair_check(src, dst, count, ranks->group->size == 1, operation);
  const cgl_mpi_call call = {
      .what = CGL_REDUCE_SCATTER, .operation = reduction, .count = count};
  return status ? status : pair_issue(ranks, stream, call, src, dst, operation);
}


cgl_status cgl_ranks_all_to_all(cgl_ranks *ranks, cgl_stream *stream,
                                cgl_buffer *src, cgl_buffer *dst) {
  static const char operation[] = "ranks:all_to_all";
  cgl_status status = parts_check(ranks, src, operation);
  if (!status)
    status =
        pair_check(src, dst, src->count, ranks->group->size == 1, operation);
  const cgl_mpi_call call = {.what = CGL_ALL_TO_ALL,
                             .count = src->count / (size_t)ranks->group->size};
  return status ? status : pair_issue(ranks, stream, call, src, dst, operation);
}


cgl_status cgl_ranks_barrier(cgl_ranks *ranks, cgl_stream *stream) {
  static const char operation[] = "ranks:barrier";
  const cgl_mpi_call call = {.what = CGL_BARRIER, .count = 1};
  if (ranks->group->size > 1)
    return pair_issue(ranks, stream, call, NULL, ranks->order, operation);
  cgl_status status = order_check(ranks, stream, operation);
  return status ? status : cgl_call_check_host(stream, operation);
}


/* ---- exchanges ---- */

static cgl_status transfers_check(const cgl_ranks *ranks,
                                  const cgl_ranks_transfer *transfers, size_t n,
                                  const char *operation) {
  cgl_status status = CGL_OK;
  if (n > CGL_RANKS_MAX_TRANSFERS)
    return refuse(operation, "divide it", "at most %d transfers are possible",
                  CGL_RANKS_MAX_TRANSFERS);
  for (size_t i = 0; i < n && !status; i++) {
    const cgl_buffer *buffer = transfers[i].buffer;
    status = root_check(ranks, transfers[i].peer, operation);
    if (!status)
      status = count_check(buffer->count * (size_t)cgl_type_lanes(buffer->type),
                           operation);
    for (size_t k = 0; k < n && !status; k++)
      if (k != i && !transfers[i].send && buffer->count &&
          transfers[k].buffer->count &&
          buffers_overlap(buffer, transfers[k].buffer))
        status = refuse(operation, "give each its own",
                        "a buffer that is received shares memory with another "
                        "one of the exchange");
  }
  return status;
}


/* The first transfer of a rank with itself, from index i on; n: none. */
static size_t own_next(const cgl_ranks_transfer *transfers, size_t n, size_t i,
                       int rank, bool send) {
  while (i < n && (transfers[i].send != send || transfers[i].peer != rank))
    i++;
  return i;
}


/* Pairs a rank's transfers with itself: the n-th send is the n-th receive of
   the same exchange, because a later one would wait for this one.  Checks the
   pairs, or copies them on the stream. */
static cgl_status own_pairs(const cgl_ranks_transfer *transfers, size_t n,
                            int rank, cgl_stream *copies,
                            const char *operation) {
  size_t send = own_next(transfers, n, 0, rank, true);
  size_t recv = own_next(transfers, n, 0, rank, false);
  cgl_status status = CGL_OK;
  while (send < n && recv < n && !status) {
    cgl_buffer *src = transfers[send].buffer, *dst = transfers[recv].buffer;
    if (copies)
      status = cgl_buffer_copy(dst, src, copies);
    else
      status = pair_check(src, dst, src->count, false, operation);
    send = own_next(transfers, n, send + 1, rank, true);
    recv = own_next(transfers, n, recv + 1, rank, false);
  }
  if (status || (send == n && recv == n))
    return status;
  return refuse(operation, "put both sides into one exchange",
                "rank %d is this rank itself, and a %s has no other side", rank,
                send < n ? "send" : "receive");
}


cgl_status cgl_ranks_exchange(cgl_ranks *ranks, cgl_stream *stream,
                              const cgl_ranks_transfer *transfers, size_t n) {
  static const char operation[] = "ranks:exchange";
  cgl_mpi_transfer list[CGL_RANKS_MAX_TRANSFERS];
  cgl_buffer *reads[CGL_RANKS_MAX_TRANSFERS], *writes[CGL_RANKS_MAX_TRANSFERS];
  uses u = {.reads = reads, .writes = writes};
  cgl_status status = order_check(ranks, stream, operation);
  if (!status)
    status = transfers_check(ranks, transfers, n, operation);
  if (!status)
    status = own_pairs(transfers, n, ranks->group->rank, NULL, operation);
  if (!status && n && ranks->group->size == 1)
    status = cgl_call_check_host(stream, operation);
  if (status || !n)
    return status;
  if (ranks->group->size == 1)
    return own_pairs(transfers, n, 0, stream, operation);
  for (size_t i = 0; i < n; i++) {
    cgl_buffer *buffer = transfers[i].buffer;
    list[i] = (cgl_mpi_transfer){
        (void *)(uintptr_t)buffer->address,
        buffer->count * (size_t)cgl_type_lanes(buffer->type),
        cgl_type_number(buffer->type), transfers[i].peer, transfers[i].send};
    if (transfers[i].send)
      reads[u.nreads++] = buffer;
    else
      writes[u.nwrites++] = buffer;
  }
  const cgl_mpi_call call = {
      .what = CGL_EXCHANGE, .transfers = list, .ntransfers = n};
  return collective_issue(ranks, stream, &call, &u, operation);
}
