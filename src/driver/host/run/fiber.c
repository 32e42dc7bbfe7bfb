#define _GNU_SOURCE
#include "driver/host/run/fiber.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "driver/host/run/fiber_switch.h"
#include "driver/thread.h"

#define MAX_LANES 1024
#define MAX_WARPS (MAX_LANES / 32)
#define STACK_BYTES 65536u
#define EXPECTED 4        /* lanes whose stacks are on their way to the cache */
#define GUARD_LIMIT 16384 /* of the process: each costs two kernel mappings */

typedef struct warp {
  uint32_t waiting;  /* lanes in an exchange */
  uint32_t asking;   /* lanes in __activemask */
  uint32_t apart;    /* lanes whose last exchange had only part of the warp */
  uint32_t usual;    /* the mask of the last exchange */
  uint32_t differs;  /* what of it the masks of waiting lanes have otherwise */
  uint32_t mask[32]; /* of the exchange a lane waits in */
  uint64_t *values;  /* one of `sides`: what lanes put in */
  uint64_t *shared;  /* the other: of the last exchange of all lanes */
  uint64_t sides[2][32];
  const void *site[32]; /* where a lane asks from */
  uint32_t answer[32];
  uint64_t own[32][32]; /* results of exchanges of part of the warp */
} warp;

/* Invariant: while lanes below run_end are chosen, lanes that have not arrived
   at the barrier are among them, so that none of a run's arrivals can be the
   block's last but that of its last lane.  They are counted when the run ends:
   what a lane does at a barrier is to go on with the next. */
typedef struct block {
  uint32_t current;   /* the lane that runs */
  uint32_t run_end;   /* those after it, below this, are next: chosen already */
  uint32_t uncounted; /* lanes from here on have stopped since the last count */
  uint32_t elsewhere; /* of those, how many not at the barrier */
  uint32_t begun;     /* lanes below have begun, in their order */
  uint32_t narrived;  /* lanes at the barrier that are counted */
  uint32_t nalive;    /* lanes that have not left; 0 before the first barrier */
  uint32_t sum;       /* of the predicates so far */
  uint32_t released;  /* the sum of the barrier passed last */
  uint32_t main_lane; /* the one on the stack the block began on */
  int converted;      /* the block runs as fibers */
  uint32_t ready[MAX_WARPS]; /* lanes that can go on and are not chosen */
  uint32_t alive[MAX_WARPS]; /* lanes that have not left the kernel */
  uint32_t nlanes, nwarps;
  void (*thunk)(void *);
  void *params;
  uint32_t nstacks; /* stacks that are mapped, from 0 */
  uint32_t nguards; /* of them with a guard page */
  int abort_code;
  char why[512];
  unsigned char *stacks; /* MAX_LANES x (guard page, stack) */
  size_t slot, guard;    /* bytes */
  cgl_lane contexts[MAX_LANES + EXPECTED];
  warp warps[MAX_WARPS];
} block;

static CGL_THREAD_LOCAL block *mine;
static atomic_int guards = GUARD_LIMIT;
static cgl_fiber_abort abort_hook;
static cgl_fiber_conditional conditional_hook;


/* Ends the launch from the stack of the block. */
CGL_FIBER_PLAIN static void end_launch(void) {
  block *b = mine;
  cgl_lane_entered(&b->contexts[b->main_lane], &b->contexts[b->main_lane]);
  b->converted = 0;
  abort_hook(b->abort_code, b->why);
}


__attribute__((noreturn)) CGL_FIBER_PLAIN static void
fiber_abort(int code, const char *why) {
  block *b = mine;
  if (!abort_hook)
    abort();
  if (!b || !b->converted || b->current == b->main_lane) {
    if (b)
      b->converted = 0;
    abort_hook(code, why);
  }
  b->abort_code = code;
  snprintf(b->why, sizeof b->why, "%s", why);
  cgl_lane_end(&b->contexts[b->main_lane], end_launch);
}


/* Lanes in __activemask go on when nothing else can: those that ask from
   one place are then the lanes that really are together there. */
