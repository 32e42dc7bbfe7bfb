/* Test Anything Protocol for the C tests: one line per check, a plan at the
   end, and an exit code.  Thread-safe.  Only for spec/. */
#ifndef CGL_SPEC_TAP_H
#define CGL_SPEC_TAP_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

static pthread_mutex_t tap_lock = PTHREAD_MUTEX_INITIALIZER;
static int tap_count, tap_failed;

/* One check with a name; returns `passed`. */
__attribute__((format(printf, 2, 3))) static inline bool
tap_ok(bool passed, const char *format, ...) {
  va_list args;
  va_start(args, format);
  pthread_mutex_lock(&tap_lock);
  tap_failed += !passed;
  printf("%s %d - ", passed ? "ok" : "not ok", ++tap_count);
  vprintf(format, args);
  putchar('\n');
  fflush(stdout);
  pthread_mutex_unlock(&tap_lock);
  va_end(args);
  return passed;
}

static inline void tap_skip(const char *name, const char *why) {
  pthread_mutex_lock(&tap_lock);
  printf("ok %d - %s # SKIP %s\n", ++tap_count, name, why);
  pthread_mutex_unlock(&tap_lock);
}

/* Prints the plan; the value is main's. */
static inline int tap_done(void) {
  printf("1..%d\n", tap_count);
  return tap_failed != 0;
}

#endif
