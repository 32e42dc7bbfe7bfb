/* Branches and loops: issued body by body, or captured as conditional nodes. */
#include "core/graph/conditional.h"

#include <stddef.h>
#include <stdlib.h>

static const struct {
  const char *name;
  CUgraphConditionalNodeType type;
  unsigned before, after; /* the kernel's forms (random/fills.cu); 0: none */
} kinds[] = {
    [CGL_CONDITIONAL_WHEN] = {"when", CU_GRAPH_COND_TYPE_IF, 0, 0},
    [CGL_CONDITIONAL_SWITCH] = {"switch", CU_GRAPH_COND_TYPE_SWITCH, 1, 0},
    [CGL_CONDITIONAL_LOOP] = {"loop", CU_GRAPH_COND_TYPE_WHILE, 2, 4},
    [CGL_CONDITIONAL_TIMES] = {"times", CU_GRAPH_COND_TYPE_WHILE, 3, 5},
};


static const char *conditional_name(const cgl_conditional *c) {
  return kinds[c->desc.kind].name;
}


static bool conditional_is_loop(cgl_conditional_kind kind) {
  return kind >= CGL_CONDITIONAL_LOOP;
}


static bool type_is_signed(cgl_type type) {
  return type == CGL_TYPE_int8 || type == CGL_TYPE_int16 ||
         type == CGL_TYPE_int32 || type == CGL_TYPE_int64;
}


/* ---- begin ---- */

static cgl_status desc_check(const cgl_conditional_desc *desc,
                             cgl_stream *stream, const char *operation) {
  static const struct {
    size_t least, most;
  } bodies[] = {{1, 2}, {1, 1 << 16}, {1, 1}, {1, 1}};
  const cgl_type type = desc->value->type;
  cgl_status status =
      cgl_object_check_device(&desc->value->object, &stream->object, operation);
  if (status)
    return status;
  if (desc->value->count != 1 || cgl_type_lanes(type) > 1 ||
      type == CGL_TYPE_float || type == CGL_TYPE_double ||
      type == CGL_TYPE_half || type == CGL_TYPE_bfloat16) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the value is a buffer of %zu %s", desc->value->count,
             cgl_type_name(type));
    return cgl_fail_hint("give a buffer, or a view, of one integer or bool");
  }
  if ((unsigned)desc->form > CGL_CONDITIONAL_PREDICATED)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
                    "form %d is not a value of its enum", (int)desc->form);
  const size_t n = desc->nbodies + !desc->nbodies;
  if (n >= bodies[desc->kind].least && n <= bodies[desc->kind].most)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation, "%zu bodies", n);
  return cgl_fail_hint("%zu to %zu are possible", bodies[desc->kind].least,
                       bodies[desc->kind].most);
}


/* What a capture needs of the driver and the compiler. */
static cgl_status capture_check(const cgl_conditional_desc *desc,
                                cgl_stream *stream, const char *operation) {
  enum { CONDITIONALS = 12040, SEVERAL = 13000 };
  const int version = cgl_driver_of(stream)->version;
  cgl_status status = cgl_capture_check_open(stream, operation);
  if (status)
    return status;
  if (version < CONDITIONALS) {
    cgl_fail(CUDA_ERROR_NOT_SUPPORTED, operation,
             "the driver is of CUDA %d.%d, and conditional nodes came with "
             "12.4",
             version / 1000, version % 1000 / 10);
    return cgl_fail_hint("install a newer driver, or leave the capture");
  }
  if (desc->nbodies < 2 || version >= SEVERAL) {
    CUfunction kernel; /* compiled before anything is put into the capture */
    return cgl_fill_kernel(stream->object.context, CGL_FILL_set_conditional,
                           operation, &kernel);
  }
  /* 12.8 and 12.9 may move the nodes of one body into another. */
  cgl_fail(CUDA_ERROR_NOT_SUPPORTED, operation,
           "the driver is of CUDA %d.%d, and conditional nodes with several "
           "bodies are right from 13.0 on",
           version / 1000, version % 1000 / 10);
  return cgl_fail_hint("install a newer driver, or write a branch for each "
                       "body, each with a flag of its own");
}


