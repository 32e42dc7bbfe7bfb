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
#define GUARD_LIMIT 16384 /* of the process: each costs two kernel mappings */

typedef struct warp {
  uint32_t alive;      /* lanes that have not left the kernel */
  uint32_t ready;      /* lanes that can run, the running one excepted */
  uint32_t waiting;    /* lanes in an exchange */
  uint32_t asking;     /* lanes in __activemask */
  uint32_t apart;      /* lanes whose last exchange had only part of the warp */
  uint32_t mask[32];   /* of the exchange a lane waits in */
  uint64_t value[32];  /* what a lane put in */
  uint64_t shared[32]; /* result of the last exchange of all lanes alive */
  const void *site[32]; /* where a lane asks from */
  uint32_t answer[32];
  uint64_t own[32][32]; /* results of exchanges of part of the warp */
} warp;

typedef struct block {
  void (*thunk)(void *const *, uint32_t);
  void *const *params;
  uint32_t nlanes, nwarps;
  uint32_t current;   /* the lane that runs */
  uint32_t main_lane; /* the one on the worker's stack */
  uint32_t nalive;    /* lanes that have not left */
  uint32_t narrived;  /* of them, at the barrier */
  uint32_t sum;       /* of the predicates so far */
  uint32_t released;  /* the sum of the barrier passed last */
  uint32_t nstacks;   /* stacks that are mapped, from 0 */
  uint32_t nguards;   /* of them with a guard page */
  int converted;      /* the block runs as fibers */
  int abort_code;     /* not 0: the main lane is to end the launch */
  char why[512];
  unsigned char *stacks; /* MAX_LANES x (guard page, stack) */
  size_t slot, guard;    /* bytes */
  cgl_lane main_context;
  cgl_lane contexts[MAX_LANES];
  warp warps[MAX_WARPS];
} block;

static CGL_THREAD_LOCAL block *mine;
static atomic_int guards = GUARD_LIMIT;
static cgl_fiber_abort abort_hook;
static cgl_fiber_conditional conditional_hook;

CGL_FIBER_PLAIN static cgl_lane *context_of(block *b, uint32_t lane) {
  return lane == b->main_lane ? &b->main_context : &b->contexts[lane];
}


CGL_FIBER_PLAIN static void switch_to(block *b, uint32_t lane) {
  cgl_lane *from = context_of(b, b->current), *to = context_of(b, lane);
  b->current = lane;
  cgl_lane_switch(from, to);
}


/* Ends the launch from the worker's own stack. */
CGL_FIBER_PLAIN static void end_launch(block *b) {
  int code = b->abort_code;
  b->abort_code = 0;
  b->converted = 0;
  if (!abort_hook)
    abort();
  abort_hook(code, b->why);
}


