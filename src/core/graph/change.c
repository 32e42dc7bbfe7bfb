/* Changes of a captured graph: what its nodes do, and whether they run.
   Idea: a change goes to the executable, for later replays, and to the
   recording; the template is updated when it is used, so a loop that changes
   a node before each replay calls the driver once per change.
   Invariants: the values, ranges and kept objects of an operation are those
   of its node in the executable; while the graph has an executable, a stale
   operation differs from the template's node; planned memory stays with its
   operation, because the order of the capture decided where it is used.
   Replays in flight keep the arguments of their launch. */
#include "core/graph/build.h"

#include <string.h>

static const char setting[] = "graph:set_params";
static const char switching[] = "graph:set_enabled";


/* ---- the node ---- */

static cgl_status refuse_kind(const cgl_op *op, const char *operation,
                              const char *wanted) {
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "%s is wanted, not the %s %s%s%s", wanted,
           cgl_record_words[op->kind],
           op->kind == CGL_OP_FOREIGN ? "node of another library" : op->name,
           op->site.file ? " issued at " : "",
           op->site.file ? cgl_site_text(op->site) : "");
  if (op->kind == CGL_OP_GRAPH)
    return cgl_fail_hint("change that graph before it is captured into this "
                         "one");
  if (op->kind == CGL_OP_FOREIGN)
    return cgl_fail_hint("the library that captured it may change it, with "
                         "graph:raw_cuda_graph_exec");
  return cgl_fail_hint("capture again to change other nodes");
}


cgl_status cgl_graph_node_kernel(cgl_graph *graph, size_t index,
                                 cgl_kernel **kernel) {
  const cgl_op *op = NULL;
  cgl_status status = cgl_graph_op(graph, index, setting, &op);
  *kernel =
      status || op->kind != CGL_OP_KERNEL ? NULL : (cgl_kernel *)op->object;
  return status;
}


/* Begins a change of operation `index`: refuses another kind, and makes the
   recording the graph's own. */
static cgl_status change_begin(cgl_graph *graph, size_t index, cgl_op_kind kind,
                               const char *wanted, const cgl_op **op) {
  cgl_status status = cgl_graph_op(graph, index, setting, op);
  if (!status &&
      ((*op)->kind != kind || (kind == CGL_OP_KERNEL && !(*op)->object)))
    status = refuse_kind(*op, setting, wanted);
  if (!status)
    status = cgl_context_enter(graph->object.context, setting);
  if (status)
    return status;
  if (!cgl_record_own(&graph->recording))
    return cgl_fail(CGL_ERROR_NO_MEMORY, setting,
                    "no memory to note what the node uses");
  *op = cgl_record_op(graph->recording, index);
  return CGL_OK;
}


/* The object that the graph keeps for an argument; NULL: none, or planned
   memory
   (*planned). */
static cgl_object *argument_object(const cgl_graph *graph, const cgl_arg *arg,
                                   bool *planned) {
  *planned = false;
  if (arg->kind == CGL_ARG_PINNED)
    return &arg->pinned->object;
  if (arg->kind != CGL_ARG_BUFFER)
    return NULL;
  cgl_buffer *root = cgl_buffer_root(arg->buffer);
  *planned = cgl_buffer_is_planned(root, graph->pool);
  return *planned ? NULL : &root->object;
}


/* Keeps the object of an argument for the node. */
static void argument_keep(cgl_record_edit *edit, const cgl_graph *graph,
                          const cgl_arg *arg) {
  bool planned;
  cgl_object *object = argument_object(graph, arg, &planned);
  if (object && object->kind == &cgl_buffer_kind)
    atomic_store(&((cgl_buffer *)object)->wide, true);
  cgl_record_edit_keep(edit, object);
}


/* Ends a change that the driver accepted. */
static void change_end(cgl_graph *graph, cgl_record_edit *edit) {
  if (edit->gained)
    graph->inputs_seen = 0;
  cgl_record_edit_end(edit, graph->exec);
}


