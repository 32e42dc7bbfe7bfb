/* Changing a captured graph: what its nodes do, and whether they run.
   Idea: a change goes to the executable at once, for the replays that come
   after it, and into the recording; the template learns of it when it is
   needed, so a loop that changes a node before each replay asks the driver for
   one thing.
   Invariants: an operation's values, ranges and kept objects are those of its
   node in the executable; while the graph has an executable, an operation that
   is `stale` differs from the template's node; planned memory stays with the
   operation that it was captured with, because the order of the capture decided
   where it is used.  Replays in flight keep what they were launched with. */
#include "core/graph/build.h"
#include "core/graph/plan.h"

#include <stdlib.h>
#include <string.h>

static const char setting[] = "graph:set_params";
static const char switching[] = "graph:set_enabled";


/* ---- which node ---- */

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
  if (op->kind == CGL_OP_CONDITIONAL || op->handle ||
      op->predication == CGL_PREDICATION_WRITES)
    return cgl_fail_hint("the nodes of a branch or a loop stay as they were "
                         "captured: keep in a buffer what is to vary");
  if (op->kind == CGL_OP_FOREIGN)
    return cgl_fail_hint("who captured it may change it, with "
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


/* ---- a change of numbers and memory ---- */

typedef struct change {
  cgl_graph *graph;
  const cgl_op *op;
  cgl_kernel *kernel; /* NULL: a fill or a copy */
  const cgl_arg *args;
  size_t nargs;                     /* 0: all as they are */
  size_t ngained;                   /* arguments that reach memory now */
  void *params[CGL_MAX_PARAMS + 1]; /* of a kernel: into its values */
  cgl_record_edit edit;
} change; /* too large to be cleared for every call */


/* Operation `index` is of the kind, or refused, and the recording the graph's
   own. */
static cgl_status change_begin(change *c, cgl_graph *graph, size_t index,
                               cgl_op_kind kind, const char *wanted) {
  cgl_status status = cgl_graph_op(graph, index, setting, &c->op);
  if (!status &&
      (c->op->kind != kind || (kind == CGL_OP_KERNEL && !c->op->object)))
    status = refuse_kind(c->op, setting, wanted);
  if (!status)
    status = cgl_context_enter(graph->object.context, setting);
  if (status)
    return status;
  if (!cgl_record_own(&graph->recording))
    return cgl_fail(CGL_ERROR_NO_MEMORY, setting,
                    "no memory to note what the node uses");
  c->graph = graph;
  c->op = cgl_record_op(graph->recording, index);
  c->kernel = kind == CGL_OP_KERNEL ? (cgl_kernel *)c->op->object : NULL;
  c->ngained = 0;
  cgl_record_edit_begin(&c->edit, graph->recording, index,
                        graph->capture.underway.serial);
  return CGL_OK;
}


/* What the graph keeps for an argument; NULL: nothing, or planned memory
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


static cgl_status refuse_planned(const change *c, size_t index) {
  static const char why[] =
      "uses or would use memory that a capture allocated from the graph's own "
      "pool: where it is used was planned by the order of the capture";
  if (c->kernel)
    cgl_arg_refuse(CGL_ERROR_INVALID_ARGUMENT, c->kernel, index, setting, "%s",
                   why);
  else
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, setting, "the node %s", why);
  return cgl_fail_hint("make a buffer that is to be exchanged before the "
                       "capture begins");
}


/* The memory at *address is to take the place of `range` (NULL: there was
   none). */
static cgl_status change_want(change *c, size_t index, const cgl_range *range,
                              const void *address) {
  bool planned;
  cgl_object *object = argument_object(c->graph, &c->args[index], &planned);
  if (range && range->planned
          ? memcmp(&range->address, address, sizeof range->address) != 0
          : planned)
    return refuse_planned(c, index);
  c->edit.nobjects += object != NULL;
  c->ngained += !range && object;
  return CGL_OK;
}


/* A fill by the driver that is off stays on in the driver and writes a spare
   word: a driver (580, H200) that has switched off a memset of up to 4 KiB at
   the start or the end of a graph fails the graph's second launch in flight
   with CUDA_ERROR_LAUNCH_FAILED. */
static bool fill_stays_on(const cgl_op *op) {
  return op->kind == CGL_OP_MEMSET && !op->function;
}


/* The node changes: in the executable, else in the template. */
static cgl_status node_set(const cgl_graph *graph, const cgl_op *op,
                           CUgraphNodeParams *params, const char *operation) {
  cgl_context *context = graph->object.context;
  const cgl_driver *driver = context->driver;
  const CUgraphExec exec = graph->exec;
  const CUgraphNode node = op->node;
  const char *entry = "cuGraphNodeSetParams";
  CUresult result;
  if (exec && op->off && fill_stays_on(op))
    return CGL_OK; /* written when it is switched on */
  cgl_relaxed relaxed = cgl_captures_relax(context);
  if (!exec)
    result = driver->cuGraphNodeSetParams(node, params);
  else if (op->function) {
    entry = "cuGraphExecKernelNodeSetParams";
    result =
        driver->cuGraphExecKernelNodeSetParams(exec, node, &params->kernel);
  } else {
    entry = "cuGraphExecNodeSetParams";
    result = driver->cuGraphExecNodeSetParams(exec, node, params);
  }
  cgl_captures_unrelax(context, relaxed);
  return cgl_fail_driver(context, result, operation, entry);
}


/* Sets the nodes of a child graph, *graph, that use parameters or inputs to
   what its recording has. */
static CUresult child_refresh(const cgl_context *context, CUgraphNode node,
                              const cgl_recording *body, CUgraph *graph) {
  const cgl_driver *driver = context->driver;
  size_t n = cgl_record_count(body);
  CUgraphNodeParams params;
  void *values[CGL_MAX_PARAMS + 1];
  CUgraph inner;
  CUgraphNode *nodes = malloc(n * sizeof *nodes);
  CUresult result = nodes ? driver->cuGraphChildGraphNodeGetGraph(node, graph)
                          : CUDA_ERROR_OUT_OF_MEMORY;
  if (!result)
    result = driver->cuGraphGetNodes(*graph, nodes, &n);
  for (size_t i = 0; i < n && !result; i++) {
    const cgl_op *op = cgl_record_op(body, i);
    const cgl_recording *const *bodies = cgl_record_bodies(body, op);
    if (bodies && cgl_record_varies(bodies[0]))
      result = child_refresh(context, nodes[i], bodies[0], &inner);
    if (result || !cgl_record_op_varies(body, op))
      continue;
    cgl_build_node(&params, values, context, body, op);
    result = driver->cuGraphNodeSetParams(nodes[i], &params);
  }
  free(nodes);
  return result;
}


/* The same of the operation's child graph in the template, which *params is
   then. */
static cgl_status child_set(const cgl_graph *graph, const cgl_op *op,
                            CUgraphNodeParams *params, const char *operation) {
  cgl_context *context = graph->object.context;
  CUgraph child;
  cgl_relaxed relaxed = cgl_captures_relax(context);
  CUresult result = child_refresh(
      context, op->node, *cgl_record_bodies(graph->recording, op), &child);
  cgl_captures_unrelax(context, relaxed);
  if (!result)
    cgl_issue_child_params(params, child);
  return cgl_fail_driver(context, result, operation, "cuGraphNodeSetParams");
}


/* The handle that a kernel sets is the template's, which may have been built
   anew since the capture: the recording has the first one. */
static CUresult handle_find(const cgl_context *context, const cgl_op *op,
                            void **values, CUgraphConditionalHandle *handle) {
  CUDA_KERNEL_NODE_PARAMS now;
  if (!op->handle)
    return CUDA_SUCCESS;
  CUresult result = context->driver->cuGraphKernelNodeGetParams(op->node, &now);
  if (!result)
    memcpy(handle, now.kernelParams[0], sizeof *handle);
  values[0] = handle;
  return result;
}


cgl_status cgl_graph_set_executable_node(const cgl_graph *graph, size_t index,
                                         const char *operation) {
  const cgl_op *op = cgl_record_op(graph->recording, index);
  CUgraphNodeParams params;
  void *values[CGL_MAX_PARAMS + 1];
  CUgraphConditionalHandle handle;
  if (op->kind == CGL_OP_GRAPH) {
    cgl_status status = child_set(graph, op, &params, operation);
    return status ? status : node_set(graph, op, &params, operation);
  }
  if (op->kind == CGL_OP_KERNEL) /* executables read params.kernel alone */
    cgl_build_kernel_of(&params, values, graph->recording, op);
  else
    cgl_build_node(&params, values, graph->object.context, graph->recording,
                   op);
  cgl_status status =
      cgl_fail_driver(graph->object.context,
                      handle_find(graph->object.context, op, values, &handle),
                      operation, "cuGraphKernelNodeGetParams");
  return status ? status : node_set(graph, op, &params, operation);
}


/* The graph keeps what an argument of the node uses now. */
static void change_note_memory(change *c, size_t index) {
  const cgl_arg *arg = &c->args[index];
  const cgl_range *range =
      cgl_record_range_of(c->graph->recording, c->op, index);
  cgl_range now = {.argument = (uint16_t)index};
  const bool memory = cgl_arg_memory(arg, &now.address, &now.bytes);
  if (!memory && !range)
    return;
  now.write = memory &&
              (c->kernel ? cgl_kernel_writes(c->kernel, index) : range->write);
  bool planned;
  cgl_object *object = argument_object(c->graph, arg, &planned);
  if (object && object->kind == &cgl_buffer_kind)
    atomic_store(&((cgl_buffer *)object)->wide, true);
  cgl_record_edit_keep(&c->edit, object);
  cgl_content *content = arg->kind == CGL_ARG_BUFFER
                             ? cgl_buffer_root(arg->buffer)->content
                             : NULL;
  cgl_record_edit_range(&c->edit, index, memory ? &now : NULL,
                        content ? &content->allocation : NULL);
  if (content && content->sharing != &c->graph->pool->sharing)
    c->graph->grouped = true;
  /* The first replay on each stream is noted: the next is another one. */
  if (cgl_record_is_outdated(c->graph->recording))
    c->graph->stamped = NULL;
}


/* In data order only the bytes that the nodes use order them. */
static cgl_status change_check_order(const change *c) {
  cgl_range ranges[CGL_MAX_PARAMS];
  size_t n = 0;
  for (size_t i = 0; i < c->nargs; i++) {
    const cgl_range *range = cgl_record_range_of(c->graph->recording, c->op, i);
    cgl_range now = {0};
    if (!cgl_arg_memory(&c->args[i], &now.address, &now.bytes))
      continue;
    now.write =
        c->kernel ? cgl_kernel_writes(c->kernel, i) : range && range->write;
    if (!range || range->address != now.address || range->bytes != now.bytes)
      ranges[n++] = now;
  }
  return cgl_plan_check_change(c->graph, c->edit.index, ranges, n, setting);
}


/* What is wanted comes to pass, or nothing does. */
static cgl_status change_end(change *c, CUgraphNodeParams *params,
                             const void *values, const cgl_launch *launch) {
  cgl_status status = CGL_OK;
  if (c->graph->options.order == CGL_ORDER_DATA)
    status = change_check_order(c);
  if (!status)
    status = cgl_record_edit_reserve(&c->edit, c->ngained, setting);
  if (status)
    return status;
  /* The operations may have moved. */
  c->op = cgl_record_op(c->graph->recording, c->edit.index);
  status = node_set(c->graph, c->op, params, setting);
  if (status)
    return status;
  cgl_record_edit_values(&c->edit, values, launch);
  for (size_t i = 0; i < c->nargs; i++)
    if (c->args[i].kind != CGL_ARG_SAME) {
      change_note_memory(c, i);
      if (c->kernel && c->op->follows)
        cgl_record_edit_range(&c->edit, CGL_ARGUMENT_FOLLOWED + i, NULL, NULL);
      if (c->kernel)
        cgl_record_end_use(c->graph->recording, c->edit.index, i);
    }
  if (c->edit.gained)
    c->graph->inputs_seen = 0;
  cgl_record_edit_end(&c->edit, c->graph->exec);
  cgl_graph_unroll_drop(c->graph);
  return CGL_OK;
}


/* ---- kernels ---- */

/* Whether a kernel would write what its second form reads: other kernels of a
   body, and blocks of its own, read it later. */
static bool change_meets_word(const change *c, size_t index) {
  const cgl_recording *recording = c->graph->recording;
  const cgl_range *ranges = cgl_record_ranges(recording, c->op);
  bool meets = false;
  for (uint32_t i = 0;
       i < c->op->nranges && (c->op->predication || c->op->follows); i++)
    meets |=
        ranges[i].argument >= CGL_MAX_PARAMS && ranges[i].bytes &&
        cgl_kernel_may_write(c->kernel, index, &c->args[index], &ranges[i]);
  return meets;
}


/* A kernel that may write what its parameters follow keeps its one block. */
static cgl_status change_check_blocks(const change *c, const uint32_t *grid) {
  const size_t at = cgl_kernel_value_at(c->kernel, c->kernel->nparams);
  uint64_t writes = 0;
  if (c->op->follows)
    memcpy(&writes, cgl_record_values(c->graph->recording, c->op) + at,
           sizeof writes);
  if (!writes || (uint64_t)grid[0] * grid[1] * grid[2] == 1)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, setting,
           "a parameter of the launch of %s follows a buffer that the kernel "
           "may write to: it has one block",
           c->op->name);
  return cgl_fail_hint("capture a launch of more blocks, with a parameter that "
                       "follows other memory");
}


