/* Graphs as objects: made, instantiated, reset; their templates and
   executables. */
#include "core/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>


/* ---- templates ---- */

static void template_destroy(cgl_object *object) {
  cgl_template *template = (cgl_template *)object;
  cgl_context *context = object->context;
  if (template->graph && !cgl_context_enter(context, "graph"))
    context->driver->cuGraphDestroy(template->graph);
  cgl_hooks_destroy(template->object.context, &template->destroys);
  cgl_pool_capture_gone(template->pool);
  cgl_pool_release(template->pool);
  free(template);
}


static bool template_is_reclaimable(const cgl_object *object) {
  return !((const cgl_template *)object)->destroys.live;
}


static const cgl_object_kind template_kind = {
    .number = CGL_OBJECT_INTERNAL,
    .destroy = template_destroy,
    .is_reclaimable = template_is_reclaimable,
};


cgl_template *cgl_graph_new_template(cgl_context *context, cgl_pool *pool) {
  cgl_template *template = calloc(1, sizeof *template);
  if (!template)
    return NULL;
  cgl_object_init(&template->object, &template_kind, context);
  template->pool = cgl_pool_retain(pool);
  cgl_pool_capture_held(pool);
  return template;
}


/* ---- executables ---- */

static void executable_destroy(cgl_object *object) {
  cgl_executable *executable = (cgl_executable *)object;
  cgl_context *context = object->context;
  if (executable->exec && !cgl_context_enter(context, "graph"))
    context->driver->cuGraphExecDestroy(executable->exec);
  atomic_fetch_sub(&executable->pool->executables, executable->bytes);
  cgl_pool_release(executable->pool);
  free(executable);
}


static bool executable_is_reclaimable(const cgl_object *object) {
  (void)object;
  return true;
}


static const cgl_object_kind executable_kind = {
    .number = CGL_OBJECT_INTERNAL,
    .destroy = executable_destroy,
    .is_reclaimable = executable_is_reclaimable,
};


static void graph_set_executable(cgl_graph *graph, cgl_executable *executable) {
  cgl_executable *before = graph->executable;
  graph->executable = executable;
  graph->exec = executable ? executable->exec : NULL;
  graph->attend &= ~(unsigned)CGL_ATTEND_CALLS;
  free(graph->calls.list);
  graph->calls = (cgl_calls_told){NULL, 0};
  cgl_graph_unroll_drop(graph);
  cgl_clock_release(graph->unroll.clock);
  graph->unroll.clock = NULL;
  graph->unroll.number = 0;
  if (before)
    cgl_object_release(&before->object);
}


/* ---- graphs ---- */

void cgl_graph_drop_capture(cgl_graph *graph) {
  graph_set_executable(graph, NULL);
  cgl_graph_unwatch_params(graph);
  graph->unroll.shown = false;
  graph->template = NULL;
  cgl_draws_free(graph->draw_list);
  graph->draw_list = NULL;
  if (graph->bound)
    cgl_object_release(graph->bound);
  graph->bound = NULL;
  cgl_record_release(graph->recording);
  graph->recording = NULL;
  graph->stamped = NULL;
  graph->state = CGL_GRAPH_EMPTY;
}


/* The hooks of CGL_HOOK_DESTROY are called when the template ends. */
static void graph_detach_capture(cgl_graph *graph) {
  if (graph->template) {
    graph->template->destroys = graph->destroys;
    graph->destroys = (cgl_hooks){.count = 0};
  }
  cgl_graph_drop_capture(graph);
}


static void graph_abandon(cgl_object *object) {
  /* A graph dropped in mid-capture would keep its own teardown waiting. */
  cgl_graph_capture_abandon((cgl_graph *)object);
}


static void graph_destroy(cgl_object *object) {
  cgl_graph *graph = (cgl_graph *)object;
  graph_detach_capture(graph);
  cgl_hooks_destroy(graph->object.context, &graph->destroys);
  cgl_hooks_free(&graph->hooks);
  cgl_stream_release(graph->capture.origin);
  cgl_pool_release(graph->pool);
  free(graph);
}


static bool graph_is_reclaimable(const cgl_object *object) {
  const cgl_graph *graph = (const cgl_graph *)object;
  return !graph->hooks.live && !graph->destroys.live;
}


CGL_OBJECT_KIND(graph, .destroy = graph_destroy, .abandon = graph_abandon,
                .is_reclaimable = graph_is_reclaimable)


