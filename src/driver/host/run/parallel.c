/* Parallel loops: one worker opens a loop, idle ones help.
   The index space is cut in one slot per participant, so that a loop repeated
   over the same data meets it in the same core's cache; a worker that has
   finished its own slot takes from others.  Loops are entered and left without
   a lock. Invariant of `state`: seats and helpers change by compare-and-swap
   while the loop is open; once closed only helpers falls, and the opener leaves
   when it is 0, so a worker never touches a loop that it has left. */
#include "driver/host/run/run.h"

#include <pthread.h>

enum { MAX_LOOPS = 16, MAX_SLOTS = 32 };
/* A loop whose rest is shorter than this stays on its worker; sleeping workers
   are woken for so much work within so much time. */
enum { SHARE_NS = 2500, WAKE_NS = 20000, WINDOW_NS = 200000 };
/* How long a loop must be for each helper; the least that is claimed at a
   time, since what is taken from another core's cache comes slowly; the trial
   that tells how long a loop is. */
enum { HELPER_NS = 3000, CHUNK_NS = 10000, TRIAL_NS = 600 };

#define OPEN ((uint64_t)1 << 63)
#define SEAT ((uint64_t)1 << 32) /* helpers are counted below, seats above */
#define SEATS(state) ((state) >> 32 & 0xffff)
#define HELPERS(state) ((uint32_t)(state))

typedef struct loop {
  atomic_bool taken; /* by an opener */
  _Atomic uint64_t state;
  void (*body)(void *context, uint64_t first, uint64_t last);
  void *context;
  uint64_t chunk; /* least items per claim */
  unsigned nslots;
  struct {
    _Alignas(64) _Atomic uint64_t at;
    uint64_t end;
  } slot[MAX_SLOTS];
} loop;

static _Alignas(64) loop loops[MAX_LOOPS];
static _Atomic unsigned with_seats; /* loops that have use for a helper */

/* Openers that sleep until their helpers are gone. */
static pthread_mutex_t join_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t join_cond = PTHREAD_COND_INITIALIZER;
static _Atomic unsigned joining;


static bool loop_claim(loop *l, unsigned slot, uint64_t *first,
                       uint64_t *last) {
  uint64_t end = l->slot[slot].end;
  uint64_t at = atomic_load_explicit(&l->slot[slot].at, memory_order_relaxed);
  uint64_t n;
  do {
    if (at >= end)
      return false;
    n = end - at;
    if (n >= 2 * l->chunk)
      n /= 2;
  } while (!atomic_compare_exchange_weak_explicit(&l->slot[slot].at, &at,
                                                  at + n, memory_order_relaxed,
                                                  memory_order_relaxed));
  *first = at;
  *last = at + n;
  return true;
}


/* Runs chunks until all are claimed; returns the number of items that ran. */
static uint64_t loop_work(loop *l) {
  unsigned mine = host_worker_number() % l->nslots;
  uint64_t first, last, items = 0;
  for (unsigned i = 0; i < l->nslots; i++)
    while (loop_claim(l, (mine + i) % l->nslots, &first, &last)) {
      l->body(l->context, first, last);
      items += last - first;
    }
  return items;
}


bool host_parallel_open(void) {
  return atomic_load_explicit(&with_seats, memory_order_relaxed) != 0;
}


static bool loop_enter(loop *l) {
  uint64_t state = atomic_load_explicit(&l->state, memory_order_relaxed);
  do {
    if (!(state & OPEN) || !SEATS(state))
      return false;
  } while (!atomic_compare_exchange_weak(&l->state, &state, state - SEAT + 1));
  if (SEATS(state) == 1)
    atomic_fetch_sub(&with_seats, 1);
  return true;
}


static void loop_leave(loop *l) {
  uint64_t state = atomic_fetch_sub(&l->state, 1);
  if (HELPERS(state) == 1 && atomic_load(&joining)) {
    pthread_mutex_lock(&join_mutex);
    pthread_cond_broadcast(&join_cond);
    pthread_mutex_unlock(&join_mutex);
  }
}


bool host_parallel_help(void) {
  for (int i = 0; i < MAX_LOOPS && host_parallel_open(); i++)
    if (loop_enter(&loops[i])) {
      loop_work(&loops[i]);
      loop_leave(&loops[i]);
      return true;
    }
  return false;
}


/* A loop for the caller to fill; NULL: all are in use. */
static loop *loop_take(void) {
  for (int i = 0; i < MAX_LOOPS; i++)
    if (!atomic_load_explicit(&loops[i].taken, memory_order_relaxed) &&
        !atomic_exchange(&loops[i].taken, true))
      return &loops[i];
  return NULL;
}