/* An argument that followed a buffer has a value from now on. */
static void change_end_following(const change *c, size_t index,
                                 unsigned char *values) {
  if (c->op->follows)
    memset(values + cgl_kernel_value_at(c->kernel, c->kernel->nparams) +
               8 * (1 + index),
           0, 8);
}


/* Packs argument `index` over the value that is there. */
static cgl_status change_pack(change *c, size_t index) {
  const cgl_arg *arg = &c->args[index];
  void *value = c->params[index];
  if (arg->kind == CGL_ARG_GENERATOR) {
    cgl_arg_refuse(CGL_ERROR_ARGUMENT_TYPE, c->kernel, index, setting,
                   "is a generator: which of its numbers a node draws was "
                   "decided by the capture");
    return cgl_fail_hint("leave the argument out, and it stays as it is");
  }
  if (arg->kind == CGL_ARG_PARAM) {
    cgl_arg_refuse(CGL_ERROR_INVALID_ARGUMENT, c->kernel, index, setting,
                   "is a parameter: where parameters stand was decided by the "
                   "capture");
    return cgl_fail_hint("capture with the parameter in its place");
  }
  if (change_meets_word(c, index) && c->op->follows) {
    cgl_arg_refuse(CGL_ERROR_INVALID_ARGUMENT, c->kernel, index, setting,
                   "is memory that a parameter of the launch follows, which "
                   "the kernel may write to");
    return cgl_fail_hint("follow other memory, or declare the pointer as "
                         "const");
  }
  if (change_meets_word(c, index)) {
    cgl_arg_refuse(CGL_ERROR_INVALID_ARGUMENT, c->kernel, index, setting,
                   "is the value that decides whether the kernel runs");
    return cgl_fail_hint("capture the branch with {form = \"node\"}, or let "
                         "another kernel write the value");
  }
  cgl_status status = cgl_arg_pack(c->kernel, index, arg, setting, value);
  if (status)
    return status;
  return change_want(
      c, index, cgl_record_range_of(c->graph->recording, c->op, index), value);
}


