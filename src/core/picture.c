/* A graph's picture, for Graphviz. */
#include "core/graph.h"

#include <stdio.h>
#include <string.h>

/* Quotes and backslashes would end a Graphviz label early. */
static void write_escaped(FILE *file, const char *text) {
  for (; *text; text++) {
    if (*text == '"' || *text == '\\')
      fputc('\\', file);
    fputc(*text, file);
  }
}


static void write_node(FILE *file, size_t index, const cgl_op *op) {
  static const char *const shapes[] = {
      "box", "parallelogram", "ellipse", "component", "cds", "cds", "hexagon"};
  fprintf(file, "  n%zu [shape=%s, label=\"", index, shapes[op->kind]);
  if (op->kind != CGL_OP_KERNEL)
    fprintf(file, "%s\\n", cgl_op_word(op->kind));
  write_escaped(file, op->name);
  if (op->kind == CGL_OP_KERNEL)
    fprintf(file, "\\n%ux%ux%u blocks of %ux%ux%u", op->grid[0], op->grid[1],
            op->grid[2], op->block[0], op->block[1], op->block[2]);
  if (op->site.file) {
    fputs("\\n", file);
    write_escaped(file, op->site.file);
    fprintf(file, ":%d", op->site.line);
  }
  fputs("\"];\n", file);
}


cgl_status cgl_graph_debug_dump(cgl_graph *graph, const char *path) {
  static const char operation[] = "graph:debug_dump";
  cgl_status status = cgl_graph_learn(graph, operation);
  if (status)
    return status;
  FILE *file = fopen(path, "w");
  if (!file)
    return cgl_fail(CGL_ERROR_SYSTEM, operation, "cannot write %s: %m", path);
  const cgl_recording *recording = &graph->recording;
  fputs("digraph cgraphlua {\n"
        "  node [fontname=\"sans-serif\", fontsize=10];\n",
        file);
  for (size_t i = 0; i < recording->nops; i++)
    write_node(file, i, &recording->ops[i]);
  for (size_t i = 0; i < recording->nops; i++)
    for (size_t k = recording->first[i]; k < recording->first[i + 1]; k++)
      if (recording->edges[k] != SIZE_MAX)
        fprintf(file, "  n%zu -> n%zu;\n", recording->edges[k], i);
  fputs("}\n", file);
  bool failed = ferror(file);
  if (fclose(file) || failed)
    return cgl_fail(CGL_ERROR_SYSTEM, operation, "cannot write %s: %m", path);
  return CGL_OK;
}
