/* Predicated bodies: their kernels are put into the capture around, as plain
   nodes in which the second forms look at a word before they run.
   A branch: a kernel writes a word for each body, then come the kernels of all
   bodies, one body after the other.  The kernels of a single body may look at
   the value itself, when they do not change it.
   A loop: the body of its node is the kernels of several turns.  Before them,
   and at their end, a kernel says how many turns may run (set_conditional).  A
   turn of a LOOP begins with its first kernel, when that can look at the value
   as well, else with a kernel of its own; it notes that the turn has begun, and
   the other kernels of the turn look at that.
   A branch inside a body has its words written by a kernel that looks at the
   word of the body, so its other kernels stay as they are. */
#include "core/graph/conditional.h"
#include "core/graph/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* On an H200, behind programmatic edges, a kernel that is skipped costs half a
   microsecond and what it takes to launch its blocks, as much for 400 of them;
   one that runs costs 0.1 to 0.4 more than without a word, and 1.7 where 2000
   blocks wait for a word that has just been written; a node costs five, and
   eight when a body runs; a turn of a loop's node four. */
enum {
  BLOCKS = 1024,   /* that weigh as much as a kernel */
  BRANCH_MOST = 8, /* weight of all bodies */
  LOOP_MOST = 8,   /* weight of a turn */
  TURNS_MOST = 32, /* of one body of a loop's node; those that are left at the
                      loop's end are skipped */
  WEIGHT_WANTED = 128 /* of that body */
};


/* ---- what can be predicated ---- */

/* The last operation of a loop's body sets the handle of its node. */
static size_t body_count(const cgl_recording *body) {
  const size_t n = cgl_record_count(body);
  return n && cgl_record_op(body, n - 1)->handle == CGL_HANDLE_AROUND ? n - 1
                                                                      : n;
}


/* A copy or a fill as a kernel. */
typedef struct move {
  cgl_launch launch;
  uint64_t values[3]; /* to; from, or the value eight bytes long; bytes */
} move;


static bool op_is_move(const cgl_op *op) {
  return op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET;
}


/* NULL, or why the operation is no such kernel. */
static const char *move_of(const cgl_recording *body, const cgl_op *op,
                           move *m) {
  const cgl_element *element = cgl_build_element(body, op);
  const size_t size = cgl_type_bytes((cgl_type)element->type);
  *m = (move){.launch = cgl_copy_launch(element->count),
              .values = {element->to, element->what, element->count}};
  if (element->pinned)
    return "it copies from or to pinned memory";
  if (element->follows)
    return "its value follows a buffer";
  if (op->kind == CGL_OP_MEMSET) {
    const size_t period =
        cgl_copy_is_word(element) ? cgl_copy_word_bytes(element) : size;
    if (sizeof m->values[1] % period)
      return "its elements have more bytes than such a fill takes";
    for (size_t i = 0; i < sizeof m->values[1]; i += period)
      memcpy((char *)&m->values[1] + i, element->value, period);
  }
  return NULL;
}


/* NULL, or why there is no second form of such an operation. */
static const char *op_refusal(const cgl_recording *body, const cgl_op *op) {
  move m;
  if (op->rule)
    return "its grid is a parameter";
  if (op->follows)
    return "a parameter of it follows a buffer";
  if (op->kind == CGL_OP_KERNEL && (op->predication || op->object))
    return NULL;
  if (op_is_move(op))
    return move_of(body, op, &m);
  return op->handle ? "it is a node of its own" : "it is no kernel of a script";
}


/* The second form of an operation that is not refused; NULL, and *why, when its
   kernel has none. */
static cgl_status op_find(cgl_context *context, const cgl_op *op,
                          const char *operation, CUfunction *function,
                          const char **why) {
  *why = NULL;
  *function = op->function;
  if (op->predication)
    return CGL_OK;
  if (op->object)
    return cgl_kernel_second((cgl_kernel *)op->object, CGL_SECOND_PREDICATED,
                             &op->launch, operation, function, why);
  return cgl_copy_predicated(context, op->kind, operation, function, why);
}


