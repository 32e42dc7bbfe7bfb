/* A line of input, with editing and history on a terminal.
   The history lives in $XDG_STATE_HOME/cgraphlua/history (or
   ~/.local/state/cgraphlua/history); a folder that cannot be written only
   means that nothing is remembered. */
#ifndef CGL_CLI_LINE_H
#define CGL_CLI_LINE_H

#include <stddef.h>

typedef enum cgl_line_status {
  CGL_LINE_OK,
  CGL_LINE_CANCELLED, /* Ctrl-C: what was typed is to be dropped */
  CGL_LINE_END        /* end of input, or an error reading it */
} cgl_line_status;

typedef struct cgl_line cgl_line;

/* Opens standard input; NULL when memory is short.  Ends with
   cgl_line_close. */
cgl_line *cgl_line_open(void);

/* Shows `prompt` and reads a line; *text, without its newline, is borrowed
   until the next call. */
cgl_line_status cgl_line_read(cgl_line *in, const char *prompt,
                              const char **text);

/* Adds a complete chunk to the history and saves it. */
void cgl_line_remember(cgl_line *in, const char *chunk);

/* Gives the terminal and the memory back. */
void cgl_line_close(cgl_line *in);

#endif
