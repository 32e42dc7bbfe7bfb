/* Annotations from C, of nodes that other code adds, and as ranges that a
   profiler sees: this program stands in for the profiler.  On the device that
   $CGRAPHLUA_DEVICE names. */
#include "cgraphlua.h"
#include "driver/table.h"
#include "tap.h"

#include <string.h>

static cgl_context *context;
static cgl_stream *stream;
static cgl_buffer *buffer;
static char seen[400]; /* what the profiler was told */


static cgl_graph *new_graph(cgl_annotations annotations) {
  cgl_graph_desc desc = {.annotations = annotations};
  cgl_graph *graph = NULL;
  cgl_graph_create(context, &desc, &graph);
  return graph;
}


static void fill(void) {
  const float one = 1;
  cgl_buffer_fill(buffer, stream, &one);
}


/* As a library would, past the recording. */
static void foreign(void) {
  const cgl_driver *driver = cgl_context_driver(context);
  driver->cuMemsetD8Async(cgl_buffer_address(buffer), 0, 16,
                          cgl_stream_handle(stream));
}


static uint64_t begin(cgl_graph *graph, const char *label) {
  const cgl_annotation pair = {"label", CGL_ANNOTATION_TEXT, label, 0};
  uint64_t scope = 0;
  cgl_graph_annotate(graph, &pair, 1, &scope);
  return scope;
}


/* The labels of all nodes are those in the list. */
static bool labelled(cgl_graph *graph, const char *const *labels, size_t n) {
  size_t count = 0;
  bool same = !cgl_graph_node_count(graph, &count) && count == n;
  for (size_t i = 0; i < n && same; i++) {
    cgl_node_info info;
    same = !cgl_graph_node(graph, i, &info) && !info.label == !labels[i] &&
           (!info.label || !strcmp(info.label, labels[i]));
    if (!same)
      printf("# node %zu: %s for %s\n", i, info.label ? info.label : "none",
             labels[i] ? labels[i] : "none");
  }
  return same;
}


static void test_scopes(void) {
  cgl_graph *graph = new_graph(CGL_ANNOTATIONS_ON);
  const cgl_annotation pairs[] = {{"label", CGL_ANNOTATION_TEXT, "a", 0},
                                  {"n", CGL_ANNOTATION_NUMBER, NULL, 2},
                                  {"b", CGL_ANNOTATION_BOOLEAN, NULL, 1}};
  uint64_t outer = 1, inner = 1;
  tap_ok(!cgl_graph_annotate(graph, pairs, 3, &outer) && !outer,
         "nothing is noted before a capture");
  cgl_graph_capture_begin(graph, stream);
  cgl_graph_annotate(graph, pairs, 3, &outer);
  fill();
  inner = begin(graph, "inner");
  fill();
  cgl_graph_annotate_end(graph, outer);
  fill();
  cgl_graph_annotate_end(graph, inner);
  cgl_graph_annotate_end(graph, outer);
  cgl_graph_capture_end(graph);
  static const char *const labels[] = {"a", "inner", NULL};
  tap_ok(labelled(graph, labels, 3), "the end of a scope ends those inside");
  cgl_node_info info;
  cgl_graph_node(graph, 1, &info);
  tap_ok(info.nannotations == 3 && !strcmp(info.annotations[0].text, "inner") &&
             info.annotations[1].number == 2 && info.annotations[2].number == 1,
         "scopes merge");
  const cgl_annotation bad = {NULL, CGL_ANNOTATION_TEXT, "a", 0};
  const cgl_annotation empty = {"a", CGL_ANNOTATION_TEXT, NULL, 0};
  tap_ok(cgl_graph_annotate(graph, &bad, 1, &inner) ==
                 CGL_ERROR_INVALID_ARGUMENT &&
             cgl_graph_annotate(graph, &empty, 1, &inner) ==
                 CGL_ERROR_INVALID_ARGUMENT,
         "a pair without a key or a value is refused");
  cgl_graph_release(graph);
}


static void test_foreign(void) {
  cgl_graph *graph = new_graph(CGL_ANNOTATIONS_ON);
  cgl_graph_capture_begin(graph, stream);
  foreign();
  uint64_t a = begin(graph, "a");
  foreign();
  fill();
  foreign();
  uint64_t b = begin(graph, "b");
  foreign();
  cgl_graph_annotate_end(graph, b);
  foreign();
  cgl_graph_annotate_end(graph, a);
  foreign();
  fill();
  cgl_graph_capture_end(graph);
  static const char *const labels[] = {NULL, "a", "a",  "a",
                                       "b",  "a", NULL, NULL};
  tap_ok(labelled(graph, labels, 8), "nodes that others add have labels, too");
  cgl_graph_release(graph);
}


