/* Graphs as a content: what they use, and where it lies. */
#include "core/file/collect.h"

#include <stdlib.h>

#include "driver/kernel_abi.h"


static const char *copy_text(cgl_file_collecting *c, const char *text) {
  return cgl_arena_copy(&c->content->arena, text ? text : "",
                        text ? strlen(text) : 0);
}


/* ---- kernels ---- */

/* Makes room for a module, which has no images yet. */
static cgl_file_module *collect_new_module(cgl_file_collecting *c,
                                           const cgl_module *module) {
  cgl_file_content *content = c->content;
  const uint32_t n = content->nmodules;
  cgl_file_module *modules =
      cgl_file_grow(content->modules, n, sizeof *modules);
  if (modules)
    content->modules = modules;
  const cgl_module **all =
      (const cgl_module **)cgl_file_grow((void *)c->modules, n, sizeof *all);
  if (all)
    c->modules = all;
  bool *seconds = cgl_file_grow(c->seconds, n, sizeof *seconds);
  if (seconds)
    c->seconds = seconds;
  if (!modules || !all || !seconds) {
    cgl_file_no_memory(c);
    return NULL;
  }
  all[n] = module;
  seconds[n] = false;
  modules[n] = (cgl_file_module){.file = "", .source = ""};
  content->nmodules++;
  return &modules[n];
}


/* The kernel's index; UINT32_MAX without memory. */
static uint32_t collect_kernel(cgl_file_collecting *c,
                               const cgl_kernel *kernel) {
  cgl_file_content *content = c->content;
  uint32_t k = 0, m = 0;
  while (k < content->nkernels && (c->kernels[k]->module != kernel->module ||
                                   c->kernels[k]->handle != kernel->handle))
    k++;
  if (k < content->nkernels)
    return k;
  const cgl_kernel **all =
      (const cgl_kernel **)cgl_file_grow((void *)c->kernels, k, sizeof *all);
  if (all)
    c->kernels = all;
  cgl_file_kernel *kernels =
      cgl_file_grow(content->kernels, k, sizeof *kernels);
  if (kernels)
    content->kernels = kernels;
  while (m < content->nmodules && c->modules[m] != kernel->module)
    m++;
  if (!all || !kernels ||
      (m == content->nmodules && !collect_new_module(c, kernel->module))) {
    cgl_file_no_memory(c);
    return UINT32_MAX;
  }
  all[k] = kernel;
  kernels[k] = (cgl_file_kernel){m, copy_text(c, kernel->name)};
  content->nkernels++;
  return k;
}


/* A function of the library's own. */
static cgl_status collect_own(cgl_file_collecting *c, const cgl_op *op,
                              cgl_file_op *to) {
  cgl_file_content *content = c->content;
  for (size_t own = 0; own < CGL_FILE_OWN; own++) {
    const cgl_own *list = cgl_file_owns[own];
    size_t index;
    bool second;
    if (!cgl_module_own_find(c->targets.context, list, op->function, &index,
                             &second))
      continue;
    uint32_t m = 0;
    while (m < content->nmodules &&
           (content->modules[m].own != own + 1 ||
            list->kernels[content->modules[m].part].part !=
                list->kernels[index].part))
      m++;
    if (m == content->nmodules) {
      cgl_file_module *module = collect_new_module(c, NULL);
      if (!module)
        return CGL_ERROR_NO_MEMORY;
      module->own = (uint8_t)(own + 1);
      module->part = (uint32_t)index;
    }
    c->seconds[m] |= second;
    to->function = (uint8_t)(CGL_FILE_OWN_1 + own);
    to->index = (uint32_t)index;
    to->second = second;
    to->module = m;
    return CGL_OK;
  }
  return cgl_file_refuse(c, op, "its kernel is not known",
                         "capture the graph again");
}


