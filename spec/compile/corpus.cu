// Kernels with barriers as books, samples and libraries have them.
// loops_spec.lua runs each as loops and as fibers.  A line `//@` names a kernel,
// or an instance of a template, its grid, its block and its dynamic shared
// memory in bytes; every kernel takes 4096 floats and integers, and as many to
// write.
#define FULL 0xffffffffu
#define ARGS const float *x, float *y, const int *k, int *m, int n
#define SYNC() __syncthreads()
constexpr int TILE = 16;

// ---- sums ----

template <class T> __device__ T warp_sum(T v) {
#pragma unroll
  for (int d = warpSize / 2; d > 0; d /= 2)
    v += __shfl_down_sync(FULL, v, d);
  return v;
}

template <class T> __device__ __forceinline__ T block_sum(T v) {
  static __shared__ T part[32];
  const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  v = warp_sum(v);
  __syncthreads();
  if (lane == 0)
    part[warp] = v;
  __syncthreads();
  v = threadIdx.x < (blockDim.x + 31) / 32 ? part[lane] : T(0);
  if (warp == 0)
    v = warp_sum(v);
  return v;
}

//@ sum_by_template 5 1 96 1 0
extern "C" __global__ void sum_by_template(ARGS) {
  float a = 0.f;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    a += x[i];
  const float total = block_sum(a);
  int c = k[blockIdx.x * blockDim.x + threadIdx.x];
  const int count = block_sum<int>(c);
  if (threadIdx.x == 0) {
    y[blockIdx.x] = total;
    m[blockIdx.x] = count;
  }
}

template <unsigned BLOCK>
__device__ void last_warp(volatile float *part, unsigned t) {
  if (BLOCK >= 64) { part[t] += part[t + 32]; } __syncwarp();
  if (BLOCK >= 32) { part[t] += part[t + 16]; } __syncwarp();
  if (BLOCK >= 16) { part[t] += part[t + 8]; } __syncwarp();
  if (BLOCK >= 8) { part[t] += part[t + 4]; } __syncwarp();
  if (BLOCK >= 4) { part[t] += part[t + 2]; } __syncwarp();
  if (BLOCK >= 2) { part[t] += part[t + 1]; } __syncwarp();
}

//@ harris<float,128> 4 1 128 1 512
template <class T, unsigned BLOCK> __global__ void harris(ARGS) {
  extern __shared__ T all[];
  unsigned t = threadIdx.x, i = blockIdx.x * (BLOCK * 2) + t;
  all[t] = x[i] + x[i + BLOCK];
  __syncthreads();
  if constexpr (BLOCK >= 256) {
    if (t < 128)
      all[t] += all[t + 128];
    __syncthreads();
  }
  if (BLOCK >= 128) {
    if (t < 64)
      all[t] += all[t + 64];
    __syncthreads();
  }
  for (unsigned half = 32; half; half >>= 1) {
    if (t < half)
      all[t] += all[t + half];
    __syncthreads();
  }
  if (t == 0)
    y[blockIdx.x] = all[0];
}

//@ minmax 3 1 64 1 0
extern "C" __global__ void minmax(ARGS) {
  __shared__ float low[64], high[64];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  float a = x[i], b = x[i];
  for (int j = i; j < n; j += blockDim.x * gridDim.x) {
    a = fminf(a, x[j]);
    b = fmaxf(b, x[j]);
  }
  low[t] = a, high[t] = b;
  for (int s = blockDim.x / 2; s > 0; s >>= 1) {
    SYNC();
    if (t < s) {
      low[t] = fminf(low[t], low[t + s]);
      high[t] = fmaxf(high[t], high[t + s]);
    }
  }
  if (!t) {
    y[2 * blockIdx.x] = low[0];
    y[2 * blockIdx.x + 1] = high[0];
  }
}

struct Best {
  float value;
  int at;
};

__device__ Best better(Best a, Best b) {
  return b.value > a.value || (b.value == a.value && b.at < a.at) ? b : a;
}

//@ argmax 3 1 128 1 0
extern "C" __global__ void argmax(ARGS) {
  __shared__ Best best[128];
  Best mine = {-3e38f, n};
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += blockDim.x * gridDim.x)
    mine = better(mine, Best{x[i], i});
  best[threadIdx.x] = mine;
  __syncthreads();
  for (int s = 64; s; s /= 2) {
    if (threadIdx.x < s)
      best[threadIdx.x] = better(best[threadIdx.x], best[threadIdx.x + s]);
    __syncthreads();
  }
  if (threadIdx.x == 0)
    m[blockIdx.x] = best[0].at;
}

//@ dot_last_block 4 1 64 1 0
__device__ unsigned finished;
extern "C" __global__ void dot_last_block(ARGS) {
  __shared__ float part[64];
  __shared__ bool last;
  const int t = threadIdx.x;
  float sum = 0.f;
  for (int i = blockIdx.x * 64 + t; i < n; i += 64 * gridDim.x)
    sum += x[i] * x[n - 1 - i];
  part[t] = sum;
  __syncthreads();
  for (int s = 32; s > 0; s >>= 1) {
    if (t < s)
      part[t] += part[t + s];
    __syncthreads();
  }
  if (t == 0) {
    y[blockIdx.x] = part[0];
    __threadfence();
    last = atomicAdd(&finished, 1u) % gridDim.x == gridDim.x - 1;
  }
  __syncthreads();
  if (last && t == 0)
    m[0] = 1;
}

// ---- scans ----

//@ scan_doubling 4 1 128 1 1024
extern "C" __global__ void scan_doubling(ARGS) {
  extern __shared__ int temp[];
  int t = threadIdx.x, in = 1, out = 0, size = blockDim.x;
  temp[out * size + t] = t > 0 ? k[blockIdx.x * size + t - 1] : 0;
  __syncthreads();
  for (int d = 1; d < size; d *= 2) {
    out = 1 - out;
    in = 1 - out;
    if (t >= d)
      temp[out * size + t] = temp[in * size + t] + temp[in * size + t - d];
    else
      temp[out * size + t] = temp[in * size + t];
    __syncthreads();
  }
  m[blockIdx.x * size + t] = temp[out * size + t];
}

__device__ int warp_scan(int v, int lane) {
  for (int d = 1; d < 32; d <<= 1) {
    int w = __shfl_up_sync(FULL, v, d);
    if (lane >= d)
      v += w;
  }
  return v;
}

