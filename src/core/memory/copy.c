/* Copies and fills. */
#include "core/memory/memory.h"


/* ---- synchronous copies ---- */

static cgl_status copy_check(cgl_buffer *buffer, cgl_stream *stream,
                             size_t offset, size_t bytes, cgl_use use,
                             const char *operation) {
  cgl_content *content = cgl_buffer_root(buffer)->content;
  cgl_status status =
      cgl_object_check_device(&buffer->object, &stream->object, operation);
  if (!status)
    status = cgl_buffer_check(buffer, operation);
  if (status)
    return status;
  size_t size = cgl_buffer_bytes(buffer);
  if (offset > size || bytes > size - offset) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
             "%zu bytes at offset %zu do not fit the buffer's %zu", bytes,
             offset, size);
    return cgl_fail_hint("copy less, or make a larger buffer");
  }
  status = cgl_capture_refuse(
      stream, operation,
      "a copy from or to ordinary memory waits for the device, and a capture "
      "runs nothing",
      "copy before the capture, or capture a copy from or to pinned memory "
      "with buffer:copy");
  if (!status)
    status = cgl_captures_check_wait(stream->capture, operation);
  if (!status)
    status = cgl_context_enter(buffer->object.context, operation);
  if (!status && content)
    status = cgl_content_check(content, buffer->address + offset, bytes, use,
                               stream, operation);
  if (!status)
    cgl_buffer_touch(buffer, stream);
  return status;
}


static cgl_status copy_wait(const cgl_buffer *buffer, size_t offset,
                            size_t bytes, cgl_use use, cgl_stream *stream,
                            CUresult result, const char *operation,
                            const char *entry) {
  cgl_content *content = cgl_buffer_root(buffer)->content;
  if (!result) {
    cgl_context_note_work(stream->object.context);
    if (content)
      cgl_content_note(content, buffer->address + offset, bytes,
                       use == CGL_USE_WRITE, stream);
    entry = "cuStreamSynchronize";
    result = cgl_driver_of(stream)->cuStreamSynchronize(stream->handle);
  }
  return cgl_fail_driver(stream->object.context, result, operation, entry);
}


cgl_status cgl_buffer_upload(cgl_buffer *buffer, cgl_stream *stream,
                             size_t offset, const void *data, size_t bytes) {
  static const char operation[] = "buffer:upload";
  cgl_status status =
      copy_check(buffer, stream, offset, bytes, CGL_USE_WRITE, operation);
  if (status || !bytes)
    return status;
  CUresult result = cgl_driver_of(buffer)->cuMemcpyHtoDAsync(
      buffer->address + offset, data, bytes, stream->handle);
  return copy_wait(buffer, offset, bytes, CGL_USE_WRITE, stream, result,
                   operation, "cuMemcpyHtoDAsync");
}


cgl_status cgl_buffer_download(cgl_buffer *buffer, cgl_stream *stream,
                               size_t offset, void *data, size_t bytes) {
  static const char operation[] = "buffer:download";
  cgl_status status =
      copy_check(buffer, stream, offset, bytes, CGL_USE_READ, operation);
  if (status || !bytes)
    return status;
  CUresult result = cgl_driver_of(buffer)->cuMemcpyDtoHAsync(
      data, buffer->address + offset, bytes, stream->handle);
  return copy_wait(buffer, offset, bytes, CGL_USE_READ, stream, result,
                   operation, "cuMemcpyDtoHAsync");
}


/* ---- operations: copies on a stream ---- */

static cgl_status copy_check_pair(cgl_type to, size_t to_count, cgl_type from,
                                  size_t from_count, const char *operation) {
  if (to == from && to_count == from_count)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "cannot copy %zu elements of %s into %zu of %s", from_count,
           cgl_type_name(from), to_count, cgl_type_name(to));
  return cgl_fail_hint("use a view of the part that is to be copied");
}


/* Begins a copy or a fill of `buffer`, of the stream's device. */
static cgl_status copy_begin(cgl_issue *issue, cgl_buffer *buffer,
                             cgl_stream *stream, const char *operation) {
  const cgl_room room = {.ranges = 2, .values = sizeof(cgl_element), .kept = 2};
  return cgl_issue_begin(issue, stream, &buffer->object, operation, room);
}


