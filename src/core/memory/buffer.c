/* Buffers, their copies and fills, and pinned memory. */
#include "core/record/record.h"
#include "core/memory/memory.h"
#include "core/sharing/sharing.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  size_t bytes;
} types[] = {
#define X(name, bytes) {#name, bytes},
    CGL_TYPES(X)
#undef X
};


const char *cgl_type_name(cgl_type type) {
  return (unsigned)type < CGL_TYPE_COUNT ? types[type].name : "unknown";
}


size_t cgl_type_bytes(cgl_type type) {
  return (unsigned)type < CGL_TYPE_COUNT ? types[type].bytes : 0;
}


cgl_type cgl_type_from_name(const char *name) {
  for (int type = 0; type < CGL_TYPE_COUNT; type++)
    if (!strcmp(types[type].name, name))
      return (cgl_type)type;
  return CGL_TYPE_COUNT;
}


static atomic_uint_fast64_t next_number = 1; /* of captured allocations */


/* ---- making and unmaking ---- */

/* What any device may hold, and whether it is asked for that. */
static const size_t most_bytes = (size_t)1 << 62;

static inline bool are_elements(cgl_type type, size_t count) {
  size_t bytes;
  return (unsigned)type < CGL_TYPE_COUNT &&
         !__builtin_mul_overflow(count, types[type].bytes, &bytes) &&
         bytes <= most_bytes;
}


cgl_status cgl_check_elements(cgl_type type, size_t count,
                              const char *operation) {
  if (are_elements(type, count))
    return CGL_OK;
  if ((unsigned)type >= CGL_TYPE_COUNT)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
                    "%d is not an element type", (int)type);
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "%zu elements of %zu bytes are more than any device holds", count,
           types[type].bytes);
  cgl_fail_hint("check how the size was computed");
  return CGL_ERROR_INVALID_ARGUMENT;
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


/* One without memory of its own. */
static cgl_status buffer_new(cgl_context *context, cgl_type type, size_t count,
                             const char *operation, cgl_buffer **out) {
  cgl_status status = cgl_check_elements(type, count, operation);
  if (status)
    return status;
  cgl_buffer *buffer = malloc(sizeof *buffer);
  if (!buffer)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a buffer");
  buffer_begin(buffer, type, count);
  cgl_object_init(&buffer->object, CGL_OBJECT_buffer, context);
  *out = buffer;
  return CGL_OK;
}


/* Host memory for the buffer of a block. */
static cgl_buffer *take_room(cgl_block *block) {
  cgl_buffer *buffer = block->room;
  block->room = NULL;
  return buffer ? buffer : malloc(sizeof *buffer);
}


/* Leaves it to the next one, unless a sanitizer shall see whoever still uses
   this one. */
static void leave_room(cgl_block *block, cgl_buffer *buffer) {
#ifdef __SANITIZE_ADDRESS__
  (void)block;
  free(buffer);
#else
  block->room = buffer;
#endif
}


/* Before a buffer of a pool that the caller chose. */
static cgl_status check_pool(cgl_stream *stream, const cgl_pool *pool,
                             const char *operation) {
  cgl_status status =
      cgl_check_device(&stream->object, &pool->object, operation);
  if (!status && stream->capture && stream->capture->pool != pool)
    status = cgl_capture_reserve(stream, operation, 0, 0, 1);
  return status;
}


/* A capture allocated the buffer, of its graph's pool or of one that it used
   then and keeps. */
static void note_capture(cgl_buffer *buffer, cgl_graph *graph, cgl_pool *pool) {
  if (graph->pool != pool) {
    cgl_capture_keep(graph, &pool->object);
    return;
  }
  buffer->born = graph->serial;
  buffer->number = atomic_fetch_add(&next_number, 1);
}