CGL_FIBER_PLAIN static int answer_questions(block *b) {
  int answered = 0;
  for (uint32_t i = 0; i < b->nwarps; i++) {
    warp *w = &b->warps[i];
    while (w->asking) {
      const void *site = w->site[__builtin_ctz(w->asking)];
      uint32_t group = 0;
      for (uint32_t r = w->asking; r; r &= r - 1)
        if (w->site[__builtin_ctz(r)] == site)
          group |= r & (0u - r);
      for (uint32_t r = group; r; r &= r - 1)
        w->answer[__builtin_ctz(r)] = group;
      w->asking &= ~group;
      b->ready[i] |= group;
      answered = 1;
    }
  }
  return answered;
}


__attribute__((noreturn)) CGL_FIBER_PLAIN static void fail_divergent(block *b) {
  char why[256];
  uint32_t exchanging = 0;
  for (uint32_t i = 0; i < b->nwarps; i++)
    exchanging += (uint32_t)__builtin_popcount(b->warps[i].waiting);
  snprintf(why, sizeof why,
           "divergent barrier: of the block's %u threads %u wait at "
           "__syncthreads, %u in a warp operation, %u have left the kernel",
           b->nlanes, b->narrived, exchanging, b->nlanes - b->nalive);
  fiber_abort(719, why);
}


static cgl_lane_choice lane_left(void);

#ifdef CGL_FIBER_ASAN
CGL_FIBER_PLAIN static void lane_main(void *params) {
  block *b = mine;
  cgl_lane_entered(&b->contexts[b->current], &b->contexts[b->main_lane]);
  b->thunk(params);
}
#endif


/* The next lane is to begin, on a stack of its own. */
CGL_FIBER_PLAIN static inline cgl_lane_choice begin_lane(block *b) {
  uint32_t lane = b->begun;
  /* tops at different cache sets: equal ones would evict each other */
  size_t colour = (lane * 7 & 31) * 128;
  unsigned char *bottom = b->stacks + lane * b->slot + b->guard;
  b->begun = lane + 1;
  b->current = b->uncounted = lane;
  b->run_end = 0;
  cgl_lane_make(&b->contexts[lane], bottom, STACK_BYTES - colour,
                (cgl_lane_start){b->params, lane_left});
#ifdef CGL_FIBER_ASAN
  return (cgl_lane_choice){&b->contexts[lane], lane_main};
#else
  return (cgl_lane_choice){&b->contexts[lane], b->thunk};
#endif
}


/* Chooses the lanes from the first ready one of warp i on, and those of the
   next warps if that leaves none: one after the other they go on. */
CGL_FIBER_PLAIN static cgl_lane_choice choose_run(block *b, uint32_t i) {
  uint32_t first = (uint32_t)__builtin_ctz(b->ready[i]);
  uint32_t rest = ~(b->ready[i] >> first);
  uint32_t n = rest ? (uint32_t)__builtin_ctz(rest) : 32;
  b->current = b->uncounted = i * 32 + first;
  b->run_end = b->current + n;
  b->ready[i] &= first + n < 32 ? ~0u << (first + n) : 0;
  for (; !b->ready[i] && b->run_end == (i + 1) * 32 && i + 1 < b->nwarps; i++) {
    uint32_t others = ~b->ready[i + 1];
    n = others ? (uint32_t)__builtin_ctz(others) : 32;
    b->ready[i + 1] &= n < 32 ? ~0u << n : 0;
    b->run_end += n;
  }
  return (cgl_lane_choice){&b->contexts[b->current], NULL};
}


/* Tries the current lane's warp first. */
__attribute__((noinline)) CGL_FIBER_PLAIN static cgl_lane_choice
find_lane(block *b) {
  uint32_t i = b->current >> 5;
  uint32_t fresh = b->begun < b->nlanes ? b->begun >> 5 : MAX_WARPS;
  for (uint32_t n = 0; !b->ready[i]; n++) {
    if (i == fresh)
      return begin_lane(b);
    if (n > b->nwarps) {
      if (!answer_questions(b))
        fail_divergent(b);
      n = 0;
    }
    i = i + 1 >= b->nwarps ? 0 : i + 1;
  }
  return choose_run(b, i);
}


