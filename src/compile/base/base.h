/* Text that grows, memory that is freed in one piece, and child processes.
   cgl_text is a byte string with a length that always ends in a NUL when it
   has data; cgl_arena hands out memory that lives until the arena is freed.
   Invariants: a failed allocation sets `failed` and leaves the object valid
   and unchanged, so a caller may write on and check once, at the end; a child
   process is run without a shell, gets nothing of this process but its
   environment, and is always waited for. */
#ifndef CGL_COMPILE_BASE_H
#define CGL_COMPILE_BASE_H

#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct cgl_text {
  char *data;    /* NUL-terminated, or NULL while empty */
  size_t length; /* bytes without the NUL */
  size_t room;   /* bytes allocated */
  bool failed;   /* an allocation failed */
} cgl_text;

typedef struct cgl_arena {
  struct cgl_arena_piece *pieces; /* newest first */
  bool failed;                    /* an allocation failed */
} cgl_arena;

/* Appends n bytes (copied). */
void cgl_text_add(cgl_text *text, const char *bytes, size_t n);

/* Appends a NUL-terminated string. */
void cgl_text_put(cgl_text *text, const char *string);

/* Appends as printf would write. */
void cgl_text_print(cgl_text *text, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Appends `string` as the inside of a C string literal. */
void cgl_text_quote(cgl_text *text, const char *string);

/* Appends a file, up to `limit` bytes or some more; 0, or -1 when it cannot be
   read. */
int cgl_text_read(cgl_text *text, const char *path, size_t limit);

/* Hands the bytes over (caller frees) and empties the text; NULL after a
   failed allocation; "" is returned for an empty text. */
char *cgl_text_take(cgl_text *text);

/* Frees the bytes; the text is empty and usable after. */
void cgl_text_free(cgl_text *text);

/* n zeroed bytes, aligned for any type, or NULL. */
void *cgl_arena_alloc(cgl_arena *arena, size_t n);

/* A NUL-terminated copy of n bytes, or NULL. */
char *cgl_arena_copy(cgl_arena *arena, const char *bytes, size_t n);

/* Frees everything the arena handed out. */
void cgl_arena_free(cgl_arena *arena);

/* Formats into malloc'ed text (caller frees); NULL without memory. */
char *cgl_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* vsnprintf, with a decimal point in every locale of the program. */
int cgl_format_into(char *text, size_t room, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

/* Writes the number in 14 digits, or in 17 when fewer do not mean it; with a
   decimal point in every locale. */
void cgl_format_number(char *text, size_t room, double number);

/* ---- shared libraries (library.c) ---- */

/* dlopen by the first of the names, which end with a NULL, that is there: on
   the loader's own path, and, with `of_toolkit`, before that below $CUDA_HOME
   and $CUDA_PATH and after it below /usr/local/cuda*.  NULL: none is. */
void *cgl_library_open(const char *const *names, bool of_toolkit);

/* ---- processes (process.c) ---- */

/* Runs argv[0] (a path, or a name looked for in PATH) with `input` (NULL:
   nothing) to read, adds what it writes to standard output and error to `log`,
   and waits.  Returns the exit status
   (128 + signal when killed), or -1 with errno when it could not be started;
   -2 when the status was lost to another waiter of this process. */
int cgl_process_run(char *const argv[], const cgl_text *input, cgl_text *log);

/* What ends the child processes of a thread early, from any other thread. */
typedef struct cgl_process_stop {
  pthread_mutex_t lock;
  pid_t child;  /* under lock: the group that runs now, or 0 */
  bool stopped; /* under lock: no child may run any more */
} cgl_process_stop;

/* Children that this thread runs from now on end when `stop` is stopped; NULL:
   they run to their end.  Each is the leader of a process group. */
void cgl_process_guard(cgl_process_stop *stop);

/* Ends the child that runs and lets no other start: cgl_process_run then fails
   with ECANCELED. */
void cgl_process_end(cgl_process_stop *stop);

/* The path of a program in PATH (malloc'ed), or NULL. */
char *cgl_process_find(const char *name);

#endif
