/* Compiles a graph to an executable: child graphs dissolve into their
   parent's program, each conditional body becomes a program of its own, and
   the tree of nodes is kept for later updates. */
#include "driver/host/graph/exec.h"

#include <stdlib.h>
#include <string.h>

/* A program while its steps are gathered. */
typedef struct draft {
  CUgraphNode *from; /* step -> the node it came from; NULL: none */
  uint32_t nsteps, steps_size;
  host_link *links;
  size_t nlinks, links_size;
} draft;

typedef struct compiler {
  CUgraphExec exec;
  draft *drafts; /* one per program */
  uint32_t ndrafts, drafts_size;
  CUgraphNode *error;
  CUgraphInstantiateResult *why;
} compiler;

static CUresult add_level(compiler *c, host_level *level, CUgraph graph,
                          uint32_t program, bool body);


/* Makes room for one more item of `size` bytes in a growing array. */
static bool grow_array(void *array, size_t count, size_t *room, size_t size) {
  if (count < *room)
    return true;
  size_t wanted = *room == 0 ? 16 : *room * 2;
  void *old, *list;
  memcpy(&old, array, sizeof old);
  list = realloc(old, wanted * size);
  if (!list)
    return false;
  memcpy(array, &list, sizeof list);
  *room = wanted;
  return true;
}


static bool add_step(draft *d, CUgraphNode node, uint32_t *step) {
  size_t room = d->steps_size;
  if (!grow_array(&d->from, d->nsteps, &room, sizeof *d->from))
    return false;
  d->steps_size = (uint32_t)room;
  *step = d->nsteps;
  d->from[d->nsteps++] = node;
  return true;
}


static bool add_link(draft *d, uint32_t from, uint32_t to) {
  if (!grow_array(&d->links, d->nlinks, &d->links_size, sizeof *d->links))
    return false;
  d->links[d->nlinks++] = (host_link){from, to};
  return true;
}


static CUresult refuse_node(compiler *c, CUgraphNode node,
                            CUgraphInstantiateResult why) {
  *c->error = node;
  *c->why = why;
  return CUDA_ERROR_INVALID_VALUE;
}


/* What a conditional body may hold: work of the device alone. */
static bool body_holds(const host_op *op) {
  switch (op->kind) {
  case HOST_OP_KERNEL:
  case HOST_OP_EMPTY:
  case HOST_OP_CHILD:
  case HOST_OP_MEMSET:
  case HOST_OP_MEMCPY:
  case HOST_OP_CONDITIONAL:
    return true;
  default:
    return false;
  }
}


/* A child graph stands between two empty steps: `step` and `exit`. */
static CUresult add_child(compiler *c, host_exec_node *made, CUgraphNode node,
                          uint32_t program, uint32_t *exit, bool body) {
  made->inner = calloc(1, sizeof *made->inner);
  if (!made->inner)
    return CUDA_ERROR_OUT_OF_MEMORY;
  made->ninner = 1;
  uint32_t first = c->drafts[program].nsteps;
  size_t link = c->drafts[program].nlinks;
  HOST_TRY(add_level(c, made->inner, node->op.child, program, body));
  draft *d = &c->drafts[program];
  uint32_t end = d->nsteps;
  size_t nlinks = d->nlinks;
  if (!add_step(d, NULL, exit))
    return CUDA_ERROR_OUT_OF_MEMORY;
  uint8_t *ends = calloc(end - first + (size_t)1, 1); /* 1: has a link in */
  if (!ends)                                          /* 2: has a link out */
    return CUDA_ERROR_OUT_OF_MEMORY;
  for (size_t i = link; i < nlinks; i++) { /* those the child brought */
    ends[d->links[i].from - first] |= 2;
    ends[d->links[i].to - first] |= 1;
  }
  bool room = first < end || add_link(d, made->step, *exit);
  for (uint32_t s = first; s < end && room; s++) {
    if ((ends[s - first] & 1) == 0)
      room = add_link(d, made->step, s);
    if (room && (ends[s - first] & 2) == 0)
      room = add_link(d, s, *exit);
  }
  free(ends);
  return room ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}


