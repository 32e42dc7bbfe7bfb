// The loops that bench/algo.lua holds the host device against, on OpenMP's
// threads; the sort is the standard library's parallel one.
#include <algorithm>
#include <omp.h>
#include <parallel/algorithm>
#include <vector>

extern "C" {

void floor_map(const float *__restrict x, const float *__restrict y,
               float *__restrict out, long n) {
#pragma omp parallel for
  for (long i = 0; i < n; i++) out[i] = 2 * x[i] + y[i];
}

float floor_sum(const float *x, long n) {
  float sum = 0;
#pragma omp parallel for simd reduction(+ : sum)
  for (long i = 0; i < n; i++) sum += x[i];
  return sum;
}

float floor_min(const float *x, long n) {
  float least = x[0];
#pragma omp parallel for simd reduction(min : least)
  for (long i = 0; i < n; i++) least = x[i] < least ? x[i] : least;
  return least;
}

void floor_scan(const float *x, float *out, long n) {
  std::vector<float> sums(omp_get_max_threads() + 1);
#pragma omp parallel
  {
    const long count = omp_get_num_threads(), me = omp_get_thread_num();
    const long first = n * me / count, end = n * (me + 1) / count;
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long i = first; i < end; i++) sum += x[i];
    sums[me + 1] = sum;
#pragma omp barrier
    sum = 0;
    for (long k = 0; k <= me; k++) sum += sums[k];
    for (long i = first; i < end; i++) out[i] = sum += x[i];
  }
}

void floor_sort(const float *x, float *out, long n) {
  std::copy(x, x + n, out);
  __gnu_parallel::sort(out, out + n);
}

} // extern "C"