__device__ int block_scan(int v, int *total) {
  __shared__ int sums[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int inclusive = warp_scan(v, lane);
  if (lane == 31)
    sums[warp] = inclusive;
  __syncthreads();
  if (warp == 0) {
    int s = lane < blockDim.x / 32 ? sums[lane] : 0;
    s = warp_scan(s, lane);
    sums[lane] = s;
  }
  __syncthreads();
  int before = warp > 0 ? sums[warp - 1] : 0;
  *total = sums[blockDim.x / 32 - 1];
  __syncthreads();
  return before + inclusive - v;
}

//@ scan_by_warps 4 1 256 1 0
extern "C" __global__ void scan_by_warps(ARGS) {
  int total, i = blockIdx.x * blockDim.x + threadIdx.x;
  int at = block_scan(k[i], &total);
  m[i] = at + total;
}

//@ compact 4 1 128 1 0
extern "C" __global__ void compact(ARGS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, count;
  bool keep = k[i] % 3 == 0;
  int at = block_scan(keep, &count);
  if (keep)
    m[blockIdx.x * blockDim.x + at] = k[i];
  if (threadIdx.x == 0)
    y[blockIdx.x] = (float)count;
}

//@ segmented 4 1 128 1 0
extern "C" __global__ void segmented(ARGS) {
  __shared__ int value[128], flag[128];
  const int t = threadIdx.x, i = blockIdx.x * 128 + t;
  value[t] = k[i];
  flag[t] = t == 0 || k[i] % 7 == 0;
  __syncthreads();
  for (int d = 1; d < 128; d *= 2) {
    int v = value[t], f = flag[t];
    if (t >= d) {
      if (!f)
        v += value[t - d];
      f |= flag[t - d];
    }
    __syncthreads();
    value[t] = v;
    flag[t] = f;
    __syncthreads();
  }
  m[i] = value[t];
}

//@ scan_in_tiles 2 1 64 1 0
extern "C" __global__ void scan_in_tiles(ARGS) {
  __shared__ int tile[64];
  __shared__ int carry;
  if (threadIdx.x == 0)
    carry = 0;
  __syncthreads();
  for (int base = 0; base < n / 2; base += blockDim.x) {
    int i = blockIdx.x * (n / 2) + base + threadIdx.x;
    int v = tile[threadIdx.x] = k[i];
    __syncthreads();
    for (int d = 1; d < 64; d += d) {
      int add = threadIdx.x >= d ? tile[threadIdx.x - d] : 0;
      __syncthreads();
      tile[threadIdx.x] += add;
      __syncthreads();
    }
    m[i] = carry + tile[threadIdx.x] - v;
    __syncthreads();
    if (threadIdx.x == blockDim.x - 1)
      carry += tile[threadIdx.x];
    __syncthreads();
  }
}

// ---- sorting ----

//@ bitonic 4 1 128 1 512
extern "C" __global__ void bitonic(ARGS) {
  extern __shared__ int keys[];
  const unsigned t = threadIdx.x;
  keys[t] = k[blockIdx.x * blockDim.x + t];
  __syncthreads();
  for (unsigned size = 2; size <= blockDim.x; size *= 2)
    for (unsigned step = size / 2; step > 0; step /= 2) {
      unsigned other = t ^ step;
      if (other > t) {
        bool up = (t & size) == 0;
        if ((keys[t] > keys[other]) == up) {
          int keep = keys[t];
          keys[t] = keys[other];
          keys[other] = keep;
        }
      }
      __syncthreads();
    }
  m[blockIdx.x * blockDim.x + t] = keys[t];
}

template <class T> __device__ void swap_if(T &a, T &b, bool wrong) {
  T keep = a;
  a = wrong ? b : a;
  b = wrong ? keep : b;
}

//@ odd_even<int> 2 1 64 1 0
template <class T> __global__ void odd_even(ARGS) {
  __shared__ T keys[128];
  const int t = threadIdx.x;
  keys[t] = k[blockIdx.x * 128 + t];
  keys[t + 64] = k[blockIdx.x * 128 + t + 64];
  bool again;
  do {
    __syncthreads();
    bool wrong = keys[2 * t] > keys[2 * t + 1];
    swap_if(keys[2 * t], keys[2 * t + 1], wrong);
    __syncthreads();
    bool also = t < 63 && keys[2 * t + 1] > keys[2 * t + 2];
    if (also)
      swap_if(keys[2 * t + 1], keys[2 * t + 2], true);
    again = __syncthreads_or(wrong || also);
  } while (again);
  m[blockIdx.x * 128 + t] = keys[t];
  m[blockIdx.x * 128 + t + 64] = keys[t + 64];
}

//@ radix_pass 4 1 128 1 0
extern "C" __global__ void radix_pass(ARGS) {
  __shared__ int keys[128];
  int t = threadIdx.x, total;
  keys[t] = k[blockIdx.x * 128 + t];
  for (int bit = 0; bit < 12; bit++) {
    __syncthreads();
    int key = keys[t], one = key >> bit & 1;
    int zeros_before = block_scan(1 - one, &total);
    int at = one ? total + t - zeros_before : zeros_before;
    __syncthreads();
    keys[at] = key;
  }
  __syncthreads();
  m[blockIdx.x * 128 + t] = keys[t];
}

//@ digits_by_match 4 1 64 1 0
extern "C" __global__ void digits_by_match(ARGS) {
  __shared__ int bins[2][8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (lane < 8)
    bins[warp][lane] = 0;
  __syncwarp();
  int i = blockIdx.x * blockDim.x + threadIdx.x, digit = k[i] & 7;
  unsigned same = __match_any_sync(FULL, digit);
  int before = __popc(same & ((1u << lane) - 1));
  if (before == 0)
    bins[warp][digit] += __popc(same);
  __syncthreads();
  m[i] = before + 100 * bins[warp][digit];
}

// ---- histograms, queues, atomics ----

//@ histogram_per_warp 3 1 128 1 0
extern "C" __global__ void histogram_per_warp(ARGS) {
  __shared__ unsigned bins[4][32];
  unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  bins[warp][lane] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += blockDim.x * gridDim.x)
    atomicAdd(&bins[warp][k[i] & 31], 1u);
  __syncthreads();
  if (threadIdx.x < 32) {
    unsigned sum = 0;
    for (int w = 0; w < 4; w++)
      sum += bins[w][threadIdx.x];
    atomicAdd((unsigned *)&m[threadIdx.x], sum);
  }
}

__device__ int aggregated_add(int *counter) {
  unsigned active = __activemask();
  int lane = threadIdx.x % 32;
  int leader = __ffs(active) - 1, first = 0;
  if (lane == leader)
    first = atomicAdd(counter, __popc(active));
  first = __shfl_sync(active, first, leader);
  return first + __popc(active & ((1u << lane) - 1));
}

//@ warp_aggregated 1 1 64 1 0
extern "C" __global__ void warp_aggregated(ARGS) {
  for (int i = threadIdx.x; i < 512; i += blockDim.x)
    if (k[i] & 1) {
      int at = aggregated_add(&m[0]);
      m[8 + at] = 1;
      atomicAdd(&m[1], k[i]);
    }
}

//@ queue 4 1 96 1 0
extern "C" __global__ void queue(ARGS) {
  __shared__ int items[96];
  __shared__ int count;
  if (threadIdx.x == 0)
    count = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned vote = __ballot_sync(FULL, k[i] > 50);
  int lane = threadIdx.x & 31, base = 0;
  if (lane == 0 && vote)
    base = atomicAdd(&count, __popc(vote));
  base = __shfl_sync(FULL, base, 0);
  if (k[i] > 50)
    items[base + __popc(vote & ((1u << lane) - 1u))] = i;
  __syncthreads();
  int sum = 0;
  for (int j = threadIdx.x; j < count; j += blockDim.x)
    sum += items[j] * items[j];
  atomicAdd(&m[blockIdx.x], sum);
}

//@ frontier 1 1 64 1 0
extern "C" __global__ void frontier(ARGS) {
  __shared__ int distance[256];
  __shared__ bool changed;
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    distance[i] = i ? 9999 : 0;
  __syncthreads();
  do {
    __syncthreads();
    if (threadIdx.x == 0)
      changed = false;
    __syncthreads();
    for (int i = threadIdx.x; i < 256; i += blockDim.x) {
      int to = (i * 5 + k[i]) & 255, d = distance[i] + 1;
      if (d < atomicMin(&distance[to], d))
        changed = true;
    }
    __syncthreads();
  } while (changed);
  for (int i = threadIdx.x; i < 256; i += blockDim.x)
    m[i] = distance[i];
}

// ---- matrices ----

template <int SIZE> __device__ float tile_product(const float (*a)[SIZE],
                                                  const float (*b)[SIZE],
                                                  int row, int column) {
  float sum = 0.f;
  for (int i = 0; i < SIZE; i++)
    sum += a[row][i] * b[i][column];
  return sum;
}

//@ matmul<16> 4 4 16 16 0
template <int SIZE> __global__ void matmul(ARGS) {
  __shared__ float a[SIZE][SIZE], b[SIZE][SIZE];
  const int tx = threadIdx.x, ty = threadIdx.y, width = 64;
  const int row = blockIdx.y * SIZE + ty, column = blockIdx.x * SIZE + tx;
  float sum = 0.f;
  for (int t = 0; t < width / SIZE; ++t) {
    a[ty][tx] = x[row * width + t * SIZE + tx];
    b[ty][tx] = x[(t * SIZE + ty) * width + column];
    __syncthreads();
    sum += tile_product<SIZE>(a, b, ty, tx);
    __syncthreads();
  }
  y[row * width + column] = sum;
}

//@ transpose_any<float,8> 2 2 32 8 0
template <class T, int ROWS> __global__ void transpose_any(ARGS) {
  __shared__ T tile[32][33];
  const int width = 64;
  int c = blockIdx.x * 32 + threadIdx.x, r = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
  for (int j = 0; j < 32; j += ROWS)
    tile[threadIdx.y + j][threadIdx.x] = x[(r + j) * width + c];
  __syncthreads();
  c = blockIdx.y * 32 + threadIdx.x;
  r = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += ROWS)
    y[(r + j) * width + c] = tile[threadIdx.x][threadIdx.y + j];
}