__attribute__((noreturn)) CGL_FIBER_PLAIN static void
fiber_abort(int code, const char *why) {
  block *b = mine;
  if (!b || !b->converted) {
    if (abort_hook)
      abort_hook(code, why);
    abort();
  }
  b->abort_code = code;
  snprintf(b->why, sizeof b->why, "%s", why);
  if (b->current != b->main_lane)
    switch_to(b, b->main_lane);
  end_launch(b);
  abort();
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
      w->ready |= group;
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


/* Runs another lane; returns when the calling lane is chosen again. */
CGL_FIBER_PLAIN static void yield_lane(block *b) {
  uint32_t i = b->current >> 5;
  uint32_t ready = b->warps[i].ready;
  for (uint32_t n = 0; !ready; n++) {
    if (n > b->nwarps) {
      if (!answer_questions(b))
        fail_divergent(b);
      n = 0;
    }
    i = i + 1 >= b->nwarps ? 0 : i + 1;
    ready = b->warps[i].ready;
  }
  uint32_t lane = i * 32 + (uint32_t)__builtin_ctz(ready);
  b->warps[i].ready = ready & (ready - 1);
  if (lane == b->current)
    return;
  switch_to(b, lane);
  if (b->abort_code)
    end_launch(b);
}


CGL_FIBER_PLAIN static void release_block(block *b) {
  b->narrived = 0;
  b->released = b->sum;
  b->sum = 0;
  for (uint32_t i = 0; i < b->nwarps; i++)
    b->warps[i].ready = b->warps[i].alive;
}


/* True when all lanes that `mask` still has wait with this very mask. */
CGL_FIBER_PLAIN static int is_complete(const warp *w, uint32_t mask) {
  uint32_t members = mask & w->alive;
  if ((w->waiting & members) != members)
    return 0;
  for (uint32_t r = members; r; r &= r - 1)
    if (w->mask[__builtin_ctz(r)] != mask)
      return 0;
  return members != 0;
}


CGL_FIBER_PLAIN static void release_warp(warp *w, uint32_t mask) {
  uint32_t members = mask & w->alive;
  w->waiting &= ~members;
  w->ready |= members;
  uint64_t result[32] = {0};
  for (uint32_t r = members; r; r &= r - 1)
    result[__builtin_ctz(r)] = w->value[__builtin_ctz(r)];
  if (members == w->alive) {
    w->apart &= ~members;
    memcpy(w->shared, result, sizeof result);
    return;
  }
  w->apart |= members;
  for (uint32_t r = members; r; r &= r - 1)
    memcpy(w->own[__builtin_ctz(r)], result, sizeof result);
}


/* A lane leaves the kernel; those that waited for it alone go on. */
CGL_FIBER_PLAIN static void lane_leave(block *b, uint32_t lane) {
  warp *w = &b->warps[lane >> 5];
  w->alive &= ~(1u << (lane & 31));
  b->nalive--;
  if (b->narrived && b->narrived == b->nalive)
    release_block(b);
  for (uint32_t r = w->waiting; r; r &= r - 1) {
    uint32_t mask = w->mask[__builtin_ctz(r)];
    if (is_complete(w, mask))
      release_warp(w, mask);
  }
}


CGL_FIBER_PLAIN static void lane_main(uint32_t lane) {
  block *b = mine;
  cgl_lane_entered(&b->contexts[lane], &b->main_context);
  b->thunk(b->params, lane);
  lane_leave(b, lane);
  cgl_lane_leaving(&b->contexts[lane]);
  if (b->nalive == 0)
    switch_to(b, b->main_lane);
  yield_lane(b);
  abort();
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
   that have not started. */
CGL_FIBER_PLAIN static block *block_convert(uint32_t lane) {
  block *b = mine;
  if (!map_stacks(b, b->nlanes))
    fiber_abort(2, "no memory for the stacks of a block with barriers");
  b->converted = 1;
  b->abort_code = 0;
  b->current = b->main_lane = lane;
  b->nwarps = (b->nlanes + 31) / 32;
  b->nalive = b->nlanes - lane;
  b->narrived = b->sum = 0;
  for (uint32_t i = 0; i < b->nwarps; i++) {
    uint32_t first = i * 32, n = b->nlanes - first;
    uint32_t all = n >= 32 ? ~0u : (1u << n) - 1;
    warp *w = &b->warps[i];
    if (lane >= first + 32)
      all = 0;
    else if (lane > first)
      all &= ~((1u << (lane - first)) - 1);
    w->alive = w->ready = all;
    w->waiting = w->asking = w->apart = 0;
  }
  b->warps[lane >> 5].ready &= ~(1u << (lane & 31));
  for (uint32_t t = lane + 1; t < b->nlanes; t++) {
    /* tops at different cache sets: equal ones would evict each other */
    size_t colour = (t * 7 & 31) * 128;
    unsigned char *bottom = b->stacks + t * b->slot + b->guard;
    cgl_lane_make(&b->contexts[t], bottom, STACK_BYTES - colour, lane_main, t);
  }
  return b;
}


CGL_FIBER_PLAIN static void block_begin(void (*thunk)(void *const *, uint32_t),
                                        void *const *params, uint32_t nlanes) {
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
}


CGL_FIBER_PLAIN static void block_finish(uint32_t lane) {
  block *b = mine;
  if (!b->converted)
    return;
  lane_leave(b, lane);
  if (b->nalive)
    yield_lane(b);
  b->converted = 0;
}


CGL_FIBER_PLAIN static uint32_t block_barrier(uint32_t lane, int predicate) {
  block *b = mine;
  if (!b->converted)
    b = block_convert(lane);
  b->sum += predicate != 0;
  if (++b->narrived == b->nalive) {
    release_block(b);
    b->warps[lane >> 5].ready &= ~(1u << (lane & 31));
  } else
    yield_lane(b);
  return b->released;
}


CGL_FIBER_PLAIN static const uint64_t *
warp_exchange(uint32_t lane, uint32_t mask, uint64_t value) {
  block *b = mine;
  uint32_t bit = 1u << (lane & 31);
  if (!b->converted)
    b = block_convert(lane);
  warp *w = &b->warps[lane >> 5];
  w->value[lane & 31] = value;
  w->mask[lane & 31] = mask;
  w->waiting |= bit;
  if (is_complete(w, mask)) {
    release_warp(w, mask);
    w->ready &= ~bit;
  } else
    yield_lane(b);
  return w->apart & bit ? w->own[lane & 31] : w->shared;
}


CGL_FIBER_PLAIN static uint32_t warp_active(uint32_t lane) {
  block *b = mine;
  if (!b->converted)
    b = block_convert(lane);
  warp *w = &b->warps[lane >> 5];
  w->site[lane & 31] = __builtin_return_address(0);
  w->asking |= 1u << (lane & 31);
  yield_lane(b);
  return w->answer[lane & 31];
}


static void set_conditional(uint64_t handle, uint32_t value) {
  if (conditional_hook)
    conditional_hook(handle, value);
}


const cgl_host_runtime *cgl_fiber_runtime(void) {
  static const cgl_host_runtime table = {
      .abi = CGL_HOST_ABI,
      .begin = block_begin,
      .finish = block_finish,
      .barrier = block_barrier,
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
    cgl_lane_abandoned(&b->main_context);
  b->converted = 0;
  b->abort_code = 0;
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