/* ---- a kernel's arguments ---- */

/* A change underway. */
typedef struct change {
  cgl_graph *graph;
  const cgl_op *op;
  cgl_kernel *kernel;
  const cgl_arg *args;
  size_t nargs; /* 0: all arguments stay */
  cgl_launch launch;
  void *params[CGL_MAX_PARAMS]; /* pointers to the values */
  size_t ngained; /* count of arguments that had no memory before */
  cgl_record_edit edit;
} change;


static cgl_status refuse_planned_argument(const change *c, size_t index) {
  cgl_param_info info;
  cgl_kernel_param(c->kernel, index, &info);
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
           "draws was decided by the capture",
           index + 1, c->op->name);
  return cgl_fail_hint("leave the argument out, and it stays as it is");
}


/* Packs argument `index` over its former value. */
static cgl_status change_pack(change *c, size_t index) {
  const cgl_arg *arg = &c->args[index];
  void *value = c->params[index];
  if (arg->kind == CGL_ARG_GENERATOR)
    return refuse_generator(c, index);
  const cgl_range *range =
      cgl_record_range_of(c->graph->recording, c->op, index);
  const bool was_planned = range && range->allocation;
  CUdeviceptr before = 0;
  if (was_planned)
    memcpy(&before, value, sizeof before);
  cgl_status status = cgl_arg_pack(c->kernel, index, arg, setting, value);
  if (status)
    return status;
  bool planned;
  cgl_object *object = argument_object(c->graph, arg, &planned);
  if (was_planned ? memcmp(&before, value, sizeof before) != 0 : planned)
    return refuse_planned_argument(c, index);
  c->edit.nobjects += object != NULL;
  c->ngained += !range && object;
  return CGL_OK;
}


/* The node's values, with the new arguments packed over the former. */
static cgl_status change_pack_all(change *c, unsigned char *values) {
  size_t at = 0;
  memcpy(values, c->graph->recording->values + c->op->values, c->op->nvalues);
  for (size_t i = 0; i < c->kernel->nparams; i++) {
    at = cgl_kernel_next_value(at);
    c->params[i] = values + at;
    at += c->kernel->sizes[i];
    if (!c->nargs || c->args[i].kind == CGL_ARG_SAME)
      continue;
    cgl_status status = change_pack(c, i);
    if (status)
      return status;
  }
  return CGL_OK;
}


/* Keeps and notes the memory that the node uses now. */
static void change_note_memory(change *c) {
  for (size_t i = 0; i < c->nargs; i++) {
    const cgl_arg *arg = &c->args[i];
    cgl_range now = {.argument = (uint16_t)i};
    const bool memory = cgl_arg_memory(arg, &now.address, &now.bytes);
    if (arg->kind == CGL_ARG_SAME ||
        (!memory && !cgl_record_range_of(c->graph->recording, c->op, i)))
      continue;
    now.write = memory && cgl_kernel_writes(c->kernel, i);
    argument_keep(&c->edit, c->graph, arg);
    cgl_record_edit_range(&c->edit, i, memory ? &now : NULL);
  }
}


static cgl_status change_set(change *c) {
  cgl_context *context = c->graph->object.context;
  const cgl_driver *driver = context->driver;
  const uint32_t *grid = c->launch.grid, *block = c->launch.block;
  const CUDA_KERNEL_NODE_PARAMS kernel = {.func = c->kernel->handle,
                                          .gridDimX = grid[0],
                                          .gridDimY = grid[1],
                                          .gridDimZ = grid[2],
                                          .blockDimX = block[0],
                                          .blockDimY = block[1],
                                          .blockDimZ = block[2],
                                          .sharedMemBytes =
                                              c->launch.shared_bytes,
                                          .kernelParams = c->params};
  const char *entry = "cuGraphExecKernelNodeSetParams";
  CUresult result;
  cgl_relaxed relaxed = cgl_captures_relax(context);
  if (c->graph->exec)
    result = driver->cuGraphExecKernelNodeSetParams(c->graph->exec, c->op->node,
                                                    &kernel);
  else {
    CUgraphNodeParams node;
    memset(&node, 0, sizeof node);
    node.type = CU_GRAPH_NODE_TYPE_KERNEL;
    node.kernel = kernel;
    entry = "cuGraphNodeSetParams";
    result = driver->cuGraphNodeSetParams(c->op->node, &node);
  }
  cgl_captures_unrelax(context, relaxed);
  return cgl_fail_driver(context, result, setting, entry);
}


