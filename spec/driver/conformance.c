/* Does a driver answer as a real one did?  Asks every question of
   conformance/ through a driver table and compares the rows with those that
   were recorded.

     conformance [--device host|cuda] [--rows FOLDER] [--record FILE]
                 [--from N] [--alone NAME] [WORD]

   WORD: only rows whose name holds it; --from: only the N-th row and those
   after it (a driver that crashes on a row can be asked the others).
   --record adds the answers to a file instead of comparing them.  --alone asks
   one row and writes its answers to descriptor 3 (the program calls itself so
   for rows that leave the context unfit).  TAP on standard output. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "driver/conformance/ask.h"
#include "tap.h"

/* Rows that ask what happens while work is underway use memory on several
   streams in no order, as a program must not: under ThreadSanitizer those
   copies and fills are no finding. */
__attribute__((visibility("default"))) const char *
__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
  return "race:move_bytes\nrace:fill_row\n";
}


typedef struct recorded {
  char *name, *answers; /* answers begin with a tab, or are empty */
  bool asked;
} recorded;

/* Rows that a device cannot be asked, by name, and why. */
typedef struct omission {
  const char *device, *name, *reason;
} omission;

static const omission omissions[] = {
    {"host", "function attributes: static shared memory",
     "a C++ compiler does not tell how much memory a kernel's __shared__ "
     "variables take"},
};

static const char *const files[] = {"acts.tsv", "rows.tsv", "more.tsv",
                                    "calls.tsv"};

const char *row_device = "host", *row_alone;

static recorded *rows;
static size_t nrows;
static const char *word;
static unsigned long from = 1, nasked;
static FILE *out; /* --record */


/* ---- the recorded rows ---- */

static void add_recorded(char *line) {
  char *tab = strchr(line, '\t');
  size_t length = tab != NULL ? (size_t)(tab - line) : strlen(line);
  rows = realloc(rows, (nrows + 1) * sizeof *rows);
  if (rows == NULL)
    abort();
  rows[nrows++] = (recorded){.name = strndup(line, length),
                             .answers = strdup(tab != NULL ? tab : "")};
}


static bool load(const char *folder, const char *file) {
  char path[4096], *line = NULL;
  size_t size = 0;
  snprintf(path, sizeof path, "%s/%s", folder, file);
  FILE *in = fopen(path, "r");
  if (in == NULL) {
    fprintf(stderr, "%s: %s\n", path, strerror(errno));
    return false;
  }
  while (getline(&line, &size, in) > 0) {
    line[strcspn(line, "\r\n")] = '\0';
    if (line[0] != '#' && line[0] != '\0')
      add_recorded(line);
  }
  free(line);
  fclose(in);
  return true;
}


static recorded *find(const char *name) {
  for (size_t i = 0; i < nrows; i++)
    if (strcmp(rows[i].name, name) == 0)
      return &rows[i];
  return NULL;
}


static const char *omitted(const char *name) {
  for (size_t i = 0; i < sizeof omissions / sizeof *omissions; i++)
    if (strcmp(omissions[i].device, row_device) == 0 &&
        strcmp(omissions[i].name, name) == 0)
      return omissions[i].reason;
  return NULL;
}


/* ---- comparing ---- */

/* Prints `answers` field by field, marking those that differ. */
static void print_answers(const char *who, const char *answers,
                          const char *other) {
  printf("#   %s:", who);
  while (*answers == '\t') {
    size_t n = strcspn(answers + 1, "\t") + 1;
    size_t m = *other == '\t' ? strcspn(other + 1, "\t") + 1 : 0;
    bool same = n == m && strncmp(answers, other, n) == 0;
    printf("  %s%.*s", same ? "" : ">> ", (int)n - 1, answers + 1);
    answers += n;
    other += m;
  }
  putchar('\n');
}


bool row_wanted(const char *name) {
  if (row_alone != NULL)
    return strcmp(name, row_alone) == 0;
  bool wanted =
      ++nasked >= from && (word == NULL || strstr(name, word) != NULL);
  if (wanted && out != NULL) {
    fprintf(out, "%s", name); /* there, should the driver crash on it */
    fflush(out);
  }
  return wanted;
}


