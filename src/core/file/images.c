/* The images of a file: made for other devices, and chosen for this one. */
#include "core/file/file.h"

#include <stdio.h>
#include <stdlib.h>

#include "compile/host/host.h"


/* ---- the library's own kernels ---- */

const cgl_rule *const cgl_file_rules[CGL_FILE_RULES] = {
    &cgl_fill_uniform_rule, &cgl_fill_normal_rule, &cgl_kernel_grid_rule,
    &cgl_kernel_threads_rule, &cgl_fill_random_rule};

const cgl_own *const cgl_file_owns[CGL_FILE_OWN] = {&cgl_copy_own,
                                                    &cgl_fill_own};


void cgl_file_own_values(size_t own, size_t index, size_t *count,
                         unsigned *addresses) {
  /* As fills.cu has them; all that is not here fills a buffer. */
  static const struct {
    size_t count;
    unsigned addresses;
  } fills[CGL_FILL_COUNT] = {
      [CGL_FILL_set] = {3, 1},
      [CGL_FILL_advance] = {3, 1},
      [CGL_FILL_set_conditional] = {7, 1 << 1 | 1 << 4},
      [CGL_FILL_set_words] = {7, 1 | 1 << 2 | 1 << 6},
      [CGL_FILL_set_turn] = {4, 1 | 1 << 2},
  };
  const bool copies = cgl_file_owns[own] == &cgl_copy_own;
  *count = copies ? 3 : fills[index].count;
  *addresses = !copies                        ? fills[index].addresses
               : cgl_copy_kernel_reads(index) ? 3
                                              : 1;
  if (!*count) {
    *count = 7;
    *addresses = 1 | 1 << 2;
  }
}


cgl_cache_key cgl_file_own_sum(size_t own) {
  const char *source = cgl_file_owns[own]->source;
  return cgl_cache_hash(source, strlen(source));
}


/* ---- making ---- */

/* What of the processor an image for this machine may use. */
static bool processor_name(char name[40]) {
  cgl_text text = {0};
  cgl_host_processor(&text);
  const bool known = text.data && !text.failed;
  if (known)
    cgl_module_hash(text.data, text.length, name);
  cgl_text_free(&text);
  return known;
}


static cgl_file_bytes arena_bytes(cgl_arena *arena, const void *data,
                                  size_t length) {
  return (cgl_file_bytes){cgl_arena_copy(arena, data, length), length};
}


/* Puts an image into the room that the caller has made. */
static void image_put(cgl_file_content *content, cgl_file_module *module,
                      const cgl_image *image, const cgl_target *target,
                      const char *level) {
  cgl_arena *arena = &content->arena;
  cgl_text row = {0};
  cgl_image_pack(image, &row);
  cgl_file_image *to = &module->images[module->nimages++];
  *to = (cgl_file_image){.format = (uint8_t)image->format,
                         .ptx = target->ptx,
                         .second = target->predicated,
                         .sm = (uint32_t)target->sm,
                         .level = cgl_arena_copy(arena, level, strlen(level))};
  to->row = arena_bytes(arena, row.data ? row.data : "", row.length);
  to->bytes = arena_bytes(arena, image->bytes, image->size);
  arena->failed |= row.failed;
  cgl_text_free(&row);
}


/* Compiles the source for a target that need not be this machine. */
static cgl_status image_make(cgl_file_content *content,
                             const cgl_module_desc *source,
                             const cgl_target *target, cgl_file_module *module,
                             const char *operation) {
  const cgl_source text = {.text = source->source,
                           .length = strlen(source->source),
                           .file = source->file ? source->file : "kernel",
                           .line = source->line > 0 ? source->line : 1,
                           .options = source->options,
                           .noptions = source->noptions,
                           .expressions = source->expressions,
                           .nexpressions = source->nexpressions};
  cgl_image *image = NULL;
  char *message = NULL;
  cgl_text files = {0};
  cgl_compile_status answer =
      cgl_compile_here(target, &text, &image, &message, &files);
  cgl_status status = cgl_module_compiled(
      NULL, answer, answer == CGL_COMPILE_OK ? NULL : message, target->format,
      operation);
  if (!status)
    image_put(content, module, image, target,
              target->level ? target->level : "");
  cgl_image_free(image);
  cgl_text_free(&files);
  free(message);
  return status;
}


/* "host": all levels of the host device's processors. */
static cgl_status images_add_host(cgl_file_content *content,
                                  const cgl_module_desc *source,
                                  cgl_file_module *module,
                                  const char *operation) {
  cgl_status status = CGL_OK;
  const char *level;
  for (size_t i = 0; (level = cgl_host_level(i)) && !status; i++) {
    const cgl_target target = {.format = CGL_IMAGE_HOST, .level = level};
    status = image_make(content, source, &target, module, operation);
  }
  return status;
}


