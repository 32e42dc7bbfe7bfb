/* The kernels of the tree compile for a GPU: the long strings of the scripts,
   the README and the manual that hold a __global__ function, and the tests'
   own, go through NVRTC for sm_90.  Templates are instantiated by the tests
   that use them.

     sm90_test [FILE...]   default: the files below, in $srcdir */
#include "compile/compile.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static const char *const files[] = {
    "README.md",
    "doc/manual.md",
    "scripts/heat.lua",
    "scripts/nbody.lua",
    "scripts/lib/lattice.lua",
    "scripts/lib/network.lua",
    "spec/compile/kernels.cu",
    "spec/compile/promises.cu",
    "src/core/copy/copies.cu",
    "src/core/random/fills.cu",
};

static int found;   /* kernels sources so far */
static bool absent; /* of NVRTC */


static char *read_file(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file)
    return NULL;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *text = calloc(1, (size_t)size + 1);
  if (text && fread(text, 1, (size_t)size, file) != (size_t)size) {
    free(text);
    text = NULL;
  }
  fclose(file);
  return text;
}


static void compile(const char *file, int line, const char *text,
                    size_t length) {
  const cgl_target target = {.format = CGL_IMAGE_CUBIN, .sm = 90};
  const cgl_source source = {
      .text = text, .length = length, .file = file, .line = line};
  cgl_image *image = NULL;
  char *message = NULL;
  cgl_compile_status status = cgl_compile(&target, &source, &image, &message);
  bool said = message && *message;
  found++;
  if (status == CGL_COMPILE_NO_COMPILER) {
    absent = true;
    tap_skip(file, "NVRTC is not installed");
  } else
    tap_ok(status == CGL_COMPILE_OK && image && !said,
           "%s:%d compiles for sm_90 without a word%s%s", file, line,
           said ? ": " : "", said ? message : "");
  cgl_image_free(image);
  free(message);
}


/* The kernels of a text: whole for CUDA C, else each [[ ]] and
   [=[ ]=] of it. */
static void compile_all(const char *file, const char *text) {
  size_t length = strlen(file);
  if (length > 3 && !strcmp(file + length - 3, ".cu")) {
    compile(file, 1, text, strlen(text));
    return;
  }
  int line = 1;
  const char *counted = text;
  for (const char *open = text; (open = strchr(open, '['));) {
    const bool plain = open[1] == '[';
    if (!plain && strncmp(open, "[=[", 3)) {
      open++;
      continue;
    }
    const char *begin = open + (plain ? 2 : 3);
    const char *end = strstr(begin, plain ? "]]" : "]=]");
    if (!end)
      return;
    open = end + 2;
    const char *kernel = strstr(begin, "__global__");
    if (!kernel || kernel > end)
      continue;
    for (; counted < begin; counted++)
      line += *counted == '\n';
    compile(file, line, begin, (size_t)(end - begin));
  }
}


int main(int argc, char **argv) {
  const char *source = getenv("srcdir");
  char path[4096];
  int count = argc > 1 ? argc - 1 : (int)(sizeof files / sizeof *files);
  for (int i = 0; i < count; i++) {
    const char *file = argc > 1 ? argv[i + 1] : files[i];
    snprintf(path, sizeof path, "%s%s%s", argc > 1 || !source ? "" : source,
             argc > 1 || !source ? "" : "/", file);
    char *text = read_file(path);
    int before = found;
    if (!tap_ok(text != NULL, "%s is there", file))
      continue;
    compile_all(file, text);
    tap_ok(found > before, "%s has kernels", file);
    free(text);
  }
  if (absent)
    printf("# no NVRTC: nothing was compiled\n");
  return tap_done();
}