/* Up to the current lane, which has stopped. */
CGL_FIBER_PLAIN static inline void count_arrivals(block *b) {
  b->narrived += b->current + 1 - b->uncounted - b->elsewhere;
  b->uncounted = b->current + 1;
  b->elsewhere = 0;
}


CGL_FIBER_PLAIN static inline cgl_lane_choice choose_lane(block *b) {
  uint32_t lane = b->current + 1;
  if (lane < b->run_end) {
    b->current = lane;
    return (cgl_lane_choice){&b->contexts[lane], NULL};
  }
  count_arrivals(b);
  if (lane == b->begun && lane < b->nlanes)
    return begin_lane(b);
  return find_lane(b);
}


__attribute__((noinline)) CGL_FIBER_PLAIN static void yield_slowly(block *b) {
  cgl_lane *from = &b->contexts[b->current];
  cgl_lane_choice next = choose_lane(b);
  if (next.to != from) /* or else it asked, and was answered at once */
    cgl_lane_switch(from, next.to, next.begin);
}


/* Goes on with the next lane of the run. */
CGL_FIBER_PLAIN static inline void go_on(block *b, uint32_t lane) {
  b->current = lane;
  cgl_lane_expect(&b->contexts[lane + EXPECTED]);
  cgl_lane_switch(&b->contexts[lane - 1], &b->contexts[lane], NULL);
}


/* Runs another lane, not for a barrier; returns when the calling lane is chosen
   again. */
CGL_FIBER_PLAIN static inline void yield_lane(block *b) {
  uint32_t lane = b->current + 1;
  b->elsewhere++;
  if (lane < b->run_end)
    go_on(b, lane);
  else
    yield_slowly(b);
}


CGL_FIBER_PLAIN static void release_block(block *b) {
  b->narrived = 0;
  b->released = b->sum;
  b->sum = 0;
  for (uint32_t i = 0; i < b->nwarps; i++)
    b->ready[i] = b->alive[i];
}


/* True when all lanes that `mask` still has wait with this very mask. */
CGL_FIBER_PLAIN static int is_complete(const warp *w, uint32_t alive,
                                       uint32_t mask) {
  uint32_t members = mask & alive;
  if ((w->waiting & members) != members)
    return 0;
  if (!w->differs)
    return members != 0;
  for (uint32_t r = members; r; r &= r - 1)
    if (w->mask[__builtin_ctz(r)] != mask)
      return 0;
  return members != 0;
}


/* What lanes that are gone have put in counts no more. */
CGL_FIBER_PLAIN static void forget_values(uint64_t *values, uint32_t members) {
  for (uint32_t r = ~members; r; r &= r - 1)
    values[__builtin_ctz(r)] = 0;
}


/* An exchange of all lanes alive takes its side of the values with it: the next
   one puts into the other. */
CGL_FIBER_PLAIN static void release_warp(block *b, uint32_t i, uint32_t mask) {
  warp *w = &b->warps[i];
  uint32_t members = mask & b->alive[i];
  w->waiting &= ~members;
  b->ready[i] |= members;
  if (!w->waiting) {
    w->usual = mask;
    w->differs = 0;
  }
  if (members == b->alive[i]) {
    w->apart = 0;
    w->shared = w->values;
    w->values = w->sides[w->values == w->sides[0]];
    forget_values(w->shared, members);
    return;
  }
  w->apart |= members;
  for (uint32_t r = members; r; r &= r - 1) {
    uint64_t *own = w->own[__builtin_ctz(r)];
    memcpy(own, w->values, sizeof w->sides[0]);
    forget_values(own, members);
  }
}


/* Those that waited for a lane that has left go on. */
__attribute__((noinline)) CGL_FIBER_PLAIN static void
lane_release_others(block *b) {
  uint32_t i = b->current >> 5;
  warp *w = &b->warps[i];
  if (b->narrived && b->narrived == b->nalive)
    release_block(b);
  for (uint32_t r = w->waiting; r; r &= r - 1) {
    uint32_t mask = w->mask[__builtin_ctz(r)];
    if (w->waiting >> __builtin_ctz(r) & 1 && is_complete(w, b->alive[i], mask))
      release_warp(b, i, mask);
  }
}


