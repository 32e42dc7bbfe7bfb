/* Edges from data. */
#include "core/graph/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/graph/build.h"
#include "core/graph/segments.h"
#include "core/graph/temporary.h"
#include "core/record/order.h"

typedef struct stream_floor {
  uint64_t stream;
  uint32_t op; /* that all later operations of the stream come after */
} stream_floor;

typedef struct plan {
  const cgl_recording *recording;
  const cgl_draw *draws;        /* of the graph */
  cgl_temporaries *temporaries; /* NULL: all memory lies where it is */
  bool given; /* the recording's dependencies are the edges, and stay */
  uint32_t n, width;
  size_t stride; /* of rows: the width, rounded up to whole chunks */
  cgl_segments segments;
  uint32_t *first;  /* accesses of operation i; n + 1 entries */
  uint32_t *lane;   /* of an operation */
  uint32_t *before; /* the operation before it in its lane */
  uint32_t *depth;  /* operations on the longest path to it */
  uint32_t *reach;  /* n rows: the latest of each lane that precedes it */
  uint32_t *tails;  /* the latest of each lane */
  uint32_t *deep;   /* its depth */
  uint32_t nlanes;
  uint32_t least; /* no lane is less deep; no lane before `next` is as little */
  uint32_t next;
  cgl_wants wants;  /* of the operation at hand, the latest first in the end */
  uint32_t barrier; /* the last */
  uint32_t handle;  /* that the next conditional node goes by */
  stream_floor *floors;
  size_t nfloors, floors_size;
  size_t *edges; /* of the recording to be */
  size_t nedges, edges_size;
  size_t *starts;
} plan;


/* ---- what an operation accesses ---- */

/* `temporary`: that the range is in, from 1, or 0. */
static bool plan_add_access(plan *p, const cgl_range *range,
                            uint32_t temporary) {
  CUdeviceptr from = range->address;
  if (temporary)
    from += p->temporaries->apart[temporary - 1] -
            cgl_record_allocation(p->recording, range->allocation - 1)->address;
  return cgl_segments_add(&p->segments, from, range->bytes, range->write);
}


/* All accesses of an operation; false without memory. */
static bool plan_add_accesses(plan *p, const cgl_recording *recording,
                              const cgl_op *op) {
  const cgl_range *ranges = cgl_record_ranges(recording, op);
  const cgl_temporaries *t = recording == p->recording ? p->temporaries : NULL;
  bool room = true;
  for (uint32_t i = 0; i < op->nranges && room; i++)
    room = plan_add_access(p, &ranges[i],
                           t ? cgl_temporaries_of(t, &ranges[i]) : 0);
  for (uint32_t b = 0; b < op->nbodies && room; b++) {
    const cgl_recording *body = cgl_record_bodies(recording, op)[b];
    for (size_t i = 0; i < cgl_record_count(body) && room; i++)
      room = plan_add_accesses(p, body, cgl_record_op(body, i));
  }
  return room;
}


/* ---- what an operation comes after ---- */

/* `op` counts from 1; 0 is fine. */
static void plan_want(plan *p, uint32_t op, uint32_t of) {
  cgl_segments_want(&p->wants, op, of);
}


/* Moves a generator's offset: a kernel of ours without ranges, or a graph with
   one. */
static bool op_moves_offset(const cgl_recording *recording, const cgl_op *op) {
  if (op->kind == CGL_OP_KERNEL)
    return !op->object && !op->nranges;
  const cgl_recording *const *bodies = cgl_record_bodies(recording, op);
  for (uint32_t b = 0; b < op->nbodies; b++)
    for (size_t i = 0; i < cgl_record_count(bodies[b]); i++)
      if (op_moves_offset(bodies[b], cgl_record_op(bodies[b], i)))
        return true;
  return false;
}


static bool plan_set_floor(plan *p, uint64_t stream, uint32_t op) {
  for (size_t i = 0; i < p->nfloors; i++)
    if (p->floors[i].stream == stream) {
      p->floors[i].op = op;
      return true;
    }
  if (!CGL_SEGMENTS_GROW(p->floors, p->nfloors, p->floors_size))
    return false;
  p->floors[p->nfloors++] = (stream_floor){stream, op};
  return true;
}


