/* Reachability: inside a capture underway, and in a captured graph. */
#include "core/record/recording_private.h"

#include <stdlib.h>
#include <string.h>

/* Operations are known by their index in the recording.  Edges never change
   once a node is captured, so each is asked for once. */
struct cgl_order {
  cgl_order_nodes nodes;
  struct run {
    size_t first, count; /* in `edges`; first SIZE_MAX: not asked yet */
  } * runs;
  size_t nruns;
  size_t *edges;
  size_t nedges, edges_size;
  CUgraphNode *asked; /* of one operation, as the driver has them */
  /* The answer to the last question: what a set of nodes comes after. */
  CUgraphNode *set;
  size_t nset;
  unsigned char *reached;
  size_t nreached;
};


void cgl_order_free(cgl_order *order) {
  if (!order)
    return;
  free(order->nodes.places);
  free(order->runs);
  free(order->edges);
  free(order->asked);
  free(order->set);
  free(order->reached);
  free(order);
}


static bool order_resize(void **array, size_t count, size_t element) {
  void *grown = realloc(*array, count * element);
  if (grown)
    *array = grown;
  return grown;
}

#define RESIZE(array, count) \
  order_resize((void **)&(array), (count), sizeof *(array))


/* ---- operations by node ---- */

static struct cgl_place *order_place(const cgl_order_nodes *nodes,
                                     CUgraphNode node) {
  size_t slot = (uintptr_t)node * UINT64_C(0x9e3779b97f4a7c15) >> 20;
  slot &= nodes->size - 1;
  while (nodes->places[slot].node && nodes->places[slot].node != node)
    slot = (slot + 1) & (nodes->size - 1);
  return &nodes->places[slot];
}


bool cgl_order_enter(cgl_order_nodes *nodes, const cgl_recording *recording) {
  const size_t nops = recording->nops;
  if (!nodes->places || nodes->size < 2 * nops) {
    size_t size = 64;
    while (size < 4 * nops)
      size *= 2;
    struct cgl_place *places = calloc(size, sizeof *places);
    if (!places)
      return false;
    free(nodes->places);
    *nodes = (cgl_order_nodes){places, size, 0};
  }
  for (; nodes->known < nops; nodes->known++) {
    CUgraphNode node = recording->ops[nodes->known].node;
    if (!node)
      return false;
    *order_place(nodes, node) = (struct cgl_place){node, nodes->known};
  }
  return true;
}


size_t cgl_order_op(const cgl_order_nodes *nodes, CUgraphNode node) {
  const struct cgl_place *place = order_place(nodes, node);
  return place->node ? place->op : SIZE_MAX;
}


/* ---- a capture underway ---- */

/* Brings nodes and arrays up to the operations noted so far; false without
   memory, or when the driver does not tell a node. */
static bool order_learn_nodes(cgl_order *order, const cgl_capture *capture,
                              CUgraph graph) {
  cgl_recording *recording = capture->recording;
  const size_t nops = recording->nops;
  const size_t unknown = capture->watched ? capture->unwatched : nops;
  if (order->nruns < nops) {
    const size_t runs = 2 * nops + 64;
    if (!RESIZE(order->runs, runs) || !RESIZE(order->reached, runs))
      return false;
    memset(order->runs + order->nruns, 0xff,
           (runs - order->nruns) * sizeof *order->runs);
    order->nruns = runs;
  }
  if (order->nodes.known < unknown && !recording->ops[unknown - 1].node &&
      cgl_record_learn_nodes(recording, graph, unknown, false))
    return false;
  return cgl_order_enter(&order->nodes, recording);
}


/* What an operation depends on; asks the driver once. */
static bool order_learn_edges(cgl_order *order, const cgl_recording *recording,
                              size_t op) {
  const cgl_driver *driver = recording->context->driver;
  const CUgraphNode node = recording->ops[op].node;
  size_t count = 0;
  if (driver->cuGraphNodeGetDependencies(node, NULL, NULL, &count))
    return false;
  if (order->nedges + count > order->edges_size) {
    const size_t size = 2 * (order->nedges + count) + 64;
    if (!RESIZE(order->edges, size) || !RESIZE(order->asked, size))
      return false;
    order->edges_size = size;
  }
  /* Edges that carry data are refused here, and so not relied on. */
  if (count &&
      driver->cuGraphNodeGetDependencies(node, order->asked, NULL, &count))
    return false;
  size_t *edges = order->edges + order->nedges;
  for (size_t i = 0; i < count; i++)
    if ((edges[i] = cgl_order_op(&order->nodes, order->asked[i])) == SIZE_MAX)
      return false;
  order->runs[op] = (struct run){order->nedges, count};
  order->nedges += count;
  return true;
}