static cgl_status desc_check(cgl_context *context, const cgl_graph_desc *desc,
                             const char *operation) {
  if ((unsigned)desc->capture_mode > CGL_CAPTURE_RELAXED ||
      (unsigned)desc->annotations > CGL_ANNOTATIONS_NVTX ||
      (unsigned)desc->order > CGL_ORDER_DATA) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "capture mode %d, annotations %d or order %d is not a value of "
             "its enum",
             (int)desc->capture_mode, (int)desc->annotations, (int)desc->order);
    return cgl_fail_hint("start from an empty description: cgl_graph_desc d = "
                         "{0}");
  }
  if (desc->annotations == CGL_ANNOTATIONS_NVTX && !cgl_nvtx_available()) {
    cgl_fail(CGL_ERROR_NOT_FOUND, operation,
             "this build has no NVTX ranges: its configure found no "
             "nvtx3/nvToolsExt.h");
    return cgl_fail_hint("install the CUDA toolkit's headers and configure "
                         "again, or annotate without nvtx");
  }
  if (!desc->pool || desc->pool->object.context == context)
    return desc->pool ? cgl_pool_check_made(desc->pool, operation) : CGL_OK;
  cgl_fail(CGL_ERROR_WRONG_DEVICE, operation,
           "the pool is on device %s, the graph on %s",
           desc->pool->object.context->info.device, context->info.device);
  return cgl_fail_hint("make the pool on the graph's device");
}


static void graph_set_options(cgl_graph *graph, const cgl_graph_desc *desc) {
  graph->options = *desc;
  graph->pool = cgl_pool_retain(desc->pool);
  graph->attend &= CGL_ATTEND_HOOKS | CGL_ATTEND_OLDER | CGL_ATTEND_PARAMS;
  if (desc->check_input_liveness)
    graph->attend |= CGL_ATTEND_INPUTS;
  if (desc->annotations == CGL_ANNOTATIONS_NVTX)
    graph->attend |= CGL_ATTEND_RANGES;
  cgl_graph_unroll_drop(graph);
}


cgl_status cgl_graph_create(cgl_context *context, const cgl_graph_desc *desc,
                            cgl_graph **out) {
  static const cgl_graph_desc defaults;
  static const char operation[] = "graph";
  desc = desc ? desc : &defaults;
  cgl_status status = desc_check(context, desc, operation);
  if (status)
    return status;
  cgl_graph *graph = calloc(1, sizeof *graph);
  if (!graph)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a graph");
  graph_set_options(graph, desc);
  cgl_object_init(&graph->object, &graph_kind, context);
  *out = graph;
  return CGL_OK;
}


void cgl_graph_get_desc(const cgl_graph *graph, cgl_graph_desc *desc) {
  *desc = graph->options;
}


cgl_status cgl_graph_set_desc(cgl_graph *graph, const cgl_graph_desc *desc) {
  static const char operation[] = "graph:options";
  cgl_status status = cgl_graph_check_empty(graph, operation);
  if (!status)
    status = desc_check(graph->object.context, desc, operation);
  if (status)
    return status;
  cgl_pool *before = graph->pool;
  graph_set_options(graph, desc);
  cgl_pool_release(before);
  return CGL_OK;
}


bool cgl_graph_is_capturing(const cgl_graph *graph) {
  return graph->state == CGL_GRAPH_CAPTURING;
}


cgl_stream *cgl_graph_capturing_stream(const cgl_graph *graph) {
  return cgl_graph_is_capturing(graph) ? graph->capture.origin : NULL;
}


cgl_graph *cgl_stream_capturing_graph(const cgl_stream *stream) {
  while (stream->capture && stream->capture->around)
    stream = stream->capture->around;
  char *capture = (char *)stream->capture;
  return capture ? (cgl_graph *)(capture - offsetof(cgl_graph, capture)) : NULL;
}


cgl_context *cgl_graph_context(const cgl_graph *graph) {
  return graph->object.context;
}


cgl_status cgl_graph_check_empty(const cgl_graph *graph,
                                 const char *operation) {
  if (graph->state == CGL_GRAPH_EMPTY)
    return CGL_OK;
  const bool begun = graph->state == CGL_GRAPH_CAPTURING;
  cgl_fail(CGL_ERROR_CAPTURE_STATE, operation, "the graph %s, begun at %s",
           begun ? "is capturing already" : "holds a capture already",
           cgl_site_text(graph->capture.underway.begun));
  return cgl_fail_hint(begun ? "end that capture first"
                             : "reset the graph first, or capture into a new "
                               "one");
}


cgl_status cgl_graph_check_captured(const cgl_graph *graph,
                                    const char *operation) {
  if (graph->state == CGL_GRAPH_CAPTURED)
    return CGL_OK;
  if (graph->state == CGL_GRAPH_CAPTURING) {
    cgl_fail(CGL_ERROR_NOT_CAPTURED, operation,
             "the capture that began at %s has not ended yet",
             cgl_site_text(graph->capture.underway.begun));
    return cgl_fail_hint("end the capture first");
  }
  cgl_fail(CGL_ERROR_NOT_CAPTURED, operation,
           "the graph holds no capture: it was never captured, or was reset");
  return cgl_fail_hint("capture something into the graph first");
}


