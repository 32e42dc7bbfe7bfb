/* Operations that use memory, and memory that the script releases. */
#include "core/memory/memory.h"

#include <stdio.h>

atomic_uint_fast64_t cgl_memory_generation = 1;


/* ---- operations ---- */

cgl_status cgl_buffer_check_use(cgl_buffer *buffer, cgl_use use,
                                cgl_stream *stream, const char *operation) {
  cgl_content *content = cgl_buffer_root(buffer)->content;
  cgl_status status = cgl_buffer_check(buffer, operation);
  return status || !content || stream->capture
             ? status
             : cgl_content_check(content, buffer->address,
                                 cgl_buffer_bytes(buffer), use, stream,
                                 operation);
}


void cgl_buffer_use(cgl_buffer *buffer, cgl_issue *issue, bool write,
                    size_t argument) {
  cgl_buffer *root = cgl_buffer_root(buffer);
  const cgl_capture *capture = issue->stream->capture;
  cgl_buffer_touch(root, issue->stream);
  if (!capture) {
    cgl_buffer_note(buffer, write, issue->stream);
    return;
  }
  const cgl_range range = {
      .address = buffer->address,
      .bytes = cgl_buffer_bytes(buffer),
      .write = write,
      .argument = (uint16_t)argument,
      .input = root->input != NULL,
      .planned = cgl_buffer_is_planned(root, capture->underway.pool)};
  if (!range.planned)
    atomic_store(&root->wide, true);
  cgl_issue_use(issue, &root->object,
                root->content ? &root->content->allocation : NULL, &range);
}


void cgl_pinned_use(cgl_pinned *pinned, cgl_issue *issue, bool write,
                    size_t argument) {
  const cgl_range range = {.address = (CUdeviceptr)(uintptr_t)pinned->data,
                           .bytes =
                               pinned->count * cgl_type_bytes(pinned->type),
                           .write = write,
                           .argument = (uint16_t)argument};
  cgl_issue_use(issue, &pinned->object, NULL, &range);
}


/* ---- releases by the script ---- */

static bool object_is_kept(const cgl_object *object) {
  return atomic_load_explicit(&object->retained_by, memory_order_relaxed);
}


/* Ends a life; changes the generation when captures keep `object`. */
static void life_end(cgl_memory_life *life, const cgl_object *object) {
  if (object_is_kept(object)) {
    life->ended = cgl_site_here;
    atomic_store(&life->over, true);
    atomic_fetch_add(&cgl_memory_generation, 1);
  } else
    atomic_store_explicit(&life->over, true, memory_order_relaxed);
}


bool cgl_buffer_is_kept(const cgl_buffer *buffer) {
  return object_is_kept(&cgl_buffer_root(buffer)->object);
}


void cgl_buffer_retire(cgl_buffer *buffer) {
  cgl_buffer *root = buffer->base;
  if (!root)
    life_end(&buffer->life, &buffer->object);
  else if (atomic_load_explicit(&root->life.over, memory_order_relaxed))
    life_end(&root->life, &root->object);
}


void cgl_pinned_retire(cgl_pinned *pinned) {
  life_end(&pinned->life, &pinned->object);
}


/* A module's variable lives with the module. */
bool cgl_memory_is_over(const cgl_object *object) {
  if (object->kind == &cgl_pinned_kind)
    return atomic_load(&((const cgl_pinned *)object)->life.over);
  if (object->kind != &cgl_buffer_kind)
    return false;
  const cgl_buffer *buffer = (const cgl_buffer *)object;
  return atomic_load(&buffer->life.over) && buffer->count && !buffer->keeper &&
         !atomic_load(&buffer->views);
}


void cgl_memory_describe(const cgl_object *object, cgl_site used, char *text,
                         size_t size) {
  const bool pinned = object->kind == &cgl_pinned_kind;
  const cgl_pinned *p = (const cgl_pinned *)object;
  const cgl_buffer *b = (const cgl_buffer *)object;
  const cgl_memory_life *life = pinned ? &p->life : &b->life;
  snprintf(text, size,
           "%s of %zu %s, created at %s, captured at %s, released at %s",
           pinned     ? "pinned memory"
           : b->block ? "a buffer"
                      : "a borrowed buffer",
           pinned ? p->count : b->count,
           cgl_type_name(pinned ? p->type : b->type), cgl_site_text(life->made),
           cgl_site_text(used), cgl_site_text(life->ended));
}