/* The driver's graph of a body's capture, which ends when graphs may. */
typedef struct cgl_body_graph {
  cgl_object object;
  CUgraph graph;
} cgl_body_graph;


static void body_graph_destroy(cgl_object *object) {
  cgl_body_graph *body = (cgl_body_graph *)object;
  if (body->graph && !cgl_context_enter(object->context, "graph"))
    object->context->driver->cuGraphDestroy(body->graph);
  free(body);
}


static const cgl_object_kind body_graph_kind = {
    .number = CGL_OBJECT_INTERNAL,
    .destroy = body_graph_destroy,
};


static void body_drop_graph(cgl_conditional *c) {
  if (c->graph)
    cgl_object_release(&c->graph->object);
  c->graph = NULL;
}


static void conditional_free(cgl_conditional *c) {
  body_drop_graph(c);
  for (size_t i = 0; c->bodies && i < c->desc.nbodies; i++)
    cgl_record_release(c->bodies[i]);
  for (size_t i = 0; c->draws && i < c->desc.nbodies; i++)
    cgl_draws_free(c->draws[i]);
  free(c->bodies);
  free(c->draws);
  cgl_stream_release(c->inner);
  cgl_loop_release(c->loop);
  cgl_buffer_release(c->words);
  cgl_buffer_release(c->desc.value);
  cgl_stream_release(c->stream);
  free(c);
}


/* Of the graph's memory, and older than the bodies, which use other memory. */
static cgl_status conditional_make_words(cgl_conditional *c) {
  return cgl_buffer_create(c->stream,
                           (cgl_pool *)c->stream->capture->underway.pool,
                           CGL_TYPE_uint32, c->desc.nbodies, &c->words);
}


static cgl_status conditional_new(cgl_stream *stream,
                                  const cgl_conditional_desc *desc,
                                  const char *operation,
                                  cgl_conditional **out) {
  cgl_conditional *c = calloc(1, sizeof *c);
  if (!c)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a body");
  c->desc = *desc;
  c->desc.nbodies += !desc->nbodies;
  c->desc.max = desc->max ? desc->max : CGL_CONDITIONAL_MAX;
  c->desc.value = cgl_buffer_retain(desc->value);
  c->stream = cgl_stream_retain(stream);
  c->around = stream->capture ? stream->capture->underway.serial : 0;
  cgl_status status = CGL_OK;
  if (c->around) {
    c->bodies = calloc(c->desc.nbodies, sizeof *c->bodies);
    c->draws = calloc(c->desc.nbodies, sizeof *c->draws);
    if (!c->bodies || !c->draws)
      status = cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for bodies");
  }
  if (!status && conditional_is_loop(desc->kind))
    status = cgl_loop_create(stream, operation, &c->loop);
  else if (!status && c->around && desc->form != CGL_CONDITIONAL_NODE)
    status = conditional_make_words(c);
  if (status)
    conditional_free(c);
  else
    *out = c;
  return status;
}


cgl_status cgl_conditional_begin(cgl_stream *stream,
                                 const cgl_conditional_desc *desc,
                                 cgl_conditional **conditional) {
  if ((unsigned)desc->kind > CGL_CONDITIONAL_TIMES)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, "conditional",
                    "kind %d is not a value of its enum", (int)desc->kind);
  const char *operation = kinds[desc->kind].name;
  cgl_status status = desc_check(desc, stream, operation);
  if (!status && stream->capture)
    status = capture_check(desc, stream, operation);
  else if (!status && cgl_capture_has(stream)) {
    cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
             "the stream is captured by another library");
    status = cgl_fail_hint("capture with graph:capture_begin");
  }
  return status ? status
                : conditional_new(stream, desc, operation, conditional);
}


/* ---- eager ---- */

