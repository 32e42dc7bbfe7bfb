/* User objects: a pointer with a destructor, kept alive by counted references
   of the caller, of graphs and of executables. */
#include "driver/host/graph/graph.h"

#include <stdlib.h>

struct CUuserObject_st {
  host_task task; /* runs the destructor; first member */
  CUhostFn destroy;
  void *pointer;
  uint64_t refs; /* under host_lock */
};


static void user_destroy(host_task *task) {
  struct CUuserObject_st *object = (struct CUuserObject_st *)task;
  host_callback_begin();
  object->destroy(object->pointer);
  host_callback_end();
  free(object);
}


/* The destructor runs on a worker: never under the lock, never inside the
   call that dropped the last reference. */
static void user_unref(struct CUuserObject_st *object, uint64_t count) {
  object->refs -= count;
  if (object->refs > 0)
    return;
  host_handle_remove(HOST_HANDLE_USER_OBJECT, object);
  object->task.run = user_destroy;
  host_task_submit(&object->task);
}


bool host_user_copy(host_user_reference **list,
                    const host_user_reference *from) {
  for (; from; from = from->next) {
    host_user_reference *reference = malloc(sizeof *reference);
    if (!reference)
      return false;
    *reference = (host_user_reference){from->object, from->count, *list};
    from->object->refs += from->count;
    *list = reference;
  }
  return true;
}


void host_user_drop(host_user_reference *list) {
  while (list) {
    host_user_reference *next = list->next;
    user_unref(list->object, list->count);
    free(list);
    list = next;
  }
}


CUresult host_user_new(CUuserObject *out, void *pointer, CUhostFn destroy,
                       unsigned refs) {
  struct CUuserObject_st *object = calloc(1, sizeof *object);
  if (!object || !host_handle_add(HOST_HANDLE_USER_OBJECT, object)) {
    free(object);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  object->destroy = destroy;
  object->pointer = pointer;
  object->refs = refs;
  *out = object;
  return CUDA_SUCCESS;
}


CUresult host_user_release(CUuserObject object, unsigned count) {
  if (!host_handle_live(HOST_HANDLE_USER_OBJECT, object) || count == 0 ||
      count > object->refs)
    return CUDA_ERROR_INVALID_VALUE;
  user_unref(object, count);
  return CUDA_SUCCESS;
}


CUresult host_user_keep(CUgraph graph, CUuserObject object, unsigned count,
                        bool move) {
  if (!host_handle_live(HOST_HANDLE_USER_OBJECT, object) ||
      (move && count > object->refs))
    return CUDA_ERROR_INVALID_VALUE;
  host_user_reference *reference = malloc(sizeof *reference);
  if (!reference)
    return CUDA_ERROR_OUT_OF_MEMORY;
  *reference = (host_user_reference){object, count, graph->users};
  graph->users = reference;
  if (!move)
    object->refs += count;
  return CUDA_SUCCESS;
}
