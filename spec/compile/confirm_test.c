/* What a kernel takes, as the compiler has it: sources of which the reader sees
   something else, or nothing. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile/compile.h"
#include "compile/kernels_support.h"
#include "tap.h"

static char *folder; /* of this test's files */
static const char *who;
static cgl_image_format format;


static void write_header(const char *name, const char *text) {
  char *path = cgl_format("%s/%s", folder, name);
  FILE *file = fopen(path, "w");
  fputs(text, file);
  fclose(file);
  free(path);
}


static cgl_image *compile(const char *text, const char *const *options,
                          const char *expression, char **message) {
  char *script = cgl_format("%s/demo.lua", folder);
  cgl_source source = {.text = text,
                       .length = strlen(text),
                       .file = script,
                       .line = 7,
                       .options = options,
                       .expressions = &expression,
                       .nexpressions = expression != NULL};
  while (options && options[source.noptions])
    source.noptions++;
  cgl_image *image = NULL;
  cgl_compile(&(cgl_target){.format = format, .sm = 90}, &source, &image,
              message);
  free(script);
  return image;
}


/* "const float2* x 8 4, ..." of the last signature: kind, lanes, stars, name,
   size and element. */
static const char *shape(const cgl_image *image) {
  static char out[1024];
  size_t n = 0;
  *out = 0;
  if (!image || !image->nsignatures)
    return "none";
  const cgl_signature *s = &image->signatures[image->nsignatures - 1];
  for (size_t i = 0; i < s->nparameters; i++) {
    const cgl_parameter *p = &s->parameters[i];
    n += (size_t)snprintf(out + n, sizeof out - n, "%s%s%s", i ? ", " : "",
                          p->readonly ? "const " : "", cgl_kind_word(p->kind));
    if (p->lanes > 1)
      n += (size_t)snprintf(out + n, sizeof out - n, "x%d", p->lanes);
    n += (size_t)snprintf(out + n, sizeof out - n, "%.*s %s %u %u", p->pointer,
                          "***", p->name, p->size, p->element);
  }
  return out;
}


typedef struct row {
  const char *what, *text, *expression, *shape;
} row;


static void test_rows(const row *rows, size_t n, const char *const *options) {
  for (size_t i = 0; i < n; i++) {
    char *message = NULL;
    cgl_image *image =
        compile(rows[i].text, options, rows[i].expression, &message);
    const char *got = shape(image);
    bool same = !strcmp(got, rows[i].shape) && !message;
    tap_ok(same, "%s: %s%s%s%s", who, rows[i].what, same ? "" : ", not ",
           same ? "" : got, !same && message ? message : "");
    free(message);
    cgl_image_free(image);
  }
}