/* Reads the value, and whether it is negative. */
static cgl_status eager_read(const cgl_conditional *c, uint64_t *value,
                             bool *negative) {
  unsigned char bytes[8] = {0};
  const size_t size = cgl_type_bytes(c->desc.value->type);
  cgl_status status =
      cgl_buffer_download(c->desc.value, c->stream, 0, bytes, size);
  memcpy(value, bytes, sizeof *value);
  *negative = type_is_signed(c->desc.value->type) && bytes[size - 1] & 0x80;
  return status;
}


/* Whether a loop turns once more. */
static bool eager_turns(cgl_conditional *c, uint64_t value, bool negative) {
  cgl_loop *loop = c->loop;
  bool wanted = value;
  if (c->desc.kind == CGL_CONDITIONAL_TIMES) {
    if (c->next == 1)
      c->bound = negative ? 0 : value;
    wanted = loop->turns < c->bound;
  }
  loop->exhausted = wanted && loop->turns >= c->desc.max;
  loop->turns += wanted && !loop->exhausted;
  return wanted && !loop->exhausted;
}


static cgl_status eager_next(cgl_conditional *c, int *body) {
  const size_t n = c->desc.nbodies;
  uint64_t value = 0;
  bool negative = false;
  const bool first = !c->next++;
  if (!first && !c->loop) {
    c->over = true;
    return CGL_OK;
  }
  if (first || c->desc.kind == CGL_CONDITIONAL_LOOP) {
    cgl_status status = eager_read(c, &value, &negative);
    if (status)
      return status;
  }
  if (c->loop)
    *body = eager_turns(c, value, negative) ? 0 : -1;
  else if (c->desc.kind == CGL_CONDITIONAL_WHEN)
    *body = value ? 0 : n > 1 ? 1 : -1;
  else if (!negative && value < n - c->desc.otherwise)
    *body = (int)value;
  else
    *body = c->desc.otherwise ? (int)n - 1 : -1;
  c->over = *body < 0;
  return CGL_OK;
}


/* ---- the kernel that sets the handle ---- */

uint64_t cgl_conditional_type_code(const cgl_conditional *c) {
  const cgl_type type = c->desc.value->type;
  return cgl_type_bytes(type) + (type_is_signed(type) ? 16 : 0);
}


/* Which parameter points to the address; n: none. */
static size_t argument_of(void **params, size_t n, const CUdeviceptr *address) {
  size_t i = 0;
  while (i < n && params[i] != (const void *)address)
    i++;
  return i;
}


cgl_status cgl_conditional_issue(const cgl_conditional *c, cgl_stream *stream,
                                 cgl_fill fill, void **params, size_t n,
                                 cgl_buffer *writes, cgl_note note,
                                 const char *operation) {
  static const cgl_launch once = {{1, 1, 1}, {1, 1, 1}, 0};
  const cgl_room room = {.ranges = 3, .values = 16 * n + 16, .kept = 3};
  cgl_context *context = stream->object.context;
  CUfunction kernel;
  cgl_issue issue;
  cgl_status status =
      cgl_issue_begin(&issue, stream, &c->desc.value->object, operation, &room);
  if (!status)
    status =
        cgl_buffer_check_use(c->desc.value, CGL_USE_READ, stream, operation);
  if (!status)
    status = cgl_fill_kernel(context, fill, operation, &kernel);
  if (!status)
    status = cgl_issue_launch(&issue, kernel, &once,
                              cgl_fill_waiter(context, fill), params);
  if (status)
    return status;
  note.kind = CGL_OP_KERNEL;
  note.name = operation;
  note.launch = &once;
  note.function = kernel;
  note.nvalues = cgl_fill_pack(cgl_issue_values(&issue), params, n);
  cgl_buffer_use(c->desc.value, &issue, false,
                 argument_of(params, n, &c->desc.value->address));
  if (writes)
    cgl_buffer_use(writes, &issue, true, 4); /* of set_conditional */
  cgl_issue_end(&issue, &note);
  return CGL_OK;
}