/* By an event: all that was issued until then comes before. */
static void plan_want_all_until(plan *p, uint32_t last, uint32_t of) {
  for (uint32_t l = 0; l < p->nlanes; l++) {
    uint32_t op = p->tails[l];
    while (op > last)
      op = p->before[op - 1];
    plan_want(p, op, of);
  }
}


/* What the capture ordered by other means than a stream's own order. */
static bool plan_want_explicit(plan *p, uint32_t op) {
  const cgl_op *o = cgl_record_op(p->recording, op - 1);
  const bool moves = op_moves_offset(p->recording, o);
  size_t count;
  const size_t *from = cgl_record_dependencies(p->recording, op - 1, &count);
  for (size_t i = 0; i < p->nfloors; i++)
    if (p->floors[i].stream == o->stream)
      plan_want(p, p->floors[i].op, op);
  for (size_t k = 0; k < count; k++) {
    const cgl_op *u = cgl_record_op(p->recording, from[k]);
    const uint32_t before = (uint32_t)from[k] + 1;
    if (moves || op_moves_offset(p->recording, u))
      plan_want(p, before, op);
    else if (u->stream != o->stream) {
      plan_want_all_until(p, before, op);
      if (!plan_set_floor(p, o->stream, op))
        return false;
    }
  }
  if (o->kind == CGL_OP_CONDITIONAL)
    plan_want(p, p->handle, op);
  if (o->handle == CGL_HANDLE_NEXT)
    p->handle = op;
  return true;
}


/* ---- lanes ---- */

static int wanted_compare(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x > y ? -1 : x < y;
}


/* What precedes an operation, the latest of each lane. */
static uint32_t *plan_row(const plan *p, uint32_t op) {
  return p->reach + (size_t)(op - 1) * p->stride;
}


/* Operation `w` and what precedes it precede what `row` is of. */
static void plan_join_row(const plan *p, uint32_t *row, uint32_t w) {
  cgl_segments_join(row, plan_row(p, w), p->stride);
  row[p->lane[w - 1]] = w;
}


/* Keeps of what is wanted, the latest first, what the others do not imply;
   `row` gets what precedes the operation. */
static void plan_reduce(plan *p, uint32_t *row) {
  size_t kept = 0;
  if (p->wants.count == 1) {
    const uint32_t w = p->wants.list[0];
    memcpy(row, plan_row(p, w), p->stride * sizeof *row);
    row[p->lane[w - 1]] = w;
    return;
  }
  memset(row, 0, p->stride * sizeof *row);
  if (p->wants.count)
    qsort(p->wants.list, p->wants.count, sizeof *p->wants.list, wanted_compare);
  for (size_t i = 0; i < p->wants.count; i++) {
    const uint32_t w = p->wants.list[i];
    if (row[p->lane[w - 1]] >= w)
      continue;
    plan_join_row(p, row, w);
    p->wants.list[kept++] = w;
  }
  p->wants.count = kept;
}


/* After plan_reduce: wants `w`, which nothing that is wanted implies. */
static void plan_want_also(plan *p, uint32_t *row, uint32_t w) {
  const uint32_t *its = plan_row(p, w);
  size_t kept = 0;
  for (size_t i = 0; i < p->wants.count; i++)
    if (its[p->lane[p->wants.list[i] - 1]] < p->wants.list[i])
      p->wants.list[kept++] = p->wants.list[i];
  p->wants.count = kept + 1;
  for (; kept && p->wants.list[kept - 1] < w; kept--)
    p->wants.list[kept] = p->wants.list[kept - 1];
  p->wants.list[kept] = w;
  plan_join_row(p, row, w);
}


/* The first of the least deep lanes.  Lanes only get deeper, so that all lanes
   are looked at once for each depth. */
static uint32_t plan_find_shallow_lane(plan *p) {
  while (p->next == p->nlanes || p->deep[p->next] > p->least)
    if (++p->next >= p->nlanes) {
      p->next = 0;
      p->least = p->deep[0];
      for (uint32_t l = 1; l < p->nlanes; l++)
        p->least = p->deep[l] < p->least ? p->deep[l] : p->least;
    }
  return p->next;
}


static bool chunk_has_tail(const uint32_t *row, const uint32_t *tails) {
  uint32_t any = 0;
  for (size_t k = 0; k < CGL_SEGMENTS_CHUNK; k++)
    any |= row[k] == tails[k];
  return any;
}


/* A lane whose latest operation precedes the next, else a new one, else the one
   that has least behind it. */