/* No one enters any more; waits for those inside. */
static void loop_close(loop *l) {
  uint64_t state = atomic_fetch_and(&l->state, ~OPEN);
  if (SEATS(state))
    atomic_fetch_sub(&with_seats, 1);
  host_spinner spinner = {0};
  while (HELPERS(atomic_load(&l->state))) {
    if (host_spin(&spinner))
      continue;
    pthread_mutex_lock(&join_mutex);
    atomic_fetch_add(&joining, 1);
    while (HELPERS(atomic_load(&l->state)))
      pthread_cond_wait(&join_cond, &join_mutex);
    atomic_fetch_sub(&joining, 1);
    pthread_mutex_unlock(&join_mutex);
  }
  atomic_store(&l->taken, false);
}


/* Cuts [0, count) in a slot per participant; [0, done) has been run. */
static void loop_cut(loop *l, uint64_t count, uint64_t done) {
  uint64_t from = 0;
  for (unsigned i = 0; i < l->nslots; i++) {
    uint64_t to = from + (count - from) / (l->nslots - i);
    uint64_t at = from < done ? done : from;
    atomic_store_explicit(&l->slot[i].at, at < to ? at : to,
                          memory_order_relaxed);
    l->slot[i].end = to;
    from = to;
  }
}


/* Runs growing pieces until they tell what an item takes, in ns. */
static double loop_measure(uint64_t count, uint64_t chunk,
                           void (*body)(void *, uint64_t, uint64_t),
                           void *context, uint64_t *done) {
  uint64_t start = host_now(), took = 0;
  *done = 0;
  while (*done < count && took < TRIAL_NS) {
    uint64_t n = chunk < count - *done ? chunk : count - *done;
    body(context, *done, *done + n);
    *done += n;
    took = host_now() - start;
    chunk *= 2;
  }
  return (double)took / (double)*done;
}


/* The rest of a loop on the calling worker alone; its cost is looked at now
   and then. */
static void loop_run_alone(uint64_t count, uint64_t done,
                           void (*body)(void *, uint64_t, uint64_t),
                           void *context, host_cost *cost) {
  if (done >= count)
    return;
  if (done || ++host_thread_here->loops % 8) {
    body(context, done, count);
    return;
  }
  uint64_t start = host_now();
  body(context, done, count);
  double each = (double)(host_now() - start) / (double)(count - done);
  atomic_store_explicit(cost, (float)each, memory_order_relaxed);
}


/* Wakes sleeping workers for a loop that takes `rest` ns alone: at once when
   it is long, or when short ones come one after the other. */
static void call_helpers(double rest, unsigned count) {
  host_thread *thread = host_thread_here;
  if (host_worker_spinning() >= count)
    return;
  uint64_t now = host_now();
  if (now - thread->since > WINDOW_NS) {
    thread->since = now;
    thread->missed = 0;
  }
  thread->missed += (uint64_t)rest;
  if (thread->missed < WAKE_NS)
    return;
  thread->missed = 0;
  host_worker_wake(count);
}


/* Shares [done, count), items of `each` ns; what an item took this time. */
static double loop_share(loop *l, uint64_t count, uint64_t done, uint64_t chunk,
                         double each) {
  double rest = each * (double)(count - done);
  double least = CHUNK_NS / each, seats = rest / HELPER_NS;
  unsigned most = host_worker_count();
  most = (most < MAX_SLOTS ? most : MAX_SLOTS) - 1;
  l->chunk = least > (double)chunk ? (uint64_t)least : chunk;
  unsigned nseats = seats < 1 ? 1 : seats < most ? (unsigned)seats : most;
  l->nslots = nseats + 1;
  loop_cut(l, count, done);
  atomic_store(&l->state, OPEN | nseats * SEAT);
  atomic_fetch_add(&with_seats, 1);
  call_helpers(rest, nseats);
  uint64_t start = host_now();
  uint64_t items = loop_work(l);
  uint64_t took = host_now() - start;
  loop_close(l);
  return items ? (double)took / (double)items : each;
}


void host_parallel_for(uint64_t count, uint64_t chunk,
                       void (*body)(void *context, uint64_t first,
                                    uint64_t last),
                       void *context, host_cost *cost) {
  uint64_t done = 0;
  if (chunk < 1)
    chunk = 1;
  if (count <= chunk || host_worker_count() < 2) {
    if (count)
      body(context, 0, count);
    return;
  }
  double each = (double)atomic_load_explicit(cost, memory_order_relaxed);
  if (!(each > 0)) {
    each = loop_measure(count, chunk, body, context, &done);
    atomic_store_explicit(cost, (float)each, memory_order_relaxed);
  }
  loop *l = each * (double)(count - done) < SHARE_NS ? NULL : loop_take();
  if (!l) {
    loop_run_alone(count, done, body, context, cost);
    return;
  }
  l->body = body;
  l->context = context;
  each = loop_share(l, count, done, chunk, each);
  atomic_store_explicit(cost, (float)each, memory_order_relaxed);
}