static void test_types(void) {
  static const row rows[] = {
      {"decltype", "__global__ void k(decltype(1.0f) a, decltype(1 + 1L) b) {}",
       NULL, "float a 4 4, int64 b 8 8"},
      {"the type of a function's result",
       "__device__ double f();\n"
       "__global__ void k(decltype(f()) a, decltype(f()) *b) {}",
       NULL, "double a 8 8, double* b 8 8"},
      {"a type that a template computes",
       "template <class T> struct pick { typedef T type; };\n"
       "template <> struct pick<int> { typedef float type; };\n"
       "template <class T> using add = const T;\n"
       "__global__ void k(pick<int>::type a, add<short> *b) {}",
       NULL, "float a 4 4, const int16* b 8 2"},
      {"the same of a kernel's template",
       "template <class T> struct pick { typedef T type; };\n"
       "template <> struct pick<int> { typedef double type; };\n"
       "template <class T> __global__ void k(typename pick<T>::type a) {}",
       "k<int>", "double a 8 8"},
      {"an enumeration in a struct",
       "struct s { enum e : unsigned char { a }; };\n"
       "__global__ void k(s::e x, const s::e *y) {}",
       NULL, "uint8 x 1 1, const uint8* y 8 1"},
      {"a macro inside a type",
       "#define OF(x) decltype(x)\n__global__ void k(OF(1u) a) {}", NULL,
       "uint32 a 4 4"},
      {"structs by value and by address",
       "struct s { double x; char y; };\nstruct unknown;\n"
       "__global__ void k(s a, const s *b, unknown *c) {}",
       NULL, "struct a 16 16, const struct* b 8 16, struct* c 8 0"},
      {"vectors", "__global__ void k(float4 a, const float2 *b, uchar4 c) {}",
       NULL, "floatx4 a 16 16, const floatx2* b 8 8, uint8x4 c 4 4"},
      {"halves and generators",
       "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n"
       "__global__ void k(__half a, const half2 *b, __nv_bfloat16 c,"
       " cgl_philox d) {}",
       NULL,
       "half a 2 2, const halfx2* b 8 4, bfloat16 c 2 2, cgl_philox d 32 32"},
      {"pointers to pointers, arrays and functions",
       "__global__ void k(const float **a, float *const *b, int c[3],"
       " int (*d)[4], void *e, const volatile char *f) {}",
       NULL,
       "float** a 8 8, const float** b 8 8, int32* c 8 4, unknown* d 8 16, "
       "void* e 8 1, const int8* f 8 1"},
      {"wide and narrow characters",
       "__global__ void k(wchar_t a, char16_t b, char32_t c, signed char d) {}",
       NULL, "int32 a 4 4, uint16 b 2 2, uint32 c 4 4, int8 d 1 1"},
      {"more parameters than a reader can know",
       "template <class... T> __global__ void k(T... all) {}",
       "k<int, float, double *>", "int32  4 4, float  4 4, double*  8 8"},
      {"names that our templates use",
       "#define T 1\n#define C 2\n#define E 3\n#define F 4\n#define W 5\n"
       "#define type 6\n#define plain 7\n#define next 8\n#define word 9\n"
       "#define value 10\n#define words 11\n#define kind 12\n"
       "__global__ void k(int a) {}",
       NULL, "int32 a 4 4"},
      {"types without a name for others",
       "namespace { struct hidden { int a; }; enum sign { minus = -1 }; }\n"
       "typedef struct { char c[3]; } plain_one;\n"
       "__global__ void k(hidden a, const hidden *b, plain_one c, sign d) {}",
       NULL, "struct a 4 4, const struct* b 8 4, struct c 3 3, int32 d 4 4"},
      {"a template's instance with types of its own",
       "namespace { struct hidden { int a; }; }\n"
       "template <class T> __global__ void k(T a, T *b) {}",
       "k<hidden>", "struct a 4 4, struct* b 8 4"},
      {"no parameters", "__global__ void k() {}", NULL, ""},
  };
  test_rows(rows, sizeof rows / sizeof *rows, NULL);
}


/* "dt float @0, box struct[2][2] @8 {lo float[3] @0}": the fields of the last
   parameter; "none" without. */
static void print_fields(const cgl_field *fields, uint32_t n, cgl_text *out) {
  for (uint32_t i = 0; i < n; i += 1 + fields[i].nested) {
    const cgl_field *f = &fields[i];
    cgl_text_print(out, "%s%s %s", i ? ", " : "", f->name,
                   f->pointer ? "pointer" : cgl_kind_word(f->kind));
    if (f->lanes > 1)
      cgl_text_print(out, "x%d", f->lanes);
    for (int k = 0; k < CGL_FIELD_DIMS && f->extents[k]; k++)
      cgl_text_print(out, "[%u]", f->extents[k]);
    cgl_text_print(out, " @%u", f->offset);
    if (f->nested) {
      cgl_text_put(out, " {");
      print_fields(f + 1, f->nested, out);
      cgl_text_put(out, "}");
    }
  }
}


static char *fields_of(const cgl_image *image) {
  cgl_text out = {0};
  const cgl_signature *s =
      image && image->nsignatures ? &image->signatures[0] : NULL;
  const cgl_parameter *p =
      s && s->nparameters ? &s->parameters[s->nparameters - 1] : NULL;
  if (p && p->nfields)
    print_fields(p->fields, p->nfields, &out);
  else
    cgl_text_put(&out, image ? "none" : "refused");
  return cgl_text_take(&out);
}


/* What a cache entry keeps of an image, read back. */
static void test_kept(const cgl_image *image, const char *wanted) {
  cgl_text packed = {0};
  cgl_image back = {.format = format}, old = {.format = format};
  cgl_image_pack(image, &packed);
  const int status = cgl_image_unpack(&back, packed.data, packed.length);
  char *got = fields_of(&back);
  tap_ok(!status && !strcmp(got, wanted), "%s: a cache entry keeps %s", who,
         wanted);
  const size_t skip = strlen(packed.data) + 1;
  tap_ok(cgl_image_unpack(&old, packed.data + skip, packed.length - skip) != 0,
         "%s: a row of another format is not read", who);
  free(got);
  cgl_arena_free(&back.arena);
  cgl_arena_free(&old.arena);
  cgl_text_free(&packed);
}