/* Marks all that the set of nodes comes after, itself included: walks back over
   the operations, again when an edge led forward. */
static bool order_search(cgl_order *order, const cgl_recording *recording) {
  bool again = true;
  memset(order->reached, 0, recording->nops);
  for (size_t i = 0; i < order->nset; i++) {
    const size_t op = cgl_order_op(&order->nodes, order->set[i]);
    if (op == SIZE_MAX)
      return false;
    order->reached[op] = 1;
  }
  while (again) {
    again = false;
    for (size_t i = recording->nops; i-- > 0;) {
      const struct run *run = &order->runs[i];
      if (!order->reached[i])
        continue;
      if (run->first == SIZE_MAX && !order_learn_edges(order, recording, i))
        return false;
      for (size_t k = run->first; k < run->first + run->count; k++) {
        const size_t op = order->edges[k];
        again |= op > i && !order->reached[op];
        order->reached[op] = 1;
      }
    }
  }
  return true;
}


/* Brings `reached` up to what the stream's next operation comes after. */
static bool order_update(cgl_capture *capture, cgl_stream *stream) {
  const cgl_recording *recording = capture->recording;
  cgl_captured now;
  size_t all = 0;
  if (cgl_capture_ask(stream, &now))
    return false;
  /* A node that others put in may use any memory. */
  if (cgl_driver_of(stream)->cuGraphGetNodes(now.graph, NULL, &all) ||
      all != recording->nops)
    return false;
  if (!capture->order && !(capture->order = calloc(1, sizeof *capture->order)))
    return false;
  cgl_order *order = capture->order;
  const size_t bytes = now.count * sizeof *order->set;
  if (order->nreached == recording->nops && order->nset == now.count &&
      (!bytes || !memcmp(order->set, now.nodes, bytes)))
    return true;
  order->nreached = 0;
  if (!RESIZE(order->set, now.count + 1))
    return false;
  order->nset = now.count;
  if (bytes)
    memcpy(order->set, now.nodes, bytes);
  if (!order_learn_nodes(order, capture, now.graph) ||
      !order_search(order, recording))
    return false;
  order->nreached = recording->nops;
  return true;
}


bool cgl_order_covers(cgl_stream *stream, CUdeviceptr address, size_t bytes,
                      bool write) {
  cgl_capture *capture = stream->capture;
  if (!capture)
    return false;
  /* Operations of one stream are in order. */
  if (!capture->forked && stream == capture->origin)
    return true;
  const cgl_recording *recording = capture->recording;
  bool asked = false;
  for (size_t i = recording->nops; i-- > 0;) {
    if (!cgl_record_touches(recording, &recording->ops[i], address, bytes,
                            write))
      continue;
    if (!asked && !order_update(capture, stream))
      return false;
    asked = true;
    if (!capture->order->reached[i])
      return false;
  }
  return true;
}


/* ---- captured graphs ---- */

bool cgl_order_precedes(const cgl_recording *recording, unsigned char *reached,
                        size_t before, size_t after) {
  bool again = true;
  memset(reached, 0, recording->nops);
  reached[after] = 1;
  while (again && !reached[before]) {
    again = false;
    for (size_t i = recording->nops; i-- > 0 && !reached[before];) {
      size_t count = 0;
      const size_t *from =
          reached[i] ? cgl_record_dependencies(recording, i, &count) : NULL;
      for (size_t k = 0; k < count; k++) {
        if (from[k] == SIZE_MAX)
          continue;
        again |= from[k] > i && !reached[from[k]];
        reached[from[k]] = 1;
      }
    }
  }
  return reached[before];
}


bool cgl_order_is_implied(const cgl_recording *recording,
                          unsigned char *reached, size_t from, size_t to) {
  enum { MOST = 20000 }; /* operations: each edge may be a walk over all */
  size_t count;
  const size_t *others = cgl_record_dependencies(recording, to, &count);
  for (size_t i = 0; recording->nops <= MOST && i < count; i++)
    if (others[i] != SIZE_MAX && others[i] != from &&
        cgl_order_precedes(recording, reached, from, others[i]))
      return true;
  return false;
}
