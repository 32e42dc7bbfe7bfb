/* The issue door. */
#include "core/record/recording_private.h"

#include <string.h>


cgl_status cgl_issue_begin(cgl_issue *issue, cgl_stream *stream,
                           const cgl_object *owner, const char *operation,
                           const cgl_room *room) {
  cgl_context *context = stream->object.context;
  cgl_recording *recording =
      stream->capture ? stream->capture->recording : NULL;
  *issue = (cgl_issue){
      .stream = stream, .recording = recording, .operation = operation};
  cgl_status status = CGL_OK;
  if (owner && owner->context != context)
    status = cgl_object_check_device(owner, &stream->object, operation);
  if (!status && recording)
    status = cgl_capture_check_open(stream, operation);
  if (!status)
    status = cgl_context_enter(context, operation);
  const CUresult late =
      status || room->late ? CUDA_SUCCESS : cgl_capture_catch_up(stream);
  if (late)
    return cgl_capture_failed(stream, late, operation, "cuGraphAddNode");
  return status || !recording ? status
                              : cgl_issue_reserve(recording, room, operation);
}


unsigned char *cgl_issue_values(const cgl_issue *issue) {
  cgl_recording *recording = issue->recording;
  if (!recording)
    return NULL;
  /* The host device reads arguments where they lie. */
  recording->nvalues = (recording->nvalues + 15) & ~(size_t)15;
  return recording->values + recording->nvalues;
}


/* ---- launches ---- */

/* Whether all blocks of a launch are on the device at once.  A word of
   waiter->fits is the shared bytes, the threads and the blocks that fit a
   multiprocessor: 32, 16 and 16 bits. */
static bool launch_fits(const cgl_issue *issue, CUfunction function,
                        const cgl_launch *launch, cgl_waiter *waiter) {
  const cgl_context *context = issue->stream->object.context;
  const uint64_t multiprocessors = (uint64_t)context->info.multiprocessors;
  const uint32_t *g = launch->grid, *b = launch->block;
  const uint64_t blocks = (uint64_t)g[0] * g[1] * g[2];
  const uint32_t threads = b[0] * b[1] * b[2];
  if (blocks <= multiprocessors)
    return true;
  if (blocks > multiprocessors << 16)
    return false;
  const uint64_t shape = ((uint64_t)launch->shared_bytes << 16 | threads) << 16;
  atomic_uint_fast64_t *known =
      &waiter->fits[(threads / 32 + launch->shared_bytes / 256) % 4];
  uint64_t word = atomic_load_explicit(known, memory_order_relaxed);
  int fit = 0;
  if (!word || (word ^ shape) >> 16) {
    if (context->driver->cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &fit, function, (int)threads, launch->shared_bytes))
      return false;
    word = shape | (uint16_t)fit;
    atomic_store_explicit(known, word, memory_order_relaxed);
  }
  return blocks <= (word & UINT16_MAX) * multiprocessors;
}


/* Whether the next operation of the stream has one dependency, an operation
   that a programmatic edge may follow.  Others that may issue work into the
   capture do not say so: the driver does. */
static bool issue_follows(const cgl_issue *issue) {
  const cgl_stream *stream = issue->stream;
  cgl_captured now;
  if (!stream->issued || stream->waited)
    return false;
  const cgl_op *before = &issue->recording->ops[stream->issued - 1];
  return before->waits && before->fits &&
         (!stream->capture->watched ||
          (!cgl_capture_ask(stream, &now) && now.count == 1 && before->node &&
           now.nodes[0] == before->node));
}


void cgl_issue_launch_of(cgl_issue *issue, const cgl_op *op, bool first) {
  issue->waits = op->waits;
  issue->fits = op->fits;
  issue->programmatic =
      issue->stream->capture->programmatic &&
      (first ? issue->waits && issue_follows(issue) : op->programmatic);
}