/* The fields of structs: the reader's, as the compiler confirms them. */
static void test_fields(void) {
  const bool host = format == CGL_IMAGE_HOST;
#define KERNEL "extern \"C\" __global__ void k(int n, s a) {}"
  const struct {
    const char *what, *text, *fields;
  } rows[] = {
      {"plain ones", "struct s { char c; double d; const float x, y; };" KERNEL,
       "c int8 @0, d double @8, x float @16, y float @20"},
      {"every kind",
       "#include <cuda_fp16.h>\nenum e : short { a1 };\n"
       "struct s { bool b; e f; __half h; long long l; unsigned char u;"
       " float *p, **q; const int *const r; float3 v; half2 w; dim3 d; "
       "};" KERNEL,
       "b bool @0, f int16 @2, h half @4, l int64 @8, u uint8 @16, "
       "p pointer @24, q pointer @32, r pointer @40, v floatx3 @48, "
       "w halfx2 @60, d uint32x3 @64"},
      {"arrays and structs in structs",
       "typedef struct { float lo[3]; int n; } box;\n"
       "struct s { box all[2][4]; struct { short a; } un; struct in { int i; };"
       " in last; unsigned m[2][3][4]; };" KERNEL,
       "all struct[2][4] @0 {lo float[3] @0, n int32 @12}, "
       "un struct @128 {a int16 @0}, last struct @132 {i int32 @0}, "
       "m uint32[2][3][4] @136"},
      {"functions, types and constants between them",
       "struct s { typedef int t; static const int K = 3; using u = t;\n"
       "  enum { A, B }; enum e { C = -1 } c; int a = 1;\n"
       "  __device__ int f(int x) const { return x + a; }\n"
       "  __device__ int operator()(int x);\n public: u b{2}; };" KERNEL,
       "c int32 @0, a int32 @4, b int32 @8"},
      {"where alignas and __align__ put them",
       "struct __align__(32) s { char a; alignas(8) char b; char c; };" KERNEL,
       "a int8 @0, b int8 @8, c int8 @9"},
      {"where an attribute packs them",
       "struct __attribute__((packed)) s { char a; double b; };" KERNEL,
       "a int8 @0, b double @1"},
      {"macros of the script's",
       "#define FIELD int n\nstruct s { FIELD; };\n"
       "#define n (broken\n"
       "extern \"C\" __global__ void k(s a) {}",
       "n int32 @0"},
      {"a typedef, a namespace and a template's argument",
       "namespace a { struct in { int x; }; typedef in other; }\n"
       "template <class T> struct of { typedef T type; };\n"
       "extern \"C\" __global__ void k(const a::other b) {}",
       "x int32 @0"},
      {"as many as there may be",
       "struct t { int a, b, c, d, e, f, g, h, i, j, k, l, m, n, o; };\n"
       "struct u { t a, b, c, d, e, f, g, h, i, j, k, l, m, n, o; };\n"
       "struct s { u a; int x[2]; float y; int z[2][2][2][2]; };" KERNEL,
       "none"},
      {"a member that only the compiler sees",
       "struct s { char a;\n#if __SIZEOF_POINTER__ == 8 || \\\n"
       "defined __CUDA_ARCH_LIST__ || defined __NVCC__\n  char b;\n#endif\n"
       "  int c; };" KERNEL,
       host ? "a int8 @0, b int8 @1, c int32 @4" : "none"},
      {"a member that a header of the compiler's adds",
       "#include <limits.h>\nstruct s { int a[INT_MAX > 5 ? 2 : 3]; };" KERNEL,
       "a int32[2] @0"},
      {"a union", "union s { int a; float b; };" KERNEL, "none"},
      {"a union inside",
       "struct s { int a; union { int b; float c; }; };" KERNEL, "none"},
      {"an unnamed struct inside",
       "struct s { int a; struct { int b; }; };" KERNEL, "none"},
      {"a base", "struct b { int x; }; struct s : b { int y; };" KERNEL,
       "none"},
      {"a base of a field",
       "struct b { int x; }; struct d : b { int y; };\n"
       "struct s { d a; int c; };" KERNEL,
       "none"},
      {"bit-fields", "struct s { int a : 3; int b; };" KERNEL, "none"},
      {"private ones", "class s { int a; };" KERNEL, "none"},
      {"a constructor",
       "struct s { int a; __device__ s(int x) : a(x) {} };" KERNEL, "none"},
      {"a virtual function",
       "struct s { int a; __device__ virtual void f() {} };" KERNEL, "none"},
      {"a function's address", "struct s { void (*f)(int); int a; };" KERNEL,
       "none"},
      {"a template",
       "template <class T> struct t { T a; };\ntypedef t<int> s;" KERNEL,
       "none"},
      {"a template inside",
       "template <class T> struct t { T a; };\nstruct s { t<int> b; };" KERNEL,
       "none"},
      {"a generator inside", "struct s { cgl_philox r; int a; };" KERNEL,
       "none"},
      {"nothing", "struct s {};" KERNEL, "none"},
      {"a macro in the way of our questions",
       "#define cgl_T (\nstruct s { int a; };" KERNEL, "none"},
  };
#undef KERNEL
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char *message = NULL;
    cgl_image *image = compile(rows[i].text, NULL, NULL, &message);
    char *got = fields_of(image);
    const bool same = !strcmp(got, rows[i].fields) && !message;
    tap_ok(same, "%s: fields: %s%s%s%s", who, rows[i].what,
           same ? "" : ", not ", same ? "" : got,
           !same && message ? message : "");
    if (image && i == 2)
      test_kept(image, rows[i].fields);
    free(got);
    free(message);
    cgl_image_free(image);
  }
}