static cgl_status collect_function(cgl_file_collecting *c, const cgl_op *op,
                                   cgl_file_op *to) {
  const cgl_kernel *kernel = (const cgl_kernel *)op->object;
  if (!op->function)
    return CGL_OK;
  if (!kernel)
    return collect_own(c, op, to);
  to->function = CGL_FILE_USER;
  to->index = collect_kernel(c, kernel);
  to->second = op->function != kernel->handle;
  if (to->index == UINT32_MAX)
    return CGL_ERROR_NO_MEMORY;
  c->seconds[c->content->kernels[to->index].module] |= to->second;
  return CGL_OK;
}


/* ---- operations ---- */

/* Eight bytes of the values are an address. */
static cgl_status collect_address(cgl_file_collecting *c, const cgl_op *op,
                                  size_t at, cgl_file_op *to) {
  unsigned char *values = (unsigned char *)(uintptr_t)to->values.data;
  uint64_t address;
  memcpy(&address, values + at, sizeof address);
  memset(values + at, 0, sizeof address);
  cgl_file_address *a = &to->addresses[to->naddresses++];
  a->at = (uint32_t)at;
  return cgl_file_find_place(c->content, address, &a->place)
             ? CGL_OK
             : cgl_file_refuse(c, op, "an argument is a raw address",
                               "give the kernel a buffer");
}


/* Refuses a number that is the address of memory of the graphs. */
static cgl_status collect_number(const cgl_file_collecting *c, const cgl_op *op,
                                 const unsigned char *value) {
  cgl_file_place place;
  uint64_t number;
  memcpy(&number, value, sizeof number);
  return number && cgl_file_find_place(c->content, number, &place)
             ? cgl_file_refuse(c, op, "a number is the address of a buffer",
                               "give the kernel the buffer")
             : CGL_OK;
}


static cgl_status collect_user_values(cgl_file_collecting *c, const cgl_op *op,
                                      cgl_file_op *to, size_t *end) {
  const cgl_kernel *kernel = (const cgl_kernel *)op->object;
  const unsigned char *values = to->values.data;
  cgl_status status = CGL_OK;
  size_t at = 0;
  for (size_t i = 0; i < kernel->nparams && !status; i++) {
    const cgl_parameter *p = cgl_kernel_parameter(kernel, i);
    at = cgl_kernel_next_value(at);
    if (p->pointer || p->kind == CGL_KIND_PHILOX)
      status = collect_address(c, op, at, to);
    else if (p->lanes <= 1 &&
             (p->kind == CGL_KIND_INT64 || p->kind == CGL_KIND_UINT64))
      status = collect_number(c, op, values + at);
    at += kernel->sizes[i];
  }
  *end = at;
  return status;
}


static cgl_status collect_own_values(cgl_file_collecting *c, const cgl_op *op,
                                     cgl_file_op *to, size_t *end) {
  size_t count;
  unsigned addresses;
  cgl_status status = CGL_OK;
  cgl_file_own_values(to->function - CGL_FILE_OWN_1, to->index, &count,
                      &addresses);
  for (size_t i = 0; i < count && !status; i++)
    if (addresses >> i & 1)
      status = collect_address(c, op, 16 * i, to);
  *end = 16 * count;
  return status;
}


/* A copy of the values in which what lies between them is 0. */
static void *copy_values(cgl_file_collecting *c, const cgl_recording *recording,
                         const cgl_op *op) {
  const unsigned char *from = cgl_record_values(recording, op);
  const cgl_kernel *kernel = (const cgl_kernel *)op->object;
  unsigned char *to =
      cgl_arena_alloc(&c->content->arena, op->nvalues + (size_t)1);
  size_t at = 0;
  if (!to)
    return NULL;
  if (op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET) {
    const cgl_element *element = (const cgl_element *)from;
    memcpy(to, element, offsetof(cgl_element, follows) + 1);
    return to;
  }
  for (size_t i = 0; op->kind == CGL_OP_KERNEL && kernel && i < kernel->nparams;
       i++) {
    at = cgl_kernel_next_value(at);
    memcpy(to + at, from + at, kernel->sizes[i]);
    at += kernel->sizes[i];
  }
  if (op->nvalues > at) {
    at = cgl_kernel_next_value(at);
    memcpy(to + at, from + at, op->nvalues - at);
  }
  return to;
}


