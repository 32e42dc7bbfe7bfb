/* Calls of other libraries. */
#include "core/call/call.h"

#include <stdlib.h>
#include <string.h>

static cgl_call_library *libraries;


void cgl_call_register(cgl_call_library *library) {
  library->next = libraries;
  libraries = library;
}


const cgl_call_library *cgl_call_find(const char *name,
                                      const cgl_object_kind *keeper) {
  const cgl_call_library *l = libraries;
  while (l && (name ? strcmp(l->name, name) != 0 : l->keeper != keeper))
    l = l->next;
  return l;
}


/* ---- what was captured ---- */

static void captured_destroy(cgl_object *object) {
  cgl_call_captured *captured = (cgl_call_captured *)object;
  if (captured->graph && !cgl_context_enter(object->context, "call"))
    object->context->driver->cuGraphDestroy(captured->graph);
  if (captured->owner)
    captured->release(captured->owner);
  free(captured);
}


static const cgl_object_kind captured_kind = {
    .number = CGL_OBJECT_INTERNAL,
    .destroy = captured_destroy,
};


/* The graph holds the owner, and so does what is made of it: what runs may
   outlive the recording. */
static cgl_status captured_give_owner(cgl_call_captured *captured,
                                      const char *operation) {
  cgl_context *context = captured->object.context;
  const cgl_driver *driver = context->driver;
  CUuserObject object;
  const char *entry = "cuUserObjectCreate";
  CUresult result =
      driver->cuUserObjectCreate(&object, captured->owner, captured->release, 1,
                                 CU_USER_OBJECT_NO_DESTRUCTOR_SYNC);
  if (!result) {
    captured->owner = NULL;
    entry = "cuGraphRetainUserObject";
    result = driver->cuGraphRetainUserObject(captured->graph, object, 1,
                                             CU_GRAPH_USER_OBJECT_MOVE);
    if (result)
      driver->cuUserObjectRelease(object, 1);
  }
  return cgl_fail_driver(context, result, operation, entry);
}


static cgl_call_captured *captured_new(cgl_context *context,
                                       const cgl_call *call) {
  cgl_call_captured *captured = calloc(1, sizeof *captured);
  if (!captured)
    return NULL;
  cgl_object_init(&captured->object, &captured_kind, context);
  captured->on_host = call->on_host;
  if (call->owner) {
    call->retain(call->owner);
    captured->owner = call->owner;
    captured->release = call->release;
    captured->told = call->owner;
    captured->launched = call->launched;
  }
  return captured;
}


/* ---- the library ---- */

static cgl_status call_fail(const cgl_call *call, int code) {
  if (call->notes)
    return code;
  if (call->describe)
    return cgl_fail(CGL_ERROR_LIBRARY, call->name, "the library refused: %s",
                    call->describe(code));
  return cgl_fail(CGL_ERROR_LIBRARY, call->name, "the library answered %d",
                  code);
}


/* Captures the call on a stream of its own; the thread is relaxed. */
static cgl_status call_capture_relaxed(cgl_stream *stream, const cgl_call *call,
                                       CUgraph *graph) {
  cgl_context *context = stream->object.context;
  const cgl_driver *driver = context->driver;
  CUstream beside;
  const char *entry = "cuStreamCreateWithPriority";
  CUresult result = driver->cuStreamCreateWithPriority(
      &beside, CU_STREAM_NON_BLOCKING, stream->priority);
  if (result)
    return cgl_fail_driver(context, result, call->name, entry);
  int code = 0;
  entry = "cuStreamBeginCapture";
  result = driver->cuStreamBeginCapture(beside, CU_STREAM_CAPTURE_MODE_RELAXED);
  if (!result) {
    code = call->issue(call->user, beside);
    entry = "cuStreamEndCapture";
    result = driver->cuStreamEndCapture(beside, graph);
  }
  driver->cuStreamDestroy(beside);
  if (code)
    return call_fail(call, code);
  return cgl_fail_driver(context, result, call->name, entry);
}


static cgl_status call_capture(cgl_stream *stream, const cgl_call *call,
                               CUgraph *graph) {
  cgl_context *context = stream->object.context;
  const cgl_relaxed relaxed = cgl_captures_relax_always(context);
  if (relaxed.result)
    return cgl_fail_driver(context, relaxed.result, call->name,
                           "cuThreadExchangeStreamCaptureMode");
  cgl_status status = call_capture_relaxed(stream, call, graph);
  cgl_captures_unrelax(context, relaxed);
  return status;
}


/* ---- the operation ---- */

