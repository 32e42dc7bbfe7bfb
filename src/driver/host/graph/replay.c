/* Runs of executables.  A line of steps runs straight ahead on the worker
   that reached the launch; where the graph forks, the other chains go to
   other workers, and the chain that ends last ends the run.  A step that must
   wait (an external event, a body that other workers are still in) parks its
   chain: the worker leaves it, and the end of the wait submits it again. */
#include "driver/host/graph/exec.h"

#include <stdlib.h>

static bool program_begin(host_program *program);


/* False: parked, and the chain is no longer ours. */
static bool wait_step(host_chain *chain, uint32_t i) {
  CUgraphExec exec = chain->program->exec;
  host_fence *fence = exec->current->fences[chain->program->steps[i].slot];
  if (!fence || host_fence_done(fence))
    return true;
  chain->at = i + 1;
  return !host_fence_then(fence, &chain->task);
}


/* The body that a conditional step runs next, or NULL. */
static host_program *choose_body(CUgraphExec exec, const host_step *step) {
  const host_conditional *conditional = step->op->conditional;
  uint32_t value = host_conditional_get(conditional->handle), body = 0;
  switch (conditional->type) {
  case CU_GRAPH_COND_TYPE_SWITCH:
    body = value;
    break;
  case CU_GRAPH_COND_TYPE_IF:
    body = value == 0; /* the second body, if there is one */
    break;
  default:
    body = value == 0 ? conditional->size : 0;
  }
  return body < conditional->size ? &exec->programs[step->slot + body] : NULL;
}


/* False: parked in a body. */
static bool conditional_step(host_chain *chain, uint32_t i) {
  CUgraphExec exec = chain->program->exec;
  const host_step *step = &chain->program->steps[i];
  bool loops = step->op->conditional->type == CU_GRAPH_COND_TYPE_WHILE;
  for (;;) {
    host_program *body =
        atomic_load_explicit(&exec->failed, memory_order_relaxed) ||
                host_failed_in(exec->current->stream->isolation) != CUDA_SUCCESS
            ? NULL
            : choose_body(exec, step);
    if (!body)
      return true;
    chain->at = loops ? i : i + 1;
    body->parent = chain;
    if (!program_begin(body))
      return false;
    if (!loops)
      return true;
  }
}


/* Runs the chain's steps from where it stands; false: parked. */
static bool chain_steps(host_chain *chain) {
  host_program *program = chain->program;
  CUgraphExec exec = program->exec;
  uint32_t end = chain->end;
  for (uint32_t i = chain->at; i < end; i++) {
    const host_step *step = &program->steps[i];
    switch (step->kind) {
    case HOST_OP_EMPTY:
    case HOST_OP_ALLOC: /* committed at launch */
    case HOST_OP_FREE:
      break;
    case HOST_OP_EVENT_RECORD:
      host_fence_signal(exec->current->fences[step->slot]);
      break;
    case HOST_OP_EVENT_WAIT:
      if (!wait_step(chain, i))
        return false;
      break;
    case HOST_OP_CONDITIONAL:
      if (!conditional_step(chain, i))
        return false;
      break;
    default:
      if (step->enabled &&
          !atomic_load_explicit(&exec->failed, memory_order_relaxed) &&
          host_op_run(step->op, exec->current->stream->isolation) !=
              CUDA_SUCCESS)
        atomic_store_explicit(&exec->failed, true, memory_order_relaxed);
    }
  }
  chain->at = chain->first;
  return true;
}


/* Releases the chains that waited for this one; returns one of them to go on
   with, and submits the others. */
static host_chain *chain_next(host_chain *chain) {
  host_program *program = chain->program;
  host_chain *mine = NULL;
  for (uint32_t i = 0; i < chain->nnext; i++) {
    host_chain *next = &program->chains[chain->next[i]];
    if (atomic_fetch_sub_explicit(&next->waiting, 1, memory_order_acq_rel) != 1)
      continue;
    atomic_store_explicit(&next->waiting, next->preceding,
                          memory_order_relaxed); /* for the next run */
    if (!mine)
      mine = next;
    else
      host_task_submit(&next->task);
  }
  return mine;
}


/* Runs a chain and what follows it; true when that ended the program. */
static bool chains_run(host_chain *chain) {
  host_program *program = chain->program;
  if (program->nchains == 1)
    return chain_steps(chain);
  while (chain) {
    if (!chain_steps(chain))
      return false;
    chain = chain_next(chain);
    if (atomic_fetch_sub_explicit(&program->remaining, 1,
                                  memory_order_acq_rel) == 1)
      return true;
  }
  return false;
}


/* True when the program ended before this returned; else the
   thread that ends it calls program_end. */
static bool program_begin(host_program *program) {
  if (program->nchains == 1)
    return chain_steps(program->chains);
  if (program->nchains == 0)
    return true;
  atomic_store_explicit(&program->remaining, program->nchains + 1,
                        memory_order_relaxed);
  for (uint32_t i = 1; i < program->nroots; i++)
    host_task_submit(&program->chains[i].task);
  chains_run(program->chains);
  return atomic_fetch_sub_explicit(&program->remaining, 1,
                                   memory_order_acq_rel) == 1;
}


