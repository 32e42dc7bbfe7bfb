// One number of many, along the middle of [outer][n][inner], in chunks of the
// middle: `both` gives results of elements, or `first` gives parts of elements,
// `middle` parts of parts, and `last` results of parts.  What is joined with
// what follows from the sizes alone.
// In front stand X, the elements' type; NUMBER, what they are computed as; R,
// the results' type; the operation; WORST, what every number beats; and ROWS,
// where inner is 1, or COLUMNS.

#if defined(ARGMIN) || defined(ARGMAX)
#define INDEXED
struct part { NUMBER value; i64 at; };
#else
typedef NUMBER part;
#endif

#if defined(ARGMIN)
#define BEATS <
#define KEEPS <=
#else
#define BEATS >
#define KEEPS >=
#endif

// Of equal numbers the first counts, and of NaNs too.
#ifdef INDEXED
INSIDE part start() { return {WORST, 0x7fffffffffffffffLL}; }
INSIDE part take(X x, X, i64 j) { return {(NUMBER)get(x), j}; }
INSIDE part join(part a, part b) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  const bool equal = a.value == b.value | a_nan & b_nan;
  const bool better = a.value BEATS b.value | a_nan & !b_nan;
  return better | equal & a.at < b.at ? a : b;
}
// With an element that comes later.
INSIDE part follow(part a, part b) {
  return !(a.value KEEPS b.value) & (a.value == a.value) ? b : a;
}
INSIDE R finish(part a) { return a.at; }
#elif defined(MIN)
INSIDE part start() { return WORST; }
INSIDE part take(X x, X, i64) { return get(x); }
INSIDE part join(part a, part b) { return (a < b) | (a != a) ? a : b; }
INSIDE R finish(part a) { return put<R>::of(a); }
#elif defined(MAX)
INSIDE part start() { return WORST; }
INSIDE part take(X x, X, i64) { return get(x); }
INSIDE part join(part a, part b) { return (a > b) | (a != a) ? a : b; }
INSIDE R finish(part a) { return put<R>::of(a); }
#elif defined(PRODUCT)
INSIDE part start() { return 1; }
INSIDE part take(X x, X, i64) { return (part)get(x); }
INSIDE part join(part a, part b) { return a * b; }
INSIDE R finish(part a) { return put<R>::of(a); }
#elif defined(ANY) || defined(ALL)
#ifdef ANY
INSIDE part start() { return 0; }
INSIDE part join(part a, part b) { return a | b; }
#else
INSIDE part start() { return 1; }
INSIDE part join(part a, part b) { return a & b; }
#endif
INSIDE part take(X x, X, i64) { return get(x) != 0; }
INSIDE R finish(part a) { return a != 0; }
#else
INSIDE part start() { return 0; }
INSIDE part join(part a, part b) { return a + b; }
#if defined(DOT)
INSIDE part take(X x, X y, i64) { return (part)get(x) * (part)get(y); }
#elif defined(NORM)
INSIDE part take(X x, X, i64) { return (part)get(x) * (part)get(x); }
#else
INSIDE part take(X x, X, i64) { return (part)get(x); }
#endif
#ifdef NORM
INSIDE R finish(part a) { return put<R>::of(sqrt(a)); }
#else
INSIDE R finish(part a) { return put<R>::of(a); }
#endif
#endif

#ifdef DOT
#define ELEMENTS const X *x, const X *y
#define FROM_ELEMENTS elements{x, y}
#else
#define ELEMENTS const X *x
#define FROM_ELEMENTS elements{x, x}
#endif

#ifdef INDEXED
#define FOLLOW follow
#else
#define FOLLOW join
#endif

// Sums of small integers are dot products with ones: of 4 bytes or 2 halves of a
// word in one instruction.
#if defined(SUM) && defined(NARROW) && __CUDA_ARCH__ >= 610
#define DOTS 1
#else
#define DOTS 0
#endif