static void call_note(cgl_issue *issue, const cgl_call *call,
                      cgl_call_captured *captured) {
  const cgl_note note = {.kind = CGL_OP_CALL,
                         .name = call->name,
                         .object = captured ? &captured->object : NULL,
                         .fills = call->overwrites};
  if (captured)
    cgl_issue_use(issue, &captured->object, NULL, NULL);
  for (size_t i = 0; i < call->nuses; i++)
    cgl_buffer_use(call->uses[i].buffer, issue, call->uses[i].write, i);
  cgl_issue_end(issue, &note);
}


static cgl_status call_issue_captured(cgl_issue *issue, cgl_object *object,
                                      cgl_stream *stream,
                                      const cgl_call *call) {
  cgl_call_captured *captured = captured_new(stream->object.context, call);
  if (!captured)
    return cgl_fail(CGL_ERROR_NO_MEMORY, call->name, "no memory for the call");
  cgl_status status = call_capture(stream, call, &captured->graph);
  if (!status && call->on_host && captured->owner)
    status = captured_give_owner(captured, call->name);
  CUgraphNode node;
  if (!status)
    status = cgl_issue_child(issue, captured->graph, &node);
  if (!status && object)
    cgl_issue_use(issue, object, NULL, NULL);
  if (!status)
    call_note(issue, call, captured);
  cgl_object_release(&captured->object);
  return status;
}


cgl_status cgl_call_check_host(const cgl_stream *stream,
                               const char *operation) {
  if (!stream->capture || !stream->capture->around)
    return CGL_OK;
  cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
           "the body of a conditional cannot hold work of the host: the device "
           "alone decides whether it runs");
  return cgl_fail_hint("do it before the conditional or after it");
}


bool cgl_call_is_on_host(const cgl_recording *recording) {
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    const cgl_recording *const *bodies = cgl_record_bodies(recording, op);
    if (op->kind == CGL_OP_CALL &&
        ((const cgl_call_captured *)op->object)->on_host)
      return true;
    for (uint32_t b = 0; b < op->nbodies; b++)
      if (cgl_call_is_on_host(bodies[b]))
        return true;
  }
  return false;
}


/* Counts the calls that are told, and lists them where there is a list. */
static size_t told_find(const cgl_recording *recording,
                        const cgl_call_captured **list) {
  size_t n = 0;
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    const cgl_recording *const *bodies = cgl_record_bodies(recording, op);
    const cgl_call_captured *call =
        op->kind == CGL_OP_CALL ? (const cgl_call_captured *)op->object : NULL;
    if (call && call->launched && list)
      list[n] = call;
    n += call && call->launched;
    for (uint32_t b = 0; b < op->nbodies; b++)
      n += told_find(bodies[b], list ? list + n : NULL);
  }
  return n;
}


cgl_status cgl_call_find_told(const cgl_recording *recording,
                              cgl_calls_told *calls, const char *operation) {
  const size_t n = told_find(recording, NULL);
  *calls = (cgl_calls_told){n ? malloc(n * sizeof *calls->list) : NULL, n};
  if (n && !calls->list)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory to list the calls of libraries");
  if (n)
    told_find(recording, calls->list);
  return CGL_OK;
}


cgl_status cgl_call_check(cgl_stream *stream, const cgl_call *call) {
  cgl_status status =
      call->on_host ? cgl_call_check_host(stream, call->name) : CGL_OK;
  if (call->nuses > CGL_CALL_MAX_USES) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, call->name,
             "%zu uses of memory were named", call->nuses);
    return cgl_fail_hint("%d are possible", CGL_CALL_MAX_USES);
  }
  for (size_t i = 0; i < call->nuses && !status; i++) {
    const cgl_call_use *use = &call->uses[i];
    if (use->buffer->object.context != stream->object.context)
      status = cgl_object_check_device(&use->buffer->object, &stream->object,
                                       call->name);
    else
      status = cgl_buffer_check_use(use->buffer,
                                    !use->write        ? CGL_USE_READ
                                    : call->overwrites ? CGL_USE_WRITE
                                                       : CGL_USE_UPDATE,
                                    stream, call->name);
  }
  return status;
}


cgl_status cgl_call_issue_for(cgl_object *object, cgl_stream *stream,
                              const cgl_call *call) {
  cgl_issue issue;
  cgl_status status = cgl_call_check(stream, call);
  if (!status)
    status = cgl_issue_begin(
        &issue, stream, object, call->name,
        &(cgl_room){.ranges = call->nuses, .kept = call->nuses + 2});
  if (status)
    return status;
  if (stream->capture)
    return call_issue_captured(&issue, object, stream, call);
  const int code = call->issue(call->user, stream->handle);
  cgl_context_note_work(stream->object.context);
  if (code)
    return call_fail(call, code);
  call_note(&issue, call, NULL);
  return CGL_OK;
}


cgl_status cgl_call_issue(cgl_stream *stream, const cgl_call *call) {
  return cgl_call_issue_for(NULL, stream, call);
}
