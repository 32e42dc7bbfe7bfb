/* What a capture makes of a stream's work: nodes, and the dependency sets
   that events fork and join. */
#include "driver/host/graph/graph.h"

#include <stdlib.h>
#include <string.h>


static bool reserve_deps(CUstream stream, size_t count) {
  if (count <= stream->deps_size)
    return true;
  size_t size = stream->deps_size * 2 < count ? count : stream->deps_size * 2;
  if (size < 8)
    size = 8;
  CUgraphNode *deps = realloc(stream->deps, size * sizeof *deps);
  if (!deps)
    return false;
  stream->deps = deps;
  CUgraphEdgeData *edges = realloc(stream->edges, size * sizeof *edges);
  if (!edges)
    return false;
  stream->edges = edges;
  stream->deps_size = size;
  return true;
}


CUresult host_graph_capture_deps(CUstream stream, const CUgraphNode *deps,
                                 const CUgraphEdgeData *edges, size_t count,
                                 bool replace) {
  size_t kept = replace ? 0 : stream->ndeps;
  /* The caller may hand back the array that cuStreamGetCaptureInfo gave it. */
  bool borrowed = deps && stream->deps && deps >= stream->deps &&
                  deps < stream->deps + stream->deps_size;
  if (borrowed && !replace)
    return CUDA_SUCCESS;
  if (!reserve_deps(stream, kept + count))
    return CUDA_ERROR_OUT_OF_MEMORY;
  uint64_t mark = host_graph_mark();
  for (size_t i = 0; i < kept; i++)
    stream->deps[i]->mark = mark;
  size_t n = kept;
  for (size_t i = 0; i < count; i++) {
    if (deps[i]->mark == mark)
      continue;
    deps[i]->mark = mark;
    stream->deps[n] = deps[i];
    stream->edges[n] = edges ? edges[i] : (CUgraphEdgeData){0};
    n++;
  }
  stream->ndeps = n;
  return CUDA_SUCCESS;
}


static void capture_abandon(host_capture *capture) {
  host_graph_capture_end(capture, false);
}


CUresult host_graph_capture_begin(CUstream stream, CUgraph graph,
                                  CUstreamCaptureMode mode) {
  HOST_TRY(host_capture_new(stream, graph, mode, capture_abandon));
  graph->capturing++;
  return CUDA_SUCCESS;
}


/* A capture that fails takes its graph along, even a graph that the caller
   made; only a graph inside another stays, emptied. */
void host_graph_capture_end(host_capture *capture, bool keep_graph) {
  CUgraph graph = capture->graph;
  host_capture_close(capture);
  graph->capturing--;
  if (!keep_graph && !graph->owner)
    host_graph_free(graph);
  else if (!keep_graph)
    host_graph_clear(graph);
}


/* Marks `node` and everything it depends on. */
static bool mark_ancestors(CUgraphNode *roots, size_t nroots, size_t nnodes,
                           uint64_t mark) {
  CUgraphNode *stack = malloc((nnodes + 1) * sizeof *stack);
  if (!stack)
    return false;
  size_t top = 0;
  for (size_t i = 0; i < nroots; i++)
    if (roots[i]->mark != mark) {
      roots[i]->mark = mark;
      stack[top++] = roots[i];
    }
  while (top > 0) {
    CUgraphNode node = stack[--top];
    for (uint32_t i = 0; i < node->in.count; i++) {
      CUgraphNode before = node->in.list[i].node;
      if (before->mark != mark) {
        before->mark = mark;
        stack[top++] = before;
      }
    }
  }
  free(stack);
  return true;
}


CUresult host_graph_capture_joined(host_capture *capture) {
  if (capture->norphans == 0 && !capture->streams->capture_next)
    return CUDA_SUCCESS;
  uint64_t mark = host_graph_mark();
  if (!mark_ancestors(capture->origin->deps, capture->origin->ndeps,
                      capture->graph->nnodes, mark))
    return CUDA_ERROR_OUT_OF_MEMORY;
  for (CUstream s = capture->streams; s; s = s->capture_next)
    for (size_t i = 0; i < s->ndeps; i++)
      if (s->deps[i]->mark != mark)
        return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  for (size_t i = 0; i < capture->norphans; i++)
    if (capture->orphans[i]->mark != mark)
      return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
  return CUDA_SUCCESS;
}


static bool is_holdable(host_op_kind kind) {
  return kind != HOST_OP_EXEC && kind != HOST_OP_CALLBACK;
}