static cgl_status op_check(const cgl_conditional *c, size_t body, size_t index,
                           bool compile, const char *operation,
                           cgl_predicated_refusal *refusal) {
  const cgl_op *op = cgl_record_op(c->bodies[body], index);
  CUfunction function;
  refusal->op = op;
  refusal->why = c->draws[body] ? "the body draws random numbers"
                                : op_refusal(c->bodies[body], op);
  return compile ? op_find(c->stream->object.context, op, operation, &function,
                           &refusal->why)
                 : CGL_OK;
}


/* Nothing is compiled for bodies that are refused all the same. */
cgl_status cgl_predicated_check(const cgl_conditional *c, const char *operation,
                                cgl_predicated_refusal *refusal) {
  cgl_status status = CGL_OK;
  *refusal = (cgl_predicated_refusal){0};
  for (int compile = 0; compile < 2; compile++)
    for (size_t i = 0; i < c->desc.nbodies; i++)
      for (size_t k = 0; k < body_count(c->bodies[i]); k++)
        if (!status && !refusal->why)
          status = op_check(c, i, k, compile, operation, refusal);
  return status;
}


static uint64_t body_weight(const cgl_recording *body) {
  uint64_t weight = 0;
  move m;
  for (size_t i = 0; i < body_count(body); i++) {
    const cgl_op *op = cgl_record_op(body, i);
    const uint32_t *grid = op->launch.grid;
    if (op_is_move(op) && !move_of(body, op, &m))
      grid = m.launch.grid;
    weight += 1 + (uint64_t)grid[0] * grid[1] * grid[2] / BLOCKS;
  }
  return weight;
}


bool cgl_predicated_pays(const cgl_conditional *c) {
  uint64_t weight = 0;
  for (size_t i = 0; i < c->desc.nbodies; i++)
    weight += body_weight(c->bodies[i]);
  return weight <= (uint64_t)(c->loop ? LOOP_MOST : BRANCH_MOST);
}


cgl_status cgl_predicated_refuse(const cgl_predicated_refusal *refusal,
                                 const char *operation) {
  const cgl_op *op = refusal->op;
  cgl_fail(CGL_ERROR_INVALID_ARGUMENT, operation,
           "the bodies cannot be predicated because of the %s %s, issued at "
           "%s: %s",
           cgl_record_words[op->kind], op->name, cgl_site_text(op->site),
           refusal->why);
  return cgl_fail_hint("leave the form out, and a node is used where the "
                       "predicated form cannot be");
}


/* ---- a body's kernels ---- */

/* How the operations of a body are asked. */
typedef struct asking {
  cgl_predicate head, rest; /* of the first operation, and of the others */
  cgl_buffer *state;        /* what the words are in */
  cgl_buffer *value;        /* that is looked at too, or NULL */
} asking;


/* The memory that the predicate of an operation names. */
static void asking_use(const asking *a, const cgl_predicate *p,
                       cgl_issue *issue) {
  const size_t past = CGL_MAX_PARAMS; /* behind all arguments */
  if (a->state)
    cgl_buffer_use(a->state, issue, p->ran, past);
  if (a->value && (p->value || !a->state))
    cgl_buffer_use(a->value, issue, false, past + 1);
}


/* The values of a copy of an operation; how many bytes. */
static size_t values_write(unsigned char *to, const cgl_recording *body,
                           const cgl_op *op, move *m, const cgl_predicate *p) {
  size_t n = op->nvalues;
  void *params[] = {&m->values[0], &m->values[1], &m->values[2]};
  if (op_is_move(op))
    n = cgl_fill_pack(to, params, 3);
  else
    memcpy(to, cgl_record_values(body, op), n);
  if (op->predication != CGL_PREDICATION_NONE)
    return n;
  const size_t at = cgl_kernel_next_value(n);
  memset(to + n, 0, at - n);
  memcpy(to + at, p, sizeof *p);
  return at + sizeof *p;
}