cgl_status cgl_buffer_create(cgl_stream *stream, cgl_pool *pool, cgl_type type,
                             size_t count, cgl_buffer **out) {
  static const char operation[] = "buffer";
  cgl_context *context = stream->object.context;
  cgl_graph *graph = stream->capture;
  cgl_status status = CGL_OK;
  if (pool)
    status = check_pool(stream, pool, operation);
  else
    pool = graph ? graph->pool : context->pool;
  if (!status && !are_elements(type, count))
    status = cgl_check_elements(type, count, operation);
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
  cgl_buffer *buffer = take_room(block);
  if (!buffer) {
    cgl_pool_free(block, false);
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a buffer");
  }
  buffer_begin(buffer, type, count);
  cgl_object_init_guest(&buffer->object, CGL_OBJECT_buffer, context);
  buffer->block = block;
  buffer->address = cgl_block_address(block, bytes);
  block->owner = buffer;
  if (graph)
    note_capture(buffer, graph, pool);
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
    cgl_fail_hint("a view may not reach past the end of its buffer");
    return CGL_ERROR_INVALID_ARGUMENT;
  }
  cgl_status status = cgl_buffer_check(base, operation);
  if (!status)
    status =
        buffer_new(base->object.context, base->type, count, operation, out);
  if (status)
    return status;
  (*out)->base = cgl_buffer_retain(base->base ? base->base : base);
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


cgl_status cgl_buffer_of_module(cgl_module *module, CUdeviceptr address,
                                cgl_type type, size_t count, cgl_buffer **out) {
  cgl_context *context = ((cgl_object *)module)->context;
  cgl_status status =
      cgl_buffer_from_address(context, address, type, count, out);
  if (!status)
    (*out)->module = cgl_module_retain(module);
  return status;
}


/* Whether other streams may use the memory still when its own is done with it.
   One that waited for the guest since its last use is as good as alone. */
static bool is_wide(const cgl_buffer *buffer, cgl_clock *guest) {
  if (atomic_load_explicit(&buffer->wide, memory_order_relaxed))
    return true;
  const cgl_lane *home = guest ? buffer->block->home : NULL;
  return guest &&
         !(home && cgl_clock_covers(home->clock, guest, buffer->guest_tick));
}


void cgl_buffer_destroy(cgl_buffer *buffer) {
  cgl_clock *guest = atomic_load_explicit(&buffer->guest, memory_order_acquire);
  if (buffer->cell)
    cgl_share_forget(buffer);
  cgl_block *block = buffer->block;
  bool wide = block && is_wide(buffer, guest);
  if (guest)
    cgl_clock_unwatch(guest);
  if (block) {
    leave_room(block, buffer);
    cgl_pool_free(block, wide);
    return;
  }
  if (buffer->base)
    cgl_buffer_unview(buffer->base);
  cgl_buffer_release(buffer->base);
  cgl_module_release(buffer->module);
  free(buffer);
}


/* Whether all that streams other than the block's did is sure to be over for
   whoever comes after `clock` from now on: the guest so far, if it is another,
   comes before that stream or the block's. */
static bool replace_guest(cgl_buffer *root, cgl_clock *clock) {
  static cgl_latch lock; /* another thread may let go of the guest */
  cgl_latch_take(&lock);
  cgl_clock *before = atomic_load(&root->guest);
  uint64_t tick = atomic_load(&root->guest_tick);
  const cgl_lane *home = root->block->home;
  bool covers = !before || cgl_clock_covers(clock, before, tick) ||
                (home && cgl_clock_covers(home->clock, before, tick));
  if (covers) {
    atomic_store(&root->guest, cgl_clock_watch(clock));
    /* Unless the former used it meanwhile. */
    covers = atomic_load(&root->guest_tick) == tick;
    cgl_clock_unwatch(before);
  }
  cgl_latch_drop(&lock);
  return covers;
}


/* Another stream than the block's uses it.  Of one whose handle is out, or
   that captures, not all is known. */