static uint32_t plan_choose_lane(plan *p, const uint32_t *row) {
  uint32_t best = UINT32_MAX;
  const uint32_t latest = p->wants.count ? p->wants.list[0] : 0;
  if (latest && p->tails[p->lane[latest - 1]] == latest)
    return p->lane[latest - 1]; /* no later operation precedes it */
  for (uint32_t from = 0; from < p->nlanes; from += CGL_SEGMENTS_CHUNK)
    for (uint32_t l = from; l < from + CGL_SEGMENTS_CHUNK && l < p->nlanes &&
                            chunk_has_tail(row + from, p->tails + from);
         l++)
      if (row[l] == p->tails[l] &&
          (best == UINT32_MAX || p->tails[l] > p->tails[best]))
        best = l;
  if (best != UINT32_MAX)
    return best;
  return p->nlanes < p->width ? p->nlanes : plan_find_shallow_lane(p);
}


static bool plan_place(plan *p, uint32_t op) {
  uint32_t *row = plan_row(p, op);
  plan_reduce(p, row);
  const uint32_t lane = plan_choose_lane(p, row);
  p->nlanes += lane == p->nlanes;
  p->lane[op - 1] = lane;
  if (p->tails[lane] && row[lane] != p->tails[lane])
    plan_want_also(p, row, p->tails[lane]);
  p->before[op - 1] = p->tails[lane];
  p->tails[lane] = op;
  for (size_t i = p->wants.count; i-- > 0;) {
    const uint32_t depth = p->depth[p->wants.list[i] - 1];
    if (!CGL_SEGMENTS_GROW(p->edges, p->nedges, p->edges_size))
      return false;
    p->edges[p->nedges++] = p->wants.list[i] - 1;
    if (depth > p->depth[op - 1])
      p->depth[op - 1] = depth;
  }
  p->deep[lane] = ++p->depth[op - 1];
  return true;
}


/* The recording's own dependencies; those that were put in by hand may have
   later numbers. */
static void plan_want_given(plan *p, uint32_t op) {
  size_t count;
  const size_t *from = cgl_record_dependencies(p->recording, op - 1, &count);
  for (size_t k = 0; k < count; k++)
    if (from[k] < op - 1)
      plan_want(p, (uint32_t)from[k] + 1, op);
}


static bool plan_add(plan *p, uint32_t op) {
  const cgl_op *o = cgl_record_op(p->recording, op - 1);
  p->wants.count = 0;
  p->starts[op - 1] = p->nedges;
  if (p->given) {
    plan_want_given(p, op);
    return plan_place(p, op);
  }
  const cgl_access *a = p->segments.accesses + p->first[op - 1];
  const cgl_access *end = p->segments.accesses + p->first[op];
  if (!cgl_segments_use(&p->segments, a, end, op, &p->wants) ||
      !plan_want_explicit(p, op))
    return false;
  plan_want(p, p->barrier, op);
  if (cgl_plan_barrier_reason(p->draws, p->recording, o)) {
    plan_want_all_until(p, op, op);
    p->barrier = op;
  }
  if (!plan_place(p, op))
    return false;
  cgl_segments_put(&p->segments, a, end, op, p->lane[op - 1]);
  return true;
}


/* ---- the driver's graph ---- */

/* Two lists of edges, as the driver takes them. */
typedef struct edge_list {
  CUgraphNode *from, *to;
  size_t count;
} edge_list;


/* The edges into operation i that `mine` has and `other` has not. */
static void edges_add_missing(edge_list *list, const cgl_recording *recording,
                              size_t i, const size_t *mine, size_t nmine,
                              const size_t *other, size_t nother) {
  for (size_t k = 0; k < nmine; k++) {
    size_t j = 0;
    while (j < nother && other[j] != mine[k])
      j++;
    if (j < nother)
      continue;
    list->from[list->count] = cgl_record_op(recording, mine[k])->node;
    list->to[list->count++] = cgl_record_op(recording, i)->node;
  }
}


