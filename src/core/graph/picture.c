/* A graph's picture, for Graphviz.
   A chain of hundreds of nodes would be a strip that nobody can read, so deep
   graphs are folded: levels (the longest way from a root) are cut into bands
   that stand side by side, and the edges between bands do not pull.  Nodes of
   one scope of annotations lie in one box, per band.  A body has a box of its
   own, once, to which each node that runs it points.  A note has the buffers
   that the capture made, a line for those that share bytes. */
#include "compile/base/base.h"
#include "core/graph/build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_ROOM = 44, MIN_ROWS = 24, MOST_LINES = 24, MOST_SITES = 6 };

typedef struct picture {
  cgl_text text;
  cgl_text list; /* pointers to the graph's recording and every body, once */
  const cgl_recording *recording; /* the one being drawn */
  char prefix[24];                /* of the names of its nodes; "b1" */
  size_t *levels;                 /* of each of its nodes */
  size_t rows;                    /* of a band */
  size_t boxes;                   /* written so far */
  unsigned char *reached; /* room for a search; NULL: no edge is known to be
                             implied */
} picture;

static const char *const colors[] = {
    [CGL_OP_KERNEL] = "#e3edfc",      [CGL_OP_MEMCPY] = "#fdf1d5",
    [CGL_OP_MEMSET] = "#e4f4e4",      [CGL_OP_GRAPH] = "#f1e6fb",
    [CGL_OP_RECORD] = "#eeeeee",      [CGL_OP_WAIT] = "#eeeeee",
    [CGL_OP_CONDITIONAL] = "#f1e6fb", [CGL_OP_FOREIGN] = "#fbe6e6",
    [CGL_OP_CALL] = "#e2f3f3",
};


/* The bytes of the UTF-8 character at `text`, 1 for what is none. */
static size_t character_bytes(const char *text) {
  const unsigned char *c = (const unsigned char *)text;
  size_t n = 1 + (*c >= 0xc2) + (*c >= 0xe0) + (*c >= 0xf0);
  for (size_t i = 1; i < n; i++)
    if ((c[i] & 0xc0) != 0x80)
      return 1;
  return *c < 0xf5 ? n : 1;
}


/* Quotes and backslashes would end a Graphviz label early, and it refuses what
   is not UTF-8. */
static void write_escaped(picture *p, const char *text, size_t room) {
  for (size_t i = 0, n; text[i]; i += n) {
    n = character_bytes(text + i);
    if (i + n > room) {
      cgl_text_put(&p->text, "...");
      return;
    }
    if (text[i] == '"' || text[i] == '\\')
      cgl_text_put(&p->text, "\\");
    if (text[i] == '\n')
      cgl_text_put(&p->text, " ");
    else if (n == 1 && (text[i] & 0x80))
      cgl_text_put(&p->text, "?");
    else
      cgl_text_add(&p->text, text + i, n);
  }
}


static const char *base_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}


/* "8x4", without the extents of one at the end. */
static void write_extents(picture *p, const uint32_t extents[3]) {
  cgl_text_print(&p->text, "%u", extents[0]);
  if (extents[1] > 1 || extents[2] > 1)
    cgl_text_print(&p->text, "x%u", extents[1]);
  if (extents[2] > 1)
    cgl_text_print(&p->text, "x%u", extents[2]);
}


/* In tenths below ten; without printf's floats, which follow the locale. */
static void write_bytes(picture *p, size_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0, size = 1;
  for (; bytes / size >= 1024 && unit < 4; unit++)
    size *= 1024;
  const size_t tenths = bytes / size * 10 + bytes % size * 10 / size;
  if (unit && tenths < 100)
    cgl_text_print(&p->text, "%zu.%zu %s", tenths / 10, tenths % 10,
                   units[unit]);
  else
    cgl_text_print(&p->text, "%zu %s", tenths / 10, units[unit]);
}


