/* When an image of the cache is taken and when it is old: the files that a
   compile read, the places where it found none, the compiler itself. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compile/cache/cache.h"
#include "compile/compile.h"
#include "compile/kernels_support.h"
#include "tap.h"

static char *folder, *cache; /* of this test's files, and of the entries */
static const char *who;
static cgl_image_format format;


static void put(const char *name, const char *text) {
  char *path = cgl_format("%s/%s", folder, name);
  char *slash = path + strlen(folder) + 1;
  while ((slash = strchr(slash, '/'))) {
    *slash = 0;
    mkdir(path, 0700);
    *slash++ = '/';
  }
  FILE *file = fopen(path, "w");
  fputs(text, file);
  fclose(file);
  free(path);
}


static void drop(const char *name) {
  char *path = cgl_format("%s/%s", folder, name);
  unlink(path);
  free(path);
}


/* "double anew" or "int32 cached": what the kernel's parameter is now, and
   where the image is from; or "refused". */
static const char *compile(const char *text, const char *option) {
  static char out[64];
  char *script = cgl_format("%s/script.lua", folder);
  cgl_source source = {.text = text,
                       .length = strlen(text),
                       .file = script,
                       .line = 1,
                       .options = &option,
                       .noptions = option != NULL};
  cgl_image *image = NULL;
  char *message = NULL;
  cgl_compile_status status = cgl_compile(
      &(cgl_target){.format = format, .sm = 90}, &source, &image, &message);
  if (image)
    snprintf(out, sizeof out, "%s %s",
             cgl_kind_word(image->signatures[0].parameters[0].kind),
             image->cached ? "cached" : "anew");
  else
    snprintf(out, sizeof out, "%s",
             status == CGL_COMPILE_NO_COMPILER ? "no compiler" : "refused");
  if (!image && status == CGL_COMPILE_REFUSED)
    printf("# %s\n", message ? message : "");
  cgl_image_free(image);
  free(message);
  free(script);
  return out;
}


static void expect(const char *text, const char *option, const char *wanted,
                   const char *what) {
  const char *got = compile(text, option);
  tap_ok(!strcmp(got, wanted), "%s: %s: %s%s%s", who, what, wanted,
         strcmp(got, wanted) ? ", not " : "", strcmp(got, wanted) ? got : "");
}


#define KERNEL "\n__global__ void k(T x) {}"
#define T_INT "typedef int T;\n"
#define T_DOUBLE "typedef double T;\n"


static void test_headers(void) {
  const char *text = "#include \"sub/a.h\"" KERNEL;
  put("sub/a.h", "#include \"b.h\"\n");
  put("sub/b.h", T_INT);
  expect(text, NULL, "int32 anew", "a header of a header");
  expect(text, NULL, "int32 cached", "again");
  put("sub/b.h", T_DOUBLE);
  expect(text, NULL, "double anew", "changed");
  expect(text, NULL, "double cached", "again");
  put("sub/b.h", T_DOUBLE);
  expect(text, NULL, "double cached", "written again as it was");
  drop("sub/b.h");
  expect(text, NULL, "refused", "gone");
}


static void test_shadows(void) {
  char *inner = cgl_format("-I%s/one", folder);
  const char *text = "#include \"d.h\"" KERNEL;
  put("one/d.h", T_INT);
  expect(text, inner, "int32 anew", "a header of a folder");
  expect(text, inner, "int32 cached", "again");
  put("d.h", T_DOUBLE);
  expect(text, inner, "double anew", "one that appears beside the script");
  drop("d.h");
  expect(text, inner, "int32 anew", "and goes");
  free(inner);
  /* Two folders: the first is the one that changes. */
  char *first = cgl_format("%s/first", folder);
  mkdir(first, 0700);
  char *other = cgl_format("-I%s", first);
  text = "#include <one/d.h>\n#define PLACE" KERNEL;
  char *both = cgl_format("--include-path=%s", folder);
  expect(text, both, "int32 anew", "a header in angles");
  expect(text, both, "int32 cached", "again");
  put("one/d.h", T_DOUBLE);
  expect(text, both, "double anew", "changed");
  free(first);
  free(other);
  free(both);
}


static void test_questions(void) {
  const char *text = "#if __has_include(\"cfg.h\")\n#include \"cfg.h\"\n#else\n"
                     "typedef float T;\n#endif" KERNEL;
  expect(text, NULL, "float anew", "__has_include of nothing");
  expect(text, NULL, "float cached", "again");
  put("cfg.h", T_INT);
  expect(text, NULL, "int32 anew", "of a file");
  put("cfg.h", T_DOUBLE);
  expect(text, NULL, "double anew", "of another");
  expect(text, NULL, "double cached", "again");
  drop("cfg.h");
  expect(text, NULL, "float anew", "of nothing again");
}


/* Headers that only the host's compiler gives. */
static void test_compiler_only(void) {
  const char *text =
      "#if __SIZEOF_POINTER__ == 8\n#include \"gcc.h\"\n#endif" KERNEL;
  put("gcc.h", T_INT);
  expect(text, NULL, "int32 anew", "a header behind the compiler's macro");
  put("gcc.h", T_DOUBLE);
  expect(text, NULL, "double anew", "changed");
  expect(text, NULL, "double cached", "again");
  text = "#define NAME \"gcc.h\"\n#include NAME" KERNEL;
  expect(text, NULL, "double anew", "a header that a macro names");
  expect(text, NULL, "double cached", "again");
  put("gcc.h", T_INT);
  expect(text, NULL, "int32 anew", "changed");
  put("two words $x#.h", T_INT);
  text = "#include \"two words $x#.h\"" KERNEL;
  expect(text, NULL, "int32 anew", "a name with blanks and signs");
  put("two words $x#.h", T_DOUBLE);
  expect(text, NULL, "double anew", "changed");
  expect(text, NULL, "double cached", "again");
  text = "#define A __TIME__" KERNEL;
  put("time.h2", T_INT);
  text = "typedef int T; __device__ const char *a = __TIME__;" KERNEL;
  expect(text, NULL, "int32 anew", "a source that holds the time");
  expect(text, NULL, "int32 anew", "again");
}


