/* The system's C++ compiler as a kernel compiler. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend.h"
#include "device_text.h"
#include "process.h"

#define DYNAMIC_SHARED 232448 /* bytes, what sm_90 allows a block */

typedef struct compiler {
  char *words[8]; /* the command, its own arguments included */
  size_t nwords;
  char *path;    /* of the program that is run */
  char *version; /* first line of --version */
  int clang;
  int major;             /* 12 of 12.2.0; 0 when the version does not say */
  char *asked;           /* $CGRAPHLUA_CXX when it was looked up */
  struct compiler *next; /* an older one, which others may still use */
} compiler;

enum { MODE_FLAT = 1, MODE_ORDERED = 2, MODE_BARRIERS = 4, MODE_STRIDE = 8 };

typedef struct host_job {
  cgl_job *job;
  const compiler *cxx;
  char *folder, *input, *output, *dump; /* paths */
  char *dump_option;                    /* -fdump-tree-sra=... */
  unsigned char *ordered; /* by kernel: its threads must run in order */
} host_job;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static compiler *known; /* newest first */


static int read_version(compiler *c) {
  cgl_text text = {0};
  char *argv[10];
  size_t n = 0;
  for (; n < c->nwords; n++)
    argv[n] = c->words[n];
  argv[n++] = "--version";
  argv[n] = NULL;
  int status = cgl_process_run(argv, &text);
  if ((status != 0 && status != -2) || !text.data)
    return cgl_text_free(&text), 0;
  text.data[strcspn(text.data, "\n")] = 0;
  c->version = strdup(text.data);
  c->clang = c->version && strstr(c->version, "clang") != NULL;
  /* "g++ (Debian 12.2.0-14) 12.2.0": the last word is the number. */
  const char *number = strrchr(text.data, ' ');
  c->major = number ? atoi(number + 1) : 0;
  cgl_text_free(&text);
  return c->version != NULL;
}


/* $CGRAPHLUA_CXX, words split at blanks, or the first of the usual names. */
static int find_words(compiler *c, const char *asked) {
  static const char *const usual[] = {"c++", "g++", "clang++"};
  if (asked && *asked) {
    char *copy = strdup(asked), *rest = NULL;
    if (!copy)
      return 0;
    for (char *w = strtok_r(copy, " \t", &rest); w && c->nwords < 8;
         w = strtok_r(NULL, " \t", &rest))
      c->words[c->nwords++] = strdup(w);
    free(copy);
    c->path = c->nwords && c->words[0] ? cgl_process_find(c->words[0]) : NULL;
    return c->path != NULL;
  }
  for (size_t i = 0; i < sizeof usual / sizeof *usual; i++) {
    c->path = cgl_process_find(usual[i]);
    if (c->path) {
      c->words[c->nwords++] = strdup(c->path);
      return c->words[0] != NULL;
    }
  }
  return 0;
}


static void free_compiler(compiler *c) {
  for (size_t i = 0; i < c->nwords; i++)
    free(c->words[i]);
  free(c->path);
  free(c->version);
  free(c->asked);
  free(c);
}


/* The compiler $CGRAPHLUA_CXX names now; asked for its version once.  What
   is returned lives as long as the process. */
