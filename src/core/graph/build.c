/* Building nodes and graphs from a recording. */
#include "core/graph/build.h"

#include <stdlib.h>
#include <string.h>


/* ---- what a node does, by kind ---- */

const cgl_element *cgl_build_element(const cgl_recording *recording,
                                     const cgl_op *op) {
  return (const cgl_element *)cgl_record_values(recording, op);
}


/* Whether the values have the address `at` bytes behind the first. */
static bool values_have(const cgl_recording *recording, const cgl_op *op,
                        size_t at, CUdeviceptr address) {
  return at + sizeof address <= op->nvalues &&
         !memcmp(cgl_record_values(recording, op) + at, &address,
                 sizeof address);
}


/* What a predicated kernel looks at. */
static size_t find_looked_at(const cgl_recording *recording, const cgl_op *op,
                             CUdeviceptr address) {
  const size_t predicate = op->nvalues - sizeof(cgl_predicate);
  const size_t at[] = {op->predication == CGL_PREDICATION_WRITES
                           ? 0
                           : predicate + offsetof(cgl_predicate, value),
                       op->predication == CGL_PREDICATION_WRITES
                           ? 0
                           : predicate + offsetof(cgl_predicate, word)};
  for (size_t i = 0; i < 2; i++)
    if (values_have(recording, op, at[i], address))
      return at[i];
  return SIZE_MAX;
}


size_t cgl_build_find_address(const cgl_recording *recording, const cgl_op *op,
                              const cgl_range *range) {
  const cgl_kernel *kernel = (const cgl_kernel *)op->object;
  size_t at = 16 * (size_t)range->argument;
  if (op->follows && range->argument >= CGL_ARGUMENT_FOLLOWED) {
    const size_t word = 1 + (size_t)range->argument - CGL_ARGUMENT_FOLLOWED;
    at = cgl_kernel_value_at(kernel, kernel->nparams) + 8 * word;
    return values_have(recording, op, at, range->address) ? at : SIZE_MAX;
  }
  if (range->argument >= CGL_MAX_PARAMS)
    return find_looked_at(recording, op, range->address);
  if (op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET)
    at = range->argument ? offsetof(cgl_element, what)
                         : offsetof(cgl_element, to);
  else if (op->kind != CGL_OP_KERNEL)
    return SIZE_MAX;
  else if (kernel) {
    if (range->argument >= kernel->nparams ||
        kernel->sizes[range->argument] != sizeof range->address)
      return SIZE_MAX;
    at = cgl_kernel_value_at(kernel, range->argument);
  }
  return values_have(recording, op, at, range->address) ? at : SIZE_MAX;
}


void cgl_build_kernel(CUgraphNodeParams *params, CUfunction function,
                      const cgl_launch *launch, void **values) {
  params->type = CU_GRAPH_NODE_TYPE_KERNEL;
  params->kernel =
      (CUDA_KERNEL_NODE_PARAMS){.func = function,
                                .gridDimX = launch->grid[0],
                                .gridDimY = launch->grid[1],
                                .gridDimZ = launch->grid[2],
                                .blockDimX = launch->block[0],
                                .blockDimY = launch->block[1],
                                .blockDimZ = launch->block[2],
                                .sharedMemBytes = launch->shared_bytes,
                                .kernelParams = values};
}


/* A copy or a fill that a kernel does. */
static void build_own(CUgraphNodeParams *params, void **values,
                      CUfunction function, const cgl_element *element) {
  const cgl_launch launch = cgl_copy_launch(element->count);
  values[0] = (void *)&element->to;
  values[1] = (void *)&element->what;
  values[2] = (void *)&element->count;
  cgl_build_kernel(params, function, &launch, values);
}


