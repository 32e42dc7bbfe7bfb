/* What a content must be before anything of it is used. */
#include "core/file/file.h"

#include <stdlib.h>

typedef struct checking {
  const cgl_file_content *content;
  cgl_image *const *images; /* of each module */
  const cgl_file_graph *graph;
  const cgl_file_op *op;
  uint64_t *nodes; /* of each recording, with those inside it */
  uint8_t *depths;
  bool *inside; /* the recording is a body of a conditional node */
} checking;


/* ---- places ---- */

static bool place_holds(const cgl_file_content *content,
                        const cgl_file_place *place, uint64_t bytes) {
  uint64_t size = 0;
  switch (place->kind) {
  case CGL_FILE_NOTHING:
    return !place->index && !place->offset && !bytes;
  case CGL_FILE_REGION:
    if (place->index >= content->nregions)
      return false;
    size = content->regions[place->index].bytes;
    break;
  case CGL_FILE_GENERATOR:
    if (place->index >= content->ngenerators)
      return false;
    size = 2 * sizeof(uint64_t);
    break;
  case CGL_FILE_LIBRARY:
    if (place->index >= content->nlibraries)
      return false;
    size = content->libraries[place->index].bytes;
    break;
  default:
    return false;
  }
  return place->offset <= size && bytes <= size - place->offset;
}


static bool place_is(const cgl_file_place *a, const cgl_file_place *b) {
  return a->kind == b->kind && a->index == b->index && a->offset == b->offset;
}


/* ---- operations ---- */

/* Whether numbers behind the values are what the operation's rule takes. */
static const char *check_rule(const checking *c) {
  static const char wrong[] = "has numbers that it does not take";
  const cgl_file_op *op = c->op;
  cgl_numbers numbers;
  if (!op->rule)
    return NULL;
  if (op->rule > CGL_FILE_RULES || op->kind != CGL_OP_KERNEL ||
      op->predication || op->handle || op->values.length < 16 + sizeof numbers)
    return wrong;
  memcpy(&numbers,
         (const char *)op->values.data + op->values.length - sizeof numbers,
         sizeof numbers);
  for (int i = 0; i < CGL_NUMBERS; i++)
    if (numbers.types[i] > CGL_TYPE_bfloat16)
      return wrong;
  const cgl_rule *rule = cgl_file_rules[op->rule - 1];
  const size_t own = op->function - CGL_FILE_OWN_1;
  const bool draws = op->function >= CGL_FILE_OWN_1 && own < CGL_FILE_OWN &&
                     cgl_file_owns[own] == &cgl_fill_own;
  const uint32_t threads =
      rule == &cgl_kernel_threads_rule ? op->launch.block[0] : 0;
  const bool takes =
      rule == &cgl_kernel_grid_rule || rule == &cgl_kernel_threads_rule
          ? op->function == CGL_FILE_USER && numbers.threads == threads
          : draws && cgl_fill_takes(rule, op->index, numbers.element);
  return takes ? NULL : wrong;
}


/* Whether the words of a following form with `n` parameters are addresses that
   the file has. */
static bool words_are_places(const cgl_file_op *op, size_t at, size_t n) {
  size_t known = 0;
  for (uint32_t i = 0; i < op->naddresses; i++)
    known += op->addresses[i].at == at + 8 * (known + 1);
  return known == n && at + cgl_following_bytes(n) <= op->values.length;
}


/* Whether the values are those of a user's kernel. */
static const char *check_user_kernel(const checking *c) {
  const cgl_file_op *op = c->op;
  if (op->index >= c->content->nkernels)
    return "names a kernel that is not there";
  const cgl_file_kernel *kernel = &c->content->kernels[op->index];
  const cgl_signature *s =
      cgl_image_find(c->images[kernel->module], kernel->name);
  if (!s)
    return "names a kernel that its image does not have";
  size_t at = 0;
  for (size_t i = 0; i < s->nparameters; i++)
    at = cgl_kernel_next_value(at) + s->parameters[i].size;
  if (op->predication == CGL_PREDICATION_LOOKS)
    at = cgl_kernel_next_value(at) + sizeof(cgl_predicate);
  if (op->follows &&
      !words_are_places(op, cgl_kernel_next_value(at), s->nparameters))
    return "reads a parameter from memory that it does not say";
  if (op->follows)
    at = cgl_kernel_next_value(at) + cgl_following_bytes(s->nparameters);
  if (op->rule)
    at = cgl_kernel_next_value(at) + sizeof(cgl_numbers);
  return at != op->values.length ? "has values that its kernel does not take"
                                 : NULL;
}


