/* Philox4x32-10: the device text against the known answers of Random123, a
   fill's words against Random123's own header where it is installed, and
   generators of many threads at once. */
#include "cgraphlua.h"
#include "driver/table.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

#ifdef HAVE_RANDOM123_PHILOX_H
#include <Random123/philox.h>
#endif

static cgl_context *context;
static cgl_stream *stream;

static const char source[] =
    "extern \"C\" __global__ void block(uint4 *out, unsigned long long "
    "position,\n"
    "    unsigned long long operation, unsigned long long seed) {\n"
    "  *out = cgl_philox4x32(position, operation, seed);\n"
    "}\n";


static bool done(cgl_status status) {
  if (status)
    fprintf(stderr, "%s\n", cgl_last_error()->message);
  return !status;
}


/* Counters and keys of Random123's kat_vectors for philox4x32, 10 rounds. */
static void known_answers(void) {
  static const struct {
    uint32_t counter[4], key[2], words[4];
  } cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{~0u, ~0u, ~0u, ~0u},
       {~0u, ~0u},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  const cgl_module_desc desc = {.source = source, .file = "philox_test"};
  const cgl_launch one = {{1, 1, 1}, {1, 1, 1}, 0};
  cgl_module *module = NULL;
  cgl_kernel *kernel = NULL;
  cgl_buffer *out = NULL;
  if (!tap_ok(
          done(cgl_module_create(context, &desc, &module)) &&
              done(cgl_module_kernel(module, "block", &kernel)) &&
              done(cgl_buffer_create(stream, NULL, CGL_TYPE_uint32, 4, &out)),
          "a kernel may ask for a block by its counter and key"))
    return;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint32_t *c = cases[i].counter, *k = cases[i].key;
    uint32_t words[4] = {0};
    const cgl_arg args[] = {
        {.kind = CGL_ARG_BUFFER, .buffer = out},
        {.kind = CGL_ARG_UINT, .u = (uint64_t)c[1] << 32 | c[0]},
        {.kind = CGL_ARG_UINT, .u = (uint64_t)c[3] << 32 | c[2]},
        {.kind = CGL_ARG_UINT, .u = (uint64_t)k[1] << 32 | k[0]},
    };
    bool ran = done(cgl_kernel_launch(kernel, stream, &one, args, 4)) &&
               done(cgl_buffer_download(out, stream, 0, words, sizeof words));
    tap_ok(ran && !memcmp(words, cases[i].words, sizeof words),
           "known answer %zu is given", i + 1);
  }
  cgl_buffer_release(out);
  cgl_kernel_release(kernel);
  cgl_module_release(module);
}


#ifdef HAVE_RANDOM123_PHILOX_H

/* Word i % 4 of the block at position i / 4 of operation `offset`. */
static bool fill_is(uint64_t seed, uint64_t offset, size_t count) {
  cgl_generator *generator = NULL;
  cgl_buffer *buffer = NULL;
  uint32_t *words = calloc(count, sizeof *words);
  bool same =
      words && done(cgl_generator_create(context, seed, &generator)) &&
      done(cgl_generator_set_offset(generator, stream, offset)) &&
      done(cgl_buffer_create(stream, NULL, CGL_TYPE_uint32, count, &buffer)) &&
      done(
          cgl_buffer_random(buffer, generator, stream, 0, UINT64_C(1) << 32)) &&
      done(
          cgl_buffer_download(buffer, stream, 0, words, count * sizeof *words));
  for (size_t i = 0; same && i < count; i++) {
    const philox4x32_ctr_t counter = {
        {(uint32_t)(i / 4), (uint32_t)((uint64_t)(i / 4) >> 32),
         (uint32_t)offset, (uint32_t)(offset >> 32)}};
    const philox4x32_key_t key = {{(uint32_t)seed, (uint32_t)(seed >> 32)}};
    same = words[i] == philox4x32(counter, key).v[i % 4];
  }
  cgl_buffer_release(buffer);
  cgl_generator_release(generator);
  free(words);
  return same;
}


static void oracle(void) {
  static const uint64_t seeds[] = {0, 1, 67280421310721, UINT64_MAX,
                                   UINT64_C(0x8000000000000001)};
  static const uint64_t offsets[] = {0, 7, UINT64_C(1) << 32,
                                     UINT64_C(0xfedcba9876543210)};
  for (size_t s = 0; s < sizeof seeds / sizeof *seeds; s++)
    for (size_t o = 0; o < sizeof offsets / sizeof *offsets; o++)
      tap_ok(fill_is(seeds[s], offsets[o], 4099),
             "4099 words of seed %llu at offset %llu are Random123's",
             (unsigned long long)seeds[s], (unsigned long long)offsets[o]);
}

#else

static void oracle(void) {
  tap_skip("words are Random123's", "its header is not installed");
}

#endif


/* ---- threads ---- */

enum { THREADS = 6, ROUNDS = 12, WORDS = 64 };

