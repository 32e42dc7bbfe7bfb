/* The issue door: how every operation goes to the driver.
   Idea: begin checks, enters the context and makes room in the recording of the
   stream's capture, if any; the operation calls the driver; taken makes a
   status of the result; use keeps each object that the operation needs; end
   notes the operation. begin -> driver -> taken -> use ... -> end
   Programmatic edges order as full edges do: a kernel that waits
   (compile/source.h) is behind the end of the kernel before it, and sees what
   that one wrote; when that one waits too, the same holds of all before it, up
   to an edge that is full.  A launch gets one when its kernel waits and its one
   dependency is a launch of a kernel that waits; and, lest blocks that wait
   take the place of blocks that work, one whose blocks fit the device at once.
   Invariants: a begin that fails changes nothing; after begin, noting cannot
   fail; every kernel behind a programmatic edge waits. */
#ifndef CGL_RECORD_ISSUE_H
#define CGL_RECORD_ISSUE_H

#include "core/record/record.h"

/* Room for one operation. */
typedef struct cgl_room {
  size_t ranges; /* of memory */
  size_t values; /* bytes of arguments */
  size_t kept;   /* objects */
  size_t bodies;
  size_t uses; /* of parameters */
  bool late;   /* the operation calls the driver unless cgl_issue_is_late, or
                  not at all */
} cgl_room;

/* Numbers of an operation that may be parameters. */
typedef struct cgl_ruled {
  const cgl_rule *rule; /* NULL: no parameter is among them */
  cgl_numbers numbers;
  cgl_param *params[CGL_NUMBERS]; /* NULL: a number that stays */
} cgl_ruled;

typedef struct cgl_issue {
  cgl_stream *stream;
  cgl_recording *recording; /* NULL: the stream does not capture */
  const char *operation;
  uint32_t nranges, nuses; /* used so far */
  uint32_t body;           /* from 1: the first of its bodies; 0: none */
  uint32_t nbodies;
  bool waits, fits, programmatic; /* as of the operation */
} cgl_issue;

/* What the launches of a kernel have to know of it. */
typedef struct cgl_waiter {
  bool waits;
  atomic_uint_fast64_t fits[4]; /* shapes asked last, and how many blocks of
                                   them a multiprocessor holds (issue.c) */
} cgl_waiter;

/* What to note of an operation; zero and NULL: the kind has no such thing. */
typedef struct cgl_note {
  cgl_op_kind kind;
  const char *name;         /* static or interned */
  const cgl_launch *launch; /* of kernels */
  CUfunction function;
  cgl_object *object;          /* op->object; the recording keeps it already */
  size_t nvalues;              /* bytes of arguments */
  const void *values;          /* copied; NULL: written at cgl_issue_values */
  bool fills, follows;         /* op->fills, op->follows */
  cgl_handle handle;           /* op->handle */
  cgl_predication predication; /* op->predication */
  const cgl_rule *rule;        /* op->rule */
} cgl_note;

/* Makes room in a recording.  CGL_ERROR_NO_MEMORY */
cgl_status cgl_issue_reserve(cgl_recording *recording, const cgl_room *room,
                             const char *operation);
/* `owner`: an object that must be on the stream's device (NULL: none). */
cgl_status cgl_issue_begin(cgl_issue *issue, cgl_stream *stream,
                           const cgl_object *owner, const char *operation,
                           const cgl_room *room);
/* The recording's room for the values; NULL outside captures. */
unsigned char *cgl_issue_values(const cgl_issue *issue);
/* The driver's result as a status; the capture notes a failure, and the context
   notes the work outside captures. */
static inline cgl_status cgl_issue_taken(const cgl_issue *issue,
                                         CUresult result, const char *entry) {
  if (!issue->recording)
    cgl_context_note_work(issue->stream->object.context);
  return result ? cgl_capture_failed(issue->stream, result, issue->operation,
                                     entry)
                : CGL_OK;
}
/* In a capture whose nodes are made when it ends: the operation is noted, and
   the driver is not called. */
