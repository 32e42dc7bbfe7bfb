/* A graph's picture, for Graphviz.
   A chain of hundreds of nodes would be a strip that nobody can read, so deep
   graphs are folded: levels (the longest way from a root) are cut into bands
   that stand side by side, and the edges between bands do not pull.  Nodes of
   one scope of annotations lie in one box, per band.  A body has a box of its
   own, once, to which each node that runs it points. */
#include "compile/base/base.h"
#include "core/graph/graph.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NAME_ROOM = 44, MIN_ROWS = 24 };

typedef struct picture {
  FILE *file;
  const cgl_recording **recordings; /* the graph's, and every body's, once */
  size_t nrecordings;
  const cgl_recording *recording; /* the one being drawn */
  size_t drawn;                   /* its number */
  size_t *levels;                 /* of each of its nodes */
  size_t rows;                    /* of a band */
  size_t boxes;                   /* written so far */
  unsigned char *reached; /* room for a search; NULL: no edge is known to be
                             implied */
} picture;

static const char *const colors[] = {
    [CGL_OP_KERNEL] = "#e3edfc",  [CGL_OP_MEMCPY] = "#fdf1d5",
    [CGL_OP_MEMSET] = "#e4f4e4",  [CGL_OP_GRAPH] = "#f1e6fb",
    [CGL_OP_RECORD] = "#eeeeee",  [CGL_OP_WAIT] = "#eeeeee",
    [CGL_OP_FOREIGN] = "#fbe6e6",
};


/* "n3", and "b1n3" in the first body. */
static void write_name(picture *p, size_t recording, size_t index) {
  if (recording)
    fprintf(p->file, "b%zu", recording);
  fprintf(p->file, "n%zu", index);
}


/* Quotes and backslashes would end a Graphviz label early. */
static void write_escaped(FILE *file, const char *text, size_t room) {
  for (size_t i = 0; text[i]; i++) {
    if (i == room) {
      fputs("...", file);
      return;
    }
    if (text[i] == '"' || text[i] == '\\')
      fputc('\\', file);
    fputc(text[i] == '\n' ? ' ' : text[i], file);
  }
}


static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}


/* "8x4", without the extents of one at the end. */
static void write_extents(FILE *file, const uint32_t extents[3]) {
  fprintf(file, "%u", extents[0]);
  if (extents[1] > 1 || extents[2] > 1)
    fprintf(file, "x%u", extents[1]);
  if (extents[2] > 1)
    fprintf(file, "x%u", extents[2]);
}


static void write_bytes(FILE *file, size_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = (double)bytes;
  size_t unit = 0;
  for (; value >= 1024 && unit < 4; unit++)
    value /= 1024;
  fprintf(file, "%.*f %s", unit && value < 10 ? 1 : 0, value, units[unit]);
}


/* What it is and how much. */
static void write_matter(picture *p, const cgl_op *op) {
  write_escaped(p->file, op->name, NAME_ROOM);
  if (op->kind == CGL_OP_KERNEL) {
    fputs("\\n", p->file);
    write_extents(p->file, op->launch.grid);
    fputs(op->launch.grid[0] == 1 && op->launch.grid[1] == 1 &&
                  op->launch.grid[2] == 1
              ? " block of "
              : " blocks of ",
          p->file);
    write_extents(p->file, op->launch.block);
  } else if (op->kind != CGL_OP_FOREIGN)
    fprintf(p->file, "\\n%s", cgl_record_words[op->kind]);
  if ((op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET) && op->nranges) {
    fputs(" of ", p->file);
    write_bytes(p->file, cgl_record_ranges(p->recording, op)->bytes);
  }
}


static void write_node(picture *p, size_t index) {
  const cgl_op *op = cgl_record_op(p->recording, index);
  fputs("  ", p->file);
  write_name(p, p->drawn, index);
  fprintf(p->file, " [fillcolor=\"%s\", %slabel=\"",
          op->off ? "#ffffff" : colors[op->kind],
          op->off ? "style=\"filled,dashed\", fontcolor=\"#9a9a9a\", " : "");
  write_matter(p, op);
  if (op->site.file) {
    fputs("\\n", p->file);
    write_escaped(p->file, base_name(op->site.file), NAME_ROOM);
    fprintf(p->file, ":%d", op->site.line);
  }
  if (op->off)
    fputs("\\nswitched off", p->file);
  fputs("\", tooltip=\"", p->file);
  write_escaped(p->file, op->name, SIZE_MAX);
  if (op->site.file) {
    fputs(" at ", p->file);
    write_escaped(p->file, op->site.file, SIZE_MAX);
    fprintf(p->file, ":%d", op->site.line);
  }
  fputs("\"];\n", p->file);
}


static size_t node_band(const picture *p, size_t index) {
  return p->levels[index] / p->rows;
}


