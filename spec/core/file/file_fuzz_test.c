/* Files of graphs with bytes changed, and the digest made right again: each is
   refused or is a graph that can be made; no check reads outside the bytes.
   $CGRAPHLUA_FUZZ_FILES says how many (20000).  What fails is written to
   file-failure.cgl.  On the device that $CGRAPHLUA_DEVICE names. */
#include "core/file/file.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER = 48, LENGTH_AT = 16, SUM_AT = 24, MOST_LOADS = 150 };

static const char source[] =
    "extern \"C\" __global__ void add(float *x, float a) {\n"
    "  x[threadIdx.x] += a;\n"
    "}\n"
    "extern \"C\" __global__ void draw(float *x, cgl_philox random) {\n"
    "  x[threadIdx.x] = cgl_uniform(random);\n"
    "}\n";

static const char path[] = "file-failure.cgl";
static cgl_context *context;
static cgl_stream *stream;
static uint64_t seed = 88172645463325252u;


static uint64_t random_below(uint64_t n) {
  seed ^= seed << 13;
  seed ^= seed >> 7;
  seed ^= seed << 17;
  return seed % n;
}


static int64_t live(void) {
  return cgl_live("graph") + cgl_live("buffer") + cgl_live("module") +
         cgl_live("kernel") + cgl_live("pool") + cgl_live("generator") +
         cgl_live("stream") + cgl_live("param");
}


/* ---- the file ---- */

typedef struct world {
  cgl_module *module;
  cgl_kernel *add, *draw;
  cgl_generator *generator;
  cgl_param *param;
  cgl_buffer *x, *y, *flag, *element;
  cgl_fft *fft; /* NULL: this machine has none, or it is a GPU's */
  cgl_buffer *z;
  cgl_graph *child, *graph;
} world;


static cgl_status launch(const world *w, cgl_stream *on, bool draws) {
  static const cgl_launch shape = {{1, 1, 1}, {32, 1, 1}, 0};
  const cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = w->x},
                          {.kind = CGL_ARG_PARAM, .param = w->param}};
  const cgl_arg random[] = {
      args[0], {.kind = CGL_ARG_GENERATOR, .generator = w->generator}};
  return draws ? cgl_kernel_launch(w->draw, on, &shape, random, 2)
               : cgl_kernel_launch(w->add, on, &shape, args, 2);
}


/* Operations with numbers behind their values (cgl_rule). */
static cgl_status ruled(const world *w) {
  static const cgl_launch shape = {{1, 1, 1}, {32, 1, 1}, 0};
  const cgl_arg args[] = {{.kind = CGL_ARG_BUFFER, .buffer = w->x},
                          {.kind = CGL_ARG_PARAM, .param = w->param}};
  const cgl_grid_params threads = {.threads = w->param};
  const cgl_grid_params extents = {.extents = {NULL, w->param}};
  const cgl_bound low = {w->param, 0}, high = {NULL, 2};
  cgl_status status =
      cgl_kernel_launch_params(w->add, stream, &shape, &threads, args, 2);
  if (!status)
    status =
        cgl_kernel_launch_params(w->add, stream, &shape, &extents, args, 2);
  return status
             ? status
             : cgl_buffer_uniform_params(w->y, w->generator, stream, low, high);
}


/* A kernel and a fill that read a parameter from memory. */
static cgl_status followed(const world *w) {
  cgl_status status = cgl_param_follow(w->param, w->element);
  if (!status)
    status = launch(w, stream, false);
  if (!status)
    status = cgl_buffer_fill_param(w->x, stream, w->param);
  if (!status)
    status = cgl_param_follow(w->param, NULL);
  return status;
}


static cgl_status branch(const world *w, cgl_conditional_kind kind,
                         cgl_conditional_form form) {
  const cgl_conditional_desc desc = {
      .kind = kind, .value = w->flag, .form = form, .max = 3};
  cgl_conditional *conditional = NULL;
  cgl_stream *inner = NULL;
  int body = 0;
  cgl_status status = cgl_conditional_begin(stream, &desc, &conditional);
  while (!status &&
         !(status = cgl_conditional_next(conditional, &body, &inner)) &&
         body >= 0)
    status = launch(w, inner, false);
  if (!conditional)
    return status;
  if (!status)
    return cgl_conditional_end(conditional);
  cgl_conditional_abandon(conditional);
  return status;
}


