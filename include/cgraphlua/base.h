/* What every part stands on: status codes, the last failure, the log, and the
   objects with their reference counts. */
#ifndef CGRAPHLUA_BASE_H
#define CGRAPHLUA_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Only these functions leave the shared library. */
#ifdef __cplusplus
#define CGL_API extern "C" __attribute__((visibility("default")))
#else
#define CGL_API __attribute__((visibility("default")))
#endif

/* 0: success.  Positive: the CUDA driver's own code (CUresult).  Negative: one
   of these. */
#define CGL_ERRORS(X)                                                   \
  X(CGL_ERROR_INVALID_ARGUMENT, -1, "invalid argument")                 \
  X(CGL_ERROR_RELEASED, -2, "the object was released")                  \
  X(CGL_ERROR_NO_MEMORY, -3, "out of host memory")                      \
  X(CGL_ERROR_NO_DEVICE, -4, "no such device")                          \
  X(CGL_ERROR_WRONG_DEVICE, -5, "the object belongs to another device") \
  X(CGL_ERROR_COMPILE, -6, "the kernel source does not compile")        \
  X(CGL_ERROR_NO_COMPILER, -7, "no compiler was found")                 \
  X(CGL_ERROR_ARGUMENT_COUNT, -8, "wrong number of kernel arguments")   \
  X(CGL_ERROR_ARGUMENT_TYPE, -9, "wrong type of a kernel argument")     \
  X(CGL_ERROR_ARGUMENT_RANGE, -10, "a kernel argument is out of range") \
  X(CGL_ERROR_CAPTURE_STATE, -11, "not in this state of a capture")     \
  X(CGL_ERROR_NOT_CAPTURED, -12, "the graph holds no capture")          \
  X(CGL_ERROR_NOT_FOUND, -13, "not found")                              \
  X(CGL_ERROR_SYSTEM, -14, "a system call failed")                      \
  X(CGL_ERROR_HOOK, -15, "a hook failed")                               \
  X(CGL_ERROR_ORDER, -16, "graphs that share a pool, out of order")

enum {
  CGL_OK = 0,
#define X(name, code, text) name = code,
  CGL_ERRORS(X)
#undef X
};
typedef int cgl_status;

/* The last failure of the calling thread; texts are never NULL and stay valid
   until the thread's next failure. */
typedef struct cgl_error {
  cgl_status code;
  const char *name;      /* "CUDA_ERROR_...", "CGL_ERROR_..." */
  const char *operation; /* the call that failed, "graph:replay" */
  const char *where;     /* "file:line" that issued it, or "" */
  const char *message;   /* what was wrong, with values */
  const char *hint;      /* what to do, or "" */
  const char *also;      /* what failed afterwards, or "" */
} cgl_error;

CGL_API const cgl_error *cgl_last_error(void);
/* Forgets it: what fails next during a clean-up is no consequence of it. */
CGL_API void cgl_clear_error(void);
/* "CUDA_ERROR_..." or "CGL_ERROR_..." of any status; never NULL. */
CGL_API const char *cgl_status_name(cgl_status status);
/* Where the calling thread is in its script, noted by every call that follows;
   `file` is copied.  NULL: nowhere. */
CGL_API void cgl_set_site(const char *file, int line);
/* The file of it, or NULL: a copy that lives as long as the process, which
   cgl_set_site knows again by its address. */
CGL_API const char *cgl_site_file(void);
/* Messages that are not failures (an empty capture, a cache that cannot be
   written); NULL restores silence.  Called on the thread that caused it. */
typedef void (*cgl_log_function)(void *user, const char *message);
CGL_API void cgl_set_log(cgl_log_function function, void *user);

typedef struct cgl_context cgl_context; /* one opened device */
typedef struct cgl_stream cgl_stream;
typedef struct cgl_event cgl_event;
typedef struct cgl_buffer cgl_buffer;
typedef struct cgl_pinned cgl_pinned;
typedef struct cgl_module cgl_module;
typedef struct cgl_kernel cgl_kernel;
typedef struct cgl_pool cgl_pool;
typedef struct cgl_graph cgl_graph;
typedef struct cgl_checkpoint cgl_checkpoint; /* of a pool */
typedef struct cgl_generator cgl_generator;

/* Every object: _retain adds a reference and returns it, _release drops one
   (NULL is fine).  The last release of an object during a capture only hands
   it over for later, so no release ever breaks a capture. */
#define CGL_OBJECTS(X) \
  X(context)           \
  X(stream)            \
  X(event)             \
  X(buffer)            \
  X(pinned) X(module) X(kernel) X(pool) X(graph) X(generator) X(checkpoint)
#define X(noun)                                              \
  CGL_API cgl_##noun *cgl_##noun##_retain(cgl_##noun *noun); \
  CGL_API void cgl_##noun##_release(cgl_##noun *noun);
CGL_OBJECTS(X)
#undef X

#endif
