/* Streams and events. */
#ifndef CGRAPHLUA_STREAM_H
#define CGRAPHLUA_STREAM_H

#include "base.h"

/* A new non-blocking stream; priority 0 is the least, negative is more urgent
   (clamped).  cuStreamCreateWithPriority */
CGL_API cgl_status cgl_stream_create(cgl_context *context, int priority,
                                     cgl_stream **stream);
/* The context's legacy default stream; captures cannot begin on it. */
CGL_API cgl_status cgl_stream_default(cgl_context *context,
                                      cgl_stream **stream);
/* Borrows an engine's CUstream, which must outlive the object. */
CGL_API cgl_status cgl_stream_from_handle(cgl_context *context, void *custream,
                                          cgl_stream **stream);
/* CUstream.  From now on others may issue work on it, so captures of it ask the
   driver after every operation which nodes are foreign. */
CGL_API void *cgl_stream_handle(cgl_stream *stream);
/* Whether both objects stand for one stream of the driver. */
CGL_API bool cgl_stream_is_same(const cgl_stream *a, const cgl_stream *b);
CGL_API cgl_context *cgl_stream_context(const cgl_stream *stream);
CGL_API bool cgl_stream_is_default(const cgl_stream *stream);
/* Refused inside a capture (a capture runs nothing).  cuStreamSynchronize */
CGL_API cgl_status cgl_stream_synchronize(cgl_stream *stream);
/* *done: all work issued so far has completed.  cuStreamQuery */
CGL_API cgl_status cgl_stream_query(cgl_stream *stream, bool *done);
/* Later work of `stream` waits for what the event's last record covers; from a
   capturing stream's event it forks, into one it joins.  cuStreamWaitEvent */
CGL_API cgl_status cgl_stream_wait_event(cgl_stream *stream, cgl_event *event);
/* The same for everything issued so far on `other`. */
CGL_API cgl_status cgl_stream_wait_stream(cgl_stream *stream,
                                          cgl_stream *other);
/* cuStreamIsCapturing; false for the default stream. */
CGL_API cgl_status cgl_stream_is_capturing(cgl_stream *stream, bool *capturing);

CGL_API cgl_status cgl_event_create(cgl_context *context, bool timing,
                                    cgl_event **event);
CGL_API cgl_status cgl_event_record(cgl_event *event, cgl_stream *stream);
/* Into a capture, as a node of its own: every replay records the event anew,
   and it can be queried, waited for and timed like one recorded outside.
   Refused on a stream that does not capture.  cuEventRecordWithFlags */
CGL_API cgl_status cgl_event_record_external(cgl_event *event,
                                             cgl_stream *stream);
/* A node that waits, in every replay, for the last record made outside of the
   capture or by such a node; no join.  cuStreamWaitEvent */
CGL_API cgl_status cgl_stream_wait_event_external(cgl_stream *stream,
                                                  cgl_event *event);
/* From now on a record or wait of the event on a stream that captures is one
   of these two. */
CGL_API void cgl_event_set_external(cgl_event *event, bool external);
CGL_API cgl_status cgl_event_synchronize(cgl_event *event);
CGL_API cgl_status cgl_event_query(cgl_event *event, bool *done);
/* ms from `from` to `to`; both recorded, completed and with timing. */
CGL_API cgl_status cgl_event_elapsed(cgl_event *from, cgl_event *to, float *ms);
CGL_API void *cgl_event_handle(const cgl_event *event); /* CUevent */

#endif
