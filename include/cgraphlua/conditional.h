/* Branches and loops: work that the device decides on.
   Idea: one program serves both cases.  `next` says which body is to be issued
   and on which stream, until there is none left.  Outside a capture it reads
   the value, waiting for the stream, and names the body that is to run now.  In
   a capture it names each body once; what is issued is captured as the body of
   a conditional node, and the device reads the value in every replay.

     cgl_conditional *c;
     status = cgl_conditional_begin(stream, &desc, &c);
     while (!status && !(status = cgl_conditional_next(c, &body, &inner)) &&
            body >= 0)
       status = issue(body, inner);
     status = status ? (cgl_conditional_abandon(c), status)
                     : cgl_conditional_end(c);

   Bodies nest at will.  A body takes kernels, fills, copies on the device and
   with pinned memory, replays of graphs without conditional nodes, draws, and
   conditionals. */
#ifndef CGRAPHLUA_CONDITIONAL_H
#define CGRAPHLUA_CONDITIONAL_H

#include "graph.h"

typedef enum cgl_conditional_kind {
  CGL_CONDITIONAL_WHEN, /* body 0 unless the value is 0, else body 1, if any */
  CGL_CONDITIONAL_SWITCH, /* the body of the value's number, from 0 */
  CGL_CONDITIONAL_LOOP,   /* body 0 while the value, read before each turn, is
                             not 0 */
  CGL_CONDITIONAL_TIMES   /* body 0 as often as the value, read once, says */
} cgl_conditional_kind;

/* How a capture makes it.  A node costs more and takes any body.  The kernels
   of predicated bodies look at a word of device memory before they run. */
typedef enum cgl_conditional_form {
  CGL_CONDITIONAL_AUTOMATIC, /* predicated where that is possible and cheaper */
  CGL_CONDITIONAL_NODE,
  CGL_CONDITIONAL_PREDICATED /* refused where it is not possible */
} cgl_conditional_form;

enum { CGL_CONDITIONAL_MAX = 1 << 20 }; /* turns, if a description names none */

typedef struct cgl_conditional_desc {
  cgl_conditional_kind kind;
  cgl_buffer *value; /* one integer or bool, of the stream's device */
  size_t nbodies;    /* 1 or 2 of a WHEN, 1 of loops; 0: 1 */
  bool otherwise;    /* of a SWITCH: the last body runs for any other value */
  uint64_t max;      /* most turns of a loop; 0: CGL_CONDITIONAL_MAX */
  cgl_conditional_form form; /* in captures */
} cgl_conditional_desc;

typedef struct cgl_conditional cgl_conditional; /* between begin and end */

/* Begins a branch or a loop.  Retains the stream and the value.  In a capture,
   work on the stream is refused while a body is underway.
   CGL_ERROR_INVALID_ARGUMENT for a value or a count of bodies that does not fit
   the kind; CUDA_ERROR_NOT_SUPPORTED in a capture with a driver before CUDA
   12.4, and for several bodies before 13.0. */
CGL_API cgl_status cgl_conditional_begin(cgl_stream *stream,
                                         const cgl_conditional_desc *desc,
                                         cgl_conditional **conditional);
/* Ends the body underway.  *body is the number of the body that is to be issued
   now into *stream (borrowed until the next call), or -1 when there is none
   left.  After a failure the conditional can only be abandoned.
   cuStreamBeginCapture, cuStreamEndCapture */
CGL_API cgl_status cgl_conditional_next(cgl_conditional *conditional, int *body,
                                        cgl_stream **stream);
/* Ends a conditional of which no body is left, and frees it, whatever the
   status.  In a capture, adds the node and builds its bodies, or adds their
   predicated kernels.  CGL_ERROR_INVALID_ARGUMENT, which leaves the capture
   whole, for a form that is not possible.
   cuGraphConditionalHandleCreate, cuGraphAddNode,
   cuStreamUpdateCaptureDependencies */
CGL_API cgl_status cgl_conditional_end(cgl_conditional *conditional);
/* Ends the body underway, whose work is dropped, and frees the conditional.  A
   capture around it goes on without it.  The thread's last failure stays. */
CGL_API void cgl_conditional_abandon(cgl_conditional *conditional);

/* What a loop reports.  The caller of _loop borrows it. */
CGL_API cgl_loop *cgl_conditional_loop(const cgl_conditional *conditional);
/* *turns: how often the body ran when the loop ran last; *exhausted: it stopped
   because of its max.  0 and false before it ran.  Waits for `stream`, on which
   the graph was replayed.  Refused in a capture. */
CGL_API cgl_status cgl_loop_read(cgl_loop *loop, cgl_stream *stream,
                                 uint64_t *turns, bool *exhausted);

#endif