static CUresult plan_edit(const plan *p, const cgl_driver *driver,
                          CUgraph graph, const char **entry) {
  const cgl_recording *recording = p->recording;
  size_t count, before = 0;
  for (size_t i = 0; i < p->n; i++) {
    cgl_record_dependencies(recording, i, &count);
    before += count;
  }
  CUgraphNode *nodes = malloc((2 * (before + p->nedges) + 1) * sizeof *nodes);
  if (!nodes)
    return CUDA_ERROR_OUT_OF_MEMORY;
  edge_list gone = {nodes, nodes + before, 0};
  edge_list come = {nodes + 2 * before, nodes + 2 * before + p->nedges, 0};
  for (size_t i = 0; i < p->n; i++) {
    const size_t *now = p->edges + p->starts[i];
    const size_t nnow = p->starts[i + 1] - p->starts[i];
    const size_t *was = cgl_record_dependencies(recording, i, &count);
    edges_add_missing(&gone, recording, i, was, count, now, nnow);
    edges_add_missing(&come, recording, i, now, nnow, was, count);
  }
  CUresult result = CUDA_SUCCESS;
  if (gone.count)
    result = driver->cuGraphRemoveDependencies(graph, gone.from, gone.to, NULL,
                                               gone.count);
  if (!result && come.count) {
    *entry = "cuGraphAddDependencies";
    result = driver->cuGraphAddDependencies(graph, come.from, come.to, NULL,
                                            come.count);
  }
  free(nodes);
  return result;
}


/* ---- a plan ---- */

static void plan_free(plan *p) {
  cgl_segments_free(&p->segments);
  free(p->reach);
  free(p->floors);
  free(p->edges);
  free(p->starts);
}


/* The arrays that have an element for each operation. */
static bool plan_reserve(plan *p) {
  const size_t n = (size_t)p->n + 1;
  p->stride = (p->width + CGL_SEGMENTS_CHUNK - 1) / CGL_SEGMENTS_CHUNK *
              CGL_SEGMENTS_CHUNK;
  const size_t rest = 6 * n + 2 * p->stride;
  p->reach = malloc((n * p->stride + rest) * sizeof *p->reach);
  p->starts = malloc(n * sizeof *p->starts);
  if (!p->reach || !p->starts)
    return false;
  p->first = p->reach + n * p->stride; /* rows are set one by one */
  memset(p->first, 0, rest * sizeof *p->first);
  p->lane = p->first + n;
  p->before = p->lane + n;
  p->depth = p->before + n;
  p->wants.list = p->depth + n;
  p->wants.mark = p->wants.list + n;
  p->tails = p->wants.mark + n;
  p->deep = p->tails + p->stride;
  return true;
}


static bool plan_make(plan *p) {
  bool room = plan_reserve(p);
  for (uint32_t i = 0; i < p->n && room && !p->given; i++) {
    room = plan_add_accesses(p, p->recording, cgl_record_op(p->recording, i));
    p->first[i + 1] = (uint32_t)p->segments.naccesses;
  }
  room = room && cgl_segments_make(&p->segments, p->stride);
  for (uint32_t op = 1; op <= p->n && room; op++)
    room = plan_add(p, op);
  if (room)
    p->starts[p->n] = p->nedges;
  return room;
}


/* What uses each temporary; false without memory. */
static bool plan_use_places(plan *p) {
  cgl_temporaries *t = p->temporaries;
  if (!cgl_places_reserve(&t->places, t->count, p->lane, p->reach, p->stride))
    return false;
  for (size_t i = 0; i < t->count; i++) {
    const cgl_allocation *a = cgl_record_allocation(p->recording, t->slots[i]);
    t->places.list[i].bytes = cgl_temporaries_bytes(a);
  }
  for (uint32_t op = 1; op <= p->n; op++) {
    const cgl_op *o = cgl_record_op(p->recording, op - 1);
    const cgl_range *ranges = cgl_record_ranges(p->recording, o);
    for (uint32_t r = 0; r < o->nranges; r++) {
      const uint32_t number = cgl_temporaries_of(t, &ranges[r]);
      if (number && !cgl_places_use(&t->places, number - 1, op))
        return false;
    }
  }
  return true;
}


/* A plan of so many lanes, and places for the temporaries; the bytes that these
   take, SIZE_MAX without memory. */
static size_t plan_try(plan *p, const cgl_graph *graph, cgl_temporaries *t,
                       uint32_t width) {
  const cgl_recording *recording = graph->recording;
  const size_t n = cgl_record_count(recording);
  *p = (plan){.recording = recording,
              .draws = graph->draw_list,
              .temporaries = t,
              .n = (uint32_t)n,
              .width = width < n ? width
                       : n       ? (uint32_t)n
                                 : 1};
  if (n >= UINT32_MAX || !plan_make(p) || !plan_use_places(p))
    return SIZE_MAX;
  return t->count ? cgl_places_find(&t->places) : 0;
}


