/* The work of bench/plain.cu as plain loops, on OpenMP's threads. */
#include <math.h>
#include <string.h>

void floor_saxpy(const float *x, float *y, int n);
void floor_reversed(const float *x, float *y, int n);
void floor_rowbias(const float *x, const float *bias, float *y, int n);
void floor_gray(const unsigned char *rgb, unsigned char *out, int n);
void floor_matmul(const float *A, const float *B, float *C, int n);
void floor_columns(const float *x, float *y, int n);
void floor_convolution(const float *x, const float *k, float *y, int n, int r);
void floor_bins(const unsigned char *in, unsigned *bins, int n);
void floor_stencil(const float *in, float *out, int n);
void floor_mandelbrot(int *out, int n, int limit);
void floor_spmv(const int *row, const int *column, const float *value,
                const float *x, float *y, int n);
void floor_bodies(const float *p, float *a, int n);


void floor_saxpy(const float *restrict x, float *restrict y, int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++)
    y[i] = 1e-6f * x[i] + y[i];
}


void floor_reversed(const float *restrict x, float *restrict y, int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++)
    y[i] = x[n - 1 - i] * 0.5f;
}


void floor_rowbias(const float *restrict x, const float *restrict bias,
                   float *restrict y, int n) {
#pragma omp parallel for schedule(static)
  for (int row = 0; row < n; row++)
    for (int c = 0; c < n; c++) {
      const float v = x[row * n + c] + bias[c];
      y[row * n + c] = v > 0.f ? v : 0.01f * v;
    }
}


void floor_gray(const unsigned char *restrict rgb, unsigned char *restrict out,
                int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n * n; i++) {
    const unsigned char *p = rgb + 3 * i;
    out[i] = (unsigned char)(0.299f * p[0] + 0.587f * p[1] + 0.114f * p[2]);
  }
}


void floor_matmul(const float *A, const float *B, float *C, int n) {
#pragma omp parallel for schedule(static)
  for (int row = 0; row < n; row++) {
    float *restrict c = C + row * n;
    memset(c, 0, (size_t)n * sizeof *c);
    for (int k = 0; k < n; k++)
      for (int i = 0; i < n; i++)
        c[i] += A[row * n + k] * B[k * n + i];
  }
}


void floor_columns(const float *restrict x, float *restrict y, int n) {
#pragma omp parallel for schedule(static)
  for (int from = 0; from < n; from += 64)
    for (int r = 0; r < n; r++)
      for (int c = from; c < from + 64; c++)
        y[c] = (r ? y[c] : 0.f) + x[r * n + c];
}


void floor_convolution(const float *restrict x, const float *restrict k,
                       float *restrict y, int n, int r) {
#pragma omp parallel for schedule(static)
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++) {
      float s = 0.f;
      for (int b = -r; b <= r; b++)
        for (int a = -r; a <= r; a++)
          if (i + a >= 0 && i + a < n && j + b >= 0 && j + b < n)
            s += x[(j + b) * n + i + a] * k[(b + r) * (2 * r + 1) + a + r];
      y[j * n + i] = s;
    }
}


void floor_bins(const unsigned char *in, unsigned *bins, int n) {
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


void floor_stencil(const float *restrict in, float *restrict out, int n) {
#pragma omp parallel for schedule(static)
  for (int z = 1; z < n - 1; z++)
    for (int y = 1; y < n - 1; y++)
      for (int i = (z * n + y) * n + 1; i < (z * n + y) * n + n - 1; i++)
        out[i] =
            0.4f * in[i] + 0.1f * (in[i - 1] + in[i + 1] + in[i - n] +
                                   in[i + n] + in[i - n * n] + in[i + n * n]);
}


void floor_mandelbrot(int *out, int n, int limit) {
#pragma omp parallel for schedule(static)
  for (int py = 0; py < n; py++)
    for (int px = 0; px < n; px++) {
      const float cx = -2.2f + 3.2f * (float)px / (float)n,
                  cy = -1.2f + 2.4f * (float)py / (float)n;
      float x = 0.f, y = 0.f;
      int i = 0;
      while (i < limit && x * x + y * y <= 4.f) {
        const float t = x * x - y * y + cx;
        y = 2.f * x * y + cy;
        x = t;
        i++;
      }
      out[py * n + px] = i;
    }
}


/* Vectors would leave most of every row over. */
__attribute__((optimize("no-tree-vectorize"))) void
floor_spmv(const int *row, const int *column, const float *value,
           const float *x, float *y, int n) {
#pragma omp parallel for schedule(static)
  for (int i = 0; i < n; i++) {
    float sum = 0.f;
    for (int k = row[i]; k < row[i + 1]; k++)
      sum += value[k] * x[column[k]];
    y[i] = sum;
  }
}


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
