/* What programs that embed the library do to PATH and to SIGCHLD does not
   matter to a compile for the host device, and a cached image needs no
   compiler. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compile/compile.h"
#include "tap.h"

static atomic_int reaped;


/* "anew", "cached", "refused" or another word for what came of it. */
static const char *compile(const char *text) {
  cgl_source source = {.text = text, .length = strlen(text), .file = "k.cu"};
  const cgl_target target = {.format = CGL_IMAGE_HOST, .sm = 90};
  cgl_image *image = NULL;
  char *message = NULL;
  cgl_compile_status status = cgl_compile(&target, &source, &image, &message);
  const char *word = status == CGL_COMPILE_OK
                         ? image->cached ? "cached" : "anew"
                     : status == CGL_COMPILE_REFUSED     ? "refused"
                     : status == CGL_COMPILE_NO_COMPILER ? "no compiler"
                                                         : "failed";
  if (status && !(message && strstr(message, "undeclared")))
    printf("# %s\n", message ? message : "no message");
  cgl_image_free(image);
  free(message);
  return word;
}


/* Compiles what is right, and what the compiler refuses. */
static void check(const char *what) {
  static int number;
  char text[128];
  snprintf(text, sizeof text,
           "extern \"C\" __global__ void k(float *x) { x[0] = %d; }", ++number);
  const char *right = compile(text);
  tap_ok(!strcmp(right, "anew"), "%s: compiled: %s", what, right);
  const char *wrong =
      compile("extern \"C\" __global__ void k(float *x) { x[0] = nothing; }");
  tap_ok(!strcmp(wrong, "refused"), "%s: refused: %s", what, wrong);
}


static void on_child(int number) {
  (void)number;
  while (waitpid(-1, NULL, WNOHANG) > 0)
    atomic_fetch_add(&reaped, 1);
}


static void check_signals(void) {
  struct sigaction ignored = {.sa_handler = SIG_IGN};
  struct sigaction unwaited = {.sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT};
  struct sigaction reaper = {.sa_handler = on_child};
  struct sigaction former;
  sigaction(SIGCHLD, &ignored, &former);
  check("SIGCHLD ignored");
  sigaction(SIGCHLD, &unwaited, NULL);
  check("SIGCHLD without zombies");
  sigaction(SIGCHLD, &reaper, NULL);
  check("a handler that waits for all children");
  printf("# the handler took %d of our children\n", atomic_load(&reaped));
  sigaction(SIGCHLD, &former, NULL);
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  check("all signals blocked");
  sigprocmask(SIG_SETMASK, &before, NULL);
}


static void check_path(void) {
  static const char text[] = "extern \"C\" __global__ void p(int *x) {}";
  unsetenv("PATH");
  check("no PATH");
  setenv("CGRAPHLUA_CXX", "c++", 1);
  check("no PATH, a compiler by its name");
  unsetenv("CGRAPHLUA_CXX");
  setenv("PATH", "", 1);
  check("an empty PATH");
  const char *first = compile(text);
  setenv("PATH", "/nonexistent", 1);
  const char *second = compile(text);
  tap_ok(!strcmp(first, "anew") && !strcmp(second, "cached"),
         "an image is cached, and taken where no compiler is: %s, %s", first,
         second);
}


int main(void) {
  char folder[] = "/tmp/cgraphlua-embedded-XXXXXX";
  char command[64];
  if (!mkdtemp(folder))
    return 77;
  setenv("CGRAPHLUA_CACHE", folder, 1);
  unsetenv("CGRAPHLUA_CXX");
  setenv("PATH", "/usr/local/bin:/usr/bin:/bin", 1);
  snprintf(command, sizeof command, "rm -rf %s", folder);
  if (!strcmp(compile("int x;"), "no compiler")) {
    tap_skip("compiles", "no C++ compiler is in the usual folders");
    return system(command) || tap_done();
  }
  check("a plain program");
  check_signals();
  check_path();
  setenv("PATH", "/usr/bin:/bin", 1);
  int left = system(command);
  tap_ok(left == 0, "the cache goes");
  return tap_done();
}
