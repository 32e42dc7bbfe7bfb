#include "compile/compile.h"

#include <stdlib.h>
#include <string.h>

#include "compile/cache/cache.h"
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


/* The folder of the script, where quoted includes are looked for. */
static char *folder_of(const char *file) {
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
  return CGL_COMPILE_OK;
}


/* Everything the image depends on, `where` it stands in the script only when
   the image or the compiler's text says so. */
static void describe_key(const cgl_job *job, const cgl_text *identity,
                         bool where, cgl_text *out) {
  const cgl_source *s = job->source;
  size_t n;
  const char *included = cgl_program_included(job->program, &n);
  cgl_text_print(out, "%d %d %d\n", CGL_HOST_ABI, (int)job->image->format,
                 job->sm);
  cgl_text_add(out, identity->data, identity->length + 1);
  for (size_t i = 0; i < s->noptions; i++)
    cgl_text_add(out, s->options[i], strlen(s->options[i]) + 1);
  cgl_text_put(out, "\n");
  for (size_t i = 0; i < s->nexpressions; i++)
    cgl_text_add(out, s->expressions[i], strlen(s->expressions[i]) + 1);
  cgl_text_print(out, "\n%zu\n%zu\n", s->length, n);
  cgl_text_add(out, s->text, s->length);
  cgl_text_add(out, included ? included : "", n);
  if (job->image->format == CGL_IMAGE_HOST)
    cgl_host_device_text(out);
  else
    cgl_nvrtc_device_text(out);
  if (where)
    cgl_text_print(out, "%s:%d", s->file, s->line);
}


/* Fills the image from an entry; false when the entry does not fit it. */
static bool try_entry(cgl_job *job, cgl_cache_entry *entry) {
  cgl_image *image = job->image;
  if (entry->nnames != image->nsignatures + image->nvariables)
    return false;
  const char *at = entry->names, *end = at + entry->names_size;
  for (size_t i = 0; i < entry->nnames; i++) {
    size_t n = strnlen(at, (size_t)(end - at));
    if (at + n >= end)
      return false;
    char *name = cgl_arena_copy(&image->arena, at, n);
    if (!name)
      return false;
    if (i < image->nsignatures)
      image->signatures[i].lowered = name;
    else
      image->variables[i - image->nsignatures].lowered = name;
    at += n + 1;
  }
  image->bytes = entry->bytes;
  image->size = entry->size;
  image->cached = true;
  entry->bytes = NULL;
  cgl_text_put(&job->log, entry->message);
  return true;
}


static void keep_entry(const char *folder, const cgl_cache_key *key,
                       cgl_job *job) {
  const cgl_image *image = job->image;
  cgl_text names = {0}, warning = {0};
  cgl_cache_entry entry = {.bytes = image->bytes, .size = image->size};
  for (size_t i = 0; i < image->nsignatures; i++, entry.nnames++)
    cgl_text_add(&names, image->signatures[i].lowered,
                 strlen(image->signatures[i].lowered) + 1);
  for (size_t i = 0; i < image->nvariables; i++, entry.nnames++)
    cgl_text_add(&names, image->variables[i].lowered,
                 strlen(image->variables[i].lowered) + 1);
  entry.names = names.data;
  entry.names_size = names.length;
  entry.message = job->log.data;
  if (!names.failed && !job->log.failed)
    cgl_cache_write(folder, key, &entry, &warning);
  if (warning.length)
    cgl_text_add(&job->log, warning.data, warning.length);
  cgl_text_free(&names);
  cgl_text_free(&warning);
}


static cgl_compile_status run_compiler(cgl_job *job) {
  return job->image->format == CGL_IMAGE_HOST ? cgl_host_compile(job)
                                              : cgl_nvrtc_compile(job);
}


/* keys[0] holds wherever the source stands, keys[1] at this line only: an
   image with warnings or assertions names its lines. */
static cgl_compile_status run_cached(cgl_job *job, const char *folder,
                                     const cgl_cache_key keys[2],
                                     bool names_lines) {
  for (int i = names_lines; i < 2; i++) {
    cgl_cache_entry entry;
    bool found =
        cgl_cache_read(folder, &keys[i], &entry) && try_entry(job, &entry);
    cgl_cache_entry_free(&entry);
    if (found)
      return CGL_COMPILE_OK;
  }
  cgl_compile_status status = run_compiler(job);
  if (status == CGL_COMPILE_OK)
    keep_entry(folder, &keys[names_lines || job->log.length], job);
  return status;
}


static cgl_compile_status build_image(cgl_job *job) {
  cgl_text identity = {0}, key = {0};
  cgl_cache_key keys[2];
  cgl_compile_status status = read_signatures(job);
  if (status != CGL_COMPILE_OK)
    return status;
  char *folder =
      cgl_program_is_partial(job->program) ? NULL : cgl_cache_folder();
  if (!folder)
    return run_compiler(job);
  status = job->image->format == CGL_IMAGE_HOST
               ? cgl_host_identify(job, &identity)
               : cgl_nvrtc_identify(job, &identity);
  if (status == CGL_COMPILE_OK && identity.failed)
    status = CGL_COMPILE_SYSTEM;
  for (int i = 0; i < 2 && status == CGL_COMPILE_OK; i++) {
    key.length = 0;
    describe_key(job, &identity, i, &key);
    if (key.failed)
      status = CGL_COMPILE_SYSTEM;
    else
      keys[i] = cgl_cache_hash(key.data, key.length);
  }
  if (status == CGL_COMPILE_OK) {
    bool names_lines = cgl_program_contains(job->program, "assert") ||
                       cgl_program_contains(job->program, "__LINE__") ||
                       cgl_program_contains(job->program, "__FILE__");
    status = run_cached(job, folder, keys, names_lines);
  }
  cgl_text_free(&identity);
  cgl_text_free(&key);
  free(folder);
  return status;
}


cgl_compile_status cgl_compile(const cgl_target *target,
                               const cgl_source *given, cgl_image **image,
                               char **message) {
  cgl_source source = *given;
  cgl_job job = {.source = &source, .sm = target->sm};
  cgl_compile_status status = CGL_COMPILE_SYSTEM;
  *image = NULL;
  if (message)
    *message = NULL;
  if (!source.file)
    source.file = "kernel";
  if (source.line < 1)
    source.line = 1;
  char *folder = folder_of(source.file);
  cgl_program *program =
      folder ? cgl_program_read(source.text, source.length, source.line,
                                source.options, source.noptions, folder)
             : NULL;
  job.program = program;
  job.folder = folder;
  job.image = calloc(1, sizeof *job.image);
  if (program && job.image) {
    job.image->format = target->format;
    status = build_image(&job);
  }
  if (status == CGL_COMPILE_SYSTEM && !job.log.length)
    cgl_text_put(&job.log, "out of memory while compiling a kernel");
  cgl_program_free(program);
  free(folder);
  if (status == CGL_COMPILE_OK)
    *image = job.image;
  else
    cgl_image_free(job.image);
  if (message && job.log.length)
    *message = cgl_text_take(&job.log);
  cgl_text_free(&job.log);
  return status;
}
