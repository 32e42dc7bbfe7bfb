/* Kernels compiled for the host device, run through the ABI alone: blocks
   are dealt to threads here, and every result is compared with plain C. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compile/compile.h"
#include "driver/host/run/fiber.h"
#include "compile/kernels_support.h"
#include "tap.h"

#define THREADS 3
#define N 5000

static const cgl_host_module *module;
static uint32_t barriers; /* the flag of kernels with them */
static __thread sigjmp_buf leave;
static __thread int abort_code;
static __thread char abort_why[512];

typedef struct part {
  const cgl_host_kernel *kernel;
  void *const *params;
  const cgl_host_dims *dims;
  uint64_t first, last;
} part;


static __attribute__((noreturn)) void on_abort(int code, const char *why) {
  abort_code = code;
  snprintf(abort_why, sizeof abort_why, "%s", why);
  siglongjmp(leave, 1);
}


static void *run_part(void *argument) {
  const part *p = argument;
  p->kernel->run(p->params, p->dims, p->first, p->last);
  cgl_fiber_thread_exit();
  return NULL;
}


static const cgl_host_kernel *find(const char *name) {
  for (uint32_t i = 0; i < module->nkernels; i++)
    if (strcmp(module->kernels[i].name, name) == 0)
      return &module->kernels[i];
  tap_ok(false, "the module has a kernel %s", name);
  exit(tap_done());
}


/* Runs a launch on several threads at once, blocks dealt in ranges. */
static void launch(const char *name, cgl_host_dims dims, void **params) {
  uint64_t blocks = (uint64_t)dims.grid[0] * dims.grid[1] * dims.grid[2];
  pthread_t threads[THREADS];
  part parts[THREADS];
  for (uint64_t i = 0; i < THREADS; i++) {
    parts[i] = (part){find(name), params, &dims, blocks * i / THREADS,
                      blocks * (i + 1) / THREADS};
    pthread_create(&threads[i], NULL, run_part, &parts[i]);
  }
  for (int i = 0; i < THREADS; i++)
    pthread_join(threads[i], NULL);
}


static cgl_host_dims line(uint32_t blocks, uint32_t threads) {
  return (cgl_host_dims){{blocks, 1, 1}, {threads, 1, 1}, 0};
}


static void *global(const char *name) {
  for (uint32_t i = 0; i < module->nglobals; i++)
    if (strcmp(module->globals[i].name, name) == 0)
      return module->globals[i].address;
  return NULL;
}


static float *floats(size_t n, float step) {
  float *x = malloc((n + 16) * sizeof *x);
  for (size_t i = 0; i < n; i++)
    x[i] = (float)((i * 7919) % 1000) * step;
  return x;
}


static void test_flat(void) {
  int n = N, bad = 0;
  float a = 1.5f, *x = floats(N, 1), *y = floats(N, 2), *o = floats(N, 0);
  void *p[] = {&n, &a, &x, &y};
  launch("saxpy", line(N / 128 + 1, 128), p);
  for (int i = 0; i < n; i++)
    bad += y[i] != 3.5f * x[i];
  tap_ok(!bad, "saxpy");
  void *q[] = {&n, &x, &o};
  launch("stencil1d", line(N / 96 + 1, 96), q);
  for (int i = 1; i < n - 1; i++)
    bad += o[i] != 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
  tap_ok(!bad && o[0] == 0 && o[n - 1] == 0, "a stencil in one dimension");
  int w = 70, h = 60;
  memset(o, 0, N * sizeof *o);
  void *r[] = {&w, &h, &x, &o};
  cgl_host_dims d = {{3, 8, 1}, {32, 8, 1}, 0};
  launch("stencil2d", d, r);
  for (int j = 1; j < h - 1; j++)
    for (int i = 1; i < w - 1; i++) {
      const float *c = x + j * w + i;
      float want = 0.2f * (c[0] + c[-1] + c[1] + c[-w] + c[w]);
      bad += fabsf(o[j * w + i] - want) > 1e-3f;
    }
  for (int i = 0; i < w; i++)
    bad += o[i] != 0 || o[(h - 1) * w + i] != 0;
  tap_ok(!bad, "a stencil in two dimensions leaves its border alone");
  tap_ok((find("saxpy")->flags & CGL_HOST_KERNEL_FLAT) &&
             (find("stencil2d")->flags & CGL_HOST_KERNEL_FLAT) &&
             !(find("indices")->flags & CGL_HOST_KERNEL_FLAT) &&
             (find("matmul")->flags & barriers),
         "rows run flat only when the index is used as one number");
  free(x);
  free(y);
  free(o);
}


