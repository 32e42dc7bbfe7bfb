/* The system's C++ compiler as a kernel compiler. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile/host/host.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cgl_cxx *known; /* newest first */


static int read_version(cgl_cxx *c) {
  cgl_text text = {0};
  char *argv[10];
  size_t n = 0;
  for (; n < c->nwords; n++)
    argv[n] = c->words[n];
  argv[n++] = "--version";
  argv[n] = NULL;
  int status = cgl_process_run(argv, NULL, &text);
  if ((status != 0 && status != -2) || !text.data)
    return cgl_text_free(&text), -1;
  text.data[strcspn(text.data, "\n")] = 0;
  c->version = strdup(text.data);
  c->clang = c->version && strstr(c->version, "clang");
  /* "g++ (Debian 12.2.0-14) 12.2.0": the last word is the number. */
  const char *number = strrchr(text.data, ' ');
  c->major = number ? atoi(number + 1) : 0;
  cgl_text_free(&text);
  return c->version ? 0 : -1;
}


/* $CGRAPHLUA_CXX, words split at blanks, or the first of the usual names. */
static int find_words(cgl_cxx *c, const char *asked) {
  static const char *const usual[] = {"c++", "g++", "clang++"};
  if (asked && *asked) {
    char *copy = strdup(asked), *rest = NULL;
    if (!copy)
      return -1;
    for (char *w = strtok_r(copy, " \t", &rest); w && c->nwords < 8;
         w = strtok_r(NULL, " \t", &rest))
      c->words[c->nwords++] = strdup(w);
    free(copy);
    c->path = c->nwords && c->words[0] ? cgl_process_find(c->words[0]) : NULL;
    return c->path ? 0 : -1;
  }
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
    c->path = cgl_process_find(usual[i]);
    if (c->path) {
      c->words[c->nwords++] = strdup(c->path);
      return c->words[0] ? 0 : -1;
    }
  }
  return -1;
}


static void free_compiler(cgl_cxx *c) {
  for (size_t i = 0; i < c->nwords; i++)
    free(c->words[i]);
  free(c->path);
  free(c->version);
  free(c->asked);
  free(c);
}


/* The compiler $CGRAPHLUA_CXX names now; asked for its version once.  What
   is returned lives as long as the process. */
static const cgl_cxx *find_compiler(void) {
  const char *asked = getenv("CGRAPHLUA_CXX");
  if (!asked)
    asked = "";
  pthread_mutex_lock(&lock);
  cgl_cxx *c = known;
  if (!c || strcmp(c->asked, asked)) {
    c = calloc(1, sizeof *c);
    if (c)
      c->asked = strdup(asked);
    if (c && (!c->asked || find_words(c, asked) != 0 || read_version(c) != 0)) {
      free_compiler(c);
      c = NULL;
    } else if (c) {
      c->next = known;
      known = c;
    }
  }
  pthread_mutex_unlock(&lock);
  return c;
}


static cgl_compile_status no_compiler(cgl_job *job) {
  const char *asked = getenv("CGRAPHLUA_CXX");
  if (asked && *asked)
    cgl_text_print(&job->log,
                   "the C++ compiler '%s' ($CGRAPHLUA_CXX) cannot be run; "
                   "kernels for the host device need g++ or clang++",
                   asked);
  else
    cgl_text_put(&job->log,
                 "no C++ compiler was found (c++, g++ or clang++ in PATH); "
                 "kernels for the host device need one: install g++, or name "
                 "one in $CGRAPHLUA_CXX");
  return CGL_COMPILE_NO_COMPILER;
}


/* The lines of /proc/cpuinfo that -march=native depends on. */
static void add_cpu(cgl_text *out) {
  static const char *const keys[] = {"model name", "flags",    "cpu family",
                                     "model\t",    "Features", "CPU part"};
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[4096];
  if (!file)
    return;
  while (fgets(line, sizeof line, file) && *line != '\n')
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
      if (strncmp(line, keys[i], strlen(keys[i])) == 0)
        cgl_text_put(out, line);
  fclose(file);
}


