/* The REPL: reads a chunk, which may span lines, runs it, prints what it
   returned.  Line editing and history come from libedit where the build has
   it and the input is a terminal; otherwise lines are read plainly. */
#ifndef CGL_CLI_REPL_H
#define CGL_CLI_REPL_H

#include <lua.h>

/* Runs until the end of input; errors are reported and forgotten. */
void cgl_repl_run(lua_State *L);

#endif