static const compiler *find_compiler(void) {
  const char *asked = getenv("CGRAPHLUA_CXX");
  if (!asked)
    asked = "";
  pthread_mutex_lock(&lock);
  compiler *c = known;
  if (!c || strcmp(c->asked, asked)) {
    c = calloc(1, sizeof *c);
    if (c)
      c->asked = strdup(asked);
    if (c && (!c->asked || !find_words(c, asked) || !read_version(c))) {
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
  const compiler *c = find_compiler();
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


void cgl_host_device_text(cgl_text *out) {
  cgl_text_put(out, cgl_text_kernel_abi);
  cgl_text_put(out, cgl_text_device);
  cgl_text_put(out, cgl_text_device_math);
  cgl_text_put(out, cgl_text_device_int);
  cgl_text_put(out, cgl_text_device_half);
  cgl_text_put(out, cgl_text_prelude);
  cgl_text_put(out, cgl_text_device_run);
}


/* Parts of the device header are left out when the source names none of
   their words: half the time of a small kernel's compile is its header. */
static void add_header(const cgl_job *job, cgl_text *out) {
  static const char *const warp[] = {"_sync", "__activemask", "__syncwarp",
                                     "__syncthreads_", NULL};
  static const char *const atomics[] = {"atomic", NULL};
  static const char *const half[] = {"half", "bfloat16", NULL};
  static const char *const integers[] = {
      "2int",  "2uint",  "2ll",     "2ull",     "2float_", "2double_",
      "_rn",   "_rz",    "_ru",     "_rd",      "__popc",  "__clz",
      "__ffs", "__brev", "__byte_", "mulhi",    "64hi",    "mul24",
      "sad",   "hadd",   "__dp4a",  "__funnel", NULL};
  static const char *const vectors[] = {"char", "short", "long", NULL};
  static const struct {
    const char *macro;
    const char *const *words;
  } parts[] = {{"CGL_WITH_WARP", warp},
               {"CGL_WITH_ATOMICS", atomics},
               {"CGL_WITH_HALF", half},
               {"CGL_WITH_INTEGERS", integers},
               {"CGL_WITH_VECTORS", vectors}};
  const cgl_source *s = job->source;
  int all = cgl_program_is_partial(job->program);
  int has_half = all, has_integers = all;
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    int found = all;
    for (const char *const *w = parts[i].words; *w && !found; w++)
      found = cgl_program_contains(job->program, *w) ||
              memmem(s->text, s->length, *w, strlen(*w)) != NULL;
    if (found)
      cgl_text_print(out, "#define %s 1\n", parts[i].macro);
    has_half |= found && parts[i].words == half;
    has_integers |= found && parts[i].words == integers;
  }
  cgl_text_put(out, cgl_text_prelude);
  cgl_text_put(out, cgl_text_kernel_abi);
  cgl_text_put(out, cgl_text_device);
  cgl_text_put(out, cgl_text_device_math);
  if (has_integers)
    cgl_text_put(out, cgl_text_device_int);
  if (has_half)
    cgl_text_put(out, cgl_text_device_half);
  cgl_text_put(out, cgl_text_device_run);
}


/* CGL_FLAT and its like of device_run.h, added up. */
static int mode_of(const host_job *h, size_t which) {
  unsigned features = h->job->image->signatures[which].features;
  if (features & CGL_USES_BARRIER)
    return MODE_BARRIERS;
  if (h->job->image->signatures[which].loop.start && !h->ordered[which])
    return MODE_STRIDE;
  return (features & (CGL_USES_SHARED | CGL_NEEDS_THREADS) ? 0 : MODE_FLAT) |
         (h->ordered[which] ? MODE_ORDERED : 0);
}


/* One row per kernel; an error in it points at the kernel's own line. */
static void add_exports(const host_job *h, cgl_text *out) {
  const cgl_job *job = h->job;
  const cgl_image *image = job->image;
  const char *file = job->source->file;
  cgl_text_put(out, "\n#line 1 \"cgraphlua\"\n");
  if (cgl_program_contains(job->program, "__shared__"))
    cgl_text_print(out,
                   "extern \"C\" { __thread char cgl_dynamic_shared[%d] "
                   "__attribute__((aligned(128))); }\n",
                   DYNAMIC_SHARED);
  if (image->nsignatures)
    cgl_text_put(out, "static const cgl_host_kernel cgl_kernels[] = {\n");
  for (size_t i = 0; i < image->nsignatures; i++) {
    const cgl_signature *s = &image->signatures[i];
    const char *name = *s->name == '&' ? s->name + 1 : s->name;
    cgl_text_print(out, "#line %d \"", s->line);
    cgl_text_quote(out, file);
    cgl_text_print(out, "\"\ncgl_export<%zu, (%s), %d>(\"", i, name,
                   mode_of(h, i));
    cgl_text_quote(out, s->lowered);
    cgl_text_print(out, "\", %u),\n", s->max_threads ? s->max_threads : 1024u);
  }
  cgl_text_put(out, image->nsignatures ? "};\n" : "");
  cgl_text_put(out, "#line 1 \"cgraphlua\"\n");
  if (image->nvariables)
    cgl_text_put(out, "static const cgl_host_global cgl_globals[] = {\n");
  for (size_t i = 0; i < image->nvariables; i++)
    cgl_text_print(out, "{\"%s\", (void *)&%s, sizeof(%s)},\n",
                   image->variables[i].name, image->variables[i].name,
                   image->variables[i].name);
  cgl_text_put(out, image->nvariables ? "};\n" : "");
  cgl_text_print(
      out,
      "extern \"C\" __attribute__((visibility(\"default\"), used)) "
      "const cgl_host_module cgl_exported "
      "__asm__(\""
      "cgl_host_module"
      "\");\n"
      "const cgl_host_module cgl_exported = {CGL_HOST_ABI, %zu, "
      "%s, %zu, %s, cgl_init};\n",
      image->nsignatures, image->nsignatures ? "cgl_kernels" : "nullptr",
      image->nvariables, image->nvariables ? "cgl_globals" : "nullptr");
}


/* -D and -U as directives: on the command line they would reach into the
   device header, whose names are not the user's to change. */
static void add_defines(const cgl_source *s, cgl_text *out) {
  for (size_t i = 0; i < s->noptions; i++) {
    const char *option = s->options[i];
    if (strncmp(option, "-D", 2) && strncmp(option, "-U", 2))
      continue;
    const char *name = option + 2;
    if (!*name && i + 1 < s->noptions)
      name = s->options[++i];
    size_t n = strcspn(name, "=");
    cgl_text_put(out, option[1] == 'D' ? "#define " : "#undef ");
    cgl_text_add(out, name, n);
    if (option[1] == 'D')
      cgl_text_print(out, " %s", name[n] ? name + n + 1 : "1");
    cgl_text_put(out, "\n");
  }
}


/* The script's text, the loops of kernels that run so written anew. */
static void add_source(const host_job *h, cgl_text *out) {
  const cgl_image *image = h->job->image;
  const cgl_loop **loops = calloc(image->nsignatures + 1, sizeof *loops);
  size_t n = 0;
  out->failed |= !loops;
  for (size_t i = 0; loops && i < image->nsignatures; i++)
    if (mode_of(h, i) == MODE_STRIDE)
      loops[n++] = &image->signatures[i].loop;
  if (loops)
    cgl_source_rewrite(h->job->source, 1, loops, n, out);
  free(loops);
}


static void generate(const host_job *h, cgl_text *out) {
  const cgl_job *job = h->job;
  cgl_text_put(out, "#line 1 \"cgraphlua\"\n");
  add_header(job, out);
  add_defines(job->source, out);
  cgl_text_print(out, "#line %d \"", job->source->line);
  cgl_text_quote(out, job->source->file);
  cgl_text_put(out, "\"\n");
  add_source(h, out);
  add_exports(h, out);
}


typedef struct command {
  char *argv[256];
  size_t n;
} command;


static void add_word(command *c, const char *word) {
  if (c->n < 255)
    c->argv[c->n++] = (char *)word;
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


static void build_command(command *c, const host_job *h) {
  const compiler *cxx = h->cxx;
  static const char *const common[] = {
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
  };
  static const char *const gcc[] = {
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
  };
  /* gcc 13 counts the nesting under another name. */
  const char *unswitch =
      cxx->major >= 13 ? "max-unswitch-depth=8" : "max-unswitch-level=8";
  static const char *const clang[] = {
      "-fno-color-diagnostics", "-fno-caret-diagnostics",
      "-Wno-ignored-attributes", "-Wno-pass-failed"};
  for (size_t i = 0; i < cxx->nwords; i++)
    add_word(c, cxx->words[i]);
  for (size_t i = 0; i < sizeof common / sizeof *common; i++)
    add_word(c, common[i]);
  if (cxx->clang)
    for (size_t i = 0; i < sizeof clang / sizeof *clang; i++)
      add_word(c, clang[i]);
  else
    for (size_t i = 0; i < sizeof gcc / sizeof *gcc; i++)
      add_word(c, gcc[i]);
  if (!cxx->clang) {
    add_word(c, "--param");
    add_word(c, unswitch);
  }
  if (!cxx->clang && h->dump_option)
    add_word(c, h->dump_option);
  /* #line does not change where the compiler looks. */
  add_word(c, "-iquote");
  add_word(c, h->job->folder);
  add_options(c, h->job->source);
  add_word(c, h->input);
  add_word(c, "-o");
  add_word(c, h->output);
  add_word(c, "-nostartfiles");
  add_word(c, "-nodefaultlibs");
  add_word(c, "-lm");
  add_word(c, "-lc");
  add_word(c, "-lgcc");
  c->argv[c->n] = NULL;
}


static int write_all(const char *path, const cgl_text *text) {
  FILE *file = fopen(path, "wb");
  if (!file)
    return 0;
  size_t n = fwrite(text->data, 1, text->length, file);
  return (fclose(file) == 0) & (n == text->length);
}


static int read_all(const char *path, cgl_image *image) {
  FILE *file = fopen(path, "rb");
  cgl_text text = {0};
  char block[8192];
  size_t n;
  if (!file)
    return 0;
  while ((n = fread(block, 1, sizeof block, file)) > 0)
    cgl_text_add(&text, block, n);
  int bad = ferror(file) || text.failed || !text.length;
  fclose(file);
  image->size = text.length;
  image->bytes = cgl_text_take(&text);
  return !bad && image->bytes;
}


static cgl_compile_status run_compiler(host_job *h) {
  command c = {.n = 0};
  cgl_text said = {0};
  cgl_job *job = h->job;
  build_command(&c, h);
  int status = cgl_process_run(c.argv, &said);
  if (status == -1) {
    cgl_text_print(&job->log, "cannot run %s: %s", h->cxx->path,
                   strerror(errno));
    cgl_text_free(&said);
    return CGL_COMPILE_SYSTEM;
  }
  job->log.length = 0;
  cgl_host_diagnostics(job->source, said.data ? said.data : "", &job->log);
  cgl_text_free(&said);
  if ((status == 0 || status == -2) && read_all(h->output, job->image))
    return CGL_COMPILE_OK;
  if (!job->log.length)
    cgl_text_print(&job->log, "%s ended with status %d and no message",
                   h->cxx->path, status);
  return CGL_COMPILE_REFUSED;
}


/* Does a line of a function's declarations name memory: an array, a struct,
   a union?  What the compiler could keep in registers is gone by then, and a
   pointer is none. */
static int is_memory(const char *line) {
  if (strncmp(line, "  ", 2) || line[2] == ' ' || line[2] == '<')
    return 0;
  line += 2;
  if (strncmp(line, "static ", 7) == 0 || strchr(line, '=') ||
      !strchr(line, ';'))
    return 0;
  if (strchr(line, '['))
    return 1;
  if (strncmp(line, "const ", 6) == 0)
    line += 6;
  if (strncmp(line, "struct ", 7) && strncmp(line, "union ", 6) &&
      strncmp(line, "class ", 6))
    return 0;
  const char *arguments_end = strrchr(line, '>'); /* of a template */
  return !strpbrk(arguments_end ? arguments_end : line, "*&");
}


/* Instances of one template share their text, and so how its loop runs. */
static void set_ordered(host_job *h, size_t kernel) {
  const cgl_signature *all = h->job->image->signatures;
  h->ordered[kernel] = 1;
  for (size_t i = 0; i < h->job->image->nsignatures; i++)
    if (all[kernel].loop.start && all[i].loop.start == all[kernel].loop.start)
      h->ordered[i] = 1;
}


/* The pragma that lets the compiler vectorise over threads says that their
   memory accesses are independent.  A local array that stays in memory is
   one array for the whole loop, and then the claim is false: gcc takes it at
   its word and mixes the threads' values (seen with gcc 12; `omp simd` does
   the same).  So the dump after scalar replacement, before any pass uses the
   claim, is read for such arrays, and the kernels that have them are built
   again in order.  Returns how many. */
static size_t find_memory(host_job *h) {
  static const char *const names[] = {"cgl_row<", "cgl_block<", "cgl_stride<"};
  const cgl_image *image = h->job->image;
  FILE *file = fopen(h->dump, "r");
  char line[1024];
  size_t found = 0, kernel = image->nsignatures;
  if (!file) {
    for (size_t i = 0; i < image->nsignatures; i++)
      found += !h->ordered[i] && !(mode_of(h, i) & MODE_BARRIERS);
    memset(h->ordered, 1, image->nsignatures);
    return found;
  }
  while (fgets(line, sizeof line, file)) {
    if (strncmp(line, ";; Function ", 12) == 0) {
      kernel = image->nsignatures;
      for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(line + 12, names[i], strlen(names[i])) == 0)
          kernel = strtoul(line + 12 + strlen(names[i]), NULL, 10);
    } else if (strncmp(line, "  <bb ", 6) == 0)
      kernel = image->nsignatures;
    else if (kernel < image->nsignatures && !h->ordered[kernel] &&
             is_memory(line)) {
      found++;
      set_ordered(h, kernel);
    }
  }
  fclose(file);
  return found;
}


static cgl_compile_status build(host_job *h) {
  cgl_text text = {0};
  cgl_compile_status status = CGL_COMPILE_SYSTEM;
  generate(h, &text);
  if (text.failed)
    cgl_text_put(&h->job->log, "out of memory");
  else if (!write_all(h->input, &text))
    cgl_text_print(&h->job->log, "cannot write %s: %s", h->input,
                   strerror(errno));
  else
    status = run_compiler(h);
  cgl_text_free(&text);
  return status;
}


/* A folder of our own in $TMPDIR, and the names of the files in it. */
static int make_folder(host_job *h) {
  const char *base = getenv("TMPDIR");
  if (!base || !*base)
    base = "/tmp";
  h->folder = cgl_format("%s/cgraphlua-XXXXXX", base);
  if (!h->folder || !mkdtemp(h->folder)) {
    cgl_text_print(&h->job->log, "cannot make a folder in %s: %s", base,
                   strerror(errno));
    free(h->folder);
    h->folder = NULL;
    return 0;
  }
  h->input = cgl_format("%s/kernel.cc", h->folder);
  h->output = cgl_format("%s/kernel.so", h->folder);
  h->dump = cgl_format("%s/kernel.sra", h->folder);
  h->dump_option = cgl_format("-fdump-tree-sra=%s/kernel.sra", h->folder);
  h->ordered = calloc(h->job->image->nsignatures + 1, 1);
  return h->input && h->output && h->dump && h->dump_option && h->ordered;
}


static void remove_folder(host_job *h) {
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


/* Leaves every loop as the script has it; returns how many there were. */
static size_t drop_loops(host_job *h) {
  size_t dropped = 0;
  for (size_t i = 0; i < h->job->image->nsignatures; i++)
    if (mode_of(h, i) == MODE_STRIDE) {
      h->ordered[i] = 1;
      dropped++;
    }
  return dropped;
}


cgl_compile_status cgl_host_compile(cgl_job *job) {
  host_job h = {.job = job, .cxx = find_compiler()};
  cgl_compile_status status = CGL_COMPILE_SYSTEM;
  if (!h.cxx)
    return no_compiler(job);
  if (make_folder(&h)) {
    const cgl_image *image = job->image;
    for (size_t i = 0; i < image->nsignatures; i++)
      h.ordered[i] =
          h.cxx->clang && (image->signatures[i].features & CGL_USES_LOCALS);
    status = build(&h);
    if (status == CGL_COMPILE_REFUSED && drop_loops(&h))
      status = build(&h); /* for the columns of the messages */
    else if (status == CGL_COMPILE_OK && !h.cxx->clang && find_memory(&h)) {
      free(job->image->bytes);
      job->image->bytes = NULL;
      status = build(&h);
    }
  }
  remove_folder(&h);
  return status;
}