/* Rows of a few threads, in parts that begin anywhere. */
static void test_edges(void) {
  int bad = 0, out[64], *po = out;
  for (uint32_t width = 1; width < 9; width++)
    for (uint32_t first = 0; first < 6; first++) {
      int n = 6 * (int)width - 1;
      cgl_host_dims d = line(6, width);
      void *p[] = {&n, &po};
      memset(out, 0, sizeof out);
      find("edges")->run(p, &d, 0, first);
      find("edges")->run(p, &d, first, 6);
      for (int i = 0; i < n; i++)
        bad += out[i] != (i < 3   ? 1
                          : i > 6 ? 2
                          : i > 4 ? 3
                                  : 4) +
                             (i < 2 ? 10 : 0);
    }
  tap_ok(!bad, "edges, in rows of any width");
}


static size_t place_of(const char *name, uint64_t place, uint32_t width) {
  const uint32_t block = (uint32_t)(place / width), t = (uint32_t)place % width;
  const uint32_t wrapped = block * width;
  if (strcmp(name, "places") == 0)
    return 2 * place + 1;
  if (strcmp(name, "beside") == 0)
    return wrapped + t + (block * (uint64_t)1024 + t) * 3 + (block << 10 | t);
  return place * 9 + ((uint64_t)wrapped + t) * 5 +
         (uint64_t)(uint32_t)(wrapped + t) * 7 +
         (size_t)(int)((block & 255) * width + t);
}


/* Of grids on both sides of 2^31 threads, and of one with all that there can
   be, the last of its blocks and a few others. */
static void test_places(void) {
  static const uint32_t grids[][2] = {{7, 5},           {0x1ffffe, 1024},
                                      {0x1fffff, 1024}, {0x200000, 1024},
                                      {0x3fffff, 512},  {0x7fffffff, 1024}};
  static const char *const names[] = {"places", "spelled", "beside"};
  enum { BLOCKS = 3, MOST = BLOCKS * 1024 };
  int bad = 0;
  size_t *out = calloc(MOST, sizeof *out);
  for (int k = 0; k < 3 * 6 * 2; k++) {
    const char *name = names[k % 3];
    cgl_host_dims d = line(grids[k / 6][0], grids[k / 6][1]);
    const uint64_t first = k / 3 % 2 ? d.grid[0] - BLOCKS : 1;
    const uint64_t n = (uint64_t)BLOCKS * d.block[0];
    uint64_t from = first * d.block[0], count = n;
    void *p[] = {&from, &count, &out};
    memset(out, 0, MOST * sizeof *out);
    find(name)->run(p, &d, first, first + BLOCKS);
    for (uint64_t i = 0; i < n; i++)
      bad += out[i] != place_of(name, from + i, d.block[0]);
  }
  tap_ok(!bad && find("places")->flags & CGL_HOST_KERNEL_FLAT &&
             find("spelled")->flags & CGL_HOST_KERNEL_FLAT &&
             !(find("beside")->flags & CGL_HOST_KERNEL_FLAT),
         "places in 64 bits, in grids of any size");
  free(out);
}