/* The node's values with the new values among them. */
static cgl_status change_pack_all(change *c, unsigned char *values) {
  size_t at = 0;
  c->params[0] = values; /* what follows the last: a cgl_predicate's */
  if (c->op->nvalues)
    memcpy(values, cgl_record_values(c->graph->recording, c->op),
           c->op->nvalues);
  for (size_t i = 0; i < c->kernel->nparams; i++) {
    at = cgl_kernel_next_value(at);
    c->params[i] = values + at;
    at += c->kernel->sizes[i];
    c->params[i + 1] = values + cgl_kernel_next_value(at);
    if (!c->nargs || c->args[i].kind == CGL_ARG_SAME)
      continue;
    cgl_status status = change_pack(c, i);
    if (status)
      return status;
    change_end_following(c, i, values);
  }
  return CGL_OK;
}


cgl_status cgl_graph_set_params(cgl_graph *graph, size_t index,
                                const cgl_launch *launch, const cgl_arg *args,
                                size_t nargs) {
  change c;
  cgl_status status =
      change_begin(&c, graph, index, CGL_OP_KERNEL, "a kernel of the script");
  if (status)
    return status;
  c.args = args;
  c.nargs = args ? nargs : 0;
  const cgl_launch now = launch ? cgl_launch_resolve(launch) : c.op->launch;
  if (c.op->rule && (memcmp(now.grid, c.op->launch.grid, sizeof now.grid) ||
                     memcmp(now.block, c.op->launch.block, sizeof now.block))) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, setting,
             "the grid of the launch of %s is a parameter", c.op->name);
    return cgl_fail_hint("set the parameter: its block and its other extents "
                         "stay as they were captured");
  }
  status = cgl_launch_check(c.kernel, &now, args ? nargs : c.kernel->nparams,
                            setting);
  _Alignas(16) unsigned char values[CGL_VALUES_ROOM];
  if (!status)
    status = change_check_blocks(&c, now.grid);
  if (!status)
    status = change_pack_all(&c, values);
  if (status)
    return status;
  CUgraphNodeParams params;
  if (!graph->exec) /* executables read params.kernel alone */
    memset(&params, 0, sizeof params);
  cgl_build_kernel(&params, c.op->function, &now, c.params);
  return change_end(&c, &params, values, &now);
}


