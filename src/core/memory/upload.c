/* Copies from and to ordinary memory, which wait. */
#include "core/memory/memory.h"


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
    result = cgl_context_wait_stream(stream->object.context, stream->handle);
  }
  return cgl_fail_driver(stream->object.context, result, operation, entry);
}


static CUresult copy_begin(cgl_stream *stream) {
  const cgl_driver *driver = cgl_driver_of(stream);
  return driver->wait_to_copy ? driver->wait_to_copy(stream->handle)
                              : CUDA_SUCCESS;
}


cgl_status cgl_buffer_upload(cgl_buffer *buffer, cgl_stream *stream,
                             size_t offset, const void *data, size_t bytes) {
  static const char operation[] = "buffer:upload";
  cgl_status status =
      copy_check(buffer, stream, offset, bytes, CGL_USE_WRITE, operation);
  if (status || !bytes)
    return status;
  CUresult result = copy_begin(stream);
  if (!result)
    result = cgl_driver_of(buffer)->cuMemcpyHtoDAsync(
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
  CUresult result = copy_begin(stream);
  if (!result)
    result = cgl_driver_of(buffer)->cuMemcpyDtoHAsync(
        data, buffer->address + offset, bytes, stream->handle);
  return copy_wait(buffer, offset, bytes, CGL_USE_READ, stream, result,
                   operation, "cuMemcpyDtoHAsync");
}
