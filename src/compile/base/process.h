/* One child process and what it prints.
   Invariant: no shell is involved, and nothing of this process leaks into
   the child but the environment; the child is always waited for. */
#ifndef CGL_COMPILE_PROCESS_H
#define CGL_COMPILE_PROCESS_H

#include "compile/base/base.h"

/* Runs argv[0] (a path, or a name looked for in PATH), adds what it writes
   to standard output and error to `log`, and waits.  Returns the exit status
   (128 + signal when killed), or -1 with errno when it could not be started;
   -2 when the status was lost to another waiter of this process. */
int cgl_process_run(char *const argv[], cgl_text *log);

/* The path of a program in PATH (malloc'ed), or NULL. */
char *cgl_process_find(const char *name);

#endif