/* The most bytes that the capture may take, which takes `issued` where issue
   order has its memory. */
static size_t plan_most(const cgl_graph *graph, size_t issued) {
  const size_t share = graph->object.context->info.memory / CGL_PLAN_SHARE;
  if (graph->options.max_bytes && graph->options.max_bytes != CGL_BYTES_ISSUE)
    return graph->options.max_bytes;
  return graph->options.max_bytes || issued > share ? issued : share;
}


/* The next number of lanes to try; 0: none. */
static uint32_t narrower(uint32_t width) {
  return width > 8 ? width / 2 : width - 1;
}


/* Operations on its longest path. */
static uint32_t plan_longest(const plan *p) {
  uint32_t longest = 0;
  for (uint32_t l = 0; l < p->nlanes; l++)
    longest = p->deep[l] > longest ? p->deep[l] : longest;
  return longest;
}


/* The plan with all temporaries where issue order has them. */
static bool plan_stay(plan *p, const cgl_graph *graph, cgl_temporaries *t,
                      uint32_t width) {
  const size_t count = t->count;
  cgl_places_free(&t->places);
  t->count = 0;
  const bool made = plan_try(p, graph, t, width) != SIZE_MAX;
  t->count = count;
  return made;
}


/* A plan whose memory, at `base`, takes no more than the graph's options allow
   and its pool has, of as many lanes as that leaves; or, where those are so few
   that its path is shorter, the one that leaves the temporaries where issue
   order has them, if that is allowed. */
static cgl_status plan_fit(plan *p, const cgl_graph *graph, cgl_temporaries *t,
                           const char *operation, CUdeviceptr *base) {
  const uint32_t widest =
      graph->options.width ? graph->options.width : CGL_PLAN_WIDTH;
  size_t asked, kept, issued, bytes = 0;
  cgl_status status =
      cgl_temporaries_sum(graph->recording, t->born, !t->count, &asked, &kept);
  if (!status)
    status =
        cgl_temporaries_sum(graph->recording, t->born, true, &asked, &issued);
  if (status)
    return status;
  const size_t most = plan_most(graph, issued);
  plan stayed = {0};
  uint32_t longest = UINT32_MAX; /* path of `stayed`, once it is made */
  bool room = true;
  status = CUDA_ERROR_OUT_OF_MEMORY;
  for (uint32_t width = widest; width && room; width = narrower(width)) {
    plan_free(p);
    cgl_places_free(&t->places);
    bytes = plan_try(p, graph, t, width);
    room = bytes != SIZE_MAX;
    if (!room || plan_longest(p) > longest)
      break;
    if (kept + bytes <= most)
      status = cgl_temporaries_reserve(t, graph->pool, graph->capture.origin,
                                       bytes, operation, base);
    if (status != CUDA_ERROR_OUT_OF_MEMORY || !t->count)
      break;
    if (issued <= most && longest == UINT32_MAX) {
      room = plan_stay(&stayed, graph, t, widest);
      longest = plan_longest(&stayed);
    }
  }
  if (!room)
    status =
        cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory to plan the graph");
  else if (status == CUDA_ERROR_OUT_OF_MEMORY && longest != UINT32_MAX) {
    plan_free(p);
    *p = stayed;
    t->count = 0;
    return CGL_OK;
  } else if (status == CUDA_ERROR_OUT_OF_MEMORY && kept + bytes > most) {
    cgl_fail(status, operation,
             "the capture's memory takes %zu bytes when its nodes run one "
             "after the other, which is %zu more than max_bytes",
             kept + bytes, kept + bytes - most);
    cgl_fail_hint("allow more, or release buffers earlier in the capture");
  }
  plan_free(&stayed);
  return status;
}


/* The driver's graph gets the edges, and what was moved its addresses; or its
   nodes, with both. */