/* Whether the values are those of a kernel of the library's. */
static const char *check_own_kernel(const checking *c) {
  const cgl_file_op *op = c->op;
  const size_t own = op->function - CGL_FILE_OWN_1;
  size_t count;
  unsigned addresses;
  if (own >= CGL_FILE_OWN || op->index >= cgl_file_owns[own]->count ||
      op->module >= c->content->nmodules ||
      c->content->modules[op->module].own != own + 1 ||
      cgl_file_owns[own]->kernels[c->content->modules[op->module].part].part !=
          cgl_file_owns[own]->kernels[op->index].part)
    return "names a kernel that is not there";
  cgl_file_own_values(own, op->index, &count, &addresses);
  if (op->kind != CGL_OP_KERNEL)
    return NULL;
  size_t at = 16 * count;
  if (op->predication == CGL_PREDICATION_LOOKS)
    at += sizeof(cgl_predicate);
  if (op->rule)
    at = cgl_kernel_next_value(at) + sizeof(cgl_numbers);
  return at != op->values.length ? "has values that its kernel does not take"
                                 : NULL;
}


/* The kernel of a copy or a fill whose element was checked; SIZE_MAX: its
   elements take none. */
static size_t element_kernel(const cgl_file_op *op) {
  cgl_element element;
  if (op->kind == CGL_OP_MEMCPY)
    return 0;
  memcpy(&element, op->values.data, sizeof element);
  const size_t kernel =
      cgl_copy_fill_kernel((cgl_type)element.type, element.follows);
  return kernel ? kernel : SIZE_MAX;
}


static const char *check_function(const checking *c) {
  const cgl_file_op *op = c->op;
  const uint32_t *grid = op->launch.grid, *block = op->launch.block;
  if (op->function == CGL_FILE_NO_FUNCTION)
    return op->kind == CGL_OP_KERNEL ? "has no kernel" : NULL;
  if (op->kind != CGL_OP_KERNEL &&
      (op->function != CGL_FILE_OWN_1 || op->index != element_kernel(op) ||
       op->second))
    return "names a kernel that it does not take";
  if (op->kind == CGL_OP_KERNEL &&
      (!grid[0] || !grid[1] || !grid[2] || !block[0] || !block[1] || !block[2]))
    return "has an empty grid";
  if (op->follows && (op->kind != CGL_OP_KERNEL || op->predication ||
                      op->function != CGL_FILE_USER))
    return "has a form that its kind cannot have";
  if (op->second != (op->follows || op->predication == CGL_PREDICATION_LOOKS))
    return "has a form that it does not say";
  return op->function == CGL_FILE_USER ? check_user_kernel(c)
                                       : check_own_kernel(c);
}


/* A copy or a fill: its element is what its ranges say. */
static const char *check_element(const checking *c) {
  static const char wrong[] = "moves other memory than it says";
  const cgl_file_op *op = c->op;
  cgl_element element;
  if (op->values.length != sizeof element)
    return wrong;
  memcpy(&element, op->values.data, sizeof element);
  const bool follows = element.follows;
  const uint32_t n = op->kind == CGL_OP_MEMCPY || follows ? 2 : 1;
  if (op->nranges != n || op->naddresses != n || element.follows > 1 ||
      (follows && (op->kind != CGL_OP_MEMSET || !op->function)))
    return wrong;
  if (element.pinned || element.type >= CGL_TYPE_COUNT || !element.count)
    return wrong;
  if (element.count % cgl_type_bytes((cgl_type)element.type))
    return wrong;
  for (uint32_t i = 0; i < n; i++) {
    const cgl_file_range *r = &op->ranges[i];
    const uint64_t bytes =
        follows && i ? cgl_type_bytes((cgl_type)element.type) : element.count;
    if (r->argument != i || r->write != !i || r->bytes != bytes ||
        op->addresses[i].at != 8 * i ||
        !place_is(&op->addresses[i].place, &r->place))
      return wrong;
  }
  return NULL;
}