/* Whether the predicate becomes the operation's: kernels that look at a word
   that is written in the body keep theirs. */
static bool op_is_asked(const cgl_recording *body, const cgl_op *op) {
  uint64_t word = 0;
  if (op->predication == CGL_PREDICATION_WRITES)
    memcpy(&word, cgl_record_values(body, op), sizeof word);
  return op->predication != CGL_PREDICATION_LOOKS && !word;
}


/* Notes a copy of the operation in the capture of the stream, as a kernel with
   its second form. */
static cgl_status op_issue(cgl_stream *stream, const cgl_recording *body,
                           const cgl_op *op, bool first, const asking *a,
                           const cgl_predicate *p, const char *operation) {
  const bool asked = op_is_asked(body, op), moves = op_is_move(op);
  const char *why;
  move m = {0};
  CUfunction function;
  cgl_issue issue;
  cgl_status status =
      op_find(stream->object.context, op, operation, &function, &why);
  if (!status)
    status = cgl_issue_begin(
        &issue, stream, NULL, operation,
        &(cgl_room){.ranges = op->nranges + 2,
                    .values = op->nvalues + sizeof m + sizeof *p + 32,
                    .kept = op->nranges + op->nuses + 2,
                    .uses = op->nuses});
  if (status)
    return status;
  if (moves)
    move_of(body, op, &m);
  unsigned char *values = cgl_issue_values(&issue);
  const cgl_note note = {.kind = CGL_OP_KERNEL,
                         .name = op->name,
                         .launch = moves ? &m.launch : &op->launch,
                         .function = function,
                         .object = op->object,
                         .fills = moves,
                         .predication = op->predication ? op->predication
                                                        : CGL_PREDICATION_LOOKS,
                         .nvalues = values_write(values, body, op, &m, p)};
  if (asked && op->predication) {
    const uint64_t turn = p->turn;
    memcpy(values, &p->word, sizeof p->word);
    memcpy(values + 16, &turn, sizeof turn);
  }
  cgl_issue_launch_of(&issue, op, first);
  cgl_issue_use_of(&issue, body, op);
  if (op->kind == CGL_OP_MEMSET && op->nuses) {
    cgl_param_use use = *cgl_record_uses(body, op);
    use.offset = 16; /* the second of three values, eight bytes of it */
    use.repeats = (uint16_t)(sizeof m.values[1] / use.param->bytes);
    cgl_issue_use_param(&issue, &use);
  }
  if (asked)
    asking_use(a, p, &issue);
  cgl_issue_end_of(&issue, &note, op);
  return CGL_OK;
}


/* Adds operation `index` of the body behind `after`, the capture's and the
   body's nodes. */
static cgl_status op_add(cgl_stream *stream, const cgl_recording *body,
                         size_t index, const asking *a,
                         const cgl_captured *after, const char *operation,
                         CUgraphNode *node) {
  cgl_status status = op_issue(stream, body, cgl_record_op(body, index), !index,
                               a, index ? &a->rest : &a->head, operation);
  if (status)
    return status;
  cgl_recording *recording = stream->capture->recording;
  status = cgl_build_add_kernel(
      stream->object.context, recording,
      cgl_record_op(recording, cgl_record_count(recording) - 1), after,
      operation, node);
  if (!status)
    cgl_issue_set_node(recording, *node);
  return status;
}


/* The nodes that come last in the body: those that the handle's kernel depends
   on, or no other depends on. */
static size_t body_ends(const cgl_recording *body, const CUgraphNode *nodes,
                        CUgraphNode *ends) {
  const size_t n = body_count(body);
  size_t count = 0, nends = 0;
  const bool handle = n < cgl_record_count(body);
  const size_t *from = handle ? cgl_record_dependencies(body, n, &count) : NULL;
  for (size_t i = 0; i < count; i++)
    ends[nends++] = nodes[from[i]];
  for (size_t i = 0; i < n && !handle; i++) {
    bool last = true;
    for (size_t k = i + 1; k < n && last; k++) {
      from = cgl_record_dependencies(body, k, &count);
      for (size_t j = 0; j < count; j++)
        last &= from[j] != i;
    }
    if (last)
      ends[nends++] = nodes[i];
  }
  return nends;
}