//@ cholesky 3 1 16 1 0
extern "C" __global__ void cholesky(ARGS) {
  __shared__ float a[16][17];
  const int t = threadIdx.x;
  for (int j = 0; j < 16; j++)
    a[j][t] = x[blockIdx.x * 256 + j * 16 + t] * 0.01f + (j == t ? 20.f : 0.f);
  __syncthreads();
  for (int j = 0; j < 16; j++) {
    if (t == j)
      a[j][j] = sqrtf(a[j][j]);
    __syncthreads();
    if (t > j)
      a[t][j] /= a[j][j];
    __syncthreads();
    for (int i = j + 1; i <= t; i++)
      a[t][i] -= a[t][j] * a[i][j];
    __syncthreads();
  }
  for (int j = 0; j < 16; j++)
    y[blockIdx.x * 256 + j * 16 + t] = t <= j ? a[j][t] : 0.f;
}

//@ lu_pivot 3 1 16 1 0
extern "C" __global__ void lu_pivot(ARGS) {
  __shared__ float a[16][17];
  __shared__ int pivot;
  int t = threadIdx.x;
  for (int j = 0; j < 16; j++)
    a[j][t] = x[blockIdx.x * 256 + j * 16 + t] + (float)((j * 7 + t) % 5);
  for (int j = 0; j < 16; j++) {
    __syncthreads();
    if (t == 0) {
      int best = j;
      for (int i = j + 1; i < 16; i++)
        if (fabsf(a[i][j]) > fabsf(a[best][j]))
          best = i;
      pivot = best;
    }
    __syncthreads();
    int p = pivot;
    if (p != j) {
      float keep = a[j][t];
      a[j][t] = a[p][t];
      a[p][t] = keep;
    }
    __syncthreads();
    if (t > j) {
      float f = a[t][j] / (a[j][j] + 1e-6f);
      for (int i = j; i < 16; i++)
        a[t][i] -= f * a[j][i];
    }
  }
  __syncthreads();
  for (int j = 0; j < 16; j++)
    y[blockIdx.x * 256 + j * 16 + t] = a[j][t];
}

//@ jacobi_until 2 1 64 1 0
extern "C" __global__ void jacobi_until(ARGS) {
  __shared__ float now[66], next[66];
  const int t = threadIdx.x + 1;
  now[t] = x[blockIdx.x * 64 + t];
  if (t == 1)
    now[0] = next[0] = 0.f, now[65] = next[65] = 1.f;
  int rounds = 0;
  while (true) {
    __syncthreads();
    next[t] = 0.5f * (now[t - 1] + now[t + 1]);
    bool still = fabsf(next[t] - now[t]) > 1e-2f;
    if (__syncthreads_count(still) == 0)
      break;
    if (++rounds == 200)
      break;
    now[t] = next[t];
  }
  y[blockIdx.x * 64 + t - 1] = next[t];
  m[blockIdx.x] = rounds;
}

// ---- rows ----

//@ spmv_row_per_warp 4 1 64 1 0
extern "C" __global__ void spmv_row_per_warp(ARGS) {
  const int lane = threadIdx.x & 31;
  const int warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
  const int warps = gridDim.x * blockDim.x >> 5;
  for (int row = warp; row < 40; row += warps) {
    int begin = row * 90, end = begin + 10 + k[row] % 80;
    float sum = 0.f;
    for (int j = begin + lane; j < end; j += 32)
      sum += x[j] * x[k[j] & 1023];
    sum = warp_sum(sum);
    if (lane == 0)
      y[row] = sum;
  }
}

//@ layernorm<64> 8 1 64 1 0
template <int WIDTH> __global__ void layernorm(ARGS) {
  __shared__ float mean, scale;
  const float *row = x + blockIdx.x * WIDTH;
  float v = row[threadIdx.x];
  float sum = block_sum(v);
  if (threadIdx.x == 0)
    mean = sum / WIDTH;
  __syncthreads();
  float off = v - mean;
  float square = off * off;
  sum = block_sum(square);
  if (threadIdx.x == 0)
    scale = rsqrtf(sum / WIDTH + 1e-5f);
  __syncthreads();
  y[blockIdx.x * WIDTH + threadIdx.x] = off * scale;
}

//@ softmax_warp 4 1 32 4 0
extern "C" __global__ void softmax_warp(ARGS) {
  int row = blockIdx.x * blockDim.y + threadIdx.y, lane = threadIdx.x;
  const float *in = x + row * 64;
  float a = in[lane], b = in[lane + 32], top = fmaxf(a, b);
  for (int d = 16; d; d >>= 1)
    top = fmaxf(top, __shfl_xor_sync(FULL, top, d, 32));
  a = expf(a - top);
  b = expf(b - top);
  float sum = a + b;
  for (int d = 16; d; d >>= 1)
    sum += __shfl_xor_sync(FULL, sum, d, 32);
  y[row * 64 + lane] = a / sum;
  y[row * 64 + lane + 32] = b / sum;
}

//@ attention 4 1 64 1 0
extern "C" __global__ void attention(ARGS) {
  __shared__ float score[64], q[32];
  const int t = threadIdx.x;
  if (t < 32)
    q[t] = x[blockIdx.x * 32 + t];
  __syncthreads();
  float dot = 0.f;
  for (int d = 0; d < 32; d++)
    dot += q[d] * x[512 + t * 32 + d];
  score[t] = dot * 0.1f;
  __syncthreads();
  float top = score[0];
  for (int j = 1; j < 64; j++)
    top = fmaxf(top, score[j]);
  float e = expf(score[t] - top);
  __syncthreads();
  score[t] = e;
  float sum = block_sum(e);
  __shared__ float total;
  if (t == 0)
    total = sum;
  __syncthreads();
  if (t < 32) {
    float out = 0.f;
    for (int j = 0; j < 64; j++)
      out += score[j] * x[512 + j * 32 + t];
    y[blockIdx.x * 32 + t] = out / total;
  }
}

//@ kmeans 4 1 64 1 256
extern "C" __global__ void kmeans(ARGS) {
  extern __shared__ float centers[];
  __shared__ int count[8];
  if (threadIdx.x < 16)
    centers[threadIdx.x] = x[threadIdx.x * 3];
  if (threadIdx.x < 8)
    count[threadIdx.x] = 0;
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x, best = 0;
  auto distance = [&](int c) {
    float dx = x[2 * i] - centers[2 * c], dy = x[2 * i + 1] - centers[2 * c + 1];
    return dx * dx + dy * dy;
  };
  float nearest = distance(0);
  for (int c = 1; c < 8; c++) {
    float d = distance(c);
    if (d < nearest) {
      nearest = d;
      best = c;
    }
  }
  atomicAdd(&count[best], 1);
  __syncthreads();
  y[i] = nearest + distance(0);
  if (threadIdx.x < 8)
    atomicAdd(&m[threadIdx.x], count[threadIdx.x]);
}

