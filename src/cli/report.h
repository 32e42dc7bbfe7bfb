/* Calls into Lua from the program, and what a person reads when they fail.
   Every failure is one line `cgraphlua: message`, then the traceback, on
   standard error.  An error object that is nil says nothing (busted ends
   that way); a table or userdata speaks through its __tostring. */
#ifndef CGL_CLI_REPORT_H
#define CGL_CLI_REPORT_H

#include <lua.h>

/* Calls the function below its `nargs` arguments with Ctrl-C enabled and
   keeps `nresults`; on failure leaves the error value alone on the stack.
   Returns lua_pcall's status. */
int cgl_report_call(lua_State *L, int nargs, int nresults);

/* Writes the error value on top of the stack to standard error and pops it
   when `status` is not 0; returns `status`. */
int cgl_report_status(lua_State *L, int status);

/* Adds a hint to the message on top, of a syntax error in the file `path`, when
   a string of the source ended too early: x[i[j]] between [[ and ]]. */
void cgl_report_add_hint(lua_State *L, const char *path);

/* Writes `cgraphlua: ` and the formatted line to standard error. */
void cgl_report_line(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

#endif
