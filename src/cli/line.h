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

/* What Tab does: the text to insert, and names to show, each NULL for none.
   Borrowed until the next call. */
typedef struct cgl_completion {
  const char *insert;
  const char *names;
} cgl_completion;

/* Completes the text before the cursor. */
typedef cgl_completion (*cgl_line_completer)(void *user, const char *before);

/* Opens standard input; NULL when memory is short.  Ends with
   cgl_line_close. */
cgl_line *cgl_line_open(void);

/* Shows `prompt` and reads a line; *text, without its newline, is borrowed
   until the next call. */
cgl_line_status cgl_line_read(cgl_line *in, const char *prompt,
                              const char **text);

/* Has Tab call `complete` with `user`; without an editor it stays unused. */
void cgl_line_complete_with(cgl_line *in, cgl_line_completer complete,
                            void *user);

/* Adds a complete chunk to the history and saves it. */
void cgl_line_remember(cgl_line *in, const char *chunk);

/* Gives the terminal and the memory back. */
void cgl_line_close(cgl_line *in);

#endif