#ifdef CGL_NVTX

/* Looked for by NVTX at its first call. */
extern int (*InitializeInjectionNvtx2_fnptr)(const void *(*)(uint32_t));
#define NVTX_STATIC_INJECTION_IMPL
#include <nvtx3/nvToolsExt.h>

static nvtxDomainHandle_t NVTX_API create_domain(const char *name) {
  return !strcmp(name, "cgraphlua") ? (nvtxDomainHandle_t)(uintptr_t)7 : NULL;
}


static int NVTX_API push(nvtxDomainHandle_t domain,
                         const nvtxEventAttributes_t *attributes) {
  size_t at = strlen(seen);
  if (domain == (nvtxDomainHandle_t)(uintptr_t)7)
    snprintf(seen + at, sizeof seen - at, "<%s", attributes->message.ascii);
  return 0;
}


static int NVTX_API pop(nvtxDomainHandle_t domain) {
  if (domain == (nvtxDomainHandle_t)(uintptr_t)7)
    strcat(seen, ">");
  return 0;
}


static int NVTX_API attach(NvtxGetExportTableFunc_t get_table) {
  const NvtxExportTableCallbacks *callbacks = get_table(NVTX_ETID_CALLBACKS);
  NvtxFunctionTable table = NULL;
  unsigned size = 0;
  if (!callbacks ||
      !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
    return 0;
  *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push;
  *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop;
  return 1;
}

int (*InitializeInjectionNvtx2_fnptr)(const void *(*)(uint32_t)) = attach;


static bool saw(const char *text) {
  bool same = !strcmp(seen, text);
  if (!same)
    printf("# \"%s\" for \"%s\"\n", seen, text);
  memset(seen, 0, sizeof seen);
  return same;
}


static void test_ranges(void) {
  cgl_graph *graph = new_graph(CGL_ANNOTATIONS_NVTX);
  cgl_graph_capture_begin(graph, stream);
  uint64_t a = begin(graph, "a"), b = begin(graph, "b");
  fill();
  cgl_graph_annotate_end(graph, b);
  cgl_graph_annotate_end(graph, a);
  a = begin(graph, "c");
  begin(graph, "d");
  cgl_graph_annotate_end(graph, a);
  tap_ok(saw("<a<b>><c<d>>"), "a profiler sees the scopes of a capture");
  begin(graph, "open");
  cgl_graph_capture_end(graph);
  tap_ok(saw("<open>"), "and the end of those that the capture cuts");
  cgl_graph_replay(graph, stream, 3);
  tap_ok(saw("<graph without kernels>"), "and each replay");
  cgl_graph_reset(graph);
  cgl_graph_capture_begin(graph, stream);
  begin(graph, "lost");
  cgl_graph_capture_abandon(graph);
  tap_ok(saw("<lost>"), "a capture that is abandoned leaves none open");
  cgl_graph_release(graph);
  graph = new_graph(CGL_ANNOTATIONS_ON);
  cgl_graph_capture_begin(graph, stream);
  cgl_graph_annotate_end(graph, begin(graph, "quiet"));
  cgl_graph_capture_end(graph);
  cgl_graph_replay(graph, stream, 1);
  tap_ok(saw(""), "a graph that was not asked to is quiet");
  cgl_graph_release(graph);
}

#else

static void test_ranges(void) {
  cgl_graph_desc desc = {.annotations = CGL_ANNOTATIONS_NVTX};
  cgl_graph *graph = NULL;
  tap_ok(cgl_graph_create(context, &desc, &graph) == CGL_ERROR_NOT_FOUND,
         "ranges are refused by a build that has none");
  tap_skip("a profiler sees ranges", "no nvtx3/nvToolsExt.h");
  (void)seen;
}

#endif


int main(void) {
  if (cgl_context_open(NULL, &context) ||
      cgl_stream_create(context, 0, &stream) ||
      cgl_buffer_create(stream, NULL, CGL_TYPE_float, 16, &buffer)) {
    tap_ok(false, "%s", cgl_last_error()->message);
    return tap_done();
  }
  test_scopes();
  test_foreign();
  test_ranges();
  cgl_buffer_release(buffer);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(cgl_live("all") == 0, "nothing is left alive");
  return tap_done();
}
