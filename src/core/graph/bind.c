/* Inputs: memory of a captured graph that is exchanged by name.
   Idea: a range that a capture notes of an input has the input's number.  A
   bind moves the ranges of that number in the recording and its bodies; nodes
   take it up at the next replay, as they do with parameters (params.c).
   Invariants: ranges of an input lie in what is bound to it in their recording,
   as far from its begin as they lay in the input; the first inputs of the list
   are those of the recording, by number. */
#include "core/graph/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char binding[] = "graph:bind";

typedef struct input {
  cgl_buffer *buffer; /* retained: that was captured */
  cgl_buffer *bound;  /* retained: in its place; NULL: nothing was bound */
  size_t places;      /* where the places of the next one begin */
  bool bodies;        /* some of its ranges are in bodies */
  bool writes;        /* they may be written to */
} input;


struct cgl_graph_inputs {
  input *list;
  uint32_t *places; /* operations of the graph's own recording that had ranges
                       of an input at first: sorted by input, each once */
  size_t n, nplaces;
  bool ordered; /* by the bytes that nodes use */
  bool follows; /* parameters follow buffers */
};

/* A bind of one input. */
typedef struct change {
  size_t index; /* in the list */
  cgl_buffer *to;
} change;


/* ---- the list ---- */

static size_t inputs_count(const cgl_recording *recording) {
  const cgl_recording *body;
  size_t n = 0;
  while (cgl_record_input_at(recording, n + 1))
    n++;
  for (size_t i = 0; (body = cgl_record_body(recording, i)); i++)
    n += inputs_count(body);
  return n;
}


static void inputs_add(cgl_graph_inputs *all, const cgl_recording *recording,
                       bool body) {
  const cgl_record_input *from;
  const cgl_recording *inner;
  for (size_t i = 1; (from = cgl_record_input_at(recording, i)); i++) {
    size_t k = 0;
    while (k < all->n && &all->list[k].buffer->object != from->input)
      k++;
    input *to = &all->list[k];
    if (k == all->n) {
      all->n++;
      *to = (input){.buffer = cgl_buffer_retain((cgl_buffer *)from->input)};
      if (from->bound)
        to->bound = cgl_buffer_retain((cgl_buffer *)from->bound);
    }
    to->bodies |= body;
    to->writes |= body;
  }
  for (size_t i = 0; (inner = cgl_record_body(recording, i)); i++)
    inputs_add(all, inner, true);
}


/* Whether the bytes that nodes use decided on edges: a predicated kernel looks
   at some, and a child graph that forks may have been made in data order. */
static bool recording_is_ordered(const cgl_recording *recording) {
  bool ordered = false;
  for (size_t i = 0; i < cgl_record_count(recording) && !ordered; i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    const cgl_recording *const *bodies = cgl_record_bodies(recording, op);
    ordered = op->predication != CGL_PREDICATION_NONE ||
              (op->kind == CGL_OP_GRAPH && !cgl_record_is_line(bodies[0]));
    for (uint32_t k = 0; k < op->nbodies && !ordered; k++)
      ordered = recording_is_ordered(bodies[k]);
  }
  return ordered;
}


static bool op_follows(const cgl_recording *recording, const cgl_op *op) {
  return op->follows || (op->kind == CGL_OP_MEMSET &&
                         cgl_build_element(recording, op)->follows);
}


static bool recording_follows(const cgl_recording *recording) {
  const cgl_recording *body;
  bool follows = false;
  for (size_t i = 0; i < cgl_record_count(recording) && !follows; i++)
    follows = op_follows(recording, cgl_record_op(recording, i));
  for (size_t i = 0; (body = cgl_record_body(recording, i)) && !follows; i++)
    follows = recording_follows(body);
  return follows;
}


/* Visits the ranges of inputs in the graph's own recording: counts them, and
   then lists them, where the counts have become begins. */
static void inputs_visit(cgl_graph_inputs *all, const cgl_recording *recording,
                         bool list) {
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    const cgl_range *ranges = cgl_record_ranges(recording, op);
    for (uint32_t k = 0; k < op->nranges; k++) {
      if (!ranges[k].input)
        continue;
      input *in = &all->list[ranges[k].input - 1];
      in->writes |= ranges[k].write;
      uint32_t first = 0;
      while (ranges[first].input != ranges[k].input)
        first++;
      if (first < k)
        continue; /* moved with the operation's first range of the input */
      if (list)
        all->places[in->places] = (uint32_t)i;
      in->places++;
      all->nplaces += !list;
    }
  }
}


