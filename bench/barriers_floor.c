/* The work of spec/compile/barriers.cu as plain loops, on OpenMP's threads. */
#include <math.h>
#include <string.h>

void floor_matmul16(const float *A, const float *B, float *C, int n) {
#pragma omp parallel for schedule(static)
  for (int row = 0; row < n; row++) {
    float *restrict c = C + (long)row * n;
    memset(c, 0, (size_t)n * sizeof *c);
    for (int k = 0; k < n; k++) {
      const float a = A[(long)row * n + k];
      const float *restrict b = B + (long)k * n;
      for (int i = 0; i < n; i++)
        c[i] += a * b[i];
    }
  }
}


void floor_matmul32(const float *A, const float *B, float *C, int n) {
  floor_matmul16(A, B, C, n);
}


/* Sums of 256 elements each, as the kernels have them. */
void floor_tree(const float *in, float *out, int n) {
#pragma omp parallel for schedule(static)
  for (int block = 0; block < n / 256; block++) {
    const float *x = in + (long)block * 256;
    float sum = 0.f;
#pragma omp simd reduction(+ : sum)
    for (int i = 0; i < 256; i++)
      sum += x[i];
    out[block] = sum;
  }
}


void floor_shuffles(const float *in, float *out, int n) {
  floor_tree(in, out, n);
}


void floor_gridwise(const float *in, float *out, int n) {
  float sum = 0.f;
#pragma omp parallel for simd schedule(static) reduction(+ : sum)
  for (int i = 0; i < n; i++)
    sum += in[i];
  out[0] = sum;
}


void floor_doubling(const float *in, float *out, int n) {
#pragma omp parallel for schedule(static)
  for (int block = 0; block < n / 512; block++) {
    float sum = 0.f;
    for (long i = block * 512l; i < (block + 1) * 512l; i++)
      out[i] = sum += in[i];
  }
}


void floor_updown(const float *in, float *out, int n) {
#pragma omp parallel for schedule(static)
  for (int block = 0; block < n / 512; block++) {
    float sum = 0.f;
    for (long i = block * 512l; i < (block + 1) * 512l; i++) {
      out[i] = sum;
      sum += in[i];
    }
  }
}


void floor_histogram(const unsigned char *in, unsigned *bins, int n) {
#pragma omp parallel
  {
    unsigned own[256] = {0};
#pragma omp for schedule(static) nowait
    for (int i = 0; i < n; i++)
      own[in[i]]++;
#pragma omp critical
    for (int i = 0; i < 256; i++)
      bins[i] += own[i];
  }
}


void floor_transpose(const float *in, float *out, int n) {
#pragma omp parallel for schedule(static)
  for (int y = 0; y < n; y += 32)
    for (int x = 0; x < n; x += 32)
      for (int j = x; j < x + 32; j++)
        for (int i = y; i < y + 32; i++)
          out[(long)j * n + i] = in[(long)i * n + j];
}


/* Structures of arrays would be faster; this is what one writes. */
void floor_bodies(const float *p, float *a, int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++) {
    float x = 0.f, y = 0.f, z = 0.f;
#pragma omp simd reduction(+ : x, y, z)
    for (int j = 0; j < n; j++) {
      const float dx = p[4 * j] - p[4 * i], dy = p[4 * j + 1] - p[4 * i + 1],
                  dz = p[4 * j + 2] - p[4 * i + 2];
      const float r = 1.f / sqrtf(dx * dx + dy * dy + dz * dz + 1e-3f);
      const float pull = p[4 * j + 3] * r * r * r;
      x += pull * dx;
      y += pull * dy;
      z += pull * dz;
    }
    a[4 * i] = x;
    a[4 * i + 1] = y;
    a[4 * i + 2] = z;
    a[4 * i + 3] = 0.f;
  }
}


void floor_softmax(const float *in, float *out, int columns, int rows) {
#pragma omp parallel for schedule(static)
  for (int r = 0; r < rows; r++) {
    const float *restrict x = in + (long)r * columns;
    float *restrict y = out + (long)r * columns;
    float top = -3e38f, sum = 0.f;
#pragma omp simd reduction(max : top)
    for (int c = 0; c < columns; c++)
      top = x[c] > top ? x[c] : top;
#pragma omp simd reduction(+ : sum)
    for (int c = 0; c < columns; c++) {
      const float e = expf(x[c] - top);
      y[c] = e;
      sum += e;
    }
    const float scale = 1.f / sum;
    for (int c = 0; c < columns; c++)
      y[c] *= scale;
  }
}


void floor_rowbias(const float *in, float *out, const float *bias, int columns,
                   int rows) {
#pragma omp parallel for schedule(static)
  for (int r = 0; r < rows; r++)
    for (int c = 0; c < columns; c++) {
      const float v = in[(long)r * columns + c] + bias[c];
      out[(long)r * columns + c] = v > 0.f ? v : 0.01f * v;
    }
}
