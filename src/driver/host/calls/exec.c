/* The driver's calls that make executables, launch, change and destroy
   them. */
#include "driver/host/calls/calls.h"
#include "driver/host/graph/exec.h"

/* What cuGraphExecGetFlags tells of them; they exclude each other. */
#define KEPT_FLAGS                                   \
  (CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH | \
   CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH)

#define KNOWN_FLAGS                                  \
  (KEPT_FLAGS | CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD | \
   CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)


static bool exec_is_live(CUgraphExec exec) {
  return host_handle_live(HOST_HANDLE_EXEC, exec);
}


static CUresult flags_check(cuuint64_t flags) {
  return (flags & ~(cuuint64_t)KNOWN_FLAGS) != 0 ||
                 (flags & KEPT_FLAGS) == KEPT_FLAGS
             ? CUDA_ERROR_INVALID_VALUE
             : CUDA_SUCCESS;
}


CUresult host_cuGraphInstantiate(CUgraphExec *phGraphExec, CUgraph hGraph,
                                 unsigned long long flags) {
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {.flags = flags};
  if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) {
    HOST_TRY(host_check());
    return CUDA_ERROR_INVALID_VALUE; /* there is no stream to upload in */
  }
  return host_cuGraphInstantiateWithParams(phGraphExec, hGraph, &params);
}


CUresult host_cuGraphInstantiateWithParams(
    CUgraphExec *phGraphExec, CUgraph hGraph,
    CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
  HOST_TRY(host_check());
  if (!phGraphExec || !instantiateParams)
    return CUDA_ERROR_INVALID_VALUE;
  CUDA_GRAPH_INSTANTIATE_PARAMS *params = instantiateParams;
  params->hErrNode_out = NULL;
  params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
  HOST_TRY(flags_check(params->flags));
  CUgraphNode error = NULL;
  CUgraphInstantiateResult why = CUDA_GRAPH_INSTANTIATE_ERROR;
  host_lock();
  CUresult result =
      host_exec_instantiate(phGraphExec, hGraph, params->flags, &error, &why);
  if (result == CUDA_SUCCESS &&
      (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0) {
    result = host_exec_upload(*phGraphExec);
    if (result != CUDA_SUCCESS)
      host_exec_destroy(*phGraphExec);
  }
  host_unlock();
  params->hErrNode_out = result == CUDA_SUCCESS ? NULL : error;
  params->result_out =
      result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : why;
  return result;
}


CUresult host_cuGraphExecDestroy(CUgraphExec hGraphExec) {
  HOST_TRY(host_check_process());
  host_lock();
  CUresult result = exec_is_live(hGraphExec) ? host_capture_unsafe()
                                             : CUDA_ERROR_INVALID_VALUE;
  if (result == CUDA_SUCCESS)
    host_exec_destroy(hGraphExec);
  return host_unlock_with(result);
}


/* What launches and uploads ask of both; a capture that hears of either is
   broken. */
static CUresult exec_check_stream(CUgraphExec exec, CUstream stream) {
  if (!exec_is_live(exec))
    return CUDA_ERROR_INVALID_VALUE;
  if (!stream)
    return CUDA_ERROR_INVALID_HANDLE;
  if (!stream->capture)
    return CUDA_SUCCESS;
  host_capture_break(stream);
  return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}


CUresult host_cuGraphLaunch(CUgraphExec hGraphExec, CUstream hStream) {
  HOST_TRY(host_check_callback_stream(hStream));
  host_fence *full = NULL;
  host_lock();
  CUstream stream = host_stream_resolve(hStream);
  CUresult result = exec_check_stream(hGraphExec, stream);
  if (result == CUDA_SUCCESS && stream == host_stream_resolve(CU_STREAM_LEGACY))
    result = host_capture_legacy();
  if (result == CUDA_SUCCESS)
    result = host_exec_launch(hGraphExec, stream, &full);
  host_stream_unlock(full);
  return result;
}


CUresult host_cuGraphUpload(CUgraphExec hGraphExec, CUstream hStream) {
  HOST_TRY(host_check_callback_stream(hStream));
  host_lock();
  CUresult result = exec_check_stream(hGraphExec, host_stream_resolve(hStream));
  if (result == CUDA_SUCCESS)
    result = host_exec_upload(hGraphExec);
  return host_unlock_with(result);
}


CUresult host_cuGraphExecGetFlags(CUgraphExec hGraphExec, cuuint64_t *flags) {
  HOST_TRY(host_check_process());
  CUresult result = CUDA_SUCCESS;
  host_lock();
  if (!flags || !exec_is_live(hGraphExec))
    result = CUDA_ERROR_INVALID_VALUE;
  else
    *flags = hGraphExec->flags & KEPT_FLAGS;
  return host_unlock_with(result);
}


CUresult host_cuGraphExecNodeSetParams(CUgraphExec hGraphExec,
                                       CUgraphNode hNode,
                                       CUgraphNodeParams *nodeParams) {
  HOST_TRY(host_check_object());
  if (!nodeParams)
    return CUDA_ERROR_INVALID_VALUE;
  host_lock();
  return host_unlock_with(host_exec_set_params(hGraphExec, hNode, nodeParams));
}


CUresult
host_cuGraphExecKernelNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                    const CUDA_KERNEL_NODE_PARAMS *nodeParams) {
  if (!nodeParams)
    return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};
  params.kernel = *nodeParams;
  return host_cuGraphExecNodeSetParams(hGraphExec, hNode, &params);
}


CUresult
host_cuGraphExecMemsetNodeSetParams(CUgraphExec hGraphExec, CUgraphNode hNode,
                                    const CUDA_MEMSET_NODE_PARAMS *memsetParams,
                                    CUcontext ctx) {
  if (!memsetParams)
    return CUDA_ERROR_INVALID_VALUE;
  CUgraphNodeParams params = host_node_memset_params(memsetParams, ctx);
  return host_cuGraphExecNodeSetParams(hGraphExec, hNode, &params);
}


CUresult host_cuGraphNodeSetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                    unsigned int isEnabled) {
  HOST_TRY(host_check_process());
  host_lock();
  return host_unlock_with(host_exec_enable(hGraphExec, hNode, isEnabled != 0));
}


CUresult host_cuGraphNodeGetEnabled(CUgraphExec hGraphExec, CUgraphNode hNode,
                                    unsigned int *isEnabled) {
  HOST_TRY(host_check_process());
  if (!isEnabled)
    return CUDA_ERROR_INVALID_VALUE;
  bool enabled;
  host_lock();
  CUresult result = host_exec_is_enabled(hGraphExec, hNode, &enabled);
  host_unlock();
  if (result == CUDA_SUCCESS)
    *isEnabled = enabled;
  return result;
}


CUresult host_cuGraphExecUpdate(CUgraphExec hGraphExec, CUgraph hGraph,
                                CUgraphExecUpdateResultInfo *resultInfo) {
  HOST_TRY(host_check_process());
  CUgraphExecUpdateResultInfo unread;
  if (!resultInfo)
    resultInfo = &unread;
  *resultInfo =
      (CUgraphExecUpdateResultInfo){.result = CU_GRAPH_EXEC_UPDATE_SUCCESS};
  CUresult result = CUDA_ERROR_INVALID_VALUE;
  host_lock();
  if (exec_is_live(hGraphExec) && host_graph_is_live(hGraph))
    result = host_exec_update(hGraphExec, hGraph, resultInfo);
  else
    resultInfo->result = CU_GRAPH_EXEC_UPDATE_ERROR;
  return host_unlock_with(result);
}