void cgl_build_copy(CUgraphNodeParams *params, void **values,
                    const cgl_context *context, CUfunction function,
                    const cgl_element *element) {
  CUDA_MEMCPY3D *copy = &params->memcpy.copyParams;
  memset(params, 0, sizeof *params);
  if (function) {
    build_own(params, values, function, element);
    return;
  }
  params->type = CU_GRAPH_NODE_TYPE_MEMCPY;
  params->memcpy.copyCtx = context->handle;
  copy->dstMemoryType = copy->srcMemoryType = CU_MEMORYTYPE_DEVICE;
  if (element->pinned == 1) {
    copy->dstMemoryType = CU_MEMORYTYPE_HOST;
    copy->dstHost = (void *)(uintptr_t)element->to;
  } else
    copy->dstDevice = element->to;
  if (element->pinned == 2) {
    copy->srcMemoryType = CU_MEMORYTYPE_HOST;
    copy->srcHost = (void *)(uintptr_t)element->what;
  } else
    copy->srcDevice = element->what;
  copy->WidthInBytes = element->count;
  copy->Height = copy->Depth = 1;
}


void cgl_build_fill(CUgraphNodeParams *params, void **values,
                    const cgl_context *context, CUfunction function,
                    const cgl_element *element) {
  const size_t size = cgl_copy_word_bytes(element);
  memset(params, 0, sizeof *params);
  if (function) {
    build_own(params, values, function, element);
    return;
  }
  params->type = CU_GRAPH_NODE_TYPE_MEMSET;
  params->memset = (CUDA_MEMSET_NODE_PARAMS_v2){.dst = element->to,
                                                .value = cgl_copy_word(element),
                                                .elementSize = (unsigned)size,
                                                .width = element->count / size,
                                                .height = 1,
                                                .ctx = context->handle};
}


void cgl_build_kernel_of(CUgraphNodeParams *params, void **values,
                         const cgl_recording *recording, const cgl_op *op) {
  const cgl_kernel *kernel = (const cgl_kernel *)op->object;
  unsigned char *from = (unsigned char *)cgl_record_values(recording, op);
  const size_t end = op->rule ? cgl_record_numbers_at(op) : op->nvalues;
  /* Values lie at multiples of 16, of a user's kernel and of ours alike. */
  for (size_t i = 0, at = 0; at < end; i++) {
    at = cgl_kernel_next_value(at);
    values[i] = from + at;
    at += !kernel               ? 16
          : i < kernel->nparams ? kernel->sizes[i]
                                : end; /* what a second form has */
  }
  cgl_build_kernel(params, op->function, &op->launch, values);
}


void cgl_build_node(CUgraphNodeParams *params, void **values,
                    const cgl_context *context, const cgl_recording *recording,
                    const cgl_op *op) {
  const cgl_event *event = (const cgl_event *)op->object;
  memset(params, 0, sizeof *params);
  switch (op->kind) {
  case CGL_OP_KERNEL:
    cgl_build_kernel_of(params, values, recording, op);
    break;
  case CGL_OP_MEMCPY:
    cgl_build_copy(params, values, context, op->function,
                   cgl_build_element(recording, op));
    break;
  case CGL_OP_MEMSET:
    cgl_build_fill(params, values, context, op->function,
                   cgl_build_element(recording, op));
    break;
  case CGL_OP_RECORD:
    params->type = CU_GRAPH_NODE_TYPE_EVENT_RECORD;
    params->eventRecord.event = event->handle;
    break;
  case CGL_OP_WAIT:
    params->type = CU_GRAPH_NODE_TYPE_WAIT_EVENT;
    params->eventWait.event = event->handle;
    break;
  case CGL_OP_GRAPH:
    cgl_issue_child_params(params, NULL);
    break;
  case CGL_OP_CALL:
    cgl_issue_child_params(params,
                           ((const cgl_call_captured *)op->object)->graph);
    break;
  case CGL_OP_CONDITIONAL:
  case CGL_OP_FOREIGN:
  case CGL_OP_COUNT:
    break;
  }
}


/* ---- a graph ---- */

static const CUgraphEdgeData programmatic = {
    .from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
    .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};


