/* What a user of torch.cuda.CUDAGraph relies on and that takes the driver's
   own calls to show: modes, edits to the template, nodes of others. */
#include "cgraphlua.h"
#include "driver/table.h"
#include "tap.h"

#include <string.h>

enum { N = 256 };

static cgl_context *context;
static const cgl_driver *cu;
static cgl_stream *stream;
static cgl_buffer *buffer;
static float host[N];


static float first(void) {
  cgl_status status = cgl_buffer_download(buffer, stream, 0, host, sizeof host);
  return status || host[0] != host[N - 1] ? -1 : host[0];
}


static void fill(float value) {
  cgl_buffer_fill(buffer, stream, &value);
}


/* Sets the buffer to the float with these bits. */
static CUgraphNodeParams memset_params(const cgl_buffer *target,
                                       unsigned bits) {
  CUgraphNodeParams params;
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_MEMSET;
  params.memset.dst = cgl_buffer_address(target);
  params.memset.value = bits;
  params.memset.elementSize = 4;
  params.memset.width = N;
  params.memset.height = 1;
  cu->cuCtxGetCurrent(&params.memset.ctx);
  return params;
}


/* ---- modes ---- */

static CUresult others_answer;


static void *allocate(void *unused) {
  (void)unused;
  CUdeviceptr address = 0;
  cgl_buffer *own = NULL;
  cgl_stream *mine = NULL;
  /* Makes the context current here. */
  if (cgl_stream_create(context, 0, &mine) ||
      cgl_buffer_create(mine, NULL, CGL_TYPE_float, N, &own)) {
    others_answer = CUDA_ERROR_UNKNOWN;
    return NULL;
  }
  others_answer = cu->cuMemAlloc(&address, 4096);
  if (!others_answer)
    cu->cuMemFree(address);
  cgl_buffer_release(own);
  cgl_stream_release(mine);
  return NULL;
}


static cgl_status capture_beside_another_thread(cgl_capture_mode mode) {
  cgl_graph_desc desc = {.capture_mode = mode};
  cgl_graph *graph = NULL;
  cgl_graph_create(context, &desc, &graph);
  cgl_status status = cgl_graph_capture_begin(graph, stream);
  fill(1);
  pthread_t thread;
  pthread_create(&thread, NULL, allocate, NULL);
  pthread_join(thread, NULL);
  if (!status)
    status = cgl_graph_capture_end(graph);
  cgl_graph_release(graph);
  return status;
}


static void test_modes(void) {
  cgl_status status = capture_beside_another_thread(CGL_CAPTURE_DEFAULT);
  tap_ok(!status && !others_answer,
         "in the default mode another thread's allocation breaks no capture");
  status = capture_beside_another_thread(CGL_CAPTURE_GLOBAL);
  tap_ok(status == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED &&
             others_answer == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         "in the global mode it does");
  tap_ok(strstr(cgl_last_error()->message, "outside cgraphlua") != NULL,
         "and the end says that the call was none of ours: %s",
         cgl_last_error()->message);
}


/* ---- the template ---- */

static void test_edits(void) {
  cgl_graph_desc desc = {.keep_graph = true};
  cgl_graph *graph;
  cgl_graph_create(context, &desc, &graph);
  cgl_graph_capture_begin(graph, stream);
  fill(1);
  cgl_status status = cgl_graph_capture_end(graph);
  if (!status)
    status = cgl_graph_replay(graph, stream, 1);
  tap_ok(!status && first() == 1, "a kept template runs as it was captured");
  void *raw = NULL, *before = NULL, *after = NULL;
  status = cgl_graph_raw_graph(graph, &raw);
  CUgraphNode captured = NULL, added;
  size_t count = 1;
  CUresult result = cu->cuGraphGetNodes(raw, &captured, &count);
  CUgraphNodeParams params = memset_params(buffer, 0x40a00000u); /* 5 */
  if (!result)
    result = cu->cuGraphAddNode(&added, raw, &captured, NULL, 1, &params);
  cgl_graph_replay(graph, stream, 1);
  tap_ok(!status && !result && first() == 1,
         "an edit does not reach the executable that is there");
  cgl_graph_raw_exec(graph, &before);
  status = cgl_graph_instantiate(graph);
  cgl_graph_raw_exec(graph, &after);
  tap_ok(!status && before && after && before != after,
         "a second instantiate makes a fresh executable");
  cgl_graph_replay(graph, stream, 1);
  tap_ok(first() == 5, "which shows edits made to the raw template");
  CUstream handle = cgl_stream_handle(stream);
  fill(0);
  tap_ok(!cu->cuGraphLaunch(after, handle) && first() == 5,
         "and the driver launches by its raw handle");
  cgl_graph_release(graph);
}


