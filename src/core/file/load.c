/* Loading: graphs of a content that was checked. */
#include "core/file/file.h"

#include <stdio.h>
#include <stdlib.h>

#include "driver/kernel_abi.h"

static const char loading[] = "load";

/* The names of a loaded graph. */
typedef struct file_names {
  cgl_object object;
  char *name;
  size_t n;
  struct file_name {
    char *name;
    bool output;
    cgl_buffer *buffer; /* owned */
  } list[];
} file_names;

typedef struct load {
  cgl_context *context;
  cgl_stream *stream; /* the default one */
  const char *path;
  const cgl_file_content *content;
  cgl_image **images, **seconds; /* of each module; owned until loaded */
  cgl_module **modules;          /* owned each; NULL: the library's */
  cgl_file_memory *memory;       /* a reference */
  CUdeviceptr *regions;
  cgl_generator **generators; /* owned each */
  bool alike; /* a device as the one that the file was written on */
} load;


/* ---- objects ---- */

static void memory_destroy(cgl_object *object) {
  cgl_file_memory *memory = (cgl_file_memory *)object;
  for (size_t i = 0; i < memory->nkernels; i++)
    cgl_kernel_release(memory->kernels[i]);
  for (size_t i = 0; i < memory->nlibraries; i++)
    cgl_buffer_release(memory->libraries[i]);
  for (size_t i = 0; i < memory->nparams; i++)
    cgl_param_release(memory->params[i]);
  cgl_buffer_release(memory->block);
  free(memory->kernels);
  free(memory->libraries);
  free(memory->params);
  free(memory->regions);
  free(memory);
}


const cgl_object_kind cgl_file_memory_kind = {
    .number = CGL_OBJECT_INTERNAL, .light = true, .destroy = memory_destroy};


static void names_destroy(cgl_object *object) {
  file_names *names = (file_names *)object;
  for (size_t i = 0; i < names->n; i++) {
    cgl_buffer_release(names->list[i].buffer);
    free(names->list[i].name);
  }
  free(names->name);
  free(names);
}


static const cgl_object_kind names_kind = {
    .number = CGL_OBJECT_INTERNAL, .light = true, .destroy = names_destroy};


static cgl_status load_no_memory(void) {
  return cgl_fail(CGL_ERROR_NO_MEMORY, loading, "no memory for a graph");
}


/* ---- before the device is used ---- */

static cgl_status load_refuse_device(const load *l, const char *why) {
  const cgl_file_content *content = l->content;
  cgl_fail(CGL_ERROR_WRONG_DEVICE, loading,
           "'%s', written on %s, cannot run on %s: %s", l->path,
           content->device, l->context->info.device, why);
  return cgl_fail_hint("write it again with graph:save, and with this device "
                       "among its devices");
}


static cgl_status load_refuse(const load *l, const char *wrong,
                              const cgl_file_op *op) {
  if (op)
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, loading,
             "'%s' is damaged: the operation %s at %s:%u %s", l->path, op->name,
             op->file, op->line, wrong);
  else
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, loading, "'%s' is damaged: %s",
             l->path, wrong);
  return cgl_fail_hint("write it again, with graph:save");
}


/* The image of a module, or of its second forms. */
static cgl_status load_find_image(const load *l, uint32_t m, bool second,
                                  cgl_image **image) {
  const cgl_file_module *module = &l->content->modules[m];
  const cgl_file_image *from = cgl_file_find_image(module, l->context, second);
  if (!from) {
    char why[160];
    const cgl_target target = cgl_module_target(l->context);
    if (second)
      return CGL_OK;
    if (target.format == CGL_IMAGE_HOST)
      snprintf(why, sizeof why, "it has no image for this processor");
    else
      snprintf(why, sizeof why, "it has no image for sm_%d", target.sm);
    return load_refuse_device(l, why);
  }
  *image = cgl_file_open_image(from);
  return *image ? CGL_OK
                : load_refuse(l, "an image says nothing of its kernels", NULL);
}


