/* Which image of a folder serves which GPU, without one: cubins for their own
   major compute capability, PTX for later ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile/compile.h"
#include "tap.h"

static const char text[] = "extern \"C\" __global__ void f(int *x) { *x = 1; }";

static char folder[] = "/tmp/cgraphlua-shipped-XXXXXX";


/* "cubin" or "ptx", of the folder; "compiled"; or "none". */
static const char *serves(int sm, const char *source) {
  const cgl_source s = {.text = source, .length = strlen(source)};
  const cgl_target target = {.format = CGL_IMAGE_CUBIN, .sm = sm};
  const char *what = "none";
  cgl_image *image = NULL;
  char *message = NULL;
  if (cgl_compile(&target, &s, &image, &message) == CGL_COMPILE_OK) {
    what = memcmp(image->bytes, "\177ELF", 4) ? "ptx" : "cubin";
    if (!image->cached)
      what = "compiled";
    if (image->nsignatures != 1 || strcmp(image->signatures[0].name, "f") ||
        image->signatures[0].nparameters != 1)
      what = "without its kernel";
  }
  cgl_image_free(image);
  free(message);
  return what;
}


static void expect(int sm, const char *source, const char *what,
                   const char *name) {
  const char *got = serves(sm, source);
  if (!tap_ok(!strcmp(got, what), "%s", name))
    printf("# %s for %d\n", got, sm);
}


static void test_serving(void) {
  expect(80, text, "cubin", "a cubin serves its own architecture");
  expect(86, text, "cubin", "and a later one of the same major number");
  expect(90, text, "ptx", "PTX serves a later major number");
  expect(100, text, "ptx", "and those after it");
  expect(75, text, "compiled", "an earlier one is compiled for");
  expect(80, "\nextern \"C\" __global__ void f(int *x) { *x = 1; }", "compiled",
         "and so is another source");
}


static void test_collecting(void) {
  static const char *const archs[] = {"sm_80", "compute_80"};
  const cgl_source s = {.text = text, .length = strlen(text)};
  const cgl_target target = {.format = CGL_IMAGE_CUBIN, .sm = 80};
  cgl_text why = {0};
  size_t n = 0;
  cgl_image *image = NULL;
  bool begun = cgl_compile_collect(archs, 2, &why) == CGL_COMPILE_OK;
  if (!begun) {
    tap_skip("collecting for GPUs", why.data);
    cgl_text_free(&why);
    return;
  }
  tap_ok(cgl_compile(&target, &s, &image, NULL) == CGL_COMPILE_OK &&
             cgl_compile_write(folder, &n, &why) == CGL_COMPILE_OK && n >= 3,
         "images are collected for GPUs and the host device");
  cgl_image_free(image);
  cgl_text_free(&why);
  tap_ok(cgl_compile_from(folder) == 0, "their folder is named");
  test_serving();
  tap_ok(cgl_compile_from(NULL) == 0, "and forgotten");
  expect(80, text, "compiled", "then every source is compiled");
}


int main(void) {
  char command[64];
  setenv("CGRAPHLUA_CACHE", "off", 1);
  unsetenv("CGRAPHLUA_KERNELS");
  if (!tap_ok(mkdtemp(folder) != NULL, "there is a folder"))
    return tap_done();
  test_collecting();
  snprintf(command, sizeof command, "rm -r %s", folder);
  if (system(command))
    printf("# %s is left\n", folder);
  return tap_done();
}
