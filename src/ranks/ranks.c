/* Groups of ranks. */
#include "ranks/ranks.h"

#include <stdlib.h>
#include <string.h>


void cgl_ranks_drop_group(cgl_group *group) {
  if (!group || atomic_fetch_sub(&group->references, 1) > 1)
    return;
  free(group->issued);
  free(group);
}


static void ranks_destroy(cgl_object *object) {
  cgl_ranks *ranks = (cgl_ranks *)object;
  if (ranks->watched)
    cgl_watch_end(&ranks->watch);
  if (ranks->nccl)
    cgl_nccl_leave(ranks->nccl);
  cgl_buffer_release(ranks->order);
  cgl_event_release(ranks->last);
  cgl_ranks_drop_group(ranks->group);
  free(ranks);
}


CGL_OBJECT_KIND(ranks, .destroy = ranks_destroy)


void cgl_ranks_do(const cgl_group *group, const cgl_mpi_call *call,
                  const char *operation) {
  cgl_progress request = {.kind = CGL_PROGRESS_CALL,
                          .group = group,
                          .call = *call,
                          .operation = operation,
                          .site = cgl_site_here};
  request.call.group = group->number;
  request.call.aside = true;
  cgl_progress_do(&request);
}


/* A group needs no order of its calls when there is one rank. */
static cgl_status ranks_prepare(cgl_ranks *ranks, const char *operation) {
  cgl_context *context = ranks->object.context;
  cgl_stream *stream = NULL;
  if (ranks->group->size == 1)
    return CGL_OK;
  cgl_status status = cgl_event_create(context, false, &ranks->last);
  if (!status)
    status = cgl_stream_default(context, &stream);
  if (!status)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_uint8, 1, &ranks->order);
  cgl_stream_release(stream);
  if (!status && context->driver->image_format != CGL_IMAGE_HOST)
    status = cgl_nccl_join(ranks, operation);
  ranks->watched = !status && (ranks->nccl || cgl_watch_is_for_all());
  if (ranks->watched)
    cgl_watch_begin(&ranks->watch, ranks->group, context);
  return status;
}


static cgl_status ranks_make(cgl_context *context, int size, cgl_ranks **made,
                             const char *operation) {
  cgl_ranks *ranks = *made = calloc(1, sizeof *ranks);
  cgl_group *group =
      calloc(1, sizeof *group + (size_t)size * sizeof *group->members);
  cgl_issued *issued =
      calloc(1, sizeof *issued + (size_t)size * sizeof *issued->with);
  if (!ranks || !group || !issued) {
    free(issued);
    free(group);
    free(ranks);
    *made = NULL;
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for a group of ranks");
  }
  cgl_object_init(&ranks->object, &ranks_kind, context);
  atomic_init(&group->references, 1);
  group->size = size;
  group->issued = issued;
  ranks->group = group;
  return CGL_OK;
}


static cgl_status ranks_end_make(cgl_ranks **ranks, cgl_status status,
                                 const char *operation) {
  if (!status)
    status = ranks_prepare(*ranks, operation);
  if (status && *ranks) {
    cgl_ranks_release(*ranks);
    *ranks = NULL;
  }
  return status;
}


cgl_status cgl_ranks_open(cgl_context *context, cgl_ranks **ranks) {
  static const char operation[] = "ranks";
  const char *launcher;
  int rank = 0, size = 1;
  const int told = cgl_launcher_size(&launcher);
  *ranks = NULL;
  cgl_status status = told > 1 ? cgl_progress_start(&rank, &size) : CGL_OK;
  if (!status && size != told) {
    cgl_fail(CGL_ERROR_RANKS, operation, "%s started %d ranks, and %s sees %d",
             launcher, told, cgl_progress_library(), size);
    return cgl_fail_hint("start them by the mpirun of the MPI that "
                         "cgraphlua-mpi.so was built with");
  }
  if (!status)
    status = cgl_context_enter(context, operation);
  if (!status)
    status = ranks_make(context, size, ranks, operation);
  if (status)
    return status;
  (*ranks)->group->rank = rank;
  for (int i = 0; i < size; i++)
    (*ranks)->group->members[i] = i;
  return ranks_end_make(ranks, CGL_OK, operation);
}


