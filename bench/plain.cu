// Kernels without barriers as textbooks have them, for bench/plain.lua.
//@ saxpy
extern "C" __global__ void saxpy(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = 1e-6f * x[i] + y[i];
}
//@ gridstride
extern "C" __global__ void gridstride(const float *x, float *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x)
    y[i] = 1e-6f * x[i] + y[i];
}
//@ while
extern "C" __global__ void walk(const float *x, float *y, int n) {
  int i = threadIdx.x + blockIdx.x * blockDim.x;
  while (i < n) {
    y[i] = 1e-6f * x[i] + y[i];
    i += blockDim.x * gridDim.x;
  }
}
//@ size_t
extern "C" __global__ void far_saxpy(const float *x, float *y, int n) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = 1e-6f * x[i] + y[i];
}
//@ constblock
#define BLOCK 256
extern "C" __global__ void constblock(const float *x, float *y, int n) {
  int tid = threadIdx.x;
  int i = tid + blockIdx.x * BLOCK;
  if (i >= n)
    return;
  y[i] = 1e-6f * x[i] + y[i];
}
//@ reversed
extern "C" __global__ void reversed(const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = x[n - 1 - i] * 0.5f;
}
//@ rowbias
extern "C" __global__ void rowbias(const float *x, const float *bias, float *y, int cols) {
  int row = blockIdx.x;
  for (int c = threadIdx.x; c < cols; c += blockDim.x) {
    float v = x[row * cols + c] + bias[c];
    y[row * cols + c] = v > 0.f ? v : 0.01f * v;
  }
}
//@ gray
extern "C" __global__ void gray(const unsigned char *rgb, unsigned char *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  if (x >= n || y >= n)
    return;
  const unsigned char *p = rgb + (y * n + x) * 3;
  out[y * n + x] = (unsigned char)(0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2]);
}
//@ matmul
extern "C" __global__ void matmul(const float *A, const float *B, float *C, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n && col < n) {
    float sum = 0.0f;
    for (int k = 0; k < n; k++)
      sum += A[row * n + k] * B[k * n + col];
    C[row * n + col] = sum;
  }
}
//@ products
__device__ float product_of(const float *A, const float *B, int row, int col, int n) {
  float sum = 0.0f;
  for (int k = 0; k < n; k++)
    sum += A[row * n + k] * B[k * n + col];
  return sum;
}
extern "C" __global__ void products(const float *A, const float *B, float *C, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int col = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n && col < n)
    C[row * n + col] = product_of(A, B, row, col, n);
}
//@ columns
extern "C" __global__ void columns(const float *x, float *y, int n) {
  int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= n)
    return;
  float sum = 0.f;
  for (int r = 0; r < n; r++)
    sum += x[r * n + c];
  y[c] = sum;
}
//@ convolution
extern "C" __global__ void convolution(const float *x, const float *k, float *y, int n, int r) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int j = blockIdx.y * blockDim.y + threadIdx.y;
  if (i >= n || j >= n)
    return;
  float s = 0.f;
  for (int b = -r; b <= r; b++)
    for (int a = -r; a <= r; a++) {
      int xx = i + a, yy = j + b;
      if (xx >= 0 && xx < n && yy >= 0 && yy < n)
        s += x[yy * n + xx] * k[(b + r) * (2 * r + 1) + a + r];
    }
  y[j * n + i] = s;
}
//@ bins
extern "C" __global__ void bins(const unsigned char *in, unsigned *bins, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    atomicAdd(&bins[in[i]], 1u);
}
//@ stencil
extern "C" __global__ void stencil(const float *in, float *out, int n) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y * blockDim.y + threadIdx.y;
  int z = blockIdx.z * blockDim.z + threadIdx.z;
  if (x < 1 || y < 1 || z < 1 || x >= n - 1 || y >= n - 1 || z >= n - 1)
    return;
  int i = (z * n + y) * n + x;
  out[i] = 0.4f * in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n] + in[i - n * n] + in[i + n * n]);
}
//@ stride3
extern "C" __global__ void stride3(const float *x, float *y, int n) {
  for (int c = blockIdx.z * blockDim.z + threadIdx.z; c < n; c += blockDim.z * gridDim.z)
    for (int b = blockIdx.y * blockDim.y + threadIdx.y; b < n; b += blockDim.y * gridDim.y)
      for (int a = blockIdx.x * blockDim.x + threadIdx.x; a < n; a += blockDim.x * gridDim.x)
        y[(c * n + b) * n + a] = 1e-6f * x[(c * n + b) * n + a] + y[(c * n + b) * n + a];
}
//@ mandelbrot
extern "C" __global__ void mandelbrot(int *out, int n, int limit) {
  int px = blockIdx.x * blockDim.x + threadIdx.x;
  int py = blockIdx.y * blockDim.y + threadIdx.y;
  if (px >= n || py >= n)
    return;
  float cx = -2.2f + 3.2f * px / n, cy = -1.2f + 2.4f * py / n;
  float x = 0.f, y = 0.f;
  int i = 0;
  while (i < limit && x * x + y * y <= 4.f) {
    float t = x * x - y * y + cx;
    y = 2.f * x * y + cy;
    x = t;
    i++;
  }
  out[py * n + px] = i;
}
//@ spmv
extern "C" __global__ void spmv(const int *row, const int *column, const float *value, const float *x, float *y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    float sum = 0.f;
    for (int k = row[i]; k < row[i + 1]; k++)
      sum += value[k] * x[column[k]];
    y[i] = sum;
  }
}
//@ bodies
extern "C" __global__ void bodies(const float4 *p, float4 *a, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float4 me = p[i];
  float x = 0.f, y = 0.f, z = 0.f;
  for (int j = 0; j < n; j++) {
    float dx = p[j].x - me.x, dy = p[j].y - me.y, dz = p[j].z - me.z;
    float r = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
    float pull = p[j].w * r * r * r;
    x += pull * dx;
    y += pull * dy;
    z += pull * dz;
  }
  a[i] = make_float4(x, y, z, 0.f);
}
