#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile/device/device_text.h"
#include "compile/nvrtc/nvrtc.h"

typedef struct program_record *nvrtc_program;

/* X(name, arguments): all return nvrtcResult, 0 for success */
#define NVRTC_CALLS(X)                                                \
  X(Version, (int *, int *))                                          \
  X(GetNumSupportedArchs, (int *))                                    \
  X(GetSupportedArchs, (int *))                                       \
  X(CreateProgram, (nvrtc_program *, const char *, const char *, int, \
                    const char *const *, const char *const *))        \
  X(DestroyProgram, (nvrtc_program *))                                \
  X(CompileProgram, (nvrtc_program, int, const char *const *))        \
  X(GetCUBINSize, (nvrtc_program, size_t *))                          \
  X(GetCUBIN, (nvrtc_program, char *))                                \
  X(GetPTXSize, (nvrtc_program, size_t *))                            \
  X(GetPTX, (nvrtc_program, char *))                                  \
  X(GetProgramLogSize, (nvrtc_program, size_t *))                     \
  X(GetProgramLog, (nvrtc_program, char *))                           \
  X(AddNameExpression, (nvrtc_program, const char *))                 \
  X(GetLoweredName, (nvrtc_program, const char *, const char **))

typedef struct nvrtc_table {
  void *library;
  const char *(*GetErrorString)(int);
#define X(name, arguments) int(*name) arguments;
  NVRTC_CALLS(X)
#undef X
  char *include;       /* the toolkit's headers, or NULL */
  const char *missing; /* a function that the library lacks */
} nvrtc_table;

enum { MOST_WORDS = 3 * 1024 }; /* of one answer */

typedef struct architecture {
  int number; /* 90 for sm_90 */
  bool exact; /* else PTX for an older one, which the driver translates */
} architecture;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static nvrtc_table table;


static char *existing_include(const char *home) {
  char *folder = cgl_format("%s/include", home);
  char *header = folder ? cgl_format("%s/cuda_fp16.h", folder) : NULL;
  bool there = header && access(header, R_OK) == 0;
  free(header);
  if (!there) {
    free(folder);
    folder = NULL;
  }
  return folder;
}


/* The include folder that belongs to the library: beside or above lib. */
static char *find_include(void *function) {
  Dl_info info;
  char path[PATH_MAX];
  char *include = NULL;
  if (dladdr(function, &info) && realpath(info.dli_fname, path))
    for (int up = 0; up < 5 && !include; up++) {
      char *slash = strrchr(path, '/');
      if (!slash || slash == path)
        break;
      *slash = 0;
      include = existing_include(path);
    }
  const char *home = getenv("CUDA_HOME");
  if (!include && home && *home)
    include = existing_include(home);
  if (!include)
    include = existing_include("/usr/local/cuda");
  return include;
}


static void fill_table(void *library) {
  table.library = library;
  *(void **)&table.GetErrorString = dlsym(library, "nvrtcGetErrorString");
#define X(name, arguments)                               \
  *(void **)&table.name = dlsym(library, "nvrtc" #name); \
  if (!table.name && !table.missing)                     \
    table.missing = "nvrtc" #name;
  NVRTC_CALLS(X)
#undef X
  if (!table.missing)
    table.include = find_include(*(void **)&table.Version);
}


/* Is there a library that has all it needs? */
static bool try_nvrtc(void) {
  pthread_mutex_lock(&lock);
  if (!table.library) {
    static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12",
                                        "libnvrtc.so", NULL};
    void *library = cgl_library_open(names, true);
    if (library)
      fill_table(library);
  }
  bool there = table.library && !table.missing;
  pthread_mutex_unlock(&lock);
  return there;
}


void cgl_nvrtc_open(void) {
  try_nvrtc();
}


static cgl_compile_status open_nvrtc(cgl_text *log) {
  bool there = try_nvrtc();
  if (!table.library)
    cgl_text_put(log,
                 "NVRTC, which compiles kernels for a GPU, was not found: no "
                 "libnvrtc.so.13, .12 or .so in $CUDA_HOME/lib64, the "
                 "loader's path or /usr/local/cuda/lib64; install the CUDA "
                 "toolkit's NVRTC, or set CUDA_HOME");
  else if (table.missing)
    cgl_text_print(log,
                   "the NVRTC library lacks %s; CUDA 12.0 or newer is needed",
                   table.missing);
  return there ? CGL_COMPILE_OK : CGL_COMPILE_NO_COMPILER;
}


