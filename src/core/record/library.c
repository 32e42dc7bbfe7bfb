/* Work of other libraries: one node for all that a call puts on a stream. */
#include "core/record/issue.h"

#include <stdlib.h>
#include <string.h>

typedef struct library_work {
  cgl_object object;
  CUgraph graph;
} library_work;


static void library_work_destroy(cgl_object *object) {
  library_work *work = (library_work *)object;
  if (work->graph && !cgl_context_enter(object->context, "graph"))
    object->context->driver->cuGraphDestroy(work->graph);
  free(work);
}


static const cgl_object_kind library_work_kind = {
    .number = CGL_OBJECT_INTERNAL,
    .destroy = library_work_destroy,
};


CUgraph cgl_issue_library_graph(const cgl_op *op) {
  return ((const library_work *)op->object)->graph;
}


/* The graph, its copies and their executables keep the library's data: what
   runs may outlive the recording. */
static cgl_status library_give_data(const cgl_issue *issue,
                                    const cgl_library *library, CUgraph graph) {
  cgl_context *context = issue->stream->object.context;
  const cgl_driver *driver = context->driver;
  CUuserObject object;
  cgl_status status = cgl_fail_driver(
      context,
      driver->cuUserObjectCreate(&object, library->data, library->release, 1,
                                 CU_USER_OBJECT_NO_DESTRUCTOR_SYNC),
      issue->operation, "cuUserObjectCreate");
  if (status) {
    library->release(library->data);
    return status;
  }
  const CUresult result = driver->cuGraphRetainUserObject(
      graph, object, 1, CU_GRAPH_USER_OBJECT_MOVE);
  if (result)
    driver->cuUserObjectRelease(object, 1);
  return cgl_fail_driver(context, result, issue->operation,
                         "cuGraphRetainUserObject");
}


/* A capture of its own of what the library puts on a stream of its own. */
static cgl_status library_capture(const cgl_issue *issue,
                                  const cgl_library *library, CUgraph *graph) {
  cgl_context *context = issue->stream->object.context;
  const cgl_driver *driver = context->driver;
  const char *operation = issue->operation;
  CUstream stream;
  cgl_status status = cgl_fail_driver(
      context,
      driver->cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING,
                                         issue->stream->priority),
      operation, "cuStreamCreateWithPriority");
  if (status)
    return status;
  status = cgl_fail_driver(
      context,
      driver->cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
      operation, "cuStreamBeginCapture");
  if (!status) {
    status = library->run(library->data, stream);
    CUresult result = driver->cuStreamEndCapture(stream, graph);
    if (!status)
      status =
          cgl_fail_driver(context, result, operation, "cuStreamEndCapture");
  }
  driver->cuStreamDestroy(stream);
  return status;
}


/* The same with the thread's capture mode relaxed: the library may allocate,
   and the stream goes while the capture around is underway. */
static cgl_status library_capture_relaxed(const cgl_issue *issue,
                                          const cgl_library *library,
                                          CUgraph *graph) {
  cgl_context *context = issue->stream->object.context;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  cgl_status status = cgl_fail_driver(
      context, context->driver->cuThreadExchangeStreamCaptureMode(&mode),
      issue->operation, "cuThreadExchangeStreamCaptureMode");
  if (status)
    return status;
  status = library_capture(issue, library, graph);
  context->driver->cuThreadExchangeStreamCaptureMode(&mode);
  return status;
}


/* Makes the object that a node of the library's work needs; takes the data. */
static cgl_status library_work_make(const cgl_issue *issue,
                                    const cgl_library *library,
                                    library_work **made) {
  cgl_status status = CGL_ERROR_NO_MEMORY;
  library_work *work = *made = calloc(1, sizeof *work);
  if (work) {
    cgl_object_init(&work->object, &library_work_kind,
                    issue->stream->object.context);
    status = library_capture_relaxed(issue, library, &work->graph);
  } else
    cgl_fail(status, issue->operation,
             "no memory to note the call of a library");
  if (!status)
    return library_give_data(issue, library, work->graph);
  library->release(library->data);
  return status;
}


cgl_status cgl_issue_library_check(const cgl_stream *stream,
                                   const char *operation) {
  if (!stream->capture || !stream->capture->around)
    return CGL_OK;
  cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
           "the body of a conditional cannot hold work of another library: "
           "the device alone decides whether it runs");
  return cgl_fail_hint("do it before the conditional or after it");
}


cgl_status cgl_issue_library(cgl_issue *issue, const cgl_library *library) {
  cgl_stream *stream = issue->stream;
  if (!issue->recording) {
    cgl_context_note_work(stream->object.context);
    const cgl_status status = library->run(library->data, stream->handle);
    library->release(library->data);
    return status;
  }
  library_work *work;
  cgl_status status = library_work_make(issue, library, &work);
  if (!status) {
    CUgraphNode node;
    status = cgl_issue_child(issue, work->graph, &node);
  }
  if (!status) {
    issue->library = &work->object;
    cgl_issue_use(issue, &work->object, NULL, NULL);
  }
  if (work)
    cgl_object_release(&work->object);
  return status;
}


void cgl_issue_end_library(cgl_issue *issue) {
  const cgl_note note = {.kind = CGL_OP_LIBRARY,
                         .name = issue->operation,
                         .object = issue->library};
  cgl_issue_end(issue, &note);
}
