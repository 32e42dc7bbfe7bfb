/* What the C++ compiler said, made fit for a script's author: its own file
   and line, the source line with a mark under the column, and nothing about
   the lines we generated. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "compile/host/host.h"


/* The n-th line of the source (1 is the first), without its end. */
static const char *source_line(const cgl_source *s, long n, size_t *length) {
  const char *at = s->text, *end = s->text + s->length;
  while (at < end && n > 1) {
    const char *stop = memchr(at, '\n', (size_t)(end - at));
    if (!stop)
      return NULL;
    at = stop + 1;
    n--;
  }
  if (n != 1 || at >= end)
    return NULL;
  const char *stop = memchr(at, '\n', (size_t)(end - at));
  *length = (size_t)((stop ? stop : end) - at);
  return at;
}


static void add_excerpt(const cgl_source *s, long line, long column,
                        cgl_text *out) {
  size_t n;
  const char *text = source_line(s, line - s->line + 1, &n);
  if (!text || column < 1 || (size_t)column > n + 1 || n > 400)
    return;
  cgl_text_put(out, "    ");
  cgl_text_add(out, text, n);
  cgl_text_put(out, "\n    ");
  for (long i = 0; i < column - 1; i++)
    cgl_text_put(out, text[i] == '\t' ? "\t" : " ");
  cgl_text_put(out, "^\n");
}


/* Lines about generated text, or about the files of the temporary folder. */
static bool is_ours(const char *line, size_t n) {
  static const char *const words[] = {
      "cgraphlua:",         "In file included from cgraphlua",
      "/cgraphlua-",        "compilation terminated",
      "warnings generated", "errors generated",
      "error generated",    "warning generated"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (memmem(line, n, words[i], strlen(words[i])))
      return true;
  return false;
}


/* A source that ends too early fails in the lines behind it; the last error is
   about what the source left open. */
static void add_end_error(const cgl_source *s, const char *hidden,
                          cgl_text *out) {
  static const char word[] = "error: ";
  const char *error = NULL, *at = hidden;
  long line = s->line;
  while ((at = strstr(at, word)))
    error = at += sizeof word - 1;
  if (!error)
    return;
  for (size_t i = 0; i + 1 < s->length; i++)
    line += s->text[i] == '\n';
  cgl_text_print(out, "%s:%ld: error: at the end of the source: %.*s\n",
                 s->file, line, (int)strcspn(error, "\n"), error);
}


void cgl_host_diagnostics(const cgl_source *s, const char *said,
                          cgl_text *out) {
  size_t name = strlen(s->file);
  cgl_text hidden = {0};
  size_t before = out->length;
  while (*said) {
    size_t n = strcspn(said, "\n");
    const char *next = said + n + (said[n] == '\n');
    bool mine = strncmp(said, s->file, name) == 0 && said[name] == ':';
    if (!mine && is_ours(said, n)) {
      cgl_text_add(&hidden, said, (size_t)(next - said));
      said = next;
      continue;
    }
    cgl_text_add(out, said, (size_t)(next - said));
    if (mine) {
      char *end;
      long line = strtol(said + name + 1, &end, 10), column = 0;
      if (*end == ':')
        column = strtol(end + 1, &end, 10);
      if (*end == ':' && line > 0)
        add_excerpt(s, line, column, out);
    }
    said = next;
  }
  if (out->length == before && hidden.data && strstr(hidden.data, "error"))
    cgl_text_add(out, hidden.data, hidden.length);
  else if (hidden.data && out->data && !strstr(out->data + before, "error: "))
    add_end_error(s, hidden.data, out);
  cgl_text_free(&hidden);
}