/* The newest architecture NVRTC knows that code for `sm` may be made of. */
static architecture choose_architecture(const cgl_job *job) {
  int all[128] = {0}, n = 0, sm = job->sm;
  architecture best = {0};
  if (job->exact)
    return (architecture){sm, !job->ptx};
  if (table.GetNumSupportedArchs(&n) || n < 1 || n > 128 ||
      table.GetSupportedArchs(all))
    return (architecture){sm, true};
  for (int i = 0; i < n; i++)
    if (all[i] <= sm && all[i] > best.number)
      best.number = all[i];
  best.exact = best.number == sm && !job->predicated;
  return best.number ? best : (architecture){sm, true};
}


cgl_compile_status cgl_nvrtc_has(int sm, cgl_text *why) {
  int all[128] = {0}, n = 0;
  const cgl_compile_status opened = open_nvrtc(why);
  if (opened)
    return opened;
  if (table.GetNumSupportedArchs(&n) || n < 1 || n > 128 ||
      table.GetSupportedArchs(all))
    return CGL_COMPILE_OK;
  for (int i = 0; i < n; i++)
    if (all[i] == sm)
      return CGL_COMPILE_OK;
  cgl_text_print(why, "this NVRTC does not compile for %d; it knows", sm);
  for (int i = 0; i < n; i++)
    cgl_text_print(why, " %d", all[i]);
  return CGL_COMPILE_REFUSED;
}


void cgl_nvrtc_identify(const cgl_job *job, cgl_text *identity) {
  int major = 0, minor = 0;
  if (!try_nvrtc())
    return;
  table.Version(&major, &minor);
  architecture a = choose_architecture(job);
  cgl_text_print(identity, "nvrtc %d.%d %s_%d %s", major, minor,
                 a.exact ? "sm" : "compute", a.number,
                 table.include ? table.include : "");
}


void cgl_nvrtc_macros(const cgl_job *job, cgl_text *out) {
  int major = 0, minor = 0;
  if (try_nvrtc())
    table.Version(&major, &minor);
  cgl_text_print(out,
                 "#define __CUDA_ARCH__ %d0\n#define __CUDACC_RTC__ 1\n"
                 "#define __CUDACC_VER_MAJOR__ %d\n"
                 "#define __CUDACC_VER_MINOR__ %d\n",
                 job->sm, major, minor);
  cgl_text_put(out, cgl_text_prelude);
}


/* Where the compiler finds no file on disk: quoted includes are looked for
   beside the program. */
static const char nowhere[] = "/dev/null/cgraphlua";


/* The compiler tells parameters by the mangled name of a variable.  NVRTC has
   no offsetof; up to 12.1 an address is a constant, from 12.2 on only
   __INTADDR__. */
static void add_question(cgl_text *out) {
  cgl_text_put(out, "#if __CUDACC_VER_MAJOR__ * 100 + "
                    "__CUDACC_VER_MINOR__ > 1201\n"
                    "#define cgl_offset(T, cgl_name) "
                    "__INTADDR__(&((T *)0)->cgl_name)\n"
                    "#else\n#define cgl_offset(T, cgl_name) "
                    "(unsigned long)&((T *)0)->cgl_name\n#endif\n");
  cgl_source_ask(out);
  cgl_text_put(out, "template <class W> __device__ char cgl_tell;\n");
}


/* What a kernel that waits begins with; the comment, which the compiler keeps,
   tells it from a wait of the script's. */
static const char wait_text[] =
    "__device__ __forceinline__ void cgl_wait_for_grids() {\n"
    "#if __CUDA_ARCH__ >= 900\n"
    "  asm volatile(\"griddepcontrol.launch_dependents;\\n\"\n"
    "    \"griddepcontrol.wait; // cgraphlua\" ::: \"memory\");\n"
    "#endif\n"
    "}\n";