/* What parameters of a kernel in its following form are read from. */
static cgl_status collect_followed(cgl_file_collecting *c, const cgl_op *op,
                                   size_t at, cgl_file_op *to) {
  const cgl_kernel *kernel = (const cgl_kernel *)op->object;
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < kernel->nparams && !status; i++)
    status = collect_address(c, op, at + 8 * (1 + i), to);
  return status;
}


/* The values, with places where addresses are. */
static cgl_status collect_values(cgl_file_collecting *c,
                                 const cgl_recording *recording,
                                 const cgl_op *op, cgl_file_op *to) {
  cgl_arena *arena = &c->content->arena;
  cgl_status status = CGL_OK;
  size_t end = 0;
  to->values.length = op->nvalues;
  to->values.data = copy_values(c, recording, op);
  to->addresses = cgl_arena_alloc(arena, (op->nvalues / 8 + (size_t)1) *
                                             sizeof *to->addresses);
  if (arena->failed)
    return cgl_file_no_memory(c);
  if (op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET) {
    const cgl_element *element = to->values.data;
    status = collect_address(c, op, offsetof(cgl_element, to), to);
    if (!status && (op->kind == CGL_OP_MEMCPY || element->follows))
      status = collect_address(c, op, offsetof(cgl_element, what), to);
  }
  if (op->kind != CGL_OP_KERNEL)
    return status;
  if (op->handle) /* each graph that is built makes its own */
    memset((void *)(uintptr_t)to->values.data, 0, 8);
  status = op->object ? collect_user_values(c, op, to, &end)
                      : collect_own_values(c, op, to, &end);
  const size_t at = cgl_kernel_next_value(end);
  if (!status && op->follows)
    status = collect_followed(c, op, at, to);
  if (status || op->predication != CGL_PREDICATION_LOOKS)
    return status;
  status = collect_address(c, op, at + offsetof(cgl_predicate, word), to);
  if (!status)
    status = collect_address(c, op, at + offsetof(cgl_predicate, value), to);
  if (!status)
    status = collect_address(c, op, at + offsetof(cgl_predicate, ran), to);
  return status;
}


/* The parameter's index; UINT32_MAX without memory. */
static uint32_t collect_param(cgl_file_collecting *c, const cgl_param *param) {
  cgl_file_content *content = c->content;
  uint32_t p = 0;
  while (p < content->nparams && c->params[p] != param)
    p++;
  if (p < content->nparams)
    return p;
  const cgl_param **all =
      (const cgl_param **)cgl_file_grow((void *)c->params, p, sizeof *all);
  if (all)
    c->params = all;
  cgl_file_param *params = cgl_file_grow(content->params, p, sizeof *params);
  if (params)
    content->params = params;
  void *value = cgl_arena_alloc(&content->arena, param->bytes);
  if (!all || !params || !value)
    return UINT32_MAX;
  cgl_param_get(param, value);
  all[p] = param;
  params[p] = (cgl_file_param){
      copy_text(c, param->name), (uint8_t)param->type, {value, param->bytes}};
  content->nparams++;
  return p;
}


static cgl_status collect_uses(cgl_file_collecting *c,
                               const cgl_recording *recording, const cgl_op *op,
                               cgl_file_op *to) {
  const cgl_param_use *use = cgl_record_uses(recording, op);
  to->uses = cgl_arena_alloc(&c->content->arena,
                             (op->nuses + (size_t)1) * sizeof *to->uses);
  if (!to->uses)
    return cgl_file_no_memory(c);
  for (uint32_t i = 0; i < op->nuses; i++, use++) {
    if (!use->param)
      continue;
    const uint32_t param = collect_param(c, use->param);
    if (param == UINT32_MAX)
      return cgl_file_no_memory(c);
    to->uses[to->nuses++] = (cgl_file_use){param, use->offset, use->repeats,
                                           use->argument, use->follows};
  }
  return CGL_OK;
}


