/* Graphs after their capture: instantiate, replay, reset. */
#include "core/graph/annotate.h"
#include "core/graph/change.h"
#include "core/random/random.h"
#include "core/graph/graph.h"
#include "core/pool/history.h"
#include "core/graph/hooks.h"
#include "core/memory/memory.h"
#include "core/sharing/sharing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


static atomic_uint_fast64_t next_exec = 1;


static cgl_status check_desc(cgl_context *context, const cgl_graph_desc *desc,
                             const char *operation) {
  if ((unsigned)desc->capture_mode > CGL_CAPTURE_RELAXED ||
      (unsigned)desc->annotations > CGL_ANNOTATIONS_NVTX) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "capture mode %d and annotations %d are not both of their kind",
             (int)desc->capture_mode, (int)desc->annotations);
    return cgl_fail_hint("start from an empty description: cgl_graph_desc d = "
                         "{0}");
  }
  if (desc->annotations == CGL_ANNOTATIONS_NVTX && !cgl_nvtx_available()) {
    cgl_fail(CGL_ERROR_NOT_FOUND, operation,
             "this build has no NVTX ranges: its configure found no "
             "nvtx3/nvToolsExt.h");
    return cgl_fail_hint("install the CUDA toolkit's headers and configure "
                         "anew, or annotate without nvtx");
  }
  if (!desc->pool || desc->pool->object.context == context)
    return CGL_OK;
  cgl_fail(CGL_ERROR_WRONG_DEVICE, operation,
           "the pool is on device %s, the graph on %s",
           desc->pool->object.context->info.device, context->info.device);
  return cgl_fail_hint("make the pool on the graph's device");
}


static void describe(cgl_graph *graph, const cgl_graph_desc *desc) {
  graph->keep_graph = desc->keep_graph;
  graph->mode = desc->capture_mode;
  graph->annotations = desc->annotations;
  graph->attend &= ~(unsigned)(CGL_ATTEND_INPUTS | CGL_ATTEND_RANGES);
  graph->attend |= desc->check_input_liveness ? CGL_ATTEND_INPUTS : 0;
  graph->attend |=
      desc->annotations == CGL_ANNOTATIONS_NVTX ? CGL_ATTEND_RANGES : 0;
  graph->inputs_seen = 0;
  graph->pool = cgl_pool_retain(desc->pool);
  graph->pool_given = desc->pool;
  graph->unchecked = desc->unchecked;
}


cgl_status cgl_graph_create(cgl_context *context, const cgl_graph_desc *desc,
                            cgl_graph **out) {
  static const cgl_graph_desc defaults;
  static const char operation[] = "graph";
  desc = desc ? desc : &defaults;
  cgl_status status = check_desc(context, desc, operation);
  if (status)
    return status;
  cgl_graph *graph = calloc(1, sizeof *graph);
  if (!graph)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a graph");
  describe(graph, desc);
  cgl_object_init(&graph->object, CGL_OBJECT_graph, context);
  *out = graph;
  return CGL_OK;
}


void cgl_graph_get_desc(const cgl_graph *graph, cgl_graph_desc *desc) {
  desc->keep_graph = graph->keep_graph;
  desc->pool = graph->pool_given ? graph->pool : NULL;
  desc->capture_mode = graph->mode;
  desc->unchecked = graph->unchecked;
  desc->annotations = graph->annotations;
  desc->check_input_liveness = graph->attend & CGL_ATTEND_INPUTS;
}


cgl_status cgl_graph_set_desc(cgl_graph *graph, const cgl_graph_desc *desc) {
  static const char operation[] = "graph:options";
  if (graph->state != CGL_GRAPH_EMPTY) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation, "the graph %s, begun at %s",
             graph->state == CGL_GRAPH_CAPTURING ? "is capturing already"
                                                 : "holds a capture already",
             cgl_site_text(graph->begun));
    return cgl_fail_hint("reset the graph first, or capture into a new one");
  }
  cgl_status status = check_desc(graph->object.context, desc, operation);
  if (status)
    return status;
  cgl_pool *before = graph->pool;
  describe(graph, desc);
  cgl_pool_release(before);
  return CGL_OK;
}


