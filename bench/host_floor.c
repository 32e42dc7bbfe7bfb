/* The loops that bench/host holds the host device against: each kernel as a
   person would write it in C.  Built into a shared object twice, with OpenMP
   for all cores and without it for one, and called in the same process
   through FFI.  The arrays do not overlap. */
#include <math.h>

typedef struct vec4 {
  float x, y, z, w;
} vec4;

void floor_saxpy(const float *restrict x, float *restrict y, int n);
void floor_line(const float *restrict x, float *restrict y, int n);
void floor_plane(const float *restrict x, float *restrict y, int nx, int ny);
void floor_bodies(const vec4 *restrict p, vec4 *restrict a, int n, int m);


void floor_saxpy(const float *restrict x, float *restrict y, int n) {
#pragma omp parallel for
  for (int i = 0; i < n; i++)
    y[i] = 1e-6f * x[i] + y[i];
}


void floor_line(const float *restrict x, float *restrict y, int n) {
#pragma omp parallel for
  for (int i = 1; i < n - 1; i++)
    y[i] = 0.25f * x[i - 1] + 0.5f * x[i] + 0.25f * x[i + 1];
}


void floor_plane(const float *restrict x, float *restrict y, int nx, int ny) {
#pragma omp parallel for
  for (int j = 1; j < ny - 1; j++)
    for (int i = j * nx + 1; i < j * nx + nx - 1; i++)
      y[i] = 0.2f * (x[i] + x[i - 1] + x[i + 1] + x[i - nx] + x[i + nx]);
}


void floor_bodies(const vec4 *restrict p, vec4 *restrict a, int n, int m) {
#pragma omp parallel for
  for (int i = 0; i < n; i++) {
    float x = 0, y = 0, z = 0;
    for (int j = 0; j < m; j++) {
      float dx = p[j].x - p[i].x, dy = p[j].y - p[i].y, dz = p[j].z - p[i].z;
      float r2 = dx * dx + dy * dy + dz * dz + 1e-3f;
      float inverse = 1 / sqrtf(r2);
      float pull = p[j].w * inverse * inverse * inverse;
      x += pull * dx;
      y += pull * dy;
      z += pull * dz;
    }
    a[i] = (vec4){x, y, z, 0};
  }
}