/* A launch with programmatic serialization waits on kernels only by halves. */
static void programmatic_edges(CUstream stream) {
  for (size_t i = 0; i < stream->ndeps; i++)
    if (stream->deps[i]->op.kind == HOST_OP_KERNEL &&
        host_edge_data_is_default(&stream->edges[i]))
      stream->edges[i] =
          (CUgraphEdgeData){.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                            .type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
}


static CUresult capture_node(CUstream stream, host_op *op, host_block *block) {
  host_capture *capture = stream->capture;
  CUresult result = CUDA_SUCCESS;
  if (capture->invalid) {
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  } else if (!is_holdable(op->kind)) {
    capture->invalid = true;
    result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  } else if (!reserve_deps(stream, 1)) {
    result = CUDA_ERROR_OUT_OF_MEMORY;
  }
  if (result != CUDA_SUCCESS) {
    host_node_params_drop(op, block);
    return result;
  }
  if (op->kind == HOST_OP_KERNEL && op->kernel.programmatic)
    programmatic_edges(stream);
  CUgraphNode made = NULL;
  HOST_TRY(host_node_new(&made, capture->graph, stream->deps, stream->edges,
                         stream->ndeps, op, block));
  stream->deps[0] = made;
  stream->edges[0] = (CUgraphEdgeData){0};
  stream->ndeps = 1;
  return CUDA_SUCCESS;
}


CUresult host_graph_submit(CUstream stream, host_op *op) {
  if (stream->capture)
    return capture_node(stream, op, NULL);
  if (stream == host_stream_resolve(CU_STREAM_LEGACY)) {
    CUresult result = host_capture_legacy();
    if (result != CUDA_SUCCESS) {
      host_op_release(op);
      return result;
    }
  }
  return host_stream_enqueue(stream, op);
}


CUresult host_graph_capture_alloc(CUstream stream, size_t bytes,
                                  CUdeviceptr *out) {
  if (stream->capture->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  host_op op = {.kind = HOST_OP_ALLOC};
  op.alloc.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  op.alloc.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  op.alloc.bytesize = bytes;
  host_block *block = NULL;
  HOST_TRY(host_block_new(&block, bytes));
  op.alloc.dptr = block->address;
  CUdeviceptr address = block->address;
  CUresult result = capture_node(stream, &op, block);
  if (result == CUDA_SUCCESS)
    *out = address;
  return result;
}


CUresult host_graph_capture_free(CUstream stream, CUdeviceptr address) {
  if (stream->capture->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  host_block *block = host_block_find(address);
  if (!block || host_block_freed_in(block, stream->capture->graph))
    return CUDA_ERROR_INVALID_VALUE;
  host_block_retain(block);
  host_op op = {.kind = HOST_OP_FREE, .free = address};
  return capture_node(stream, &op, block);
}


/* The event was last recorded in a capture, which has ended or is broken. */
static bool event_is_over(CUevent event) {
  return event->capture && (event->capture->ended || event->capture->invalid);
}


/* An EVENT_RECORD or EVENT_WAIT node. */
static CUresult capture_external(CUstream stream, CUevent event,
                                 host_op_kind kind) {
  if (!stream->capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (stream->capture->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (kind == HOST_OP_EVENT_WAIT && event_is_over(event)) {
    stream->capture->invalid = true;
    return CUDA_ERROR_INVALID_VALUE;
  }
  host_op op = {.kind = kind};
  op.event.event = event;
  host_event_retain(event);
  return capture_node(stream, &op, NULL);
}


CUresult host_graph_capture_record(CUevent event, CUstream stream,
                                   unsigned flags, bool *handled) {
  *handled = true;
  if ((flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_EVENT_RECORD_EXTERNAL)
    return capture_external(stream, event, HOST_OP_EVENT_RECORD);
  host_capture *capture = stream->capture;
  if (!capture) {
    *handled = false;
    if (stream == host_stream_resolve(CU_STREAM_LEGACY)) {
      CUresult result = host_capture_legacy();
      *handled = result != CUDA_SUCCESS;
      if (*handled)
        return result;
    }
    host_capture_forget_event(event);
    return CUDA_SUCCESS;
  }
  if (capture->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  CUgraphNode *deps = malloc((stream->ndeps + 1) * sizeof *deps);
  if (!deps)
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (stream->ndeps > 0)
    memcpy(deps, stream->deps, stream->ndeps * sizeof *deps);
  host_capture_forget_event(event);
  event->capture = capture;
  capture->refs++;
  event->deps = deps;
  event->ndeps = stream->ndeps;
  return CUDA_SUCCESS;
}


/* Waits on an event that was recorded in a capture. */
static CUresult wait_captured(CUstream stream, CUevent event) {
  host_capture *theirs = event->capture;
  if (event_is_over(event)) {
    host_capture_break(stream);
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (stream->capture && stream->capture != theirs) {
    stream->capture->invalid = true;
    theirs->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (!stream->capture && stream == host_stream_resolve(CU_STREAM_LEGACY)) {
    theirs->invalid = true; /* the legacy stream can take no part */
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (!reserve_deps(stream, stream->ndeps + event->ndeps))
    return CUDA_ERROR_OUT_OF_MEMORY;
  if (!stream->capture)
    host_capture_join(theirs, stream);
  return host_graph_capture_deps(stream, event->deps, NULL, event->ndeps,
                                 false);
}


CUresult host_graph_capture_wait(CUstream stream, CUevent event, unsigned flags,
                                 bool *handled) {
  *handled = true;
  if ((flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL) != 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (flags & CU_EVENT_WAIT_EXTERNAL)
    return capture_external(stream, event, HOST_OP_EVENT_WAIT);
  if (stream->capture && stream->capture->invalid)
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (event->capture)
    return wait_captured(stream, event);
  if (stream->capture && event->fence) {
    stream->capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  *handled = stream->capture; /* never recorded: nothing to wait for */
  return CUDA_SUCCESS;
}