/* Launches it into `stream`, which captures. */
static cgl_status handle_set(const cgl_conditional *c, cgl_stream *stream,
                             cgl_handle which,
                             CUgraphConditionalHandle handle) {
  uint64_t code = cgl_conditional_type_code(c);
  uint64_t form = (which == CGL_HANDLE_NEXT ? kinds[c->desc.kind].before
                                            : kinds[c->desc.kind].after) |
                  (uint64_t)c->turns << 8;
  uint64_t state = c->loop ? c->loop->state->address : 0;
  uint64_t id = c->loop ? c->loop->id : 0;
  uint64_t max = c->loop ? c->desc.max : c->desc.nbodies - c->desc.otherwise;
  void *params[] = {&handle, &c->desc.value->address, &code, &form, &state, &id,
                    &max};
  return cgl_conditional_issue(
      c, stream, CGL_FILL_set_conditional, params,
      sizeof params / sizeof *params, c->loop ? c->loop->state : NULL,
      (cgl_note){.handle = which}, conditional_name(c));
}


/* ---- a body ---- */

/* What a body needs before the driver begins it. */
static cgl_status body_prepare(cgl_conditional *c, const char *operation) {
  cgl_context *context = c->stream->object.context;
  cgl_status status = cgl_context_enter(context, operation);
  if (!status && !c->inner)
    status = cgl_stream_create(context, c->stream->priority, &c->inner);
  if (status)
    return status;
  c->bodies[c->next] = cgl_record_new(context);
  c->graph = c->bodies[c->next] ? calloc(1, sizeof *c->graph) : NULL;
  if (!c->graph)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a body");
  cgl_object_init(&c->graph->object, &body_graph_kind, context);
  return CGL_OK;
}


/* The capture around and the pool know of the body. */
static void body_enter(cgl_conditional *c) {
  cgl_capture *around = c->stream->capture;
  cgl_capture_begin(&c->capture, cgl_stream_retain(c->inner));
  c->capture.around = c->stream;
  around->body = &c->capture;
  c->pool_before = cgl_pool_body_begins((cgl_pool *)c->capture.underway.pool);
}


static cgl_status body_begin(cgl_conditional *c, const char *operation) {
  const cgl_underway *around = &c->stream->capture->underway;
  const bool inside = c->stream->capture->programmatic_inside;
  cgl_status status = body_prepare(c, operation);
  if (status)
    return status;
  c->capture = (cgl_capture){.underway = {.thread = pthread_self(),
                                          .mode = around->mode,
                                          .pool = around->pool,
                                          .begun = cgl_site_here,
                                          .born = around->born,
                                          .body = true},
                             .programmatic = inside,
                             .programmatic_inside = inside,
                             .recording = c->bodies[c->next]};
  if (!cgl_scope_enter_body(&c->capture, c->stream->capture->recording))
    status = cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a body");
  if (!status)
    status =
        cgl_clock_hold(c->inner->clock, c->inner->object.context, operation);
  if (status)
    return status;
  status = cgl_captures_begin(&c->capture.underway, operation);
  CUresult result = CUDA_SUCCESS;
  if (!status)
    result = cgl_graph_begin_driver_capture(cgl_driver_of(c->stream), c->inner,
                                            around->mode);
  if (!status && !result) {
    body_enter(c);
    return CGL_OK;
  }
  cgl_clock_unhold(c->inner->clock);
  if (result) {
    cgl_captures_remove(&c->capture.underway);
    cgl_captures_end();
  }
  return status ? status
                : cgl_fail_driver(c->stream->object.context, result, operation,
                                  "cuStreamBeginCapture");
}


/* The body's capture is over, whatever came of it. */
static void body_close(cgl_conditional *c, size_t index) {
  cgl_capture *capture = &c->capture;
  c->stream->capture->body = NULL;
  cgl_pool_body_ended((cgl_pool *)capture->underway.pool, c->pool_before);
  cgl_captures_remove(&capture->underway);
  cgl_draws_end_capture(capture->draws);
  c->draws[index] = capture->draws;
  capture->draws = NULL;
  cgl_order_free(capture->order);
  capture->order = NULL;
  cgl_capture_free_streams(capture);
  cgl_stream_release(capture->origin);
  cgl_captures_end();
}


