/* What loops report: kept by the host, or written by the device. */
#include "core/graph/conditional.h"

#include <stdlib.h>


static void loop_destroy(cgl_object *object) {
  cgl_loop *loop = (cgl_loop *)object;
  cgl_buffer_release(loop->state);
  free(loop);
}


CGL_OBJECT_KIND(loop, .light = true, .destroy = loop_destroy)


/* Of the device's own pool: a graph's memory would hold something else in a
   replay in which the loop does not run. */
static cgl_status loop_make_state(cgl_loop *loop, cgl_stream *stream,
                                  const char *operation) {
  cgl_pool *own = cgl_pools_own(stream->object.context, operation);
  return own ? cgl_buffer_create(stream, own, CGL_TYPE_uint64, 5, &loop->state)
             : cgl_last_error()->code;
}


cgl_status cgl_loop_create(cgl_stream *stream, const char *operation,
                           cgl_loop **out) {
  static atomic_uint_fast64_t next_id = 1;
  cgl_loop *loop = calloc(1, sizeof *loop);
  if (!loop)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a loop");
  cgl_object_init(&loop->object, &loop_kind, stream->object.context);
  loop->eager = !stream->capture;
  /* Whatever a state holds that was never written, it is hardly this. */
  loop->id = atomic_fetch_add(&next_id, 1) * UINT64_C(0x9e3779b97f4a7c15);
  cgl_status status =
      loop->eager ? CGL_OK : loop_make_state(loop, stream, operation);
  if (status)
    cgl_loop_release(loop);
  else
    *out = loop;
  return status;
}


cgl_status cgl_loop_read(cgl_loop *loop, cgl_stream *stream, uint64_t *turns,
                         bool *exhausted) {
  uint64_t state[3] = {loop->id, loop->turns, loop->exhausted};
  cgl_status status = loop->eager ? CGL_OK
                                  : cgl_buffer_download(loop->state, stream, 0,
                                                        state, sizeof state);
  const bool ran = !status && state[0] == loop->id;
  *turns = ran ? state[1] : 0;
  *exhausted = ran && state[2];
  return status;
}