static cgl_status collect_ranges(cgl_file_collecting *c,
                                 const cgl_recording *recording,
                                 const cgl_op *op, cgl_file_op *to) {
  const cgl_range *ranges = cgl_record_ranges(recording, op);
  to->ranges = cgl_arena_alloc(&c->content->arena,
                               (op->nranges + (size_t)1) * sizeof *to->ranges);
  if (!to->ranges)
    return cgl_file_no_memory(c);
  for (uint32_t i = 0; i < op->nranges; i++) {
    cgl_file_range *r = &to->ranges[to->nranges];
    if (!ranges[i].bytes)
      continue;
    *r = (cgl_file_range){.bytes = ranges[i].bytes,
                          .argument = ranges[i].argument,
                          .write = ranges[i].write};
    cgl_file_find_place(c->content, ranges[i].address, &r->place);
    to->nranges++;
  }
  return CGL_OK;
}


static cgl_status collect_edges(cgl_file_collecting *c,
                                const cgl_recording *recording, size_t index,
                                cgl_file_op *to) {
  size_t count;
  const size_t *from = cgl_record_dependencies(recording, index, &count);
  to->edges =
      cgl_arena_alloc(&c->content->arena, (count + 1) * sizeof *to->edges);
  if (!to->edges)
    return cgl_file_no_memory(c);
  for (size_t i = 0; i < count; i++) {
    if (from[i] >= index)
      return cgl_file_refuse(c, cgl_record_op(recording, index),
                             "it depends on a node that was added later",
                             "add no edges by hand");
    to->edges[to->nedges++] = (uint32_t)from[i];
  }
  return CGL_OK;
}


static cgl_status collect_recording(cgl_file_collecting *c,
                                    cgl_file_graph *graph,
                                    const cgl_recording *recording,
                                    uint32_t *number);


static cgl_status collect_bodies(cgl_file_collecting *c, cgl_file_graph *graph,
                                 const cgl_recording *recording,
                                 const cgl_op *op, cgl_file_op *to) {
  const cgl_recording *const *bodies = cgl_record_bodies(recording, op);
  cgl_status status = CGL_OK;
  to->bodies = cgl_arena_alloc(&c->content->arena,
                               (op->nbodies + (size_t)1) * sizeof *to->bodies);
  if (!to->bodies)
    return cgl_file_no_memory(c);
  for (uint32_t i = 0; i < op->nbodies && !status; i++)
    status = collect_recording(c, graph, bodies[i], &to->bodies[to->nbodies++]);
  return status;
}


static cgl_status collect_op(cgl_file_collecting *c, cgl_file_graph *graph,
                             const cgl_recording *recording, size_t index,
                             cgl_file_op *to) {
  const cgl_op *op = cgl_record_op(recording, index);
  *to = (cgl_file_op){.kind = (uint8_t)op->kind,
                      .handle = (uint8_t)op->handle,
                      .predication = (uint8_t)op->predication,
                      .fills = op->fills,
                      .follows = op->follows,
                      .waits = op->waits,
                      .fits = op->fits,
                      .programmatic = op->programmatic,
                      .off = op->off,
                      .streamed = op->stream != 0,
                      .priority = op->priority,
                      .name = copy_text(c, op->name),
                      .file = copy_text(c, op->site.file),
                      .line = (uint32_t)op->site.line,
                      .launch = op->launch};
  for (uint8_t i = 0; i < CGL_FILE_RULES; i++)
    if (op->rule == cgl_file_rules[i])
      to->rule = i + 1;
  cgl_status status = collect_function(c, op, to);
  if (!status)
    status = collect_values(c, recording, op, to);
  if (!status)
    status = collect_uses(c, recording, op, to);
  if (!status)
    status = collect_ranges(c, recording, op, to);
  if (!status)
    status = collect_edges(c, recording, index, to);
  return status ? status : collect_bodies(c, graph, recording, op, to);
}


