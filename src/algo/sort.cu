// A stable sort by digits of eight bits, the lowest first.  In front stand WORD,
// an integer of a key's size, and its BITS; SIGNED or REAL (with INFINITE, the
// bits of infinity) unless keys compare as WORD does; DESCENDING; SIZE, of counts
// and positions; and VALUE, an integer of the size of a value, when values go
// with the keys.  Keys are stored as they are: only their digits are mapped.

struct word { WORD bits; };
#ifdef VALUE
struct item { VALUE bits; };
#define VALUES const item *values, item *values_out,
#else
#define VALUES
#endif

#define SIGN ((WORD)1 << (BITS - 1))

// A number that compares as the key does; NaNs are the largest, and both zeros
// are equal.
INSIDE WORD order(WORD w) {
#if defined(SIGNED)
  w = (WORD)(w ^ SIGN);
#elif defined(REAL)
  const WORD size = (WORD)(w & (WORD)~SIGN);
  if (size > (WORD)INFINITE) w = (WORD)~(WORD)0;
  else if (size == 0) w = SIGN;
  else w = (WORD)(w & SIGN ? ~w : w | SIGN);
#endif
#ifdef DESCENDING
  w = (WORD)~w;
#endif
  return w;
}
INSIDE unsigned digit_of(word key, int pass) {
  return (unsigned)(order(key.bits) >> (8 * pass)) & 255;
}

#ifndef __CGRAPHLUA_HOST__

// All counts are taken in one pass over the keys; each digit takes one more.
// Blocks begin in the order of their numbers, so those before a block are
// underway.  A block takes a tile, and publishes how many keys of each digit it
// has, and then how many there are up to its end, which it learns from the tiles
// before.

enum {
  PASSES = BITS / 8,
  THREADS = 384,
  WARPS = THREADS / 32,
  EACH = TILE / THREADS
};
#define OWN ((SIZE)1 << (8 * sizeof(SIZE) - 2))  /* of the tile alone */
#define UPTO ((SIZE)2 << (8 * sizeof(SIZE) - 2)) /* of all up to its end */
#define COUNT (OWN - 1)

// all: the counts of every digit, for each pass.
extern "C" __global__ void __launch_bounds__(384)
counts(const word *keys, SIZE *all, i64 n) {
  __shared__ unsigned own[PASSES][256];
  for (int i = threadIdx.x; i < PASSES * 256; i += THREADS)
    own[i / 256][i % 256] = 0;
  __syncthreads();
  for (i64 i = (i64)blockIdx.x * THREADS + threadIdx.x; i < n;
       i += (i64)gridDim.x * THREADS) {
    const word key = keys[i];
#pragma unroll
    for (int p = 0; p < PASSES; p++) atomicAdd(&own[p][digit_of(key, p)], 1u);
  }
  __syncthreads();
  for (int i = threadIdx.x; i < PASSES * 256; i += THREADS)
    if (own[i / 256][i % 256]) atomicAdd(&all[i], (SIZE)own[i / 256][i % 256]);
}

// What stands before each of 256 numbers of a block; threads past them pass 0.
INSIDE SIZE before_256(SIZE own, SIZE *warps) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  SIZE sum = own;
  for (int by = 1; by < 32; by *= 2) {
    const SIZE before = __shfl_up_sync(0xffffffff, sum, by);
    if (lane >= by) sum += before;
  }
  if (lane == 31) warps[warp] = sum;
  __syncthreads();
  for (int w = 0; w < warp; w++) sum += warps[w];
  __syncthreads();
  return sum - own;
}

// Counts to where each digit's keys begin: a block for each pass.
extern "C" __global__ void starts(SIZE *all) {
  __shared__ SIZE warps[8];
  SIZE *at = all + blockIdx.x * 256 + threadIdx.x;
  *at = before_256(*at, warps);
}

// The lanes of the warp that have the same digit.
INSIDE unsigned lanes_alike(unsigned digit) {
  unsigned lanes = 0xffffffff;
#pragma unroll
  for (int b = 0; b < 8; b++) {
    const bool bit = digit >> b & 1;
    const unsigned with = __ballot_sync(0xffffffff, bit);
    lanes &= bit ? with : ~with;
  }
  return lanes;
}

