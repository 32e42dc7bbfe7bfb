/* The reader of signatures, the compilers' messages, the disk cache. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile/cache/cache.h"
#include "compile/compile.h"
#include "compile/kernels_support.h"
#include "tap.h"

static char *folder; /* of this test's files */


static cgl_program *read_program(const char *text, const char *const *options) {
  size_t n = 0;
  while (options && options[n])
    n++;
  return cgl_program_read(text, strlen(text), 1, options, n, folder, NULL);
}


/* "name(kind lanes stars const, ...)" of the first kernel, or of an
   expression: one string to compare with. */
static const char *shape(const char *text, const char *expression,
                         const char *const *options) {
  static char out[1024];
  cgl_program *p = read_program(text, options);
  cgl_arena arena = {0};
  cgl_signature s;
  int status = expression ? cgl_program_find(p, expression, &arena, &s)
               : cgl_program_kernels(p) ? cgl_program_kernel(p, 0, &arena, &s)
                                        : 1;
  size_t n = 0;
  if (status != 0)
    snprintf(out, sizeof out, "none");
  else
    n = (size_t)snprintf(out, sizeof out, "%s(", s.name);
  for (size_t i = 0; status == 0 && i < s.nparameters; i++) {
    const cgl_parameter *q = &s.parameters[i];
    n += (size_t)snprintf(out + n, sizeof out - n, "%s%s%s", i ? ", " : "",
                          q->readonly ? "const " : "", cgl_kind_word(q->kind));
    if (q->lanes > 1)
      n += (size_t)snprintf(out + n, sizeof out - n, "%d", q->lanes);
    n += (size_t)snprintf(out + n, sizeof out - n, "%.*s%s%s", q->pointer,
                          "***", *q->name ? " " : "", q->name);
  }
  if (status == 0)
    snprintf(out + n, sizeof out - n, ")%s", s.max_threads ? " bounded" : "");
  cgl_arena_free(&arena);
  cgl_program_free(p);
  return out;
}