/* Where the source stands counts only when the image says so. */
static void test_lines(void) {
  put("line.h", "typedef int T;\n#define WHERE __LINE__\n");
  const char *text = "#include \"line.h\"\n"
                     "__global__ void k(T x, int *y) { *y = WHERE; }";
  char *moved = cgl_format("%s/moved.lua", folder);
  expect(text, NULL, "int32 anew", "a header's macro names the line");
  cgl_source source = {
      .text = text, .length = strlen(text), .file = moved, .line = 9};
  cgl_image *image = NULL;
  cgl_compile(&(cgl_target){.format = format, .sm = 90}, &source, &image, NULL);
  tap_ok(image && !image->cached, "%s: at another line it is another", who);
  cgl_image_free(image);
  free(moved);
}


/* A file that an option names is read without a directive. */
static void test_pre_include(void) {
  char *option = cgl_format("--pre-include=%s/pre.h", folder);
  const char *text = "// what comes before" KERNEL;
  put("pre.h", T_INT);
  expect(text, option, "int32 anew", "a header that an option names");
  put("pre.h", T_DOUBLE);
  expect(text, option, "double anew", "changed");
  free(option);
}


static void test_all(cgl_image_format which, const char *name) {
  format = which;
  who = name;
  test_headers();
  test_shadows();
  test_questions();
  test_lines();
}


static void write_wrapper(const char *path, const char *remark) {
  FILE *file = fopen(path, "w");
  fprintf(file, "#!/bin/sh\n# %s\nexec c++ \"$@\"\n", remark);
  fclose(file);
  chmod(path, 0700);
}


/* A hit asks no compiler; another compiler is no hit. */
static void test_compiler(void) {
  char *wrapper = cgl_format("%s/cxx", folder);
  const char *text = "// of the wrapper\ntypedef int T;" KERNEL;
  format = CGL_IMAGE_HOST;
  who = "the C++ compiler";
  write_wrapper(wrapper, "one");
  setenv("CGRAPHLUA_CXX", wrapper, 1);
  expect(text, NULL, "int32 anew", "a compiler of the user's");
  expect(text, NULL, "int32 cached", "again");
  write_wrapper(wrapper, "another");
  expect(text, NULL, "int32 anew", "another one of the same name");
  unlink(wrapper);
  expect(text, NULL, "int32 cached", "a hit needs no compiler");
  expect("// other\ntypedef int T;" KERNEL, NULL, "no compiler", "a miss does");
  setenv("CGRAPHLUA_CXX", "env A=1 B=2 C=3 D=4 E=5 F=6 G=7 H=8 I=9 J=10 c++",
         1);
  expect("// many words\ntypedef int T;" KERNEL, NULL, "int32 anew",
         "a command of twelve words");
  unsetenv("CGRAPHLUA_CXX");
  char *path = strdup(getenv("PATH"));
  unsetenv("PATH");
  expect("// no path\ntypedef int T;" KERNEL, NULL, "int32 anew",
         "no PATH is set");
  setenv("PATH", path, 1);
  free(path);
  free(wrapper);
}


static void test_words(void) {
  static const char text[] = "// many options\ntypedef int T;" KERNEL;
  enum { N = 1000 };
  char *options[N];
  for (int i = 0; i < N; i++)
    options[i] = cgl_format("-I/nonexistent/%d", i);
  const char *had = access("a.out", F_OK) == 0 ? "had" : NULL;
  cgl_source source = {.text = text,
                       .length = sizeof text - 1,
                       .options = (const char *const *)options,
                       .noptions = N};
  cgl_image *image = NULL;
  char *message = NULL;
  cgl_compile(&(cgl_target){.format = CGL_IMAGE_HOST}, &source, &image,
              &message);
  tap_ok(image && image->size > 1000 && (had || access("a.out", F_OK) != 0),
         "a thousand options reach the compiler: %s", message ? message : "");
  cgl_image_free(image);
  free(message);
  for (int i = 0; i < N; i++)
    free(options[i]);
}


int main(void) {
  char made[] = "/tmp/cgraphlua-test-XXXXXX";
  folder = mkdtemp(made);
  if (!folder)
    return 1;
  cache = cgl_format("%s/cache", folder);
  setenv("CGRAPHLUA_CACHE", cache, 1);
  test_all(CGL_IMAGE_HOST, "the C++ compiler");
  test_compiler_only();
  test_compiler();
  test_words();
  format = CGL_IMAGE_CUBIN;
  if (!strcmp(compile("typedef int T;" KERNEL, NULL), "no compiler"))
    tap_skip("NVRTC's images as well", "NVRTC is not installed");
  else {
    test_all(CGL_IMAGE_CUBIN, "NVRTC");
    test_pre_include();
  }
  char *command = cgl_format("rm -rf '%s'", folder);
  int status = system(command);
  free(command);
  free(cache);
  return tap_done() | (status != 0);
}
