#include "compile.h"

#include <stdlib.h>
#include <string.h>

#include "backend.h"


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
  return image->variables && !image->arena.failed;
}


/* Signatures of all plain kernels and of the expressions asked for. */
static cgl_compile_status read_signatures(cgl_job *job) {
  const cgl_source *s = job->source;
  cgl_image *image = job->image;
  size_t plain = cgl_program_kernels(job->program);
  image->signatures = cgl_arena_alloc(
      &image->arena, (plain + s->nexpressions + 1) * sizeof(cgl_signature));
  if (!image->signatures || !copy_variables(job))
    return CGL_COMPILE_SYSTEM;
  for (size_t i = 0; i < plain; i++)
    if (!cgl_program_kernel(job->program, i, &image->arena,
                            &image->signatures[image->nsignatures++], NULL))
      return CGL_COMPILE_SYSTEM;
  for (size_t i = 0; i < s->nexpressions; i++) {
    if (cgl_image_find(image, s->expressions[i]))
      continue;
    int found = cgl_program_find(job->program, s->expressions[i], &image->arena,
                                 &image->signatures[image->nsignatures]);
    if (found < 0)
      return CGL_COMPILE_SYSTEM;
    if (!found) {
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


static cgl_compile_status build(cgl_job *job, const cgl_target *target) {
  cgl_compile_status status = read_signatures(job);
  if (status != CGL_COMPILE_OK)
    return status;
  return target->format == CGL_IMAGE_HOST ? cgl_host_compile(job)
                                          : cgl_nvrtc_compile(job);
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
  job.image = calloc(1, sizeof *job.image);
  if (program && job.image) {
    job.image->format = target->format;
    status = build(&job, target);
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
