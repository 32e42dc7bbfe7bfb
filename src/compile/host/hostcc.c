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


/* A row of words that ends with NULL; the words are not owned. */
typedef struct command {
  char **argv;
  size_t n, room;
  bool failed;
} command;


static void add_word(command *c, const char *word) {
  if (c->n + 1 >= c->room) {
    size_t room = c->room ? 2 * c->room : 128;
    char **more = realloc(c->argv, room * sizeof *more);
    if (!more) {
      c->failed = true;
      return;
    }
    c->argv = more;
    c->room = room;
  }
  c->argv[c->n++] = (char *)word;
  c->argv[c->n] = NULL;
}


static void add_words(command *c, const char *const *words) {
  while (*words)
    add_word(c, *words++);
}


static int read_version(cgl_cxx *c) {
  cgl_text text = {0};
  command all = {.n = 0};
  add_words(&all, (const char *const *)c->words);
  add_word(&all, "--version");
  int status = all.failed ? -1 : cgl_process_run(all.argv, NULL, &text);
  free(all.argv);
  if ((status != 0 && status != -2) || !text.data)
    return cgl_text_free(&text), -1;
  text.data[strcspn(text.data, "\n")] = 0;
  c->clang = strstr(text.data, "clang");
  /* "g++ (Debian 12.2.0-14) 12.2.0": the last word is the number. */
  const char *number = strrchr(text.data, ' ');
  c->major = number ? atoi(number + 1) : 0;
  cgl_text_free(&text);
  return 0;
}


/* Splits $CGRAPHLUA_CXX at blanks. */
static int split_words(cgl_cxx *c, const char *asked) {
  char *rest = NULL;
  size_t n = 0;
  c->copy = strdup(asked);
  c->words = calloc(strlen(asked) / 2 + 2, sizeof *c->words);
  if (!c->copy || !c->words)
    return -1;
  for (char *w = strtok_r(c->copy, " \t", &rest); w;
       w = strtok_r(NULL, " \t", &rest))
    c->words[n++] = w;
  c->path = n ? cgl_process_find(c->words[0]) : NULL;
  return c->path ? 0 : -1;
}


/* The words of $CGRAPHLUA_CXX, or the first of the usual names. */
static int find_words(cgl_cxx *c, const char *asked) {
  static const char *const usual[] = {"c++", "g++", "clang++"};
  if (*asked)
    return split_words(c, asked);
  c->words = calloc(2, sizeof *c->words);
  for (size_t i = 0; c->words && i < sizeof usual / sizeof *usual; i++)
    if ((c->words[0] = c->path = cgl_process_find(usual[i])))
      return 0;
  return -1;
}


static void free_compiler(cgl_cxx *c) {
  if (!c)
    return;
  free(c->words);
  free(c->copy);
  free(c->path);
  free(c->asked);
  free(c);
}


/* The compiler that $CGRAPHLUA_CXX names now, without a version; or NULL. */
static cgl_cxx *new_compiler(void) {
  const char *asked = getenv("CGRAPHLUA_CXX");
  cgl_cxx *c = calloc(1, sizeof *c);
  if (c)
    c->asked = strdup(asked ? asked : "");
  if (c && c->asked && find_words(c, c->asked) == 0)
    return c;
  free_compiler(c);
  return NULL;
}


/* The same, asked for its version once.  What is returned lives as long as the
   process. */