cgl_status cgl_graph_list_inputs(cgl_graph *graph, const char *operation) {
  const cgl_recording *recording = graph->recording;
  const size_t n = inputs_count(recording);
  if (!n)
    return CGL_OK;
  cgl_graph_inputs *all = calloc(1, sizeof *all);
  graph->inputs = all;
  if (all)
    all->list = calloc(n, sizeof *all->list);
  if (all && all->list) {
    all->ordered = graph->options.order == CGL_ORDER_DATA || graph->bound ||
                   recording_is_ordered(recording);
    all->follows = recording_follows(recording);
    inputs_add(all, recording, false);
    inputs_visit(all, recording, false);
    all->places = malloc((all->nplaces + 1) * sizeof *all->places);
  }
  if (!all || !all->places)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                    "no memory to list the graph's inputs");
  for (size_t i = 0, begin = 0; i < all->n; i++) {
    const size_t count = all->list[i].places;
    all->list[i].places = begin;
    begin += count;
  }
  inputs_visit(all, recording, true);
  return CGL_OK;
}


void cgl_graph_free_inputs(cgl_graph *graph) {
  cgl_graph_inputs *all = graph->inputs;
  for (size_t i = 0; all && i < all->n; i++) {
    cgl_buffer_release(all->list[i].buffer);
    cgl_buffer_release(all->list[i].bound);
  }
  if (all) {
    free(all->list);
    free(all->places);
  }
  free(all);
  graph->inputs = NULL;
}


static size_t input_first(const cgl_graph_inputs *all, size_t index) {
  return index ? all->list[index - 1].places : 0;
}


const char *cgl_graph_input_name(const cgl_graph *graph, size_t index) {
  const cgl_graph_inputs *all = graph->inputs;
  return all && index < all->n ? all->list[index].buffer->input : NULL;
}


/* How many inputs have the name; *index: the first. */
static size_t inputs_find(const cgl_graph *graph, const char *name,
                          size_t *index) {
  const cgl_graph_inputs *all = graph->inputs;
  size_t found = 0;
  for (size_t i = all ? all->n : 0; i-- > 0;)
    if (!strcmp(all->list[i].buffer->input, name)) {
      *index = i;
      found++;
    }
  return found;
}


cgl_buffer *cgl_graph_input(const cgl_graph *graph, const char *name) {
  size_t index;
  if (!inputs_find(graph, name, &index))
    return NULL;
  const input *in = &graph->inputs->list[index];
  return in->bound ? in->bound : in->buffer;
}


/* ---- what may be bound ---- */

static cgl_status bind_find(const cgl_graph *graph, const char *name,
                            size_t *index) {
  const size_t found = inputs_find(graph, name, index);
  if (found == 1)
    return CGL_OK;
  if (found) {
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, binding,
             "%zu inputs of the graph have the name \"%s\"", found, name);
    return cgl_fail_hint("give each input of a graph a name of its own");
  }
  cgl_fail(CGL_ERROR_NOT_FOUND, binding,
           "the graph has no input \"%s\" among its %zu", name,
           graph->inputs ? graph->inputs->n : 0);
  return cgl_fail_hint("an input is made before the capture that uses it; one "
                       "of a loaded graph has the name that graph:save was "
                       "given in `inputs`");
}


static void shape_text(const cgl_buffer *buffer, char text[160]) {
  int at = 0;
  for (int i = 0; i < buffer->ndims; i++)
    at += snprintf(text + at, 160 - (size_t)at, "%s%zu", i ? " x " : "",
                   buffer->shape[i]);
  snprintf(text + at, 160 - (size_t)at, " %s", cgl_type_name(buffer->type));
}


static cgl_status bind_check_buffer(const cgl_graph *graph, const input *in,
                                    const cgl_buffer *to) {
  cgl_status status =
      cgl_object_check_device(&graph->object, &to->object, binding);
  if (!status)
    status = cgl_buffer_check(to, binding);
  if (status)
    return status;
  const cgl_buffer *from = in->buffer, *root = cgl_buffer_root(to);
  if (to->type != from->type || to->ndims != from->ndims ||
      memcmp(to->shape, from->shape, (size_t)to->ndims * sizeof *to->shape) !=
          0) {
    char wanted[160], got[160];
    shape_text(from, wanted);
    shape_text(to, got);
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, binding,
             "the input \"%s\" is %s, and the buffer %s", from->input, wanted,
             got);
    return cgl_fail_hint("bind a buffer of the same type and shape, a view of "
                         "another perhaps");
  }
  if (!cgl_buffer_is_planned(root, graph->pool) &&
      !(root->content && in->bodies))
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, binding,
           "a capture allocated the memory for the input \"%s\": where it is "
           "used was planned by the order of that capture",
           from->input);
  return cgl_fail_hint("make a buffer that is to be bound outside captures");
}


