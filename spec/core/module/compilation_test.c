/* Compilations from several threads: many at once, several waiters, releases at
   any moment. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "cgraphlua.h"
#include "tap.h"

enum { THREADS = 4, ROUNDS = 6 };

static cgl_context *context;
static atomic_int failures;


static cgl_compilation *start(int thread, int round, const char *body) {
  char source[256];
  cgl_compilation *compilation = NULL;
  snprintf(source, sizeof source,
           "// %d %d\nextern \"C\" __global__ void put(int *x) { %s }", thread,
           round, body);
  cgl_module_desc desc = {.source = source, .file = "test"};
  if (cgl_module_create_async(context, &desc, &compilation))
    atomic_fetch_add(&failures, 1);
  source[0] = 'x'; /* it was copied */
  return compilation;
}


static void expect(bool condition) {
  if (!condition)
    atomic_fetch_add(&failures, 1);
}


/* Every third is released at once, every third does not compile. */
static void *use(void *argument) {
  int thread = (int)(size_t)argument;
  for (int round = 0; round < ROUNDS; round++) {
    bool broken = round % 3 == 2;
    cgl_compilation *c = start(thread, round, broken ? "*x = y;" : "*x = 1;");
    if (round % 3 == 0) {
      cgl_module *module = NULL, *again = NULL;
      expect(cgl_compilation_wait(c, &module) == CGL_OK);
      expect(cgl_compilation_ready(c));
      expect(cgl_compilation_wait(c, &again) == CGL_OK && again == module);
      cgl_module_release(module);
      cgl_module_release(again);
    } else if (broken) {
      cgl_module *module = NULL;
      expect(cgl_compilation_wait(c, &module) == CGL_ERROR_COMPILE && !module);
    }
    cgl_compilation_release(c);
  }
  return NULL;
}


static cgl_compilation *shared;


static void *wait_shared(void *argument) {
  cgl_module **module = argument;
  while (!cgl_compilation_ready(shared))
    if (cgl_compilation_wait(shared, module))
      atomic_fetch_add(&failures, 1);
    else
      return NULL;
  expect(cgl_compilation_wait(shared, module) == CGL_OK);
  return NULL;
}


static void test_threads(void) {
  pthread_t threads[THREADS];
  for (size_t i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, use, (void *)i);
  for (size_t i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
  tap_ok(!atomic_load(&failures), "several threads compile");
}


static void test_waiters(void) {
  pthread_t threads[THREADS];
  cgl_module *modules[THREADS] = {0};
  shared = start(99, 0, "*x = 2;");
  for (size_t i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, wait_shared, &modules[i]);
  for (size_t i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    expect(modules[i] && modules[i] == modules[0]);
    cgl_module_release(modules[i]);
  }
  cgl_compilation_release(shared);
  tap_ok(!atomic_load(&failures), "several threads wait for one compilation");
}


static void test_end(void) {
  for (int i = 0; i < 3; i++)
    cgl_compilation_release(start(100, i, "*x = 3;"));
  cgl_compilation *left = start(101, 0, "*x = 4;");
  cgl_module *module = NULL;
  tap_ok(cgl_compilation_wait(left, &module) == CGL_OK,
         "what is behind released ones is compiled");
  cgl_module_release(module);
  cgl_compilation_release(left);
}


int main(void) {
  setenv("CGRAPHLUA_CACHE", "off", 1);
  if (!tap_ok(!cgl_context_open("host", &context), "the host device opens"))
    return tap_done();
  test_threads();
  test_waiters();
  test_end();
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is left");
  return tap_done();
}
