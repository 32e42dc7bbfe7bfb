/* Reachability: inside a capture underway, and in a captured graph. */
#include "core/record/recording_private.h"

#include <stdlib.h>
#include <string.h>

enum { REACHES = 8 }; /* streams whose reach is kept */

/* What a stream's next operation came after when it was asked last.  What a
   stream comes after grows, so the next question looks at what is new only. */
typedef struct reach {
  uint64_t stream;    /* serial; 0: none */
  uint64_t question;  /* of the capture, when it was asked last */
  CUgraphNode *set;   /* the dependencies of the next operation then */
  size_t nset;        /* of them */
  unsigned char *ops; /* by operation: 1 when the next one comes after it */
  size_t nops, room;  /* operations that the answer knows, and places */
  size_t whole;       /* all operations before this one are among them */
} reach;

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
  CUgraphNode *asked;    /* of one operation, as the driver has them */
  CUgraphEdgeData *data; /* likewise */
  size_t *waiting;       /* operations to walk on from; a place for each */
  reach reaches[REACHES];
  uint64_t questions;
};


void cgl_order_free(cgl_order *order) {
  if (!order)
    return;
  free(order->nodes.places);
  free(order->runs);
  free(order->edges);
  free(order->asked);
  free(order->data);
  free(order->waiting);
  for (int i = 0; i < REACHES; i++) {
    free(order->reaches[i].set);
    free(order->reaches[i].ops);
  }
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
   memory, or when the driver does not tell a node.  Nodes to come are noted as
   they are captured. */
static bool order_learn_nodes(cgl_order *order, cgl_capture *capture,
                              CUgraph graph) {
  cgl_recording *recording = capture->recording;
  const size_t nops = recording->nops;
  const size_t unknown = capture->watched ? capture->unwatched : nops;
  if (order->nruns < nops) {
    const size_t runs = 2 * nops + 64;
    if (!RESIZE(order->runs, runs) || !RESIZE(order->waiting, runs))
      return false;
    memset(order->runs + order->nruns, 0xff,
           (runs - order->nruns) * sizeof *order->runs);
    order->nruns = runs;
  }
  /* Nodes that were put in by hand are known before earlier ones. */
  size_t known = order->nodes.known;
  while (known < unknown && recording->ops[known].node)
    known++;
  if (known < unknown &&
      cgl_record_learn_nodes(recording, graph, unknown, false))
    return false;
  cgl_capture_watch(capture);
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
    if (!RESIZE(order->edges, size) || !RESIZE(order->asked, size) ||
        !RESIZE(order->data, size))
      return false;
    order->edges_size = size;
  }
  if (count && driver->cuGraphNodeGetDependencies(node, order->asked,
                                                  order->data, &count))
    return false;
  size_t *edges = order->edges + order->nedges;
  /* Edges with data that are not ours (issue.h) are not relied on. */
  for (size_t i = 0; i < count; i++)
    if ((order->data[i].type && !recording->ops[op].programmatic) ||
        order->data[i].from_port != order->data[i].type ||
        (edges[i] = cgl_order_op(&order->nodes, order->asked[i])) == SIZE_MAX)
      return false;
  order->runs[op] = (struct run){order->nedges, count};
  order->nedges += count;
  return true;
}


/* The stream's reach; in the place of the one asked longest ago when the stream
   has none. */
static reach *order_reach(cgl_order *order, uint64_t stream) {
  reach *oldest = order->reaches;
  for (reach *r = order->reaches; r < order->reaches + REACHES; r++) {
    if (r->stream == stream)
      return r;
    if (r->question < oldest->question)
      oldest = r;
  }
  oldest->stream = stream;
  oldest->nset = oldest->nops = oldest->whole = 0;
  return oldest;
}


/* Marks all that the nodes come after, themselves included, in `r`, beside what
   is marked there.  *met counts the operations marked 2 that it came to, which
   it marks 1. */
static bool order_search(cgl_order *order, const cgl_recording *recording,
                         reach *r, const cgl_captured *now, size_t *met) {
  for (size_t i = 0; i < now->count; i++) {
    size_t op = cgl_order_op(&order->nodes, now->nodes[i]), nwaiting = 0;
    if (op == SIZE_MAX)
      return false;
    *met += r->ops[op] == 2;
    if (!r->ops[op])
      order->waiting[nwaiting++] = op;
    r->ops[op] = 1;
    while (nwaiting) {
      op = order->waiting[--nwaiting];
      if (order->runs[op].first == SIZE_MAX &&
          !order_learn_edges(order, recording, op))
        return false;
      const struct run run = order->runs[op];
      for (size_t k = run.first; k < run.first + run.count; k++) {
        unsigned char *mark = &r->ops[order->edges[k]];
        *met += *mark == 2;
        if (!*mark)
          order->waiting[nwaiting++] = order->edges[k];
        *mark = 1;
      }
    }
  }
  return true;
}


/* Brings the reach up to the nodes.  They come after all that it has when they
   come after the nodes that it was made from, which are marked 2 meanwhile;
   else the dependencies were set anew, and the search begins anew. */
