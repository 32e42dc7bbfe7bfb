/* The log: who takes a message that is no failure. */
#include "core/base/base.h"

#include <stdarg.h>

#include "compile/base/base.h"

enum { TEXT_ROOM = 1024 };

static pthread_mutex_t log_lock = PTHREAD_MUTEX_INITIALIZER;
CGL_FORK_HOLDS(log_lock)
static cgl_log_receiver process; /* under log_lock, as those of contexts */
static cgl_log_scripts *scripts; /* likewise; NULL: no Lua state was open */

static const char *const level_names[] = {
#define X(name, word) word,
    CGL_LOG_LEVELS(X)
#undef X
};


const char *cgl_log_level_name(cgl_log_level level) {
  return level_names[level];
}


void cgl_log_serve_scripts(cgl_log_scripts *take) {
  pthread_mutex_lock(&log_lock);
  scripts = take;
  pthread_mutex_unlock(&log_lock);
}


void cgl_set_log(cgl_log_function function, void *user) {
  pthread_mutex_lock(&log_lock);
  process = (cgl_log_receiver){function, user};
  pthread_mutex_unlock(&log_lock);
}


void cgl_context_set_log(cgl_context *context, cgl_log_function function,
                         void *user) {
  pthread_mutex_lock(&log_lock);
  context->log = (cgl_log_receiver){function, user};
  pthread_mutex_unlock(&log_lock);
}


void cgl_log(const cgl_context *context, cgl_log_level level,
             const char *format, ...) {
  char text[TEXT_ROOM];
  va_list args;
  va_start(args, format);
  cgl_format_into(text, sizeof text, format, args);
  va_end(args);
  pthread_mutex_lock(&log_lock);
  cgl_log_scripts *take = scripts;
  const cgl_log_receiver to =
      context && context->log.function ? context->log : process;
  pthread_mutex_unlock(&log_lock);
  if (take && take(text, level, !to.function))
    return;
  if (to.function)
    to.function(to.user, text, level);
}