void cgl_graph_unhold_pool(cgl_graph *graph) {
  if (graph->pool_held)
    atomic_fetch_sub(&graph->pool->captures, 1);
  graph->pool_held = false;
}


/* Moves what a graph captured to `to`, which is empty. */
static void bequeath(cgl_graph *graph, cgl_graph *to) {
  to->exec = graph->exec;
  to->exec_bytes = graph->exec_bytes;
  to->template = graph->template;
  to->recording = graph->recording;
  to->origin = graph->origin;
  to->pool = cgl_pool_retain(graph->pool);
  to->pool_held = graph->pool_held;
  graph->exec = NULL;
  graph->template = NULL;
  graph->origin = NULL;
  graph->pool_held = false;
  cgl_hooks_bequeath(graph, to);
  memset(&graph->recording, 0, sizeof graph->recording);
}


void cgl_graph_destroy(cgl_graph *graph) {
  const cgl_driver *driver = cgl_driver_of(graph);
  if (graph->heir) {
    bequeath(graph, graph->heir);
    cgl_graph_release(graph->heir);
  }
  if (!cgl_context_enter(graph->object.context, "graph")) {
    if (graph->exec) {
      driver->cuGraphExecDestroy(graph->exec);
      atomic_fetch_sub(&graph->pool->sharing->executables, graph->exec_bytes);
    }
    if (graph->template)
      driver->cuGraphDestroy(graph->template);
  }
  cgl_hooks_destroy(graph);
  cgl_hooks_free(graph);
  cgl_recording_clear(&graph->recording, graph->object.context);
  cgl_share_release(graph->share);
  cgl_stream_release(graph->origin);
  cgl_graph_unhold_pool(graph);
  /* Replays of the graphs around it are noted in their own pools only. */
  if (graph->is_heir && graph->pool)
    cgl_pool_note_use(graph->pool,
                      cgl_context_next_wait(graph->object.context));
  cgl_pool_release(graph->pool);
  free(graph);
}


static cgl_graph *new_husk(cgl_graph *graph, const char *operation) {
  cgl_graph *husk = calloc(1, sizeof *husk);
  if (husk)
    cgl_object_init(&husk->object, CGL_OBJECT_graph, graph->object.context);
  else
    cgl_fail(CGL_ERROR_NO_MEMORY, operation,
             "no memory to replace what the graph holds");
  return husk;
}


/* Hands what a graph holds of the driver's over to an object that dies like
   any other: now, or when the last capture underway has ended, or with the
   last graph that has this one as a child. */
static cgl_status shed(cgl_graph *graph, bool everything,
                       const char *operation) {
  if (!graph->exec && !everything)
    return CGL_OK;
  cgl_graph *husk = everything ? graph->heir : NULL;
  if (!husk && !(husk = new_husk(graph, operation)))
    return CGL_ERROR_NO_MEMORY;
  if (everything) {
    graph->heir = NULL;
    bequeath(graph, husk);
    cgl_share_release(graph->share);
    graph->share = NULL;
    /* A replay in flight may still use the private pool's memory: the next
       capture gets another one. */
    if (!graph->pool_given) {
      cgl_pool_release(graph->pool);
      graph->pool = NULL;
    }
  } else {
    husk->exec = graph->exec;
    husk->exec_bytes = graph->exec_bytes;
    graph->exec = NULL;
    husk->pool = cgl_pool_retain(graph->pool);
  }
  cgl_graph_release(husk);
  return CGL_OK;
}


/* What the trail calls a replay: the graph's first few kernels, and where they
   were launched into the capture. */
static const char *label_of(const cgl_graph *graph) {
  const cgl_recording *recording = &graph->recording;
  char text[400] = "graph of ";
  size_t at = strlen(text);
  int named = 0;
  for (size_t i = 0; i < recording->nops && named < 4; i++) {
    const cgl_op *op = &recording->ops[i];
    if (op->kind != CGL_OP_KERNEL ||
        (i && recording->ops[i - 1].name == op->name))
      continue;
    int n = snprintf(text + at, sizeof text - at, "%s%s (%s)",
                     named++ ? " + " : "", op->name, cgl_site_text(op->site));
    at += n > 0 ? (size_t)n : 0;
    if (at >= sizeof text)
      break;
  }
  return cgl_intern(named ? text : "graph without kernels");
}


