/* Second forms of kernels: PTX with a parameter and a test more.  Where NVRTC
   and ptxas are, the PTX of a corpus is assembled for sm_90. */
#include "compile/compile.h"
#include "compile/nvrtc/nvrtc.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOKED "\t@%cgl_looks ld.global.u32 %cgl_now, [%cgl_word];"
#define PARAMETER "\t.param .align 8 .b8 cgl_predicate[32]\n)"


/* What follows `after` in the second form begins with the test. */
static void tests_after(const char *what, const char *ptx, const char *after) {
  cgl_text out = {0};
  const bool made = cgl_nvrtc_predicate(ptx, &out);
  cgl_text_add(&out, "", 1);
  const char *at = made ? strstr(out.data, after) : NULL;
  tap_ok(at && strstr(at, "@!%cgl_runs ret;") &&
             strstr(at, ".reg .pred %cgl_runs") - at - strlen(after) < 8,
         "%s", what);
  cgl_text_free(&out);
}


static void holds(const char *what, const char *ptx, const char *wanted) {
  cgl_text out = {0};
  const bool made = cgl_nvrtc_predicate(ptx, &out);
  cgl_text_add(&out, "", 1);
  tap_ok(made && strstr(out.data, wanted), "%s", what);
  cgl_text_free(&out);
}


static void refused(const char *what, const char *ptx) {
  cgl_text out = {0};
  tap_ok(!cgl_nvrtc_predicate(ptx, &out), "%s has no second form", what);
  cgl_text_free(&out);
}


#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"

static void texts(void) {
  holds("no parameter", HEAD ".visible .entry a()\n{\n\tret;\n}\n",
        "a(\n" PARAMETER);
  holds("one", HEAD ".visible .entry a(\n\t.param .u64 a_0\n)\n{\n\tret;\n}\n",
        ".u64 a_0\n,\n" PARAMETER);
  holds("bounds stay", HEAD ".entry a(\n)\n.maxntid 128, 1, 1\n{\n\tret;\n}\n",
        ")\n.maxntid 128, 1, 1\n{");
  tests_after("the test comes first",
              HEAD ".entry a()\n{\n\t.reg .b32 %r<2>;\n\tret;\n}\n", LOOKED);
  tests_after("but after a wait",
              HEAD ".entry a()\n{\n\tld.param.u64 %rd1, [a_0];\n"
                   "\t// griddepcontrol.wait;\n\tgriddepcontrol.wait; // c\n"
                   "\tret;\n}\n",
              "\tgriddepcontrol.wait;");
  tests_after("and not after one that is jumped over",
              HEAD ".entry a()\n{\n\t@%p1 bra $L;\n\tgriddepcontrol.wait;\n"
                   "$L:\n\tret;\n}\n",
              LOOKED);
  holds("the second of two",
        HEAD ".entry a()\n{\n\t{\n\t}\n}\n.entry b()\n{}\n", "b(\n" PARAMETER);
  holds("texts, and tables of functions",
        HEAD ".global .align 1 .b8 $str[3] = {42, 120};\n"
             ".global .align 4 .b8 __cudart_i2opi_f[4] = {1, 2, 3, 4};\n"
             ".entry a()\n{\n\tret;\n}\n",
        "a(\n" PARAMETER);
  refused("a variable", HEAD ".visible .global .align 4 .u32 count;\n");
  refused("a table of constants", HEAD ".const .align 4 .b8 t[4] = {1};\n");
  refused("a variable behind a function",
          HEAD ".func f(.param .u64 .ptr .global p)\n{\n\tret;\n}\n"
               ".global .align 4 .u32 _ZZ1avE1n;\n");
}


/* ---- a corpus ---- */

static const char corpus[] =
    "struct big { int x[10]; double y; };\n"
    "__device__ __noinline__ float helper(float x, int n) {\n"
    "  for (int i = 0; i < n; i++) x = sinf(x);\n  return x; }\n"
    "extern \"C\" __global__ void none() { }\n"
    "extern \"C\" __global__ void one(int *x) { *x += 1; }\n"
    "extern \"C\" __global__ void many(int a, char b, double c, float3 d,\n"
    "    int *e, short f) { *e = a + b + c + d.x + f; }\n"
    "extern \"C\" __global__ void record(big b, const float *u, float *v) {\n"
    "  v[threadIdx.x] = helper(u[threadIdx.x], b.x[3]); }\n"
    "template <class T> __global__ void __launch_bounds__(128, 4)\n"
    "turn(T *x) { __shared__ T s[128]; s[threadIdx.x] = x[threadIdx.x];\n"
    "  __syncthreads(); x[threadIdx.x] = s[127 - threadIdx.x]; }\n"
    "extern \"C\" __global__ void dynamic(float *x) {\n"
    "  extern __shared__ float t[]; t[threadIdx.x] = x[0]; __syncthreads();\n"
    "  x[1] = t[1]; }\n"
    "extern \"C\" __global__ void waits(float *x) {\n"
    "  asm volatile(\"griddepcontrol.wait;\" ::: \"memory\"); x[0] += 1; }\n"
    "extern \"C\" __global__ void value(int *x) { *x += 1; }\n"
    "extern \"C\" __global__ void first(int *turn) { *turn += 1; }\n"
    "extern \"C\" __global__ void at(int *x) { *x += 1; }\n"
    "extern \"C\" __global__ void says(int *x) { printf(\"%d {\\n\", *x); }\n";


/* ptxas takes the PTX; false, with a skip, where there is no ptxas. */
static void assemble(const char *what, const cgl_image *image) {
  const char *home = getenv("CUDA_HOME");
  char path[] = "/tmp/cgraphlua-ptx-XXXXXX", *command = NULL, said[400] = "";
  const int file = mkstemp(path);
  const bool written =
      file >= 0 &&
      write(file, image->bytes, image->size - 1) == (ssize_t)(image->size - 1);
  command = cgl_format("PATH=\"$PATH:%s/bin\"; command -v ptxas >/dev/null || "
                       "exit 77; ptxas -arch=sm_90 -o /dev/null %s 2>&1",
                       home ? home : "/usr/local/cuda", path);
  FILE *pipe = written && command ? popen(command, "r") : NULL;
  size_t n = pipe ? fread(said, 1, sizeof said - 1, pipe) : 0;
  const int status = pipe ? pclose(pipe) : -1;
  said[n] = 0;
  if (status >= 0 && WEXITSTATUS(status) == 77)
    tap_skip(what, "ptxas is not installed");
  else
    tap_ok(status == 0, "%s: ptxas: %s", what, said);
  free(command);
  unlink(path);
  close(file);
}


static void compiled(void) {
  const char *expressions[] = {"turn<double>", "turn<float>"};
  const cgl_source source = {.text = corpus,
                             .length = sizeof corpus - 1,
                             .expressions = expressions,
                             .nexpressions = 2};
  const cgl_target target = {
      .format = CGL_IMAGE_CUBIN, .sm = 90, .predicated = true};
  for (int i = 0; i < 2; i++) {
    cgl_image *image = NULL;
    char *message = NULL;
    cgl_compile_status status = cgl_compile(&target, &source, &image, &message);
    const char *what = i ? "and from the cache" : "a corpus";
    if (status == CGL_COMPILE_NO_COMPILER)
      tap_skip(what, "NVRTC is not installed");
    else if (status == CGL_COMPILE_OK)
      assemble(what, image);
    else
      tap_ok(false, "%s: %s", what, message ? message : "no message");
    cgl_image_free(image);
    free(message);
  }
}


int main(void) {
  texts();
  compiled();
  return tap_done();
}
