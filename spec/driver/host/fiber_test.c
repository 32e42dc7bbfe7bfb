/* The fibers of the host device by themselves: threads are C functions that
   call the runtime as compiled kernels do. */
#include "driver/host/run/fiber.h"

#include <setjmp.h>
#include <string.h>

#include "tap.h"

enum { MOST = 1024, TURNS = 3 };

static const cgl_host_runtime *runtime;
static sigjmp_buf leave;
static int abort_code;
static char abort_why[512];
static uintptr_t abort_frame; /* of the hook */

/* What the threads of a block write and read; `next` is the one that begins. */
static uint32_t next, nthreads, at[MOST], wrong, ended;
static uint64_t seen[MOST];


__attribute__((noreturn)) static void on_abort(int code, const char *why) {
  char here;
  abort_code = code;
  abort_frame = (uintptr_t)&here;
  snprintf(abort_why, sizeof abort_why, "%s", why);
  siglongjmp(leave, 1);
}


/* The code of the abort that ended the block, or 0. */
static int run_with(void (*thunk)(void *), uint32_t n, uint32_t argument) {
  next = wrong = ended = abort_code = 0;
  nthreads = n;
  memset(at, 0, sizeof at);
  memset(seen, 0, sizeof seen);
  if (sigsetjmp(leave, 0) == 0)
    runtime->block(thunk, &argument, n);
  else
    cgl_fiber_reset();
  return abort_code;
}


static int run(void (*thunk)(void *), uint32_t n) {
  return run_with(thunk, n, 7);
}


/* No thread passes a barrier before the others have come to it, and each has
   its own variables after it, in registers too. */
static void thread_barriers(void *argument) {
  const uint32_t me = next++;
  double own[4] = {me, me + 1, me + 2, me + 3};
  for (uint32_t turn = 1; turn <= TURNS; turn++) {
    at[me] = turn;
    runtime->barrier();
    wrong += at[(me + 1) % nthreads] < turn || at[me] != turn;
    runtime->barrier();
    for (int i = 0; i < 4; i++)
      own[i] *= 3;
  }
  for (int i = 0; i < 4; i++)
    wrong += own[i] != 27. * (me + (uint32_t)i);
  wrong += *(uint32_t *)argument != 7;
  ended++;
}


static void test_barriers(void) {
  static const uint32_t sizes[] = {1, 2, 31, 32, 33, 64, 100, 256, 1000, 1024};
  uint32_t bad = 0;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    bad += run(thread_barriers, sizes[i]) || wrong || ended != sizes[i] ||
           next != sizes[i];
  tap_ok(bad == 0, "threads of blocks of any size wait for each other");
}


/* Threads leave before, between and after barriers; the first ones without
   having met any. */
static void thread_leaves(void *argument) {
  const uint32_t me = next++;
  (void)argument;
  for (uint32_t turn = 0; turn < me % 5; turn++) {
    seen[me] = seen[me] * 1000 + runtime->count(me & 1);
  }
  ended++;
}


static void test_leaves(void) {
  enum { N = 200 };
  uint32_t bad = run(thread_leaves, N) || ended != N;
  for (uint32_t i = 0; i < N; i++) {
    uint64_t wanted = 0;
    for (uint32_t turn = 0; turn < i % 5; turn++) {
      uint32_t odd = 0;
      for (uint32_t k = 0; k < N; k++)
        odd += k % 5 > turn && k & 1;
      wanted = wanted * 1000 + odd;
    }
    bad += seen[i] != wanted;
  }
  tap_ok(bad == 0, "threads that leave are waited for no more, nor counted");
}


/* Exchanges of the whole warp, of halves at once, and of the whole again. */
static void thread_exchanges(void *argument) {
  const uint32_t me = next++, lane = me & 31;
  const uint32_t half = lane < 16 ? 0xffff : 0xffff0000;
  (void)argument;
  if (me % 32 == 31 && me > 32)
    return;
  const uint64_t *all = runtime->warp(~0u, me);
  uint64_t sum = 0;
  for (int i = 0; i < 32; i++)
    sum += all[i];
  for (int turn = 0; turn < TURNS; turn++)
    sum = sum * 3 + runtime->warp(half, me + sum)[lane ^ 1];
  seen[me] = sum * 3 + runtime->warp(~0u, sum)[(lane + 1) % 31];
  ended++;
}


static void test_exchanges(void) {
  enum { N = 96 };
  uint64_t sum[N] = {0}, other[N], bad = 0;
  bad += run(thread_exchanges, N) || ended != N - 2;
  for (int i = 0; i < N; i++)
    for (int k = i / 32 * 32; k < i / 32 * 32 + 32; k++)
      sum[i] += k % 32 == 31 && k > 32 ? 0 : (uint64_t)k;
  for (int turn = 0; turn < TURNS; turn++) {
    for (int i = 0; i < N; i++)
      other[i] = (i ^ 1) % 32 == 31 && i > 32 ? 0 : (i ^ 1) + sum[i ^ 1];
    for (int i = 0; i < N; i++)
      sum[i] = sum[i] * 3 + other[i];
  }
  for (int i = 0; i < N; i++) {
    uint64_t wanted = sum[i] * 3 + sum[i / 32 * 32 + (i % 32 + 1) % 31];
    bad += seen[i] != (i % 32 == 31 && i > 32 ? 0 : wanted);
  }
  tap_ok(bad == 0, "a warp exchanges, whole and in parts, without its lanes "
                   "that have left");
}