static cgl_status load_check(load *l) {
  const cgl_file_content *content = l->content;
  const cgl_target target = cgl_module_target(l->context);
  const cgl_file_op *where;
  const char *wrong = cgl_file_check(content, NULL, &where);
  if (wrong)
    return load_refuse(l, wrong, where);
  if (target.format == CGL_IMAGE_HOST && content->abi != CGL_HOST_ABI)
    return load_refuse_device(l, "kernels of the host device have changed "
                                 "since it was written");
  l->alike =
      content->format == target.format && content->sm == (uint32_t)target.sm &&
      content->multiprocessors == (uint32_t)l->context->info.multiprocessors;
  cgl_status status = CGL_OK;
  for (uint32_t m = 0; m < content->nmodules && !status; m++) {
    const cgl_file_module *module = &content->modules[m];
    if (module->own) {
      const cgl_cache_key sum = cgl_file_own_sum(module->own - 1u);
      if (module->sum.length != sizeof sum.bytes ||
          memcmp(module->sum.data, sum.bytes, sizeof sum.bytes) != 0)
        return load_refuse_device(l, "this version of cgraphlua has other "
                                     "kernels of its own");
    }
    status = load_find_image(l, m, false, &l->images[m]);
    if (!status && target.format != CGL_IMAGE_HOST)
      status = load_find_image(l, m, true, &l->seconds[m]);
  }
  if (status)
    return status;
  wrong = cgl_file_check(content, l->images, &where);
  return wrong ? load_refuse(l, wrong, where) : CGL_OK;
}


/* ---- memory ---- */

static cgl_status load_memory(load *l) {
  const cgl_file_content *content = l->content;
  static const uint8_t zero;
  size_t total = 0;
  for (uint32_t i = 0; i < content->nregions; i++) {
    l->regions[i] = total + content->regions[i].skew;
    total = (l->regions[i] + content->regions[i].bytes + CGL_FILE_ALIGN - 1) &
            ~(size_t)(CGL_FILE_ALIGN - 1);
  }
  if (!total)
    return CGL_OK;
  cgl_status status = cgl_buffer_create(l->stream, NULL, CGL_TYPE_uint8, total,
                                        &l->memory->block);
  if (status)
    return status;
  cgl_buffer *block = l->memory->block;
  l->memory->regions = malloc(content->nregions * sizeof *l->memory->regions);
  if (!l->memory->regions)
    return load_no_memory();
  /* Replays of any stream use it. */
  atomic_store(&block->wide, true);
  status = cgl_buffer_fill(block, l->stream, &zero);
  for (uint32_t i = 0; i < content->nregions && !status; i++) {
    const cgl_file_bytes *data = &content->regions[i].data;
    if (data->length)
      status = cgl_buffer_upload(block, l->stream, l->regions[i], data->data,
                                 data->length);
    l->regions[i] += block->address;
    l->memory->regions[l->memory->nregions++] =
        (struct cgl_file_span){l->regions[i], content->regions[i].bytes};
  }
  /* Whatever uses it next may be on any stream. */
  if (!status)
    status = cgl_fail_driver(
        l->context, cgl_context_wait_stream(l->context, l->stream->handle),
        loading, "cuStreamSynchronize");
  return status;
}


static CUdeviceptr load_address(const load *l, const cgl_file_place *place) {
  switch (place->kind) {
  case CGL_FILE_REGION:
    return l->regions[place->index] + place->offset;
  case CGL_FILE_LIBRARY:
    return l->memory->libraries[place->index]->address + place->offset;
  case CGL_FILE_GENERATOR:
    return l->generators[place->index]->state->memory->address + place->offset;
  default:
    return 0;
  }
}


static cgl_status load_generators(load *l) {
  cgl_status status = CGL_OK;
  for (uint32_t i = 0; i < l->content->ngenerators && !status; i++) {
    const cgl_file_generator *from = &l->content->generators[i];
    status = cgl_generator_create(l->context, from->seed, &l->generators[i]);
    if (!status)
      status =
          cgl_generator_set_offset(l->generators[i], l->stream, from->offset);
  }
  return status;
}