static cgl_status images_add_arch(cgl_file_content *content,
                                  const cgl_module_desc *source, bool second,
                                  const char *arch, cgl_file_module *module,
                                  const char *operation) {
  cgl_target target;
  cgl_text why = {0};
  cgl_status status = CGL_OK;
  const cgl_compile_status answer = cgl_compile_arch(arch, &target, &why);
  if (answer && answer != CGL_COMPILE_REFUSED)
    status =
        cgl_module_compiled(NULL, answer, why.data, CGL_IMAGE_CUBIN, operation);
  else if (answer) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation, "%s",
             why.data ? why.data : "not enough memory");
    status = cgl_fail_hint("the devices of a file are \"host\", and "
                           "architectures as \"sm_90\" and \"compute_90\"");
  }
  cgl_text_free(&why);
  if (!status)
    status = image_make(content, source, &target, module, operation);
  if (!status && second) {
    const cgl_target form = {
        .format = CGL_IMAGE_CUBIN, .sm = target.sm, .predicated = true};
    status = image_make(content, source, &form, module, operation);
  }
  return status;
}


cgl_status cgl_file_add_images(cgl_file_content *content,
                               const cgl_file_targets *targets,
                               const cgl_module_desc *source,
                               const cgl_image *image, bool second,
                               const cgl_image *second_image,
                               cgl_file_module *module, const char *operation) {
  cgl_target target = cgl_module_target(targets->context);
  const bool host = target.format == CGL_IMAGE_HOST;
  char level[40] = "";
  size_t room = 2;
  for (size_t i = 0; cgl_host_level(i); i++)
    room++;
  module->images = cgl_arena_alloc(
      &content->arena, (room + 2 * targets->ndevices) * sizeof(cgl_file_image));
  if (!module->images || (host && !processor_name(level)))
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for the file");
  image_put(content, module, image, &target, level);
  cgl_status status = CGL_OK;
  target.predicated = true;
  if (second_image)
    image_put(content, module, second_image, &target, level);
  else if (second && !host)
    status = image_make(content, source, &target, module, operation);
  for (size_t i = 0; i < targets->ndevices && !status; i++) {
    const char *device = targets->devices[i];
    status = !strcmp(device, "host")
                 ? images_add_host(content, source, module, operation)
                 : images_add_arch(content, source, second, device, module,
                                   operation);
  }
  return status;
}


/* ---- choosing ---- */

/* The best level that this processor has, unless the image is its own. */
static int host_rank(const cgl_file_image *image, const char *processor) {
  const size_t level = cgl_host_find_level(image->level);
  if (!strcmp(image->level, processor))
    return 1000;
  return cgl_host_level(level) && cgl_host_has_level(level) ? 999 - (int)level
                                                            : 0;
}


/* A cubin runs on later architectures of its major number, PTX on all. */
static int cuda_rank(const cgl_file_image *image, int sm) {
  const int made = (int)image->sm;
  if (image->sm > 1000 || made > sm ||
      (!image->ptx && !image->second && made / 10 != sm / 10))
    return 0;
  return made + (image->ptx ? 0 : 1000);
}


const cgl_file_image *cgl_file_find_image(const cgl_file_module *module,
                                          const cgl_context *context,
                                          bool second) {
  const cgl_target target = cgl_module_target(context);
  const bool host = target.format == CGL_IMAGE_HOST;
  const cgl_file_image *best = NULL;
  char processor[40] = "";
  int most = 0;
  if (host && !processor_name(processor))
    return NULL;
  for (uint32_t i = 0; i < module->nimages; i++) {
    const cgl_file_image *image = &module->images[i];
    if (image->format != target.format || image->second != second)
      continue;
    const int rank =
        host ? host_rank(image, processor) : cuda_rank(image, target.sm);
    if (rank > most) {
      most = rank;
      best = image;
    }
  }
  return best;
}


cgl_image *cgl_file_open_image(const cgl_file_image *from) {
  cgl_image *image = calloc(1, sizeof *image);
  if (!image)
    return NULL;
  image->format = (cgl_image_format)from->format;
  image->shipped = true;
  image->size = from->bytes.length;
  image->bytes = calloc(1, image->size + 1);
  if (image->bytes)
    memcpy(image->bytes, from->bytes.data, image->size);
  if (image->bytes &&
      !cgl_image_unpack(image, from->row.data, from->row.length))
    return image;
  cgl_image_free(image);
  return NULL;
}