/* A node that was added has its stream's priority. */
static CUresult node_set_priority(const cgl_driver *driver, CUgraphNode node,
                                  int priority, const char **entry) {
  const CUlaunchAttributeValue value = {.priority = priority};
  *entry = "cuGraphKernelNodeSetAttribute";
  return driver->cuGraphKernelNodeSetAttribute(
      node, CU_LAUNCH_ATTRIBUTE_PRIORITY, &value);
}


cgl_status cgl_build_add_kernel(cgl_context *context,
                                const cgl_recording *recording,
                                const cgl_op *op, const cgl_captured *after,
                                const char *operation, CUgraphNode *node) {
  CUgraphNodeParams params;
  void *values[CGL_MAX_PARAMS];
  const char *entry = "cuGraphAddNode";
  cgl_build_node(&params, values, context, recording, op);
  CUresult result = context->driver->cuGraphAddNode(
      node, after->graph, after->nodes,
      op->programmatic ? &programmatic : after->edges, after->count, &params);
  if (!result && op->priority)
    result = node_set_priority(context->driver, *node, op->priority, &entry);
  return cgl_fail_driver(context, result, operation, entry);
}


typedef struct build {
  cgl_context *context;
  const cgl_recording *recording;
  const char *operation;
  CUgraph graph;
  CUgraphConditionalHandle next, around; /* cgl_handle */
  CUgraphNode *nodes, *before;           /* room for each operation's */
  CUgraphNode *ends; /* of the copy before, that no other depends on */
  size_t nends;
  const CUgraphEdgeData *link; /* from them to the first nodes; NULL: full */
} build;


/* The node of a kernel, a copy, a fill, an event or a child graph. */
static cgl_status build_add_node(build *b, size_t index,
                                 const CUgraphEdgeData *edges, size_t nbefore) {
  cgl_context *context = b->context;
  const cgl_driver *driver = context->driver;
  const cgl_op *op = cgl_record_op(b->recording, index);
  CUgraphNodeParams params;
  void *values[CGL_MAX_PARAMS];
  CUgraph child = NULL;
  cgl_status status = CGL_OK;
  cgl_build_node(&params, values, context, b->recording, op);
  if (op->kind == CGL_OP_GRAPH)
    status =
        cgl_build_graph(context, cgl_record_body(b->recording, op->body - 1), 1,
                        b->operation, &child);
  if (op->handle == CGL_HANDLE_NEXT)
    status = cgl_build_handle(context, b->graph, b->operation, &b->next);
  if (status)
    return status;
  if (op->handle)
    values[0] = op->handle == CGL_HANDLE_NEXT ? &b->next : &b->around;
  if (child)
    params.graph.graph = child;
  const char *entry = "cuGraphAddNode";
  CUresult result = driver->cuGraphAddNode(&b->nodes[index], b->graph,
                                           b->before, edges, nbefore, &params);
  if (child)
    driver->cuGraphDestroy(child);
  if (!result && op->function && op->priority)
    result = node_set_priority(driver, b->nodes[index], op->priority, &entry);
  return cgl_fail_driver(context, result, b->operation, entry);
}


/* Names what the node of an operation depends on; returns how many. */
static size_t build_find_before(build *b, size_t index,
                                const CUgraphEdgeData **edges) {
  size_t count;
  const size_t *from = cgl_record_dependencies(b->recording, index, &count);
  const bool early = cgl_record_op(b->recording, index)->programmatic;
  *edges = early && count == 1 ? &programmatic : NULL;
  for (size_t i = 0; i < count; i++)
    b->before[i] = b->nodes[from[i]];
  if (count || !b->nends)
    return count;
  *edges = b->link;
  memcpy(b->before, b->ends, b->nends * sizeof(CUgraphNode));
  return b->nends;
}