/* From the scope `outer` (NULL: none) into `scope`. */
static void open_boxes(picture *p, const cgl_scope *outer,
                       const cgl_scope *scope) {
  char text[120];
  if (scope == outer)
    return;
  open_boxes(p, outer, scope->around);
  cgl_scope_text(scope, text, sizeof text);
  fprintf(p->file, "  subgraph cluster%zu {\n  label=\"", p->boxes++);
  write_escaped(p->file, text, SIZE_MAX);
  fputs("\";\n", p->file);
}


/* From the scope of one node to that of the next.  An inner scope has a higher
   number than those around it. */
static void move_boxes(picture *p, const cgl_scope *from, const cgl_scope *to) {
  const cgl_scope *shared = to;
  while (from != shared)
    if (from && (!shared || from->id > shared->id)) {
      fputs("  }\n", p->file);
      from = from->around;
    } else
      shared = shared->around;
  open_boxes(p, shared, to);
}


/* Boxes hold runs of nodes: a node of no scope between two of one scope lies
   between two boxes. */
static void write_nodes(picture *p) {
  const cgl_recording *recording = p->recording;
  const cgl_scope *scope = NULL;
  size_t band = 0;
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    const cgl_scope *next = cgl_record_op(recording, i)->scope;
    if (node_band(p, i) != band) {
      move_boxes(p, scope, NULL);
      scope = NULL;
    }
    move_boxes(p, scope, next);
    scope = next;
    band = node_band(p, i);
    write_node(p, i);
  }
  move_boxes(p, scope, NULL);
}


/* ---- edges ---- */

static void write_edge(picture *p, size_t from, size_t to) {
  const bool near = node_band(p, from) == node_band(p, to);
  const bool implied =
      p->reached && cgl_order_is_implied(p->recording, p->reached, from, to);
  if (implied && !near)
    return;
  fputs("  ", p->file);
  write_name(p, p->drawn, from);
  fputs(" -> ", p->file);
  write_name(p, p->drawn, to);
  fprintf(p->file, "%s;\n",
          implied ? " [color=\"#c8c8c8\"]"
          : near  ? ""
                  : " [constraint=false, style=dashed, color=\"#9a9a9a\"]");
}


/* Edges that others imply are pale, and left out between bands. */
static void write_edges(picture *p) {
  p->reached = malloc(cgl_record_count(p->recording) + 1);
  for (size_t i = 0; i < cgl_record_count(p->recording); i++) {
    size_t count;
    const size_t *from = cgl_record_dependencies(p->recording, i, &count);
    for (size_t k = 0; k < count; k++)
      if (from[k] != SIZE_MAX)
        write_edge(p, from[k], i);
  }
  free(p->reached);
}


/* Nodes are in the order of their making, after what they depend on. */
static void picture_find_levels(picture *p) {
  const cgl_recording *recording = p->recording;
  size_t deepest = 0;
  for (size_t i = 0; i < cgl_record_count(recording); i++) {
    p->levels[i] = 0;
    size_t count;
    const size_t *from = cgl_record_dependencies(recording, i, &count);
    for (size_t k = 0; k < count; k++)
      if (from[k] < i && p->levels[from[k]] >= p->levels[i])
        p->levels[i] = p->levels[from[k]] + 1;
    deepest = p->levels[i] > deepest ? p->levels[i] : deepest;
  }
  /* About as wide as high: a node takes three times the room across. */
  p->rows = MIN_ROWS;
  while (p->rows * p->rows < 2 * cgl_record_count(recording))
    p->rows++;
  if (deepest < p->rows + p->rows / 2)
    p->rows = deepest + 1;
}


/* ---- bodies ---- */

static size_t picture_find(const picture *p, const cgl_recording *recording) {
  size_t i = 0;
  while (i < p->nrecordings && p->recordings[i] != recording)
    i++;
  return i;
}


/* All bodies, those in bodies too; false without memory. */
static bool picture_find_bodies(picture *p) {
  const cgl_recording *body;
  for (size_t i = 0; i < p->nrecordings; i++)
    for (size_t k = 0; (body = cgl_record_body(p->recordings[i], k)); k++) {
      if (picture_find(p, body) < p->nrecordings)
        continue;
      const cgl_recording **more =
          realloc(p->recordings, (p->nrecordings + 1) * sizeof *more);
      if (!more)
        return false;
      p->recordings = more;
      p->recordings[p->nrecordings++] = body;
    }
  return true;
}


/* From the nodes of the recording being drawn to what they run. */
static void write_body_edges(picture *p) {
  for (size_t i = 0; i < cgl_record_count(p->recording); i++) {
    const cgl_op *op = cgl_record_op(p->recording, i);
    if (!op->body)
      continue;
    size_t body = picture_find(p, cgl_record_body(p->recording, op->body - 1));
    fputs("  ", p->file);
    write_name(p, p->drawn, i);
    fputs(" -> ", p->file);
    write_name(p, body, 0);
    fprintf(p->file,
            " [lhead=clusterb%zu, style=dotted, color=\"#9a6ac8\"];\n", body);
  }
}