// Where parts come from: a run of EACH at a time, or by themselves.
struct elements {
  const X *x, *y;
  enum { EACH = 16 / sizeof(X) };
  enum { SUMS = DOTS ? 1 : EACH };
  __device__ __forceinline__ part at(i64 i, i64 j) const {
#ifdef DOT
    return take(x[i], y[i], j);
#else
    return take(x[i], x[i], j);
#endif
  }
#ifndef __CGRAPHLUA_HOST__
  struct alignas(16) run { X at[EACH]; };
  __device__ __forceinline__ bool aligned(i64 i) const {
    return (((u64)(x + i) | (u64)(y + i)) & 15) == 0;
  }
  __device__ __forceinline__ run load(const X *from, bool whole) const {
    if (whole) return *(const run *)from;
    run r;
    for (int k = 0; k < EACH; k++) r.at[k] = from[k];
    return r;
  }
#if DOTS
  __device__ __forceinline__ int dot_ones(run p) const {
    int words[4], sum = 0;
    memcpy(words, &p, sizeof words);
#pragma unroll
    for (int w = 0; w < 4; w++)
      if (sizeof(X) == 1)
        sum = (X)-1 < 0 ? __dp4a(words[w], 0x01010101, sum)
                        : __dp4a((unsigned)words[w], 0x01010101u, (unsigned)sum);
      else
        sum = (X)-1 < 0 ? __dp2a_lo(words[w], 0x0101, sum)
                        : __dp2a_lo((unsigned)words[w], 0x0101u, (unsigned)sum);
    return sum;
  }
#endif
  __device__ __forceinline__ void join_run(part *sums, i64 i, i64 j,
                                           bool whole) const {
    const run p = load(x + i, whole);
#ifdef DOT
    const run q = load(y + i, whole);
#define OTHER q
#else
#define OTHER p
#endif
#if DOTS
    sums[0] += dot_ones(p);
#else
#pragma unroll
    for (int k = 0; k < EACH; k++)
      sums[k] = FOLLOW(sums[k], take(p.at[k], OTHER.at[k], j + k));
#endif
  }
#endif
};

struct parts {
  const part *from;
  enum { EACH = 1, SUMS = 1 };
  __device__ __forceinline__ part at(i64 i, i64) const { return from[i]; }
#ifndef __CGRAPHLUA_HOST__
  __device__ __forceinline__ bool aligned(i64) const { return true; }
  __device__ __forceinline__ void join_run(part *sums, i64 i, i64,
                                           bool) const {
    sums[0] = join(sums[0], from[i]);
  }
#endif
};

struct results { R *to; };
INSIDE void store(part *to, i64 i, part a) { to[i] = a; }
INSIDE void store(results out, i64 i, part a) { out.to[i] = finish(a); }

#define BLOCK ((i64)blockIdx.y * gridDim.x + blockIdx.x)

#ifndef __CGRAPHLUA_HOST__

INSIDE part shuffle_down(part a, int by) {
  enum { WORDS = sizeof(part) / 4 };
  unsigned words[WORDS];
  memcpy(words, &a, sizeof a);
#pragma unroll
  for (int w = 0; w < WORDS; w++)
    words[w] = __shfl_down_sync(0xffffffff, words[w], by);
  memcpy(&a, words, sizeof a);
  return a;
}

// The parts of a block's threads, in thread 0.
INSIDE part join_block(part a) {
  __shared__ part warps[32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int by = 16; by; by /= 2) a = join(a, shuffle_down(a, by));
  if (blockDim.x == 32) return a;
  if (lane == 0) warps[warp] = a;
  __syncthreads();
  if (warp == 0) {
    a = lane < blockDim.x / 32 ? warps[lane] : start();
    for (int by = 16; by; by /= 2) a = join(a, shuffle_down(a, by));
  }
  return a;
}

// A block, or a warp of one, for each chunk of a row.
template <class From, class To>
INSIDE void rows(From from, To to, i64 outer, i64 n, i64, i64 chunk,
                 i64 chunks) {
  const i64 at = BLOCK * blockDim.y + threadIdx.y;
  if (at >= outer * chunks) return;
  const i64 row = outer == 1 ? 0 : at / chunks * n;
  const i64 first = (outer == 1 ? at : at % chunks) * chunk;
  const i64 end = first + chunk < n ? first + chunk : n;
  const i64 rest = first + (end - first) / From::EACH * From::EACH;
  const bool whole = from.aligned(row + first);
  part sums[From::SUMS];
#pragma unroll
  for (int k = 0; k < From::SUMS; k++) sums[k] = start();
  i64 j = first + (i64)threadIdx.x * From::EACH;
#ifdef INDEXED
  // What the first element of each does not beat, it equals.
  if (j < rest)
    for (int k = 0; k < From::SUMS; k++) sums[k].at = j + k;
#endif
  const i64 step = (i64)blockDim.x * From::EACH;
  if (whole) {
#pragma unroll 4
    for (; j < rest; j += step) from.join_run(sums, row + j, j, true);
  } else {
#pragma unroll 2
    for (; j < rest; j += step) from.join_run(sums, row + j, j, false);
  }
  if (rest + threadIdx.x < end)
    sums[0] = join(sums[0], from.at(row + rest + threadIdx.x,
                                    rest + threadIdx.x));
#pragma unroll
  for (int w = 1; w < From::SUMS; w *= 2)
#pragma unroll
    for (int k = 0; k + w < From::SUMS; k += 2 * w)
      sums[k] = join(sums[k], sums[k + w]);
  const part sum = join_block(sums[0]);
  if (threadIdx.x == 0) store(to, at, sum);
}

