#define _GNU_SOURCE
#include "compile/compile.h"

#include <stdlib.h>
#include <string.h>

#include "compile/compiler_sum.h"
#include "compile/host/host.h"
#include "compile/nvrtc/nvrtc.h"
#include "driver/kernel_abi.h"


void cgl_image_free(cgl_image *image) {
  if (!image)
    return;
  free(image->bytes);
  cgl_arena_free(&image->arena);
  free(image);
}


const cgl_signature *cgl_image_find(const cgl_image *image, const char *name) {
  for (size_t i = 0; i < image->nsignatures; i++)
    if (strcmp(image->signatures[i].name, name) == 0)
      return &image->signatures[i];
  return NULL;
}


char *cgl_compile_folder(const char *file) {
  const char *slash = strrchr(file, '/');
  return slash ? cgl_format("%.*s", (int)(slash - file), file) : strdup(".");
}


static int copy_variables(cgl_job *job) {
  cgl_image *image = job->image;
  size_t n;
  const cgl_variable *from = cgl_program_variables(job->program, &n);
  image->variables = cgl_arena_alloc(&image->arena, (n + 1) * sizeof *from);
  for (size_t i = 0; i < n && image->variables; i++) {
    cgl_variable *to = &image->variables[i];
    *to = from[i];
    to->name =
        cgl_arena_copy(&image->arena, from[i].name, strlen(from[i].name));
    to->lowered = to->name;
    image->nvariables = i + 1;
  }
  return image->arena.failed ? -1 : 0;
}


/* Instances of one template share their text. */
static void drop_loop(cgl_image *image, const char *start) {
  for (size_t i = 0; i < image->nsignatures; i++)
    if (image->signatures[i].loop.start == start)
      image->signatures[i].loop = (cgl_stride_loop){0};
}


/* Signatures of all plain kernels and of the expressions asked for. */
static cgl_compile_status read_signatures(cgl_job *job) {
  const cgl_source *s = job->source;
  cgl_image *image = job->image;
  size_t plain = cgl_program_kernels(job->program);
  image->signatures = cgl_arena_alloc(
      &image->arena, (plain + s->nexpressions + 1) * sizeof(cgl_signature));
  if (!image->signatures || copy_variables(job) != 0)
    return CGL_COMPILE_SYSTEM;
  for (size_t i = 0; i < plain; i++)
    if (cgl_program_kernel(job->program, i, &image->arena,
                           &image->signatures[image->nsignatures++]) != 0)
      return CGL_COMPILE_SYSTEM;
  for (size_t i = 0; i < s->nexpressions; i++) {
    if (cgl_image_find(image, s->expressions[i]))
      continue;
    int status =
        cgl_program_find(job->program, s->expressions[i], &image->arena,
                         &image->signatures[image->nsignatures]);
    if (status < 0)
      return CGL_COMPILE_SYSTEM;
    if (status > 0) {
      cgl_text_print(&job->log,
                     "%s:%d: error: no __global__ function in the source "
                     "matches '%s'\n",
                     s->file, s->line, s->expressions[i]);
      return CGL_COMPILE_REFUSED;
    }
    image->nsignatures++;
  }
  for (size_t i = 0; i < image->nsignatures; i++)
    if (image->signatures[i].loop.refused)
      drop_loop(image, image->signatures[i].loop.start);
  return CGL_COMPILE_OK;
}


static cgl_compile_status run_compiler(cgl_job *job) {
  return job->image->format == CGL_IMAGE_HOST ? cgl_host_compile(job)
                                              : cgl_nvrtc_compile(job);
}


/* Reads the source, and compiles it. */
static cgl_compile_status build_image(cgl_job *job, cgl_text *macros) {
  const cgl_source *s = job->source;
  bool host = job->image->format == CGL_IMAGE_HOST;
  if (host)
    cgl_host_macros(macros);
  else
    cgl_nvrtc_macros(job, macros);
  job->program = macros->failed
                     ? NULL
                     : cgl_program_read(s->text, s->length, s->line, s->options,
                                        s->noptions, job->folder, macros->data);
  if (!job->program || (host && cgl_host_correct(job) != 0))
    return CGL_COMPILE_SYSTEM;
  cgl_compile_status status = read_signatures(job);
  return status == CGL_COMPILE_OK ? run_compiler(job) : status;
}


/* ---- the cache ---- */

/* What a hit needs, and the compiler's identity, unless there is none. */
static void identify_compiler(const cgl_job *job, cgl_text *out) {
  if (job->image->format == CGL_IMAGE_HOST)
    cgl_host_identify(out);
  else
    cgl_nvrtc_identify(job, out);
  cgl_text_add(out, "", 0);
}


/* Everything the image depends on that is known before a compile, but for where
   it stands in the script. */
