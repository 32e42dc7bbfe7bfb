/* Changing fills and copies: other values, other memory of the same size. */
#include "core/graph/change.h"
#include "core/graph/graph.h"
#include "core/memory/memory.h"

#include <string.h>

static const char operation[] = "graph:set_params";


static cgl_element element_of(const cgl_graph *graph, const cgl_op *op) {
  cgl_element element;
  memcpy(&element, graph->recording.args + op->args, sizeof element);
  return element;
}


cgl_type cgl_change_type(const cgl_graph *graph, const cgl_op *op) {
  return op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET
             ? (cgl_type)element_of(graph, op).type
             : CGL_TYPE_COUNT;
}


/* ---- the driver's nodes ---- */

static void put(CUDA_MEMCPY3D *copy, bool source, CUdeviceptr address) {
  CUmemorytype kind = source ? copy->srcMemoryType : copy->dstMemoryType;
  if (source) {
    copy->srcXInBytes = copy->srcY = copy->srcZ = 0;
    copy->srcHost =
        kind == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)address : NULL;
    copy->srcDevice = kind == CU_MEMORYTYPE_HOST ? 0 : address;
  } else {
    copy->dstXInBytes = copy->dstY = copy->dstZ = 0;
    copy->dstHost =
        kind == CU_MEMORYTYPE_HOST ? (void *)(uintptr_t)address : NULL;
    copy->dstDevice = kind == CU_MEMORYTYPE_HOST ? 0 : address;
  }
}


/* The template's node, with these ranges and this element instead. */
static CUresult describe(const cgl_graph *graph, const cgl_op *op,
                         const cgl_range *ranges, const cgl_element *element,
                         CUgraphNodeParams *params) {
  const cgl_driver *driver = cgl_driver_of(graph);
  CUresult result;
  memset(params, 0, sizeof *params);
  if (op->kind == CGL_OP_MEMCPY) {
    params->type = CU_GRAPH_NODE_TYPE_MEMCPY;
    params->memcpy.copyCtx = graph->object.context->handle;
    result = driver->cuGraphMemcpyNodeGetParams(op->node,
                                                &params->memcpy.copyParams);
    put(&params->memcpy.copyParams, false, ranges[0].address);
    put(&params->memcpy.copyParams, true, ranges[1].address);
    return result;
  }
  CUDA_MEMSET_NODE_PARAMS fill;
  memset(&fill, 0, sizeof fill);
  result = driver->cuGraphMemsetNodeGetParams(op->node, &fill);
  params->type = CU_GRAPH_NODE_TYPE_MEMSET;
  params->memset = (CUDA_MEMSET_NODE_PARAMS_v2){
      .dst = ranges[0].address + cgl_element_at(element),
      .pitch = fill.pitch,
      .value = element->word,
      .elementSize = fill.elementSize,
      .width = fill.width,
      .height = fill.height,
      .ctx = graph->object.context->handle};
  return result;
}


CUresult cgl_change_describe(const cgl_graph *graph, const cgl_op *op,
                             CUgraphNodeParams *params) {
  const cgl_element element = element_of(graph, op);
  return describe(graph, op, &graph->recording.ranges[op->ranges], &element,
                  params);
}


/* ---- checks ---- */

static cgl_status check_matter(cgl_type type, size_t count, cgl_type had,
                               const cgl_range *range) {
  const size_t before = range->bytes / cgl_type_bytes(had);
  if (type == had && count == before)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "%zu elements of %s cannot take the place of %zu of %s", count,
           cgl_type_name(type), before, cgl_type_name(had));
  return cgl_fail_hint("use memory of the same type and count, a view of it "
                       "perhaps");
}


static cgl_status refuse_kind(bool pinned) {
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           pinned ? "the node copies on the device or to it, and pinned memory "
                    "cannot take a buffer's place"
                  : "a buffer cannot take the place of pinned memory");
  return cgl_fail_hint("the direction of a copy is settled by the capture");
}


static cgl_status refuse_planned(void) {
  cgl_fail(
      CGL_ERROR_INVALID_ARGUMENT, operation,
      "the node uses or would use memory that a capture allocated from the "
      "graph's own pool: where it is used was planned by the order of the "
      "capture");
  return cgl_fail_hint("make a buffer that is to be exchanged before the "
                       "capture begins");
}


