/* The driver's calls that make executables, launch and destroy them. */
#include "driver/host/graph/exec.h"
#include "driver/host/base/runtime.h"

#include <assert.h>
#include <stdlib.h>

/* What cuGraphExecGetFlags tells of them. */
#define KEPT_FLAGS                                   \
  (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | \
   CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)

#define KNOWN_FLAGS                                  \
  (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | \
   CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |              \
   CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH |       \
   CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)


static bool exec_is_live(CUgraphExec exec) {
  return host_handle_live(HOST_HANDLE_EXEC, exec);
}


static CUresult flags_check(cuuint64_t flags) {
  const cuuint64_t exclusive = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                               CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH;
  if ((flags & ~(cuuint64_t)KNOWN_FLAGS) != 0 ||
      (flags & exclusive) == exclusive)
    return CUDA_ERROR_INVALID_VALUE;
  return CUDA_SUCCESS;
}


/* ---- instantiate ---- */

static CUresult exec_new(CUgraphExec *out, CUgraph graph, cuuint64_t flags,
                         CUgraphNode *error, CUgraphInstantiateResult *why) {
  CUgraphExec exec = calloc(1, sizeof *exec);
  if (exec == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  atomic_init(&exec->refs, 1);
  exec->flags = flags;
  exec->patches_end = &exec->patches;
  assert(host_graph_is_valid(graph));
  CUresult result = host_exec_compile(exec, graph, error, why);
  if (result == CUDA_SUCCESS && !host_user_copy(&exec->users, graph->users))
    result = CUDA_ERROR_OUT_OF_MEMORY;
  if (result == CUDA_SUCCESS && !host_handle_add(HOST_HANDLE_EXEC, exec))
    result = CUDA_ERROR_OUT_OF_MEMORY;
  if (result != CUDA_SUCCESS) {
    host_exec_clear(exec);
    free(exec);
    return result;
  }
  *out = exec;
  return CUDA_SUCCESS;
}


/* Graphs with memory or conditional nodes have one executable at a time. */
static CUresult instantiate(CUgraphExec *out, CUgraph graph, cuuint64_t flags,
                            CUgraphNode *error, CUgraphInstantiateResult *why) {
  if (!host_graph_is_live(graph))
    return CUDA_ERROR_INVALID_VALUE;
  HOST_TRY(host_capture_unsafe());
  if (graph->owner != NULL)
    return CUDA_ERROR_NOT_SUPPORTED; /* a part of another */
  bool single =
      host_graph_has_memory(graph) || host_graph_has_conditional(graph);
  if (single && graph->executables > 0)
    return CUDA_ERROR_NOT_SUPPORTED;
  CUresult result = exec_new(out, graph, flags, error, why);
  if (result == CUDA_SUCCESS && single) {
    (*out)->claim = graph;
    graph->refs++;
    graph->executables++;
  }
  return result;
}


/* Backs the memory of the graph's alloc nodes, as the first launch would. */
static CUresult upload(CUgraphExec exec) {
  for (uint32_t i = 0; i < exec->nblocks; i++) {
    CUresult result = host_block_commit(exec->blocks[i]);
    if (result != CUDA_SUCCESS)
      return result;
  }
  return CUDA_SUCCESS;
}


static void destroy(CUgraphExec exec) {
  host_handle_remove(HOST_HANDLE_EXEC, exec);
  if (exec->claim != NULL)
    exec->claim->executables--;
  host_exec_unref(exec, true);
}


CUresult host_cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph,
                                 unsigned long long flags) {
  HOST_TRY(host_check());
  if (phGraphExec == NULL || (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0)
    return CUDA_ERROR_INVALID_VALUE; /* there is no stream to upload in */
  HOST_TRY(flags_check(flags));
  CUgraphNode error;
  CUgraphInstantiateResult why;
  host_lock();
  CUresult result = instantiate(phGraphExec, hGraph, flags, &error, &why);
  host_unlock();
  return result;
}


CUresult host_cuGraphInstantiateWithParams(
    CUgraphExec *phGraphExec, CUgraph hGraph,
    CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
  HOST_TRY(host_check());
  if (phGraphExec == NULL || instantiateParams == NULL)
    return CUDA_ERROR_INVALID_VALUE;
  CUDA_GRAPH_INSTANTIATE_PARAMS *params = instantiateParams;
  params->hErrNode_out = NULL;
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  HOST_TRY(flags_check(params->flags));
  CUgraphNode error = NULL;
  CUgraphInstantiateResult why = CUDA_GRAPH_INSTANTIATE_ERROR;
  host_lock();
  CUresult result =
      instantiate(phGraphExec, hGraph, params->flags, &error, &why);
  if (result == CUDA_SUCCESS &&
      (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) {
    result = upload(*phGraphExec);
    if (result != CUDA_SUCCESS)
      destroy(*phGraphExec);
  }
  host_unlock();
  params->hErrNode_out = result == CUDA_SUCCESS ? NULL : error;
  params->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : why;
  return result;
}


/* ---- destroy ---- */

CUresult host_cuGraphExecDestroy(CUgraphExec hGraphExec) {
  HOST_TRY(host_check_process());
  host_lock();
  CUresult result = exec_is_live(hGraphExec) ? host_capture_unsafe()
                                             : CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS)
    destroy(hGraphExec);
  host_unlock();
  return result;
}


/* ---- launch ---- */

/* What the alloc and free steps leave allocated, as the calls will see it.
   A block that the graph itself frees is not allocated afterwards. */
static CUresult memory_check(CUgraphExec exec) {
  bool auto_free =
      (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  for (uint32_t i = 0; i < exec->nblocks; i++) {
    bool allocates = (exec->block_use[i] & HOST_BLOCK_ALLOCATED) != 0;
    if (allocates ? exec->blocks[i]->allocated && !auto_free
                  : !exec->blocks[i]->allocated)
      return CUDA_ERROR_INVALID_VALUE;
  }
  return upload(exec);
}


static void memory_settle(CUgraphExec exec) {
  for (uint32_t i = 0; i < exec->nblocks; i++)
    host_block_set_allocated(exec->blocks[i],
                             (exec->block_use[i] & HOST_BLOCK_FREED) == 0);
}


/* A run that was used before, or a new one; NULL: no memory. */
static host_exec_run *run_new(CUgraphExec exec) {
  if (exec->spare == NULL)
    exec->spare = atomic_exchange(&exec->ended, NULL);
  host_exec_run *run = exec->spare;
  if (run != NULL) {
    exec->spare = run->next;
    return run;
  }
  run = calloc(1, sizeof *run);
  if (run == NULL)
    return NULL;
  run->exec = exec;
  if (exec->nevents > 0)
    run->fences = calloc(exec->nevents, sizeof *run->fences);
  if (exec->nevents > 0 && run->fences == NULL) {
    free(run);
    return NULL;
  }
  return run;
}


/* Each record node gets a fence of this launch, which its event holds from
   now on; each wait node awaits what its event held when the node's turn in
   the order of the graph came. */
static CUresult fences_take(CUgraphExec exec, host_exec_run *run) {
  for (uint32_t i = 0; i < exec->nevents; i++)
    if (exec->records[i] && (run->fences[i] = host_fence_create()) == NULL)
      return CUDA_ERROR_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < exec->nevents; i++) {
    CUevent event = exec->events[i];
    if (exec->records[i]) {
      host_capture_forget_event(event);
      host_fence_release(event->fence);
      event->fence = host_fence_retain(run->fences[i]);
    } else if (event->fence != NULL) {
      run->fences[i] = host_fence_retain(event->fence);
    }
  }
  return CUDA_SUCCESS;
}


/* Without a launch: puts the run back. */
static void run_cancel(CUgraphExec exec, host_exec_run *run) {
  for (uint32_t i = 0; i < exec->nevents; i++) {
    if (run->fences[i] != NULL && exec->records[i])
      host_fence_signal(run->fences[i]); /* nobody is to wait for it */
    host_fence_release(run->fences[i]);
    run->fences[i] = NULL;
  }
  run->next = exec->spare;
  exec->spare = run;
}


/* The changes since the last launch go with this one. */
static void patches_take(CUgraphExec exec, host_exec_run *run) {
  run->patches = exec->patches;
  for (host_patch *patch = run->patches; patch != NULL; patch = patch->next)
    patch->node->pending = NULL;
  exec->patches = NULL;
  exec->patches_end = &exec->patches;
}


/* They wait for another launch after all. */
static void patches_return(CUgraphExec exec, host_exec_run *run) {
  exec->patches = run->patches;
  exec->patches_end = &exec->patches;
  for (host_patch *patch = run->patches; patch != NULL; patch = patch->next) {
    patch->node->pending = patch;
    exec->patches_end = &patch->next;
  }
  run->patches = NULL;
}


static CUresult launch(CUgraphExec exec, CUstream stream) {
  host_exec_run *run = run_new(exec);
  if (run == NULL)
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = fences_take(exec, run);
  if (result != CUDA_SUCCESS) {
    run_cancel(exec, run);
    return result;
  }
  run->ticket = exec->next_ticket++;
  patches_take(exec, run);
  atomic_fetch_add(&exec->refs, 1);
  host_op op = {.kind = HOST_OP_EXEC, .exec = run};
  host_exec_launching = run;
  result = host_enqueue(stream, &op);
  host_exec_launching = NULL;
  if (result != CUDA_SUCCESS) {
    atomic_fetch_sub(&exec->refs, 1);
    exec->next_ticket--;
    patches_return(exec, run);
    run_cancel(exec, run);
  }
  return result;
}


/* Launches may run ahead of the device by one or two times PILE; then the
   call waits, as a full queue makes a GPU's driver wait.  Returns the fence to
   wait for, or NULL. */
static host_fence *pile_mark(CUgraphExec exec, CUstream stream) {
  enum { PILE = 2048 };
  if (exec->next_ticket % PILE != 0)
    return NULL;
  host_fence *before = exec->mark;
  exec->mark = host_stream_fence(stream);
  return before;
}


/* What launches and uploads ask of both; a capture that hears of either is
   broken. */
static CUresult stream_check(CUgraphExec exec, CUstream stream) {
  if (!exec_is_live(exec))
    return CUDA_ERROR_INVALID_VALUE;
  if (stream == NULL)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream->capture == NULL)
    return CUDA_SUCCESS;
  host_capture_break(stream);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}


