/* Reachability inside a capture underway. */
#include "core/record/order.h"

#include <stdlib.h>
#include <string.h>

/* Operations are known by their index in the recording.  Edges never change
   once a node is captured, so each is asked for once. */
struct cgl_reach {
  struct place {
    CUgraphNode node;
    uint32_t op;
  } * places;            /* by node: open addressing, half empty */
  size_t nplaces, known; /* a power of two; operations entered so far */
  struct run {
    uint32_t first, count; /* in `edges`; first UINT32_MAX: not asked yet */
  } * runs;
  size_t nruns;
  uint32_t *edges;
  size_t nedges, edges_size;
  /* The answer to the last question: what a set of nodes comes after. */
  CUgraphNode *set;
  size_t nset, set_size;
  unsigned char *reached;
  uint32_t *stack;
  size_t nreached;
};


void cgl_reach_free(cgl_reach *reach) {
  if (!reach)
    return;
  free(reach->places);
  free(reach->runs);
  free(reach->edges);
  free(reach->set);
  free(reach->reached);
  free(reach->stack);
  free(reach);
}


static bool resize(void **array, size_t count, size_t element) {
  void *grown = realloc(*array, count * element);
  if (grown)
    *array = grown;
  return grown;
}

#define RESIZE(array, count) resize((void **)&(array), (count), sizeof *(array))


/* ---- operations by node ---- */

static size_t slot_of(const cgl_reach *reach, CUgraphNode node) {
  size_t slot = (uintptr_t)node * UINT64_C(0x9e3779b97f4a7c15) >> 20;
  slot &= reach->nplaces - 1;
  while (reach->places[slot].node && reach->places[slot].node != node)
    slot = (slot + 1) & (reach->nplaces - 1);
  return slot;
}


/* Makes room for the recording's operations; false without memory. */
static bool widen(cgl_reach *reach, const cgl_recording *recording) {
  size_t nops = recording->nops;
  if (reach->nruns < nops) {
    size_t runs = 2 * nops + 64;
    if (!RESIZE(reach->runs, runs) || !RESIZE(reach->reached, runs) ||
        !RESIZE(reach->stack, runs))
      return false;
    memset(reach->runs + reach->nruns, 0xff,
           (runs - reach->nruns) * sizeof *reach->runs);
    reach->nruns = runs;
  }
  if (reach->nplaces >= 2 * nops && reach->places)
    return true;
  size_t nplaces = 64;
  while (nplaces < 4 * nops)
    nplaces *= 2;
  struct place *places = calloc(nplaces, sizeof *places);
  if (!places)
    return false;
  free(reach->places);
  reach->places = places;
  reach->nplaces = nplaces;
  reach->known = 0;
  return true;
}


/* Enters operations noted since the last question; false when one has a node
   that the driver did not tell. */
static bool learn_nodes(cgl_reach *reach, const cgl_driver *driver,
                        cgl_recording *recording, CUgraph captured) {
  size_t nops = recording->nops;
  if (nops >= UINT32_MAX || !widen(reach, recording))
    return false;
  if (reach->known < nops && !recording->ops[nops - 1].node &&
      cgl_recording_learn_nodes(recording, driver, captured))
    return false;
  for (; reach->known < recording->nops; reach->known++) {
    CUgraphNode node = recording->ops[reach->known].node;
    if (!node)
      return false;
    size_t slot = slot_of(reach, node);
    reach->places[slot] = (struct place){node, (uint32_t)reach->known};
  }
  return true;
}


/* The index of a node's operation, UINT32_MAX when it is not ours. */
static uint32_t op_of(const cgl_reach *reach, CUgraphNode node) {
  size_t slot = slot_of(reach, node);
  return reach->places[slot].node ? reach->places[slot].op : UINT32_MAX;
}


/* ---- edges ---- */

/* Room for `more` edges. */
static bool make_room(cgl_reach *reach, size_t more) {
  if (reach->nedges + more <= reach->edges_size)
    return true;
  size_t size = 2 * (reach->nedges + more) + 64;
  if (size >= UINT32_MAX || !RESIZE(reach->edges, size))
    return false;
  reach->edges_size = size;
  return true;
}