void row_done(const char *name, const char *text) {
  if (row_alone != NULL) /* without the farewells of a context that is lost */
    _exit(write(3, text, strlen(text)) != (ssize_t)strlen(text));
  if (out != NULL) {
    fprintf(out, "%s\n", text);
    fflush(out);
    return;
  }
  recorded *row_recorded = find(name);
  const char *reason = omitted(name);
  if (row_recorded != NULL)
    row_recorded->asked = true;
  if (reason != NULL) {
    tap_skip(name, reason);
  } else if (row_recorded == NULL) {
    tap_skip(name, "never recorded from a real driver");
  } else if (!tap_ok(strcmp(row_recorded->answers, text) == 0, "%s", name)) {
    print_answers("recorded", row_recorded->answers, text);
    print_answers("answered", text, row_recorded->answers);
  }
}


static void check_all_asked(void) {
  for (size_t i = 0; i < nrows && word == NULL && from == 1; i++)
    if (!rows[i].asked)
      tap_ok(false, "%s: recorded, but no question asks it", rows[i].name);
}


/* ---- the program ---- */

static const char *default_folder(void) {
  static char path[4096];
  const char *source = getenv("srcdir");
  snprintf(path, sizeof path, "%s/spec/driver/conformance",
           source != NULL ? source : ".");
  return path;
}


static int usage(const char *program) {
  fprintf(stderr,
          "usage: %s [--device host|cuda] [--rows FOLDER] [--record FILE] "
          "[--from N] [--alone NAME] [WORD]\n",
          program);
  return 2;
}


/* Names the device, its driver and the day at the head of a recording. */
static void head(const cgl_driver *driver) {
  char name[256] = "?";
  int version = 0;
  time_t now = time(NULL);
  struct tm tm;
  driver->cuDeviceGetName(name, sizeof name, 0);
  driver->cuDriverGetVersion(&version);
  gmtime_r(&now, &tm);
  fprintf(out, "# %s, driver API %d, recorded %04d-%02d-%02d\n", name, version,
          tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday);
}


static void ask_all(void) {
  ask_table();
  ask_modes();
  ask_captures();
  ask_executables();
  ask_graphs();
  ask_breaks();
  ask_dependencies();
  ask_parameters();
  ask_instantiation();
  ask_conditionals();
  ask_allocations();
  ask_eager();
  ask_memory();
  ask_pinned();
  ask_planes();
  ask_queues();
  ask_devices();
  ask_kernels();
  ask_spaces();
  ask_mappings();
  ask_replays();
  ask_changes();
  ask_sticky();
}


/* What the arguments say; false when they make no sense. */
static bool read_arguments(int argc, char **argv, const char **folder,
                           const char **record) {
  for (int i = 1; i < argc; i++) {
    bool more = i + 1 < argc;
    if (strcmp(argv[i], "--device") == 0 && more)
      row_device = argv[++i];
    else if (strcmp(argv[i], "--rows") == 0 && more)
      *folder = argv[++i];
    else if (strcmp(argv[i], "--record") == 0 && more)
      *record = argv[++i];
    else if (strcmp(argv[i], "--alone") == 0 && more)
      row_alone = argv[++i];
    else if (strcmp(argv[i], "--from") == 0 && more)
      from = strtoul(argv[++i], NULL, 10);
    else if (argv[i][0] != '-' && word == NULL)
      word = argv[i];
    else
      return false;
  }
  return true;
}


int main(int argc, char **argv) {
  const char *folder = default_folder(), *record = NULL, *why = NULL;
  if (!read_arguments(argc, argv, &folder, &record))
    return usage(argv[0]);
  const cgl_driver *driver = strcmp(row_device, "host") == 0 ? cgl_driver_host()
                             : strcmp(row_device, "cuda") == 0
                                 ? cgl_driver_cuda(&why)
                                 : NULL;
  if (driver == NULL) {
    fprintf(stderr, "%s: %s\n", row_device,
            why != NULL ? why : "no such device");
    return 2;
  }
  if (row_alone != NULL)
    alarm(30); /* who called waits for the answers */
  bool compares = record == NULL && row_alone == NULL;
  for (size_t i = 0; compares && i < sizeof files / sizeof *files; i++)
    if (!load(folder, files[i]))
      return 2;
  if (record != NULL && (out = fopen(record, "a")) == NULL) {
    fprintf(stderr, "%s: %s\n", record, strerror(errno));
    return 2;
  }
  why = ask_open(driver);
  if (why != NULL) {
    fprintf(stderr, "%s: %s\n", row_device, why);
    return 2;
  }
  if (out != NULL)
    head(driver);
  ask_all();
  if (row_alone != NULL) /* no such row */
    return 2;
  ask_close();
  if (out != NULL)
    return fclose(out) != 0;
  check_all_asked();
  for (size_t i = 0; i < nrows; i++) {
    free(rows[i].name);
    free(rows[i].answers);
  }
  free(rows);
  return tap_done();
}