/* Adds a recording behind its bodies, once. */
static cgl_status collect_recording(cgl_file_collecting *c,
                                    cgl_file_graph *graph,
                                    const cgl_recording *recording,
                                    uint32_t *number) {
  const size_t n = cgl_record_count(recording);
  cgl_file_recording to = {.nops = (uint32_t)n};
  cgl_status status = CGL_OK;
  for (*number = 0; *number < graph->nrecordings; ++*number)
    if (c->recordings[*number] == recording)
      return CGL_OK;
  to.ops = cgl_arena_alloc(&c->content->arena, (n + 1) * sizeof *to.ops);
  if (!to.ops)
    return cgl_file_no_memory(c);
  for (size_t i = 0; i < n && !status; i++)
    status = collect_op(c, graph, recording, i, &to.ops[i]);
  if (status)
    return status;
  *number = graph->nrecordings;
  const cgl_recording **all = (const cgl_recording **)cgl_file_grow(
      (void *)c->recordings, *number, sizeof *all);
  if (all)
    c->recordings = all;
  cgl_file_recording *recordings =
      cgl_file_grow(graph->recordings, *number, sizeof *recordings);
  if (recordings)
    graph->recordings = recordings;
  if (!all || !recordings)
    return cgl_file_no_memory(c);
  all[*number] = recording;
  recordings[graph->nrecordings++] = to;
  return CGL_OK;
}


/* ---- names ---- */

static cgl_status collect_name(cgl_file_collecting *c, cgl_file_graph *graph,
                               const cgl_recording *recording,
                               const cgl_named_buffer *named, bool output) {
  cgl_buffer *buffer = named->buffer;
  size_t n, shape[CGL_MAX_DIMS];
  const cgl_range *ranges = cgl_record_footprint(recording, &n);
  cgl_status status = cgl_buffer_check(buffer, c->operation);
  if (!status && !ranges)
    status = cgl_file_no_memory(c);
  if (status)
    return status;
  cgl_file_name *to = &graph->names[graph->nnames];
  if (!cgl_buffer_bytes(buffer) ||
      !cgl_record_ranges_touch(ranges, n, buffer->address,
                               cgl_buffer_bytes(buffer), false) ||
      !cgl_file_find_place(c->content, buffer->address, &to->place) ||
      to->place.kind != CGL_FILE_REGION) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, c->operation,
             "the graph does not use the %s \"%s\"",
             output ? "output" : "input", named->name);
    return cgl_fail_hint("name buffers that the captured work reads or writes");
  }
  for (uint32_t i = 0; i < graph->nnames; i++)
    if (graph->names[i].output == output &&
        !strcmp(graph->names[i].name, named->name))
      return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, c->operation,
                      "two buffers have the name \"%s\"", named->name);
  to->name = copy_text(c, named->name);
  to->output = output;
  to->type = (uint8_t)buffer->type;
  to->ndims = (uint32_t)cgl_buffer_shape(buffer, shape);
  to->shape = cgl_arena_alloc(&c->content->arena,
                              (to->ndims + (size_t)1) * sizeof *to->shape);
  for (uint32_t i = 0; to->shape && i < to->ndims; i++)
    to->shape[i] = shape[i];
  graph->nnames++;
  return to->shape ? CGL_OK : cgl_file_no_memory(c);
}


/* ---- graphs ---- */