cgl_status cgl_graph_set_params(cgl_graph *graph, size_t index,
                                const cgl_launch *launch, const cgl_arg *args,
                                size_t nargs) {
  change c; /* too large to be cleared for every call */
  cgl_status status = change_begin(graph, index, CGL_OP_KERNEL,
                                   "a kernel of the script", &c.op);
  if (status)
    return status;
  c.kernel = (cgl_kernel *)c.op->object;
  c.graph = graph;
  c.args = args;
  c.nargs = args ? nargs : 0;
  c.ngained = 0;
  cgl_record_edit_begin(&c.edit, graph->recording, index,
                        graph->capture.underway.serial);
  c.launch = launch ? cgl_launch_resolve(launch) : c.op->launch;
  status = cgl_launch_check(c.kernel, &c.launch,
                            args ? nargs : c.kernel->nparams, setting);
  _Alignas(16) unsigned char values[CGL_VALUES_ROOM];
  if (!status)
    status = change_pack_all(&c, values);
  if (!status)
    status = cgl_record_edit_reserve(&c.edit, c.ngained, setting);
  if (!status)
    status = change_set(&c);
  if (status)
    return status;
  cgl_record_edit_values(&c.edit, values, &c.launch);
  change_note_memory(&c);
  change_end(graph, &c.edit);
  return CGL_OK;
}


/* ---- fills and copies: other values, other memory of the same size ---- */

cgl_type cgl_graph_element_type(const cgl_recording *recording,
                                const cgl_op *op) {
  return op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET
             ? (cgl_type)cgl_build_element(recording, op).type
             : CGL_TYPE_COUNT;
}


static cgl_status copy_check_matter(cgl_type type, size_t count, cgl_type had,
                                    const cgl_range *range) {
  const size_t before = range->bytes / cgl_type_bytes(had);
  if (type == had && count == before)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, setting,
           "%zu elements of %s cannot take the place of %zu of %s", count,
           cgl_type_name(type), before, cgl_type_name(had));
  return cgl_fail_hint("use memory of the same type and count, a view of it "
                       "perhaps");
}


static cgl_status refuse_direction(bool pinned) {
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, setting,
           pinned ? "the node copies on the device or to it, and pinned memory "
                    "cannot take a buffer's place"
                  : "a buffer cannot take the place of pinned memory");
  return cgl_fail_hint("the direction of a copy was decided by the capture");
}


static cgl_status refuse_planned(void) {
  cgl_fail(
      CGL_ERROR_INVALID_ARGUMENT, setting,
      "the node uses or would use memory that a capture allocated from the "
      "graph's own pool: where it is used was planned by the order of the "
      "capture");
  return cgl_fail_hint("make a buffer that is to be exchanged before the "
                       "capture begins");
}


/* Sets *now to the range of an argument; refuses memory that cannot replace
   `range`. */
