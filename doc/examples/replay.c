/* Capture once, replay many times: particles that move on a device.
     cc replay.c $(pkg-config --cflags --libs cgraphlua) -o replay */
#include <cgraphlua.h>
#include <stdio.h>

enum { COUNT = 4, STEPS = 64 };

static const char source[] =
    "extern \"C\" __global__ void move(float *x, const float *v, float dt,\n"
    "                                int n) {\n"
    "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  if (i < n)\n"
    "    x[i] += dt * v[i];\n"
    "}\n";

typedef struct world {
  cgl_context *context;
  cgl_stream *stream;
  cgl_module *module;
  cgl_kernel *move;
  cgl_buffer *x, *v;
  cgl_graph *graph;
} world;


/* Makes everything and puts the particles in place. */
static cgl_status set_up(world *w) {
  static const float start[COUNT] = {0, 0, 10, 10};
  static const float speed[COUNT] = {1, 2, -1, 0.5f};
  cgl_module_desc desc = {.source = source, .file = "move.cu"};
  cgl_status s = cgl_context_open(NULL, &w->context);
  if (!s)
    s = cgl_stream_create(w->context, 0, &w->stream);
  if (!s)
    s = cgl_module_create(w->context, &desc, &w->module);
  if (!s)
    s = cgl_module_kernel(w->module, NULL, &w->move);
  if (!s)
    s = cgl_buffer_create(w->stream, NULL, CGL_TYPE_float, COUNT, &w->x);
  if (!s)
    s = cgl_buffer_create(w->stream, NULL, CGL_TYPE_float, COUNT, &w->v);
  if (!s)
    s = cgl_buffer_upload(w->x, w->stream, 0, start, sizeof start);
  if (!s)
    s = cgl_buffer_upload(w->v, w->stream, 0, speed, sizeof speed);
  return s;
}


/* Captures one step.  A failure inside the capture still has to end it. */
static cgl_status capture(world *w) {
  cgl_launch launch = {.grid = {1}, .block = {32}};
  cgl_arg args[] = {
      {.kind = CGL_ARG_BUFFER, .buffer = w->x},
      {.kind = CGL_ARG_BUFFER, .buffer = w->v},
      {.kind = CGL_ARG_NUMBER, .number = 1.0 / STEPS},
      {.kind = CGL_ARG_INT, .i = COUNT},
  };
  cgl_status s = cgl_graph_create(w->context, NULL, &w->graph);
  if (!s)
    s = cgl_graph_capture_begin(w->graph, w->stream);
  if (s)
    return s;
  s = cgl_kernel_launch(w->move, w->stream, &launch, args, 4);
  if (s) {
    cgl_graph_capture_abandon(w->graph);
    return s;
  }
  return cgl_graph_capture_end(w->graph);
}


/* Replays the step STEPS times and prints where the particles are. */
static cgl_status run(world *w) {
  float x[COUNT];
  cgl_status s = cgl_graph_replay(w->graph, w->stream, STEPS);
  if (!s)
    s = cgl_buffer_download(w->x, w->stream, 0, x, sizeof x);
  if (!s)
    printf("after %d steps: %g %g %g %g\n", STEPS, x[0], x[1], x[2], x[3]);
  return s;
}


int main(void) {
  world w = {0};
  cgl_status s = set_up(&w);
  if (!s)
    s = capture(&w);
  if (!s)
    s = run(&w);
  if (s) {
    const cgl_error *e = cgl_last_error();
    fprintf(stderr, "%s: %s [%s %d]\n%s\n", e->operation, e->message, e->name,
            e->code, e->hint);
  }
  cgl_graph_release(w.graph);
  cgl_buffer_release(w.v);
  cgl_buffer_release(w.x);
  cgl_kernel_release(w.move);
  cgl_module_release(w.module);
  cgl_stream_release(w.stream);
  cgl_context_release(w.context);
  return s ? 1 : 0;
}
