/* Stopping a running script with Ctrl-C, compiled loops included.
   LuaJIT's traces test the profiler's flag and nothing else.  So the profiler
   is attached when the state is made, with its timer off, and the signal
   handler sets a count hook and raises the flag, at a moment when LuaJIT does
   not write over it.  After the first error, clean-up code has half a second
   (to end a capture, to close a file); code that caught the error is then
   stopped at every instruction until the call returns.  A call that waits for
   a device gives up with an error of its own (cgl_waits_stop), which is the
   first.
   Invariant: hooks are touched on the Lua thread alone; a signal that lands
   on another thread is passed on to it. */
#ifndef CGL_CLI_INTERRUPT_H
#define CGL_CLI_INTERRUPT_H

#include <stdbool.h>

#include <lua.h>

/* Makes scripts of L stoppable; call on the thread that runs L, before any
   Lua code, for a single state of the process.  False when the system has no
   timer left; then Ctrl-C ends the process. */
bool cgl_interrupt_attach(lua_State *L);

/* From here to cgl_interrupt_end, the first Ctrl-C raises "interrupted!" in
   L and the second ends the process. */
void cgl_interrupt_begin(void);

/* Ends the above; true when a Ctrl-C came in between. */
bool cgl_interrupt_end(void);

/* Whether a wait was given up since the last begin: its work may go on. */
bool cgl_interrupt_left_work(void);

/* Takes the profiler off L; call before lua_close, which waits for no device
   after a Ctrl-C. */
void cgl_interrupt_detach(void);

#endif
