/* Which kernels wait: those whose body begins in the source's own text, for
   sm_90 and newer, and every kernel of the host device. */
#include "compile/compile.h"
#include "tap.h"

#include <stdlib.h>
#include <string.h>

static bool absent; /* of NVRTC */


static cgl_image *compile(cgl_image_format format, int sm, const char *text,
                          const char *expression, char **message) {
  const cgl_source source = {.text = text,
                             .length = strlen(text),
                             .file = "demo.lua",
                             .line = 7,
                             .expressions = &expression,
                             .nexpressions = expression != NULL};
  cgl_image *image = NULL;
  *message = NULL;
  if (cgl_compile(&(cgl_target){.format = format, .sm = sm}, &source, &image,
                  message) == CGL_COMPILE_NO_COMPILER)
    absent = true;
  return image;
}


/* The kernels of a source, the expression's last: "name+" waits. */
static void waits(const char *what, int sm, const char *text,
                  const char *expression, const char *wanted) {
  char *message, row[200] = "";
  cgl_image *image = compile(CGL_IMAGE_CUBIN, sm, text, expression, &message);
  if (absent) {
    tap_skip(what, "NVRTC is not installed");
    return;
  }
  for (size_t i = 0; image && i < image->nsignatures; i++)
    snprintf(row + strlen(row), sizeof row - strlen(row), "%s%s%s",
             i ? " " : "", image->signatures[i].name,
             image->signatures[i].waits ? "+" : "-");
  tap_ok(image && !strcmp(row, wanted) && (!message || !*message),
         "%s: %s, want %s%s%s", what, row, wanted, message ? ": " : "",
         message ? message : "");
  cgl_image_free(image);
  free(message);
}


#define KERNEL(name) \
  "extern \"C\" __global__ void " name "(int *p) { p[0] = p[1] + 1; }\n"
#define TEMPLATE "template <class T> __global__ void t(T *p) { p[0] = p[1]; }\n"


static void sources(void) {
  waits("a kernel", 90, KERNEL("a"), NULL, "a+");
  waits("two on a line", 90, KERNEL("a") KERNEL("b"), NULL, "a+ b+");
  waits("an older GPU", 80, KERNEL("a"), NULL, "a-");
  waits("constants that are read", 90,
        "__global__ void a(const int *__restrict__ p, int *q)\n{ q[0] = "
        "p[0]; } __global__ void b(const int *p, int *q) { q[0] = __ldg(p); }"
        "__global__ void c(int *__restrict__ p) { p[0] = p[1] + 1; }",
        NULL, "a- b- c+");
  waits("constants that a function reads", 90,
        "__device__ __noinline__ int f(const int *p) { return __ldg(p); }\n"
        "__device__ __noinline__ int g(const int *p) { return p[0]; }\n"
        "__global__ void a(int *p) { p[0] = f(p + 1); }\n" KERNEL("b"),
        NULL, "a- b+");
  waits("bounds, a declaration before", 90,
        "namespace n { __global__ void a(int *p);\n"
        "__global__ void __launch_bounds__(64) a(int *p) { p[0] = 1; } }",
        NULL, "n::a+");
  waits("an instance", 90, TEMPLATE, "t<float>", "t<float>+");
  waits("a specialization", 90,
        TEMPLATE "template <> __global__ void t<int>(int *p) { p[0] = 2; }",
        "t<int>", "t<int>+");
  waits("a kernel of a macro", 90,
        "#define MAKE(name) extern \"C\" __global__ void name(int *p) { \\\n"
        "  p[0] = 1; }\nMAKE(a)\n" KERNEL("b"),
        NULL, "a- b+");
  waits("a brace of a macro", 90,
        "#define BEGIN {\n__global__ void a(int *p) BEGIN p[0] = 1; }\n"
        "__device__ int f(int x) BEGIN return x; }",
        NULL, "a-");
  waits("a branch that was not read", 90,
        "#if 0\n" KERNEL("a") "#else\n" KERNEL("a") "#endif\n", NULL, "a+");
  waits("a wait of its own", 90,
        "__global__ void a(int *p) { p[0] = 1;\n"
        "asm volatile(\"griddepcontrol.wait;\" ::: \"memory\"); p[1] = 2; }",
        NULL, "a+");
}


static void shared_in_a_macro(void) {
  char *message;
  cgl_image *image = compile(CGL_IMAGE_HOST, 90,
                             "#define ROOM extern __shared__ float room[];\n"
                             "__global__ void a(float *p) {\n ROOM\n"
                             "  room[threadIdx.x] = 1; p[0] = room[0]; }",
                             NULL, &message);
  tap_ok(image != NULL, "an array of a macro on the host device: %s",
         message ? message : "");
  cgl_image_free(image);
  free(message);
}


static void messages(void) {
  char *message = NULL;
  cgl_image *image =
      compile(CGL_IMAGE_CUBIN, 90,
              "__global__ void a(int *p) { p[0] = wrong; }", NULL, &message);
  if (absent)
    tap_skip("messages", "NVRTC is not installed");
  else
    tap_ok(!image && message && strstr(message, "demo.lua(7)") &&
               !strstr(message, "cgl_wait"),
           "errors show the script as it is: %s", message ? message : "none");
  cgl_image_free(image);
  free(message);
}


static void host(void) {
  char *message;
  cgl_image *image = compile(CGL_IMAGE_HOST, 90, KERNEL("a"), NULL, &message);
  tap_ok(image && image->signatures[0].waits, "the host device's wait");
  cgl_image_free(image);
  free(message);
  image = compile(CGL_IMAGE_HOST, 90, KERNEL("a"), NULL, &message);
  tap_ok(image && image->signatures[0].waits, "and when they are kept");
  cgl_image_free(image);
  free(message);
}


int main(void) {
  sources();
  messages();
  host();
  shared_in_a_macro();
  return tap_done();
}
