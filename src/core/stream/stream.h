/* Streams and events, and the captures that streams are part of.
   Idea: a capture underway is a set of streams: the origin, and the streams
   that entered it by waiting for an event of the capture. Operations issued
   to them are noted in the capture's recording (record/).
   Invariants: the `capture` of a stream is not NULL from its begin or fork
   until the capture ends; the `capture` of an event is the serial of the
   capture in which it was last recorded.
   Glossary.
   body: of a conditional node: captured on a stream of its own, in the pool of
   the capture around it; that capture takes no work meanwhile.
   fork: the wait by which a stream enters a capture.
   join: a wait of a stream of the capture for the work of a fork.
   engine: another library whose stream or event a script uses.
   shown: of a stream or event: an engine has its handle. */
#ifndef CGL_STREAM_STREAM_H
#define CGL_STREAM_STREAM_H

#include "core/base/base.h"
#include "core/stream/clock.h"

typedef struct cgl_capture cgl_capture;
typedef struct cgl_recording cgl_recording;

struct cgl_stream {
  cgl_object object;
  CUstream handle;
  int priority;         /* CUDA's: lower is more urgent */
  bool owned;           /* destroyed with the object */
  bool shown;           /* others have its handle */
  bool isolated;        /* by cgl_stream_isolate: its launches have deadlines */
  uint64_t serial;      /* unique in the process, from 1 */
  cgl_clock *clock;     /* retained; shared by the default stream's objects */
  cgl_capture *capture; /* borrowed: the capture owns its streams */
  cgl_site forked;      /* of its fork, if any */
  uint64_t issued; /* the capture's count after this stream's last operation */
  bool waited;     /* in the capture, for others, since that operation */
  uint64_t joined; /* the `issued` up to which another stream of it waited */
  cgl_stream *next_in_capture;
};

struct cgl_event {
  cgl_object object;
  CUevent handle;
  bool timing;      /* can measure time */
  bool recorded;    /* at least once */
  bool external;    /* in a capture: nodes instead of forks and joins */
  uint64_t capture; /* serial of the capture of the last record; 0: none */
  uint64_t issued;  /* the recorded stream's `issued` at that record */
  uint64_t stream;  /* serial of the recorded stream */
  cgl_mark mark;    /* what waiting for the event covers */
  bool shown;       /* others may record it: who has its handle, and replays */
};

/* A capture underway, inside its graph. */
struct cgl_capture {
  cgl_underway underway;    /* what the process knows of it */
  cgl_stream *origin;       /* retained until the next capture or reset */
  cgl_stream *forked;       /* retained each; linked by next_in_capture */
  cgl_recording *recording; /* borrowed from the graph */
  cgl_capture *body;  /* of the body underway in it, borrowed; NULL: none */
  cgl_stream *around; /* of a body: the stream that its node is put into,
                         borrowed; else NULL */
  size_t noted;       /* count of operations so far */
  cgl_site latest;    /* of the latest operation */
  bool programmatic;  /* kernels may be launched by programmatic edges */
  bool programmatic_inside; /* and those of its bodies */
  bool watched;     /* an engine may issue work into it: the driver is asked for
                       the node of each operation, because foreign nodes may lie
                       between them */
  size_t unwatched; /* count of operations before that: their nodes are the
                       first of the graph */
  /* Makes nodes of the operations so far, and has none put off any more
     (graph/build.h); NULL: none is.  What fails breaks the capture. */
  CUresult (*catch_up)(cgl_capture *capture);
  struct cgl_order *order; /* record/order.h; made at first use */
  struct cgl_draw *draws;  /* random/random.h */
  bool incomplete; /* the graph lacks a part of what the failed call put in */
  struct {
    cgl_status status; /* 0: no call broke it as far as we know */
    const char *operation;
    cgl_site site;
    char message[256], hint[160];
  } broken;
};

/* ---- event.c ---- */

/* When the capture in which the event was last recorded is over, a replay or
   another library may have recorded it since: then it stands for a moment
   again.  The context is current.  cuEventQuery */
void cgl_event_learn(cgl_event *event);

/* ---- capture.c ---- */

/* The driver's state of a stream's capture; valid until the next call for that
   stream. */
typedef struct cgl_captured {
  CUgraph graph;            /* under construction */
  const CUgraphNode *nodes; /* dependencies of the next operation */
  const CUgraphEdgeData *edges;
  size_t count;
} cgl_captured;

/* The stream's operations are nodes from now on, if it captures.  Before the
   driver is called for a stream that may capture, but by those that put their
   call off (record/issue.h). */
static inline CUresult cgl_capture_catch_up(const cgl_stream *stream) {
  cgl_capture *capture = stream->capture;
  return capture && capture->catch_up ? capture->catch_up(capture)
                                      : CUDA_SUCCESS;
}
/* After catching up.  CUDA_ERROR_STREAM_CAPTURE_INVALIDATED also where no
   capture is underway.  cuStreamGetCaptureInfo */
CUresult cgl_capture_ask(const cgl_stream *stream, cgl_captured *captured);
/* The node that the stream's last operation became, or NULL. */
CUgraphNode cgl_capture_last_node(const cgl_stream *stream);
/* Whether the stream captures; asks the driver about an engine's stream.
   cuStreamIsCapturing */
bool cgl_capture_has(const cgl_stream *stream);
/* From now on an engine may issue work into the capture. */
void cgl_capture_watch(cgl_capture *capture);
/* The thread's failure broke the capture, unless another did before. */
void cgl_capture_note_broken(cgl_capture *capture, const char *operation);
/* Turns a driver's failure of an operation on `stream` into the thread's
   failure, and remembers the first that broke the stream's capture. */
cgl_status cgl_capture_failed(cgl_stream *stream, CUresult result,
                              const char *operation, const char *entry);
/* Fails with CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, naming what broke the
   capture. */
cgl_status cgl_capture_fail_broken(const cgl_capture *capture,
                                   const char *operation);
/* Refuses an operation that cannot be part of a capture, on a stream that
   captures; CGL_OK otherwise. */
cgl_status cgl_capture_refuse(const cgl_stream *stream, const char *operation,
                              const char *why, const char *hint);
/* Refuses an operation on a stream that captures around a body underway. */
cgl_status cgl_capture_check_open(const cgl_stream *stream,
                                  const char *operation);
/* The stream is part of the capture from now on: as its origin (retained by
   the caller), or by a fork. */
void cgl_capture_begin(cgl_capture *capture, cgl_stream *origin);
void cgl_capture_fork(cgl_capture *capture, cgl_stream *stream);
/* The capture is over: its streams leave it. */
void cgl_capture_free_streams(cgl_capture *capture);
/* stream:wait(event): refuses waits that would break a capture; *joins gets
   the capture that the stream enters, or NULL. */
cgl_status cgl_capture_check_wait(cgl_stream *stream, cgl_event *event,
                                  const char *operation, cgl_capture **joins);
/* The same for a node that waits: an event whose record in another capture is
   its last has, once that capture is over, no moment to wait for. */
cgl_status cgl_capture_check_external_wait(const cgl_stream *stream,
                                           cgl_event *event,
                                           const char *operation);
/* The event was recorded on the stream, or the stream waits for it. */
void cgl_capture_note_record(const cgl_stream *stream, cgl_event *event);
void cgl_capture_note_wait(cgl_stream *stream, const cgl_event *event);
/* "stream (forked at file:line); ..." of the forks that were never joined. */
void cgl_capture_name_unjoined(const cgl_capture *capture, char *text,
                               size_t size);

#endif