/* The first word of an operation, as this file knows Philox. */
static uint32_t first_word(uint64_t operation, uint64_t seed) {
  uint32_t c[4] = {0, 0, (uint32_t)operation, (uint32_t)(operation >> 32)};
  uint32_t k[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
  for (int round = 0; round < 10; round++) {
    const uint64_t p = UINT64_C(0xd2511f53) * c[0];
    const uint64_t q = UINT64_C(0xcd9e8d57) * c[2];
    const uint32_t next[4] = {(uint32_t)(q >> 32) ^ c[1] ^ k[0], (uint32_t)q,
                              (uint32_t)(p >> 32) ^ c[3] ^ k[1], (uint32_t)p};
    memcpy(c, next, sizeof c);
    k[0] += 0x9e3779b9;
    k[1] += 0xbb67ae85;
  }
  return c[0];
}


static bool draw(cgl_buffer *x, cgl_generator *generator, cgl_stream *s) {
  return done(cgl_buffer_random(x, generator, s, 0, UINT64_C(1) << 32));
}


static bool holds(cgl_buffer *x, cgl_stream *s, uint64_t operation,
                  uint64_t seed) {
  uint32_t words[WORDS];
  return done(cgl_buffer_download(x, s, 0, words, sizeof words)) &&
         words[0] == first_word(operation, seed);
}


/* One eager draw, a capture of two, three replays on two streams. */
static bool round_trip(cgl_generator *generator, uint64_t seed, cgl_stream *s,
                       cgl_stream *t, uint64_t *operation) {
  cgl_buffer *x = NULL, *y = NULL;
  cgl_graph *graph = NULL;
  bool right = done(cgl_buffer_create(s, NULL, CGL_TYPE_uint32, WORDS, &x)) &&
               done(cgl_buffer_create(s, NULL, CGL_TYPE_uint32, WORDS, &y)) &&
               draw(x, generator, s) && holds(x, s, (*operation)++, seed) &&
               done(cgl_graph_create(context, NULL, &graph)) &&
               done(cgl_graph_capture_begin(graph, s)) &&
               draw(x, generator, s) && draw(y, generator, s) &&
               done(cgl_graph_capture_end(graph)) &&
               done(cgl_graph_replay(graph, s, 2)) &&
               done(cgl_graph_replay(graph, t, 1));
  *operation += 6;
  right = right && holds(x, t, *operation - 2, seed) &&
          holds(y, t, *operation - 1, seed);
  cgl_graph_release(graph);
  cgl_buffer_release(x);
  cgl_buffer_release(y);
  return right;
}


static void *work(void *argument) {
  const uint64_t seed = 1000 + (uintptr_t)argument;
  uint64_t operation = 0, offset = 0;
  cgl_generator *generator = NULL;
  cgl_stream *s = NULL, *t = NULL;
  bool right = done(cgl_stream_create(context, 0, &s)) &&
               done(cgl_stream_create(context, 0, &t)) &&
               done(cgl_generator_create(context, seed, &generator));
  for (int i = 0; right && i < ROUNDS; i++)
    right = round_trip(generator, seed, s, t, &operation);
  right = right && done(cgl_generator_get_offset(generator, s, &offset)) &&
          offset == operation;
  cgl_generator_release(generator);
  cgl_stream_release(s);
  cgl_stream_release(t);
  tap_ok(right, "thread %zu draws its own sequence", (size_t)argument);
  return NULL;
}


/* The kernels are loaded by whoever comes first. */
static void threads(void) {
  pthread_t list[THREADS];
  for (size_t i = 0; i < THREADS; i++)
    pthread_create(&list[i], NULL, work, (void *)i);
  for (size_t i = 0; i < THREADS; i++)
    pthread_join(list[i], NULL);
}


/* ---- streams of others ---- */

/* A stream that the driver captures without our knowing. */
static void engines(void) {
  const cgl_driver *driver = cgl_context_driver(context);
  CUstream handle = NULL;
  CUgraph theirs = NULL;
  cgl_stream *s = NULL;
  cgl_generator *generator = NULL;
  cgl_buffer *x = NULL;
  cgl_graph *graph = NULL;
  bool ready = !driver->cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING) &&
               done(cgl_stream_from_handle(context, handle, &s)) &&
               done(cgl_generator_create(context, 5, &generator)) &&
               done(cgl_buffer_create(s, NULL, CGL_TYPE_uint32, WORDS, &x)) &&
               done(cgl_graph_create(context, NULL, &graph)) &&
               done(cgl_graph_capture_begin(graph, s)) &&
               draw(x, generator, s) && done(cgl_graph_capture_end(graph));
  tap_ok(ready && done(cgl_graph_replay(graph, s, 1)) && holds(x, s, 0, 5) &&
             draw(x, generator, s) && holds(x, s, 1, 5),
         "an engine's stream draws, and replays what draws");
  ready = ready && !driver->cuStreamBeginCapture(
                       handle, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  tap_ok(ready && cgl_buffer_random(x, generator, s, 0, 10) ==
                      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         "but not while the engine captures it");
  tap_ok(ready && cgl_graph_replay(graph, s, 1) ==
                      CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
         "nor does a graph that draws become a part of the engine's");
  tap_ok(ready && !driver->cuStreamEndCapture(handle, &theirs) &&
             !driver->cuGraphDestroy(theirs),
         "whose capture is whole all the same");
  tap_ok(ready && draw(x, generator, stream) && holds(x, stream, 2, 5),
         "no number is lost");
  ready = ready && draw(x, generator, s);
  cgl_graph_release(graph);
  cgl_buffer_release(x);
  cgl_stream_release(s);
  /* The state was last used on a stream that is gone now. */
  driver->cuStreamDestroy(handle);
  ready = ready &&
          done(cgl_buffer_create(stream, NULL, CGL_TYPE_uint32, WORDS, &x));
  tap_ok(ready && draw(x, generator, stream) && holds(x, stream, 4, 5),
         "nor when the engine has destroyed its stream");
  cgl_buffer_release(x);
  cgl_generator_release(generator);
}


int main(void) {
  if (!done(cgl_context_open(NULL, &context)) ||
      !done(cgl_stream_default(context, &stream)))
    return 77;
  threads();
  engines();
  known_answers();
  oracle();
  cgl_stream_release(stream);
  cgl_context_release(context);
  tap_ok(!cgl_live("all"), "nothing is left alive");
  return tap_done();
}