/* What an operation depends on; asks the driver once. */
static bool learn_edges(cgl_reach *reach, const cgl_driver *driver,
                        const cgl_op *op, struct run *run) {
  enum { FEW = 16 };
  CUgraphNode few[FEW], *nodes = few;
  size_t count = 0;
  if (driver->cuGraphNodeGetDependencies(op->node, NULL, NULL, &count) ||
      !make_room(reach, count))
    return false;
  if (count > FEW && !(nodes = malloc(count * sizeof *nodes)))
    return false;
  /* Edges that carry data are refused here, and so not relied on. */
  bool known = !count || !driver->cuGraphNodeGetDependencies(op->node, nodes,
                                                             NULL, &count);
  for (size_t i = 0; known && i < count; i++) {
    reach->edges[reach->nedges + i] = op_of(reach, nodes[i]);
    known = reach->edges[reach->nedges + i] != UINT32_MAX;
  }
  if (known) {
    *run = (struct run){(uint32_t)reach->nedges, (uint32_t)count};
    reach->nedges += count;
  }
  if (nodes != few)
    free(nodes);
  return known;
}


static void visit(cgl_reach *reach, size_t *depth, uint32_t op) {
  if (reach->reached[op])
    return;
  reach->reached[op] = 1;
  reach->stack[(*depth)++] = op;
}


/* Marks all that the set of nodes comes after, itself included. */
static bool search(cgl_reach *reach, const cgl_driver *driver,
                   const cgl_recording *recording) {
  size_t depth = 0;
  memset(reach->reached, 0, recording->nops);
  for (size_t i = 0; i < reach->nset; i++) {
    uint32_t op = op_of(reach, reach->set[i]);
    if (op == UINT32_MAX)
      return false;
    visit(reach, &depth, op);
  }
  while (depth) {
    uint32_t op = reach->stack[--depth];
    struct run *run = &reach->runs[op];
    if (run->first == UINT32_MAX &&
        !learn_edges(reach, driver, &recording->ops[op], run))
      return false;
    for (uint32_t i = 0; i < run->count; i++)
      visit(reach, &depth, reach->edges[run->first + i]);
  }
  return true;
}


/* ---- the question ---- */

/* Brings `reached` up to what the stream's next operation comes after. */
static bool reach_from(cgl_graph *graph, cgl_stream *stream) {
  const cgl_driver *driver = cgl_driver_of(stream);
  cgl_recording *recording = &graph->recording;
  cgl_captured now;
  size_t all = 0;
  if (cgl_capture_ask(stream, &now))
    return false;
  /* A node that others put in may use any memory. */
  if (driver->cuGraphGetNodes(now.graph, NULL, &all) || all != recording->nops)
    return false;
  if (!graph->reach && !(graph->reach = calloc(1, sizeof *graph->reach)))
    return false;
  cgl_reach *reach = graph->reach;
  if (reach->nreached == recording->nops && reach->nset == now.count &&
      (!now.count ||
       !memcmp(reach->set, now.nodes, now.count * sizeof(CUgraphNode))))
    return true;
  reach->nreached = 0;
  if (reach->set_size < now.count + 1 && !RESIZE(reach->set, now.count + 1))
    return false;
  reach->set_size = now.count + 1;
  reach->nset = now.count;
  if (now.count)
    memcpy(reach->set, now.nodes, now.count * sizeof(CUgraphNode));
  if (!learn_nodes(reach, driver, recording, now.graph) ||
      !search(reach, driver, recording))
    return false;
  reach->nreached = recording->nops;
  return true;
}


bool cgl_capture_covers_range(cgl_stream *stream, CUdeviceptr address,
                              size_t bytes) {
  cgl_graph *graph = stream->capture;
  if (!graph)
    return false;
  /* On one stream everything comes before what comes next. */
  if (!graph->forked && stream == graph->origin)
    return true;
  const cgl_recording *recording = &graph->recording;
  bool asked = false;
  for (size_t i = recording->nops; i-- > 0;) {
    const cgl_op *op = &recording->ops[i];
    const cgl_range *range = &recording->ranges[op->ranges];
    for (uint32_t k = 0; k < op->nranges; k++, range++) {
      if (!cgl_range_meets(range, address, bytes))
        continue;
      if (!asked && !reach_from(graph, stream))
        return false;
      asked = true;
      if (!graph->reach->reached[i])
        return false;
    }
  }
  return true;
}


bool cgl_capture_covers(cgl_stream *stream, const cgl_block *block) {
  return cgl_capture_covers_range(
      stream, cgl_block_address(block, block->bytes), block->bytes);
}
