/* Buffers: made, viewed, given back to their pools. */
#include "core/memory/memory.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  size_t bytes;
  cgl_type number;
  int lanes;
} types[] = {
#define X(name, bytes, number, lanes) {#name, bytes, CGL_TYPE_##number, lanes},
    CGL_TYPES(X)
#undef X
};


const char *cgl_type_name(cgl_type type) {
  return (unsigned)type < CGL_TYPE_COUNT ? types[type].name : "unknown";
}


size_t cgl_type_bytes(cgl_type type) {
  return (unsigned)type < CGL_TYPE_COUNT ? types[type].bytes : 0;
}


cgl_type cgl_type_number(cgl_type type) {
  return (unsigned)type < CGL_TYPE_COUNT ? types[type].number : CGL_TYPE_COUNT;
}


int cgl_type_lanes(cgl_type type) {
  return (unsigned)type < CGL_TYPE_COUNT ? types[type].lanes : 0;
}


cgl_type cgl_type_from_name(const char *name) {
  for (int type = 0; type < CGL_TYPE_COUNT; type++)
    if (!strcmp(types[type].name, name))
      return (cgl_type)type;
  return CGL_TYPE_COUNT;
}


/* ---- making and unmaking ---- */

cgl_status cgl_memory_check_elements(cgl_type type, size_t count,
                                     const char *operation) {
  const size_t most = (size_t)1 << 62; /* bytes: more than any device holds */
  size_t bytes;
  if ((unsigned)type >= CGL_TYPE_COUNT)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
                    "%d is not an element type", (int)type);
  if (!__builtin_mul_overflow(count, types[type].bytes, &bytes) &&
      bytes <= most)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "%zu elements of %zu bytes are more than any device holds", count,
           types[type].bytes);
  return cgl_fail_hint("check how the size was computed");
}


/* Everything but the object, in memory that has room. */
static inline void buffer_begin(cgl_buffer *buffer, cgl_type type,
                                size_t count) {
  static const cgl_buffer nothing;
  const size_t from = offsetof(cgl_buffer, block);
  /* As a copy, which is a few wide moves; clearing would be a loop. */
  memcpy((char *)buffer + from, (const char *)&nothing + from,
         offsetof(cgl_buffer, taken_at) - from);
  buffer->type = type;
  buffer->count = count;
  buffer->ndims = 1;
  buffer->shape[0] = count;
  buffer->life.made = cgl_site_here;
}


/* A buffer without memory of its own. */
static cgl_status buffer_new(cgl_context *context, cgl_type type, size_t count,
                             const char *operation, cgl_buffer **out) {
  cgl_status status = cgl_memory_check_elements(type, count, operation);
  if (status)
    return status;
  cgl_buffer *buffer = malloc(sizeof *buffer);
  if (!buffer)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a buffer");
  buffer_begin(buffer, type, count);
  cgl_object_init(&buffer->object, &cgl_buffer_kind, context);
  *out = buffer;
  return CGL_OK;
}


cgl_status cgl_buffer_create(cgl_stream *stream, cgl_pool *pool, cgl_type type,
                             size_t count, cgl_buffer **out) {
  static const char operation[] = "buffer";
  cgl_context *context = stream->object.context;
  const cgl_capture *capture = stream->capture;
  cgl_status status = CGL_OK;
  cgl_issue issue;
  if (capture)
    status = cgl_capture_check_open(stream, operation);
  if (status)
    return status;
  if (pool)
    status = pool->host
                 ? cgl_pool_check_made(pool, operation)
                 : cgl_issue_begin(&issue, stream, &pool->object, operation,
                                   &(cgl_room){.kept = 1, .late = true});
  else if (capture)
    pool = (cgl_pool *)capture->underway.pool;
  else if (!(pool = cgl_pools_own(context, operation)))
    status = cgl_last_error()->code;
  if (!status)
    status = cgl_memory_check_elements(type, count, operation);
  if (status)
    return status;
  if (!count)
    return buffer_new(context, type, count, operation, out);
  size_t bytes = count * types[type].bytes;
  cgl_block *block;
  *out = NULL;
  status = cgl_pool_alloc(pool, stream, bytes, operation, &block);
  if (status)
    return status;
  cgl_buffer *buffer = block->room ? block->room : malloc(sizeof *buffer);
  block->room = NULL;
  cgl_content *content = NULL;
  const bool planned = capture && capture->underway.pool == pool;
  if (planned)
    content = cgl_content_new(&pool->sharing, capture->underway.born, bytes);
  if (!buffer || (planned && !content)) {
    free(buffer);
    cgl_pool_free(block, false);
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a buffer");
  }
  buffer_begin(buffer, type, count);
  cgl_object_init_borrowing(&buffer->object, &cgl_buffer_kind, context);
  buffer->block = block;
  buffer->address = cgl_block_address(block, bytes);
  block->owner = &buffer->object;
  buffer->content = content;
  if (content)
    content->allocation.address = buffer->address;
  else if (capture) /* it keeps a pool that is not its graph's */
    cgl_record_keep(capture->recording, &pool->object,
                    capture->underway.serial);
  *out = buffer;
  return CGL_OK;
}


