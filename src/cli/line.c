#include "cli/line.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef CGL_WITH_LIBEDIT
#include <locale.h>
#include <wchar.h>

#include <histedit.h>
#endif

enum { HISTORY_LENGTH = 1000 };

struct cgl_line {
  char *buffer; /* the line handed out last */
  size_t room;
  bool terminal; /* prompts are shown */
  cgl_line_completer complete;
  void *user; /* of `complete` */
#ifdef CGL_WITH_LIBEDIT
  EditLine *editor; /* NULL when the input is no terminal */
  History *history;
  sigset_t open; /* the signal mask outside the editor */
  int keys;      /* the terminal, without waiting in read; or standard input */
  const char *prompt;
  char path[PATH_MAX]; /* of the history; may be empty */
#endif
};

static volatile sig_atomic_t cancelled;


static void on_cancel(int signo) {
  (void)signo;
  cancelled = 1;
}


/* While a line is read, Ctrl-C only drops it: no SA_RESTART, so that the
   read comes back. */
static void catch_cancel(struct sigaction *before) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_cancel;
  sigemptyset(&action.sa_mask);
  cancelled = 0;
  sigaction(SIGINT, &action, before);
}


#ifdef CGL_WITH_LIBEDIT
static char *show_prompt(EditLine *editor) {
  cgl_line *in = NULL;
  el_get(editor, EL_CLIENTDATA, &in);
  return (char *)in->prompt;
}


/* Waits for a byte; SIGINT is let through here and nowhere else in the
   editor, so that no Ctrl-C is missed.  False when Ctrl-C came. */
static bool wait_for_byte(const cgl_line *in) {
  struct pollfd input = {.fd = in->keys, .events = POLLIN};
  while (!cancelled && ppoll(&input, 1, NULL, &in->open) < 0 && errno == EINTR)
    ;
  return !cancelled;
}


/* A Ctrl-C also drops what was typed, so a byte that waited may be gone when it
   is read: then read must not wait, with SIGINT held back.  Standard input
   itself is shared with other programs and stays as it is. */
static void open_keys(cgl_line *in) {
  const char *name = ttyname(STDIN_FILENO);
  in->keys =
      name ? open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
  if (in->keys < 0)
    in->keys = STDIN_FILENO;
}


/* A character for the editor, whose own reader goes on waiting after a
   signal. */
static int read_key(EditLine *editor, wchar_t *key) {
  cgl_line *in = NULL;
  mbstate_t state;
  char byte;
  el_get(editor, EL_CLIENTDATA, &in);
  memset(&state, 0, sizeof state);
  while (wait_for_byte(in)) {
    ssize_t n = read(in->keys, &byte, 1);
    if (n <= 0 && !(n < 0 && (errno == EINTR || errno == EAGAIN)))
      return (int)n;
    if (n < 0)
      continue;
    size_t used = mbrtowc(key, &byte, 1, &state);
    if (used == (size_t)-1)
      memset(&state, 0, sizeof state); /* not in this encoding: skipped */
    else if (used != (size_t)-2)
      return 1;
  }
  return -1;
}


/* Tab. */
static unsigned char complete_key(EditLine *editor, int key) {
  (void)key;
  cgl_line *in = NULL;
  el_get(editor, EL_CLIENTDATA, &in);
  const LineInfo *line = el_line(editor);
  char *before = strndup(line->buffer, (size_t)(line->cursor - line->buffer));
  if (!before || !in->complete) {
    free(before);
    return CC_ERROR;
  }
  cgl_completion found = in->complete(in->user, before);
  free(before);
  if (found.insert && *found.insert)
    return el_insertstr(editor, found.insert) ? CC_ERROR : CC_REFRESH;
  if (!found.names)
    return CC_ERROR;
  fprintf(stdout, "\n%s\n", found.names);
  fflush(stdout);
  return CC_REDISPLAY;
}


/* Makes every folder above `path`; only its user may read them. */
static bool make_folders(char *path) {
  for (char *p = path + 1; *p; p++) {
    if (*p != '/')
      continue;
    *p = '\0';
    bool made = !mkdir(path, 0700) || errno == EEXIST;
    *p = '/';
    if (!made)
      return false;
  }
  return true;
}


static void find_history(cgl_line *in) {
  const char *state = getenv("XDG_STATE_HOME");
  const char *home = getenv("HOME");
  int n = -1;
  if (state && *state == '/')
    n = snprintf(in->path, sizeof in->path, "%s/cgraphlua/history", state);
  else if (home && *home == '/')
    n = snprintf(in->path, sizeof in->path, "%s/.local/state/cgraphlua/history",
                 home);
  if (n < 0 || (size_t)n >= sizeof in->path || !make_folders(in->path))
    in->path[0] = '\0';
}