/* Lets the next launch of the executable begin. */
static void run_end(CUgraphExec exec, host_exec_run *run) {
  host_exec_patches_free(run->patches);
  run->patches = NULL;
  atomic_store(&exec->ticket, run->ticket + 1);
  if (atomic_load(&exec->nparked) == 0)
    return;
  host_lock();
  host_exec_run **link = &exec->parked;
  while (*link && (*link)->ticket != atomic_load(&exec->ticket))
    link = &(*link)->next;
  host_exec_run *next = *link;
  if (next) {
    *link = next->next;
    atomic_fetch_sub(&exec->nparked, 1);
  }
  host_unlock();
  if (next)
    host_task_submit(&next->task);
}


/* A program ended away from the worker that began it. */
static void program_end(host_program *program) {
  while (program->parent) {
    host_chain *chain = program->parent;
    program = chain->program;
    if (!chains_run(chain))
      return;
  }
  host_exec_run *run = program->exec->current;
  CUstream stream = run->stream;
  run_end(program->exec, run);
  host_stream_resume(stream);
}


/* A chain goes on: ready at a fork, or parked until now. */
static void chain_task(host_task *task) {
  host_chain *chain = (host_chain *)task;
  host_program *program = chain->program;
  if (chains_run(chain))
    program_end(program);
}


/* The ops that a patch takes out stay in the patch, to be freed with it. */
static void run_patch(CUgraphExec exec, host_exec_run *run) {
  for (host_patch *patch = run->patches; patch; patch = patch->next) {
    host_program *program = &exec->programs[patch->program];
    host_step *step = &program->steps[patch->step];
    step->enabled = patch->enabled;
    if (!patch->op)
      continue;
    host_op *old = step->op;
    step->op = patch->op;
    patch->op = old;
    if (old == &program->ops[patch->step]) { /* not malloc: empty it here */
      host_op_release(old);
      *old = (host_op){.kind = HOST_OP_EMPTY};
      patch->op = NULL;
    }
  }
}


/* The run before has ended; true when this run ended here. */
static bool run_start(CUgraphExec exec, host_exec_run *run) {
  exec->current = run;
  run_patch(exec, run);
  for (uint32_t i = 0; i < exec->nhandles; i++)
    host_conditional_reset(exec->handles[i]);
  atomic_store_explicit(&exec->failed,
                        host_failed_in(run->stream->isolation) != CUDA_SUCCESS,
                        memory_order_relaxed);
  if (!program_begin(exec->programs))
    return false;
  run_end(exec, run);
  return true;
}


static void run_task(host_task *task) {
  host_exec_run *run =
      (host_exec_run *)((char *)task - offsetof(host_exec_run, task));
  CUstream stream = run->stream;
  if (run_start(run->exec, run))
    host_stream_resume(stream);
}


/* Puts a run aside until the one before has ended; false: it has by now. */
static bool run_park(CUgraphExec exec, host_exec_run *run) {
  host_lock();
  atomic_fetch_add(&exec->nparked, 1);
  bool wait = atomic_load(&exec->ticket) != run->ticket;
  if (wait) {
    run->task.run = run_task;
    run->next = exec->parked;
    exec->parked = run;
  } else {
    atomic_fetch_sub(&exec->nparked, 1);
  }
  return host_unlock_with(wait);
}


bool host_exec_begin(host_launch *launch, CUstream stream) {
  host_exec_run *run = (host_exec_run *)launch;
  CUgraphExec exec = run->exec;
  run->stream = stream;
  if (atomic_load(&exec->ticket) != run->ticket && run_park(exec, run))
    return false;
  return run_start(exec, run);
}


void host_program_ready(host_program *program) {
  for (uint32_t i = 0; i < program->nchains; i++)
    program->chains[i].task.run = chain_task;
}


static void exec_free(CUgraphExec exec) {
  host_exec_run *lists[2] = {exec->spare, atomic_load(&exec->ended)};
  for (int i = 0; i < 2; i++)
    while (lists[i]) {
      host_exec_run *next = lists[i]->next;
      free(lists[i]->fences);
      free(lists[i]);
      lists[i] = next;
    }
  host_fence_release(exec->mark);
  host_exec_clear(exec);
  free(exec);
}


static void free_task(host_task *task) {
  CUgraphExec exec =
      (CUgraphExec)((char *)task - offsetof(struct CUgraphExec_st, task));
  host_lock();
  exec_free(exec);
  host_unlock();
}


void host_exec_unref(CUgraphExec exec, bool locked) {
  if (atomic_fetch_sub(&exec->refs, 1) != 1)
    return;
  if (locked) {
    exec_free(exec);
  } else {
    exec->task.run = free_task;
    host_task_submit(&exec->task);
  }
}


void host_exec_run_release(host_launch *launch) {
  host_exec_run *run = (host_exec_run *)launch;
  if (run == host_thread_here->launching)
    return; /* it was never queued; the launch takes it back */
  CUgraphExec exec = run->exec;
  for (uint32_t i = 0; i < exec->nevents; i++) {
    host_fence_release(run->fences[i]);
    run->fences[i] = NULL;
  }
  host_exec_patches_free(run->patches);
  run->patches = NULL;
  host_exec_run *top = atomic_load(&exec->ended);
  do
    run->next = top;
  while (!atomic_compare_exchange_weak(&exec->ended, &top, run));
  host_exec_unref(exec, false);
}