static cgl_status transform(const world *w) {
  return w->fft ? cgl_fft_issue(w->fft, stream, CGL_FFT_fft,
                                CGL_FFT_NORM_backward, 1, w->z, w->z)
                : CGL_OK;
}


static cgl_status capture(world *w) {
  cgl_status status = transform(w); /* makes the plan */
  if (!status)
    status = cgl_graph_capture_begin(w->child, stream);
  if (!status)
    status = launch(w, stream, false);
  if (!status)
    status = transform(w);
  if (!status)
    status = cgl_graph_capture_end(w->child);
  if (!status)
    status = cgl_graph_capture_begin(w->graph, stream);
  if (!status)
    status = launch(w, stream, true);
  if (!status)
    status = cgl_buffer_copy(w->y, w->x, stream);
  if (!status)
    status = cgl_buffer_fill_param(w->x, stream, w->param);
  if (!status)
    status = ruled(w);
  if (!status)
    status = followed(w);
  if (!status)
    status = cgl_graph_replay(w->child, stream, 1);
  if (!status)
    status = branch(w, CGL_CONDITIONAL_LOOP, CGL_CONDITIONAL_NODE);
  if (!status)
    status = branch(w, CGL_CONDITIONAL_WHEN, CGL_CONDITIONAL_PREDICATED);
  return status ? status : cgl_graph_capture_end(w->graph);
}


static cgl_status save(world *w) {
  static const cgl_module_desc desc = {.source = source};
  const float one = 1;
  cgl_status status = cgl_module_create(context, &desc, &w->module);
  if (!status)
    status = cgl_module_kernel(w->module, "add", &w->add);
  if (!status)
    status = cgl_module_kernel(w->module, "draw", &w->draw);
  if (!status)
    status = cgl_generator_create(context, 7, &w->generator);
  if (!status)
    status = cgl_param_create(context, CGL_TYPE_float, 1, &one, "a", &w->param);
  if (!status)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_float, 32, &w->x);
  if (!status)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_float, 32, &w->y);
  if (!status)
    status = cgl_buffer_view(w->y, 3, 1, &w->element);
  if (!status)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_bool, 1, &w->flag);
  if (!status)
    status = cgl_buffer_create(stream, NULL, CGL_TYPE_complex64, 16, &w->z);
  if (!status && cgl_module_target(context).format == CGL_IMAGE_HOST)
    cgl_fft_create(context, &w->fft);
  if (!status)
    status = cgl_graph_create(context, NULL, &w->child);
  if (!status)
    status = cgl_graph_create(context, NULL, &w->graph);
  if (!status)
    status = capture(w);
  const cgl_named_buffer names[] = {{"x", w->x}, {"y", w->y}};
  const cgl_save_graph graphs[] = {
      {"b", w->graph, names, names + 1, 1, 1},
      {.name = "c", .graph = w->child},
  };
  return status ? status : cgl_graph_save(graphs, 2, path, NULL);
}


static void world_free(const world *w) {
  cgl_graph_release(w->graph);
  cgl_graph_release(w->child);
  cgl_buffer_release(w->x);
  cgl_buffer_release(w->y);
  cgl_buffer_release(w->flag);
  cgl_buffer_release(w->element);
  cgl_buffer_release(w->z);
  cgl_fft_destroy(w->fft);
  cgl_generator_release(w->generator);
  cgl_param_release(w->param);
  cgl_kernel_release(w->add);
  cgl_kernel_release(w->draw);
  cgl_module_release(w->module);
}


/* ---- changes ---- */

/* Where machine code is, which no check can tell right from wrong. */
static bool is_code(const cgl_file_content *content, const char *at) {
  for (uint32_t m = 0; m < content->nmodules; m++)
    for (uint32_t i = 0; i < content->modules[m].nimages; i++) {
      const cgl_file_bytes *b = &content->modules[m].images[i].bytes;
      const cgl_file_bytes *row = &content->modules[m].images[i].row;
      const char *code = b->data, *names = row->data;
      if ((at >= code && at < code + b->length) ||
          (at >= names && at < names + row->length))
        return true;
    }
  return false;
}


