/* What memory the nodes of a graph use after a change, and what is kept. */
#include "core/graph/change.h"
#include "core/memory/memory.h"

/* What a drop let go of, and some capture may still keep. */
#define LET_GO UINT64_MAX


/* What the graph has to keep for the argument; NULL: nothing. */
static cgl_object *object_of(const cgl_graph *graph, const cgl_arg *arg) {
  if (arg->kind == CGL_ARG_PINNED)
    return &arg->pinned->object;
  if (arg->kind != CGL_ARG_BUFFER)
    return NULL;
  cgl_buffer *root = arg->buffer->base ? arg->buffer->base : arg->buffer;
  return cgl_buffer_is_planned(root, graph) ? NULL : &root->object;
}


bool cgl_exchange_is_planned(const cgl_graph *graph, const cgl_arg *arg) {
  return arg->kind == CGL_ARG_BUFFER && !object_of(graph, arg);
}


static bool is_kept(const cgl_graph *graph, cgl_object *object) {
  const cgl_recording *recording = &graph->recording;
  if (atomic_load_explicit(&object->retained_by, memory_order_relaxed) ==
      graph->serial)
    return true;
  for (size_t i = 0; i < recording->nkept; i++)
    if (recording->kept[i] == object)
      return true;
  return false;
}


void cgl_exchange_want(cgl_exchange *exchange, const cgl_arg *arg) {
  cgl_object *object = object_of(exchange->graph, arg);
  exchange->nobjects += object && !is_kept(exchange->graph, object);
}


cgl_status cgl_exchange_reserve(const cgl_exchange *exchange, size_t ranges,
                                const char *operation) {
  if ((!ranges && !exchange->nobjects) ||
      cgl_recording_reserve(&exchange->graph->recording, ranges, 0,
                            exchange->nobjects))
    return CGL_OK;
  return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                  "no memory to note what the node uses");
}


void cgl_exchange_keep(cgl_exchange *exchange, const cgl_arg *arg) {
  cgl_graph *graph = exchange->graph;
  cgl_object *object = object_of(graph, arg);
  if (!object || is_kept(graph, object))
    return;
  if (object->kind == CGL_OBJECT_buffer)
    atomic_store(&((cgl_buffer *)object)->wide, true);
  atomic_store_explicit(&object->retained_by, graph->serial,
                        memory_order_relaxed);
  cgl_object_retain(object);
  graph->recording.kept[graph->recording.nkept++] = object;
  graph->inputs_seen = 0;
}


void cgl_exchange_replace(cgl_exchange *exchange, const cgl_range *range) {
  exchange->replaced[exchange->nreplaced++] = *range;
}


/* The memory of a kept object; false for one of another kind. */
static bool memory_of(cgl_object *object, cgl_range *range) {
  cgl_arg arg = {.kind = CGL_ARG_SAME};
  if (object->kind == CGL_OBJECT_buffer) {
    arg.kind = CGL_ARG_BUFFER;
    arg.buffer = (cgl_buffer *)object;
  } else if (object->kind == CGL_OBJECT_pinned) {
    arg.kind = CGL_ARG_PINNED;
    arg.pinned = (cgl_pinned *)object;
  }
  return cgl_arg_reaches(&arg, range);
}


static bool overlaps_any(const cgl_range *range, const cgl_range *ranges,
                         size_t n) {
  for (size_t i = 0; i < n; i++)
    if (cgl_range_meets(&ranges[i], range->address, range->bytes))
      return true;
  return false;
}


static void let_go(const cgl_graph *graph, cgl_object *object) {
  uint64_t serial = graph->serial;
  atomic_compare_exchange_strong(&object->retained_by, &serial, LET_GO);
  cgl_object_release(object);
}


void cgl_exchange_end(cgl_exchange *exchange) {
  cgl_recording *recording = &exchange->graph->recording;
  size_t kept = 0;
  if (!exchange->nreplaced)
    return;
  for (size_t i = 0; i < recording->nkept; i++) {
    cgl_object *object = recording->kept[i];
    cgl_range memory;
    if (memory_of(object, &memory) &&
        overlaps_any(&memory, exchange->replaced, exchange->nreplaced) &&
        !overlaps_any(&memory, recording->ranges, recording->nranges))
      let_go(exchange->graph, object);
    else
      recording->kept[kept++] = object;
  }
  recording->nkept = kept;
}