static void test_strides(void) {
  static const uint32_t shapes[][2] = {{1, 1}, {3, 32}, {8, 64}, {40, 256}};
  int bad = 0, *x = calloc(N, sizeof *x), *o = calloc(N, sizeof *o);
  int sums[96];
  for (int i = 0; i < N; i++)
    x[i] = i % 7;
  for (int k = 0; k < 12; k++) {
    int n = N - k / 4 * 1000, *ps = sums;
    cgl_host_dims d = line(shapes[k % 4][0], shapes[k % 4][1]);
    d.grid[1] = 2;
    memset(o, 0, N * sizeof *o);
    void *p[] = {&n, &x, &o};
    /* the two rows of blocks add to the same numbers: one after the other */
    find("grid_stride")->run(p, &d, 0, 2 * d.grid[0]);
    for (int i = 0; i < N; i++)
      bad += o[i] != (i < n && x[i] != 3 ? 4 * x[i] + 1 : 0);
    memset(o, 0, N * sizeof *o);
    d.grid[1] = 1;
    launch("grid_stride", d, p);
    for (int i = 0; i < N; i++)
      bad += o[i] != (i < n && x[i] != 3 ? 2 * x[i] : 0);
    void *q[] = {&n, &x, &ps};
    launch("strided_sums", line(3, 32), q);
    for (int t = 0; t < 96; t++) {
      int sum = 0;
      for (int i = t; i < n; i += 96)
        sum += x[i];
      bad += sums[t] != sum;
    }
  }
  tap_ok(!bad, "grid-stride loops, over any part of the grid");
  int n = N, eight[8] = {0}, want[8] = {0}, *pe = eight;
  void *r[] = {&n, &x, &pe};
  launch("own_slots", line(2, 4), r);
  for (int i = 0; i < n; i++)
    want[i & 7] += x[i];
  tap_ok(memcmp(eight, want, sizeof want) == 0,
         "a thread's iterations stay in order");
  free(x);
  free(o);
}


static void test_nbody(void) {
  int n = 300;
  float *p = floats(4 * 300, 0.01f), *f = floats(4 * 300, 0), worst = 0;
  void *a[] = {&n, &p, &f};
  launch("nbody", line(5, 64), a);
  for (int i = 0; i < n; i++) {
    double acc = 0, x = p[4 * i];
    for (int j = 0; j < n; j++) {
      double dx = p[4 * j] - x, dy = p[4 * j + 1] - p[4 * i + 1];
      double dz = p[4 * j + 2] - p[4 * i + 2];
      acc += p[4 * j + 3] * dx * pow(dx * dx + dy * dy + dz * dz + 1e-3, -1.5);
    }
    float error = fabsf(f[4 * i] - (float)acc) / (1 + fabsf((float)acc));
    worst = error > worst ? error : worst;
  }
  tap_ok(worst < 1e-4f, "n-body forces (worst relative error %.1e)", worst);
  free(p);
  free(f);
}


static void test_barriers(void) {
  int n = N, bad = 0;
  float *x = floats(N, 1), *o = floats(N, 0), want = 0, sum = 0;
  void *p[] = {&x, &o, &n};
  launch("block_sum", line(N / 256 + 1, 256), p);
  for (int i = 0; i < n; i++)
    want += x[i];
  for (int i = 0; i < N / 256 + 1; i++)
    sum += o[i];
  tap_ok(sum == want, "a block reduction (%g, %g)", sum, want);
  int m = 64;
  float *b = floats(64 * 64, 0.5f), *c = floats(64 * 64, 0);
  void *q[] = {&x, &b, &c, &m};
  cgl_host_dims d = {{4, 4, 1}, {16, 16, 1}, 0};
  launch("matmul", d, q);
  for (int i = 0; i < m; i++)
    for (int j = 0; j < m; j++) {
      float r = 0;
      for (int k = 0; k < m; k++)
        r = fmaf(x[i * m + k], b[k * m + j], r);
      bad += fabsf(r - c[i * m + j]) > 1e-5f * fabsf(r);
    }
  tap_ok(!bad, "a tiled matrix product in a 16 x 16 block");
  int out[128] = {0}, limit = 70, *po = out;
  void *e[] = {&po, &limit};
  launch("early_exit", line(1, 128), e);
  for (int i = 0; i < 128; i++)
    bad += out[i] != (i < 70 ? 70 : 0);
  tap_ok(!bad, "threads that left do not hold up a barrier");
  memset(out, 0, sizeof out);
  limit = 37;
  launch("late_start", line(1, 128), e);
  for (int i = 0; i < 128; i++)
    bad += out[i] != (i < 37 ? 0 : 91);
  tap_ok(!bad, "threads that left before the first barrier do not count");
  float r[64];
  float *pr = r;
  int sixty = 64;
  void *s[] = {&pr, &sixty};
  cgl_host_dims one = {{1, 1, 1}, {64, 1, 1}, 1024};
  for (int i = 0; i < 64; i++)
    r[i] = (float)i;
  launch("dynamic_outside", one, s);
  for (int i = 0; i < 64; i++)
    bad += r[i] != (float)(63 - i);
  tap_ok(!bad, "dynamic shared memory at file scope");
  launch("dynamic_inside", one, s);
  for (int i = 0; i < 64; i++)
    bad += r[i] != (float)(i + 63 - i);
  tap_ok(!bad, "dynamic shared memory in a kernel, cast");
  free(x);
  free(o);
  free(b);
  free(c);
}