// ---- grids ----

//@ stencil_halo 8 1 64 1 0
extern "C" __global__ void stencil_halo(ARGS) {
  const int R = 3;
  __shared__ float line[64 + 2 * 3];
  int g = blockIdx.x * blockDim.x + threadIdx.x, l = threadIdx.x + R;
  line[l] = x[g];
  if (threadIdx.x < R) {
    line[l - R] = g >= R ? x[g - R] : 0.f;
    line[l + 64] = g + 64 < n ? x[g + 64] : 0.f;
  }
  __syncthreads();
  float sum = 0.f;
  for (int o = -R; o <= R; o++)
    sum += line[l + o];
  y[g] = sum;
}

//@ blur 4 4 16 16 0
extern "C" __global__ void blur(ARGS) {
  __shared__ float tile[TILE + 2][TILE + 2];
  const int width = 64;
  auto at = [=](int c, int r) {
    c = c < 0 ? 0 : c >= width ? width - 1 : c;
    r = r < 0 ? 0 : r >= width ? width - 1 : r;
    return x[r * width + c];
  };
  int gx = blockIdx.x * TILE + threadIdx.x, gy = blockIdx.y * TILE + threadIdx.y;
  for (int r = threadIdx.y; r < TILE + 2; r += blockDim.y)
    for (int c = threadIdx.x; c < TILE + 2; c += blockDim.x)
      tile[r][c] = at(blockIdx.x * TILE + c - 1, blockIdx.y * TILE + r - 1);
  __syncthreads();
  float sum = 0.f;
  for (int r = 0; r < 3; r++)
    for (int c = 0; c < 3; c++)
      sum += tile[threadIdx.y + r][threadIdx.x + c];
  y[gy * width + gx] = sum / 9.f;
}

//@ life 2 2 32 32 0
extern "C" __global__ void life(ARGS) {
  __shared__ unsigned char cell[34][34];
  const int lx = threadIdx.x + 1, ly = threadIdx.y + 1;
  const int gx = blockIdx.x * 32 + threadIdx.x, gy = blockIdx.y * 32 + threadIdx.y;
  auto alive = k[gy * 64 + gx] & 1;
  cell[ly][lx] = alive;
  if (threadIdx.x == 0) { cell[ly][0] = 0; cell[ly][33] = 0; }
  if (threadIdx.y == 0) { cell[0][lx] = 0; cell[33][lx] = 0; }
  if (threadIdx.x < 2 && threadIdx.y < 2)
    cell[threadIdx.y * 33][threadIdx.x * 33] = 0;
  __syncthreads();
  for (int step = 0; step < 4; step++) {
    int sum = 0;
    for (int dy = -1; dy <= 1; dy++)
      for (int dx = -1; dx <= 1; dx++)
        if (dx || dy)
          sum += cell[ly + dy][lx + dx];
    __syncthreads();
    cell[ly][lx] = sum == 3 || (sum == 2 && cell[ly][lx]);
    __syncthreads();
  }
  m[gy * 64 + gx] = cell[ly][lx] + 2 * alive;
}

//@ volume 4 1 8 8 0
extern "C" __global__ void volume(ARGS) {
  __shared__ float slab[3][8][8];
  typedef float plane[8][8];
  plane *s = slab;
  int tx = threadIdx.x, ty = threadIdx.y;
  const float *in = x + blockIdx.x * 512;
  s[0][ty][tx] = in[ty * 8 + tx];
  s[1][ty][tx] = in[64 + ty * 8 + tx];
  __syncthreads();
  for (int z = 1; z < 7; z++) {
    s[(z + 1) % 3][ty][tx] = in[(z + 1) * 64 + ty * 8 + tx];
    __syncthreads();
    float v = s[(z - 1) % 3][ty][tx] + s[(z + 1) % 3][ty][tx];
    if (tx > 0 && tx < 7 && ty > 0 && ty < 7)
      v += s[z % 3][ty][tx - 1] + s[z % 3][ty][tx + 1] + s[z % 3][ty - 1][tx] +
           s[z % 3][ty + 1][tx];
    y[blockIdx.x * 512 + z * 64 + ty * 8 + tx] = v;
    __syncthreads();
  }
}

// ---- transforms ----

struct Complex {
  float re, im;
};
__device__ Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ Complex operator+(Complex a, Complex b) {
  return {a.re + b.re, a.im + b.im};
}

//@ fft 4 1 64 1 0
extern "C" __global__ void fft(ARGS) {
  __shared__ Complex line[128];
  const int t = threadIdx.x;
  for (int i = t; i < 128; i += 64)
    line[__brev(i) >> 25] = Complex{x[blockIdx.x * 128 + i], 0.f};
  __syncthreads();
  for (int half = 1; half < 128; half *= 2) {
    int pair = t / half * 2 * half + t % half;
    float angle = -3.14159265f * (t % half) / half;
    Complex w = {cosf(angle), sinf(angle)};
    Complex b = line[pair + half] * w, a = line[pair];
    __syncthreads();
    line[pair] = a + b;
    line[pair + half] = Complex{a.re - b.re, a.im - b.im};
    __syncthreads();
  }
  y[blockIdx.x * 256 + 2 * t] = line[t].re;
  y[blockIdx.x * 256 + 2 * t + 1] = line[t].im;
}

//@ walsh 4 1 128 1 512
extern "C" __global__ void walsh(ARGS) {
  extern __shared__ float s[];
  float *data = s;
  data[threadIdx.x] = x[blockIdx.x * 128 + threadIdx.x];
  for (int h = 1; h < 32; h <<= 1) {
    float v = data[threadIdx.x], w = __shfl_xor_sync(FULL, v, h);
    data[threadIdx.x] = threadIdx.x & h ? w - v : v + w;
  }
  __syncthreads();
  for (int h = 32; h < blockDim.x; h <<= 1) {
    float w = data[threadIdx.x ^ h], v = data[threadIdx.x];
    __syncthreads();
    data[threadIdx.x] = (threadIdx.x & h) ? w - v : v + w;
    __syncthreads();
  }
  y[blockIdx.x * 128 + threadIdx.x] = data[threadIdx.x];
}

// ---- parts of warps ----

//@ sums_of_eight 4 1 64 1 0
extern "C" __global__ void sums_of_eight(ARGS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  unsigned mask = 0xffu << (lane / 8 * 8);
  int v = k[i];
  for (int d = 4; d > 0; d /= 2)
    v += __shfl_down_sync(mask, v, d, 8);
  v = __shfl_sync(mask, v, 0, 8);
  m[i] = v + (__any_sync(mask, k[i] > 90) ? 1000 : 0);
}

//@ half_warp 4 1 64 1 0
extern "C" __global__ void half_warp(ARGS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = k[i];
  if (threadIdx.x % 32 < 16) {
    for (int d = 8; d; d >>= 1)
      v += __shfl_xor_sync(0x0000ffffu, v, d);
    v += __reduce_max_sync(0xffffu, v);
  } else {
    v = __shfl_sync(0xffff0000u, v, 31);
    __syncwarp(0xffff0000u);
  }
  m[i] = v;
}

