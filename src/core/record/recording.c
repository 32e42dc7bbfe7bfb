/* The recording's arrays, and what it learns from the template. */
#include "core/graph/annotate.h"
#include "core/random/random.h"
#include "core/sharing/sharing.h"

#include <stdlib.h>
#include <string.h>


/* X(array): what a capture fills, and the next one may use again. */
#define ARRAYS(X) X(ops) X(ranges) X(args) X(kept) X(uses) X(touched) X(shares)

enum {
  SPARE = 4 << 20,   /* bytes of the spare, at most */
  LITTLE = 16 << 10, /* bytes that a graph may hold and not need, */
  SLACK = 4          /* and else so many times what it needs */
};


static bool grow(void **array, size_t *size, size_t wanted, size_t element) {
  if (wanted <= *size)
    return true;
  size_t bigger = *size ? 2 * *size : 16;
  if (bigger < wanted)
    bigger = wanted;
  void *grown = realloc(*array, bigger * element);
  if (!grown)
    return false;
  *array = grown;
  *size = bigger;
  return true;
}

#define GROW(array, count, extra)                            \
  grow((void **)&recording->array, &recording->array##_size, \
       recording->count + (extra), sizeof *recording->array)


bool cgl_recording_reserve(cgl_recording *recording, size_t ranges, size_t args,
                           size_t kept) {
  return GROW(ops, nops, 1) && GROW(ranges, nranges, ranges) &&
         GROW(args, nargs, args) && GROW(kept, nkept, kept) &&
         GROW(touched, ntouched, kept) && GROW(uses, nuses, kept);
}


bool cgl_recording_reserve_uses(cgl_recording *recording, size_t uses,
                                size_t shares) {
  return GROW(uses, nuses, uses) && GROW(shares, nshares, shares);
}


static size_t bytes_of(const cgl_recording *recording) {
  size_t bytes = 0;
#define X(array) bytes += recording->array##_size * sizeof *recording->array;
  ARRAYS(X)
#undef X
  return bytes;
}


static void free_arrays(cgl_recording *recording) {
#define X(array) free(recording->array);
  ARRAYS(X)
#undef X
}


static void swap_arrays(cgl_recording *a, cgl_recording *b) {
  const cgl_recording before = *a;
#define X(array)                     \
  a->array = b->array;               \
  a->array##_size = b->array##_size; \
  b->array = before.array;           \
  b->array##_size = before.array##_size;
  ARRAYS(X)
#undef X
}


/* Makes the arrays the spare if they are larger, and frees the lesser ones. */
static void leave_arrays(cgl_recording *recording, cgl_context *context) {
  const size_t bytes = bytes_of(recording);
  pthread_mutex_lock(&context->lock);
  if (bytes && !context->spare)
    context->spare = calloc(1, sizeof *context->spare);
  if (context->spare && bytes <= SPARE && bytes > bytes_of(context->spare))
    swap_arrays(recording, context->spare);
  pthread_mutex_unlock(&context->lock);
  free_arrays(recording);
}


void cgl_recording_begin(cgl_recording *recording, cgl_context *context) {
  pthread_mutex_lock(&context->lock);
  if (context->spare && !bytes_of(recording))
    swap_arrays(recording, context->spare);
  pthread_mutex_unlock(&context->lock);
}


void cgl_recording_free_spare(cgl_context *context) {
  if (context->spare)
    free_arrays(context->spare);
  free(context->spare);
  context->spare = NULL;
}


/* A copy of the first bytes of an array; NULL for none of them, too. */
static void *copy_of(const void *array, size_t bytes) {
  void *copy = bytes ? malloc(bytes) : NULL;
  return copy ? memcpy(copy, array, bytes) : NULL;
}