/* ---- fills and copies: other values, other memory of the same size ---- */

/* Refuses what cannot take the place of `range`, to which *now is set. */
static cgl_status copy_check(change *c, size_t index,
                             const cgl_element *element, const cgl_range *range,
                             cgl_range *now) {
  const cgl_arg *arg = &c->args[index];
  const bool was_pinned = element->pinned == index + 1;
  const bool pinned = arg->kind == CGL_ARG_PINNED;
  *now = *range;
  if (arg->kind == CGL_ARG_SAME)
    return CGL_OK;
  size_t bytes;
  const cgl_object *object = cgl_arg_memory(arg, &now->address, &bytes);
  if (!object) {
    cgl_fail(CGL_ERROR_ARGUMENT_TYPE, setting,
             "a buffer or pinned memory is wanted");
    return cgl_fail_hint(was_pinned ? "give other pinned memory"
                                    : "give another buffer");
  }
  if (pinned != was_pinned) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, setting,
             pinned ? "the node copies on the device or to it, and pinned "
                      "memory cannot take a buffer's place"
                    : "a buffer cannot take the place of pinned memory");
    return cgl_fail_hint("the direction of a copy was decided by the capture");
  }
  cgl_status status =
      cgl_object_check_device(&c->graph->object, object, setting);
  if (!status && !pinned)
    status = cgl_buffer_check(arg->buffer, setting);
  if (status)
    return status;
  const cgl_type had = (cgl_type)element->type;
  const cgl_type type = pinned ? arg->pinned->type : arg->buffer->type;
  const size_t before = range->bytes / cgl_type_bytes(had);
  const size_t count = pinned ? arg->pinned->count : arg->buffer->count;
  if (type == had && count == before)
    return change_want(c, index, range, &now->address);
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, setting,
           "%zu elements of %s cannot take the place of %zu of %s", count,
           cgl_type_name(type), before, cgl_type_name(had));
  return cgl_fail_hint("use memory of the same type and count, a view of it "
                       "perhaps");
}


