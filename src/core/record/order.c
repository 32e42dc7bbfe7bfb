/* Reachability: inside a capture underway, and in a captured graph. */
#include "core/record/order.h"

#include <stdlib.h>
#include <string.h>

/* Operations are known by their index in the recording.  Edges never change
   once a node is captured, so each is asked for once. */
struct cgl_order {
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


void cgl_order_free(cgl_order *order) {
  if (!order)
    return;
  free(order->places);
  free(order->runs);
  free(order->edges);
  free(order->set);
  free(order->reached);
  free(order->stack);
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

static size_t order_slot(const cgl_order *order, CUgraphNode node) {
  size_t slot = (uintptr_t)node * UINT64_C(0x9e3779b97f4a7c15) >> 20;
  slot &= order->nplaces - 1;
  while (order->places[slot].node && order->places[slot].node != node)
    slot = (slot + 1) & (order->nplaces - 1);
  return slot;
}


/* Makes room for the recording's operations; false without memory. */
static bool order_widen(cgl_order *order, const cgl_recording *recording) {
  size_t nops = recording->nops;
  if (order->nruns < nops) {
    size_t runs = 2 * nops + 64;
    if (!RESIZE(order->runs, runs) || !RESIZE(order->reached, runs) ||
        !RESIZE(order->stack, runs))
      return false;
    memset(order->runs + order->nruns, 0xff,
           (runs - order->nruns) * sizeof *order->runs);
    order->nruns = runs;
  }
  if (order->nplaces >= 2 * nops && order->places)
    return true;
  size_t nplaces = 64;
  while (nplaces < 4 * nops)
    nplaces *= 2;
  struct place *places = calloc(nplaces, sizeof *places);
  if (!places)
    return false;
  free(order->places);
  order->places = places;
  order->nplaces = nplaces;
  order->known = 0;
  return true;
}


/* Enters operations noted since the last question; false when one has a node
   that the driver did not tell. */
static bool order_learn_nodes(cgl_order *order, const cgl_driver *driver,
                              const cgl_capture *capture, CUgraph graph) {
  cgl_recording *recording = capture->recording;
  const size_t nops = recording->nops;
  const size_t unknown = capture->watched ? capture->unwatched : nops;
  if (nops >= UINT32_MAX || !order_widen(order, recording))
    return false;
  if (order->known < unknown && !recording->ops[unknown - 1].node &&
      cgl_record_learn_nodes(recording, driver, graph, unknown))
    return false;
  for (; order->known < nops; order->known++) {
    CUgraphNode node = recording->ops[order->known].node;
    if (!node)
      return false;
    size_t slot = order_slot(order, node);
    order->places[slot] = (struct place){node, (uint32_t)order->known};
  }
  return true;
}


/* The index of a node's operation, UINT32_MAX when it is not ours. */
static uint32_t order_op(const cgl_order *order, CUgraphNode node) {
  size_t slot = order_slot(order, node);
  return order->places[slot].node ? order->places[slot].op : UINT32_MAX;
}


/* ---- edges ---- */

/* Room for `more` edges. */
static bool order_make_room(cgl_order *order, size_t more) {
  if (order->nedges + more <= order->edges_size)
    return true;
  size_t size = 2 * (order->nedges + more) + 64;
  if (size >= UINT32_MAX || !RESIZE(order->edges, size))
    return false;
  order->edges_size = size;
  return true;
}


/* What an operation depends on; asks the driver once. */
static bool order_learn_edges(cgl_order *order, const cgl_driver *driver,
                              const cgl_op *op, struct run *run) {
  enum { FEW = 16 };
  CUgraphNode few[FEW], *nodes = few;
  size_t count = 0;
  if (driver->cuGraphNodeGetDependencies(op->node, NULL, NULL, &count) ||
      !order_make_room(order, count))
    return false;
  if (count > FEW && !(nodes = malloc(count * sizeof *nodes)))
    return false;
  /* Edges that carry data are refused here, and so not relied on. */
  bool known = !count || !driver->cuGraphNodeGetDependencies(op->node, nodes,
                                                             NULL, &count);
  for (size_t i = 0; known && i < count; i++) {
    order->edges[order->nedges + i] = order_op(order, nodes[i]);
    known = order->edges[order->nedges + i] != UINT32_MAX;
  }
  if (known) {
    *run = (struct run){(uint32_t)order->nedges, (uint32_t)count};
    order->nedges += count;
  }
  if (nodes != few)
    free(nodes);
  return known;
}


static void order_visit(cgl_order *order, size_t *depth, uint32_t op) {
  if (order->reached[op])
    return;
  order->reached[op] = 1;
  order->stack[(*depth)++] = op;
}


/* Marks all that the set of nodes comes after, itself included. */
static bool order_search(cgl_order *order, const cgl_driver *driver,
                         const cgl_recording *recording) {
  size_t depth = 0;
  memset(order->reached, 0, recording->nops);
  for (size_t i = 0; i < order->nset; i++) {
    uint32_t op = order_op(order, order->set[i]);
    if (op == UINT32_MAX)
      return false;
    order_visit(order, &depth, op);
  }
  while (depth) {
    uint32_t op = order->stack[--depth];
    struct run *run = &order->runs[op];
    if (run->first == UINT32_MAX &&
        !order_learn_edges(order, driver, &recording->ops[op], run))
      return false;
    for (uint32_t i = 0; i < run->count; i++)
      order_visit(order, &depth, order->edges[run->first + i]);
  }
  return true;
}


/* ---- the question ---- */

/* Brings `reached` up to what the stream's next operation comes after. */
static bool order_update(cgl_capture *capture, cgl_stream *stream) {
  const cgl_driver *driver = cgl_driver_of(stream);
  const cgl_recording *recording = capture->recording;
  cgl_captured now;
  size_t all = 0;
  if (cgl_capture_ask(stream, &now))
    return false;
  /* A node that others put in may use any memory. */
  if (driver->cuGraphGetNodes(now.graph, NULL, &all) || all != recording->nops)
    return false;
  if (!capture->order && !(capture->order = calloc(1, sizeof *capture->order)))
    return false;
  cgl_order *order = capture->order;
  if (order->nreached == recording->nops && order->nset == now.count &&
      (!now.count ||
       !memcmp(order->set, now.nodes, now.count * sizeof(CUgraphNode))))
    return true;
  order->nreached = 0;
  if (order->set_size < now.count + 1 && !RESIZE(order->set, now.count + 1))
    return false;
  order->set_size = now.count + 1;
  order->nset = now.count;
  if (now.count)
    memcpy(order->set, now.nodes, now.count * sizeof(CUgraphNode));
  if (!order_learn_nodes(order, driver, capture, now.graph) ||
      !order_search(order, driver, recording))
    return false;
  order->nreached = recording->nops;
  return true;
}


bool cgl_order_covers(cgl_stream *stream, CUdeviceptr address, size_t bytes) {
  cgl_capture *capture = stream->capture;
  if (!capture)
    return false;
  /* On one stream everything comes before what comes next. */
  if (!capture->forked && stream == capture->origin)
    return true;
  const cgl_recording *recording = capture->recording;
  bool asked = false;
  for (size_t i = recording->nops; i-- > 0;) {
    if (!cgl_record_touches(recording, &recording->ops[i], address, bytes,
                            false))
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

enum { MAX_MATRIX = 20000 }; /* operations */

struct cgl_order_map {
  const cgl_recording *recording;
  size_t words;      /* of a row of `earlier` */
  uint64_t *earlier; /* a bit for every pair: the operations before each; NULL:
                        too many, or edges against the order of creation */
  unsigned char *seen; /* of a search, as `stack` */
  size_t *stack;
};


static bool map_bit(const cgl_order_map *map, size_t before, size_t after) {
  return map->earlier[after * map->words + before / 64] >> before % 64 & 1;
}


/* Nodes are in order of creation, mostly after what they depend on: rows are
   filled from the first to the last. */
static void map_fill(cgl_order_map *map) {
  const cgl_recording *recording = map->recording;
  map->words = recording->nops / 64 + 1;
  if (recording->nops <= MAX_MATRIX)
    map->earlier = calloc(recording->nops * map->words + 1, sizeof(uint64_t));
  for (size_t i = 0; i < recording->nops && map->earlier; i++) {
    size_t count;
    const size_t *from = cgl_record_dependencies(recording, i, &count);
    for (size_t k = 0; k < count; k++) {
      if (from[k] == SIZE_MAX)
        continue;
      if (from[k] >= i) {
        free(map->earlier);
        map->earlier = NULL;
        return;
      }
      uint64_t *row = map->earlier + i * map->words;
      const uint64_t *other = map->earlier + from[k] * map->words;
      for (size_t w = 0; w < map->words; w++)
        row[w] |= other[w];
      row[from[k] / 64] |= UINT64_C(1) << from[k] % 64;
    }
  }
}


cgl_order_map *cgl_order_map_new(const cgl_recording *recording) {
  cgl_order_map *map = calloc(1, sizeof *map);
  if (!map)
    return NULL;
  map->recording = recording;
  map->seen = malloc(recording->nops + 1);
  map->stack = malloc((recording->nops + 1) * sizeof *map->stack);
  if (!map->seen || !map->stack) {
    cgl_order_map_free(map);
    return NULL;
  }
  map_fill(map);
  return map;
}


void cgl_order_map_free(cgl_order_map *map) {
  if (!map)
    return;
  free(map->earlier);
  free(map->seen);
  free(map->stack);
  free(map);
}


/* Goes back from `after` over the edges. */
static bool map_search(cgl_order_map *map, size_t before, size_t after) {
  size_t depth = 0, count;
  memset(map->seen, 0, map->recording->nops);
  map->stack[depth++] = after;
  while (depth) {
    const size_t op = map->stack[--depth];
    if (op == before)
      return true;
    const size_t *from = cgl_record_dependencies(map->recording, op, &count);
    for (size_t i = 0; i < count; i++) {
      if (from[i] == SIZE_MAX || map->seen[from[i]])
        continue;
      map->seen[from[i]] = 1;
      map->stack[depth++] = from[i];
    }
  }
  return false;
}


bool cgl_order_precedes(cgl_order_map *map, size_t before, size_t after) {
  if (before == after)
    return true;
  return map->earlier ? map_bit(map, before, after)
                      : map_search(map, before, after);
}


bool cgl_order_is_implied(const cgl_order_map *map, size_t from, size_t to) {
  size_t count;
  const size_t *others = cgl_record_dependencies(map->recording, to, &count);
  for (size_t i = 0; map->earlier && i < count; i++)
    if (others[i] != SIZE_MAX && others[i] != from &&
        map_bit(map, from, others[i]))
      return true;
  return false;
}
