/* Draws: the numbers that operations take of a generator's state, eagerly and
   in captures, and the nodes that move its offset in replays. */
#include "core/random/random.h"

#include <stdlib.h>
#include <string.h>


void cgl_draws_free(cgl_draw *draws) {
  while (draws) {
    cgl_draw *next = draws->next;
    cgl_random_state_release(draws->state);
    free(draws->nodes);
    free(draws);
    draws = next;
  }
}


static cgl_draw *find(const cgl_graph *graph, const cgl_random_state *state) {
  cgl_draw *draw = graph->recording.draws;
  while (draw && draw->state != state)
    draw = draw->next;
  return draw;
}


#ifdef CGL_DEBUG
/* In a capture: each state is there once, and its operations are known. */
static bool are_valid(const cgl_graph *graph) {
  for (const cgl_draw *draw = graph->recording.draws; draw; draw = draw->next)
    if (find(graph, draw->state) != draw || draw->nnodes > draw->nodes_size ||
        !draw->count != !draw->nnodes || draw->nnodes > draw->count ||
        draw->state->captures < draw->capturing || (draw->count && !draw->used))
      return false;
  return true;
}

#define CHECK(graph) ((void)(are_valid(graph) || (abort(), 0)))
#else
#define CHECK(graph) ((void)0)
#endif


static cgl_status no_memory(const char *operation) {
  return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                  "no host memory to note a draw in the capture");
}


cgl_status cgl_draw_register(cgl_graph *graph, cgl_random_state *state,
                             const char *operation, cgl_draw **out) {
  cgl_draw *draw = find(graph, state);
  if (!draw) {
    draw = calloc(1, sizeof *draw);
    if (!draw)
      return no_memory(operation);
    draw->state = cgl_random_state_retain(state);
    draw->next = graph->recording.draws;
    graph->recording.draws = draw;
  }
  if (graph->state == CGL_GRAPH_CAPTURING && !draw->capturing) {
    draw->capturing = true;
    state->captures++;
  }
  *out = draw;
  return CGL_OK;
}


void cgl_draws_leave(cgl_graph *graph) {
  for (cgl_draw *draw = graph->recording.draws; draw; draw = draw->next) {
    draw->state->captures -= draw->capturing;
    draw->capturing = false;
  }
}


/* ---- one operation ---- */

