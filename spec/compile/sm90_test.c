/* The kernels of the tree compile for a GPU: the long strings of the scripts,
   the README and the manual that hold a __global__ function, and the tests'
   own, go through NVRTC for sm_90.  Templates are instantiated by the tests
   that use them.  In the machine code of kernels that wait (source.h) nothing
   reads or writes global memory before the wait, which the assembler would
   allow itself for memory that is promised not to change.

     sm90_test [FILE...]   default: the files below, in $srcdir */
#include "compile/compile.h"
#include "tap.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>

static const char *const files[] = {
    "README.md",
    "doc/manual.md",
    "scripts/heat.lua",
    "scripts/nbody.lua",
    "scripts/lib/conjugate.lua",
    "scripts/lib/lattice.lua",
    "scripts/lib/network.lua",
    "spec/compile/barriers.cu",
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


/* Whether an instruction of the section is a load or a store of global memory,
   or of memory of any kind, before the wait.  Instructions of sm_90 have 16
   bytes, and 12 bits of the first say which. */
static bool section_is_early(const unsigned char *code, size_t bytes) {
  enum { LD = 0x980, LDG, ST = 0x985, STG, ACQBULK = 0x82e };
  for (size_t at = 0; at + 16 <= bytes; at += 16) {
    const unsigned what = (unsigned)(code[at] | code[at + 1] << 8) & 0xfff;
    if (what == ACQBULK)
      return false;
    if (what == LD || what == LDG || what == ST || what == STG)
      return true;
  }
  return true; /* there is no wait */
}


static int nwaits; /* kernels that wait */


/* The names of kernels that say they wait and do not. */
static void find_early(const cgl_image *image, char names[200]) {
  const unsigned char *elf = image->bytes;
  Elf64_Ehdr head;
  memcpy(&head, elf, sizeof head);
  const char *texts = NULL;
  for (int pass = 0; pass < 2; pass++)
    for (unsigned i = 0; i < head.e_shnum; i++) {
      Elf64_Shdr section;
      memcpy(&section, elf + head.e_shoff + i * sizeof section, sizeof section);
      if (!pass && i == head.e_shstrndx)
        texts = (const char *)elf + section.sh_offset;
      const char *name = pass ? texts + section.sh_name : "";
      for (size_t k = 0; k < image->nsignatures; k++) {
        const cgl_signature *s = &image->signatures[k];
        if (!s->waits || strncmp(name, ".text.", 6) ||
            strcmp(name + 6, s->lowered))
          continue;
        nwaits++;
        if (section_is_early(elf + section.sh_offset, section.sh_size))
          snprintf(names + strlen(names), 200 - strlen(names), " %s", s->name);
      }
    }
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
  } else {
    char early[200] = "";
    tap_ok(status == CGL_COMPILE_OK && image && !said,
           "%s:%d compiles for sm_90 without a word%s%s", file, line,
           said ? ": " : "", said ? message : "");
    if (image)
      find_early(image, early);
    tap_ok(!*early, "nothing there comes before a wait%s%s", *early ? ": " : "",
           early);
  }
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
  tap_ok(absent || nwaits > 80, "%d kernels wait", nwaits);
  if (absent)
    printf("# no NVRTC: nothing was compiled\n");
  return tap_done();
}
