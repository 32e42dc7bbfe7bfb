/* Graphs of one pool from C, on the device that $CGRAPHLUA_DEVICE names:
   threads that replay them at once, and every driver call failing in turn.
   share_test N: so many replays per thread (300). */
#include "cgraphlua.h"
#include "tap.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char source[] =
    "extern \"C\" __global__ void slow(float *y, const float *x, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  float v = 0;\n"
    "  if (i >= n) return;\n"
    "  for (int k = 0; k < 300; k++) v = v * 0.5f + x[i] * 0.5f;\n"
    "  y[i] = v;\n"
    "}\n";

enum { N = 512, THREADS = 3 };

typedef struct shop {
  cgl_context *context;
  cgl_stream *stream;
  cgl_module *module;
  cgl_kernel *kernel;
  cgl_pool *pool;
} shop;


static cgl_status shop_open(shop *s, const cgl_pool_desc *desc) {
  memset(s, 0, sizeof *s);
  cgl_module_desc module = {.source = source};
  cgl_status status = cgl_context_open(NULL, &s->context);
  if (!status)
    status = cgl_stream_create(s->context, 0, &s->stream);
  if (!status)
    status = cgl_module_create(s->context, &module, &s->module);
  if (!status)
    status = cgl_module_kernel(s->module, NULL, &s->kernel);
  if (!status)
    status = cgl_pool_create(s->context, desc, &s->pool);
  return status;
}


static void shop_close(shop *s) {
  cgl_pool_release(s->pool);
  cgl_kernel_release(s->kernel);
  cgl_module_release(s->module);
  cgl_stream_release(s->stream);
  cgl_context_release(s->context);
}


static cgl_status launch(shop *s, cgl_buffer *y, cgl_buffer *x,
                         cgl_stream *stream) {
  cgl_launch shape = {.grid = {N / 64}, .block = {64}};
  cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = y},
                    {.kind = CGL_ARG_BUFFER, .buffer = x},
                    {.kind = CGL_ARG_INT, .i = N}};
  return cgl_kernel_launch(s->kernel, stream, &shape, args, 3);
}


/* out = slow(in), through scratch that every graph of the pool shares. */
typedef struct worker {
  shop *s;
  cgl_stream *stream;
  cgl_buffer *in, *out;
  cgl_graph *graph;
  float value;
  int rounds, wrong;
} worker;


static cgl_status worker_open(worker *w, shop *s, float value, bool keep) {
  memset(w, 0, sizeof *w);
  w->s = s;
  w->value = value;
  cgl_graph_desc desc = {.pool = s->pool, .keep_graph = keep};
  cgl_buffer *scratch = NULL;
  cgl_status status = cgl_stream_create(s->context, 0, &w->stream);
  if (!status)
    status = cgl_buffer_create(s->stream, NULL, CGL_TYPE_float, N, &w->in);
  if (!status)
    status = cgl_buffer_create(s->stream, NULL, CGL_TYPE_float, N, &w->out);
  if (!status)
    status = cgl_buffer_fill(w->in, s->stream, &value);
  if (!status)
    status = cgl_graph_create(s->context, &desc, &w->graph);
  if (!status)
    status = cgl_context_synchronize(s->context);
  if (!status)
    status = cgl_graph_capture_begin(w->graph, w->stream);
  if (status)
    return status;
  status = cgl_buffer_create(w->stream, NULL, CGL_TYPE_float, N, &scratch);
  if (!status)
    status = launch(s, scratch, w->in, w->stream);
  if (!status)
    status = cgl_buffer_copy(w->out, scratch, w->stream);
  cgl_buffer_release(scratch);
  if (!status)
    return cgl_graph_capture_end(w->graph);
  cgl_graph_capture_abandon(w->graph);
  return status;
}


static void worker_close(worker *w) {
  cgl_graph_release(w->graph);
  cgl_buffer_release(w->in);
  cgl_buffer_release(w->out);
  cgl_stream_release(w->stream);
}


static cgl_status check_values(worker *w, int *wrong) {
  float seen[N];
  cgl_status status =
      cgl_buffer_download(w->out, w->stream, 0, seen, sizeof seen);
  for (int i = 0; i < N && !status; i++)
    *wrong += seen[i] < w->value * 0.999f || seen[i] > w->value * 1.001f;
  return status;
}


/* ---- threads ---- */

static void *work(void *worker_) {
  worker *w = worker_;
  float zero = 0;
  for (int i = 0; i < w->rounds; i++) {
    w->wrong += !!cgl_buffer_fill(w->out, w->stream, &zero);
    w->wrong += !!cgl_graph_replay(w->graph, w->stream, 1 + i % 3);
    if (i % 16 == 0 || i + 1 == w->rounds)
      w->wrong += !!check_values(w, &w->wrong);
  }
  return NULL;
}