static CUresult add_draft(compiler *c, uint32_t *program) {
  size_t room = c->drafts_size;
  if (!grow_array(&c->drafts, c->ndrafts, &room, sizeof *c->drafts))
    return CUDA_ERROR_OUT_OF_MEMORY;
  c->drafts_size = (uint32_t)room;
  *program = c->ndrafts++;
  c->drafts[*program] = (draft){0};
  return CUDA_SUCCESS;
}


/* The bodies' programs are numbered in a row. */
static CUresult add_bodies(compiler *c, host_exec_node *made,
                           CUgraphNode node) {
  const host_conditional *conditional = node->op.conditional;
  made->inner = calloc(conditional->size, sizeof *made->inner);
  if (!made->inner)
    return CUDA_ERROR_OUT_OF_MEMORY;
  made->ninner = conditional->size;
  CUresult result = CUDA_SUCCESS;
  uint32_t first = c->ndrafts, program;
  for (unsigned i = 0; i < conditional->size && result == CUDA_SUCCESS; i++)
    result = add_draft(c, &program);
  made->body = first;
  for (unsigned i = 0; i < conditional->size && result == CUDA_SUCCESS; i++)
    result =
        add_level(c, &made->inner[i], conditional->graph[i], first + i, true);
  return result;
}


/* Host memory that the device was never told of. */
static bool is_pageable(CUmemorytype type, const void *host,
                        CUdeviceptr unified) {
  uintptr_t address =
      type == CU_MEMORYTYPE_HOST ? (uintptr_t)host : (uintptr_t)unified;
  return type != CU_MEMORYTYPE_DEVICE && !host_range_find(address);
}


static CUresult body_check(compiler *c, CUgraphNode node) {
  const host_op *op = &node->op;
  if (!body_holds(op))
    return refuse_node(c, node,
                       CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED);
  if (op->kind == HOST_OP_MEMCPY &&
      (is_pageable(op->memcpy.srcMemoryType, op->memcpy.srcHost,
                   op->memcpy.srcDevice) ||
       is_pageable(op->memcpy.dstMemoryType, op->memcpy.dstHost,
                   op->memcpy.dstDevice)))
    return refuse_node(c, node,
                       CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED);
  return CUDA_SUCCESS;
}


static CUresult add_node(compiler *c, host_exec_node *made, CUgraphNode node,
                         uint32_t program, uint32_t *exit, bool body) {
  *made = (host_exec_node){
      .id = node->id,
      .type = host_node_type(&node->op),
      .enabled = true,
      .program = program,
      .nin = node->in.count,
  };
  HOST_TRY(body ? body_check(c, node) : CUDA_SUCCESS);
  if (!add_step(&c->drafts[program], node, &made->step))
    return CUDA_ERROR_OUT_OF_MEMORY;
  *exit = made->step;
  if (node->op.kind == HOST_OP_CHILD)
    return add_child(c, made, node, program, exit, body);
  if (node->op.kind == HOST_OP_CONDITIONAL)
    return add_bodies(c, made, node);
  return CUDA_SUCCESS;
}


