/* Calls of other libraries: include/cgraphlua/call.h.
   Invariant: an operation of kind CGL_OP_CALL has as its object a captured
   call, which the recording keeps; who builds its node clones that graph. */
#ifndef CGL_CALL_CALL_H
#define CGL_CALL_CALL_H

#include "core/memory/memory.h"

enum { CGL_CALL_RECIPE = 64 };

/* A library whose own memory kernels of the host device read: a plan, or the
   address of a function.  A file has a recipe instead of the address. */
typedef struct cgl_call_library cgl_call_library;
struct cgl_call_library {
  const char *name;
  uint32_t version;              /* of its recipes and kernels */
  const cgl_object_kind *keeper; /* of buffers of such memory */
  /* Writes the recipe of a keeper's memory at the address; its length. */
  size_t (*describe)(const cgl_object *keeper, uint64_t address,
                     unsigned char recipe[CGL_CALL_RECIPE]);
  /* A buffer of what the recipe says, which comes from a file and is not to be
     trusted, for operands of at most so many bytes in all.
     CGL_ERROR_INVALID_ARGUMENT for no recipe, CGL_ERROR_NOT_FOUND without the
     library */
  cgl_status (*make)(cgl_context *context, const unsigned char *recipe,
                     size_t length, uint64_t most, const char *operation,
                     cgl_buffer **memory);
  cgl_call_library *next;
};

/* Adds a library; before main, by rooms above. */
void cgl_call_register(cgl_call_library *library);
/* The library of a name, or with NULL the one that has such keepers; NULL:
   there is none. */
const cgl_call_library *cgl_call_find(const char *name,
                                      const cgl_object_kind *keeper);

/* What a call was captured as. */
typedef struct cgl_call_captured {
  cgl_object object;
  CUgraph graph; /* destroyed with the object */
  bool on_host;
  void *owner; /* of the call; NULL: none, or a user object of the graph, which
                  its clones and their executables hold as well */
  void (*release)(void *owner);
  void *told;                                    /* the owner, for `launched` */
  void (*launched)(void *owner, uint64_t times); /* NULL: it is not told */
} cgl_call_captured;

typedef struct cgl_calls_told {
  const cgl_call_captured **list;
  size_t count;
} cgl_calls_told;

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
/* The calls of a recording, and of bodies in it, whose owners are told of
   launches; borrowed from it.  The caller frees the list. */
cgl_status cgl_call_find_told(const cgl_recording *recording,
                              cgl_calls_told *calls, const char *operation);
static inline void cgl_call_tell(const cgl_calls_told *calls, uint64_t times) {
  for (size_t i = 0; i < calls->count; i++)
    calls->list[i]->launched(calls->list[i]->told, times);
}

#endif