static cgl_status collect_draws(cgl_file_collecting *c, cgl_file_graph *graph,
                                const cgl_draw *draws) {
  size_t n = 0;
  for (const cgl_draw *draw = draws; draw; draw = draw->next)
    n++;
  graph->draws =
      cgl_arena_alloc(&c->content->arena, (n + 1) * sizeof *graph->draws);
  if (!graph->draws)
    return cgl_file_no_memory(c);
  for (const cgl_draw *draw = draws; draw; draw = draw->next) {
    cgl_file_place place;
    cgl_file_find_place(c->content, draw->state->memory->address, &place);
    graph->draws[graph->ndraws++] =
        (cgl_file_draw){place.index, draw->used, draw->written};
  }
  return CGL_OK;
}


static cgl_status collect_graph(cgl_file_collecting *c,
                                const cgl_save_graph *from,
                                cgl_file_graph *graph) {
  const cgl_recording *recording = from->graph->recording;
  const size_t n = from->ninputs + from->noutputs;
  uint32_t number;
  graph->name = copy_text(c, from->name);
  graph->names =
      cgl_arena_alloc(&c->content->arena, (n + 1) * sizeof *graph->names);
  cgl_status status = c->content->arena.failed
                          ? cgl_file_no_memory(c)
                          : collect_draws(c, graph, from->graph->draw_list);
  if (!status)
    status = collect_recording(c, graph, recording, &number);
  for (size_t i = 0; i < n && !status; i++)
    status = i < from->ninputs
                 ? collect_name(c, graph, recording, &from->inputs[i], false)
                 : collect_name(c, graph, recording,
                                &from->outputs[i - from->ninputs], true);
  return status;
}


/* ---- images ---- */

static cgl_status collect_user_images(cgl_file_collecting *c, uint32_t m) {
  const cgl_module *module = c->modules[m];
  cgl_file_module *to = &c->content->modules[m];
  const cgl_module_desc *source = module->source;
  const bool host = module->image->format == CGL_IMAGE_HOST;
  const cgl_image *second = c->seconds[m] ? module->second.image : NULL;
  if (!source->source &&
      (c->targets.ndevices || (c->seconds[m] && !second && !host))) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, c->operation,
             "the graph was loaded from a file, and its kernels cannot be "
             "compiled for other devices");
    return cgl_fail_hint("capture it from its script, and save that");
  }
  to->file = copy_text(c, source->file);
  to->line = (uint32_t)source->line;
  if (source->source && !c->desc->no_sources)
    to->source = copy_text(c, source->source);
  return cgl_file_add_images(c->content, &c->targets, source, module->image,
                             c->seconds[m], second, to, c->operation);
}


static cgl_status collect_own_images(cgl_file_collecting *c, uint32_t m) {
  cgl_file_module *to = &c->content->modules[m];
  const cgl_own *own = cgl_file_owns[to->own - 1];
  const cgl_cache_key sum = cgl_file_own_sum(to->own - 1u);
  const char *options[2];
  const cgl_module_desc source = cgl_module_own_desc(own, to->part, options);
  const cgl_image *image = NULL;
  to->sum.data = cgl_arena_copy(&c->content->arena, (const char *)sum.bytes,
                                sizeof sum.bytes);
  to->sum.length = to->sum.data ? sizeof sum.bytes : 0;
  cgl_status status = cgl_module_own_image(c->targets.context, own, to->part,
                                           c->operation, &image);
  if (!status)
    status = cgl_file_add_images(c->content, &c->targets, &source, image,
                                 c->seconds[m], NULL, to, c->operation);
  return status;
}


/* A graph that draws is seeded by a kernel that is in no graph. */
static cgl_status collect_state_kernels(cgl_file_collecting *c) {
  for (uint32_t m = 0; c->content->ngenerators && m < c->content->nmodules; m++)
    if (c->content->modules[m].own == 2 &&
        cgl_fill_own.kernels[c->content->modules[m].part].part ==
            cgl_fill_own.kernels[CGL_FILL_set].part)
      return CGL_OK;
  if (!c->content->ngenerators)
    return CGL_OK;
  cgl_file_module *module = collect_new_module(c, NULL);
  if (!module)
    return CGL_ERROR_NO_MEMORY;
  module->own = 2;
  module->part = CGL_FILL_set;
  return CGL_OK;
}


