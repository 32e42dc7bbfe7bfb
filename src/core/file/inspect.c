/* What is in a file, as text. */
#include "core/file/file.h"

#include <stdlib.h>

static const char inspecting[] = "graph:inspect";

typedef struct lines {
  void (*line)(void *data, const char *text);
  void *data;
} lines;


static void line_print(const lines *l, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void line_print(const lines *l, const char *format, ...) {
  char text[600];
  va_list args;
  va_start(args, format);
  cgl_format_into(text, sizeof text, format, args);
  va_end(args);
  l->line(l->data, text);
}


static void print_image(const lines *l, const cgl_file_image *image) {
  const char *second = image->second ? ", second forms" : "";
  if (image->format == CGL_IMAGE_HOST)
    line_print(l, "    for host, %s%s: %llu bytes", image->level, second,
               (unsigned long long)image->bytes.length);
  else
    line_print(l, "    for %s_%u%s: %llu bytes", image->ptx ? "compute" : "sm",
               image->sm, second, (unsigned long long)image->bytes.length);
}


static void print_modules(const lines *l, const cgl_file_content *content) {
  for (uint32_t m = 0; m < content->nmodules; m++) {
    const cgl_file_module *module = &content->modules[m];
    if (module->own)
      line_print(l, "kernels of the library:");
    else
      line_print(l, "kernels of %s:%u, %s:", module->file, module->line,
                 *module->source ? "with source" : "without source");
    for (uint32_t k = 0; k < content->nkernels; k++)
      if (content->kernels[k].module == m)
        line_print(l, "    %s", content->kernels[k].name);
    for (uint32_t i = 0; i < module->nimages; i++)
      print_image(l, &module->images[i]);
  }
}


static void print_memory(const lines *l, const cgl_file_content *content) {
  uint64_t bytes = 0, kept = 0;
  for (uint32_t i = 0; i < content->nregions; i++) {
    bytes += content->regions[i].bytes;
    kept += content->regions[i].data.length;
  }
  line_print(l, "memory: %llu bytes in %u regions, %llu of them with content",
             (unsigned long long)bytes, content->nregions,
             (unsigned long long)kept);
  for (uint32_t i = 0; i < content->ngenerators; i++)
    line_print(l, "generator: seed %llu, offset %llu",
               (unsigned long long)content->generators[i].seed,
               (unsigned long long)content->generators[i].offset);
}


static void print_libraries(const lines *l, const cgl_file_content *content) {
  for (uint32_t i = 0; i < content->nlibraries; i++)
    line_print(l, "library: %s, version %u", content->libraries[i].name,
               (unsigned)content->libraries[i].version);
}


static void print_params(const lines *l, const cgl_file_content *content) {
  for (uint32_t i = 0; i < content->nparams; i++) {
    const cgl_file_param *p = &content->params[i];
    const cgl_type type = (cgl_type)p->type;
    line_print(l, "parameter %s: %llu of %s", *p->name ? p->name : "(unnamed)",
               (unsigned long long)(p->value.length / cgl_type_bytes(type)),
               cgl_type_name(type));
  }
}


static void print_name(const lines *l, const cgl_file_name *name) {
  cgl_text shape = {0};
  for (uint32_t d = 0; d < name->ndims; d++)
    cgl_text_print(&shape, "%s%llu", d ? " x " : "",
                   (unsigned long long)name->shape[d]);
  line_print(l, "    %s %s: %s of %s", name->output ? "output" : "input",
             name->name, shape.data ? shape.data : "",
             cgl_type_name((cgl_type)name->type));
  cgl_text_free(&shape);
}


static void print_graph(const lines *l, const cgl_file_graph *graph) {
  const cgl_file_recording *own =
      graph->nrecordings ? &graph->recordings[graph->nrecordings - 1] : NULL;
  line_print(l, "graph '%s': %u nodes, %u bodies", graph->name,
             own ? own->nops : 0, own ? graph->nrecordings - 1 : 0);
  for (uint32_t i = 0; i < graph->nnames; i++)
    print_name(l, &graph->names[i]);
  for (uint32_t i = 0; own && i < own->nops; i++) {
    const cgl_file_op *op = &own->ops[i];
    if (op->kind < CGL_OP_COUNT)
      line_print(l, "    %u: %s %s at %s:%u%s", i + 1,
                 cgl_record_words[op->kind], op->name, op->file, op->line,
                 op->off ? ", off" : "");
  }
}


/* The graph's part can be checked with the images of any device. */
static cgl_status inspect_check(cgl_file_content *content, const char *path) {
  const cgl_file_op *where = NULL;
  const char *wrong = cgl_file_check(content, NULL, &where);
  cgl_image **images = cgl_arena_alloc(
      &content->arena, (content->nmodules + (size_t)1) * sizeof(cgl_image *));
  if (!images)
    return cgl_fail(CGL_ERROR_NO_MEMORY, inspecting, "no memory for the file");
  for (uint32_t m = 0; m < content->nmodules && !wrong; m++) {
    const cgl_file_module *module = &content->modules[m];
    images[m] =
        module->nimages ? cgl_file_open_image(&module->images[0]) : NULL;
    if (!images[m])
      wrong = "an image says nothing of its kernels";
  }
  if (!wrong)
    wrong = cgl_file_check(content, images, &where);
  for (uint32_t m = 0; m < content->nmodules; m++)
    cgl_image_free(images[m]);
  return wrong ? cgl_fail(CGL_ERROR_INVALID_ARGUMENT, inspecting,
                          "'%s' is damaged: %s", path, wrong)
               : CGL_OK;
}


cgl_status cgl_graph_inspect(const char *path,
                             void (*line)(void *data, const char *text),
                             void *data) {
  const lines l = {line, data};
  cgl_file_content content = {0};
  char *bytes = NULL;
  size_t length = 0;
  cgl_status status = cgl_file_read(path, &bytes, &length, inspecting);
  if (!status)
    status = cgl_file_unpack(bytes, length, path, &content, inspecting);
  if (!status)
    status = inspect_check(&content, path);
  if (!status) {
    line_print(&l, "%s: format %d, %zu bytes, written by cgraphlua %s on %s",
               path, CGL_FILE_VERSION, length, content.library, content.device);
    print_modules(&l, &content);
    print_memory(&l, &content);
    print_libraries(&l, &content);
    print_params(&l, &content);
    for (uint32_t i = 0; i < content.ngraphs; i++)
      print_graph(&l, &content.graphs[i]);
  }
  cgl_arena_free(&content.arena);
  free(bytes);
  return status;
}