/* What it is and how much. */
static void write_matter(picture *p, const cgl_op *op) {
  write_escaped(p, op->name, NAME_ROOM);
  if (op->kind == CGL_OP_KERNEL) {
    const uint32_t *grid = op->launch.grid;
    cgl_text_put(&p->text, "\\n");
    write_extents(p, grid);
    cgl_text_put(&p->text, grid[0] == 1 && grid[1] == 1 && grid[2] == 1
                               ? " block of "
                               : " blocks of ");
    write_extents(p, op->launch.block);
  } else if (op->kind != CGL_OP_FOREIGN)
    cgl_text_print(&p->text, "\\n%s", cgl_record_words[op->kind]);
  if ((op->kind == CGL_OP_MEMCPY || op->kind == CGL_OP_MEMSET) && op->nranges) {
    cgl_text_put(&p->text, " of ");
    write_bytes(p, cgl_record_ranges(p->recording, op)->bytes);
  }
}


/* "\nheat.lua:3", or " at /home/heat.lua:3". */
static void write_site(picture *p, const cgl_op *op, bool whole) {
  const char *file = op->site.file;
  if (!file)
    return;
  cgl_text_put(&p->text, whole ? " at " : "\\n");
  write_escaped(p, whole ? file : base_name(file),
                whole ? SIZE_MAX : NAME_ROOM);
  cgl_text_print(&p->text, ":%d", op->site.line);
}


static void write_node(picture *p, size_t index) {
  const cgl_op *op = cgl_record_op(p->recording, index);
  cgl_text_print(&p->text, "  %sn%zu [fillcolor=\"%s\", %slabel=\"", p->prefix,
                 index, op->off ? "#ffffff" : colors[op->kind],
                 op->off ? "style=\"filled,dashed\", fontcolor=\"#9a9a9a\", "
                         : "");
  write_matter(p, op);
  write_site(p, op, false);
  if (op->predication == CGL_PREDICATION_LOOKS)
    cgl_text_put(&p->text, "\\npredicated");
  if (op->follows)
    cgl_text_put(&p->text, "\\nfollowing");
  cgl_text_put(&p->text,
               op->off ? "\\nswitched off\", tooltip=\"" : "\", tooltip=\"");
  write_escaped(p, op->name, SIZE_MAX);
  write_site(p, op, true);
  cgl_text_put(&p->text, "\"];\n");
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
  cgl_text_print(&p->text, "  subgraph cluster%zu {\n  label=\"", p->boxes++);
  write_escaped(p, text, SIZE_MAX);
  cgl_text_put(&p->text, "\";\n");
}


/* From the scope of one node to that of the next.  An inner scope has a higher
   number than those around it. */
