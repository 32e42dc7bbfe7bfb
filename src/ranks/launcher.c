/* What the launcher tells, and where cgraphlua-mpi.so is. */
#include "ranks/ranks.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
  const char *name;
  const char *size, *rank;             /* of all */
  const char *local_size, *local_rank; /* of the machine */
} launchers[] = {
    {"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
    {"MPICH's mpiexec", "PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS",
     "MPI_LOCALRANKID"},
    {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", "SLURM_NTASKS_PER_NODE",
     "SLURM_LOCALID"},
};
enum { LAUNCHERS = sizeof launchers / sizeof *launchers };


static int number_of(const char *name, int otherwise) {
  const char *text = name ? getenv(name) : NULL;
  const long n = text ? strtol(text, NULL, 10) : otherwise;
  return n >= 0 && n < INT_MAX ? (int)n : otherwise;
}


static int launcher_find(void) {
  int i = 0;
  while (i < LAUNCHERS && !getenv(launchers[i].size))
    i++;
  return i;
}


int cgl_launcher_size(const char **launcher) {
  const int i = launcher_find();
  *launcher = i < LAUNCHERS ? launchers[i].name : "";
  return i < LAUNCHERS ? number_of(launchers[i].size, 1) : 1;
}


int cgl_ranks_launched(void) {
  const char *launcher;
  return cgl_launcher_size(&launcher) > 1
             ? number_of(launchers[launcher_find()].rank, 0)
             : -1;
}


int cgl_ranks_local_rank(void) {
  const int i = launcher_find();
  return i < LAUNCHERS ? number_of(launchers[i].local_rank, 0) : 0;
}


int cgl_ranks_local_size(void) {
  const int i = launcher_find();
  const int n = i < LAUNCHERS ? number_of(launchers[i].local_size, 1) : 1;
  return n > 0 ? n : 1;
}


/* Opens cgraphlua-mpi.so in the folder of a file, or in a folder below it. */
static void *plugin_open_beside(const char *file, const char *below) {
  char path[PATH_MAX];
  const char *slash = strrchr(file, '/');
  if (!slash)
    return NULL;
  snprintf(path, sizeof path, "%.*s/%scgraphlua-mpi.so", (int)(slash - file),
           file, below);
  return access(path, R_OK) ? NULL : dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}


static void *plugin_open(void) {
  const char *wish = getenv("CGRAPHLUA_MPI");
  if (wish && *wish)
    return dlopen(wish, RTLD_NOW | RTLD_GLOBAL);
  char program[PATH_MAX];
  const ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
  program[n > 0 ? n : 0] = 0;
  Dl_info self;
  const char *library =
      dladdr((void *)cgl_launcher_open_mpi, &self) ? self.dli_fname : "";
  static const char *const below[] = {"", ".libs/", "lib/", "../lib/cgraphlua/",
                                      "cgraphlua/"};
  void *opened = NULL;
  for (size_t i = 0; i < sizeof below / sizeof *below && !opened; i++) {
    opened = plugin_open_beside(program, below[i]);
    if (!opened)
      opened = plugin_open_beside(library, below[i]);
  }
  return opened ? opened : dlopen("cgraphlua-mpi.so", RTLD_NOW | RTLD_GLOBAL);
}


const cgl_mpi *cgl_launcher_open_mpi(const char *operation) {
  void *opened = plugin_open();
  const cgl_mpi *table = opened ? dlsym(opened, "cgl_mpi_table") : NULL;
  if (table && table->version == CGL_MPI_VERSION)
    return table;
  const char *launcher, *why = opened ? "it is another version" : dlerror();
  const int size = cgl_launcher_size(&launcher);
  cgl_fail(CGL_ERROR_NO_LIBRARY, operation,
           "%s started %d ranks, and cgraphlua-mpi.so cannot be opened: %s",
           launcher, size, why ? why : "it was not found");
  cgl_fail_hint("install Debian's openmpi-bin and libopenmpi-dev and build "
                "cgraphlua again; CGRAPHLUA_MPI names the file");
  return NULL;
}
