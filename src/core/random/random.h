/* Generators of random numbers, and draws.
   Idea: every operation that draws takes one number of its generator's
   state, and uses seed and number as Philox's key and half of its counter
   (compile/device_random.h). Seed and offset lie on the device. An operation
   adds to the offset: outside captures the count of draws since the offset
   was moved, in a capture the capture's own count. A graph moves the offset
   itself, by a node at its end, so a replay needs nothing of the host.
   Invariants: a state is used in stream order, last by the stream of
   `clock`; no two operations get the same number; every operation of a
   capture that draws precedes the next barrier and follows the last; a
   generator serves one thread at a time.
   Glossary.
   state: seed and offset, which generators share and graphs keep.
   pending: numbers taken and not added to the device's offset yet.
   stale: of a state: seed and offset are not written to the device yet.
   unread: of a state: a copy on the device gave it a seed that the host has not
   read.
   draw: the numbers that one capture takes of one state.
   barrier: a node that moves the offset inside a capture, or contains such a
   node. */
#ifndef CGL_RANDOM_RANDOM_H
#define CGL_RANDOM_RANDOM_H

#include "core/memory/memory.h"

typedef struct cgl_random_state {
  atomic_int references;
  cgl_buffer *memory; /* owned: seed and offset, 64 bits each */
  uint64_t seed;   /* the device's, unless stale; of no meaning when unread */
  uint64_t offset; /* stale: the offset to be written; else of no meaning */
  uint64_t pending;
  bool stale, unread;
  int captures;     /* count of captures underway that draw from it */
  cgl_clock *clock; /* retained: of the last stream that used `memory` */
  uint64_t tick;    /* of that use; UINT64_MAX: not known */
} cgl_random_state;

struct cgl_generator {
  cgl_object object;
  cgl_random_state *state; /* retained, never NULL */
};

/* What a kernel gets for a cgl_philox parameter. */
typedef struct cgl_philox {
  uint64_t state, operation, position, seed;
} cgl_philox;

typedef struct cgl_draw {
  cgl_random_state *state; /* retained */
  bool capturing;          /* counted among the state's captures */
  bool used;               /* else only registered */
  bool written;            /* the state is copied to */
  uint64_t count;          /* numbers taken since the barrier */
  CUgraphNode barrier;     /* the last barrier, or NULL */
  CUgraphNode *nodes;      /* nodes that took numbers since the barrier */
  size_t nnodes, nodes_size;
  struct cgl_draw *next; /* of the graph */
} cgl_draw;

/* ---- generator.c ---- */

cgl_random_state *cgl_random_state_retain(cgl_random_state *state);
void cgl_random_state_release(cgl_random_state *state); /* NULL is fine */
/* Before work of `stream`, which does not capture, uses the state's memory:
   orders the work after the last use, writes a stale state, and with `flush`
   adds pending numbers.  Usually there is nothing to do. */
cgl_status cgl_random_state_ready(cgl_random_state *state, cgl_stream *stream,
                                  bool flush, const char *operation);
/* Seed and offset, in the entered context; waits for the device unless the host
   knows them. */
cgl_status cgl_random_state_read(cgl_random_state *state, cgl_stream *stream,
                                 const char *operation, uint64_t words[2]);
/* After that work was issued. */
static inline void cgl_random_state_used(cgl_random_state *state) {
  state->tick = cgl_clock_now(state->clock);
}

/* ---- draw.c ---- */

/* Before an operation of `stream`, on the generator's device, that draws: the
   `before`-th parameter of its launch that takes a generator.  Eager: makes the
   state ready; in a capture: makes room and lets the operation follow the
   barrier. */
cgl_status cgl_draw_begin(cgl_generator *generator, cgl_stream *stream,
                          size_t before, const char *operation,
                          cgl_philox *philox);
/* After the operation was issued and noted: takes the number. */
cgl_status cgl_draw_end(cgl_generator *generator, cgl_stream *stream,
                        const char *operation);