/* ---- kernels ---- */

static cgl_status load_modules(load *l) {
  cgl_status status = CGL_OK;
  for (uint32_t m = 0; m < l->content->nmodules && !status; m++) {
    const cgl_file_module *from = &l->content->modules[m];
    const cgl_module_desc desc = {.file = from->file, .line = (int)from->line};
    if (from->own) {
      status = cgl_module_own_supply(l->context, cgl_file_owns[from->own - 1],
                                     from->part, &l->images[m], l->seconds[m],
                                     loading);
      continue;
    }
    status = cgl_module_load(l->context, &desc, &l->images[m], loading,
                             &l->modules[m]);
    if (!status && l->seconds[m])
      status = cgl_module_supply_second(l->modules[m], &l->seconds[m], loading);
  }
  return status;
}


static cgl_status load_kernels(load *l) {
  const cgl_file_content *content = l->content;
  cgl_status status = CGL_OK;
  l->memory->kernels =
      calloc(content->nkernels + (size_t)1, sizeof *l->memory->kernels);
  if (!l->memory->kernels)
    return load_no_memory();
  for (uint32_t k = 0; k < content->nkernels && !status; k++) {
    status =
        cgl_module_kernel(l->modules[content->kernels[k].module],
                          content->kernels[k].name, &l->memory->kernels[k]);
    l->memory->nkernels += !status;
  }
  return status;
}


/* Memory of another library's, from its recipe. */
static cgl_status load_library(const load *l, const cgl_file_library *from,
                               uint64_t most, cgl_buffer **memory) {
  const cgl_call_library *library = cgl_call_find(from->name, NULL);
  if (!library || library->version != from->version) {
    cgl_fail(CGL_ERROR_NOT_FOUND, loading,
             library ? "'%s' calls \"%s\" of another version of cgraphlua"
                     : "'%s' calls \"%s\", which this program does not have",
             l->path, from->name);
    return cgl_fail_hint(library ? "write it again with this version"
                                 : "link it with all of libcgraphlua");
  }
  if (cgl_module_target(l->context).format != CGL_IMAGE_HOST)
    return load_refuse_device(l, "it calls a library of the processor's");
  cgl_status status = library->make(l->context, from->recipe.data,
                                    from->recipe.length, most, loading, memory);
  if (status || cgl_buffer_bytes(*memory) == from->bytes)
    return status;
  cgl_buffer_release(*memory);
  return load_refuse(l, "a library's memory has another size", NULL);
}


static cgl_status load_libraries(load *l) {
  const cgl_file_content *content = l->content;
  cgl_file_memory *memory = l->memory;
  uint64_t most = 0;
  cgl_status status = CGL_OK;
  memory->libraries =
      calloc(content->nlibraries + (size_t)1, sizeof(cgl_buffer *));
  if (!memory->libraries)
    return load_no_memory();
  for (uint32_t i = 0; i < content->nregions; i++)
    most += content->regions[i].bytes;
  for (uint32_t i = 0; i < content->nlibraries && !status; i++) {
    status =
        load_library(l, &content->libraries[i], most, &memory->libraries[i]);
    memory->nlibraries += !status;
  }
  return status;
}


static cgl_status load_params(load *l) {
  const cgl_file_content *content = l->content;
  cgl_file_memory *memory = l->memory;
  cgl_status status = CGL_OK;
  memory->params = calloc(content->nparams + (size_t)1, sizeof(cgl_param *));
  if (!memory->params)
    return load_no_memory();
  for (uint32_t i = 0; i < content->nparams && !status; i++) {
    const cgl_file_param *from = &content->params[i];
    const cgl_type type = (cgl_type)from->type;
    status = cgl_param_create(l->context, type,
                              from->value.length / cgl_type_bytes(type),
                              from->value.data, from->name, &memory->params[i]);
    memory->nparams += !status;
  }
  return status;
}


