// An expression for every element.  In front of it stand OUT, the type of the
// result, PARAMETERS, the inputs, and VALUE(j), element j of the result.
// Rows of 2^30 elements lie along y.

#define ROW ((i64)blockIdx.y << 30)

// For the vectors of a processor.  A GPU reads all inputs before it writes, and
// would run promised reads behind full edges (compile/nvrtc).
#ifdef __CGRAPHLUA_HOST__
#define APART __restrict__
#else
#define APART
#endif

extern "C" __global__ void map(PARAMETERS OUT *APART out, i64 n) {
#ifdef __CGRAPHLUA_HOST__
  const int j = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (j < (int)(n - ROW < 0x40000000 ? n - ROW : 0x40000000))
    out[ROW + j] = VALUE(ROW + j);
#else
  // All reads of a thread are underway at once; those past the end read the
  // last element.
  const i64 end = n - ROW < 0x40000000 ? n : ROW + 0x40000000;
  const i64 first = ROW + (i64)blockIdx.x * (4 * blockDim.x) + threadIdx.x;
  OUT values[4];
#pragma unroll
  for (int k = 0; k < 4; k++) {
    const i64 j = first + k * (i64)blockDim.x;
    values[k] = VALUE((j < end ? j : end - 1));
  }
#pragma unroll
  for (int k = 0; k < 4; k++)
    if (first + k * (i64)blockDim.x < end)
      out[first + k * (i64)blockDim.x] = values[k];
#endif
}
