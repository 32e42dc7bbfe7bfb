/* User objects: a pointer with a destructor, kept alive by counted references
   of the caller, of graphs and of executables. */
#include "driver/host/graph/graph.h"
#include "driver/host/calls/calls.h"

#include <limits.h>
#include <stdlib.h>

struct CUuserObject_st {
  host_task task; /* runs the destructor; first member */
  CUhostFn destroy;
  void *pointer;
  uint64_t refs; /* under host_lock */
};


static void destroy(host_task *task) {
  struct CUuserObject_st *object = (struct CUuserObject_st *)task;
  host_callback_begin();
  object->destroy(object->pointer);
  host_callback_end();
  free(object);
}


/* The destructor runs on a worker: never under the lock, never inside the
   call that dropped the last reference. */
static void unref(struct CUuserObject_st *object, uint64_t count) {
  object->refs -= count;
  if (object->refs > 0)
    return;
  host_handle_remove(HOST_HANDLE_USER_OBJECT, object);
  object->task.run = destroy;
  host_task_submit(&object->task);
}


bool host_user_copy(host_user_reference **list,
                    const host_user_reference *from) {
  for (; from != NULL; from = from->next) {
    host_user_reference *reference = malloc(sizeof *reference);
    if (reference == NULL)
      return false;
    *reference = (host_user_reference){from->object, from->count, *list};
    from->object->refs += from->count;
    *list = reference;
  }
  return true;
}


void host_user_drop(host_user_reference *list) {
  while (list != NULL) {
    host_user_reference *next = list->next;
    unref(list->object, list->count);
    free(list);
    list = next;
  }
}


CUresult host_cuUserObjectCreate(CUuserObject *object_out, void *ptr,
                                 CUhostFn destroy_fn,
                                 unsigned int initialRefcount,
                                 unsigned int flags) {
  HOST_TRY(host_check_process());
  if (object_out == NULL || destroy_fn == NULL || initialRefcount == 0 ||
      initialRefcount > INT_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
    return CUDA_ERROR_INVALID_VALUE;
  struct CUuserObject_st *object = calloc(1, sizeof *object);
  if (object == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  object->destroy = destroy_fn;
  object->pointer = ptr;
  object->refs = initialRefcount;
  host_lock();
  bool known = host_handle_add(HOST_HANDLE_USER_OBJECT, object);
  host_unlock();
  if (!known) {
    free(object);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *object_out = object;
  return CUDA_SUCCESS;
}


CUresult host_cuUserObjectRelease(CUuserObject object, unsigned int count) {
  HOST_TRY(host_check_process());
  CUresult result = CUDA_SUCCESS;
  host_lock();
  if (!host_handle_live(HOST_HANDLE_USER_OBJECT, object) || count == 0 ||
      count > object->refs)
    result = CUDA_ERROR_INVALID_VALUE;
  else
    unref(object, count);
  host_unlock();
  return result;
}


CUresult host_cuGraphRetainUserObject(CUgraph graph, CUuserObject object,
                                      unsigned int count, unsigned int flags) {
  HOST_TRY(host_check_process());
  if (count == 0 || count > INT_MAX ||
      (flags & ~(unsigned)CU_GRAPH_USER_OBJECT_MOVE) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  bool move = (flags & CU_GRAPH_USER_OBJECT_MOVE) != 0;
  host_user_reference *reference = malloc(sizeof *reference);
  if (reference == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = CUDA_SUCCESS;
  host_lock();
  if (!host_graph_is_live(graph) ||
      !host_handle_live(HOST_HANDLE_USER_OBJECT, object) ||
      (move && count > object->refs)) {
    result = CUDA_ERROR_INVALID_VALUE;
    free(reference);
  } else {
    *reference = (host_user_reference){object, count, graph->users};
    graph->users = reference;
    if (!move)
      object->refs += count;
  }
  host_unlock();
  return result;
}
