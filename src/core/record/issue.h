/* The issue door: how every operation goes to the driver.
   Idea: begin checks, enters the context and makes room in the recording of
   the stream's capture, if there is one; then comes the operation's own call
   of the driver; taken turns its answer into a status; use tells of each object
   that the operation needs; end notes the operation.
     begin -> driver -> taken -> use ... -> end
   Invariant: what begin refuses leaves everything as it was; after begin,
   noting cannot fail. */
#ifndef CGL_RECORD_ISSUE_H
#define CGL_RECORD_ISSUE_H

#include "core/record/record.h"

/* Room for one operation. */
typedef struct cgl_room {
  size_t ranges; /* of memory */
  size_t values; /* bytes of arguments */
  size_t kept;   /* objects */
  bool body;
} cgl_room;

typedef struct cgl_issue {
  cgl_stream *stream;
  cgl_recording *recording; /* NULL: the stream does not capture */
  const char *operation;
  uint32_t nranges; /* used so far */
  uint32_t body;    /* from 1: of the recording's bodies; 0: none */
} cgl_issue;

/* What to note of an operation; zero and NULL: the kind has no such thing. */
typedef struct cgl_note {
  cgl_op_kind kind;
  const char *name;         /* static or interned */
  const cgl_launch *launch; /* of kernels */
  CUfunction function;
  cgl_object *object; /* op->object; was used, or is kept otherwise */
  size_t nvalues;     /* bytes, written at cgl_issue_values */
  const void *values; /* or here, and copied */
  bool fills;         /* op->fills */
} cgl_note;

/* Makes room in a recording.  CGL_ERROR_NO_MEMORY */
cgl_status cgl_issue_reserve(cgl_recording *recording, const cgl_room *room,
                             const char *operation);
/* `owner`: an object that must be on the stream's device (NULL: none). */
cgl_status cgl_issue_begin(cgl_issue *issue, cgl_stream *stream,
                           const cgl_object *owner, const char *operation,
                           cgl_room room);
/* Where the recording will have the values, or NULL outside captures. */
unsigned char *cgl_issue_values(const cgl_issue *issue);
/* The driver's answer as a status; a failure is remembered by the capture. */
static inline cgl_status cgl_issue_taken(const cgl_issue *issue,
                                         CUresult result, const char *entry) {
  return result ? cgl_capture_failed(issue->stream, result, issue->operation,
                                     entry)
                : CGL_OK;
}
/* The operation uses an object, and `range` of its memory (NULL: none): the
   recording keeps the object, unless its memory is an allocation of the graph's
   pool, and notes the range.  Nothing outside captures. */
void cgl_issue_use(cgl_issue *issue, cgl_object *object,
                   cgl_allocation *allocation, const cgl_range *range);
/* The operation has the recording of a captured graph as its body. */
void cgl_issue_body(cgl_issue *issue, cgl_recording *body);
/* Notes it; the operation's node when the capture asks for nodes. */
CUgraphNode cgl_issue_end(cgl_issue *issue, const cgl_note *note);
/* Notes an operation that was put into the graph by hand: no stream's. */
void cgl_issue_note_node(cgl_recording *recording, const cgl_note *note,
                         CUgraphNode node);
/* The node of the latest operation, asked for where it is not known yet. */
CUgraphNode cgl_issue_latest_node(const cgl_stream *stream);

#endif