/* Gives the operation other memory and another element. */
static cgl_status copy_change(change *c, cgl_element *element) {
  const cgl_context *context = c->graph->object.context;
  const cgl_range *ranges = cgl_record_ranges(c->graph->recording, c->op);
  const CUfunction function = c->op->function;
  uint64_t *const addresses[] = {&element->to, &element->what};
  CUgraphNodeParams params;
  void *values[3];
  for (size_t i = 0; i < c->nargs; i++) {
    cgl_range now;
    cgl_status status = copy_check(c, i, element, &ranges[i], &now);
    if (status)
      return status;
    *addresses[i] = now.address;
  }
  if (c->op->kind == CGL_OP_MEMCPY)
    cgl_build_copy(&params, values, context, function, element);
  else
    cgl_build_fill(&params, values, context, function, element);
  return change_end(c, &params, element, NULL);
}


/* A fill whose value is read from a buffer keeps it, and does not write it. */
static cgl_status fill_check_following(const change *c,
                                       const cgl_buffer *buffer,
                                       const void *value) {
  const cgl_range *from = cgl_record_range_of(c->graph->recording, c->op, 1);
  const bool meets = buffer && from &&
                     cgl_record_ranges_touch(from, 1, buffer->address,
                                             cgl_buffer_bytes(buffer), false);
  if (!value && !meets)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, setting,
           value ? "the value of the fill is a parameter that follows a buffer"
                 : "the fill would write to the buffer that its value follows");
  return cgl_fail_hint(value ? "write the value to the buffer"
                             : "give it memory beside that buffer");
}


