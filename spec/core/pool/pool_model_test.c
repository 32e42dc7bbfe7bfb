/* Random operations on pools beside the model of pool_model.h, on a device
   with little memory when it is the host device:
   pool_model_test [OPERATIONS [SEED]]; half of them by one thread, half by
   several at once. */
#include "core/pool/pool_model.h"
#include "tap.h"

#include <stdio.h>
#include <stdlib.h>

#ifdef CGL_DEBUG
enum { OPERATIONS = 40000 }; /* each looks at whole pools */
#else
enum { OPERATIONS = 400000 };
#endif
enum { THREADS = MODEL_THREADS, LOOK = 4096 };

/* The model uses live buffers on any stream in no order, as a script must not:
   under ThreadSanitizer those fills are no finding.  Memory that is reused too
   soon is what the model itself looks for. */
__attribute__((visibility("default"))) const char *
__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void) {
  return "race:fill_row\n";
}


typedef struct dice {
  model_source source;
  uint64_t state;
} dice;


static bool roll(model_source *source, uint8_t *byte) {
  dice *d = (dice *)source;
  d->state = d->state * UINT64_C(6364136223846793005) + 1442695040888963407;
  *byte = (uint8_t)(d->state >> 56);
  return true;
}


typedef struct job {
  pthread_t thread;
  model_world *world;
  uint64_t operations, seed;
  int index;
  bool alone, entered;
} job;


static void *work(void *job_) {
  job *j = job_;
  dice d = {{roll, NULL}, j->seed};
  model_thread t;
  j->entered = !model_enter(&t, j->world, j->index, j->alone, &d.source);
  for (uint64_t n = 0; n < j->operations && j->entered; n++) {
    model_step(&t);
    if (n % LOOK == 0)
      model_look(&t);
    if (n % LOOK == 0 && *j->world->wrong)
      break;
  }
  model_leave(&t);
  return NULL;
}


static void run(int threads, uint64_t operations, uint64_t seed) {
  model_world world;
  job jobs[THREADS];
  bool started = !model_open(&world);
  for (int i = 0; i < threads; i++)
    jobs[i] = (job){.world = &world,
                    .operations = operations / threads,
                    .seed = seed * 977 + i,
                    .index = i,
                    .alone = threads == 1};
  for (int i = 0; i < threads && started; i++)
    pthread_create(&jobs[i].thread, NULL, work, &jobs[i]);
  for (int i = 0; i < threads && started; i++)
    pthread_join(jobs[i].thread, NULL);
  for (int p = 0; p < MODEL_POOLS && started; p++)
    if (!cgl_pool_is_valid(world.pools[p]))
      model_wrong(&world, "pool %d is not valid in the end", p);
  tap_ok(started && !*world.wrong && world.blocks > operations / 10,
         "%llu operations of %d thread%s, %llu blocks: %s",
         (unsigned long long)operations, threads, threads > 1 ? "s" : "",
         (unsigned long long)world.blocks,
         *world.wrong ? world.wrong : "right");
  /* A guarded pool (CGRAPHLUA_HOST_GUARD) reuses nothing without a wait. */
  bool guarded = started && world.pools[0]->guard;
  tap_ok(started && (guarded || world.reused > operations / 10000),
         "%llu of them another stream's, proven to be over without a wait",
         (unsigned long long)world.reused);
  model_close(&world);
}


int main(int argc, char **argv) {
  uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : OPERATIONS;
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  run(1, operations / 2, seed);
  run(THREADS, operations / 2, seed);
  tap_ok(!cgl_live("all"), "nothing is alive at the end");
  return tap_done();
}