/* ---- nodes of others ---- */

static void test_allocation_nodes(void) {
  cgl_graph *graph;
  CUdeviceptr address = 0;
  cgl_graph_create(context, NULL, &graph);
  cgl_graph_capture_begin(graph, stream);
  fill(2);
  CUresult result =
      cu->cuMemAllocAsync(&address, 4096, cgl_stream_handle(stream));
  cgl_status status = cgl_graph_capture_end(graph);
  fill(0);
  if (!status)
    status = cgl_graph_replay(graph, stream, 3);
  tap_ok(!result && !status && first() == 2,
         "a graph that allocates and never frees is replayed again and again");
  cgl_graph_release(graph);
}


/* Adds an if node, whose body sets the buffer, to the capture of `stream`. */
static CUresult add_condition(bool value) {
  CUstream handle = cgl_stream_handle(stream);
  CUstreamCaptureStatus status;
  cuuint64_t id;
  CUgraph graph;
  const CUgraphNode *nodes;
  const CUgraphEdgeData *edges;
  size_t count;
  CUgraphNode node, inner;
  CUgraphNodeParams params;
  memset(&params, 0, sizeof params);
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.type = CU_GRAPH_COND_TYPE_IF;
  params.conditional.size = 1;
  cu->cuCtxGetCurrent(&params.conditional.ctx);
  CUresult result = cu->cuStreamGetCaptureInfo(handle, &status, &id, &graph,
                                               &nodes, &edges, &count);
  if (!result)
    result = cu->cuGraphConditionalHandleCreate(
        &params.conditional.handle, graph, params.conditional.ctx, value, 1);
  if (!result)
    result = cu->cuGraphAddNode(&node, graph, nodes, edges, count, &params);
  if (result)
    return result;
  CUgraphNodeParams set = memset_params(buffer, 0x40e00000u); /* 7 */
  result = cu->cuGraphAddNode(&inner, params.conditional.phGraph_out[0], NULL,
                              NULL, 0, &set);
  if (!result)
    result = cu->cuStreamUpdateCaptureDependencies(
        handle, &node, NULL, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  return result;
}


static void test_conditional_nodes(void) {
  for (int value = 0; value < 2; value++) {
    cgl_graph *graph;
    cgl_graph_create(context, NULL, &graph);
    cgl_graph_capture_begin(graph, stream);
    fill(3);
    CUresult result = add_condition(value);
    cgl_status status = cgl_graph_capture_end(graph);
    cgl_node_info info = {.kind = ""};
    size_t count = 0;
    cgl_graph_node_count(graph, &count);
    cgl_graph_node(graph, 1, &info);
    if (!status)
      status = cgl_graph_replay(graph, stream, 2);
    tap_ok(!result && !status && count == 2 && !strcmp(info.kind, "foreign") &&
               first() == (value ? 7 : 3),
           "a conditional node that was added to a capture runs with the graph "
           "(%d)",
           value);
    cgl_graph_release(graph);
  }
}


int main(void) {
  if (cgl_context_open(NULL, &context) ||
      cgl_stream_create(context, 0, &stream) ||
      cgl_buffer_create(stream, NULL, CGL_TYPE_float, N, &buffer)) {
    tap_ok(false, "set-up: %s", cgl_last_error()->message);
    return tap_done();
  }
  cu = cgl_context_driver(context);
  test_modes();
  test_edits();
  test_allocation_nodes();
  test_conditional_nodes();
  cgl_buffer_release(buffer);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is alive at the end (%lld)",
         (long long)cgl_live("all"));
  return tap_done();
}