/* A user's kernel, as the operation launches it. */
static cgl_status load_user_function(const load *l, const cgl_file_op *from,
                                     cgl_op *op) {
  cgl_kernel *kernel = l->memory->kernels[from->index];
  const char *why = NULL;
  const cgl_second_form form =
      from->follows ? CGL_SECOND_FOLLOWING : CGL_SECOND_PREDICATED;
  size_t at = 0;
  for (size_t i = 0; i < kernel->nparams; i++)
    at = cgl_kernel_next_value(at) + kernel->sizes[i];
  if (from->second)
    at = cgl_kernel_next_value(at) + cgl_kernel_second_bytes(kernel, form);
  if (from->rule)
    at = cgl_kernel_next_value(at) + sizeof(cgl_numbers);
  if (at != from->values.length)
    return load_refuse(l, "has values that its kernel does not take", from);
  cgl_status status =
      cgl_launch_check(kernel, &op->launch, kernel->nparams, loading);
  op->object = &kernel->object;
  op->function = kernel->handle;
  if (!status && from->second)
    status = cgl_kernel_second(kernel, form, &op->launch, loading,
                               &op->function, &why);
  return why ? load_refuse_device(l, why) : status;
}


static cgl_status load_function(const load *l, const cgl_file_op *from,
                                cgl_op *op) {
  const char *why = NULL;
  if (from->function == CGL_FILE_NO_FUNCTION)
    return CGL_OK;
  if (from->function == CGL_FILE_USER)
    return load_user_function(l, from, op);
  const cgl_own *own = cgl_file_owns[from->function - CGL_FILE_OWN_1];
  cgl_status status =
      from->second ? cgl_module_own_predicated(l->context, own, from->index,
                                               loading, &op->function, &why)
                   : cgl_module_own_kernel(l->context, own, from->index,
                                           loading, &op->function);
  return why ? load_refuse_device(l, why) : status;
}


/* ---- recordings ---- */

/* With the file's edges between operations. */
static cgl_status recording_set_edges(cgl_recording *recording,
                                      const cgl_file_recording *from) {
  size_t count = 0;
  for (uint32_t i = 0; i < from->nops; i++)
    count += from->ops[i].nedges;
  size_t *first = calloc(from->nops + (size_t)2, sizeof *first);
  size_t *edges = malloc((count + 1) * sizeof *edges);
  if (!first || !edges) {
    free(first);
    free(edges);
    return load_no_memory();
  }
  count = 0;
  for (uint32_t i = 0; i < from->nops; i++) {
    first[i] = count;
    for (uint32_t k = 0; k < from->ops[i].nedges; k++)
      edges[count++] = from->ops[i].edges[k];
  }
  first[from->nops] = count;
  cgl_record_set_dependencies(recording, first, edges);
  return CGL_OK;
}


static cgl_op op_of(const load *l, const cgl_file_op *from) {
  cgl_op op;
  memset(&op, 0, sizeof op);
  op.kind = (cgl_op_kind)from->kind;
  op.name = cgl_intern(from->name);
  if (*from->file)
    op.site = (cgl_site){cgl_intern(from->file), (int)from->line};
  op.fills = from->fills;
  op.follows = from->follows;
  op.waits = from->waits && l->alike;
  op.fits = from->fits && l->alike;
  op.programmatic = from->programmatic && l->alike;
  op.off = from->off;
  op.priority = from->priority;
  op.stream = from->streamed;
  op.launch = from->launch;
  op.handle = (cgl_handle)from->handle;
  op.rule = from->rule ? cgl_file_rules[from->rule - 1] : NULL;
  op.predication = (cgl_predication)from->predication;
  op.nvalues = (uint32_t)from->values.length;
  op.nranges = from->nranges;
  op.nuses = from->nuses;
  op.nbodies = from->nbodies;
  return op;
}


