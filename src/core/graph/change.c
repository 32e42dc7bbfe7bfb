/* Changing the nodes of a captured graph. */
#include "core/graph/change.h"
#include "core/graph/graph.h"
#include "core/memory/memory.h"
#include "core/module/module.h"

#include <stdlib.h>
#include <string.h>

static const char setting[] = "graph:set_params";
static const char switching[] = "graph:set_enabled";

/* The argument of a range that has none any more. */
enum { NO_ARGUMENT = UINT16_MAX };


/* ---- which node ---- */

cgl_status cgl_change_refuse(const cgl_op *op, const char *operation,
                             const char *wanted) {
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "%s is wanted, not the %s %s%s%s", wanted, cgl_op_word(op->kind),
           op->kind == CGL_OP_FOREIGN ? "node of another library" : op->name,
           op->site.file ? " issued at " : "",
           op->site.file ? cgl_site_text(op->site) : "");
  if (op->kind == CGL_OP_GRAPH)
    return cgl_fail_hint("change that graph before it is captured into this "
                         "one");
  if (op->kind == CGL_OP_FOREIGN)
    return cgl_fail_hint("who captured it may change it, with "
                         "graph:raw_cuda_graph_exec");
  return cgl_fail_hint("capture anew to change other nodes");
}


void cgl_change_taken(cgl_graph *graph, cgl_op *op) {
  op->stale = graph->exec != NULL;
  graph->recording.stale |= op->stale;
}


cgl_status cgl_graph_node_kernel(cgl_graph *graph, size_t index,
                                 cgl_kernel **kernel) {
  cgl_op *op = NULL;
  cgl_status status = cgl_graph_op(graph, index, setting, &op);
  *kernel = status ? NULL : op->kernel;
  return status;
}


/* ---- a kernel's arguments ---- */

static cgl_range *range_of(const cgl_recording *recording, const cgl_op *op,
                           size_t argument) {
  cgl_range *range = &recording->ranges[op->ranges];
  for (uint32_t i = 0; i < op->nranges; i++, range++)
    if (range->argument == argument)
      return range;
  return NULL;
}


/* A change underway. */
typedef struct change {
  cgl_graph *graph;
  cgl_op *op;
  const cgl_arg *args;
  size_t nargs; /* 0: all as they are */
  cgl_launch launch;
  void *params[CGL_MAX_PARAMS]; /* into `values` */
  size_t ngained;               /* arguments that reach memory now */
  cgl_exchange exchange;
} change;


static cgl_status refuse_planned(const change *c, size_t index) {
  cgl_param_info info;
  cgl_kernel_param(c->op->kernel, index, &info);
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, setting,
           "argument %zu of %s (%s %s) is or would be memory that a capture "
           "allocated from the graph's own pool: where it is used was planned "
           "by the order of the capture",
           index + 1, c->op->name, info.type, info.name);
  return cgl_fail_hint("make a buffer that is to be exchanged before the "
                       "capture begins");
}


static cgl_status refuse_generator(const change *c, size_t index) {
  cgl_fail(CGL_ERROR_ARGUMENT_TYPE, setting,
           "argument %zu of %s is a generator: which of its numbers a node "
           "draws is settled by the capture",
           index + 1, c->op->name);
  return cgl_fail_hint("leave the argument out, and it stays as it is");
}


/* Packs argument `index` over the value that is there. */
static cgl_status pack(change *c, size_t index) {
  const cgl_arg *arg = &c->args[index];
  void *value = c->params[index];
  if (arg->kind == CGL_ARG_GENERATOR)
    return refuse_generator(c, index);
  const cgl_range *range = range_of(&c->graph->recording, c->op, index);
  const bool planned = range && range->planned;
  CUdeviceptr before = 0;
  if (planned)
    memcpy(&before, value, sizeof before);
  cgl_status status = cgl_arg_pack(c->op->kernel, index, arg, setting, value);
  if (status)
    return status;
  if (planned ? memcmp(&before, value, sizeof before) != 0
              : cgl_exchange_is_planned(c->graph, arg))
    return refuse_planned(c, index);
  cgl_exchange_want(&c->exchange, arg);
  c->ngained +=
      !range && (arg->kind == CGL_ARG_BUFFER || arg->kind == CGL_ARG_PINNED);
  return CGL_OK;
}


/* The node's values with the new ones among them. */
static cgl_status pack_all(change *c, unsigned char *values) {
  const cgl_kernel *kernel = c->op->kernel;
  size_t at = 0;
  memcpy(values, c->graph->recording.args + c->op->args, c->op->nargs);
  for (size_t i = 0; i < kernel->nparams; i++) {
    at = cgl_value_next(at);
    c->params[i] = values + at;
    at += kernel->sizes[i];
    if (!c->nargs || c->args[i].kind == CGL_ARG_SAME)
      continue;
    cgl_status status = pack(c, i);
    if (status)
      return status;
  }
  return CGL_OK;
}


