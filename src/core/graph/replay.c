/* Replays: launched, or captured into another graph. */
#include "core/graph/build.h"


/* ---- into a capture ---- */

/* The driver refuses a launch into a capture: the template becomes a child
   graph node, whose body is the graph's recording. */
static cgl_status child_issue(cgl_graph *graph, cgl_stream *stream,
                              const char *operation) {
  cgl_issue issue;
  cgl_status status = CGL_OK;
  if (graph->draw_list)
    status = cgl_draws_enter_child(graph->draw_list, stream, operation);
  if (!status)
    status = cgl_issue_begin(&issue, stream, &graph->object, operation,
                             &(cgl_room){.bodies = 1});
  if (!status)
    status = cgl_share_check_child(cgl_share_of(graph->recording), stream,
                                   operation);
  if (status)
    return status;
  CUgraphNode node;
  status = cgl_issue_child(&issue, graph->template->graph, &node);
  if (status || !stream->capture)
    return status;
  const cgl_note note = {.kind = CGL_OP_GRAPH, .name = "graph:replay"};
  cgl_issue_body(&issue, graph->recording);
  cgl_issue_end(&issue, &note);
  if (graph->draw_list)
    cgl_draws_leave_child(graph->draw_list, stream, node);
  return CGL_OK;
}


/* The template can become a node, and is what the recording is. */
static cgl_status child_prepare(cgl_graph *graph, const char *operation) {
  if (cgl_record_noff(graph->recording)) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "a graph with nodes that are switched off cannot be captured into "
             "another one, where all of them would run");
    return cgl_fail_hint("switch them on first, with graph:set_enabled");
  }
  if (cgl_record_has(graph->recording, CGL_OP_CONDITIONAL)) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "a graph with conditional nodes cannot be captured into another "
             "one: the driver copies a graph to make a node of it, and copies "
             "no conditional node");
    return cgl_fail_hint("call the function that was captured, and the nodes "
                         "become the other graph's own");
  }
  cgl_status status = cgl_graph_refresh(graph, operation);
  return status ? status
                : cgl_share_check_memory(cgl_share_of(graph->recording),
                                         operation);
}


static cgl_status graph_capture_into(cgl_graph *graph, cgl_stream *stream,
                                     uint64_t count, const char *operation) {
  cgl_status status = child_prepare(graph, operation);
  if (!status && cgl_call_is_on_host(graph->recording))
    status = cgl_call_check_host(stream, operation);
  /* A body does not change: captures of several threads may read it. */
  if (!status)
    status = cgl_graph_learn(graph, operation);
  if (!status)
    status = cgl_graph_sum_up(graph, operation);
  size_t n;
  if (!status && !cgl_record_footprint(graph->recording, &n))
    status = cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                      "no memory to note what the graph touches");
  for (uint64_t i = 0; i < count && !status; i++)
    status = child_issue(graph, stream, operation);
  return status;
}


cgl_status cgl_graph_add_to(cgl_graph *graph, void *parent, void *const *after,
                            size_t n, void **node) {
  static const char operation[] = "graph:add_to";
  const cgl_driver *driver = graph->object.context->driver;
  CUgraphNode made = NULL;
  cgl_status status = cgl_context_enter(graph->object.context, operation);
  if (!status)
    status = cgl_graph_check_captured(graph, operation);
  if (!status)
    status = cgl_graph_note_params(graph, operation);
  if (!status)
    status = child_prepare(graph, operation);
  for (const cgl_draw *d = graph->draw_list; d && !status; d = d->next)
    if (d->used) {
      cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
               "the graph draws random numbers, and nothing in the other graph "
               "would count them");
      status = cgl_fail_hint("replay it into a capture of cgraphlua's");
    }
  if (!status)
    status =
        cgl_fail_driver(graph->object.context,
                        driver->cuGraphAddChildGraphNode(
                            &made, (CUgraph)parent, (const CUgraphNode *)after,
                            n, graph->template->graph),
                        operation, "cuGraphAddChildGraphNode");
  *node = made;
  return status;
}


/* ---- launches ---- */

cgl_status cgl_graph_prepare(cgl_graph *graph, cgl_stream *stream,
                             const char *operation) {
  cgl_status status = cgl_context_enter(graph->object.context, operation);
  if (!status && graph->params)
    status = cgl_capture_has(stream) ? cgl_graph_note_params(graph, operation)
                                     : cgl_graph_take_params(graph, operation);
  if (status || graph->exec)
    return status;
  status = cgl_graph_check_captured(graph, operation);
  if (status || cgl_capture_has(stream))
    return status;
  return cgl_graph_make_executable(graph, operation);
}