/* The ranges of an input of the operation can move. */
static cgl_status op_check(const cgl_recording *recording, const cgl_op *op,
                           uint16_t number) {
  const cgl_range *r = cgl_record_ranges(recording, op);
  for (uint32_t k = 0; k < op->nranges; k++) {
    if (r[k].input != number || !r[k].bytes ||
        cgl_build_find_address(recording, op, &r[k]) != SIZE_MAX)
      continue;
    cgl_fail(CGL_ERROR_INVALID_ARGUMENT, binding,
             "the %s %s at %s uses the input, and its memory cannot be changed",
             cgl_record_words[op->kind], op->name, cgl_site_text(op->site));
    return cgl_fail_hint("capture again, or copy to the input");
  }
  return CGL_OK;
}


/* A file's input may be beside what ranges begin with. */
static cgl_status input_check_mixed(const cgl_recording *recording,
                                    uint16_t number) {
  const cgl_record_input *in = cgl_record_input_at(recording, number);
  if (!number || !in->mixed)
    return CGL_OK;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, binding,
           "the graph uses memory of the input \"%s\" together with memory "
           "beside it, or as another input, too",
           ((const cgl_buffer *)in->input)->input);
  return cgl_fail_hint("save the graph with inputs that are whole buffers");
}


static cgl_status body_check(const cgl_recording *body,
                             const cgl_object *object) {
  const uint16_t number = cgl_record_find_input(body, object);
  const cgl_recording *inner;
  cgl_status status = input_check_mixed(body, number);
  for (size_t i = 0; number && i < cgl_record_count(body) && !status; i++)
    status = op_check(body, cgl_record_op(body, i), number);
  for (size_t i = 0; (inner = cgl_record_body(body, i)) && !status; i++)
    status = body_check(inner, object);
  return status;
}


static cgl_status input_check(const cgl_graph *graph, size_t index) {
  const cgl_graph_inputs *all = graph->inputs;
  const cgl_recording *recording = graph->recording, *body;
  const input *in = &all->list[index];
  const uint16_t number = cgl_record_find_input(recording, &in->buffer->object);
  cgl_status status = input_check_mixed(recording, number);
  for (size_t i = input_first(all, index); i < in->places && !status; i++)
    status =
        op_check(recording, cgl_record_op(recording, all->places[i]), number);
  for (size_t i = 0;
       in->bodies && (body = cgl_record_body(recording, i)) && !status; i++)
    status = body_check(body, &in->buffer->object);
  return status;
}


/* ---- order ---- */

/* Where the changes have a range of the recording, and which change keeps it
   where it was beside the input's others; a child graph may have been captured
   with another buffer bound. */
static const change *range_change(const cgl_recording *recording,
                                  const cgl_graph_inputs *all,
                                  const cgl_range *range, const change *changes,
                                  size_t n, CUdeviceptr *address) {
  *address = range->address;
  if (!range->input)
    return NULL;
  const cgl_record_input *in = cgl_record_input_at(recording, range->input);
  for (size_t i = 0; i < n; i++) {
    const input *to = &all->list[changes[i].index];
    const cgl_buffer *now = to->bound ? to->bound : to->buffer;
    const cgl_object *at = in->bound ? in->bound : in->input;
    const CUdeviceptr from = ((const cgl_buffer *)at)->address;
    if (&to->buffer->object != in->input)
      continue;
    *address += changes[i].to->address - from;
    return from == now->address ? &changes[i] : NULL;
  }
  return NULL;
}


/* In a graph that bytes order, what is bound meets no memory of other nodes
   that they, or the input's, write. */
static cgl_status bind_check_order(const cgl_recording *recording,
                                   const cgl_graph_inputs *all,
                                   const change *changes, size_t n) {
  const cgl_recording *body;
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    for (uint32_t k = 0; k < op->nranges; k++) {
      cgl_range range = cgl_record_ranges(recording, op)[k];
      const change *own =
          range_change(recording, all, &range, changes, n, &range.address);
      for (size_t c = 0; c < n; c++) {
        const input *in = &all->list[changes[c].index];
        if (&changes[c] == own ||
            !cgl_record_ranges_touch(&range, 1, changes[c].to->address,
                                     cgl_buffer_bytes(changes[c].to),
                                     !in->writes))
          continue;
        cgl_fail(CGL_ERROR_INVALID_ARGUMENT, binding,
                 "the %s %s at %s uses the memory for the input \"%s\" as "
                 "something else, and no edge orders the two",
                 cgl_record_words[op->kind], op->name, cgl_site_text(op->site),
                 in->buffer->input);
        return cgl_fail_hint("bind memory that nothing else in the graph uses");
      }
    }
  }
  for (size_t i = 0; (body = cgl_record_body(recording, i)) && !status; i++)
    status = bind_check_order(body, all, changes, n);
  return status;
}