/* The node of a branch or a loop follows the kernel that sets its handle. */
static const char *check_handle(const checking *c,
                                const cgl_file_recording *recording,
                                uint32_t index) {
  static const char wrong[] = "sets no handle of a conditional node";
  const cgl_file_op *op = c->op;
  const bool next = op->handle == CGL_HANDLE_NEXT;
  if (op->handle > CGL_HANDLE_AROUND)
    return wrong;
  if (op->handle &&
      (op->kind != CGL_OP_KERNEL || op->function != CGL_FILE_OWN_1 + 1 ||
       op->index != CGL_FILL_set_conditional))
    return wrong;
  if (op->handle == CGL_HANDLE_AROUND &&
      !c->inside[recording - c->graph->recordings])
    return wrong;
  const bool node = index + 1 < recording->nops &&
                    recording->ops[index + 1].kind == CGL_OP_CONDITIONAL;
  return next != node ? wrong : NULL;
}


static const char *check_bodies(const checking *c) {
  static const char wrong[] = "has bodies that its kind does not have";
  const cgl_file_op *op = c->op;
  CUgraphConditionalNodeType type;
  if (op->kind == CGL_OP_GRAPH)
    return op->nbodies != 1 ? wrong : NULL;
  if (op->kind != CGL_OP_CONDITIONAL)
    return op->nbodies ? wrong : NULL;
  if (op->values.length != sizeof type)
    return wrong;
  memcpy(&type, op->values.data, sizeof type);
  const uint32_t most = type == CU_GRAPH_COND_TYPE_IF       ? 2
                        : type == CU_GRAPH_COND_TYPE_WHILE  ? 1
                        : type == CU_GRAPH_COND_TYPE_SWITCH ? 1 << 16
                                                            : 0;
  return !op->nbodies || op->nbodies > most ? wrong : NULL;
}


/* Bodies stand before what they are in, so nothing is inside itself. */
static const char *check_depth(const checking *c, uint32_t recording) {
  const cgl_file_op *op = c->op;
  for (uint32_t i = 0; i < op->nbodies; i++) {
    const uint32_t body = op->bodies[i];
    if (body >= recording)
      return "has a body that does not stand before it";
    if (c->depths[recording] < c->depths[body] + 1)
      c->depths[recording] = (uint8_t)(c->depths[body] + 1);
    c->nodes[recording] += c->nodes[body];
    if (c->depths[recording] > CGL_FILE_DEPTH)
      return "is in more graphs than a graph may be in";
  }
  return ++c->nodes[recording] > CGL_FILE_NODES
             ? "is one node more than a graph may have"
             : NULL;
}


static const char *check_memory(const checking *c) {
  const cgl_file_op *op = c->op;
  if (op->nranges > CGL_RECORD_MOST)
    return "touches more memory than an operation can";
  for (uint32_t i = 0; i < op->nranges; i++)
    if (op->ranges[i].argument > UINT16_MAX ||
        (op->ranges[i].write && op->ranges[i].place.kind == CGL_FILE_LIBRARY) ||
        !place_holds(c->content, &op->ranges[i].place, op->ranges[i].bytes))
      return "touches memory that is not there";
  for (uint32_t i = 0; i < op->naddresses; i++)
    if (op->values.length < 8 || op->addresses[i].at > op->values.length - 8 ||
        op->addresses[i].at % 8 ||
        !place_holds(c->content, &op->addresses[i].place, 0))
      return "has an address of memory that is not there";
  return NULL;
}


/* Whether the bytes are those of a number among a user's kernel's values. */
static bool use_is_argument(const checking *c, const cgl_file_use *use,
                            uint64_t bytes) {
  const cgl_file_kernel *kernel = &c->content->kernels[c->op->index];
  const cgl_signature *s =
      cgl_image_find(c->images[kernel->module], kernel->name);
  size_t at = 0;
  if (use->argument >= s->nparameters)
    return false;
  for (uint16_t i = 0; i < use->argument; i++)
    at = cgl_kernel_next_value(at) + s->parameters[i].size;
  const cgl_parameter *p = &s->parameters[use->argument];
  for (size_t i = use->argument; use->follows && i < s->nparameters; i++)
    at = cgl_kernel_next_value(at) + s->parameters[i].size;
  at = cgl_kernel_next_value(at);
  if (use->follows)
    at += 8 * (1 + (size_t)use->argument);
  return !p->pointer && p->kind != CGL_KIND_PHILOX && use->repeats == 1 &&
         use->offset == at && bytes == p->size &&
         (!use->follows || (c->op->follows && bytes <= CGL_FOLLOWING_MOST));
}