static void note_guest(cgl_buffer *root, const cgl_stream *stream) {
  cgl_clock *clock = stream->clock;
  if (atomic_load_explicit(&root->wide, memory_order_relaxed))
    return;
  bool known = !stream->capture && !stream->shown &&
               stream->object.context == root->object.context;
  if (known && atomic_load(&root->guest) != clock)
    known = replace_guest(root, clock);
  if (known)
    atomic_store(&root->guest_tick, cgl_clock_now(clock));
  if (!known || atomic_load(&root->guest) != clock)
    atomic_store_explicit(&root->wide, true, memory_order_relaxed);
}


void cgl_buffer_touch(cgl_buffer *buffer, const cgl_stream *stream) {
  cgl_buffer *root = buffer->base ? buffer->base : buffer;
  if (root->block && root->block->stream != stream->serial)
    note_guest(root, stream);
}


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
  const cgl_buffer *root = buffer->base ? buffer->base : buffer;
  return atomic_load_explicit(&root->taken, memory_order_relaxed)
             ? 0
             : buffer->address;
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


int cgl_buffer_shape(const cgl_buffer *buffer, size_t extents[CGL_MAX_DIMS]) {
  memcpy(extents, buffer->shape, (size_t)buffer->ndims * sizeof *extents);
  return buffer->ndims;
}


/* ---- synchronous copies ---- */

static cgl_status check_copy(cgl_buffer *buffer, cgl_stream *stream,
                             size_t offset, size_t bytes,
                             const char *operation) {
  cgl_status status =
      cgl_check_device(&buffer->object, &stream->object, operation);
  if (!status)
    status = cgl_buffer_check(buffer, operation);
  if (status)
    return status;
  size_t size = cgl_buffer_bytes(buffer);
  if (offset > size || bytes > size - offset) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "%zu bytes at offset %zu do not fit the buffer's %zu", bytes,
             offset, size);
    cgl_fail_hint("copy less, or make a larger buffer");
    return CGL_ERROR_INVALID_ARGUMENT;
  }
  status = cgl_capture_refuse(
      stream, operation,
      "a copy from or to ordinary memory waits for the device, and a capture "
      "runs nothing",
      "copy before the capture, or capture a copy from or to pinned memory "
      "with buffer:copy");
  if (!status)
    status = cgl_check_may_wait(stream, operation);
  if (!status)
    status = cgl_context_enter(buffer->object.context, operation);
  if (!status)
    cgl_buffer_touch(buffer, stream);
  return status;
}


static cgl_status copied(cgl_stream *stream, CUresult result,
                         const char *operation, const char *entry) {
  if (!result) {
    entry = "cuStreamSynchronize";
    result = cgl_driver_of(stream)->cuStreamSynchronize(stream->handle);
  }
  return cgl_fail_driver(stream->object.context, result, operation, entry);
}


cgl_status cgl_buffer_upload(cgl_buffer *buffer, cgl_stream *stream,
                             size_t offset, const void *data, size_t bytes) {
  static const char operation[] = "buffer:upload";
  cgl_status status = check_copy(buffer, stream, offset, bytes, operation);
  if (status || !bytes)
    return status;
  CUresult result = cgl_driver_of(buffer)->cuMemcpyHtoDAsync(
      buffer->address + offset, data, bytes, stream->handle);
  if (!result)
    cgl_share_wrote(buffer);
  return copied(stream, result, operation, "cuMemcpyHtoDAsync");
}


cgl_status cgl_buffer_download(cgl_buffer *buffer, cgl_stream *stream,
                               size_t offset, void *data, size_t bytes) {
  static const char operation[] = "buffer:download";
  cgl_status status = check_copy(buffer, stream, offset, bytes, operation);
  if (!status)
    status = cgl_share_check_read(buffer, operation);
  if (status || !bytes)
    return status;
  CUresult result = cgl_driver_of(buffer)->cuMemcpyDtoHAsync(
      data, buffer->address + offset, bytes, stream->handle);
  return copied(stream, result, operation, "cuMemcpyDtoHAsync");
}


/* ---- asynchronous copies and fills ---- */