cgl_status cgl_issue_launch(cgl_issue *issue, CUfunction function,
                            const cgl_launch *launch, cgl_waiter *waiter,
                            void **params) {
  const cgl_driver *driver = cgl_driver_of(issue->stream);
  const uint32_t *g = launch->grid, *b = launch->block;
  const CUstream stream = issue->stream->handle;
  if (issue->recording) {
    issue->waits = waiter->waits && issue->stream->capture->programmatic_inside;
    issue->fits = launch_fits(issue, function, launch, waiter);
    issue->programmatic = issue->waits &&
                          issue->stream->capture->programmatic &&
                          issue_follows(issue);
  }
  if (cgl_issue_is_late(issue))
    return CGL_OK;
  if (!issue->programmatic)
    return cgl_issue_taken(
        issue,
        driver->cuLaunchKernel(function, g[0], g[1], g[2], b[0], b[1], b[2],
                               launch->shared_bytes, stream, params, NULL),
        "cuLaunchKernel");
  CUlaunchAttribute attribute = {
      .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
      .value.programmaticStreamSerializationAllowed = 1};
  const CUlaunchConfig config = {.gridDimX = g[0],
                                 .gridDimY = g[1],
                                 .gridDimZ = g[2],
                                 .blockDimX = b[0],
                                 .blockDimY = b[1],
                                 .blockDimZ = b[2],
                                 .sharedMemBytes = launch->shared_bytes,
                                 .hStream = stream,
                                 .attrs = &attribute,
                                 .numAttrs = 1};
  return cgl_issue_taken(
      issue, driver->cuLaunchKernelEx(&config, function, params, NULL),
      "cuLaunchKernelEx");
}


/* ---- child graphs ---- */

void cgl_issue_child_params(CUgraphNodeParams *params, CUgraph child) {
  memset(params, 0, sizeof *params);
  params->type = CU_GRAPH_NODE_TYPE_GRAPH;
  params->graph.graph = child;
  params->graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
}


