// Running sums, minima and maxima.  In front stand X, the elements' type;
// NUMBER, what they are computed as; R, the results' type; the operation; WORST,
// what every number beats; and on a GPU TILE, the elements of a block, of THREADS
// threads, and GROUP.

#if defined(MIN)
INSIDE NUMBER start() { return WORST; }
INSIDE NUMBER join(NUMBER a, NUMBER b) { return (a < b) | (a != a) ? a : b; }
#elif defined(MAX)
INSIDE NUMBER start() { return WORST; }
INSIDE NUMBER join(NUMBER a, NUMBER b) { return (a > b) | (a != a) ? a : b; }
#else
INSIDE NUMBER start() { return 0; }
INSIDE NUMBER join(NUMBER a, NUMBER b) { return a + b; }
#endif

#ifndef __CGRAPHLUA_HOST__

// One pass over the elements.  Blocks begin in the order of their numbers, so
// those before a block are underway.  A block takes a tile, and publishes its
// sum; GROUP tiles are a group, whose last tile publishes the sum up to its end.
// The sum before a tile is joined from that of the group before and those of the
// tiles before in its group, in an order that the tile's number fixes: the same
// bits in every run.
// A warp has EACH / RUN rows, in which a lane has RUN elements side by side.
// state: a place for each tile, then for each group, which the caller sets to 0:
// 32 bits of the number in each word, beside a 1, so that a word is whole when
// it is seen.

enum {
  EACH = TILE / THREADS,
  WARPS = THREADS / 32,
  WIDE = sizeof(X) > sizeof(R) ? sizeof(X) : sizeof(R),
  RUN = WIDE == 1 ? 8 : 16 / WIDE,
  ROWS = EACH / RUN,
  WORDS = sizeof(NUMBER) / 4
};

template <class T> struct alignas(RUN * sizeof(T)) run { T at[RUN]; };

INSIDE void publish(u64 *place, NUMBER value) {
  unsigned bits[WORDS];
  memcpy(bits, &value, sizeof value);
  for (int w = 0; w < WORDS; w++)
    ((volatile u64 *)place)[w] = (u64)1 << 32 | bits[w];
}

// What a place held when it was looked at, and its number when it has one.
struct look { u64 words[WORDS]; };
INSIDE look look_at(const u64 *place) {
  look seen;
#pragma unroll
  for (int w = 0; w < WORDS; w++)
    seen.words[w] = ((const volatile u64 *)place)[w];
  return seen;
}
INSIDE NUMBER await(look seen, const u64 *place) {
  unsigned bits[WORDS];
#pragma unroll
  for (int w = 0; w < WORDS; w++) {
    while (!(seen.words[w] >> 32))
      seen.words[w] = ((const volatile u64 *)place)[w];
    bits[w] = (unsigned)seen.words[w];
  }
  NUMBER value;
  memcpy(&value, bits, sizeof value);
  return value;
}

// What stands before the tile, in lane 0 of the warp that asks.
INSIDE NUMBER look_back(u64 *state, i64 tile, i64 tiles, NUMBER all) {
  enum { LOOKS = 4 }; /* at a time */
  const int lane = threadIdx.x % 32, count = (int)(tile % GROUP);
  u64 *group = state + (tiles + tile / GROUP) * WORDS;
  const u64 *mine = state + (tile - count) * WORDS;
  if (lane == 0) publish(state + tile * WORDS, all);
  look base = {};
  if (tile >= GROUP) base = look_at(group - WORDS);
  NUMBER lower = start();
  for (int i = lane; i < count; i += 32 * LOOKS) {
    look seen[LOOKS];
#pragma unroll
    for (int k = 0; k < LOOKS; k++)
      if (i + 32 * k < count) seen[k] = look_at(mine + (i + 32 * k) * WORDS);
#pragma unroll
    for (int k = 0; k < LOOKS; k++)
      if (i + 32 * k < count)
        lower = join(lower, await(seen[k], mine + (i + 32 * k) * WORDS));
  }
  __syncwarp();
  for (int by = 16; by; by /= 2)
    lower = join(lower, __shfl_down_sync(0xffffffff, lower, by));
  if (lane == 0) {
    if (tile >= GROUP) lower = join(await(base, group - WORDS), lower);
    if (count == GROUP - 1) publish(group, join(lower, all));
  }
  return lower;
}