/* The recording is whole: what draws added, and the edges, are in it. */
static cgl_status body_finish(cgl_conditional *c, size_t index, CUgraph graph,
                              const char *operation) {
  cgl_recording *recording = c->bodies[index];
  cgl_context *context = c->stream->object.context;
  cgl_capture *capture = &c->capture;
  capture->origin = c->inner;
  cgl_status status =
      cgl_draws_close(c->draws[index], capture, graph, operation);
  if (!status)
    status = cgl_fail_driver(
        context,
        cgl_record_learn_nodes(recording, graph,
                               capture->watched ? capture->unwatched : 0, true),
        operation, "cuGraphGetNodes");
  if (!status && cgl_record_has(recording, CGL_OP_FOREIGN)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the body has a node that another library put into it");
    return cgl_fail_hint("a body takes work of cgraphlua alone");
  }
  if (!status)
    status = cgl_share_check_children(context, recording, graph, operation);
  if (!status)
    status = cgl_fail_driver(context, cgl_record_learn_edges(recording, graph),
                             operation, "cuGraphGetEdges");
  if (!status)
    status = cgl_build_thin_programmatic(context, recording, operation, graph);
#ifdef CGL_DEBUG
  if (!status)
    status = cgl_build_check(context, recording, c->graph->graph, operation);
#endif
  size_t n;
  if (!status && !cgl_record_footprint(recording, &n))
    status = cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                      "no memory to note what the body touches");
  if (!status)
    cgl_record_tighten(recording);
  return status;
}


static cgl_status body_end(cgl_conditional *c, const char *operation) {
  const size_t index = c->next - 1;
  cgl_status status = cgl_context_enter(c->stream->object.context, operation);
  if (!status)
    status = cgl_capture_check_open(c->inner, operation);
  if (!status && c->loop)
    status = handle_set(c, c->inner, CGL_HANDLE_AROUND, 0);
  if (status)
    return status;
  CUresult result = cgl_graph_end_driver_capture(&c->capture, &c->graph->graph);
  if (!result && c->capture.incomplete)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (result)
    status = cgl_graph_capture_end_failed(&c->capture, result, operation);
  body_close(c, index);
  if (!status)
    status = body_finish(c, index, c->graph->graph, operation);
  body_drop_graph(c);
  return status;
}


static bool body_is_underway(const cgl_conditional *c) {
  return c->around && c->stream->capture &&
         c->stream->capture->body == &c->capture;
}


static void body_abandon(cgl_conditional *c) {
  static const char operation[] = "conditional_abandon";
  const size_t index = c->next - 1;
  cgl_fail_follow(true);
  cgl_conditional_abandon_bodies(&c->capture);
  cgl_context_enter(c->stream->object.context, operation);
  cgl_graph_end_driver_capture(&c->capture, &c->graph->graph);
  body_close(c, index);
  body_drop_graph(c);
  cgl_fail_follow(false);
  c->failed = true;
}


void cgl_conditional_abandon_bodies(cgl_capture *around) {
  if (around->body)
    body_abandon((cgl_conditional *)((char *)around->body -
                                     offsetof(cgl_conditional, capture)));
}


/* ---- bodies in turn ---- */

/* The capture in which the conditional began is underway still. */
static cgl_status capture_check_around(const cgl_conditional *c,
                                       const char *operation) {
  const cgl_capture *capture = c->stream->capture;
  if (!c->failed &&
      (c->around ? capture && capture->underway.serial == c->around : !capture))
    return CGL_OK;
  cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
           c->failed   ? "a call failed before, or the body was abandoned"
           : c->around ? "the capture has ended that the conditional began in"
                       : "a capture began on the stream after the conditional");
  return cgl_fail_hint("begin the conditional again");
}


