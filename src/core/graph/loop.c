/* What loops report: kept by the host, or written by the device. */
#include "core/graph/conditional.h"

#include <stdlib.h>


static void loop_destroy(cgl_object *object) {
  cgl_loop *loop = (cgl_loop *)object;
  cgl_buffer_release(loop->state);
  free(loop);
}


CGL_OBJECT_KIND(loop, .light = true, .destroy = loop_destroy)


cgl_status cgl_loop_create(cgl_stream *stream, const char *operation,
                           cgl_loop **out) {
  static atomic_uint_fast64_t next_id = 1;
  cgl_loop *loop = calloc(1, sizeof *loop);
  if (!loop)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a loop");
  cgl_object_init(&loop->object, &loop_kind, stream->object.context);
  loop->eager = !stream->capture;
  /* Whatever an unwritten state holds, it is hardly this. */
  loop->id = atomic_fetch_add(&next_id, 1) * UINT64_C(0x9e3779b97f4a7c15);
  cgl_status status =
      loop->eager
          ? CGL_OK
          : cgl_buffer_create(stream, NULL, CGL_TYPE_uint64, 4, &loop->state);
  if (status)
    cgl_loop_release(loop);
  else
    *out = loop;
  return status;
}


cgl_status cgl_loop_read(cgl_loop *loop, cgl_stream *stream, uint64_t *turns,
                         bool *exhausted) {
  uint64_t state[3] = {loop->id, loop->turns, loop->exhausted};
  *turns = 0;
  *exhausted = false;
  cgl_status status = CGL_OK;
  if (!loop->eager)
    status = cgl_buffer_download(loop->state, stream, 0, state, sizeof state);
  if (status == CGL_ERROR_ORDER) { /* a graph of a shared pool never ran */
    cgl_clear_error();
    return CGL_OK;
  }
  if (!status && state[0] == loop->id) {
    *turns = state[1];
    *exhausted = state[2];
  }
  return status;
}
