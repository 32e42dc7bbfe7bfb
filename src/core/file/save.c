/* Saving: the content of graphs, with what their memory holds. */
#include "core/file/file.h"

#include <stdlib.h>

static const char saving[] = "graph:save";


static cgl_status save_check(const cgl_save_graph *graphs, size_t n) {
  cgl_status status = CGL_OK;
  if (!n) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, saving, "there is no graph to save");
    return cgl_fail_hint("give one graph at least");
  }
  for (size_t i = 0; i < n && !status; i++) {
    const char *name = graphs[i].name ? graphs[i].name : "";
    status = cgl_object_check_device(&graphs[0].graph->object,
                                     &graphs[i].graph->object, saving);
    if (!status)
      status = cgl_graph_learn(graphs[i].graph, saving);
    if (!status)
      status = cgl_share_check_memory(cgl_share_of(graphs[i].graph->recording),
                                      saving);
    if (!status)
      status = cgl_graph_note_params(graphs[i].graph, saving);
    for (size_t k = 0; k < i && !status; k++)
      if (!strcmp(name, graphs[k].name ? graphs[k].name : ""))
        status = cgl_fail(CGL_ERROR_INVALID_ARGUMENT, saving,
                          "two graphs have the name \"%s\"", name);
  }
  return status ? status : cgl_captures_check_wait(false, saving);
}


/* Refuses memory that holds addresses of memory of the file. */
static cgl_status region_check(const cgl_file_content *content,
                               const cgl_file_region *region) {
  const uint64_t *words = region->data.data;
  for (size_t i = 0; region->words && i < region->bytes / 8; i++)
    for (uint32_t k = 0; k < content->nregions; k++) {
      const cgl_file_region *r = &content->regions[k];
      if (words[i] - r->address >= r->bytes)
        continue;
      cgl_fail(CGL_ERROR_INVALID_ARGUMENT, saving,
               "a buffer of 64-bit integers holds the address of a buffer, "
               "which would be another one in the process that loads it");
      return cgl_fail_hint("give the kernel the buffer, or indices into one");
    }
  return CGL_OK;
}


/* Memory of zeros needs no bytes. */
static bool region_is_zero(const cgl_file_region *region) {
  const char *data = region->data.data;
  return !*data && !memcmp(data, data + 1, region->bytes - 1);
}


static cgl_status save_region(cgl_context *context, cgl_file_content *content,
                              cgl_file_region *region) {
  char *data = cgl_arena_alloc(&content->arena, region->bytes);
  cgl_stream *stream = NULL;
  if (!data)
    return cgl_fail(CGL_ERROR_NO_MEMORY, saving,
                    "no memory for a copy of what the graphs use");
  cgl_status status = cgl_stream_default(context, &stream);
  if (status)
    return status;
  const char *entry = "cuMemcpyDtoHAsync";
  CUresult result = context->driver->cuMemcpyDtoHAsync(
      data, region->address, region->bytes, stream->handle);
  cgl_context_note_work(context);
  if (!result) {
    entry = "cuStreamSynchronize";
    result = cgl_context_wait_stream(context, stream->handle);
  }
  cgl_stream_release(stream);
  status = cgl_fail_driver(context, result, saving, entry);
  region->data = (cgl_file_bytes){data, region->bytes};
  if (!status && region_is_zero(region))
    region->data.length = 0;
  return status ? status : region_check(content, region);
}


cgl_status cgl_graph_save(const cgl_save_graph *graphs, size_t n,
                          const char *path, const cgl_save_desc *desc) {
  static const cgl_save_desc defaults;
  cgl_file_content content = {0};
  cgl_text bytes = {0};
  desc = desc ? desc : &defaults;
  if ((unsigned)desc->keep > CGL_SAVE_ZERO)
    return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, saving,
                    "keep %d is not a value of its enum", (int)desc->keep);
  cgl_status status = save_check(graphs, n);
  if (status)
    return status;
  cgl_context *context = graphs[0].graph->object.context;
  status = cgl_fail_driver(context, cgl_context_wait(context), saving,
                           "cuCtxSynchronize");
  if (!status)
    status = cgl_file_collect(graphs, n, desc, &content, saving);
  for (uint32_t i = 0; i < content.nregions && !status; i++)
    if (desc->keep == CGL_SAVE_CONTENTS)
      status = save_region(context, &content, &content.regions[i]);
  if (!status)
    status = cgl_file_pack(&content, &bytes, saving);
  if (!status)
    status = cgl_file_write(path, &bytes, saving);
  cgl_text_free(&bytes);
  cgl_arena_free(&content.arena);
  return status;
}