/* The element of a fill, or the second value of a kernel that fills. */
static bool use_is_element(const cgl_file_op *op, const cgl_file_use *use,
                           uint64_t bytes) {
  cgl_element element;
  if (op->kind == CGL_OP_KERNEL)
    return op->function == CGL_FILE_OWN_1 &&
           !cgl_copy_kernel_reads(op->index) && use->offset == 16 &&
           bytes * use->repeats == 8 && !use->follows;
  memcpy(&element, op->values.data, sizeof element);
  return op->kind == CGL_OP_MEMSET && element.follows == use->follows &&
         use->offset == offsetof(cgl_element, what) && use->repeats == 1 &&
         bytes == cgl_type_bytes((cgl_type)element.type);
}


/* One of the numbers that a rule has others follow from. */
static bool use_is_number(const cgl_file_op *op, const cgl_file_use *use,
                          const cgl_file_param *param) {
  const size_t numbers = op->values.length - sizeof(cgl_numbers);
  const size_t at = use->offset - numbers - offsetof(cgl_numbers, raw);
  return op->rule && use->offset >= numbers + offsetof(cgl_numbers, raw) &&
         at % 8 == 0 && at / 8 < CGL_NUMBERS && use->repeats == 1 &&
         !use->follows &&
         param->value.length == cgl_type_bytes((cgl_type)param->type) &&
         param->type == *((const uint8_t *)op->values.data + numbers + at / 8);
}


/* Parameters are numbers: no part of an address, or of what is between. */
static const char *check_uses(const checking *c) {
  const cgl_file_op *op = c->op;
  for (uint32_t i = 0; i < op->nuses; i++) {
    const cgl_file_use *use = &op->uses[i];
    const uint64_t bytes = use->param < c->content->nparams
                               ? c->content->params[use->param].value.length
                               : 0;
    if (!bytes || (op->kind != CGL_OP_KERNEL && op->kind != CGL_OP_MEMSET) ||
        !(use_is_number(op, use, &c->content->params[use->param]) ||
          (op->function == CGL_FILE_USER ? use_is_argument(c, use, bytes)
                                         : use_is_element(op, use, bytes))))
      return "has a parameter that does not fit";
  }
  return NULL;
}


static const char *check_op(checking *c, uint32_t recording, uint32_t index) {
  const cgl_file_recording *r = &c->graph->recordings[recording];
  const cgl_file_op *op = c->op = &r->ops[index];
  const char *wrong = NULL;
  if (op->kind >= CGL_OP_COUNT || op->kind == CGL_OP_FOREIGN ||
      op->kind == CGL_OP_RECORD || op->kind == CGL_OP_WAIT ||
      op->kind == CGL_OP_CALL)
    return "is of no kind that a file has";
  if (op->predication > CGL_PREDICATION_WRITES ||
      (op->predication && op->kind != CGL_OP_KERNEL &&
       op->kind != CGL_OP_CONDITIONAL))
    return "is predicated as its kind cannot be";
  for (uint32_t i = 0; i < op->nedges; i++)
    if (op->edges[i] >= index)
      return "depends on an operation that does not stand before it";
  wrong = check_memory(c);
  if (!wrong && (op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET))
    wrong = check_element(c);
  if (!wrong)
    wrong = check_bodies(c);
  if (!wrong)
    wrong = check_rule(c);
  if (!wrong && (op->kind == CGL_OP_KERNEL || op->function))
    wrong = check_function(c);
  if (!wrong)
    wrong = check_uses(c);
  if (!wrong)
    wrong = check_handle(c, r, index);
  return wrong ? wrong : check_depth(c, recording);
}


/* ---- a graph ---- */

static const char *check_name(const checking *c, const cgl_file_name *name) {
  uint64_t bytes =
      name->type < CGL_TYPE_COUNT ? cgl_type_bytes((cgl_type)name->type) : 0;
  bool over = !bytes || name->ndims < 1 || name->ndims > CGL_MAX_DIMS;
  for (uint32_t i = 0; i < name->ndims && !over; i++)
    over = __builtin_mul_overflow(bytes, name->shape[i], &bytes);
  return over || !bytes || name->place.kind != CGL_FILE_REGION ||
                 !place_holds(c->content, &name->place, bytes)
             ? "an input or output is memory that is not there"
             : NULL;
}


