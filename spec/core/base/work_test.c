/* What the context knows of the work on its device: every kind of operation
   counts as work until the device was waited for, and captures do not. */
#include "core/graph/graph.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static const char source[] =
    "extern \"C\" __global__ void one(float *x) { x[0] = 1; }";

enum { N = 1000 };

static struct {
  cgl_context *context;
  cgl_stream *stream, *other;
  cgl_buffer *x, *y;
  cgl_pinned *pinned;
  cgl_kernel *kernel;
  cgl_generator *generator;
  cgl_graph *graph;
} k;

static float data[N];


static cgl_status launch(void) {
  const cgl_launch once = {{1, 1, 1}, {1, 1, 1}, 0};
  const cgl_arg arg = {.kind = CGL_ARG_BUFFER, .buffer = k.x};
  return cgl_kernel_launch(k.kernel, k.stream, &once, &arg, 1);
}

static cgl_status fill(void) {
  return cgl_buffer_fill(k.x, k.stream, data);
}

static cgl_status copy(void) {
  return cgl_buffer_copy(k.x, k.y, k.stream);
}

static cgl_status copy_to_pinned(void) {
  return cgl_pinned_copy(k.pinned, k.x, k.stream);
}

static cgl_status copy_from_pinned(void) {
  return cgl_buffer_copy_pinned(k.x, k.pinned, k.stream);
}

static cgl_status draw(void) {
  return cgl_buffer_uniform(k.x, k.generator, k.stream, 0, 1);
}

static cgl_status replay(void) {
  return cgl_graph_replay(k.graph, k.stream, 1);
}

static cgl_status upload(void) {
  return cgl_buffer_upload(k.x, k.stream, 0, data, sizeof data);
}

static const struct {
  const char *name;
  cgl_status (*issue)(void);
} works[] = {
    {"a launch", launch},
    {"a fill", fill},
    {"a copy", copy},
    {"a copy to pinned memory", copy_to_pinned},
    {"a copy from pinned memory", copy_from_pinned},
    {"a random fill", draw},
    {"a replay", replay},
    {"an upload", upload},
};


static bool is_idle(void) {
  return cgl_context_waited(k.context, cgl_context_next_wait(k.context));
}


static cgl_status world_open(void) {
  const cgl_module_desc desc = {.source = source};
  cgl_module *module = NULL;
  cgl_status status = cgl_context_open(NULL, &k.context);
  if (!status)
    status = cgl_stream_create(k.context, 0, &k.stream);
  if (!status)
    status = cgl_stream_create(k.context, 0, &k.other);
  if (!status)
    status = cgl_buffer_create(k.stream, NULL, CGL_TYPE_float, N, &k.x);
  if (!status)
    status = cgl_buffer_create(k.stream, NULL, CGL_TYPE_float, N, &k.y);
  if (!status)
    status = cgl_pinned_create(k.context, CGL_TYPE_float, N, &k.pinned);
  if (!status)
    status = cgl_module_create(k.context, &desc, &module);
  if (!status)
    status = cgl_module_kernel(module, "one", &k.kernel);
  cgl_module_release(module);
  if (!status)
    status = cgl_generator_create(k.context, 1, &k.generator);
  if (!status)
    status = cgl_graph_create(k.context, NULL, &k.graph);
  return status;
}


static void world_close(void) {
  cgl_graph_release(k.graph);
  cgl_generator_release(k.generator);
  cgl_kernel_release(k.kernel);
  cgl_pinned_release(k.pinned);
  cgl_buffer_release(k.y);
  cgl_buffer_release(k.x);
  cgl_stream_release(k.other);
  cgl_stream_release(k.stream);
  cgl_context_release(k.context);
}


static void check_capture(void) {
  cgl_status status = cgl_graph_capture_begin(k.graph, k.stream);
  if (!status)
    status = fill();
  tap_ok(!status && is_idle(), "what a capture records is no work");
  if (!status)
    status = cgl_graph_capture_end(k.graph);
  tap_ok(!status && is_idle(), "nor is its end");
}


static void check_works(void) {
  for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
    bool before = !cgl_context_synchronize(k.context) && is_idle();
    bool issued = !works[i].issue() && !is_idle();
    tap_ok(before && issued && !cgl_context_synchronize(k.context) && is_idle(),
           "%s is work until the device was waited for", works[i].name);
  }
}


/* Blocks that one stream released, and whether another may have them. */
static void check_blocks(void) {
  cgl_buffer *buffer = NULL, *again = NULL;
  cgl_context_synchronize(k.context);
  cgl_buffer_create(k.stream, NULL, CGL_TYPE_uint8, 1 << 20, &buffer);
  uint64_t address = buffer->address;
  cgl_buffer_release(buffer);
  cgl_buffer_create(k.other, NULL, CGL_TYPE_uint8, 1 << 20, &again);
  tap_ok(again->address == address,
         "what no work used serves every stream at once");
  fill();
  cgl_buffer_release(again);
  cgl_buffer_create(k.stream, NULL, CGL_TYPE_uint8, 1 << 20, &again);
  tap_ok(again->address != address,
         "not so when any work was issued meanwhile");
  cgl_buffer_release(again);
}


/* From here on others may work unseen. */
static void check_shown(void) {
  cgl_context_synchronize(k.context);
  cgl_stream_handle(k.stream);
  tap_ok(!is_idle(), "a handle that others have may bring work");
  cgl_context_synchronize(k.context);
  tap_ok(!is_idle(), "after a wait for the device, too");
}


int main(void) {
  const char *guard = getenv("CGRAPHLUA_HOST_GUARD");
  if (guard && !strcmp(guard, "1")) {
    tap_skip("work", "guarded pools hand no block out again");
    return tap_done();
  }
  if (tap_ok(!world_open(), "a device and one object of each kind")) {
    cgl_context_synchronize(k.context);
    check_capture();
    check_works();
    check_blocks();
    check_shown();
  }
  world_close();
  tap_ok(cgl_live("all") == 0, "nothing is alive at the end");
  return tap_done();
}