void cgl_recording_tighten(cgl_recording *recording, cgl_context *context) {
  const size_t held = bytes_of(recording);
  size_t needed = 0;
#define X(array) needed += recording->n##array * sizeof *recording->array;
  ARRAYS(X)
#undef X
  if (held <= LITTLE || held / SLACK <= needed)
    return;
  cgl_recording tight = *recording;
  bool made = true;
#define X(array)                                                            \
  tight.array##_size = tight.n##array;                                      \
  tight.array =                                                             \
      copy_of(recording->array, tight.n##array * sizeof *recording->array); \
  made = made && (tight.array || !tight.n##array);
  ARRAYS(X)
#undef X
  if (!made) {
    free_arrays(&tight);
    return;
  }
  leave_arrays(recording, context);
  *recording = tight;
}


void cgl_recording_clear(cgl_recording *recording, cgl_context *context) {
  for (size_t i = 0; i < recording->nkept; i++)
    cgl_object_release(recording->kept[i]);
  while (recording->nshares)
    cgl_share_release(recording->shares[--recording->nshares]);
  cgl_draws_free(recording->draws);
  cgl_annotate_free(recording);
  free(recording->edges);
  free(recording->first);
  leave_arrays(recording, context);
  memset(recording, 0, sizeof *recording);
}


static int by_address(const void *a, const void *b) {
  CUdeviceptr x = ((const cgl_range *)a)->address;
  CUdeviceptr y = ((const cgl_range *)b)->address;
  return x < y ? -1 : x > y;
}


bool cgl_recording_footprint(const cgl_recording *recording, cgl_range **out,
                             size_t *nout) {
  cgl_range *ranges = malloc((recording->nranges + 1) * sizeof *ranges);
  size_t n = 0, merged = 0;
  if (!ranges)
    return false;
  for (size_t i = 0; i < recording->nops; i++) {
    const cgl_op *op = &recording->ops[i];
    if (op->kind == CGL_OP_FOREIGN) {
      ranges[0] = (cgl_range){.bytes = SIZE_MAX, .write = true};
      n = 1;
      break;
    }
    for (uint32_t k = 0; k < op->nranges; k++)
      if (recording->ranges[op->ranges + k].bytes)
        ranges[n++] = recording->ranges[op->ranges + k];
  }
  qsort(ranges, n, sizeof *ranges, by_address);
  for (size_t i = 0; i < n; i++) {
    cgl_range *last = &ranges[merged ? merged - 1 : 0];
    CUdeviceptr end = ranges[i].address + ranges[i].bytes;
    if (!merged || ranges[i].address > last->address + last->bytes) {
      ranges[merged++] = ranges[i];
      continue;
    }
    if (end > last->address + last->bytes)
      last->bytes = end - last->address;
    last->write |= ranges[i].write;
  }
  *out = ranges;
  *nout = merged;
  return true;
}


/* All nodes of a graph, in order of creation; the caller frees *nodes. */
static CUresult list_nodes(const cgl_driver *driver, CUgraph driver_graph,
                           CUgraphNode **nodes, size_t *count) {
  *nodes = NULL;
  CUresult result = driver->cuGraphGetNodes(driver_graph, NULL, count);
  if (result || !*count)
    return result;
  if (!(*nodes = malloc(*count * sizeof **nodes)))
    return CUDA_ERROR_OUT_OF_MEMORY;
  result = driver->cuGraphGetNodes(driver_graph, *nodes, count);
  if (result) {
    free(*nodes);
    *nodes = NULL;
  }
  return result;
}


CUresult cgl_recording_learn_nodes(cgl_recording *recording,
                                   const cgl_driver *driver,
                                   CUgraph driver_graph) {
  CUgraphNode *nodes;
  size_t count = 0;
  CUresult result = list_nodes(driver, driver_graph, &nodes, &count);
  for (size_t i = 0; !result && count == recording->nops && i < count; i++)
    recording->ops[i].node = nodes[i];
  free(nodes);
  return result;
}


/* Whether `node`, the next one of the driver's, is what became of `op`: known
   by the node, or, when somebody got in unwatched, by its type. */
static bool is_of(const cgl_op *op, CUgraphNode node,
                  const cgl_driver *driver) {
  static const CUgraphNodeType types[] = {
#define X(constant, word, type) type,
      CGL_OPS(X)
#undef X
  };
  CUgraphNodeType type;
  if (op->node)
    return op->node == node;
  return !driver->cuGraphNodeGetType(node, &type) && type == types[op->kind];
}


/* Both lists are in creation order: merges them; false without memory. */
static bool merge(cgl_recording *recording, const cgl_driver *driver,
                  const CUgraphNode *nodes, size_t count) {
  cgl_op *ops = calloc(count, sizeof *ops);
  size_t next = 0;
  if (!ops)
    return false;
  for (size_t i = 0; i < count; i++) {
    if (next < recording->nops &&
        is_of(&recording->ops[next], nodes[i], driver))
      ops[i] = recording->ops[next++];
    else {
      ops[i].kind = CGL_OP_FOREIGN;
      ops[i].name = "foreign";
    }
    ops[i].node = nodes[i];
  }
  free(recording->ops);
  recording->ops = ops;
  recording->nops = recording->ops_size = count;
  return true;
}


CUresult cgl_recording_find_foreign(cgl_graph *graph) {
  cgl_recording *recording = &graph->recording;
  const cgl_driver *driver = cgl_driver_of(graph);
  CUgraphNode *nodes;
  size_t count = 0;
  CUresult result = list_nodes(driver, graph->template, &nodes, &count);
  if (!result && count == recording->nops)
    for (size_t i = 0; i < count; i++)
      recording->ops[i].node = nodes[i];
  else if (!result && count && !merge(recording, driver, nodes, count))
    result = CUDA_ERROR_OUT_OF_MEMORY;
  free(nodes);
  return result;
}


typedef struct placed {
  CUgraphNode node;
  size_t index;
} placed;


static int by_node(const void *a, const void *b) {
  uintptr_t x = (uintptr_t)((const placed *)a)->node;
  uintptr_t y = (uintptr_t)((const placed *)b)->node;
  return x < y ? -1 : x > y;
}


static size_t index_of(const placed *sorted, size_t count, CUgraphNode node) {
  placed key = {node, 0};
  const placed *found = bsearch(&key, sorted, count, sizeof key, by_node);
  return found ? found->index : SIZE_MAX;
}


/* Sorts the edges by their later end, into one run per operation. */
static bool arrange(cgl_recording *recording, const CUgraphNode *from,
                    const CUgraphNode *to, size_t count) {
  size_t n = recording->nops;
  placed *sorted = malloc((n ? n : 1) * sizeof *sorted);
  size_t *edges = malloc((count ? count : 1) * sizeof *edges);
  size_t *first = calloc(n + 2, sizeof *first);
  if (!sorted || !edges || !first) {
    free(sorted);
    free(edges);
    free(first);
    return false;
  }
  for (size_t i = 0; i < n; i++)
    sorted[i] = (placed){recording->ops[i].node, i};
  qsort(sorted, n, sizeof *sorted, by_node);
  for (size_t i = 0; i < count; i++) {
    size_t at = index_of(sorted, n, to[i]);
    if (at != SIZE_MAX)
      first[at + 2]++;
  }
  for (size_t i = 1; i <= n; i++)
    first[i + 1] += first[i];
  /* first[i + 1] is now where run i begins, and moves to its end. */
  for (size_t i = 0; i < count; i++) {
    size_t at = index_of(sorted, n, to[i]);
    if (at != SIZE_MAX)
      edges[first[at + 1]++] = index_of(sorted, n, from[i]);
  }
  free(sorted);
  recording->edges = edges;
  recording->first = first;
  return true;
}


CUresult cgl_recording_learn_edges(cgl_graph *graph) {
  cgl_recording *recording = &graph->recording;
  const cgl_driver *driver = cgl_driver_of(graph);
  if (recording->first || !graph->template)
    return CUDA_SUCCESS;
  size_t count = 0;
  CUresult result =
      driver->cuGraphGetEdges(graph->template, NULL, NULL, NULL, &count);
  if (result)
    return result;
  CUgraphNode *ends = malloc((2 * count + 1) * sizeof *ends);
  CUgraphEdgeData *data = malloc((count + 1) * sizeof *data);
  if (!ends || !data)
    result = CUDA_ERROR_OUT_OF_MEMORY;
  else if (count)
    result = driver->cuGraphGetEdges(graph->template, ends, ends + count, data,
                                     &count);
  if (!result && !arrange(recording, ends, ends + count, count))
    result = CUDA_ERROR_OUT_OF_MEMORY;
  free(ends);
  free(data);
  return result;
}