static bool is_captured_by_others(cgl_stream *stream) {
  if (cgl_stream_is_default(stream))
    return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return !cgl_driver_of(stream)->cuStreamIsCapturing(stream->handle, &status) &&
         status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}


/* Whether `stream` captures: ours is known, an engine's has to be asked. */
static inline bool captures(cgl_stream *stream) {
  return stream->capture || (!stream->owned && is_captured_by_others(stream));
}


static CUresult instantiate(cgl_graph *graph, CUgraphExec *exec,
                            const char **entry) {
  const cgl_driver *driver = cgl_driver_of(graph);
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
          CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
      NULL, NULL, 0};
  *entry = "cuGraphInstantiateWithParams";
  CUresult result =
      driver->cuGraphInstantiateWithParams(exec, graph->template, &params);
  if (result)
    return result;
  *entry = "cuGraphNodeSetEnabled";
  result = cgl_graph_switch_off(graph, *exec);
  /* So that the first replay costs what the second does; on a stream that
     captures again by now the upload would break that capture. */
  if (!result && !captures(graph->origin)) {
    *entry = "cuGraphUpload";
    result = driver->cuGraphUpload(*exec, graph->origin->handle);
  }
  if (result)
    driver->cuGraphExecDestroy(*exec);
  return result;
}


cgl_status cgl_graph_make_executable(cgl_graph *graph, const char *operation) {
  cgl_context *context = graph->object.context;
  CUgraphExec exec;
  const char *entry;
  cgl_status status = cgl_graph_refresh(graph, operation);
  if (status)
    return status;
  size_t before = cgl_history_free_bytes(context);
  cgl_relaxed relaxed = cgl_relax(context);
  CUresult result = instantiate(graph, &exec, &entry);
  cgl_unrelax(context, relaxed);
  if (result)
    return cgl_fail_driver(context, result, operation, entry);
  status = shed(graph, false, operation);
  if (status) {
    relaxed = cgl_relax(context);
    context->driver->cuGraphExecDestroy(exec);
    cgl_unrelax(context, relaxed);
    return status;
  }
  size_t after = cgl_history_free_bytes(context);
  graph->exec_bytes = before > after ? before - after : 0;
  atomic_fetch_add(&graph->pool->sharing->executables, graph->exec_bytes);
  graph->exec = exec;
  graph->extra = graph->recording.draws || graph->share->ngroup > 1;
  graph->exec_number = atomic_fetch_add(&next_exec, 1);
  graph->label = label_of(graph);
  status = cgl_hooks_run(graph, CGL_HOOK_INSTANTIATE, operation);
  if (status) {
    cgl_fail_follow(true);
    shed(graph, false, operation);
    cgl_fail_follow(false);
  } else if (!graph->exec) {
    cgl_fail(CGL_ERROR_NOT_CAPTURED, operation,
             "an instantiate hook reset the graph");
    return cgl_fail_hint("reset the graph after it was instantiated");
  }
  return status;
}


cgl_status cgl_graph_check_captured(const cgl_graph *graph,
                                    const char *operation) {
  if (graph->state == CGL_GRAPH_CAPTURED)
    return CGL_OK;
  const bool begun = graph->state == CGL_GRAPH_CAPTURING;
  if (begun)
    cgl_fail(CGL_ERROR_NOT_CAPTURED, operation,
             "the capture that began at %s has not ended yet",
             cgl_site_text(graph->begun));
  else
    cgl_fail(CGL_ERROR_NOT_CAPTURED, operation,
             "the graph holds no capture: it was never captured, or was reset");
  return cgl_fail_hint(begun ? "end the capture first"
                             : "capture something into the graph first");
}


cgl_status cgl_graph_instantiate(cgl_graph *graph) {
  static const char operation[] = "graph:instantiate";
  cgl_status status = cgl_graph_check_captured(graph, operation);
  if (status)
    return status;
  if (!graph->keep_graph) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "the graph was instantiated when its capture ended, and its "
             "template is not kept");
    return cgl_fail_hint("create the graph with keep_graph = true to "
                         "instantiate by hand");
  }
  status = cgl_context_enter(graph->object.context, operation);
  return status ? status : cgl_graph_make_executable(graph, operation);
}


