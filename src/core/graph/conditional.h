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
   body's recording name are gone.
   Predicated bodies (predicated.c) are recorded likewise; then their kernels go
   into the capture around, those of a loop into a second capture of its
   body. */
#ifndef CGL_GRAPH_CONDITIONAL_H
#define CGL_GRAPH_CONDITIONAL_H

#include "core/graph/build.h"

struct cgl_loop {
  cgl_object object;
  bool eager;
  bool exhausted; /* eager: the result */
  uint64_t turns;
  uint64_t id;       /* unique in the process: the state has it once it ran */
  cgl_buffer *state; /* retained; in a capture: what set_conditional writes
                        (random/fills.cu) */
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
  cgl_buffer *words; /* retained: of a branch, what predicated bodies look at;
                        NULL: they cannot be predicated */
  uint32_t turns;    /* of a loop, predicated ones that the body has; 0: it just
                        runs */
};

/* What the kernels that read the value are told of its type: its bytes, plus 16
   for a sign. */
uint64_t cgl_conditional_type_code(const cgl_conditional *conditional);

/* Launches one thread of a kernel that reads the value and writes `writes` (or
   NULL), into `stream`, which captures.  `note` has the operation's handle and
   predication. */
cgl_status cgl_conditional_issue(const cgl_conditional *conditional,
                                 cgl_stream *stream, cgl_fill fill,
                                 void **params, size_t n, cgl_buffer *writes,
                                 cgl_note note, const char *operation);

/* Abandons the bodies underway in a capture that is abandoned. */
void cgl_conditional_abandon_bodies(cgl_capture *around);

/* ---- loop.c ---- */

/* What a loop of the capture of `stream`, or an eager one, will report. */
cgl_status cgl_loop_create(cgl_stream *stream, const char *operation,
                           cgl_loop **loop);

/* ---- predicated.c ---- */

/* Whether the bodies can be predicated. */
typedef struct cgl_predicated_refusal {
  const char *why;  /* static; NULL: they can */
  const cgl_op *op; /* the operation that cannot, borrowed from its body */
} cgl_predicated_refusal;

/* Compiles and loads second forms; nothing is put into the capture. */
cgl_status cgl_predicated_check(const cgl_conditional *conditional,
                                const char *operation,
                                cgl_predicated_refusal *refusal);
/* Whether bodies that can be predicated cost less so than as a node. */
bool cgl_predicated_pays(const cgl_conditional *conditional);
/* Fails with the reason. */
cgl_status cgl_predicated_refuse(const cgl_predicated_refusal *refusal,
                                 const char *operation);
/* Puts the bodies of a branch into the capture around.
   cuGraphAddNode, cuStreamUpdateCaptureDependencies */
cgl_status cgl_predicated_issue_branch(const cgl_conditional *conditional,
                                       const char *operation);
/* How many turns the body of a loop is to have. */
uint32_t cgl_predicated_turns(const cgl_conditional *conditional);
/* Puts so many turns of a loop's body into a stream that captures.  The same
   driver calls. */
cgl_status cgl_predicated_issue_turns(const cgl_conditional *conditional,
                                      cgl_stream *stream,
                                      const cgl_recording *body, uint32_t turns,
                                      const char *operation);

#endif
