/* Executables: how one is made of a graph, and how a launch of it begins. */
#include "driver/host/graph/exec.h"

#include <assert.h>
#include <stdlib.h>


/* Keeps the user objects of a graph and of the child graphs in it; false
   without memory. */
static bool exec_keep_users(CUgraphExec exec, CUgraph graph) {
  bool room = host_user_copy(&exec->users, graph->users);
  for (CUgraphNode n = graph->first; n && room; n = n->next)
    if (n->op.kind == HOST_OP_CHILD)
      room = exec_keep_users(exec, n->op.child);
  return room;
}


static CUresult exec_new(CUgraphExec *out, CUgraph graph, cuuint64_t flags,
                         CUgraphNode *error, CUgraphInstantiateResult *why) {
  CUgraphExec exec = calloc(1, sizeof *exec);
  if (!exec)
    return CUDA_ERROR_OUT_OF_MEMORY;
  atomic_init(&exec->refs, 1);
  exec->flags = flags;
  exec->patches_end = &exec->patches;
  assert(host_graph_is_valid(graph));
  CUresult result = host_exec_compile(exec, graph, error, why);
  if (result == CUDA_SUCCESS && !exec_keep_users(exec, graph))
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
CUresult host_exec_instantiate(CUgraphExec *out, CUgraph graph,
                               cuuint64_t flags, CUgraphNode *error,
                               CUgraphInstantiateResult *why) {
  if (!host_graph_is_live(graph))
    return CUDA_ERROR_INVALID_VALUE;
  HOST_TRY(host_capture_unsafe());
  if (graph->owner)
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
CUresult host_exec_upload(CUgraphExec exec) {
  for (uint32_t i = 0; i < exec->nblocks; i++) {
    CUresult result = host_block_commit(exec->blocks[i]);
    if (result != CUDA_SUCCESS)
      return result;
  }
  return CUDA_SUCCESS;
}


void host_exec_destroy(CUgraphExec exec) {
  host_handle_remove(HOST_HANDLE_EXEC, exec);
  if (exec->claim)
    exec->claim->executables--;
  host_exec_unref(exec, true);
}


/* May the launch allocate and free what its steps say?  Backs the memory. */
static CUresult memory_check(CUgraphExec exec) {
  bool auto_free =
      (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0;
  for (uint32_t i = 0; i < exec->nblocks; i++) {
    bool allocates = (exec->block_use[i] & HOST_BLOCK_ALLOCATED) != 0;
    if (allocates ? exec->blocks[i]->allocated && !auto_free
                  : !exec->blocks[i]->allocated)
      return CUDA_ERROR_INVALID_VALUE;
  }
  return host_exec_upload(exec);
}


/* What is allocated after the launch, as later calls see it. */
static void memory_note(CUgraphExec exec) {
  for (uint32_t i = 0; i < exec->nblocks; i++)
    host_block_set_allocated(exec->blocks[i],
                             (exec->block_use[i] & HOST_BLOCK_FREED) == 0);
}


/* A run that was used before, or a new one; NULL: no memory. */
static host_exec_run *run_new(CUgraphExec exec) {
  if (!exec->spare)
    exec->spare = atomic_exchange(&exec->ended, NULL);
  host_exec_run *run = exec->spare;
  if (run) {
    exec->spare = run->next;
    return run;
  }
  run = calloc(1, sizeof *run);
  if (!run)
    return NULL;
  run->exec = exec;
  run->launch = (host_launch){host_exec_begin, host_exec_run_release};
  if (exec->nevents > 0)
    run->fences = calloc(exec->nevents, sizeof *run->fences);
  if (exec->nevents > 0 && !run->fences) {
    free(run);
    return NULL;
  }
  return run;
}


/* Each record node gets a fence of this launch, which its event holds from
   now on; each wait node awaits the fence that its event holds where the node
   stands in the order of the graph. */
static CUresult fences_take(CUgraphExec exec, host_exec_run *run) {
  for (uint32_t i = 0; i < exec->nevents; i++)
    if (exec->records[i] && !(run->fences[i] = host_fence_create()))
      return CUDA_ERROR_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < exec->nevents; i++) {
    CUevent event = exec->events[i];
    if (exec->records[i]) {
      host_capture_forget_event(event);
      host_fence_release(event->fence);
      event->fence = host_fence_retain(run->fences[i]);
    } else if (event->fence) {
      run->fences[i] = host_fence_retain(event->fence);
    }
  }
  return CUDA_SUCCESS;
}


/* Without a launch: puts the run back. */
static void run_cancel(CUgraphExec exec, host_exec_run *run) {
  for (uint32_t i = 0; i < exec->nevents; i++) {
    if (run->fences[i] && exec->records[i])
      host_fence_signal(run->fences[i]); /* releases its waiters */
    host_fence_release(run->fences[i]);
    run->fences[i] = NULL;
  }
  run->next = exec->spare;
  exec->spare = run;
}


/* The changes since the last launch go with this one. */
static void patches_take(CUgraphExec exec, host_exec_run *run) {
  run->patches = exec->patches;
  for (host_patch *patch = run->patches; patch; patch = patch->next)
    patch->node->pending = NULL;
  exec->patches = NULL;
  exec->patches_end = &exec->patches;
}


/* They wait for another launch after all. */
static void patches_return(CUgraphExec exec, host_exec_run *run) {
  exec->patches = run->patches;
  exec->patches_end = &exec->patches;
  for (host_patch *patch = run->patches; patch; patch = patch->next) {
    patch->node->pending = patch;
    exec->patches_end = &patch->next;
  }
  run->patches = NULL;
}


static CUresult run_enqueue(CUgraphExec exec, CUstream stream) {
  host_exec_run *run = run_new(exec);
  if (!run)
    return CUDA_ERROR_OUT_OF_MEMORY;
  CUresult result = fences_take(exec, run);
  if (result != CUDA_SUCCESS) {
    run_cancel(exec, run);
    return result;
  }
  run->ticket = exec->next_ticket++;
  patches_take(exec, run);
  atomic_fetch_add(&exec->refs, 1);
  host_op op = {.kind = HOST_OP_EXEC, .launch = &run->launch};
  host_thread_here->launching = run;
  result = host_stream_enqueue(stream, &op);
  host_thread_here->launching = NULL;
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
static host_fence *run_mark(CUgraphExec exec, CUstream stream) {
  enum { PILE = 2048 };
  if (exec->next_ticket % PILE != 0)
    return NULL;
  host_fence *before = exec->mark;
  exec->mark = host_stream_fence(stream);
  return before;
}


CUresult host_exec_launch(CUgraphExec exec, CUstream stream,
                          host_fence **full) {
  HOST_TRY(memory_check(exec));
  HOST_TRY(run_enqueue(exec, stream));
  memory_note(exec);
  *full = run_mark(exec, stream);
  return CUDA_SUCCESS;
}
