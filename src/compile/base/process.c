#define _GNU_SOURCE
#include "compile/base/base.h"
#include "driver/thread.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static CGL_THREAD_LOCAL cgl_process_stop *guard; /* of the thread's children */


/* Where programs are looked for: servers run with no PATH or an empty one. */
static const char *search_path(void) {
  const char *path = getenv("PATH");
  return path && *path ? path : "/usr/local/bin:/usr/bin:/bin";
}


void cgl_process_guard(cgl_process_stop *stop) {
  guard = stop;
}


void cgl_process_end(cgl_process_stop *stop) {
  pthread_mutex_lock(&stop->lock);
  stop->stopped = true;
  if (stop->child)
    kill(-stop->child, SIGTERM);
  pthread_mutex_unlock(&stop->lock);
}


/* Our environment with LC_ALL=C, so that messages are in plain ASCII, and with
   a PATH, in which a compiler looks for its linker. */
static char **plain_environment(char **path) {
  size_t n = 0;
  while (environ && environ[n])
    n++;
  char **list = malloc((n + 3) * sizeof *list);
  *path = cgl_format("PATH=%s", search_path());
  if (!list || !*path) {
    free(list);
    free(*path);
    return NULL;
  }
  size_t k = 0;
  list[k++] = "LC_ALL=C";
  list[k++] = *path;
  for (size_t i = 0; i < n; i++)
    if (strncmp(environ[i], "LC_ALL=", 7) && strncmp(environ[i], "PATH=", 5))
      list[k++] = environ[i];
  list[k] = NULL;
  return list;
}


/* `input` below zero: /dev/null. */
static int spawn_child(char *const argv[], int input, int output, pid_t *pid) {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t none, all;
  char *path, *program = cgl_process_find(argv[0]);
  if (!program)
    return errno == EACCES ? EACCES : ENOENT;
  char **environment = plain_environment(&path);
  if (!environment) {
    free(program);
    return ENOMEM;
  }
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawn_file_actions_init(&files);
  if (input < 0)
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
  else
    posix_spawn_file_actions_adddup2(&files, input, 0);
  posix_spawn_file_actions_adddup2(&files, output, 1);
  posix_spawn_file_actions_adddup2(&files, output, 2);
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(
      &attributes, (short)(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                           (guard ? POSIX_SPAWN_SETPGROUP : 0)));
  int error = posix_spawn(pid, program, &files, &attributes, argv, environment);
  posix_spawn_file_actions_destroy(&files);
  posix_spawnattr_destroy(&attributes);
  free(environment);
  free(path);
  free(program);
  return error;
}


/* The same, unless the thread's guard was stopped. */
static int start_child(char *const argv[], int input, int output, pid_t *pid) {
  if (!guard)
    return spawn_child(argv, input, output, pid);
  pthread_mutex_lock(&guard->lock);
  int error =
      guard->stopped ? ECANCELED : spawn_child(argv, input, output, pid);
  if (!error)
    guard->child = *pid;
  pthread_mutex_unlock(&guard->lock);
  return error;
}


/* Waits for the child's end.  The guard forgets it before its number can be
   another process's.  0, or -1 with errno. */
static int await_child(pid_t pid, int *status) {
  siginfo_t info;
  int lost = 0;
  while (guard && (lost = waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT)) &&
         errno == EINTR)
    continue;
  if (guard) {
    pthread_mutex_lock(&guard->lock);
    guard->child = 0;
    pthread_mutex_unlock(&guard->lock);
  }
  while (!lost && waitpid(pid, status, 0) < 0)
    if (errno != EINTR)
      lost = -1;
  return lost;
}


/* A file without a name that holds the text, to be read from its start. */
static int open_input(const cgl_text *text) {
  int file = memfd_create("input", MFD_CLOEXEC);
  for (size_t at = 0; file >= 0 && at < text->length;) {
    ssize_t n = pwrite(file, text->data + at, text->length - at, (off_t)at);
    at += n > 0 ? (size_t)n : 0;
    if (n < 0 && errno != EINTR) {
      close(file);
      return -1;
    }
  }
  return file;
}


int cgl_process_run(char *const argv[], const cgl_text *input, cgl_text *log) {
  int ends[2], status, file = -1;
  pid_t pid;
  if (input && (file = open_input(input)) < 0)
    return -1;
  int error = pipe2(ends, O_CLOEXEC) ? errno : 0;
  if (!error) {
    error = start_child(argv, file, ends[1], &pid);
    close(ends[1]);
    if (error)
      close(ends[0]);
  }
  if (file >= 0)
    close(file);
  if (error) {
    errno = error;
    return -1;
  }
  char block[4096];
  for (;;) {
    ssize_t n = read(ends[0], block, sizeof block);
    if (n > 0)
      cgl_text_add(log, block, (size_t)n);
    else if (n == 0 || errno != EINTR)
      break;
  }
  close(ends[0]);
  if (await_child(pid, &status) != 0)
    return -2;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}


char *cgl_process_find(const char *name) {
  if (strchr(name, '/'))
    return access(name, X_OK) == 0 ? strdup(name) : NULL;
  const char *path = search_path();
  while (*path) {
    size_t n = strcspn(path, ":");
    char *full = cgl_format("%.*s/%s", (int)n, path, name);
    if (full && access(full, X_OK) == 0)
      return full;
    free(full);
    path += n + (path[n] == ':');
  }
  return NULL;
}
