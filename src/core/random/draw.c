/* Draws: the numbers that operations take of a generator's state, and the nodes
   that move its offset in replays. */
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


static cgl_draw *draws_find(cgl_draw *draws, const cgl_random_state *state) {
  while (draws && draws->state != state)
    draws = draws->next;
  return draws;
}


#ifdef CGL_DEBUG
/* In a capture: each state is there once, and its operations are known. */
static bool draws_are_valid(cgl_draw *draws) {
  for (const cgl_draw *draw = draws; draw; draw = draw->next)
    if (draws_find(draws, draw->state) != draw ||
        draw->nnodes > draw->nodes_size || !draw->count != !draw->nnodes ||
        draw->nnodes > draw->count || draw->state->captures < draw->capturing ||
        (draw->count && !draw->used))
      return false;
  return true;
}

#define CHECK(draws) ((void)(draws_are_valid(draws) || (abort(), 0)))
#else
#define CHECK(draws) ((void)0)
#endif


static cgl_status draw_no_memory(const char *operation) {
  return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                  "no host memory to note a draw in the capture");
}


cgl_status cgl_draw_register(cgl_draw **draws, cgl_random_state *state,
                             bool capturing, const char *operation,
                             cgl_draw **out) {
  cgl_draw *draw = draws_find(*draws, state);
  if (!draw) {
    draw = calloc(1, sizeof *draw);
    if (!draw)
      return draw_no_memory(operation);
    draw->state = cgl_random_state_retain(state);
    draw->next = *draws;
    *draws = draw;
  }
  if (capturing && !draw->capturing) {
    draw->capturing = true;
    state->captures++;
  }
  *out = draw;
  return CGL_OK;
}


void cgl_draws_end_capture(cgl_draw *draws) {
  for (cgl_draw *draw = draws; draw; draw = draw->next) {
    draw->state->captures -= draw->capturing;
    draw->capturing = false;
  }
}


/* ---- one operation ---- */

/* Makes the next operation of `stream` depend on `node`, too. */
static cgl_status capture_follow(cgl_stream *stream, CUgraphNode node,
                                 const char *operation) {
  stream->waited = true;
  CUresult result = cgl_driver_of(stream)->cuStreamUpdateCaptureDependencies(
      stream->handle, &node, NULL, 1, CU_STREAM_ADD_CAPTURE_DEPENDENCIES);
  return result ? cgl_capture_failed(stream, result, operation,
                                     "cuStreamUpdateCaptureDependencies")
                : CGL_OK;
}


static cgl_status draw_begin_in_capture(cgl_random_state *state,
                                        cgl_stream *stream, size_t before,
                                        const char *operation,
                                        uint64_t *number) {
  cgl_draw *draw = NULL;
  cgl_status status =
      cgl_draw_register(&stream->capture->draws, state, true, operation, &draw);
  if (status)
    return status;
  if (draw->nnodes == draw->nodes_size) {
    size_t size = draw->nodes_size ? 2 * draw->nodes_size : 8;
    CUgraphNode *nodes = realloc(draw->nodes, size * sizeof(CUgraphNode));
    if (!nodes)
      return draw_no_memory(operation);
    draw->nodes = nodes;
    draw->nodes_size = size;
  }
  *number = draw->count + before;
  return draw->barrier ? capture_follow(stream, draw->barrier, operation)
                       : CGL_OK;
}


cgl_status cgl_draw_begin(cgl_generator *generator, cgl_stream *stream,
                          size_t before, const char *operation,
                          cgl_philox *philox) {
  cgl_random_state *state = generator->state;
  *philox = (cgl_philox){state->memory->address, state->pending + before, 0, 0};
  if (stream->capture)
    return draw_begin_in_capture(state, stream, before, operation,
                                 &philox->operation);
  return cgl_random_state_ready(state, stream, false, operation);
}


cgl_status cgl_draw_end(cgl_generator *generator, cgl_stream *stream,
                        const char *operation) {
  cgl_random_state *state = generator->state;
  if (!stream->capture) {
    state->pending++;
    cgl_random_state_used(state);
    return CGL_OK;
  }
  cgl_draw *draw = draws_find(stream->capture->draws, state);
  CUgraphNode node = cgl_issue_latest_node(stream);
  draw->count++;
  draw->used = true;
  if (!draw->nnodes || draw->nodes[draw->nnodes - 1] != node)
    draw->nodes[draw->nnodes++] = node;
  CHECK(stream->capture->draws);
  return node ? CGL_OK
              : cgl_capture_failed(stream, CUDA_ERROR_UNKNOWN, operation,
                                   "cuStreamGetCaptureInfo");
}


/* ---- moving the offset in a graph ---- */

/* Adds and notes the node that moves the offset past the draws since the last
   barrier; it is the next barrier. */