void cgl_nvrtc_device_text(cgl_text *out) {
  /* How it is compiled, too: images of other ways are not those of this. */
  cgl_text_put(out, "asked in a program of its own\n"
                    "promised reads do not wait\n");
  cgl_text_put(out, cgl_text_prelude);
  cgl_text_put(out, wait_text);
  cgl_text_put(out, cgl_text_device_random);
  cgl_text_put(out, cgl_text_device_complex);
  cgl_text_put(out, cgl_text_device_groups);
  add_question(out);
}


/* Part 0: the kernel's parameters; part k + 1: the fields of parameter k. */
static char *question_about(const cgl_image *image, size_t i, size_t part) {
  const char *name = image->signatures[i].name;
  return part ? cgl_format("&cgl_tell<cgl_fields_%zu_%zu>", i, part - 1)
              : cgl_format("&cgl_tell<cgl_answer<decltype(&%s)>::cgl_all>",
                           *name == '&' ? name + 1 : name);
}


/* "...IJLj5ELj4EEEE" has the words 5 and 4.  Returns how many, or -1. */
static long take_answer(nvrtc_program program, const cgl_image *image, size_t i,
                        size_t part, uint32_t words[MOST_WORDS]) {
  char *question = question_about(image, i, part);
  const char *at = NULL;
  long n = 0;
  if (!question || table.GetLoweredName(program, question, &at))
    at = NULL;
  free(question);
  at = at ? strstr(at, "cgl_words") : NULL;
  if (!at)
    return -1;
  while ((at = strstr(at, "Lj")) && n < MOST_WORDS) {
    words[n++] = (uint32_t)strtoul(at + 2, NULL, 10);
    at += 2;
  }
  return n;
}


/* What the compiler told of kernel i. */
static int take_answers(nvrtc_program program, cgl_image *image, size_t i) {
  cgl_signature *s = &image->signatures[i];
  uint32_t words[MOST_WORDS];
  for (size_t k = 0; k < s->nparameters; k++) {
    cgl_parameter *p = &s->parameters[k];
    const long n =
        p->nfields ? take_answer(program, image, i, k + 1, words) : 0;
    if (n < 0)
      return -1;
    if (p->nfields)
      cgl_source_learn_fields(p, words, (size_t)n);
  }
  const long n = take_answer(program, image, i, 0, words);
  return n < 0 || n % 3
             ? -1
             : cgl_source_learn(&image->arena, s, words, (size_t)n / 3);
}


/* Reads of memory that the source promises nobody writes while the kernel runs
   (const __restrict__, __ldg, textures).  The assembler moves them to before
   the wait, where the kernel before may still write. */
static bool code_reads_promised(const char *code, const char *end) {
  static const char *const reads[] = {"ld.global.nc", "ldu.", "tex.", "tld4."};
  for (size_t i = 0; i < sizeof reads / sizeof *reads; i++)
    if (memmem(code, (size_t)(end - code), reads[i], strlen(reads[i])))
      return true;
  return false;
}


/* Is a wait what the entry's code, up to `end`, begins with, so that nothing is
   read before it but parameters?  `promised`: functions of the module make such
   reads. */
static bool code_waits(const char *code, const char *end, bool promised) {
  static const char mark[] = "griddepcontrol.wait; // cgraphlua";
  static const char *const others[] = {"ld.",  "st.",  "atom", "red.",
                                       "call", "bra ", "tex."};
  const char *wait = memmem(code, (size_t)(end - code), mark, sizeof mark - 1);
  bool first = wait && !code_reads_promised(code, end) &&
               !(promised && memmem(code, (size_t)(end - code), "call", 4));
  for (size_t i = 0; first && i < sizeof others / sizeof *others; i++) {
    const size_t n = strlen(others[i]);
    const char *at = code;
    while (first && (at = memmem(at, (size_t)(wait - at), others[i], n))) {
      first = !strncmp(at, "ld.param", 8);
      at += n;
    }
  }
  return first;
}


/* Which kernels wait, in the compiler's own words: of a text that the reader
   misunderstood, of a macro and of another file none does. */