static cgl_status make_room(const change *c) {
  return cgl_exchange_reserve(
      &c->exchange, c->ngained ? c->op->nranges + c->ngained : 0, setting);
}


/* Where the range of an argument goes that had none: in the place of one that
   has none any more, or in a longer run at the end. */
static cgl_range *new_range(cgl_recording *recording, cgl_op *op) {
  cgl_range *range = range_of(recording, op, NO_ARGUMENT);
  if (range)
    return range;
  cgl_range *from = &recording->ranges[op->ranges];
  cgl_range *to = &recording->ranges[recording->nranges];
  if (op->ranges + op->nranges != recording->nranges) {
    memcpy(to, from, op->nranges * sizeof *to);
    memset(from, 0, op->nranges * sizeof *from);
    op->ranges = recording->nranges;
    recording->nranges += op->nranges;
  }
  op->nranges++;
  return &recording->ranges[recording->nranges++];
}


/* The node uses other memory for argument `index` than it did, or none. */
static void note_range(change *c, size_t index, const cgl_range *now) {
  cgl_recording *recording = &c->graph->recording;
  cgl_range *range = range_of(recording, c->op, index);
  if (range && now && range->address == now->address &&
      range->bytes == now->bytes)
    return;
  const bool planned = range && range->planned;
  if (range && !planned)
    cgl_exchange_replace(&c->exchange, range);
  if (now) {
    range = range ? range : new_range(recording, c->op);
    *range = *now;
    range->planned = planned;
  } else if (range && !planned)
    *range = (cgl_range){.argument = NO_ARGUMENT};
}


/* The driver took the change: the graph keeps what it uses now. */
static void note_memory(change *c) {
  for (size_t i = 0; i < c->nargs; i++) {
    const cgl_arg *arg = &c->args[i];
    cgl_range now;
    if (arg->kind == CGL_ARG_SAME)
      continue;
    cgl_exchange_keep(&c->exchange, arg);
    bool reaches = cgl_kernel_reaches(c->op->kernel, i, arg, &now);
    note_range(c, i, reaches ? &now : NULL);
  }
  cgl_exchange_end(&c->exchange);
}


/* ---- the driver's nodes ---- */

static CUDA_KERNEL_NODE_PARAMS kernel_params(const cgl_kernel *kernel,
                                             const cgl_launch *launch,
                                             void **params) {
  return (CUDA_KERNEL_NODE_PARAMS){.func = kernel->handle,
                                   .gridDimX = launch->grid[0],
                                   .gridDimY = launch->grid[1],
                                   .gridDimZ = launch->grid[2],
                                   .blockDimX = launch->block[0],
                                   .blockDimY = launch->block[1],
                                   .blockDimZ = launch->block[2],
                                   .sharedMemBytes = launch->shared_bytes,
                                   .kernelParams = params};
}


static CUresult set_in_template(const cgl_driver *driver, const cgl_op *op,
                                const cgl_launch *launch, void **params) {
  CUgraphNodeParams node;
  memset(&node, 0, sizeof node);
  node.type = CU_GRAPH_NODE_TYPE_KERNEL;
  node.kernel = kernel_params(op->kernel, launch, params);
  return driver->cuGraphNodeSetParams(op->node, &node);
}


static cgl_status set(change *c) {
  cgl_context *context = c->graph->object.context;
  const cgl_driver *driver = context->driver;
  const char *entry = "cuGraphNodeSetParams";
  CUresult result;
  cgl_relaxed relaxed = cgl_relax(context);
  if (c->graph->exec) {
    const CUDA_KERNEL_NODE_PARAMS node =
        kernel_params(c->op->kernel, &c->launch, c->params);
    entry = "cuGraphExecKernelNodeSetParams";
    result = driver->cuGraphExecKernelNodeSetParams(c->graph->exec, c->op->node,
                                                    &node);
  } else
    result = set_in_template(driver, c->op, &c->launch, c->params);
  cgl_unrelax(context, relaxed);
  return cgl_fail_driver(context, result, setting, entry);
}


static cgl_launch launch_of(const cgl_op *op) {
  cgl_launch launch = {.shared_bytes = op->shared_bytes};
  memcpy(launch.grid, op->grid, sizeof launch.grid);
  memcpy(launch.block, op->block, sizeof launch.block);
  return launch;
}