/* ---- instantiating ---- */

/* What messages call a replay: the graph's first few kernels, and where they
   were launched into the capture. */
static const char *graph_label(const cgl_recording *recording) {
  char text[400] = "graph of ";
  size_t at = strlen(text);
  int named = 0;
  for (size_t i = 0; i < cgl_record_count(recording) && named < 4; i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    if (op->kind != CGL_OP_KERNEL ||
        (i && cgl_record_op(recording, i - 1)->name == op->name))
      continue;
    int n = snprintf(text + at, sizeof text - at, "%s%s (%s)",
                     named++ ? " + " : "", op->name, cgl_site_text(op->site));
    at += n > 0 ? (size_t)n : 0;
    if (at >= sizeof text)
      break;
  }
  return cgl_intern(named ? text : "graph without kernels");
}


static cgl_status template_instantiate(cgl_graph *graph, CUgraph template,
                                       const char *operation,
                                       cgl_executable *executable) {
  cgl_context *context = graph->object.context;
  const cgl_driver *driver = context->driver;
  CUDA_GRAPH_INSTANTIATE_PARAMS params = {
      CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
          CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY,
      NULL, NULL, 0};
  cgl_status status =
      cgl_fail_driver(context,
                      driver->cuGraphInstantiateWithParams(&executable->exec,
                                                           template, &params),
                      operation, "cuGraphInstantiateWithParams");
  if (status)
    return status;
  status = cgl_graph_switch_off(graph, executable->exec, operation);
  if (status)
    driver->cuGraphExecDestroy(executable->exec);
  return status;
}


cgl_status cgl_graph_new_executable(cgl_graph *graph, CUgraph template,
                                    const char *operation,
                                    cgl_executable **out) {
  static atomic_uint_fast64_t next_number = 1;
  cgl_context *context = graph->object.context;
  cgl_executable *executable = calloc(1, sizeof *executable);
  if (!executable)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory for an executable");
  size_t before = cgl_history_free_bytes(context);
  cgl_relaxed relaxed = cgl_captures_relax(context);
  cgl_status status =
      template_instantiate(graph, template, operation, executable);
  cgl_captures_unrelax(context, relaxed);
  if (status) {
    free(executable);
    return status;
  }
  size_t after = cgl_history_free_bytes(context);
  cgl_object_init(&executable->object, &executable_kind, context);
  executable->number = atomic_fetch_add(&next_number, 1);
  executable->pool = cgl_pool_retain(graph->pool);
  executable->bytes = before > after ? before - after : 0;
  atomic_fetch_add(&executable->pool->executables, executable->bytes);
  *out = executable;
  return CGL_OK;
}


/* A graph with conditional nodes has one executable at a time: the earlier one
   ends now, although a capture may be underway. */
static void graph_end_executable(cgl_graph *graph) {
  cgl_context *context = graph->object.context;
  cgl_relaxed relaxed = cgl_captures_relax(context);
  context->driver->cuGraphExecDestroy(graph->exec);
  cgl_captures_unrelax(context, relaxed);
  graph->executable->exec = NULL;
  graph_set_executable(graph, NULL);
}


cgl_status cgl_graph_make_executable(cgl_graph *graph, const char *operation) {
  cgl_executable *executable = NULL;
  cgl_calls_told calls = {NULL, 0};
  cgl_status status = cgl_graph_refresh(graph, operation);
  if (!status)
    status = cgl_call_find_told(graph->recording, &calls, operation);
  if (!status && graph->exec &&
      cgl_record_has(graph->recording, CGL_OP_CONDITIONAL))
    graph_end_executable(graph);
  if (!status)
    status = cgl_graph_new_executable(graph, graph->template->graph, operation,
                                      &executable);
  if (status) {
    free(calls.list);
    return status;
  }
  graph_set_executable(graph, executable);
  graph->calls = calls;
  cgl_graph_params_taken(graph);
  graph->attend |= (graph->exec_number ? CGL_ATTEND_OLDER : 0u) |
                   (calls.count ? CGL_ATTEND_CALLS : 0u);
  graph->stamped = NULL;
  graph->draws = graph->draw_list;
  graph->grouped = cgl_share_of(graph->recording)->nparts > 1;
  graph->exec_number = executable->number;
  graph->label = graph_label(graph->recording);
  status = cgl_hooks_run(graph, CGL_HOOK_INSTANTIATE, operation);
  if (status) {
    cgl_fail_follow(true);
    graph_set_executable(graph, NULL);
    cgl_fail_follow(false);
  } else if (!graph->exec) {
    cgl_fail(CGL_ERROR_NOT_CAPTURED, operation,
             "an instantiate hook reset the graph");
    return cgl_fail_hint("reset the graph after it was instantiated");
  }
  return status;
}