/* Adds the node of an operation after those that it depends on. */
static cgl_status build_add(build *b, size_t index) {
  const cgl_op *op = cgl_record_op(b->recording, index);
  if (op->kind == CGL_OP_FOREIGN) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, b->operation,
             "the graph has a node that another library put into the capture");
    return cgl_fail_hint("capture the work of that library into a graph of "
                         "its own");
  }
  const CUgraphEdgeData *edges;
  const size_t count = build_find_before(b, index, &edges);
  if (op->kind != CGL_OP_CONDITIONAL)
    return build_add_node(b, index, edges, count);
  const cgl_build_conditional conditional = {
      .graph = b->graph,
      .before = b->before,
      .nbefore = count,
      .handle = b->next,
      .type = cgl_record_conditional_type(b->recording, op),
      .bodies = cgl_record_bodies(b->recording, op),
      .nbodies = op->nbodies};
  return cgl_build_add_conditional(b->context, &conditional, b->operation,
                                   &b->nodes[index]);
}


/* The nodes of a copy have been added: those that come last are its ends. */
static void build_end_copy(build *b) {
  const size_t n = cgl_record_count(b->recording);
  size_t roots = 0, root = 0, end = 0, count;
  memcpy(b->ends, b->nodes, n * sizeof(CUgraphNode));
  for (size_t i = 0; i < n; i++) {
    const size_t *from = cgl_record_dependencies(b->recording, i, &count);
    for (size_t k = 0; k < count; k++)
      b->ends[from[k]] = NULL;
    roots += !count;
    root = count ? root : i;
  }
  b->nends = 0;
  for (size_t i = 0; i < n; i++)
    if (b->ends[i]) {
      b->ends[b->nends++] = b->ends[i];
      end = i;
    }
  const cgl_op *before = n ? cgl_record_op(b->recording, end) : NULL;
  b->link = roots == 1 && b->nends == 1 && before->waits && before->fits &&
                    cgl_record_op(b->recording, root)->waits
                ? &programmatic
                : NULL;
}


/* Adds the nodes of the recording to the graph, `copies` times. */
static cgl_status build_recording(build *b, uint64_t copies) {
  const size_t n = cgl_record_count(b->recording);
  cgl_status status = CGL_OK;
  b->nodes = malloc((3 * n + 1) * sizeof(CUgraphNode));
  if (!b->nodes)
    return cgl_fail(CGL_ERROR_NO_MEMORY, b->operation,
                    "no memory to build a graph");
  b->before = b->nodes + n;
  b->ends = b->before + n;
  for (uint64_t copy = 0; copy < copies && !status; copy++) {
    for (size_t i = 0; i < n && !status; i++)
      status = build_add(b, i);
    if (!status && copy + 1 < copies)
      build_end_copy(b);
  }
  free(b->nodes);
  return status;
}


cgl_status cgl_build_graph(cgl_context *context, const cgl_recording *recording,
                           uint64_t copies, const char *operation,
                           CUgraph *graph) {
  cgl_status status =
      cgl_fail_driver(context, context->driver->cuGraphCreate(graph, 0),
                      operation, "cuGraphCreate");
  if (status)
    return status;
  build b = {.context = context,
             .recording = recording,
             .operation = operation,
             .graph = *graph};
  status = build_recording(&b, copies);
  if (status)
    context->driver->cuGraphDestroy(*graph);
  return status;
}


/* ---- nodes that were put off ---- */

cgl_status cgl_build_late(cgl_context *context, cgl_recording *recording,
                          CUgraph graph, cgl_capture *capture) {
  const size_t n = cgl_record_count(recording);
  const cgl_site here = cgl_site_here;
  build b = {.context = context, .recording = recording, .graph = graph};
  cgl_status status = CGL_OK;
  b.nodes = malloc((2 * n + 1) * sizeof(CUgraphNode));
  if (!b.nodes)
    return cgl_fail(CGL_ERROR_NO_MEMORY, "graph:capture_end",
                    "no memory to build a graph");
  b.before = b.nodes + n;
  for (size_t i = 0; i < n; i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    cgl_site_here = op->site;
    b.operation = op->kind == CGL_OP_KERNEL ? "kernel:launch" : op->name;
    status = build_add(&b, i);
    if (status)
      break;
    cgl_record_set_node(recording, i, b.nodes[i]);
    cgl_record_refreshed(recording, i);
  }
  if (status && capture)
    cgl_capture_note_broken(capture, b.operation);
  cgl_site_here = here;
  free(b.nodes);
  return status;
}