static cgl_status copy_check(const cgl_graph *graph, const cgl_arg *arg,
                             cgl_type had, bool was_pinned,
                             const cgl_range *range, cgl_range *now) {
  *now = *range;
  if (arg->kind == CGL_ARG_SAME)
    return CGL_OK;
  size_t bytes;
  const cgl_object *object = cgl_arg_memory(arg, &now->address, &bytes);
  const bool pinned = arg->kind == CGL_ARG_PINNED;
  if (!object) {
    cgl_fail(CGL_ERROR_ARGUMENT_TYPE, setting,
             "a buffer or pinned memory is wanted");
    return cgl_fail_hint(was_pinned ? "give other pinned memory"
                                    : "give another buffer");
  }
  if (pinned != was_pinned)
    return refuse_direction(pinned);
  cgl_status status = cgl_object_check_device(&graph->object, object, setting);
  if (!status && !pinned)
    status = cgl_buffer_check(arg->buffer, setting);
  if (!status)
    status = copy_check_matter(pinned ? arg->pinned->type : arg->buffer->type,
                               pinned ? arg->pinned->count : arg->buffer->count,
                               had, range);
  bool planned;
  argument_object(graph, arg, &planned);
  if (!status && (range->allocation ? now->address != range->address : planned))
    status = refuse_planned();
  return status;
}


static cgl_status copy_set(const cgl_graph *graph, const cgl_op *op,
                           const cgl_range *now, const cgl_element *element) {
  cgl_context *context = graph->object.context;
  const char *entry = "cuGraphNodeSetParams";
  CUgraphNodeParams params;
  CUresult result;
  if (op->kind == CGL_OP_MEMCPY)
    cgl_build_copy(&params, context, now, element);
  else
    cgl_build_fill(&params, context, now, element);
  cgl_relaxed relaxed = cgl_captures_relax(context);
  if (graph->exec) {
    entry = "cuGraphExecNodeSetParams";
    result = context->driver->cuGraphExecNodeSetParams(graph->exec, op->node,
                                                       &params);
  } else
    result = context->driver->cuGraphNodeSetParams(op->node, &params);
  cgl_captures_unrelax(context, relaxed);
  return cgl_fail_driver(context, result, setting, entry);
}


/* Gives a fill or copy other memory, an argument for each range, and another
   element. */
static cgl_status copy_change(cgl_graph *graph, size_t index,
                              const cgl_arg *args, const cgl_element *element) {
  const cgl_op *op = cgl_record_op(graph->recording, index);
  const cgl_range *ranges = graph->recording->ranges + op->ranges;
  cgl_range now[2];
  cgl_record_edit edit;
  cgl_status status = CGL_OK;
  cgl_record_edit_begin(&edit, graph->recording, index,
                        graph->capture.underway.serial);
  for (uint32_t i = 0; i < op->nranges && !status; i++) {
    bool planned;
    status = copy_check(graph, &args[i], (cgl_type)element->type,
                        element->pinned == i + 1, &ranges[i], &now[i]);
    edit.nobjects += argument_object(graph, &args[i], &planned) != NULL;
  }
  if (!status)
    status = cgl_record_edit_reserve(&edit, 0, setting);
  if (!status)
    status = copy_set(graph, op, now, element);
  if (status)
    return status;
  cgl_record_edit_values(&edit, element, NULL);
  for (uint32_t i = 0; i < op->nranges; i++) {
    argument_keep(&edit, graph, &args[i]);
    cgl_record_edit_range(&edit, i, &now[i]);
  }
  change_end(graph, &edit);
  return CGL_OK;
}


cgl_status cgl_graph_set_fill(cgl_graph *graph, size_t index,
                              cgl_buffer *buffer, const void *value) {
  const cgl_op *op;
  cgl_status status = change_begin(graph, index, CGL_OP_MEMSET, "a fill", &op);
  if (status)
    return status;
  const cgl_arg arg = {.kind = buffer ? CGL_ARG_BUFFER : CGL_ARG_SAME,
                       .buffer = buffer};
  cgl_element element = cgl_build_element(graph->recording, op);
  if (value && !element.half && cgl_type_bytes((cgl_type)element.type) == 8 &&
      memcmp(value, (const char *)value + 4, 4)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, setting,
             "the node fills with words of four bytes, and the halves of the "
             "value differ");
    return cgl_fail_hint("capture a fill with such a value: it is two nodes, "
                         "which are both to be changed");
  }
  if (value)
    cgl_memory_set_word(&element, value);
  return copy_change(graph, index, &arg, &element);
}