/* False without memory. */
static bool write_recording(picture *p, size_t number) {
  p->drawn = number;
  p->recording = p->recordings[number];
  size_t count = cgl_record_count(p->recording);
  p->levels = malloc((count + 1) * sizeof *p->levels);
  if (!p->levels)
    return false;
  picture_find_levels(p);
  if (number)
    fprintf(p->file, "  subgraph clusterb%zu {\n  label=\"%zu node%s\";\n",
            number, count, count == 1 ? "" : "s");
  write_nodes(p);
  if (!count && number) { /* what an edge ends at */
    fputs("  ", p->file);
    write_name(p, number, 0);
    fputs(" [shape=point, style=invis];\n", p->file);
  }
  write_edges(p);
  if (number)
    fputs("  }\n", p->file);
  write_body_edges(p);
  free(p->levels);
  return true;
}


/* False without memory. */
static bool picture_write(picture *p, const cgl_graph *graph) {
  size_t count = cgl_record_count(graph->recording);
  fputs("digraph cgraphlua {\n"
        "  graph [fontname=\"Helvetica,sans-serif\", fontsize=11, labelloc=t,\n"
        "    ranksep=0.3, nodesep=0.25, style=\"rounded\", color=\"#8a8a8a\",\n"
        "    compound=true, label=\"",
        p->file);
  fprintf(p->file, "%zu node%s, captured at ", count, count == 1 ? "" : "s");
  write_escaped(p->file, cgl_site_text(graph->capture.underway.begun),
                SIZE_MAX);
  fputs("\"];\n"
        "  node [shape=box, fontname=\"Helvetica,sans-serif\", fontsize=10,\n"
        "    style=filled, color=\"#6a6a6a\", margin=\"0.1,0.04\"];\n"
        "  edge [arrowsize=0.6, color=\"#4a4a4a\"];\n",
        p->file);
  bool written = true;
  for (size_t i = 0; written && i < p->nrecordings; i++)
    written = write_recording(p, i);
  fputs("}\n", p->file);
  return written;
}


static cgl_status write_dot(const cgl_graph *graph, const char *path,
                            const char *operation) {
  picture p = {.nrecordings = 1};
  p.recordings = malloc(sizeof *p.recordings);
  if (p.recordings)
    p.recordings[0] = graph->recording;
  if (!p.recordings || !picture_find_bodies(&p)) {
    free(p.recordings);
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory to draw");
  }
  bool failed = true, memory = true;
  p.file = fopen(path, "w");
  if (p.file) {
    memory = picture_write(&p, graph);
    failed = ferror(p.file);
    failed |= fclose(p.file) != 0;
  }
  free(p.recordings);
  if (!memory)
    return cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory to draw");
  return failed ? cgl_fail(CGL_ERROR_SYSTEM, operation, "cannot write %s: %m",
                           path)
                : CGL_OK;
}


/* Graphviz turns one file into the other. */
static cgl_status run_dot(const char *from, const char *to,
                          const char *operation) {
  char *program = cgl_process_find("dot");
  if (!program) {
    cgl_fail(CGL_ERROR_SYSTEM, operation,
             "Graphviz, which makes SVG files, was not found");
    return cgl_fail_hint("install graphviz, so that its program dot is in "
                         "PATH, or write a .dot file");
  }
  cgl_text said = {0};
  char *const argv[] = {program,    (char *)"-Tsvg", (char *)"-o",
                        (char *)to, (char *)from,    NULL};
  int code = cgl_process_run(argv, &said);
  cgl_status status = CGL_OK;
  if (code) {
    status = cgl_fail(CGL_ERROR_SYSTEM, operation,
                      code < 0 ? "cannot run %s: %m" : "%s failed: %s", program,
                      said.data ? said.data : "");
    unlink(to);
  }
  cgl_text_free(&said);
  free(program);
  return status;
}


static cgl_status write_svg(const cgl_graph *graph, const char *path,
                            const char *operation) {
  const char *folder = getenv("TMPDIR");
  char *between =
      cgl_format("%s/cgraphlua-XXXXXX", folder && *folder ? folder : "/tmp");
  int descriptor = between ? mkstemp(between) : -1;
  cgl_status status;
  if (descriptor < 0)
    status = cgl_fail(CGL_ERROR_SYSTEM, operation, "cannot write %s: %m",
                      between ? between : "a file");
  else {
    close(descriptor);
    status = write_dot(graph, between, operation);
    if (!status)
      status = run_dot(between, path, operation);
    unlink(between);
  }
  free(between);
  return status;
}


cgl_status cgl_graph_debug_dump(cgl_graph *graph, const char *path) {
  static const char operation[] = "graph:debug_dump";
  cgl_status status = cgl_graph_learn(graph, operation);
  if (status)
    return status;
  const char *ending = strrchr(path, '.');
  return ending && !strcmp(ending, ".svg") ? write_svg(graph, path, operation)
                                           : write_dot(graph, path, operation);
}
