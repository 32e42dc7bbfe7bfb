// Kernels with barriers, as textbooks write them.  loops_spec.lua runs each in
// both forms, bench/barriers.lua times them.

// C = A * B for square matrices, by tiles of 16 x 16 that may stick out.
extern "C" __global__ void matmul16(const float *A, const float *B, float *C,
                                    int n) {
  __shared__ float a[16][16], b[16][16];
  int x = threadIdx.x, y = threadIdx.y;
  int column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0.f;
  for (int k = 0; k < n; k += 16) {
    a[y][x] = row < n && k + x < n ? A[row * n + k + x] : 0.f;
    b[y][x] = k + y < n && column < n ? B[(k + y) * n + column] : 0.f;
    __syncthreads();
    for (int i = 0; i < 16; i++)
      sum += a[y][i] * b[i][x];
    __syncthreads();
  }
  if (row < n && column < n)
    C[row * n + column] = sum;
}

// The same for a size that tiles of 32 x 32 divide.
extern "C" __global__ void matmul32(const float *A, const float *B, float *C,
                                    int n) {
  __shared__ float a[32][32], b[32][32];
  const int x = threadIdx.x, y = threadIdx.y;
  const int column = blockIdx.x * 32 + x, row = blockIdx.y * 32 + y;
  float sum = 0.f;
  for (int t = 0; t < n / 32; t++) {
    a[y][x] = A[row * n + t * 32 + x];
    b[y][x] = B[(t * 32 + y) * n + column];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 32; i++)
      sum += a[y][i] * b[i][x];
    __syncthreads();
  }
  C[row * n + column] = sum;
}

// A sum per block, halving the threads at work.
extern "C" __global__ void tree(const float *in, float *out, int n) {
  extern __shared__ float part[];
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  part[t] = i < n ? in[i] : 0.f;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (t < half)
      part[t] += part[t + half];
    __syncthreads();
  }
  if (t == 0)
    out[blockIdx.x] = part[0];
}

__device__ inline float warp_sum(float v) {
  for (int step = 16; step > 0; step >>= 1)
    v += __shfl_down_sync(0xffffffffu, v, step);
  return v;
}

// For whole warps; the first thread has the sum.
__device__ inline float block_sum(float v) {
  __shared__ float sums[32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  v = warp_sum(v);
  if (lane == 0)
    sums[warp] = v;
  __syncthreads();
  v = threadIdx.x < blockDim.x / 32 ? sums[lane] : 0.f;
  if (warp == 0)
    v = warp_sum(v);
  return v;
}

extern "C" __global__ void shuffles(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float v = i < n ? in[i] : 0.f;
  v = block_sum(v);
  if (threadIdx.x == 0)
    out[blockIdx.x] = v;
}

extern "C" __global__ void gridwise(const float *in, float *out, int n) {
  float v = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += blockDim.x * gridDim.x)
    v += in[i];
  v = block_sum(v);
  if (threadIdx.x == 0)
    out[blockIdx.x] = v;
}

// Inclusive sums within blocks of 512 threads, by doubling distances.
extern "C" __global__ void doubling(const float *in, float *out, int n) {
  __shared__ float line[2][512];
  int t = threadIdx.x, i = blockIdx.x * 512 + t, from = 0;
  line[0][t] = i < n ? in[i] : 0.f;
  __syncthreads();
  for (int step = 1; step < 512; step *= 2) {
    float v = line[from][t];
    if (t >= step)
      v += line[from][t - step];
    line[1 - from][t] = v;
    from = 1 - from;
    __syncthreads();
  }
  if (i < n)
    out[i] = line[from][t];
}

// Exclusive sums within 512 elements, by 256 threads, up a tree and down.
extern "C" __global__ void updown(const float *in, float *out, int n) {
  __shared__ float line[512];
  int t = threadIdx.x, base = blockIdx.x * 512, step = 1;
  line[2 * t] = in[base + 2 * t];
  line[2 * t + 1] = in[base + 2 * t + 1];
  for (int k = 256; k > 0; k >>= 1) {
    __syncthreads();
    if (t < k)
      line[step * (2 * t + 2) - 1] += line[step * (2 * t + 1) - 1];
    step *= 2;
  }
  if (t == 0)
    line[511] = 0.f;
  for (int k = 1; k < 512; k *= 2) {
    step /= 2;
    __syncthreads();
    if (t < k) {
      int left = step * (2 * t + 1) - 1, right = step * (2 * t + 2) - 1;
      float was = line[left];
      line[left] = line[right];
      line[right] += was;
    }
  }
  __syncthreads();
  out[base + 2 * t] = line[2 * t];
  out[base + 2 * t + 1] = line[2 * t + 1];
}

extern "C" __global__ void histogram(const unsigned char *in, unsigned *bins,
                                     int n) {
  __shared__ unsigned own[256];
  own[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += blockDim.x * gridDim.x)
    atomicAdd(&own[in[i]], 1u);
  __syncthreads();
  atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}

// A tile of 32 x 32 by 32 x 8 threads.
extern "C" __global__ void transpose(const float *in, float *out, int n) {
  __shared__ float tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * n + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    out[(y + j) * n + x] = tile[threadIdx.x][threadIdx.y + j];
}

// The pull of n bodies on each, by tiles of 256.
extern "C" __global__ void bodies(const float4 *p, float4 *a, int n) {
  __shared__ float4 tile[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float4 me = p[i];
  float x = 0.f, y = 0.f, z = 0.f;
  for (int base = 0; base < n; base += 256) {
    tile[threadIdx.x] = p[base + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < 256; j++) {
      float4 q = tile[j];
      float dx = q.x - me.x, dy = q.y - me.y, dz = q.z - me.z;
      float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
      float pull = q.w * r * r * r;
      x += pull * dx;
      y += pull * dy;
      z += pull * dz;
    }
    __syncthreads();
  }
  a[i] = make_float4(x, y, z, 0.f);
}

// A row per block of whole warps.
extern "C" __global__ void softmax(const float *in, float *out, int columns) {
  __shared__ float shared[32];
  const float *row = in + blockIdx.x * columns;
  float *to = out + blockIdx.x * columns;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  float top = -3e38f;
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    top = fmaxf(top, row[c]);
  for (int step = 16; step > 0; step /= 2)
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
  if (lane == 0)
    shared[warp] = top;
  __syncthreads();
  top = lane < blockDim.x / 32 ? shared[lane] : -3e38f;
  for (int step = 16; step > 0; step /= 2)
    top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, step));
  __syncthreads();
  float sum = 0.f;
  for (int c = threadIdx.x; c < columns; c += blockDim.x) {
    float e = expf(row[c] - top);
    to[c] = e;
    sum += e;
  }
  for (int step = 16; step > 0; step /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, step);
  if (lane == 0)
    shared[warp] = sum;
  __syncthreads();
  sum = lane < blockDim.x / 32 ? shared[lane] : 0.f;
  for (int step = 16; step > 0; step /= 2)
    sum += __shfl_xor_sync(0xffffffffu, sum, step);
  float scale = 1.f / sum;
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    to[c] *= scale;
}