/* Appends an operation, its addresses being where its memory is now. */
static cgl_status recording_add(const load *l, cgl_recording *recording,
                                const cgl_file_op *from,
                                cgl_recording *const *all) {
  cgl_op op = op_of(l, from);
  cgl_arena arena = {NULL, false};
  char *values = cgl_arena_copy(&arena, from->values.data, op.nvalues);
  cgl_range *ranges =
      cgl_arena_alloc(&arena, (op.nranges + (size_t)1) * sizeof *ranges);
  cgl_param_use *uses =
      cgl_arena_alloc(&arena, (op.nuses + (size_t)1) * sizeof *uses);
  cgl_recording **bodies = cgl_arena_alloc(&arena, (op.nbodies + (size_t)1) *
                                                       sizeof(cgl_recording *));
  cgl_status status =
      arena.failed ? load_no_memory() : load_function(l, from, &op);
  for (uint32_t i = 0; i < from->naddresses && !status; i++) {
    const uint64_t address = load_address(l, &from->addresses[i].place);
    memcpy(values + from->addresses[i].at, &address, sizeof address);
  }
  for (uint32_t i = 0; i < op.nranges && !status; i++)
    ranges[i] = (cgl_range){.address = load_address(l, &from->ranges[i].place),
                            .bytes = from->ranges[i].bytes,
                            .argument = (uint16_t)from->ranges[i].argument,
                            .write = from->ranges[i].write};
  for (uint32_t i = 0; i < op.nuses && !status; i++)
    uses[i] = (cgl_param_use){.param = l->memory->params[from->uses[i].param],
                              .offset = from->uses[i].offset,
                              .repeats = from->uses[i].repeats,
                              .argument = from->uses[i].argument,
                              .follows = from->uses[i].follows};
  for (uint32_t i = 0; i < op.nuses && !status && op.object; i++)
    status = cgl_kernel_give_fields((cgl_kernel *)op.object, uses[i].argument,
                                    uses[i].param, loading);
  for (uint32_t i = 0; i < op.nbodies && !status; i++)
    bodies[i] = all[from->bodies[i]];
  if (!status)
    status = cgl_record_append(recording, &op, values, ranges, uses, bodies,
                               loading);
  cgl_arena_free(&arena);
  return status;
}


/* The recordings of a graph; the last one is its own. */
static cgl_status load_recordings(const load *l, const cgl_file_graph *graph,
                                  cgl_recording **all) {
  cgl_status status = CGL_OK;
  for (uint32_t r = 0; r < graph->nrecordings && !status; r++) {
    const cgl_file_recording *from = &graph->recordings[r];
    if (!(all[r] = cgl_record_new(l->context)))
      return load_no_memory();
    for (uint32_t i = 0; i < from->nops && !status; i++)
      status = recording_add(l, all[r], &from->ops[i], all);
    if (!status)
      status = recording_set_edges(all[r], from);
  }
  return status;
}


/* ---- graphs ---- */

static cgl_status load_names(const load *l, const cgl_file_graph *graph,
                             file_names **out) {
  file_names *names =
      calloc(1, sizeof *names + graph->nnames * sizeof *names->list);
  if (!names)
    return load_no_memory();
  cgl_object_init(&names->object, &names_kind, l->context);
  *out = names;
  names->name = cgl_format("%s", graph->name);
  cgl_status status = names->name ? CGL_OK : load_no_memory();
  for (uint32_t i = 0; i < graph->nnames && !status; i++) {
    const cgl_file_name *from = &graph->names[i];
    struct file_name *to = &names->list[names->n++];
    size_t shape[CGL_MAX_DIMS], count = 1;
    for (uint32_t d = 0; d < from->ndims; d++)
      count *= shape[d] = from->shape[d];
    to->name = cgl_format("%s", from->name);
    to->output = from->output;
    status = to->name ? cgl_buffer_of_keeper(&l->memory->block->object,
                                             load_address(l, &from->place),
                                             (cgl_type)from->type, count,
                                             &to->buffer)
                      : load_no_memory();
    if (!status)
      status = cgl_buffer_set_shape(to->buffer, shape, (int)from->ndims);
  }
  return status;
}


