/* What the tests of compiled kernels share: files, loading an image without
   the host device, reference results.  Only for spec/. */
#ifndef CGL_SPEC_KERNELS_SUPPORT_H
#define CGL_SPEC_KERNELS_SUPPORT_H

#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile/compile.h"
#include "driver/kernel_abi.h"

typedef struct float4_like {
  _Alignas(16) float x;
  float y, z, w;
} float4_like;


/* A file of spec/, found through $srcdir when the build is elsewhere. */
static inline int read_text(const char *name, char **text, size_t *length) {
  const char *root = getenv("srcdir");
  char path[4096];
  snprintf(path, sizeof path, "%s/spec/%s", root && *root ? root : ".", name);
  FILE *file = fopen(path, "rb");
  *text = calloc(1, 1 << 20);
  *length = file ? fread(*text, 1, (1 << 20) - 1, file) : 0;
  if (file)
    fclose(file);
  return *length > 0;
}


static inline const cgl_host_module *load_image(const cgl_image *image,
                                                void **library) {
  char path[] = "/tmp/cgraphlua-test-XXXXXX";
  int file = mkstemp(path);
  ssize_t n = write(file, image->bytes, image->size);
  close(file);
  *library = n == (ssize_t)image->size ? dlopen(path, RTLD_NOW) : NULL;
  if (!*library)
    printf("# %s\n", dlerror());
  unlink(path);
  return *library ? dlsym(*library, CGL_HOST_MODULE_SYMBOL) : NULL;
}


/* Half by its definition: sign, five bits of exponent, ten of fraction. */
static inline float half_value(uint16_t h) {
  int exponent = h >> 10 & 31, fraction = h & 1023;
  double v = exponent == 31 ? (fraction ? NAN : INFINITY)
             : exponent     ? ldexp(1024 + fraction, exponent - 25)
                            : ldexp(fraction, -24);
  return (float)(h & 0x8000 ? -v : v);
}


/* The nearest half, ties to even, by search. */
static inline uint16_t half_round(float f) {
  uint16_t sign = signbit(f) ? 0x8000 : 0;
  double v = fabs((double)f);
  if (v >= 65520)
    return sign | 0x7c00;
  unsigned low = 0, high = 0x7bff;
  while (low < high) {
    unsigned middle = (low + high + 1) / 2;
    if ((double)half_value((uint16_t)middle) <= v)
      low = middle;
    else
      high = middle - 1;
  }
  double below = v - (double)half_value((uint16_t)low);
  double step = low < 0x7bff ? (double)half_value((uint16_t)(low + 1)) -
                                   (double)half_value((uint16_t)low)
                             : 32;
  int up = below > step / 2 || (below == step / 2 && (low & 1));
  return (uint16_t)(sign | (low + (unsigned)up));
}


static inline int bits_are_right(unsigned v, const unsigned *r) {
  unsigned reversed = 0, bytes = v & 255;
  for (int i = 0; i < 32; i++)
    reversed |= (v >> i & 1) << (31 - i);
  /* selector 0x4170: bytes 0, 7, 1, 4 of (v, ~v) */
  bytes |= (~v >> 24) << 8 | (v >> 8 & 255) << 16 | (~v & 255) << 24;
  unsigned shift = v & 31;
  unsigned funnel = shift ? ~v << shift | v >> (32 - shift) : ~v;
  return r[0] == (unsigned)__builtin_popcount(v) &&
         r[1] == (v ? (unsigned)__builtin_clz(v) : 32) &&
         r[2] == (unsigned)__builtin_ffs((int)v) && r[3] == reversed &&
         r[4] == bytes &&
         r[5] == (unsigned)((int64_t)(int)v * 0x12345678 >> 32) &&
         r[6] == (unsigned)((uint64_t)v * 0x87654321u >> 32) &&
         r[7] == (v & 0x7f7fffffu) &&
         r[8] == (unsigned)(int)rintf((float)(int)v * 0.25f) && r[9] == funnel;
}


static inline int mathematics_are_right(double v, const double *r) {
  return fabs(r[0] - 1) < 1e-14 && fabs(r[1] - v) < 1e-13 &&
         fabs(r[2] - 1) < 1e-6 && fabs(r[3]) < 1e-4 && fabs(r[4] - v) < 1e-13 &&
         fabs(r[5] - v / 100) < 1e-14 && fabs(r[6] - 1) < 1e-14 && r[7] == 5 &&
         r[8] == 3 + 1.5 + 3 + 0.5 && r[9] == 0 && fabs(r[10] - v) < 1e-12 &&
         r[11] == 1 + 0.5 + 100 + 2;
}

#endif