/* Refuses what cannot take the place of `range`, to which *now is set. */
static cgl_status check(cgl_graph *graph, const cgl_arg *arg, cgl_type had,
                        bool was_pinned, const cgl_range *range,
                        cgl_range *now) {
  *now = *range;
  if (arg->kind == CGL_ARG_SAME)
    return CGL_OK;
  const bool pinned = arg->kind == CGL_ARG_PINNED;
  if (!pinned && arg->kind != CGL_ARG_BUFFER) {
    cgl_fail(CGL_ERROR_ARGUMENT_TYPE, operation,
             "a buffer or pinned memory is wanted");
    return cgl_fail_hint("give what the node had another one of");
  }
  if (pinned != was_pinned)
    return refuse_kind(pinned);
  const cgl_object *object =
      pinned ? &arg->pinned->object : &arg->buffer->object;
  cgl_status status = cgl_check_device(&graph->object, object, operation);
  if (!status && !pinned)
    status = cgl_buffer_check(arg->buffer, operation);
  if (!status)
    status = check_matter(pinned ? arg->pinned->type : arg->buffer->type,
                          pinned ? arg->pinned->count : arg->buffer->count, had,
                          range);
  cgl_range reached;
  cgl_arg_reaches(arg, &reached);
  now->address = reached.address;
  if (!status && (range->planned ? now->address != range->address
                                 : cgl_exchange_is_planned(graph, arg)))
    status = refuse_planned();
  return status;
}


/* ---- the change ---- */

static cgl_status set(const cgl_graph *graph, const cgl_op *op,
                      const cgl_range *now, const cgl_element *element) {
  cgl_context *context = graph->object.context;
  CUgraphNodeParams params;
  const char *entry = op->kind == CGL_OP_MEMCPY ? "cuGraphMemcpyNodeGetParams"
                                                : "cuGraphMemsetNodeGetParams";
  cgl_relaxed relaxed = cgl_relax(context);
  CUresult result = describe(graph, op, now, element, &params);
  if (!result && graph->exec) {
    entry = "cuGraphExecNodeSetParams";
    result = context->driver->cuGraphExecNodeSetParams(graph->exec, op->node,
                                                       &params);
  } else if (!result) {
    entry = "cuGraphNodeSetParams";
    result = context->driver->cuGraphNodeSetParams(op->node, &params);
  }
  cgl_unrelax(context, relaxed);
  return cgl_fail_driver(context, result, operation, entry);
}


/* Gives the operation other memory, one argument for each range, and another
   element. */
static cgl_status change(cgl_graph *graph, cgl_op *op, const cgl_arg *args,
                         const cgl_element *element) {
  cgl_recording *recording = &graph->recording;
  cgl_range now[2];
  cgl_exchange exchange;
  cgl_status status = cgl_context_enter(graph->object.context, operation);
  cgl_exchange_begin(&exchange, graph);
  for (uint32_t i = 0; i < op->nranges && !status; i++) {
    status = check(graph, &args[i], (cgl_type)element->type,
                   element->pinned == i + 1, &recording->ranges[op->ranges + i],
                   &now[i]);
    cgl_exchange_want(&exchange, &args[i]);
  }
  if (!status)
    status = cgl_exchange_reserve(&exchange, 0, operation);
  if (!status)
    status = set(graph, op, now, element);
  if (status)
    return status;
  memcpy(recording->args + op->args, element, sizeof *element);
  cgl_change_taken(graph, op);
  for (uint32_t i = 0; i < op->nranges; i++) {
    cgl_range *range = &recording->ranges[op->ranges + i];
    cgl_exchange_keep(&exchange, &args[i]);
    if (range->address != now[i].address)
      cgl_exchange_replace(&exchange, range);
    *range = now[i];
  }
  cgl_exchange_end(&exchange);
  return CGL_OK;
}


cgl_status cgl_graph_set_fill(cgl_graph *graph, size_t index,
                              cgl_buffer *buffer, const void *value) {
  cgl_op *op;
  cgl_status status = cgl_graph_op(graph, index, operation, &op);
  if (!status && op->kind != CGL_OP_MEMSET)
    status = cgl_change_refuse(op, operation, "a fill");
  if (status)
    return status;
  const cgl_arg arg = {.kind = buffer ? CGL_ARG_BUFFER : CGL_ARG_SAME,
                       .buffer = buffer};
  cgl_element element = element_of(graph, op);
  if (value && !element.half && cgl_type_bytes((cgl_type)element.type) == 8 &&
      memcmp(value, (const char *)value + 4, 4)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the node fills with words of four bytes, and the halves of the "
             "value differ");
    return cgl_fail_hint("capture a fill with such a value: it is two nodes, "
                         "which are both to be changed");
  }
  if (value)
    cgl_element_set(&element, value);
  return change(graph, op, &arg, &element);
}


cgl_status cgl_graph_set_copy(cgl_graph *graph, size_t index, const cgl_arg *to,
                              const cgl_arg *from) {
  static const cgl_arg same = {.kind = CGL_ARG_SAME};
  cgl_op *op;
  cgl_status status = cgl_graph_op(graph, index, operation, &op);
  if (!status && op->kind != CGL_OP_MEMCPY)
    status = cgl_change_refuse(op, operation, "a copy");
  if (status)
    return status;
  const cgl_arg args[] = {to ? *to : same, from ? *from : same};
  const cgl_element element = element_of(graph, op);
  return change(graph, op, args, &element);
}