/* What the preprocessor decides. */
static void test_choices(void) {
  const bool host = format == CGL_IMAGE_HOST;
  const row rows[] = {
      {"a macro of the compiler's",
       host ? "#ifdef __GNUC__\ntypedef double real;\n#else\n"
              "typedef int real;\n#endif\n__global__ void k(real a) {}"
            : "#ifdef __CUDACC_RTC__\ntypedef double real;\n#else\n"
              "typedef int real;\n#endif\n__global__ void k(real a) {}",
       NULL, "double a 8 8"},
      {"a macro of the compiler's that the reader does not know",
       host ? "#if __SIZEOF_POINTER__ == 8\ntypedef const float *real;\n#else\n"
              "typedef int real;\n#endif\n__global__ void k(real a) {}"
            : "#if defined __CUDA_ARCH_LIST__ || defined __NVCC__\n"
              "typedef const float *real;\n#else\ntypedef const float *real;\n"
              "#endif\n__global__ void k(real a) {}",
       NULL, "const float* a 8 4"},
      {"__has_include of what is there",
       "#if __has_include(\"there.h\")\n#include \"there.h\"\n#else\n"
       "typedef int real;\n#endif\n__global__ void k(real a) {}",
       NULL, "double a 8 8"},
      {"__has_include of what is not",
       "#if __has_include(\"nowhere.h\")\ntypedef double real;\n#else\n"
       "typedef int real;\n#endif\n__global__ void k(real a) {}",
       NULL, "int32 a 4 4"},
      {"an include that is read once",
       "#include \"once.h\"\n#include \"once.h\"\n"
       "__global__ void k(real a) {}",
       NULL, "double a 8 8"},
      {"a header whose limits decide",
       "#include <limits.h>\n#if INT_MAX > 5\ntypedef double real;\n#else\n"
       "typedef int real;\n#endif\n__global__ void k(real a) {}",
       NULL, "double a 8 8"},
  };
  static const row standard[] = {
      {"the standard that was asked for",
       "#if __cplusplus > 201703L\ntypedef double real;\n#else\n"
       "typedef int real;\n#endif\n__global__ void k(real a) {}",
       NULL, "double a 8 8"},
  };
  write_header("there.h", "typedef double real;\n");
  write_header("once.h",
               "#pragma once\nstruct one {};\ntypedef double real;\n");
  test_rows(rows, sizeof rows / sizeof *rows, NULL);
  test_rows(standard, 1, (const char *const[]){"-std=c++20", NULL});
}


/* A header beside a header wins over its namesake beside the script. */
static void test_nested(void) {
  char *message = NULL, *path = cgl_format("%s/sub", folder);
  mkdir(path, 0700);
  write_header("sub/a.h", "#include \"b.h\"\n");
  write_header("sub/b.h", "typedef double real;\n");
  write_header("b.h", "typedef int real;\n");
  cgl_image *image =
      compile("#include \"sub/a.h\"\n__global__ void k(real a) {}", NULL, NULL,
              &message);
  tap_ok(!strcmp(shape(image), "double a 8 8"),
         "%s: a header is looked for beside the one that includes it: %s", who,
         message ? message : "");
  cgl_image_free(image);
  free(message);
  image = compile("#include \"sub/a.h\"\n#include \"b.h\"\n"
                  "__global__ void k(real a) {}",
                  NULL, NULL, &message);
  tap_ok(!image && message, "%s: two headers of one name are two", who);
  cgl_image_free(image);
  free(message);
  free(path);
}


