/* check_input_liveness: memory that a capture uses and that was released by
   hand since.  The graph keeps it, so nothing reads what is gone; but the
   script said that it was done with it, and memory borrowed from an engine may
   be gone indeed.
   Idea: every release of memory that some capture keeps moves a number; a
   graph looks through what it keeps only when the number has moved. */
#include "core/record/record.h"
#include "core/graph/graph.h"
#include "core/graph/hooks.h"
#include "core/memory/memory.h"

#include <stdio.h>
#include <string.h>

enum { SHOWN = 5 };

static atomic_uint_fast64_t generation = 1;


static bool is_kept(const cgl_object *object) {
  return atomic_load_explicit(&object->retained_by, memory_order_relaxed);
}


/* `life` is over; of interest when captures keep `object`. */
static void end(cgl_life *life, const cgl_object *object) {
  if (is_kept(object)) {
    life->ended = cgl_site_here;
    atomic_store(&life->over, true);
    atomic_fetch_add(&generation, 1);
  } else
    atomic_store_explicit(&life->over, true, memory_order_relaxed);
}


bool cgl_buffer_is_kept(const cgl_buffer *buffer) {
  return is_kept(buffer->base ? &buffer->base->object : &buffer->object);
}


void cgl_buffer_retire(cgl_buffer *buffer) {
  cgl_buffer *root = buffer->base;
  if (!root)
    end(&buffer->life, &buffer->object);
  else if (atomic_load_explicit(&root->life.over, memory_order_relaxed))
    end(&root->life, &root->object);
}


void cgl_pinned_retire(cgl_pinned *pinned) {
  end(&pinned->life, &pinned->object);
}


void cgl_buffer_unview(cgl_buffer *root) {
  atomic_fetch_sub(&root->views, 1);
  if (atomic_load_explicit(&root->life.over, memory_order_relaxed))
    atomic_fetch_add(&generation, 1);
}


/* Whether a kept object was released by hand, and no view of it is left.  A
   module's variable lives with the module. */
static bool is_over(const cgl_object *object) {
  if (object->kind == CGL_OBJECT_pinned)
    return atomic_load(&((const cgl_pinned *)object)->life.over);
  if (object->kind != CGL_OBJECT_buffer)
    return false;
  const cgl_buffer *buffer = (const cgl_buffer *)object;
  return atomic_load(&buffer->life.over) && buffer->count && !buffer->module &&
         !atomic_load(&buffer->views);
}


/* Where the capture first used the bytes; where it began, if that is not
   known. */
static cgl_site first_use(const cgl_graph *graph, CUdeviceptr address,
                          size_t bytes) {
  const cgl_recording *recording = &graph->recording;
  for (size_t i = 0; i < recording->nops; i++) {
    const cgl_op *op = &recording->ops[i];
    for (size_t k = 0; k < op->nranges; k++)
      if (cgl_range_meets(&recording->ranges[op->ranges + k], address, bytes))
        return op->site;
  }
  return graph->begun;
}


/* "\n  float buffer of 100, created at a:1, captured at a:2, released at a:3"
 */
static void tell(const cgl_graph *graph, const cgl_object *object, char *text,
                 size_t size) {
  const bool pinned = object->kind == CGL_OBJECT_pinned;
  const cgl_pinned *p = (const cgl_pinned *)object;
  const cgl_buffer *b = (const cgl_buffer *)object;
  const cgl_type type = pinned ? p->type : b->type;
  const size_t count = pinned ? p->count : b->count;
  const cgl_life *life = pinned ? &p->life : &b->life;
  const CUdeviceptr address =
      pinned ? (CUdeviceptr)(uintptr_t)p->data : b->address;
  snprintf(
      text, size,
      "\n  %s of %zu %s, created at %s, captured at %s, released at %s",
      pinned     ? "pinned memory"
      : b->block ? "a buffer"
                 : "a borrowed buffer",
      count, cgl_type_name(type), cgl_site_text(life->made),
      cgl_site_text(first_use(graph, address, count * cgl_type_bytes(type))),
      cgl_site_text(life->ended));
}


static cgl_status refuse(const cgl_graph *graph, size_t dead,
                         const char *operation) {
  const cgl_recording *recording = &graph->recording;
  char text[SHOWN * 600 + 40] = "";
  size_t at = 0, shown = 0;
  for (size_t i = 0; i < recording->nkept && shown < SHOWN; i++) {
    if (!is_over(recording->kept[i]))
      continue;
    tell(graph, recording->kept[i], text + at, sizeof text - at);
    at = strlen(text);
    shown++;
  }
  if (dead > shown)
    snprintf(text + at, sizeof text - at, "\n  and %zu more", dead - shown);
  cgl_fail(CGL_ERROR_RELEASED, operation,
           "%zu input%s of the graph captured at %s %s released since:%s", dead,
           dead == 1 ? "" : "s", cgl_site_text(graph->begun),
           dead == 1 ? "was" : "were", text);
  return cgl_fail_hint("release what a graph uses after its last replay, or "
                       "reset the graph and capture anew");
}


cgl_status cgl_inputs_check(cgl_graph *graph, const char *operation) {
  const uint64_t now = atomic_load(&generation);
  if (now == graph->inputs_seen)
    return CGL_OK;
  const cgl_recording *recording = &graph->recording;
  size_t dead = 0;
  for (size_t i = 0; i < recording->nkept; i++)
    dead += is_over(recording->kept[i]);
  if (dead)
    return refuse(graph, dead, operation);
  graph->inputs_seen = now;
  return CGL_OK;
}
