/* A graph as Graphviz text, child graphs and bodies
   as clusters. */
#include "driver/host/graph/graph.h"

#include <inttypes.h>
#include <stdio.h>

static void print_graph(FILE *out, CUgraph graph, bool verbose, int depth);


/* Text inside a quoted string of the file. */
static void print_quoted(FILE *out, const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '"' || *text == '\\')
      fputc('\\', out);
    fputc(*text, out);
  }
}


static const char *kind_name(const host_op *op) {
  static const char *const conditional[] = {"IF", "WHILE", "SWITCH"};
  static const char *const names[] = {
      "EMPTY",        "KERNEL",     "MEMCPY",    "MEMSET",   "HOST",
      "EVENT_RECORD", "EVENT_WAIT", "MEM_ALLOC", "MEM_FREE", "GRAPH"};
  return op->kind == HOST_OP_CONDITIONAL ? conditional[op->conditional->type]
                                         : names[op->kind];
}


static void print_kernel(FILE *out, const host_kernel_op *kernel,
                         bool verbose) {
  fputs("\\n", out);
  print_quoted(out, kernel->function->kernel->name);
  fprintf(out, "\\n<<<%" PRIu32 ",%" PRIu32 ",%" PRIu32, kernel->grid[0],
          kernel->grid[1], kernel->grid[2]);
  fprintf(out, " ; %" PRIu32 ",%" PRIu32 ",%" PRIu32 " ; %" PRIu32 ">>>",
          kernel->block[0], kernel->block[1], kernel->block[2],
          kernel->shared_bytes);
  const cgl_host_kernel *k = kernel->function->kernel;
  for (uint32_t i = 0; i < k->nparams && verbose; i++) {
    uint64_t value = 0;
    if (k->param_size[i] > sizeof value)
      continue;
    for (uint32_t b = k->param_size[i]; b-- > 0;)
      value = value << 8 | ((const unsigned char *)kernel->params[i])[b];
    fprintf(out, "\\n%" PRIu32 ": 0x%" PRIx64, i, value);
  }
}


static void print_label(FILE *out, const host_op *op, bool verbose) {
  fputs(kind_name(op), out);
  switch (op->kind) {
  case HOST_OP_KERNEL:
    print_kernel(out, &op->kernel, verbose);
    break;
  case HOST_OP_MEMCPY:
    fprintf(out, "\\n%zu x %zu x %zu bytes", op->memcpy.WidthInBytes,
            op->memcpy.Height, op->memcpy.Depth);
    break;
  case HOST_OP_MEMSET:
    fprintf(out, "\\n0x%llx, %zu x %zu of %u bytes, value 0x%x", op->memset.dst,
            op->memset.width, op->memset.height, op->memset.elementSize,
            op->memset.value);
    break;
  case HOST_OP_ALLOC:
    fprintf(out, "\\n0x%llx, %zu bytes", op->alloc.dptr, op->alloc.bytesize);
    break;
  case HOST_OP_FREE:
    fprintf(out, "\\n0x%llx", op->free);
    break;
  default:
    break;
  }
}


static void print_node(FILE *out, CUgraphNode node, uint32_t number,
                       bool verbose, int depth) {
  const host_op *op = &node->op;
  fprintf(out, "%*s\"node_%" PRIu64 "\" [label=\"%" PRIu32 "\\n", depth * 2, "",
          node->id, number);
  print_label(out, op, verbose);
  fprintf(out, "\"%s];\n",
          op->kind == HOST_OP_KERNEL ? ", style=\"bold\", shape=\"octagon\""
                                     : ", shape=\"rectangle\"");
  if (op->kind == HOST_OP_CHILD)
    print_graph(out, op->child, verbose, depth);
  for (unsigned i = 0;
       op->kind == HOST_OP_CONDITIONAL && i < op->conditional->size; i++)
    print_graph(out, op->conditional->graph[i], verbose, depth);
}


static void print_graph(FILE *out, CUgraph graph, bool verbose, int depth) {
  fprintf(out, "%*ssubgraph \"cluster_%" PRIu64 "\" {\n", depth * 2, "",
          graph->id);
  fprintf(out, "%*slabel=\"graph_%" PRIu64 "\";\n", depth * 2 + 2, "",
          graph->id);
  uint32_t number = 0;
  for (CUgraphNode n = graph->first; n; n = n->next)
    print_node(out, n, number++, verbose, depth + 1);
  for (CUgraphNode n = graph->first; n; n = n->next)
    for (uint32_t i = 0; i < n->out.count; i++) {
      const host_edge *edge = &n->out.list[i];
      fprintf(out, "%*s\"node_%" PRIu64 "\" -> \"node_%" PRIu64 "\"%s;\n",
              depth * 2 + 2, "", n->id, edge->node->id,
              edge->data.type == CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC
                  ? " [style=\"dashed\"]"
                  : "");
    }
  fprintf(out, "%*s}\n", depth * 2, "");
}


bool host_graph_write_dot(CUgraph graph, const char *path, bool verbose) {
  FILE *out = fopen(path, "w");
  if (!out)
    return false;
  fputs("digraph dot {\n", out);
  print_graph(out, graph, verbose, 1);
  fputs("}\n", out);
  bool written = ferror(out) == 0;
  return fclose(out) == 0 && written;
}