cgl_status cgl_graph_set_copy(cgl_graph *graph, size_t index, const cgl_arg *to,
                              const cgl_arg *from) {
  static const cgl_arg same = {.kind = CGL_ARG_SAME};
  const cgl_op *op;
  cgl_status status = change_begin(graph, index, CGL_OP_MEMCPY, "a copy", &op);
  if (status)
    return status;
  const cgl_arg args[] = {to ? *to : same, from ? *from : same};
  const cgl_element element = cgl_build_element(graph->recording, op);
  return copy_change(graph, index, args, &element);
}


/* ---- the template ---- */

static cgl_status op_refresh(cgl_graph *graph, size_t index,
                             const char *operation) {
  cgl_context *context = graph->object.context;
  const cgl_op *op = cgl_record_op(graph->recording, index);
  cgl_build_node node;
  cgl_status status =
      cgl_build_begin(&node, context, graph->recording, op, operation);
  if (!status)
    status = cgl_fail_driver(
        context, context->driver->cuGraphNodeSetParams(op->node, &node.params),
        operation, "cuGraphNodeSetParams");
  if (!status)
    cgl_record_refreshed(graph->recording, index);
  return status;
}


cgl_status cgl_graph_refresh(cgl_graph *graph, const char *operation) {
  cgl_context *context = graph->object.context;
  const cgl_recording *recording = graph->recording;
  if (!recording || !recording->nstale)
    return CGL_OK;
  cgl_status status = cgl_context_enter(context, operation);
  if (status)
    return status;
  cgl_relaxed relaxed = cgl_captures_relax(context);
  for (size_t i = 0; recording->nstale && !status; i++)
    if (recording->ops[i].stale)
      status = op_refresh(graph, i, operation);
  cgl_captures_unrelax(context, relaxed);
  return status;
}


/* ---- off and on ---- */

/* Not a node that moves a generator's offset: draws would repeat. */
static bool op_can_be_off(const cgl_op *op) {
  return op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET ||
         (op->kind == CGL_OP_KERNEL && (op->object || op->fills));
}


cgl_status cgl_graph_set_enabled(cgl_graph *graph, size_t index, bool enabled) {
  cgl_context *context = graph->object.context;
  const cgl_op *op;
  cgl_status status = cgl_graph_op(graph, index, switching, &op);
  if (!status && !op_can_be_off(op))
    status = refuse_kind(op, switching, "a kernel, a copy or a fill");
  if (!status)
    status = cgl_context_enter(context, switching);
  if (status || op->off == !enabled)
    return status;
  if (!cgl_record_own(&graph->recording))
    return cgl_fail(CGL_ERROR_NO_MEMORY, switching,
                    "no memory to note what is off");
  CUresult result = CUDA_SUCCESS;
  cgl_relaxed relaxed = cgl_captures_relax(context);
  op = cgl_record_op(graph->recording, index);
  if (graph->exec)
    result =
        context->driver->cuGraphNodeSetEnabled(graph->exec, op->node, enabled);
  cgl_captures_unrelax(context, relaxed);
  if (result)
    return cgl_fail_driver(context, result, switching, "cuGraphNodeSetEnabled");
  cgl_record_set_off(graph->recording, index, !enabled);
  /* A private pool is stamped once per stream: the next replay writes other
     memory than the last. */
  graph->stamped = NULL;
  return CGL_OK;
}


CUresult cgl_graph_switch_off(const cgl_graph *graph, CUgraphExec exec) {
  const cgl_recording *recording = graph->recording;
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; recording->noff && i < recording->nops && !result; i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    if (op->off)
      result = cgl_driver_of(graph)->cuGraphNodeSetEnabled(exec, op->node, 0);
  }
  return result;
}
