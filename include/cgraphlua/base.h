/* The base of every part: status codes, the thread's last failure, the log, and
   objects with their reference counts. */
#ifndef CGRAPHLUA_BASE_H
#define CGRAPHLUA_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The shared library exports only functions with this mark. */
#ifdef __cplusplus
#define CGL_API extern "C" __attribute__((visibility("default")))
#else
#define CGL_API __attribute__((visibility("default")))
#endif

/* The library's version, "0.1.0", and in `numbers` (may be NULL) its three
   numbers.  The text lives as long as the process. */
CGL_API const char *cgl_version(int numbers[3]);

/* A status: 0 is success, a positive value is the CUDA driver's own code
   (CUresult), a negative value is one of these. */
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
  X(CGL_ERROR_ORDER, -16, "graphs that share a pool, out of order")     \
  X(CGL_ERROR_IN_USE, -17, "the device is in use")                      \
  X(CGL_ERROR_RESTRICTED, -18, "not in a restricted state")             \
  X(CGL_ERROR_INTERRUPTED, -19, "the wait was given up")                \
  X(CGL_ERROR_LIBRARY, -20, "another library refused a call")           \
  X(CGL_ERROR_NO_LIBRARY, -21, "a library was not found")               \
  X(CGL_ERROR_RANKS, -22, "the ranks do not agree")

enum {
  CGL_OK = 0,
#define X(name, code, text) name = code,
  CGL_ERRORS(X)
#undef X
};
typedef int cgl_status;

/* A failure.  Its texts are never NULL, and stay valid until the thread's next
   failure. */
typedef struct cgl_error {
  cgl_status code;
  const char *name;      /* "CUDA_ERROR_...", "CGL_ERROR_..." */
  const char *operation; /* the call that failed, "graph:replay" */
  const char *where;     /* "file:line" of the script that issued it, or "" */
  const char *message;   /* what was wrong, with values */
  const char *hint;      /* what to do, or "" */
  const char *also;      /* what failed afterwards, or "" */
} cgl_error;

/* The last failure of the calling thread, borrowed; never NULL. */
CGL_API const cgl_error *cgl_last_error(void);
/* Forgets the last failure, so that a failure of a clean-up that follows is not
   taken for a consequence of it. */
CGL_API void cgl_clear_error(void);
/* The name of any status, "CUDA_ERROR_..." or "CGL_ERROR_..."; never NULL. */
CGL_API const char *cgl_status_name(cgl_status status);
/* Sets the site of the calling thread, its file and line in its script.  Errors
   and nodes of the calls that follow name the site.  `file` is copied; NULL
   clears the site. */
CGL_API void cgl_set_site(const char *file, int line);
/* The file of the calling thread's site, or NULL.  The text lives as long as
   the process, and cgl_set_site recognizes it by its address. */
CGL_API const char *cgl_site_file(void);

/* What a message of the log is about. */
#define CGL_LOG_LEVELS(X)                                                     \
  X(CGL_LOG_INFO, "info")       /* a choice: there is no GPU */               \
  X(CGL_LOG_WARNING, "warning") /* most likely a mistake: an empty capture */ \
  X(CGL_LOG_ERROR, "error")     /* a callback failed that has no caller */
typedef enum cgl_log_level {
#define X(name, word) name,
  CGL_LOG_LEVELS(X)
#undef X
} cgl_log_level;

/* The word for a level, "warning". */
CGL_API const char *cgl_log_level_name(cgl_log_level level);
/* Sets the process's log: the function that takes messages which are not
   failures.  It is called on the thread that caused the message.  NULL, the
   default, drops messages, but those of Lua scripts' calls, which are printed.
   A context's own log takes what concerns the context (cgl_context_set_log),
   and a script that calls on_log takes what its own state causes; neither
   changes the process's log.  What holds for the process as a whole (there is
   no GPU) is said once. */
typedef void (*cgl_log_function)(void *user, const char *message,
                                 cgl_log_level level);
CGL_API void cgl_set_log(cgl_log_function function, void *user);

typedef struct cgl_context cgl_context; /* one opened device */
typedef struct cgl_stream cgl_stream;
typedef struct cgl_event cgl_event;
typedef struct cgl_buffer cgl_buffer;
typedef struct cgl_pinned cgl_pinned;
typedef struct cgl_module cgl_module;
typedef struct cgl_compilation cgl_compilation; /* of a module */
typedef struct cgl_kernel cgl_kernel;
typedef struct cgl_pool cgl_pool;
typedef struct cgl_graph cgl_graph;
typedef struct cgl_checkpoint cgl_checkpoint; /* of a pool's blocks */
typedef struct cgl_generator cgl_generator;
typedef struct cgl_loop cgl_loop;   /* what a loop reports */
typedef struct cgl_param cgl_param; /* a value that launches read again */
typedef struct cgl_ranks cgl_ranks; /* a group of processes, a device each */

/* Logs a message that concerns a context, or the process (NULL), as the library
   does.  A script that set a log of its own takes what its calls cause; then
   the context's log does, then the process's. */
CGL_API void cgl_log(const cgl_context *context, cgl_log_level level,
                     const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* For bindings of scripting languages: `take` is asked first, and takes the
   message for the log of the script whose call the thread runs, or is asked
   last, after no log took it, and may print it; false: it did neither. */
typedef bool cgl_log_scripts(const char *message, cgl_log_level level,
                             bool last);
CGL_API void cgl_log_serve_scripts(cgl_log_scripts *take);

/* For every object: _retain adds a reference and returns the object; _release
   drops a reference and accepts NULL.  When the last reference is dropped while
   a capture is underway in the process, the object is destroyed after it, so no
   release ever breaks a capture. */
#define CGL_OBJECTS(X) \
  X(context)           \
  X(stream)            \
  X(event)             \
  X(buffer)            \
  X(pinned)            \
  X(module)            \
  X(compilation)       \
  X(kernel)            \
  X(pool) X(graph) X(generator) X(checkpoint) X(loop) X(param) X(ranks)
#define X(noun)                                              \
  CGL_API cgl_##noun *cgl_##noun##_retain(cgl_##noun *noun); \
  CGL_API void cgl_##noun##_release(cgl_##noun *noun);
CGL_OBJECTS(X)
#undef X

#endif
