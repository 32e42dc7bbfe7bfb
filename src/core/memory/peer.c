/* Copies between two devices of one driver.  The copy runs on a stream of one
   device, and the link stream of the other device waits for it: then a wait for
   the other device covers the copy, which its pools rely on. */
#include "core/memory/memory.h"


/* `other` waits, on its link stream, for what `stream` was given so far. */
static CUresult peer_count_work(cgl_context *other, cgl_stream *stream,
                                const char **entry) {
  cgl_context *own = stream->object.context;
  const cgl_driver *driver = own->driver;
  cgl_memory_part *part = cgl_memory_part_of(other, "buffer:copy");
  CUevent event;
  *entry = "cuEventCreate";
  CUresult result = part
                        ? driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING)
                        : CUDA_ERROR_OUT_OF_MEMORY;
  if (result)
    return result;
  *entry = "cuEventRecord";
  result = driver->cuEventRecord(event, stream->handle);
  if (!result && !(result = cgl_context_enter(other, "buffer:copy"))) {
    pthread_mutex_lock(&other->lock);
    *entry = "cuStreamCreateWithPriority";
    if (!part->link)
      result = driver->cuStreamCreateWithPriority(&part->link,
                                                  CU_STREAM_NON_BLOCKING, 0);
    pthread_mutex_unlock(&other->lock);
    if (!result) {
      *entry = "cuStreamWaitEvent";
      result = driver->cuStreamWaitEvent(part->link, event, 0);
    }
    CUresult back = cgl_context_enter(own, "buffer:copy");
    result = result ? result : back;
  }
  driver->cuEventDestroy(event);
  return result;
}


cgl_status cgl_buffer_copy_across(cgl_buffer *to, cgl_buffer *from,
                                  cgl_stream *stream, const char *operation) {
  cgl_context *own = stream->object.context;
  cgl_context *a = to->object.context, *b = from->object.context;
  if (a->driver != b->driver || (own != a && own != b)) {
    cgl_fail(CGL_ERROR_WRONG_DEVICE, operation,
             "cannot copy from device %s to %s on a stream of %s",
             b->info.device, a->info.device, own->info.device);
    return cgl_fail_hint(a->driver == b->driver
                             ? "use a stream of one of the two devices"
                             : "download from the one and upload to the other");
  }
  cgl_status status = cgl_capture_refuse(
      stream, operation,
      "a copy between two devices cannot be part of a capture",
      "copy before the capture or between replays");
  if (!status)
    status = cgl_context_enter(own, operation);
  if (!status)
    status = cgl_buffer_check_use(from, CGL_USE_READ, stream, operation);
  if (!status)
    status = cgl_buffer_check_use(to, CGL_USE_WRITE, stream, operation);
  size_t bytes = cgl_buffer_bytes(to);
  if (status || !bytes)
    return status;
  const char *entry = "cuMemSetAccess";
  /* The device that copies must reach the other's memory; what no pool of ours
     holds is its owner's to open. */
  const cgl_block *block = cgl_buffer_root(own == a ? from : to)->block;
  CUresult result =
      block ? cgl_block_open_to(block, own->device) : CUDA_SUCCESS;
  if (!result) {
    entry = "cuMemcpyAsync";
    result = own->driver->cuMemcpyAsync(to->address, from->address, bytes,
                                        stream->handle);
  }
  cgl_context_note_work(a);
  cgl_context_note_work(b);
  if (!result) {
    cgl_buffer_touch(to, stream);
    cgl_buffer_note(to, true, stream);
    cgl_buffer_touch(from, stream);
    cgl_buffer_note(from, false, stream);
    result = peer_count_work(own == a ? b : a, stream, &entry);
    /* The other device does not know of the copy: the call must wait for it. */
    if (result)
      cgl_context_wait_stream(own, stream->handle);
  }
  return cgl_fail_driver(own, result, operation, entry);
}