// state: 256 numbers for each tile, 0 at first.
extern "C" __global__ void __launch_bounds__(384, 2)
sweep(const word *keys, word *keys_out, VALUES const SIZE *starts, SIZE *state,
      i64 n, int pass) {
  __shared__ SIZE places[256], warps[WARPS];
  __shared__ unsigned begins[256];
  __shared__ union {
    unsigned ranks[WARPS][256];
    WORD keys[TILE];
#ifdef VALUE
    VALUE values[TILE];
#endif
  } shared;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  for (int i = t; i < WARPS * 256; i += THREADS) shared.ranks[i / 256][i % 256] = 0;
  __syncthreads();
  const i64 tile = (i64)blockIdx.y * gridDim.x + blockIdx.x;
  const i64 first = tile * TILE;
  if (first >= n) return;
  const int width = n - first < TILE ? (int)(n - first) : TILE;
  const int mine = warp * 32 * EACH + lane; /* and every 32nd after it */
  word own[EACH];
  unsigned at[EACH]; /* the digit, above the place among its keys */
#pragma unroll
  for (int k = 0; k < EACH; k++)
    if (mine + 32 * k < width) own[k] = keys[first + mine + 32 * k];
  // What is past the end counts as the last of the last digit.
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const unsigned digit =
        mine + 32 * k < width ? digit_of(own[k], pass) : 255;
    const unsigned alike = lanes_alike(digit);
    const unsigned lower = alike & ((1u << lane) - 1);
    at[k] = digit << 16 | (shared.ranks[warp][digit] + __popc(lower));
    __syncwarp();
    if (lower == 0) shared.ranks[warp][digit] += __popc(alike);
    __syncwarp();
  }
  __syncthreads();
  unsigned sum = 0;
  if (t < 256) {
    for (int w = 0; w < WARPS; w++) {
      const unsigned count = shared.ranks[w][t];
      shared.ranks[w][t] = sum;
      sum += count;
    }
    ((volatile SIZE *)state)[tile * 256 + t] = (tile ? OWN : UPTO) | sum;
  }
  const unsigned begin = (unsigned)before_256(t < 256 ? sum : 0, warps);
  if (t < 256) {
    begins[t] = begin;
    SIZE before = 0;
    for (i64 j = tile - 1; j >= 0; j--) {
      SIZE seen;
      do seen = ((volatile SIZE *)state)[j * 256 + t];
      while (!(seen & (OWN | UPTO)));
      before += seen & COUNT;
      if (seen & UPTO) break;
    }
    if (tile) ((volatile SIZE *)state)[tile * 256 + t] = UPTO | (before + sum);
    places[t] = starts[t] + before - begin;
  }
  __syncthreads();
#pragma unroll
  for (int k = 0; k < EACH; k++)
    at[k] = (at[k] & 0xffff) + begins[at[k] >> 16] +
            shared.ranks[warp][at[k] >> 16];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < EACH; k++) shared.keys[at[k]] = own[k].bits;
  __syncthreads();
#ifdef VALUE
  SIZE to[EACH];
#endif
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int i = k * THREADS + t;
    if (i < width) {
      const word key = {shared.keys[i]};
      const SIZE place = places[digit_of(key, pass)] + i;
      keys_out[place] = key;
#ifdef VALUE
      to[k] = place;
#endif
    }
  }
#ifdef VALUE
  item items[EACH];
#pragma unroll
  for (int k = 0; k < EACH; k++)
    if (mine + 32 * k < width) items[k] = values[first + mine + 32 * k];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < EACH; k++)
    if (mine + 32 * k < width) shared.values[at[k]] = items[k].bits;
  __syncthreads();
#pragma unroll
  for (int k = 0; k < EACH; k++)
    if (k * THREADS + t < width)
      values_out[to[k]] = item{shared.values[k * THREADS + t]};
#endif
}

#else

// A thread for each chunk counts its keys of each digit; one thread says where
// each chunk's begin; and the chunks' threads move them.

#define CHUNK ((i64)blockIdx.y * gridDim.x + blockIdx.x)

extern "C" __global__ void counts(const word *keys, SIZE *all, i64 n, i64 chunk,
                                  int pass) {
  const i64 first = CHUNK * chunk;
  const i64 end = first + chunk < n ? first + chunk : n;
  SIZE own[256];
  for (int d = 0; d < 256; d++) own[d] = 0;
  for (i64 i = first; i < end; i++) own[digit_of(keys[i], pass)]++;
  for (int d = 0; d < 256; d++) all[CHUNK * 256 + d] = own[d];
}

extern "C" __global__ void starts(SIZE *all, i64 chunks) {
  SIZE before = 0;
  for (int d = 0; d < 256; d++)
    for (i64 c = 0; c < chunks; c++) {
      const SIZE count = all[c * 256 + d];
      all[c * 256 + d] = before;
      before += count;
    }
}

extern "C" __global__ void sweep(const word *keys, word *keys_out,
                                 VALUES const SIZE *starts, i64 n, i64 chunk,
                                 int pass) {
  const i64 first = CHUNK * chunk;
  const i64 end = first + chunk < n ? first + chunk : n;
  SIZE at[256];
  for (int d = 0; d < 256; d++) at[d] = starts[CHUNK * 256 + d];
  for (i64 i = first; i < end; i++) {
    const SIZE to = at[digit_of(keys[i], pass)]++;
    keys_out[to] = keys[i];
#ifdef VALUE
    values_out[to] = values[i];
#endif
  }
}

#endif