/* Adds the state to the draws of a graph, unless it is there; `capturing`: the
   graph's capture is underway.  *draw is borrowed. */
cgl_status cgl_draw_register(cgl_draw **draws, cgl_random_state *state,
                             bool capturing, const char *operation,
                             cgl_draw **draw);
/* After the driver has ended the capture: adds the nodes that move the offsets.
   cuGraphAddNode */
cgl_status cgl_draws_close(cgl_draw *draws, cgl_capture *capture, CUgraph graph,
                           const char *operation);
/* The capture is over, well or not. */
void cgl_draws_end_capture(cgl_draw *draws);
/* Before `stream` replays a graph with these draws. */
cgl_status cgl_draws_ready(cgl_draw *draws, cgl_stream *stream,
                           const char *operation);
/* Bracket work of `stream` that reads the state's memory, or with `write`
   replaces the state.  Eager: the state is ready, with pending numbers added.
   In a capture: the offset is moved past the draws so far, and the next draw
   follows the work. */
cgl_status cgl_draw_enter(cgl_random_state *state, cgl_stream *stream,
                          const char *operation);
void cgl_draw_leave(cgl_random_state *state, cgl_stream *stream, bool write);
/* The same around a node of the capture of `stream`, for all states of the
   child graph or body in it. */
cgl_status cgl_draws_enter_child(const cgl_draw *child, cgl_stream *stream,
                                 const char *operation);
void cgl_draws_leave_child(const cgl_draw *child, cgl_stream *stream,
                           CUgraphNode node);
void cgl_draws_free(cgl_draw *draws);

/* ---- fill.c ---- */

/* X(word, what is compiled with it, values of a position) */
#define CGL_FILLS(X)                 \
  X(set, STATE, 0)                   \
  X(advance, STATE, 0)               \
  X(set_conditional, CONDITIONAL, 0) \
  X(set_words, CONDITIONAL, 0)       \
  X(set_turn, CONDITIONAL, 0)        \
  X(uniform_float, UNIFORM, 4)       \
  X(uniform_double, UNIFORM, 2)      \
  X(uniform_half, UNIFORM, 4)        \
  X(uniform_bfloat16, UNIFORM, 4)    \
  X(normal_float, NORMAL, 4)         \
  X(normal_double, NORMAL, 2)        \
  X(normal_half, NORMAL, 4)          \
  X(normal_bfloat16, NORMAL, 4)      \
  X(random_8, RANDOM, 4)             \
  X(random_16, RANDOM, 4)            \
  X(random_32, RANDOM, 4)            \
  X(random_64, RANDOM, 4)            \
  X(random_wide, RANDOM, 2)

typedef enum cgl_fill {
#define X(word, part, each) CGL_FILL_##word,
  CGL_FILLS(X)
#undef X
      CGL_FILL_COUNT
} cgl_fill;

/* All of them: part PART_... of each, and what they are compiled from. */
extern const struct cgl_own cgl_fill_own;
/* What follows from the bounds of a draw, of which some are parameters. */
extern const cgl_rule cgl_fill_uniform_rule, cgl_fill_normal_rule,
    cgl_fill_random_rule;
/* Whether the rule is that of fill `index` of such elements. */
bool cgl_fill_takes(const cgl_rule *rule, size_t index, unsigned element);
/* The kernel, compiled and loaded at first use in the context.  Legal in
   captures.  cuModuleLoadData */
cgl_status cgl_fill_kernel(cgl_context *context, cgl_fill fill,
                           const char *operation, CUfunction *kernel);
/* Of a kernel that cgl_fill_kernel has given, borrowed from the context. */
cgl_waiter *cgl_fill_waiter(const cgl_context *context, cgl_fill fill);
/* Writes `n` parameters of such a kernel, 8 bytes each, 16 bytes apart, as in a
   recording; returns the bytes written. */
size_t cgl_fill_pack(unsigned char *values, void **params, size_t n);
#endif