/* The inputs, in the recordings, of which the last is the graph's. */
static cgl_status load_inputs(const file_names *names, cgl_recording **all,
                              uint32_t n) {
  const cgl_room room = {.kept = names->n};
  cgl_status status = CGL_OK;
  for (uint32_t r = 0; r < n && !status; r++)
    status = cgl_issue_reserve(all[r], &room, loading);
  for (size_t i = 0; i < names->n && !status; i++) {
    cgl_buffer *buffer = names->list[i].buffer;
    if (names->list[i].output)
      continue;
    status = cgl_buffer_set_input(buffer, names->list[i].name);
    for (uint32_t r = 0; r < n && !status; r++)
      cgl_record_mark_input(all[r], &buffer->object, buffer->address,
                            cgl_buffer_bytes(buffer));
    if (!status)
      cgl_record_add_input(all[n - 1], &buffer->object);
  }
  return status;
}


static cgl_status load_draws(const load *l, const cgl_file_graph *graph,
                             cgl_draw **draws) {
  cgl_status status = CGL_OK;
  for (uint32_t i = 0; i < graph->ndraws && !status; i++) {
    const cgl_file_draw *from = &graph->draws[i];
    cgl_draw *draw;
    status = cgl_draw_register(draws, l->generators[from->generator]->state,
                               false, loading, &draw);
    if (status)
      break;
    draw->used |= from->used;
    draw->written |= from->written;
  }
  return status;
}


static cgl_status load_graph(const load *l, const cgl_file_graph *from,
                             cgl_graph **out) {
  cgl_restored parts = {.keeper = &l->memory->object};
  file_names *names = NULL;
  cgl_graph *graph = NULL;
  cgl_recording **all = calloc(from->nrecordings, sizeof(cgl_recording *));
  cgl_status status = all ? load_recordings(l, from, all) : load_no_memory();
  if (!status)
    status = load_names(l, from, &names);
  if (!status)
    status = load_inputs(names, all, from->nrecordings);
  if (!status)
    status = load_draws(l, from, &parts.draws);
  if (!status)
    status = cgl_graph_create(l->context, NULL, &graph);
  if (status) {
    cgl_draws_free(parts.draws);
    if (names)
      cgl_object_release(&names->object);
  } else {
    parts.recording = cgl_record_retain(all[from->nrecordings - 1]);
    parts.bound = &names->object;
    status = cgl_graph_restore(graph, l->stream, &parts, loading);
  }
  for (uint32_t r = 0; all && r < from->nrecordings; r++)
    cgl_record_release(all[r]);
  free((void *)all);
  if (status)
    cgl_graph_release(graph);
  else
    *out = graph;
  return status;
}


static cgl_status load_start(load *l) {
  l->memory = calloc(1, sizeof *l->memory);
  if (!l->memory)
    return load_no_memory();
  cgl_object_init(&l->memory->object, &cgl_file_memory_kind, l->context);
  cgl_status status = cgl_stream_default(l->context, &l->stream);
  if (!status)
    status = load_memory(l);
  if (!status)
    status = load_modules(l);
  if (!status)
    status = load_kernels(l);
  if (!status)
    status = load_params(l);
  if (!status)
    status = load_libraries(l);
  return status ? status : load_generators(l);
}


static void load_free(load *l) {
  for (uint32_t m = 0; m < l->content->nmodules; m++) {
    cgl_image_free(l->images[m]);
    cgl_image_free(l->seconds[m]);
    cgl_module_release(l->modules[m]);
  }
  for (uint32_t i = 0; i < l->content->ngenerators; i++)
    cgl_generator_release(l->generators[i]);
  if (l->memory)
    cgl_object_release(&l->memory->object);
  cgl_stream_release(l->stream);
}