/* The driver refuses a launch into a capture: the template becomes a child
   graph node after the stream's dependencies, by our own hand. */
static CUresult add_child(cgl_graph *graph, cgl_stream *stream,
                          CUgraphNode *node, const char **entry) {
  const cgl_driver *driver = cgl_driver_of(stream);
  cgl_captured parent;
  *entry = "cuStreamGetCaptureInfo";
  CUresult result = cgl_capture_ask(stream, &parent);
  if (result)
    return result;
  CUgraphNodeParams params;
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_GRAPH;
  params.graph.graph = graph->template;
  params.graph.ownership = CU_GRAPH_CHILD_GRAPH_OWNERSHIP_CLONE;
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


/* `count` child nodes that touch what the graph's recording touches. */
static cgl_status add_children(cgl_graph *graph, cgl_stream *stream,
                               uint64_t count, const cgl_range *ranges,
                               size_t nranges, const char *operation) {
  for (uint64_t i = 0; i < count; i++) {
    cgl_status status = CGL_OK;
    if (graph->recording.draws)
      status = cgl_draws_enter_child(graph, stream, operation);
    if (!status)
      status = cgl_capture_reserve(stream, operation, nranges, 0,
                                   1 + graph->recording.nkept);
    if (!status)
      status = cgl_share_check_child(graph, stream, operation);
    if (status)
      return status;
    const char *entry;
    CUgraphNode node;
    CUresult result = add_child(graph, stream, &node, &entry);
    if (result)
      return cgl_capture_failed(stream->capture, result, operation, entry,
                                graph->object.context);
    if (!stream->capture)
      continue;
    cgl_note note = {.kind = CGL_OP_GRAPH, .name = "graph:replay"};
    note.ranges = ranges;
    note.nranges = nranges;
    /* Not the graph: it may be reset before the other is. */
    cgl_capture_keep(stream->capture, &graph->heir->object);
    /* So that checks of inputs see them. */
    for (size_t k = 0; k < graph->recording.nkept; k++)
      cgl_capture_keep(stream->capture, graph->recording.kept[k]);
    cgl_capture_note(stream, &note);
    cgl_share_note_child(graph, stream->capture);
    if (graph->recording.draws)
      cgl_draws_leave_child(graph, stream, node);
  }
  return CGL_OK;
}


static cgl_status replay_into_capture(cgl_graph *graph, cgl_stream *stream,
                                      uint64_t count, const char *operation) {
  if (graph->recording.noff) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "a graph with nodes that are switched off cannot be captured into "
             "another one, where all of them would run");
    return cgl_fail_hint("switch them on first, with graph:set_enabled");
  }
  cgl_status status = cgl_graph_refresh(graph, operation);
  if (status)
    return status;
  if (!graph->heir && !(graph->heir = new_husk(graph, operation)))
    return CGL_ERROR_NO_MEMORY;
  graph->heir->is_heir = true;
  cgl_range *ranges;
  size_t nranges;
  if (!cgl_recording_footprint(&graph->recording, &ranges, &nranges))
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory to note what the graph touches");
  status = add_children(graph, stream, count, ranges, nranges, operation);
  free(ranges);
  return status;
}


cgl_status cgl_graph_prepare(cgl_graph *graph, cgl_stream *stream,
                             const char *operation) {
  cgl_status status = cgl_context_enter(graph->object.context, operation);
  if (status || graph->exec)
    return status;
  status = cgl_graph_check_captured(graph, operation);
  if (status || captures(stream))
    return status;
  return cgl_graph_make_executable(graph, operation);
}