cgl_status cgl_graph_set_fill(cgl_graph *graph, size_t index,
                              cgl_buffer *buffer, const void *value) {
  change c;
  cgl_status status = change_begin(&c, graph, index, CGL_OP_MEMSET, "a fill");
  if (status)
    return status;
  const cgl_arg arg = {.kind = buffer ? CGL_ARG_BUFFER : CGL_ARG_SAME,
                       .buffer = buffer};
  cgl_element element = *cgl_build_element(graph->recording, c.op);
  if (element.follows) {
    status = fill_check_following(&c, buffer, value);
    if (status)
      return status;
  }
  if (value)
    memcpy(element.value, value, cgl_type_bytes((cgl_type)element.type));
  if (!c.op->function && !cgl_copy_is_word(&element)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, setting,
             "the node fills with words of %zu bytes, and those of the value "
             "differ",
             cgl_copy_word_bytes(&element));
    return cgl_fail_hint("capture a fill with such a value: its node takes any "
                         "value");
  }
  c.args = &arg;
  c.nargs = 1;
  status = copy_change(&c, &element);
  if (!status && value)
    cgl_record_end_use(graph->recording, index, 0);
  return status;
}


cgl_status cgl_graph_set_copy(cgl_graph *graph, size_t index, const cgl_arg *to,
                              const cgl_arg *from) {
  static const cgl_arg same = {.kind = CGL_ARG_SAME};
  change c;
  cgl_status status = change_begin(&c, graph, index, CGL_OP_MEMCPY, "a copy");
  if (status)
    return status;
  const cgl_arg args[] = {to ? *to : same, from ? *from : same};
  cgl_element element = *cgl_build_element(graph->recording, c.op);
  c.args = args;
  c.nargs = 2;
  return copy_change(&c, &element);
}


/* ---- the template ---- */

