// One kernel per thing a host compiler must be taught about CUDA C.
#include <assert.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#define TILE 16
#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

typedef float real;

__constant__ float weights[4] = {1, 2, 3, 4};
__device__ int counter;
namespace deep {
__device__ float scale = 2;
}

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = a * x[i] + y[i];
}

extern "C" __global__ void stencil1d(int n, const float *a, float *o) {
  int i = INDEX;
  if (i > 0 && i < n - 1)
    o[i] = 0.25f * a[i - 1] + 0.5f * a[i] + 0.25f * a[i + 1];
}

extern "C" __global__ void stencil2d(int w, int h, const float *a, float *o) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x > 0 && x < w - 1 && y > 0 && y < h - 1)
    o[y * w + x] =
        0.2f * (a[y * w + x] + a[y * w + x - 1] + a[y * w + x + 1] +
                a[(y - 1) * w + x] + a[(y + 1) * w + x]);
}

// Threads too near an edge leave a mark, which the compiler may know of most.
extern "C" __global__ void edges(int n, int *out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  if (x >= n)
    return;
  out[x] = x < 3 ? 1 : x > 6 ? 2 : x >= 5 ? 3 : 4;
  if (x <= 1)
    out[x] += 10;
}

#define PLACE ((long)blockDim.x * blockIdx.x + threadIdx.x)

// The places of threads in 64 bits.
extern "C" __global__ void places(size_t from, size_t n, long *out) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  const long same = ((int64_t)blockIdx.x *
                     blockDim.x) + threadIdx.x;
  if (i >= from && i < from + n)
    out[i - from] = same + PLACE + 1;
}

typedef unsigned long index_type;
typedef unsigned char byte;

// The same, in other words; two that wrap around, and one that is narrow.
extern "C" __global__ void spelled(size_t from, size_t n, size_t *out) {
  const index_type i = (index_type)blockIdx.x * blockDim.x + threadIdx.x;
  const auto a = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const auto b = threadIdx.x + blockIdx.x * static_cast<index_type>(blockDim.x);
  const size_t c = size_t(blockIdx.x) * blockDim.x + size_t(threadIdx.x);
  const size_t wraps = (size_t)(blockIdx.x * blockDim.x) + threadIdx.x;
  const long turns = (int)blockIdx.x * (int)blockDim.x + (int)threadIdx.x;
  const int narrow = (byte)blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= from && i < from + n)
    out[i - from] = (a + b + c) * 3 + wraps * 5 + (turns & 0xffffffff) * 7 +
                    narrow;
}

// Where threads of a block are known by themselves.
extern "C" __global__ void beside(size_t from, size_t n, size_t *out) {
  const unsigned t = threadIdx.x, b = blockIdx.x;
  const unsigned i = b * blockDim.x + t;
  const size_t at = (size_t)blockIdx.x * 1024 + threadIdx.x;
  const size_t place = (size_t)b * blockDim.x + t;
  if (place >= from && place < from + n)
    out[place - from] = i + at * 3 + (b << 10 | t);
}

__device__ inline float4 attract(float4 p, float4 q, float4 acc) {
  float dx = q.x - p.x, dy = q.y - p.y, dz = q.z - p.z;
  float inv = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
  float s = q.w * inv * inv * inv;
  acc.x += dx * s;
  acc.y += dy * s;
  acc.z += dz * s;
  return acc;
}

extern "C" __global__ void nbody(int n, const float4 *__restrict__ p,
                                 float4 *__restrict__ f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float4 me = p[i], acc = make_float4(0, 0, 0, 0);
  for (int j = 0; j < n; j++)
    acc = attract(me, p[j], acc);
  f[i] = acc;
}

extern "C" __global__ void __launch_bounds__(256)
    block_sum(const float *x, float *out, int n) {
  __shared__ float s[256];
  int t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? x[i] : 0.f;
  __syncthreads();
  for (int k = blockDim.x / 2; k > 0; k >>= 1) {
    if (t < k)
      s[t] += s[t + k];
    __syncthreads();
  }
  if (t == 0)
    out[blockIdx.x] = s[0];
}

