/* The driver's calls that begin, end and look into captures. */
#include "driver/host/calls/calls.h"
#include "driver/host/graph/graph.h"


static bool mode_is_valid(CUstreamCaptureMode mode) {
  return mode == CU_STREAM_CAPTURE_MODE_GLOBAL ||
         mode == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL ||
         mode == CU_STREAM_CAPTURE_MODE_RELAXED;
}


/* May a capture begin in the stream? */
static CUresult capture_begin_check(CUstream stream) {
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream == host_stream_resolve(CU_STREAM_LEGACY))
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  return stream->capture ? CUDA_ERROR_ILLEGAL_STATE : CUDA_SUCCESS;
}


CUresult host_cuStreamBeginCapture(CUstream hStream, CUstreamCaptureMode mode) {
  HOST_TRY(host_check_stream(hStream));
  if (!mode_is_valid(mode))
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUstream stream = host_stream_resolve(hStream);
  CUresult result = capture_begin_check(stream);
  if (result == CUDA_SUCCESS) {
    CUgraph graph = host_graph_new();
    result = graph ? host_graph_capture_begin(stream, graph, mode)
                   : CUDA_ERROR_OUT_OF_MEMORY;
    if (result != CUDA_SUCCESS && graph)
      host_graph_free(graph);
  }
  return host_unlock_with(result);
}


CUresult host_cuStreamBeginCaptureToGraph(CUstream hStream, CUgraph hGraph,
                                          const CUgraphNode *dependencies,
                                          const CUgraphEdgeData *dependencyData,
                                          size_t numDependencies,
                                          CUstreamCaptureMode mode) {
  HOST_TRY(host_check_stream(hStream));
  if (!mode_is_valid(mode))
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUstream stream = host_stream_resolve(hStream);
  CUresult result = capture_begin_check(stream);
  if (result == CUDA_SUCCESS && !host_graph_is_live(hGraph))
    result = CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS && hGraph->capturing > 0)
    result = CUDA_ERROR_ILLEGAL_STATE;
  if (result == CUDA_SUCCESS)
    result =
        host_nodes_check(hGraph, dependencies, dependencyData, numDependencies);
  if (result == CUDA_SUCCESS)
    result = host_graph_capture_begin(stream, hGraph, mode);
  if (result == CUDA_SUCCESS) {
    result = host_graph_capture_deps(stream, dependencies, dependencyData,
                                     numDependencies, true);
    if (result != CUDA_SUCCESS)
      host_graph_capture_end(stream->capture, true);
  }
  return host_unlock_with(result);
}


static CUresult capture_end(CUstream stream, CUgraph *out) {
  host_capture *capture = stream->capture;
  if (!capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (!stream->origin) {
    capture->invalid = true;
    return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
  }
  CUresult result = CUDA_SUCCESS;
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
      capture->thread != host_capture_thread())
    result = CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  else if (capture->invalid)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else
    result = host_graph_capture_joined(capture);
  if (out)
    *out = result == CUDA_SUCCESS ? capture->graph : NULL;
  host_graph_capture_end(capture, result == CUDA_SUCCESS && out);
  return result;
}


CUresult host_cuStreamEndCapture(CUstream hStream, CUgraph *phGraph) {
  HOST_TRY(host_check_stream(hStream));
  host_lock();
  CUstream stream = host_stream_resolve(hStream);
  return host_unlock_with(stream ? capture_end(stream, phGraph)
                                 : CUDA_ERROR_INVALID_HANDLE);
}


static CUstreamCaptureStatus capture_status(CUstream stream) {
  if (!stream->capture)
    return CU_STREAM_CAPTURE_STATUS_NONE;
  return stream->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                  : CU_STREAM_CAPTURE_STATUS_ACTIVE;
}


/* A question about the legacy stream cannot be answered while a blocking
   stream captures; asking breaks nothing. */
static CUresult capture_query_check(CUstream stream) {
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (stream == host_stream_resolve(CU_STREAM_LEGACY) &&
      host_capture_bars_legacy())
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  return CUDA_SUCCESS;
}


CUresult host_cuStreamIsCapturing(CUstream hStream,
                                  CUstreamCaptureStatus *captureStatus) {
  HOST_TRY(host_check_callback_stream(hStream));
  if (!captureStatus)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUstream stream = host_stream_resolve(hStream);
  CUresult result = capture_query_check(stream);
  if (result == CUDA_SUCCESS)
    *captureStatus = capture_status(stream);
  return host_unlock_with(result);
}


static bool has_edge_data(CUstream stream) {
  for (size_t i = 0; i < stream->ndeps; i++)
    if (!host_edge_data_is_default(&stream->edges[i]))
      return true;
  return false;
}


CUresult host_cuStreamGetCaptureInfo(CUstream hStream,
                                     CUstreamCaptureStatus *captureStatus_out,
                                     cuuint64_t *id_out, CUgraph *graph_out,
                                     const CUgraphNode **dependencies_out,
                                     const CUgraphEdgeData **edgeData_out,
                                     size_t *numDependencies_out) {
  HOST_TRY(host_check_stream(hStream));
  if (!captureStatus_out)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  CUstream stream = host_stream_resolve(hStream);
  CUresult result = capture_query_check(stream);
  if (result == CUDA_SUCCESS)
    *captureStatus_out = capture_status(stream);
  if (result == CUDA_SUCCESS &&
      *captureStatus_out == CU_STREAM_CAPTURE_STATUS_ACTIVE) {
    if (dependencies_out && !edgeData_out && has_edge_data(stream))
      result = CUDA_ERROR_LOSSY_QUERY;
    if (id_out)
      *id_out = stream->capture->id;
    if (graph_out)
      *graph_out = stream->capture->graph;
    if (dependencies_out && result == CUDA_SUCCESS)
      *dependencies_out = stream->deps;
    if (edgeData_out)
      *edgeData_out = stream->edges;
    if (numDependencies_out)
      *numDependencies_out = stream->ndeps;
  }
  return host_unlock_with(result);
}


CUresult host_cuStreamUpdateCaptureDependencies(
    CUstream hStream, CUgraphNode *dependencies,
    const CUgraphEdgeData *dependencyData, size_t numDependencies,
    unsigned int flags) {
  HOST_TRY(host_check_stream(hStream));
  if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
    return CUDA_ERROR_INVALID_VALUE;
  CUresult result = CUDA_SUCCESS;
  host_lock();
  CUstream stream = host_stream_resolve(hStream);
  host_capture *capture = stream ? stream->capture : NULL;
  if (!capture)
    result = CUDA_ERROR_ILLEGAL_STATE;
  else if (capture->invalid)
    result = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  else
    result = host_nodes_check(capture->graph, dependencies, dependencyData,
                              numDependencies);
  if (result == CUDA_SUCCESS)
    result = host_graph_capture_deps(
        stream, dependencies, dependencyData, numDependencies,
        flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  return host_unlock_with(result);
}


CUresult host_cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) {
  HOST_TRY(host_check_opened());
  if (!mode)
    return CUDA_ERROR_INVALID_VALUE;
  *mode = host_capture_exchange_mode(*mode);
  return CUDA_SUCCESS;
}