CUresult host_cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  HOST_TRY(host_check_callback_stream(hStream));
  host_fence *full = NULL;
  host_lock();
  CUstream stream = host_stream_resolve(hStream);
  CUresult result = stream_check(hGraphExec, stream);
  if (result == CUDA_SUCCESS && stream == host_stream_resolve(CU_STREAM_LEGACY))
    result = host_capture_legacy();
  if (result == CUDA_SUCCESS)
    result = memory_check(hGraphExec);
  if (result == CUDA_SUCCESS)
    result = launch(hGraphExec, stream);
  if (result == CUDA_SUCCESS) {
    memory_settle(hGraphExec);
    full = pile_mark(hGraphExec, stream);
  }
  host_unlock_and_wait(full);
  return result;
}


CUresult host_cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
  HOST_TRY(host_check_callback_stream(hStream));
  host_lock();
  CUresult result = stream_check(hGraphExec, host_stream_resolve(hStream));
  if (result == CUDA_SUCCESS)
    result = upload(hGraphExec);
  host_unlock();
  return result;
}


CUresult host_cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags) {
  HOST_TRY(host_check_process());
  CUresult result = CUDA_SUCCESS;
  host_lock();
  if (flags == NULL || !exec_is_live(hGraphExec))
    result = CUDA_ERROR_INVALID_VALUE;
  else
    *flags = hGraphExec->flags & KEPT_FLAGS;
  host_unlock();
  return result;
}
