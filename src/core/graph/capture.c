/* A capture underway: begin, note, fork and join. */
#include "core/record/record.h"
#include "core/graph/graph.h"
#include "core/graph/hooks.h"
#include "core/memory/memory.h"
#include "core/sharing/sharing.h"

#include <stdio.h>
#include <string.h>

static pthread_mutex_t live_lock = PTHREAD_MUTEX_INITIALIZER;
static cgl_graph *live;          /* captures underway in the process */
static uint64_t next_serial = 1; /* of captures; under live_lock */


/* ---- which captures are underway ---- */

/* Refuses a pool that another capture allocates from: which of the two a
   block was scratch of would be anybody's guess. */
static cgl_status live_add(cgl_graph *graph, const char *operation) {
  cgl_captures_begin();
  pthread_mutex_lock(&live_lock);
  const cgl_graph *other = live;
  while (other && other->pool != graph->pool)
    other = other->next_live;
  cgl_site begun = other ? other->begun : graph->begun;
  if (!other) {
    graph->serial = next_serial++;
    graph->next_live = live;
    live = graph;
  }
  pthread_mutex_unlock(&live_lock);
  if (!other)
    return CGL_OK;
  cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
           "the pool serves another capture already, begun at %s: two "
           "captures into one pool at once are not possible",
           cgl_site_text(begun));
  cgl_fail_hint("end that capture first, or give one of the graphs a pool of "
                "its own");
  cgl_fail_follow(true);
  cgl_captures_end();
  cgl_fail_follow(false);
  return CGL_ERROR_CAPTURE_STATE;
}


void cgl_capture_forget(cgl_graph *graph) {
  pthread_mutex_lock(&live_lock);
  for (cgl_graph **link = &live; *link; link = &(*link)->next_live)
    if (*link == graph) {
      *link = graph->next_live;
      break;
    }
  pthread_mutex_unlock(&live_lock);
}


static cgl_graph *live_find(uint64_t serial) {
  pthread_mutex_lock(&live_lock);
  cgl_graph *graph = live;
  while (graph && graph->serial != serial)
    graph = graph->next_live;
  pthread_mutex_unlock(&live_lock);
  return graph;
}


static bool thread_captures(void) {
  pthread_mutex_lock(&live_lock);
  const cgl_graph *graph = live;
  while (graph && !pthread_equal(graph->thread, pthread_self()))
    graph = graph->next_live;
  pthread_mutex_unlock(&live_lock);
  return graph;
}


cgl_relaxed cgl_relax(cgl_context *context) {
  cgl_relaxed relaxed = {false, CU_STREAM_CAPTURE_MODE_RELAXED};
  if (cgl_captures_underway())
    relaxed.active =
        !context->driver->cuThreadExchangeStreamCaptureMode(&relaxed.before);
  return relaxed;
}


void cgl_unrelax(cgl_context *context, cgl_relaxed relaxed) {
  if (!relaxed.active)
    return;
  /* A thread left relaxed would hide later slips: try again once. */
  CUstreamCaptureMode mode = relaxed.before;
  if (context->driver->cuThreadExchangeStreamCaptureMode(&mode)) {
    mode = relaxed.before;
    context->driver->cuThreadExchangeStreamCaptureMode(&mode);
  }
}


/* Whether waiting here breaks a capture: one that this thread began and that
   is not relaxed (*own), or anybody's in global mode. */
static bool waiting_breaks(bool *own) {
  bool breaks = *own = false;
  if (!cgl_captures_underway())
    return false;
  pthread_mutex_lock(&live_lock);
  for (const cgl_graph *graph = live; graph; graph = graph->next_live) {
    if (graph->mode == CGL_CAPTURE_GLOBAL)
      breaks = true;
    if (graph->mode != CGL_CAPTURE_RELAXED &&
        pthread_equal(graph->thread, pthread_self()))
      breaks = *own = true;
  }
  pthread_mutex_unlock(&live_lock);
  return breaks;
}


