/* Streams and events. */
#ifndef CGRAPHLUA_STREAM_H
#define CGRAPHLUA_STREAM_H

#include "base.h"

/* Creates a stream that does not wait for the default stream.  Priority 0 is
   the least urgent, negative values are more urgent; values are clamped to the
   device's range.  The caller owns the reference.
   cuStreamCreateWithPriority */
CGL_API cgl_status cgl_stream_create(cgl_context *context, int priority,
                                     cgl_stream **stream);
/* The context's legacy default stream, which cannot be captured.  The caller
   owns the reference. */
CGL_API cgl_status cgl_stream_default(cgl_context *context,
                                      cgl_stream **stream);
/* Borrows the caller's CUstream, which must outlive the object; NULL is the
   default stream. */
CGL_API cgl_status cgl_stream_from_handle(cgl_context *context, void *custream,
                                          cgl_stream **stream);
/* The CUstream, borrowed.  From now on other code may issue work on it, so its
   captures ask the driver after every operation for foreign nodes. */
CGL_API void *cgl_stream_handle(cgl_stream *stream);
/* Whether both objects stand for the same stream of the driver. */
CGL_API bool cgl_stream_is_same(const cgl_stream *a, const cgl_stream *b);
/* The stream's context, borrowed. */
CGL_API cgl_context *cgl_stream_context(const cgl_stream *stream);
/* Whether it is a default stream. */
CGL_API bool cgl_stream_is_default(const cgl_stream *stream);
/* From now on a failure of a kernel, a copy or a graph on this stream stays
   with it, instead of losing the device: the stream answers the failure, and
   what else it holds does not run.  Each of its kernels, and each replay of a
   graph, has so many seconds (0: no limit); what runs longer ends with
   CUDA_ERROR_LAUNCH_TIMEOUT. CGL_ERROR_INVALID_ARGUMENT for a default stream,
   or beyond 0 to 1e9 seconds; CUDA_ERROR_NOT_SUPPORTED on a GPU, where a
   failure always loses the device. */
CGL_API cgl_status cgl_stream_isolate(cgl_stream *stream, double seconds);
/* Ends what an isolated stream runs, and drops what it holds: it fails with
   CUDA_ERROR_LAUNCH_TIMEOUT.  Any thread, while others wait for the stream. */
CGL_API cgl_status cgl_stream_abort(cgl_stream *stream);
/* Waits for an isolated stream that failed, and lets it work again. */
CGL_API cgl_status cgl_stream_renew(cgl_stream *stream);
/* Waits for all work issued so far on the stream.  Refused with
   CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED inside a capture.
   cuStreamSynchronize */
CGL_API cgl_status cgl_stream_synchronize(cgl_stream *stream);
/* Waits for all work issued so far on these streams, which may be of several
   contexts, and for no other work.  Another thread may capture meanwhile, in
   any mode: its capture is neither broken nor waited for.  Refused with
   CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED inside a capture of the thread or of
   one of the streams.  cuStreamSynchronize */
CGL_API cgl_status cgl_streams_synchronize(cgl_stream *const *streams,
                                           size_t count);
/* *done: all work issued so far on the stream is done.  Refused likewise.
   cuStreamQuery */
CGL_API cgl_status cgl_stream_query(cgl_stream *stream, bool *done);
/* Makes later work of `stream` wait for the event's last record; does nothing
   for an event that was never recorded.  An event recorded in a capture makes
   `stream` a fork of that capture, or joins it.
   CUDA_ERROR_STREAM_CAPTURE_ISOLATION on a capturing stream for an event that
   was recorded outside the capture.  cuStreamWaitEvent */
CGL_API cgl_status cgl_stream_wait_event(cgl_stream *stream, cgl_event *event);
/* Makes later work of `stream` wait for all work issued so far on `other`. */
CGL_API cgl_status cgl_stream_wait_stream(cgl_stream *stream,
                                          cgl_stream *other);
/* *capturing: the stream is part of a capture; false for the default stream.
   cuStreamIsCapturing */
CGL_API cgl_status cgl_stream_is_capturing(cgl_stream *stream, bool *capturing);

/* Creates an event; without `timing` it is cheaper and measures no time.  The
   caller owns the reference.  cuEventCreate */
CGL_API cgl_status cgl_event_create(cgl_context *context, bool timing,
                                    cgl_event **event);
/* Records the event after the work issued so far on `stream`.  cuEventRecord */
CGL_API cgl_status cgl_event_record(cgl_event *event, cgl_stream *stream);
/* Records the event as a node of the capture: every replay records it again,
   and after the replay it can be queried, waited for and timed from outside.
   CUDA_ERROR_ILLEGAL_STATE on a stream that does not capture.
   cuEventRecordWithFlags */
CGL_API cgl_status cgl_event_record_external(cgl_event *event,
                                             cgl_stream *stream);
/* Adds a node that waits, in every replay, for the event's last record made
   outside the capture or by an external record.  It does not join streams.
   CUDA_ERROR_ILLEGAL_STATE on a stream that does not capture;
   CUDA_ERROR_INVALID_VALUE for an event whose last record is an ordinary one in
   another capture that has ended.  cuStreamWaitEvent */
CGL_API cgl_status cgl_stream_wait_event_external(cgl_stream *stream,
                                                  cgl_event *event);
/* With `external`, a record or a wait of the event on a capturing stream is
   external from now on. */
CGL_API void cgl_event_set_external(cgl_event *event, bool external);
/* Waits for the work issued before the event's last record.  Refused with
   CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED inside a capture;
   CUDA_ERROR_CAPTURED_EVENT when the record was part of a capture.
   cuEventSynchronize */
CGL_API cgl_status cgl_event_synchronize(cgl_event *event);
/* *done: that work is done.  Refused likewise.  cuEventQuery */
CGL_API cgl_status cgl_event_query(cgl_event *event, bool *done);
/* *ms: the milliseconds from `from` to `to`.  Both events must have timing, be
   recorded and be done.  cuEventElapsedTime */
CGL_API cgl_status cgl_event_elapsed(cgl_event *from, cgl_event *to, float *ms);
/* The CUevent, borrowed. */
CGL_API void *cgl_event_handle(const cgl_event *event);

#endif