static const cgl_cxx *find_compiler(void) {
  const char *asked = getenv("CGRAPHLUA_CXX");
  pthread_mutex_lock(&lock);
  cgl_cxx *c = known;
  if (!c || strcmp(c->asked, asked ? asked : "") || access(c->path, X_OK)) {
    c = new_compiler();
    if (c && read_version(c) != 0) {
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


/* A word may be a program that runs the compiler, as ccache does. */
void cgl_host_identify(cgl_text *identity) {
  cgl_cxx *c = new_compiler();
  struct stat st;
  for (size_t i = 0; c && c->words[i]; i++) {
    char *path = *c->words[i] != '-' ? cgl_process_find(c->words[i]) : NULL;
    cgl_text_print(identity, "%s ", c->words[i]);
    if (path && stat(path, &st) == 0)
      cgl_text_print(identity, "%lld %lld.%09ld ", (long long)st.st_size,
                     (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
    free(path);
  }
  free_compiler(c);
}


static const char *const common_options[] = {
    "-fPIC",
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
#if defined __x86_64__
    /* no frame may step over the guard page of a fiber's stack */
    "-fstack-clash-protection",
#endif
    "-fcf-protection=none",
    "-Wno-unknown-pragmas",
    "-Wno-attributes",
    NULL,
};

static const char *const gcc_options[] = {
    "-fno-gnu-unique",
    /* what a source defines and no kernel uses is not compiled */
    "-fwhole-program",
    /* short loops that cross a line of code take up to half as long again */
    "-falign-loops=64",
#if defined __x86_64__
    /* without calls of functions, which stay in loops (see cgl_wake) */
    "-mtls-dialect=gnu2",
#elif defined __aarch64__
    "-fstack-clash-protection",
    "--param",
    "stack-clash-protection-guard-size=12",
#endif
    "-Wno-builtin-declaration-mismatch",
    /* for nvcc it is no error */
    "-Wno-narrowing",
    /* a shape that a kernel has a function for may be none of its own */
    "-Wno-aggressive-loop-optimizations",
    /* both take the address of threadIdx, which then is memory that any
       store may change, in all kernels of the source */
    "-fno-tree-slp-vectorize",
    "-fno-store-merging",
    /* a quarter of the time of a long kernel's compile, for nothing */
    "-fno-gcse",
    "-fno-gcse-after-reload",
    /* a twelfth, likewise */
    "-fno-thread-jumps",
    "-fno-schedule-insns2",
    /* a warp's 32 values would be copied by halves of vectors */
    "-fno-tree-loop-distribute-patterns",
    "-fdiagnostics-color=never",
    "-fmax-errors=20",
    "-fno-diagnostics-show-caret",
    NULL,
};

/* The guards of stencils leave their loops, up to four of a loop: each may
   double what there is to compile.  gcc 13 counts them under another name. */
static const char *const unswitch_options[] = {
    "--param", "logical-op-non-short-circuit=0",
    "--param", "max-unswitch-insns=400",
    "--param", NULL};
static const char unswitch_level[] = "max-unswitch-level=4";
static const char unswitch_depth[] = "max-unswitch-depth=4";

/* Sources whose kernels all have barriers, or that name elementary functions.
 */
static const char *const wide_options[] = {
#if defined __x86_64__
    "-mprefer-vector-width=512",
#endif
    NULL};

/* Of g++, where what it makes of vectors is wrong, or what it takes out of
   loops: the address of s[0xffffffff], which no thread loads from, is too far
   for the linker where s is shared memory of fibers (seen with gcc 12, 13). */
static const char *const scalar_options[] = {"-fno-tree-loop-vectorize",
                                             "-fno-move-loop-invariants", NULL};

static const char *const clang_options[] = {
    "-fno-color-diagnostics",  "-fno-caret-diagnostics",
    "-Wno-ignored-attributes", "-Wno-pass-failed",
    "-Wno-c++11-narrowing",    NULL};

static const char *const link_options[] = {
    "-nostartfiles", "-nodefaultlibs", "-Wl,-z,defs", "-lm",
    "-lc",           "-lgcc",          NULL};


void cgl_host_key(const cgl_job *job, cgl_text *out) {
  const char *const *const rows[] = {
      common_options, gcc_options,   unswitch_options, wide_options,
      scalar_options, clang_options, link_options};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    for (size_t k = 0; rows[i][k]; k++)
      cgl_text_print(out, "%s\n", rows[i][k]);
  cgl_text_print(out, "%s\n", unswitch_level);
  if (job->level)
    cgl_text_print(out, "%s\n", job->level);
  else
    cgl_host_processor(out);
  cgl_host_device_text(out);
  cgl_host_ask(out);
}


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


/* Whether $CGRAPHLUA_CXX itself has an option that begins with one of two. */
static bool names_option(const cgl_cxx *cxx, const char *a, const char *b) {
  for (size_t i = 0; cxx->words[i]; i++)
    if (!strncmp(cxx->words[i], a, strlen(a)) ||
        !strncmp(cxx->words[i], b, strlen(b)))
      return true;
  return false;
}


/* What decides which text the compiler sees, and what it knows by name. */
static void add_common(command *c, const cgl_cxx *cxx, const cgl_job *job) {
  add_words(c, (const char *const *)cxx->words);
  if (job->level) /* behind what the command itself may name */
    add_word(c, cgl_host_march(job->level));
  else if (!names_option(cxx, "-march=", "-mcpu="))
    add_word(c, cgl_host_target());
  if (!names_option(cxx, "-O", "-O"))
    add_word(c, "-O3");
  add_words(c, common_options);
  /* #line does not change where the compiler looks. */
  add_word(c, "-iquote");
  add_word(c, job->folder);
  add_options(c, job->source);
}


/* The processor's seconds that a kernel may take as loops. */
static unsigned long compile_seconds(void) {
  const char *asked = getenv("CGRAPHLUA_HOST_COMPILE_SECONDS");
  unsigned long n = asked ? strtoul(asked, NULL, 10) : 0;
  return n ? n : 10;
}


/* Bounds the compile of kernels as loops, and of kernels whose guards leave
   their loops: each guard may double what there is to compile. */
static void add_limit(command *c, cgl_host_job *h, bool unswitched) {
  unsigned long n = 0;
  for (size_t i = 0; i < h->job->image->nsignatures; i++)
    n += unswitched || h->job->image->signatures[i].loops ||
         h->job->image->signatures[i].strips;
  free(h->limit);
  h->limit = NULL;
  if (!n)
    return;
  h->limit = cgl_format("ulimit -S -t %lu; exec \"$@\"", n * compile_seconds());
  c->failed |= !h->limit;
  add_words(c, (const char *const[]){"/bin/sh", "-c", h->limit, "sh", NULL});
}


static void build_command(command *c, cgl_host_job *h) {
  const bool split = cgl_host_is_split(h->job);
  const bool unswitched = !split && !h->guarded && !h->cxx->clang;
  add_limit(c, h, unswitched);
  add_common(c, h->cxx, h->job);
  if (h->cxx->clang)
    add_words(c, clang_options);
  else {
    add_words(c, gcc_options);
    if (split || cgl_host_has_functions(h->job))
      add_words(c, wide_options);
    if (unswitched) {
      add_words(c, unswitch_options);
      add_word(c, h->cxx->major >= 13 ? unswitch_depth : unswitch_level);
    }
    if (h->scalar)
      add_words(c, scalar_options);
    add_word(c, h->dumps[0]);
    add_word(c, h->dumps[1]);
  }
  add_words(c,
            (const char *const[]){"-shared", "-MD", "-MT", "image", "-MF",
                                  h->depends, h->input, "-o", h->output, NULL});
  add_words(c, link_options);
}


int cgl_host_correct(cgl_job *job) {
  const cgl_cxx *cxx = find_compiler();
  cgl_text outline = {0}, said = {0};
  command c = {.n = 0};
  int status = 1;
  if (!cxx || !cgl_program_is_guess(job->program))
    return 0;
  const char *mark = cgl_host_outline(job, &outline);
  add_common(&c, cxx, job);
  /* By its path no header of the current folder comes first; without /proc the
     path leads nowhere. */
  const char *input = access("/dev/stdin", R_OK) ? "-" : "/dev/stdin";
  add_words(&c, (const char *const[]){"-w", "-E", input, NULL});
  if (!c.failed && !outline.failed)
    status = cgl_process_run(c.argv, &outline, &said);
  char *text = said.data ? strstr(said.data, mark) : NULL;
  cgl_program *program = job->program;
  /* What does not preprocess does not compile either; the compiler says so. */
  if ((status == 0 || status == -2) && text) {
    text += strlen(mark);
    program = cgl_program_correct(program, text, strlen(text),
                                  job->source->file, job->source->line);
  }
  if (program)
    job->program = program;
  free(c.argv);
  cgl_text_free(&outline);
  cgl_text_free(&said);
  return program ? 0 : -1;
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
  free(image->bytes); /* of an earlier one */
  image->size = text.length;
  image->bytes = cgl_text_take(&text);
  return 0;
}


static cgl_compile_status run_compiler(cgl_host_job *h) {
  command c = {.n = 0};
  cgl_text said = {0};
  cgl_job *job = h->job;
  build_command(&c, h);
  int status = c.failed ? -1 : cgl_process_run(c.argv, NULL, &said);
  free(c.argv);
  if (status == -1) {
    cgl_text_print(&job->log, "cannot run %s: %s", h->cxx->path,
                   strerror(errno));
    cgl_text_free(&said);
    return CGL_COMPILE_SYSTEM;
  }
  job->log.length = 0;
  cgl_host_diagnostics(job->source, said.data ? said.data : "", &job->log);
  cgl_text_free(&h->said);
  h->said = said;
  if ((status == 0 || status == -2) && read_image(h->output, job->image) == 0)
    return CGL_COMPILE_OK;
  if (!job->log.length)
    cgl_text_print(&job->log, "%s ended with status %d and no message",
                   h->cxx->path, status);
  return CGL_COMPILE_REFUSED;
}


/* Is there an image of the text already?  Kernels whose loops never were
   unordered have the same text when they are to run in order. */
static bool is_built(const cgl_host_job *h, const cgl_text *text) {
  return h->built.data && h->built_scalar == h->scalar &&
         h->built.length == text->length &&
         memcmp(h->built.data, text->data, text->length) == 0;
}


static cgl_compile_status build_image(cgl_host_job *h) {
  cgl_text text = {0};
  cgl_compile_status status = CGL_COMPILE_SYSTEM;
  cgl_host_generate(h, &text);
  if (text.failed)
    cgl_text_put(&h->job->log, "out of memory");
  else if (is_built(h, &text))
    status = CGL_COMPILE_OK;
  else if (write_file(h->input, &text) != 0)
    cgl_text_print(&h->job->log, "cannot write %s: %s", h->input,
                   strerror(errno));
  else
    status = run_compiler(h);
  cgl_text_free(&h->built);
  if (status != CGL_COMPILE_OK)
    cgl_text_free(&text);
  h->built = text;
  h->built_scalar = h->scalar;
  return status;
}


/* The files of a rule as make has it, "image: a b\\ c \\": a NUL after each. */
static void split_rule(const char *rule, const char *own, cgl_text *out) {
  const char *at = strchr(rule, ':');
  cgl_text name = {0};
  for (at = at ? at + 1 : ""; *at || name.length; at += *at != 0) {
    if (*at == '\\' && (at[1] == ' ' || at[1] == '#'))
      cgl_text_add(&name, ++at, 1);
    else if (*at == '$' && at[1] == '$')
      cgl_text_add(&name, ++at, 1);
    else if (*at && *at != ' ' && *at != '\n' &&
             !(*at == '\\' && at[1] == '\n'))
      cgl_text_add(&name, at, 1);
    else if (name.length) {
      if (strcmp(name.data, own))
        cgl_text_add(out, name.data, name.length + 1);
      name.length = 0;
    }
  }
  out->failed |= name.failed;
  cgl_text_free(&name);
}


/* Notes what the compiler says it read. */
static void note_files(cgl_host_job *h) {
  cgl_text rule = {0}, files = {0};
  if (cgl_text_read(&rule, h->depends, SIZE_MAX) != 0 || !rule.length)
    h->job->unkept = true;
  else
    split_rule(rule.data, h->input, &files);
  h->job->unkept |= files.failed;
  cgl_source_note_files(h->job, files.data, files.length);
  cgl_text_free(&rule);
  cgl_text_free(&files);
}


/* The folder in which what is compiled is kept, or NULL. */
static const char *kept_folder(void) {
  const char *keep = getenv("CGRAPHLUA_HOST_KEEP");
  return keep && *keep ? keep : NULL;
}


/* A folder of our own in $CGRAPHLUA_HOST_KEEP or $TMPDIR, and the names of the
   files in it. */
static int make_folder(cgl_host_job *h) {
  const char *base = kept_folder();
  if (!base)
    base = getenv("TMPDIR");
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
  h->dumps[0] = cgl_format("-fdump-tree-sra=%s/kernel.sra", h->folder);
  h->dumps[1] = cgl_format("-fdump-tree-vect=%s/kernel.vect", h->folder);
  h->depends = cgl_format("%s/kernel.d", h->folder);
  h->ordered = calloc(h->job->image->nsignatures + 1, sizeof *h->ordered);
  bool all = h->input && h->output && h->dumps[0] && h->dumps[1] && h->depends;
  return all && h->ordered ? 0 : -1;
}


static void remove_folder(cgl_host_job *h) {
  char *const words[] = {h->input, h->output, h->depends, h->dumps[0],
                         h->dumps[1]};
  bool keep = kept_folder();
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    const char *option = words[i] ? strchr(words[i], '=') : NULL;
    if (words[i] && !keep)
      unlink(*words[i] == '-' ? option + 1 : words[i]);
    free(words[i]);
  }
  if (h->folder && !keep)
    rmdir(h->folder);
  free(h->folder);
  cgl_text_free(&h->said);
  cgl_text_free(&h->built);
  free(h->limit);
  free(h->ordered);
}


cgl_compile_status cgl_host_compile(cgl_job *job) {
  cgl_host_job h = {.job = job, .cxx = find_compiler()};
  cgl_compile_status status = CGL_COMPILE_SYSTEM;
  if (!h.cxx)
    return no_compiler(job);
  if (make_folder(&h) == 0) {
    const cgl_image *image = job->image;
    for (size_t i = 0; i < image->nsignatures; i++) {
      cgl_signature *s = &image->signatures[i];
      h.ordered[i] = h.cxx->clang && (s->features & CGL_USES_LOCALS);
      s->waits = true;
    }
    if (cgl_host_choose_loops(&h) == 0)
      do
        status = build_image(&h);
      while (cgl_host_amend(&h, status));
    if (status == CGL_COMPILE_OK) {
      note_files(&h);
      status = cgl_host_check_shared(job);
      if (status == CGL_COMPILE_OK && cgl_host_learn(job) != 0) {
        cgl_text_put(&job->log, "the image does not say what its kernels take");
        status = CGL_COMPILE_SYSTEM;
      }
    }
  }
  remove_folder(&h);
  return status;
}
