/* What the reader finds out of kernels: sums that nobody reads, which the host
   device gathers, and kernels that add up rows of memory. */
#include "compile/frontend/program.h"
#include "tap.h"

#include <string.h>


static void sums(const char *what, size_t wanted, const char *text) {
  cgl_program *p = cgl_program_read(text, strlen(text), 1, NULL, 0, NULL, NULL);
  size_t found = 0;
  for (size_t i = 0; p && i < p->pp.out.count; i++)
    found += cgl_program_is_sum(p, &p->pp.out.at[i]);
  tap_ok(p && found == wanted, "%s: %zu, want %zu", what, found, wanted);
  cgl_program_free(p);
}


#define KERNEL "extern \"C\" __global__ void k(const int *in, int *to, int n) "
#define PLACE "int i = blockIdx.x * blockDim.x + threadIdx.x; "


static void gathered(void) {
  sums("a histogram", 1, KERNEL "{ " PLACE "atomicAdd(&to[in[i]], 1); }");
  sums("behind a guard", 1,
       KERNEL "{ " PLACE "if (i < n) atomicAdd(&to[in[i]], 1); }");
  sums("in a branch and a loop", 3,
       KERNEL "{ " PLACE
              "if (i < n) { atomicAdd(to, 1); } else atomicAdd(to + 1, n); "
              "for (int k = 0; k < n; k++) atomicAdd(&to[k * n], in[k]); }");
  sums("of two parameters", 2,
       "__global__ void k(int *a, "
       "unsigned long long *__restrict__ b) "
       "{ atomicAdd(a, 1); atomicAdd(&b[threadIdx.x], 1ull); }");
  sums("of a template", 1,
       "template <class T> __global__ void k(T *to) "
       "{ atomicAdd(&to[threadIdx.x], (T)1); }");
  sums("beside other memory", 1,
       "__global__ void k(int *a, float *b) "
       "{ b[threadIdx.x] = 1.f; atomicAdd(a, 1); }");
  sums("of one kernel of two", 1,
       "__global__ void a(int *p) { atomicAdd(p, 1); } "
       "__global__ void b(int *p) { p[1] = atomicAdd(p, 1); }");
}


static void not_gathered(void) {
  sums("a result that is used", 0,
       KERNEL "{ int at = atomicAdd(to, 1); "
              "if (at < n) ; }");
  sums("a result in an expression", 0, KERNEL "{ n = (int)atomicAdd(to, 1); }");
  sums("a result that is compared", 0,
       KERNEL "{ if (atomicAdd(to, 1) == n) n = 0; }");
  sums("one of two results", 0,
       KERNEL "{ atomicAdd(to, 1); n = atomicAdd(&to[1], 1); }");
  sums("a comma", 0, KERNEL "{ atomicAdd(to, 1), n++; }");
  sums("memory that is read", 0, KERNEL "{ atomicAdd(to, 1); n = to[1]; }");
  sums("memory that is written", 0, KERNEL "{ atomicAdd(to, 1); *to = n; }");
  sums("memory that is passed on", 0,
       "__device__ int f(int *p) { return *p; } " KERNEL
       "{ atomicAdd(to, 1); f(to); }");
  sums("an index that reads it", 0, KERNEL "{ atomicAdd(&to[to[1]], 1); }");
  sums("another atomic operation", 0,
       "__global__ void k(int *a, int *b) "
       "{ atomicAdd(a, 1); atomicMax(b, 1); }");
  sums("a fence", 0, KERNEL "{ atomicAdd(to, 1); __threadfence(); }");
  sums("a fence in a function", 0,
       "__device__ void f() { __threadfence(); } " KERNEL
       "{ atomicAdd(to, 1); f(); }");
  sums("volatile", 0,
       "__global__ void k(int *a, volatile int *b) "
       "{ atomicAdd(a, 1); while (!*b) ; }");
  sums("shared memory", 0,
       KERNEL "{ __shared__ int own[8]; "
              "atomicAdd(&own[n], 1); }");
  sums("a variable of the device", 0,
       "__device__ int own[8]; " KERNEL "{ atomicAdd(&own[n], 1); }");
  sums("a local name", 0, KERNEL "{ int *p = to; atomicAdd(p, 1); }");
  sums("a hidden name", 0, KERNEL "{ { int to[2]; atomicAdd(&to[0], 1); } }");
  sums("a parameter's field", 0,
       "struct s { int *to; }; "
       "__global__ void k(s a) { atomicAdd(&a.to[0], 1); }");
  sums("a reference", 0, "__global__ void k(int **a) { atomicAdd(a[0], 1); }");
  sums("an atomicAdd of the source's own", 0,
       "__device__ int atomicAdd(int *p, long v) { return *p += v; } " KERNEL
       "{ atomicAdd(to, 1l); }");
  sums("a macro that reads", 0,
       "#define READ to[1]\n" KERNEL "{ atomicAdd(to, 1); n = READ; }");
  sums("a macro that adds", 0,
       "#define ADD(p) atomicAdd(p, 1)\n" KERNEL "{ ADD(to); }");
  sums("a function of the device", 0,
       "__device__ void f(int *to) "
       "{ atomicAdd(to, 1); } " KERNEL "{ f(to); }");
}


static void rows(const char *what, bool wanted, const char *text) {
  cgl_program *p = cgl_program_read(text, strlen(text), 1, NULL, 0, NULL, NULL);
  tap_ok(p && p->nkernels == 1 &&
             cgl_program_adds_rows(p, &p->kernels[0]) == wanted,
         "%s %s", what, wanted ? "adds up rows" : "does not");
  cgl_program_free(p);
}


#define ROWS                                                      \
  "__global__ void k(const int *row, const int *column, "         \
  "const float *value, const float *x, float *y, int n) { " PLACE \
  "if (i >= n) return; "


static void row_sums(void) {
  rows("a sparse matrix", true,
       ROWS "float sum = 0.f; for (int k = row[i]; k < row[i + 1]; k++) "
            "sum += value[k] * x[column[k]]; y[i] = sum; }");
  rows("one with the ends in variables", true,
       ROWS "double sum = 0; int from = row[i], to = row[i + 1]; "
            "for (int k = from; k < to; ++k) { int c = column[k]; "
            "sum += value[k] * __ldg(&x[c]); } y[i] = sum; }");
  rows("a uniform loop", false,
       ROWS "float sum = 0.f; for (int k = 0; k < n; k++) "
            "sum += value[k]; y[i] = sum; }");
  rows("a sum of whole numbers", false,
       ROWS "int sum = 0; for (int k = row[i]; k < row[i + 1]; k++) "
            "sum += column[k]; y[i] = sum; }");
  rows("a row that is written", false,
       ROWS "float sum = 0.f; for (int k = row[i]; k < row[i + 1]; k++) "
            "{ sum += value[k]; y[k] = sum; } }");
  rows("a sum of functions", false,
       ROWS "float sum = 0.f; for (int k = row[i]; k < row[i + 1]; k++) "
            "sum += expf(value[k]); y[i] = sum; }");
  rows("a kernel with another loop", false,
       ROWS "float sum = 0.f; for (int k = row[i]; k < row[i + 1]; k++) "
            "sum += value[k]; while (sum > 1.f) sum /= 2.f; y[i] = sum; }");
  rows("a kernel without loops", false, ROWS "y[i] = value[row[i]]; }");
}


int main(void) {
  gathered();
  not_gathered();
  row_sums();
  return tap_done();
}