cgl_status cgl_buffer_view(cgl_buffer *base, size_t first, size_t count,
                           cgl_buffer **out) {
  static const char operation[] = "buffer:view";
  if (first > base->count || count > base->count - first) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "elements %zu to %zu are not all inside the buffer's %zu", first,
             first + count, base->count);
    return cgl_fail_hint("a view may not reach past the end of its buffer");
  }
  cgl_status status = cgl_buffer_check(base, operation);
  if (!status)
    status =
        buffer_new(base->object.context, base->type, count, operation, out);
  if (status)
    return status;
  (*out)->base = cgl_buffer_retain(cgl_buffer_root(base));
  atomic_fetch_add_explicit(&(*out)->base->views, 1, memory_order_relaxed);
  (*out)->address = base->address + first * types[base->type].bytes;
  return CGL_OK;
}


cgl_status cgl_buffer_from_address(cgl_context *context, uint64_t address,
                                   cgl_type type, size_t count,
                                   cgl_buffer **out) {
  cgl_status status = buffer_new(context, type, count, "buffer_from", out);
  if (!status)
    (*out)->address = address;
  return status;
}


cgl_status cgl_buffer_of_keeper(cgl_object *keeper, CUdeviceptr address,
                                cgl_type type, size_t count, cgl_buffer **out) {
  cgl_status status =
      cgl_buffer_from_address(keeper->context, address, type, count, out);
  if (status)
    return status;
  cgl_object_retain(keeper);
  (*out)->keeper = keeper;
  return CGL_OK;
}


/* Whether streams other than the block's may still use the memory when the
   block's stream has done its work: not when that stream has waited for the
   last user. */
static bool buffer_is_wide(const cgl_buffer *buffer, cgl_clock *user) {
  if (atomic_load_explicit(&buffer->wide, memory_order_relaxed))
    return true;
  const cgl_lane *home = user ? buffer->block->home : NULL;
  return user &&
         !(home && cgl_clock_covers(home->clock, user, buffer->last_tick));
}


static void buffer_destroy(cgl_object *object) {
  cgl_buffer *buffer = (cgl_buffer *)object;
  cgl_clock *user =
      atomic_load_explicit(&buffer->last_user, memory_order_acquire);
  free(buffer->input);
  if (buffer->content) {
    atomic_store_explicit(&buffer->content->allocation.over, true,
                          memory_order_relaxed);
    cgl_object_release(&buffer->content->allocation.object);
  }
  cgl_block *block = buffer->block;
  bool wide = block && buffer_is_wide(buffer, user);
  if (user)
    cgl_clock_unwatch(user);
  if (block) {
    /* The host memory is for the next buffer of the block; not under a
       sanitizer, which must see uses after the buffer's end. */
#ifdef __SANITIZE_ADDRESS__
    free(buffer);
#else
    block->room = buffer;
#endif
    cgl_pool_free(block, wide);
    return;
  }
  cgl_buffer *root = buffer->base;
  if (root) {
    atomic_fetch_sub(&root->views, 1);
    /* The end of a view of memory that was given up moves the number, too. */
    if (atomic_load_explicit(&root->life.over, memory_order_relaxed))
      atomic_fetch_add(&cgl_memory_generation, 1);
  }
  cgl_buffer_release(root);
  if (buffer->keeper)
    cgl_object_release(buffer->keeper);
  free(buffer);
}


/* Makes `clock` the last user; false when the former last user precedes neither
   `clock` nor the block's stream. */
static bool buffer_replace_last_user(cgl_buffer *root, cgl_clock *clock) {
  static cgl_latch lock; /* another thread may replace it, too */
  cgl_latch_take(&lock);
  cgl_clock *before = atomic_load(&root->last_user);
  uint64_t tick = atomic_load(&root->last_tick);
  const cgl_lane *home = root->block->home;
  bool covers = !before || cgl_clock_covers(clock, before, tick) ||
                (home && cgl_clock_covers(home->clock, before, tick));
  if (covers) {
    atomic_store(&root->last_user, cgl_clock_watch(clock));
    /* Unless the former last user used it meanwhile. */
    covers = atomic_load(&root->last_tick) == tick;
    cgl_clock_unwatch(before);
  }
  cgl_latch_drop(&lock);
  return covers;
}


/* A stream other than the block's uses the memory.  The order of a stream that
   captures, or whose handle others have, is not known. */
static void buffer_note_user(cgl_buffer *root, const cgl_stream *stream) {
  cgl_clock *clock = stream->clock;
  if (atomic_load_explicit(&root->wide, memory_order_relaxed))
    return;
  bool known = !stream->capture && !stream->shown &&
               stream->object.context == root->object.context;
  if (known && atomic_load(&root->last_user) != clock)
    known = buffer_replace_last_user(root, clock);
  if (known)
    atomic_store(&root->last_tick, cgl_clock_now(clock));
  if (!known || atomic_load(&root->last_user) != clock)
    atomic_store_explicit(&root->wide, true, memory_order_relaxed);
}