static void test_warps(void) {
  int n = N, *x = malloc(N * sizeof *x), total = 0, want = 0, bad = 0;
  for (int i = 0; i < n; i++)
    want += x[i] = i % 7;
  int *pt = &total;
  void *p[] = {&x, &pt, &n};
  launch("warp_sum", line(N / 256 + 1, 256), p);
  tap_ok(total == want, "a warp reduction by shuffles");
  int o[64 * 4], *po = o;
  void *q[] = {&po};
  launch("shuffles", line(1, 64), q);
  for (int t = 0; t < 64; t++) {
    int base = t & ~31, lane = t & 31;
    bad += o[t * 4] != base + 5;
    bad += o[t * 4 + 1] !=
           ((lane & 7) < 3 ? t : t - 3) + 1000 * ((lane & 7) > 4 ? t : t + 3);
    /* Parts see those before them, not those after. */
    bad += o[t * 4 + 2] != (t ^ 7) + 1000 * (lane & 8 ? t ^ 12 : t);
    bad += o[t * 4 + 3] != (t & ~3) + ((t + 1) & 3);
  }
  tap_ok(!bad, "shuffles: by index, up, down, by mask, of doubles, in parts");
  unsigned v[64 * 8], *pv = v;
  void *r[] = {&pv};
  launch("votes", line(1, 64), r);
  for (int t = 0; t < 64; t++) {
    unsigned *u = v + t * 8;
    int lane = t & 31;
    bad += u[0] != 0x49249249u || u[1] != 3 || u[2] != 15u << (lane / 4 * 4);
    bad += u[3] != 496 || u[4] != ~0u || u[5] != 32 || u[6] != 3;
    bad += u[7] != ~0u;
  }
  tap_ok(!bad, "votes, matches, reductions, counting barriers, active mask");
  unsigned w[32 * 5], *pw = w;
  int limit = 20;
  void *l[] = {&pw, &limit};
  launch("leavers", line(1, 32), l);
  for (int t = 0; t < 32; t++)
    bad += w[t * 5] != ~0u + (t % 2 ? 0xaaaaaa00u : 1u);
  tap_ok(!bad, "the lanes of another branch do not vote");
  for (int t = 0; t < limit; t++)
    bad += w[t * 5 + 1] != 0x55555 || w[t * 5 + 2] != 0xfffff ||
           w[t * 5 + 3] != 20 || w[t * 5 + 4] != 1;
  tap_ok(!bad, "nor do those that have left");
  unsigned g[64], *pg = g, seen[64] = {0};
  total = 0;
  void *s[] = {&pg, &pt};
  launch("groups", line(1, 64), s);
  for (int t = 0; t < 64; t++)
    if (t % 2 && g[t] < 64)
      seen[g[t]]++;
    else if (!(t % 2))
      bad += g[t] != (t < 32 ? 240u : 752u);
  for (int i = 0; i < 32; i++)
    bad += seen[i] != 1;
  tap_ok(!bad && total == 32, "groups found by __activemask, partial masks");
  free(x);
}