cgl_status cgl_graph_instantiate(cgl_graph *graph) {
  static const char operation[] = "graph:instantiate";
  cgl_status status = cgl_graph_check_captured(graph, operation);
  if (status)
    return status;
  if (!graph->options.keep_graph) {
    cgl_fail(CGL_ERROR_CAPTURE_STATE, operation,
             "the graph was instantiated when its capture ended, and its "
             "template is not kept");
    return cgl_fail_hint("create the graph with keep_graph = true to "
                         "instantiate by hand");
  }
  status = cgl_context_enter(graph->object.context, operation);
  return status ? status : cgl_graph_make_executable(graph, operation);
}


cgl_status cgl_graph_reset(cgl_graph *graph) {
  cgl_graph_capture_abandon(graph);
  if (graph->state == CGL_GRAPH_EMPTY) {
    cgl_hooks_destroy(graph->object.context, &graph->destroys);
    return CGL_OK;
  }
  graph_detach_capture(graph);
  cgl_stream_release(graph->capture.origin);
  graph->capture.origin = NULL;
  /* A replay in flight may still use the private pool's memory: the next
     capture gets another pool. */
  if (!graph->options.pool) {
    cgl_pool_release(graph->pool);
    graph->pool = NULL;
  }
  return CGL_OK;
}


cgl_status cgl_graph_register_generator_state(cgl_graph *graph,
                                              cgl_generator *generator) {
  static const char operation[] = "graph:register_generator_state";
  const bool capturing = graph->state == CGL_GRAPH_CAPTURING;
  cgl_draw *draw;
  cgl_status status =
      cgl_object_check_device(&graph->object, &generator->object, operation);
  return status ? status
                : cgl_draw_register(
                      capturing ? &graph->capture.draws : &graph->draw_list,
                      generator->state, capturing, operation, &draw);
}


cgl_status cgl_graph_pool(cgl_graph *graph, cgl_pool **pool) {
  if (!graph->pool || graph->state == CGL_GRAPH_EMPTY) {
    cgl_fail(CGL_ERROR_NOT_CAPTURED, "graph:pool",
             "the graph has no pool until it is captured");
    return cgl_fail_hint("capture first, or give the graph a pool");
  }
  *pool = NULL;
  cgl_status status = graph->state == CGL_GRAPH_CAPTURED
                          ? cgl_graph_sum_up(graph, "graph:pool")
                          : CGL_OK;
  if (!status)
    status = cgl_sharing_begin(&graph->pool->sharing, "graph:pool");
  if (!status)
    *pool = cgl_pool_retain(graph->pool);
  return status;
}


cgl_status cgl_graph_pool_at(cgl_graph *graph, size_t index, cgl_pool **pool) {
  *pool = NULL;
  if (!index)
    return cgl_graph_pool(graph, pool);
  cgl_object *object;
  for (size_t i = 0; graph->recording && !*pool &&
                     (object = cgl_record_kept(graph->recording, i));
       i++)
    if (object->kind == &cgl_pool_kind && !--index)
      *pool = cgl_pool_retain((cgl_pool *)object);
  return CGL_OK;
}


cgl_status cgl_graph_raw_graph(cgl_graph *graph, void **cugraph) {
  static const char operation[] = "graph:raw_cuda_graph";
  CUgraph template = graph->template ? graph->template->graph : NULL;
  if (!template || (!graph->options.keep_graph && !graph->open)) {
    cgl_fail(template ? CGL_ERROR_CAPTURE_STATE : CGL_ERROR_NOT_CAPTURED,
             operation,
             template ? "the template of this graph is not kept"
                      : "the graph holds no capture");
    return cgl_fail_hint("create the graph with keep_graph = true and capture "
                         "first");
  }
  cgl_status status = cgl_graph_refresh(graph, operation);
  if (status)
    return status;
  cgl_context_show(graph->object.context);
  graph->unroll.shown = true;
  *cugraph = template;
  return CGL_OK;
}


cgl_status cgl_graph_raw_exec(cgl_graph *graph, void **cuexec) {
  if (!graph->exec) {
    cgl_fail(CGL_ERROR_NOT_CAPTURED, "graph:raw_cuda_graph_exec",
             "the graph has not been instantiated");
    return cgl_fail_hint("instantiate or replay it first");
  }
  cgl_context_show(graph->object.context);
  graph->unroll.shown = true;
  *cuexec = graph->exec;
  return CGL_OK;
}