static void describe_key(const cgl_job *job, cgl_text *out) {
  static const char *const variables[] = {"CGRAPHLUA_CXX",
                                          "CPATH",
                                          "CPLUS_INCLUDE_PATH",
                                          "GCC_EXEC_PREFIX",
                                          "COMPILER_PATH",
                                          "CGRAPHLUA_HOST_KERNELS",
                                          "CGRAPHLUA_HOST_COMPILE_SECONDS"};
  const cgl_source *s = job->source;
  bool host = job->image->format == CGL_IMAGE_HOST;
  cgl_text_print(out, "%s %d %d %d\n", CGL_COMPILER_SUM, CGL_HOST_ABI,
                 (int)job->image->format, job->sm);
  if (job->exact)
    cgl_text_print(out, "for %d %d\n", job->sm, job->ptx);
  if (job->predicated)
    cgl_text_put(out, "predicated\n");
  for (size_t i = 0; i < sizeof variables / sizeof *variables && host; i++) {
    const char *value = getenv(variables[i]);
    cgl_text_print(out, "%s\n", value ? value : "");
  }
  for (size_t i = 0; i < s->noptions; i++)
    cgl_text_add(out, s->options[i], strlen(s->options[i]) + 1);
  cgl_text_put(out, "\n");
  for (size_t i = 0; i < s->nexpressions; i++)
    cgl_text_add(out, s->expressions[i], strlen(s->expressions[i]) + 1);
  cgl_text_print(out, "\n%zu\n", s->length);
  cgl_text_add(out, s->text, s->length);
  if (host)
    cgl_host_key(job, out);
  else
    cgl_nvrtc_device_text(out);
  if (memmem(s->text, s->length, "include", 7) ||
      memmem(s->text, s->length, "import", 6))
    cgl_text_put(out, job->folder);
}


/* Does a text that the compiler read hold the word? */
static bool mentions(const cgl_job *job, const char *word) {
  size_t n;
  const cgl_included *files = cgl_program_files(job->program, &n);
  bool found = memmem(job->source->text, job->source->length, word,
                      strlen(word)) != NULL;
  for (size_t i = 0; i < n && !found; i++)
    found = memmem(files[i].text, files[i].length, word, strlen(word)) != NULL;
  return found;
}


/* Is the image another one at another line, or may it be? */
static bool names_lines(const cgl_job *job) {
  return job->log.length || cgl_program_is_partial(job->program) ||
         mentions(job, "assert") || mentions(job, "__LINE__") ||
         mentions(job, "__FILE__");
}


/* Does the image hold what no file and no option tells? */
static bool names_time(const cgl_job *job) {
  return mentions(job, "__DATE__") || mentions(job, "__TIME") ||
         mentions(job, "incbin");
}


bool cgl_compile_take(cgl_job *job, cgl_cache_entry *entry, const char *row) {
  cgl_image *image = job->image;
  const char *end = entry->record + entry->record_size;
  if (row > end || cgl_image_unpack(image, row, (size_t)(end - row))) {
    cgl_arena_free(&image->arena);
    *image = (cgl_image){.format = image->format};
    return false;
  }
  image->bytes = entry->bytes;
  image->size = entry->size;
  image->cached = true;
  entry->bytes = NULL;
  return true;
}


/* A record is the compiler's identity, notes of files, a full stop, and what
   cgl_image_pack writes.  Fills the image; false when anything differs. */
static bool try_entry(cgl_job *job, cgl_cache_entry *entry,
                      const char *identity) {
  const char *at = entry->record, *end = at + entry->record_size;
  if (!entry->record_size || end[-1] || (*identity && strcmp(at, identity)))
    return false;
  const char *notes = at + strlen(at) + 1;
  for (at = notes; at < end && *at != '.'; at += strlen(at) + 1)
    if (!cgl_cache_is_as_noted(at))
      return false;
  if (at + 2 > end || !cgl_compile_take(job, entry, at + 2))
    return false;
  cgl_text_add(&job->files, notes, (size_t)(at - notes));
  cgl_text_put(&job->log, entry->message);
  return true;
}


static void keep_entry(cgl_job *job, const char *folder,
                       const cgl_cache_key *key) {
  const cgl_image *image = job->image;
  cgl_text record = {0}, warning = {0};
  identify_compiler(job, &record);
  cgl_text_add(&record, "", 1);
  if (job->files.length)
    cgl_text_add(&record, job->files.data, job->files.length);
  cgl_text_add(&record, ".", 2);
  cgl_image_pack(image, &record);
  cgl_cache_entry entry = {.bytes = image->bytes,
                           .size = image->size,
                           .record = record.data,
                           .record_size = record.length,
                           .message = job->log.length ? job->log.data : NULL};
  if (!record.failed && !job->log.failed && !job->files.failed)
    cgl_cache_write(folder, key, &entry, &warning);
  if (warning.length)
    cgl_text_add(&job->log, warning.data, warning.length);
  cgl_text_free(&record);
  cgl_text_free(&warning);
}


/* keys[0] holds wherever the source stands, keys[1] at this line only: an
   image with warnings or assertions names its lines. */
static bool find_entry(cgl_job *job, const char *folder,
                       const cgl_cache_key keys[2]) {
  cgl_text identity = {0};
  bool found = false;
  for (int i = 0; i < 2 && !found; i++) {
    cgl_cache_entry entry;
    if (!cgl_cache_read(folder, &keys[i], &entry))
      continue;
    if (!identity.data)
      identify_compiler(job, &identity);
    found = !identity.failed && try_entry(job, &entry, identity.data);
    cgl_cache_entry_free(&entry);
  }
  cgl_text_free(&identity);
  return found;
}


