/* Second forms of kernels: PTX with a parameter and a test more.  Where NVRTC
   and ptxas are, the PTX of a corpus is assembled for sm_90. */
#include "compile/compile.h"
#include "compile/nvrtc/nvrtc.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOKED "\t@%cgl_looks ld.global.u32 %cgl_now, [%cgl_word];"
#define PARAMETER "\t.param .align 8 .b8 %cgl_predicate[32]\n)"


/* What follows `after` in the second form begins with the test. */
static void tests_after(const char *what, const char *ptx, const char *after) {
  cgl_text out = {0};
  const bool made = cgl_nvrtc_predicate(ptx, NULL, &out);
  cgl_text_add(&out, "", 1);
  const char *at = made ? strstr(out.data, after) : NULL;
  tap_ok(at && strstr(at, "@!%cgl_runs ret;") &&
             strstr(at, ".reg .pred %cgl_runs") - at - strlen(after) < 8,
         "%s", what);
  cgl_text_free(&out);
}


static void holds(const char *what, const char *ptx, const char *wanted) {
  cgl_text out = {0};
  const bool made = cgl_nvrtc_predicate(ptx, NULL, &out);
  cgl_text_add(&out, "", 1);
  tap_ok(made && strstr(out.data, wanted), "%s", what);
  cgl_text_free(&out);
}


static void refused(const char *what, const char *ptx) {
  cgl_text out = {0};
  tap_ok(!cgl_nvrtc_predicate(ptx, NULL, &out), "%s has no second form", what);
  cgl_text_free(&out);
}


/* The following form has the text. */
static void follows(const char *what, const char *ptx, const char *wanted) {
  cgl_text out = {0};
  const bool made = cgl_nvrtc_predicate(ptx, NULL, &out);
  cgl_text_add(&out, "", 1);
  const bool there = made && strstr(out.data, "a$follows(");
  tap_ok(there && strstr(out.data, wanted),
         "%s, where parameters follow memory", what);
  cgl_text_free(&out);
}


static void unfollowed(const char *what, const char *ptx) {
  cgl_text out = {0};
  const bool made = cgl_nvrtc_predicate(ptx, NULL, &out);
  cgl_text_add(&out, "", 1);
  tap_ok(made && !strstr(out.data, "$follows"), "%s has no following form",
         what);
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
  follows("a load of a number",
          HEAD ".visible .entry a(\n\t.param .f32 a_0\n)\n{\n"
               "\t.reg .f32 %f<2>;\n\tld.param.f32 \t%f1, [a_0];\n\tret;\n}\n",
          "ld.param.f32 %cgl_v0_0, [a_0];\n"
          "\t@%cgl_p0 ld.global.f32 %cgl_v0_0, [%cgl_a0];");
  follows("what stands in its place",
          HEAD ".entry a(.param .u8 a_0)\n{\n\t.reg .pred %p<4>;\n"
               "\t.reg .b16 %r<2>, %rs<9>;\n\tld.param.u8 %rs1, [a_0];\n}\n",
          "\tmov.b16 %rs1, %cgl_v0_0;\n}");
  follows("a vector behind a number",
          HEAD ".entry a(\n.param .u32 a_0,\n.param .align 16 .b8 a_1[16])\n"
               "{ .reg .f32 %f<9>;\nld.param.v2.f32 {%f1, %f2}, [a_1+8];\n}\n",
          "ld.param.v2.f32 {%cgl_v0_0, %cgl_v0_1}, [a_1+8];\n"
          "\t@%cgl_p1 ld.global.v2.f32 {%cgl_v0_0, %cgl_v0_1}, [%cgl_a1+8];");
  follows("an address among the words",
          HEAD ".entry a(.param .u32 b,.param .u32 c)\n{ .reg .b32 %r1;\n"
               "ld.param::entry.u32 %r1, [c];\n}\n",
          "ld.param.u64 %cgl_a1, [%cgl_following+16];");
  follows("no load", HEAD ".entry a(.param .u32 b)\n{\n\tret;\n}\n",
          ".entry a$follows(.param .u32 b,\n"
          "\t.param .align 8 .b8 %cgl_following[16]\n)");
  follows("a wait",
          HEAD ".entry a(.param .u32 b)\n{\n\tgriddepcontrol.wait;\n}\n",
          "{\n\tgriddepcontrol.wait;\n\t.reg .b64 %cgl_writes;");
  follows("a large parameter, whatever becomes of it",
          HEAD
          ".entry a(.param .align 4 .b8 b[36])\n{\n\tmov.b64 %rd1, b;\n}\n",
          "mov.b64 %rd1, b;");
  follows("nothing of the module's head",
          HEAD "\n\t// .globl a\n.visible .entry a(.param .u32 b)\n{}\n",
          "}\n.visible .entry a$follows(");
  unfollowed("no parameter", HEAD ".entry a()\n{\n\tret;\n}\n");
  unfollowed("an address of a parameter",
             HEAD ".entry a(.param .u32 b)\n{\n\tmov.b64 %rd1, b;\n}\n");
  unfollowed("a load in some threads",
             HEAD ".entry a(.param .u32 b)\n{ .reg .b32 %r<2>;\n"
                  "\t@%p1 ld.param.u32 %r1, [b];\n}\n");
  unfollowed("a register that is not declared",
             HEAD ".entry a(.param .u32 b)\n{ .reg .b32 %rs<2>;\n"
                  "\tld.param.u32 %r1, [b];\n}\n");
  refused("a table of constants", HEAD ".const .align 4 .b8 t[4] = {1};\n");
  refused("a variable behind a function",
          HEAD ".func f(.param .u64 .ptr .global p)\n{\n\tret;\n}\n"
               ".global .align 4 .u32 _ZZ1avE1n;\n");
}