static void test_language(void) {
  int n = 1000, bad = 0;
  float x[1000], y[1000], *px = x, *py = y;
  double dx[1000], dy[1000], *pdx = dx, *pdy = dy;
  for (int i = 0; i < n; i++)
    dx[i] = x[i] = (float)(i % 10);
  void *p[] = {&py, &px, &n}, *q[] = {&pdy, &pdx, &n};
  launch("evaluate<float>", line(8, 128), p);
  launch("evaluate<double, 2>", line(8, 128), q);
  for (int i = 0; i < n; i++) {
    bad += y[i] != ((1 * x[i] + 2) * x[i] + 3) * x[i] + 4;
    bad += dy[i] != dx[i] + 2;
  }
  tap_ok(!bad, "templates by name expression, default argument too");
  *(float *)global("deep::scale") = 3;
  ((float *)global("weights"))[1] = 10;
  void *g[] = {&py, &px};
  launch("globals", line(10, 100), g);
  for (int i = 0; i < n; i++)
    bad += y[i] != x[i] * (float)(i % 4 == 1 ? 10 : i % 4 + 1) * 3;
  tap_ok(!bad && *(int *)global("counter") == 1000,
         "device variables and constants, set from outside");
  ((float *)global("weights"))[1] = 2;
  struct {
    double a;
    int b;
  } pair = {1.5, 4};
  float v[3] = {1, 2, 3};
  void *s[] = {&pair, v, &pdy};
  launch("by_value", line(10, 100), s);
  for (int i = 0; i < n; i++)
    bad += dy[i] != 12;
  const cgl_host_kernel *k = find("by_value");
  tap_ok(!bad && k->nparams == 3 && k->param_size[0] == 16 &&
             k->param_size[1] == 12 && k->param_align[1] == 4 &&
             k->param_size[2] == 8,
         "structs by value, sizes and alignments of parameters");
  int o[48 * 12], *po = o;
  void *i[] = {&po};
  cgl_host_dims d = {{2, 3, 2}, {4, 3, 4}, 0};
  launch("indices", d, i);
  for (int b = 0; b < 12; b++)
    for (int t = 0; t < 48; t++)
      bad += o[b * 48 + t] != b * 1000 + t;
  tap_ok(!bad, "indices of three-dimensional grids and blocks");
  tap_ok(find("block_sum")->max_threads == 256 &&
             find("saxpy")->max_threads == 1024,
         "launch bounds");
}


static void test_planes(void) {
  enum { CELLS = 50 };
  int o[12 * CELLS], *po = o, cells = CELLS, bad = 0;
  void *p[] = {&po, &cells};
  cgl_host_dims d = {{2, 3, 4}, {32, 1, 1}, 0};
  launch("planes", d, p);
  for (int row = 0; row < 12; row++)
    for (int i = 0; i < CELLS; i++)
      bad += o[row * CELLS + i] != row / 3 * 10000 + row % 3 * 100 + i;
  tap_ok(!bad, "rows of blocks end with their plane");
}


static void test_atomics(void) {
  int i[4] = {0, 0, 0, 0}, *pi = i;
  /* u[2] is above where it wraps: its first decrement takes it there. */
  unsigned u[7] = {0, 0, 15, 0, ~0u, 0, 0}, *pu = u;
  unsigned long long l[4] = {0, 0, 0, -5ull}, *pl = l;
  float f[3] = {0, 0, 0}, *pf = f;
  double d[1] = {0}, *pd = d;
  void *p[] = {&pi, &pu, &pl, &pf, &pd};
  launch("atomics", line(9, 100), p);
  tap_ok(i[0] == 899 * 450 && i[1] == -900 && i[2] == -899 && i[3] == 899,
         "atomic add, subtract, minimum, maximum of int");
  tap_ok(u[0] == 1800 && u[1] == 0 && u[2] == 0 && u[3] == ~0u && u[4] == 0 &&
             u[5] == 0 && u[6] == 2700,
         "atomic increment, decrement, and, or, xor, compare-and-swap");
  tap_ok(l[0] == 900ull << 33 && l[1] == 899 && l[2] == -900ull &&
             l[3] == 899 && f[0] == 450 && f[1] == 900 && f[2] == 7 &&
             d[0] == 225,
         "atomics of 64 bits and of floating point");
}