//@ tail_mask 4 1 64 1 0
extern "C" __global__ void tail_mask(ARGS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned mask = __ballot_sync(FULL, i < 200);
  if (i < 200) {
    int v = k[i];
    for (int d = 16; d > 0; d >>= 1)
      v += __shfl_xor_sync(mask, v, d) & 255;
    m[i] = v + __popc(__activemask());
  }
}

//@ loop_until_all 4 1 64 1 0
extern "C" __global__ void loop_until_all(ARGS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, v = k[i], steps = 0;
  while (__any_sync(FULL, v != 1 && steps < 40)) {
    v = v & 1 ? (v + 1) / 2 : v / 2 > 0 ? v / 2 : 1;
    steps++;
  }
  m[i] = steps;
}

//@ neighbours 4 1 48 2 0
extern "C" __global__ void neighbours(ARGS) {
  int t = threadIdx.y * blockDim.x + threadIdx.x;
  int i = blockIdx.x * 96 + t, &to = m[i];
  float v = x[i], before = __shfl_up_sync(FULL, v, 1);
  to = k[i];
  __syncthreads();
  float after = __shfl_sync(FULL, v, (t + k[i]) & 31);
  to += 3;
  y[i] = before + 2.f * after;
}

//@ double_buffer 4 1 64 1 1024
extern "C" __global__ void double_buffer(ARGS) {
  extern __shared__ double raw[];
  double *front = raw;
  float *back = (float *)&raw[64];
  front[threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x];
  back[threadIdx.x] = 0.f;
  __syncthreads();
  for (int i = 0; i < 3; i++) {
    back[threadIdx.x] += (float)front[(threadIdx.x + i) % 64];
    __syncthreads();
    front[threadIdx.x] += back[63 - threadIdx.x];
    __syncthreads();
  }
  y[blockIdx.x * 64 + threadIdx.x] = back[threadIdx.x];
}

//@ early 5 1 64 1 0
extern "C" __global__ void early(ARGS) {
  __shared__ int tile[64];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= 300)
    return;
  tile[threadIdx.x] = k[i];
  __syncthreads();
  if (blockIdx.x == 1)
    return;
  int sum = 0;
  for (int j = 0; j < 64 && blockIdx.x * 64 + j < 300; j++)
    sum += tile[j];
  __syncthreads();
  m[i] = sum;
}

//@ interpreter 2 1 32 1 0
extern "C" __global__ void interpreter(ARGS) {
  __shared__ int stack[8];
  int acc = threadIdx.x;
  if (threadIdx.x < 8)
    stack[threadIdx.x] = 1;
  __syncthreads();
  for (int pc = 0; pc < 20; pc++) {
    int op = k[pc] & 3;
    if (op == 0) {
      if (threadIdx.x < 8)
        stack[threadIdx.x] = acc;
      __syncthreads();
    } else if (op == 1) {
      acc += stack[pc & 7];
      __syncthreads();
    } else if (op == 2)
      acc = acc * 5 + pc;
    else {
      acc ^= __shfl_xor_sync(FULL, acc, 3);
      continue;
    }
  }
  m[blockIdx.x * 32 + threadIdx.x] = acc;
}

// ---- more of what programs have ----

__constant__ float taps[17] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 8, 7, 6, 5, 4, 3, 2, 1};

//@ rows_convolved 16 1 256 1 0
extern "C" __global__ void rows_convolved(ARGS) {
  __shared__ float line[256 + 16];
  const int from = blockIdx.x * 256 - 8;
  for (int j = threadIdx.x; j < 272; j += blockDim.x)
    line[j] = from + j >= 0 && from + j < n ? x[from + j] : 0.f;
  __syncthreads();
  float sum = 0.f;
#pragma unroll
  for (int j = 0; j < 17; j++)
    sum += taps[j] * line[threadIdx.x + j];
  y[blockIdx.x * 256 + threadIdx.x] = sum;
}

//@ scan_exclusive 16 1 256 1 0
extern "C" __global__ void scan_exclusive(ARGS) {
  __shared__ int carry[8];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int own = k[i];
  int sum = own;
  for (int d = 1; d < 32; d <<= 1) {
    const int left = __shfl_up_sync(FULL, sum, d);
    if (lane >= d)
      sum += left;
  }
  if (lane == 31)
    carry[warp] = sum;
  __syncthreads();
  int before = 0;
  for (int w = 0; w < warp; w++)
    before += carry[w];
  m[i] = before + sum - own;
}

//@ odd_even_merge 8 1 256 1 0
extern "C" __global__ void odd_even_merge(ARGS) {
  __shared__ int key[512];
  const int *in = k + blockIdx.x * 512;
  key[threadIdx.x] = in[threadIdx.x];
  key[threadIdx.x + 256] = in[threadIdx.x + 256];
  for (int size = 2; size <= 512; size <<= 1) {
    int stride = size / 2, place = threadIdx.x & (stride - 1);
    __syncthreads();
    int at = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
    if (key[at] > key[at + stride]) {
      int t = key[at];
      key[at] = key[at + stride];
      key[at + stride] = t;
    }
    for (stride >>= 1; stride > 0; stride >>= 1) {
      __syncthreads();
      at = 2 * threadIdx.x - (threadIdx.x & (stride - 1));
      if (place >= stride && key[at - stride] > key[at]) {
        int t = key[at];
        key[at] = key[at - stride];
        key[at - stride] = t;
      }
    }
  }
  __syncthreads();
  m[blockIdx.x * 512 + threadIdx.x] = key[threadIdx.x];
  m[blockIdx.x * 512 + threadIdx.x + 256] = key[threadIdx.x + 256];
}

//@ queens 1 1 81 1 0
extern "C" __global__ void queens(ARGS) {
  const int size = 9;
  const unsigned all = (1u << size) - 1;
  __shared__ int found;
  if (threadIdx.x == 0)
    found = 0;
  __syncthreads();
  const unsigned a = 1u << threadIdx.x % size, b = 1u << threadIdx.x / size;
  if (!(b & (a | a << 1 | a >> 1))) {
    unsigned columns[size], left[size], right[size], open[size];
    int depth = 0, sum = 0;
    columns[0] = a | b;
    left[0] = (a << 1 | b) << 1;
    right[0] = (a >> 1 | b) >> 1;
    open[0] = all & ~(columns[0] | left[0] | right[0]);
    while (depth >= 0) {
      if (!open[depth]) {
        depth--;
        continue;
      }
      const unsigned bit = open[depth] & -open[depth];
      open[depth] ^= bit;
      const unsigned c = columns[depth] | bit;
      const unsigned l = (left[depth] | bit) << 1, r = (right[depth] | bit) >> 1;
      if (c == all) {
        sum++;
      } else {
        depth++;
        columns[depth] = c;
        left[depth] = l;
        right[depth] = r;
        open[depth] = all & ~(c | l | r);
      }
    }
    atomicAdd(&found, sum);
  }
  __syncthreads();
  if (threadIdx.x == 0)
    m[blockIdx.x] = found;
}

// Row r has 1 + r % 13 values from r * 16 on, 8 lanes a row.
//@ spmv_row_per_8 8 1 256 1 0
extern "C" __global__ void spmv_row_per_8(ARGS) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 8;
  const int lane = threadIdx.x & 7;
  float sum = 0.f;
  for (int j = lane; j < 1 + row % 13; j += 8)
    sum += x[row * 16 + j] * x[k[row * 16 + j]];
  for (int d = 4; d; d >>= 1)
    sum += __shfl_down_sync(FULL, sum, d, 8);
  if (lane == 0)
    y[row] = sum;
}