/* ---- what parameters follow ---- */

/* A range as the changes have it. */
static cgl_range range_after(const cgl_recording *recording,
                             const cgl_graph_inputs *all, const cgl_op *op,
                             uint32_t k, const change *changes, size_t n) {
  cgl_range range = cgl_record_ranges(recording, op)[k];
  range_change(recording, all, &range, changes, n, &range.address);
  return range;
}


/* Range `k` of the operation, which a parameter follows, stays where it can be
   read whole, and where the operation does not write while it is read: what it
   may write to was looked at when it was captured. */
static const char *followed_refusal(const cgl_recording *recording,
                                    const cgl_graph_inputs *all,
                                    const cgl_op *op, uint32_t k,
                                    const change *changes, size_t n) {
  const cgl_range *before = cgl_record_ranges(recording, op);
  const cgl_range now = range_after(recording, all, op, k, changes, n);
  const uint16_t first = op->kind == CGL_OP_KERNEL ? CGL_ARGUMENT_FOLLOWED : 1;
  if (before[k].argument < first || !before[k].bytes)
    return NULL;
  if (now.address % cgl_following_alignment(now.bytes))
    return "is read there as a whole, and the address is no multiple of what "
           "that takes";
  for (uint32_t i = 0; i < op->nranges; i++) {
    const cgl_range other = range_after(recording, all, op, i, changes, n);
    if (other.write &&
        cgl_record_ranges_touch(&other, 1, now.address, now.bytes, false) &&
        !cgl_record_ranges_touch(&before[i], 1, before[k].address,
                                 before[k].bytes, false))
      return "would be written to while it is read";
  }
  return NULL;
}


static cgl_status bind_check_followed(const cgl_recording *recording,
                                      const cgl_graph_inputs *all,
                                      const change *changes, size_t n) {
  const cgl_recording *body;
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    for (uint32_t k = 0; k < op->nranges && op_follows(recording, op); k++) {
      const char *why = followed_refusal(recording, all, op, k, changes, n);
      if (!why)
        continue;
      cgl_fail(CGL_ERROR_INVALID_ARGUMENT, binding,
               "a parameter of the %s %s at %s follows a buffer that %s",
               cgl_record_words[op->kind], op->name, cgl_site_text(op->site),
               why);
      return cgl_fail_hint("bind other memory");
    }
  }
  for (size_t i = 0; (body = cgl_record_body(recording, i)) && !status; i++)
    status = bind_check_followed(body, all, changes, n);
  return status;
}


/* ---- moving ---- */

/* Room for what is noted, in the recording and the bodies that are to change,
   which are its own from then on. */
static bool recording_prepare(cgl_recording *recording, const input *in) {
  const cgl_room room = {.kept = 1};
  const cgl_recording *body;
  bool made = !cgl_issue_reserve(recording, &room, binding);
  for (size_t i = 0;
       in->bodies && made && (body = cgl_record_body(recording, i)); i++) {
    cgl_recording *own = cgl_record_own_body(recording, i);
    made = own && recording_prepare(own, in);
  }
  return made;
}


/* Moves the ranges of the input in an operation; true: the node changes. */
static bool op_move(cgl_recording *recording, size_t index, uint16_t number,
                    const cgl_buffer *from, const cgl_buffer *to) {
  const cgl_op *op = cgl_record_op(recording, index);
  cgl_content *content = cgl_buffer_root(to)->content;
  bool moved = false;
  for (uint32_t k = 0; k < op->nranges; k++) {
    const cgl_range *r = &cgl_record_ranges(recording, op)[k];
    if (r->input == number && r->bytes)
      moved |= cgl_record_move_range(recording, index, k,
                                     cgl_build_find_address(recording, op, r),
                                     r->address - from->address + to->address,
                                     content ? &content->allocation : NULL);
  }
  return moved;
}


/* What a recording has in the place of an input. */
static const cgl_buffer *input_now(const cgl_recording *recording,
                                   uint16_t number) {
  const cgl_record_input *in = cgl_record_input_at(recording, number);
  return (const cgl_buffer *)(in->bound ? in->bound : in->input);
}