/* Notes a copy or a fill. */
static void copy_end(cgl_issue *issue, cgl_op_kind kind,
                     const cgl_element *element) {
  if (!issue->recording)
    return;
  const cgl_note note = {.kind = kind,
                         .name = issue->operation,
                         .values = element,
                         .nvalues = sizeof *element};
  cgl_issue_end(issue, &note);
}


/* A copy node of the driver (580, H200) moves as much as an eager copy only
   when its addresses are multiples of a line and its size is one of a page and
   not large: 4.2 TB/s, else 2.7.  A node more takes a microsecond, which pays
   from `COPY_WHOLE` bytes on. */
enum {
  COPY_LINE = 128,
  COPY_PAGE = 4096,
  COPY_WHOLE = 4 << 20,
  COPY_MOST = 256 << 20
};

/* Bytes of the first of the nodes that copy so many on the device: those before
   a line where both addresses reach one together, then whole pages. */
static size_t copy_first(CUdeviceptr to, CUdeviceptr from, size_t bytes) {
  if (bytes < COPY_WHOLE)
    return bytes;
  if (to % COPY_LINE && to % COPY_LINE == from % COPY_LINE)
    return COPY_LINE - to % COPY_LINE;
  return bytes < COPY_MOST ? bytes - bytes % COPY_PAGE : COPY_MOST;
}


/* The driver's call for a part of a copy, as copy_all has its arguments. */
static CUresult copy_issue(cgl_buffer *to, cgl_buffer *from, cgl_pinned *pinned,
                           CUstream stream, const cgl_element *part,
                           const char **entry) {
  const cgl_driver *driver = cgl_driver_of(to ? to : from);
  if (!to) {
    *entry = "cuMemcpyDtoHAsync";
    return driver->cuMemcpyDtoHAsync(pinned->data, from->address, part->bytes,
                                     stream);
  }
  if (!from) {
    *entry = "cuMemcpyHtoDAsync";
    return driver->cuMemcpyHtoDAsync(to->address, pinned->data, part->bytes,
                                     stream);
  }
  *entry = "cuMemcpyDtoDAsync";
  return driver->cuMemcpyDtoDAsync(to->address + part->offset,
                                   from->address + part->offset, part->bytes,
                                   stream);
}


/* Issues a part of a copy, all that is left of it outside captures, and notes
   its size. */
static cgl_status copy_part(cgl_buffer *to, cgl_buffer *from,
                            cgl_pinned *pinned, cgl_stream *stream,
                            cgl_element *part, const char *operation) {
  cgl_buffer *buffer = to ? to : from;
  const char *entry;
  cgl_issue issue;
  cgl_status status = copy_begin(&issue, buffer, stream, operation);
  if (!status && to)
    status = cgl_buffer_check_use(to, CGL_USE_WRITE, stream, operation);
  if (!status && from)
    status = cgl_buffer_check_use(from, CGL_USE_READ, stream, operation);
  part->bytes = cgl_buffer_bytes(buffer) - part->offset;
  if (status || !part->bytes)
    return status;
  if (issue.recording && to && from)
    part->bytes = copy_first(to->address + part->offset,
                             from->address + part->offset, part->bytes);
  CUresult result = copy_issue(to, from, pinned, stream->handle, part, &entry);
  status = cgl_issue_taken(&issue, result, entry);
  if (status)
    return status;
  if (to)
    cgl_buffer_use(to, &issue, true, 0);
  else
    cgl_pinned_use(pinned, &issue, true, 0);
  if (from)
    cgl_buffer_use(from, &issue, false, 1);
  else
    cgl_pinned_use(pinned, &issue, false, 1);
  copy_end(&issue, CGL_OP_MEMCPY, part);
  return CGL_OK;
}


/* A copy between two buffers, or between one (the other is NULL) and pinned
   memory of as many elements. */
