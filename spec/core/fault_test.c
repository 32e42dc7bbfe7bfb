/* Every driver call of jobs written in C fails once: captures that are kept,
   nested, forked, abandoned.  What the thread sees last is the first failure,
   by the name of the call that failed, though the clean-up went on. */
#include "cgraphlua.h"
#include "core/base/base.h"
#include "driver/table.h"
#include "tap.h"

#include <string.h>

enum { N = 64 };

static const char source[] =
    "extern \"C\" __global__ void add(float *x, float a, int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n) x[i] += a;\n"
    "}\n";

typedef struct tools {
  cgl_context *context;
  cgl_stream *s, *t;
  cgl_module *module;
  cgl_kernel *kernel;
  cgl_buffer *x;
  cgl_pool *pool;
  cgl_graph *a, *b; /* made and released by the jobs' frame */
} tools;

/* Does everything until something fails; *expected is what x must hold. */
typedef cgl_status job_function(tools *k, float *expected);

#define TRY(call)              \
  do {                         \
    cgl_status status_ = call; \
    if (status_)               \
      return status_;          \
  } while (0)


static cgl_status add(tools *k, cgl_stream *stream, cgl_buffer *buffer,
                      float value) {
  cgl_launch launch = {.grid = {1}, .block = {N}};
  cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = buffer},
                    {.kind = CGL_ARG_NUMBER, .number = value},
                    {.kind = CGL_ARG_INT, .i = N}};
  return cgl_kernel_launch(k->kernel, stream, &launch, args, 3);
}


static cgl_status open_tools(tools *k, bool keep) {
  cgl_module_desc module = {.source = source};
  float zero = 0;
  memset(k, 0, sizeof *k);
  TRY(cgl_context_open(NULL, &k->context));
  TRY(cgl_stream_create(k->context, 0, &k->s));
  TRY(cgl_stream_create(k->context, 0, &k->t));
  TRY(cgl_module_create(k->context, &module, &k->module));
  TRY(cgl_module_kernel(k->module, "add", &k->kernel));
  TRY(cgl_pool_create(k->context, NULL, &k->pool));
  TRY(cgl_buffer_create(k->s, NULL, CGL_TYPE_float, N, &k->x));
  TRY(cgl_buffer_fill(k->x, k->s, &zero));
  TRY(cgl_stream_synchronize(k->s));
  cgl_graph_desc desc = {.keep_graph = keep, .pool = k->pool};
  TRY(cgl_graph_create(k->context, &desc, &k->a));
  return cgl_graph_create(k->context, NULL, &k->b);
}


static void close_tools(tools *k) {
  cgl_graph_release(k->a);
  cgl_graph_release(k->b);
  cgl_buffer_release(k->x);
  cgl_pool_release(k->pool);
  cgl_kernel_release(k->kernel);
  cgl_module_release(k->module);
  cgl_stream_release(k->t);
  cgl_stream_release(k->s);
  cgl_context_release(k->context);
}


/* The rest of a capture that `status` tells of. */
static cgl_status finish(cgl_graph *graph, cgl_status status) {
  if (!status)
    return cgl_graph_capture_end(graph);
  cgl_graph_capture_abandon(graph);
  return status;
}


static cgl_status kept(tools *k, float *expected) {
  TRY(cgl_graph_capture_begin(k->a, k->s));
  TRY(finish(k->a, add(k, k->s, k->x, 1)));
  TRY(cgl_graph_instantiate(k->a));
  TRY(cgl_graph_replay(k->a, k->s, 2));
  TRY(cgl_graph_instantiate(k->a));
  TRY(cgl_graph_replay(k->a, k->s, 1));
  TRY(cgl_graph_reset(k->a));
  TRY(cgl_graph_capture_begin(k->a, k->s));
  TRY(finish(k->a, add(k, k->s, k->x, 7)));
  TRY(cgl_graph_replay(k->a, k->s, 1));
  size_t count = 0;
  TRY(cgl_graph_node_count(k->a, &count));
  *expected = count == 1 ? 10 : -1;
  return CGL_OK;
}


static cgl_status forked_body(tools *k) {
  cgl_buffer *scratch = NULL;
  TRY(cgl_stream_wait_stream(k->t, k->s));
  cgl_status status =
      cgl_buffer_create(k->t, NULL, CGL_TYPE_float, N, &scratch);
  if (!status)
    status = cgl_buffer_copy(scratch, k->x, k->t);
  if (!status)
    status = add(k, k->t, scratch, 3);
  if (!status)
    status = cgl_buffer_copy(k->x, scratch, k->t);
  cgl_buffer_release(scratch);
  if (!status)
    status = cgl_stream_wait_stream(k->s, k->t);
  return status;
}


static cgl_status forked(tools *k, float *expected) {
  TRY(cgl_graph_capture_begin(k->a, k->s));
  TRY(finish(k->a, forked_body(k)));
  TRY(cgl_graph_replay(k->a, k->t, 4));
  TRY(cgl_stream_wait_stream(k->s, k->t));
  *expected = 12;
  return CGL_OK;
}


static cgl_status nested(tools *k, float *expected) {
  TRY(cgl_graph_capture_begin(k->a, k->s));
  TRY(finish(k->a, add(k, k->s, k->x, 2)));
  TRY(cgl_graph_capture_begin(k->b, k->t));
  TRY(finish(k->b, cgl_graph_replay(k->a, k->t, 3)));
  TRY(cgl_graph_reset(k->a));
  TRY(cgl_graph_replay(k->b, k->s, 2));
  *expected = 12;
  return CGL_OK;
}


