/* Replay loops: an executable in which the graph stands many times over.
   Idea: between two nodes the device waits for less time than between two
   launches, so replays of a small graph run faster as copies in one executable.
   The copies are built from the recording, which has what the capture had, the
   nodes that move a generator's offset included, so copies draw what replays
   draw, and a change of a node needs nothing but another executable.
   Where a launch is not what a replay waits for, copies save nothing: a graph
   has none unless the blocks of each of its kernels fit the device at once, and
   its copies and fills are small.
   Invariants: the copies do what the graph's executable does, or there are
   none: whatever changes a node drops them, and a graph whose handles the
   script has, or with a node that is off, has none in use; replays of the graph
   do not overlap, as if it had one executable. */
#include "core/graph/build.h"

/* Nodes of the executable, with those of its child graphs: more of them hide no
   more of a launch. */
enum { MOST_NODES = 64 };
/* Fewer copies are not worth an executable: the launches of such a graph are
   hidden behind its nodes. */
enum { LEAST_COPIES = 4 };
/* Bytes that a copy or a fill moves in the time of a launch. */
enum { MOST_BYTES = 64 << 10 };
/* Replays, in calls of at least as many as copies of one node, after which the
   executable is built.  That takes about as long as 250 of them save, and 700
   in a graph with copies or branches. */
enum { LEAST_REPLAYS = 1000 };
/* A change that comes before as many replays of copies doubles what the next
   executable needs, up to this. */
enum { MOST_NEEDED = 1 << 20 };


static bool op_is_short(const cgl_recording *recording, const cgl_op *op) {
  switch (op->kind) {
  case CGL_OP_KERNEL:
    return op->fits;
  case CGL_OP_MEMCPY:
  case CGL_OP_MEMSET:
    return cgl_record_ranges(recording, op)->bytes <= MOST_BYTES;
  case CGL_OP_CALL: /* what waits for others waits as long in copies */
    return !((const cgl_call_captured *)op->object)->on_host;
  default:
    return op->kind == CGL_OP_GRAPH;
  }
}


/* Adds the nodes of a recording and its bodies.  False when they are too many,
   or not short, for events, which other streams wait for once per launch, for
   conditional nodes, and for foreign nodes, of which nothing is known. */
static bool unroll_count(const cgl_recording *recording, size_t *nodes) {
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_op *op = cgl_record_op(recording, i);
    if (!op_is_short(recording, op) || ++*nodes > MOST_NODES / LEAST_COPIES ||
        (op->body &&
         !unroll_count(cgl_record_body(recording, op->body - 1), nodes)))
      return false;
  }
  return true;
}


/* Builds the executable, or fails without a word: single launches do the same.
 */
static void unroll_build(cgl_graph *graph, const char *operation) {
  cgl_unroll *unroll = &graph->unroll;
  size_t nodes = 0;
  CUgraph line;
  unroll->least = UINT64_MAX;
  unroll->replays = 0;
  if (!unroll_count(graph->recording, &nodes) || !nodes)
    return;
  unroll->copies = MOST_NODES / nodes;
  cgl_fail_quiet(true);
  if (!cgl_graph_learn(graph, operation) &&
      !cgl_build_graph(graph->object.context, graph->recording, unroll->copies,
                       operation, &line)) {
    cgl_graph_new_executable(graph, line, operation, &unroll->executable);
    cgl_driver_of(graph)->cuGraphDestroy(line);
  }
  cgl_fail_quiet(false);
}


cgl_status cgl_graph_unroll_begin(cgl_graph *graph, cgl_stream *stream,
                                  uint64_t count, const char *operation,
                                  const cgl_executable **copies) {
  cgl_unroll *unroll = &graph->unroll;
  const bool moved = unroll->clock && unroll->clock != stream->clock;
  *copies = NULL;
  /* An engine may capture its stream, which nothing can be ordered after.  A
     deadline is for one replay. */
  if (!stream->clock->borrowed && !stream->isolated &&
      !(moved && unroll->clock->borrowed) && !unroll->shown &&
      !cgl_record_noff(graph->recording)) {
    if (count >= unroll->least && (unroll->replays += count) >= unroll->needed)
      unroll_build(graph, operation);
    if (unroll->executable && count >= unroll->copies) {
      *copies = unroll->executable;
      unroll->replays += count;
    }
  }
  const uint64_t number = *copies ? (*copies)->number : 0;
  return moved && count && number != unroll->number
             ? cgl_clock_order(stream, unroll->clock, operation)
             : CGL_OK;
}


CUresult cgl_graph_unroll_launch(const cgl_graph *graph, CUstream stream,
                                 const cgl_executable *copies, uint64_t count,
                                 uint64_t *launched) {
  const cgl_driver *driver = cgl_driver_of(graph);
  const uint64_t each = graph->unroll.copies;
  CUresult result = CUDA_SUCCESS;
  for (; !result && count - *launched >= each; *launched += result ? 0 : each)
    result = cgl_graph_launch_next(driver, copies->exec, stream, *launched);
  return result;
}


void cgl_graph_unroll_end(cgl_graph *graph, const cgl_stream *stream,
                          const cgl_executable *copies, uint64_t count,
                          uint64_t launched) {
  cgl_unroll *unroll = &graph->unroll;
  if (!launched)
    return;
  unroll->number =
      copies && launched <= count - count % unroll->copies ? copies->number : 0;
  if (unroll->clock == stream->clock)
    return;
  cgl_clock_release(unroll->clock);
  unroll->clock = cgl_clock_retain(stream->clock);
}


void cgl_graph_unroll_drop(cgl_graph *graph) {
  cgl_unroll *unroll = &graph->unroll;
  cgl_executable *before = unroll->executable;
  const bool early = before && unroll->replays < LEAST_REPLAYS;
  if (early && unroll->needed < MOST_NEEDED)
    unroll->needed *= 2;
  else if (!unroll->needed || (before && !early))
    unroll->needed = LEAST_REPLAYS;
  unroll->executable = NULL;
  unroll->replays = 0;
  unroll->least =
      graph->options.unroll == CGL_OPTION_OFF ? UINT64_MAX : MOST_NODES;
  if (before)
    cgl_object_release(&before->object);
}
