/* What of the processor the compiler may use.
   The compiler runs as a process of its own and sees the machine's processor.
   This process may see less of it, under valgrind for one. */
#include <stdio.h>
#include <string.h>

#include "compile/host/host.h"


/* Appends the lines of /proc/cpuinfo that begin with one of the keys, for the
   first processor. */
static void add_lines(cgl_text *out, const char *const *keys) {
  FILE *file = fopen("/proc/cpuinfo", "r");
  char line[4096];
  if (!file)
    return;
  while (fgets(line, sizeof line, file) && *line != '\n')
    for (const char *const *key = keys; *key; key++)
      if (strncmp(line, *key, strlen(*key)) == 0)
        cgl_text_put(out, line);
  fclose(file);
}


#if defined __x86_64__
/* Whether the flags of /proc/cpuinfo have what CPUID does not show here. */
static bool processor_is_hidden(void) {
  static const char *const keys[] = {"flags", NULL};
  const struct {
    const char *flag;
    int here;
  } features[] = {{" sse4_2", __builtin_cpu_supports("sse4.2")},
                  {" avx", __builtin_cpu_supports("avx")},
                  {" avx2", __builtin_cpu_supports("avx2")},
                  {" bmi2", __builtin_cpu_supports("bmi2")},
                  {" fma", __builtin_cpu_supports("fma")},
                  {" avx512f", __builtin_cpu_supports("avx512f")}};
  cgl_text flags = {0};
  bool hidden = false;
  add_lines(&flags, keys);
  for (size_t i = 0; i < sizeof features / sizeof *features; i++) {
    const size_t n = strlen(features[i].flag);
    const char *at = flags.data;
    while (at && (at = strstr(at, features[i].flag)) && at[n] > ' ')
      at += n;
    hidden |= at && !features[i].here;
  }
  cgl_text_free(&flags);
  return hidden;
}


const char *cgl_host_target(void) {
  if (!processor_is_hidden())
    return "-march=native";
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2"))
    return "-march=haswell";
  return __builtin_cpu_supports("sse4.2") ? "-march=nehalem" : "-march=x86-64";
}
#else
const char *cgl_host_target(void) {
  return "-march=native";
}
#endif


void cgl_host_processor(cgl_text *out) {
  static const char *const keys[] = {"model name", "flags",    "cpu family",
                                     "model\t",    "Features", "CPU part",
                                     NULL};
  cgl_text_print(out, "%s\n", cgl_host_target());
  add_lines(out, keys);
}