cgl_status cgl_graph_set_params(cgl_graph *graph, size_t index,
                                const cgl_launch *launch, const cgl_arg *args,
                                size_t nargs) {
  change c; /* too large to be cleared for every call */
  cgl_status status = cgl_graph_op(graph, index, setting, &c.op);
  if (!status && !c.op->kernel)
    status = cgl_change_refuse(c.op, setting, "a kernel of the script");
  if (status)
    return status;
  cgl_kernel *kernel = c.op->kernel;
  c.graph = graph;
  c.args = args;
  c.nargs = args ? nargs : 0;
  c.ngained = 0;
  cgl_exchange_begin(&c.exchange, graph);
  c.launch = launch ? cgl_launch_resolve(launch) : launch_of(c.op);
  status = cgl_kernel_check(kernel, &c.launch, args ? nargs : kernel->nparams,
                            setting);
  _Alignas(16) unsigned char values[CGL_VALUES_ROOM];
  if (!status)
    status = pack_all(&c, values);
  if (!status)
    status = make_room(&c);
  if (!status)
    status = set(&c);
  if (status)
    return status;
  cgl_op *op = c.op;
  memcpy(graph->recording.args + op->args, values, op->nargs);
  memcpy(op->grid, c.launch.grid, sizeof op->grid);
  memcpy(op->block, c.launch.block, sizeof op->block);
  op->shared_bytes = c.launch.shared_bytes;
  cgl_change_taken(graph, op);
  note_memory(&c);
  return CGL_OK;
}


static CUresult refresh_kernel(const cgl_graph *graph, const cgl_op *op) {
  void *params[CGL_MAX_PARAMS];
  size_t at = op->args;
  for (size_t i = 0; i < op->kernel->nparams; i++) {
    at = cgl_value_next(at);
    params[i] = graph->recording.args + at;
    at += op->kernel->sizes[i];
  }
  const cgl_launch launch = launch_of(op);
  return set_in_template(cgl_driver_of(graph), op, &launch, params);
}


static CUresult refresh(const cgl_graph *graph, const cgl_op *op) {
  if (op->kind == CGL_OP_KERNEL)
    return refresh_kernel(graph, op);
  CUgraphNodeParams node;
  CUresult result = cgl_change_describe(graph, op, &node);
  return result ? result
                : cgl_driver_of(graph)->cuGraphNodeSetParams(op->node, &node);
}


cgl_status cgl_graph_refresh(cgl_graph *graph, const char *operation) {
  cgl_context *context = graph->object.context;
  cgl_recording *recording = &graph->recording;
  cgl_status status =
      recording->stale ? cgl_context_enter(context, operation) : CGL_OK;
  if (status || !recording->stale)
    return status;
  CUresult result = CUDA_SUCCESS;
  cgl_relaxed relaxed = cgl_relax(context);
  for (size_t i = 0; i < recording->nops && !result; i++) {
    cgl_op *op = &recording->ops[i];
    if (!op->stale)
      continue;
    result = refresh(graph, op);
    op->stale = result != CUDA_SUCCESS;
  }
  cgl_unrelax(context, relaxed);
  recording->stale = result != CUDA_SUCCESS;
  return cgl_fail_driver(context, result, operation, "cuGraphNodeSetParams");
}


/* ---- off and on ---- */

/* Not the nodes that move a generator's offset: draws would repeat. */
static bool can_be_off(const cgl_op *op) {
  return op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET ||
         (op->kind == CGL_OP_KERNEL && (op->kernel || op->fills));
}


static bool writes_planned(const cgl_recording *recording, const cgl_op *op) {
  const cgl_range *range = &recording->ranges[op->ranges];
  for (uint32_t i = 0; i < op->nranges; i++)
    if (range[i].planned && range[i].write)
      return true;
  return false;
}


cgl_status cgl_graph_set_enabled(cgl_graph *graph, size_t index, bool enabled) {
  cgl_context *context = graph->object.context;
  cgl_op *op;
  cgl_status status = cgl_graph_op(graph, index, switching, &op);
  if (!status && !can_be_off(op))
    status = cgl_change_refuse(op, switching, "a kernel, a copy or a fill");
  if (!status)
    status = cgl_context_enter(context, switching);
  if (status || op->off == !enabled)
    return status;
  CUresult result = CUDA_SUCCESS;
  cgl_relaxed relaxed = cgl_relax(context);
  if (graph->exec)
    result =
        context->driver->cuGraphNodeSetEnabled(graph->exec, op->node, enabled);
  cgl_unrelax(context, relaxed);
  if (result)
    return cgl_fail_driver(context, result, switching, "cuGraphNodeSetEnabled");
  cgl_recording *recording = &graph->recording;
  const bool halts = writes_planned(recording, op);
  op->off = !enabled;
  recording->noff += enabled ? (size_t)-1 : 1;
  recording->nhalted += !halts ? 0 : enabled ? (size_t)-1 : 1;
  /* The turns of a private pool are noted once per stream: the next replay
     fills other memory than the last. */
  graph->stamped = NULL;
  return CGL_OK;
}


CUresult cgl_graph_switch_off(const cgl_graph *graph, CUgraphExec exec) {
  const cgl_recording *recording = &graph->recording;
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; recording->noff && i < recording->nops && !result; i++)
    if (recording->ops[i].off)
      result = cgl_driver_of(graph)->cuGraphNodeSetEnabled(
          exec, recording->ops[i].node, 0);
  return result;
}