cgl_status cgl_check_may_wait(const cgl_stream *stream, const char *operation) {
  bool own = stream && stream->capture;
  if (!own && !waiting_breaks(&own))
    return CGL_OK;
  cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
           own ? "cannot wait for or query work while this thread captures: a "
                 "capture only records, and the call would break it"
               : "cannot wait for or query work while another thread captures "
                 "in global mode: the call would break that capture");
  return cgl_fail_hint(
      own ? "do this before the capture begins or after it has ended"
          : "let the other thread capture in thread_local mode");
}


cgl_status cgl_capture_refuse(cgl_stream *stream, const char *operation,
                              const char *why, const char *hint) {
  if (!stream->capture)
    return CGL_OK;
  cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation, "%s", why);
  return cgl_fail_hint("%s", hint);
}


/* ---- noting ---- */

cgl_status cgl_capture_reserve(cgl_stream *stream, const char *operation,
                               size_t ranges, size_t args, size_t kept) {
  if (!stream->capture ||
      cgl_recording_reserve(&stream->capture->recording, ranges, args, kept))
    return CGL_OK;
  return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                  "no host memory to note the operation in the capture");
}


CUresult cgl_capture_ask(const cgl_stream *stream, cgl_captured *captured) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  cuuint64_t id;
  CUresult result = cgl_driver_of(stream)->cuStreamGetCaptureInfo(
      stream->handle, &status, &id, &captured->graph, &captured->nodes,
      &captured->edges, &captured->count);
  return !result && status != CU_STREAM_CAPTURE_STATUS_ACTIVE
             ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
             : result;
}


CUgraphNode cgl_capture_last_node(cgl_stream *stream) {
  cgl_captured captured;
  return !cgl_capture_ask(stream, &captured) && captured.count == 1
             ? captured.nodes[0]
             : NULL;
}


void cgl_capture_watch(cgl_graph *graph) {
  cgl_captured captured;
  if (graph->watched)
    return;
  graph->watched = true;
  if (!cgl_capture_ask(graph->origin, &captured))
    cgl_recording_learn_nodes(&graph->recording, cgl_driver_of(graph),
                              captured.graph);
}


void cgl_capture_note(cgl_stream *stream, const cgl_note *note) {
  cgl_graph *graph = stream->capture;
  if (!graph)
    return;
  cgl_recording *recording = &graph->recording;
  cgl_op *op = &recording->ops[recording->nops++];
  op->kind = note->kind;
  op->node = graph->watched ? cgl_capture_last_node(stream) : NULL;
  op->name = note->name;
  op->kernel = note->kernel;
  op->off = op->stale = false;
  op->fills = note->fills;
  op->site = cgl_site_here;
  op->stream = stream->serial;
  op->scope = recording->scope;
  const cgl_launch none = {{0}, {0}, 0};
  const cgl_launch *launch = note->launch ? note->launch : &none;
  memcpy(op->grid, launch->grid, sizeof op->grid);
  memcpy(op->block, launch->block, sizeof op->block);
  op->shared_bytes = launch->shared_bytes;
  op->ranges = recording->nranges;
  op->nranges = (uint32_t)note->nranges;
  op->args = recording->nargs;
  op->nargs = (uint32_t)note->nargs;
  if (note->ranges)
    memcpy(recording->ranges + recording->nranges, note->ranges,
           note->nranges * sizeof *note->ranges);
  recording->nranges += note->nranges;
  recording->nargs += note->nargs;
  stream->issued = recording->nops;
  if (recording->ntouched)
    cgl_share_note(graph, op);
}