/* What a kernel reaches decides how the host device runs it. */
static void test_features(void) {
  static const char text[] =
      "#if __SIZEOF_POINTER__ == 8\n#define WAIT __syncthreads()\n#else\n"
      "#define WAIT\n#endif\n"
      "__global__ void k(int *x) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  WAIT;\n  x[i] = 1;\n}\n";
  char *message = NULL;
  cgl_image *image = compile(text, NULL, NULL, &message);
  tap_ok(image && image->signatures[0].features & CGL_USES_BARRIER,
         "a barrier that only the compiler sees is seen");
  cgl_image_free(image);
  free(message);
  static const char loop[] =
      "#if __SIZEOF_POINTER__ == 8\n#define N n\n#endif\n"
      "#ifndef OTHER\n__global__ void k(int n, float *y) {\n"
      "  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;\n"
      "       i += blockDim.x * gridDim.x)\n    y[i] = 1;\n}\n#endif\n";
  image = compile(loop, NULL, NULL, &message);
  tap_ok(image && image->signatures[0].loop.start,
         "a reading that the compiler confirms keeps its loops");
  cgl_image_free(image);
  free(message);
}


/* The same text in `file`, with the same line: a warning names it. */
static void test_lines(void) {
  char *message = NULL;
  cgl_image *image =
      compile("#if __SIZEOF_POINTER__ == 8\n#define A a\n#endif\n"
              "\n__global__ void k(int A) {}\n",
              NULL, NULL, &message);
  tap_ok(image && image->signatures[0].line == 11,
         "a kernel read from the compiler's output has the script's line");
  cgl_image_free(image);
  free(message);
}


static void test_shared(void) {
  char *message = NULL;
  cgl_image *image =
      compile("__global__ void k(int *p) {\n  __shared__ int big[60000];\n"
              "  big[threadIdx.x] = p[0];\n  __syncthreads();\n"
              "  p[0] = big[3];\n}\n",
              NULL, NULL, &message);
  tap_ok(!image && message &&
             strstr(message, format == CGL_IMAGE_HOST ? "big" : "shared"),
         "%s: a static shared array over the limit is refused: %s", who,
         message ? message : "it compiles");
  cgl_image_free(image);
  free(message);
  image = compile("__global__ void k(int *p) {\n"
                  "  __shared__ int a[7000];\n  __shared__ int b[7000];\n"
                  "  a[threadIdx.x] = p[0]; b[threadIdx.x] = p[1];\n"
                  "  __syncthreads();\n  p[0] = a[3] + b[p[2]];\n}\n",
                  NULL, NULL, &message);
  tap_ok(!image && message, "%s: two of a kernel's together are over it", who);
  cgl_image_free(image);
  free(message);
  image = compile("template <int N> __device__ int f(int *p) {\n"
                  "  __shared__ int a[12000]; a[threadIdx.x] = p[0];\n"
                  "  __syncthreads(); return a[p[N]]; }\n"
                  "__global__ void k(int *p) { p[0] = f<1>(p); }\n"
                  "__global__ void l(int *p) { p[0] = f<2>(p); }\n",
                  NULL, NULL, &message);
  tap_ok(image != NULL, "%s: two kernels have as much each: %s", who,
         message ? message : "");
  cgl_image_free(image);
  free(message);
}


static void test_all(cgl_image_format which, const char *name) {
  format = which;
  who = name;
  test_types();
  test_fields();
  test_choices();
  test_nested();
  test_shared();
}


int main(void) {
  char made[] = "/tmp/cgraphlua-test-XXXXXX";
  folder = mkdtemp(made);
  if (!folder)
    return 1;
  setenv("CGRAPHLUA_CACHE", "off", 1);
  test_all(CGL_IMAGE_HOST, "the C++ compiler");
  test_features();
  test_lines();
  format = CGL_IMAGE_CUBIN;
  char *message = NULL;
  cgl_image *image = NULL;
  cgl_source empty = {.text = ""};
  if (cgl_compile(&(cgl_target){.format = format, .sm = 90}, &empty, &image,
                  &message) == CGL_COMPILE_NO_COMPILER)
    tap_skip("NVRTC confirms as well", message);
  else
    test_all(CGL_IMAGE_CUBIN, "NVRTC");
  cgl_image_free(image);
  free(message);
  char *command = cgl_format("rm -rf '%s'", folder);
  int status = system(command);
  free(command);
  return tap_done() | (status != 0);
}