static CUresult add_level(compiler *c, host_level *level, CUgraph graph,
                          uint32_t program, bool body) {
  size_t nedges = 0;
  uint32_t index = 0;
  for (CUgraphNode n = graph->first; n; n = n->next) {
    nedges += n->in.count;
    n->index = index++;
  }
  level->nodes = calloc(graph->nnodes + 1, sizeof *level->nodes);
  level->edges = malloc((nedges + 1) * sizeof *level->edges);
  uint32_t *exits = malloc((graph->nnodes + 1) * sizeof *exits);
  CUresult result = level->nodes && level->edges && exits
                        ? CUDA_SUCCESS
                        : CUDA_ERROR_OUT_OF_MEMORY;
  for (CUgraphNode n = graph->first; n && result == CUDA_SUCCESS; n = n->next) {
    level->nnodes++; /* before it is whole, so that its parts are freed */
    result = add_node(c, &level->nodes[n->index], n, program, &exits[n->index],
                      body);
  }
  host_exec_edge *edge = level->edges;
  for (CUgraphNode n = graph->first; n && result == CUDA_SUCCESS; n = n->next) {
    level->nodes[n->index].in = edge;
    for (uint32_t i = 0; i < n->in.count && result == CUDA_SUCCESS; i++) {
      uint32_t from = n->in.list[i].node->index;
      *edge++ = (host_exec_edge){from, n->in.list[i].data};
      if (!add_link(&c->drafts[program], exits[from],
                    level->nodes[n->index].step))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
  }
  free(exits);
  return result;
}


static CUresult add_event(CUgraphExec exec, CUevent event, bool record,
                          uint32_t *slot) {
  size_t n = exec->nevents + (size_t)1;
  CUevent *events = realloc(exec->events, n * sizeof *events);
  if (!events)
    return CUDA_ERROR_OUT_OF_MEMORY;
  exec->events = events;
  bool *records = realloc(exec->records, n * sizeof *records);
  if (!records)
    return CUDA_ERROR_OUT_OF_MEMORY;
  exec->records = records;
  host_event_retain(event);
  *slot = exec->nevents++;
  events[*slot] = event;
  records[*slot] = record;
  return CUDA_SUCCESS;
}


static CUresult add_block(CUgraphExec exec, host_block *block, uint8_t use) {
  for (uint32_t i = exec->nblocks; i-- > 0;)
    if (exec->blocks[i] == block) {
      exec->block_use[i] |= use;
      return CUDA_SUCCESS;
    }
  size_t n = exec->nblocks + (size_t)1;
  host_block **blocks = realloc(exec->blocks, n * sizeof *blocks);
  if (!blocks)
    return CUDA_ERROR_OUT_OF_MEMORY;
  exec->blocks = blocks;
  uint8_t *uses = realloc(exec->block_use, n);
  if (!uses)
    return CUDA_ERROR_OUT_OF_MEMORY;
  exec->block_use = uses;
  host_block_retain(block);
  block->execs++;
  blocks[exec->nblocks] = block;
  uses[exec->nblocks++] = use;
  return CUDA_SUCCESS;
}


/* The template may go before the executable: a copy without the graphs. */
static CUresult add_conditional(host_step *step, const host_conditional *from) {
  host_conditional *copy = malloc(sizeof *copy);
  if (!copy) {
    step->kind = HOST_OP_EMPTY;
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *copy = *from;
  copy->graph = NULL;
  step->op->conditional = copy;
  return CUDA_SUCCESS;
}


static CUresult add_op(CUgraphExec exec, host_step *step, CUgraphNode node) {
  step->enabled = true;
  if (!node) {
    step->kind = HOST_OP_EMPTY;
    return CUDA_SUCCESS;
  }
  CUresult result = host_op_copy(step->op, &node->op);
  if (result != CUDA_SUCCESS) {
    *step->op = (host_op){.kind = HOST_OP_EMPTY};
    return result;
  }
  step->kind = (uint8_t)node->op.kind;
  switch (node->op.kind) {
  case HOST_OP_CHILD:
    step->kind = HOST_OP_EMPTY; /* the way in; its nodes are steps here */
    *step->op = (host_op){.kind = HOST_OP_EMPTY};
    return CUDA_SUCCESS;
  case HOST_OP_CONDITIONAL:
    return add_conditional(step, node->op.conditional);
  case HOST_OP_EVENT_RECORD:
  case HOST_OP_EVENT_WAIT:
    return add_event(exec, node->op.event.event,
                     node->op.kind == HOST_OP_EVENT_RECORD, &step->slot);
  case HOST_OP_ALLOC:
    return add_block(exec, node->block, HOST_BLOCK_ALLOCATED);
  case HOST_OP_FREE:
    return add_block(exec, node->block, HOST_BLOCK_FREED);
  default:
    return CUDA_SUCCESS;
  }
}


static CUresult program_finish(compiler *c, host_program *program,
                               const draft *d, uint32_t *place) {
  uint32_t n = d->nsteps, stuck = 0;
  program->exec = c->exec;
  program->nsteps = n;
  CUresult result =
      host_chains_make(program, d->links, d->nlinks, place, &stuck);
  if (result == CUDA_ERROR_INVALID_VALUE)
    return refuse_node(c, d->from[stuck],
                       CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
  if (result != CUDA_SUCCESS)
    return result;
  host_program_ready(program);
  program->steps = calloc(n + (size_t)1, sizeof *program->steps);
  program->ops = calloc(n + (size_t)1, sizeof *program->ops);
  if (!program->steps || !program->ops)
    return CUDA_ERROR_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < n; i++)
    program->steps[i].op = &program->ops[i]; /* EMPTY, until it is copied */
  bool priorities =
      (c->exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) != 0;
  for (uint32_t i = 0; i < n && result == CUDA_SUCCESS; i++)
    result = add_op(c->exec, &program->steps[place[i]], d->from[i]);
  for (uint32_t i = 0; i < program->nchains && priorities; i++) {
    const host_op *op = program->steps[program->chains[i].first].op;
    if (op->kind == HOST_OP_KERNEL)
      program->chains[i].task.priority = op->kernel.priority;
  }
  return result;
}


/* Programs are laid out: the nodes learn where their steps went. */
static void level_place(CUgraphExec exec, host_level *level, uint32_t **places,
                        uint32_t *count) {
  for (uint32_t i = 0; i < level->nnodes; i++) {
    host_exec_node *node = &level->nodes[i];
    host_program *program = &exec->programs[node->program];
    node->step = places[node->program][node->step];
    node->latest = program->steps[node->step].op;
    if (node->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
      program->steps[node->step].slot = node->body;
    ++*count;
    for (uint32_t k = 0; k < node->ninner; k++)
      level_place(exec, &node->inner[k], places, count);
  }
}


static void map_level(CUgraphExec exec, host_level *level) {
  for (uint32_t i = 0; i < level->nnodes; i++) {
    host_exec_node *node = &level->nodes[i];
    uint32_t at = (uint32_t)node->id & (exec->map_size - 1);
    while (exec->map[at])
      at = (at + 1) & (exec->map_size - 1);
    exec->map[at] = node;
    for (uint32_t k = 0; k < node->ninner; k++)
      map_level(exec, &node->inner[k]);
  }
}


static CUresult link_up(CUgraphExec exec, uint32_t **places) {
  uint32_t count = 0;
  level_place(exec, &exec->level, places, &count);
  exec->map_size = 16;
  while (exec->map_size < 2 * count)
    exec->map_size *= 2;
  exec->map = calloc(exec->map_size, sizeof *exec->map);
  if (!exec->map)
    return CUDA_ERROR_OUT_OF_MEMORY;
  map_level(exec, &exec->level);
  return CUDA_SUCCESS;
}


/* The conditional handles of a graph and of the bodies in it; one that no
   node uses is refused. */
static CUresult add_handles(compiler *c, CUgraph graph) {
  CUgraphExec exec = c->exec;
  for (size_t i = 0; i < graph->nhandles; i++) {
    if (!host_conditional_claimed(graph->handles[i]))
      return refuse_node(c, NULL,
                         CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED);
    uint64_t *handles =
        realloc(exec->handles, (exec->nhandles + (size_t)1) * sizeof *handles);
    if (!handles)
      return CUDA_ERROR_OUT_OF_MEMORY;
    exec->handles = handles;
    host_conditional_handle_retain(graph->handles[i]);
    handles[exec->nhandles++] = graph->handles[i];
  }
  CUresult result = CUDA_SUCCESS;
  for (CUgraphNode n = graph->first; n && result == CUDA_SUCCESS; n = n->next)
    if (n->op.kind == HOST_OP_CONDITIONAL)
      for (unsigned i = 0;
           i < n->op.conditional->size && result == CUDA_SUCCESS; i++)
        result = add_handles(c, n->op.conditional->graph[i]);
  return result;
}


static CUresult make_programs(compiler *c) {
  CUgraphExec exec = c->exec;
  uint32_t **places = calloc(c->ndrafts, sizeof *places);
  exec->programs = calloc(c->ndrafts, sizeof *exec->programs);
  if (!places || !exec->programs) {
    free(places);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  exec->nprograms = c->ndrafts;
  CUresult result = CUDA_SUCCESS;
  for (uint32_t i = 0; i < c->ndrafts && result == CUDA_SUCCESS; i++) {
    places[i] = malloc((c->drafts[i].nsteps + (size_t)1) * sizeof **places);
    result = places[i] ? program_finish(c, &exec->programs[i], &c->drafts[i],
                                        places[i])
                       : CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result == CUDA_SUCCESS)
    result = link_up(exec, places);
  for (uint32_t i = 0; i < c->ndrafts; i++)
    free(places[i]);
  free(places);
  return result;
}


CUresult host_exec_compile(CUgraphExec exec, CUgraph graph, CUgraphNode *error,
                           CUgraphInstantiateResult *why) {
  compiler c = {.exec = exec, .error = error, .why = why};
  uint32_t top;
  CUresult result = add_draft(&c, &top);
  if (result == CUDA_SUCCESS)
    result = add_level(&c, &exec->level, graph, top, false);
  if (result == CUDA_SUCCESS)
    result = add_handles(&c, graph);
  if (result == CUDA_SUCCESS)
    result = make_programs(&c);
  for (uint32_t i = 0; i < c.ndrafts; i++) {
    free(c.drafts[i].from);
    free(c.drafts[i].links);
  }
  free(c.drafts);
  return result;
}


static void level_clear(host_level *level) {
  for (uint32_t i = 0; i < level->nnodes; i++) {
    host_exec_node *node = &level->nodes[i];
    for (uint32_t k = 0; k < node->ninner; k++)
      level_clear(&node->inner[k]);
    free(node->inner);
  }
  free(level->nodes);
  free(level->edges);
}


static void program_clear(host_program *program) {
  const bool filled = program->steps && program->ops;
  for (uint32_t i = 0; filled && i < program->nsteps; i++) {
    host_op *op = program->steps[i].op;
    if (program->steps[i].kind == HOST_OP_CONDITIONAL)
      free(op->conditional);
    host_op_release(op);
    if (op != &program->ops[i])
      free(op);
  }
  free(program->steps);
  free(program->ops);
  free(program->chains);
  free(program->links);
}


void host_exec_clear(CUgraphExec exec) {
  for (uint32_t i = 0; i < exec->nprograms; i++)
    program_clear(&exec->programs[i]);
  free(exec->programs);
  level_clear(&exec->level);
  free(exec->map);
  host_exec_patches_free(exec->patches);
  for (uint32_t i = 0; i < exec->nevents; i++)
    host_event_release(exec->events[i]);
  free(exec->events);
  free(exec->records);
  for (uint32_t i = 0; i < exec->nblocks; i++) {
    exec->blocks[i]->execs--;
    host_block_release(exec->blocks[i]);
  }
  free(exec->blocks);
  free(exec->block_use);
  for (uint32_t i = 0; i < exec->nhandles; i++)
    host_conditional_handle_release(exec->handles[i]);
  free(exec->handles);
  host_user_drop(exec->users);
  if (exec->claim)
    host_graph_unref(exec->claim);
}