bool cgl_capture_keep(cgl_graph *graph, cgl_object *object) {
  if (atomic_load_explicit(&object->retained_by, memory_order_relaxed) ==
      graph->serial)
    return false;
  if (object->kind == CGL_OBJECT_buffer) {
    cgl_buffer *buffer = (cgl_buffer *)object;
    /* What captures allocate from the graph's pool is the graph's for as long
       as it holds the pool: such a block may serve again in the capture. */
    if (cgl_buffer_is_planned(buffer, graph)) {
      graph->recording.touched[graph->recording.ntouched++] = buffer;
      return true;
    }
    if (buffer->base)
      return cgl_capture_keep(graph, &buffer->base->object);
    atomic_store(&buffer->wide, true);
  }
  cgl_recording *recording = &graph->recording;
  atomic_store_explicit(&object->retained_by, graph->serial,
                        memory_order_relaxed);
  cgl_object_retain(object);
  recording->kept[recording->nkept++] = object;
  return false;
}


cgl_status cgl_capture_failed(cgl_graph *graph, CUresult result,
                              const char *operation, const char *entry,
                              cgl_context *context) {
  if (graph && result == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    return cgl_capture_fail_broken(graph, operation);
  cgl_fail_driver(context, result, operation, entry);
  if (graph && !graph->broken.status) {
    graph->broken.status = result;
    graph->broken.operation = operation;
    graph->broken.site = cgl_site_here;
    snprintf(graph->broken.message, sizeof graph->broken.message, "%s",
             cgl_last_error()->message);
    snprintf(graph->broken.hint, sizeof graph->broken.hint, "%s",
             cgl_last_error()->hint);
  }
  return result;
}


/* ---- forks and joins ---- */

cgl_status cgl_capture_check_wait(cgl_stream *stream, cgl_event *event,
                                  const char *operation, cgl_graph **joins) {
  cgl_graph *own = stream->capture;
  if (!event->capture) {
    if (!own)
      return CGL_OK;
    cgl_fail(CUDA_ERROR_STREAM_CAPTURE_ISOLATION, operation,
             "the event was recorded outside the capture: a graph cannot wait "
             "for what is not in it");
    return cgl_fail_hint("synchronize the event before the capture begins, or "
                         "record it on a stream of the capture");
  }
  if (own && own->serial == event->capture)
    return CGL_OK;
  cgl_graph *other = live_find(event->capture);
  if (!other) {
    cgl_fail(CUDA_ERROR_INVALID_VALUE, operation,
             "the event was recorded inside a capture that has ended");
    return cgl_fail_hint("record the event again before waiting for it");
  }
  if (own) {
    cgl_fail(CUDA_ERROR_STREAM_CAPTURE_MERGE, operation,
             "the event belongs to another capture that is underway");
    return cgl_fail_hint("two captures may not meet: wait only for events of "
                         "the same capture");
  }
  if (cgl_stream_is_default(stream)) {
    cgl_fail(CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, operation,
             "the event was recorded in a capture, begun at %s, which the "
             "default stream cannot join",
             cgl_site_text(other->begun));
    return cgl_fail_hint("fork to a stream of your own, or wait after the "
                         "capture");
  }
  *joins = other;
  return CGL_OK;
}


void cgl_capture_adopt(cgl_graph *graph, cgl_stream *stream) {
  cgl_object_retain(&stream->object);
  stream->capture = graph;
  stream->forked = cgl_site_here;
  stream->issued = stream->joined = 0;
  if (stream->shown)
    cgl_capture_watch(graph);
  stream->next_in_capture = graph->forked;
  graph->forked = stream;
}


void cgl_capture_note_record(cgl_stream *stream, cgl_event *event) {
  event->capture = stream->capture ? stream->capture->serial : 0;
  event->issued = stream->issued;
  event->stream = stream->serial;
}


void cgl_capture_note_wait(cgl_stream *stream, cgl_event *event) {
  if (!stream->capture || event->stream == stream->serial)
    return;
  for (cgl_stream *other = stream->capture->forked; other;
       other = other->next_in_capture)
    if (other->serial == event->stream && other->joined < event->issued)
      other->joined = event->issued;
}


/* ---- begin and end ---- */

static CUstreamCaptureMode driver_mode(cgl_capture_mode mode) {
  switch (mode) {
  case CGL_CAPTURE_GLOBAL:
    return CU_STREAM_CAPTURE_MODE_GLOBAL;
  case CGL_CAPTURE_RELAXED:
    return CU_STREAM_CAPTURE_MODE_RELAXED;
  case CGL_CAPTURE_DEFAULT:
  case CGL_CAPTURE_THREAD_LOCAL:
    break;
  }
  return CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
}


static cgl_status check_begin(cgl_graph *graph, cgl_stream *stream,
                              const char *operation) {
  cgl_status status =
      cgl_check_device(&graph->object, &stream->object, operation);
  if (status)
    return status;
  if (graph->state == CGL_GRAPH_CAPTURING) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "the graph is capturing already, since %s",
             cgl_site_text(graph->begun));
    return cgl_fail_hint("end that capture first");
  }
  if (graph->state == CGL_GRAPH_CAPTURED) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "the graph holds a capture already, begun at %s",
             cgl_site_text(graph->begun));
    return cgl_fail_hint("reset the graph first, or capture into a new one");
  }
  if (cgl_stream_is_default(stream)) {
    cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
             "a capture cannot begin on the default stream: graphs are "
             "captured on another one, and may be replayed on any");
    return cgl_fail_hint("capture on a stream of your own");
  }
  if (stream->capture) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "the stream is part of a capture already, begun at %s: a capture "
             "inside a capture is not possible on one stream",
             cgl_site_text(stream->capture->begun));
    return cgl_fail_hint("end the outer capture first, or replay a captured "
                         "graph inside it");
  }
  return CGL_OK;
}