/* Makes `n` first graphs of the content. */
static cgl_status load_content(cgl_context *context, const char *path,
                               cgl_file_content *content, cgl_graph **graphs,
                               size_t n) {
  cgl_arena *arena = &content->arena;
  load l = {.context = context, .path = path, .content = content};
  l.images = cgl_arena_alloc(arena, (content->nmodules + (size_t)1) *
                                        sizeof(cgl_image *));
  l.seconds = cgl_arena_alloc(arena, (content->nmodules + (size_t)1) *
                                         sizeof(cgl_image *));
  l.modules = cgl_arena_alloc(arena, (content->nmodules + (size_t)1) *
                                         sizeof(cgl_module *));
  l.regions = cgl_arena_alloc(arena, (content->nregions + (size_t)1) *
                                         sizeof(CUdeviceptr));
  l.generators = cgl_arena_alloc(arena, (content->ngenerators + (size_t)1) *
                                            sizeof(cgl_generator *));
  if (arena->failed)
    return load_no_memory();
  cgl_status status = load_check(&l);
  size_t made = 0;
  if (!status)
    status = load_start(&l);
  for (; made < n && !status; made += !status)
    status = load_graph(&l, &content->graphs[made], &graphs[made]);
  while (status && made) {
    cgl_graph_release(graphs[--made]);
    graphs[made] = NULL;
  }
  load_free(&l);
  return status;
}


static cgl_status load_file(cgl_context *context, const char *path,
                            const cgl_load_desc *desc, cgl_graph **graphs,
                            size_t room, bool all, size_t *count) {
  cgl_file_content content = {0};
  char *bytes = NULL;
  size_t length = 0;
  *count = 0;
  cgl_status status = cgl_captures_check_wait(false, loading);
  if (!status)
    status = cgl_context_enter(context, loading);
  if (!status)
    status = cgl_file_read(path, &bytes, &length, loading);
  if (!status && desc && desc->verify &&
      !desc->verify(desc->verify_data, bytes, length)) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, loading,
             "'%s' was not verified, and nothing of it was used", path);
    status = cgl_fail_hint("load files of a source that you trust");
  }
  if (!status)
    status = cgl_file_unpack(bytes, length, path, &content, loading);
  if (!status && !content.ngraphs)
    status = cgl_fail(CGL_ERROR_INVALID_ARGUMENT, loading, "'%s' has no graph",
                      path);
  *count = content.ngraphs;
  if (!status && (!all || room >= content.ngraphs))
    status = load_content(context, path, &content, graphs,
                          all ? content.ngraphs : 1);
  cgl_arena_free(&content.arena);
  free(bytes);
  return status;
}


cgl_status cgl_graph_load(cgl_context *context, const char *path,
                          const cgl_load_desc *desc, cgl_graph **graph) {
  size_t count;
  return load_file(context, path, desc, graph, 1, false, &count);
}


cgl_status cgl_graph_load_all(cgl_context *context, const char *path,
                              const cgl_load_desc *desc, cgl_graph **graphs,
                              size_t room, size_t *count) {
  return load_file(context, path, desc, graphs, room, true, count);
}


/* ---- names ---- */

const char *cgl_graph_saved_name(const cgl_graph *graph) {
  return graph->bound ? ((const file_names *)graph->bound)->name : NULL;
}


static const struct file_name *graph_find(const cgl_graph *graph,
                                          const char *name, bool output,
                                          size_t index) {
  const file_names *names = (const file_names *)graph->bound;
  for (size_t i = 0; names && i < names->n; i++) {
    const struct file_name *n = &names->list[i];
    if (n->output == output && (name ? !strcmp(n->name, name) : !index--))
      return n;
  }
  return NULL;
}


cgl_buffer *cgl_graph_output(const cgl_graph *graph, const char *name) {
  const struct file_name *found = graph_find(graph, name, true, 0);
  return found ? found->buffer : NULL;
}


const char *cgl_graph_output_name(const cgl_graph *graph, size_t index) {
  const struct file_name *found = graph_find(graph, NULL, true, index);
  return found ? found->name : NULL;
}