//@ jacobi_tiles 4 4 16 16 0
extern "C" __global__ void jacobi_tiles(ARGS) {
  __shared__ float old[18][18], now[16][16];
  const int width = 16 * gridDim.x, height = 16 * gridDim.y;
  const int gx = blockIdx.x * 16 + threadIdx.x, gy = blockIdx.y * 16 + threadIdx.y;
  const int tx = threadIdx.x + 1, ty = threadIdx.y + 1;
  old[ty][tx] = x[gy * width + gx];
  if (tx == 1)
    old[ty][0] = gx ? x[gy * width + gx - 1] : 0.f;
  if (tx == 16)
    old[ty][17] = gx + 1 < width ? x[gy * width + gx + 1] : 0.f;
  if (ty == 1)
    old[0][tx] = gy ? x[(gy - 1) * width + gx] : 0.f;
  if (ty == 16)
    old[17][tx] = gy + 1 < height ? x[(gy + 1) * width + gx] : 0.f;
  for (int sweep = 0; sweep < 4; sweep++) {
    __syncthreads();
    now[ty - 1][tx - 1] =
      0.25f * (old[ty][tx - 1] + old[ty][tx + 1] + old[ty - 1][tx] + old[ty + 1][tx]);
    __syncthreads();
    old[ty][tx] = now[ty - 1][tx - 1];
  }
  y[gy * width + gx] = old[ty][tx];
}

struct moments {
  float count, mean, square;
  __device__ moments operator+(const moments &o) const {
    const float total = count + o.count, d = o.mean - mean;
    return {total, mean + d * o.count / total,
            square + o.square + d * d * count * o.count / total};
  }
};

//@ variance 16 1 256 1 0
extern "C" __global__ void variance(ARGS) {
  __shared__ moments part[8];
  moments own = {1.f, x[blockIdx.x * blockDim.x + threadIdx.x], 0.f};
  for (int d = 16; d; d >>= 1)
    own = own + moments{__shfl_xor_sync(FULL, own.count, d),
                        __shfl_xor_sync(FULL, own.mean, d),
                        __shfl_xor_sync(FULL, own.square, d)};
  if (threadIdx.x % 32 == 0)
    part[threadIdx.x / 32] = own;
  __syncthreads();
  if (threadIdx.x == 0) {
    moments sum = part[0];
    for (int w = 1; w < 8; w++)
      sum = sum + part[w];
    y[2 * blockIdx.x] = sum.mean;
    y[2 * blockIdx.x + 1] = sum.square / sum.count;
  }
}

//@ bins_by_copies 4 1 256 1 0
extern "C" __global__ void bins_by_copies(ARGS) {
  __shared__ unsigned bins[8][97 + 1];
  for (int j = threadIdx.x; j < 8 * 98; j += blockDim.x)
    (&bins[0][0])[j] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += blockDim.x * gridDim.x)
    atomicAdd(&bins[threadIdx.x / 32][k[i]], 1u);
  __syncthreads();
  if (threadIdx.x < 97) {
    unsigned sum = 0;
    for (int c = 0; c < 8; c++)
      sum += bins[c][threadIdx.x];
    atomicAdd(&m[threadIdx.x], (int)sum);
  }
}