/* Of a body: whoever refreshes its nodes sets all that vary. */
static bool body_move(cgl_recording *body, const cgl_object *object,
                      cgl_buffer *to) {
  const uint16_t number = cgl_record_find_input(body, object);
  bool moved = false;
  for (size_t i = 0; number && i < cgl_record_count(body); i++)
    if (op_move(body, i, number, input_now(body, number), to)) {
      cgl_record_refreshed(body, i);
      cgl_record_renewed(body, i);
      moved = true;
    }
  if (number)
    cgl_record_bind(body, number, &to->object);
  for (size_t i = 0; cgl_record_body(body, i); i++)
    moved |= body_move(cgl_record_own_body(body, i), object, to);
  return moved;
}


static void bodies_move(cgl_graph *graph, const cgl_object *object,
                        cgl_buffer *to) {
  cgl_recording *recording = graph->recording;
  size_t n = 0;
  while (cgl_record_body(recording, n))
    if (!body_move(cgl_record_own_body(recording, n++), object, to))
      continue;
    else
      for (size_t i = 0; i < cgl_record_count(recording); i++) {
        const cgl_op *op = cgl_record_op(recording, i);
        if (op->body && n >= op->body && n < op->body + op->nbodies)
          cgl_graph_lacks_bodies(graph, i);
      }
}


static void input_move(cgl_graph *graph, size_t index, cgl_buffer *to) {
  cgl_graph_inputs *all = graph->inputs;
  cgl_recording *recording = graph->recording;
  input *in = &all->list[index];
  const cgl_object *object = &in->buffer->object;
  const uint16_t number = cgl_record_find_input(recording, object);
  cgl_buffer *root = cgl_buffer_root(to), *before = in->bound;
  atomic_store(&root->wide, true);
  uint64_t none = 0;
  atomic_compare_exchange_strong(&root->object.retained_by, &none, UINT64_MAX);
  for (size_t i = input_first(all, index); i < in->places; i++) {
    const size_t op = all->places[i];
    const bool due = cgl_record_op(recording, op)->due;
    if (op_move(recording, op, number, input_now(recording, number), to) &&
        !due)
      cgl_graph_lacks_values(graph, op);
  }
  if (number)
    cgl_record_bind(recording, number, &to->object);
  if (in->bodies)
    bodies_move(graph, object, to);
  in->bound = cgl_buffer_retain(to);
  cgl_buffer_release(before);
  if (root->content && root->content->sharing != &graph->pool->sharing)
    graph->grouped = true;
}


/* ---- binds ---- */

static cgl_status bind_read(const cgl_graph *graph,
                            const cgl_named_buffer *inputs, size_t n,
                            change *changes) {
  cgl_status status = CGL_OK;
  for (size_t i = 0; i < n && !status; i++) {
    status = bind_find(graph, inputs[i].name, &changes[i].index);
    if (status)
      break;
    changes[i].to = inputs[i].buffer;
    for (size_t k = 0; k < i; k++)
      if (changes[k].index == changes[i].index)
        return cgl_fail(CGL_ERROR_INVALID_ARGUMENT, binding,
                        "the input \"%s\" is given twice", inputs[i].name);
    const size_t index = changes[i].index;
    status =
        bind_check_buffer(graph, &graph->inputs->list[index], inputs[i].buffer);
    if (!status)
      status = input_check(graph, index);
  }
  if (!status && n && graph->inputs->ordered)
    status = bind_check_order(graph->recording, graph->inputs, changes, n);
  if (!status && n && graph->inputs->follows)
    status = bind_check_followed(graph->recording, graph->inputs, changes, n);
  return status;
}


cgl_status cgl_graph_bind(cgl_graph *graph, const cgl_named_buffer *inputs,
                          size_t n) {
  change few[8], *changes = few;
  cgl_status status = cgl_graph_check_captured(graph, binding);
  if (!status)
    status = cgl_context_enter(graph->object.context, binding);
  if (!status && n > sizeof few / sizeof *few)
    changes = malloc(n * sizeof *changes);
  if (!status && changes)
    status = bind_read(graph, inputs, n, changes);
  bool made = changes;
  if (!status)
    made = made && cgl_record_own(&graph->recording);
  for (size_t i = 0; i < n && made && !status; i++)
    made = recording_prepare(graph->recording,
                             &graph->inputs->list[changes[i].index]);
  if (!status && !made)
    status = cgl_fail(CGL_ERROR_NO_MEMORY, binding,
                      "no memory to note what the graph uses");
  for (size_t i = 0; i < n && !status; i++)
    input_move(graph, changes[i].index, changes[i].to);
  if (!status) {
    graph->inputs_seen = 0;
    graph->stamped = NULL;
  }
  if (changes != few)
    free(changes);
  return status;
}