/* Adds the nodes, and has the stream follow the last. */
static cgl_status capture_add_late(cgl_capture *capture) {
  cgl_context *context = capture->origin->object.context;
  cgl_recording *recording = capture->recording;
  static const char operation[] = "graph:capture_begin";
  cgl_captured now;
  cgl_status status = cgl_context_enter(context, operation);
  if (status)
    return status;
  CUresult result = cgl_capture_ask(capture->origin, &now);
  if (result)
    return cgl_fail_driver(context, result, operation,
                           "cuStreamGetCaptureInfo");
  if (!cgl_record_assume_line(recording))
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory to build a graph");
  status = cgl_build_late(context, recording, now.graph, capture);
  cgl_record_forget_edges(recording);
  if (status)
    return status;
  const cgl_op *last = cgl_record_op(recording, capture->noted - 1);
  return cgl_fail_driver(context,
                         context->driver->cuStreamUpdateCaptureDependencies(
                             capture->origin->handle,
                             (CUgraphNode *)&last->node, NULL, 1,
                             CU_STREAM_SET_CAPTURE_DEPENDENCIES),
                         operation, "cuStreamUpdateCaptureDependencies");
}


CUresult cgl_build_catch_up(cgl_capture *capture) {
  capture->catch_up = NULL;
  capture->programmatic = false;
  for (size_t i = 0; i < cgl_record_count(capture->recording); i++)
    cgl_record_set_programmatic(capture->recording, i, false);
  if (!capture->noted || !capture_add_late(capture))
    return CUDA_SUCCESS;
  const cgl_site here = cgl_site_here; /* a node's failure has its own */
  cgl_site_here = capture->underway.begun;
  cgl_capture_note_broken(capture, cgl_last_error()->operation);
  cgl_site_here = here;
  capture->incomplete = true;
  return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}


/* ---- programmatic edges of graphs that fork ---- */

void cgl_build_choose_programmatic(cgl_recording *recording) {
  unsigned char *alone = cgl_order_find_alone(recording);
  for (size_t i = 0; i < cgl_record_count(recording); i++)
    cgl_record_set_programmatic(recording, i,
                                cgl_record_may_come_early(recording, alone, i));
  free(alone);
}


/* The one edge of each operation of a list, which the driver's graph has in the
   other way, becomes programmatic or full. */
static CUresult edges_exchange(const cgl_driver *driver,
                               const cgl_recording *recording, CUgraph graph,
                               const size_t *list, size_t n, bool early,
                               const char **entry) {
  if (!n)
    return CUDA_SUCCESS;
  CUgraphNode *from = malloc(n * sizeof *from), *to = malloc(n * sizeof *to);
  CUgraphEdgeData *data = malloc(n * sizeof *data);
  CUresult result =
      from && to && data ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
  for (size_t i = 0; i < n && !result; i++) {
    size_t count;
    const size_t *before = cgl_record_dependencies(recording, list[i], &count);
    from[i] = cgl_record_op(recording, before[0])->node;
    to[i] = cgl_record_op(recording, list[i])->node;
    data[i] = programmatic;
  }
  if (!result) {
    *entry = "cuGraphRemoveDependencies";
    result = driver->cuGraphRemoveDependencies(graph, from, to, NULL, n);
  }
  if (!result) {
    *entry = "cuGraphAddDependencies";
    result =
        driver->cuGraphAddDependencies(graph, from, to, early ? data : NULL, n);
  }
  free(data);
  free(to);
  free(from);
  return result;
}