static bool reach_extend(cgl_order *order, const cgl_recording *recording,
                         reach *r, const cgl_captured *now) {
  size_t marked = 0, met = 0;
  for (size_t i = 0; i < r->nset; i++) {
    const size_t op = cgl_order_op(&order->nodes, r->set[i]);
    marked += r->ops[op] == 1;
    r->ops[op] = 2;
  }
  if (!order_search(order, recording, r, now, &met))
    return false;
  if (met == marked)
    return true;
  memset(r->ops, 0, recording->nops);
  r->whole = 0;
  return order_search(order, recording, r, now, &met);
}


/* Makes room for all operations and the nodes. */
static bool reach_reserve(reach *r, size_t nops, size_t nset) {
  if (r->room < nops) {
    if (!RESIZE(r->ops, 2 * nops + 64))
      return false;
    r->room = 2 * nops + 64;
  }
  memset(r->ops + r->nops, 0, nops - r->nops);
  return RESIZE(r->set, r->nset > nset ? r->nset : nset + 1);
}


/* What the stream's next operation comes after; NULL when that is unknown. */
static const reach *order_update(cgl_capture *capture, cgl_stream *stream) {
  const cgl_recording *recording = capture->recording;
  const size_t nops = recording->nops;
  cgl_captured now;
  size_t all = 0;
  if (cgl_capture_ask(stream, &now))
    return NULL;
  /* A node that others put in may use any memory. */
  if (cgl_driver_of(stream)->cuGraphGetNodes(now.graph, NULL, &all) ||
      all != nops)
    return NULL;
  if (!capture->order && !(capture->order = calloc(1, sizeof *capture->order)))
    return NULL;
  cgl_order *order = capture->order;
  reach *r = order_reach(order, stream->serial);
  const size_t bytes = now.count * sizeof *r->set;
  r->question = ++order->questions;
  if (r->nops == nops && r->nset == now.count &&
      (!bytes || !memcmp(r->set, now.nodes, bytes)))
    return r;
  if (!reach_reserve(r, nops, now.count) ||
      !order_learn_nodes(order, capture, now.graph) ||
      !reach_extend(order, recording, r, &now)) {
    r->stream = r->nset = r->nops = r->whole = 0;
    return NULL;
  }
  if (bytes)
    memcpy(r->set, now.nodes, bytes);
  r->nset = now.count;
  r->nops = nops;
  while (r->whole < nops && r->ops[r->whole])
    r->whole++;
  return r;
}


/* The same in the stream's own recording alone. */
static bool order_covers_own(cgl_capture *capture, cgl_stream *stream,
                             CUdeviceptr address, size_t bytes, bool write) {
  /* Operations of one stream are in order. */
  if (!capture->forked && stream == capture->origin)
    return true;
  const cgl_recording *recording = capture->recording;
  const reach *r = NULL;
  for (size_t i = recording->nops; i-- > (r ? r->whole : 0);) {
    if (!cgl_record_touches(recording, &recording->ops[i], address, bytes,
                            write))
      continue;
    if (!r && !(r = order_update(capture, stream)))
      return false;
    if (!r->ops[i])
      return false;
  }
  return true;
}


/* The node of a body follows what its stream in the capture around follows. */
bool cgl_order_covers(cgl_stream *stream, CUdeviceptr address, size_t bytes,
                      bool write) {
  bool covers = stream->capture;
  for (; covers && stream; stream = stream->capture->around)
    covers = order_covers_own(stream->capture, stream, address, bytes, write);
  return covers;
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


/* Nothing runs beside an operation that alone ends those up to it, and alone
   begins those from it on. */
static void order_mark_alone(const cgl_recording *recording,
                             unsigned char *alone, unsigned char *followed,
                             size_t *latest) {
  size_t ends = 0, begins = 0, count;
  for (size_t i = 0; i < recording->nops; i++) {
    const size_t *from = cgl_record_dependencies(recording, i, &count);
    size_t last = 0;
    for (size_t k = 0; k < count; k++)
      if (from[k] < i) { /* else not ours */
        ends -= !followed[from[k]];
        followed[from[k]] = 1;
        last = from[k] + 1 > last ? from[k] + 1 : last;
      }
    latest[last]++;
    alone[i] = ++ends == 1;
  }
  for (size_t i = recording->nops; i--;) {
    begins += 1 - latest[i + 1];
    alone[i] = alone[i] && begins == 1;
  }
}


unsigned char *cgl_order_find_alone(const cgl_recording *recording) {
  const size_t n = recording->nops + 1;
  /* latest[i + 1]: of how many operations i is the latest before them. */
  size_t *latest = calloc(n, sizeof *latest);
  unsigned char *alone = calloc(2 * n, 1);
  if (latest && alone)
    order_mark_alone(recording, alone, alone + n, latest);
  if (!latest) {
    free(alone);
    alone = NULL;
  }
  free(latest);
  return alone;
}
