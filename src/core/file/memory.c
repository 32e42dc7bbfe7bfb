/* The memory of graphs, as regions and places. */
#include <stdlib.h>

#include "core/file/collect.h"
#include "core/graph/plan.h"

/* One more element of an array of the content; NULL without memory. */
void *cgl_file_grow(void *array, uint32_t n, size_t size) {
  /* Doubles at powers of two. */
  return n & (n - 1) ? array : realloc(array, (n ? 2 * (size_t)n : 1) * size);
}


cgl_status cgl_file_no_memory(const cgl_file_collecting *c) {
  return cgl_fail(CGL_ERROR_NO_MEMORY, c->operation, "no memory for the file");
}


/* Names the operation that no file can have. */
cgl_status cgl_file_refuse(const cgl_file_collecting *c, const cgl_op *op,
                           const char *why, const char *hint) {
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, c->operation,
           "the %s %s at %s cannot be in a file: %s",
           cgl_record_words[op->kind], op->name, cgl_site_text(op->site), why);
  return cgl_fail_hint("%s", hint);
}


/* ---- libraries ---- */

static cgl_file_library *find_library(const cgl_file_content *content,
                                      CUdeviceptr address) {
  for (uint32_t i = 0; i < content->nlibraries; i++)
    if (address - content->libraries[i].address < content->libraries[i].bytes)
      return &content->libraries[i];
  return NULL;
}


/* Adds the memory of another library's that a buffer is of. */
static cgl_status collect_library(cgl_file_collecting *c,
                                  const cgl_buffer *buffer) {
  cgl_file_content *content = c->content;
  const cgl_call_library *from =
      buffer->keeper ? cgl_call_find(NULL, buffer->keeper->kind) : NULL;
  unsigned char recipe[CGL_CALL_RECIPE];
  if (!from || find_library(content, buffer->address))
    return CGL_OK;
  const size_t length = from->describe(buffer->keeper, buffer->address, recipe);
  void *bytes = cgl_arena_copy(&content->arena, (char *)recipe, length);
  cgl_file_library *libraries =
      cgl_file_grow(content->libraries, content->nlibraries, sizeof *libraries);
  if (libraries)
    content->libraries = libraries;
  if (!libraries || !bytes)
    return cgl_file_no_memory(c);
  libraries[content->nlibraries++] =
      (cgl_file_library){.name = from->name,
                         .version = from->version,
                         .bytes = cgl_buffer_bytes(buffer),
                         .recipe = {bytes, length},
                         .address = buffer->address};
  return CGL_OK;
}


/* ---- memory ---- */

static cgl_status collect_region(cgl_file_collecting *c, CUdeviceptr address,
                                 size_t bytes, bool words) {
  cgl_file_content *content = c->content;
  if (!bytes || find_library(content, address))
    return CGL_OK;
  for (uint32_t i = 0; i < content->ngenerators; i++)
    if (address < content->generators[i].address + 16 &&
        content->generators[i].address < address + bytes)
      return CGL_OK;
  cgl_file_region *regions =
      cgl_file_grow(content->regions, content->nregions, sizeof *regions);
  if (!regions)
    return cgl_file_no_memory(c);
  content->regions = regions;
  regions[content->nregions++] =
      (cgl_file_region){.address = address, .bytes = bytes, .words = words};
  return CGL_OK;
}


/* Of a graph that was loaded itself. */
static cgl_status collect_loaded(cgl_file_collecting *c,
                                 const cgl_file_memory *memory,
                                 const cgl_range *ranges, size_t n) {
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < memory->nregions && !status; i++) {
    const struct cgl_file_span *r = &memory->regions[i];
    if (cgl_record_ranges_touch(ranges, n, r->address, r->bytes, false))
      status = collect_region(c, r->address, r->bytes, false);
  }
  for (size_t i = 0; i < memory->nlibraries && !status; i++)
    status = collect_library(c, memory->libraries[i]);
  return status;
}


/* Memory of the graph that its nodes touch; of a view, all of its root's. */
static cgl_status collect_kept(cgl_file_collecting *c,
                               const cgl_recording *recording) {
  size_t n;
  const cgl_range *ranges = cgl_record_footprint(recording, &n);
  cgl_object *object;
  cgl_allocation *allocation;
  cgl_status status = ranges ? CGL_OK : cgl_file_no_memory(c);
  for (size_t i = 0; !status && (object = cgl_record_kept(recording, i)); i++) {
    if (object->kind == &cgl_file_memory_kind)
      status = collect_loaded(c, (const cgl_file_memory *)object, ranges, n);
    if (object->kind != &cgl_buffer_kind)
      continue;
    const cgl_buffer *root = cgl_buffer_root((cgl_buffer *)object);
    status = collect_library(c, root);
    const size_t bytes = cgl_buffer_bytes(root);
    if (!status &&
        cgl_record_ranges_touch(ranges, n, root->address, bytes, false))
      status = collect_region(c, root->address, bytes,
                              root->type == CGL_TYPE_int64 ||
                                  root->type == CGL_TYPE_uint64);
  }
  for (size_t i = 0;
       !status && (allocation = cgl_record_allocation(recording, i)); i++)
    if (cgl_record_ranges_touch(ranges, n, allocation->address,
                                allocation->bytes, false))
      status = collect_region(c, allocation->address, allocation->bytes, false);
  return status;
}


/* Whether the range lies in pinned memory, which stays the host's. */
static bool range_is_pinned(const cgl_recording *recording,
                            const cgl_range *range) {
  cgl_object *object;
  uint64_t address;
  size_t bytes;
  for (size_t i = 0; (object = cgl_record_kept(recording, i)); i++)
    if (object->kind == &cgl_pinned_kind &&
        object->kind->extent(object, &address, &bytes) &&
        range->address >= address && range->address < address + bytes)
      return true;
  return false;
}


