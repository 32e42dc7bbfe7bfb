/* The files that an image depends on, and where a file would change it. */
#include <stdlib.h>
#include <string.h>

#include "compile/cache/cache.h"
#include "compile/source/source.h"

#define MAX_PLACES 20000 /* looked at by every hit; more is not worth it */

typedef struct place_list {
  char *row[64]; /* folders where a header may be looked for */
  size_t n;
  cgl_text paths; /* what may appear there, a NUL after each */
  size_t npaths;
} place_list;


static void add_folder(place_list *l, const char *folder, size_t n) {
  for (size_t i = 0; i < l->n; i++)
    if (strlen(l->row[i]) == n && memcmp(l->row[i], folder, n) == 0)
      return;
  if (l->n < sizeof l->row / sizeof *l->row)
    l->row[l->n++] = cgl_format("%.*s", (int)n, folder);
  else
    l->paths.failed = true;
}


/* The script's folder, those of the options, and those of the files read,
   but for the system's. */
static void add_folders(place_list *l, const cgl_job *job, const char *files,
                        size_t length) {
  const cgl_source *s = job->source;
  add_folder(l, job->folder, strlen(job->folder));
  for (size_t i = 0; i < s->noptions; i++) {
    const char *o = s->options[i];
    if (strncmp(o, "--include-path=", 15) == 0)
      add_folder(l, o + 15, strlen(o + 15));
    else if (strncmp(o, "-I", 2) == 0 && o[2])
      add_folder(l, o + 2, strlen(o + 2));
    else if (strcmp(o, "-I") == 0 && i + 1 < s->noptions)
      add_folder(l, s->options[i + 1], strlen(s->options[i + 1]));
  }
  for (size_t at = 0; at < length; at += strlen(files + at) + 1) {
    const char *slash = strrchr(files + at, '/');
    if (slash && strncmp(files + at, "/usr/", 5))
      add_folder(l, files + at, (size_t)(slash - files - at));
  }
}


/* `name` in every folder. */
static void add_name(place_list *l, const char *name) {
  for (size_t i = 0; i < l->n && *name != '/'; i++) {
    cgl_text_print(&l->paths, "%s/%s", l->row[i], name);
    cgl_text_add(&l->paths, "", 1);
    l->npaths++;
  }
}


static int compare_paths(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}


/* Notes every path once. */
static void note_absent(cgl_job *job, const place_list *l) {
  const char **row = malloc((l->npaths + 1) * sizeof *row);
  const char *at = l->paths.data;
  job->files.failed |= !row;
  for (size_t i = 0; row && i < l->npaths; i++, at += strlen(at) + 1)
    row[i] = at;
  if (row)
    qsort(row, l->npaths, sizeof *row, compare_paths);
  for (size_t i = 0; row && i < l->npaths; i++)
    if (!i || strcmp(row[i], row[i - 1]))
      cgl_cache_note_absent(&job->files, row[i]);
  free(row);
}


void cgl_source_note_files(cgl_job *job, const char *files, size_t length) {
  place_list l = {.n = 0};
  size_t n;
  const char *wanted = cgl_program_wanted(job->program, &n);
  if (!length && !n)
    return;
  add_folders(&l, job, files, length);
  for (size_t at = 0; at < length; at += strlen(files + at) + 1) {
    if (cgl_cache_note_file(&job->files, files + at, &job->since) != 0)
      job->unkept = true;
    add_name(&l, files + at);
    for (const char *c = files + at; *c && l.npaths < MAX_PLACES; c++)
      if (*c == '/')
        add_name(&l, c + 1);
  }
  for (size_t at = 0; at < n && l.npaths < MAX_PLACES;
       at += strlen(wanted + at) + 1)
    add_name(&l, wanted + at);
  if (l.paths.failed || l.npaths >= MAX_PLACES)
    job->unkept = true;
  else
    note_absent(job, &l);
  for (size_t i = 0; i < l.n; i++)
    free(l.row[i]);
  cgl_text_free(&l.paths);
}