CGL_FIBER_PLAIN static inline void lane_leave(block *b) {
  uint32_t i = b->current >> 5;
  b->alive[i] &= ~(1u << (b->current & 31));
  b->nalive--;
  b->elsewhere++;
  if (b->current + 1 >= b->run_end)
    count_arrivals(b);
  if (b->narrived | b->warps[i].waiting)
    lane_release_others(b);
}


CGL_FIBER_PLAIN static cgl_lane_choice lane_left(void) {
  block *b = mine;
  lane_leave(b);
  cgl_lane_choice next = {&b->contexts[b->main_lane], NULL};
  if (b->nalive)
    next = choose_lane(b);
  else
    b->current = b->main_lane;
  cgl_lane_leaving(next.to);
  return next;
}


/* A new state for the calling thread, its stacks reserved, none mapped. */
static block *new_block(void) {
  block *b = mmap(NULL, sizeof *b, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (b == MAP_FAILED)
    return NULL;
  b->guard = (size_t)sysconf(_SC_PAGESIZE);
  b->slot = b->guard + STACK_BYTES;
  b->stacks = mmap(NULL, MAX_LANES * b->slot + b->guard, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (b->stacks == MAP_FAILED) {
    munmap(b, sizeof *b);
    return NULL;
  }
  return b;
}


/* Makes the first n stacks usable.  When the process has spent its guard
   pages, further stacks are mapped without: a system that runs out of
   mappings would fail far from here. */
static int map_stacks(block *b, uint32_t n) {
  while (b->nstacks < n) {
    unsigned char *slot = b->stacks + b->nstacks * b->slot;
    int guarded =
        b->nguards == b->nstacks &&
        atomic_fetch_sub_explicit(&guards, 1, memory_order_relaxed) > 0;
    if (!guarded && b->nguards == b->nstacks)
      atomic_fetch_add_explicit(&guards, 1, memory_order_relaxed);
    size_t skip = guarded ? b->guard : 0;
    if (mprotect(slot + skip, b->slot - skip, PROT_READ | PROT_WRITE) != 0) {
      if (guarded)
        atomic_fetch_add_explicit(&guards, 1, memory_order_relaxed);
      return 0;
    }
    b->nguards += (uint32_t)guarded;
    b->nstacks++;
  }
  return 1;
}


/* The running thread becomes the main lane, those after it become fibers
   that have not begun. */
__attribute__((noinline)) CGL_FIBER_PLAIN static void block_convert(block *b) {
  uint32_t lane = b->current;
  if (!map_stacks(b, b->nlanes))
    fiber_abort(2, "no memory for the stacks of a block with barriers");
  b->converted = 1;
  b->main_lane = lane;
  b->begun = lane + 1;
  b->uncounted = lane;
  b->elsewhere = b->narrived = 0;
  b->nwarps = (b->nlanes + 31) / 32;
  b->nalive = b->nlanes - lane;
  for (uint32_t i = 0; i < b->nwarps; i++) {
    uint32_t first = i * 32, n = b->nlanes - first;
    uint32_t all = n >= 32 ? ~0u : (1u << n) - 1;
    warp *w = &b->warps[i];
    if (lane >= first + 32)
      all = 0;
    else if (lane > first)
      all &= ~((1u << (lane - first)) - 1);
    b->alive[i] = all;
    b->ready[i] = 0;
    w->waiting = w->asking = w->apart = 0;
    w->values = w->sides[0];
    w->usual = w->differs = 0;
  }
  cgl_lane_make_main(&b->contexts[lane]);
}


/* Runs a block's threads one after the other, until one meets a barrier. */
CGL_FIBER_PLAIN static void block_run(void (*thunk)(void *), void *params,
                                      uint32_t nlanes) {
  block *b = mine;
  if (!b) {
    b = mine = new_block();
    if (!b)
      fiber_abort(2, "no memory for the state of a kernel with barriers");
  }
  b->thunk = thunk;
  b->params = params;
  b->nlanes = nlanes;
  b->converted = 0;
  b->nalive = b->run_end = b->sum = 0;
  for (uint32_t lane = 0; lane < nlanes && !b->converted; lane++) {
    b->current = lane;
    thunk(params);
  }
  if (!b->converted)
    return;
  lane_leave(b);
  if (b->nalive)
    yield_slowly(b);
  b->converted = 0;
}


/* The last lane of a run, or one of a block that is not of fibers yet. */
__attribute__((noinline)) CGL_FIBER_PLAIN static void barrier_slowly(block *b) {
  if (!b->converted)
    block_convert(b);
  count_arrivals(b);
  if (b->narrived < b->nalive) {
    yield_slowly(b);
    return;
  }
  release_block(b);
  b->ready[b->current >> 5] &= ~(1u << (b->current & 31));
  b->uncounted = b->current;
}


CGL_FIBER_PLAIN static void block_barrier(void) {
  block *b = mine;
  uint32_t lane = b->current + 1;
  if (lane < b->run_end)
    go_on(b, lane);
  else
    barrier_slowly(b);
}


CGL_FIBER_PLAIN static uint32_t block_count(int predicate) {
  block *b = mine;
  b->sum += predicate != 0;
  block_barrier();
  return b->released;
}


CGL_FIBER_PLAIN static const uint64_t *warp_exchange(uint32_t mask,
                                                     uint64_t value) {
  block *b = mine;
  if (!b->converted)
    block_convert(b);
  uint32_t i = b->current >> 5, lane = b->current & 31, bit = 1u << lane;
  warp *w = &b->warps[i];
  w->values[lane] = value;
  w->mask[lane] = mask;
  w->differs |= w->usual ^ mask;
  w->waiting |= bit;
  if (is_complete(w, b->alive[i], mask)) {
    release_warp(b, i, mask);
    b->ready[i] &= ~bit;
  } else
    yield_lane(b);
  return w->apart & bit ? w->own[lane] : w->shared;
}


CGL_FIBER_PLAIN static uint32_t warp_active(void) {
  block *b = mine;
  if (!b->converted)
    block_convert(b);
  uint32_t lane = b->current & 31;
  warp *w = &b->warps[b->current >> 5];
  w->site[lane] = __builtin_return_address(0);
  w->asking |= 1u << lane;
  yield_lane(b);
  return w->answer[lane];
}


static void set_conditional(uint64_t handle, uint32_t value) {
  if (conditional_hook)
    conditional_hook(handle, value);
}


const cgl_host_runtime *cgl_fiber_runtime(void) {
  static const cgl_host_runtime table = {
      .abi = CGL_HOST_ABI,
      .block = block_run,
      .barrier = block_barrier,
      .count = block_count,
      .warp = warp_exchange,
      .active = warp_active,
      .abort = fiber_abort,
      .set_conditional = set_conditional,
  };
  return &table;
}


void cgl_fiber_set_hooks(cgl_fiber_abort abort_launch,
                         cgl_fiber_conditional conditional) {
  abort_hook = abort_launch;
  conditional_hook = conditional;
}


void cgl_fiber_reset(void) {
  block *b = mine;
  if (!b || !b->converted)
    return;
  if (b->current != b->main_lane)
    cgl_lane_abandoned(&b->contexts[b->main_lane]);
  b->converted = 0;
}


void cgl_fiber_thread_exit(void) {
  block *b = mine;
  mine = NULL;
  if (!b)
    return;
  atomic_fetch_add_explicit(&guards, (int)b->nguards, memory_order_relaxed);
  munmap(b->stacks, MAX_LANES * b->slot + b->guard);
  munmap(b, sizeof *b);
}


int cgl_fiber_is_guard(const void *address) {
  const block *b = mine;
  const unsigned char *at = address;
  if (!b || at < b->stacks || at >= b->stacks + MAX_LANES * b->slot)
    return 0;
  size_t offset = (size_t)(at - b->stacks);
  return offset % b->slot < b->guard && offset / b->slot < b->nguards;
}