static void test_types(void) {
  int n = 2048, bad = 0;
  uint16_t *a = malloc(4096), *b = malloc(4096), *o = malloc(4096);
  float *f = floats(2048, 0);
  for (int i = 0; i < n; i++) {
    a[i] = (uint16_t)(i * 31);
    b[i] = 0x3e00; /* 1.5 */
  }
  void *p[] = {&a, &b, &o, &f, &n};
  launch("halves", line(16, 128), p);
  for (int i = 0; i < n; i++) {
    float want = half_value(a[i]);
    bad += !(f[i] == want || (f[i] != f[i] && want != want));
    float product = half_value(half_round(want * 1.5f));
    bad += o[i] != half_round(product + 1) && want == want;
  }
  tap_ok(!bad, "half: every conversion, product and sum rounded once");
  float4_like v[100], w[100], *pv = v, *pw = w;
  int c[200], *pc = c, m = 100;
  unsigned char e[400], *pe = e;
  for (int i = 0; i < m; i++)
    w[i] = (float4_like){(float)i, (float)i, (float)(i - 50), (float)(i * i)};
  void *q[] = {&pv, &pw, &pc, &pe, &m};
  launch("vectors", line(4, 32), q);
  for (int i = 0; i < m; i++) {
    bad += v[i].x != (float)(2 * i) || v[i].y != (float)(i + 1);
    bad += v[i].z != (float)(i < 50 ? 0 : i - 50) || v[i].w != (float)i;
    bad += c[2 * i] != i || c[2 * i + 1] != -i;
    bad += e[4 * i] != i || e[4 * i + 2] != i + 2 || e[4 * i + 3] != 255;
  }
  tap_ok(!bad, "vector types of float, int and char");
  free(a);
  free(b);
  free(o);
  free(f);
}


static void test_functions(void) {
  int n = 512, bad = 0;
  unsigned *x = malloc(2048), *o = malloc(20480);
  for (int i = 0; i < n; i++)
    x[i] = i ? (unsigned)i * 2654435761u : 0;
  void *p[] = {&x, &o, &n};
  launch("bits", line(4, 128), p);
  for (int i = 0; i < n; i++)
    bad += !bits_are_right(x[i], o + 10 * i);
  tap_ok(!bad, "integer intrinsics");
  double *v = malloc(512 * 8), *r = malloc(512 * 12 * 8);
  for (int i = 0; i < n; i++)
    v[i] = (i - 256) / 64.0;
  void *q[] = {&v, &r, &n};
  launch("mathematics", line(4, 128), q);
  for (int i = 0; i < n; i++)
    bad += !mathematics_are_right(v[i], r + 12 * i);
  tap_ok(!bad, "mathematical functions, float and double");
  int m = 5, *xi = (int *)x, *oi = (int *)o;
  void *s[] = {&n, &m, &xi, &oi};
  launch("local_array", line(4, 128), s);
  for (int i = 0; i < n; i++) {
    unsigned t[4];
    t[i & 3] = x[i];
    t[(i + 1) & 3] = x[i] * 2;
    t[(i + 2) & 3] = 7;
    t[(i + 3) & 3] = 9;
    bad += o[i] != t[1] + 3 * t[2];
  }
  launch("pointed", line(4, 128), s);
  for (int i = 0; i < n; i++) {
    unsigned a = x[i], b = 7u + (unsigned)i;
    unsigned *p1 = &a, *p2 = x[i] & 2 ? &a : &b;
    *p1 += 3;
    *p2 *= 2;
    *p1 += *p2;
    bad += o[i] != a + 5 * b;
  }
  tap_ok(!bad, "an array of each thread's own, indexed at run time");
  free(x);
  free(o);
  free(v);
  free(r);
}


