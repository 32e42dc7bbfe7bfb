// A stable sort by digits of eight bits, the lowest first.  In front stand WORD,
// an integer of a key's size, and its BITS; SIGNED or REAL (with INFINITE, the
// bits of infinity) unless keys compare as WORD does; DESCENDING; SIZE, of counts
// and positions; VALUE, an integer of the size of a value, when values go with the
// keys; and on a GPU TILE, the keys of a block, of THREADS threads, BLOCKS, how many a
// multiprocessor runs at once, and FEW.  The first pass maps keys to numbers that
// compare as they do, and the last one maps them back.

struct word { WORD bits; };
#ifdef VALUE
struct item { VALUE bits; };
#define VALUES const item *values, item *values_out,
#else
#define VALUES
#endif

#define SIGN ((WORD)((WORD)1 << (BITS - 1)))
#ifdef REAL
#define LOWEST ((WORD)~(SIGN | INFINITE)) /* -infinity's bits, turned */
#define LARGEST ((WORD)((SIGN | INFINITE) - LOWEST)) /* infinity's number */
#endif

// A key's number: integers that compare as keys do, one for each key.  Of reals
// -infinity is 0, the zeros are INFINITE and the number above, and NaNs are the
// largest.
INSIDE WORD number_of(WORD key) {
#if defined(SIGNED)
  key = (WORD)(key ^ SIGN);
#elif defined(REAL)
  key = (WORD)((key & SIGN ? ~key : key | SIGN) - LOWEST);
#endif
#ifdef DESCENDING
  key = (WORD)~key;
#endif
  return key;
}
INSIDE WORD key_of(WORD number) {
#ifdef DESCENDING
  number = (WORD)~number;
#endif
#if defined(SIGNED)
  number = (WORD)(number ^ SIGN);
#elif defined(REAL)
  number = (WORD)(number + LOWEST);
  number = (WORD)(number & SIGN ? number ^ SIGN : ~number);
#endif
  return number;
}
// The same for both zeros, and for all NaNs.
INSIDE WORD order(WORD number) {
#ifdef REAL
#ifdef DESCENDING
  const WORD nan = 0, zero = (WORD)~(INFINITE + 1);
  if (number < (WORD)~LARGEST) number = nan;
#else
  const WORD nan = (WORD)~(WORD)0, zero = (WORD)INFINITE;
  if (number > LARGEST) number = nan;
#endif
  if (number == zero) number = (WORD)(zero + 1);
#endif
  return number;
}
INSIDE unsigned digit_of(WORD number, int pass) {
  return (unsigned)(order(number) >> (8 * pass)) & 255;
}

#ifndef __CGRAPHLUA_HOST__

// All counts are taken in one pass over the keys; each digit takes one more.
// Blocks begin in the order of their numbers, so those before a block are
// underway.  A block takes a tile, and publishes how many keys of each digit it
// has, and then how many there are up to its end, which it learns from the tiles
// before.

enum {
  PASSES = BITS / 8,
  WARPS = THREADS / 32,
  EACH = TILE / THREADS
};
#define OWN ((SIZE)1 << (8 * sizeof(SIZE) - 2))  /* of the tile alone */
#define UPTO ((SIZE)2 << (8 * sizeof(SIZE) - 2)) /* of all up to its end */
#define COUNT (OWN - 1)

enum { RUN = 16 / sizeof(WORD) };
struct alignas(16) run { word at[RUN]; };
INSIDE void count_key(unsigned (*own)[256], word key) {
  const WORD number = number_of(key.bits);
#pragma unroll
  for (int p = 0; p < PASSES; p++) atomicAdd(&own[p][digit_of(number, p)], 1u);
}

// all: the counts of every digit, for each pass.
extern "C" __global__ void __launch_bounds__(THREADS)
counts(const word *keys, SIZE *all, i64 n) {
  __shared__ unsigned own[PASSES][256];
  for (int i = threadIdx.x; i < PASSES * 256; i += THREADS)
    own[i / 256][i % 256] = 0;
  __syncthreads();
  const i64 step = (i64)gridDim.x * THREADS;
  i64 i = (i64)blockIdx.x * THREADS + threadIdx.x, vectors = 0;
  if (!((u64)keys % sizeof(run))) vectors = n / RUN;
#pragma unroll 2
  for (; i < vectors; i += step) {
    const run r = ((const run *)keys)[i];
#pragma unroll
    for (int k = 0; k < RUN; k++) count_key(own, r.at[k]);
  }
  for (i += vectors * (RUN - 1); i < n; i += step) count_key(own, keys[i]);
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
#ifdef MATCH
  return __match_any_sync(0xffffffff, digit);
#endif
  unsigned lanes = 0xffffffff;
#pragma unroll
  for (int b = 0; b < 8; b++) {
    const bool bit = digit >> b & 1;
    const unsigned with = __ballot_sync(0xffffffff, bit);
    lanes &= with ^ ((unsigned)bit - 1);
  }
  return lanes;
}