cgl_status cgl_graph_launch(cgl_graph *graph, cgl_stream *stream,
                            uint64_t count, const char *operation) {
  cgl_context *context = graph->object.context;
  if (captures(stream))
    return replay_into_capture(graph, stream, count, operation);
  cgl_status status = graph->extra && graph->recording.draws
                          ? cgl_draws_ready(graph, stream, operation)
                          : CGL_OK;
  bool takes_turns = cgl_share_takes_turns(graph);
  if (!status && takes_turns)
    status = cgl_share_begin(graph, stream, count, operation);
  if (status)
    return status;
  const cgl_driver *driver = context->driver;
  CUgraphExec exec = graph->exec;
  CUresult result = CUDA_SUCCESS;
  uint64_t launched = 0;
  while (launched < count &&
         !(result = driver->cuGraphLaunch(exec, stream->handle)))
    launched++;
  if (takes_turns)
    cgl_share_end(graph, stream, launched);
  else if (launched && graph->stamped != stream->clock)
    cgl_share_stamp(graph, stream);
  cgl_trail_add(graph->label);
  /* The pool must not give memory back before the device was waited for. */
  cgl_pool_note_use(graph->pool, cgl_context_next_wait(context));
  if (!result)
    return CGL_OK;
  return cgl_fail_driver(context, result, operation, "cuGraphLaunch");
}


cgl_status cgl_graph_replay(cgl_graph *graph, cgl_stream *stream,
                            uint64_t count) {
  static const char operation[] = "graph:replay";
  if (stream->object.context != graph->object.context)
    return cgl_check_device(&graph->object, &stream->object, operation);
  cgl_status status = cgl_graph_prepare(graph, stream, operation);
  if (status)
    return status;
  if (graph->attend)
    return cgl_replay_attended(graph, stream, count, operation);
  return cgl_graph_launch(graph, stream, count, operation);
}


cgl_status cgl_graph_reset(cgl_graph *graph) {
  static const char operation[] = "graph:reset";
  cgl_graph_capture_abandon(graph);
  if (graph->state == CGL_GRAPH_EMPTY) {
    cgl_hooks_destroy(graph);
    return CGL_OK;
  }
  cgl_status status = shed(graph, true, operation);
  if (!status)
    graph->state = CGL_GRAPH_EMPTY;
  return status;
}


cgl_status cgl_graph_pool(cgl_graph *graph, cgl_pool **pool) {
  if (!graph->pool || graph->state == CGL_GRAPH_EMPTY) {
    cgl_fail(CGL_ERROR_NOT_CAPTURED, "graph:pool",
             "the graph has no pool before its first capture");
    return cgl_fail_hint("capture first, or give the graph a pool");
  }
  *pool = cgl_pool_retain(graph->pool);
  cgl_sharing_begin(*pool);
  return CGL_OK;
}


cgl_status cgl_graph_pool_at(cgl_graph *graph, size_t index, cgl_pool **pool) {
  *pool = NULL;
  if (!index)
    return cgl_graph_pool(graph, pool);
  const cgl_recording *recording = &graph->recording;
  for (size_t i = 0; i < recording->nkept && !*pool; i++)
    if (recording->kept[i]->kind == CGL_OBJECT_pool && !--index)
      *pool = cgl_pool_retain((cgl_pool *)recording->kept[i]);
  return CGL_OK;
}


cgl_status cgl_graph_raw_graph(cgl_graph *graph, void **cugraph) {
  static const char operation[] = "graph:raw_cuda_graph";
  if (!graph->template || (!graph->keep_graph && !graph->open)) {
    cgl_fail(graph->template ? CGL_ERROR_CAPTURE_STATE : CGL_ERROR_NOT_CAPTURED,
             operation,
             graph->template ? "the template of this graph is not kept"
                             : "the graph holds no capture");
    return cgl_fail_hint("create the graph with keep_graph = true and capture "
                         "first");
  }
  cgl_status status = cgl_graph_refresh(graph, operation);
  if (!status)
    *cugraph = graph->template;
  return status;
}


cgl_status cgl_graph_raw_exec(cgl_graph *graph, void **cuexec) {
  if (!graph->exec) {
    cgl_fail(CGL_ERROR_NOT_CAPTURED, "graph:raw_cuda_graph_exec",
             "the graph has not been instantiated");
    return cgl_fail_hint("instantiate or replay it first");
  }
  *cuexec = graph->exec;
  return CGL_OK;
}
