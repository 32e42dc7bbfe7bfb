/* Libraries that are there, lack a function, or are not there. */
#include "algo/library.h"
#include "tap.h"

#include <string.h>


int main(void) {
  static const char *const math[] = {"libnone.so.1", "libm.so.6", NULL};
  static const char *const none[] = {"libnone.so.1", NULL};
  static const char *const known[] = {"sqrt", "hypot", NULL};
  static const char *const unknown[] = {"sqrt", "square_the_circle", NULL};
  struct {
    double (*sqrt)(double);
    double (*hypot)(double, double);
  } table = {NULL, NULL}, empty = table;
  cgl_algo_library library = {
      .files = math, .title = "Math", .package = "libc6", .symbols = known};
  const cgl_error *error;
  tap_ok(!cgl_algo_library_open(&library, (void **)&table, "test") &&
             table.sqrt(9) == 3 && table.hypot(3, 4) == 5,
         "the first library that is there fills the table");
  library.symbols = unknown;
  tap_ok(!cgl_algo_library_open(&library, (void **)&table, "test") &&
             table.sqrt(9) == 3,
         "a table that is full stays as it is");
  cgl_status status = cgl_algo_library_open(&library, (void **)&empty, "test");
  error = cgl_last_error();
  tap_ok(!empty.sqrt && status == CGL_ERROR_NOT_FOUND &&
             strstr(error->message, "Math has no function square_the_circle") &&
             strstr(error->hint, "libc6"),
         "a missing function is named: %s", error->message);
  library.files = none;
  library.of_toolkit = true;
  status = cgl_algo_library_open(&library, (void **)&empty, "test");
  error = cgl_last_error();
  tap_ok(status == CGL_ERROR_NOT_FOUND && strstr(error->hint, "libc6") &&
             strstr(error->message, "libnone.so.1") &&
             !strcmp(error->operation, "test"),
         "a missing library, and what to install: %s; %s", error->message,
         error->hint);
  return tap_done();
}