extern "C" __global__ void matmul(const float *A, const float *B, float *C,
                                  int n) {
  __shared__ float a[TILE][TILE], b[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * TILE + ty, col = blockIdx.x * TILE + tx;
  float acc = 0;
  for (int m = 0; m < n / TILE; m++) {
    a[ty][tx] = A[row * n + m * TILE + tx];
    b[ty][tx] = B[(m * TILE + ty) * n + col];
    __syncthreads();
    for (int k = 0; k < TILE; k++)
      acc += a[ty][k] * b[k][tx];
    __syncthreads();
  }
  C[row * n + col] = acc;
}

extern "C" __global__ void warp_sum(const int *x, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? x[i] : 0;
  for (int d = 16; d > 0; d >>= 1)
    v += __shfl_down_sync(0xffffffffu, v, d);
  if ((threadIdx.x & 31) == 0)
    atomicAdd(out, v);
}

extern "C" __global__ void shuffles(int *o) {
  int t = threadIdx.x, *r = o + t * 4;
  r[0] = __shfl_sync(0xffffffffu, t, 5);
  r[1] = __shfl_up_sync(0xffffffffu, t, 3, 8) +
         1000 * __shfl_down_sync(0xffffffffu, t, 3, 8);
  r[2] = __shfl_xor_sync(0xffffffffu, t, 7) +
         1000 * __shfl_xor_sync(0xffffffffu, t, 12, 8);
  r[3] = (int)__shfl_sync(0xffffffffu, (double)t, t + 1, 4);
}

extern "C" __global__ void votes(unsigned *o) {
  int t = threadIdx.x, lane = t & 31;
  unsigned *r = o + t * 8;
  r[0] = __ballot_sync(0xffffffffu, lane % 3 == 0);
  r[1] = __any_sync(0xffffffffu, lane == 7) * 2 +
         __all_sync(0xffffffffu, lane < 32) + __any_sync(0xffffffffu, 0) * 4 +
         __all_sync(0xffffffffu, lane != 7) * 8;
  r[2] = __match_any_sync(0xffffffffu, lane / 4);
  r[3] = __reduce_add_sync(0xffffffffu, lane) +
         (__reduce_min_sync(0xffffffffu, lane - 16) + 16) * 1000;
  r[4] = __reduce_max_sync(0xffffffffu, -lane - 1);
  r[5] = __syncthreads_count(t % 2 * 5);
  r[6] = __syncthreads_or(t == 40) * 2 + __syncthreads_and(t < 1000) +
         __syncthreads_or(0) * 4 + __syncthreads_and(t != 40) * 8;
  r[7] = __activemask();
}

/* Rows of blocks, in planes. */
extern "C" __global__ void planes(int *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int row = blockIdx.z * gridDim.y + blockIdx.y;
  if (i < n)
    o[row * n + i] = blockIdx.z * 10000 + blockIdx.y * 100 + i;
}

/* What lanes gave that have left, or that are in another branch, does not
   count. */
extern "C" __global__ void leavers(unsigned *o, int limit) {
  int t = threadIdx.x;
  unsigned *r = o + t * 5;
  r[0] = __ballot_sync(0xffffffffu, 1);
  if (t % 2)
    r[0] += __ballot_sync(0xaaaaaaaau, t > 8);
  else
    r[0] += __ballot_sync(0x55555555u, t == 0);
  __syncwarp();
  if (t >= limit)
    return;
  r[1] = __ballot_sync(0xffffffffu, t % 2 == 0);
  r[2] = __match_any_sync(0xffffffffu, 0);
  r[3] = __reduce_add_sync(0xffffffffu, 1);
  r[4] = __all_sync(0xffffffffu, t < limit);
}

/* Half a warp in one branch: groups found at run time, and partial masks. */
extern "C" __global__ void groups(unsigned *o, int *total) {
  int t = threadIdx.x;
  if (t % 2) {
    unsigned mask = __activemask();
    int leader = __ffs(mask) - 1;
    int base = 0;
    if ((t & 31) == leader)
      base = atomicAdd(total, __popc(mask));
    base = __shfl_sync(mask, base, leader);
    o[t] = base + __popc(mask & ((1u << (t & 31)) - 1));
  } else {
    int sum = t;
    for (int d = 2; d < 32; d *= 2)
      sum += __shfl_xor_sync(0x55555555u, sum, d);
    o[t] = sum;
  }
}

extern __shared__ float outside[];
extern "C" __global__ void dynamic_outside(float *d, int n) {
  int t = threadIdx.x;
  outside[t] = d[t];
  __syncthreads();
  d[t] = outside[n - 1 - t];
}

extern "C" __global__ void dynamic_inside(float *d, int n) {
  extern __shared__ __align__(16) unsigned char raw[];
  float *f = reinterpret_cast<float *>(raw);
  int *q = (int *)(f + n), t = threadIdx.x;
  f[t] = d[t];
  q[t] = t;
  __syncthreads();
  d[t] = f[n - 1 - t] + q[n - 1 - t];
}

extern "C" __global__ void early_exit(int *out, int limit) {
  __shared__ int count;
  int t = threadIdx.x;
  if (t == 0)
    count = 0;
  __syncthreads();
  if (t >= limit)
    return;
  atomicAdd(&count, 1);
  __syncthreads();
  out[t] = count;
}

/* The first threads leave before the first barrier is met. */
extern "C" __global__ void late_start(int *out, int first) {
  int t = threadIdx.x;
  if (t < first)
    return;
  out[t] = __syncthreads_count(1);
}

template <typename T, int N> __device__ T poly(T x) {
  T r = 0;
  for (int i = 0; i < N; i++)
    r = r * x + weights[i];
  return r;
}

template <typename T, int N = 4>
__global__ void evaluate(T *y, const T *x, int n) {
  int i = INDEX;
  if (i < n)
    y[i] = poly<T, N>(x[i]);
}

extern "C" __global__ void globals(real *o, const real *x) {
  int i = INDEX;
  o[i] = x[i] * weights[i & 3] * deep::scale;
  atomicAdd(&counter, 1);
}

extern "C" __global__ void atomics(int *i, unsigned *u, unsigned long long *l,
                                   float *f, double *d) {
  int t = INDEX;
  atomicAdd(&i[0], t);
  atomicSub(&i[1], 1);
  atomicMin((long long *)&l[2], -(long long)t - 1);
  atomicMax((long long *)&l[3], (long long)t);
  atomicMin(&i[2], -t);
  atomicMax(&i[3], t);
  atomicAdd(&u[0], 2u);
  atomicInc(&u[1], 9);
  atomicDec(&u[2], 9);
  atomicOr(&u[3], 1u << (t & 31));
  atomicAnd(&u[4], ~(1u << (t & 31)));
  atomicXor(&u[5], 1u);
  atomicAdd(&l[0], 1ull << 33);
  atomicMax(&l[1], (unsigned long long)t);
  unsigned old = u[6], seen;
  do {
    seen = old;
    old = atomicCAS(&u[6], seen, seen + 3);
  } while (old != seen);
  atomicAdd(&f[0], 0.5f);
  atomicAdd_block(&f[1], 1.0f);
  atomicAdd(&d[0], 0.25);
  atomicExch(&f[2], 7.0f);
}

extern "C" __global__ void halves(const __half *a, const __half *b, __half *o,
                                  float *f, int n) {
  int i = INDEX;
  if (i >= n)
    return;
  o[i] = a[i] * b[i] + __float2half(1.0f);
  f[i] = __half2float(a[i]);
}

extern "C" __global__ void vectors(float4 *a, const float4 *b, int2 *c,
                                   uchar4 *e, int n) {
  int i = INDEX;
  if (i >= n)
    return;
  float4 v = b[i];
  v.x *= 2;
  v.y += 1;
  v.z = fmaxf(v.z, 0.f);
  v.w = sqrtf(v.w);
  a[i] = v;
  c[i] = make_int2(i, -i);
  e[i] = make_uchar4(i, i + 1, i + 2, 255);
}

struct pair {
  double a;
  int b;
};

extern "C" __global__ void by_value(pair p, float3 v, double *o) {
  o[INDEX] = p.a * p.b + v.x + v.y + v.z;
}

extern "C" __global__ void bits(const unsigned *x, unsigned *o, int n) {
  int i = INDEX;
  if (i >= n)
    return;
  unsigned v = x[i], *r = o + i * 10;
  r[0] = __popc(v);
  r[1] = __clz(v);
  r[2] = __ffs(v);
  r[3] = __brev(v);
  r[4] = __byte_perm(v, ~v, 0x4170);
  r[5] = __mulhi((int)v, 0x12345678);
  r[6] = __umulhi(v, 0x87654321u);
  r[7] = __float_as_uint(__uint_as_float(v & 0x7f7fffffu));
  r[8] = __float2int_rn((float)(int)v * 0.25f);
  r[9] = __funnelshift_l(v, ~v, v & 31);
}

extern "C" __global__ void mathematics(const double *x, double *o, int n) {
  int i = INDEX;
  if (i >= n)
    return;
  double v = x[i], *r = o + i * 12;
  float f = (float)v, s, c;
  r[0] = sin(v) * sin(v) + cos(v) * cos(v);
  r[1] = log(exp(v));
  sincosf(f, &s, &c);
  r[2] = s * s + c * c;
  r[3] = powf(fabsf(f) + 1, 2.0f) - (fabsf(f) + 1) * (fabsf(f) + 1);
  r[4] = cbrt(v * v * v);
  r[5] = tanh(atanh(v / 100));
  r[6] = erf(v) + erfc(v);
  r[7] = hypot(3.0, 4.0) + fmin(v, 1e9) - v;
  r[8] = max(2, 3u) + min(1.5f, 2.5f) + abs(-3) + abs(-0.5);
  r[9] = isnan(v) + isinf(v) + (isfinite(v) ? 0 : 1);
  r[10] = erfinv(erf(v / 10)) * 10;
  r[11] = sinpi(0.5) + rsqrt(4.0) + exp10(2.0) + (double)rintf(2.5f);
}

extern "C" __global__ void grid_stride(int n, const int *x, int *o) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  int stride = blockDim.x * gridDim.x;
  for (int i = index; i < n; i += stride) {
    if (x[i] == 3)
      continue;
    o[i] += 2 * x[i] + blockIdx.y;
  }
}

