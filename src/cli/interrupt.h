/* Stopping a running script with Ctrl-C, compiled loops included.
   LuaJIT's traces look for one thing only, the profiler's flag; so the
   profiler is attached when the state is made (its timer is switched off at
   once: nothing ticks until somebody wants to stop), and the signal handler
   sets a count hook and raises that flag, the flag at a moment when LuaJIT
   is not about to overwrite what it does.  The first error lets clean-up
   code run for a while (a capture is ended, a file closed); whoever
   swallowed the error is then stopped at every instruction until the call
   returns.
   Invariant: hooks are touched on the Lua thread alone; a signal that lands
   on another thread is passed on to it. */
#ifndef CGL_CLI_INTERRUPT_H
#define CGL_CLI_INTERRUPT_H

#include <stdbool.h>

#include <lua.h>

/* Makes scripts of L stoppable; call on the thread that runs L, before any
   Lua code.  One state per process.  False when the system has no timer
   left; then Ctrl-C ends the process. */
bool cgl_interrupt_attach(lua_State *L);

/* From here to cgl_interrupt_end, the first Ctrl-C raises "interrupted!" in
   L and the second ends the process. */
void cgl_interrupt_begin(void);

/* Ends the above; true when a Ctrl-C came in between. */
bool cgl_interrupt_end(void);

/* Takes the profiler off L; call before lua_close. */
void cgl_interrupt_detach(void);

#endif