static cgl_status captured_next(cgl_conditional *c, int *body,
                                const char *operation) {
  cgl_status status = c->next ? body_end(c, operation)
                              : cgl_capture_check_open(c->stream, operation);
  c->over = c->next == c->desc.nbodies;
  if (status || c->over)
    return status;
  status = body_begin(c, operation);
  if (!status)
    *body = (int)c->next++;
  return status;
}


cgl_status cgl_conditional_next(cgl_conditional *c, int *body,
                                cgl_stream **stream) {
  const char *operation = conditional_name(c);
  *body = -1;
  cgl_status status = capture_check_around(c, operation);
  if (!status && !c->over)
    status =
        c->around ? captured_next(c, body, operation) : eager_next(c, body);
  *stream = *body < 0 ? NULL : c->around ? c->inner : c->stream;
  c->failed |= status != CGL_OK;
  return status;
}


/* ---- end ---- */

/* Puts the node into the capture, after what the stream follows. */
static CUresult node_follow(cgl_stream *stream, CUgraphNode *node,
                            const char **entry) {
  *entry = "cuStreamUpdateCaptureDependencies";
  return cgl_driver_of(stream)->cuStreamUpdateCaptureDependencies(
      stream->handle, node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
}


/* In a body: an empty node, in the place of the conditional one. */
static CUresult node_add_empty(cgl_stream *stream, const cgl_captured *now,
                               CUgraphNode *node) {
  CUgraphNodeParams params;
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_EMPTY;
  return cgl_driver_of(stream)->cuGraphAddNode(node, now->graph, now->nodes,
                                               now->edges, now->count, &params);
}


static cgl_status node_add(const cgl_conditional *c,
                           CUgraphConditionalHandle handle,
                           const char *operation, CUgraphNode *node) {
  cgl_stream *stream = c->stream;
  cgl_captured now;
  const char *entry = "cuStreamGetCaptureInfo";
  CUresult result = cgl_capture_ask(stream, &now);
  if (!result && stream->capture->around) {
    entry = "cuGraphAddNode";
    result = node_add_empty(stream, &now, node);
  } else if (!result) {
    const cgl_build_conditional conditional = {
        .graph = now.graph,
        .before = now.nodes,
        .edges = now.edges,
        .nbefore = now.count,
        .handle = handle,
        .type = kinds[c->desc.kind].type,
        .bodies = (const cgl_recording *const *)c->bodies,
        .nbodies = c->desc.nbodies};
    cgl_status status = cgl_build_add_conditional(
        stream->object.context, &conditional, operation, node);
    if (status)
      return status;
  }
  if (!result)
    result = node_follow(stream, node, &entry);
  return result ? cgl_capture_failed(stream, result, operation, entry) : CGL_OK;
}


/* The handle, its kernel and the node; all room is made before. */
static cgl_status captured_issue(cgl_conditional *c, cgl_issue *issue,
                                 const char *operation) {
  cgl_stream *stream = c->stream;
  CUgraphConditionalHandle handle = 0;
  cgl_captured now;
  cgl_status status = CGL_OK;
  if (!stream->capture->around) {
    CUresult result = cgl_capture_ask(stream, &now);
    status = result ? cgl_capture_failed(stream, result, operation,
                                         "cuStreamGetCaptureInfo")
                    : cgl_build_handle(stream->object.context, now.graph,
                                       operation, &handle);
  }
  if (status)
    return status;
  /* A handle that no node has makes a graph that cannot be instantiated. */
  CUgraphNode node = NULL;
  stream->capture->incomplete = true;
  status = handle_set(c, stream, CGL_HANDLE_NEXT, handle);
  if (!status)
    status =
        cgl_issue_begin(issue, stream, NULL, operation,
                        &(cgl_room){.values = 32, .bodies = c->desc.nbodies});
  if (!status)
    status = node_add(c, handle, operation, &node);
  if (status)
    return status;
  const CUgraphConditionalNodeType type = kinds[c->desc.kind].type;
  const cgl_note note = {.kind = CGL_OP_CONDITIONAL,
                         .name = operation,
                         .predication = c->turns ? CGL_PREDICATION_LOOKS
                                                 : CGL_PREDICATION_NONE,
                         .values = &type,
                         .nvalues = sizeof type};
  stream->capture->incomplete = false;
  cgl_issue_bodies(issue, c->bodies, c->desc.nbodies);
  cgl_issue_end(issue, &note);
  for (size_t i = 0; i < c->desc.nbodies; i++)
    cgl_draws_leave_child(c->draws[i], stream, node);
  return CGL_OK;
}


/* Notes a failure that was not the driver's answer to a call on the stream. */
static void capture_note_failure(cgl_capture *capture, cgl_status status,
                                 const char *operation) {
  if (!capture->incomplete || capture->broken.status)
    return;
  capture->broken.status = status;
  capture->broken.operation = operation;
  capture->broken.site = cgl_site_here;
  snprintf(capture->broken.message, sizeof capture->broken.message, "%s",
           cgl_last_error()->message);
}


/* A loop's body is captured again, with several predicated turns. */
static cgl_status loop_repeat_body(cgl_conditional *c, uint32_t turns,
                                   const char *operation) {
  cgl_recording *turn = c->bodies[0];
  c->bodies[0] = NULL;
  c->next = 0;
  cgl_status status = body_begin(c, operation);
  c->next = 1;
  c->turns = turns;
  if (!status)
    status = cgl_predicated_issue_turns(c, c->inner, turn, turns, operation);
  if (!status)
    status = body_end(c, operation);
  cgl_record_release(turn);
  return status;
}


/* Chooses the cheaper form, unless the description did; nothing is put into the
   capture around. */
static cgl_status captured_choose(cgl_conditional *c, const char *operation,
                                  bool *predicated) {
  const bool asked = c->desc.form == CGL_CONDITIONAL_PREDICATED;
  cgl_predicated_refusal refusal;
  *predicated = false;
  if (!asked &&
      (c->desc.form == CGL_CONDITIONAL_NODE || !cgl_predicated_pays(c)))
    return CGL_OK;
  cgl_status status = cgl_predicated_check(c, operation, &refusal);
  if (status)
    return status;
  if (asked && refusal.why)
    return cgl_predicated_refuse(&refusal, operation);
  *predicated = !refusal.why;
  return *predicated && c->loop
             ? loop_repeat_body(c, cgl_predicated_turns(c), operation)
             : CGL_OK;
}


static cgl_status captured_end(cgl_conditional *c, const char *operation) {
  bool predicated = false;
  cgl_status status = cgl_context_enter(c->stream->object.context, operation);
  if (!status)
    status = captured_choose(c, operation, &predicated);
  for (size_t i = 0; i < c->desc.nbodies && !status; i++)
    if (c->draws[i])
      status = cgl_draws_enter_child(c->draws[i], c->stream, operation);
  if (status)
    return status;
  const bool before = c->stream->capture->incomplete;
  cgl_issue issue;
  if (predicated && !c->loop) {
    c->stream->capture->incomplete = true;
    status = cgl_predicated_issue_branch(c, operation);
    if (!status)
      c->stream->capture->incomplete = false;
  } else
    status = captured_issue(c, &issue, operation);
  if (status)
    capture_note_failure(c->stream->capture, status, operation);
  c->stream->capture->incomplete |= before;
  return status;
}


cgl_status cgl_conditional_end(cgl_conditional *c) {
  const char *operation = conditional_name(c);
  cgl_status status = capture_check_around(c, operation);
  if (!status && !c->over) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation, "a body is left");
    status = cgl_fail_hint("call cgl_conditional_next until it names none");
  }
  if (!status && c->around)
    status = captured_end(c, operation);
  if (status)
    cgl_conditional_abandon(c);
  else
    conditional_free(c);
  return status;
}


void cgl_conditional_abandon(cgl_conditional *c) {
  if (body_is_underway(c))
    body_abandon(c);
  conditional_free(c);
}


cgl_loop *cgl_conditional_loop(const cgl_conditional *c) {
  return c->loop;
}