static void open_editor(cgl_line *in) {
  HistEvent event;
  setlocale(LC_CTYPE, "");
  in->history = history_init();
  in->editor = el_init("cgraphlua", stdin, stdout, stderr);
  if (!in->history || !in->editor)
    return;
  open_keys(in);
  find_history(in);
  history(in->history, &event, H_SETSIZE, HISTORY_LENGTH);
  history(in->history, &event, H_SETUNIQUE, 1);
  if (in->path[0])
    history(in->history, &event, H_LOAD, in->path);
  el_set(in->editor, EL_CLIENTDATA, in);
  el_set(in->editor, EL_PROMPT, show_prompt);
  el_set(in->editor, EL_GETCFN, read_key);
  el_set(in->editor, EL_EDITOR, "emacs");
  el_set(in->editor, EL_HIST, history, in->history);
  el_set(in->editor, EL_BIND, "^R", "em-inc-search-prev", NULL);
  el_set(in->editor, EL_ADDFN, "complete", "complete a name", complete_key);
  el_set(in->editor, EL_BIND, "^I", "complete", NULL);
  el_source(in->editor, NULL);
}


static cgl_line_status read_edited(cgl_line *in, const char **text) {
  int n = 0;
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, &in->open);
  el_resize(in->editor);
  const char *line = el_gets(in->editor, &n);
  pthread_sigmask(SIG_SETMASK, &in->open, NULL);
  if (cancelled) {
    el_reset(in->editor);
    fputs("^C\n", stdout);
    return CGL_LINE_CANCELLED;
  }
  if (!line || n <= 0)
    return CGL_LINE_END;
  free(in->buffer);
  in->buffer = strndup(line, (size_t)n);
  if (!in->buffer)
    return CGL_LINE_END;
  in->buffer[strcspn(in->buffer, "\n")] = '\0';
  *text = in->buffer;
  return CGL_LINE_OK;
}
#endif


cgl_line *cgl_line_open(void) {
  cgl_line *in = calloc(1, sizeof *in);
  if (!in)
    return NULL;
  in->terminal = isatty(STDIN_FILENO);
#ifdef CGL_WITH_LIBEDIT
  if (in->terminal)
    open_editor(in);
#endif
  return in;
}


static cgl_line_status read_plain(cgl_line *in, const char *prompt,
                                  const char **text) {
  if (in->terminal) {
    fputs(prompt, stdout);
    fflush(stdout);
  }
  ssize_t n = getline(&in->buffer, &in->room, stdin);
  if (cancelled) {
    clearerr(stdin);
    fputc('\n', stdout);
    return CGL_LINE_CANCELLED;
  }
  if (n < 0)
    return CGL_LINE_END;
  if (n > 0 && in->buffer[n - 1] == '\n')
    in->buffer[n - 1] = '\0';
  *text = in->buffer;
  return CGL_LINE_OK;
}


cgl_line_status cgl_line_read(cgl_line *in, const char *prompt,
                              const char **text) {
  struct sigaction before;
  cgl_line_status status;
  *text = NULL;
  catch_cancel(&before);
#ifdef CGL_WITH_LIBEDIT
  in->prompt = prompt;
  if (in->editor && in->history)
    status = read_edited(in, text);
  else
#endif
    status = read_plain(in, prompt, text);
  sigaction(SIGINT, &before, NULL);
  if (status == CGL_LINE_END && in->terminal)
    fputc('\n', stdout);
  return status;
}


void cgl_line_complete_with(cgl_line *in, cgl_line_completer complete,
                            void *user) {
  in->complete = complete;
  in->user = user;
}


void cgl_line_remember(cgl_line *in, const char *chunk) {
#ifdef CGL_WITH_LIBEDIT
  HistEvent event;
  if (in->editor && in->history && chunk[strspn(chunk, " \t\n")])
    history(in->history, &event, H_ENTER, chunk);
  /* Saved each time: os.exit or a crash must not lose it. */
  if (in->history && in->path[0])
    history(in->history, &event, H_SAVE, in->path);
#else
  (void)in;
  (void)chunk;
#endif
}


void cgl_line_close(cgl_line *in) {
  if (!in)
    return;
#ifdef CGL_WITH_LIBEDIT
  if (in->editor)
    el_end(in->editor);
  if (in->history)
    history_end(in->history);
  if (in->keys > STDIN_FILENO)
    close(in->keys);
#endif
  free(in->buffer);
  free(in);
}