/* Both at once; the first is given up half way, also by reset. */
static cgl_status abandoned(tools *k, float *expected) {
  TRY(cgl_graph_capture_begin(k->a, k->s));
  cgl_status status = cgl_graph_capture_begin(k->b, k->t);
  if (!status)
    status = add(k, k->s, k->x, 100);
  if (!status)
    status = cgl_graph_capture_abandon(k->a);
  else
    cgl_graph_capture_abandon(k->a);
  if (!status)
    status = add(k, k->t, k->x, 5);
  TRY(finish(k->b, status));
  TRY(cgl_graph_capture_begin(k->a, k->s));
  status = add(k, k->s, k->x, 100);
  TRY(cgl_graph_reset(k->a));
  TRY(status);
  TRY(cgl_graph_replay(k->b, k->s, 1));
  *expected = 5;
  return CGL_OK;
}


/* *hit: the call that was made to fail, or NULL; disarms. */
static cgl_status attempt(job_function *job, bool keep, bool *right,
                          const char **hit) {
  tools k;
  float expected = 0, out[N] = {0};
  bool capturing = false;
  cgl_status status = open_tools(&k, keep);
  if (!status)
    status = job(&k, &expected);
  if (!status)
    status = cgl_buffer_download(k.x, k.s, 0, out, sizeof out);
  cgl_fault_count(hit);
  cgl_fault(0, 0);
  *right = status || (out[0] == expected && out[N - 1] == expected);
  /* Whoever gave up did so without a capture left behind. */
  if (k.s && k.t &&
      (cgl_stream_is_capturing(k.s, &capturing) || capturing ||
       cgl_stream_is_capturing(k.t, &capturing) || capturing))
    *right = false;
  close_tools(&k);
  return status;
}


static void sweep(const char *name, job_function *job, bool keep) {
  int failures = 0, wrong = 0, unnamed = 0, alive = 0;
  const char *hit = "", *none;
  bool right;
  uint64_t k = 1;
  for (; hit; k++) {
    cgl_clear_error();
    cgl_fault(k, CUDA_ERROR_UNKNOWN);
    cgl_status status = attempt(job, keep, &right, &hit);
    failures += status != CGL_OK;
    wrong += !right;
    if (status && hit && !strstr(cgl_last_error()->message, hit)) {
      unnamed++;
      printf("# call %d (%s) fails as: %s: %s (then: %s)\n", (int)k, hit,
             cgl_last_error()->operation, cgl_last_error()->message,
             cgl_last_error()->also);
    }
    alive += cgl_live("all") != 0;
    if (attempt(job, keep, &right, &none) || !right || cgl_live("all")) {
      wrong++;
      printf("# after call %d (%s): %s\n", (int)k, hit ? hit : "none",
             cgl_last_error()->message);
    }
  }
  tap_ok(failures > 20, "%s: of %d calls, %d failed", name, (int)k - 2,
         failures);
  tap_ok(!unnamed, "%s: the failure that is seen is the first", name);
  tap_ok(!wrong, "%s: results are right, streams free, and so the next time",
         name);
  tap_ok(!alive, "%s: nothing is left alive", name);
}


/* As a driver's, whose answer is then that of work before: else every sweep
   would leave something behind that nobody can give back. */
static void gives_back(void) {
  enum { BYTES = 64 << 20 };
  cgl_context *context = NULL;
  CUdeviceptr memory = 0;
  size_t before = 0, after = 0, total;
  cgl_context_open(NULL, &context);
  const cgl_driver *driver = cgl_context_driver(context);
  if (driver->cuMemAlloc(&memory, BYTES) ||
      driver->cuMemGetInfo(&before, &total))
    tap_ok(false, "memory to give back");
  cgl_fault(1, CUDA_ERROR_UNKNOWN);
  CUresult result = driver->cuMemFree(memory);
  cgl_fault(0, 0);
  driver->cuMemGetInfo(&after, &total);
  tap_ok(result == CUDA_ERROR_UNKNOWN && after >= before + BYTES / 2,
         "a failing call that gives something back does so");
  cgl_context_note_work(context);
  uint64_t next = cgl_context_next_wait(context);
  cgl_fault(1, CUDA_ERROR_UNKNOWN);
  cgl_status status = cgl_context_synchronize(context);
  cgl_fault(0, 0);
  tap_ok(status == CUDA_ERROR_UNKNOWN && !cgl_context_waited(context, next),
         "a wait that failed covers nothing");
  cgl_context_release(context);
}


/* Copies of a graph that cannot be built are no failure of the loop. */
static void unrolls_in_silence(void) {
  const cgl_graph_desc desc = {.unroll = CGL_OPTION_ON};
  int survived = 0, noted = 0;
  const char *hit = "";
  for (uint64_t at = 1; hit; at++) {
    tools k;
    cgl_status status = open_tools(&k, false);
    if (!status)
      status = cgl_graph_set_desc(k.b, &desc);
    if (!status)
      status = cgl_graph_capture_begin(k.b, k.s);
    if (!status)
      status = finish(k.b, add(&k, k.s, k.x, 1));
    cgl_clear_error();
    cgl_fault(at, CUDA_ERROR_OUT_OF_MEMORY);
    if (!status)
      status = cgl_graph_replay(k.b, k.s, 1000);
    cgl_fault_count(&hit);
    cgl_fault(0, 0);
    survived += hit && !status;
    noted += !status && cgl_last_error()->code;
    close_tools(&k);
  }
  tap_ok(survived > 64 && !noted, "of %d survived failures %d were noted",
         survived, noted);
}


int main(void) {
  if (cgl_fault(0, 0)) {
    tap_skip("fault sweep", "CGRAPHLUA_FAULT=1 is not set");
    return tap_done();
  }
  sweep("kept", kept, true);
  sweep("forked", forked, false);
  sweep("nested", nested, false);
  sweep("abandoned", abandoned, false);
  gives_back();
  unrolls_in_silence();
  return tap_done();
}