/* Eight threads, and each adds to its own number: no two race. */
extern "C" __global__ void own_slots(int n, const int *x, int *o) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += blockDim.x * gridDim.x)
    o[i & 7] += x[i];
}

/* What a thread adds up is its own: these steps must stay a thread's. */
extern "C" __global__ void strided_sums(int n, const int *x, int *o) {
  int sum = 0;
  for (int i = INDEX; i < n; i += blockDim.x * gridDim.x)
    sum += x[i];
  o[INDEX] = sum;
}

/* Indexed at run time: the array cannot live in registers. */
extern "C" __global__ void local_array(int n, int m, const int *x, int *o) {
  int i = INDEX;
  if (i >= n)
    return;
  int t[4];
  t[i & 3] = x[i];
  t[(i + 1) & 3] = x[i] * 2;
  t[(i + 2) & 3] = 7;
  t[(i + 3) & 3] = 9;
  o[i] = t[m & 3] + 3 * t[(m + 1) & 3];
}

/* The same for plain variables that only a pointer tells apart. */
extern "C" __global__ void pointed(int n, int m, const int *x, int *o) {
  int i = INDEX;
  if (i >= n)
    return;
  int a = x[i], b = 7 + i;
  int *p = (m & 1) ? &a : &b, *q = (x[i] & 2) ? &a : &b;
  *p += 3;
  *q *= 2;
  *p += *q;
  o[i] = a + 5 * b;
}

extern "C" __global__ void indices(int *o) {
  dim3 b = blockDim;
  uint3 t = threadIdx;
  int thread = t.x + b.x * (t.y + b.y * t.z);
  int block =
      blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  o[block * (b.x * b.y * b.z) + thread] = block * 1000 + thread;
}

extern "C" __global__ void say(int n) {
  if (INDEX < n)
    printf("thread %d says %.1f\n", (int)INDEX, 0.5 * INDEX);
}

extern "C" __global__ void divergent(int *o) {
  if (threadIdx.x < 16)
    __syncthreads();
  else
    __shfl_sync(0xffffffffu, 1, 0);
  o[threadIdx.x] = 1;
}

extern "C" __global__ void check(int limit) {
  assert((int)threadIdx.x < limit);
  __syncthreads();
}