// A block's tile: a warp has EACH rows of 32 keys, one row after the other.
struct shared_tile {
  unsigned ranks[WARPS][256]; /* where a warp's next key of a digit goes */
  SIZE warps[WARPS];
  union {
    WORD keys[TILE];
#ifdef VALUE
    VALUE values[TILE];
#endif
  };
};

// How many keys of digit t the block has, and a thread's digits, four in a word;
// rows are those in use.  What is past the end counts as the last of the last
// digit.
INSIDE unsigned tile_count(shared_tile &tile, const WORD *own,
                           unsigned *digits, int mine, int width, int rows,
                           int pass) {
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  for (int d = lane; d < 256; d += 32) tile.ranks[warp][d] = 0;
  __syncwarp();
#pragma unroll
  for (int k = 0; k < EACH; k++)
    if (k < rows) {
      const unsigned digit =
          mine + 32 * k < width ? digit_of(own[k], pass) : 255;
      digits[k / 4] = (k % 4 ? digits[k / 4] : 0) | digit << (8 * (k % 4));
      atomicAdd(&tile.ranks[warp][digit], 1u);
    }
  __syncthreads();
  unsigned sum = 0;
  for (int w = 0; w < WARPS && t < 256; w++) sum += tile.ranks[w][t];
  return sum;
}

// Where the keys of digit t begin in the sorted tile; every warp's are set.
INSIDE unsigned tile_begin(shared_tile &tile, unsigned sum) {
  const int t = threadIdx.x;
  const unsigned begin = (unsigned)before_256(t < 256 ? sum : 0, tile.warps);
  unsigned before = begin;
  for (int w = 0; w < WARPS && t < 256; w++) {
    const unsigned count = tile.ranks[w][t];
    tile.ranks[w][t] = before;
    before += count;
  }
  __syncthreads();
  return begin;
}

// Moves the keys to their places in the sorted tile, and says which.
INSIDE void tile_rank(shared_tile &tile, const WORD *own,
                      const unsigned *digits, int rows, unsigned short *at) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    if (k >= rows) continue;
    const unsigned digit = digits[k / 4] >> (8 * (k % 4)) & 255;
    const unsigned alike = lanes_alike(digit);
    const unsigned lower = alike & ((1u << lane) - 1);
    const unsigned to = tile.ranks[warp][digit] + __popc(lower);
    __syncwarp();
    if (lower == 0) tile.ranks[warp][digit] = to + __popc(alike);
    __syncwarp();
    tile.keys[to] = own[k];
    at[k] = (unsigned short)to;
  }
}

// How many keys of digit t the tiles before have.
INSIDE SIZE look_back(const volatile SIZE *state, i64 tile) {
  enum { LOOKS = 4 }; /* at a time */
  SIZE before = 0;
  while (tile > 0) {
    SIZE seen[LOOKS];
#pragma unroll
    for (int k = 0; k < LOOKS; k++)
      seen[k] = tile > k ? state[(tile - 1 - k) * 256] : 0;
#pragma unroll
    for (int k = 0; k < LOOKS; k++) {
      if (tile <= 0 || !(seen[k] & (OWN | UPTO))) break;
      before += seen[k] & COUNT;
      tile = seen[k] & UPTO ? 0 : tile - 1;
    }
  }
  return before;
}