cgl_compile_status cgl_host_identify(cgl_job *job, cgl_text *identity) {
  const cgl_cxx *c = find_compiler();
  struct stat st;
  if (!c)
    return no_compiler(job);
  for (size_t i = 0; i < c->nwords; i++)
    cgl_text_print(identity, "%s ", c->words[i]);
  if (stat(c->path, &st) == 0)
    cgl_text_print(identity, "%lld %lld.%09ld ", (long long)st.st_size,
                   (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
  cgl_text_print(identity, "%s\n", c->version);
  add_cpu(identity);
  return CGL_COMPILE_OK;
}


typedef struct command {
  char *argv[256];
  size_t n;
} command;


static void add_word(command *c, const char *word) {
  if (c->n < 255)
    c->argv[c->n++] = (char *)word;
}


static const char *const common_options[] = {
    "-O3",
    "-march=native",
    "-fPIC",
    "-shared",
    "-pipe",
    "-x",
    "c++",
    "-fvisibility=hidden",
    "-fno-semantic-interposition",
    "-fno-trapping-math",
    "-fno-math-errno",
    "-fno-exceptions",
    "-fno-rtti",
    "-fno-strict-aliasing",
    "-fno-asynchronous-unwind-tables",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-Wno-unknown-pragmas",
    "-Wno-attributes",
    NULL,
};

static const char *const gcc_options[] = {
    "-fno-gnu-unique",
    "-Wno-builtin-declaration-mismatch",
    /* both take the address of threadIdx, which then is memory that any
       store may change, in all kernels of the source */
    "-fno-tree-slp-vectorize",
    "-fno-store-merging",
    "-fdiagnostics-color=never",
    "-fmax-errors=20",
    "-fno-diagnostics-show-caret",
    "--param",
    "logical-op-non-short-circuit=0",
    "--param",
    "max-unswitch-insns=400",
    "--param", /* the next one depends on the version */
    NULL,
};

static const char *const clang_options[] = {
    "-fno-color-diagnostics", "-fno-caret-diagnostics",
    "-Wno-ignored-attributes", "-Wno-pass-failed", NULL};

static const char *const link_options[] = {
    "-nostartfiles", "-nodefaultlibs", "-lm", "-lc", "-lgcc", NULL};


/* What of the caller's options means something to a C++ compiler; NVRTC's
   other options are silently left to NVRTC. */
static void add_options(command *c, const cgl_source *s) {
  const char *standard = "-std=gnu++17", *contract = "-ffp-contract=fast";
  for (size_t i = 0; i < s->noptions; i++) {
    const char *o = s->options[i];
    if (strncmp(o, "-I", 2) == 0) {
      add_word(c, o);
      if (!o[2] && i + 1 < s->noptions)
        add_word(c, s->options[++i]);
    } else if (strncmp(o, "--include-path=", 15) == 0) {
      add_word(c, "-I");
      add_word(c, o + 15);
    } else if (strcmp(o, "-std=c++20") == 0 || strcmp(o, "--std=c++20") == 0)
      standard = "-std=gnu++20";
    else if (strcmp(o, "--fmad=false") == 0 || strcmp(o, "-fmad=false") == 0)
      contract = "-ffp-contract=off";
  }
  add_word(c, standard);
  add_word(c, contract);
}


static void add_words(command *c, const char *const *words) {
  while (*words)
    add_word(c, *words++);
}


static void build_command(command *c, const cgl_host_job *h) {
  const cgl_cxx *cxx = h->cxx;
  for (size_t i = 0; i < cxx->nwords; i++)
    add_word(c, cxx->words[i]);
  add_words(c, common_options);
  if (cxx->clang)
    add_words(c, clang_options);
  else {
    add_words(c, gcc_options);
    /* gcc 13 counts the nesting under another name. */
    add_word(c, cxx->major >= 13 ? "max-unswitch-depth=8"
                                 : "max-unswitch-level=8");
    if (h->dump_option)
      add_word(c, h->dump_option);
  }
  /* #line does not change where the compiler looks. */
  add_word(c, "-iquote");
  add_word(c, h->job->folder);
  add_options(c, h->job->source);
  add_word(c, h->input);
  add_word(c, "-o");
  add_word(c, h->output);
  add_words(c, link_options);
  c->argv[c->n] = NULL;
}


static int write_file(const char *path, const cgl_text *text) {
  FILE *file = fopen(path, "wb");
  if (!file)
    return -1;
  size_t n = fwrite(text->data, 1, text->length, file);
  return fclose(file) || n < text->length ? -1 : 0;
}


static int read_image(const char *path, cgl_image *image) {
  cgl_text text = {0};
  if (cgl_text_read(&text, path, SIZE_MAX) != 0 || !text.length)
    return cgl_text_free(&text), -1;
  image->size = text.length;
  image->bytes = cgl_text_take(&text);
  return 0;
}


static cgl_compile_status run_compiler(cgl_host_job *h) {
  command c = {.n = 0};
  cgl_text said = {0};
  cgl_job *job = h->job;
  build_command(&c, h);
  int status = cgl_process_run(c.argv, NULL, &said);
  if (status == -1) {
    cgl_text_print(&job->log, "cannot run %s: %s", h->cxx->path,
                   strerror(errno));
    cgl_text_free(&said);
    return CGL_COMPILE_SYSTEM;
  }
  job->log.length = 0;
  cgl_host_diagnostics(job->source, said.data ? said.data : "", &job->log);
  cgl_text_free(&said);
  if ((status == 0 || status == -2) && read_image(h->output, job->image) == 0)
    return CGL_COMPILE_OK;
  if (!job->log.length)
    cgl_text_print(&job->log, "%s ended with status %d and no message",
                   h->cxx->path, status);
  return CGL_COMPILE_REFUSED;
}


static cgl_compile_status build_image(cgl_host_job *h) {
  cgl_text text = {0};
  cgl_compile_status status = CGL_COMPILE_SYSTEM;
  cgl_host_generate(h, &text);
  if (text.failed)
    cgl_text_put(&h->job->log, "out of memory");
  else if (write_file(h->input, &text) != 0)
    cgl_text_print(&h->job->log, "cannot write %s: %s", h->input,
                   strerror(errno));
  else
    status = run_compiler(h);
  cgl_text_free(&text);
  return status;
}


/* A folder of our own in $TMPDIR, and the names of the files in it. */
static int make_folder(cgl_host_job *h) {
  const char *base = getenv("TMPDIR");
  if (!base || !*base)
    base = "/tmp";
  h->folder = cgl_format("%s/cgraphlua-XXXXXX", base);
  if (!h->folder || !mkdtemp(h->folder)) {
    cgl_text_print(&h->job->log, "cannot make a folder in %s: %s", base,
                   strerror(errno));
    free(h->folder);
    h->folder = NULL;
    return -1;
  }
  h->input = cgl_format("%s/kernel.cc", h->folder);
  h->output = cgl_format("%s/kernel.so", h->folder);
  h->dump = cgl_format("%s/kernel.sra", h->folder);
  h->dump_option = cgl_format("-fdump-tree-sra=%s/kernel.sra", h->folder);
  h->ordered = calloc(h->job->image->nsignatures + 1, sizeof *h->ordered);
  return h->input && h->output && h->dump && h->dump_option && h->ordered ? 0
                                                                          : -1;
}


static void remove_folder(cgl_host_job *h) {
  char *const paths[] = {h->input, h->output, h->dump};
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    if (paths[i])
      unlink(paths[i]);
    free(paths[i]);
  }
  if (h->folder)
    rmdir(h->folder);
  free(h->folder);
  free(h->dump_option);
  free(h->ordered);
}


cgl_compile_status cgl_host_compile(cgl_job *job) {
  cgl_host_job h = {.job = job, .cxx = find_compiler()};
  cgl_compile_status status = CGL_COMPILE_SYSTEM;
  if (!h.cxx)
    return no_compiler(job);
  if (make_folder(&h) == 0) {
    const cgl_image *image = job->image;
    for (size_t i = 0; i < image->nsignatures; i++)
      h.ordered[i] =
          h.cxx->clang && (image->signatures[i].features & CGL_USES_LOCALS);
    status = build_image(&h);
    if (status == CGL_COMPILE_REFUSED && cgl_host_drop_loops(&h))
      status = build_image(&h); /* for the columns of the messages */
    else if (status == CGL_COMPILE_OK && !h.cxx->clang &&
             cgl_host_find_memory(&h)) {
      free(job->image->bytes);
      job->image->bytes = NULL;
      status = build_image(&h);
    }
  }
  remove_folder(&h);
  return status;
}
