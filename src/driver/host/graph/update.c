/* Changes of an executable: single nodes, and whole graphs of the same
   shape.  A change waits as a patch for the next launch, so launches that are
   underway or queued run as they were. */
#include "driver/host/graph/exec.h"

#include <stdlib.h>
#include <string.h>


void host_exec_patches_free(host_patch *patches) {
  while (patches) {
    host_patch *next = patches->next;
    if (patches->op)
      host_op_release(patches->op);
    free(patches->op);
    free(patches);
    patches = next;
  }
}


/* The node of a live executable for a template's node, or NULL. */
static host_exec_node *exec_node_find(CUgraphExec exec, CUgraphNode node) {
  if (!host_handle_live(HOST_HANDLE_EXEC, exec) ||
      !host_nodes_are_live(&node, 1))
    return NULL;
  uint32_t at = (uint32_t)node->id & (exec->map_size - 1);
  while (exec->map[at] && exec->map[at]->id != node->id)
    at = (at + 1) & (exec->map_size - 1);
  return exec->map[at];
}


/* The node's patch of the next launch, made when it is missing. */
static host_patch *patch_of(CUgraphExec exec, host_exec_node *node) {
  if (node->pending)
    return node->pending;
  host_patch *patch = calloc(1, sizeof *patch);
  if (!patch)
    return NULL;
  *patch = (host_patch){.program = node->program,
                        .step = node->step,
                        .enabled = node->enabled,
                        .node = node};
  *exec->patches_end = patch;
  exec->patches_end = &patch->next;
  node->pending = patch;
  return patch;
}