extern "C" __global__ void __launch_bounds__(THREADS)
scan(const X *x, R *out, u64 *state, i64 n, i64 tiles, int exclusive) {
  __shared__ NUMBER warps[WARPS], before_tile;
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const i64 tile = (i64)blockIdx.y * gridDim.x + blockIdx.x;
  if (tile >= tiles) return;
  const i64 first = tile * TILE + warp * 32 * EACH + lane * RUN;
  const bool filled = tile * TILE + TILE <= n;
  run<X> elements[ROWS];
  if (filled && !((u64)x % sizeof(run<X>))) {
#pragma unroll
    for (int r = 0; r < ROWS; r++)
      elements[r] = *(const run<X> *)(x + first + r * 32 * RUN);
  } else {
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
      for (int k = 0; k < RUN; k++)
        if (first + r * 32 * RUN + k < n)
          elements[r].at[k] = x[first + r * 32 * RUN + k];
  }
  NUMBER own[ROWS][RUN], sums[ROWS];
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
#pragma unroll
    for (int k = 0; k < RUN; k++) {
      const bool there = filled || first + r * 32 * RUN + k < n;
      const NUMBER e = there ? (NUMBER)get(elements[r].at[k]) : start();
      own[r][k] = k ? join(own[r][k - 1], e) : e;
    }
    sums[r] = own[r][RUN - 1];
  }
#pragma unroll
  for (int by = 1; by < 32; by *= 2)
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
      const NUMBER before = __shfl_up_sync(0xffffffff, sums[r], by);
      if (lane >= by) sums[r] = join(before, sums[r]);
    }
  NUMBER row = start();
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const NUMBER all = __shfl_sync(0xffffffff, sums[r], 31);
    const NUMBER before = __shfl_up_sync(0xffffffff, sums[r], 1);
    sums[r] = lane ? join(row, before) : row;
    row = join(row, all);
  }
  if (lane == 0) warps[warp] = row;
  __syncthreads();
  NUMBER before_warp = start(), all = start();
#pragma unroll
  for (int w = 0; w < WARPS; w++) {
    if (w == warp) before_warp = all;
    all = join(all, warps[w]);
  }
  if (tiles > 1) {
    if (warp == 0) {
      const NUMBER before = look_back(state, tile, tiles, all);
      if (lane == 0) before_tile = before;
    }
    __syncthreads();
    before_warp = join(before_tile, before_warp);
  }
  const bool whole = filled && !((u64)out % sizeof(run<R>));
#pragma unroll
  for (int r = 0; r < ROWS; r++) {
    const NUMBER before = join(before_warp, sums[r]);
    run<R> results;
#pragma unroll
    for (int k = 0; k < RUN; k++) {
      const NUMBER upto = join(before, own[r][k]);
      const NUMBER ahead = k ? join(before, own[r][k - 1]) : before;
      results.at[k] = put<R>::of(exclusive ? ahead : upto);
    }
    R *to = out + first + r * 32 * RUN;
    if (whole) {
      *(run<R> *)to = results;
    } else {
#pragma unroll
      for (int k = 0; k < RUN; k++)
        if (first + r * 32 * RUN + k < n) to[k] = results.at[k];
    }
  }
}

#else

// A thread for each chunk: the chunks' sums, what stands before each chunk, and
// then the elements once more.

#define CHUNK ((i64)blockIdx.y * gridDim.x + blockIdx.x)

extern "C" __global__ void sums(const X *x, NUMBER *parts, i64 n, i64 chunk) {
  const i64 first = CHUNK * chunk;
  const i64 end = first + chunk < n ? first + chunk : n;
  NUMBER lanes[32];
  for (int k = 0; k < 32; k++) lanes[k] = start();
  i64 j = first;
  for (; j + 32 <= end; j += 32)
    for (int k = 0; k < 32; k++)
      lanes[k] = join(lanes[k], (NUMBER)get(x[j + k]));
  for (int k = 0; j + k < end; k++)
    lanes[k] = join(lanes[k], (NUMBER)get(x[j + k]));
  for (int w = 16; w; w /= 2)
    for (int k = 0; k < w; k++) lanes[k] = join(lanes[k], lanes[k + w]);
  parts[CHUNK] = lanes[0];
}

extern "C" __global__ void offsets(NUMBER *parts, i64 chunks) {
  NUMBER before = start();
  for (i64 i = 0; i < chunks; i++) {
    const NUMBER upto = join(before, parts[i]);
    parts[i] = before;
    before = upto;
  }
}

extern "C" __global__ void scan(const X *x, R *out, const NUMBER *parts, i64 n,
                                i64 chunk, int exclusive) {
  const i64 first = CHUNK * chunk;
  const i64 end = first + chunk < n ? first + chunk : n;
  NUMBER before = parts ? parts[CHUNK] : start();
  for (i64 j = first; j < end; j++) {
    const NUMBER upto = join(before, (NUMBER)get(x[j]));
    out[j] = put<R>::of(exclusive ? before : upto);
    before = upto;
  }
}

#endif
