/* How a thread keeps data of its own.
   Idea: a library that is opened late gets its thread-local storage from what
   the program's loader set aside, which is little.  So a room has one pointer
   there, to memory that is made when a thread first needs it, and only what is
   read in every call stands beside it.
   Invariant: all variables marked CGL_THREAD_LOCAL are less than 64 bytes
   together (spec/lua/load_spec.lua).  */
#ifndef CGL_DRIVER_THREAD_H
#define CGL_DRIVER_THREAD_H

#include <features.h>

/* At a fixed distance from the thread's own address: read without a call. Other
   C libraries do not open such libraries late. */
#if defined __GLIBC__ && !defined CGL_DYNAMIC_TLS
#define CGL_THREAD_LOCAL \
  _Thread_local __attribute__((tls_model("initial-exec")))
#else
#define CGL_THREAD_LOCAL _Thread_local
#endif

/* Memory of one thread lies apart from any other's: two that write to one cache
   line slow each other down. */
#define CGL_THREAD_APART _Alignas(128)

#endif