cgl_status cgl_build_put_programmatic(cgl_context *context,
                                      cgl_recording *recording,
                                      const char *operation, CUgraph graph) {
  const char *entry = "cuGraphAddDependencies";
  const size_t n = cgl_record_count(recording);
  size_t *list = malloc((n + 1) * sizeof *list), count = 0;
  if (!list)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for the edges of the graph");
  cgl_build_choose_programmatic(recording);
  for (size_t i = 0; i < n; i++)
    if (cgl_record_op(recording, i)->programmatic)
      list[count++] = i;
  const CUresult result = edges_exchange(context->driver, recording, graph,
                                         list, count, true, &entry);
  free(list);
  return cgl_fail_driver(context, result, operation, entry);
}


cgl_status cgl_build_thin_programmatic(cgl_context *context,
                                       cgl_recording *recording,
                                       const char *operation, CUgraph graph) {
  const size_t n = cgl_record_count(recording);
  const char *entry = "cuGraphGetEdges";
  size_t i = 0, nlist = 0;
  while (i < n && !cgl_record_op(recording, i)->programmatic)
    i++;
  if (i == n)
    return CGL_OK;
  size_t *list = malloc(n * sizeof *list);
  if (!list)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for the edges of the graph");
  CUresult result = cgl_record_learn_edges(recording, graph);
  unsigned char *alone = result ? NULL : cgl_order_find_alone(recording);
  for (; i < n && !result; i++)
    if (cgl_record_op(recording, i)->programmatic &&
        !cgl_record_may_come_early(recording, alone, i)) {
      size_t count;
      const size_t *from = cgl_record_dependencies(recording, i, &count);
      if (count == 1 && from[0] != SIZE_MAX)
        list[nlist++] = i;
      cgl_record_set_programmatic(recording, i, false);
    }
  if (!result)
    result = edges_exchange(context->driver, recording, graph, list, nlist,
                            false, &entry);
  free(alone);
  free(list);
  return cgl_fail_driver(context, result, operation, entry);
}


/* ---- conditional nodes ---- */

cgl_status cgl_build_handle(cgl_context *context, CUgraph graph,
                            const char *operation,
                            CUgraphConditionalHandle *handle) {
  return cgl_fail_driver(context,
                         context->driver->cuGraphConditionalHandleCreate(
                             handle, graph, context->handle, 0, 0),
                         operation, "cuGraphConditionalHandleCreate");
}


/* Drivers before CUDA 12.8 hang in a body without nodes. */
static cgl_status build_body(build *b) {
  CUgraphNodeParams empty;
  CUgraphNode node;
  if (cgl_record_count(b->recording))
    return build_recording(b, 1);
  memset(&empty, 0, sizeof empty);
  empty.type = CU_GRAPH_NODE_TYPE_EMPTY;
  return cgl_fail_driver(b->context,
                         b->context->driver->cuGraphAddNode(
                             &node, b->graph, NULL, NULL, 0, &empty),
                         b->operation, "cuGraphAddNode");
}


cgl_status cgl_build_add_conditional(cgl_context *context,
                                     const cgl_build_conditional *conditional,
                                     const char *operation, CUgraphNode *node) {
  CUgraphNodeParams params;
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = conditional->handle;
  params.conditional.type = conditional->type;
  params.conditional.size = (unsigned)conditional->nbodies;
  params.conditional.ctx = context->handle;
  cgl_status status =
      cgl_fail_driver(context,
                      context->driver->cuGraphAddNode(
                          node, conditional->graph, conditional->before,
                          conditional->edges, conditional->nbefore, &params),
                      operation, "cuGraphAddNode");
  for (size_t i = 0; i < conditional->nbodies && !status; i++) {
    const cgl_recording *body = conditional->bodies[i];
    build b = {.context = context,
               .recording = body,
               .operation = operation,
               .graph = params.conditional.phGraph_out[i],
               .around = conditional->handle};
    status = build_body(&b);
  }
  return status;
}