/* Makes what `stream` captures next depend on `node` too. */
static cgl_status follow(cgl_stream *stream, CUgraphNode node,
                         const char *operation) {
  cgl_captured now;
  const char *entry = "cuStreamGetCaptureInfo";
  CUresult result = cgl_capture_ask(stream, &now);
  for (size_t i = 0; !result && i < now.count; i++)
    if (now.nodes[i] == node)
      return CGL_OK;
  CUgraphNode *all = NULL;
  CUgraphEdgeData *data = NULL;
  if (!result) {
    all = malloc((now.count + 1) * sizeof *all);
    data = calloc(now.count + 1, sizeof *data);
    if (!all || !data) {
      free(all);
      free(data);
      return no_memory(operation);
    }
    memcpy(all, now.nodes, now.count * sizeof *all);
    all[now.count] = node;
    bool plain = true;
    for (size_t i = 0; now.edges && i < now.count; i++) {
      plain &= !memcmp(&now.edges[i], &data[now.count], sizeof *data);
      data[i] = now.edges[i];
    }
    entry = "cuStreamUpdateCaptureDependencies";
    result = cgl_driver_of(stream)->cuStreamUpdateCaptureDependencies(
        stream->handle, all, plain ? NULL : data, now.count + 1,
        CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  }
  free(all);
  free(data);
  return result ? cgl_capture_failed(stream->capture, result, operation, entry,
                                     stream->object.context)
                : CGL_OK;
}


static cgl_status begin_in_capture(cgl_random_state *state, cgl_stream *stream,
                                   size_t before, const char *operation,
                                   uint64_t *number) {
  cgl_draw *draw = NULL;
  cgl_status status =
      cgl_draw_register(stream->capture, state, operation, &draw);
  if (status)
    return status;
  if (draw->nnodes == draw->nodes_size) {
    size_t size = draw->nodes_size ? 2 * draw->nodes_size : 8;
    CUgraphNode *nodes = realloc(draw->nodes, size * sizeof(CUgraphNode));
    if (!nodes)
      return no_memory(operation);
    draw->nodes = nodes;
    draw->nodes_size = size;
  }
  *number = draw->count + before;
  return draw->barrier ? follow(stream, draw->barrier, operation) : CGL_OK;
}


cgl_status cgl_draw_begin(cgl_generator *generator, cgl_stream *stream,
                          size_t before, const char *operation,
                          cgl_philox *philox) {
  cgl_random_state *state = generator->state;
  cgl_status status =
      cgl_check_device(&stream->object, &generator->object, operation);
  *philox = (cgl_philox){state->memory->address, state->pending + before, 0, 0};
  if (status)
    return status;
  if (stream->capture)
    return begin_in_capture(state, stream, before, operation,
                            &philox->operation);
  return cgl_random_state_ready(state, stream, false, operation);
}


cgl_status cgl_draw_end(cgl_generator *generator, cgl_stream *stream,
                        const char *operation) {
  cgl_random_state *state = generator->state;
  cgl_graph *graph = stream->capture;
  if (!graph) {
    state->pending++;
    cgl_random_state_used(state);
    return CGL_OK;
  }
  cgl_draw *draw = find(graph, state);
  cgl_op *op = &graph->recording.ops[graph->recording.nops - 1];
  CUgraphNode node = op->node ? op->node : cgl_capture_last_node(stream);
  op->node = node;
  draw->count++;
  draw->used = true;
  if (!draw->nnodes || draw->nodes[draw->nnodes - 1] != node)
    draw->nodes[draw->nnodes++] = node;
  CHECK(graph);
  if (node)
    return CGL_OK;
  draw->lost = true;
  return cgl_capture_failed(graph, CUDA_ERROR_UNKNOWN, operation,
                            "cuStreamGetCaptureInfo", stream->object.context);
}


/* ---- moving the offset in a graph ---- */

/* Adds the node that moves the offset past what was drawn since the barrier,
   and notes it; the next barrier. */
static cgl_status move_offset(cgl_graph *graph, CUgraph template,
                              cgl_draw *draw, const char *operation) {
  cgl_context *context = graph->object.context;
  cgl_recording *recording = &graph->recording;
  uint64_t unused = 0;
  void *params[] = {&draw->state->memory->address, &draw->count, &unused};
  CUgraphNodeParams node;
  memset(&node, 0, sizeof node);
  node.type = CU_GRAPH_NODE_TYPE_KERNEL;
  node.kernel.gridDimX = node.kernel.gridDimY = node.kernel.gridDimZ = 1;
  node.kernel.blockDimX = node.kernel.blockDimY = node.kernel.blockDimZ = 1;
  node.kernel.kernelParams = params;
  if (!cgl_recording_reserve(recording, 0, 0, 0))
    return no_memory(operation);
  cgl_status status =
      cgl_fill_kernel(context, CGL_FILL_advance, operation, &node.kernel.func);
  if (status)
    return status;
  CUresult result = draw->lost ? CUDA_ERROR_UNKNOWN
                               : context->driver->cuGraphAddNode(
                                     &draw->barrier, template, draw->nodes,
                                     NULL, draw->nnodes, &node);
  if (result)
    return cgl_fail_driver(context, result, operation, "cuGraphAddNode");
  cgl_op *op = &recording->ops[recording->nops++];
  memset(op, 0, sizeof *op);
  op->kind = CGL_OP_KERNEL;
  op->node = draw->barrier;
  op->name = "advance";
  op->site = cgl_site_here;
  op->ranges = recording->nranges;
  op->args = recording->nargs;
  for (int i = 0; i < 3; i++)
    op->grid[i] = op->block[i] = 1;
  draw->count = 0;
  draw->nnodes = 0;
  CHECK(graph);
  return CGL_OK;
}


cgl_status cgl_draws_close(cgl_graph *graph, const char *operation) {
  cgl_status status = CGL_OK;
  for (cgl_draw *draw = graph->recording.draws; draw && !status;
       draw = draw->next) {
    if (draw->count)
      status = move_offset(graph, graph->template, draw, operation);
    /* Of no use any more. */
    free(draw->nodes);
    draw->nodes = NULL;
    draw->nnodes = draw->nodes_size = 0;
    draw->barrier = NULL;
  }
  return status;
}


/* The graph that the driver is building for the capture of `stream`. */
static cgl_status template_of(cgl_stream *stream, const char *operation,
                              CUgraph *template) {
  cgl_captured now;
  CUresult result = cgl_capture_ask(stream, &now);
  if (result)
    return cgl_capture_failed(stream->capture, result, operation,
                              "cuStreamGetCaptureInfo", stream->object.context);
  *template = now.graph;
  return CGL_OK;
}


static cgl_status captured_by_others(const char *operation) {
  cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
           "the graph draws random numbers, and the stream is captured by "
           "another library");
  return cgl_fail_hint("capture with graph:capture_begin, which keeps count");
}


cgl_status cgl_draws_enter_child(cgl_graph *child, cgl_stream *stream,
                                 const char *operation) {
  cgl_graph *graph = stream->capture;
  cgl_status status = CGL_OK;
  for (const cgl_draw *inner = child->recording.draws; inner && !status;
       inner = inner->next) {
    cgl_draw *draw = NULL;
    CUgraph template = NULL;
    if (!inner->used)
      continue;
    if (!graph)
      return captured_by_others(operation);
    status = cgl_draw_register(graph, inner->state, operation, &draw);
    if (!status && draw->count) {
      status = template_of(stream, operation, &template);
      if (!status)
        status = move_offset(graph, template, draw, operation);
    }
    if (!status && draw->barrier)
      status = follow(stream, draw->barrier, operation);
  }
  return status;
}


void cgl_draws_leave_child(cgl_graph *child, cgl_stream *stream,
                           CUgraphNode node) {
  for (const cgl_draw *inner = child->recording.draws; inner;
       inner = inner->next) {
    if (!inner->used)
      continue;
    cgl_draw *draw = find(stream->capture, inner->state);
    draw->barrier = node;
    draw->used = true;
  }
}


/* ---- replays ---- */

cgl_status cgl_draws_ready(cgl_graph *graph, cgl_stream *stream,
                           const char *operation) {
  cgl_status status = CGL_OK;
  for (cgl_draw *draw = graph->recording.draws; draw && !status;
       draw = draw->next)
    if (draw->used) {
      status = cgl_random_state_ready(draw->state, stream, true, operation);
      /* The replay comes later, and nobody says so when it was issued. */
      draw->state->tick = UINT64_MAX;
    }
  return status;
}