static void thread_asks(void *argument) {
  const uint32_t me = next++;
  (void)argument;
  if (me % 3 == 0)
    seen[me] = runtime->active();
  runtime->barrier();
  ended++;
}


static void test_active(void) {
  uint32_t bad = run(thread_asks, 64) || ended != 64;
  for (uint32_t i = 0; i < 64; i++) {
    uint32_t wanted = 0;
    for (uint32_t k = i / 32 * 32; i % 3 == 0 && k < i / 32 * 32 + 32; k++)
      wanted |= (uint32_t)(k % 3 == 0) << (k & 31);
    bad += seen[i] != wanted;
  }
  tap_ok(bad == 0, "lanes that ask at one place are active together");
}


static void thread_diverges(void *argument) {
  const uint32_t me = next++;
  (void)argument;
  if (me < 20)
    runtime->barrier();
  else
    runtime->warp(me < 40 ? ~0u : 1u << (me & 31), 0);
  if (me >= 60)
    return;
  runtime->barrier();
}


static void thread_aborts(void *argument) {
  const uint32_t me = next++;
  (void)argument;
  runtime->barrier();
  if (me == at[0])
    runtime->abort(710, "enough");
  runtime->barrier();
}


static void thread_aborts_at_25(void *argument) {
  at[0] = 25;
  thread_aborts(argument);
}


static void test_aborts(void) {
  char here;
  uint32_t bad = 0;
  tap_ok(run(thread_diverges, 64) == 719 &&
             strstr(abort_why, "of the block's 64 threads 40 wait at "
                               "__syncthreads, 20 in a warp operation, 4 have "
                               "left the kernel"),
         "a divergent barrier ends the block: %s", abort_why);
  for (int i = 0; i < 3; i++) {
    bad += run(thread_aborts, 64) != 710 || strcmp(abort_why, "enough");
    bad += run(thread_aborts_at_25, 64) != 710;
    bad += (uintptr_t)&here - abort_frame > 65536;
    bad += run(thread_barriers, 64) || wrong || ended != 64;
  }
  tap_ok(bad == 0, "any thread ends the block, on the worker's own stack");
}


/* What thread t does in a turn, the same whenever it is asked. */
static uint32_t chance(uint32_t what, uint32_t turn, uint32_t t) {
  uint32_t x = at[0] * 2654435761u ^ what * 40503u ^ turn << 20 ^ t << 3;
  x = (x ^ x >> 15) * 2246822519u;
  x = (x ^ x >> 13) * 3266489917u;
  return x ^ x >> 16;
}


/* Leaves t before the turn, or in it, behind its exchanges? */
static bool stays(uint32_t t, uint32_t turn, bool behind) {
  for (uint32_t k = 0; k <= turn; k++)
    if (chance(1, k, t) % 16 == 0 && (k < turn || behind || t % 2))
      return false;
  return true;
}


static uint32_t predicate(uint32_t t, uint32_t turn) {
  return chance(2, turn, t) % 3 ? 0 : chance(3, turn, t) & 6;
}


/* Exchanges in halves of some kind or of whole warps, up to three in a turn;
   then one comes to the barrier, another has it counted. */
static void thread_of_chance(void *argument) {
  const uint32_t me = next++, warp = me / 32, lane = me % 32;
  (void)argument;
  for (uint32_t turn = 0; turn < 6 && stays(me, turn, false); turn++) {
    for (uint32_t k = chance(4, turn, warp) % 4; k > 0; k--) {
      static const uint32_t kinds[] = {~0u, 0xffff, 0x55555555, 0x00ff00ff};
      const uint32_t kind = kinds[chance(5, turn * 4 + k, warp) % 4];
      const uint32_t mask = kind >> lane & 1 ? kind : ~kind;
      const uint64_t *all = runtime->warp(mask, (uint64_t)me * k + turn);
      for (uint32_t i = 0; i < 32; i++) {
        const uint32_t t = warp * 32 + i;
        const bool is = mask >> i & 1 && t < nthreads && stays(t, turn, false);
        wrong += mask >> i & 1 && all[i] != (is ? (uint64_t)t * k + turn : 0);
      }
    }
    if (!stays(me, turn, true))
      break;
    if (predicate(me, turn) || chance(6, turn, me) % 2)
      wrong += runtime->count((int)predicate(me, turn)) != seen[turn];
    else
      runtime->barrier();
  }
  ended++;
}


static void begin_of_chance(void *argument) {
  if (next == 0) {
    at[0] = *(uint32_t *)argument;
    for (uint32_t turn = 0; turn < 6; turn++)
      for (uint32_t t = 0; t < nthreads; t++)
        seen[turn] += stays(t, turn, true) && predicate(t, turn);
  }
  thread_of_chance(argument);
}


static void test_chance(void) {
  uint32_t bad = 0;
  for (uint32_t seed = 0; seed < 300; seed++) {
    const uint32_t n = 1 + seed * 2654435761u % (seed % 16 ? 200 : 1024);
    bad += run_with(begin_of_chance, n, seed) || wrong || ended != n;
  }
  tap_ok(bad == 0,
         "threads of any block that leave, exchange and come to "
         "barriers as it happens: %u blocks are wrong",
         bad);
}


int main(void) {
  runtime = cgl_fiber_runtime();
  cgl_fiber_set_hooks(on_abort, NULL);
  test_barriers();
  test_leaves();
  test_exchanges();
  test_active();
  test_aborts();
  test_chance();
  cgl_fiber_thread_exit();
  tap_ok(run(thread_barriers, 64) == 0 && !wrong, "stacks are made anew");
  cgl_fiber_thread_exit();
  return tap_done();
}
