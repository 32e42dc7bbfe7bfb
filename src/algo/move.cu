// Elements moved as they are.  In front stand WORD, a type of an element's size,
// and INDEX, the type of indices.  Rows of 2^30 elements lie along y.

struct three { u64 at[3]; };
struct four { u64 at[4]; };
struct word { WORD bits; };

#define ROW ((i64)blockIdx.y << 30)
#define AT (ROW + (int)(blockIdx.x * blockDim.x + threadIdx.x))

// out[i] = x[indices[i]], or 0 where there is no such element.
extern "C" __global__ void gather(const word *x, const INDEX *indices,
                                  word *out, i64 n, u64 count) {
  const i64 i = AT;
  if (i >= n) return;
  const u64 from = (u64)(i64)indices[i];
  out[i] = from < count ? x[from] : word{0};
}

// out[indices[i]] = x[i], where there is such an element.
extern "C" __global__ void scatter(const word *x, const INDEX *indices,
                                   word *out, i64 n, u64 count) {
  const i64 i = AT;
  if (i >= n) return;
  const u64 to = (u64)(i64)indices[i];
  if (to < count) out[to] = x[i];
}

// The elements that have a flag go to their positions.
extern "C" __global__ void compact(const word *x, const bool *flags,
                                   const INDEX *positions, word *out,
                                   i64 *count, i64 n) {
  const i64 i = AT;
  if (i >= n) return;
  if (flags[i]) out[positions[i]] = x[i];
  if (i == n - 1) *count = (i64)positions[i] + flags[i];
}

// A block for each tile of 32 x 32.
extern "C" __global__ void transpose(const word *x, word *out, i64 rows,
                                     i64 columns) {
  const i64 tile = (i64)blockIdx.y * gridDim.x + blockIdx.x;
  const i64 across = (columns + 31) / 32;
  const i64 top = tile / across * 32, left = tile % across * 32;
  if (top >= rows) return;
#ifdef __CGRAPHLUA_HOST__
  const i64 bottom = top + 32 < rows ? top + 32 : rows;
  const i64 right = left + 32 < columns ? left + 32 : columns;
  for (i64 j = left; j < right; j++)
    for (i64 i = top; i < bottom; i++) out[j * rows + i] = x[i * columns + j];
#else
  __shared__ word places[32][33];
  for (int k = threadIdx.y; k < 32; k += 8)
    if (top + k < rows && left + threadIdx.x < columns)
      places[k][threadIdx.x] = x[(top + k) * columns + left + threadIdx.x];
  __syncthreads();
  for (int k = threadIdx.y; k < 32; k += 8)
    if (left + k < columns && top + threadIdx.x < rows)
      out[(left + k) * rows + top + threadIdx.x] = places[threadIdx.x][k];
#endif
}