static cgl_status draw_move_offset(cgl_capture *capture, CUgraph graph,
                                   cgl_draw *draw, const char *operation) {
  static const cgl_launch once = {{1, 1, 1}, {1, 1, 1}, 0};
  cgl_context *context = capture->origin->object.context;
  uint64_t unused = 0;
  unsigned char values[4 * 16]; /* one to align the first */
  void *params[] = {&draw->state->memory->address, &draw->count, &unused};
  CUgraphNodeParams node;
  memset(&node, 0, sizeof node);
  node.type = CU_GRAPH_NODE_TYPE_KERNEL;
  node.kernel.gridDimX = node.kernel.gridDimY = node.kernel.gridDimZ = 1;
  node.kernel.blockDimX = node.kernel.blockDimY = node.kernel.blockDimZ = 1;
  node.kernel.kernelParams = params;
  const cgl_room room = {.values = sizeof values};
  cgl_status status = cgl_issue_reserve(capture->recording, &room, operation);
  if (!status)
    status = cgl_fill_kernel(context, CGL_FILL_advance, operation,
                             &node.kernel.func);
  if (status)
    return status;
  /* The node of a draw may have stayed unknown. */
  CUresult result = CUDA_SUCCESS;
  for (size_t i = 0; i < draw->nnodes; i++)
    if (!draw->nodes[i])
      result = CUDA_ERROR_UNKNOWN;
  if (!result)
    result = context->driver->cuGraphAddNode(&draw->barrier, graph, draw->nodes,
                                             NULL, draw->nnodes, &node);
  if (result)
    return cgl_fail_driver(context, result, operation, "cuGraphAddNode");
  const cgl_note note = {.kind = CGL_OP_KERNEL,
                         .name = "advance",
                         .launch = &once,
                         .function = node.kernel.func,
                         .values = values,
                         .nvalues = cgl_fill_pack(values, params, 3)};
  cgl_issue_note_node(capture->recording, &note, draw->barrier);
  capture->noted = cgl_record_count(capture->recording);
  draw->count = 0;
  draw->nnodes = 0;
  return CGL_OK;
}


cgl_status cgl_draws_close(cgl_draw *draws, cgl_capture *capture, CUgraph graph,
                           const char *operation) {
  cgl_status status = CGL_OK;
  for (cgl_draw *draw = draws; draw && !status; draw = draw->next)
    if (draw->count)
      status = draw_move_offset(capture, graph, draw, operation);
  return status;
}


/* ---- work on a state's memory ---- */

static cgl_status draw_enter_in_capture(cgl_random_state *state,
                                        cgl_stream *stream,
                                        const char *operation) {
  cgl_capture *capture = stream->capture;
  cgl_draw *draw = NULL;
  cgl_status status = cgl_capture_check_open(stream, operation);
  if (!status)
    status = cgl_draw_register(&capture->draws, state, true, operation, &draw);
  if (!status && draw->count) {
    cgl_captured now;
    CUresult result = cgl_capture_ask(stream, &now);
    status = result ? cgl_capture_failed(stream, result, operation,
                                         "cuStreamGetCaptureInfo")
                    : draw_move_offset(capture, now.graph, draw, operation);
  }
  return status || !draw->barrier
             ? status
             : capture_follow(stream, draw->barrier, operation);
}


cgl_status cgl_draw_enter(cgl_random_state *state, cgl_stream *stream,
                          const char *operation) {
  return stream->capture
             ? draw_enter_in_capture(state, stream, operation)
             : cgl_random_state_ready(state, stream, true, operation);
}


static void draw_leave_in_capture(cgl_random_state *state, cgl_stream *stream,
                                  bool write, CUgraphNode node) {
  cgl_draw *draw = draws_find(stream->capture->draws, state);
  draw->barrier = node;
  draw->used = true;
  draw->written |= write;
}


void cgl_draw_leave(cgl_random_state *state, cgl_stream *stream, bool write) {
  if (stream->capture) {
    draw_leave_in_capture(state, stream, write, cgl_issue_latest_node(stream));
    return;
  }
  state->unread |= write;
  cgl_random_state_used(state);
}


cgl_status cgl_draws_enter_child(const cgl_draw *child, cgl_stream *stream,
                                 const char *operation) {
  cgl_status status = CGL_OK;
  for (const cgl_draw *inner = child; inner && !status; inner = inner->next) {
    if (!inner->used)
      continue;
    if (!stream->capture) {
      cgl_fail(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, operation,
               "the graph draws random numbers, and the stream is captured by "
               "another library");
      return cgl_fail_hint(
          "capture with graph:capture_begin, which keeps count");
    }
    status = draw_enter_in_capture(inner->state, stream, operation);
  }
  return status;
}


void cgl_draws_leave_child(const cgl_draw *child, cgl_stream *stream,
                           CUgraphNode node) {
  for (const cgl_draw *inner = child; inner; inner = inner->next)
    if (inner->used)
      draw_leave_in_capture(inner->state, stream, inner->written, node);
}


/* ---- replays ---- */

cgl_status cgl_draws_ready(cgl_draw *draws, cgl_stream *stream,
                           const char *operation) {
  cgl_status status = CGL_OK;
  for (cgl_draw *draw = draws; draw && !status; draw = draw->next)
    if (draw->used) {
      status = cgl_random_state_ready(draw->state, stream, true, operation);
      /* The replay is issued later, at an unknown tick. */
      draw->state->tick = UINT64_MAX;
      draw->state->unread |= draw->written;
    }
  return status;
}