/* A number that the ranks of a group agree on, and no other group has. */
static uint64_t split_number(cgl_ranks *ranks, int color) {
  uint64_t hash = ranks->group->id ^ UINT64_C(0x9e3779b97f4a7c15);
  hash = (hash ^ ++ranks->nsplits) * UINT64_C(0xbf58476d1ce4e5b9);
  return (hash ^ (uint64_t)color ^ hash >> 31) * UINT64_C(0x94d049bb133111eb);
}


/* All of them tell their place in the world. */
static void split_learn_members(cgl_group *made, int rank,
                                const char *operation) {
  const cgl_mpi_call gather = {.what = CGL_ALL_GATHER,
                               .type = CGL_TYPE_int32,
                               .count = 1,
                               .from = &rank,
                               .to = made->members};
  cgl_ranks_do(made, &gather, operation);
}


static cgl_status split_all(cgl_ranks *ranks, int color, int key,
                            cgl_ranks **split, const char *operation) {
  cgl_progress request = {
      .kind = CGL_PROGRESS_SPLIT,
      .group = ranks->group,
      .call = {.what = CGL_BARRIER, .group = ranks->group->number},
      .operation = operation,
      .site = cgl_site_here,
      .split = {.color = color, .key = key}};
  const uint64_t id = split_number(ranks, color);
  cgl_progress_do(&request);
  if (request.split.group < 0)
    return color < 0 ? CGL_OK
                     : cgl_fail(CGL_ERROR_SYSTEM, operation,
                                "MPI makes no more groups");
  cgl_status status =
      ranks_make(ranks->object.context, request.split.size, split, operation);
  if (status)
    return status;
  cgl_group *made = (*split)->group;
  made->number = request.split.group;
  made->id = id;
  made->rank = request.split.rank;
  for (int i = 0; i < made->size; i++)
    made->members[i] = i;
  split_learn_members(made, ranks->group->members[ranks->group->rank],
                      operation);
  return CGL_OK;
}


cgl_status cgl_ranks_split(cgl_ranks *ranks, int color, int key,
                           cgl_ranks **split) {
  static const char operation[] = "ranks:split";
  *split = NULL;
  cgl_status status = cgl_context_enter(ranks->object.context, operation);
  /* Open MPI 4.1 may never end a split during other collectives. */
  if (!status && ranks->group->size > 1)
    status = cgl_context_synchronize(ranks->object.context);
  if (!status && ranks->group->size > 1)
    status = split_all(ranks, color, key, split, operation);
  else if (!status && color >= 0) {
    status = ranks_make(ranks->object.context, 1, split, operation);
    if (!status)
      (*split)->group->members[0] = ranks->group->members[0];
  }
  return *split ? ranks_end_make(split, status, operation) : status;
}


int cgl_ranks_rank(const cgl_ranks *ranks) {
  return ranks->group->rank;
}


int cgl_ranks_size(const cgl_ranks *ranks) {
  return ranks->group->size;
}


const char *cgl_ranks_library(const cgl_ranks *ranks) {
  return ranks->group->size == 1 ? ""
         : ranks->nccl           ? cgl_nccl_name()
                                 : cgl_progress_library();
}


cgl_status cgl_ranks_set_seconds(double seconds) {
  if (!(seconds > 0 && seconds <= 1e9)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "ranks",
             "a rank cannot wait for %g seconds", seconds);
    return cgl_fail_hint("give seconds from more than 0 to 1e9");
  }
  cgl_progress_set_seconds(seconds);
  return CGL_OK;
}