// 16 planes of rows of 16 * gridDim.y cells: x and z change places.
//@ permuted 1 16 16 16 0
extern "C" __global__ void permuted(ARGS) {
  __shared__ float tile[16][16 + 1];
  const int rows = gridDim.y, row = blockIdx.y;
  tile[threadIdx.y][threadIdx.x] = x[(threadIdx.y * rows + row) * 16 + threadIdx.x];
  __syncthreads();
  y[(threadIdx.y * rows + row) * 16 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

//@ ranks_of_three 16 1 256 1 2560
extern "C" __global__ void ranks_of_three(ARGS) {
  extern __shared__ unsigned char memory[];
  float *value = (float *)memory;
  int *key = (int *)(value + blockDim.x);
  short *rank = (short *)(key + blockDim.x);
  const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  value[t] = x[i];
  key[t] = k[i];
  __syncthreads();
  int less = 0;
  for (int j = 0; j < blockDim.x; j++)
    less += key[j] < key[t] || (key[j] == key[t] && j < t);
  rank[t] = (short)less;
  __syncthreads();
  y[blockIdx.x * blockDim.x + rank[t]] = value[t];
  m[blockIdx.x * blockDim.x + rank[t]] = key[t];
}

template <class T> __device__ T exchanged(T v) {
#pragma unroll
  for (int d = 1; d < 32; d += d < 3 ? 1 : 6) {
    v += __shfl_up_sync(FULL, v, d) * 3;
    v += __shfl_down_sync(FULL, v, d, 8);
    v += __shfl_xor_sync(FULL, v, d, 16) * 5;
    v += __shfl_sync(FULL, v, d, 4);
  }
  return v;
}

//@ exchanges_of_all 16 1 256 1 0
extern "C" __global__ void exchanges_of_all(ARGS) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const double a = exchanged((double)k[i]);
  const long long b = exchanged((long long)k[i] << 33);
  const float c = exchanged((float)k[i]);
  const unsigned d = exchanged((unsigned)k[i]);
  y[i] = c + (float)a;
  m[i] = (int)(b >> 31) ^ (int)d;
}

//@ one_thread_each 4 1 96 3 0
extern "C" __global__ void one_thread_each(ARGS) {
  __shared__ int last[12];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int nowhere = -1, left = n - n + 17;
  int v = k[blockIdx.x * 288 + threadIdx.y * 96 + threadIdx.x];
  v += __shfl_up_sync(FULL, v, 1);
  if (lane == warpSize - 1)
    last[threadIdx.y * 4 + warp] = v;
  if (lane == 32)
    last[0] = 1;
  if (threadIdx.x == blockDim.x - 1)
    last[threadIdx.y * 4 + 3] = v;
  __syncthreads();
  int at = (blockIdx.x * 3 + threadIdx.y) * 96 + threadIdx.x;
  m[at] = v;
  __syncthreads();
  if (threadIdx.x == nowhere)
    m[0] = 12345;
  if (threadIdx.x == left && blockIdx.x == 2)
    m[at] = last[threadIdx.y * 4] + last[threadIdx.y * 4 + 3];
  __syncthreads();
  if (threadIdx.x == 96)
    m[1] = 6789;
  if (lane == left - 16 && warp == 1)
    m[at] += last[threadIdx.y * 4 + 2];
}

//@ subscripts_that_wrap 4 1 128 1 0
//@ subscripts_that_wrap 2 1 128 2 0
extern "C" __global__ void subscripts_that_wrap(ARGS) {
  __shared__ int line[2][160];
  const unsigned t = threadIdx.x, row = threadIdx.y, i = blockIdx.x * blockDim.x + t;
  const int s = threadIdx.x, g = blockIdx.x * blockDim.x + threadIdx.x + 8;
  const unsigned back = -5 + n - n, before = threadIdx.x - 1u;
  const signed char near = -3;
  const unsigned short far = 7;
  const size_t large = (size_t)0 - 2;
  line[row][t] = k[i];
  if (t < 32)
    line[row][128 + t] = k[t];
  __syncthreads();
  int v = line[row][before + 1];
  v += line[row][s + far] * 3;
  v += t >= 5 ? line[row][t + back] + line[row][back + s] : 1;
  v += t >= 3 ? line[row][t + near] * 5 - line[row][s + near] : 2;
  v += t >= 2 ? line[row][t + large] * 7 : 3;
  v += t ? line[row][before] + line[row][threadIdx.x - 1] : 4;
  v += line[row][10u - n + n + t] + line[(row + 1) % blockDim.y][s + 1 - 1] % 11;
  v += k[g - 8] + k[i + 1] * 3 + k[g + back] + k[g + near] + k[g + large] + k[4 - 2 * 2 + i];
  v += k[n - n + g * 1 - far] + k[(unsigned)(n - n) + g];
  m[(blockIdx.x * blockDim.y + row) * 128 + s] = v;
}

// Functions that are handed to functions that synchronize, and such functions
// as lambdas.
template <typename T, typename F> __device__ T fold_warp(T v, F f) {
  for (int o = 16; o > 0; o /= 2) v = f(v, __shfl_down_sync(0xffffffffu, v, o));
  return v;
}
template <typename T, typename F> __device__ T fold_block(T v, T zero, const F &f) {
  __shared__ T part[32];
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  v = fold_warp(v, f);
  if (lane == 0) part[warp] = v;
  __syncthreads();
  v = threadIdx.x < (blockDim.x + 31) / 32 ? part[lane] : zero;
  if (warp == 0) v = fold_warp(v, f);
  return v;
}
struct exclusive_or { __device__ int operator()(int a, int b) const { return a ^ b; } };

//@ folds_by_lambdas 5 1 96 1 0
extern "C" __global__ void folds_by_lambdas(ARGS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  const int c = k[i];
  float top = fold_block(x[i], -1000.f, [](float a, float b) { return a > b ? a : b; });
  __syncthreads();
  int all = fold_block(c, 0, [](int a, int b) { if (a > 1000) return b; return a + b; });
  __syncthreads();
  int odd = fold_block(c, 0, exclusive_or());
  auto least = [&](int a, int b) { return a < b ? a : b; };
  __syncthreads();
  int low = fold_block(c, 99, least);
  if (threadIdx.x == 0) {
    y[blockIdx.x] = top;
    m[blockIdx.x] = all + 1000 * odd + 1000000 * low;
  }
}

template <class F> __device__ int call(int v, F f) { return f(v); }

//@ lambdas_that_synchronize 5 1 96 1 0
extern "C" __global__ void lambdas_that_synchronize(ARGS) {
  __shared__ int part[32];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = k[i];
  auto sum = [&](int w) {
    for (int o = 16; o; o /= 2) w += __shfl_xor_sync(~0u, w, o);
    return w;
  };
  auto all = [&](int w) -> int {
    __syncthreads();
    int v = sum(w);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;
    __syncthreads();
    int t = 0;
    for (int i = 0; i < blockDim.x / 32; i++) t += part[i];
    return t;
  };
  int a = all(v), b = all(v * v);
  v += call(v, [=](int u) { for (int j = 0; j < 4; j++) if (u + j == v) return 1; return 5; });
  if (v % 7 == 3) {
    m[i] = call(v, [&](int u) { if (u > v) return 1; return u * a; });
    return;
  }
  __syncthreads();
  m[i] = a + b * 3 + sum(v) + [&] { int u = v * 2; return u + 1; }();
}

// ---- tiles with edges, in loops over rows and columns ----

template <int W, int H> __device__ void tile_with_edges(ARGS) {
  __shared__ float s[24][40];
  const int rows = H + 4, columns = W + 4;
  for (int dy = threadIdx.y; dy < rows; dy += blockDim.y) {
    const int at = blockIdx.y * H + dy - 2;
    for (int dx = threadIdx.x; dx < columns; dx += blockDim.x) {
      int gx = (int)blockIdx.x * W + dx - 2;
      s[dy][dx] = gx >= 0 && gx < 64 && at >= 0 && at < 64 ? x[at * 64 + gx] : 0.5f;
    }
  }
  __syncthreads();
  float v = 0.f;
  for (int j = 0; j < 5; j++)
    for (int i = 0; i <= 4; ++i) v += (i + 2 * j) * s[threadIdx.y + j][threadIdx.x + i];
  int gx = blockIdx.x * W + threadIdx.x, gy = blockIdx.y * H + threadIdx.y;
  if (gx < 64 && gy < 64) y[gy * 64 + gx] = v;
}

//@ tile_16_8 4 8 16 8 0
extern "C" __global__ void tile_16_8(ARGS) { tile_with_edges<16, 8>(x, y, k, m, n); }
//@ tile_11_5 6 13 11 5 0
extern "C" __global__ void tile_11_5(ARGS) { tile_with_edges<11, 5>(x, y, k, m, n); }
//@ tile_32_4 2 16 32 4 0
extern "C" __global__ void tile_32_4(ARGS) { tile_with_edges<32, 4>(x, y, k, m, n); }

//@ tile_in_a_row 4 8 16 8 0
extern "C" __global__ void tile_in_a_row(ARGS) {
  __shared__ int s[10][18];
  const unsigned t = threadIdx.y * blockDim.x + threadIdx.x;
  for (int i = t; i < 180; i += blockDim.x * blockDim.y) {
    int r = (blockIdx.y * 8 + i / 18 + 63) % 64, c = (blockIdx.x * 16 + i % 18 + 63) % 64;
    s[i / 18][i % 18] = k[r * 64 + c] & 1;
  }
  __syncthreads();
  int count = 0;
  for (int dy = 0; dy < 3; dy++)
    for (int dx = 0; dx < 3; dx++)
      if (dx != 1 || dy != 1) count += s[threadIdx.y + dy][threadIdx.x + dx];
  m[(blockIdx.y * 8 + threadIdx.y) * 64 + blockIdx.x * 16 + threadIdx.x] = count;
}

//@ tile_of_three 4 4 6 10 0
extern "C" __global__ void tile_of_three(ARGS) {
  __shared__ int s[4][6][8];
  for (int a = 0; a < 4; a += 1)
    for (int b = threadIdx.y; b < 6; b += blockDim.y) {
      const int from = a * 48 + b * 8, *row = k + (blockIdx.y * 4 + blockIdx.x) * 192;
      for (int c = threadIdx.x; c < 8; c += blockDim.x) s[a][b][c] = row[from + c] + c;
    }
  __syncthreads();
  int *flat = &s[0][0][0], t = threadIdx.y * blockDim.x + threadIdx.x;
  for (int i = t; i < 192; i += 60)
    m[(blockIdx.y * 4 + blockIdx.x) * 192 + i] = flat[191 - i] * 3;
}

// ---- a warp for each row, by the thread's index in the grid ----

//@ rows_by_warps 11 1 96 1 0
extern "C" __global__ void rows_by_warps(ARGS) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row >= 31) return;
  float s = 0.f;
  for (int c = lane; c < 128; c += 32) s += x[row * 128 + c] * k[c];
  for (int o = 16; o; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
  if (lane == 0) y[row] = s;
}
//@ rows_by_warps_2 7 1 160 1 0
extern "C" __global__ void rows_by_warps_2(ARGS) {
  const int thread = blockIdx.x * blockDim.x + threadIdx.x;
  const int row = thread >> 5, lane = thread & 31;
  if (row == 3 || row >= 33) return;
  int s = 0;
  for (int c = lane; c < 100 + row; c += 32) s += k[row * 100 + c];
  s += __shfl_down_sync(~0u, s, 16);
  if (row == 5) return;
  for (int o = 8; o; o >>= 1) s += __shfl_down_sync(~0u, s, o);
  if (lane == 0) m[row] = s;
  if (row % 2) {
    int v = __shfl_sync(~0u, s, 0);
    m[64 + thread] = v + lane;
  }
}
//@ rows_by_odd_blocks 9 1 80 1 0
extern "C" __global__ void rows_by_odd_blocks(ARGS) {
  const int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32,
            lane = (blockIdx.x * blockDim.x + threadIdx.x) % 32;
  if (row >= 20) return;
  int s = k[row * 32 + lane];
  s += __shfl_xor_sync(__activemask(), s, 1);
  m[blockIdx.x * blockDim.x + threadIdx.x] = s * (lane + 1) + row;
}

// ---- edges that most rows of threads do not have ----