static cgl_status copy_all(cgl_buffer *to, cgl_buffer *from, cgl_pinned *pinned,
                           cgl_stream *stream, const char *operation) {
  const cgl_buffer *buffer = to ? to : from;
  const size_t bytes = cgl_buffer_bytes(buffer);
  cgl_element part = {.type = (uint8_t)buffer->type};
  cgl_status status;
  if (pinned)
    part.pinned = from ? 1 : 2;
  do {
    status = copy_part(to, from, pinned, stream, &part, operation);
    part.offset += part.bytes;
  } while (!status && part.offset < bytes);
  return status;
}


cgl_status cgl_buffer_copy(cgl_buffer *to, cgl_buffer *from,
                           cgl_stream *stream) {
  static const char operation[] = "buffer:copy";
  cgl_status status =
      copy_check_pair(to->type, to->count, from->type, from->count, operation);
  if (status)
    return status;
  return to->object.context == from->object.context
             ? copy_all(to, from, NULL, stream, operation)
             : cgl_buffer_copy_across(to, from, stream, operation);
}


cgl_status cgl_buffer_copy_pinned(cgl_buffer *to, cgl_pinned *from,
                                  cgl_stream *stream) {
  static const char operation[] = "buffer:copy";
  cgl_status status =
      copy_check_pair(to->type, to->count, from->type, from->count, operation);
  return status ? status : copy_all(to, NULL, from, stream, operation);
}


cgl_status cgl_pinned_copy(cgl_pinned *to, cgl_buffer *from,
                           cgl_stream *stream) {
  static const char operation[] = "pinned:copy";
  cgl_status status =
      copy_check_pair(to->type, to->count, from->type, from->count, operation);
  return status ? status : copy_all(NULL, from, to, stream, operation);
}


/* ---- operations: fills ---- */

/* One memset of `buffer`, or of one word of its eight-byte elements: a column
   of a matrix that is eight bytes wide. */
static CUresult fill_issue(cgl_buffer *buffer, CUstream stream,
                           const cgl_element *element, const char **entry) {
  const cgl_driver *driver = cgl_driver_of(buffer);
  const CUdeviceptr address = buffer->address + cgl_memory_half_at(element);
  const uint32_t word = element->word;
  const size_t size = cgl_memory_fill_bytes(element);
  const size_t elements = cgl_buffer_bytes(buffer) / size;
  if (element->half) {
    *entry = "cuMemsetD2D32Async";
    return driver->cuMemsetD2D32Async(address, 8, word, 1, buffer->count,
                                      stream);
  }
  if (size == 4) {
    *entry = "cuMemsetD32Async";
    return driver->cuMemsetD32Async(address, word, elements, stream);
  }
  if (size == 2) {
    *entry = "cuMemsetD16Async";
    return driver->cuMemsetD16Async(address, (uint16_t)word, elements, stream);
  }
  *entry = "cuMemsetD8Async";
  return driver->cuMemsetD8Async(address, (uint8_t)word, elements, stream);
}


cgl_status cgl_buffer_fill(cgl_buffer *buffer, cgl_stream *stream,
                           const void *value) {
  static const char operation[] = "buffer:fill";
  const bool halves = cgl_type_bytes(buffer->type) == 8 &&
                      memcmp(value, (const char *)value + 4, 4);
  for (int half = halves; half <= (halves ? 2 : 0); half++) {
    cgl_issue issue;
    cgl_status status = copy_begin(&issue, buffer, stream, operation);
    if (!status)
      status = cgl_buffer_check_use(buffer, CGL_USE_WRITE, stream, operation);
    if (status || !buffer->count)
      return status;
    cgl_element element = {.type = (uint8_t)buffer->type,
                           .half = (uint8_t)half};
    cgl_memory_set_word(&element, value);
    const char *entry;
    CUresult result = fill_issue(buffer, stream->handle, &element, &entry);
    status = cgl_issue_taken(&issue, result, entry);
    if (status)
      return status;
    cgl_buffer_use(buffer, &issue, true, 0);
    copy_end(&issue, CGL_OP_MEMSET, &element);
  }
  return CGL_OK;
}