static void take_waits(cgl_job *job, nvrtc_program program) {
  static const char entry[] = ".entry ";
  size_t size = 0;
  char *ptx = NULL;
  if (!table.GetPTXSize(program, &size) && size && (ptx = malloc(size + 1)) &&
      !table.GetPTX(program, ptx))
    ptx[size] = 0;
  else if (ptx)
    *ptx = 0;
  const bool promised = ptx && code_reads_promised(ptx, ptx + strlen(ptx));
  for (const char *at = ptx; at && (at = strstr(at, entry));) {
    at += sizeof entry - 1;
    const char *code = strchr(at, '{');
    const char *end = code ? strstr(code, "\n}") : NULL;
    for (size_t i = 0; end && i < job->image->nsignatures; i++) {
      cgl_signature *s = &job->image->signatures[i];
      const size_t n = strlen(s->lowered);
      if (!strncmp(at, s->lowered, n) && (at[n] == '(' || at[n] == '\n'))
        s->waits = code_waits(code, end, promised);
    }
  }
  free(ptx);
}


/* What is compiled: the questions, whose variables would stay in the image
   (a GPU takes longer to launch a kernel whose module has variables) and whose
   messages show the script as it is; the image; and the image with kernels that
   do not wait, should it not compile otherwise. */
typedef enum source_form { FORM_ASKS, FORM_WAITS, FORM_PLAIN } source_form;


static void write_source(const cgl_job *job, source_form form, cgl_text *out) {
  const bool ask = form == FORM_ASKS;
  const cgl_source *s = job->source;
  cgl_text_put(out, "#line 1 \"cgraphlua\"\n");
  cgl_text_put(out, cgl_text_prelude);
  if (ask)
    add_question(out);
  if (form == FORM_WAITS)
    cgl_text_put(out, wait_text);
  if (cgl_program_contains(job->program, "half"))
    cgl_text_put(out, "#include <cuda_fp16.h>\n");
  if (cgl_program_contains(job->program, "bfloat16"))
    cgl_text_put(out, "#include <cuda_bf16.h>\n");
  if (cgl_program_is_partial(job->program) ||
      cgl_program_contains(job->program, "cgl_philox"))
    cgl_text_put(out, cgl_text_device_random);
  if (cgl_program_is_complex(job->program))
    cgl_text_put(out, cgl_text_device_complex);
  if (cgl_program_has_groups(job->program))
    cgl_text_put(out, cgl_text_device_groups);
  cgl_source_put_own_types(job->program, out);
  cgl_text_print(out, "#line %d \"", s->line);
  cgl_text_quote(out, s->file);
  cgl_text_put(out, "\"\n");
  cgl_source_rewrite(s, false, NULL, form == FORM_WAITS ? job->program : NULL,
                     out);
  cgl_text_put(out, "\n#line 1 \"cgraphlua\"\n");
  for (size_t i = 0; ask && i < job->image->nsignatures; i++)
    for (size_t k = 0; k < job->image->signatures[i].nparameters; k++)
      if (job->image->signatures[i].parameters[k].nfields)
        cgl_source_ask_fields(job->image, i, k, out);
}


static void take_log(cgl_job *job, nvrtc_program program) {
  size_t n = 0;
  if (table.GetProgramLogSize(program, &n) || n < 2)
    return;
  char *log = malloc(n + 1);
  if (log && table.GetProgramLog(program, log) == 0) {
    log[n] = 0;
    char *at = log, *found;
    for (; (found = strstr(at, nowhere)); at = found + strlen(nowhere)) {
      cgl_text_add(&job->log, at, (size_t)(found - at));
      cgl_text_put(&job->log, job->source->file);
    }
    cgl_text_put(&job->log, at);
  }
  free(log);
}


/* Names NVRTC is to mangle: every kernel and what it takes, and variables whose
   symbol is not their name. */
static int add_names(cgl_job *job, source_form form, nvrtc_program program) {
  const bool ask = form == FORM_ASKS;
  const cgl_image *image = job->image;
  for (size_t i = 0; i < image->nsignatures; i++) {
    const cgl_signature *s = &image->signatures[i];
    if (table.AddNameExpression(program, s->name))
      return -1;
    for (size_t part = 0; ask && part <= s->nparameters; part++) {
      if (part && !s->parameters[part - 1].nfields)
        continue;
      char *question = question_about(image, i, part);
      bool bad = !question || table.AddNameExpression(program, question);
      free(question);
      if (bad)
        return -1;
    }
  }
  for (size_t i = 0; i < image->nvariables; i++) {
    char *address = cgl_format("&%s", image->variables[i].name);
    bool bad = !address || (image->variables[i].internal &&
                            table.AddNameExpression(program, address));
    free(address);
    if (bad)
      return -1;
  }
  return 0;
}


