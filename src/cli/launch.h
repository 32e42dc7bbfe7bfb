/* Ranks: the launcher that starts them, and the part of the machine of each.
   Idea: cgraphlua --ranks N becomes the launcher that is installed, which
   starts the same command N times without the option. */
#ifndef CGL_CLI_LAUNCH_H
#define CGL_CLI_LAUNCH_H

#include <stdbool.h>

/* Becomes the launcher, with the arguments but for --ranks; returns only when
   that fails, and has said why. */
void cgl_launch_ranks(const char *ranks, int argc, char **argv);
/* Chooses this rank's device and threads, where the environment does not: GPU
   `local rank`, and its part of the cores.  False when there are fewer GPUs
   than ranks, which it says. */
bool cgl_launch_place(void);

#endif
