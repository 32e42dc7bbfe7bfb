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
  void *owner;   /* of the call; NULL: none */
  void (*release)(void *owner);
} cgl_call_captured;

#endif
