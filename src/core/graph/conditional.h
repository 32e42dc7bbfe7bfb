/* Branches and loops, inside.
   Idea: in a capture, each body is captured on a stream of its own, which
   gives a recording with edges and nothing else: the driver's graph of that
   capture is thrown away.  At the end, the conditional node goes into the
   capture around by hand, and its bodies are built from their recordings
   (build.h).  In a body, an empty node stands for a conditional node, because
   its graph is built anew with the bodies around.
   Invariants: nothing is put into the capture around before all bodies are
   recorded; `capture` is underway exactly while the capture around names it as
   its `body`, so whoever ends that capture finds it; a handle's kernel is the
   operation right before the conditional one; the nodes that operations of a
   body's recording name are gone. */
#ifndef CGL_GRAPH_CONDITIONAL_H
#define CGL_GRAPH_CONDITIONAL_H

#include "core/graph/build.h"

struct cgl_loop {
  cgl_object object;
  bool eager;
  bool exhausted; /* eager: the result */
  uint64_t turns;
  uint64_t id;       /* unique in the process: the state has it once it ran */
  cgl_buffer *state; /* retained; in a capture: id, turns, exhausted, bound */
};

struct cgl_conditional {
  cgl_conditional_desc desc; /* its value is retained */
  cgl_stream *stream;        /* retained */
  cgl_loop *loop;            /* owned; NULL: no loop */
  uint64_t around;           /* serial of the capture around; 0: eager */
  size_t next;               /* count of bodies named; eager: 1 after the
                                value was read once */
  uint64_t bound;            /* eager: most turns */
  bool over;                 /* `next` has said so */
  bool failed;
  cgl_stream *inner; /* owned: of the bodies; NULL: none yet */
  cgl_capture capture;
  struct cgl_body_graph *graph; /* owned: of the body underway */
  uint64_t pool_before;         /* cgl_pool_body_begins */
  cgl_recording **bodies;       /* owned: desc.nbodies, those captured so far */
  cgl_draw **draws;             /* owned: theirs */
};

/* Abandons the bodies underway in a capture that is abandoned. */
void cgl_conditional_abandon_bodies(cgl_capture *around);

/* ---- loop.c ---- */

/* What a loop of the capture of `stream`, or an eager one, will report. */
cgl_status cgl_loop_create(cgl_stream *stream, const char *operation,
                           cgl_loop **loop);

#endif