/* ---- a corpus ---- */

static const char corpus[] =
    "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
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
    "struct small { int x[4]; };\n"
    "extern \"C\" __global__ void types(double *y, bool a, signed char b,\n"
    "    unsigned char c, short d, unsigned short e, long long f, __half g,\n"
    "    __nv_bfloat16 h, float i, double j, char3 k, uchar4 l, half2 m) {\n"
    "  *y = a + b + c + d + e + f + (float)g + (float)h + i + j + k.x + k.z +\n"
    "       l.x + l.w + __low2float(m); }\n"
    "extern \"C\" __global__ void vectors(float *y, float4 v, double2 w,\n"
    "    float3 u, int4 x, short4 s, double4 z) {\n"
    "  y[threadIdx.x] = v.x + v.y + v.z + v.w + w.x - w.y + u.x + u.z + x.x +\n"
    "                   x.y + x.w + s.y + z.x + z.w; }\n"
    "extern \"C\" __global__ void index(int *y, small s, int i) {\n"
    "  *y = s.x[i & 3]; }\n"
    "extern \"C\" __global__ void loop(float *y, float a, int n) {\n"
    "  for (int i = threadIdx.x; i < n; i += a > 1 ? n / 2 : 7) {\n"
    "    y[i] += a; __syncthreads(); a *= 1.5f; n -= 1; } }\n"
    "extern \"C\" __global__ void cgl_following(float *y,\n"
    "    float cgl_following) { *y = cgl_following; }\n"
    "extern \"C\" __global__ void cgl_predicate(float *y,\n"
    "    float cgl_predicate) { *y = cgl_predicate; }\n"
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


static const cgl_target target = {
    .format = CGL_IMAGE_CUBIN, .sm = 90, .predicated = true};


/* The kernel `one` has a pointer alone; `index` a number too. */
static bool pointers_stay(const cgl_image *image) {
  const char *one = strstr(image->bytes, ".entry one$follows(");
  const char *index = strstr(image->bytes, ".entry index$follows(");
  const char *load = one ? strstr(one, "%cgl_v0_0") : NULL;
  const char *end = one ? strstr(one, "\n}") : NULL;
  return end && index && (!load || load > end) &&
         strstr(index, "ld.param.u32 %cgl_v0_0");
}


/* The PTX begins with its kernel. */
static void compiled_alone(void) {
  static const char text[] =
      "extern \"C\" __global__ void add(float *y, float a,"
      " int n) { if (threadIdx.x < n) y[n] += a; }\n";
  const cgl_source source = {.text = text, .length = sizeof text - 1};
  cgl_image *image = NULL;
  char *message = NULL;
  cgl_compile_status status = cgl_compile(&target, &source, &image, &message);
  if (status == CGL_COMPILE_NO_COMPILER)
    tap_skip("one kernel", "NVRTC is not installed");
  else if (status == CGL_COMPILE_OK)
    assemble("one kernel", image);
  else
    tap_ok(false, "one kernel: %s", message ? message : "no message");
  cgl_image_free(image);
  free(message);
}


static void compiled(void) {
  const char *expressions[] = {"turn<double>", "turn<float>"};
  const cgl_source source = {.text = corpus,
                             .length = sizeof corpus - 1,
                             .expressions = expressions,
                             .nexpressions = 2};
  for (int i = 0; i < 2; i++) {
    cgl_image *image = NULL;
    char *message = NULL;
    cgl_compile_status status = cgl_compile(&target, &source, &image, &message);
    const char *what = i ? "and from the cache" : "a corpus";
    if (status == CGL_COMPILE_NO_COMPILER)
      tap_skip(what, "NVRTC is not installed");
    else if (status == CGL_COMPILE_OK) {
      assemble(what, image);
      tap_ok(pointers_stay(image), "%s: pointers stay where they are", what);
    } else
      tap_ok(false, "%s: %s", what, message ? message : "no message");
    cgl_image_free(image);
    free(message);
  }
}


int main(void) {
  texts();
  compiled();
  compiled_alone();
  return tap_done();
}
