/* Calls of other libraries: include/cgraphlua/call.h.
   Invariant: an operation of kind CGL_OP_CALL has as its object a captured
   call, which the recording keeps; who builds its node clones that graph. */
#ifndef CGL_CALL_CALL_H
#define CGL_CALL_CALL_H

#include "core/memory/memory.h"

/* What a call was captured as. */
typedef struct cgl_call_captured {
  cgl_object object;
  CUgraph graph; /* destroyed with the object */
  bool on_host;
  void *owner; /* of the call; NULL: none, or a user object of the graph, which
                  its clones and their executables hold as well */
  void (*release)(void *owner);
} cgl_call_captured;

/* What cgl_call_issue checks at first. */
cgl_status cgl_call_check(cgl_stream *stream, const cgl_call *call);
/* cgl_call_issue of an object, which the recording keeps. */
cgl_status cgl_call_issue_for(cgl_object *object, cgl_stream *stream,
                              const cgl_call *call);
/* Refuses what the host runs in the body of a conditional.
   CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED */
cgl_status cgl_call_check_host(const cgl_stream *stream, const char *operation);
/* Whether the host runs something of a recording, or of a body in it. */
bool cgl_call_is_on_host(const cgl_recording *recording);

#endif