// state: 256 numbers for each tile, 0 at first.  What a tile has of each digit is
// published before its keys are ranked, because others wait for it.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
sweep(const word *keys, word *keys_out, VALUES const SIZE *starts, SIZE *state,
      i64 n, int pass) {
  __shared__ SIZE places[256];
  __shared__ shared_tile shared;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const i64 tile = (i64)blockIdx.y * gridDim.x + blockIdx.x;
  const i64 first = tile * TILE;
  if (first >= n) return;
  const int width = n - first < TILE ? (int)(n - first) : TILE;
  const int mine = warp * 32 * EACH + lane;
  volatile SIZE *own_state = (volatile SIZE *)state + tile * 256 + t;
  WORD own[EACH];
  unsigned digits[(EACH + 3) / 4];
  unsigned short at[EACH];
#pragma unroll
  for (int k = 0; k < EACH; k++)
    if (mine + 32 * k < width) own[k] = keys[first + mine + 32 * k].bits;
  if (pass == 0) {
#pragma unroll
    for (int k = 0; k < EACH; k++) own[k] = number_of(own[k]);
  }
  const unsigned sum = tile_count(shared, own, digits, mine, width, EACH, pass);
  if (t < 256) *own_state = (tile ? OWN : UPTO) | sum;
  const unsigned begin = tile_begin(shared, sum);
  tile_rank(shared, own, digits, EACH, at);
  if (t < 256) {
    const SIZE before = look_back((volatile SIZE *)state + t, tile);
    if (tile) *own_state = UPTO | (before + sum);
    places[t] = starts[t] + before - begin;
  }
  __syncthreads();
#ifdef VALUE
  SIZE to[EACH];
#endif
#pragma unroll
  for (int k = 0; k < EACH; k++) {
    const int i = k * THREADS + t;
    if (i < width) {
      const WORD number = shared.keys[i];
      const SIZE place = places[digit_of(number, pass)] + i;
      keys_out[place] = word{pass == PASSES - 1 ? key_of(number) : number};
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

// At most FEW keys, in one block of as many threads as the power of two above:
// pairs of a key's order and its place are compared, so that equal keys keep
// theirs, and the lanes or the warps that are compared move apart and together
// again (a bitonic sort).
#if BITS <= 16
typedef unsigned pair;
INSIDE pair pair_of(WORD key, unsigned at) { return (unsigned)key << 16 | at; }
INSIDE unsigned place_of(pair p) { return p & 0xffff; }
#elif BITS == 32
typedef u64 pair;
INSIDE pair pair_of(WORD key, unsigned at) { return (u64)key << 32 | at; }
INSIDE unsigned place_of(pair p) { return (unsigned)p; }
#else
struct pair { u64 key; unsigned at; };
INSIDE pair pair_of(WORD key, unsigned at) { return pair{key, at}; }
INSIDE unsigned place_of(pair p) { return p.at; }
INSIDE bool operator<(pair a, pair b) {
  return a.key < b.key || (a.key == b.key && a.at < b.at);
}
INSIDE pair __shfl_xor_sync(unsigned lanes, pair p, int by) {
  return pair{__shfl_xor_sync(lanes, p.key, by),
              __shfl_xor_sync(lanes, p.at, by)};
}
#endif

extern "C" __global__ void __launch_bounds__(FEW)
few(const word *keys, word *keys_out, VALUES int n) {
  __shared__ pair shared[2][FEW];
  const int t = threadIdx.x, threads = blockDim.x;
  pair own = pair_of(t < n ? order(number_of(keys[t].bits)) : (WORD)~(WORD)0, t);
  int turn = 0;
  for (int run = 2; run <= threads; run *= 2)
    for (int by = run / 2; by; by /= 2) {
      pair other;
      if (by >= 32) {
        shared[turn][t] = own;
        __syncthreads();
        other = shared[turn][t ^ by];
        turn ^= 1;
      } else {
        other = __shfl_xor_sync(0xffffffff, own, by);
      }
      const bool least = !(t & by) == !(t & run);
      if ((other < own) == least) own = other;
    }
  if (t >= n) return;
  keys_out[t] = keys[place_of(own)];
#ifdef VALUE
  values_out[t] = values[place_of(own)];
#endif
}

// All passes over at most TILE keys, in one block.
extern "C" __global__ void __launch_bounds__(THREADS)
alone(const word *keys, word *keys_out, VALUES int n) {
  __shared__ shared_tile shared;
  const int t = threadIdx.x, lane = t % 32, warp = t / 32;
  const int rows = (n + THREADS - 1) / THREADS, mine = warp * 32 * rows + lane;
  WORD own[EACH];
  unsigned digits[(EACH + 3) / 4];
  unsigned short at[EACH];
#ifdef VALUE
  item items[EACH];
#endif
#pragma unroll
  for (int k = 0; k < EACH; k++)
    if (k < rows && mine + 32 * k < n) {
      own[k] = number_of(keys[mine + 32 * k].bits);
#ifdef VALUE
      items[k] = values[mine + 32 * k];
#endif
    }
  for (int pass = 0; pass < PASSES; pass++) {
    tile_begin(shared, tile_count(shared, own, digits, mine, n, rows, pass));
    tile_rank(shared, own, digits, rows, at);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; k++)
      if (k < rows) own[k] = shared.keys[mine + 32 * k];
    __syncthreads();
#ifdef VALUE
#pragma unroll
    for (int k = 0; k < EACH; k++)
      if (k < rows) shared.values[at[k]] = items[k].bits;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < EACH; k++)
      if (k < rows) items[k].bits = shared.values[mine + 32 * k];
    __syncthreads();
#endif
  }
#pragma unroll
  for (int k = 0; k < EACH; k++)
    if (k < rows && mine + 32 * k < n) {
      keys_out[mine + 32 * k] = word{key_of(own[k])};
#ifdef VALUE
      values_out[mine + 32 * k] = items[k];
#endif
    }
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
  for (i64 i = first; i < end; i++) own[digit_of(number_of(keys[i].bits), pass)]++;
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
    const SIZE to = at[digit_of(number_of(keys[i].bits), pass)]++;
    keys_out[to] = keys[i];
#ifdef VALUE
    values_out[to] = values[i];
#endif
  }
}

#endif
