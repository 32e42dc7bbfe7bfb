// Counts of numbers by bins.  In front stand X, the type of an element, and SHARED,
// the bins whose counts a block keeps by itself.  A block that is alone with them
// writes the counts; others add to zeros.
// Bins are NumPy's: their edges are low + i * step, each but the last without
// its upper edge.  `scale` is bins over high - low.

// The bin of a number, or -1.  The guess may be off by one, by rounding.
INSIDE int bin_of(double x, int bins, double low, double high, double step, double scale) {
  if (!(x >= low && x <= high)) return -1;
  int i = (int)__dmul_rn(__dadd_rn(x, -low), scale);
  if (i >= bins) i = bins - 1;
  if (i > 0 && x < __dadd_rn(__dmul_rn(i, step), low)) return i - 1;
  if (i + 1 < bins && x >= __dadd_rn(__dmul_rn(i + 1, step), low)) return i + 1;
  return i;
}

#ifdef __CGRAPHLUA_HOST__
// A thread counts a part by itself.
extern "C" __global__ void histogram(const X *x, u64 *counts, i64 n, int bins,
                                     double low, double high, double step,
                                     double scale) {
  __shared__ unsigned own[SHARED];
  const i64 part = (n + gridDim.x - 1) / gridDim.x;
  const i64 first = part * blockIdx.x;
  const i64 end = first + part < n ? first + part : n;
  if (bins <= SHARED)
    for (int i = 0; i < bins; i++) own[i] = 0;
  for (i64 k = first; k < end; k++) {
    const int i = bin_of((double)get(x[k]), bins, low, high, step, scale);
    if (i >= 0 && bins <= SHARED) own[i]++;
    if (i >= 0 && bins > SHARED) atomicAdd(&counts[i], 1ull);
  }
  if (bins <= SHARED)
    for (int i = 0; i < bins; i++)
      if (gridDim.x == 1) counts[i] = own[i];
      else if (own[i]) atomicAdd(&counts[i], (u64)own[i]);
}
#else
extern "C" __global__ void histogram(const X *x, u64 *counts, i64 n, int bins,
                                     double low, double high, double step,
                                     double scale) {
  __shared__ unsigned own[SHARED];
  const bool shared = bins <= SHARED;
  for (int i = threadIdx.x; shared && i < bins; i += blockDim.x) own[i] = 0;
  __syncthreads();
  for (i64 k = (i64)blockIdx.x * blockDim.x + threadIdx.x; k < n;
       k += (i64)gridDim.x * blockDim.x) {
    const int i = bin_of((double)get(x[k]), bins, low, high, step, scale);
    if (i >= 0 && shared) atomicAdd(&own[i], 1u);
    if (i >= 0 && !shared) atomicAdd(&counts[i], 1ull);
  }
  __syncthreads();
  for (int i = threadIdx.x; shared && i < bins; i += blockDim.x)
    if (gridDim.x == 1) counts[i] = own[i];
    else if (own[i]) atomicAdd(&counts[i], (u64)own[i]);
}
#endif