static const char *check_graph(checking *c) {
  const cgl_file_graph *g = c->graph;
  const char *wrong = g->nrecordings ? NULL : "a graph has no operations";
  for (uint32_t r = 0; r < g->nrecordings; r++)
    for (uint32_t i = 0; i < g->recordings[r].nops; i++) {
      const cgl_file_op *op = &g->recordings[r].ops[i];
      for (uint32_t b = 0; b < op->nbodies; b++)
        if (op->kind == CGL_OP_CONDITIONAL && op->bodies[b] < g->nrecordings)
          c->inside[op->bodies[b]] = true;
    }
  for (uint32_t r = 0; r < g->nrecordings && !wrong; r++)
    for (uint32_t i = 0; i < g->recordings[r].nops && !wrong; i++)
      wrong = check_op(c, r, i);
  if (wrong)
    return wrong;
  c->op = NULL;
  for (uint32_t i = 0; i < g->ndraws; i++)
    if (g->draws[i].generator >= c->content->ngenerators)
      return "a graph draws from a generator that is not there";
  for (uint32_t i = 0; i < g->nnames && !wrong; i++)
    wrong = check_name(c, &g->names[i]);
  return wrong;
}


static int names_compare(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}


/* Whether two graphs have one name. */
static bool names_repeat(const cgl_file_content *content, cgl_arena *arena) {
  const uint32_t n = content->ngraphs;
  const char **names = cgl_arena_alloc(arena, (n + 1) * sizeof(char *));
  bool repeat = !names;
  for (uint32_t i = 0; i < n && names; i++)
    names[i] = content->graphs[i].name;
  if (names)
    qsort((void *)names, n, sizeof *names, names_compare);
  for (uint32_t i = 1; i < n && !repeat; i++)
    repeat = !strcmp(names[i - 1], names[i]);
  return repeat;
}


/* ---- the rest ---- */

static const char *check_tables(const cgl_file_content *content) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < content->nmodules; i++) {
    const cgl_file_module *m = &content->modules[i];
    if (m->own > CGL_FILE_OWN ||
        (m->own && m->part >= cgl_file_owns[m->own - 1]->count))
      return "a module is none that this version has";
  }
  for (uint32_t i = 0; i < content->nkernels; i++)
    if (content->kernels[i].module >= content->nmodules ||
        content->modules[content->kernels[i].module].own)
      return "a kernel is of a module that is not there";
  for (uint32_t i = 0; i < content->nparams; i++) {
    const cgl_file_param *p = &content->params[i];
    if (p->type >= CGL_TYPE_COUNT || !p->value.length ||
        p->value.length > CGL_PARAM_MOST ||
        p->value.length % cgl_type_bytes((cgl_type)p->type))
      return "a parameter has another size than its type";
  }
  for (uint32_t i = 0; i < content->nregions; i++) {
    const cgl_file_region *r = &content->regions[i];
    if (!r->bytes || r->skew >= CGL_FILE_ALIGN ||
        r->bytes > (UINT64_MAX >> 16) - total ||
        (r->data.length && r->data.length != r->bytes))
      return "a region has another size than its bytes";
    total += r->bytes + 2 * (uint64_t)CGL_FILE_ALIGN;
  }
  return NULL;
}


const char *cgl_file_check(const cgl_file_content *content,
                           cgl_image *const *images,
                           const cgl_file_op **where) {
  const char *wrong = check_tables(content);
  cgl_arena names = {NULL, false};
  *where = NULL;
  if (!wrong && names_repeat(content, &names))
    wrong = "two graphs have one name";
  cgl_arena_free(&names);
  for (uint32_t i = 0; i < content->ngraphs && !wrong && images; i++) {
    const cgl_file_graph *g = &content->graphs[i];
    cgl_arena arena = {NULL, false};
    checking c = {.content = content, .images = images, .graph = g};
    c.nodes = cgl_arena_alloc(&arena, (g->nrecordings + 1) * sizeof *c.nodes);
    c.depths = cgl_arena_alloc(&arena, g->nrecordings + 1);
    c.inside = cgl_arena_alloc(&arena, (g->nrecordings + 1) * sizeof *c.inside);
    wrong = arena.failed ? "there is no memory to check it" : check_graph(&c);
    *where = wrong ? c.op : NULL;
    cgl_arena_free(&arena);
  }
  return wrong;
}