static cgl_compile_status find_or_build(cgl_job *job) {
  cgl_text key = {0}, macros = {0};
  cgl_cache_key keys[2];
  char *folder = cgl_cache_folder();
  cgl_compile_status status = CGL_COMPILE_OK;
  if (folder) {
    describe_key(job, &key);
    keys[0] = cgl_cache_hash(key.data, key.length);
    cgl_text_print(&key, "\n%s:%d", job->source->file, job->source->line);
    keys[1] = cgl_cache_hash(key.data, key.length);
  }
  if (key.failed)
    status = CGL_COMPILE_SYSTEM;
  else if (!folder || !find_entry(job, folder, keys)) {
    status = build_image(job, &macros);
    if (status == CGL_COMPILE_OK && folder && !job->unkept && !names_time(job))
      keep_entry(job, folder, &keys[names_lines(job)]);
  }
  cgl_text_free(&key);
  free(folder);
  cgl_program_free(job->program);
  job->program = NULL;
  cgl_text_free(&macros);
  return status;
}


/* Adds why no shipped image was used: warnings, or with no compiler beside what
   failed. */
static void explain_shipped(cgl_job *job, cgl_compile_status status,
                            cgl_text *faults) {
  if (status == CGL_COMPILE_NO_COMPILER)
    cgl_compile_say_shipped(faults);
  if (!faults->length)
    return;
  if (job->log.length && job->log.data[job->log.length - 1] != '\n')
    cgl_text_put(&job->log, "\n");
  cgl_text_put(&job->log, faults->data);
}


static cgl_compile_status refuse_compile(cgl_job *job) {
  cgl_text_put(&job->log, "no shipped image serves this source, and it may not "
                          "be compiled");
  return CGL_COMPILE_REFUSED;
}


/* `files` NULL: a shipped image may serve. */
static cgl_compile_status compile_source(const cgl_target *target,
                                         const cgl_source *source,
                                         cgl_image **image, cgl_text *log,
                                         cgl_text *files) {
  cgl_job job = {.source = source,
                 .sm = target->sm,
                 .exact = target->exact,
                 .ptx = target->ptx,
                 .level = target->level,
                 .predicated = target->predicated,
                 .since = cgl_cache_now()};
  cgl_compile_status status = CGL_COMPILE_SYSTEM;
  cgl_text faults = {0};
  *image = NULL;
  char *folder = cgl_compile_folder(source->file);
  job.folder = folder;
  job.image = calloc(1, sizeof *job.image);
  if (folder && job.image) {
    job.image->format = target->format;
    if (!files && !job.predicated && cgl_compile_find_shipped(&job, &faults)) {
      status = CGL_COMPILE_OK;
      job.image->shipped = true;
    } else
      status = source->shipped ? refuse_compile(&job) : find_or_build(&job);
    if (!files)
      explain_shipped(&job, status, &faults);
  }
  if (status == CGL_COMPILE_SYSTEM && !job.log.length)
    cgl_text_put(&job.log, "out of memory while compiling a kernel");
  free(folder);
  cgl_text_free(&faults);
  if (status == CGL_COMPILE_OK) {
    job.image->line = source->line;
    *image = job.image;
  } else
    cgl_image_free(job.image);
  if (files)
    *files = job.files;
  else
    cgl_text_free(&job.files);
  *log = job.log;
  return status;
}


/* What is not given has its default. */
static cgl_source complete_source(const cgl_source *given) {
  cgl_source source = *given;
  if (!source.file)
    source.file = "kernel";
  if (source.line < 1)
    source.line = 1;
  return source;
}


/* Hands the log over, or frees it. */
static void give_message(cgl_text *log, char **message) {
  if (message)
    *message = log->length ? cgl_text_take(log) : NULL;
  cgl_text_free(log);
}


cgl_compile_status cgl_compile_here(const cgl_target *target,
                                    const cgl_source *given, cgl_image **image,
                                    char **message, cgl_text *files) {
  cgl_source source = complete_source(given);
  cgl_text log = {0};
  cgl_compile_status status =
      compile_source(target, &source, image, &log, files);
  give_message(&log, message);
  return status;
}


void cgl_compile_open(const cgl_target *target) {
  if (target->format != CGL_IMAGE_HOST)
    cgl_nvrtc_open();
}


cgl_compile_status cgl_compile(const cgl_target *target,
                               const cgl_source *given, cgl_image **image,
                               char **message) {
  cgl_source source = complete_source(given);
  cgl_text log = {0};
  cgl_compile_status status =
      compile_source(target, &source, image, &log, NULL);
  if (status == CGL_COMPILE_OK && !target->predicated) {
    status = cgl_compile_add(target, &source, &log);
    if (status != CGL_COMPILE_OK) {
      cgl_image_free(*image);
      *image = NULL;
    }
  }
  give_message(&log, message);
  return status;
}
