/* Plays a file of graphs that graph:save wrote: no compiler, no script.
     cc play.c $(pkg-config --cflags --libs cgraphlua) -o play
     ./play graph.cgl [replays]
   prints the first number of each input and output that is a float. */
#include <cgraphlua.h>
#include <stdio.h>
#include <stdlib.h>

/* An engine checks its own signature here: images are machine code. */
static bool verify(void *path, const void *bytes, size_t length) {
  (void)bytes;
  printf("%s: %zu bytes\n", (const char *)path, length);
  return true;
}


static cgl_status show(cgl_buffer *buffer, cgl_stream *stream,
                       const char *name) {
  float first = 0;
  if (cgl_buffer_type(buffer) != CGL_TYPE_float)
    return CGL_OK;
  cgl_status s = cgl_buffer_download(buffer, stream, 0, &first, sizeof first);
  if (!s)
    printf("%s: %g, ... (%zu)\n", name, first, cgl_buffer_count(buffer));
  return s;
}


static cgl_status play(cgl_context *context, char *path, uint64_t count) {
  const cgl_load_desc desc = {.verify = verify, .verify_data = path};
  cgl_stream *stream = NULL;
  cgl_graph *graph = NULL;
  const char *name;
  cgl_status s = cgl_stream_create(context, 0, &stream);
  if (!s)
    s = cgl_graph_load(context, path, &desc, &graph);
  if (!s)
    s = cgl_graph_replay(graph, stream, count);
  for (size_t i = 0; !s && (name = cgl_graph_input_name(graph, i)); i++)
    s = show(cgl_graph_input(graph, name), stream, name);
  for (size_t i = 0; !s && (name = cgl_graph_output_name(graph, i)); i++)
    s = show(cgl_graph_output(graph, name), stream, name);
  cgl_graph_release(graph);
  cgl_stream_release(stream);
  return s;
}


int main(int argc, char **argv) {
  cgl_context *context = NULL;
  if (argc < 2) {
    fprintf(stderr, "usage: play FILE [replays]\n");
    return 1;
  }
  cgl_status s = cgl_context_open(NULL, &context);
  if (!s)
    s = play(context, argv[1], argc > 2 ? strtoull(argv[2], NULL, 10) : 1);
  if (s)
    fprintf(stderr, "play: %s: %s\n", cgl_status_name(s),
            cgl_last_error()->message);
  cgl_context_release(context);
  return s ? 1 : 0;
}