/* What a file cannot have of an operation; NULL: nothing. */
static const char *op_reason(const cgl_file_collecting *c,
                             const cgl_recording *recording, const cgl_op *op) {
  const cgl_range *ranges = cgl_record_ranges(recording, op);
  for (uint32_t i = 0; i < op->nranges; i++)
    for (size_t d = 0; d < c->targets.ndevices; d++)
      if (strcmp(c->targets.devices[d], "host") != 0 &&
          find_library(c->content, ranges[i].address))
        return "it calls a library of the processor's, and the file is for "
               "GPUs, too";
  for (uint32_t i = 0; i < op->nranges; i++)
    if (range_is_pinned(recording, &ranges[i]))
      return "it uses pinned memory of the host";
  if (op->kind == CGL_OP_CALL)
    return "another library does its work";
  return op->kind == CGL_OP_GRAPH || op->kind == CGL_OP_CONDITIONAL
             ? NULL
             : cgl_plan_barrier_reason(NULL, recording, op);
}


/* Refuses what cannot be written, and gathers memory; bodies included. */
cgl_status cgl_file_collect_memory(cgl_file_collecting *c,
                                   const cgl_recording *recording) {
  cgl_status status = collect_kept(c, recording);
  for (size_t i = 0; i < cgl_record_count(recording) && !status; i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    const cgl_range *ranges = cgl_record_ranges(recording, op);
    const cgl_recording *const *bodies = cgl_record_bodies(recording, op);
    const char *why = op_reason(c, recording, op);
    if (why)
      return cgl_file_refuse(
          c, op, why,
          "capture it into a graph of its own, or give kernels buffers and "
          "numbers alone");
    for (uint32_t k = 0; k < op->nranges && !status; k++)
      status = collect_region(c, ranges[k].address, ranges[k].bytes, false);
    for (uint32_t b = 0; b < op->nbodies && !status; b++)
      status = cgl_file_collect_memory(c, bodies[b]);
  }
  return status;
}


static int region_compare(const void *a, const void *b) {
  const CUdeviceptr x = ((const cgl_file_region *)a)->address;
  const CUdeviceptr y = ((const cgl_file_region *)b)->address;
  return x < y ? -1 : x > y;
}


/* Memory that overlaps becomes one region. */
void cgl_file_join_regions(cgl_file_content *content) {
  uint32_t n = 0;
  if (content->nregions)
    qsort(content->regions, content->nregions, sizeof *content->regions,
          region_compare);
  for (uint32_t i = 0; i < content->nregions; i++) {
    const cgl_file_region *r = &content->regions[i];
    cgl_file_region *last = &content->regions[n ? n - 1 : 0];
    if (n && r->address < last->address + last->bytes) {
      if (r->address + r->bytes > last->address + last->bytes)
        last->bytes = r->address + r->bytes - last->address;
      last->words |= r->words;
    } else
      content->regions[n++] = *r;
  }
  content->nregions = n;
  for (uint32_t i = 0; i < n; i++)
    content->regions[i].skew =
        (uint32_t)(content->regions[i].address % CGL_FILE_ALIGN);
}


/* False: the address is none that the file has. */
bool cgl_file_find_place(const cgl_file_content *content, CUdeviceptr address,
                         cgl_file_place *place) {
  size_t low = 0, high = content->nregions;
  *place = (cgl_file_place){0};
  if (!address)
    return true;
  for (uint32_t i = 0; i < content->ngenerators; i++)
    if (address - content->generators[i].address < 16) {
      *place = (cgl_file_place){CGL_FILE_GENERATOR, i,
                                address - content->generators[i].address};
      return true;
    }
  const cgl_file_library *library = find_library(content, address);
  if (library) {
    *place = (cgl_file_place){CGL_FILE_LIBRARY,
                              (uint32_t)(library - content->libraries),
                              address - library->address};
    return true;
  }
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (content->regions[middle].address <= address)
      low = middle + 1;
    else
      high = middle;
  }
  if (!low)
    return false;
  const cgl_file_region *r = &content->regions[low - 1];
  /* A buffer of no elements may lie at the end. */
  if (address - r->address > r->bytes)
    return false;
  *place = (cgl_file_place){CGL_FILE_REGION, (uint32_t)low - 1,
                            address - r->address};
  return true;
}


/* ---- generators ---- */

cgl_status cgl_file_collect_generators(cgl_file_collecting *c,
                                       const cgl_draw *draws) {
  cgl_file_content *content = c->content;
  for (const cgl_draw *draw = draws; draw; draw = draw->next) {
    const CUdeviceptr address = draw->state->memory->address;
    uint32_t i = 0;
    while (i < content->ngenerators &&
           content->generators[i].address != address)
      i++;
    if (i < content->ngenerators)
      continue;
    cgl_file_generator *generators = cgl_file_grow(
        content->generators, content->ngenerators, sizeof *generators);
    if (!generators)
      return cgl_file_no_memory(c);
    content->generators = generators;
    cgl_stream *stream = NULL;
    uint64_t words[2];
    cgl_status status = cgl_stream_default(c->targets.context, &stream);
    if (!status)
      status = cgl_random_state_read(draw->state, stream, c->operation, words);
    cgl_stream_release(stream);
    if (status)
      return status;
    generators[content->ngenerators++] =
        (cgl_file_generator){words[0], words[1], address};
  }
  return CGL_OK;
}