static inline bool cgl_issue_is_late(const cgl_issue *issue) {
  return issue->recording && issue->stream->capture->catch_up;
}
/* Launches a kernel, by a programmatic edge where the capture may; its result
   as cgl_issue_taken.  cuLaunchKernel, cuLaunchKernelEx */
cgl_status cgl_issue_launch(cgl_issue *issue, CUfunction function,
                            const cgl_launch *launch, cgl_waiter *waiter,
                            void **params);
/* The operation is a copy of one of a body, whose second form waits as its
   first does; `first`: it follows what the stream follows, and else the same
   operations of the body. */
void cgl_issue_launch_of(cgl_issue *issue, const cgl_op *op, bool first);
/* Adds a clone of a graph as a node after what the stream follows, by hand; the
   result as cgl_issue_taken.  cuGraphAddNode,
   cuStreamUpdateCaptureDependencies */
cgl_status cgl_issue_child(const cgl_issue *issue, CUgraph child,
                           CUgraphNode *node);
/* The parameters of such a node. */
void cgl_issue_child_params(CUgraphNodeParams *params, CUgraph child);
/* The operation uses an object, and `range` of its memory (NULL: none), which
   is of `allocation` (NULL: no capture allocated it).  The recording notes the
   range, and keeps the object unless the range is planned; an input's range has
   another number than 0.  Nothing outside captures. */
void cgl_issue_use(cgl_issue *issue, cgl_object *object,
                   cgl_allocation *allocation, const cgl_range *range);
/* Bytes of the operation's values are a parameter's, which the recording keeps.
   Nothing outside captures. */
void cgl_issue_use_param(cgl_issue *issue, const cgl_param_use *use);
/* Number `i` of the operation is a parameter, or with NULL a number, which
   `rule` has the rest follow from.  CGL_ERROR_ARGUMENT_TYPE */
cgl_status cgl_issue_set_number(cgl_ruled *ruled, size_t i,
                                const cgl_rule *rule, cgl_param *param,
                                double number, const char *operation);
/* In a capture, with a rule: adds the numbers to the values at
   cgl_issue_values, and the uses of parameters, number `i` as argument
   `argument + i`. */
void cgl_issue_rule(cgl_issue *issue, cgl_note *note, const cgl_ruled *ruled,
                    uint16_t argument);


/* The operation has the recording of a captured graph as its body. */
void cgl_issue_body(cgl_issue *issue, cgl_recording *body);
/* The operation, in a capture, has these recordings, which no other operation
   has, as its bodies. */
void cgl_issue_bodies(cgl_issue *issue, cgl_recording *const *bodies, size_t n);
/* Notes the operation; returns its node when the capture is watched, else
   NULL. */
CUgraphNode cgl_issue_end(cgl_issue *issue, const cgl_note *note);
/* Keeps all that another recording keeps. */
cgl_status cgl_issue_adopt(cgl_stream *stream, const cgl_recording *from,
                           const char *operation);
/* The operation touches the memory of an operation of another recording, whose
   objects were adopted, and has its values and uses of parameters. */
void cgl_issue_use_of(cgl_issue *issue, const cgl_recording *from,
                      const cgl_op *op);
/* Notes an operation of a body in the capture around it: with the script line,
   priority and annotations of `op`, and without a node. */
void cgl_issue_end_of(cgl_issue *issue, const cgl_note *note, const cgl_op *op);
/* The latest operation became a node that was added by hand. */
void cgl_issue_set_node(cgl_recording *recording, CUgraphNode node);
/* Notes an operation that was put into the graph by hand, a kernel of one
   block: no stream's. */
void cgl_issue_note_node(cgl_recording *recording, const cgl_note *note,
                         CUgraphNode node);
/* The node of the latest operation; asks the driver when it is not known. */
CUgraphNode cgl_issue_latest_node(const cgl_stream *stream);

#endif
