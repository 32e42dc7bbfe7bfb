/* Bytes as operations on pools, beside the model of pool_model.h.
   LLVMFuzzerTestOneInput is libFuzzer's entry point: built with clang
   -fsanitize=fuzzer -DCGL_LIBFUZZER it is a fuzzer of its own.  Else:
   pool_fuzz_test [SECONDS [FOLDER]] runs every file of the folder (the stored
   corpus), and then mutations of them for so long, by default as
   $CGRAPHLUA_FUZZ_SECONDS says, else 2.  What fails is written to
   pool-failure.bin. */
#include "core/pool/pool_model.h"
#include "tap.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct text {
  model_source source;
  const uint8_t *at, *end;
} text;

static char wrong[400]; /* what the last input showed, or "" */


static bool read_byte(model_source *source, uint8_t *byte) {
  text *t = (text *)source;
  if (t->at == t->end)
    return false;
  *byte = *t->at++;
  return true;
}


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  text input = {{read_byte, NULL}, data, data + size};
  model_world world;
  model_thread thread;
  *wrong = 0;
  if (model_open(&world) ||
      model_enter(&thread, &world, 0, true, &input.source)) {
    snprintf(wrong, sizeof wrong, "no device");
    return 0;
  }
  while (!thread.ended && !*world.wrong) {
    model_step(&thread);
    model_look(&thread);
  }
  model_leave(&thread);
  model_look(&thread);
  snprintf(wrong, sizeof wrong, "%s", world.wrong);
  model_close(&world);
  if (!*wrong && cgl_live("all") != 0)
    snprintf(wrong, sizeof wrong, "something is alive at the end");
#ifdef CGL_LIBFUZZER
  if (*wrong)
    abort();
#endif
  return 0;
}


#ifndef CGL_LIBFUZZER
enum { FILES = 256, ROOM = 4096 };

typedef struct input {
  size_t size;
  uint8_t bytes[ROOM];
} input;

static input *inputs[FILES];
static int ninputs;
static uint64_t state = 0x9e3779b97f4a7c15;


static uint64_t draw(uint64_t below) {
  state = state * UINT64_C(6364136223846793005) + 1442695040888963407;
  return (state >> 33) % below;
}


static void load(const char *folder, const char *name) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = *name == '.' ? NULL : fopen(path, "rb");
  input *read = file ? calloc(1, sizeof *read) : NULL;
  if (read && ninputs < FILES) {
    read->size = fread(read->bytes, 1, ROOM, file);
    inputs[ninputs++] = read;
    LLVMFuzzerTestOneInput(read->bytes, read->size);
    tap_ok(!*wrong, "%s: %s", name, *wrong ? wrong : "right");
  }
  if (file)
    fclose(file);
}


/* Part of one input, part of another, and a few bytes of no one's. */
static void mutate(input *to) {
  const input *a = inputs[draw(ninputs)], *b = inputs[draw(ninputs)];
  size_t head = draw(a->size + 1), tail = draw(b->size + 1);
  size_t rest = b->size - tail;
  memcpy(to->bytes, a->bytes, head);
  rest = rest > ROOM - head ? ROOM - head : rest;
  memcpy(to->bytes + head, b->bytes + tail, rest);
  to->size = head + rest;
  for (uint64_t n = draw(8); n && to->size; n--)
    to->bytes[draw(to->size)] = (uint8_t)draw(256);
}


static void keep(const input *failed) {
  FILE *file = fopen("pool-failure.bin", "wb");
  if (!file)
    return;
  fwrite(failed->bytes, 1, failed->size, file);
  fclose(file);
}


int main(int argc, char **argv) {
  const char *wish = getenv("CGRAPHLUA_FUZZ_SECONDS");
  const char *root = getenv("srcdir");
  char folder[2048];
  snprintf(folder, sizeof folder, "%s/spec/corpus/pool", root ? root : ".");
  double seconds = argc > 1 ? atof(argv[1]) : wish ? atof(wish) : 2;
  const char *from = argc > 2 ? argv[2] : folder;
  struct dirent **names;
  int count = scandir(from, &names, NULL, alphasort);
  for (int i = 0; i < count; i++) {
    load(from, names[i]->d_name);
    free(names[i]);
  }
  if (count >= 0)
    free(names);
  if (!tap_ok(ninputs > 0, "there is a corpus in %s", from))
    return tap_done();
  static input mutant;
  unsigned long runs = 0;
  state ^= (uint64_t)time(NULL);
  struct timespec start, now;
  clock_gettime(CLOCK_MONOTONIC, &start);
  do {
    mutate(&mutant);
    LLVMFuzzerTestOneInput(mutant.bytes, mutant.size);
    runs++;
    clock_gettime(CLOCK_MONOTONIC, &now);
  } while (!*wrong && (double)(now.tv_sec - start.tv_sec) +
                              1e-9 * (double)(now.tv_nsec - start.tv_nsec) <
                          seconds);
  if (*wrong)
    keep(&mutant);
  tap_ok(!*wrong, "%lu mutations: %s", runs, *wrong ? wrong : "right");
  for (int i = 0; i < ninputs; i++)
    free(inputs[i]);
  return tap_done();
}
#endif