//@ guarded_tiles 3 4 16 16 0
extern "C" __global__ void guarded_tiles(ARGS) {
  __shared__ float a[16][17], b[16][17];
  const int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
  const int rows = 60, cols = 45, inner = 37;
  float sum = 0.f;
  for (int from = 0; from < inner; from += 16) {
    a[threadIdx.y][threadIdx.x] =
        row < rows && from + threadIdx.x < inner ? x[row * inner + from + threadIdx.x] : 0.f;
    b[threadIdx.y][threadIdx.x] =
        (from + (int)threadIdx.y) < inner && col < cols ? k[(from + threadIdx.y) * cols + col] : 0;
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += a[threadIdx.y][i] * b[i][threadIdx.x];
    __syncthreads();
  }
  if (row < rows && col < cols) y[row * cols + col] = sum;
}

//@ guarded_line 9 1 96 1 0
extern "C" __global__ void guarded_line(ARGS) {
  __shared__ int line[98];
  const int size = 800;
  int at = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x + 1;
  line[t] = at < size ? k[at] : -1;
  if (threadIdx.x == 0) line[0] = at > 0 ? k[at - 1] : -1;
  if (threadIdx.x == blockDim.x - 1) line[t + 1] = at + 1 < size ? k[at + 1] : -1;
  __syncthreads();
  if (at >= 1 && at + 1 < size)
    m[at] = line[t - 1] + 2 * line[t] + line[t + 1];
  else if (at < size)
    m[at] = line[t];
}

//@ guarded_by_unsigned 5 1 64 1 0
extern "C" __global__ void guarded_by_unsigned(ARGS) {
  const unsigned at = blockIdx.x * blockDim.x + threadIdx.x, before = 4294967290u;
  __shared__ int s[64];
  s[threadIdx.x] = at - 7u < (unsigned)n ? k[at - 7u] : 5;
  __syncthreads();
  m[at] = s[63 - threadIdx.x] + (at + before < before) + (at < -1);
  __syncthreads();
  s[threadIdx.x] = at + before > 20u;
  __syncthreads();
  m[at + 512] = s[threadIdx.x ^ 1];
  y[at] = at + .5f < 130.f ? x[at] : 0.f;
}

//@ transpose_edges 2 2 32 8 0
extern "C" __global__ void transpose_edges(ARGS) {
  __shared__ float tile[32][33];
  const int wide = 45, high = 37;
  int i = blockIdx.x * 32 + threadIdx.x, j = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
  for (int e = 0; e < 32; e += 8)
    if (i < wide && j + e < high) tile[threadIdx.y + e][threadIdx.x] = x[(j + e) * wide + i];
  __syncthreads();
  i = blockIdx.y * 32 + threadIdx.x;
  j = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
  for (int e = 0; e < 32; e += 8)
    if (i < high && j + e < wide) y[(j + e) * high + i] = tile[threadIdx.x][threadIdx.y + e];
}

template <class T> __device__ bool is_inside(T i, T from, T end) {
  if (i < end && from < end) return true;
  return false;
}

//@ windows 3 1 64 1 0
extern "C" __global__ void windows(ARGS) {
  __shared__ int s[64];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  int sum = 0;
  for (int from = 0; from < n / 16; from += 7) {
    s[threadIdx.x] = is_inside(i + from, from, n / 16) ? k[i + from] : 1;
    __syncthreads();
    sum += s[threadIdx.x ^ 5];
    __syncthreads();
  }
  for (int e = 1; e < 4; ++e)
    if (i + e < 150) sum = sum * 3 + s[(threadIdx.x + e) % 64]; // carries its sum
  m[i] = sum;
}

// Threads leave from a loop whose turns the compiler takes for the thread's own.
//@ leaves_from_turns 5 3 96 1 0
extern "C" __global__ void leaves_from_turns(ARGS) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
  int turns = k[i] < 1000000 ? 4 : 2, a = k[i];
  for (int j = 0; j < turns; j++) {
    a += __shfl_xor_sync(~0u, a, 9);
    if ((j + blockIdx.x) % 4 == 3) return;
    if (threadIdx.x / 32 == 1 && j == 2) return;
  }
  if (lane < 8) {
    for (int j = 0; j < turns; j++) {
      if (lane < 4) {
        a += __shfl_xor_sync(0xfu, a, 1);
        if (j == 2) return;
      }
    }
    a += 1000;
  }
  m[i] = a;
}

// ---- structs that live across a barrier ----

// Of 28, 20, 40 and 68 bytes, and arrays of 20; rooms of them are padded.
struct Moving {
  float3 at, by;
  float mass;
};
struct Odd {
  double a;
  short b[5];
  char c;
};
struct Wide {
  int a[17];
};

//@ structs_across_barriers 5 3 70 1 0
extern "C" __global__ void structs_across_barriers(ARGS) {
  __shared__ float s[96];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  Moving b, c[2];
  b.at = make_float3(x[i], x[i + 1], x[i + 2]);
  b.by = make_float3(0.f, 1.f, 0.f);
  b.mass = x[i + 3];
  c[0] = c[1] = b;
  Odd o;
  o.a = k[i];
  o.c = (char)t;
  for (int j = 0; j < 5; j++) o.b[j] = (short)(k[i + j] & 1023);
  Wide w;
  for (int j = 0; j < 17; j++) w.a[j] = k[i] + j;
  float five[5] = {1.f, 2.f, 3.f, 4.f, x[i]};
  for (int round = 0; round < 3; round++) {
    s[t] = b.at.x + c[round & 1].by.y + five[round];
    __syncthreads();
    b.by.x += s[(t + 1) % blockDim.x] * b.mass;
    c[round & 1].at.z -= s[(t + 7) % blockDim.x];
    o.a += s[t ^ 1 ? 0 : 1];
    o.b[round] += o.c;
    w.a[round + 3] += o.b[round];
    five[round + 1] += b.by.x;
    __syncthreads();
  }
  y[i] = b.by.x + b.at.y + c[0].at.z + c[1].at.z + (float)o.a + five[3];
  m[i] = o.b[0] + o.b[2] + w.a[3] + w.a[5] * 3 + w.a[16];
}

// ---- loops of arithmetic, which a warp takes together ----

//@ arithmetic_loops 5 3 90 1 0
extern "C" __global__ void arithmetic_loops(ARGS) {
  __shared__ unsigned s[96];
  const int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  unsigned a = k[i] * 2654435761u, inside = 0;
  float v = x[i];
  n = n % 7; // what all threads share, changed
  for (int j = 0; j < n; j++) {
    a ^= a << 13; a ^= a >> 17; a ^= a << 5;
    if ((a & 255) < 100) inside++;
    v = v * 0.5f + (float)(a & 15);
  }
  s[t] = inside;
  __syncthreads();
  for (int j = 3; j <= n; ++j) inside += a % (j + 2); // of no turn in some launches
  if (t % 3 == 0)
    for (int j = 0; j < n; j++) a = a * 3 + 1; // only some threads
  if (blockIdx.x % 2)
    for (int j = 0; j < n; j += 2) v += (float)j; // whole blocks
  for (int j = 0; j < n; j++) {
    int w = (int)(a >> j) & 3;
    a += w * j;
    inside += __popc(a) > 12 ? 1 : w;
  }
  __syncthreads();
  y[i] = v;
  m[i] = (int)(a ^ inside ^ s[(t + 1) % blockDim.x]);
}

//@ arithmetic_behind_a_return 5 1 70 1 0
extern "C" __global__ void arithmetic_behind_a_return(ARGS) {
  __shared__ int s[96];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  s[threadIdx.x] = k[i];
  __syncthreads();
  if (k[i] & 1) return;
  int a = s[(threadIdx.x + 5) % blockDim.x];
  for (int j = 0; j < n; j++) a = a * 5 + j;
  m[i] = a;
}