/* With room for the body's nodes, and for what one of them depends on. */
static cgl_status body_add_all(cgl_stream *stream, const cgl_recording *body,
                               const asking *a, const char *operation,
                               CUgraphNode *nodes, CUgraphNode *before) {
  const size_t n = body_count(body);
  for (size_t i = 0; i < n; i++) {
    cgl_captured after;
    size_t count;
    const size_t *from = cgl_record_dependencies(body, i, &count);
    CUresult result = cgl_capture_ask(stream, &after);
    if (result)
      return cgl_capture_failed(stream, result, operation,
                                "cuStreamGetCaptureInfo");
    for (size_t k = 0; k < count; k++)
      before[k] = nodes[from[k]];
    if (count)
      after = (cgl_captured){after.graph, before, NULL, count};
    cgl_status status =
        op_add(stream, body, i, a, &after, operation, &nodes[i]);
    if (status)
      return status;
  }
  const size_t nends = body_ends(body, nodes, before);
  CUresult result =
      !nends ? CUDA_SUCCESS
             : cgl_driver_of(stream)->cuStreamUpdateCaptureDependencies(
                   stream->handle, before, NULL, nends,
                   CU_STREAM_SET_CAPTURE_DEPENDENCIES);
  if (nends)
    stream->waited = nends > 1 || before[0] != nodes[n - 1];
  return result ? cgl_capture_failed(stream, result, operation,
                                     "cuStreamUpdateCaptureDependencies")
                : CGL_OK;
}


/* The stream, which captures, follows the body from now on. */
static cgl_status body_add(cgl_stream *stream, const cgl_recording *body,
                           const asking *a, const char *operation) {
  const size_t n = body_count(body);
  CUgraphNode *nodes = malloc((2 * n + 1) * sizeof(CUgraphNode));
  if (!nodes)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory for a body");
  cgl_status status = cgl_issue_adopt(stream, body, operation);
  if (!status)
    status = body_add_all(stream, body, a, operation, nodes, nodes + n);
  free(nodes);
  return status;
}


/* ---- words ---- */

/* Whether the kernel may write the value, as far as its arguments tell. */
static bool op_may_write(const cgl_recording *body, const cgl_op *op,
                         const cgl_buffer *value) {
  return cgl_plan_barrier_reason(NULL, body, op) ||
         cgl_record_touches(body, op, value->address, cgl_buffer_bytes(value),
                            true);
}


/* ---- branches ---- */

static bool body_may_write(const cgl_recording *body, const cgl_buffer *value) {
  bool may = false;
  for (size_t i = 0; i < cgl_record_count(body) && !may; i++)
    may = op_may_write(body, cgl_record_op(body, i), value);
  return may;
}


/* Whether the kernels may look at the value itself.  In a body they may not:
   whether that runs is theirs to look at as well. */
static bool branch_looks_at_value(const cgl_conditional *c) {
  return c->desc.kind == CGL_CONDITIONAL_WHEN && c->desc.nbodies == 1 &&
         cgl_buffer_bytes(c->desc.value) == sizeof(uint32_t) &&
         !c->stream->capture->around &&
         !body_may_write(c->bodies[0], c->desc.value);
}


static cgl_status branch_write_words(const cgl_conditional *c,
                                     const char *operation) {
  uint64_t word = 0, turn = 0, type = cgl_conditional_type_code(c);
  uint64_t form = c->desc.kind == CGL_CONDITIONAL_SWITCH
                      ? 1 + 2 * (uint64_t)c->desc.otherwise
                      : 0;
  uint64_t n = c->desc.nbodies;
  void *params[] = {&word, &turn, &c->desc.value->address, &type,
                    &form, &n,    &c->words->address};
  return cgl_conditional_issue(
      c, c->stream, CGL_FILL_set_words, params, 7, c->words,
      (cgl_note){.predication = CGL_PREDICATION_WRITES}, operation);
}