cgl_status cgl_graph_refresh(cgl_graph *graph, const char *operation) {
  cgl_context *context = graph->object.context;
  cgl_recording *recording = graph->recording;
  CUgraphNodeParams params;
  void *values[CGL_MAX_PARAMS];
  CUgraphConditionalHandle handle;
  size_t index = 0;
  cgl_status status = cgl_graph_note_params(graph, operation);
  recording = graph->recording;
  if (status || !recording || !cgl_record_next_stale(recording, &index))
    return status;
  status = cgl_context_enter(context, operation);
  if (status)
    return status;
  CUresult result = CUDA_SUCCESS;
  cgl_relaxed relaxed = cgl_captures_relax(context);
  while (!result && cgl_record_next_stale(recording, &index)) {
    const cgl_op *op = cgl_record_op(recording, index);
    CUgraph child;
    if (op->kind == CGL_OP_GRAPH)
      result = child_refresh(context, op->node,
                             *cgl_record_bodies(recording, op), &child);
    else {
      cgl_build_node(&params, values, context, recording, op);
      result = handle_find(context, op, values, &handle);
      if (!result)
        result = context->driver->cuGraphNodeSetParams(op->node, &params);
    }
    if (!result)
      cgl_record_refreshed(recording, index);
  }
  cgl_captures_unrelax(context, relaxed);
  return cgl_fail_driver(context, result, operation, "cuGraphNodeSetParams");
}


/* ---- off and on ---- */

/* Not the nodes that move a generator's offset: draws would repeat. */
static bool op_can_be_off(const cgl_op *op) {
  return op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET ||
         (op->kind == CGL_OP_KERNEL && (op->object || op->fills));
}


/* Switches an operation's node off or on in an executable. */
static CUresult executable_switch(const cgl_graph *graph, CUgraphExec exec,
                                  const cgl_op *op, bool enabled,
                                  CUdeviceptr spare, const char **entry) {
  const cgl_driver *driver = cgl_driver_of(graph);
  CUgraphNodeParams params;
  void *values[CGL_MAX_PARAMS];
  *entry = "cuGraphNodeSetEnabled";
  if (!fill_stays_on(op))
    return driver->cuGraphNodeSetEnabled(exec, op->node, enabled);
  cgl_build_node(&params, values, graph->object.context, graph->recording, op);
  if (!enabled) {
    params.memset.dst = spare;
    params.memset.width = 1;
  }
  *entry = "cuGraphExecNodeSetParams";
  return driver->cuGraphExecNodeSetParams(exec, op->node, &params);
}


cgl_status cgl_graph_set_enabled(cgl_graph *graph, size_t index, bool enabled) {
  cgl_context *context = graph->object.context;
  const cgl_op *op;
  CUdeviceptr spare = 0;
  const char *entry = NULL;
  cgl_status status = cgl_graph_op(graph, index, switching, &op);
  if (!status && !op_can_be_off(op))
    status = refuse_kind(op, switching, "a kernel, a copy or a fill");
  if (!status)
    status = cgl_context_enter(context, switching);
  if (status || op->off == !enabled)
    return status;
  if (fill_stays_on(op)) {
    spare = cgl_memory_spare(context, switching);
    if (!spare)
      return cgl_last_error()->code;
  }
  if (!cgl_record_own(&graph->recording))
    return cgl_fail(CGL_ERROR_NO_MEMORY, switching,
                    "no memory to note what is off");
  CUresult result = CUDA_SUCCESS;
  cgl_relaxed relaxed = cgl_captures_relax(context);
  op = cgl_record_op(graph->recording, index);
  if (graph->exec)
    result = executable_switch(graph, graph->exec, op, enabled, spare, &entry);
  cgl_captures_unrelax(context, relaxed);
  if (result)
    return cgl_fail_driver(context, result, switching, entry);
  cgl_record_set_off(graph->recording, index, !enabled);
  graph->stamped = NULL; /* the next replay fills other memory than the last */
  return CGL_OK;
}


cgl_status cgl_graph_switch_off(const cgl_graph *graph, CUgraphExec exec,
                                const char *operation) {
  const cgl_recording *recording = graph->recording;
  cgl_context *context = graph->object.context;
  if (!cgl_record_noff(recording))
    return CGL_OK;
  const CUdeviceptr spare = cgl_memory_spare(context, operation);
  if (!spare)
    return cgl_last_error()->code;
  CUresult result = CUDA_SUCCESS;
  const char *entry = NULL;
  for (size_t i = 0; i < cgl_record_count(recording) && !result; i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    if (op->off)
      result = executable_switch(graph, exec, op, false, spare, &entry);
  }
  return cgl_fail_driver(context, result, operation, entry);
}