static CUresult child_add(const cgl_stream *stream, CUgraph child,
                          CUgraphNode *node, const char **entry) {
  const cgl_driver *driver = cgl_driver_of(stream);
  cgl_captured parent;
  *entry = "cuStreamGetCaptureInfo";
  CUresult result = cgl_capture_ask(stream, &parent);
  if (result)
    return result;
  CUgraphNodeParams params;
  cgl_issue_child_params(&params, child);
  *entry = "cuGraphAddNode";
  result = driver->cuGraphAddNode(node, parent.graph, parent.nodes,
                                  parent.edges, parent.count, &params);
  if (result)
    return result;
  *entry = "cuStreamUpdateCaptureDependencies";
  result = driver->cuStreamUpdateCaptureDependencies(
      stream->handle, node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  if (result)
    driver->cuGraphDestroyNode(*node);
  return result;
}


cgl_status cgl_issue_child(const cgl_issue *issue, CUgraph child,
                           CUgraphNode *node) {
  const char *entry;
  const CUresult result = child_add(issue->stream, child, node, &entry);
  return cgl_issue_taken(issue, result, entry);
}


/* ---- what is noted ---- */

void cgl_issue_use(cgl_issue *issue, cgl_object *object,
                   cgl_allocation *allocation, const cgl_range *range) {
  cgl_recording *recording = issue->recording;
  if (!recording)
    return;
  if (!range || !range->planned)
    cgl_record_keep(recording, object, issue->stream->capture->underway.serial);
  if (!range)
    return;
  cgl_range *noted = &recording->ranges[recording->nranges + issue->nranges++];
  *noted = *range;
  noted->allocation =
      allocation ? cgl_record_add_allocation(recording, allocation) : 0;
  noted->input = range->input ? cgl_record_add_input(recording, object) : 0;
}


void cgl_issue_use_param(cgl_issue *issue, const cgl_param_use *use) {
  cgl_recording *recording = issue->recording;
  if (!recording)
    return;
  cgl_issue_use(issue, &use->param->object, NULL, NULL);
  recording->uses[recording->nuses + issue->nuses++] = *use;
}


cgl_status cgl_issue_set_number(cgl_ruled *ruled, size_t i,
                                const cgl_rule *rule, cgl_param *param,
                                double number, const char *operation) {
  if (param)
    ruled->rule = rule;
  ruled->params[i] = param;
  return cgl_record_set_number(&ruled->numbers, i, param, number, operation);
}


void cgl_issue_rule(cgl_issue *issue, cgl_note *note, const cgl_ruled *ruled,
                    uint16_t argument) {
  unsigned char *values = cgl_issue_values(issue);
  if (!values || !ruled->rule)
    return;
  const size_t at = (note->nvalues + 15) & ~(size_t)15;
  memcpy(values + at, &ruled->numbers, sizeof ruled->numbers);
  note->nvalues = at + sizeof ruled->numbers;
  note->rule = ruled->rule;
  for (size_t i = 0; i < CGL_NUMBERS; i++)
    if (ruled->params[i])
      cgl_issue_use_param(
          issue,
          &(cgl_param_use){
              .param = ruled->params[i],
              .offset = (uint32_t)(at + offsetof(cgl_numbers, raw) + 8 * i),
              .repeats = 1,
              .argument = (uint16_t)(argument + i)});
}


void cgl_issue_body(cgl_issue *issue, cgl_recording *body) {
  cgl_recording *recording = issue->recording;
  if (!recording)
    return;
  size_t i = 0;
  while (i < recording->nbodies && recording->bodies[i] != body)
    i++;
  if (i == recording->nbodies)
    recording->bodies[recording->nbodies++] = cgl_record_retain(body);
  issue->body = (uint32_t)i + 1;
  issue->nbodies = 1;
}


void cgl_issue_bodies(cgl_issue *issue, cgl_recording *const *bodies,
                      size_t n) {
  cgl_recording *recording = issue->recording;
  issue->body = (uint32_t)recording->nbodies + 1;
  issue->nbodies = (uint32_t)n;
  for (size_t i = 0; i < n; i++)
    recording->bodies[recording->nbodies++] = cgl_record_retain(bodies[i]);
}


static cgl_op *record_append(cgl_recording *recording, const cgl_note *note) {
  static const cgl_launch none;
  cgl_op *op = &recording->ops[recording->nops++];
  op->kind = note->kind;
  op->name = note->name;
  op->site = cgl_site_here;
  op->object = note->object;
  op->function = note->function;
  op->fills = note->fills;
  op->follows = note->follows;
  op->handle = note->handle;
  op->predication = note->predication;
  op->rule = note->rule;
  op->off = op->stale = op->due = op->waits = op->fits = op->programmatic =
      false;
  op->launch = note->launch ? *note->launch : none;
  op->ranges = recording->nranges;
  op->values = recording->nvalues;
  op->uses = recording->nuses;
  op->nvalues = (uint32_t)note->nvalues;
  op->scope = recording->scope;
  if (note->values && note->nvalues)
    memcpy(recording->values + recording->nvalues, note->values, note->nvalues);
  recording->nvalues += note->nvalues;
  op->nranges = op->nuses = op->body = op->nbodies = 0;
  op->stream = 0;
  return op;
}


cgl_status cgl_record_append(cgl_recording *recording, const cgl_op *from,
                             const void *values, const cgl_range *ranges,
                             const cgl_param_use *uses,
                             cgl_recording *const *bodies,
                             const char *operation) {
  cgl_issue issue = {.recording = recording};
  const cgl_room room = {.ranges = from->nranges,
                         .values = from->nvalues + 16,
                         .bodies = from->nbodies,
                         .uses = from->nuses};
  cgl_status status = cgl_issue_reserve(recording, &room, operation);
  if (status)
    return status;
  if (from->kind == CGL_OP_GRAPH)
    cgl_issue_body(&issue, bodies[0]);
  else if (from->nbodies)
    cgl_issue_bodies(&issue, bodies, from->nbodies);
  cgl_op *op = &recording->ops[recording->nops++];
  *op = *from;
  op->body = issue.body;
  op->values = (recording->nvalues + 15) & ~(size_t)15;
  op->ranges = recording->nranges;
  op->uses = recording->nuses;
  if (op->nuses)
    memcpy(recording->uses + op->uses, uses, op->nuses * sizeof *uses);
  if (op->nvalues)
    memcpy(recording->values + op->values, values, op->nvalues);
  if (op->nranges)
    memcpy(recording->ranges + op->ranges, ranges,
           op->nranges * sizeof *ranges);
  recording->nvalues = op->values + op->nvalues;
  recording->nranges += op->nranges;
  recording->nuses += op->nuses;
  recording->noff += op->off;
  return CGL_OK;
}


CUgraphNode cgl_issue_end(cgl_issue *issue, const cgl_note *note) {
  cgl_stream *stream = issue->stream;
  cgl_recording *recording = issue->recording;
  if (!recording) {
    if (note->kind == CGL_OP_KERNEL || note->kind == CGL_OP_CALL)
      cgl_launches_add(note->name);
    return NULL;
  }
  cgl_capture *capture = stream->capture;
  cgl_op *op = record_append(recording, note);
  op->node = capture->watched ? cgl_capture_last_node(stream) : NULL;
  op->priority = stream->priority;
  op->stream = stream->serial;
  op->nranges = issue->nranges;
  op->nuses = issue->nuses;
  op->body = issue->body;
  op->nbodies = issue->nbodies;
  op->waits = issue->waits;
  op->fits = issue->fits;
  op->programmatic = issue->programmatic;
  recording->nranges += issue->nranges;
  recording->nuses += issue->nuses;
  stream->issued = capture->noted = recording->nops;
  stream->waited = false;
  capture->latest = op->site;
  return op->node;
}


cgl_status cgl_issue_adopt(cgl_stream *stream, const cgl_recording *from,
                           const char *operation) {
  cgl_capture *capture = stream->capture;
  const cgl_room room = {.kept = from->nkept};
  cgl_status status = cgl_issue_reserve(capture->recording, &room, operation);
  for (size_t i = 0; i < from->nkept && !status; i++)
    cgl_record_keep(capture->recording, from->kept[i],
                    capture->underway.serial);
  return status;
}


void cgl_issue_use_of(cgl_issue *issue, const cgl_recording *from,
                      const cgl_op *op) {
  cgl_recording *recording = issue->recording;
  for (uint32_t i = 0; i < op->nranges; i++) {
    cgl_range range = from->ranges[op->ranges + i];
    if (range.allocation)
      range.allocation = cgl_record_add_allocation(
          recording, from->allocations[range.allocation - 1]);
    if (range.input)
      range.input =
          cgl_record_add_input(recording, from->inputs[range.input - 1].input);
    recording->ranges[recording->nranges + issue->nranges++] = range;
  }
  for (uint32_t i = 0; i < op->nuses && op->kind == CGL_OP_KERNEL; i++)
    cgl_issue_use_param(issue, &from->uses[op->uses + i]);
}


void cgl_issue_end_of(cgl_issue *issue, const cgl_note *note,
                      const cgl_op *op) {
  cgl_recording *recording = issue->recording;
  cgl_issue_end(issue, note);
  cgl_op *noted = &recording->ops[recording->nops - 1];
  noted->node = NULL;
  noted->priority = op->priority;
  noted->scope = op->scope;
  noted->site = issue->stream->capture->latest = op->site;
}


void cgl_issue_set_node(cgl_recording *recording, CUgraphNode node) {
  recording->ops[recording->nops - 1].node = node;
}


void cgl_issue_note_node(cgl_recording *recording, const cgl_note *note,
                         CUgraphNode node) {
  recording->nvalues = (recording->nvalues + 15) & ~(size_t)15;
  cgl_op *op = record_append(recording, note);
  op->node = node;
  op->priority = 0;
  op->fits = true;
  op->scope = NULL;
}


CUgraphNode cgl_issue_latest_node(const cgl_stream *stream) {
  cgl_recording *recording = stream->capture->recording;
  cgl_op *op = &recording->ops[recording->nops - 1];
  if (!op->node)
    op->node = cgl_capture_last_node(stream);
  return op->node;
}