cgl_status cgl_graph_sum_up(cgl_graph *graph, const char *operation) {
  return cgl_record_is_outdated(graph->recording)
             ? cgl_share_make(graph->recording, &graph->pool->sharing,
                              &graph->capture.underway, operation)
             : CGL_OK;
}


static cgl_replay graph_replay_of(const cgl_graph *graph) {
  return (cgl_replay){cgl_share_of(graph->recording), graph->exec_number,
                      graph->options.unchecked};
}


/* Before a launch beside other graphs, or with draws. */
static cgl_status graph_order(cgl_graph *graph, cgl_stream *stream,
                              uint64_t count, bool ordered, cgl_replay *replay,
                              const char *operation) {
  cgl_status status = CGL_OK;
  if (graph->draws)
    status = cgl_draws_ready(graph->draw_list, stream, operation);
  if (!status && ordered)
    status = cgl_graph_sum_up(graph, operation);
  if (status || !ordered)
    return status;
  *replay = graph_replay_of(graph);
  return cgl_share_begin(replay, stream, count, operation);
}


static inline cgl_status graph_launch(cgl_graph *graph, cgl_stream *stream,
                                      uint64_t count, const char *operation) {
  cgl_context *context = graph->object.context;
  const cgl_driver *driver = context->driver;
  const CUgraphExec exec = graph->exec;
  const bool ordered =
      graph->grouped ||
      atomic_load_explicit(&graph->pool->sharing.shared, memory_order_relaxed);
  const cgl_executable *copies = NULL;
  const cgl_unroll *loops = &graph->unroll;
  const bool unroll =
      loops->executable || loops->number || count >= loops->least;
  if (unroll) {
    cgl_status status =
        cgl_graph_unroll_begin(graph, stream, count, operation, &copies);
    if (status)
      return status;
  }
  cgl_replay replay;
  if (graph->draws || ordered) {
    cgl_status status =
        graph_order(graph, stream, count, ordered, &replay, operation);
    if (status)
      return status;
  }
  CUresult result = CUDA_SUCCESS;
  uint64_t launched = 0;
  if (copies)
    result = cgl_graph_unroll_launch(graph, stream->handle, copies, count,
                                     &launched);
  for (; !result && launched < count; launched += !result)
    result = cgl_graph_launch_next(driver, exec, stream->handle, launched);
  cgl_context_note_work(context);
  if (unroll || (loops->least != UINT64_MAX && loops->clock != stream->clock))
    cgl_graph_unroll_end(graph, stream, copies, count, launched);
  if (ordered)
    cgl_share_end(&replay, stream, launched);
  else if (launched && graph->stamped != stream->clock) {
    cgl_graph_sum_up(graph, operation);
    replay = graph_replay_of(graph);
    cgl_share_stamp(&replay, stream);
    graph->stamped = stream->clock;
  }
  cgl_launches_add(graph->label);
  /* The pool must not give memory back before the device was waited for. */
  cgl_sharing_note_use(&graph->pool->sharing, cgl_context_next_wait(context));
  return result ? cgl_fail_driver(context, result, operation, "cuGraphLaunch")
                : CGL_OK;
}


cgl_status cgl_graph_launch(cgl_graph *graph, cgl_stream *stream,
                            uint64_t count, const char *operation) {
  if (cgl_capture_has(stream))
    return graph_capture_into(graph, stream, count, operation);
  cgl_status status = CGL_OK;
  if (graph->attend & CGL_ATTEND_OLDER)
    status = cgl_sharing_order_executable(&graph->pool->sharing, stream,
                                          graph->exec_number, operation);
  if (!status)
    status = graph_launch(graph, stream, count, operation);
  if (!status && count)
    graph->attend &= ~(unsigned)CGL_ATTEND_OLDER;
  return status;
}


cgl_status cgl_graph_replay(cgl_graph *graph, cgl_stream *stream,
                            uint64_t count) {
  static const char operation[] = "graph:replay";
  cgl_context *context = graph->object.context;
  /* What nearly every replay is. */
  if (graph->exec && !graph->attend &&
      !atomic_load_explicit(&graph->param_changes, memory_order_relaxed) &&
      stream->owned && !stream->capture && stream->object.context == context &&
      cgl_context_current == context->serial)
    return graph_launch(graph, stream, count, operation);
  if (stream->object.context != context)
    return cgl_object_check_device(&graph->object, &stream->object, operation);
  cgl_status status = cgl_graph_prepare(graph, stream, operation);
  if (status)
    return status;
  if (graph->attend)
    return cgl_hooks_replay(graph, stream, count, operation);
  return cgl_graph_launch(graph, stream, count, operation);
}
