#include "cli/launch.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cgraphlua.h"
#include "cli/report.h"

enum { MOST_WORDS = 8 };

/* What tells them apart is the launcher's own option. */
static const struct launcher {
  const char *program, *name;
  const char *words[MOST_WORDS];
} launchers[] = {
    {"mpirun.openmpi",
     "Open MPI",
     {"--oversubscribe", "--bind-to", "none", "--tag-output", "-n"}},
    {"mpiexec.hydra", "MPICH", {"-prepend-rank", "-n"}},
    {"srun", "Slurm", {"-l", "-n"}},
    {"mpirun", "MPI", {"-n"}},
};


static bool program_is_there(const char *program) {
  const char *path = getenv("PATH");
  char file[PATH_MAX];
  while (path && *path) {
    const size_t n = strcspn(path, ":");
    snprintf(file, sizeof file, "%.*s/%s", (int)n, path, program);
    if (!access(file, X_OK))
      return true;
    path += n + (path[n] == ':');
  }
  return false;
}


static bool is_ranks(const char *word) {
  return !strcmp(word, "--ranks") || !strncmp(word, "--ranks=", 8);
}


void cgl_launch_ranks(const char *ranks, int argc, char **argv) {
  const size_t count = sizeof launchers / sizeof *launchers;
  char program[PATH_MAX], *end;
  const long n = strtol(ranks, &end, 10);
  size_t i = 0, at = 0;
  if (*end || n < 1 || n > INT_MAX) {
    cgl_report_line("--ranks: a number from 1 on is needed, not '%s'", ranks);
    return;
  }
  while (i < count && !program_is_there(launchers[i].program))
    i++;
  char **words = calloc((size_t)argc + MOST_WORDS + 4, sizeof *words);
  const ssize_t length =
      readlink("/proc/self/exe", program, sizeof program - 1);
  if (i == count || !words || length < 0) {
    free(words);
    cgl_report_line("--ranks: there is no mpirun, mpiexec or srun; install "
                    "Debian's openmpi-bin");
    return;
  }
  program[length] = 0;
  words[at++] = (char *)(uintptr_t)launchers[i].program;
  for (int k = 0; launchers[i].words[k]; k++)
    words[at++] = (char *)(uintptr_t)launchers[i].words[k];
  words[at++] = (char *)(uintptr_t)ranks;
  words[at++] = program;
  bool skipped = false;
  for (int k = 1; k < argc; k++)
    if (!skipped && is_ranks(argv[k])) {
      skipped = true;
      k += !argv[k][7];
    } else
      words[at++] = argv[k];
  cgl_report_line("%ld ranks by %s (%s)", n, launchers[i].program,
                  launchers[i].name);
  execvp(words[0], words);
  cgl_report_line("--ranks: cannot run %s", launchers[i].program);
  free(words);
}


/* A rank's threads of the host device: the cores that the launcher gave it, or
   its part of all. */
static void place_threads(int ranks) {
  const long all = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t set;
  char text[24];
  long mine = all / ranks;
  if (!sched_getaffinity(0, sizeof set, &set) && CPU_COUNT(&set) < all)
    mine = CPU_COUNT(&set);
  snprintf(text, sizeof text, "%ld", mine > 0 ? mine : 1);
  setenv("CGRAPHLUA_HOST_THREADS", text, 0);
}


bool cgl_launch_place(void) {
  const int ranks = cgl_ranks_local_size(), rank = cgl_ranks_local_rank();
  const char *device = getenv("CGRAPHLUA_DEVICE");
  char text[24];
  if (ranks == 1)
    return true;
  place_threads(ranks);
  if (device && *device && strcmp(device, "cuda") != 0)
    return true;
  const int gpus = cgl_device_count() - 1; /* the last is the host device */
  if (gpus > 0 && rank >= gpus) {
    cgl_report_line("%d ranks on a machine with %d GPUs: start fewer, or use "
                    "--device host",
                    ranks, gpus);
    return false;
  }
  if (gpus > 0)
    snprintf(text, sizeof text, "cuda:%d", rank);
  else
    strcpy(text, "host");
  setenv("CGRAPHLUA_DEVICE", text, 1);
  return true;
}