static cgl_status driver_begin(cgl_graph *graph, cgl_stream *stream,
                               const char *operation) {
  cgl_status status = live_add(graph, operation);
  if (status)
    return status;
  CUresult result = cgl_driver_of(graph)->cuStreamBeginCapture(
      stream->handle, driver_mode(graph->mode));
  if (!result)
    return CGL_OK;
  cgl_capture_forget(graph);
  cgl_fail_driver(graph->object.context, result, operation,
                  "cuStreamBeginCapture");
  cgl_fail_follow(true);
  cgl_captures_end();
  cgl_fail_follow(false);
  return result;
}


cgl_status cgl_graph_capture_begin(cgl_graph *graph, cgl_stream *stream) {
  static const char operation[] = "graph:capture_begin";
  cgl_status status = check_begin(graph, stream, operation);
  /* A capture of the thread's own could not end while it waits here. */
  if (!status && cgl_captures_crowd() && !thread_captures())
    cgl_captures_await();
  if (!status)
    status = cgl_context_enter(graph->object.context, operation);
  if (!status && !graph->pool)
    status = cgl_pool_create(graph->object.context, NULL, &graph->pool);
  if (!status)
    status = cgl_clock_hold(stream->clock, graph->object.context, operation);
  if (status)
    return status;
  graph->thread = pthread_self();
  graph->broken.status = 0;
  graph->begun = cgl_site_here;
  graph->inputs_seen = 0;
  status = driver_begin(graph, stream, operation);
  if (status) {
    cgl_clock_unhold(stream->clock);
    return status;
  }
  cgl_stream_release(graph->origin);
  graph->origin = cgl_stream_retain(stream);
  stream->capture = graph;
  stream->issued = stream->joined = 0;
  graph->watched = stream->shown;
  cgl_recording_begin(&graph->recording, graph->object.context);
  graph->state = CGL_GRAPH_CAPTURING;
  graph->pool_held = true;
  cgl_pool_capture_begins(graph->pool, graph->serial);
  if (graph->pool_given)
    cgl_sharing_begin(graph->pool);
  status = cgl_hooks_run(graph, CGL_HOOK_CAPTURE_START, operation);
  if (status)
    cgl_graph_capture_abandon(graph);
  return status;
}
