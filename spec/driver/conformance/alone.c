/* Questions in a process of their own: this program called again for one row,
   whose answers come back through a pipe.  What becomes of the process is an
   answer too. */
#include "driver/conformance/ask.h"

#include <errno.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const question *asked;


/* Starts the program with `out` as its descriptor 3.  Its standard output goes
   where errors go: a driver prints there when an assertion fails. */
static pid_t start(int out) {
  char *argv[] = {"conformance", "--device",          (char *)row_device,
                  "--alone",     (char *)asked->name, NULL};
  posix_spawn_file_actions_t actions;
  pid_t child = -1;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out, 3);
  const char *self = "/proc/self/exe";
  if (access(self, X_OK) != 0) /* no /proc */
    self = program_invocation_name;
  if (posix_spawn(&child, self, &actions, NULL, argv, environ) != 0)
    child = -1;
  posix_spawn_file_actions_destroy(&actions);
  return child;
}


static void read_notes(int in) {
  char notes[8192];
  size_t used = 0;
  ssize_t n;
  while (used < sizeof notes - 1 &&
         (n = read(in, notes + used, sizeof notes - 1 - used)) > 0)
    used += (size_t)n;
  notes[used] = '\0';
  row_take(notes);
}


static void relay(void) {
  int ends[2], status = 0;
  if (pipe(ends) != 0) {
    num("no pipe", 1);
    return;
  }
  pid_t child = start(ends[1]);
  close(ends[1]);
  read_notes(ends[0]);
  close(ends[0]);
  if (child == -1 || waitpid(child, &status, 0) != child)
    num("no process", 1);
  else if (WIFSIGNALED(status))
    num("ended by signal", WTERMSIG(status));
  else if (WEXITSTATUS(status) != 0)
    num("exit status", WEXITSTATUS(status));
}


void row_list_alone(const question *questions, size_t count) {
  for (size_t i = 0; i < count; i++) {
    asked = &questions[i];
    row(row_alone != NULL ? asked->ask : relay, "%s", asked->name);
  }
}
