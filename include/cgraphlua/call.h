/* Calls of other libraries as operations: cuBLAS, cuFFT, one's own.
   Idea: a library issues work into a CUstream that it is handed.  Outside
   captures that is the stream itself.  In a capture it is a stream beside,
   whose capture becomes one node, a child graph; the recording notes what the
   caller says of it.  So the node has a name and a script line, stands in
   bodies and pictures, is ordered by data, is copied for replay(n), and its
   memory is checked and kept as a kernel's is.  It cannot be changed or
   switched off, because nothing is known of what is inside.
   Invariants: the work touches no memory but what the call names and what its
   owner has; a call that fails leaves the capture whole. */
#ifndef CGRAPHLUA_CALL_H
#define CGRAPHLUA_CALL_H

#include "buffer.h"

/* Memory of a call. */
typedef struct cgl_call_use {
  cgl_buffer *buffer;
  bool write; /* the work may write to it, and read it unless the call
                 overwrites */
} cgl_call_use;

/* Issues the work into a CUstream; 0, or a code of the library.  In a capture
   the stream captures in relaxed mode, and the thread is relaxed, too: what the
   library allocates is no part of the graph.  Must not use the cgl_stream. */
typedef int (*cgl_call_function)(void *user, void *custream);

typedef struct cgl_call {
  const char *name; /* "gemm": lives as long as the process */
  cgl_call_function issue;
  void *user;                   /* for issue */
  const char *(*describe)(int); /* the text of a code; NULL: the number */
  const cgl_call_use *uses;     /* all memory of buffers */
  size_t nuses;                 /* at most CGL_CALL_MAX_USES */
  bool overwrites;              /* nothing of what it writes is read before */
  bool notes;                   /* issue notes its own failures, and answers a
                                   cgl_status */
  bool on_host;                 /* it has functions that the host runs, which
                                   bodies of conditionals refuse.  Then the
                                   owner is held until nothing of it runs, and
                                   released on a thread of the driver's, which
                                   must not call the driver */
  void *owner;                  /* what the work needs besides: a handle, a
                                   plan; NULL: nothing */
  void (*retain)(void *owner);  /* a graph holds the owner from here */
  void (*release)(void *owner); /* to here: no capture is underway */
  /* Told before a replay of graphs that hold the work how often that runs it;
     the body of a conditional counts once.  Must not wait or call the driver.
     NULL: the owner need not know */
  void (*launched)(void *owner, uint64_t times);
} cgl_call;

#define CGL_CALL_MAX_USES 128

/* Issues the call on a stream.  CGL_ERROR_LIBRARY when the library refuses;
   CGL_ERROR_INVALID_ARGUMENT for too many uses.  In a capture
   cuStreamBeginCapture, cuStreamEndCapture, cuGraphAddNode */
CGL_API cgl_status cgl_call_issue(cgl_stream *stream, const cgl_call *call);

#endif