/* Ends an operation that the driver took or refused: notes it. */
static cgl_status issued(cgl_stream *stream, CUresult result,
                         const char *operation, const char *entry,
                         const cgl_range *ranges, size_t nranges,
                         const cgl_element *element) {
  if (result)
    return cgl_capture_failed(stream->capture, result, operation, entry,
                              stream->object.context);
  if (!stream->capture)
    return CGL_OK;
  cgl_recording *recording = &stream->capture->recording;
  memcpy(recording->args + recording->nargs, element, sizeof *element);
  cgl_note note = {.kind = nranges == 2 ? CGL_OP_MEMCPY : CGL_OP_MEMSET,
                   .name = operation,
                   .ranges = ranges,
                   .nranges = nranges,
                   .nargs = sizeof *element};
  cgl_capture_note(stream, &note);
  return CGL_OK;
}


static cgl_status check_pair(cgl_type to, size_t to_count, cgl_type from,
                             size_t from_count, const char *operation) {
  if (to == from && to_count == from_count)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "cannot copy %zu elements of %s into %zu of %s", from_count,
           types[from].name, to_count, types[to].name);
  cgl_fail_hint("use a view of the part that is to be copied");
  return CGL_ERROR_INVALID_ARGUMENT;
}


static cgl_status begin_issue(cgl_buffer *buffer, cgl_stream *stream,
                              const char *operation) {
  cgl_status status =
      cgl_check_device(&buffer->object, &stream->object, operation);
  if (!status)
    status = cgl_buffer_check(buffer, operation);
  if (!status)
    status = cgl_context_enter(buffer->object.context, operation);
  if (!status)
    status = cgl_capture_reserve(stream, operation, 2, sizeof(cgl_element), 2);
  return status;
}


static void use(cgl_buffer *buffer, cgl_stream *stream, cgl_range *range) {
  cgl_buffer_touch(buffer, stream);
  if (stream->capture)
    range->planned = cgl_capture_keep(stream->capture, &buffer->object);
  else if (range->write)
    cgl_share_wrote(buffer);
}


/* Before a copy from the buffer. */
static cgl_status check_read(cgl_buffer *buffer, const cgl_stream *stream,
                             const char *operation) {
  return stream->capture ? CGL_OK : cgl_share_check_read(buffer, operation);
}


cgl_status cgl_buffer_copy(cgl_buffer *to, cgl_buffer *from,
                           cgl_stream *stream) {
  static const char operation[] = "buffer:copy";
  cgl_status status =
      check_pair(to->type, to->count, from->type, from->count, operation);
  if (!status && to->object.context != from->object.context)
    return cgl_copy_across(to, from, stream, operation);
  if (!status)
    status = begin_issue(to, stream, operation);
  if (!status)
    status = cgl_buffer_check(from, operation);
  if (!status)
    status = check_read(from, stream, operation);
  size_t bytes = cgl_buffer_bytes(to);
  if (status || !bytes)
    return status;
  CUresult result = cgl_driver_of(to)->cuMemcpyDtoDAsync(
      to->address, from->address, bytes, stream->handle);
  cgl_range ranges[] = {{.address = to->address, .bytes = bytes, .write = true},
                        {.address = from->address, .bytes = bytes}};
  if (!result) {
    use(to, stream, &ranges[0]);
    use(from, stream, &ranges[1]);
  }
  const cgl_element element = {.type = (uint8_t)to->type};
  return issued(stream, result, operation, "cuMemcpyDtoDAsync", ranges, 2,
                &element);
}