static char *lowered_name(cgl_image *image, nvrtc_program program,
                          const char *name) {
  const char *lowered;
  if (table.GetLoweredName(program, name, &lowered))
    return NULL;
  return cgl_arena_copy(&image->arena, lowered, strlen(lowered));
}


static int take_names(cgl_job *job, nvrtc_program program) {
  cgl_image *image = job->image;
  for (size_t i = 0; i < image->nsignatures; i++) {
    cgl_signature *s = &image->signatures[i];
    s->lowered = lowered_name(image, program, s->name);
    if (!s->lowered || take_answers(program, image, i) != 0)
      return -1;
  }
  for (size_t i = 0; i < image->nvariables; i++) {
    cgl_variable *v = &image->variables[i];
    char *address = v->internal ? cgl_format("&%s", v->name) : NULL;
    if (address)
      v->lowered = lowered_name(image, program, address);
    free(address);
    if (!v->lowered)
      return -1;
  }
  return 0;
}


static int take_bytes(cgl_job *job, nvrtc_program program, bool exact) {
  cgl_image *image = job->image;
  size_t n = 0;
  int bad =
      exact ? table.GetCUBINSize(program, &n) : table.GetPTXSize(program, &n);
  if (bad || !n || !(image->bytes = malloc(n)))
    return -1;
  image->size = n;
  return exact ? table.GetCUBIN(program, image->bytes)
               : table.GetPTX(program, image->bytes);
}


/* Replaces the PTX by that of the second forms.  Without them the compile is
   refused. */
static cgl_compile_status take_predicated(cgl_job *job) {
  cgl_image *image = job->image;
  cgl_text out = {0};
  const bool made = cgl_nvrtc_predicate(image->bytes, image, &out);
  cgl_text_add(&out, "", 1);
  if (!made)
    cgl_text_put(&job->log, "a module with variables has no second form");
  if (!made || out.failed) {
    cgl_text_free(&out);
    return made ? CGL_COMPILE_SYSTEM : CGL_COMPILE_REFUSED;
  }
  free(image->bytes);
  image->size = out.length;
  image->bytes = cgl_text_take(&out);
  return CGL_COMPILE_OK;
}


static bool is_include(const char *option) {
  return strncmp(option, "-I", 2) == 0 ||
         strncmp(option, "--include-path", 14) == 0;
}


/* Does an option make the compiler read a file that no directive names? */
static bool reads_file(const cgl_source *s) {
  static const char *const words[] = {"--pre-include", "-include",  "--pch",
                                      "-pch",          "--use-pch", "-use-pch"};
  for (size_t i = 0; i < s->noptions; i++)
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
      if (strncmp(s->options[i], words[k], strlen(words[k])) == 0)
        return true;
  return false;
}


/* NVRTC does not say what it read.  So it gets the headers that the reader
   found, and no folder of the script's to look into; `disk` gives it the
   folders instead. */
static int compile_program(nvrtc_program program, const cgl_job *job,
                           architecture a, bool disk) {
  const cgl_source *s = job->source;
  const char **options = calloc(s->noptions + 5, sizeof *options);
  char *target = cgl_format("--gpu-architecture=%s_%d",
                            a.exact ? "sm" : "compute", a.number);
  char *include =
      table.include ? cgl_format("--include-path=%s", table.include) : NULL;
  char *beside = cgl_format("--include-path=%s", job->folder);
  int n = 0, status = -1;
  if (options && target && beside) {
    options[n++] = target;
    bool standard = false;
    for (size_t i = 0; i < s->noptions; i++) {
      const char *o = s->options[i];
      standard |= !!strstr(o, "-std");
      if (!strcmp(o, CGL_PRECISE_MATH))
        continue; /* CUDA's functions are one and the same */
      if (disk || !is_include(o))
        options[n++] = o;
      else if (!strcmp(o, "-I") || !strcmp(o, "--include-path"))
        i++; /* the folder */
    }
    if (!standard)
      options[n++] = "--std=c++17";
    if (disk)
      options[n++] = beside;
    if (include)
      options[n++] = include;
    status = table.CompileProgram(program, n, options);
  }
  free(options);
  free(target);
  free(include);
  free(beside);
  return status;
}