static void set_digest(char *bytes, size_t length) {
  const uint64_t now = length;
  const cgl_cache_key sum = cgl_cache_hash(bytes + HEADER, length - HEADER);
  memcpy(bytes + LENGTH_AT, &now, sizeof now);
  memcpy(bytes + SUM_AT, &sum, sizeof sum);
}


static void change(char *bytes, size_t *length, const cgl_file_content *content,
                   const char *base) {
  static const uint32_t words[] = {0,          1,          2,       UINT32_MAX,
                                   0x7fffffff, 0x80000000, 0x10000, 0xff};
  for (uint64_t n = 1 + random_below(3); n; n--) {
    size_t at;
    do
      at = HEADER + random_below(*length - HEADER - 4);
    while (is_code(content, base + at));
    switch (random_below(8)) {
    case 0: /* shorter */
      if (random_below(8) == 0)
        *length = at + 5;
      break;
    case 1: { /* part of it again elsewhere */
      const size_t from = HEADER + random_below(*length - HEADER - 4);
      size_t size = 1 + random_below(16);
      if (from + size < *length && at + size < *length &&
          !is_code(content, base + at + size))
        memmove(bytes + at, bytes + from, size);
      break;
    }
    case 2:
    case 3:
      memcpy(bytes + at, &words[random_below(8)], 4);
      break;
    case 4:
      bytes[at] = (char)(bytes[at] ^ 1 << random_below(8));
      break;
    case 5:
      bytes[at] = (char)(bytes[at] + (random_below(2) ? 1 : -1));
      break;
    default:
      bytes[at] = (char)random_below(256);
    }
  }
  set_digest(bytes, *length);
}


static bool write_file(const char *bytes, size_t length) {
  FILE *file = fopen(path, "wb");
  const bool well = file && fwrite(bytes, 1, length, file) == length;
  return file && fclose(file) == 0 && well;
}


/* Loads it from a file; whatever comes of it, nothing is left behind. */
static bool load_leaves_nothing(const char *bytes, size_t length,
                                bool expected) {
  const int64_t before = live();
  cgl_graph *graphs[2] = {NULL};
  size_t n = 0;
  if (!write_file(bytes, length))
    return false;
  cgl_status status = cgl_graph_load_all(context, path, NULL, graphs, 2, &n);
  cgl_graph_release(graphs[0]);
  cgl_graph_release(graphs[1]);
  return (expected || status) && live() == before;
}


/* Whether the checks let the bytes through. */
static bool passes(const char *bytes, size_t length) {
  cgl_file_content content;
  const cgl_file_op *where;
  bool well = !cgl_file_unpack(bytes, length, path, &content, "test") &&
              !cgl_file_check(&content, NULL, &where);
  cgl_image **images =
      calloc(content.nmodules + (size_t)1, sizeof(cgl_image *));
  for (uint32_t m = 0; m < content.nmodules && well; m++) {
    const cgl_file_image *image =
        cgl_file_find_image(&content.modules[m], context, false);
    images[m] = image ? cgl_file_open_image(image) : NULL;
    well = images[m];
  }
  well = well && !cgl_file_check(&content, images, &where);
  for (uint32_t m = 0; m < content.nmodules; m++)
    cgl_image_free(images[m]);
  free((void *)images);
  cgl_arena_free(&content.arena);
  return well;
}


static void fuzz(const char *base, size_t length) {
  const char *wish = getenv("CGRAPHLUA_FUZZ_FILES");
  const long count = wish ? strtol(wish, NULL, 10) : 20000;
  cgl_file_content content;
  char *bytes = malloc(length + 8);
  long passed = 0, refused = 0, made = 0, not_made = 0;
  bool clean = bytes && !cgl_file_unpack(base, length, path, &content, "test");
  for (long i = 0; i < count && clean; i++) {
    size_t now = length;
    memcpy(bytes, base, length);
    change(bytes, &now, &content, base);
    /* A copy of just the size, so that a read behind it is seen. */
    char *exact = malloc(now);
    memcpy(exact, bytes, now);
    const bool well = passes(exact, now);
    passed += well;
    refused += !well;
    if (well ? made++ < MOST_LOADS : not_made++ < MOST_LOADS)
      clean = load_leaves_nothing(exact, now, well);
    free(exact);
  }
  tap_ok(clean,
         "%ld files: %ld pass the checks, %ld are refused, and nothing "
         "is left of either",
         count, passed, refused);
  tap_ok(passed > 0 && refused > 0, "the changes reach both");
  if (clean)
    unlink(path);
  cgl_arena_free(&content.arena);
  free(bytes);
}