static void test_threads(int rounds) {
  shop s;
  worker workers[THREADS];
  pthread_t threads[THREADS];
  cgl_status status = shop_open(&s, NULL);
  for (int i = 0; i < THREADS && !status; i++) {
    status = worker_open(&workers[i], &s, (float)(i + 1), false);
    workers[i].rounds = rounds;
  }
  if (!tap_ok(!status, "%d graphs share a pool", THREADS))
    return;
  for (int i = 0; i < THREADS; i++)
    pthread_create(&threads[i], NULL, work, &workers[i]);
  int wrong = 0;
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    wrong += workers[i].wrong;
  }
  cgl_pool_stats stats;
  cgl_pool_get_stats(s.pool, &stats);
  tap_ok(!wrong, "threads replay them at once, %d rounds each (%d wrong)",
         rounds, wrong);
  tap_ok(stats.ordered > 0 && !stats.refused,
         "by waiting for each other (%llu times)",
         (unsigned long long)stats.ordered);
  for (int i = 0; i < THREADS; i++)
    worker_close(&workers[i]);
  shop_close(&s);
  tap_ok(cgl_live("all") == 0, "nothing is alive afterwards (%lld)",
         (long long)cgl_live("all"));
}


/* One thread replays while another captures into the pool, and gives up what
   it captured. */
static void *recapture(void *worker_) {
  worker *w = worker_;
  for (int i = 0; i < w->rounds / 10; i++) {
    worker other;
    w->wrong += !!worker_open(&other, w->s, 7, false);
    w->wrong += !!cgl_graph_replay(other.graph, other.stream, 2);
    w->wrong += !!check_values(&other, &w->wrong);
    worker_close(&other);
  }
  return NULL;
}


static void test_capturing_beside(int rounds) {
  shop s;
  worker one, two;
  pthread_t threads[2];
  if (shop_open(&s, NULL) || worker_open(&one, &s, 1, false) ||
      worker_open(&two, &s, 2, false)) {
    tap_ok(false, "two graphs share a pool");
    return;
  }
  one.rounds = two.rounds = rounds;
  pthread_create(&threads[0], NULL, work, &one);
  pthread_create(&threads[1], NULL, recapture, &two);
  pthread_join(threads[0], NULL);
  pthread_join(threads[1], NULL);
  tap_ok(!one.wrong && !two.wrong,
         "one thread replays while another captures into the pool");
  worker_close(&one);
  worker_close(&two);
  shop_close(&s);
  tap_ok(cgl_live("all") == 0, "nothing is alive afterwards (%lld)",
         (long long)cgl_live("all"));
}


/* ---- faults ---- */

/* Two graphs on two streams, one of them inside a third. */
static cgl_status job(int *wrong) {
  shop s;
  worker w[2] = {{0}};
  cgl_graph_desc desc = {0};
  cgl_graph *outer = NULL;
  cgl_status status = shop_open(&s, NULL);
  for (int i = 0; i < 2 && !status; i++)
    status = worker_open(&w[i], &s, (float)(i + 1), true);
  desc.pool = s.pool;
  if (!status)
    status = cgl_graph_create(s.context, &desc, &outer);
  if (!status)
    status = cgl_graph_capture_begin(outer, s.stream);
  if (!status) {
    status = cgl_graph_replay(w[0].graph, s.stream, 1);
    if (!status)
      status = cgl_graph_capture_end(outer);
    else
      cgl_graph_capture_abandon(outer);
  }
  for (int k = 0; k < 3 && !status; k++) {
    status = cgl_graph_replay(outer, s.stream, 1);
    for (int i = 0; i < 2 && !status; i++)
      status = cgl_graph_replay(w[i].graph, w[i].stream, 1);
  }
  if (!status)
    status = cgl_context_synchronize(s.context);
  for (int i = 0; i < 2 && !status; i++)
    status = check_values(&w[i], wrong);
  cgl_graph_release(outer);
  for (int i = 0; i < 2; i++)
    worker_close(&w[i]);
  shop_close(&s);
  return status;
}


static void test_faults(void) {
  int wrong = 0, silent = 0, leaks = 0, again = 0;
  uint64_t k = 0, reached;
  tap_ok(!job(&wrong) && !wrong, "the job is right without faults");
  do {
    cgl_fault(++k, 0);
    int values = 0;
    cgl_status status = job(&values);
    reached = cgl_fault_count(NULL);
    cgl_fault(0, 0);
    wrong += !status && values;
    silent += status && !*cgl_last_error()->message;
    leaks += cgl_live("all") != 0;
    values = 0;
    again += k % 7 == 0 && (job(&values) || values);
  } while (reached >= k && k < 5000);
  tap_ok(!wrong && !silent, "%llu calls fail in turn, none unnoticed",
         (unsigned long long)k - 1);
  tap_ok(!leaks, "none of them leaves anything alive (%d)", leaks);
  tap_ok(!again, "and the next job is right (%d were not)", again);
}


int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 300;
  setenv("CGRAPHLUA_FAULT", "1", 1);
  test_threads(rounds);
  test_capturing_beside(rounds);
  test_faults();
  return tap_done();
}