void cgl_buffer_touch(cgl_buffer *buffer, const cgl_stream *stream) {
  cgl_buffer *root = cgl_buffer_root(buffer);
  if (root->block && root->block->stream != stream->serial)
    buffer_note_user(root, stream);
}


cgl_status cgl_buffer_fail_taken(const cgl_buffer *buffer,
                                 const char *operation) {
  if (buffer->base && atomic_load(&buffer->taken)) {
    cgl_fail(CGL_ERROR_ORDER, operation,
             "the result made at %s was overwritten by the call at %s",
             cgl_site_text(buffer->life.made), cgl_site_text(buffer->taken_at));
    return cgl_fail_hint("copy a result that is to last before the next call");
  }
  buffer = cgl_buffer_root(buffer);
  cgl_fail(CGL_ERROR_RELEASED, operation,
           "the buffer made at %s was taken back when its pool was restored "
           "at %s",
           cgl_site_text(buffer->life.made), cgl_site_text(buffer->taken_at));
  return cgl_fail_hint("make buffers that are to last before the checkpoint");
}


cgl_status cgl_buffer_expire(cgl_buffer *view) {
  static const char operation[] = "buffer:expire";
  if (!view->base) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "the buffer made at %s is no view",
             cgl_site_text(view->life.made));
    return cgl_fail_hint("hand out views of memory that will be overwritten");
  }
  view->taken_at = cgl_site_here;
  atomic_store(&view->taken, true);
  return CGL_OK;
}


static bool buffer_extent(const cgl_object *object, uint64_t *address,
                          size_t *bytes) {
  const cgl_buffer *buffer = (const cgl_buffer *)object;
  *address = buffer->address;
  *bytes = cgl_buffer_bytes(buffer);
  return true;
}


/* The buffer may not be used any more.  Its block goes back now, unless a
   capture kept the buffer: its graph may be replayed. */
static bool buffer_take_block(cgl_object *object) {
  cgl_buffer *buffer = (cgl_buffer *)object;
  buffer->taken_at = cgl_site_here;
  atomic_store(&buffer->taken, true);
  if (atomic_load(&object->retained_by))
    return false;
  cgl_object_keep_context(object);
  buffer->block = NULL;
  return true;
}


const cgl_object_kind cgl_buffer_kind = {
    .number = CGL_OBJECT_buffer,
    .light = true,
    .destroy = buffer_destroy,
    .extent = buffer_extent,
    .take_block = buffer_take_block,
};

CGL_OBJECT_REFERENCES(buffer)


/* ---- facts ---- */

cgl_type cgl_buffer_type(const cgl_buffer *buffer) {
  return buffer->type;
}


size_t cgl_buffer_count(const cgl_buffer *buffer) {
  return buffer->count;
}


size_t cgl_buffer_bytes(const cgl_buffer *buffer) {
  return buffer->count * types[buffer->type].bytes;
}


uint64_t cgl_buffer_address(const cgl_buffer *buffer) {
  void *address = cgl_buffer_fixed(buffer);
  cgl_context_show(buffer->object.context);
  return cgl_buffer_check(buffer, "buffer:address") ? 0 : (uintptr_t)address;
}


bool cgl_buffer_overlap(const cgl_buffer *a, const cgl_buffer *b, bool *same) {
  if (same)
    *same = a->address == b->address;
  return a->address < b->address + cgl_buffer_bytes(b) &&
         b->address < a->address + cgl_buffer_bytes(a);
}


cgl_context *cgl_buffer_context(const cgl_buffer *buffer) {
  return buffer->object.context;
}


cgl_status cgl_buffer_set_shape(cgl_buffer *buffer, const size_t *extents,
                                int ndims) {
  static const char operation[] = "buffer:shape";
  size_t product = 1;
  if (ndims < 1 || ndims > CGL_MAX_DIMS)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
                    "%d dimensions are not in 1..%d", ndims, CGL_MAX_DIMS);
  for (int i = 0; i < ndims; i++)
    if (__builtin_mul_overflow(product, extents[i], &product))
      product = SIZE_MAX;
  if (product != buffer->count)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
                    "the shape has %zu elements, the buffer %zu", product,
                    buffer->count);
  memcpy(buffer->shape, extents, (size_t)ndims * sizeof *extents);
  buffer->ndims = ndims;
  return CGL_OK;
}


cgl_status cgl_buffer_set_input(cgl_buffer *buffer, const char *name) {
  static const char operation[] = "input";
  if (buffer->base || buffer->content || buffer->input) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             buffer->base      ? "a view is no input, but its buffer may be"
             : buffer->content ? "a capture allocated the memory, which no "
                                 "other takes the place of"
                               : "the buffer is the input \"%s\" already",
             buffer->input);
    return cgl_fail_hint("make an input before the capture begins");
  }
  buffer->input = strdup(name);
  return buffer->input
             ? CGL_OK
             : cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a name");
}


int cgl_buffer_shape(const cgl_buffer *buffer, size_t extents[CGL_MAX_DIMS]) {
  memcpy(extents, buffer->shape, (size_t)buffer->ndims * sizeof *extents);
  return buffer->ndims;
}