static cgl_status plan_finish(plan *p, cgl_graph *graph, bool late,
                              const char *operation) {
  cgl_context *context = graph->object.context;
  const CUgraph template = graph->template->graph;
  const char *entry = "cuGraphRemoveDependencies";
  const CUresult result =
      late ? CUDA_SUCCESS : plan_edit(p, context->driver, template, &entry);
  if (result)
    return cgl_fail_driver(context, result, operation, entry);
  cgl_record_set_dependencies(graph->recording, p->starts, p->edges);
  p->starts = p->edges = NULL;
  if (late) {
    cgl_build_choose_programmatic(graph->recording);
    return cgl_build_late(context, graph->recording, template, NULL);
  }
  const cgl_status status = cgl_build_put_programmatic(
      context, graph->recording, operation, template);
  return status ? status : cgl_graph_refresh(graph, operation);
}


cgl_status cgl_plan_order(cgl_graph *graph, bool late, const char *operation) {
  cgl_context *context = graph->object.context;
  cgl_recording *recording = graph->recording;
  const CUgraph template = graph->template->graph;
  cgl_temporaries t;
  plan p = {0};
  CUdeviceptr base = 0;
  CUresult result = late ? CUDA_SUCCESS
                    : graph->capture.watched
                        ? cgl_record_learn_edges(recording, template)
                        : cgl_record_learn_line(recording, template);
  cgl_status status =
      cgl_fail_driver(context, result, operation, "cuGraphGetEdges");
  if (!cgl_temporaries_find(&t, recording, graph->capture.underway.born) &&
      !status)
    status =
        cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory to plan the graph");
  /* A guarded block ends where it ends, and foreign nodes say nothing. */
  if (graph->pool->guard || cgl_record_has(recording, CGL_OP_FOREIGN))
    t.count = 0;
  if (!status)
    status = plan_fit(&p, graph, &t, operation, &base);
  if (!status && base)
    status = cgl_temporaries_move(&t, base, operation);
  if (!status)
    status = plan_finish(&p, graph, late, operation);
  plan_free(&p);
  cgl_temporaries_free(&t);
  return status;
}


/* ---- changes ---- */

static bool accesses_conflict(const plan *p, const cgl_range *ranges,
                              size_t n) {
  const cgl_segments *s = &p->segments;
  for (const cgl_access *a = s->accesses; a < s->accesses + s->naccesses; a++)
    if (cgl_record_ranges_touch(ranges, n, a->from, a->to - a->from, !a->write))
      return true;
  return false;
}


static cgl_status refuse_change(const cgl_op *op, const char *operation) {
  cgl_fail(CGL_ERROR_ORDER, operation,
           "the node would use memory that the %s %s, issued at %s, uses, and "
           "in data order no edge says which of them comes first",
           cgl_record_words[op->kind], op->name, cgl_site_text(op->site));
  return cgl_fail_hint("capture again with this memory, or with order = "
                       "\"issue\"");
}


cgl_status cgl_plan_check_change(cgl_graph *graph, size_t index,
                                 const cgl_range *ranges, size_t n,
                                 const char *operation) {
  cgl_status status = n ? cgl_graph_learn(graph, operation) : CGL_OK;
  const cgl_recording *recording = graph->recording;
  const size_t count = cgl_record_count(recording);
  plan p = {.recording = recording};
  unsigned char *reached = malloc(count + 1);
  bool room = reached;
  for (size_t i = 0; i < count && n && !status && room; i++) {
    p.segments.naccesses = 0;
    const cgl_op *op = cgl_record_op(recording, i);
    room = i == index || plan_add_accesses(&p, recording, op);
    const size_t before = i < index ? i : index, after = i < index ? index : i;
    if (room && accesses_conflict(&p, ranges, n) &&
        !cgl_order_precedes(recording, reached, before, after))
      status = refuse_change(op, operation);
  }
  cgl_segments_free(&p.segments);
  free(reached);
  return room ? status
              : cgl_fail(CGL_ERROR_NO_MEMORY, operation,
                         "no memory to look at the order of the graph");
}


size_t cgl_plan_bound(cgl_graph *graph) {
  const uint32_t width = graph->options.width;
  size_t bound = SIZE_MAX;
  cgl_temporaries t;
  plan p = {.recording = graph->recording,
            .temporaries = &t,
            .given = true,
            .n = (uint32_t)cgl_record_count(graph->recording),
            .width = width ? width : CGL_PLAN_WIDTH};
  if (cgl_temporaries_list(&t, graph->recording,
                           graph->capture.underway.born) &&
      plan_make(&p) && plan_use_places(&p))
    bound = cgl_places_bound(&t.places);
  plan_free(&p);
  cgl_temporaries_free(&t);
  return bound;
}