cgl_status cgl_buffer_copy_pinned(cgl_buffer *to, cgl_pinned *from,
                                  cgl_stream *stream) {
  static const char operation[] = "buffer:copy";
  cgl_status status =
      check_pair(to->type, to->count, from->type, from->count, operation);
  if (!status)
    status = begin_issue(to, stream, operation);
  size_t bytes = cgl_buffer_bytes(to);
  if (status || !bytes)
    return status;
  CUresult result = cgl_driver_of(to)->cuMemcpyHtoDAsync(
      to->address, from->data, bytes, stream->handle);
  cgl_range ranges[] = {
      {.address = to->address, .bytes = bytes, .write = true},
      {.address = (CUdeviceptr)(uintptr_t)from->data, .bytes = bytes}};
  if (!result) {
    use(to, stream, &ranges[0]);
    if (stream->capture)
      cgl_capture_keep(stream->capture, &from->object);
  }
  const cgl_element element = {.type = (uint8_t)to->type, .pinned = 2};
  return issued(stream, result, operation, "cuMemcpyHtoDAsync", ranges, 2,
                &element);
}


cgl_status cgl_pinned_copy(cgl_pinned *to, cgl_buffer *from,
                           cgl_stream *stream) {
  static const char operation[] = "pinned:copy";
  cgl_status status =
      check_pair(to->type, to->count, from->type, from->count, operation);
  if (!status)
    status = begin_issue(from, stream, operation);
  if (!status)
    status = check_read(from, stream, operation);
  size_t bytes = cgl_buffer_bytes(from);
  if (status || !bytes)
    return status;
  CUresult result = cgl_driver_of(from)->cuMemcpyDtoHAsync(
      to->data, from->address, bytes, stream->handle);
  cgl_range ranges[] = {{.address = (CUdeviceptr)(uintptr_t)to->data,
                         .bytes = bytes,
                         .write = true},
                        {.address = from->address, .bytes = bytes}};
  if (!result) {
    use(from, stream, &ranges[1]);
    if (stream->capture)
      cgl_capture_keep(stream->capture, &to->object);
  }
  const cgl_element element = {.type = (uint8_t)to->type, .pinned = 1};
  return issued(stream, result, operation, "cuMemcpyDtoHAsync", ranges, 2,
                &element);
}


/* One memset of `buffer` as elements of `size` bytes, or of one word of its
   eight-byte elements: a column of a matrix that is eight bytes wide. */
static CUresult fill_part(cgl_buffer *buffer, CUstream stream, size_t size,
                          const cgl_element *element) {
  const cgl_driver *driver = cgl_driver_of(buffer);
  const uint32_t word = element->word;
  size_t elements = cgl_buffer_bytes(buffer) / size;
  if (size == 1)
    return driver->cuMemsetD8Async(buffer->address, (uint8_t)word, elements,
                                   stream);
  if (size == 2)
    return driver->cuMemsetD16Async(buffer->address, (uint16_t)word, elements,
                                    stream);
  if (!element->half)
    return driver->cuMemsetD32Async(buffer->address, word, elements, stream);
  return driver->cuMemsetD2D32Async(buffer->address + cgl_element_at(element),
                                    8, word, 1, buffer->count, stream);
}


cgl_status cgl_buffer_fill(cgl_buffer *buffer, cgl_stream *stream,
                           const void *value) {
  static const char operation[] = "buffer:fill";
  size_t size = types[buffer->type].bytes;
  bool columns = size == 8 && memcmp(value, (const char *)value + 4, 4);
  size_t bytes = cgl_buffer_bytes(buffer);
  cgl_range range = {.address = buffer->address, .bytes = bytes, .write = true};
  for (size_t part = 0; part < (columns ? 2 : 1); part++) {
    cgl_status status = begin_issue(buffer, stream, operation);
    if (status || !bytes)
      return status;
    cgl_element element = {.type = (uint8_t)buffer->type,
                           .half = (uint8_t)(columns ? part + 1 : 0)};
    cgl_element_set(&element, value);
    CUresult result =
        fill_part(buffer, stream->handle, size == 8 ? 4 : size, &element);
    if (!result)
      use(buffer, stream, &range);
    status = issued(stream, result, operation,
                    size == 1   ? "cuMemsetD8Async"
                    : size == 2 ? "cuMemsetD16Async"
                    : columns   ? "cuMemsetD2D32Async"
                                : "cuMemsetD32Async",
                    &range, 1, &element);
    if (status)
      return status;
  }
  return CGL_OK;
}