static void test_signatures(void) {
  static const struct {
    const char *text, *expression, *shape;
  } rows[] = {
      {"extern \"C\" __global__ void k(int n, const float *x, float *y) {}",
       NULL, "k(int32 n, const float* x, float* y)"},
      {"__global__ __launch_bounds__(256, 2) void k(unsigned n) {}", NULL,
       "k(uint32 n) bounded"},
      {"__global__ void __launch_bounds__(2 * 64) k() {}", NULL, "k() bounded"},
      {"__global__ void k(void) {}", NULL, "k()"},
      {"static __attribute__((unused)) __global__ void k(float4 *a, uchar2 b)"
       "{}",
       NULL, "k(float4* a, uint82 b)"},
      {"__global__ void k(const unsigned char *const __restrict__ p,"
       " long long int q, unsigned long r, short s, signed char t, bool u);\n"
       "__global__ void k(const unsigned char *const __restrict__ p,"
       " long long int q, unsigned long r, short s, signed char t, bool u) {}",
       NULL, "k(const uint8* p, int64 q, uint64 r, int16 s, int8 t, bool u)"},
      {"__global__ void k(float const *a, float *const b, const float **c,"
       " float d[], const int e[4]) {}",
       NULL,
       "k(const float* a, float* b, float** c, float* d, const int32* e)"},
      {"typedef float real; using vec = const double *; struct s { int a; };\n"
       "__global__ void k(real *a, vec b, s c, struct s *d, const s *e) {}",
       NULL,
       "k(float* a, const double* b, struct c, struct* d, const struct* e)"},
      {"#include <cuda_fp16.h>\n__global__ void k(const __half *a, half2 b, "
       "__nv_bfloat16 *c, size_t d, uint8_t *e, cgl_philox f) {}",
       NULL,
       "k(const half* a, half2 b, bfloat16* c, uint64 d, uint8* e, "
       "cgl_philox f)"},
      {"#define REAL double\n#define KERNEL(n) __global__ void n\n"
       "KERNEL(k)(REAL *x) {}",
       NULL, "k(double* x)"},
      {"#define MAKE(T) __global__ void k_##T(T *x) { }\nMAKE(float)\n", NULL,
       "k_float(float* x)"},
      {"#ifdef USE_DOUBLE\n__global__ void k(double *x) {}\n#else\n"
       "__global__ void k(float *x) {}\n#endif",
       NULL, "k(float* x)"},
      {"// __global__ void no(int a) {}\n/* __global__ void no() {} */\n"
       "const char *s = \"__global__ void no() {}\";\n"
       "const char *r = R\"x(__global__ void no() {})x\";\n"
       "__global__ void k(int a /* , int b */, // int c\n int d) {}",
       NULL, "k(int32 a, int32 d)"},
      {"namespace a { namespace b { __global__ void k(int x) {} } }", NULL,
       "a::b::k(int32 x)"},
      {"namespace a::b { template <class T> __global__ void k(T *x) {} }",
       "a::b::k<double>", "a::b::k<double>(double* x)"},
      {"template <typename T, int N> __global__ void k(const T *x, T y, int n)"
       "{}",
       "k<float, 4>", "k<float, 4>(const float* x, float y, int32 n)"},
      {"template <typename T, typename U = T *> __global__ void "
       "__launch_bounds__(sizeof(int)) k(T x, U y) {}",
       "k<unsigned char>", "k<unsigned char>(uint8 x, uint8* y)"},
      {"template <int N> __global__ void __launch_bounds__(N) k(int x) {}",
       "k<128>", "k<128>(int32 x) bounded"},
      {"template <class T> __global__ void k(T x) {} ", NULL, "none"},
      {"template <class T> __global__ void k(T x) {} ", "l<int>", "none"},
      {"template <class A, class B> struct m { int v[2]; };\n"
       "__global__ void k(m<int, m<int, float>> a, int b = f(1, 2), int c) {}",
       NULL, "k(struct a, int32 b, int32 c)"},
      {"__global__ void k(float (*f)(float, int), int n) {}", NULL,
       "k(unknown* f, int32 n)"},
      {"enum color { red }; enum class tiny : unsigned char { a };\n"
       "__global__ void k(color a, tiny b, dim3 c, what d, what *e) {}",
       NULL, "k(int32 a, uint8 b, uint323 c, unknown d, unknown* e)"},
      {"typedef a b; typedef b a; __global__ void k(a x) {}", NULL,
       "k(unknown x)"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *got = shape(rows[i].text, rows[i].expression, NULL);
    tap_ok(strcmp(got, rows[i].shape) == 0, "reads %s%s%s", rows[i].shape,
           strcmp(got, rows[i].shape) ? ", not " : "",
           strcmp(got, rows[i].shape) ? got : "");
  }
  static const char *const options[] = {"-DUSE_DOUBLE", "-D", "T=float*", NULL};
  const char *got = shape("#if defined(USE_DOUBLE) && USE_DOUBLE > 0\n"
                          "__global__ void k(double *x, T y) {}\n#endif",
                          NULL, options);
  tap_ok(strcmp(got, "k(double* x, float* y)") == 0, "follows -D: %s", got);
}


static unsigned features(const char *text) {
  cgl_program *p = read_program(text, NULL);
  cgl_arena arena = {0};
  cgl_signature s = {0};
  cgl_program_kernel(p, 0, &arena, &s);
  cgl_arena_free(&arena);
  cgl_program_free(p);
  return s.features;
}


static void test_features(void) {
  static const char idiom[] =
      "__device__ void f(float *x) { __syncthreads(); }\n"
      "__global__ void k(float *x) { int i = %s; x[i] = 0; %s }\n"
      "__global__ void other(float *x) { f(x); int a[4]; }";
  static const struct {
    const char *index, *rest;
    unsigned features;
  } rows[] = {
      {"blockIdx.x * blockDim.x + threadIdx.x", "", 0},
      {"threadIdx.x + blockDim.x * blockIdx.x", "", 0},
      {"(int)(blockIdx.x*blockDim.x+threadIdx.x)", "", 0},
      {"(size_t)blockIdx.x * blockDim.x + threadIdx.x", "", 0},
      {"threadIdx.y + blockIdx.z", "", 0},
      {"threadIdx.x", "", CGL_NEEDS_THREADS},
      {"blockIdx.x * 256 + threadIdx.x", "", CGL_NEEDS_THREADS},
      {"0", "uint3 t = threadIdx;", CGL_NEEDS_THREADS},
      {"0", "__shared__ float s;", CGL_USES_SHARED},
      {"0", "extern __shared__ float s[];", CGL_USES_SHARED | CGL_USES_DYNAMIC},
      {"0", "f(x);", CGL_USES_BARRIER},
      {"0", "__shfl_sync(~0u, 1, 0);", CGL_USES_BARRIER},
      {"0", "float t[3]; x[1] = x[2];", CGL_USES_LOCALS},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[1024];
    snprintf(text, sizeof text, idiom, rows[i].index, rows[i].rest);
    unsigned mask = ~(unsigned)CGL_USES_INDEX;
    if (rows[i].features & CGL_USES_DYNAMIC)
      mask = ~(unsigned)(CGL_USES_LOCALS | CGL_USES_INDEX);
    unsigned got = features(text) & mask;
    tap_ok(got == rows[i].features, "features of %s %s (%u)", rows[i].index,
           rows[i].rest, got);
  }
  tap_ok(features("#include <unheard_of.h>\n__global__ void k() {}") &
             CGL_USES_BARRIER,
         "what an unread header holds is feared");
  tap_ok(features("struct v { int a; };\n"
                  "__device__ v operator+(v a, v b) { __syncwarp(); }\n"
                  "__global__ void k(v a) { a + a; }") &
             CGL_USES_BARRIER,
         "an operator is reached without a name");
}


static int has_loop(const char *text) {
  cgl_program *p = read_program(text, NULL);
  cgl_arena arena = {0};
  cgl_signature s = {0};
  cgl_program_kernel(p, 0, &arena, &s);
  int found = s.loop.start != NULL && !s.loop.refused;
  cgl_arena_free(&arena);
  cgl_program_free(p);
  return found;
}


/* Loops that may run as one walk, and those that only look like it. */
static void test_loops(void) {
#define I "blockIdx.x * blockDim.x + threadIdx.x"
#define S "blockDim.x * gridDim.x"
  static const struct {
    int loop;
    const char *body;
  } rows[] = {
      {1, "for (int i = " I "; i < n; i += " S ") y[i] = x[i];"},
      {1, "for (size_t i = (size_t)" I "; i < n * 2; i += (size_t)" S ") {"
          " float v = x[i]; for (int k = 0; k < 3; k++) v *= v; y[i] = v; }"},
      {1, "int t = " I "; int s = gridDim.x * blockDim.x; float h = a / 2;"
          " for (int i = t; i < n; i += s) { y[i] = h * x[i]; }"},
      {1, "for (int i = " I "; i < n; i += " S ") atomicAdd(&y[0], x[i]);"},
      {1, "const float *row = x + n; for (int i = " I "; i < n; i += " S ")"
          " { unsigned m = (unsigned)i & 7u; *(y + i) = row[m] + (m && n); }"},
      {0, "for (walk i = " I "; i < n; i += " S ") y[i] = x[i];"},
      {0, "for (int i = " I "; i < n; i += " S ") { y[i] = i; break; }"},
      {0, "for (int i = " I "; i < n; i += " S ") { if (i) return; }"},
      {0, "for (int i = " I "; i < n; i += " S ") { a += x[i]; y[i] = a; }"},
      {0, "for (int i = " I "; i < n; i += " S ") { i += 1; y[i] = a; }"},
      {0, "for (int i = " I "; i < n; i += " S ") *y++ = x[i];"},
      {0, "for (int i = " I "; i < n; i += " S ") f(&a, y);"},
      {0, "for (int i = " I "; i < n; i += " S ") refer(n, y);"},
      {0, "for (int i = " I "; i < n; i += " S ") y[i] = position();"},
      {0, "for (int i = " I "; i < n; i += " S ") y[i] = threadIdx.x;"},
      {0, "for (int i = " I "; i < n; i += " S ") y[i] = gridDim.x;"},
      {0, "float sum = 0; for (int i = " I "; i < n; i += " S ")"
          " sum += x[i]; y[" I "] = sum;"},
      {0, "float sum = 0; for (int i = " I "; i < n; i += " S ")"
          " { sum += x[i]; y[i] = sum; }"},
      {0, "for (int i = " I "; i <= n; i += " S ") y[i] = x[i];"},
      {0, "for (int i = " I "; i < n; i += blockDim.x) y[i] = x[i];"},
      {0, "for (int i = threadIdx.x; i < n; i += " S ") y[i] = x[i];"},
      {0, "for (int i = (blockIdx.x + threadIdx.x) * blockDim.x; i < n;"
          " i += " S ") y[i] = x[i];"},
      {0, "for (int i = " I "; i < n && x[i]; i += " S ") y[i] = x[i];"},
      {0, "for (int i = " I "; i < n; i += " S ") y[i] = x[i]; y[0] = 1;"},
      {0, "int t = " I "; for (int i = t; i < n; i += " S ") y[i] = t;"},
      {0, "LOOP y[i] = x[i];"},
      {0, "for (int i = " I "; i < n; i += " S ") { __syncwarp(); }"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char text[2048];
    snprintf(text, sizeof text,
             "#define LOOP for (int i = " I "; i < n; i += " S ")\n"
             "__device__ void refer(int &n, float *y) { y[n++] = 1; }\n"
             "__device__ int position() { return gridDim.x; }\n"
             "struct walk { int at; };\n"
             "__global__ void k(int n, float a, const float *x, float *y) {"
             " %s }\n",
             rows[i].body);
    tap_ok(has_loop(text) == rows[i].loop, "%s walk: %s",
           rows[i].loop ? "one" : "not one", rows[i].body);
  }
#undef I
#undef S
}


/* Writes pieces of programs, and single bytes, over a text. */
static void damage(char *text, size_t length, int times, unsigned *seed) {
  /* clang-format off */
  static const char *const nasty[] = {
      "{", "}", "(", ")", "<", ">", "\"", "'", "/*", "//", "#", "\\\n", "R\"", "::",
      "__global__ ", ";", ",", "\n#if ",
      "\n#define f(x) f(x) f(x)\n", "template <", "namespace ", "extern \"C\" {",
      "\n#include \"self.h\"\n", "[", "]"};
  /* clang-format on */
  for (int k = 0; k < times; k++) {
    *seed = *seed * 1664525u + 1013904223u;
    const char *bit = nasty[(*seed >> 8) % (sizeof nasty / sizeof *nasty)];
    size_t at = (*seed >> 3) % length;
    memcpy(text + at, bit, strlen(bit));
    if (k % 3 == 2)
      text[at] = (char)(*seed >> 16);
  }
}


/* None may crash, hang or run away. */
static void test_damaged_sources(void) {
  char *text, *damaged;
  size_t length;
  unsigned seed = 12345, rounds = 0;
  if (!read_text("compile/kernels.cu", &text, &length)) {
    tap_ok(false, "spec/compile/kernels.cu can be read");
    return;
  }
  damaged = malloc(length + 64);
  for (int i = 0; i < 3000; i++) {
    size_t n = length;
    memcpy(damaged, text, length);
    seed = seed * 1664525u + 1013904223u;
    if (i % 3 == 0)
      n = seed % length;
    damage(damaged, length, i % 7, &seed);
    cgl_program *p = cgl_program_read(damaged, n, 1, NULL, 0, folder, NULL);
    cgl_arena arena = {0};
    cgl_signature s;
    for (size_t k = 0; p && k < cgl_program_kernels(p); k++)
      cgl_program_kernel(p, k, &arena, &s);
    if (p)
      rounds += cgl_program_find(p, "evaluate<float, 4>", &arena, &s) >= 0;
    cgl_arena_free(&arena);
    cgl_program_free(p);
  }
  tap_ok(rounds == 3000, "3000 damaged sources are read to their end");
  free(damaged);
  free(text);
}


static void test_bombs(void) {
  static const char *const bombs[] = {
      "#define a b b b b b b b b\n#define b c c c c c c c c\n"
      "#define c d d d d d d d d\n#define d e e e e e e e e\n"
      "#define e f f f f f f f f\n#define f g g g g g g g g\n"
      "#define g h h h h h h h h\n#define h i i i i i i i i\na a a a",
      "#define f(x) g(x) g(x)\n#define g(x) f(x) f(x)\nf(f(f(f(1))))",
      "#if ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((",
      "#include \"self.h\"\n"};
  char *path = cgl_format("%s/self.h", folder);
  FILE *file = fopen(path, "w");
  fputs("#include \"self.h\"\n#include \"self.h\"\nint x;\n", file);
  fclose(file);
  for (size_t i = 0; i < sizeof bombs / sizeof *bombs; i++)
    cgl_program_free(read_program(bombs[i], NULL));
  char *deep = malloc(200001);
  for (const char *c = "({[<-!"; *c; c++) {
    memset(deep, *c, 200000);
    deep[200000] = 0;
    cgl_program_free(read_program(deep, NULL));
    memcpy(deep, "#if ", 4);
    cgl_program_free(read_program(deep, NULL));
  }
  tap_ok(true, "macro bombs, circular includes and deep nesting end");
  unlink(path);
  free(path);
  free(deep);
}


static cgl_compile_status compile(cgl_image_format format, const char *text,
                                  const char *const *options, cgl_image **image,
                                  char **message) {
  cgl_source source = {.text = text,
                       .length = strlen(text),
                       .file = "scripts/demo.lua",
                       .line = 41,
                       .options = options};
  while (options && options[source.noptions])
    source.noptions++;
  return cgl_compile(&(cgl_target){.format = format, .sm = 90}, &source, image,
                     message);
}


/* Macros that a header of ours must not meet, and words in any order. */
static void test_names(cgl_image_format format, const char *who) {
  cgl_image *image;
  char *message;
  static const char text[] =
      "#define K 3\n#define A 16807\n#define I 5\n#define d 9\n"
      "#define last 7\n#define ID 1\n"
      "static __device__ int s;\n__device__ const float table[] = {1, 2};\n"
      "extern __align__(16) __shared__ float one[];\n"
      "__shared__ extern int two[];\n"
      "extern \"C\" __global__ void index(float *y) {\n"
      "  volatile __shared__ int w[4];\n  w[0] = 1; one[0] = N;\n"
      "  y[K] = A + I + d + last + ID + N + P + table[1] + s + two[0];\n}\n";
  cgl_compile_status status = compile(
      format, text, (const char *const[]){"-DN=4", "-D", "P=K", "-DMODE", NULL},
      &image, &message);
  tap_ok(status == CGL_COMPILE_OK && !message && image->nvariables == 2,
         "%s: a script's macros are its own: %s", who, message ? message : "");
  free(message);
  cgl_image_free(image);
}


/* A header beside the script, named in quotes. */
static void test_include(cgl_image_format format, const char *who) {
  cgl_image *image;
  char *message;
  char *script = cgl_format("%s/demo.lua", folder);
  char *header = cgl_format("%s/beside.h", folder);
  FILE *file = fopen(header, "w");
  fputs("typedef double real;\n__global__ void second(real *x) { x[1] = 2; }\n",
        file);
  fclose(file);
  static const char text[] = "#include \"beside.h\"\n"
                             "__global__ void k(real *x) { x[0] = 1; }\n";
  cgl_source source = {
      .text = text, .length = sizeof text - 1, .file = script, .line = 3};
  cgl_compile_status status = cgl_compile(
      &(cgl_target){.format = format, .sm = 90}, &source, &image, &message);
  const cgl_signature *k = image ? cgl_image_find(image, "k") : NULL;
  tap_ok(status == CGL_COMPILE_OK && k &&
             k->parameters[0].kind == CGL_KIND_DOUBLE &&
             cgl_image_find(image, "second"),
         "%s: a header beside the script: %s", who, message ? message : "");
  cgl_image_free(image);
  free(message);
  unlink(header);
  free(header);
  free(script);
}


static void test_messages(cgl_image_format format, const char *who) {
  int host = format == CGL_IMAGE_HOST;
  cgl_image *image;
  char *message;
  static const char wrong[] = "// line 41\n"
                              "#include <math.h>\n"
                              "extern \"C\" __global__ void k(float *x) {\n"
                              "  x[0] = undeclared;\n"
                              "}\n";
  cgl_compile_status status = compile(format, wrong, NULL, &image, &message);
  tap_ok(status == CGL_COMPILE_REFUSED && !image && message &&
             strstr(message,
                    host ? "scripts/demo.lua:44:" : "scripts/demo.lua(44)") &&
             strstr(message, "undeclared"),
         "%s names the script's file and line", who);
  tap_ok(message && strstr(message, "  x[0] = undeclared;") &&
             !strstr(message, "cgraphlua"),
         "%s shows the line, and nothing that was generated", who);
  free(message);
  static const char late[] =
      "template <class T> __global__ void k(T *x) { x->nothing(); }";
  cgl_source source = {.text = late,
                       .length = sizeof late - 1,
                       .file = "scripts/demo.lua",
                       .line = 7,
                       .expressions = (const char *const[]){"k<float>"},
                       .nexpressions = 1};
  status = cgl_compile(&(cgl_target){.format = format, .sm = 90}, &source,
                       &image, &message);
  tap_ok(
      status == CGL_COMPILE_REFUSED && message &&
          strstr(message, host ? "scripts/demo.lua:7:" : "scripts/demo.lua(7)"),
      "%s: an error in a template's instance", who);
  free(message);
  source.expressions = (const char *const[]){"missing<float>"};
  status = cgl_compile(&(cgl_target){.format = format, .sm = 90}, &source,
                       &image, &message);
  tap_ok(status == CGL_COMPILE_REFUSED && message &&
             strstr(message, "missing<float>"),
         "%s: an expression that names no kernel", who);
  free(message);
  static const char warned[] = "extern \"C\" __global__ void k(int *x) {\n"
                               "#warning mind the gap\n x[0] = 1; }\n";
  status = compile(format, warned, NULL, &image, &message);
  tap_ok(status == CGL_COMPILE_OK && image && message &&
             strstr(message, "mind the gap"),
         "%s: warnings come with the image", who);
  cgl_image_free(image);
  free(message);
}


static void test_nvrtc(void) {
  cgl_image *image;
  char *message, *text;
  size_t length;
  cgl_compile_status status =
      compile(CGL_IMAGE_CUBIN, "", NULL, &image, &message);
  if (status == CGL_COMPILE_NO_COMPILER) {
    tap_skip("NVRTC compiles the kernels for sm_90", message);
    free(message);
    return;
  }
  cgl_image_free(image);
  free(message);
  test_messages(CGL_IMAGE_CUBIN, "NVRTC");
  test_names(CGL_IMAGE_CUBIN, "NVRTC");
  test_include(CGL_IMAGE_CUBIN, "NVRTC");
  if (!read_text("compile/kernels.cu", &text, &length))
    return;
  cgl_source source = {
      .text = text,
      .length = length,
      .file = "kernels.cu",
      .expressions =
          (const char *const[]){"evaluate<float>", "evaluate<double, 2>"},
      .nexpressions = 2};
  status = cgl_compile(&(cgl_target){.format = CGL_IMAGE_CUBIN, .sm = 90},
                       &source, &image, &message);
  tap_ok(status == CGL_COMPILE_OK && image->size > 1000 &&
             memcmp(image->bytes, "\177ELF", 4) == 0,
         "NVRTC compiles the kernels for sm_90: %s", message ? message : "");
  free(message);
  const cgl_signature *s = image ? cgl_image_find(image, "evaluate<float>") : 0;
  tap_ok(s && strncmp(s->lowered, "_Z8evaluate", 11) == 0 &&
             s->nparameters == 3 && s->parameters[1].readonly,
         "an instance has its mangled name and its signature");
  int mangled = 0;
  for (size_t i = 0; image && i < image->nvariables; i++)
    if (strcmp(image->variables[i].name, "deep::scale") == 0)
      mangled = strcmp(image->variables[i].lowered, "_ZN4deep5scaleE") == 0;
  tap_ok(mangled, "a variable of a namespace has its mangled name");
  cgl_image_free(image);
  status = cgl_compile(&(cgl_target){.format = CGL_IMAGE_CUBIN, .sm = 9999},
                       &source, &image, &message);
  tap_ok(status == CGL_COMPILE_OK && strstr(image->bytes, ".target"),
         "PTX is made for a GPU newer than the toolkit: %s",
         message ? message : "");
  free(message);
  cgl_image_free(image);
  free(text);
}


static size_t entries(char *first, size_t room) {
  char *path = cgl_format("%s/cache", folder);
  DIR *list = opendir(path);
  struct dirent *item;
  size_t n = 0;
  while (list && (item = readdir(list)))
    if (*item->d_name != '.' && n++ == 0 && first)
      snprintf(first, room, "%s/%s", path, item->d_name);
  if (list)
    closedir(list);
  free(path);
  return n;
}


static int compiled_anew(const char *text, int *good) {
  cgl_image *image;
  char *message;
  cgl_compile_status status =
      compile(CGL_IMAGE_HOST, text, NULL, &image, &message);
  *good = status == CGL_COMPILE_OK && image->size > 1000 &&
          memcmp(image->bytes, "\177ELF", 4) == 0 &&
          cgl_image_find(image, "k") != NULL && !message;
  int anew = image && !image->cached;
  cgl_image_free(image);
  free(message);
  return anew;
}


/* Each damage in turn: the entry is compiled again and is then good. */
static void test_damage(const char *text, const char *entry) {
  static const char *const names[] = {"cut short", "emptied", "a flipped byte",
                                      "another's content", "too long"};
  struct stat st;
  int good, ok;
  for (int kind = 0; kind < 5; kind++) {
    stat(entry, &st);
    int file = open(entry, O_RDWR);
    char byte;
    ok = file >= 0;
    if (kind == 0)
      ok &= ftruncate(file, st.st_size / 2) == 0;
    else if (kind == 1)
      ok &= ftruncate(file, 0) == 0;
    else if (kind == 2) {
      ok &= pread(file, &byte, 1, st.st_size / 2) == 1;
      byte ^= 4;
      ok &= pwrite(file, &byte, 1, st.st_size / 2) == 1;
    } else if (kind == 3) {
      cgl_cache_key other = cgl_cache_hash("other", 5);
      cgl_cache_entry junk = {.bytes = (char[]){"\177ELFjunk"}, .size = 8};
      char *place = cgl_format("%s/cache", folder);
      char *path = cgl_cache_path(place, &other);
      cgl_text warning = {0};
      cgl_cache_write(place, &other, &junk, &warning);
      ok &= rename(path, entry) == 0;
      free(path);
      free(place);
    } else
      ok &= pwrite(file, "x", 1, st.st_size) == 1;
    close(file);
    ok &= compiled_anew(text, &good) && good;
    ok &= !compiled_anew(text, &good) && good;
    tap_ok(ok, "an entry is compiled again: %s", names[kind]);
  }
}


static void test_cache(void) {
  static const char text[] = "extern \"C\" __global__ void k(int *x) {"
                             " x[threadIdx.x] = 1; }";
  char entry[4096];
  int good;
  char *place = cgl_format("%s/cache", folder);
  setenv("CGRAPHLUA_CACHE", place, 1);
  tap_ok(compiled_anew(text, &good) && good && entries(entry, 4096) == 1,
         "a first compile leaves an entry");
  tap_ok(!compiled_anew(text, &good) && good, "a second comes from the cache");
  test_damage(text, entry);
  static const char changed[] = "extern \"C\" __global__ void k(int *x) {"
                                " x[threadIdx.x] = 2; }";
  tap_ok(compiled_anew(changed, &good) && good && entries(NULL, 0) == 2,
         "another text is another entry");
  cgl_image *image;
  compile(CGL_IMAGE_HOST, text, (const char *const[]){"-DX", NULL}, &image,
          NULL);
  tap_ok(image && !image->cached, "other options are another entry");
  cgl_image_free(image);
  const char *header = "value.h";
  char *path = cgl_format("%s/%s", folder, header);
  char *search = cgl_format("-I%s", folder);
  const char *const options[] = {search, NULL};
  int anew[3];
  for (int i = 0; i < 3; i++) {
    FILE *file = fopen(path, "w");
    fprintf(file, "#define VALUE %d\n", i / 2);
    fclose(file);
    compile(CGL_IMAGE_HOST,
            "#include \"value.h\"\n__global__ void k(int *x) { *x = VALUE; }",
            options, &image, NULL);
    anew[i] = image && !image->cached;
    cgl_image_free(image);
  }
  tap_ok(anew[0] && !anew[1] && anew[2], "a changed include is seen");
  unlink(path);
  cgl_cache_trim(place, 0);
  tap_ok(entries(NULL, 0) == 0, "trimming to nothing leaves nothing");
  char *message;
  setenv("CGRAPHLUA_CACHE", "/dev/null/cache", 1);
  compile(CGL_IMAGE_HOST, text, NULL, &image, &message);
  tap_ok(image && message && strstr(message, "/dev/null/cache"),
         "a folder that cannot be written is said, and compiling goes on");
  cgl_image_free(image);
  free(message);
  setenv("CGRAPHLUA_CACHE", "off", 1);
  tap_ok(compiled_anew(text, &good) && good && compiled_anew(text, &good),
         "off keeps nothing");
  rmdir(place);
  free(path);
  free(search);
  free(place);
}


static void *compile_often(void *argument) {
  static const char *const texts[] = {
      "extern \"C\" __global__ void k(int *x) { x[threadIdx.x] = 3; }",
      "extern \"C\" __global__ void k(int *x) { x[threadIdx.x] = 4; }",
      "extern \"C\" __global__ void k(int *x) { x[threadIdx.x] = nothing; }"};
  int *bad = argument;
  for (int i = 0; i < 6; i++) {
    cgl_image *image;
    char *message;
    int wrong = i % 3 == 2;
    cgl_compile_status status =
        compile(CGL_IMAGE_HOST, texts[i % 3], NULL, &image, &message);
    *bad += status != (wrong ? CGL_COMPILE_REFUSED : CGL_COMPILE_OK) ||
            wrong != (message != NULL);
    cgl_image_free(image);
    free(message);
  }
  return NULL;
}


static void test_threads(void) {
  char *place = cgl_format("%s/cache", folder);
  pthread_t threads[4];
  int bad[4] = {0};
  setenv("CGRAPHLUA_CACHE", place, 1);
  for (int i = 0; i < 4; i++)
    pthread_create(&threads[i], NULL, compile_often, &bad[i]);
  for (int i = 0; i < 4; i++)
    pthread_join(threads[i], NULL);
  tap_ok(!bad[0] && !bad[1] && !bad[2] && !bad[3] && entries(NULL, 0) == 2,
         "four threads compile the same kernels at once");
  cgl_cache_trim(place, 0);
  rmdir(place);
  free(place);
  setenv("CGRAPHLUA_CACHE", "off", 1);
}


static void test_no_compiler(void) {
  cgl_image *image;
  char *message;
  setenv("CGRAPHLUA_CXX", "no-such-compiler", 1);
  cgl_compile_status status =
      compile(CGL_IMAGE_HOST, "__global__ void k() {}", NULL, &image, &message);
  tap_ok(status == CGL_COMPILE_NO_COMPILER && message &&
             strstr(message, "no-such-compiler"),
         "a missing compiler is named: %s", message);
  free(message);
  unsetenv("CGRAPHLUA_CXX");
}


int main(void) {
  char made[] = "/tmp/cgraphlua-test-XXXXXX";
  folder = mkdtemp(made);
  if (!folder)
    return 1;
  test_signatures();
  test_features();
  test_loops();
  test_damaged_sources();
  test_bombs();
  setenv("CGRAPHLUA_CACHE", "off", 1);
  test_messages(CGL_IMAGE_HOST, "the C++ compiler");
  test_names(CGL_IMAGE_HOST, "the C++ compiler");
  test_include(CGL_IMAGE_HOST, "the C++ compiler");
  test_nvrtc();
  test_cache();
  test_threads();
  test_no_compiler();
  rmdir(folder);
  return tap_done();
}