static void test_printf(void) {
  char path[] = "/tmp/cgraphlua-test-XXXXXX", text[256] = "";
  int n = 2, file = mkstemp(path), saved = dup(1);
  void *p[] = {&n};
  fflush(stdout);
  dup2(file, 1);
  find("say")->run(p, &(cgl_host_dims){{1, 1, 1}, {8, 1, 1}, 0}, 0, 1);
  fflush(stdout);
  dup2(saved, 1);
  close(saved);
  ssize_t got = pread(file, text, sizeof text - 1, 0);
  close(file);
  unlink(path);
  tap_ok(got > 0 && strcmp(text, "thread 0 says 0.0\nthread 1 says 0.5\n") == 0,
         "printf");
}


/* Runs on this thread and takes what the abort hook says. */
static int run_to_abort(const char *name, void **params, uint32_t threads) {
  cgl_host_dims d = line(1, threads);
  abort_code = 0;
  if (sigsetjmp(leave, 1) == 0)
    find(name)->run(params, &d, 0, 1);
  else
    cgl_fiber_reset();
  return abort_code;
}


static void test_aborts(void) {
  int o[64], *po = o, limit = 40, n = 128, bad = 0;
  void *p[] = {&po}, *q[] = {&limit};
  tap_ok(run_to_abort("divergent", p, 32) == 719 &&
             strstr(abort_why, "16 wait at __syncthreads") != NULL,
         "a divergent barrier ends the launch: %s", abort_why);
  tap_ok(run_to_abort("check", q, 64) == 710 &&
             strstr(abort_why, "thread: [40,0,0]") &&
             strstr(abort_why, "(int)threadIdx.x < limit"),
         "a failed assertion ends the launch: %s", abort_why);
  int out[128], *pout = out, all = 128;
  void *r[] = {&pout, &all};
  for (int i = 0; i < 3; i++)
    bad += run_to_abort("divergent", p, 32) != 719;
  bad += run_to_abort("early_exit", r, (uint32_t)n) != 0;
  for (int i = 0; i < n; i++)
    bad += out[i] != 128;
  tap_ok(!bad, "the same thread runs the next kernel rightly");
  cgl_fiber_thread_exit();
}


/* Kernels with barriers in one of their forms. */
static void test_form(const char *form) {
  char *text;
  size_t length;
  static const char *const expressions[] = {"evaluate<float>",
                                            "evaluate<double, 2>"};
  cgl_image *image;
  char *message;
  void *library;
  setenv("CGRAPHLUA_HOST_KERNELS", form, 1);
  if (!tap_ok(read_text("compile/kernels.cu", &text, &length),
              "spec/compile/kernels.cu can be read, for %s", form))
    return;
  cgl_source source = {.text = text,
                       .length = length,
                       .file = "kernels.cu",
                       .line = 1,
                       .expressions = expressions,
                       .nexpressions = 2};
  cgl_compile_status status = cgl_compile(
      &(cgl_target){.format = CGL_IMAGE_HOST}, &source, &image, &message);
  if (!tap_ok(status == CGL_COMPILE_OK, "the kernels compile: %s",
              message ? message : "no warnings"))
    return;
  free(message);
  module = load_image(image, &library);
  if (!tap_ok(module && module->abi == CGL_HOST_ABI, "the image loads"))
    return;
  barriers =
      strcmp(form, "fibers") ? CGL_HOST_KERNEL_LOOPS : CGL_HOST_KERNEL_BARRIERS;
  module->init(cgl_fiber_runtime());
  test_flat();
  test_places();
  test_edges();
  test_strides();
  test_nbody();
  test_barriers();
  test_warps();
  test_language();
  test_planes();
  test_atomics();
  test_types();
  test_functions();
  test_printf();
  test_aborts();
  cgl_image_free(image);
  free(text);
  dlclose(library);
}


int main(void) {
  cgl_fiber_set_hooks(on_abort, NULL);
  test_form("loops");
  test_form("fibers");
  return tap_done();
}