static void move_boxes(picture *p, const cgl_scope *from, const cgl_scope *to) {
  const cgl_scope *shared = to;
  while (from != shared)
    if (from && (!shared || from->id > shared->id)) {
      cgl_text_put(&p->text, "  }\n");
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
  const bool programmatic = cgl_record_op(p->recording, to)->programmatic;
  cgl_text_print(
      &p->text, "  %sn%zu -> %sn%zu%s;\n", p->prefix, from, p->prefix, to,
      programmatic ? " [arrowhead=empty]"
      : implied    ? " [color=\"#c8c8c8\"]"
      : near       ? ""
                   : " [constraint=false, style=dashed, color=\"#9a9a9a\"]");
}


/* Programmatic edges have an empty head. Edges that others imply are pale, and
 * left out between bands. */
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

/* The number of a body in the list, where it is put if it is not there. */
static size_t picture_number(picture *p, const cgl_recording *body) {
  const cgl_recording **list = (const cgl_recording **)(void *)p->list.data;
  const size_t count = p->list.length / sizeof body;
  for (size_t i = 0; i < count; i++)
    if (list[i] == body)
      return i;
  cgl_text_add(&p->list, (const char *)&body, sizeof body);
  return count;
}


/* From the nodes of the recording being drawn to what they run. */
static void write_body_edges(picture *p) {
  for (size_t i = 0; i < cgl_record_count(p->recording); i++) {
    const cgl_op *op = cgl_record_op(p->recording, i);
    for (uint32_t k = 0; k < op->nbodies; k++) {
      const size_t body =
          picture_number(p, cgl_record_body(p->recording, op->body - 1 + k));
      cgl_text_print(&p->text,
                     "  %sn%zu -> b%zun0 [lhead=clusterb%zu, style=dotted, "
                     "color=\"#9a6ac8\"",
                     p->prefix, i, body, body);
      if (op->nbodies > 1)
        cgl_text_print(&p->text, ", label=\"%u\"", k + 1);
      cgl_text_put(&p->text, "];\n");
    }
  }
}


static void write_recording(picture *p, size_t number) {
  p->recording = ((const cgl_recording **)(void *)p->list.data)[number];
  const size_t count = cgl_record_count(p->recording);
  p->levels = malloc((count + 1) * sizeof *p->levels);
  if (!p->levels) {
    p->text.failed = true;
    return;
  }
  picture_find_levels(p);
  if (number) {
    snprintf(p->prefix, sizeof p->prefix, "b%zu", number);
    cgl_text_print(&p->text,
                   "  subgraph clusterb%zu {\n  label=\"%zu node%s\";\n",
                   number, count, count == 1 ? "" : "s");
  }
  write_nodes(p);
  if (number && !count) /* what edges to the box end at */
    cgl_text_print(&p->text, "  %sn0 [shape=point, style=invis];\n", p->prefix);
  write_edges(p);
  cgl_text_put(&p->text, number ? "  }\n" : "");
  write_body_edges(p);
  free(p->levels);
}


/* ---- memory ---- */

static int memory_compare(const void *a, const void *b) {
  const cgl_plan_memory *x = a, *y = b;
  return x->address != y->address ? (x->address < y->address ? -1 : 1)
                                  : (x->bytes > y->bytes ? -1 : 1);
}


/* The line of the buffers from `m` on that overlap; returns how many. */
static size_t write_shared(picture *p, const cgl_plan_memory *m, size_t n,
                           bool shown) {
  uint64_t end = m->address + m->bytes;
  size_t count = 1, sites = 0;
  for (; count < n && m[count].address < end; count++)
    if (m[count].address + m[count].bytes > end)
      end = m[count].address + m[count].bytes;
  if (!shown)
    return count;
  write_bytes(p, (size_t)(end - m->address));
  for (size_t i = 0; i < count && sites <= MOST_SITES; i++) {
    if (i && m[i].line == m[i - 1].line && m[i].file == m[i - 1].file)
      continue;
    cgl_text_put(&p->text, !sites                ? ": "
                           : sites == MOST_SITES ? ", ..."
                                                 : ", ");
    if (sites++ == MOST_SITES)
      break;
    write_escaped(p, base_name(m[i].file), NAME_ROOM);
    cgl_text_print(&p->text, ":%d", m[i].line);
  }
  if (count > 1)
    cgl_text_print(&p->text, " (%zu buffers)", count);
  cgl_text_put(&p->text, "\\l");
  return count;
}


static cgl_status write_memory(picture *p, cgl_graph *graph) {
  cgl_text list = {0};
  cgl_plan_memory memory;
  bool found = true;
  cgl_status status = CGL_OK;
  for (size_t i = 0; !status && found; i++) {
    status = cgl_graph_plan_memory(graph, i, &memory, &found);
    if (!status && found && memory.bytes)
      cgl_text_add(&list, (const char *)&memory, sizeof memory);
  }
  cgl_plan_memory *all = (cgl_plan_memory *)(void *)list.data;
  const size_t n = list.length / sizeof *all;
  p->text.failed |= list.failed;
  if (n && !list.failed) {
    qsort(all, n, sizeof *all, memory_compare);
    cgl_text_put(&p->text, "  memory [shape=note, fillcolor=\"#ffffff\", "
                           "label=\"memory of the capture\\l");
    size_t lines = 0;
    for (size_t i = 0; i < n; lines++)
      i += write_shared(p, all + i, n - i, lines < MOST_LINES);
    if (lines > MOST_LINES)
      cgl_text_print(&p->text, "and %zu more\\l", lines - MOST_LINES);
    cgl_text_put(&p->text, "\"];\n");
  }
  cgl_text_free(&list);
  return status;
}


static cgl_status picture_write(picture *p, cgl_graph *graph) {
  const size_t count = cgl_record_count(graph->recording);
  cgl_text_print(
      &p->text,
      "digraph cgraphlua {\n"
      "  graph [fontname=\"Helvetica,sans-serif\", fontsize=11, labelloc=t,\n"
      "    ranksep=0.3, nodesep=0.25, style=\"rounded\", color=\"#8a8a8a\",\n"
      "    compound=true, label=\"%zu node%s, captured at ",
      count, count == 1 ? "" : "s");
  write_escaped(p, cgl_site_text(graph->capture.underway.begun), SIZE_MAX);
  cgl_text_put(
      &p->text,
      "\"];\n"
      "  node [shape=box, fontname=\"Helvetica,sans-serif\", fontsize=10,\n"
      "    style=filled, color=\"#6a6a6a\", margin=\"0.1,0.04\"];\n"
      "  edge [arrowsize=0.6, color=\"#4a4a4a\"];\n");
  picture_number(p, graph->recording);
  for (size_t i = 0; i < p->list.length / sizeof graph->recording; i++)
    write_recording(p, i);
  const cgl_status status = write_memory(p, graph);
  cgl_text_put(&p->text, "}\n");
  return status;
}


static cgl_status write_dot(const cgl_text *text, const char *path,
                            const char *operation) {
  FILE *file = fopen(path, "w");
  bool failed =
      !file || fwrite(text->data, 1, text->length, file) < text->length;
  if (file)
    failed |= fclose(file) != 0;
  return failed ? cgl_fail(CGL_ERROR_SYSTEM, operation, "cannot write %s: %m",
                           path)
                : CGL_OK;
}


/* Whether the file is a whole SVG file. */
static bool svg_is_whole(const char *path) {
  static const char end[] = "</svg>\n";
  char last[sizeof end] = "";
  FILE *file = fopen(path, "r");
  bool whole = file && !fseek(file, 1 - (long)sizeof end, SEEK_END) &&
               fread(last, 1, sizeof end - 1, file) == sizeof end - 1 &&
               !strcmp(last, end);
  if (file)
    fclose(file);
  return whole;
}


/* Has the program draw into `part`, whose name becomes `path` when the drawing
   is whole: no picture is left half written, whatever ends the program. */
static cgl_status svg_draw(const cgl_text *text, char *program, char *part,
                           const char *path, const char *operation) {
  cgl_text said = {0};
  char *const argv[] = {program, (char *)"-Tsvg", (char *)"-o", part, NULL};
  const int code = cgl_process_run(argv, text, &said);
  cgl_status status = CGL_OK;
  if (code == -1)
    status =
        cgl_fail(CGL_ERROR_SYSTEM, operation, "cannot run %s: %m", program);
  else if (code > 128)
    status = cgl_fail(CGL_ERROR_SYSTEM, operation,
                      "%s was ended by a signal (%s); %s was not written",
                      program, strsignal(code - 128), path);
  /* Without its exit status, the drawing tells how it went. */
  else if (code > 0 || !svg_is_whole(part))
    status = cgl_fail(CGL_ERROR_SYSTEM, operation, "%s failed: %s", program,
                      said.data ? said.data : "it wrote no whole file");
  else if (rename(part, path))
    status = cgl_fail(CGL_ERROR_SYSTEM, operation, "cannot write %s: %m", path);
  if (status)
    remove(part);
  cgl_text_free(&said);
  return status;
}


static cgl_status write_svg(const cgl_text *text, const char *path,
                            const char *operation) {
  char *program = cgl_process_find("dot");
  if (!program) {
    cgl_fail(CGL_ERROR_SYSTEM, operation,
             "Graphviz, which makes SVG files, was not found");
    return cgl_fail_hint("install graphviz, so that its program dot is in "
                         "PATH, or write a .dot file");
  }
  char *part = cgl_format("%s.part", path);
  cgl_status status =
      part ? svg_draw(text, program, part, path, operation)
           : cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory to draw");
  free(part);
  free(program);
  return status;
}


cgl_status cgl_graph_debug_dump(cgl_graph *graph, const char *path) {
  static const char operation[] = "graph:debug_dump";
  cgl_status status = cgl_graph_learn(graph, operation);
  if (status)
    return status;
  picture p = {0};
  status = picture_write(&p, graph);
  const char *ending = strrchr(path, '.');
  if (!status && (p.text.failed || p.list.failed))
    status = cgl_fail(CGL_ERROR_NO_MEMORY, operation, "no memory to draw");
  else if (!status && ending && !strcmp(ending, ".svg"))
    status = write_svg(&p.text, path, operation);
  else if (!status)
    status = write_dot(&p.text, path, operation);
  cgl_text_free(&p.text);
  cgl_text_free(&p.list);
  return status;
}
