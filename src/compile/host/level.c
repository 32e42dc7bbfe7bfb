/* Levels of the processor's instructions, for images that run elsewhere. */
#include <string.h>

#include "compile/host/host.h"

#if defined __x86_64__
#include <cpuid.h>

static const char *const options[] = {"-march=x86-64-v3", "-march=x86-64"};


/* What the third level has beyond the first; the compiler's builtin also asks
   whether the system keeps the registers. */
static bool has_third(void) {
  enum { MOVBE = 1 << 22, F16C = 1 << 29, LZCNT = 1 << 5 };
  unsigned a, b, c = 0, d, more = 0;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
         __get_cpuid(1, &a, &b, &c, &d) && (c & MOVBE) && (c & F16C) &&
         __get_cpuid(0x80000001, &a, &b, &more, &d) && (more & LZCNT);
}


bool cgl_host_has_level(size_t index) {
  return index == 1 || (index == 0 && has_third());
}
#else
static const char *const options[] = {"-march=armv8-a"};


bool cgl_host_has_level(size_t index) {
  return index == 0;
}
#endif


const char *cgl_host_level(size_t index) {
  return index < sizeof options / sizeof *options
             ? options[index] + strlen("-march=")
             : NULL;
}


size_t cgl_host_find_level(const char *name) {
  size_t i = 0;
  while (cgl_host_level(i) && strcmp(cgl_host_level(i), name))
    i++;
  return i;
}


const char *cgl_host_march(const char *level) {
  return options[cgl_host_find_level(level)];
}