/* Takes *op over. */
static CUresult set_op(CUgraphExec exec, host_exec_node *node, host_op *op) {
  host_op *kept = malloc(sizeof *kept);
  host_patch *patch = kept ? patch_of(exec, node) : NULL;
  if (!patch) {
    free(kept);
    host_op_release(op);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  *kept = *op;
  if (patch->op) {
    host_op_release(patch->op);
    free(patch->op);
  }
  patch->op = kept;
  node->latest = kept;
  return CUDA_SUCCESS;
}


/* What an executable's node may not change, beyond the checks of the
   parameters themselves. */
static CUresult change_check(const host_op *old, const host_op *op) {
  switch (op->kind) {
  case HOST_OP_KERNEL:
    return old->kernel.cooperative == op->kernel.cooperative
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  case HOST_OP_MEMCPY:
    return old->memcpy.srcMemoryType == op->memcpy.srcMemoryType &&
                   old->memcpy.dstMemoryType == op->memcpy.dstMemoryType &&
                   op->memcpy.Height <= 1 && op->memcpy.Depth <= 1
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  case HOST_OP_MEMSET: /* of two dimensions, only where and what */
    return (old->memset.height <= 1 && op->memset.height <= 1) ||
                   (old->memset.height == op->memset.height &&
                    old->memset.width == op->memset.width &&
                    old->memset.pitch == op->memset.pitch &&
                    old->memset.elementSize == op->memset.elementSize)
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  default:
    return CUDA_SUCCESS;
  }
}


static CUresult set_event(CUgraphExec exec, host_exec_node *node,
                          CUevent event) {
  if (!host_handle_live(HOST_HANDLE_EVENT, event))
    return CUDA_ERROR_INVALID_VALUE;
  uint32_t slot = exec->programs[node->program].steps[node->step].slot;
  host_event_retain(event);
  host_event_release(exec->events[slot]);
  exec->events[slot] = event;
  return CUDA_SUCCESS;
}


static CUresult level_update(CUgraphExec exec, host_level *level, CUgraph graph,
                             CUgraphExecUpdateResultInfo *info);


static CUresult set_child(CUgraphExec exec, host_exec_node *node,
                          CUgraph child) {
  CUgraphExecUpdateResultInfo info;
  return host_graph_is_live(child)
             ? level_update(exec, node->inner, child, &info)
             : CUDA_ERROR_INVALID_VALUE;
}


CUresult host_exec_set_params(CUgraphExec exec, CUgraphNode handle,
                              const CUgraphNodeParams *params) {
  host_exec_node *node = exec_node_find(exec, handle);
  if (!node || params->type != node->type)
    return CUDA_ERROR_INVALID_VALUE;
  switch (node->type) {
  case CU_GRAPH_NODE_TYPE_GRAPH:
    return set_child(exec, node, params->graph.graph);
  case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
    return set_event(exec, node, params->eventRecord.event);
  case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
    return set_event(exec, node, params->eventWait.event);
  default:
    break;
  }
  host_op op;
  HOST_TRY(host_node_params_set(&op, handle, node->latest, params));
  CUresult result = change_check(node->latest, &op);
  if (result != CUDA_SUCCESS) {
    host_op_release(&op);
    return result;
  }
  return set_op(exec, node, &op);
}


/* The node, when it is of a kind that can be switched off. */
static host_exec_node *exec_node_switchable(CUgraphExec exec,
                                            CUgraphNode handle) {
  host_exec_node *node = exec_node_find(exec, handle);
  return node && (node->type == CU_GRAPH_NODE_TYPE_KERNEL ||
                  node->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                  node->type == CU_GRAPH_NODE_TYPE_MEMSET)
             ? node
             : NULL;
}


CUresult host_exec_enable(CUgraphExec exec, CUgraphNode handle, bool enabled) {
  host_exec_node *node = exec_node_switchable(exec, handle);
  if (!node)
    return CUDA_ERROR_INVALID_VALUE;
  if (node->enabled == enabled)
    return CUDA_SUCCESS;
  host_patch *patch = patch_of(exec, node);
  if (!patch)
    return CUDA_ERROR_OUT_OF_MEMORY;
  patch->enabled = node->enabled = enabled;
  return CUDA_SUCCESS;
}


CUresult host_exec_is_enabled(CUgraphExec exec, CUgraphNode handle,
                              bool *enabled) {
  const host_exec_node *node = exec_node_switchable(exec, handle);
  if (!node)
    return CUDA_ERROR_INVALID_VALUE;
  *enabled = node->enabled;
  return CUDA_SUCCESS;
}


#define NONE UINT32_MAX

/* Nodes of two graphs are paired from their ends upward: the ends in order of
   creation, then the dependencies of each pair in their order. */
typedef struct pairing {
  CUgraphExec exec;
  host_level *level;
  CUgraphNode *nodes; /* of the graph, by index */
  uint32_t *match;    /* [node of the graph] -> node of the level */
  uint32_t *taken;    /* [node of the level] -> node of the graph */
  uint32_t *stack;
  uint32_t top;
  CUgraphExecUpdateResultInfo *info;
} pairing;


static CUgraphExecUpdateResult report_difference(pairing *p,
                                                 CUgraphExecUpdateResult why,
                                                 CUgraphNode node,
                                                 CUgraphNode from) {
  p->info->errorNode = node;
  p->info->errorFromNode = from;
  return p->info->result = why;
}


static CUgraphExecUpdateResult
pair_nodes(pairing *p, uint32_t ours, uint32_t theirs, CUgraphNode dependent) {
  CUgraphNode node = p->nodes[theirs];
  if (p->match[theirs] == ours)
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
  if (p->match[theirs] != NONE || p->taken[ours] != NONE)
    return report_difference(p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
                             dependent, node);
  if (p->level->nodes[ours].type != host_node_type(&node->op))
    return report_difference(p, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED,
                             node, NULL);
  p->match[theirs] = ours;
  p->taken[ours] = theirs;
  p->stack[p->top++] = theirs;
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}


static bool same_data(const CUgraphEdgeData *a, const CUgraphEdgeData *b) {
  return a->from_port == b->from_port && a->to_port == b->to_port &&
         a->type == b->type;
}


static CUgraphExecUpdateResult pair_deps(pairing *p) {
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  while (p->top > 0 && result == CU_GRAPH_EXEC_UPDATE_SUCCESS) {
    uint32_t theirs = p->stack[--p->top];
    CUgraphNode node = p->nodes[theirs];
    const host_exec_node *mine = &p->level->nodes[p->match[theirs]];
    if (mine->nin != node->in.count)
      return report_difference(p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
                               node, NULL);
    for (uint32_t i = 0;
         i < mine->nin && result == CU_GRAPH_EXEC_UPDATE_SUCCESS; i++) {
      const host_edge *edge = &node->in.list[i];
      result = pair_nodes(p, mine->in[i].from, edge->node->index, node);
      if (result == CU_GRAPH_EXEC_UPDATE_SUCCESS &&
          !same_data(&mine->in[i].data, &edge->data))
        result = report_difference(
            p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, node, edge->node);
    }
  }
  return result;
}


static CUgraphExecUpdateResult pair_ends(pairing *p, CUgraph graph) {
  uint8_t *inner = calloc(p->level->nnodes + (size_t)1, 1);
  if (!inner)
    return report_difference(p, CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL);
  for (uint32_t i = 0; i < p->level->nnodes; i++)
    for (uint32_t k = 0; k < p->level->nodes[i].nin; k++)
      inner[p->level->nodes[i].in[k].from] = 1;
  CUgraphExecUpdateResult result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
  uint32_t ours = 0;
  for (CUgraphNode n = graph->first;
       n && result == CU_GRAPH_EXEC_UPDATE_SUCCESS; n = n->next) {
    if (n->out.count > 0)
      continue;
    while (ours < p->level->nnodes && inner[ours])
      ours++;
    result = ours < p->level->nnodes
                 ? pair_nodes(p, ours++, n->index, n)
                 : report_difference(
                       p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED, n, NULL);
  }
  while (ours < p->level->nnodes && inner[ours])
    ours++;
  if (result == CU_GRAPH_EXEC_UPDATE_SUCCESS && ours < p->level->nnodes)
    result = report_difference(p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
                               NULL, NULL);
  free(inner);
  return result;
}


static bool kernels_equal(const host_kernel_op *a, const host_kernel_op *b) {
  if (a->function != b->function || a->shared_bytes != b->shared_bytes ||
      memcmp(a->grid, b->grid, sizeof a->grid) != 0 ||
      memcmp(a->block, b->block, sizeof a->block) != 0)
    return false;
  const cgl_host_kernel *kernel = a->function->kernel;
  for (uint32_t i = 0; i < kernel->nparams; i++)
    if (memcmp(a->params[i], b->params[i], kernel->param_size[i]) != 0)
      return false;
  return true;
}


static bool ops_equal(const host_op *a, const host_op *b) {
  switch (a->kind) {
  case HOST_OP_KERNEL:
    return kernels_equal(&a->kernel, &b->kernel);
  case HOST_OP_MEMCPY:
    return memcmp(&a->memcpy, &b->memcpy, sizeof a->memcpy) == 0;
  case HOST_OP_MEMSET:
    return memcmp(&a->memset, &b->memset, sizeof a->memset) == 0;
  case HOST_OP_HOST_FUNCTION:
    return a->host.fn == b->host.fn && a->host.userData == b->host.userData;
  default:
    return true;
  }
}


static CUgraphExecUpdateResult pair_level(CUgraphExec exec, host_level *level,
                                          CUgraph graph, bool apply,
                                          CUgraphExecUpdateResultInfo *info);


/* Checks one pair, or applies the change that it asks for. */
static CUgraphExecUpdateResult update_node(pairing *p, host_exec_node *mine,
                                           CUgraphNode node, bool apply) {
  const host_op *op = &node->op;
  switch (op->kind) {
  case HOST_OP_CHILD:
    return pair_level(p->exec, mine->inner, op->child, apply, p->info);
  case HOST_OP_CONDITIONAL:
    for (uint32_t i = 0; i < mine->ninner; i++) {
      if (mine->ninner != op->conditional->size)
        return report_difference(
            p, CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED, node, NULL);
      CUgraphExecUpdateResult result = pair_level(
          p->exec, &mine->inner[i], op->conditional->graph[i], apply, p->info);
      if (result != CU_GRAPH_EXEC_UPDATE_SUCCESS)
        return result;
    }
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
  case HOST_OP_EVENT_RECORD:
  case HOST_OP_EVENT_WAIT:
    if (apply)
      set_event(p->exec, mine, op->event.event);
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
  case HOST_OP_ALLOC:
  case HOST_OP_FREE: {
    CUdeviceptr was = op->kind == HOST_OP_ALLOC ? mine->latest->alloc.dptr
                                                : mine->latest->free;
    CUdeviceptr is = op->kind == HOST_OP_ALLOC ? op->alloc.dptr : op->free;
    return was == is
               ? CU_GRAPH_EXEC_UPDATE_SUCCESS
               : report_difference(p, CU_GRAPH_EXEC_UPDATE_ERROR, node, NULL);
  }
  default:
    break;
  }
  if (change_check(mine->latest, op) != CUDA_SUCCESS)
    return report_difference(
        p,
        op->kind == HOST_OP_KERNEL
            ? CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED
            : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED,
        node, NULL);
  if (!apply || ops_equal(mine->latest, op))
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
  host_op copy;
  if (host_op_copy(&copy, op) != CUDA_SUCCESS ||
      set_op(p->exec, mine, &copy) != CUDA_SUCCESS)
    return report_difference(p, CU_GRAPH_EXEC_UPDATE_ERROR, node, NULL);
  return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}


static CUgraphExecUpdateResult pair_all(pairing *p, CUgraph graph, bool apply) {
  uint32_t count = p->level->nnodes;
  uint32_t index = 0;
  for (CUgraphNode n = graph->first; n; n = n->next) {
    n->index = index;
    p->nodes[index] = n;
    p->match[index] = p->taken[index] = NONE;
    index++;
  }
  CUgraphExecUpdateResult result = pair_ends(p, graph);
  if (result == CU_GRAPH_EXEC_UPDATE_SUCCESS)
    result = pair_deps(p);
  for (uint32_t i = 0; i < count && result == CU_GRAPH_EXEC_UPDATE_SUCCESS; i++)
    result =
        p->match[i] == NONE /* on or before a cycle */
            ? report_difference(p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
                                p->nodes[i], NULL)
            : update_node(p, &p->level->nodes[p->match[i]], p->nodes[i], apply);
  return result;
}


static CUgraphExecUpdateResult pair_level(CUgraphExec exec, host_level *level,
                                          CUgraph graph, bool apply,
                                          CUgraphExecUpdateResultInfo *info) {
  pairing p = {.exec = exec, .level = level, .info = info};
  if (graph->nnodes != level->nnodes)
    return report_difference(&p, CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED,
                             NULL, NULL);
  size_t n = level->nnodes + (size_t)1;
  p.nodes = malloc(n * sizeof *p.nodes);
  p.match = malloc(n * 3 * sizeof *p.match);
  CUgraphExecUpdateResult result;
  if (!p.nodes || !p.match) {
    result = report_difference(&p, CU_GRAPH_EXEC_UPDATE_ERROR, NULL, NULL);
  } else {
    p.taken = p.match + n;
    p.stack = p.taken + n;
    result = pair_all(&p, graph, apply);
  }
  free(p.nodes);
  free(p.match);
  return result;
}


/* Checks the whole graph before it changes anything. */
static CUresult level_update(CUgraphExec exec, host_level *level, CUgraph graph,
                             CUgraphExecUpdateResultInfo *info) {
  for (int apply = 0; apply < 2; apply++)
    if (pair_level(exec, level, graph, apply, info) !=
        CU_GRAPH_EXEC_UPDATE_SUCCESS)
      return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
  return CUDA_SUCCESS;
}


CUresult host_exec_update(CUgraphExec exec, CUgraph graph,
                          CUgraphExecUpdateResultInfo *info) {
  return level_update(exec, &exec->level, graph, info);
}