static cgl_status collect_images(cgl_file_collecting *c) {
  cgl_status status = collect_state_kernels(c);
  for (uint32_t m = 0; m < c->content->nmodules && !status; m++)
    status =
        c->modules[m] ? collect_user_images(c, m) : collect_own_images(c, m);
  return status && status != CGL_ERROR_NO_MEMORY ? status
         : c->content->arena.failed              ? cgl_file_no_memory(c)
                                                 : status;
}


static cgl_status collect_all(cgl_file_collecting *c,
                              const cgl_save_graph *graphs, size_t n) {
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < n && !status; i++)
    status = cgl_file_collect_generators(c, graphs[i].graph->draw_list);
  for (size_t i = 0; i < n && !status; i++)
    status = cgl_file_collect_memory(c, graphs[i].graph->recording);
  if (status)
    return status;
  cgl_file_join_regions(c->content);
  c->content->graphs =
      cgl_arena_alloc(&c->content->arena, (n + 1) * sizeof(cgl_file_graph));
  if (!c->content->graphs)
    return cgl_file_no_memory(c);
  for (size_t i = 0; i < n && !status; i++) {
    c->content->ngraphs++;
    status = collect_graph(c, &graphs[i], &c->content->graphs[i]);
    free((void *)c->recordings);
    c->recordings = NULL;
  }
  return status ? status : collect_images(c);
}


/* Arrays that grew are the arena's, as those that were read. */
static void collect_adopt(cgl_file_collecting *c) {
  cgl_arena *arena = &c->content->arena;
  void *grown[] = {c->content->modules,   c->content->kernels,
                   c->content->regions,   c->content->generators,
                   c->content->libraries, c->content->params};
#define ADOPT(array)                                                   \
  c->content->array = (void *)cgl_arena_copy(                          \
      arena, c->content->array ? (const char *)c->content->array : "", \
      c->content->n##array * sizeof *c->content->array)
  ADOPT(modules);
  ADOPT(kernels);
  ADOPT(regions);
  ADOPT(generators);
  ADOPT(libraries);
  ADOPT(params);
#undef ADOPT
  for (uint32_t i = 0; i < c->content->ngraphs; i++) {
    cgl_file_graph *g = &c->content->graphs[i];
    void *recordings = g->recordings;
    g->recordings =
        (void *)cgl_arena_copy(arena, recordings ? recordings : "",
                               g->nrecordings * sizeof *g->recordings);
    free(recordings);
  }
  for (size_t i = 0; i < sizeof grown / sizeof *grown; i++)
    free(grown[i]);
}


cgl_status cgl_file_collect(const cgl_save_graph *graphs, size_t n,
                            const cgl_save_desc *desc,
                            cgl_file_content *content, const char *operation) {
  cgl_context *context = graphs[0].graph->object.context;
  const cgl_target target = cgl_module_target(context);
  cgl_file_collecting c = {
      .content = content,
      .targets = {context, desc->devices, desc->ndevices},
      .desc = desc,
      .operation = operation,
  };
  *content = (cgl_file_content){.library = cgl_version(NULL),
                                .device = context->info.device,
                                .format = (uint8_t)target.format,
                                .sm = (uint32_t)target.sm,
                                .multiprocessors =
                                    (uint32_t)context->info.multiprocessors,
                                .abi = CGL_HOST_ABI};
  cgl_status status = collect_all(&c, graphs, n);
  collect_adopt(&c);
  if (!status && content->arena.failed)
    status = cgl_file_no_memory(&c);
  free((void *)c.kernels);
  free((void *)c.modules);
  free((void *)c.params);
  free(c.seconds);
  free((void *)c.recordings);
  return status;
}