/* Can the headers be handed over?  NVRTC knows them by the name in the
   directive alone, so no two may share one. */
static bool headers_differ(const cgl_included *files, size_t n) {
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < i; k++)
      if (!strcmp(files[i].name, files[k].name) &&
          strcmp(files[i].path, files[k].path))
        return false;
  return true;
}


static int create_program(const cgl_job *job, const char *text, bool disk,
                          nvrtc_program *program) {
  size_t n;
  const cgl_included *files = cgl_program_files(job->program, &n);
  const char **rows = calloc(2 * n + 1, sizeof *rows);
  if (!rows)
    return -1;
  for (size_t i = 0; i < n; i++) {
    rows[i] = files[i].text;
    rows[n + i] = files[i].name;
  }
  int result =
      disk
          ? table.CreateProgram(program, text, job->source->file, 0, NULL, NULL)
          : table.CreateProgram(program, text, nowhere, (int)n, rows, rows + n);
  free(rows);
  return result;
}


/* Compiles once; what the compiler said replaces the log. */
static int try_compile(cgl_job *job, cgl_text *text, architecture a, bool disk,
                       source_form form, nvrtc_program *program) {
  job->log.length = text->length = 0;
  write_source(job, form, text);
  if (text->failed)
    return 1;
  int result = create_program(job, text->data, disk, program);
  if (!result)
    result = add_names(job, form, *program);
  if (!result) {
    result = compile_program(*program, job, a, disk);
    take_log(job, *program);
  }
  if (result && *program)
    table.DestroyProgram(program);
  return result;
}


/* Notes the headers that were handed over. */
static void note_headers(cgl_job *job) {
  size_t n;
  const cgl_included *files = cgl_program_files(job->program, &n);
  cgl_text paths = {0};
  for (size_t i = 0; i < n; i++)
    cgl_text_add(&paths, files[i].path, strlen(files[i].path) + 1);
  cgl_source_note_files(job, paths.data, paths.length);
  job->unkept |= paths.failed;
  cgl_text_free(&paths);
}


cgl_compile_status cgl_nvrtc_compile(cgl_job *job) {
  cgl_text text = {0};
  nvrtc_program program = NULL;
  cgl_compile_status status = open_nvrtc(&job->log);
  if (status != CGL_COMPILE_OK)
    return status;
  size_t n;
  const cgl_included *files = cgl_program_files(job->program, &n);
  architecture a = choose_architecture(job);
  const architecture asked = {.exact = false, .number = a.number};
  bool disk = cgl_program_is_partial(job->program) ||
              !headers_differ(files, n) || reads_file(job->source);
  int result = try_compile(job, &text, asked, disk, FORM_ASKS, &program);
  if (result && !disk && cgl_program_is_guess(job->program)) {
    disk = true; /* it may have looked for a header that the reader did not */
    result = try_compile(job, &text, asked, true, FORM_ASKS, &program);
  }
  if (result && cgl_source_drop_fields(job->image))
    result = try_compile(job, &text, asked, disk, FORM_ASKS, &program);
  const bool told = !result && take_names(job, program) == 0;
  if (told) {
    table.DestroyProgram(&program);
    result = try_compile(job, &text, a, disk, FORM_WAITS, &program);
    if (result)
      result = try_compile(job, &text, a, disk, FORM_PLAIN, &program);
  }
  status = CGL_COMPILE_REFUSED;
  job->unkept |= disk;
  if (!disk)
    note_headers(job);
  if (!result) {
    if (told)
      take_waits(job, program);
    status = told && take_bytes(job, program, a.exact) == 0
                 ? CGL_COMPILE_OK
                 : CGL_COMPILE_SYSTEM;
    if (status == CGL_COMPILE_OK && job->predicated)
      status = take_predicated(job);
    else if (status == CGL_COMPILE_SYSTEM)
      cgl_text_put(&job->log, "NVRTC compiled the source but did not hand "
                              "over its result\n");
  } else if (!job->log.length)
    cgl_text_print(&job->log, "NVRTC: %s",
                   table.GetErrorString ? table.GetErrorString(result)
                                        : "cannot compile");
  if (program)
    table.DestroyProgram(&program);
  cgl_text_free(&text);
  return status;
}