cgl_status cgl_predicated_issue_branch(const cgl_conditional *c,
                                       const char *operation) {
  const bool direct = branch_looks_at_value(c);
  cgl_status status = CGL_OK;
  if (direct) {
    const cgl_predicate p = {.word = c->desc.value->address};
    const asking a = {p, p, NULL, c->desc.value};
    return body_add(c->stream, c->bodies[0], &a, operation);
  }
  status = branch_write_words(c, operation);
  for (size_t i = 0; i < c->desc.nbodies && !status; i++) {
    const cgl_predicate p = {.word = c->words->address + i * sizeof(uint32_t)};
    const asking a = {p, p, c->words, NULL};
    status = body_add(c->stream, c->bodies[i], &a, operation);
  }
  return status;
}


/* ---- loops ---- */

/* Whether the first kernel of a LOOP's body can begin the turn: the others
   depend on it, and all of its blocks look at the value before it changes. */
static bool turn_has_head(const cgl_conditional *c, const cgl_recording *body) {
  const cgl_buffer *value = c->desc.value;
  size_t count;
  if (!body_count(body) || cgl_buffer_bytes(value) != sizeof(uint32_t))
    return false;
  for (size_t i = 1; i < body_count(body); i++) {
    cgl_record_dependencies(body, i, &count);
    if (!count)
      return false;
  }
  const cgl_op *op = cgl_record_op(body, 0);
  const uint32_t *grid = op->launch.grid;
  return !op->predication && ((grid[0] == 1 && grid[1] == 1 && grid[2] == 1) ||
                              !op_may_write(body, op, value));
}


uint32_t cgl_predicated_turns(const cgl_conditional *c) {
  const cgl_recording *body = c->bodies[0];
  const bool begun =
      c->desc.kind == CGL_CONDITIONAL_TIMES || turn_has_head(c, body);
  const uint64_t each = body_weight(body) + !begun;
  uint64_t turns = WEIGHT_WANTED / (each ? each : 1);
  if (turns > TURNS_MOST)
    turns = TURNS_MOST;
  if (turns > c->desc.max)
    turns = c->desc.max;
  return (uint32_t)(turns ? turns : 1);
}


static cgl_status turn_begin(const cgl_conditional *c, cgl_stream *stream,
                             CUdeviceptr words, uint64_t number,
                             const char *operation) {
  uint64_t type = cgl_conditional_type_code(c);
  void *params[] = {&c->desc.value->address, &type, &words, &number};
  return cgl_conditional_issue(
      c, stream, CGL_FILL_set_turn, params, 4, c->loop->state,
      (cgl_note){.predication = CGL_PREDICATION_NONE}, operation);
}


cgl_status cgl_predicated_issue_turns(const cgl_conditional *c,
                                      cgl_stream *stream,
                                      const cgl_recording *body, uint32_t turns,
                                      const char *operation) {
  const CUdeviceptr may = c->loop->state->address + 4 * sizeof(uint64_t);
  const CUdeviceptr ran = may + sizeof(uint32_t);
  const bool times = c->desc.kind == CGL_CONDITIONAL_TIMES;
  const bool head = !times && turn_has_head(c, body);
  cgl_status status = CGL_OK;
  for (uint32_t turn = 0; turn < turns && !status; turn++) {
    /* Both words grow from the begin of the node's body to its end. */
    const cgl_predicate rest = {
        .word = times ? may : ran, .turn = turn, .early = 1};
    const cgl_predicate first = {may, c->desc.value->address, ran, turn, 1};
    const asking a = {head ? first : rest, rest, c->loop->state, c->desc.value};
    if (!times && !head)
      status = turn_begin(c, stream, may, turn, operation);
    if (!status)
      status = body_add(stream, body, &a, operation);
  }
  return status;
}