// A thread for each chunk of a column.
template <class From, class To>
INSIDE void columns(From from, To to, i64 outer, i64 n, i64 inner, i64 chunk,
                    i64 chunks) {
  const i64 t = BLOCK * blockDim.x + threadIdx.x;
  if (t >= outer * chunks * inner) return;
  const i64 column = t % inner, row = t / inner / chunks;
  const i64 first = t / inner % chunks * chunk;
  const i64 end = first + chunk < n ? first + chunk : n;
  part sum = start();
#pragma unroll 8
  for (i64 j = first; j < end; j++)
    sum = join(sum, from.at((row * n + j) * inner + column, j));
  store(to, t, sum);
}

#else

enum { LANES = 32, TILE = 64 };

// A thread for each chunk of a row.
template <class From, class To>
INSIDE void rows(From from, To to, i64, i64 n, i64, i64 chunk, i64 chunks) {
  const i64 row = BLOCK / chunks * n, first = BLOCK % chunks * chunk;
  const i64 end = first + chunk < n ? first + chunk : n;
#ifdef INDEXED
  part best = first < end ? from.at(row + first, first) : start();
  for (i64 j = first + 1; j < end; j++) {
    const part next = from.at(row + j, j);
    if (!(best.value KEEPS next.value)) best = join(best, next);
  }
  store(to, BLOCK, best);
#else
  part sums[LANES];
  for (int k = 0; k < LANES; k++) sums[k] = start();
  i64 j = first;
  for (; j + LANES <= end; j += LANES)
    for (int k = 0; k < LANES; k++)
      sums[k] = join(sums[k], from.at(row + j + k, j + k));
  for (int k = 0; j + k < end; k++)
    sums[k] = join(sums[k], from.at(row + j + k, j + k));
  for (int w = LANES / 2; w; w /= 2)
    for (int k = 0; k < w; k++) sums[k] = join(sums[k], sums[k + w]);
  store(to, BLOCK, sums[0]);
#endif
}

// A thread for each chunk of TILE columns, or, where those are few and the
// chunk is all there is, for TILE results, one by one.
template <class From, class To>
INSIDE void columns(From from, To to, i64 outer, i64 n, i64 inner, i64 chunk,
                    i64 chunks) {
  if (chunks == 1 && inner < TILE / 2) {
    const i64 count = outer * inner, first = BLOCK * TILE;
    const i64 end = first + TILE < count ? first + TILE : count;
    for (i64 i = first; i < end; i++) {
      const i64 at = i / inner * n * inner + i % inner;
      part sum = start();
      for (i64 j = 0; j < n; j++) sum = join(sum, from.at(at + j * inner, j));
      store(to, i, sum);
    }
    return;
  }
  const i64 tiles = (inner + TILE - 1) / TILE;
  const i64 left = BLOCK % tiles * TILE, part_row = BLOCK / tiles;
  const i64 row = part_row / chunks, first = part_row % chunks * chunk;
  const i64 end = first + chunk < n ? first + chunk : n;
  const int width = inner - left < TILE ? (int)(inner - left) : TILE;
  part sums[TILE];
  for (int k = 0; k < width; k++) sums[k] = start();
  for (i64 j = first; j < end; j++) {
    const i64 at = (row * n + j) * inner + left;
    if (width == TILE)
      for (int k = 0; k < TILE; k++) sums[k] = join(sums[k], from.at(at + k, j));
    else
      for (int k = 0; k < width; k++)
        sums[k] = join(sums[k], from.at(at + k, j));
  }
  for (int k = 0; k < width; k++)
    store(to, part_row * inner + left + k, sums[k]);
}

#endif

#ifdef ROWS
#define REDUCE rows
#else
#define REDUCE columns
#endif
#define SIZES i64 outer, i64 n, i64 inner, i64 chunk, i64 chunks

extern "C" __global__ void first(ELEMENTS, void *to, SIZES) {
  REDUCE(FROM_ELEMENTS, (part *)to, outer, n, inner, chunk, chunks);
}
extern "C" __global__ void middle(const void *from, void *to, SIZES) {
  REDUCE(parts{(const part *)from}, (part *)to, outer, n, inner, chunk, chunks);
}
extern "C" __global__ void last(const void *from, R *out, SIZES) {
  REDUCE(parts{(const part *)from}, results{out}, outer, n, inner, chunk,
         chunks);
}
extern "C" __global__ void both(ELEMENTS, R *out, SIZES) {
  REDUCE(FROM_ELEMENTS, results{out}, outer, n, inner, chunk, chunks);
}