/* ---- files that are whole, and not for this program ---- */

/* Whether the file is refused so, with one byte of it, `at`, changed. */
static bool is_refused(const char *base, size_t length, const void *at,
                       cgl_status expected, const char *why) {
  char *bytes = malloc(length);
  cgl_graph *graph = NULL;
  memcpy(bytes, base, length);
  bytes[(const char *)at - base] ^= 1;
  set_digest(bytes, length);
  const bool well = write_file(bytes, length) &&
                    cgl_graph_load(context, path, NULL, &graph) == expected &&
                    strstr(cgl_last_error()->message, why);
  free(bytes);
  return well;
}


static void refusals(const char *base, size_t length) {
  cgl_file_content content;
  if (!tap_ok(!cgl_file_unpack(base, length, path, &content, "test"),
              "the file has a content"))
    return;
  cgl_file_module *user = NULL, *own = NULL;
  for (uint32_t m = 0; m < content.nmodules; m++)
    *(content.modules[m].own ? &own : &user) = &content.modules[m];
  tap_ok(user && own &&
             is_refused(base, length, own->sum.data, CGL_ERROR_WRONG_DEVICE,
                        "other kernels of its own"),
         "another version's own kernels are refused");
  if (cgl_module_target(context).format == CGL_IMAGE_HOST)
    tap_ok(is_refused(base, length, user->images[0].level,
                      CGL_ERROR_WRONG_DEVICE, "no image for this processor"),
           "so are images of another processor");
  else
    tap_skip("so are images of another processor", "the device is a GPU");
  tap_ok(is_refused(base, length, content.graphs[0].name,
                    CGL_ERROR_INVALID_ARGUMENT, "two graphs have one name"),
         "a list of graphs with a name twice is refused");
  tap_ok(!content.nlibraries ||
             (is_refused(base, length, content.libraries[0].name,
                         CGL_ERROR_NOT_FOUND, "does not have")),
         "so is a library that this program does not have");
  tap_ok(is_refused(base, length, content.library - 8,
                    CGL_ERROR_INVALID_ARGUMENT, "parts do not fit"),
         "and parts that do not fit");
  cgl_arena_free(&content.arena);
}


/* Counts the bytes it sees, and says no. */
static bool refuse(void *seen, const void *bytes, size_t length) {
  *(size_t *)seen = bytes ? length : 0;
  return false;
}


static void verifying(const char *base, size_t length) {
  size_t seen = 0;
  const cgl_load_desc desc = {.verify = refuse, .verify_data = &seen};
  cgl_graph *graph = NULL;
  tap_ok(write_file(base, length) &&
             cgl_graph_load(context, path, &desc, &graph) ==
                 CGL_ERROR_INVALID_ARGUMENT &&
             seen == length && !graph,
         "what verify refuses is not loaded: %s", cgl_last_error()->message);
}


int main(void) {
  world w = {0};
  char *base = NULL;
  size_t length = 0;
  setenv("CGRAPHLUA_HOST_MEMORY", "64M", 0);
  cgl_status status = cgl_context_open(NULL, &context);
  if (!status)
    status = cgl_stream_create(context, 0, &stream);
  if (!status)
    status = save(&w);
  if (!status)
    status = cgl_file_read(path, &base, &length, "test");
  if (tap_ok(!status, "a file is written: %s", cgl_last_error()->message)) {
    tap_ok(passes(base, length) && load_leaves_nothing(base, length, true),
           "and loaded");
    refusals(base, length);
    verifying(base, length);
    fuzz(base, length);
  }
  free(base);
  world_free(&w);
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(live() == 0, "nothing is left alive");
  return tap_done();
}
